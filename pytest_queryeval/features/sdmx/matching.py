"""Matches between the terms of gold and those that are selected."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from pytest_queryeval.comparison.graphs import most_pairs
from pytest_queryeval.core.selection import Term


@dataclass(frozen=True, slots=True, kw_only=True)
class Matched:
    """The terms of gold and of a prediction, each once."""

    true_positives: tuple[Term, ...]
    """Terms of gold that are selected, with the id and name of gold, or of predicted where gold has none."""
    false_negatives: tuple[Term, ...]
    """Terms of gold that are not selected."""
    false_positives: tuple[Term, ...]
    """Selected terms that are not in gold."""


def match_terms(gold: Sequence[Term], predicted: Sequence[Term], *, by_id: bool = False) -> Matched:
    """Match the terms of one dimension, one to one and as many as possible.

    Ids and names are compared exactly, including case and spaces. Where gold has only one of the two, only that one is
    compared; with `by_id` names are compared only where gold has no id. A name that predicted has from the structure (a
    label, or any with `by_id`) is replaced by the one that gold has for that code. Terms that agree in all that is
    compared are one. So are a term of predicted and another with only its id or only its name, and likewise two of
    gold where the shorter one matches no other term: a country with id and name in one dataset and its id alone in the
    next is not a second country.
    """
    gold_terms, predicted_terms = _distinct(gold, by_id), _distinct(_with_names_of_gold(predicted, gold, by_id), by_id)
    predicted_terms = _without(predicted_terms, _parts(predicted_terms))
    pairs = {key: key for key in gold_terms if key in predicted_terms}
    pairs |= _partial_pairs(_without(gold_terms, pairs), _without(predicted_terms, pairs.values()))
    implied = _parts(gold_terms)
    return Matched(
        true_positives=tuple(
            _completed(gold_terms[key], predicted_terms[pairs[key]]) for key in gold_terms if key in pairs
        ),
        false_negatives=tuple(term for key, term in _without(gold_terms, pairs).items() if key not in implied),
        false_positives=tuple(_without(predicted_terms, pairs.values()).values()),
    )


def collapse_spaces(name: str | None) -> str:
    """Return a name with single spaces: names in codelists may end in spaces, which texts of a suite lose."""
    return " ".join((name or "").split())


def _with_names_of_gold(predicted: Sequence[Term], gold: Sequence[Term], by_id: bool) -> Iterator[Term]:
    """Yield the terms of predicted, with the names of gold in place of those from the structure."""
    names: Mapping[str | None, str] = {
        term.id: term.name for term in gold if term.id is not None and term.name is not None
    }
    alone = [term.name for term in gold if term.id is None and term.name is not None]
    fitting = {collapse_spaces(name): name for name in alone} | {name: name for name in alone}
    for term in predicted:
        of_structure = term.label if term.name is None else term.name if by_id else None
        if of_structure is None:
            yield term
            continue
        name = fitting.get(of_structure, fitting.get(collapse_spaces(of_structure)))
        yield replace(term, name=names.get(term.id, name) if term.name is None else name or term.name)


def _distinct(terms: Iterable[Term], by_id: bool) -> dict[Term, Term]:
    """Return each compared key with its term: of several names for an id the first in the alphabet."""
    if not by_id:
        return {term: term for term in terms}
    terms_by_key: dict[Term, Term] = {}
    for term in terms:
        key = term if term.id is None else Term(term.id, None)
        terms_by_key[key] = min(
            terms_by_key.get(key, term), term, key=lambda candidate: (candidate.name is None, candidate.name or "")
        )
    return terms_by_key


def _without(terms: Mapping[Term, Term], keys: Iterable[Term]) -> dict[Term, Term]:
    left_out = set(keys)
    return {key: term for key, term in terms.items() if key not in left_out}


def _parts(terms: Mapping[Term, Term]) -> set[Term]:
    """Return the terms that have only the id, or only the name, of a term that has both."""
    incomplete = {key: term for key, term in terms.items() if term.id is None or term.name is None}
    if not incomplete:
        return set()
    complete = [term for term in terms.values() if term.id is not None and term.name is not None]
    parts = {Term(term.id, None) for term in complete} | {Term(None, term.name) for term in complete}
    return {key for key, term in incomplete.items() if term in parts}


def _partial_pairs(gold_terms: Mapping[Term, Term], predicted_terms: Mapping[Term, Term]) -> dict[Term, Term]:
    """Return as many pairs as possible of gold's terms with only an id or a name and predicted's that have it."""
    if not gold_terms:
        return {}
    fits: dict[Term, list[Term]] = {}
    for key, term in predicted_terms.items():
        if fitting := [part for part in (Term(term.id, None), Term(None, term.name)) if part in gold_terms]:
            fits[key] = fitting
    if all(len(fitting) == 1 for fitting in fits.values()):
        first: dict[Term, Term] = {}
        for key, fitting in fits.items():
            first.setdefault(fitting[0], key)
        return first
    gold_keys, predicted_keys = list(dict.fromkeys(chain.from_iterable(fits.values()))), list(fits)
    places = {key: place for place, key in enumerate(gold_keys)}
    pairs = most_pairs([tuple(places[part] for part in fitting) for fitting in fits.values()], len(gold_keys))
    return {gold_keys[gold_place]: predicted_keys[predicted_place] for predicted_place, gold_place in pairs}


def _completed(gold: Term, predicted: Term) -> Term:
    return Term(
        id=predicted.id if gold.id is None else gold.id,
        name=predicted.name if gold.name is None else gold.name,
        label=predicted.label if gold.label is None else gold.label,
    )
