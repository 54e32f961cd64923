"""Engines: where gold and predicted queries run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol, TypeAlias, runtime_checkable

from pytest_queryeval.core.db_schema import Schema, schema_of_columns, script_of
from pytest_queryeval.core.errors import SettingError, SourceError
from pytest_queryeval.core.features import feature
from pytest_queryeval.core.model import Execution, Failure, Source
from pytest_queryeval.core.registry import Registry
from pytest_queryeval.core.sent_cells import decode_rows
from pytest_queryeval.core.shapes import SettingValidator
from pytest_queryeval.core.table import Row, Table
from pytest_queryeval.sandbox.host import Host, Hosts

Settings: TypeAlias = Mapping[str, Any]


class Engine(Protocol):
    """One source, opened."""

    def execute(self, query: str, *, timeout: float, max_rows: int) -> Execution:
        """Run `query` for at most `timeout` seconds; an answer of more than `max_rows` rows is a failure.

        `Execution.error` says what is wrong with the query; raises `SourceError` if the source is at fault.
        """

    def close(self) -> None:
        """Free what the engine holds; may be called again."""


@runtime_checkable
class SupportsSchema(Protocol):
    """An engine that can list its tables."""

    def schema(self, *, timeout: float) -> Schema:
        """Return tables, columns and foreign keys; raises `SourceError`."""


@runtime_checkable
class SupportsDDL(Protocol):
    """An engine that can list the statements that make its tables."""

    def ddl(self, *, timeout: float) -> str | None:
        """Return CREATE TABLE statements of all tables, by name; None if a service cannot list them.

        Raises `SourceError`.
        """


@runtime_checkable
class SupportsReads(Protocol):
    """An engine that tells what a query reads."""

    def reads(self, query: str, *, timeout: float) -> Execution:
        """Return rows of table, column, and view if a view reads it; the column is empty if only the table is read.

        Of columns that USING and NATURAL compare it need not know. Raises `SourceError`.
        """


@runtime_checkable
class SupportsTiming(Protocol):
    """An engine that can time two queries side by side."""

    def time(self, gold: str, predicted: str, *, iterations: int, timeout: float) -> Execution:
        """Run both in turn, `iterations` times after one warm-up, each run for at most `timeout` seconds.

        The answer has a row for each iteration: seconds of gold, seconds of predicted. Raises `SourceError`.
        """


@contextmanager
def prefix_source_errors(prefix: str) -> Iterator[None]:
    """Put `prefix` before the message of a `SourceError` that is raised within the `with` statement."""
    try:
        yield
    except SourceError as error:
        raise type(error)(f"{prefix}: {error}") from error


def described_schema(listing: Execution) -> Schema:
    """Return the schema that a listing of the columns describes; raises `SourceError` if the listing failed."""
    return schema_of_columns(_rows_of_listing(listing))


def ddl_text(listing: Execution) -> str:
    """Return the statements of a listing as one script; raises `SourceError` if the listing failed."""
    return script_of(str(statement) for (statement,) in _rows_of_listing(listing))


def _rows_of_listing(listing: Execution) -> Sequence[Sequence[Any]]:
    if not isinstance(listing.answer, Table):
        raise SourceError(f"the tables cannot be listed: {listing.error.message if listing.error else 'no answer'}")
    return listing.answer.rows


def with_cells(execution: Execution) -> Execution:
    """Return the execution with its table decoded, where the child had to encode cells."""
    if not isinstance(execution.answer, Table) or tuple not in execution.answer.cell_types:
        return execution
    return replace(execution, answer=replace(execution.answer, rows=decode_rows(execution.answer.rows)))


class Opener(Protocol):
    """Opens a source; raises `SourceError` if its settings or its files do not allow that."""

    def __call__(self, source: Source, hosts: Hosts) -> Engine:
        """Open `source`; child processes come from `hosts`, which outlives the engine."""


class Builder(Protocol):
    """Makes a small database; raises `SourceError` if the script fails, at once or at the first query."""

    def __call__(self, script: str, settings: Settings, hosts: Hosts) -> Engine:
        """Open a new database made by `script`, which needs no other files, as a source with these settings is.

        `settings` are those of its `SourceFingerprint`.
        """


class BuilderWithRows(Protocol):
    """Makes a small database as a `Builder` does, and many of them with the same script faster."""

    def __call__(self, script: str, settings: Settings, hosts: Hosts, rows: Mapping[str, Sequence[Row]]) -> Engine:
        """Open a new database made by `script`, with these plain values as the rows of its tables, in this order."""


class SmallDatabase(NamedTuple):
    """The input of a `Builder`, or with rows of a `BuilderWithRows`."""

    script: str
    rows: Mapping[str, Sequence[Row]] | None = None


Comparison: TypeAlias = tuple[Execution, Execution] | SourceError | None
"""Both executions in a small database, the error of one that cannot be made, None where the answers are the same."""


class Comparer(Protocol):
    """Runs two queries in several small databases at once."""

    def __call__(
        self,
        queries: tuple[str, str],
        databases: Sequence[SmallDatabase],
        settings: Settings,
        hosts: Hosts,
        *,
        timeout: float,
        max_rows: int,
    ) -> Sequence[Comparison]:
        """Compare the answers in each database; both queries run for at most `timeout` seconds in all of them.

        There are fewer comparisons than databases where a query is late, or ends the engine's process.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantFormat:
    """How variants of a source are written, and the settings with which they are read; by default SQL scripts."""

    suffix: Callable[[Settings], str] = lambda _: ".sql"
    """Return the suffix of the scripts by the settings of the source."""
    comment: str = "--"
    """What begins a comment."""
    name: str = "database"
    """What a script makes."""
    unit: str = "row"
    """What a variant consists of, in the singular, for messages: `row` or `triple`."""
    settings: Callable[[Settings, str], Settings] = lambda _, name: {
        "script" if name.endswith(".sql") else "path": name
    }
    """Return the settings of a variant by those of its source and the name of its file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFingerprint:
    """What the answers of a source depend on."""

    files: Callable[[Source], Sequence[str]] = lambda _: ()
    """Return the files that hold the data, by names relative to the source's folder.

    None for a service: its suite has to name the state of its data by `version`.
    """
    wal_suffix: str = ""
    """The suffix of a write-ahead log next to such a file."""
    settings: Callable[[Settings], Mapping[str, Any]] = lambda _: {}
    """Return the settings that change answers, without secrets and file names."""
    version: Callable[[Settings], str] = lambda _: ""
    """Return the versions of the packages that run the queries on this machine."""


def settings_among(*names: str) -> Callable[[Settings], Mapping[str, Any]]:
    """Return a function that picks the settings of these names, for a `SourceFingerprint`."""
    return lambda settings: {name: settings[name] for name in names if name in settings}


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineType:
    """An engine as suites name it."""

    opener: Opener
    kind: str | None = None
    """The only kind whose queries it runs; None for any kind."""
    dialect: Callable[[Settings], str] = lambda _: ""
    """Return sqlglot's name for the language of a source's queries; empty for standard SQL."""
    text_setting: str = "path"
    """The setting that a source written as a plain text or list stands for."""
    check: Callable[[Settings], None] = lambda _: None
    """Raise `SettingError` for the first setting that is invalid whatever the files contain."""
    settings: Mapping[str, SettingValidator] | None = None
    """The validators of the settings, from which the schema for editors is made; None if they are unknown."""
    resolve: Callable[[Source], Source] | None = None
    """Return the source of another engine that a suite means, perhaps with a `rewriter`; raise as `check` does."""
    fingerprint: SourceFingerprint = SourceFingerprint()
    """What recorded answers depend on."""
    build: Builder | None = None
    """Build small databases that distinguish queries; None if the engine cannot."""
    build_with_rows: BuilderWithRows | None = None
    """Build them by the script of their tables, and by rows; None if the script has to insert the rows."""
    compare: Comparer | None = None
    """Run two queries in several small databases at once; None if they run in one after the other."""
    variants: VariantFormat = VariantFormat()
    """How such databases are kept as variants of a source."""

    def open(self, source: Source, hosts: Hosts) -> Engine:
        """Check the settings and open the source, or what runs its write queries; raises `SourceError`."""
        try:
            self.check(source.settings)
        except SettingError as error:
            raise SourceError(f"source '{source.name}': {error}") from error
        opener: Opener = feature("writes.engine").open_transactions if source.writes else self.opener
        return opener(source, hosts)


class EngineRegistry(Registry[EngineType]):
    """Engines by name; a plain function that is registered opens sources of any kind."""

    def _admit(self, member: Any) -> EngineType:
        return member if isinstance(member, EngineType) else EngineType(opener=member)


ENGINES = EngineRegistry(
    "engine",
    group="pytest_queryeval.engines",
    used_by_workers=True,
    members={
        "sqlite": f"{__name__}.sqlite:SQLITE",
        "rdf": f"{__name__}.rdf:RDF",
    },
)


def is_local(source: Source) -> bool:
    """Return whether files hold the data of a source, and no service."""
    return bool(ENGINES[source.engine].fingerprint.files(source))


class WriteDriver(NamedTuple):
    """What runs the write queries of an engine's sources in a child process, and undoes what they change."""

    host: Callable[[], Host]
    settings: Callable[[Source, Engine], Settings]
    """Return the settings of requests for a source and its engine, which is not used otherwise."""
    check: Callable[[Source], None] = lambda _: None
    """Raise `SettingError` for a source on which write queries may not run."""
    read: Callable[[str], Settings | Failure] = lambda _: {}
    """Return further settings of the request for a query, or why it is not sent."""
    waits: bool = False
    """Whether each query waits for those of other processes."""
