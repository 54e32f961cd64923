"""Mutants of a SQL query, each with one change that people and models make."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice, repeat

from sqlglot import exp

from pytest_queryeval.core.db_schema import Tables
from pytest_queryeval.core.model import Case
from pytest_queryeval.core.table import Policy, Table
from pytest_queryeval.features.strength import CHANGE_CHARACTERS, Mutant, in_turn, most_mutants
from pytest_queryeval.features.strength.sql import clauses, conditions
from pytest_queryeval.features.strength.sql.facts import Edit, Site, column_names
from pytest_queryeval.languages.sql import parse_query
from pytest_queryeval.languages.sql.columns import Columns
from pytest_queryeval.languages.sql.parsing import without_warnings
from pytest_queryeval.text.formatting import truncate

NOT_COMPARED = "the column is not compared"
_OF_SELECT = (
    *(conditions.comparisons, conditions.values, conditions.connectors, conditions.dropped_clauses),
    *(conditions.null_tests, conditions.ranges, conditions.patterns),
    *(clauses.distinct, clauses.counts, clauses.aggregates, clauses.joins, clauses.orders, clauses.groups),
    *(clauses.columns, clauses.arithmetic),
)
_OF_QUERY = (clauses.set_operations, clauses.set_orders, clauses.limits)
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
    """Return the mutants of a case's query."""
    return mutants(query, case.settings.dialect, tables, case.settings.policy)


@without_warnings()
def mutants(query: str, dialect: str, tables: Tables, policy: Policy) -> Sequence[Mutant]:
    """Return the mutants of a query, none of them twice; none of a query that cannot be parsed.

    `tables` are those it is about, with the constraints that hold, `policy` is how answers are compared. Of more than
    `MAX_MUTANTS`, or fewer of a long query, those are returned that come first when the operators take turns.
    """
    tree = parse_query(query, dialect).whole_tree
    if tree is None:
        return ()
    tree = tree.copy()
    columns = Columns({name: column_names(table) for name, table in tables.items()}, dialect)
    if tables:
        columns.replace_texts(tree)
    uncompared = _uncompared(tree, policy)
    texts = {tree.sql(dialect=dialect)}
    mutants: list[Mutant] = []
    most = most_mutants(sum(1 for _ in tree.walk()))
    for edit in islice(in_turn(_edits(tree, tables, columns, policy, dialect)), 2 * most):  # few are made twice
        text = _edited(tree, edit, dialect)
        if text in texts:
            continue
        texts.add(text)
        change = edit.change
        if not change:
            before, after = (node and node.sql(dialect=dialect).strip() for node in (edit.node, edit.new))
            change = f"{before} dropped" if edit.new is None else f"{before} → {after}"
        mutant = Mutant(
            query=text,
            operator=edit.operator,
            clause=_clause(edit.node),
            change=truncate(change, CHANGE_CHARACTERS),
            equivalent=edit.equivalent or (NOT_COMPARED if any(edit.node is item for item in uncompared) else ""),
        )
        mutants.append(mutant)
        if len(mutants) == most:
            break
    return mutants


def _edits(tree: exp.Expr, tables: Tables, columns: Columns, policy: Policy, dialect: str) -> Iterator[Iterator[Edit]]:
    """Yield the edits of each operator."""
    queries = [*tree.find_all(exp.Query)]

    def site(select: exp.Select) -> Site:
        return Site(select=select, tables=tables, columns=columns, policy=policy, dialect=dialect)

    sites = [site(query) for query in queries if isinstance(query, exp.Select)]
    nowhere = site(exp.Select())
    for operator in _OF_SELECT:
        yield chain.from_iterable(map(operator, sites))
    for of_query in _OF_QUERY:
        yield chain.from_iterable(map(of_query, queries, repeat(nowhere)))


def _edited(tree: exp.Expr, edit: Edit, dialect: str) -> str:
    """Return the text of the tree with an edit, and leave the tree as it was."""
    node, new = edit.node, edit.new
    if node is tree:
        return new.sql(dialect=dialect) if new is not None else ""
    parent, key = node.parent, node.arg_key
    assert parent is not None
    assert key is not None
    siblings = parent.args[key]
    before = [*siblings] if isinstance(siblings, list) else []
    parent.set(key, new, node.index)
    try:
        return tree.sql(dialect=dialect)
    finally:
        if isinstance(siblings, list):
            siblings[:] = before  # in place: `_edits` iterates over this list
        parent.set(key, siblings)


def _uncompared(tree: exp.Expr, policy: Policy) -> list[exp.Expr]:
    """Return the nodes of selected columns that are not among the `gold_columns`, and that nothing else depends on."""
    gold_columns = {name.casefold() if isinstance(name, str) else name for name in policy.gold_columns}
    if not gold_columns or not isinstance(tree, exp.Select) or any(map(tree.args.get, ("distinct", "group", "order"))):
        return []
    left_out: list[exp.Expr] = [
        item
        for place, item in enumerate(tree.selects)
        if isinstance(item, exp.Column) and not gold_columns & {place, item.name.casefold()}
    ]
    has_places = not tree.is_star and all(isinstance(item, exp.Column | exp.Alias) for item in tree.selects)
    return left_out if has_places else []


def _clause(node: exp.Expr) -> str:
    """Return the name of the clause that a node is in."""
    place: exp.Expr | None = node
    while place is not None:
        for type_, name in _CLAUSES.items():
            if isinstance(place, type_):
                return name
        place = place.parent
    return ""
