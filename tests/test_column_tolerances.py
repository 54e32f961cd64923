"""Gold columns with a tolerance of their own: `compare: {numbers: {columns: …}}`."""

from dataclasses import replace
from decimal import Decimal
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from suites import case, problem

from pytest_queryeval.core.metric import Score
from pytest_queryeval.core.table import ColumnTolerance, Policy, Table
from pytest_queryeval.metrics import METRICS

PRICE = Policy(column_numbers=(ColumnTolerance("Price", 0.0, 0.01),))
GOLD = Table(columns=("id", "price"), rows=[("a", 10.0), ("b", 20.0), ("c", None)])


def score(name, gold, predicted, policy):
    scores = METRICS[name].function(gold, predicted, policy=policy)
    return scores.value if isinstance(scores, Score) else scores


@pytest.mark.parametrize(
    ("rows", "right"),
    [
        ([("a", 10.004), ("b", 19.995), ("c", None)], True),
        ([(19.995, "b"), (None, "c"), (10.009, "a")], True),  # columns and rows in another order
        ([("a", Decimal("10.004")), ("b", 20), ("c", None)], True),
        ([("a", 10.02), ("b", 20.0), ("c", None)], False),
        ([("b", 10.004), ("a", 19.995), ("c", None)], False),
        ([("a", 10.004), ("b", 19.995), ("c", 0.0)], False),
        ([("a", float("nan")), ("b", 20.0), ("c", None)], False),
    ],
)
def test_numbers_of_the_column_are_equal_within_its_tolerance(rows, right):
    predicted = Table(columns=("x", "y"), rows=rows)

    assert score("execution_accuracy", GOLD, predicted, PRICE) == right
    assert score("execution_accuracy", GOLD, predicted, Policy()) == 0.0


@pytest.mark.parametrize("columns", ["any", "positional", "by_name"])
@pytest.mark.parametrize(
    "name", ["execution_accuracy", "row_matching_f1", "exact_match_f1", "entity_set_f1", "cell_f1"]
)
def test_metrics_share_the_tolerance(name, columns):
    policy = Policy(column_numbers=PRICE.column_numbers, columns=columns)
    predicted = Table(columns=("ID", "PRICE"), rows=[("a", 10.004), ("b", 19.995), ("c", None)])

    assert score(name, GOLD, predicted, policy) == 1.0


def test_metrics_that_look_for_cells_anywhere_share_it_too():
    predicted = Table(columns=("y", "x"), rows=[(10.004, "a"), (19.995, "b"), (None, "c")])

    for name in ("soft_f1", "cell_f1", "subset_score"):
        assert score(name, GOLD, predicted, PRICE) == 1.0
        assert score(name, GOLD, predicted, Policy()) < 1.0


def test_other_columns_keep_the_common_tolerance():
    gold = Table(columns=("rate", "price"), rows=[(0.5, 10.0), (0.7, 11.0)])

    def right(*rows, columns=("a", "b")):
        return score("execution_accuracy", gold, Table(columns=columns, rows=rows), PRICE)

    assert right((0.5, 10.004), (0.7, 11.0))
    assert not right((0.504, 10.0), (0.7, 11.0))
    assert right((11.004, 0.7), (10.0, 0.5))


def test_a_column_can_be_stricter_than_the_others():
    gold = Table(columns=("rate", "price"), rows=[(0.5, 10.0)])
    policy = Policy(abs=0.1, column_numbers=(ColumnTolerance("price", 0.0, 0.0),))

    assert score("execution_accuracy", gold, Table(columns=("a", "b"), rows=[(0.55, 10.0)]), policy)
    assert not score("execution_accuracy", gold, Table(columns=("a", "b"), rows=[(0.5, 10.05)]), policy)


def test_integers_are_equal_only_if_they_are_the_same():
    gold = Table(columns=("price",), rows=[(10,)])

    assert not score("execution_accuracy", gold, Table(columns=("a",), rows=[(11,)]), Policy(abs=2.0))
    assert not score(
        "execution_accuracy",
        gold,
        Table(columns=("a",), rows=[(11,)]),
        Policy(column_numbers=(ColumnTolerance("price", 0.0, 2.0),)),
    )


def test_values_that_are_near_several_are_paired_row_by_row():
    gold = Table(columns=("id", "price"), rows=[("a", 1.0), ("b", 1.008), ("a", 1.016)])
    predicted = Table(columns=("id", "price"), rows=[("b", 1.0), ("a", 1.008), ("a", 1.012)])

    assert score("execution_accuracy", gold, predicted, PRICE) == 1.0


def test_the_order_of_rows_counts_within_the_tolerance():
    policy = Policy(row_order="strict", column_numbers=PRICE.column_numbers)
    ordered = Table(columns=("price", "id"), rows=[(1.0, "a"), (2.0, "b")])

    assert score("execution_accuracy", ordered, Table(columns=("x", "y"), rows=[("a", 1.004), ("b", 2.004)]), policy)
    assert not score("execution_accuracy", ordered, Table(columns=("x", "y"), rows=[("b", 2.0), ("a", 1.0)]), policy)


VALUES = st.sampled_from([0.0, 0.004, 1.0, 1.004, 5.0, None, "a"])
OWN = Policy(column_numbers=(ColumnTolerance("fine", 0.0, 0.01), ColumnTolerance("coarse", 0.0, 1.1)))


@st.composite
def pairs(draw):
    """Gold, and predicted: gold's rows and columns shuffled with some values moved to others, near or not."""
    columns = draw(st.lists(st.sampled_from(["fine", "coarse", "x"]), min_size=1, max_size=3))
    height = draw(st.integers(1, 3))
    rows = [tuple(draw(VALUES) for _ in columns) for _ in range(height)]
    others = draw(st.permutations(rows))
    order = draw(st.permutations(range(len(columns))))
    moves = {0.0: [0.0, 0.004, 1.0], 0.004: [0.0, 0.004], 1.0: [1.0, 1.004, 0.0], 1.004: [1.0, 1.004]}
    moved = [tuple(draw(st.sampled_from(moves.get(row[at], [row[at]]))) for at in order) for row in others]
    return Table(columns=tuple(columns), rows=rows), Table(columns=tuple("p" * len(columns)), rows=moved)


def equal_by_hand(gold, predicted):
    """Whether some order of columns and rows makes all cells equal, each under the tolerance of gold's column."""
    tolerances = [{"fine": 0.01, "coarse": 1.1}.get(name, 1e-9) for name in gold.columns]

    def same(mine, other, tolerance):
        if isinstance(mine, float) and isinstance(other, float):
            return abs(mine - other) <= tolerance
        return mine == other

    return any(
        all(
            all(map(same, row, (partner[at] for at in order), tolerances))
            for row, partner in zip(gold.rows, rows, strict=True)
        )
        for order in permutations(range(len(gold.columns)))
        for rows in permutations(predicted.rows)
    )


@given(pairs())
def test_answers_are_equal_as_by_hand(pair):
    gold, predicted = pair

    assert score("execution_accuracy", gold, predicted, OWN) == equal_by_hand(gold, predicted)


@pytest.mark.parametrize("names", [("x", "fine"), ("x", "y")])
def test_where_dropped_columns_leave_rows_twice_the_columns_that_leave_the_right_rows_are_found(names):
    gold = Table(columns=names, rows=[(1.0, 1.0), (1.0, 5.0), (5.0, 1.0)])
    rows = [(1.0, 1.0, 1.0, 5.0), (5.0, 1.0, 1.0, 5.0), (1.0, 5.0, 5.0, 1.0), (5.0, 5.0, 1.0, 5.0)]
    policy = replace(OWN, duplicates="ignore", extra_columns="allow")

    for shown in permutations(range(4)):
        predicted = Table(columns=("a", "b", "c", "d"), rows=[tuple(row[at] for at in shown) for row in rows])
        assert score("execution_accuracy", gold, predicted, policy) == 1.0
        assert score("row_matching_f1", gold, predicted, policy) == 1.0


def test_tolerances_inherit_from_the_common_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    head = "kind: sql\nsource: a.db\ncompare: {numbers: {rel: 0.5, columns: {price: {abs: 1}}}}\n"

    assert case(head=head).settings.policy.column_numbers == (ColumnTolerance("price", 0.5, 1.0),)
    assert case("compare: {numbers: {rel: 0.1}}", head=head).settings.policy.column_numbers == (
        ColumnTolerance("price", 0.1, 1.0),
    )
    assert case("compare: {numbers: {columns: {}}}", head=head).settings.policy == Policy(rel=0.5)


@pytest.mark.parametrize("written", ["[price]", "{price: 1}", "{price: {abs: -1}}", "{price: {absolute: 1}}"])
def test_what_is_no_tolerance_is_refused(written, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    assert problem(f"compare: {{numbers: {{columns: {written}}}}}")


def test_a_number_alone_says_no_type_of_tolerance(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    said = problem("compare: {numbers: {columns: {price: 0.01}}}")

    assert said == "price: expected a mapping, found '0.01': write {abs: 0.01} or {rel: 0.01}"
