"""Finds what a selection names and its structure lacks, and what was probably meant; adds the names of codes."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, islice
from typing import TypeAlias

from pytest_queryeval.core.mappings import grouped
from pytest_queryeval.core.table import Selection, Term
from pytest_queryeval.features.sdmx.scores import collapse_spaces
from pytest_queryeval.features.sdmx.structure import TIME, Datasets, Structure, codes_of
from pytest_queryeval.text.formatting import one_line

MAX_SENTENCES = 50
MAX_CHARACTERS = 80  # of an id or a name
MAX_LISTED = 12  # known ids
MAX_WORD_CHARACTERS = 100  # of a word that is looked up
MAX_EDITS = 20_000
MAX_COMPARED = 500  # words that difflib compares with one


def violations(selection: Selection, structure: Structure) -> tuple[str, ...]:
    """Return a sentence for each dataset, dimension and code that the structure lacks, with the nearest known id.

    A term without an id is looked up by its name. A name that differs from that of its id is reported too, unless only
    spaces differ, or the selection is given in codes. `A:B(9.0.0)` is any version of `A:B`. Time is not checked, nor
    are codes of dimensions without a codelist. After MAX_SENTENCES sentences, a last sentence says how many were left
    out.
    """
    problems = _problems(selection, structure)
    sentences = tuple(
        sentence if known_ids is None else sentence + known_ids.hint(term)
        for sentence, known_ids, term in islice(problems, MAX_SENTENCES)
    )
    unlisted_count = sum(1 for _ in problems)
    return (*sentences, f"and {unlisted_count:,} more") if unlisted_count else sentences


def add_labels(selection: Selection, structure: Structure) -> Selection:
    """Return the selection with names of codes from the structure as labels of terms that have only an id."""
    structure_datasets = Datasets(structure)
    datasets = []
    for dataset in selection.datasets:
        dataset_structure = structure_datasets.get(dataset.id)
        codes = {} if dataset_structure is None else codes_of(dataset_structure)
        dimensions = []
        for dimension in dataset.dimensions:
            names = codes.get(dimension.name) or {}
            terms = tuple(
                replace(term, label=names[term.id])
                if term.name is None and term.id is not None and names.get(term.id)
                else term
                for term in dimension.terms
            )
            dimensions.append(replace(dimension, terms=terms))
        datasets.append(replace(dataset, dimensions=tuple(dimensions)))
    return replace(selection, datasets=tuple(datasets))


class Nearest:
    """Known words, among which it finds the nearest to a wrong word, ignoring case.

    Only the constructor goes through all words, so that thousands of lookups among 100,000 codes do not take minutes.
    """

    def __init__(self, words: Iterable[str]) -> None:
        self._words: dict[str, str] = {}
        for word in sorted(words):
            self._words.setdefault(word.casefold(), word)
        self._letters = sorted(set().union(*self._words))
        self._by_start = grouped((self._first_letters(word), word) for word in self._words)

    def to(self, word: str) -> str | None:
        """Return the known word that differs least; None if no word is near.

        Near words differ in case, in two swapped neighbours, in one letter, or by one letter more or less. If there are
        none, the result is the closest match of difflib among the words with the same first letters.
        """
        folded_word = word.casefold()
        if len(folded_word) > MAX_WORD_CHARACTERS:
            return None
        candidate_groups: list[Iterable[str]] = [[folded_word]]
        # Every word of one letter would be near to any other.
        if len(folded_word) > 1 and len(folded_word) * len(self._letters) <= MAX_EDITS:
            letters = self._letters
            splits = [(folded_word[:place], folded_word[place:]) for place in range(len(folded_word) + 1)]
            swaps = (before + after[1::-1] + after[2:] for before, after in splits if after[1:])
            replacements = (before + letter + after[1:] for before, after in splits if after for letter in letters)
            insertions = (before + letter + after for before, after in splits for letter in letters)
            deletions = (before + after[1:] for before, after in splits)
            candidate_groups += [swaps, replacements, chain(deletions, insertions)]
        for words in candidate_groups:
            if matches := sorted(candidate for candidate in words if candidate in self._words):
                return self._words[matches[0]]
        candidates = self._by_start.get(self._first_letters(folded_word), [])
        close_matches = difflib.get_close_matches(folded_word, candidates[:MAX_COMPARED], n=1)
        return self._words[close_matches[0]] if close_matches else None

    def _first_letters(self, word: str) -> str:
        """Return the first letters of a word, by which words are grouped; empty if there are few words in all."""
        return "" if len(self._words) <= MAX_COMPARED else word[:2]


# What is wrong with a term, the ids that it could have, None if the id is right, and the term.
_Problem: TypeAlias = "tuple[str, _KnownIds | None, Term]"


@dataclass(frozen=True)
class _KnownIds:
    """Known ids with their names, which are empty if unknown; indexes are built on first use."""

    names: Mapping[str, str]

    @cached_property
    def by_name(self) -> Mapping[str, str]:
        """The first id of each name; the names have single spaces."""
        return {collapse_spaces(name): id_ for id_, name in reversed(list(self.names.items())) if name}

    @cached_property
    def _near_ids(self) -> Nearest:
        return Nearest(self.names)

    @cached_property
    def _near_names(self) -> Nearest:
        return Nearest(self.by_name)

    def nearest(self, term: Term) -> str | None:
        """Return the id with the term's name, else the id nearest to its id, else the id with the nearest name.

        None if nothing is near.
        """
        name = collapse_spaces(term.name)
        near_id = self.by_name.get(name) or (term.id and self._near_ids.to(term.id))
        return near_id or self.by_name.get(self._near_names.to(name) or "" if name else "")

    def hint(self, term: Term) -> str:
        """Return the end of a sentence on a wrong term: the nearest id, else the known ids if they are few."""
        nearest_id = self.nearest(term)
        if nearest_id is not None:
            name = f" ({one_line(self.names[nearest_id], MAX_CHARACTERS)})" if self.names[nearest_id] else ""
            return f": did you mean {_quote(nearest_id)}{name}?"
        return f": choose from {', '.join(map(_quote, self.names))}" if 0 < len(self.names) <= MAX_LISTED else ""


def _problems(selection: Selection, structure: Structure) -> Iterator[_Problem]:
    structure_datasets = Datasets(structure)
    datasets = _KnownIds(dict.fromkeys(structure_datasets.ids, ""))
    codelists: dict[int, _KnownIds] = {}
    for dataset in selection.datasets:
        dataset_structure = structure_datasets.get(dataset.id)
        if dataset_structure is None:
            yield f"no dataset {_quote(dataset.id)}", datasets, Term(dataset.id, None)
            continue
        codes = codes_of(dataset_structure)
        dimensions = _KnownIds(dict.fromkeys(codes, ""))
        for dimension in dataset.dimensions:
            if dimension.name not in codes:
                if dimension.name != TIME:
                    sentence = f"no dimension {_quote(dimension.name)} in {dataset_structure.id}"
                    yield sentence, dimensions, Term(dimension.name, None)
            elif (names := codes[dimension.name]) is not None:
                codelist = codelists.setdefault(id(names), _KnownIds(names))
                for term in dimension.terms:
                    for sentence, known_ids in _code_problems(term, codelist, dataset_structure.id, selection.by_id):
                        yield f"{dimension.name}: {sentence}", known_ids, term


def _code_problems(term: Term, codes: _KnownIds, dataset: str, by_id: bool) -> Iterator[tuple[str, _KnownIds | None]]:
    """Yield a sentence if a term does not fit the codes, with the ids to suggest, None if the id is right."""
    name = codes.names.get(term.id or "")
    if term.id is None:
        if codes.by_name and collapse_spaces(term.name) not in codes.by_name:
            yield f"no code of {dataset} is called {_quote(term.name)}", codes
    elif name is None:
        yield f"no code {_quote(term.id)} in {dataset}", codes
    elif name and term.name is not None and not by_id and collapse_spaces(term.name) != collapse_spaces(name):
        yield f"{_quote(term.id)} of {dataset} is called {_quote(name)}, not {_quote(term.name)}", None


def _quote(text: str | None) -> str:
    return f"'{one_line(text or '', MAX_CHARACTERS)}'"
