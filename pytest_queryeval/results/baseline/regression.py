"""Gates that compare with a baseline: `no_regression` of a metric, and `max_regressions` cases."""

from __future__ import annotations

from pytest_queryeval.core.model import PASS_RATE
from pytest_queryeval.core.report import CaseReport, GateMeasurement, PendingGate
from pytest_queryeval.results.baseline.difference import MET, change_of_sides
from pytest_queryeval.results.baseline.pairs import Pairs, mean, score_of


def is_regression(pairs: Pairs, p: float, *, alpha: float, max_drop: float) -> bool:
    """Return whether the mean fell by more than `max_drop`, and `p`, the `fall_p` of the pairs, is at most `alpha`.

    A system that did not change is taken for a worse one in at most `alpha` of all runs.
    """
    return -pairs.change > max_drop + 1e-9 and p <= alpha


class ComparedCases:
    """The cases in a baseline and in a run that a gate compares, each of which is read once, and none kept."""

    def __init__(self, gate: PendingGate) -> None:
        self.gate = gate
        self._pairs = Pairs()
        self._evaluated = self._regressions = self._errors = 0

    def add(self, old: CaseReport, new: CaseReport) -> None:
        """Count a case that both have."""
        is_error, metric = new["outcome"] == "error", self.gate["metric"]
        if self.gate["type"] == "max_regressions":
            self._errors += is_error and old["outcome"] in MET
            self._evaluated += old["outcome"] in MET and new["outcome"] in MET
            self._regressions += change_of_sides(old["outcome"], new["outcome"]) == "regressions"
            return
        self._errors += is_error and metric != PASS_RATE
        self._pairs.add(score_of(metric, old), score_of(metric, new))

    def measurement(self) -> tuple[GateMeasurement, bool]:
        """Return the measurement of the gate, and whether it is met; `value` is None where no case is in both."""
        if self.gate["type"] == "no_regression":
            return self._measure_drop()
        value = self._regressions if self._evaluated else None
        measurement: GateMeasurement = {"value": value, "n": self._evaluated, "errors": self._errors}
        return measurement, self._regressions <= self.gate["max_regressions"]

    def _measure_drop(self) -> tuple[GateMeasurement, bool]:
        """Measure how the mean changed over the cases that have a score in both reports."""
        rule, pairs = self.gate["no_regression"], self._pairs
        if not pairs.before:
            return {"value": None, "n": 0, "errors": self._errors}, True
        # scipy.stats takes long to import.
        from pytest_queryeval.results.baseline.statistics import detectable_drop, fall_p

        oriented = pairs.oriented(self.gate["better"])
        p = fall_p(oriented)
        measurement: GateMeasurement = {
            "value": pairs.change,
            "n": len(pairs.before),
            "errors": self._errors,
            "before": mean(pairs.before),
            "after": mean(pairs.after),
            "p": p,
            "detectable": detectable_drop(oriented, rule["alpha"], rule["max_drop"]),
        }
        return measurement, not is_regression(oriented, p, alpha=rule["alpha"], max_drop=rule["max_drop"])
