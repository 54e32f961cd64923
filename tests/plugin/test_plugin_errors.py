"""What the report keeps of a case in error, and what a predictor cannot do by raising."""

from __future__ import annotations

import pytest
from servers import FaultServer
from singers import GOLD, INVALID, WRONG, case, unpredicted

ASKED = f"""
import pathlib

def predict(case):
    pathlib.Path("asked.txt").touch()
    if "bad" in case.id:
        raise OSError("no model")
    if case.id == "long":
        raise ValueError("begin" + "x" * 1_000_000 + "end")
    return {WRONG!r}
"""
PLACES = f"""
kind: sql
source: {{sqlite: {{script: singers.sql}}}}
cases:
  - id: one
    predicted: SELECT 1
    gold: {INVALID}
  - id: several
    predicted: SELECT 1
    gold_any:
      - {GOLD}
      - {INVALID}
  - id: file
    predicted: SELECT 1
    gold_file: wrong.sql
"""


@pytest.fixture(scope="module")
def run_with_errors(shared_project):
    """A run in which golds, systems and sources fail."""
    write, suite = shared_project.write, shared_project.suite
    both = {"id": "bad-both", "question": "How many?", "gold_any": [GOLD, INVALID]}
    asked = [unpredicted("gold", gold=INVALID), unpredicted("bad"), both, unpredicted("long")]
    write("predict.py", ASKED)
    suite(*asked, predictor="predict.py:predict")
    write("places.queryeval.yaml", PLACES)
    write("wrong.sql", INVALID)
    write("unasked.py", ASKED.replace("asked.txt", "called.txt"))
    stated = case("stated", WRONG), case("stated-table", WRONG, gold_table={"columns": ["a"], "rows": [[1]]})
    gone = {"gone": "gone.db", "unbuilt": {"sqlite": {"script": "gone.sql"}}}
    for name, source in gone.items():
        entries = ({**entry, "id": f"{name}-{entry['id']}"} for entry in (unpredicted("asked"), *stated))
        suite(*entries, name=f"{name}.queryeval.yaml", source=source, predictor="unasked.py:predict")
    write("skips.py", "import pytest\npytest.skip('no GPU', allow_module_level=True)\ndef predict(case): ...\n")
    suite(unpredicted("skips"), name="skips.queryeval.yaml", predictor="skips.py:predict")
    return shared_project.run_and_parse(*(f"--queryeval-report=r.{suffix}" for suffix in ("md", "csv", "html")))


def test_all_are_errors_and_no_fault_of_ours(run_with_errors):
    assert {*run_with_errors.outcomes.values()} == {"error"}
    assert "INTERNALERROR" not in run_with_errors.text
    assert "Traceback" not in run_with_errors.text


def test_a_failed_gold_leaves_the_prediction_and_a_failed_predictor_the_gold(run_with_errors):
    gold, bad = run_with_errors.case("gold"), run_with_errors.case("bad")

    assert (gold["gold"]["query"], gold["gold"]["row_count"], gold["predicted"]["query"]) == (INVALID, None, WRONG)
    assert gold["prediction"]["source"] == "python:predict.py:predict"
    assert (bad["gold"]["query"], bad["gold"]["index"], bad["predicted"]) == (GOLD, 0, None)
    assert sorted(bad["gold"]["sample"]) == [["DE", 1], ["FR", 2]]


def test_where_both_fail_the_message_names_both(run_with_errors):
    both = run_with_errors.case("bad-both")

    failed = "gold_any[1] query failed (invalid): no such column: nope: choose from age, country, name"
    assert f"{failed}; and there is no prediction: " in both["message"]
    assert "predict.py:predict raised OSError: no model" in both["message"]
    assert (both["gold"]["query"], both["gold"]["index"]) == (INVALID, 1)


def test_a_failed_gold_is_named_with_its_own_place(run_with_errors):
    messages = [run_with_errors.case(id_)["message"] for id_ in ("one", "several", "file")]

    assert [message.partition(" ")[0] for message in messages] == ["gold", "gold_any[1]", "gold"]
    places = ["places.queryeval.yaml:7", "places.queryeval.yaml:12", "wrong.sql"]
    assert [message.rpartition(" ")[2] for message in messages] == [f"({place})" for place in places]


@pytest.mark.parametrize("source", ["gone", "unbuilt"])
def test_a_missing_database_makes_no_calls_and_each_case_keeps_what_it_states(run_with_errors, shared_project, source):
    asked, stated, table = (run_with_errors.case(f"{source}-{id_}") for id_ in ("asked", "stated", "stated-table"))

    assert not (shared_project.path / "called.txt").exists()
    assert (shared_project.path / "asked.txt").exists()
    assert asked["predicted"] is None
    assert stated["predicted"]["query"] == table["predicted"]["query"] == WRONG
    assert asked["gold"]["query"] == stated["gold"]["query"] == GOLD


@pytest.mark.feature("ci", "excel", "page")
def test_both_sides_of_a_case_in_error_stand_in_every_format(run_with_errors, shared_project):
    text = (shared_project.path / "r.csv").read_text()

    assert all(query in text for query in (GOLD, INVALID, WRONG))
    assert all((shared_project.path / f"r.{suffix}").stat().st_size for suffix in ("md", "html"))


def test_a_predictors_module_that_skips_is_an_error_of_each_case(run_with_errors):
    assert "skips.py:predict: cannot be imported: Skipped: no GPU" in run_with_errors.case("skips")["message"]


def test_the_text_of_a_long_error_is_shortened_everywhere(run_with_errors):
    message = run_with_errors.case("long")["message"]

    assert message.startswith("predict.py:predict raised ValueError: beginxxx")
    assert message.endswith("xxxend (predict.py:9) (a.queryeval.yaml:8)")
    assert max(len(message), len(run_with_errors.testcase("long").find("error").text)) < 10_000
    assert len(run_with_errors.text) < 30_000


RAISES = f"""
import asyncio
import pytest

def predict(case):
    if "skips" in case.id:
        pytest.skip("not today")
    if "expects" in case.id:
        pytest.xfail("known")
    if "ends" in case.id:
        raise GeneratorExit("over")
    if "exits" in case.id:
        pytest.exit("enough")
    return {GOLD!r}

async def predict_async(case):
    await asyncio.sleep(0)
    return predict(case)
"""
PREDICTORS = {
    "in-turn": {"python": "predict.py:predict"},
    "in-threads": {"python": "predict.py:predict", "concurrency": 3},
    "async": {"python": "predict.py:predict_async"},
    "hook": {"hook": {}},
}


def test_a_predictor_can_neither_skip_a_case_nor_expect_it_to_fail(suite, write, run_and_parse):
    write("predict.py", RAISES)
    hook = "def pytest_queryeval_predict(case, config): return predict(case)"
    write("conftest.py", f"from predict import predict\n\n\n{hook}\n")
    raised = {"skips": "Skipped: not today", "expects": "XFailed: known", "ends": "GeneratorExit: over"}
    for name, predictor in PREDICTORS.items():
        asked = [unpredicted(f"{name}-{id_}") for id_ in (*raised, "good")]
        suite(*asked, name=f"{name}.queryeval.yaml", predictor={**predictor, "timeout": 20})

    run = run_and_parse("-p", "no:cacheprovider")

    for name in PREDICTORS:
        assert run.outcomes[f"{name}-good"] == "passed"
        for id_, text in raised.items():
            assert run.outcomes[f"{name}-{id_}"] == "error"
            assert f" raised {text} (" in run.case(f"{name}-{id_}")["message"]
    assert run.result.ret == pytest.ExitCode.TESTS_FAILED


@pytest.mark.parametrize("settings", [{}, {"concurrency": 3}], ids=["in turn", "in threads"])
def test_a_predictor_may_end_the_run(suite, write, run_and_parse, settings):
    write("predict.py", RAISES)
    predictor = {"python": "predict.py:predict", **settings}
    suite(*map(unpredicted, ("good", "exits", "later")), predictor=predictor)

    run = run_and_parse()

    assert run.result.ret == pytest.ExitCode.INTERRUPTED
    assert "_pytest.outcomes.Exit: enough" in run.text
    assert run.outcomes == {"good": "passed"}


@pytest.mark.feature("sparql_endpoint")
def test_cases_after_one_that_occupied_the_server_end_at_once_and_name_it(write, run, impatient, monkeypatch):
    monkeypatch.setattr("pytest_queryeval.engines.bases.FIRST_PAUSE_SECONDS", 0.05)
    is_occupied = False

    def behave(exchange):
        nonlocal is_occupied
        is_occupied |= "endless" in exchange.request.query
        exchange.closing.wait(60 if is_occupied else 0)
        exchange.reply('{"head": {}, "boolean": true}')

    golds = {name: f"ASK {{ ?a <urn:{name}> ?b }}" for name in ("first", "endless", "later", "last")}
    cases = [f'- {{id: {name}, gold: "{gold}", predicted: "ASK {{}}"}}' for name, gold in golds.items()]
    with FaultServer(behave) as server:
        head = ["kind: sparql", f'source: {{endpoint: "{server.url}"}}', "timeout: 0.5", "cases:"]
        write("a.queryeval.yaml", "\n".join([*head, *cases]))
        result = run("-v")

    result.assert_outcomes(passed=1, errors=3)
    result.stdout.fnmatch_lines(["*the server has not answered since the query of case 'endless'*"])
