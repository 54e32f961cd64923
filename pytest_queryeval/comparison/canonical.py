"""Canonical values of cells, and equality of two of them.

A value may equal others without being the same: numbers, points in time, lists and mappings, and texts of these.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import date, datetime, time
from decimal import Decimal
from itertools import chain, repeat
from operator import ne
from typing import Any, NamedTuple, TypeAlias, TypeGuard

from pytest_queryeval.comparison.graphs import maximum_matching
from pytest_queryeval.comparison.quantities import (
    DAY,
    Number,
    Temporal,
    as_float,
    decimals_of,
    is_close,
    read_temporal,
    temporal_of,
    widest_tolerance,
    xsd_time,
)
from pytest_queryeval.core.table import Cell, FrozenMapping, Literal, Policy, Table, TripleTerm, freeze_cell


class Nested(NamedTuple):
    """A list, or a struct or map, with canonical values as its parts."""

    parts: tuple[Hashable, ...] | frozenset[tuple[Hashable, Hashable]]
    """The elements of a list; the pairs of a struct or map: of keys and values."""


Quantity: TypeAlias = Number | Temporal | Nested
XSD = "http://www.w3.org/2001/XMLSchema#"
_NUMBER = re.compile(r"-?(0|[1-9][0-9]{0,399})(\.[0-9]{1,400})?([eE][+-]?[0-9]{1,3})?")
_XSD_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,4})?")
_MIDNIGHT = re.compile(r"(-?[0-9]{4,12}-[0-9]{2}-[0-9]{2})[ T]00:00(?::00(?:\.0+)?)?", re.IGNORECASE)
_SPACES = re.compile(r"\s+")
_PLAIN = frozenset((type(None), int, str, bytes))
_NUMBERS = frozenset((int, float, Decimal))
_CACHED = frozenset((str, Literal))  # of these, equal cells are written alike: 0.5 is not 0.500000
_MAY_BE_NAN = frozenset((float, Decimal))
_TEMPORAL = frozenset((date, datetime, time))
_NOT_NUMBERS = (Temporal, Nested)
_OPENING = ("[", "{")  # of JSON texts that are not scalars
_INTEGER_TYPES = frozenset(
    f"{XSD}{name}"
    for name in (
        *("integer", "long", "int", "short", "byte"),
        *("nonNegativeInteger", "positiveInteger", "nonPositiveInteger", "negativeInteger"),
        *("unsignedLong", "unsignedInt", "unsignedShort", "unsignedByte"),
    )
)
_TEMPORAL_TYPES = {
    f"{XSD}{name}": kind
    for kind, names in {
        "date": ("date",),
        "datetime": ("dateTime", "dateTimeStamp"),
        "time": ("time",),
        "duration": ("duration", "dayTimeDuration", "yearMonthDuration"),
    }.items()
    for name in names
}
_FLOAT_TYPES = frozenset((f"{XSD}float", f"{XSD}double"))
_NUMERIC_TYPES = _INTEGER_TYPES | _FLOAT_TYPES | {f"{XSD}decimal"}


class QuantityText(str):
    """A text that also equals the number, date or list that it spells, but no other text: "1.10" is not "1.1"."""

    __slots__ = ("quantity",)
    quantity: Quantity

    @classmethod
    def of(cls, text: str, quantity: Quantity) -> QuantityText:
        """Return `text` as a `QuantityText` with this quantity."""
        new = cls(text)
        new.quantity = quantity
        return new


class TypedNumber(NamedTuple):
    """A number that equals only numbers of the same RDF datatype."""

    number: Number
    datatype: str


Comparable: TypeAlias = int | float | Decimal | date | time | Temporal | QuantityText | TypedNumber | Nested


def is_comparable(value: Hashable) -> TypeGuard[Comparable]:
    """Return whether a canonical value is compared as a number, a point in time, a list or a mapping.

    Truth values and plain texts are not.
    """
    return isinstance(value, Comparable) and not isinstance(value, bool)


def quantity_of(value: Comparable) -> Quantity:
    """Return the number, the point in time, or the list or mapping that a value is compared by."""
    match value:
        case float() | int() | Decimal() | Temporal():
            return value
        case QuantityText():
            return value.quantity
        case TypedNumber():
            return value.number
        case date() | time():
            return temporal_of(value)
        case Nested():
            return value


def datatype_of(value: Comparable) -> str:
    """Return the RDF datatype that a number must share with numbers that equal it; empty if any datatype will do."""
    return value.datatype if isinstance(value, TypedNumber) else ""


def tolerance_type(value: Comparable) -> Hashable:
    """Return a key of the type, and of a Decimal's number of decimals; values with equal keys have the same tolerance.

    Values that are `==` can differ in it.

    >>> tolerance_type(3) == tolerance_type(3.0), tolerance_type(Decimal("0.5")) == tolerance_type(Decimal("0.500000"))
    (False, False)
    """
    if isinstance(value, Nested):
        return type(value), _tolerance_types(value.parts)
    number = value.number if isinstance(value, TypedNumber) else value
    kind: type = type(number)
    return (kind, decimals_of(number)) if isinstance(number, Decimal) else kind


def _tolerance_types(parts: Iterable[Any]) -> Hashable:
    if isinstance(parts, frozenset):
        return frozenset((key, *map(tolerance_type, (key, value))) for key, value in parts)
    return tuple(map(tolerance_type, parts))


def is_equal(x: Hashable, y: Hashable, policy: Policy) -> bool:
    """Return whether two canonical values are equal under the policy: the same, or near each other as quantities."""
    if x == y:
        return True
    x, y = read_text(x, policy), read_text(y, policy)
    return is_comparable(x) and is_comparable(y) and is_near(x, y, policy)


def read_text(value: Hashable, policy: Policy) -> Hashable:
    """Return a text that spells a date, a time, a duration, a list or a mapping as a `QuantityText`.

    Any other value is returned unchanged. With `dates: strict`, only lists and mappings are read.
    """
    if type(value) is not str:
        return value
    quantity: Quantity | None = None
    if value[:1] in _OPENING:
        with suppress(ValueError, RecursionError):
            nested = canonical_value(freeze_cell(json.loads(value, parse_float=Decimal)), policy)
            quantity = nested if isinstance(nested, Nested) else None
    elif policy.dates != "strict":
        quantity = read_temporal(value)
    return value if quantity is None else QuantityText.of(value, quantity)


def is_near(x: Comparable, y: Comparable, policy: Policy) -> bool:
    """Return whether two quantities are equal under the policy.

    Numbers must have the same datatype and be close, points in time must be the same, and lists and mappings must have
    equal parts. Two texts must be the same.
    """
    if type(x) is type(y) is float:
        return is_close(x, y, policy)
    if isinstance(x, QuantityText) and isinstance(y, QuantityText):
        return x == y
    x_quantity, y_quantity = quantity_of(x), quantity_of(y)
    if isinstance(x_quantity, _NOT_NUMBERS) or isinstance(y_quantity, _NOT_NUMBERS):
        if isinstance(x_quantity, Nested) and isinstance(y_quantity, Nested):
            return _has_near_parts(x_quantity.parts, y_quantity.parts, policy)
        return x_quantity == y_quantity
    return datatype_of(x) == datatype_of(y) and is_close(x_quantity, y_quantity, policy)


def _has_near_parts(x: Any, y: Any, policy: Policy) -> bool:
    """Return whether two lists have equal elements in order, or two mappings have pairs of equal keys and values."""
    if type(x) is not type(y) or len(x) != len(y):
        return False
    if isinstance(x, tuple):
        return all(map(is_equal, x, y, repeat(policy)))
    x_values, y_values = dict(x), dict(y)
    if x_values.keys() == y_values.keys() and all(is_equal(x_values[key], y_values[key], policy) for key in x_values):
        return True
    key_types = set(map(type, chain(x_values, y_values)))
    if key_types <= {str, QuantityText} or key_types == {int}:  # which are equal only if they are the same
        return False
    if key_types <= _NUMBERS:  # if keys can be paired, then in sorted order
        reach = widest_tolerance(policy).reach
        numbers = zip(*(sorted(map(as_float, keys)) for keys in (x_values, y_values)), strict=False)
        if any(abs(x_number - y_number) > reach(x_number) for x_number, y_number in numbers):
            return False
    y_pairs = list(y)
    fits = [
        [place for place, pair in enumerate(y_pairs) if all(map(is_equal, x_pair, pair, repeat(policy)))]
        for x_pair in x
    ]
    return all(fits) and len(maximum_matching(fits, len(y_pairs))) == len(y_pairs)


def skeleton_of(value: Hashable, policy: Policy) -> Hashable:
    """Return a key that is the same for all values that may be equal: numbers are replaced by a mark.

    Texts count as the quantities that they spell.

    >>> skeleton_of(Nested((2, "a")), Policy()) == skeleton_of(Nested((2.5, "a")), Policy())
    True
    """
    match quantity_in(value, policy):
        case Nested(parts=frozenset() as pairs):
            skeletons = ((skeleton_of(key, policy), skeleton_of(item, policy)) for key, item in pairs)
            return Nested, frozenset(Counter(skeletons).items())
        case Nested(parts=parts):
            return Nested, tuple([skeleton_of(part, policy) for part in parts])
        case int() | float() | Decimal():
            return float
        case quantity:
            return quantity


def numbers_in(value: Hashable, policy: Policy) -> Iterator[Number]:
    """Yield the numbers in a value, in the same order for all values with the same skeleton.

    Mappings with keys other than texts have no such order; their numbers are left out.
    """
    match quantity_in(value, policy):
        case Nested(parts=frozenset() as pairs):
            items = {key: item for key, item in pairs if isinstance(skeleton_of(key, policy), str)}
            for key in sorted(items) if len(items) == len(pairs) else ():
                yield from numbers_in(items[key], policy)
        case Nested(parts=parts):
            for part in parts:
                yield from numbers_in(part, policy)
        case int() | float() | Decimal() as number:
            yield number


def quantity_in(value: Hashable, policy: Policy) -> Hashable:
    """Return the number, the point in time, the list or the mapping that a value is or spells; else the value."""
    value = read_text(value, policy)
    return quantity_of(value) if is_comparable(value) else value


def canonical_rows(table: Table, policy: Policy) -> Sequence[tuple[Hashable, ...]]:
    """Return the rows with each cell replaced by its canonical value, which all spellings of a value share.

    Some equal cells keep different canonical values: numbers within the tolerance, and texts that equal a number, a
    date or a time. If no cell changes, as in most answers of SQL databases, `table.rows` itself is returned.
    """
    types = set(table.cell_types)
    if types & _MAY_BE_NAN and not any(map(ne, chain.from_iterable(table.rows), chain.from_iterable(table.rows))):
        types -= _MAY_BE_NAN  # only NaN, which is not equal to itself, is replaced
    if not _may_change(types, policy):
        return table.rows
    columns = [_canonical_column(column, policy) for column in zip(*table.rows, strict=True)]
    if all(new is old for new, old in columns):
        return table.rows
    return list(zip(*(new for new, _ in columns), strict=True))


def _may_change(types: set[type], policy: Policy) -> bool:
    folds = (
        policy.text_numbers or policy.case == "ignore" or policy.whitespace == "ignore" or policy.dates == "midnight"
    )
    plain = _PLAIN | _TEMPORAL if policy.dates == "by_value" else _PLAIN
    return not types <= plain or (folds and str in types)


def _canonical_column(column: tuple[Cell, ...], policy: Policy) -> tuple[Sequence[Hashable], Sequence[Hashable]]:
    """Return the canonical values of a column, and the column itself; both are the same object if no cell changes."""
    types = set(map(type, column))
    if types & _MAY_BE_NAN and not any(map(ne, column, column)):
        types -= _MAY_BE_NAN
    if not _may_change(types, policy):
        return column, column
    canonical_by_cell: dict[Cell, Hashable] = {}
    values: list[Hashable] = []
    for cell in column:
        if type(cell) not in _CACHED:
            values.append(canonical_value(cell, policy))
            continue
        if cell not in canonical_by_cell:
            canonical_by_cell[cell] = canonical_value(cell, policy)
        values.append(canonical_by_cell[cell])
    return values, column


def canonical_value(cell: Cell, policy: Policy) -> Hashable:
    """Return the canonical value of a cell, which all cells that are the same under the policy share."""
    match cell:
        case bool():
            return int(cell)  # true = 1, also where 1 is near 1.0000001
        case str():
            return _text(cell, policy)
        case float():
            return ("NaN",) if math.isnan(cell) else cell
        case Decimal():
            return ("NaN",) if cell.is_nan() else cell
        case Literal():
            return _literal(cell, policy)
        case TripleTerm():
            return TripleTerm(*(canonical_value(part, policy) for part in cell.parts))  # type: ignore[arg-type]  # cells
        case date() | time():
            return _moment(cell, policy)
        case tuple():
            return Nested(tuple([canonical_value(item, policy) for item in cell]))
        case FrozenMapping():
            return Nested(frozenset((_key(key, policy), canonical_value(item, policy)) for key, item in cell.items()))
        case _:
            return cell


def _moment(cell: date | time, policy: Policy) -> Hashable:
    if policy.dates == "strict":
        return ("moment", cell.isoformat())
    if policy.dates == "midnight" and isinstance(cell, datetime) and cell == datetime.combine(cell, time()):
        return cell.date()
    return cell


def _key(key: Cell, policy: Policy) -> Hashable:
    """Return the canonical value of a mapping's key; a text that spells a number also equals that number.

    JSON has no keys other than texts.
    """
    if isinstance(key, str):
        return QuantityText.of(key, _number(key)) if _NUMBER.fullmatch(key) else key
    return canonical_value(key, policy)


def _text(text: str, policy: Policy) -> Hashable:
    if policy.whitespace == "ignore":
        text = _SPACES.sub(" ", text).strip()
    if policy.dates == "midnight" and (midnight := _MIDNIGHT.fullmatch(text)):
        text = midnight[1]
    folded = text.casefold() if policy.case == "ignore" else text
    return QuantityText.of(folded, _number(text)) if policy.text_numbers and _NUMBER.fullmatch(text) else folded


def _number(text: str) -> Number:
    """Return the number that a text spells: an int for a whole number, a float if it has an exponent, else a Decimal.

    A number with an exponent that is too large for a float is a Decimal, too.
    """
    if text.removeprefix("-").isdigit():
        return int(text)
    number = Decimal(text)
    has_exponent = "e" in text.lower() and not math.isinf(float(number))
    return float(number) if has_exponent else number


def _literal(literal: Literal, policy: Policy) -> Hashable:
    """Return the canonical value of an RDF literal.

    With `rdf_terms: strict`, its datatype and language are part of the value.
    """
    if policy.rdf_terms == "value":
        return _literal_value(literal, policy)
    value = _literal_value(literal, replace(policy, text_numbers=False))
    if not literal.datatype and not literal.language:
        return value
    if literal.datatype in _NUMERIC_TYPES and isinstance(value, int | float | Decimal):
        return TypedNumber(value, literal.datatype)
    return value, literal.datatype, literal.language


def _literal_value(literal: Literal, policy: Policy) -> Hashable:
    """Return the value that an RDF literal has by its datatype; its text if the datatype does not allow the text."""
    text = literal.lexical.strip()
    if literal.datatype in _NUMERIC_TYPES:
        if text in ("NaN", "INF", "-INF", "+INF"):
            return canonical_value(float(text), policy)
        if len(text) > 800 or not _XSD_NUMBER.fullmatch(text):
            return text
        number = _number(text.removeprefix("+"))
        return as_float(number) if literal.datatype in _FLOAT_TYPES else number
    if literal.datatype == f"{XSD}boolean" and text in ("true", "1", "false", "0"):
        return int(text in ("true", "1"))
    if policy.dates != "strict" and (kind := _TEMPORAL_TYPES.get(literal.datatype)):
        value = xsd_time(text) if kind == "time" else read_temporal(text)
        if value and value.kind == kind:
            is_midnight = kind == "datetime" and not (value.has_zone or value.fraction or value.seconds % DAY)
            return value._replace(kind="date") if policy.dates == "midnight" and is_midnight else value
    return _text(literal.lexical, policy)
