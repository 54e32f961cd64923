"""Garbage is collected less often while a command runs, and as before afterwards."""

import gc
import json

import pytest
from suites import write

from pytest_queryeval.cli import main

pytestmark = pytest.mark.feature("evaluate", "json")
SUITE = """
kind: json
predictor: predict.py:thresholds
metrics: [json_equal, threshold]
cases: [{id: a, question: How often?, gold: [0], on_miss: xfail}]
"""
PREDICT = """
import gc, json

def thresholds(case):
    return json.dumps(gc.get_threshold())

def sets_its_own(case):
    gc.set_threshold(123)
    return "[]"
"""
CONFTEST = """
import gc
from pytest_queryeval import METRICS

METRICS.register("threshold", lambda gold, predicted: float(gc.get_threshold()[0]))
"""
DEFAULT = (700, 10, 10)  # of Python


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, text in {"a.queryeval.yaml": SUITE, "predict.py": PREDICT, "conftest.py": CONFTEST}.items():
        write(text, name)
    before = gc.get_threshold()
    gc.set_threshold(*DEFAULT)
    yield
    gc.set_threshold(*before)


def evaluated(capsys, *options):
    """The thresholds that a predictor finds, and the one where the answer is scored."""
    main(["evaluate", "a.queryeval.yaml", "--json", *options])
    (case,) = json.loads(capsys.readouterr().out)["cases"]
    return json.loads(case["predicted"]["query"]), case["scores"]["threshold"]


@pytest.mark.parametrize(
    ("before", "during"),
    [
        (DEFAULT, None),
        ((0, 10, 10), [0, 10, 10]),  # none at all
        ((100_000, 30, 5), [100_000, 30, 5]),
    ],
    ids=["default", "off", "higher"],
)
def test_a_command_collects_garbage_less_often_and_restores_the_thresholds(capsys, before, during):
    gc.set_threshold(*before)

    thresholds, scored = evaluated(capsys)

    assert thresholds == during if during else thresholds[0] > 10 * before[0]
    assert scored == thresholds[0]
    assert gc.get_threshold() == before


def test_worker_processes_collect_garbage_less_often(capsys):
    thresholds, scored = evaluated(capsys, "--workers=1")

    assert scored == thresholds[0] > 10 * DEFAULT[0]


def test_a_command_that_fails_restores_the_thresholds():
    with pytest.raises(SystemExit):
        main(["evaluate", "missing.queryeval.yaml"])

    assert gc.get_threshold() == DEFAULT


def test_thresholds_that_a_predictor_sets_stay(capsys):
    write(SUITE.replace("thresholds\n", "sets_its_own\n"), "a.queryeval.yaml")

    evaluated(capsys)

    assert gc.get_threshold()[0] == 123
