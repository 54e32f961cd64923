"""Files and standard output of the commands; untrusted text in a line is never a command of a CI service."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from pytest_queryeval.core.atomic_write import write_atomically
from pytest_queryeval.core.errors import ReportError
from pytest_queryeval.text.escaping import log_line

MAX_LISTED = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What a command found: its exit status, lines for people, what `--json` prints, commands for a CI service."""

    status: int
    lines: Iterable[str]
    data: Mapping[str, object]
    ci_commands: Iterable[str] = ()


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
    """Write lines, each of which stays one and starts no command of a CI service; none where the reader has gone."""
    _write((f"{log_line(line)}\n" for line in lines), stream)


def _write(lines: Iterable[str], stream: TextIO | None) -> None:
    if stream is None:  # closed by the caller
        return
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="backslashreplace")  # a terminal may know ASCII only
    try:
        stream.writelines(lines)
        stream.flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())  # Python would complain once more when it ends
        if not isinstance(error, BrokenPipeError):  # as after `| head`
            raise ReportError(f"standard output cannot be written to: {error.strerror}") from error


def first_lines(lines: Sequence[str]) -> list[str]:
    """Return the first lines of a long list, and how many more `--json` lists."""
    more = len(lines) - MAX_LISTED
    return [*lines[:MAX_LISTED], *([f"and {more:,} more: --json lists all of them"] if more > 0 else [])]


def write_in_place(path: Path, content: bytes) -> None:
    """Write the file that a path leads to, which keeps its permissions."""
    with writing(path):
        real = path.resolve()
        mode = real.stat().st_mode
        write_atomically(real, content)
        real.chmod(mode)


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Raise `ReportError` where a path cannot be written within the `with` statement."""
    try:
        yield
    except OSError as error:
        raise ReportError(f"{path}: cannot be written: {error.strerror or error}") from error
