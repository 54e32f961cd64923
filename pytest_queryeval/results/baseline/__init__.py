"""A run compared with an earlier one: which cases flipped, how metrics changed, and what changed besides the system."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import PurePath

from pytest_queryeval.core.model import ALPHA, PASS_RATE
from pytest_queryeval.core.report import BaselineCounts, BaselineReport, CaseReport, MetricChange, Report, RunResults
from pytest_queryeval.results.aggregation import costs
from pytest_queryeval.results.baseline.changes import changes, unknown
from pytest_queryeval.results.baseline.flips import Matched, matched, paired_scores


def compared(before: Report, after: RunResults, *, path: str) -> BaselineReport:
    """Compare a run with a baseline: plain values, complete, the same for the same reports.

    `path` is what the baseline is called, of which an absolute one keeps its name only.
    """
    found = matched(before, after)
    return {
        "path": PurePath(path).name if PurePath(path).is_absolute() else path,
        "created": before["created"],
        "cases": _counts(before, after, found),
        "fixes": found.fixes,
        "regressions": found.regressions,
        "errors": found.errors,
        "metrics": metric_changes(found.common, costs(before["metrics"])),
        "changes": changes(before, after, found),
    }


def _counts(before: RunResults, after: RunResults, found: Matched) -> BaselineCounts:
    return {
        "before": len(before["cases"]),
        "after": len(after["cases"]),
        "common": len(found.common),
        "added": len(found.added),
        "removed": len(found.removed),
        "not_run": len(found.not_run),
        "skipped": len(found.skipped),
        "errors": len(found.errors),
        "unknown": unknown(found),
    }


def metric_changes(common: Sequence[tuple[CaseReport, CaseReport]], lower: Collection[str]) -> dict[str, MetricChange]:
    """The pass rate and each metric, in the order of the cases, over those that have a score in both reports.

    `change` is the mean after less that before, `ci95` its interval, `p` of the two-sided paired test, `p_holm`
    adjusted for all metrics, and `detectable` the smallest drop that the adjusted test would have found in 4 of 5 runs;
    of metrics that are better when `lower`, the smallest rise.
    """
    names = dict.fromkeys((PASS_RATE, *(name for old, new in common for name in (*new["scores"], *old["scores"]))))
    scored = {name: paired_scores(name, common) for name in names}
    scored = {name: scores for name, scores in scored.items() if scores}
    found = {name: _change(scores, of=len(scored), is_cost=name in lower) for name, scores in scored.items()}
    if found:
        from pytest_queryeval.results.baseline.statistics import holm

        adjusted = holm([change["p"] for change in found.values()])
        for change, p in zip(found.values(), adjusted, strict=True):
            change["p_holm"] = p
    return found


def _change(scores: Sequence[tuple[float, float]], *, of: int, is_cost: bool) -> MetricChange:
    """How one of several metrics changed."""
    from pytest_queryeval.results.baseline.statistics import (
        Pairs,
        detectable_drop,
        fitting_test,
        interval,
        mean,
        p_value,
    )

    pairs = Pairs(before=[old for old, _ in scores], after=[new for _, new in scores])
    return {
        "n": len(scores),
        "before": mean(pairs.before),
        "after": mean(pairs.after),
        "change": pairs.change,
        "ci95": interval(pairs),
        "p": p_value(pairs),
        "p_holm": 1.0,
        "test": fitting_test(pairs),
        # Of a side; the strictest that Holm asks for.
        "detectable": detectable_drop(pairs.negated if is_cost else pairs, ALPHA / (2 * of)),
    }
