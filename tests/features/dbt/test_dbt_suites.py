"""Suites on a dbt project: verdicts, predictions that are hostile, the schema for systems, recordings, migrations."""

import json
import shutil

import pytest
from bakery import EXAMPLE, MADE, edit_later
from suites import write

from pytest_queryeval import evaluate, load_cases
from pytest_queryeval.cli import main
from pytest_queryeval.evaluation import Session
from pytest_queryeval.languages import difficulty_of, features_of

pytestmark = pytest.mark.feature("duckdb", "challenge", "recording", "strength")

PLAIN = {
    "{{ ref('dim_shops') }}": "dim_shops",
    '{{- ref("fct_sales") -}}': "fct_sales",
    "{{ source('till', 'payments') }}": "raw_payments",
    "{{ ref('daily_revenue') }}": "main_reporting.daily_revenue",
    "{{ ref('shop_ranking', v=1) }}": "shop_ranking_v1",
}
QUERIES = [
    (
        "SELECT town, count(*) FROM {{ ref('dim_shops') }} GROUP BY town",
        "SELECT town, count(*) FROM dim_shops GROUP BY 1",
    ),
    (
        "SELECT town FROM {{ ref('dim_shops') }} ORDER BY opened_on",
        "SELECT town FROM dim_shops ORDER BY opened_on DESC",
    ),
    ('SELECT sum(pieces) FROM {{- ref("fct_sales") -}}', "SELECT sum(pieces) FROM fct_sales WHERE paid > 0"),
    ("SELECT count(*) FROM {{ source('till', 'payments') }}", "SELECT count(paid) FROM fct_sales"),
    ("SELECT max(revenue) FROM {{ ref('daily_revenue') }}", "SELECT max(revenue) FROM daily_revenu"),
    ("SELECT shop_id FROM {{ ref('shop_ranking', v=1) }}", "SELECT shop_id FROM shop_ranking_v1"),
    ("SELECT kind FROM {{ ref('dim_shops') }}, {{- ref(\"fct_sales\") -}}", "SELECT kind FROM dim_shops, fct_sales"),
]


def plain(query):
    for expression, name in PLAIN.items():
        query = query.replace(expression, f" {name} " if "{{-" in expression else name)
    return query


@pytest.fixture
def working_folder(built_example, tmp_path, monkeypatch):
    """A folder next to the project."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bakery").symlink_to(built_example / "bakery")
    return tmp_path


def suite(*queries, source="{dbt: bakery}", head=""):
    entries = [{"id": f"c{n}", "question": f"{n}?", "gold": g, "predicted": p} for n, (g, p) in enumerate(queries)]
    text = f"kind: sql\nsource: {source}\n{head}cases: {json.dumps(entries)}\n"
    return load_cases(write(text))


def scores(*queries, **settings):
    cases = suite(*queries, **settings)
    return [
        (case["outcome"], case["scores"], case["difficulty"], case["cause"] and case["cause"]["edits"])
        for case in evaluate(cases)["cases"]
    ]


def test_golds_with_ref_and_predictions_without_give_the_verdicts_of_plain_queries(working_folder):
    direct = scores(*((plain(gold), predicted) for gold, predicted in QUERIES), source="bakery/bakery.duckdb")

    assert scores(*QUERIES) == direct
    swapped = [(predicted, gold) for gold, predicted in QUERIES if "daily_revenu" not in predicted]
    assert [row[:2] for row in scores(*swapped)] == [
        row[:2] for row in scores(*((gold, plain(predicted)) for gold, predicted in swapped))
    ]
    assert scores(*((plain(gold), predicted) for gold, predicted in QUERIES)) == direct
    assert {outcome for outcome, *_ in direct} == {"passed", "failed"}


def test_variables_in_predictions_are_never_expanded(working_folder, monkeypatch):
    monkeypatch.setenv("DBT_TOKEN", "tr0ub4dor-and-3")
    monkeypatch.setenv("WAREHOUSE", "tr0ub4dor-and-4")
    attacks = [
        "SELECT '{{ env_var('DBT_TOKEN') }}'",
        'SELECT "{{ env_var("WAREHOUSE") }}" FROM dim_shops',
        "SELECT '{{ ref('dim_shops', v=env_var('WAREHOUSE')) }}'",
        "SELECT '{% raw %}{{ env_var('WAREHOUSE') }}{% endraw %}'",
        "SELECT ${WAREHOUSE}",
    ]

    report = evaluate(suite(*(("SELECT 1", attack) for attack in attacks)))

    kinds = [case["predicted"]["error"]["kind"] for case in report["cases"]]
    messages = [case["predicted"]["error"]["message"] for case in report["cases"]]
    assert kinds == ["invalid"] * len(attacks)
    assert messages[0] == (
        "{{ env_var('DBT_TOKEN') }} is not expanded: only {{ ref('model') }} and {{ source('source', 'table') }} are"
    )
    assert "tr0ub4dor" not in json.dumps(report)


def test_an_unknown_model_is_an_unknown_table(working_folder):
    wrong = ("SELECT count(*) FROM {{ ref('dim_shops') }}", "SELECT count(*) FROM {{ ref('dim_shop') }}")
    (case,) = evaluate(suite(wrong))["cases"]

    assert case["predicted"]["error"] == {
        "kind": "invalid",
        "message": "unknown relation {{ ref('dim_shop') }}: no model 'dim_shop': did you mean 'dim_shops'?",
    }
    assert case["cause"]["edits"][0]["label"] == "unknown-table"


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("ref('dim_shop')", "unknown relation {{ ref('dim_shop') }}: no model 'dim_shop': did you mean 'dim_shops'?"),
        (
            "ref('shop_ranking', v=3)",
            "unknown relation {{ ref('shop_ranking', v=3) }}: 'shop_ranking' has the versions 1, 2",
        ),
        (
            "ref('int_priced_sales')",
            (
                "{{ ref('int_priced_sales') }} is an ephemeral model, which the database does not have: query the "
                "models that it selects from, or materialize it as a view"
            ),
        ),
    ],
)
def test_a_gold_that_names_no_table_has_one_remedy(working_folder, expression, message):
    (case,) = evaluate(suite((f"SELECT * FROM {{{{ {expression} }}}}", "SELECT 1")))["cases"]

    assert case["message"] == f"gold query failed (invalid): {message} (s.queryeval.yaml:3)"


def test_a_manifest_that_is_older_than_a_model_is_the_error_of_its_source(bakery, monkeypatch):
    monkeypatch.chdir(bakery.parent)
    edit_later(bakery / "models/marts/fct_sales.sql", "select 1 as sale_id")

    cases = evaluate(suite(*QUERIES[:2]))["cases"]

    stale = (
        "bakery/target/manifest.json is older than models/marts/fct_sales.sql: run `dbt build --target dev` in bakery"
    )
    assert {case["message"] for case in cases} == {f"{stale} (s.queryeval.yaml:2)"}


def test_systems_are_given_the_tables_with_their_descriptions(working_folder):
    (case,) = suite(QUERIES[0])

    with Session() as session:
        schema = session.schema_text(case)

    assert "CREATE TABLE dim_shops(" in schema
    assert "COMMENT ON TABLE \"fct_sales\" IS 'One row for each sale, with its product and its payment.';" in schema
    assert "COMMENT ON COLUMN \"fct_sales\".kind IS 'bread, pastry or cake';" in schema


def test_a_recording_has_the_answers_of_the_queries_that_ran(working_folder, capsys):
    suite(*QUERIES)
    reports = []
    for option in ("--record", "--replay"):
        main(["evaluate", ".", option, "recorded", "--report", "report.json"])
        cases = json.loads((working_folder / "report.json").read_bytes())["cases"]
        reports.append([(case["gold"]["query"], case["predicted"]["sample"], case["scores"]) for case in cases])

    assert reports[0] == reports[1]
    assert reports[0][0][0] == 'SELECT town, count(*) FROM "dim_shops" GROUP BY town'


def test_difficulty_and_features_are_those_of_the_query_without_ref(working_folder):
    joined = suite(QUERIES[-1])[0]
    unknown = suite(("SELECT * FROM {{ ref('nothing') }} ORDER BY 1", "SELECT 1"))[0]

    assert (difficulty_of(joined), features_of(joined)) == ("easy", ("join",))
    assert difficulty_of(unknown) is None or features_of(unknown) == ()


def test_golds_are_measured_and_right_answers_challenged_on_small_databases(working_folder, capsys):
    suite(("SELECT max(shop_id) FROM {{ ref('dim_shops') }}", "SELECT count(*) FROM dim_shops"))

    main(["evaluate", ".", "--challenge", "--report", "report.json"])
    main(["strength", ".", "--json"])

    (case,) = json.loads((working_folder / "report.json").read_bytes())["cases"]
    assert case["challenge"]["verdict"] == "refuted"
    output = capsys.readouterr().out
    (measured,) = json.loads(output[output.index('{"cases"') :])["cases"]
    assert measured["killed"] > 0


def test_golds_of_a_project_are_translated_for_another_database(working_folder):
    (working_folder / "other.sql").write_text(
        "CREATE TABLE dim_shops (town TEXT); INSERT INTO dim_shops VALUES ('Lunz');"
    )
    text = """\
kind: sql
gold_source: {dbt: bakery}
source: {sqlite: {script: other.sql}}
cases:
  - id: a
    gold: SELECT DISTINCT town FROM {{ ref('dim_shops') }} WHERE town ILIKE 'lunz'
    predicted: {translate: gold}
"""

    (case,) = evaluate(load_cases(write(text)))["cases"]

    assert case["outcome"] == "passed"
    assert case["predicted"]["query"].startswith('SELECT DISTINCT town FROM "dim_shops" WHERE LOWER(town) LIKE')


def test_two_projects_on_one_database_are_two_sources(working_folder, built_example):
    shutil.copytree(EXAMPLE / "bakery", working_folder / "copy", ignore=MADE)
    profiles = (working_folder / "copy/profiles.yml").read_text()
    (working_folder / "copy/profiles.yml").write_text(
        profiles.replace("bakery.duckdb", f"{built_example}/bakery/bakery.duckdb")
    )

    first, second = (suite(QUERIES[0], source=f"{{dbt: {name}}}")[0].settings.source for name in ("bakery", "copy"))

    assert first.settings == second.settings
    assert first.key != second.key
