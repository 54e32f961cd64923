"""Exact numbers are compared by their digits, wherever they come from, and floats within a tolerance."""

import math
from decimal import Decimal
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from suites import case

from pytest_queryeval.comparison.canonical import is_equal
from pytest_queryeval.comparison.quantities import is_close, widest_tolerance
from pytest_queryeval.core.answer_json import decode_answer, encode_answer
from pytest_queryeval.core.sent_cells import decode_rows
from pytest_queryeval.core.table import ColumnTolerance, Literal, Policy, Table
from pytest_queryeval.metrics.building_qa import row_matching_f1
from pytest_queryeval.metrics.execution_accuracy import execution_accuracy
from pytest_queryeval.sandbox.cells import encode_rows

XSD = "http://www.w3.org/2001/XMLSchema#"
DEFAULT = Policy()


def column(*cells):
    return Table(columns=("n",), rows=[(cell,) for cell in cells])


def accepted(gold, predicted, policy=DEFAULT):
    return execution_accuracy(column(*gold), column(*predicted), policy=policy) == 1.0


@pytest.mark.parametrize(
    ("x", "y", "equal"),
    [
        (Decimal("1.10"), Decimal("1.1"), True),
        (Decimal("-1.10"), Decimal("1.1"), False),
        (Decimal("-0.333333"), Decimal("-0.3333333"), True),
        (-1000000.0, -1000001, False),
        (Decimal("1234567.89"), Decimal("1234568.89"), False),
        (Decimal(1000001), 1000000, False),
        (Decimal("1000001"), 1000001, True),
        (10**30, 10**30 + 1, False),
        (Decimal(10**30), Decimal(10**30 + 1), False),
        (Decimal("1E+3"), 1000, True),
        (Decimal("0.33"), Decimal("0.333333"), False),
        (Decimal("0.333333"), Decimal("0.33333333333333333333"), True),
        (Decimal("0.333334"), Decimal("0.33333333333333333333"), False),
        (Decimal("0.6666665"), Decimal("0.666667"), True),  # half a unit of the coarser
        (Decimal("0.6666664"), Decimal("0.666667"), False),
        (Decimal("12345.678901"), Decimal("12345.678902"), False),
        (Decimal("2.999999999999999999"), 3, True),
        (Decimal("2.999999999999"), 3, False),
        (Decimal("0.333333333333333333"), Decimal("0.33"), False),
        (Decimal("1E-30"), 0, False),
        (Decimal("10.5"), 10.5, True),
        (Decimal("10.5"), 10.500001, True),
        (Decimal("10.5"), 10.51, False),
        (1000000.0, 1000001, False),
        (1000000.0, Decimal("1000001.00"), False),
        (1000000.0, 1000001.0, True),
        (1000000.5, 1000001, True),
        (float(2**53), 2**53 + 1, True),
        (float(2**53 - 1), 2**53 - 2, False),
        (math.inf, Decimal("Infinity"), True),
        (math.inf, 10**400, False),
        (Decimal("Infinity"), 10**400, False),
        (Decimal("1E+999999"), 1, False),
    ],
)
def test_numbers_are_exact_where_they_can_be(x, y, equal):
    assert is_close(x, y, DEFAULT) is is_close(y, x, DEFAULT) is equal
    assert accepted([x, None], [y, None]) is accepted([y, None], [x, None]) is equal


@pytest.mark.parametrize(
    ("policy", "x", "y", "equal"),
    [
        (Policy(abs=0.01), Decimal("10.00"), Decimal("10.01"), True),
        (Policy(abs=0.01), Decimal("10.00"), Decimal("10.02"), False),
        (Policy(abs=0.3), Decimal("0.5"), Decimal("0.8"), True),  # 0.3 as a float is less than 0.3
        (Policy(abs=0.01), Decimal("1234567.89"), Decimal("1234568.89"), False),
        (Policy(abs=0.01), 1234567.89, Decimal("1234568.89"), True),  # `rel` keeps its default for floats
        (Policy(rel=0.1), Decimal("10.0"), 11, True),
        (Policy(abs=2.0), 10, 11, False),
        (Policy(abs=2.0), 10, Decimal(11), False),
        (Policy(abs=2.0), 10, 11.0, True),
        (Policy(rel=0, abs=0), Decimal("0.333333"), Decimal("0.33333333"), False),
        (Policy(rel=0, abs=1e-6), Decimal("0.333333"), Decimal("0.33333333"), True),
        (Policy(abs=1e-9), Decimal("0.333333"), Decimal("0.33333333"), True),
        (Policy(rel=0, abs=0), 0.1 + 0.2, 0.3, False),
        (Policy(rel=0, abs=0), 2**53 + 1, float(2**53), False),
        (Policy(rel=0, abs=0), 2**60 + 1, float(2**60), False),
        (Policy(rel=0, abs=0), 2**60, float(2**60), True),
        (Policy(rel=0, abs=0), Decimal("9007199254740993.5"), 9007199254740994.0, False),
        (Policy(rel=0, abs=0.5), Decimal("9007199254740993.5"), 9007199254740994.0, True),
        (Policy(), 1e305, 1.0000001e305, True),
        (Policy(), 1.7e308, 1.70001e308, False),
        (Policy(), Decimal("1E-999999"), 0.0, True),
    ],
)
def test_tolerances_that_are_set_hold_for_decimals_but_not_between_integers(policy, x, y, equal):
    assert is_close(x, y, policy) is is_close(y, x, policy) is equal
    assert accepted([x], [y], policy) is equal
    column_policy = Policy(column_numbers=(ColumnTolerance("n", policy.rel, policy.abs),))
    assert accepted([x], [y], column_policy) is equal


def test_a_default_that_is_written_out_is_set(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    head = "kind: sql\nsource: a.db\n"
    gold, predicted = [Decimal("1234567.89")], [Decimal("1234568.89")]

    assert not accepted(gold, predicted, case(head=head).settings.policy)
    assert accepted(gold, predicted, case("compare: {numbers: {rel: 1e-6}}", head=head).settings.policy)
    assert not accepted(
        gold, predicted, case("compare: {numbers: {columns: {n: {abs: 0.5}}}}", head=head).settings.policy
    )


@pytest.mark.parametrize(
    ("gold", "predicted", "equal"),
    [
        ([7.5, 1000001, 1000001], [7.5, 1000000, 1000000.0], False),
        ([7.5, 1000001, 1000000], [7.5, 1000000.0, 1000001.0], True),
        ([0.1, Decimal("1234567.89")], [0.1, Decimal("1234568.89")], False),
        ([Decimal("0.5"), Decimal("0.5")], [Decimal("0.5"), Decimal("0.5000003")], False),
        ([Decimal("0.500000"), Decimal("0.500000")], [Decimal("0.5"), Decimal("0.5000003")], True),
        ([1000000.5, 1000001], [1000001.0, 1000000.5], True),
        ([1000000.5, 1000001], [1000000.0, 1000000.5], False),
        ([10**20, 10**20 + 1, 0.5], [10**20, 10**20 + 2, 0.5], False),
        ([2**60, 2**60 + 2], [float(2**60), float(2**60)], True),
        ([2**60, 2**60 + 2, 7.5], [float(2**60), float(2**60), 7.5], True),
        ([2**53 - 1, 2**53 - 2], [float(2**53 - 1), float(2**53 - 1)], False),
    ],
)
def test_the_other_numbers_of_a_column_do_not_change_which_are_equal(gold, predicted, equal):
    for order in permutations(predicted):
        assert accepted(gold, order) is accepted(order, gold) is equal


def test_integers_and_floats_of_the_same_values_are_both_within_a_tolerance():
    policy = Policy(abs=1)

    assert accepted([100, 101], [100.0, 100.0], policy)
    assert accepted([100.0, 100.0], [100, 101], policy)
    assert not accepted([100, 101], [100, 100], policy)


@pytest.mark.parametrize(
    ("x", "y", "equal"),
    [
        (Literal("1234567.89", f"{XSD}decimal"), Literal("1234568.89", f"{XSD}decimal"), False),
        (Literal("1234567.89", f"{XSD}double"), Literal("1234568.89", f"{XSD}double"), True),
        (Literal("1234567.89", f"{XSD}decimal"), Literal("1234568.89", f"{XSD}double"), True),
        (Literal("1.0E6", f"{XSD}double"), Literal("1000001", f"{XSD}integer"), False),
        (
            Literal("0.333333333333333333", f"{XSD}decimal"),
            Literal("0.333333333333333333333333", f"{XSD}decimal"),
            True,
        ),
        (Literal("1000000"), Literal("1000001", f"{XSD}integer"), False),
        (Literal("1234567.89"), Decimal("1234568.89"), False),
        (Literal("1e3"), 1000, True),
    ],
)
def test_rdf_decimals_are_exact_and_doubles_are_not(x, y, equal):
    policy = Policy(text_numbers=True)

    assert accepted([x], [y], policy) is accepted([y], [x], policy) is equal


def test_decimals_stay_exact_on_the_way_from_a_child_process_and_through_recordings():
    rows = [(Decimal("1.10"), Decimal("0E-7"), 10**40, Decimal("1E+30"), Decimal(10**60) / 3, 0.1)]

    sent = decode_rows(encode_rows(rows))
    recorded = decode_answer(encode_answer(Table(columns=tuple("abcdef"), rows=sent))).rows

    assert [[(type(cell), str(cell)) for cell in row] for row in recorded] == [
        [(type(cell), str(cell)) for cell in row] for row in rows
    ]


NUMBERS = st.one_of(
    st.integers(-3, 3),
    st.sampled_from([10**6, 10**6 + 1, 2**53, 2**53 + 1, 10**25]),
    st.sampled_from([0.0, 0.5, 1.0, 1e6, 1e6 + 0.5, 1e6 + 1, float(2**53), 1 + 4e-7, 1 + 8e-7]),
    st.decimals(-2, 2, places=2),
    st.sampled_from([1, 1000001, "0.333333", "0.3333333", "0.33333333333333333333", "0.333333333333", "1.0000004"]).map(
        Decimal
    ),
)
POLICIES = st.sampled_from([DEFAULT, Policy(abs=0.01), Policy(rel=0.6), Policy(rel=0, abs=0)])


@given(NUMBERS, NUMBERS, POLICIES)
def test_numbers_that_are_equal_are_within_reach_of_each_other(x, y, policy):
    if is_close(x, y, policy) and x != y:
        assert abs(float(x) - float(y)) <= widest_tolerance(policy).reach(float(x))


@given(st.lists(NUMBERS, min_size=1, max_size=5), st.randoms(use_true_random=False), POLICIES)
def test_columns_are_equal_only_if_their_numbers_can_be_paired(golds, random, policy):
    predicted = [random.choice([number, *NEIGHBOURS.get(number, ())]) for number in golds]
    random.shuffle(predicted)

    def paired(order):
        return all(is_equal(x, y, policy) for x, y in zip(golds, order, strict=True))

    equal = accepted(golds, predicted, policy)

    assert equal <= any(map(paired, permutations(predicted)))
    assert equal == (row_matching_f1(column(*golds), column(*predicted), policy=policy) == 1.0)


NEIGHBOURS = {
    1: (1.0, 1 + 4e-7, Decimal("1.0000004"), 2),
    10**6: (10**6 + 1, 1e6 + 0.5, 1e6 + 1),
    0.5: (Decimal("0.50"), 0.5000001),
    Decimal("0.333333"): (Decimal("0.3333333"), 0.3333333, Decimal("0.333333333333333")),
}


DOCUMENTED = [  # the table in equality.md: default, with `abs: 0.01`, with `rel: 0` and `abs: 0`
    (Decimal("10.00"), Decimal("10.01"), (False, True, False)),
    (10, 11, (False, False, False)),
    (1000000.0, 1000001, (False, False, False)),
    (1000000.0, 1000001.0, (True, True, False)),
    (1000000.5, 1000001, (True, True, False)),
]


@pytest.mark.parametrize(("gold", "predicted", "equal"), DOCUMENTED)
def test_numbers_are_equal_as_the_table_of_the_documentation_says(gold, predicted, equal):
    policies = (Policy(), Policy(abs=0.01), Policy(rel=0.0, abs=0.0))

    assert tuple(accepted((gold,), (predicted,), policy) for policy in policies) == equal
    assert not accepted((10,), (11,), Policy(abs=1.0))


def test_stored_answers_are_compared_as_the_documentation_says(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "gold.csv").write_text("n\n1234567.89\n0.10\n1000000.00\n")
    (tmp_path / "gold.json").write_text('{"columns": ["n"], "rows": [[1234567.89], [0.10], [1000000.00]]}')
    stored = [
        case(line).golds[0].answer
        for line in (
            "gold_table: {columns: [n], rows: [[1234567.89], [0.10], [1000000.00]]}",
            "gold_file: gold.csv",
            "gold_file: gold.json",
        )
    ]
    cents, exact = Policy(rel=0.0, abs=0.001), Policy(rel=0.0, abs=0.0)
    right, other_cents, other_whole = (
        column(*map(Decimal, numbers))
        for numbers in (
            ("1234567.89", "0.10", "1000000.00"),
            ("1234568.89", "0.10", "1000000.00"),
            ("1234567.89", "0.10", "1000001.00"),
        )
    )

    for gold in stored:
        verdicts = [
            [execution_accuracy(gold, predicted, policy=policy) for policy in (DEFAULT, cents, exact)]
            for predicted in (right, other_cents, other_whole)
        ]
        assert verdicts == [[1, 1, 0], [1, 0, 0], [0, 0, 0]]
