"""Rows, values and alignments of two tables, against a brute-force oracle that knows only when two cells are equal."""

from __future__ import annotations

import random
from collections.abc import Callable
from decimal import Decimal
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import NEAR_CELLS, PLAIN_CELLS, tables

from pytest_queryeval.comparison import pairing
from pytest_queryeval.comparison.canonical import is_comparable, is_equal
from pytest_queryeval.comparison.pairing import TablePair, table_pair
from pytest_queryeval.core.table import ColumnTolerance, Policy, Table
from pytest_queryeval.metrics import METRICS
from pytest_queryeval.metrics.building_qa import entity_set_f1, exact_match_f1, row_matching_f1
from pytest_queryeval.metrics.execution_accuracy import execution_accuracy
from pytest_queryeval.metrics.soft_f1 import soft_f1

DEFAULT = Policy()
TABLE_METRICS = [row_matching_f1, entity_set_f1, exact_match_f1, execution_accuracy]


def rows_close(left: tuple, right: tuple) -> bool:
    return all(is_equal(cell, partner, DEFAULT) for cell, partner in zip(left, right, strict=True))


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
        proven = TablePair(gold, predicted, DEFAULT).alignment.is_proven
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
        if TablePair(gold, predicted, DEFAULT).coded.has_chains:
            continue  # where values are near without being equal, the order decides which are paired
        assert metric(gold, mixed) == pytest.approx(metric(gold, predicted), abs=1e-9)


@pytest.mark.feature("json", "sdmx")
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


def test_answers_without_rows_are_equal_if_they_have_equally_many_columns() -> None:
    narrow, wide = Table(columns=("a",), rows=[]), Table(columns=("x", "y"), rows=[])
    whole = (execution_accuracy, exact_match_f1)

    assert {metric(narrow, Table(columns=("b",), rows=[])) for metric in TABLE_METRICS} == {1.0}
    assert {metric(narrow, wide) for metric in TABLE_METRICS if metric not in whole} == {1.0}
    assert [metric(*sides) for metric in whole for sides in ((narrow, wide), (wide, narrow))] == [0.0] * 4


def test_surplus_columns_of_an_answer_without_rows_may_be_allowed() -> None:
    narrow, wide = Table(columns=("a",), rows=[]), Table(columns=("x", "y"), rows=[])
    policy = Policy(extra_columns="allow")

    assert execution_accuracy(narrow, wide, policy=policy) == 1.0
    assert execution_accuracy(wide, narrow, policy=policy) == 0.0
    assert exact_match_f1(narrow, wide, policy=policy) == 0.0


def test_an_answer_without_a_header_equals_any_without_rows() -> None:
    stored, wide = Table(columns=(), rows=[], has_header=False), Table(columns=("x", "y"), rows=[])
    no_columns = Table(columns=(), rows=[])

    assert execution_accuracy(stored, wide) == execution_accuracy(wide, stored) == exact_match_f1(stored, wide) == 1.0
    assert execution_accuracy(wide, no_columns) == execution_accuracy(no_columns, wide) == 0.0
    assert execution_accuracy(stored, Table(columns=("x",), rows=[(1,)])) == 0.0


def test_the_verdict_on_unrelated_tables_of_few_values_needs_no_search() -> None:
    chance = random.Random(7)
    columns = tuple(f"c{number}" for number in range(26))
    gold, predicted = (
        Table(columns=columns, rows=[tuple(chance.choices((0, 1), k=26)) for _ in range(1_000)]) for _ in range(2)
    )

    assert execution_accuracy(gold, predicted) == 0.0
    assert not table_pair(gold, predicted, DEFAULT).is_unproven


def test_a_search_for_columns_that_stopped_at_its_budget_proves_nothing(monkeypatch) -> None:
    monkeypatch.setattr(pairing, "MAX_TRIED_ROWS", 0)
    gold = Table(columns=("a", "b"), rows=[(1.0, 2.0), (2.0, 3.0)])
    predicted = Table(columns=("a", "b"), rows=[(1.0, 2.0), (70.0, 80.0)])
    policy = Policy(column_numbers=(ColumnTolerance("a", 0.5, 0.0),))
    pair = TablePair(gold, predicted, policy)
    assert not pair.is_unproven

    assert pair.alignment is not None

    assert pair.is_unproven


@pytest.mark.parametrize("metric", [execution_accuracy, row_matching_f1, soft_f1])
@pytest.mark.parametrize(
    ("x", "y", "score"),
    [([1, 2], [1, 2], 1), ([1, 2], [2, 1], 0), ({"a": [1], "b": 2}, {"b": 2, "a": [1]}, 1), ([1, 2], "[1, 2]", 1)],
)
def test_lists_and_mappings_are_the_text_that_answers_of_databases_have_for_them(metric, x, y, score) -> None:
    gold, predicted = (Table(columns=("a", "b"), rows=[(1, "x"), (2, cell)]) for cell in (x, y))

    value = metric(gold, predicted)

    assert value == 1.0 if score else value < 1.0


def test_truth_values_take_no_part_in_tolerance() -> None:
    assert not is_comparable(True)
    assert is_comparable(1)


@given(tables(PLAIN_CELLS, max_columns=3))
def test_duplicates_ignored_makes_sets_of_rows(table: Table) -> None:
    doubled = Table(columns=table.columns, rows=[*table.rows, *table.rows])
    policy = Policy(duplicates="ignore")

    assert execution_accuracy(table, doubled, policy=policy) == 1.0
    assert row_matching_f1(table, doubled, policy=policy) == 1.0


@pytest.mark.parametrize("text", [(), ("x", None)], ids=["integers", "mixed"])
def test_rows_whose_integers_have_other_sums_are_refused_before_the_tables_are_coded(text) -> None:
    chance = random.Random(7)
    rows = [[*[chance.randrange(2) for _ in range(20)], *text] for _ in range(40)]
    columns = tuple(f"f{number}" for number in range(len(rows[0])))
    wrong = [[*row] for row in rows]
    wrong[0][0], wrong[1][0] = 1 - wrong[0][0], wrong[1][0] + 1
    gold, second = (Table(columns=columns, rows=tuple(map(tuple, table))) for table in (rows, wrong))

    refused = TablePair(gold, second, Policy())

    assert not refused.is_equal
    assert "coded" not in refused.__dict__


@pytest.mark.parametrize("cell", [1.0, True, Decimal(1)])
def test_what_may_equal_an_integer_is_not_refused_by_sums(cell) -> None:
    gold = Table(columns=("a", "b", "c"), rows=((1, 2, "x"), (3, 4, "y")))
    predicted = Table(columns=("a", "b", "c"), rows=(("y", 4, 3), ("x", 2, cell)))

    assert execution_accuracy(gold, predicted) == 1.0
