"""A history as a page: since when something is worse, each metric over the runs, what every run changed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from pytest_queryeval.core.model import Outcome
from pytest_queryeval.features.history.history_blocks import NOTE, besides, change_sentences, findings, gates_text
from pytest_queryeval.features.history.past_runs import History, PastRun
from pytest_queryeval.reports.blocks import Untrusted
from pytest_queryeval.reports.html import SCRIPT_FOLDER, Scale, assets, line, template
from pytest_queryeval.reports.sections import p_text
from pytest_queryeval.results.aggregation import TOTAL_OF
from pytest_queryeval.text.formatting import format_amount, format_interval, format_score, minute_of, pluralize, signed

HERE = Path(__file__).parent
TRENDS_SHOWN = 48  # beside that of the history's metric


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """The mean of a run in the plot of a metric. Places are percentages of the plot."""

    run: int
    """The number of the run, from 0."""
    x: float
    """The place from the left."""
    y: float
    """The place of the mean from the top."""
    ends: tuple[float, float] | None
    """The places of the ends of its interval from the top, the lower end first; None without an interval."""
    text: str
    """What the plot shows on hover."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trend:
    """A metric or a measure over the runs."""

    name: str
    summary: str
    scale: Scale
    stretches: Sequence[Sequence[Point]]
    """The points of consecutive runs that have the metric, a list for each stretch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Streak:
    """Consecutive runs in which a case had the same outcome."""

    first: int
    """The number of the first run, from 0."""
    runs: int
    """The number of runs."""
    outcome: Outcome | None
    """None if the case was not in the runs."""
    words: str
    text: str


def history_page(history: History) -> bytes:
    """Return the HTML of a history, in which every text of a suite or a system is escaped."""
    runs = history["runs"]
    first, *other_trends = _trends(history)
    worse = [(m["gate"]["metric"], m["since"]) for m in history["missed_gates"] if m["met"] is not None]
    if history["fall"] is not None:
        worse.append((history["metric"], history["fall"]["since"]))
    text = template(HERE / "history.html.jinja").render(
        history=history,
        title=line("".join(next(findings(history)))),
        findings=list(findings(history)),
        is_untrusted=lambda part: isinstance(part, Untrusted),
        first=first,
        others=other_trends[:TRENDS_SHOWN],
        left_out=other_trends[TRENDS_SHOWN:],
        trends=[first, *other_trends],
        runs=list(enumerate(runs)),
        changed=[number for number, run in enumerate(runs) if run["step"] and besides(run["step"])],
        worse=worse,
        since={run for _, run in worse},
        # The mean of a run that left cases out may be of easier or harder ones.
        partial=[n for n, run in enumerate(runs) if run["stopped"] or run["selected"] or run["totals"]["not_run"]],
        besides=besides,
        change_sentences=change_sentences,
        gates_text=gates_text,
        minute_of=minute_of,
        format_interval=format_interval,
        signed=signed,
        p_text=p_text,
        note=NOTE,
        cases=[(case, list(_streaks(case["outcomes"], runs))) for case in history["cases"]],
        outcomes=[outcome for outcome in TOTAL_OF if any(outcome in case["outcomes"] for case in history["cases"])],
        **assets(SCRIPT_FOLDER / "text.js", SCRIPT_FOLDER / "themes.js", HERE / "history.js"),
    )
    return text.encode(errors="backslashreplace")


def _trends(history: History) -> Iterator[Trend]:
    """Yield the metric of the history, the other metrics, and the means of what calls took."""
    runs = history["runs"]
    figures = [{**run["measures"], **run["metrics"]} for run in runs]
    metrics = dict.fromkeys((history["metric"], *(name for run in runs for name in run["metrics"])))
    for name in metrics | dict.fromkeys(name for run in figures for name in run):
        number = format_score if name in metrics else format_amount
        values = [run.get(name) for run in figures]
        statistics = [value for value in values if value is not None]
        means = [value["mean"] for value in statistics]
        scale = Scale.over([end for value in statistics for end in (value["mean"], *(value["ci95"] or ()))] or [0.0])
        points: list[Point | None] = []
        for place, (run, value) in enumerate(zip(runs, values, strict=True)):
            if value is None:
                points.append(None)
                continue
            text = f"{_caption(run)}: {number(value['mean'])}"
            if interval := value["ci95"]:
                text += f" ({format_interval(interval)})"
            if run["step"] is not None and (changes := besides(run["step"])):
                text += f"; changed besides the system: {line(''.join(changes))}"
            ends = (100 - scale.at(interval[0]), 100 - scale.at(interval[1])) if interval else None
            x = round(100 * (place + 0.5) / len(runs), 2)
            points.append(Point(run=place, x=x, y=100 - scale.at(value["mean"]), ends=ends, text=text))
        summary = f"{name} over {pluralize(len(means), 'run')}"
        if means:
            lowest, highest = number(min(means)), number(max(means))
            summary += (
                f": {number(means[0])} in the first, {number(means[-1])} in the last, {lowest} to {highest} in all"
            )
        stretches = [[point for point in group if point] for is_known, group in groupby(points, bool) if is_known]
        yield Trend(name=name, summary=summary, scale=scale, stretches=stretches)


def _streaks(outcomes: Sequence[Outcome | None], runs: Sequence[PastRun]) -> Iterator[Streak]:
    for outcome, group in groupby(range(len(runs)), outcomes.__getitem__):
        numbers = list(group)
        ends = " to ".join(dict.fromkeys((_caption(runs[numbers[0]]), _caption(runs[numbers[-1]]))))
        words = (outcome or "not in the run").replace("_", " ")
        text = f"{words}: {ends} ({pluralize(len(numbers), 'run')})"
        yield Streak(first=numbers[0], runs=len(numbers), outcome=outcome, words=words, text=text)


def _caption(run: PastRun) -> str:
    return f"{minute_of(run['created'])} {line(run['name'] or run['path'])}"
