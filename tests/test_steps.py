"""Steps of systems: how they are read, what is kept of them, what they count for, and where they are shown."""

import csv
import io
import json
import random
import string
from pathlib import Path

import pytest
from suites import load

from pytest_queryeval import PredictorError, Step, evaluate, register_secret
from pytest_queryeval.core import steps as steps_module
from pytest_queryeval.core.steps import STEPS_CHARACTERS, bounded_steps, count_steps, read_steps, step_json
from pytest_queryeval.core.table import Table
from pytest_queryeval.reports import REPORTS, render_json
from pytest_queryeval.reports.story import StorySteps, case_story

HEAD = "kind: sql\nsource: {sqlite: {script: s.sql}}\n"
QUERY = {"kind": "query", "name": "run_sql", "input": "SELECT 1", "output": "1", "seconds": 0.5}
FAILED = {"kind": "query", "name": "run_sql", "input": "SELECT a", "error": "no such column: a"}
SAID = {"kind": "message", "name": "assistant", "output": "One moment.", "metadata": {"tokens": 3}}
STEPS = [QUERY, FAILED, SAID]


@pytest.fixture(autouse=True)
def suite_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.sql").write_text("CREATE TABLE t (a);")


def answered(steps, *, settings="", **more):
    """The report of a case whose prediction, from a file, has these steps."""
    Path("answers.jsonl").write_text(json.dumps({"id": "a", "predicted": "SELECT 1", "steps": steps} | more))
    return evaluate(
        load(f"{HEAD}predictor: answers.jsonl\n{settings}cases:\n  - {{id: a, question: q, gold: SELECT 1}}\n")
    )


def kept(*steps, characters=STEPS_CHARACTERS):
    return [step_json(step) for step in bounded_steps([Step(**step) for step in steps], by="a", characters=characters)]


BAD_STEPS = {
    "steps": ({}, "has `steps` that are {}: write a list of objects"),
    "number": (5, "has `steps` that are 5: write a list"),
    "item": ([QUERY, "SELECT 1"], 'steps[1] is "SELECT 1", not an object'),
    "no kind": ([{"name": "a"}], "steps[0] has no `kind`: query, tool or message"),
    "kind": ([{"kind": "sql"}], "steps[0]: a step's `kind` is 'sql', not query, tool or message"),
    "kind that is a list": (
        [{"kind": ["query"]}],
        "steps[0]: a step's `kind` is ['query'], not query, tool or message",
    ),
    "null": ([{"kind": None}], "steps[0]: a step's `kind` is None, not"),
    "name": ([QUERY, {"kind": "tool", "name": 5}], "steps[1]: a step's `name` is int, not text"),
    "error": ([{"kind": "tool", "error": True}], "steps[0]: a step's `error` is bool, not text"),
    "seconds": ([{"kind": "tool", "seconds": -1}], "steps[0]: a step's `seconds` is -1, not a number from 0 to"),
    "metadata": ([{"kind": "tool", "metadata": [1]}], "steps[0]: a step's `metadata` is list, not a mapping"),
    "unknown": ([{"kind": "tool", "ouput": 1}], "steps[0] has the unknown member 'ouput': did you mean 'output'?"),
    "own": ([{"kind": "tool", "x1": 1}], "'x1': choose from error, input, kind, metadata, name, output, seconds"),
}


@pytest.mark.parametrize(("steps", "message"), BAD_STEPS.values(), ids=BAD_STEPS)
def test_a_bad_step_is_an_error_with_its_place(steps, message):
    with pytest.raises(PredictorError) as error:
        read_steps(steps, by="answers.jsonl:1: the prediction")

    assert str(error.value).startswith("answers.jsonl:1: the prediction")
    assert message in str(error.value)


def test_a_bad_step_in_a_file_is_an_error_with_its_line():
    (case,) = answered([QUERY, {"kind": "sql"}])["cases"]

    assert case["outcome"] == "error"
    assert "answers.jsonl:1: the prediction: steps[1]: a step's `kind` is 'sql'" in case["message"]


def test_a_function_gets_its_error_where_it_makes_a_bad_step():
    made = "[Step(kind='sql')]", "['SELECT 1']", "5", "[Step(kind='tool')] * 1_001"
    text = "from pytest_queryeval import Prediction, QueryOrAnswer, Step\ndef ask(case):\n"
    text += f"    steps = eval({[*made]!r}[int(case.id)])\n"
    text += "    return Prediction(QueryOrAnswer(query='SELECT 1'), predictor='p', steps=steps)\n"
    Path("agent.py").write_text(text)
    cases = "".join(f"  - {{id: '{place}', question: q, gold: SELECT 1}}\n" for place in range(len(made)))

    messages = [case["message"] for case in evaluate(load(f"{HEAD}predictor: agent.py:ask\ncases:\n{cases}"))["cases"]]

    assert (
        "agent.py:ask raised ValueError: a step's `kind` is 'sql', not query, tool or message (agent.py:3"
        in messages[0]
    )
    assert "returned a Prediction whose `steps` contain str, not Step: write `Step(kind=" in messages[1]
    assert "whose `steps` is int, not a list of Step" in messages[2]
    assert "took 1,001 steps, and a prediction may have 1,000" in messages[3]


def test_steps_are_in_the_report_as_they_were_stated():
    report = answered(STEPS, settings="metrics: [execution_accuracy, queries]\n", tokens=7)
    (case,) = report["cases"]

    assert case["prediction"]["steps"] == STEPS
    assert case["prediction"]["metadata"] == {"tokens": 7}
    assert {name: report["measures"][name]["sum"] for name in ("steps", "queries", "failed_queries")} == {
        "steps": 3,
        "queries": 2,
        "failed_queries": 1,
    }
    assert case["scores"] == {"execution_accuracy": 1.0, "queries": 2.0}


def test_no_steps_are_not_unknown_steps():
    metrics = "metrics: [execution_accuracy, steps]\n"
    none, unknown = answered([], settings=metrics), answered(None, settings=metrics)

    assert (none["cases"][0]["scores"]["steps"], none["measures"]["steps"]["sum"]) == (0.0, 0.0)
    assert unknown["cases"][0]["scores"]["steps"] is None
    assert "steps: the prediction does not report its steps" in unknown["cases"][0]["details"]["notes"]
    assert "steps" not in unknown["measures"]
    assert "steps" not in unknown["cases"][0]["prediction"]


def test_a_case_may_have_so_many_queries():
    (case,) = answered(STEPS, settings="thresholds: {execution_accuracy: 1.0, failed_queries: {max: 0}}\n")["cases"]

    assert case["outcome"] == "failed"
    assert [violation["metric"] for violation in case["violations"]] == ["failed_queries"]


def test_a_cell_of_a_table_holds_steps_as_json():
    file = io.StringIO()
    csv.writer(file).writerows(
        [["id", "predicted", "did"], ["a", "SELECT 1", json.dumps(STEPS)], ["b", "SELECT 1", ""]]
    )
    file_predictor = "predictor: {file: {path: answers.csv, columns: {steps: did}}}\n"
    cases = f"{HEAD}{file_predictor}cases:\n" + "".join(
        f"  - {{id: {id_}, question: q, gold: SELECT 1}}\n" for id_ in "ab"
    )
    Path("answers.csv").write_text(file.getvalue())

    first, second = evaluate(load(cases))["cases"]
    Path("answers.csv").write_text("id,predicted,did\na,SELECT 1,seven\nb,SELECT 1,\n")
    broken = evaluate(load(cases))["cases"][0]

    assert first["prediction"]["steps"] == STEPS
    assert "steps" not in second["prediction"]
    assert "answers.csv:2" in broken["message"]
    assert "is not JSON" in broken["message"]


TABLE = {"columns": ["a", "b"], "rows": [[1, None], [2, "x"]], "row_count": 2}


@pytest.mark.parametrize(
    "output",
    [
        Table(columns=("a", "b"), rows=((1, None), (2, "x"))),
        [{"a": 1, "b": None}, {"a": 2, "b": "x"}],
        {"columns": ["a", "b"], "rows": [[1, None], [2, "x"]]},
        TABLE,
    ],
    ids=["Table", "objects", "columns and rows", "as kept"],
)
def test_a_table_has_one_form(output):
    assert kept({"kind": "query", "output": output})[0]["output"] == TABLE


def test_what_is_no_table_stays_as_it_is():
    for output in (
        [],
        [{}],
        [{"a": 1}, {"b": 1}],
        [{"a": [1]}],
        {"columns": ["a"], "rows": [[1, 2]]},
        5,
        "5",
        {"a": {}},
    ):
        assert kept({"kind": "tool", "output": output}) == [{"kind": "tool", "name": "", "output": output}]


def test_a_table_keeps_its_first_rows_and_how_many_there_were():
    rows = [[number, "x" * 300] for number in range(500)]
    (step,) = kept({"kind": "query", "output": {"columns": ["n", "text"], "rows": rows}})

    assert step["output"]["row_count"] == 500
    assert [row[0] for row in step["output"]["rows"]] == [*range(steps_module.ROWS)]
    assert {len(row[1]) for row in step["output"]["rows"]} == {200}
    assert kept(step) == [step]


def contents_size(steps):
    contents = [step[name] for step in steps for name in steps_module.CONTENTS if name in step]
    return sum(len(item if isinstance(item, str) else json.dumps(item, ensure_ascii=False)) for item in contents)


def test_the_longest_contents_are_cut_first():
    long = {"kind": "tool", "input": "short", "output": "x" * 50_000, "error": "y" * 30_000}
    table = {"kind": "query", "output": {"columns": ["c"], "rows": [["z" * 200]] * 20}}
    nested = {"kind": "tool", "output": {"deep": ["w" * 9_000]}, "metadata": {"a": "m" * 4_000, "b": "n" * 4_000}}

    whole, cut = kept(long, table, nested), kept(long, table, nested, characters=6_000)

    assert [len(whole[0][name]) for name in ("input", "output", "error")] == [5, 20_000, 20_000]
    assert whole[2] == {**nested, "name": ""}
    assert contents_size(cut) <= 6_000
    assert cut[0]["input"] == "short"
    assert cut[0]["output"].endswith("x…")
    assert 0 < len(cut[1]["output"]["rows"]) < 20
    assert cut[1]["output"]["row_count"] == 20
    assert cut[2]["output"].startswith('{"deep": ["w')
    assert "metadata" not in cut[2]


def test_no_secret_is_left_of_a_step_across_any_cut():
    secret = "".join(random.Random(5).choices(string.ascii_letters, k=40))
    register_secret(secret)
    for at in range(19_950, 20_002, 10):
        report = answered([{**QUERY, "output": "x" * at + secret, "error": secret, "metadata": {"key": secret}}])
        text = render_json(report).decode()
        assert secret[:8] not in text
    assert "[redacted]" in text


def test_all_trials_share_the_room_of_one_prediction():
    Path("agent.py").write_text(
        "from pytest_queryeval import Prediction, QueryOrAnswer, Step\n"
        "def ask(case):\n"
        "    steps = [Step(kind='tool', output='x' * 15_000)] * 3\n"
        "    return Prediction(QueryOrAnswer(query='SELECT 1'), predictor='p', steps=steps)\n"
    )
    report = evaluate(
        load(f"{HEAD}predictor: agent.py:ask\ntrials: 4\ncases:\n  - {{id: a, question: q, gold: SELECT 1}}\n")
    )
    (case,) = report["cases"]

    assert contents_size(case["prediction"]["steps"]) == 45_000
    assert sum(contents_size(trial["prediction"]["steps"]) for trial in case["trials"]) <= STEPS_CHARACTERS
    assert report["measures"]["steps"]["sum"] == 12


def test_counts_of_steps():
    assert count_steps([]) == {"steps": 0, "queries": 0, "failed_queries": 0}
    failed_tool = {"kind": "tool", "name": "", "error": "no"}
    assert count_steps([*STEPS, failed_tool]) == {"steps": 4, "queries": 2, "failed_queries": 1}


def test_a_step_with_an_empty_error_did_not_fail():
    report = answered([{**QUERY, "error": ""}, FAILED])

    assert report["cases"][0]["prediction"]["steps"] == [QUERY, FAILED]
    assert report["measures"]["failed_queries"]["sum"] == 1


@pytest.mark.feature("page", "ci", "excel")
def test_a_step_of_hostile_text_is_neither_markup_nor_formula():
    hostile = {"kind": "tool", "name": "=1+1", "input": "<script>alert(1)</script>", "output": "`</code>`\x1b[31m"}
    report = answered([hostile])

    assert b"<script>alert" not in REPORTS["html"].render(report)
    assert "<script>alert" not in REPORTS["md"].render(report).decode()
    rows = list(csv.reader(io.StringIO(REPORTS["csv"].render(report).decode())))
    assert dict(zip(*rows, strict=True))["steps"] == "1"
    (part,) = (part for part in case_story(report["cases"][0]) if isinstance(part, StorySteps))
    assert part.summary == "1 step"


AGENT = """
import random, string
from pytest_queryeval import Prediction, QueryOrAnswer, Step

chance = random.Random(3)
TEXT = "".join(chance.choices(string.ascii_letters + string.digits, k=300_000))


def steps(size):
    for number in range(200):
        at = chance.randrange(len(TEXT) - size)
        yield Step(kind="query", name="run_sql", input=f"SELECT {number}", output=TEXT[at : at + size], seconds=0.1)


def ask(case):
    return Prediction(QueryOrAnswer(query="SELECT 1"), predictor="agent", steps=[*steps(100_000)])
"""


@pytest.mark.feature("page")
@pytest.mark.slow
def test_the_report_and_the_page_of_huge_steps_are_bounded():
    Path("agent.py").write_text(AGENT)
    cases = "".join(f"  - {{id: c{number}, question: q, gold: SELECT 1}}\n" for number in range(100))
    report = evaluate(load(f"{HEAD}predictor: agent.py:ask\ncases:\n{cases}"))

    assert report["measures"]["steps"]["sum"] == 20_000
    assert all(contents_size(case["prediction"]["steps"]) <= STEPS_CHARACTERS for case in report["cases"])
    assert len(render_json(report)) < 12_000_000
    assert len(REPORTS["html"].render(report)) < 3_000_000
