"""Child processes that run queries and can be killed at any moment: the parent's side.

Limits inside a process do not hold: every embedded engine has functions that no interrupt reaches. So a query runs in a
child, and a child that is late is killed; the next query starts a new one.
"""

from __future__ import annotations

import marshal
import os
import select
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any, Self

from pytest_queryeval.errors import SourceError
from pytest_queryeval.model import Execution, Failure
from pytest_queryeval.plain import one_line
from pytest_queryeval.table import Row, Table

QUERY_CHARACTERS = 100_000
MESSAGE_CHARACTERS = 300
RESULT_BYTES = 256 * 2**20
MEMORY_BYTES = 2**30
START_SECONDS = 30.0
LONGEST_WAIT = 2_000_000.0  # seconds; the system counts milliseconds in 31 bits
GRACE_SECONDS = 0.15  # the engine's own stop comes first: it is cheaper than a new process
_CHILD = Path(__file__).with_name("host_child.py")
_HEADER_BYTES = 8
_TAIL_BYTES = 2_000


class Host:
    """One child process, started on the first query and again after it died, shared by all sources of an engine.

    `driver` is the file that the child loads (its contract stands in `host_child.py`); the child may use `memory` bytes
    of address space. Safe to use from several threads, which then wait for each other.
    """

    def __init__(self, name: str, driver: Path, *, memory: int = MEMORY_BYTES) -> None:
        self.name = name
        self._driver = driver
        self._memory = memory
        self._lock = threading.Lock()
        self._child: _Child | None = None

    @property
    def pid(self) -> int | None:
        """The id of the child process; None while there is none."""
        return self._child.pid if self._child else None

    def execute(self, settings: Mapping[str, Any], query: str, *, timeout: float, max_rows: int) -> Execution:
        """Run `query` for at most `timeout` seconds; `settings`, plain values, tell the driver where.

        Raises `SourceError` where the source is at fault, or where the child cannot be started.
        """
        if failure := _refusal(query):
            return Execution(query=query, error=failure, engine=self.name)
        timeout = min(timeout, LONGEST_WAIT)
        request = (dict(settings), query, timeout, max_rows, RESULT_BYTES)
        with self._lock:
            child = self._started()
            began = time.monotonic()
            rows, last = self._exchange(child, request, timeout)
            if last[0] == "died":  # perhaps it was killed before it saw the query: the end of a second child tells
                rows, last = self._exchange(self._started(), request, timeout)
        if last[:2] == ("failure", "timeout"):
            last = (*last[:2], f"no answer within {timeout:g} s")
        return self._execution(query, rows, last, time.monotonic() - began)

    def close(self) -> None:
        """Kill the child; a later query would start another."""
        with self._lock:
            self._kill()

    def _started(self) -> _Child:
        if self._child and not self._child.running:
            self._kill()
        if not self._child:
            self._start()
        assert self._child
        return self._child

    def _start(self) -> None:
        child = None
        try:
            child = self._child = _Child(self._driver, self._memory)
            child.receive(time.monotonic() + START_SECONDS, at_most=64)
        except (OSError, EOFError) as error:
            reason = (child and child.last_words()) or error
            raise SourceError(f"the {self.name} process does not start: {reason}") from error
        finally:
            if child and not child.ready:
                self._kill()

    def _exchange(self, child: _Child, request: tuple[Any, ...], timeout: float) -> tuple[list[Row], tuple[Any, ...]]:
        finished = False
        try:
            child.send(request)
            reply = _reply(child, time.monotonic() + timeout + GRACE_SECONDS)
            finished = True
            return reply
        except TimeoutError:
            return [], ("failure", "timeout", "")
        except (EOFError, BrokenPipeError):
            return [], self._obituary(child)
        finally:
            # Whatever cut the exchange short, Ctrl-C included: the rest of this answer must not meet the next query.
            if not finished:
                self._kill()

    def _obituary(self, child: _Child) -> tuple[Any, ...]:
        status = child.wait()
        if status >= 0:
            return "fault", f"the {self.name} process ended with status {status}: {child.last_words()}"
        if status == -signal.SIGALRM:
            return "failure", "timeout", ""
        # A SIGKILL that is not ours comes from the system, which is out of memory.
        kind = "too_large" if status == -signal.SIGKILL else "invalid"
        reason = signal.strsignal(-status) or "unknown"
        return "died", kind, f"the {self.name} process died with signal {-status} ({reason.lower()})"

    def _execution(self, query: str, rows: list[Row], last: tuple[Any, ...], elapsed: float) -> Execution:
        match last:
            case ("done", columns, more, seconds):
                rows += more
                table = Table(columns=tuple(columns), rows=rows)
                return Execution(query=query, answer=table, seconds=seconds, engine=self.name)
            case ("failure" | "died", kind, text):
                failure = Failure(kind=kind, message=_brief(text))
                return Execution(query=query, error=failure, seconds=elapsed, engine=self.name)
            case (_, text):
                raise SourceError(_brief(text))
            case _:
                raise SourceError(f"the {self.name} process sent something unknown")

    def _kill(self) -> None:
        if self._child:
            self._child.kill()
            self._child = None


class Hosts:
    """The hosts of one worker, by name; made on demand, closed together."""

    def __init__(self) -> None:
        self._hosts: dict[str, Host] = {}

    def get(self, name: str, driver: Path, *, memory: int = MEMORY_BYTES) -> Host:
        """Return the host called `name`, made with `driver` and `memory` bytes on first use."""
        if name not in self._hosts:
            self._hosts[name] = Host(name, driver, memory=memory)
        return self._hosts[name]

    def close(self) -> None:
        """Kill all child processes; may be called again."""
        for host in self._hosts.values():
            host.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Child:
    """The process and its pipes. Messages are marshalled tuples behind their length in eight bytes."""

    def __init__(self, driver: Path, memory: int) -> None:
        self.ready = False
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 - closed by kill()
        try:
            self._process = self._popen(driver, memory)
        except OSError:
            self._stderr.close()
            raise
        assert self._process.stdin
        assert self._process.stdout
        self._requests, self._replies = self._process.stdin.fileno(), self._process.stdout.fileno()
        self._poll = select.poll()
        self._poll.register(self._replies, select.POLLIN)

    def _popen(self, driver: Path, memory: int) -> Popen[bytes]:
        # -I keeps the user's folder and environment out of the imports, -B leaves no files; a session of its own keeps
        # the terminal's Ctrl-C with the parent, which then kills the child.
        command = [sys.executable, "-I", "-B", str(_CHILD), str(driver), str(memory)]
        return Popen(  # noqa: S603 - our own interpreter and files
            command, stdin=PIPE, stdout=PIPE, stderr=self._stderr, bufsize=0, start_new_session=True
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    def send(self, message: tuple[Any, ...]) -> None:
        payload = marshal.dumps(message)
        view = memoryview(len(payload).to_bytes(_HEADER_BYTES, "big") + payload)
        while view:
            view = view[os.write(self._requests, view) :]

    def receive(self, deadline: float, *, at_most: int) -> bytearray:
        """Wait for a message; raises TimeoutError at `deadline` (monotonic clock), EOFError when the child is gone."""
        size = int.from_bytes(self._read(_HEADER_BYTES, deadline), "big")
        if size > at_most:
            raise SourceError(f"a message of {size:,} bytes, of which {at_most:,} were allowed")
        payload = self._read(size, deadline)
        self.ready = True
        return payload

    def _read(self, size: int, deadline: float) -> bytearray:
        data = bytearray(size)
        rest = memoryview(data)
        while rest:
            if not self._poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
                raise TimeoutError("no sign of life in time")
            count = os.readv(self._replies, [rest])
            if not count:
                raise EOFError("it closed its pipe")
            rest = rest[count:]
        return data

    def wait(self) -> int:
        """Return the exit status of a child whose pipe is closed; negative for a signal."""
        return self._process.wait(START_SECONDS)

    def last_words(self) -> str:
        """Read the last line that the child wrote to its stderr."""
        size = self._stderr.seek(0, os.SEEK_END)
        self._stderr.seek(max(0, size - _TAIL_BYTES))
        lines = self._stderr.read().decode("utf-8", "replace").split("\n")
        return next((_brief(line) for line in reversed(lines) if line.strip()), "")

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout, self._stderr):
            if pipe:
                pipe.close()


def _reply(child: _Child, deadline: float) -> tuple[list[Row], tuple[Any, ...]]:
    """Collect the streamed rows, and the message that ends them."""
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


def _refusal(query: str) -> Failure | None:
    """Find what needs no engine to be seen."""
    if not query.strip():
        return Failure(kind="empty", message="the query is empty")
    if len(query) > QUERY_CHARACTERS:
        length = f"{len(query):,} characters, more than {QUERY_CHARACTERS:,}"
        return Failure(kind="invalid", message=f"the query is too long: {length}")
    return None


def _brief(text: str) -> str:
    return one_line(text[: 4 * MESSAGE_CHARACTERS], MESSAGE_CHARACTERS)
