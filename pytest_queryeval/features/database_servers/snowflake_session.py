"""What Snowflake needs in a child process: verdicts on its errors, its JSON, and the place of its session.

It imports nothing of Snowflake's packages, and recognizes their classes by name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import sqlalchemy

from pytest_queryeval.features.database_servers.databases import read_json
from pytest_queryeval.sandbox.cells import encode_rows
from pytest_queryeval.sandbox.driver import Fault

# By the number of an error of a statement; others are invalid. Numbers are at
# https://docs.snowflake.com/en/developer-guide/snowflake-scripting/exceptions and in Snowflake's messages.
VERDICTS = {
    **dict.fromkeys((604, 630), "timeout"),
    **dict.fromkeys((8, 3001), "unsafe"),  # several statements, insufficient privileges
    **dict.fromkeys((606, 90073), "fault"),  # no warehouse, or one that its resource monitor stops
}
# What the URL of a session lacks, by the number of an error. Snowflake recommends USE, which no query may run.
MISSING_PLACES = {90105: ("database", "/DATABASE"), 90106: ("schema", "/DATABASE/SCHEMA")}
# What a server says of a statement; all other errors are of the connection.
STATEMENT_ERRORS = ("ProgrammingError", "IntegrityError", "DataError", "NotSupportedError")
# Numbers of semi-structured types: VARIANT, OBJECT, ARRAY.
JSON_TYPES = frozenset((5, 9, 10))
SESSION = "SELECT CURRENT_DATABASE(), CURRENT_SCHEMA(), CURRENT_WAREHOUSE()"
_PREFIX = re.compile(r"^\d{6} \(\w{5}\): ")


def is_snowflake_error(error: BaseException | None) -> bool:
    """Return whether an error is of Snowflake's driver."""
    return type(error).__module__.startswith("snowflake.")


def snowflake_verdict(error: Any) -> tuple[str, str]:
    """Return the kind of a failure and its message, without the ids of requests, so that it is the same in each run."""
    message = _PREFIX.sub("", str(getattr(error, "raw_msg", None) or error))
    if type(error).__name__ not in STATEMENT_ERRORS:
        return "rejected", message
    if error.errno in MISSING_PLACES:
        place, path = MISSING_PLACES[error.errno]
        message = f"the session has no current {place}: write qualified names, or add {path} to the URL of the source"
    return VERDICTS.get(error.errno, "invalid"), message


def check_session(connection: sqlalchemy.Connection, url: sqlalchemy.URL) -> None:
    """Raise `Fault` if the session lacks a database, schema or warehouse that the URL names.

    Snowflake opens such a session, and then refuses every query.
    """
    database, _, schema = (url.database or "").partition("/")
    names = {"database": database, "schema": schema, "warehouse": url.query.get("warehouse")}
    for (part, name), value in zip(names.items(), connection.exec_driver_sql(SESSION).one(), strict=True):
        if name and not value:
            problem = f"the session has no {part} '{name}', which the URL names"
            raise Fault(f"{problem}: it does not exist, or the role may not use it")


def row_encoder(description: Sequence[Any]) -> Callable[[Sequence[Sequence[Any]]], list[tuple[Any, ...]]]:
    """Return the function that encodes rows of these columns; cells of semi-structured types become JSON values."""
    json_columns = [column for column, properties in enumerate(description) if properties[1] in JSON_TYPES]
    if not json_columns:
        return encode_rows

    def encode(rows: Sequence[Sequence[Any]]) -> list[tuple[Any, ...]]:
        changed_rows = [list(row) for row in rows]
        for row in changed_rows:
            for column in json_columns:
                if isinstance(row[column], str):
                    row[column] = read_json(row[column])
        return encode_rows(changed_rows)

    return encode
