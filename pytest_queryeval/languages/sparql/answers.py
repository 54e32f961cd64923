"""Answers of SPARQL engines as tables, and the queries that are never sent to an engine."""

from __future__ import annotations

import re
from dataclasses import replace

from pytest_queryeval.core.errors import did_you_mean
from pytest_queryeval.core.model import Execution, Failure
from pytest_queryeval.core.table import Table
from pytest_queryeval.languages.sparql.query import FORMS, UPDATES, Query
from pytest_queryeval.languages.sparql.terms import graph_table, term_rows
from pytest_queryeval.text.truncation import one_line

MAX_DEPTH = 500  # parsers recurse, and some crash
_SURROGATE = re.compile("[\ud800-\udfff]")


def refusal(query: Query) -> Failure | None:
    """Return why no engine runs a query: it would write, or leave the source; None if it may run."""
    if _SURROGATE.search(query.text):
        return Failure(kind="invalid", message="the query is not Unicode text: it holds half of a surrogate pair")
    if query.depth > MAX_DEPTH:
        return Failure(kind="invalid", message=f"the query nests brackets more than {MAX_DEPTH} deep")
    if query.tokens and query.form not in (*FORMS, *UPDATES):
        beginning = f"it begins with '{one_line(query.text.strip(), 20)}'"
        return Failure(kind="invalid", message=f"the text is not a query of {', '.join(FORMS)}: {beginning}")
    if query.form in UPDATES:
        return Failure(kind="unsafe", message=f"only reading is allowed: {query.form}")
    if query.calls_service:
        return Failure(kind="unsafe", message="only the source itself may be asked: SERVICE")
    return None


def with_terms(execution: Execution, query: Query) -> Execution:
    """Return the execution with terms in place of those of the child process, and a graph as a set of triples."""
    table = execution.answer
    if not isinstance(table, Table):
        return _with_prefix(execution, query)
    columns, rows = table.columns, term_rows(table.rows)
    if query.gives_graph:
        return replace(execution, answer=graph_table(rows))
    if query.selects_all:
        # Engines differ in the order of the columns of `SELECT *`; here it is that of their first use in the query.
        places = {name: place for place, name in enumerate(query.variables)}
        order = sorted(range(len(columns)), key=lambda column: places.get(columns[column], len(places)))
        if order != list(range(len(columns))):
            rows = [tuple([row[column] for column in order]) for row in rows]
            columns = tuple(columns[column] for column in order)
    return replace(execution, answer=Table(columns=columns, rows=rows))


def _with_prefix(execution: Execution, query: Query) -> Execution:
    """Return a failed execution with the prefix that the query does not declare in its message.

    That is clearer than the list of all that the grammar allows there, which some servers send.
    """
    error = execution.error
    if error is None or error.kind != "invalid" or not query.undeclared_prefixes:
        return execution
    prefix = f"{query.undeclared_prefixes[0]}:"
    nearest = did_you_mean(prefix, [f"{name}:" for name in query.prefixes])
    remedy = nearest if nearest.endswith("?") and prefix != ":" else f": add `PREFIX {prefix} <…>` to the query"
    hint = f"the prefix {prefix} is not declared{remedy}"
    place, _, _ = error.message.removesuffix(": prefix not found").partition(": expected ")
    message = f"{place}: {hint}" if place != error.message else f"{error.message} ({hint})"
    return replace(execution, error=replace(error, message=message))
