"""Cells that differ in their type only and so are shown by the same text, such as text 3 and integer 3."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from datetime import date, datetime, time
from decimal import Decimal

from pytest_queryeval.comparison.canonical import XSD, canonical, is_equal
from pytest_queryeval.comparison.difference import Difference
from pytest_queryeval.core.policy import Policy
from pytest_queryeval.core.table import IRI, BlankNode, Cell, Literal


def lookalikes(found: Difference, policy: Policy, shown: Callable[[Cell], str]) -> list[tuple[int, Cell, Cell]]:
    """Return pairs of a gold and a predicted cell of one column that are unequal and yet shown by the same text."""
    golds = (*found.missing, *(gold for gold, _ in found.changed))
    others = (*found.extra, *(predicted for _, predicted in found.changed))
    by_text = defaultdict(list)
    for column, cell in (place for row in golds for place in enumerate(row)):
        by_text[column, shown(cell)].append(cell)
    return [
        (column, gold, cell)
        for column, cell in (place for row in others for place in enumerate(row))
        for gold in by_text.get((column, shown(cell)), ())
        if type_name(gold) != type_name(cell) and not is_equal(canonical(gold, policy), canonical(cell, policy), policy)
    ]


def text_and_number(cell: Cell, other: Cell) -> bool:
    """Return whether one of two cells is a text and the other one a number."""
    return {str} < {type(cell), type(other)} < {str, int, float, Decimal}


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
        case None:
            return "NULL"
    names = {bool: "boolean", int: "integer", float: "float", Decimal: "decimal", str: "text", bytes: "bytes"}
    names |= {datetime: "timestamp", date: "date", time: "time"}
    return next(name for kind, name in names.items() if isinstance(cell, kind))
