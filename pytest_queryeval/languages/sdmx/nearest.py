"""The nearest of many known words, found in a time that does not grow with them."""

from __future__ import annotations

import difflib
from collections import defaultdict
from collections.abc import Iterable, Iterator

MOST_CHARACTERS = 100  # of a word that is looked for
MOST_EDITS = 20_000
MOST_COMPARED = 500  # one by one


class Nearest:
    """Known words, to be asked for the one that somebody may have meant.

    Making it takes time for each known word; asking it does not, so that thousands of wrong words for a codelist of
    100,000 codes take no minutes.
    """

    def __init__(self, known: Iterable[str]) -> None:
        self._known: dict[str, str] = {}
        for word in sorted(known):
            self._known.setdefault(word.casefold(), word)
        self._letters = sorted(set().union(*self._known))
        self._alike: defaultdict[str, list[str]] = defaultdict(list)
        for word in self._known:
            self._alike[self._start(word)].append(word)

    def to(self, word: str) -> str | None:
        """The known word that differs least, None where none is near.

        That is the same in other case, or one with two neighbours swapped, or with another letter in one place, or with
        a letter more or less; else one that is as near as difflib asks for, out of those that begin alike.
        """
        wanted = word.casefold()
        if len(wanted) > MOST_CHARACTERS:
            return None
        # Any other word of one letter would be near to one.
        edited = len(wanted) > 1 and len(wanted) * len(self._letters) <= MOST_EDITS
        edits = (_swapped(wanted), _replaced(wanted, self._letters), _longer_or_shorter(wanted, self._letters))
        for words in (iter([wanted]), *(edits if edited else ())):
            if found := sorted(one for one in words if one in self._known):
                return self._known[found[0]]
        alike = self._alike.get(self._start(wanted), [])
        near = difflib.get_close_matches(wanted, alike[:MOST_COMPARED], n=1)
        return self._known[near[0]] if near else None

    def _start(self, word: str) -> str:
        """What words begin with that are compared one by one: all of them where they are few."""
        return "" if len(self._known) <= MOST_COMPARED else word[:2]


def _swapped(word: str) -> Iterator[str]:
    return (word[:at] + word[at + 1] + word[at] + word[at + 2 :] for at in range(len(word) - 1))


def _replaced(word: str, letters: Iterable[str]) -> Iterator[str]:
    return (word[:at] + letter + word[at + 1 :] for at in range(len(word)) for letter in letters)


def _longer_or_shorter(word: str, letters: Iterable[str]) -> Iterator[str]:
    yield from (word[:at] + word[at + 1 :] for at in range(len(word)))
    yield from (word[:at] + letter + word[at:] for at in range(len(word) + 1) for letter in letters)
