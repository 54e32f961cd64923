"""Precision and recall of the selected terms of one dimension, as in `recall[COUNTRY]`."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_queryeval.core.metric import Score, metric
from pytest_queryeval.core.selection import Selection
from pytest_queryeval.features.sdmx.matching import Matched
from pytest_queryeval.features.sdmx.scores import check_options, in_target, match_dimensions, precision_of, recall_of
from pytest_queryeval.text.truncation import one_line

NAME_CHARACTERS = 80
MAX_NAMES = 12


@metric(answers=Selection, check=check_options, parameter="dimension")
def precision(gold: Selection, predicted: Selection, *, dimension: str, by_dataset: bool = False) -> Score:
    """Return the share of the dimension's selected terms that gold has.

    As in `macro_precision`; with `by_dataset` the dimension is named `DATASET|DIMENSION`, with the id that gold has for
    the dataset. 0 where nothing is selected and where gold has no terms of the dimension; None where neither side has
    any. In [0, 1].
    """
    dimensions = match_dimensions(gold, predicted, by_dataset=by_dataset)
    matched = dimensions.get(dimension)
    return _without(dimension, dimensions) if matched is None else Score(value=precision_of(matched))


@metric(answers=Selection, check=check_options, parameter="dimension")
def recall(gold: Selection, predicted: Selection, *, dimension: str, by_dataset: bool = False) -> Score:
    """Return the share of gold's terms of the dimension that are selected, as `precision`.

    0 where nothing is selected; None where gold has no terms of the dimension. In [0, 1].
    """
    dimensions = match_dimensions(gold, predicted, by_dataset=by_dataset)
    matched = dimensions.get(dimension)
    value = None if matched is None else recall_of(matched)
    return _without(dimension, dimensions) if value is None else Score(value=value)


def _without(dimension: str, dimensions: Mapping[str, Matched]) -> Score:
    gold_dimensions = sorted(
        one_line(name, NAME_CHARACTERS) for name, matched in dimensions.items() if in_target(matched)
    )
    dimension_list = (
        ", ".join(gold_dimensions[:MAX_NAMES]) + (", …" if len(gold_dimensions) > MAX_NAMES else "")
        if gold_dimensions
        else "no dimension"
    )
    return Score(
        value=None,
        details={"notes": [f"gold has no terms of {one_line(dimension, NAME_CHARACTERS)}, but of {dimension_list}"]},
    )
