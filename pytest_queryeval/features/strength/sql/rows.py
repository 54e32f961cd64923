"""Rows for variants of a database: few different values, at which the answers of queries change."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from graphlib import CycleError, TopologicalSorter
from random import Random
from typing import TypeAlias

from pytest_queryeval.core.db_schema import Column
from pytest_queryeval.core.table import Cell, Row
from pytest_queryeval.core.table_definition import Tables
from pytest_queryeval.features.strength.neighbours import neighbours
from pytest_queryeval.features.strength.sql.compared import Compared

Rows: TypeAlias = dict[str, list[Row]]  # by table, in an order in which they can be inserted

MAX_ROWS = 50  # of a table
SIZES = (4, 8, 16, 30, 45)  # rows of a table; all tables of a variant have the same size
SAMPLES = (1, 2, 3, 4)  # values of the source in each column
NULL_SHARES = (0.0, 0.05, 0.15, 0.3)
MAX_COMPARED = 12  # values of one column that queries compare it with
# Shares of the rows: copies of another row with one or two cells changed, and copies of rows of the source.
RESEMBLING, FROM_SOURCE = 0.25, 0.1
REPEATING = 0.3  # share of the tables that get a group of rows as large as a number in a query


@dataclass(frozen=True, slots=True, kw_only=True)
class Constraints:
    """The declared constraints of a table; columns are given by their indices."""

    not_null: frozenset[int]
    keys: tuple[tuple[int, ...], ...]
    """The primary key and the UNIQUE constraints."""
    references: tuple[tuple[tuple[int, ...], str, tuple[int, ...]], ...]
    """The foreign keys: columns of this table, the referenced table, and its columns."""


def constraints_of(tables: Tables) -> dict[str, Constraints]:
    """Return the constraints of each table, except those on columns or tables that do not exist."""
    places_by_table = {
        name: {column.name.lower(): at for at, column in enumerate(table.columns)} for name, table in tables.items()
    }
    constraints = {}
    for name, table in tables.items():
        places = places_by_table[name]
        keys = [key for key in (table.primary_key, *table.unique) if key and places.keys() >= set(key)]
        references = [
            (
                tuple(places[column] for column in key.columns),
                key.table,
                tuple(referred_places[column] for column in key.referred),
            )
            for key in table.foreign_keys
            if (referred_places := places_by_table.get(key.table, {})).keys() >= set(key.referred)
            and places.keys() >= set(key.columns)
        ]
        constraints[name] = Constraints(
            not_null=frozenset(at for at, column in enumerate(table.columns) if column.not_null),
            keys=tuple(tuple(places[column] for column in key) for key in keys),
            references=tuple(reference for reference in references if len(reference[0]) == len(reference[2])),
        )
    return constraints


class RowGenerator:
    """Makes rows for `tables` that keep primary keys, foreign keys, UNIQUE and NOT NULL.

    A column takes its values from those that queries compare it with, their neighbours, and the source's `samples`
    (rows by table). Columns that are compared with each other, or refer to each other, share their values. With
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
        self._parents: dict[Column, Column] = {}
        self._compared: dict[Column, dict[Cell, None]] = defaultdict(dict)
        self._sampled: dict[Column, dict[Cell, None]] = defaultdict(dict)
        pairs = [pair for query in compared for pair in query.pairs]
        for name, columns in self._columns.items():
            for places, referred_table, referred in self._constraints[name].references:
                pairs += [
                    (columns[at][0], self._columns[referred_table][to][0])
                    for at, to in zip(places, referred, strict=True)
                ]
        for column, compared_column in pairs:
            if (pool := self._pool_of(column)) != (compared_pool := self._pool_of(compared_column)):
                self._parents[pool] = compared_pool
        for query in compared:
            for column, literal in query.values:
                self._compared[self._pool_of(column)].update(dict.fromkeys(neighbours(literal)))
        for name, columns in self._columns.items():
            for place, (column, _) in enumerate(columns):
                cells = (row[place] for row in samples.get(name, ()) if row[place] is not None)
                self._sampled[self._pool_of(column)].update(dict.fromkeys(cells))
        self._group_sizes = [number for query in compared for number in query.numbers if 1 < number <= MAX_ROWS] or [2]

    def rows(self, random: Random, *, sizes: Sequence[int] = SIZES, null_shares: Sequence[float] = NULL_SHARES) -> Rows:
        """Return rows for every table, at most MAX_ROWS each."""
        size, null_share, sample_size = random.choice(sizes), random.choice(null_shares), random.choice(SAMPLES)
        pools: dict[Column, list[Cell]] = {}
        rows_by_table: Rows = {}
        for name, columns in self._columns.items():
            column_cells = []
            for column, declared_type in columns:
                pool = self._pool_of(column)
                if pool not in pools:
                    compared, sampled = list(self._compared[pool]), list(self._sampled[pool])
                    chosen = random.sample(compared, min(len(compared), random.randint(4, MAX_COMPARED)))
                    pools[pool] = [*chosen, *random.sample(sampled, min(sample_size, len(sampled)))]
                cells = [
                    cell
                    for candidate in pools[pool]
                    for cell in fitted(candidate, declared_type, is_strict=self._is_strict)
                ]
                column_cells.append(
                    cells or [cell for number in (1, 2, 3) for cell in fitted(number, declared_type, is_strict=False)]
                )
            rows_by_table[name] = self._table(
                name, column_cells, rows_by_table, random, max(1, size // random.choice((1, 1, 2))), null_share
            )
        return rows_by_table

    def _pool_of(self, column: Column) -> Column:
        """Return the column that represents all columns that share its values."""
        while column in self._parents:
            column = self._parents[column]
        return column

    def _table(
        self,
        name: str,
        column_cells: Sequence[Sequence[Cell]],
        earlier_rows: Rows,
        random: Random,
        size: int,
        null_share: float,
    ) -> list[Row]:
        """Return about `size` rows of a table, or as many as a group needs, given the rows of earlier tables."""
        constraints = self._constraints[name]
        in_keys = {at for key in constraints.keys for at in key}
        repeated = 0
        if random.random() < REPEATING and (free := sorted(set(range(len(column_cells))) - in_keys)):
            repeated = min(random.choice(self._group_sizes) + random.choice((0, 0, 1)), MAX_ROWS)
            grouped = random.choice(free)
            group = random.choice(column_cells[grouped])
        rows: list[Row] = []
        key_sets: list[set[Row]] = [set() for _ in constraints.keys]
        referred = _Referred(name, constraints, earlier_rows)
        for number in range(2 * max(size, repeated)):
            row = self._row(name, column_cells, rows, random)
            for at, (_, declared_type) in enumerate(self._columns[name]):
                if at in in_keys and random.random() < 0.5:  # a value of its own
                    row[at] = next(iter(fitted(number + 1, declared_type, is_strict=self._is_strict)), row[at])
                elif at not in constraints.not_null and random.random() < null_share:
                    row[at] = None
            if number < repeated:
                row[grouped] = group
            referred.refer(row, random)
            keys = [tuple(row[at] for at in key) for key in constraints.keys]
            if all(row[at] is not None for at in constraints.not_null) and not any(
                map(set.__contains__, key_sets, keys)
            ):
                for key_set, key in zip(key_sets, keys, strict=True):
                    key_set.add(key)
                rows.append(tuple(row))
                referred.add(row)
            if len(rows) == max(size, repeated):
                break
        return rows

    def _row(
        self, name: str, column_cells: Sequence[Sequence[Cell]], rows: Sequence[Row], random: Random
    ) -> list[Cell]:
        """Return a row that resembles one of `rows`, a row of the source, or a row of random values."""
        kind = random.random()
        if rows and kind < RESEMBLING:
            row = list(random.choice(rows))
            for at in random.sample(range(len(row)), min(len(row), random.choice((1, 1, 2)))):
                row[at] = random.choice(column_cells[at])
            return row
        if self._samples.get(name) and kind < RESEMBLING + FROM_SOURCE:
            return list(random.choice(self._samples[name]))
        return [random.choice(cells) for cells in column_cells]


class _Referred:
    """The keys that the foreign keys of a table may have."""

    def __init__(self, name: str, constraints: Constraints, earlier_rows: Rows) -> None:
        self._references = [
            (columns, places, [tuple(row[at] for at in places) for row in earlier_rows.get(table, ())], table == name)
            for columns, table, places in constraints.references
        ]

    def refer(self, row: list[Cell], random: Random) -> None:
        """Replace foreign keys that match no row by the key of a random row, or by NULL if the table is empty."""
        for columns, places, keys, _ in self._references:
            key = tuple(row[at] for at in columns)
            if None not in key and key not in keys:
                cells: Row = random.choice(keys) if keys else (None,) * len(places)
                for at, cell in zip(columns, cells, strict=True):
                    row[at] = cell

    def add(self, row: Sequence[Cell]) -> None:
        """Add a row of the table, to which later ones may refer."""
        for _, places, keys, is_own in self._references:
            if is_own:
                keys.append(tuple(row[at] for at in places))


def insertion_order(tables: Tables) -> list[str]:
    """Return the tables, each after those that it refers to, or in the given order if references form a cycle."""
    referred = {
        name: {key.table for key in table.foreign_keys} & tables.keys() - {name} for name, table in tables.items()
    }
    try:
        return list(TopologicalSorter(referred).static_order())
    except CycleError:
        return list(tables)


def without_orphans(rows: Rows, constraints: Mapping[str, Constraints]) -> Rows:
    """Return the rows except those that refer to a missing row."""
    valid_rows = dict(rows)
    while True:
        count = sum(map(len, valid_rows.values()))
        for name in valid_rows:
            for columns, table, places in constraints[name].references:
                referred = {tuple(row[at] for at in places) for row in valid_rows.get(table, ())}
                keys = [tuple(row[at] for at in columns) for row in valid_rows[name]]
                valid_rows[name] = [
                    row for row, key in zip(valid_rows[name], keys, strict=True) if key in referred or None in key
                ]
        if sum(map(len, valid_rows.values())) == count:
            return valid_rows


@lru_cache(maxsize=8_192, typed=True)
def fitted(value: Cell, declared: str, *, is_strict: bool) -> Sequence[Cell]:
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
