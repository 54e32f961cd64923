"""What the child processes of databases share: URLs and their secrets, the clock of a query, the tables.

URLs are those of SQLAlchemy: https://docs.sqlalchemy.org/en/20/core/engines.html
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from contextlib import suppress
from time import monotonic
from typing import Any
from urllib.parse import quote, quote_plus, unquote, unquote_plus

import sqlalchemy
from sqlalchemy.engine.reflection import ObjectKind
from sqlalchemy.exc import CompileError
from sqlalchemy.types import NullType

from pytest_queryeval.core.table_definition import ColumnDefinition, ForeignKey, TableDefinition, create_table

COLUMNS = ("table", "column", "type", "to_table", "to_column")
SHORT = 6  # characters; a shorter secret is taken out as a whole word only
_USER_INFO = re.compile(r"^[^:/?#]+://([^:/]*):(.*)@", re.DOTALL)
_PARAMETER = re.compile(r"[?&]([^=&#]*)=([^&#]*)")
_SECRET_NAME = re.compile(r"pass|pwd|secret|token|key|auth|cred", re.IGNORECASE)


class Clock:
    """Stops a query at its deadline, from a thread of its own, by what its driver has for that."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._alarms: list[tuple[float, Callable[[], object]]] = []
        self._rang = 0
        threading.Thread(target=self._watch, daemon=True).start()

    def start(self, *alarms: tuple[float, Callable[[], object]]) -> None:
        """Call each function in so many seconds, in this order, until `clear` is called."""
        with self._changed:
            self._alarms, self._rang = [(monotonic() + seconds, stop) for seconds, stop in alarms], 0
            self._changed.notify()

    def clear(self) -> int:
        """Forget the alarms and return how many went off; a call under way ends first, before the next query."""
        with self._changed:
            went_off, self._alarms, self._rang = self._rang, [], 0
            return went_off

    def _watch(self) -> None:
        with self._changed:
            while True:
                left = self._alarms[0][0] - monotonic() if self._alarms else None
                if left is None or left > 0:
                    self._changed.wait(left)
                    continue
                _, stop = self._alarms.pop(0)
                self._rang += 1
                with suppress(Exception):  # a connection that broke meanwhile; the parent's limit holds in any case
                    stop()


def secrets_of(url: str) -> tuple[str, ...]:
    """Return the password and the secret parameters of a URL in all their encodings, the longest first."""
    found = _USER_INFO.match(url)
    texts = [url, found[2] if found else ""]
    texts += [value for name, value in _PARAMETER.findall(url) if _SECRET_NAME.search(name)]
    parts = {part for text in texts for part in (text, unquote(text), unquote_plus(text)) if part}
    forms = {form for part in parts for form in (part, quote(part), quote(part, safe=""), quote_plus(part), repr(part))}
    return tuple(sorted(forms, key=len, reverse=True))


def redacted(text: str, secrets: tuple[str, ...]) -> str:
    """Return the text without the secrets."""
    for secret in secrets:
        if len(secret) >= SHORT:
            text = text.replace(secret, "…")
        else:
            text = re.sub(rf"(?<!\w){re.escape(secret)}(?!\w)", "…", text)
    return text


def described(connection: sqlalchemy.Connection) -> list[tuple[Any, ...]]:
    """Return the columns of all tables and views of the default schema, as rows of `schema.DescribedColumn`."""
    inspector = sqlalchemy.inspect(connection)
    tables = inspector.get_multi_columns(kind=ObjectKind.ANY)
    keys = inspector.get_multi_foreign_keys()
    rows = []
    for place in sorted(tables, key=lambda place: place[1]):
        targets = _targets(keys.get(place, ()))
        for column in tables[place]:
            for target in targets.get(column["name"], [(None, None)]):
                rows.append((place[1], column["name"], _type_of(column), *target))
    return rows


def statements(connection: sqlalchemy.Connection) -> list[tuple[str]]:
    """Return the CREATE TABLE statements of the default schema's tables and views, by name, in its own dialect."""
    inspector = sqlalchemy.inspect(connection)
    primary_keys, foreign_keys = inspector.get_multi_pk_constraint(), inspector.get_multi_foreign_keys()
    dialect = connection.dialect
    tables = [
        TableDefinition(
            place[1],
            [ColumnDefinition(each["name"], _type_in(dialect, each), not each["nullable"]) for each in columns],
            primary_keys[place]["constrained_columns"] if place in primary_keys else [],
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


def _type_in(dialect: sqlalchemy.Dialect, column: Any) -> str:
    """Return a type as the database spells it; empty where SQLAlchemy does not know it."""
    try:
        return "" if isinstance(column["type"], NullType) else column["type"].compile(dialect=dialect)
    except CompileError:
        return type(column["type"]).__name__


def _targets(keys: Any) -> dict[str, list[tuple[str | None, str | None]]]:
    """Return which columns a column refers to, among those of the default schema."""
    targets: dict[str, list[tuple[str | None, str | None]]] = {}
    for key in keys:
        if key["referred_schema"] is None:
            for own, other in zip(key["constrained_columns"], key["referred_columns"], strict=True):
                targets.setdefault(own, []).append((key["referred_table"], other))
    return targets


def _type_of(column: Any) -> str:
    try:
        return str(column["type"])
    except CompileError:  # a type that only its own dialect can write
        return type(column["type"]).__name__
