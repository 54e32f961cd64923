"""Child processes that run queries and can be killed at any moment: the parent's side.

Limits inside a process are not enough: every embedded engine has functions that no interrupt reaches. So a query runs
in a child, and a child that is late is killed; the next query starts a new one.
"""

from __future__ import annotations

import marshal
import signal
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, Self

from pytest_queryeval.core.errors import SourceError, capture_error
from pytest_queryeval.core.model import Execution, Failure
from pytest_queryeval.core.table import Row, Table
from pytest_queryeval.sandbox.child_process import START_SECONDS, Child, child_command
from pytest_queryeval.text.truncation import one_line

QUERY_CHARACTERS = 100_000
MESSAGE_CHARACTERS = 300
RESULT_BYTES = 256 * 2**20
MEMORY_BYTES = 2**30
MAX_COLUMNS = 100_000  # of a database
MAX_WAIT_SECONDS = 2_000_000.0  # poll() counts milliseconds in 31 bits
RETRY_SECONDS = 0.5
GRACE_SECONDS = 0.15  # the engine's own stop comes first: it is cheaper than a new process
_LOOP = Path(__file__).with_name("host_child.py")


class Question(NamedTuple):
    """A query, and the settings that its driver needs."""

    text: str
    settings: Mapping[str, Any]


class Host:
    """One child process, started on the first query and again after it died, shared by all sources of an engine.

    `driver` is the file that the child loads (its `Driver` is a `driver.Driver`), `packages` are what it imports
    beside the standard library; the child may use `memory` bytes of address space. With `file_bytes` it may write files
    of that size to a folder of its own, in which it starts and which is removed with it. It has `grace` seconds to stop
    a late query by itself. Safe to use from several threads, which then wait for each other.
    """

    def __init__(
        self,
        name: str,
        driver: Path,
        *,
        packages: tuple[str, ...] = (),
        memory: int = MEMORY_BYTES,
        file_bytes: int = 0,
        grace: float = GRACE_SECONDS,
    ) -> None:
        self.name = name
        self._driver = driver
        self._packages = packages
        self._memory = memory
        self._file_bytes = file_bytes
        self._grace = grace
        self._folder: TemporaryDirectory[str] | None = None
        self._lock = threading.Lock()
        self._child: Child | None = None
        self._is_closing = False

    @property
    def pid(self) -> int | None:
        """The id of the child process; None while there is none."""
        return self._child.pid if self._child and self._child.running else None

    def execute(self, settings: Mapping[str, Any], query: str, *, timeout: float, max_rows: int) -> Execution:
        """Run `query` for at most `timeout` seconds; `settings` are plain values, for the driver.

        Raises `SourceError` if the source is at fault, or if the child cannot be started.
        """
        if failure := text_refusal(query):
            return Execution(query=query, error=failure, engine=self.name)
        return replace(self._answer("run", settings, query, timeout, max_rows), query=query)

    def describe(self, settings: Mapping[str, Any], *, timeout: float) -> Execution:
        """List the columns of the source's tables, as `schema.DescribedColumn`s; raises `SourceError`."""
        return self._answer("describe", settings, None, timeout, MAX_COLUMNS)

    def ddl(self, settings: Mapping[str, Any], *, timeout: float) -> Execution:
        """List the statements that make the source's tables and views, one in a row; raises `SourceError`."""
        return self._answer("ddl", settings, None, timeout, MAX_COLUMNS)

    def time(self, gold: Question, predicted: Question, *, iterations: int, timeout: float) -> Execution:
        """Time two queries in turn, each run for at most `timeout` seconds, after a first pair that does not count.

        The answer has a row for each iteration: seconds of gold, seconds of predicted. Raises `SourceError`.
        """
        pair = [(dict(question.settings), question.text) for question in (gold, predicted)]
        payload = (*pair, iterations, min(timeout, MAX_WAIT_SECONDS))
        return self._answer("time", {}, payload, timeout, iterations, runs=2 * (iterations + 1))

    def compare(
        self, queries: tuple[str, str], databases: Sequence[dict[str, Any]], *, timeout: float, max_rows: int
    ) -> list[tuple[Execution, Execution] | SourceError | None]:
        """Run two queries in databases with these settings, at most `timeout` seconds in all.

        Return both executions for each database, None where their answers are the same, and the error of a database
        that cannot be read. The list ends where a query is late, or ends the child. Raises `SourceError`.
        """
        answer = self._answer("compare", {}, (queries, databases, max_rows), timeout, len(databases))
        if not isinstance(answer.answer, Table):
            return [(answer, answer)]

        def pair(outcomes: tuple[Any, ...]) -> tuple[Execution, Execution]:
            gold, predicted = (
                replace(self._execution([], outcome, 0.0, timeout), query=query)
                for query, outcome in zip(queries, outcomes, strict=True)
            )
            return gold, predicted

        return [
            None if outcomes[0] is None else capture_error(partial(pair, outcomes), SourceError)
            for outcomes in answer.answer.rows
        ]

    def _answer(
        self, action: str, settings: Mapping[str, Any], payload: object, timeout: float, max_rows: int, runs: int = 1
    ) -> Execution:
        seconds = min(timeout * runs, MAX_WAIT_SECONDS)
        request = (action, dict(settings), payload, seconds, max_rows, RESULT_BYTES)
        with self._lock:
            child = self._running_child()
            began = time.monotonic()
            rows, last = self._exchange(child, request, seconds)
            elapsed = time.monotonic() - began
            if last[0] == "died" and elapsed < RETRY_SECONDS and not self._is_closing:
                # It may have been killed before it read the query: a second child shows that.
                rows, last = self._exchange(self._running_child(), request, seconds - elapsed)
        return self._execution(rows, last, time.monotonic() - began, timeout)

    def close(self) -> None:
        """Kill the child; a later query would start another."""
        self._is_closing = True
        if child := self._child:
            child.signal()  # a thread that waits for it then releases the lock
        with self._lock:
            self._kill()
            self._is_closing = False

    def _running_child(self) -> Child:
        """Return the child, started where there is none or it has ended; raises `SourceError`."""
        if self._child and self._child.running:
            return self._child
        self._kill()
        child = None
        try:
            limits = map(str, (self._memory, self._file_bytes, self._grace))
            command = child_command(_LOOP, self._packages, str(self._driver), *limits)
            if self._file_bytes:
                self._folder = TemporaryDirectory(prefix="queryeval-", ignore_cleanup_errors=True)
            child = self._child = Child(command, folder=self._folder.name if self._folder else None)
            child.receive(time.monotonic() + START_SECONDS, at_most=64)
            return child
        except (OSError, EOFError) as error:
            reason = (child and child.stderr_tail()) or error
            raise SourceError(f"the {self.name} process does not start: {reason}") from error
        finally:
            if not (child and child.ready):
                self._kill()  # the folder, too

    def _exchange(self, child: Child, request: tuple[Any, ...], timeout: float) -> tuple[list[Row], tuple[Any, ...]]:
        finished = False
        try:
            child.send(request)
            reply = _reply(child, time.monotonic() + timeout + self._grace)
            finished = True
            return reply
        except TimeoutError:
            return [], ("failure", "timeout", "")
        except (EOFError, BrokenPipeError):
            return [], self._exit_error(child)
        finally:
            # Whatever cut the exchange short, Ctrl-C included: the rest of this answer must not meet the next query.
            if not finished:
                self._kill()

    def _exit_error(self, child: Child) -> tuple[Any, ...]:
        """Return the last message for a child that ended before it had sent one."""
        status = child.wait()
        if status >= 0:
            return "fault", f"the {self.name} process ended with status {status}: {child.stderr_tail()}"
        if status == -signal.SIGALRM:
            return "failure", "timeout", ""
        # A SIGKILL that is not ours comes from the system, which is out of memory.
        starved = status == -signal.SIGKILL or child.ran_out_of_memory()
        kind = "too_large" if starved else "invalid"
        reason = signal.strsignal(-status) or "unknown"
        return "died", kind, f"the {self.name} process died with signal {-status} ({reason.lower()})"

    def _execution(self, rows: list[Row], last: tuple[Any, ...], elapsed: float, timeout: float) -> Execution:
        if last == ("failure", "timeout", ""):
            last = (*last[:2], f"no answer within {min(timeout, MAX_WAIT_SECONDS):g} s")
        match last:
            case ("done", columns, more, seconds):
                rows += more
                table = Table(columns=tuple(columns), rows=rows)
                return Execution(query=None, answer=table, seconds=seconds, engine=self.name)
            case ("failure" | "died", kind, text):
                failure = Failure(kind=kind, message=one_line(text, MESSAGE_CHARACTERS))
                return Execution(query=None, error=failure, seconds=elapsed, engine=self.name)
            case (_, text):
                raise SourceError(one_line(text, MESSAGE_CHARACTERS))
            case _:
                raise SourceError(f"the {self.name} process sent something unknown")

    def _kill(self) -> None:
        if self._child:
            self._child.kill()
            self._child = None
        if self._folder:
            self._folder.cleanup()
            self._folder = None


class Hosts:
    """The hosts of one worker, by name; closed together."""

    def __init__(self) -> None:
        self._hosts: dict[str, Host] = {}

    def shared(self, host: Host) -> Host:
        """Return the first host that was passed under the name of this one."""
        return self._hosts.setdefault(host.name, host)

    def close(self) -> None:
        """Kill all child processes; may be called again."""
        for host in self._hosts.values():
            host.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _reply(child: Child, deadline: float) -> tuple[list[Row], tuple[Any, ...]]:
    """Return the streamed rows, and the message that ends them."""
    rows: list[Row] = []
    room = RESULT_BYTES
    while True:
        payload = child.receive(deadline, at_most=room)
        message = marshal.loads(payload)  # noqa: S302 - from our own child
        match message:
            case ("rows", more):
                rows += more
                room -= len(payload)
            case ("again",):
                rows, room = [], RESULT_BYTES
            case _:
                return rows, message


def text_refusal(query: str) -> Failure | None:
    """Return why no engine needs to run the text of a query; None if one does."""
    if not query.strip():
        return Failure(kind="empty", message="the query is empty")
    if len(query) > QUERY_CHARACTERS:
        length = f"{len(query):,} characters, more than {QUERY_CHARACTERS:,}"
        return Failure(kind="invalid", message=f"the query is too long: {length}")
    return None
