"""Child processes that run queries and can be killed at any moment: the side of the parent.

Limits inside a process are not enough: every embedded engine has functions that no interrupt reaches. So a query runs
in a child, and a child that is late is killed; the next query starts a new one. Untrusted texts are searched by regular
expressions in a child, too, since some take forever on some texts.
"""

from __future__ import annotations

import importlib.util
import marshal
import os
import re
import select
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from subprocess import DEVNULL, PIPE, Popen, run
from typing import Any, NamedTuple, Self

from pytest_queryeval.core.errors import SourceError, capture_error
from pytest_queryeval.core.files import ScratchFolder, remove_abandoned_scratch
from pytest_queryeval.core.model import Execution, Failure
from pytest_queryeval.core.table import Row, Table
from pytest_queryeval.text.formatting import one_line

START_SECONDS = 30.0
LENGTH_BYTES = 8
TAIL_BYTES = 2_000
LINE_CHARACTERS = 300
PROBLEM_CHARACTERS = 1_000
_START = Path(__file__).with_name("start_child.py")
_OUR_FOLDER = _START.parents[2]
QUERY_CHARACTERS = 100_000
MESSAGE_CHARACTERS = 300
RESULT_BYTES = 256 * 2**20
MEMORY_BYTES = 2**30
MAX_COLUMNS = 100_000  # of a database
MAX_WAIT_SECONDS = 2_000_000.0  # poll() counts milliseconds in 31 bits
RETRY_SECONDS = 0.5
GRACE_SECONDS = 0.15  # the engine's own stop comes first: it is cheaper than a new process
_LOOP = Path(__file__).with_name("host_child.py")
_DRIVER = Path(__file__).with_name("pattern_child.py")
PATTERN_SECONDS = 5.0
_SURROGATE = re.compile("[\ud800-\udfff]")


def child_command(program: Path, packages: Sequence[str], *arguments: str) -> list[str]:
    """Return the command line that runs a program of this package in an isolated interpreter.

    The program can import the standard library, `packages` and this package. `-I` keeps the user's folder and
    environment out of the imports. `-S` leaves out the site packages if `packages` is empty. `-B` is passed on if this
    process writes no bytecode. Raises `SourceError` if a package is not installed.
    """
    folders: dict[str, None] = {}
    for package in packages:  # -I may leave out the folder that one is imported from
        spec = importlib.util.find_spec(package)
        if spec is None or spec.origin is None:
            raise SourceError(f"needs the package '{package}', which is not installed")
        folders[str(Path(spec.origin).parents[1 if spec.submodule_search_locations else 0])] = None
    folders[str(_OUR_FOLDER)] = None
    options = ["-I", *["-S"] * (not packages), *["-B"] * sys.dont_write_bytecode]
    return [sys.executable, *options, str(_START), str(program), str(len(folders)), *folders, *arguments]


def run_program(name: str, program: Path, packages: Sequence[str], *arguments: str, folder: Path | None = None) -> None:
    """Run a program of this package in a child process, in `folder` if given, and wait until it ends.

    Raises `SourceError` if the program does not start. If its exit status is not 0, raises `SourceError` with its last
    line on stderr. Messages call the program `name`.
    """
    command = child_command(program, packages, *arguments)
    try:
        done = run(command, cwd=folder, stdin=DEVNULL, capture_output=True, check=False)  # noqa: S603 - our own
    except OSError as error:
        raise SourceError(f"{name} does not start: {error}") from error
    if done.returncode:
        problem = _last_line(done.stderr.decode("utf-8", "replace"), PROBLEM_CHARACTERS)
        raise SourceError(problem or f"{name} died with status {done.returncode}")


def _last_line(text: str, characters: int) -> str:
    """Return the last line that is not blank, cut to `characters`; empty if there is none."""
    return next((one_line(line, characters) for line in reversed(text.split("\n")) if line.strip()), "")


class Child:
    """A child process that starts at once, and exchanges messages with this process through pipes.

    A message is a marshalled tuple behind its length in eight bytes. The process starts in `folder`, if given. `ready`
    becomes true with its first message.
    """

    def __init__(self, command: list[str], *, folder: Path | None = None) -> None:
        self.ready = False
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 - closed by kill()
        try:
            # In a session of its own, no Ctrl-C of the terminal reaches it: `core/process.py`.
            self._process = Popen(  # noqa: S603 - our own interpreter and files
                command, stdin=PIPE, stdout=PIPE, stderr=self._stderr, bufsize=0, start_new_session=True, cwd=folder
            )
        except BaseException:  # an interrupt, too
            self._stderr.close()
            raise
        assert self._process.stdin
        assert self._process.stdout
        self._requests, self._replies = self._process.stdin.fileno(), self._process.stdout.fileno()
        self._poll = select.poll()
        self._poll.register(self._replies, select.POLLIN)

    @property
    def pid(self) -> int:
        """The id of the process."""
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether the process has not ended yet."""
        return self._process.poll() is None

    def send(self, message: tuple[Any, ...]) -> None:
        """Write a message to the child's stdin. Raises BrokenPipeError if the child has closed it."""
        payload = marshal.dumps(message)
        view = memoryview(len(payload).to_bytes(LENGTH_BYTES, "big") + payload)
        while view:
            view = view[os.write(self._requests, view) :]

    def receive(self, deadline: float, *, at_most: int) -> bytearray:
        """Wait for a message and return it, still marshalled.

        Raises TimeoutError at `deadline` (monotonic clock), EOFError if the child closes its pipe, and `SourceError` if
        the message has more than `at_most` bytes.
        """
        size = int.from_bytes(self._read(LENGTH_BYTES, deadline), "big")
        if size > at_most:
            raise SourceError(f"a message of {size:,} bytes, of which {at_most:,} were allowed")
        payload = self._read(size, deadline)
        self.ready = True
        return payload

    def _read(self, size: int, deadline: float) -> bytearray:
        data = bytearray(size)
        unread = memoryview(data)
        while unread:
            if not self._poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
                raise TimeoutError("no sign of life in time")
            count = os.readv(self._replies, [unread])
            if not count:
                raise EOFError("it closed its pipe")
            unread = unread[count:]
        return data

    def wait(self) -> int:
        """Wait until a child whose pipe is closed ends, and return its exit status; negative for a signal."""
        return self._process.wait(START_SECONDS)

    def ran_out_of_memory(self) -> bool:
        """Return whether the end of the child's stderr says that it had no memory left."""
        return any(words in self._tail() for words in ("memory allocation", "bad_alloc", "annot allocate memory"))

    def _tail(self) -> str:
        size = self._stderr.seek(0, os.SEEK_END)
        self._stderr.seek(max(0, size - TAIL_BYTES))
        return self._stderr.read().decode("utf-8", "replace")

    def stderr_tail(self) -> str:
        """Return the last line that is not blank of the child's stderr, shortened; empty if there is none."""
        return _last_line(self._tail(), LINE_CHARACTERS)

    def send_kill_signal(self) -> None:
        """Send SIGKILL to the child and the processes that it started; does nothing if the child has ended.

        Any thread may call it, also while another thread waits for an answer.
        """
        if self._process.poll() is None:  # or its id may be that of another group
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)

    def kill(self) -> None:
        """Kill the child and the processes that it started, wait for its end and close the pipes. Idempotent."""
        self.send_kill_signal()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout, self._stderr):
            if pipe:
                pipe.close()


class QueryRequest(NamedTuple):
    """The text of a query, and the settings that its driver needs for it."""

    text: str
    settings: Mapping[str, Any]


class Host:
    """Runs queries in one child process, which starts with the first query and again after it died or was killed.

    All sources of an engine share a host. `driver` is the file that the child loads (its `Driver` is a
    `driver.Driver`). `packages` are imported by the child next to the standard library. The child may use `memory`
    bytes of address space.

    If `file_bytes` is not 0, the child may write files of that size to a folder of its own. It starts in that folder,
    which is removed with it. It has `grace` seconds to stop a late query by itself; then it is killed.

    Several threads may use a host: they wait for each other.
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
        self._folder: ScratchFolder | None = None
        self._lock = threading.Lock()
        self._child: Child | None = None
        self._is_closing = False

    @property
    def pid(self) -> int | None:
        """The id of the child process; None while there is none."""
        return self._child.pid if self._child and self._child.running else None

    def execute(self, settings: Mapping[str, Any], query: str, *, timeout: float, max_rows: int) -> Execution:
        """Run `query` for at most `timeout` seconds, and return its answer or its failure.

        `settings` are plain values for the driver. An empty, too long or undecodable query fails without a child. A
        timeout and an answer of more than `max_rows` rows are failures too. Raises `SourceError` if the source is at
        fault, or if the child cannot be started.
        """
        if failure := text_refusal(query):
            return Execution(query=query, error=failure, engine=self.name)
        return replace(self._answer("run", settings, query, timeout, max_rows), query=query)

    def reads(self, settings: Mapping[str, Any], query: str, *, timeout: float) -> Execution:
        """Return an execution whose rows are the columns that `query` reads: table, column and view.

        Raises `SourceError`.
        """
        return self._answer("reads", settings, query, timeout, MAX_COLUMNS)

    def describe(self, settings: Mapping[str, Any], *, timeout: float) -> Execution:
        """Return an execution whose rows are the columns of the source, as the fields of `schema.DescribedColumn`.

        Raises `SourceError`.
        """
        return self._answer("describe", settings, None, timeout, MAX_COLUMNS)

    def ddl(self, settings: Mapping[str, Any], *, timeout: float) -> Execution:
        """Return an execution whose rows are the statements that create tables and views; raises `SourceError`."""
        return self._answer("ddl", settings, None, timeout, MAX_COLUMNS)

    def time(self, gold: QueryRequest, predicted: QueryRequest, *, iterations: int, timeout: float) -> Execution:
        """Time two queries in turn, after a first pair of runs that does not count.

        Each run may take `timeout` seconds. The answer has a row for each iteration: the seconds of gold, the seconds
        of predicted. Raises `SourceError`.
        """
        pair = [(dict(question.settings), question.text) for question in (gold, predicted)]
        payload = (*pair, iterations, min(timeout, MAX_WAIT_SECONDS))
        return self._answer("time", {}, payload, timeout, iterations, runs=2 * (iterations + 1))

    def compare(
        self, queries: tuple[str, str], databases: Sequence[dict[str, Any]], *, timeout: float, max_rows: int
    ) -> list[tuple[Execution, Execution] | SourceError | None]:
        """Run two queries in each database, given by its settings, within `timeout` seconds in all.

        Return for each database:
        - None if both answers are the same,
        - otherwise both executions,
        - or the `SourceError` of a database that cannot be read.

        The list ends with the database in which a query is late. If the child itself fails, the list is one pair of
        that failure. Raises `SourceError` if the child cannot be started.
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
        """Kill the child, even while another thread waits for its answer. A later query starts a new child."""
        self._is_closing = True
        if child := self._child:
            child.send_kill_signal()  # a thread that waits for it then releases the lock
        with self._lock:
            self._kill()
            self._is_closing = False

    def _running_child(self) -> Child:
        """Return the running child; start a new child if there is none. Raises `SourceError` if it does not start."""
        if self._child and self._child.running:
            return self._child
        self._kill()
        child = None
        try:
            limits = map(str, (self._memory, self._file_bytes, self._grace))
            command = child_command(_LOOP, self._packages, str(self._driver), *limits)
            if self._file_bytes:
                self._folder = ScratchFolder()
            child = self._child = Child(command, folder=self._folder.path if self._folder else None)
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
        """Return the last message in the name of a child that ended before it had sent its own.

        It is a fault for an exit status, a timeout for its own alarm, and otherwise "died" with the kind of failure.
        """
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
            self._folder.remove()
            self._folder = None


class Hosts:
    """The hosts of one worker, by name, which are closed together. Creating it removes abandoned scratch folders."""

    def __init__(self) -> None:
        remove_abandoned_scratch()
        self._hosts: dict[str, Host] = {}

    def shared(self, host: Host) -> Host:
        """Return the first host that was passed with this host's name, so that all callers share one child process."""
        return self._hosts.setdefault(host.name, host)

    def close(self) -> None:
        """Kill all child processes. Idempotent."""
        for host in self._hosts.values():
            host.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _reply(child: Child, deadline: float) -> tuple[list[Row], tuple[Any, ...]]:
    """Collect the rows that a child streams, and return them with the message that ends them.

    The message "again" discards the rows received so far. Raises like `Child.receive`.
    """
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
    """Return the failure of a query text that no engine needs to see; None if the text can be run.

    Refused are blank texts, texts over QUERY_CHARACTERS characters, and texts with half of a surrogate pair.
    """
    if not query.strip():
        return Failure(kind="empty", message="the query is empty")
    if len(query) > QUERY_CHARACTERS:
        length = f"{len(query):,} characters, more than {QUERY_CHARACTERS:,}"
        return Failure(kind="invalid", message=f"the query is too long: {length}")
    if _SURROGATE.search(query):
        return Failure(kind="invalid", message="the query contains half of a surrogate pair, which is not a character")
    return None


def is_match(pattern: str, text: str, hosts: Hosts) -> bool | Failure:
    """Return whether a pattern matches anywhere in the first QUERY_CHARACTERS characters of a text.

    A child process does the search. If it takes over PATTERN_SECONDS, a failure is returned. A blank text never
    matches. Raises `SourceError` if no child process can be started.
    """
    if not (head := text[:QUERY_CHARACTERS]).strip():
        return False
    host = hosts.shared(Host("pattern", _DRIVER))
    execution = host.execute({"pattern": pattern}, head, timeout=PATTERN_SECONDS, max_rows=1)
    return execution.error or (execution.table is not None and bool(execution.table.rows))


def unmatched_texts(pattern: re.Pattern[str], texts: Collection[str], hosts: Hosts) -> Collection[str] | Failure:
    """Return the texts that a pattern does not match as a whole.

    A child process does the search. If it takes over PATTERN_SECONDS, a failure is returned. Raises `SourceError` if no
    child process can be started.
    """
    host = hosts.shared(Host("pattern", _DRIVER))
    settings = {"pattern": pattern.pattern, "flags": pattern.flags, "texts": [*texts]}
    execution = host.execute(settings, "texts", timeout=PATTERN_SECONDS, max_rows=len(texts))
    if execution.table is None:
        return execution.error or Failure(kind="invalid", message="no answer")
    return {str(text) for (text,) in execution.table.rows}
