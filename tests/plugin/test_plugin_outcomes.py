"""What becomes of a case: passed, failed, missed, xfailed, skipped or an error, and what is said of each.

All that a run of every sort of case says is in `golden/plugin`: the terminal, its junit.xml, and the messages.
"""

from __future__ import annotations

import json
import re

import pytest
from golden_files import compare_golden
from singers import ENDLESS, GOLD, INVALID, SETTINGS, WRONG, case, unpredicted

FAILURES = {
    "invalid": INVALID,
    "timeout": ENDLESS,
    "unsafe": "DROP TABLE singer",
    "too_large": "SELECT 1 FROM singer a, singer b",
    "empty": "",
}
PREDICT = f"""
import pathlib

def predict(case):
    pathlib.Path("asked.txt").touch()
    if "raises" in case.id:
        raise ConnectionError("no model")
    if case.id == "long":
        raise ValueError("begin" + "x" * 1_000_000 + "end")
    return {GOLD!r}
"""
REFUSES = "def predict(case):\n    raise ConnectionError(f'no answer to {case.id} within {len(case.id)}.5 s')\n"
CONFTEST = """
import pytest

def pytest_runtest_makereport(item, call):
    if call.excinfo is not None and item.name == "bad":
        print("raised", [base.__name__ for base in call.excinfo.type.__mro__[1:3]])

def pytest_runtest_logreport(report):
    if report.when == "call" and report.nodeid.endswith("::missed"):
        print("[", report.longreprtext, "]", sep="")

def pytest_terminal_summary(terminalreporter):
    print("seen by other plugins:", {name: len(reports) for name, reports in terminalreporter.stats.items()})
"""
TRACES = ("Traceback", "INTERNALERROR", "items.py", "evaluation.py", "ThresholdMissed")  # of our own code
PLACES = f"""
kind: sql
source: {{sqlite: {{script: singers.sql}}}}
cases:
  - id: one
    predicted: SELECT 1
    gold: {INVALID}
  - id: several
    predicted: SELECT 1
    gold_any:
      - {GOLD}
      - {INVALID}
  - id: file
    predicted: SELECT 1
    gold_file: wrong.sql
"""


def write_every_sort(project):
    """Write a case for each outcome and each way to it; at most 4 cases of one mistake of a system or a source."""
    write, suite = project.write, project.suite
    limits = {"timeout": 0.3, "max_rows": 5}
    suite(
        case("good", "SELECT country, count(name) FROM singer GROUP BY 1"),
        case("bad", WRONG, question="How many singers\nper country?"),
        *(case(kind, predicted, **limits) for kind, predicted in FAILURES.items()),
        case("gold-late", gold=ENDLESS, timeout=1),
        case("known", WRONG, xfail="joins are hard"),
        case("better", xfail="joins are hard"),
        case("later", INVALID, gold=INVALID, skip="no gold yet"),
        case("xfail-error", gold=INVALID, xfail="joins are hard"),
    )
    expected = [case(f"missed-{kind}", predicted, **limits) for kind, predicted in FAILURES.items()]
    suite(case("missed", WRONG), *expected, name="b.queryeval.yaml", on_miss="xfail")
    both = {"id": "raises-both", "question": "How many?", "gold_any": [GOLD, INVALID]}
    asked = [
        unpredicted("raises"),
        both,
        unpredicted("long"),
        unpredicted("answered"),
        unpredicted("gold", gold=INVALID),
    ]
    write("c.py", PREDICT)
    suite(*asked, name="c.queryeval.yaml", predictor="c.py:predict")
    write("d.py", "1 / 0\n\n\ndef predict(case): ...\n")
    suite(unpredicted("unimported"), name="d.queryeval.yaml", predictor="d.py:predict")
    write("e.py", "import pytest\npytest.skip('no GPU', allow_module_level=True)\ndef predict(case): ...\n")
    suite(unpredicted("skips"), name="e.queryeval.yaml", predictor="e.py:predict")
    write("places.queryeval.yaml", PLACES)
    write("wrong.sql", INVALID)
    write("conftest.py", CONFTEST)


def write_repeated(project):
    """Write mistakes of two systems and two sources that at least 4 cases meet, and one that 3 do."""
    for name in ("predict.py", "other.py"):
        project.write(name, REFUSES)
        cases = [unpredicted(f"case-{number}") for number in range(8 if name == "predict.py" else 4)]
        project.suite(*cases, name=f"{name}.queryeval.yaml", predictor=f"{name}:predict")
    for name, number in (("c", 4), ("d", 4), ("few", 3)):
        project.write(f"{name}.sql", "CREATE TABLE t (a INTEGER);")
        cases = [case(f"case-{count}", gold=INVALID) for count in range(number)]
        source = {"sqlite": {"script": f"{name}.sql"}}
        project.suite(*cases, name=f"{name}.queryeval.yaml", **{**SETTINGS, "source": source})


def seen(run):
    """The lines of a run behind its cases, without times."""
    lines = [line.rstrip() for line in run.result.outlines]
    start = next(number for number, line in enumerate(lines) if " ERRORS ==" in line)
    text = "\n".join(line for line in lines[start:] if "generated xml file" not in line)
    without_slow_cases = re.sub(r"\nslowest cases.*\n(  .*\n)*", "", text)
    without_times = re.sub(r" in \d+\.\d\ds( \(.*\))?", "", without_slow_cases)
    return re.sub("={3,}", "===", without_times).split("\n")


@pytest.fixture(scope="module")
def outcome(shared_project):
    write_every_sort(shared_project)
    options = ("-s", "-vv", "-rfExXs", "-p", "no:cacheprovider")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", "120")
        patch.delenv("CI", raising=False)
        return shared_project.run_and_parse(*options)


@pytest.mark.feature("causes", "ci", "excel", "page")
def test_every_case_has_its_outcome_and_other_cases_go_on(outcome):
    expected = {
        **dict.fromkeys(("good", "answered"), "passed"),
        **dict.fromkeys(("bad", *FAILURES), "failed"),
        **dict.fromkeys(("gold-late", "xfail-error", "one", "several", "file", "gold"), "error"),
        **dict.fromkeys(("raises", "raises-both", "long", "unimported", "skips"), "error"),
        **dict.fromkeys(("missed", *(f"missed-{kind}" for kind in FAILURES)), "missed"),
        "known": "xfailed",
        "better": "xpassed",
        "later": "skipped",
    }

    assert outcome.outcomes == expected
    assert outcome.result.ret == pytest.ExitCode.TESTS_FAILED
    outcome.result.assert_outcomes(passed=2, failed=6, errors=11, xfailed=7, xpassed=1, skipped=1)
    for trace in TRACES:
        assert trace not in outcome.text
    assert "'AssertionError', 'Exception'" in outcome.text  # reports such as Allure's call anything else broken


@pytest.mark.feature("causes", "ci", "excel", "page")
def test_a_run_of_every_sort_of_case_says_what_happened(outcome):
    compare_golden([line[:500] for line in seen(outcome)], "plugin/outcomes.txt")


@pytest.mark.feature("causes", "ci", "excel", "page")
def test_the_report_and_junit_have_the_message_and_both_sides_of_every_case(outcome):
    lines = []
    for entry in outcome.report["cases"]:
        sides = [entry["gold"], entry["predicted"]]
        shown = [side and {key: side.get(key) for key in ("query", "index", "sample", "error")} for side in sides]
        lines += [f"{entry['nodeid']}: {entry['outcome']}", *(f"  {json.dumps(side)[:300]}" for side in shown)]
        lines += [f"  {entry['prediction'] and entry['prediction']['source']}", f"  {entry['violations']}"]
        for element in outcome.testcase(entry["id"]):
            properties = [f"{it.get('name')}={it.get('value')}" for it in element if "seconds" not in it.get("name")]
            message = (element.get("message") or "").split("\n")[0]
            lines.append(f"  junit {element.tag} {message[:200]}{properties or ''}")
        lines += [f"  {line[:300]}" for line in entry["message"].splitlines()]
    compare_golden(lines, "plugin/cases.txt")


@pytest.mark.feature("causes", "ci", "excel", "page")
def test_the_text_of_a_long_error_is_shortened_everywhere(outcome):
    message = outcome.case("long")["message"]

    assert max(len(message), len(outcome.testcase("long").find("error").text)) < 10_000
    assert max(map(len, outcome.result.outlines)) < 10_000


@pytest.mark.parametrize("source", ["gone.db", {"sqlite": {"script": "gone.sql"}}], ids=str)
def test_a_missing_database_makes_no_calls_and_each_case_keeps_what_it_states(
    suite, write, run_and_parse, pytester, source
):
    write("predict.py", PREDICT)
    table = case("table", WRONG, gold_table={"columns": ["a"], "rows": [[1]]})
    suite(unpredicted("asked"), case("stated", WRONG), table, source=source, predictor="predict.py:predict")

    run = run_and_parse()

    assert run.outcomes == dict.fromkeys(("asked", "stated", "table"), "error")
    assert not (pytester.path / "asked.txt").exists()
    assert all("no such file: correct the path" in case["message"] for case in run.report["cases"])
    assert [case["predicted"] and case["predicted"]["query"] for case in run.report["cases"]] == [None, WRONG, WRONG]
    assert [case["gold"]["query"] for case in run.report["cases"]] == [GOLD, GOLD, None]


BREAKING = """
import pytest

@pytest.hookimpl(trylast=True)
def pytest_runtest_setup(item):
    if item.name == "in-setup":
        raise ValueError("too late\\nby far")
    if item.name == "by-others":
        pytest.fail("Timeout (>1.0s) from pytest-timeout.")

@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item):
    if item.name == "in-teardown":
        raise ValueError("too late")
"""
BROKEN = {
    "in-setup": "ValueError: too late",
    "by-others": "Failed: Timeout (>1.0s) from pytest-timeout.",
    "in-teardown": "ValueError: too late",
}


def test_an_error_of_others_is_that_of_its_case_and_begins_with_what_it_says(suite, write, run_and_parse):
    write("conftest.py", BREAKING)
    suite(*map(case, BROKEN), case("bad", WRONG), case("error", gold=INVALID), case("good"))

    run = run_and_parse("-s", "-vv", "--showlocals")

    assert run.outcomes == {**dict.fromkeys(BROKEN, "error"), "bad": "failed", "error": "error", "good": "passed"}
    for id_, said in BROKEN.items():
        assert run.case(id_)["message"].splitlines()[0] == said
        assert "conftest.py" in run.case(id_)["message"]
    for trace in TRACES:
        assert trace not in run.text


@pytest.mark.parametrize("service", ["", "CI"])
def test_an_error_of_several_cases_is_shown_once(project, monkeypatch, service):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("CI", raising=False)
    if service:
        monkeypatch.setenv("CI", "true")
    write_repeated(project)
    project.write("conftest.py", CONFTEST)

    run = project.run_and_parse()

    compare_golden(seen(run), f"plugin/folded{service}.txt")
    run.result.assert_outcomes(errors=23)
    messages = {case["message"] for case in run.report["cases"]}
    assert len(messages) == len(run.junit.findall(".//testcase/error")) == 23


@pytest.mark.parametrize(("option", "number"), [("-v", 23), ("-q", 5)])
def test_all_errors_are_shown_when_asked_for(project, option, number):
    write_repeated(project)

    run = project.run_and_parse(option)

    titles = [line for line in run.result.outlines if "_ ERROR at setup of" in line]
    assert len(titles) == number
    assert ("same error" in run.text) == (number == 5)


def test_differences_are_coloured_in_the_terminal_and_nowhere_else(project):
    seen = "def pytest_terminal_summary(terminalreporter):\n    print(terminalreporter.stats['failed'][0].longrepr)\n"
    project.write("conftest.py", seen)
    project.suite(case("bad", "SELECT 'XX', 7"), case("good", GOLD))

    plain, shown = project.run_and_parse("--color=no"), project.run_and_parse("--color=yes")

    assert "\x1b" not in plain.text
    assert "\x1b[32m    missing \x1b[0m | \x1b[32mFR\x1b[0m · \x1b[32m2\x1b[0m" in shown.text
    assert "\x1b[31m    extra   \x1b[0m | \x1b[31mXX\x1b[0m · \x1b[31m7\x1b[0m" in shown.text
    assert "    missing  | FR · 2" in shown.text  # what other plugins see
    assert "[32m" not in shown.testcase("bad").find("failure").text
    assert "\x1b" not in shown.case("bad")["message"]


@pytest.mark.parametrize(
    ("options", "outcomes"),
    [
        ("--runxfail", {"miss": "failed", "known": "failed", "better": "passed"}),
        ("-p no:skipping", {"miss": "failed", "known": "failed", "better": "passed"}),
        ("-o xfail_strict=true", {"miss": "missed", "known": "xfailed", "better": "xpassed"}),
    ],
)
def test_options_of_pytest_decide_what_expected_failures_are(suite, run_and_parse, options, outcomes):
    suite(case("miss", WRONG, on_miss="xfail"), case("known", WRONG, xfail="joins"), case("better", xfail="joins"))

    run = run_and_parse(*options.split())

    assert run.outcomes == outcomes
    assert f"  predicted  | {WRONG}" in run.result.outlines or outcomes["miss"] == "missed"
    is_strict = outcomes["better"] == "xpassed"
    assert run.case("better")["message"] == is_strict * "passed, though marked xfail (joins): remove the mark"
    assert ("1 case passed despite a strict xfail mark" in run.text) == is_strict
    assert run.result.ret == pytest.ExitCode.TESTS_FAILED


@pytest.mark.feature("causes")
@pytest.mark.parametrize("mode", ["off", "full"])
def test_the_setting_says_where_causes_are_looked_for_and_the_option_goes_before_it(
    suite, pytester, run_and_parse, mode
):
    suite(case("bad", WRONG))
    pytester.makeini("[pytest]\nqueryeval_cause = off")

    run = run_and_parse(f"--queryeval-cause={mode}")

    cause = run.case("bad")["cause"]
    assert (cause is None) == (mode == "off")
    assert run.report["causes"] == ({} if mode == "off" else {"wrong-aggregate": 1})


def test_a_case_that_passes_under_a_strict_xfail_mark_counts_its_reruns(suite, run_and_parse):
    suite(case("better", xfail="joins"))

    run = run_and_parse("-o", "xfail_strict=true", "-p", "rerunfailures", "--reruns=1")

    assert (run.outcomes, run.case("better")["reruns"]) == ({"better": "xpassed"}, 1)
