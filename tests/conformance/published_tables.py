"""The scores of published evaluators on tables as tests need them: their names and scales, and where they differ."""

import pytest

from pytest_queryeval import METRICS

# Our names of what the records of the workbook's evaluator call otherwise, and the scale that they have there.
WORKBOOK = {
    "soft_f1_denodo": ("f1", 1),
    "subset_score_denodo": ("set_precision", 100),
    "value_overlap": ("percent_overlap", 100),
}


def workbook_scores(record):
    return {name: record[key] / scale for name, (key, scale) in WORKBOOK.items() if key in record}


def has_value(table):
    return any(cell is not None for row in table.rows for cell in row)


def holds_null(table):
    return any(cell is None for row in table.rows for cell in row)


def names_twice(table):
    return len(set(table.columns)) < len(table.columns)


def neither_has_values(name, gold, predicted):
    """D16: value_overlap published 0 where no side has a value; ours gives 1."""
    return name == "value_overlap" and not has_value(gold) and not has_value(predicted)


def columns_collapse(gold, predicted):
    """D20: the workbook's code keeps one of several columns of the same name."""
    return names_twice(gold) or names_twice(predicted)


def nulls_as_in_pandas_3(name, gold, predicted):
    """D20: records written with pandas 3 have other text in columns with NULL, which value_overlap does not read."""
    return name != "value_overlap" and (holds_null(gold) or holds_null(predicted))


def differing(name, gold, predicted, expected):
    return METRICS[name].function(gold, predicted) != pytest.approx(expected, abs=1e-9)
