"""Runs that are recorded, and repeated without the system and without the databases."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from answering import Answering
from singers import GOLD, INVALID, SCRIPT, WRONG, case, unpredicted

from pytest_queryeval.session import Session

ANSWERS = {"good": GOLD, "bad": WRONG, "invalid": INVALID}
WITHOUT_TIMES = ("created", "environment")


@pytest.fixture
def service():
    with Answering(lambda asked: ANSWERS[asked["id"].partition("-")[0]]) as started:
        yield started


@pytest.fixture
def recorded(suite, run_and_parse, service):
    """A run that is recorded in `rec`."""
    suite(*map(unpredicted, ANSWERS), predictor={"http": service.url}, trials=2)
    return run_and_parse("--queryeval-record=rec")


def plain(report):
    """A report without what differs from run to run."""
    return {key: value for key, value in report.items() if key not in WITHOUT_TIMES}


def timeless(value):
    """A report, or a part of it, without the times of queries."""
    if isinstance(value, list):
        return [timeless(item) for item in value]
    if isinstance(value, dict):
        return {key: timeless(item) for key, item in value.items() if key not in ("seconds", *WITHOUT_TIMES)}
    return value


def database(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(SCRIPT)


def test_a_replay_calls_nothing_and_runs_nothing(recorded, run_and_parse, service, monkeypatch):
    assert len(service.asked) == 6
    monkeypatch.setattr(Session, "engine", lambda *_: pytest.fail("an engine was asked for"))

    run = run_and_parse("--queryeval-replay=rec")

    assert len(service.asked) == 6
    assert plain(run.report) == plain(recorded.report)


def test_workers_replay_as_one_process_does(recorded, run_and_parse, service):
    run = run_and_parse("--queryeval-replay=rec", "-n2")

    assert len(service.asked) == 6
    assert plain(run.report) == plain(recorded.report)


def test_workers_record_what_one_process_replays(suite, run_and_parse, service):
    cases = [unpredicted(f"{kind}-{number}") for kind in ANSWERS for number in range(8)]
    suite(*cases, predictor={"http": service.url})

    first = run_and_parse("--queryeval-record=rec", "-n2")
    second = run_and_parse("--queryeval-replay=rec")

    assert len(service.asked) == 24
    # Both workers ran gold, and one of the two executions was kept.
    assert timeless(second.report) == timeless(first.report)


def test_recording_again_asks_only_for_what_is_new(suite, recorded, run_and_parse, service):
    suite(*map(unpredicted, ANSWERS), unpredicted("good-too"), predictor={"http": service.url}, trials=2)

    run = run_and_parse("--queryeval-record=rec")

    assert service.asked[6:] == ["good-too", "good-too"]
    assert run.report["totals"]["cases"] == 4


def test_what_was_never_recorded_is_an_error_that_names_it(suite, recorded, run_and_parse, service):
    suite(*map(unpredicted, ANSWERS), unpredicted("good-too"), predictor={"http": service.url}, trials=2)

    run = run_and_parse("--queryeval-replay=rec")

    assert run.outcomes == {"good": "passed", "bad": "failed", "invalid": "failed", "good-too": "error"}
    assert "no recorded prediction for 'good-too'" in run.case("good-too")["message"]


def test_a_database_that_changed_makes_only_its_own_cases_stale(pytester, suite, run_and_parse):
    for name in ("one.db", "two.db"):
        database(pytester.path / name)
    suite(case("a", source="one.db"), case("b", source="two.db"))
    run_and_parse("--queryeval-record=rec")
    with closing(sqlite3.connect(pytester.path / "two.db")) as connection:
        connection.execute("DELETE FROM singer WHERE name = 'Ana'")
        connection.commit()

    run = run_and_parse("--queryeval-replay=rec")

    assert run.outcomes == {"a": "passed", "b": "error"}
    assert "two.db" in run.case("b")["message"]
    assert "changed" in run.case("b")["message"]


def test_a_folder_that_is_not_there_cannot_be_replayed(suite, run):
    suite(case())

    result = run("--queryeval-replay=nowhere")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*nothing to replay: there is no folder *nowhere"])


def test_recording_and_replaying_exclude_each_other(suite, run):
    suite(case())

    result = run("--queryeval-record=rec", "--queryeval-replay=rec")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--queryeval-record and --queryeval-replay exclude each other*"])
