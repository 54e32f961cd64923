"""Runs that are recorded, and repeated without the system and without the databases."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from answering import Answering
from singers import GOLD, INVALID, SCRIPT, WRONG, case, unpredicted

from pytest_queryeval.evaluation.session import Session

ANSWERS = {"good": GOLD, "bad": WRONG, "invalid": INVALID}
WITHOUT_TIMES = ("created", "environment")
TIMES_OF_QUERIES = ("seconds", "execution_seconds")


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


def timeless(value):
    """A report, or a part of it, without the times of queries."""
    if isinstance(value, list):
        return [timeless(item) for item in value]
    if isinstance(value, dict):
        return {key: timeless(item) for key, item in value.items() if key not in (*TIMES_OF_QUERIES, *WITHOUT_TIMES)}
    return value


def database(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(SCRIPT)


@pytest.mark.feature("recording")
def test_a_replay_calls_nothing_and_runs_nothing(recorded, run_and_parse, service, monkeypatch):
    assert len(service.asked) == 6
    monkeypatch.setattr(Session, "engine", lambda *_: pytest.fail("an engine was asked for"))

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
    monkeypatch.setattr(Session, "engine", lambda *_: pytest.fail("an engine was asked for"))

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
    monkeypatch.setattr(Session, "engine", lambda *_: pytest.fail("an engine was asked for"))

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
def test_recording_again_asks_only_for_what_is_new(suite, recorded, run_and_parse, service):
    suite(*map(unpredicted, ANSWERS), unpredicted("good-too"), predictor={"http": service.url}, trials=2)

    run = run_and_parse("--queryeval-record=rec")

    assert service.asked[6:] == ["good-too", "good-too"]
    assert run.report["totals"]["cases"] == 4


@pytest.mark.feature("recording")
def test_what_was_never_recorded_is_an_error_that_names_it(suite, recorded, run_and_parse, service):
    suite(*map(unpredicted, ANSWERS), unpredicted("good-too"), predictor={"http": service.url}, trials=2)

    run = run_and_parse("--queryeval-replay=rec")

    assert run.outcomes == {"good": "passed", "bad": "failed", "invalid": "failed", "good-too": "error"}
    assert "no recorded prediction for 'good-too'" in run.case("good-too")["message"]


@pytest.mark.feature("recording")
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
def test_a_function_that_goes_by_the_source_gets_its_own_answers_back(suite, write, run_and_parse):
    write("other.sql", SCRIPT.replace("Ana", "Zoe"))
    write(
        "bot.py",
        "def answer(case):\n    return f\"SELECT '{'Ana' if case.source == 'singers.sql' else 'Zoe'}'\"\n",
    )
    for name, script in (("a", "singers.sql"), ("b", "other.sql")):
        suite(
            {"id": "first", "question": "Who is first?", "gold": "SELECT min(name) FROM singer WHERE age = 30"},
            name=f"{name}.queryeval.yaml",
            source={"sqlite": {"script": script}},
            predictor={"python": "bot.py:answer"},
        )

    first = run_and_parse("--queryeval-record=rec")
    write("bot.py", "raise SystemError")
    second = run_and_parse("--queryeval-replay=rec")

    assert [case["predicted"]["sample"] for case in first.report["cases"]] == [[["Ana"]], [["Zoe"]]]
    assert first.report["totals"]["passed"] == 2
    assert plain(second.report) == plain(first.report)


@pytest.mark.feature("recording")
def test_a_function_that_writes_into_its_case_is_recorded_and_replayed(suite, write, run_and_parse):
    write("bot.py", f"def answer(case):\n    case.metadata['told'].append(1)\n    return {GOLD!r}\n")
    suite(unpredicted("a", metadata={"told": []}), predictor={"python": "bot.py:answer"}, trials=2)

    first = run_and_parse("--queryeval-record=rec")
    second = run_and_parse("--queryeval-replay=rec")

    assert first.outcomes == second.outcomes == {"a": "passed"}


@pytest.mark.feature("recording")
def test_a_replay_needs_none_of_the_secrets(suite, run_and_parse, service, monkeypatch):
    suite(
        unpredicted("good"),
        predictor={
            "http": {"url": service.url, "body": {"id": "{id}", "question": "{question}", "team": "team-seven"}}
        },
    )
    monkeypatch.setenv("MODEL_TOKEN", "team-seven")
    run_and_parse("--queryeval-record=rec")
    monkeypatch.delenv("MODEL_TOKEN")

    run = run_and_parse("--queryeval-replay=rec")

    assert run.outcomes == {"good": "passed"}
    assert service.asked == ["good"]


@pytest.mark.feature("recording")
def test_cases_that_are_one_to_a_service_are_scored_by_what_a_replay_uses(suite, run_and_parse):
    answers = iter([GOLD, WRONG])
    with Answering(lambda _: next(answers)) as service:
        for name in "ab":
            suite(unpredicted("same"), name=f"{name}.queryeval.yaml", predictor={"http": service.url})

        first = run_and_parse("--queryeval-record=rec")

    second = run_and_parse("--queryeval-replay=rec")

    assert len({case["outcome"] for case in first.report["cases"]}) == 1
    assert plain(second.report) == plain(first.report)


@pytest.mark.feature("recording")
def test_a_folder_that_is_not_there_cannot_be_replayed(suite, run):
    suite(case())

    result = run("--queryeval-replay=nowhere")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    message = "there is no folder *nowhere: record it with --queryeval-record, or with `queryeval evaluate --record`"
    result.stderr.fnmatch_lines([f"*--queryeval-replay: {message}"])


@pytest.mark.feature("recording")
def test_recording_and_replaying_exclude_each_other(suite, run):
    suite(case())

    result = run("--queryeval-record=rec", "--queryeval-replay=rec")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--queryeval-record and --queryeval-replay exclude each other*"])


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
