"""The answer of a query: columns, rows, and what is known about their order."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class IRI:
    """An RDF resource, never equal to a literal of the same text."""

    iri: str


@dataclass(frozen=True, slots=True)
class BlankNode:
    """An RDF blank node; its label means something within its own table only."""

    label: str


@dataclass(frozen=True, slots=True)
class Literal:
    """An RDF literal as it was written; `datatype` and `language` are empty for plain text."""

    lexical: str
    datatype: str = ""
    language: str = ""


Cell: TypeAlias = bool | int | float | Decimal | str | bytes | date | datetime | time | IRI | BlankNode | Literal | None
Row: TypeAlias = tuple[Cell, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tie:
    """A stretch of an ordered answer in which any `size` of `rows` may stand, in any order.

    `rows` holds more than `size` rows only where a LIMIT or OFFSET cut through the stretch.
    """

    size: int
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Table:
    """`rows` are tuples as long as `columns`. Compared and hashed by identity: equality is a matter of policy.

    `ties` is None where the order of rows means nothing; otherwise it covers the answer from the first row to the last.
    `is_graph` marks the triples of an RDF graph: its three columns are what they are, whatever the policy says of
    columns.
    """

    columns: tuple[str, ...]
    rows: tuple[Row, ...] | list[Row]
    ties: tuple[Tie, ...] | None = None
    is_graph: bool = False
