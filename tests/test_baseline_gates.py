"""Gates that compare with a baseline."""

import pytest
from report_maker import evaluate_gate
from samples import entry

from pytest_queryeval.core.gates import requirement
from pytest_queryeval.metrics import better_of
from pytest_queryeval.results.baseline import statistics
from pytest_queryeval.results.gates import gate_text, merge_gates


def no_regression(metric="f1", *, alpha=0.05, max_drop=0.0, **where):
    rule = {"no_regression": {"alpha": alpha, "max_drop": max_drop}, "better": better_of(metric)}
    return requirement(metric) | {"type": "no_regression"} | rule | {"folder": "music", "where": where}


def max_regressions(number, **where):
    rule = {"type": "max_regressions", "max_regressions": number}
    return requirement("regressions") | rule | {"folder": "music", "where": where}


def scored(*values, **changes):
    return [
        entry(
            id=str(n), nodeid=f"music/s::{n}", scores={"f1": value}, outcome="passed" if value else "failed", **changes
        )
        for n, value in enumerate(values)
    ]


def result(gate, before, after, *, number=0, **how):
    baseline = None if before is None else {"cases": before}
    return evaluate_gate(gate | {"cases": number}, after, baseline=baseline, **how)


@pytest.mark.parametrize(("fallen", "ok"), [(0, True), (4, True), (5, False), (8, False)])
def test_a_fall_is_a_regression_once_chance_hardly_explains_it(fallen, ok):
    gate_result = result(no_regression(), scored(*[1.0] * 8), scored(*[0.0] * fallen, *[1.0] * (8 - fallen)))

    assert gate_result["ok"] is ok
    assert gate_result["p"] == (0.5**fallen)
    assert gate_result["value"] == -fallen / 8


def test_alpha_says_how_hardly():
    before, after = scored(*[1.0] * 8), scored(*[0.0] * 5, *[1.0] * 3)

    assert result(no_regression(alpha=0.01), before, after)["ok"] is True
    assert result(no_regression(alpha=0.04), before, after)["ok"] is False


@pytest.mark.parametrize(("max_drop", "ok"), [(0.0, False), (0.09, False), (0.1, True), (0.2, True)])
def test_a_fall_by_no_more_than_max_drop_is_tolerated_however_sure_it_is(max_drop, ok):
    gate_result = result(no_regression(max_drop=max_drop), scored(*[0.9] * 100), scored(*[0.8] * 100))

    assert gate_result["ok"] is ok


def test_a_rise_is_no_regression():
    gate_result = result(no_regression(), scored(*[0.0] * 50), scored(*[1.0] * 50))

    assert (gate_result["ok"], gate_result["p"]) == (True, 1.0)


def test_the_gate_says_what_so_many_cases_could_have_shown():
    many = result(no_regression(), scored(*[1.0] * 100), scored(*[1.0] * 100))

    assert "0.000 (p 1.000; a drop of 0.066 is proven in 4 of 5 runs), no proven drop allowed (100 pairs)" in gate_text(
        many
    )


@pytest.mark.parametrize(
    ("gate", "before", "after", "reason"),
    [
        (no_regression(), [1.0] * 4, [1.0] * 4, "4 pairs cannot show a drop: the gate needs 5"),
        (no_regression(), [1.0] * 4, [0.0] * 4, "4 pairs cannot show a drop: the gate needs 5"),
        (no_regression(), [1.0] * 5, [1.0] * 5, None),
        (no_regression(alpha=0.001), [1.0] * 9, [1.0] * 9, "9 pairs cannot show a drop: the gate needs 10"),
        (no_regression(alpha=0.5), [1.0], [1.0], None),
        (
            no_regression("execution_accuracy"),
            [1.0, *[0.0] * 99],
            [0.0] * 100,
            "only 1 of 100 pairs could drop: the gate needs 5",
        ),
        (no_regression("execution_accuracy"), [0.0] * 9, [0.0] * 9, "only 0 of 9 pairs could drop: the gate needs 5"),
        (no_regression(max_drop=0.9), [0.5] * 9, [0.5] * 9, None),
        (no_regression("execution_accuracy", max_drop=0.9), [0.5] * 9, [0.5] * 9, "no drop can be above 0.9"),
        (no_regression("prediction_seconds"), [2.0] * 4, [1.0] * 4, "4 pairs cannot show a rise: the gate needs 5"),
        (no_regression("prediction_seconds"), [0.0] * 5, [0.0] * 5, None),
    ],
)
def test_a_gate_that_no_drop_could_miss_is_not_evaluated(gate, before, after, reason):
    earlier, cases = (
        [case | {"scores": {gate["metric"]: case["scores"]["f1"]}} for case in scored(*values)]
        for values in (before, after)
    )

    gate_result = result(gate, earlier, cases)

    assert gate_result["value"] is not None
    assert gate_result["ok"] is (True if reason is None else None)
    assert (reason or "") in gate_result["reason"]
    assert gate_text(gate_result).startswith(f"regression of {gate['metric']} in music: {gate_result['reason']}")


def test_of_times_and_costs_a_rise_is_what_a_fall_is_of_scores():
    fast, slow = ([case | {"scores": {"prediction_seconds": s}} for case in scored(*[1.0] * 20)] for s in (0.5, 2.0))
    gate = no_regression("prediction_seconds")

    slower, faster = result(gate, fast, slow), result(gate, slow, fast)

    assert (slower["ok"], slower["value"], slower["before"], slower["after"]) == (False, 1.5, 0.5, 2.0)
    assert faster["ok"] is True
    assert gate_text(slower).startswith("regression of prediction_seconds in music: +1.500 (p 0.000; ")
    assert gate_text(slower).endswith(", no proven rise allowed (20 pairs)")


def timed(*values):
    return [entry(nodeid=f"music/s::{n}", scores={"prediction_seconds": value}) for n, value in enumerate(values)]


def test_the_rise_of_a_cost_that_so_many_cases_show_has_no_bound():
    gate_result = result(no_regression("prediction_seconds"), timed(*[0.1, 5.0] * 3), timed(*[5.0, 0.1] * 3))

    assert gate_result["detectable"] > 5.0
    assert "a rise of 5.049 is proven in 4 of 5 runs" in gate_text(gate_result)


def test_the_cost_of_an_unchanged_system_has_no_sign():
    gate_result = result(no_regression("prediction_seconds"), timed(0.0, 0.0), timed(0.0, 0.0))

    assert [str(gate_result[name]) for name in ("value", "before", "after")] == ["0.0"] * 3


def test_random_signs_are_drawn_once_for_a_result(monkeypatch):
    drawn = []
    signs = statistics._random_signs
    monkeypatch.setattr(statistics, "_random_signs", lambda number: drawn.append(number) or signs(number))

    gate_result = result(no_regression(), scored(*[0.9] * 40), scored(*[0.8] * 40))

    assert (gate_result["ok"], drawn) == (False, [40])


@pytest.mark.parametrize(("number", "ok"), [(0, False), (1, False), (2, True)])
def test_regressions_are_counted_one_by_one(number, ok):
    gate_result = result(max_regressions(number), scored(1.0, 1.0, 1.0, 0.0), scored(0.0, 0.0, 1.0, 1.0))

    assert (gate_result["ok"], gate_result["value"], gate_result["n"]) == (ok, 2, 4)
    assert gate_text(gate_result) == f"regressions in music: 2, at most {number} allowed (4 pairs)"


@pytest.mark.parametrize(
    ("number", "before", "after", "ok", "reason"),
    [
        (3, (1.0, 1.0, 1.0), (0.0, 0.0, 0.0), None, "3 pairs cannot have more than 3 regressions: write at most 2"),
        (1, (1.0,), (1.0,), None, "1 pair cannot have more than 1 regression: write at most 0"),
        (2, (1.0, 1.0, 1.0), (0.0, 0.0, 1.0), True, ""),
        (2, (1.0, 1.0, 1.0), (0.0, 0.0, 0.0), False, ""),
        (2, (1.0, 1.0, 0.0), (0.0, 0.0, 1.0), None, "only 2 of 3 pairs passed in the baseline: write at most 1"),
        (0, (0.0, 0.0), (0.0, 1.0), None, "none of 2 pairs passed in the baseline, so there can be no regression"),
    ],
)
def test_a_number_of_regressions_that_these_pairs_cannot_exceed_is_not_evaluated(number, before, after, ok, reason):
    gate_result = result(max_regressions(number), scored(*before), scored(*after))

    assert (gate_result["ok"], gate_result["reason"]) == (ok, reason)
    if "write" in reason:
        remedy = max_regressions(int(reason.split()[-1]))
        assert result(remedy, scored(*before), scored(*after))["ok"] is (after == before)


@pytest.mark.parametrize(("number", "ok"), [(2, True), (3, None)])
def test_regressions_are_decided_early_only_where_the_rest_could_miss_the_gate(number, ok):
    not_run = [case | {"outcome": "not_run"} for case in scored(1.0, 1.0, 1.0)[2:]]

    assert result(max_regressions(number), scored(*[1.0] * 3), [*scored(0.0, 1.0), *not_run], number=3)["ok"] is ok


def test_a_case_that_was_in_error_before_is_not_counted_as_an_error_of_this_run():
    failed = [case | {"outcome": "error", "scores": {}} for case in scored(1.0, 1.0)]

    assert [result(max_regressions(0), before, failed)["errors"] for before in (scored(1.0, 0.0), failed)] == [2, 0]


@pytest.mark.parametrize("gate", [no_regression(), max_regressions(0)])
def test_without_a_baseline_nothing_is_evaluated(gate):
    gate_result = result(gate, None, scored(1.0))

    assert (gate_result["ok"], gate_result["value"], gate_result["reason"]) == (None, None, "no baseline was given")
    assert gate_text(gate_result).endswith(": no baseline was given")


@pytest.mark.parametrize("gate", [no_regression(), max_regressions(0)])
def test_a_baseline_without_these_cases_misses_the_gate_unless_a_part_was_asked_for(gate):
    reason = "no case has a value in the baseline as well"

    assert result(gate, [], scored(1.0))["reason"] == reason
    assert result(gate, [], scored(1.0))["ok"] is False
    assert result(gate, [], scored(1.0), number=2)["ok"] is None
    assert result(gate, scored(1.0), scored(1.0), unreadable_files=["music/x.queryeval.yaml"])["ok"] is False


@pytest.mark.parametrize("gate", [no_regression(alpha=0.5), max_regressions(0)])
def test_pairs_are_compared_whatever_else_there_is(gate):
    gate_result = result(gate, scored(1.0), scored(1.0), number=40)

    assert gate_result["ok"] is True
    assert gate_text(gate_result).endswith(" (1 pair, 1 of 40 cases ran)")


def test_a_filter_that_fits_no_case_is_named():
    gate_result = result(no_regression(tag="nigthly"), scored(1.0), scored(1.0, tags=["nightly"]))

    assert gate_result["ok"] is False
    assert gate_result["reason"] == "no case in this run has the tag 'nigthly': did you mean 'nightly'?"


def test_the_pass_rate_counts_errors_as_cases_that_did_not_pass():
    before = scored(*[1.0] * 6)
    after = [case | {"outcome": "error", "scores": {}} for case in scored(*[1.0] * 6)]

    gate_result = result(no_regression("pass_rate"), before, after)

    assert (gate_result["ok"], gate_result["value"], gate_result["errors"]) == (False, -1.0, 0)


def test_gates_of_several_processes_are_told_apart_by_their_rules():
    gates = [
        no_regression(),
        no_regression(alpha=0.01),
        no_regression(max_drop=0.1),
        max_regressions(1),
        max_regressions(2),
    ]

    assert merge_gates([gates, gates]) == [gate | {"cases": None} for gate in gates]
