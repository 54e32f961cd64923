"""Canonical values that may equal others without being the same: numbers, points in time, and texts of them."""

from __future__ import annotations

from collections.abc import Hashable
from datetime import date, time
from decimal import Decimal
from typing import NamedTuple, TypeAlias, TypeGuard

from pytest_queryeval.comparison.numbers import Number, decimals_of
from pytest_queryeval.comparison.temporal import Temporal, temporal_of

Quantity: TypeAlias = Number | Temporal


class ReadText(str):
    """A text that equals the quantity it reads as; no other text equals it, so "1.10" is not "1.1"."""

    __slots__ = ("quantity",)
    quantity: Quantity

    @classmethod
    def of(cls, text: str, quantity: Quantity) -> ReadText:
        """Return the text together with its quantity."""
        new = cls(text)
        new.quantity = quantity
        return new


class TypedNumber(NamedTuple):
    """A number that equals numbers of the same RDF datatype only."""

    number: Number
    datatype: str


Comparable: TypeAlias = int | float | Decimal | date | time | Temporal | ReadText | TypedNumber


def is_comparable(value: Hashable) -> TypeGuard[Comparable]:
    """Return whether a canonical value is compared as a quantity (truth values are not)."""
    return isinstance(value, Comparable) and not isinstance(value, bool)


def quantity_of(value: Comparable) -> Quantity:
    """Return the number or the point in time to compare by."""
    match value:
        case float() | int() | Decimal() | Temporal():
            return value
        case ReadText():
            return value.quantity
        case TypedNumber():
            return value.number
        case date() | time():
            return temporal_of(value)


def datatype_of(value: Comparable) -> str:
    """Return the datatype within which a number is compared; empty where numbers of all types are."""
    return value.datatype if isinstance(value, TypedNumber) else ""


def kind_of(value: Comparable) -> Hashable:
    """Return what tells two values apart that are the same by `==` and yet near other numbers: type and decimals.

    >>> kind_of(3) == kind_of(3.0), kind_of(Decimal("0.5")) == kind_of(Decimal("0.500000"))
    (False, False)
    """
    number = value.number if isinstance(value, TypedNumber) else value
    kind: type = type(number)
    return (kind, decimals_of(number)) if isinstance(number, Decimal) else kind
