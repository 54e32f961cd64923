"""The child process of DuckDB, loaded by `host_child.py`: one SELECT at a time in databases that are only read.

A query is isolated from everything else, such as files and the environment.
"""

from __future__ import annotations

import ctypes
import os
import re
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import Any, TypeAlias

# Before DuckDB is imported: queries must not see the environment, and freed addresses, which are limited, are returned.
os.environ.clear()
os.environ["DUCKDB_JE_MALLOC_CONF"] = "retain:false"

import duckdb

from pytest_queryeval.sandbox import driver
from pytest_queryeval.sandbox.cells import encode_rows
from pytest_queryeval.sandbox.driver import (
    FILES_REFUSED,
    HEADER_BYTES,
    Alarm,
    Answer,
    Fault,
    Refused,
    Settings,
    Verdict,
    read_header,
    signature,
    wrong_file_problem,
)

M_ARENA_MAX = -8  # of malloc.h
DATABASES = 32
OPEN_BYTES = 512 * 2**20  # of files, which DuckDB may come to hold in memory
MAGIC = b"DUCK"
MAGIC_BYTES = slice(8, 12)  # behind a checksum
CONFIG: dict[str, str | bool | int | float | list[str]] = {
    "enable_external_access": "false",
    "autoload_known_extensions": "false",
    "autoinstall_known_extensions": "false",
    "allow_community_extensions": "false",
    "python_enable_replacements": "false",
    "temp_directory": "",
    "memory_limit": "1GB",
    "threads": "1",
}
if int(duckdb.__version__.partition(".")[0]) >= 2:
    CONFIG["async_threads"] = "1"
# Once the file is open: the time zone needs an extension that comes with DuckDB; after that no other file is read.
LOCK_STATEMENTS = (
    "SET GLOBAL TimeZone = 'UTC'",
    "SET disabled_filesystems = 'LocalFileSystem'",
    "SET lock_configuration = true",
)
# Functions within a query that change the file, the log or the profile, which the next query may read; that take
# pointers; or that run a text as SQL, which may call any of these.
FORBIDDEN_CALL = re.compile(
    r"\b(?:arrow_scan(?:_dumb)?|(?:force_)?checkpoint|(?:create|register|deregister|destroy)_external_resource(?:_type)?"
    r"|(?:en|dis)able_(?:logging|profiling)|json_execute_serialized_sql|nextval|setval|pandas_scan|python_arrow_scan"
    r"|python_map_function|query|truncate_duckdb_logs|write_log)\b",
    re.IGNORECASE,
)
CALL_IN_TREE = re.compile(r'"function_name":"(\w+)"')
UNICODE_SPACE = re.compile("[\u0085\u00a0\u1680\u180e\u2000-\u200f\u2028\u2029\u202f\u205f\u2060\u3000\ufeff]")
NAME = re.compile(r'"((?:[^"]|"")*)"|(\w+)')
STARTS_READING = re.compile(r"\(|(?:desc(?:ribe)?|from|pivot|select|summarize|with)\b", re.IGNORECASE)
DAMAGED = ("Corrupt database", "Could not read")
UNSAFE = ("read-only mode", "configuration has been locked")
QUOTATION = re.compile(r"\n+LINE \d+:")
LIST_COLUMNS = """
    WITH key AS (
        SELECT schema_name, table_name, constraint_index, referenced_table,
            unnest(constraint_column_names) AS column_name, unnest(referenced_column_names) AS referenced_column
        FROM duckdb_constraints()
        WHERE constraint_type = 'FOREIGN KEY' AND database_name = current_database()
    )
    SELECT table_name, column_name, data_type, referenced_table, referenced_column
    FROM duckdb_columns() LEFT JOIN key USING (schema_name, table_name, column_name)
    WHERE database_name = current_database() AND NOT internal
    QUALIFY dense_rank() OVER (PARTITION BY lower(table_name) ORDER BY schema_name <> 'main', schema_name) = 1
    ORDER BY schema_name <> 'main', table_oid, column_index, constraint_index
"""

STATEMENTS = """
    WITH made AS (
        SELECT schema_name, table_name AS name, sql, 0 AS place FROM duckdb_tables()
        WHERE database_name = current_database() AND NOT internal AND NOT temporary
        UNION ALL
        SELECT schema_name, view_name, sql, 0 FROM duckdb_views()
        WHERE database_name = current_database() AND NOT internal AND NOT temporary
        UNION ALL
        SELECT schema_name, '', 'CREATE SCHEMA "' || replace(schema_name, '"', '""') || '"', 0 FROM duckdb_schemas()
        WHERE database_name = current_database() AND NOT internal AND schema_name <> 'main'
        UNION ALL
        SELECT schema_name, index_name, sql, 1 FROM duckdb_indexes()
        WHERE database_name = current_database() AND is_unique
    )
    SELECT sql FROM made ORDER BY place, schema_name <> 'main', schema_name, lower(name), name
"""

State: TypeAlias = tuple[tuple[int, ...], tuple[int, ...]]  # signatures of the file and of its write-ahead log


class Driver(driver.TableDriver):
    """Runs queries in DuckDB; it keeps the last 32 files open, and one database in memory.

    `settings` of a request are `{"path": absolute path}`, or `{"script": SQL}` for a database in memory.
    """

    def __init__(self) -> None:
        # Else each thread of DuckDB reserves addresses; C libraries other than glibc do not have this function.
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).mallopt(M_ARENA_MAX, 1)
        self._alarm = Alarm()
        self._open: OrderedDict[str, tuple[State, duckdb.DuckDBPyConnection]] = OrderedDict()
        self._session: duckdb.DuckDBPyConnection | None = None
        self._memory: duckdb.DuckDBPyConnection | None = None
        self._script: str | None = None  # the one that made the database in memory

    def run(self, settings: Settings, query: str, timeout: float) -> Answer:
        """Start `query` and return its columns and a function that fetches rows.

        The query is interrupted after `timeout` seconds. Raise `Fault`, `Refused`, DuckDB's errors, or ValueError for a
        text without a statement.
        """
        session = self._new_session(settings)
        self._alarm.set((timeout, session.interrupt))
        return self._start(session, statement_of(session, query))

    def describe(self, settings: Settings) -> Answer:
        """Return an answer with a row for each column of all tables and views; raise the errors of `run`.

        If tables in several schemas have the same name, only the one in the schema main, or else in the first schema,
        is listed.
        """
        return self._start(self._new_session(settings), LIST_COLUMNS)

    def ddl(self, settings: Settings) -> Answer:
        """Return an answer with the statements that make the schemas, tables and views, then unique indexes.

        Those of the schema main come first. Raise the errors of `run`.
        """
        return self._start(self._new_session(settings), STATEMENTS)

    def classify(self, error: Exception) -> Verdict:
        """Return the verdict on an error of `run`: whether the query or the database is at fault, and its message.

        After an error of memory or a fatal error, all databases are closed.
        """
        text = QUOTATION.split(str(error), maxsplit=1)[0]
        match error:
            case Fault():
                return "fault", text
            case duckdb.Error() if text.removeprefix("IO Error: ").startswith(DAMAGED):
                return "fault", text
            case duckdb.PermissionException() if "LocalFileSystem" in text:
                return "failure", "unsafe", FILES_REFUSED
            case Refused() | duckdb.PermissionException():
                return "failure", "unsafe", text
            case duckdb.InterruptException():
                return "failure", "timeout", ""
            case duckdb.OutOfMemoryException():
                self._close_all()  # the next query may need the memory that they hold
                return "failure", "too_large", text
            case duckdb.FatalException() | duckdb.InternalException():
                self._close_all()  # they no longer answer
                return "failure", "invalid", text
            case duckdb.Error() if any(words in text for words in UNSAFE):
                return "failure", "unsafe", text
            # Python cannot hold some values, such as intervals of a million years, or deeply nested lists.
            case duckdb.Error() | ValueError() | OverflowError() | IndexError() | RecursionError():
                return "failure", "invalid", text
        return "fault", f"{type(error).__name__}: {text}"

    def _start(self, session: duckdb.DuckDBPyConnection, statement: Any) -> Answer:
        session.execute(statement)

        def fetch(count: int) -> list[Any]:
            return encode_rows(session.fetchmany(count))

        return tuple(column[0] for column in session.description or ()), fetch

    def _new_session(self, settings: Settings) -> duckdb.DuckDBPyConnection:
        """Close the last query's connection, and return a new one to the database of `settings`.

        So nothing of the last query remains, such as temporary types. Raise `Fault` if the database cannot be opened.
        """
        self._end_session()
        try:
            if "script" in settings:
                self._session = self._in_memory(settings["script"])
            else:
                self._session = self._database(settings["path"]).cursor()
        except OSError as error:
            raise Fault(error.strerror or str(error)) from error
        except duckdb.Error as error:
            raise Fault(str(error).removeprefix("IO Error: ")) from error
        return self._session

    def _database(self, path: str) -> duckdb.DuckDBPyConnection:
        state = (signature(path), signature(f"{path}.wal"))
        open_file = self._open.pop(path, None)
        if open_file and open_file[0] != state:
            open_file[1].close()  # first: while it is open, the same path gives the same database again
            open_file = None
        self._open[path] = open_file or (state, connect(path))
        while len(self._open) > 1 and (
            len(self._open) > DATABASES or sum(file[1] for (file, _), _ in self._open.values()) > OPEN_BYTES
        ):
            self._open.popitem(last=False)[1][1].close()
        return self._open[path][1]

    def _in_memory(self, script: str) -> duckdb.DuckDBPyConnection:
        """Return a connection that only reads the database in memory made by `script`.

        The database of another script is replaced. A new database in the existing instance takes a tenth of the time of
        a new instance.
        """
        self._memory = self._memory or isolate_connection(duckdb.connect(":memory:", config=CONFIG))
        if script != self._script:
            self._script = None
            self._memory.execute("DETACH DATABASE IF EXISTS built")
            self._memory.execute("ATTACH ':memory:' AS built")
            with self._memory.cursor() as cursor:
                cursor.execute(f"USE built;\n{script}")
            self._script = script
        session = self._memory.cursor()
        session.execute("USE built; BEGIN TRANSACTION READ ONLY")
        return session

    def _end_session(self) -> None:
        if self._session:
            self._session.close()
            self._session = None

    def _close_all(self) -> None:
        self._end_session()
        while self._open:
            self._open.popitem()[1][1].close()
        if self._memory:
            self._memory.close()
            self._memory = self._script = None


def statement_of(session: duckdb.DuckDBPyConnection, query: str) -> Any:
    """Return the only statement of `query`, or for a reading PIVOT its text.

    Raise `Refused` unless it is a single statement that only reads, ValueError if there is none, and DuckDB's errors.
    """
    statements = statements_of(session, query, "only reading is allowed: ")
    kinds = [*map(kind_of, statements)]
    if kinds == ["SELECT"]:
        return statements[0]
    if is_reading_pivot(statements, query):
        return query
    if len([statement for statement in statements if text_of(statement)]) > 1:
        raise Refused("more than one statement")
    is_around_pivot = kinds == ["MULTI"] or len(statements) > 1
    kind = "a statement around a PIVOT" if is_around_pivot else kinds[0].replace("_", " ")
    raise Refused(f"only reading is allowed: {kind}")


def statements_of(
    session: duckdb.DuckDBPyConnection, query: str, refused: str = "", *, allowed: frozenset[str] = frozenset()
) -> list[duckdb.Statement]:
    """Return the statements of a text, of which there is at least one.

    Raise `Refused` if the text calls a function that does more than read and is not `allowed`; the message is `refused`
    and the function. Raise ValueError for a text without a statement or that is no Unicode text, and DuckDB's errors.
    """
    if "\0" in query:
        raise ValueError("the text contains a NUL character")
    query.encode()  # raises ValueError for a lone surrogate, where DuckDB raises TypeError
    statements = session.extract_statements(query)
    if function := changing_call(session, query, allowed):
        raise Refused(f"{refused}{function}()")
    if not statements:
        raise ValueError("the text contains no statement")
    return statements


def is_reading_pivot(statements: Sequence[duckdb.Statement], query: str) -> bool:
    """Return whether the statements are one query with a PIVOT without IN, which DuckDB splits into several statements.

    DuckDB 2 returns a single statement of the kind MULTI. Earlier versions return CREATE statements for types, then a
    SELECT, all without a text of their own. Other statements with a PIVOT look the same, so the first word has to begin
    a query as well.
    """
    *created, last = statements
    if kind_of(last) == "MULTI":
        return not created and begins_reading(last.query)
    is_made_by_duckdb = bool(created) and not any(map(text_of, statements))
    return (
        is_made_by_duckdb
        and [*map(kind_of, statements)] == ["CREATE"] * len(created) + ["SELECT"]
        and begins_reading(query)
    )


def begins_reading(text: str) -> bool:
    """Return whether the first word of a text, after comments, begins a query, such as SELECT or WITH."""
    first_token = next((token for token in tokens_of(text.lstrip()) if not token.startswith(";")), "")
    return STARTS_READING.match(first_token) is not None


def text_of(statement: duckdb.Statement) -> str:
    """Return the text of a statement; empty if DuckDB made the statement itself."""
    with suppress(IndexError):  # which DuckDB raises for such a statement behind other text
        return statement.query
    return ""


def kind_of(statement: duckdb.Statement) -> str:
    """Return the kind of a statement, such as INSERT."""
    return str(statement.type).rpartition(".")[2]


def changing_call(session: duckdb.DuckDBPyConnection, query: str, allowed: frozenset[str]) -> str:
    """Return the name of a called function that does more than read and is not `allowed`; empty if there is none."""
    calls = called_functions(session, query) if FORBIDDEN_CALL.search(query) else ()
    return next((call for call in calls if FORBIDDEN_CALL.fullmatch(call) and call.lower() not in allowed), "")


def called_functions(session: duckdb.DuckDBPyConnection, query: str) -> Iterator[str]:
    """Yield the names of the functions that a text calls or may call.

    DuckDB's parser takes some characters for spaces that are letters for its tokenizer. In a text with such characters,
    only the parser's tree shows the calls. DuckDB gives the tree only for a SELECT; in any other text every forbidden
    name counts as a call.
    """
    if UNICODE_SPACE.search(query):
        row = session.execute("SELECT json_serialize_sql(?)", [query]).fetchone()
        tree = row[0] if row else ""
        yield from CALL_IN_TREE.findall(tree) if '"error":false' in tree else FORBIDDEN_CALL.findall(query)
        return
    for token, next_token in pairwise(tokens_of(query)):
        name = NAME.match(token) if next_token.startswith("(") else None
        if name:
            yield name[1] or name[2] or ""


def tokens_of(query: str) -> list[str]:
    """Return the tokens of a text with the white space after them, without comments and string literals."""
    text = query.encode()  # DuckDB counts bytes
    token_starts = [*duckdb.tokenize(query), (len(text), None)]
    return [
        text[start:end].decode()
        for (start, kind), (end, _) in pairwise(token_starts)
        if kind not in (duckdb.token_type.comment, duckdb.token_type.string_const)
    ]


def connect(path: str) -> duckdb.DuckDBPyConnection:
    """Open a database file read-only and isolated; raise `Fault` if it is none, OSError, or DuckDB's errors."""
    check_header(path)
    return isolate_connection(duckdb.connect(path, read_only=True, config=CONFIG))


def check_header(path: str) -> None:
    """Raise `Fault` unless a file begins like a DuckDB database; raise OSError if it cannot be read."""
    header = read_header(path, HEADER_BYTES)
    if header[MAGIC_BYTES] != MAGIC:
        raise Fault(wrong_file_problem("DuckDB", header))


def isolate_connection(connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    """Set a connection to UTC, take its access to files away, lock its settings, and return it; raise DuckDB's errors.

    If that fails, the connection is closed.
    """
    try:
        for statement in LOCK_STATEMENTS:
            connection.execute(statement)
    except BaseException:
        connection.close()
        raise
    return connection
