"""Mutants: wrong versions of a gold query."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import zip_longest
from typing import TypeVar

T = TypeVar("T")
MAX_MUTANTS = 200  # of a query
MIN_MUTANTS = 10  # that long ones may have, however long they are
MAX_NODES = 50_000  # of the trees of all mutants together
CHANGE_CHARACTERS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """A query that differs from gold in one place, as a wrong prediction might.

    `operator` names the sort of change, `clause` where it is and `change` what it is. `equivalent` is the reason for
    which the query is known to answer as gold on any data that keeps the constraints; empty for the others.
    """

    query: str
    operator: str
    clause: str
    change: str
    equivalent: str = ""


def most_mutants(size: int) -> int:
    """Return how many mutants a query may have whose tree has `size` nodes."""
    return min(MAX_MUTANTS, max(MIN_MUTANTS, MAX_NODES // size))


def in_turn(edits: Iterable[Iterator[T]]) -> Iterator[T]:
    """Yield one edit of each operator, then the next one of each."""
    for turn in zip_longest(*edits):
        yield from (edit for edit in turn if edit is not None)
