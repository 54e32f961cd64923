"""Edits of a predicted SQL query that are one idea, but change several clauses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from sqlglot import exp

from pytest_queryeval.core.cause import CauseLabel
from pytest_queryeval.features.causes.sql import changes, parts
from pytest_queryeval.features.causes.sql.aligned import key, query_within, sources
from pytest_queryeval.features.causes.sql.clauses import ClauseEdits
from pytest_queryeval.features.causes.sql.edit import Edit, Side, Size, Step

# Clauses that are missing or wrong together, with the arguments of SELECT that have them.
_TOGETHER = {("ORDER", "LIMIT"): ("order", "limit", "offset"), ("GROUP", "HAVING"): ("group", "having")}
_GROUP: tuple[CauseLabel, str] = ("wrong-grouping", "GROUP")
_ORDER: tuple[CauseLabel, str] = ("wrong-order", "ORDER")
_GROUPS_AND_ORDER = ("group", "having", "order")
_SELECTED = ("expressions", "from_", "group", "having")
_FIRST = ("order", "limit", "offset")  # what takes the first rows


def edits_across(clause_edits: ClauseEdits, predicted: exp.Expr, gold: exp.Expr) -> Iterator[Edit]:
    """Yield edits of several clauses, made of the edits of single clauses where that is possible."""
    yield from _letter_case(clause_edits.edits)
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


def _letter_case(edits: Sequence[Edit]) -> Iterator[Edit]:
    """Yield one edit for all values whose letter case is wrong."""
    values = [edit for edit in edits if edit.label == "value-case" and edit.size < Size.CLAUSE]
    if len(values) > 1:
        yield replace(_joined(values), size=Size.CONSTANT)


def _clauses_together(select: exp.Select, gold: exp.Select, edits: Sequence[Edit]) -> Iterator[Edit]:
    for clauses, names in _TOGETHER.items():
        joined = [edit for clause in clauses for edit in edits if edit.clause == clause]
        if len(joined) == len(clauses) == len({edit.clause for edit in joined}):
            old, new = ([query.args[name] for name in names if query.args.get(name)] for query in (select, gold))
            edit = replace(_joined(joined), change=(old, new))
            # Without its LIMIT, an order that gold does not have is of no use.
            is_limit = clauses == ("ORDER", "LIMIT") and not new
            yield replace(edit, label="wrong-limit", clause="LIMIT", size=Size.PART) if is_limit else edit


def _columns_everywhere(select: exp.Select, edits: Sequence[Edit]) -> Iterator[Edit]:
    """Yield edits that put a column in the place of another one in all clauses but FROM."""
    for edit in edits:
        old, new = edit.change
        if not isinstance(old, exp.Column) or not isinstance(new, exp.Column) or edit.clause == "FROM":
            continue
        places = [column for column in changes.columns_outside_from(select) if key(column) == key(old)]
        if len(places) > 1:
            make = partial(changes.replace, new=new)
            yield _edit("wrong-column", edit.clause, (old, new), select, *((column, make) for column in places))


def _extremes(select: exp.Select, gold: exp.Select) -> Iterator[Edit]:
    """Yield the edits between rows with an extreme value, `= (SELECT max(…))`, and the first row in an order."""
    take_first = partial(changes.copy_arguments, gold=gold, names=_FIRST)
    if gold.args.get("limit") and not select.args.get("limit"):
        first = [gold.args[name] for name in _FIRST if gold.args.get(name)]
        for condition in _extreme_conditions(select):
            steps = (condition, changes.drop_condition), (select, take_first)
            yield _edit("nesting", "WHERE", (condition, list(first)), select, *steps)
        for aggregate in (item.unalias() for item in select.expressions):
            if isinstance(aggregate, exp.Max | exp.Min):
                steps = (aggregate, partial(changes.replace, new=aggregate.this)), (select, take_first)
                yield _edit("wrong-aggregate", "SELECT", (aggregate, [aggregate.this, *first]), select, *steps)
    elif select.args.get("limit") and not gold.args.get("limit"):
        first = [select.args[name] for name in _FIRST if select.args.get(name)]
        for condition in _extreme_conditions(gold):
            add = partial(changes.add_condition, clause="where", condition=condition)
            yield _edit("nesting", "ORDER", (list(first), condition), select, (select, take_first), (select, add))


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
    joined = _table_names(gold)
    for condition in parts.clause_operands(select, "where"):
        query = query_within(condition.args.get("query")) if isinstance(condition, exp.In) else None
        if not isinstance(query, exp.Select) or len(query.expressions) != 1 or query.args.get("limit"):
            continue
        is_clear = sources(query).keys().isdisjoint(sources(select)) and not select.args.get("group")
        if is_clear and _table_names(query) <= joined:
            change: tuple[Side, Side] = (condition, ["JOIN", tuple(sources(query).values())])
            yield _edit("nesting", "WHERE", change, select, (condition, changes.join_nested))


def _joined_columns(predicted: exp.Expr, gold: exp.Expr, clause_edits: ClauseEdits) -> Iterator[Edit]:
    """Yield edits of the columns by which predicted nests a query, where gold joins its tables by other columns."""
    replacements = {
        id(sources(select)[alias]): sources(gold_select)[gold_alias]
        for select, gold_select in clause_edits.pairs
        for alias, gold_alias in parts.replaced_sources(select, gold_select)
    }
    gold_pairs = [pair for columns in parts.joined_columns(gold) for pair in (columns, columns[::-1])]
    for columns in parts.joined_columns(predicted):
        tables = [parts.table_of(column) for column in columns]
        if columns[0].find_ancestor(exp.Join) or not all(isinstance(table, exp.Table) for table in tables):
            continue
        names = [replacements.get(id(table), table).name.lower() for table in tables]  # type: ignore[union-attr]
        ways = [
            pair for pair in gold_pairs if [table.name.lower() for table in map(parts.table_of, pair) if table] == names
        ]
        if len({" ".join(column.name.lower() for column in way) for way in ways}) != 1:
            continue
        for column, gold_column, table in zip(columns, ways[0], tables, strict=True):
            if column.name.lower() != gold_column.name.lower():
                owner = replacements.get(id(table))
                new = exp.column(
                    gold_column.this.copy(), table=owner.alias_or_name if owner is not None else column.table
                )
                within = column.find_ancestor(exp.Select) or predicted
                step = column, partial(changes.replace, new=new)
                yield replace(_edit("wrong-column", "WHERE", (column, new), within, step), size=Size.PART)


def _order_of_nested(predicted: exp.Expr, gold: exp.Expr, clause_edits: ClauseEdits) -> Iterator[Edit]:
    """Yield edits of the groups and the order of nested queries that take first rows, where gold joins their tables."""
    if not isinstance(gold, exp.Select) or not gold.args.get("limit") or not gold.args.get("order"):
        return
    compared = {id(select) for select, _ in clause_edits.pairs}
    aliases = {source.name.lower(): alias for alias, source in sources(gold).items() if isinstance(source, exp.Table)}
    for select in predicted.find_all(exp.Select):
        alias_by_table = {source.name.lower(): source.alias_or_name for source in sources(select).values()}
        if id(select) in compared or not select.args.get("limit") or not alias_by_table.keys() <= aliases.keys():
            continue
        first = exp.Select()
        changes.copy_arguments(first, gold=gold, names=_GROUPS_AND_ORDER)
        for column in first.find_all(exp.Column):
            names = [name for table, name in alias_by_table.items() if aliases[table] == column.table.lower()]
            if names:
                changes.rename_table(column, name=names[0])
        old, new = (
            [query.args[name] for name in _GROUPS_AND_ORDER if query.args.get(name)] for query in (select, first)
        )
        if [*map(key, old)] != [*map(key, new)]:
            step = select, partial(changes.copy_arguments, gold=first, names=_GROUPS_AND_ORDER)
            is_grouped_alike = parts.clause_key(select, "group") == parts.clause_key(first, "group")
            yield _edit(*(_ORDER if is_grouped_alike else _GROUP), (old, new), select, step)


def _split(predicted: exp.Select, gold: exp.SetOperation) -> Iterator[Edit]:
    """Yield the edit that makes two queries of a condition, where gold selects the same from some of its tables."""
    first = query_within(gold.this)
    if not isinstance(first, exp.Select) or not sources(first).keys() <= sources(predicted).keys():
        return
    joins, first_joins = predicted.args.get("joins") or [], {*map(key, first.args.get("joins") or ())}
    superfluous = [join for join in joins if key(join) not in first_joins]
    is_alike = all(parts.clause_key(predicted, name) == parts.clause_key(first, name) for name in _SELECTED)
    if not is_alike or len(joins) != len(superfluous) + len(first_joins):
        return
    arm: list[Side] = [parts.set_operation(gold), gold.expression]
    operands, first_operands = (parts.clause_operands(select, "where") for select in (predicted, first))
    if not superfluous and len(operands) == 1 and _holds(operands[0], first_operands):
        where, first_where = predicted.args["where"], first.args.get("where")
        change: tuple[Side, Side] = where, [None if isinstance(operands[0], exp.Or) else first_where, *arm]
        steps: list[Step] = [(predicted, partial(changes.replace, new=gold))]
    else:
        differing = parts.without_common(operands, first_operands)
        paired = {id(operand) for operand, _ in parts.alike(*differing)}
        dropped = [operand for operand in differing[0] if id(operand) not in paired]
        change = [*superfluous, exp.Where(this=exp.and_(*dropped)) if dropped else None], arm
        aliases = [parts.joined_name(join) for join in superfluous]
        steps = [(operand, changes.drop_condition) for operand in dropped]
        steps += [(predicted, partial(changes.drop_sources, aliases=aliases))] if aliases else []
        steps += [(predicted, partial(changes.combine, gold=gold))] if steps else []
    if steps:
        yield Edit(
            label="set-operation", clause="SET", change=change, within=predicted, size=Size.CLAUSE, steps=(*steps,)
        )


def _holds(condition: exp.Expr, operands: Sequence[exp.Expr]) -> bool:
    """Return whether a condition has others as an alternative, beside OR or among the values of IN."""
    if isinstance(condition, exp.In):
        values = {*map(key, condition.expressions)}
        return len(operands) == 1 and isinstance(operands[0], exp.EQ) and key(operands[0].expression) in values
    alternatives = [{*map(key, parts.operands(part, exp.And))} for part in parts.operands(condition, exp.Or)]
    return len(alternatives) > 1 and {*map(key, operands)} in alternatives


def _table_names(select: exp.Select) -> set[str]:
    return {source.name.lower() for source in sources(select).values() if isinstance(source, exp.Table)}


def _edit(label: CauseLabel, clause: str, change: tuple[Side, Side], within: exp.Expr, *steps: Step) -> Edit:
    return Edit(label=label, clause=clause, change=change, within=within, size=Size.SEVERAL, steps=steps)


def _joined(edits: Sequence[Edit]) -> Edit:
    """Return edits as one, under the label of the first."""
    first = edits[0]
    old, new = ([edit.change[side] for edit in edits] for side in (0, 1))
    return _edit(first.label, first.clause, (old, new), first.within, *(step for edit in edits for step in edit.steps))
