"""Tests that every engine passes: `EngineContract`, from which a test class of an engine inherits them."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, ClassVar

from pytest_queryeval.core.errors import SourceError
from pytest_queryeval.core.model import AddedAnswer, Execution, Source
from pytest_queryeval.core.table import Table
from pytest_queryeval.engines import ENGINES, Engine, SupportsDDL, SupportsSchema, SupportsTiming
from pytest_queryeval.sandbox.host import Hosts

THREADS = 4
MESSAGE_CHARACTERS = 300
LONG_TEXT = "x" * 100_001
KINDS = frozenset({"invalid", "unsafe", "timeout", "too_large"})


@contextmanager
def open_engine(source: Source, hosts: Hosts | None = None) -> Iterator[Engine]:
    """Open a source, with child processes of its own unless there are `hosts`; all of them end with the block."""
    with ExitStack() as stack:
        engine = ENGINES[source.engine].open(source, stack.enter_context(Hosts()) if hosts is None else hosts)
        yield stack.enter_context(_closing_twice(engine))


@contextmanager
def _closing_twice(engine: Engine) -> Iterator[Engine]:
    try:
        yield engine
    finally:
        engine.close()
        engine.close()


def _table(execution: Execution) -> Table | None:
    """Return the answer as reports show it."""
    return execution.answer.as_table() if isinstance(execution.answer, AddedAnswer) else execution.table


def _typed(columns: Iterable[str], rows: Iterable[Iterable[Any]]) -> object:
    return tuple(columns), [[(type(cell), cell) for cell in row] for row in rows]


class EngineContract:
    """What holds for every engine.

    A subclass states queries; a fixture `engine` of its module yields what `open_engine` yields.
    """

    answers: ClassVar[Mapping[str, tuple[Sequence[str], Sequence[tuple[Any, ...]]]]]
    """Queries with the columns and rows that they return. The types of cells count, and the order of rows."""
    failures: ClassVar[Mapping[str, Sequence[str]]]
    """Queries by the kind of their failure; several kinds that will do are separated by blanks: `timeout too_large`.

    With `answer` a query need not fail. Some queries have to be `invalid`, `unsafe`, `too_large` and late (`timeout`).
    """
    rows: ClassVar[str]
    """A query that returns `{count}` rows, up to 300."""
    state: ClassVar[str]
    """A query whose answer changes with the data. It is asked after each query that fails."""
    schema: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    """Some tables with their columns, if the engine lists tables."""
    ddl: ClassVar[Sequence[str]] = ()
    """Some lines of the statements that make the tables, if the engine lists them."""
    seconds: ClassVar[float] = 20.0
    """The time limit of queries that are not late."""
    late_seconds: ClassVar[float] = 0.3
    """The time limit of queries that are late."""
    max_rows: ClassVar[int] = 1_000

    def filled(self, query: str) -> str:
        """Return a query with the names of files and addresses in it; the query as it is, unless overridden."""
        return query

    def broken_sources(self, folder: Path) -> Iterable[tuple[Source, str]]:
        """Yield sources that cannot be read, with a text that the message of the error contains.

        `folder` is an empty folder for their files. There are no such sources by default.
        """
        return ()

    def _execute(self, engine: Engine, query: str, *, is_late: bool = False, max_rows: int | None = None) -> Execution:
        timeout = self.late_seconds if is_late else self.seconds
        return engine.execute(self.filled(query), timeout=timeout, max_rows=max_rows or self.max_rows)

    def _rows(self, engine: Engine, count: int, max_rows: int) -> Execution:
        return self._execute(engine, self.rows.replace("{count}", str(count)), max_rows=max_rows)

    def _described(self, execution: Execution) -> object:
        """Return an answer with the types of its cells, or the failure."""
        table = _table(execution)
        return execution.error if table is None else _typed(table.columns, table.rows)

    def test_queries_return_columns_rows_and_types(self, engine: Engine) -> None:
        """An answer has all columns, also those of one name, and the rows in their order."""
        wrong: dict[str, object] = {}
        for query, (columns, rows) in self.answers.items():
            execution = self._execute(engine, query)
            if self._described(execution) != _typed(columns, rows):
                wrong[query] = execution.error or execution.answer
            elif not execution.engine or execution.seconds <= 0:
                wrong[query] = execution

        assert not wrong, wrong
        assert self.answers

    def test_a_failure_names_its_kind_and_the_next_query_finds_the_same_data(self, engine: Engine) -> None:
        """A query that fails has no answer, one line that says why, and no effect on the source."""
        before, wrong = self._described(self._execute(engine, self.state)), {}
        for kinds, queries in self.failures.items():
            for query in queries:
                began = time.monotonic()
                try:
                    outcome: object = self._failure(engine, query, kinds.split())
                except SourceError as error:
                    outcome = error
                elapsed = time.monotonic() - began
                after = self._described(self._execute(engine, self.state))
                if outcome or elapsed > 3 * self.seconds or after != before:
                    wrong[query[:300]] = outcome, elapsed, after

        assert not wrong, wrong
        assert {kind for kinds in self.failures for kind in kinds.split()} >= KINDS

    def _failure(self, engine: Engine, query: str, kinds: Sequence[str]) -> object:
        """Return what is wrong with the outcome of a query that has to fail; None if it is right."""
        execution = self._execute(engine, query, is_late="timeout" in kinds)
        error = execution.error
        if error is None or execution.answer is not None:
            return None if "answer" in kinds and error is None else "an answer"
        is_line = error.message.isprintable() and 0 < len(error.message) <= MESSAGE_CHARACTERS
        return None if error.kind in kinds and is_line else error

    def test_a_text_without_a_query_fails(self, engine: Engine) -> None:
        """Blanks are an empty query; a text that is too long, or that has half a character, is invalid."""
        texts = {"": "empty", " \n\t": "empty", LONG_TEXT: "invalid", "\ud800": "invalid"}

        kinds = {}
        for text in texts:
            error = engine.execute(text, timeout=self.seconds, max_rows=1).error
            kinds[text] = error and error.kind

        assert kinds == texts, list(kinds.values())

    def test_one_row_more_than_max_rows_is_too_large(self, engine: Engine) -> None:
        """An answer is never cut: it has all rows, or it is a failure."""
        allowed, refused = self._rows(engine, 300, 300), self._rows(engine, 300, 299)

        table = _table(allowed)
        assert table is not None, allowed.error
        assert len(table.rows) == 300, len(table.rows)
        assert refused.answer is None, "an answer"
        assert refused.error, refused
        assert refused.error.kind == "too_large", refused.error
        assert refused.error.message.startswith("more than 299 rows"), refused.error

    def test_threads_get_their_own_answers(self, engine: Engine) -> None:
        """An engine may be used by several threads."""
        counts = [*range(1, 13)] * 2
        with ThreadPoolExecutor(THREADS) as threads:
            executions = list(threads.map(lambda count: self._rows(engine, count, 20), counts))

        lengths = [len(table.rows) for table in map(_table, executions) if table is not None]
        assert lengths == counts, executions

    def test_tables_are_listed(self, engine: Engine) -> None:
        """An engine that lists tables has them by their names in lower case."""
        if isinstance(engine, SupportsSchema):
            tables = engine.schema(timeout=self.seconds).tables
            assert {name: tables.get(name) for name in self.schema} == dict(self.schema), tables
        if isinstance(engine, SupportsDDL):
            ddl = engine.ddl(timeout=self.seconds) or ""
            assert {line.strip() for line in ddl.splitlines()} >= set(self.ddl), ddl

    def test_two_queries_are_timed_in_turn(self, engine: Engine) -> None:
        """An engine that times queries has a row of two durations for each iteration, and refuses what it does else."""
        if not isinstance(engine, SupportsTiming):
            return
        reading, unsafe = (self.filled(query) for query in (self.state, self.failures["unsafe"][0]))

        timed = engine.time(reading, reading, iterations=3, timeout=self.seconds)
        refused = engine.time(reading, unsafe, iterations=3, timeout=self.seconds)

        assert isinstance(timed.answer, Table), timed.error
        assert [len(row) for row in timed.answer.rows] == [2, 2, 2], timed.answer
        assert all(isinstance(seconds, float) and seconds > 0 for row in timed.answer.rows for seconds in row), (
            timed.answer
        )
        assert refused.error, "an answer"
        assert refused.error.kind == "unsafe", refused.error

    def test_a_source_that_cannot_be_read_is_at_fault(self, tmp_path: Path) -> None:
        """No query is to blame, whatever it is: `SourceError` says what is wrong with the source."""
        wrong = {}
        with Hosts() as hosts:
            for source, reason in self.broken_sources(tmp_path):
                try:
                    with open_engine(source, hosts) as engine:
                        wrong[reason] = repr(engine.execute(self.state, timeout=self.seconds, max_rows=1))
                except SourceError as error:
                    if reason not in str(error):
                        wrong[reason] = str(error)

        assert not wrong, wrong
