"""Mutants with wrong conditions: comparisons, values, connectors, patterns, and conditions that are left out."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from itertools import islice

from sqlglot import exp
from sqlglot.optimizer.simplify import simplify

from pytest_queryeval.features.strength import numbers_beside
from pytest_queryeval.features.strength.sql.facts import (
    COMPARISONS,
    Edit,
    Facts,
    Kind,
    Site,
    conjuncts,
    of_type,
    own_nodes,
    replaced,
)

_BOUNDARIES: dict[Kind, Kind] = {exp.GT: exp.GTE, exp.GTE: exp.GT, exp.LT: exp.LTE, exp.LTE: exp.LT}
# In the order of COMPARISONS: =, <>, >, >=, <, <=.
_FLIPPED: dict[Kind, Kind] = dict(zip(COMPARISONS, (exp.NEQ, exp.EQ, exp.LT, exp.LTE, exp.GT, exp.GTE), strict=True))
_TESTS = (operator.eq, operator.ne, operator.gt, operator.ge, operator.lt, operator.le)
_HOLDS: dict[Kind, Callable[[float, float], bool]] = dict(zip(COMPARISONS, _TESTS, strict=True))
MAX_SIMPLIFIED = 100  # nodes
INTEGER_TYPE = "all values are integers"
ALWAYS_TRUE = "the condition is always true"
SAME_COUNTS = "true for the same counts"
REDUNDANT = "follows from the other conditions"


def comparisons(site: Site) -> Iterator[Edit]:
    """Change the operators of comparisons, but for the equalities of joins."""
    for node in site.conditions:
        if type(node) in _BOUNDARIES:
            new = of_type(node, _BOUNDARIES[type(node)])
            fractional = _has_fraction(node.this) or _has_fraction(node.expression)
            is_integer = site.facts.is_integer(node.this) or site.facts.is_integer(node.expression)
            same = INTEGER_TYPE if fractional and is_integer else _same_counts(node, new, site)
            yield Edit(node, new, "comparison-boundary", equivalent=same)
        joins = isinstance(node, exp.EQ) and isinstance(node.find_ancestor(exp.Join, exp.Query), exp.Join)
        if type(node) in _FLIPPED and not joins:
            new = of_type(node, _FLIPPED[type(node)])
            yield Edit(node, new, "comparison-flip", equivalent=_same_counts(node, new, site))


def values(site: Site) -> Iterator[Edit]:
    """Change numbers by one, also those that are written as texts."""
    for node in site.conditions:
        if isinstance(node, COMPARISONS) and isinstance(node.expression, exp.Literal):
            for new in _neighbours(node.expression):
                changed = replaced(node, expression=new)
                yield Edit(node, changed, "value", equivalent=_same_counts(node, changed, site))
        elif isinstance(node, exp.Between | exp.In):
            operands = [node.args.get("low"), node.args.get("high"), *node.expressions]
            for literal in operands:
                for new in _neighbours(literal) if isinstance(literal, exp.Literal) else ():
                    yield Edit(literal, new, "value")


def connectors(site: Site) -> Iterator[Edit]:
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
            yield Edit(node, new, "connector", equivalent=_simplified_same(node, new))
            for kept_condition, dropped in ((node.this, node.expression), (node.expression, node.this)):
                if isinstance(dropped, exp.And | exp.Or):  # its own conditions are left out one by one
                    continue
                same = _simplified_same(node, kept_condition)
                if any(part is dropped for part in conjuncts(clause)) and _follow([dropped], site):
                    same = same or ALWAYS_TRUE
                change = f"{type(node).__name__.upper()} {dropped.sql(dialect=site.dialect)} dropped"
                yield Edit(node, kept_condition.copy(), "condition-dropped", change, same)


def dropped_clauses(site: Site) -> Iterator[Edit]:
    """Leave out WHERE, HAVING and NOT."""
    for name in ("where", "having"):
        clause = site.select.args.get(name)
        if clause is not None:
            same = ALWAYS_TRUE if _follow([*conjuncts(clause)], site) else ""
            yield Edit(clause, None, f"{name}-dropped", equivalent=same)
    for node in site.conditions:
        if isinstance(node, exp.Not) and not isinstance(node.this.unnest(), exp.Is):
            yield Edit(node, node.this.copy(), "not-dropped")
        elif node.args.get("negate"):
            yield Edit(node, replaced(node, negate=None), "not-dropped")
        elif isinstance(node, exp.In | exp.Like | exp.Exists) and not isinstance(node.parent, exp.Not):
            yield Edit(node, exp.Not(this=node.copy()), "not-added")


def null_tests(site: Site) -> Iterator[Edit]:
    """Exchange IS NULL and IS NOT NULL."""
    for node in site.conditions:
        if isinstance(node, exp.Is) and isinstance(node.expression, exp.Null):
            is_negated = isinstance(node.parent, exp.Not)
            new = node.copy() if is_negated else exp.Not(this=node.copy())
            yield Edit(node.parent if is_negated and node.parent is not None else node, new, "null-test")


def ranges(site: Site) -> Iterator[Edit]:
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
            yield Edit(node, exp.Paren(this=both_bounds), "between", equivalent=same)


def patterns(site: Site) -> Iterator[Edit]:
    """Anchor the start or the end of a pattern of LIKE, or remove the anchor."""
    for node in site.conditions:
        pattern = node.expression if isinstance(node, exp.Like | exp.ILike) else None
        if not isinstance(pattern, exp.Literal) or not pattern.name.strip("%"):
            continue
        text = pattern.name
        start = text.removeprefix("%") if text.startswith("%") else f"%{text}"
        end = text.removesuffix("%") if text.endswith("%") else f"{text}%"
        for changed in (start, end):
            yield Edit(pattern, exp.Literal.string(changed), "like")


def fails_alone(alias: str, site: Site, facts: Facts) -> bool:
    """Return whether HAVING leaves out every row without a match in a joined table, which is a group by itself."""
    groups = facts.plain(facts.group_keys)
    if not facts.group_keys or not facts.determine_rows(groups, ignored=alias):
        return False
    for condition in conjuncts(site.select.args.get("having")):
        test = _count_test(condition)
        counts_rows = isinstance(condition.this, exp.Count) and isinstance(condition.this.this, exp.Star)
        if test is not None and counts_rows and not test[0](1, test[1]):
            return True
    return False


def _has_fraction(node: exp.Expr) -> bool:
    if not isinstance(node, exp.Literal) or node.is_string:
        return False
    try:
        return not float(node.name).is_integer()
    except ValueError:
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
    counts = range(_least_count(node.this, site), int(max(before[1], after[1])) + 3)
    return SAME_COUNTS if all(before[0](n, before[1]) == after[0](n, after[1]) for n in counts) else ""


def _count_test(node: exp.Expr) -> tuple[Callable[[float, float], bool], float] | None:
    if type(node) not in _HOLDS or not isinstance(node.this, exp.Count):
        return None
    literal = node.expression
    if not isinstance(literal, exp.Literal) or literal.is_string:
        return None
    return _HOLDS[type(node)], float(literal.name)


def _least_count(count: exp.Expr, site: Site) -> int:
    """Return the least value of a count: a group has at least one row."""
    inner = count.this
    argument = inner.expressions[0] if isinstance(inner, exp.Distinct) else inner
    never_null = argument is None or isinstance(argument, exp.Star) or site.facts.not_null(argument)
    return int(never_null and site.select.args.get("group") is not None)


def _follow(conditions: list[exp.Expr], site: Site) -> bool:
    """Return whether conditions are true in all rows for which the other conditions are."""
    facts = site.facts_of(site.select, without=conditions)
    for condition in conditions:
        if isinstance(condition, exp.Not) and isinstance(condition.this, exp.Is):
            if not isinstance(condition.this.expression, exp.Null) or not facts.not_null(condition.this.this):
                return False
            continue
        test = _count_test(condition)
        if test is None:
            return False
        counts = range(_least_count(condition.this, site), int(test[1]) + 3)
        if not all(test[0](n, test[1]) for n in counts):
            return False
    return True


def _simplified_same(node: exp.Expr, new: exp.Expr) -> str:
    """Return a reason if sqlglot simplifies two conditions to the same one; else an empty text."""
    if next(islice(node.walk(), MAX_SIMPLIFIED, None), None) is not None:
        return ""
    try:
        return REDUNDANT if simplify(node.copy()) == simplify(new.copy()) else ""
    except Exception:  # noqa: BLE001 - it evaluates literals, and raises any error for those of different types
        return ""
