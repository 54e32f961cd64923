"""Gates: what all cases of a folder must reach together."""

from __future__ import annotations

import json
import math
from array import array
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import PurePosixPath
from typing import Literal, NamedTuple, TypeAlias, assert_never, cast

from pytest_queryeval.core.errors import did_you_mean
from pytest_queryeval.core.model import (
    BASELINE_RULES,
    GROUPS,
    OF_TRIALS,
    PASS_RATE,
    REGRESSIONS,
    Case,
    Gate,
    GroupName,
    Threshold,
)
from pytest_queryeval.core.report import CaseReport, GateMeasurement, GateReport, PendingGate, Report
from pytest_queryeval.languages import difficulty_of, features_of
from pytest_queryeval.metrics import METRICS, applies_to, better_of, need_answers
from pytest_queryeval.results.aggregation import group_values
from pytest_queryeval.results.baseline.pairs import PASS_SCORES
from pytest_queryeval.results.baseline.regression import ComparedCases
from pytest_queryeval.results.case_store import CasesByNodeid
from pytest_queryeval.results.measures import measures_of
from pytest_queryeval.results.scope import ScopeIndex, folder_text, is_below, where_text
from pytest_queryeval.text.escaping import utf8_safe
from pytest_queryeval.text.formatting import format_amount, format_score, limits_text, pluralize, signed
from pytest_queryeval.text.redaction import redact

GATE_WORDS = {True: "met", False: "missed", None: "not evaluated"}
NOTHING = "no case was evaluated"
NO_BASELINE = "no baseline was given"
NOT_COMPARABLE = "no case has a value in the baseline as well"
OFF = "gates are off"
# Evaluate gates on all of their cases, on those that ran, or leave them to `queryeval merge`.
GateMode: TypeAlias = Literal["complete", "selection", "off"]


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A case without a result; `path` is that of its file, relative to the root of the run."""

    path: str
    case: Case


@dataclass(frozen=True, slots=True)
class EarlyDecision:
    """Whether a gate is met, as decided `after` so many `of` the cases that were to run."""

    is_met: bool
    after: int
    of: int


def pending_gate(gate: Gate, folder: str) -> PendingGate:
    """Return what a gate requires, as plain values; `folder` is relative to the root of the run."""
    pending: PendingGate = {
        "type": "limits",
        "folder": folder,
        "metric": gate.metric,
        "where": gate.where,
        "min": gate.minimum,
        "max": gate.maximum,
        "cases": None,
    }
    if gate.is_sum:
        pending["type"] = "sum"
    if gate.no_regression is not None:
        pending["type"] = "no_regression"
        pending["no_regression"] = {"alpha": gate.no_regression.alpha, "max_drop": gate.no_regression.max_drop}
        pending["better"] = "higher" if gate.metric == PASS_RATE else better_of(gate.metric)
    if gate.max_regressions is not None:
        pending["type"] = "max_regressions"
        pending["max_regressions"] = gate.max_regressions
    return pending


def with_gate_metrics(cases: Iterable[tuple[Case, str]], gates: Sequence[Gate]) -> list[Case]:
    """Return the cases of a suite with the metrics that the gates above it name and a case does not request itself.

    Each case comes with the path of its file, relative to the root of the run. A case without a source whose own
    metrics compare texts is not run for a gate alone. A sum needs no metric: it is one of numbers that are known of
    every call.
    """
    metrics = dict.fromkeys(gate.metric for gate in gates if not gate.is_sum)
    # What the cases of a suite have in common, which are most of them, is looked up once.
    indexes: dict[tuple[str, bool, tuple[str, ...]], tuple[list[str], ScopeIndex]] = {}
    scored: list[Case] = []
    for case, path in cases:
        requested, has_source = case.requested_metrics, case.source is not None
        key = case.kind, has_source, requested
        if key not in indexes:
            addable = {
                metric
                for metric in metrics
                if metric not in (*requested, *OF_TRIALS, PASS_RATE, REGRESSIONS)
                and applies_to(metric, case.kind)
                and (has_source or need_answers(requested) or not need_answers([metric]))
            }
            adding = [gate for gate in gates if gate.metric in addable and not gate.is_sum]
            # All of these gates are above the suite, wherever its cases are: their folders do not matter.
            index = ScopeIndex(("", gate.where) for gate in adding)
            indexes[key] = [gate.metric for gate in adding], index
        of_gates, index = indexes[key]
        numbers = index.scopes_of("", partial(_values_of, case, path))
        added = dict.fromkeys(of_gates[number] for number in numbers)
        scored.append(replace(case, metrics=(*case.metrics, *added)) if added else case)
    return scored


def _values_of(case: Case, path: str, group: GroupName) -> Sequence[str]:
    """Return what `group_values` returns, for a case that has not run."""
    value: str | None
    match group:
        case "tag":
            return case.tags
        case "feature":
            return features_of(case)
        case "file":
            value = path
        case "difficulty":
            value = difficulty_of(case)
        case "source":
            value = utf8_safe(redact(case.source.name)) if case.source else None
        case "kind":
            value = case.kind
        case _:
            assert_never(group)
    return () if value is None else (value,)


def is_relative(gate: PendingGate) -> bool:
    """Return whether a gate compares with a baseline."""
    return gate["type"] in BASELINE_RULES


def merge_gates(several: Iterable[Iterable[PendingGate]]) -> list[PendingGate]:
    """Return the gates of several processes or shards, each once, by folder and then in the order of its file.

    A gate that one of them has twice stays twice. Results are removed, but for the greatest number of `cases`.
    """
    found: dict[tuple[str, int], PendingGate] = {}
    for gates in several:
        times: Counter[str] = Counter()
        for gate in gates:
            required = {name: value for name, value in gate.items() if name in PendingGate.__annotations__}
            pending = cast("PendingGate", required)
            key = gate_key(pending)
            times[key] += 1
            known = found.setdefault((key, times[key]), pending)
            known["cases"] = max((n for n in (known["cases"], gate["cases"]) if n is not None), default=None)
    return sorted(found.values(), key=lambda gate: PurePosixPath(gate["folder"]).parts)


def gate_key(gate: PendingGate) -> str:
    """Return what tells a gate from others: what it requires of which cases."""
    return json.dumps({**gate, "cases": None}, sort_keys=True)


def scope_index(gates: Iterable[PendingGate]) -> ScopeIndex:
    """Return the index in which the gates about a case are looked up, by their numbers in order."""
    return ScopeIndex((gate["folder"], gate["where"]) for gate in gates)


def count_cases(gates: Sequence[PendingGate], cases: Iterable[CaseReport], left_out: Iterable[LeftOut]) -> list[int]:
    """Return how many cases each gate is about, those that ran and those that did not; skipped ones do not count."""
    numbers, index = [0] * len(gates), scope_index(gates)
    for number in chain(
        *(gates_about(index, case) for case in cases if case["outcome"] != "skipped"),
        *(gates_to_be_about(index, other.case, other.path) for other in left_out),
    ):
        numbers[number] += 1
    return numbers


def gates_about(index: ScopeIndex, case: CaseReport) -> list[int]:
    """Return the numbers of the gates that are about a case."""
    return index.scopes_of(case["path"], partial(group_values, case))


def gates_to_be_about(index: ScopeIndex, case: Case, path: str) -> list[int]:
    """Return the numbers of the gates about a case that has not run; `path` is that of its file."""
    return index.scopes_of(path, partial(_values_of, case, path))


def are_left_out(cases: Iterable[CaseReport], collected: Mapping[str, int]) -> bool:
    """Return whether cases were left out, or it is unknown; `collected` is the number of cases by file."""
    ran = Counter(case["path"] for case in cases)
    return not collected or any(number > ran[path] for path, number in collected.items())


def evaluate_gates(
    gates: Iterable[PendingGate],
    cases: Iterable[CaseReport],
    *,
    unreadable_files: Iterable[str] = (),
    mode: GateMode = "complete",
    baseline: Report | None = None,
    decide: Callable[[PendingGate], EarlyDecision | None] | None = None,
) -> list[GateReport]:
    """Return gates with their results: `ok` is True, False, or None where one is not evaluated, for a `reason`.

    `cases` are those that ran, which are read once; a gate's own `cases` is how many it is about, None where that is
    not known. A gate with limits is not evaluated where the cases that did not run could change the result, unless the
    `mode` is `selection`. A gate that compares with a `baseline` uses the cases in both reports, and is not evaluated
    without a baseline. `unreadable_files` are suite files that could not be read: a gate above one of them is missed.
    What `decide` returns counts where some of the cases of a gate were not run for it.
    """
    gates, unreadable_files = list(gates), list(unreadable_files)
    earlier: Mapping[str, CaseReport] | None = None
    if baseline is not None:
        earlier = CasesByNodeid(baseline["cases"] if any(map(is_relative, gates)) else ())
    # Gates that differ in their limits only are evaluated on the same numbers.
    keys = [gate_key({**gate, "min": None, "max": None}) for gate in gates]
    evidence = {
        key: GateEvidence(gate, earlier, counts_errors=decide is not None)
        for key, gate in zip(keys, gates, strict=True)
    }
    distinct, existing = list(evidence.values()), GroupValues(gates)
    index = scope_index(each.gate for each in distinct)
    for case in cases if gates else ():
        existing.add(case)
        for number in gates_about(index, case):
            distinct[number].add(case)
    return [
        evidence[key].result(
            gate, unreadable_files, mode, existing.below(gate["folder"]), decide(gate) if decide is not None else None
        )
        for key, gate in zip(keys, gates, strict=True)
    ]


class GroupValues:
    """The values that cases have, below the folders of gates and of the groups that their `where` names."""

    def __init__(self, gates: Iterable[PendingGate]) -> None:
        self._by_folder: dict[str, dict[GroupName, dict[str, None]]] = {}
        for gate in gates:
            by_group = self._by_folder.setdefault(gate["folder"], {})
            by_group.update({group: {} for group in GROUPS if group in gate["where"]})
        self._folders = list(self._by_folder)
        self._index = ScopeIndex((folder, {}) for folder in self._folders)

    def add(self, case: CaseReport) -> None:
        """Add the values of a case."""
        for number in gates_about(self._index, case):
            for group, values in self._by_folder[self._folders[number]].items():
                values.update(dict.fromkeys(group_values(case, group)))

    def below(self, folder: str) -> Mapping[GroupName, Collection[str]]:
        """Return the values of the cases below the folder of a gate, by group."""
        return self._by_folder[folder]


class GateEvidence:
    """What a gate is evaluated on: numbers of its cases, which are read once, and of which none is kept.

    Other gates may be evaluated on it that require another least or greatest value of the same.
    """

    def __init__(self, gate: PendingGate, earlier: Mapping[str, CaseReport] | None, *, counts_errors: bool) -> None:
        self.gate = gate
        self._earlier, self._counts_errors = earlier, counts_errors
        self._compared = ComparedCases(gate)
        self._ran = self._errors = self._errors_with_score = 0
        self._is_evaluated = self._is_cut = False
        self._scores, self._scores_with_errors = array("d"), array("d")

    def add(self, case: CaseReport) -> None:
        """Count a case of the run that the gate is about."""
        self._ran += case["outcome"] not in ("skipped", "not_run")
        self._is_cut |= case["outcome"] == "not_run"
        self._is_evaluated |= case["outcome"] not in ("skipped", "error")
        if not is_relative(self.gate):
            self._measure(case)
        elif self._earlier is not None and (earlier := self._earlier.get(case["nodeid"])) is not None:
            self._compared.add(earlier, case)

    def _measure(self, case: CaseReport) -> None:
        """Add what a case has of the metric, or tells of the calls whose sum has limits."""
        metric, is_error = self.gate["metric"], case["outcome"] == "error"
        if self._counts_errors and (score := score_with_errors(self.gate, case)) is not None:
            self._scores_with_errors.append(score)
            self._errors_with_score += is_error and metric != PASS_RATE
        if self.gate["type"] == "sum":
            calls = [value for name, value in measures_of(case) if name == metric]
            self._scores.extend([math.fsum(calls)] if calls else [])
            self._errors += is_error and not calls
        elif metric == PASS_RATE:
            self._scores.extend([PASS_SCORES[case["outcome"]]] if case["outcome"] in PASS_SCORES else [])
        else:
            self._scores.extend([score] if (score := case["scores"].get(metric)) is not None else [])
            self._errors += is_error

    def result(
        self,
        gate: PendingGate,
        unreadable_files: Iterable[str],
        mode: GateMode,
        existing: Mapping[GroupName, Collection[str]],
        decision: EarlyDecision | None,
    ) -> GateReport:
        """Return a gate with its result.

        `existing` are the values that cases below its folder have, the other arguments those of `evaluate_gates`.
        """
        ran = self._ran
        number = None if gate["cases"] is None else max(gate["cases"], ran)
        unread = next((path for path in unreadable_files if is_below(path, gate["folder"])), None)
        found: GateMeasurement = {"value": None, "n": 0, "errors": 0}
        ok: bool | None = None
        if mode == "off":
            reason = OFF
        elif is_relative(gate) and self._earlier is None:
            reason = NO_BASELINE
        elif decision is not None and self._is_cut and self._scores_with_errors:
            found = self._decided(decision)
            ok, reason = decision.is_met, ""
        else:
            found, ok = self._measurement(gate)
            reason, value = "", found["value"]
            rest = None if number is None else number - ran
            if unread is not None:
                ok, reason = False, f"{unread} could not be read"
            elif value is None and rest == 0:
                ok, reason = False, self._why_nothing(existing)
            elif is_relative(gate):
                ok, reason = (None, NOT_COMPARABLE if ran else NOTHING) if value is None else (ok, "")
            elif rest != 0 and (mode == "complete" or value is None):
                ok = _result_without_rest(gate, value, found["n"], rest)
                reason = _how_many(ran, number) if ok is None else ""
        return {**gate, **found, "cases": number, "ran": ran, "ok": ok, "reason": reason}

    def _decided(self, decision: EarlyDecision) -> GateMeasurement:
        """Return the mean in which a case in error counts as 0, which was `decided` before all cases ran."""
        scores = self._scores_with_errors
        return {
            "value": math.fsum(scores) / len(scores),
            "n": len(scores),
            "errors": self._errors_with_score,
            "decided": {"after": decision.after, "of": decision.of},
        }

    def _measurement(self, gate: PendingGate) -> tuple[GateMeasurement, bool]:
        """Return the measurement, and whether the gate is met.

        The value of a gate with limits is the mean of its metric over the cases that have a score, or the pass rate;
        that of a sum is over all calls of the cases that tell a number, also of those in error. It is None without any
        case.
        """
        scores = self._scores
        if is_relative(gate):
            return self._compared.measurement()
        value = math.fsum(scores) / (1 if gate["type"] == "sum" else len(scores)) if scores else None
        is_met = value is not None and Threshold(minimum=gate["min"], maximum=gate["max"]).admits(value)
        return {"value": value, "n": len(scores), "errors": self._errors}, is_met

    def _why_nothing(self, existing: Mapping[GroupName, Collection[str]]) -> str:
        """Return why the gate has no value though all of its cases ran."""
        where = self.gate["where"]
        for group in GROUPS:
            if group in where and where[group] not in existing[group]:
                hint = did_you_mean(where[group], existing[group])
                return f"no case in this run has the {group} '{where[group]}'{hint}"
        if is_relative(self.gate):
            return NOT_COMPARABLE if self._is_evaluated else NOTHING
        return (
            f"no case has a {'value' if self.gate['type'] == 'sum' else 'score'} of {self.gate['metric']}"
            if self._is_evaluated and self.gate["metric"] != PASS_RATE
            else NOTHING
        )


def _how_many(ran: int, number: int | None) -> str:
    if number is None:
        return f"{pluralize(ran, 'case')} ran, but other suite files below could not be read"
    return f"{ran:,} of {pluralize(number, 'case')} ran"


def _result_without_rest(gate: PendingGate, value: float | None, n: int, rest: int | None) -> bool | None:
    """Return whether a gate is met or missed for any scores of the rest of its cases; None where these decide."""
    name = gate["metric"]
    most = 1.0 if name in (PASS_RATE, *OF_TRIALS) else METRICS[name].max_score if name in METRICS else None
    if most is None or rest is None or value is None:
        return None
    if gate["type"] == "sum":
        low, high = value, value + most * rest
    else:
        total = value * n
        low = total / (n + rest)
        high = max(value, (total + most * rest) / (n + rest))
    limits = Threshold(minimum=gate["min"], maximum=gate["max"])
    if limits.admits(low) and limits.admits(high):
        return True
    is_below_all = gate["min"] is not None and not Threshold(minimum=gate["min"]).admits(high)
    is_above_all = gate["max"] is not None and not Threshold(maximum=gate["max"]).admits(low)
    return False if is_below_all or is_above_all else None


def score_with_errors(gate: PendingGate, case: CaseReport) -> float | None:
    """Return what a case adds to a mean from 0 to 1, which is 0 if it is in error; None if it adds nothing."""
    if gate["metric"] == PASS_RATE:
        return PASS_SCORES.get(case["outcome"])
    if case["outcome"] == "error" and case["fingerprint"] is not None:
        return 0.0 if gate["metric"] in case["fingerprint"]["metrics"] else None
    score = case["scores"].get(gate["metric"])
    return None if score is None else min(max(score, 0.0), 1.0)


def gate_text(gate: GateReport) -> str:
    """Return what a gate is about, its folder and its result, in words."""
    return f"{gate_subject(gate)}{folder_text(gate['folder'])}: {_result_text(gate)}"


class GateParts(NamedTuple):
    """What a gate is about, its value, and what is needed over how many cases or why there is no result."""

    subject: str
    value: str
    about: str


def gate_parts(gate: GateReport) -> GateParts:
    """Return a gate and its result in few words, each part for a place of its own."""
    value = gate["value"]
    subject = gate_subject(gate)
    if value is None or gate["reason"]:
        return GateParts(subject, "", gate["reason"])
    about = _about(gate)
    if gate["type"] == "no_regression":
        change = signed(value).replace("-", "\N{MINUS SIGN}")
        return GateParts(subject, change, " · ".join((f"p {gate['p']:.3f}", *about)))
    if gate["type"] == "max_regressions":
        needed = f"at most {gate['max_regressions']:,}"
    else:  # a least value needs no more words
        needed = limits_text(gate["min"], gate["max"]).removeprefix("" if gate["max"] is not None else "at least ")
    return GateParts(subject, _shown_value(gate, value), " · ".join((f"needs {needed}", *about)))


def gate_line(gate: GateReport) -> str:
    """Return `gate_text` with the file of the gate first, as in pytest's short summary."""
    place = PurePosixPath(gate["folder"] or ".") / "queryeval.yaml"
    return f"{place} - {gate_subject(gate)}: {_result_text(gate)}"


def gate_subject(gate: PendingGate) -> str:
    """Return what a gate limits, in words."""
    words = {
        "limits": gate["metric"],
        "sum": f"sum of {gate['metric']}",
        "no_regression": f"regression of {gate['metric']}",
        "max_regressions": "regressions",
    }
    return f"{words[gate['type']]}{where_text(gate['where'])}"


def _result_text(gate: GateReport) -> str:
    value = gate["value"]
    if value is None or (gate["ok"] is False and gate["reason"]):
        return gate["reason"]
    if gate["ok"] is None:
        return f"{gate['reason']} ({_value_text(gate, value)})"
    about = _about(gate)
    return f"{_value_text(gate, value)} ({', '.join(about)})" if about else _value_text(gate, value)


def _about(gate: GateReport) -> list[str]:
    """Return over how many cases a gate was evaluated, and how many were left out."""
    about = [pluralize(gate["n"], "pair" if is_relative(gate) else "case")]
    if gate["type"] == "sum" and gate["n"] != gate["ran"]:
        about = [f"{gate['n']:,} of {pluralize(gate['ran'], 'case')} have a value"]
    if decided := gate.get("decided"):
        about += [f"{gate['errors']:,} in error counted as 0"] * bool(gate["errors"])
        return [*about, f"decided after {decided['after']:,} of {decided['of']:,}"]
    about += [f"{gate['errors']:,} in error not counted"] * bool(gate["errors"])
    return about + [_how_many(gate["ran"], gate["cases"])] * (gate["ran"] != gate["cases"])


def _shown_value(gate: GateReport, value: float) -> str:
    """Return the value with as many digits as show on which side of the limits it lies."""
    if gate["type"] == "max_regressions":
        return f"{value:,}"
    limits = Threshold(minimum=gate["min"], maximum=gate["max"])
    number = format_amount(value) if gate["type"] == "sum" else format_score(value)
    texts, is_met = (number, f"{value:.6g}", repr(value)), limits.admits(value)
    return next((text for text in texts if limits.admits(float(text.replace(",", ""))) is is_met), texts[-1])


def _value_text(gate: GateReport, value: float) -> str:
    """Return the value and what is required of it."""
    if gate["type"] == "max_regressions":
        return f"{_shown_value(gate, value)}, at most {gate['max_regressions']:,} allowed"
    if not is_relative(gate):
        return f"{_shown_value(gate, value)}, needs {limits_text(gate['min'], gate['max'])}"
    least, most = gate["detectable"], gate["no_regression"]["max_drop"]
    change = "drop" if gate["better"] == "higher" else "rise"
    proven = f"a {change} of {format_score(least)} is proven in 4 of 5 runs" if least is not None else ""
    allowed = f"a {change} of at most {most:g} allowed" if most else f"no proven {change} allowed"
    return f"{signed(value)} (p {gate['p']:.3f}; {proven or f'too few cases to show any {change}'}), {allowed}"
