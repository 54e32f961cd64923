"""A suite of 12 questions about a fruit shop, of whose golds some are wrong, and four systems that answer them.

`write(folder)` writes the suite, and the answers of each system, by which `make.py` draws the page of a review.
"""

# ruff: noqa: S608 - all that the statements are made of stands here
from __future__ import annotations

import json
from pathlib import Path

FRUIT = ("apple", "pear", "plum", "fig", "kiwi", "lime", "mango", "melon", "peach", "grape")
CITIES = (("Bonn", "Germany"), ("Lyon", "France"), ("Oslo", "Norway"), ("Köln", "Germany"))
NAMES = ("Ada", "Ben", "Cleo", "Dora", "Emil", "Fay", "Gus", "Hana", "Ivo", "Jana", "Kai", "Lea")
TABLES = """\
CREATE TABLE customer (id INTEGER PRIMARY KEY, name TEXT NOT NULL, city TEXT, country TEXT);
CREATE TABLE product (id INTEGER PRIMARY KEY, name TEXT NOT NULL, price REAL);
CREATE TABLE purchase (
  customer INTEGER REFERENCES customer (id),
  product INTEGER REFERENCES product (id),
  amount INTEGER,
  day TEXT
);
"""
BOUGHT = "FROM product p JOIN purchase b ON b.product = p.id"
REVENUE = f"SELECT p.name, sum(p.price * b.amount) AS revenue {BOUGHT} GROUP BY p.id, p.name"
# Each question with gold, and the answers of the systems; fewer answers than systems: the last one is that of the rest.
QUESTIONS = (
    (
        "What is the revenue of each product?",
        f"SELECT p.name, sum(p.price) {BOUGHT} GROUP BY p.id",
        (f"{REVENUE} ORDER BY revenue DESC", REVENUE, f"SELECT p.name, p.price * b.amount {BOUGHT}", REVENUE),
    ),
    (
        "Which products cost most?",
        "SELECT name FROM product ORDER BY price DESC LIMIT 1",
        (
            "SELECT name FROM product WHERE price = (SELECT max(price) FROM product)",
            "SELECT name, price FROM product WHERE price = (SELECT max(price) FROM product)",
            "SELECT name FROM product WHERE price >= ALL (SELECT price FROM product)",
            "SELECT name FROM product WHERE price IN (SELECT max(price) FROM product)",
        ),
    ),
    (
        "How many customers live in Germany?",
        "SELECT count(*) FROM customer WHERE country = 'germany'",
        ("SELECT count(*) FROM customer WHERE country = 'Germany'",),
    ),
    (
        "Which products were bought in pieces of more than 10?",
        f"SELECT DISTINCT p.name {BOUGHT} WHERE b.amount >= 10",
        (f"SELECT DISTINCT p.name {BOUGHT} WHERE b.amount > 10", f"SELECT p.name {BOUGHT} WHERE b.amount > 10"),
    ),
    *(
        (
            f"How often was {fruit} bought?",
            f"SELECT count(*) FROM purchase WHERE product = {place}",
            (
                f"SELECT count(*) {BOUGHT} WHERE p.name = '{fruit}'",
                f"SELECT sum(b.amount) {BOUGHT} WHERE p.name = '{fruit}'",
                f"SELECT count(b.day) {BOUGHT} WHERE p.name = '{fruit}'",
            ),
        )
        for place, fruit in enumerate(FRUIT[:8], 1)
    ),
)
SYSTEMS = ("atlas", "breeze", "cedar", "delta")


def write(folder: Path) -> None:
    """Write the suite without answers to a folder, and the answers of each system next to it."""
    folder.mkdir()
    rows = [f"INSERT INTO product VALUES ({n}, '{name}', {1 + n % 4});" for n, name in enumerate(FRUIT, 1)]
    for n, name in enumerate(NAMES, 1):
        city, country = CITIES[n % len(CITIES)]
        rows.append(f"INSERT INTO customer VALUES ({n}, '{name}', '{city}', '{country}');")
    for n in range(80):
        day = f"2025-{1 + n % 12:02}-{1 + n % 28:02}"
        rows.append(f"INSERT INTO purchase VALUES ({1 + n % 12}, {1 + n * 7 % 10}, {1 + n * 5 % 14}, '{day}');")
    (folder / "shop.sql").write_text("\n".join([TABLES, *rows, ""]), encoding="utf-8")
    cases = [
        f"  - {json.dumps({'id': f'q{n}', 'question': question, 'gold': gold}, ensure_ascii=False)}\n"
        for n, (question, gold, _) in enumerate(QUESTIONS, 1)
    ]
    head = "kind: sql\nsource: {sqlite: {script: shop.sql}}\nreviews: reviews/*.jsonl\ncases:\n"
    (folder / "shop.queryeval.yaml").write_text(f"{head}{''.join(cases)}", encoding="utf-8")
    for place, system in enumerate(SYSTEMS):
        lines = [
            json.dumps({"id": f"q{n}", "predicted": answers[min(place, len(answers) - 1)]})
            for n, (_, _, answers) in enumerate(QUESTIONS, 1)
        ]
        (folder / f"{system}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
