"""Rarer garbage collection during large runs, whose many cases stay alive."""

from __future__ import annotations

import gc
from typing import TypeAlias

Thresholds: TypeAlias = tuple[int, int, int]
MIN_THRESHOLDS: Thresholds = (50_000, 20, 0)  # measured by benchmarks/bench_garbage.py


class RareCollection:
    """Raises the thresholds of garbage collection between `begin` and `end`, both of which may be called again."""

    def __init__(self) -> None:
        self._initial: Thresholds | None = None
        self._raised: Thresholds = MIN_THRESHOLDS

    def begin(self) -> None:
        """Raise the thresholds, unless they are higher or nothing is collected at all."""
        if self._initial is None and gc.get_threshold()[0]:
            self._initial = gc.get_threshold()
            gc.set_threshold(*map(max, self._initial, MIN_THRESHOLDS))
            self._raised = gc.get_threshold()

    def end(self) -> None:
        """Restore the thresholds, unless others were set in the meantime."""
        if self._initial is not None and gc.get_threshold() == self._raised:
            gc.set_threshold(*self._initial)
        self._initial = None
