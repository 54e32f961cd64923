"""Rules for gates that compare with a baseline: `no_regression`, `max_regressions`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from pytest_queryeval.core.case_report import CaseReport
from pytest_queryeval.core.errors import CaseError
from pytest_queryeval.core.gates import GateKey, GateRule, Requirement, requirement
from pytest_queryeval.core.model import ALPHA, OF_TRIALS, PASS_RATE, SCORE_TOLERANCE
from pytest_queryeval.core.report import GateMeasurement, GateReport, PendingGate
from pytest_queryeval.core.run_metrics import RUN_METRICS
from pytest_queryeval.core.shapes import shape, shape_of
from pytest_queryeval.documents.document import Node
from pytest_queryeval.documents.values import (
    known_entries,
    mapping_of,
    number,
    number_from_zero,
    unexpected,
    whole_number,
)
from pytest_queryeval.metrics import METRICS, better_of
from pytest_queryeval.results.baseline.difference import MET, change_of_sides
from pytest_queryeval.results.baseline.pairs import Pairs, mean, score_of
from pytest_queryeval.text.formatting import format_score, signed

MIN_ALPHA, MAX_ALPHA = 0.001, 0.5  # the tests draw random signs 9,999 times
_DESCRIPTIONS = {
    "metric": "a metric, or pass_rate: the share of cases that pass",
    "alpha": f"the level of the test whether a drop is chance; default: {ALPHA:g}",
    "max_drop": "how far the mean may be below that of the baseline; default: 0",
}


@shape({"type": "number", "minimum": MIN_ALPHA, "maximum": MAX_ALPHA})
def _read_alpha(node: Node) -> float:
    expectation = f"a number from {MIN_ALPHA:g} to {MAX_ALPHA:g}"
    value = number(node, expectation)
    if not MIN_ALPHA <= value <= MAX_ALPHA:
        raise unexpected(node, expectation)
    return value


class NoRegression(GateRule):
    """The greatest drop of a mean, or rise where lower is better."""

    example = "{no_regression: {metric: execution_accuracy}}"
    needs_baseline = True
    has_limits = False

    def keys(self, metric: Callable[[Any], str]) -> Mapping[str, GateKey]:
        readers = {"metric": metric, "alpha": _read_alpha, "max_drop": number_from_zero}

        @shape(lambda: {**shape_of(mapping_of(readers, _DESCRIPTIONS)), "required": ["metric"]})
        def read(node: Node) -> dict[str, Any]:
            if isinstance(node.value, str):
                name = node.value if node.value in RUN_METRICS or node.value in METRICS else "NAME"
                raise unexpected(node, "a mapping", f": write {{metric: {name}}}")
            fields = known_entries(node, readers)
            if "metric" not in fields:
                raise node.problem("'no_regression' needs a metric: write {metric: NAME}")
            if fields["metric"] in OF_TRIALS:
                problem = f"'{fields['metric']}' is not compared with a baseline: name the metric of the trials"
                raise node.problem(problem)
            return fields

        return {"no_regression": GateKey(read, "compares a metric with its value in the baseline")}

    def requirement(self, fields: Mapping[str, Any], problem: Callable[[str], CaseError]) -> PendingGate:
        settings = fields["no_regression"]
        metric = settings["metric"]
        return {
            **requirement(metric),
            "no_regression": {"alpha": settings.get("alpha", ALPHA), "max_drop": settings.get("max_drop", 0.0)},
            "better": better_of(metric),
        }

    def stored_keys(self, gate: GateReport) -> Sequence[str]:
        measured_keys = () if gate["value"] is None else ("before", "after", "p", "detectable")
        return ("no_regression", "better", *measured_keys)

    def evidence(self, gate: PendingGate) -> ScorePairs:
        return ScorePairs(gate["metric"])

    def subject(self, gate: PendingGate) -> str:
        return f"regression of {gate['metric']}"

    def requirements(self, gate: PendingGate) -> Iterator[Requirement]:
        yield ("no_regression",), (gate["no_regression"]["alpha"], -gate["no_regression"]["max_drop"])

    def value_text(self, gate: GateReport, value: float) -> str:
        least, most = gate["detectable"], gate["no_regression"]["max_drop"]
        change = "drop" if gate["better"] == "higher" else "rise"
        proof_text = f"a {change} of {format_score(least)} is proven in 4 of 5 runs" if least is not None else ""
        limit_text = f"a {change} of at most {most:g} allowed" if most else f"no proven {change} allowed"
        return (
            f"{signed(value)} (p {gate['p']:.3f}; {proof_text or f'too few cases to show any {change}'}), {limit_text}"
        )

    def short_texts(self, gate: GateReport, value: float) -> tuple[str, str]:
        return signed(value).replace("-", "\N{MINUS SIGN}"), f"p {gate['p']:.3f}"


class ScorePairs:
    """The scores of a metric in both runs."""

    def __init__(self, metric: str) -> None:
        self._metric = metric
        self._pairs = Pairs()
        self._errors = 0

    def add(self, case: CaseReport, earlier: CaseReport | None) -> None:
        """Add a case that the baseline has as well."""
        if earlier is not None:
            self._errors += case["outcome"] == "error" and self._metric != PASS_RATE
            self._pairs.add(score_of(self._metric, earlier), score_of(self._metric, case))

    def measurement(self, gate: PendingGate) -> tuple[GateMeasurement, bool]:
        """Return how the mean changed over the cases that have a score in both runs."""
        rule, pairs = gate["no_regression"], self._pairs
        if not pairs.before:
            return {"value": None, "n": 0, "errors": self._errors}, True
        # scipy.stats takes long to import.
        from pytest_queryeval.results.baseline.statistics import detectable_drop, fall_p

        oriented = pairs.oriented(gate["better"])
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


def is_regression(pairs: Pairs, p: float, *, alpha: float, max_drop: float) -> bool:
    """Return whether the mean fell by more than `max_drop`, and `p`, the `fall_p` of the pairs, is at most `alpha`.

    A system that did not change is taken for a worse one in at most `alpha` of all runs.
    """
    return -pairs.change > max_drop + SCORE_TOLERANCE and p <= alpha


class MaxRegressions(GateRule):
    """The greatest number of regressions."""

    example = "{max_regressions: 3}"
    needs_baseline = True
    has_limits = False

    def keys(self, metric: Callable[[Any], str]) -> Mapping[str, GateKey]:
        description = "how many cases may pass in the baseline and fail now"
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


NO_REGRESSION = NoRegression()
MAX_REGRESSIONS = MaxRegressions()
