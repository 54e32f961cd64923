"""Sort keys that prefer rows with given values, and where a query sorts by them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import date, datetime, time
from decimal import Decimal
from math import isfinite
from typing import TypeAlias

from sqlglot import exp

from pytest_queryeval.core.table import DEFAULT_ABS, DEFAULT_REL, Cell
from pytest_queryeval.languages.sql.order import expanded

MAX_CELLS = 1_000  # of an answer, as literals in a query

Pair: TypeAlias = tuple[exp.Expr, int]  # an expression of a SELECT, and the output column that has its values

# Values


def type_name(value: Cell) -> str:
    """Return a name for the group of types whose values a query can compare with each other; "" for None."""
    match value:
        case None:
            return ""
        case bool():
            return "bool"
        case int() | float() | Decimal():
            return "number"
        case datetime() | time():
            return "time"
        case date():
            return "date"
        case str():
            return "text"
    return "other"


def is_comparable(expression: exp.Expr, value: Cell, types: AbstractSet[str]) -> bool:
    """Return whether a query can compare an expression, whose values have these types, with a predicted value."""
    if isinstance(value, tuple | Mapping):
        parts = _paired_parts(expression, value)
        return parts is not None and all(is_comparable(*part, {""}) for part in parts)
    if _literal(value) is None:
        return False
    is_date_as_text = type_name(value) == "text" and not types.isdisjoint({"date", "time"})
    return value is None or types == {""} or type_name(value) in types or is_date_as_text


def _paired_parts(expression: exp.Expr, value: Cell) -> list[tuple[exp.Expr, Cell]] | None:
    """Return pairs of the parts of an expression that makes a struct or a list, and those of a value.

    None if they differ.
    """
    plain = expression.unnest()
    if isinstance(plain, exp.Struct) and isinstance(value, Mapping):
        parts = {it.name: it.expression for it in plain.expressions if isinstance(it, exp.PropertyEQ)}
        return [(parts[str(name)], cell) for name, cell in value.items()] if parts.keys() == value.keys() else None
    is_row = isinstance(plain, exp.Anonymous) and plain.name.lower() == "row"
    if (is_row or isinstance(plain, exp.Array)) and isinstance(value, tuple):
        return list(zip(plain.expressions, value, strict=True)) if len(plain.expressions) == len(value) else None
    return None


def _literal(value: Cell) -> exp.Expr | None:
    """Return the literal of a value; None for a value that has no literal in every dialect."""
    match value:
        case datetime():
            return exp.Literal.string(value.isoformat(sep=" "))
        case date() | time():
            return exp.Literal.string(value.isoformat())
        case float() if not isfinite(value):
            return None
        case None | bool() | int() | float() | Decimal():
            return exp.convert(value)
        case str() if "\0" not in value:
            return exp.Literal.string(value)
    return None


def equals(expression: exp.Expr, value: Cell) -> exp.Expr:
    """Return the condition that an expression has a value; a float has to be within the default tolerance."""
    literal = _literal(value)
    if (parts := _paired_parts(expression, value)) is not None:
        return exp.and_(*(equals(*part) for part in parts), copy=False)
    if literal is None or value is None:
        return exp.Is(this=expression.copy(), expression=exp.null())
    if isinstance(value, float):
        width = max(abs(value) * DEFAULT_REL, DEFAULT_ABS)
        low, high = (exp.Literal.number(repr(value + side * width)) for side in (-1, 1))
        return exp.Between(this=expression.copy(), low=low, high=high)
    return exp.EQ(this=expression.copy(), expression=literal)


def has_values(pairs: Sequence[Pair], row: Sequence[Cell]) -> exp.Expr:
    """Return the condition that the expressions of `pairs` have the values of a row."""
    return exp.and_(*(equals(expression, value) for (expression, _), value in zip(pairs, row, strict=True)), copy=False)


def case_of(numbers: Sequence[tuple[exp.Expr, int]], otherwise: int) -> exp.Case | None:
    """Return a CASE with the number of the first condition that is true, or `otherwise`; None without conditions."""
    case = exp.Case(default=exp.Literal.number(otherwise))
    for condition, number in numbers:
        case.when(condition, exp.Literal.number(number), copy=False)
    return case if numbers else None


def append_keys(node: exp.Expr, keys: Sequence[exp.Expr]) -> None:
    """Add sort keys at the end of the ORDER BY of a query or a window, in the tree itself."""
    order = node.args.get("order") or exp.Order(expressions=[])
    order.set("expressions", [*order.expressions, *keys])
    if order.expressions:
        node.set("order", order)


def own_keys_of(node: exp.Expr) -> list[exp.Expr] | None:
    """Return the sort keys of a window or a SELECT in a form that windows can use.

    None if a key's column is unknown.
    """
    order = node.args.get("order")
    keys = order.expressions if order is not None else []
    known = [expanded(key, node, inner=False) if isinstance(node, exp.Select) else key for key in keys]
    return None if None in known else [key for key in known if key is not None]


def over(
    function: exp.Expr, keys: Sequence[exp.Expr], partition: Sequence[exp.Expr] = (), **args: exp.Expr
) -> exp.Window:
    """Return a window function over rows sorted by `keys` within a partition; the expressions are copied."""
    order = exp.Order(expressions=[key.copy() for key in keys]) if keys else None
    return exp.Window(this=function, partition_by=[key.copy() for key in partition], order=order, over="OVER", **args)


def peers() -> exp.WindowSpec:
    """Return the window frame of the rows that tie with a row."""
    return exp.WindowSpec(kind="RANGE", start="CURRENT ROW", end="CURRENT ROW")


def sort_rotated(node: exp.Expr, keys: Sequence[exp.Expr], first: int, *, is_nested: bool) -> None:
    """Sort the rows that tie at a LIMIT or a window by extra keys, counted from the place `first` on; changes the tree.

    The keys decide which rows that tie are at this place and behind it. The rows that are left take the places before.
    With `is_nested`, windows within the sort keys of a window will be nested later.
    """
    own_keys = own_keys_of(node)
    if own_keys is None:
        append_keys(node, keys)
        return
    partition = node.args.get("partition_by") or ()
    rank = over(exp.Anonymous(this="RANK"), own_keys, partition)
    number_of_ties = over(exp.Count(this=exp.Star()), own_keys, partition, spec=peers())
    shift = exp.Case(default=exp.Literal.number(0)).when(rank < first, exp.Literal.number(first) - rank.copy())
    number = over(exp.RowNumber(), [*own_keys, *keys], partition)
    place = exp.paren(number - rank.copy() + shift) % number_of_ties
    if isinstance(node, exp.Window) and not is_nested:
        node.replace(exp.paren(rank + place))
    else:
        append_keys(node, [exp.Ordered(this=place)])


def sort_arguments(node: exp.Expr, keys: Sequence[exp.Expr]) -> None:
    """Add sort keys to the arguments of an aggregate, in the tree itself; DISTINCT arguments stay unsorted."""
    arguments = node.expressions if isinstance(node, exp.Anonymous) else [node.args.get("expression") or node.this]
    last = arguments[-1]
    if isinstance(last, exp.Distinct):  # sorts by itself alone
        return
    if isinstance(last, exp.Order):
        last.set("expressions", [*last.expressions, *keys])
    elif keys:
        last.replace(exp.Order(this=last.copy(), expressions=keys))


def elements_of(collected: exp.Expr, dialect: str) -> exp.Expr:
    """Return an aggregate that lists the elements of a collection as texts, or as JSON."""
    if dialect == "sqlite":
        return exp.Anonymous(this="JSON_GROUP_ARRAY", expressions=[collected])
    return exp.cast(exp.ArrayAgg(this=collected), exp.DataType.build("TEXT[]", dialect="postgres"))
