"""Databases by their URLs: settings, drivers, and files through SQLAlchemy."""

import sqlite3
from contextlib import closing

import pytest
from opened_sources import contents, source_of
from table_definitions import SCRIPT

from pytest_queryeval.core.errors import SettingError
from pytest_queryeval.engines import ENGINES
from pytest_queryeval.testing import EngineContract, open_engine

pytest.importorskip("sqlalchemy")
pytest.importorskip("sqlglot")
NUMBERS = "with recursive n(i) as (select 1 union all select i + 1 from n)"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder in which nothing may change."""
    folder = tmp_path_factory.mktemp("music")
    with closing(sqlite3.connect(folder / "music.db")) as connection:
        connection.executescript(f"{SCRIPT} create table concerts (id integer primary key, city text);")
        connection.executescript("create table tickets (concert int references concerts (id));")
        connection.executescript("insert into concerts values (1, 'Graz'), (2, '50 %')")
    before = contents(folder)
    yield folder
    assert contents(folder) == before


@pytest.fixture(scope="module")
def engine(folder, hosts):
    with open_engine(source_of("sqlalchemy", folder, url="sqlite:///music.db"), hosts) as engine:
        yield engine


class TestSqlAlchemyOnSqlite(EngineContract):
    answers = {
        "select id, city from concerts where city like '%\\%' escape '\\'": (("id", "city"), [(2, "50 %")]),
        "select '{# x' as a, '/* /*' as a; -- done": (("a", "a"), [("{# x", "/* /*")]),
        "select id from concerts where id > 9": (("id",), []),
    }
    failures = {
        "unsafe": [
            "delete from concerts",
            "with old as (select 1) delete from concerts",
            "attach 'x.db' as x",
            "pragma query_only = off",
            "vacuum into 'x.db'",
            "select 1; select 2",
            "select 1 {# ; delete from concerts #}",
            "select {{ 1 }}",
            "select /* /* */ 1; delete from concerts -- */ 1 */",
            "select load_extension /* x */ ('x')",
            "select ( from",
        ],
        "invalid": [
            "selec 1",
            "select * from nowhere",
            f"select {'(' * 30_000}1{')' * 30_000}",
            "-- nothing",
            "select :name",
        ],
        "timeout": [f"{NUMBERS} select count(*) from n", "select printf('%.*c', 1e9, 'x')"],
        "too_large": [f"{NUMBERS} select i from n"],
    }
    rows = f"{NUMBERS} select i from n limit {{count}}"
    state = "select count(*), max(city) from concerts"
    schema = {"concerts": ("id", "city"), "tickets": ("concert",), "singer": ("id", "full name")}
    ddl = (
        "CREATE TABLE appearance (",
        "singer INTEGER,",
        "day TEXT,",
        "PRIMARY KEY (singer, day),",
        'FOREIGN KEY (singer) REFERENCES "Singer" (id)',
    )
    late_seconds = 0.5

    def broken_sources(self, folder):
        yield source_of("sqlalchemy", folder, url="sqlite:///gone.db"), "gone.db: no such file"


def test_a_duckdb_file_is_read_without_access_to_others(hosts, tmp_path):
    duckdb = pytest.importorskip("duckdb")
    pytest.importorskip("duckdb_engine")
    with duckdb.connect(str(tmp_path / "music.duckdb")) as connection:
        connection.execute("create table t as select 1 as x")
    (tmp_path / "other.csv").write_text("a\n1\n")
    expected = {
        "select x from t": [(1,)],
        "from t": [(1,)],
        f"select * from '{tmp_path}/other.csv'": "invalid",
        f"select * from read_csv('{tmp_path}/other.csv')": "invalid",
        "set enable_external_access = true": "unsafe",
        "insert into t values (2)": "unsafe",
        'select "setseed" (0.5)': "unsafe",
        "from query('select set' || 'seed(0.5)')": "unsafe",
        "select {'a': {'b': x}} is null from t": [(False,)],
        "select $$a; -- $$": [("a; -- ",)],
        "select $tag$a; $$ -- $tag$ ; ": [("a; $$ -- ",)],
    }

    with open_engine(source_of("sqlalchemy", tmp_path, url="duckdb:///music.duckdb"), hosts) as engine:
        executions = {query: engine.execute(query, timeout=5, max_rows=10) for query in expected}

    outcomes = {query: it.answer.rows if it.answer else it.error.kind for query, it in executions.items()}
    assert outcomes == expected


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({}, "needs a url"),
        ({"url": 7}, "`url` must be a URL such as postgresql://"),
        ({"url": "music"}, "`url` must be a URL such as postgresql://"),
        ({"url": "postgresql://u:se@cret@host/db"}, "in a password, @ is %40"),
        ({"url": "postgresql://host:port/db"}, "`url` must be a URL such as postgresql://"),
        ({"url": "postgresql+psycopg2://host/db"}, r"write postgresql\+psycopg://"),
        ({"url": "postgresql+asyncpg://host/db"}, r"write postgresql\+psycopg://"),
        ({"url": "postgresq://u:se%40cret@host/db"}, "unknown scheme 'postgresq://': did you mean 'postgresql'"),
        ({"url": "nothing+pymysql://host/db"}, "unknown scheme 'nothing://': install"),
        ({"url": "htp://host/sparql"}, "unknown scheme 'htp://': did you mean 'http'"),
        ({"url": "mysql+nodriver://host/db"}, "unknown driver 'nodriver' for 'mysql://': choose from .*pymysql"),
        ({"url": "mysql+pymsql://host/db"}, "unknown driver 'pymsql' for 'mysql://': did you mean 'pymysql'"),
        ({"url": "postgresql://host/db", "ulr": 1}, "unknown setting 'ulr': did you mean 'url'"),
    ],
)
def test_wrong_settings_are_told_without_the_url(settings, problem):
    with pytest.raises(SettingError, match=problem) as caught:
        ENGINES["sqlalchemy"].check(settings)

    assert "cret" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "package", "install"),
    [
        ("trino://user@host/catalog", "trino", "trino[sqlalchemy]"),
        ("snowflake://user@account/db", "snowflake.sqlalchemy", "pytest-queryeval[snowflake]"),
        ("snowflake://user@account/db", "sqlalchemy", "pytest-queryeval[snowflake]"),
        ("trino://user@host/catalog", "sqlalchemy", "pytest-queryeval[sqlalchemy]"),
        ("bigquery://project", "sqlalchemy_bigquery", "sqlalchemy-bigquery"),
        ("mssql+pyodbc://host/db", "pyodbc", "pyodbc"),
        ("mysql+mysqldb://host/db", "MySQLdb", "mysqlclient"),
        ("denodo+flightsql://host/db", "denodo", "denodo-sqlalchemy"),
        ("postgresql://host/db", "sqlalchemy", "pytest-queryeval[postgres]"),
        ("postgresql://host/db", "psycopg", "pytest-queryeval[postgres]"),
    ],
)
def test_driver_that_is_not_installed_is_named_with_what_installs_it(monkeypatch, url, package, install):
    monkeypatch.setattr(
        "pytest_queryeval.features.database_servers.engine.find_spec", lambda name: None if name == package else name
    )

    with pytest.raises(SettingError) as caught:
        ENGINES["sqlalchemy"].check({"url": url})

    assert f"needs the package '{package}', which is not installed: pip install '{install}'" in str(caught.value)


@pytest.mark.parametrize(
    ("url", "dialect"),
    [
        ("postgresql+psycopg://h/d", "postgres"),
        ("mariadb+pymysql://h/d", "mysql"),
        ("mssql+pyodbc://h/d", "tsql"),
        ("sqlite:///a.db", "sqlite"),
        ("trino://reader@host/catalog/schema", "trino"),
        ("snowflake://reader:password@account/db/schema?warehouse=small&role=reader", "snowflake"),
        ("bigquery://project/dataset", "bigquery"),
        ("clickhouse+native://reader@host/db", "clickhouse"),
        ("clickhousedb://reader@host/db", "clickhouse"),
        ("awsathena+rest://h/d", ""),
    ],
)
def test_dialect_of_a_source_is_told_by_its_scheme(url, dialect):
    assert ENGINES["sqlalchemy"].dialect({"url": url}) == dialect
