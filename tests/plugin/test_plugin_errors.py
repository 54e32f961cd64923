"""What the report keeps of a case in error, and what a predictor cannot do by raising."""

from __future__ import annotations

import pytest
from servers import FaultServer
from singers import GOLD, INVALID, SCRIPT, WRONG, case, unpredicted

ASKED = f"""
import pathlib
import pytest

def predict(case):
    pathlib.Path("asked.txt").touch()
    if case.id == "bad":
        raise OSError("no model")
    return {WRONG!r}
"""


def test_a_failed_gold_leaves_the_prediction_in_the_report(suite, write, run_and_parse):
    write("predict.py", ASKED)
    suite(unpredicted("a", gold=INVALID), predictor="predict.py:predict")

    case = run_and_parse().case("a")

    assert case["outcome"] == "error"
    assert (case["gold"]["query"], case["gold"]["row_count"]) == (INVALID, None)
    assert case["predicted"]["query"] == WRONG
    assert case["prediction"]["source"] == "python:predict.py:predict"


def test_a_failed_predictor_leaves_the_gold_in_the_report(suite, write, run_and_parse):
    write("predict.py", ASKED)
    suite(unpredicted("bad"), predictor="predict.py:predict")

    case = run_and_parse().case("bad")

    assert case["outcome"] == "error"
    assert (case["gold"]["query"], case["gold"]["index"]) == (GOLD, 0)
    assert sorted(case["gold"]["sample"]) == [["DE", 1], ["FR", 2]]
    assert case["predicted"] is None


def test_where_both_fail_the_message_names_both(suite, write, run_and_parse):
    write("predict.py", ASKED)
    suite({"id": "bad", "question": "How many?", "gold_any": [GOLD, INVALID]}, predictor="predict.py:predict")

    case = run_and_parse().case("bad")

    failed = "gold_any[1] query failed (invalid): no such column: nope: choose from age, country, name"
    assert f"{failed}; and there is no prediction: " in case["message"]
    assert "predict.py:predict raised OSError: no model" in case["message"]
    assert (case["gold"]["query"], case["gold"]["index"]) == (INVALID, 1)


def test_a_failed_gold_is_named_with_its_own_place(write, run_and_parse):
    write("singers.sql", SCRIPT)
    write("wrong.sql", INVALID)
    write(
        "a.queryeval.yaml",
        f"""
        kind: sql
        source: {{sqlite: {{script: singers.sql}}}}
        cases:
          - id: one
            question: How old?
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
        """,
    )

    run = run_and_parse()
    messages = [run.case(id_)["message"] for id_ in ("one", "several", "file")]

    assert [message.partition(" ")[0] for message in messages] == ["gold", "gold_any[1]", "gold"]
    places = ["a.queryeval.yaml:8", "a.queryeval.yaml:13", "wrong.sql"]
    assert [message.rpartition(" ")[2] for message in messages] == [f"({place})" for place in places]


def test_a_missing_database_makes_no_calls_and_keeps_what_is_stated(suite, write, run_and_parse, pytester):
    write("predict.py", ASKED)
    suite(unpredicted("asked"), case("stated", WRONG), source="gone.db", predictor="predict.py:predict")

    run = run_and_parse()

    assert run.outcomes == {"asked": "error", "stated": "error"}
    assert not (pytester.path / "asked.txt").exists()
    assert run.case("stated")["predicted"]["query"] == WRONG
    assert [case["gold"]["query"] for case in run.report["cases"]] == [GOLD, GOLD]


def test_no_case_is_shown_the_prediction_of_another_one(suite, write, run_and_parse):
    write("predict.py", ASKED)
    broken = {"sqlite": {"script": "gone.sql"}}
    stated_case = case("stated", WRONG, gold_table={"columns": ["a"], "rows": [[1]]})
    suite(stated_case, unpredicted("asked"), source=broken, predictor="predict.py:predict")

    run = run_and_parse()

    assert run.case("stated")["predicted"]["query"] == WRONG
    assert run.case("asked")["predicted"] is None


@pytest.mark.feature("ci")
def test_both_sides_of_a_case_in_error_stand_in_every_format(suite, write, run, pytester):
    write("predict.py", ASKED)
    suite(unpredicted("a", gold=INVALID), unpredicted("bad"), predictor="predict.py:predict")

    result = run("--queryeval-report=r.md", "--queryeval-report=r.csv", "--queryeval-report=r.html")

    assert "INTERNALERROR" not in result.stdout.str()
    text = (pytester.path / "r.csv").read_text()
    assert text.count(GOLD) == 1
    assert text.count(INVALID) >= 1
    assert WRONG in text
    assert all((pytester.path / f"r.{suffix}").stat().st_size for suffix in ("md", "html"))


RAISES = """
import asyncio
import pytest

def predict(case):
    if case.id == "skips":
        pytest.skip("not today")
    if case.id == "expects":
        pytest.xfail("known")
    if case.id == "ends":
        raise GeneratorExit("over")
    if case.id == "exits":
        pytest.exit("enough")
    return {GOLD!r}

async def predict_async(case):
    await asyncio.sleep(0)
    return predict(case)
"""


@pytest.mark.parametrize(
    "predictor",
    [
        {"python": "predict.py:predict"},
        {"python": "predict.py:predict", "concurrency": 3},
        {"python": "predict.py:predict_async"},
        {"hook": {}},
    ],
    ids=["in turn", "in threads", "async", "hook"],
)
def test_a_predictor_can_neither_skip_a_case_nor_expect_it_to_fail(suite, write, run_and_parse, predictor):
    write("predict.py", RAISES.replace("{GOLD!r}", repr(GOLD)))
    write(
        "conftest.py", "from predict import predict\ndef pytest_queryeval_predict(case, config): return predict(case)\n"
    )
    raised = {"skips": "Skipped: not today", "expects": "XFailed: known", "ends": "GeneratorExit: over"}
    suite(*map(unpredicted, raised), unpredicted("good"), predictor={**predictor, "timeout": 20})

    run = run_and_parse("-p", "no:cacheprovider")

    assert run.outcomes == dict.fromkeys(raised, "error") | {"good": "passed"}
    for name, text in raised.items():
        assert f" raised {text} (" in run.case(name)["message"]
    assert run.result.ret == pytest.ExitCode.TESTS_FAILED


@pytest.mark.parametrize("settings", [{}, {"concurrency": 3}], ids=["in turn", "in threads"])
def test_a_predictor_may_end_the_run(suite, write, run_and_parse, settings):
    write("predict.py", RAISES.replace("{GOLD!r}", repr(GOLD)))
    suite(
        unpredicted("good"),
        unpredicted("exits"),
        unpredicted("later"),
        predictor={"python": "predict.py:predict", **settings},
    )

    run = run_and_parse()

    assert run.result.ret == pytest.ExitCode.INTERRUPTED
    assert "_pytest.outcomes.Exit: enough" in run.text
    assert run.outcomes == {"good": "passed"}


def test_a_predictors_module_that_skips_is_an_error_of_each_case(suite, write, run_and_parse):
    write("predict.py", "import pytest\npytest.skip('no GPU', allow_module_level=True)\ndef predict(case): ...\n")
    suite(unpredicted("a"), predictor="predict.py:predict")

    run = run_and_parse()

    assert run.outcomes == {"a": "error"}
    assert "predict.py:predict: cannot be imported: Skipped: no GPU" in run.case("a")["message"]


@pytest.mark.feature("sparql_endpoint")
def test_cases_after_one_that_occupied_the_server_end_at_once_and_name_it(write, run, monkeypatch):
    from pytest_queryeval.engines import bases

    monkeypatch.setattr(bases, "PATIENCE_SECONDS", 0.2)
    monkeypatch.setattr(bases, "FIRST_PAUSE_SECONDS", 0.05)
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


def test_the_text_of_a_long_error_is_shortened_everywhere(pytester, suite, write, run_and_parse):
    write("predict.py", 'def predict(case):\n    raise ValueError("begin" + "x" * 1_000_000 + "end")\n')
    suite(unpredicted("a"), predictor="predict.py:predict")

    run = run_and_parse()

    message = run.case("a")["message"]
    assert message.startswith("predict.py:predict raised ValueError: beginxxx")
    assert message.endswith("xxxend (predict.py:2) (a.queryeval.yaml:5)")
    assert max(len(message), len(run.text), len((pytester.path / "junit.xml").read_bytes())) < 30_000
