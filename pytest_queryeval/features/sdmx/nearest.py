"""The nearest of many known words, looked up in a time that does not grow with their number."""

from __future__ import annotations

import difflib
from collections import defaultdict
from collections.abc import Iterable
from itertools import chain

MAX_CHARACTERS = 100  # of a word that is looked up
MAX_EDITS = 20_000
MAX_COMPARED = 500  # words that difflib compares with one


class Nearest:
    """Known words, among which the nearest to a wrong one is looked up.

    Only construction takes time for each known word: thousands of lookups in a codelist of 100,000 codes do not take
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
        """Return the known word that differs least, None where none is near.

        That is a word that differs in case, by two swapped neighbours, by one replaced letter, or by a letter more or
        less; else the closest match of difflib among the words with the same first letters.
        """
        folded_word = word.casefold()
        if len(folded_word) > MAX_CHARACTERS:
            return None
        edits: list[Iterable[str]] = [[folded_word]]
        # Every word of one letter would be near to any other.
        if len(folded_word) > 1 and len(folded_word) * len(self._letters) <= MAX_EDITS:
            places, letters = range(len(folded_word)), self._letters
            swapped = (
                folded_word[:at] + folded_word[at + 1] + folded_word[at] + folded_word[at + 2 :] for at in places[:-1]
            )
            replaced = (folded_word[:at] + letter + folded_word[at + 1 :] for at in places for letter in letters)
            shorter = (folded_word[:at] + folded_word[at + 1 :] for at in places)
            longer = (
                folded_word[:at] + letter + folded_word[at:] for at in range(len(folded_word) + 1) for letter in letters
            )
            edits += [swapped, replaced, chain(shorter, longer)]
        for words in edits:
            if matches := sorted(candidate for candidate in words if candidate in self._words):
                return self._words[matches[0]]
        candidates = self._by_start.get(self._start(folded_word), [])
        near = difflib.get_close_matches(folded_word, candidates[:MAX_COMPARED], n=1)
        return self._words[near[0]] if near else None

    def _start(self, word: str) -> str:
        """Return the first letters, by which words are grouped; empty where all words are few."""
        return "" if len(self._words) <= MAX_COMPARED else word[:2]
