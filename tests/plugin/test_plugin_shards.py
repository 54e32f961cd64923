"""Shards of a run and `queryeval merge`: together they are one run, but for times."""

from __future__ import annotations

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


@pytest.fixture
def suites(suite, write):
    """Three folders with gates, and cases with every outcome."""
    write("queryeval.yaml", ROOT_GATES)
    write("a/queryeval.yaml", "gates: [{metric: execution_accuracy, min: 1}]")
    write("b/queryeval.yaml", "gates: [{metric: pass_rate, where: {tag: nightly}, min: 1}]")
    suite(
        case("good", tags=["nightly"]),
        case("bad", WRONG, difficulty="hard"),
        case("mistaken", gold=INVALID),
        name="a/a.queryeval.yaml",
    )
    spider = {"metrics": ["exact_set_match_spider", "execution_accuracy"], "thresholds": {}}
    suite(case("easy", "SELECT age FROM singer", gold="SELECT name FROM singer"), name="a/z.queryeval.yaml", **spider)
    suite(case("deep"), case("deeper", WRONG), name="a/deep/spider.queryeval.yaml", **spider)
    suite(
        case("night", tags=["nightly"]),
        case("day", WRONG, on_miss="xfail"),
        case("later", skip="no gold yet", tags=["nightly"]),
        case("known", WRONG, xfail="hard"),
        case("better", xfail="hard", tags=["nightly"]),
        name="b/b.queryeval.yaml",
    )
    write("c/c.queryeval.yaml", SDMX)


@pytest.fixture
def shard(pytester, run):
    """Run a part of the suites with gates off; returns its report."""

    def run_shard(number, *args):
        path = pytester.path / f"part{number}.json"
        run(*OFF, f"--queryeval-report={path}", *args)
        return str(path)

    return run_shard


def timeless(value):
    """A report without what differs from run to run."""
    if isinstance(value, dict):
        return {name: timeless(item) for name, item in value.items() if name not in ("created", "seconds", "measures")}
    return [timeless(item) for item in value] if isinstance(value, list) else value


def merged(report_of, tmp_path, *parts):
    target = tmp_path / "all.json"
    status = main(["merge", *parts, "-o", str(target)])
    return status, report_of(target)


@pytest.mark.feature("report_files", "sdmx")
def test_four_shards_are_one_run(suites, run_and_parse, shard, report_of, tmp_path):
    first = run_and_parse()
    parts = [
        shard(1, "a"),
        shard(2, "b", "-m", "nightly"),
        shard(3, "b", "-m", "not nightly"),
        shard(4, "c"),
    ]

    status, report = merged(report_of, tmp_path, *reversed(parts))

    assert status == first.result.ret == 1
    assert timeless(report) == timeless(first.report)
    assert list(report) == list(first.report)
    assert [gate["ok"] for gate in report["gates"]] == [False, False, False, True, False, True, False, False, True]
    assert {"spider_table", "dimensions"} <= report.keys()
    assert [name for name, number in report["totals"].items() if not number] == ["not_run"]  # that needs an option


@pytest.mark.feature("report_files")
def test_shards_of_single_cases_are_one_run(suites, run_and_parse, shard, report_of, tmp_path):
    first = run_and_parse("b")
    file = "b/b.queryeval.yaml"

    _, report = merged(
        report_of,
        tmp_path,
        shard(1, *(f"{file}::{name}" for name in ("night", "day"))),
        shard(2, *(f"{file}::{name}" for name in ("later", "known", "better"))),
    )

    (gate,) = [gate for gate in first.report["gates"] if gate["folder"] == "b"]
    assert [gate for gate in report["gates"] if gate["folder"] == "b"] == [gate]
    assert timeless(report["cases"]) == timeless(first.report["cases"])
    assert report["selected"] is False


@pytest.mark.feature("report_files", "sdmx")
@pytest.mark.parametrize("selection", [(), ("--queryeval-limit=4",)])
def test_one_shard_alone_is_judged_as_its_run(suites, run_and_parse, shard, report_of, tmp_path, selection):
    first = run_and_parse(*selection)

    status, report = merged(report_of, tmp_path, shard(1, *selection))

    assert timeless(report) == timeless(first.report)
    assert status == first.result.ret


def test_a_shard_judges_nothing_and_keeps_what_its_gates_ask_for(suites, shard, report_of):
    gates = report_of(Path(shard(1, "b")))["gates"]

    assert {(gate["ok"], gate["value"], gate["reason"]) for gate in gates} == {(None, None, "gates are off")}
    assert [(gate["folder"], gate["ran"], gate["cases"]) for gate in gates][-1] == ("b", 2, 2)


@pytest.mark.feature("report_files", "sdmx")
def test_gates_of_folders_that_no_shard_looked_into_are_not_there(suites, shard, report_of, tmp_path):
    _, report = merged(report_of, tmp_path, shard(1, "b"), shard(2, "c"))

    assert {gate["folder"] for gate in report["gates"]} == {".", "b"}


@pytest.mark.feature("report_files")
def test_a_file_that_one_shard_could_not_read_misses_the_gates_above_it(suites, shard, write, report_of, tmp_path):
    good = shard(1, "b")
    write("a/broken.queryeval.yaml", "cases: 3")
    bad = shard(2, "a", "--continue-on-collection-errors")

    status, report = merged(report_of, tmp_path, good, bad)

    assert (status, report["unreadable_files"]) == (1, ["a/broken.queryeval.yaml"])
    reasons = {gate["folder"]: gate["reason"] for gate in report["gates"]}
    assert reasons["a"] == reasons["."] == "a/broken.queryeval.yaml could not be read"
    assert reasons["b"] == ""


@pytest.mark.feature("report_files")
def test_gates_whose_cases_a_stopped_shard_did_not_run_are_not_evaluated(suites, shard, report_of, tmp_path, capsys):
    status, report = merged(report_of, tmp_path, shard(1, "b"), stopped := shard(2, "a", "-x"))

    assert (status, report["stopped"]) == (1, True)
    assert [gate["ok"] for gate in report["gates"]] == [None, False, False, True, False, None, False, False, True]
    assert f"stopped before its end: {stopped}" in capsys.readouterr().out


@pytest.mark.feature("report_files")
def test_a_case_that_was_run_again_counts_as_in_the_last_part(suite, shard, report_of, tmp_path, capsys):
    suite(case("one", WRONG), case("two"))
    first = shard(1)
    suite(case("one"), case("two"))
    again = shard(2, "--lf")

    status, report = merged(report_of, tmp_path, first, again)
    out = capsys.readouterr().out
    reverse, _ = merged(report_of, tmp_path, again, first)

    assert (status, reverse) == (0, 1)
    assert report["totals"]["passed"] == 2
    assert "1 case in several parts, of which the last one counts: a.queryeval.yaml::one\n" in out


@pytest.mark.feature("report_files")
def test_the_summary_of_a_merge_is_that_of_a_run(suites, run, shard, capsys, tmp_path):
    result = run("--queryeval-report=one.json")
    part = shard(1)
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


@pytest.mark.parametrize(
    "option", ["--queryeval-report=report.json", "--queryeval-report=.", "-oqueryeval_report=report.json"]
)
def test_a_report_that_would_replace_its_baseline_is_refused(suite, run, option):
    suite(case("a"))
    run("--queryeval-report=report.json")
    before = Path("report.json").read_bytes()

    result = run("--queryeval-baseline=report.json", option)

    assert result.ret == 4
    result.stderr.fnmatch_lines(
        ["ERROR: *report: the report would replace the baseline report.json: write it to another file"]
    )
    assert Path("report.json").read_bytes() == before
