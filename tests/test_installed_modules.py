"""Runs in the process of the tests keep what can be imported only once, and forget what is theirs."""

import sys

import pytest

PACKAGE = "colorsys"  # which nothing else imports


@pytest.fixture
def package_stays():
    """Check last, after `pytester` has reset the modules."""
    sys.modules.pop(PACKAGE, None)
    yield
    assert PACKAGE in sys.modules
    assert "helper" not in sys.modules


def test_a_run_keeps_installed_modules_and_forgets_those_of_its_folder(package_stays, pytester):
    outer_conftest = sys.modules["conftest"]
    pytester.makepyfile(helper=f"import {PACKAGE}")
    pytester.makeconftest("import helper")
    test_file = pytester.makepyfile("def test_passes(): pass")

    result = pytester.runpytest_inprocess()

    result.assert_outcomes(passed=1)
    assert PACKAGE in sys.modules
    assert not {"helper", test_file.stem} & sys.modules.keys()
    assert sys.modules["conftest"] is outer_conftest


def test_a_run_that_ends_with_an_error_of_usage_keeps_installed_modules(package_stays, pytester):
    pytester.makeconftest(f"import {PACKAGE}")

    result = pytester.runpytest_inprocess("--no-such-option")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert PACKAGE in sys.modules


def test_what_a_test_with_runs_imports_itself_stays(package_stays, pytester):
    __import__(PACKAGE)
