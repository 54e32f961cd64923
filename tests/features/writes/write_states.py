"""Random scripts that change a small database, and the state that they lead to, told without the code under test."""

from __future__ import annotations

from collections import Counter
from random import Random

SCHEMA = """
    CREATE TABLE items (k INTEGER NOT NULL, price DOUBLE, name VARCHAR, stock INTEGER, PRIMARY KEY (k));
    CREATE TABLE marks (x INTEGER, y INTEGER, z INTEGER GENERATED ALWAYS AS (x + 2 * y));
    CREATE TABLE blank (a INTEGER, b INTEGER, c VARCHAR);
    INSERT INTO items VALUES (1, 1.5, 'fig', 3), (2, 2.25, 'plum', 3), (3, NULL, 'Fig', 0), (4, 8.0, NULL, 7);
    INSERT INTO marks VALUES (1, 2), (1, 2), (2, 1), (NULL, 3);
"""
TABLES = ("items", "marks", "blank")


def random_statement(random: Random) -> str:
    number, second, key = random.randint(0, 3), random.randint(0, 3), random.randint(1, 9)
    return random.choice(
        [
            f"UPDATE items SET stock = stock + {number} WHERE k <= {second}",
            f"UPDATE items SET price = price * {random.choice(['2', '1.00000000001', '1.5'])} WHERE stock >= {number}",
            f"UPDATE items SET name = '{random.choice(['fig', 'FIG', 'kiwi'])}' WHERE k = {key}",
            f"UPDATE items SET name = name, stock = stock WHERE k = {key}",
            f"DELETE FROM items WHERE stock = {number}",
            f"DELETE FROM marks WHERE z = {number}",
            f"UPDATE marks SET x = y, y = x WHERE x > {number}",
            f"INSERT INTO marks VALUES ({number}, {second})",
            f"INSERT INTO marks SELECT y, x FROM marks WHERE x <> {number}",
            f"INSERT INTO marks (y, x) VALUES ({number}, {second})",
            f"INSERT INTO items (k, name, stock) VALUES ({key + 10}, 'new', {number})",
            f"INSERT INTO blank (a, b) VALUES ({number}, {second})",
            f"INSERT INTO blank (b, a) VALUES ({number}, {second})",
            f"INSERT INTO blank SELECT k, stock, name FROM items WHERE k < {number}",
            f"DELETE FROM blank WHERE a = {number}",
        ]
    )


def random_pair(random: Random) -> tuple[str, str]:
    """Two scripts, the second one often the first one with its statements in another order, or with one more."""
    gold = [random_statement(random) for _ in range(random.randint(1, 4))]
    predicted = list(gold)
    match random.randint(0, 4):
        case 0:
            random.shuffle(predicted)
        case 1:
            predicted[random.randrange(len(predicted))] = random_statement(random)
        case 2:
            predicted.append(random_statement(random))
        case 3:
            predicted.append(
                random.choice(["UPDATE items SET price = price * 1.00000000001", "DELETE FROM blank WHERE a > 9"])
            )
        case _:
            predicted = [statement.replace("INTO blank (a, b)", "INTO blank (b, a)") for statement in predicted]
    return "; ".join(gold), ";\n".join(predicted)


def state(connection, script: str, error: type[Exception]):
    """All rows of all tables after a script, or None where it fails with the driver's error; floats with 6 digits."""
    try:
        for statement in script.split(";"):
            connection.execute(statement)
        tables = [connection.execute(f"SELECT * FROM {table}").fetchall() for table in TABLES]
    except error:
        return None
    return [
        Counter(tuple(float(f"{cell:.6g}") if isinstance(cell, float) else cell for cell in row) for row in rows)
        for rows in tables
    ]
