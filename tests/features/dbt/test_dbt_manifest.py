"""Manifests that are missing, older than the project, or those of another target; models that were renamed."""

import os
import re

import pytest
from bakery import edit_later, manifest_of, project_in, write_manifest

from pytest_queryeval.core.errors import SourceError

BUILD = "run `dbt build --target dev` in bakery"
QUERY = "FROM {{ ref('fct_sales') }}"


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def problem(project, query=QUERY, **settings):
    with pytest.raises(SourceError) as caught:
        project_in(project, **settings).rewrite(query)
    return str(caught.value)


def test_a_manifest_that_is_missing_is_told_with_the_command_that_makes_it(bakery):
    (bakery / "target/manifest.json").unlink()

    assert problem(bakery) == f"bakery/target/manifest.json: no such file: {BUILD}"


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"metadata": {}}', b"\xff", b"[" * 100_000])
def test_a_file_that_is_no_manifest_is_told(bakery, content):
    (bakery / "target/manifest.json").write_bytes(content)

    assert problem(bakery).startswith("bakery/target/manifest.json is not the manifest of a dbt project (")


def test_a_database_that_is_missing_is_told_with_the_command_that_makes_it(bakery):
    assert problem(bakery, file=bakery / "bakery.duckdb") == f"bakery/bakery.duckdb: no such file: {BUILD}"


def test_a_manifest_that_is_older_than_a_model_is_told(bakery):
    edit_later(bakery / "models/marts/fct_sales.sql", "select 1 as sale_id")

    assert problem(bakery) == f"bakery/target/manifest.json is older than models/marts/fct_sales.sql: {BUILD}"


def test_a_manifest_that_is_older_than_a_seed_is_told(bakery):
    edit_later(bakery / "seeds/raw_shops.csv", "id,name,town,opened_on\n")

    assert "is older than seeds/raw_shops.csv" in problem(bakery)


def test_a_manifest_without_a_new_model_is_told(bakery):
    edit_later(bakery / "models/marts/towns.sql", "select distinct town from {{ ref('stg_shops') }}")

    assert "is older than models/marts/towns.sql: run" in problem(bakery)


def test_a_manifest_with_a_model_that_is_gone_is_told(bakery):
    (bakery / "models/marts/daily_revenue.sql").unlink()

    assert "has models/marts/daily_revenue.sql, which is gone: run" in problem(bakery)


def test_a_model_that_was_renamed_since_is_told_with_both_names(bakery):
    old = bakery / "models/marts/fct_sales.sql"
    edit_later(bakery / "models/marts/sales.sql", old.read_text())
    old.unlink()

    renamed = "the model 'fct_sales' is now called 'sales'"
    assert problem(bakery) == f"bakery/target/manifest.json is older than models/marts/sales.sql: {renamed}: {BUILD}"


def test_a_model_is_told_as_renamed_where_its_file_was_moved_and_other_models_changed(bakery):
    (bakery / "models/marts/fct_sales.sql").rename(bakery / "models/marts/sales.sql")
    edit_later(bakery / "models/marts/daily_revenue.sql", "select sum(revenue) from {{ ref('sales') }}")

    assert "is older than models/marts/sales.sql: the model 'fct_sales' is now called 'sales': run" in problem(bakery)


def test_a_model_that_was_renamed_before_is_told_with_both_names(bakery):
    """As dbt leaves a project: the SQL that it compiled under the old name stays in target/."""
    manifest = manifest_of(bakery)
    node = manifest["nodes"].pop("model.bakery.fct_sales")
    node["name"] = "sales"
    node["original_file_path"] = "models/marts/sales.sql"
    manifest["nodes"]["model.bakery.sales"] = node
    (bakery / "models/marts/fct_sales.sql").rename(bakery / "models/marts/sales.sql")
    compiled = bakery / "target/compiled/bakery/models/marts/fct_sales.sql"
    compiled.parent.mkdir(parents=True)
    compiled.write_text(f"{node['compiled_code']}\n")
    write_manifest(bakery, manifest)

    now = "the model 'fct_sales' is now called 'sales'"
    with pytest.raises(ValueError, match=rf"^unknown relation {re.escape(QUERY[5:])}: {now}$"):
        project_in(bakery).rewrite(QUERY)


def test_files_of_another_time_with_the_same_content_are_no_change(bakery):
    """As after a checkout, or with other line ends at the end of the file."""
    for path in (*bakery.rglob("*.sql"), *bakery.rglob("*.csv")):
        edit_later(path, f"{path.read_text().strip()}\n\n")

    assert project_in(bakery).rewrite(QUERY) == 'FROM "fct_sales"'


def test_files_that_dbt_does_not_read_are_no_change(bakery):
    edit_later(bakery / "models/notes.md", "not a model")
    edit_later(bakery / "models/empty.sql", "\n")

    assert project_in(bakery).rewrite(QUERY) == 'FROM "fct_sales"'


def test_new_files_do_not_count_where_dbt_ignores_some(bakery):
    edit_later(bakery / "models/draft.sql", "select 1")
    (bakery / ".dbtignore").write_text("draft.sql")

    assert project_in(bakery).rewrite(QUERY) == 'FROM "fct_sales"'


def test_a_manifest_is_read_again_after_dbt_has_made_it(bakery):
    project, path = project_in(bakery), bakery / "target/manifest.json"
    content = path.read_bytes()
    path.unlink()
    assert "no such file" in problem(bakery)

    path.write_bytes(content)

    assert project.rewrite(QUERY) == 'FROM "fct_sales"'


def test_a_manifest_of_another_adapter_is_told(bakery):
    message = "is for duckdb, and the target 'dev' is of the type postgres: run"

    assert message in problem(bakery, adapter="postgres")


def test_a_manifest_of_another_target_is_told(bakery):
    message = "is that of another target: its models are in the schema main, and those of 'dev' in prod: run"

    assert message in problem(bakery, target_schema="prod")


def test_a_manifest_that_cannot_be_read_is_told(bakery):
    path = bakery / "target/manifest.json"
    path.unlink()
    path.mkdir()

    assert problem(bakery).startswith("bakery/target/manifest.json cannot be read: Is a directory")


def test_the_time_of_the_manifest_decides_not_that_of_the_folder(bakery):
    later = 2_000_000_001
    edit_later(bakery / "models/marts/fct_sales.sql", "select 1")
    os.utime(bakery / "target/manifest.json", (later, later))

    assert project_in(bakery).rewrite(QUERY) == 'FROM "fct_sales"'
