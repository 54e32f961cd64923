"""Edits of a predicted SQL query, and the steps that change its nodes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import partial
from itertools import pairwise, permutations
from typing import TypeAlias

from sqlglot import Dialect, ErrorLevel, Generator, exp

from pytest_queryeval.core.cause import CauseLabel
from pytest_queryeval.core.mappings import excluding, grouped
from pytest_queryeval.features.causes.sql import parts
from pytest_queryeval.features.causes.sql.parts import key, sources

CLAUSES = ("FROM", "WHERE", "SELECT", "GROUP", "HAVING", "QUALIFY", "ORDER", "LIMIT", "SET")  # in the order of reports
_CLAUSE_OF = {"where": "WHERE", "expressions": "SELECT", "having": "HAVING", "qualify": "QUALIFY", "order": "ORDER"}
Area: TypeAlias = tuple[int, str]
"""The identity of a query, and one of its clauses."""
Step: TypeAlias = tuple[exp.Expr, Callable[[exp.Expr], object]]
"""A node of the predicted query, and the function that changes the copy of the node in place."""
Side: TypeAlias = "exp.Expr | str | Sequence[Side] | None"
"""One side of a change as reports show it; members of a tuple are joined by commas, those of a list by spaces."""


class Size(IntEnum):
    """How much of a query an edit changes; the smallest edits are tried first."""

    CONSTANT = 0
    """A constant or an operator."""
    PART = 1
    """A part of a clause, or a short clause."""
    SEVERAL = 2
    """Parts of several clauses, or the same part at all its places."""
    CLAUSE = 3
    """A clause with several differences, or a whole query."""


_INFIX_NOT_CONDITIONS = (exp.In, exp.Like, exp.ILike, exp.Between, exp.Glob, exp.RegexpLike)
"""Conditions in which NOT is written before the operator."""
_CONSTANTS: frozenset[CauseLabel] = frozenset(
    ("value-case", "wrong-value", "wrong-operator", "wrong-connector", "missing-distinct", "extra-distinct")
)


@dataclass(frozen=True, slots=True)
class Edit:
    """A change of the predicted query, as reports show it and as steps that make it."""

    label: CauseLabel
    clause: str
    change: tuple[Side, Side]
    """What the query has, and what it should have."""
    within: exp.Expr
    """The query that contains the clause."""
    steps: tuple[Step, ...]
    extent: Size = Size.PART

    @property
    def size(self) -> Size:
        """How much the edit changes: its extent, but a constant if a change of a part has such a label."""
        return Size.CONSTANT if self.extent is Size.PART and self.label in _CONSTANTS else self.extent

    @property
    def areas(self) -> list[Area]:
        """What the edit changes: the clause or DISTINCT of its query, then the clauses around that query."""
        areas: list[Area] = [(id(self.within), "DISTINCT" if "DISTINCT" in self.change else self.clause)]
        node = self.within
        while node.parent is not None:
            if isinstance(node.parent, exp.Select):
                areas.append((id(node.parent), _CLAUSE_OF.get(node.arg_key or "", "FROM")))
            node = node.parent
        return areas

    @property
    def rank(self) -> tuple[Size, int]:
        """The position of the edit in the order in which edits are tried, and then shown."""
        return self.size, CLAUSES.index(self.clause)


def replace_step(node: exp.Expr, new: exp.Expr) -> Step:
    """Return the step that replaces a node by a copy of another expression."""
    return node, lambda copied: copied.replace(new.copy())


def copy_step(node: exp.Expr, gold: exp.Expr, *names: str) -> Step:
    """Return the step that copies the arguments `names` of gold's node to a node, such as the clauses of a SELECT."""
    return node, partial(copy_arguments, gold=gold, names=names)


def changed_copy(tree: exp.Expr, steps: Iterable[Step]) -> exp.Expr:
    """Return a copy of a tree after steps, which change the copies of their nodes."""
    copy, steps = tree.copy(), [*steps]
    changed = {id(node) for node, _ in steps}
    copies = {id(node): copied for node, copied in zip(tree.walk(), copy.walk(), strict=True) if id(node) in changed}
    for node, change in steps:
        change(copies[id(node)])
    return copy


def copy_arguments(node: exp.Expr, *, gold: exp.Expr, names: Sequence[str]) -> None:
    """Copy the arguments `names` of gold's node to a node, in place."""
    for name in names:
        value = gold.args.get(name)
        if isinstance(value, list):
            value = [item.copy() for item in value]
        node.set(name, value.copy() if isinstance(value, exp.Expr) else value)


def change_operation(query: exp.Expr, *, gold: exp.Expr) -> None:
    """Replace a set operation in its tree by gold's operation, with the same queries."""
    query.replace(type(gold)(**{**query.args, "distinct": gold.args.get("distinct")}))


def combine(query: exp.Expr, *, gold: exp.Expr) -> None:
    """Combine a query with the second query of gold's set operation, in place.

    The ORDER BY and LIMIT of gold take the place of those of the query.
    """
    arguments = excluding(gold.copy().args, ("with_", "this"))
    for name in ("order", "limit", "offset"):
        query.set(name, None)
    _wrap(query, type(gold)(**arguments))


def keep_argument(operation: exp.Expr, *, name: str) -> None:
    """Replace a set operation in its tree by its first or second query, `this` or `expression`."""
    operation.replace(operation.args[name])


def _wrap(node: exp.Expr, new: exp.Expr) -> None:
    """Replace a node in its tree by `new`, which gets the node as its first argument.

    The node itself stays in the tree, so that other edits can still change it.
    """
    node.replace(new)
    new.set("this", node)


def add_sources(select: exp.Expr, *, gold: exp.Select, aliases: Sequence[str]) -> None:
    """Join the tables `aliases` of gold to a SELECT, in place, with gold's conditions on tables that are then there."""
    joins = parts.joins_of(gold)
    added = [joins[alias].copy() if alias in joins else exp.Join(this=sources(gold)[alias].copy()) for alias in aliases]
    conditions = [part for part in _joining_conditions(gold) if tables_in(part) & {*aliases}]
    for join in _ordered_joins(added, {*sources(select)}, conditions):
        select.append("joins", join)


def drop_sources(select: exp.Expr, *, aliases: Sequence[str]) -> None:
    """Drop the tables `aliases` from a SELECT, in place, with the conditions that join them.

    Their columns are replaced by the columns that joins equate with them. Nothing is dropped if no table would remain.
    """
    first = select.args["from_"]
    remaining_joins = [join for alias, join in parts.joins_of(select).items() if alias not in aliases]
    drops_first = first.alias_or_name.lower() in aliases
    if not remaining_joins and drops_first:
        return  # another edit has dropped all others
    joining = [part for part in parts.clause_operands(select, "where") if parts.is_join_condition(part)]
    dropped = [part for part in joining if tables_in(part) & {*aliases}]
    equated = grouped((key(column), partner) for column, partner in _partners(select, aliases))
    _replace_columns(select, aliases)
    for condition in dropped:
        drop_condition(condition)
    conditions = [part for part in _joining_conditions(select) if not tables_in(part) & {*aliases}]
    conditions += [
        exp.EQ(this=left.copy(), expression=right.copy())
        for columns in equated.values()
        for left, right in pairwise(columns)
        if left.table.lower() != right.table.lower()
    ]
    if drops_first:
        first.set("this", remaining_joins.pop(0).this.copy())
    select.set("joins", _ordered_joins(remaining_joins, {first.alias_or_name.lower()}, conditions))


def drop_leftovers(select: exp.Expr, predicted: exp.Expr, gold: exp.Expr) -> list[str]:
    """Drop tables, in place, that predicted used, gold lacks and the changed SELECT does not use; return their names.

    A table is used if its columns are named outside of joins, or if it joins a table that is used. Nothing is dropped
    from `SELECT *`, or if any of the queries is a set operation.
    """
    if not (isinstance(select, exp.Select) and isinstance(predicted, exp.Select) and isinstance(gold, exp.Select)):
        return []
    extra = sources(select).keys() - sources(gold).keys()
    if not extra or select.is_star:
        return []
    unused = extra - _used_tables(select)
    leftovers = unused & _used_tables(predicted)
    linked = [tables_in(condition) for condition in _joining_conditions(predicted) if isinstance(condition, exp.EQ)]
    while joining := {name for names in linked if names & leftovers for name in names & unused} - leftovers:
        leftovers |= joining
    dropped = [table.name or alias for alias, table in sources(select).items() if alias in leftovers]
    if leftovers:
        drop_sources(select, aliases=sorted(leftovers))
    return dropped


def _used_tables(select: exp.Select) -> set[str]:
    """Return the lower-case names of the tables whose columns a SELECT names outside of join conditions."""
    joining = {id(part) for part in parts.clause_operands(select, "where") if parts.is_join_condition(part)}
    return {column.table.lower() for column in parts.columns_outside_from(select) if id(column.parent) not in joining}


def arrange_joins(select: exp.Expr) -> None:
    """Order the joins of a SELECT, in place, so that each condition occurs once and after its tables.

    Only inner joins without USING are ordered.
    """
    if parts.has_plain_joins(select):
        _join_by(select, {key(part): part for part in _joining_conditions(select)}.values())


def add_join_condition(select: exp.Expr, *, condition: exp.Expr) -> None:
    """Add a condition to the joins of a SELECT, at the first place where it can stand."""
    _join_by(select, [*_joining_conditions(select), condition])


def _join_by(select: exp.Expr, conditions: Iterable[exp.Expr]) -> None:
    joins = parts.joins_of(select)
    select.set("joins", _ordered_joins([*joins.values()], {*sources(select)} - joins.keys(), [*conditions]))


def _ordered_joins(joins: Sequence[exp.Join], available: set[str], conditions: Sequence[exp.Expr]) -> list[exp.Expr]:
    """Return copies of joins in an order in which a condition only names tables that are `available` or joined before.

    The conditions are distributed anew.
    """
    ordered, pending, unused = list[exp.Expr](), list(joins), list(conditions)
    while pending:
        names = [join.alias_or_name.lower() for join in pending]
        joinable = (
            place
            for place, name in enumerate(names)
            if any(name in tables_in(part) and tables_in(part) <= available | {name} for part in unused)
        )
        place = next(joinable, 0)
        join, available = pending.pop(place).copy(), available | {names[place]}
        usable = [part for part in unused if tables_in(part) <= available]
        unused = [part for part in unused if part not in usable]
        if usable:
            join.set("using", None)
            join.set("on", exp.and_(*usable, copy=True))
            if join.kind == "CROSS":
                join.set("kind", None)
        elif join.args.get("on"):
            join.set("on", None)
        ordered.append(join)
    return ordered


def _joining_conditions(select: exp.Expr) -> list[exp.Expr]:
    return [part for part in parts.join_conditions(select) if isinstance(part, exp.Condition)]


def _replace_columns(select: exp.Expr, aliases: Sequence[str]) -> None:
    """Replace columns of these tables outside of FROM, in place, by the columns that joins equate with them."""
    partners = {key(column): partner for column, partner in _partners(select, aliases)}
    items = sources(select)
    for column in parts.columns_outside_from(select) if partners else ():
        if key(column) in partners and parts.table_of(column) is items[column.table.lower()]:
            column.replace(partners[key(column)].copy())


def _partners(select: exp.Expr, aliases: Collection[str]) -> Iterator[tuple[exp.Column, exp.Column]]:
    """Yield the columns of these tables with the columns of other tables that conditions equate with them."""
    for condition in filter(parts.is_join_condition, parts.linking_conditions(select)):
        for column, partner in permutations(condition.find_all(exp.Column)):
            if column.table.lower() in aliases and partner.table.lower() not in aliases:
                yield column, partner


def join_nested(condition: exp.Expr) -> None:
    """Replace `IN (SELECT …)` by a join of its tables, in place, and move its clauses to the outer query.

    Do nothing if the condition is no longer such a condition.
    """
    select, query = condition.find_ancestor(exp.Select), parts.query_within(condition.args.get("query"))
    if select is None or not isinstance(query, exp.Select):
        return  # another edit has replaced the condition
    compared, selected = condition.this.copy(), query.expressions[0].unalias().copy()
    first = exp.Join(this=query.args["from_"].this.copy(), on=exp.EQ(this=compared, expression=selected))
    for join in (first, *parts.joins_of(query).values()):
        select.append("joins", join.copy())
    for name in ("group", "having"):
        if query.args.get(name) is not None:
            select.set(name, query.args[name].copy())
    if query.args.get("where") is None:
        drop_condition(condition)
    else:
        inner = query.args["where"].this.copy()
        condition.replace(exp.paren(inner) if isinstance(inner, exp.Or) else inner)


def change_join_condition(join: exp.Expr, *, gold: exp.Expr) -> None:
    """Give a join the condition of gold's join, in place."""
    copy_arguments(join, gold=gold, names=("on", "using"))
    if join.args.get("kind") == "CROSS":
        join.set("kind", gold.args.get("kind"))


def change_operator(condition: exp.Expr, *, gold: exp.Expr, operator: type[exp.Expr]) -> None:
    """Replace a condition in its tree by one with another operator, negated if gold is."""
    inner = parts.without_not(condition)
    if type(inner) is not operator:
        inner = operator(this=inner.this, expression=inner.expression)
    condition.replace(exp.Not(this=inner.copy()) if isinstance(gold, exp.Not) else inner)


def add_condition(select: exp.Expr, *, clause: str, condition: exp.Expr) -> None:
    """Add a condition to the clause `where`, `having` or `qualify` of a SELECT, in place; a missing clause is made."""
    node = select.args.get(clause)
    if node is None:
        select.set(clause, parts.CONDITION_CLAUSES[clause](this=condition.copy()))
    else:
        extend_condition(node.this, operand=condition, connector=exp.And)


def extend_condition(condition: exp.Expr, *, operand: exp.Expr, connector: type[exp.Connector]) -> None:
    """Connect a condition in its tree with one more operand, with parentheses where they are needed."""
    operand = exp.paren(operand) if isinstance(operand, exp.Connector) else operand.copy()
    extended = connector(this=exp.null(), expression=operand)
    _wrap(condition, extended)
    if isinstance(condition, exp.Connector) and not isinstance(condition, connector):
        _wrap(condition, exp.Paren())
    if isinstance(extended.parent, exp.Connector | exp.Not) and not isinstance(extended.parent, connector):
        _wrap(extended, exp.Paren())


def drop_condition(condition: exp.Expr) -> None:
    """Remove a condition from its connector in the tree; remove the clause if it has no other condition."""
    while isinstance(condition.parent, exp.Paren):
        condition = condition.parent
    parent = condition.parent
    if isinstance(parent, exp.Connector):
        parent.replace((parent.right if parent.left is condition else parent.left).copy())
    elif isinstance(parent, exp.Join):
        condition.pop()
    elif parent is not None:
        parent.pop()


def insert_item(select: exp.Expr, *, item: exp.Expr, place: int) -> None:
    """Insert a copy of an item into SELECT at a place, in place."""
    items = [expression.copy() for expression in select.expressions]
    select.set("expressions", [*items[:place], item.copy(), *items[place:]])


def rename_table(column: exp.Expr, *, name: str) -> None:
    """Give a column another table name, in place."""
    column.set("table", exp.to_identifier(name))


def drop_table_names(tree: exp.Expr) -> None:
    """Remove the table names of columns, in place, if their SELECT reads a single table without an alias."""
    for column in tree.find_all(exp.Column):
        select = column.find_ancestor(exp.Select)
        if select is not None and column.table and column.table.lower() == parts.only_table(select):
            column.set("table", None)


def add_common_queries(tree: exp.Expr, common: exp.Expr) -> None:
    """Add the queries of gold's WITH to a tree, in place, if the tree reads a missing one."""
    with_clause = tree.args.get("with_")
    names = {cte.alias.lower() for cte in (with_clause.expressions if with_clause else ())}
    read = {table.name.lower() for table in tree.find_all(exp.Table)}
    if any(cte.alias.lower() in read - names for cte in common.expressions):
        missing = [cte.copy() for cte in common.expressions if cte.alias.lower() not in names]
        if with_clause is None:
            tree.set("with_", exp.With(expressions=missing, recursive=common.args.get("recursive")))
        else:
            with_clause.set("expressions", [*missing, *with_clause.expressions])


def tables_in(condition: exp.Expr) -> set[str]:
    """Return the lower-case table names of the columns in a condition."""
    return {column.table.lower() for column in condition.find_all(exp.Column)}


def writer(dialect: str) -> Generator:
    """Return a generator that writes trees in a dialect without comments and warnings."""
    return Dialect.get_or_raise(dialect).generator(comments=False, unsupported_level=ErrorLevel.IGNORE)


def write(tree: exp.Expr, generator: Generator) -> str | None:
    """Return the text of a tree, which may be changed; None if sqlglot cannot write it.

    NOT is written before the operator: `NOT a IN (1)` becomes `a NOT IN (1)`.

    >>> from sqlglot import parse_one
    >>> write(parse_one("NOT a IN (1) AND NOT b IS NULL AND NOT c = 1"), writer(""))
    'a NOT IN (1) AND b IS NOT NULL AND NOT c = 1'
    """
    try:
        for negation in [*tree.find_all(exp.Not)]:
            condition = negation.this
            if isinstance(condition, _INFIX_NOT_CONDITIONS):
                condition.set("this", exp.Var(this=f"{generator.generate(condition.this)} NOT"))
            elif isinstance(condition, exp.Is):
                condition.set("expression", exp.Var(this=f"NOT {generator.generate(condition.expression)}"))
            else:
                continue
            tree = condition.pop() if negation is tree else tree
            negation.replace(condition)
        return generator.generate(tree, copy=False)
    except Exception:  # noqa: BLE001 - sqlglot fails with any error on trees that its parser does not make
        return None
