"""Answers of SPARQL engines as tables, and the queries that are never sent to one."""

from __future__ import annotations

import re
from dataclasses import replace

from pytest_queryeval.core.errors import did_you_mean
from pytest_queryeval.core.model import Execution, Failure
from pytest_queryeval.core.table import Table
from pytest_queryeval.languages.sparql.query import FORMS, UPDATES, Query
from pytest_queryeval.languages.sparql.terms import graph_table, term_rows
from pytest_queryeval.text.plain import one_line

MOST_LEVELS = 500  # parsers recurse, and some die of it
_SURROGATE = re.compile("[\ud800-\udfff]")


def refusal(query: Query) -> Failure | None:
    """Why a query is not run, whatever the engine: it would write, or leave the source."""
    if _SURROGATE.search(query.text):
        return Failure(kind="invalid", message="the query is no Unicode text: it holds half of a surrogate pair")
    if query.depth > MOST_LEVELS:
        return Failure(kind="invalid", message=f"the query nests brackets more than {MOST_LEVELS} deep")
    if query.tokens and query.form not in (*FORMS, *UPDATES):
        began = f"it begins with '{one_line(query.text.strip(), 20)}'"
        return Failure(kind="invalid", message=f"the text is no query of {', '.join(FORMS)}: {began}")
    if query.form in UPDATES:
        return Failure(kind="unsafe", message=f"only reading is allowed: {query.form}")
    if query.calls_service:
        return Failure(kind="unsafe", message="only the source itself may be asked: SERVICE")
    return None


def with_terms(execution: Execution, query: Query) -> Execution:
    """The execution with the plain terms that a child sent made terms, and a graph made a set of triples."""
    table = execution.answer
    if not isinstance(table, Table):
        return _with_prefix(execution, query)
    rows = term_rows(table.rows)
    if query.gives_graph:
        return replace(execution, answer=graph_table(rows))
    answer = Table(columns=table.columns, rows=rows)
    return replace(execution, answer=_in_text_order(answer, query) if query.selects_all else answer)


def _with_prefix(execution: Execution, query: Query) -> Execution:
    """A failed execution whose message names the prefix that the query does not declare.

    The list of all that the grammar could have had there, which some servers send, says less.
    """
    error, prefix = execution.error, query.undeclared_prefix
    if error is None or error.kind != "invalid" or prefix is None:
        return execution
    meant = did_you_mean(prefix, [f"{declared}:" for declared in query.prefixes])
    remedy = meant if meant.endswith("?") and prefix != ":" else f": add `PREFIX {prefix} <…>` to the query"
    hint = f"the prefix {prefix} is not declared{remedy}"
    place, expected, _ = error.message.partition(": expected ")
    message = f"{place}: {hint}" if expected else f"{error.message} ({hint})"
    return replace(execution, error=replace(error, message=message))


def _in_text_order(table: Table, query: Query) -> Table:
    """The columns of `SELECT *` in the order in which the query first names them: engines differ in theirs."""
    places = {name: place for place, name in enumerate(query.variables)}
    order = sorted(range(len(table.columns)), key=lambda column: places.get(table.columns[column], len(places)))
    if order == list(range(len(order))):
        return table
    rows = [tuple([row[column] for column in order]) for row in table.rows]
    return Table(columns=tuple(table.columns[column] for column in order), rows=rows)
