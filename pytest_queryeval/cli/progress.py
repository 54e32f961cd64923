"""The progress of long commands, on standard error."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from pytest_queryeval.cli.output import write_lines
from pytest_queryeval.text.formatting import pluralize

T = TypeVar("T")
PROGRESS_SECONDS = 5.0
LONGER_IN_LOGS = 6


def teller(command: str) -> Callable[[str], None]:
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
