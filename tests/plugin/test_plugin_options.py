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
METRICS.register("triples", metric(kinds=frozenset({"sparql"}))(lambda gold, predicted: 1.0))
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


@pytest.mark.parametrize(
    ("option", "said"),
    [
        (
            "threshold=prediction_seconds=0.2",
            "lower is better for 'prediction_seconds': write {prediction_seconds: {max: 0.2}} under `thresholds` of a",
        ),
        ("threshold=row_matching_f1=0.95", "min 0.95 of 'row_matching_f1' is above its max 0.9 (a.queryeval.yaml:"),
        (
            "threshold=valid_query=all",
            "expected METRIC=NUMBER, such as execution_accuracy=0.9, found 'valid_query=all'",
        ),
        (
            "threshold=valid_query=nan",
            "expected METRIC=NUMBER, such as execution_accuracy=0.9, found 'valid_query=nan'",
        ),
        ("threshold==1", "expected METRIC=NUMBER, such as execution_accuracy=0.9, found '=1'"),
        ("threshold=execution_accuracy=85", "expected a limit from 0 to 1 for 'execution_accuracy', found 85"),
        ("threshold=triples=1", "no case of kind sql has the metric 'triples'"),
        ("predictor=inlin", "unknown predictor 'inlin': did you mean 'inline'?"),
        ("report=report.jsn", "no report format '.jsn' for "),
        *(
            (f"sample={sample}", "expected ")
            for sample in ("0", "-1", "", "5:", "5:x", "5:-1", "1.5", "\N{SUPERSCRIPT TWO}")
        ),
        *((f"limit={limit}", "expected a whole number from 1") for limit in ("0", "-1")),
        *((f"report={target}", "cannot be written: ") for target in ("taken", "taken/report.json", "taken/deep")),
    ],
)
def test_a_value_that_cannot_be_meant_is_a_usage_error_before_any_case_runs(suite, write, run, option, said):
    write("conftest.py", METRICS)
    write("predict.py", PREDICT)
    write("taken", "mine")
    limits = {"prediction_seconds": {"max": 60}, "row_matching_f1": {"max": 0.9}}
    taken = suite(unpredicted("slow"), predictor="predict.py:predict", thresholds=limits).with_name("taken")

    result = run(f"--queryeval-{option}", "--queryeval-report=other.json")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: --queryeval-{option.partition('=')[0]}: *{said.replace('[', '[[]')}*"])
    assert "passed" not in result.stdout.str()
    assert "Traceback" not in result.stdout.str()
    assert taken.read_text(encoding="utf-8") == "mine"


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


@pytest.mark.feature("ci")
def test_a_report_is_written_to_every_file_and_folder_that_is_named(pytester, suite, run, report_of):
    suite(case("good"))
    (pytester.path / "out.d").mkdir()
    targets = ("one.json", "deep/er/two.json", "out", "out.d")

    result = run(*(f"--queryeval-report={target}" for target in targets))

    assert result.ret == 0
    result.stdout.fnmatch_lines(["report: one.json", "report: deep/er/two.json"])
    files = ("one.json", "deep/er/two.json", "out/report.json", "out.d/report.json")
    first, *others = (report_of(pytester.path / file) for file in files)
    assert others == [first] * 3
    assert 'tests="1"' in (pytester.path / "out/junit.xml").read_text(encoding="utf-8")
    assert {path.name for path in (pytester.path / "out.d").iterdir()} >= {"report.json", "report.md"}


def test_junit_xml_that_the_user_asks_for_wins(pytester, suite, run):
    suite(case("good"))

    run("--queryeval-report=out", "--junitxml=mine.xml")

    assert (pytester.path / "mine.xml").exists()
    assert not (pytester.path / "out/junit.xml").exists()


def test_report_that_cannot_be_written_fails_the_run_and_leaves_no_half_file(pytester, suite, write, run, report_of):
    blocks = "import pathlib\n\ndef pytest_runtest_teardown():\n    pathlib.Path('late').write_text('mine')\n"
    write("conftest.py", blocks)
    suite(case("good"))

    result = run("--queryeval-report=late/report.json", "--queryeval-report=other.json")

    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["report */late/report.json cannot be written: *"])
    result.stdout.fnmatch_lines(["queryeval: FAILED: report */late/report.json cannot be written: *"])
    result.stdout.no_fnmatch_line("*Traceback*")
    assert report_of(pytester.path / "other.json")["totals"]["passed"] == 1
    assert not [path for path in pytester.path.rglob("*") if path.name.startswith(".report")]


def test_older_report_is_replaced_but_not_by_a_call_that_was_mistaken(pytester, suite, write, run, report_of):
    suite(case("good"))
    write("report.json", "an older one")

    mistaken = run("--queryeval-report=report.json", "nowhere")
    text = (pytester.path / "report.json").read_text(encoding="utf-8")
    run("--queryeval-report=report.json")

    assert mistaken.ret == pytest.ExitCode.USAGE_ERROR
    assert text == "an older one"
    assert report_of(pytester.path / "report.json")["totals"]["passed"] == 1


@pytest.mark.parametrize("option", [[], ["--queryeval-report=mine.json"]], ids=["ini", "option"])
def test_ini_names_reports_relative_to_its_own_folder_and_an_option_replaces_them(
    pytester, suite, write, run, monkeypatch, option
):
    write("pytest.ini", "[pytest]\nqueryeval_report = out\n")
    suite(case("good"), name="suites/a.queryeval.yaml")
    monkeypatch.chdir(pytester.path / "suites")

    result = run(*option)

    assert result.ret == 0
    assert (pytester.path / "out/report.json").exists() == (not option)
    assert (pytester.path / "suites/mine.json").exists() == bool(option)
