"""The best injection of gold columns into predicted columns, for comparing two query results.

Rows are matched by refining classes: rows are alike while the columns aligned so far agree, and the sum over classes of
the smaller count bounds the rows that any completion can match. Ties on rows are decided by `entity_ties`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, TypeVar

from pytest_queryeval.entity_ties import TOLERANCE, EntityTies

Key = TypeVar("Key", bound=Hashable)
Columns = Sequence[Sequence[int]]

DEFAULT_BUDGET = 10_000_000
# A near match is found fastest by allowing little loss; the search for any better one comes last.
_LOSSES = (0.0, 0.005, 0.02, 0.05)


@dataclass(frozen=True, slots=True, kw_only=True)
class Alignment:
    """Gold column i maps to predicted column `columns[i]`; `matched` rows agree; `proven` that none is better."""

    columns: tuple[int, ...]
    matched: int
    proven: bool


def best_alignment(
    gold: Columns,
    predicted: Columns,
    *,
    overlap: Callable[[int, int], int] | None = None,
    gold_distinct: Sequence[int] | None = None,
    predicted_distinct: Sequence[int] | None = None,
    pinned: int = 0,
    budget: int = DEFAULT_BUDGET,
) -> Alignment | None:
    """Align a gold columns of n cells with b predicted columns of m cells; None when b < a.

    Cells are ints, equal ints being equal cells. The best alignment has, in this order, the most rows in the multiset
    intersection of gold's rows and predicted's rows projected on `columns`; the highest F1 of mean precision (overlap /
    predicted distinct) and mean recall (overlap / gold distinct) over all gold columns; the smallest `columns`.

    `overlap(i, j)` is the number of distinct values that gold column i shares with predicted column j. It is asked once
    per pair, only for pairs that rows leave undecided. The first `pinned` gold columns map to the predicted columns
    of the same number. Without gold columns `matched` is 0. Where all rows match by position, nothing else is tried.

    Usually a * b passes over the rows or fewer. The worst case is exponential, so `budget` limits the rows visited (a
    step of an assignment counts as one row): past it the best alignment found is returned with `proven` False.
    """
    if len(predicted) < len(gold):
        return None
    if not 0 <= pinned <= len(gold):
        raise ValueError(f"pinned is {pinned}, gold has {len(gold)} columns")
    search = _Search(gold, predicted, pinned, budget)
    heights = {len(column) for column in (*gold[:1], *predicted[:1])}
    if heights == {search.best.matched} or 0 in heights or pinned == len(gold) or len(predicted) == 1:
        return Alignment(columns=search.best.columns, matched=search.best.matched, proven=True)
    search.ties = EntityTies(
        gold,
        predicted,
        overlap=overlap,
        gold_distinct=gold_distinct,
        predicted_distinct=predicted_distinct,
        spend=search.spend,
    )
    try:
        search.maximise_rows()
        search.maximise_entities()
    except _BudgetSpentError:
        best = max(search.best, search.alike(), key=lambda leaf: leaf.matched)
        return Alignment(columns=best.columns, matched=best.matched, proven=False)
    return Alignment(columns=search.best.columns, matched=search.best.matched, proven=True)


class _BudgetSpentError(Exception):
    """The search has visited as many rows as it may."""


# The tuples below are made by the thousand: a frozen dataclass takes three times as long to make.
class _Split(NamedTuple):
    """The rows that may still match, each with the class of its cells in the columns aligned so far."""

    gold_rows: Sequence[int]
    gold_classes: Sequence[int]
    predicted_rows: Sequence[int]
    predicted_classes: Sequence[int]
    bound: int


class _Leaf(NamedTuple):
    columns: tuple[int, ...]
    matched: int


class _Node(NamedTuple):
    """A partial alignment, and the predicted columns left to each open gold column; rows do not matter without `split`."""

    columns: Mapping[int, int]
    options: Mapping[int, Sequence[int]]
    split: _Split | None
    bound: int


class _Step(NamedTuple):
    """What to align next; `tried` are the predicted columns that went before, and cover for columns of their kind."""

    node: _Node
    pairs: Mapping[int, int]
    bound: int
    tried: Sequence[int]


class _Search:
    """Depth-first branch and bound for leaves that match `need` rows and, where `floor` is set, reach that entity F1."""

    ties: EntityTies

    def __init__(self, gold: Columns, predicted: Columns, pinned: int, budget: int) -> None:
        self.gold, self.predicted, self.pinned = gold, predicted, pinned
        self.left, self.reserve = budget, 0
        self.need = 0
        self.floor: float | None = None
        self.best = self.leaf(range(len(gold)))

    def spend(self, visits: int) -> None:
        self.left -= visits
        if self.left < self.reserve:
            raise _BudgetSpentError

    # The most rows

    def maximise_rows(self) -> None:
        self.reserve = self.left // 2
        try:
            done = self._near_ceiling()
        except _BudgetSpentError:
            done = False
        self.reserve = 0
        if not done and self._improve(once=True):
            self._swap()
            self._improve()

    def _near_ceiling(self) -> bool:
        """Whether the best is known, because it matches nearly all rows that can match."""
        ceiling = self.root.bound
        if self.best.matched == ceiling or (self._whole(ceiling) and self._improve(ceiling)):
            return True
        ceiling = min(ceiling, *map(max, self.pair_bounds.values()))
        for loss in _LOSSES:
            need = ceiling - int(ceiling * loss)
            if need <= self.best.matched:
                return self.best.matched == ceiling
            if self._improve(need):
                return True
        return False

    def _improve(self, need: int = 0, *, once: bool = False) -> bool:
        """Keep the best leaf with `need` rows; whether there was one, and unless `once` no better one is left."""
        self.need = max(need, self.best.matched + 1)
        found = False
        for self.best in self.leaves(self.top(self.root)):
            self.need, found = self.best.matched + 1, True
            if once:
                break
        return found

    def _swap(self) -> None:
        """Exchange two columns, or one for a free one, while that matches more rows."""
        better = True
        while better:
            better = False
            for columns in _neighbours(self.best.columns, self.pinned, len(self.predicted)):
                self.spend(len(self.predicted[0]) * (1 + len(columns) // 4))
                leaf = self.leaf(columns)
                if leaf.matched > self.best.matched:
                    self.best, better = leaf, True
                    break

    # The best entity F1 and the lowest columns among the most rows

    def maximise_entities(self) -> None:
        self.need = self.best.matched
        node = self.top(self.root if self.need else None)
        if all(len(choices) == 1 for choices in node.options.values()):
            return
        self._tell_apart(node.options)
        while self._raised(node):
            pass
        self.floor = self.ties.f1(self.best.columns) - TOLERANCE
        for i in range(self.pinned, len(self.gold)):
            if all(self.best.columns[k] <= min(choices) for k, choices in node.options.items()):
                return
            self._lower(node, i)
            node = self._take(_Step(node, {i: self.best.columns[i]}, node.bound, ()))

    def _raised(self, node: _Node) -> bool:
        self.floor = self.ties.f1(self.best.columns) + TOLERANCE
        leaf = next(self.leaves(node), None)
        self.best = leaf or self.best
        return leaf is not None

    def _lower(self, node: _Node, i: int) -> None:
        """Map gold column i to the lowest predicted column that an alignment as good allows."""
        for j in self._one_of_a_kind(node.options[i]):
            if j >= self.best.columns[i]:
                return
            leaf = next(self.leaves(self._take(_Step(node, {i: j}, node.bound, ()))), None)
            if leaf is not None:
                self.best = leaf
                return

    def _tell_apart(self, options: Mapping[int, Sequence[int]]) -> None:
        """Columns that are alike for rows may differ in distinct values where `overlap` is finer than the ints."""
        if len(set(self.predicted_kinds)) == len(self.predicted) and len(set(self.gold_kinds)) == len(self.gold):
            return
        golds: list[list[object]] = [[kind] for kind in self.gold_kinds]
        others: list[list[object]] = [[kind] for kind in self.predicted_kinds]
        for i, j in ((i, j) for i, choices in options.items() if len(choices) > 1 for j in choices):
            golds[i].append((j, self.ties.pair(i, j)))
            others[j].append((i, self.ties.pair(i, j)))
        self.gold_kinds, self.predicted_kinds = _kinds(golds), _kinds(others)

    # The search

    def top(self, split: _Split | None) -> _Node:
        columns = {i: i for i in range(self.pinned)}
        return _Node(columns, _decided(self._options(split)), split, split.bound if split else 0)

    def _options(self, split: _Split | None) -> dict[int, list[int]]:
        """The predicted columns with which each gold column can still match `need` rows."""
        golds, others = range(self.pinned, len(self.gold)), range(self.pinned, len(self.predicted))
        if split is None:
            return {i: list(others) for i in golds}
        if self._whole(self.need):
            counts, other_counts = self.counts
            return {i: [j for j in others if dict.__eq__(counts[i], other_counts[j])] for i in golds}
        return {i: [j for j in others if self.pair_bounds[i][j - self.pinned] >= self.need] for i in golds}

    def leaves(self, top: _Node) -> Iterator[_Leaf]:
        """Every alignment below `top`, but for exchanges of like columns, that meets `need` and `floor` as they stand."""
        stack = [_Step(top, {}, top.bound, ())]
        while stack:
            step = stack.pop()
            if step.bound < self.need:
                continue
            node = self._take(step)
            if node.bound < self.need:
                continue
            if node.options:
                stack += self._steps(node)
                continue
            columns = tuple(node.columns[i] for i in range(len(self.gold)))
            if self.floor is None or self.ties.f1(columns) >= self.floor:
                yield _Leaf(columns, node.bound)

    def _take(self, step: _Step) -> _Node:
        node, pairs = step.node, step.pairs
        if not pairs:
            return node
        taken = set(pairs.values())
        columns = {**node.columns, **pairs}
        options = {i: [j for j in js if j not in taken] for i, js in node.options.items() if i not in pairs}
        if step.tried:
            self._bar(step, options)
        if node.split is None:
            return _Node(columns, options, None, 0)
        if not options:
            return _Node(columns, options, None, self._together(node.split, pairs))
        ((i, j),) = pairs.items()
        split = self._refined(node.split, i, j)
        return _Node(columns, options, split, split.bound)

    def _bar(self, step: _Step, options: dict[int, list[int]]) -> None:
        """Two like gold columns may exchange their columns: what one has tried, the other need not."""
        (i,) = step.pairs
        kinds, barred = self.predicted_kinds, {self.predicted_kinds[j] for j in step.tried}
        for k in options:
            if self.gold_kinds[k] == self.gold_kinds[i] and step.node.options[k] == step.node.options[i]:
                options[k] = [j for j in options[k] if kinds[j] not in barred]

    def _steps(self, node: _Node) -> list[_Step]:
        """What to try below a node, the most promising last."""
        if not all(node.options.values()):
            return []
        guess: list[int] | None = None
        if self.floor is not None:
            known = ([node.columns[i]] if i in node.columns else node.options[i] for i in range(len(self.gold)))
            guess = self.ties.reach(list(known), self.floor)
            if guess is None:
                return []
        choices = {i: self._one_of_a_kind(js) for i, js in node.options.items()}
        if all(len(js) == 1 for js in choices.values()):
            return self._forced(node)
        i = min(choices, key=lambda i: (len(choices[i]), -self._spread(i, node)))
        bounds = self._bounds(node, i, choices[i])
        ranked = sorted((bound, guess is not None and guess[i] == j, -j) for bound, j in zip(bounds, choices[i], strict=True))
        order = [-j for _, _, j in ranked]
        steps = [_Step(node, {i: j}, bound, order[k + 1 :]) for k, (j, (bound, _, _)) in enumerate(zip(order, ranked, strict=True))]
        if guess is not None and node.split is None:
            steps.append(_Step(node, {k: guess[k] for k in node.options}, 0, ()))
        return steps

    def _forced(self, node: _Node) -> list[_Step]:
        """The one step left where each gold column has one kind of column left."""
        pairs: dict[int, int] = {}
        for i, js in node.options.items():
            free = set(js).difference(pairs.values())
            if not free:
                return []
            pairs[i] = min(free)
        return [_Step(node, pairs, node.bound, ())]

    def _one_of_a_kind(self, choices: Sequence[int]) -> list[int]:
        first: dict[int, int] = {}
        for j in choices:
            first.setdefault(self.predicted_kinds[j], j)
        return list(first.values())

    # Rows

    def leaf(self, columns: Sequence[int]) -> _Leaf:
        rows = Counter(zip(*(self.predicted[j] for j in columns), strict=True))
        return _Leaf(tuple(columns), _shared(self.gold_rows, rows))

    @cached_property
    def gold_rows(self) -> Counter[tuple[int, ...]]:
        return Counter(zip(*self.gold, strict=True))

    @cached_property
    def gold_kinds(self) -> list[int]:
        return _kinds(self.gold)

    @cached_property
    def predicted_kinds(self) -> list[int]:
        return _kinds(self.predicted)

    @cached_property
    def base(self) -> int:
        ends = [end for column in (*self.gold, *self.predicted) for end in (min(column), max(column))]
        return max(ends) - min(ends) + 1

    @cached_property
    def root(self) -> _Split:
        """Rows classed by their pinned cells and, where every column takes part, by their other cells in any order."""
        self.spend(len(self.gold[0]) + len(self.predicted[0]))
        closed = len(self.gold) == len(self.predicted)
        keys, others = (_anchors(table, self.pinned, closed) for table in (self.gold, self.predicted))
        return _split(range(len(keys)), keys, range(len(others)), others)

    @cached_property
    def counts(self) -> tuple[list[Counter[int]], list[Counter[int]]]:
        """Per column, how often each cell occurs in each class of the root."""
        rows, classes, other_rows, other_classes, _ = self.root
        self.spend(2 * (len(self.gold) * len(rows) + len(self.predicted) * len(other_rows)))
        return (
            [Counter(self._keys(rows, classes, column)) for column in self.gold],
            [Counter(self._keys(other_rows, other_classes, column)) for column in self.predicted],
        )

    @cached_property
    def pair_bounds(self) -> dict[int, list[int]]:
        """The most rows that can match where an open gold column maps to each open predicted column."""
        counts, others = self.counts
        return {i: [self._pair_bound(counts[i], other) for other in others[self.pinned :]] for i in range(self.pinned, len(counts))}

    def _pair_bound(self, counts: Counter[int], others: Counter[int]) -> int:
        self.spend(1 + min(len(counts), len(others)) // 4)
        return _shared(counts, others)

    def _whole(self, need: int) -> bool:
        """Whether `need` rows are all that may match, so that columns must have equal cells to take part."""
        return need == len(self.root.gold_rows) == len(self.root.predicted_rows)

    def _spread(self, i: int, node: _Node) -> int:
        return len(self.counts[0][i]) if node.split else 0

    def _keys(self, rows: Sequence[int], classes: Sequence[int], column: Sequence[int]) -> list[int]:
        base = self.base
        return [kind * base + column[row] for row, kind in zip(rows, classes, strict=True)]

    def _bounds(self, node: _Node, i: int, choices: Sequence[int]) -> list[int]:
        if node.split is None or len(choices) == 1:
            return [node.bound] * len(choices)
        rows, classes, other_rows, other_classes, _ = node.split
        self.spend(len(rows) + len(choices) * len(other_rows))
        counts = Counter(self._keys(rows, classes, self.gold[i]))
        return [_shared(counts, Counter(self._keys(other_rows, other_classes, self.predicted[j]))) for j in choices]

    def _refined(self, split: _Split, i: int, j: int) -> _Split:
        rows, classes, other_rows, other_classes, _ = split
        self.spend(len(rows) + len(other_rows))
        keys = self._keys(rows, classes, self.gold[i])
        return _split(rows, keys, other_rows, self._keys(other_rows, other_classes, self.predicted[j]))

    def _together(self, split: _Split, pairs: Mapping[int, int]) -> int:
        """The rows that match with all pairs taken at once."""
        rows, classes, other_rows, other_classes, _ = split
        self.spend((len(rows) + len(other_rows)) * (1 + len(pairs) // 4))
        keys = zip(classes, *([self.gold[i][row] for row in rows] for i in pairs), strict=True)
        others = zip(other_classes, *([self.predicted[j][row] for row in other_rows] for j in pairs.values()), strict=True)
        return _shared(Counter(keys), Counter(others))

    def alike(self) -> _Leaf:
        """Each gold column with a free column of the same cells, else the lowest free one: where the search is too long."""
        waiting: dict[tuple[int, ...], list[int]] = {}
        for j in range(len(self.predicted) - 1, self.pinned - 1, -1):
            waiting.setdefault(tuple(sorted(self.predicted[j])), []).append(j)
        columns = list(range(self.pinned)) + [-1] * (len(self.gold) - self.pinned)
        for i in range(self.pinned, len(columns)):
            same = waiting.get(tuple(sorted(self.gold[i])))
            columns[i] = same.pop() if same else -1
        free = iter(sorted(set(range(len(self.predicted))).difference(columns)))
        return self.leaf([next(free) if j < 0 else j for j in columns])


def _shared(counts: Counter[Key], others: Counter[Key]) -> int:
    """The size of the multiset intersection."""
    if len(others) < len(counts):
        counts, others = others, counts
    if max(counts.values(), default=1) == 1:
        return sum(map(others.__contains__, counts))
    get = others.get
    return sum([min_ if (min_ := get(key, 0)) < count else count for key, count in counts.items()])


def _split(rows: Sequence[int], keys: list[Key], other_rows: Sequence[int], other_keys: list[Key]) -> _Split:
    """Class rows by key; a row whose key the other side lacks cannot match and is dropped."""
    counts, others = Counter(keys), Counter(other_keys)
    names = {key: name for name, key in enumerate(key for key in counts if key in others)}
    return _Split(*_classed(rows, keys, names), *_classed(other_rows, other_keys, names), _shared(counts, others))


def _classed(rows: Sequence[int], keys: list[Key], names: Mapping[Key, int]) -> tuple[list[int], list[int]]:
    kept = [row for row, key in zip(rows, keys, strict=True) if key in names]
    return kept, [names[key] for key in keys if key in names]


def _anchors(table: Columns, pinned: int, closed: bool) -> list[tuple[int, ...]]:
    if closed:
        return [row[:pinned] + tuple(sorted(row[pinned:])) for row in zip(*table, strict=True)]
    return list(zip(*table[:pinned], strict=True)) if pinned else [()] * len(table[0])


def _kinds(columns: Sequence[Sequence[object]]) -> list[int]:
    """The same number for columns that are equal item by item."""
    first: dict[tuple[object, ...], int] = {}
    return [first.setdefault(tuple(column), len(first)) for column in columns]


def _decided(options: dict[int, list[int]]) -> dict[int, list[int]]:
    """Leave a predicted column that is the only option of one gold column to that column."""
    queue = [i for i, js in options.items() if len(js) == 1]
    while queue:
        i = queue.pop()
        for k, js in options.items():
            if k != i and options[i] and options[i][0] in js:
                js.remove(options[i][0])
                if len(js) == 1:
                    queue.append(k)
    return options


def _neighbours(columns: tuple[int, ...], pinned: int, width: int) -> Iterator[list[int]]:
    free = sorted(set(range(width)).difference(columns))
    for i in range(pinned, len(columns)):
        for other in (*columns[i + 1 :], *free):
            yield [columns[i] if j == other else other if k == i else j for k, j in enumerate(columns)]
