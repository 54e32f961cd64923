"""Which gates of a run are decided before all of its cases ran, and whether the rest is needed."""

import pytest
from report_parts import refusal
from samples import FINGERPRINT, entry, make_case

from pytest_queryeval.core.gates import requirement
from pytest_queryeval.runs.stopping import EarlyStop  # white box: which gates a run waits for

PATH = "music/s.queryeval.yaml"


def gate(metric="pass_rate", *, cases=100, minimum=None, maximum=None, **changes):
    required = requirement(metric, minimum=minimum, maximum=maximum)
    return required | {"type": "limits", "folder": "music", "cases": cases} | changes


def max_regressions(number):
    return gate("regressions", type="max_regressions", max_regressions=number)


def named(number=100, path=PATH, **changes):
    """Cases with their node ids and the paths of their files."""
    return [(make_case(id=f"c{n}", **changes), f"{path}::c{n}", path) for n in range(number)]


def stop(*gates, cases=None, mode="complete", has_baseline=False):
    return EarlyStop(0, gates, named() if cases is None else cases, mode=mode, has_baseline=has_baseline)


def ran(outcome="passed", path=PATH, **changes):
    defaults = {"outcome": outcome, "path": path, "scores": {}, "kind": "sql"}
    return entry(**defaults | {"fingerprint": FINGERPRINT | {"metrics": ["execution_accuracy"]}} | changes)


def decision(early, pending):
    actual = early.decision(pending)
    return None if actual is None else (actual.is_met, actual.after, actual.of)


def test_failed_cases_and_errors_count_against_a_gate_and_expected_failures_do_not():
    least = gate(minimum=0.9)
    early, expected = stop(least), stop(least)

    for _ in range(11):
        early.add(ran("error"))
        expected.add(ran("xfailed"))

    assert decision(early, least)[0] is False
    assert decision(expected, least) is None


def test_an_error_counts_as_0_in_the_mean_of_a_metric():
    least, most = gate("execution_accuracy", minimum=0.9), gate("execution_accuracy", maximum=0.5)
    early = stop(least, most)

    for _ in range(20):
        early.add(ran("error"))

    assert (decision(early, least)[0], decision(early, most)[0]) == (False, True)


def test_a_gate_without_any_score_is_not_decided():
    least = gate("execution_accuracy", minimum=0.0)
    early = stop(least)

    early.add(ran(scores={"execution_accuracy": None}))
    assert not early.is_decided
    early.add(ran(scores={"execution_accuracy": 0.3}))
    assert decision(early, least) == (True, 2, 100)


def test_a_rule_that_does_not_say_when_some_cases_are_enough_needs_all_of_them():
    early = stop(gate(minimum=0.5), gate(minimum=0.5, type="max_seconds"))

    for _ in range(100):
        early.add(ran())

    assert early.needs_all == ["max_seconds of pass_rate: its rule needs all cases"]
    assert not early.is_decided


def test_a_gate_counts_only_cases_that_request_its_metric():
    least = gate("execution_accuracy", minimum=0.5, cases=12)
    early = stop(least, cases=[*named(2), *named(10, metrics=("valid_query",), thresholds={})])

    early.add(ran(scores={"valid_query": 1.0}, fingerprint=FINGERPRINT | {"metrics": ["valid_query"]}))
    assert decision(early, least) is None
    early.add(ran(scores={"execution_accuracy": 1.0}))
    assert decision(early, least) == (True, 1, 2)  # 1 of 2 is enough


def test_more_limits_are_decided_later():
    first, second = gate(minimum=0.5), gate(minimum=0.4, maximum=1.0)
    alone, together = stop(first), stop(first, second)

    for early in (alone, together):
        for _ in range(50):
            early.add(ran())

    assert decision(alone, first)[1] < decision(together, first)[1]


@pytest.mark.parametrize(
    ("pending", "why"),
    [
        (gate("total_tokens", maximum=5.0, type="sum"), "sum of total_tokens: it limits a sum"),
        (gate("ves", minimum=0.5), "ves: its scores are not from 0 to 1"),
        (
            gate("pass_rate", type="no_regression", no_regression={"alpha": 0.05, "max_drop": 0.0}, better="higher"),
            "no regression of pass_rate: it compares with the baseline",
        ),
        (max_regressions(0), "regressions: it compares with the baseline"),
    ],
)
def test_a_gate_that_needs_all_cases_keeps_the_run_going(pending, why):
    early, alone = stop(gate(minimum=0.5), pending, has_baseline=True), stop(pending, has_baseline=True)

    for _ in range(60):
        early.add(ran())

    assert (early.problem, early.needs_all, early.is_decided) == ("", [why], False)
    assert alone.problem == why


@pytest.mark.parametrize(
    ("pending", "how", "why"),
    [
        (gate(minimum=0.5, cases=400), {}, "pass_rate: only 100 of 400 cases are selected"),
        (gate(minimum=0.5, cases=None), {}, "pass_rate: a suite file below could not be read"),
        (gate(minimum=0.5), {"mode": "off"}, "pass_rate: gates are off"),
        (max_regressions(0), {}, "regressions: no baseline was given"),
        (gate("entity_set_f1", minimum=0.5), {}, "entity_set_f1: no case has a score"),
    ],
)
def test_a_gate_without_a_result_in_this_run_is_not_waited_for(pending, how, why):
    assert stop(pending, **how).problem == why
    if how:
        return
    second = gate(minimum=0.5, folder=".")
    early = stop(pending, second)
    for _ in range(30):
        early.add(ran())
    assert early.is_decided


def test_without_a_gate_there_is_nothing_to_decide():
    assert stop().problem == "there is no gate"
    assert stop(*[max_regressions(0)] * 5).problem.endswith("; regressions: no baseline was given and 2 more")


@pytest.mark.feature("evaluate")
@pytest.mark.parametrize("given", ["on", "decided:", "decided:x", "decided:-1", "Decided", "decided:1:2"])
def test_anything_else_is_no_option(given):
    expected = "expected decided, decided:SEED with a whole number of at most 15 digits, or off"

    assert refusal("evaluate", ".", f"--stop={given}") == f"--stop: {expected}, found '{given}'"
