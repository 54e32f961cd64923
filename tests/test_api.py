import json
import sqlite3
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest
from samples import answer, fake_source, install_engine, make_case, query

from pytest_queryeval import evaluate, load_cases
from pytest_queryeval.core.errors import Location
from pytest_queryeval.core.metric import describe_metric
from pytest_queryeval.metrics import METRICS
from pytest_queryeval.reports import render_json

RIGHT = {"predicted": answer((1,))}
WRONG = {"predicted": answer((2,))}
SUITE = """
kind: sql
source: {sqlite: {script: music.sql}}
predictor: predict.py:predict
cases:
  - {id: count, question: "3", gold: SELECT count(*) FROM singer}
  - {id: wrong, question: "4", gold: SELECT count(*) FROM singer}
  - {id: broken, question: FROM, gold: SELECT count(*) FROM singer}
  - {id: bad-gold, question: "3", gold: SELECT count(*) FROM dancer}
"""


@pytest.fixture
def suite(tmp_path):
    (tmp_path / "s.queryeval.yaml").write_text(SUITE)
    (tmp_path / "music.sql").write_text("create table singer (n); insert into singer values (1), (2), (3);")
    (tmp_path / "predict.py").write_text("def predict(case):\n    return f'SELECT {case.question}'\n")
    return tmp_path


def outcomes(report):
    return {case["id"]: case["outcome"] for case in report["cases"]}


def test_a_suite_is_evaluated_without_pytest(suite):
    report = evaluate(load_cases(suite))

    assert outcomes(report) == {"count": "passed", "wrong": "failed", "broken": "failed", "bad-gold": "error"}
    assert report["totals"]["cases"] == 4
    assert report["metrics"]["execution_accuracy"]["mean"] == pytest.approx(1 / 3)
    assert {case["id"]: (case["predicted"] or {}).get("error") for case in report["cases"]}["broken"] is not None


@pytest.mark.parametrize("path", ["suite.yaml", Path("suite.yaml")])
def test_a_path_in_place_of_cases_says_how_to_read_them(path):
    with pytest.raises(TypeError, match=r"use `evaluate\(load_cases\('suite\.yaml'\)\)`"):
        evaluate(path)


def test_the_report_can_be_written_and_says_when_it_was_made(suite):
    report = evaluate(load_cases(suite), name="mine")

    assert json.loads(render_json(report)) == report
    assert report["name"] == "mine"
    assert datetime.fromisoformat(report["created"]).utcoffset().total_seconds() == 0
    assert (report["schema"], report["gates"]) == (2, [])
    assert report["environment"].keys() == {"python", "pytest_queryeval", "platform", "engines"}
    assert report["environment"]["engines"] == {"sqlite": sqlite3.sqlite_version}


@pytest.mark.parametrize(
    ("changes", "outcome"),
    [
        (RIGHT, "passed"),
        (WRONG, "failed"),
        (WRONG | {"thresholds": {}}, "passed"),
        (WRONG | {"on_miss": "xfail"}, "missed"),
        (RIGHT | {"on_miss": "xfail"}, "passed"),
        (WRONG | {"xfail": "known"}, "xfailed"),
        (RIGHT | {"xfail": "known"}, "xpassed"),
        (WRONG | {"xfail": "known", "on_miss": "xfail"}, "xfailed"),
        (WRONG | {"skip": "later"}, "skipped"),
        ({"predicted": query("SELECT 1"), "xfail": "never an error"}, "error"),
        ({"predicted": None, "on_miss": "xfail"}, "error"),
    ],
)
def test_a_case_ends_as_its_scores_and_settings_say(changes, outcome):
    report = evaluate([make_case(**changes)])

    assert outcomes(report) == {"a": outcome}


def test_a_failed_prediction_fails_the_case_unless_nothing_is_required(monkeypatch):
    install_engine(monkeypatch, {"gold": []})
    case = make_case(source=fake_source(), golds=(query("gold"),), predicted=query("broken"))

    report = evaluate([case, replace(case, id="b", settings=replace(case.settings, thresholds={}))])

    assert outcomes(report) == {"a": "failed", "b": "passed"}


def test_a_skipped_case_is_not_run_and_says_why(monkeypatch):
    engine = install_engine(monkeypatch, {})
    case = make_case(source=fake_source(), golds=(query("gold"),), skip="the source moved")

    (entry,) = evaluate([case])["cases"]

    assert entry["message"] == "the source moved"
    assert engine.executed == []


def test_an_error_names_the_place_of_its_case_and_the_others_are_evaluated():
    report = evaluate([make_case(predicted=None), make_case(id="b")])

    assert outcomes(report) == {"a": "error", "b": "passed"}
    assert report["cases"][0]["message"].endswith(" (music/s.queryeval.yaml:4)")
    assert report["totals"]["errors"] == 1


def test_a_missing_script_is_an_error_at_the_source_that_names_it(suite):
    (suite / "music.sql").rename(suite / "musics.sql")

    report = evaluate(load_cases(suite, root=suite))

    problem, _, place = report["cases"][0]["message"].rpartition(" (")
    assert problem.endswith("music.sql: no such file: did you mean 'musics.sql'?")
    assert place.endswith("s.queryeval.yaml:3)")


def test_a_metric_that_raises_is_an_error_of_its_case_alone(monkeypatch):
    monkeypatch.setitem(METRICS._members, "ours", METRICS._admit(lambda gold, predicted: 1 / predicted.rows[0][0]))

    report = evaluate([make_case(id=str(n), metrics=("ours",), predicted=answer((n,))) for n in (0, 1)])

    assert outcomes(report) == {"0": "error", "1": "passed"}
    assert "metric 'ours' raised ZeroDivisionError" in report["cases"][0]["message"]


def test_cases_are_reported_in_the_order_of_their_files_whatever_order_they_came_in():
    places = [("b", 2), ("a", 9), ("a", 3)]
    cases = [make_case(id=f"{name}{line}", location=Location(Path(name), line)) for name, line in places]

    report = evaluate(iter(cases))

    assert [case["nodeid"] for case in report["cases"]] == ["a::a3", "a::a9", "b::b2"]


@pytest.mark.parametrize(
    ("name", "cases"),
    [
        ("cases.yaml", "- {id: a, gold: SELECT 1, predicted: SELECT 1}\n"),
        ("cases.csv", "id,gold,predicted\na,SELECT 1,SELECT 1\n"),
    ],
)
def test_suites_that_share_a_file_of_cases_have_node_ids_of_their_own(tmp_path, name, cases):
    (tmp_path / name).write_text(cases)
    for suite in ("one", "other"):
        (tmp_path / f"{suite}.queryeval.yaml").write_text(f"kind: sql\nsource: {suite}.db\ncases: {name}\n")

    report = evaluate(load_cases(tmp_path))

    assert [case["nodeid"] for case in report["cases"]] == [
        f"{tmp_path}/{suite}.queryeval.yaml::a" for suite in ("one", "other")
    ]


def test_no_cases_make_an_empty_report():
    report = evaluate([])

    assert (report["totals"]["cases"], report["cases"], report["metrics"]) == (0, [], {})


def test_what_was_opened_is_closed_also_where_the_user_interrupts(monkeypatch):
    engine = install_engine(monkeypatch, {"gold": [(1,)]})

    def interrupted(gold, predicted):
        raise KeyboardInterrupt

    monkeypatch.setitem(METRICS._members, "interrupted", describe_metric(interrupted))
    case = make_case(source=fake_source(), golds=(query("gold"),), metrics=("interrupted",))

    with pytest.raises(KeyboardInterrupt):
        evaluate([case])

    assert engine.closed == 1
