"""Gold in the shape of a predicted query: conditions on nested queries in the place of joins and set operations.

Duplicates and NULL are disregarded: what edits make is run anyway.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlglot import exp

from pytest_queryeval.features.causes import best_pairs, without
from pytest_queryeval.features.causes.sql import changes, parts
from pytest_queryeval.features.causes.sql.parts import key, query_within, sources, table_names

_GROUPS, _FIRST = ("group", "having"), ("order", "limit", "offset")


@dataclass(frozen=True, slots=True, eq=False)
class _Nested:
    """A condition that a column has one of the values of a query, or none of them, however it is written."""

    condition: exp.Expr
    column: exp.Column
    query: exp.Select
    """It selects one column."""

    @property
    def is_negated(self) -> bool:
        """Whether the column may have none of the values."""
        return isinstance(self.condition, exp.Not)

    @property
    def tables(self) -> set[str]:
        """The names of all tables that the query reads."""
        return parts.all_tables(self.query)


def in_shape_of(gold: exp.Expr, predicted: exp.Expr) -> exp.Expr | None:
    """Return gold with conditions, joins and set operations as predicted has them; None if nothing is to be rewritten.

    All columns have the name of their table.
    """
    if not any(select.parent for tree in (gold, predicted) for select in tree.find_all(exp.Select)):
        return None  # neither of them nests or combines queries
    reshaped = _reshaped(gold.copy(), predicted)
    return None if key(reshaped) == key(gold) else reshaped


def _reshaped(gold: exp.Expr, predicted: exp.Expr) -> exp.Expr:
    gold, predicted = query_within(gold) or gold, query_within(predicted) or predicted
    if isinstance(gold, exp.SetOperation) and isinstance(predicted, exp.Select):
        gold = _as_conditions(gold, predicted) or gold
    if isinstance(gold, exp.SetOperation) and isinstance(predicted, exp.SetOperation):
        for name in ("this", "expression"):
            gold.set(name, _reshaped(gold.args[name], predicted.args[name]))
    elif isinstance(gold, exp.Select) and isinstance(predicted, exp.Select):
        gold = _reshaped_select(gold, predicted)
    return gold


def _reshaped_select(gold: exp.Select, predicted: exp.Select) -> exp.Select:
    nested, gold_nested = [*_nested(predicted)], [*_nested(gold)]

    def likeness(one: _Nested, other: _Nested) -> float | None:
        common = len(one.tables & other.tables)
        return common + (one.is_negated == other.is_negated) / 2 if common else None

    pairs = best_pairs(nested, gold_nested, likeness)
    for one, other in pairs:
        column, query = _by_key_of(other, one)
        written = _written_as(one.condition, column, _reshaped(query, one.query), is_negated=other.is_negated)
        other.condition.replace(written)
    for one in without(nested, [paired for paired, _ in pairs]):
        gold = _with_nested(gold, predicted, one) or gold
    return gold


def _nested(select: exp.Select) -> Iterator[_Nested]:
    """Yield the conditions on nested queries in WHERE."""
    for condition in (leaf for where in parts.clause_nodes(select, "where") for leaf in parts.leaves(where.this)):
        inner = parts.without_not(condition)
        compared = inner.args.get("query") if isinstance(inner, exp.In) else inner.args.get("expression")
        query = query_within(compared) if isinstance(inner, exp.In | exp.EQ) else None
        if isinstance(query, exp.Select) and isinstance(inner.this, exp.Column) and _is_column(query.expressions):
            yield _Nested(condition, inner.this, query)


def _is_column(items: Sequence[exp.Expr]) -> bool:
    return len(items) == 1 and isinstance(items[0].unalias(), exp.Column)


def _written_as(like: exp.Expr, column: exp.Expr, query: exp.Expr, *, is_negated: bool) -> exp.Expr:
    """Return the condition that a column is in a query, or not, written with IN or `=` as another one is."""
    column, nested = column.copy(), exp.Subquery(this=query.copy())
    is_equation = isinstance(parts.without_not(like), exp.EQ)
    written = exp.EQ(this=column, expression=nested) if is_equation else exp.In(this=column, query=nested)
    return exp.Not(this=written) if is_negated else written


def _by_key_of(nested: _Nested, like: _Nested) -> tuple[exp.Column, exp.Select]:
    """Return the column and the query of a condition, by the column of another condition if both are of one table.

    That is so if the query reads the table of the column outside, too. Unless the other query reads it, it is left out
    if it is joined only for its column.
    """
    column, query = nested.column.copy(), nested.query.copy()
    owner, other_owner, selected = (
        parts.table_of(nested.column),
        parts.table_of(like.column),
        query.expressions[0].unalias(),
    )
    name = owner.name.lower() if isinstance(owner, exp.Table) else ""
    is_same = (name, column.name.lower()) == (table_names(query).get(selected.table.lower()), selected.name.lower())
    if not name or not is_same:
        return column, query
    if isinstance(other_owner, exp.Table) and other_owner.name.lower() == name:
        column.set("this", like.column.this.copy())
        query.set("expressions", [exp.column(like.column.this.copy(), table=selected.table)])
    is_read = name in table_names(like.query).values()
    shorter = None if is_read else _without_tables(query, {selected.table.lower()})
    return column, shorter or query


def _with_nested(gold: exp.Select, predicted: exp.Select, like: _Nested) -> exp.Select | None:
    """Return gold with a condition on a nested query for tables that it joins, as predicted has one for them.

    None if it cannot be written so: one pair of columns has to join these tables with the others.
    """
    names, kept_names = table_names(gold), Counter(table_names(predicted).values())
    # Where predicted nests another table than gold joins, that is taken for it.
    replaced = {*names.values()} - parts.all_tables(predicted) if like.tables - parts.all_tables(gold) else set()
    inside: set[str] = set()
    for alias, name in names.items():
        if kept_names[name]:
            kept_names[name] -= 1
        elif name in like.tables | replaced:
            inside.add(alias)
    outside = sources(gold).keys() - inside
    conditions = [*parts.join_conditions(gold), *parts.clause_operands(gold, "where")]
    crossing = [part for part in conditions if (used := _tables_in(part, gold)) & inside and used & outside]
    if not inside or not outside or len(crossing) != 1 or not parts.is_join_condition(crossing[0]):
        return None
    left, right = crossing[0].this, crossing[0].expression
    column, selected = (left, right) if right.table.lower() in inside else (right, left)
    moved = [
        name
        for names_together in (_GROUPS, _FIRST)
        if any(map(like.query.args.get, names_together)) and not any(map(predicted.args.get, names_together))
        for name in names_together
    ]
    if "limit" in moved and like.query.args.get("group"):
        moved += _GROUPS
    query, outer = gold.copy(), gold.copy()
    for name in {*_GROUPS, *_FIRST, "distinct", "with_"} - {*moved}:
        query.set(name, None)
    for name in moved:
        outer.set(name, None)
    query.set("expressions", [selected.copy()])
    if group := query.args.get("group"):  # what is a group outside is one value of the column
        keys = [part for part in group.expressions if _tables_in(part, query) <= inside]
        query.set("group", exp.Group(expressions=keys or [selected.copy()]))
    inner_query, outer_query = _without_tables(query, outside), _without_tables(outer, inside)
    if inner_query is None or outer_query is None:
        return None
    condition = _written_as(like.condition, column, _reshaped(inner_query, like.query), is_negated=False)
    changes.add_condition(outer_query, clause="where", condition=condition)
    return outer_query


def _without_tables(select: exp.Select, aliases: set[str]) -> exp.Select | None:
    """Return a SELECT without tables and the conditions on them; None if it uses their columns otherwise."""
    if not parts.has_plain_joins(select):
        return None
    copy = select.copy()
    operands = parts.clause_operands(copy, "where")
    kept = [part for part in operands if parts.is_join_condition(part) or not _tables_in(part, copy) & aliases]
    copy.set("where", exp.Where(this=exp.and_(*kept)) if kept else None)
    changes.drop_sources(copy, aliases=sorted(aliases))
    columns = (column for column in copy.find_all(exp.Column) if column.table.lower() in aliases)
    return None if any(parts.table_of(column) is None for column in columns) else copy


def _as_conditions(gold: exp.SetOperation, predicted: exp.Select) -> exp.Select | None:
    """Return a set operation as conditions on nested queries, if predicted has such conditions.

    There is one for each of its queries, or for all but the first.
    """
    arms, is_except = parts.arms(gold), isinstance(gold, exp.Except)
    nested = [one for one in _nested(predicted) if one.is_negated == is_except] or [*_nested(predicted)]
    base: exp.Expr = arms[0].copy()
    if not nested or not all(type(arm) is exp.Select for arm in arms):
        return None
    if has_all := not is_except and len(nested) >= len(arms):
        base = exp.Select()
        changes.copy_arguments(base, gold=predicted, names=("expressions", "from_", "joins"))
    conditions = list[exp.Expr]()
    compared_arms = arms if has_all else arms[1:]
    for like, arm in best_pairs(nested, compared_arms, lambda one, arm: parts.common_tables(one.query, arm)):
        columns = _compared(base, arm, like)
        if columns is None:
            return None
        query = arm.copy()
        query.set("expressions", [columns[1].copy()])
        query.set("distinct", None)
        conditions.append(_written_as(like.condition, columns[0], query, is_negated=is_except))
    if isinstance(gold, exp.Union) and not has_all:
        return None
    condition = exp.or_(*conditions) if isinstance(gold, exp.Union) else exp.and_(*conditions)
    changes.add_condition(base, clause="where", condition=condition)
    base.set("distinct", exp.Distinct())
    changes.copy_arguments(base, gold=gold, names=_FIRST)
    return base if isinstance(base, exp.Select) else None


def _compared(base: exp.Expr, arm: exp.Expr, like: _Nested) -> tuple[exp.Expr, exp.Expr] | None:
    """Return the columns by which to compare rows of two arms: the key that predicted compares, or what they select."""
    items, arm_items = ([item.unalias() for item in select.expressions] for select in (base, arm))
    owner = parts.table_of(like.column)
    if isinstance(owner, exp.Table):
        (alias, arm_alias) = (
            next((alias for alias, name in table_names(select).items() if name == owner.name.lower()), "")
            for select in (base, arm)
        )
        are_of_table = all(
            isinstance(item, exp.Column) and item.table.lower() == of
            for side, of in ((items, alias), (arm_items, arm_alias))
            for item in side
        )
        if alias and arm_alias and are_of_table:
            column = like.column.this
            return exp.column(column.copy(), table=alias), exp.column(column.copy(), table=arm_alias)
    return (items[0], arm_items[0]) if len(items) == len(arm_items) == 1 else None


def _tables_in(part: exp.Expr, select: exp.Select) -> set[str]:
    """Return the aliases of the tables of a SELECT that a part of it names, also in queries within."""
    items = sources(select)
    columns = part.find_all(exp.Column)
    return {
        name for column in columns if parts.table_of(column) is items.get(name := column.table.lower())
    } & items.keys()
