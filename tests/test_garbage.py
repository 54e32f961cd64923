"""Garbage is collected less often while a command runs, and as before afterwards."""

from __future__ import annotations

import gc
import json

import pytest
from suites import write

from pytest_queryeval.cli import main
from pytest_queryeval.core.process import MIN_THRESHOLDS, GarbageCollectionThrottle
from pytest_queryeval.features.evaluate.processes import WorkerProcesses

SUITE = """
kind: json
predictor: predict.py:thresholds
cases: [{id: a, question: How often?, gold: [0], on_miss: xfail}]
"""
PREDICT = """
import gc, json

def thresholds(case):
    return json.dumps(gc.get_threshold())
"""


@pytest.fixture(autouse=True)
def default():
    """Thresholds as Python sets them, whatever a test leaves behind."""
    before = gc.get_threshold()
    gc.set_threshold(700, 10, 10)
    yield
    gc.set_threshold(*before)


@pytest.mark.feature("evaluate", "json")
def test_a_command_collects_garbage_less_often_and_restores_the_thresholds(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write(SUITE, "a.queryeval.yaml")
    write(PREDICT, "predict.py")

    assert main(["evaluate", "a.queryeval.yaml", "--json"]) == 0

    (case,) = json.loads(capsys.readouterr().out)["cases"]
    assert json.loads(case["predicted"]["query"]) == [*MIN_THRESHOLDS[:2], 10]
    assert gc.get_threshold() == (700, 10, 10)


def test_worker_processes_collect_garbage_less_often():
    with WorkerProcesses(1) as workers:
        assert workers.submit(gc.get_threshold).result(timeout=60)[:2] == MIN_THRESHOLDS[:2]


@pytest.mark.feature("evaluate")
def test_a_command_that_fails_restores_the_thresholds(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    with pytest.raises(SystemExit):
        main(["evaluate", "missing.queryeval.yaml"])

    assert gc.get_threshold() == (700, 10, 10)


@pytest.mark.parametrize("thresholds", [(0, 10, 10), (100_000, 30, 5)], ids=["off", "higher"])
def test_thresholds_of_those_who_collect_less_garbage_stay(thresholds):
    gc.set_threshold(*thresholds)
    collection = GarbageCollectionThrottle()

    collection.begin()
    assert gc.get_threshold() == thresholds

    collection.end()
    assert gc.get_threshold() == thresholds


def test_thresholds_that_a_predictor_sets_stay():
    collection = GarbageCollectionThrottle()
    collection.begin()
    collection.begin()
    gc.set_threshold(123)

    collection.end()
    collection.end()

    assert gc.get_threshold()[0] == 123
