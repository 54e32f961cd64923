"""What the page reviews, as its server sees it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, TypeAlias, TypedDict

JsonObject: TypeAlias = Mapping[str, Any]


class Choice(TypedDict):
    """What can be decided, and the key that decides it."""

    name: str
    key: str
    words: str
    hint: str
    """What it means, for the list of keys."""


class Review(Protocol):
    """What is reviewed: golds, or the answers that an audit drew. Its methods are called from several threads.

    A case is known by its place in the list. All raise `QueryEvalError` for what cannot be done.
    """

    def overview(self, reviewer: str) -> JsonObject:
        """Return all cases in their order, with what this reviewer decided on each, and what can be decided."""
        ...

    def case(self, place: int) -> JsonObject:
        """Return everything about a case except the answers of its queries."""
        ...

    def decisions(self, place: int) -> JsonObject:
        """Return what all reviewers decided on a case on which they disagree, for somebody who settles it."""
        ...

    def answer(self, place: int, request: JsonObject) -> JsonObject:
        """Run the query that a request names or holds, and return its answer."""
        ...

    def append(self, place: int, decision: JsonObject) -> None:
        """Append a decision to the file of its reviewer."""
        ...

    def appended_lines(self) -> list[str]:
        """Return lines on how much was appended to which file."""
        ...

    def close(self) -> None:
        """Stop all queries."""
        ...
