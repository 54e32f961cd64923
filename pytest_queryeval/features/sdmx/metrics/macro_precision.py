"""Precision and recall of the selected terms of each dimension, as means over the dimensions."""

from __future__ import annotations

from pytest_queryeval.core.metric import Score, metric
from pytest_queryeval.core.selection import Selection
from pytest_queryeval.features.sdmx.details import SelectionDetails, details_of
from pytest_queryeval.features.sdmx.scores import Macro, Ratios, check_options, macro_ratios, match_dimensions


@metric(answers=Selection, check=check_options)
def macro_precision(
    gold: Selection, predicted: Selection, *, by_dataset: bool = False, macro: Macro = "union"
) -> Score:
    """Return the mean over the dimensions of the share of selected terms that gold has.

    Terms are matched as in `match_terms`, by dimension, whatever their datasets; with `by_dataset` each
    dataset has its own dimensions, and gold's `A:B` is also predicted's `A:B(9.0.0)`. A dimension of gold's that is not
    selected has precision 0, and so has one that is selected and not in gold, which `macro="target"` leaves out of the
    mean. Without terms in gold 0 where any are selected, else 1. In [0, 1]. `details.dimensions` has the terms and
    figures of each dimension, `details.indicator_selection` the same as text.
    Source: StatGPT's evaluation of data queries, with values for its undefined ratios.

    >>> from pytest_queryeval.core.selection import DatasetSelection, DimensionSelection, Term
    >>> def selected(*ids):
    ...     terms = tuple(Term(id, None) for id in ids)
    ...     return Selection((DatasetSelection("IMF.RES:WEO", (DimensionSelection("INDICATOR", terms),)),))
    >>> round(macro_precision(selected("GDP", "GDPPC"), selected("GDP", "GDPPC", "GDP_CONST")).value, 2)
    0.67
    """
    ratios, details = _scored(gold, predicted, by_dataset, macro)
    return Score(value=ratios.precision, details=details)


@metric(answers=Selection, check=check_options)
def macro_recall(gold: Selection, predicted: Selection, *, by_dataset: bool = False, macro: Macro = "union") -> Score:
    """Return the mean over gold's dimensions of the share of gold's terms that are selected.

    As `macro_precision`. A dimension that is not in gold has no recall, whatever `macro` is, an option so that the
    three metrics can be set alike. Without terms in gold 1. In [0, 1].
    """
    ratios, details = _scored(gold, predicted, by_dataset, macro)
    return Score(value=ratios.recall, details=details)


@metric(answers=Selection, check=check_options)
def macro_f1(gold: Selection, predicted: Selection, *, by_dataset: bool = False, macro: Macro = "union") -> Score:
    """Return 2·p·r / (p + r) of `macro_precision` p and `macro_recall` r; 0 where both are 0. In [0, 1]."""
    ratios, details = _scored(gold, predicted, by_dataset, macro)
    return Score(value=ratios.f1, details=details)


def _scored(gold: Selection, predicted: Selection, by_dataset: bool, macro: Macro) -> tuple[Ratios, SelectionDetails]:
    dimensions = match_dimensions(gold, predicted, by_dataset=by_dataset)
    return macro_ratios(dimensions, macro), details_of(dimensions)
