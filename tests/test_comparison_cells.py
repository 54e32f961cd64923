"""When two cells are equal: numbers, texts, dates, RDF terms, lists and mappings, under each policy."""

from __future__ import annotations

import math
import random
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from itertools import combinations, pairwise, product

import pytest
from table_oracle import XSD, cells_equal
from table_pairs import CELLS, NUMBERS, Pool

from pytest_queryeval.core.table import IRI, BlankNode, Literal, Policy, Table
from pytest_queryeval.metrics import METRICS

DEFAULT, EXACT, FOLDED = Policy(), Policy(rel=0, abs=0), Policy(case="ignore", whitespace="ignore")
SPARQL = Policy(text_numbers=True)
STRICT_TERMS, STRICT_DATES = Policy(text_numbers=True, rdf_terms="strict"), Policy(dates="strict")
NAN = float("nan")


def score(name, gold, predicted, policy=DEFAULT):
    value = METRICS[name].function(gold, predicted, policy=policy)
    return getattr(value, "value", value)


def column(*cells):
    return Table(columns=("n",), rows=[(cell,) for cell in cells])


def are_equal(x, y, policy=DEFAULT):
    """Whether two cells are equal, whichever is gold, alone and next to others, and for `soft_f1`."""
    verdicts = set()
    for gold, predicted in ((x, y), (y, x)):
        verdicts.add(score("execution_accuracy", column(gold), column(predicted), policy))
        others = column(7e30, gold, None, gold), column(predicted, None, predicted, 7e30)
        verdicts.add(score("execution_accuracy", *others, policy))
        rows = [Table(columns=("a", "b"), rows=[(b"same", cell)]) for cell in (gold, predicted)]
        verdicts |= {score("execution_accuracy", *rows, policy), 2 * score("soft_f1", *rows, policy) - 1}
    assert len(verdicts) == 1, (x, y, policy)
    return verdicts == {1.0}


POLICIES = {
    "default": DEFAULT,
    "exact": EXACT,
    "folded": FOLDED,
    "numbers in texts": SPARQL,
    "strict terms": STRICT_TERMS,
    "strict dates": STRICT_DATES,
    "midnight": Policy(dates="midnight"),
    "one": Policy(abs=1),
    "cents": Policy(abs=0.01),
    "cents alone": Policy(rel=0, abs=0.01),
    "relative": Policy(rel=0.1),
    "half": Policy(rel=0.5),
}


@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
def test_two_cells_are_equal_where_an_oracle_says_so(policy):
    pool, chance = Pool(CELLS, policy), random.Random(5)
    numbers = range(len(NUMBERS))
    near = [(i, j) for i, others in enumerate(pool.near) for j in others if i < j]
    for i, j in (*near, *(chance.choices(numbers, k=2) for _ in range(300)), *product(range(3), range(len(CELLS)))):
        x, y = pool.values[i], pool.values[j]
        verdict = score("execution_accuracy", column(x), column(y), policy) == 1.0
        assert verdict == cells_equal(x, y, policy), (x, y)


def typed(text, datatype):
    return Literal(text, f"{XSD}{datatype}")


def moment(text):
    return typed(text, "dateTime")


MOMENT = datetime(2024, 1, 1, 10, 30)
IN_UTC = MOMENT.replace(tzinfo=UTC)
IN_VIENNA = datetime(2024, 1, 1, 12, 30, tzinfo=timezone(timedelta(hours=2)))
# Cells of a line equal each other, except two different texts; cells of two lines that follow each other are different.
SAME_MOMENT = [
    [MOMENT, "2024-01-01 10:30:00", "2024-01-01T10:30:00", "2024-01-01T10:30", moment("2024-01-01T10:30:00.000")],
    [MOMENT.replace(microsecond=500_000), "2024-01-01 10:30:00.5", "2024-01-01T10:30:00.500000"],
    [MOMENT.replace(microsecond=50_000), "2024-01-01 10:30:00.05", moment("2024-01-01T10:30:00.0500000000")],
    [MOMENT.replace(second=1), "2024-01-01 10:30:01"],
    [" 2024-01-01 10:30:00", "2024-01-01 10:30:00.0000001", "2024-01-01 10:30:0", "2024-01-01  10:30:00"],
    [IN_UTC, IN_VIENNA, "2024-01-01T10:30:00Z", "2024-01-01 10:30:00+00:00", "2024-01-01 10:30:00+00"],
    [MOMENT, moment("2024-01-01T10:30:00")],
    [IN_VIENNA, "2024-01-01T12:30:00+02:00", "2024-01-01t12:30:00+0200", moment("2024-01-01T10:30:00z")],
    [moment("2024-01-01T10:30:00+02:00"), moment("2024-01-01T08:30:00Z"), "2024-01-01 03:30-05"],
    [IN_VIENNA, typed("2024-01-01T10:30:00Z", "dateTimeStamp"), moment("2024-01-01T04:59:59-05:30:01")],
    [datetime(2024, 1, 2), "2024-01-01T24:00:00", "2024-01-02 00:00", moment("2024-01-01T24:00:00.000")],
    [date(2024, 1, 2), "2024-01-02", typed("2024-01-02", "date")],
    [datetime(2024, 1, 1), "2024-01-01 00:00:00", moment("2024-01-01T00:00:00")],
    [date(2024, 1, 1), "2024-01-01", typed("2024-01-01", "date")],
    ["20240101"],
    [typed("2024-01-01", "date")],
    [typed("2024-01-01Z", "date"), typed("2024-01-01+00:00", "date")],
    [typed("2024-01-01+12:00", "date"), typed("2023-12-31-12:00", "date")],
    [typed("2024", "gYear")],
    [typed("2024", "integer")],
    [moment("2023-02-29T10:30:00")],
    [moment("2023-03-01T10:30:00")],
    [moment("-0044-03-15T00:00:00Z"), moment("-0044-03-15T01:00:00+01:00")],
    [moment("0044-03-15T00:00:00Z"), moment("0044-03-14T24:00:00Z")],
    [moment("12000-01-01T00:00:00Z"), moment("11999-12-31T24:00:00Z")],
    [time(10, 30), "10:30:00", "10:30", "10:30:00.0", typed("10:30:00", "time")],
    [time(10, 30, tzinfo=UTC), "12:30:00+02:00", typed("10:30:00Z", "time"), typed("12:30:00+02:00", "time")],
    [time(0, 0), "00:00", typed("24:00:00", "time"), typed("00:00:00.00", "time")],
    ["24:00:00"],
    [typed("24:00:01", "time"), "24:00:01"],
    [typed("00:00:01", "time")],
    [typed("12:24:00Z", "time"), typed("12:24:00+00:00", "time")],
    [typed("PT3600S", "duration"), typed("PT1H", "dayTimeDuration"), typed("PT60M", "duration"), "PT1H"],
    [typed("P1Y", "duration"), typed("P12M", "yearMonthDuration"), "P1Y"],
    [typed("P1DT0.50S", "duration"), typed("PT24H0.5S", "dayTimeDuration")],
    [typed("P1D", "duration"), "P1D", typed("PT1440M", "duration"), typed("PT23H59M60S", "duration")],
    [typed("-P1D", "duration"), "-PT24H"],
    [typed("-P0D", "duration"), typed("PT0S", "duration"), "P0Y"],
    [typed("P1M", "duration"), "P1M"],
    [typed("P30D", "duration"), "P30D"],
    ["P", "PT", "P1S", "P30DT"],
]
SAME_NESTED = [
    [[1], [1.0], [Decimal("1.0")], [True], "[1]", "[ 1 ]"],
    [["1"], '["1"]'],
    [[1, 2], [1, 2.0000001], "[1,2]"],
    ["[1, 2"],
    [[2, 1], "[2, 1]"],
    [[1, 2, 2]],
    [[], "[]"],
    [{}, "{}"],
    [[None], "[null]"],
    [[""]],
    [[0.1 + 0.2, "a"], [0.3, "a"]],
    [[0.3, "b"]],
    [[[1.0], [0.1 + 0.2]], [[1], [Decimal("0.3")]], "[[1], [0.3]]"],
    [[Decimal("12345678901234567.89")]],
    [[Decimal("12345678901234567.88")]],
    [[Decimal("0.333333")], [Decimal("0.3333333333")]],
    [[NAN], "[NaN]"],
    [["NaN"]],
    [[date(2024, 1, 1)], ["2024-01-01"], '["2024-01-01"]'],
    [[datetime(2024, 1, 1)], ["2024-01-01 00:00:00"]],
    [["2024-01-01"]],
    [["2024-01-01T00:00:00"]],
    [["2024-01-01 00:00:00"]],
    [[b"a"]],
    [["a"]],
    [{"a": 1, "b": [0.3]}, {"b": [0.1 + 0.2], "a": 1.0}, '{"b": [0.3], "a": 1}'],
    [{"b": 1, "a": [0.3]}],
    [{"A": 1, "b": [0.3]}],
    [{"a": None}],
    [{0.3: 1, 2.0: 2}, {2: 2, 0.1 + 0.2: 1}],
    [{1: "x", 2: "y"}, {2: "y", 1: "x"}, '{"1": "x", "2": "y"}'],
    [{1: "y", 2: "x"}],
    [{date(2024, 1, 1): 1}, {"2024-01-01": 1}],
    # Greedy pairing of the exactly equal keys would find no partner for the other pair.
    [{1.0: "a", 1.0000006: "b"}, {1.0000006: "a", 1.0000012: "b"}],
    [{1.0: "a", 1.000003: "b"}],
    [{number: number for number in range(8)}, {number + 1e-10: float(number) for number in range(8)}],
    [{number: number for number in range(9)}],
]
SAME_TERM = [
    [
        *(typed("1.0", "decimal"), typed("1", "integer"), typed("01", "int"), typed("+1", "long")),
        *(typed("1.", "decimal"), 1),
    ],
    [typed("1.1", "decimal"), Literal("1.1"), Decimal("1.10")],
    [Literal("1.2")],
    [typed("1e3", "double"), typed("1000", "integer"), Literal("1e3"), Literal("1000")],
    [typed("1001", "integer"), Literal("1001"), 1001.0],
    [typed("1000.000001", "double"), 1000.0000011],
    [typed("INF", "double"), typed("+INF", "float"), math.inf],
    [typed("-INF", "double"), -math.inf],
    [typed("NaN", "double"), NAN],
    [Literal("NaN"), Literal("NaN", "", "en")],
    [typed("true", "boolean"), typed("1", "boolean"), True],
    [typed("false", "boolean"), typed("0", "boolean"), 0],
    [typed("yes", "boolean"), Literal("yes")],
    [typed("a", "string"), Literal("a"), Literal("a", "", "en"), Literal("a", "http://e/own"), "a"],
    [IRI("a")],
    [Literal("http://e/a"), typed("http://e/a", "anyURI")],
    [IRI("http://e/a")],
    [BlankNode("x"), BlankNode("y")],
    [Literal("x")],
    [Literal("007"), typed("007", "string")],
    [typed("007", "integer"), typed("7", "byte")],
]
SAME_STRICT_TERM = [
    [typed("20.0", "decimal"), typed("20", "decimal"), typed("020", "decimal")],
    [typed("20", "integer"), typed("+20", "integer")],
    [typed("20", "int")],
    [Literal("20"), "20"],
    [Literal("20.0"), "20.0"],
    [typed("1e2", "double"), typed("100", "double"), typed("100.00001", "double")],
    [typed("true", "boolean"), typed("1", "boolean")],
    [typed("1", "integer")],
    [Literal("a", "", "en")],
    [Literal("a")],
    [Literal("a", "", "de")],
    [Literal("a", "http://e/own")],
    [moment("2024-01-01T10:30:00Z"), moment("2024-01-01T12:30:00+02:00")],
    [typed("2024-01-01T10:30:00Z", "dateTimeStamp")],
]
SAME_FOLDED = [
    ["Graz", "GRAZ", " graz", "graz\n"],
    ["a b", "A  B", "a\t\nb "],
    ["ab"],
    [["Graz", 1.5], ["GRAZ ", 1.5], '["graz", 1.5]'],
    [{"a": " x  y"}, {"a": "X y"}],
    [IN_UTC, " 2024-01-01t10:30:00z "],
]
LINES = [
    *((line, other, DEFAULT) for line, other in pairwise([*SAME_MOMENT, []])),
    *((line, other, DEFAULT) for line, other in pairwise([*SAME_NESTED, []])),
    *((line, other, SPARQL) for line, other in pairwise([*SAME_TERM, []])),
    *((line, other, STRICT_TERMS) for line, other in pairwise([*SAME_STRICT_TERM, []])),
    *((line, other, FOLDED) for line, other in pairwise([*SAME_FOLDED, []])),
]


def text_of(cell):
    if isinstance(cell, Literal) and cell.datatype in ("", f"{XSD}string"):
        return cell.lexical
    return cell if isinstance(cell, str) else None


@pytest.mark.parametrize(("line", "other", "policy"), LINES, ids=lambda value: None)
def test_cells_of_one_meaning_are_equal_however_they_are_written(line, other, policy):
    for x, y in combinations(line, 2):
        is_same = None in (text_of(x), text_of(y)) or text_of(x) == text_of(y) or policy is FOLDED
        assert are_equal(x, y, policy) == is_same, (x, y)
    for x, y in product(line, other):
        assert not are_equal(x, y, policy), (x, y)
