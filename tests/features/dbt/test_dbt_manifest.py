"""Manifests that are missing, older than the project, or those of another target; models that were renamed."""

import os
import re

import pytest
from bakery import edit_later, manifest_of, project_in, write_manifest

from pytest_queryeval.core.errors import SourceError

BUILD = "run `dbt build --target dev` in bakery"
QUERY = "FROM {{ ref('fct_sales') }}"


@pytest.fixture(autouse=True)
def working_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def problem(project, query=QUERY, **settings):
    with pytest.raises(SourceError) as caught:
        project_in(project, **settings).rewrite(query)
    return str(caught.value)


def test_a_manifest_that_is_missing_is_told_with_the_command_that_makes_it(bakery):
    (bakery / "target/manifest.json").unlink()

    assert problem(bakery) == f"bakery/target/manifest.json: no such file: {BUILD}"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "not JSON: a value is missing"),
        (b"[]", "expected an object"),
        (b"{}", "'metadata' is missing"),
        (b'{"metadata": {}, "nodes": {}, "sources": {}, "disabled": {}}', "metadata: 'project_name' is missing"),
        (b"[" * 100_000, "nested too deeply"),
    ],
    ids=["empty", "list", "no keys", "no name", "deep"],
)
def test_a_file_that_is_no_manifest_is_told(bakery, content, reason):
    (bakery / "target/manifest.json").write_bytes(content)

    assert problem(bakery) == f"bakery/target/manifest.json is not the manifest of a dbt project: {reason}: {BUILD}"


SALES = "nodes.model.bakery.fct_sales"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"columns": [1]}, f"{SALES}.columns: expected an object or null"),
        ({"columns": {"kind": None}}, f"{SALES}.columns.kind: expected an object"),
        ({"columns": {"kind": {"description": 5}}}, f"{SALES}.columns.kind.description: expected a text or null"),
        ({"original_file_path": 5}, f"{SALES}.original_file_path: expected a text"),
        ({"checksum": "abc"}, f"{SALES}.checksum: expected an object or null"),
        ({"resource_type": None}, f"{SALES}.resource_type: expected a text"),
        ({"relation_name": ["a"]}, f"{SALES}.relation_name: expected a text or null"),
    ],
    ids=lambda value: "" if isinstance(value, dict) else value,
)
def test_a_manifest_with_a_wrong_value_is_told_with_its_place(bakery, change, reason):
    manifest = manifest_of(bakery)
    manifest["nodes"]["model.bakery.fct_sales"] |= change
    write_manifest(bakery, manifest)

    assert problem(bakery) == f"bakery/target/manifest.json is not the manifest of a dbt project: {reason}: {BUILD}"


def test_nodes_that_are_no_relations_and_values_that_are_not_read_may_be_anything(bakery):
    manifest = manifest_of(bakery)
    manifest["nodes"]["model.bakery.fct_sales"] |= {"meta": float("nan"), "version": None, "checksum": None}
    manifest["nodes"]["test.bakery.unique"] = {"resource_type": "test", "columns": 5}
    write_manifest(bakery, manifest)

    assert project_in(bakery).rewrite(QUERY) == 'FROM "fct_sales"'


def pipe(path):
    path.unlink()
    os.mkfifo(path)


def folder(path):
    path.unlink()
    path.mkdir()


def device(path):
    path.unlink()
    path.symlink_to("/dev/zero")


@pytest.mark.parametrize(
    ("put", "reason"),
    [(pipe, "not a regular file"), (folder, "not a regular file"), (device, "outside the project")],
)
def test_only_regular_files_are_read(bakery, put, reason):
    put(bakery / "models/marts/fct_sales.sql")
    in_place_of_a_model = problem(bakery)
    put(bakery / "target/manifest.json")

    model = f"models/marts/fct_sales.sql, which is {reason}"
    assert in_place_of_a_model == f"bakery/target/manifest.json has {model}: {BUILD}"
    assert problem(bakery) == f"bakery/target/manifest.json cannot be read: is not a file: {BUILD}"


def test_pipes_beside_the_models_are_passed_over(bakery):
    os.mkfifo(bakery / "models/pipe.sql")
    (bakery / "target/compiled").mkdir()
    os.mkfifo(bakery / "target/compiled/sales.sql")

    with pytest.raises(ValueError, match="no model 'sales'"):
        project_in(bakery).rewrite("FROM {{ ref('sales') }}")


@pytest.mark.parametrize("path", ["../other.sql", "/etc/other.sql", "models/link.sql", "models/\0.sql"])
def test_a_manifest_with_a_file_outside_the_project_is_told(bakery, path):
    (bakery.parent / "other.sql").write_text("select 1")
    (bakery / "models/link.sql").symlink_to(bakery.parent / "other.sql")
    manifest = manifest_of(bakery)
    manifest["nodes"]["model.bakery.fct_sales"]["original_file_path"] = path
    write_manifest(bakery, manifest)

    assert f"has {path}, which is outside the project: run" in problem(bakery)


def test_links_that_lead_out_of_the_project_are_no_models(bakery):
    (bakery.parent / "other").mkdir()
    edit_later(bakery.parent / "other/towns.sql", "select 1")
    (bakery / "models/folder").symlink_to(bakery.parent / "other")
    (bakery / "models/towns.sql").symlink_to(bakery.parent / "other/towns.sql")

    assert project_in(bakery).rewrite(QUERY) == 'FROM "fct_sales"'


def test_files_that_vanish_while_a_project_is_read_are_no_failure(bakery, monkeypatch):
    """As those of an editor, or of a build that runs beside."""
    (bakery / "models/towns.sql").write_text("select 1")
    walk = os.walk

    def walk_and_remove(place):
        for folder, folders, names in walk(place):
            yield folder, folders, [*names, "gone.sql"]
            (bakery / "models/towns.sql").unlink(missing_ok=True)

    monkeypatch.setattr(os, "walk", walk_and_remove)

    assert project_in(bakery).rewrite(QUERY) == 'FROM "fct_sales"'


def test_a_database_that_is_missing_is_told_with_the_command_that_makes_it(bakery):
    assert problem(bakery, file=bakery / "bakery.duckdb") == f"bakery/bakery.duckdb: no such file: {BUILD}"


def rename(bakery):
    old = bakery / "models/marts/fct_sales.sql"
    edit_later(bakery / "models/marts/sales.sql", old.read_text())
    old.unlink()


def move(bakery):
    (bakery / "models/marts/fct_sales.sql").rename(bakery / "models/marts/sales.sql")
    edit_later(bakery / "models/marts/daily_revenue.sql", "select sum(revenue) from {{ ref('sales') }}")


def edited(name, text):
    return lambda bakery: edit_later(bakery / name, text)


RENAMED = "is older than models/marts/sales.sql: the model 'fct_sales' is now called 'sales'"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (edited("models/marts/fct_sales.sql", "select 1 as sale_id"), "is older than models/marts/fct_sales.sql"),
        (edited("seeds/raw_shops.csv", "id,name,town,opened_on\n"), "is older than seeds/raw_shops.csv"),
        (
            edited("models/marts/towns.sql", "select town from {{ ref('stg_shops') }}"),
            "is older than models/marts/towns.sql",
        ),
        (
            lambda bakery: (bakery / "models/marts/daily_revenue.sql").unlink(),
            "has models/marts/daily_revenue.sql, which is gone",
        ),
        (rename, RENAMED),
        (move, RENAMED),
    ],
    ids=["model", "seed", "new", "gone", "renamed", "moved"],
)
def test_a_manifest_that_is_older_than_the_project_is_told(bakery, change, message):
    change(bakery)

    assert problem(bakery) == f"bakery/target/manifest.json {message}: {BUILD}"


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

    edit_later(bakery / "models/draft.sql", "select 1")
    (bakery / ".dbtignore").write_text("draft.sql")  # so new files do not count
    assert project_in(bakery).rewrite(QUERY) == 'FROM "fct_sales"'


def test_a_manifest_is_read_again_after_dbt_has_made_it(bakery):
    project, path = project_in(bakery), bakery / "target/manifest.json"
    content = path.read_bytes()
    path.unlink()
    assert "no such file" in problem(bakery)

    path.write_bytes(content)

    assert project.rewrite(QUERY) == 'FROM "fct_sales"'


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"adapter": "postgres"}, "is for duckdb, and the target 'dev' is of the type postgres: run"),
        (
            {"target_schema": "prod"},
            "is that of another target: its models are in the schema main, and those of 'dev' in prod: run",
        ),
    ],
)
def test_a_manifest_of_another_adapter_or_target_is_told(bakery, settings, message):
    assert message in problem(bakery, **settings)


@pytest.mark.parametrize("macro", ["generate_schema_name", "duckdb__generate_schema_name"])
def test_a_project_may_name_the_schemas_of_its_models_by_a_macro_of_its_own(bakery, macro):
    """But for that of another target of the profile."""
    manifest = manifest_of(bakery)
    manifest["macros"] = {f"macro.bakery.{macro}": {}, "macro.dbt.generate_schema_name": {}}
    write_manifest(bakery, manifest)

    assert project_in(bakery, target_schema="of_me").rewrite(QUERY) == 'FROM "fct_sales"'
    other = "is that of another target: its models are in the schema main"
    assert other in problem(bakery, target_schema="of_me", other_schemas=frozenset({"main"}))
    manifest["macros"] = {"macro.dbt.generate_schema_name": {}}  # of another package
    write_manifest(bakery, manifest)
    assert other in problem(bakery, target_schema="of_me")


def test_a_manifest_that_is_no_text_is_told(bakery):
    (bakery / "target/manifest.json").write_bytes(b"{\xff")

    message = "cannot be read: byte 0xff is not UTF-8: save the file as UTF-8"
    assert problem(bakery) == f"bakery/target/manifest.json {message}: {BUILD}"


def test_the_time_of_the_manifest_decides_not_that_of_the_folder(bakery):
    later = 2_000_000_001
    edit_later(bakery / "models/marts/fct_sales.sql", "select 1")
    os.utime(bakery / "target/manifest.json", (later, later))

    assert project_in(bakery).rewrite(QUERY) == 'FROM "fct_sales"'
