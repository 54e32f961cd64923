"""How many cases may be in error."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pytest_queryeval.core.case_report import CaseReport
from pytest_queryeval.core.errors import CaseError
from pytest_queryeval.core.gates import GateKey, GateRule, requirement
from pytest_queryeval.core.report import GateReport, Measured, PendingGate
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

    def observe(self, gate: PendingGate, case: CaseReport, earlier: CaseReport | None) -> Mapping[str, float] | None:
        return None if case["outcome"] == "skipped" else {"error": case["outcome"] == "error"}

    def measure(self, gate: PendingGate, numbers: Mapping[str, Sequence[float]]) -> Measured:
        return {"value": int(sum(numbers["error"])) if numbers["error"] else None}

    def subject(self, gate: PendingGate) -> str:
        return "cases in error"

    def value_text(self, gate: GateReport, value: float, which: str) -> str:
        return f"cases{which} in error: {value:g}"

    def limit_text(self, gate: PendingGate) -> str:
        return f"allows at most {gate['max']:g}"


MAX_ERRORS = MaxErrors()
