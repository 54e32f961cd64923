"""What systems state about their answers: metadata and seconds, which values are kept, and which are an error."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from suites import load

from pytest_queryeval import evaluate
from pytest_queryeval.cli import main
from pytest_queryeval.core.steps import CONTENT_CHARACTERS, STEPS_CHARACTERS, bounded_metadata
from pytest_queryeval.results.report_file import read_report

AGENT = """
from decimal import Decimal
from fractions import Fraction
import math

from pytest_queryeval import Prediction, QueryOrAnswer, Step


class Row:
    def __repr__(self):
        raise RuntimeError("the session is closed")


class Lazy(dict):
    def items(self):
        raise RuntimeError("the session is closed")


ANSWERS = {answers}


def ask(case):
    content = QueryOrAnswer(query="SELECT 1")
    return Prediction(**dict(content=content, predictor="agent") | ANSWERS[int(case.id)])
"""


@pytest.fixture(autouse=True)
def suite_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.sql").write_text("CREATE TABLE t (a);")


def suite(*answers, settings=""):
    """The text of a suite whose predictions have these arguments, in Python."""
    Path("agent.py").write_text(AGENT.replace("{answers}", f"[{', '.join(answers)}]"))
    cases = "".join(f"  - {{id: '{place}', question: q{place}, gold: SELECT 1}}\n" for place in range(len(answers)))
    return f"kind: sql\nsource: {{sqlite: {{script: s.sql}}}}\npredictor: agent.py:ask\n{settings}cases:\n{cases}"


def cases_of(*answers, settings=""):
    return evaluate(load(suite(*answers, settings=settings)))["cases"]


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ("dict(metadata={'row': Row()})", "the predictor 'agent': metadata['row'] cannot be read: RuntimeError: "),
        ("dict(metadata={'row': {'a': Row()}})", "the predictor 'agent': metadata['row'] cannot be read: RuntimeError"),
        ("dict(metadata=Lazy(a=1))", "the predictor raised RuntimeError: the session is closed (agent.py:"),
        (
            "dict(steps=[Step(kind='tool'), Step(kind='tool', output=Row())])",
            "the predictor 'agent': steps[1].output cannot be read: RuntimeError: the session is closed",
        ),
        (
            "dict(steps=[Step(kind='tool', metadata={'a': Row()})])",
            "the predictor 'agent': steps[0].metadata cannot be",
        ),
    ],
)
def test_a_value_that_raises_when_it_is_read_is_an_error_of_its_case_alone(answer, message):
    case, next_case = cases_of(answer, "{}")

    assert case["outcome"] == "error"
    assert case["message"].startswith(message)
    assert next_case["outcome"] == "passed"


@pytest.mark.feature("evaluate")
@pytest.mark.feature("recording")
def test_a_recording_goes_on_after_a_value_that_raises_when_it_is_read():
    answers = (
        "dict(metadata={'row': Row()})",
        "dict(steps=[Step(kind='tool', input=Row())])",
        "dict(seconds=10**400)",
        "{}",
    )
    Path("a.queryeval.yaml").write_text(suite(*answers))

    assert main(["evaluate", "a.queryeval.yaml", "--record", "recorded", "--report", "report.json"]) == 1
    outcomes = [case["outcome"] for case in read_report(Path("report.json"))["cases"]]
    assert outcomes == ["error", "error", "error", "passed"]


@pytest.mark.parametrize("seconds", ["-1", "math.nan", "math.inf", "'abc'", "True", "10**400", "1e10"])
def test_seconds_that_no_call_can_take_are_an_error(seconds):
    case, next_case = cases_of(f"dict(seconds={seconds})", "dict(seconds=2.5)")

    fault = "`seconds` is not a number from 0 to 1,000,000,000"
    assert case["message"].startswith(f"agent.py:ask returned a Prediction whose {fault}")
    assert next_case["prediction"]["seconds"] == 2.5


@pytest.mark.parametrize("seconds", ["0", "None"])
def test_seconds_that_are_not_stated_are_measured(seconds):
    (case,) = cases_of(f"dict(seconds={seconds})")

    assert 0 < case["prediction"]["seconds"] < 60


@pytest.mark.parametrize(("number", "value"), [("Decimal('0.5')", 0.5), ("Fraction(1, 4)", 0.25), ("3", 3)])
def test_a_number_of_any_type_stays_a_number_in_metadata(number, value):
    (case,) = cases_of(
        f"dict(metadata={{'cost': {number}}})", settings="metrics: [execution_accuracy, 'metadata[cost]']\n"
    )

    assert case["prediction"]["metadata"] == {"cost": value}
    assert case["scores"]["metadata[cost]"] == value


def test_a_number_of_numpy_stays_a_number_in_metadata():
    numpy = pytest.importorskip("numpy")

    metadata = bounded_metadata({"cost": numpy.float32(0.5), "tokens": numpy.int64(7)}, by="the predictor")

    assert json.dumps(metadata) == '{"cost": 0.5, "tokens": 7}'


def test_metadata_of_any_size_is_cut_like_steps_and_keeps_its_names_and_numbers():
    texts = {f"text {place}": "x" * 10_000_000 for place in range(4)}
    numbers = {f"n{place}": place for place in range(30_000)}
    nested = {"nested": {"calls": [{"id": 1}, {"id": 2}]}, "log": {"lines": ["x"] * 1_000_000}}

    metadata = bounded_metadata({**texts, **nested, "cost": 0.25}, by="a")

    assert [*metadata] == [*texts, *nested, "cost"]
    assert (metadata["nested"], metadata["cost"]) == (nested["nested"], 0.25)
    assert sum(map(len, (*(metadata[name] for name in texts), metadata["log"]))) < STEPS_CHARACTERS
    assert len(bounded_metadata(texts, by="a")["text 0"]) == STEPS_CHARACTERS // 4
    assert len(bounded_metadata({"a": "x" * 30_000}, by="a")["a"]) == CONTENT_CHARACTERS
    assert bounded_metadata(numbers, by="a") == numbers


def test_a_query_with_half_of_a_surrogate_pair_fails_in_plain_words():
    (case,) = cases_of(r"dict(content=QueryOrAnswer(query='SELECT \'\ud800\''))")

    assert case["outcome"] == "failed"
    assert "the query holds half of a surrogate pair, which is not a character" in case["message"]


@pytest.mark.parametrize("predicted", ["SELECT 1", 0, ["a"]])
def test_an_abstention_with_a_prediction_is_an_error(predicted):
    entry = {"id": "0", "predicted": predicted, "abstained": True}
    Path("answers.jsonl").write_text(json.dumps(entry))
    text = "kind: sql\nsource: {sqlite: {script: s.sql}}\npredictor: answers.jsonl\ncases:\n"

    (case,) = evaluate(load(f"{text}  - {{id: '0', question: q, gold: SELECT 1}}\n"))["cases"]

    assert "answers.jsonl:1: the prediction has `predicted` and `abstained`: true, which stands in" in case["message"]


def test_an_abstention_may_have_an_empty_prediction():
    entries = [{"id": "0", "predicted": "", "abstained": True}, {"id": "1", "predicted": None, "abstained": True}]
    Path("answers.jsonl").write_text("\n".join(map(json.dumps, entries)))
    text = "kind: sql\nsource: {sqlite: {script: s.sql}}\npredictor: answers.jsonl\ncases:\n"
    cases = "".join(f"  - {{id: '{place}', question: q, gold: SELECT 1}}\n" for place in range(2))

    assert [case["prediction"]["abstained"] for case in evaluate(load(text + cases))["cases"]] == [True, True]
