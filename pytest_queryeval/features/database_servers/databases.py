"""Functions for the child processes of databases: secrets in URLs, JSON in cells, and the definitions of tables.

URLs are those of SQLAlchemy: https://docs.sqlalchemy.org/en/20/core/engines.html
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from decimal import Decimal
from typing import Any
from urllib.parse import quote, quote_plus, unquote, unquote_plus

import sqlalchemy
from sqlalchemy.engine.reflection import ObjectKind
from sqlalchemy.exc import CompileError
from sqlalchemy.types import NullType, TypeEngine

from pytest_queryeval.core.db_schema import ColumnDefinition, ForeignKey, TableDefinition, create_table

# Follows the message of a driver that cannot connect.
CHECK_URL = "(check server, user, password and database of the URL)"
COLUMNS = ("table", "column", "type", "to_table", "to_column")
MIN_CHARACTERS = 6  # a shorter secret is replaced only where it is a whole word
_USER_INFO = re.compile(r"^[^:/?#]+://([^:/]*):(.*)@", re.DOTALL)
_PARAMETER = re.compile(r"[?&]([^=&#]*)=([^&#]*)")
_SECRET_NAME = re.compile(r"pass|pwd|secret|token|key|auth|cred", re.IGNORECASE)
_MAX_DIGITS = 10_000


def secrets_of(url: str) -> tuple[str, ...]:
    """Return the password and the secret parameters of a URL in all their encodings, the longest first."""
    user_info = _USER_INFO.match(url)
    texts = [url, user_info[2] if user_info else ""]
    texts += [value for name, value in _PARAMETER.findall(url) if _SECRET_NAME.search(name)]
    parts = {part for text in texts for part in (text, unquote(text), unquote_plus(text)) if part}
    forms = {form for part in parts for form in (part, quote(part), quote(part, safe=""), quote_plus(part), repr(part))}
    return tuple(sorted(forms, key=len, reverse=True))


def redact(text: str, secrets: tuple[str, ...]) -> str:
    """Return the text with an ellipsis in place of each secret."""
    for secret in secrets:
        if len(secret) >= MIN_CHARACTERS:
            text = text.replace(secret, "…")
        else:
            text = re.sub(rf"(?<!\w){re.escape(secret)}(?!\w)", "…", text)
    return text


def read_json(text: str) -> Any:
    r"""Return JSON of a list or an object as Python's value with exact numbers, and of a scalar as JSON text.

    A text that Python cannot read is returned as it is.

    >>> read_json('{"b": [1,  null],\n "a": 1.50}'), read_json('"a"'), read_json("1.50"), read_json("null")
    ({'b': [1, None], 'a': Decimal('1.50')}, '"a"', '1.5', 'null')
    """
    try:
        value = json.loads(text, parse_float=Decimal)
    except (ValueError, RecursionError):
        return text
    return value if isinstance(value, list | dict) else _json_text(value)


def _json_text(value: Any) -> str:
    """Return a scalar as JSON text: `json` would round numbers to floats."""
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
    """Return the columns of all tables and views of the default schema, as rows of `DescribedColumn`."""
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
    """Return the CREATE TABLE statements of the default schema's tables and views, by name, in its own dialect."""
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
