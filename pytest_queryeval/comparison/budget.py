"""How many rows a search may visit; searches that together decide one thing can share a budget."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

DEFAULT_BUDGET = 3_000_000


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
