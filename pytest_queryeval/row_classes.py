"""How many rows of two tables can match, given how some of their columns are aligned.

Two rows are of one class while they agree in the columns aligned so far. The sum over classes of the smaller count, gold's
or predicted's, is the number of rows that match so far, and so a bound for every completion; with all columns aligned it
is the size of the multiset intersection.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple, TypeVar

Key = TypeVar("Key", bound=Hashable)
Columns = Sequence[Sequence[int]]

# What handling one candidate column costs, in rows that could have been visited in that time.
_CANDIDATE = 10


class BudgetSpentError(Exception):
    """The search has visited as many rows as it may."""


class Budget:
    """Rows that may still be visited, down to a reserve."""

    def __init__(self, rows: int) -> None:
        self.left = rows
        self.reserve = 0

    def spend(self, visits: int) -> None:
        """Take `visits` off, or stop the search."""
        self.left -= visits
        if self.left < self.reserve:
            raise BudgetSpentError


class Side(NamedTuple):
    """The rows of one table that may still match, by position, and the class of each."""

    rows: Sequence[int]
    classes: Sequence[int]


class Split(NamedTuple):
    """Both sides, and how many of their rows match so far. Made by the thousand: a dataclass takes three times as long."""

    gold: Side
    predicted: Side
    bound: int


class RowClasses:
    """Row classes of `gold` and `predicted`, given as columns; the first `pinned` columns are aligned from the start."""

    def __init__(self, gold: Columns, predicted: Columns, *, pinned: int, budget: Budget) -> None:
        self.gold, self.predicted, self.pinned = gold, predicted, pinned
        self._budget = budget

    def matched(self, columns: Sequence[int]) -> int:
        """The rows that match where gold column i is aligned with predicted column `columns[i]`."""
        return _shared(self._gold_rows, Counter(zip(*(self.predicted[j] for j in columns), strict=True)))

    @cached_property
    def _gold_rows(self) -> Counter[tuple[int, ...]]:
        return Counter(zip(*self.gold, strict=True))

    @cached_property
    def root(self) -> Split:
        """Rows classed by their pinned cells and, where every column takes part, by their other cells in any order."""
        closed = len(self.gold) == len(self.predicted)
        keys, others = (_anchors(table, self.pinned, closed) for table in (self.gold, self.predicted))
        return _split(range(len(keys)), keys, range(len(others)), others)

    @cached_property
    def spread(self) -> list[int]:
        """The number of distinct cells of each gold column: many of them split the classes well."""
        return [len(set(column)) for column in self.gold]

    def whole(self, need: int) -> bool:
        """Whether `need` rows are all that may match, on both sides."""
        return need == len(self.root.gold.rows) == len(self.root.predicted.rows)

    def candidates(self, need: int) -> dict[int, list[int]]:
        """The predicted columns with which each open gold column can match `need` rows, and maybe some that cannot."""
        if not self.whole(need):
            others = range(self.pinned, len(self.predicted))
            return {i: [j for j, bound in zip(others, row, strict=True) if bound >= need] for i, row in self.pairs.items()}
        same: dict[int, list[int]] = {}
        for j in range(self.pinned, len(self.predicted)):
            same.setdefault(self._signature(self.root.predicted, self.predicted[j]), []).append(j)
        golds = range(self.pinned, len(self.gold))
        return {i: list(same.get(self._signature(self.root.gold, self.gold[i]), ())) for i in golds}

    def _signature(self, side: Side, column: Sequence[int]) -> int:
        """Equal for columns with equal cells in each class, in any order; unequal ones rarely share it, which is harmless."""
        return sum(map(hash, zip(side.classes, map(column.__getitem__, side.rows), strict=True)))

    @cached_property
    def pairs(self) -> dict[int, list[int]]:
        """The most rows that can match where an open gold column is aligned with each open predicted column."""
        gold, predicted, _ = self.root
        golds, others = range(self.pinned, len(self.gold)), self.predicted[self.pinned :]
        self._budget.spend(2 * (len(golds) * len(gold.rows) + len(others) * len(predicted.rows)))
        counted = [Counter(self._keys(predicted, column)) for column in others]
        return {i: self._pair_row(Counter(self._keys(gold, self.gold[i])), counted) for i in golds}

    def _pair_row(self, counts: Counter[int], others: Sequence[Counter[int]]) -> list[int]:
        self._budget.spend(sum(_CANDIDATE + min(len(counts), len(other)) // 4 for other in others))
        return [_shared(counts, other) for other in others]

    def bounds(self, split: Split, i: int, choices: Sequence[int]) -> list[int]:
        """The rows that match where gold column i, too, is aligned with each of `choices`."""
        gold, predicted, _ = split
        self._budget.spend(len(gold.rows) + len(choices) * (_CANDIDATE + len(predicted.rows)))
        counts = Counter(self._keys(gold, self.gold[i]))
        return [_shared(counts, Counter(self._keys(predicted, self.predicted[j]))) for j in choices]

    def refined(self, split: Split, i: int, j: int) -> Split:
        """The classes where gold column i, too, is aligned with predicted column j."""
        gold, predicted, _ = split
        self._budget.spend(len(gold.rows) + len(predicted.rows))
        keys, others = self._keys(gold, self.gold[i]), self._keys(predicted, self.predicted[j])
        return _split(gold.rows, keys, predicted.rows, others)

    def completed(self, split: Split, pairs: Mapping[int, int]) -> int:
        """The rows that match where all open columns are aligned at once."""
        gold, predicted, _ = split
        self._budget.spend((len(gold.rows) + len(predicted.rows)) * (1 + len(pairs) // 8))
        keys = (map(self.gold[i].__getitem__, gold.rows) for i in pairs)
        others = (map(self.predicted[j].__getitem__, predicted.rows) for j in pairs.values())
        counts = Counter(zip(gold.classes, *keys, strict=True))
        return _shared(counts, Counter(zip(predicted.classes, *others, strict=True)))

    @cached_property
    def _base(self) -> int:
        ends = [end for column in (*self.gold, *self.predicted) for end in (min(column), max(column))]
        return max(ends) - min(ends) + 1

    def _keys(self, side: Side, column: Sequence[int]) -> list[int]:
        base = self._base
        return [kind * base + column[row] for row, kind in zip(side.rows, side.classes, strict=True)]


def _shared(counts: Counter[Key], others: Counter[Key]) -> int:
    """The size of the multiset intersection."""
    if len(others) < len(counts):
        counts, others = others, counts
    if max(counts.values(), default=1) == 1:
        return sum(map(others.__contains__, counts))
    get = others.get
    return sum([other if (other := get(key, 0)) < count else count for key, count in counts.items()])


def _split(rows: Sequence[int], keys: list[Key], other_rows: Sequence[int], other_keys: list[Key]) -> Split:
    """Class rows by key; a row whose key the other side lacks cannot match and is dropped."""
    counts, others = Counter(keys), Counter(other_keys)
    names = {key: name for name, key in enumerate(key for key in counts if key in others)}
    return Split(_classed(rows, keys, names), _classed(other_rows, other_keys, names), _shared(counts, others))


def _classed(rows: Sequence[int], keys: list[Key], names: Mapping[Key, int]) -> Side:
    kept = [row for row, key in zip(rows, keys, strict=True) if key in names]
    return Side(kept, [names[key] for key in keys if key in names])


def _anchors(table: Columns, pinned: int, closed: bool) -> list[tuple[int, ...]]:
    if closed:
        return [row[:pinned] + tuple(sorted(row[pinned:])) for row in zip(*table, strict=True)]
    return list(zip(*table[:pinned], strict=True)) if pinned else [()] * len(table[0])
