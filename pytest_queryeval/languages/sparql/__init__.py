"""SPARQL: the answers of engines as tables, their terms as child processes send them and as people write them.

Also why no engine runs some queries.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from pytest_queryeval.core.errors import did_you_mean
from pytest_queryeval.core.model import Execution, Failure
from pytest_queryeval.core.table import IRI, BlankNode, Cell, Literal, Row, Table, TripleTerm, replace_blank_nodes
from pytest_queryeval.languages.extract_query import sentences_behind, text_follows
from pytest_queryeval.languages.sparql.mistakes import Mistake, known_mistake
from pytest_queryeval.languages.sparql.query import (
    BRACKETS,
    COMMON_PREFIXES,
    FORMS,
    UPDATES,
    WIKIBASE,
    WIKIBASE_LABEL,
    QueryOutline,
    read_query,
    unclosed_bracket,
)
from pytest_queryeval.sandbox.driver import Term
from pytest_queryeval.text.formatting import one_line

XSD = "http://www.w3.org/2001/XMLSchema#"
XSD_STRING = f"{XSD}string"
GRAPH_COLUMNS = ("subject", "predicate", "object")
ASK_COLUMNS = ("boolean",)
_IRI = re.compile(r'<([^<>"{}|^`\\\x00-\x20]*)>')
_BLANK_NODE = re.compile(r"_:(\S+)")
_BARE_IRI = re.compile(r'((?:[a-z][a-z0-9+.-]*://|urn:|mailto:)[^<>"{}|^`\\\x00-\x20]+)', re.IGNORECASE)
_LITERAL = re.compile(r'"((?:[^"\\]|\\.)*)"(?:@([A-Za-z][A-Za-z0-9-]*)|\^\^<?(xsd:\w+|[^<>\s]+)>?)?', re.DOTALL)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t"}
MAX_DEPTH = 500  # parsers recurse, and some crash
_PLACE = re.compile(r"(.*?)error at (\d+):(\d+)(?=: )")
_BEFORE_LIST = re.compile(r".*?(?=: expected )")
_SURROGATE = re.compile("[\ud800-\udfff]")


def term(driver_term: Term) -> Cell:
    """Return a driver's term as a cell, with language tags in lower case, and without the datatype `xsd:string`."""
    match driver_term:
        case str(iri):
            return IRI(iri)
        case (label,):
            return BlankNode(label)
        case (lexical, datatype, language):
            return Literal(lexical, "" if language or datatype == XSD_STRING else datatype, language.lower())
        case (_, subject, predicate, object_):
            return TripleTerm(term(subject), term(predicate), term(object_))
        case _:
            return driver_term


def term_rows(rows: Iterable[tuple[Any, ...]]) -> list[Row]:
    """Return rows of `driver.Term` as rows of cells; equal terms become one object."""
    cells: dict[Any, Cell] = {}
    read_rows = []
    for row in rows:
        for driver_term in row:
            if driver_term not in cells:
                cells[driver_term] = term(driver_term)
        read_rows.append(tuple([cells[driver_term] for driver_term in row]))
    return read_rows


def graph_table(triples: Iterable[Row]) -> Table:
    """Return a graph as a table of three columns, in which each triple is once.

    The order of rows does not depend on the labels of blank nodes.
    """
    rows = sorted(
        dict.fromkeys(triples),
        key=lambda triple: [repr(replace_blank_nodes(cell, lambda _: "")) for cell in triple],
    )
    return Table(columns=GRAPH_COLUMNS, rows=rows, is_graph=True)


def stated_term(cell: Cell) -> Cell:
    """Return the term that a cell states in the notation of SPARQL: `<…>`, `_:x`, `"text"@en`, `"1"^^<datatype>`.

    `http://…` and similar texts are IRIs without brackets, too. Any other cell is returned unchanged.
    """
    if isinstance(cell, str) and (literal := _LITERAL.fullmatch(cell)):
        text = _ESCAPE.sub(lambda match: _ESCAPES.get(match[1], match[1]), literal[1])
        return term((text, (literal[3] or "").replace("xsd:", XSD), literal[2] or ""))
    return csv_term(cell)


def csv_term(cell: Cell) -> Cell:
    """Return the term of a cell in SPARQL CSV results: IRIs, with or without brackets, and blank nodes.

    Any other cell is returned unchanged.
    """
    if not isinstance(cell, str):
        return cell
    if match := _IRI.fullmatch(cell) or _BARE_IRI.fullmatch(cell):
        return IRI(match[1])
    return BlankNode(match[1]) if (match := _BLANK_NODE.fullmatch(cell)) else cell


def refusal(query: QueryOutline) -> Failure | None:
    """Return the failure of a query that no engine runs, because it would write or leave the source.

    None if it may run. Words in sentences behind a query do not count; if they are the only reason, the failure is the
    text that follows.
    """
    failure = _refusal(query)
    if failure is None or failure.kind != "unsafe" or not (prose := sentences_behind(query.text)):
        return failure
    query_alone = read_query(query.text.removesuffix(prose))
    query_alone = replace(query_alone, services=query_alone.services if query.services else ())
    return _refusal(query_alone) or text_follows(prose)


def _refusal(query: QueryOutline) -> Failure | None:
    if _SURROGATE.search(query.text):
        return Failure(kind="invalid", message="the query is not Unicode text: it contains half of a surrogate pair")
    if query.depth > MAX_DEPTH:
        return Failure(kind="invalid", message=f"the query nests brackets more than {MAX_DEPTH} deep")
    if query.tokens and query.form not in (*FORMS, *UPDATES):
        forms = f"{', '.join(FORMS[:-1])} or {FORMS[-1]}"
        unknown = f"expected {forms}, found '{one_line(query.text.strip(), 20)}'"
        mistake = known_mistake(query)
        return Failure(kind="invalid", message=_placed(mistake, query.text) if mistake else unknown)
    if query.form in UPDATES:
        return Failure(kind="unsafe", message=f"only reading is allowed: {query.form}")
    if "wikibase:label" in query.services:
        remedy = f"add `PREFIX wikibase: <{WIKIBASE}>` to the query, or `prefixes: wikidata` to the source"
        return Failure(kind="invalid", message=f"the prefix wikibase: is not declared: {remedy}")
    if query.services == (WIKIBASE_LABEL,):
        problem = (
            "SERVICE wikibase:label cannot be read here: its group has to bind what it names, by columns with names"
        )
        return Failure(kind="unsafe", message=problem)
    if query.services:
        return Failure(kind="unsafe", message="SERVICE is refused, because a query may only ask its own source")
    return None


def with_terms(execution: Execution, query: QueryOutline, *, added: int = 0) -> Execution:
    """Return the execution with terms instead of those of the child process, and a graph as a set of triples.

    The columns of `SELECT *` are in the order of their first use in the query. A failure gets its place in the text of
    the user, which lacks the `added` characters at the start.
    """
    table = execution.answer
    if not isinstance(table, Table):
        return _explained(execution, query, added)
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


def _explained(execution: Execution, query: QueryOutline, added: int) -> Execution:
    """Return a failed execution whose message names a known mistake, such as a prefix that is not declared.

    That is clearer than the list of everything that the grammar allows there. Other executions are unchanged.
    """
    error = execution.error
    if error is None or error.kind != "invalid":
        return execution
    mistake = known_mistake(query) or _undeclared_prefix(query) or _unclosed_bracket(query)
    place = _PLACE.match(error.message)
    message = error.message
    if mistake is not None:
        hint = _placed(mistake, query.text, added)
        before = _BEFORE_LIST.match(message)
        message = f"{place[1]}{hint}" if place else f"{before[0]}: {hint}" if before else f"{message} ({hint})"
    elif place is not None:
        line, column = int(place[2]), int(place[3])
        column -= added if line == 1 else 0
        message = f"{place[1]}{_line_and_column(line, column)}{message[place.end() :]}"
    return replace(execution, error=replace(error, message=message))


def _undeclared_prefix(query: QueryOutline) -> Mistake | None:
    if not query.undeclared_prefixes:
        return None
    prefix = f"{query.undeclared_prefixes[0]}:"
    nearest = did_you_mean(prefix, [f"{name}:" for name in query.prefixes])
    remedy = (
        nearest
        if nearest.endswith("?") and prefix != ":"
        else f": add `PREFIX {prefix} <{COMMON_PREFIXES.get(prefix[:-1], '…')}>` to the query"
    )
    start = next(token.start for token in query.tokens if token.kind == "name" and token.text.startswith(prefix))
    return Mistake(start, f"the prefix {prefix} is not declared{remedy}")


def _unclosed_bracket(query: QueryOutline) -> Mistake | None:
    bracket = unclosed_bracket(query.text)
    if bracket is None:
        return None
    return Mistake(bracket.start, f"the {bracket.text} here is not closed: add `{BRACKETS[bracket.text]}`")


def _placed(mistake: Mistake, text: str, added: int = 0) -> str:
    """Return the message of a mistake with its place in the user's query: `line 1, column 5 of the query: problem`.

    `text` is the query that was run. Its first `added` characters were put before the user's query; a mistake among
    them is placed at the first character of the user's query.
    """
    own_text, start = text[added:], max(mistake.start - added, 0)
    line, line_start = own_text.count("\n", 0, start) + 1, own_text.rfind("\n", 0, start) + 1
    return f"{_line_and_column(line, start - line_start + 1)}: {mistake.problem}"


def _line_and_column(line: int, column: int) -> str:
    return f"line {line}, column {column} of the query"
