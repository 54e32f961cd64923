"""Gates: what a whole folder of cases must reach."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from pytest_queryeval.aggregation import CaseJson, group_values, totals
from pytest_queryeval.errors import did_you_mean
from pytest_queryeval.model import Gate, Threshold
from pytest_queryeval.plain import score_text

PASS_RATE = "pass_rate"  # noqa: S105 - no password
WISH = ("folder", "metric", "where", "min", "max")
NOTHING = "no case was evaluated"


def gate_json(gate: Gate, folder: str, *, whole: bool = True) -> dict[str, Any]:
    """A gate as plain values; `folder` is relative to the root of the run, `whole` unless only a part was asked for."""
    return {
        "folder": folder,
        "whole": whole,
        "metric": gate.metric,
        "where": dict(gate.where),
        "min": gate.minimum,
        "max": gate.maximum,
    }


def united(told: Iterable[Iterable[Mapping[str, Any]]]) -> list[dict[str, Any]]:
    """The gates that several processes, hosts or shards have met, each once: by folder, then as its file has them.

    A gate that one of them has twice stays twice. Verdicts are left behind; a gate is `whole` where one of them was
    asked for all of its folder.
    """
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for gates in told:
        times: Counter[tuple[Any, ...]] = Counter()
        for gate in gates:
            wish = (gate["folder"], gate["metric"], gate["min"], gate["max"], *sorted(gate["where"].items()))
            times[wish] += 1
            known = found.setdefault((*wish, times[wish]), {name: gate[name] for name in WISH} | {"whole": False})
            known["whole"] = known["whole"] or gate.get("whole", True)
    return sorted(found.values(), key=lambda gate: PurePosixPath(gate["folder"]).parts)


def unjudged(gate: Mapping[str, Any]) -> dict[str, Any]:
    """A gate of a shard, which sees a part of the cases only: all that is needed to judge it when parts are merged."""
    nothing = {"value": None, "n": 0, "errors": 0, "selected": False}
    return {**gate, **nothing, "ok": None, "reason": "gates are off"}


def judge_all(
    gates: Iterable[Mapping[str, Any]], cases: Sequence[CaseJson], run: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """All gates with their verdicts; `run` has the report's `collected`, `selected`, `broken` and `stopped`."""
    return [
        judge(
            gate,
            cases,
            broken=run["broken"],
            selected=run["selected"] and are_left_out(cases, run["collected"], gate["folder"]),
            stopped=run["stopped"],
        )
        for gate in gates
    ]


def are_left_out(cases: Iterable[CaseJson], collected: Mapping[str, int], folder: str | None = None) -> bool:
    """Whether files, those below a folder if one is given, have more cases than ran, or nothing is known of files.

    `collected` are the numbers of cases by file.
    """
    ran = Counter(case["path"] for case in cases)
    asked = (path for path in collected if folder is None or is_below(path, folder))
    return not collected or any(collected[path] > ran[path] for path in asked)


def judge(
    gate: Mapping[str, Any], cases: Sequence[CaseJson], *, broken: Sequence[str], selected: bool, stopped: bool = False
) -> dict[str, Any]:
    """A gate with its verdict: `ok` is True, False, or None where nothing was left to judge or the run was stopped.

    The gate's folder, the cases' paths and the `broken` files (which could not be read, so the gate is missed) are
    relative to the same root; `selected` tells that the run was told to leave cases out.
    """
    below = [case for case in cases if is_below(case["path"], gate["folder"])]
    fitting = [case for case in below if _fits(case, gate)]
    value, n = _value(gate, fitting)
    verdict = {**gate, "value": value, "n": n, "selected": selected}
    verdict["errors"] = 0 if gate["metric"] == PASS_RATE else totals(fitting)["errors"]
    unread = [path for path in broken if is_below(path, gate["folder"])]
    if unread:
        return verdict | {"ok": False, "reason": f"{unread[0]} could not be read"}
    if stopped:
        return verdict | {"ok": None, "reason": "the run was stopped"}
    if value is None:
        evaluated = any(case["outcome"] != "skipped" for case in fitting)
        if not evaluated and (selected or not gate.get("whole", True)):
            return verdict | {"ok": None, "reason": NOTHING}
        return verdict | {"ok": False, "reason": _unfit(gate, below) or NOTHING}
    threshold = Threshold(minimum=gate["min"], maximum=gate["max"])
    return verdict | {"ok": threshold.admits(value), "reason": ""}


def _unfit(gate: Mapping[str, Any], cases: Sequence[CaseJson]) -> str:
    """What the gate asks for that no case below it has; empty where there are no cases, or each wish has its own."""
    for group, value in gate["where"].items():
        known = {name for case in cases for name in group_values(case, group)}
        if cases and value not in known:
            return f"no case has the {group} '{value}'{did_you_mean(value, known)}"
    return ""


def is_below(path: str, folder: str) -> bool:
    """Whether a path of a report lies below a gate's folder, both with forward slashes."""
    return PurePosixPath(path).is_relative_to(folder)


def _fits(case: CaseJson, gate: Mapping[str, Any]) -> bool:
    return all(value in group_values(case, group) for group, value in gate["where"].items())


def _value(gate: Mapping[str, Any], cases: Sequence[CaseJson]) -> tuple[float | None, int]:
    """The mean of the metric over the cases that have a score, or the pass rate; None without any."""
    if gate["metric"] == PASS_RATE:
        counts = totals(cases)
        n = counts["passed"] + counts["failed"] + counts["missed"] + counts["errors"]
        return (counts["passed"] / n if n else None), n
    scores = [case["scores"].get(gate["metric"]) for case in cases]
    known = [score for score in scores if score is not None]
    return (math.fsum(known) / len(known) if known else None), len(known)  # the same in any order of cases


def gate_text(gate: Mapping[str, Any]) -> str:
    """A gate and its value in words."""
    low = "" if gate["min"] is None else f" at least {gate['min']:g}"
    high = "" if gate["max"] is None else f" at most {gate['max']:g}"
    where = "".join(f" where {name} is {value}" for name, value in gate["where"].items())
    errors = f", {gate['errors']:,} in error not counted" if gate["errors"] else ""
    part = " (on a selection)" if gate.get("selected") or not gate.get("whole", True) else ""
    value = f"{score_text(gate['value'])} over {gate['n']:,}{errors}{part}"
    if gate["value"] is None or gate["reason"]:
        value = gate["reason"]
    return f"{gate['metric']}{low}{' and' if low and high else ''}{high}{where} in {gate['folder'] or '.'}: {value}"
