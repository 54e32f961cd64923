"""What commands that take long tell on standard error."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from pytest_queryeval.cli.output import write_lines
from pytest_queryeval.text.formatting import pluralize

T = TypeVar("T")
PROGRESS_SECONDS = 5.0


def teller(command: str) -> Callable[[str], None]:
    """Return a function that writes a line of a command."""
    return lambda message: write_lines([f"queryeval {command}: {message}"], sys.stderr)


def with_progress(cases: Sequence[T], tell: Callable[[str], None]) -> Iterator[T]:
    """Yield the cases, and tell from time to time how many are left."""
    began = shown = time.monotonic()
    for number, case in enumerate(cases):
        now = time.monotonic()
        if number and now - shown >= PROGRESS_SECONDS:
            shown = now
            left = (now - began) / number * (len(cases) - number)
            tell(f"{number:,} of {pluralize(len(cases), 'case')}, about {left:.0f} s left")
        yield case
