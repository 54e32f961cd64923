"""Precision and recall of the selected terms of one dimension, as in `recall[COUNTRY]`."""

from __future__ import annotations

from pytest_queryeval.metric import metric
from pytest_queryeval.sdmx.scores import check_options, match_dimensions, precision_of, recall_of
from pytest_queryeval.selection import Selection

SDMX = frozenset({"sdmx"})


@metric(kinds=SDMX, check=check_options, parameter="dimension")
def precision(gold: Selection, predicted: Selection, *, dimension: str, by_dataset: bool = False) -> float | None:
    """The share of the dimension's selected terms that gold has.

    As in `macro_precision`; with `by_dataset` the dimension is named `DATASET|DIMENSION`, with the id that gold has for
    the dataset. 0 where nothing is selected and where gold has no terms of the dimension; None where neither side has
    any. In [0, 1].
    """
    matched = match_dimensions(gold, predicted, by_dataset=by_dataset).get(dimension)
    return None if matched is None else precision_of(matched)


@metric(kinds=SDMX, check=check_options, parameter="dimension")
def recall(gold: Selection, predicted: Selection, *, dimension: str, by_dataset: bool = False) -> float | None:
    """The share of gold's terms of the dimension that are selected, as `precision`.

    0 where nothing is selected; None where gold has no terms of the dimension. In [0, 1].
    """
    matched = match_dimensions(gold, predicted, by_dataset=by_dataset).get(dimension)
    return None if matched is None else recall_of(matched)
