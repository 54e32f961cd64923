"""Mutants: wrong versions of a gold query."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, zip_longest
from typing import TypeVar

T = TypeVar("T")
MAX_MUTANTS = 200  # of a query
MIN_MUTANTS = 10  # of a query, however long it is
MAX_NODES = 50_000  # of the trees of all mutants together
CHANGE_CHARACTERS = 200
# Reasons for which mutants are equivalent to gold.
NO_DUPLICATES = "no row occurs twice"
DUPLICATES_IGNORED = "duplicates do not matter"
ORDER_IGNORED = "the order does not matter"
ONE_ROW = "there is one row at most"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """A query that differs from gold in one place, as a wrong prediction might.

    `operator` names the type of change, `clause` the place and `change` the change itself.
    """

    query: str
    operator: str
    clause: str
    change: str
    equivalent: str = ""
    """Why the query gives gold's answer on any data that keeps the constraints; empty if that is not known."""


def distinct_mutants(gold: str, mutants: Iterator[Mutant], size: int) -> Sequence[Mutant]:
    """Return the first mutants whose texts differ from gold's and from each other.

    `size` is the number of nodes of gold's tree: long queries have fewer mutants.
    """
    limit = min(MAX_MUTANTS, max(MIN_MUTANTS, MAX_NODES // size))
    mutants_by_text: dict[str, Mutant] = {}
    for mutant in islice(mutants, 2 * limit):  # few are made twice
        if mutant.query != gold:
            mutants_by_text.setdefault(mutant.query, mutant)
        if len(mutants_by_text) == limit:
            break
    return [*mutants_by_text.values()]


def in_turn(edits: Iterable[Iterator[T]]) -> Iterator[T]:
    """Yield one edit of each operator, then the next one of each."""
    for turn in zip_longest(*edits):
        yield from (edit for edit in turn if edit is not None)
