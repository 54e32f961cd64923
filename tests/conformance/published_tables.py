"""The scores of published evaluators on tables as tests need them: their names and scales, and where they differ."""

from __future__ import annotations

import pytest

from pytest_queryeval.core.table import Table
from pytest_queryeval.metrics import METRICS

# Our names of what the records of the workbook's evaluator call otherwise, and the scale that they have there.
WORKBOOK = {
    "soft_f1_denodo": ("f1", 1),
    "subset_score_denodo": ("set_precision", 100),
    "value_overlap": ("percent_overlap", 100),
}
NAMES = ("soft_f1_bird", *WORKBOOK)


def has_value(table: Table) -> bool:
    return any(cell is not None for row in table.rows for cell in row)


def holds_null(table: Table) -> bool:
    return any(cell is None for row in table.rows for cell in row)


def names_twice(table: Table) -> bool:
    return len(set(table.columns)) < len(table.columns)


def neither_has_values(name: str, gold: Table, predicted: Table) -> bool:
    """D16: value_overlap published 0 where no side has a value; ours gives 1."""
    return name == "value_overlap" and not has_value(gold) and not has_value(predicted)


def columns_collapse(gold: Table, predicted: Table) -> bool:
    """D20: the workbook's code keeps one of several columns of the same name."""
    return names_twice(gold) or names_twice(predicted)


def nulls_as_in_pandas_3(name: str, gold: Table, predicted: Table) -> bool:
    """D20: records written with pandas 3 have other text in columns with NULL, which value_overlap does not read."""
    return name != "value_overlap" and (holds_null(gold) or holds_null(predicted))


def differing(name: str, gold: Table, predicted: Table, expected: float) -> bool:
    return METRICS[name].function(gold, predicted) != pytest.approx(expected, abs=1e-9)
