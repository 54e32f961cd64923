"""The answer of statements that change data, compared as the state that they lead to and what they return."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pytest_queryeval.core.answer_json import Entry
from pytest_queryeval.core.model import AddedAnswer, Answer, Case
from pytest_queryeval.core.table import Difference
from pytest_queryeval.features.writes.changes import Changes, decoded_fields
from pytest_queryeval.features.writes.comparison import Comparison


@dataclass(frozen=True, kw_only=True, eq=False)
class StateChange(Changes, AddedAnswer):
    """What statements changed and returned, as the answer of a query."""

    type_name: ClassVar[str] = "changes"

    def equals(self, predicted: Answer, case: Case) -> bool:
        """Return whether predicted leads to the same state as this gold, and returns the same."""
        return isinstance(predicted, StateChange) and Comparison(self, predicted, case).is_equal()

    def difference(self, predicted: Answer, case: Case, *, limit: int) -> Difference | None:
        """Return the rows that only one state has, paired by key, or how what returned differs."""
        return Comparison(self, predicted, case).difference(limit) if isinstance(predicted, StateChange) else None


def decode_state_change(entry: Entry) -> StateChange:
    """Return the answer that was encoded; raise ValueError, TypeError or KeyError if it is invalid."""
    return StateChange(**decoded_fields(entry))
