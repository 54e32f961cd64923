"""Repairs of SQL queries that a database refused: other names, another spelling, the words of its own dialect."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, islice

from sqlglot import exp

from pytest_queryeval.features.causes.failed import MAX_CHARACTERS, MAX_SPELLINGS, FailedQuery, Repair, repair
from pytest_queryeval.features.causes.sql import parts
from pytest_queryeval.features.causes.sql.aligned import query_within
from pytest_queryeval.features.causes.sql.changes import add_condition, drop_condition
from pytest_queryeval.features.causes.sql.other_names import with_other_names
from pytest_queryeval.features.causes.sql.respelling import CLAUSE_OF, respelled
from pytest_queryeval.features.causes.sql.writing import write, writer
from pytest_queryeval.languages.sql.parsed_query import ParsedQuery, parse_query
from pytest_queryeval.languages.sql.unknown_names import name_label

_DIALECTS = ("mysql", "postgres", "tsql", "duckdb", "sqlite", "bigquery", "snowflake", "oracle", "spark")
# The extreme that a value is compared with, by the quantifier and the comparison.
_EXTREME_OF: dict[tuple[type[exp.Expr], type[exp.Expr]], type[exp.Expr]] = {
    (exp.All, exp.LT): exp.Min,
    (exp.All, exp.LTE): exp.Min,
    (exp.All, exp.GT): exp.Max,
    (exp.All, exp.GTE): exp.Max,
    (exp.Any, exp.LT): exp.Max,
    (exp.Any, exp.LTE): exp.Max,
    (exp.Any, exp.GT): exp.Min,
    (exp.Any, exp.GTE): exp.Min,
}


def sql_repairs(query: FailedQuery) -> Iterator[Repair]:
    """Yield queries that one change makes of a query that its database refused, by what its message says."""
    if len(query.text) > MAX_CHARACTERS:
        return
    tree, label = parse_query(query.text, query.dialect).whole_tree, name_label(query.message)
    texts = {query.text}
    if tree is not None:
        before = write(tree.copy(), writer(query.dialect))
        for changed_tree in _rewritten(tree) if label is None else with_other_names(tree, query):
            text = write(changed_tree, writer(query.dialect))
            if before is not None and text is not None and text not in texts:
                texts.add(text)
                yield from filter(None, [repair(before, text, CLAUSE_OF, "SELECT")])
    spellings = dict.fromkeys(islice(respelled(query), MAX_SPELLINGS)) if label is None or tree is None else {}
    for text in chain(spellings, _in_dialect(query) if spellings else ()):
        if text not in texts and ParsedQuery(text, query.dialect).whole_tree is not None:
            texts.add(text)
            yield from filter(None, [repair(query.text, text, CLAUSE_OF, "SELECT")])


def _rewritten(tree: exp.Expr) -> Iterator[exp.Expr]:
    """Yield the query without what few databases have: comparisons with ANY and ALL, parentheses around arms of UNION.

    A condition on groups in WHERE, which none has, moves to HAVING.
    """
    for rewrite in (_with_extremes, _with_having, _with_bare_arms):
        copy = tree.copy()
        if rewrite(copy):
            yield copy


def _with_extremes(tree: exp.Expr) -> bool:
    """Compare with the smallest or largest row where a value is compared with ANY or ALL rows."""
    quantified = list(tree.find_all(exp.Any, exp.All))
    for quantifier in quantified:
        select, comparison = query_within(quantifier.this), quantifier.parent or exp.Null()
        extreme = _EXTREME_OF.get((type(quantifier), type(comparison)))
        if isinstance(comparison, exp.EQ) and isinstance(quantifier, exp.Any) and select is not None:
            comparison.replace(exp.In(this=comparison.this.copy(), query=exp.Subquery(this=select.copy())))
        elif isinstance(select, exp.Select) and extreme is not None and len(select.expressions) == 1:
            select.expressions[0].replace(extreme(this=select.expressions[0].unalias().copy()))
            quantifier.replace(exp.Subquery(this=select.copy()))
        else:
            return False
    return bool(quantified)


def _with_having(tree: exp.Expr) -> bool:
    """Move the conditions on aggregates from WHERE to HAVING."""
    moved = False
    for select in list(tree.find_all(exp.Select)):
        for condition in parts.clause_operands(select, "where"):
            aggregate = condition.find(exp.AggFunc)
            if aggregate is not None and aggregate.find_ancestor(exp.Select) is select:
                add_condition(select, clause="having", condition=condition)
                drop_condition(condition)
                moved = True
    return moved


def _with_bare_arms(tree: exp.Expr) -> bool:
    """Take the parentheses away from the arms of set operations; an arm with ORDER BY becomes a query in FROM."""
    arms = [arm for node in tree.find_all(exp.SetOperation) for arm in (node.this, node.expression)]
    changed = False
    for arm in arms:
        inner = query_within(arm)
        if inner is None:
            continue
        is_ordered = bool(inner.args.get("order") or inner.args.get("limit"))
        if isinstance(arm, exp.Subquery) and not is_ordered:
            arm.replace(inner.copy())
        elif is_ordered:
            arm.replace(exp.select("*").from_(exp.Subquery(this=inner.copy())))
        else:
            continue
        changed = True
    return changed


def _in_dialect(query: FailedQuery) -> Iterator[str]:
    """Yield the query in the words of its own dialect, read as one of another dialect."""
    for dialect in _DIALECTS:
        tree = ParsedQuery(query.text, dialect).whole_tree if dialect != query.dialect else None
        text = None if tree is None else write(tree.copy(), writer(query.dialect))
        if text is not None:
            yield text
