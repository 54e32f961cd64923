"""Text for the standard output: plain, since it often goes to a log; foreign text in it is shown and never obeyed."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterable

from pytest_queryeval.plain import printable


def write_lines(lines: Iterable[str]) -> None:
    """Write lines, each of which stays one and starts no command of a CI service; none where the reader has gone."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a terminal may know ASCII only
    try:
        sys.stdout.writelines(f"{_shown(line)}\n" for line in lines)
        sys.stdout.flush()
    except BrokenPipeError:  # as after `| head`; Python would complain once more when it ends
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _shown(line: str) -> str:
    text = printable(line).replace("\n", " ")
    return f"| {text}" if text.lstrip().startswith("::") else text
