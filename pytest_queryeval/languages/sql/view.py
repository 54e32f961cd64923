"""The parts of one query, whichever reader made them, with its hardness, and the names of features.

A reader makes a raw view, with values and DISTINCT as written, and a second one that is normalized for comparison.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias, get_args

Feature: TypeAlias = Literal["join", "aggregate", "grouping", "nesting", "set-operation", "window", "order", "distinct"]
FEATURES: tuple[Feature, ...] = get_args(Feature)


@dataclass(frozen=True, slots=True)
class Expression:
    """An expression that is selected, compared, grouped or sorted by.

    Two expressions are equal iff their keys and column names are. `column` is the name alone, without its table, if the
    expression is a column.
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
    """`left [NOT] operator values`: a value, or two for BETWEEN. Operators are in lower case."""

    negated: bool
    operator: str
    left: Expression
    values: tuple[Value, ...] = ()


@dataclass(frozen=True, slots=True)
class Conditions:
    """The conditions of a clause and the connectors between them, `and` or `or`, as a flat list."""

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
    """A SELECT with its clauses, and the rest of its set operation.

    `tables` are what FROM joins: names, or views of queries. `on` are the conditions of all its joins. `operation` is
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
        """Yield the connectors between the conditions of ON, of WHERE and of HAVING."""
        yield from self.on.connectors
        yield from self.where.connectors
        yield from self.having.connectors


EMPTY_VIEW = View()


def hardness(view: View, common_queries: int = 0) -> str:
    """Return `easy`, `medium`, `hard` or `extra`, from the raw view of a gold query.

    Queries in WITH, which the published grammar rejects, count like nested ones: `common_queries` is their number.

    Three counts decide: clauses, nested queries, and clauses with more than one part. Source: the code of Spider's
    published evaluation. Its document differs: it counts HAVING as a clause and aggregates in conditions as aggregates.
    The code does not, but counts each NOT and each connector of HAVING as an aggregate. Labels of published tables
    follow the code. Combinations that the document does not name, such as 2 clauses and 2 with more than one part, are
    `extra`.
    """
    terms = list(view.terms())
    nested = sum(isinstance(value, View) for term in terms for value in term.values) + (view.arm is not None)
    nested += common_queries

    clauses = (len(view.where) > 0) + (len(view.group) > 0) + (view.order is not None) + (view.limit is not None)
    clauses += max(len(view.tables) - 1, 0)
    clauses += sum(connector == "or" for connector in view.connectors())
    clauses += sum(term.operator == "like" for term in terms)

    aggregates = sum(item.aggregate != "" for item in view.select)
    sort_keys = view.order.expressions if view.order else ()
    aggregates += sum(expression.aggregates for expression in (*view.group, *sort_keys))
    aggregates += sum(term.negated for term in (*view.where.terms, *view.having.terms))
    aggregates += sum(isinstance(word, str) for word in view.having.connectors)
    multiple = (aggregates > 1) + (len(view.select) > 1) + (len(view.where) > 1) + (len(view.group) > 1)

    if nested > 0:
        return "hard" if nested == 1 and clauses <= 1 and multiple == 0 else "extra"
    if clauses <= 1 and multiple == 0:
        return "easy"
    if (clauses <= 1 and multiple <= 2) or (clauses <= 2 and multiple < 2):
        return "medium"
    if (clauses <= 2 < multiple) or (clauses == 3 and multiple <= 2):
        return "hard"
    return "extra"
