"""What the command line and the ini file change."""

from __future__ import annotations

import pytest
from singers import GOLD, INVALID, WRONG, case, unpredicted

PREDICT = f"def predict(case):\n    return {WRONG!r} if case.id == 'bad' else {GOLD!r}\n"


def test_limit_and_sample_keep_cases_in_proportion_to_files_and_all_other_tests(suite, write, run_and_parse):
    suite(*(case(f"a{n}") for n in range(8)))
    suite(*(case(f"b{n}") for n in range(4)), name="b.queryeval.yaml")
    write("test_beside.py", "def test_beside(): pass")

    first, alone, again, other = (
        run_and_parse(option)
        for option in ("--queryeval-limit=9", *(f"--queryeval-sample={sample}" for sample in ("6", "6:0", "6:1")))
    )

    first.result.assert_outcomes(passed=10, deselected=3)
    assert [*first.outcomes] == [*(f"a{n}" for n in range(8)), "b0"]
    for run in (alone, other):
        run.result.assert_outcomes(passed=7, deselected=6)
        assert sorted(id_[0] for id_ in run.outcomes) == ["a"] * 4 + ["b"] * 2
        assert run.report["selected"] is True
    assert set(alone.outcomes) == set(again.outcomes) != set(other.outcomes)


def test_a_sample_is_taken_of_what_is_selected(suite, run_and_parse):
    suite(*(case(f"a{n}") for n in range(8)), *(case(f"b{n}") for n in range(3)))

    run = run_and_parse("--queryeval-sample=5:3", "-k", "b", "--queryeval-limit=2")
    full_run = run_and_parse("--queryeval-sample=99")

    assert len(run.outcomes) == 2
    assert {id_[0] for id_ in run.outcomes} == {"b"}
    assert len(full_run.outcomes) == 11
    assert full_run.report["selected"] is False


@pytest.mark.parametrize(
    ("selection", "ran"),
    [
        (["--lf"], ["bad-1", "bad-2"]),
        (["--ff"], ["bad-1", "bad-2"]),
        (["-k", "bad"], ["bad-1", "bad-2"]),
        (["-m", "late"], ["bad-2", "good-2"]),
        ([], ["good-1", "bad-1"]),
    ],
)
def test_limit_counts_the_cases_that_are_left_by_other_selections(suite, run, run_and_parse, selection, ran):
    late = {"tags": ["late"]}
    suite(
        *(case("good-1"), case("bad-1", WRONG), case("bad-2", WRONG, **late)),
        *(case("good-2", **late), case("bad-3", WRONG)),
    )
    if selection and selection[0] in ("--lf", "--ff"):
        run()

    limited = run_and_parse("--queryeval-limit=2", *selection)

    assert sorted(limited.outcomes) == sorted(ran)


METRICS = """
import math
from pytest_queryeval import METRICS
from pytest_queryeval.core.metric import metric

METRICS.register("none", lambda gold, predicted: None)
METRICS.register("points", lambda gold, predicted: 50.0)
METRICS.register("marks", metric(max_score=math.inf)(lambda gold, predicted: 50.0))
"""


def test_a_threshold_replaces_the_minimum_of_the_suite_and_nothing_else(suite, write, run_and_parse):
    write("conftest.py", METRICS)
    cases = (case("half", WRONG), case("invalid", INVALID), case("good"))
    limits = {"points": 42, "marks": {"min": 42, "max": 99}, "valid_query": 1}
    suite(*cases, thresholds={"row_matching_f1": 0.9})
    suite(*cases, name="b.queryeval.yaml", thresholds={"row_matching_f1": {"min": 0.1, "max": 0.9}})
    suite(*cases, name="c.queryeval.yaml", thresholds=limits)

    run = run_and_parse("--queryeval-threshold=row_matching_f1=0.4", "--queryeval-threshold=soft_f1=0.8")

    outcomes = {case["nodeid"].replace(".queryeval.yaml::", " "): case["outcome"] for case in run.report["cases"]}
    failing = {"a half", "a invalid", "b half", "b invalid", "b good", "c half", "c invalid"}
    assert {name for name, outcome in outcomes.items() if outcome == "failed"} == failing
    missed = {case["nodeid"]: [it["metric"] for it in case["violations"]] for case in run.report["cases"]}
    assert missed["a.queryeval.yaml::half"] == ["soft_f1"]
    assert missed["c.queryeval.yaml::invalid"] == [*limits, "row_matching_f1", "soft_f1"]
    (good,) = [case for case in run.report["cases"] if case["nodeid"] == "b.queryeval.yaml::good"]
    assert "row_matching_f1 1.000 (needs at least 0.4 and at most 0.9)" in good["message"]


def test_threshold_on_a_case_without_the_metric_names_the_option(suite, write, run_and_parse):
    write("conftest.py", METRICS)
    suite(case("good"))

    run = run_and_parse("--queryeval-threshold=none=1")

    assert run.outcomes == {"good": "error"}
    assert run.case("good")["message"].startswith("--queryeval-threshold: metric 'none' does not apply to this case")


def test_predictor_of_the_command_line_answers_all_cases(suite, write, run_and_parse):
    suite(unpredicted("bad"), case("good", WRONG, question="How many?"), name="suites/a.queryeval.yaml")
    write("suites/predict.py", "raise RuntimeError('this is not where pytest was called')")
    write("predict.py", PREDICT)
    write("answers.jsonl", f'{{"id": "good", "predicted": "{GOLD}", "seconds": 0.5, "model": "m1"}}\n')

    by_function, by_file = (
        run_and_parse("suites", f"--queryeval-predictor={predictor}")
        for predictor in ("predict.py:predict", "answers.jsonl")
    )

    assert by_function.outcomes == {"bad": "failed", "good": "passed"}
    assert by_function.report["predictor"] == {"sources": ["python:predict.py:predict"]}
    assert by_file.outcomes == {"bad": "error", "good": "passed"}
    prediction = {"source": "file:answers.jsonl", "seconds": 0.5, "metadata": {"model": "m1"}}
    assert by_file.case("good")["prediction"] == prediction
    assert "no prediction for 'bad'" in by_file.case("bad")["message"]
