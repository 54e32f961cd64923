"""Functions for the child processes of databases: secrets in URLs, JSON in cells, and definitions of tables.

URLs are those of SQLAlchemy: https://docs.sqlalchemy.org/en/20/core/engines.html
"""

from __future__ import annotations

import json
import re
import warnings
from abc import abstractmethod
from collections import OrderedDict, defaultdict
from collections.abc import Callable
from contextlib import suppress
from decimal import Decimal
from time import monotonic
from typing import Any, Generic, Protocol, TypeVar
from urllib.parse import quote, quote_plus, unquote, unquote_plus

import sqlalchemy
from sqlalchemy.engine.reflection import ObjectKind
from sqlalchemy.exc import CompileError
from sqlalchemy.types import NullType, TypeEngine

from pytest_queryeval.core.db_schema import ColumnDefinition, ForeignKey, TableDefinition, create_table
from pytest_queryeval.sandbox import driver
from pytest_queryeval.sandbox.driver import Alarm, Answer, Fault, Settings, Verdict, make_answer

# Follows the message of a driver that cannot connect.
CHECK_URL = "(check server, user, password and database of the URL)"
COLUMNS = ("table", "column", "type", "to_table", "to_column")
CONNECTIONS = 8
EARLY_SECONDS = 0.01  # by which the server's clock may be ahead of ours
MIN_CHARACTERS = 6  # a shorter secret is replaced only where it is a whole word
_USER_INFO = re.compile(r"^[^:/?#]+://([^:/]*):(.*)@", re.DOTALL)
_PARAMETER = re.compile(r"[?&]([^=&#]*)=([^&#]*)")
_SECRET_NAME = re.compile(r"pass|pwd|secret|token|key|auth|cred", re.IGNORECASE)
_MAX_DIGITS = 10_000


class ServerSession(Protocol):
    """A connection to a server with its transaction; its methods raise the errors of the driver."""

    def begin(self, seconds: float) -> None:
        """Start the transaction of a query that may take this many seconds."""

    def end(self) -> None:
        """End the transaction of a query."""

    def close(self) -> None:
        """Close the connection."""


S = TypeVar("S", bound=ServerSession)


class ServerDriver(driver.TableDriver, Generic[S]):
    """Runs queries on database servers; it keeps the last 8 sessions by the `url` of their settings."""

    stops = 1
    """The number of alarms that must have gone off for a query to count as late."""

    def __init__(self) -> None:
        warnings.simplefilter("ignore")
        self._alarm = Alarm()
        self._sessions: OrderedDict[str, S] = OrderedDict()
        self._settings: Settings = {"url": ""}
        self._deadline = 0.0

    def describe(self, settings: Settings) -> Answer:
        """Return an answer with a row for each column of the default schema's tables and views.

        Raise `Fault` or the errors of the driver.
        """
        return make_answer(COLUMNS, self._inspect(settings, column_rows))

    def ddl(self, settings: Settings) -> Answer:
        """Return an answer with the CREATE TABLE statement of each table and view of the default schema.

        Raise `Fault` or the errors of the driver.
        """
        return make_answer(("sql",), self._inspect(settings, table_statements))

    def classify(self, error: Exception) -> Verdict:
        """Return the verdict on an error of a query, with secrets of the URL removed from its message.

        The transaction is ended. A connection that no longer works is closed. An early timeout of the server counts as
        rejected.
        """
        is_late = self._alarm.clear() >= self.stops or isinstance(error, TimeoutError)
        kind, text = ("timeout", "") if is_late else self._verdict(error)
        if kind == "timeout" and not is_late and monotonic() < self._deadline - EARLY_SECONDS:
            kind, text = "rejected", f"the query was ended from elsewhere: {text}"
        text = "" if kind == "timeout" else redact(text, secrets_of(self._url))
        if self._url in self._sessions:
            try:
                self._sessions[self._url].end()
            except Exception:  # noqa: BLE001 - drivers raise errors of any type
                self._drop(self._url)
        return ("fault", text) if kind == "fault" else ("failure", kind, text)

    @abstractmethod
    def _inspect(self, settings: Settings, inspect: Callable[[sqlalchemy.Connection], list[Any]]) -> list[Any]:
        """Return what `inspect` returns for a connection to the database; raise `Fault` or the errors of the driver."""

    @abstractmethod
    def _open(self) -> S:
        """Return a new session; raise `Fault` or errors of the driver."""

    @abstractmethod
    def _verdict(self, error: Exception) -> tuple[str, str]:
        """Return the kind of a failure and its message.

        The kind is "fault" only for a problem with a file, or if the query was not sent.
        """

    def _message(self, error: Exception) -> str:
        return str(error)

    @property
    def _url(self) -> str:
        url: str = self._settings["url"]
        return url

    def _begin(self, seconds: float) -> S:
        """Begin a transaction in the kept session, or in a new session if the server has ended it; return the session.

        Raise `Fault` if there is no connection. The least recently used session beyond CONNECTIONS is closed.
        """
        if self._url in self._sessions:
            with suppress(Exception):  # a new connection shows what is wrong
                self._sessions[self._url].begin(seconds)
                self._sessions.move_to_end(self._url)
                return self._sessions[self._url]
            self._drop(self._url)
        try:
            session = self._sessions[self._url] = self._open()
            session.begin(seconds)
        except Fault:
            raise
        except Exception as error:
            raise Fault(f"{self._message(error)} {CHECK_URL}") from error
        if len(self._sessions) > CONNECTIONS:
            self._drop(next(iter(self._sessions)))
        return session

    def _drop(self, url: str) -> None:
        with suppress(Exception):  # it is given up in any case
            self._sessions.pop(url).close()


def secrets_of(url: str) -> tuple[str, ...]:
    """Return the secrets of a URL in all encodings, the longest first: the URL, its password, its secret parameters."""
    user_info = _USER_INFO.match(url)
    texts = [url, user_info[2] if user_info else ""]
    texts += [value for name, value in _PARAMETER.findall(url) if _SECRET_NAME.search(name)]
    parts = {part for text in texts for part in (text, unquote(text), unquote_plus(text)) if part}
    forms = {form for part in parts for form in (part, quote(part), quote(part, safe=""), quote_plus(part), repr(part))}
    return tuple(sorted(forms, key=len, reverse=True))


def redact(text: str, secrets: tuple[str, ...]) -> str:
    """Return a text with an ellipsis instead of each secret; short secrets count only as whole words."""
    for secret in secrets:
        if len(secret) >= MIN_CHARACTERS:
            text = text.replace(secret, "…")
        else:
            text = re.sub(rf"(?<!\w){re.escape(secret)}(?!\w)", "…", text)
    return text


def read_json(text: str) -> Any:
    r"""Return a JSON list or object as Python's value with exact numbers, and a JSON scalar as JSON text.

    A text that Python cannot read as JSON is returned unchanged.

    >>> read_json('{"b": [1,  null],\n "a": 1.50}'), read_json('"a"'), read_json("1.50"), read_json("null")
    ({'b': [1, None], 'a': Decimal('1.50')}, '"a"', '1.5', 'null')
    """
    try:
        value = json.loads(text, parse_float=Decimal)
    except (ValueError, RecursionError):
        return text
    return value if isinstance(value, list | dict) else _json_text(value)


def _json_text(value: Any) -> str:
    """Return a scalar as JSON text, without rounding numbers to floats as `json` would.

    Trailing zeros of a decimal are removed.
    """
    match value:
        case Decimal() if not value:
            return "0"
        case Decimal() if abs(value.adjusted()) < _MAX_DIGITS:
            digits = f"{value:f}"
            return digits.rstrip("0").rstrip(".") if "." in digits else digits
        case Decimal():
            return str(value)
    return json.dumps(value, ensure_ascii=False)


def column_rows(connection: sqlalchemy.Connection) -> list[tuple[Any, ...]]:
    """Return a row for each column of the default schema's tables and views, in the form of `DescribedColumn`.

    A column with several foreign keys has a row for each.
    """
    inspector = sqlalchemy.inspect(connection)
    tables = inspector.get_multi_columns(kind=ObjectKind.ANY)
    keys = inspector.get_multi_foreign_keys()
    rows = []
    for place in sorted(tables, key=lambda place: place[1]):
        targets: defaultdict[str, list[tuple[str | None, str | None]]] = defaultdict(list)
        for key in keys.get(place, ()):
            if key["referred_schema"] is None:  # the default schema
                column_pairs = zip(key["constrained_columns"], key["referred_columns"], strict=True)
                for source_column, target_column in column_pairs:
                    targets[source_column].append((key["referred_table"], target_column))
        for column in tables[place]:
            for target in targets.get(column["name"], [(None, None)]):
                rows.append((place[1], column["name"], _type_name(column["type"], None), *target))
    return rows


def table_statements(connection: sqlalchemy.Connection) -> list[tuple[str]]:
    """Return the CREATE TABLE statements of the default schema's tables and views by name, in its own dialect."""
    inspector = sqlalchemy.inspect(connection)
    primary_keys, foreign_keys = inspector.get_multi_pk_constraint(), inspector.get_multi_foreign_keys()
    dialect = connection.dialect
    tables = [
        TableDefinition(
            place[1],
            [
                ColumnDefinition(
                    column["name"],
                    "" if isinstance(column["type"], NullType) else _type_name(column["type"], dialect),
                    not column["nullable"],
                )
                for column in columns
            ],
            primary_keys[place].get("constrained_columns", []) if place in primary_keys else [],
            [
                ForeignKey(
                    key["constrained_columns"],
                    key["referred_table"],
                    key["referred_columns"],
                    key["referred_schema"] or "",
                )
                for key in foreign_keys.get(place, [])
            ],
        )
        for place, columns in inspector.get_multi_columns(kind=ObjectKind.ANY).items()
    ]
    tables.sort(key=lambda table: (table.name.lower(), table.name))
    return [(create_table(table, dialect.identifier_preparer.quote),) for table in tables]


def _type_name(kind: TypeEngine[Any], dialect: sqlalchemy.Dialect | None) -> str:
    """Return a type in the SQL of `dialect`, by default in standard SQL; the name of its class if it has no SQL."""
    try:
        return kind.compile(dialect=dialect)
    except CompileError:
        return type(kind).__name__
