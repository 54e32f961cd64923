"""Metrics of selections: precision and recall of datasets, of all dimensions, and of a dimension: `recall[COUNTRY]`."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_queryeval.core.metric import Score, metric
from pytest_queryeval.core.table import Selection
from pytest_queryeval.features.sdmx.details import SelectionDetails, details_of
from pytest_queryeval.features.sdmx.scores import (
    Macro,
    MatchedTerms,
    Ratios,
    check_options,
    dataset_ratios,
    in_target,
    macro_ratios,
    match_dimensions,
    precision_of,
    recall_of,
)
from pytest_queryeval.text.formatting import one_line


@metric(answers=Selection)
def dataset_precision(gold: Selection, predicted: Selection) -> float:
    """Return the share of selected datasets that gold has.

    Ids are compared exactly, except that gold's `A:B` stands for all its versions, such as `A:B(9.0.0)`, which count
    once; an id of gold with a version stands for that version only. The score is from 0 to 1. It is 1 if neither answer
    has datasets, and 0 if only one has.

    >>> from pytest_queryeval.core.table import DatasetSelection
    >>> def selected(*ids):
    ...     return Selection(tuple(DatasetSelection(id, ()) for id in ids))
    >>> dataset_precision(selected("IMF.RES:WEO"), selected("IMF.RES:WEO(9.0.0)", "IMF.STA:CPI"))
    0.5
    """
    return dataset_ratios(gold, predicted).precision


@metric(answers=Selection)
def dataset_recall(gold: Selection, predicted: Selection) -> float:
    """Return the share of gold's datasets that are selected, ids compared as in `dataset_precision`.

    The score is from 0 to 1. It is 1 if gold has no datasets, whatever is selected.
    """
    return dataset_ratios(gold, predicted).recall


@metric(answers=Selection, check=check_options)
def macro_precision(
    gold: Selection, predicted: Selection, *, by_dataset: bool = False, macro: Macro = "union"
) -> Score:
    """Return the share of selected terms that gold has, as the mean over the dimensions.

    Terms are matched as in `match_terms`, by dimension, whatever their datasets. With `by_dataset`, each dataset has
    dimensions of its own, and gold's `A:B` is also predicted's `A:B(9.0.0)`. A dimension that only gold or only
    predicted has counts as precision 0; `macro="target"` leaves dimensions that only predicted has out of the mean. If
    gold has no terms, the value is 0 if any are selected, else 1. The value is from 0 to 1. `details.dimensions` has
    the terms and figures of each dimension, `details.indicator_selection` has them as text. A note says if terms only
    match across datasets. Source: StatGPT's evaluation of data queries, with values for its undefined ratios.

    >>> from pytest_queryeval.core.table import DatasetSelection, DimensionSelection, Term
    >>> def selected(*ids):
    ...     terms = tuple(Term(id, None) for id in ids)
    ...     return Selection((DatasetSelection("IMF.RES:WEO", (DimensionSelection("INDICATOR", terms),)),))
    >>> round(macro_precision(selected("GDP", "GDPPC"), selected("GDP", "GDPPC", "GDP_CONST")).value, 2)
    0.67
    """
    ratios, details = _score(gold, predicted, by_dataset, macro)
    return Score(value=ratios.precision, details=details)


@metric(answers=Selection, check=check_options)
def macro_recall(gold: Selection, predicted: Selection, *, by_dataset: bool = False, macro: Macro = "union") -> Score:
    """Return the share of gold's terms that are selected, as the mean over gold's dimensions.

    Terms are matched as in `macro_precision`. `macro` changes nothing, because a dimension that gold lacks has no
    recall; it is accepted so that the three metrics can have the same options. The value is from 0 to 1. It is 1 if
    gold has no terms, whatever is selected.
    """
    ratios, details = _score(gold, predicted, by_dataset, macro)
    return Score(value=ratios.recall, details=details)


@metric(answers=Selection, check=check_options)
def macro_f1(gold: Selection, predicted: Selection, *, by_dataset: bool = False, macro: Macro = "union") -> Score:
    """Return 2·p·r / (p + r) of `macro_precision` p and `macro_recall` r; 0 if both are 0."""
    ratios, details = _score(gold, predicted, by_dataset, macro)
    return Score(value=ratios.f1, details=details)


def _score(gold: Selection, predicted: Selection, by_dataset: bool, macro: Macro) -> tuple[Ratios, SelectionDetails]:
    dimensions = match_dimensions(gold, predicted, by_dataset=by_dataset)
    details = details_of(dimensions)
    is_pooled = not by_dataset and len(gold.datasets) > 1
    if is_pooled and _all_match(dimensions) and not _all_match(match_dimensions(gold, predicted, by_dataset=True)):
        details["notes"] = [*details.get("notes", ()), POOLED]
    return macro_ratios(dimensions, macro), details


def _all_match(dimensions: Mapping[str, MatchedTerms]) -> bool:
    return not any(terms.false_negatives or terms.false_positives for terms in dimensions.values())


NAME_CHARACTERS = 80
MAX_NAMES = 12
POOLED = (
    "some terms are selected in another dataset than in the gold answer, which the option `by_dataset` counts: "
    "`options: {sdmx: {by_dataset: true}}`"
)


@metric(answers=Selection, check=check_options, parameter="dimension")
def precision(gold: Selection, predicted: Selection, *, dimension: str, by_dataset: bool = False) -> Score:
    """Return the share of the dimension's selected terms that gold has.

    Terms are matched as in `macro_precision`. With `by_dataset`, the dimension is named `DATASET|DIMENSION`, with
    gold's id of the dataset. The value is 0 if only one side has terms of the dimension; it is None, with a note, if
    neither side has any. Values are from 0 to 1.
    """
    dimensions = match_dimensions(gold, predicted, by_dataset=by_dataset)
    matched_terms = dimensions.get(dimension)
    return _no_score(dimension, dimensions) if matched_terms is None else Score(value=precision_of(matched_terms))


@metric(answers=Selection, check=check_options, parameter="dimension")
def recall(gold: Selection, predicted: Selection, *, dimension: str, by_dataset: bool = False) -> Score:
    """Return the share of gold's terms of the dimension that are selected, as `precision`.

    The value is 0 if nothing is selected; it is None, with a note, if gold has no terms of the dimension. Values
    are from 0 to 1.
    """
    dimensions = match_dimensions(gold, predicted, by_dataset=by_dataset)
    matched_terms = dimensions.get(dimension)
    value = None if matched_terms is None else recall_of(matched_terms)
    return _no_score(dimension, dimensions) if value is None else Score(value=value)


def _no_score(dimension: str, dimensions: Mapping[str, MatchedTerms]) -> Score:
    gold_dimensions = sorted(
        one_line(name, NAME_CHARACTERS) for name, matched_terms in dimensions.items() if in_target(matched_terms)
    )
    dimension_list = (
        ", ".join(gold_dimensions[:MAX_NAMES]) + (", …" if len(gold_dimensions) > MAX_NAMES else "")
        if gold_dimensions
        else "no dimension"
    )
    return Score(
        value=None,
        details={
            "notes": [
                f"the gold answer has no terms of {one_line(dimension, NAME_CHARACTERS)}, but of {dimension_list}"
            ]
        },
    )
