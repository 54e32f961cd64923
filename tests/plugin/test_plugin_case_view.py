"""What predictors of every sort see in a run: the question and its schema, no gold, and nothing of earlier trials."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from answering import Answering
from singers import GOLD, SCRIPT, WRONG, unpredicted

SCHEMA = "CREATE TABLE singer (name TEXT, country TEXT, age INTEGER);"
CHEATS = """
def cheat(case):
    return case.golds[0].query

async def cheat_async(case):
    return case.golds[0].query

def pytest_queryeval_predict(case, config):
    return case.gold
"""
READS = f"""
def predict(case):
    assert case.schema == {SCHEMA!r}, case.schema
    return {GOLD!r}

async def predict_async(case):
    return predict(case)

def pytest_queryeval_predict(case, config):
    return predict(case)
"""
PROGRAM = f"""
import json, sys
case = json.load(sys.stdin)
print({GOLD!r} if case.get("schema") == {SCHEMA!r} else json.dumps(sorted(case)))
"""
SEEN = ["conversation", "dialect", "difficulty", "evidence", "id", "kind", "metadata", "question", "source", "tags"]


@pytest.fixture
def service():
    """A service that answers rightly where it is sent the schema."""
    sent = []

    def answer(asked):
        sent.append(asked)
        return GOLD if asked.get("schema") == SCHEMA else WRONG

    with Answering(answer) as running:
        running.sent = sent
        yield running


@pytest.mark.parametrize("predictor", ["cheat.py:cheat", "cheat.py:cheat_async", "hook"])
def test_a_predictor_that_reads_gold_is_an_error_of_each_case(suite, write, run_and_parse, predictor):
    write("cheat.py", CHEATS)
    write("conftest.py", "from cheat import pytest_queryeval_predict\n")
    suite(unpredicted("a"), unpredicted("b"), predictor=predictor)

    run = run_and_parse("-p", "no:cacheprovider")

    assert run.outcomes == {"a": "error", "b": "error"}
    assert (
        "raised AttributeError: predictors do not see gold: answer from `case.question` (cheat.py:"
        in run.case("a")["message"]
    )


@pytest.mark.feature("command_predictor")
@pytest.mark.parametrize(
    "predictor",
    [
        "reads.py:predict",
        {"python": "reads.py:predict", "concurrency": 4},
        "reads.py:predict_async",
        "hook",
        {"command": [sys.executable, "program.py"], "send_schema": True},
        {"command": {"run": [sys.executable, "program.py"], "send_schema": True}},
    ],
    ids=["function", "threads", "async", "hook", "program", "program, within"],
)
def test_predictors_of_every_sort_see_the_schema_of_the_source(suite, write, run_and_parse, predictor):
    write("reads.py", READS)
    write("program.py", PROGRAM)
    write("conftest.py", "from reads import pytest_queryeval_predict\n")
    suite(*map(unpredicted, "abc"), predictor=predictor)

    run = run_and_parse("-p", "no:cacheprovider")

    assert run.outcomes == dict.fromkeys("abc", "passed")


@pytest.mark.feature("http_predictor")
@pytest.mark.parametrize(
    ("settings", "outcome"),
    [
        ({}, "failed"),
        ({"send_schema": True}, "passed"),
        ({"body": {"id": "{id}", "schema": "{schema}"}}, "passed"),
        ({"body": {"id": "{id}", "question": "{question}"}}, "failed"),
    ],
)
def test_a_service_is_sent_the_schema_only_where_it_asks_for_it(suite, run_and_parse, service, settings, outcome):
    suite(unpredicted("a"), predictor={"http": {"url": service.url, **settings}})

    assert run_and_parse().outcomes == {"a": outcome}
    assert ("schema" in service.sent[0]) == (outcome == "passed")
    assert "country" not in json.dumps(service.sent[0]) or outcome == "passed"


@pytest.mark.feature("command_predictor")
def test_a_program_is_not_sent_the_schema_unless_it_asks_for_it(suite, write, run_and_parse):
    write("program.py", PROGRAM)
    suite(unpredicted("a"), predictor={"command": [sys.executable, "program.py"]})

    assert json.loads(run_and_parse().case("a")["predicted"]["query"]) == [*SEEN, "trial"]


@pytest.mark.parametrize("predictor", [{"python": "reads.py:predict"}, {"file": "p.jsonl"}, {"hook": {}}])
def test_sending_the_schema_is_for_programs_and_services(suite, write, run, predictor):
    write("reads.py", READS)
    write("p.jsonl", "")
    suite(unpredicted("a"), predictor={**predictor, "send_schema": True})

    said = "'send_schema' is for programs and services: others read `case.schema`"
    run().stdout.fnmatch_lines([f"a.queryeval.yaml:3: {said}"])


@pytest.mark.feature("http_engine")
def test_a_function_that_reads_no_schema_lists_no_source(suite, write, run_and_parse):
    write("predict.py", f"def predict(case):\n    return {GOLD!r} if case.id == 'a' else str(case.schema)\n")
    live = {"http": {"url": "http://127.0.0.1:9/", "body": {"q": "{query}"}, "rows": "$.rows"}}
    table = {"question": "Which?", "gold_table": {"columns": ["a"], "rows": [[1]]}}
    suite({"id": "a", **table}, {"id": "b", **table}, source=live, predictor="predict.py:predict")

    run = run_and_parse()

    assert run.case("a")["predicted"]["query"] == GOLD
    assert run.case("b")["predicted"] is None
    assert "source 'http://127.0.0.1:9/': " in run.case("b")["message"]
    assert "predict.py" not in run.case("b")["message"]


SLOW = """
import time
from pytest_queryeval.engines import ENGINES, EngineType
from pytest_queryeval.engines.sqlite import SQLITE

listed = []

class Slow:
    def __init__(self, engine):
        self.execute, self.close, self._ddl = engine.execute, engine.close, engine.ddl

    def ddl(self, *, timeout):
        listed.append(timeout)
        time.sleep(1.5)
        return self._ddl(timeout=timeout)

ENGINES.register("slow", EngineType(opener=lambda source, hosts: Slow(SQLITE.opener(source, hosts)), kind="sql"))

def pytest_sessionfinish():
    print("listed", len(listed), "times")

def pytest_queryeval_predict(case, config):
    from reads import predict
    return predict(case)
"""


@pytest.mark.feature("command_predictor")
@pytest.mark.parametrize(
    "predictor",
    [
        {"python": "reads.py:predict"},
        {"python": "reads.py:predict", "concurrency": 4},
        {"python": "reads.py:predict_async"},
        {"hook": {}},
        {"command": [sys.executable, "program.py"], "send_schema": True},
    ],
    ids=["function", "threads", "async", "hook", "program"],
)
def test_listing_counts_for_no_time_limit_and_is_done_once(suite, write, run_and_parse, predictor):
    write("conftest.py", SLOW)
    write("reads.py", READS)
    write("program.py", PROGRAM)
    limit = 1.0 if "command" not in predictor else 20.0  # programs start under load, too
    source = {"slow": {"script": "singers.sql"}}
    suite(*map(unpredicted, "abcd"), source=source, timeout=5, predictor={**predictor, "timeout": limit})

    run = run_and_parse("-p", "no:cacheprovider", "-s")

    assert run.outcomes == dict.fromkeys("abcd", "passed")
    run.result.stdout.fnmatch_lines(["*listed 1 times*"])


REMEMBERS = f"""
def predict(case):
    seen = case.metadata.setdefault("seen", [])
    seen.append(case.id)
    case.metadata["hints"].append("again")
    return {GOLD!r} if seen == [case.id] and case.metadata["hints"] == ["x", "again"] else {WRONG!r}
"""


@pytest.mark.parametrize("settings", [{}, {"concurrency": 3}], ids=["in turn", "in threads"])
def test_a_trial_sees_nothing_of_earlier_ones(suite, write, run_and_parse, settings):
    write("predict.py", REMEMBERS)
    suite(
        unpredicted("a", metadata={"hints": ["x"]}),
        predictor={"python": "predict.py:predict", **settings},
        trials=3,
        trials_rule="all",
    )

    assert run_and_parse().outcomes == {"a": "passed"}


POOLED = f"""
from concurrent.futures import ProcessPoolExecutor

def ask(case):
    return {GOLD!r} if case.schema == {SCHEMA!r} else case.schema

def predict(case):
    with ProcessPoolExecutor(1) as pool:
        return pool.submit(ask, case).result(60)
"""


def test_a_function_may_hand_what_it_sees_to_another_process(suite, write, run_and_parse):
    write("pooled/__init__.py", POOLED)
    write("conftest.py", "")
    suite(unpredicted("a"), predictor="pooled:predict")

    assert run_and_parse("-p", "no:cacheprovider").outcomes == {"a": "passed"}


@pytest.mark.feature("recording")
def test_what_is_sent_of_the_schema_is_a_part_of_what_is_recorded(suite, run_and_parse, service):
    suite(unpredicted("whole"), name="whole.queryeval.yaml", predictor={"http": service.url, "send_schema": True})
    suite(unpredicted("bare"), name="bare.queryeval.yaml", predictor={"http": service.url})
    run_and_parse("--queryeval-record=rec")
    service.sent.clear()
    assert run_and_parse("--queryeval-replay=rec").outcomes == {"bare": "failed", "whole": "passed"}
    assert service.sent == []

    Path("singers.sql").write_text(f"{SCRIPT}CREATE TABLE more (a);")
    again = run_and_parse("--queryeval-record=rec")

    assert [request["id"] for request in service.sent] == ["whole"]
    assert again.case("whole")["predicted"]["query"] == WRONG


@pytest.mark.feature("recording")
def test_a_recorded_function_that_reads_the_schema_is_asked_again_when_that_changes(suite, write, run_and_parse):
    write("predict.py", "def predict(case):\n    return f'SELECT {len(case.schema)}'\n")
    suite(unpredicted("a"), predictor="predict.py:predict", thresholds={})
    before = run_and_parse("--queryeval-record=rec")
    assert run_and_parse("--queryeval-replay=rec").outcomes == {"a": "passed"}

    Path("singers.sql").write_text(f"{SCRIPT}CREATE TABLE more (a);")
    after = run_and_parse("--queryeval-record=rec")

    queries = [run.case("a")["predicted"]["query"] for run in (before, after)]
    assert queries == [f"SELECT {len(SCHEMA)}", f"SELECT {len(SCHEMA) + len('CREATE TABLE more (a);') + 2}"]


@pytest.mark.feature("json")
def test_a_json_schema_is_what_predictors_of_json_cases_see(write, run_and_parse):
    write("s.json", '{"type": "object"}')
    write("predict.py", "def predict(case):\n    return case.schema\n")
    settings = "kind: json\njson_schema: s.json\npredictor: predict.py:predict\n"
    write("a.queryeval.yaml", f'{settings}cases:\n  - {{id: a, question: Which?, gold: {{"type": "object"}}}}\n')

    assert run_and_parse().outcomes == {"a": "passed"}
