"""A run compared with an earlier one: which cases flipped, how metrics changed, and what changed besides the system."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath
from typing import Any

from pytest_queryeval.aggregation import CaseJson
from pytest_queryeval.baseline.changes import changes, unknown
from pytest_queryeval.baseline.flips import Matched, Told, matched


def compared(before: Told, after: Told, *, path: str) -> dict[str, Any]:
    """What the report of a run says of its baseline: plain values, complete, the same for the same reports.

    Both need `asked`, `broken`, `cases`, `environment`, `selected` and `stopped` of a report; `path` is what the
    baseline is called, of which an absolute one keeps its name only. Gates are compared where both have them.
    """
    found = matched(before, after)
    return {
        "path": PurePath(path).name if PurePath(path).is_absolute() else path,
        "created": before["created"],
        "cases": _counts(before, after, found),
        "fixed": found.fixed,
        "broken": found.broken,
        "errors": found.errors,
        "metrics": metric_changes(found.common),
        "changes": changes(before, after, found),
    }


def _counts(before: Told, after: Told, found: Matched) -> dict[str, int]:
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


def metric_changes(common: Sequence[tuple[CaseJson, CaseJson]]) -> dict[str, dict[str, Any]]:
    """Each metric over the cases that have a score in both reports, in the order in which the cases name them.

    `change` is the mean after less that before, `ci95` its interval, `p` of the two-sided paired test, `p_holm`
    adjusted for all metrics, and `detectable` the smallest drop that so many cases would have shown.
    """
    names = dict.fromkeys(name for old, new in common for name in (*new["scores"], *old["scores"]))
    scored = {name: _scores(name, common) for name in names}
    found = {name: _change(scores) for name, scores in scored.items() if scores}
    if found:
        from pytest_queryeval.baseline.statistics import holm

        adjusted = holm([change["p"] for change in found.values()])
        found = {name: change | {"p_holm": p} for (name, change), p in zip(found.items(), adjusted, strict=True)}
    return found


def _scores(name: str, common: Sequence[tuple[CaseJson, CaseJson]]) -> list[tuple[float, float]]:
    pairs = ((old["scores"].get(name), new["scores"].get(name)) for old, new in common)
    return [(old, new) for old, new in pairs if old is not None and new is not None]


def _change(scores: Sequence[tuple[float, float]]) -> dict[str, Any]:
    from pytest_queryeval.baseline.statistics import Pairs, detectable_drop, fitting_test, interval, mean, p_value

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
        "detectable": detectable_drop(pairs),
    }
