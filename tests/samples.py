"""Cases and results that tests make without a suite, and an engine that answers from a dictionary."""

from dataclasses import fields, replace
from pathlib import Path

from pytest_queryeval.core.errors import Location
from pytest_queryeval.core.groups import groups_of
from pytest_queryeval.core.model import Case, Execution, Failure, QueryOrAnswer, Settings, Source, Threshold
from pytest_queryeval.core.table import Policy, Table
from pytest_queryeval.engines import ENGINES, EngineType
from pytest_queryeval.evaluation import Session, evaluate_case
from pytest_queryeval.predictors import view_of

COMMIT_VARIABLES = (  # in which services of continuous integration name the commit
    *("GITHUB_SHA", "CI_COMMIT_SHA", "BUILD_SOURCEVERSION", "BITBUCKET_COMMIT", "CIRCLE_SHA1", "GIT_COMMIT"),
)
SETTINGS = {field.name for field in fields(Settings)}


def table(*rows, columns=None):
    """A table of these rows, with columns called a, b, c …"""
    width = len(rows[0]) if rows else 1
    return Table(columns=columns or tuple("abcdefgh"[:width]), rows=rows)


def query(text):
    return QueryOrAnswer(query=text)


def answer(*rows):
    return QueryOrAnswer(answer=table(*rows))


def make_case(**changes):
    """A case with one gold, `gold`, and a prediction in place, `predicted`, which runs nowhere."""
    defaults = {
        "id": "a",
        "location": Location(Path("music/s.queryeval.yaml"), 4),
        "kind": "sql",
        "source": None,
        "question": "",
        "evidence": "",
        "golds": (answer((1,)),),
        "predicted": answer((1,)),
        "predictor": None,
        "metrics": ("execution_accuracy",),
        "options": {},
        "thresholds": {"execution_accuracy": Threshold(minimum=1.0)},
        "policy": Policy(),
        "dialect": "sqlite",
        "db_schema": None,
        "on_miss": "fail",
        "timeout": 5.0,
        "max_rows": 100,
        "report_rows": 20,
        "tags": (),
        "difficulty": None,
        "metadata": {},
        "skip": None,
        "xfail": None,
        "allow_empty": False,
    }
    values = defaults | changes
    settings = {name: values.pop(name) for name in SETTINGS & values.keys()}
    return Case(**values, settings=Settings(**settings))


def notes_on(gold, predicted, **settings):
    """The notes of a case whose answers are these tables: whether a search has stopped at its budget, for one."""
    case = make_case(golds=(QueryOrAnswer(answer=gold),), predicted=QueryOrAnswer(answer=predicted), **settings)
    with Session() as session:
        return list(evaluate_case(case, session).shown.details.get("notes", ()))


def change(case, **changes):
    """The case with other fields, which may be those of its settings."""
    settings = {name: changes.pop(name) for name in SETTINGS & changes.keys()}
    return replace(case, **changes, settings=replace(case.settings, **settings))


def make_view(*, schema=None, **changes):
    """What predictors see of a case that `make_case` makes."""
    return view_of(make_case(**changes), lambda: schema)


HEAD = {
    "name": "",
    "created": "2024-05-01T10:00:00+00:00",
    "environment": {},
    "predictor": {"sources": []},
    "requested_paths": {"paths": ["."], "ignored": []},
    "collected": {},
    "unreadable_files": [],
    "selected": False,
    "stopped": False,
    "interrupted": False,
}
FINGERPRINT = {
    "answers": "asked",
    "context": None,
    "metrics": ["f1"],
    "thresholds": {"f1": {"min": 0.5, "max": None}},
    "on_miss": "fail",
    "trials": 1,
    "trials_rule": "mean",
    "golds": "0123456789abcdef",
    "limits": {"timeout": 30.0, "max_rows": 10},
    "schemas": {},
    "compare": {},
    "options": {},
    "source": "aa",
}


def entry(**changes):
    """A case as report.json has it."""
    case = {
        "id": "a",
        "path": "music/s.queryeval.yaml",
        "line": 4,
        "kind": "sql",
        "tags": [],
        "source": "concerts.db",
        "question": "",
        "evidence": "",
        "outcome": "passed",
        "scores": {},
        "violations": [],
        **dict.fromkeys(
            ("difficulty", "gold", "predicted", "scoring", "difference", "cause", "prediction", "fingerprint")
        ),
        "depends_on_tie": False,
        "trials": [],
        "details": {},
        "message": "",
    } | changes
    case = {"nodeid": f"{case['path']}::{case['id']}"} | case
    return case | {"groups": changes.get("groups", _groups(case))}


def _groups(case):
    return {name: list(values) for name, values in groups_of(case).items() if values}


class FakeEngine:
    """Answers a query with the rows that `answers` has for it; any other one is invalid. `executed` are all it ran."""

    def __init__(self, answers):
        self.answers = answers
        self.opened = self.closed = 0
        self.executed = []

    def open(self, source, hosts):
        self.opened += 1
        return self

    def execute(self, query, *, timeout, max_rows):
        self.executed.append(query)
        rows = self.answers.get(query)
        if rows is None:
            return Execution(query=query, error=Failure(kind="invalid", message="no such table"), engine="fake")
        return Execution(query=query, answer=table(*rows), seconds=0.25, engine="fake")

    def close(self):
        self.closed += 1


def install_engine(monkeypatch, answers):
    """Make a `FakeEngine` known as `fake` for one test."""
    engine = FakeEngine(answers)
    monkeypatch.setitem(ENGINES._members, "fake", EngineType(opener=engine.open))
    return engine


def fake_source(name="music"):
    return Source(name=name, engine="fake", settings={"path": name}, folder=Path())
