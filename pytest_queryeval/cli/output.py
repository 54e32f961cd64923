"""Text for the standard output: plain, since it often goes to a log; foreign text in it is shown and never obeyed."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from pytest_queryeval.aggregation import Report
from pytest_queryeval.errors import ReportError
from pytest_queryeval.plain import printable
from pytest_queryeval.reports import write_report


def write_lines(lines: Iterable[str]) -> None:
    """Write lines, each of which stays one and starts no command of a CI service; none where the reader has gone."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a terminal may know ASCII only
    try:
        sys.stdout.writelines(f"{_shown(line)}\n" for line in lines)
        sys.stdout.flush()
    except BrokenPipeError:  # as after `| head`; Python would complain once more when it ends
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def write_reports(report: Report, targets: Sequence[Path]) -> tuple[list[str], bool]:
    """Write the report to each target that can be written; returns a line for each file, and whether all are there."""
    written: list[Path] = []
    faults: list[str] = []
    for target in targets:
        try:
            written += write_report(report, target)
        except ReportError as error:
            faults.append(str(error))
    return [*(f"report: {path}" for path in written), *faults], not faults


def _shown(line: str) -> str:
    text = printable(line).replace("\n", " ")
    return f"| {text}" if text.lstrip().startswith("::") else text
