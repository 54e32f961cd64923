"""Lookup of the datasets of a structure by their names, and of the nearest of many words."""

from __future__ import annotations

import difflib
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

from pytest_queryeval.features.sdmx.structure import DatasetStructure, Structure
from pytest_queryeval.features.sdmx.structure_messages import version_order
from pytest_queryeval.text.formatting import one_line

MAX_NAMES = 5
MAX_CHARACTERS = 100  # of a name
TIME = "TIME_PERIOD"  # the id of the time dimension, which structures leave out
_VERSIONED = re.compile(r"([^()]+)\(([^()]+)\)")


class Datasets:
    """All versions of each dataset."""

    def __init__(self, structure: Structure) -> None:
        self._versions: defaultdict[str, list[DatasetStructure]] = defaultdict(list)
        for dataset in structure.datasets:
            self._versions[dataset.id].append(dataset)

    @property
    def ids(self) -> Sequence[str]:
        """Return the ids of all datasets, without versions."""
        return list(self._versions)

    def of_any_agency(self, id_: str) -> Sequence[str]:
        """Return the ids `AGENCY:ID` of all datasets with this ID."""
        return [dataset for dataset in self._versions if dataset.partition(":")[2] == id_]

    def get(self, dataset: str) -> DatasetStructure | None:
        """Return the dataset `AGENCY:ID(VERSION)`; in its newest version if VERSION is missing or unknown."""
        match = _VERSIONED.fullmatch(dataset)
        versions = self._versions.get(match[1] if match else dataset, [])
        fitting_versions = [candidate for candidate in versions if match and candidate.version == match[2]]
        return max(fitting_versions or versions, key=lambda candidate: version_order(candidate.version), default=None)


def codes_of(dataset: DatasetStructure) -> Mapping[str, Mapping[str, str] | None]:
    """Return the names of the codes of each dimension, None if any value is allowed."""
    return {dimension.id: dimension.codes for dimension in dataset.dimensions}


def unlisted_codes(structure: Structure) -> str:
    """Return a sentence on the dimensions that are not checked, as no message lists their codes; empty without any."""
    unlisted_dimensions = [
        (dimension.id, dataset.id, dimension.unlisted_codes)
        for dataset in structure.datasets
        for dimension in dataset.dimensions
        if dimension.unlisted_codes is not None
    ]
    if not unlisted_dimensions:
        return ""
    dimensions, datasets, codelists = (
        list_names(list(dict.fromkeys(names)), MAX_NAMES, MAX_CHARACTERS)
        for names in zip(*unlisted_dimensions, strict=True)
    )
    return f"codes of {dimensions} in {datasets} are not checked: no file lists those of {codelists}"


def list_names(names: Sequence[str], limit: int, characters: int) -> str:
    """Return the first `limit` names, truncated, and the number of the others, for a message."""
    first_names = ", ".join(one_line(name, characters) for name in names[:limit])
    return f"{first_names} and {len(names) - limit:,} more" if len(names) > limit else first_names


MAX_WORD_CHARACTERS = 100  # of a word that is looked up
MAX_EDITS = 20_000
MAX_COMPARED = 500  # words that difflib compares with one


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
