"""Engines: where gold and predicted queries run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from pytest_queryeval.engines.host import Hosts
from pytest_queryeval.errors import SettingError, SourceError
from pytest_queryeval.model import Execution, Source
from pytest_queryeval.registry import Registry

Settings: TypeAlias = Mapping[str, Any]


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


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineType:
    """An engine as suites name it.

    `kind` is the only kind whose queries it runs, or None; `text_setting` is what a source sets that is one text, or a
    list; `check` raises `SettingError` for the first setting that cannot be right whatever the files hold.
    """

    opener: Opener
    kind: str | None = None
    text_setting: str = "path"
    check: Callable[[Settings], None] = lambda _: None

    def open(self, source: Source, hosts: Hosts) -> Engine:
        """Check the settings and open the source; raises `SourceError`."""
        try:
            self.check(source.settings)
        except SettingError as error:
            raise SourceError(f"source '{source.name}': {error}") from error
        return self.opener(source, hosts)


class EngineRegistry(Registry[EngineType]):
    """Engines by name; a plain function that is registered opens sources of any kind."""

    def _admit(self, member: Any) -> EngineType:
        return member if isinstance(member, EngineType) else EngineType(opener=member)


ENGINES = EngineRegistry(
    "engine",
    group="pytest_queryeval.engines",
    members={
        "sqlite": f"{__name__}.sqlite:SQLITE",
        "rdf": f"{__name__}.rdf:RDF",
        "endpoint": f"{__name__}.endpoint:ENDPOINT",
    },
)
