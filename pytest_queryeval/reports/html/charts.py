"""The charts of a page as numbers, from which the template draws bars and circles: no script, so they print too."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass
from typing import TypeAlias

from pytest_queryeval.core.report import Report
from pytest_queryeval.reports.html.bins import BANDS, Bin, Circle, bands, circles, distributions, is_unit, timed_scores

Rows: TypeAlias = Sequence[tuple[str, ...]]

METRICS_SHOWN = 48
TIMED_METRICS = 4
MIN_RADIUS, MAX_RADIUS = 1.5, 8.0
DIGITS = (1, 2, 5, 10)  # of the steps of a scale
HALVED_BADLY = 5  # half a step would have one more digit, as 0.025
MIN_SPAN = 1e-9  # of an axis, whose ticks have nine decimals


@dataclass(frozen=True, slots=True)
class Scale:
    """An axis whose ends and middle are round: values become places from 0 to 100."""

    low: float
    high: float

    @classmethod
    def over(cls, values: Sequence[float]) -> Scale:
        """Return the scale with the closest round ends around all values, whose middle is round as well.

        A scale of shares stays within 0 and 1.

        >>> Scale.over([0.675, 0.7375]).ticks, Scale.over([0.1, 0.9]).ticks, Scale.over([130.0, 170.0]).ticks
        (('0.66', '0.7', '0.74'), ('0', '0.5', '1'), ('130', '150', '170'))
        """
        lowest, highest = min(values), max(values)
        is_share = lowest >= 0 and highest <= 1
        span = next(size for size in (highest - lowest, abs(lowest), 1.0) if size >= MIN_SPAN)
        power = 10 ** math.floor(math.log10(span / 4))
        digit = next(digit for digit in DIGITS if digit * power >= span / 4)
        step = digit * power
        low, high = math.floor(lowest / step), math.ceil(highest / step)
        if low == high:
            high += 2
        elif digit == HALVED_BADLY and (high - low) % 2:
            high += 1
        if is_share and (above := high - math.floor(1 / step + 1e-9)) > 0:
            return cls((low - above) * step, (high - above) * step) if low >= above else cls(0.0, 1.0)
        return cls(low * step, high * step)

    def at(self, value: float) -> float:
        """Return the place of a value."""
        return round(100 * (value - self.low) / (self.high - self.low or 1.0), 2)

    @property
    def ticks(self) -> tuple[str, str, str]:
        """The values at both ends and in the middle."""
        low, middle, high = (f"{round(value, 9):g}" for value in (self.low, (self.low + self.high) / 2, self.high))
        return low, middle, high


@dataclass(frozen=True, slots=True, kw_only=True)
class Dot:
    """A circle at a place from 0 to 1, of a radius in pixels."""

    x: float
    y: float
    radius: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """A small chart of a metric, between two ends: bars, or dots."""

    metric: str
    low: str
    high: str
    bars: Sequence[Bin] = ()
    dots: Sequence[Dot] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """Small charts of one kind with their description, and their numbers as a table."""

    name: str
    title: str
    description: str
    plots: Sequence[Plot]
    header: tuple[str, ...]
    rows: Rows
    is_open: bool = True


def charts(report: Report) -> Iterator[Chart]:
    """Yield the charts of a report; scores with only one or two distinct values get none."""
    score_bins = distributions(report["metrics"], report["cases"])
    spread = {name: bins for name, bins in score_bins.items() if sum(score_bin.count > 0 for score_bin in bins) > 2}
    if spread:
        yield _distributions(spread)
    yield from _times(report)


def _left_out(words: str, drawn_metrics: Sized, metrics: Sized) -> str:
    """Return what a chart says about the metrics that it does not draw."""
    if len(drawn_metrics) == len(metrics):
        return ""
    return f" The {words} {len(drawn_metrics)} of {len(metrics):,} metrics are drawn; the table has all."


def _distributions(spread: Mapping[str, Sequence[Bin]]) -> Chart:
    first = list(spread)[:METRICS_SHOWN]
    return Chart(
        name="distributions",
        title="Score distributions",
        description="Where the scores of each metric lie: the height of a bar is the share of its cases, up to all of"
        f" them at the upper line.{_left_out('first', first, spread)}",
        plots=[
            Plot(
                metric=name,
                low=f"{spread[name][0].low:.4g}",
                high=f"{spread[name][-1].high:.4g}",
                bars=spread[name],
            )
            for name in first
        ],
        header=("metric", "scores", "cases"),
        rows=[
            (name, score_bin.text, f"{score_bin.count:,}")
            for name, bins in spread.items()
            for score_bin in bins
            if score_bin.count
        ],
    )


def _times(report: Report) -> Iterator[Chart]:
    """Yield prediction times against scores, as circles whose size is the number of cases."""
    scores, metrics = timed_scores(report["cases"]), report["metrics"]
    timed_metrics = {name: scores[name] for name, stats in metrics.items() if name in scores and is_unit(stats)}
    if not timed_metrics:
        return
    drawn_metrics = sorted(timed_metrics, key=lambda name: -len(timed_metrics[name][0]))[:TIMED_METRICS]
    circles_of_metrics = {name: circles(timed_metrics[name]) for name in timed_metrics if name in drawn_metrics}
    yield Chart(
        name="times",
        title="Prediction time and score",
        description="A circle stands for cases with about the same score and time, a larger one for more of them; the"
        " lines are at the scores 0, 0.5 and 1, the scale of the time is logarithmic. Predictions that took no time are"
        " left out, and metrics with scores that are not between 0 and 1."
        f"{_left_out('most frequent', drawn_metrics, timed_metrics)}",
        plots=[_dots(name, metric_circles) for name, metric_circles in circles_of_metrics.items()],
        header=("metric", "prediction took", *(f"score {band}" for band in BANDS)),
        rows=[(name, *row) for name, points in timed_metrics.items() for row in bands(points)],
        is_open=any(
            len({circle.score for circle in metric_circles}) > 2 for metric_circles in circles_of_metrics.values()
        ),
    )


def _dots(metric: str, metric_circles: Sequence[Circle]) -> Plot:
    low, high = min(circle.seconds for circle in metric_circles), max(circle.seconds for circle in metric_circles)
    most, width = max(circle.count for circle in metric_circles), math.log(high / low) if high > low else 1.0
    return Plot(
        metric=metric,
        low=f"{low:.3g} s",
        high=f"{high:.3g} s",
        dots=[
            Dot(
                x=math.log(circle.seconds / low) / width,
                y=1 - circle.score,
                radius=MIN_RADIUS + (MAX_RADIUS - MIN_RADIUS) * math.sqrt(circle.count / most),
            )
            for circle in metric_circles
        ],
    )
