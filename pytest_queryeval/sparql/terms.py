"""RDF terms: as they cross the pipe from a child process, and as people write them into tables."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, TypeAlias

from pytest_queryeval.table import IRI, BlankNode, Cell, Literal, Row, Table

XSD_STRING = "http://www.w3.org/2001/XMLSchema#string"
GRAPH_COLUMNS = ("subject", "predicate", "object")
# None, the boolean of ASK, the text of an IRI, (label,) of a blank node, (lexical, datatype, language) of a literal.
PlainTerm: TypeAlias = bool | str | tuple[str] | tuple[str, str, str] | None
_IRI = re.compile(r'<([^<>"{}|^`\\\x00-\x20]*)>')
_BLANK_NODE = re.compile(r"_:(\S+)")
_BARE_IRI = re.compile(r'(?:[a-z][a-z0-9+.-]*://|urn:|mailto:)[^<>"{}|^`\\\x00-\x20]+', re.IGNORECASE)


def term(plain: PlainTerm) -> Cell:
    """The term that a driver sent; `xsd:string` is no datatype, and language tags are in lower case."""
    match plain:
        case str(iri):
            return IRI(iri)
        case (label,):
            return BlankNode(label)
        case (lexical, datatype, language):
            return Literal(lexical, "" if language or datatype == XSD_STRING else datatype, language.lower())
        case _:
            return plain


def term_rows(rows: Iterable[tuple[Any, ...]]) -> list[Row]:
    """Rows of `PlainTerm` as rows of terms; equal terms become one object."""
    known: dict[Any, Cell] = {}
    found = []
    for row in rows:
        for plain in row:
            if plain not in known:
                known[plain] = term(plain)
        found.append(tuple([known[plain] for plain in row]))
    return found


def graph_table(triples: Iterable[Row]) -> Table:
    """A graph as a table of three columns: each triple once, in no order."""
    return Table(columns=GRAPH_COLUMNS, rows=list(dict.fromkeys(triples)), is_graph=True)


def stated_term(cell: Cell) -> Cell:
    """A cell of a table that people write: `<http://…>` is an IRI, `_:x` a blank node, anything else stays."""
    if not isinstance(cell, str):
        return cell
    if found := _IRI.fullmatch(cell):
        return IRI(found[1])
    return BlankNode(found[1]) if (found := _BLANK_NODE.fullmatch(cell)) else cell


def csv_term(cell: Cell) -> Cell:
    """A cell of SPARQL CSV results, which write IRIs bare: `http://…` and the like are IRIs there."""
    return IRI(cell) if isinstance(cell, str) and _BARE_IRI.fullmatch(cell) else stated_term(cell)
