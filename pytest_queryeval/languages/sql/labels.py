"""Spider's hardness as the label of a query."""

from __future__ import annotations

from functools import lru_cache

from pytest_queryeval.core.schema import Schema
from pytest_queryeval.languages.sql.hardness import hardness
from pytest_queryeval.languages.sql.published.grammar import published_view
from pytest_queryeval.languages.sql.published.tokens import UnreadableQueryError


@lru_cache(maxsize=4096)
def query_hardness(query: str, dialect: str) -> str | None:
    """Return `easy`, `medium`, `hard` or `extra`; None where the text cannot be read.

    The published grammar reads the query if it can, so that labels agree with published tables, else sqlglot does.
    """
    try:
        return hardness(published_view(query))
    except UnreadableQueryError:
        pass
    from pytest_queryeval.languages.sql.trees.parsing import UnreadableError
    from pytest_queryeval.languages.sql.trees.reader import read_tree

    try:
        reading = read_tree(query, dialect, Schema())
    except UnreadableError:
        return None
    return None if reading.broken else hardness(reading.view)
