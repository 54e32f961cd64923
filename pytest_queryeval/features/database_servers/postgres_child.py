"""The child process of PostgreSQL: read-only whatever the role may do, for untrusted queries.

Loaded by `host_child.py`. A query is declared as a cursor in a READ ONLY transaction that is always rolled back:
https://www.postgresql.org/docs/current/sql-declare.html
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Callable
from contextlib import suppress
from time import monotonic
from typing import Any

import psycopg
import sqlalchemy
from psycopg.pq import TransactionStatus
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import NullPool

from pytest_queryeval.features.database_servers.databases import (
    CHECK_URL,
    ServerDriver,
)
from pytest_queryeval.features.database_servers.postgres_values import register_loaders, text_of
from pytest_queryeval.sandbox.cells import encode_rows
from pytest_queryeval.sandbox.driver import (
    COMMANDS,
    Answer,
    Fault,
    Refused,
    Settings,
    first_word,
)

CURSOR = "queryeval"
CLIENT_CHECK_VERSION = 140_000  # the first version that can check during a query whether its client is still there
CHECK_MILLISECONDS = 1_000
CANCEL_SECONDS = 0.05  # after the server's own limit
CUT_SECONDS = 0.1  # after it, if a query cannot be cancelled, such as one of hundreds of megabytes
SQL_ASCII = "SQL_ASCII"  # an encoding in which the server keeps whatever bytes it is given
# Environment variables that change answers; those that name the server and the user stay.
SESSION_VARIABLES = ("PGOPTIONS", "PGCLIENTENCODING", "PGDATESTYLE", "PGTZ", "PGGEQO")
# The formats that the loaders read, whatever the database, the role or the URL prefer.
FORMATS = "SET DateStyle = ISO; SET IntervalStyle = postgres"
IDLE_SECONDS = 5.0  # after which the server ends the transaction of an answer that was not read to its end

# Volatile functions of the system that only read. All others are refused: a READ ONLY transaction does not prevent them
# from ending sessions, taking locks, reading the server's files, or running a text as SQL.
READING_FUNCTIONS = frozenset(
    (
        *("clock_timestamp", "current_query", "currval", "gen_random_uuid", "lastval", "random", "random_normal"),
        *("timeofday", "uuidv4", "uuidv7", "pg_sleep", "pg_sleep_for", "pg_sleep_until", "pg_is_in_recovery"),
        *("pg_database_size", "pg_indexes_size", "pg_relation_size", "pg_table_size", "pg_total_relation_size"),
    )
)
REFUSED_FUNCTIONS = """
    SELECT DISTINCT p.proname FROM pg_catalog.pg_proc p
    LEFT JOIN pg_catalog.pg_depend d ON d.classid = 'pg_catalog.pg_proc'::pg_catalog.regclass AND d.objid = p.oid
        AND d.deptype = 'e' AND d.refclassid = 'pg_catalog.pg_extension'::pg_catalog.regclass
    LEFT JOIN pg_catalog.pg_extension e ON e.oid = d.refobjid
    LEFT JOIN pg_catalog.pg_type t ON t.oid = p.prorettype
    WHERE (p.provolatile = 'v' AND (p.pronamespace = 'pg_catalog'::pg_catalog.regnamespace OR e.oid IS NOT NULL)
            OR e.extname IN ('dblink', 'tablefunc', 'xml2') AND 25 = ANY (p.proargtypes))
        AND t.typname !~ '(handler|trigger|internal)$'
"""
# Views of the system and of extensions, which may call such functions.
VIEWS = """
    SELECT c.relname, pg_catalog.pg_get_viewdef(c.oid) FROM pg_catalog.pg_class c
    LEFT JOIN pg_catalog.pg_depend d ON d.classid = 'pg_catalog.pg_class'::pg_catalog.regclass AND d.objid = c.oid
        AND d.deptype = 'e'
    WHERE c.relkind = 'v' AND (c.relnamespace = 'pg_catalog'::pg_catalog.regnamespace OR d.objid IS NOT NULL)
"""
# Passwords, which superusers may read.
PASSWORD_TABLES = frozenset(("pg_authid", "pg_shadow", "pg_subscription", "pg_user_mapping", "pg_user_mappings"))
_CALL = re.compile(r"([a-z_][a-z0-9_$]*)\(")
_WORD = re.compile(r"[a-z_][a-z0-9_$]*")
SYNTAX_ERROR, FEATURE_NOT_SUPPORTED = "42601", "0A000"
_WRITING_WORD = re.compile(r"\b(?:insert|delete|merge|update)\b", re.IGNORECASE)
_WRITE = re.compile(r"\b(?:insert\s+into|delete\s+from|merge\s+into|update\s+(?:\S+\s+){1,4}set)\b", re.IGNORECASE)

# By SQLSTATE, else by its class, else invalid. https://www.postgresql.org/docs/current/errcodes-appendix.html
# None of them proves a fault of the source, since a query can provoke each one: the parent probes after "rejected".
VERDICTS = {
    "57014": "timeout",  # query_canceled
    "25P04": "timeout",  # transaction_timeout
    "25006": "unsafe",  # read_only_sql_transaction
    "42501": "unsafe",  # insufficient_privilege
    "53": "too_large",  # insufficient resources
    "54000": "too_large",  # program_limit_exceeded, such as a text of more than a gigabyte
    "08": "rejected",  # connection exception
    "08P01": "invalid",  # protocol_violation: a placeholder without its value
    "28": "rejected",  # invalid authorization
    "40": "rejected",  # transaction rollback, on a standby
    "57": "rejected",  # operator intervention
    "58": "rejected",  # system error
    "XX001": "rejected",  # data_corrupted
    "XX002": "rejected",  # index_corrupted
}
# Functions of the server that refuse several statements, SELECT INTO, and a WITH that writes; messages are translated.
UNSAFE_PLACES = frozenset(("exec_parse_message", "transformDeclareCursorStmt", "transformSelectStmt"))


class Session:
    """A PostgreSQL connection with its transaction; `refused_names` are names that a query must not contain."""

    access = "READ ONLY"

    def __init__(self, url: str) -> None:
        parsed_url = sqlalchemy.make_url(url)
        words, options = parsed_url.get_dialect()().create_connect_args(parsed_url)
        options.setdefault("application_name", "pytest-queryeval")
        options["client_encoding"] = "UTF8"
        self.connection = psycopg.connect(*words, **{**options, "autocommit": True, "prepare_threshold": None})
        self.connection.execute(FORMATS.encode())
        self._lenient = self.connection.info.parameter_status("server_encoding") == SQL_ASCII
        register_loaders(self.connection, lenient=self._lenient)
        if self.connection.info.server_version >= CLIENT_CHECK_VERSION:
            with suppress(psycopg.Error):  # not on every system
                self.connection.execute(f"SET client_connection_check_interval = {CHECK_MILLISECONDS}")
        functions = frozenset(name for (name,) in self.connection.execute(REFUSED_FUNCTIONS)) - READING_FUNCTIONS
        views = (name for name, text in self.connection.execute(VIEWS) if functions.intersection(_CALL.findall(text)))
        self.refused_names = functions.union(views, PASSWORD_TABLES)

    def begin(self, seconds: float) -> None:
        """Start the transaction of a query that may take this many seconds; an open transaction is ended first."""
        if self.connection.info.transaction_status != TransactionStatus.IDLE:
            self.end()
        limit, idle = (max(1, round(1000 * time)) for time in (seconds, IDLE_SECONDS))
        self.connection.execute(
            f"BEGIN TRANSACTION {self.access}; SET LOCAL statement_timeout = {limit};"
            f"SET LOCAL idle_in_transaction_session_timeout = {idle}".encode()
        )

    def accept_any_bytes(self) -> None:
        """Accept bytes that are not UTF-8 until the transaction ends, if the database's encoding is SQL_ASCII."""
        if self._lenient:
            self.connection.execute(b"SET LOCAL client_encoding = SQL_ASCII")

    def cancel(self) -> None:
        """Ask the server to end the query; may be called from another thread."""
        self.connection.cancel_safe(timeout=CUT_SECONDS - CANCEL_SECONDS)

    def cut(self) -> None:
        """Shut the connection down, so that no read waits for the server, which ends the query when it can."""
        with socket.socket(fileno=os.dup(self.connection.fileno())) as connection:
            connection.shutdown(socket.SHUT_RDWR)

    def end(self) -> None:
        """Roll the transaction back, and release the advisory locks that outlive it."""
        self.connection.execute("ROLLBACK; SELECT pg_catalog.pg_advisory_unlock_all()")

    def close(self) -> None:
        """Close the connection."""
        self.connection.close()


class Driver(ServerDriver[Session]):
    """Runs queries on PostgreSQL; it keeps the last 8 connections.

    `settings` of a request are `{"url": a URL of postgresql+psycopg}`.
    """

    session_type: type[Session] = Session
    stops = 2  # the first alarm only asks the server to cancel

    def __init__(self) -> None:
        super().__init__()
        for name in SESSION_VARIABLES:
            os.environ.pop(name, None)
        self._query = ""

    def run(self, settings: Settings, query: str, timeout: float) -> Answer:
        """Start `query`, and return its columns and a function that fetches rows.

        The query is cancelled after `timeout` seconds. Raise `Fault`, `Refused`, psycopg's errors, or ValueError for a
        text that cannot be SQL.
        """
        session = self._start(settings, query, timeout, refuse)
        cursor = psycopg.ServerCursor(session.connection, CURSOR)
        cursor.execute(query.encode())
        result = cursor.pgresult
        names = tuple(text_of(result.fname(place) or b"") for place in range(result.nfields)) if result else ()
        session.accept_any_bytes()

        def fetch(count: int) -> list[Any]:
            rows = cursor.fetchmany(count)
            if len(rows) < count:
                self._alarm.clear()
                session.end()
            return encode_rows(rows)

        return names, fetch

    def _verdict(self, error: Exception) -> tuple[str, str]:
        return verdict(error, self._query)

    def _start(
        self, settings: Settings, query: str, timeout: float, check: Callable[[str, frozenset[str]], None]
    ) -> Session:
        """Begin the transaction of a query and set the alarms for its time; return the session.

        `check` raises `Refused` for a query that must not run.
        """
        began = monotonic()
        self._settings, self._query, self._deadline = settings, query, began + timeout
        self._alarm.clear()
        session = self._begin(timeout)
        check(query, session.refused_names)
        seconds_left = timeout - (monotonic() - began)
        self._alarm.set((seconds_left + CANCEL_SECONDS, session.cancel), (seconds_left + CUT_SECONDS, session.cut))
        return session

    def _inspect(self, settings: Settings, inspect: Callable[[sqlalchemy.Connection], list[Any]]) -> list[Any]:
        self._settings = settings
        try:
            with sqlalchemy.create_engine(self._url, poolclass=NullPool).connect() as connection:
                return inspect(connection)
        except SQLAlchemyError as error:
            raise Fault(str(getattr(error, "orig", None) or error) + f" {CHECK_URL}") from error

    def _open(self) -> Session:
        return self.session_type(self._url)


def refuse(query: str, functions: frozenset[str]) -> None:
    """Raise `Refused` for a command, or for a name among `functions`; raise ValueError for a NUL character."""
    word = first_word(query, is_nesting=True)
    if word in COMMANDS:
        raise Refused(word.upper())
    refuse_names(query, functions)


def refuse_names(query: str, functions: frozenset[str]) -> None:
    """Raise `Refused` if a text has one of the names in `functions` anywhere, or a name in U&"…".

    Raise ValueError for a NUL character.
    """
    if "\0" in query:
        raise ValueError("the text contains a NUL character")
    lower = query.lower()
    # Names count anywhere, also in a text, which another function may run. U& writes names by the codes of letters.
    refused_names = sorted(functions.intersection(_WORD.findall(lower))) + ['U&"'] * ('u&"' in lower)
    if refused_names:
        raise Refused(refused_names[0])


def verdict(error: Exception, query: str) -> tuple[str, str]:
    """Return the kind of the failure of `query` and its message; it is "fault" only if the query was not sent."""
    if isinstance(error, Fault):
        return "fault", str(error)
    if isinstance(error, Refused):
        return "unsafe", f"only reading is allowed: {error}"
    if isinstance(error, UnicodeDecodeError):
        return "rejected", f"the database sends text that is not UTF-8: {error}"
    if isinstance(error, ValueError):
        return "invalid", str(error)
    if not isinstance(error, psycopg.Error):
        return "rejected", f"{type(error).__name__}: {error}"
    state = error.sqlstate
    if not state:
        return ("too_large", "out of memory") if "out of memory" in str(error) else ("rejected", str(error))
    text = ". ".join(part for part in (error.diag.message_primary, error.diag.message_hint) if part)
    # Prose behind a query may contain words of writes: then the error is at another word.
    writes = _WRITE.search(query) and (
        state == FEATURE_NOT_SUPPORTED or (state == SYNTAX_ERROR and _WRITING_WORD.search(text))
    )
    if error.diag.source_function in UNSAFE_PLACES or writes:
        return "unsafe", f"only one query that reads is allowed: {text}"
    return VERDICTS.get(state) or VERDICTS.get(state[:2], "invalid"), text
