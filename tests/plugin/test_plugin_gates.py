"""Gates of a run: which cases and metrics they are about."""

from __future__ import annotations

import pytest
from singers import GOLD, WRONG, case, unpredicted

TEXTS = """
kind: sql
metrics: [exact_set_match]
thresholds: {}
tags: [nightly]
cases: [{id: text, gold: SELECT 1, predicted: SELECT 1}]
"""
PREDICT = f"""
from pytest_queryeval import Prediction

def predict(case):
    metadata = {{"tokens": 300}} | ({{"cost": 0.25}} if case.id != "free" else {{}})
    return Prediction({GOLD!r}, predictor="p", seconds=2.0, metadata=metadata)
"""


def verdicts(run):
    return [gate["ok"] for gate in run.report["gates"]]


def test_a_gate_above_the_root_judges_the_files_beside_the_root(suite, write, run_and_parse):
    write("queryeval.yaml", "gates: [{metric: pass_rate, min: 0.9}]")
    suite(case("a"), case("b", WRONG, on_miss="xfail"), name="suites/a.queryeval.yaml")
    write("project/pytest.ini", "[pytest]\n")

    run = run_and_parse("-c", "project/pytest.ini", "--rootdir=project", "suites")

    assert run.result.ret == pytest.ExitCode.TESTS_FAILED
    (gate,) = run.report["gates"]
    assert (gate["folder"], gate["cases"], gate["value"], gate["ok"]) == ("..", 2, 0.5, False)
    assert run.report["cases"][0]["path"] == "../suites/a.queryeval.yaml"


def test_a_gate_of_a_folder_that_is_named_by_a_way_around_is_about_all_of_it(pytester, suite, write, run_and_parse):
    write("queries/queryeval.yaml", "gates: [{metric: pass_rate, where: {tag: gold-set}, min: 0.9}]")
    write("pytest.ini", "[pytest]\n")
    suite(case("a"), name="queries/a.queryeval.yaml")
    pytester.mkdir("other")

    assert verdicts(run_and_parse("other/../queries")) == [False]


def test_a_gate_computes_the_metric_that_it_names_and_sums_what_all_calls_state(suite, write, run_and_parse):
    gates = [
        "{metric: prediction_seconds, max: 5}",
        "{metric: 'metadata[tokens]', max: 400}",
        "{metric: soft_f1_bird, min: 0.5}",
        "{no_regression: {metric: cell_f1}}",
        "{metric: 'metadata[cost]', sum: {max: 0.5}}",
    ]
    write("queryeval.yaml", "\n".join(["gates:", *(f"  - {gate}" for gate in gates)]))
    write("predict.py", PREDICT)
    suite(unpredicted("a", trials=2), unpredicted("b"), unpredicted("free"), predictor="predict.py:predict")

    run = run_and_parse()

    assert [(gate["value"], gate["n"], gate["ok"]) for gate in run.report["gates"]] == [
        *((2.0, 3, True), (300.0, 3, True), (1.0, 3, True), (None, 0, None)),
        (0.75, 2, False),
    ]
    assert run.case("a")["scores"]["cell_f1"] == 1.0
    assert "metadata[cost]" not in run.case("a")["scores"]
    text = "sum of metadata[[]cost] is 0.75 (2 of 3 cases have a value); this gate needs at most 0.5"
    run.result.stdout.fnmatch_lines(["metadata[[]cost]     0.75  0.25  3", f"gate MISSED: {text}"])
    assert run.report["measures"]["metadata[cost]"]["sum"] == 0.75


@pytest.mark.feature("json")
def test_a_gate_computes_its_metric_for_the_cases_that_it_is_about_only(suite, write, run_and_parse):
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
