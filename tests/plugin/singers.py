"""A database of three singers, and the cases and settings that most tests of the plugin are made of."""

from __future__ import annotations

from typing import Any

SCRIPT = """
CREATE TABLE singer (name TEXT, country TEXT, age INTEGER);
INSERT INTO singer VALUES ('Ana', 'FR', 30), ('Bo', 'DE', 40), ('Cy', 'FR', 50);
"""
GOLD = "SELECT country, count(*) FROM singer GROUP BY country"
WRONG = "SELECT country, 1 FROM singer GROUP BY country"
INVALID = "SELECT nope FROM singer"
EMPTY = "SELECT name FROM singer WHERE age > 100"
ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
SETTINGS = {"kind": "sql", "source": {"sqlite": {"script": "singers.sql"}}}
FIRST_LINE = len(SETTINGS) + 2  # of a suite's first case


def case(id_: str = "good", predicted: str = GOLD, **more: Any) -> dict[str, Any]:
    form = {} if {"gold_any", "gold_table", "gold_file"} & more.keys() else {"gold": GOLD}
    return {"id": id_, **form, "predicted": predicted, **more}


def unpredicted(id_: str, **more: Any) -> dict[str, Any]:
    return {"id": id_, "question": "How many?", "gold": GOLD, **more}
