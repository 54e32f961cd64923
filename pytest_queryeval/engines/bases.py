"""What engines share: databases in one file or in the memory of a child, and live services.

Where a query gets no answer from a service, a trivial query shows whether the service or the query is at fault. A query
may occupy a service beyond its own limit, so that the trivial one and all others wait behind it. Then the service gets
time to recover, at most PATIENCE_SECONDS in all for as long as the source is open.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Self

from pytest_queryeval.core.db_schema import Schema
from pytest_queryeval.core.errors import SourceError, UnresponsiveSourceError
from pytest_queryeval.core.files import ScratchFolder
from pytest_queryeval.core.model import Execution, Failure, Source
from pytest_queryeval.core.table import Row
from pytest_queryeval.engines import Engine, Settings, ddl_text, described_schema, prefix_source_errors, with_cells
from pytest_queryeval.engines.settings import absolute
from pytest_queryeval.sandbox.host import Host, QueryRequest, text_refusal
from pytest_queryeval.text.redaction import register_secrets

_NEAR = re.compile(r'near "(\w+)"')
_STATEMENTS = frozenset({"ALTER", "CREATE", "DELETE", "DROP", "INSERT", "REPLACE", "SELECT", "UPDATE", "WITH"})
GRACE_SECONDS = 1.7  # after a query's time limit, until the probe must be answered
START_SECONDS = 0.8  # of which a new child takes this much
MIN_SECONDS = 0.6  # for the probe in any case
FIRST_PAUSE_SECONDS = 1.0  # before the probe is sent again; each further pause is twice as long
PATIENCE_SECONDS = 60.0
LATE = 0.9  # a timeout after more than this share of the query's limit was caused by the limit
PROBE_ROWS = 1_000


def file_settings(_: Source, engine: Engine) -> Settings:
    """Return the settings of requests for a database in a file, given its engine, which is a `DatabaseFile`."""
    assert isinstance(engine, DatabaseFile)
    return {"path": str(engine.path)}


def next_statement(problem: str) -> str:
    """Return the word near a syntax error if it begins a statement, so that a `;` is missing before it; else empty."""
    near = _NEAR.search(problem)
    return near[1] if near and near[1].upper() in _STATEMENTS else ""


def script_remedy(problem: str) -> str:
    """Return the end of the message on a script that fails: where a `;` is missing; empty if the fix is not known."""
    word = next_statement(problem)
    return f": end the statement before {word} with `;`" if word else ""


class DatabaseFile:
    """The engine of a database in the file `path`, whose queries run in a child process of `host`.

    `folder` is the temporary folder of the file if the database was built for this run; `close` removes it.
    """

    def __init__(self, name: str, path: Path, host: Host, *, folder: ScratchFolder | None = None) -> None:
        self._name = name
        self.path = path
        self._settings = {"path": str(path)}
        self._host = host
        self._folder = folder

    @classmethod
    def build(cls, name: str, host: Host, write: Callable[[Path], None]) -> Self:
        """Return the engine of a new database that `write` creates at the path that it is given; `close` removes it.

        Raise `SourceError` if there is no folder for the file, and any error of `write`.
        """
        try:
            folder = ScratchFolder()
        except OSError as error:
            problem = f"{error.strerror or error}: name another folder of temporary files with TMPDIR"
            raise SourceError(f"source '{name}': no folder for its database: {problem}") from error
        try:
            path = folder.path.resolve() / "built.db"
            write(path)
        except BaseException:
            folder.remove()
            raise
        return cls(name, path, host, folder=folder)

    def execute(self, query: str, *, timeout: float, max_rows: int) -> Execution:
        """Run `query` for at most `timeout` seconds, as `Engine.execute` does.

        Raise `SourceError` if the file cannot be read.
        """
        with self._source_errors():
            return self._host.execute(self._settings, query, timeout=timeout, max_rows=max_rows)

    def schema(self, *, timeout: float) -> Schema:
        """Return the tables, columns and foreign keys; raise `SourceError` if the file cannot be read."""
        with self._source_errors():
            return described_schema(self._host.describe(self._settings, timeout=timeout))

    def ddl(self, *, timeout: float) -> str:
        """Return the statements that create the tables and views; raise `SourceError` if the file cannot be read."""
        with self._source_errors():
            return ddl_text(self._host.ddl(self._settings, timeout=timeout))

    def time(self, gold: str, predicted: str, *, iterations: int, timeout: float) -> Execution:
        """Time both queries, as `SupportsTiming.time` does; raise `SourceError` if the file cannot be read."""
        with self._source_errors():
            pair = [QueryRequest(query, self._settings) for query in (gold, predicted)]
            return self._host.time(*pair, iterations=iterations, timeout=timeout)

    def close(self) -> None:
        """Remove the database if it was built for this run. Idempotent."""
        if self._folder:
            self._folder.remove()

    def _source_errors(self) -> AbstractContextManager[None]:
        return prefix_source_errors(f"source '{self._name}': {self.path}")


class DatabaseInMemory:
    """The engine of a database in the memory of a child process, built from a script and from rows by table.

    The child builds it again if another database has replaced it.
    """

    def __init__(self, script: str, host: Host, rows: Mapping[str, Sequence[Row]] | None = None) -> None:
        self._settings = {"script": script} if rows is None else {"script": script, "rows": rows}
        self._host = host

    def execute(self, query: str, *, timeout: float, max_rows: int) -> Execution:
        """Run `query` for at most `timeout` seconds, as `Engine.execute` does.

        Raise `SourceError` if the script fails.
        """
        return self._host.execute(self._settings, query, timeout=timeout, max_rows=max_rows)

    def close(self) -> None:
        """Do nothing: the child process frees the database for the next one."""


def connection_settings(source: Source) -> dict[str, Any]:
    """Return `url`, `auth`, `headers` and `verify` of a service as plain values, and register their secrets.

    A `verify` that names a file becomes an absolute path. Raise KeyError without a `url`.
    """
    settings = source.settings
    register_secrets(settings)
    verify = settings.get("verify", True)
    return {
        "url": settings["url"],
        "auth": settings.get("auth"),
        "headers": {name: str(text) for name, text in settings.get("headers", {}).items()},
        "verify": str(absolute(source.folder, verify)) if isinstance(verify, str) else verify,
    }


class RemoteEngine:
    """The engine of a service, to which a child process of `host` sends queries with `settings`.

    After a failure of a kind in `ambiguous_failures`, the query `probe` shows whether the service is at fault. After a
    failure of a kind in `retryable_failures`, such as a lost connection, the query is sent once more if the service
    answers the probe at once; the second outcome counts. If the service needs time to recover, the query may have
    brought it down and is not repeated.
    """

    def __init__(
        self,
        name: str,
        host: Host,
        settings: Mapping[str, Any],
        probe: QueryRequest,
        *,
        ambiguous_failures: Collection[str],
        retryable_failures: Collection[str] = (),
    ) -> None:
        self._name = name
        self._host = host
        self._settings = settings
        self._probe = probe
        self._ambiguous_failures = ambiguous_failures
        self._retryable_failures = retryable_failures
        self._patience = PATIENCE_SECONDS

    def execute(self, query: str, *, timeout: float, max_rows: int) -> Execution:
        """Send `query` and wait for the whole answer for at most `timeout` seconds.

        A failure counts as the query's only if the service then answers a trivial query. Raise `SourceError` otherwise,
        and for any other lack of an answer.
        """
        if failure := text_refusal(query) or self._refusal(query):
            return Execution(query=query, error=failure, engine=self._host.name)
        self._start()
        return with_cells(self._send(self._question(query, max_rows), timeout=timeout, max_rows=max_rows))

    def time(self, gold: str, predicted: str, *, iterations: int, timeout: float) -> Execution:
        """Time both queries, as `SupportsTiming.time` does, including the round trip.

        Raise `SourceError` if the service does not answer.
        """
        for query in (gold, predicted):
            if failure := text_refusal(query) or self._refusal(query):
                return Execution(query=None, error=failure, engine=self._host.name)
        self._start()
        pair = [self._question(query) for query in (gold, predicted)]
        with self._source_errors():
            return self._host.time(*pair, iterations=iterations, timeout=timeout)

    def close(self) -> None:
        """Do nothing: connections end with the child process of the host."""

    def _refusal(self, query: str) -> Failure | None:
        """Return why a query is not sent to the service; None to send it. Here None; subclasses may refuse queries."""

    def _start(self) -> None:
        """Prepare the service before a query, outside of the query's time; raise `SourceError`. Does nothing here."""

    def _question(self, query: str, max_rows: int | None = None) -> QueryRequest:
        """Return the request for a query; without `max_rows`, the query is to be timed."""
        return QueryRequest(query, self._settings)

    def _send(self, question: QueryRequest, *, timeout: float, max_rows: int) -> Execution:
        """Send a request for at most `timeout` seconds; a failure is the query's only if the service answers the probe.

        Raise `UnresponsiveSourceError` if the query ran past its limit and the service then does not recover, and
        `SourceError` for any other lack of an answer.
        """
        with self._source_errors():
            execution, may_repeat = self._execute_once(question, timeout, max_rows)
            return self._execute_once(question, timeout, max_rows)[0] if may_repeat else execution

    def _execute_once(self, question: QueryRequest, timeout: float, max_rows: int) -> tuple[Execution, bool]:
        """Send a request once, and return its execution and whether to send it again.

        Raise `SourceError` if the service is at fault.
        """
        began = time.monotonic()
        execution = self._host.execute(question.settings, question.text, timeout=timeout, max_rows=max_rows)
        failure = execution.error
        if failure is None or failure.kind not in self._ambiguous_failures:
            return execution, False
        answers_at_once = self._require_service(failure, timeout, time.monotonic() - began)
        return execution, answers_at_once and failure.kind in self._retryable_failures

    def _source_errors(self) -> AbstractContextManager[None]:
        return prefix_source_errors(f"source '{self._name}'")

    def _require_service(self, failure: Failure, timeout: float, elapsed: float) -> bool:
        """Return whether the service answers the first probe after a query that failed in `elapsed` seconds.

        If it may recover, the probe is repeated. Raise `SourceError` if the service answers no probe.
        """
        start_seconds = START_SECONDS if self._host.pid is None else 0.0
        problem = self._probe_problem(timeout + GRACE_SECONDS - start_seconds - elapsed)
        is_late = failure.kind == "timeout" and elapsed > LATE * timeout
        may_recover = is_late or failure.kind in self._retryable_failures
        answers_at_once = problem is None
        if problem and may_recover:
            problem = self._problem_after_waiting(problem)
        if problem:
            unanswered = f"{failure.message}; nor does it answer {self._probe.text}"
            if may_recover:
                raise UnresponsiveSourceError(f"{unanswered}, asked for {PATIENCE_SECONDS:g} s in all: {problem}")
            raise SourceError(f"{unanswered}: {problem}")
        return answers_at_once

    def _problem_after_waiting(self, problem: str | None) -> str | None:
        """Repeat the probe with growing pauses while there is patience.

        Return the last problem, None once it is answered.
        """
        pause = FIRST_PAUSE_SECONDS
        while problem and self._patience > 0:
            began = time.monotonic()
            time.sleep(min(pause, self._patience))
            pause *= 2
            problem = self._probe_problem(GRACE_SECONDS)
            self._patience -= time.monotonic() - began
        return problem

    def _probe_problem(self, seconds: float) -> str | None:
        """Return why the service does not answer the probe within `seconds`; None if it does."""
        settings, seconds = self._probe.settings, max(seconds, MIN_SECONDS)
        try:
            execution = self._host.execute(settings, self._probe.text, timeout=seconds, max_rows=PROBE_ROWS)
        except SourceError as error:
            return str(error)
        return execution.error.message if execution.error else None


class RemoteDatabase(RemoteEngine):
    """The engine of a service that can list its tables."""

    def schema(self, *, timeout: float) -> Schema:
        """Return tables, columns and foreign keys of the default schema.

        Raise `SourceError` if the service does not answer.
        """
        self._start()
        with self._source_errors():
            return described_schema(self._host.describe(self._settings, timeout=timeout))

    def ddl(self, *, timeout: float) -> str:
        """Return statements that create the tables and views of the default schema; raise `SourceError` on failure."""
        self._start()
        with self._source_errors():
            return ddl_text(self._host.ddl(self._settings, timeout=timeout))
