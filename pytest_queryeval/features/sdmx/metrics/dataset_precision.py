"""Precision and recall of the selected datasets."""

from __future__ import annotations

from pytest_queryeval.core.metric import metric
from pytest_queryeval.core.selection import Selection
from pytest_queryeval.features.sdmx.scores import dataset_ratios


@metric(answers=Selection)
def dataset_precision(gold: Selection, predicted: Selection) -> float:
    """Return the share of selected datasets that gold has.

    Ids are compared exactly, but gold's `A:B` is also predicted's `A:B(9.0.0)`, and all versions of it are one; gold's
    id with a version is that version only. 0 where gold has datasets and none is selected; without datasets in gold 0
    where any is selected, else 1. In [0, 1].

    >>> from pytest_queryeval.core.selection import DatasetSelection
    >>> def selected(*ids):
    ...     return Selection(tuple(DatasetSelection(id, ()) for id in ids))
    >>> dataset_precision(selected("IMF.RES:WEO"), selected("IMF.RES:WEO(9.0.0)", "IMF.STA:CPI"))
    0.5
    """
    return dataset_ratios(gold, predicted).precision


@metric(answers=Selection)
def dataset_recall(gold: Selection, predicted: Selection) -> float:
    """Return the share of gold's datasets that are selected, ids compared as in `dataset_precision`.

    1 without datasets in gold. In [0, 1].
    """
    return dataset_ratios(gold, predicted).recall
