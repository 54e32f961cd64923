"""Gates: what a whole folder of cases must reach."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from functools import lru_cache
from pathlib import PurePosixPath
from typing import Any

from pytest_queryeval.aggregation import CaseJson, group_values, totals
from pytest_queryeval.errors import did_you_mean
from pytest_queryeval.metrics import better_of
from pytest_queryeval.model import PASS_RATE as PASS_RATE
from pytest_queryeval.model import RULES, Gate, Threshold
from pytest_queryeval.plain import score_text

HIGHER = "higher"
WISH = ("folder", "metric", "where", "min", "max")
ASKED = (*WISH, *RULES, "better")
GATE_WORDS = {True: "met", False: "missed", None: "not judged"}
NOTHING = "no case was evaluated"
NO_BASELINE = "no baseline was given"
NOT_COMPARABLE = "no case has a value in the baseline as well"


def gate_json(gate: Gate, folder: str, *, whole: bool = True) -> dict[str, Any]:
    """A gate as plain values; `folder` is relative to the root of the run, `whole` unless only a part was asked for."""
    return {
        "folder": folder,
        "whole": whole,
        "metric": gate.metric,
        "where": dict(gate.where),
        "min": gate.minimum,
        "max": gate.maximum,
        **({} if gate.no_regression is None else {"no_regression": asdict(gate.no_regression), **_better(gate.metric)}),
        **({} if gate.max_broken is None else {"max_broken": gate.max_broken}),
    }


def _better(metric: str) -> dict[str, str]:
    return {"better": HIGHER if metric == PASS_RATE else better_of(metric)}


def is_relative(gate: Mapping[str, Any]) -> bool:
    """Whether a gate compares with a baseline."""
    return any(gate.get(rule) is not None for rule in RULES)


def united(told: Iterable[Iterable[Mapping[str, Any]]]) -> list[dict[str, Any]]:
    """The gates that several processes, hosts or shards have met, each once: by folder, then as its file has them.

    A gate that one of them has twice stays twice. Verdicts are left behind; a gate is `whole` where one of them was
    asked for all of its folder.
    """
    found: dict[tuple[str, int], dict[str, Any]] = {}
    for gates in told:
        times: Counter[str] = Counter()
        for gate in gates:
            asked = {name: gate[name] for name in ASKED if name in WISH or gate.get(name) is not None}
            wish = json.dumps(asked, sort_keys=True)
            times[wish] += 1
            known = found.setdefault((wish, times[wish]), asked | {"whole": False})
            known["whole"] = known["whole"] or gate.get("whole", True)
    return sorted(found.values(), key=lambda gate: PurePosixPath(gate["folder"]).parts)


def unjudged(gate: Mapping[str, Any]) -> dict[str, Any]:
    """A gate of a shard, which sees a part of the cases only: all that is needed to judge it when parts are merged."""
    nothing = {"value": None, "n": 0, "errors": 0, "selected": False}
    return {**gate, **nothing, "ok": None, "reason": "gates are off"}


def judge_all(
    gates: Iterable[Mapping[str, Any]],
    cases: Sequence[CaseJson],
    run: Mapping[str, Any],
    baseline: Mapping[str, Any] | None = None,
) -> list[dict[str, Any]]:
    """All gates with their verdicts; `run` has the report's `collected`, `selected`, `broken` and `stopped`.

    `baseline` is the report to compare with, where there is one.
    """
    return [
        judge(
            gate,
            cases,
            broken=run["broken"],
            selected=run["selected"] and are_left_out(cases, run["collected"], gate["folder"]),
            stopped=run["stopped"],
            baseline=baseline,
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
    gate: Mapping[str, Any],
    cases: Sequence[CaseJson],
    *,
    broken: Sequence[str],
    selected: bool,
    stopped: bool = False,
    baseline: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """A gate with its verdict: `ok` is True, False, or None where nothing was left to judge or the run was stopped.

    The gate's folder, the cases' paths and the `broken` files (which could not be read, so the gate is missed) are
    relative to the same root; `selected` tells that the run was told to leave cases out. A gate that compares with a
    `baseline` is not judged without one.
    """
    below = [case for case in cases if is_below(case["path"], gate["folder"])]
    fitting = [case for case in below if _fits(case, gate)]
    found = _measured(gate, fitting, baseline)
    is_met = found.pop("is_met")
    verdict = {**gate, **found, "selected": selected}
    unread = [path for path in broken if is_below(path, gate["folder"])]
    if is_relative(gate) and baseline is None:
        return verdict | {"ok": None, "reason": NO_BASELINE}
    if unread:
        return verdict | {"ok": False, "reason": f"{unread[0]} could not be read"}
    if stopped:
        return verdict | {"ok": None, "reason": "the run was stopped"}
    if found["value"] is None:
        ok, reason = _without_value(gate, fitting, below, is_part=selected or not gate.get("whole", True))
        return verdict | {"ok": ok, "reason": reason}
    return verdict | {"ok": is_met, "reason": ""}


def _without_value(
    gate: Mapping[str, Any], fitting: Sequence[CaseJson], below: Sequence[CaseJson], *, is_part: bool
) -> tuple[bool | None, str]:
    """The verdict and its reason where no case has a value; of a part of a folder other cases may have one."""
    evaluated = [case for case in fitting if case["outcome"] != "skipped"]
    if is_relative(gate):
        reason, may_be_elsewhere = NOT_COMPARABLE if evaluated else NOTHING, True
    else:
        scored = [case for case in evaluated if case["outcome"] != "error"]  # the others might have had one
        may_be_elsewhere = not evaluated or (bool(scored) and not any(gate["metric"] in c["scores"] for c in scored))
        reason = f"no case has a score of {gate['metric']}" if scored and gate["metric"] != PASS_RATE else NOTHING
    if is_part and may_be_elsewhere:
        return None, reason
    return False, _unfit(gate, below) or reason


def _measured(gate: Mapping[str, Any], cases: Sequence[CaseJson], baseline: Mapping[str, Any] | None) -> dict[str, Any]:
    """The `value` that a gate is judged on and `is_met`, of how many cases, and how many are in error beside them."""
    if is_relative(gate):
        from pytest_queryeval.baseline.regression import measured, nothing

        return nothing() if baseline is None else measured(gate, cases, baseline)
    value, n = _value(gate, cases)
    is_met = value is not None and Threshold(minimum=gate["min"], maximum=gate["max"]).admits(value)
    errors = 0 if gate["metric"] == PASS_RATE else totals(cases)["errors"]
    return {"value": value, "n": n, "errors": errors, "is_met": is_met}


def _unfit(gate: Mapping[str, Any], cases: Sequence[CaseJson]) -> str:
    """What the gate asks for that no case below it has; empty where there are no cases, or each wish has its own."""
    for group, value in gate["where"].items():
        known = {name for case in cases for name in group_values(case, group)}
        if cases and value not in known:
            return f"no case has the {group} '{value}'{did_you_mean(value, known)}"
    return ""


@lru_cache(maxsize=4_096)  # as many cases are in a file
def is_below(path: str, folder: str) -> bool:
    """Whether a path lies below a folder, both as reports have them: from the root, above which `..` leads."""
    parts, above = PurePosixPath(path).parts, PurePosixPath(folder).parts
    if set(above) == {".."}:  # a folder above the root holds the root, and all that is no further up
        return parts[:1] != ("/",) and parts.count("..") <= len(above)
    return parts[: len(above)] == above and parts[len(above) :][:1] not in (("..",), ("/",))


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
    where = "".join(f" where {name} is {value}" for name, value in gate["where"].items())
    errors = f", {gate['errors']:,} in error not counted" if gate["errors"] else ""
    part = " (on a selection)" if gate.get("selected") or not gate.get("whole", True) else ""
    value = f"{_value_text(gate)}{errors}{part}"
    if gate["value"] is None or gate["reason"]:
        value = gate["reason"]
    return f"{_wish_text(gate)}{where} in {gate['folder'] or '.'}: {value}"


def _wish_text(gate: Mapping[str, Any]) -> str:
    if gate.get("max_broken") is not None:
        return f"at most {gate['max_broken']:,} broken"
    if wish := gate.get("no_regression"):
        tolerated = f" of more than {wish['max_drop']:g}" if wish["max_drop"] else ""
        proven = f"without a proven {_worsening(gate)}{tolerated} from the baseline"
        return f"{gate['metric']} {proven} (alpha {wish['alpha']:g})"
    low = "" if gate["min"] is None else f" at least {gate['min']:g}"
    high = "" if gate["max"] is None else f" at most {gate['max']:g}"
    return f"{gate['metric']}{low}{' and' if low and high else ''}{high}"


def _value_text(gate: Mapping[str, Any]) -> str:
    if gate["value"] is None:
        return ""
    if gate.get("max_broken") is not None:
        return f"{gate['value']:,} of {gate['n']:,}"
    if not gate.get("no_regression"):
        return f"{score_text(gate['value'])} over {gate['n']:,}"
    least, change = gate["detectable"], _worsening(gate)
    proven = f"a {change} of {score_text(least)} is proven in 4 of 5 runs" if least is not None else ""
    means = f"{score_text(gate['before'])} before, {score_text(gate['after'])} now over {gate['n']:,}"
    return f"{means} (p {gate['p']:.3f}; {proven or f'so few cases can prove no {change}'})"


def _worsening(gate: Mapping[str, Any]) -> str:
    return "drop" if gate.get("better", HIGHER) == HIGHER else "rise"
