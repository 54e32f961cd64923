"""Precision and recall of a selection: a dimension, over all dimensions, and of its datasets."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import fmean
from typing import Any, Literal, TypeAlias

from pytest_queryeval.core.errors import SettingError
from pytest_queryeval.core.selection import Selection, Term
from pytest_queryeval.languages.sdmx.datasets import as_gold_says, dataset_ids
from pytest_queryeval.languages.sdmx.matching import Matched, match_terms

Macro: TypeAlias = Literal["union", "target"]
MACROS = ("union", "target")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratios:
    """Precision and recall, both in [0, 1]."""

    precision: float
    recall: float

    @property
    def f1(self) -> float:
        """The harmonic mean of both, 0 where both are 0."""
        both = self.precision + self.recall
        return 2 * self.precision * self.recall / both if both else 0.0


def check_options(options: Mapping[str, Any]) -> None:
    """Raise `SettingError` unless `by_dataset` is true or false and `macro` is `union` or `target`, where stated."""
    if type(options.get("by_dataset", False)) is not bool:
        raise SettingError("by_dataset", "'by_dataset' is neither true nor false")
    if options.get("macro", "union") not in MACROS:
        raise SettingError("macro", f"'macro' is not {' or '.join(MACROS)}")


def in_target(matched: Matched) -> bool:
    """Whether gold has terms of the dimension."""
    return bool(matched.true_positives or matched.false_negatives)


def precision_of(matched: Matched) -> float:
    """The share of the selected terms that gold has; 0 where none is selected."""
    right, wrong = len(matched.true_positives), len(matched.false_positives)
    return right / (right + wrong) if right + wrong else 0.0


def recall_of(matched: Matched) -> float | None:
    """The share of gold's terms that are selected; None where gold has none."""
    found, lost = len(matched.true_positives), len(matched.false_negatives)
    return found / (found + lost) if found + lost else None


def match_dimensions(gold: Selection, predicted: Selection, *, by_dataset: bool = False) -> dict[str, Matched]:
    """The matched terms of each dimension that has terms on either side, gold's dimensions first.

    Dimensions of the same name are one, whatever their datasets. With `by_dataset` each dataset has its own, called
    `DATASET|DIMENSION` with the id that gold has for the dataset. Where one of the selections is stated in codes, ids
    are compared.
    """
    said = as_gold_says(gold)
    golds, others = (_terms(selection, said if by_dataset else None) for selection in (gold, predicted))
    by_id = gold.by_id or predicted.by_id
    return {
        name: match_terms(golds.get(name, ()), others.get(name, ()), by_id=by_id)
        for name in dict.fromkeys([*golds, *others])
    }


def macro_ratios(dimensions: Mapping[str, Matched], macro: Macro = "union") -> Ratios:
    """The means of precision and of recall over the dimensions; recall over those that gold has.

    Precision is over all dimensions, or with `target` over those that gold has. Where gold has none, recall is 1, and
    precision is 0 if any is selected, else 1.
    """
    recalls = [recall for matched in dimensions.values() if (recall := recall_of(matched)) is not None]
    if not recalls:
        return Ratios(precision=float(not dimensions), recall=1.0)
    counted = [matched for matched in dimensions.values() if macro == "union" or in_target(matched)]
    return Ratios(precision=fmean(map(precision_of, counted)), recall=fmean(recalls))


def dataset_ratios(gold: Selection, predicted: Selection) -> Ratios:
    """The shares of predicted's datasets that gold has, and of gold's that are selected.

    Several versions of a dataset that gold has without one are one. The ratios of 0 datasets are those of
    `macro_ratios` without dimensions.
    """
    golds = set(dataset_ids(gold))
    others = set(map(as_gold_says(gold), dataset_ids(predicted)))
    if not golds:
        return Ratios(precision=float(not others), recall=1.0)
    shared = len(golds & others)
    return Ratios(precision=shared / len(others) if others else 0.0, recall=shared / len(golds))


def _terms(selection: Selection, dataset_of: Callable[[str], str] | None) -> dict[str, list[Term]]:
    found: defaultdict[str, list[Term]] = defaultdict(list)
    for dataset in selection.datasets:
        of_dataset = "" if dataset_of is None else f"{dataset_of(dataset.id)}|"
        for dimension in dataset.dimensions:
            if dimension.terms:
                found[of_dataset + dimension.name].extend(dimension.terms)
    return found
