"""Where missed gates and the verdict stand: behind pytest's own lines, and in its junit.xml."""

from __future__ import annotations

from fnmatch import fnmatchcase
from xml.etree import ElementTree

import pytest
from singers import INVALID, WRONG, case

GATE = "gates: [{metric: execution_accuracy, min: 1}]"
METRIC = "execution_accuracy"
MISSED = "GATE queryeval.yaml - execution_accuracy is 0.500 (2 cases); this gate needs at least 1"
VERDICT = "queryeval: FAILED: gate missed: execution_accuracy is 0.500 (needs at least 1)"


def write_missed(project):
    """Write a suite whose misses fail no case, and a gate that they miss."""
    project.write("queryeval.yaml", GATE)
    project.suite(case("good"), case("bad", WRONG), on_miss="xfail")
    return project


@pytest.fixture
def missed(project):
    return write_missed(project)


@pytest.fixture(scope="module")
def unchanged(shared_project):
    return write_missed(shared_project)


def lines(result):
    return [line for line in result.outlines if line]


@pytest.mark.parametrize("options", [[], ["-q"], ["-v"], ["--color=yes"]], ids=str)
def test_verdict_is_the_last_line_of_a_run_with_suites(unchanged, options):
    run = unchanged.run_and_parse(*options)

    line, red = lines(run.result)[-1], "\x1b[31m\x1b[1m"
    assert line.removeprefix(red).removesuffix("\x1b[0m") == VERDICT
    assert line.startswith(red) == ("--color=yes" in options)
    assert run.result.ret == pytest.ExitCode.TESTS_FAILED
    run.result.assert_outcomes(passed=1, xfailed=1)
    assert "QueryEvalWarning" not in run.text
    (suite,) = run.junit.iter("testsuite")
    properties = [(element.get("name"), element.get("value")) for element in suite.find("properties")]
    assert properties == [
        ("queryeval.verdict", VERDICT.removeprefix("queryeval: ")),
        ("queryeval.gate", MISSED.removeprefix("GATE ")),
    ]
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("2", "0", "0")


def test_there_is_no_verdict_where_no_summary_is_wanted_or_no_suite_runs(unchanged):
    unchanged.write("other/test_a.py", "def test_a():\n    pass\n")

    for options in ("-qq", "--no-summary", "-p no:terminal", "other --queryeval-report=report.json"):
        assert "queryeval:" not in unchanged.run(*options.split()).stdout.str(), options


def test_missed_gates_stand_directly_behind_the_short_summary(missed, write, suite, run):
    suite(case("worse", WRONG), case("fine"), name="deep/b.queryeval.yaml")
    write("deep/queryeval.yaml", "gates: [{metric: execution_accuracy, where: {not: {tag: slow}}, min: 0.9}]")

    result = run("-rfEx")

    text = lines(result)
    # pytest 8.2 puts "reason: " before it.
    [start] = [number for number, line in enumerate(text) if line.startswith("XFAIL a.queryeval.yaml::bad - ")]
    assert (
        "count(*) differs in 1 of 2 rows: 2 → 1 (country FR); execution_accuracy 0.000 (needs at least 1)".startswith(
            text[start].partition("::bad - ")[2].removeprefix("reason: ").removesuffix("...")
        )
    )
    assert text[start + 1 : start + 3] == [
        "GATE queryeval.yaml - execution_accuracy is 0.500 (4 cases); this gate needs at least 1",
        f"GATE deep/queryeval.yaml - {METRIC} of all but slow cases is 0.500 (2 cases); this gate needs at least 0.9",
    ]
    assert text[start + 3].strip("=").strip().startswith("1 failed, 2 passed, 1 xfailed in ")
    assert text[start + 4 :] == [
        "queryeval: FAILED: 1 case failed; gate missed: execution_accuracy is 0.500 (needs at least 1) and 1 more gate"
    ]


JUNIT_GATES = r"""gates:
  - {metric: execution_accuracy, min: 0.4}
  - {metric: execution_accuracy, min: 1}
  - {metric: execution_accuracy, min: 1, where: {tag: "<&\a>"}}
  - {no_regression: {metric: execution_accuracy}}
"""


def junit_lines(path):
    """The suites of a junit.xml with their totals, and the gates: class, name, result and message."""
    root = ElementTree.parse(path).getroot()
    for element in (root, *root):
        name = element.get("name", "") if element is not root else ""  # older versions of pytest give it none
        yield " ".join([name, *(element.get(total, "") for total in ("tests", "failures", "errors"))]).strip()
        for test in element.iterfind("testcase") if element.get("name") == "queryeval.gates" else ():
            results = [f"{result.tag} {result.get('message')}" for result in test]
            yield ": ".join(["  " + test.get("classname"), test.get("name"), *results])


def test_gates_are_test_cases_of_the_junit_file_in_a_folder_of_reports(suite, write, run, pytester):
    suite(case("good"), case("bad", WRONG), on_miss="xfail", name="sub/a.queryeval.yaml")
    write("sub/queryeval.yaml", JUNIT_GATES)

    run("--queryeval-report=reports")

    place, subject, odd = "  sub.queryeval.yaml: ", "execution_accuracy", "<&\\x07>"
    missed, without = f"failure gate missed: {subject}", f"no regression of {subject}"
    assert [*junit_lines(pytester.path / "reports/junit.xml")] == [
        "6 2 0",
        "pytest 2 0 0",
        "queryeval.gates 4 2 0",
        f"{place}{subject}",
        f"{place}{subject} (2): {missed} in sub is 0.500 (2 cases); this gate needs at least 1",
        f"{place}{subject} of {odd} cases: {missed} of {odd} cases in sub: no case in this run has the tag '{odd}'",
        f"{place}{without}: skipped gate not evaluated: {without} in sub: no baseline was given",
    ]


def test_gates_of_a_run_without_a_verdict_are_failed_test_cases(suite, write, run, pytester):
    suite(case("good"))
    write("queryeval.yaml", "gates: [{max_regressions: 0}]")

    assert run("--queryeval-report=reports").ret == 0

    message = "gate NO VERDICT: not evaluated: regressions: no baseline was given"
    last = [*junit_lines(pytester.path / "reports/junit.xml")][-1]
    assert last == f"  queryeval.yaml: regressions: failure {message}"


def test_gates_are_in_a_junit_file_of_the_users_by_a_setting_only(missed, run, pytester):
    def suites(*options):
        run("--junitxml=own.xml", *options)
        return [line for line in junit_lines(pytester.path / "own.xml") if not line.startswith(" ")]

    by_setting = suites("-o", "queryeval_junit_gates=true")
    assert suites()[1:] == ["pytest 2 0 0"]
    assert by_setting[1:] == ["pytest 2 0 0", "queryeval.gates 1 1 0"]
    (pytester.path / "queryeval.yaml").unlink()
    assert suites("-o", "queryeval_junit_gates=true")[1:] == ["pytest 2 0 0"]


def test_a_junit_file_without_scores_is_valid_by_the_schema_of_jenkins(missed, run, pytester, junit_schema):
    run("--queryeval-report=reports")
    assert not junit_schema.is_valid(ElementTree.parse(pytester.path / "reports/junit.xml").getroot())

    run("--queryeval-report=reports", "-o", "queryeval_junit_properties=false")

    junit = ElementTree.parse(pytester.path / "reports/junit.xml").getroot()
    junit_schema.validate(junit)
    assert [len(suite.findall("testcase")) for suite in junit] == [2, 1]
    assert not junit.findall(".//testcase/properties")


@pytest.mark.parametrize(
    ("cases", "other", "verdict"),
    [
        (
            [case("good")],
            ("test_a.py", "def test_a():\n    assert False\n"),
            "PASSED: 1 case: 1 passed (no case failed, *",
        ),
        (
            [case("good")],
            ("b.queryeval.yaml", "cases: nothing\n"),
            "FAILED: b.queryeval.yaml could not be read; gate missed: *; the run was stopped",
        ),
        ([case("good"), case("mistaken", gold=INVALID)], None, "FAILED: 1 case in error"),
    ],
    ids=["another test fails", "a suite cannot be read", "a gate leaves errors out"],
)
def test_verdict_is_about_suites_and_the_exit_status_about_all_tests(suite, write, run, cases, other, verdict):
    write("queryeval.yaml", GATE)
    suite(*cases, on_miss="xfail")
    if other:
        write(*other)

    result = run()

    assert result.ret in (pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.INTERRUPTED)
    assert fnmatchcase(lines(result)[-1], f"queryeval: {verdict}")


def test_cases_whose_failures_decide_nothing_are_one_warning_which_a_filter_makes_an_error(suite, write, run):
    suite(case("worse", WRONG), case("good"), name="b.queryeval.yaml")
    write("queryeval.yaml", "tags: [all]\non_miss: xfail\n")
    suite(case("bad", WRONG), case("good"), case("skipped", skip="later"), case("strict", WRONG, on_miss="fail"))
    said = "nothing-required: with `on_miss: xfail`, 4 cases are in no gate, so their failures decide nothing: add *"

    result, refused = run(), run("-W", "error::pytest_queryeval.QueryEvalWarning")

    (warning,) = [line for line in result.outlines if "QueryEvalWarning" in line]
    assert fnmatchcase(warning, f"*queryeval.yaml:2: QueryEvalWarning: {said}")
    assert refused.ret == pytest.ExitCode.USAGE_ERROR
    refused.stderr.fnmatch_lines([f"ERROR: queryeval.yaml:2: {said}"])


def test_gates_that_notice_nothing_are_warned_of_with_a_remedy(suite, write, run):
    gates = ("{max_regressions: 3}", "{max_regressions: 2}", "{metric: prediction_seconds, min: 0.5}")
    write("queryeval.yaml", f"tags: [all]\ngates: [{', '.join(gates)}]\n")
    suite(case("a"), case("b"))
    suite(case("c"), case("d", skip="later"), name="sub/b.queryeval.yaml")

    whole, part = (
        [line for line in run(*of).outlines if "QueryEvalWarning" in line] for of in ([], ["a.queryeval.yaml"])
    )

    place = "queryeval.yaml:2: QueryEvalWarning: nothing-required: "
    assert [line.partition(place)[2].partition(" may be, ")[0] for line in whole] == [
        "the gate limits only how good 'prediction_seconds'",
        "the gate is about 3 cases, so it cannot be missed: write at most 2",
    ]
    assert part == whole[:1]  # the gates have cases in other files as well
