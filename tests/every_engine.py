"""Sources with the same data on every engine of the registry, for tests of what holds for all of them.

An engine that takes a `script`, or `files` for SPARQL, needs nothing here; a server has a function among `SERVERS`.
ClickHouse and Snowflake, other databases behind the engine `sqlalchemy`, are named by the schemes of their URLs.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from functools import partial
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, TypeAlias

import pytest
import servers
from http_services import Asked, Said, serving

from pytest_queryeval.core.errors import SettingError
from pytest_queryeval.core.model import Source
from pytest_queryeval.engines import ENGINES

CLICKHOUSE = ("clickhouse+native", "clickhouse+http")
CLICKHOUSE_TYPES = {"INTEGER": "Int32", "DOUBLE": "Float64", "DATE": "Date", "VARCHAR": "String"}  # by those of DuckDB
SNOWFLAKE = "snowflake"
# One that resolves to another engine is tested as that.
SQL = tuple(name for name in ENGINES.available() if ENGINES[name].kind == "sql" and ENGINES[name].resolve is None)
DATABASES = (*SQL, *CLICKHOUSE, SNOWFLAKE)
SPARQL = tuple(name for name in ENGINES.available() if ENGINES[name].kind == "sparql")
SERVICE_SECONDS = 2.0
Settings: TypeAlias = dict[str, Any]
# A folder, the data as statements of SQL or as TriG, and what asks for fixtures.
Server: TypeAlias = Callable[[Path, str, pytest.FixtureRequest], AbstractContextManager[Settings]]


@contextmanager
def source_on(name: str, folder: Path, data: str, request: pytest.FixtureRequest) -> Iterator[Source]:
    """A source on an engine; skips the test where the engine's package or server is missing."""
    engine = name if name in ENGINES.available() else "sqlalchemy"
    with SERVERS.get(name, in_a_file)(folder, data, request) as settings:
        try:
            ENGINES[engine].check(settings)
        except SettingError as error:
            if "pip install" not in str(error):
                raise
            pytest.skip(str(error))
        yield Source(name=name, engine=engine, settings=settings, folder=folder)


@contextmanager
def in_a_file(folder: Path, data: str, _: pytest.FixtureRequest) -> Iterator[Settings]:
    """The data as a script, or as a graph."""
    setting, name = ("script", "data.sql") if "create table" in data.lower() else ("files", "data.trig")
    (folder / name).write_text(data, encoding="utf-8")
    yield {setting: name}


@contextmanager
def on_postgres(folder: Path, data: str, request: pytest.FixtureRequest) -> Iterator[Settings]:
    """A database of its own on the tests' cluster."""
    cluster = request.getfixturevalue("cluster")
    database = folder.name.lower().replace("-", "_")
    cluster.sql(f"create database {database} owner owner")
    cluster.sql(data, user="owner", database=database)
    yield {"url": cluster.url(database=database)}


@contextmanager
def in_spark(folder: Path, data: str, _: pytest.FixtureRequest) -> Iterator[Settings]:
    """Tables in files, which DuckDB makes of the data."""
    import duckdb

    with duckdb.connect() as connection:
        connection.execute(data)
        names = [name for (name,) in connection.execute("select table_name from information_schema.tables").fetchall()]
        for name in names:
            connection.execute(f"copy (from {name}) to '{folder / name}.parquet'")
    yield {"tables": {name: f"{name}.parquet" for name in names}}


@contextmanager
def on_clickhouse(scheme: str, folder: Path, data: str, request: pytest.FixtureRequest) -> Iterator[Settings]:
    """A database of its own, with the tables that DuckDB makes of the data."""
    import duckdb

    server = request.getfixturevalue("clickhouse")
    database = scheme.partition("+")[2]
    server.sql(f"create database {database}")
    with duckdb.connect() as connection:
        connection.execute(data)
        columns = (
            "select table_name, column_name, data_type from information_schema.columns order by 1, ordinal_position"
        )
        for name, described in groupby(connection.execute(columns).fetchall(), itemgetter(0)):
            definitions = ", ".join(f"{column} Nullable({CLICKHOUSE_TYPES[kind]})" for _, column, kind in described)
            connection.execute(f"copy (from {name}) to '{folder / name}.csv' (header false, nullstr '\\N')")
            rows = (folder / f"{name}.csv").read_text(encoding="utf-8")
            server.sql(
                f"create table {database}.{name} ({definitions}) engine = Log",
                f"insert into {database}.{name} format CSV\n{rows}",
            )
    yield {"url": server.url(scheme, database=database)}
    server.sql(f"drop database {database}")


@contextmanager
def on_snowflake(folder: Path, data: str, request: pytest.FixtureRequest) -> Iterator[Settings]:
    """A schema of its own."""
    server = request.getfixturevalue("snowflake")
    schema = folder.name.lower().replace("-", "_")
    server.sql(f"create schema music.{schema}")
    server.sql(*filter(str.strip, data.split(";")), database=f"music/{schema}")
    yield {"url": server.url(f"music/{schema}")}


@contextmanager
def behind_http(folder: Path, data: str, _: pytest.FixtureRequest) -> Iterator[Settings]:
    """A service on a SQLite file, which gives up late queries itself."""
    path = folder / "service.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(data)

    def answer(asked: Asked) -> Said:
        deadline = time.monotonic() + SERVICE_SECONDS
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as connection:
            connection.set_progress_handler(lambda: time.monotonic() > deadline, 10_000)
            try:
                cursor = connection.execute(json.loads(asked.body)["sql"])
                rows = cursor.fetchall()
            except sqlite3.Error as error:
                return Said({"error": str(error)}, 400)
        return Said({"columns": [column[0] for column in cursor.description or ()], "rows": rows})

    with serving(answer) as service:
        body = {"sql": "{query}"}
        yield {"url": service.url, "body": body, "rows": "$.rows", "columns": "$.columns", "dialect": "sqlite"}


@contextmanager
def behind_an_endpoint(folder: Path, data: str, _: pytest.FixtureRequest) -> Iterator[Settings]:
    """Oxigraph's own server."""
    (folder / "data.trig").write_text(data, encoding="utf-8")
    with servers.oxigraph(folder / "store", [folder / "data.trig"]) as url:
        yield {"url": url}


SERVERS: dict[str, Server] = {
    "sqlalchemy": on_postgres,
    "http": behind_http,
    "endpoint": behind_an_endpoint,
    "spark": in_spark,
    SNOWFLAKE: on_snowflake,
    **{scheme: partial(on_clickhouse, scheme) for scheme in CLICKHOUSE},
}
WITHOUT_KEYS = ("spark", *CLICKHOUSE, SNOWFLAKE)  # have no constraints to list, or the stand-in has none
