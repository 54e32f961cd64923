"""The progress of commands that take long, on standard error."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from pytest_queryeval.text.formatting import pluralize

T = TypeVar("T")
PROGRESS_SECONDS = 5.0


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
