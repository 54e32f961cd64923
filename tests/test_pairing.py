"""Rows, values and alignments of two tables, against a brute-force oracle that knows only when two cells are equal."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import NEAR_CELLS, PLAIN_CELLS, tables

from pytest_queryeval.comparison.canonical import is_equal
from pytest_queryeval.comparison.comparables import is_comparable
from pytest_queryeval.comparison.pairing import Pair
from pytest_queryeval.core.policy import Policy
from pytest_queryeval.core.table import Table
from pytest_queryeval.metrics import METRICS
from pytest_queryeval.metrics.entity_set_f1 import entity_set_f1
from pytest_queryeval.metrics.exact_match_f1 import exact_match_f1
from pytest_queryeval.metrics.execution_accuracy import execution_accuracy
from pytest_queryeval.metrics.row_matching_f1 import row_matching_f1

DEFAULT = Policy()
TABLE_METRICS = [row_matching_f1, entity_set_f1, exact_match_f1, execution_accuracy]


def rows_close(left: tuple, right: tuple) -> bool:
    return all(is_equal(cell, other, DEFAULT) for cell, other in zip(left, right, strict=True))


def most_pairs(golds: list[tuple], others: list[tuple], close: Callable[[tuple, tuple], bool] = rows_close) -> int:
    """The size of a maximum matching of rows that are equal within the tolerance (Kuhn's algorithm)."""
    partner: dict[int, int] = {}

    def find(gold: int, seen: set[int]) -> bool:
        for place, other in enumerate(others):
            if place not in seen and close(golds[gold], other):
                seen.add(place)
                if place not in partner or find(partner[place], seen):
                    partner[place] = gold
                    return True
        return False

    return sum(find(gold, set()) for gold in range(len(golds)))


def best_rows(gold: Table, predicted: Table) -> int:
    return max(
        most_pairs(gold.rows, [tuple(row[place] for place in columns) for row in predicted.rows])
        for columns in permutations(range(len(predicted.columns)), len(gold.columns))
    )


def entity(gold: Table, predicted: Table, columns: tuple[int, ...]) -> float:
    precisions, recalls = [], []
    for mine, its in enumerate(columns):
        golds = {row[mine] for row in gold.rows}
        others = {row[its] for row in predicted.rows}
        shared = most_pairs([(value,) for value in golds], [(value,) for value in others])
        precisions.append(shared / len(others))
        recalls.append(shared / len(golds))
    total = sum(precisions) + sum(recalls)
    return 2 * sum(precisions) * sum(recalls) / total / len(columns) if total else 0.0


@given(tables(NEAR_CELLS), tables(NEAR_CELLS))
def test_row_matching_f1_equals_the_oracle_also_within_the_tolerance(gold: Table, predicted: Table) -> None:
    score = row_matching_f1(gold, predicted)

    if not gold.rows or not predicted.rows:
        assert score == float(len(gold.rows) == len(predicted.rows))
    elif len(predicted.columns) < len(gold.columns):
        assert score == 0.0
    else:
        expected = 2 * best_rows(gold, predicted) / (len(gold.rows) + len(predicted.rows))
        proven = Pair(gold, predicted, DEFAULT).alignment.proven
        assert score == pytest.approx(expected, abs=1e-12) if proven else score <= expected + 1e-12


@given(tables(), tables())
def test_entity_set_f1_is_the_highest_among_the_row_best_alignments(gold: Table, predicted: Table) -> None:
    if not gold.rows or not predicted.rows or len(predicted.columns) < len(gold.columns):
        return
    best = best_rows(gold, predicted)
    candidates = [
        entity(gold, predicted, columns)
        for columns in permutations(range(len(predicted.columns)), len(gold.columns))
        if most_pairs(gold.rows, [tuple(row[place] for place in columns) for row in predicted.rows]) == best
    ]

    assert entity_set_f1(gold, predicted) == pytest.approx(max(candidates), abs=1e-9)


@given(tables(NEAR_CELLS))
def test_a_table_equals_itself_on_every_table_metric(table: Table) -> None:
    twin = Table(columns=table.columns, rows=list(table.rows))

    assert [metric(table, twin) for metric in TABLE_METRICS] == [1.0] * len(TABLE_METRICS)


@given(tables(NEAR_CELLS), tables(NEAR_CELLS), st.randoms(use_true_random=False))
def test_scores_do_not_depend_on_the_order_of_predicted_rows_and_columns(gold, predicted, random) -> None:
    rows = random.sample(list(predicted.rows), len(predicted.rows))
    columns = random.sample(range(len(predicted.columns)), len(predicted.columns))
    mixed = Table(
        columns=tuple(predicted.columns[place] for place in columns),
        rows=[tuple(row[place] for place in columns) for row in rows],
    )

    for metric in (row_matching_f1, entity_set_f1, execution_accuracy):
        if Pair(gold, predicted, DEFAULT).coded.is_rough:
            continue  # where values are near without being equal, the order decides which are paired
        assert metric(gold, mixed) == pytest.approx(metric(gold, predicted), abs=1e-9)


@given(tables(NEAR_CELLS), tables(NEAR_CELLS))
def test_every_table_metric_is_between_0_and_1(gold: Table, predicted: Table) -> None:
    for name in METRICS.names():
        metric = METRICS[name]
        if metric.input == "answers" and metric.applies_to("sql", Table) and "timer" not in metric.injected:
            assert 0.0 <= metric.function(gold, predicted) <= 1.0


@given(tables(NEAR_CELLS), tables(NEAR_CELLS))
def test_execution_accuracy_is_1_only_where_all_rows_match(gold: Table, predicted: Table) -> None:
    if gold.rows and predicted.rows and execution_accuracy(gold, predicted) == 1.0:
        assert row_matching_f1(gold, predicted) == 1.0
        assert len(gold.columns) == len(predicted.columns)


@pytest.mark.parametrize(
    ("gold", "predicted", "policy", "expected"),
    [
        ([(1,), (1,)], [(1,)], Policy(duplicates="ignore"), 1.0),
        ([(1,), (1,)], [(1,)], Policy(), 0.0),
        ([("A",)], [("a",)], Policy(case="ignore"), 1.0),
        ([("a  b ",)], [("a b",)], Policy(whitespace="ignore"), 1.0),
        ([("5",)], [(5,)], Policy(text_numbers=True), 1.0),
        ([("5",)], [(5,)], Policy(), 0.0),
        ([("007",)], [(7,)], Policy(text_numbers=True), 0.0),
        ([(33.33,)], [(33.333,)], Policy(abs=0.01), 1.0),
        ([(1.0,)], [(1.1,)], Policy(rel=0.1), 1.0),
        ([(1.0,), (1.2,)], [(1.1,), (1.3,)], Policy(abs=0.11, rel=0), 1.0),
        ([(1.0,), (1.1,), (1.2,)], [(1.0,), (1.0,), (1.0,)], Policy(abs=0.11, rel=0), 0.0),
        ([(2**53 + 1,)], [(2**53,)], Policy(), 0.0),
        ([(2**53 + 1,)], [(float(2**53),)], Policy(), 1.0),
        ([(float("nan"),)], [(float("nan"),)], Policy(), 1.0),
        ([(None,)], [(float("nan"),)], Policy(), 0.0),
        ([(float("inf"),)], [(1e308,)], Policy(), 0.0),
        ([(True,)], [(1,)], Policy(), 1.0),
        ([(True,)], [(1.0000000001,)], Policy(), 1.0),
        ([(1000000.0, 1000000)], [(1000000.0, 1000001)], Policy(columns="positional"), 0.0),
        ([(1000000, 1000000.0)], [(1000001, 1000000.0)], Policy(columns="positional"), 0.0),
        ([(3, 3.0)], [(3.0000001, 3.0000001)], Policy(columns="positional"), 1.0),
        ([(1.0, 1.0000008)], [(1.0000008, 1.0000016)], Policy(), 1.0),
        ([(b"a",)], [("a",)], Policy(), 0.0),
    ],
)
def test_the_policy_decides(gold: list[tuple], predicted: list[tuple], policy: Policy, expected: float) -> None:
    tables_ = [Table(columns=("x", "y")[: len(rows[0])], rows=rows) for rows in (gold, predicted)]

    assert execution_accuracy(*tables_, policy=policy) == expected


def test_columns_by_name_are_matched_whatever_their_order_and_case() -> None:
    gold = Table(columns=("a", "b"), rows=[(1, 2)])
    same = Table(columns=("B", "A"), rows=[(2, 1)])
    swapped = Table(columns=("b", "a"), rows=[(1, 2)])
    policy = Policy(columns="by_name")

    assert execution_accuracy(gold, same, policy=policy) == 1.0
    assert execution_accuracy(gold, swapped, policy=policy) == 0.0


def test_columns_of_one_name_are_matched_in_their_order() -> None:
    gold = Table(columns=("n", "n"), rows=[(1, 2)])

    assert execution_accuracy(gold, Table(columns=("n", "n"), rows=[(1, 2)]), policy=Policy(columns="by_name")) == 1.0
    assert execution_accuracy(gold, Table(columns=("n", "m"), rows=[(1, 2)]), policy=Policy(columns="by_name")) == 0.0


def test_extra_columns_are_rejected_unless_allowed() -> None:
    gold, wide = Table(columns=("a",), rows=[(1,)]), Table(columns=("x", "y"), rows=[(9, 1)])

    assert execution_accuracy(gold, wide) == 0.0
    assert execution_accuracy(gold, wide, policy=Policy(extra_columns="allow")) == 1.0


def test_answers_without_rows_are_equal_whatever_their_columns() -> None:
    gold, other = Table(columns=("a",), rows=[]), Table(columns=("x", "y"), rows=[])

    assert [metric(gold, other) for metric in TABLE_METRICS] == [1.0] * len(TABLE_METRICS)


def test_truth_values_take_no_part_in_tolerance() -> None:
    assert not is_comparable(True)
    assert is_comparable(1)


@given(tables(PLAIN_CELLS, max_columns=3))
def test_duplicates_ignored_makes_sets_of_rows(table: Table) -> None:
    doubled = Table(columns=table.columns, rows=[*table.rows, *table.rows])
    policy = Policy(duplicates="ignore")

    assert execution_accuracy(table, doubled, policy=policy) == 1.0
    assert row_matching_f1(table, doubled, policy=policy) == 1.0
