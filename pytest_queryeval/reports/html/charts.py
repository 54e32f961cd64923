"""The charts of a page, drawn while the page is made: they need no script and print."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass
from typing import TypeAlias

from pytest_queryeval.core.report import Report
from pytest_queryeval.reports.html.bins import BANDS, Bin, bands, circles, distribution, is_unit, timed_scores
from pytest_queryeval.reports.html.drawing import Picture, Spec, drawn, names_shown

Rows: TypeAlias = Sequence[tuple[str, ...]]

METRICS_SHOWN = 48
TIMED_METRICS = 4
COLUMNS, WIDTH = 4, 1100  # of small charts beside each other, and of all of them in pixels
GAP = 40  # between small charts, with the labels of an axis
NAME_SHARE = 0.88  # of the width of a small chart: the page may have a wider font than Vega measures
TIME_AND_SCORE: Spec = {
    "x": {
        "field": "seconds",
        "type": "quantitative",
        "scale": {"type": "log"},
        "axis": {"tickCount": 4, "format": "~g"},
        "title": "seconds",
    },
    "y": {
        "field": "score",
        "type": "quantitative",
        "scale": {"domain": [0, 1]},
        "axis": {"tickCount": 3},
        "title": None,
    },
    "size": {"field": "cases", "type": "quantitative", "scale": {"range": [12, 260]}, "legend": None},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A picture, None where it could not be drawn, with its description, and its numbers as a table."""

    name: str
    title: str
    description: str
    picture: Picture | None
    header: tuple[str, ...]
    rows: Rows
    is_open: bool = True


def charts(report: Report) -> Iterator[Chart]:
    """Yield the charts that say something: none of scores that have only one or two values."""
    found = {name: distribution(name, stats, report["cases"]) for name, stats in report["metrics"].items()}
    spread = {name: bins for name, bins in found.items() if sum(own.count > 0 for own in bins) > 2}
    if spread:
        yield _distributions(spread)
    yield from _times(report)


def _left_out(which: str, shown: Sized, of: Sized) -> str:
    """Return what a chart says about the metrics that it does not draw."""
    if len(shown) == len(of):
        return ""
    return f" The {which} {len(shown)} of {len(of):,} metrics are drawn; the table has all."


def _distributions(spread: Mapping[str, Sequence[Bin]]) -> Chart:
    names = names_shown(spread)
    found = {shown: spread[name] for name, shown in names.items()}
    first = list(found)[:METRICS_SHOWN]
    bars = [
        {"metric": name, "low": own.low, "high": own.high, "share": own.share} for name in first for own in found[name]
    ]
    x = {"field": "low", "type": "quantitative", "bin": {"binned": True}, "title": None, "axis": {"tickCount": 4}}
    y = {"field": "share", "type": "quantitative", "title": None, "axis": {"format": "%", "tickCount": 3}}
    spec = {"mark": {"type": "bar", "binSpacing": 1}, "encoding": {"x": x, "x2": {"field": "high"}, "y": y}}
    return Chart(
        name="distributions",
        title="Score distributions",
        description="Where the scores of each metric lie: the height of a bar is the share of its cases."
        f"{_left_out('first', first, found)}",
        picture=drawn(_faceted(bars, spec, height=90)),
        header=("metric", "scores", "cases"),
        rows=[(name, own.text, f"{own.count:,}") for name, bins in found.items() for own in bins if own.count],
    )


def _times(report: Report) -> Iterator[Chart]:
    """Yield prediction times against scores, as circles whose size is the number of cases."""
    scores, metrics = timed_scores(report["cases"]), report["metrics"]
    timed = {name: scores[name] for name, stats in metrics.items() if name in scores and is_unit(stats)}
    if not timed:
        return
    largest = sorted(timed, key=lambda name: -len(timed[name]))[:TIMED_METRICS]
    names = names_shown(timed)
    rows = [
        {"metric": names[name], "seconds": own.seconds, "score": own.score, "cases": own.count}
        for name in timed
        if name in largest
        for own in circles(timed[name])
    ]
    yield Chart(
        name="times",
        title="Prediction time and score",
        description="A circle stands for cases with about the same score and time, a larger one for more of them."
        " Predictions that took no time are left out, and metrics with scores that are not between 0 and 1."
        f"{_left_out('most frequent', largest, timed)}",
        picture=drawn(_faceted(rows, {"mark": "circle", "encoding": TIME_AND_SCORE}, height=110)),
        header=("metric", "prediction took", *(f"score {band}" for band in BANDS)),
        rows=[(names[name], *row) for name, found in timed.items() for row in bands(found)],
        is_open=any(len({row["score"] for row in rows if row["metric"] == name}) > 2 for name in names.values()),
    )


def _faceted(rows: Sequence[Spec], spec: Spec, *, height: int) -> Spec:
    """Return one small chart for each metric, in the order of the report, each with its own axis."""
    order = list(dict.fromkeys(row["metric"] for row in rows))
    columns = min(COLUMNS, len(order))
    width = WIDTH / columns - GAP
    header = {"labelLimit": NAME_SHARE * width, "title": None}
    return {
        "data": {"values": rows},
        "facet": {"field": "metric", "type": "nominal", "sort": order, "header": header},
        "columns": columns,
        "spec": {"width": width, "height": height, **spec},
        "resolve": {"scale": {"x": "independent"}, "axis": {"x": "independent"}},
    }
