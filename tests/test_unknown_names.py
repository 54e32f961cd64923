"""A gold that names a table or a column which its source does not have is told the nearest one, on every SQL engine."""

import sqlite3

import duckdb
import pytest
from samples import make_case, query

from pytest_queryeval.core.db_schema import Schema
from pytest_queryeval.core.errors import GoldError
from pytest_queryeval.core.model import Source
from pytest_queryeval.evaluation import Session, evaluate_case
from pytest_queryeval.languages import KINDS

pytest_plugins = ["postgres", "mariadb"]

TABLES = "create table concerts (id int primary key, city text, price int)"


@pytest.fixture(
    scope="module",
    params=[
        "sqlite",
        pytest.param("duckdb", marks=pytest.mark.feature("duckdb")),
        pytest.param("postgresql", marks=pytest.mark.feature("database_servers")),
        pytest.param("mariadb", marks=pytest.mark.feature("database_servers")),
    ],
)
def source(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("music")
    match request.param:
        case "sqlite":
            sqlite3.connect(folder / "a.db").executescript(TABLES).close()
            return Source(name="music", engine="sqlite", settings={"path": "a.db"}, folder=folder)
        case "duckdb":
            duckdb.connect(folder / "a.duckdb").execute(TABLES).close()
            return Source(name="music", engine="duckdb", settings={"path": "a.duckdb"}, folder=folder)
        case server:
            url = request.getfixturevalue({"postgresql": "cluster"}.get(server, server)).url()
            return Source(name="music", engine="sqlalchemy", settings={"url": url}, folder=folder)


@pytest.fixture(scope="module")
def session():
    with Session() as opened:
        yield opened


@pytest.mark.parametrize(
    ("gold", "nearest"),
    [
        ("select count(*) from concert", "concerts"),
        ("select c.id from concertz as c where c.city = 'Graz'", "concerts"),
        ("select citty from concerts", "city"),
        ("select c.prize from concerts as c order by c.id", "price"),
    ],
)
def test_a_gold_with_an_unknown_name_is_told_the_nearest(session, source, gold, nearest):
    case = make_case(source=source, golds=(query(gold),), predicted=query("select 1"), timeout=30.0)

    with pytest.raises(GoldError, match=rf"(?i)(did you mean|perhaps you meant|candidate).*\b{nearest}\b"):
        evaluate_case(case, session)


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("SELECT leftx(name) FROM singer", "no such function: leftx", ""),
        ("SELECT name FROM singer, shop", "ambiguous column name: name", ""),
        ("SELECT nme FROM singer", 'column "nme" does not exist. Perhaps you meant to reference "singer.name".', ""),
        ("SELECT s.nme FROM singer s", "Unknown column 's.nme' in 'SELECT'", ": did you mean 'name'?"),
        ("SELECT nme FROM singer", 'Referenced column "nme" not found in FROM clause!', ": did you mean 'name'?"),
        ("SELECT lft FROM singer", "no such column: lft", ": choose from id, name"),
        ("SELECT lft FROM form, singer", "no such column: lft", ": did you mean 'left'?"),
        ("SELECT * FROM x.singers", "Table 'x.singers' doesn't exist", ": did you mean 'singer'?"),
        ("SELECT name FORM singer", 'near "singer": syntax error', ": did you mean FROM instead of FORM?"),
    ],
)
def test_the_message_of_a_server_gets_a_hint_unless_it_has_one(text, message, hint):
    schema = Schema(tables={"singer": ("id", "name"), "form": ("left",)})

    assert KINDS["sql"].name_hint(text, message, schema) == hint
    assert KINDS["sql"].name_hint(text, message, Schema()) in ("", ": did you mean FROM instead of FORM?")
