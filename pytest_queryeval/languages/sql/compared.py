"""What a query compares the columns of tables with: the values at which its answer changes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from sqlglot import exp
from sqlglot.optimizer.qualify import qualify
from sqlglot.optimizer.scope import Scope, traverse_scope
from sqlglot.schema import MappingSchema

from pytest_queryeval.core.db_schema import Column
from pytest_queryeval.core.table_definition import Tables
from pytest_queryeval.languages.sql.parsed_query import parse_query

_COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Is, exp.NullSafeEQ)


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """Columns with the values that a query compares them with, pairs of columns that it compares, and its numbers.

    `numbers` are those of LIMIT and of comparisons without a column, as with `count(*)`. Names are in lower case.
    """

    values: tuple[tuple[Column, str | int | float], ...] = ()
    pairs: tuple[tuple[Column, Column], ...] = ()
    numbers: tuple[int, ...] = ()


def compared_columns(query: str, dialect: str, tables: Tables) -> Compared:
    """Return what a query compares, as far as it can be read and its columns are those of `tables`.

    >>> from pytest_queryeval.languages.sql.table_definitions import read_tables
    >>> tables = read_tables("CREATE TABLE singer (name TEXT, age INT)", "sqlite")
    >>> compared_columns("SELECT name FROM singer WHERE age > 30", "sqlite", tables).values
    ((('singer', 'age'), 30),)
    """
    tree = parse_query(query, dialect).tree
    if tree is None:
        return Compared()
    try:
        tree = with_quoted_texts(tree.copy(), tables)
        known: dict[str, object] = {
            name: {column.name.lower(): "text" for column in table.columns} for name, table in tables.items()
        }
        tree = qualify(
            tree,
            schema=MappingSchema(known, dialect=dialect, normalize=False),
            dialect=dialect,
            identify=False,
            quote_identifiers=False,
            validate_qualify_columns=False,
        )
        owners = dict(_owners(tree))
    except Exception:  # noqa: BLE001 - the optimizer fails with any error on what it does not expect
        return Compared()
    values: list[tuple[Column, str | int | float]] = []
    pairs: list[tuple[Column, Column]] = []
    numbers: list[int] = []
    for sides in _compared_sides(tree):
        nodes = [node for side in sides for node in side.find_all(exp.Column)]
        columns = list(dict.fromkeys(owners[id(node)] for node in nodes if id(node) in owners))
        constants = [value for side in sides for value in _constants(side)]
        values += ((column, value) for column in columns for value in constants)
        pairs += pairwise(columns)
        if not columns:
            numbers += (int(value) for value in constants if isinstance(value, int | float))
    for limit in tree.find_all(exp.Limit, exp.Offset):
        numbers += (int(value) for value in _constants(limit.expression) if isinstance(value, int))
    return Compared(values=tuple(values), pairs=tuple(pairs), numbers=tuple(numbers))


def with_quoted_texts(tree: exp.Expr, tables: Tables) -> exp.Expr:
    """Return the tree with texts where it has names in double quotes that no table has as a column.

    SQLite and MySQL take such a name for a text.
    """
    names = {column.name.lower() for table in tables.values() for column in table.columns}
    names |= {alias.alias.lower() for alias in tree.find_all(exp.Alias, exp.TableAlias)}
    for column in list(tree.find_all(exp.Column)):
        if column.this.args.get("quoted") and not column.table and column.name.lower() not in names:
            column.replace(exp.Literal.string(column.name))
    return tree


def _owners(tree: exp.Expr) -> Iterator[tuple[int, Column]]:
    """Yield the column of a table that each node reads, directly or through queries that pass it on unchanged."""
    for scope in traverse_scope(tree):
        for node in scope.columns:
            column: exp.Expr = node
            within: Scope | None = scope
            while isinstance(column, exp.Column) and within is not None:
                source = within.sources.get(column.table)
                if isinstance(source, exp.Table):
                    yield id(node), (source.name.lower(), column.name.lower())
                if not isinstance(source, Scope) or not isinstance(source.expression, exp.Select):
                    break
                name = column.name
                column = next(
                    (item.unalias() for item in source.expression.selects if item.alias_or_name == name), column
                )
                within = source


def _compared_sides(tree: exp.Expr) -> Iterator[list[exp.Expr]]:
    """Yield what is compared with each other: the sides of conditions, and items that set operations put together."""
    for node in tree.walk():
        match node:
            case exp.Between():
                yield [node.this, node.args["low"], node.args["high"]]
            case exp.In():
                query = node.args.get("query")
                yield [node.this, *node.expressions, *(_selected(query) if query is not None else ())]
            case exp.Like() | exp.ILike():
                yield [node.this, *_matching(node.expression)]
            case exp.SetOperation():
                yield from map(list, zip(_selected(node.this), _selected(node.expression), strict=False))
            case _ if isinstance(node, _COMPARISONS):
                yield [item for side in (node.this, node.expression) for item in _selected(side)]


def _selected(node: exp.Expr) -> Iterable[exp.Expr]:
    """Return the items that a query selects, by the first arm of a set operation; of another expression, itself."""
    query = node.unnest()
    while isinstance(query, exp.SetOperation):
        query = query.this.unnest()
    return [item.unalias() for item in query.selects] if isinstance(query, exp.Select) else [node]


def _matching(pattern: exp.Expr) -> list[exp.Expr]:
    """Return texts that a pattern of LIKE matches, and some that it does not where it is anchored."""
    if not isinstance(pattern, exp.Literal):
        return [pattern]
    core = pattern.name.replace("_", "x")
    texts = [core.replace("%", ""), core.replace("%", "a"), f"a{core.replace('%', '')}", f"{core.replace('%', '')}a"]
    return [exp.Literal.string(text) for text in texts]


def _constants(node: exp.Expr) -> Iterator[str | int | float]:
    """Yield the constants of an expression, but for those of queries in it."""
    for literal in node.walk(prune=lambda inner: isinstance(inner, exp.Query) and inner is not node):
        if not isinstance(literal, exp.Literal):
            continue
        if literal.is_string:
            yield literal.name
            continue
        sign = -1 if isinstance(literal.parent, exp.Neg) else 1
        number = float(literal.name)
        yield sign * (int(number) if number.is_integer() else number)
