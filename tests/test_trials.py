"""Several answers of the system to one case."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from samples import HEAD, fake_source, install_engine, make_case, query

from pytest_queryeval import evaluate
from pytest_queryeval.core.errors import PredictorError
from pytest_queryeval.core.model import Prediction, PredictorSpec, Threshold
from pytest_queryeval.evaluation import evaluate_case
from pytest_queryeval.evaluation.session import Session
from pytest_queryeval.evaluation.trials import pass_at, pass_hat
from pytest_queryeval.predictors import PREDICTORS, PredictorType
from pytest_queryeval.results.aggregation import aggregate
from pytest_queryeval.results.verdict import cases_text, headline

ANSWERS = {"gold": [(1,), (2,)], "right": [(2,), (1,)], "half": [(1,), (3,)], "wrong": [(7,)]}
RIGHT = {"execution_accuracy": Threshold(minimum=1.0)}


class Script:
    """Answers the trials of a case by turns."""

    concurrency = 1
    retries = 0

    def __init__(self, answers):
        self._answers = answers

    def predict(self, case, trial):
        if self._answers[trial - 1] is None:
            raise PredictorError("no answer")
        return Prediction(query(self._answers[trial - 1]), predictor="script", seconds=trial)

    def close(self):
        pass


@pytest.fixture
def evaluated(monkeypatch, tmp_path):
    install_engine(monkeypatch, ANSWERS)

    def run(*answers, thresholds=RIGHT, **changes):
        monkeypatch.setitem(PREDICTORS._members, "script", PredictorType(opener=lambda spec: Script(answers)))
        case = make_case(
            source=fake_source(),
            golds=(query("gold"),),
            predicted=None,
            predictor=PredictorSpec(kind="script", settings={}, folder=tmp_path),
            metrics=("execution_accuracy", "soft_f1"),
            thresholds=thresholds,
            trials=len(answers),
            **changes,
        )
        return evaluate([case])

    return run


def only(report):
    (case,) = report["cases"]
    return case


def test_scores_are_means_over_the_trials(evaluated):
    case = only(evaluated("right", "wrong", "right", "no such query"))

    assert case["scores"]["execution_accuracy"] == 0.5
    assert case["scores"]["soft_f1"] == 0.5
    assert [trial["scores"]["execution_accuracy"] for trial in case["trials"]] == [1.0, 0.0, 1.0, 0.0]
    assert [trial["passed"] for trial in case["trials"]] == [True, False, True, False]
    assert case["trials"][3]["predicted"]["error"]["kind"] == "invalid"
    assert [trial["prediction"]["seconds"] for trial in case["trials"]] == [1.0, 2.0, 3.0, 4.0]


@pytest.mark.parametrize(
    ("answers", "rule", "outcome"),
    [
        ("right right", "mean", "passed"),
        ("right wrong", "mean", "failed"),
        ("right right", "all", "passed"),
        ("right wrong", "all", "failed"),
        ("right wrong", "any", "passed"),
        ("wrong wrong", "any", "failed"),
        ("right wrong right", 2 / 3, "passed"),
        ("right wrong wrong", 2 / 3, "failed"),
        ("right broken right", "all", "failed"),
        ("right broken right", "any", "passed"),
    ],
)
def test_a_rule_decides_on_the_case(evaluated, answers, rule, outcome):
    assert only(evaluated(*answers.split(), trials_rule=rule))["outcome"] == outcome


def test_by_the_mean_a_threshold_may_be_met_by_some_trials(evaluated):
    thresholds = {"execution_accuracy": Threshold(minimum=0.5)}

    assert only(evaluated("right", "wrong", thresholds=thresholds))["outcome"] == "passed"
    assert only(evaluated("wrong", "wrong", "right", thresholds=thresholds))["outcome"] == "failed"


def test_predictions_that_all_fail_never_meet_what_is_required(evaluated):
    thresholds = {"execution_accuracy": Threshold(minimum=0.0)}

    assert only(evaluated("broken", "broken", thresholds=thresholds))["outcome"] == "failed"
    assert only(evaluated("broken", "wrong", thresholds=thresholds))["outcome"] == "passed"


def test_what_is_shown_is_the_first_trial_that_does_not_pass(evaluated):
    case = only(evaluated("right", "half", "wrong", trials_rule="all"))

    assert case["predicted"]["query"] == "half"
    assert [missed["metric"] for missed in case["violations"]] == ["execution_accuracy"]


def test_the_message_says_how_many_trials_passed_and_which_rule_decides(evaluated, tmp_path):
    case = make_case(
        source=fake_source(),
        golds=(query("gold"),),
        predicted=None,
        predictor=PredictorSpec(kind="script", settings={}, folder=tmp_path),
        trials=3,
        trials_rule=0.8,
    )
    evaluated("right", "half", "right")  # the script that answers

    with Session() as session:
        actual = headline(evaluate_case(case, session))

    missed = "missing 1 of 2 rows, 1 extra; execution_accuracy 0.000 (needs at least 1)"
    assert actual == f"2 of 3 trials passed (`trials_rule: {{rate: 0.8}}`): {missed}"


def test_a_case_that_passes_by_its_rule_misses_nothing(evaluated):
    case = only(evaluated("wrong", "right", trials_rule="any"))

    assert (case["violations"], case["message"]) == ([], "")
    assert case["scores"] | {"soft_f1": None} == {
        "execution_accuracy": 0.5,
        "soft_f1": None,
        "pass_at_k": 1.0,
        "pass_hat_k": 0.0,
    }


def test_where_nothing_is_required_nothing_passes(evaluated):
    report = evaluated("right", "wrong", thresholds={})

    assert only(report)["outcome"] == "passed"
    assert only(report)["scores"].keys() == {"execution_accuracy", "soft_f1"}
    assert "trials" not in report


def test_a_single_trial_is_a_case_as_ever(evaluated):
    report = evaluated("right")

    assert only(report)["trials"] == []
    assert only(report)["scores"].keys() == {"execution_accuracy", "soft_f1"}
    assert "trials" not in report


def test_the_report_tells_for_each_k_how_likely_one_and_all_of_k_trials_pass(evaluated):
    report = evaluated("right", "wrong", "right", "wrong")

    assert report["trials"] == {
        "cases": 1,
        "pass_at": pytest.approx([0.5, 5 / 6, 1.0, 1.0]),
        "pass_hat": pytest.approx([0.5, 1 / 6, 0.0, 0.0]),
    }


@given(st.lists(st.booleans(), min_size=1, max_size=6), st.data())
def test_the_estimators_are_the_shares_of_all_draws(trials, data):
    from itertools import combinations

    k = data.draw(st.integers(1, len(trials)))
    draws = list(combinations(trials, k))

    assert pass_at(k, len(trials), sum(trials)) == pytest.approx(sum(map(any, draws)) / len(draws))
    assert pass_hat(k, len(trials), sum(trials)) == pytest.approx(sum(map(all, draws)) / len(draws))


def stopping(evaluated, answers, **changes):
    """The case, which stops its trials as soon as they decide."""
    return only(evaluated(*answers.split(), stops_trials=True, **changes))


@pytest.mark.parametrize(
    ("answers", "rule", "outcome", "made"),
    [
        ("wrong right right right", "all", "failed", 1),
        ("right right wrong right", "all", "failed", 3),
        ("right right right right", "all", "passed", 4),
        ("wrong right wrong wrong", "any", "passed", 2),
        ("wrong wrong wrong wrong", "any", "failed", 4),
        ("right wrong right right", 0.5, "passed", 3),
        ("wrong right broken wrong", 0.5, "failed", 4),
        ("wrong right broken wrong", 0.75, "failed", 3),
        ("right right right wrong", 0.75, "passed", 3),
        ("wrong right right right", "mean", "failed", 1),  # a mean of 1 is out of reach
        ("right right right right", "mean", "passed", 4),
    ],
)
def test_trials_stop_once_the_rest_cannot_change_the_verdict(evaluated, answers, rule, outcome, made):
    case, full_report = (
        stopping(evaluated, answers, trials_rule=rule),
        only(evaluated(*answers.split(), trials_rule=rule)),
    )

    assert (case["outcome"], len(case["trials"])) == (outcome, made)
    assert full_report["outcome"] == outcome


def test_of_many_trials_those_that_are_left_are_unlikely_to_change_the_verdict(evaluated):
    case = stopping(evaluated, "right " * 30, trials_rule=0.5)

    assert case["outcome"] == "passed"
    assert 3 < len(case["trials"]) < 10


def test_means_of_trials_meet_their_thresholds_together(evaluated):
    thresholds = {"execution_accuracy": Threshold(minimum=0.5), "soft_f1": Threshold(minimum=0.5, maximum=0.9)}

    case = stopping(evaluated, "right right right right", thresholds=thresholds)

    assert (case["outcome"], len(case["trials"])) == ("failed", 4)  # at most 0.9: 3.6 of 4, which 3 do not exceed


def test_predictions_that_all_fail_are_not_taken_for_a_pass(evaluated):
    thresholds = {"execution_accuracy": Threshold(minimum=0.0)}

    assert stopping(evaluated, "broken broken", thresholds=thresholds)["outcome"] == "failed"
    actual = stopping(evaluated, "broken wrong wrong", thresholds=thresholds)
    assert (actual["outcome"], len(actual["trials"])) == ("passed", 2)


def test_all_trials_are_made_where_nothing_is_required_or_scores_have_no_limit(evaluated):
    costly = {"prediction_seconds": Threshold(maximum=9.0)}

    assert len(stopping(evaluated, "right right right", thresholds={})["trials"]) == 3
    assert len(stopping(evaluated, "right right right", thresholds=costly)["trials"]) == 3


@pytest.mark.parametrize(
    ("rule", "answers", "scores"),
    [
        ("any", "wrong right wrong", {"pass_at_k": 1.0}),
        ("any", "wrong wrong wrong", {"pass_at_k": 0.0}),
        ("all", "wrong right wrong", {"pass_hat_k": 0.0}),
        ("all", "right right right", {"pass_hat_k": 1.0}),
        (0.5, "right right right", {}),
        ("mean", "right right right", {}),
    ],
)
def test_of_trials_that_stop_only_the_verdict_is_a_score_of_all(evaluated, rule, answers, scores):
    report = evaluated(*answers.split(), stops_trials=True, trials_rule=rule)
    case = only(report)

    assert {name: value for name, value in case["scores"].items() if name.startswith("pass_")} == scores
    assert "trials" not in report  # where a case stops, how many passed says nothing of how many would
    assert case["fingerprint"]["trials"] == {"max": 3, "stop": "decided"}
    assert {*scores} == {*case["fingerprint"]["metrics"]} - {"execution_accuracy", "soft_f1"}


def test_the_report_counts_the_trials_that_were_needed(evaluated):
    full_report = evaluated("right", "wrong", "right", "right", trials_rule=0.5)
    stopped = evaluated("right", "wrong", "right", "right", trials_rule=0.5, stops_trials=True)

    assert "decided_trials" not in full_report
    assert stopped["decided_trials"] == {"after": 3, "of": 4}
    assert cases_text(stopped) == "1 case, 3 of 4 trials needed"
    assert cases_text(aggregate([*full_report["cases"], *stopped["cases"] * 2], gates=(), about=HEAD)) == (
        "3 cases, 6 of 8 trials needed"
    )


def test_trials_of_a_case_in_error_are_not_counted(evaluated):
    report = evaluated("wrong", None, trials_rule="any", stops_trials=True)

    assert only(report)["outcome"] == "error"
    assert "decided_trials" not in report


def test_the_message_says_after_how_many_trials_it_was_decided(evaluated):
    case = stopping(evaluated, "right half right", trials_rule="all")

    assert case["message"].startswith("1 of 2 trials passed, decided after 2 of 3 (`trials_rule: all`): ")
    assert stopping(evaluated, "half right", trials_rule="all")["message"].startswith(
        "0 of 1 trial passed, decided after 1 of 2 (`trials_rule: all`): "
    )


def test_a_case_that_needed_all_trials_was_not_decided_early(evaluated):
    case = stopping(evaluated, "right right half", trials_rule="all")

    assert case["message"].startswith("2 of 3 trials passed (`trials_rule: all`): ")


def test_the_system_is_asked_no_more_often_than_trials_are_made(monkeypatch, tmp_path):
    install_engine(monkeypatch, ANSWERS)
    calls = []

    class Asked(Script):
        concurrency = 4

        async def predict(self, case, trial):
            calls.append((case.id, trial))
            return super().predict(case, trial)

        async def close(self):
            pass

    monkeypatch.setitem(PREDICTORS._members, "script", PredictorType(opener=lambda spec: Asked(["right"] * 5)))
    cases = [
        make_case(
            id=name,
            source=fake_source(),
            golds=(query("gold"),),
            predicted=None,
            predictor=PredictorSpec(kind="script", settings={}, folder=tmp_path),
            trials=5,
            stops_trials=True,
            trials_rule=0.4,
        )
        for name in "abc"
    ]

    evaluate(cases)

    assert sorted(calls) == sorted((name, trial) for name in "abc" for trial in (1, 2))
