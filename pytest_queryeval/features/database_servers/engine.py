"""The engine `sqlalchemy`: databases by their SQLAlchemy URLs, queried from a child process.

PostgreSQL has its own driver, and another driver for write queries, which gets the statements of one text at a time.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

from pytest_queryeval.core.errors import SettingError, did_you_mean, nearest
from pytest_queryeval.core.model import Failure, Source
from pytest_queryeval.core.shapes import TRUE_OR_FALSE, pattern_shape, text_setting
from pytest_queryeval.engines import Engine, EngineType, Settings, WriteDriver
from pytest_queryeval.engines.bases import RemoteDatabase
from pytest_queryeval.engines.settings import check_settings
from pytest_queryeval.sandbox.host import GRACE_SECONDS, Host, Hosts, QueryRequest
from pytest_queryeval.text.redaction import may_hold_credentials, register_secrets

POSTGRES_DRIVER = Path(__file__).with_name("postgres_child.py")
POSTGRES_WRITES_DRIVER = Path(__file__).with_name("postgres_writes_child.py")
SQLALCHEMY_DRIVER = Path(__file__).with_name("sqlalchemy_child.py")
POSTGRES_PACKAGES = ("sqlalchemy", "psycopg")
SQLALCHEMY_PACKAGES = ("sqlalchemy",)
SQLALCHEMY_MEMORY = 4 * 2**30  # drivers with Arrow or gRPC map much more than they use
# Snowflake limits statements in whole seconds, and its driver takes seconds to start and log in again.
SNOWFLAKE_GRACE = 3.0
PROBE = "SELECT 1"


class Backend(NamedTuple):
    """A kind of database, which URLs name before `+` or `://`."""

    dialect: str = ""
    """sqlglot's name for its SQL; empty if it is unknown."""
    module: str = ""
    """The module of its default driver; empty if SQLAlchemy needs none."""
    install: str = ""
    """The requirement that installs `module`."""


POSTGRES = Backend("postgres", "psycopg", "pytest-queryeval[postgres]")
MYSQL = Backend("mysql", "MySQLdb", "mysqlclient")
CLICKHOUSE = Backend("clickhouse", "clickhouse_sqlalchemy", "clickhouse-sqlalchemy")
BACKENDS: Mapping[str, Backend] = {
    "postgresql": POSTGRES,
    "postgres": POSTGRES,
    "mysql": MYSQL,
    "mariadb": MYSQL,
    "sqlite": Backend("sqlite"),
    "duckdb": Backend("duckdb", "duckdb_engine", "duckdb-engine"),
    "mssql": Backend("tsql", "pyodbc", "pyodbc"),
    "oracle": Backend("oracle", "", "oracledb"),
    "snowflake": Backend("snowflake", "snowflake.sqlalchemy", "pytest-queryeval[snowflake]"),
    "bigquery": Backend("bigquery", "sqlalchemy_bigquery", "sqlalchemy-bigquery"),
    "trino": Backend("trino", "trino", "trino[sqlalchemy]"),
    "presto": Backend("presto", "pyhive", "pyhive[presto]"),
    "databricks": Backend("databricks", "databricks", "databricks-sqlalchemy"),
    "hive": Backend("hive", "pyhive", "pyhive[hive]"),
    "sparksql": Backend("spark", "pyhive", "pyhive[hive]"),
    "clickhouse": CLICKHOUSE,
    "clickhousedb": Backend("clickhouse", "clickhouse_connect", "clickhouse-connect[sqlalchemy]"),
    "redshift": Backend("redshift", "sqlalchemy_redshift", "sqlalchemy-redshift"),
    "denodo": Backend("postgres", "denodo", "denodo-sqlalchemy"),
}
# By the name behind `+`: the module, and what installs it.
DRIVERS: Mapping[str, tuple[str, str]] = {
    "pymysql": ("pymysql", "pymysql"),
    "mysqldb": ("MySQLdb", "mysqlclient"),
    "cymysql": ("cymysql", "cymysql"),
    "mysqlconnector": ("mysql", "mysql-connector-python"),
    "mariadbconnector": ("mariadb", "mariadb"),
    "pyodbc": ("pyodbc", "pyodbc"),
    "pymssql": ("pymssql", "pymssql"),
    "oracledb": ("oracledb", "oracledb"),
    "cx_oracle": ("cx_Oracle", "cx-Oracle"),
    "psycopg2": ("psycopg2", "psycopg2-binary"),
}
MYSQL_DRIVERS = ("pymysql", "mysqldb", "cymysql", "mysqlconnector", "mariadbconnector", "pyodbc")
# Drivers that come with SQLAlchemy; other packages register theirs.
BUILT_IN_DRIVERS: Mapping[str, tuple[str, ...]] = {
    "mysql": MYSQL_DRIVERS,
    "mariadb": MYSQL_DRIVERS,
    "mssql": ("pyodbc", "pymssql"),
    "oracle": ("oracledb", "cx_oracle"),
    "sqlite": ("pysqlite",),
}
FILE_BACKENDS = ("sqlite", "duckdb")
# Of Snowflake's URLs. Its driver ignores a misspelled one, so that a session has the rights of the user's default role.
SESSION_PARAMETERS = ("role", "warehouse")
REGISTRY = "sqlalchemy.dialects"
_URL = re.compile(
    r"(?P<backend>[a-z]\w*)(?:\+(?P<driver>\w+))?://(?:[^:/]*(?::[^@]*)?@)?"
    r"(?:\[[^/?\]]+\]|[^/:?@\[\]]*)(?::\d*)?(?:/[^?]*)?(?:\?.*)?",
    re.IGNORECASE | re.DOTALL,
)


def _backend_and_driver(url: str) -> tuple[str, str]:
    """Return the backend and the driver that a URL names, in lower case.

    The driver is empty if the URL leaves it open; both are empty for an invalid URL.
    """
    match = _URL.fullmatch(url)
    return (match["backend"].lower(), (match["driver"] or "").lower()) if match else ("", "")


SETTINGS = {
    "url": text_setting(
        "a URL such as postgresql://user:password@host/database (in a password, @ is %40 and / is %2F)",
        _URL.fullmatch,
        pattern_shape("^[A-Za-z]\\w*([+]\\w+)?://"),
    ),
    "scratch": TRUE_OR_FALSE,
}


def check(settings: Settings) -> None:
    """Raise `SettingError` for an invalid URL, an unknown backend or driver, or a package that is not installed.

    Messages quote no part of the URL.
    """
    check_settings(settings, SETTINGS)
    if "url" not in settings:
        raise SettingError("url", "needs a url")
    backend, driver = _backend_and_driver(settings["url"])
    _check_scheme(backend, driver)
    if backend in FILE_BACKENDS:  # their files are read by their engines, without SQLAlchemy
        if may_hold_credentials(settings["url"].partition("://")[2]):
            raise SettingError("url", f"'url' has another URL, or a connection string, where {backend} has a file")
        return
    for name, _ in parse_qsl(settings["url"].partition("?")[2]) if backend == "snowflake" else ():
        if name not in SESSION_PARAMETERS and (parameter := nearest(name, SESSION_PARAMETERS)):
            problem = f"a parameter of the URL resembles '{parameter}', and Snowflake would ignore it"
            raise SettingError("url", f"{problem}: write {parameter}=")
    backend_properties = BACKENDS.get(backend, Backend())
    if backend_properties is POSTGRES and driver not in ("", "psycopg"):
        raise SettingError("url", "PostgreSQL is read through psycopg: write postgresql+psycopg://")
    module, install = DRIVERS.get(driver, backend_properties[1:])
    extra = install if install.startswith("pytest-queryeval[") else "pytest-queryeval[sqlalchemy]"
    for package, requirement in (("sqlalchemy", extra), (module, install)):
        namespace = package.partition(".")[0]  # such as `snowflake`, which alone is not enough
        if package and (find_spec(namespace) is None or find_spec(package) is None):
            problem = f"{backend} needs the package '{package}', which is not installed"
            raise SettingError("url", f"{problem}: pip install '{requirement}'")


def _check_scheme(backend: str, driver: str) -> None:
    """Raise `SettingError` if the backend, or its driver, is unknown to SQLAlchemy and to this module."""
    drivers = BUILT_IN_DRIVERS.get(backend, ())
    if backend in BACKENDS and (not drivers or driver in ("", *drivers)):
        return
    registered = {entry.name.lower() for entry in entry_points(group=REGISTRY)}
    backends = {*BACKENDS, *(name.split(".")[0] for name in registered)}
    if backend not in backends:
        hint = did_you_mean(backend, {*backends, "http", "https"}) or ": install the SQLAlchemy dialect that reads it"
        raise SettingError("url", f"unknown scheme '{backend}://'{hint}")
    if drivers and f"{backend}.{driver}" not in registered:
        raise SettingError("url", f"unknown driver '{driver}' for '{backend}://'{did_you_mean(driver, drivers)}")


def dialect(settings: Settings) -> str:
    """Return sqlglot's name for the database's SQL; empty if it is unknown."""
    return BACKENDS.get(_backend_and_driver(str(settings.get("url")))[0], Backend()).dialect


def open_sqlalchemy(source: Source, hosts: Hosts) -> SQLAlchemyEngine:
    """Return the engine of `{sqlalchemy: url}`; nothing is sent before the first query.

    Credentials in the URL are registered as secrets.
    """
    url = source.settings["url"]
    register_secrets(source.settings)
    backend, _ = _backend_and_driver(url)
    if is_postgres(source.settings):
        host = hosts.shared(Host("postgresql", POSTGRES_DRIVER, packages=POSTGRES_PACKAGES))
        return SQLAlchemyEngine(source.name, host, {"url": psycopg_url(url)})
    name, grace = ("snowflake", SNOWFLAKE_GRACE) if backend == "snowflake" else ("sqlalchemy", GRACE_SECONDS)
    host = hosts.shared(
        Host(name, SQLALCHEMY_DRIVER, packages=SQLALCHEMY_PACKAGES, memory=SQLALCHEMY_MEMORY, grace=grace)
    )
    child_settings = {"url": url, "folder": str(source.folder.absolute())}
    return SQLAlchemyEngine(source.name, host, child_settings, guarded_dialect=dialect(source.settings))


def is_postgres(settings: Settings) -> bool:
    """Return whether the settings' URL is that of a PostgreSQL database."""
    return BACKENDS.get(_backend_and_driver(str(settings.get("url")))[0]) is POSTGRES


def psycopg_url(url: str) -> str:
    """Return a PostgreSQL URL with psycopg as its driver."""
    return f"postgresql+psycopg{url[url.index('://') :]}"


class SQLAlchemyEngine(RemoteDatabase):
    """A database by its SQLAlchemy URL; `settings` are those of its child process.

    With a `guarded_dialect`, queries are parsed in that dialect, and refused unless they only read.
    """

    def __init__(
        self, name: str, host: Host, settings: Mapping[str, Any], *, guarded_dialect: str | None = None
    ) -> None:
        self._guarded_dialect = guarded_dialect
        super().__init__(
            name,
            host,
            settings,
            QueryRequest(PROBE, settings),
            ambiguous_failures=("timeout", "rejected"),
            retryable_failures=("rejected",),  # a server that a query brought down starts again
        )

    def _refusal(self, query: str) -> Failure | None:
        if self._guarded_dialect is None:
            return None
        from pytest_queryeval.engines.readonly import refusal

        return refusal(query, self._guarded_dialect)


SQLALCHEMY = EngineType(
    opener=open_sqlalchemy, kind="sql", dialect=dialect, text_setting="url", check=check, settings=SETTINGS
)


def read_writes(query: str) -> Settings | Failure:
    """Return the statements of a text as settings for the child process, or the failure that they are not allowed."""
    from pytest_queryeval.features.database_servers.postgres_statements import read_statements

    statements = read_statements(query)
    return statements if isinstance(statements, Failure) else {"statements": statements}


def url_settings(source: Source, _: Engine) -> Settings:
    """Return the settings of requests for write queries on a source."""
    return {"url": psycopg_url(source.settings["url"])}


def check_writes(source: Source) -> None:
    """Raise `SettingError` unless a source is a PostgreSQL database with `scratch: true`."""
    if not is_postgres(source.settings):
        raise SettingError("url", "`writes` works with PostgreSQL, SQLite and DuckDB only: name such a database")
    if source.settings.get("scratch") is not True:
        remedy = "name another one, or write `scratch: true` next to `url` if nobody else uses it during the run"
        raise SettingError("url", f"`writes` changes this database during the run: {remedy}")


WRITES = WriteDriver(
    host=partial(Host, "postgresql writes", POSTGRES_WRITES_DRIVER, packages=POSTGRES_PACKAGES),
    settings=url_settings,
    check=check_writes,
    read=read_writes,
    waits=True,
)
