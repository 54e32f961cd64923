"""A setting without effect: refused on a case and in a suite of one kind, named by `queryeval check` elsewhere."""

from datetime import date

import pytest
from suites import enter, load, problems, write

from pytest_queryeval import evaluate, load_cases
from pytest_queryeval.core.metric import Score
from pytest_queryeval.core.table import ColumnTolerance, Literal, Policy, Table
from pytest_queryeval.metrics import METRICS, follows_compare
from pytest_queryeval.reports.story import Scores, case_story
from pytest_queryeval.suites.keys import COMPARE

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
            "no metric that is computed follows it",
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
    ("metric", "setting", "name"),
    [
        ("soft_f1", "row_order: strict", "row_order"),
        ("soft_f1", "columns: by_name", "columns"),
        ("soft_f1", "extra_columns: allow", "extra_columns"),
        ("soft_f1", "duplicates: ignore", "duplicates"),
        ("soft_f1", "duplicates: count", "duplicates"),
        ("row_matching_f1", "row_order: ignore", "row_order"),
        ("exact_match_f1", "columns: positional", "columns"),
        ("value_overlap", "numbers: {abs: 1}", "numbers: abs"),
        ("value_overlap", "numbers: {columns: {x: {abs: 1}}}", "numbers: columns: x"),
        ("same_row_count", "gold_columns: [0]", "gold_columns"),
        ("same_column_count", "gold_columns: [0]", ""),
        ("value_overlap", "gold_columns: [0]", ""),
        ("cell_f1", "duplicates: ignore", ""),
        ("row_matching_f1", "columns: by_name", ""),
        ("ves", "row_order: strict", ""),
        ("test_suite_accuracy", "row_order: strict", ""),
        pytest.param("challenged_accuracy", "extra_columns: allow", "", marks=pytest.mark.feature("challenge")),
        ("soft_f1, execution_accuracy", "row_order: strict", ""),
    ],
)
def test_each_key_of_compare_is_judged_by_itself(metric, setting, name):
    suite = f"metrics: [{metric}]\nthresholds: {{}}\n{SQL}"
    levels = f"compare: {{{setting}}}\n{suite}", suite.replace("id: a,", f"id: a, compare: {{{setting}}},")

    for written in levels:
        if name:
            (problem,) = problems(written)
            why = "because no metric that is computed follows it, as execution_accuracy does: remove it"
            assert problem.endswith(f"`compare: {name}` has no effect, {why}")
        else:
            assert load(written)


def answer(*rows, columns="abc"):
    return Table(columns=tuple(columns[: len(rows[0])]), rows=rows)


def literal(lexical, datatype):
    return answer((Literal(lexical, f"http://www.w3.org/2001/XMLSchema#{datatype}"),))


# Answers whose scores a value of a key changes, whatever the metric, if the metric follows the key.
ANSWERS = {
    "numbers": [
        ({"abs": 1.0}, answer((1.0,)), answer((1.5,))),
        ({"column_numbers": (ColumnTolerance("a", None, 1.0),)}, answer((1.0,)), answer((1.5,))),
    ],
    "text_numbers": [({"text_numbers": True}, answer((5,)), answer(("5",)))],
    "case": [({"case": "ignore"}, answer(("A",)), answer(("a",)))],
    "whitespace": [({"whitespace": "ignore"}, answer(("a  b",)), answer(("a b",)))],
    "dates": [({"dates": "strict"}, answer((date(2024, 1, 1),)), answer(("2024-01-01",)))],
    "rdf_terms": [({"rdf_terms": "strict"}, literal("1", "integer"), literal("1.0", "decimal"))],
    "duplicates": [
        ({"duplicates": "ignore"}, answer((1,), (1,), (2,)), answer((1,), (2,))),
        ({"duplicates": "ignore"}, answer((1,), (2,)), answer((1,), (1,), (2,))),
        ({"duplicates": "ignore"}, answer(*"aaabc"), answer("ab", "ab", "ac")),
        ({"duplicates": "ignore"}, answer(*"aab"), answer("ab", "ab", "xx", "yx")),
    ],
    "row_order": [({"row_order": "strict"}, answer((1,), (2,)), answer((2,), (1,)))],
    "columns": [
        ({"columns": "positional"}, answer((1, 2)), answer((2, 1))),
        ({"columns": "by_name"}, answer((1, 2)), answer((2, 1), columns="ab")),
    ],
    "extra_columns": [({"extra_columns": "allow"}, answer((1,)), answer((1, 9)))],
}


@pytest.mark.parametrize(
    "name",
    [name for name, metric in METRICS.available().items() if {"policy"} <= metric.injected <= {"policy", "timer"}],
)
def test_a_metric_follows_the_keys_of_compare_that_change_its_score(name):
    def score(gold, predicted, **policy):
        timer = {"timer": lambda number: [(1.0, 1.0)] * number} if "timer" in METRICS[name].injected else {}
        value = METRICS[name].function(gold, predicted, policy=Policy(**policy), **timer)
        return value.value if isinstance(value, Score) else value

    assert {*COMPARE} - {"nulls", "gold_columns"} == ANSWERS.keys()
    followed = {
        key
        for key, examples in ANSWERS.items()
        if any(score(gold, predicted, **policy) != score(gold, predicted) for policy, gold, predicted in examples)
    }
    assert followed == {key for key in ANSWERS if follows_compare(name, key)}


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

    assert problem.endswith(
        "has no effect next to `duplicates: ignore`, because a set has no order: remove one of the two"
    )


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
