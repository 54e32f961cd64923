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
def asked(pytester, suite, write):
    """Write a suite with misses of three kinds; returns what was asked since the last call."""
    write("predict.py", COUNTING)
    known_failure = unpredicted("bad-known", xfail="joins are hard")
    failing = unpredicted("bad-failing", on_miss="fail")
    suite(
        *(unpredicted(f"good-{number}") for number in range(4)),
        *(unpredicted("bad-missed"), known_failure, failing),
        predictor="predict.py:predict",
        on_miss="xfail",
    )

    def since_last():
        path = pytester.path / "asked"
        lines = path.read_text().splitlines()
        path.unlink()
        return lines

    return since_last


def test_last_failed_asks_again_for_what_missed(asked, run):
    run()
    assert len(asked()) == 7

    result = run("--lf")

    result.assert_outcomes(failed=1, xfailed=1)
    assert sorted(asked()) == ["bad-failing", "bad-missed"]


def test_a_miss_stays_failed_until_it_is_met(asked, run, write):
    run()
    run("--lf", "-k", "missed")
    asked()
    run("--lf", "-k", "missed")
    assert asked() == ["bad-missed"]
    write("predict.py", COUNTING.replace("bad", "bad-f"))
    run("--lf", "-k", "missed")
    asked()

    run("--lf")

    assert asked() == ["bad-failing"]


def test_failed_first_begins_with_what_missed(asked, run):
    run()
    asked()

    run("--ff")

    assert asked() == ["bad-missed", "bad-failing", *(f"good-{number}" for number in range(4)), "bad-known"]


def test_nothing_breaks_without_a_cache(suite, run):
    suite(case("bad", WRONG), on_miss="xfail")

    result = run("-p", "no:cacheprovider")

    result.assert_outcomes(xfailed=1)
    assert result.ret == 0
