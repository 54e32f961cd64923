"""The best injection of gold columns into predicted columns, for comparing two query results.

A depth-first branch and bound over the columns. Two rows are of one class while they agree in the columns aligned so
far. The sum over classes of the smaller count, gold's or predicted's, is the number of rows that match so far, and so a
bound for every completion. Of columns that are alike, one is tried.

A `Budget` limits how many rows a search may visit; searches that together decide one thing can share one.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import NamedTuple, TypeAlias, TypeVar

Key = TypeVar("Key", bound=Hashable)
Columns: TypeAlias = Sequence[Sequence[int]]
Options: TypeAlias = dict[int, list[int]]
"""The predicted columns that a gold column may be aligned with."""
DEFAULT_BUDGET = 3_000_000
MAX_TIES = 100
TIE_BUDGET = 300_000
_CANDIDATE = 20  # what handling one candidate column costs, in rows that could have been visited in that time
# A near match is found fastest by allowing little loss; the search for any better one comes last.
_LOSSES = (0.0, 0.005, 0.02, 0.05)


class BudgetSpentError(Exception):
    """A search needs to visit more rows than its budget has left."""


class Budget:
    """The number of rows that a search may still visit, as `left`."""

    def __init__(self, rows: int = DEFAULT_BUDGET) -> None:
        self.left = rows

    def spend(self, visits: int) -> None:
        """Subtract `visits` from the budget.

        If fewer are left, raise `BudgetSpentError` instead, which stops the search.
        """
        if visits > self.left:
            raise BudgetSpentError
        self.left -= visits


_shared_budget: ContextVar[Budget | None] = ContextVar("shared_budget", default=None)


@contextmanager
def shared_budget(rows: int = DEFAULT_BUDGET) -> Iterator[None]:
    """Let all searches within the `with` statement share a budget of `rows` rows.

    Without it, every search has its own.
    """
    token = _shared_budget.set(Budget(rows))
    try:
        yield
    finally:
        _shared_budget.reset(token)


def search_budget() -> Budget:
    """Return the budget that `shared_budget` has set, else a new budget of the default size."""
    return _shared_budget.get() or Budget()


@dataclass(frozen=True, slots=True, kw_only=True)
class Alignment:
    """A mapping of gold columns to predicted columns: gold column i to predicted column `columns[i]`.

    `matched` is the number of rows that match under it. `is_proven` says that no other alignment matches more.
    """

    columns: tuple[int, ...]
    matched: int
    is_proven: bool


def best_alignment(
    gold: Columns, predicted: Columns, *, pinned: int = 0, guesses: Sequence[tuple[int, ...]] = ()
) -> Alignment:
    """Return an alignment of gold's columns with predicted columns under which the most rows match.

    There are at least as many predicted columns as gold columns. Cells are ints, and equal ints are equal cells.
    Matching rows are the multiset intersection of gold's rows with predicted's rows projected on the aligned columns.
    The first `pinned` gold columns are aligned with the columns of the same positions. Of alignments that match equally
    many rows, the first that is found counts; `guesses`, by default the alignment by position, come first. If the
    budget ends, return the best alignment so far with `is_proven` False.
    """
    search = _Search(gold, predicted, pinned, search_budget())
    search.keep_best(guesses or [tuple(range(len(gold)))])
    try:
        search.maximise()
        is_proven = True
    except BudgetSpentError:
        search.keep_best([search.same_columns()])
        is_proven = False
    return Alignment(columns=search.best.columns, matched=search.best.matched, is_proven=is_proven)


def equal_alignments(gold: Columns, predicted: Columns, columns: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Yield the alignment `columns`, then up to MAX_TIES others that match at least as many rows.

    The search has its own small budget, and stops without an error at its end.
    """
    yield columns
    search = _Search(gold, predicted, 0, Budget(TIE_BUDGET))
    search.need = search.matched(columns)
    with suppress(BudgetSpentError):
        for leaf in islice(search.leaves(search.options()), MAX_TIES):
            yield leaf.columns


def whole_alignment(
    gold: Columns, predicted: Columns, *, pinned: int, budget: Budget | None = None
) -> Alignment | None:
    """Return an alignment under which every predicted row matches a different gold row; None if no alignment does.

    The first `pinned` gold columns are aligned with the columns of the same positions. If the budget ends first, return
    the alignment by position with `matched` 0 and `is_proven` False.
    """
    try:
        columns = next(whole_alignments(gold, predicted, pinned=pinned, budget=budget or search_budget()), None)
    except BudgetSpentError:
        return Alignment(columns=tuple(range(len(gold))), matched=0, is_proven=False)
    return None if columns is None else Alignment(columns=columns, matched=len(predicted[0]), is_proven=True)


def whole_alignments(
    gold: Columns,
    predicted: Columns,
    *,
    pinned: int,
    budget: Budget,
    guesses: Iterable[tuple[int, ...]] = (),
    kinds: Sequence[Sequence[int]] | None = None,
    narrowed: Callable[[Options], Options] | None = None,
) -> Iterator[tuple[int, ...]]:
    """Yield all alignments under which every predicted row matches a different gold row.

    The alignment by position and `guesses` are tried before the search. Of interchangeable columns, the search tries
    only one order. `kinds` are numbers for gold's and for predicted's columns, equal for interchangeable columns; by
    default these are columns with the same cells. `narrowed` returns the options that the search may use. Raise
    `BudgetSpentError` if the budget ends.
    """
    if len(predicted) < len(gold) or len(gold[0]) < len(predicted[0]):
        return
    search = _Search(gold, predicted, pinned, budget, kinds)
    search.need = len(predicted[0])
    options = search.options()
    if search.root.bound < search.need or not all(options.values()):
        return
    yielded = set[tuple[int, ...]]()
    for columns in (tuple(range(len(gold))), *guesses):
        if columns not in yielded and search.matched(columns) == search.need:
            yielded.add(columns)
            yield columns
    for leaf in search.leaves(narrowed(options) if narrowed else options):
        if leaf.columns not in yielded:
            yield leaf.columns


class _Leaf(NamedTuple):
    columns: tuple[int, ...]
    matched: int


class _Side(NamedTuple):
    """The positions of a table's rows that may still match, and for each of them the number of its class.

    Rows are of one class if they agree in all columns that are aligned so far.
    """

    rows: Sequence[int]
    classes: Sequence[int]


class _Split(NamedTuple):
    """The rows of both sides in classes, and an upper bound of how many of them can match."""

    gold: _Side
    predicted: _Side
    bound: int


class _Node(NamedTuple):
    """A node of the search: gold columns with their predicted columns, and options for each gold column still open.

    `split` contains the rows in classes by the aligned columns.
    """

    columns: dict[int, int]
    options: Options
    split: _Split


class _Search:
    """A depth-first search for alignments that match at least `need` rows.

    Callers may raise `need` during the search. `best` is the best alignment so far.
    """

    def __init__(
        self,
        gold: Columns,
        predicted: Columns,
        pinned: int,
        budget: Budget,
        kinds: Sequence[Sequence[int]] | None = None,
    ) -> None:
        self.gold, self.predicted, self.pinned, self.budget = gold, predicted, pinned, budget
        self.gold_kinds, self.kinds = kinds or [numbered(map(tuple, side)) for side in (gold, predicted)]
        self.need = 0
        self.best = _Leaf((), -1)
        ends = [end for column in (*gold, *predicted) if column for end in (min(column), max(column))]
        self._base = max(ends, default=0) - min(ends, default=0) + 1
        self._distinct = [len(set(column)) for column in gold]

    def matched(self, columns: Sequence[int]) -> int:
        """Return how many rows match if gold column i is aligned with predicted column `columns[i]`; uses no budget."""
        return _shared(self._gold_rows, Counter(zip(*(self.predicted[j] for j in columns), strict=True)))

    @cached_property
    def _gold_rows(self) -> Counter[tuple[int, ...]]:
        return Counter(zip(*self.gold, strict=True))

    @cached_property
    def root(self) -> _Split:
        """The split before the search aligns columns: rows are of one class if their pinned cells agree.

        If both tables have equally many columns, the other cells must agree, too, in any order.
        """
        keys = []
        for table in (self.gold, self.predicted):
            rows = zip(*table, strict=True)
            if len(self.gold) == len(self.predicted):
                keys.append([row[: self.pinned] + tuple(sorted(row[self.pinned :])) for row in rows])
            else:
                keys.append([row[: self.pinned] for row in rows])
        return _split(range(len(keys[0])), keys[0], range(len(keys[1])), keys[1])

    def keep_best(self, guesses: Iterable[tuple[int, ...]]) -> None:
        """Set `best` to the alignment that matches the most rows, of `best` and `guesses`; uses no budget."""
        leaves = [_Leaf(columns, self.matched(columns)) for columns in guesses]
        self.best = max(self.best, *leaves, key=lambda leaf: leaf.matched)

    def maximise(self) -> None:
        """Set `best` to an alignment that matches as many rows as any.

        Raise `BudgetSpentError` if the budget ends first.
        """
        ceiling = self.root.bound
        if self.best.matched == ceiling or self._improve(ceiling):
            return
        ceiling = min(ceiling, *map(max, self._pair_bounds.values()))
        if not any(self._improve(ceiling - int(ceiling * loss)) for loss in _LOSSES):
            self._improve(0)

    def _improve(self, need: int) -> bool:
        """Set `best` to the best alignment that matches at least `need` rows, and return whether it changed.

        Only alignments that match more rows than the previous `best` count.
        """
        self.need = max(need, self.best.matched + 1)
        before = self.best
        for leaf in self.leaves(self.options()):
            self.best = leaf
            self.need = leaf.matched + 1
        return self.best is not before

    def options(self) -> Options:
        """Return, for each gold column that is not pinned, the predicted columns that it may be aligned with.

        All predicted columns with which it can match `need` rows are included, and perhaps others.
        """
        open_gold, open_predicted = (range(self.pinned, len(table)) for table in (self.gold, self.predicted))
        gold, predicted, _ = self.root
        if self.need == len(gold.rows) == len(predicted.rows):
            same = defaultdict[int, list[int]](list)
            for j in open_predicted:
                same[hash(tuple(sorted(self._keys(predicted, self.predicted[j]))))].append(j)
            return {i: [*same[hash(tuple(sorted(self._keys(gold, self.gold[i]))))]] for i in open_gold}
        return {
            i: [j for j, bound in zip(open_predicted, self._pair_bounds[i], strict=True) if bound >= self.need]
            for i in open_gold
        }

    @cached_property
    def _pair_bounds(self) -> dict[int, list[int]]:
        """For each gold column that is not pinned: how many rows can match at most with each such predicted column."""
        gold, predicted, _ = self.root
        columns = self.predicted[self.pinned :]
        self.budget.spend(2 * (len(self.gold) * len(gold.rows) + len(columns) * len(predicted.rows)))
        predicted_counts = [Counter(self._keys(predicted, column)) for column in columns]
        pairs = {}
        for i in range(self.pinned, len(self.gold)):
            counts = Counter(self._keys(gold, self.gold[i]))
            self.budget.spend(sum(_CANDIDATE + len(candidate) for candidate in predicted_counts))
            pairs[i] = [_shared(counts, candidate) for candidate in predicted_counts]
        return pairs

    def leaves(self, options: Options) -> Iterator[_Leaf]:
        """Yield complete alignments within `options` that match at least `need` rows, with their number of rows.

        Of alignments that differ only by interchangeable columns, one is yielded.
        """
        pinned = {i: i for i in range(self.pinned)}
        stack = [(_Node(pinned, options, self.root), dict[int, int](), self.root.bound)]
        while stack:
            parent, pairs, bound = stack.pop()
            if bound < self.need or (node := self._settled(parent, pairs)) is None:
                continue
            if not node.options:
                yield _Leaf(tuple(j for _, j in sorted(node.columns.items())), node.split.bound)
                continue
            choices = {i: self._one_per_kind(js) for i, js in node.options.items()}
            i = min(choices, key=lambda i: (len(choices[i]), -self._distinct[i]))
            bounds = zip(self._bounds(node.split, i, choices[i]), choices[i], strict=True)
            ranked = sorted(bounds, key=lambda ranked: (ranked[0], -ranked[1]))
            stack += [(node, {i: j}, bound) for bound, j in ranked]  # the most promising one last

    def _settled(self, node: _Node, pairs: dict[int, int]) -> _Node | None:
        """Return a node in which `pairs` are aligned, and then gold columns whose options are interchangeable.

        Return None if no completion of the node can match `need` rows.
        """
        columns, options, split = node
        while True:
            used = {*pairs.values()}
            self.budget.spend(sum(map(len, options.values())))
            # Of gold columns that are alike, the later one gets the later column.
            least = {self.gold_kinds[i]: j for i, j in pairs.items()}
            options = {
                i: [j for j in js if j not in used and j > least.get(self.gold_kinds[i], -1)]
                for i, js in options.items()
                if i not in pairs
            }
            columns = columns | pairs
            for i, j in pairs.items():
                split = self._refined(split, i, j)
                if split.bound < self.need:
                    return None
            pairs = {}
            for i, js in options.items():
                if len({self.kinds[j] for j in js}) <= 1:
                    free = [j for j in js if j not in pairs.values()]
                    if not free:
                        return None
                    pairs[i] = free[0]
            if not pairs:
                return _Node(columns, options, split)

    def _bounds(self, split: _Split, i: int, choices: Sequence[int]) -> list[int]:
        """Return how many rows can match at most if gold column i is aligned as well, for each column in `choices`."""
        gold, predicted, _ = split
        self.budget.spend(len(gold.rows) + len(choices) * (_CANDIDATE + len(predicted.rows)))
        counts = Counter(self._keys(gold, self.gold[i]))
        return [_shared(counts, Counter(self._keys(predicted, self.predicted[j]))) for j in choices]

    def _refined(self, split: _Split, i: int, j: int) -> _Split:
        """Return a split whose classes are divided further by the cells of gold column i and predicted column j."""
        gold, predicted, _ = split
        self.budget.spend(len(gold.rows) + len(predicted.rows))
        keys, other_keys = self._keys(gold, self.gold[i]), self._keys(predicted, self.predicted[j])
        return _split(gold.rows, keys, predicted.rows, other_keys)

    def _keys(self, side: _Side, column: Sequence[int]) -> list[int]:
        base = self._base
        return [kind * base + column[row] for row, kind in zip(side.rows, side.classes, strict=True)]

    def _one_per_kind(self, choices: Sequence[int]) -> list[int]:
        return list({self.kinds[j]: j for j in reversed(choices)}.values())

    def same_columns(self) -> tuple[int, ...]:
        """Return a guessed alignment: gold columns with predicted columns of the same cells in any order.

        Gold columns without such a partner get the predicted columns that are left, in order. This uses no budget.
        """
        waiting = defaultdict[tuple[int, ...], list[int]](list)
        for j in reversed(range(self.pinned, len(self.predicted))):
            waiting[tuple(sorted(self.predicted[j]))].append(j)
        columns = list(range(self.pinned))
        for column in self.gold[self.pinned :]:
            same = waiting[tuple(sorted(column))]
            columns.append(same.pop() if same else -1)
        free = iter(sorted({*range(len(self.predicted))}.difference(columns)))
        return tuple(next(free) if j < 0 else j for j in columns)


def numbered(columns: Iterable[Hashable]) -> list[int]:
    """Return a number for each column, counted from 0; equal columns have the same number."""
    numbers: dict[Hashable, int] = {}
    return [numbers.setdefault(column, len(numbers)) for column in columns]


def _shared(counts: Counter[Key], other_counts: Counter[Key]) -> int:
    """Return the size of the multiset intersection of two counters."""
    return sum([min(counts[key], other_counts[key]) for key in counts.keys() & other_counts.keys()])


def _split(rows: Sequence[int], keys: Sequence[Key], other_rows: Sequence[int], other_keys: Sequence[Key]) -> _Split:
    """Return the split of two sides by the keys of their rows; rows with a key that only one side has are dropped.

    `rows` and `other_rows` are the positions that belong to the keys.
    """
    counts, other_counts = Counter(keys), Counter(other_keys)
    names = {key: name for name, key in enumerate(key for key in counts if key in other_counts)}
    sides = [
        _Side(
            [row for row, key in zip(places, side, strict=True) if key in names],
            [names[key] for key in side if key in names],
        )
        for places, side in ((rows, keys), (other_rows, other_keys))
    ]
    return _Split(sides[0], sides[1], _shared(counts, other_counts))
