"""Child processes of our own interpreter: how they are started, their pipes, and what they write to stderr."""

from __future__ import annotations

import importlib.util
import marshal
import os
import select
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from signal import SIGKILL
from subprocess import DEVNULL, PIPE, Popen, run
from typing import Any

from pytest_queryeval.core.errors import SourceError
from pytest_queryeval.text.truncation import one_line

START_SECONDS = 30.0
HEADER_BYTES = 8
TAIL_BYTES = 2_000
LINE_CHARACTERS = 300
PROBLEM_CHARACTERS = 1_000
_START = Path(__file__).with_name("start_child.py")
_OUR_FOLDER = _START.parents[2]


def child_command(program: Path, packages: Sequence[str], *arguments: str) -> list[str]:
    """Return the command that runs a program of ours, which imports the standard library, `packages` and our own.

    -I keeps the user's folder and environment out of the imports, -B leaves no files. Raises `SourceError` if a
    package is not installed.
    """
    folders: dict[str, None] = {}
    for package in packages:  # -I may leave out the folder that one is imported from
        spec = importlib.util.find_spec(package)
        if spec is None or spec.origin is None:
            raise SourceError(f"needs the package '{package}', which is not installed")
        folders[str(Path(spec.origin).parents[1 if spec.submodule_search_locations else 0])] = None
    folders[str(_OUR_FOLDER)] = None
    return [sys.executable, "-I", "-B", str(_START), str(program), str(len(folders)), *folders, *arguments]


def run_program(name: str, program: Path, packages: Sequence[str], *arguments: str, folder: Path | None = None) -> None:
    """Run a program of ours, in `folder` if given, and wait until it ends; messages call it `name`.

    Raises `SourceError` if it does not start, and with its last line on stderr where its exit status is not 0.
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
    """Return the last line that is not blank, cut to a number of characters; empty if there is none."""
    return next((one_line(line, characters) for line in reversed(text.split("\n")) if line.strip()), "")


class Child:
    """The process and its pipes. Messages are marshalled tuples behind their length in eight bytes.

    It starts in `folder`, if given, and is killed with the processes that it has started.
    """

    def __init__(self, command: list[str], *, folder: str | None = None) -> None:
        self.ready = False
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 - closed by kill()
        try:
            # In a session of its own, no Ctrl-C of the terminal reaches it: `core/interruption.py`.
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
        """Whether it has not ended yet."""
        return self._process.poll() is None

    def send(self, message: tuple[Any, ...]) -> None:
        """Write a message to the child's stdin; raises BrokenPipeError when the child is gone."""
        payload = marshal.dumps(message)
        view = memoryview(len(payload).to_bytes(HEADER_BYTES, "big") + payload)
        while view:
            view = view[os.write(self._requests, view) :]

    def receive(self, deadline: float, *, at_most: int) -> bytearray:
        """Wait for a message; raises TimeoutError at `deadline` (monotonic clock), EOFError when the child is gone."""
        size = int.from_bytes(self._read(HEADER_BYTES, deadline), "big")
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
        """Return the exit status of a child whose pipe is closed; negative for a signal."""
        return self._process.wait(START_SECONDS)

    def ran_out_of_memory(self) -> bool:
        """Return whether the child's stderr says that it had no memory left."""
        return any(words in self._tail() for words in ("memory allocation", "bad_alloc", "annot allocate memory"))

    def _tail(self) -> str:
        size = self._stderr.seek(0, os.SEEK_END)
        self._stderr.seek(max(0, size - TAIL_BYTES))
        return self._stderr.read().decode("utf-8", "replace")

    def stderr_tail(self) -> str:
        """Return the last line that the child wrote to its stderr; empty if there is none."""
        return _last_line(self._tail(), LINE_CHARACTERS)

    def signal(self) -> None:
        """Send SIGKILL; may be called in any thread, while another one waits for an answer."""
        if self._process.poll() is None:  # or its id may be that of another group
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, SIGKILL)

    def kill(self) -> None:
        """Send SIGKILL, wait for the end and close the pipes; may be called again."""
        self.signal()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout, self._stderr):
            if pipe:
                pipe.close()
