"""SQLite in a child process: read-only by construction, for untrusted queries. Loaded by `host_child.py`."""

from __future__ import annotations

import re
import sqlite3
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from time import monotonic
from typing import Any, NamedTuple, TypeAlias

from pytest_queryeval.sandbox import driver
from pytest_queryeval.sandbox.driver import (
    HEADER_BYTES,
    Answer,
    Fault,
    Refused,
    Settings,
    Verdict,
    first_word,
    make_answer,
    quoted,
    read_header,
    signature,
    split_at_semicolons,
    strip_trailing_semicolons,
    wrong_file_problem,
)

VALUE_BYTES = 32 * 2**20
CONNECTIONS = 64
STEPS = 5_000  # of the virtual machine between two calls of `Guard.is_late`
MAGIC = b"SQLite format 3\0"
WAL_VERSIONS = b"\2\2"  # the bytes 18 and 19 of a file in write-ahead mode

Rows: TypeAlias = dict[str, list[tuple[Any, ...]]]  # by table, in an order in which they can be inserted

ALLOWED = frozenset((sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_RECURSIVE, sqlite3.SQLITE_FUNCTION))
# Functions that access files, load code, or write; some exist only in builds with extensions.
FORBIDDEN = frozenset(
    ("load_extension", "fts3_tokenizer", "optimize", "readfile", "writefile", "edit", "eval", "icu_load_collation")
)
# What FTS5 reads itself, and what tells of the schema as tables, such as pragma_table_info.
SELECTED_PRAGMAS = frozenset(
    (
        *("data_version", "foreign_key_list", "index_info", "index_list", "index_xinfo"),
        *("table_info", "table_list", "table_xinfo"),
    )
)
PRAGMA_TABLE = re.compile(r"\bpragma_[a-z_]+", re.IGNORECASE | re.ASCII)
COMPUTED = "a table that SQLite computes"  # such as dbstat
UNDECLARED = "vtable constructor failed: "  # with the name of such a table
OTHER_ACTIONS = frozenset(
    f"SQLITE_{name}"
    for name in (
        "ANALYZE",
        "ATTACH",
        "DELETE",
        "DETACH",
        "FUNCTION",
        "INSERT",
        "PRAGMA",
        "REINDEX",
        "SAVEPOINT",
        "TRANSACTION",
        "UPDATE",
    )
)
ACTIONS = {
    value: name.removeprefix("SQLITE_").replace("_", " ")
    for name, value in vars(sqlite3).items()
    if name.startswith(("SQLITE_ALTER_", "SQLITE_CREATE_", "SQLITE_DROP_")) or name in OTHER_ACTIONS
}
SEVERAL = "one statement at a time"  # in the message of Python
NO_STATEMENT = re.compile(r"syntax error|unrecognized token")
QUOTED_TWICE = re.compile(r"""near "((["'`]).*\2)":""", re.DOTALL)  # a word that the query itself quotes
# By extended result code, else by primary code, else invalid. https://sqlite.org/rescode.html
VERDICTS = {
    sqlite3.SQLITE_AUTH: "unsafe",
    sqlite3.SQLITE_READONLY: "unsafe",
    sqlite3.SQLITE_INTERRUPT: "timeout",
    sqlite3.SQLITE_TOOBIG: "too_large",
    sqlite3.SQLITE_NOMEM: "too_large",
    sqlite3.SQLITE_FULL: "too_large",
    sqlite3.SQLITE_IOERR_NOMEM: "too_large",
    **dict.fromkeys(
        (
            sqlite3.SQLITE_BUSY,
            sqlite3.SQLITE_CANTOPEN,
            sqlite3.SQLITE_CORRUPT,
            sqlite3.SQLITE_IOERR,
            sqlite3.SQLITE_LOCKED,
            sqlite3.SQLITE_NOTADB,
            sqlite3.SQLITE_PERM,
            sqlite3.SQLITE_PROTOCOL,
            sqlite3.SQLITE_SCHEMA,
            sqlite3.SQLITE_READONLY_RECOVERY,
            sqlite3.SQLITE_READONLY_CANTLOCK,
            sqlite3.SQLITE_READONLY_ROLLBACK,
            sqlite3.SQLITE_READONLY_DBMOVED,
            sqlite3.SQLITE_READONLY_CANTINIT,
            sqlite3.SQLITE_READONLY_DIRECTORY,
        ),
        "fault",
    ),
}


TABLES = """
    SELECT name FROM sqlite_master
    WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite~_%' ESCAPE '~' ORDER BY rowid
"""
STATEMENTS = """
    SELECT sql FROM sqlite_master
    WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite~_%' ESCAPE '~' OR sql LIKE 'CREATE UNIQUE INDEX %'
    ORDER BY type = 'index', name COLLATE NOCASE, name
"""
LIST_COLUMNS = """
    SELECT :name, columns.name, columns.type, keys."table",
        coalesce(keys."to", (SELECT name FROM pragma_table_info(keys."table") WHERE pk = keys.seq + 1))
    FROM pragma_table_xinfo(:name) AS columns -- unlike table_info, with generated columns
    LEFT JOIN pragma_foreign_key_list(:name) AS keys ON keys."from" = columns.name COLLATE NOCASE
    WHERE columns.hidden <> 1 -- those of virtual tables that * leaves out
    ORDER BY columns.cid, keys.id DESC
"""


class Guard:
    """Callbacks that SQLite calls during a query, to allow or deny an action and to stop a late query."""

    pragmas = SELECTED_PRAGMAS
    """Those that a SELECT may read."""

    def __init__(self) -> None:
        self.start(0.0)

    def start(self, timeout: float) -> None:
        """Forget the last query and begin the next, which may take `timeout` seconds."""
        self._deadline = monotonic() + timeout
        self._selecting = False
        self.refused = ""
        self.columns: dict[tuple[str | None, ...], None] = {}
        """Those that the query reads, with the tables, the databases, and the views that read them."""

    def is_late(self) -> bool:
        """Return whether the current query has used up its time."""
        return monotonic() > self._deadline

    def authorize(
        self, action: int, first_argument: str | None, second_argument: str | None, *place: str | None
    ) -> int:
        """Return SQLITE_OK for actions that only read, otherwise SQLITE_DENY.

        Keeps the first denied action in `refused`, and adds columns that are read to `columns`.
        """
        if action == sqlite3.SQLITE_READ:
            self.columns[first_argument, second_argument, *place] = None
        if action == sqlite3.SQLITE_SELECT:
            self._selecting = True
        if action in ALLOWED and not (action == sqlite3.SQLITE_FUNCTION and str(second_argument).lower() in FORBIDDEN):
            return sqlite3.SQLITE_OK
        # As a separate query, a PRAGMA comes before any SELECT.
        if action == sqlite3.SQLITE_PRAGMA and self._selecting and first_argument in self.pragmas:
            return sqlite3.SQLITE_OK
        # The declaration of a virtual table; SQLite itself refuses an UPDATE of its own table.
        if action == sqlite3.SQLITE_UPDATE and self._selecting and first_argument == "sqlite_master":
            self.refused = self.refused or COMPUTED
            return sqlite3.SQLITE_DENY
        separator = "." if action == sqlite3.SQLITE_UPDATE else " "  # table.column, else name and value
        objects = separator.join(text for text in (first_argument, second_argument) if text)
        self.refused = self.refused or f"{ACTIONS.get(action, 'action')} {objects}".rstrip()
        return sqlite3.SQLITE_DENY


class OpenFile(NamedTuple):
    """A connection to a file, and its last time limit.

    `state` are the signatures of the file and of its write-ahead log when it was opened.
    """

    state: tuple[tuple[int, ...], tuple[int, ...]]
    timeout: float
    connection: sqlite3.Connection


class Driver(driver.TableDriver):
    """Runs queries that only read in SQLite databases; keeps the last 64 files open, and one database in memory.

    `settings` of a request is `{"path": absolute path}`, or `{"script": SQL}` for a database in memory. Next to a
    script there may be `rows`: lists of tuples by table.
    """

    def __init__(self) -> None:
        self._guard = Guard()
        self._open: OrderedDict[str, OpenFile] = OrderedDict()
        self._memory: tuple[str, sqlite3.Connection] | None = None  # the script that made it, and the database
        self._rows: Rows = {}  # that it has besides, in a transaction

    def run(self, settings: Settings, query: str, timeout: float) -> Answer:
        """Start `query` and return its answer, with escapes for text that is not UTF-8.

        Raises `Fault`, `Refused`, sqlite3's errors, or ValueError for text without a statement.
        """
        connection, statement = self._prepared(settings, query, timeout)
        connection.text_factory = str
        try:
            cursor = connection.execute(statement)
        except (sqlite3.ProgrammingError, sqlite3.Warning) as error:
            if SEVERAL in str(error):
                check_second(connection, statement)
                self._guard.refused = ""
            raise
        if cursor.description is None:
            raise ValueError("the text contains no statement")

        def fetch(count: int) -> list[Any] | None:
            try:
                return cursor.fetchmany(count)
            except sqlite3.OperationalError as error:
                if not str(error).startswith("Could not decode to UTF-8"):
                    raise
            # A Python factory from the start would double the time of all other queries.
            connection.text_factory = lenient
            cursor.execute(statement)
            return None

        return tuple(column[0] for column in cursor.description), fetch

    def _prepared(self, settings: Settings, query: str, timeout: float) -> tuple[sqlite3.Connection, str]:
        """Start the guard, and return the guarded connection for a query and the query without trailing semicolons.

        Raises `Fault`, and `Refused` for EXPLAIN.
        """
        self._guard.start(timeout)
        if "script" in settings:
            connection = self._in_memory(settings["script"], settings.get("rows") or {})
        else:
            connection = self._connection(settings["path"], timeout)
        if first_word(query) == "explain":  # which SQLite would answer, and other engines refuse
            raise Refused("only reading is allowed: EXPLAIN")
        if tables := {*PRAGMA_TABLE.findall(query)}:
            connection.set_authorizer(None)
            declare_pragma_tables(connection, tables)
            connection.set_authorizer(self._guard.authorize)
        return connection, strip_trailing_semicolons(query)

    def reads(self, settings: Settings, query: str, timeout: float) -> Answer:
        """Return the columns that a query reads, as rows of table, column and view.

        The view is the one whose definition reads the column, or "". A table of which no column is read has one row
        with an empty column. Columns that USING and NATURAL compare are not listed. Raises like `run`.
        """
        connection, statement = self._prepared(settings, query, timeout)
        for _ in range(2):  # the first one declares virtual tables
            self._guard.start(timeout)
            connection.set_authorizer(self._guard.authorize)  # so that a statement that is kept is prepared again
            connection.execute(f"EXPLAIN {statement}").close()
        rows = [(table, column, view or "") for table, column, _, view in self._guard.columns]
        return make_answer(("table", "column", "view"), rows)

    def describe(self, settings: Settings) -> Answer:
        """Return the columns of all tables and working views; raises `Fault` or sqlite3's errors."""
        connection = connect_plainly(settings["path"])
        rows = described(connection, connection.execute(TABLES).fetchall())
        return make_answer(("table", "column", "type", "to_table", "to_column"), rows)

    def ddl(self, settings: Settings) -> Answer:
        """Return the statements that create tables, views and then unique indexes, as they were written.

        Callers make scripts of them. Raises `Fault` if a definition is more than one statement: SQLite reads only the
        first, so that a file could hide others behind it. Also raises sqlite3's errors.
        """
        connection = connect_plainly(settings["path"])
        connection.text_factory = lenient
        rows = connection.execute(STATEMENTS).fetchall()
        with closing(sqlite3.connect(":memory:")) as empty_database:
            for (statement,) in rows:
                try:
                    empty_database.execute(f"EXPLAIN {statement}")
                except sqlite3.ProgrammingError as error:
                    raise Fault(f"the definition of a table is not one statement: {error}") from error
                except sqlite3.Error:
                    continue  # it does not run elsewhere
        return make_answer(("sql",), rows)

    def classify(self, error: Exception) -> Verdict:
        """Return the verdict on an error of another method.

        After a refused action, all connections are closed.
        """
        text = str(error)
        if isinstance(error, Fault):
            return "fault", text
        if isinstance(error, Refused):
            return "failure", "unsafe", text
        if not isinstance(error, sqlite3.Error | sqlite3.Warning | ValueError):
            return "fault", f"{type(error).__name__}: {text}"
        refused_action, self._guard.refused = self._guard.refused, ""
        if refused_action:
            # After a refused VACUUM, SQLite reads the schema again, where virtual tables would be refused.
            self._close_all()
            if refused_action == COMPUTED:
                name = text.removeprefix(UNDECLARED) if text.startswith(UNDECLARED) else COMPUTED
                return "failure", "unsafe", f"only tables of the database may be read: {name}"
            if refused_action.endswith(("sqlite_master", "sqlite_temp_master")):
                refused_action = "a change of the schema"
            return "failure", "unsafe", f"only reading is allowed: {refused_action}"
        if SEVERAL in text:
            return "failure", "unsafe", "more than one statement"
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
        verdict = VERDICTS.get(code) or VERDICTS.get(code & 0xFF, "invalid")
        if verdict == "timeout":
            text = ""
        text = QUOTED_TWICE.sub(r"near \1:", text)
        return ("fault", text) if verdict == "fault" else ("failure", verdict, text)

    def _close_all(self) -> None:
        for open_file in self._open.values():
            open_file.connection.close()
        if self._memory is not None:
            self._memory[1].close()
        self._open.clear()
        self._memory = None

    def _in_memory(self, script: str, rows: Rows) -> sqlite3.Connection:
        """Return a read-only connection to the in-memory database that a script and rows make.

        It replaces the in-memory database of another script; other rows replace those before. The script may come from
        an untrusted database: it reaches no file and is stopped with the query's time. Raises `Fault` if script or rows
        fail.
        """
        if self._memory is None or self._memory[0] != script:
            if self._memory is not None:
                self._memory[1].close()
                self._memory = None
            connection = sqlite3.connect(":memory:", isolation_level=None)
            try:
                connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)  # also for VACUUM INTO
                connection.set_progress_handler(self._guard.is_late, STEPS)
                connection.executescript(script)
                protect(connection, self._guard)
            except (sqlite3.Error, sqlite3.Warning, ValueError) as error:
                connection.close()
                raise Fault(str(error)) from error
            self._memory, self._rows = (script, connection), {}
        connection = self._memory[1]
        if rows != self._rows or connection.in_transaction != bool(rows):  # an error may have ended the transaction
            try:
                replace_rows(connection, rows, self._guard)
            except (sqlite3.Error, sqlite3.Warning, ValueError, OverflowError) as error:
                self._memory = None
                connection.close()
                raise Fault(str(error)) from error
            self._rows = rows
        return connection

    def _connection(self, path: str, timeout: float) -> sqlite3.Connection:
        try:
            state = (signature(path), signature(f"{path}-wal"))
            open_file = self._open.pop(path, None)
            if open_file and open_file.state != state:
                open_file.connection.close()
                open_file = None
            if open_file is None:
                open_file = OpenFile(state, timeout, connect(path, timeout, self._guard))
            elif open_file.timeout != timeout:
                open_file.connection.set_authorizer(None)
                open_file.connection.execute(f"PRAGMA busy_timeout = {int(lock_seconds(timeout) * 1000)}")
                open_file.connection.set_authorizer(self._guard.authorize)
            self._open[path] = open_file._replace(timeout=timeout)
        except OSError as error:
            raise Fault(error.strerror or str(error)) from error
        except sqlite3.Error as error:
            raise Fault(str(error)) from error
        if len(self._open) > CONNECTIONS:
            self._open.popitem(last=False)[1].connection.close()
        return self._open[path].connection


def check_second(connection: sqlite3.Connection, query: str) -> None:
    """Raise sqlite3's error if the text behind the first semicolon of a query is no statement; the text is not run."""
    second = [*split_at_semicolons(query), "", ""][1]
    try:
        connection.execute(second if first_word(second) == "explain" else f"EXPLAIN {second}").close()
    except sqlite3.Error as error:
        if NO_STATEMENT.search(str(error)):
            raise


def connect_plainly(path: str) -> sqlite3.Connection:
    """Return a read-only connection without a guard, for trusted queries; raises `Fault` or sqlite3's errors."""
    try:
        return sqlite3.connect(database_uri(path), uri=True, isolation_level=None)
    except OSError as error:
        raise Fault(error.strerror or str(error)) from error


def described(connection: sqlite3.Connection, tables: list[tuple[str]]) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of LIST_COLUMNS for each table. Views that do not work are left out: no query can use them."""
    for (name,) in tables:
        with suppress(sqlite3.OperationalError):
            yield from connection.execute(LIST_COLUMNS, {"name": name})


def connect(path: str, timeout: float, guard: Guard) -> sqlite3.Connection:
    """Return a guarded connection that can only read; raises `Fault`, OSError or sqlite3's errors."""
    connection = sqlite3.connect(database_uri(path), timeout=lock_seconds(timeout), uri=True, isolation_level=None)
    try:
        protect(connection, guard)
    except BaseException:
        connection.close()
        raise
    return connection


def lock_seconds(timeout: float) -> float:
    """Return the seconds to wait for a lock, 80 % of the timeout.

    So a locked database is reported as such, and not as a query that is late.
    """
    return timeout * 0.8


def protect(connection: sqlite3.Connection, guard: Guard) -> None:
    """Limit a connection to reading, to values of VALUE_BYTES bytes, and to the time of its guard, from now on."""
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, VALUE_BYTES)
    connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
    connection.execute("PRAGMA temp_store = MEMORY")
    connection.execute("PRAGMA query_only = ON")
    touch_virtual_tables(connection)
    connection.set_progress_handler(guard.is_late, STEPS)
    connection.set_authorizer(guard.authorize)


def replace_rows(connection: sqlite3.Connection, rows: Rows, guard: Guard) -> None:
    """Replace the rows that an open transaction inserted by other rows, in a new transaction that stays open.

    Without rows, no transaction stays open. Raises sqlite3's errors.
    """
    connection.set_authorizer(None)
    connection.execute("PRAGMA query_only = OFF")
    if connection.in_transaction:
        connection.execute("ROLLBACK")
    if rows:
        connection.execute("BEGIN")
    for table, table_rows in rows.items():
        if table_rows:
            values = ", ".join("?" * len(table_rows[0]))
            connection.executemany(f"INSERT INTO {quoted(table)} VALUES ({values})", table_rows)  # noqa: S608 - quoted
    connection.execute("PRAGMA query_only = ON")
    connection.set_authorizer(guard.authorize)


def database_uri(path: str) -> str:
    """Return the URI by which SQLite reads the file at `path` without creating files next to it.

    Raises `Fault` if the file is no SQLite database, or has a write-ahead log without a -shm file. Raises OSError if it
    cannot be read.
    """
    wal = signature(f"{path}-wal")
    header = read_header(path, HEADER_BYTES)
    if not header.startswith(MAGIC):
        raise Fault(wrong_file_problem("SQLite", header))
    name = path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    if header[18:20] != WAL_VERSIONS:
        return f"file://{name}?mode=ro"
    if not wal or wal[1] == 0:
        return f"file://{name}?mode=ro&immutable=1"
    if not signature(f"{path}-shm"):
        raise Fault("it has a -wal file without a -shm file: run PRAGMA wal_checkpoint(TRUNCATE)")
    return f"file://{name}?mode=ro&readonly_shm=1"


def touch_virtual_tables(connection: sqlite3.Connection) -> None:
    """Read from each virtual table once while there is no authorizer.

    The authorizer would refuse the statements by which SQLite prepares such a table. Modules that are missing are
    skipped.
    """
    virtual_tables = connection.execute("SELECT name FROM sqlite_master WHERE sql LIKE 'create virtual table%'")
    for name in ["json_each", "json_tree", "generate_series", *(name for (name,) in virtual_tables)]:
        with suppress(sqlite3.OperationalError):  # a module that this build lacks; queries of it will fail
            connection.execute(f"SELECT * FROM {quoted(name)} LIMIT 0").close()  # noqa: S608 - quoted


def declare_pragma_tables(connection: sqlite3.Connection, names: Iterable[str]) -> None:
    """Make SQLite declare the named pragma tables, so that the authorizer sees which of them a query reads.

    Call it while there is no authorizer. Names of no pragma are skipped.
    """
    for name in names:
        with suppress(sqlite3.OperationalError):  # there is none, or a table or a view, which has no arguments
            connection.execute(f"EXPLAIN SELECT * FROM {quoted(name)}()").close()  # noqa: S608 - quoted


def lenient(text: bytes) -> str:
    r"""Return bytes as UTF-8 text, with `\\x` escapes for bytes that are not UTF-8."""
    return text.decode("utf-8", "backslashreplace")
