"""Metrics of texts, which need no database, and metrics of times, which bear no neighbours."""

from __future__ import annotations

import json

import pytest
from singers import FIRST_LINE, GOLD, INVALID, WRONG, case

SAME_TEXT = """
from pytest_queryeval import METRICS
from pytest_queryeval.core.metric import Score, metric

@metric(input="queries")
def same_text(gold, predicted, *, dialect, schema):
    shown = {"dialect": dialect, "tables": sorted(schema.tables), "notes": ["texts were compared"]}
    return Score(value=float(gold == predicted), details=shown)

METRICS.register("same_text", same_text)
"""
BY_TEXT = {"metrics": ["same_text"], "thresholds": {"same_text": 1}}
TABLES = [
    {"db_id": "music", "table_names_original": ["Singer"], "column_names_original": [[-1, "*"], [0, "Name"]]},
    {"db_id": "films", "table_names_original": ["Film"], "column_names_original": [[-1, "*"], [0, "Name"]]},
]


@pytest.fixture
def write_text_suite(write):
    """Write a suite of three cases without any source."""

    def write_suite(**settings):
        write("conftest.py", SAME_TEXT)
        lines = [f"{key}: {json.dumps(value)}" for key, value in {"kind": "sql", **BY_TEXT, **settings}.items()]
        cases = [case("same"), case("differs", INVALID), case("empty", "")]
        return write("a.queryeval.yaml", "\n".join((*lines, "cases:", *(f"  - {json.dumps(case)}" for case in cases))))

    return write_suite


def test_suite_without_a_source_is_scored_by_the_texts_of_its_queries(write_text_suite, run_and_parse):
    write_text_suite()

    run = run_and_parse()

    assert run.outcomes == {"same": "passed", "differs": "failed", "empty": "failed"}
    same, differs, empty = (run.case(id_) for id_ in ("same", "differs", "empty"))
    assert (same["scores"], same["source"], same["gold"]["columns"]) == ({"same_text": 1.0}, None, None)
    assert same["details"] == {"dialect": "", "tables": [], "notes": ["texts were compared"]}
    assert (differs["predicted"]["query"], differs["predicted"]["error"]) == (INVALID, None)
    assert differs["message"] == "same_text 0.000 (needs at least 1)"
    assert empty["predicted"]["error"]["kind"] == "empty"


def test_suite_without_a_source_may_name_a_schema_and_a_dialect(write, write_text_suite, run_and_parse):
    write("tables.json", json.dumps(TABLES))
    write_text_suite(
        db_schema={"file": "tables.json", "db_id": "films"}, options={"sql": {"dialect": "snowflake"}}, thresholds={}
    )

    run = run_and_parse()

    assert set(run.outcomes.values()) == {"passed"}
    assert run.case("differs")["details"]["tables"] == ["film"]
    assert run.case("differs")["details"]["dialect"] == "snowflake"


def test_threshold_of_answers_on_the_command_line_is_an_error_without_a_source(write_text_suite, run_and_parse):
    write_text_suite()

    run = run_and_parse("--queryeval-threshold=soft_f1=1")

    assert set(run.outcomes.values()) == {"error"}
    assert "there is no source to run the query on" in run.case("same")["message"]


def test_metric_of_texts_is_scored_where_the_prediction_does_not_run(suite, write, run_and_parse):
    write("conftest.py", SAME_TEXT)
    suite(case("invalid", INVALID), case("good"), metrics=["execution_accuracy", "same_text"])

    run = run_and_parse()

    assert run.outcomes == {"invalid": "failed", "good": "passed"}
    assert run.case("invalid")["scores"] == {"execution_accuracy": 0.0, "same_text": 0.0}
    assert run.case("invalid")["details"]["tables"] == run.case("good")["details"]["tables"] == ["singer"]
    assert run.case("good")["details"]["dialect"] == "sqlite"
    assert run.case("good")["scores"]["same_text"] == 1.0


def test_broken_schema_file_is_a_problem_of_collection_at_its_line(suite, write, run):
    write("tables.json", "[" * 100_000)
    suite(case("good"), db_schema="tables.json")

    result = run()

    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines(["*a.queryeval.yaml:3: no schema in tables.json: its JSON is nested too deeply"])


def test_metrics_of_times_are_measured(suite, run_and_parse):
    suite(case("good"), case("bad", WRONG, metrics=["r_ves", "ves"], thresholds={}))

    alone = run_and_parse()

    assert alone.outcomes == {"good": "passed", "bad": "passed"}
    assert alone.case("bad")["scores"] == {"r_ves": 0.0, "ves": 0.0}


def test_details_of_times_stand_in_the_report(suite, run_and_parse):
    suite(case("good", metrics=["r_ves"], options={"r_ves": {"iterations": 3}}, thresholds={"r_ves": 0.1}))

    run = run_and_parse()

    assert run.outcomes == {"good": "passed"}
    efficiency = run.case("good")["details"]["efficiency"]
    assert efficiency["iterations"] == 3
    assert len(efficiency["interval"]) == 2
    assert run.case("good")["scores"]["r_ves"] == 1.0 or efficiency["counted_as"] != 1.0


def test_iterations_that_cannot_be_are_a_problem_of_collection(suite, run):
    suite(case("good", metrics=["ves"], options={"ves": {"iterations": 0}}))

    result = run()

    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines(
        [f"*a.queryeval.yaml:{FIRST_LINE}: `iterations` must be a whole number from 1 to 1,000"]
    )


def test_gold_that_is_a_table_has_no_times(suite, run_and_parse):
    table = {"columns": ["name"], "rows": [["Ana"]]}
    suite(case("good", "SELECT 'Ana'", gold_table=table, metrics=["ves", "r_ves"]), case("query", GOLD))

    run = run_and_parse()

    assert run.case("good")["scores"] == {"execution_accuracy": 1.0, "ves": None, "r_ves": None}
