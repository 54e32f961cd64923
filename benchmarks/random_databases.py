"""Random databases for benchmarks of proofs: they keep the constraints of tables, and hold whatever their types admit.

Made without the generator of small databases that challenges use, so that a fault of one does not hide in the other.
There are empty tables, NULL where it is allowed, equal rows, values at which one of the queries changes, values at the
limits of types, and in SQLite values that are not of the type of their column, as it stores them.
"""

from __future__ import annotations

import re
import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import date, datetime
from random import Random
from typing import Any, NamedTuple, TypeAlias

import duckdb

from pytest_queryeval.core.db_schema import Column, Tables
from pytest_queryeval.core.model import Case
from pytest_queryeval.core.table import Cell, Row, Table
from pytest_queryeval.evaluation.scoring import resolve_row_order
from pytest_queryeval.features.strength import neighbours
from pytest_queryeval.features.strength.sql.rows import Rows, constraints_of, insertion_order, without_orphans
from pytest_queryeval.features.strength.sql.values import Compared, compared_columns
from pytest_queryeval.languages import KINDS
from pytest_queryeval.metrics.execution_accuracy import execution_accuracy

SEED = 30
SIZES = (0, 1, 2, 3, 4, 6, 9, 16)  # rows of a table
NULL_SHARES = (0.0, 0.1, 0.3, 0.6)
COPIES = 0.25  # share of the rows that copy another one but for its keys
REFERRING = 0.85  # share of the foreign keys that are copied from a row of the other table
NUMBERED = 0.5  # share of the values of keys that are numbers in turn
MIXED, EXTREME = 0.25, 0.1  # shares of the databases with values of other types, and at the limits of types
EDGES: dict[str, Sequence[Cell]] = {
    "integer": (0, 1, -1, 2, 3, 10, 100, 2**31 - 1),
    "real": (0.0, 1.0, 0.5, -0.5, 0.1, 0.2, 0.3, 1e-9, 1e15),
    "text": ("", " ", "a", "A", "b", "aa", "ä", "0", "1", "01", "1.0", "%", "_", "a%", "NULL", "it's", "x" * 300),
    "time": ("2020-02-29", "1999-12-31", "2020-02-29 00:00:00", "0001-01-01", "9999-12-31 23:59:59"),
    "boolean": (0, 1),
}
EXTREMES: dict[str, Sequence[Cell]] = {
    "integer": (2**63 - 1, -(2**63), 2**53 + 1),
    "real": (1e308, -1e308, 5e-324, float("inf"), float("-inf")),
}
MISFITS: Sequence[Cell] = ("abc", "", "1x", b"\0", b"1")  # which SQLite stores as they are
SORTS = (
    *(("INT", "integer"), ("CHAR", "text"), ("CLOB", "text"), ("TEXT", "text"), ("BOOL", "boolean")),
    *(("DATE", "time"), ("TIME", "time")),
)

Pool: TypeAlias = Sequence[Cell]


class RandomRows:
    """Makes rows for tables; `compared` has what each pair of queries compares, `samples` rows of the source by table."""

    def __init__(
        self, tables: Tables, compared: Sequence[Compared], samples: Mapping[str, Sequence[Row]], dialect: str
    ) -> None:
        nullable = {(name, column) for name, table in tables.items() for column in table.nullable_key}
        self._tables = {name: tables[name] for name in insertion_order(tables)}
        self._constraints = constraints_of(
            {
                name: table._replace(
                    columns=[
                        column._replace(not_null=column.not_null and (name, column.name.lower()) not in nullable)
                        for column in table.columns
                    ]
                )
                for name, table in self._tables.items()
            }
        )
        self._samples = samples
        self._dialect = dialect
        self._compared = [self._values(query) for query in compared]
        self._groups = [self._shared_columns(query) for query in compared]

    def _values(self, query: Compared) -> dict[Column, Pool]:
        values: dict[Column, list[Cell]] = {}
        for column, literal in query.values:
            values.setdefault(column, []).extend(neighbours(literal))
        return values

    def _shared_columns(self, query: Compared) -> dict[Column, Column]:
        """Return for columns that are compared, or refer to each other, one that stands for all of them."""
        parents: dict[Column, Column] = {}

        def root(column: Column) -> Column:
            while column in parents:
                column = parents[column]
            return column

        pairs = list(query.pairs)
        for name, table in self._tables.items():
            for key in table.foreign_keys:
                pairs += [((name, of), (key.table, to)) for of, to in zip(key.columns, key.referred, strict=False)]
        for first, second in pairs:
            if root(first) != root(second):
                parents[root(first)] = root(second)
        return {column: root(column) for pair in pairs for column in pair}

    def rows(self, random: Random, query: int) -> Rows:
        """Return rows for all tables, in their order of insertion, at which a pair of queries may change its answers."""
        pools: dict[Column, Pool] = {}
        null_share, is_mixed, is_extreme = (
            random.choice(NULL_SHARES),
            random.random() < MIXED,
            random.random() < EXTREME,
        )
        rows: Rows = {}
        for name, table in self._tables.items():
            columns: list[Pool] = []
            for at, column in enumerate(table.columns):
                place = (name, column.name.lower())
                group = self._groups[query].get(place, place)
                if group not in pools:
                    pools[group] = self._pool(random, query, place, at, column.type, is_extreme=is_extreme)
                values = [value for cell in pools[group] for value in stored(cell, column.type, self._dialect)]
                if self._dialect == "sqlite" and at not in self._constraints[name].in_keys:
                    sampled = [row[at] for row in self._samples.get(name, ()) if row[at] is not None]
                    values += random.sample(sampled, min(1, len(sampled)))  # what it stores, whatever its type
                    values += [random.choice(MISFITS)] if is_mixed else []
                edges = EDGES[kind_of(column.type, self._dialect)]
                columns.append(values or stored(random.choice(edges), column.type, self._dialect))
            rows[name] = self._table(random, name, columns, rows, null_share)
        return without_orphans(rows, self._constraints)

    def _pool(self, random: Random, query: int, place: Column, at: int, type_: str, *, is_extreme: bool) -> Pool:
        compared = self._compared[query].get(place, ())
        sampled = [row[at] for row in self._samples.get(place[0], ())]
        kind = kind_of(type_, self._dialect)
        edges = [*EDGES[kind], *(EXTREMES.get(kind, ()) if is_extreme else ())]
        sources = [pool for pool in (compared, compared, sampled, edges) if pool]
        return [random.choice(random.choice(sources)) for _ in range(random.randint(1, 5))]

    def _table(self, random: Random, name: str, columns: Sequence[Pool], earlier: Rows, null_share: float) -> list[Row]:
        constraints = self._constraints[name]
        rows: list[Row] = []
        keys: list[set[Row]] = [set() for _ in constraints.keys]
        for number in range(1, random.choice(SIZES) + 1):
            row = self._row(random, name, columns, {**earlier, name: rows}, null_share, number)
            values = [tuple(row[at] for at in key) for key in constraints.keys]
            if any(row[at] is None for at in constraints.not_null) or any(map(set.__contains__, keys, values)):
                continue
            for value, of_key in zip(values, keys, strict=True):
                if None not in value:
                    of_key.add(value)
            rows.append(row)
        return rows

    def _row(
        self, random: Random, name: str, columns: Sequence[Pool], rows: Rows, null_share: float, number: int
    ) -> Row:
        constraints, table = self._constraints[name], self._tables[name]
        cells = [
            None if at not in constraints.not_null and random.random() < null_share else random.choice(values)
            for at, values in enumerate(columns)
        ]
        if rows[name] and random.random() < COPIES:
            copied = random.choice(rows[name])
            cells = [cell if at in constraints.in_keys else copied[at] for at, cell in enumerate(cells)]
        for at in constraints.in_keys:
            if cells[at] is not None and random.random() < NUMBERED:
                cells[at] = next(iter(stored(number, table.columns[at].type, self._dialect)), cells[at])
        for places, referred_table, referred in constraints.references:
            candidates = rows.get(referred_table)
            if candidates and cells[places[0]] is not None and random.random() < REFERRING:
                row = random.choice(candidates)
                for at, place in zip(places, referred, strict=True):
                    cells[at] = row[place]
        return tuple(cells)


def kind_of(declared: str, dialect: str) -> str:
    """Return the sort of the values of a column by its declared type, a key of `EDGES`."""
    name = declared.upper()
    return next((kind for word, kind in SORTS if word in name), "text" if not name else "real")


def stored(value: Cell, declared: str, dialect: str) -> list[Any]:
    """Return a value as a column of the type stores it, in a list; an empty one for a value of another type."""
    kind = kind_of(declared, dialect)
    if value is None or isinstance(value, bytes):
        return []
    if kind == "text":
        return [value if isinstance(value, str) else str(value)]
    if kind == "time":
        if dialect == "sqlite":
            return [value] if isinstance(value, str) else []
        with suppress(ValueError, TypeError):
            moment = value if isinstance(value, date) else datetime.fromisoformat(str(value))
            moment = moment if isinstance(moment, datetime) else datetime(moment.year, moment.month, moment.day)
            return [moment.isoformat(" ") if "TIME" in declared.upper() else moment.date().isoformat()]
        return []
    if kind == "boolean" and dialect != "sqlite":
        return [bool(value)] if value in (0, 1) else []
    with suppress(ValueError, OverflowError):
        number = value if isinstance(value, int | float) else float(str(value))
        if kind != "integer":
            return [float(number) if kind == "real" else number]
        return [int(number)] if number == int(number) and abs(number) <= 2**63 else []
    return []


class SqliteDatabase:
    """One database in memory, filled again and again."""

    def __init__(self, script: str, queries: Sequence[str]) -> None:
        self._queries = queries
        self._connection = sqlite3.connect(":memory:", isolation_level=None, cached_statements=4_000)
        self._connection.text_factory = lambda data: data.decode(errors="replace")
        self._connection.executescript(script)

    def fill(self, rows: Rows) -> bool:
        """Replace all rows; return whether the database accepts them."""
        self._connection.execute("BEGIN")
        for name in reversed(rows):
            self._connection.execute(f'DELETE FROM "{name}"')
        try:
            for name, of_table in rows.items():
                if of_table:
                    places = ", ".join("?" * len(of_table[0]))
                    self._connection.executemany(f'INSERT INTO "{name}" VALUES ({places})', of_table)
        except (sqlite3.IntegrityError, OverflowError):
            self._connection.execute("ROLLBACK")
            return False
        self._connection.execute("COMMIT")
        return True

    def answer(self, query: str) -> Table | str:
        """Return the answer to a query, or the message of its error."""
        try:
            cursor = self._connection.execute(query)
            return Table(columns=tuple(item[0] for item in cursor.description), rows=cursor.fetchall())
        except sqlite3.Error as error:
            return str(error)


class DuckdbDatabase:
    """One database in memory, filled again and again; queries are prepared, which saves most of their time."""

    def __init__(self, script: str, queries: Sequence[str]) -> None:
        self._connection = duckdb.connect(":memory:", config={"threads": "1"})
        self._connection.execute(script)
        self._prepared: dict[str, str] = {}
        for number, query in enumerate(queries):
            with suppress(duckdb.Error):
                self._connection.execute(f"PREPARE q{number} AS {query}")
                self._prepared[query] = f"EXECUTE q{number}"

    def fill(self, rows: Rows) -> bool:
        """Replace all rows; return whether the database accepts them."""
        for name in reversed(rows):
            self._connection.execute(f'DELETE FROM "{name}"')
        try:
            for name, of_table in rows.items():
                if of_table:
                    texts = (f"({', '.join(map(literal, row))})" for row in of_table)
                    self._connection.execute(f'INSERT INTO "{name}" VALUES {", ".join(texts)}')
        except duckdb.Error:
            return False
        return True

    def answer(self, query: str) -> Table | str:
        """Return the answer to a query, or the message of its error."""
        try:
            self._connection.execute(self._prepared.get(query, query))
            names = tuple(item[0] for item in self._connection.description or ())
            return Table(columns=names, rows=self._connection.fetchall())
        except (duckdb.Error, ValueError, OverflowError) as error:
            return str(error).partition("\n")[0]


def literal(cell: Any) -> str:
    """Return a value as DuckDB reads it."""
    if cell is None:
        return "NULL"
    if isinstance(cell, str):
        return "'" + cell.replace("'", "''") + "'"
    return f"'{cell!r}'::DOUBLE" if isinstance(cell, float) else repr(cell)


class Pair(NamedTuple):
    """Two queries that are said to be the same, with a case that has their policy."""

    case: Case
    gold: str
    predicted: str
    note: str
    """Why they are said to be the same."""


class PairsOfSource:
    """Pairs of queries on one source, run on random databases with its tables."""

    def __init__(
        self, pairs: Sequence[Pair], script: str, tables: Tables, samples: Mapping[str, Sequence[Row]]
    ) -> None:
        self._pairs, self._script = pairs, script
        self._random = Random(SEED)
        dialect = pairs[0].case.settings.dialect
        compared = []
        for pair in pairs:
            first, second = (compared_columns(query, dialect, tables) for query in (pair.gold, pair.predicted))
            compared.append(Compared(values=first.values + second.values, pairs=first.pairs + second.pairs))
        self._rows = RandomRows(tables, compared, samples, dialect)
        self._engine = SqliteDatabase if dialect == "sqlite" else DuckdbDatabase
        self._queries = list(dict.fromkeys(query for pair in pairs for query in (pair.gold, pair.predicted)))
        self.counts: Counter[str] = Counter()
        self.differing: set[int] = set()
        """The places of the pairs that differ in a database, or of which one query alone fails there."""

    def check(self, count: int) -> Iterator[str]:
        """Run all pairs on so many databases more, each made for one of them in turn; yield the differences of new pairs."""
        database = self._engine(self._script, self._queries)
        for number in range(count):
            rows = self._rows.rows(self._random, number % len(self._pairs))
            while not database.fill(rows):
                self.counts["databases refused by the engine"] += 1
                rows = self._rows.rows(self._random, number % len(self._pairs))
            answers = {query: database.answer(query) for query in self._queries}
            for place, pair in enumerate(self._pairs):
                outcome = self._outcome(pair, answers[pair.gold], answers[pair.predicted], database)
                self.counts[outcome] += 1
                if outcome in (DIFFER, ONE_FAILS) and place not in self.differing:
                    self.differing.add(place)
                    contents = {name: of_table for name, of_table in rows.items() if of_table}
                    yield f"{outcome}: {pair[1:]}: {contents}: {answers[pair.gold]}, {answers[pair.predicted]}"

    def _outcome(
        self, pair: Pair, gold: Table | str, predicted: Table | str, database: SqliteDatabase | DuckdbDatabase
    ) -> str:
        if isinstance(gold, str) or isinstance(predicted, str):
            return "both fail" if isinstance(gold, str) and isinstance(predicted, str) else ONE_FAILS
        if gold.rows == predicted.rows:
            return "equal" if gold.rows else "both empty"
        if not ORDERED.search(pair.gold) and Counter(gold.rows) == Counter(predicted.rows):
            return "equal"
        policy = pair.case.settings.policy
        ordered, _ = resolve_row_order(
            gold,
            predicted,
            policy,
            read_plan=lambda: KINDS["sql"].order_plan(pair.gold, gold, pair.case),
            run=database.answer,
        )
        return "equal by the policy" if execution_accuracy(ordered, predicted, policy=policy) == 1.0 else DIFFER


DIFFER, ONE_FAILS = "differ", "one fails"
ORDERED = re.compile(r"\border\s+by\b", re.IGNORECASE)
