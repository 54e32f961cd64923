"""Tables and columns that a query names and a database does not have."""

from __future__ import annotations

import re
from itertools import chain

from pytest_queryeval.core.cause import CauseLabel
from pytest_queryeval.core.db_schema import Schema
from pytest_queryeval.core.errors import did_you_mean

_NAME = re.compile(r"[^\W\d][\w$]*(?:\.[^\W\d][\w$]*)*")
_TABLE_OR_COLUMN = re.compile(r"\b(?:(table|relation|object|view)|column)\b", re.IGNORECASE)
_UNKNOWN = re.compile(
    r"no such|not found|not exist|doesn't exist|unknown|cannot find|could not be resolved|missing FROM-clause entry",
    re.IGNORECASE,
)
_COLUMN_OF_TABLE = re.compile(r"does not have a column", re.IGNORECASE)
_AMBIGUOUS = re.compile(r"\bambiguous\b", re.IGNORECASE)
_OWN_HINT = re.compile(r"did you mean|perhaps you meant|candidate", re.IGNORECASE)


def name_label(message: str) -> CauseLabel | None:
    """Return what a database's message says of a name: unknown, table or column, or ambiguous; None for other messages.

    >>> name_label("no such column: nme"), name_label('relation "singers" does not exist')
    ('unknown-column', 'unknown-table')
    >>> name_label('near "FORM": syntax error')
    >>> name_label("ambiguous column name: id"), name_label("Column 'id' in field list is ambiguous")
    ('ambiguous-column', 'ambiguous-column')
    """
    about = _TABLE_OR_COLUMN.search(message)
    if about is None:
        return None
    if _COLUMN_OF_TABLE.search(message):
        return "unknown-column"
    if _AMBIGUOUS.search(message):
        return "ambiguous-column"
    if not _UNKNOWN.search(message):
        return None
    return "unknown-table" if about[1] else "unknown-column"


def nearest_name(query: str, message: str, schema: Schema) -> str:
    """Return the tail of a database's message on an unknown table or column: the nearest known one, or nothing.

    >>> schema = Schema(tables={"singer": ("id", "name"), "concert": ("id",)})
    >>> nearest_name("SELECT s.nme FROM singer s", "no such column: s.nme", schema)
    ": did you mean 'name'?"
    >>> nearest_name("SELECT * FROM singers", 'relation "singers" does not exist', schema)
    ": did you mean 'singer'?"
    """
    about = _TABLE_OR_COLUMN.search(message)
    if about is None or _OWN_HINT.search(message):
        return ""
    names_in_query = {name for path in _NAME.findall(query.lower()) for name in path.split(".")}
    columns = {name: schema.tables[name] for name in schema.tables if name in names_in_query} or schema.tables
    schema_names = schema.tables if about[1] else dict.fromkeys(chain.from_iterable(columns.values()))
    names_in_message = (path.rpartition(".")[2] for path in _NAME.findall(message.lower()))
    unknown = next((name for name in names_in_message if name in names_in_query and name not in schema_names), None)
    return "" if unknown is None else did_you_mean(unknown, schema_names)
