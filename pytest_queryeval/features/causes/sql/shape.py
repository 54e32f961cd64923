"""Rewrites gold in the shape of a predicted query: with its joins, IN, EXISTS and set operations over keys.

The rewriting follows the rules of proofs, but ignores duplicates and NULL, because the edited queries are run anyway.
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
    """A condition that a column has one of the values of a query, or none of them, in any notation."""

    condition: exp.Expr
    column: exp.Column
    query: exp.Select
    """The query, which selects one column."""

    @property
    def is_negated(self) -> bool:
        """Whether the column must have none of the values."""
        return isinstance(self.condition, exp.Not)

    @property
    def tables(self) -> set[str]:
        """The lower-case names of all tables that the query reads."""
        return parts.all_table_names(self.query)


def in_shape_of(gold: exp.Expr, predicted: exp.Expr) -> exp.Expr | None:
    """Return a copy of gold with conditions, joins and set operations as predicted has them; None if nothing changes.

    Columns must have the names of their tables.
    """
    if not any(select.parent for tree in (gold, predicted) for select in tree.find_all(exp.Select)):
        return None  # neither of them nests or combines queries
    reshaped = _reshaped(gold.copy(), predicted)
    return None if key(reshaped) == key(gold) else reshaped


def _reshaped(gold: exp.Expr, predicted: exp.Expr) -> exp.Expr:
    gold, predicted = query_within(gold) or gold, query_within(predicted) or predicted
    if isinstance(gold, exp.SetOperation) and isinstance(predicted, exp.Select):
        gold = _as_alternatives(gold, predicted) or _as_conditions(gold, predicted) or gold
    elif isinstance(gold, exp.Select) and isinstance(predicted, exp.Union):
        gold = _as_union(gold, predicted) or gold
    elif isinstance(gold, exp.Select) and isinstance(predicted, exp.SetOperation):
        gold = _as_operation(gold, predicted) or gold
    if isinstance(gold, exp.SetOperation) and isinstance(predicted, exp.SetOperation):
        for name in ("this", "expression"):
            gold.set(name, _reshaped(gold.args[name], predicted.args[name]))
    elif isinstance(gold, exp.Select) and isinstance(predicted, exp.Select):
        gold = _reshaped_select(gold, predicted)
    return gold


def _reshaped_select(gold: exp.Select, predicted: exp.Select) -> exp.Select:
    nested, gold_nested = [*_nested_conditions(predicted)], [*_nested_conditions(gold)]

    def likeness(one: _Nested, other: _Nested) -> float | None:
        common = len(one.tables & other.tables)
        return common + (one.is_negated == other.is_negated) / 2 if common else None

    pairs = best_pairs(nested, gold_nested, likeness)
    for one, other in pairs:
        column, query = _by_key_of(other, one)
        written = _written_as(one.condition, column, _reshaped(query, one.query), is_negated=other.is_negated)
        other.condition.replace(written)
    extra_tables = Counter(table_names(predicted).values()) - Counter(table_names(gold).values())
    for other in without(gold_nested, [paired for _, paired in pairs]):
        if Counter(table_names(other.query).values()) <= extra_tables and _can_be_joined(other, gold):
            changes.join_nested(other.condition)
    for one in without(nested, [paired for paired, _ in pairs]):
        gold = _with_nested(gold, predicted, one) or gold
    return gold


def _can_be_joined(nested: _Nested, select: exp.Select) -> bool:
    """Return whether `IN (SELECT …)` in WHERE can become a join in the SELECT around it."""
    is_free = sources(nested.query).keys().isdisjoint(sources(select))
    is_alone = any(nested.condition is part for part in parts.clause_operands(select, "where"))
    is_in = isinstance(parts.without_not(nested.condition), exp.In)
    return is_free and is_alone and is_in and not any(map(nested.query.args.get, _FIRST))


def _nested_conditions(select: exp.Select) -> Iterator[_Nested]:
    """Yield the conditions on nested queries in the WHERE of a SELECT: with IN, `=` or EXISTS, also negated."""
    for condition in (leaf for where in parts.clause_nodes(select, "where") for leaf in parts.leaves(where.this)):
        inner = parts.without_not(condition)
        if isinstance(inner, exp.Exists):
            yield from _correlated(condition, inner)
            continue
        compared = inner.args.get("query") if isinstance(inner, exp.In) else inner.args.get("expression")
        query = query_within(compared) if isinstance(inner, exp.In | exp.EQ) else None
        if isinstance(query, exp.Select) and isinstance(inner.this, exp.Column) and _is_column(query.expressions):
            yield _Nested(condition, inner.this, query)


def _is_column(items: Sequence[exp.Expr]) -> bool:
    return len(items) == 1 and isinstance(items[0].unalias(), exp.Column)


def _correlated(condition: exp.Expr, exists: exp.Exists) -> Iterator[_Nested]:
    """Yield EXISTS as a condition on the one column that its query compares with an outer column, if there is one."""
    query = query_within(exists.this)
    if not isinstance(query, exp.Select):
        return
    own_names, query = sources(query).keys(), query.copy()
    links = [
        operand
        for operand in parts.clause_operands(query, "where")
        if parts.is_join_condition(operand) and len(changes.tables_in(operand) & own_names) == 1
    ]
    if len(links) == 1:
        left, right = links[0].this, links[0].expression
        column, selected = (right, left) if left.table.lower() in own_names else (left, right)
        changes.drop_condition(links[0])
        query.set("expressions", [selected.copy()])
        yield _Nested(condition, column, query)


def _written_as(like: exp.Expr, column: exp.Expr, query: exp.Expr, *, is_negated: bool) -> exp.Expr:
    """Return the condition that a column is in a query, or is not, written with IN, `=` or EXISTS like `like`."""
    model = parts.without_not(like)
    query, column = query.copy(), column.copy()
    written: exp.Expr
    if isinstance(model, exp.Exists) and isinstance(query, exp.Select):
        link = exp.EQ(this=query.expressions[0].unalias().copy(), expression=column)
        changes.add_condition(query, clause="where", condition=link)
        query.set("expressions", [item.copy() for item in model.this.expressions])
        written = exp.Exists(this=query)
    elif isinstance(model, exp.EQ):
        written = exp.EQ(this=column, expression=exp.Subquery(this=query))
    else:
        written = exp.In(this=column, query=exp.Subquery(this=query))
    return exp.Not(this=written) if is_negated else written


def _by_key_of(nested: _Nested, like: _Nested) -> tuple[exp.Column, exp.Select]:
    """Return the column and query of a condition, by the column of the condition `like` if both are of one table.

    This requires that the query reads the table of the column outside as well. That table is left out of the query if
    it is joined only for its column, unless the query of `like` reads it.
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
    """Return gold with a nested query instead of tables that it joins, as predicted's condition `like` has it.

    None if that is impossible: exactly one pair of columns has to join these tables with the others.
    """
    names, kept_names = table_names(gold), Counter(table_names(predicted).values())
    # Where predicted nests another table than gold joins, that is taken for it.
    replaced = (
        {*names.values()} - parts.all_table_names(predicted) if like.tables - parts.all_table_names(gold) else set()
    )
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
    """Return a copy of a SELECT without tables and the conditions on them.

    None if it has joins other than plain inner joins, or if it uses columns of these tables elsewhere.
    """
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
    """Return a set operation as a SELECT with conditions on nested queries, if predicted has some; else None.

    There is a condition for each query of the operation, or for all but the first.
    """
    arms, is_except = parts.arms(gold), isinstance(gold, exp.Except)
    nested = [one for one in _nested_conditions(predicted) if one.is_negated == is_except] or [
        *_nested_conditions(predicted)
    ]
    base: exp.Expr = arms[0].copy()
    if not nested or not all(type(arm) is exp.Select for arm in arms):
        return None
    if has_all := not is_except and len(nested) >= len(arms):
        base = exp.Select()
        changes.copy_arguments(base, gold=predicted, names=("expressions", "from_", "joins"))
    conditions = list[exp.Expr]()
    compared_arms = arms if has_all else arms[1:]
    for like, arm in best_pairs(nested, compared_arms, lambda one, arm: parts.common_tables(one.query, arm)):
        columns = _compared_columns(base, arm, like)
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


def _compared_columns(base: exp.Expr, arm: exp.Expr, like: _Nested) -> tuple[exp.Expr, exp.Expr] | None:
    """Return the columns by which rows of two queries correspond: the key that predicted compares, or the only ones.

    None if there are no such columns.
    """
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


def _as_operation(gold: exp.Select, predicted: exp.SetOperation) -> exp.Expr | None:
    """Return a condition on a nested query as the INTERSECT or EXCEPT that predicted has; None if none fits."""
    for nested in _nested_conditions(gold):
        is_alone = any(nested.condition is part for part in parts.clause_operands(gold, "where"))
        if not is_alone or nested.is_negated != isinstance(predicted, exp.Except):
            continue
        first, second = gold.copy(), nested.query.copy()
        condition = next(part for part in parts.clause_operands(first, "where") if key(part) == key(nested.condition))
        reads_same = {*table_names(gold).values()} & {*table_names(parts.arms(predicted)[-1]).values()}
        if reads_same or [*map(key, gold.expressions)] != [key(nested.column)]:
            if not _can_be_joined(nested, gold):
                continue
            second = gold.copy()
            second.set("where", exp.Where(this=parts.without_not(nested.condition).copy()))
            changes.join_nested(second.args["where"].this)
        changes.drop_condition(condition)
        first.set("distinct", None)
        return type(predicted)(this=first, expression=second, distinct=True)
    return None


def _as_union(gold: exp.Select, predicted: exp.SetOperation) -> exp.Expr | None:
    """Return conditions joined by OR as the queries of predicted's UNION; None if gold has no such conditions."""
    arms = parts.arms(predicted)
    for operand in parts.clause_operands(gold, "where"):
        alternatives = parts.operands(operand, exp.Or)
        if len(alternatives) == len(arms) > 1 and not any(map(gold.args.get, (*_GROUPS, *_FIRST))):
            queries = []
            for alternative in alternatives:
                query = gold.copy()
                (copy,) = (part for part in parts.clause_operands(query, "where") if key(part) == key(operand))
                copy.replace(alternative.copy())
                query.set("distinct", None)
                queries.append(query)
            return _united(queries)
    return None


def _united(queries: Sequence[exp.Expr]) -> exp.Expr:
    union = queries[0]
    for query in queries[1:]:
        union = exp.Union(this=union, expression=query, distinct=True)
    return union


def _as_alternatives(gold: exp.SetOperation, predicted: exp.Select) -> exp.Select | None:
    """Return a UNION over the same tables as conditions joined by OR, if predicted has such conditions; else None."""
    arms = parts.arms(gold)
    first = arms[0]
    has_alternatives = any(
        isinstance(part, exp.Or) or (isinstance(part, exp.In) and len(part.expressions) > 1)
        for part in parts.clause_operands(predicted, "where")
    )
    is_alike = all(
        isinstance(arm, exp.Select)
        and parts.tables_content(arm) == parts.tables_content(first)
        and parts.clause_key(arm, "expressions") == parts.clause_key(first, "expressions")
        and arm.args.get("where") is not None
        and not any(map(arm.args.get, (*_GROUPS, *_FIRST)))
        for arm in arms
    )
    if not (isinstance(gold, exp.Union) and has_alternatives and is_alike and isinstance(first, exp.Select)):
        return None
    operands = [parts.clause_operands(arm, "where") for arm in arms]
    shared = [part for part in operands[0] if all(key(part) in map(key, others) for others in operands)]
    shared_keys = {*map(key, shared)}
    own = [[part for part in of_arm if key(part) not in shared_keys] for of_arm in operands]
    if not all(own):
        return None
    select = first.copy()
    select.set("where", exp.Where(this=exp.and_(*shared, exp.or_(*(exp.and_(*part) for part in own)))))
    select.set("distinct", exp.Distinct() if gold.args.get("distinct") else None)
    return select


def _tables_in(part: exp.Expr, select: exp.Select) -> set[str]:
    """Return the lower-case aliases of a SELECT's tables whose columns a part of it, with nested queries, names."""
    items = sources(select)
    columns = part.find_all(exp.Column)
    return {
        name for column in columns if parts.table_of(column) is items.get(name := column.table.lower())
    } & items.keys()
