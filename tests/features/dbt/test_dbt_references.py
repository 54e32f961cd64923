"""`ref` and `source` in queries become names of tables; nothing else of Jinja is expanded."""

import pytest
from bakery import manifest_of, project_in, write_manifest
from hypothesis import given
from hypothesis import strategies as st

SALES = '"fct_sales"'


@pytest.fixture
def project(bakery):
    return project_in(bakery)


@pytest.mark.parametrize(
    ("expression", "name"),
    [
        ("{{ ref('fct_sales') }}", SALES),
        ('{{ ref("fct_sales") }}', SALES),
        ("{{ref('fct_sales')}}", SALES),
        ("{{- ref('fct_sales') -}}", SALES),
        ("{{\n  ref(\n    'fct_sales',\n  )\n}}", SALES),
        ("{{ ref('bakery', 'fct_sales') }}", SALES),
        ("{{ ref('bakery', \"fct_sales\") }}", SALES),
        ("{{ ref('shop_ranking') }}", '"shop_ranking_v2"'),
        ("{{ ref('shop_ranking', v=1) }}", '"shop_ranking_v1"'),
        ("{{ ref('shop_ranking', v='1') }}", '"shop_ranking_v1"'),
        ("{{ ref('bakery', 'shop_ranking', version=2) }}", '"shop_ranking_v2"'),
        ("{{ ref('raw_shops') }}", '"raw_shops"'),
        ("{{ ref('daily_revenue') }}", '"main_reporting"."daily_revenue"'),
        ("{{ source('till', 'payments') }}", '"raw_payments"'),
    ],
)
def test_a_reference_is_the_name_of_its_table(project, expression, name):
    assert project.rewrite(f"SELECT 1 FROM {expression} AS t") == f"SELECT 1 FROM {name} AS t"


def test_several_references_are_replaced_where_they_stand(project):
    query = "SELECT * FROM {{ ref('stg_shops') }} s, {{ source('till', 'payments') }} p WHERE s.town = '}}'"

    assert project.rewrite(query) == 'SELECT * FROM "stg_shops" s, "raw_payments" p WHERE s.town = \'}}\''


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        ("{{ ref('fct_sale') }}", "no model 'fct_sale': did you mean 'fct_sales'?"),
        ("{{ ref('bakry', 'fct_sales') }}", "no package 'bakry': did you mean 'bakery'?"),
        ("{{ ref('shop_ranking', v=3) }}", "'shop_ranking' has the versions 1, 2"),
        ("{{ ref('fct_sales', v=1) }}", "'fct_sales' has no versions"),
        ("{{ source('tills', 'payments') }}", "no source 'tills': did you mean 'till'?"),
        ("{{ source('bakery', 'fct_sales') }}", "no source 'bakery': fct_sales is a model, {{ ref('fct_sales') }}"),
        ("{{ source('till', 'payment') }}", "no table 'payment' in the source 'till': did you mean 'payments'?"),
        ("{{ source('till') }}", "source needs the names of a source and of one of its tables"),
    ],
)
def test_an_unknown_name_is_told_with_the_nearest_one(project, expression, problem):
    with pytest.raises(ValueError, match="unknown") as caught:
        project.rewrite(f"SELECT 1 FROM {expression}")

    assert str(caught.value) == f"unknown relation {expression}: {problem}"


def test_a_disabled_model_is_told(bakery):
    manifest = manifest_of(bakery)
    name = "model.bakery.dim_shops"
    manifest["disabled"] = {name: [manifest["nodes"].pop(name)]}
    write_manifest(bakery, manifest)

    with pytest.raises(ValueError, match=r"the model 'dim_shops' is disabled$"):
        project_in(bakery).rewrite("FROM {{ ref('dim_shops') }}")


@pytest.mark.parametrize(
    "expression",
    [
        "{{ env_var('SECRET') }}",
        "{{ var('x') }}",
        "{{ this }}",
        "{{ ref(name) }}",
        "{{ ref('fct_sales').identifier }}",
        "{{ ref('a' ~ env_var('SECRET')) }}",
        "{{ ref('{{ env_var(1) }}') }}",
        "{% set x = 1 %}",
        "{# ref('fct_sales') #}",
        "{{",
        "{%",
    ],
)
@pytest.mark.parametrize("query", ["SELECT {}", "SELECT * FROM {{{{ ref('fct_sales') }}}} WHERE x = '{}'"])
def test_other_jinja_is_refused_and_not_expanded(project, monkeypatch, query, expression):
    monkeypatch.setenv("SECRET", "tr0ub4dor")

    with pytest.raises(ValueError, match=r"^(unknown relation )?\{") as caught:
        project.rewrite(query.format(expression))

    assert "tr0ub4dor" not in str(caught.value)


@given(st.text("{}%#'\", \nrefsourc(tilnvaby=123-_)", max_size=60))
def test_no_text_leaves_jinja_in_a_query(example_project, text):
    try:
        rewritten = example_project.rewrite(f"SELECT {text} {{{{ ref('fct_sales') }}}}")
    except ValueError:
        return

    assert not any(opening in rewritten for opening in ("{{", "{%", "{#"))
    assert rewritten.endswith(SALES)


@pytest.fixture(scope="module")
def example_project(built_example):
    return project_in(built_example / "bakery")


def test_long_texts_take_no_long_time(example_project):
    for text in ("{{ ref(" * 40_000, "{{" + " " * 400_000, "{{ ref('fct_sales'" + " ," * 200_000):
        with pytest.raises(ValueError, match="is not expanded"):
            example_project.rewrite(text)


def test_names_of_another_database_stay_whole(bakery):
    query = "FROM {{ ref('dim_shops') }}"

    assert project_in(bakery, database="other").rewrite(query) == 'FROM "bakery"."main"."dim_shops"'
    assert project_in(bakery, schema="").rewrite(query) == 'FROM "main"."dim_shops"'


def test_a_model_of_the_project_comes_before_one_of_a_package(bakery):
    manifest = manifest_of(bakery)
    sales = manifest["nodes"]["model.bakery.fct_sales"]
    of_package = {**sales, "package_name": "tools", "relation_name": '"bakery"."tools"."fct_sales"', "schema": "tools"}
    manifest["nodes"] = {"model.tools.fct_sales": of_package, **manifest["nodes"]}
    write_manifest(bakery, manifest)
    project = project_in(bakery)

    assert project.rewrite("FROM {{ ref('fct_sales') }}") == f"FROM {SALES}"
    assert project.rewrite("FROM {{ ref('tools', 'fct_sales') }}") == 'FROM "tools"."fct_sales"'


def test_descriptions_are_comments_behind_the_tables(project):
    schema = project.describe("CREATE TABLE dim_shops (shop_id INTEGER);")

    assert schema.startswith("CREATE TABLE dim_shops (shop_id INTEGER);\n\nCOMMENT ON ")
    assert "COMMENT ON VIEW \"stg_payments\" IS 'Payments in euros.';" in schema
    assert "COMMENT ON COLUMN \"dim_shops\".opened_on IS 'Day on which the shop''s doors opened.';" in schema
    assert "COMMENT ON COLUMN \"raw_payments\".method IS 'How it was paid: card or cash.';" in schema
    assert "COMMENT ON TABLE \"shop_ranking_v1\" IS 'By pieces.';" in schema
    assert '"main_reporting"."daily_revenue"' in schema
    assert "int_priced_sales" not in schema


@pytest.mark.parametrize(
    ("adapter", "column", "name"),
    [
        ("duckdb", "order", '"order"'),
        ("duckdb", 'a"; DROP', '"a""; DROP"'),
        ("duckdb", "kind", "kind"),
        ("snowflake", "Unit Price", '"Unit Price"'),
        ("mariadb", "a`b", "`a``b`"),
        *((adapter, "order", '"order"') for adapter in ("postgres", "redshift", "trino")),
        *((adapter, "order", "`order`") for adapter in ("mysql", "bigquery", "databricks")),
    ],
)
def test_columns_in_comments_are_quoted_where_their_database_needs_it(bakery, adapter, column, name):
    manifest = manifest_of(bakery)
    manifest["metadata"]["adapter_type"] = adapter
    manifest["nodes"]["model.bakery.fct_sales"]["columns"] = {column: {"description": "It's here."}}
    write_manifest(bakery, manifest)

    comments = project_in(bakery, adapter=adapter).describe("")

    assert f"COMMENT ON COLUMN \"fct_sales\".{name} IS 'It''s here.';" in comments
