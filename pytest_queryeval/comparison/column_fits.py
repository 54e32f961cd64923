"""Which columns of gold and predicted can hold equal values, whatever the order of rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from decimal import Decimal
from functools import cached_property
from typing import NamedTuple, TypeAlias

from pytest_queryeval.comparison.bounds import kinds
from pytest_queryeval.comparison.budget import Budget, BudgetSpentError
from pytest_queryeval.comparison.canonical import is_comparable, quantity_of, tolerance_type
from pytest_queryeval.comparison.numbers import as_float, widest
from pytest_queryeval.core.policy import Policy

Options: TypeAlias = Mapping[int, Sequence[int]]
"""The predicted columns that a gold column may be aligned with."""


class Side(NamedTuple):
    """Columns of one table: canonical values, and codes that are the same for all values which nearness links."""

    values: Sequence[Sequence[Hashable]]
    codes: Sequence[Sequence[int]]


class ColumnFits:
    """Columns of two tables with equally many rows. Comparing a pair of them takes as many rows off the budget."""

    def __init__(self, gold: Side, predicted: Side, policies: Sequence[Policy], budget: Budget) -> None:
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
            for chain in {self.gold_kinds[i]: i for i in options if self._is_chain(i)}.values():
                for i, choices in options.items():
                    if len({self.predicted_kinds[j] for j in choices}) > 1:
                        options[i] = [j for j in choices if any(self._fit((i, j), (chain, k)) for k in options[chain])]
        return options

    def _is_chain(self, gold_column: int) -> bool:
        """Return whether nearness links different values of a gold column."""
        return len(set(self._gold.codes[gold_column])) < len(set(self._gold.values[gold_column]))

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

    def _values_of(self, side: Side, classes: int, values: int) -> _Values:
        key = (side is self._gold, classes, values)
        if key not in self._values:
            self._values[key] = _Values.of(side.codes[classes], side.values[values])
        return self._values[key]


class _Values(NamedTuple):
    """The values of a column with the classes of their rows, in no order of rows."""

    numbers: Sequence[tuple[int, float]]
    """Sorted."""
    counts: Mapping[tuple[int, Hashable], int]
    """Of values that are not numbers."""

    @classmethod
    def of(cls, classes: Iterable[int], column: Iterable[Hashable]) -> _Values:
        """Return the values of a column, with texts as what they read as."""
        numbers: list[tuple[int, float]] = []
        counts: Counter[tuple[int, Hashable]] = Counter()
        for row_class, value in zip(classes, column, strict=True):
            quantity = quantity_of(value) if is_comparable(value) else value
            if isinstance(quantity, int | float | Decimal):
                numbers.append((row_class, as_float(quantity)))
            else:
                counts[row_class, quantity] += 1
        return cls(sorted(numbers), counts)

    def may_equal(self, column: _Values, policy: Policy) -> bool:
        """Return whether values could be paired with those of another column: if they can, then in sorted order."""
        if len(self.numbers) != len(column.numbers) or self.counts != column.counts:
            return False
        width = widest(policy)
        return all(
            x_class == y_class and (x == y or abs(x - y) <= width.reach(x))
            for (x_class, x), (y_class, y) in zip(self.numbers, column.numbers, strict=True)
        )


def _typed(column: Iterable[Hashable]) -> list[Hashable]:
    """Return values that are the same only where they are near the same values: 3 and 3.0 are not."""
    return [(tolerance_type(value), value) if is_comparable(value) else value for value in column]
