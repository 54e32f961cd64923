"""Files, standard output and progress of the commands; untrusted text in a line is never a command of a CI service."""

from __future__ import annotations

import codecs
import io
import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any, TextIO, TypeVar, cast

from pytest_queryeval.core.errors import ReportError
from pytest_queryeval.text.formatting import log_line, pluralize
from pytest_queryeval.text.redaction import beginning_of_secret, redact

if TYPE_CHECKING:
    from typing_extensions import Buffer

MAX_LISTED = 20
T = TypeVar("T")
PROGRESS_SECONDS = 5.0
LONGER_IN_LOGS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What a command returns."""

    status: int
    """The exit status."""
    lines: Iterable[str]
    """Lines for people."""
    data: Mapping[str, object]
    """What `--json` prints."""
    ci_commands: Iterable[str] = ()
    """Commands for a CI service."""


class RedactedStream:
    """A text stream that removes secrets, which may be split over several writes: it writes whole lines unless flushed.

    Bytes that are written to its `buffer` are text as well.
    """

    def __init__(self, stream: TextIO) -> None:
        self.buffer = _RedactedBuffer(self, stream)
        self._stream = stream
        self._line = ""
        self._lock = RLock()  # predictors write from threads

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write the lines that are complete with this text, and keep the beginning of the next one."""
        with self._lock:
            end = max(text.rfind("\n"), text.rfind("\r")) + 1
            lines, self._line = (self._line + text[:end], text[end:]) if end else ("", self._line + text)
            self._stream.write(redact(lines))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write texts one after the other."""
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        """Write an incomplete line, such as a prompt, without its end where that may be the beginning of a secret."""
        with self._lock:
            end = len(self._line) - len(beginning_of_secret(self._line))
            printable, pending = self._line[:end], self._line[end:]
            if redact(printable) + redact(pending) == redact(self._line):  # else a secret lies across the two
                self._stream.write(redact(printable))
                self._line = pending
            self._stream.flush()

    def end(self) -> None:
        """Write the last line, which is incomplete."""
        with self._lock:
            line, self._line = self._line, ""
            self._stream.write(redact(line))


class _RedactedBuffer(io.BufferedIOBase):
    """The bytes of a text stream without secrets; bytes that are not text are written as escapes."""

    def __init__(self, text: RedactedStream, stream: TextIO) -> None:
        self._text = text
        self._stream = stream
        encoding = getattr(stream, "encoding", None) or "utf-8"
        self._decoder = codecs.getincrementaldecoder(encoding)("backslashreplace")
        self._lock = RLock()

    def writable(self) -> bool:
        """Return True."""
        return True

    def fileno(self) -> int:
        """Return the descriptor of the stream, as its text stream does."""
        return self._stream.fileno()

    def write(self, data: Buffer) -> int:
        """Write bytes, of which the last may be the beginning of a character."""
        with self._lock:
            self._text.write(self._decoder.decode(bytes(data)))
        return memoryview(data).nbytes

    def flush(self) -> None:
        """Flush the text stream."""
        self._text.flush()


@contextmanager
def redacted_output() -> Iterator[None]:
    """Remove secrets from what predictors and other user code print, log and warn within the `with` statement."""
    before = sys.stdout, sys.stderr
    streams = [None if stream is None else RedactedStream(_lenient(stream)) for stream in before]
    sys.stdout, sys.stderr = cast("list[TextIO]", streams)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before
        for stream in filter(None, streams):
            with suppress(OSError):  # the reader has gone
                stream.end()


def write_result(result: Result, *, as_json: bool) -> None:
    """Write the lines to standard output, or its JSON there and the lines to standard error."""
    stream = sys.stderr if as_json else sys.stdout
    write_lines(result.lines, stream)
    _write((f"{command}\n" for command in result.ci_commands), stream)
    if as_json:
        # `##` starts commands of CI services anywhere in a line. In JSON, `#` is in texts only.
        text = json.dumps(result.data, allow_nan=False).replace("##", "#\\u0023")
        _write([f"{text}\n"], sys.stdout)


def write_lines(lines: Iterable[str], stream: TextIO | None) -> None:
    """Write lines; none is split or starts a command of a CI service. Ignore a reader that has gone."""
    _write((f"{log_line(line)}\n" for line in lines), stream)


def _write(lines: Iterable[str], stream: TextIO | None) -> None:
    if stream is None:  # closed by the caller
        return
    try:
        _lenient(stream).writelines(lines)
        stream.flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())  # Python would complain once more when it ends
        if not isinstance(error, BrokenPipeError):  # as after `| head`
            raise ReportError(f"standard output cannot be written to: {error.strerror}") from error


def _lenient(stream: TextIO) -> TextIO:
    """Return the stream, set to escape what it cannot encode: a terminal may support ASCII only."""
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="backslashreplace")
    return stream


def first_lines(lines: Sequence[str]) -> list[str]:
    """Return the first lines of a list, and a line on how many more `--json` lists."""
    more = len(lines) - MAX_LISTED
    return [*lines[:MAX_LISTED], *([f"and {more:,} more: --json lists all of them"] if more > 0 else [])]


@contextmanager
def wrap_write_errors(path: Path) -> Iterator[None]:
    """Raise `ReportError` if a path cannot be written within the `with` statement."""
    try:
        yield
    except OSError as error:
        raise ReportError(f"{path}: cannot be written: {error.strerror or error}") from error


def notifier(command: str) -> Callable[[str], None]:
    """Return a function that writes a line of a command to standard error."""
    return lambda message: write_lines([f"queryeval {command}: {message}"], sys.stderr)


def with_progress(items: Iterable[T], tell: Callable[[str], None], *, total: int, noun: str = "case") -> Iterator[T]:
    """Yield the items, of which there are `total`, and report the progress from time to time."""
    began = last_message = time.monotonic()
    is_seen = sys.stderr is not None and sys.stderr.isatty()
    pause = PROGRESS_SECONDS * (1 if is_seen else LONGER_IN_LOGS)
    for number, item in enumerate(items):
        now = time.monotonic()
        if number and now - last_message >= pause:
            last_message = now
            seconds_left = (now - began) / number * (total - number)
            tell(f"{number:,} of {pluralize(total, noun)}, about {seconds_left:.0f} s left")
        yield item
