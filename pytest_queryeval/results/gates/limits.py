"""The rule `limits`: the least and the greatest mean of a metric over the cases, or share of them that pass."""

from __future__ import annotations

import math
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
from pytest_queryeval.core.model import PASS_RATE
from pytest_queryeval.core.report import GateMeasurement, PendingGate
from pytest_queryeval.core.run_metrics import RUN_METRICS
from pytest_queryeval.core.shapes import Shape, either
from pytest_queryeval.documents.values import number
from pytest_queryeval.metrics import METRICS
from pytest_queryeval.results.baseline.pairs import score_of


class LimitsRule(GateRule):
    """The limits of a mean."""

    example = "{metric: execution_accuracy, min: 0.9}"

    def keys(self, metric: Callable[[Any], str]) -> Mapping[str, GateKey]:
        return {
            "metric": GateKey(metric, "a metric, or pass_rate: the share of cases that pass"),
            "min": GateKey(number, "the least mean over the cases", is_required=False),
            "max": GateKey(number, "the greatest mean over the cases", is_required=False),
        }

    def shape(self, metric: Callable[[Any], str]) -> Shape:
        return {**super().shape(metric), **either({"required": ["min"]}, {"required": ["max"]})}

    def requirement(self, fields: Mapping[str, Any], problem: Callable[[str], CaseError]) -> PendingGate:
        return requirement(fields["metric"], minimum=fields.get("min"), maximum=fields.get("max"))

    def evidence(self, gate: PendingGate) -> Scores:
        return Scores(gate["metric"])

    def subject(self, gate: PendingGate) -> str:
        return gate["metric"]

    def requirements(self, gate: PendingGate) -> Iterator[Requirement]:
        return limit_requirements(gate["min"], gate["max"])

    def why_all(self, gate: PendingGate) -> str:
        metric = gate["metric"]
        has_unit_scores = metric in RUN_METRICS or METRICS[metric].max_score == 1
        return "" if has_unit_scores else "its scores are not from 0 to 1"

    def score_with_errors(self, gate: PendingGate, case: CaseReport) -> float | None:
        metric, fingerprint = gate["metric"], case["fingerprint"]
        if case["outcome"] == "error" and fingerprint is not None and metric in fingerprint["metrics"]:
            return 0.0
        score = score_of(metric, case)
        return None if score is None else min(max(score, 0.0), 1.0)

    def result_without_rest(self, gate: PendingGate, value: float, n: int, cases_not_run: int) -> bool | None:
        if (most := greatest_score(gate["metric"])) is None:
            return None
        total, n_all = value * n, n + cases_not_run
        return result_between(gate, total / n_all, max(value, (total + most * cases_not_run) / n_all))


class Scores:
    """The scores of a metric, or what cases add to `pass_rate`."""

    def __init__(self, metric: str) -> None:
        self._metric = metric
        self._scores = array("d")
        self._errors = 0

    def add(self, case: CaseReport, earlier: CaseReport | None) -> None:
        """Add the score of a case, if it has one."""
        score = score_of(self._metric, case)
        if score is not None:
            self._scores.append(score)
        self._errors += case["outcome"] == "error" and self._metric != PASS_RATE

    def measurement(self, gate: PendingGate) -> tuple[GateMeasurement, bool]:
        """Return the mean."""
        value = math.fsum(self._scores) / len(self._scores) if self._scores else None
        is_met = value is not None and limits_of(gate).admits(value)
        return {"value": value, "n": len(self._scores), "errors": self._errors}, is_met


def greatest_score(metric: str) -> float | None:
    """Return the greatest score of a metric; None if it is not known."""
    return 1.0 if metric in RUN_METRICS else METRICS[metric].max_score if metric in METRICS else None


LIMITS = LimitsRule()
