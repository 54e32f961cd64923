"""Garbage collection during large runs, whose many cases stay: Python looks for garbage less often."""

from __future__ import annotations

import gc
from typing import TypeAlias

Thresholds: TypeAlias = tuple[int, int, int]
MIN_THRESHOLDS: Thresholds = (50_000, 20, 0)  # measured by benchmarks/bench_garbage.py


class RareCollection:
    """Thresholds of garbage collection between `begin` and `end`, either of which may be called again."""

    def __init__(self) -> None:
        self._before: Thresholds | None = None
        self._during: Thresholds = MIN_THRESHOLDS

    def begin(self) -> None:
        """Raise the thresholds, unless they are higher or nothing is collected at all."""
        if self._before is None and gc.get_threshold()[0]:
            self._before = gc.get_threshold()
            gc.set_threshold(*map(max, self._before, MIN_THRESHOLDS))
            self._during = gc.get_threshold()

    def end(self) -> None:
        """Restore the thresholds, unless others were set in the meantime."""
        if self._before is not None and gc.get_threshold() == self._during:
            gc.set_threshold(*self._before)
        self._before = None
