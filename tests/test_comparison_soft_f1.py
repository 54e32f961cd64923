"""Soft F1: rows paired by their content, and how the best pairs are found."""

from __future__ import annotations

import random
import subprocess
import sys
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from samples import table
from strategies import tables
from table_oracle import Oracle, cells_equal

from pytest_queryeval.core.metric import Score
from pytest_queryeval.core.table import Policy, Table
from pytest_queryeval.metrics import METRICS

soft_f1, soft_f1_bird = METRICS["soft_f1"].function, METRICS["soft_f1_bird"].function
UNPROVEN = "soft_f1: the search for the best pairs of rows stopped at its budget, so the score may be too low"
TOKENS = st.lists(st.integers(0, 12), min_size=3, max_size=3, unique=True).map(tuple)


@pytest.mark.parametrize("limit", ["MAX_NEAR_PAIRS", "MAX_REACH"])
def test_where_too_many_numbers_are_near_each_other_the_score_says_that_it_may_be_too_low(limit, monkeypatch) -> None:
    numbers = [1.0 + n * 3e-7 for n in range(8)]  # the first is not near the last
    gold = table(*[(number, n) for n, number in enumerate(numbers)])
    predicted = table(*[(number + 1e-7, -1 - n) for n, number in enumerate(numbers)])
    assert soft_f1(gold, predicted) == 0.5
    monkeypatch.setattr(f"pytest_queryeval.comparison.row_cells.{limit}", 7)

    score = soft_f1(table(*gold.rows), table(*predicted.rows))

    assert isinstance(score, Score)
    assert score.details == {"notes": [UNPROVEN]}
    assert score.value <= 0.5


@given(tables(max_rows=4), tables(max_rows=4))
def test_the_score_is_never_below_that_of_pairs_by_position_where_no_row_holds_a_value_twice(
    gold: Table, predicted: Table
) -> None:
    if not any(cells_equal(*both) for row in (*gold.rows, *predicted.rows) for both in combinations(row, 2)):
        assert soft_f1(gold, predicted) >= soft_f1_bird(gold, predicted) - 1e-12


def rows_with_a_wrong_column(number: int) -> tuple[Table, Table]:
    """Rows of an id, a flag and a name; predicted has them in another order, and all names wrong."""
    rows = [(f"id {n}", n % 2, f"name {n}") for n in range(number)]
    return table(*rows), table(*[(key, flag, "unknown") for key, flag, _ in reversed(rows)])


@given(st.lists(TOKENS, min_size=7, max_size=12), st.lists(TOKENS, min_size=2, max_size=12))
def test_seven_and_more_rows_are_paired_as_well_as_by_any_assignment(golds: list[tuple], others: list[tuple]) -> None:
    gold, predicted = table(*golds), table(*others)

    assert soft_f1(gold, predicted) == pytest.approx(Oracle(gold, predicted, Policy()).soft_counts().f1)


def test_a_thousand_rows_are_paired_exactly() -> None:
    gold, predicted = rows_with_a_wrong_column(1000)

    assert soft_f1(gold, predicted) == pytest.approx(2 / 3)


def test_past_a_million_pairs_rows_are_paired_greedily_and_the_score_says_so_unless_nothing_can_exceed_it() -> None:
    gold, predicted = rows_with_a_wrong_column(1200)
    assert soft_f1(gold, predicted) == pytest.approx(2 / 3)
    rows = [*gold.rows[:-1], ("id 0", 1, "name 1")]
    others = [row if row[0] != "id 7" else ("id 5", 0, "unknown") for row in predicted.rows]

    score = soft_f1(table(*rows), table(*others))

    assert isinstance(score, Score)
    assert score.details == {"notes": [UNPROVEN]}
    assert 0.66 < score.value <= 2 / 3


def test_as_many_pairs_as_the_limit_are_still_assigned_exactly(monkeypatch) -> None:
    golds = [(0, 11), *((n, n + 10) for n in range(8))]
    others = [(n, n + 10, n + 11) for n in (0, 2, 4, 6, 10, 12, 14)]
    best = Oracle(table(*golds), table(*others), Policy()).soft_counts().f1
    monkeypatch.setattr("pytest_queryeval.comparison.row_cells._greedy_pairs", lambda *_: [])

    monkeypatch.setattr("pytest_queryeval.comparison.row_cells.MAX_MATRIX", len(golds) * len(others))
    assert soft_f1(table(*golds), table(*others)) == pytest.approx(best)
    monkeypatch.setattr("pytest_queryeval.comparison.row_cells.MAX_MATRIX", len(golds) * len(others) - 1)
    assert soft_f1(table(*golds), table(*others)) == Score(value=0.0, details={"notes": [UNPROVEN]})


def test_rows_of_few_values_are_paired_too_past_all_budgets() -> None:
    chance = random.Random(7)
    gold, predicted = (table(*[(*(chance.randrange(12) for _ in range(6)), n) for n in range(5000)]) for _ in range(2))
    predicted = table(*[(*row[:6], -1 - row[6]) for row in predicted.rows])

    score = soft_f1(gold, predicted)

    assert isinstance(score, Score)
    assert 0.5 < score.value < 6 / 7


def test_rows_with_nothing_in_common_score_0_without_a_search() -> None:
    gold = table(*[(n, f"a {n}") for n in range(5000)])
    predicted = table(*[(-1 - n, f"b {n}") for n in range(5000)])

    assert soft_f1(gold, predicted) == 0.0


UNRELATED = ", ".join(f"({n}, {n + 10})" for n in range(8))
COMPETING = ", ".join(f"({n}, {n + 10}, {n + 11})" for n in range(0, 16, 2))
WITHOUT_SCIPY = {
    "equal": ("(1, 2), (3, 4)", "(1, 2), (3, 4)"),
    "rows and columns in another order": ("(1, 2), (3, 4)", "(4, 3), (2, 1)"),
    "nothing in common": ("(1, 2), (3, 4)", "(7, 8), (9, 9)"),
    "two rows to be paired": ("(1, 2), (3, 4)", "(1, 7), (3, 8)"),
    "six rows": ("(1, 2), (1, 3), (1, 4), (1, 5), (1, 6), (1, 7)", "(1, 9), (8, 1)"),
    "six keys that are near": ("({n: n for n in range(6)},)", "({n + 1e-10: n for n in range(6)},)"),
    "one row that differs": (f"(1, 'x'), {UNRELATED}", f"(1, 'y'), {UNRELATED}"),
    "eight rows that want different ones": (UNRELATED, UNRELATED.replace("(", "('x', ")),
}
WITH_SCIPY = {"two rows that want the same one": (f"(0, 11), {UNRELATED}", COMPETING)}


def test_numpy_and_scipy_are_loaded_only_where_more_than_six_rows_compete_for_partners() -> None:
    lines = [
        "import sys",
        "from pytest_queryeval.metrics.soft_f1 import soft_f1",
        "from pytest_queryeval.core.table import Table",
        "def table(*rows): return Table(columns=('a', 'b', 'c')[:len(rows[0])], rows=rows)",
    ]
    for name, (gold, predicted) in {**WITHOUT_SCIPY, **WITH_SCIPY}.items():
        lines.append(f"soft_f1(table({gold}), table({predicted}))")
        lines.append(f"print('{name}:', sorted({{'numpy', 'scipy'}} & {{*sys.modules}}))")

    result = subprocess.run(
        [sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, check=True, timeout=300
    )

    assert result.stdout.splitlines() == [
        *(f"{name}: []" for name in WITHOUT_SCIPY),
        *(f"{name}: ['numpy', 'scipy']" for name in WITH_SCIPY),
    ]


@pytest.mark.parametrize("rel", [0.4, 0.5, 1.0, 3.0])
def test_cells_within_a_tolerance_of_half_their_value_and_more_are_equal(rel) -> None:
    gold, predicted = (table((10,), (13,), (30,)), table((11.0,), (14.0,), (33.0,)))

    assert soft_f1(gold, predicted, policy=Policy(rel=rel)) == 1.0
