"""The limit on what the calls of a run may cost together."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from pytest_queryeval.core.model import Prediction
from pytest_queryeval.core.steps import plain_number

if TYPE_CHECKING:
    from pytest_queryeval.core.report import SpendReport

SECONDS = "prediction_seconds"
MAX_UNSTATED = 10  # answers in a row without the number, from the first one on
MAX_AMOUNT = 1e15  # greater numbers are no amounts
_ROUNDING = 1e-9  # relative to the limit: a sum of many floats may be slightly too small


class SpendLimitReached(Exception):  # noqa: N818 - neither the case nor the system is at fault
    """A call may not begin any more, and its answer is not recorded."""


class SpendLimit:
    """Adds up a number over the calls of a run; once the sum is at the limit, no further call may begin.

    `name` is that of a number in the metadata of predictions, or `prediction_seconds`; negative numbers do not count.
    A limit on a number that no answer states would never hold, so calls also end after MAX_UNSTATED answers if none of
    them states it. All methods may be called in any thread.
    """

    def __init__(self, name: str, limit: float) -> None:
        self._name = name
        self._limit = limit
        self._lock = threading.Lock()
        self._sum = 0.0
        self._calls = 0
        self._unstated = 0

    @property
    def is_reached(self) -> bool:
        """Whether no further call may begin."""
        is_unstated = self._unstated == self._calls >= MAX_UNSTATED
        return is_unstated or self._sum >= self._limit * (1 - _ROUNDING)

    def check(self) -> None:
        """Raise `SpendLimitReached` if no further call may begin."""
        if self.is_reached:
            raise SpendLimitReached("the spend limit was reached before its turn")

    def add(self, prediction: Prediction) -> None:
        """Count the answer of a call that this run has made."""
        stated = {SECONDS: prediction.seconds} if self._name == SECONDS else prediction.metadata
        amount = plain_number(stated.get(self._name))
        is_amount = isinstance(amount, int | float) and not isinstance(amount, bool) and 0 <= amount < MAX_AMOUNT
        with self._lock:
            self._calls += 1
            self._unstated += not is_amount
            self._sum += float(amount) if is_amount else 0.0

    def report(self) -> SpendReport:
        """Return the limit, and what was spent."""
        return {
            "name": self._name,
            "limit": self._limit,
            "sum": self._sum,
            "calls": self._calls,
            "unstated": self._unstated,
            "reached": self.is_reached,
        }
