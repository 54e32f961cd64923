"""The charts of a page, drawn while the page is made: they need no script and print."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass
from typing import TypeAlias

from pytest_queryeval.core.model import GroupName
from pytest_queryeval.core.report import Report, ScoreStatistics
from pytest_queryeval.reports.html.bins import BANDS, bands, circles, distribution, is_unit, timed_scores
from pytest_queryeval.reports.html.drawing import Picture, Spec, drawn, names_shown
from pytest_queryeval.text.formatting import format_score

# Per metric and value, its statistics.
Found: TypeAlias = Mapping[str, Mapping[str, ScoreStatistics]]
Rows: TypeAlias = Sequence[tuple[str, ...]]

GROUPS_SHOWN: tuple[GroupName, ...] = ("difficulty", "kind", "tag")
METRICS_SHOWN = 48
VALUES_SHOWN = 10
TIMED_METRICS = 4
COLUMNS, WIDTH = 4, 156  # of small charts, in pixels: with their labels they fit into a window of 1000
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


def charts(report: Report) -> Iterator[Chart]:
    """Yield the charts for which the report has data."""
    if not report["metrics"]:
        return
    yield from _means(report)
    for group in GROUPS_SHOWN:
        yield from _by_group(report, group)
    yield _distributions(report)
    yield from _times(report)


def _means(report: Report) -> Iterator[Chart]:
    """Yield a chart with one line for each metric, where several have scores between 0 and 1."""
    units = {name: stats for name, stats in report["metrics"].items() if is_unit(stats)}
    if len(units) < 2:
        return
    first = list(units)[:METRICS_SHOWN]
    names = names_shown(first)
    found = {"": {names[name]: units[name] for name in first}}
    yield Chart(
        name="means",
        title="Every metric",
        description="The mean of each metric whose scores lie between 0 and 1, with its 95 % confidence interval."
        f"{_left_out('first', first, units)}",
        picture=drawn(
            {
                "data": {"values": _dots(found)},
                "width": 400,
                "height": {"step": 18},
                **_dots_and_intervals(list(names.values()), found),
            }
        ),
        header=("metric", "mean", "95 % interval", "n"),
        rows=[_cells(stats, name) for name, stats in units.items()],
    )


def _by_group(report: Report, group: GroupName) -> Iterator[Chart]:
    """Yield a small chart for each metric that several values of the group have, with one line for each value."""
    members = report["groups"][group]
    largest = sorted(members, key=lambda value: -members[value]["totals"]["cases"])[:VALUES_SHOWN]
    values = names_shown(value for value in members if value in largest)
    names = names_shown(report["metrics"])
    found: dict[str, Mapping[str, ScoreStatistics]] = {}
    for name in report["metrics"]:
        of_values = {values[value]: members[value]["metrics"].get(name) for value in values}
        known = {shown: stats for shown, stats in of_values.items() if stats}
        if len(known) > 1:
            found[names[name]] = known
    if not found:
        return
    few = f" Of {len(members):,}, here are the {VALUES_SHOWN} with the most cases." * (len(members) > len(values))
    first = dict(list(found.items())[:METRICS_SHOWN])
    yield Chart(
        name=group,
        title=f"By {group}",
        description=f"The mean of each metric by {group}, with its 95 % confidence interval."
        f"{_left_out('first', first, found)}{few}",
        picture=drawn(_faceted(_dots(first), _dots_and_intervals(list(values.values()), first))),
        header=("metric", group, "mean", "95 % interval", "n"),
        rows=[_cells(stats, name, value) for name, by_value in found.items() for value, stats in by_value.items()],
    )


def _left_out(which: str, shown: Sized, of: Sized) -> str:
    """Return what a chart says about the metrics that it does not draw."""
    if len(shown) == len(of):
        return ""
    return f" The {which} {len(shown)} of {len(of):,} metrics are drawn; the table has all."


def _dots(found: Found) -> list[Spec]:
    return [
        {"metric": name, "value": value, "mean": stats["mean"], "low": low, "high": high}
        for name, by_value in found.items()
        for value, stats in by_value.items()
        for low, high in (stats["ci95"] or (stats["mean"], stats["mean"]),)
    ]


def _dots_and_intervals(values: Sequence[str], found: Found) -> Spec:
    """Return one line for each value: a dot at the mean, a rule along the interval."""
    are_units = all(is_unit(stats) for by_value in found.values() for stats in by_value.values())
    scale = {"scale": {"domain": [0, 1]}} if are_units else {}
    x = {"type": "quantitative", "title": None, "axis": {"tickCount": 5}, **scale}
    y = {"field": "value", "type": "nominal", "title": None, "sort": values}
    interval = {"x": {"field": "low", **x}, "x2": {"field": "high"}}
    dot = {"type": "point", "filled": True, "size": 50, "opacity": 1}
    return {
        "encoding": {"y": y},
        "layer": [
            {"mark": "rule", "encoding": interval},
            {"mark": dot, "encoding": {"x": {"field": "mean", **x}}},
        ],
    }


def _distributions(report: Report) -> Chart:
    names = names_shown(report["metrics"])
    found = {shown: distribution(name, report["metrics"][name], report["cases"]) for name, shown in names.items()}
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
        picture=drawn(_faceted(bars, spec, height=70)),
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
    )


def _faceted(rows: Sequence[Spec], spec: Spec, *, height: int = 0) -> Spec:
    """Return one small chart for each metric, in the order of the report, each with its own axis."""
    order = list(dict.fromkeys(row["metric"] for row in rows))
    header = {"labelLimit": NAME_SHARE * WIDTH, "title": None}
    return {
        "data": {"values": rows},
        "facet": {"field": "metric", "type": "nominal", "sort": order, "header": header},
        "columns": COLUMNS,
        "spec": {"width": WIDTH, "height": height or {"step": 18}, **spec},
        "resolve": {"scale": {"x": "independent"}, "axis": {"x": "independent"}},
    }


def _cells(stats: ScoreStatistics, *names: str) -> tuple[str, ...]:
    interval = " to ".join(map(format_score, stats["ci95"] or ()))
    return (*names, format_score(stats["mean"]), interval, f"{stats['n']:,}")
