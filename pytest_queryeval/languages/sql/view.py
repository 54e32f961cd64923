"""The parts of one query, whichever reader made them: components, verdicts and hardness are computed from these.

A reader makes a raw view, with values and DISTINCT as written, and a second one that is normalized for comparison.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias


@dataclass(frozen=True, slots=True)
class Expression:
    """What is selected, compared, grouped or sorted by.

    Two expressions are equal iff their keys and column names are. `column` is the name alone, without its table, where
    the expression is one column.
    """

    key: Hashable
    column: str = ""
    aggregates: int = field(default=0, compare=False)


class Item(NamedTuple):
    """An item of SELECT; `aggregate` is the outermost aggregate in lower case, empty without one."""

    aggregate: str
    expression: Expression


Value: TypeAlias = Hashable  # None once its value is dropped, a `View` for a nested query


class Condition(NamedTuple):
    """`left [NOT] operator values`: one value, two for BETWEEN. Operators are in lower case."""

    negated: bool
    operator: str
    left: Expression
    values: tuple[Value, ...] = ()


@dataclass(frozen=True, slots=True)
class Conditions:
    """The conditions of one clause and the connectors between them, `and` or `or`, as a flat list."""

    terms: tuple[Condition, ...] = ()
    connectors: tuple[Hashable, ...] = ()

    def __len__(self) -> int:
        return len(self.terms) + len(self.connectors)


NO_CONDITIONS = Conditions()


class Ordering(NamedTuple):
    """ORDER BY; `direction` is `asc` or `desc`, or any other value by which a reader compares directions."""

    direction: Hashable
    expressions: tuple[Expression, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """One SELECT with its clauses, and the rest of its set operation.

    `tables` are what FROM joins: names, or views of queries. `on` holds the conditions of all its joins. `operation` is
    `union`, `intersect` or `except`, and `arm` the query after it, which may have an arm of its own.
    """

    select: tuple[Item, ...] = ()
    distinct: bool = False
    tables: tuple[Hashable, ...] = ()
    on: Conditions = NO_CONDITIONS
    where: Conditions = NO_CONDITIONS
    group: tuple[Expression, ...] = ()
    having: Conditions = NO_CONDITIONS
    order: Ordering | None = None
    limit: Hashable = None
    operation: str | None = None
    arm: View | None = None

    def terms(self) -> Iterator[Condition]:
        """Yield the conditions of ON, WHERE and HAVING."""
        yield from self.on.terms
        yield from self.where.terms
        yield from self.having.terms

    def connectors(self) -> Iterator[Hashable]:
        """Yield the connectors of the conditions of ON, of WHERE and of HAVING."""
        yield from self.on.connectors
        yield from self.where.connectors
        yield from self.having.connectors


EMPTY_VIEW = View()
