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
    """An open source, on which queries run."""

    def execute(self, query: str, *, timeout: float, max_rows: int) -> Execution:
        """Run `query` for at most `timeout` seconds, and return its answer or its failure as `Execution.error`.

        More than `max_rows` rows are a failure. Raise `SourceError` if the source is at fault and not the query.
        """

    def close(self) -> None:
        """Free the resources of the engine. Idempotent."""


@runtime_checkable
class SupportsSchema(Protocol):
    """An engine that can list its tables."""

    def schema(self, *, timeout: float) -> Schema:
        """Return the tables, columns and foreign keys of the source; raise `SourceError` if it cannot list them."""


@runtime_checkable
class SupportsDDL(Protocol):
    """An engine that can list the statements that create its tables."""

    def ddl(self, *, timeout: float) -> str | None:
        """Return CREATE TABLE statements of all tables in the order of their names; None if a service cannot list them.

        Raise `SourceError` if the source does not answer.
        """


@runtime_checkable
class SupportsReads(Protocol):
    """An engine that can say which columns a query reads."""

    def reads(self, query: str, *, timeout: float) -> Execution:
        """Return an answer with a row of table, column and view for each column that a query reads.

        The view is empty unless a view reads the column; the column is empty if only the table is read. Columns that
        USING and NATURAL compare may be missing. Raise `SourceError` if the source does not answer.
        """


@runtime_checkable
class SupportsTiming(Protocol):
    """An engine that can time two queries in turn."""

    def time(self, gold: str, predicted: str, *, iterations: int, timeout: float) -> Execution:
        """Run both queries in turn, `iterations` times after one warm-up, each run for at most `timeout` seconds.

        The answer has a row for each iteration: seconds of gold, seconds of predicted. Raise `SourceError` if the
        source is at fault.
        """


@contextmanager
def prefix_source_errors(prefix: str) -> Iterator[None]:
    """Put `prefix` before the message of a `SourceError` that is raised within the `with` statement; keep its type."""
    try:
        yield
    except SourceError as error:
        raise type(error)(f"{prefix}: {error}") from error


def described_schema(listing: Execution) -> Schema:
    """Return the schema in the answer of a query that lists the columns; raise `SourceError` if the query failed."""
    return schema_of_columns(_rows_of_listing(listing))


def ddl_text(listing: Execution) -> str:
    """Return the statements in the answer of a query that lists them, as one script.

    Raise `SourceError` if it failed.
    """
    return script_of(str(statement) for (statement,) in _rows_of_listing(listing))


def _rows_of_listing(listing: Execution) -> Sequence[Sequence[Any]]:
    if not isinstance(listing.answer, Table):
        raise SourceError(f"the tables cannot be listed: {listing.error.message if listing.error else 'no answer'}")
    return listing.answer.rows


def with_cells(execution: Execution) -> Execution:
    """Return the execution with the cells of its table decoded if the child process had to encode them."""
    if not isinstance(execution.answer, Table) or tuple not in execution.answer.cell_types:
        return execution
    return replace(execution, answer=replace(execution.answer, rows=decode_rows(execution.answer.rows)))


class Opener(Protocol):
    """Opens a source; raises `SourceError` if its settings or its files do not allow that."""

    def __call__(self, source: Source, hosts: Hosts) -> Engine:
        """Return the engine of `source`; its child processes come from `hosts`, which outlives the engine."""


class Builder(Protocol):
    """Builds a small database from a script.

    Raises `SourceError` if the script fails, at once or at the first query.
    """

    def __call__(self, script: str, settings: Settings, hosts: Hosts) -> Engine:
        """Return the engine of a new database that `script` creates without other files.

        `settings` are those settings of a source that its `SourceFingerprint` selects; the database behaves like that
        source.
        """


class BuilderWithRows(Protocol):
    """Builds a small database from a script and rows, faster than a `Builder` if many databases share the script."""

    def __call__(self, script: str, settings: Settings, hosts: Hosts, rows: Mapping[str, Sequence[Row]]) -> Engine:
        """Return the engine of a new database whose tables `script` creates and `rows` fills, by table, in this order.

        The cells of `rows` are plain values. `settings` are those of a `Builder`.
        """


class SmallDatabase(NamedTuple):
    """The script of a small database for a `Builder`, or with `rows` for a `BuilderWithRows`."""

    script: str
    rows: Mapping[str, Sequence[Row]] | None = None


Comparison: TypeAlias = tuple[Execution, Execution] | SourceError | None
"""Both executions in a small database, the error of one that cannot be made, None where the answers are the same."""


class Comparer(Protocol):
    """Runs two queries in several small databases at once; raises `SourceError` if the engine cannot start."""

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
        """Return the comparison of both answers in each database, in order.

        Each query runs for at most `timeout` seconds in all databases together. There are fewer comparisons than
        databases if a query is late, or ends the engine's process.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantFormat:
    """How variants of a source are written, and the settings with which they are read; by default SQL scripts.

    A variant is a further database with the same tables.
    """

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
    """What the answers of a source depend on: files, settings and versions of packages."""

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
    """Return a function that picks the settings with these names, for `SourceFingerprint.settings`."""
    return lambda settings: {name: settings[name] for name in names if name in settings}


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineType:
    """A type of engine, as suites name it, with the functions that open, check and describe its sources."""

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
        """Check the settings and open the source; a source that `writes` gets the engine of the feature for writes.

        Raise `SourceError` if a setting is invalid or the source cannot be opened.
        """
        try:
            self.check(source.settings)
        except SettingError as error:
            raise SourceError(f"source '{source.name}': {error}") from error
        opener: Opener = feature("writes.engine").open_transactions if source.writes else self.opener
        return opener(source, hosts)


class EngineRegistry(Registry[EngineType]):
    """Engines by name; a plain function that is registered becomes an engine whose sources it opens, for any kind."""

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
    """Return whether the data of a source are in files, and not in a service."""
    return bool(ENGINES[source.engine].fingerprint.files(source))


class WriteDriver(NamedTuple):
    """The child process that runs the write queries of an engine's sources and undoes their changes."""

    host: Callable[[], Host]
    settings: Callable[[Source, Engine], Settings]
    """Return the settings of requests for a source and its engine, which is not used otherwise."""
    check: Callable[[Source], None] = lambda _: None
    """Raise `SettingError` for a source on which write queries may not run."""
    read: Callable[[str], Settings | Failure] = lambda _: {}
    """Return further settings of the request for a query, or why it is not sent."""
    waits: bool = False
    """Whether each query waits for those of other processes."""
