"""Shows how runs went over time: metrics, what changed between runs, since when something is worse; also as a page."""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from os.path import realpath
from pathlib import Path

from pytest_queryeval.cli.output import Result, first_lines, notifier, with_progress
from pytest_queryeval.core.errors import ReportError, path_hint
from pytest_queryeval.core.model import PASS_RATE, Outcome
from pytest_queryeval.core.report import Report, SuiteChange
from pytest_queryeval.features.history.leaderboard_blocks import check_targets, json_document, markdown_document
from pytest_queryeval.features.history.past_runs import History, PastRun, RunChange, history
from pytest_queryeval.reports import write_files, write_whole
from pytest_queryeval.reports.blocks import Block, Sentence, Table, Untrusted, text_lines
from pytest_queryeval.reports.html import SCRIPT_FOLDER, Scale, assets, line, template
from pytest_queryeval.reports.sections import (
    MAX_EXAMPLES,
    change_sentence,
    flips,
    leading_names,
    side_counts,
)
from pytest_queryeval.results.aggregation import TOTAL_OF, reached_count
from pytest_queryeval.results.gates import gate_requirement
from pytest_queryeval.results.report_file import read_report
from pytest_queryeval.text.formatting import (
    format_amount,
    format_interval,
    format_score,
    minute_of,
    p_text,
    pluralize,
    signed,
)

EXAMPLE = "queryeval history reports -o history.html"
OK, FAILED = 0, 1
FORMATS: Mapping[str, Callable[[History], bytes]] = {
    ".html": lambda timeline: history_page(timeline),
    ".json": json_document,
    ".md": lambda timeline: markdown_document(history_blocks(timeline)),
}
HERE = Path(__file__).parent
TRENDS_SHOWN = 48  # next to that of the history's metric
RUNS_HEADER = (
    *("run", "created", "verdict", "cases", "mean", "95 % interval", "change", "p"),
    *("fixes", "regressions", "new errors", "gates missed", "changed besides"),
)
NOTE = (
    "change: since the previous run, over the cases of both; p: two-sided paired test of 'nothing changed', not "
    "adjusted for the number of runs; intervals: clustered by sources where there are five or more"
)
CHANGED_RUNS = 10  # whose changes besides the system the terminal lists
CASES_LISTED = 5
# As pytest shows outcomes; a case that was not in a run has a dash.
LETTERS: Mapping[Outcome | None, str] = {
    "passed": ".",
    "failed": "F",
    "missed": "M",
    "error": "E",
    "skipped": "s",
    "xfailed": "x",
    "xpassed": "X",
}
NOT_THERE = "-"
OUTCOMES_LISTED = 60  # of the last runs


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments DIR, `--by` and `--output`."""
    reports_help = "a report.json, or a folder with reports at any depth: each of its *.json that is one"
    parser.add_argument("paths", nargs="+", type=Path, metavar="DIR", help=reports_help)
    parser.add_argument("--by", metavar="METRIC", default=PASS_RATE, help="the metric to follow (default: %(default)s)")
    output = f"write the history: PATH{', PATH'.join(FORMATS)}; may be given again"
    parser.add_argument("-o", "--output", action="append", type=Path, default=[], metavar="PATH", help=output)


def run(arguments: argparse.Namespace) -> Result:
    """Read reports one at a time, write their history to the targets, and return it as lines and JSON.

    The exit status is 0 even if results became worse, and 1 if a target could not be written. Files that cannot be used
    are named and skipped. Raise `ReportError` for a path that does not exist, if there is no report, and if none has
    the metric. Also raise it for a target of another format, or that is one of the reports.
    """
    targets: Sequence[Path] = arguments.output
    check_targets(targets, FORMATS, "history")
    files: list[Path] = []
    for path in arguments.paths:
        if path.is_dir():
            files += sorted(file for file in path.rglob("*.json") if file.is_file())
        elif path.exists():
            files.append(path)
        else:
            raise ReportError(f"{path}: no such file or folder{path_hint(path)}")
    replaced = {realpath(target): target for target in targets}
    skipped: list[str] = []
    try:
        timeline = history(_reports(list(dict.fromkeys(files)), replaced, skipped), arguments.by)
    except OverflowError as error:
        raise ReportError("scores are too large to be averaged") from error
    for used in (*(run["path"] for run in timeline["runs"]), *timeline["repeated"]):
        if realpath(used) in replaced:
            raise ReportError(
                f"{replaced[realpath(used)]}: is a report of the history, and would be lost: write to another file"
            )
    if not timeline["runs"]:
        more = f"; skipped: {skipped[0]}" if skipped else ""
        raise ReportError(f"no report below {' or '.join(map(str, arguments.paths))}{more}")
    skipped += [f"{path}: the same report as another one" for path in timeline["repeated"]]
    written_files = write_files(targets, lambda target: write_whole(target, FORMATS[target.suffix](timeline)))
    width = shutil.get_terminal_size().columns
    lines = [*text_lines(history_blocks(timeline), width), *first_lines([f"skipped: {reason}" for reason in skipped])]
    data = {**timeline, "skipped": skipped, **written_files.data()}
    return Result(status=FAILED if written_files.problems else OK, lines=[*lines, *written_files.lines()], data=data)


def _reports(files: Sequence[Path], replaced: Container[str], skipped: list[str]) -> Iterator[tuple[str, Report]]:
    """Yield the paths and reports of files; append to `skipped` why a file is no report.

    Files in `replaced`, such as an earlier history, are left out of `skipped`.
    """
    for path in with_progress(files, notifier("history"), total=len(files), noun="report"):
        try:
            yield str(path), read_report(path)
        except ReportError as error:
            if realpath(path) not in replaced:
                skipped.append(str(error))


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """The mean of a run in the plot of a metric; places are percentages of the plot."""

    run: int
    """The index of the run."""
    x: float
    """The place from the left."""
    y: float
    """The place of the mean from the top."""
    ends: tuple[float, float] | None
    """The places of the ends of the mean's interval from the top, the lower end first; None without an interval."""
    text: str
    """The text that the plot shows on hover."""


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
    """The index of the first run."""
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
        changed=[number for number, run in enumerate(runs) if run["step"] and other_changes(run["step"])],
        worse=worse,
        since={run for _, run in worse},
        # The mean of a run that left cases out may be of easier or harder ones.
        partial=[n for n, run in enumerate(runs) if run["stopped"] or run["selected"] or run["totals"]["not_run"]],
        other_changes=other_changes,
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
    """Yield a trend for the metric of the history, for the other metrics, and for measures such as seconds.

    A trend has points with intervals, in stretches of consecutive runs that have the metric, and a summary in words.
    """
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
            if run["step"] is not None and (changes := other_changes(run["step"])):
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


def history_blocks(history: History) -> Iterator[Block]:
    """Yield what is worse and since when, the runs, what changed besides the system, and the cases that flip most."""
    yield from findings(history)
    yield runs_table(history)
    yield (NOTE,)
    changed_runs = [run for run in history["runs"] if run["step"] is not None and other_changes(run["step"])]
    if len(changed_runs) > CHANGED_RUNS:
        yield (
            f"runs before which more changed than the system: {len(changed_runs):,}, of which the last {CHANGED_RUNS}:",
        )
    for run in changed_runs[-CHANGED_RUNS:]:
        if run["step"] is not None:
            yield ("changed besides the system in ", *_run_name(run), ": ", *other_changes(run["step"]))
    if history["cases"]:
        yield (f"cases that went from right to wrong or back: {history['flipped']:,}; those that did so most often:",)
        rows = [
            (Untrusted(case["nodeid"]), f"{case['flips']:,}", letters(case["outcomes"]))
            for case in history["cases"][:CASES_LISTED]
        ]
        yield Table(("case", "flips", "outcomes"), rows)
        meanings = {**{letter: str(outcome) for outcome, letter in LETTERS.items()}, NOT_THERE: "not run"}
        shown_letters = set().union(*(strip for _, _, strip in rows))
        legend = ", ".join(f"{letter} {meaning}" for letter, meaning in meanings.items() if letter in shown_letters)
        yield (f"outcomes, the latest to the right: {legend}",)


def findings(history: History) -> Iterator[Sentence]:
    """Yield sentences on the metric and the gates that are worse: since which run, and what that run changed."""
    runs, fall, explained_runs = history["runs"], history["fall"], set[int]()
    if len(runs) == 1:
        yield ("only one run, so there is none to compare it with",)
    if fall is not None:
        yield (
            *(Untrusted(history["metric"]), f" {'rose' if history['better'] == 'lower' else 'fell'} from "),
            *(f"{format_score(fall['before'])} in ", *_run_name(runs[fall["best"]])),
            *(f" to {format_score(fall['after'])} in ", *_run_name(runs[fall["since"]])),
            f" over {pluralize(fall['common'], 'case')}, and has not recovered (p {p_text(fall['p'])})",
            *_what_changed(runs[fall["since"]]),
        )
        explained_runs.add(fall["since"])
    for missed in history["missed_gates"]:
        met, since, gate = missed["met"], missed["since"], Untrusted(gate_requirement(missed["gate"]))
        if met is None:
            first = (", which was first evaluated in ", *_run_name(runs[since])) if since else ()
            yield ("no run has met the gate ", gate, *first)
            continue
        change = () if since in explained_runs else _what_changed(runs[since])
        yield (
            "the gate ",
            gate,
            ", was last met in ",
            *_run_name(runs[met]),
            " and is missed since ",
            *_run_name(runs[since]),
            *change,
        )
        explained_runs.add(since)
    if len(runs) > 1 and fall is None:
        worse = "above" if history["better"] == "lower" else "below"
        yield (Untrusted(history["metric"]), f" of the last run is not significantly {worse} that of any run before")


def _what_changed(run: PastRun) -> Sentence:
    """Return the end of a sentence on what a run changed against the run before; empty for the first run."""
    step = run["step"]
    if step is None:
        return ()
    counts = f"; against the run before it has {', '.join(side_counts(step).values())}; "
    changes = other_changes(step)
    return (counts, *(("besides the system changed: ", *changes) if changes else ("the suite did not change",)))


def other_changes(step: RunChange) -> Sentence:
    """Return what changed besides the system since the run before; empty if no change is known."""
    if not step["common"]:
        return ("no case is in both runs",)
    changes = [*step["changes"], *([SuiteChange(what="cases added", cases=step["added"])] if step["added"] else [])]
    parts: list[str] = []
    for change in changes:
        parts += [", ", Untrusted(change["what"]), f" ({len(change['cases']):,})" if change["cases"] else ""]
    return tuple(filter(None, parts[1:]))


def _run_name(run: PastRun) -> Sentence:
    """Return the name of a run, or its path, and its time."""
    return (Untrusted(run["name"] or run["path"]), f" of {minute_of(run['created'])}")


def runs_table(history: History) -> Table:
    """Return a table of the runs, the oldest first; `NOTE` explains the columns.

    A row has the mean of the history's metric, the change since the run before with its p, flips, and missed gates.
    """
    rows = []
    for run in history["runs"]:
        mean, step = run["metrics"].get(history["metric"]), run["step"]
        change = p = fixes = regressions = errors = changes = "-"
        if step is not None:
            change = change if step["change"] is None else signed(step["change"])
            p = p if step["p"] is None else p_text(step["p"])
            fixes, regressions, errors = (
                f"{len(sides):,}" for sides in (step["fixes"], step["regressions"], step["errors"])
            )
            changes = f"{len(step['changes']) + bool(step['added']):,}"
        rows.append(
            (
                Untrusted(run["name"] or run["path"]),
                minute_of(run["created"]),
                run["state"],
                f"{reached_count(run['totals']):,}",
                format_score(mean["mean"] if mean else None),
                (format_interval(mean["ci95"]) if mean else "") or "-",
                *(change, p, fixes, regressions, errors),
                gates_text(run),
                changes,
            )
        )
    return Table(RUNS_HEADER, rows)


def gates_text(run: PastRun) -> str:
    """Return how many of a run's evaluated gates are missed, as in `1 of 3`; a dash if none was evaluated."""
    evaluated = [gate["ok"] for gate in run["gates"] if gate["ok"] is not None]
    return f"{evaluated.count(False):,} of {len(evaluated):,}" if evaluated else "-"


def letters(outcomes: Sequence[Outcome | None]) -> str:
    """Return the outcomes of the last OUTCOMES_LISTED runs as letters; a missed case is an `M`."""
    return "".join(LETTERS.get(outcome, NOT_THERE) for outcome in outcomes[-OUTCOMES_LISTED:])


def change_sentences(step: RunChange) -> Iterator[Sentence]:
    """Yield sentences on what a run changed against the run before, with the names of some cases."""
    yield from flips(step)
    if step["added"]:
        yield (f"cases added ({len(step['added']):,}): ", *leading_names(step["added"], MAX_EXAMPLES))
    yield from map(change_sentence, step["changes"])
