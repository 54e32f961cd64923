"""Hints where only the form of an answer differs: each is what makes the case pass, and no other answer gets one."""

import sqlite3
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal

import pytest
from samples import answer, make_case

from pytest_queryeval import evaluate
from pytest_queryeval.core.model import QueryOrAnswer, Source
from pytest_queryeval.core.table import Policy, Table

TO_CASE = "to the case"
# By kind: gold, predicted, and what compare has to say; None where the query has to change.
FORMS = [
    ("rounding", answer(("a", 3.14159), ("b", 2.71828)), answer(("a", 3.14), ("b", 2.72)), {"numbers": {"abs": 0.005}}),
    ("rounding", answer((3.14,)), answer((3.14159,)), {"numbers": {"abs": 0.005}}),
    ("rounding", answer(("a", 2.5), ("b", 1.25)), answer(("a", 3), ("b", 1)), {"numbers": {"abs": 0.5}}),
    ("rounding", answer(("a", 3.149)), answer(("a", 3.14)), {"numbers": {"abs": 0.01}}),
    ("rounding", answer((Decimal("1.2345"),)), answer((Decimal("1.23"),)), {"numbers": {"abs": 0.005}}),
    ("rounding", answer(("a", 2.718), ("b", 2.699)), answer(("a", 2.72), ("b", 2.7)), {"numbers": {"abs": 0.005}}),
    ("rounding", answer(("a", [2.718, 1])), answer(("a", [2.72, 1])), {"numbers": {"abs": 0.005}}),
    ("letter-case", answer((1, {"city": "Graz"})), answer((1, {"city": "GRAZ"})), {"case": "ignore"}),
    ("midnight", answer((1, [date(2024, 1, 2)])), answer((1, [datetime(2024, 1, 2)])), {"dates": "midnight"}),
    ("factor", answer(("a", 0.25), ("b", 0.5)), answer(("a", 25.0), ("b", 50.0)), None),
    ("factor", answer((12.5,)), answer((0.125,)), None),
    ("midnight", answer((date(2024, 1, 2), 1)), answer((datetime(2024, 1, 2), 1)), {"dates": "midnight"}),
    ("midnight", answer(("2024-01-02 00:00:00", 1)), answer(("2024-01-02", 1)), {"dates": "midnight"}),
    ("null-text", answer((1, None), (2, "x")), answer((1, "None"), (2, "x")), None),
    ("null-text", answer((1, "null"), (2, "x")), answer((1, None), (2, "x")), None),
    ("letter-case", answer(("Graz",), ("Linz",)), answer(("GRAZ",), ("LINZ",)), {"case": "ignore"}),
    ("blanks", answer(("Graz", 1)), answer((" Graz ", 1)), {"whitespace": "ignore"}),
    ("text-number", answer((3, "a")), answer(("3", "a")), {"text_numbers": True}),
    ("duplicates", answer((1,), (1,)), answer((1,)), {"duplicates": "ignore"}),
    (
        "duplicates",
        answer(("FR", 1), ("FR", 1), ("JP", 1)),
        answer(("FR", 1), ("JP", 1), ("JP", 1)),
        {"duplicates": "ignore"},
    ),
    ("extra-columns", answer(("x",), ("y",)), answer((1, "x"), (2, "y")), {"extra_columns": "allow"}),
    ("missing-column", answer((7, "x"), (8, "x")), answer(("x",), ("x",)), {"gold_columns": ["b"]}),
    ("joined-columns", answer(("Ann", "Lee", 1), ("Bob", "Ray", 2)), answer((1, "Ann Lee"), (2, "Bob Ray")), None),
    ("joined-columns", answer(("Lee, Ann",), ("Ray, Bob",)), answer(("Ann", "Lee"), ("Bob", "Ray")), None),
]


def reported(gold, predicted, **compare):
    case = make_case(golds=(gold,), predicted=predicted)
    policy = replace(case.settings.policy, **compare)
    (entry,) = evaluate([replace(case, settings=replace(case.settings, policy=policy))])["cases"]
    return entry


@pytest.mark.parametrize(("kind", "gold", "predicted", "compare"), FORMS)
def test_a_hint_is_what_makes_the_case_pass(kind, gold, predicted, compare):
    entry = reported(gold, predicted)

    (hint,) = [hint for hint in entry["hints"] if hint["kind"] == kind][:1]
    assert (entry["outcome"], hint["compare"]) == ("failed", compare)
    if compare is not None:
        assert hint["text"].endswith(TO_CASE)
        fields = {"abs": compare["numbers"]["abs"]} if kind == "rounding" else compare
        if kind == "missing-column":
            fields = {"gold_columns": tuple(compare["gold_columns"]), "extra_columns": "allow"}
        assert reported(gold, predicted, **fields)["outcome"] == "passed"


@pytest.mark.parametrize(
    ("gold", "predicted", "compare"),
    [
        ("SELECT name FROM p ORDER BY age LIMIT 1", "SELECT name, age FROM p WHERE id = 2", {"extra_columns": "allow"}),
        ("SELECT name FROM p ORDER BY age LIMIT 1", "SELECT upper(name) FROM p WHERE id = 2", {"case": "ignore"}),
        ("SELECT name FROM p ORDER BY age LIMIT 1", "SELECT name, age FROM p WHERE id = 3", None),
    ],
)
def test_a_hint_counts_every_row_that_ties_at_a_limit_as_right(gold, predicted, compare, tmp_path):
    with sqlite3.connect(tmp_path / "p.db") as database:
        database.executescript(
            "CREATE TABLE p (id, name, age); INSERT INTO p VALUES (1, 'Bo', 3), (2, 'Di', 3), (3, 'Al', 5)"
        )
    source = Source(name="p", engine="sqlite", settings={"path": "p.db"}, folder=tmp_path)

    def outcome(**policy):
        case = make_case(source=source, golds=(QueryOrAnswer(query=gold),), predicted=QueryOrAnswer(query=predicted))
        case = replace(case, settings=replace(case.settings, policy=Policy(**policy)))
        (entry,) = evaluate([case])["cases"]
        return entry

    entry = outcome()

    assert (entry["outcome"], [hint["compare"] for hint in entry.get("hints", ())]) == (
        "failed",
        [compare] if compare else [],
    )
    assert compare is None or outcome(**compare)["outcome"] == "passed"


def test_cells_of_any_sort_get_no_hint():
    for cell in (10**5000, b"\x00", float("inf"), Decimal("1E+400"), "\ud800", (1, (2,)), None):
        assert "hints" not in reported(answer((cell, 1)), answer(("x",)))


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_no_hint_is_given_where_something_else_differs_too(form):
    kind, gold, predicted, _ = form

    def wider(answer, cell):
        table = answer.answer
        return QueryOrAnswer(answer=Table(columns=(*table.columns, "z"), rows=[(*row, cell) for row in table.rows]))

    kinds = {hint["kind"] for hint in reported(wider(gold, b"one"), wider(predicted, b"two")).get("hints", ())}
    assert kind not in kinds or kind == "missing-column"
