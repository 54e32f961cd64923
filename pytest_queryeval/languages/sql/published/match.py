"""Queries made comparable as Spider's published evaluation does it, a pair of them, and what its table needs of it."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TypeAlias, cast

from pytest_queryeval.core.case_report import ComponentName, SpiderDetails
from pytest_queryeval.core.db_schema import Column, Schema
from pytest_queryeval.languages.sql.match import Component, exact_match, partial_match
from pytest_queryeval.languages.sql.published.grammar import Arithmetic, Operand, published_view
from pytest_queryeval.languages.sql.published.names import names_of
from pytest_queryeval.languages.sql.published.table import ScoredPair
from pytest_queryeval.languages.sql.published.tokens import UnreadableQueryError
from pytest_queryeval.languages.sql.view import (
    EMPTY_VIEW,
    Condition,
    Conditions,
    Expression,
    Item,
    Ordering,
    View,
    hardness,
)

EqualColumns: TypeAlias = Mapping[Column, Column]


@lru_cache(maxsize=1024)
def comparable_view(query: str, schema: Schema | None = None) -> View:
    """Return the view of a query that components and the verdict compare; `EMPTY_VIEW` if the grammar rejects it.

    It has no values and no DISTINCT, and one column in place of all that foreign keys make equal. Only columns of the
    tables in the outer FROM are replaced, in all arms of a set operation. Nested queries lose the values of their
    conditions, and nothing else; queries in FROM stay as they are.
    """
    try:
        view = published_view(query, schema)
    except UnreadableQueryError:
        return EMPTY_VIEW
    return _normalized(view, names_of(schema).equal_columns(view.tables))


def _normalized(view: View, equal: EqualColumns) -> View:
    order = view.order
    if order is not None:
        order = Ordering(order.direction, tuple(_expression(key, equal) for key in order.expressions))
    group = []  # columns alone are compared in GROUP BY
    for key in view.group:
        _, column, _ = cast(Operand, key.key)
        column = equal.get(column, column)
        group.append(Expression(column, column[1]))
    return View(
        select=tuple(Item(item.aggregate, _expression(item.expression, equal)) for item in view.select),
        tables=view.tables,
        on=_conditions(view.on, equal),
        where=_conditions(view.where, equal),
        group=tuple(group),
        having=_conditions(view.having, equal),
        order=order,
        limit=view.limit,
        operation=view.operation,
        arm=None if view.arm is None else _normalized(view.arm, equal),
    )


def _conditions(conditions: Conditions, equal: EqualColumns | None) -> Conditions:
    """Return conditions without values; their columns stay as they are where `equal` is None."""
    if not conditions.terms:
        return conditions
    terms = tuple(
        Condition(
            term.negated,
            term.operator,
            term.left if equal is None else _expression(term.left, equal),
            tuple(_without_values(value) if isinstance(value, View) else None for value in term.values),
        )
        for term in conditions.terms
    )
    return Conditions(terms, conditions.connectors)


def _without_values(view: View) -> View:
    return replace(
        view,
        on=_conditions(view.on, None),
        where=_conditions(view.where, None),
        having=_conditions(view.having, None),
        arm=None if view.arm is None else _without_values(view.arm),
    )


def _expression(expression: Expression, equal: EqualColumns) -> Expression:
    operator, first, second = cast(Arithmetic, expression.key)
    key: Hashable = operator, _operand(first, equal), None if second is None else _operand(second, equal)
    return Expression(key, expression.column, expression.aggregates)


def _operand(operand: Operand, equal: EqualColumns) -> Operand:
    aggregate, column, _ = operand
    return aggregate, equal.get(column, column), None


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedMatch:
    """The verdict, the hardness of gold, the components; `rejected` says why the grammar does not read predicted."""

    exact: bool
    hardness: str
    components: Mapping[ComponentName, Component]
    rejected: str = ""

    def to_json(self) -> SpiderDetails:
        """Return `details.spider`: of each component the totals of gold and of predicted, and what they share."""
        components = {name: [part.gold_total, part.pred_total, part.count] for name, part in self.components.items()}
        details: SpiderDetails = {"hardness": self.hardness, "exact": self.exact, "components": components}
        if self.rejected:
            details["rejected"] = self.rejected
        return details


def match_as_published(gold: str, predicted: str, schema: Schema) -> PublishedMatch:
    """Compare two queries; raise `UnreadableQueryError` if the published grammar does not read gold."""
    level = hardness(published_view(gold, schema))
    rejected = ""
    try:
        published_view(predicted, schema)
    except UnreadableQueryError as error:
        rejected = str(error)
    gold_view, predicted_view = comparable_view(gold, schema), comparable_view(predicted, schema)
    components = partial_match(gold_view, predicted_view)
    exact = exact_match(gold_view, predicted_view, components)
    return PublishedMatch(exact=exact, hardness=level, components=components, rejected=rejected)


def scored_pair(details: SpiderDetails, execution: float | None) -> ScoredPair:
    """Return what a pair adds to the table, from its `PublishedMatch.to_json`."""
    components = {name: Component(*totals) for name, totals in details["components"].items()}
    return ScoredPair(hardness=details["hardness"], exact=details["exact"], components=components, execution=execution)
