"""The nearest of many known words, found in a time that does not grow with them."""

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

    Construction takes time for each known word; a lookup does not, so that thousands of wrong words for a codelist of
    100,000 codes do not take minutes.
    """

    def __init__(self, known: Iterable[str]) -> None:
        self._known: dict[str, str] = {}
        for word in sorted(known):
            self._known.setdefault(word.casefold(), word)
        self._letters = sorted(set().union(*self._known))
        self._by_start: defaultdict[str, list[str]] = defaultdict(list)
        for word in self._known:
            self._by_start[self._start(word)].append(word)

    def to(self, word: str) -> str | None:
        """Return the known word that differs least, None where none is near.

        That is the same in other case, or one with two neighbours swapped, or with another letter in one place, or with
        a letter more or less; else the closest match of difflib among those that begin alike.
        """
        wanted = word.casefold()
        if len(wanted) > MAX_CHARACTERS:
            return None
        edits: list[Iterable[str]] = [[wanted]]
        # Every word of one letter would be near to any other.
        if len(wanted) > 1 and len(wanted) * len(self._letters) <= MAX_EDITS:
            places, letters = range(len(wanted)), self._letters
            swapped = (wanted[:at] + wanted[at + 1] + wanted[at] + wanted[at + 2 :] for at in places[:-1])
            replaced = (wanted[:at] + letter + wanted[at + 1 :] for at in places for letter in letters)
            shorter = (wanted[:at] + wanted[at + 1 :] for at in places)
            longer = (wanted[:at] + letter + wanted[at:] for at in range(len(wanted) + 1) for letter in letters)
            edits += [swapped, replaced, chain(shorter, longer)]
        for words in edits:
            if found := sorted(one for one in words if one in self._known):
                return self._known[found[0]]
        candidates = self._by_start.get(self._start(wanted), [])
        near = difflib.get_close_matches(wanted, candidates[:MAX_COMPARED], n=1)
        return self._known[near[0]] if near else None

    def _start(self, word: str) -> str:
        """Return the first letters, by which words are grouped; empty where all words are few."""
        return "" if len(self._known) <= MAX_COMPARED else word[:2]
