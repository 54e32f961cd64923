"""Steps of a system in runs of pytest: what the terminal shows of them, gates, recordings, programs and services."""

import json

import pytest
from answering import Answering
from singers import GOLD, unpredicted

STEPS = [
    {"kind": "query", "name": "run_sql", "input": "SELECT agee FROM singer", "error": "no such column: agee"},
    {"kind": "tool", "name": "look_up", "input": {"word": "age"}, "output": [{"column": "age"}, {"column": "name"}]},
    {"kind": "message", "name": "assistant", "output": "It is `age`.\nSo:", "seconds": 0.5, "metadata": {"tokens": 3}},
]
KEPT = [
    STEPS[0],
    {**STEPS[1], "output": {"columns": ["column"], "rows": [["age"], ["name"]], "row_count": 2}},
    STEPS[2],
]


@pytest.fixture
def service():
    with Answering(lambda request: {"sql": GOLD, "steps": STEPS}) as started:
        yield started


def http(service, **settings):
    return {"http": {"url": service.url, "answer": "$.predicted.sql", "steps": "$.predicted.steps"} | settings}


@pytest.mark.feature("http_predictor", "recording")
def test_the_steps_of_a_service_are_recorded_and_replayed(suite, run_and_parse, service):
    suite(unpredicted("a"), predictor=http(service), trials=2)

    recorded = run_and_parse("--queryeval-record=rec").report
    replayed = run_and_parse("--queryeval-replay=rec").report

    for report in (recorded, replayed):
        (case,) = report["cases"]
        assert case["prediction"]["steps"] == KEPT
        assert [trial["prediction"]["steps"] for trial in case["trials"]] == [KEPT, KEPT]
        assert report["measures"]["failed_queries"]["sum"] == 2
    assert len(service.asked) == 2


@pytest.mark.feature("http_predictor")
def test_a_path_leads_to_the_list_of_steps_or_to_each_of_them(suite, run_and_parse, service):
    suite(unpredicted("a"), predictor=http(service, steps="$.predicted.steps[*]"))
    (case,) = run_and_parse().report["cases"]
    assert case["prediction"]["steps"] == KEPT

    suite(unpredicted("a"), predictor=http(service, steps="$.predicted.steps[0]"))
    (case,) = run_and_parse().report["cases"]
    assert case["prediction"]["steps"] == KEPT[:1]

    suite(unpredicted("a"), predictor=http(service, steps="$.predicted.sql"))
    (case,) = run_and_parse().report["cases"]
    assert "has `steps` that are" in case["message"]


@pytest.mark.feature("command_predictor")
def test_a_program_prints_its_steps(suite, run_and_parse, pytester):
    reply = json.dumps({"predicted": GOLD, "steps": STEPS, "tokens": 5})
    pytester.path.joinpath("ask.py").write_text(f"print({reply!r})")
    suite(unpredicted("a"), predictor={"command": ["python3", "ask.py"]})

    (case,) = run_and_parse().report["cases"]

    assert case["prediction"]["steps"] == KEPT
    assert case["prediction"]["metadata"] == {"tokens": 5}


def written(pytester, *, size):
    steps = [{"kind": "query", "name": "run_sql", "input": "SELECT 1", "output": "x" * size} for _ in range(200)]
    lines = (json.dumps({"id": id_, "predicted": "SELECT 2", "steps": steps}) for id_ in ("a", "b"))
    pytester.path.joinpath("answers.jsonl").write_text("\n".join(lines))


def test_the_terminal_is_the_same_whatever_the_size_of_steps(suite, run, pytester):
    suite(unpredicted("a"), unpredicted("b"), predictor="answers.jsonl")
    written(pytester, size=1)
    small = run("-v").outlines
    written(pytester, size=100_000)
    large = run("-v").outlines

    def untimed(lines):
        return [line for line in lines if " in " not in line]

    assert untimed(large) == untimed(small)
    assert not any("xx" in line for line in large)
    assert any(line.startswith("queries") and "400" in line for line in large)


def test_gates_limit_steps(suite, run_and_parse, write, pytester):
    suite(unpredicted("a"), unpredicted("b"), predictor="answers.jsonl")
    written(pytester, size=1)
    write(
        "queryeval.yaml",
        "on_miss: xfail\ngates:\n  - {metric: queries, max: 200}\n  - {metric: steps, sum: {max: 399}}\n"
        "  - {metric: failed_queries, sum: {max: 0}}\n",
    )
    gates = run_and_parse().report["gates"]

    assert [(gate["metric"], gate["value"], gate["ok"]) for gate in gates] == [
        ("queries", 200.0, True),
        ("steps", 400.0, False),
        ("failed_queries", 0.0, True),
    ]
