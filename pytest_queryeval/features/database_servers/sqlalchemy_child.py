"""The child process of all other databases with a SQLAlchemy dialect; the parent checks that a text is one query.

Loaded by `host_child.py`. The transaction is read-only if a recipe of this module makes it so, and is always rolled
back.
"""

from __future__ import annotations

import logging
import math
import re
import sqlite3
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple

import sqlalchemy
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.pool import NullPool

from pytest_queryeval.features.database_servers.databases import (
    ServerDriver,
)
from pytest_queryeval.features.database_servers.snowflake_session import (
    check_session,
    is_snowflake_error,
    row_encoder,
    snowflake_verdict,
)
from pytest_queryeval.sandbox.cells import encode_rows
from pytest_queryeval.sandbox.driver import (
    HEADER_BYTES,
    Answer,
    Fault,
    Settings,
    read_header,
    strip_trailing_semicolons,
    wrong_file_problem,
)

STOP_SECONDS = 0.05  # after the server's own limit, where it has one
DESCRIBE_SECONDS = 60.0
IN_MEMORY_NAMES = ("", ":memory:")
SQLITE_MAGIC = b"SQLite format 3\0"


class Recipe(NamedTuple):
    """Commands that keep queries from writing and limit their time."""

    connected: tuple[str, ...] = ()
    """Commands for a new connection."""
    before: tuple[str, ...] = ()
    """Commands before a query; `{seconds}`, `{milliseconds}` and `{whole_seconds}` are replaced by its time limit."""
    after: tuple[str, ...] = ()
    """Commands after each query."""


MYSQL = Recipe(
    ("SET SESSION TRANSACTION READ ONLY",),
    ("SET SESSION max_execution_time = {milliseconds}", "START TRANSACTION READ ONLY"),
    ("ROLLBACK", "DO RELEASE_ALL_LOCKS()"),
)
RECIPES = {
    "mysql": MYSQL,
    "mariadb": MYSQL._replace(
        before=("SET SESSION max_statement_time = {seconds}", "START TRANSACTION READ ONLY"),
        after=("ROLLBACK",),
    ),
    "snowflake": Recipe(
        ("ALTER SESSION SET MULTI_STATEMENT_COUNT = 1",),
        ("ALTER SESSION SET STATEMENT_TIMEOUT_IN_SECONDS = {whole_seconds}",),
    ),
    "sqlite": Recipe(("PRAGMA query_only = ON",)),
    "trino": Recipe(before=("SET SESSION query_max_run_time = '{milliseconds}ms'",)),
}
DUCKDB = {"enable_external_access": "false", "lock_configuration": "true"}
# By the error number of the drivers of MySQL and MariaDB; all others are invalid, also that of an unknown database,
# which a query may name. After "rejected" the parent finds out whether the source or the query is at fault.
MYSQL_VERDICTS = {
    **dict.fromkeys((1317, 1969, 3024), "timeout"),
    **dict.fromkeys((1044, 1142, 1143, 1227, 1290, 1370, 1792, 1836), "unsafe"),
    **dict.fromkeys((1021, 1037, 1038, 1041, 1114, 1153, 1301), "too_large"),
    **dict.fromkeys((1040, 1045, 1053, 1129, 1130, 1194, 1205, 1213, 2002, 2003, 2006, 2013, 2055), "rejected"),
}
# By the code in the messages of ClickHouse; others are invalid.
CLICKHOUSE_VERDICTS = {
    **dict.fromkeys((159, 160, 394), "timeout"),
    **dict.fromkeys((164, 291, 446, 497), "unsafe"),
    **dict.fromkeys((158, 241, 307, 396), "too_large"),
    **dict.fromkeys((192, 193, 194, 195, 202, 209, 210, 516), "rejected"),
}
CLICKHOUSE_CODE = re.compile(r"\bCode: (\d+)")
STACK = re.compile(r"[,.]* (?:Stack trace:|e\.what\(\) =).*", re.DOTALL)
SQLITE_FAULTS = ("BUSY", "CANTOPEN", "CORRUPT", "IOERR", "LOCKED", "NOTADB", "PERM", "PROTOCOL")


class Session:
    """A connection with its transaction; a new connection runs the first commands of its recipe."""

    def __init__(self, connection: sqlalchemy.Connection) -> None:
        self.connection = connection
        dialect = connection.dialect
        self.recipe = RECIPES.get("mariadb" if getattr(dialect, "is_mariadb", False) else dialect.name, Recipe())
        self._run(self.recipe.connected)

    def begin(self, seconds: float) -> None:
        """Start the transaction of a query that may take this many seconds; raise the errors of the driver."""
        self.connection.rollback()
        limits = {
            "seconds": f"{max(seconds, 0.001):.3f}",
            "milliseconds": max(1, round(1000 * seconds)),
            "whole_seconds": max(1, math.ceil(seconds)),
        }
        self._run([text.format(**limits) for text in self.recipe.before])

    def end(self) -> None:
        """Roll back the transaction of a query; raise the errors of the driver."""
        self._run(self.recipe.after)
        self.connection.rollback()

    def close(self) -> None:
        """Close the connection."""
        self.connection.invalidate()
        self.connection.close()

    def _run(self, texts: Sequence[str]) -> None:
        for text in texts:
            self.connection.exec_driver_sql(text).close()


class Driver(ServerDriver[Session]):
    """Runs queries by SQLAlchemy; it keeps the last 8 connections.

    `settings` of a request are `{"url": URL, "folder": the folder of relative paths}`.
    """

    def __init__(self) -> None:
        super().__init__()
        logging.disable()
        self._unread_result: tuple[str, Any] | None = None

    def run(self, settings: Settings, query: str, timeout: float) -> Answer:
        """Start `query`, and return its columns and a function that fetches rows.

        Fetching raises TimeoutError after the time limit. Raise `Fault`, SQLAlchemy's errors, or ValueError for a query
        that returns no rows.
        """
        deadline = self._deadline = monotonic() + timeout
        self._alarm.clear()
        self._settings = settings
        # Some drivers read an answer to its end before the next query, even if its result no longer exists: so the
        # result is kept, and the connection closed.
        if self._unread_result and self._unread_result[0] in self._sessions:
            self._drop(self._unread_result[0])
        self._unread_result = None
        session = self._begin(timeout)
        connection = session.connection
        stop = stop_of(connection.connection.driver_connection)
        self._alarm.set((timeout + STOP_SECONDS if session.recipe.before else timeout, stop))
        # Without parameters the drivers leave a % of the text alone.
        options = {"stream_results": True, "no_parameters": True}
        # In some databases these characters begin or end texts and comments, in others they do not.
        is_plain = not any(mark in query for mark in "\\#$")
        statement = strip_trailing_semicolons(query) if is_plain else query.rstrip("; \t\r\n\f")
        result = connection.exec_driver_sql(statement, execution_options=options)
        if not result.returns_rows:
            raise ValueError("the query gives no rows")

        self._unread_result = settings["url"], result
        encode = row_encoder(result.cursor.description) if connection.dialect.name == "snowflake" else encode_rows

        def fetch(count: int) -> list[Any]:
            rows = result.fetchmany(count)
            if monotonic() > deadline:  # a function that the limit ended may return a value nevertheless
                raise TimeoutError
            if len(rows) < count:
                self._unread_result = None
                self._alarm.clear()
                session.end()
            return encode(rows)

        return tuple(map(str, result.keys())), fetch

    def _inspect(self, settings: Settings, inspect: Callable[[sqlalchemy.Connection], list[Any]]) -> list[Any]:
        self._settings = settings
        session = self._begin(DESCRIBE_SECONDS)
        rows = inspect(session.connection)
        session.end()
        return rows

    def _open(self) -> Session:
        return Session(connect(**self._settings))

    def _verdict(self, error: Exception) -> tuple[str, str]:
        return verdict(error)

    def _message(self, error: Exception) -> str:
        return message_of(error)


def connect(url: str, folder: str) -> sqlalchemy.Connection:
    """Return a new connection; database files are opened read-only and never created.

    Raise `Fault` for a file that does not exist or is none of SQLite, and the errors of the driver.
    """
    parsed_url = sqlalchemy.make_url(url)
    name = parsed_url.get_backend_name()
    if name in ("sqlite", "duckdb") and parsed_url.database and parsed_url.database not in IN_MEMORY_NAMES:
        path = Path(folder, parsed_url.database)
        if not path.exists():
            raise Fault(f"{path}: no such file: correct the path in the URL")
        if name == "sqlite":
            header = read_header(str(path), HEADER_BYTES)
            if not header.startswith(SQLITE_MAGIC):
                raise Fault(f"{path}: {wrong_file_problem('SQLite', header)}")
            creator = partial(sqlite3.connect, f"{path.as_uri()}?mode=ro", uri=True)
            return sqlalchemy.create_engine("sqlite://", creator=creator, poolclass=NullPool).connect()
        options = {"connect_args": {"read_only": True, "config": DUCKDB}}
        return sqlalchemy.create_engine(parsed_url.set(database=str(path)), poolclass=NullPool, **options).connect()
    connection = sqlalchemy.create_engine(parsed_url, poolclass=NullPool).connect()
    if name == "snowflake":
        check_session(connection, parsed_url)
    return connection


def stop_of(driver_connection: Any) -> Callable[[], object]:
    """Return the driver's function that stops a query from another thread; a function without effect if it has none."""
    native_connection = getattr(getattr(driver_connection, "transport", None), "connection", None)  # of ClickHouse
    places = ((driver_connection, "interrupt"), (driver_connection, "cancel"), (native_connection, "send_cancel"))
    functions = (getattr(place, name, None) for place, name in places)
    return next((stop for stop in functions if callable(stop)), lambda: None)


def verdict(error: Exception) -> tuple[str, str]:
    """Return the kind of a failure and its message.

    The kind is "fault" only for a problem with a file, or if the query was not sent.
    """
    if isinstance(error, Fault):
        return "fault", str(error)
    if isinstance(error, ValueError):
        return "invalid", str(error)
    cause = cause_of(error)
    if type(cause).__module__.startswith("clickhouse"):
        code = CLICKHOUSE_CODE.search(str(cause))
        return CLICKHOUSE_VERDICTS.get(int(code[1]) if code else 0, "invalid"), message_of(error)
    if is_snowflake_error(cause):
        return snowflake_verdict(cause)
    if not isinstance(error, DBAPIError):
        return ("rejected" if not isinstance(error, SQLAlchemyError) else "invalid"), message_of(error)
    name = getattr(cause, "sqlite_errorname", "").removeprefix("SQLITE_")
    if name.startswith(SQLITE_FAULTS):
        return "fault", message_of(error)
    if error.connection_invalidated:
        return "rejected", message_of(error)
    if name:
        return {"READONLY": "unsafe", "TOOBIG": "too_large", "NOMEM": "too_large"}.get(name, "invalid"), message_of(
            error
        )
    code = cause.args[0] if cause and cause.args else None
    return MYSQL_VERDICTS.get(code if isinstance(code, int) else 0, "invalid"), message_of(error)


def message_of(error: Exception) -> str:
    """Return the driver's message without the statement that SQLAlchemy adds, an error number, or a stack trace."""
    cause = cause_of(error)
    if cause is None:
        return f"{type(error).__name__}: {error}"
    has_number = len(cause.args) == 2 and isinstance(cause.args[0], int)
    return STACK.sub("", str(cause.args[1] if has_number else cause))


def cause_of(error: Exception) -> BaseException | None:
    """Return the driver's error within an error of SQLAlchemy or of ClickHouse's dialect; None for any other error."""
    is_wrapped = isinstance(error, DBAPIError) or type(error).__module__.startswith("clickhouse")
    return getattr(error, "orig", None) if is_wrapped else None
