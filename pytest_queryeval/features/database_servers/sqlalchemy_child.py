"""Any database with a dialect of SQLAlchemy, in a child process; the parent checks that a text is one query.

Loaded by `host_child.py`. The transaction is read-only where a recipe below makes it so, and is always rolled back.
"""

from __future__ import annotations

import logging
import math
import re
import sqlite3
import warnings
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple

import sqlalchemy
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.pool import NullPool

from pytest_queryeval.features.database_servers.databases import (
    CHECK_URL,
    COLUMNS,
    column_rows,
    redact,
    secrets_of,
    table_statements,
)
from pytest_queryeval.features.database_servers.snowflake_session import (
    check_session,
    is_snowflake_error,
    row_encoder,
    snowflake_verdict,
)
from pytest_queryeval.sandbox import driver
from pytest_queryeval.sandbox.cells import encode_rows
from pytest_queryeval.sandbox.driver import (
    HEADER_BYTES,
    Alarm,
    Answer,
    Fault,
    Settings,
    Verdict,
    make_answer,
    read_header,
    strip_trailing_semicolons,
    wrong_file_problem,
)

CONNECTIONS = 8
EARLY_SECONDS = 0.01  # by which the server's clock may be ahead of ours
STOP_SECONDS = 0.05  # after the server's own limit, where it has one
DESCRIBE_SECONDS = 60.0
IN_MEMORY_NAMES = ("", ":memory:")
SQLITE_MAGIC = b"SQLite format 3\0"


class Recipe(NamedTuple):
    """Commands that keep queries from writing."""

    connected: tuple[str, ...] = ()
    """For a new connection."""
    before: tuple[str, ...] = ()
    """Before each query; `{seconds}`, `{milliseconds}` and `{whole_seconds}` are its time limit."""
    after: tuple[str, ...] = ()
    """After each query."""


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


class Driver(driver.TableDriver):
    """Keeps the last 8 connections; `settings` of a request is `{"url": URL, "folder": where relative paths start}`."""

    def __init__(self) -> None:
        warnings.simplefilter("ignore")
        logging.disable()
        self._alarm = Alarm()
        self._connections: OrderedDict[str, sqlalchemy.Connection] = OrderedDict()
        self._settings: Settings = {"url": ""}
        self._unread_result: tuple[str, Any] | None = None
        self._deadline = 0.0

    def run(self, settings: Settings, query: str, timeout: float) -> Answer:
        """Start `query`; raises `Fault`, SQLAlchemy's errors, or ValueError for a query that gives no rows."""
        deadline = self._deadline = monotonic() + timeout
        self._alarm.clear()
        self._settings = settings
        # Some drivers read an answer to its end before the next query, even if its result no longer exists: so the
        # result is kept, and the connection closed.
        if self._unread_result and self._unread_result[0] in self._connections:
            self._drop(self._unread_result[0])
        self._unread_result = None
        connection = self._begin(timeout)
        stop = stop_of(connection.connection.driver_connection)
        self._alarm.set((timeout + STOP_SECONDS if recipe_of(connection).before else timeout, stop))
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
                end(connection)
            return encode(rows)

        return tuple(map(str, result.keys())), fetch

    def describe(self, settings: Settings) -> Answer:
        """List the columns of the tables and views of the default schema; raises like `run`."""
        return make_answer(COLUMNS, self._inspect(settings, column_rows))

    def ddl(self, settings: Settings) -> Answer:
        """List the statements that would make the tables and views of the default schema; raises like `run`."""
        return make_answer(("sql",), self._inspect(settings, table_statements))

    def classify(self, error: Exception) -> Verdict:
        """Return the verdict on an error; end the transaction, or close a connection that no longer works."""
        is_late = self._alarm.clear() > 0 or isinstance(error, TimeoutError)
        kind, text = ("timeout", "") if is_late else verdict(error)
        if kind == "timeout" and not is_late and monotonic() < self._deadline - EARLY_SECONDS:
            kind, text = "rejected", f"the query was ended from elsewhere: {text}"
        text = "" if kind == "timeout" else redact(text, secrets_of(self._settings["url"]))
        url = self._settings["url"]
        if url in self._connections:
            try:
                end(self._connections[url])
            except Exception:  # noqa: BLE001 - drivers raise errors of any type
                self._drop(url)
        return ("fault", text) if kind == "fault" else ("failure", kind, text)

    def _inspect(self, settings: Settings, inspect: Callable[[sqlalchemy.Connection], list[Any]]) -> list[Any]:
        self._settings = settings
        connection = self._begin(DESCRIBE_SECONDS)
        rows = inspect(connection)
        end(connection)
        return rows

    def _begin(self, seconds: float) -> sqlalchemy.Connection:
        """Begin a transaction on the connection, or on a new one if the server has ended it meanwhile."""
        url = self._settings["url"]
        if url in self._connections:
            with suppress(Exception):  # a new connection shows what is wrong
                begin(self._connections[url], seconds)
                self._connections.move_to_end(url)
                return self._connections[url]
            self._drop(url)
        try:
            connection = connect(**self._settings)
            run_commands(connection, recipe_of(connection).connected)
        except Fault:
            raise
        except Exception as error:
            raise Fault(f"{message_of(error)} {CHECK_URL}") from error
        self._connections[url] = connection
        begin(self._connections[url], seconds)
        if len(self._connections) > CONNECTIONS:
            self._drop(next(iter(self._connections)))
        return self._connections[url]

    def _drop(self, url: str) -> None:
        connection = self._connections.pop(url)
        with suppress(Exception):  # it is given up in any case
            connection.invalidate()
            connection.close()


def connect(url: str, folder: str) -> sqlalchemy.Connection:
    """Open a connection; files are opened read-only and never created. Raises `Fault` and the errors of the driver."""
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


def recipe_of(connection: sqlalchemy.Connection) -> Recipe:
    """Return the recipe for the database of a connection."""
    dialect = connection.dialect
    return RECIPES.get("mariadb" if getattr(dialect, "is_mariadb", False) else dialect.name, Recipe())


def begin(connection: sqlalchemy.Connection, seconds: float) -> None:
    """Start the transaction of a query; raises the errors of the driver."""
    connection.rollback()
    limits = {
        "seconds": f"{max(seconds, 0.001):.3f}",
        "milliseconds": max(1, round(1000 * seconds)),
        "whole_seconds": max(1, math.ceil(seconds)),
    }
    run_commands(connection, [text.format(**limits) for text in recipe_of(connection).before])


def end(connection: sqlalchemy.Connection) -> None:
    """End the transaction of a query; raises the errors of the driver."""
    run_commands(connection, recipe_of(connection).after)
    connection.rollback()


def run_commands(connection: sqlalchemy.Connection, texts: Any) -> None:
    """Run commands that give no rows."""
    for text in texts:
        connection.exec_driver_sql(text).close()


def stop_of(driver_connection: Any) -> Callable[[], object]:
    """Return the function of a driver that stops a query from another thread; it does nothing if there is none."""
    native_connection = getattr(getattr(driver_connection, "transport", None), "connection", None)  # of ClickHouse
    places = ((driver_connection, "interrupt"), (driver_connection, "cancel"), (native_connection, "send_cancel"))
    functions = (getattr(place, name, None) for place, name in places)
    return next((stop for stop in functions if callable(stop)), lambda: None)


def verdict(error: Exception) -> tuple[str, str]:
    """Return the kind of a failure, and its message; "fault" only for a file, or if the query was not sent."""
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
    """Return the driver's message, without the statement that SQLAlchemy adds."""
    cause = cause_of(error)
    if cause is None:
        return f"{type(error).__name__}: {error}"
    has_number = len(cause.args) == 2 and isinstance(cause.args[0], int)
    return STACK.sub("", str(cause.args[1] if has_number else cause))


def cause_of(error: Exception) -> BaseException | None:
    """Return the driver's error within one of SQLAlchemy, or of a dialect that has errors of its own."""
    is_wrapped = isinstance(error, DBAPIError) or type(error).__module__.startswith("clickhouse")
    return getattr(error, "orig", None) if is_wrapped else None
