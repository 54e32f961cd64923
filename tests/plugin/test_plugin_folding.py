"""One mistake that many cases meet: the terminal shows it a few times, files and counts have every case."""

from __future__ import annotations

import pytest
from singers import GOLD, INVALID, SETTINGS, WRONG, case, unpredicted

RAISES = "def predict(case):\n    raise ConnectionError(f'no answer to {case.id} within {len(case.id)}.5 s')\n"
COUNTS = "def pytest_terminal_summary(terminalreporter):\n    print('seen', len(terminalreporter.stats['error']))\n"


def write_broken(project):
    """Write a suite of eight cases whose predictor raises, one whose gold fails, and one that passes."""
    project.write("predict.py", RAISES)
    cases = [unpredicted(f"case-{number}") for number in range(8)]
    project.suite(*cases, case("typo", gold=INVALID), case("good"), predictor="predict.py:predict")


@pytest.fixture(scope="module")
def folded(shared_project):
    """A run of nine errors, eight of which are one mistake, in a terminal of 80 columns."""
    write_broken(shared_project)
    shared_project.write("conftest.py", COUNTS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", "80")
        patch.delenv("CI", raising=False)
        return shared_project.run_and_parse()


def titles(run):
    return [line.split()[-2] for line in run.result.outlines if "_ ERROR at setup of" in line]


def errors_of(run):
    """The errors in full, without the summaries behind them, which hold whole messages in CI."""
    return run.text.partition("= query evaluation =")[0]


def short_summary(run):
    lines = run.result.outlines
    start = next(number for number, line in enumerate(lines) if "short test summary info" in line)
    return [line for line in lines[start + 1 :] if line.startswith("ERROR")]


def test_equal_errors_are_folded_in_the_terminal_alone(folded):
    folded.result.assert_outcomes(errors=9, passed=1)
    assert len(titles(folded)) == 4
    assert "typo" in titles(folded)
    assert errors_of(folded).count("- same error in 5 more cases -") == 1
    assert "seen 9" in folded.text  # other plugins count all
    messages = {case["message"] for case in folded.report["cases"] if case["outcome"] == "error"}
    assert len(messages) == len(folded.junit.findall(".//testcase/error")) == 9


def test_text_of_an_error_has_its_place_behind_the_reason(folded):
    hint = "no such column: nope: choose from age, country, name"
    assert folded.case("typo")["message"] == f"gold query failed (invalid): {hint} (a.queryeval.yaml:13)"


def test_short_summary_tells_the_reason_within_80_columns(folded):
    lines = short_summary(folded)

    for number, line in enumerate(lines[:3]):
        assert line.startswith(f"ERROR a.queryeval.yaml::case-{number} - predict.py:predict raised ConnectionError: n")
    assert lines[3].startswith("ERROR a.queryeval.yaml::typo - gold query failed (invalid): no such ")
    assert lines[4].startswith("ERROR same error in 5 more cases - predict.py:predict raised Conn")
    assert len(lines) == 5
    assert max(map(len, lines)) <= 80


def test_short_summary_tells_the_number_of_equal_errors_once_in_ci(project, monkeypatch):
    monkeypatch.setenv("CI", "true")
    write_broken(project)

    run = project.run_and_parse()

    lines = short_summary(run)
    assert [line.startswith("ERROR a.queryeval.yaml::") for line in lines] == [True, True, True, True, False]
    assert run.text.partition("short test summary info")[2].count("same error") == 1


@pytest.mark.parametrize(("option", "number"), [("-v", 9), ("-q", 4)])
def test_all_errors_are_shown_when_asked_for(project, option, number):
    write_broken(project)

    run = project.run_and_parse(option)

    assert len(titles(run)) == number
    assert ("same error" in run.text) == (number == 4)
    assert len([line for line in short_summary(run) if "::" in line]) == number


def test_only_errors_of_one_source_and_predictor_are_equal_and_nothing_is_folded_below_the_fourth(project):
    for name in ("predict.py", "other.py"):
        project.write(name, RAISES)
        cases = [unpredicted(f"case-{number}") for number in range(4)]
        project.suite(*cases, name=f"{name}.queryeval.yaml", predictor=f"{name}:predict")
    for name, number in (("c", 4), ("d", 4), ("few", 3)):
        script = {"sqlite": {"script": f"{name}.sql"}}
        project.write(f"{name}.sql", "CREATE TABLE t (a INTEGER);")
        cases = [case(f"case-{count}", gold=INVALID) for count in range(number)]
        project.suite(*cases, name=f"{name}.queryeval.yaml", **{**SETTINGS, "source": script})

    run = project.run_and_parse()

    assert len(titles(run)) == 15
    assert errors_of(run).count("- same error in 1 more case -") == 4
    for name in ("predict.py", "other.py"):
        assert errors_of(run).count(f"{name}:predict raised ConnectionError") == 3


def test_differences_are_coloured_in_the_terminal_and_nowhere_else(project):
    seen = COUNTS.replace("'error'", "'failed'").replace("len(", "str(").replace("'])", "'][0].longrepr)")
    project.write("conftest.py", seen)
    project.suite(case("bad", WRONG), case("good", GOLD))

    plain, shown = project.run_and_parse("--color=no"), project.run_and_parse("--color=yes")

    assert "\x1b" not in plain.text
    assert "\x1b[32m    gold    \x1b[0m | \x1b[32mFR\x1b[0m · \x1b[32m\x1b[1m2\x1b[0m" in shown.text
    assert "\x1b[31m    instead \x1b[0m | \x1b[31mFR\x1b[0m · \x1b[31m\x1b[1m1\x1b[0m" in shown.text
    assert "    gold     | FR · 2" in shown.text  # what other plugins see
    assert "[32m" not in shown.testcase("bad").find("failure").text
    assert "\x1b" not in shown.case("bad")["message"]
