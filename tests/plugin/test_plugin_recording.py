"""Runs that are recorded, and repeated without the system and without the databases."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from answering import Answering
from singers import GOLD, INVALID, SCRIPT, WRONG, case, unpredicted

SESSION_ENGINE = "pytest_queryeval.evaluation.session.Session.engine"
ANSWERS = {"good": GOLD, "bad": WRONG, "invalid": INVALID}
WITHOUT_TIMES = ("created", "environment")


@pytest.fixture
def service():
    with Answering(lambda request: ANSWERS[request["id"].partition("-")[0]]) as started:
        yield started


@pytest.fixture
def recorded(suite, run_and_parse, service):
    """A run that is recorded in `rec`."""
    suite(*map(unpredicted, ANSWERS), predictor={"http": service.url}, trials=2)
    return run_and_parse("--queryeval-record=rec")


def plain(report):
    """A report without what differs from run to run, and what says which answers are recorded."""

    def unmarked(value):
        if isinstance(value, list):
            return list(map(unmarked, value))
        return (
            {key: unmarked(value) for key, value in value.items() if key != "recorded"}
            if isinstance(value, dict)
            else value
        )

    cases = [{key: value for key, value in case.items() if key != "scoring"} for case in report["cases"]]
    return unmarked({key: value for key, value in report.items() if key not in WITHOUT_TIMES} | {"cases": cases})


def database(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(SCRIPT)


@pytest.mark.feature("recording")
def test_a_replay_calls_nothing_and_runs_nothing(recorded, run_and_parse, service, monkeypatch):
    assert len(service.asked) == 6
    monkeypatch.setattr(SESSION_ENGINE, lambda *_: pytest.fail("an engine was asked for"))

    run = run_and_parse("--queryeval-replay=rec")

    assert len(service.asked) == 6
    assert plain(run.report) == plain(recorded.report)


def queries(folder):
    """The queries whose answers are recorded."""
    entries = map(json.loads, (path.read_text(encoding="utf-8") for path in folder.glob("executions/*/*.json")))
    return {text if isinstance(text, str) else "\n".join(text) for text in (entry["of"]["query"] for entry in entries)}


@pytest.mark.feature("recording")
def test_a_recording_has_the_cause_of_a_wrong_answer_but_nothing_that_was_run_to_find_it(
    pytester, suite, run_and_parse, monkeypatch
):
    wrong = "SELECT name FROM singer WHERE age > 30"
    gold = "SELECT name FROM singer WHERE age > 40"
    suite(case("a", wrong, gold=gold))
    recorded = run_and_parse("--queryeval-record=rec")
    monkeypatch.setattr(SESSION_ENGINE, lambda *_: pytest.fail("an engine was asked for"))

    run = run_and_parse("--queryeval-replay=rec")

    assert queries(pytester.path / "rec") == {wrong, gold}
    assert [edit["change"] for edit in run.case("a")["cause"]["edits"]] == ["30 → 40"]
    assert plain(run.report) == plain(recorded.report)


@pytest.mark.feature("recording")
def test_terms_that_a_cause_looked_up_are_recorded_where_a_metric_needs_them(write, suite, run_and_parse, monkeypatch):
    write("g.ttl", "@prefix : <http://e/> . :ann :age 30 .")
    prefix = "PREFIX : <http://e/>"
    wrong = {"gold": f"{prefix} SELECT ?x {{ ?x :age 30 }}", "predicted": f"{prefix} SELECT ?x {{ ?x :aged 30 }}"}
    metrics = ["execution_accuracy", "known_terms"]
    suite(*({"id": "a", **wrong}, {"id": "b", **wrong, "metrics": metrics}), kind="sparql", source={"rdf": "g.ttl"})
    recorded = run_and_parse("--queryeval-record=rec")
    monkeypatch.setattr(SESSION_ENGINE, lambda *_: pytest.fail("an engine was asked for"))

    run = run_and_parse("--queryeval-replay=rec")

    assert run.case("b")["scores"]["known_terms"] == 0.0
    assert [case["cause"]["edits"][0]["label"] for case in run.report["cases"]] == ["unknown-term"] * 2
    assert plain(run.report) == plain(recorded.report)


@pytest.mark.feature("recording")
def test_a_replay_says_which_cause_is_not_recorded(suite, run_and_parse):
    wrong = case("a", "SELECT name FROM singer WHERE age > 30", gold="SELECT name FROM singer WHERE age > 40")
    suite(wrong)
    run_and_parse("--queryeval-record=rec")
    suite({**wrong, "compare": {"case": "ignore"}})

    replayed = run_and_parse("--queryeval-replay=rec").case("a")

    assert (replayed["outcome"], replayed["cause"]) == ("failed", None)
    (note,) = replayed["details"]["notes"]
    assert note.startswith("no cause: the cause of `SELECT name FROM singer WHERE age > 30` on 'singers.sql' in ")
    assert "is stale: `compare` has changed (recorded {" in note


@pytest.mark.feature("recording")
def test_prediction_for_a_source_that_got_a_row_is_stale_by_its_source_and_not_by_its_schema(
    pytester, suite, write, run_and_parse
):
    database(pytester.path / "one.db")
    write("bot.py", "def answer(case):\n    return 'SELECT count(*) AS n FROM singer'\n")
    asked = {"id": "a", "question": "How many?", "gold_table": {"columns": ["n"], "rows": [[3]]}}
    suite(asked, source="one.db", predictor="bot.py:answer")
    run_and_parse("--queryeval-record=rec")
    with closing(sqlite3.connect(pytester.path / "one.db")) as connection:
        connection.execute("INSERT INTO singer VALUES ('Di', 'FR', 60)")
        connection.commit()

    message = run_and_parse("--queryeval-replay=rec").case("a")["message"]

    assert "is stale: the schema that its predictor saw cannot be compared: the tables of 'one.db' in " in message
    assert "are stale: its source has changed since (recorded state " in message
    assert "the schema that its predictor sees has changed" not in message


@pytest.mark.feature("recording")
def test_a_replay_says_that_it_is_one_and_so_does_a_comparison_with_it(recorded, run_and_parse):
    Path("report.json").rename("base.json")

    run = run_and_parse("--queryeval-replay=rec", "--queryeval-baseline=base.json", "--reruns=1")

    assert (run.report["environment"]["replay"], run.report["environment"]["reruns"]) == (True, 1)
    assert run.report["recorded"] == {"answers": 6, "of": 6}
    assert run.result.outlines[-1].endswith(
        "reruns of a case: 0 became 1; 6 of 6 answers from the recording; 2 cases run again after a failure"
    )
    assert [change["what"] for change in run.report["baseline"]["changes"]][:1] == ["answers taken from a recording"]
