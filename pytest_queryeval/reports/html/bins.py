"""Counts of scores and times in bins, which charts draw instead of thousands of points."""

from __future__ import annotations

import math
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from pytest_queryeval.core.report import CaseReport, MetricReport, ScoreStatistics

# The seconds of predictions, and the score of each.
Timed: TypeAlias = "tuple[array[float], array[float]]"

BINS = 10
MIN_SECONDS = 1e-9  # a shorter time is no measurement
STEPS = 4  # to each power of ten of seconds
BANDS = ("0", "above 0, below ½", "½ and more, below 1", "1")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bin:
    """How many scores lie from `low` to `high`."""

    low: float
    high: float
    count: int
    share: float
    """The share of all scores, from 0 to 1."""

    @property
    def text(self) -> str:
        """The limits as text."""
        return f"{self.low:.4g} to {self.high:.4g}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Circle:
    """How many cases have about this score, from 0 to 1, after a prediction of about so many seconds."""

    seconds: float
    score: float
    count: int


def is_unit(stats: ScoreStatistics) -> bool:
    """Return whether all scores of a metric lie between 0 and 1."""
    return bool(stats["min"] >= 0.0 and stats["max"] <= 1.0)


def distributions(metrics: Mapping[str, MetricReport], cases: Iterable[CaseReport]) -> dict[str, list[Bin]]:
    """Return the `distribution` of each metric."""
    scores: dict[str, array[float]] = {name: array("d") for name in metrics}
    for case in cases:
        for name, score in case["scores"].items():
            if score is not None and name in scores:
                scores[name].append(score)
    return {name: distribution(stats, scores[name]) for name, stats in metrics.items()}


def distribution(stats: ScoreStatistics, scores: Sequence[float]) -> list[Bin]:
    """Return the scores of a metric in ten bins between 0 and 1, or between the lowest and the highest score."""
    low, high = (0.0, 1.0) if is_unit(stats) else (stats["min"], stats["max"])
    width = (high - low) / BINS or 1.0
    # A report from another program may have other limits than those of its cases, or no score of a metric.
    counts = Counter(int(min(max((score - low) / width, 0), BINS - 1)) for score in scores)
    return [
        Bin(
            low=low + place * width,
            high=low + (place + 1) * width,
            count=counts[place],
            share=counts[place] / max(len(scores), 1),
        )
        for place in range(BINS)
    ]


def timed_scores(cases: Iterable[CaseReport]) -> Mapping[str, Timed]:
    """Return the seconds of predictions and their scores by metric; predictions without a time are left out."""
    timed: defaultdict[str, Timed] = defaultdict(lambda: (array("d"), array("d")))
    for case in cases:
        seconds = case["prediction"]["seconds"] if case["prediction"] else 0.0
        if seconds >= MIN_SECONDS:
            for name, score in case["scores"].items():
                if score is not None:
                    timed[name][0].append(seconds)
                    timed[name][1].append(score)
    return timed


def circles(timed: Timed) -> list[Circle]:
    """Return the scores of a metric, those with about the same score and time together."""
    counts = Counter(
        (math.floor(math.log10(seconds) * STEPS), round(score * BINS)) for seconds, score in zip(*timed, strict=True)
    )
    return [
        Circle(seconds=float(f"{10 ** ((place + 0.5) / STEPS):.3g}"), score=score / BINS, count=count)
        for (place, score), count in sorted(counts.items())
    ]


def bands(timed: Timed) -> Iterator[tuple[str, ...]]:
    """Yield a row for each power of ten of the seconds of predictions: how many scores of a metric are in each band."""
    counts: Counter[tuple[int, str]] = Counter()
    for seconds, score in zip(*timed, strict=True):
        place = 0 if score == 0 else 3 if score == 1 else 1 if score < 0.5 else 2
        counts[math.floor(math.log10(seconds)), BANDS[place]] += 1
    for power in sorted({power for power, _ in counts}):
        yield f"{10.0**power:g} s to {10.0 ** (power + 1):g} s", *(f"{counts[power, band]:,}" for band in BANDS)
