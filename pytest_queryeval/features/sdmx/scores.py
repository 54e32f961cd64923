"""Pairs terms of gold with predicted terms; computes precision and recall of dimensions, over them, and of datasets."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Literal, TypeAlias

from pytest_queryeval.core.errors import SettingError
from pytest_queryeval.core.json_value import JsonValue
from pytest_queryeval.core.mappings import excluding, grouped
from pytest_queryeval.core.table import Selection, Term

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
        """The harmonic mean of precision and recall; 0 if both are 0."""
        total = self.precision + self.recall
        return 2 * self.precision * self.recall / total if total else 0.0


def check_options(options: Mapping[str, JsonValue]) -> None:
    """Raise `SettingError` unless `by_dataset` is true or false and `macro` is `union` or `target`, if set."""
    if type(options.get("by_dataset", False)) is not bool:
        raise SettingError("by_dataset", "`by_dataset` must be true or false")
    if options.get("macro", "union") not in MACROS:
        raise SettingError("macro", f"`macro` must be {' or '.join(MACROS)}")


def dataset_ids(selection: Selection) -> tuple[str, ...]:
    """Return the distinct ids of the selection's datasets, including datasets without terms."""
    return tuple(dict.fromkeys(dataset.id for dataset in selection.datasets))


def rename_as_in_gold(gold: Selection) -> Callable[[str], str]:
    """Return a function from a dataset id to the id that gold has for it, or to the same id if gold has none.

    Gold's `A:B` stands for all its versions, such as `A:B(9.0.0)`, except versions that gold names; an id of gold with
    a version stands for that version only.
    """
    gold_ids = set(dataset_ids(gold))

    def rename(dataset: str) -> str:
        version_match = None if dataset in gold_ids else _VERSIONED.fullmatch(dataset)
        return version_match[1] if version_match and version_match[1] in gold_ids else dataset

    return rename


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchedTerms:
    """The distinct terms of gold and of a prediction in a dimension, by whether they match."""

    true_positives: tuple[Term, ...]
    """Terms of gold that are selected, with the id and name of gold, or of predicted if gold has none."""
    false_negatives: tuple[Term, ...]
    """Terms of gold that are not selected."""
    false_positives: tuple[Term, ...]
    """Selected terms that are not in gold."""


def match_terms(gold: Sequence[Term], predicted: Sequence[Term], *, by_id: bool = False) -> MatchedTerms:
    """Return the terms of a dimension, matched one to one: as many as possible, with few missing among equals.

    Ids and names are compared exactly, including case and spaces. If a term of gold has only an id or only a name, only
    that is compared; with `by_id`, names are compared only if gold has no id. A name that predicted has from the
    structure (a label, or with `by_id` any name) is replaced by gold's name for that code.

    Terms that agree in all compared parts count once. A term of predicted with only an id or only a name also counts
    once with a term that has both. So does such a term of gold unless it matches another term: a country with an id and
    a name in one dataset, and only its id in the next, is not a second country.
    """
    gold_terms, predicted_terms = (
        _distinct_terms(gold, by_id),
        _distinct_terms(_with_names_of_gold(predicted, gold, by_id), by_id),
    )
    predicted_terms = _without_keys(predicted_terms, _partial_terms(predicted_terms))
    pairs = {key: key for key in gold_terms if key in predicted_terms}
    implied_keys = _partial_terms(gold_terms)
    pairs |= _partial_pairs(
        _without_keys(gold_terms, pairs), _without_keys(predicted_terms, pairs.values()), implied_keys
    )
    return MatchedTerms(
        true_positives=tuple(
            Term(
                id=predicted_term.id if gold_term.id is None else gold_term.id,
                name=predicted_term.name if gold_term.name is None else gold_term.name,
                label=predicted_term.label if gold_term.label is None else gold_term.label,
            )
            for gold_term, predicted_term in (
                (term, predicted_terms[pairs[key]]) for key, term in gold_terms.items() if key in pairs
            )
        ),
        false_negatives=tuple(
            term for key, term in _without_keys(gold_terms, pairs).items() if key not in implied_keys
        ),
        false_positives=tuple(_without_keys(predicted_terms, pairs.values()).values()),
    )


def collapse_spaces(name: str | None) -> str:
    """Return a name with single spaces, without spaces at its ends; empty for None.

    Names in codelists may end in spaces, which texts of a suite lose.
    """
    return " ".join((name or "").split())


def _with_names_of_gold(predicted: Sequence[Term], gold: Sequence[Term], by_id: bool) -> Iterator[Term]:
    """Yield the terms of predicted with the names of gold instead of names from the structure.

    Gold's name is that of the same id, or of a term without an id whose name differs only in spaces.
    """
    names: Mapping[str | None, str] = {
        term.id: term.name for term in gold if term.id is not None and term.name is not None
    }
    names_without_ids = [term.name for term in gold if term.id is None and term.name is not None]
    spellings = {collapse_spaces(name): name for name in names_without_ids} | {name: name for name in names_without_ids}
    for term in predicted:
        structure_name = term.label if term.name is None else term.name if by_id else None
        if structure_name is None:
            yield term
            continue
        name = spellings.get(structure_name, spellings.get(collapse_spaces(structure_name)))
        yield replace(term, name=names.get(term.id, name) if term.name is None else name or term.name)


def _distinct_terms(terms: Iterable[Term], by_id: bool) -> dict[Term, Term]:
    """Return terms by their compared parts; for an id with several names, keep the alphabetically first name."""
    if not by_id:
        return {term: term for term in terms}
    terms_by_key: dict[Term, Term] = {}
    for term in terms:
        key = term if term.id is None else Term(term.id, None)
        terms_by_key[key] = min(
            terms_by_key.get(key, term), term, key=lambda candidate: (candidate.name is None, candidate.name or "")
        )
    return terms_by_key


def _without_keys(terms: Mapping[Term, Term], keys: Iterable[Term]) -> dict[Term, Term]:
    dropped_keys = set(keys)
    return excluding(terms, dropped_keys)


def _partial_terms(terms: Mapping[Term, Term]) -> set[Term]:
    """Return the terms that have only the id, or only the name, of another term that has both."""
    incomplete_terms = {key: term for key, term in terms.items() if term.id is None or term.name is None}
    if not incomplete_terms:
        return set()
    complete_terms = [term for term in terms.values() if term.id is not None and term.name is not None]
    parts = {Term(term.id, None) for term in complete_terms} | {Term(None, term.name) for term in complete_terms}
    return {key for key, term in incomplete_terms.items() if term in parts}


def _partial_pairs(
    gold_terms: Iterable[Term], predicted_terms: Mapping[Term, Term], implied: Collection[Term]
) -> dict[Term, Term]:
    """Return pairs of gold's terms with only an id or a name, as many as possible, and predicted terms that have it.

    If there is a choice, a term without partner is one of `implied`, because these do not count then. A term of gold
    may take the partner of another term that can take the next (augmenting paths).
    """
    fitting = grouped(
        (part, key) for key, term in predicted_terms.items() for part in (Term(term.id, None), Term(None, term.name))
    )
    pairs: dict[Term, Term] = {}
    taken: dict[Term, Term] = {}
    for start in sorted(gold_terms, key=lambda term: (term in implied, len(fitting.get(term, ())))):
        asking, asked_by = [start], dict[Term, Term]()
        for term in asking:
            new_keys = [key for key in fitting.get(term, ()) if key not in asked_by]
            asked_by |= dict.fromkeys(new_keys, term)
            free: Term | None = next((key for key in new_keys if key not in taken), None)
            if free is None:
                asking += [taken[key] for key in new_keys]
                continue
            while free is not None:
                taker = asked_by[free]
                taken[free], pairs[taker], free = taker, free, pairs.get(taker)
            break
    return pairs


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

    Dimensions of the same name are one dimension, regardless of their datasets. With `by_dataset`, each dataset has
    dimensions of its own, called `DATASET|DIMENSION` with gold's id of the dataset. If one of the selections is given
    in codes, ids are compared.
    """
    rename = rename_as_in_gold(gold) if by_dataset else None
    gold_terms, predicted_terms = _terms_by_dimension(gold, rename), _terms_by_dimension(predicted, rename)
    by_id = gold.by_id or predicted.by_id
    return {
        name: match_terms(gold_terms.get(name, ()), predicted_terms.get(name, ()), by_id=by_id)
        for name in dict.fromkeys([*gold_terms, *predicted_terms])
    }


def macro_ratios(dimensions: Mapping[str, MatchedTerms], macro: Macro = "union") -> Ratios:
    """Return the mean precision over the dimensions, and the mean recall over the dimensions that gold has.

    With `target`, precision is also over the dimensions that gold has. If gold has none, recall is 1, and precision is
    0 if any is selected, else 1.
    """
    recalls = [recall for matched_terms in dimensions.values() if (recall := recall_of(matched_terms)) is not None]
    if not recalls:
        return Ratios(precision=float(not dimensions), recall=1.0)
    counted_dimensions = [
        matched_terms for matched_terms in dimensions.values() if macro == "union" or in_target(matched_terms)
    ]
    return Ratios(precision=fmean(map(precision_of, counted_dimensions)), recall=fmean(recalls))


def dataset_ratios(gold: Selection, predicted: Selection) -> Ratios:
    """Return the share of predicted's datasets that gold has, and the share of gold's datasets that are selected.

    Several versions of a dataset count once if gold has it without a version. Without datasets in gold, recall is 1,
    and precision is 0 if any is selected, else 1. If gold has datasets and none is selected, precision is 0.
    """
    gold_ids = set(dataset_ids(gold))
    predicted_ids = set(map(rename_as_in_gold(gold), dataset_ids(predicted)))
    if not gold_ids:
        return Ratios(precision=float(not predicted_ids), recall=1.0)
    shared_count = len(gold_ids & predicted_ids)
    return Ratios(
        precision=shared_count / len(predicted_ids) if predicted_ids else 0.0, recall=shared_count / len(gold_ids)
    )


def _terms_by_dimension(selection: Selection, rename: Callable[[str], str] | None) -> dict[str, list[Term]]:
    terms_by_dimension: defaultdict[str, list[Term]] = defaultdict(list)
    for dataset in selection.datasets:
        prefix = "" if rename is None else f"{rename(dataset.id)}|"
        for dimension in dataset.dimensions:
            if dimension.terms:
                terms_by_dimension[prefix + dimension.name].extend(dimension.terms)
    return terms_by_dimension
