"""Bounds of what a partial alignment of columns can still reach: matching rows, and the entity F1.

Two rows are of one class while they agree in the columns aligned so far. The sum over classes of the smaller count,
gold's or predicted's, is the number of rows that match so far, and so a bound for every completion; with all columns
aligned it is the size of the multiset intersection.

The entity F1 is the harmonic mean of a mean precision P and a mean recall R, so it is not a sum over column pairs and
one assignment does not find its maximum. It is however the minimum of its tangents,

    2PR / (P + R) = min over t in [0, 1] of 2 t^2 P + 2 (1 - t)^2 R,

and each tangent is a sum over pairs: the best assignment under any tangent bounds the F1 of every alignment from above.

A `Budget` bounds how many rows a search may visit; searches that together decide one thing can share one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, cached_property
from typing import NamedTuple, TypeVar

from pytest_queryeval.comparison.graphs import assignment_steps, best_assignment

DEFAULT_BUDGET = 3_000_000
Key = TypeVar("Key", bound=Hashable)
Columns = Sequence[Sequence[int]]
# What handling one candidate column costs, in rows that could have been visited in that time.
_CANDIDATE = 20
# Two F1 values closer than this are equal: their sums were merely rounded in another order.
TOLERANCE = 1e-12
_TANGENTS = 12
# What reading one pair of columns costs, in steps of an assignment that could have been taken in that time.
_PAIR = 20


class BudgetSpentError(Exception):
    """The search has visited as many rows as it may."""


class Budget:
    """Rows that may still be visited."""

    def __init__(self, rows: int = DEFAULT_BUDGET) -> None:
        self.left = rows
        self._reserve = 0

    def spend(self, visits: int) -> None:
        """Take rows off the budget; raise `BudgetSpentError`, which stops the search, where fewer are left."""
        if visits > self.left - self._reserve:
            raise BudgetSpentError
        self.left -= visits

    @contextmanager
    def part(self, parts: int) -> Iterator[None]:
        """Limit searches within the `with` statement to one of several equal parts of the remaining rows."""
        reserve = self._reserve
        self._reserve = self.left - (self.left - reserve) // parts
        try:
            yield
        finally:
            self._reserve = reserve


_shared_budget: ContextVar[Budget | None] = ContextVar("shared_budget", default=None)


@contextmanager
def shared_budget(rows: int = DEFAULT_BUDGET) -> Iterator[None]:
    """Let all searches within the `with` statement share a budget of `rows` rows, instead of one for each."""
    token = _shared_budget.set(Budget(rows))
    try:
        yield
    finally:
        _shared_budget.reset(token)


def search_budget() -> Budget:
    """Return the budget that searches share, or else a new one."""
    return _shared_budget.get() or Budget()


class MatchableRows(NamedTuple):
    """The rows of one table that may still match, by position, and the class of each."""

    rows: Sequence[int]
    classes: Sequence[int]


class Split(NamedTuple):
    """Both sides, and how many of their rows match so far; a tuple, because many are made and a dataclass is slower."""

    gold: MatchableRows
    predicted: MatchableRows
    bound: int


class RowClasses:
    """Row classes of two tables given as columns; the first `pinned` columns are aligned from the start."""

    def __init__(self, gold: Columns, predicted: Columns, *, pinned: int, budget: Budget) -> None:
        self.gold, self.predicted, self.pinned = gold, predicted, pinned
        self._budget = budget

    def matched(self, columns: Sequence[int]) -> int:
        """Return how many rows match where gold column i is aligned with predicted `columns[i]`; costs no budget."""
        return _shared(self._gold_rows, Counter(zip(*(self.predicted[j] for j in columns), strict=True)))

    @property
    def _open_gold(self) -> range:
        return range(self.pinned, len(self.gold))

    @cached_property
    def _gold_rows(self) -> Counter[tuple[int, ...]]:
        return Counter(zip(*self.gold, strict=True))

    @cached_property
    def root(self) -> Split:
        """Rows classed by their pinned cells and, where every column takes part, by their other cells in any order."""
        closed = len(self.gold) == len(self.predicted)
        keys, other_keys = (_anchors(table, self.pinned, closed) for table in (self.gold, self.predicted))
        return _split(range(len(keys)), keys, range(len(other_keys)), other_keys)

    @cached_property
    def gold_distinct_counts(self) -> list[int]:
        """The number of distinct cells of each gold column: a column with many of them splits the classes well."""
        return [len(set(column)) for column in self.gold]

    def needs_all_rows(self, need: int) -> bool:
        """Return whether `need` rows are all that may match, on both sides."""
        return need == len(self.root.gold.rows) == len(self.root.predicted.rows)

    def candidates(self, need: int) -> dict[int, list[int]]:
        """Return the predicted columns with which an open gold column can match `need` rows, and maybe some others."""
        open_predicted = range(self.pinned, len(self.predicted))
        if self.needs_all_rows(need):
            same: dict[int, list[int]] = {}
            for j in open_predicted:
                same.setdefault(self._signature(self.root.predicted, self.predicted[j]), []).append(j)
            signatures = {i: self._signature(self.root.gold, self.gold[i]) for i in self._open_gold}
            return _decided({i: list(same.get(signature, ())) for i, signature in signatures.items()})
        return _decided(
            {
                i: [j for j, bound in zip(open_predicted, bounds, strict=True) if bound >= need]
                for i, bounds in self.pairs.items()
            }
        )

    def _signature(self, side: MatchableRows, column: Sequence[int]) -> int:
        """Return a number that columns of equal cells in each class share, in any order; others that do cost time.

        Sorted first: a sum of tuple hashes is so nearly linear in the last cell that different columns often share it.
        """
        return hash(tuple(sorted(self._keys(side, column))))

    @cached_property
    def pairs(self) -> dict[int, list[int]]:
        """How many rows at most can match where an open gold column is aligned with each open predicted column."""
        gold, predicted, _ = self.root
        columns = self.predicted[self.pinned :]
        self._budget.spend(2 * (len(self._open_gold) * len(gold.rows) + len(columns) * len(predicted.rows)))
        predicted_counts = [Counter(self._keys(predicted, column)) for column in columns]
        pairs = {}
        for i in self._open_gold:
            gold_counts = Counter(self._keys(gold, self.gold[i]))
            self._budget.spend(sum(_CANDIDATE + min(len(gold_counts), len(counts)) // 4 for counts in predicted_counts))
            pairs[i] = [_shared(gold_counts, counts) for counts in predicted_counts]
        return pairs

    def bounds(self, split: Split, i: int, choices: Sequence[int]) -> list[int]:
        """Return how many rows match where gold column i is aligned as well, with each of `choices`."""
        gold, predicted, _ = split
        self._budget.spend(len(gold.rows) + len(choices) * (_CANDIDATE + len(predicted.rows)))
        counts = Counter(self._keys(gold, self.gold[i]))
        return [_shared(counts, Counter(self._keys(predicted, self.predicted[j]))) for j in choices]

    def refined(self, split: Split, i: int, j: int) -> Split:
        """Return the classes where gold column i is aligned as well, with predicted column j."""
        gold, predicted, _ = split
        self._budget.spend(len(gold.rows) + len(predicted.rows))
        keys, other_keys = self._keys(gold, self.gold[i]), self._keys(predicted, self.predicted[j])
        return _split(gold.rows, keys, predicted.rows, other_keys)

    def count_completed_matches(self, split: Split, pairs: Mapping[int, int]) -> int:
        """Return how many rows match where all open columns are aligned at once."""
        gold, predicted, _ = split
        self._budget.spend((len(gold.rows) + len(predicted.rows)) * (1 + len(pairs) // 8))
        keys = (map(self.gold[i].__getitem__, gold.rows) for i in pairs)
        other_keys = (map(self.predicted[j].__getitem__, predicted.rows) for j in pairs.values())
        counts = Counter(zip(gold.classes, *keys, strict=True))
        return _shared(counts, Counter(zip(predicted.classes, *other_keys, strict=True)))

    def neighbours(self, columns: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        """Yield alignments that differ by an exchange of two columns, or of one for a free one."""
        free = sorted({*range(len(self.predicted))}.difference(columns))
        for i in range(self.pinned, len(columns)):
            for new in (*columns[i + 1 :], *free):
                self._budget.spend(len(self.predicted[0]) * (1 + len(columns) // 4))
                yield tuple(columns[i] if j == new else new if k == i else j for k, j in enumerate(columns))

    def guess_alignment(self) -> tuple[int, ...]:
        """Guess an alignment: each gold column with one of the same cells, else a free one; costs no budget."""
        waiting: dict[tuple[int, ...], list[int]] = {}
        for j in reversed(range(self.pinned, len(self.predicted))):
            waiting.setdefault(tuple(sorted(self.predicted[j])), []).append(j)
        columns = list(range(self.pinned))
        for column in self.gold[self.pinned :]:
            same = waiting.get(tuple(sorted(column)))
            columns.append(same.pop() if same else -1)
        free = iter(sorted({*range(len(self.predicted))}.difference(columns)))
        return tuple(next(free) if j < 0 else j for j in columns)

    @cached_property
    def _base(self) -> int:
        ends = [end for column in (*self.gold, *self.predicted) for end in (min(column), max(column))]
        return max(ends) - min(ends) + 1

    def _keys(self, side: MatchableRows, column: Sequence[int]) -> list[int]:
        base = self._base
        return [kind * base + column[row] for row, kind in zip(side.rows, side.classes, strict=True)]


def kinds(columns: Sequence[Sequence[object]]) -> list[int]:
    """Return a number for each column, the same for columns that are equal item by item."""
    first: dict[tuple[object, ...], int] = {}
    return [first.setdefault(tuple(column), len(first)) for column in columns]


def _shared(counts: Counter[Key], other_counts: Counter[Key]) -> int:
    """Return the size of the multiset intersection."""
    if len(other_counts) < len(counts):
        counts, other_counts = other_counts, counts
    if max(counts.values(), default=1) == 1:
        return sum(map(other_counts.__contains__, counts))
    get = other_counts.get
    return sum([other_count if (other_count := get(key, 0)) < count else count for key, count in counts.items()])


def _split(rows: Sequence[int], keys: list[Key], other_rows: Sequence[int], other_keys: list[Key]) -> Split:
    """Group rows into classes by key; a row whose key the other side lacks cannot match and is dropped."""
    counts, other_counts = Counter(keys), Counter(other_keys)
    names = {key: name for name, key in enumerate(key for key in counts if key in other_counts)}
    return Split(_classed(rows, keys, names), _classed(other_rows, other_keys, names), _shared(counts, other_counts))


def _classed(rows: Sequence[int], keys: list[Key], names: Mapping[Key, int]) -> MatchableRows:
    rows_left = [row for row, key in zip(rows, keys, strict=True) if key in names]
    return MatchableRows(rows_left, [names[key] for key in keys if key in names])


def _anchors(table: Columns, pinned: int, closed: bool) -> list[tuple[int, ...]]:
    if closed:
        return [row[:pinned] + tuple(sorted(row[pinned:])) for row in zip(*table, strict=True)]
    return list(zip(*table[:pinned], strict=True)) if pinned else [()] * len(table[0])


def _decided(options: dict[int, list[int]]) -> dict[int, list[int]]:
    """Remove a predicted column that is the only option of one gold column from the options of the others."""
    users: dict[int, set[int]] = {}
    for i, j in ((i, j) for i, js in options.items() for j in js):
        users.setdefault(j, set()).add(i)
    queue = [i for i, js in options.items() if len(js) == 1]
    while queue:
        i = queue.pop()
        for k in users.pop(options[i][0], {i}) - {i} if options[i] else ():
            options[k].remove(options[i][0])
            if len(options[k]) == 1:
                queue.append(k)
    return options


class EntityTiebreak:
    """Precision, recall and F1 over the distinct values of aligned columns; pairs are read on first use and kept."""

    def __init__(
        self,
        gold: Sequence[Sequence[int]],
        predicted: Sequence[Sequence[int]],
        *,
        overlap: Callable[[int, int], int] | None,
        gold_distinct: Sequence[int] | None,
        predicted_distinct: Sequence[int] | None,
        spend: Callable[[int], None],
    ) -> None:
        gold_values = cache(lambda i: frozenset(gold[i]))
        predicted_values = cache(lambda j: frozenset(predicted[j]))
        self._overlap = overlap or (lambda i, j: len(gold_values(i) & predicted_values(j)))
        self._gold_distinct = (lambda i: len(gold_values(i))) if gold_distinct is None else gold_distinct.__getitem__
        self._predicted_distinct = (
            (lambda j: len(predicted_values(j))) if predicted_distinct is None else predicted_distinct.__getitem__
        )
        self._spend = spend
        self._pairs: dict[tuple[int, int], tuple[float, float]] = {}

    def pair(self, gold: int, predicted: int) -> tuple[float, float]:
        """Return precision and recall of one column pair, 0 if they share no value."""
        ratios = self._pairs.get((gold, predicted))
        if ratios is None:
            self._spend(_PAIR)
            ratios = (0.0, 0.0)
            if shared := self._overlap(gold, predicted):
                ratios = shared / self._predicted_distinct(predicted), shared / self._gold_distinct(gold)
            self._pairs[gold, predicted] = ratios
        return ratios

    def f1(self, columns: Sequence[int]) -> float:
        """Return the F1 of mean precision and mean recall, gold column i aligned with predicted column `columns[i]`."""
        return self._means_f1(columns)[0]

    def _means_f1(self, columns: Sequence[int]) -> tuple[float, float, float]:
        pairs = [self.pair(gold, predicted) for gold, predicted in enumerate(columns)]
        precision = sum(pair[0] for pair in pairs) / len(pairs)
        recall = sum(pair[1] for pair in pairs) / len(pairs)
        total = precision + recall
        return (2 * precision * recall / total if total else 0.0), precision, recall

    def find_alignment(self, options: Sequence[Sequence[int]], floor: float) -> list[int] | None:
        """Return an alignment within `options`, or None if no F1 there is >= floor.

        `options` are the predicted columns allowed to each gold column. The alignment is a guess: its F1 may miss the
        floor where the bound does not exclude it. Each tangent costs one assignment, and each step of it counts as one
        row.
        """
        low, tangent, high = 0.0, 0.5, 1.0
        guess: list[int] | None = None
        for _ in range(_TANGENTS):
            guess = self._best_under(options, tangent)
            if guess is None:
                return None
            f1, precision, recall = self._means_f1(guess)
            if 2 * tangent**2 * precision + 2 * (1 - tangent) ** 2 * recall < floor:
                return None
            slope = tangent * precision - (1 - tangent) * recall
            if f1 >= floor or abs(slope) < TOLERANCE:
                return guess
            low, high = (low, tangent) if slope > 0 else (tangent, high)
            touching = recall / (precision + recall)
            tangent = touching if low < touching < high else (low + high) / 2
        return guess

    def _best_under(self, options: Sequence[Sequence[int]], tangent: float) -> list[int] | None:
        """Return the best assignment under a tangent; None if there is no alignment within `options`."""
        columns = [allowed[0] for allowed in options]
        free = [gold for gold, allowed in enumerate(options) if len(allowed) > 1]
        fixed = {allowed[0] for allowed in options if len(allowed) == 1}
        targets = sorted({j for gold in free for j in options[gold]} - fixed)
        if len(fixed) + len(free) < len(options) or len(targets) < len(free):
            return None
        # Worse than a whole alignment, yet small enough to leave the last digits of the sums alone.
        forbidden = -2.0 * len(options) - 1
        self._spend(len(free) * len(targets) + assignment_steps(len(free), len(targets)))
        by_precision, by_recall = 2 * tangent**2, 2 * (1 - tangent) ** 2
        weights = []
        for gold in free:
            by_target = dict.fromkeys(targets, forbidden)
            for j in options[gold]:
                if j in by_target:
                    precision, recall = self.pair(gold, j)
                    by_target[j] = by_precision * precision + by_recall * recall
            weights.append(list(by_target.values()))
        for row, target in best_assignment(weights):
            columns[free[row]] = targets[target]
        return columns if all(columns[gold] in options[gold] for gold in free) else None
