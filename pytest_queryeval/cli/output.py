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
    """The result of a command: its exit status, and what it prints."""

    status: int
    """The exit status."""
    lines: Iterable[str]
    """Lines for people."""
    data: Mapping[str, object]
    """What `--json` prints."""
    ci_commands: Iterable[str] = ()
    """Commands for a CI service."""


class RedactedStream:
    """Wraps a text stream and removes secrets from what is written.

    A secret may be split over several writes, so only whole lines are written, unless `flush` is called. Bytes that are
    written to `buffer` are decoded and redacted too. Other attributes are those of the stream.
    """

    def __init__(self, stream: TextIO) -> None:
        self.buffer = _RedactedBuffer(self, stream)
        self._stream = stream
        self._line = ""
        self._lock = RLock()  # predictors write from threads

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write the lines that this text completes, and keep the rest until its line ends.

        Return the number of characters of the text.
        """
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
        """Write an incomplete line, such as a prompt, up to where a secret may begin; flush the stream."""
        with self._lock:
            end = len(self._line) - len(beginning_of_secret(self._line))
            printable, pending = self._line[:end], self._line[end:]
            if redact(printable) + redact(pending) == redact(self._line):  # else a secret lies across the two
                self._stream.write(redact(printable))
                self._line = pending
            self._stream.flush()

    def end(self) -> None:
        """Write the incomplete last line without secrets."""
        with self._lock:
            line, self._line = self._line, ""
            self._stream.write(redact(line))


class _RedactedBuffer(io.BufferedIOBase):
    """The binary side of a `RedactedStream`; bytes that are not text are written as escapes."""

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
        """Return the file descriptor of the wrapped stream."""
        return self._stream.fileno()

    def write(self, data: Buffer) -> int:
        """Write bytes as text; an incomplete character at the end waits for the next bytes.

        Return the number of bytes.
        """
        with self._lock:
            self._text.write(self._decoder.decode(bytes(data)))
        return memoryview(data).nbytes

    def flush(self) -> None:
        """Flush the text stream."""
        self._text.flush()


@contextmanager
def redacted_output() -> Iterator[None]:
    """Remove secrets from standard output and standard error within the `with` statement, also those of user code."""
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
    """Write the lines of a result to standard output; with `as_json` JSON goes there, and the lines to standard error.

    Raises `ReportError` if standard output cannot be written.
    """
    stream = sys.stderr if as_json else sys.stdout
    write_lines(result.lines, stream)
    _write((f"{command}\n" for command in result.ci_commands), stream)
    if as_json:
        # `##` starts commands of CI services anywhere in a line. In JSON, `#` is in texts only.
        text = json.dumps(result.data, allow_nan=False).replace("##", "#\\u0023")
        _write([f"{text}\n"], sys.stdout)


def write_lines(lines: Iterable[str], stream: TextIO | None) -> None:
    """Write texts as one line each, so that none starts a command of a CI service.

    Does nothing for a closed stream or a reader that has gone. Raises `ReportError` for other errors.
    """
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
    """Set a stream to escape characters that it cannot encode, and return it."""
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="backslashreplace")
    return stream


def first_lines(lines: Sequence[str]) -> list[str]:
    """Return the first MAX_LISTED lines; if there are more, also a line that says how many `--json` adds."""
    more = len(lines) - MAX_LISTED
    return [*lines[:MAX_LISTED], *([f"and {more:,} more: --json lists all of them"] if more > 0 else [])]


@contextmanager
def wrap_write_errors(path: Path) -> Iterator[None]:
    """Turn an OSError within the `with` statement into a `ReportError` that names the path."""
    try:
        yield
    except OSError as error:
        raise ReportError(f"{path}: cannot be written: {error.strerror or error}") from error


def notifier(command: str) -> Callable[[str], None]:
    """Return a function that writes `queryeval COMMAND: MESSAGE` to standard error."""
    return lambda message: write_lines([f"queryeval {command}: {message}"], sys.stderr)


def with_progress(items: Iterable[T], tell: Callable[[str], None], *, total: int, noun: str = "case") -> Iterator[T]:
    """Yield the items, and call `tell` with the progress and the seconds left from time to time.

    `total` is the number of items, `noun` says what they are. Logs get fewer lines than terminals.
    """
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
