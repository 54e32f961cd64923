"""The charts of a page as numbers.

The template draws bars and circles from them without a script, so that they can be printed.
"""

from __future__ import annotations

import math
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass
from typing import TypeAlias

from pytest_queryeval.core.case_report import CaseReport
from pytest_queryeval.core.metric import RUN_METRICS
from pytest_queryeval.core.report import MetricReport, Report, ScoreStatistics
from pytest_queryeval.results.aggregation import MAX_SIZE

Rows: TypeAlias = Sequence[tuple[str, ...]]
# The seconds of predictions, and their scores in the same order.
TimedScores: TypeAlias = "tuple[array[float], array[float]]"

BINS = 10
MIN_SECONDS = 1e-9  # a shorter time is not a measurement
STEPS = 4  # in each power of ten of seconds
BANDS = ("0", "above 0, below ½", "½ and more, below 1", "1")

METRICS_SHOWN = 48
TIMED_METRICS = 4
MIN_RADIUS, MAX_RADIUS = 1.5, 8.0
COVERAGE, ACCURACY = "coverage", "selective_accuracy"  # run metrics of the feature abstention
POINTS = 100  # of a curve


@dataclass(frozen=True, slots=True, kw_only=True)
class Bin:
    """A bar of a distribution: the number of scores from `low` to `high`."""

    low: float
    high: float
    count: int
    share: float
    """The share of all scores that are in this bin, from 0 to 1."""

    @property
    def text(self) -> str:
        """The limits of the bin as text, such as '0.1 to 0.2'."""
        return f"{self.low:.4g} to {self.high:.4g}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Circle:
    """The number of cases with about this score, from 0 to 1, and about this prediction time."""

    seconds: float
    score: float
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Dot:
    """A circle to draw: its centre in fractions of the chart's width and height, and its radius in pixels.

    `y` is 0 at the top.
    """

    x: float
    y: float
    radius: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Risk:
    """What the system would get wrong if it gave only the answers with at least this confidence."""

    confidence: float | None
    """The least confidence; None if all answers count."""
    coverage: float
    """The share of all questions that it would answer."""
    risk: float
    """The share of these answers that are wrong."""
    answers: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """A small chart of one metric: bars, or dots that a curve may join; `low` and `high` label the ends of the axis."""

    metric: str
    low: str
    high: str
    bars: Sequence[Bin] = ()
    dots: Sequence[Dot] = ()
    curve: Sequence[tuple[float, float]] = ()
    """Points (x, y) from 0 to 1, in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A group of small charts of one kind with a title and description, and their numbers as a table."""

    name: str
    title: str
    description: str
    plots: Sequence[Plot]
    header: tuple[str, ...]
    rows: Rows
    is_open: bool = True


def charts(report: Report) -> Iterator[Chart]:
    """Yield the charts of a report: distributions of scores, times against scores, and the risk-coverage curve.

    A metric with at most two filled bins gets no distribution.
    """
    score_bins = distributions(report["metrics"], report["cases"])
    drawable_bins = {
        name: bins for name, bins in score_bins.items() if sum(score_bin.count > 0 for score_bin in bins) > 2
    }
    if drawable_bins:
        drawn_metrics = list(drawable_bins)[:METRICS_SHOWN]
        yield Chart(
            name="distributions",
            title="Score distributions",
            description="Where the scores of each metric lie: the height of a bar is the share of its cases, up to all"
            f" of them at the upper line.{_undrawn_text('first', drawn_metrics, drawable_bins)}",
            plots=[
                Plot(
                    metric=name,
                    low=f"{drawable_bins[name][0].low:.4g}",
                    high=f"{drawable_bins[name][-1].high:.4g}",
                    bars=drawable_bins[name],
                )
                for name in drawn_metrics
            ],
            header=("metric", "scores", "cases"),
            rows=[
                (name, score_bin.text, f"{score_bin.count:,}")
                for name, bins in drawable_bins.items()
                for score_bin in bins
                if score_bin.count
            ],
        )
    yield from _time_charts(report)
    yield from _risk_charts(report)


def _undrawn_text(words: str, drawn_metrics: Sized, metrics: Sized) -> str:
    """Return the sentence that says how many of the metrics are drawn; empty if all are drawn."""
    if len(drawn_metrics) == len(metrics):
        return ""
    return f" The {words} {len(drawn_metrics)} of {len(metrics):,} metrics are drawn; the table has all."


def _time_charts(report: Report) -> Iterator[Chart]:
    """Yield a chart of prediction times against scores, with circles whose size is the number of cases.

    Yield nothing if no prediction has a time. Metrics with scores outside 0 to 1 are left out.
    """
    scores, metrics = timed_scores(report["cases"]), report["metrics"]
    timed_metrics = {name: scores[name] for name, stats in metrics.items() if name in scores and is_unit(stats)}
    if not timed_metrics:
        return
    drawn_metrics = sorted(timed_metrics, key=lambda name: -len(timed_metrics[name][0]))[:TIMED_METRICS]
    circles_of_metrics = {name: circles(timed_metrics[name]) for name in timed_metrics if name in drawn_metrics}
    plots = []
    for name, metric_circles in circles_of_metrics.items():
        low, high = min(circle.seconds for circle in metric_circles), max(circle.seconds for circle in metric_circles)
        max_count, width = max(circle.count for circle in metric_circles), math.log(high / low) if high > low else 1.0
        dots = [
            Dot(
                x=math.log(circle.seconds / low) / width,
                y=1 - circle.score,
                radius=MIN_RADIUS + (MAX_RADIUS - MIN_RADIUS) * math.sqrt(circle.count / max_count),
            )
            for circle in metric_circles
        ]
        plots.append(Plot(metric=name, low=f"{low:.3g} s", high=f"{high:.3g} s", dots=dots))
    yield Chart(
        name="times",
        title="Prediction time and score",
        description="A circle stands for cases with about the same score and time, a larger one for more of them; the"
        " lines are at the scores 0, 0.5 and 1, the scale of the time is logarithmic. Predictions that took no time are"
        " left out, and metrics with scores that are not between 0 and 1."
        f"{_undrawn_text('most frequent', drawn_metrics, timed_metrics)}",
        plots=plots,
        header=("metric", "prediction took", *(f"score {band}" for band in BANDS)),
        rows=[(name, *row) for name, points in timed_metrics.items() for row in bands(points)],
        is_open=any(
            len({circle.score for circle in metric_circles}) > 2 for metric_circles in circles_of_metrics.values()
        ),
    )


def _risk_charts(report: Report) -> Iterator[Chart]:
    """Yield the risk-coverage curve; nothing if the run has no abstentions and only one confidence."""
    points = risks(report["cases"])
    if not points or (len(points) == 1 and COVERAGE not in report["metrics"]):
        return
    curve = [(point.coverage, 1 - point.risk) for point in points]
    yield Chart(
        name="risks",
        title="Risk and coverage",
        description="How many answers are wrong, of how many questions: to the right the share of questions that the"
        " system answers, upwards the share of these answers that is wrong, from 0 to 1. The large dot is this run; the"
        " others take only answers of at least some “confidence”, a number in the metadata of predictions.",
        plots=[
            Plot(
                metric="risk",
                low="coverage 0",
                high="coverage 1",
                dots=[Dot(x=x, y=y, radius=MIN_RADIUS) for x, y in curve[:-1]]
                + [Dot(x=curve[-1][0], y=curve[-1][1], radius=2 * MIN_RADIUS)],
                curve=curve if len(curve) > 1 else (),
            )
        ],
        header=("confidence", "coverage", "risk", "answers"),
        rows=[
            (
                "any" if point.confidence is None else f"{point.confidence:.6g} and more",
                f"{point.coverage:.3f}",
                f"{point.risk:.3f}",
                f"{point.answers:,}",
            )
            for point in points
        ],
    )


def risks(cases: Iterable[CaseReport]) -> list[Risk]:
    """Return the risk at each confidence, the highest confidence first; the last risk is that of all answers.

    At most POINTS evenly chosen risks are returned. An answer without a numeric `confidence` in its metadata counts as
    least confident. The list is empty without the feature abstention.
    """
    if COVERAGE not in RUN_METRICS.available():
        return []
    coverage, accuracy = RUN_METRICS[COVERAGE].score, RUN_METRICS[ACCURACY].score
    answers: list[tuple[float, float, float]] = []  # confidence, share of the trials that have an answer, score
    case_count = 0
    for case in cases:
        share, score = coverage(case), accuracy(case)
        case_count += share is not None
        if share is not None and score is not None and case["prediction"] is not None:
            confidence = case["prediction"]["metadata"].get("confidence")
            if (
                not isinstance(confidence, int | float)
                or isinstance(confidence, bool)
                or not abs(confidence) < MAX_SIZE
            ):
                confidence = -math.inf  # the system does not state how sure it is
            answers.append((float(confidence), share, score))
    answers.sort(key=lambda answer: -answer[0])
    points: list[Risk] = []
    answer_count = wrong_count = 0.0
    for place, (confidence, share, score) in enumerate(answers, start=1):
        answer_count, wrong_count = answer_count + share, wrong_count + 1 - score
        if place == len(answers) or answers[place][0] != confidence:
            points.append(
                Risk(
                    confidence=None if place == len(answers) else confidence,
                    coverage=answer_count / case_count,
                    risk=wrong_count / place,
                    answers=place,
                )
            )
    step = max(1, math.ceil(len(points) / POINTS))
    return [*points[:-1:step], *points[-1:]]


def is_unit(stats: ScoreStatistics) -> bool:
    """Return whether all scores of a metric lie in the range from 0 to 1."""
    return bool(stats["min"] >= 0.0 and stats["max"] <= 1.0)


def distributions(metrics: Mapping[str, MetricReport], cases: Iterable[CaseReport]) -> dict[str, list[Bin]]:
    """Return the ten bins of each metric's scores by its name; see `distribution`."""
    scores: dict[str, array[float]] = {name: array("d") for name in metrics}
    for case in cases:
        for name, score in case["scores"].items():
            if score is not None and name in scores:
                scores[name].append(score)
    return {name: distribution(stats, scores[name]) for name, stats in metrics.items()}


def distribution(stats: ScoreStatistics, scores: Sequence[float]) -> list[Bin]:
    """Return the numbers of a metric's scores in ten equal bins.

    The bins reach from 0 to 1 if all scores are in that range, else from the lowest to the highest score.
    """
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


def timed_scores(cases: Iterable[CaseReport]) -> Mapping[str, TimedScores]:
    """Return for each metric the seconds of predictions and their scores, as two arrays of the same order.

    Predictions without a measured time and cases without a score are left out.
    """
    scores_by_metric: defaultdict[str, TimedScores] = defaultdict(lambda: (array("d"), array("d")))
    for case in cases:
        seconds = case["prediction"]["seconds"] if case["prediction"] else 0.0
        if seconds >= MIN_SECONDS:
            for name, score in case["scores"].items():
                if score is not None:
                    scores_by_metric[name][0].append(seconds)
                    scores_by_metric[name][1].append(score)
    return scores_by_metric


def circles(points: TimedScores) -> list[Circle]:
    """Return the circles of one metric's timed scores, sorted by time and score.

    Scores are rounded to tenths, and times to quarters of a power of ten.
    """
    counts = Counter(
        (math.floor(math.log10(seconds) * STEPS), round(score * BINS)) for seconds, score in zip(*points, strict=True)
    )
    return [
        Circle(seconds=float(f"{10 ** ((place + 0.5) / STEPS):.3g}"), score=score / BINS, count=count)
        for (place, score), count in sorted(counts.items())
    ]


def bands(points: TimedScores) -> Iterator[tuple[str, ...]]:
    """Yield table rows of one metric: for each power of ten of seconds, the number of scores in each of BANDS."""
    counts: Counter[tuple[int, str]] = Counter()
    for seconds, score in zip(*points, strict=True):
        place = 0 if score == 0 else 3 if score == 1 else 1 if score < 0.5 else 2
        counts[math.floor(math.log10(seconds)), BANDS[place]] += 1
    for power in sorted({power for power, _ in counts}):
        yield f"{10.0**power:g} s to {10.0 ** (power + 1):g} s", *(f"{counts[power, band]:,}" for band in BANDS)
