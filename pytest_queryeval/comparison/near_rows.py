"""One-to-one pairs of rows whose values are near each other."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable, Iterator, Sequence
from decimal import Decimal
from typing import NamedTuple, TypeAlias

from pytest_queryeval.comparison.assignment import most_pairs
from pytest_queryeval.comparison.budget import Budget, BudgetSpentError
from pytest_queryeval.comparison.canonical import is_near
from pytest_queryeval.comparison.comparables import is_comparable, quantity_of
from pytest_queryeval.comparison.numbers import as_float, widest
from pytest_queryeval.core.policy import Policy

Cells: TypeAlias = tuple[Hashable, ...]
Placed: TypeAlias = tuple[int, Cells]
Pairs: TypeAlias = list[tuple[int, int]]
COMPARISON = 5  # what a comparison of two rows takes of the budget, in rows visited


class PairedRows(NamedTuple):
    """Pairs of positions; `proven` that there cannot be more of them."""

    pairs: Pairs
    proven: bool


def pair_near_rows(
    gold: Sequence[Placed], predicted: Sequence[Placed], policies: Sequence[Policy], budget: Budget
) -> PairedRows:
    """Pair as many rows as there can be that are equal within the tolerance, as long as the budget lasts.

    Rows are a position and values; `policies` are those of the values. Rows are compared with those whose number
    is near in the place where numbers differ most.
    """
    search = _RowSearch(gold, predicted, policies, budget)
    try:
        return PairedRows(search.most_pairs(), proven=True)
    except BudgetSpentError:
        return PairedRows(search.first_fits, proven=False)


class _Row(NamedTuple):
    number: float
    position: int
    values: Cells


class _RowSearch:
    """A search for pairs of near rows; `first_fits` are those found so far with the first partner that was free."""

    def __init__(
        self, gold: Sequence[Placed], predicted: Sequence[Placed], policies: Sequence[Policy], budget: Budget
    ) -> None:
        columns = zip(*(values for _, values in (*gold, *predicted)), strict=True)
        spread = [len(set(map(_number, column))) for column in columns]
        place = spread.index(max(spread))
        self.gold, self.predicted = (
            sorted(_Row(_number(values[place]), position, values) for position, values in side)
            for side in (gold, predicted)
        )
        self.first_fits: Pairs = []
        self._numbers = [row.number for row in self.predicted]
        self._policies = policies
        self._width = widest(policies[place])
        self._budget = budget

    def most_pairs(self) -> Pairs:
        """Return as many pairs of positions as there can be."""
        self._find_first_fits()
        if len(self.first_fits) == min(len(self.gold), len(self.predicted)):
            return self.first_fits
        fits = [list(self._near(row)) for row in self.gold]
        pairs = most_pairs(fits, len(self.predicted))
        return [(self.gold[place].position, self.predicted[partner].position) for place, partner in pairs]

    def _find_first_fits(self) -> None:
        """Pair each row with the first near one that is free."""
        free = list(range(len(self.predicted) + 1))  # the next place that may be free, for each place
        for row in self.gold:
            place = next(self._near(row, free), None)
            if place is not None:
                free[place] = place + 1
                self.first_fits.append((row.position, self.predicted[place].position))

    def _near(self, row: _Row, free: list[int] | None = None) -> Iterator[int]:
        """Yield the places of rows that are near in all values."""
        reach = self._width.reach(row.number)
        place = bisect_left(self._numbers, row.number - reach) if reach < float("inf") else 0
        while (place := _next_free(place, free)) < len(self.predicted) and self._numbers[place] <= row.number + reach:
            self._budget.spend(COMPARISON)
            if all(map(_are_equal, row.values, self.predicted[place].values, self._policies)):
                yield place
            place += 1


def _number(value: Hashable) -> float:
    """Return a number, a truth value among them, to sort by; 0 for what is none."""
    quantity = quantity_of(value) if is_comparable(value) else value
    return as_float(quantity) if isinstance(quantity, int | float | Decimal) else 0.0


def _are_equal(x: Hashable, y: Hashable, policy: Policy) -> bool:
    return x == y or (is_comparable(x) and is_comparable(y) and is_near(x, y, policy))


def _next_free(place: int, free: list[int] | None) -> int:
    """Return the first free place from `place` on, and shorten the way to it."""
    if free is None:
        return place
    while place < len(free) - 1 and free[place] != place:
        free[place] = free[free[place]]
        place = free[place]
    return place
