"""When two cells are equal: the comparison policy that all table metrics share."""

from __future__ import annotations

import math
import re
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time
from decimal import Decimal
from itertools import chain
from operator import ne
from typing import Literal as OneOf

from pytest_queryeval.table import Cell, Literal, Table

XSD = "http://www.w3.org/2001/XMLSchema#"
_NUMBER = re.compile(r"-?(0|[1-9][0-9]{0,399})(\.[0-9]{1,400})?([eE][+-]?[0-9]{1,3})?")
_XSD_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,4})?")
_MOMENT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}")
_ZONED = re.compile(r"(.{16}(?::[0-9]{2})?)(?:\.([0-9]{1,6}))?(?:Z|[+-][0-9]{2}:[0-9]{2})")
_SPACES = re.compile(r"\s+")
_PLAIN = frozenset((type(None), int, str, bytes))
_NUMERIC_TYPES = frozenset(
    f"{XSD}{name}"
    for name in (
        *("integer", "decimal", "float", "double", "long", "int", "short", "byte"),
        *("nonNegativeInteger", "positiveInteger", "nonPositiveInteger", "negativeInteger"),
        *("unsignedLong", "unsignedInt", "unsignedShort", "unsignedByte"),
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The `compare` settings of a case; every field is a key there, `rel` and `abs` stand under `numbers`.

    `rel` and `abs`: two numbers are equal when |x - y| <= max(rel * max(|x|, |y|), abs); two integers exactly.
    """

    rel: float = 1e-6
    abs: float = 1e-9
    text_numbers: bool = False
    case: OneOf["keep", "ignore"] = "keep"
    whitespace: OneOf["keep", "ignore"] = "keep"
    dates: OneOf["by_value", "strict"] = "by_value"
    duplicates: OneOf["count", "ignore"] = "count"
    row_order: OneOf["auto", "ignore", "strict"] = "auto"
    columns: OneOf["any", "positional", "by_name"] = "any"
    extra_columns: OneOf["reject", "allow"] = "reject"
    rdf_terms: OneOf["value", "strict"] = "value"

    def of(self, gold: Table) -> Policy:
        """The policy for an answer: a graph is a set of triples, so neither its columns nor its rows may be moved."""
        return replace(self, columns="positional", row_order="ignore") if gold.is_graph else self

    def close(self, x: float | Decimal, y: float | Decimal) -> bool:
        """Whether two numbers are equal within the tolerance; two integers must be the same."""
        if x == y:
            return True
        if isinstance(x, int) and isinstance(y, int):
            return False
        x, y = _as_float(x), _as_float(y)
        if math.isinf(x) or math.isinf(y):
            return False
        return abs(x - y) <= max(self.rel * max(abs(x), abs(y)), self.abs)


def canonical_rows(table: Table, policy: Policy) -> Sequence[tuple[Hashable, ...]]:
    """The rows with every cell replaced by its canonical value: equal cells become equal, hashable values.

    Numbers stay numbers, so that those within the tolerance can be found later. Where nothing is to be replaced, as in
    most answers of SQL databases, `table.rows` itself comes back.
    """
    types = set(map(type, chain.from_iterable(table.rows)))
    if float in types and not any(map(ne, chain.from_iterable(table.rows), chain.from_iterable(table.rows))):
        types.discard(float)  # only NaN, which is not equal to itself, is replaced
    if not _may_change(types, policy):
        return table.rows
    columns = [_canonical_column(column, policy) for column in zip(*table.rows, strict=True)]
    if all(new is old for new, old in columns):
        return table.rows
    return list(zip(*(new for new, _ in columns), strict=True))


def _may_change(types: set[type], policy: Policy) -> bool:
    folds = policy.text_numbers or policy.case == "ignore" or policy.whitespace == "ignore"
    return not types <= _PLAIN or (folds and str in types)


def _canonical_column(column: tuple[Cell, ...], policy: Policy) -> tuple[Sequence[Hashable], Sequence[Hashable]]:
    """The canonical values of a column, and the column; the same object where they are the same."""
    types = set(map(type, column))
    if float in types and not any(map(ne, column, column)):
        types.discard(float)
    if not _may_change(types, policy):
        return column, column
    known: dict[tuple[type, Cell], Hashable] = {}
    return [_canonical_once(cell, policy, known) for cell in column], column


def _canonical_once(cell: Cell, policy: Policy, known: dict[tuple[type, Cell], Hashable]) -> Hashable:
    if cell is None or type(cell) is int:
        return cell
    key = (type(cell), cell)
    if key not in known:
        known[key] = canonical(cell, policy)
    return known[key]


def canonical(cell: Cell, policy: Policy) -> Hashable:
    """The value that stands for `cell`; cells that are equal without tolerance have equal values."""
    match cell:
        case bool():
            return int(cell)  # true = 1, also where 1 is near 1.0000001
        case str():
            return _text(cell, policy)
        case float():
            return ("NaN",) if math.isnan(cell) else cell
        case Decimal():
            return _decimal(cell)
        case Literal():
            return _literal(cell, policy)
        case date() | time():
            return _moment(cell.isoformat(), policy)
        case _:
            return cell


def _text(text: str, policy: Policy) -> Hashable:
    if policy.whitespace == "ignore":
        text = _SPACES.sub(" ", text).strip()
    if policy.dates == "by_value" and _MOMENT.match(text):
        text = _same_moment(text)
    if policy.text_numbers and _NUMBER.fullmatch(text):
        return _number(text)
    return text.casefold() if policy.case == "ignore" else text


def _number(text: str) -> Hashable:
    if text.lstrip("-").isdigit():
        return int(text)
    return _decimal(Decimal(text))


def _decimal(number: Decimal) -> Hashable:
    """A float where it says the same, for speed; the Decimal itself where digits would be lost."""
    if number.is_nan():
        return ("NaN",)
    as_float = _as_float(number)
    return as_float if as_float == number or abs(as_float) < 2**53 else number


def _as_float(number: float | Decimal) -> float:
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def _literal(literal: Literal, policy: Policy) -> Hashable:
    """By value unless `rdf_terms: strict`; a literal that its datatype does not allow counts as its text."""
    if policy.rdf_terms == "strict":
        return literal if literal.datatype or literal.language else literal.lexical
    text = literal.lexical.strip()
    if literal.datatype in _NUMERIC_TYPES:
        if text in ("NaN", "INF", "-INF", "+INF"):
            return canonical(float(text), policy)
        return _number(text.removeprefix("+")) if len(text) <= 800 and _XSD_NUMBER.fullmatch(text) else text
    if literal.datatype == f"{XSD}boolean" and text in ("true", "1", "false", "0"):
        return int(text in ("true", "1"))
    return _text(literal.lexical, policy)


def _moment(text: str, policy: Policy) -> Hashable:
    if policy.dates != "by_value":
        return ("moment", text)
    return _same_moment(text) if _MOMENT.match(text) else text


def _same_moment(text: str) -> str:
    """One spelling for a moment: with T, as RFC 3339 also allows a blank, and in UTC where it has a time zone."""
    text = f"{text[:10]}T{text[11:]}"
    if not _ZONED.fullmatch(text):
        return text
    try:
        return datetime.fromisoformat(text).astimezone(UTC).isoformat()
    except (ValueError, OverflowError):  # no such day, or one at the edge of time
        return text
