"""Gates that compare with a baseline: `no_regression` of a metric, and `max_regressions` cases."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pytest_queryeval.core.model import PASS_RATE
from pytest_queryeval.results.aggregation import CaseJson
from pytest_queryeval.results.baseline.flips import MET, Told, paired_scores

if TYPE_CHECKING:
    from pytest_queryeval.results.baseline.statistics import Pairs


def is_regression(pairs: Pairs, p: float, *, alpha: float, max_drop: float) -> bool:
    """Whether the mean fell by more than `max_drop`, and the one-sided paired test, whose `fall_p` is p, says so.

    A system that did not change is taken for a worse one in at most `alpha` of all runs.
    """
    return -pairs.change > max_drop + 1e-9 and p <= alpha


def nothing() -> dict[str, Any]:
    """What a gate has where there is nothing to compare with."""
    return {"value": None, "n": 0, "errors": 0, "is_met": True}


def measured(gate: Mapping[str, Any], cases: Sequence[CaseJson], baseline: Told) -> dict[str, Any]:
    """What a gate is evaluated on: `value`, None where no case can be compared, `n` cases, `errors` and `is_met`."""
    known = {case["nodeid"]: case for case in baseline["cases"]}
    common = [(known[case["nodeid"]], case) for case in cases if case["nodeid"] in known]
    return _regressions(gate, common) if gate.get("max_regressions") is not None else _drop(gate, common)


def _regressions(gate: Mapping[str, Any], common: Iterable[tuple[CaseJson, CaseJson]]) -> dict[str, Any]:
    """The number of cases that met their thresholds and no longer do, of those with a verdict in both reports."""
    evaluated = [(old, new) for old, new in common if old["outcome"] in MET and new["outcome"] in MET]
    regressions = sum(MET[old["outcome"]] and not MET[new["outcome"]] for old, new in evaluated)
    errors = sum(old["outcome"] in MET and new["outcome"] == "error" for old, new in common)
    value = regressions if evaluated else None
    return {"value": value, "n": len(evaluated), "errors": errors, "is_met": regressions <= gate["max_regressions"]}


def _drop(gate: Mapping[str, Any], common: Sequence[tuple[CaseJson, CaseJson]]) -> dict[str, Any]:
    """How the mean changed over the cases that have a score in both reports."""
    name, wish = gate["metric"], gate["no_regression"]
    both = paired_scores(name, common)
    counted = 0 if name == PASS_RATE else sum(new["outcome"] == "error" for _, new in common)
    if not both:
        return nothing() | {"errors": counted}
    # scipy.stats takes long to import.
    from pytest_queryeval.results.baseline.statistics import Pairs, detectable_drop, fall_p, mean

    pairs = Pairs(before=[old for old, _ in both], after=[new for _, new in both])
    judged = pairs.negated if gate.get("better") == "lower" else pairs
    p = fall_p(judged)
    return {
        "value": pairs.change,
        "n": len(both),
        "errors": counted,
        "before": mean(pairs.before),
        "after": mean(pairs.after),
        "p": p,
        "detectable": detectable_drop(judged, wish["alpha"], wish["max_drop"]),
        "is_met": not is_regression(judged, p, alpha=wish["alpha"], max_drop=wish["max_drop"]),
    }
