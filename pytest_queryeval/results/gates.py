"""Gates: what all cases of a folder must reach together."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import PurePosixPath
from typing import Any, Literal, TypeAlias

from pytest_queryeval.core.errors import did_you_mean
from pytest_queryeval.core.model import OF_TRIALS, PASS_RATE, REGRESSIONS, RULES, Case, Gate, Threshold
from pytest_queryeval.languages import difficulty_of
from pytest_queryeval.metrics import METRICS, applies_to, better_of, need_answers
from pytest_queryeval.results.aggregation import CaseJson, group_values, totals
from pytest_queryeval.results.baseline.regression import measured, nothing
from pytest_queryeval.results.scope import folder_text, is_below, matches, where_text
from pytest_queryeval.text.plain import counted, score_text, told

HIGHER = "higher"
GATE_FIELDS = ("folder", "metric", "where", "min", "max")
GATE_WORDS = {True: "met", False: "missed", None: "not evaluated"}
NOTHING = "no case was evaluated"
NO_BASELINE = "no baseline was given"
NOT_COMPARABLE = "no case has a value in the baseline as well"
OFF = "gates are off"
# Whether a gate needs all of its cases, is content with those that ran, or is left to `queryeval merge`.
GateMode: TypeAlias = Literal["complete", "selection", "off"]


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A case that has no result; `path` is where it stands, from the root of the run."""

    path: str
    case: Case


def gate_json(gate: Gate, folder: str) -> dict[str, Any]:
    """What a gate requires, as plain values; `folder` is relative to the root of the run."""
    return {
        "folder": folder,
        "metric": gate.metric,
        "where": dict(gate.where),
        "min": gate.minimum,
        "max": gate.maximum,
        **({} if gate.no_regression is None else {"no_regression": asdict(gate.no_regression), **_better(gate.metric)}),
        **({} if gate.max_regressions is None else {"max_regressions": gate.max_regressions}),
    }


def _better(metric: str) -> dict[str, str]:
    return {"better": HIGHER if metric == PASS_RATE else better_of(metric)}


def with_gate_metrics(case: Case, gates: Iterable[Gate], path: str) -> Case:
    """The case with the metrics that the gates above it name and it does not request itself, as thresholds are.

    `path` is where the case stands, relative to the root of the run. A case without a source whose own metrics compare
    texts is not run for the sake of a gate.
    """
    requested = (*case.metrics, *case.thresholds)
    added = dict.fromkeys(
        gate.metric
        for gate in gates
        if gate.metric not in (*requested, *OF_TRIALS, PASS_RATE, REGRESSIONS)
        and applies_to(gate.metric, case.kind)
        and matches(gate.where, partial(_values_of, case, path))
        and (case.source is not None or need_answers(requested) or not need_answers([gate.metric]))
    )
    return replace(case, metrics=(*case.metrics, *added)) if added else case


def _values_of(case: Case, path: str, group: str) -> Sequence[str]:
    """`group_values` of a case that has not run."""
    match group:
        case "tag":
            return case.tags
        case "file":
            return (path,)
        case "difficulty":
            value = difficulty_of(case)
        case "source":
            value = told(case.source.name) if case.source else None
        case _:
            value = case.kind
    return () if value is None else (value,)


def is_relative(gate: Mapping[str, Any]) -> bool:
    """Whether a gate compares with a baseline."""
    return any(gate.get(rule) is not None for rule in RULES)


def merge_gates(several: Iterable[Iterable[Mapping[str, Any]]]) -> list[dict[str, Any]]:
    """The gates that several processes, hosts or shards have met, each once: by folder, then as its file has them.

    A gate that one of them has twice stays twice. Results are left behind, but for the greatest number of `cases`.
    """
    fields = (*GATE_FIELDS, *RULES, "better")
    found: dict[tuple[str, int], dict[str, Any]] = {}
    for gates in several:
        times: Counter[str] = Counter()
        for gate in gates:
            required = {name: gate[name] for name in fields if name in GATE_FIELDS or gate.get(name) is not None}
            key = json.dumps(required, sort_keys=True)
            times[key] += 1
            known = found.setdefault((key, times[key]), required | {"cases": None})
            known["cases"] = max((n for n in (known["cases"], gate.get("cases")) if n is not None), default=None)
    return sorted(found.values(), key=lambda gate: PurePosixPath(gate["folder"]).parts)


def count_cases(gate: Mapping[str, Any], cases: Iterable[CaseJson], left_out: Iterable[LeftOut]) -> int:
    """How many cases a gate is about, those that ran and those that did not; skipped ones do not count."""
    folder, where = gate["folder"], gate["where"]
    ran = [case for case in cases if case["outcome"] != "skipped" and is_below(case["path"], folder)]
    rest = [each for each in left_out if is_below(each.path, folder)]
    return sum(matches(where, partial(group_values, case)) for case in ran) + sum(
        matches(where, partial(_values_of, each.case, each.path)) for each in rest
    )


def are_left_out(cases: Iterable[CaseJson], collected: Mapping[str, int]) -> bool:
    """Whether files have more cases than ran, or nothing is known of files; `collected` is their numbers by file."""
    ran = Counter(case["path"] for case in cases)
    return not collected or any(number > ran[path] for path, number in collected.items())


def evaluate_gate(
    gate: Mapping[str, Any],
    cases: Sequence[CaseJson],
    *,
    unreadable_files: Iterable[str] = (),
    mode: GateMode = "complete",
    baseline: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """A gate with its result: `ok` is True, False, or None where it is not evaluated, for a `reason`.

    `cases` are those that ran; the gate's own `cases` is how many it is about, None where that is not known. Where
    more of them than ran could change the result, a gate with limits is not evaluated, unless the `mode` is
    `selection`. A gate that compares with a `baseline` looks at pairs, whatever else there is, and is not evaluated
    without a baseline. `unreadable_files` are suite files that could not be read: a gate above one of them is missed.
    """
    below = [case for case in cases if is_below(case["path"], gate["folder"])]
    matching = [case for case in below if matches(gate["where"], partial(group_values, case))]
    ran = sum(case["outcome"] != "skipped" for case in matching)
    number = None if gate["cases"] is None else max(gate["cases"], ran)
    unread = next((path for path in unreadable_files if is_below(path, gate["folder"])), None)
    found: dict[str, Any] = {"value": None, "n": 0, "errors": 0}
    if mode == "off":
        ok, reason = None, OFF
    elif is_relative(gate) and baseline is None:
        ok, reason = None, NO_BASELINE
    else:
        found = _measured(gate, matching, baseline)
        ok, reason = found.pop("is_met"), ""
        rest = None if number is None else number - ran
        if unread is not None:
            ok, reason = False, f"{unread} could not be read"
        elif found["value"] is None and rest == 0:
            ok, reason = False, _why_nothing(gate, matching, below)
        elif is_relative(gate):
            ok, reason = (None, NOT_COMPARABLE if ran else NOTHING) if found["value"] is None else (ok, "")
        elif rest != 0 and (mode == "complete" or found["value"] is None):
            ok = _settled(gate, found["value"], found["n"], rest)
            reason = _how_many(ran, number) if ok is None else ""
    return {**gate, **found, "cases": number, "ran": ran, "ok": ok, "reason": reason}


def _how_many(ran: int, number: int | None) -> str:
    if number is None:
        return f"{counted(ran, 'case')} ran, but other suite files below could not be read"
    return f"{ran:,} of {counted(number, 'case')} ran"


def _settled(gate: Mapping[str, Any], value: float | None, n: int, rest: int | None) -> bool | None:
    """Whether a gate is met whatever the rest of its cases would score, or missed whatever; None where they decide."""
    name = gate["metric"]
    most = 1.0 if name in (PASS_RATE, *OF_TRIALS) else METRICS[name].max_score if name in METRICS else None
    if most is None or rest is None or value is None:
        return None
    total = value * n
    low = total / (n + rest)
    high = max(value, (total + most * rest) / (n + rest))
    limits = Threshold(minimum=gate["min"], maximum=gate["max"])
    if limits.admits(low) and limits.admits(high):
        return True
    is_below_all = gate["min"] is not None and not Threshold(minimum=gate["min"]).admits(high)
    is_above_all = gate["max"] is not None and not Threshold(maximum=gate["max"]).admits(low)
    return False if is_below_all or is_above_all else None


def _why_nothing(gate: Mapping[str, Any], matching: Sequence[CaseJson], below: Sequence[CaseJson]) -> str:
    """Why a gate has no value though all of its cases ran."""
    for group, value in gate["where"].items():
        known = {} if group == "not" else {name: None for case in below for name in group_values(case, group)}
        if known and value not in known:
            return f"no case in this run has the {group} '{value}'{did_you_mean(value, known)}"
    evaluated = [case for case in matching if case["outcome"] not in ("skipped", "error")]
    if is_relative(gate):
        return NOT_COMPARABLE if evaluated else NOTHING
    return f"no case has a score of {gate['metric']}" if evaluated and gate["metric"] != PASS_RATE else NOTHING


def _measured(gate: Mapping[str, Any], cases: Sequence[CaseJson], baseline: Mapping[str, Any] | None) -> dict[str, Any]:
    """The `value` that a gate is about and `is_met`, of how many cases, and how many are in error beside them."""
    if is_relative(gate):
        return nothing() if baseline is None else measured(gate, cases, baseline)
    value, n = _value(gate, cases)
    is_met = value is not None and Threshold(minimum=gate["min"], maximum=gate["max"]).admits(value)
    errors = 0 if gate["metric"] == PASS_RATE else totals(cases)["errors"]
    return {"value": value, "n": n, "errors": errors, "is_met": is_met}


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
    """What a gate is about, where, and what came of it, in words."""
    return f"{_subject(gate)} in {folder_text(gate['folder'])}: {_result_text(gate)}"


def gate_line(gate: Mapping[str, Any]) -> str:
    """`gate_text` with the file that states the gate first, as pytest's short summary has places."""
    place = PurePosixPath(gate["folder"] or ".") / "queryeval.yaml"
    return f"{place} - {_subject(gate)}: {_result_text(gate)}"


def _subject(gate: Mapping[str, Any]) -> str:
    where = where_text(gate["where"])
    if gate.get("max_regressions") is not None:
        return f"at most {counted(gate['max_regressions'], 'regression')}{where}"
    if rule := gate.get("no_regression"):
        tolerated = f" of more than {rule['max_drop']:g}" if rule["max_drop"] else ""
        proven = f"without a proven {_worsening(gate)}{tolerated} from the baseline"
        return f"{gate['metric']} {proven} (alpha {rule['alpha']:g}){where}"
    return f"{gate['metric']}{where}"


def _result_text(gate: Mapping[str, Any]) -> str:
    if gate["value"] is None or (gate["ok"] is False and gate["reason"]):
        return str(gate["reason"])
    if gate["ok"] is None:
        return f"{gate['reason']} ({_value_text(gate)})"
    about = [] if is_relative(gate) else [counted(gate["n"], "case")]
    about += [f"{gate['errors']:,} in error not counted"] * bool(gate["errors"])
    about += [_how_many(gate["ran"], gate["cases"])] * (gate["ran"] != gate["cases"])
    return f"{_value_text(gate)} ({', '.join(about)})" if about else _value_text(gate)


def _value_text(gate: Mapping[str, Any]) -> str:
    """The value and what is required of it."""
    if gate.get("max_regressions") is not None:
        return f"{gate['value']:,} of {gate['n']:,}"
    if not gate.get("no_regression"):
        low = [] if gate["min"] is None else [f"at least {gate['min']:g}"]
        high = [] if gate["max"] is None else [f"at most {gate['max']:g}"]
        return f"{_distinct_text(gate)}, needs {' and '.join(low + high)}"
    least, change = gate["detectable"], _worsening(gate)
    proven = f"a {change} of {score_text(least)} is proven in 4 of 5 runs" if least is not None else ""
    means = f"{score_text(gate['before'])} before, {score_text(gate['after'])} now over {gate['n']:,}"
    return f"{means} (p {gate['p']:.3f}; {proven or f'so few cases can prove no {change}'})"


def _distinct_text(gate: Mapping[str, Any]) -> str:
    """The value with as many digits as it takes to see on which side of the limits it lies."""
    limits, value = Threshold(minimum=gate["min"], maximum=gate["max"]), gate["value"]
    texts = (score_text(value), f"{value:.6g}", repr(value))
    return next((text for text in texts if limits.admits(float(text)) is limits.admits(value)), texts[-1])


def _worsening(gate: Mapping[str, Any]) -> str:
    return "drop" if gate.get("better", HIGHER) == HIGHER else "rise"
