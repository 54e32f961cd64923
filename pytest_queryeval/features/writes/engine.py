"""The engine of write queries: it sends them to a driver, and makes one answer of what they changed and returned."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from pytest_queryeval.core.db_schema import Schema
from pytest_queryeval.core.model import Execution, Failure, Source
from pytest_queryeval.core.sent_cells import decode_rows
from pytest_queryeval.core.table import Table
from pytest_queryeval.engines import (
    ENGINES,
    Engine,
    SupportsDDL,
    SupportsSchema,
    WriteDriver,
    prefix_source_errors,
)
from pytest_queryeval.engines.bases import file_settings
from pytest_queryeval.features.writes import WRITE_DRIVERS
from pytest_queryeval.features.writes.state_change import Reference, StateChange, TableChange
from pytest_queryeval.sandbox.host import Host, Hosts, text_refusal

PREPARATION_SECONDS = 600.0
FILE_BYTES = 9 * 2**30  # of one file that the child writes
DEFAULT_INDEXES = ("art", "btree")
TOKEN = re.compile(r"""--[^\n]*|/\*.*?\*/|'(?:[^']|'')*'|"(?:[^"]|"")*"|`[^`]*`|\[[^\]]*\]|\w+|\S""", re.DOTALL)


SQLITE = WriteDriver(
    host=partial(Host, "sqlite writes", Path(__file__).with_name("sqlite_child.py"), file_bytes=FILE_BYTES),
    settings=file_settings,
)


def open_transactions(source: Source, hosts: Hosts) -> Transactions:
    """Return an engine for write queries on a source; raise `SourceError` if the source cannot be opened."""
    engine_type, driver = ENGINES[source.engine], WRITE_DRIVERS[source.engine]
    engine = engine_type.opener(replace(source, writes=False), hosts)
    dialect = engine_type.dialect(source.settings)
    return Transactions(source, engine, driver, hosts.shared(driver.host()), dialect)


class Transactions:
    """Runs each query in a transaction that is undone; `engine` is that of the source, which lists tables."""

    def __init__(self, source: Source, engine: Engine, driver: WriteDriver, host: Host, dialect: str) -> None:
        self._name, self._engine, self._driver, self._host, self._dialect = source.name, engine, driver, host, dialect
        self._settings = driver.settings(source, engine)
        self._prepared: int | None = None  # the id of the child that has a copy

    def execute(self, query: str, *, timeout: float, max_rows: int) -> Execution:
        """Run statements, undo them, and return what they changed and returned as a `StateChange`.

        `max_rows` limits changed and returned rows together. Errors of the statements are in the result. Raise
        `SourceError` if the database cannot be copied or read. The first copy of a child and the wait for other
        processes do not count towards `timeout`.
        """
        read = text_refusal(query) or self._driver.read(query)
        if isinstance(read, Failure):
            return Execution(query=query, error=read, engine=self._host.name)
        with prefix_source_errors(f"source '{self._name}'"):
            if self._driver.waits or self._prepared is None or self._host.pid != self._prepared:
                self._host.describe(self._settings, timeout=PREPARATION_SECONDS)
                self._prepared = self._host.pid
            settings = {**self._settings, **read, "max_rows": max_rows}
            execution = self._host.execute(settings, query, timeout=timeout, max_rows=1)
        if execution.table is None:
            return execution
        return replace(execution, answer=state_change(execution.table, query, self._dialect))

    def schema(self, *, timeout: float) -> Schema:
        """Return tables, columns and foreign keys, empty if the engine cannot list them; raises `SourceError`."""
        return self._engine.schema(timeout=timeout) if isinstance(self._engine, SupportsSchema) else Schema()

    def ddl(self, *, timeout: float) -> str | None:
        """Return the statements that create tables and views, None if they cannot be listed; raises `SourceError`."""
        return self._engine.ddl(timeout=timeout) if isinstance(self._engine, SupportsDDL) else None

    def close(self) -> None:
        """Close the engine of the source; copies are removed when the host's child ends."""
        self._engine.close()


def state_change(table: Table, query: str, dialect: str) -> StateChange:
    """Return the `StateChange` in the row that a driver sends: see `Transaction.answer` in `sandbox/writing.py`."""
    row: tuple[Any, ...] = table.rows[0]
    returned, tables, *indexes = row
    fields_of = {name: fields for name, *fields in tables}
    changes = []
    for name in sorted({*fields_of}.union(*indexes)):
        before, after, key, generated, references, *rows = fields_of.get(name, (None, None, (), (), (), [], []))
        added, removed = map(decode_rows, rows)
        references = tuple(map(Reference._make, references))
        index_texts = (tuple(map(index_text, statements.get(name, ()))) for statements in indexes)
        changes.append(TableChange(name, before, after, key, generated, references, added, removed, *index_texts))
    returned_table = returned and Table(columns=returned[0], rows=decode_rows(returned[1]))
    return StateChange(query=query, dialect=dialect, tables=tuple(changes), returned=returned_table)


def index_text(statement: str) -> str:
    r"""Return what a CREATE INDEX statement defines, whatever the index's name and however it is written.

    The text is in lower case, without comments, quotes, ASC and default methods.

    >>> index_text('CREATE UNIQUE INDEX i ON t("A" ASC,b  COLLATE NOCASE) WHERE c=\'X\'')
    "unique index (a, b collate nocase) where c = 'X'"
    """
    tokens = [token for token in TOKEN.findall(statement.rstrip("; \n")) if not token.startswith(("--", "/*"))]
    place = tokens.index("(") - 1
    text = "unique index" if tokens[1].lower() == "unique" else "index"
    if tokens[place - 1].lower() == "using" and tokens[place].lower() not in DEFAULT_INDEXES:
        text += f" using {tokens[place].lower()}"
    for before, token in pairwise(tokens[place:]):
        name = token if token.startswith("'") else token.strip('"`[]').lower()
        if token.lower() != "asc":
            text += name if before == "(" or token in (")", ",") else f" {name}"
    return text
