"""The target of a dbt profile, and the connection to its database: engine, settings, and default names.

The target is read from `profiles.yml`. Of its Jinja only `env_var` is expanded, by pattern:
https://docs.getdbt.com/docs/core/connect-data-platform/profiles.yml
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, urlencode

from pytest_queryeval.core.errors import did_you_mean
from pytest_queryeval.documents.document import Node, file_at
from pytest_queryeval.documents.values import entries, required_text
from pytest_queryeval.documents.yaml_nodes import read_yaml
from pytest_queryeval.sandbox.driver import quoted
from pytest_queryeval.suites.variables import variable
from pytest_queryeval.text.redaction import register_secrets

DUCKDB_SCHEMA = "main"
SSL = ("sslmode", "sslcert", "sslkey", "sslrootcert")
PROFILES = "profiles.yml"
PROFILES_DIR = "DBT_PROFILES_DIR"
SCHEMAS = ("schema", "dataset")
_QUOTED = r"""(?:'[^'\n]*'|"[^"\n]*")"""
_ENV_VAR = re.compile(
    rf"\{{\{{-?\s*env_var\(\s*(?P<name>{_QUOTED})\s*(?:,\s*(?P<default>{_QUOTED}|[\w.]+)\s*)?\)\s*"
    r"(?:\|\s*(?:int|as_number|as_bool|as_native|as_text)\s*)*-?\}\}"
)
_JINJA = re.compile(r"\{[{%#]")


@dataclass(frozen=True, slots=True)
class Target:
    """A target of a profile: its name, and the texts and numbers of its settings with `env_var` expanded."""

    name: str
    node: Node = field(repr=False)
    settings: dict[str, str] = field(repr=False)
    other_schemas: frozenset[str] = frozenset()
    """The schemas of the profile's other targets in lower case, without expansion of `env_var`."""

    def require(self, *names: str) -> str:
        """Return the value of the first of these settings that the target has; raise `CaseError` if it has none."""
        for name in names:
            if name in self.settings:
                return self.settings[name]
        raise self.node.problem(f"the target '{self.name}' has no `{names[0]}`: add it")


def read_target(project: Path, profile: str, target: str | None, variables_folder: Path) -> Target:
    """Return a target of a profile, by default the target that the profile names.

    `profiles.yml` is searched in DBT_PROFILES_DIR, the project and ~/.dbt. Variables are those of the environment, or
    of the `env_file` of `variables_folder`. The settings are registered as secrets. Raise `CaseError` if no file has
    the profile, and for a variable that is not set.
    """
    folders = [variable(PROFILES_DIR, variables_folder), project, Path.home() / ".dbt"]
    paths = [Path(folder) / PROFILES for folder in folders if folder]
    path = next((path for path in paths if path.exists()), None)
    if path is None:
        problem = f"no such file, nor one in {PROFILES_DIR} or ~/.dbt: add one, or set {PROFILES_DIR} to its folder"
        raise file_at(project / PROFILES).problem(problem)
    file = file_at(path)
    top = read_yaml(file).root
    if top is None:
        raise file.problem(f"is empty: add the profile '{profile}'")
    profiles = entries(top)
    if profile not in profiles:
        raise top.problem(f"has no profile '{profile}'{did_you_mean(profile, profiles)}")
    parts = entries(profiles[profile])
    if "outputs" not in parts:
        raise profiles[profile].problem(f"the profile '{profile}' has no `outputs`: add them")
    outputs = entries(parts["outputs"])
    name = target or (_expanded_text(parts["target"], variables_folder) if "target" in parts else "default")
    if name not in outputs:
        raise parts["outputs"].problem(f"the profile '{profile}' has no target '{name}'{did_you_mean(name, outputs)}")
    settings = {
        key: _expanded_text(value, variables_folder)
        for key, value in entries(outputs[name]).items()
        if isinstance(value.value, str) and not value.empty
    }
    register_secrets(settings)
    other_targets = [node.value for key, node in outputs.items() if key != name and isinstance(node.value, dict)]
    schemas = {str(output[key].value).lower() for output in other_targets for key in SCHEMAS if key in output}
    return Target(name, outputs[name], settings, frozenset(schemas))


def _expanded_text(node: Node, variables_folder: Path) -> str:
    """Return the text of a node with the values of variables instead of `env_var`.

    Raise `CaseError` for a variable without value or default, and for other Jinja.
    """

    def value_of(match: re.Match[str]) -> str:
        name = match["name"][1:-1]
        value = variable(name, variables_folder)
        if value is None:
            value = match["default"]
            if value is None:
                raise node.problem(f"environment variable '{name}' is not set: set it, or give env_var a default")
            value = value.strip("'\"")
        return value

    text = required_text(node)
    if _JINJA.search(_ENV_VAR.sub("", text)):
        raise node.problem(f"`{node.key}` has Jinja other than {{{{ env_var('NAME') }}}}, which is not expanded")
    return _ENV_VAR.sub(value_of, text)


class Connection(NamedTuple):
    """The database of a target: the engine and the settings of a source, and the default database and schema."""

    engine: str
    settings: Mapping[str, str]
    database: str = ""
    """The database that a name without one means; empty if the server has no databases."""
    schema: str = ""
    """The schema that a name without one means; empty if such names are not looked up in the target's schema."""


def connection_of(target: Target, project: Path) -> Connection:
    """Return the connection to a target's database.

    Raise `CaseError` if no engine reads its type, if a setting is missing, or if DuckDB's database is not a file.
    """
    adapter = target.require("type")
    if adapter == "duckdb":
        path = target.settings.get("path", ":memory:")
        if ":" in path:
            in_memory = path.startswith(":memory:")
            place = "memory, which dbt loses when it ends" if in_memory else "another place than a file"
            raise target.node.problem(
                f"the database of the target '{target.name}' is in {place}: give it a file as `path`"
            )
        file = project / path
        return Connection("duckdb", {"path": str(file)}, database=file.stem, schema=DUCKDB_SCHEMA)
    if adapter not in DATABASES:
        hint = did_you_mean(adapter, ("duckdb", *DATABASES))
        raise target.node.problem(f"no engine reads the type '{adapter}' of the target '{target.name}'{hint}")
    return DATABASES[adapter](target)


def _postgres(target: Target) -> Connection:
    schema, path = target.require("schema"), target.settings.get("search_path")
    parameters = {name: target.settings[name] for name in SSL if name in target.settings}
    # Names without a schema are those of the target's schema, as predictors see them; dbt always writes the schema.
    schema_in_path = schema if schema.isidentifier() and schema.islower() else quoted(schema)
    parameters["options"] = "-csearch_path=" + (path or f"{schema_in_path},public").replace(" ", "\\ ")
    database = target.require("dbname", "database")
    url = _url("postgresql", target, _escape_database_name(database), parameters, user=target.require("user"))
    return _by_url(url, database, "" if path else schema)


def _escape_database_name(name: str) -> str:
    """Return the name of a database for the path of a URL, with `%` and `?` escaped.

    SQLAlchemy decodes escapes there from 2.1 on, and reads a name up to `?`.
    """
    return name.replace("%", "%25").replace("?", "%3F")


def _redshift(target: Target) -> Connection:
    database = target.require("dbname", "database")
    url = _url("redshift+psycopg2", target, _escape_database_name(database), {}, user=target.require("user"))
    return _by_url(url, database, "public")


def _snowflake(target: Target) -> Connection:
    database, schema = target.require("database"), target.require("schema")
    names = ("warehouse", "role", "authenticator")
    parameters = {name: target.settings[name] for name in names if name in target.settings}
    place = f"{quote(database)}/{quote(schema)}"
    account = target.require("account")
    return _by_url(
        _url("snowflake", target, place, parameters, user=target.require("user"), host=account), database, schema
    )


def _bigquery(target: Target) -> Connection:
    project, dataset = target.require("project", "database"), target.require("dataset", "schema")
    parameters = {"credentials_path": target.settings["keyfile"]} if "keyfile" in target.settings else {}
    return _by_url(f"bigquery://{quote(project)}/{quote(dataset)}{_query(parameters)}", project, dataset)


def _trino(target: Target) -> Connection:
    database, schema = target.require("database"), target.require("schema")
    place = f"{quote(database)}/{quote(schema)}"
    return _by_url(_url("trino", target, place, {}, user=target.require("user")), database, schema)


def _databricks(target: Target) -> Connection:
    schema, catalog = target.require("schema"), target.settings.get("catalog", "hive_metastore")
    parameters = {"http_path": target.require("http_path"), "catalog": catalog, "schema": schema}
    address = f"databricks://token:{quote(target.require('token'), safe='')}@{target.require('host')}"
    return _by_url(f"{address}{_query(parameters)}", catalog, schema)


def _mysql(target: Target) -> Connection:
    schema = target.require("schema")
    url = _url("mysql+pymysql", target, _escape_database_name(schema), {}, user=target.require("username", "user"))
    return _by_url(url, "", schema)


DATABASES: Mapping[str, Callable[[Target], Connection]] = {
    "postgres": _postgres,
    "redshift": _redshift,
    "snowflake": _snowflake,
    "bigquery": _bigquery,
    "trino": _trino,
    "databricks": _databricks,
    "mysql": _mysql,
    "mariadb": _mysql,
}
"""By the types of profiles, the databases that are read through their SQLAlchemy dialects."""


def _by_url(url: str, database: str, schema: str) -> Connection:
    return Connection("sqlalchemy", {"url": url}, database=database, schema=schema)


def _url(
    scheme: str, target: Target, place: str, parameters: Mapping[str, str], *, user: str, host: str | None = None
) -> str:
    """Return a SQLAlchemy URL with the user, password, host and port of a target; `place` is its path.

    A host that is a folder of a socket becomes a parameter.
    """
    password = target.settings.get("password", target.settings.get("pass"))
    login = quote(user, safe="") + ("" if password is None else f":{quote(password, safe='')}")
    host = host or target.require("host", "server")
    if host.startswith("/"):  # the folder of a socket
        host, parameters = "", {**parameters, "host": host}
    if ":" in host:
        host = f"[{host}]"
    port = f":{target.settings['port']}" if "port" in target.settings else ""
    return f"{scheme}://{login}@{host}{port}/{place}{_query(parameters)}"


def _query(parameters: Mapping[str, str]) -> str:
    return f"?{urlencode(parameters)}" if parameters else ""
