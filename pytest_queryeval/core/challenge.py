"""What came of challenging an answer that passes: whether other data tells its query from gold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from pytest_queryeval.core.table import Table

CHALLENGED_ACCURACY = "challenged_accuracy"  # the metric that asks for challenges
ChallengeVerdict: TypeAlias = Literal["same", "proved", "refuted", "stands", "unchallenged"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Refutation:
    """A small database in which the answers of two queries differ by the policy of a case."""

    script: str
    """The script that creates the database: SQL, Turtle, or TriG."""
    size: int
    """How many rows, or triples, the database has."""
    gold: Table
    """What gold answers there."""
    predicted: Table
    is_unlike: bool
    """Whether the database breaks what the data of the source keeps without declaring it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Challenge:
    """What came of challenging a predicted query whose answer is that of gold."""

    verdict: ChallengeVerdict
    """`same`: both have the same words; `proved`: rules make them the same; `refuted`: their answers differ in a
    small database; `stands`: in none that was tried; `unchallenged`: there is no small database to try.
    """
    tried: int = 0
    """In how many small databases both queries ran."""
    refutation: Refutation | None = None
    """Present if the verdict is `refuted`."""
    rules: tuple[str, ...] = ()
    """The rules of a proof."""
    reason: str = ""
    """Why nothing was tried; empty if something was."""
