"""The rules of gates: limits of a mean and of a sum, and those that compare with a baseline.

`limits` bounds the mean of a metric, and `sum` the total of a measure over all calls; `no_regression` and
`max_regressions` need a baseline.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from pytest_queryeval.core.case_report import CaseReport
from pytest_queryeval.core.errors import CaseError
from pytest_queryeval.core.gates import (
    GateKey,
    GateRule,
    Numbers,
    Requirement,
    requirement,
    result_between,
)
from pytest_queryeval.core.metric import RUN_METRICS
from pytest_queryeval.core.model import ALPHA, PASS_RATE, SCORE_TOLERANCE, TRIALS_SCORES
from pytest_queryeval.core.report import GateMeasurement, GateReport, Measured, PendingGate
from pytest_queryeval.core.shapes import Shape, either, mapping_shape, shape, shape_of
from pytest_queryeval.core.steps import STEP_MEASURES
from pytest_queryeval.documents.document import Node
from pytest_queryeval.documents.values import (
    known_entries,
    mapping_of,
    number,
    number_from_zero,
    number_within,
    unexpected,
    whole_number,
)
from pytest_queryeval.metrics import METRICS, better_of, greatest_score, least_score
from pytest_queryeval.results.aggregation import measures_of
from pytest_queryeval.results.baseline import MET_BY_OUTCOME, flip_kind
from pytest_queryeval.results.baseline.pairs import Pairs, compared_scores, mean, score_of
from pytest_queryeval.text.formatting import format_amount, format_score, p_text, pluralize, signed

MIN_ALPHA, MAX_ALPHA = 0.001, 0.5  # the tests draw random signs 9,999 times
_NO_REGRESSION_DESCRIPTIONS = {
    "metric": "a metric, or pass_rate: the share of cases that pass",
    "alpha": f"the level of the test whether a drop is chance; default: {ALPHA:g}",
    "max_drop": "how far the mean may be below that of the baseline; default: 0",
}
_MEASURES = ("prediction_seconds", "execution_seconds", *STEP_MEASURES)
_SUMMED = re.compile(rf"^({'|'.join(_MEASURES)}|metadata\[.+\])$")


class LimitsRule(GateRule):
    """The limits of a mean."""

    example = "{metric: execution_accuracy, min: 0.9}"
    needs_all = ""
    counts = ("unpredicted", "unscored")

    def keys(self, metric: Callable[[Any], str]) -> Mapping[str, GateKey]:
        return {
            "metric": GateKey(metric, "a metric, or pass_rate: the share of cases that pass"),
            "min": GateKey(number, "the least mean over the cases", is_required=False),
            "max": GateKey(number, "the greatest mean over the cases", is_required=False),
        }

    def shape(self, metric: Callable[[Any], str]) -> Shape:
        return {**super().shape(metric), **either({"required": ["min"]}, {"required": ["max"]})}

    def observe(self, gate: PendingGate, case: CaseReport, earlier: CaseReport | None) -> Mapping[str, float]:
        score = score_of(gate["metric"], case)
        return {} if score is None else {"score": score}

    def measure(self, gate: PendingGate, numbers: Numbers) -> Measured:
        return {"value": mean(numbers["score"]) if numbers["score"] else None}

    def subject(self, gate: PendingGate) -> str:
        return gate["metric"]

    def result_without_rest(self, gate: PendingGate, value: float, n: int, cases_not_run: int) -> bool | None:
        if (most := greatest_score(gate["metric"])) is None:
            return None
        total, n_all = value * n, n + cases_not_run
        least = total + least_score(gate["metric"]) * cases_not_run if cases_not_run else total
        return result_between(gate, least / n_all, (total + most * cases_not_run) / n_all)


def why_all(gate: PendingGate, rule: GateRule) -> str:
    """Return why a gate needs all of its cases; empty if a random part of them can be enough to decide it."""
    metric = gate["metric"]
    if rule.needs_baseline or rule.needs_all:
        return "it compares with the baseline" if rule.needs_baseline else rule.needs_all
    if metric in RUN_METRICS and RUN_METRICS[metric].joint_scores is not None:
        return "several cases decide it together"
    return "" if (least_score(metric), greatest_score(metric)) == (0.0, 1.0) else "its scores are not from 0 to 1"


def score_with_errors(gate: PendingGate, case: CaseReport) -> float | None:
    """Return what a case adds to a mean from 0 to 1: its score, or 0 if it is in error; None if it adds nothing."""
    metric = gate["metric"]
    if case["outcome"] == "error" and requests(case, metric):
        return 0.0
    score = score_of(metric, case)
    return None if score is None else min(max(score, 0.0), 1.0)


def requests(case: CaseReport, metric: str) -> bool:
    """Return whether a case requests a metric, by its fingerprint."""
    return case["fingerprint"] is not None and metric in case["fingerprint"]["metrics"]


def is_without_prediction(case: CaseReport) -> bool:
    """Return whether a case is in error only because the system gave no answer, while its golds ran."""
    has_golds = case["fingerprint"] is not None and case["fingerprint"].get("gold_answers") is not None
    return case["prediction"] is None and (has_golds or not case.get("answerable", True))


LIMITS = LimitsRule()


_read_alpha = number_within(f"a number from {MIN_ALPHA:g} to {MAX_ALPHA:g}", minimum=MIN_ALPHA, maximum=MAX_ALPHA)


class NoRegression(GateRule):
    """The greatest drop of a mean, or rise where lower is better."""

    example = "{no_regression: {metric: execution_accuracy}}"
    needs_baseline = True
    has_limits = False

    def keys(self, metric: Callable[[Any], str]) -> Mapping[str, GateKey]:
        readers = {"metric": metric, "alpha": _read_alpha, "max_drop": number_from_zero}

        @shape(lambda: {**shape_of(mapping_of(readers, _NO_REGRESSION_DESCRIPTIONS)), "required": ["metric"]})
        def read(node: Node) -> dict[str, Any]:
            if isinstance(node.value, str):
                name = node.value if node.value in RUN_METRICS or node.value in METRICS else "NAME"
                raise unexpected(node, "a mapping", f": write {{metric: {name}}}")
            fields = known_entries(node, readers)
            if "metric" not in fields:
                raise node.problem("'no_regression' needs a metric: write {metric: NAME}")
            if fields["metric"] in TRIALS_SCORES:
                problem = f"'{fields['metric']}' is not compared with a baseline: name the metric of the trials"
                raise node.problem(problem)
            return fields

        return {"no_regression": GateKey(read, "compares a metric with its value in the baseline")}

    def requirement(self, fields: Mapping[str, Any], problem: Callable[[str], CaseError]) -> PendingGate:
        settings = fields["no_regression"]
        metric, greatest = settings["metric"], greatest_score(settings["metric"])
        if greatest is not None and settings.get("max_drop", 0.0) >= greatest - least_score(metric):
            change = "drop" if better_of(metric) == "higher" else "rise"
            raise problem(
                f"this gate is always met, because no {change} of '{metric}' is above {greatest:g}: write a max_drop"
                f" below {greatest:g}"
            )
        return {
            **requirement(metric),
            "no_regression": {"alpha": settings.get("alpha", ALPHA), "max_drop": settings.get("max_drop", 0.0)},
            "better": better_of(metric),
        }

    def observe(self, gate: PendingGate, case: CaseReport, earlier: CaseReport | None) -> Mapping[str, float] | None:
        if earlier is None:
            return None
        before, after = compared_scores(gate["metric"], earlier, case)
        if before is None or after is None:
            return None if gate["metric"] == PASS_RATE else {}
        return {"before": before, "after": after}

    def measure(self, gate: PendingGate, numbers: Numbers) -> Measured:
        """Return the change of the mean over the cases with a score in both runs, its p value and detectable drop."""
        rule, pairs = gate["no_regression"], Pairs(before=numbers["before"], after=numbers["after"])
        if not pairs.before:
            return {"value": None}
        # scipy.stats takes long to import.
        from pytest_queryeval.results.baseline.statistics import detectable_drop, fall_p

        oriented, worst = pairs.oriented(gate["better"]), worst_score(gate)
        return {
            "value": pairs.change,
            "before": mean(pairs.before),
            "after": mean(pairs.after),
            "p": fall_p(oriented),
            "detectable": detectable_drop(oriented, rule["alpha"], rule["max_drop"]),
            "able_to_drop": sum(pair != (worst, worst) for pair in zip(pairs.before, pairs.after, strict=True)),
        }

    def is_met(self, gate: PendingGate, measured: Measured) -> bool:
        change = measured["value"] or 0.0
        oriented_change = change if gate["better"] == "higher" else -change
        return not is_regression(oriented_change, measured.get("p", 1.0), **gate["no_regression"])

    def why_undecided(self, gate: PendingGate, measurement: GateMeasurement) -> str:
        """Return why the pairs could not show a drop, whatever the scores of the run; empty if they could."""
        pairs, able, needed = measurement["n"], measurement["able_to_drop"], pairs_needed(gate)
        before, max_drop = measurement["before"], gate["no_regression"]["max_drop"]
        change = _worse_change(gate)
        if max_drop and abs(before - worst_score(gate)) <= max_drop:
            return f"the baseline is {format_score(before)}, so no {change} can be above {max_drop:g}: lower max_drop"
        if able >= needed:
            return ""
        if able == pairs:
            return f"{pluralize(pairs, 'case')} cannot show a {change}: the gate needs {needed}"
        return f"only {able:,} of {pluralize(pairs, 'case')} could {change}: the gate needs {needed}"

    def subject(self, gate: PendingGate) -> str:
        return f"no regression of {gate['metric']}"

    def requirements(self, gate: PendingGate) -> Iterator[Requirement]:
        yield ("no_regression",), (gate["no_regression"]["alpha"], -gate["no_regression"]["max_drop"])

    def shown_value(self, gate: GateReport, value: float) -> str:
        return signed(value)

    def value_text(self, gate: GateReport, value: float, which: str) -> str:
        amount = signed(value)
        change = f"{'fell' if value < 0 else 'rose'} by {amount[1:]}" if amount[0] in "+-" else "did not change"
        return f"{gate['metric']}{which} {change} since {gate.get('baseline') or 'the baseline'}"

    def cases_text(self, gate: GateReport) -> str:
        text = f"p {p_text(gate['p'])}, {super().cases_text(gate)}"
        if not gate["ok"]:
            return text
        change, least = _worse_change(gate), gate["detectable"]
        enough = (
            f"too few to show a {change}" if least is None else f"which can show a {change} of {format_score(least)}"
        )
        return f"{text}, {enough}"

    def limit_text(self, gate: PendingGate) -> str:
        most, change = gate["no_regression"]["max_drop"], _worse_change(gate)
        return f"allows a {change} of at most {most:g}" if most else f"allows no significant {change}"


def _worse_change(gate: PendingGate) -> str:
    """Return the word for a change for the worse: "drop", or "rise" if lower is better."""
    return "drop" if gate["better"] == "higher" else "rise"


def worst_score(gate: PendingGate) -> float:
    """Return the worst possible score of the gate's metric; infinite, or minus infinity, if there is no bound."""
    greatest = greatest_score(gate["metric"])
    if gate["better"] == "higher":
        return -math.inf if greatest is None else least_score(gate["metric"])
    return math.inf if greatest is None else greatest


def pairs_needed(gate: PendingGate) -> int:
    """Return the number of pairs from which a drop of all of them is significant at the level of the gate."""
    return math.ceil(-math.log2(gate["no_regression"]["alpha"]))


def is_regression(change: float, p: float, *, alpha: float, max_drop: float) -> bool:
    """Return whether a mean fell by more than `max_drop`, and `p`, the `fall_p` of the pairs, is at most `alpha`.

    An unchanged system is taken for a worse one in at most `alpha` of all runs.
    """
    return -change > max_drop + SCORE_TOLERANCE and p <= alpha


class MaxRegressions(GateRule):
    """The greatest number of regressions."""

    example = "{max_regressions: 3}"
    needs_baseline = True
    needs_scores = False
    has_limits = False
    number_text = staticmethod("{:,}".format)

    def keys(self, metric: Callable[[Any], str]) -> Mapping[str, GateKey]:
        description = "how many cases may pass in the baseline and fail now"
        return {"max_regressions": GateKey(whole_number(0), description)}

    def requirement(self, fields: Mapping[str, Any], problem: Callable[[str], CaseError]) -> PendingGate:
        return {**requirement("regressions"), "max_regressions": fields["max_regressions"]}

    def observe(self, gate: PendingGate, case: CaseReport, earlier: CaseReport | None) -> Mapping[str, float] | None:
        """Return whether a case met its thresholds before, and whether it regressed.

        None if the case is not comparable in the baseline, an empty mapping if it has no comparable outcome now.
        """
        if earlier is None or earlier["outcome"] not in MET_BY_OUTCOME:
            return None
        before, after = earlier["outcome"], case["outcome"]
        if after not in MET_BY_OUTCOME:
            return {}
        return {"passed": MET_BY_OUTCOME[before], "regressed": flip_kind(before, after) == "regressions"}

    def measure(self, gate: PendingGate, numbers: Numbers) -> Measured:
        regressed = numbers["regressed"]
        return {"value": int(sum(regressed)) if regressed else None, "able_to_drop": int(sum(numbers["passed"]))}

    def subject(self, gate: PendingGate) -> str:
        return "regressions"

    def result_without_rest(self, gate: PendingGate, value: float, n: int, cases_not_run: int) -> bool | None:
        if value > gate["max_regressions"]:
            return False
        return True if value + cases_not_run <= gate["max_regressions"] < n + cases_not_run else None

    def why_undecided(self, gate: PendingGate, measurement: GateMeasurement) -> str:
        """Return why the pairs could not miss the gate, however the cases ended; empty if they could."""
        pairs, able = measurement["n"], measurement["able_to_drop"]
        if able > gate["max_regressions"]:
            return ""
        if not able:
            return f"none of {pluralize(pairs, 'case')} passed in the baseline, so there can be no regression"
        cases = pluralize(pairs, "case")
        problem = f"{cases} cannot have more than {pluralize(pairs, 'regression')}"
        if able < pairs:
            problem = f"only {able:,} of {cases} passed in the baseline"
        return f"{problem}: run more cases, or write at most {able - 1:,}"

    def value_text(self, gate: GateReport, value: float, which: str) -> str:
        return f"{pluralize(int(value), 'regression')}{which} since {gate.get('baseline') or 'the baseline'}"

    def limit_text(self, gate: PendingGate) -> str:
        return f"allows at most {gate['max_regressions']:,}"


NO_REGRESSION = NoRegression()
MAX_REGRESSIONS = MaxRegressions()


@shape({**mapping_shape(dict.fromkeys(("min", "max"), shape_of(number_from_zero))), "minProperties": 1})
def _read_sum(node: Node) -> dict[str, float]:
    if isinstance(node.value, str):
        raise unexpected(node, "a mapping", ": write {max: NUMBER}")
    return known_entries(node, dict.fromkeys(("min", "max"), number_from_zero))


class SumRule(GateRule):
    """The limits of a sum, which includes each trial and the calls of cases in error, and no negative number."""

    example = '{metric: "metadata[cost]", sum: {max: 5}}'
    needs_all = "it limits a sum"
    counts = ("rerun",)
    needs_scores = False
    number_text = staticmethod(format_amount)
    no_value = "no case has a value of {metric}"

    def keys(self, metric: Callable[[Any], str]) -> Mapping[str, GateKey]:
        description = "the limits of the sum over all calls, for a time, steps or metadata[NAME]: {max: 5}"
        return {"metric": GateKey(metric, "what is summed"), "sum": GateKey(_read_sum, description)}

    def shape(self, metric: Callable[[Any], str]) -> Shape:
        properties = {"metric": {"type": "string", "pattern": _SUMMED.pattern}, "sum": shape_of(_read_sum)}
        return {**super().shape(metric), "properties": properties}

    def requirement(self, fields: Mapping[str, Any], problem: Callable[[str], CaseError]) -> PendingGate:
        if "min" in fields or "max" in fields:
            raise problem("min and max are limits of the mean, 'sum' has its own: write a gate for each")
        metric, limits = fields["metric"], fields["sum"]
        if not _SUMMED.match(metric):
            raise problem(f"'{metric}' has no sum: name metadata[NAME], {', '.join(_MEASURES[:-1])} or {_MEASURES[-1]}")
        return requirement(metric, minimum=limits.get("min"), maximum=limits.get("max"))

    def observe(self, gate: PendingGate, case: CaseReport, earlier: CaseReport | None) -> Mapping[str, float]:
        """Return the sum of the measure over the calls of a case; empty if no call has it.

        Negative numbers count as 0.
        """
        amounts = [max(amount, 0.0) for name, amount in measures_of(case) if name == gate["metric"]]
        return {"amount": math.fsum(amounts)} if amounts else {}

    def measure(self, gate: PendingGate, numbers: Numbers) -> Measured:
        return {"value": math.fsum(numbers["amount"]) if numbers["amount"] else None}

    def result_without_rest(self, gate: PendingGate, value: float, n: int, cases_not_run: int) -> bool | None:
        return result_between(gate, value, math.inf)

    def cases_text(self, gate: GateReport) -> str:
        is_whole = gate["n"] == gate["ran"]
        text = (
            super().cases_text(gate) if is_whole else f"{gate['n']:,} of {pluralize(gate['ran'], 'case')} have a value"
        )
        rerun = gate.get("rerun", 0)
        return f"{text}, earlier runs of {pluralize(rerun, 'case')} are left out" if rerun else text


SUM = SumRule()
