"""What a tree is made of, by the names of `languages.sql.view`."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

_ALWAYS: dict[type[exp.Expr], str] = {
    exp.Join: "join",
    exp.Group: "grouping",
    exp.Window: "window",
    exp.Distinct: "distinct",
    **dict.fromkeys((exp.Union, exp.Intersect, exp.Except), "set-operation"),
}


def tree_features(tree: exp.Expr) -> Iterator[str]:
    """Yield the features of a query, each as often as it has them.

    A comma in FROM is a join, a query of WITH is nested, the arms of a set operation are not. A function with OVER is
    a window, not an aggregate. ORDER BY counts for a query, not within OVER or an aggregate; DISTINCT within an
    aggregate does.
    """
    for node in tree.walk():
        match node:
            case exp.AggFunc():
                if not isinstance(_outside(node, exp.Filter, exp.WithinGroup, exp.IgnoreNulls), exp.Window):
                    yield "aggregate"
            case exp.Order():
                if isinstance(node.parent, exp.Query):
                    yield "order"
            case exp.Select():
                if _outside(node, exp.SetOperation, exp.Subquery) is not None:
                    yield "nesting"
            case _:
                if name := _ALWAYS.get(type(node)):
                    yield name


def count_common_queries(tree: exp.Expr) -> int:
    """Return how many queries the WITH of a query has, without those in nested queries and in each other."""
    nodes = tree.walk(prune=lambda node: isinstance(node, (exp.CTE, exp.From, exp.Join, exp.Where, exp.Having)))
    return sum(isinstance(node, exp.CTE) for node in nodes)


def _outside(node: exp.Expr, *outer_types: type[exp.Expr]) -> exp.Expr | None:
    """Return the nearest node around one that is of another type than these; None at the root."""
    parent = node.parent
    while isinstance(parent, outer_types):
        parent = parent.parent
    return parent
