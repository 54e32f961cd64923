"""The rule `max_regressions`: how many cases may meet their thresholds in the baseline and no longer do."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from pytest_queryeval.core.errors import CaseError
from pytest_queryeval.core.gates import GateKey, GateRule, Requirement, requirement
from pytest_queryeval.core.report import CaseReport, GateMeasurement, GateReport, PendingGate
from pytest_queryeval.documents.values import whole_number
from pytest_queryeval.results.baseline.difference import MET, change_of_sides


class MaxRegressions(GateRule):
    """The greatest number of regressions."""

    example = "{max_regressions: 3}"
    needs_baseline = True
    has_limits = False

    def keys(self, metric: Callable[[Any], str]) -> Mapping[str, GateKey]:
        description = "how many cases may pass in the baseline and no longer do"
        return {"max_regressions": GateKey(whole_number(0), description)}

    def requirement(self, fields: Mapping[str, Any], problem: Callable[[str], CaseError]) -> PendingGate:
        return {**requirement("regressions"), "max_regressions": fields["max_regressions"]}

    def stored_keys(self, gate: GateReport) -> Sequence[str]:
        return ("max_regressions",)

    def evidence(self, gate: PendingGate) -> Regressions:
        return Regressions()

    def subject(self, gate: PendingGate) -> str:
        return "regressions"

    def requirements(self, gate: PendingGate) -> Iterator[Requirement]:
        yield ("max_regressions",), (-gate["max_regressions"],)

    def metric_of_cases(self, gate: PendingGate) -> None:
        """Return None: outcomes are counted, so no metric needs to be computed."""

    def value_text(self, gate: GateReport, value: float) -> str:
        return f"{value:,}, at most {gate['max_regressions']:,} allowed"

    def short_texts(self, gate: GateReport, value: float) -> tuple[str, str]:
        return f"{value:,}", f"needs at most {gate['max_regressions']:,}"


class Regressions:
    """Counts of the cases in both runs, by whether they met their thresholds."""

    def __init__(self) -> None:
        self._evaluated = self._regressions = self._errors = 0

    def add(self, case: CaseReport, earlier: CaseReport | None) -> None:
        """Count a case that the baseline has as well."""
        if earlier is None:
            return
        before, after = earlier["outcome"], case["outcome"]
        self._errors += after == "error" and before in MET
        self._evaluated += before in MET and after in MET
        self._regressions += change_of_sides(before, after) == "regressions"

    def measurement(self, gate: PendingGate) -> tuple[GateMeasurement, bool]:
        """Return the number of regressions."""
        value = self._regressions if self._evaluated else None
        is_met = self._regressions <= gate["max_regressions"]
        return {"value": value, "n": self._evaluated, "errors": self._errors}, is_met


MAX_REGRESSIONS = MaxRegressions()
