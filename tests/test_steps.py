"""Steps and metadata of systems: how they are read, what is kept of them, what they count for, where they are shown."""

import json
import random
import string
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from suites import load

from pytest_queryeval import evaluate, register_secret
from pytest_queryeval.cli import main
from pytest_queryeval.reports import render_json

STEPS_CHARACTERS, CONTENT_CHARACTERS, ROWS = 64_000, 20_000, 20  # as docs/how-to/agents.md says
HEAD = "kind: sql\nsource: {sqlite: {script: s.sql}}\n"
QUERY = {"kind": "query", "name": "run_sql", "input": "SELECT 1", "output": "1", "seconds": 0.5}
FAILED = {"kind": "query", "name": "run_sql", "input": "SELECT a", "error": "no such column: a"}
SAID = {"kind": "message", "name": "assistant", "output": "One moment.", "metadata": {"tokens": 3}}
STEPS = [QUERY, FAILED, SAID]
AGENT = """
import math
from decimal import Decimal
from fractions import Fraction

from pytest_queryeval import Prediction, QueryOrAnswer, Step
from pytest_queryeval.core.table import Table


class Row:
    def __repr__(self):
        raise RuntimeError("the session is closed")


class Lazy(dict):
    def items(self):
        raise RuntimeError("the session is closed")


def ask(case):
    return Prediction(**dict(answer="SELECT 1", predictor="agent") | eval(case.question))
"""


@pytest.fixture(autouse=True)
def suite_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.sql").write_text("CREATE TABLE t (a);")
    (tmp_path / "agent.py").write_text(AGENT)


def suite(*arguments, settings=""):
    """The text of a suite whose predictions have these arguments, in Python."""
    cases = [{"id": str(place), "question": text, "gold": "SELECT 1"} for place, text in enumerate(arguments)]
    return f"{HEAD}predictor: agent.py:ask\n{settings}cases: {json.dumps(cases)}\n"


def cases_of(*arguments, settings=""):
    return evaluate(load(suite(*arguments, settings=settings)))["cases"]


def answered(steps, *, settings="", **more):
    """The report of a case whose prediction, from a file, has these steps."""
    Path("answers.jsonl").write_text(json.dumps({"id": "a", "predicted": "SELECT 1", "steps": steps} | more))
    return evaluate(
        load(f"{HEAD}predictor: answers.jsonl\n{settings}cases:\n  - {{id: a, question: q, gold: SELECT 1}}\n")
    )


def kept(*steps):
    (case,) = answered(list(steps))["cases"]
    return case["prediction"]["steps"]


BAD_STEPS = {
    "steps": ({}, " has `steps` that are {}: write a list of objects"),
    "number": (5, " has `steps` that are 5: write a list"),
    "item": ([QUERY, "SELECT 1"], ': steps[1] is "SELECT 1", not an object'),
    "no kind": ([{"name": "a"}], ": steps[0] has no `kind`: query, tool or message"),
    "kind": ([{"kind": "sql"}], ": steps[0]: a step's `kind` is 'sql', not query, tool or message"),
    "kind that is a list": ([{"kind": ["query"]}], ": steps[0]: a step's `kind` is ['query'], not query, tool or"),
    "null": ([{"kind": None}], ": steps[0]: a step's `kind` is None, not"),
    "name": ([QUERY, {"kind": "tool", "name": 5}], ": steps[1]: a step's `name` is int, not text"),
    "error": ([{"kind": "tool", "error": True}], ": steps[0]: a step's `error` is bool, not text"),
    "seconds": ([{"kind": "tool", "seconds": -1}], ": steps[0]: a step's `seconds` is -1, not a number from 0 to"),
    "metadata": ([{"kind": "tool", "metadata": [1]}], ": steps[0]: a step's `metadata` is list, not a mapping"),
    "unknown": ([{"kind": "tool", "ouput": 1}], ": steps[0] has the unknown member 'ouput': did you mean 'output'?"),
    "own": (
        [{"kind": "tool", "x1": 1}],
        "member 'x1': choose from error, input, kind, metadata, name, output, seconds",
    ),
}


@pytest.mark.parametrize(("steps", "message"), BAD_STEPS.values(), ids=BAD_STEPS)
def test_a_bad_step_is_an_error_with_its_place(steps, message):
    (case,) = answered(steps)["cases"]

    assert case["outcome"] == "error"
    assert case["message"].startswith("answers.jsonl:1: the prediction" + message if message[0] in " :" else "answers")
    assert message in case["message"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("dict(steps=[Step(kind='sql')])", "agent.py:ask raised ValueError: a step's `kind` is 'sql', not query, tool"),
        (
            "dict(steps=['SELECT 1'])",
            "the predictor 'agent' returned a Prediction whose `steps` contain str, not Step: write `Step(",
        ),
        ("dict(steps=[Step(kind='tool')] * 1_001)", "the predictor 'agent' took 1,001 steps, and a prediction may"),
        ("dict(metadata={'row': Row()})", "the predictor 'agent': metadata['row'] cannot be read: RuntimeError: "),
        ("dict(metadata={'row': {'a': Row()}})", "the predictor 'agent': metadata['row'] cannot be read: RuntimeError"),
        ("dict(metadata=Lazy(a=1))", "the predictor raised RuntimeError: the session is closed (agent.py:"),
        (
            "dict(steps=[Step(kind='tool'), Step(kind='tool', output=Row())])",
            "the predictor 'agent': steps[1].output cannot be read: RuntimeError: the session is closed",
        ),
        ("dict(steps=[Step(kind='tool', metadata={'a': Row()})])", "the predictor 'agent': steps[0].metadata cannot"),
    ],
)
def test_what_a_function_states_wrongly_is_an_error_of_its_case_alone(arguments, message):
    case, next_case = cases_of(arguments, "{}")

    assert case["outcome"] == "error"
    assert case["message"].startswith(message), case["message"]
    assert next_case["outcome"] == "passed"


@pytest.mark.feature("evaluate", "recording")
def test_a_recording_goes_on_after_a_value_that_raises_when_it_is_read():
    raising = ("dict(metadata={'row': Row()})", "dict(steps=[Step(kind='tool', input=Row())])", "dict(seconds=10**400)")
    Path("a.queryeval.yaml").write_text(suite(*raising, "{}"))

    assert main(["evaluate", "a.queryeval.yaml", "--record", "recorded", "--report", "report.json"]) == 1
    outcomes = [case["outcome"] for case in json.loads(Path("report.json").read_bytes())["cases"]]
    assert outcomes == ["error", "error", "error", "passed"]


@pytest.mark.parametrize("seconds", ["0", "None"])
def test_seconds_that_are_not_stated_are_measured(seconds):
    (case,) = cases_of(f"dict(seconds={seconds})")

    assert 0 < case["prediction"]["seconds"] < 60


@pytest.mark.parametrize(
    ("number", "value"),
    [
        ("Decimal('0.5')", 0.5),
        ("Fraction(1, 4)", 0.25),
        ("3", 3),
        ("__import__('numpy').float32(0.5)", 0.5),
        ("__import__('numpy').int64(7)", 7),
    ],
)
def test_a_number_of_any_type_stays_a_number_in_metadata(number, value):
    if "numpy" in number:
        pytest.importorskip("numpy")

    metrics = "metrics: [execution_accuracy, 'metadata[cost]']\n"
    (case,) = cases_of(f"dict(metadata={{'cost': {number}}})", settings=metrics)

    assert case["prediction"]["metadata"] == {"cost": value}
    assert case["scores"]["metadata[cost]"] == value


def test_a_query_with_half_of_a_surrogate_pair_fails_in_plain_words():
    (case,) = cases_of(r"dict(answer='SELECT \'\ud800\'')")

    assert case["outcome"] == "failed"
    assert "the query contains half of a surrogate pair, which is not a character" in case["message"]


def test_steps_are_in_the_report_as_they_were_stated_and_count_for_metrics():
    metrics = (
        "metrics: [execution_accuracy, queries]\nthresholds: {execution_accuracy: 1.0, failed_queries: {max: 0}}\n"
    )
    failed_tool, no_error = {"kind": "tool", "name": "", "error": "no"}, {**QUERY, "error": ""}
    report = answered([*STEPS, failed_tool, no_error], settings=metrics, tokens=7)
    (case,) = report["cases"]

    assert case["prediction"]["steps"] == [*STEPS, failed_tool, QUERY]
    assert case["prediction"]["metadata"] == {"tokens": 7}
    sums = {name: report["measures"][name]["sum"] for name in ("steps", "queries", "failed_queries")}
    assert sums == {"steps": 5, "queries": 3, "failed_queries": 1}
    assert case["scores"] == {"execution_accuracy": 1.0, "queries": 3.0, "failed_queries": 1.0}
    assert (case["outcome"], [missed["metric"] for missed in case["violations"]]) == ("failed", ["failed_queries"])


def test_no_steps_are_not_unknown_steps():
    metrics = "metrics: [execution_accuracy, steps]\n"
    none, unknown = answered([], settings=metrics), answered(None, settings=metrics)

    assert (none["cases"][0]["scores"]["steps"], none["measures"]["steps"]["sum"]) == (0.0, 0.0)
    assert unknown["cases"][0]["scores"]["steps"] is None
    assert "steps: the prediction does not report its steps" in unknown["cases"][0]["details"]["notes"]
    assert "steps" not in unknown["measures"]


TABLE = {"columns": ["a", "b"], "rows": [[1, None], [2, "x"]], "row_count": 2}


@pytest.mark.parametrize(
    "output",
    [
        [{"a": 1, "b": None}, {"a": 2, "b": "x"}],
        {"columns": ["a", "b"], "rows": [[1, None], [2, "x"]]},
        TABLE,
        "Table(columns=('a', 'b'), rows=((1, None), (2, 'x')))",
    ],
    ids=["objects", "columns and rows", "as kept", "Table"],
)
def test_a_table_has_one_form(output):
    code = output if isinstance(output, str) else repr(output)

    (case,) = cases_of(f"dict(steps=[Step(kind='query', output={code})])")

    assert case["prediction"]["steps"][0]["output"] == TABLE


def test_what_is_no_table_stays_as_it_is():
    outputs = [[], [{}], [{"a": 1}, {"b": 1}], [{"a": [1]}], {"columns": ["a"], "rows": [[1, 2]]}, 5, "5", {"a": {}}]
    steps = [{"kind": "tool", "name": "", "output": output} for output in outputs]

    assert kept(*steps) == steps


def test_a_table_keeps_its_first_rows_and_how_many_there_were():
    rows = [[number, "x" * 300] for number in range(500)]
    (step,) = kept({"kind": "query", "output": {"columns": ["n", "text"], "rows": rows}})

    assert step["output"]["row_count"] == 500
    assert [row[0] for row in step["output"]["rows"]] == [*range(ROWS)]
    assert {len(row[1]) for row in step["output"]["rows"]} == {200}
    assert kept(step) == [step]


def size(content):
    return len(content if isinstance(content, str) else json.dumps(content, ensure_ascii=False))


def sizes(steps):
    return [size(step[name]) for step in steps for name in ("input", "output", "error", "metadata") if name in step]


@given(
    st.lists(st.lists(st.sampled_from([0, 9, 3_000, 15_000, 30_000]), min_size=3, max_size=3), min_size=1, max_size=6)
)
def test_the_longest_contents_are_cut_first_and_only_as_far_as_needed(lengths):
    steps = [
        {"kind": "tool", "name": "", "input": "i" * a, "output": {"deep": ["o" * b]}, "error": "e" * c + "e"}
        for a, b, c in lengths
    ]

    actual = kept(*steps)

    whole, cut = sizes(steps), sizes(actual)
    assert len(cut) == len(whole)
    assert max(cut) <= CONTENT_CHARACTERS
    assert sum(cut) <= STEPS_CHARACTERS
    shortest_cut = min((now for now, was in zip(cut, whole, strict=True) if now < was), default=None)
    assert all(now == was or now >= shortest_cut - 1 for now, was in zip(cut, whole, strict=True))
    if sum(min(length, CONTENT_CHARACTERS) for length in whole) <= STEPS_CHARACTERS:
        assert cut == [min(length, CONTENT_CHARACTERS) for length in whole]


def test_of_nested_contents_a_table_keeps_rows_and_metadata_that_do_not_fit_are_left_out():
    wide = {"kind": "query", "output": {"columns": ["c"], "rows": [["z" * 200]] * 20}}
    nested = {"kind": "tool", "output": {"deep": ["w" * 9_000]}, "metadata": {"a": "m" * 4_000, "b": "n" * 4_000}}

    cut = kept(wide, *[nested] * 12)

    assert 0 < len(cut[0]["output"]["rows"]) < 20
    assert cut[0]["output"]["row_count"] == 20
    assert cut[1]["output"].startswith('{"deep": ["w')
    assert cut[1]["output"].endswith("…")
    assert "metadata" not in cut[1]


def test_metadata_of_any_size_is_cut_like_steps_and_keeps_its_names_and_numbers():
    texts = {f"text {place}": "x" * 1_000_000 for place in range(4)}
    nested = {"nested": {"calls": [{"id": 1}, {"id": 2}]}, "log": {"lines": ["x"] * 100_000}}
    numbers = {f"n{place}": place for place in range(30_000)}

    def in_report(metadata):
        return answered(None, **metadata)["cases"][0]["prediction"]["metadata"]

    metadata = in_report({**texts, **nested, "cost": 0.25})
    assert [*metadata] == [*texts, *nested, "cost"]
    assert (metadata["nested"], metadata["cost"]) == (nested["nested"], 0.25)
    assert sum(map(len, (*(metadata[name] for name in texts), metadata["log"]))) < STEPS_CHARACTERS
    assert len(in_report(texts)["text 0"]) == STEPS_CHARACTERS // 4
    assert len(in_report({"a": "x" * 30_000})["a"]) == CONTENT_CHARACTERS
    assert in_report(numbers) == numbers


def test_no_secret_is_left_of_a_step_across_any_cut():
    secret = "".join(random.Random(5).choices(string.ascii_letters, k=40))
    register_secret(secret)
    for at in range(19_950, 20_002, 10):
        report = answered([{**QUERY, "output": "x" * at + secret, "error": secret, "metadata": {"key": secret}}])
        text = render_json(report).decode()
        assert secret[:8] not in text
    assert "[redacted]" in text


def test_all_trials_share_the_room_of_one_prediction():
    report = evaluate(load(suite("dict(steps=[Step(kind='tool', output='x' * 15_000)] * 3)", settings="trials: 4\n")))
    (case,) = report["cases"]

    assert sum(sizes(case["prediction"]["steps"])) == 45_000
    assert sum(sum(sizes(trial["prediction"]["steps"])) for trial in case["trials"]) <= STEPS_CHARACTERS
    assert report["measures"]["steps"]["sum"] == 12
