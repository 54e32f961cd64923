"""Values of columns: values that queries compare them with, values of a type, and constraints that rows satisfy."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple, TypeAlias

from sqlglot import exp

from pytest_queryeval.core.db_schema import Column, TableDefinition, Tables
from pytest_queryeval.core.table import Cell, Row
from pytest_queryeval.languages.sql import parse_query
from pytest_queryeval.languages.sql.columns import Columns

KEY_VALUES = 100  # that are tried
COLUMN_FIGURES = 4  # of each column of a table
MIN_ROWS = 2  # of a table from whose rows anything is concluded
_SMALL_COUNTS = (0, 2)  # with the numbers next to them
_COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Is, exp.NullSafeEQ)
# By the type of a value, what it can be compared with.
_SORTS: Mapping[type, type] = {
    **dict.fromkeys((int, float, Decimal), int),
    **{type_: type_ for type_ in (str, bytes, date, datetime, time)},
}
_FIRST_DAY = datetime(2020, 1, 1)  # of the times that are numbered
_PART_OF_DATE = re.compile(r"\d{4}(-\d\d)?")
Ranges: TypeAlias = Mapping[Column, tuple[Cell, Cell]]  # the least and the greatest of the numbers or times of columns
Place: TypeAlias = tuple[str, float | str]  # in the order of numbers, or of times


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """The comparisons of a query: `values` compared with columns, `pairs` of columns, and other `numbers`.

    `numbers` come from LIMIT, OFFSET, and comparisons without a column, as with `count(*)`. Names are in lower case.
    `read` contains the names of columns whose values can change the answer; it is None if all columns can.
    """

    values: tuple[tuple[Column, str | int | float], ...] = ()
    pairs: tuple[tuple[Column, Column], ...] = ()
    numbers: tuple[int, ...] = ()
    read: frozenset[str] | None = None


def compared_columns(query: str, dialect: str, tables: Tables) -> Compared:
    """Return the comparisons of a query with columns of `tables`; empty if the query cannot be read.

    Columns are compared with constants, with small numbers next to COUNT, and with columns of conditions, joins and set
    operations. A `*` or a NATURAL JOIN reads all columns.

    >>> from pytest_queryeval.features.strength.sql.source_tables import read_tables
    >>> tables = read_tables("CREATE TABLE singer (name TEXT, age INT)", "sqlite")
    >>> compared_columns("SELECT name FROM singer WHERE age > 30", "sqlite", tables).values
    ((('singer', 'age'), 30),)
    """
    shared_tree = parse_query(query, dialect).tree
    if shared_tree is None:
        return Compared()
    tree = shared_tree.copy()
    columns_of = Columns({name: table.by_name for name, table in tables.items()}, dialect)
    columns_of.replace_texts(tree)
    values: list[tuple[Column, str | int | float]] = []
    pairs = [*_pairs_of_joins(tree, columns_of)]
    numbers: list[int] = []
    for sides in _compared_sides(tree):
        columns = list(dict.fromkeys(origin for side in sides for origin in _origins(side, columns_of)))
        constants = [value for side in sides for value in _constants(side)]
        values += ((column, value) for column in columns for value in (*constants, *_operands(sides, constants)))
        if any(isinstance(side, exp.Count) for side in sides):
            counted_with = [side for side in sides if isinstance(side, exp.Column)]
            origins = [origin for side in counted_with for origin in _origins(side, columns_of)]
            values += ((column, value) for column in origins for value in _SMALL_COUNTS)
        pairs += pairwise(columns)
        if not columns or any(side.find(exp.Count) for side in sides):
            numbers += (int(value) for value in constants if isinstance(value, int | float))
    for limit in tree.find_all(exp.Limit, exp.Offset):
        numbers += (int(value) for value in _constants(limit.expression) if isinstance(value, int))
    reads_all = any(not isinstance(star.parent, exp.Count) for star in tree.find_all(exp.Star))
    reads_all = reads_all or any(join.args.get("method") for join in tree.find_all(exp.Join))  # NATURAL
    read = None if reads_all else frozenset(name.name.lower() for name in tree.find_all(exp.Identifier))
    return Compared(values=tuple(values), pairs=tuple(pairs), numbers=tuple(numbers), read=read)


def _origins(node: exp.Expr, columns: Columns) -> Iterator[Column]:
    """Yield the table columns that an expression reads, also through the alias of a selected expression."""
    for column in node.find_all(exp.Column):
        names = columns.names_at(column)
        alias = names.aliases.get(column.name.lower()) if names is not None and not column.table else None
        origins = [columns.origin_of(column)]
        if origins == [None] and alias is not None:
            origins = [*map(columns.origin_of, alias.find_all(exp.Column))]
        yield from (origin for origin in origins if origin is not None)


def _pairs_of_joins(tree: exp.Expr, columns: Columns) -> Iterator[tuple[Column, Column]]:
    """Yield the pairs of table columns that USING and NATURAL JOIN compare."""
    for join in tree.find_all(exp.Join):
        if isinstance(join.parent, exp.Select):
            names = columns.names(join.parent)
            for name, *aliases in names.joined_columns(join):
                left, right = (columns.origin(names, alias, name) for alias in aliases)
                if left is not None and right is not None:
                    yield left, right


def _compared_sides(tree: exp.Expr) -> Iterator[list[exp.Expr]]:
    """Yield lists of expressions that a query compares: sides of conditions, and columns of set operations.

    For LIKE, texts that match the pattern, or nearly match it, stand for the pattern. A query stands for its selected
    expressions.
    """
    for node in tree.walk():
        match node:
            case exp.Between():
                yield [node.this, node.args["low"], node.args["high"]]
            case exp.In():
                query = node.args.get("query")
                yield [node.this, *node.expressions, *(_selected(query) if query is not None else ())]
            case exp.Like(expression=exp.Literal() as pattern) | exp.ILike(expression=exp.Literal() as pattern):
                # Texts that the pattern matches, and some that it does not match if it is anchored.
                core = pattern.name.replace("_", "x")
                text = core.replace("%", "")
                matching = (text, core.replace("%", "a"), f"a{text}", f"{text}a", text.swapcase())
                yield [node.this, *map(exp.Literal.string, matching)]
            case exp.Like() | exp.ILike():
                yield [node.this, node.expression]
            case exp.SetOperation():
                yield from map(list, zip(_selected(node.this), _selected(node.expression), strict=False))
            case _ if isinstance(node, _COMPARISONS):
                yield [item for side in (node.this, node.expression) for item in _selected(side)]


def _operands(sides: Sequence[exp.Expr], constants: Iterable[str | int | float]) -> Iterator[int | float]:
    """Yield numbers for columns in a sum, an average or a difference that is compared with one of the constants.

    For a SUM, two numbers add up to the constant; for an AVG, the numbers are twice and three times the constant; for
    `+` and `-`, they are 0 and twice the constant. Texts and other comparisons yield nothing.

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
    """Return the expressions that a query selects, by the first arm of a set operation; else the node itself."""
    query = node.unnest()
    while isinstance(query, exp.SetOperation):
        query = query.this.unnest()
    return [item.unalias() for item in query.selects] if isinstance(query, exp.Select) else [node]


def _constants(node: exp.Expr) -> Iterator[str | int | float]:
    """Yield the numbers and texts in an expression, without constants of nested queries."""
    for literal in node.walk(prune=lambda inner: isinstance(inner, exp.Query) and inner is not node):
        if not isinstance(literal, exp.Literal):
            continue
        if literal.is_string:
            yield literal.name
            continue
        sign = -1 if isinstance(literal.parent, exp.Neg) else 1
        number = float(literal.name)
        yield sign * (int(number) if number.is_integer() else number)


class ColumnFigures(NamedTuple):
    """Figures of a column in the first rows of its table."""

    values: Cell
    """How many are not NULL."""
    different_values: Cell
    least: Cell
    greatest: Cell

    def may_refer_to(self, key: ColumnFigures) -> bool:
        """Return whether all values may occur in a key: they have its type, and are within the range of its values."""
        sorts = {_SORTS.get(type(cell)) for cell in (self.least, self.greatest, key.least, key.greatest)}
        return len(sorts) == 1 and None not in sorts and key.least <= self.least and self.greatest <= key.greatest  # type: ignore[operator]  # of one sort


class TableFigures(NamedTuple):
    """Figures of the first rows of a table; the names of `columns` are in lower case."""

    rows: int
    different_rows: Cell
    columns: Mapping[str, ColumnFigures]


def table_figures(table: TableDefinition, figures: Row) -> TableFigures | None:
    """Return the figures in the row that a `statistics_query` returned; None for fewer than MIN_ROWS rows."""
    rows, *others = figures
    if not isinstance(rows, int) or rows < MIN_ROWS:
        return None
    different_rows, *cells = others
    columns = {
        column.name.lower(): ColumnFigures(*cells[COLUMN_FIGURES * at : COLUMN_FIGURES * (at + 1)])
        for at, column in enumerate(table.columns)
    }
    return TableFigures(rows, different_rows, columns)


def infer_constraints(table: TableDefinition, figures: TableFigures) -> tuple[TableDefinition, Ranges]:
    """Return the table with NOT NULL and UNIQUE where its rows satisfy them, and the ranges of its columns.

    If the table has no unique column and no key, and no row occurs twice, all columns together become UNIQUE. Ranges
    exist for columns of numbers and times.
    """
    filled = {name for name, of_column in figures.columns.items() if of_column.values == figures.rows}
    keys = [*map(tuple, table.keys)]
    unique: list[Sequence[str]] = [
        (name,)
        for name, (values, different_values, *_) in figures.columns.items()
        if values and values == different_values and (name,) not in keys
    ]
    if not unique and not keys and figures.different_rows == figures.rows:
        unique = [tuple(figures.columns)]
    ranges = {
        (table.name, name): (of_column.least, of_column.greatest)
        for name, of_column in figures.columns.items()
        if _sort_key(of_column.least) and is_in_range(of_column.least, (of_column.least, of_column.greatest))
    }
    return table.with_not_null(table.not_null | filled)._replace(unique=(*table.unique, *unique)), ranges


def is_in_range(cell: Cell, limits: tuple[Cell, Cell]) -> bool:
    """Return whether a value is between two others or equal to one of them; NULL is in every range.

    >>> is_in_range("2020-03-01", ("2020-01-31", "2021-01-31")), is_in_range(7, (1, 5)), is_in_range("a", (1, 5))
    (True, False, False)
    >>> is_in_range(7, (5, "2021-01-31"))  # numbers and times have no order
    False
    """
    place, low, high = map(_sort_key, (cell, *limits))
    if cell is None:
        return True
    if place is None or low is None or high is None:
        return False
    return place[0] == low[0] == high[0] and low <= place <= high


def _sort_key(cell: Cell) -> Place | None:
    """Return a sort key for a number or a time, whose first part says which of them it is; None for other values."""
    match cell:
        case bool():
            return None
        case int() | float() | Decimal():
            return "number", float(cell)
        case datetime():
            return "time", cell.isoformat(" ")
        case date():
            return "time", f"{cell.isoformat()} 00:00:00"
        case str():
            with suppress(ValueError):
                return "time", datetime.fromisoformat(cell).isoformat(" ")
    return None


def type_held(declared: str, cells: Iterable[Cell]) -> str:
    """Return the type of a column of SQLite; for a column of times, the type that its cells are written in.

    The result is empty, for any type, if the cells of such a column are neither times nor numbers.

    >>> type_held("DATETIME", ["2020-01-31", None]), type_held("DATE", [20200131]), type_held("DATE", ["31/01/2020"])
    ('DATE', 'NUMERIC', '')
    """
    if not _is_of_times(declared):
        return declared
    values = [cell for cell in cells if cell is not None]
    if not values:
        return declared
    if all(isinstance(value, int | float) for value in values):
        return "NUMERIC"
    for name in ("DATE", "TIME", "TIMESTAMP"):
        if all([*coerce_value(value, name, is_strict=True)] == [value] for value in values):
            return name
    return ""


def _is_of_times(declared: str) -> bool:
    return "DATE" in declared.upper() or "TIME" in declared.upper()


@lru_cache(maxsize=256)
def key_values(declared: str, first: int = 1) -> Sequence[Cell]:
    """Return up to KEY_VALUES distinct values for a key column of this type: numbers from `first`, or times.

    The result is empty if the type refuses numbers.
    """
    values: Iterable[Cell] = range(first, first + KEY_VALUES)
    if _is_of_times(declared):
        values = [(_FIRST_DAY + number * timedelta(days=1, minutes=1)).isoformat(" ") for number in range(KEY_VALUES)]
    return [cell for value in values for cell in coerce_value(value, declared, is_strict=True)]


@lru_cache(maxsize=8_192, typed=True)
def coerce_value(value: Cell, declared: str, *, is_strict: bool) -> Sequence[Cell]:
    """Return a list with the value as a column of the declared type stores it.

    Empty if the column refuses the value. Text becomes a number in numeric columns, and a date or time in columns of
    times. With `is_strict`, columns of unknown types refuse texts.

    >>> coerce_value("31", "INTEGER", is_strict=True), coerce_value(31, "TEXT", is_strict=True)
    ([31], ['31'])
    >>> coerce_value("x", "DATE", is_strict=True)
    []
    >>> coerce_value("2020-02", "DATE", is_strict=False), coerce_value("2020-02-29", "TIMESTAMP", is_strict=False)
    (['2020-02-01'], ['2020-02-29 00:00:00'])
    """
    name = declared.upper()
    if "INT" in name or "SERIAL" in name or any(word in name for word in ("REAL", "FLOA", "DOUB", "DEC", "NUM")):
        number = value
        if not isinstance(number, int | float):
            try:
                number = float(str(number))
            except ValueError:
                return []
            number = int(number) if number.is_integer() else number
        return [] if "INT" in name and isinstance(number, float) and not number.is_integer() else [number]
    if any(word in name for word in ("CHAR", "TEXT", "CLOB", "STRING")):
        return [value if isinstance(value, str) else str(value)]
    if _is_of_times(name):
        if isinstance(value, str):
            return _fitted_time(value, name)
        return [] if isinstance(value, int | float) else [value]
    return [value] if not is_strict or not name or not isinstance(value, str) else []


def _fitted_time(text: str, name: str) -> Sequence[Cell]:
    """Return a list of the text as a date, a time of day or both, as the type's name says; empty for other texts.

    A year or a month becomes its first day.
    """
    if _PART_OF_DATE.fullmatch(text):
        text = f"{text}-01-01"[:10]
    has_date = "DATE" in name or "STAMP" in name
    with suppress(ValueError):
        if not has_date and ":" in text[:3]:
            return [time.fromisoformat(text).isoformat()]
        moment = datetime.fromisoformat(text)
        if not has_date:
            return [moment.time().isoformat()]
        return [moment.isoformat(" ") if "TIME" in name else moment.date().isoformat()]
    return []
