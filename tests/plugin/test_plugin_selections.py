"""Gates where some of their cases did not run, and the verdict of such runs."""

from __future__ import annotations

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


def counts(report):
    return [(gate["ran"], gate["cases"]) for gate in report["gates"]]


def verdicts(report):
    return [gate["ok"] for gate in report["gates"]]


NO_VERDICT = "queryeval: NO VERDICT: no gate could be evaluated: "
NAME_IT = "; name a baseline with --queryeval-baseline=REPORT.json"
SELECT = "-o queryeval_gates=selection evaluates gates on the cases that ran"


def last_line(run):
    return [line for line in run.result.outlines if line][-1]


def test_gates_of_a_complete_run_are_evaluated_and_skipped_cases_are_not_left_out(unchanged):
    run = unchanged.run_and_parse()

    assert counts(run.report) == [(8, 8), (2, 2), (6, 6)]
    assert verdicts(run.report) == [True, True, True]
    assert last_line(run) == "queryeval: PASSED: 9 cases: 6 passed, 2 missed, 1 skipped (no case failed, 3 gates met)"


@pytest.mark.parametrize(
    ("selection", "ran"),
    [
        (["-k", "bad"], 1),
        (["a/a.queryeval.yaml::mean-age", "a/a.queryeval.yaml::bad"], 2),
        (["a"], 5),
        (["b/deep"], 3),
        (["--queryeval-limit=2"], 2),
        (["--deselect=a/a.queryeval.yaml::good"], 7),
        (["--ignore=b/deep"], 5),
        (["--ignore-glob=*/b.queryeval.yaml"], 5),
        (["-m", "not nightly", "a"], 4),
    ],
    ids=str,
)
def test_gate_is_not_evaluated_where_cases_of_it_were_not_selected(unchanged, selection, ran):
    run = unchanged.run_and_parse(*selection)

    gate = run.report["gates"][0]
    assert (gate["ok"], gate["reason"]) == (None, f"{ran} of 8 cases ran")
    assert run.result.ret == 0
    run.result.stdout.fnmatch_lines([f"gate not evaluated: execution_accuracy: {ran} of 8 cases ran (*"])


SELECTION = ("-o", "queryeval_gates=selection")
ONE = "execution_accuracy: 1 of 8 cases ran (1.000, needs at least 0.7)"
OF_SELECTION = "2 gates evaluated on 1 of 8 cases (no case failed, 2 gates met, 1 gate not evaluated)"


@pytest.mark.parametrize(
    ("options", "verdict"),
    [
        (["-k", "mean-age"], f"{NO_VERDICT}{ONE} and 2 more; {SELECT}"),
        (["-o", "queryeval_gates=off"], f"{NO_VERDICT}*; `queryeval merge` evaluates gates"),
        (["-k", "mean-age", "-o", "queryeval_gates=off"], f"{NO_VERDICT}*"),
        (["-k", "later"], "queryeval: NO VERDICT: no case was evaluated; -rs tells why cases were skipped"),
        (["-q", "-k", "mean-age", *SELECTION], f"queryeval: PASSED: 1 case: 1 passed, {OF_SELECTION}"),
        (["-k", "mean-age or bad", *SELECTION], "queryeval: FAILED: gate missed: execution_accuracy: 0.500, *"),
    ],
    ids=str,
)
def test_run_of_a_selection_has_the_verdict_that_the_setting_allows(unchanged, options, verdict):
    run = unchanged.run_and_parse(*options)

    assert fnmatchcase(last_line(run), verdict)
    assert run.result.ret == ("FAILED" in verdict)
    assert run.report["selected"] == ("-k" in options)


def test_gate_whose_cases_are_all_selected_is_evaluated(unchanged):
    run = unchanged.run_and_parse("-m", "nightly")

    assert verdicts(run.report) == [None, True, None]
    assert counts(run.report) == [(2, 8), (2, 2), (0, 6)]
    assert "PASSED" in last_line(run)


def test_gate_of_a_folder_that_ran_whole_is_evaluated_beside_those_above_it(suites, write, run_and_parse):
    write("a/queryeval.yaml", "gates: [{metric: execution_accuracy, min: 0.6}]")

    run = run_and_parse("a")

    assert [(gate["folder"], gate["ok"]) for gate in run.report["gates"]] == [*[(".", None)] * 3, ("a", True)]


@pytest.mark.parametrize(("limit", "ok"), [(0.1, True), (0.3, None), (0.9, False)])
def test_gate_is_evaluated_where_the_rest_could_not_change_it(suite, write, run_and_parse, limit, ok):
    write("queryeval.yaml", f"gates: [{{metric: execution_accuracy, min: {limit}}}]")
    suite(case("a"), case("b", WRONG), case("c", WRONG), case("rest"), case("and-more"), on_miss="xfail")

    run = run_and_parse("-k", "not rest and not and-more")

    assert verdicts(run.report) == [ok]
    assert run.result.ret == (ok is False)


def test_gate_is_not_evaluated_on_reruns_of_failed_cases_and_after_the_first_failure(suite, write, run_and_parse):
    write("queryeval.yaml", "gates: [{metric: execution_accuracy, min: 0.6}]")
    suite(case("bad", WRONG), case("good"), case("fine"))
    suite(*(case(f"case-{number}") for number in range(9)), name="whole.queryeval.yaml")  # --lf does not look into it

    first, again = run_and_parse("-x"), run_and_parse("--lf")

    for run in (first, again):
        assert run.outcomes == {"bad": "failed"}
        assert run.report["gates"][0]["reason"] == "1 of 12 cases ran"
    assert last_line(first) == "queryeval: FAILED: 1 case failed; the run was stopped"


def test_run_that_something_else_stopped_is_interrupted(suite, write, run_and_parse):
    write("queryeval.yaml", "gates: [{metric: execution_accuracy, min: 0.5}]")
    write("test_a.py", "def test_a():\n    assert False\n")
    suite(case("good"), name="b.queryeval.yaml")

    run = run_and_parse("-x", "test_a.py", "b.queryeval.yaml")

    assert run.report["gates"][0]["reason"] == "0 of 1 case ran"
    assert last_line(run) == "queryeval: INTERRUPTED: 0 of 1 case: none ran (the run was stopped)"


@pytest.mark.parametrize("interruption", ["raise KeyboardInterrupt", "pytest.exit('enough')", "raise RuntimeError"])
def test_interrupted_run_says_so_whatever_failed_before(suite, write, run_and_parse, interruption):
    where = "logfinish(nodeid)" if "Runtime" in interruption else "teardown(item)"
    name = "nodeid" if "Runtime" in interruption else "item.nodeid"
    hook = f"def pytest_runtest_{where}:\n    if 'last' in {name}:\n        {interruption}\n"
    write("conftest.py", f"import pytest\n\n{hook}")
    write("queryeval.yaml", "gates: [{metric: execution_accuracy, min: 0.5}]")
    suite(case("bad", WRONG), case("last"), case("never"))

    run = run_and_parse()

    assert run.report["interrupted"] is True
    assert run.report["gates"][0]["ok"] is None
    assert last_line(run).startswith("queryeval: INTERRUPTED: 2 of 3 cases: ")


def test_file_that_lacks_an_extra_leaves_nothing_out(suite, write, run_and_parse, monkeypatch):
    write("queryeval.yaml", "gates: [{metric: execution_accuracy, min: 1}]")
    suite(case("a"))
    suite(case("b"), name="b.queryeval.yaml", requires="duckdb")
    monkeypatch.setattr("pytest_queryeval.suites.variables._is_installed", lambda name: False)

    full_run, part = run_and_parse(), run_and_parse("a.queryeval.yaml")

    assert (verdicts(full_run.report), counts(full_run.report)) == ([True], [(1, 1)])
    assert (verdicts(part.report), counts(part.report)) == ([True], [(1, 1)])


def test_suites_that_pytest_does_not_collect_are_none_of_a_gates(pytester, suite, write, run_and_parse):
    pytester.makeini("[pytest]\nnorecursedirs = build .*\n")
    write("queryeval.yaml", "gates: [{metric: execution_accuracy, min: 1}]")
    write("conftest.py", "collect_ignore = ['old']\n")
    suite(case("a"))
    for place in ("build", "old", ".hidden"):
        suite(case("b"), name=f"{place}/b.queryeval.yaml")

    run = run_and_parse("a.queryeval.yaml")

    assert (verdicts(run.report), counts(run.report)) == ([True], [(1, 1)])


def test_conftest_decides_only_for_its_own_folder_what_a_gate_is_about(suites, write, run_and_parse):
    write(
        "a/conftest.py",
        "def pytest_ignore_collect(collection_path):\n    return collection_path.name == 'deep' or None",
    )

    run = run_and_parse("a")

    assert counts(run.report) == [(5, 8), (1, 2), (4, 6)]


def test_gate_is_about_the_suites_behind_a_link_to_a_folder_as_well(pytester, suites, run_and_parse):
    outside = pytester.path.parent / f"{pytester.path.name}-outside"
    outside.mkdir()
    (pytester.path / "b").rename(outside / "b")
    (pytester.path / "a/link").symlink_to(outside / "b", target_is_directory=True)

    run = run_and_parse("a/a.queryeval.yaml")

    assert counts(run.report) == [(5, 8), (1, 2), (4, 6)]


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
    write("parts/one.yaml", f"{{id: one, gold: '{GOLD}', predicted: '{GOLD}'}}")
    write("parts/two.yaml", f"{{id: two, gold: '{GOLD}', predicted: '{GOLD}'}}")

    full_run, part = run_and_parse(), run_and_parse("-k", "one")

    assert (verdicts(full_run.report), counts(full_run.report)) == ([True], [(2, 2)])
    assert (verdicts(part.report), counts(part.report)) == ([None], [(1, 2)])


def test_gates_that_compare_with_a_baseline_are_evaluated_on_the_cases_that_ran(suites, write, run, run_and_parse):
    write("queryeval.yaml", "gates: [{max_regressions: 0}, {no_regression: {metric: execution_accuracy, alpha: 0.5}}]")
    run("--queryeval-report=base.json")

    part = run_and_parse("-k", "mean-age", "--queryeval-baseline=base.json")
    without = run_and_parse("-k", "mean-age")

    assert verdicts(part.report) == [True, True]
    assert last_line(without) == f"{NO_VERDICT}regressions: no baseline was given and 1 more{NAME_IT}"


def test_gates_of_a_run_without_a_case_of_their_folder_are_not_there(suites, write, run_and_parse):
    write("a/queryeval.yaml", "gates: [{metric: execution_accuracy, min: 1}]")

    run = run_and_parse("b")

    assert {gate["folder"] for gate in run.report["gates"]} == {"."}


def test_errors_fail_a_run_whose_gates_could_not_be_evaluated(suite, write, run_and_parse):
    write("queryeval.yaml", "gates: [{metric: execution_accuracy, min: 0.5}]")
    suite(case("mistaken", gold=INVALID), case("good"), case("other"))

    run = run_and_parse("-k", "mistaken")

    assert last_line(run) == "queryeval: FAILED: 1 case in error; 1 of 3 cases selected"
