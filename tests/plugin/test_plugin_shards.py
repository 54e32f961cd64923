"""Shards of a run and `queryeval merge`: together they are one run, but for times."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from singers import INVALID, WRONG, case

from pytest_queryeval.cli import main

OFF = "-o", "queryeval_gates=off"
ROOT_GATES = """
gates:
  - {metric: execution_accuracy, min: 0.6}
  - {metric: execution_accuracy, max: 0.1}
  - {metric: execution_accuracy, max: 0.1}
  - {metric: pass_rate, where: {tag: nightly}, min: 0.5}
  - {metric: pass_rate, where: {kind: sql, difficulty: hard}, min: 0.5}
  - {metric: exact_set_match_spider, where: {file: a/deep/spider.queryeval.yaml}, min: 0.5}
  - {metric: pass_rate, where: {tag: nigthly}, min: 0.5}
"""
SDMX = """
kind: sdmx
metrics: [macro_recall]
cases:
  - id: po
    tags: [nightly]
    gold: [{dataset_id: "LAKES:FLOW", dimensions: [{dimension_name: RIVER, values: [{id: PO}]}]}]
    predicted: [{dataset_id: "LAKES:FLOW", dimensions: [{dimension_name: RIVER, values: [{id: PO}, {id: ADDA}]}]}]
"""


def write_suites(project):
    """Three folders with gates, and cases with every outcome."""
    project.write("queryeval.yaml", ROOT_GATES)
    project.write("a/queryeval.yaml", "gates: [{metric: execution_accuracy, min: 1}]")
    project.write("b/queryeval.yaml", "gates: [{metric: pass_rate, where: {tag: nightly}, min: 1}]")
    project.suite(
        case("good", tags=["nightly"]),
        case("bad", WRONG, difficulty="hard"),
        case("mistaken", gold=INVALID),
        name="a/a.queryeval.yaml",
    )
    spider = {"metrics": ["exact_set_match_spider", "execution_accuracy"], "thresholds": {}}
    easy = case("easy", "SELECT age FROM singer", gold="SELECT name FROM singer")
    project.suite(easy, name="a/z.queryeval.yaml", **spider)
    project.suite(case("deep"), case("deeper", WRONG), name="a/deep/spider.queryeval.yaml", **spider)
    project.suite(
        case("night", tags=["nightly"]),
        case("day", WRONG, on_miss="xfail"),
        case("later", skip="no gold yet", tags=["nightly"]),
        case("known", WRONG, xfail="hard"),
        case("better", xfail="hard", tags=["nightly"]),
        name="b/b.queryeval.yaml",
    )
    project.write("c/c.queryeval.yaml", SDMX)


@pytest.fixture(scope="module")
def runs(shared_project):
    """A function that runs the suites with options, once: as one run, or as a shard, which has its gates off."""
    write_suites(shared_project)

    @cache
    def run(*args, is_shard=True):
        path = shared_project.path / f"part{len(list(shared_project.path.glob('part*')))}.json"
        options = (*OFF, *args) if is_shard else args
        result = shared_project.run(f"--queryeval-report={path}", *options)
        return result, str(path)

    return run


@pytest.fixture
def shard(runs):
    """Return the file with the report of a shard."""
    return lambda *args: runs(*args)[1]


@pytest.fixture
def merged(tmp_path, report_of):
    """Merge parts; returns the status and the report."""

    def merge(*parts):
        target = tmp_path / "all.json"
        status = main(["merge", *parts, "-o", str(target)])
        return status, report_of(target)

    return merge


def timeless(value):
    """A report without what differs from run to run."""
    if isinstance(value, dict):
        return {name: timeless(item) for name, item in value.items() if name not in ("created", "seconds", "measures")}
    return [timeless(item) for item in value] if isinstance(value, list) else value


B = [f"b/b.queryeval.yaml::{name}" for name in ("night", "day", "later", "known", "better")]


@pytest.mark.feature("report_files", "sdmx")
def test_shards_are_one_run_in_any_order_and_so_is_one_alone(runs, shard, merged, report_of):
    first, path = runs(is_shard=False)
    whole = report_of(Path(path))
    parts = [shard("a"), shard(*B[:2]), shard(*B[2:]), shard("c")]

    for reports in ([*reversed(parts)], [shard()]):
        status, report = merged(*reports)

        assert status == first.ret == 1
        assert timeless(report) == timeless(whole)
        assert list(report) == list(whole)
    assert [gate["ok"] for gate in report["gates"]] == [False, False, False, True, False, True, False, False, True]
    assert {"spider_table", "dimensions"} <= report.keys()
    assert [name for name, number in report["totals"].items() if not number] == ["not_run"]  # that needs an option


@pytest.mark.feature("report_files", "sdmx")
def test_one_shard_of_a_selection_is_judged_as_its_run_and_judges_nothing_itself(runs, shard, merged, report_of):
    selection = "--queryeval-limit=4"
    first, path = runs(selection, is_shard=False)

    status, report = merged(shard(selection))
    gates = report_of(Path(shard(selection)))["gates"]

    assert timeless(report) == timeless(report_of(Path(path)))
    assert status == first.ret
    assert {(gate["ok"], gate["value"], gate["n"], gate["reason"]) for gate in gates} == {
        (None, None, 0, "gates are off")
    }


@pytest.mark.feature("report_files", "sdmx")
def test_gates_are_those_of_the_folders_that_some_shard_looked_into_and_missed_above_unreadable_files(
    runs, shard, merged, shared_project
):
    _, report = merged(shard(*B[:2]), shard(*B[2:]), shard("c"))
    shared_project.write("a/broken.queryeval.yaml", "cases: 3")
    bad = runs("a", "--continue-on-collection-errors")[1]
    (shared_project.path / "a/broken.queryeval.yaml").unlink()

    status, with_bad = merged(shard("c"), bad)

    assert {gate["folder"] for gate in report["gates"]} == {".", "b"}
    assert (status, with_bad["unreadable_files"]) == (1, ["a/broken.queryeval.yaml"])
    reasons = {gate["folder"]: gate["reason"] for gate in with_bad["gates"]}
    assert reasons["a"] == reasons["."] == "a/broken.queryeval.yaml could not be read"


@pytest.mark.feature("report_files")
def test_gates_whose_cases_a_stopped_shard_did_not_run_are_not_evaluated(shard, merged, capsys):
    status, report = merged(shard(*B[:2]), shard(*B[2:]), stopped := shard("a", "-x"))

    assert (status, report["stopped"]) == (1, True)
    assert [gate["ok"] for gate in report["gates"]] == [None, False, False, True, False, None, False, False, True]
    assert f"stopped before its end: {stopped}" in capsys.readouterr().out


@pytest.mark.feature("report_files")
def test_a_case_that_was_run_again_counts_as_in_the_last_part(suite, run, merged, capsys):
    suite(case("one", WRONG), case("two"))
    run(*OFF, "--queryeval-report=first.json")
    suite(case("one"), case("two"))
    run(*OFF, "--queryeval-report=again.json", "--lf")

    status, report = merged("first.json", "again.json")
    out = capsys.readouterr().out
    reverse, _ = merged("again.json", "first.json")

    assert (status, reverse) == (0, 1)
    assert report["totals"]["passed"] == 2
    assert "1 case in several parts, of which the last one counts: a.queryeval.yaml::one\n" in out


@pytest.mark.feature("report_files", "sdmx")
def test_the_summary_of_a_merge_is_that_of_a_run(runs, shard, capsys):
    result, _ = runs(is_shard=False)
    part = shard()
    capsys.readouterr()

    main(["merge", part])
    lines = capsys.readouterr().out.splitlines()

    said = result.outlines[result.outlines.index(lines[0]) :]
    slow = "slowest cases" in said, "slowest cases" in lines  # times differ
    assert True in slow or said[: len(lines) - 1] == lines[:-1]
    assert lines[-1] == said[-1]
    assert [line for line in said if line.startswith("gate")] == [line for line in lines if line.startswith("gate")]


def test_hosts_with_folders_of_their_own_meet_each_gate_once(suite, write, run_and_parse, pytester):
    write("suites/queryeval.yaml", "gates: [{metric: execution_accuracy, min: 0.5}]")
    suite(case("good"), name="suites/a.queryeval.yaml")
    suite(case("bad", WRONG), name="suites/b.queryeval.yaml")
    hosts = [f"--tx=popen//chdir={pytester.mkdir(name)}" for name in ("one", "two")]

    run = run_and_parse(f"--rsyncdir={pytester.path}/suites", f"{pytester.path}/suites", "-d", *hosts)

    assert [(gate["folder"], gate["n"], gate["ok"]) for gate in run.report["gates"]] == [("suites", 2, True)]


def test_a_report_that_would_replace_its_baseline_is_refused(suite, run):
    suite(case("a"))
    run("--queryeval-report=report.json")
    before = Path("report.json").read_bytes()

    for option in ("--queryeval-report=report.json", "--queryeval-report=.", "-oqueryeval_report=report.json"):
        result = run("--queryeval-baseline=report.json", option)

        assert result.ret == 4
        result.stderr.fnmatch_lines(
            ["ERROR: *report: the report would replace the baseline report.json: write it to another file"]
        )
    assert Path("report.json").read_bytes() == before
