"""Local files of predictors, and functions in them, are looked for while suites are collected, and not imported."""

from __future__ import annotations

import pytest
from singers import GOLD, case, unpredicted

RIGHT = f"def predict(case):\n    return {GOLD!r}\n"


def test_what_is_not_there_is_one_error_at_the_line_that_names_it(suite, write, run):
    write("predict.py", RIGHT)
    suite(*(unpredicted(f"case-{number}") for number in range(30)), predictor={"python": "predict.py:predikt"})

    result = run("--collect-only")

    assert result.ret == pytest.ExitCode.INTERRUPTED
    assert result.stdout.str().count("there is no") == 1
    said = "there is no function 'predikt' in predict.py: did you mean 'predict'?"
    result.stdout.fnmatch_lines([f"a.queryeval.yaml:3: {said}"])


def test_a_predictor_of_a_folder_is_refused_where_the_folder_names_it(suite, write, run):
    write("queryeval.yaml", "# ours\npredictor:\n  python: predct.py:predict\n  timeout: 5\n")
    suite(unpredicted("a"), name="sub/a.queryeval.yaml")

    run("-q").stdout.fnmatch_lines(
        ["queryeval.yaml:3: there is no file predct.py: correct the path, which leads to /*"]
    )


def test_collecting_does_not_import_the_predictor(suite, write, run):
    write("predict.py", f"raise RuntimeError('imported')\n{RIGHT}")
    suite(unpredicted("a"), predictor="predict.py:predict")

    result = run("--collect-only")

    assert result.ret == 0
    assert "imported" not in result.stdout.str()


@pytest.mark.feature("recording")
@pytest.mark.parametrize("option", ["--queryeval-predictor=predict.py:predict", "--queryeval-replay=rec"])
def test_a_predictor_that_no_case_will_be_answered_by_may_be_gone(suite, write, run, option):
    write("predict.py", RIGHT)
    write("system.py", RIGHT)
    path = suite(unpredicted("a"), predictor="system.py:predict")
    run("--queryeval-record=rec").assert_outcomes(passed=1)
    (path.parent / "system.py").unlink()

    run(option).assert_outcomes(passed=1)


def test_a_predictor_of_skipped_and_predicted_cases_only_may_be_gone(suite, run):
    suite(unpredicted("a", skip="later"), case("b"), predictor="predict.py:predict")

    run().assert_outcomes(passed=1, skipped=1)


def test_a_conftest_may_make_the_module_importable(suite, write, run):
    write("sub/lib/our_system.py", RIGHT)
    write("sub/conftest.py", "import pathlib, sys\nsys.path.append(str(pathlib.Path(__file__).with_name('lib')))\n")
    suite(unpredicted("a"), predictor="our_system:predict", name="sub/a.queryeval.yaml")

    run().assert_outcomes(passed=1)
    run("--queryeval-predictor=our_system:predict").assert_outcomes(passed=1)


def test_a_module_may_be_importable_since_a_test_stands_beside_it(suite, write, run):
    write("our_bot.py", RIGHT)
    write("test_other.py", "def test_other():\n    pass\n")
    suite(unpredicted("a"), predictor="our_bot:predict")

    run().assert_outcomes(passed=2)
