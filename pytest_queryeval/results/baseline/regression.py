"""Gates that compare with a baseline: `no_regression` of a metric, and `max_regressions` cases."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_queryeval.core.model import PASS_RATE
from pytest_queryeval.core.report import CaseReport, GateMeasurement, PendingGate
from pytest_queryeval.results.baseline.flips import MET, ScorePairs

if TYPE_CHECKING:
    from pytest_queryeval.results.baseline.statistics import Pairs


def is_regression(pairs: Pairs, p: float, *, alpha: float, max_drop: float) -> bool:
    """Return whether the mean fell by more than `max_drop`, and `p`, the `fall_p` of the pairs, is at most `alpha`.

    A system that did not change is taken for a worse one in at most `alpha` of all runs.
    """
    return -pairs.change > max_drop + 1e-9 and p <= alpha


class ComparedCases:
    """The cases in a baseline and in a run that a gate compares, each of which is read once, and none kept."""

    def __init__(self, gate: PendingGate) -> None:
        self.gate = gate
        self._scores = ScorePairs.empty()
        self._evaluated = self._regressions = self._errors = 0

    def add(self, old: CaseReport, new: CaseReport) -> None:
        """Count a case that both have."""
        is_error, metric = new["outcome"] == "error", self.gate["metric"]
        if self.gate["type"] == "max_regressions":
            self._errors += is_error and old["outcome"] in MET
            if old["outcome"] in MET and new["outcome"] in MET:
                self._evaluated += 1
                self._regressions += MET[old["outcome"]] and not MET[new["outcome"]]
            return
        self._errors += is_error and metric != PASS_RATE
        self._scores.add(metric, old, new)

    def measurement(self) -> tuple[GateMeasurement, bool]:
        """Return the measurement of the gate, and whether it is met; `value` is None where no case is in both."""
        if self.gate["type"] == "no_regression":
            return self._measure_drop()
        value = self._regressions if self._evaluated else None
        found: GateMeasurement = {"value": value, "n": self._evaluated, "errors": self._errors}
        return found, self._regressions <= self.gate["max_regressions"]

    def _measure_drop(self) -> tuple[GateMeasurement, bool]:
        """Measure how the mean changed over the cases that have a score in both reports."""
        rule, number = self.gate["no_regression"], len(self._scores.before)
        if not number:
            return {"value": None, "n": 0, "errors": self._errors}, True
        # scipy.stats takes long to import.
        from pytest_queryeval.results.baseline.statistics import Pairs, detectable_drop, fall_p, mean

        pairs = Pairs(*self._scores)
        oriented = pairs.negated if self.gate["better"] == "lower" else pairs
        p = fall_p(oriented)
        found: GateMeasurement = {
            "value": pairs.change,
            "n": number,
            "errors": self._errors,
            "before": mean(pairs.before),
            "after": mean(pairs.after),
            "p": p,
            "detectable": detectable_drop(oriented, rule["alpha"], rule["max_drop"]),
        }
        return found, not is_regression(oriented, p, alpha=rule["alpha"], max_drop=rule["max_drop"])
