"""SQLite in a child process: statements that change a private copy of a database. Loaded by `host_child.py`.

The copy is a file that is unlinked as soon as it is open, so that nothing of it is left behind, however the process
ends. It is in write-ahead mode and attached a second time, as `before`: there it stays as it was while a transaction
changes it. Only the guard and what reads the difference may use `before`.
"""

from __future__ import annotations

import atexit
import os
import re
import shutil
import sqlite3
from collections import Counter, OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import closing, suppress
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

from pytest_queryeval.sandbox import sqlite_child
from pytest_queryeval.sandbox.driver import (
    COMMANDS,
    Answer,
    Fault,
    Refused,
    Settings,
    Verdict,
    first_word,
    make_answer,
    quoted,
    signature,
)
from pytest_queryeval.sandbox.sqlite_child import (
    COMPUTED,
    STEPS,
    VALUE_BYTES,
    Guard,
    database_uri,
    described,
    lenient,
    touch_virtual_tables,
)

COPIES_BYTES = 8 * 2**30  # of all copies that are open
GROWTH_BYTES = 256 * 2**20  # that statements may add to a copy
PARTS = ("part", "table", "content")
BEFORE, AFTER = "before", "main"
DEFINING = frozenset(("alter", "create", "drop"))
STATEMENTS = frozenset(("delete", "insert", "replace", "select", "update", "values", "with"))
DEFINITION = re.compile(r"(?:create\s+(?:unique\s+)?|drop\s+|alter\s+)(?:table|view|index)\b", re.IGNORECASE)
COMMENT = re.compile(r"--[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
CHANGES = frozenset((sqlite3.SQLITE_INSERT, sqlite3.SQLITE_UPDATE, sqlite3.SQLITE_DELETE))
CREATIONS = frozenset((sqlite3.SQLITE_CREATE_TABLE, sqlite3.SQLITE_CREATE_INDEX, sqlite3.SQLITE_CREATE_VIEW))
DEFINITIONS = CREATIONS.union(
    (
        *(sqlite3.SQLITE_DROP_TABLE, sqlite3.SQLITE_DROP_INDEX, sqlite3.SQLITE_DROP_VIEW),
        *(sqlite3.SQLITE_ALTER_TABLE, sqlite3.SQLITE_REINDEX, sqlite3.SQLITE_DROP_TRIGGER),
    )
)
REFUSED = "only statements that change or read tables are allowed"
REFUSED_TABLES = "the tables of SQLite itself may not be changed"
VIRTUAL = re.compile(r"create\s+virtual\s.*?\busing\s+(\w+)", re.IGNORECASE | re.DOTALL)
# What the names of the tables end with in which modules keep the content of a virtual table.
SHADOWS = {
    "fts3": ("content", "docsize", "segdir", "segments", "stat"),
    "fts4": ("content", "docsize", "segdir", "segments", "stat"),
    "fts5": ("config", "content", "data", "docsize", "idx"),
    "geopoly": ("node", "parent", "rowid"),
    "rtree": ("node", "parent", "rowid"),
    "rtree_i32": ("node", "parent", "rowid"),
}
# What SQLite says of its own tables, and of functions that the guard does not see within definitions.
UNSAFE = re.compile(r"may not be (?:altered|dropped|indexed|modified)|reserved for internal use|unsafe use of")
OBJECTS = """
    SELECT lower(name), type, name, tbl_name, coalesce(sql, '') FROM {}.sqlite_master
    WHERE type IN ('table', 'view', 'index') AND name NOT LIKE 'sqlite~_%' ESCAPE '~'
"""
IS_ROWID = (
    "pk = 1 AND upper(type) = 'INTEGER' AND (SELECT count(*) FROM pragma_table_info(:name, :schema) WHERE pk) = 1"
)

Row: TypeAlias = tuple[Any, ...]


class WriteGuard(Guard):
    """Also lets statements change the tables of `main`, and collects the names of the tables that they may change."""

    pragmas = frozenset({"data_version"})  # others tell of `before`, too
    shadows: Mapping[str, str] = MappingProxyType({})
    """The virtual table of each table that holds the content of one, by their names in lower case."""

    def start(self, timeout: float) -> None:
        """Begin the next query."""
        super().start(timeout)
        self.may_change: set[str] = set()
        self.begin_statement("")

    def begin_statement(self, word: str) -> None:
        """Begin the next statement, whose first word is `word`; without one only reading is allowed."""
        self._word = word
        self._statement_changes: set[str] = set()
        self.missing = ""

    def check_statement(self) -> None:
        """Raise `Refused` if the statement may change the content of a virtual table other than by that table."""
        for name in self._statement_changes & self.shadows.keys():
            if self.shadows[name] not in self._statement_changes:
                raise Refused(f"{REFUSED}: '{name}' holds the content of '{self.shadows[name]}'")

    def authorize(
        self,
        action: int,
        first_argument: str | None,
        second_argument: str | None,
        *place: str | None,
    ) -> int:
        """Allow actions on the tables of `main`; remember the first refused one, and a name that `main` lacks."""
        schema = first_argument if action == sqlite3.SQLITE_ALTER_TABLE else place[0]
        if schema == BEFORE:
            self.missing = self.missing or str(first_argument)
            return sqlite3.SQLITE_DENY
        name = str(first_argument).lower()
        is_renaming = (
            name == "sqlite_temp_master" and self._word == "alter"
        )  # triggers and views there, if there were any
        if self._word and (schema in (AFTER, None) or is_renaming):
            if (
                action in DEFINITIONS
                and self._word in DEFINING
                and not self._belongs_to_sqlite(action, name, second_argument)
            ):
                return sqlite3.SQLITE_OK
            is_checking = name == "quick_check" and self._word == "alter"  # SQLite itself, of rows for a new column
            if action == sqlite3.SQLITE_PRAGMA and (is_checking or name == "data_version"):  # FTS5 reads it
                return sqlite3.SQLITE_OK
            if action in CHANGES and (not name.startswith("sqlite_") or self._word in DEFINING):
                self.may_change.add(name)
                self._statement_changes.add(name)
                return sqlite3.SQLITE_OK
        return super().authorize(action, first_argument, second_argument, *place)

    def _belongs_to_sqlite(self, action: int, name: str, second_argument: str | None) -> bool:
        """Return whether an action would drop a table of SQLite, or rename one that is virtual or part of one.

        SQLite itself refuses a CREATE with one of its names, and makes indexes of keys and a table for AUTOINCREMENT.
        """
        if action in CREATIONS:
            return False
        if action != sqlite3.SQLITE_ALTER_TABLE:
            return name.startswith("sqlite_")
        return str(second_argument).lower() in {*self.shadows, *self.shadows.values()}


class Copy(NamedTuple):
    """The private copy of a database, with the signatures of what it was made of."""

    signatures: tuple[tuple[int, ...], tuple[int, ...]]
    size: int
    connection: sqlite3.Connection
    shadows: Mapping[str, str]
    """As in `WriteGuard`."""


class Relation(NamedTuple):
    """A table, a view or an index, by the statement that made it."""

    kind: str
    name: str
    table: str
    statement: str


class Driver(sqlite_child.Driver):
    """Keeps the copies of the last databases, COPIES_BYTES together.

    `settings` are `{"path": absolute path, "max_rows": number}`.
    """

    def __init__(self) -> None:
        super().__init__()
        self._write_guard = self._guard = WriteGuard()
        self._copies: OrderedDict[str, Copy] = OrderedDict()
        self._number = 0
        atexit.register(remove_folder, Path.cwd())

    def run(self, settings: Settings, query: str, timeout: float) -> Answer:
        """Run statements, undo them, and return what they changed and returned; raises like the driver that reads."""
        connection, guard = self._copy(settings["path"]), self._write_guard
        guard.start(timeout)
        undo(connection)
        touch_virtual_tables(connection)  # an earlier statement may have disconnected them
        connection.execute("BEGIN")
        connection.set_authorizer(guard.authorize)
        returned: list[Row] = []
        for statement in statements_of(query):
            guard.begin_statement(allowed_word(statement))
            cursor = connection.execute(statement)
            guard.check_statement()
            if cursor.description is not None:
                names = tuple(column[0] for column in cursor.description)
                rows = islice(cursor, settings["max_rows"] + 1)  # the host refuses more
                returned = [("columns", None, names), *(("returned", None, row) for row in rows)]
        guard.begin_statement("")
        connection.set_authorizer(None)
        check_deferred(connection)
        changes = [*returned, *self._changes(connection, guard.may_change)]
        undo(connection)
        return make_answer(PARTS, changes)

    def describe(self, settings: Settings) -> Answer:
        """Make the copy if there is none, and list its columns; raises like `run`."""
        connection = self._copy(settings["path"])
        undo(connection)
        rows = described(connection, connection.execute(sqlite_child.TABLES).fetchall())
        return make_answer(("table", "column", "type", "to_table", "to_column"), rows)

    def classify(self, error: Exception) -> Verdict:
        """Return the verdict on an error of `run`."""
        for copy in self._copies.values():
            with suppress(sqlite3.Error):
                undo(copy.connection)
        guard, text = self._write_guard, str(error)
        if isinstance(error, Refused) or UNSAFE.search(text):
            return "failure", "unsafe", text
        if guard.missing and isinstance(error, sqlite3.Error):
            return "failure", "invalid", f"no such table: {guard.missing}"
        if guard.refused and guard.refused != COMPUTED:
            refused_action, guard.refused = guard.refused, ""
            reason = REFUSED_TABLES if " sqlite_" in refused_action else REFUSED
            return "failure", "unsafe", f"{reason}: {refused_action}"
        return super().classify(error)

    def _copy(self, path: str) -> sqlite3.Connection:
        """Return the connection to the copy of a database, made if there is none of its present state."""
        try:
            state = signature(path), signature(f"{path}-wal")
            copy = self._copies.pop(path, None)
            if copy is not None and copy.signatures != state:
                copy.connection.close()
                copy = None
            if copy is None:
                size = sum(sizes[1] for sizes in state if sizes)
                if size > COPIES_BYTES:
                    raise Fault(f"{size:,} bytes are too large to copy: at most {COPIES_BYTES:,}")
                while self._copies and size + sum(open_copy.size for open_copy in self._copies.values()) > COPIES_BYTES:
                    self._copies.popitem(last=False)[1].connection.close()
                self._number += 1
                connection = self._connect(path, f"copy{self._number}.db")
                copy = Copy(state, size, connection, shadow_tables(relations(connection, BEFORE)))
        except OSError as error:
            raise Fault(error.strerror or str(error)) from error
        except sqlite3.Error as error:
            raise Fault(str(error)) from error
        self._copies[path] = copy
        self._write_guard.shadows = copy.shadows
        return copy.connection

    def _connect(self, path: str, name: str) -> sqlite3.Connection:
        """Copy a database to a file in this process's folder, which is unlinked once it is open."""
        connection = None
        try:
            copy_database(path, name)
            connection = sqlite3.connect(name, isolation_level=None)
            connection.text_factory = lenient
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, VALUE_BYTES)
            if connection.execute("PRAGMA journal_mode = WAL").fetchone()[0] != "wal":
                raise Fault("it cannot be copied in write-ahead mode")
            page_count, page_size = (
                connection.execute(f"PRAGMA {key}").fetchone()[0] for key in ("page_count", "page_size")
            )
            for pragma in (
                *("synchronous = OFF", "temp_store = MEMORY", "wal_autocheckpoint = 0", "foreign_keys = ON"),
                f"max_page_count = {page_count + GROWTH_BYTES // page_size}",
            ):
                connection.execute(f"PRAGMA {pragma}")
            connection.execute(f"ATTACH '{name}' AS {BEFORE}")
            connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
            for schema in (AFTER, BEFORE):  # opens all files
                relations(connection, schema)
            connection.set_progress_handler(self._guard.is_late, STEPS)
        except BaseException:
            if connection is not None:
                connection.close()
            raise
        finally:
            for suffix in ("", "-wal", "-shm", "-journal"):
                with suppress(FileNotFoundError):
                    os.unlink(f"{name}{suffix}")  # noqa: PTH108 - relative to the process's folder
        return connection

    def _changes(self, connection: sqlite3.Connection, names: set[str]) -> Iterator[Row]:
        """Yield the tables that differ from `before`, with their rows that were added and removed."""
        before, after = (relations(connection, schema) for schema in (BEFORE, AFTER))
        redefined = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
        for name in sorted((names | redefined) - self._write_guard.shadows.keys()):
            old, new = before.get(name), after.get(name)
            relation = new or old  # neither: it was made and dropped
            if relation and (relation.kind != "view" or name in redefined):  # triggers write in place of others
                is_index = relation.kind == "index"
                yield from index_changes(old, new) if is_index else self._relation_changes(connection, old, new)

    def _relation_changes(
        self, connection: sqlite3.Connection, old: Relation | None, new: Relation | None
    ) -> Iterator[Row]:
        relation = new or old
        assert relation is not None
        name = relation.name
        if relation.kind == "view":  # whose text is not trusted
            connection.set_authorizer(self._guard.authorize)
        try:
            old_columns, new_columns = columns_of(connection, BEFORE, old), columns_of(connection, AFTER, new)
            is_redefined = old_columns != new_columns
            if relation.kind == "table" and not is_redefined:
                added, removed = changed_rows(connection, name, new_columns or ())
            else:
                removed, added = (
                    list(connection.execute(f"SELECT {names_of(of)} FROM {schema}.{quoted(name)}")) if of else []  # noqa: S608 - quoted
                    for schema, of in ((BEFORE, old_columns), (AFTER, new_columns))
                )
        finally:
            connection.set_authorizer(None)
        if not is_redefined:
            kept = Counter(added) & Counter(removed)
            added, removed = (list((Counter(rows) - kept).elements()) for rows in (added, removed))
        if added or removed or is_redefined:
            yield "table", name, (old_columns, new_columns, *keys_of(connection, AFTER if new else BEFORE, name))
            yield from (("added", name, row) for row in added)
            yield from (("removed", name, row) for row in removed)


def remove_folder(folder: Path) -> None:
    """Remove the folder of this process, which is empty, if the parent has not done so."""
    with suppress(OSError):
        folder.rmdir()


def copy_database(path: str, name: str) -> None:
    """Copy a database as it is now; raises `Fault`, OSError, or sqlite3's errors, also where it is locked."""
    wal = signature(f"{path}-wal")
    with closing(sqlite3.connect(database_uri(path), uri=True, isolation_level=None)) as source:
        if wal and wal[1]:
            with closing(sqlite3.connect(name)) as copy:
                source.backup(copy)
            return
        source.execute("BEGIN")  # nobody writes until it is closed
        source.execute("SELECT count(*) FROM sqlite_master").fetchone()
        shutil.copyfile(path, name)
        os.chmod(name, 0o600)  # noqa: PTH101 - relative to the process's folder


def undo(connection: sqlite3.Connection) -> None:
    """Roll back what statements changed."""
    connection.set_authorizer(None)
    if connection.in_transaction:
        connection.execute("ROLLBACK")


def statements_of(query: str) -> Iterator[str]:
    """Yield the statements of a text; raises ValueError if there is none."""
    start, count = 0, 0
    for end in (*(match.end() for match in re.finditer(";", query)), len(query)):
        statement = query[start:end]
        if end < len(query) and not sqlite3.complete_statement(statement):
            continue
        if COMMENT.sub("", statement).strip(" \t\r\n;"):
            yield statement
            count += 1
        start = end
    if not count:
        raise ValueError("the text holds no statement")


def allowed_word(statement: str) -> str:
    """Return the first word of a statement in lower case; raises `Refused` for one that write queries may not have."""
    word = first_word(statement)
    text = COMMENT.sub(" ", statement).strip(" \t\r\n;(")
    if word in STATEMENTS or (word in DEFINING and DEFINITION.match(text)):
        return word
    if word in COMMANDS:
        raise Refused(f"{REFUSED}: {' '.join(text.split()[:2]).upper()}")
    return "select"  # SQLite says what is wrong with it


def check_deferred(connection: sqlite3.Connection) -> None:
    """Raise sqlite3's error if a row violates a deferred foreign key that kept it before."""
    if not any("deferr" in relation.statement.lower() for relation in relations(connection, AFTER).values()):
        return
    before, after = (set(connection.execute(f"PRAGMA {schema}.foreign_key_check")) for schema in (BEFORE, AFTER))
    if broken := after - before:
        table, _, parent, _ = min(broken, key=str)
        raise sqlite3.IntegrityError(f"FOREIGN KEY constraint failed at the end: {table} refers to {parent}")


def relations(connection: sqlite3.Connection, schema: str) -> dict[str, Relation]:
    """Return tables, views and indexes by their names in lower case."""
    return {name: Relation(*fields) for name, *fields in connection.execute(OBJECTS.format(schema))}


def shadow_tables(tables: Mapping[str, Relation]) -> dict[str, str]:
    """Return the names of tables that hold the content of virtual tables, with the names of these."""
    return {
        f"{name}_{suffix}": name
        for name, relation in tables.items()
        if (module := VIRTUAL.match(relation.statement))
        for suffix in SHADOWS.get(module[1].lower(), ())
    }


def index_changes(old: Relation | None, new: Relation | None) -> Iterator[Row]:
    """Yield the indexes that were added and removed."""
    yield from (
        (part, index.table, (index.statement,))
        for part, index in (("removed index", old), ("added index", new))
        if index
    )


def columns_of(connection: sqlite3.Connection, schema: str, relation: Relation | None) -> tuple[str, ...] | None:
    """Return the columns of a table or a view that hold values; None if there is no such table.

    The rows of a view that was dropped do not count, so that none of its columns are returned.
    """
    if relation is None:
        return None
    if relation.kind == "view":
        if schema == BEFORE:
            return ()
        cursor = connection.execute(f"SELECT * FROM {schema}.{quoted(relation.name)} LIMIT 0")  # noqa: S608 - quoted
        return tuple(column[0] for column in cursor.description)
    # An INSERT without a list of columns has no values of generated ones, which come last here.
    rows = connection.execute(
        "SELECT name FROM pragma_table_xinfo(?, ?) WHERE hidden <> 1 ORDER BY hidden, cid", [relation.name, schema]
    )
    return tuple(name for (name,) in rows)


def changed_rows(connection: sqlite3.Connection, table: str, columns: tuple[str, ...]) -> tuple[list[Row], list[Row]]:
    """Return the rows of `main` that `before` does not have under the same row id or key, and the reverse."""
    lower_names = {column.lower() for column in columns}
    keys = [next((name for name in ("rowid", "_rowid_", "oid") if name not in lower_names), "rowid")]
    try:
        connection.execute(f"SELECT {keys[0]} FROM {AFTER}.{quoted(table)} LIMIT 0")  # noqa: S608 - quoted
    except sqlite3.OperationalError:  # WITHOUT ROWID
        rows = connection.execute("SELECT name FROM pragma_table_info(?, ?) WHERE pk ORDER BY pk", [table, AFTER])
        keys = [quoted(name) for (name,) in rows]
    joined = " AND ".join(f"a.{key} IS b.{key}" if len(keys) > 1 else f"a.{key} = b.{key}" for key in keys)
    same = " AND ".join(f"a.{name} COLLATE BINARY IS b.{name}" for name in map(quoted, columns))
    names = ", ".join(f"a.{name}" for name in map(quoted, columns))
    added, removed = (
        list(
            connection.execute(
                f"SELECT {names} FROM {first}.{quoted(table)} AS a LEFT JOIN {second}.{quoted(table)} AS b ON {joined} "  # noqa: S608 - quoted
                f"WHERE b.{keys[0]} IS NULL OR NOT ({same})"
            )
        )
        for first, second in ((AFTER, BEFORE), (BEFORE, AFTER))
    )
    return added, removed


def keys_of(connection: sqlite3.Connection, schema: str, table: str) -> tuple[Any, ...]:
    """Return the columns of the primary key, those of them that SQLite generates, and those that refer to other tables.

    The latter are rows of column, table, and column there.
    """
    arguments = {"name": table, "schema": schema}
    info = "FROM pragma_table_info(:name, :schema)"
    keys = tuple(name for (name,) in connection.execute(f"SELECT name {info} WHERE pk ORDER BY pk", arguments))
    generated = tuple(name for (name,) in connection.execute(f"SELECT name {info} WHERE {IS_ROWID}", arguments))
    references = connection.execute(
        """
        SELECT "from", "table", coalesce(
            "to", (SELECT name FROM pragma_table_info("table", :schema) WHERE pk = seq + 1)
        )
        FROM pragma_foreign_key_list(:name, :schema)
        """,
        arguments,
    )
    return keys, generated, tuple(row for row in references if row[2] is not None)


def names_of(columns: tuple[str, ...]) -> str:
    """Return the names of columns, quoted, for a SELECT."""
    return ", ".join(map(quoted, columns))
