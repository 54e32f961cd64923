"""What a selection names that its structure does not have, and what was probably meant; the names of its codes."""

from __future__ import annotations

import difflib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, islice
from typing import NamedTuple

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
    """Return a sentence for each dataset, dimension and code that the structure lacks, with the nearest that it has.

    A term that has only a name is looked up by it. A name that differs from that of its id is reported too, unless only
    spaces differ, or the selection is given in codes. `A:B(9.0.0)` is any version of `A:B`. Time is not checked, nor
    are codes of dimensions without a codelist. After MAX_SENTENCES sentences only the number of the others follows.
    """
    problems = _problems(selection, structure)
    sentences = tuple(problem.template.format(p=problem) for problem in islice(problems, MAX_SENTENCES))
    unlisted_count = sum(1 for _ in problems)
    return (*sentences, f"and {unlisted_count:,} more") if unlisted_count else sentences


def add_labels(selection: Selection, structure: Structure) -> Selection:
    """Return the selection with the names of codes as labels where it has only ids."""
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
    """Known words, among which the nearest to a wrong one is looked up.

    Only construction goes through all known words, so that thousands of lookups among 100,000 codes do not take
    minutes.
    """

    def __init__(self, words: Iterable[str]) -> None:
        self._words: dict[str, str] = {}
        for word in sorted(words):
            self._words.setdefault(word.casefold(), word)
        self._letters = sorted(set().union(*self._words))
        self._by_start: defaultdict[str, list[str]] = defaultdict(list)
        for word in self._words:
            self._by_start[self._start(word)].append(word)

    def to(self, word: str) -> str | None:
        """Return the known word that differs least, None if none is near.

        That is a word that differs in case, in two swapped neighbours, in one letter, or by one letter more or less;
        else the closest match of difflib among the words with the same first letters.
        """
        folded_word = word.casefold()
        if len(folded_word) > MAX_WORD_CHARACTERS:
            return None
        candidate_groups: list[Iterable[str]] = [[folded_word]]
        # Every word of one letter would be near to any other.
        if len(folded_word) > 1 and len(folded_word) * len(self._letters) <= MAX_EDITS:
            places, letters = range(len(folded_word)), self._letters
            swaps = (
                folded_word[:place] + folded_word[place + 1] + folded_word[place] + folded_word[place + 2 :]
                for place in places[:-1]
            )
            replacements = (
                folded_word[:place] + letter + folded_word[place + 1 :] for place in places for letter in letters
            )
            deletions = (folded_word[:place] + folded_word[place + 1 :] for place in places)
            insertions = (
                folded_word[:place] + letter + folded_word[place:]
                for place in range(len(folded_word) + 1)
                for letter in letters
            )
            candidate_groups += [swaps, replacements, chain(deletions, insertions)]
        for words in candidate_groups:
            if matches := sorted(candidate for candidate in words if candidate in self._words):
                return self._words[matches[0]]
        candidates = self._by_start.get(self._start(folded_word), [])
        close_matches = difflib.get_close_matches(folded_word, candidates[:MAX_COMPARED], n=1)
        return self._words[close_matches[0]] if close_matches else None

    def _start(self, word: str) -> str:
        """Return the first letters, by which words are grouped; empty if all words are few."""
        return "" if len(self._words) <= MAX_COMPARED else word[:2]


@dataclass(frozen=True)
class _KnownIds:
    """Known ids with their names, empty if there is none; indexes are built when they are needed."""

    names: Mapping[str, str]

    @cached_property
    def by_name(self) -> Mapping[str, str]:
        """Return the first id of each name, with collapsed spaces."""
        return {collapse_spaces(name): id_ for id_, name in reversed(list(self.names.items())) if name}

    @cached_property
    def _near_ids(self) -> Nearest:
        return Nearest(self.names)

    @cached_property
    def _near_names(self) -> Nearest:
        return Nearest(self.by_name)

    def nearest(self, term: Term) -> str | None:
        """Return an id with the name of the term, or the one whose id, or else whose name, is nearest."""
        if (name := collapse_spaces(term.name)) in self.by_name:
            return self.by_name[name]
        nearest_id = None if term.id is None else self._near_ids.to(term.id)
        if nearest_id is None and name and (nearest_name := self._near_names.to(name)) is not None:
            nearest_id = self.by_name[nearest_name]
        return nearest_id


class _Problem(NamedTuple):
    """What is wrong with a term."""

    template: str
    """A format string, filled from this object as `p` when it is shown: the attributes take time to compute."""
    term: Term
    known_ids: _KnownIds
    """The ids that the term could have."""
    dataset: str = ""
    dimension: str = ""

    @property
    def id(self) -> str:
        return _quote(self.term.id)

    @property
    def name(self) -> str:
        return _quote(self.term.name)

    @property
    def known_name(self) -> str:
        return _quote(self.known_ids.names[self.term.id or ""])

    @property
    def hint(self) -> str:
        names = self.known_ids.names
        nearest_id = self.known_ids.nearest(self.term)
        if nearest_id is not None:
            name = f" ({one_line(names[nearest_id], MAX_CHARACTERS)})" if names[nearest_id] else ""
            return f": did you mean {_quote(nearest_id)}{name}?"
        return f": choose from {', '.join(map(_quote, names))}" if 0 < len(names) <= MAX_LISTED else ""


def _problems(selection: Selection, structure: Structure) -> Iterator[_Problem]:
    structure_datasets = Datasets(structure)
    datasets = _KnownIds(dict.fromkeys(structure_datasets.ids, ""))
    codelists: dict[int, _KnownIds] = {}
    for dataset in selection.datasets:
        dataset_structure = structure_datasets.get(dataset.id)
        if dataset_structure is None:
            yield _Problem("no dataset {p.id}{p.hint}", Term(dataset.id, None), datasets)
            continue
        codes = codes_of(dataset_structure)
        dimensions = _KnownIds(dict.fromkeys(codes, ""))
        for dimension in dataset.dimensions:
            if dimension.name not in codes:
                if dimension.name != TIME:
                    template = "no dimension {p.id} in {p.dataset}{p.hint}"
                    yield _Problem(template, Term(dimension.name, None), dimensions, dataset_structure.id)
            elif (names := codes[dimension.name]) is not None:
                codelist = codelists.setdefault(id(names), _KnownIds(names))
                for term in dimension.terms:
                    if template := _check_code(term, codelist, with_names=not selection.by_id):
                        yield _Problem(template, term, codelist, dataset_structure.id, dimension.name)


def _check_code(term: Term, codes: _KnownIds, *, with_names: bool) -> str:
    """Return the template of a problem; empty without one."""
    if term.id is None:
        is_known = not codes.by_name or collapse_spaces(term.name) in codes.by_name
        return "" if is_known else "{p.dimension}: no code of {p.dataset} is called {p.name}{p.hint}"
    if term.id not in codes.names:
        return "{p.dimension}: no code {p.id} in {p.dataset}{p.hint}"
    name = codes.names[term.id]
    if with_names and term.name is not None and name and collapse_spaces(term.name) != collapse_spaces(name):
        return "{p.dimension}: {p.id} of {p.dataset} is called {p.known_name}, not {p.name}"
    return ""


def _quote(text: str | None) -> str:
    return f"'{one_line(text or '', MAX_CHARACTERS)}'"
