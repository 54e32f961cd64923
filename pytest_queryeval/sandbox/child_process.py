"""A child process of our own interpreter, its pipes, and how it is started."""

from __future__ import annotations

import importlib.util
import marshal
import os
import select
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any

from pytest_queryeval.core.errors import SourceError
from pytest_queryeval.text.plain import one_line

START_SECONDS = 30.0
HEADER_BYTES = 8
TAIL_BYTES = 2_000
LINE_CHARACTERS = 300
_START = Path(__file__).with_name("start_child.py")
_OUR_FOLDER = _START.parents[2]


def child_command(program: Path, packages: Sequence[str], *arguments: str) -> list[str]:
    """Return the command that runs a program of ours, which imports the standard library, `packages` and our own.

    -I keeps the user's folder and environment out of the imports, -B leaves no files. Raises `SourceError` where a
    package is not installed.
    """
    folders = dict.fromkeys([*map(_folder_of, packages), str(_OUR_FOLDER)])
    return [sys.executable, "-I", "-B", str(_START), str(program), str(len(folders)), *folders, *arguments]


def _folder_of(package: str) -> str:
    """Return the folder that a package is imported from, which may be one that -I leaves out."""
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        raise SourceError(f"needs the package '{package}', which is not installed")
    return str(Path(spec.origin).parents[1 if spec.submodule_search_locations else 0])


class Child:
    """The process and its pipes. Messages are marshalled tuples behind their length in eight bytes."""

    def __init__(self, command: list[str]) -> None:
        self.ready = False
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 - closed by kill()
        try:
            # A session of its own keeps the terminal's Ctrl-C with the parent, which then kills the child.
            self._process = Popen(  # noqa: S603 - our own interpreter and files
                command, stdin=PIPE, stdout=PIPE, stderr=self._stderr, bufsize=0, start_new_session=True
            )
        except OSError:
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
        """Hand over a message; raises BrokenPipeError when the child is gone."""
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

    def ran_out_of_memory(self) -> bool:
        """Return whether the child said so before it ended."""
        return any(words in self._tail() for words in ("memory allocation", "bad_alloc", "annot allocate memory"))

    def _tail(self) -> str:
        size = self._stderr.seek(0, os.SEEK_END)
        self._stderr.seek(max(0, size - TAIL_BYTES))
        return self._stderr.read().decode("utf-8", "replace")

    def stderr_tail(self) -> str:
        """Read the last line that the child wrote to its stderr."""
        lines = self._tail().split("\n")
        return next((one_line(line, LINE_CHARACTERS) for line in reversed(lines) if line.strip()), "")

    def signal(self) -> None:
        """End it; may be called in any thread, while another one waits for an answer."""
        self._process.kill()

    def kill(self) -> None:
        """End it and wait for that; may be called again."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout, self._stderr):
            if pipe:
                pipe.close()
