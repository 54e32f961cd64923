"""Gates where some of their cases did not run, and the verdict of such runs."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase

import pytest
from singers import GOLD, INVALID, WRONG, case

GATES = """
gates:
  - {metric: execution_accuracy, min: 0.7}
  - {metric: execution_accuracy, where: {tag: nightly}, min: 0.9}
  - {metric: execution_accuracy, where: {not: {tag: nightly}}, min: 0.5}
"""


def write_suites(project):
    """Eight cases that may run, five below `a` and three below `b`; two of them nightly, two miss."""
    project.write("queryeval.yaml", GATES)
    project.suite(
        case("mean-age"),
        case("night", tags=["nightly"]),
        case("later", skip="no gold yet"),
        case("bad", WRONG),
        case("worse", WRONG),
        case("good"),
        name="a/a.queryeval.yaml",
        on_miss="xfail",
    )
    nightly = case("late", tags=["nightly"])
    project.suite(case("other"), case("another"), nightly, name="b/deep/b.queryeval.yaml", on_miss="xfail")
    return project


@pytest.fixture
def suites(project):
    return write_suites(project)


@pytest.fixture(scope="module")
def unchanged(shared_project):
    """The same suites, for runs that leave them as they are."""
    return write_suites(shared_project)


def counts(run):
    return [(gate["ran"], gate["cases"]) for gate in run.report["gates"]]


def verdicts(run):
    return [gate["ok"] for gate in run.report["gates"]]


SELECTION, OFF = ("-o", "queryeval_gates=selection"), ("-o", "queryeval_gates=off")
WHOLE = "PASSED: 9 cases: 6 passed, 2 missed, 1 skipped (no case failed, 3 gates met)"
NO_GATE = "NO VERDICT: none of 3 gates could be evaluated: "
SELECT = f"{NO_GATE}execution_accuracy: 1 of 8 cases ran; {' '.join(SELECTION)} *"
ONE = "PASSED: 1 case: 1 passed, 2 gates evaluated on 1 of 8 cases (no case failed, 2 gates met, 1 gate not evaluated)"
TWO = "FAILED: gate missed: execution_accuracy is 0.500 (needs *"


@pytest.mark.parametrize(
    ("options", "ran", "oks", "verdict"),
    [
        ([], (8, 2, 6), [True, True, True], WHOLE),  # a skipped case is not left out
        (["-k", "mean-age"], (1, 0, 1), [None, None, None], SELECT),
        (["a/a.queryeval.yaml::mean-age", "a/a.queryeval.yaml::bad"], (2, 0, 2), [None, None, None], f"{NO_GATE}*"),
        (["b/deep"], (3, 1, 2), [None, None, None], f"{NO_GATE}*"),
        (["--queryeval-limit=2"], (2, 1, 1), [None, None, None], f"{NO_GATE}*"),
        (["--deselect=a/a.queryeval.yaml::good"], (7, 2, 5), [None, True, True], "PASSED: *"),
        (["--ignore-glob=*/b.queryeval.yaml"], (5, 1, 4), [None, None, None], f"{NO_GATE}*"),
        (["-m", "nightly"], (2, 2, 0), [None, True, None], "PASSED: *"),
        (["-k", "later"], (0, 0, 0), [None] * 3, "NO VERDICT: no case was evaluated; -rs shows why cases were skipped"),
        (OFF, (8, 2, 6), [None, None, None], f"{NO_GATE}*; `queryeval merge` evaluates gates"),
        (["-k", "mean-age", *OFF], (1, 0, 1), [None, None, None], f"{NO_GATE}*"),
        (["-q", "-k", "mean-age", *SELECTION], (1, 0, 1), [True, None, True], ONE),
        (["-k", "mean-age or bad", *SELECTION], (2, 0, 2), [False, None, True], TWO),
    ],
    ids=str,
)
def test_a_gate_is_evaluated_where_all_of_its_cases_ran_or_as_the_setting_says(unchanged, options, ran, oks, verdict):
    run = unchanged.run_and_parse(*options)

    assert counts(run) == list(zip(ran, (8, 2, 6), strict=True))
    assert verdicts(run) == oks
    assert fnmatchcase(run.result.outlines[-1], f"queryeval: {verdict}")
    assert run.result.ret == ("FAILED" in verdict)
    chooses = re.compile(r"-k|-m|--deselect|--queryeval-limit|.*::")  # single cases
    assert run.report["selected"] == any(map(chooses.match, options))
    reasons = {gate["reason"] for gate in run.report["gates"] if gate["ok"] is None}
    if OFF[1] in options:
        assert reasons == {"gates are off"}
    elif oks == [None] * 3 and SELECTION[1] not in options:
        assert f"{ran[0]} of 8 cases ran" in reasons


def test_gate_of_a_folder_that_ran_whole_is_evaluated_beside_those_above_it(suites, write, run_and_parse):
    write("a/queryeval.yaml", "gates: [{metric: execution_accuracy, min: 0.6}]")

    inside, beside = run_and_parse("a"), run_and_parse("b")

    above = [(".", None)] * 3
    assert [(gate["folder"], gate["ok"]) for gate in inside.report["gates"]] == [*above, ("a", True)]
    assert [(gate["folder"], gate["ok"]) for gate in beside.report["gates"]] == above


def test_gate_is_not_evaluated_on_reruns_of_failed_cases_and_after_the_first_failure(suite, write, run_and_parse):
    write("queryeval.yaml", "gates: [{metric: execution_accuracy, min: 0.6}]")
    suite(case("bad", WRONG), case("good"), case("fine"))
    suite(*(case(f"case-{number}") for number in range(9)), name="whole.queryeval.yaml")  # --lf does not look into it

    first, again = run_and_parse("-x"), run_and_parse("--lf")

    for run in (first, again):
        assert run.outcomes == {"bad": "failed"}
        assert run.report["gates"][0]["reason"] == "1 of 12 cases ran"
    assert first.result.outlines[-1] == "queryeval: FAILED: 1 case failed; the run was stopped"


def test_files_that_lack_an_extra_are_not_left_out_and_gates_of_their_folder_are_missed(
    suite, write, run, run_and_parse, monkeypatch
):
    write("queryeval.yaml", "gates: [{metric: execution_accuracy, min: 1}]")
    write("sub/queryeval.yaml", "requires: duckdb\ngates: [{metric: pass_rate, min: 0.9}]")
    suite(case("a"))
    suite(case("b"), name="b.queryeval.yaml", requires="duckdb")
    suite(case("c"), name="sub/c.queryeval.yaml")
    run("--queryeval-report=base.json")
    monkeypatch.setattr("pytest_queryeval.suites.variables._is_installed", lambda name: False)

    lacking = run_and_parse("--queryeval-baseline=base.json")
    part = run_and_parse("a.queryeval.yaml")

    assert [(gate["folder"], gate["ok"]) for gate in lacking.report["gates"]] == [(".", True), ("sub", False)]
    assert lacking.result.ret == pytest.ExitCode.TESTS_FAILED
    assert (lacking.report["baseline"]["cases"]["not_run"], lacking.report["baseline"]["cases"]["removed"]) == (2, 0)
    assert (verdicts(part), counts(part)) == ([True], [(1, 1)])


def test_suites_that_pytest_does_not_collect_are_none_of_a_gates(pytester, suite, write, run_and_parse):
    pytester.makeini("[pytest]\nnorecursedirs = build .*\n")
    write("queryeval.yaml", "gates: [{metric: execution_accuracy, min: 1}]")
    write("conftest.py", "collect_ignore = ['old']\n")
    suite(case("a"))
    for place in ("build", "old", ".hidden"):
        suite(case("b"), name=f"{place}/b.queryeval.yaml")

    run = run_and_parse("a.queryeval.yaml")

    assert (verdicts(run), counts(run)) == ([True], [(1, 1)])


def test_conftest_decides_only_for_its_own_folder_what_a_gate_is_about(suites, write, run_and_parse):
    hook = "def pytest_ignore_collect(collection_path):\n    return collection_path.name == 'deep' or None"
    write("a/conftest.py", hook)

    assert counts(run_and_parse("a")) == [(5, 8), (1, 2), (4, 6)]


def test_gate_is_about_the_suites_behind_a_link_to_a_folder_as_well(pytester, suites, run_and_parse):
    outside = pytester.path.parent / f"{pytester.path.name}-outside"
    outside.mkdir()
    (pytester.path / "b").rename(outside / "b")
    (pytester.path / "a/link").symlink_to(outside / "b", target_is_directory=True)

    assert counts(run_and_parse("a/a.queryeval.yaml")) == [(5, 8), (1, 2), (4, 6)]


def test_gate_is_not_evaluated_where_a_file_beside_the_path_cannot_be_read(suite, write, run_and_parse):
    write("queryeval.yaml", "gates: [{metric: execution_accuracy, min: 1}]")
    write("b/queryeval.yaml", "gates: [{metric: execution_accuracy, min: 1}]")
    suite(case("a"), name="a/a.queryeval.yaml")
    write("b/b.queryeval.yaml", "kind: sql\ncases: nothing\n")

    part = run_and_parse("a")

    (gate,) = part.report["gates"]
    assert (gate["ok"], gate["cases"]) == (None, None)
    assert gate["reason"] == "1 case ran, but other suite files below could not be read"
    assert part.result.ret == 0


def test_gate_that_no_case_of_its_folder_fits_is_missed_in_a_selection_as_well(suites, write, run_and_parse):
    write("queryeval.yaml", "gates: [{metric: execution_accuracy, where: {tag: nigthly}, min: 1}]")

    run = run_and_parse("-k", "night")

    assert run.result.ret == 1
    assert run.report["gates"][0]["reason"] == "no case in this run has the tag 'nigthly': did you mean 'nightly'?"


def test_gate_over_a_mapping_of_files_counts_the_cases_of_each(suite, write, run_and_parse):
    write("queryeval.yaml", "gates: [{metric: execution_accuracy, min: 1}]")
    path = suite(name="a.queryeval.yaml")
    path.write_text(path.read_text(encoding="utf-8").replace("cases:", "cases: 'parts/*.yaml'"), encoding="utf-8")
    for name in ("one", "two"):
        write(f"parts/{name}.yaml", f"{{id: {name}, gold: '{GOLD}', predicted: '{GOLD}'}}")

    full_run, part = run_and_parse(), run_and_parse("-k", "one")

    assert (verdicts(full_run), counts(full_run)) == ([True], [(2, 2)])
    assert (verdicts(part), counts(part)) == ([None], [(1, 2)])


def test_verdict_of_a_run_of_a_selection_names_the_baseline_that_gates_need_and_errors(suite, write, run_and_parse):
    write("queryeval.yaml", "gates: [{max_regressions: 0}, {no_regression: {metric: execution_accuracy, alpha: 0.5}}]")
    suite(case("mistaken", gold=INVALID), case("good"), case("other"))

    without, mistaken = run_and_parse("-k", "good"), run_and_parse("-k", "mistaken")

    assert without.result.outlines[-1] == (
        "queryeval: NO VERDICT: none of 2 gates could be evaluated: regressions: no baseline was given; name a "
        "baseline with --queryeval-baseline=REPORT.json"
    )
    assert mistaken.result.outlines[-1] == "queryeval: FAILED: 1 case in error; 1 of 3 cases selected"
