"""The best injection of gold columns into predicted columns, for comparing two query results.

A depth-first branch and bound: `bounds` says how many rows a partial alignment can match, and which F1 it can reach, by
which alignments are chosen that match equally many. Of columns that are alike, one is tried. `ColumnFits` tells which
columns can hold equal values, whatever the order of rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import NamedTuple, TypeAlias

from pytest_queryeval.comparison.bounds import (
    TOLERANCE,
    Budget,
    BudgetSpentError,
    EntityTiebreak,
    RowClasses,
    Split,
    kinds,
    search_budget,
)
from pytest_queryeval.comparison.canonical import Nested, is_comparable, quantity_of, skeleton_of, tolerance_type
from pytest_queryeval.comparison.quantities import as_float, widest_tolerance
from pytest_queryeval.core.table import Policy

Options: TypeAlias = Mapping[int, Sequence[int]]
"""The predicted columns that a gold column may be aligned with."""
# A near match is found fastest by allowing little loss; the search for any better one comes last.
_LOSSES = (0.0, 0.005, 0.02, 0.05)


class TableColumns(NamedTuple):
    """Columns of one table: canonical values, and codes that are the same for all values which nearness links."""

    values: Sequence[Sequence[Hashable]]
    codes: Sequence[Sequence[int]]


class ColumnFits:
    """Columns of two tables with equally many rows. Comparing a pair of them takes as many rows off the budget."""

    def __init__(self, gold: TableColumns, predicted: TableColumns, policies: Sequence[Policy], budget: Budget) -> None:
        self._gold, self._predicted, self._policies, self._budget = gold, predicted, policies, budget
        self._values: dict[tuple[bool, int, int], _Values] = {}
        self._fits: dict[tuple[int, int, int, int], bool] = {}

    @cached_property
    def gold_kinds(self) -> list[int]:
        """A number for each gold column, the same for columns that are interchangeable."""
        columns = zip(self._policies, self._gold.values, strict=True)
        return kinds([[policy, *_typed(column)] for policy, column in columns])

    @cached_property
    def predicted_kinds(self) -> list[int]:
        """A number for each predicted column, the same for columns that are interchangeable."""
        return kinds([_typed(column) for column in self._predicted.values])

    def narrowed(self, options: Options) -> Options:
        """Return the options whose values can be paired, alone and within the rows of one value of another column.

        The second test refuses what codes cannot: one code links all values of a chain. It may take a quarter of the
        budget.
        """
        options = {i: [j for j in choices if self._fit((i, j), (i, j))] for i, choices in options.items()}
        with suppress(BudgetSpentError), self._budget.part(4):
            # Columns of which nearness links different values.
            codes, values = self._gold.codes, self._gold.values
            chains = [i for i in options if len(set(codes[i])) < len(set(values[i]))]
            for chain in {self.gold_kinds[i]: i for i in chains}.values():
                for i, choices in options.items():
                    if len({self.predicted_kinds[j] for j in choices}) > 1:
                        options[i] = [j for j in choices if any(self._fit((i, j), (chain, k)) for k in options[chain])]
        return options

    def _fit(self, classes: tuple[int, int], values: tuple[int, int]) -> bool:
        """Return whether the values of a gold and a predicted column can be paired within rows of the same class.

        Rows are of one class where another gold and predicted column hold the same code.
        """
        gold_kinds, predicted_kinds = self.gold_kinds, self.predicted_kinds
        key = (gold_kinds[classes[0]], predicted_kinds[classes[1]], gold_kinds[values[0]], predicted_kinds[values[1]])
        if key not in self._fits:
            self._budget.spend(len(self._gold.values[values[0]]))
            gold = self._values_of(self._gold, classes[0], values[0])
            predicted = self._values_of(self._predicted, classes[1], values[1])
            self._fits[key] = gold.may_equal(predicted, self._policies[values[0]])
        return self._fits[key]

    def _values_of(self, side: TableColumns, classes: int, values: int) -> _Values:
        key = (side is self._gold, classes, values)
        if key not in self._values:
            self._values[key] = _Values.of(side.codes[classes], side.values[values], self._policies[0])
        return self._values[key]


class _Values(NamedTuple):
    """The values of a column with the classes of their rows, in no order of rows."""

    numbers: Sequence[tuple[int, float]]
    """Sorted."""
    counts: Mapping[tuple[int, Hashable], int]
    """Of values that are not numbers."""

    @classmethod
    def of(cls, classes: Iterable[int], column: Iterable[Hashable], policy: Policy) -> _Values:
        """Return the values of a column, with texts as what they read as; `policy` says how texts are read."""
        numbers: list[tuple[int, float]] = []
        counts: Counter[tuple[int, Hashable]] = Counter()
        for row_class, value in zip(classes, column, strict=True):
            quantity = quantity_of(value) if is_comparable(value) else value
            if isinstance(quantity, int | float | Decimal):
                numbers.append((row_class, as_float(quantity)))
            else:
                counts[row_class, skeleton_of(quantity, policy) if isinstance(quantity, Nested) else quantity] += 1
        return cls(sorted(numbers), counts)

    def may_equal(self, column: _Values, policy: Policy) -> bool:
        """Return whether values could be paired with those of another column: if they can, then in sorted order."""
        if self.counts != column.counts:
            return False
        width = widest_tolerance(policy)
        return all(
            x_class == y_class and (x == y or abs(x - y) <= width.reach(x))
            for (x_class, x), (y_class, y) in zip(self.numbers, column.numbers, strict=True)
        )


def _typed(column: Iterable[Hashable]) -> list[Hashable]:
    """Return values that are the same only where they are near the same values: 3 and 3.0 are not."""
    return [(tolerance_type(value), value) if is_comparable(value) else value for value in column]


@dataclass(frozen=True, slots=True, kw_only=True)
class Alignment:
    """Gold column i maps to predicted column `columns[i]`; `matched` rows agree; none is better if `is_proven`."""

    columns: tuple[int, ...]
    matched: int
    is_proven: bool


def best_alignment(
    gold: Sequence[Sequence[int]],
    predicted: Sequence[Sequence[int]],
    *,
    overlap: Callable[[int, int], int] | None = None,
    gold_distinct: Sequence[int] | None = None,
    predicted_distinct: Sequence[int] | None = None,
    pinned: int = 0,
    start: tuple[int, ...] | None = None,
    budget: Budget | None = None,
) -> Alignment:
    """Align a gold columns of n cells with b predicted columns of m cells; a is at least 1 and at most b.

    Cells are ints, and equal ints are equal cells. The best alignment has, in this order, the most rows in the multiset
    intersection of gold's rows and predicted's rows projected on `columns`; the highest F1 of mean precision (overlap /
    predicted distinct) and mean recall (overlap / gold distinct) over all gold columns; the smallest `columns`.

    `overlap(i, j)` is the number of distinct values that gold column i shares with predicted column j. It is called
    at most once for a pair, and only where rows alone do not decide. The first `pinned` gold columns map to the
    predicted columns of the same number. Where all rows match by position, nothing else is tried. `start` is an
    alignment to begin with.

    Usually at most a * b passes over the rows. The worst case is exponential, so `budget` limits the rows visited after
    a first reading (a step of an assignment counts as one row, a column tried as twenty). When it is spent, the best
    alignment found so far is returned with `is_proven` False.
    """
    budget = budget or search_budget()
    rows = RowClasses(gold, predicted, pinned=pinned, budget=budget)
    by_position = tuple(range(len(gold)))
    first = _Leaf(by_position, rows.matched(by_position))
    heights = {len(gold[0]), len(predicted[0])}
    # All rows match by position, none can match, or there is no other alignment.
    if heights == {first.matched} or 0 in heights or pinned == len(gold) or len(predicted) == 1:
        return Alignment(columns=first.columns, matched=first.matched, is_proven=True)
    first = first if start is None else _Leaf(start, rows.matched(start))
    tiebreak = EntityTiebreak(
        gold,
        predicted,
        overlap=overlap,
        gold_distinct=gold_distinct,
        predicted_distinct=predicted_distinct,
        spend=budget.spend,
    )
    return _Search(rows, tiebreak, budget, first).result()


def whole_alignment(
    gold: Sequence[Sequence[int]],
    predicted: Sequence[Sequence[int]],
    *,
    pinned: int,
    budget: Budget | None = None,
) -> Alignment | None:
    """Align columns so that every predicted row matches a gold row of its own; None if no alignment does.

    Arguments are those of `best_alignment`. Columns whose cells cannot match are refused first, by counting them. When
    the budget is spent, an alignment of which no match is known is returned, with `is_proven` False.
    """
    budget = budget or search_budget()
    try:
        columns = next(whole_alignments(gold, predicted, pinned=pinned, budget=budget), None)
    except BudgetSpentError:
        return Alignment(columns=tuple(range(len(gold))), matched=0, is_proven=False)
    return None if columns is None else Alignment(columns=columns, matched=len(predicted[0]), is_proven=True)


def whole_alignments(
    gold: Sequence[Sequence[int]],
    predicted: Sequence[Sequence[int]],
    *,
    pinned: int,
    budget: Budget,
    guesses: Iterable[tuple[int, ...]] = (),
    fits: ColumnFits | None = None,
) -> Iterator[tuple[int, ...]]:
    """Yield alignments under which every predicted row matches a gold row of its own.

    Of columns that are interchangeable, one is tried.

    `guesses` are tried before any search. `fits` tells which columns are interchangeable (by default, those of the same
    cells) and which cannot be aligned. Raise BudgetSpentError if the budget ends.
    """
    height, need = len(gold[0]), len(predicted[0])
    if len(predicted) < len(gold) or height < need:
        return
    if height == need and not _has_same_columns(gold, predicted, pinned):
        return
    rows = RowClasses(gold, predicted, pinned=pinned, budget=budget)
    by_position = tuple(range(len(gold)))
    if rows.matched(by_position) == need:
        yield by_position
    if rows.root.bound < need:
        return
    yielded = {by_position}
    for columns in guesses:
        if columns not in yielded and rows.matched(columns) == need:
            yielded.add(columns)
            yield columns
    tiebreak = EntityTiebreak(
        gold, predicted, overlap=None, gold_distinct=None, predicted_distinct=None, spend=budget.spend
    )
    search = _Search(rows, tiebreak, budget, _Leaf(by_position, 0))
    if fits is not None:
        search.gold_kinds, search.predicted_kinds = fits.gold_kinds, fits.predicted_kinds
    narrowed = fits.narrowed if fits is not None and height == need else None
    yield from (columns for columns in search.alignments_matching(need, narrowed) if columns not in yielded)


def _has_same_columns(gold: Sequence[Sequence[int]], predicted: Sequence[Sequence[int]], pinned: int) -> bool:
    """Return whether each gold column has a predicted column of its own that holds the same cells, in any order."""
    kinds_of_gold, kinds_of_predicted = ([hash(tuple(sorted(column))) for column in side] for side in (gold, predicted))
    if kinds_of_gold[:pinned] != kinds_of_predicted[:pinned]:
        return False
    return Counter(kinds_of_gold) <= Counter(kinds_of_predicted)


class _Leaf(NamedTuple):
    columns: tuple[int, ...]
    matched: int


class _Node(NamedTuple):
    """A partial alignment, and the predicted columns that open gold columns may take.

    Without `split` rows do not matter.
    """

    columns: Mapping[int, int]
    options: Mapping[int, Sequence[int]]
    split: Split | None
    bound: int


class _Step(NamedTuple):
    """What to align next; `tried` are the predicted columns that came before."""

    node: _Node
    pairs: Mapping[int, int]
    bound: int
    tried: Sequence[int] = ()


class _Search:
    """A search for leaves that match `need` rows and, where `floor` is set, have at least that entity F1."""

    def __init__(self, rows: RowClasses, tiebreak: EntityTiebreak, budget: Budget, best: _Leaf) -> None:
        self.rows, self.tiebreak, self.budget, self.best = rows, tiebreak, budget, best
        self.gold_kinds, self.predicted_kinds = kinds(rows.gold), kinds(rows.predicted)
        self.need = 0
        self.floor: float | None = None

    def result(self) -> Alignment:
        proven = True
        try:
            self._maximise_rows()
            self._maximise_entities()
        except BudgetSpentError:
            proven = False
            self._keep_if_better(self.rows.guess_alignment())
        return Alignment(columns=self.best.columns, matched=self.best.matched, is_proven=proven)

    def alignments_matching(
        self, need: int, narrowed: Callable[[Options], Options] | None
    ) -> Iterator[tuple[int, ...]]:
        """Yield alignments that match `need` rows, of the options that `narrowed` leaves."""
        self.need = need
        top = self._top(self.rows.root)
        if narrowed is not None:
            top = top._replace(options=narrowed(top.options))
        yield from (leaf.columns for leaf in self._leaves(top))

    # The most rows

    def _maximise_rows(self) -> None:
        ceiling = self.rows.root.bound
        if self.best.matched == ceiling or (self.rows.needs_all_rows(ceiling) and self._within_half([ceiling])):
            return
        ceiling = min(ceiling, *map(max, self.rows.pairs.values()))
        if self.best.matched == ceiling or self._within_half([ceiling - int(ceiling * loss) for loss in _LOSSES]):
            return
        if self._improve(once=True):
            # Exchange two columns, or one for a free one, as long as that matches more rows.
            while any(map(self._keep_if_better, self.rows.neighbours(self.best.columns))):
                pass
            self._improve()

    def _within_half(self, needs: Sequence[int]) -> bool:
        """Return whether the best leaf of at least one of `needs` rows is found within half of the remaining budget."""
        with suppress(BudgetSpentError), self.budget.part(2):
            return any(need > self.best.matched and self._improve(need) for need in needs)
        return False

    def _improve(self, need: int = 0, *, once: bool = False) -> bool:
        """Find the best leaf with at least `need` rows, or with `once` any better one; return whether there is one."""
        self.need = max(need, self.best.matched + 1)
        is_better = False
        for leaf in self._leaves(self._top(self.rows.root)):
            self.best, self.need, is_better = leaf, leaf.matched + 1, True
            if once:
                break
        return is_better

    def _keep_if_better(self, columns: tuple[int, ...]) -> bool:
        before, matched = self.best, self.rows.matched(columns)
        self.best = _Leaf(columns, matched) if matched > before.matched else before
        return self.best is not before

    # The best entity F1 and the lowest columns that match as many

    def _maximise_entities(self) -> None:
        self.need = self.best.matched
        node = self._top(self.rows.root if self.need else None)
        if all(len(choices) == 1 for choices in node.options.values()):
            return
        self._separate_kinds(node)
        leaf: _Leaf | None = self.best
        while leaf is not None:
            self.best = leaf
            self.floor = self.tiebreak.f1(leaf.columns) + TOLERANCE
            leaf = next(self._leaves(node), None)
        self.floor = self.tiebreak.f1(self.best.columns) - TOLERANCE
        for i in range(self.rows.pinned, len(self.best.columns)):
            if all(self.best.columns[k] <= min(choices) for k, choices in node.options.items()):
                return
            for j in self._one_per_kind(node.options[i]):  # the lowest column that leads to as good a leaf
                if j >= self.best.columns[i]:
                    break
                leaf = next(self._leaves(self._take(_Step(node, {i: j}, node.bound))), None)
                if leaf is not None:
                    self.best = leaf
                    break
            node = self._take(_Step(node, {i: self.best.columns[i]}, node.bound))

    def _separate_kinds(self, node: _Node) -> None:
        """Separate columns of equal cells that differ in their distinct values, which `overlap` may see more finely."""
        if len(self.rows.gold) + len(self.rows.predicted) == len({*self.gold_kinds}) + len({*self.predicted_kinds}):
            return
        gold_keys: list[list[object]] = [[kind] for kind in self.gold_kinds]
        predicted_keys: list[list[object]] = [[kind] for kind in self.predicted_kinds]
        for i, j in ((i, j) for i, choices in node.options.items() if len(choices) > 1 for j in choices):
            gold_keys[i].append((j, self.tiebreak.pair(i, j)))
            predicted_keys[j].append((i, self.tiebreak.pair(i, j)))
        self.gold_kinds, self.predicted_kinds = kinds(gold_keys), kinds(predicted_keys)

    # The tree

    def _top(self, split: Split | None) -> _Node:
        open_golds = range(self.rows.pinned, len(self.rows.gold))
        everything = list(range(self.rows.pinned, len(self.rows.predicted)))
        options = self.rows.candidates(self.need) if split else dict.fromkeys(open_golds, everything)
        return _Node({i: i for i in range(self.rows.pinned)}, options, split, split.bound if split else 0)

    def _leaves(self, top: _Node) -> Iterator[_Leaf]:
        """Yield leaves below `top` that meet `need` and `floor`, which may rise meanwhile; one of like ones."""
        stack = [_Step(top, {}, top.bound)]
        while stack:
            step = stack.pop()
            if step.bound < self.need or (node := self._take(step)).bound < self.need:
                continue
            if node.options:
                stack += self._steps(node)
                continue
            columns = tuple(j for _, j in sorted(node.columns.items()))
            if self.floor is None or self.tiebreak.f1(columns) >= self.floor:
                yield _Leaf(columns, node.bound)

    def _take(self, step: _Step) -> _Node:
        node, pairs = step.node, step.pairs
        if not pairs:
            return node
        self.budget.spend(sum(map(len, node.options.values())))
        used_columns = {*pairs.values()}
        options = {i: [j for j in js if j not in used_columns] for i, js in node.options.items() if i not in pairs}
        # Two gold columns of equal cells are interchangeable: what one has tried before is no option of the other.
        barred = {self.predicted_kinds[j] for j in step.tried}
        gold_column = next(iter(pairs))
        for k in options if barred else ():
            if self.gold_kinds[k] == self.gold_kinds[gold_column] and node.options[k] == node.options[gold_column]:
                options[k] = [j for j in options[k] if self.predicted_kinds[j] not in barred]
        columns = {**node.columns, **pairs}
        if node.split is None or not options:
            matches = self.rows.count_completed_matches(node.split, pairs) if node.split else 0
            return _Node(columns, options, None, matches)
        ((i, j),) = pairs.items()
        split = self.rows.refined(node.split, i, j)
        return _Node(columns, options, split, split.bound)

    def _steps(self, node: _Node) -> list[_Step]:
        """Return the steps from a node, the most promising one last; none if no leaf below it can be good enough."""
        if not all(node.options.values()):
            return []
        guess: list[int] | None = None
        if self.floor is not None:
            aligned = {i: (j,) for i, j in node.columns.items()}
            options = [aligned.get(i) or node.options[i] for i in range(len(self.rows.gold))]
            guess = self.tiebreak.find_alignment(options, self.floor)
            if guess is None:
                return []
        choices = {i: self._one_per_kind(js) for i, js in node.options.items()}
        if max(map(len, choices.values())) == 1:  # the only step, unless columns of a kind are too few
            pairs: dict[int, int] = {}
            used_columns: set[int] = set()
            for i, js in node.options.items():
                pairs[i] = next((j for j in js if j not in used_columns), -1)
                used_columns.add(pairs[i])
            return [] if -1 in used_columns else [_Step(node, pairs, node.bound)]
        i = min(choices, key=lambda i: (len(choices[i]), -self.rows.gold_distinct_counts[i]))
        bounds = dict.fromkeys(choices[i], node.bound)
        if node.split is not None and len(bounds) > 1:
            bounds = dict(zip(choices[i], self.rows.bounds(node.split, i, choices[i]), strict=True))
        ranked = sorted((bound, guess is not None and guess[i] == j, -j) for j, bound in bounds.items())
        order = [-j for _, _, j in ranked]
        steps = [_Step(node, {i: j}, bounds[j], order[k:]) for k, j in enumerate(order, 1)]
        if guess and not node.split:
            steps.append(_Step(node, {i: guess[i] for i in node.options}, node.bound))
        return steps

    def _one_per_kind(self, choices: Sequence[int]) -> list[int]:
        first: dict[int, int] = {}
        for j in choices:
            first.setdefault(self.predicted_kinds[j], j)
        return list(first.values())
