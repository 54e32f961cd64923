"""What a case states about any right answer, without a gold or next to one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from pytest_queryeval.core.errors import Location

ValueRule: TypeAlias = Literal["min", "max", "in", "not_null", "unique", "matches"]
Rule: TypeAlias = Literal["rows", "columns", "contains"] | ValueRule


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """A condition that any right answer of a case must meet."""

    name: str
    """Its place below `expect`, such as `values.price.min`."""
    rule: Rule
    value: Any
    """Of `rows` the least and the greatest number, None where that side is open; of `columns` their number or names; of
    `contains` rows, each a tuple of all cells or a dict of some by their columns; of `min` and `max` a cell, of `in`
    cells, of `matches` a compiled pattern; of the other rules of values true."""
    text: str
    """The value as the suite states it, in one line."""
    column: str = ""
    """The column whose values it is about, by its name or its position from 0; empty for the whole answer."""
    location: Location | None = field(default=None, compare=False)
    """Where the suite states it."""
