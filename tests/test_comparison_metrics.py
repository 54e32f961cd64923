"""The metrics of two tables against an oracle that tries all columns and all pairs, on pairs made of ugly cells."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache
from itertools import combinations, islice

import pytest
from table_oracle import Counts, Oracle, cells_equal, exactly, mean_ratios, remembered
from table_pairs import CELLS, Pair, Pool, pairs

from pytest_queryeval.core.table import ColumnTolerance, Policy
from pytest_queryeval.metrics import METRICS

EQUAL = remembered(cells_equal)
OF_CELLS = {
    "default": Policy(),
    "folded": Policy(case="ignore", whitespace="ignore"),
    "numbers in texts": Policy(text_numbers=True),
    "numbers in folded texts": Policy(text_numbers=True, case="ignore"),
    "strict dates": Policy(dates="strict"),
    "midnight": Policy(dates="midnight"),
    "strict terms": Policy(rdf_terms="strict", text_numbers=True),
    "cents": Policy(abs=0.01),
    "a tenth": Policy(rel=0.1),
    "half and more": Policy(rel=0.0, abs=0.6),
    "exact": Policy(rel=0.0, abs=0.0),
}
PAIRS = 120
COLUMNS = ("any", "any", "positional", "by_name")


@cache
def pool(policy: Policy) -> Pool:
    return Pool(CELLS, policy)


def policies(of_cells: Policy, chance: random.Random) -> Iterator[Policy]:
    while True:
        yield replace(
            of_cells,
            columns=chance.choice(COLUMNS),
            duplicates=chance.choice(("count", "count", "ignore")),
            extra_columns=chance.choice(("reject", "allow")),
            row_order=chance.choice(("auto", "auto", "ignore", "strict")),
        )


def scores_of(names: Iterable[str], pair: Pair, policy: Policy) -> dict[str, float]:
    values = {name: METRICS[name].function(pair.gold, pair.predicted, policy=policy) for name in names}
    return {name: getattr(value, "value", value) for name, value in values.items()}


def trio(name: str, counts: Counts, f1: str = "") -> dict[str, float]:
    """The F1 of counts and its halves by the names of metrics."""
    return {f1 or f"{name}_f1": counts.f1, f"{name}_precision": counts.precision, f"{name}_recall": counts.recall}


def row_scores(pair: Pair, oracle: Oracle) -> list[dict[str, float]]:
    """The scores of rows and distinct values under each of the best alignments."""
    if pair.gold.rows and pair.predicted.rows and (best := oracle.best()):
        ratios = [mean_ratios(oracle.entity_counts(columns)) for columns in best]
        rows = oracle.row_counts(best[0])
        if not pair.gold.columns:
            ratios = [(float(not pair.predicted.columns),) * 2]
    else:
        both_empty = not pair.gold.rows and not pair.predicted.rows
        rows, ratios = Counts(0, not both_empty, not both_empty), [(float(both_empty),) * 2]
    return [
        trio("row", rows, "row_matching_f1")
        | {"entity_set_f1": f1_of(*halves), "entity_precision": halves[0], "entity_recall": halves[1]}
        for halves in ratios
    ]


def f1_of(precision: float, recall: float) -> float:
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def exact_match_f1(pair: Pair, oracle: Oracle) -> float:
    if len(pair.gold.columns) != len(pair.predicted.columns):
        return 0.0
    return oracle.row_counts(tuple(range(len(pair.gold.columns)))).f1


def repeats_near_values(pair: Pair, oracle: Oracle) -> bool:
    """Whether a row has two cells that are equal without being the same: a set of values may have both."""
    rows = (*pair.gold.rows, *pair.predicted.rows)
    return any(
        EQUAL(x, y, oracle.policy) and exactly(x, oracle.policy) != exactly(y, oracle.policy)
        for row in rows
        for x, y in combinations(row, 2)
    )


@pytest.mark.parametrize("of_cells", OF_CELLS.values(), ids=OF_CELLS)
def test_scores_are_those_of_the_definitions(of_cells: Policy) -> None:
    chance = random.Random(repr(of_cells))
    for pair, policy in zip(pairs(pool(of_cells), PAIRS, 1, chains=False), policies(of_cells, chance), strict=False):
        oracle = Oracle(pair.gold, pair.predicted, policy, EQUAL)
        soft = oracle.soft_counts()
        expected = {
            "execution_accuracy": float(oracle.are_equal()),
            "exact_match_f1": exact_match_f1(pair, oracle),
            "soft_f1": soft.f1,
            "value_overlap": oracle.value_overlap(),
            **trio("cell", oracle.cell_counts()),
        }
        if not repeats_near_values(pair, oracle):
            expected["subset_score"] = oracle.subset_score()
        assert scores_of(expected, pair, policy) == pytest.approx(expected, abs=1e-9), (pair, policy)
        of_rows = row_scores(pair, oracle)
        actual = scores_of(of_rows[0], pair, policy)
        assert any(actual == pytest.approx(scores, abs=1e-9) for scores in of_rows), (pair, policy)


OF_CHAINS = {
    "default": Policy(),
    "numbers in texts": Policy(text_numbers=True),
    "half and more": Policy(abs=0.6, rel=0.0),
    "one": Policy(abs=1),
    "half of the larger": Policy(rel=0.5),
    "exact": Policy(rel=0.0, abs=0.0),
    "of columns": Policy(column_numbers=(ColumnTolerance("A", 0.0, 0.6), ColumnTolerance("b", None, 1e-9))),
    "steps": Policy(abs=1, rel=0.0),
    "steps of columns": Policy(abs=0.5, rel=0.0, column_numbers=(ColumnTolerance("b", 0.0, 1.0),)),
}
STEPS = (*(number / 2 for number in range(8)), (1.0, 0.0), (1.5, 0.0), (2.5, 0.0), (2.5, 1.0), None)


@pytest.mark.parametrize("of_cells", OF_CHAINS.values(), ids=OF_CHAINS)
def test_values_that_are_near_several_others_are_never_chained(of_cells: Policy) -> None:
    chance = random.Random(repr(of_cells))
    is_of_steps = of_cells.abs is not None and of_cells.rel == 0.0
    cells = Pool(STEPS, of_cells) if is_of_steps else pool(replace(of_cells, column_numbers=()))
    tried = Counter[str]()
    made = pairs(cells, PAIRS, 2, height=9 if is_of_steps else 5)
    for pair, policy in zip(made, policies(of_cells, chance), strict=False):
        oracle = Oracle(pair.gold, pair.predicted, policy, EQUAL)
        unrestricted = Oracle(pair.gold, pair.predicted, policy, EQUAL, exact_first=False)
        least, most = verdicts(pair, oracle), verdicts(pair, unrestricted)
        actual = scores_of(least, pair, policy)
        message = f"{pair} {policy}"
        tried["open" if oracle.is_open else "exact"] += 1
        if oracle.is_open:
            assert all(actual[name] <= most[name] + 1e-9 for name in most), message
        elif policy.column_numbers:
            assert actual["soft_f1"] >= least.pop("soft_f1") - 1e-9, message
        if not oracle.is_open:
            assert {name: actual[name] for name in least} == pytest.approx(least, abs=1e-9), message
    assert tried["exact"] > PAIRS / 3


def verdicts(pair: Pair, oracle: Oracle) -> dict[str, float]:
    """The scores that do not depend on which of several columns or values is near another."""
    scores = {"execution_accuracy": float(oracle.are_equal()), "soft_f1": oracle.soft_counts().f1}
    if len([*islice(oracle.alignments, 2)]) == 1:
        scores |= {name: score for name, score in row_scores(pair, oracle)[0].items() if name.startswith("row")}
        scores["exact_match_f1"] = exact_match_f1(pair, oracle)
    return scores
