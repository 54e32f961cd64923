"""Rows for small databases: few different values, at which the answers of queries change."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from graphlib import TopologicalSorter
from itertools import chain, cycle, islice
from operator import contains, itemgetter
from random import Random
from typing import TypeAlias

from pytest_queryeval.core.db_schema import Column, Tables
from pytest_queryeval.core.table import Cell, Row
from pytest_queryeval.features.strength import neighbours
from pytest_queryeval.features.strength.sql.values import (
    Compared,
    Ranges,
    coerce_value,
    is_in_range,
    key_values,
    type_held,
)
from pytest_queryeval.languages.sql.columns import linked

Rows: TypeAlias = dict[str, list[Row]]  # by table, in an order in which they can be inserted

MAX_ROWS = 50  # of a table
SIZES = (4, 8, 16, 30, 45)  # rows of a table; all tables of a variant have the same size
SAMPLES = (1, 2, 3, 4)  # values of the source in each column
NULL_SHARES = (0.0, 0.05, 0.15, 0.3)
# At most how many values of one column that queries compare it with. Of few values, rows satisfy conditions more often;
# of many, they meet sums and bounds.
MANY_COMPARED, FEW_COMPARED = (4, 12), (1, 8)
# Shares of the rows: copies of another row with one or two cells changed, and copies of rows of the source.
RESEMBLING, FROM_SOURCE = 0.25, 0.1
REPEATING = 0.3  # share of the tables that get a group of rows as large as a number in a query


@dataclass(frozen=True, kw_only=True)
class TableConstraints:
    """The constraints of a table; columns are given by their indices in the table, from 0."""

    not_null: frozenset[int]
    keys: tuple[tuple[int, ...], ...]
    """The primary key and the UNIQUE constraints."""
    references: tuple[tuple[tuple[int, ...], str, tuple[int, ...]], ...]
    """The foreign keys: columns of this table, the referenced table, and its columns."""

    @cached_property
    def in_keys(self) -> Sequence[int]:
        """The sorted indices of columns that belong to a key."""
        return sorted({at for key in self.keys for at in key})

    @cached_property
    def not_null_references(self) -> frozenset[int]:
        """The indices of columns of foreign keys that may not be NULL."""
        return self.not_null.intersection(at for columns, _, _ in self.references for at in columns)


def constraints_of(tables: Tables) -> dict[str, TableConstraints]:
    """Return the constraints of each table, without keys and foreign keys whose columns or tables do not exist."""
    places_by_table = {
        name: {column.name.lower(): at for at, column in enumerate(table.columns)} for name, table in tables.items()
    }
    constraints = {}
    for name, table in tables.items():
        places = places_by_table[name]
        keys = [key for key in table.keys if places.keys() >= set(key)]
        references = [
            (tuple(map(places.__getitem__, key.columns)), key.table, tuple(map(referred.__getitem__, key.referred)))
            for key in table.foreign_keys
            if (referred := places_by_table.get(key.table, {})).keys() >= set(key.referred)
            and places.keys() >= set(key.columns)
            and len(key.columns) == len(key.referred)
        ]
        constraints[name] = TableConstraints(
            not_null=frozenset(at for at, column in enumerate(table.columns) if column.not_null),
            keys=tuple(tuple(places[column] for column in key) for key in keys),
            references=tuple(references),
        )
    return constraints


@dataclass
class RowGenerator:
    """Makes random rows for `tables` that satisfy primary keys, foreign keys, UNIQUE and NOT NULL.

    The values of a column come from the values that queries compare it with, their neighbours, and the source's
    `samples` (rows by table). Columns that are compared with each other, or refer to each other, share their values.
    Columns of numbers and of times only have values of their type; with `is_strict`, so do all columns. Times of SQLite
    are written as the source writes them.

    With `only_read`, most cells of a column that no query reads have the same value. A column with `ranges` has no
    values outside of them. The number of values from queries in a column has a random limit; `few_compared` lowers the
    limit.
    """

    tables: Tables
    compared: Sequence[Compared]
    samples: Mapping[str, Sequence[Row]]
    is_strict: bool
    only_read: bool = False
    few_compared: bool = False
    ranges: Ranges = field(default_factory=dict)

    def __post_init__(self) -> None:
        tables, compared, samples = self.tables, self.compared, self.samples
        self._constraints = constraints_of(tables)
        self._columns: dict[str, list[tuple[Column, str]]] = {name: [] for name in insertion_order(tables)}
        for name, columns in self._columns.items():
            for at, column in enumerate(tables[name].columns):
                cells = (row[at] for row in samples.get(name, ()))
                values_type = column.type if self.is_strict else type_held(column.type, cells)
                columns.append(((name, column.name.lower()), values_type))
        self._compared: dict[Column, dict[Cell, None]] = defaultdict(dict)
        self._sampled: dict[Column, dict[Cell, None]] = defaultdict(dict)
        pairs = [pair for query in compared for pair in query.pairs]
        for name, columns in self._columns.items():
            for places, referred_table, referred in self._constraints[name].references:
                referred_columns = self._columns[referred_table]
                pairs += ((columns[at][0], referred_columns[to][0]) for at, to in zip(places, referred, strict=True))
        # The column that represents all columns that share its values.
        self._pool_of: Callable[[Column], Column] = cache(lambda column: min(linked(column, pairs)))
        for compared_column, literal in chain.from_iterable(query.values for query in compared):
            self._compared[self._pool_of(compared_column)].update(dict.fromkeys(neighbours(literal)))
        for name, columns in self._columns.items():
            for (sampled_column, _), sample in zip(columns, zip(*samples.get(name, ()), strict=True), strict=False):
                values = {cell: None for cell in sample if cell is not None}
                self._sampled[self._pool_of(sampled_column)].update(values)
        self._varied = {name: self._varied_columns(name) for name in self._columns}
        self._cells_of_fixed = {
            column: self._allowed(list(islice(self._sampled[self._pool_of(column)], 1)), column, type_)[:1]
            for name, columns in self._columns.items()
            for at, (column, type_) in enumerate(columns)
            if at not in self._varied[name]
        }
        self._group_sizes = [number for query in compared for number in query.numbers if 1 < number <= MAX_ROWS] or [2]

    def _limits_of_key(self, table: str, at: int) -> list[tuple[Cell, Cell]]:
        """Return the ranges of the columns that refer to a key column, given by its table and index."""
        referring = [
            self._columns[name][column][0]
            for name, constraints in self._constraints.items()
            for columns, referred_table, places in constraints.references
            for column, place in zip(columns, places, strict=True)
            if (referred_table, place) == (table, at)
        ]
        return [self.ranges[column] for column in referring if column in self.ranges]

    def _varied_columns(self, name: str) -> Sequence[int]:
        """Return the indices of columns that vary: columns that queries read, and columns of keys and foreign keys.

        Without `only_read`, or if a query reads all columns, these are all columns.
        """
        places, reads = range(len(self._columns[name])), [query.read for query in self.compared]
        if not self.only_read or not reads or None in reads:
            return places
        names = {column for read in reads for column in read or ()}
        constraints = self._constraints[name]
        bound = {*constraints.in_keys, *(at for columns, _, _ in constraints.references for at in columns)}
        return [at for at in places if at in bound or self._columns[name][at][0][1] in names]

    def rows(self, random: Random, *, sizes: Sequence[int] = SIZES, null_shares: Sequence[float] = NULL_SHARES) -> Rows:
        """Return random rows for every table, at most MAX_ROWS each, in an order in which they can be inserted.

        Most tables have the same size, which is chosen from `sizes`, as is the share of NULL from `null_shares`. Each
        column has few random values. Rows that refer to a missing row are removed.
        """
        size, null_share, sample_size = random.choice(sizes), random.choice(null_shares), random.choice(SAMPLES)
        most_compared = FEW_COMPARED if self.few_compared else MANY_COMPARED
        pools: dict[Column, list[Cell]] = {}
        rows_by_table: Rows = {}
        for name, columns in self._columns.items():
            column_cells = []
            for column, type_ in columns:
                pool = self._pool_of(column)
                if (fixed_cells := self._cells_of_fixed.get(column)) is not None:  # the same value in all databases
                    pools[pool] = list(islice(self._sampled[pool], 1))
                    column_cells.append(fixed_cells)
                    continue
                if pool not in pools:
                    compared, sampled = list(self._compared[pool]), list(self._sampled[pool])
                    chosen = random.sample(compared, min(len(compared), random.randint(*most_compared)))
                    pools[pool] = [*chosen, *random.sample(sampled, min(sample_size, len(sampled)))]
                column_cells.append(self._allowed(pools[pool], column, type_))
            rows_by_table[name] = self._table_rows(
                name, column_cells, rows_by_table, random, max(1, size // random.choice((1, 1, 2))), null_share
            )
        return without_orphans(rows_by_table, self._constraints)

    def _allowed(self, values: Iterable[Cell], column: Column, type_: str) -> Sequence[Cell]:
        """Return values as the type of a column stores them, within its range; others if it takes none of them."""
        cells = [cell for value in values for cell in coerce_value(value, type_, is_strict=self.is_strict)]
        if (limits := self.ranges.get(column)) is not None:
            cells = [cell for cell in cells if is_in_range(cell, limits)] or list(dict.fromkeys(limits))
        return cells or key_values(type_)[:3]

    def _table_rows(
        self, name: str, pools: Sequence[Sequence[Cell]], earlier: Rows, random: Random, size: int, null_share: float
    ) -> list[Row]:
        """Return rows of a table that satisfy its constraints, given the rows of `earlier` tables.

        There are `size` rows, or more for a group of repeated values; there are fewer if keys or references do not
        allow more. `pools` are the values of each column.
        """
        constraints = self._constraints[name]
        repeated = 0
        unique = {key[0] for key in constraints.keys if len(key) == 1}
        free = [at for at in self._varied[name] if at not in unique]
        if random.random() < REPEATING and free:
            repeated = min(random.choice(self._group_sizes) + random.choice((0, 0, 1)), MAX_ROWS)
        count = max(size, repeated)
        attempts = 2 * count if constraints.keys else count
        columns = [self._random_column(name, at, cells, random, attempts, null_share) for at, cells in enumerate(pools)]
        if repeated:
            grouped = random.choice(free)
            columns[grouped][:repeated] = [random.choice(pools[grouped])] * repeated
        rows: list[Row] = []
        keys_of = [itemgetter(*key) for key in constraints.keys]
        used_keys: list[set[Cell | Row]] = [set() for _ in keys_of]
        not_null = constraints.not_null_references
        references = [
            _Reference(
                columns,
                places,
                rows if table == name else earlier.get(table, ()),
                limits=[self.ranges.get(self._columns[name][at][0]) for at in columns],
                may_be_own=table == name and not not_null.isdisjoint(columns),
            )
            for columns, table, places in constraints.references
            # Rows that have to refer to those of a later table are removed in the end where they refer to none.
            if table == name or table in earlier or not_null.isdisjoint(columns)
        ]
        for row in self._with_copied_rows(name, list(zip(*columns, strict=True)), repeated, random):
            for reference in references:
                row = reference.match(row, random)
            if not_null and None in map(row.__getitem__, not_null):
                continue
            keys = [key_of(row) for key_of in keys_of]
            if any(map(contains, used_keys, keys)):
                continue
            for used, key in zip(used_keys, keys, strict=True):
                used.add(key)
            rows.append(row)
            if len(rows) == count:
                break
        return rows

    def _random_column(
        self, name: str, at: int, cells: Sequence[Cell], random: Random, count: int, null_share: float
    ) -> list[Cell]:
        """Return `count` random values of a column.

        The share `null_share` is NULL if the column allows it. About half of the values of a key column are numbered
        values of its type, so that enough keys differ.
        """
        constraints, cell_count = self._constraints[name], len(cells)
        if at not in self._varied[name]:
            return [cells[0]] * count
        column = [cells[number % cell_count] for number in random.randbytes(count)]
        if null_share and at not in constraints.not_null:
            limit = int(null_share * 256)
            column = [
                None if number < limit else cell for number, cell in zip(random.randbytes(count), column, strict=True)
            ]
        if at in constraints.in_keys:
            named_column, declared_type = self._columns[name][at]
            numbers = key_values(declared_type)
            if named_column in self.ranges:
                limits = random.choice([self.ranges[named_column], *self._limits_of_key(name, at)])
                numbers = key_values(declared_type, limits[0]) if isinstance(limits[0], int) else numbers
                in_range = [number for number in numbers if is_in_range(number, limits)]
                numbers = list(islice(cycle(in_range or column), count))
            halves = zip(random.randbytes(count), numbers, column, strict=False)
            column = [number if half % 2 else cell for half, number, cell in halves] or column
        return column

    def _with_copied_rows(self, name: str, rows: list[Row], repeated: int, random: Random) -> list[Row]:
        """Change some of the rows, and return all: some become copies of an earlier row or of a sample.

        A copy keeps its own keys, and one or two other cells of its own. The first `repeated` rows are not replaced by
        samples.
        """
        samples, in_keys, varied = self.samples.get(name, ()), self._constraints[name].in_keys, self._varied[name]
        for number, kind in enumerate(random.randbytes(len(rows))):
            if number and kind < RESEMBLING * 256:
                earlier, *changed = random.randbytes(random.choice((2, 2, 3)))
                model = rows[earlier % number]
                kept_places = [*in_keys, *[varied[place % len(varied)] for place in changed if varied]]
            elif samples and number >= repeated and kind >= (1 - FROM_SOURCE) * 256:
                model = random.choice(samples)
                halves = zip(in_keys, random.randbytes(len(in_keys)), strict=True)
                kept_places = [at for at, half in halves if half % 2]
            else:
                continue
            row = list(model)
            for at in kept_places:
                row[at] = rows[number][at]
            rows[number] = tuple(row)
        return rows


class _Reference:
    """A foreign key from `columns` of a table to `places` in `rows` of the referenced table; `rows` may grow.

    References are made only to rows whose values are within the `limits` of the columns. With `may_be_own`, a row
    refers to itself if there is no other row.
    """

    def __init__(
        self,
        columns: Sequence[int],
        places: Sequence[int],
        rows: Sequence[Row],
        *,
        limits: Sequence[tuple[Cell, Cell] | None],
        may_be_own: bool,
    ) -> None:
        self._columns, self._places, self._rows, self._may_be_own = columns, places, rows, may_be_own
        self._limits = [(place, of_column) for place, of_column in zip(places, limits, strict=True) if of_column]
        self._referable: list[Row] = []
        self._key_of, self._referred_key_of = itemgetter(*columns), itemgetter(*places)
        self._keys: set[Cell | Row] = {None}  # NULL refers to no row
        self._seen = 0  # rows whose keys are known

    def match(self, row: Row, random: Random) -> Row:
        """Return the row if its reference is valid or NULL, else a copy that refers to a random row.

        Without a row to refer to, the copy refers to itself if that is allowed, else has NULL.
        """
        if self._seen < len(self._rows):
            new_rows = self._rows[self._seen :]
            if self._limits:
                new_rows = [row for row in new_rows if all(is_in_range(row[at], limit) for at, limit in self._limits)]
            self._referable += new_rows
            self._keys.update(map(self._referred_key_of, new_rows))
            self._seen = len(self._rows)
        key = self._key_of(row)
        if key in self._keys or (len(self._columns) > 1 and None in key):
            return row
        referred_row = random.choice(self._referable) if self._referable else row if self._may_be_own else None
        cells = list(row)
        for at, place in zip(self._columns, self._places, strict=True):
            cells[at] = None if referred_row is None else referred_row[place]
        return tuple(cells)


def insertion_order(tables: Tables) -> list[str]:
    """Return the names of tables, each after the tables that it refers to, except for references that close a cycle."""
    referred: dict[str, dict[str, None]] = {name: {} for name in tables}
    for name, table in tables.items():
        for key in table.foreign_keys:
            if key.table in tables and name not in _reachable(key.table, referred):
                referred[name][key.table] = None
    return list(TopologicalSorter(referred).static_order())


def _reachable(start: str, referred: Mapping[str, Collection[str]]) -> set[str]:
    """Return the table `start` and all tables that it refers to, directly or not."""
    reached, waiting = set[str](), [start]
    while waiting:
        if (name := waiting.pop()) not in reached:
            reached.add(name)
            waiting += referred[name]
    return reached


def satisfies_constraints(rows: Rows, constraints: Mapping[str, TableConstraints]) -> bool:
    """Return whether rows satisfy NOT NULL, keys and foreign keys."""
    for name, table_rows in rows.items():
        if any(row[at] is None for row in table_rows for at in constraints[name].not_null):
            return False
        for key in constraints[name].keys:
            keys = [values for row in table_rows if None not in (values := tuple(row[at] for at in key))]
            if len(keys) > len({*keys}):
                return False
    return without_orphans(rows, constraints) == rows


def without_orphans(rows: Rows, constraints: Mapping[str, TableConstraints]) -> Rows:
    """Return the rows without rows that refer to a missing row, directly or through a row that is left out."""
    valid_rows = dict(rows)
    while True:
        count = sum(map(len, valid_rows.values()))
        for name in valid_rows:
            for columns, table, places in constraints[name].references:
                referred = {*map(itemgetter(*places), valid_rows.get(table, ()))}
                key_of = itemgetter(*columns)
                valid_rows[name] = [
                    row
                    for row, key in zip(valid_rows[name], map(key_of, valid_rows[name]), strict=True)
                    if key in referred or None in map(row.__getitem__, columns)
                ]
        if sum(map(len, valid_rows.values())) == count:
            return valid_rows
