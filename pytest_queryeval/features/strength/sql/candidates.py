"""Small databases with the tables of a source, in which queries that agree on the source may differ."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from pytest_queryeval.core.model import Case, QueryOrAnswer, Source
from pytest_queryeval.core.table import Row, Table
from pytest_queryeval.evaluation.session import Session
from pytest_queryeval.features.strength.sql.compared import Compared, compared_columns
from pytest_queryeval.features.strength.sql.rows import (
    RowGenerator,
    Rows,
    constraints_of,
    insertion_order,
    without_orphans,
)
from pytest_queryeval.languages.sql.scripts import can_insert, insert_rows, select_rows
from pytest_queryeval.languages.sql.table_definitions import read_tables

SAMPLED_ROWS = 60  # of each table of the source


class CandidateDatabases:
    """Small databases for queries on the source of a case, all with its tables.

    Raise `SourceError` where the source cannot list its tables.
    """

    def __init__(self, case: Case, session: Session) -> None:
        self._case = case
        self._session = session
        source_tables = session.source_tables(case)
        self.tables = source_tables.tables
        statements = re.split(r"(?<=;)\n\n(?=CREATE )", source_tables.ddl)
        by_table = {
            name: statement for statement in statements for name in read_tables(statement, case.settings.dialect)
        }
        other_statements = [statement for statement in statements if statement not in by_table.values()]
        self._ddl = "\n\n".join([*(by_table[name] for name in insertion_order(self.tables)), *other_statements])
        self._constraints = constraints_of(self.tables)
        self._samples = {name: self._sampled(name) for name in self.tables}

    def _sampled(self, table: str) -> Sequence[Row]:
        """Return some rows of a table of the source, or none if its columns are not those of its definition."""
        query = QueryOrAnswer(query=select_rows(table, SAMPLED_ROWS, self._case.settings.dialect))
        case = replace(self._case, settings=replace(self._case.settings, max_rows=SAMPLED_ROWS))
        answer = self._session.execute_cached(query, case, is_derived=True).answer
        if not isinstance(answer, Table) or len(answer.columns) != len(self.tables[table].columns):
            return ()
        return [row for row in answer.rows if can_insert(row)]

    def compared(self, query: str) -> Compared:
        """Return what a query compares."""
        return compared_columns(query, self._case.settings.dialect, self.tables)

    def generator(self, compared: Sequence[Compared]) -> RowGenerator:
        """Return what makes rows at which the answers of these queries change."""
        return RowGenerator(self.tables, compared, self._samples, is_strict=self._case.settings.dialect != "sqlite")

    def script(self, rows: Rows) -> str:
        """Return the script that makes a database of these rows."""
        inserts = [
            insert_rows(name, of_table, self._case.settings.dialect) for name, of_table in rows.items() if of_table
        ]
        return "\n\n".join([self._ddl, *inserts]) + "\n"

    def source_of(self, rows: Rows) -> Source:
        """Return a database of these rows, open until the next call; raise `SourceError` as `Session.build` does."""
        assert self._case.settings.source is not None  # or it would have no tables
        return self._session.build(self._case.settings.source, self.script(rows))

    def reduced(self, rows: Rows, is_enough: Callable[[Rows], bool], attempts: int) -> Rows:
        """Return fewer rows that are still enough: remove ever smaller slices of the tables, in the end single rows."""
        size = max(map(len, rows.values()))
        while True:
            previous_rows = rows
            for name in reversed(rows):
                at = 0
                while at < len(rows[name]) and attempts > 0:
                    attempts -= 1
                    fewer = without_orphans(
                        {**rows, name: rows[name][:at] + rows[name][at + size :]}, self._constraints
                    )
                    if is_enough(fewer):
                        rows = fewer
                    else:
                        at += size
            if size == 1 and rows is previous_rows:
                return rows
            size = max(1, size // 2)
