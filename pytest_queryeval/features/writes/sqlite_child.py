"""SQLite in a child process: statements that change a private copy of a database. Loaded by `host_child.py`.

The copy is in write-ahead mode and attached a second time, as `before`: this schema shows the old content while a
transaction changes the copy. Only the guard and the code that reads the difference may use `before`.
"""

from __future__ import annotations

import re
import shutil
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from itertools import islice
from pathlib import Path

from pytest_queryeval.sandbox import sqlite_child
from pytest_queryeval.sandbox.cells import Rows
from pytest_queryeval.sandbox.driver import (
    COMMANDS,
    Answer,
    Fault,
    Refused,
    Settings,
    Verdict,
    first_word,
    quoted,
    signature,
    split_at_semicolons,
)
from pytest_queryeval.sandbox.sqlite_child import (
    COMPUTED,
    STEPS,
    VALUE_BYTES,
    Guard,
    database_uri,
    lenient,
    touch_virtual_tables,
)
from pytest_queryeval.sandbox.writing import (
    GROWTH_BYTES,
    PREPARED,
    REFUSED,
    Columns,
    Copies,
    Relation,
    Relations,
    Returned,
    Transaction,
    names_of,
)

BEFORE, AFTER = "before", "main"
DEFINING = frozenset(("alter", "create", "drop"))
STATEMENTS = frozenset(("delete", "insert", "replace", "select", "update", "values", "with"))
DEFINITION = re.compile(r"(?:create\s+(?:unique\s+)?|drop\s+|alter\s+)(?:table|view|index)\b", re.IGNORECASE)
COMMENT = re.compile(r"--[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
CHANGES = frozenset((sqlite3.SQLITE_INSERT, sqlite3.SQLITE_UPDATE, sqlite3.SQLITE_DELETE))
CREATIONS = frozenset((sqlite3.SQLITE_CREATE_TABLE, sqlite3.SQLITE_CREATE_INDEX, sqlite3.SQLITE_CREATE_VIEW))
DEFINITIONS = CREATIONS | {
    *(sqlite3.SQLITE_DROP_TABLE, sqlite3.SQLITE_DROP_INDEX, sqlite3.SQLITE_DROP_VIEW),
    *(sqlite3.SQLITE_ALTER_TABLE, sqlite3.SQLITE_REINDEX, sqlite3.SQLITE_DROP_TRIGGER),
}
REFUSED_TABLES = "the tables of SQLite itself may not be changed"
# What SQLite says of its own tables, and of functions that the guard does not see within definitions.
UNSAFE = re.compile(r"may not be (?:altered|dropped|indexed|modified)|reserved for internal use|unsafe use of")
OBJECTS = """
    SELECT type, name, tbl_name, coalesce(sql, '') FROM main.sqlite_master
    WHERE type IN ('table', 'view', 'index') AND name NOT LIKE 'sqlite~_%' ESCAPE '~'
"""
COLUMNS = "SELECT name FROM pragma_table_xinfo(?, 'main') WHERE hidden <> 1 ORDER BY hidden, cid"
KEYS = """
    SELECT 'PRIMARY KEY', name, NULL, NULL FROM (SELECT * FROM pragma_table_info(:name, 'main') WHERE pk ORDER BY pk)
    UNION ALL
    SELECT 'GENERATED', max(name), NULL, NULL FROM pragma_table_info(:name, 'main') WHERE pk
    GROUP BY NULL HAVING count(*) = 1 AND upper(max(type)) = 'INTEGER'
    UNION ALL
    SELECT CASE WHEN there IS NULL THEN '' ELSE 'FOREIGN KEY' END, "from", "table", there FROM (
        SELECT *, coalesce("to", (SELECT name FROM pragma_table_info("table", 'main') WHERE pk = seq + 1)) AS there
        FROM pragma_foreign_key_list(:name, 'main')
    )
"""


class WriteGuard(Guard):
    """Also lets statements change the tables of `main`, and collects the names of the tables that they may change."""

    pragmas = frozenset({"data_version"})  # others tell of `before`, too
    kinds: Mapping[str, str]
    """By table in lower case: "virtual" for virtual tables, "shadow" for tables that contain their content."""

    def start(self, timeout: float) -> None:
        """Begin a query with this timeout, and forget earlier ones; only reading is allowed before a statement."""
        super().start(timeout)
        self.may_change: set[str] = set()
        self.begin_statement("")

    def begin_statement(self, word: str) -> None:
        """Begin the next statement, whose first word is `word`; an empty word allows only reading."""
        self._word = word
        self._statement_changes: set[str] = set()
        self.missing = ""

    def check_statement(self) -> None:
        """Raise `Refused` if the statement changed a table with the content of a virtual table directly."""
        for name in self._statement_changes:
            owner = name.rpartition("_")[0]
            if self.kinds.get(name) == "shadow" and owner not in self._statement_changes:
                raise Refused(f"'{name}' contains the content of '{owner}'")

    def authorize(
        self, action: int, first_argument: str | None, second_argument: str | None, *place: str | None
    ) -> int:
        """Return SQLite's code for whether an action of a statement is allowed; called by SQLite for each action.

        Statements may change and define tables of `main`, but no tables of SQLite itself. Changed tables are added to
        `may_change`. A name that is looked up in `before` is refused, and kept in `missing`. Other actions are decided
        as for queries that read; the first refused action is kept in `refused`.
        """
        schema = first_argument if action == sqlite3.SQLITE_ALTER_TABLE else place[0]
        if schema == BEFORE:
            self.missing = self.missing or str(first_argument)
            return sqlite3.SQLITE_DENY
        name = str(first_argument).lower()
        # Renaming reaches triggers and views there, if there were any.
        is_renaming = name == "sqlite_temp_master" and self._word == "alter"
        if self._word and (schema in (AFTER, None) or is_renaming):
            is_defining = action in DEFINITIONS and self._word in DEFINING
            if is_defining and not self._belongs_to_sqlite(action, name, second_argument):
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
        """Return whether an action drops an object of SQLite itself, or alters a virtual table or its content.

        SQLite itself refuses CREATE with one of its names, and creates indexes for keys and a table for AUTOINCREMENT.
        """
        if action in CREATIONS:
            return False
        if action != sqlite3.SQLITE_ALTER_TABLE:
            return name.startswith("sqlite_")
        return self.kinds.get(str(second_argument).lower()) in ("shadow", "virtual")


class Driver(sqlite_child.Driver):
    """Runs write queries on copies of databases; `settings` are `{"path": absolute path, "max_rows": number}`."""

    def __init__(self) -> None:
        super().__init__()
        self._write_guard = self._guard = WriteGuard()
        self._copies = Copies("-wal", self._open_copy)

    def run(self, settings: Settings, query: str, timeout: float) -> Answer:
        """Run statements on the copy, undo them, and return what they changed and returned.

        Raises ValueError for a text without statements, `Refused` for statements that are not allowed, and the errors
        of the driver for reading.
        """
        if not (statements := split_at_semicolons(query)):
            raise ValueError("the text contains no statement")
        copy, guard = self._copies.get(settings["path"]), self._write_guard
        connection = copy.connection
        guard.start(timeout)
        touch_virtual_tables(connection)  # an earlier statement may have disconnected them
        guard.kinds = kinds_of(connection)
        transaction = SqliteTransaction(connection, guard)
        try:
            connection.set_authorizer(guard.authorize)
            returned: Returned = None
            for statement in statements:
                guard.begin_statement(allowed_word(statement))
                cursor = connection.execute(statement)
                guard.check_statement()
                if cursor.description is not None:
                    returned = names_of(cursor), list(islice(cursor, settings["max_rows"] + 1))
            guard.begin_statement("")
            connection.set_authorizer(None)
            check_deferred(connection)
            return transaction.answer(copy.relations, returned, settings["max_rows"])
        finally:
            transaction.undo()

    def describe(self, settings: Settings) -> Answer:
        """Make the copy of the database if there is none; raises the errors of `run`."""
        self._copies.get(settings["path"])
        return PREPARED

    def classify(self, error: Exception) -> Verdict:
        """Return the verdict on an error of `run`, and forget the action that the guard refused.

        Refused statements are unsafe, and a name that only `before` has is invalid. Other errors are classified as for
        queries that read.
        """
        guard, text = self._write_guard, str(error)
        if isinstance(error, Refused) or UNSAFE.search(text):
            return "failure", "unsafe", f"{REFUSED}: {text}" if isinstance(error, Refused) else text
        if guard.missing and isinstance(error, sqlite3.Error):
            return "failure", "invalid", f"no such table: {guard.missing}"
        if guard.refused and guard.refused != COMPUTED:
            refused_action, guard.refused = guard.refused, ""
            reason = REFUSED_TABLES if " sqlite_" in refused_action else REFUSED
            return "failure", "unsafe", f"{reason}: {refused_action}"
        return super().classify(error)

    def _open_copy(self, path: str, copy: Path) -> tuple[sqlite3.Connection, Relations]:
        try:
            copy_database(path, copy)
            connection = sqlite3.connect(copy, isolation_level=None)
            connection.text_factory = lenient
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, VALUE_BYTES)
            if connection.execute("PRAGMA journal_mode = WAL").fetchone() != ("wal",):
                raise Fault("it cannot be copied in write-ahead mode")
            pages, page_bytes = connection.execute("SELECT * FROM pragma_page_count, pragma_page_size").fetchone()
            connection.executescript(f"""
                PRAGMA synchronous = OFF; PRAGMA temp_store = MEMORY; PRAGMA wal_autocheckpoint = 0;
                PRAGMA foreign_keys = ON; PRAGMA max_page_count = {pages + GROWTH_BYTES // page_bytes};
            """)
            connection.execute(f"ATTACH ? AS {BEFORE}", [str(copy)])
            connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
            connection.execute("SELECT count(*) FROM before.sqlite_master").fetchone()  # opens its files
            connection.set_progress_handler(self._guard.is_late, STEPS)
            return connection, relations(connection, kinds_of(connection))
        except sqlite3.Error as error:
            raise Fault(str(error)) from error


class SqliteTransaction(Transaction):
    """A transaction of a connection, whose guard knows which tables the statements may have changed."""

    def __init__(self, connection: sqlite3.Connection, guard: WriteGuard) -> None:
        self._connection, self._guard = connection, guard
        connection.execute("BEGIN")

    def relations(self) -> Relations:
        """Return all tables, views and indexes, without tables with the content of virtual tables."""
        return relations(self._connection, self._guard.kinds)

    def content(self, relation: Relation) -> tuple[Columns, Rows]:
        """Return the columns and all rows of a table or a view; the text of a view runs under the guard."""
        columns = "*" if relation.kind == "view" else ", ".join(map(quoted, columns_of(self._connection, relation)))
        self._connection.set_authorizer(self._guard.authorize)  # the text of a view is not trusted
        cursor = self._connection.execute(f"SELECT {columns} FROM {AFTER}.{relation.quoted}")  # noqa: S608 - quoted
        rows = cursor.fetchall()
        self._connection.set_authorizer(None)
        return names_of(cursor), rows

    def keys(self, relation: Relation) -> Rows:
        """Return facts about columns as `Transaction.keys` describes them."""
        return self._connection.execute(KEYS, {"name": relation.place}).fetchall()

    def changed_rows(self, table: Relation) -> tuple[Columns, Rows, Rows] | None:
        """Return the columns, and the rows that only `main` has and that only `before` has, compared by row id or key.

        None if the statements cannot have changed the table.
        """
        if table.place.lower() not in self._guard.may_change:
            return None
        columns = columns_of(self._connection, table)
        lower_names = {column.lower() for column in columns}
        keys = [next((name for name in ("rowid", "_rowid_", "oid") if name not in lower_names), "rowid")]
        try:
            self._connection.execute(f"SELECT {keys[0]} FROM {AFTER}.{table.quoted} LIMIT 0")  # noqa: S608 - quoted
        except sqlite3.OperationalError:  # WITHOUT ROWID
            keys = [quoted(name) for word, name, *_ in self.keys(table) if word == "PRIMARY KEY"]
        joined = " AND ".join(f"a.{key} IS b.{key}" if len(keys) > 1 else f"a.{key} = b.{key}" for key in keys)
        same = " AND ".join(f"a.{name} COLLATE BINARY IS b.{name}" for name in map(quoted, columns))
        names = ", ".join(f"a.{name}" for name in map(quoted, columns))
        added, removed = (
            self._connection.execute(
                f"SELECT {names} FROM {first}.{table.quoted} AS a LEFT JOIN {second}.{table.quoted} AS b ON {joined} "  # noqa: S608 - quoted
                f"WHERE b.{keys[0]} IS NULL OR NOT ({same})"
            ).fetchall()
            for first, second in ((AFTER, BEFORE), (BEFORE, AFTER))
        )
        return columns, added, removed

    def undo(self) -> None:
        """Roll the transaction back, unless SQLite has done so."""
        self._connection.set_authorizer(None)
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")


def copy_database(path: str, copy: Path) -> None:
    """Copy a database file, with the content of its write-ahead log, to the path `copy`.

    Raises `Fault`, OSError, or sqlite3's errors, also if the database is locked.
    """
    wal = signature(f"{path}-wal")
    with closing(sqlite3.connect(database_uri(path), uri=True, isolation_level=None)) as source:
        if wal and wal[1]:
            with closing(sqlite3.connect(copy)) as connection:
                source.backup(connection)
            return
        source.execute("BEGIN")  # nobody writes until it is closed
        source.execute("SELECT count(*) FROM sqlite_master").fetchone()
        shutil.copyfile(path, copy)


def allowed_word(statement: str) -> str:
    """Return the first word of a statement in lower case, or `select` for an unknown word, which SQLite then refuses.

    Raises `Refused` for a command that write queries may not contain.
    """
    word = first_word(statement)
    text = COMMENT.sub(" ", statement).strip(" \t\r\n;(")
    if word in STATEMENTS or (word in DEFINING and DEFINITION.match(text)):
        return word
    if word in COMMANDS:
        raise Refused(" ".join(text.split()[:2]).upper())
    return "select"  # SQLite says what is wrong with it


def check_deferred(connection: sqlite3.Connection) -> None:
    """Raise sqlite3's error if a row violates a deferred foreign key, and did not violate it before the statements."""
    if not any("deferr" in statement.lower() for *_, statement in connection.execute(OBJECTS)):
        return
    before, after = (set(connection.execute(f"PRAGMA {schema}.foreign_key_check")) for schema in (BEFORE, AFTER))
    if broken := after - before:
        table, _, parent, _ = min(broken, key=str)
        raise sqlite3.IntegrityError(f"FOREIGN KEY constraint failed at the end: {table} refers to {parent}")


def kinds_of(connection: sqlite3.Connection) -> dict[str, str]:
    """Return the kinds of all tables by their names in lower case; empty if SQLite is older than 3.37."""
    return {name.lower(): kind for _, name, kind, *_ in connection.execute(f"PRAGMA {AFTER}.table_list")}


def relations(connection: sqlite3.Connection, kinds: Mapping[str, str]) -> Relations:
    """Return tables, views and indexes by their names in lower case, without "shadow" tables."""
    return {
        name.lower(): Relation(kind, name, table, quoted(name), statement)
        for kind, name, table, statement in connection.execute(OBJECTS)
        if kinds.get(name.lower()) != "shadow"
    }


def columns_of(connection: sqlite3.Connection, table: Relation) -> Columns:
    """Return the columns of a table with stored or computed values; generated columns come last.

    An INSERT without a list of columns has no values for generated columns.
    """
    return tuple(name for (name,) in connection.execute(COLUMNS, [table.place]))
