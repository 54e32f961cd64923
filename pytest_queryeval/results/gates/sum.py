"""The rule `sum`: the least and the greatest sum, over all calls, of a time or of a number that systems report."""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from pytest_queryeval.core.case_report import CaseReport
from pytest_queryeval.core.errors import CaseError
from pytest_queryeval.core.gates import (
    GateKey,
    GateRule,
    Requirement,
    limit_requirements,
    limits_of,
    requirement,
    result_between,
)
from pytest_queryeval.core.report import GateMeasurement, GateReport, PendingGate
from pytest_queryeval.core.shapes import Shape, mapping_shape, shape, shape_of
from pytest_queryeval.documents.document import Node
from pytest_queryeval.documents.values import known_entries, number, unexpected
from pytest_queryeval.metrics import METRICS
from pytest_queryeval.results.measures import measures_of
from pytest_queryeval.text.formatting import format_amount, pluralize

_SUMMED = re.compile(r"^(prediction_seconds|execution_seconds|metadata\[.+\])$")


@shape({**mapping_shape({name: {"type": "number", "minimum": 0} for name in ("min", "max")}), "minProperties": 1})
def _read_sum(node: Node) -> dict[str, float]:
    if isinstance(node.value, str):
        raise unexpected(node, "a mapping", ": write {max: NUMBER}")
    return known_entries(node, {"min": number, "max": number})


class Sum(GateRule):
    """The limits of a sum, which includes each trial and the calls of cases in error."""

    example = '{metric: "metadata[cost]", sum: {max: 5}}'

    def keys(self, metric: Callable[[Any], str]) -> Mapping[str, GateKey]:
        description = "the limits of the sum over all calls, for a time or metadata[NAME]: {max: 5}"
        return {"metric": GateKey(metric, "what is summed"), "sum": GateKey(_read_sum, description)}

    def shape(self, metric: Callable[[Any], str]) -> Shape:
        properties = {"metric": {"type": "string", "pattern": _SUMMED.pattern}, "sum": shape_of(_read_sum)}
        return {**super().shape(metric), "properties": properties}

    def requirement(self, fields: Mapping[str, Any], problem: Callable[[str], CaseError]) -> PendingGate:
        if "min" in fields or "max" in fields:
            raise problem("min and max are limits of the mean, 'sum' has its own: write a gate for each")
        metric, limits = fields["metric"], fields["sum"]
        if not _SUMMED.match(metric):
            raise problem(f"'{metric}' has no sum: name metadata[NAME], prediction_seconds or execution_seconds")
        return requirement(metric, minimum=limits.get("min"), maximum=limits.get("max"))

    def evidence(self, gate: PendingGate) -> Amounts:
        return Amounts(gate["metric"])

    def subject(self, gate: PendingGate) -> str:
        return f"sum of {gate['metric']}"

    def requirements(self, gate: PendingGate) -> Iterator[Requirement]:
        return ((("sum", *names), numbers) for names, numbers in limit_requirements(gate["min"], gate["max"]))

    def metric_of_cases(self, gate: PendingGate) -> None:
        """Return None: every call reports its numbers, so no metric needs to be computed."""

    def why_all(self, gate: PendingGate) -> str:
        return "it limits a sum"

    def result_without_rest(self, gate: PendingGate, value: float, n: int, cases_not_run: int) -> bool | None:
        most = METRICS[gate["metric"]].max_score if gate["metric"] in METRICS else None
        return None if most is None else result_between(gate, value, value + most * cases_not_run)

    def why_nothing(self, gate: PendingGate) -> str:
        return f"no case has a value of {gate['metric']}"

    def cases_text(self, gate: GateReport) -> str:
        if gate["n"] == gate["ran"]:
            return super().cases_text(gate)
        return f"{gate['n']:,} of {pluralize(gate['ran'], 'case')} have a value"

    def number_text(self, value: float) -> str:
        return format_amount(value)


class Amounts:
    """The sums of a number over the calls of each case."""

    def __init__(self, metric: str) -> None:
        self._metric = metric
        self._amounts = array("d")
        self._errors = 0

    def add(self, case: CaseReport, earlier: CaseReport | None) -> None:
        """Add the sum of a case, if one of its calls has the number."""
        amounts = [amount for name, amount in measures_of(case) if name == self._metric]
        if amounts:
            self._amounts.append(math.fsum(amounts))
        else:
            self._errors += case["outcome"] == "error"

    def measurement(self, gate: PendingGate) -> tuple[GateMeasurement, bool]:
        """Return the sum over all cases that have one."""
        value = math.fsum(self._amounts) if self._amounts else None
        is_met = value is not None and limits_of(gate).admits(value)
        return {"value": value, "n": len(self._amounts), "errors": self._errors}, is_met


SUM = Sum()
