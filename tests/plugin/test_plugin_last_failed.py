"""What --lf and --ff take for failed: cases missed under `on_miss: xfail` as well."""

from __future__ import annotations

import pytest
from singers import GOLD, WRONG, case, unpredicted

COUNTING = f"""
import pathlib

def predict(case):
    with pathlib.Path("asked").open("a") as file:
        file.write(case.id + "\\n")
    return {WRONG!r} if case.id.startswith("bad") else {GOLD!r}
"""


@pytest.fixture
def asked_in(project):
    """Write a suite with misses of three kinds, run it, and return what is asked in a run with options."""
    project.write("predict.py", COUNTING)
    known_failure = unpredicted("bad-known", xfail="joins are hard")
    failing = unpredicted("bad-failing", on_miss="fail")
    good = [unpredicted(f"good-{number}") for number in range(2)]
    missed = unpredicted("bad-missed")
    project.suite(*good, missed, known_failure, failing, predictor="predict.py:predict", on_miss="xfail")

    def run(*options):
        project.run(*options)
        path = project.path / "asked"
        lines = path.read_text().splitlines()
        path.unlink()
        return lines

    run()
    return run


def test_a_miss_is_asked_again_until_it_is_met(asked_in, write):
    assert sorted(asked_in("--lf")) == ["bad-failing", "bad-missed"]
    assert asked_in("--lf", "-k", "missed") == ["bad-missed"]
    write("predict.py", COUNTING.replace("bad", "bad-f"))
    assert asked_in("--lf", "-k", "missed") == ["bad-missed"]

    assert asked_in("--lf") == ["bad-failing"]


def test_failed_first_begins_with_what_missed(asked_in):
    assert asked_in("--ff") == ["bad-missed", "bad-failing", "good-0", "good-1", "bad-known"]


def test_nothing_breaks_without_a_cache(suite, run):
    suite(case("bad", WRONG), on_miss="xfail")

    result = run("-p", "no:cacheprovider")

    result.assert_outcomes(xfailed=1)
    assert result.ret == 0
