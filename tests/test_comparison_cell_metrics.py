"""Metrics of cells by position, of values anywhere, and the published rules on text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from samples import table
from strategies import NEAR_CELLS, tables

from pytest_queryeval.core.table import IRI, BlankNode, Literal, Table
from pytest_queryeval.metrics import METRICS

soft_f1_bird, soft_f1_denodo, subset_score_denodo = (
    METRICS[name].function for name in ("soft_f1_bird", "soft_f1_denodo", "subset_score_denodo")
)
OURS = ["cell_f1", "value_overlap", "subset_score"]
PUBLISHED = ["soft_f1_bird", "soft_f1_denodo", "subset_score_denodo"]
CELLS = st.one_of(NEAR_CELLS, st.just(float("nan")))
NOTHING = Table(columns=(), rows=[])
FRUIT = table(("apple", "red", 35), ("pear", "green", 28))
PREDICTED_FRUIT = table(("apple", "red"), ("pear", "green"), ("plum", "blue"))


def with_columns_reversed(answer: Table) -> Table:
    return Table(columns=answer.columns, rows=[row[::-1] for row in answer.rows])


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("cell_f1", 2 * 4 / (2 * 4 + 2 + 2)),
        ("soft_f1_denodo", 8 / 13),
        ("soft_f1_bird", 8 / 13),
        ("value_overlap", 4 / 6),
        ("subset_score", 2 / 3),
        ("subset_score_denodo", 2 / 3),
    ],
)
def test_worked_example_of_the_workbook(name: str, expected: float) -> None:
    assert METRICS[name].function(FRUIT, PREDICTED_FRUIT) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("name", [*OURS, *PUBLISHED])
@given(tables(CELLS, min_columns=0), tables(CELLS, min_columns=0))
def test_scores_are_between_0_and_1(name: str, gold: Table, predicted: Table) -> None:
    assert 0.0 <= METRICS[name].function(gold, predicted) <= 1.0


@pytest.mark.parametrize("name", [*OURS, *PUBLISHED])
@given(tables(), tables())
def test_the_order_of_columns_does_not_matter_to_metrics_of_ours_and_of_bird(
    name: str, gold: Table, predicted: Table
) -> None:
    score = METRICS[name].function

    assert score(gold, with_columns_reversed(predicted)) == pytest.approx(score(gold, predicted), abs=1e-12)


@pytest.mark.parametrize("name", ["cell_f1", "subset_score", "soft_f1_bird", "soft_f1_denodo", "subset_score_denodo"])
def test_rows_are_paired_by_position(name: str) -> None:
    turned = Table(columns=FRUIT.columns, rows=FRUIT.rows[::-1])

    assert METRICS[name].function(FRUIT, turned) == 0.0


@pytest.mark.parametrize(
    ("name", "both", "only_predicted", "only_gold"),
    [
        ("cell_f1", 1.0, 0.0, 0.0),
        ("subset_score", 1.0, 0.0, 0.0),
        ("value_overlap", 1.0, 0.0, 0.0),
        ("soft_f1_bird", 1.0, 0.0, 0.0),
        ("soft_f1_denodo", 0.0, 0.0, 0.0),
        ("subset_score_denodo", 0.0, 0.0, 0.0),
    ],
)
def test_answers_without_rows(name: str, both: float, only_predicted: float, only_gold: float) -> None:
    score = METRICS[name].function

    assert score(NOTHING, Table(columns=("a",), rows=[])) == both
    assert score(NOTHING, FRUIT) == only_predicted
    assert score(FRUIT, NOTHING) == only_gold


def test_the_workbook_takes_gold_with_duplicates_for_incomplete() -> None:
    gold = table(("1",), ("1",), ("2",))

    assert subset_score_denodo(gold, gold) == pytest.approx(2 / 3)
    assert soft_f1_denodo(gold, gold) == 1.0


def test_the_workbook_reads_a_hundred_rows() -> None:
    gold = table(*[(n,) for n in range(150)])
    predicted = table(*[(n if n < 100 else -n,) for n in range(150)])

    assert (soft_f1_denodo(gold, predicted), subset_score_denodo(gold, predicted)) == (1.0, 1.0)
    assert soft_f1_bird(gold, predicted) == pytest.approx(2 / 3)


def test_the_workbook_compares_text_and_bird_compares_values() -> None:
    assert (soft_f1_denodo(table((1,)), table(("1",))), soft_f1_bird(table((1,)), table(("1",)))) == (1.0, 0.0)
    assert (soft_f1_denodo(table((1,)), table((1.0,))), soft_f1_bird(table((1,)), table((1.0,)))) == (0.0, 1.0)


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        ([1, 2], ["1", "2"]),
        ([1, None], ["1.0", "nan"]),
        ([1, 2.5], ["1.0", "2.5"]),
        ([None, None], ["None", "None"]),
        (["a", None, 1, 1.5], ["a", "None", "1", "1.5"]),
        ([float("nan"), None], ["nan", "nan"]),
        ([float("nan"), "a"], ["nan", "a"]),
        ([True, None], ["True", "None"]),
        ([True, 1.5], ["True", "1.5"]),
        ([2**63, None], ["9.223372036854776e+18", "nan"]),
        ([2**70, None], ["1180591620717411303424", "None"]),
        ([1e16, 1], ["1e+16", "1.0"]),
        ([b"a", b"\xff"], ["a", "\ufffd"]),
        ([IRI("http://x/"), Literal("1"), BlankNode("b")], ["http://x/", "1", "_:b"]),
        ([[1, {"a": None}], {}], ["[1, {'a': None}]", "{}"]),
    ],
)
def test_cells_become_the_text_of_pandas_2(column: list, expected: list[str]) -> None:
    cells = table(*[(number, cell) for number, cell in enumerate(column)])

    assert soft_f1_denodo(cells, table(*[(str(number), text) for number, text in enumerate(expected)])) == 1.0
