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
FORKED = """
def pytest_addoption(parser):  # as pytest-forked does
    parser.addoption("--forked", action="store_true")
"""
LONG = "x" * 300


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
def test_a_hook_that_there_is_not_is_told_before_suites_that_need_it_are_read(suite, write, run, signature, told):
    suite(unpredicted("one"))
    write("conftest.py", f"import os\n\n\ndef {signature}:\n{ANSWER}")

    result = run()

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: conftest.py:4: {told}"])
    assert "INTERNALERROR" not in result.stdout.str()
    assert "no prediction" not in result.stdout.str()


@pytest.mark.parametrize("contents", ["", FAILING_ATTRIBUTE], ids=["", "an attribute that fails"])
def test_a_hook_of_another_plugin_is_left_to_pytest(suite, write, run, contents):
    suite(case("one"))
    write("conftest.py", "def pytest_of_nobody():\n    pass\n" + contents)

    result = run()

    assert result.ret == pytest.ExitCode.INTERNAL_ERROR
    result.stdout.fnmatch_lines(["*unknown hook 'pytest_of_nobody'*"])
    result.stdout.no_fnmatch_line("*RuntimeError*")


def test_a_setting_that_there_is_not_leads_to_the_nearest(suite, write, run):
    suite(case("one"))
    write("pytest.ini", "[pytest]\nqueryeval_gate = off\n")

    result = run()

    result.stdout.fnmatch_lines(["*Unknown config option: queryeval_gate: did you mean 'queryeval_gates'?"])


@pytest.mark.feature("recording")
@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ("--queryeval-reports=x.json", "unknown option '--queryeval-reports': did you mean '--queryeval-report'?"),
        ("--queryeval-predicter", "unknown option '--queryeval-predicter': did you mean '--queryeval-predictor'?"),
        (
            "--queryeval-gates=off",
            "unknown option '--queryeval-gates': it is a setting of pytest.ini, for one run `-o queryeval_gates=…`",
        ),
        ("--queryeval-zzz", "unknown option '--queryeval-zzz': `pytest --help` lists all options"),
        ("--queryeval-limit=ten", "argument --queryeval-limit: expected a whole number, found 'ten'"),
        ("--queryeval-name=", "--queryeval-name: expected a value, found nothing"),
        ("--queryeval-cause=some", "--queryeval-cause: expected auto, off or full, found 'some'"),
        ("-o queryeval_cause=maybe", "queryeval_cause: expected auto, off or full, found 'maybe'"),
        ("-o queryeval_gates=maybe", "queryeval_gates: expected complete, selection or off, found 'maybe'"),
        ("a.queryeval.yaml::othr a.queryeval.yaml::one", "a.queryeval.yaml: no case 'othr': did you mean 'other'?"),
        ("--forked", "--forked: cases cannot run in forked processes: run suites without it, because queries"),
        (
            "forked.queryeval.yaml",
            "forked.queryeval.yaml::one: the tag 'forked' is a marker of pytest-forked: name it otherwise",
        ),
        *((f"--queryeval-{option}={LONG}", LONG[:100]) for option in ("replay", "record", "baseline", "report")),
    ],
    ids=lambda text: text[:40],
)
def test_what_cannot_be_meant_is_one_usage_error(suite, write, run, arguments, told):
    write("conftest.py", FORKED)
    suite(case("one"), case("other"))
    suite(case("one", tags=["forked"]), name="forked.queryeval.yaml")

    result = run(*arguments.split(), *(["a.queryeval.yaml"] if arguments.startswith("-") else []))

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert len([line for line in result.errlines if told in line]) == 1
    assert "no case 'one'" not in result.stderr.str()
    assert "Traceback" not in result.stdout.str() + result.stderr.str()


@pytest.mark.parametrize("settings", ["", ", dest='mine'", ", action='append'"])
def test_an_option_of_a_conftest_may_have_our_prefix(suite, write, run, settings):
    suite(case("one"))
    write("conftest.py", f"def pytest_addoption(parser):\n    parser.addoption('--queryeval-mine'{settings})\n")

    run("--queryeval-mine=1", "--queryeval-limit=1").assert_outcomes(passed=1)


def test_what_only_looks_like_an_option_with_our_prefix_is_left_to_pytest(suite, run):
    suite(case("one"))

    result = run("-k", "one", "--", "--queryeval-zzz")

    assert "unknown option" not in result.stderr.str()


def test_other_tests_run_in_forked_processes_and_a_tag_is_no_marker_of_a_plugin_that_is_not_there(suite, write, run):
    suite(case("good", tags=["forked"]))
    run().assert_outcomes(passed=1)
    write("conftest.py", FORKED)
    write("test_other.py", "def test_other():\n    pass\n")

    run("--forked", "test_other.py").assert_outcomes(passed=1)
