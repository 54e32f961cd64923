"""RDF terms: as child processes send them, and as people write them into tables."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from pytest_queryeval.core.table import IRI, BlankNode, Cell, Literal, Row, Table, TripleTerm, replace_blank_nodes
from pytest_queryeval.sandbox.driver import Term

XSD = "http://www.w3.org/2001/XMLSchema#"
XSD_STRING = f"{XSD}string"
GRAPH_COLUMNS = ("subject", "predicate", "object")
_IRI = re.compile(r'<([^<>"{}|^`\\\x00-\x20]*)>')
_BLANK_NODE = re.compile(r"_:(\S+)")
_BARE_IRI = re.compile(r'((?:[a-z][a-z0-9+.-]*://|urn:|mailto:)[^<>"{}|^`\\\x00-\x20]+)', re.IGNORECASE)
_LITERAL = re.compile(r'"((?:[^"\\]|\\.)*)"(?:@([A-Za-z][A-Za-z0-9-]*)|\^\^<?(xsd:\w+|[^<>\s]+)>?)?', re.DOTALL)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t"}


def term(driver_term: Term) -> Cell:
    """Return the term that a driver sent; `xsd:string` is not a datatype, and language tags are in lower case."""
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
    """Return rows of `driver.Term` as rows of terms; equal terms become one object."""
    cells: dict[Any, Cell] = {}
    read_rows = []
    for row in rows:
        for driver_term in row:
            if driver_term not in cells:
                cells[driver_term] = term(driver_term)
        read_rows.append(tuple([cells[driver_term] for driver_term in row]))
    return read_rows


def graph_table(triples: Iterable[Row]) -> Table:
    """Return a graph as a table of three columns: each triple once, in an order without labels of blank nodes."""
    rows = sorted(
        dict.fromkeys(triples),
        key=lambda triple: [repr(replace_blank_nodes(cell, lambda _: "")) for cell in triple],
    )
    return Table(columns=GRAPH_COLUMNS, rows=rows, is_graph=True)


def stated_term(cell: Cell) -> Cell:
    """Read a cell that people write in the notation of SPARQL: `<…>`, `_:x`, `"text"@en`, `"1"^^<datatype>`.

    `http://…` and the like are IRIs without brackets, too; anything else is unchanged.
    """
    if isinstance(cell, str) and (literal := _LITERAL.fullmatch(cell)):
        text = _ESCAPE.sub(lambda match: _ESCAPES.get(match[1], match[1]), literal[1])
        return term((text, (literal[3] or "").replace("xsd:", XSD), literal[2] or ""))
    return csv_term(cell)


def csv_term(cell: Cell) -> Cell:
    """Read a cell of SPARQL CSV results: IRIs, with brackets or not, and blank nodes; anything else is unchanged."""
    if not isinstance(cell, str):
        return cell
    if match := _IRI.fullmatch(cell) or _BARE_IRI.fullmatch(cell):
        return IRI(match[1])
    return BlankNode(match[1]) if (match := _BLANK_NODE.fullmatch(cell)) else cell
