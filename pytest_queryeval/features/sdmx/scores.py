"""Precision and recall of a selection: of a dimension, over all dimensions, and of its datasets."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import fmean
from typing import Literal, TypeAlias

from pytest_queryeval.core.errors import SettingError
from pytest_queryeval.core.json_value import JsonValue
from pytest_queryeval.core.table import Selection, Term
from pytest_queryeval.features.sdmx.matching import MatchedTerms, match_terms

Macro: TypeAlias = Literal["union", "target"]
MACROS = ("union", "target")
_VERSIONED = re.compile(r"(.+)\([^()]+\)", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratios:
    """Precision and recall, both in [0, 1]."""

    precision: float
    recall: float

    @property
    def f1(self) -> float:
        """Return the harmonic mean of both, 0 if both are 0."""
        total = self.precision + self.recall
        return 2 * self.precision * self.recall / total if total else 0.0


def check_options(options: Mapping[str, JsonValue]) -> None:
    """Raise `SettingError` unless `by_dataset` is true or false and `macro` is `union` or `target`, if set."""
    if type(options.get("by_dataset", False)) is not bool:
        raise SettingError("by_dataset", "'by_dataset' is neither true nor false")
    if options.get("macro", "union") not in MACROS:
        raise SettingError("macro", f"'macro' is not {' or '.join(MACROS)}")


def dataset_ids(selection: Selection) -> tuple[str, ...]:
    """Return the ids of the selection's datasets, each once, also of those without terms."""
    return tuple(dict.fromkeys(dataset.id for dataset in selection.datasets))


def rename_as_in_gold(gold: Selection) -> Callable[[str], str]:
    """Return a function from a dataset id to the id that gold has for it, or the same id if gold has none.

    Gold's `A:B` stands for all its versions, such as `A:B(9.0.0)`, except those that gold names; an id of gold with a
    version stands for that version only.
    """
    gold_ids = set(dataset_ids(gold))

    def rename(dataset: str) -> str:
        version_match = None if dataset in gold_ids else _VERSIONED.fullmatch(dataset)
        return version_match[1] if version_match and version_match[1] in gold_ids else dataset

    return rename


def in_target(matched_terms: MatchedTerms) -> bool:
    """Return whether gold has terms of the dimension."""
    return bool(matched_terms.true_positives or matched_terms.false_negatives)


def precision_of(matched_terms: MatchedTerms) -> float:
    """Return the share of the selected terms that gold has; 0 if none is selected."""
    hits, extras = len(matched_terms.true_positives), len(matched_terms.false_positives)
    return hits / (hits + extras) if hits + extras else 0.0


def recall_of(matched_terms: MatchedTerms) -> float | None:
    """Return the share of gold's terms that are selected; None if gold has none."""
    hits, misses = len(matched_terms.true_positives), len(matched_terms.false_negatives)
    return hits / (hits + misses) if hits + misses else None


def match_dimensions(gold: Selection, predicted: Selection, *, by_dataset: bool = False) -> dict[str, MatchedTerms]:
    """Return the matched terms of each dimension that has terms on either side, gold's dimensions first.

    Dimensions of the same name are one, whatever their datasets. With `by_dataset` each dataset has its own, called
    `DATASET|DIMENSION` with the id that gold has for the dataset. If one of the selections is given in codes, ids are
    compared.
    """
    rename = rename_as_in_gold(gold) if by_dataset else None
    gold_terms, predicted_terms = _terms(gold, rename), _terms(predicted, rename)
    by_id = gold.by_id or predicted.by_id
    return {
        name: match_terms(gold_terms.get(name, ()), predicted_terms.get(name, ()), by_id=by_id)
        for name in dict.fromkeys([*gold_terms, *predicted_terms])
    }


def macro_ratios(dimensions: Mapping[str, MatchedTerms], macro: Macro = "union") -> Ratios:
    """Return the means of precision and of recall over the dimensions; recall over those that gold has.

    Precision is over all dimensions, or with `target` over those that gold has. If gold has none, recall is 1, and
    precision is 0 if any is selected, else 1.
    """
    recalls = [recall for matched_terms in dimensions.values() if (recall := recall_of(matched_terms)) is not None]
    if not recalls:
        return Ratios(precision=float(not dimensions), recall=1.0)
    counted_dimensions = [
        matched_terms for matched_terms in dimensions.values() if macro == "union" or in_target(matched_terms)
    ]
    return Ratios(precision=fmean(map(precision_of, counted_dimensions)), recall=fmean(recalls))


def dataset_ratios(gold: Selection, predicted: Selection) -> Ratios:
    """Return the share of predicted's datasets that gold has, and of gold's that are selected.

    Several versions of a dataset count once if gold has it without a version. The ratios of 0 datasets are those of
    `macro_ratios` without dimensions.
    """
    gold_ids = set(dataset_ids(gold))
    predicted_ids = set(map(rename_as_in_gold(gold), dataset_ids(predicted)))
    if not gold_ids:
        return Ratios(precision=float(not predicted_ids), recall=1.0)
    shared_count = len(gold_ids & predicted_ids)
    return Ratios(
        precision=shared_count / len(predicted_ids) if predicted_ids else 0.0, recall=shared_count / len(gold_ids)
    )


def _terms(selection: Selection, rename: Callable[[str], str] | None) -> dict[str, list[Term]]:
    terms_by_dimension: defaultdict[str, list[Term]] = defaultdict(list)
    for dataset in selection.datasets:
        prefix = "" if rename is None else f"{rename(dataset.id)}|"
        for dimension in dataset.dimensions:
            if dimension.terms:
                terms_by_dimension[prefix + dimension.name].extend(dimension.terms)
    return terms_by_dimension
