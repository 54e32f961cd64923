"""Queries of one dialect of SQL in another one, by sqlglot."""

from __future__ import annotations

from sqlglot import ErrorLevel
from sqlglot.errors import SqlglotError

from pytest_queryeval.languages.sql.parsed_query import parse_query
from pytest_queryeval.text.truncation import one_line

MESSAGE_CHARACTERS = 200


def translate(query: str, dialect: str, target: str) -> str:
    """Return a query of one dialect in another one, and as it is in the same one.

    Raise `ValueError` where sqlglot has no name for one of them, cannot read the query, or knows that the other dialect
    has nothing for a part of it.

    >>> translate("SELECT julianday(due), name FROM loan LIMIT 3, 5", "sqlite", "duckdb")
    'SELECT JULIANDAY(due), name FROM loan LIMIT 5 OFFSET 3'
    """
    if not dialect or not target:
        side = "the source of golds" if not dialect else "the source"
        raise ValueError(f"sqlglot has no name for the dialect of {side}")
    if dialect == target:
        return query
    parsed_query = parse_query(query, dialect)
    if parsed_query.whole_tree is None:
        raise ValueError(f"sqlglot cannot read it as {dialect}: {parsed_query.problem}")
    try:
        return parsed_query.whole_tree.sql(dialect=target, unsupported_level=ErrorLevel.RAISE)
    except (SqlglotError, RecursionError) as error:
        reason = one_line(str(error) or type(error).__name__, MESSAGE_CHARACTERS)
        raise ValueError(f"sqlglot cannot write it as {target}: {reason}") from error
