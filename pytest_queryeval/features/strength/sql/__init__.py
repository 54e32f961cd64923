"""Mutants of a SQL query, each with one change that people and models make."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain, repeat

from sqlglot import exp

from pytest_queryeval.core.db_schema import Tables
from pytest_queryeval.core.model import Case
from pytest_queryeval.core.table import Policy, Table
from pytest_queryeval.features.strength import Mutant, distinct_mutants
from pytest_queryeval.features.strength.sql import operators
from pytest_queryeval.features.strength.sql.operators import Mutation, Site
from pytest_queryeval.features.strength.sql.proof import prove
from pytest_queryeval.languages.sql import parse_query
from pytest_queryeval.languages.sql.columns import Columns
from pytest_queryeval.languages.sql.parsing import without_warnings

_SELECT_OPERATORS = (
    *(operators.comparisons, operators.values, operators.connectors, operators.dropped_clauses),
    *(operators.null_tests, operators.ranges, operators.patterns),
    *(operators.distinct, operators.counts, operators.aggregates, operators.joins, operators.orders, operators.groups),
    *(operators.columns, operators.arithmetic),
)
_QUERY_OPERATORS = (operators.set_operations, operators.set_orders, operators.limits)
_CLAUSES: dict[type[exp.Expr], str] = {
    exp.From: "FROM",
    exp.Join: "FROM",
    exp.Where: "WHERE",
    exp.Group: "GROUP",
    exp.Having: "HAVING",
    exp.Order: "ORDER",
    exp.Limit: "LIMIT",
    exp.SetOperation: "SET",
    exp.Select: "SELECT",
}


def mutate(query: str, case: Case, tables: Tables, run: Callable[[str], Table | None]) -> Sequence[Mutant]:
    """Return the mutants of a gold query under the dialect and the policy of its case; `run` is not used."""
    return mutants(query, case.settings.dialect, tables, case.settings.policy)


@without_warnings()
def mutants(query: str, dialect: str, tables: Tables, policy: Policy) -> Sequence[Mutant]:
    """Return distinct mutants of a query; empty if the query cannot be parsed.

    `tables` are the tables of the source with the constraints that hold. `policy` says how answers are compared: a
    change of an uncompared column is `equivalent`. `distinct_mutants` limits the number.
    """
    tree = parse_query(query, dialect).whole_tree
    if tree is None:
        return ()
    tree = tree.copy()
    columns = Columns({name: table.by_name for name, table in tables.items()}, dialect)
    if tables:
        columns.replace_texts(tree)
    uncompared = _uncompared_columns(tree, policy)
    queries = [*tree.find_all(exp.Query)]
    base_site = Site(exp.Select(), tables, columns, dialect)
    sites = [base_site._replace(select=query) for query in queries if isinstance(query, exp.Select)]
    edits = [
        *(chain.from_iterable(map(operator, sites)) for operator in _SELECT_OPERATORS),
        *(chain.from_iterable(map(operator, queries, repeat(base_site))) for operator in _QUERY_OPERATORS),
    ]

    def mutant_of(edit: Mutation) -> Mutant:
        change = edit.change
        if not change:
            before, after = (node and node.sql(dialect=dialect).strip() for node in (edit.node, edit.new))
            change = f"{before} dropped" if edit.new is None else f"{before} → {after}"
        clause = edit.node if isinstance(edit.node, tuple(_CLAUSES)) else edit.node.find_ancestor(*_CLAUSES)
        is_uncompared = any(edit.node is item for item in uncompared)
        mutated = _edited(tree, edit, dialect)
        return Mutant(
            query=mutated,
            operator=edit.operator,
            clause=next((name for type_, name in _CLAUSES.items() if isinstance(clause, type_)), ""),
            change=change,
            equivalent="the column is not compared" if is_uncompared else "",
            proof=partial(prove, query, mutated, dialect, tables, policy),
        )

    return distinct_mutants(tree.sql(dialect=dialect), sum(1 for _ in tree.walk()), edits, mutant_of)


def _edited(tree: exp.Expr, edit: Mutation, dialect: str) -> str:
    """Return the SQL text of the tree after an edit; the tree itself is unchanged afterwards."""
    parent, key = edit.node.parent, edit.node.arg_key
    if parent is None or key is None:  # the whole query, which no edit drops
        return "" if edit.new is None else edit.new.sql(dialect=dialect)
    siblings = parent.args[key]
    before = [*siblings] if isinstance(siblings, list) else []
    parent.set(key, edit.new, edit.node.index)
    try:
        return tree.sql(dialect=dialect)
    finally:
        if isinstance(siblings, list):
            siblings[:] = before  # in place: operators iterate over this list
        parent.set(key, siblings)


def _uncompared_columns(tree: exp.Expr, policy: Policy) -> list[exp.Expr]:
    """Return the selected columns that the policy's `gold_columns` leave out of the comparison.

    The result is empty without `gold_columns`. Rows may depend on such columns by DISTINCT, GROUP BY, ORDER BY or a set
    operation; then the result is empty, too. So it is if SELECT has items that are neither columns nor have an alias.
    """
    gold_columns = {name.casefold() if isinstance(name, str) else name for name in policy.gold_columns}
    if not gold_columns or not isinstance(tree, exp.Select) or any(map(tree.args.get, ("distinct", "group", "order"))):
        return []
    if tree.is_star or not all(isinstance(item, exp.Column | exp.Alias) for item in tree.selects):
        return []  # columns without a place
    items = enumerate(tree.selects)
    return [n for at, n in items if isinstance(n, exp.Column) and not gold_columns & {at, n.name.casefold()}]
