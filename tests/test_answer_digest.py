"""Digests of answers: the same for answers that are the same, on each machine, and different otherwise."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from random import Random

import pytest

from pytest_queryeval.core.answer_json import answer_digest  # white box: which cells differ between machines only
from pytest_queryeval.core.json_value import JsonAnswer
from pytest_queryeval.core.table import IRI, BlankNode, Literal, Table, TripleTerm

XSD = "http://www.w3.org/2001/XMLSchema#"
WINTER = timezone(timedelta(hours=1))


def digest(*rows, columns=None, **options):
    names = columns or tuple(f"c{n}" for n in range(len(rows[0]) if rows else 1))
    return answer_digest([Table(columns=names, rows=list(rows))], **options)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (0.1 + 0.2, 0.3),
        (1.0, 1),
        (-0.0, 0),
        (Decimal("1.10"), 1.1),
        (Decimal("2"), 2),
        (123456789.123, 123456789.12300001),
        (BlankNode("b7"), BlankNode("genid-9")),
        (datetime(2024, 1, 1, 13, tzinfo=WINTER), datetime(2024, 1, 1, 12, tzinfo=UTC)),
        (Literal("0.30000000000000004", f"{XSD}double"), Literal("0.3", f"{XSD}double")),
        (TripleTerm(BlankNode("a"), IRI("p"), 0.1 + 0.2), TripleTerm(BlankNode("b"), IRI("p"), 0.3)),
        ([1, {"b": 1, "a": 2}], [1, {"a": 2, "b": 1}]),
        (math.nan, -math.nan),
    ],
)
def test_cells_that_differ_between_machines_only_have_one_digest(first, second):
    assert digest((first,)) == digest((second,))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (1, "1"),
        (1, 2),
        (None, ""),
        (None, "None"),
        (b"a", "a"),
        (0.1, 0.1000001),
        (10**15, 10**15 + 1),
        (math.inf, -math.inf),
        (math.nan, None),
        ("a", "A"),
        ("a", "a "),
        ("\ud800", "\ud801"),
        (date(2024, 1, 1), date(2024, 1, 2)),
        (IRI("a"), Literal("a")),
        (Literal("a", "", "en"), Literal("a", "", "de")),
        (Literal("1", f"{XSD}integer"), Literal("1")),
        (Literal("2024-01-01", f"{XSD}date"), Literal("2024-01-02", f"{XSD}date")),
        (Decimal("1E+400"), 1),
    ],
)
def test_cells_that_differ_have_different_digests(first, second):
    assert digest((first,)) != digest((second,))


def test_the_order_of_rows_counts_only_where_it_is_asked_for():
    rows = (1, "a"), (2, "b"), (2, "b")

    assert digest(*rows) == digest(*rows[::-1])
    assert digest(*rows, in_order=True) != digest(*rows[::-1], in_order=True)


def test_how_often_a_row_occurs_counts_and_the_names_of_columns_do_not():
    assert digest((1,), (1,)) != digest((1,))
    assert digest((1,), columns=("count(*)",)) == digest((1,), columns=("count_star()",))
    assert digest(columns=("a",)) != digest(columns=("a", "b"))
    assert digest(("a", "b")) != digest(("a",), ("b",))


def test_all_golds_of_a_case_count_in_their_order():
    first, second = Table(columns=("a",), rows=[(1,)]), Table(columns=("a",), rows=[(2,)])

    assert len({answer_digest(answers) for answers in ([], [first], [first, second], [second, first])}) == 4


def test_json_counts_without_the_order_of_keys():
    assert answer_digest([JsonAnswer({"a": 1, "b": [1, 2]})]) == answer_digest([JsonAnswer({"b": [1, 2], "a": 1})])
    assert answer_digest([JsonAnswer([1, 2])]) != answer_digest([JsonAnswer([2, 1])])


def test_a_digest_is_the_same_in_all_versions():
    row = 1, 0.1, "é", None, b"\x00", True, Decimal("2.50"), date(2024, 2, 29), IRI("http://x/")

    assert digest(row, row) == "334f52ab76ad85b9"


def test_random_tables_keep_their_digest_in_any_order_and_lose_it_with_a_cell():
    random = Random(7)
    makers = (lambda: random.randrange(9), random.random, lambda: random.choice("ab"), lambda: None)
    for _ in range(300):
        width = random.randrange(1, 4)
        rows = [tuple(random.choice(makers)() for _ in range(width)) for _ in range(random.randrange(1, 8))]
        shuffled = random.sample(rows, len(rows))
        changed = [*rows[1:], (*rows[0][1:], "changed")]

        assert digest(*rows) == digest(*shuffled)
        assert digest(*rows) != digest(*changed)
