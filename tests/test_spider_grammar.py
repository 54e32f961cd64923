"""Spider's own exact set match: what its grammar reads, what it takes for equal, and its table by hardness."""

import json
import sqlite3
from typing import get_args

import pytest

from pytest_queryeval import METRICS, evaluate, load_cases
from pytest_queryeval.core.case_report import ComponentName
from pytest_queryeval.core.db_schema import Schema

SHOP = Schema(
    tables={
        "shop": ("id", "name", "city", "opened"),
        "sale": ("number", "shop_id", "price", "discount", "count"),
        "visit": ("shop_id", "guests"),
    },
    foreign_keys=((("sale", "shop_id"), ("shop", "id")), (("visit", "shop_id"), ("shop", "id"))),
)
NO_SCHEMA = Schema()
GOLD = "SELECT name FROM shop"
NESTED = f"{GOLD} WHERE id IN ("


def compared(gold, predicted, schema=SHOP):
    return METRICS["exact_set_match_spider"].function(gold, predicted, schema=schema)


def rejection(query, schema=SHOP):
    return compared(GOLD, query, schema).details["spider"].get("rejected", "")


@pytest.mark.parametrize("schema", [SHOP, NO_SCHEMA], ids=["with a schema", "without"])
@pytest.mark.parametrize(
    "query",
    [
        "SELECT T1.name FROM shop AS T1 JOIN sale AS T2 ON T1.id = T2.shop_id WHERE T2.price BETWEEN 1 AND 5",
        "SELECT max(price - discount) FROM sale GROUP BY shop_id HAVING count(*) > 3 ORDER BY avg(price) DESC LIMIT 3",
        f"{GOLD} WHERE id NOT IN (SELECT shop_id FROM sale) UNION SELECT city FROM shop",
        "(SELECT name FROM shop) EXCEPT (SELECT city FROM shop)",
        "SELECT count(*) FROM (SELECT DISTINCT city FROM shop)",
        f"{GOLD} WHERE opened > 1990 LIMIT 1 OFFSET 2",
        f"{GOLD}; SELECT city FROM shop",
        "SELECT name,city FROM shop WHERE city = 'Bad Aibling'",
        "SELECT price FROM sale WHERE Price>3 AND price >= 3 AND price ! = 3",
        f"{GOLD} LIMIT 1. It",
        f"{GOLD} WHERE",
        f"{NESTED * 49}SELECT id FROM shop{')' * 49}",
        " UNION ".join([GOLD] * 50),
    ],
)
def test_what_the_grammar_knows_is_read_and_matches_itself(query, schema):
    assert compared(query, f"{query} ", schema).value == 1.0
    assert rejection(query, schema) == ""


def rejected(*rows, schema=SHOP):
    return [(schema, *row) for row in rows]


@pytest.mark.parametrize(
    ("schema", "query", "reason"),
    [
        *rejected(
            ("SELECT 1", "no FROM"),
            ("i cannot", "no FROM"),
            ("DELETE FROM shop", "'delete' instead of 'select'"),
            ("SELECT colour FROM shop", "no column 'colour'"),
            ("SELECT name FROM", "no column 'name'"),
            ("SELECT name FROM store", "no table 'store'"),
            ("SELECT count(*) AS n FROM shop", "no column 'as'"),
            ("SELECT s.name FROM shop s", "no table 's'"),
            ("SELECT name FROM shop INNER JOIN sale", "no table 'inner'"),
            ("SELECT name FROM shop, sale", "no table ','"),
            ("SELECT sale.name FROM shop AS sale", "the alias 'sale' is a table's name"),
            ("SELECT T1.name FROM shop AS T1 UNION SELECT T1.price FROM sale AS T1", "no column 't1.name'"),
            ("SELECT `name` FROM shop", "no column '`'"),
            (f"{GOLD} -- all", "no table '--'"),
            (f"{GOLD} WHERE city = 'Bo's'", "a quote is not closed"),
            (f"{GOLD} WHERE city='Ulm'", "no column 'city=__text_0__'"),
            (f"{GOLD} WHERE opened <> 3", "no column '>'"),
            (f"{GOLD} WHERE opened=3", "no column 'opened=3'"),
            (f"{GOLD} WHERE opened>=3", "no column '=3'"),
            (f"{GOLD} WHERE opened IS NULL", "no column 'null'"),
            (f"{GOLD} WHERE opened IN (1, 2)", "',' instead of ')'"),
            (f"{GOLD} WHERE (opened > 3 OR opened < 1)", "'>' instead of ')'"),
            (f"{GOLD} WHERE NOT opened > 3", "no column 'not'"),
            (f"{GOLD} WHERE opened", "the end is not an operator of a condition"),
            (f"{GOLD} WHERE opened > (id)", "an aggregate, a list or a column in parentheses as a value"),
            (
                "SELECT price FROM sale WHERE price > count",
                "an aggregate, a list or a column in parentheses as a value",
            ),
            (f"{GOLD} WHERE opened =", "a condition without a value"),
            (f"{GOLD} LIMIT few", "LIMIT without a whole number"),
            (f"{GOLD} LIMIT 3,5", "LIMIT without a whole number"),
            (f"{GOLD} LIMIT {'9' * 100_000}", "LIMIT without a whole number"),
            (f"{GOLD} UNION ALL SELECT city FROM shop", "'all' instead of 'select'"),
            (f"{GOLD} WHERE id = 1 city = 'a' and id = 3", "conditions without a connector"),
            (f"{GOLD} LIMIT 1 as", "nothing after AS"),
            ("SELECT a\x1b[31mb FROM shop", "no column 'a\\x1b'"),
            (f"SELECT x{'y' * 100} FROM shop", f"no column 'x{'y' * 38}…'"),
            (f"{NESTED * 50}SELECT id FROM shop{')' * 50}", "more than 50 queries within each other"),
            (" UNION ".join([GOLD] * 51), "more than 50 queries within each other"),
        ),
        *rejected(
            ("SELECT s.name FROM shop s", "'s' after the name 'shop'"),
            ("SELECT round(price) FROM sale", "'(' after the name 'round'"),
            ("SELECT name n FROM shop", "'n' after the name 'name'"),
            ("SELECT name FROM shop LEFT JOIN sale", "'left' is not a name"),
            ("SELECT CASE WHEN price > 3 THEN 1 END FROM sale", "'case' is not a name"),
            ("SELECT price FROM sale WHERE price=3", "'price=3' is not a name"),
            ("SELECT shop.* FROM shop", "'.' is not a name"),
            (f"{NESTED * 50}SELECT id FROM shop{')' * 50}", "more than 50 queries within each other"),
            schema=NO_SCHEMA,
        ),
    ],
    ids=lambda value: value[:40] if isinstance(value, str) else "",
)
def test_what_the_grammar_does_not_know_is_rejected_with_a_reason(schema, query, reason):
    scores = compared(GOLD, query, schema)

    assert scores.value == 0.0
    assert scores.details["spider"]["rejected"] == reason
    assert compared(query, GOLD, schema).value is None
    assert compared(query, GOLD, schema).details == {
        "notes": [f"the published grammar does not read the gold query: {reason}"]
    }


T1 = "shop AS T1 JOIN sale AS T2"


@pytest.mark.parametrize(
    ("equal", "gold", "predicted"),
    [
        # values, DISTINCT and columns that foreign keys make equal make no difference
        (True, f"{GOLD} WHERE opened > 1990", "select name from shop where opened > 2000"),
        (True, "SELECT DISTINCT city FROM shop", "SELECT city FROM shop"),
        (True, "SELECT count(DISTINCT city) FROM shop", "SELECT count(city) FROM shop"),
        (True, f"{GOLD} WHERE id = 3", f"{GOLD} WHERE id = opened"),
        (True, f"SELECT T2.shop_id FROM {T1} ON T1.id = T2.shop_id", "SELECT shop.id FROM sale JOIN shop"),
        (
            True,
            f"{NESTED}SELECT shop_id FROM sale WHERE price > 3)",
            f"{NESTED}SELECT shop_id FROM sale WHERE price > 9)",
        ),
        (False, "SELECT id FROM shop", "SELECT shop_id FROM sale"),
        # nested queries and later queries of a set operation are compared more strictly
        (False, f"{NESTED}SELECT shop_id FROM sale)", f"{NESTED}SELECT DISTINCT shop_id FROM sale)"),
        (False, f"SELECT count(*) FROM ({GOLD} WHERE opened > 3)", f"SELECT count(*) FROM ({GOLD} WHERE opened > 4)"),
        (
            False,
            f"{GOLD} EXCEPT SELECT city FROM shop JOIN sale WHERE sale.shop_id > 1",
            f"{GOLD} EXCEPT SELECT city FROM shop JOIN sale WHERE shop.name > 1",
        ),
        (
            False,
            f"SELECT guests FROM visit UNION SELECT T1.id FROM {T1}",
            f"SELECT guests FROM visit UNION SELECT T2.shop_id FROM {T1}",
        ),
        # one direction counts for all of ORDER BY, and a bare column is one of the first table that has it
        (True, f"{GOLD} ORDER BY city DESC, name ASC", f"{GOLD} ORDER BY city, name"),
        (False, f"{GOLD} ORDER BY city ASC, name DESC", f"{GOLD} ORDER BY city, name"),
        (True, "SELECT guests, shop_id FROM visit JOIN sale", "SELECT guests, visit.shop_id FROM visit JOIN sale"),
        # an alias counts in the whole text
        (True, "SELECT T1.name FROM shop AS T1 UNION SELECT T1.name FROM shop AS T1", f"{GOLD} UNION {GOLD}"),
        (True, "SELECT name city FROM shop sale", "SELECT name, city FROM shop JOIN sale"),
        (False, f"{GOLD} WHERE id = 1 AND city = 'a'", f"{GOLD} WHERE id = 1 OR city = 'a'"),
        (False, f"{GOLD} LIMIT 1", GOLD),
    ],
)
def test_the_published_verdict_with_a_schema(equal, gold, predicted):
    assert compared(gold, predicted).value == equal
    assert compared(gold, predicted).details["spider"]["exact"] is equal


@pytest.mark.parametrize(
    ("name", "gold", "predicted", "totals"),
    [
        ("select", "SELECT name, city FROM shop", "SELECT city FROM shop", [2, 1, 1]),
        ("group_no_having", f"{GOLD} GROUP BY name", f"{GOLD} GROUP BY city", [1, 1, 0]),
        ("group_no_having", "SELECT price FROM sale GROUP BY shop_id", f"{GOLD} GROUP BY id", [1, 1, 1]),
        ("group", f"{GOLD} GROUP BY name HAVING count(*) > 1", f"{GOLD} GROUP BY name", [1, 1, 0]),
        ("order", f"{GOLD} ORDER BY name LIMIT 1", f"{GOLD} ORDER BY name", [1, 1, 0]),
        # the totals of other connectors are swapped, as published
        ("and_or", f"{GOLD} WHERE id = 1 AND id = 2 OR id = 3", f"{GOLD} WHERE id = 1 AND id = 2", [1, 2, 0]),
        ("iuen", f"{GOLD} UNION {GOLD} UNION {GOLD}", f"{GOLD} UNION {GOLD}", [1, 1, 0]),
        ("keywords", f"{GOLD} WHERE id NOT IN ({GOLD})", f"{GOLD} WHERE id IN ({GOLD}) LIMIT 1", [3, 3, 2]),
    ],
)
def test_components_have_the_totals_of_both_sides_and_what_they_share(name, gold, predicted, totals):
    assert compared(gold, predicted).details["spider"]["components"][name] == totals


def test_without_a_schema_names_are_taken_as_they_are():
    gold = "SELECT T1.name FROM shop AS T1 JOIN sale ON T1.id = sale.shop_id WHERE price > 3"

    assert compared(gold, "SELECT shop.name FROM sale JOIN shop WHERE price > 1", NO_SCHEMA).value == 1.0
    assert compared(gold, "SELECT sale.name FROM sale JOIN shop WHERE price > 1", NO_SCHEMA).value == 0.0


@pytest.mark.parametrize(
    "query",
    [
        "(" * 10_000,
        "SELECT " + "(" * 10_000 + "name FROM shop",
        NESTED * 3_000,
        " UNION ".join([GOLD] * 4_000),
        "SELECT name FROM (" * 5_000,
        "'" * 100_001,
        "from " * 20_000,
        ". " * 50_000,
    ],
    ids=["brackets", "operand", "nested", "queries", "tables", "quotes", "froms", "periods"],
)
def test_hostile_text_is_rejected_in_one_short_line(query):
    reason = rejection(query)

    assert 0 < len(reason) < 100
    assert reason.isprintable()


TEXTS = [
    GOLD,
    "SELECT max(name) FROM shop",
    f"{GOLD} WHERE id = 1 OR id = 3",
    f"{GOLD} ORDER BY name LIMIT 1",
    "SELECT city, count(*) FROM shop GROUP BY city HAVING count(*) > 1",
    f"{GOLD} EXCEPT SELECT city FROM shop WHERE id > 3",
    "SELECT name, nothing FROM shop",
]
LEVELS = ("easy", "medium", "hard", "extra")


def level_of(pairs):
    """The scores of one level as SPEC's table has them, from the totals of components of its pairs."""

    def mean(values):
        return sum(values) / len(values) if values else 0.0

    def scores(name):
        totals = [spider["components"][name] for spider, _ in pairs]
        whole = [(gold, predicted, gold == predicted == shared) for gold, predicted, shared in totals]
        accuracy = mean([matched for _, predicted, matched in whole if predicted])
        recall = mean([matched for gold, _, matched in whole if gold])
        f1 = 2 * accuracy * recall / (accuracy + recall) if accuracy + recall else 1.0
        return pytest.approx({"accuracy": accuracy, "recall": recall, "f1": f1 if pairs else 0.0})

    return {
        "count": len(pairs),
        "exact_match": pytest.approx(mean([spider["exact"] for spider, _ in pairs])),
        "execution_accuracy": pytest.approx(mean([execution for _, execution in pairs])) if pairs else None,
        **{name: scores(name) for name in get_args(ComponentName)},
    }


def test_the_table_counts_components_all_or_nothing_by_the_hardness_of_gold(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    sqlite3.connect("a.db").executescript("create table shop (id, name, city, opened)").close()
    cases = [
        {"id": f"{number}-{other}", "gold": gold, "predicted": predicted, "allow_empty": True}
        for number, gold in enumerate(TEXTS[:-1])
        for other, predicted in enumerate(TEXTS)
        if (number + other) % 2 == 0 or number < 2
    ]
    metrics = ["exact_set_match_spider", "execution_accuracy"]
    suite = {"kind": "sql", "source": "a.db", "metrics": metrics, "thresholds": {}, "cases": cases}
    (tmp_path / "s.queryeval.yaml").write_text(json.dumps(suite))

    report = evaluate(load_cases("."))

    pairs = [(case["details"]["spider"], case["scores"]["execution_accuracy"]) for case in report["cases"]]
    by_level = {level: [pair for pair in pairs if pair[0]["hardness"] == level] for level in LEVELS}
    assert [level for level in LEVELS if not by_level[level]] == ["extra"]
    assert report["spider_table"] == {level: level_of(of) for level, of in (by_level | {"all": pairs}).items()}
