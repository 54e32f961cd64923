"""The values with which a query compares the columns of tables: those at which its answer changes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from sqlglot import exp

from pytest_queryeval.core.db_schema import Column, Tables
from pytest_queryeval.features.strength.sql.facts import column_names
from pytest_queryeval.languages.sql import parse_query
from pytest_queryeval.languages.sql.columns import Columns

_SMALL_COUNTS = (0, 2)  # with the numbers next to them
_COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Is, exp.NullSafeEQ)


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """Columns with the values that a query compares them with, pairs of columns that it compares, and its numbers.

    `numbers` are those of LIMIT and of comparisons without a column, as with `count(*)`. Names are in lower case.
    `read` are the names of the columns whose values can change the answer; None for all.
    """

    values: tuple[tuple[Column, str | int | float], ...] = ()
    pairs: tuple[tuple[Column, Column], ...] = ()
    numbers: tuple[int, ...] = ()
    read: frozenset[str] | None = None


def compared_columns(query: str, dialect: str, tables: Tables) -> Compared:
    """Return what a query compares, as far as it can be read and its columns are those of `tables`.

    >>> from pytest_queryeval.features.strength.sql.table_definitions import read_tables
    >>> tables = read_tables("CREATE TABLE singer (name TEXT, age INT)", "sqlite")
    >>> compared_columns("SELECT name FROM singer WHERE age > 30", "sqlite", tables).values
    ((('singer', 'age'), 30),)
    """
    shared_tree = parse_query(query, dialect).tree
    if shared_tree is None:
        return Compared()
    tree = shared_tree.copy()
    columns_of = Columns({name: column_names(table) for name, table in tables.items()}, dialect)
    columns_of.replace_texts(tree)
    values: list[tuple[Column, str | int | float]] = []
    pairs = [*_pairs_of_joins(tree, columns_of)]
    numbers: list[int] = []
    for sides in _compared_sides(tree):
        columns = list(dict.fromkeys(origin for side in sides for origin in _origins(side, columns_of)))
        constants = [value for side in sides for value in _constants(side)]
        values += ((column, value) for column in columns for value in (*constants, *_operands(sides, constants)))
        values += ((column, value) for column in _compared_with_count(sides, columns_of) for value in _SMALL_COUNTS)
        pairs += pairwise(columns)
        if not columns or any(side.find(exp.Count) for side in sides):
            numbers += (int(value) for value in constants if isinstance(value, int | float))
    for limit in tree.find_all(exp.Limit, exp.Offset):
        numbers += (int(value) for value in _constants(limit.expression) if isinstance(value, int))
    return Compared(values=tuple(values), pairs=tuple(pairs), numbers=tuple(numbers), read=_read_columns(tree))


def _read_columns(tree: exp.Expr) -> frozenset[str] | None:
    """Return the names of the columns that a query reads; None if it may read all of a table, as for `*`."""
    names: set[str] = set()
    for node in tree.walk():
        match node:
            case exp.Identifier():
                names.add(node.name.lower())
            case exp.Star() if not isinstance(node.parent, exp.Count):
                return None
            case exp.Join() if node.args.get("method"):  # NATURAL
                return None
    return frozenset(names)


def _origins(node: exp.Expr, columns: Columns) -> Iterator[Column]:
    """Yield the columns of tables that an expression reads, also through aliases of selected expressions."""
    for column in node.find_all(exp.Column):
        names = columns.names_at(column)
        alias = names.aliases.get(column.name.lower()) if names is not None and not column.table else None
        origins = [_origin(column, columns)]
        if origins == [None] and alias is not None:
            origins = [_origin(inner, columns) for inner in alias.find_all(exp.Column)]
        yield from (origin for origin in origins if origin is not None)


def _origin(column: exp.Column, columns: Columns) -> Column | None:
    names = columns.names_at(column)
    return None if names is None else columns.origin(names, column.table.lower(), column.name.lower())


def _pairs_of_joins(tree: exp.Expr, columns: Columns) -> Iterator[tuple[Column, Column]]:
    """Yield the columns that USING and NATURAL JOIN compare."""
    for join in tree.find_all(exp.Join):
        if isinstance(join.parent, exp.Select):
            names = columns.names(join.parent)
            for name, *aliases in names.joined_columns(join):
                left, right = (columns.origin(names, alias, name) for alias in aliases)
                if left is not None and right is not None:
                    yield left, right


def _compared_sides(tree: exp.Expr) -> Iterator[list[exp.Expr]]:
    """Yield what is compared with each other: the sides of conditions, and the columns of set operations."""
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


def _compared_with_count(sides: Sequence[exp.Expr], columns: Columns) -> Iterator[Column]:
    """Yield the columns that are compared with a number of rows."""
    if any(isinstance(side, exp.Count) for side in sides):
        yield from (origin for side in sides if isinstance(side, exp.Column) for origin in _origins(side, columns))


def _operands(sides: Sequence[exp.Expr], constants: Iterable[str | int | float]) -> Iterator[int | float]:
    """Yield numbers of which two add up to a constant, several that exceed it on average, and two a constant apart.

    >>> from sqlglot import parse_one
    >>> conditions = map(parse_one, ("sum(age) > 100", "avg(age) > 100", "budget = year + 4"))
    >>> [[*_operands([condition], [100])] for condition in conditions]
    [[50, 50], [200, 300], [0, 200]]
    """
    for value in constants:
        if isinstance(value, str):
            continue
        if any(side.find(exp.Sum) for side in sides):
            half = value // 2 if isinstance(value, int) else value / 2
            yield from (half, value - half)
        if any(side.find(exp.Avg) for side in sides):
            yield from (2 * value, 3 * value)
        if any(side.find(exp.Add, exp.Sub) for side in sides):
            yield from (0, 2 * value)


def _selected(node: exp.Expr) -> Iterable[exp.Expr]:
    """Return the items that a query selects, by the first arm of a set operation; of another expression, itself."""
    query = node.unnest()
    while isinstance(query, exp.SetOperation):
        query = query.this.unnest()
    return [item.unalias() for item in query.selects] if isinstance(query, exp.Select) else [node]


def _matching(pattern: exp.Expr) -> list[exp.Expr]:
    """Return texts that a pattern of LIKE matches, and some that it does not match if it is anchored."""
    if not isinstance(pattern, exp.Literal):
        return [pattern]
    core = pattern.name.replace("_", "x")
    texts = [core.replace("%", ""), core.replace("%", "a"), f"a{core.replace('%', '')}", f"{core.replace('%', '')}a"]
    return [exp.Literal.string(text) for text in (*texts, texts[0].swapcase())]


def _constants(node: exp.Expr) -> Iterator[str | int | float]:
    """Yield the constants of an expression, except those of queries in it."""
    for literal in node.walk(prune=lambda inner: isinstance(inner, exp.Query) and inner is not node):
        if not isinstance(literal, exp.Literal):
            continue
        if literal.is_string:
            yield literal.name
            continue
        sign = -1 if isinstance(literal.parent, exp.Neg) else 1
        number = float(literal.name)
        yield sign * (int(number) if number.is_integer() else number)
