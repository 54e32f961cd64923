"""A project of dbt on PostgreSQL: names without a schema are of the target's, and passwords stay secret."""

import json
from pathlib import Path

import pytest
from bakery import manifest_of, write_manifest
from suites import write

from pytest_queryeval import evaluate, load_cases
from pytest_queryeval.evaluation import Session

pytest_plugins = ["postgres"]
pytestmark = pytest.mark.feature("database_servers")

TABLES = """
    create schema "Dev 1"; create schema marts;
    create table "Dev 1".dim_shops (shop_id int, town text);
    insert into "Dev 1".dim_shops values (1, 'Lunz'), (2, 'Gaming');
    create table marts.daily_revenue (revenue numeric);
    insert into marts.daily_revenue values (12.5);
    create table public.dim_shops (town text);
    grant usage on schema "Dev 1", marts to guarded;
    grant select on all tables in schema "Dev 1", marts to guarded;
"""
PROFILES = """\
bakery:
  target: dev
  outputs:
    dev:
      type: postgres
      host: 127.0.0.1
      port: "{{ env_var('DBT_PORT') | int }}"
      user: guarded
      password: "{{ env_var('DBT_ENV_SECRET_PASSWORD') }}"
      dbname: music
      schema: Dev 1
"""
CASES = {
    "town": (
        "SELECT town FROM {{ ref('dim_shops') }} WHERE shop_id = 1",
        "SELECT town FROM dim_shops WHERE shop_id < 2",
    ),
    "revenue": ("SELECT sum(revenue) FROM {{ ref('daily_revenue') }}", "SELECT 12.5 FROM marts.daily_revenue"),
    "wrong": ("SELECT count(*) FROM {{ ref('dim_shops') }}", "SELECT count(*) FROM public.dim_shops"),
    "secret": ("SELECT 1", "SELECT '{{ env_var('DBT_ENV_SECRET_PASSWORD') }}'"),
}


@pytest.fixture(scope="module")
def built_cluster(cluster):
    cluster.sql(TABLES)
    return cluster


@pytest.fixture
def project(bakery, built_cluster, monkeypatch):
    cluster = built_cluster
    monkeypatch.chdir(bakery.parent)
    monkeypatch.setenv("DBT_PORT", str(cluster.port))
    monkeypatch.setenv("DBT_ENV_SECRET_PASSWORD", cluster.password)
    manifest = manifest_of(bakery)
    manifest["metadata"]["adapter_type"] = "postgres"
    for node in (*manifest["nodes"].values(), *manifest["sources"].values()):
        node["database"], node["schema"] = "music", "marts" if node["schema"] == "main_reporting" else "Dev 1"
        if node["relation_name"]:
            node["relation_name"] = f'"music"."{node["schema"]}"."{node["alias"]}"' if "alias" in node else None
    write_manifest(bakery, manifest)
    (bakery / "profiles.yml").write_text(PROFILES)
    cases = [{"id": name, "question": name, "gold": g, "predicted": p} for name, (g, p) in CASES.items()]
    return load_cases(write(f"kind: sql\nsource: {{dbt: bakery}}\ncases: {json.dumps(cases)}\n"))


def test_a_profile_of_postgres_is_read_by_its_engine(project, cluster):
    report = evaluate(project)

    assert {case["id"]: case["outcome"] for case in report["cases"]} == {
        "town": "passed",
        "revenue": "passed",
        "wrong": "failed",
        "secret": "failed",
    }
    (query,) = (case["gold"]["query"] for case in report["cases"] if case["id"] == "town")
    assert query == 'SELECT town FROM "dim_shops" WHERE shop_id = 1'
    assert cluster.password not in json.dumps(report)

    with Session() as session:
        schema = session.schema_text(project[0])

    assert "shop_id INTEGER" in schema
    assert "COMMENT ON COLUMN \"dim_shops\".shop_id IS 'Number of the shop.';" in schema
    assert 'COMMENT ON TABLE "marts"."daily_revenue"' in schema


def test_a_wrong_password_is_the_error_of_the_source_without_the_password(project, cluster, monkeypatch):
    monkeypatch.setenv("DBT_ENV_SECRET_PASSWORD", "not-the-password")
    (case, *_) = evaluate(load_cases(Path("s.queryeval.yaml")))["cases"]

    assert case["outcome"] == "error"
    assert "password authentication failed" in case["message"]
    assert "not-the-password" not in json.dumps(case)
