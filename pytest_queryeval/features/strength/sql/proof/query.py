"""Queries in the form that the rules of proofs rewrite.

A query has tables, single conditions, and expressions as tuples.

An expression is a tuple: its operator, then its operands, which are expressions, queries, or texts. Columns are
`("column", alias, name, family)`, with an alias that is unique in the whole query and the family of their values, and
literals `("number", "1")` and `("text", "a")`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, TypeAlias, TypeGuard

from pytest_queryeval.core.db_schema import Column
from pytest_queryeval.core.mappings import excluding

Term: TypeAlias = tuple[Any, ...]

MAX_EXPANDED_NODES = 2_000  # of a query in which the queries of WITH stand in the place of their names
# Families of columns in which equal values look the same: in SQLite by words of the declared type, in the order in
# which it looks for them (1 equals 1.0 in columns without a type, BLOB and ANY), elsewhere by the type itself, since
# equal values of two types, such as DATE and TIMESTAMP, may look different.
_FAMILIES = (
    *(("INT", "integer"), ("CHAR", "text"), ("CLOB", "text"), ("TEXT", "text"), ("BLOB", ""), ("BINARY", "")),
    ("ANY", ""),
    *(("REAL", "real"), ("FLOA", "real"), ("DOUB", "real"), ("DATE", "time"), ("TIME", "time"), ("", "numeric")),
)
_FAMILIES_OF_TYPES = {
    **{name: f"integer {name}" for name in ("TINYINT", "SMALLINT", "INT", "BIGINT")},
    "TEXT": "text",
    "VARCHAR": "text",
    "DATE": "time DATE",
    "TIMESTAMP": "time TIMESTAMP",
}
# By family, the constants that determine the value of an equal column.
_CONSTANTS = {"integer": "number", "real": "number", "numeric": "number", "text": "text", "time": "text"}


class UnprovableError(Exception):
    """Raised if a query contains a part that no rule understands."""


@dataclass(frozen=True, eq=False, kw_only=True)
class OuterJoin:
    """A LEFT JOIN of the table or query with this alias, after all inner joins, on all of its conditions."""

    alias: str
    conditions: tuple[Term, ...]


@dataclass(frozen=True, eq=False, kw_only=True)
class Block:
    """A SELECT: rows of joins that meet all conditions, grouped, ordered and limited."""

    tables: Mapping[str, str | Query]
    """The tables and nested queries of FROM, by alias."""
    outer_joins: tuple[OuterJoin, ...] = ()
    """The LEFT JOINs; the table or query of `alias` is one of `tables`."""
    where: tuple[Term, ...] = ()
    select: tuple[Term, ...]
    names: tuple[str, ...]
    """The names of the columns."""
    is_distinct: bool = False
    group: tuple[Term, ...] | None = None
    """The keys of GROUP BY; None without it."""
    having: tuple[Term, ...] = ()
    order: tuple[tuple[Term, str], ...] = ()
    """The sort keys, each with `asc` or `desc`."""
    limit: int | None = None
    offset: int = 0

    @property
    def inner_tables(self) -> set[str]:
        """The aliases of tables and queries that are not joined by LEFT JOIN."""
        return self.tables.keys() - {join.alias for join in self.outer_joins}

    @property
    def equalities(self) -> list[tuple[Term, Term]]:
        """The pairs of columns that WHERE equates, if equal values of both look the same."""
        sides = [condition[1:] for condition in self.where if condition[0] == "eq"]
        return [(first, second) for first, second in sides if have_one_family(first, second)]

    @property
    def has_aggregates(self) -> bool:
        """Whether the SELECT has GROUP BY or an aggregate, so that its rows are groups."""
        return self.group is not None or any(aggregates_in(*self.results))

    @property
    def results(self) -> Iterator[Term]:
        """The expressions of SELECT, HAVING and ORDER BY, which are computed after grouping."""
        yield from (*self.select, *self.having, *(key for key, _ in self.order))

    @property
    def terms(self) -> Iterator[Term]:
        """All expressions of the SELECT, without expressions of nested queries."""
        yield from (*self.where, *self.results, *(self.group or ()))
        yield from (condition for join in self.outer_joins for condition in join.conditions)

    def without(self, alias: str) -> Block:
        """Return the SELECT without a table of FROM and its LEFT JOIN; other clauses are unchanged."""
        return replace(
            self,
            tables=excluding(self.tables, [alias]),
            outer_joins=tuple(join for join in self.outer_joins if join.alias != alias),
        )

    def mapped(self, function: Callable[[Term], Term]) -> Block:
        """Return the SELECT with `function` applied to each of its expressions as a whole."""
        return replace(
            self,
            where=tuple(map(function, self.where)),
            select=tuple(map(function, self.select)),
            group=None if self.group is None else tuple(map(function, self.group)),
            having=tuple(map(function, self.having)),
            order=tuple((function(key), direction) for key, direction in self.order),
            outer_joins=tuple(
                replace(join, conditions=tuple(map(function, join.conditions))) for join in self.outer_joins
            ),
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class SetOperation:
    """A UNION, UNION ALL, INTERSECT or EXCEPT of two queries."""

    operator: str
    """`union`, `union all`, `intersect` or `except`."""
    left: Query
    right: Query
    order: tuple[tuple[Term, str], ...] = ()


Query: TypeAlias = Block | SetOperation
AGGREGATES = frozenset(("count", "sum", "avg", "min", "max"))
CONSTANTS = frozenset(("number", "text", "null"))


def name_of(column: Term) -> Column:
    """Return the alias and the name in a column term."""
    return column[1], column[2]


def only_joins(query: Query) -> TypeGuard[Block]:
    """Return whether a query is a SELECT that only joins and filters rows, with DISTINCT or without."""
    return isinstance(query, Block) and not query.has_aggregates and query.limit is None and bool(query.tables)


def without_columns(query: Query) -> Query:
    """Return a query without columns, DISTINCT and ORDER BY for EXISTS: it has a row exactly if the given one has.

    A query that does more than join and filter rows is returned as it is.
    """
    return replace(query, select=(), names=(), is_distinct=False, order=()) if only_joins(query) else query


def operands(term: Term) -> Iterator[Term]:
    """Yield the operands of an expression that are expressions, without texts and queries."""
    return (part for part in term[1:] if isinstance(part, tuple))


def nodes(term: Term, *, are_nested: bool = False) -> Iterator[Term]:
    """Yield an expression and all expressions within it; with `are_nested`, also expressions of nested queries."""
    yield term
    for part in term[1:]:
        if isinstance(part, tuple):
            yield from nodes(part, are_nested=are_nested)
        elif are_nested and isinstance(part, Query):
            yield from nodes_of(part)


def nodes_of(query: Query) -> Iterator[Term]:
    """Yield the expressions of a query and all expressions within them, including nested queries."""
    if isinstance(query, SetOperation):
        yield from nodes_of(query.left)
        yield from nodes_of(query.right)
        return
    for term in query.terms:
        yield from nodes(term, are_nested=True)
    for source in query.tables.values():
        if not isinstance(source, str):
            yield from nodes_of(source)


def columns_of(part: Term | Query) -> set[Column]:
    """Return the columns that an expression or a query reads anywhere, including columns of queries around it."""
    within = nodes(part, are_nested=True) if isinstance(part, tuple) else nodes_of(part)
    return {name_of(node) for node in within if node[0] == "column"}


def aggregates_in(*terms: Term) -> list[Term]:
    """Return the aggregates in expressions, without aggregates of nested queries."""
    return [node for term in terms for node in nodes(term) if node[0] in AGGREGATES]


def rewritten(
    term: Term, function: Callable[[Term], Term], of_queries: Callable[[Query], Query] = lambda query: query
) -> Term:
    """Return an expression with a function applied to all of its parts, the innermost first.

    Nested queries are replaced by what `of_queries` returns.
    """
    parts = (
        rewritten(part, function, of_queries)
        if isinstance(part, tuple)
        else of_queries(part)
        if isinstance(part, Query)
        else part
        for part in term[1:]
    )
    return function((term[0], *parts))


def bare_columns(term: Term, keys: Sequence[Term]) -> Iterator[Column]:
    """Yield the columns of an expression outside of aggregates and of GROUP BY `keys`.

    All columns of nested queries.
    """
    if term in keys or term[0] in AGGREGATES:
        return
    if term[0] == "column":
        yield name_of(term)
    for part in term[1:]:
        if isinstance(part, tuple):
            yield from bare_columns(part, keys)
        elif isinstance(part, Query):
            yield from columns_of(part)


def reads_of(query: Query, alias: str) -> set[Term]:
    """Return the columns of the table with this alias that a query reads anywhere, as terms."""
    return {node for node in nodes_of(query) if node[:2] == ("column", alias)}


def substituted(block: Block, new: Mapping[Term, Term]) -> Block:
    """Return a SELECT in which the keys of `new` are replaced by its values, also in nested queries."""

    def of_query(query: Query) -> Query:
        if isinstance(query, Block):
            return substituted(query, new)
        return replace(query, left=of_query(query.left), right=of_query(query.right))

    tables = {alias: of if isinstance(of, str) else of_query(of) for alias, of in block.tables.items()}
    return replace(
        block.mapped(lambda term: rewritten(term, lambda node: new.get(node, node), of_query)), tables=tables
    )


def require_size(query: Query) -> None:
    """Raise `UnprovableError` if a query has more than `MAX_EXPANDED_NODES` expressions."""
    if next(islice(nodes_of(query), MAX_EXPANDED_NODES, None), None) is not None:
        raise UnprovableError("it is too long")


def require_named_alike(first: Query, second: Query) -> None:
    """Raise `UnprovableError` unless both queries are SELECTs with the same column names in the same order.

    Also raise it if a column has no known name.
    """
    if not isinstance(first, Block) or not isinstance(second, Block) or first.names != second.names:
        raise UnprovableError("columns of other names")
    if "" in first.names:
        raise UnprovableError("columns of which it is not known how an engine names them")


def require_own_aggregates(block: Block) -> None:
    """Raise `UnprovableError` for an aggregate in WHERE, in ORDER BY without GROUP BY, or of an outer query."""
    if aggregates_in(*block.where):
        raise UnprovableError("an aggregate in WHERE")
    if block.group is None and aggregates_in(*(key for key, _ in block.order)):
        raise UnprovableError("an aggregate in ORDER BY without GROUP BY")
    for aggregate in aggregates_in(*block.terms):
        aliases = {alias for alias, _ in columns_of(aggregate)}
        if aliases and aliases.isdisjoint(block.tables):
            raise UnprovableError("an aggregate of a query around the SELECT")


def conjuncts(term: Term) -> Sequence[Term]:
    """Return the conditions that AND joins; for another term, the term alone."""
    return [part for operand in operands(term) for part in conjuncts(operand)] if term[0] == "and" else [term]


def family_of(declared: str, dialect: str) -> str:
    """Return the family of a column by its declared type and the dialect; empty if equal values may look different."""
    if dialect != "sqlite":
        return _FAMILIES_OF_TYPES.get(declared.upper().partition("(")[0], "")
    return next(family for word, family in _FAMILIES if word in declared.upper()) if declared else ""


def constant_of(column: Term) -> str | None:
    """Return which constants determine a column: `number` or `text`; None for columns without a family."""
    return _CONSTANTS.get(column[3].partition(" ")[0])


def have_one_family(first: Term, second: Term) -> bool:
    """Return whether both expressions are columns of one family, in which equal values look the same."""
    return first[0] == second[0] == "column" and bool(first[3]) and first[3] == second[3]
