"""Edits of a predicted SQL query that change several clauses for one reason."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from sqlglot import exp

from pytest_queryeval.core.cause import CauseLabel
from pytest_queryeval.features.causes.pairs import without, without_common
from pytest_queryeval.features.causes.sql import changes, parts
from pytest_queryeval.features.causes.sql.changes import Edit, Side, Size, Step, copy_step, replace_step
from pytest_queryeval.features.causes.sql.clause_edits import ClauseEdits
from pytest_queryeval.features.causes.sql.parts import joins_of, key, query_within, sources

# Clauses that are missing or wrong together, with the arguments of SELECT that have them.
_TOGETHER = {("ORDER", "LIMIT"): ("order", "limit", "offset"), ("GROUP", "HAVING"): ("group", "having")}
_GROUPS_AND_ORDER = ("group", "having", "order")
_SELECTED = ("expressions", "from_", "group", "having")
_FIRST = ("order", "limit", "offset")  # what takes the first rows


def combined_edits(clause_edits: ClauseEdits, predicted: exp.Expr, gold: exp.Expr) -> Iterator[Edit]:
    """Yield edits of several clauses, made of the edits of single clauses where that is possible."""
    values = [edit for edit in clause_edits.edits if edit.label == "value-case" and edit.size < Size.CLAUSE]
    if len(values) > 1:  # one edit for all values whose letter case is wrong
        old, new = ([edit.change[side] for edit in values] for side in (0, 1))
        yield replace(values[0], change=(old, new), steps=_steps(values))
    yield from _joined_columns(predicted, gold, clause_edits)
    yield from _order_of_nested(predicted, gold, clause_edits)
    for select, gold_select in clause_edits.pairs:
        edits = [edit for edit in clause_edits.edits if edit.within is select]
        yield from _clauses_together(select, gold_select, edits)
        yield from _columns_everywhere(select, edits)
        yield from _extremes(select, gold_select)
        yield from _unnested(select, gold_select)
    if isinstance(gold, exp.SetOperation) and isinstance(predicted, exp.Select):
        yield from _split(predicted, gold)


def _clauses_together(select: exp.Select, gold: exp.Select, edits: Sequence[Edit]) -> Iterator[Edit]:
    """Yield edits of two clauses that belong together."""
    for clauses, names in _TOGETHER.items():
        joined = [edit for clause in clauses for edit in edits if edit.clause == clause]
        if len(joined) == len(clauses) == len({edit.clause for edit in joined}):
            old, new = _arguments(select, names), _arguments(gold, names)
            edit = replace(joined[0], change=(old, new), extent=Size.SEVERAL, steps=_steps(joined))
            # Without its LIMIT, an order that gold does not have is of no use.
            is_limit = clauses == ("ORDER", "LIMIT") and not new
            yield replace(edit, label="wrong-limit", clause="LIMIT", extent=Size.PART) if is_limit else edit


def _columns_everywhere(select: exp.Select, edits: Sequence[Edit]) -> Iterator[Edit]:
    """Yield edits that put a column in the place of another one in all clauses but FROM."""
    for edit in edits:
        old, new = edit.change
        if isinstance(old, exp.Column) and isinstance(new, exp.Column) and edit.clause != "FROM":
            columns = [column for column in parts.columns_outside_from(select) if key(column) == key(old)]
            if len(columns) > 1:
                steps = [replace_step(column, new) for column in columns]
                yield _edit("wrong-column", edit.clause, (old, new), select, *steps)


def _extremes(select: exp.Select, gold: exp.Select) -> Iterator[Edit]:
    """Yield the edits between rows with an extreme value, `= (SELECT max(…))`, and the first row in an order."""
    take_first = copy_step(select, gold, *_FIRST)
    if gold.args.get("limit") and not select.args.get("limit"):
        first = _arguments(gold, _FIRST)
        for condition in _extreme_conditions(select):
            yield _edit("nesting", "WHERE", (condition, first), select, (condition, changes.drop_condition), take_first)
        for aggregate in (item.unalias() for item in select.expressions):
            if isinstance(aggregate, exp.Max | exp.Min):
                change = aggregate, [aggregate.this, *first]
                step = replace_step(aggregate, aggregate.this)
                yield _edit("wrong-aggregate", "SELECT", change, select, step, take_first)
    elif select.args.get("limit") and not gold.args.get("limit"):
        first = _arguments(select, _FIRST)
        for condition in _extreme_conditions(gold):
            add = partial(changes.add_condition, clause="where", condition=condition)
            yield _edit("nesting", "ORDER", (first, condition), select, take_first, (select, add))


def _extreme_conditions(select: exp.Select) -> list[exp.Expr]:
    """Return the conditions of WHERE that a value is the largest or the smallest one of a query."""
    return [
        condition
        for condition in parts.clause_operands(select, "where")
        if isinstance(condition, exp.EQ)
        and isinstance(query := query_within(condition.right) or query_within(condition.left), exp.Select)
        and len(query.expressions) == 1
        and (isinstance(query.expressions[0].unalias(), exp.Max | exp.Min) or query.args.get("limit"))
    ]


def _unnested(select: exp.Select, gold: exp.Select) -> Iterator[Edit]:
    """Yield edits that join the tables of `IN (SELECT …)` where gold joins them."""
    for condition in parts.clause_operands(select, "where"):
        query = parts.nested_select(condition)
        if query is None or query.args.get("limit") or select.args.get("group"):
            continue
        is_clear = sources(query).keys().isdisjoint(sources(select))
        if is_clear and _table_names(query) <= _table_names(gold):
            change: tuple[Side, Side] = (condition, ["JOIN", tuple(sources(query).values())])
            yield _edit("nesting", "WHERE", change, select, (condition, changes.join_nested))


def _joined_columns(predicted: exp.Expr, gold: exp.Expr, clause_edits: ClauseEdits) -> Iterator[Edit]:
    """Yield edits of the columns by which predicted nests a query, where gold joins its tables by other columns."""
    gold_pairs = [pair for columns in parts.joined_columns(gold) for pair in (columns, columns[::-1])]
    for columns in parts.joined_columns(predicted):
        tables = [parts.table_of(column) for column in columns]
        if columns[0].find_ancestor(exp.Join) or not all(isinstance(table, exp.Table) for table in tables):
            continue
        gold_tables = [clause_edits.gold_tables.get(id(table), table) for table in tables]
        names = [table.name.lower() for table in gold_tables if table is not None]
        matches = [
            pair for pair in gold_pairs if [table.name.lower() for table in map(parts.table_of, pair) if table] == names
        ]
        if len({tuple(column.name.lower() for column in pair) for pair in matches}) != 1:
            continue
        for column, gold_column, table, gold_table in zip(columns, matches[0], tables, gold_tables, strict=True):
            if column.name.lower() != gold_column.name.lower():
                owner = column.table if gold_table is table or gold_table is None else gold_table.alias_or_name
                new = exp.column(gold_column.this.copy(), table=owner)
                within = column.find_ancestor(exp.Select) or predicted
                yield Edit("wrong-column", "WHERE", (column, new), within, (replace_step(column, new),))


def _order_of_nested(predicted: exp.Expr, gold: exp.Expr, clause_edits: ClauseEdits) -> Iterator[Edit]:
    """Yield edits of the groups and the order of nested queries that take first rows, where gold joins their tables."""
    if not isinstance(gold, exp.Select) or not gold.args.get("limit") or not gold.args.get("order"):
        return
    compared = {id(select) for select, _ in clause_edits.pairs}
    table_names = {alias: table.name.lower() for alias, table in sources(gold).items() if isinstance(table, exp.Table)}
    for select in predicted.find_all(exp.Select):
        aliases = {table.name.lower(): table.alias_or_name for table in sources(select).values()}
        if id(select) in compared or not select.args.get("limit") or not aliases.keys() <= {*table_names.values()}:
            continue
        renamed = exp.Select()
        changes.copy_arguments(renamed, gold=gold, names=_GROUPS_AND_ORDER)
        for column in renamed.find_all(exp.Column):
            alias = aliases.get(table_names.get(column.table.lower(), ""))
            if alias is not None:
                changes.rename_table(column, name=alias)
        if any(parts.clause_key(select, name) != parts.clause_key(renamed, name) for name in _GROUPS_AND_ORDER):
            old, new = _arguments(select, _GROUPS_AND_ORDER), _arguments(renamed, _GROUPS_AND_ORDER)
            has_same_groups = parts.clause_key(select, "group") == parts.clause_key(renamed, "group")
            step = copy_step(select, renamed, *_GROUPS_AND_ORDER)
            if has_same_groups:
                yield _edit("wrong-order", "ORDER", (old, new), select, step)
            else:
                yield _edit("wrong-grouping", "GROUP", (old, new), select, step)


def _split(predicted: exp.Select, gold: exp.SetOperation) -> Iterator[Edit]:
    """Yield the edit that makes two queries of a condition, where gold selects the same from some of its tables."""
    first = query_within(gold.this)
    if not isinstance(first, exp.Select) or not sources(first).keys() <= sources(predicted).keys():
        return
    extra_joins, missing_joins = without_common(joins_of(predicted).values(), joins_of(first).values(), key)
    if missing_joins or any(parts.clause_key(predicted, name) != parts.clause_key(first, name) for name in _SELECTED):
        return
    arm: list[Side] = [parts.set_operation(gold), gold.expression]
    operands, first_operands = (parts.clause_operands(select, "where") for select in (predicted, first))
    if not extra_joins and len(operands) == 1 and _has_alternative(operands[0], first_operands):
        kept = None if isinstance(operands[0], exp.Or) else first.args.get("where")
        change: tuple[Side, Side] = predicted.args["where"], [kept, *arm]
        steps: list[Step] = [replace_step(predicted, gold)]
    else:
        only_predicted, only_first = without_common(operands, first_operands, key)
        dropped = without(only_predicted, [operand for operand, _ in parts.alike(only_predicted, only_first)])
        change = [*extra_joins, exp.Where(this=exp.and_(*dropped)) if dropped else None], arm
        aliases = [join.alias_or_name.lower() for join in extra_joins]
        steps = [(operand, changes.drop_condition) for operand in dropped]
        steps += [(predicted, partial(changes.drop_sources, aliases=aliases))] if aliases else []
        steps += [(predicted, partial(changes.combine, gold=gold))] if steps else []
    if steps:
        yield Edit("set-operation", "SET", change, predicted, (*steps,), Size.CLAUSE)


def _has_alternative(condition: exp.Expr, operands: Sequence[exp.Expr]) -> bool:
    """Return whether a condition has others as an alternative, beside OR or among the values of IN."""
    if isinstance(condition, exp.In):
        values = {*map(key, condition.expressions)}
        return len(operands) == 1 and isinstance(operands[0], exp.EQ) and key(operands[0].expression) in values
    alternatives = [{*map(key, parts.operands(part, exp.And))} for part in parts.operands(condition, exp.Or)]
    return len(alternatives) > 1 and {*map(key, operands)} in alternatives


def _arguments(query: exp.Expr, names: Sequence[str]) -> list[Side]:
    """Return those of the arguments of a query that it has."""
    return [query.args[name] for name in names if query.args.get(name)]


def _table_names(select: exp.Select) -> set[str]:
    return {source.name.lower() for source in sources(select).values() if isinstance(source, exp.Table)}


def _edit(label: CauseLabel, clause: str, change: tuple[Side, Side], within: exp.Expr, *steps: Step) -> Edit:
    return Edit(label, clause, change, within, steps, Size.SEVERAL)


def _steps(edits: Sequence[Edit]) -> tuple[Step, ...]:
    return tuple(step for edit in edits for step in edit.steps)
