"""Several answers of the system to one case: an oracle of the rules, and what reports say of trials."""

import math
from itertools import combinations, product

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from samples import fake_source, install_engine, make_case, query

from pytest_queryeval import evaluate
from pytest_queryeval.core.errors import PredictorError
from pytest_queryeval.core.model import Prediction, PredictorSpec, Threshold
from pytest_queryeval.predictors import PREDICTORS, PredictorType

ANSWERS = {"gold": [(1,), (2,)], "right": [(2,), (1,)], "half": [(1,), (3,)], "wrong": [(7,)]}
RIGHT = {"execution_accuracy": Threshold(minimum=1.0)}
HALF = {"execution_accuracy": Threshold(minimum=0.5)}
ANY = {"execution_accuracy": Threshold(minimum=0.0)}
RULES = ("mean", "all", "any", 0.5, 2 / 3, 0.75)


class Script:
    """Answers the trials of a case by turns, and counts them."""

    concurrency = 1
    retries = 0

    def __init__(self, answers):
        self.answers = answers
        self.trials = []

    def predict(self, case, trial):
        self.trials.append(trial)
        if self.answers[trial - 1] is None:
            raise PredictorError("no answer")
        return Prediction(query(self.answers[trial - 1]), predictor="script", seconds=trial)

    def close(self):
        pass


@pytest.fixture(scope="module", autouse=True)
def engine():
    with pytest.MonkeyPatch.context() as patch:
        install_engine(patch, ANSWERS)
        yield


def case_of(script, tmp_path, thresholds, **changes):
    PREDICTORS.register("script", PredictorType(opener=lambda spec: script))
    return make_case(
        question="q",
        source=fake_source(),
        golds=(query("gold"),),
        predicted=None,
        predictor=PredictorSpec(kind="script", settings={}, folder=tmp_path),
        metrics=("execution_accuracy", "soft_f1"),
        thresholds=thresholds,
        trials=len(script.answers),
        **changes,
    )


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory):
    """A function that returns the report of a case with these answers."""
    folder = tmp_path_factory.mktemp("script")

    def run(*answers, thresholds=RIGHT, **changes):
        return evaluate([case_of(Script(answers), folder, thresholds, **changes)])

    return run


def only(report):
    (case,) = report["cases"]
    return case


def passes(answers, rule, thresholds):
    """Whether answers pass, by METRICS.md: an answer scores 1 or 0, and one that does not run fails by itself."""
    if not thresholds:
        return True
    minimum = thresholds["execution_accuracy"].minimum
    scores = [float(answer == "right") for answer in answers]
    if rule == "mean":
        return sum(scores) / len(scores) >= minimum and set(answers) != {"broken"}
    passed = [score >= minimum and answer != "broken" for score, answer in zip(scores, answers, strict=True)]
    share = {"all": 1.0, "any": 1 / len(passed)}.get(rule, rule)
    return sum(passed) >= math.ceil(share * len(passed) - 1e-9)


def is_decided(answers, left, rule, thresholds):
    """Whether no further answers change the verdict."""
    ends = product(["right", "wrong", "broken"], repeat=left)
    return len({passes([*answers, *end], rule, thresholds) for end in ends}) == 1


TRIALS = st.lists(st.sampled_from(["right", "wrong", "half", "broken"]), min_size=2, max_size=5)
THRESHOLDS = st.sampled_from([RIGHT, HALF, ANY, {}])


@example(["right", "wrong", "right"], 2 / 3, RIGHT)
@example(["right", "wrong"], 0.5, RIGHT)
@example(["right", "wrong"], "mean", HALF)
@example(["broken", "broken"], "mean", ANY)
@example(["broken", "wrong"], "mean", ANY)
@example(["wrong", "broken"], "any", {})
@given(TRIALS, st.sampled_from(RULES), THRESHOLDS)
def test_a_case_of_several_trials_ends_as_its_rule_says(evaluated, answers, rule, thresholds):
    report = evaluated(*answers, trials_rule=rule, thresholds=thresholds)
    case = only(report)

    scores = [float(answer == "right") for answer in answers]
    assert case["outcome"] == ("passed" if passes(answers, rule, thresholds) else "failed")
    assert case["scores"]["execution_accuracy"] == pytest.approx(sum(scores) / len(scores))
    assert [trial["scores"]["execution_accuracy"] for trial in case["trials"]] == scores
    assert [trial["prediction"]["seconds"] for trial in case["trials"]] == [*range(1, len(answers) + 1)]
    errors = [(trial["predicted"]["error"] or {}).get("kind") for trial in case["trials"]]
    assert errors == ["invalid" if answer == "broken" else None for answer in answers]
    passed = [bool(thresholds) and passes([answer], "all", thresholds) for answer in answers]
    if not thresholds:
        assert case["scores"].keys() == {"execution_accuracy", "soft_f1"}
        assert "trials" not in report
        return
    assert [trial["passed"] for trial in case["trials"]] == passed
    assert (case["scores"]["pass_at_k"], case["scores"]["pass_hat_k"]) == (any(passed), all(passed))
    shown = passed.index(False) if False in passed else 0
    assert case["predicted"]["query"] == answers[shown]
    assert bool(case["violations"]) <= (case["outcome"] == "failed")
    draws = [list(combinations(passed, k)) for k in range(1, len(passed) + 1)]
    assert report["trials"]["pass_at"] == pytest.approx([sum(map(any, ways)) / len(ways) for ways in draws])
    assert report["trials"]["pass_hat"] == pytest.approx([sum(map(all, ways)) / len(ways) for ways in draws])


@example(["wrong", "right", "broken", "wrong"], 0.75, RIGHT)
@example(["right", "wrong", "right", "right"], 0.5, RIGHT)
@example(["broken", "wrong", "wrong"], "mean", ANY)
@example(["broken", "broken"], "mean", ANY)
@given(TRIALS, st.sampled_from(RULES), THRESHOLDS)
def test_trials_stop_as_soon_as_the_rest_cannot_change_the_verdict(evaluated, answers, rule, thresholds):
    report = evaluated(*answers, trials_rule=rule, thresholds=thresholds, stops_trials=True)
    case, n = only(report), len(answers)

    assert case["outcome"] == ("passed" if passes(answers, rule, thresholds) else "failed")
    enough = (made for made in range(1, n + 1) if is_decided(answers[:made], n - made, rule, thresholds))
    made = next(enough, n) if thresholds else n
    assert len(case["trials"] or [case]) == made
    assert "trials" not in report  # where a case stops, how many passed says nothing of how many would
    assert report["decided_trials"] == {"after": made, "of": n}
    of_all = {"any": {"pass_at_k"}, "all": {"pass_hat_k"}}.get(rule, set()) if thresholds else set()
    assert {name for name in case["scores"] if name.startswith("pass_")} == of_all
    assert case["fingerprint"]["trials"] == {"max": n, "stop": "decided"}


def test_of_many_trials_those_that_are_left_are_unlikely_to_change_the_verdict(evaluated):
    case = only(evaluated(*["right"] * 30, trials_rule=0.5, stops_trials=True))

    assert case["outcome"] == "passed"
    assert 3 < len(case["trials"]) < 10


@pytest.mark.parametrize(
    ("thresholds", "trials"),
    [
        ({"execution_accuracy": Threshold(minimum=0.5), "soft_f1": Threshold(minimum=0.5, maximum=0.9)}, 4),
        ({"prediction_seconds": Threshold(maximum=9.0)}, 4),
        ({"execution_accuracy": Threshold(minimum=0.5), "prediction_seconds": Threshold(maximum=9.0)}, 4),
    ],
)
def test_all_trials_are_made_where_a_threshold_is_decided_by_the_last_one_or_its_scores_have_no_limit(
    evaluated, thresholds, trials
):
    case = only(evaluated(*["right"] * 4, thresholds=thresholds, stops_trials=True))

    # At most 0.9: 3.6 of 4, which 3 do not exceed.
    assert (case["outcome"], len(case["trials"])) == ("failed" if "soft_f1" in thresholds else "passed", trials)


@pytest.mark.parametrize(
    ("answers", "changes", "message"),
    [
        (["right", "half", "right"], {"trials_rule": 0.8}, "2 of 3 trials passed (`trials_rule: {rate: 0.8}`): "),
        (["right", "right", "half"], {"trials_rule": "all"}, "2 of 3 trials passed (`trials_rule: all`): "),
        (["right", "half", "right"], "all", "1 of 2 trials passed, decided after 2 of 3 (`trials_rule: all`): "),
        (["half", "right"], "all", "0 of 1 trial passed, decided after 1 of 2 (`trials_rule: all`): "),
    ],
)
def test_the_message_says_how_many_trials_passed_by_which_rule_and_when_it_was_decided(
    evaluated, answers, changes, message
):
    changes = changes if isinstance(changes, dict) else {"trials_rule": changes, "stops_trials": True}

    case = only(evaluated(*answers, **changes))

    missed = "missing 1 of 2 rows, 1 extra; execution_accuracy 0.000 (needs at least 1)"
    assert case["message"] == f"{message}{missed}"
    assert [violation["metric"] for violation in case["violations"]] == ["execution_accuracy"]


def test_a_trial_in_error_is_that_of_its_case_and_is_not_counted(evaluated):
    report = evaluated("wrong", None, trials_rule="any", stops_trials=True)

    assert only(report)["outcome"] == "error"
    assert "decided_trials" not in report


def test_the_system_is_asked_no_more_often_than_trials_are_made(tmp_path):
    class Asked(Script):
        concurrency = 4

        async def predict(self, case, trial):
            return super().predict(case, trial)

        async def close(self):
            pass

    script = Asked(["right"] * 5)
    only(evaluate([case_of(script, tmp_path, RIGHT, stops_trials=True, trials_rule=0.4)]))

    assert sorted(script.trials) == [1, 2]
