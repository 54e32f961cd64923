"""The conditions of a clause as the text has them: one after the other, with their connectors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

from sqlglot import exp

from pytest_queryeval.languages.sql.trees.scope import Scope
from pytest_queryeval.languages.sql.trees.texts import MIRRORED, VALUE, Texts
from pytest_queryeval.languages.sql.view import NO_CONDITIONS, Condition, Conditions, Expression, Value, View

NestedView: TypeAlias = Callable[[exp.Expr, Scope], View]

_OPERATORS: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "!=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.In: "in",
    exp.Like: "like",
    exp.ILike: "like",
    exp.Between: "between",
    exp.Is: "is",
}


def conditions(node: exp.Expr | None, texts: Texts, scope: Scope, nested: NestedView) -> Conditions:
    """Return the conditions of a clause, sorted, as their order has no meaning."""
    if node is None:
        return NO_CONDITIONS
    leaves = list(_leaves(node, negated=False))
    # By their texts, which hold those of nested queries too.
    ordered = sorted(leaves, key=lambda leaf: texts.of(leaf[0], scope)) if len(leaves) > 1 else leaves
    terms = [_condition(leaf, texts, scope, nested, negated=negated) for leaf, negated, _ in ordered]
    return Conditions(tuple(terms), tuple(sorted(word for _, _, word in leaves[1:])))


def expression(node: exp.Expr, text: str) -> Expression:
    """Return what is selected, compared, grouped or sorted by; with the name alone where it is a column."""
    if isinstance(node.unnest(), exp.Column):
        return Expression(text, text.rpartition(".")[2])
    return Expression(text, aggregates=sum(1 for _ in node.find_all(exp.AggFunc)))


def _leaves(node: exp.Expr, *, negated: bool, word: str = "and") -> Iterator[tuple[exp.Expr, bool, str]]:
    """Yield single conditions, whether NOT is around them, and the connector before them."""
    if isinstance(node, exp.Paren | exp.Not):
        yield from _leaves(node.this, negated=negated != isinstance(node, exp.Not), word=word)
    elif isinstance(node, exp.And | exp.Or):
        for number, part in enumerate(node.flatten()):
            yield from _leaves(part, negated=negated, word=node.key if number else word)
    else:
        yield node, negated != bool(node.args.get("negate")), word


def _condition(node: exp.Expr, texts: Texts, scope: Scope, nested: NestedView, *, negated: bool) -> Condition:
    if isinstance(node, exp.Exists):
        return Condition(negated, "exists", Expression("exists"), (nested(node.this, scope),))
    operator = _OPERATORS.get(type(node))
    if operator is None:
        return Condition(negated, node.key, expression(node, texts.of(node, scope)))
    if operator == "is" and negated:  # IS NOT NULL is one operator, and no NOT
        operator, negated = "is not", False
    arguments = [node.args.get(name) for name in ("expression", "query", "low", "high")]
    sides = [node.this, *(side for side in (*arguments, *node.expressions[:1]) if side is not None)]
    written = [(side, texts.of(side, scope)) for side in sides]
    if operator in MIRRORED and _rank(*written[0]) > _rank(*written[1]):
        written, operator = written[::-1], MIRRORED[operator]
    left, *values = written
    return Condition(
        negated, operator, expression(*left), tuple(_value(*value, scope=scope, nested=nested) for value in values)
    )


def _rank(node: exp.Expr, text: str) -> tuple[int, str]:
    """Return the sort key of a side of a comparison: columns by their texts, then queries, then values."""
    return (2 if text == VALUE else int(isinstance(node.unnest(), exp.Query)), text)


def _value(node: exp.Expr, text: str, *, scope: Scope, nested: NestedView) -> Value:
    """Return a nested query, the text of an expression, or None for a literal value."""
    inner = node.this if isinstance(node, exp.All | exp.Any) else node
    if isinstance(inner.unnest(), exp.Query):
        return nested(inner, scope)
    return None if text == VALUE else text
