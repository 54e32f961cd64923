"""Which profile and target a suite means, what they connect to, and what is wrong with them."""

from pathlib import Path

import pytest
import yaml
from suites import enter, load, problems

from pytest_queryeval.core.errors import SourceError
from pytest_queryeval.core.model import Source
from pytest_queryeval.engines import ENGINES

SUITE = "kind: sql\nsource: {dbt: %s}\ncases:\n  - {id: a, gold: SELECT 1, predicted: SELECT 1}\n"
POSTGRES = """\
bakery:
  target: dev
  outputs:
    dev: {type: postgres, host: localhost, port: 5433, user: me, password: "p@ss/word", dbname: shop, schema: dev}
    prod: {type: postgres, host: db, user: "{{ env_var('DB_USER') }}", dbname: shop, schema: prod}
"""


@pytest.fixture(autouse=True)
def working_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("DBT_PROFILES_DIR", raising=False)


def source(settings="bakery"):
    (case,) = load(SUITE % settings)
    return case.settings.source


def problem(settings="bakery"):
    (line,) = problems(SUITE % settings)
    return line


def write_profiles(folder, text):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "profiles.yml").write_text(text)


def profile_of(path):
    return f"bakery: {{target: dev, outputs: {{dev: {{type: duckdb, path: {path}}}}}}}\n"


def test_a_project_stands_for_the_database_of_its_target(bakery):
    (case,) = load(SUITE % "{project: bakery, version: 3, variants: 'variants/*.duckdb'}")

    opened_source = case.settings.source
    assert (opened_source.engine, opened_source.name, case.settings.dialect) == ("duckdb", "bakery", "duckdb")
    assert opened_source.settings == {
        "path": str(bakery / "bakery.duckdb"),
        "version": 3,
        "variants": "variants/*.duckdb",
    }


def test_a_suite_may_name_another_profile_and_target(bakery):
    write_profiles(bakery, "other: {outputs: {ci: {type: duckdb, path: ci.duckdb}, dev: {type: duckdb, path: a.db}}}\n")

    assert source("{project: bakery, profile: other, target: ci}").settings["path"] == str(bakery / "ci.duckdb")


OTHER_JINJA = "bakery/profiles.yml:1: `path` has Jinja other than {{ env_var('NAME') }}, which is not expanded"


def test_the_variable_names_the_folder_of_profiles_before_the_project_and_the_home(bakery, tmp_path, monkeypatch):
    write_profiles(tmp_path / "home/.dbt", profile_of("home.duckdb"))
    write_profiles(tmp_path / "of_variable", profile_of("variable.duckdb"))
    paths = [source().settings["path"]]
    monkeypatch.setenv("DBT_PROFILES_DIR", str(tmp_path / "of_variable"))
    paths.append(source().settings["path"])
    monkeypatch.delenv("DBT_PROFILES_DIR")
    (bakery / "profiles.yml").unlink()
    paths.append(source().settings["path"])

    assert [Path(path).name for path in paths] == ["bakery.duckdb", "variable.duckdb", "home.duckdb"]


@pytest.mark.feature("database_servers")
def test_variables_are_expanded_in_the_target_that_is_used_alone(bakery, monkeypatch):
    write_profiles(bakery, POSTGRES)
    source()  # the variable of `prod` is not set
    monkeypatch.setenv("DB_USER", "reader")

    assert source("{project: bakery, target: prod}").settings["url"].startswith("postgresql://reader@db/shop?")


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("{{ env_var('FOLDER') }}/a.duckdb", "made/a.duckdb"),
        ('{{env_var("FOLDER")}}.duckdb', "made.duckdb"),
        ("{{- env_var('UNSET', 'other') -}}.duckdb", "other.duckdb"),
        ("{{ env_var('UNSET', 7) | int }}.duckdb", "7.duckdb"),
        ("{{ env_var('FOLDER') | as_text }}", "made"),
    ],
)
def test_env_var_is_expanded_in_profiles(bakery, monkeypatch, text, path):
    monkeypatch.setenv("FOLDER", "made")
    write_profiles(bakery, profile_of(f"'{text}'" if "'" not in text else f"{text!r}".replace("\\'", "''")))

    assert source().settings["path"] == str(bakery / path)


def test_variables_of_an_env_file_are_known_too(bakery, tmp_path):
    (tmp_path / ".env").write_text("FOLDER=kept\n")
    (tmp_path / "queryeval.yaml").write_text("env_file: .env\n")
    write_profiles(bakery, profile_of('''"{{ env_var('FOLDER') }}.duckdb"'''))

    assert source().settings["path"] == str(bakery / "kept.duckdb")


@pytest.mark.parametrize(
    ("profiles", "message"),
    [
        ("", "bakery/profiles.yml: is empty: add the profile 'bakery'"),
        ("bakry: {}\n", "bakery/profiles.yml:1: has no profile 'bakery': did you mean 'bakry'?"),
        ("bakery: {target: a}\n", "bakery/profiles.yml:1: the profile 'bakery' has no `outputs`: add them"),
        (
            "bakery: {target: dve, outputs: {dev: {type: duckdb}}}\n",
            "bakery/profiles.yml:1: the profile 'bakery' has no target 'dve': did you mean 'dev'?",
        ),
        (
            "bakery: {outputs: {dev: {type: duckdb}}}\n",
            "bakery/profiles.yml:1: the profile 'bakery' has no target 'default': choose from dev",
        ),
        (profile_of("x").replace("type", "kind"), "bakery/profiles.yml:1: the target 'dev' has no `type`: add it"),
        (
            profile_of("x").replace("duckdb", "duckbd"),
            "bakery/profiles.yml:1: no engine reads the type 'duckbd' of the target 'dev': did you mean 'duckdb'?",
        ),
        (
            profile_of("x").replace(", path: x", ""),
            (
                "bakery/profiles.yml:1: the database of the target 'dev' is in memory, which dbt loses when it ends: "
                "give it a file as `path`"
            ),
        ),
        (
            profile_of('"md:sales"'),
            (
                "bakery/profiles.yml:1: the database of the target 'dev' is in another place than a file: give it a "
                "file as `path`"
            ),
        ),
        (
            profile_of('''"{{ env_var('NOT_SET') }}"'''),
            "bakery/profiles.yml:1: environment variable 'NOT_SET' is not set: set it, or give env_var a default",
        ),
        *((profile_of(f'"{text}"'), OTHER_JINJA) for text in ("{{ target.name }}.db", "{% if 1 %}a{% endif %}")),
        (profile_of("\"{{ env_var('HOME') ~ 'x' }}\""), OTHER_JINJA),
    ],
)
def test_what_is_wrong_with_a_profile_is_told_at_its_line(bakery, profiles, message):
    write_profiles(bakery, profiles)

    assert problem() == message


def test_profiles_that_are_nowhere_or_not_named_are_told(bakery):
    (bakery / "profiles.yml").unlink()
    remedy = "add one, or set DBT_PROFILES_DIR to its folder"
    assert problem() == f"bakery/profiles.yml: no such file, nor one in DBT_PROFILES_DIR or ~/.dbt: {remedy}"
    (bakery / "dbt_project.yml").write_text("name: bakery\n")

    assert problem() == "bakery/dbt_project.yml: names no profile: add `profile`, or name one in the source"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ("bakry", "'dbt' names no project of dbt: there is no bakry/dbt_project.yml"),
        ("{project: bakery/models}", "'project' names no project of dbt: there is no bakery/models/dbt_project.yml"),
        ("{target: dev}", "needs a project: the folder of dbt_project.yml"),
        ("{project: bakery, targt: dev}", "unknown setting 'targt': did you mean 'target'?"),
        ("{project: bakery, target: [dev]}", "`target` must be a name"),
    ],
)
def test_what_is_wrong_with_a_source_is_told_at_its_line(bakery, settings, message):
    assert message in problem(settings)
    assert problem(settings).startswith("s.queryeval.yaml:2: ")


def test_folders_of_a_project_may_have_other_names(bakery):
    project = "name: bakery\nprofile: bakery\nmodel-paths: [marts, staging]\ntarget-path: made\n"
    (bakery / "dbt_project.yml").write_text(project)

    rewriter = source().rewriter

    assert rewriter.folders == ("marts", "staging", "seeds", "snapshots")
    assert rewriter.manifest == bakery / "made/manifest.json"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("model-paths: ['/']", "model-paths: '/' is outside the project: name a folder in it"),
        ("model-paths: [models, ../other]", "model-paths: '../other' is outside the project: name a folder in it"),
        ("seed-paths: [link]", "seed-paths: 'link' is outside the project: name a folder in it"),
        ('model-paths: ["a\\0b"]', None),
        ("model-paths: [5]", "item of model-paths: expected a text, found '5'"),
        ("model-paths: [models, null]", "item of model-paths: expected a text, found nothing"),
        ("snapshot-paths: 5", "snapshot-paths: expected a list, found '5': write [5]"),
        ("target-path: 5", "target-path: expected a text, found '5'"),
        ("target-path: [made]", "target-path: expected text, found a list"),
    ],
)
def test_what_is_wrong_with_the_folders_of_a_project_is_told_at_its_line(bakery, line, message):
    (bakery.parent / "other").mkdir()
    (bakery / "link").symlink_to(bakery.parent / "other")
    (bakery / "dbt_project.yml").write_text(f"name: bakery\nprofile: bakery\n{line}\n")

    assert problem().startswith(f"bakery/dbt_project.yml:3: {message}" if message else "bakery/dbt_project.yml:3:")


def test_the_schemas_of_other_targets_are_those_of_the_profile(bakery):
    write_profiles(bakery, POSTGRES.replace("schema: prod", "schema: Prod"))

    assert source().rewriter.other_schemas == {"prod"}


def test_a_source_that_no_suite_states_opens_the_database(built_example, hosts, tmp_path):
    settings = {"project": "bakery"}
    engine = ENGINES["dbt"].open(Source(name="b", engine="dbt", settings=settings, folder=built_example), hosts)
    assert engine.execute("SELECT count(*) FROM dim_shops", timeout=10, max_rows=10).answer.rows == [(4,)]

    with pytest.raises(SourceError, match="source 'b': 'project' names no project of dbt"):
        ENGINES["dbt"].open(Source(name="b", engine="dbt", settings=settings, folder=tmp_path), hosts)


LOGIN = {"user": "me", "password": "a b/c", "host": "db.example", "schema": "dev"}


@pytest.mark.feature("database_servers")
@pytest.mark.parametrize(
    ("settings", "url", "names"),
    [
        (
            {**LOGIN, "type": "postgres", "dbname": "shop", "schema": "Dev 1", "sslmode": "require"},
            "postgresql://me:a%20b%2Fc@db.example/shop?sslmode=require&options=-csearch_path%3D%22Dev%5C+1%22%2Cpublic",
            ("shop", "Dev 1"),
        ),
        *(
            (
                {**LOGIN, "type": "postgres", "dbname": "shop", "schema": name},
                f"postgresql://me:a%20b%2Fc@db.example/shop?options=-csearch_path%3D%22{name}%22%2Cpublic",
                ("shop", name),
            )
            for name in ("Dev", "dev-1")
        ),
        (
            {**LOGIN, "type": "postgres", "pass": "x", "dbname": "shop", "host": "/run/pg", "search_path": "a,b"},
            "postgresql://me:a%20b%2Fc@/shop?options=-csearch_path%3Da%2Cb&host=%2Frun%2Fpg",
            ("shop", ""),
        ),
        (
            {**LOGIN, "type": "redshift", "dbname": "shop", "port": "5439"},
            "redshift+psycopg2://me:a%20b%2Fc@db.example:5439/shop",
            ("shop", "public"),
        ),
        (
            {**LOGIN, "type": "postgres", "dbname": "a b?c%20", "search_path": "a"},
            "postgresql://me:a%20b%2Fc@db.example/a b%3Fc%2520?options=-csearch_path%3Da",
            ("a b?c%20", ""),
        ),
        (
            {**LOGIN, "type": "redshift", "dbname": "a?b"},
            "redshift+psycopg2://me:a%20b%2Fc@db.example/a%3Fb",
            ("a?b", "public"),
        ),
        (
            {**LOGIN, "type": "snowflake", "account": "ab-12", "database": "SHOP", "warehouse": "wh", "role": "r"},
            "snowflake://me:a%20b%2Fc@ab-12/SHOP/dev?warehouse=wh&role=r",
            ("SHOP", "dev"),
        ),
        ({"type": "bigquery", "project": "p-1", "dataset": "dev"}, "bigquery://p-1/dev", ("p-1", "dev")),
        (
            {**LOGIN, "type": "trino", "database": "lake", "port": "8443"},
            "trino://me:a%20b%2Fc@db.example:8443/lake/dev",
            ("lake", "dev"),
        ),
        (
            {"type": "databricks", "host": "h", "http_path": "/sql/1", "token": "t/1", "catalog": "c", "schema": "dev"},
            "databricks://token:t%2F1@h?http_path=%2Fsql%2F1&catalog=c&schema=dev",
            ("c", "dev"),
        ),
        (
            {"type": "mysql", "server": "::1", "username": "me", "schema": "dev"},
            "mysql+pymysql://me@[::1]/dev",
            ("", "dev"),
        ),
    ],
    ids=lambda value: value["type"] if isinstance(value, dict) else "",
)
def test_each_database_has_the_url_of_its_sqlalchemy_dialect(bakery, monkeypatch, settings, url, names):
    sqlalchemy = pytest.importorskip("sqlalchemy")
    enter(bakery.parent, monkeypatch)  # with an engine that needs none of the drivers
    write_profiles(bakery, yaml.safe_dump({"bakery": {"target": "dev", "outputs": {"dev": settings}}}))

    opened_source = source()

    assert (opened_source.engine, opened_source.settings) == ("sqlalchemy", {"url": url})
    assert (opened_source.rewriter.database, opened_source.rewriter.schema) == names
    assert all(password not in repr(opened_source) for password in ("a b/c", "a%20b", "t/1", "t%2F1"))
    assert sqlalchemy.make_url(url).password == settings.get("password", settings.get("token"))
    if "dbname" in settings:
        assert sqlalchemy.make_url(url).database == settings["dbname"]
