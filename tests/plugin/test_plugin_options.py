"""What the command line and the ini file change."""

from __future__ import annotations

import pytest
from singers import GOLD, INVALID, SETTINGS, WRONG, case, unpredicted

from pytest_queryeval.runs.options import sample_of

PREDICT = f"def predict(case):\n    return {WRONG!r} if case.id == 'bad' else {GOLD!r}\n"


def test_limit_keeps_the_first_cases(suite, write, run_and_parse):
    suite(case("one"), case("two"))
    suite(case("three", WRONG), case("four", WRONG), name="b.queryeval.yaml")
    write("test_beside.py", "def test_beside(): pass")

    run = run_and_parse("--queryeval-limit=3")

    run.result.assert_outcomes(passed=3, failed=1, deselected=1)
    assert set(run.outcomes) == {"one", "two", "three"}


@pytest.mark.parametrize("limit", ["0", "-1", "many"])
def test_limit_that_is_no_number_of_cases_is_a_usage_error(suite, run, limit):
    suite(case("one"))

    result = run(f"--queryeval-limit={limit}")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--queryeval-limit*"])


def test_a_sample_is_in_proportion_to_files_and_the_same_again(suite, write, run_and_parse):
    suite(*(case(f"a{n}") for n in range(8)))
    suite(*(case(f"b{n}") for n in range(4)), name="b.queryeval.yaml")
    write("test_beside.py", "def test_beside(): pass")

    alone, again = run_and_parse("--queryeval-sample=6"), run_and_parse("--queryeval-sample=6:0")

    alone.result.assert_outcomes(passed=7, deselected=6)
    assert sorted(id_[0] for id_ in alone.outcomes) == ["a"] * 4 + ["b"] * 2
    assert set(alone.outcomes) == set(again.outcomes)
    assert alone.report["selected"] is True


def test_a_sample_is_taken_of_what_is_selected(suite, run_and_parse):
    suite(*(case(f"a{n}") for n in range(8)), *(case(f"b{n}") for n in range(3)))

    run = run_and_parse("--queryeval-sample=5:3", "-k", "b", "--queryeval-limit=2")
    full_run = run_and_parse("--queryeval-sample=99")

    assert len(run.outcomes) == 2
    assert {id_[0] for id_ in run.outcomes} == {"b"}
    assert len(full_run.outcomes) == 11
    assert full_run.report["selected"] is False


@pytest.mark.parametrize("sample", ["0", "-1", "many", "", "5:", "5:x", "5:-1", "1.5", "\N{SUPERSCRIPT TWO}"])
def test_a_sample_that_is_no_number_of_cases_is_a_usage_error(suite, run, sample):
    suite(case("one"))

    result = run(f"--queryeval-sample={sample}")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: --queryeval-sample: expected *"])


def test_samples_of_other_seeds_differ_and_every_case_may_be_chosen():
    nodeids = [f"{path}.queryeval.yaml::{n}" for path in "ab" for n in range(10)]

    samples = [tuple(sorted(sample_of(nodeids, 4, seed))) for seed in range(200)]

    assert len(set(samples)) > 150
    assert {nodeid for sample in samples for nodeid in sample} == {*nodeids}
    assert all([nodeid[0] for nodeid in sample] == ["a", "a", "b", "b"] for sample in samples)
    assert sample_of([], 4, 0) == set()


def test_threshold_replaces_the_suites_own(suite, run_and_parse):
    suite(case("half", WRONG), case("invalid", INVALID), thresholds={"row_matching_f1": 0.9})

    run = run_and_parse("--queryeval-threshold=row_matching_f1=0.4")

    assert run.outcomes == {"half": "passed", "invalid": "failed"}


def test_threshold_leaves_a_maximum_of_the_suite(suite, run_and_parse):
    suite(case("half", WRONG), case("good"), thresholds={"row_matching_f1": {"min": 0.1, "max": 0.9}})

    run = run_and_parse("--queryeval-threshold=row_matching_f1=0.4")

    assert run.outcomes == {"half": "passed", "good": "failed"}
    assert "row_matching_f1 1.000 (needs at least 0.4 and at most 0.9)" in run.case("good")["message"]


@pytest.mark.parametrize(
    ("threshold", "said"),
    [
        (
            "prediction_seconds=0.2",
            "lower is better for 'prediction_seconds': write {max: 0.2} under `thresholds` of a suite",
        ),
        ("queries=5", "lower is better for 'queries': write {max: 5} under `thresholds` of a suite"),
        ("row_matching_f1=0.95", "min 0.95 of 'row_matching_f1' is above its max 0.9 (a.queryeval.yaml:*)"),
    ],
)
def test_minimum_that_no_case_can_be_meant_to_meet_is_a_usage_error(suite, write, run, threshold, said):
    write("predict.py", "def predict(case):\n    return 'SELECT 1'\n")
    limits = {"prediction_seconds": {"max": 60}, "row_matching_f1": {"max": 0.9}}
    suite(unpredicted("slow"), predictor="predict.py:predict", thresholds=limits)

    result = run(f"--queryeval-threshold={threshold}")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: --queryeval-threshold: {said}"])


def test_threshold_is_added_to_those_of_other_metrics(suite, run_and_parse):
    suite(case("half", WRONG))

    run = run_and_parse("--queryeval-threshold=row_matching_f1=0.6", "--queryeval-threshold=valid_query=1")

    assert [missed["metric"] for missed in run.case("half")["violations"]] == ["execution_accuracy", "row_matching_f1"]


def test_threshold_on_a_case_without_the_metric_names_the_option(suite, write, run_and_parse):
    write("conftest.py", "from pytest_queryeval import METRICS\nMETRICS.register('none', lambda gold, predicted: None)")
    suite(case("good"))

    run = run_and_parse("--queryeval-threshold=none=1")

    assert run.outcomes == {"good": "error"}
    assert run.case("good")["message"].startswith("--queryeval-threshold: metric 'none' does not apply to this case")


@pytest.mark.parametrize(
    ("threshold", "said"),
    [
        ("row_matching=1", "unknown metric 'row_matching': did you mean 'row_matching_f1'?"),
        ("valid_query", "expected METRIC=NUMBER, such as execution_accuracy=0.9, found 'valid_query'"),
        ("valid_query=all", "expected METRIC=NUMBER, such as execution_accuracy=0.9, found 'valid_query=all'"),
        ("valid_query=nan", "expected METRIC=NUMBER, such as execution_accuracy=0.9, found 'valid_query=nan'"),
        ("=1", "expected METRIC=NUMBER, such as execution_accuracy=0.9, found '=1'"),
    ],
)
def test_threshold_that_cannot_be_read_is_a_usage_error(suite, run, threshold, said):
    suite(case("good"))

    result = run(f"--queryeval-threshold={threshold}")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: --queryeval-threshold: {said}"])
    result.stdout.no_fnmatch_line("*Traceback*")


def test_threshold_that_binds_no_case_is_a_usage_error(suite, write, run):
    write(
        "conftest.py",
        """
from pytest_queryeval import METRICS
from pytest_queryeval.core.metric import metric

@metric(kinds=frozenset({"sparql"}))
def triples(gold, predicted):
    return 1.0

METRICS.register("triples", triples)
""",
    )
    suite(case("good"))

    result = run("--queryeval-threshold=triples=1", "--queryeval-report=report.json")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: --queryeval-threshold: no case of kind sql has the metric 'triples'"])
    assert "passed" not in result.stdout.str()


def test_predictor_of_the_command_line_answers_all_cases(suite, write, run_and_parse):
    suite(unpredicted("bad"), case("good", WRONG, question="How many?"), name="suites/a.queryeval.yaml")
    write("suites/predict.py", "raise RuntimeError('this is not where pytest was called')")
    write("predict.py", PREDICT)

    run = run_and_parse("suites", "--queryeval-predictor=predict.py:predict")

    assert run.outcomes == {"bad": "failed", "good": "passed"}
    assert run.report["predictor"] == {"sources": ["python:predict.py:predict"]}


def test_predictions_of_a_file_answer_all_cases(suite, write, run_and_parse):
    suite(unpredicted("one"), unpredicted("two"))
    write("answers.jsonl", f'{{"id": "one", "predicted": "{GOLD}", "seconds": 0.5, "model": "m1"}}\n')

    run = run_and_parse("--queryeval-predictor=answers.jsonl")

    assert run.outcomes == {"one": "passed", "two": "error"}
    assert run.case("one")["prediction"] == {
        "source": "file:answers.jsonl",
        "seconds": 0.5,
        "metadata": {"model": "m1"},
    }
    assert "no prediction for 'two'" in run.case("two")["message"]


def test_unknown_predictor_is_a_usage_error(suite, run):
    suite(case("good"))

    result = run("--queryeval-predictor=inlin")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: --queryeval-predictor: unknown predictor 'inlin': did you mean 'inline'?"])


def test_report_is_written_to_every_file_that_is_named(pytester, suite, run, report_of):
    suite(case("good"))

    result = run("--queryeval-report=one.json", "--queryeval-report=deep/er/two.json")

    assert result.ret == 0
    result.stdout.fnmatch_lines(["report: one.json", "report: deep/er/two.json"])
    assert report_of(pytester.path / "one.json") == report_of(pytester.path / "deep/er/two.json")


@pytest.mark.parametrize("folder", ["out", "out.d"])
def test_folder_gets_the_report_and_junit_xml(pytester, suite, run, report_of, folder):
    suite(case("good"))
    (pytester.path / "out.d").mkdir()

    result = run(f"--queryeval-report={folder}")

    assert result.ret == 0
    assert report_of(pytester.path / folder / "report.json")["totals"]["passed"] == 1
    assert 'tests="1"' in (pytester.path / folder / "junit.xml").read_text(encoding="utf-8")


@pytest.mark.feature("ci")
def test_junit_xml_that_the_user_asks_for_wins(pytester, suite, run):
    suite(case("good"))

    run("--queryeval-report=out", "--junitxml=mine.xml")

    assert (pytester.path / "mine.xml").exists()
    names = {path.name for path in (pytester.path / "out").iterdir()}
    assert names >= {"report.json", "report.md"}
    assert "junit.xml" not in names


def test_report_of_an_unknown_format_is_a_usage_error(suite, run):
    suite(case("good"))

    result = run("--queryeval-report=report.jsn")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: --queryeval-report: no report format '.jsn' for *: did you mean 'json'?"])


@pytest.mark.parametrize("target", ["taken", "taken/report.json", "taken/deep"])
def test_report_in_a_place_that_is_no_folder_is_refused_before_any_case_runs(pytester, suite, write, run, target):
    suite(case("good"))
    write("taken", "mine")

    result = run(f"--queryeval-report={target}")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: --queryeval-report: report * cannot be written: *"])
    assert (pytester.path / "taken").read_text(encoding="utf-8") == "mine"


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


@pytest.mark.feature("ci")
def test_ini_names_reports_relative_to_its_own_folder(pytester, suite, write, run, monkeypatch):
    write("pytest.ini", "[pytest]\nqueryeval_report = out\n")
    suite(case("good"), name="suites/a.queryeval.yaml")
    monkeypatch.chdir(pytester.path / "suites")

    result = run()

    assert result.ret == 0
    assert {path.name for path in (pytester.path / "out").iterdir()} >= {"report.json", "report.md", "junit.xml"}


def test_command_line_replaces_reports_of_the_ini_file(pytester, suite, write, run):
    write("pytest.ini", "[pytest]\nqueryeval_report = out\n")
    suite(case("good"))

    run("--queryeval-report=mine.json")

    assert (pytester.path / "mine.json").exists()
    assert not (pytester.path / "out").exists()


def test_settings_of_the_folder_hold_for_cases_of_json_lines(write, run_and_parse):
    write("singers.sql", "CREATE TABLE singer (name TEXT, country TEXT);")
    write("queryeval.yaml", f"kind: sql\nsource: {SETTINGS['source']}\nthresholds: {{}}\n".replace("'", '"'))
    write("a.queryeval.jsonl", '{"id": "one", "gold": "SELECT 1", "predicted": "SELECT 2"}\n')

    run = run_and_parse()

    assert run.outcomes == {"one": "passed"}
