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
TURN = "conversation: [{role: user, content: Hello, target: []}]"


def collected(result):
    return [line for line in result.outlines if "::" in line]


@pytest.fixture(scope="module")
def files(shared_project):
    """A folder with suites of every suffix, with files that are none, and with tests of others."""
    suite, write = shared_project.suite, shared_project.write
    suite(
        case("singers/per-country.v1:a", tags=["night-ly", "2nd"], difficulty="hard"),
        case("two", WRONG, difficulty="easy"),
        tags=["all"],
    )
    suite(case("three"), name="b.queryeval.yml")
    suite(case("hidden"), name=".c.queryeval.yaml")
    write("f/queryeval.yaml", "kind: sql\nsource: {sqlite: {script: ../singers.sql}}")
    write("f/d.queryeval.jsonl", '{"id": "four", "gold": "SELECT 1", "predicted": "SELECT 1"}\n')
    write("e.yaml", "cases: 7")
    write("conftest.py", OTHER_PLUGIN)
    write("a.other", "")
    write("test_beside.py", "def test_beside(): assert False")
    return shared_project


@pytest.fixture(scope="module")
def whole(files):
    """A run of all cases among tests of others."""
    return files.run_and_parse("-v")


IDS = ["singers/per-country.v1:a", "two", "three", "four"]


def test_suites_of_all_suffixes_are_collected_beside_tests_and_items_of_others(whole):
    assert [*whole.outcomes] == IDS
    assert whole.outcomes["two"] == "failed"
    whole.result.assert_outcomes(passed=4, failed=2)
    assert [(case["path"], case["line"]) for case in whole.report["cases"][:2]] == [
        ("a.queryeval.yaml", FIRST_LINE + 1),
        ("a.queryeval.yaml", FIRST_LINE + 2),
    ]
    names = {line.split()[0] for line in whole.result.outlines if ".queryeval." in line.split(" ")[0] and "::" in line}
    assert names >= {"a.queryeval.yaml::singers/per-country.v1:a", "b.queryeval.yml::three"}


@pytest.mark.parametrize(
    ("selection", "cases"),
    [
        ("--strict-markers -m 'sql and all and night-ly and 2nd and hard'", [0]),
        ("--strict-markers -m easy", [1, 3]),
        ("-m 'not all'", [2, 3]),
        ("-k country", [0]),
        ("a.queryeval.yaml::singers/per-country.v1:a", [0]),
        ("f", [3]),
        ("--queryeval-limit=1 b.queryeval.yml a.other", [2]),
    ],
)
def test_cases_are_chosen_by_markers_keywords_and_node_ids(files, selection, cases):
    option, _, value = selection.partition(" '")

    result = files.run("--collect-only", "-q", *option.split(), *filter(None, [value.rstrip("'")]))

    chosen = [line.partition("::")[2] for line in collected(result) if ".queryeval." in line]
    assert chosen == [IDS[number] for number in cases]


def test_items_know_their_place_in_their_file(pytester, suite):
    suite(case("one"), case("two"))

    items, _ = pytester.inline_genitems()

    assert [item.reportinfo() for item in items] == [
        (pytester.path / "a.queryeval.yaml", FIRST_LINE - 1, "one"),
        (pytester.path / "a.queryeval.yaml", FIRST_LINE, "two"),
    ]


PROBLEMS = [
    "broken.queryeval.yaml:3: unknown key 'metrcs': did you mean 'metrics'?",
    "broken.queryeval.yaml:6: unknown key 'golden': did you mean 'gold'?",
    "broken.queryeval.yaml:8: duplicate id 'one', first used on line 5: give one of them another id",
    "broken.queryeval.yaml:11: unknown metric 'execution_acuracy': did you mean 'execution_accuracy'?",
]


@pytest.mark.parametrize(
    ("name", "text", "problems"),
    [
        ("broken.queryeval.yaml", BROKEN, PROBLEMS),
        ("deep/queryeval.yaml", "timout: 3", ["deep/queryeval.yaml:1: unknown key 'timout': did you mean 'timeout'?"]),
    ],
)
def test_broken_files_are_collection_errors_with_all_problems_and_miss_the_gates_above(
    suite, write, run_and_parse, name, text, problems
):
    suite(case("good"), name="deep/z.queryeval.yaml")
    write("queryeval.yaml", "gates: [{metric: pass_rate, min: 0.1}]")
    write(name, text)

    run = run_and_parse()

    assert run.result.ret == pytest.ExitCode.INTERRUPTED
    run.result.assert_outcomes(errors=1)
    run.result.stdout.fnmatch_lines([*problems, "gate MISSED: pass_rate: *.queryeval.yaml could not be read"])
    assert run.report["gates"][0]["ok"] is False
    assert run.outcomes == {}
    assert "Traceback" not in run.text


A, OTHER, SHOWN = "a/a.queryeval.yaml", "other/e.queryeval.yaml", "shown/h.queryeval.yaml"


@pytest.mark.parametrize(
    ("links", "paths"),
    [
        ({"a/up": ".."}, [A]),
        ({"a/self": "."}, [A]),
        ({"b": "a", "shown": ".hidden", "other": "../elsewhere"}, [A, OTHER, SHOWN]),
    ],
)
def test_a_case_is_collected_once_whatever_links_lead_to_it(pytester, suite, write, links, paths):
    suite(case("a"), name="work/a/a.queryeval.yaml")
    suite(case("h"), name="work/.hidden/h.queryeval.yaml")
    suite(case("e"), name="elsewhere/e.queryeval.yaml")
    write("work/queryeval.yaml", "gates: [{metric: execution_accuracy, min: 0.5}]")
    write("work/pytest.ini", "[pytest]")
    os.chdir("work")
    for link, target in links.items():
        Path(link).symlink_to(target)

    pytester.runpytest_inprocess("--queryeval-report=by_pytest.json")
    main(["evaluate", ".", "--report", "by_command.json"])

    for name in ("by_pytest.json", "by_command.json"):
        report = json.loads(Path(name).read_text(encoding="utf-8"))
        assert [case["path"] for case in report["cases"]] == paths
        assert [gate["cases"] for gate in report["gates"]] == [len(paths)]


def test_a_link_to_nothing_is_a_file_that_cannot_be_read(suite, write, run, capsys):
    suite(case("a"))
    write("cases/a.yaml", "{id: a, gold: SELECT 1, predicted: SELECT 1}")
    write("files.queryeval.yaml", "kind: sql\nsource: {sqlite: {script: singers.sql}}\ncases: cases/*.yaml")
    for link in ("b.queryeval.yaml", "queryeval.yaml", "cases/c.yaml"):
        Path(link).symlink_to("nowhere.yaml")

        result = run()
        with pytest.raises(SystemExit):
            main(["evaluate", "."])

        said = f"{link}: no such file: correct the link, which leads to "
        assert result.ret == pytest.ExitCode.INTERRUPTED
        assert said in result.stdout.str()
        assert said in capsys.readouterr().err
        Path(link).unlink()


def test_names_of_files_that_no_terminal_or_xml_may_show_are_escaped(suite, run_and_parse):
    names = {"es\x1bc": r"es\x1bc", "by\udcfftes": r"by\udcfftes", "li\nne": "li ne"}
    folders = {"": "", "d\x1b/": r"d\x1b/"}
    for folder in folders:
        for name in names:
            suite(case("good"), case("bad", WRONG), name=f"{folder}{name}.queryeval.yaml")

    run = run_and_parse()

    paths = {f"{folder}{name}.queryeval.yaml" for folder in folders.values() for name in names.values()}
    assert {case["nodeid"] for case in run.report["cases"]} == {
        f"{path}::{id_}" for path in paths for id_ in ("good", "bad")
    }
    assert {testcase.get("classname") for testcase in run.junit.iter("testcase")} == {
        path.replace("/", ".") for path in paths
    }
    assert [path for path in paths if f"FAILED {path}::bad" not in run.text] == []


def test_where_pytest_only_lists_something_nothing_is_asked_written_or_judged(pytester, suite, write, run):
    write("queryeval.yaml", "gates: [{metric: pass_rate, min: 0.1}]")
    write("p.py", "def predict(case):\n    open('asked', 'a').close()\n")
    suite(unpredicted("a"), predictor="p.py:predict")
    write("report.json", "earlier")

    for option in ("collect-only", "setup-plan", "setup-only", "fixtures", "fixtures-per-test", "cache-show"):
        result = run(f"--{option}", "--queryeval-report=report.json", "--queryeval-report=out")

        assert result.ret == 0, option
        assert "queryeval:" not in result.stdout.str(), option
        assert "gate" not in result.stdout.str(), option
    assert (pytester.path / "report.json").read_text(encoding="utf-8") == "earlier"
    assert not (pytester.path / "asked").exists()
    assert not (pytester.path / "out").exists()


@pytest.mark.parametrize("options", [["-p", "no:queryeval"], []], ids=["switched off", "no suites"])
def test_plugin_that_is_switched_off_or_has_no_suites_leaves_a_project_alone(pytester, suite, write, run, options):
    if options:
        suite(case("bad", WRONG))
    else:
        write("pytest.ini", "[pytest]\nqueryeval_report = report.json")
    write("test_beside.py", "def test_beside(): pass")
    write("data.yaml", "cases: 7")

    result = run(*options)

    result.assert_outcomes(passed=1)
    result.stdout.no_fnmatch_line("*query*evaluation*")
    assert not (pytester.path / "report.json").exists()


def test_options_of_output_do_no_harm(suite, run_and_parse):
    suite(case("bad", WRONG), case("good"), case("error", gold=INVALID))

    for options in (
        *("-qq --tb=no", "-v --tb=native -s --durations=0 -rA", "--tb=line --no-header --no-summary"),
        "-p no:terminal",
    ):
        run = run_and_parse(*options.split())

        assert run.result.ret == 1
        assert run.outcomes == {"bad": "failed", "good": "passed", "error": "error"}
        assert "Traceback" not in run.text
        assert "INTERNALERROR" not in run.text


def test_a_case_that_is_collected_twice_is_not_said_to_be_run_again_after_a_failure(suite, run_and_parse):
    suite(case())

    run = run_and_parse("--keep-duplicates", ".", ".")

    run.result.assert_outcomes(passed=2)
    assert "rerun_cases" not in run.report


TOLD = (
    "songs.yaml looks like a suite, but only files named *.queryeval.yaml are collected: "
    "rename it to songs.queryeval.yaml"
)


def test_suite_under_another_name_is_told_last_where_the_command_line_names_it(suite, write, run):
    suite(case("good"), name="songs.yaml")
    suite(case("good"), name="a.queryeval.yaml")
    write("other.yaml", "kind: list\nof:\n  cases: none\n")

    named, others = run("songs.yaml", "a.queryeval.yaml"), (run(), run("-k", "nothing"), run("other.yaml"))

    assert named.ret == pytest.ExitCode.USAGE_ERROR
    assert [line for line in named.errlines if line][-1] == f"ERROR: {TOLD}"
    assert "rename it to" not in named.stdout.str()
    assert "rename it to" not in "".join(result.stdout.str() + result.stderr.str() for result in others)


def test_suite_under_another_name_is_told_once_where_nothing_else_is_found(suite, run):
    suite(case("good"), name="sub/songs.yaml")
    suite(case("good"), name="sub/more.yml")

    told = [run(*paths).stdout.str().count("rename it to") for paths in ([], ["sub"])]
    suite(case("good"), name="other/a.queryeval.yaml")
    beside_others = run("sub", "other").stdout.str().count("rename it to")
    refused = run("-W", "error::pytest_queryeval.QueryEvalWarning", "sub")

    assert (*told, beside_others) == (1, 1, 1)
    assert refused.ret == pytest.ExitCode.USAGE_ERROR
    assert len([line for line in refused.errlines if "rename it to" in line]) == 1


@pytest.mark.feature("json")
def test_a_case_in_a_table_is_reported_with_its_row_and_a_conversation_is_selected_by_its_name(
    write, run_and_parse, run
):
    write("s.queryeval.yaml", "kind: json\n\ncases: {file: q.csv, metadata: rest}\n")
    write("q.csv", "id,gold,predicted,note\na,1,1,x\n\n,2,3,y\n")
    named = f"{{id: a, name: population of Mexico, {TURN}}}"
    other = "{id: b, metadata: {name: Mexico}, gold: [], predicted: '[]'}"
    write("t.queryeval.yaml", f"kind: json\npredictor: p.jsonl\ncases:\n  - {named}\n  - {other}\n")
    write("p.jsonl", "")

    of_table = run_and_parse("s.queryeval.yaml")
    of_conversation = run("--collect-only", "-q", "-k", "mexico")

    assert of_table.outcomes == {"a": "passed", "row-4": "failed"}
    assert [(case["path"], case["line"], case["row"]) for case in of_table.report["cases"]] == [
        ("s.queryeval.yaml", 3, 2),
        ("s.queryeval.yaml", 3, 4),
    ]
    of_table.result.stdout.fnmatch_lines(["  case       s.queryeval.yaml:3 (q.csv, row 4)"])
    assert collected(of_conversation) == ["t.queryeval.yaml::a.1"]
