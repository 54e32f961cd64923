"""Processes that are read and written without blocking, and that are ended together with their children."""

from __future__ import annotations

import asyncio
import math
import os
import signal
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Self

OUTPUT_BYTES = 16 * 2**20
ERROR_BYTES = 2**16
GRACE_SECONDS = 0.5
DISMISS_SECONDS = 0.3  # the end of a run waits a second
REAP_SECONDS = 5.0
_CHUNK_BYTES = 2**16
_POLL_SECONDS = 0.01


@dataclass(frozen=True, slots=True)
class Command:
    """A program with its arguments, its working directory, and its whole environment."""

    words: tuple[str, ...]
    folder: Path
    environment: Mapping[str, str]


class Process(asyncio.SubprocessProtocol):
    """A process in a session of its own, so that signals reach its children as well.

    Its stdout is collected in `output`, and the end of its stderr in `errors`. `ended` is true once the process is
    reaped and its children are gone. No signal is sent from then on, because its process id may belong to another
    process.

    The pipes are not those of asyncio, for which a process has not exited while a child of it has them open. Callbacks
    do all the work: tasks would be cancelled with those of the calls, and leave the process running.
    """

    def __init__(self, pipes: tuple[int, int, int]) -> None:
        self.output = bytearray()
        self.errors = bytearray()
        self.exit_code: int | None = None
        self.printed_too_much = False
        self.ended = False
        self._transport: asyncio.SubprocessTransport | None = None
        self._stdin: int | None = pipes[0]
        self._stdout = pipes[1]
        self._open = {pipes[1], pipes[2]}
        self._unsent = memoryview(b"")
        self._is_last = False
        self._is_killed = False
        self._deadline: float | None = None
        self._changed = asyncio.Event()
        self._loop = asyncio.get_running_loop()

    @classmethod
    async def start(cls, command: Command) -> Self:
        """Start a process of `command`, and return it; raise OSError if the system cannot start it."""
        with ExitStack() as child_ends, ExitStack() as our_ends:
            stdin, to_stdin = _pipe(child_ends, our_ends)
            from_stdout, stdout = _pipe(our_ends, child_ends)
            from_stderr, stderr = _pipe(our_ends, child_ends)
            pipes = (to_stdin, from_stdout, from_stderr)
            _, process = await asyncio.get_running_loop().subprocess_exec(
                lambda: cls(pipes),
                *command.words,
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                cwd=command.folder,
                env=command.environment,
                start_new_session=True,
            )
            our_ends.pop_all()
        for pipe in pipes:
            os.set_blocking(pipe, False)
        for pipe in process._open:
            process._loop.add_reader(pipe, process._read, pipe)
        return process

    @property
    def prints(self) -> bool:
        """Whether the process's stdout is still open."""
        return self._stdout in self._open

    def give(self, data: bytes, *, is_last: bool) -> None:
        """Write data to the process's stdin in the background; after the last data, stdin is closed.

        A process that does not read its stdin is not an error.
        """
        self._unsent = memoryview(bytes(self._unsent) + data)
        self._is_last = is_last
        if self._stdin is not None:
            self._loop.add_writer(self._stdin, self._write)

    async def until(self, condition: Callable[[], bool], seconds: float = math.inf) -> bool:
        """Wait until a condition on this process is true, at most `seconds` seconds; return whether it is true."""
        deadline = self._loop.time() + seconds
        alarm = None if math.isinf(seconds) else self._loop.call_later(seconds, self._changed.set)
        try:
            while not condition() and self._loop.time() < deadline:
                self._changed.clear()
                await self._changed.wait()
        finally:
            if alarm:
                alarm.cancel()
        return condition()

    async def dismiss(self) -> None:
        """Close the process's stdin, so that a process that waits for input ends; `stop` it if it does not end soon."""
        self._close_stdin()
        try:
            await self.until(lambda: self.ended, DISMISS_SECONDS)
        finally:
            await self.stop()

    async def stop(self) -> None:
        """End the process and its children by SIGTERM, after GRACE_SECONDS by SIGKILL, and wait until it is reaped.

        Its pipes are closed afterwards. A process that has ended gets no signal.
        """
        try:
            self._signal(signal.SIGTERM)
            await self.until(lambda: self.ended, GRACE_SECONDS)
        finally:  # also where the waiting is cancelled
            self._is_killed = self._signal(signal.SIGKILL)
            self._close_stdin()
            try:
                await self.until(lambda: self.ended, REAP_SECONDS)
            finally:
                for pipe in tuple(self._open):
                    self._close_output(pipe)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Store the transport; asyncio calls this once the process runs."""
        assert isinstance(transport, asyncio.SubprocessTransport)
        self._transport = transport

    def process_exited(self) -> None:
        """Store the exit code, and soon end the children; asyncio calls this once the process is reaped."""
        assert self._transport is not None
        self.exit_code = self._transport.get_returncode()
        self._transport.close()
        self._changed.set()
        self._loop.call_later(GRACE_SECONDS, self._end_children)
        if self._is_killed or not self._open:
            self._end_children()

    def _end_children(self) -> None:
        if self._deadline is None:
            self._deadline = self._loop.time() + GRACE_SECONDS
            self._signal(signal.SIGTERM)
            self._await_children()

    def _await_children(self) -> None:
        assert self._deadline is not None
        # A killed process stays until it is reaped.
        if not self._is_killed and self._signal(0) and self._loop.time() < self._deadline:
            self._loop.call_later(_POLL_SECONDS, self._await_children)
            return
        self._signal(signal.SIGKILL)
        self.ended = True
        self._changed.set()

    def _signal(self, number: int) -> bool:
        """Send a signal to the process and its children; return whether any of them received it."""
        if self.ended or self._transport is None:
            return False
        try:
            os.killpg(self._transport.get_pid(), number)
        except (ProcessLookupError, PermissionError):
            return False
        return True

    def _write(self) -> None:
        assert self._stdin is not None
        try:
            self._unsent = self._unsent[os.write(self._stdin, self._unsent[:_CHUNK_BYTES]) :]
        except BlockingIOError:
            return
        except OSError:  # its stdin is closed
            self._close_stdin()
            return
        if not self._unsent:
            self._loop.remove_writer(self._stdin)
            if self._is_last:
                self._close_stdin()

    def _read(self, pipe: int) -> None:
        try:
            data = os.read(pipe, _CHUNK_BYTES)
        except BlockingIOError:
            return
        if not data:
            self._close_output(pipe)
        elif pipe != self._stdout:
            self.errors += data
            del self.errors[:-ERROR_BYTES]
        else:
            self.output += data
            if len(self.output) > OUTPUT_BYTES:
                self.printed_too_much = True
                self._signal(signal.SIGKILL)
                self._close_output(pipe)
        self._changed.set()

    def _close_stdin(self) -> None:
        if self._stdin is not None:
            self._loop.remove_writer(self._stdin)
            os.close(self._stdin)
            self._stdin = None

    def _close_output(self, pipe: int) -> None:
        self._open.remove(pipe)
        self._loop.remove_reader(pipe)
        os.close(pipe)
        if not self._open and self.exit_code is not None:
            self._end_children()


def _pipe(reader: ExitStack, writer: ExitStack) -> tuple[int, int]:
    """Return the reading and the writing end of a new pipe; `reader` and `writer` close them."""
    reads, writes = os.pipe()
    reader.callback(os.close, reads)
    writer.callback(os.close, writes)
    return reads, writes
