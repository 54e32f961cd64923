"""Manifests that are missing, older than the project, or those of another target; models that were renamed."""

import os
import re

import pytest
from bakery import edit_later, manifest_of, project_in, write_manifest

from pytest_queryeval.core.errors import SourceError

pytestmark = pytest.mark.usefixtures("working_folder")

BUILD = "run `dbt build --target dev` in bakery"
QUERY = "FROM {{ ref('fct_sales') }}"
MANIFEST = "target/manifest.json"
SALES = "models/marts/fct_sales.sql"
RENAMED = "is older than models/marts/sales.sql: the model 'fct_sales' is now called 'sales'"


def problem(project, query=QUERY, **settings):
    with pytest.raises(SourceError) as caught:
        project_in(project, **settings).rewrite(query)
    return str(caught.value)


def holding(content, path=MANIFEST):
    return lambda bakery: (bakery / path).write_bytes(content)


def edited(name, text):
    return lambda bakery: edit_later(bakery / name, text)


def of_sales(**values):
    """Change what the manifest says of a model."""

    def change(bakery):
        manifest = manifest_of(bakery)
        manifest["nodes"]["model.bakery.fct_sales"] |= values
        write_manifest(bakery, manifest)

    return change


def without(path):
    return lambda bakery: (bakery / path).unlink()


def instead(path, make):
    def change(bakery):
        (bakery / path).unlink()
        make(bakery / path)

    return change


def device(path):
    path.symlink_to("/dev/zero")


def rename(bakery):
    edit_later(bakery / "models/marts/sales.sql", (bakery / SALES).read_text())
    (bakery / SALES).unlink()


def move(bakery):
    (bakery / SALES).rename(bakery / "models/marts/sales.sql")
    edit_later(bakery / "models/marts/daily_revenue.sql", "select sum(revenue) from {{ ref('sales') }}")


def all_of(*changes):
    return lambda bakery: [change(bakery) for change in changes]


NOT_ONE = " is not the manifest of a dbt project: "
NODE = f"{NOT_ONE}nodes.model.bakery.fct_sales"
OUTSIDE = "which is outside the project"
PROBLEMS = [
    (without(MANIFEST), ": no such file"),
    (holding(b""), f"{NOT_ONE}not JSON: a value is missing"),
    (holding(b"[]"), f"{NOT_ONE}expected an object"),
    (holding(b"{}"), f"{NOT_ONE}'metadata' is missing"),
    (
        holding(b'{"metadata": {}, "nodes": {}, "sources": {}, "disabled": {}}'),
        f"{NOT_ONE}metadata: 'project_name' is missing",
    ),
    (holding(b"[" * 100_000), f"{NOT_ONE}nested too deeply"),
    (holding(b"{\xff"), " cannot be read: byte 0xff is not UTF-8: save the file as UTF-8"),
    (of_sales(columns=[1]), f"{NODE}.columns: expected an object or null"),
    (of_sales(columns={"kind": None}), f"{NODE}.columns.kind: expected an object"),
    (of_sales(columns={"kind": {"description": 5}}), f"{NODE}.columns.kind.description: expected a text or null"),
    (of_sales(original_file_path=5), f"{NODE}.original_file_path: expected a text"),
    (of_sales(checksum="abc"), f"{NODE}.checksum: expected an object or null"),
    (of_sales(resource_type=None), f"{NODE}.resource_type: expected a text"),
    (of_sales(relation_name=["a"]), f"{NODE}.relation_name: expected a text or null"),
    (instead(SALES, os.mkfifo), f" has {SALES}, which is not a regular file"),
    (instead(SALES, os.mkdir), f" has {SALES}, which is not a regular file"),
    (instead(SALES, device), f" has {SALES}, {OUTSIDE}"),
    (instead(MANIFEST, os.mkfifo), " cannot be read: is not a file"),
    (instead(MANIFEST, device), " cannot be read: is not a file"),
    (of_sales(original_file_path="../other.sql"), f" has ../other.sql, {OUTSIDE}"),
    (of_sales(original_file_path="/etc/other.sql"), f" has /etc/other.sql, {OUTSIDE}"),
    (
        all_of(instead("models/marts/towns.sql", device), of_sales(original_file_path="models/marts/towns.sql")),
        f" has models/marts/towns.sql, {OUTSIDE}",
    ),
    (edited(SALES, "select 1 as sale_id"), f" is older than {SALES}"),
    (edited("seeds/raw_shops.csv", "id,name,town,opened_on\n"), " is older than seeds/raw_shops.csv"),
    (
        edited("models/marts/towns.sql", "select town from {{ ref('stg_shops') }}"),
        " is older than models/marts/towns.sql",
    ),
    (without("models/marts/daily_revenue.sql"), " has models/marts/daily_revenue.sql, which is gone"),
    (rename, f" {RENAMED}"),
    (move, f" {RENAMED}"),
]


@pytest.mark.parametrize(("change", "message"), PROBLEMS, ids=range(len(PROBLEMS)))
def test_a_manifest_that_cannot_be_used_is_told_with_the_command_that_makes_it(bakery, change, message):
    (bakery / "models/marts/towns.sql").write_text("\n")

    change(bakery)

    assert problem(bakery) == f"bakery/{MANIFEST}{message}: {BUILD}"


def link_out(bakery):
    (bakery.parent / "other").mkdir()
    edit_later(bakery.parent / "other/towns.sql", "select 1")
    (bakery / "models/folder").symlink_to(bakery.parent / "other")
    (bakery / "models/towns.sql").symlink_to(bakery.parent / "other/towns.sql")


def check_out(bakery):
    """Give all files another time, and other line ends at their end."""
    for path in (*bakery.rglob("*.sql"), *bakery.rglob("*.csv")):
        edit_later(path, f"{path.read_text().strip()}\n\n")


def add_nodes(bakery):
    manifest = manifest_of(bakery)
    manifest["nodes"]["test.bakery.unique"] = {"resource_type": "test", "columns": 5}
    write_manifest(bakery, manifest)


FINE = {
    "values that are not read": of_sales(meta=float("nan"), version=None, checksum=None),
    "nodes that are no relations": add_nodes,
    "pipes next to the models": lambda bakery: os.mkfifo(bakery / "models/pipe.sql"),
    "links that lead out of the project": link_out,
    "other times of the same content": check_out,
    "what dbt does not read": all_of(edited("models/notes.md", "not a model"), edited("models/empty.sql", "\n")),
    "new files where some are ignored": all_of(
        edited("models/draft.sql", "select 1"), edited(".dbtignore", "draft.sql")
    ),
    "a manifest that is younger than a model": all_of(
        edited(SALES, "select 1"), lambda bakery: os.utime(bakery / MANIFEST, (2_000_000_001, 2_000_000_001))
    ),
}


@pytest.mark.parametrize("change", FINE.values(), ids=FINE)
def test_what_makes_no_difference_to_the_models_is_no_problem(bakery, change):
    change(bakery)

    assert project_in(bakery).rewrite(QUERY) == 'FROM "fct_sales"'


def test_files_that_vanish_while_a_project_is_read_are_no_failure(bakery, monkeypatch):
    """As those of an editor, or of a build that runs next to."""
    (bakery / "models/towns.sql").write_text("select 1")
    walk = os.walk

    def walk_and_remove(place):
        for folder, folders, names in walk(place):
            yield folder, folders, [*names, "gone.sql"]
            (bakery / "models/towns.sql").unlink(missing_ok=True)

    monkeypatch.setattr(os, "walk", walk_and_remove)

    assert project_in(bakery).rewrite(QUERY) == 'FROM "fct_sales"'


def test_a_model_that_was_renamed_before_is_told_with_both_names(bakery):
    """As dbt leaves a project: the SQL that it compiled under the old name stays in target/."""
    manifest = manifest_of(bakery)
    node = manifest["nodes"].pop("model.bakery.fct_sales") | {"name": "sales"}
    node["original_file_path"] = "models/marts/sales.sql"
    manifest["nodes"]["model.bakery.sales"] = node
    (bakery / SALES).rename(bakery / "models/marts/sales.sql")
    compiled = bakery / "target/compiled/bakery/models/marts/fct_sales.sql"
    compiled.parent.mkdir(parents=True)
    os.mkfifo(compiled.with_name("other.sql"))
    compiled.write_text(f"{node['compiled_code']}\n")
    write_manifest(bakery, manifest)

    now = "the model 'fct_sales' is now called 'sales'"
    with pytest.raises(ValueError, match=rf"^unknown relation {re.escape(QUERY[5:])}: {now}$"):
        project_in(bakery).rewrite(QUERY)


def test_a_manifest_is_read_again_after_dbt_has_made_it(bakery):
    project, path = project_in(bakery), bakery / MANIFEST
    content = path.read_bytes()
    path.unlink()
    assert "no such file" in problem(bakery)

    path.write_bytes(content)

    assert project.rewrite(QUERY) == 'FROM "fct_sales"'


def test_a_database_that_is_missing_and_a_manifest_of_another_adapter_or_target_are_told(bakery):
    others = {
        "is for duckdb, and the target 'dev' is of the type postgres: run": {"adapter": "postgres"},
        "another target: its models are in the schema main, and those of 'dev' in prod: run": {"target_schema": "prod"},
        f"bakery/bakery.duckdb: no such file: {BUILD}": {"file": bakery / "bakery.duckdb"},
    }

    for message, settings in others.items():
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
