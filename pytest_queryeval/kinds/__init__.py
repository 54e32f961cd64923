"""What a query language means for an evaluation: its default metrics, and how the order of an answer is judged."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol, TypeAlias

from pytest_queryeval.comparison.policy import Policy
from pytest_queryeval.model import Execution
from pytest_queryeval.registry import Registry
from pytest_queryeval.table import Table

Run: TypeAlias = Callable[[str], Execution]


class Kind(Protocol):
    """A query language."""

    name: str
    default_metrics: tuple[str, ...]
    default_thresholds: Mapping[str, float]
    has_queries: bool
    text_numbers: bool
    options: frozenset[str]

    def settle_order(
        self, gold: Execution, predicted: Execution, *, policy: Policy, dialect: str, run: Run
    ) -> tuple[Table, tuple[str, ...]]:
        """Gold's answer with what its query says of the order of rows, and notes on what could not be told.

        `run` executes a rewritten gold query; it is called only where the verdict depends on it.
        """


KINDS: Registry[Kind] = Registry("kind", group="pytest_queryeval.kinds", members={"sql": f"{__name__}.sql:SQL"})
