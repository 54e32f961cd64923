"""A suite of 300 cases about a shop, and the recorded answers of two systems to it: `write(folder)` writes all.

Each question comes from a family, whose gold and wrong queries differ in a way that systems get wrong; which question
gets which answer depends on its number alone.
"""

# ruff: noqa: S608 - all that the statements are made of stands here
from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path

CITIES = ("Bergen", "Como", "Delft", "Graz", "Lund", "Nîmes", "Turku", "Vigo", "Zadar", "Brno")
CATEGORIES = ("tea", "coffee", "spices", "chocolate", "honey")
MONTHS = tuple(f"2025-{month:02}" for month in range(1, 11))
STATES = ("open", "shipped", "returned")
SETTINGS = """\
report_rows: 8
gates:
  - {metric: valid_query, where: {kind: sql}, min: 0.98}
  - {no_regression: {metric: execution_accuracy}}
  - {metric: execution_accuracy, where: {difficulty: hard}, min: 0.6}
  - {metric: pass_rate, min: 0.75}
  - {max_regressions: 5}
"""


@dataclass(frozen=True)
class Family:
    """Questions of one form: of the wrong queries, the older system gives the first `old` of 100, the newer `new`."""

    name: str
    difficulty: str
    question: str
    gold: str
    wrong: str
    values: tuple[Mapping[str, str], ...]
    old: int
    new: int


def combined(**values: tuple[str, ...]) -> tuple[Mapping[str, str], ...]:
    """Return every combination of the values as one mapping."""
    return tuple(dict(zip(values, each, strict=True)) for each in product(*values.values()))


SQL = (
    Family(
        "customers-in",
        "easy",
        "How many customers live in {city}?",
        "SELECT count(*) FROM customer WHERE city = '{city}'",
        "SELECT count(*) FROM customer WHERE town = '{city}'",
        combined(city=CITIES),
        0,
        20,
    ),
    Family(
        "orders-of-month",
        "easy",
        "How many orders were placed in {month} that are {state}?",
        "SELECT count(*) FROM orders WHERE ordered_on LIKE '{month}-%' AND state = '{state}'",
        "SELECT count(*) FROM orders WHERE ordered_on LIKE '{month}-%'",
        combined(month=MONTHS, state=STATES),
        13,
        27,
    ),
    Family(
        "orders-per-customer",
        "medium",
        "How many orders has each customer in {city} placed, including those without any?",
        "SELECT c.name, count(o.id) FROM customer c LEFT JOIN orders o ON o.customer_id = c.id"
        " WHERE c.city = '{city}' GROUP BY c.id, c.name",
        "SELECT c.name, count(o.id) FROM customer c JOIN orders o ON o.customer_id = c.id"
        " WHERE c.city = '{city}' GROUP BY c.id, c.name",
        combined(city=CITIES),
        20,
        80,
    ),
    Family(
        "dearest-product",
        "medium",
        "Which {category} costs more than {price} euros?",
        "SELECT name, price FROM product WHERE category = '{category}' AND price > {price} ORDER BY price DESC",
        "SELECT name, price FROM product WHERE category = '{category}' AND price >= {price} ORDER BY price DESC",
        combined(category=CATEGORIES, price=("4", "6", "8", "10", "12", "14")),
        20,
        20,
    ),
    Family(
        "mean-basket",
        "medium",
        "What is the mean value of a basket in {month}?",
        "SELECT round(avg(total), 2) FROM (SELECT sum(i.quantity * i.price) AS total FROM orders o"
        " JOIN item i ON i.order_id = o.id WHERE o.ordered_on LIKE '{month}-%' GROUP BY o.id)",
        "SELECT round(avg(i.quantity * i.price), 2) FROM orders o JOIN item i ON i.order_id = o.id"
        " WHERE o.ordered_on LIKE '{month}-%'",
        combined(month=MONTHS),
        30,
        30,
    ),
    Family(
        "top-customers",
        "hard",
        "Which three customers in {city} spent the most on {category}?",
        "SELECT c.name, sum(i.quantity * i.price) AS spent FROM customer c JOIN orders o ON o.customer_id = c.id"
        " JOIN item i ON i.order_id = o.id JOIN product p ON p.id = i.product_id"
        " WHERE c.city = '{city}' AND p.category = '{category}' AND o.state <> 'returned'"
        " GROUP BY c.id ORDER BY spent DESC, c.name LIMIT 3",
        "SELECT c.name, sum(i.quantity * i.price) AS spent FROM customer c JOIN orders o ON o.customer_id = c.id"
        " JOIN item i ON i.order_id = o.id JOIN product p ON p.id = i.product_id"
        " WHERE c.city = '{city}' AND p.category = '{category}'"
        " GROUP BY c.id ORDER BY spent DESC, c.name LIMIT 3",
        combined(city=CITIES, category=CATEGORIES),
        22,
        32,
    ),
    Family(
        "latest-orders",
        "hard",
        "What are the {n} latest orders from {city}?",
        "SELECT o.id, o.ordered_on FROM orders o JOIN customer c ON c.id = o.customer_id WHERE c.city = '{city}'"
        " ORDER BY o.ordered_on DESC LIMIT {n}",
        "SELECT o.id, o.ordered_on FROM orders o JOIN customer c ON c.id = o.customer_id WHERE c.city = '{city}'"
        " ORDER BY o.ordered_on LIMIT {n}",
        combined(city=CITIES, n=("3", "5", "10")),
        10,
        7,
    ),
    Family(
        "never-ordered",
        "hard",
        "Which {category} was never ordered from {city}?",
        "SELECT name FROM product WHERE category = '{category}' AND id NOT IN (SELECT i.product_id FROM item i"
        " JOIN orders o ON o.id = i.order_id JOIN customer c ON c.id = o.customer_id WHERE c.city = '{city}')",
        "SELECT name FROM product WHERE category = '{category}' AND id NOT IN (SELECT i.product_id FROM item i"
        " JOIN orders o ON o.id = i.order_id JOIN customer c ON c.id = o.customer_id WHERE c.city = '{city}'",
        combined(city=CITIES, category=CATEGORIES),
        4,
        10,
    ),
)
SEARCHES = Family(
    "search",
    "",
    "Find {category} for less than {price} euros from {city}",
    '{{"find": "{category}", "price": {{"max": {price}}}, "from": "{city}"}}',
    '{{"find": "{category}", "price": {{"max": "{price} EUR"}}}}',
    combined(category=CATEGORIES, city=CITIES, price=("5", "9"))[:80],
    10,
    14,
)


def _database() -> Iterator[str]:
    """Yield the statements that make the shop's database."""
    yield "CREATE TABLE customer (id INTEGER PRIMARY KEY, name TEXT, city TEXT, email TEXT);"
    yield "CREATE TABLE product (id INTEGER PRIMARY KEY, name TEXT, category TEXT, price REAL);"
    yield "CREATE TABLE orders (id INTEGER PRIMARY KEY, customer_id INTEGER, ordered_on TEXT, state TEXT);"
    yield "CREATE TABLE item (order_id INTEGER, product_id INTEGER, quantity INTEGER, price REAL);"
    names = ("Ada", "Bo", "Cem", "Dana", "Eve", "Finn", "Gita", "Hugo", "Ines", "Jan", "Kaya", "Leo", "Mina")
    families = ("Okafor", "Lind", "Rossi", "Novak", "Silva", "Berg", "Haddad", "Moreau", "Sato", "Weiss", "Kaur")
    for n in range(130):
        email = f"'{names[n % 13].lower()}{n}@example.org'" if n % 7 else "NULL"
        city = CITIES[n * 7 % 10]
        yield f"INSERT INTO customer VALUES ({n}, '{names[n % 13]} {families[n % 11]}', '{city}', {email});"
    for n in range(60):
        category = CATEGORIES[n % 5]
        yield f"INSERT INTO product VALUES ({n}, '{category} no. {n // 5 + 1}', '{category}', {2 + n * 7 % 15});"
    for n in range(620):
        customer = n * n * 3 % 113
        day = f"{MONTHS[n * 11 % 10]}-{n % 28 + 1:02}"
        yield f"INSERT INTO orders VALUES ({n}, {customer}, '{day}', '{STATES[n * n % 7 % 3]}');"
        for k in range(n % 3 + 1):
            product_id = (n * 13 + k * 29) % 57
            yield f"INSERT INTO item VALUES ({n}, {product_id}, {(n + k) % 4 + 1}, {2 + product_id * 7 % 15});"


def write(folder: Path) -> None:
    """Write the suite, its database, and the answers of both systems as `old.jsonl` and `new.jsonl`."""
    folder.mkdir()
    (folder / "shop.sql").write_text("\n".join(_database()), encoding="utf-8")
    (folder / "queryeval.yaml").write_text(SETTINGS, encoding="utf-8")
    answers: dict[str, list[str]] = {"old": [], "new": []}
    cases: list[dict[str, object]] = []
    searches: list[dict[str, object]] = []
    for family in (*SQL, SEARCHES):
        for number, values in enumerate(family.values):
            ident = f"{family.name}-{number + 1}"
            case: dict[str, object] = {"id": ident, "question": family.question.format(**values)}
            case["gold"] = family.gold.format(**values)
            if family.difficulty:
                case |= {"difficulty": family.difficulty, "tags": [family.name]}
            (cases if family.difficulty else searches).append(case)
            for name, share in (("old", family.old), ("new", family.new)):
                # Spread over the family: other numbers for each system, with some in common.
                is_wrong = (number * 37 + (11 if name == "old" else 0)) % 100 < share
                query = (family.wrong if is_wrong else family.gold).format(**values)
                seconds = round(0.4 + (number * 53 % 97) / 40 + 0.8 * (family.difficulty == "hard"), 2)
                told = {"id": ident, "predicted": query, "seconds": seconds, "tokens": 180 + len(query)}
                answers[name].append(json.dumps(told, ensure_ascii=False))
    for name, lines in answers.items():
        (folder / f"{name}.jsonl").write_text("\n".join(lines), encoding="utf-8")
    suites: dict[str, dict[str, object]] = {
        "shop": {
            "kind": "sql",
            "source": {"sqlite": {"script": "shop.sql"}},
            "metrics": ["execution_accuracy", "soft_f1", "row_matching_f1", "valid_query"],
            "cases": cases,
        },
        "searches": {"kind": "json", "metrics": ["json_equal", "path_f1", "valid_query"], "cases": searches},
    }
    for name, suite in suites.items():
        text = json.dumps(suite, ensure_ascii=False, indent=1)
        (folder / f"{name}.queryeval.yaml").write_text(text, encoding="utf-8")
