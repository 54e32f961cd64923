"""Rows for variants of a database: few different values, at which the answers of queries change."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from graphlib import CycleError, TopologicalSorter
from random import Random
from typing import TypeAlias

from pytest_queryeval.core.db_schema import Column
from pytest_queryeval.core.table import Cell, Row
from pytest_queryeval.core.table_definition import Tables
from pytest_queryeval.languages.sql.compared import Compared

Rows: TypeAlias = dict[str, list[Row]]  # by table, in an order in which they can be inserted

MAX_ROWS = 50  # of a table
SIZES = (4, 8, 16, 30, 45)  # of tables in rows, one for all of a variant
SAMPLES = (1, 2, 3, 4)  # values of the source in each column
NULL_SHARES = (0.0, 0.05, 0.15, 0.3)
MAX_COMPARED = 12  # values of one column that queries compare it with
# Of the rows: those that change one or two cells of another one, and those that the source has.
RESEMBLING, FROM_SOURCE = 0.25, 0.1
REPEATING = 0.3  # of the tables: those with a group of rows as large as a number in a query


@dataclass(frozen=True, slots=True, kw_only=True)
class Constraints:
    """The declared constraints of a table, its columns by their places.

    `keys` are the primary key and what is UNIQUE; `references` are foreign keys: own columns, the other table and its
    columns.
    """

    not_null: frozenset[int]
    keys: tuple[tuple[int, ...], ...]
    references: tuple[tuple[tuple[int, ...], str, tuple[int, ...]], ...]


def constraints_of(tables: Tables) -> dict[str, Constraints]:
    """Return the constraints of each table, without those on columns or tables that there are not."""
    places = {
        name: {column.name.lower(): at for at, column in enumerate(table.columns)} for name, table in tables.items()
    }
    found = {}
    for name, table in tables.items():
        own = places[name]
        keys = [key for key in (table.primary_key, *table.unique) if key and own.keys() >= set(key)]
        references = [
            (tuple(own[column] for column in key.columns), key.table, tuple(others[column] for column in key.referred))
            for key in table.foreign_keys
            if (others := places.get(key.table, {})).keys() >= set(key.referred) and own.keys() >= set(key.columns)
        ]
        found[name] = Constraints(
            not_null=frozenset(at for at, column in enumerate(table.columns) if column.not_null),
            keys=tuple(tuple(own[column] for column in key) for key in keys),
            references=tuple(reference for reference in references if len(reference[0]) == len(reference[2])),
        )
    return found


class RowGenerator:
    """Makes rows for `tables` that keep primary keys, foreign keys, UNIQUE and NOT NULL.

    The values of a column are some that queries compare it with, their neighbours, and some of the source's `samples`,
    rows by table. Columns that are compared with each other, or refer to each other, share their values. Where
    `is_strict`, a column takes values of its type only.
    """

    def __init__(
        self, tables: Tables, compared: Sequence[Compared], samples: Mapping[str, Sequence[Row]], *, is_strict: bool
    ) -> None:
        self._constraints = constraints_of(tables)
        self._columns: dict[str, list[tuple[Column, str]]] = {
            name: [((name, column.name.lower()), column.type) for column in tables[name].columns]
            for name in insertion_order(tables)
        }
        self._samples = samples
        self._is_strict = is_strict
        self._same: dict[Column, Column] = {}
        self._compared: dict[Column, dict[Cell, None]] = defaultdict(dict)
        self._sampled: dict[Column, dict[Cell, None]] = defaultdict(dict)
        pairs = [pair for query in compared for pair in query.pairs]
        for name, own in self._columns.items():
            for places, other, referred in self._constraints[name].references:
                pairs += [(own[at][0], self._columns[other][to][0]) for at, to in zip(places, referred, strict=True)]
        for one, another in pairs:
            if (first := self._pool_of(one)) != (second := self._pool_of(another)):
                self._same[first] = second
        for query in compared:
            for column, value in query.values:
                self._compared[self._pool_of(column)].update(dict.fromkeys(neighbours(value)))
        for name, own in self._columns.items():
            for place, (column, _) in enumerate(own):
                cells = (row[place] for row in samples.get(name, ()) if row[place] is not None)
                self._sampled[self._pool_of(column)].update(dict.fromkeys(cells))
        self._group_sizes = [number for query in compared for number in query.numbers if 1 < number <= MAX_ROWS] or [2]

    def rows(self, random: Random, *, sizes: Sequence[int] = SIZES, null_shares: Sequence[float] = NULL_SHARES) -> Rows:
        """Return rows for every table, at most MAX_ROWS each."""
        size, null_share, few = random.choice(sizes), random.choice(null_shares), random.choice(SAMPLES)
        pools: dict[Column, list[Cell]] = {}
        made: Rows = {}
        for name, columns in self._columns.items():
            values = []
            for column, declared in columns:
                pool = self._pool_of(column)
                if pool not in pools:
                    compared, sampled = list(self._compared[pool]), list(self._sampled[pool])
                    chosen = random.sample(compared, min(len(compared), random.randint(4, MAX_COMPARED)))
                    pools[pool] = [*chosen, *random.sample(sampled, min(few, len(sampled)))]
                cells = [cell for each in pools[pool] for cell in fitted(each, declared, is_strict=self._is_strict)]
                values.append(
                    cells or [cell for number in (1, 2, 3) for cell in fitted(number, declared, is_strict=False)]
                )
            made[name] = self._table(name, values, made, random, max(1, size // random.choice((1, 1, 2))), null_share)
        return made

    def _pool_of(self, column: Column) -> Column:
        """Return the column that stands for all that share their values."""
        while column in self._same:
            column = self._same[column]
        return column

    def _table(
        self, name: str, values: Sequence[Sequence[Cell]], made: Rows, random: Random, size: int, null_share: float
    ) -> list[Row]:
        """Return about `size` rows of a table, or as many as a group needs; `made` are those of the tables before."""
        constraints = self._constraints[name]
        in_keys = {at for key in constraints.keys for at in key}
        repeated = 0
        if random.random() < REPEATING and (free := sorted(set(range(len(values))) - in_keys)):
            repeated = min(random.choice(self._group_sizes) + random.choice((0, 0, 1)), MAX_ROWS)
            grouped = random.choice(free)
            group = random.choice(values[grouped])
        rows: list[Row] = []
        used: list[set[Row]] = [set() for _ in constraints.keys]
        for number in range(2 * max(size, repeated)):
            row = self._row(name, values, rows, random)
            for at, (_, declared) in enumerate(self._columns[name]):
                if at in in_keys and random.random() < 0.5:  # a value of its own
                    row[at] = next(iter(fitted(number + 1, declared, is_strict=self._is_strict)), row[at])
                elif at not in constraints.not_null and random.random() < null_share:
                    row[at] = None
            if number < repeated:
                row[grouped] = group
            _refer(row, constraints, {**made, name: rows}, random)
            keys = [tuple(row[at] for at in key) for key in constraints.keys]
            if all(row[at] is not None for at in constraints.not_null) and not any(map(set.__contains__, used, keys)):
                for taken, key in zip(used, keys, strict=True):
                    taken.add(key)
                rows.append(tuple(row))
            if len(rows) == max(size, repeated):
                break
        return rows

    def _row(self, name: str, values: Sequence[Sequence[Cell]], rows: Sequence[Row], random: Random) -> list[Cell]:
        """Return a row that resembles one of `rows`, one that the source has, or one of any values."""
        kind = random.random()
        if rows and kind < RESEMBLING:
            row = list(random.choice(rows))
            for at in random.sample(range(len(row)), min(len(row), random.choice((1, 1, 2)))):
                row[at] = random.choice(values[at])
            return row
        if self._samples.get(name) and kind < RESEMBLING + FROM_SOURCE:
            return list(random.choice(self._samples[name]))
        return [random.choice(cells) for cells in values]


def _refer(row: list[Cell], constraints: Constraints, rows: Rows, random: Random) -> None:
    """Make the row refer to some row where it refers to none; to no row where there is none to choose."""
    for own, other, places in constraints.references:
        referred = [tuple(each[at] for at in places) for each in rows.get(other, ())]
        key = tuple(row[at] for at in own)
        if None not in key and key not in referred:
            cells: Row = random.choice(referred) if referred else (None,) * len(places)
            for at, cell in zip(own, cells, strict=True):
                row[at] = cell


def insertion_order(tables: Tables) -> list[str]:
    """Return the tables, each behind those that it refers to; as they are listed where they refer to each other."""
    referred = {
        name: {key.table for key in table.foreign_keys} & tables.keys() - {name} for name, table in tables.items()
    }
    try:
        return list(TopologicalSorter(referred).static_order())
    except CycleError:
        return list(tables)


def without_orphans(rows: Rows, constraints: Mapping[str, Constraints]) -> Rows:
    """Return the rows but for those that refer to a row that is not there."""
    kept = dict(rows)
    while True:
        count = sum(map(len, kept.values()))
        for name in kept:
            for own, other, places in constraints[name].references:
                referred = {tuple(row[at] for at in places) for row in kept.get(other, ())}
                keys = [tuple(row[at] for at in own) for row in kept[name]]
                kept[name] = [row for row, key in zip(kept[name], keys, strict=True) if key in referred or None in key]
        if sum(map(len, kept.values())) == count:
            return kept


def neighbours(value: str | float) -> list[Cell]:
    """Return a value with those just below and above it: of whole numbers, other numbers, dates, and texts of these.

    >>> neighbours(30)
    [30, 29, 31]
    >>> neighbours("2020-03-01")
    ['2020-03-01', '2020-02-29', '2020-03-02']
    """
    if not isinstance(value, str):
        step = 1 if isinstance(value, int) else 0.5
        return [value, value - step, value + step]
    if value.isascii() and value.isdigit():
        return [value, *(str(int(value) + step) for step in (-1, 1))]
    with suppress(ValueError, OverflowError):
        day = date.fromisoformat(value)
        return [value, *((day + timedelta(days=step)).isoformat() for step in (-1, 1))]
    return [value]


def fitted(value: Cell, declared: str, *, is_strict: bool) -> list[Cell]:
    """Return the value as a column of the declared type stores it, or nothing where the column refuses it.

    >>> fitted("31", "INTEGER", is_strict=True), fitted(31, "TEXT", is_strict=True), fitted("x", "DATE", is_strict=True)
    ([31], ['31'], [])
    """
    name = declared.upper()
    if "INT" in name or "SERIAL" in name or any(word in name for word in ("REAL", "FLOA", "DOUB", "DEC", "NUM")):
        if isinstance(value, int | float):
            return [value] if "INT" not in name or not is_strict or value == int(value) else []
        with suppress(ValueError, TypeError):
            number = float(str(value))
            return [int(number) if number.is_integer() else number]
        return [] if is_strict else [value]
    if any(word in name for word in ("CHAR", "TEXT", "CLOB", "STRING")):
        return [value if isinstance(value, str) else str(value)]
    if "DATE" in name or "TIME" in name:
        if isinstance(value, str) and is_strict:
            with suppress(ValueError):
                return [datetime.fromisoformat(value).isoformat(" ")]
            return []
        return [value] if not is_strict or not isinstance(value, int | float) else []
    return [value] if not is_strict or not name or not isinstance(value, str) else []
