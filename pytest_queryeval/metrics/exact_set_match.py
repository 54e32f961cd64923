"""Exact set match of two SQL queries, clause by clause."""

from __future__ import annotations

from typing import Any

from pytest_queryeval.core.db_schema import Schema
from pytest_queryeval.core.metric import Score, metric

NO_SCHEMA = Schema()


@metric(kinds=frozenset({"sql"}), input="queries")
def exact_set_match(gold: str, predicted: str, *, dialect: str = "", schema: Schema = NO_SCHEMA) -> Score:
    """Return 1 if two queries agree in every clause apart from values, aliases and spelling, else 0.

    Both are parsed in the source's dialect. Literal values are one placeholder, DISTINCT is ignored, aliases are
    resolved scope by scope, columns that a join makes equal count as one. SELECT items, tables, joins with their
    conditions, WHERE, GROUP BY and HAVING are compared as multisets, ORDER BY as a list with directions, LIMIT by its
    presence, set operations arm by arm. A text that cannot be parsed scores 0, and `details.exact_set_match` says why,
    or in which clauses the queries differ; `details.partial_match` has the components. None where gold cannot be parsed
    and predicted is another text; a note says why. Source: Spider's exact set match (Yu et al., 2018), on any dialect
    of sqlglot.

    >>> exact_set_match("SELECT a.name FROM singer AS a WHERE age > 30", "select name from singer where 18 < age").value
    1.0
    """
    from pytest_queryeval.languages.sql.parsed_query import parse_query
    from pytest_queryeval.languages.sql.trees.match import match_queries

    match = match_queries(gold, predicted, dialect, schema)
    if match is None:
        return Score(value=None, details={"notes": [f"gold cannot be read: {parse_query(gold, dialect).problem}"]})
    details: dict[str, Any] = {
        "partial_match": {
            name: [part.gold_total, part.pred_total, part.count] for name, part in match.components.items()
        }
    }
    if not match.exact:
        why = {"unreadable": match.broken} if match.broken else {}
        details["exact_set_match"] = {"differs": list(match.differs)} | why
    return Score(value=float(match.exact), details=details)
