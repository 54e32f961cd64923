"""Pairs of the terms of gold and those that are selected."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from pytest_queryeval.comparison.graphs import most_pairs
from pytest_queryeval.core.table import Term


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchedTerms:
    """The terms of gold and of a prediction, each once."""

    true_positives: tuple[Term, ...]
    """Terms of gold that are selected, with the id and name of gold, or of predicted if gold has none."""
    false_negatives: tuple[Term, ...]
    """Terms of gold that are not selected."""
    false_positives: tuple[Term, ...]
    """Selected terms that are not in gold."""


def match_terms(gold: Sequence[Term], predicted: Sequence[Term], *, by_id: bool = False) -> MatchedTerms:
    """Match the terms of one dimension, one to one and as many as possible.

    Ids and names are compared exactly, including case and spaces. If a term of gold has only one of the two, only that
    one is compared; with `by_id` names are compared only if gold has no id. A name that predicted has from the
    structure (a label, or with `by_id` any name) is replaced by gold's name for that code.

    Terms that agree in all that is compared count once. A term of predicted with only an id or only a name also counts
    once with a term that has both, and so does a term of gold unless it matches another term: a country with an id and
    a name in one dataset, and only its id in the next, is not a second country.
    """
    gold_terms, predicted_terms = (
        _distinct_terms(gold, by_id),
        _distinct_terms(_with_names_of_gold(predicted, gold, by_id), by_id),
    )
    predicted_terms = _drop(predicted_terms, _partial_terms(predicted_terms))
    pairs = {key: key for key in gold_terms if key in predicted_terms}
    pairs |= _partial_pairs(_drop(gold_terms, pairs), _drop(predicted_terms, pairs.values()))
    implied_keys = _partial_terms(gold_terms)
    return MatchedTerms(
        true_positives=tuple(
            _merge(gold_terms[key], predicted_terms[pairs[key]]) for key in gold_terms if key in pairs
        ),
        false_negatives=tuple(term for key, term in _drop(gold_terms, pairs).items() if key not in implied_keys),
        false_positives=tuple(_drop(predicted_terms, pairs.values()).values()),
    )


def collapse_spaces(name: str | None) -> str:
    """Return a name with single spaces: names in codelists may end in spaces, which texts of a suite lose."""
    return " ".join((name or "").split())


def _with_names_of_gold(predicted: Sequence[Term], gold: Sequence[Term], by_id: bool) -> Iterator[Term]:
    """Yield the terms of predicted, with the names of gold in place of those from the structure."""
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
    """Return terms by what is compared of them; of several names for an id, keep the first in the alphabet."""
    if not by_id:
        return {term: term for term in terms}
    terms_by_key: dict[Term, Term] = {}
    for term in terms:
        key = term if term.id is None else Term(term.id, None)
        terms_by_key[key] = min(
            terms_by_key.get(key, term), term, key=lambda candidate: (candidate.name is None, candidate.name or "")
        )
    return terms_by_key


def _drop(terms: Mapping[Term, Term], keys: Iterable[Term]) -> dict[Term, Term]:
    dropped_keys = set(keys)
    return {key: term for key, term in terms.items() if key not in dropped_keys}


def _partial_terms(terms: Mapping[Term, Term]) -> set[Term]:
    """Return the terms that have only the id, or only the name, of a term that has both."""
    incomplete_terms = {key: term for key, term in terms.items() if term.id is None or term.name is None}
    if not incomplete_terms:
        return set()
    complete_terms = [term for term in terms.values() if term.id is not None and term.name is not None]
    parts = {Term(term.id, None) for term in complete_terms} | {Term(None, term.name) for term in complete_terms}
    return {key for key, term in incomplete_terms.items() if term in parts}


def _partial_pairs(gold_terms: Mapping[Term, Term], predicted_terms: Mapping[Term, Term]) -> dict[Term, Term]:
    """Pair as many terms of gold with only an id or a name as possible with terms of predicted that have it."""
    if not gold_terms:
        return {}
    gold_parts: dict[Term, list[Term]] = {}
    for key, term in predicted_terms.items():
        if parts_of_term := [part for part in (Term(term.id, None), Term(None, term.name)) if part in gold_terms]:
            gold_parts[key] = parts_of_term
    if all(len(parts_of_term) == 1 for parts_of_term in gold_parts.values()):
        first_keys: dict[Term, Term] = {}
        for key, parts_of_term in gold_parts.items():
            first_keys.setdefault(parts_of_term[0], key)
        return first_keys
    gold_keys, predicted_keys = list(dict.fromkeys(chain.from_iterable(gold_parts.values()))), list(gold_parts)
    places = {key: place for place, key in enumerate(gold_keys)}
    pairs = most_pairs(
        [tuple(places[part] for part in parts_of_term) for parts_of_term in gold_parts.values()], len(gold_keys)
    )
    return {gold_keys[gold_place]: predicted_keys[predicted_place] for predicted_place, gold_place in pairs}


def _merge(gold: Term, predicted: Term) -> Term:
    return Term(
        id=predicted.id if gold.id is None else gold.id,
        name=predicted.name if gold.name is None else gold.name,
        label=predicted.label if gold.label is None else gold.label,
    )
