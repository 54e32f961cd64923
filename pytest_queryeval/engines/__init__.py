"""Engines: where gold and predicted queries run."""

from __future__ import annotations

from typing import Protocol

from pytest_queryeval.engines.host import Hosts
from pytest_queryeval.model import Execution, Source
from pytest_queryeval.registry import Registry


class Engine(Protocol):
    """One source, opened. `dialect` is the name that sqlglot has for its language."""

    dialect: str

    def execute(self, query: str, *, timeout: float, max_rows: int) -> Execution:
        """Run `query` for at most `timeout` seconds; an answer of more than `max_rows` rows is a failure.

        What is wrong with the query is in `Execution.error`; raises `SourceError` where the source is at fault.
        """

    def close(self) -> None:
        """Give back what the engine holds; may be called again."""


class Opener(Protocol):
    """Opens a source; raises `SourceError` where its settings or its files do not allow that."""

    def __call__(self, source: Source, hosts: Hosts) -> Engine:
        """Open `source`; child processes come from `hosts`, which outlives the engine."""


ENGINES: Registry[Opener] = Registry(
    "engine",
    group="pytest_queryeval.engines",
    members={"sqlite": f"{__name__}.sqlite:open_sqlite"},
)
