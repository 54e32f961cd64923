"""What predicted SQL queries may read, as suites state it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

Constant: TypeAlias = str | int | float | bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """The tables, columns and rows that predicted SQL queries may read, by names as the database folds them."""

    tables: tuple[str, ...] | None = None
    """Names, `shop.*` for all of a schema; None for all tables of the source."""
    columns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The columns by tables; a table that is not among them has all."""
    deny: tuple[str, ...] = ()
    """Columns of all tables, or of one: `users.salary`."""
    where: Mapping[str, Mapping[str, Constant]] = field(default_factory=dict)
    """By tables, the columns that each use has to equate with a constant."""
