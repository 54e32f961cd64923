"""Files and standard output of the subcommands; untrusted text in a line is never a command of a CI service."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from pytest_queryeval.core.errors import ReportError
from pytest_queryeval.reports import check_target, files_of
from pytest_queryeval.text.escaping import log_line


def write_lines(lines: Iterable[str]) -> None:
    """Write lines, each of which stays one and starts no command of a CI service; none where the reader has gone."""
    if sys.stdout is None:  # closed by the caller
        return
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a terminal may know ASCII only
    try:
        sys.stdout.writelines(f"{log_line(line)}\n" for line in lines)
        sys.stdout.flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python would complain once more when it ends
        if not isinstance(error, BrokenPipeError):  # as after `| head`
            raise ReportError(f"standard output cannot be written to: {error.strerror}") from error


def report_files(targets: Iterable[Path]) -> list[Path]:
    """Return the files of all targets; raise `ReportError` for the first target that cannot be written."""
    for target in targets:
        check_target(target)
    return [path for target in targets for path in files_of(target)]


def write_files(paths: Iterable[Path], write: Callable[[Path], None]) -> tuple[list[str], bool]:
    """Write each file that can be written; `write` raises `ReportError` for the others.

    Return a line for each file, those that failed last, and whether all were written.
    """
    written: list[str] = []
    faults: list[str] = []
    for path in paths:
        try:
            write(path)
        except ReportError as error:
            faults.append(str(error))
        else:
            written.append(f"report: {path}")
    return [*written, *faults], not faults
