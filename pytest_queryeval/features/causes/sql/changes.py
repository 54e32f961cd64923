"""What an edit does to a copy of the predicted query: each function changes one node, with parts of gold."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sqlglot import exp

from pytest_queryeval.features.causes.sql.aligned import key, query_within, sources
from pytest_queryeval.features.causes.sql.parts import (
    clause_operands,
    is_join_condition,
    join_condition,
    join_conditions,
    join_type,
    joined_name,
    only_table,
    without_not,
)

_CONDITIONS = {"where": exp.Where, "having": exp.Having, "qualify": exp.Qualify}


def replace(node: exp.Expr, *, new: exp.Expr) -> None:
    """Put another expression in the place of a node."""
    node.replace(new.copy())


def copy_arguments(node: exp.Expr, *, gold: exp.Expr, names: Sequence[str]) -> None:
    """Give a node these arguments of another one, such as the clauses of a SELECT."""
    for name in names:
        value = gold.args.get(name)
        if isinstance(value, list):
            value = [item.copy() for item in value]
        node.set(name, value.copy() if isinstance(value, exp.Expr) else value)


def change_operation(query: exp.Expr, *, gold: exp.Expr) -> None:
    """Make a set operation the one of gold."""
    query.replace(type(gold)(**{**query.args, "distinct": gold.args.get("distinct")}))


def combine(query: exp.Expr, *, gold: exp.Expr) -> None:
    """Combine a query with the second one of gold; ORDER BY and LIMIT stand at the end, as in gold."""
    arguments = {name: value for name, value in gold.copy().args.items() if name not in ("with_", "this")}
    for name in ("order", "limit", "offset"):
        query.set(name, None)
    _wrap(query, type(gold)(**arguments))


def count_rows(query: exp.Expr, *, gold: exp.Expr) -> None:
    """Put a query in the place of the one whose rows gold counts, and gold in its own place."""
    outer = gold.copy()
    query.replace(outer)
    counted = outer.args["from_"].this
    counted.replace(exp.Subquery(this=query, alias=counted.args.get("alias")))


def keep_first(operation: exp.Expr) -> None:
    """Put the first query of a set operation in its place."""
    operation.replace(operation.this)


def keep_second(operation: exp.Expr) -> None:
    """Put the second query of a set operation in its place."""
    operation.replace(operation.expression)


def _wrap(node: exp.Expr, new: exp.Expr) -> None:
    """Put `new` in the place of a node, which becomes its first argument: other edits of the node stay."""
    node.replace(new)
    new.set("this", node)


def add_sources(select: exp.Expr, *, gold: exp.Select, aliases: Sequence[str]) -> None:
    """Join tables of gold, with the conditions that name them and nothing that is not joined then."""
    joins = {joined_name(join): join for join in gold.args.get("joins") or ()}
    added = [joins[alias].copy() if alias in joins else exp.Join(this=sources(gold)[alias].copy()) for alias in aliases]
    conditions = [part for part in _joining(gold) if _tables(part) & {*aliases}]
    for join in _in_order(added, {*sources(select)}, conditions):
        select.append("joins", join)


def drop_sources(select: exp.Expr, *, aliases: Sequence[str]) -> None:
    """Take tables out of FROM, with the conditions that join them; other columns take the place of theirs.

    Those are the columns that the joins compare them with.
    """
    first, joins = select.args["from_"], list(select.args.get("joins") or ())
    joins_left = [join for join in joins if joined_name(join) not in aliases]
    if not joins_left and first.this.alias_or_name.lower() in aliases:
        return  # together with another edit that took the others
    joining = [part for part in clause_operands(select, "where") if is_join_condition(part)]
    dropped = [part for part in joining if _tables(part) & {*aliases}]
    _replace_columns(select, aliases)
    for condition in dropped:
        drop_condition(condition)
    conditions = [part for part in _joining(select) if not _tables(part) & {*aliases}]
    if first.this.alias_or_name.lower() in aliases:
        first.set("this", joins_left.pop(0).this.copy())
    select.set("joins", _in_order(joins_left, {first.this.alias_or_name.lower()}, conditions))


def drop_leftovers(select: exp.Expr, predicted: exp.Expr, gold: exp.Expr) -> None:
    """Drop the tables that predicted used, gold does not have, and the changed SELECT does not use any more.

    A table is used if anything but a join names its columns, or if it joins one that is used.
    """
    if not (isinstance(select, exp.Select) and isinstance(predicted, exp.Select) and isinstance(gold, exp.Select)):
        return
    unused = sources(select).keys() - sources(gold).keys() - _used_tables(select) if not select.is_star else set()
    leftovers = unused & _used_tables(predicted)
    linked = [_tables(condition) for condition in _joining(predicted) if isinstance(condition, exp.EQ)]
    while joining := {name for names in linked if names & leftovers for name in names & unused} - leftovers:
        leftovers |= joining
    if leftovers:
        drop_sources(select, aliases=sorted(leftovers))


def _used_tables(select: exp.Select) -> set[str]:
    """Return the names, in lower case, of the tables whose columns a SELECT names anywhere but where it joins them."""
    joining = {id(part) for part in clause_operands(select, "where") if is_join_condition(part)}
    return {column.table.lower() for column in columns_outside_from(select) if id(column.parent) not in joining}


def arrange_joins(select: exp.Expr) -> None:
    """Join tables in an order in which each condition stands once, after the tables that it names."""
    joins, conditions = select.args.get("joins") or [], _joining(select)
    if any(join_type(join) != "JOIN" or join.args.get("using") for join in joins):
        return
    reachable = {*sources(select)} - {joined_name(join) for join in joins}
    first, is_arranged = {*reachable}, len({*map(key, conditions)}) == len(conditions)
    for join in joins:
        reachable.add(joined_name(join))
        condition = join_condition(join)
        is_arranged &= condition is None or _tables(condition) <= reachable
    if not is_arranged:
        select.set("joins", _in_order(joins, first, list({key(part): part for part in conditions}.values())))


def _in_order(joins: Sequence[exp.Expr], available: set[str], conditions: Sequence[exp.Expr]) -> list[exp.Expr]:
    """Return copies of joins in an order in which their conditions name only what is joined before, or available."""
    ordered, pending, unused = list[exp.Expr](), list(joins), list(conditions)
    while pending:
        names = [joined_name(join) for join in pending]
        joinable = (
            place
            for place, name in enumerate(names)
            if any(name in _tables(part) and _tables(part) <= available | {name} for part in unused)
        )
        place = next(joinable, 0)
        join, available = pending.pop(place).copy(), available | {names[place]}
        usable = [part for part in unused if _tables(part) <= available]
        unused = [part for part in unused if part not in usable]
        if usable:
            join.set("using", None)
            join.set("on", exp.and_(*usable, copy=True))
            if join.args.get("kind") == "CROSS":
                join.set("kind", None)
        elif join.args.get("on"):
            join.set("on", None)
        ordered.append(join)
    return ordered


def _joining(select: exp.Expr) -> list[exp.Expr]:
    return [part for part in join_conditions(select) if isinstance(part, exp.Condition)]


def _replace_columns(select: exp.Expr, aliases: Sequence[str]) -> None:
    """Put the columns that joins compare with those of the tables `aliases` in their place, but for FROM."""
    partners: dict[str, exp.Expr] = {}
    for condition in [*join_conditions(select), *filter(is_join_condition, clause_operands(select, "where"))]:
        if isinstance(condition, exp.EQ):
            for column, partner in ((condition.left, condition.right), (condition.right, condition.left)):
                if not isinstance(column, exp.Column) or not isinstance(partner, exp.Column):
                    continue
                if column.table.lower() in aliases and partner.table.lower() not in aliases:
                    partners[key(column)] = partner
    for column in columns_outside_from(select) if partners else ():
        if key(column) in partners:
            column.replace(partners[key(column)].copy())


def columns_outside_from(select: exp.Expr) -> list[exp.Column]:
    """Return the columns of all clauses of a SELECT but FROM."""
    clauses = [select.args.get(name) for name in ("expressions", "where", "group", "having", "qualify", "order")]
    nodes = [node for clause in clauses for node in (clause if isinstance(clause, list) else [clause])]
    return [column for node in nodes if node is not None for column in node.find_all(exp.Column)]


def join_nested(condition: exp.Expr) -> None:
    """Join the tables of `IN (SELECT …)` in place of the condition, and move its clauses to the outer query."""
    select, query = condition.find_ancestor(exp.Select), query_within(condition.args.get("query"))
    if select is None or not isinstance(query, exp.Select):
        return  # together with another edit that replaced the condition
    compared, selected = condition.this.copy(), query.expressions[0].unalias().copy()
    first = exp.Join(this=query.args["from_"].this.copy(), on=exp.EQ(this=compared, expression=selected))
    joins = [join.copy() for join in query.args.get("joins") or ()]
    select.set("joins", [*(join.copy() for join in select.args.get("joins") or ()), first, *joins])
    inner_condition = query.args.get("where")
    for name in ("group", "having"):
        if query.args.get(name) is not None:
            select.set(name, query.args[name].copy())
    if inner_condition is None:
        drop_condition(condition)
    else:
        inner = inner_condition.this
        condition.replace(exp.paren(inner.copy()) if isinstance(inner, exp.Or) else inner.copy())


def change_join_condition(join: exp.Expr, *, gold: exp.Expr) -> None:
    """Give a join the condition of another one."""
    copy_arguments(join, gold=gold, names=("on", "using"))
    if join.args.get("kind") == "CROSS":
        join.set("kind", gold.args.get("kind"))


def change_operator(condition: exp.Expr, *, gold: exp.Expr, operator: type[exp.Expr]) -> None:
    """Compare the same sides by another operator, with the NOT of gold's condition or without."""
    inner = without_not(condition)
    if type(inner) is not operator:
        left_side, right_side = inner.this, inner.expression
        inner = operator(this=left_side, expression=right_side)
    condition.replace(exp.Not(this=inner) if isinstance(gold, exp.Not) else inner)


def add_condition(select: exp.Expr, *, clause: str, condition: exp.Expr) -> None:
    """Add a condition to WHERE, HAVING or QUALIFY, or the clause with it."""
    node = select.args.get(clause)
    if node is None:
        select.set(clause, _CONDITIONS[clause](this=condition.copy()))
    else:
        _wrap(node.this, exp.And(expression=_as_operand(condition)))
        if not isinstance(node.this.this, exp.Paren):
            _wrap(node.this.this, exp.Paren())


def extend_condition(condition: exp.Expr, *, operand: exp.Expr, connector: type[exp.Connector]) -> None:
    """Connect a condition with one more operand."""
    extended = connector(expression=_as_operand(operand))
    _wrap(condition, extended)
    if isinstance(condition, exp.Connector) and not isinstance(condition, connector):
        _wrap(condition, exp.Paren())
    if isinstance(extended.parent, exp.Connector | exp.Not) and not isinstance(extended.parent, connector):
        _wrap(extended, exp.Paren())


def _as_operand(condition: exp.Expr) -> exp.Expr:
    """Return a copy of a condition that stands beside others: AND and OR are written in parentheses."""
    return exp.paren(condition.copy()) if isinstance(condition, exp.Connector) else condition.copy()


def drop_condition(condition: exp.Expr) -> None:
    """Take an operand out of its connector, or the clause away that it is alone in."""
    while isinstance(condition.parent, exp.Paren):
        condition = condition.parent
    parent = condition.parent
    if isinstance(parent, exp.Connector):
        parent.replace((parent.right if parent.left is condition else parent.left).copy())
    elif parent is not None:
        parent.pop()


def insert_item(select: exp.Expr, *, item: exp.Expr, place: int) -> None:
    """Add an item to what a SELECT returns, at its place in gold."""
    items = [expression.copy() for expression in select.expressions]
    select.set("expressions", [*items[:place], item.copy(), *items[place:]])


def drop_item(item: exp.Expr) -> None:
    """Take an item out of what a SELECT returns."""
    item.pop()


def rename_table(column: exp.Expr, *, name: str) -> None:
    """Give a column another name of its table."""
    column.set("table", exp.to_identifier(name))


def drop_table_names(columns: Iterable[exp.Column]) -> None:
    """Take the name of the only table of their SELECT, if it is not an alias, away from columns."""
    only: dict[int, str] = {}
    for column in columns:
        select = column.find_ancestor(exp.Select)
        if select is None or not column.table:
            continue
        if id(select) not in only:
            only[id(select)] = only_table(select)
        if column.table.lower() == only[id(select)]:
            column.set("table", None)


def add_common_queries(tree: exp.Expr, common: exp.Expr) -> None:
    """Add the queries of gold's WITH that the tree reads and does not have."""
    with_clause = tree.args.get("with_")
    names = {cte.alias.lower() for cte in (with_clause.expressions if with_clause else ())}
    read = {table.name.lower() for table in tree.find_all(exp.Table)}
    if any(cte.alias.lower() in read - names for cte in common.expressions):
        missing = [cte.copy() for cte in common.expressions if cte.alias.lower() not in names]
        if with_clause is None:
            tree.set("with_", exp.With(expressions=missing, recursive=common.args.get("recursive")))
        else:
            with_clause.set("expressions", [*missing, *with_clause.expressions])


def _tables(condition: exp.Expr) -> set[str]:
    """Return the names of the tables whose columns a condition names."""
    return {column.table.lower() for column in condition.find_all(exp.Column)}
