"""Unknown hooks and options: a usage error with the remedy, in place of pytest's traceback."""

from __future__ import annotations

import pytest
from singers import GOLD, case, unpredicted

ANSWER = f"    return {GOLD!r}\n"
FAILING_ATTRIBUTE = """
def __dir__():
    return [*globals(), "absent"]

def __getattr__(name):
    raise RuntimeError if name == "absent" else AttributeError(name)
"""
PREDICT = "write `def pytest_queryeval_predict(case, config)`"


@pytest.mark.parametrize(
    ("signature", "told"),
    [
        ("pytest_queryeval_predictor(case)", "unknown hook 'pytest_queryeval_predictor': did you mean '*_predict'?"),
        (
            "pytest_queryeval_predict(case, model)",
            f"the hook 'pytest_queryeval_predict' has no argument 'model': {PREDICT}",
        ),
    ],
)
def test_a_hook_that_there_is_not_is_a_usage_error(suite, write, run, signature, told):
    suite(unpredicted("one"))
    write("conftest.py", f"import os\n\n\ndef {signature}:\n{ANSWER}")

    result = run()

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: conftest.py:4: {told}"])
    assert "INTERNALERROR" not in result.stdout.str()


def test_a_misnamed_hook_is_told_before_suites_that_need_it_are_read(suite, write, run):
    suite(unpredicted("one"))
    write("conftest.py", f"def pytest_queryeval_predictor(case):\n{ANSWER}")

    result = run()

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "no prediction" not in result.stdout.str()


def test_a_setting_that_there_is_not_leads_to_the_nearest(suite, write, run):
    suite(case("one"))
    write("pytest.ini", "[pytest]\nqueryeval_gate = off\n")

    result = run()

    result.stdout.fnmatch_lines(["*Unknown config option: queryeval_gate: did you mean 'queryeval_gates'?"])


def test_a_number_that_is_none_is_a_usage_error(suite, run):
    suite(case("one"))

    result = run("--queryeval-limit=ten")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*argument --queryeval-limit: expected a whole number, found 'ten'"])


def test_a_case_that_a_suite_does_not_have_leads_to_the_nearest(suite, run):
    suite(case("one"), case("other"))

    result = run("a.queryeval.yaml::othr", "a.queryeval.yaml::one")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: a.queryeval.yaml: no case 'othr': did you mean 'other'?"])
    result.stderr.no_fnmatch_line("*no case 'one'*")


@pytest.mark.parametrize("contents", ["", FAILING_ATTRIBUTE], ids=["", "an attribute that fails"])
def test_a_hook_of_another_plugin_is_left_to_pytest(suite, write, run, contents):
    suite(case("one"))
    write("conftest.py", "def pytest_of_nobody():\n    pass\n" + contents)

    result = run()

    assert result.ret == pytest.ExitCode.INTERNAL_ERROR
    result.stdout.fnmatch_lines(["*unknown hook 'pytest_of_nobody'*"])
    result.stdout.no_fnmatch_line("*RuntimeError*")


@pytest.mark.parametrize(
    ("option", "told"),
    [
        ("--queryeval-reports=x.json", "'--queryeval-reports': did you mean '--queryeval-report'?"),
        ("--queryeval-predicter", "'--queryeval-predicter': did you mean '--queryeval-predictor'?"),
        (
            "--queryeval-gates=off",
            "'--queryeval-gates': it is a setting of pytest.ini, for one run `-o queryeval_gates=…`",
        ),
        ("--queryeval-zzz", "'--queryeval-zzz': `pytest --help` lists all options"),
    ],
)
def test_an_option_that_there_is_not_is_a_usage_error(suite, run, option, told):
    suite(case("one"))

    result = run(option)

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: unknown option {told}"])


@pytest.mark.parametrize("settings", ["", ", dest='mine'", ", action='append'"])
def test_an_option_of_a_conftest_may_have_our_prefix(suite, write, run, settings):
    suite(case("one"))
    write("conftest.py", f"def pytest_addoption(parser):\n    parser.addoption('--queryeval-mine'{settings})\n")

    run("--queryeval-mine=1", "--queryeval-limit=1").assert_outcomes(passed=1)


def test_what_only_looks_like_an_option_with_our_prefix_is_left_to_pytest(suite, run):
    suite(case("one"))

    result = run("-k", "one", "--", "--queryeval-zzz")

    assert "unknown option" not in result.stderr.str()


FORKED = """
def pytest_addoption(parser):  # as pytest-forked does
    parser.addoption("--forked", action="store_true")
"""
PASSES = "def test_other():\n    pass\n"


@pytest.mark.parametrize(
    ("options", "tags", "problem"),
    [
        (
            ["--forked"],
            [],
            "ERROR: --forked: cases cannot run in forked processes: run suites without it, because queries",
        ),
        (
            [],
            ["forked"],
            "ERROR: a.queryeval.yaml::good: the tag 'forked' is a marker of pytest-forked: name it otherwise",
        ),
        ([], ["slow"], ""),
    ],
)
def test_cases_in_forked_processes_are_refused_by_name(suite, write, run, options, tags, problem):
    write("conftest.py", FORKED)
    suite(case("good", tags=tags))

    result = run(*options)

    assert result.ret == (pytest.ExitCode.USAGE_ERROR if problem else 0)
    assert not problem or any(line.startswith(problem) for line in result.errlines)


def test_other_tests_run_in_forked_processes(write, run):
    write("conftest.py", FORKED)
    write("test_other.py", PASSES)

    run("--forked").assert_outcomes(passed=1)


def test_a_tag_is_no_marker_of_a_plugin_that_is_not_there(suite, run):
    suite(case("good", tags=["forked"]))

    run().assert_outcomes(passed=1)
