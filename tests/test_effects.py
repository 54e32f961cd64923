"""A setting without effect: refused on a case and in a suite of one kind, named by `queryeval check` elsewhere."""

import pytest
from suites import enter, load, problems, write

from pytest_queryeval import evaluate, load_cases
from pytest_queryeval.reports.story import Scores, case_story

JSON = "kind: json\ncases: [{id: a, gold: {x: 1}, predicted: {x: 2}}]\n"
SQL = "kind: sql\nsource: a.db\ncases: [{id: a, gold: x, predicted: y}]\n"
MIXED = (
    "source: a.db\ncases:\n  - {id: a, kind: sql, gold: x, predicted: y}\n"
    "  - {id: b, kind: json, gold: {x: 1}, predicted: {x: 2}}\n"
)


@pytest.fixture(autouse=True)
def working_folder(tmp_path, monkeypatch):
    enter(tmp_path, monkeypatch)
    write("{}", "s.json")
    write("[]", "tables.json")


OF_JSON, OF_SQL = "cases of kind json do not use it", "cases of kind sql do not use it"


@pytest.mark.feature("json")
@pytest.mark.parametrize(
    ("setting", "suite", "name", "why"),
    [
        ("compare: {case: ignore}", JSON, "compare: case", OF_JSON),
        ("compare: {numbers: {abs: 1}}", JSON, "compare: numbers: abs", OF_JSON),
        ("compare: {rdf_terms: strict}", SQL, "compare: rdf_terms", OF_SQL),
        ("source: b.db", JSON, "source", OF_JSON),
        ("max_rows: 5", JSON, "max_rows", OF_JSON),
        ("db_schema: tables.json", JSON, "db_schema", OF_JSON),
        ("json_schema: s.json", SQL, "json_schema", OF_SQL),
        ("options: {json: {depth: all}}", SQL, "options: json: depth", OF_SQL),
        (
            "options: {json: {value_text: json}}",
            JSON,
            "options: json: value_text",
            "no metric that is computed has it, as",
        ),
        ("options: {r_ves: {iterations: 5}}", SQL, "options: r_ves: iterations", "the metric 'r_ves' is not computed"),
        (
            "metrics: [execution_accuracy_bird]\nthresholds: {}\ncompare: {case: ignore}",
            SQL,
            "compare: case",
            "no metric that is computed follows `compare`",
        ),
    ],
)
@pytest.mark.parametrize("level", ["suite", "case"])
def test_a_setting_that_a_kind_or_its_metrics_cannot_use_is_refused(setting, suite, name, why, level):
    written = (
        f"{setting}\n{suite}"
        if level == "suite"
        else suite.replace("id: a,", f"id: a, {setting}".replace("\n", ", ") + ",")
    )

    (problem,) = problems(written)

    assert f"`{name}` has no effect, because {why}" in problem
    assert problem.endswith(": remove it")


@pytest.mark.feature("json")
def test_what_some_cases_of_a_suite_use_and_what_a_folder_states_is_accepted_and_left_out_of_others():
    write(
        "compare: {case: ignore, rdf_terms: strict}\njson_schema: s.json\noptions: {r_ves: {iterations: 5}}\n",
        "queryeval.yaml",
    )

    sql, json = load(f"max_rows: 5\n{MIXED}")

    assert (sql.settings.policy.case, sql.settings.policy.rdf_terms, dict(sql.extra)) == ("ignore", "value", {})
    assert (json.settings.policy.case, json.settings.source, [*json.extra]) == ("keep", None, ["json_schema"])


@pytest.mark.parametrize(
    ("predictor", "problem"),
    [
        ("{file: p.csv, concurrency: 2}", "`concurrency` has no effect, because 'file' calls nothing: remove it"),
        ("{file: p.csv, timeout: 2}", "`timeout` has no effect, because 'file' calls nothing: remove it"),
        ("{inline: {}, retries: 2}", "`retries` has no effect, because 'inline' calls nothing: remove it"),
        (
            "{hook: {}, concurrency: 2}",
            "`concurrency` has no effect, because 'hook' answers one case after the other: ",
        ),
    ],
)
def test_settings_of_calls_that_are_not_made_are_refused(predictor, problem):
    (line,) = problems(f"predictor: {predictor}\n{SQL}")

    assert problem in line


def test_options_of_a_metric_that_only_a_gate_names_have_an_effect():
    write("gates: [{metric: r_ves, min: 0.5}]\n", "queryeval.yaml")

    (loaded,) = load(f"options: {{r_ves: {{iterations: 5}}}}\n{SQL}")

    assert loaded.settings.options == {"r_ves": {"iterations": 5}}


@pytest.mark.parametrize(
    ("folder", "suite", "keys"),
    [
        ("", "", ", compare: {row_order: strict, duplicates: ignore}"),
        ("", "compare: {row_order: strict, duplicates: ignore}\n", ""),
        ("compare: {row_order: strict}\n", "compare: {duplicates: ignore}\n", ""),
        ("compare: {row_order: strict}\n", "", ", compare: {duplicates: ignore}"),
    ],
)
def test_a_set_of_rows_has_no_order(folder, suite, keys):
    write(folder, "queryeval.yaml")
    cases = "".join(f"  - {{id: {id_}, gold: x, predicted: y{keys if id_ == 'a' else ''}}}\n" for id_ in "ab")

    (problem,) = problems(f"kind: sql\nsource: a.db\n{suite}cases:\n{cases}")

    assert problem.endswith("has no effect next to `duplicates: ignore`, because a set has no order: remove one")


def shown_comparison(suite):
    write("CREATE TABLE t (a TEXT);", "shop.sql")
    write("compare: {case: ignore}\n", "queryeval.yaml")
    write(suite)
    (case,) = evaluate(load_cases("s.queryeval.yaml"))["cases"]
    return [part.compare for part in case_story(case) if isinstance(part, Scores)]


@pytest.mark.feature("json")
@pytest.mark.parametrize(
    ("settings", "predicted", "compare"),
    [
        ("", "SELECT 2", "case: ignore"),
        ("metrics: [execution_accuracy_bird]\nthresholds: {execution_accuracy_bird: 1}\n", "SELECT 2", ""),
        ("", "SELECT nope", ""),  # there is nothing to compare
    ],
)
def test_a_failure_shows_the_settings_of_a_comparison_that_was_made(settings, predicted, compare):
    suite = f"kind: sql\nsource: {{sqlite: {{script: shop.sql}}}}\n{settings}cases:\n"

    assert shown_comparison(f"{suite}  - {{id: a, gold: SELECT 1, predicted: {predicted}}}\n") == [compare]
    assert shown_comparison(JSON) == [""]
