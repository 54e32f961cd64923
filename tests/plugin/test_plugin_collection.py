"""What is collected from which files, under which names and markers, and what a broken file does."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from singers import FIRST_LINE, GOLD, INVALID, WRONG, case, unpredicted

from pytest_queryeval.cli import main

BROKEN = f"""kind: sql
source: {{sqlite: {{script: singers.sql}}}}
metrcs: [execution_accuracy]
cases:
  - id: one
    golden: {GOLD}
    predicted: SELECT 1
  - id: one
    gold: SELECT 1
    predicted: SELECT 1
    thresholds: {{execution_acuracy: 1}}
"""
OTHER_PLUGIN = """import pytest

class Other(pytest.Item):
    case = {}

    def runtest(self):
        pass

class OtherFile(pytest.File):
    def collect(self):
        yield Other.from_parent(self, name="other")

def pytest_collect_file(file_path, parent):
    if file_path.suffix == ".other":
        return OtherFile.from_parent(parent, path=file_path)
"""


def test_broken_file_is_one_collection_error_with_all_problems(suite, write, run_and_parse):
    suite(case("good"), name="z.queryeval.yaml")
    write("broken.queryeval.yaml", BROKEN)

    run = run_and_parse()

    assert run.result.ret == pytest.ExitCode.INTERRUPTED
    run.result.assert_outcomes(errors=1)
    run.result.stdout.fnmatch_lines(
        [
            "broken.queryeval.yaml:3: unknown key 'metrcs': did you mean 'metrics'?",
            "broken.queryeval.yaml:6: unknown key 'golden': did you mean 'gold'?",
            "broken.queryeval.yaml:8: duplicate id 'one', first used on line 5: give one of them another id",
            "broken.queryeval.yaml:11: unknown metric 'execution_acuracy': did you mean 'execution_accuracy'?",
        ]
    )
    assert "Traceback" not in run.text


@pytest.mark.parametrize(
    ("link", "target", "paths"),
    [
        ("a/up", "..", ["a/a.queryeval.yaml"]),
        ("a/self", ".", ["a/a.queryeval.yaml"]),
        ("b", "a", ["a/a.queryeval.yaml"]),
        ("shown", ".hidden", ["a/a.queryeval.yaml", "shown/h.queryeval.yaml"]),
        ("other", "../elsewhere", ["a/a.queryeval.yaml", "other/e.queryeval.yaml"]),
    ],
)
def test_a_case_is_collected_once_whatever_links_lead_to_it(pytester, suite, write, run_and_parse, link, target, paths):
    suite(case("a"), name="work/a/a.queryeval.yaml")
    suite(case("h"), name="work/.hidden/h.queryeval.yaml")
    suite(case("e"), name="elsewhere/e.queryeval.yaml")
    write("work/queryeval.yaml", "gates: [{metric: execution_accuracy, min: 0.5}]")
    write("work/pytest.ini", "[pytest]")
    os.chdir("work")
    Path(link).symlink_to(target)

    pytester.runpytest_inprocess("--queryeval-report=report.json")
    by_pytest = json.loads(Path("report.json").read_text(encoding="utf-8"))
    main(["evaluate", ".", "--report", "evaluated.json"])
    by_command = json.loads(Path("evaluated.json").read_text(encoding="utf-8"))

    assert [case["path"] for case in by_pytest["cases"]] == [case["path"] for case in by_command["cases"]] == paths
    assert [gate["cases"] for gate in (*by_pytest["gates"], *by_command["gates"])] == [len(paths)] * 2


@pytest.mark.parametrize("link", ["b.queryeval.yaml", "queryeval.yaml", "cases/c.yaml"])
def test_a_link_to_nothing_is_a_file_that_cannot_be_read(suite, write, run, capsys, link):
    suite(case("a"))
    write("cases/a.yaml", "{id: a, gold: SELECT 1, predicted: SELECT 1}")
    write("files.queryeval.yaml", "kind: sql\nsource: {sqlite: {script: a.sql}}\ncases: cases/*.yaml")
    write("a.sql", "CREATE TABLE t (a)")
    Path(link).symlink_to("nowhere.yaml")

    result = run()

    assert result.ret == pytest.ExitCode.INTERRUPTED
    assert f"{link}: no such file: correct the link, which leads to " in result.stdout.str()
    with pytest.raises(SystemExit):
        main(["evaluate", "."])
    assert f"{link}: no such file: correct the link, which leads to " in capsys.readouterr().err


@pytest.mark.parametrize("folder", ["", "d\x1b/"])
@pytest.mark.parametrize(
    ("name", "shown"), [("es\x1bc", r"es\x1bc"), ("by\udcfftes", r"by\udcfftes"), ("li\nne", "li ne")], ids=ascii
)
def test_names_of_files_that_no_terminal_or_xml_may_show_are_escaped(
    suite, run_and_parse, workers, name, shown, folder
):
    suite(case("good"), case("bad", WRONG), name=f"{folder}{name}.queryeval.yaml")

    run = run_and_parse(*workers)

    path = folder.replace("\x1b", r"\x1b") + f"{shown}.queryeval.yaml"
    assert [case["nodeid"] for case in run.report["cases"]] == [f"{path}::good", f"{path}::bad"]
    assert {testcase.get("classname") for testcase in run.junit.iter("testcase")} == {path.replace("/", ".")}
    assert f"FAILED {path}::bad" in run.text


def test_items_of_other_plugins_may_have_a_case_of_their_own(suite, write, run_and_parse):
    write("conftest.py", OTHER_PLUGIN)
    write("a.other", "")
    suite(case("good"))

    run = run_and_parse("--queryeval-limit=1")

    run.result.assert_outcomes(passed=2)
    assert run.outcomes == {"good": "passed"}


def test_broken_file_misses_the_gates_above_it(suite, write, run_and_parse):
    write("queryeval.yaml", "gates: [{metric: pass_rate, min: 0.1}]")
    suite(case("good"), name="z.queryeval.yaml")
    write("broken.queryeval.yaml", BROKEN)

    run = run_and_parse()

    assert run.result.ret == pytest.ExitCode.INTERRUPTED
    missed = "gate MISSED: pass_rate: broken.queryeval.yaml could not be read"
    run.result.stdout.fnmatch_lines([missed])
    assert run.report["gates"][0]["ok"] is False
    assert run.outcomes == {}


def test_broken_settings_of_a_folder_miss_the_gates_above_it(suite, write, run_and_parse):
    write("queryeval.yaml", "gates: [{metric: pass_rate, min: 0.1}]")
    write("deep/queryeval.yaml", "timout: 3")
    suite(case("good"), name="deep/a.queryeval.yaml")

    run = run_and_parse()

    assert run.result.ret == pytest.ExitCode.INTERRUPTED
    problem = "*queryeval.yaml:1: unknown key 'timout': did you mean 'timeout'?"
    run.result.stdout.fnmatch_lines([problem, "gate MISSED*"])


def test_suites_of_all_suffixes_are_collected_and_other_yaml_is_not(suite, write, run):
    suite(case("one"))
    suite(case("two"), name="b.queryeval.yml")
    suite(case("hidden"), name=".c.queryeval.yaml")
    write("queryeval.yaml", "kind: sql\nsource: {sqlite: {script: singers.sql}}")
    write("d.queryeval.jsonl", '{"id": "three", "gold": "SELECT 1", "predicted": "SELECT 1"}\n')
    write("e.yaml", "cases: 7")

    result = run("--collect-only", "-q")

    assert [line for line in result.outlines if "::" in line] == [
        "a.queryeval.yaml::one",
        "b.queryeval.yml::two",
        "d.queryeval.jsonl::three",
    ]


def test_kind_tags_and_difficulty_are_strict_markers(suite, run):
    suite(case("one", tags=["night-ly", "2nd"], difficulty="hard"), case("two", difficulty="easy"), tags=["all"])

    result = run("--strict-markers", "-m", "sql and all and night-ly and 2nd and hard", "-v")

    assert result.ret == 0
    result.assert_outcomes(passed=1, deselected=1)
    result.stdout.fnmatch_lines(["*a.queryeval.yaml::one*"])


def test_markers_are_listed_nowhere_but_where_cases_have_them(suite, run):
    suite(case("one", tags=["nightly"]))

    unknown = run("--strict-markers", "-m", "nightly", "--collect-only", "-q")
    second = run("-m", "not nightly", "-q")

    assert unknown.ret == 0
    assert second.ret == pytest.ExitCode.NO_TESTS_COLLECTED


def test_case_is_chosen_by_keyword_and_by_node_id(suite, run):
    suite(case("singers/per-country.v1:a"), case("singers/all"))

    by_keyword = run("-k", "country")
    by_node_id = run("a.queryeval.yaml::singers/per-country.v1:a")

    by_keyword.assert_outcomes(passed=1, deselected=1)
    by_node_id.assert_outcomes(passed=1)


def test_last_failed_runs_only_what_failed(suite, run_and_parse):
    suite(case("bad", WRONG), case("error", gold=INVALID), case("good"))

    run_and_parse()
    again = run_and_parse("--lf")

    assert again.outcomes == {"bad": "failed", "error": "error"}


@pytest.mark.parametrize(
    "option",
    ["--collect-only", "--setup-plan", "--setup-only", "--fixtures", "--fixtures-per-test", "--cache-show"],
)
def test_where_pytest_only_lists_something_nothing_is_asked_written_or_judged(pytester, suite, write, run, option):
    write("queryeval.yaml", "gates: [{metric: pass_rate, min: 0.1}]")
    write("p.py", "def predict(case):\n    open('asked', 'a').close()\n")
    suite(unpredicted("a"), predictor="p.py:predict")
    write("report.json", "earlier")

    result = run(option, "--queryeval-report=report.json", "--queryeval-report=out")

    assert result.ret == 0
    assert "queryeval:" not in result.stdout.str()
    assert "gate" not in result.stdout.str()
    assert (pytester.path / "report.json").read_text(encoding="utf-8") == "earlier"
    assert not (pytester.path / "asked").exists()
    assert not (pytester.path / "out").exists()


def test_plugin_that_is_switched_off_collects_nothing(suite, write, run):
    suite(case("bad", WRONG))
    write("test_beside.py", "def test_beside(): pass")

    result = run("-p", "no:queryeval")

    result.assert_outcomes(passed=1)
    result.stdout.no_fnmatch_line("*query evaluation*")


def test_a_case_that_is_collected_twice_is_not_said_to_be_run_again_after_a_failure(suite, run_and_parse):
    suite(case())

    run = run_and_parse("--keep-duplicates", ".", ".")

    run.result.assert_outcomes(passed=2)
    assert "rerun_cases" not in run.report


def test_cases_stand_beside_plain_tests(suite, write, run_and_parse):
    suite(case("bad", WRONG))
    write("test_beside.py", "def test_beside(): assert False")

    run = run_and_parse()

    run.result.assert_outcomes(failed=2)
    assert run.report["totals"]["cases"] == 1


def test_project_without_suites_is_left_alone(pytester, write, run):
    pytester.makeini("[pytest]\nqueryeval_report = report.json")
    write("test_beside.py", "def test_beside(): pass")
    write("data.yaml", "cases: 7")

    result = run()

    result.assert_outcomes(passed=1)
    result.stdout.no_fnmatch_line("*query*evaluation*")
    assert not (pytester.path / "report.json").exists()


def test_place_of_a_case_in_its_file_is_told_to_pytest(pytester, suite):
    suite(case("one"), case("two"))

    items, _ = pytester.inline_genitems()

    assert [item.reportinfo() for item in items] == [
        (pytester.path / "a.queryeval.yaml", FIRST_LINE - 1, "one"),
        (pytester.path / "a.queryeval.yaml", FIRST_LINE, "two"),
    ]


@pytest.mark.parametrize(
    "options",
    [
        *("-q --tb=short", "-qq --tb=no", "-v --tb=native -s", "-vv --tb=line --durations=0"),
        *("--no-header --durations=3 -rA", "--no-summary", "-p no:terminal"),
    ],
)
def test_options_of_output_do_no_harm(suite, run_and_parse, options):
    suite(case("bad", WRONG), case("good"), case("error", gold=INVALID))

    run = run_and_parse(*options.split())

    assert run.result.ret == 1
    assert run.outcomes == {"bad": "failed", "good": "passed", "error": "error"}
    assert "Traceback" not in run.text
    assert "INTERNALERROR" not in run.text


TOLD = (
    "songs.yaml looks like a suite, but only files named *.queryeval.yaml are collected: "
    "rename it to songs.queryeval.yaml"
)


def test_suite_under_another_name_is_told_last_where_the_command_line_names_it(suite, run):
    suite(case("good"), name="songs.yaml")
    suite(case("good"), name="a.queryeval.yaml")

    named, whole_folder = run("songs.yaml", "a.queryeval.yaml"), run()

    assert named.ret == pytest.ExitCode.USAGE_ERROR
    assert [line for line in named.errlines if line][-1] == f"ERROR: {TOLD}"
    assert "rename it to" not in named.stdout.str()
    whole_folder.assert_outcomes(passed=1)
    assert "rename it to" not in whole_folder.stdout.str() + whole_folder.stderr.str()


@pytest.mark.parametrize("arguments", [[], ["sub"], ["sub", "other"]], ids=str)
def test_suite_under_another_name_is_told_once_where_nothing_else_is_found(suite, write, run, arguments):
    suite(case("good"), name="sub/songs.yaml")
    suite(case("good"), name="sub/more.yml")
    if "other" in arguments:
        suite(case("good"), name="other/a.queryeval.yaml")

    result = run(*arguments)

    assert result.stdout.str().count("rename it to") == 1


def test_suite_under_another_name_is_a_usage_error_where_warnings_are_errors(suite, run):
    suite(case("good"), name="songs.yaml")

    result = run("-W", "error::pytest_queryeval.QueryEvalWarning")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: {TOLD}"])


def test_suite_under_another_name_is_not_told_where_cases_were_deselected(suite, run):
    suite(case("good"), name="songs.yaml")
    suite(case("good"), name="a.queryeval.yaml")

    assert "rename it to" not in run("-k", "nothing").stdout.str()


def test_other_files_of_yaml_are_not_taken_for_suites(write, run):
    write("songs.yaml", "kind: list\nof:\n  cases: none\n")

    assert "rename it to" not in run("songs.yaml").stdout.str()


@pytest.mark.feature("json")
def test_a_case_in_a_table_is_reported_with_its_row(write, run_and_parse):
    write("s.queryeval.yaml", "kind: json\n\ncases: {file: q.csv, metadata: rest}\n")
    write("q.csv", "id,gold,predicted,note\na,1,1,x\n\n,2,3,y\n")

    run = run_and_parse()

    assert run.outcomes == {"a": "passed", "row-4": "failed"}
    assert [(case["path"], case["line"], case["row"]) for case in run.report["cases"]] == [
        ("s.queryeval.yaml", 3, 2),
        ("s.queryeval.yaml", 3, 4),
    ]
    run.result.stdout.fnmatch_lines(["  case       s.queryeval.yaml:3 (q.csv, row 4)"])


@pytest.mark.feature("json")
def test_a_conversation_is_selected_by_its_name(write, run):
    turn = "conversation: [{role: user, content: Hello, target: []}]"
    first = f"{{id: a, name: population of Mexico, {turn}}}"
    second = "{id: b, metadata: {name: Mexico}, gold: [], predicted: '[]'}"
    write("s.queryeval.yaml", f"kind: json\npredictor: p.jsonl\ncases:\n  - {first}\n  - {second}\n")
    write("p.jsonl", "")

    result = run("--collect-only", "-q", "-k", "mexico")

    assert [line for line in result.outlines if "::" in line] == ["s.queryeval.yaml::a.1"]


@pytest.mark.parametrize("workers", [[], ["-n1"]], ids=["alone", "xdist"])
def test_verbose_run_shows_node_ids_as_they_are_also_with_dots(suite, run, workers):
    suite(case("q1.10"), case("v1.2", WRONG))

    names = [word for line in run("-v", *workers).outlines for word in line.split() if word.startswith("a.query")]

    assert {word for word in names if "::" in word} == {"a.queryeval.yaml::q1.10", "a.queryeval.yaml::v1.2"}
