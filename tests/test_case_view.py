"""What predictors see of a case: all that belongs to the question, and nothing that tells the answer.

What each sort of predictor sees in a run is in test_predictor_contract.py.
"""

import copy
import json
import pickle
import sys
import time
from dataclasses import FrozenInstanceError, asdict, fields, replace

import pytest
from predictor_sorts import report_of, write_suite
from samples import answer, fake_source, make_case, query

from pytest_queryeval import CaseView
from pytest_queryeval.core.model import Case, Message
from pytest_queryeval.engines import ENGINES, EngineType
from pytest_queryeval.predictors import view_of

SECRET = "SELECT the_gold"
SEEN = {
    "id": "a",
    "question": "How many?",
    "evidence": "Count.",
    "conversation": (Message(role="user", content="How many?"),),
    "kind": "sql",
    "dialect": "duckdb",
    "tags": ("x",),
    "difficulty": "hard",
    "metadata": {"db_id": "music", "hints": ["y"]},
}


def whole_case(**changes):
    defaults = {"golds": (query(SECRET), answer((SECRET,))), "predicted": query(SECRET), "source": fake_source()}
    return make_case(**(SEEN | defaults | changes))


def test_a_view_has_what_belongs_to_the_question():
    view = view_of(whole_case(), lambda: "CREATE TABLE t (n)")

    assert {name: getattr(view, name) for name in SEEN} == SEEN
    assert (view.source, view.schema) == ("music", "CREATE TABLE t (n)")
    assert {field.name for field in fields(CaseView)} == {*SEEN, "source", "schema"}


@pytest.mark.parametrize(
    "name", sorted({field.name for field in fields(Case)} - {field.name for field in fields(CaseView)} - {"golds"})
)
def test_nothing_else_of_a_case_is_seen(name):
    said = rf"^predictors do not see gold or '{name}': they see id, question, .*, schema$"

    with pytest.raises(AttributeError, match=said):
        getattr(view_of(whole_case()), name)
    for gold in ("gold", "golds", "gold_any", "gold_table", "gold_file"):
        with pytest.raises(AttributeError, match=r"^predictors do not see gold: answer from `case\.question`$"):
            getattr(view_of(whole_case()), gold)


def test_no_attribute_leads_to_the_gold_and_none_can_be_written():
    view = view_of(whole_case(), lambda: "CREATE TABLE t (n)")

    with pytest.raises(FrozenInstanceError):
        view.question = "another"
    assert not hasattr(view, "__dict__")
    reachable = [getattr(view, name) for name in dir(view) if not name.startswith("__")]
    assert SECRET not in repr(reachable)
    assert not any(isinstance(value, Case) for value in reachable)
    assert SECRET.encode() not in pickle.dumps(view)
    assert SECRET not in repr(view)


def test_what_one_call_writes_into_metadata_is_not_seen_by_the_next():
    case = whole_case()

    view_of(case).metadata["hints"].append("from an earlier trial")

    assert view_of(case).metadata == SEEN["metadata"]


def test_the_schema_is_listed_when_it_is_first_read():
    calls = []
    view = view_of(whole_case(), lambda: calls.append("now") or "CREATE TABLE t (n)")

    assert repr(view).endswith("source='music')")
    assert view == view_of(whole_case())
    assert calls == []
    assert [view.schema, view.schema] == ["CREATE TABLE t (n)"] * 2
    assert calls == ["now"]


@pytest.mark.parametrize("copied", [lambda view: pickle.loads(pickle.dumps(view)), copy.copy, copy.deepcopy, replace])
def test_a_copy_in_another_process_has_the_schema_too(copied):
    view = view_of(whole_case(), lambda: "CREATE TABLE t (n)")

    assert copied(view) == view
    assert copied(view).schema == "CREATE TABLE t (n)"
    assert asdict(view)["schema"] == "CREATE TABLE t (n)"


GOLD = "SELECT 1"
READS = """
def predict(case):
    return "SELECT 1" if case.schema == SCHEMA else f"SELECT '{case.schema}'"

async def predict_async(case):
    return predict(case)

def write_schema(case):
    return case.schema if case.id == "b" else "SELECT 1"
"""
PROGRAM = """
import json, sys
case = json.load(sys.stdin)
print("SELECT 1" if case.get("schema") == SCHEMA else json.dumps(sorted(case)))
"""
SCHEMA = "CREATE TABLE product (id INTEGER);"


@pytest.fixture
def run(tmp_path, monkeypatch):
    """A function that evaluates cases with a predictor; returns the cases by id."""
    monkeypatch.syspath_prepend(tmp_path)  # for processes that functions start
    (tmp_path / "shop.sql").write_text(SCHEMA)
    (tmp_path / "reads_schema.py").write_text(f"SCHEMA = {SCHEMA!r}\n{READS}")
    (tmp_path / "program.py").write_text(f"SCHEMA = {SCHEMA!r}\n{PROGRAM}")

    def evaluated(predictor, *options, ids="a", gold=None, **settings):
        cases = [{"id": id_, "question": "Which?", **(gold or {"gold": GOLD})} for id_ in ids]
        write_suite(tmp_path, predictor, cases, **settings)
        return {case["id"]: case for case in report_of(tmp_path, *options)["cases"]}

    yield evaluated
    sys.modules.pop("reads_schema", None)


def outcomes(cases):
    return {id_: case["outcome"] for id_, case in cases.items()}


class SlowEngine:
    """SQLite whose tables take long to list."""

    listed = 0

    def __init__(self, source, hosts):
        engine = ENGINES["sqlite"].opener(source, hosts)
        self.execute, self.close, self._ddl = engine.execute, engine.close, engine.ddl

    def ddl(self, *, timeout):
        SlowEngine.listed += 1
        time.sleep(0.6)
        return self._ddl(timeout=timeout)


@pytest.mark.process
@pytest.mark.feature("command_predictor")
@pytest.mark.parametrize(
    "predictor",
    [
        {"python": "reads_schema.py:predict", "concurrency": 4},
        {"python": "reads_schema.py:predict_async"},
        {"command": [sys.executable, "program.py"], "send_schema": True},
    ],
    ids=["threads", "async", "program"],
)
def test_listing_counts_for_no_time_limit_and_is_done_once(run, monkeypatch, predictor):
    monkeypatch.setattr(SlowEngine, "listed", 0)
    ENGINES.register("slow", EngineType(opener=SlowEngine, kind="sql"))
    limit = 0.5 if "command" not in predictor else 20.0  # programs start under load, too

    cases = run({**predictor, "timeout": limit}, ids="abcd", source={"slow": {"script": "shop.sql"}}, timeout=5)

    assert outcomes(cases) == dict.fromkeys("abcd", "passed")
    assert SlowEngine.listed == 1


@pytest.mark.process
@pytest.mark.feature("command_predictor")
def test_a_program_is_not_sent_the_schema_unless_it_asks_for_it(run):
    case = run({"command": [sys.executable, "program.py"]})["a"]

    assert json.loads(case["predicted"]["query"]) == sorted({*SEEN, "source", "trial"})


@pytest.mark.process
@pytest.mark.feature("http_engine")
def test_a_function_that_reads_no_schema_lists_no_source(run):
    live = {"http": {"url": "http://127.0.0.1:9/", "body": {"q": "{query}"}, "rows": "$.rows"}}

    table = {"gold_table": {"columns": ["a"], "rows": [[1]]}}
    cases = run("reads_schema.py:write_schema", ids="ab", gold=table, source=live)

    assert cases["a"]["predicted"]["query"] == GOLD
    assert cases["b"]["predicted"] is None
    assert "source 'http://127.0.0.1:9/': " in cases["b"]["message"]
    assert "reads_schema.py" not in cases["b"]["message"]


@pytest.mark.process
@pytest.mark.feature("evaluate", "recording")
def test_a_recorded_function_that_reads_the_schema_is_asked_again_when_that_changes(run, tmp_path):
    record, replay = f"--record={tmp_path / 'rec'}", f"--replay={tmp_path / 'rec'}"
    assert outcomes(run("reads_schema.py:predict", record)) == {"a": "passed"}
    assert outcomes(run("reads_schema.py:predict", replay)) == {"a": "passed"}

    (tmp_path / "shop.sql").write_text(f"{SCHEMA}CREATE TABLE more (a);")

    assert "CREATE TABLE more (a);" in run("reads_schema.py:predict", record)["a"]["predicted"]["query"]


@pytest.mark.feature("json")
def test_a_json_schema_is_what_predictors_of_json_cases_see(run, tmp_path):
    (tmp_path / "s.json").write_text('{"type": "object"}')

    of_json = {"kind": "json", "source": None, "json_schema": "s.json", "gold": {"gold": {"type": "object"}}}

    assert outcomes(run("reads_schema.py:write_schema", ids="b", **of_json)) == {"b": "passed"}
