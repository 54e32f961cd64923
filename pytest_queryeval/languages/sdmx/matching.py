"""Which terms of a dimension are selected as they should be."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from pytest_queryeval.comparison.assignment import most_pairs
from pytest_queryeval.core.selection import Term


@dataclass(frozen=True, slots=True, kw_only=True)
class Matched:
    """Gold's terms that are selected, gold's that are not, and what is selected besides, each term once.

    A true positive is shown as gold says it, and where gold is silent as predicted does.
    """

    true_positives: tuple[Term, ...]
    false_negatives: tuple[Term, ...]
    false_positives: tuple[Term, ...]


def match_terms(gold: Sequence[Term], predicted: Sequence[Term], *, by_id: bool = False) -> Matched:
    """Match the terms of one dimension, one to one and as many as can be.

    Ids and names are compared exactly, case and blanks included. Where gold gives only one of the two, only that one is
    compared; with `by_id` names are compared only where gold gives no id. A name that predicted has from the structure
    (a label, or any with `by_id`) is the one that gold says for that code. Terms that agree in all that is compared are
    one. So are a term of predicted's and another that says only its id or only its name, and likewise two of gold's
    where the one that says less finds no term of its own: a country that is stated in full for one dataset and by its
    id for the next is no second country.
    """
    wanted, found = _distinct(gold, by_id), _distinct(_in_gold_s_words(predicted, gold, by_id), by_id)
    found = _without(found, _parts(found))
    pairs = {key: key for key in wanted if key in found}
    pairs |= _by_one_thing(_without(wanted, pairs), _without(found, pairs.values()))
    implied = _parts(wanted)
    return Matched(
        true_positives=tuple(_completed(wanted[key], found[pairs[key]]) for key in wanted if key in pairs),
        false_negatives=tuple(term for key, term in _without(wanted, pairs).items() if key not in implied),
        false_positives=tuple(_without(found, pairs.values()).values()),
    )


def trimmed(name: str | None) -> str:
    """A name without odd blanks: codelists have some at the ends of their names, which texts of a suite lose."""
    return " ".join((name or "").split())


def _in_gold_s_words(predicted: Sequence[Term], gold: Sequence[Term], by_id: bool) -> Iterator[Term]:
    """Predicted's terms, those whose names the structure told with gold's: nobody said the others."""
    names: Mapping[str | None, str] = {one.id: one.name for one in gold if one.id is not None and one.name is not None}
    alone = [one.name for one in gold if one.id is None and one.name is not None]
    fitting = {trimmed(name): name for name in alone} | {name: name for name in alone}
    for term in predicted:
        told = term.label if term.name is None else term.name if by_id else None
        if told is None:
            yield term
            continue
        name = fitting.get(told, fitting.get(trimmed(told)))
        yield replace(term, name=names.get(term.id, name) if term.name is None else name or term.name)


def _distinct(terms: Iterable[Term], by_id: bool) -> dict[Term, Term]:
    """What is compared, and the term that stands for it: of several names for an id the first of the alphabet."""
    if not by_id:
        return {term: term for term in terms}
    shown: dict[Term, Term] = {}
    for term in terms:
        key = term if term.id is None else Term(term.id, None)
        shown[key] = min(shown.get(key, term), term, key=lambda one: (one.name is None, one.name or ""))
    return shown


def _without(terms: Mapping[Term, Term], keys: Iterable[Term]) -> dict[Term, Term]:
    left_out = set(keys)
    return {key: term for key, term in terms.items() if key not in left_out}


def _parts(terms: Mapping[Term, Term]) -> set[Term]:
    """What says only the id, or only the name, of a term that has both."""
    part = {key: term for key, term in terms.items() if term.id is None or term.name is None}
    if not part:
        return set()
    whole = [term for term in terms.values() if term.id is not None and term.name is not None]
    said = {Term(term.id, None) for term in whole} | {Term(None, term.name) for term in whole}
    return {key for key, term in part.items() if term in said}


def _by_one_thing(wanted: Mapping[Term, Term], found: Mapping[Term, Term]) -> dict[Term, Term]:
    """As many pairs as can be of gold's terms that say one thing with predicted's that say it, too."""
    if not wanted:
        return {}
    fits = {key: fitting for key, term in found.items() if (fitting := _fitting(term, wanted))}
    if any(len(fitting) > 1 for fitting in fits.values()):
        return _searched(fits)
    first: dict[Term, Term] = {}
    for key, fitting in fits.items():
        first.setdefault(fitting[0], key)
    return first


def _searched(fits: Mapping[Term, Sequence[Term]]) -> dict[Term, Term]:
    golds, others = list(dict.fromkeys(chain.from_iterable(fits.values()))), list(fits)
    places = {key: place for place, key in enumerate(golds)}
    pairs = most_pairs([tuple(places[one] for one in fitting) for fitting in fits.values()], len(golds))
    return {golds[right]: others[left] for left, right in pairs}


def _fitting(term: Term, wanted: Mapping[Term, Term]) -> list[Term]:
    return [key for key in (Term(term.id, None), Term(None, term.name)) if key in wanted]


def _completed(gold: Term, predicted: Term) -> Term:
    return Term(
        id=predicted.id if gold.id is None else gold.id,
        name=predicted.name if gold.name is None else gold.name,
        label=predicted.label if gold.label is None else gold.label,
    )
