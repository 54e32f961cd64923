"""A run that stops once its gates are decided: the order of its cases, and when it stops."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pytest_queryeval.core.case_report import CaseReport
from pytest_queryeval.core.errors import QueryEvalError
from pytest_queryeval.core.gates import limits_of
from pytest_queryeval.core.metric import reported_run_metrics
from pytest_queryeval.core.model import ALPHA, PASS_RATE
from pytest_queryeval.core.report import PendingGate, StopReport
from pytest_queryeval.evaluation.trials import MeanTest
from pytest_queryeval.results.case_json import case_json
from pytest_queryeval.results.gates import (
    OFF,
    EarlyDecision,
    GateMode,
    gate_key,
    gate_subject,
    merge_gates,
    rule_of,
    scopes_of,
)
from pytest_queryeval.results.gates.rules import score_with_errors, why_all
from pytest_queryeval.runs.evaluate import NamedCase
from pytest_queryeval.runs.suites import RunSuites, with_case_counts
from pytest_queryeval.text.formatting import first_of

MAX_NAMED = 3  # gates in a message


def not_run_report(named_case: NamedCase) -> CaseReport:
    """Return the report of a case that was left out because all gates were decided."""
    case, nodeid, path = named_case
    message = "all gates were decided before its turn"
    return case_json(case, nodeid=nodeid, path=path, outcome="not_run", message=message)


@dataclass(slots=True)
class _GateTest:
    """The test of a gate that may be decided before all its cases ran, and the cases counted so far."""

    gate: PendingGate
    test: MeanTest
    of: int
    """The number of its cases that will run."""
    drawn: int = 0
    has_score: bool = False
    decision: EarlyDecision | None = None

    def add(self, case: CaseReport) -> None:
        score = score_with_errors(self.gate, case)
        self.test.add(score)
        self.drawn += 1
        self.has_score |= score is not None
        if self.decision is None and self.has_score and (is_met := self.test.result) is not None:
            self.decision = EarlyDecision(is_met=is_met, after=self.drawn, of=self.of)


class EarlyStop:
    """Decides gates by the reports of the cases that ran so far; the cases have to run in random order.

    A gate can be decided early if it limits the pass rate or the mean of a metric from 0 to 1, and if all of its cases
    will run; in the mode `selection`, those that will run count. All these gates are decided at the level `ALPHA`
    together, so their limits share it. Gates that need all cases, listed in `needs_all`, keep the run going to its end.
    Other gates have no result in this run, whether it stops or not.

    `problem` says why no gate can be decided early; empty if a gate can.
    """

    def __init__(
        self,
        seed: int,
        gates: Sequence[PendingGate],
        cases: Sequence[NamedCase],
        *,
        mode: GateMode,
        has_baseline: bool,
    ) -> None:
        self._seed = seed
        self._of = len(cases)
        self._cases_run = 0
        self.needs_all: list[str] = []
        self._tests: list[_GateTest] = []
        reasons: list[str] = []
        fitting: list[tuple[PendingGate, int]] = []
        scopes = scopes_of(gates)
        will_run, will_score = Counter[int](), Counter[int]()
        self._run_metrics = (PASS_RATE, *reported_run_metrics())
        for case, _, path in cases:
            names = (*self._run_metrics, *case.settings.score_names)
            numbers = scopes.of_case(case, path)
            will_run.update(() if case.withdrawal else numbers)  # a gate does not count what is skipped
            will_score.update(number for number in numbers if gates[number]["metric"] in names)
        for number, gate in enumerate(gates):
            if why := _why_not_evaluated(gate, will_run[number], mode, has_baseline=has_baseline):
                reasons.append(f"{gate_subject(gate)}: {why}")
            elif why := why_all(gate, rule_of(gate)):
                self.needs_all.append(f"{gate_subject(gate)}: {why}")
            elif will_score[number]:
                fitting.append((gate, will_score[number]))
            else:
                reasons.append(f"{gate_subject(gate)}: no case has a score")
        limits = sum((gate["min"] is not None) + (gate["max"] is not None) for gate, _ in fitting)
        for gate, of in fitting:
            self._tests.append(_GateTest(gate, MeanTest(limits_of(gate), of, ALPHA / limits), of))
        self._scopes = scopes_of(test.gate for test in self._tests)
        self._tests_by_key = {gate_key(test.gate): test for test in self._tests}
        why_none = [*reasons, *self.needs_all]
        self.problem = "" if fitting else first_of(why_none, MAX_NAMED, "; ") or "there is no gate"

    @property
    def is_decided(self) -> bool:
        """Whether all gates are decided, so that the remaining cases are not needed."""
        return not self.needs_all and all(test.decision is not None for test in self._tests)

    def add(self, case: CaseReport) -> None:
        """Count the report of a case that ran; does nothing for a case that was not run."""
        if case["outcome"] == "not_run":
            return
        self._cases_run += 1
        names = [*self._run_metrics, *(case["fingerprint"]["metrics"] if case["fingerprint"] is not None else ())]
        for number in self._scopes.of_report(case):
            if self._tests[number].gate["metric"] in names:
                self._tests[number].add(case)

    def decision(self, gate: PendingGate) -> EarlyDecision | None:
        """Return the early decision on a gate; None if it is not decided or cannot be."""
        test = self._tests_by_key.get(gate_key(gate))
        return None if test is None else test.decision

    def report(self) -> StopReport:
        """Return the stopping rule, the number of cases that ran, and the number of all cases."""
        return {"rule": "decided", "seed": self._seed, "alpha": ALPHA, "after": self._cases_run, "of": self._of}


def early_stop(
    cases: Sequence[NamedCase], suites: RunSuites, files_below: Callable[[Path], Iterable[Path]]
) -> EarlyStop | None:
    """Return the early stop of a run of these cases; None if no option requests it, or no case will run.

    `files_below` finds the suite files below a folder. Raises `QueryEvalError` if no gate can be decided early.
    """
    options, to_run = suites.options, [named_case for named_case in cases if named_case.case.skip is None]
    if options.stop_seed is None or not to_run:
        return None
    gates = with_case_counts(merge_gates([suites.gates()]), suites, (), suites.collected, files_below)
    early = EarlyStop(options.stop_seed, gates, to_run, mode=options.gates, has_baseline=options.baseline is not None)
    if early.problem:
        option = f"{options.prefix}stop"
        problem = f"no gate can be decided before all cases ran: {early.problem}"
        remedy = f"run without it with {option}=off"
        if options.gates == "complete" and any(gate["cases"] and len(to_run) < gate["cases"] for gate in gates):
            gates_option = "--gates" if options.prefix == "--" else "-o queryeval_gates"
            remedy += f", or evaluate gates on the selection with {gates_option}=selection"
        raise QueryEvalError(f"{option}: {problem}; {remedy}")
    return early


def _why_not_evaluated(gate: PendingGate, will_run: int, mode: GateMode, *, has_baseline: bool) -> str:
    """Return why a gate has no result in this run even if all cases run; empty if it has a result."""
    if mode == "off":
        return OFF
    if rule_of(gate).needs_baseline:
        return "" if has_baseline else "no baseline was given"
    if gate["cases"] is None:
        return "a suite file below could not be read"
    if mode == "complete" and will_run < gate["cases"]:
        return f"only {will_run:,} of {gate['cases']:,} cases are selected"
    return ""
