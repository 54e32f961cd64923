"""Operators: functions from a SELECT, or a query, to its changes, as people and models make them.

First those of conditions (comparisons, values, connectors, patterns, conditions that are left out), then those of
clauses (columns, aggregates, DISTINCT, joins, grouping, order, limits, set operations).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import islice

from sqlglot import Dialect, exp
from sqlglot.optimizer.simplify import simplify

from pytest_queryeval.core.table import Policy
from pytest_queryeval.features.strength import NO_DUPLICATES, ONE_ROW, numbers_beside
from pytest_queryeval.features.strength.sql.facts import (
    ARITHMETIC,
    COMPARISONS,
    Facts,
    Mutation,
    NodeType,
    Site,
    conjuncts,
    of_type,
    own_nodes,
    replaced,
)

_BOUNDARIES: dict[NodeType, NodeType] = {exp.GT: exp.GTE, exp.GTE: exp.GT, exp.LT: exp.LTE, exp.LTE: exp.LT}
# In the order of COMPARISONS: =, <>, >, >=, <, <=.
_FLIPPED: dict[NodeType, NodeType] = dict(
    zip(COMPARISONS, (exp.NEQ, exp.EQ, exp.LT, exp.LTE, exp.GT, exp.GTE), strict=True)
)
_TESTS = (operator.eq, operator.ne, operator.gt, operator.ge, operator.lt, operator.le)
_HOLDS: dict[NodeType, Callable[[float, float], bool]] = dict(zip(COMPARISONS, _TESTS, strict=True))
MAX_SIMPLIFIED = 100  # nodes
INTEGER_TYPE = "all values are integers"
ALWAYS_TRUE = "the condition is always true"
DUPLICATES_IGNORED = "duplicates do not matter"
ORDER_IGNORED = "the order does not matter"
NEVER_NULL = "the column is never NULL"
DETERMINED = "the other keys determine it"
ONE_MATTERS = "only the first row, or whether there is one, matters"

_AGGREGATES: dict[NodeType, NodeType] = {exp.Min: exp.Max, exp.Max: exp.Min, exp.Sum: exp.Avg, exp.Avg: exp.Sum}
_SWAPPED: dict[NodeType, NodeType] = {exp.Add: exp.Sub, exp.Sub: exp.Add, exp.Mul: exp.Div, exp.Div: exp.Mul}
_SET_OPERATIONS: dict[NodeType, tuple[NodeType, ...]] = {
    exp.Union: (exp.Intersect,),
    exp.Intersect: (exp.Union, exp.Except),
    exp.Except: (exp.Intersect, exp.Union),
}


def comparisons(site: Site) -> Iterator[Mutation]:
    """Change the operators of comparisons, but for the equalities of joins."""
    for node in site.conditions:
        if type(node) in _BOUNDARIES:
            new = of_type(node, _BOUNDARIES[type(node)])
            fractional = _has_fraction(node.this) or _has_fraction(node.expression)
            is_integer = site.facts.is_integer(node.this) or site.facts.is_integer(node.expression)
            reason = INTEGER_TYPE if fractional and is_integer else _same_counts(node, new, site)
            yield Mutation(node, new, "comparison-boundary", equivalent=reason)
        joins = isinstance(node, exp.EQ) and isinstance(node.find_ancestor(exp.Join, exp.Query), exp.Join)
        if type(node) in _FLIPPED and not joins:
            new = of_type(node, _FLIPPED[type(node)])
            yield Mutation(node, new, "comparison-flip", equivalent=_same_counts(node, new, site))


def values(site: Site) -> Iterator[Mutation]:
    """Change numbers by one, also those that are written as texts."""
    for node in site.conditions:
        if isinstance(node, COMPARISONS) and isinstance(node.expression, exp.Literal):
            for new in _neighbours(node.expression):
                changed = replaced(node, expression=new)
                yield Mutation(node, changed, "value", equivalent=_same_counts(node, changed, site))
        elif isinstance(node, exp.Between | exp.In):
            operands = [node.args.get("low"), node.args.get("high"), *node.expressions]
            for literal in operands:
                for new in _neighbours(literal) if isinstance(literal, exp.Literal) else ():
                    yield Mutation(literal, new, "value")


def connectors(site: Site) -> Iterator[Mutation]:
    """Exchange AND and OR, and leave out one of the conditions that they join."""
    for clause in site.clauses:
        for node in own_nodes(clause):
            if not isinstance(node, exp.And | exp.Or):
                continue
            sides = [side.copy() for side in (node.this, node.expression)]
            if isinstance(node, exp.And):
                new: exp.Expr = exp.Or(this=sides[0], expression=sides[1])
                new = exp.Paren(this=new) if isinstance(node.parent, exp.And | exp.Not) else new
            else:
                sides = [exp.Paren(this=side) if isinstance(side, exp.Or) else side for side in sides]
                new = exp.And(this=sides[0], expression=sides[1])
            yield Mutation(node, new, "connector", equivalent=_simplified_same(node, new))
            for kept_condition, dropped in ((node.this, node.expression), (node.expression, node.this)):
                if isinstance(dropped, exp.And | exp.Or):  # its own conditions are left out one by one
                    continue
                same = _simplified_same(node, kept_condition)
                if any(part is dropped for part in conjuncts(clause)) and _follow([dropped], site):
                    same = same or ALWAYS_TRUE
                change = f"{type(node).__name__.upper()} {dropped.sql(dialect=site.dialect)} dropped"
                yield Mutation(node, kept_condition.copy(), "condition-dropped", change, same)


def dropped_clauses(site: Site) -> Iterator[Mutation]:
    """Leave out WHERE, HAVING and NOT."""
    for name in ("where", "having"):
        clause = site.select.args.get(name)
        if clause is not None:
            same = ALWAYS_TRUE if _follow([*conjuncts(clause)], site) else ""
            yield Mutation(clause, None, f"{name}-dropped", equivalent=same)
    for node in site.conditions:
        if isinstance(node, exp.Not) and not isinstance(node.this.unnest(), exp.Is):
            yield Mutation(node, node.this.copy(), "not-dropped")
        elif node.args.get("negate"):
            yield Mutation(node, replaced(node, negate=None), "not-dropped")
        elif isinstance(node, exp.In | exp.Like | exp.Exists) and not isinstance(node.parent, exp.Not):
            yield Mutation(node, exp.Not(this=node.copy()), "not-added")


def null_tests(site: Site) -> Iterator[Mutation]:
    """Exchange IS NULL and IS NOT NULL."""
    for node in site.conditions:
        if isinstance(node, exp.Is) and isinstance(node.expression, exp.Null):
            is_negated = isinstance(node.parent, exp.Not)
            new = node.copy() if is_negated else exp.Not(this=node.copy())
            yield Mutation(node.parent if is_negated and node.parent is not None else node, new, "null-test")


def ranges(site: Site) -> Iterator[Mutation]:
    """Exclude each bound of BETWEEN from the range."""
    for node in site.conditions:
        if not isinstance(node, exp.Between) or isinstance(node.parent, exp.Not) or node.args.get("negate"):
            continue
        value, low, high = (node.args[name] for name in ("this", "low", "high"))
        for low_type, high_type, bound in ((exp.GT, exp.LTE, low), (exp.GTE, exp.LT, high)):
            both_bounds = exp.And(
                this=low_type(this=value.copy(), expression=low.copy()),
                expression=high_type(this=value.copy(), expression=high.copy()),
            )
            same = INTEGER_TYPE if site.facts.is_integer(value) and _has_fraction(bound) else ""
            yield Mutation(node, exp.Paren(this=both_bounds), "between", equivalent=same)


def patterns(site: Site) -> Iterator[Mutation]:
    """Anchor the start or the end of a pattern of LIKE, or remove the anchor."""
    for node in site.conditions:
        pattern = node.expression if isinstance(node, exp.Like | exp.ILike) else None
        if not isinstance(pattern, exp.Literal) or not pattern.name.strip("%"):
            continue
        text = pattern.name
        start = text.removeprefix("%") if text.startswith("%") else f"%{text}"
        end = text.removesuffix("%") if text.endswith("%") else f"{text}%"
        for changed in (start, end):
            yield Mutation(pattern, exp.Literal.string(changed), "like")


def fails_alone(alias: str, site: Site, facts: Facts) -> bool:
    """Return whether HAVING leaves out every row without a match in a joined table, which is a group by itself."""
    if not facts.group_keys or not facts.determine_rows(facts.grouped_columns, ignored=alias):
        return False
    return any(
        (test := _count_test(condition)) is not None
        and isinstance(condition.this.this, exp.Star)
        and not test[0](1, test[1])
        for condition in conjuncts(site.select.args.get("having"))
    )


def _has_fraction(node: exp.Expr) -> bool:
    with suppress(ValueError):
        return isinstance(node, exp.Literal) and not node.is_string and not float(node.name).is_integer()
    return False


def _neighbours(literal: exp.Literal) -> Iterator[exp.Expr]:
    """Yield a number that is one more, and one that is one less; of texts, those of whole numbers only."""
    text = literal.name
    is_whole = text.isascii() and text.isdigit() and len(text) < 16 and not text.startswith("0")
    for number in numbers_beside(text) if is_whole or not literal.is_string else ():
        yield exp.Literal.string(number) if literal.is_string else exp.Literal.number(number)


def _same_counts(node: exp.Expr, new: exp.Expr, site: Site) -> str:
    """Return a reason if two comparisons of a count with a number hold for the same counts; else an empty text."""
    before, after = _count_test(node), _count_test(new)
    if before is None or after is None:
        return ""
    counts = range(_min_count(node.this, site), int(max(before[1], after[1])) + 3)
    return "true for the same counts" if all(before[0](n, before[1]) == after[0](n, after[1]) for n in counts) else ""


def _count_test(node: exp.Expr) -> tuple[Callable[[float, float], bool], float] | None:
    if type(node) not in _HOLDS or not isinstance(node.this, exp.Count):
        return None
    literal = node.expression
    if not isinstance(literal, exp.Literal) or literal.is_string:
        return None
    return _HOLDS[type(node)], float(literal.name)


def _min_count(count: exp.Expr, site: Site) -> int:
    """Return the least value of a count: a group has at least one row."""
    inner = count.this
    argument = inner.expressions[0] if isinstance(inner, exp.Distinct) else inner
    never_null = argument is None or isinstance(argument, exp.Star) or site.facts.not_null(argument)
    return int(never_null and site.select.args.get("group") is not None)


def _follow(conditions: list[exp.Expr], site: Site) -> bool:
    """Return whether conditions are true in all rows for which the other conditions are."""
    facts = site.facts_of(without=conditions)
    for condition in conditions:
        if isinstance(condition, exp.Not) and isinstance(condition.this, exp.Is):
            if not isinstance(condition.this.expression, exp.Null) or not facts.not_null(condition.this.this):
                return False
            continue
        test = _count_test(condition)
        if test is None:
            return False
        counts = range(_min_count(condition.this, site), int(test[1]) + 3)
        if not all(test[0](n, test[1]) for n in counts):
            return False
    return True


def _simplified_same(node: exp.Expr, new: exp.Expr) -> str:
    """Return a reason if sqlglot simplifies two conditions to the same one; else an empty text."""
    if next(islice(node.walk(), MAX_SIMPLIFIED, None), None) is not None:
        return ""
    try:
        return "follows from the other conditions" if simplify(node.copy()) == simplify(new.copy()) else ""
    except Exception:  # noqa: BLE001 - it evaluates literals, and raises any error for those of different types
        return ""


def distinct(site: Site) -> Iterator[Mutation]:
    """Drop or add DISTINCT."""
    select, same = site.select, ""
    if ignores_duplicates(select, site.policy):
        same = DUPLICATES_IGNORED
    elif site.facts.has_unique_rows:
        same = NO_DUPLICATES
    if select.args.get("distinct") is None:
        yield Mutation(select, replaced(select, distinct=exp.Distinct()), "distinct", "DISTINCT added", same)
    elif not select.args["distinct"].args.get("on"):
        yield Mutation(select, replaced(select, distinct=None), "distinct", "DISTINCT dropped", same)


def counts(site: Site) -> Iterator[Mutation]:
    """Exchange COUNT(*), COUNT(column) and COUNT(DISTINCT column)."""
    facts = site.facts
    for node in _parts(site):
        if not isinstance(node, exp.Count):
            continue
        inner = node.this
        is_distinct = isinstance(inner, exp.Distinct) and len(inner.expressions) == 1
        argument = inner.expressions[0] if is_distinct else inner
        column = _countable(site) if isinstance(argument, exp.Star) else argument
        if not isinstance(column, exp.Column):
            continue
        never_null = facts.not_null(column)
        names = facts.plain([column])
        is_unique = bool(names) and facts.determine_rows(facts.grouped_columns | names)
        arguments_by_kind: dict[str, exp.Expr] = {
            "rows": exp.Star(),
            "values": column.copy(),
            "different": exp.Distinct(expressions=[column.copy()]),
        }
        kind = "rows" if isinstance(argument, exp.Star) else "different" if is_distinct else "values"
        for name, new in arguments_by_kind.items():
            if name == kind:
                continue
            same = (never_null or "rows" not in (name, kind)) and (is_unique or "different" not in (name, kind))
            reason = (NO_DUPLICATES if "different" in (name, kind) else NEVER_NULL) if same else ""
            yield Mutation(node, replaced(node, this=new), "count", equivalent=reason)


def aggregates(site: Site) -> Iterator[Mutation]:
    """Exchange MIN and MAX, SUM and AVG; drop or add the DISTINCT of SUM and AVG."""
    facts = site.facts
    single = facts.determine_rows(facts.grouped_columns)
    for node in _parts(site):
        if type(node) not in _AGGREGATES or isinstance(node.parent, exp.Window) or node.args.get("expressions"):
            continue
        fixed = isinstance(node, exp.Min | exp.Max) and facts.is_determined(node.this, facts.grouped_columns)
        same = "there is one value in each group" if single or fixed else ""
        yield Mutation(node, of_type(node, _AGGREGATES[type(node)]), "aggregate", equivalent=same)


def joins(site: Site) -> Iterator[Mutation]:
    """Exchange inner and left joins."""
    for join in site.select.args.get("joins") or ():
        if join.args.get("kind") == "CROSS" or not (join.args.get("on") or join.args.get("using")):
            continue
        if join.side not in ("", "LEFT") or join.args.get("method"):
            continue
        facts = site.facts_of(loosened=join)
        alias = facts.names.joined(join)[1]
        kept_out = alias not in facts.extended or facts.aggregates_only(alias) or fails_alone(alias, site, facts)
        same = (
            "every row has a match, or those without one are left out" if kept_out or facts.partner_exists(join) else ""
        )
        table = join.this.sql(dialect=site.dialect)
        names = [f"LEFT JOIN {table}", f"JOIN {table}"]
        new = replaced(join, side=None if join.side else "LEFT", kind=None)
        yield Mutation(join, new, "join-type", " → ".join(names if join.side else names[::-1]), same)


def orders(site: Site) -> Iterator[Mutation]:
    """Change the direction of sort keys, leave out one or all of them."""
    order = site.select.args.get("order")
    if order is None:
        return
    facts = site.facts
    free = ORDER_IGNORED if ignores_order(site.select, site.policy) else ONE_ROW if facts.has_one_row else ""
    yield Mutation(order, None, "order-dropped", equivalent=free)
    before: list[exp.Expr] = []
    for key in order.expressions:
        expression = facts.item(key)
        same = free or (DETERMINED if _is_tied(expression, before, facts) else "")
        yield Mutation(key, _turned(key, site), "order-direction", equivalent=same)
        if len(order.expressions) > 1:
            yield Mutation(key, None, "order-key-dropped", equivalent=same)
        before.append(expression)


def set_orders(query: exp.Expr, site: Site) -> Iterator[Mutation]:
    """Change the order of a set operation."""
    order = query.args.get("order")
    free = ORDER_IGNORED if ignores_order(query, site.policy) else ""
    if order is not None and isinstance(query, exp.SetOperation):
        yield Mutation(order, None, "order-dropped", equivalent=free)
        for key in order.expressions:
            yield Mutation(key, _turned(key, site), "order-direction", equivalent=free)


def limits(query: exp.Expr, site: Site) -> Iterator[Mutation]:
    """Change LIMIT by one, or leave it out."""
    limit = query.args.get("limit") or exp.Limit()
    number = limit.expression
    if not isinstance(number, exp.Literal) or not number.name.isdigit() or not (size := int(number.name)):
        return
    facts = replace(site, select=query).facts if isinstance(query, exp.Select) else None
    one_row = facts is not None and facts.has_one_row and not query.args.get("offset")
    # SQLite takes the first row of a query that is used as a value.
    is_value = isinstance(query.parent, exp.Subquery) and isinstance(query.parent.parent, (*COMPARISONS, *ARITHMETIC))
    first = (site.dialect == "sqlite" and is_value) or isinstance(query.parent, exp.Exists)
    same = ONE_ROW if one_row else ONE_MATTERS if first else ""
    for changed_size in (size + 1, size - 1):
        if changed_size:
            yield Mutation(
                number, exp.Literal.number(str(changed_size)), "limit", f"LIMIT {size} → LIMIT {changed_size}", same
            )
    yield Mutation(limit, None, "limit", equivalent=same)


def groups(site: Site) -> Iterator[Mutation]:
    """Group by one column fewer, or also by a selected one."""
    group, facts = site.select.args.get("group"), site.facts
    if group is None or any(group.args.get(name) for name in ("cube", "rollup", "grouping_sets", "totals", "all")):
        return
    keys = facts.group_keys
    for place, key in enumerate(group.expressions):
        kept_keys = [kept_key for number, kept_key in enumerate(keys) if number != place]
        same = DETERMINED if kept_keys and facts.is_determined(keys[place], facts.plain(kept_keys)) else ""
        if kept_keys:
            yield Mutation(key, None, "grouping", f"GROUP BY {key.sql(dialect=site.dialect)} dropped", same)
        else:
            # Without aggregates, and if each row is a group, nothing is grouped.
            is_plain = not site.select.args.get("having") and not any(isinstance(n, exp.AggFunc) for n in _parts(site))
            same = NO_DUPLICATES if is_plain and facts.determine_rows(facts.grouped_columns) else ""
            yield Mutation(group, None, "grouping", equivalent=same)
    for item in site.select.selects:
        column = item.unalias()
        if isinstance(column, exp.Column) and not column.is_star and column not in keys:
            same = DETERMINED if facts.is_determined(column, facts.grouped_columns) else ""
            new = replaced(group, expressions=[*(key.copy() for key in group.expressions), column.copy()])
            yield Mutation(group, new, "grouping", f"GROUP BY {column.sql(dialect=site.dialect)} added", same)


def columns(site: Site) -> Iterator[Mutation]:
    """Replace a column by the next one of its table that has the same type."""
    facts = site.facts
    for node in [*_parts(site), *(part for name in ("group", "order") for part in _clause_nodes(site, name))]:
        if not isinstance(node, exp.Column) or node.is_star or (name := facts.resolve(node)) is None:
            continue
        source = facts.tables.get(name[0])
        if source is None or name[1] not in (column_names := [*source.by_name]):
            continue
        place = column_names.index(name[1])
        family = _family(source.columns[place].type)
        in_turn = (*source.columns[place + 1 :], *source.columns[:place])
        replacement = next((column.name for column in in_turn if _family(column.type) == family), None)
        if replacement is None:
            continue
        new = replaced(node, this=_identifier(replacement, site))
        if len(facts.tables) > 1:
            new.set("table", new.args["table"] if node.table else exp.to_identifier(name[0]))
        clause = node.find_ancestor(exp.Join, exp.Query)
        operator = "join-condition" if isinstance(clause, exp.Join) else "column"
        yield Mutation(node, new, operator, equivalent=_same_column(node, new, site))


def arithmetic(site: Site) -> Iterator[Mutation]:
    """Exchange plus and minus, times and divided by."""
    for node in _parts(site):
        if type(node) in _SWAPPED:
            yield Mutation(node, of_type(node, _SWAPPED[type(node)]), "arithmetic")


def set_operations(query: exp.Expr, site: Site) -> Iterator[Mutation]:
    """Exchange UNION and UNION ALL, set operations, and the operands of EXCEPT."""
    if isinstance(query, exp.Union):
        is_distinct = bool(query.args.get("distinct"))
        words = ("UNION", "UNION ALL") if is_distinct else ("UNION ALL", "UNION")
        same = DUPLICATES_IGNORED if ignores_duplicates(query, site.policy) else ""
        yield Mutation(query, replaced(query, distinct=not is_distinct), "union-all", " → ".join(words), same)
    if isinstance(query, exp.Except):
        new = replaced(query, this=query.expression.copy(), expression=query.this.copy())
        yield Mutation(query, new, "except-swapped", "operands of EXCEPT swapped")
    for type_ in _SET_OPERATIONS.get(type(query), ()):  # none for other queries
        new = of_type(query, type_)
        new.set("distinct", True)
        yield Mutation(query, new, "set-operation", f"{query.key.upper()} → {new.key.upper()}")


def _parts(site: Site) -> Iterator[exp.Expr]:
    """Yield the nodes of the selected expressions, the conditions and the sort keys."""
    for item in site.select.expressions:
        yield from own_nodes(item)
    yield from site.conditions
    yield from (node for node in _clause_nodes(site, "order") if not isinstance(node, exp.Column))


def _clause_nodes(site: Site, name: str) -> Iterator[exp.Expr]:
    clause = site.select.args.get(name)
    if clause is not None:
        yield from own_nodes(clause)


def _countable(site: Site) -> exp.Column | None:
    """Return a column to count: the first one that may be NULL, else the first one of the tables."""
    facts = site.facts
    columns = [
        exp.column(_identifier(column.name, site), table=alias if len(facts.tables) > 1 else None)
        for alias, source in facts.tables.items()
        if source is not None
        for column in source.columns
    ]
    return next((column for column in columns if not facts.not_null(column)), columns[0] if columns else None)


def _turned(key: exp.Expr, site: Site) -> exp.Expr:
    """Return a sort key with the other direction, in which NULLs change sides too unless they are always last."""
    nulls_first = bool(key.args.get("nulls_first"))
    are_last = Dialect.get_or_raise(site.dialect).NULL_ORDERING == "nulls_are_last"
    return replaced(key, desc=not key.args.get("desc"), nulls_first=nulls_first if are_last else not nulls_first)


def _identifier(name: str, site: Site) -> exp.Identifier:
    """Return the name of a column, in quotes if the dialect would change it otherwise."""
    return exp.to_identifier(name, quoted=Dialect.get_or_raise(site.dialect).case_sensitive(name) or None)


def _is_tied(key: exp.Expr, before: list[exp.Expr], facts: Facts) -> bool:
    """Return whether rows that are equal in the earlier keys are equal in a sort key."""
    names = facts.plain(before)
    if key in before or isinstance(key, exp.Literal):
        return True
    if facts.select.args.get("group") is None:
        return facts.determine_rows(names) or facts.is_determined(key, names)
    return facts.determines_group(names, before)


def _family(type_: str) -> str:
    """Return the name of a family of types, whose columns can be compared with each other."""
    name = type_.upper().partition("(")[0].strip()
    if "INT" in name:
        return "INT"
    if name in ("REAL", "FLOAT", "DOUBLE", "NUMERIC", "DECIMAL", "NUMBER"):
        return "REAL"
    return "TEXT" if "CHAR" in name or name in ("TEXT", "STRING", "CLOB") else name


def _same_column(node: exp.Column, new: exp.Expr, site: Site) -> str:
    """Return why another column in place of one changes nothing; empty if it may."""
    facts = site.facts
    name, new_name = facts.plain([node]), facts.plain([new])
    counted = node.parent if isinstance(node.parent, exp.Count) else None
    if counted is not None and facts.not_null(node) and facts.not_null(new):
        return NEVER_NULL
    if isinstance(node.parent, exp.Group) and name <= facts.closure(new_name) and new_name <= facts.closure(name):
        return DETERMINED
    clause = node.find_ancestor(exp.Where, exp.Join, exp.Group, exp.Having, exp.Select)
    return ONE_MATTERS if clause is site.select and isinstance(clause.parent, exp.Exists) else ""


def ignores_duplicates(query: exp.Expr, policy: Policy) -> bool:
    """Return whether it does not matter how often a query returns a row."""
    parent = query.parent
    if parent is None:
        return policy.duplicates == "ignore" and query.args.get("limit") is None
    if isinstance(parent, exp.Exists):
        return True
    if query.args.get("limit") is not None:
        return False
    if isinstance(parent, exp.SetOperation):
        return bool(parent.args.get("distinct")) or ignores_duplicates(parent, policy)
    if isinstance(parent, exp.Subquery):
        return isinstance(parent.parent, exp.SetOperation | exp.In) and ignores_duplicates(parent, policy)
    return isinstance(parent, exp.In)


def ignores_order(query: exp.Expr, policy: Policy) -> bool:
    """Return whether the order of a query's rows does not matter."""
    if query.parent is None:
        return query.args.get("limit") is None and "ignore" in (policy.row_order, policy.duplicates)
    parent = query.parent.parent if isinstance(query.parent, exp.Subquery) else query.parent
    if isinstance(parent, exp.Exists):
        return True
    return query.args.get("limit") is None and isinstance(parent, exp.In | exp.SetOperation)
