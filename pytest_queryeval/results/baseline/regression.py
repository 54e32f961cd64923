"""Gates that compare with a baseline: `no_regression` of a metric, and `max_regressions` cases."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pytest_queryeval.core.model import PASS_RATE
from pytest_queryeval.core.report import CaseReport, GateMeasurement, PendingGate, Report
from pytest_queryeval.results.baseline.flips import MET, paired_scores

if TYPE_CHECKING:
    from pytest_queryeval.results.baseline.statistics import Pairs


def is_regression(pairs: Pairs, p: float, *, alpha: float, max_drop: float) -> bool:
    """Return whether the mean fell by more than `max_drop`, and `p`, the `fall_p` of the pairs, is at most `alpha`.

    A system that did not change is taken for a worse one in at most `alpha` of all runs.
    """
    return -pairs.change > max_drop + 1e-9 and p <= alpha


def measure_against(gate: PendingGate, cases: Sequence[CaseReport], baseline: Report) -> tuple[GateMeasurement, bool]:
    """Return the measurement of a gate that compares with a baseline, and whether it is met.

    `value` is None where no case is in both reports.
    """
    known = {case["nodeid"]: case for case in baseline["cases"]}
    common = [(known[case["nodeid"]], case) for case in cases if case["nodeid"] in known]
    if gate["type"] == "no_regression":
        return _measure_drop(gate, common)
    evaluated = [(old, new) for old, new in common if old["outcome"] in MET and new["outcome"] in MET]
    regressions = sum(MET[old["outcome"]] and not MET[new["outcome"]] for old, new in evaluated)
    errors = sum(old["outcome"] in MET and new["outcome"] == "error" for old, new in common)
    found: GateMeasurement = {"value": regressions if evaluated else None, "n": len(evaluated), "errors": errors}
    return found, regressions <= gate["max_regressions"]


def _measure_drop(gate: PendingGate, common: Sequence[tuple[CaseReport, CaseReport]]) -> tuple[GateMeasurement, bool]:
    """Measure how the mean changed over the cases that have a score in both reports."""
    name, rule = gate["metric"], gate["no_regression"]
    scores = paired_scores(name, common)
    errors = 0 if name == PASS_RATE else sum(new["outcome"] == "error" for _, new in common)
    if not scores:
        return {"value": None, "n": 0, "errors": errors}, True
    # scipy.stats takes long to import.
    from pytest_queryeval.results.baseline.statistics import Pairs, detectable_drop, fall_p, mean

    pairs = Pairs(before=[old for old, _ in scores], after=[new for _, new in scores])
    oriented = pairs.negated if gate["better"] == "lower" else pairs
    p = fall_p(oriented)
    found: GateMeasurement = {
        "value": pairs.change,
        "n": len(scores),
        "errors": errors,
        "before": mean(pairs.before),
        "after": mean(pairs.after),
        "p": p,
        "detectable": detectable_drop(oriented, rule["alpha"], rule["max_drop"]),
    }
    return found, not is_regression(oriented, p, alpha=rule["alpha"], max_drop=rule["max_drop"])
