"""Metrics of texts, which need no source, their computed difficulty in a run, and metrics of times."""

from __future__ import annotations

import json

import pytest
from singers import INVALID, WRONG, case

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


def test_suite_without_a_source_is_scored_by_the_texts_of_its_queries_with_its_schema_and_dialect(write, run_and_parse):
    write("conftest.py", SAME_TEXT)
    write("tables.json", json.dumps(TABLES))
    with_schema = {"db_schema": {"file": "tables.json", "db_id": "films"}, "options": {"sql": {"dialect": "snowflake"}}}
    cases = [case("same"), case("differs", INVALID), case("empty", "")]
    for name, settings in (("bare", {}), ("films", with_schema)):
        suite = {"kind": "sql", **BY_TEXT, **settings}
        suite["cases"] = [{**entry, "id": f"{name}-{entry['id']}"} for entry in cases]
        write(f"{name}.queryeval.yaml", json.dumps(suite))

    run, with_answers = run_and_parse(), run_and_parse("--queryeval-threshold=soft_f1=1")

    for name in ("bare", "films"):
        same, differs, empty = (run.case(f"{name}-{id_}") for id_ in ("same", "differs", "empty"))
        assert [it["outcome"] for it in (same, differs, empty)] == ["passed", "failed", "failed"]
        assert (same["scores"], same["source"], same["gold"]["columns"]) == ({"same_text": 1.0}, None, None)
        assert (differs["predicted"]["query"], differs["predicted"]["error"]) == (INVALID, None)
        assert differs["message"] == "same_text 0.000 (needs at least 1)"
        assert empty["predicted"]["error"]["kind"] == "empty"
    assert run.case("bare-same")["details"] == {"dialect": "", "tables": [], "notes": ["texts were compared"]}
    assert run.case("films-same")["details"]["tables"] == ["film"]
    assert run.case("films-same")["details"]["dialect"] == "snowflake"
    assert set(with_answers.outcomes.values()) == {"error"}
    assert "there is no source to run the query on" in with_answers.case("bare-same")["message"]


def test_metric_of_texts_is_scored_where_the_prediction_does_not_run(suite, write, run_and_parse):
    write("conftest.py", SAME_TEXT)
    suite(case("invalid", INVALID), case("good"), metrics=["execution_accuracy", "same_text"])

    run = run_and_parse()

    assert run.outcomes == {"invalid": "failed", "good": "passed"}
    assert run.case("invalid")["scores"] == {"execution_accuracy": 0.0, "same_text": 0.0}
    assert run.case("invalid")["details"]["tables"] == run.case("good")["details"]["tables"] == ["singer"]
    assert run.case("good")["details"]["dialect"] == "sqlite"
    assert run.case("good")["scores"]["same_text"] == 1.0


def test_metrics_of_times_are_measured_and_their_details_reported_unless_gold_is_a_table(suite, run_and_parse):
    timed = {"metrics": ["ves", "r_ves"], "options": {"r_ves": {"iterations": 3}}, "thresholds": {}}
    table = {"columns": ["name"], "rows": [["Ana"]]}
    stated = case("table", "SELECT 'Ana'", gold_table=table, metrics=["execution_accuracy", "ves", "r_ves"])
    suite(case("good", **timed), case("bad", WRONG, **timed), stated)

    run = run_and_parse()

    assert set(run.outcomes.values()) == {"passed"}
    assert run.case("bad")["scores"] == {"ves": 0.0, "r_ves": 0.0}
    assert run.case("table")["scores"] == {"execution_accuracy": 1.0, "ves": None, "r_ves": None}
    efficiency = run.case("good")["details"]["efficiency"]
    assert (efficiency["iterations"], len(efficiency["interval"])) == (3, 2)
    assert run.case("good")["scores"]["r_ves"] == 1.0 or efficiency["counted_as"] != 1.0


EASY = "SELECT name FROM singer"
LEVELS = {
    "easy": EASY,
    "medium": "SELECT name, age FROM singer WHERE country = 'FR'",
    "hard": "SELECT name FROM singer WHERE age IN (SELECT age FROM singer)",
    "extra": "SELECT country FROM singer WHERE age > 3 GROUP BY country ORDER BY count(*) DESC LIMIT 1",
}
GATES = """
gates:
  - {metric: exact_set_match, where: {difficulty: easy}, min: 1}
  - {metric: exact_set_match, where: {difficulty: medium}, min: 0.5}
"""


@pytest.fixture(scope="module")
def levels(shared_project):
    """A suite with a case of each hardness, named by it, the medium one wrong, and one whose suite says another."""
    shared_project.write("queryeval.yaml", GATES)
    cases = [case(name, EASY if name == "medium" else query, gold=query) for name, query in LEVELS.items()]
    said = case("said", EASY, gold=EASY, difficulty="hard")
    shared_project.suite(*cases, said, metrics=["exact_set_match", "exact_set_match_spider"], thresholds={})
    return shared_project


@pytest.mark.parametrize(
    ("selection", "selected"),
    [
        (["-m", "hard"], {"hard", "said"}),
        (["-m", "sql and not medium and not hard"], {"easy", "extra"}),
        (["-k", "easy"], {"easy"}),
    ],
)
def test_the_difficulty_that_a_suite_says_or_else_the_computed_one_selects_cases(levels, selection, selected):
    lines = levels.run("--collect-only", "-q", "--strict-markers", *selection).outlines

    assert {line.partition("::")[2] for line in lines if "::" in line} == selected


def test_difficulties_are_groups_and_places_of_gates_and_the_table_of_spider_has_computed_ones(levels):
    run = levels.run_and_parse("-v")

    groups = run.report["groups"]["difficulty"]
    assert {name: group["totals"]["cases"] for name, group in groups.items()} == {
        "easy": 1,
        "medium": 1,
        "hard": 2,
        "extra": 1,
    }
    assert [(gate["n"], gate["ok"]) for gate in run.report["gates"]] == [(1, True), (1, False)]
    assert {level: (row["count"], row["exact_match"]) for level, row in run.report["spider_table"].items()} == {
        "easy": (2, 1.0),
        "medium": (1, 0.0),
        "hard": (1, 1.0),
        "extra": (1, 1.0),
        "all": (5, 0.8),
    }
    run.result.stdout.fnmatch_lines(["Spider's table*", "exact match *1.000 *0.000 *1.000 *1.000 *0.800"])


SUITE = "kind: json\nthresholds: {{{thresholds}}}\ncases: [{{id: near, gold: {{a: sea}}, predicted: {{a: seaside}}}}]\n"


@pytest.mark.feature("json")
def test_without_its_extra_a_metric_is_an_error_of_the_suite_or_the_option_that_names_it(write, run, monkeypatch):
    monkeypatch.setattr("pytest_queryeval.suites.variables._is_installed", lambda name: name != "sentence-transformers")
    lacking = "*semantic_similarity* needs sentence-transformers: pip install 'pytest-queryeval?semantic?'*"
    write("s.queryeval.yaml", SUITE.format(thresholds="semantic_similarity: 0.5"))

    by_suite = run()
    write("s.queryeval.yaml", SUITE.format(thresholds=""))
    by_option = run("--queryeval-threshold=semantic_similarity=0.5")

    assert (by_suite.ret, by_option.ret) == (pytest.ExitCode.INTERRUPTED, pytest.ExitCode.USAGE_ERROR)
    by_suite.stdout.fnmatch_lines([lacking])
    by_option.stderr.fnmatch_lines([lacking])
