"""Raw views made comparable the way Spider's published evaluation does it."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import TypeAlias, cast

from pytest_queryeval.core.schema import Column, Schema
from pytest_queryeval.languages.sql.published.grammar import Arithmetic, Operand, read
from pytest_queryeval.languages.sql.published.names import Names, names_of
from pytest_queryeval.languages.sql.published.tokens import UnreadableQueryError
from pytest_queryeval.languages.sql.view import EMPTY_VIEW, Condition, Conditions, Expression, Item, Ordering, View

Mapped: TypeAlias = Mapping[Column, Column]


def comparable_view(query: str, schema: Schema | None = None) -> View:
    """The view of a query that components and the verdict compare; `EMPTY_VIEW` where the grammar rejects it."""
    return _comparable(query, names_of(schema))


@lru_cache(maxsize=1024)
def _comparable(query: str, names: Names) -> View:
    try:
        return _normalised(read(query, names), names)
    except UnreadableQueryError:
        return EMPTY_VIEW


def normalised(view: View, schema: Schema | None = None) -> View:
    """The view without values and DISTINCT, and with one column in place of all that foreign keys make equal.

    Only columns of the tables in the outer FROM are replaced, in all arms of a set operation. Nested queries lose the
    values of their conditions, and nothing else; queries in FROM stay as they are.
    """
    return _normalised(view, names_of(schema))


def _normalised(view: View, names: Names) -> View:
    return _plain(view, names.equal_columns(view.tables))


def _plain(view: View, equal: Mapped) -> View:
    return View(
        select=tuple(Item(item.aggregate, _expression(item.expression, equal)) for item in view.select),
        tables=view.tables,
        on=_plain_conditions(view.on, equal),
        where=_plain_conditions(view.where, equal),
        group=tuple(_grouped(key, equal) for key in view.group),
        having=_plain_conditions(view.having, equal),
        order=_plain_order(view.order, equal),
        limit=view.limit,
        operation=view.operation,
        arm=None if view.arm is None else _plain(view.arm, equal),
    )


def _plain_order(order: Ordering | None, equal: Mapped) -> Ordering | None:
    if order is None:
        return None
    return Ordering(order.direction, tuple(_expression(key, equal) for key in order.expressions))


def _plain_conditions(conditions: Conditions, equal: Mapped) -> Conditions:
    if not conditions.terms:
        return conditions
    return Conditions(tuple(_plain_condition(term, equal) for term in conditions.terms), conditions.connectors)


def _plain_condition(term: Condition, equal: Mapped) -> Condition:
    return Condition(term.negated, term.operator, _expression(term.left, equal), _without_values(term.values))


def _without_values(values: tuple[Hashable, ...]) -> tuple[Hashable, ...]:
    return tuple(_nested(value) if isinstance(value, View) else None for value in values)


def _nested(view: View) -> View:
    return replace(
        view,
        on=_valueless(view.on),
        where=_valueless(view.where),
        having=_valueless(view.having),
        arm=None if view.arm is None else _nested(view.arm),
    )


def _valueless(conditions: Conditions) -> Conditions:
    terms = tuple(
        Condition(term.negated, term.operator, term.left, _without_values(term.values)) for term in conditions.terms
    )
    return Conditions(terms, conditions.connectors)


def _expression(expression: Expression, equal: Mapped) -> Expression:
    operator, first, second = cast(Arithmetic, expression.key)
    key = operator, _operand(first, equal), None if second is None else _operand(second, equal)
    return Expression(key, expression.column, expression.aggregates)


def _operand(operand: Operand, equal: Mapped) -> Operand:
    aggregate, column, _ = operand
    return aggregate, equal.get(column, column), None


def _grouped(key: Expression, equal: Mapped) -> Expression:
    """Columns alone are compared in GROUP BY."""
    _, column, _ = cast(Operand, key.key)
    column = equal.get(column, column)
    return Expression(column, column[1])
