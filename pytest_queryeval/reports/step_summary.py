"""The summary of a step on GitHub Actions: the Markdown report after what the step has written already."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from pytest_queryeval.core.errors import ReportError
from pytest_queryeval.core.report import Report
from pytest_queryeval.reports.markdown import MAX_BYTES, markdown_within
from pytest_queryeval.text.truncation import one_line

VARIABLE = "GITHUB_STEP_SUMMARY"
MAX_SUMMARY_BYTES = 2**20  # GitHub drops all of a summary that is larger
MIN_BYTES = 4_096  # for a verdict, and the notice that the rest was cut


def step_summary_file() -> Path:
    """Return the file that GITHUB_STEP_SUMMARY names; raise `ReportError` where it cannot be written to."""
    name = os.environ.get(VARIABLE)
    if not name:
        hint = "GitHub Actions sets it; a folder of that name is ./github"
        raise ReportError(f"report github: the environment variable {VARIABLE} is not set: {hint}")
    path = Path(name)
    try:
        is_there, is_fit = path.exists(), not path.is_dir() and not path.is_fifo()
    except OSError as error:  # a folder that may not be looked into, a name that no file can have
        raise ReportError(f"report github: {_file_text(path)} cannot be written to: {error.strerror}") from error
    if not is_fit or not os.access(path if is_there else path.parent, os.W_OK):
        raise ReportError(f"report github: {_file_text(path)} cannot be written to")
    return path


def _file_text(path: Path) -> str:
    return f"{one_line(str(path))}, which {VARIABLE} names,"


def append_step_summary(report: Report, path: Path) -> None:
    """Append the report to a file, all of it or nothing; what is there stays.

    The file keeps within the 1 MiB that GitHub shows of a summary, and the report within its own 900 KiB: it tells
    what was cut. Raise `ReportError` where there is no room for the verdict, and where writing fails.
    """
    try:
        with path.open("ab", buffering=0) as file:
            before = file.seek(0, os.SEEK_END) if file.seekable() else 0
            start = b"\n\n" if before else b""
            room = MAX_SUMMARY_BYTES - before - len(start)
            if room < MIN_BYTES:
                raise ReportError(
                    f"report github: {path} has {before:,} bytes already, and GitHub shows {MAX_SUMMARY_BYTES:,}"
                )
            content = memoryview(start + markdown_within(report, min(room, MAX_BYTES)))
            try:
                while content:
                    content = content[file.write(content) :]
            except BaseException:
                with suppress(OSError):  # a device has nothing to take back
                    file.truncate(before)
                raise
    except OSError as error:
        raise ReportError(f"report github: {path} cannot be written: {error.strerror or error}") from error
