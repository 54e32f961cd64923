"""The engine of write queries: it sends them to a driver, and makes one answer of what they changed and returned."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
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
    Settings,
    SupportsDDL,
    SupportsSchema,
    WriteDriver,
    prefix_source_errors,
)
from pytest_queryeval.engines.bases import DatabaseFile
from pytest_queryeval.features.writes import WRITE_DRIVERS
from pytest_queryeval.features.writes.state_change import Reference, StateChange, TableChange
from pytest_queryeval.sandbox.host import Host, Hosts

COPY_SECONDS = 600.0
FILE_BYTES = 9 * 2**30  # of one file that the child writes
ROWS = frozenset({"returned", "added", "removed"})  # of what a driver sends
MAX_DEFINITIONS = 1_000  # of tables, columns and indexes, which it sends as well
DEFAULT_INDEXES = ("art", "btree")
TOKEN = re.compile(r"""--[^\n]*|/\*.*?\*/|'(?:[^']|'')*'|"(?:[^"]|"")*"|`[^`]*`|\[[^\]]*\]|\w+|\S""", re.DOTALL)


def file_settings(_: Source, engine: Engine) -> Settings:
    """Return the settings of requests about a database in a file."""
    assert isinstance(engine, DatabaseFile)
    return {"path": str(engine.path)}


SQLITE = WriteDriver(
    host=partial(Host, "sqlite writes", Path(__file__).with_name("sqlite_child.py"), file_bytes=FILE_BYTES),
    settings=file_settings,
)


def open_transactions(source: Source, hosts: Hosts) -> Transactions:
    """Open a source for write queries; raise `SourceError` if it cannot be opened for other queries."""
    engine_type, driver = ENGINES[source.engine], WRITE_DRIVERS[source.engine]
    engine = engine_type.opener(replace(source, writes=False), hosts)
    host = hosts.shared(driver.host())
    dialect = engine_type.dialect(source.settings)
    return Transactions(source.name, engine, host, driver.settings(source, engine), dialect=dialect)


class Transactions:
    """Runs each text in a transaction that is undone. `engine` is that of the source, which lists tables."""

    def __init__(self, name: str, engine: Engine, host: Host, settings: Settings, *, dialect: str) -> None:
        self._name, self._engine, self._host, self._settings, self._dialect = name, engine, host, settings, dialect
        self._prepared: int | None = None  # the id of the child that has a copy

    def execute(self, query: str, *, timeout: float, max_rows: int) -> Execution:
        """Run statements for at most `timeout` seconds; `max_rows` limits what they change and return, together.

        Raise `SourceError` if the database cannot be copied or read. A new child makes its copy first, which takes no
        time of the query.
        """
        with prefix_source_errors(f"source '{self._name}'"):
            if self._prepared is None or self._host.pid != self._prepared:
                self._host.describe(self._settings, timeout=COPY_SECONDS)
                self._prepared = self._host.pid
            settings = {**self._settings, "max_rows": max_rows}
            execution = self._host.execute(settings, query, timeout=timeout, max_rows=max_rows + MAX_DEFINITIONS)
        if execution.table is None:
            is_long = execution.error == too_many_rows(max_rows + MAX_DEFINITIONS)
            return replace(execution, error=too_many_rows(max_rows)) if is_long else execution
        if sum(part in ROWS for part, *_ in execution.table.rows) > max_rows:
            return replace(execution, answer=None, error=too_many_rows(max_rows))
        return replace(execution, answer=state_change(execution.table, query, self._dialect))

    def schema(self, *, timeout: float) -> Schema:
        """Return tables, columns and foreign keys; raises `SourceError`."""
        return self._engine.schema(timeout=timeout) if isinstance(self._engine, SupportsSchema) else Schema()

    def ddl(self, *, timeout: float) -> str | None:
        """Return the statements that make its tables and views; raises `SourceError`."""
        return self._engine.ddl(timeout=timeout) if isinstance(self._engine, SupportsDDL) else None

    def close(self) -> None:
        """Close the engine of the source; copies end with the host's child."""
        self._engine.close()


def too_many_rows(max_rows: int) -> Failure:
    """Return the failure of an answer of more than `max_rows` rows, as a host has it."""
    return Failure(kind="too_large", message=f"more than {max_rows:,} rows: raise `max_rows` if there may be more")


def state_change(table: Table, query: str, dialect: str) -> StateChange:
    """Return the answer in the rows that a driver sends.

    These are a part, the name of a table, and the content of the part: `columns`, the names of the columns that were
    returned, and `returned`, a row of them; `table`, the columns of a table that changed, before and after, None if
    there is none, its key, generated columns, and references; `added` and `removed`, a row of the table before it;
    `added index` and `removed index`, the statement that made it.
    """
    returned: Table | None = None
    parts: defaultdict[str, defaultdict[str, list[Any]]] = defaultdict(lambda: defaultdict(list))
    for part, name, content in table.rows:
        if part == "columns":
            returned = Table(columns=tuple(content), rows=[])  # type: ignore[arg-type]  # names
        parts[str(name or "")][str(part)].append(content)
    if returned is not None:
        returned = replace(returned, rows=decode_rows(parts[""]["returned"]))
    tables = tuple(_table_change(name, parts[name]) for name in sorted(parts) if name)
    return StateChange(query=query, dialect=dialect, tables=tables, returned=returned)


def _table_change(name: str, parts: Mapping[str, Sequence[Any]]) -> TableChange:
    before, after, key, generated, references = parts["table"][0] if parts["table"] else (None, None, (), (), ())
    added, removed = (decode_rows([*map(tuple, parts[part])]) for part in ("added", "removed"))
    return TableChange(
        table=name,
        before=before and tuple(before),
        after=after and tuple(after),
        key=tuple(key),
        generated=tuple(generated),
        references=tuple(Reference(*reference) for reference in references),
        added=added,
        removed=removed,
        added_indexes=tuple(index_text(statement) for (statement,) in parts["added index"]),
        removed_indexes=tuple(index_text(statement) for (statement,) in parts["removed index"]),
    )


def index_text(statement: str) -> str:
    r"""Return what an index is, whatever its name and however the statement that made it is written.

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
