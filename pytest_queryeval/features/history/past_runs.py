"""Reports of the same suites over time: how results went, what changed between runs, since when something is worse."""

from __future__ import annotations

import json
import zlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise, starmap
from typing import Any, TypeAlias, TypedDict, cast

from pytest_queryeval.core.errors import ReportError, did_you_mean
from pytest_queryeval.core.mappings import grouped
from pytest_queryeval.core.metric import Better
from pytest_queryeval.core.model import ALPHA, PASS_RATE, Outcome
from pytest_queryeval.core.report import (
    Flips,
    GateReport,
    Report,
    RunResults,
    SuiteChange,
    Totals,
)
from pytest_queryeval.features.history.leaderboard import Mean, mean_of, strip_prediction, strip_trials
from pytest_queryeval.results.aggregation import lower_is_better, statistics_of
from pytest_queryeval.results.baseline import MET_BY_OUTCOME, run_difference
from pytest_queryeval.results.baseline.comparison import changes
from pytest_queryeval.results.baseline.pairs import Pairs, compared_scores, mean, score_of
from pytest_queryeval.results.gates import gate_identity
from pytest_queryeval.results.report_file import moment_of
from pytest_queryeval.results.verdict import verdict

MAX_CASES = 200  # of those that flipped
IS_RIGHT: Mapping[Outcome, bool] = {**MET_BY_OUTCOME, "error": False}
# What a comparison with another run does not need of a case: most of a report.
UNUSED: Mapping[str, object] = {
    **dict.fromkeys(("gold", "predicted", "scoring", "difference", "cause")),
    "violations": (),
    "details": {},
    "groups": {},
    "message": "",
}
# A metric's scores of all cases, one list for each run.
Columns: TypeAlias = Sequence[Sequence[float | None]]


class RunChange(Flips):
    """How a run differs from the run before."""

    common: int
    """The number of cases in both runs."""
    change: float | None
    """The change of the mean of the metric, over the cases that have a score in both runs."""
    p: float | None
    """The p value of the two-sided paired test of that change."""
    added: list[str]
    """Node ids of added cases; empty if the run before was not whole."""
    removed: list[str]
    changes: list[SuiteChange]


class PastRun(TypedDict):
    """A run in a history: the facts of its report, its means, and how it differs from the run before."""

    path: str
    name: str
    created: str
    sources: list[str]
    selected: bool
    stopped: bool
    state: str
    """The state of the run's verdict."""
    totals: Totals
    metrics: dict[str, Mean]
    measures: dict[str, Mean]
    gates: list[GateReport]
    step: RunChange | None
    """How the run differs from the run before; None for the first run."""


class Fall(TypedDict):
    """A metric that is worse in all runs from `since` on than in an earlier run; runs are numbered from 0."""

    since: int
    """The first run in which it is worse."""
    best: int
    """The earlier run."""
    common: int
    """The number of cases in both runs."""
    before: float
    """The mean over the common cases in the run `best`."""
    after: float
    """The mean over the common cases in the run `since`."""
    p: float
    """The p value of the one-sided paired test of the last run against the run `best`.

    The p value is multiplied by the number of runs that the last run was compared with.
    """


class MissedGate(TypedDict):
    """A gate that the latest runs miss; runs are numbered from 0."""

    since: int
    """The first of the latest runs that missed the gate at every evaluation."""
    met: int | None
    """The last run that met it; None if no run did."""
    gate: GateReport
    """The gate in the run `since`."""


class CaseHistory(TypedDict):
    """The outcomes of a case in all runs."""

    nodeid: str
    flips: int
    """How often the case went from right to wrong or back."""
    outcomes: list[Outcome | None]
    """The outcome in each run; None for a run without the case."""


class History(TypedDict):
    """The runs of a suite, and what became worse and stayed worse."""

    metric: str
    better: Better
    runs: list[PastRun]
    """The runs, the oldest first."""
    repeated: list[str]
    """The paths of reports with the content of an earlier report."""
    fall: Fall | None
    missed_gates: list[MissedGate]
    flipped: int
    """The number of cases that flipped."""
    cases: list[CaseHistory]
    """Up to MAX_CASES cases that flipped.

    Cases that flipped most often come first; among equals, cases that are wrong in the last run.
    """


def history(reports: Iterable[tuple[str, Report]], metric: str = PASS_RATE) -> History:
    """Return the history of runs from their paths and reports; only one report at a time is kept in memory.

    Runs are sorted by time. A report with the content of another one is only listed in `repeated`. Raise `ReportError`
    if there are runs and none has a score of the metric.
    """
    runs_by_content: dict[bytes, PastRun] = {}
    repeated: list[str] = []
    lower: set[str] = set()
    for content, run, run_costs in starmap(_reduced, reports):
        if content in runs_by_content:
            repeated.append(run["path"])
        else:
            runs_by_content[content] = run
            lower |= run_costs
    metric_names = dict.fromkeys(name for run in runs_by_content.values() for name in (PASS_RATE, *run["metrics"]))
    if metric_names and metric not in metric_names:
        raise ReportError(f"no report has a score of '{metric}'{did_you_mean(metric, metric_names)}")
    ordered = sorted(runs_by_content.items(), key=lambda item: (moment_of(item[1]["created"]), item[1]["path"]))
    runs = [run for _, run in ordered]
    outcomes: defaultdict[str, list[Outcome | None]] = defaultdict(lambda: [None] * len(runs))
    scores: defaultdict[str, list[float | None]] = defaultdict(lambda: [None] * len(runs))
    before: RunResults | None = None
    for number, (content, run) in enumerate(ordered):
        after = cast("RunResults", json.loads(zlib.decompress(content)))
        for case in after["cases"]:
            outcomes[case["nodeid"]][number] = case["outcome"]
            scores[case["nodeid"]][number] = score_of(metric, case)
        run["step"] = _run_change(before, after, metric) if before is not None else None
        before = after
    whole_runs = [number for number, run in enumerate(runs) if not run["stopped"]]
    better: Better = "lower" if metric in lower else "higher"
    cases: list[CaseHistory] = [
        {"nodeid": nodeid, "flips": flips, "outcomes": case_outcomes}
        for nodeid, case_outcomes in outcomes.items()
        if (flips := sum(old is not new for old, new in pairwise(_are_right(case_outcomes))))
    ]
    cases.sort(key=lambda case: (-case["flips"], _are_right(case["outcomes"])[-1], case["nodeid"]))
    return {
        "metric": metric,
        "better": better,
        "runs": runs,
        "repeated": repeated,
        "fall": _fall(list(zip(*scores.values(), strict=True)), whole_runs, better),
        "missed_gates": _missed_gates(runs),
        "flipped": len(cases),
        "cases": cases[:MAX_CASES],
    }


def _reduced(path: str, report: Report) -> tuple[bytes, PastRun, set[str]]:
    """Return the content of a report as bytes, the facts of its run, and the metrics of which less is better.

    The content is compressed JSON of all that comparisons with other runs need.
    """
    run_members = {
        name: value for name, value in report.items() if name in RunResults.__annotations__ and name != "baseline"
    }
    cases: list[Any] = [
        {**case, **UNUSED, "prediction": strip_prediction(case["prediction"]), "trials": strip_trials(case)}
        for case in report["cases"]
    ]
    content = zlib.compress(json.dumps({**run_members, "cases": cases}).encode("ascii"), level=1)
    passed = [(score, case["source"]) for case in report["cases"] if (score := score_of(PASS_RATE, case)) is not None]
    rate = {PASS_RATE: statistics_of(PASS_RATE, *map(list, zip(*passed, strict=True)))} if passed else {}
    run: PastRun = {
        "path": path,
        "name": report["name"],
        "created": report["created"],
        "sources": report["predictor"]["sources"],
        "selected": report["selected"],
        "stopped": report["stopped"] or report["interrupted"],
        "state": verdict(report).state,
        "totals": report["totals"],
        "metrics": {name: mean_of(statistics) for name, statistics in {**rate, **report["metrics"]}.items()},
        "measures": {
            name: {"mean": statistics["mean"], "n": statistics["n"], "ci95": None}
            for name, statistics in report["measures"].items()
        },
        "gates": report["gates"],
        "step": None,
    }
    return content, run, lower_is_better(report["metrics"])


def _run_change(before: RunResults, after: RunResults, metric: str) -> RunChange:
    difference, pairs = run_difference(before, after), Pairs()
    for old, new in difference.common:
        pairs.add(*compared_scores(metric, old, new))
    step: RunChange = {
        "common": len(difference.common),
        "change": None,
        "p": None,
        "regressions": difference.regressions,
        "fixes": difference.fixes,
        "errors": difference.errors,
        "added": [] if before["selected"] or before["stopped"] else difference.added,
        "removed": list(difference.removed),
        "changes": changes(difference),
    }
    if pairs.before:
        # scipy.stats takes long to import.
        from pytest_queryeval.results.baseline.statistics import p_value

        step["change"], step["p"] = pairs.change, p_value(pairs)
    return step


def _fall(columns: Columns, whole_runs: Sequence[int], better: Better) -> Fall | None:
    """Return since when a metric is worse than in an earlier run.

    None if it is not worse in the last of `whole_runs`. The last run is compared with every earlier run. The least p
    decides, multiplied by the number of comparisons, because by chance alone one of many earlier runs is better. Then
    each run between these two is compared with the better run.
    """
    scored = [number for number in whole_runs if any(score is not None for score in columns[number])] if columns else []
    if len(scored) < 2:
        return None
    from pytest_queryeval.results.baseline.statistics import fall_p

    def pairs_of(old: int, new: int) -> Pairs:
        pairs = Pairs()
        for before, after in zip(columns[old], columns[new], strict=True):
            pairs.add(before, after)
        return pairs

    *earlier, last = scored

    def p_of(old: int, new: int) -> float:
        return fall_p(pairs_of(old, new).oriented(better))

    best = min(earlier, key=lambda number: (p_of(number, last), -number))
    p = p_of(best, last) * len(earlier)
    if p > ALPHA:
        return None
    since = last
    for number in reversed(scored[scored.index(best) + 1 : -1]):
        if p_of(best, number) > ALPHA:
            break
        since = number
    pairs = pairs_of(best, since)
    return {
        "since": since,
        "best": best,
        "common": len(pairs.before),
        "before": mean(pairs.before),
        "after": mean(pairs.after),
        "p": p,
    }


def _missed_gates(runs: Sequence[PastRun]) -> list[MissedGate]:
    """Return the gates of the last run that were missed at their last evaluation, and since which run.

    A gate is followed back through the runs until the last run that met it.
    """
    evaluated = grouped(
        (gate_identity(gate), (number, gate))
        for number, run in enumerate(runs)
        for gate in run["gates"]
        if gate["ok"] is not None
    )
    missed_gates: list[MissedGate] = []
    for key in dict.fromkeys(map(gate_identity, runs[-1]["gates"] if runs else ())):
        missed: list[tuple[int, GateReport]] = []
        met: int | None = None
        for number, gate in reversed(evaluated[key]):
            if gate["ok"]:
                met = number
                break
            missed.append((number, gate))
        if missed:
            missed_gates.append({"since": missed[-1][0], "met": met, "gate": missed[-1][1]})
    return missed_gates


def _are_right(outcomes: Iterable[Outcome | None]) -> list[bool]:
    """Return whether a case was right, for each run whose outcome shows it; an error counts as wrong."""
    return [IS_RIGHT[outcome] for outcome in outcomes if outcome is not None and outcome in IS_RIGHT]
