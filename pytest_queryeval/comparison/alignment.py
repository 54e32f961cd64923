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
    """The search has visited as many rows as it may."""


class Budget:
    """Rows that may still be visited."""

    def __init__(self, rows: int = DEFAULT_BUDGET) -> None:
        self.left = rows

    def spend(self, visits: int) -> None:
        """Take rows off the budget; raise `BudgetSpentError`, which stops the search, where fewer are left."""
        if visits > self.left:
            raise BudgetSpentError
        self.left -= visits


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Alignment:
    """Gold column i maps to predicted column `columns[i]`; `matched` rows agree; none is better if `is_proven`."""

    columns: tuple[int, ...]
    matched: int
    is_proven: bool


def best_alignment(
    gold: Columns, predicted: Columns, *, pinned: int = 0, guesses: Sequence[tuple[int, ...]] = ()
) -> Alignment:
    """Align gold columns with as many predicted columns or more, so that the most rows match.

    Cells are ints, and equal ints are equal cells. Matching rows are those of the multiset intersection of gold's rows
    and predicted's rows projected on the aligned columns. The first `pinned` columns are aligned with themselves. Of
    alignments that match equally many rows, the first that is found counts; `guesses`, by default the one by position,
    come first. Past the budget, the best alignment found so far is returned with `is_proven` False.
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
    """Yield an alignment, and up to MAX_TIES others that match at least as many rows, within a budget of their own."""
    yield columns
    search = _Search(gold, predicted, 0, Budget(TIE_BUDGET))
    search.need = search.matched(columns)
    with suppress(BudgetSpentError):
        for leaf in islice(search.leaves(search.options()), MAX_TIES):
            yield leaf.columns


def whole_alignment(
    gold: Columns, predicted: Columns, *, pinned: int, budget: Budget | None = None
) -> Alignment | None:
    """Align columns so that every predicted row matches a gold row of its own; None if no alignment does.

    When the budget is spent, an alignment of which no match is known is returned, with `is_proven` False.
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
    """Yield alignments under which every predicted row matches a gold row of its own.

    The one by position and `guesses` are tried before any search. Columns of gold, and of predicted, that are of one of
    `kinds` (by default, of the same cells) are interchangeable: one order of them is tried, within the options that
    `narrowed` leaves. Raise BudgetSpentError if the budget ends.
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
    """The rows of one table that may still match, by position, and the class of each."""

    rows: Sequence[int]
    classes: Sequence[int]


class _Split(NamedTuple):
    """Both sides, and how many of their rows match so far."""

    gold: _Side
    predicted: _Side
    bound: int


class _Node(NamedTuple):
    """A partial alignment, and the predicted columns that open gold columns may take."""

    columns: dict[int, int]
    options: Options
    split: _Split


class _Search:
    """A search for leaves that match at least `need` rows, which may rise meanwhile; `best` is the best one so far."""

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
        """Return how many rows match where gold column i is aligned with predicted `columns[i]`; costs no budget."""
        return _shared(self._gold_rows, Counter(zip(*(self.predicted[j] for j in columns), strict=True)))

    @cached_property
    def _gold_rows(self) -> Counter[tuple[int, ...]]:
        return Counter(zip(*self.gold, strict=True))

    @cached_property
    def root(self) -> _Split:
        """Rows classed by their pinned cells and, where every column takes part, by their other cells in any order."""
        keys = []
        for table in (self.gold, self.predicted):
            rows = zip(*table, strict=True)
            if len(self.gold) == len(self.predicted):
                keys.append([row[: self.pinned] + tuple(sorted(row[self.pinned :])) for row in rows])
            else:
                keys.append([row[: self.pinned] for row in rows])
        return _split(range(len(keys[0])), keys[0], range(len(keys[1])), keys[1])

    def keep_best(self, guesses: Iterable[tuple[int, ...]]) -> None:
        """Keep the first of `guesses` and the best alignment so far that match the most rows."""
        leaves = [_Leaf(columns, self.matched(columns)) for columns in guesses]
        self.best = max(self.best, *leaves, key=lambda leaf: leaf.matched)

    def maximise(self) -> None:
        """Find an alignment that matches as many rows as any."""
        ceiling = self.root.bound
        if self.best.matched == ceiling or self._improve(ceiling):
            return
        ceiling = min(ceiling, *map(max, self._pairs.values()))
        if not any(self._improve(ceiling - int(ceiling * loss)) for loss in _LOSSES):
            self._improve(0)

    def _improve(self, need: int) -> bool:
        """Find the best leaf with at least `need` rows and more than the best one so far; tell if there is one."""
        self.need = max(need, self.best.matched + 1)
        before = self.best
        for leaf in self.leaves(self.options()):
            self.best = leaf
            self.need = leaf.matched + 1
        return self.best is not before

    def options(self) -> Options:
        """Return the predicted columns with which an open gold column can match `need` rows, and maybe some others."""
        open_gold, open_predicted = (range(self.pinned, len(table)) for table in (self.gold, self.predicted))
        gold, predicted, _ = self.root
        if self.need == len(gold.rows) == len(predicted.rows):
            same = defaultdict[int, list[int]](list)
            for j in open_predicted:
                same[hash(tuple(sorted(self._keys(predicted, self.predicted[j]))))].append(j)
            return {i: [*same[hash(tuple(sorted(self._keys(gold, self.gold[i]))))]] for i in open_gold}
        return {
            i: [j for j, bound in zip(open_predicted, self._pairs[i], strict=True) if bound >= self.need]
            for i in open_gold
        }

    @cached_property
    def _pairs(self) -> dict[int, list[int]]:
        """How many rows at most can match where an open gold column is aligned with each open predicted column."""
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
        """Yield alignments within `options` that match at least `need` rows; one of those that are alike."""
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
        """Align `pairs` as well, and then columns that have one kind of options left.

        Return None if no alignment of the other columns can match enough rows.
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
        """Return how many rows match where gold column i is aligned as well, with each of `choices`."""
        gold, predicted, _ = split
        self.budget.spend(len(gold.rows) + len(choices) * (_CANDIDATE + len(predicted.rows)))
        counts = Counter(self._keys(gold, self.gold[i]))
        return [_shared(counts, Counter(self._keys(predicted, self.predicted[j]))) for j in choices]

    def _refined(self, split: _Split, i: int, j: int) -> _Split:
        """Return the classes where gold column i is aligned as well, with predicted column j."""
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
        """Guess an alignment: each gold column with a predicted one of the same cells, else with one that is left.

        This costs no budget.
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
    """Return a number for each column, the same for columns that are equal."""
    numbers: dict[Hashable, int] = {}
    return [numbers.setdefault(column, len(numbers)) for column in columns]


def _shared(counts: Counter[Key], other_counts: Counter[Key]) -> int:
    """Return the size of the multiset intersection."""
    return sum([min(counts[key], other_counts[key]) for key in counts.keys() & other_counts.keys()])


def _split(rows: Sequence[int], keys: Sequence[Key], other_rows: Sequence[int], other_keys: Sequence[Key]) -> _Split:
    """Group rows into classes by key; a row whose key the other side lacks cannot match and is dropped."""
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
