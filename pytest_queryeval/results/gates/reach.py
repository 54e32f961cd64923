"""Which wrong answers thresholds and gates notice, and which decide nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from pytest_queryeval.core.errors import Finding
from pytest_queryeval.core.gates import Gate, limits_of
from pytest_queryeval.core.groups import Scopes
from pytest_queryeval.core.mappings import grouped
from pytest_queryeval.core.metric import RUN_METRICS
from pytest_queryeval.core.model import PASS_RATE, Case, Threshold
from pytest_queryeval.core.report import PendingGate
from pytest_queryeval.metrics import METRICS, better_of, can_be_missed
from pytest_queryeval.results.gates import CaseWithoutResult, count_cases, rule_of, with_gate_metrics
from pytest_queryeval.text.formatting import pluralize

RULE = "nothing-required"


def undecided_cases(cases: Iterable[tuple[Case, str]], gates: Sequence[Gate]) -> Iterator[Case]:
    """Yield the cases whose wrong answers decide nothing: no threshold fails them, and none of their gates counts them.

    Each case comes with the path of its file; the gates are those above it. Skipped cases are left out.
    """
    named_cases = [(case, path) for case, path in cases if case.skip is None and not case.withdrawal]
    required = [gate.required for gate in gates]
    scopes = Scopes((None, gate["where"]) for gate in required)
    for case, (_, path) in zip(with_gate_metrics(named_cases, gates), named_cases, strict=True):
        if case.settings.on_miss == "fail" and is_answer_required(case):
            continue
        if not any(_can_miss(required[number], case) for number in scopes.of_case(case, path)):
            yield case


def is_answer_required(case: Case) -> bool:
    """Return whether an answer to a case can miss a threshold of a metric that judges answers."""
    return any(
        METRICS[name].group == "answers" and can_be_missed(name, threshold)
        for name, threshold in case.settings.thresholds.items()
    )


def _can_miss(gate: PendingGate, case: Case) -> bool:
    """Return whether a wrong answer to a case in the gate's scope can make the gate be missed."""
    metric = gate["metric"]
    if _useful_limit(gate):
        return False
    if metric in METRICS:
        return METRICS[metric].group == "answers" and metric in case.settings.requested_metrics
    judges = RUN_METRICS[metric].judges if metric in RUN_METRICS else None
    return is_answer_required(case) if judges is None else judges(case)


def _useful_limit(gate: PendingGate) -> str:
    """Return the limit, `min` or `max`, without which a worse system cannot miss the gate; empty if the gate has it."""
    if not rule_of(gate).has_limits:
        return ""
    limits, is_higher_better = limits_of(gate), better_of(gate["metric"]) == "higher"
    relevant = Threshold(minimum=limits.minimum) if is_higher_better else Threshold(maximum=limits.maximum)
    is_limited = relevant != Threshold() and can_be_missed(gate["metric"], relevant)
    return "" if is_limited else "min" if is_higher_better else "max"


def lenient_gates(gates: Iterable[Gate], silenced: str = "") -> Iterator[Finding]:
    """Yield a finding for each gate that only limits how good a system may be; `silenced` is passed to the finding."""
    for gate in gates:
        if limit := _useful_limit(gate.required):
            better = better_of(gate.required["metric"])
            message = (
                f"the gate limits only how good '{gate.required['metric']}' may be, because {better} is better: "
                f"write `{limit}`"
            )
            yield Finding(rule=RULE, location=gate.location, message=message, silenced=silenced)


def harmless_gates(
    gates: Iterable[Gate], cases: Iterable[tuple[Case, str]], folder_of: Callable[[Path], str]
) -> list[tuple[Gate, Finding]]:
    """Return, each with a finding, the gates on regressions that are met even if all of their cases fail.

    The cases are all of those that the gates are about, each with the path of its file. `folder_of` names the folder of
    a gate as these paths do.
    """
    counting_gates = [(gate, gate.required["max_regressions"]) for gate in gates if "max_regressions" in gate.required]
    if not counting_gates:
        return []
    pending_gates: list[PendingGate] = [
        {**gate.required, "folder": folder_of(gate.folder)} for gate, _ in counting_gates
    ]
    to_run = (CaseWithoutResult(path, case) for case, path in cases if case.skip is None and not case.withdrawal)
    harmless: list[tuple[Gate, Finding]] = []
    for (gate, most), number in zip(counting_gates, count_cases(pending_gates, (), to_run), strict=True):
        if 0 < number <= most:
            about = pluralize(number, "case")
            message = f"the gate is about {about}, so it cannot be missed: write at most {number - 1:,}"
            harmless.append((gate, Finding(rule=RULE, location=gate.location, message=message)))
    return harmless


def ungated_findings(cases: Iterable[Case]) -> Iterator[Finding]:
    """Yield a finding for each place of `on_miss: xfail` that applies to some of these cases, which no gate counts."""
    by_place = grouped(
        ((case.settings.on_miss_location, case.settings.ignored_rules.get(RULE, "")), case) for case in cases
    )
    for (place, silenced), ungated in by_place.items():
        some, whose = f"case '{ungated[0].id}' is", "its"
        if len(ungated) > 1:
            some, whose = f"{pluralize(len(ungated), 'case')} are", "their"
        problem = f"with `on_miss: xfail`, {some} in no gate, so {whose} failures decide nothing"
        message = f"{problem}: {gate_remedy(shared_metric(ungated) or PASS_RATE)}"
        yield Finding(rule=RULE, location=place or ungated[0].location, message=message, silenced=silenced)


def shared_metric(cases: Sequence[Case]) -> str:
    """Return the first metric that all cases request and whose mean can be at least 0.9; empty if there is none."""
    names = cases[0].settings.requested_metrics
    shares = (name for name in names if "[" not in name and METRICS[name].max_score == 1)
    return next(
        (
            name
            for name in shares
            if METRICS[name].better == "higher" and all(name in case.settings.requested_metrics for case in cases)
        ),
        "",
    )


def gate_remedy(metric: str) -> str:
    """Return the remedy that adds a gate on a metric."""
    return f"add `{{metric: {metric}, min: 0.9}}` to the `gates` of a queryeval.yaml"
