"""Gates: what a folder of cases must reach, and what that does to the exit status."""

from __future__ import annotations

import pytest
from singers import GOLD, INVALID, WRONG, case, unpredicted

HALF = "gates: [{metric: execution_accuracy, min: 0.5}]"
ALL = "gates: [{metric: execution_accuracy, min: 1}]"
TEXTS = """
kind: sql
metrics: [exact_set_match]
thresholds: {}
tags: [nightly]
cases: [{id: text, gold: SELECT 1, predicted: SELECT 1}]
"""


def verdicts(report):
    return [gate["ok"] for gate in report["gates"]]


def test_gate_that_is_met_leaves_the_exit_status(suite, write, run_and_parse):
    write("queryeval.yaml", HALF)
    suite(case("bad", WRONG), case("good"), on_miss="xfail")

    run = run_and_parse()

    assert run.result.ret == 0
    run.result.stdout.fnmatch_lines(["gate met: execution_accuracy: 0.500, needs at least 0.5 (2 cases)"])
    (gate,) = run.report["gates"]
    assert (gate["folder"], gate["metric"], gate["where"]) == (".", "execution_accuracy", {})
    assert (gate["min"], gate["max"], gate["value"], gate["n"], gate["ok"]) == (0.5, None, 0.5, 2, True)


def test_gate_that_is_missed_is_named_and_fails_the_run(suite, write, run_and_parse):
    write("queryeval.yaml", ALL)
    suite(case("bad", WRONG), case("good"), on_miss="xfail")

    run = run_and_parse()

    assert run.result.ret == pytest.ExitCode.TESTS_FAILED
    run.result.assert_outcomes(passed=1, xfailed=1)
    run.result.stdout.fnmatch_lines(["gate MISSED: execution_accuracy: 0.500, needs at least 1 (2 cases)"])


def test_filters_narrow_the_cases_of_a_gate(suite, write, run_and_parse):
    write(
        "queryeval.yaml",
        """
gates:
  - {metric: execution_accuracy, where: {difficulty: hard}, max: 0.1}
  - {metric: execution_accuracy, where: {tag: nightly}, min: 1}
  - {metric: execution_accuracy, where: {tag: nightly, difficulty: hard}, min: 1}
  - {metric: execution_accuracy, where: {kind: sql}, min: 0.6}
  - {metric: execution_accuracy, where: {file: b.queryeval.yaml}, min: 1}
  - {metric: execution_accuracy, where: {source: singers.sql}, min: 1}
""",
    )
    suite(case("bad", WRONG, difficulty="hard"), case("good", tags=["nightly"]), on_miss="xfail")
    suite(case("other"), name="b.queryeval.yaml")

    run = run_and_parse()

    assert verdicts(run.report) == [True, True, False, True, True, False]
    assert [gate["n"] for gate in run.report["gates"]] == [1, 1, 0, 3, 1, 3]


def test_pass_rate_counts_misses_and_errors_but_no_skips(suite, write, run_and_parse):
    write("queryeval.yaml", "gates: [{metric: pass_rate, min: 0.25}, {metric: pass_rate, min: 0.26}]")
    suite(
        case("good"),
        case("bad", WRONG),
        case("missed", WRONG, on_miss="xfail"),
        case("error", gold=INVALID),
        case("skipped", skip="later"),
        case("known", WRONG, xfail="hard"),
        case("better", xfail="hard"),
    )

    run = run_and_parse()

    assert verdicts(run.report) == [True, False]
    assert [(gate["value"], gate["n"]) for gate in run.report["gates"]] == [(0.25, 4), (0.25, 4)]


def test_gate_without_an_evaluated_case_is_missed(suite, write, run_and_parse):
    write("queryeval.yaml", HALF)
    suite(case("later", skip="no gold yet"))

    run = run_and_parse()

    assert run.result.ret == pytest.ExitCode.TESTS_FAILED
    run.result.stdout.fnmatch_lines(["gate MISSED: *: no case was evaluated"])


def test_ini_switches_gates_off(pytester, suite, write, run_and_parse):
    pytester.makeini("[pytest]\nqueryeval_gates = off")
    write("queryeval.yaml", ALL)
    suite(case("bad", WRONG, on_miss="xfail"))

    run = run_and_parse()

    assert run.result.ret == 0
    assert verdicts(run.report) == [None]
    run.result.stdout.fnmatch_lines(["gate not evaluated: execution_accuracy: gates are off"])


def test_gate_of_a_folder_judges_the_cases_below_it(suite, write, run_and_parse):
    write("queryeval.yaml", "gates: [{metric: execution_accuracy, min: 0.5}]")
    write("good/queryeval.yaml", ALL)
    write("bad/deep/queryeval.yaml", ALL)
    write("elsewhere/queryeval.yaml", ALL)
    suite(case("one"), name="good/a.queryeval.yaml")
    suite(case("two", WRONG), name="bad/deep/er/b.queryeval.yaml", on_miss="xfail")

    run = run_and_parse()

    gates = {gate["folder"]: (gate["n"], gate["ok"]) for gate in run.report["gates"]}
    assert gates == {".": (2, True), "good": (1, True), "bad/deep": (1, False)}


def test_gates_come_in_the_order_of_their_file(suite, write, run_and_parse):
    lines = [f"  - {{metric: pass_rate, min: 0.{number:02}}}" for number in range(1, 13)]
    write("queryeval.yaml", "\n".join(["gates:", *lines]))
    suite(case("good"))

    run = run_and_parse()

    assert [gate["min"] for gate in run.report["gates"]] == [number / 100 for number in range(1, 13)]


@pytest.mark.parametrize(
    ("hook", "status"),
    [
        ("def pytest_runtest_teardown():\n    raise KeyboardInterrupt", pytest.ExitCode.INTERRUPTED),
        ("def pytest_runtest_teardown():\n    pytest.exit('enough', returncode=3)", pytest.ExitCode.INTERNAL_ERROR),
        ("def pytest_runtest_logfinish():\n    raise RuntimeError", pytest.ExitCode.INTERNAL_ERROR),
    ],
    ids=["interrupted", "exit", "internal error"],
)
def test_missed_gate_replaces_no_worse_exit_status(suite, write, run_and_parse, hook, status):
    write("conftest.py", f"import pytest\n\n{hook}\n")
    write("queryeval.yaml", ALL)
    suite(case("bad", WRONG), on_miss="xfail")

    run = run_and_parse()

    assert run.result.ret == status
    assert verdicts(run.report) != [True]


def test_missed_gate_replaces_no_usage_error(suite, write, run):
    write("queryeval.yaml", ALL)
    suite(case("bad", WRONG), on_miss="xfail")

    result = run("--queryeval-threshold=valid_querry=1")

    assert result.ret == pytest.ExitCode.USAGE_ERROR


def test_gate_above_the_root_judges_the_files_beside_the_root(pytester, suite, write, run_and_parse):
    write("queryeval.yaml", "gates: [{metric: pass_rate, min: 0.9}]")
    suite(case("a"), case("b", WRONG, on_miss="xfail"), name="suites/a.queryeval.yaml")
    write("project/pytest.ini", "[pytest]\n")

    run = run_and_parse("-c", "project/pytest.ini", "--rootdir=project", "suites")

    assert run.result.ret == pytest.ExitCode.TESTS_FAILED
    (gate,) = run.report["gates"]
    assert (gate["folder"], gate["cases"], gate["value"], gate["ok"]) == ("..", 2, 0.5, False)
    assert run.report["cases"][0]["path"] == "../suites/a.queryeval.yaml"


def test_gate_of_a_folder_that_is_named_by_a_way_around_is_judged_on_all_of_it(
    pytester, suite, write, run_and_parse, monkeypatch
):
    write("queries/queryeval.yaml", "gates: [{metric: pass_rate, where: {tag: gold-set}, min: 0.9}]")
    write("pytest.ini", "[pytest]\n")
    suite(case("a"), name="queries/a.queryeval.yaml")
    (pytester.path / "other").mkdir()

    around = run_and_parse("other/../queries")

    assert [gate["ok"] for gate in around.report["gates"]] == [False]


def test_gates_of_a_folder_that_lacks_an_extra_are_missed_and_its_files_are_not_removed(
    suite, write, run, run_and_parse, monkeypatch
):
    write("sub/queryeval.yaml", "requires: duckdb\ngates: [{metric: pass_rate, min: 0.9}]")
    suite(case("a"))
    suite(case("b"), name="sub/b.queryeval.yaml")
    run("--queryeval-report=base.json")
    monkeypatch.setattr("pytest_queryeval.suites.variables._is_installed", lambda name: False)

    lacking = run_and_parse("--queryeval-baseline=base.json")

    assert [(gate["folder"], gate["ok"]) for gate in lacking.report["gates"]] == [("sub", False)]
    assert lacking.result.ret == pytest.ExitCode.TESTS_FAILED
    assert (lacking.report["baseline"]["cases"]["not_run"], lacking.report["baseline"]["cases"]["removed"]) == (1, 0)


def test_gate_computes_the_metric_that_it_names(suite, write, run_and_parse):
    write(
        "queryeval.yaml",
        "gates:\n  - {metric: prediction_seconds, max: 5}\n  - {metric: 'metadata[tokens]', max: 400}\n"
        "  - {metric: soft_f1_bird, min: 0.5}\n  - {no_regression: {metric: cell_f1}}\n",
    )
    write(
        "predict.py",
        "from pytest_queryeval import Prediction, QueryOrAnswer\n\ndef predict(case):\n"
        f"    stated, metadata = QueryOrAnswer(query={GOLD!r}), {{'tokens': 300}}\n"
        "    return Prediction(stated, predictor='p', seconds=2.0, metadata=metadata)\n",
    )
    suite(unpredicted("a"), unpredicted("b"), predictor="predict.py:predict")

    run = run_and_parse()

    assert [(gate["value"], gate["n"], gate["ok"]) for gate in run.report["gates"][:3]] == [
        (2.0, 2, True),
        (300.0, 2, True),
        (1.0, 2, True),
    ]
    assert run.case("a")["scores"]["cell_f1"] == 1.0
    assert run.result.ret == 0


def test_gate_sums_what_all_calls_tell(suite, write, run_and_parse):
    write("queryeval.yaml", "gates: [{metric: 'metadata[cost]', sum: {max: 0.5}}]")
    write(
        "predict.py",
        "from pytest_queryeval import Prediction, QueryOrAnswer\n\ndef predict(case):\n"
        f"    stated, metadata = QueryOrAnswer(query={GOLD!r}), {{'cost': 0.25}} if case.id != 'free' else {{}}\n"
        "    return Prediction(stated, predictor='p', metadata=metadata)\n",
    )
    suite(unpredicted("a", trials=2), unpredicted("b"), unpredicted("free"), predictor="predict.py:predict")

    run = run_and_parse()

    text = "sum of metadata[cost]: 0.75, needs at most 0.5 (2 of 3 cases have a value)"
    run.result.stdout.fnmatch_lines(["metadata[[]cost]  0.75  0.25  3", f"gate MISSED: {text.replace('[', '[[]')}"])
    assert run.result.ret == pytest.ExitCode.TESTS_FAILED
    assert run.report["measures"]["metadata[cost]"]["sum"] == 0.75
    assert "metadata[cost]" not in run.case("a")["scores"]


@pytest.mark.feature("json")
def test_gate_computes_its_metric_for_the_cases_that_it_is_about_only(suite, write, run_and_parse):
    write(
        "queryeval.yaml",
        "gates:\n  - {metric: cell_f1, where: {tag: nightly}, min: 1}\n  - {metric: path_f1, min: 1}\n"
        "  - {metric: arity_f1, where: {difficulty: easy, source: singers.sql}, min: 1}\n",
    )
    simple = "SELECT name FROM singer"
    suite(case("night", tags=["nightly"]), case("day"), case("simple", simple, gold=simple), metrics=["valid_query"])
    write("texts.queryeval.yaml", TEXTS)

    scores = {case["id"]: list(case["scores"]) for case in run_and_parse().report["cases"]}

    assert scores == {
        "night": ["valid_query", "cell_f1", "execution_accuracy"],
        "day": ["valid_query", "execution_accuracy"],
        "simple": ["valid_query", "arity_f1", "execution_accuracy"],
        "text": ["exact_set_match"],  # it has no source to be run on
    }
