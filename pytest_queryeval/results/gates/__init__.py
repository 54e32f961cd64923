"""Gates: what all cases of a folder must reach together, and their results in words by their rules.

A rule that is not registered has a stand-in.
"""

from __future__ import annotations

import json
import math
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import PurePosixPath
from typing import Any, Literal, TypeAlias, cast

from pytest_queryeval.core.case_report import CaseReport
from pytest_queryeval.core.errors import did_you_mean
from pytest_queryeval.core.gates import GATE_RULES, Gate, GateKey, GateRule, Numbers, Requirement
from pytest_queryeval.core.groups import Scopes, conditions_of, folder_text, group_values, is_below, where_text
from pytest_queryeval.core.mappings import including
from pytest_queryeval.core.metric import RUN_METRICS
from pytest_queryeval.core.model import PASS_RATE, Case, Criterion, Settings
from pytest_queryeval.core.report import GateMeasurement, GateReport, Measured, PendingGate, Report
from pytest_queryeval.metrics import applies_to, need_answers
from pytest_queryeval.results.baseline.pairs import FIELD
from pytest_queryeval.results.case_store import CasesByNodeid
from pytest_queryeval.results.gates.rules import is_without_prediction, requests, score_with_errors
from pytest_queryeval.text.formatting import pluralize, signed

NO_CASE = "no case was evaluated"
NO_SCORE = "no case has a score: remove the gate, or see in docs/reference/metrics.md what the metric needs"
NOT_COMPARABLE = "no case has a value in the baseline as well"
NOT_IN_FIELDS = f"{NOT_COMPARABLE}: name one field of its report, or write the report again with this gate"
NO_BASELINE = "no baseline was given"
OFF = "gates are off"
# Evaluate gates on all of their cases, on those that ran, or leave them to `queryeval merge`.
GateMode: TypeAlias = Literal["complete", "selection", "off"]


class UnknownRule(GateRule):
    """A stand-in for the rule of another version of this package, or of a package that is not installed."""

    has_limits = False

    def keys(self, metric: Callable[[Any], str]) -> Mapping[str, GateKey]:
        return {}

    def observe(self, gate: PendingGate, case: CaseReport, earlier: CaseReport | None) -> None:
        """Return None: no case counts."""

    def measure(self, gate: PendingGate, numbers: Numbers) -> Measured:
        return {"value": None}

    def requirements(self, gate: PendingGate) -> Iterator[Requirement]:
        """Yield the whole gate as one requirement: how strict it is is unknown, so any change counts."""
        yield (gate_key(_pending(gate)),), ()

    def shown_value(self, gate: GateReport, value: float) -> str:
        return self.number_text(value)

    def limit_text(self, gate: PendingGate) -> str:
        return "has an unknown rule"


UNKNOWN = UnknownRule()


def rule_of(gate: PendingGate) -> GateRule:
    """Return the rule of a gate; `UNKNOWN` if it is not registered in this process."""
    return GATE_RULES.get(gate["type"], UNKNOWN)


GATE_WORDS = {True: "met", False: "missed", None: "not evaluated"}


def gate_text(gate: GateReport) -> str:
    """Return a sentence with the result of a gate and its folder, or why it has no result."""
    return _sentence(gate, folder_text(gate["folder"]))


def gate_requirement(gate: PendingGate) -> str:
    """Return what a gate requires of which cases, such as `pass_rate in sql (needs at least 0.9)`."""
    return f"{gate_subject(gate)}{folder_text(gate['folder'])} ({rule_of(gate).limit_text(gate)})"


def gate_summary(gate: GateReport) -> str:
    """Return the result of a gate, or why it has none, as part of a sentence, without the number of cases."""
    folder, rule = folder_text(gate["folder"]), rule_of(gate)
    if gate["value"] is None or gate["reason"]:
        return f"{gate_subject(gate)}{folder}: {gate['reason']}"
    which = f"{where_text(gate['where'])}{folder}"
    return f"{rule.value_text(gate, gate['value'], which)} ({rule.limit_text(gate)})"


def gate_value(gate: GateReport) -> tuple[str, str]:
    """Return the value of a gate as text, and what it needs over how many cases.

    If the gate has no result, return an empty text and the reason.
    """
    if gate["value"] is None or gate["reason"]:
        return "", gate["reason"]
    rule, about = rule_of(gate), _case_counts(gate)
    if "p" in gate:
        return signed(gate["value"]).replace("-", "\N{MINUS SIGN}"), " · ".join(about)
    if rule is not UNKNOWN:
        about.insert(0, rule.limit_text(gate).replace("needs at least ", "needs "))
    return rule.shown_value(gate, gate["value"]), " · ".join(about)


def gate_line(gate: GateReport) -> str:
    """Return the file of a gate and a sentence with its result, as a line of pytest's short summary."""
    return f"{PurePosixPath(gate['folder'] or '.') / 'queryeval.yaml'} - {_sentence(gate, '')}"


def gate_subject(gate: PendingGate) -> str:
    """Return in words what a gate limits, and in which cases."""
    return f"{rule_of(gate).subject(gate)}{where_text(gate['where'])}"


def _sentence(gate: GateReport, folder: str) -> str:
    rule, value = rule_of(gate), gate["value"]
    if value is not None and not gate["reason"]:
        result = rule.value_text(gate, value, f"{where_text(gate['where'])}{folder}")
        return f"{result} ({', '.join(_case_counts(gate))}); this gate {rule.limit_text(gate)}"
    so_far = f" ({rule.shown_value(gate, value)}; this gate {rule.limit_text(gate)})" if value is not None else ""
    return f"{gate_subject(gate)}{folder}: {gate['reason']}{'' if gate['ok'] is False else so_far}"


def _case_counts(gate: GateReport) -> list[str]:
    """Return phrases on the number of cases of a gate: those that count, ran, were in error, or were left out."""
    about = [rule_of(gate).cases_text(gate)]
    if decided := gate.get("decided"):
        about += [f"{gate['errors']:,} in error counted as 0"] * bool(gate["errors"])
        return [*about, f"decided after {decided['after']:,} of {decided['of']:,}"]
    unpredicted, unscored = gate.get("unpredicted", 0), gate.get("unscored", 0)
    about += [_left_out_text(unpredicted, "without a prediction")] * bool(unpredicted)
    about += [f"{gate['errors'] - unpredicted:,} in error not counted"] * (gate["errors"] > unpredicted)
    about += [_left_out_text(unscored, "without a score")] * bool(unscored)
    return about + [ran_text(gate["ran"], gate["cases"])] * (gate["ran"] != gate["cases"])


def _left_out_text(number: int, which: str) -> str:
    return f"{number:,} {which} {'is' if number == 1 else 'are'} left out"


def ran_text(ran: int, number: int | None) -> str:
    """Return in words how many cases of a gate ran, of `number` cases; None if that number is not known."""
    if number is None:
        return f"{pluralize(ran, 'case')} ran, but other suite files below could not be read"
    return f"{ran:,} of {pluralize(number, 'case')} ran"


@dataclass(frozen=True, slots=True)
class CaseWithoutResult:
    """A case that has no result in a run, with its file."""

    path: str
    """The path of its file, relative to the root of the run."""
    case: Case


@dataclass(frozen=True, slots=True)
class EarlyDecision:
    """The decision on a gate before all of its cases ran."""

    is_met: bool
    after: int
    """The number of cases that had run."""
    of: int
    """The number of cases that were to run."""


def with_gate_metrics(cases: Iterable[tuple[Case, str]], gates: Iterable[Gate]) -> list[Case]:
    """Return the cases of a suite with the metrics that the gates above it name, also as their `gate_metrics`.

    Each case comes with the path of its file, relative to the root of the run. A case without a source whose own
    metrics compare texts is not run for a gate alone.
    """
    pending_gates = (gate.required for gate in gates)
    scored = [gate for gate in pending_gates if rule_of(gate).needs_scores and gate["metric"] not in RUN_METRICS]
    # All of these gates are above the suite, wherever its cases are: their folders do not matter.
    scopes = Scopes((None, gate["where"]) for gate in scored)
    extended_settings: dict[tuple[Settings, frozenset[Criterion], tuple[str, ...]], Settings] = {}  # cases share them
    extended_cases: list[Case] = []
    for case, path in cases:
        metrics = tuple(dict.fromkeys(scored[number]["metric"] for number in scopes.of_case(case, path)))
        key = case.settings, case.criteria, metrics
        if key not in extended_settings:
            extended_settings[key] = _with_gate_metrics(*key)
        settings = extended_settings[key]
        extended_cases.append(case if settings is case.settings else replace(case, settings=settings))
    return extended_cases


def _with_gate_metrics(settings: Settings, criteria: Collection[Criterion], metrics: Iterable[str]) -> Settings:
    requested, has_source = settings.requested_metrics, settings.source is not None
    gate_metrics = tuple(
        metric
        for metric in metrics
        if metric in requested
        or (
            applies_to(metric, settings.kind, criteria=criteria)
            and (has_source or need_answers(requested) or not need_answers([metric]))
        )
    )
    if not gate_metrics:
        return settings
    added_metrics = (metric for metric in gate_metrics if metric not in requested)
    return replace(settings, metrics=(*settings.metrics, *added_metrics), gate_metrics=gate_metrics)


def merge_gates(gate_lists: Iterable[Iterable[PendingGate]]) -> list[PendingGate]:
    """Return the gates of several processes or shards without repetition, ordered by folder and then as in its file.

    A gate that one process lists twice stays twice. Results are dropped; `cases` becomes the largest known number.
    """
    merged_gates: dict[tuple[str, int], PendingGate] = {}
    for gates in gate_lists:
        times: Counter[str] = Counter()
        for gate in gates:
            pending_gate = _pending(gate)
            key = gate_key(pending_gate)
            times[key] += 1
            first = merged_gates.setdefault((key, times[key]), pending_gate)
            first["cases"] = max((n for n in (first["cases"], gate["cases"]) if n is not None), default=None)
    return sorted(merged_gates.values(), key=lambda gate: PurePosixPath(gate["folder"]).parts)


def _pending(gate: PendingGate) -> PendingGate:
    """Return a gate without its result."""
    return cast("PendingGate", including(gate, PendingGate.__annotations__))


def gate_key(gate: PendingGate) -> str:
    """Return a text that distinguishes a gate within a run: what it requires, and of which cases."""
    return json.dumps({**gate, "cases": None}, sort_keys=True)


def gate_identity(gate: PendingGate) -> str:
    """Return a text that identifies a gate across runs: everything except the numbers that it requires."""
    names = sorted(name for name, _ in rule_of(gate).requirements(gate))
    return json.dumps([gate["type"], gate["folder"], gate["metric"], gate["where"], names], sort_keys=True)


def scopes_of(gates: Iterable[PendingGate]) -> Scopes:
    """Return the scopes of gates, which find the gates that a case belongs to."""
    return Scopes((gate["folder"], gate["where"]) for gate in gates)


def count_cases(
    gates: Sequence[PendingGate], cases: Iterable[CaseReport], left_out: Iterable[CaseWithoutResult]
) -> list[int]:
    """Return for each gate the number of its cases, those that ran and those `left_out`; skipped cases do not count."""
    scopes = scopes_of(gates)
    numbers = Counter(
        chain(
            *(scopes.of_report(case) for case in cases if case["outcome"] != "skipped"),
            *(scopes.of_case(not_run.case, not_run.path) for not_run in left_out),
        )
    )
    return [numbers[number] for number in range(len(gates))]


def are_left_out(cases: Iterable[CaseReport], collected: Mapping[str, int]) -> bool:
    """Return whether cases of some file did not run, or that is unknown; `collected` is the number of cases by file."""
    ran = Counter(case["path"] for case in cases)
    return not collected or any(number > ran[path] for path, number in collected.items())


def evaluate_gates(
    gates: Iterable[PendingGate],
    cases: Sequence[CaseReport],
    *,
    unreadable_files: Iterable[str] = (),
    mode: GateMode = "complete",
    baseline: tuple[str, Report] | None = None,
    decide: Callable[[PendingGate], EarlyDecision | None] | None = None,
) -> list[GateReport]:
    """Return the gates with their results: `ok` is True, False, or None with a `reason` if a gate is not evaluated.

    `cases` are the cases of the run; the field `cases` of a gate is the number of its cases, None if unknown.

    - A gate with limits is not evaluated if the cases that did not run could change its result. With the `mode`
      `selection`, only cases with the outcome `not_run` could.
    - A gate that compares with the `baseline`, a path and its report, uses the cases in both reports. It is not
      evaluated without a baseline, or if cases with the outcome `not_run` could change it.
    - A gate above one of the `unreadable_files`, which are suite files, is missed.

    `decide` returns the early decision on a gate, which applies if the run stopped before all of the gate's cases.
    """
    gates, unreadable_files = list(gates), list(unreadable_files)
    earlier: Mapping[str, CaseReport] | None = None
    path = ""
    if baseline is not None:
        path, report = baseline
        is_compared = any(rule_of(gate).needs_baseline for gate in gates)
        earlier = CasesByNodeid(report["cases"] if is_compared else ())
    # Gates that differ only in their limits share their evidence.
    by_key = {gate_key({**gate, "min": None, "max": None}): gate for gate in gates}
    evidence = {
        key: GateEvidence(gate, earlier, path, counts_errors=decide is not None) for key, gate in by_key.items()
    }
    distinct_evidence = list(evidence.values())
    scopes = scopes_of(by_key.values())
    for case in cases if gates else ():
        for number in scopes.of_report(case):
            distinct_evidence[number].add(case)
    return [
        evidence[gate_key({**gate, "min": None, "max": None})].result(
            gate, unreadable_files, mode, cases, decide and decide(gate)
        )
        for gate in gates
    ]


class GateEvidence:
    """The evidence for a gate: numbers of its cases, which are read once and not kept.

    Gates that differ from it only in their minimum or maximum can be evaluated on it too.
    """

    def __init__(
        self, gate: PendingGate, earlier: Mapping[str, CaseReport] | None, baseline: str, *, counts_errors: bool
    ) -> None:
        self.gate, self._rule = gate, rule_of(gate)
        self._earlier = earlier if self._rule.needs_baseline else None
        self._baseline = baseline
        self._counts_errors = counts_errors and not self._rule.needs_all
        self._counts: Counter[str] = Counter()
        self._numbers: defaultdict[str, array[float]] = defaultdict(lambda: array("d"))
        self._scores_with_errors = array("d")

    def add(self, case: CaseReport) -> None:
        """Count a case of the run that is in the gate's scope.

        Its numbers, its outcome, and whether it lacks a score.
        """
        gate, outcome, counts = self.gate, case["outcome"], self._counts
        has_run = outcome not in ("skipped", "not_run")
        counts["ran"] += has_run
        counts["not_run"] += outcome == "not_run"
        counts["evaluated"] += outcome not in ("skipped", "error")
        if self._counts_errors and (score := score_with_errors(gate, case)) is not None:
            self._scores_with_errors.append(score)
            counts["errors_scored"] += outcome == "error" and gate["metric"] != PASS_RATE
        numbers = self._rule.observe(gate, case, None if self._earlier is None else self._earlier.get(case["nodeid"]))
        if numbers is None:
            return
        for name, number in numbers.items():
            self._numbers[name].append(number)
        counts["n"] += bool(numbers)
        counts["rerun"] += "reruns" in case
        if not numbers and outcome == "error":
            counts["errors"] += 1
            counts["unpredicted"] += is_without_prediction(case)
        elif not numbers and has_run:
            counts["unscored"] += requests(case, gate["metric"])

    def result(
        self,
        gate: PendingGate,
        unreadable_files: Iterable[str],
        mode: GateMode,
        cases: Iterable[CaseReport],
        decision: EarlyDecision | None,
    ) -> GateReport:
        """Return a gate with its result; the arguments are those of `evaluate_gates`.

        `decision` is the early decision on this gate.
        """
        ran, not_run, rule = self._counts["ran"], self._counts["not_run"], self._rule
        number = None if gate["cases"] is None else max(gate["cases"], ran)
        unreadable_file = next((path for path in unreadable_files if is_below(path, gate["folder"])), None)
        measurement: GateMeasurement = {"value": None, "n": 0, "errors": 0}
        ok: bool | None = None
        if mode == "off":
            reason = OFF
        elif rule is UNKNOWN:
            reason = f"unknown rule '{gate['type']}': install the package that defines it"
        elif rule.needs_baseline and self._earlier is None:
            reason = NO_BASELINE
        elif decision is not None and not_run and self._scores_with_errors:
            scores = self._scores_with_errors
            measurement = {
                "value": math.fsum(scores) / len(scores),
                "n": len(scores),
                "errors": self._counts["errors_scored"],
                "decided": {"after": decision.after, "of": decision.of},
            }
            ok, reason = decision.is_met, ""
        else:
            measurement = self._measurement(gate)
            ok = rule.is_met(gate, measurement)
            reason, value, n = "", measurement["value"], measurement["n"]
            cases_not_run = None if number is None else number - ran
            rest = not_run if mode == "selection" or rule.needs_baseline else cases_not_run
            if unreadable_file is not None:
                ok, reason = False, f"{unreadable_file} could not be read"
            elif value is None and cases_not_run == 0:
                ok, reason = False, self._why_no_case(gate, cases) or self._why_no_value()
            elif rule.needs_baseline and value is None:
                ok, reason = None, self._why_no_value() if ran else NO_CASE
            elif value is None or rest != 0:
                ok = None if value is None or rest is None else rule.result_without_rest(gate, value, n, rest)
                reason = ran_text(ran, number) if ok is None else ""
            elif ok and (why := rule.why_undecided(gate, measurement)):
                ok, reason = None, why
        return {**gate, **measurement, "cases": number, "ran": ran, "ok": ok, "reason": reason}

    def _measurement(self, gate: PendingGate) -> GateMeasurement:
        """Return the value that the gate measures, the number of cases with it, and the numbers of cases left out."""
        measured, counts = self._rule.measure(gate, self._numbers), self._counts
        measurement: GateMeasurement = {"value": measured["value"], "n": counts["n"], "errors": counts["errors"]}
        for name in self._rule.counts:
            if counts[name]:
                measurement[name] = counts[name]
        if self._rule.needs_baseline and self._baseline:
            measurement["baseline"] = self._baseline
        return {**measurement, **measured}

    def _why_no_case(self, gate: PendingGate, cases: Iterable[CaseReport]) -> str:
        """Return why no case of the run belongs to the gate, or none was evaluated; empty if one was."""
        below = [case for case in cases if is_below(case["path"], gate["folder"])]
        for group, value in conditions_of(gate["where"]).items():
            existing_values = {existing for case in below for existing in group_values(case, group)}
            if value not in existing_values:
                return f"no case in this run has the {group} '{value}'{did_you_mean(value, existing_values)}"
        return "" if self._counts["evaluated"] else NO_CASE

    def _why_no_value(self) -> str:
        """Return why evaluated cases give the gate no value."""
        if self._rule.no_value or self._rule.needs_baseline:
            not_comparable = NOT_IN_FIELDS if self.gate["metric"].startswith(FIELD) else NOT_COMPARABLE
            return self._rule.no_value.format(**self.gate) or not_comparable
        return NO_CASE if self.gate["metric"] == PASS_RATE else NO_SCORE
