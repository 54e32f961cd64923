"""How many cases may be in error."""

from collections.abc import Callable, Mapping
from typing import Any

from pytest_queryeval.core.case_report import CaseReport
from pytest_queryeval.core.errors import CaseError
from pytest_queryeval.core.gates import GateKey, GateRule, requirement
from pytest_queryeval.core.report import GateMeasurement, GateReport, PendingGate
from pytest_queryeval.documents.values import whole_number


class MaxErrors(GateRule):
    """The greatest number of cases in error."""

    example = "{max_errors: 2}"
    needs_scores = False
    has_limits = False

    def keys(self, metric: Callable[[Any], str]) -> Mapping[str, GateKey]:
        return {"max_errors": GateKey(whole_number(0), "how many cases may be in error")}

    def requirement(self, fields: Mapping[str, Any], problem: Callable[[str], CaseError]) -> PendingGate:
        return requirement("errors", maximum=fields["max_errors"])

    def evidence(self, gate: PendingGate) -> "Errors":
        return Errors()

    def subject(self, gate: PendingGate) -> str:
        return "cases in error"

    def value_text(self, gate: GateReport, value: float) -> str:
        return f"{value:g}, at most {gate['max']:g} allowed"


class Errors:
    """The cases that ran, and those of them in error."""

    def __init__(self) -> None:
        self._cases = self._errors = 0

    def add(self, case: CaseReport, earlier: CaseReport | None) -> None:
        self._cases += case["outcome"] != "skipped"
        self._errors += case["outcome"] == "error"

    def measurement(self, gate: PendingGate) -> tuple[GateMeasurement, bool]:
        value = self._errors if self._cases else None
        return {"value": value, "n": self._cases, "errors": 0}, self._errors <= (gate["max"] or 0.0)


MAX_ERRORS = MaxErrors()
