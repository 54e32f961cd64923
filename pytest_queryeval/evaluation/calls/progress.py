"""The progress of the calls of a run."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from pytest_queryeval.core.errors import QueryEvalError


@dataclass
class Progress:
    """The progress of the calls of one predictor."""

    concurrency: int
    requested: int = 0
    under_way: int = 0
    done: int = 0
    failed: int = 0
    seconds: float = 0.0
    """The duration of all finished calls together."""

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Count the call that is made within the `with` statement."""
        start = time.monotonic()
        self.under_way += 1
        try:
            yield
        except QueryEvalError:
            self.failed += 1
            raise
        finally:
            self.under_way -= 1
            self.done += 1
            self.seconds += time.monotonic() - start

    @property
    def seconds_left(self) -> float:
        """The estimated seconds until the last call is done."""
        return self.seconds / max(self.done, 1) * (self.requested - self.done) / self.concurrency


def progress_line(predictors: Collection[Progress]) -> str:
    """Return a line on the calls of all predictors."""
    requested, under_way, done, failed = (
        sum(getattr(progress, name) for progress in predictors) for name in ("requested", "under_way", "done", "failed")
    )
    line = f"queryeval: {done:,} of {requested:,} predictions, {under_way:,} under way, {failed:,} failed"
    if not done:
        return line
    seconds = sum(progress.seconds for progress in predictors) / done
    seconds_left = max(progress.seconds_left for progress in predictors)
    return f"{line}, {seconds:.1f} s a call, about {seconds_left:.0f} s left"
