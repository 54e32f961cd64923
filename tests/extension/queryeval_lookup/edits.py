"""The difference of two queries in the keys that they look up, as one edit."""

from collections.abc import Iterator, Sequence

from pytest_queryeval.core.cause import CausingEdit
from pytest_queryeval.core.model import Case, Execution
from pytest_queryeval.evaluation import Session
from pytest_queryeval.features.causes import Edits


class KeyEdits:
    """The edit that exchanges the keys of a predicted query for those of gold."""

    def __init__(self, predicted: str, gold: str) -> None:
        self._gold = gold
        self.edits = [CausingEdit(label="wrong-value", clause="GET", change=f"{predicted} → {gold}")]

    def combinations(self) -> Iterator[tuple[int, ...]]:
        yield (0,)

    def applied(self, numbers: Sequence[int]) -> str | None:
        return self._gold if list(numbers) == [0] else None

    def reach_gold(self, numbers: Sequence[int]) -> bool:
        return list(numbers) == [0]


def lookup_edits(predicted: Execution, gold: Execution, case: Case, session: Session) -> Edits:
    if not predicted.query or not predicted.query.startswith("GET"):
        return Edits()
    return Edits([KeyEdits(predicted.query, gold.query or "")])
