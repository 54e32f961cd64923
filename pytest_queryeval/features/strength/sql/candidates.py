"""Small databases with the tables of a source, on which queries that agree on the source may differ."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import replace
from functools import cached_property, lru_cache, partial
from itertools import compress
from random import Random
from typing import TypeVar

from sqlglot import exp

from pytest_queryeval.core.db_schema import Column, ForeignKey, Tables
from pytest_queryeval.core.errors import SourceError
from pytest_queryeval.core.json_value import display_cell
from pytest_queryeval.core.mappings import not_none
from pytest_queryeval.core.model import Case, QueryOrAnswer, Source
from pytest_queryeval.core.table import Cell, FrozenMapping, Row, Table
from pytest_queryeval.engines import ENGINES, SmallDatabase
from pytest_queryeval.evaluation.session import Session
from pytest_queryeval.features.strength import Constraints
from pytest_queryeval.features.strength.sql.rows import (
    MAX_ROWS,
    RowGenerator,
    Rows,
    TableConstraints,
    constraints_of,
    insertion_order,
    satisfies_constraints,
    without_orphans,
)
from pytest_queryeval.features.strength.sql.source_tables import CONSTRAINT_SECONDS, SourceTables, source_tables
from pytest_queryeval.features.strength.sql.values import (
    Compared,
    Ranges,
    TableFigures,
    compared_columns,
    infer_constraints,
    is_in_range,
    table_figures,
)
from pytest_queryeval.languages.sql import parse_query
from pytest_queryeval.languages.sql.columns import linked
from pytest_queryeval.languages.sql.dialects import quote_in
from pytest_queryeval.languages.sql.rewriting import INDEPENDENT_OF_DATA, first_call, tables_in

T = TypeVar("T")
SAMPLED_ROWS = 60  # of each table of the source
OBSERVED_ROWS = 10_000  # of each table of the source
MAX_VARIANT_ROWS = 1_000  # of each table of a variant
PLAIN_SHARE = 1 / 3
PLAIN_SIZES = (4, 8)
SHUFFLES = 2
# Sizes of tables and shares of NULL where few databases have to tell two queries apart, the cheapest first.
SIZES_AND_NULL_SHARES = ((6, 0.05), (6, 0.3), (16, 0.15), (16, 0.3), (20, 0.15), (8, 0.3), (30, 0.3), (20, 0.3))


class CandidateDatabases:
    """Small databases with the tables of a case's source; a state is the rows by table.

    The databases satisfy the constraints that the rows of the source satisfy. With `read_by`, the databases also
    satisfy all declared constraints, and only tables that these queries read, or that such tables refer to, have rows.
    Raise `SourceError` if the source cannot list its tables, or if the answer of a query in `read_by` depends on more
    than data, such as the time.
    """

    def __init__(self, case: Case, session: Session, read_by: Sequence[str] = ()) -> None:
        for query in read_by:
            tree = parse_query(query, case.settings.dialect).whole_tree
            if tree is not None and (call := first_call(tree, case.settings.dialect, INDEPENDENT_OF_DATA)):
                raise SourceError(f"the value of {call} does not depend on data")
        assert case.settings.source is not None  # or there would be no queries
        self._case = case
        self._source = case.settings.source
        self._session = session
        listing = source_tables(case, session)
        self._declared, self._tables = listing.declared, listing.tables
        self._dialect = case.settings.dialect
        self._is_for_queries = bool(read_by)
        self._read = _tables_read_by(read_by, listing) if read_by else listing.tables.keys()
        self._filled = _with_referred(self._read, listing) if read_by else listing.tables
        self._order = insertion_order(self._filled)
        self._listing = listing
        self._compared = [_compared_columns(query, listing) for query in read_by]
        self._ddl = listing.script
        self._constraints = constraints_of(self._filled)

        def sampled(name: str) -> Sequence[Row]:
            return [row for row in self._rows_of(self._source, name, SAMPLED_ROWS) or () if can_insert(row)]

        self._samples = {name: self._cached("sample", name, sampled) for name in self._filled}

    @property
    def constraints(self) -> Constraints:
        """Constraints that all of these databases satisfy, with the tables that have rows."""
        tables = {name: self._tables[name] for name in self._filled}
        return Constraints(f"{self._ddl}\n{tables!r}\n{self._by_data!r}", tables)

    @cached_property
    def _by_data(self) -> tuple[Tables, Ranges]:
        """The tables with all constraints that the source's rows satisfy, declared or not, and ranges of columns."""

        def figures_of(name: str) -> TableFigures | None:
            names = [column.name for column in self._declared[name].columns]
            answer = self._answer(statistics_query(name, names, OBSERVED_ROWS, self._dialect), self._source, 1)
            return None if answer is None else table_figures(self._declared[name], answer.rows[0])

        tables, ranges = dict(self._filled), dict[Column, tuple[Cell, Cell]]()
        figures = {name: self._cached("figures", name, figures_of) for name in tables}
        for name, of_table in figures.items():
            if of_table is not None:
                tables[name], of_columns = infer_constraints(tables[name], of_table)
                ranges |= of_columns
        for name, key in self._undeclared_references(tables, figures):
            tables[name] = tables[name]._replace(foreign_keys=(*tables[name].foreign_keys, key))
        return tables, ranges

    @cached_property
    def _constraints_by_data(self) -> Mapping[str, TableConstraints]:
        return constraints_of(self._by_data[0])

    def _undeclared_references(
        self, tables: Tables, figures: Mapping[str, TableFigures | None]
    ) -> Iterator[tuple[str, ForeignKey]]:
        """Yield undeclared foreign keys with the names of their tables: columns whose values all occur in a key column.

        Numbers such as 1 to 10 may occur in many keys by chance. So a column of numbers counts only if a query compares
        it with the key, directly or through other columns.
        """
        known_figures = not_none(figures)
        pairs = [pair for query in self._compared for pair in query.pairs]
        for referred, of_referred in known_figures.items():
            keys = [key[0] for key in tables[referred].keys if len(key) == 1]
            for key in dict.fromkeys(keys):
                # Columns that a query compares with the key, directly or by others that it compares with both.
                compared = linked((referred, key), pairs)
                columns = [
                    (name, column)
                    for name, of_table in known_figures.items()
                    for column, of_column in of_table.columns.items()
                    if (name, column) != (referred, key)
                    and not any(
                        (*foreign.columns, foreign.table, *foreign.referred) == (column, referred, key)
                        for foreign in tables[name].foreign_keys
                    )
                    and of_column.may_refer_to(of_referred.columns[key])
                    and (isinstance(of_column.least, str) or (name, column) in compared)
                ]
                for (name, column), refers in zip(columns, self._refer_to(referred, key, columns), strict=True):
                    if refers:
                        yield name, ForeignKey((column,), referred, (key,))

    def _refer_to(self, referred: str, key: str, columns: Sequence[Column]) -> Sequence[bool]:
        """Return for each column whether its first values all occur in a key; True if the source does not answer."""
        spellings = {
            (name, column.name.lower()): column.name for name in self._filled for column in self._declared[name].columns
        }

        def ask(_: str) -> Sequence[bool]:
            written = [(table, spellings[table, column]) for table, column in columns]
            query = references_query(written, (referred, spellings[referred, key]), OBSERVED_ROWS, self._dialect)
            answer = self._answer(query, self._source, 1)
            return [True] * len(columns) if answer is None else [not orphan for orphan in answer.rows[0]]

        return self._cached(("references", key, *columns), referred, ask) if columns else ()

    def _cached(self, what: Hashable, table: str, make: Callable[[str], T]) -> T:
        """Return `make(table)`, which the session computes once for each `what`, source and table."""
        return self._session.cached((what, self._source.key, table, self._dialect), lambda: make(table))

    def _answer(self, query: str, source: Source, max_rows: int) -> Table | None:
        """Return the answer of a query on the source or a variant; None if the query fails."""
        settings = replace(self._case.settings, source=source, max_rows=max_rows, timeout=CONSTRAINT_SECONDS)
        case = replace(self._case, settings=settings)
        return self._session.execute(QueryOrAnswer(query=query), case, is_derived=True).table

    def _rows_of(self, source: Source, table: str, limit: int) -> Sequence[Row] | None:
        """Return the first rows of a table; None if the query fails or the number of columns is not as declared."""
        answer = self._answer(rows_query(table, limit, self._dialect), source, limit)
        if answer is None or len(answer.columns) != len(self._declared[table].columns):
            return None
        return answer.rows

    def state_of(self, source: Source) -> Rows | None:
        """Return the rows of a variant by table.

        None if a table cannot be read, has more than MAX_VARIANT_ROWS rows or a value without a SQL literal, or if the
        rows break a constraint.
        """
        state: Rows = {}
        for name in self._order:
            rows = self._rows_of(source, name, MAX_VARIANT_ROWS + 1)
            if rows is None or len(rows) > MAX_VARIANT_ROWS or not all(map(can_insert, rows)):
                return None
            state[name] = list(rows)
        return state if satisfies_constraints(state, self._constraints) else None

    def satisfies_data(self, state: Rows) -> bool:
        """Return whether rows satisfy all constraints and ranges that the rows of the source satisfy.

        Each table that queries read also needs a row, unless it has none in the source.
        """
        return (
            self._fills_tables(state)
            and satisfies_constraints(state, self._constraints_by_data)
            and self._rows_in_range(state) == state
        )

    def _fills_tables(self, state: Rows) -> bool:
        """Return whether all tables that queries read have rows, except tables without rows in the source."""
        return all(state[name] or not self._samples[name] for name in self._read)

    def _rows_in_range(self, state: Rows) -> Rows:
        """Return the rows in which every value is in the range of its column in the source."""
        tables, ranges = self._by_data
        return {
            name: [
                row
                for row in rows
                if all(
                    is_in_range(cell, ranges[name, column.name.lower()])
                    for column, cell in zip(tables[name].columns, row, strict=True)
                    if (name, column.name.lower()) in ranges
                )
            ]
            for name, rows in state.items()
        }

    def candidates(self, queries: Sequence[str], random: Random, count: int, *, plain_first: bool) -> Iterator[Rows]:
        """Yield up to `count` states on which the answers of these queries may differ; none without tables.

        With `plain_first`, the first half satisfies all that the data of the source satisfy. The first third of each
        half is plain: few rows, and NULL only where unavoidable. An additional last state is empty.
        """
        if not self._declared:
            return
        generator_for = partial(
            RowGenerator,
            compared=[_compared_columns(query, self._listing) for query in queries],
            samples=self._samples,
            is_strict=self._dialect != "sqlite",
            only_read=self._is_for_queries,
            few_compared=self._is_for_queries and not plain_first,
        )
        if plain_first:
            tables, ranges = self._by_data
            for state in self._generated_states(
                generator_for(tables, ranges=ranges), random, count // 2, plain=PLAIN_SHARE
            ):
                kept = without_orphans(self._rows_in_range(state), self._constraints_by_data)
                if self._fills_tables(kept):
                    count -= 1
                    yield kept
        yield from self._generated_states(
            generator_for(self._filled), random, count, plain=PLAIN_SHARE if plain_first else 0.0
        )
        if plain_first:
            yield {name: [] for name in self._order}

    def _generated_states(self, generator: RowGenerator, random: Random, count: int, *, plain: float) -> Iterator[Rows]:
        """Yield `count` states of a generator; the share `plain` of them, at the start, is plain."""
        for number in range(count):
            if number < plain * count:
                rows = generator.rows(random, sizes=PLAIN_SIZES, null_shares=(0.0,))
            elif self._is_for_queries:
                size, null_share = SIZES_AND_NULL_SHARES[number % len(SIZES_AND_NULL_SHARES)]
                rows = generator.rows(random, sizes=(size,), null_shares=(null_share,))
            else:
                rows = generator.rows(random)
            yield {name: rows[name] for name in self._order}

    def reversed(self, state: Rows) -> Rows:
        """Return the state with the rows of each table in the opposite order."""
        return {name: table_rows[::-1] for name, table_rows in state.items()}

    def reordered(self, state: Rows, random: Random) -> list[Rows]:
        """Return the state in other orders of rows: with each row first in turn, and SHUFFLES random orders."""
        turns = range(1, min(MAX_ROWS, max(map(len, state.values()), default=0)))
        orders = [{name: table_rows[at:] + table_rows[:at] for name, table_rows in state.items()} for at in turns]
        orders += (
            {name: random.sample(table_rows, len(table_rows)) for name, table_rows in state.items()}
            for _ in range(SHUFFLES)
        )
        return orders

    def contents(self, state: Rows) -> dict[str, Table]:
        """Return the tables that have rows, by name, without generated columns."""
        columns = {
            name: tuple(column.name for column in self._declared[name].columns if not column.is_generated)
            for name in state
        }
        inserted = self._inserted(state)
        return {name: Table(columns=columns[name], rows=rows) for name, rows in inserted.items() if rows}

    def script(self, state: Rows) -> str:
        """Return the SQL script that creates the tables and inserts these rows."""
        inserted = self._inserted(state)
        inserts = [insert_statement(name, rows, self._dialect) for name, rows in inserted.items() if rows]
        return "\n\n".join([self._ddl, *inserts]) + "\n"

    def database(self, state: Rows) -> SmallDatabase:
        """Return the input from which the engine builds a database with these rows."""
        if ENGINES[self._source.engine].build_with_rows is not None:
            return SmallDatabase(self._ddl, self._inserted(state))
        return SmallDatabase(self.script(state))

    def _inserted(self, state: Rows) -> Rows:
        """Return the rows without the cells of generated columns, which the database computes."""
        is_given = {name: [not column.is_generated for column in self._declared[name].columns] for name in state}
        return {
            name: rows if all(is_given[name]) else [tuple(compress(row, is_given[name])) for row in rows]
            for name, rows in state.items()
        }

    def reduced(self, state: Rows, is_enough: Callable[[Rows], bool], attempts: int) -> Rows:
        """Return fewer rows for which `is_enough` returns True, found in at most `attempts` calls; else the same rows.

        Ever smaller slices of tables are removed, in the end single rows, together with rows that refer to a removed
        row.
        """
        rows, constraints = state, self._constraints_by_data if self.satisfies_data(state) else self._constraints
        size = max(map(len, rows.values()), default=1)
        while True:
            previous_rows = rows
            for name in reversed(rows):
                at = 0
                while at < len(rows[name]) and attempts > 0:
                    attempts -= 1
                    shorter = {**rows, name: rows[name][:at] + rows[name][at + size :]}
                    fewer = without_orphans(shorter, constraints)
                    if is_enough(fewer):
                        rows = fewer
                    else:
                        at += size
            if size == 1 and rows is previous_rows:
                return rows
            size = max(1, size // 2)


@lru_cache(maxsize=256)
def _compared_columns(query: str, listing: SourceTables) -> Compared:
    return compared_columns(query, listing.dialect, listing.declared)


def _tables_read_by(queries: Sequence[str], listing: SourceTables) -> AbstractSet[str]:
    """Return the tables that queries read by name; all tables if a query is unreadable or reads an unknown table."""
    tables = listing.tables.keys()
    trees = [parse_query(query, listing.dialect).whole_tree for query in queries]
    names = {table.name.lower() for tree in trees if tree is not None for table in tables_in(tree)}
    return tables if None in trees or not names <= tables else names


def _with_referred(names: AbstractSet[str], listing: SourceTables) -> Tables:
    """Return the tables with these names, and all tables to which they refer, directly or not."""
    tables = listing.tables.keys()
    names = {*names}
    while referred := {key.table for name in names for key in listing.strictest[name].foreign_keys} & tables - names:
        names |= referred
    return {name: listing.strictest[name] for name in tables if name in names}


@lru_cache(maxsize=256)
def rows_query(table: str, limit: int, dialect: str) -> str:
    """Return a query for the first rows of a table.

    >>> rows_query("order", 5, "sqlite")
    'SELECT * FROM "order" LIMIT 5'
    """
    return exp.select("*").from_(exp.to_identifier(table, quoted=True)).limit(limit).sql(dialect)


def statistics_query(table: str, columns: Sequence[str], rows: int, dialect: str) -> str:
    """Return a query for figures of the first rows of a table; the answer is one row.

    The figures are the number of rows, the number of distinct rows, and COLUMN_FIGURES for each column: the number of
    values that are not NULL, the number of distinct values, the least and the greatest value.

    >>> print(statistics_query("singer", ["id"], 5, "sqlite"))
    WITH queryeval_rows AS (SELECT * FROM "singer" LIMIT 5),
      queryeval_distinct_rows AS (SELECT DISTINCT * FROM queryeval_rows)
    SELECT COUNT(*), (SELECT COUNT(*) FROM queryeval_distinct_rows), COUNT(id), COUNT(DISTINCT id), MIN(id), MAX(id)
    FROM queryeval_rows
    """
    names = map(quote_in(dialect, keep_case=True), columns)
    figures = [f"COUNT({name}), COUNT(DISTINCT {name}), MIN({name}), MAX({name})" for name in names]
    select_list = ", ".join(["COUNT(*), (SELECT COUNT(*) FROM queryeval_distinct_rows)", *figures])
    return (
        f"WITH queryeval_rows AS ({rows_query(table, rows, dialect)}),\n"  # noqa: S608 - quoted
        "  queryeval_distinct_rows AS (SELECT DISTINCT * FROM queryeval_rows)\n"
        f"SELECT {select_list}\nFROM queryeval_rows"
    )


def references_query(columns: Sequence[Column], key: Column, rows: int, dialect: str) -> str:
    """Return a query for one row that says of each column whether its first values include one that a key lacks.

    >>> print(references_query([("concert", "singer")], ("singer", "id"), 5, "sqlite"))
    SELECT EXISTS(SELECT 1 FROM (SELECT singer AS v FROM concert LIMIT 5) AS t
      WHERE NOT v IS NULL AND NOT v IN (SELECT id FROM singer))
    """
    quote_name, quote_column = quote_in(dialect), quote_in(dialect, keep_case=True)
    keys = f"SELECT {quote_column(key[1])} FROM {quote_name(key[0])}"  # noqa: S608 - quoted
    tests = [
        f"EXISTS(SELECT 1 FROM (SELECT {quote_column(column)} AS v FROM {quote_name(table)} LIMIT {rows}) AS t\n"  # noqa: S608 - quoted
        f"  WHERE NOT v IS NULL AND NOT v IN ({keys}))"
        for table, column in columns
    ]
    return "SELECT " + ",\n".join(tests)


def insert_statement(table: str, rows: Sequence[Row], dialect: str) -> str:
    """Return the INSERT statement for rows of a table, with a line for each row.

    >>> print(insert_statement("order", [(1, "it's"), (2, None)], "sqlite"))
    INSERT INTO "order" VALUES
      (1, 'it''s'),
      (2, NULL);
    """
    values = ",\n  ".join(f"({', '.join(_literal(cell, dialect) for cell in row)})" for row in rows)
    return f"INSERT INTO {exp.to_identifier(table, quoted=True).sql(dialect)} VALUES\n  {values};"


@lru_cache(maxsize=8_192, typed=True)
def _literal(cell: Cell, dialect: str) -> str:
    """Return a cell as a SQL literal of the dialect; a list or a struct becomes a text that databases convert.

    Integers, plain texts and NULL, which all dialects write alike, are written without sqlglot, which is slow.
    """
    if isinstance(cell, tuple | FrozenMapping):
        cell = str(display_cell(cell))  # a text that databases read as a list or a struct
    match cell:
        case None:
            return "NULL"
        case int() if not isinstance(cell, bool):
            return str(cell)
        case str() if cell.isascii() and cell.isprintable() and "\\" not in cell:
            return "'" + cell.replace("'", "''") + "'"
    return exp.convert(cell).sql(dialect)


def can_insert(row: Row) -> bool:
    """Return whether every value of a row has a SQL literal."""
    if all(isinstance(cell, int | float | str | None) for cell in row):
        return True
    with suppress(ValueError):
        exp.convert(row)
        return True
    return False
