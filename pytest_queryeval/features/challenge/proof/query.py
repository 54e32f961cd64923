"""Queries in the form that the rules of proofs rewrite, and what holds for their rows.

A query has tables, single conditions, and expressions as tuples.

An expression is a tuple: its operator, then its operands, which are expressions, queries, or texts. Columns are
`("column", alias, name, family)`, with an alias that is unique in the whole query and the family of their values, and
literals `("number", "1")` and `("text", "a")`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, TypeAlias

from pytest_queryeval.core.db_schema import Column, Tables
from pytest_queryeval.languages.sql.facts import JoinedRows

Term: TypeAlias = tuple[Any, ...]

MAX_EXPANDED_NODES = 2_000  # of a query in which the queries of WITH stand in the place of their names
_COMPARISONS = frozenset(("eq", "neq", "lt", "lte", "Like", "ILike"))
_STRICT = frozenset(("add", "sub", "mul", "Div", "Lower", "Upper", "Length", "Abs", "Neg"))
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
    """A query contains something that no rule understands."""


@dataclass(frozen=True, eq=False, kw_only=True)
class OuterJoin:
    """A LEFT JOIN of a table or a query, after all inner joins."""

    alias: str
    conditions: tuple[Term, ...]


@dataclass(frozen=True, eq=False, kw_only=True)
class Block:
    """A SELECT: rows of inner joins that meet all conditions, grouped, ordered and cut."""

    tables: Mapping[str, str | Query]
    """The tables and nested queries of FROM, by alias."""
    outer_joins: tuple[OuterJoin, ...] = ()
    """The joins of those `tables` that may have no row to match."""
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
        """The aliases of what is joined by inner joins."""
        return self.tables.keys() - {join.alias for join in self.outer_joins}

    @property
    def has_aggregates(self) -> bool:
        """Whether rows are aggregated, with GROUP BY or without."""
        terms = (*self.select, *self.having, *(key for key, _ in self.order))
        return self.group is not None or any(node[0] in AGGREGATES for term in terms for node in nodes(term))

    @property
    def terms(self) -> Iterator[Term]:
        """All expressions of the SELECT, without those of nested queries."""
        yield from (*self.where, *self.select, *(self.group or ()), *self.having)
        yield from (key for key, _ in self.order)
        yield from (condition for join in self.outer_joins for condition in join.conditions)

    def mapped(self, function: Callable[[Term], Term]) -> Block:
        """Return the SELECT with a function applied to all of its expressions."""
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
    """A set operation without ALL, or UNION ALL."""

    operator: str
    """`union`, `union all`, `intersect` or `except`."""
    left: Query
    right: Query
    order: tuple[tuple[Term, str], ...] = ()


Query: TypeAlias = Block | SetOperation
AGGREGATES = frozenset(("count", "sum", "avg", "min", "max"))
CONSTANTS = frozenset(("number", "text", "null"))


def name_of(column: Term) -> Column:
    """Return the alias and the name of a column."""
    return column[1], column[2]


def only_joins(query: Query) -> bool:
    """Return whether a query only joins and filters rows, with DISTINCT or without."""
    return isinstance(query, Block) and not query.has_aggregates and query.limit is None and bool(query.tables)


def without_columns(query: Query) -> Query:
    """Return a query that has rows exactly if the given one has, for EXISTS."""
    if not isinstance(query, Block) or not only_joins(query):
        return query
    return replace(query, select=(), names=(), is_distinct=False, order=())


def operands(term: Term) -> Iterator[Term]:
    """Yield the operands of an expression that are expressions."""
    return (part for part in term[1:] if isinstance(part, tuple))


def nodes(term: Term) -> Iterator[Term]:
    """Yield an expression and all within it, but not within nested queries."""
    yield term
    for part in operands(term):
        yield from nodes(part)


def rewritten(term: Term, function: Callable[[Term], Term]) -> Term:
    """Return an expression with a function applied to all of its parts, the innermost first; not in nested queries."""
    parts = [rewritten(part, function) if isinstance(part, tuple) else part for part in term[1:]]
    return function((term[0], *parts))


def with_queries(term: Term, function: Callable[[Query], Query]) -> Term:
    """Return an expression with a function applied to its nested queries."""

    def replace_queries(node: Term) -> Term:
        return tuple(function(part) if isinstance(part, Block | SetOperation) else part for part in node)

    return rewritten(term, replace_queries)


def columns_of(term: Term) -> Iterator[Column]:
    """Yield the columns of an expression, those of nested queries included."""
    for node in nodes(term):
        if node[0] == "column":
            yield name_of(node)
        for part in node[1:]:
            if isinstance(part, Block | SetOperation):
                yield from columns_of_query(part)


def columns_of_query(query: Query) -> Iterator[Column]:
    """Yield the columns that a query reads anywhere, those of other queries around it included."""
    if isinstance(query, SetOperation):
        yield from columns_of_query(query.left)
        yield from columns_of_query(query.right)
        return
    for term in query.terms:
        yield from columns_of(term)
    for source in query.tables.values():
        if not isinstance(source, str):
            yield from columns_of_query(source)


def bare_columns(term: Term, keys: Sequence[Term]) -> Iterator[Column]:
    """Yield the columns of an expression outside of aggregates and of keys of GROUP BY."""
    if term in keys or term[0] in AGGREGATES:
        return
    if term[0] == "column":
        yield name_of(term)
    for part in term[1:]:
        if isinstance(part, tuple):
            yield from bare_columns(part, keys)
        elif isinstance(part, Block | SetOperation):
            yield from columns_of(("query", part))


def substituted(query: Query, function: Callable[[Term], Term]) -> Query:
    """Return a query with a function applied to all expressions, those of nested queries included."""
    if isinstance(query, SetOperation):
        return replace(query, left=substituted(query.left, function), right=substituted(query.right, function))

    def everywhere(term: Term) -> Term:
        return with_queries(rewritten(term, function), lambda nested: substituted(nested, function))

    tables = {
        alias: source if isinstance(source, str) else substituted(source, function)
        for alias, source in query.tables.items()
    }
    return replace(query.mapped(everywhere), tables=tables)


def require_size(query: Query) -> None:
    """Raise `UnprovableError` for a query with more than `MAX_EXPANDED_NODES` expressions."""
    if sum(1 for _ in islice(_all_nodes(query), MAX_EXPANDED_NODES + 1)) > MAX_EXPANDED_NODES:
        raise UnprovableError("it is too long")


def require_own_aggregates(block: Block) -> None:
    """Raise `UnprovableError` for an aggregate that is not one of this SELECT."""
    if any(node[0] in AGGREGATES for term in block.where for node in nodes(term)):
        raise UnprovableError("an aggregate in WHERE")
    if block.group is None and any(node[0] in AGGREGATES for key, _ in block.order for node in nodes(key)):
        raise UnprovableError("an aggregate in ORDER BY without GROUP BY")
    for aggregate in (node for term in block.terms for node in nodes(term) if node[0] in AGGREGATES):
        aliases = {alias for alias, _ in columns_of(aggregate)}
        if aliases and aliases.isdisjoint(block.tables):
            raise UnprovableError("an aggregate of a query around the SELECT")


def _all_nodes(query: Query) -> Iterator[Term]:
    """Yield the expressions of a query and all within them, those of nested queries included."""
    if isinstance(query, SetOperation):
        yield from _all_nodes(query.left)
        yield from _all_nodes(query.right)
        return
    for term in query.terms:
        for node in nodes(term):
            yield node
            for part in node[1:]:
                if isinstance(part, Block | SetOperation):
                    yield from _all_nodes(part)
    for source in query.tables.values():
        if not isinstance(source, str):
            yield from _all_nodes(source)


def conjuncts(term: Term) -> Sequence[Term]:
    """Return the conditions that AND joins."""
    return [part for operand in operands(term) for part in conjuncts(operand)] if term[0] == "and" else [term]


class Facts(JoinedRows):
    """The facts of one SELECT: which columns are equal, never NULL, or determined by others."""

    def __init__(self, block: Block, tables: Tables) -> None:
        self._block = block
        equalities = [condition[1:] for condition in block.where if condition[0] == "eq"]
        pairs = [(name_of(first), name_of(second)) for first, second in equalities if have_one_family(first, second)]
        constants = {
            name_of(column)
            for equality in equalities
            for column, constant in (equality, equality[::-1])
            if column[0] == "column" and constant[0] == constant_of(column)
        }
        super().__init__(
            tables={alias: tables[of] if isinstance(of, str) else None for alias, of in block.tables.items()},
            equal=pairs,
            constants=constants.union(name for pair in pairs for name in pair if name[0] not in block.tables),
            rejected={name for condition in block.where for name in non_null_columns(condition)},
            extended=block.tables.keys() - block.inner_tables,
        )

    def not_null(self, term: Term) -> bool:
        """Return whether an expression is a column that is NULL in no row."""
        return term[0] == "column" and self.is_not_null(name_of(term))

    def has_unique_rows(self) -> bool:
        """Return whether no two rows of the answer are equal, also without DISTINCT."""
        block = self._block
        names = [name_of(term) for term in block.select if term[0] == "column"]
        if block.group is None:
            return self.has_one_row() or (not block.has_aggregates and self.determine_rows(names))
        determined = self.closure(names)
        return all(key in block.select or (key[0] == "column" and name_of(key) in determined) for key in block.group)

    def has_one_row(self) -> bool:
        """Return whether the answer has one row at most."""
        block = self._block
        return block.group is None and (block.has_aggregates or self.determine_rows(()))

    def is_determined(self, term: Term, keys: Iterable[Term]) -> bool:
        """Return whether an expression has one value in all rows, or groups, with the same values of these keys.

        Only columns of which equal values look the same determine others.
        """
        determined = self.closure(name_of(key) for key in keys if have_one_family(key, key))
        if self._block.group is not None and all(
            key[0] == "column" and name_of(key) in determined for key in self._block.group
        ):
            return True  # a single group
        if any(part[0] in AGGREGATES for part in nodes(term)):
            return False
        return all(name in determined or name[0] not in self._block.tables for name in columns_of(term))


def family_of(declared: str, dialect: str) -> str:
    """Return the family of a column by its declared type; empty if equal values may look different."""
    if dialect != "sqlite":
        return _FAMILIES_OF_TYPES.get(declared.upper().partition("(")[0], "")
    return next(family for word, family in _FAMILIES if word in declared.upper()) if declared else ""


def constant_of(column: Term) -> str | None:
    """Return the operator of constants that determine a column: `number` or `text`; None for columns of no family."""
    return _CONSTANTS.get(column[3].partition(" ")[0])


def have_one_family(first: Term, second: Term) -> bool:
    """Return whether both are columns of which equal values are the same."""
    return first[0] == second[0] == "column" and bool(first[3]) and first[3] == second[3]


def non_null_columns(condition: Term) -> set[Column]:
    """Return the columns that are not NULL in rows for which a condition is true."""
    if condition[0] == "and":
        return {name for part in conjuncts(condition) for name in non_null_columns(part)}
    if condition[0] == "or":
        return set.intersection(*(non_null_columns(part) for part in operands(condition)))
    if condition[0] == "not":
        (inner,) = operands(condition)
        if inner[0] == "isnull":
            return strict_columns(next(operands(inner)))
        return set().union(*map(strict_columns, operands(inner))) if inner[0] in _COMPARISONS else set()
    if condition[0] in _COMPARISONS:
        return set().union(*map(strict_columns, operands(condition)))
    return strict_columns(condition[1]) if condition[0] == "in" else set()


def strict_columns(term: Term) -> set[Column]:
    """Return the columns of which a NULL makes an expression NULL."""
    if term[0] == "column":
        return {name_of(term)}
    return set().union(*map(strict_columns, operands(term))) if term[0] in _STRICT else set()
