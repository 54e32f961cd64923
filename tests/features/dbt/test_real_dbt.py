"""The example project as dbt itself builds it: needs `dbt` with dbt-duckdb, which `make test-engines` installs."""

import runpy
import shutil
import subprocess

import duckdb
import pytest
from bakery import EXAMPLE, MADE, manifest_of

from pytest_queryeval import evaluate, load_cases

DBT = shutil.which("dbt")
RELATIONS = ("raw_shops", "stg_payments", "dim_shops", "fct_sales", "main_reporting.daily_revenue", "shop_ranking_v2")
RENAMED = "the model 'fct_sales' is now called 'sales'"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.process,
    pytest.mark.feature("duckdb"),
    pytest.mark.skipif(DBT is None, reason="dbt is not installed"),
]


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The example, built by dbt."""
    folder = tmp_path_factory.mktemp("real") / "example"
    shutil.copytree(EXAMPLE, folder, ignore=lambda *names: {*MADE(*names), *({"target"} & set(names[1]))})
    build(folder / "bakery")
    return folder


@pytest.fixture
def example(built, tmp_path, monkeypatch):
    """A copy of it, to be changed."""
    shutil.copytree(built, tmp_path / "example")
    monkeypatch.chdir(tmp_path / "example")
    return tmp_path / "example"


def build(project, *options):
    command = [DBT, "--quiet", "--no-send-anonymous-usage-stats", "build", *options]
    subprocess.run(command, cwd=project, check=True, timeout=300)


def messages():
    return {case["message"] for case in evaluate(load_cases("bakery.queryeval.yaml"))["cases"]}


def rename(project):
    """Rename a model as its author does: the file, and the name wherever it stands."""
    (project / "models/marts/fct_sales.sql").rename(project / "models/marts/sales.sql")
    for path in (*project.rglob("models/**/*.sql"), project / "models/models.yml"):
        path.write_text(path.read_text().replace("fct_sales", "sales"))


def test_the_manifest_of_the_example_is_the_one_that_dbt_makes(built):
    manifest = manifest_of(built / "bakery")
    make_manifest = runpy.run_path(str(EXAMPLE / "make_manifest.py"))

    stated, manifest = manifest_of(EXAMPLE / "bakery"), make_manifest["without_machine"](manifest)
    del stated["metadata"]["dbt_version"], manifest["metadata"]["dbt_version"]

    assert manifest == stated


def test_the_database_of_the_example_is_the_one_that_dbt_makes(built, built_example):
    def rows(folder):
        with duckdb.connect(folder / "bakery/bakery.duckdb", read_only=True) as connection:
            return {name: sorted(connection.execute(f"FROM {name}").fetchall(), key=repr) for name in RELATIONS}

    assert rows(built) == rows(built_example)


def test_a_model_that_was_renamed_is_told_with_both_names_until_dbt_runs_and_after_it(example):
    rename(example / "bakery")

    (before,) = messages()
    build(example / "bakery")
    after = messages()

    assert f"bakery/target/manifest.json is older than models/marts/sales.sql: {RENAMED}: run" in before
    assert any(RENAMED in message for message in after if message)


def test_a_manifest_of_another_target_is_told(example):
    profiles = example / "bakery/profiles.yml"
    target = "    prod: {type: duckdb, path: bakery.duckdb, schema: prod}\n"
    profiles.write_text(profiles.read_text() + target)
    build(example / "bakery", "--target", "prod")

    assert "its models are in the schema prod, and those of 'dev' in main" in " ".join(messages())
