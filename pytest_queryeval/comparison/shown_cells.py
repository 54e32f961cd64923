"""Cells as text for people, and the names of their types."""

from __future__ import annotations

from datetime import date, datetime, time
from decimal import Decimal

from pytest_queryeval.comparison.canonical import XSD
from pytest_queryeval.core.jsonable import to_jsonable
from pytest_queryeval.core.table import IRI, BlankNode, Cell, Literal, TripleTerm
from pytest_queryeval.text.truncation import CELL_AHEAD, cell_text


def shown_cell(cell: Cell, characters: int) -> str:
    """Return a cell on one line, as reports show it."""
    return cell_text(to_jsonable(cell[:CELL_AHEAD] if isinstance(cell, str | bytes) else cell), characters)


def type_name(cell: Cell) -> str:
    """Return the name of a cell's type for messages; of an RDF literal its datatype or language.

    >>> type_name(Literal("20", f"{XSD}integer")), type_name("20")
    ('xsd:integer', 'text')
    """
    match cell:
        case Literal(datatype=datatype, language=language):
            short = datatype.replace(XSD, "xsd:", 1) if datatype.startswith(XSD) else f"<{datatype}>"
            return f"@{language}" if language else short if datatype else "xsd:string"
        case IRI():
            return "IRI"
        case BlankNode():
            return "blank node"
        case TripleTerm():
            return "triple term"
        case None:
            return "NULL"
    names = {bool: "boolean", int: "integer", float: "float", Decimal: "decimal", str: "text", bytes: "bytes"}
    names |= {datetime: "timestamp", date: "date", time: "time"}
    return next(name for kind, name in names.items() if isinstance(cell, kind))
