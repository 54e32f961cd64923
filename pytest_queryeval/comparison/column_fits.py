"""Which columns of gold and predicted can hold equal values, whatever the order of rows."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from functools import cached_property

from pytest_queryeval.comparison.comparables import is_comparable, kind_of
from pytest_queryeval.comparison.row_classes import Budget, kinds
from pytest_queryeval.comparison.tolerance import ColumnValues
from pytest_queryeval.core.policy import Policy

Columns = Sequence[Sequence[Hashable]]


class ColumnFits:
    """Columns of canonical values, gold's with a policy each; comparing two of them takes rows of the budget."""

    def __init__(self, gold: Columns, predicted: Columns, policies: Sequence[Policy], budget: Budget) -> None:
        self._gold, self._predicted, self._policies, self._budget = gold, predicted, policies, budget
        self._values: dict[tuple[bool, int], ColumnValues] = {}
        self._may_align: dict[tuple[int, int], bool] = {}

    @cached_property
    def gold_kinds(self) -> list[int]:
        """A number for each gold column, the same for columns that are interchangeable."""
        return kinds([[policy, *_typed(column)] for policy, column in zip(self._policies, self._gold, strict=True)])

    @cached_property
    def predicted_kinds(self) -> list[int]:
        """A number for each predicted column, the same for columns that are interchangeable."""
        return kinds([_typed(column) for column in self._predicted])

    def may_align(self, i: int, j: int) -> bool:
        """Return whether the values of two columns of as many rows can be paired, in whatever rows they stand."""
        pair = self.gold_kinds[i], self.predicted_kinds[j]
        if pair not in self._may_align:
            self._budget.spend(len(self._gold[i]))
            values = self._values_of(True, pair[0], self._gold[i])
            others = self._values_of(False, pair[1], self._predicted[j])
            self._may_align[pair] = values.may_equal(others, self._policies[i])
        return self._may_align[pair]

    def _values_of(self, is_gold: bool, kind: int, column: Sequence[Hashable]) -> ColumnValues:
        if (is_gold, kind) not in self._values:
            self._values[is_gold, kind] = ColumnValues.of(column)
        return self._values[is_gold, kind]


def _typed(column: Iterable[Hashable]) -> list[Hashable]:
    """Return values that are the same only where they are near the same values: 3 and 3.0 are not."""
    return [(kind_of(value), value) if is_comparable(value) else value for value in column]
