"""The tables that services give over HTTP, and what they are sent."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import http_services
import pytest
import yaml
from http_services import SERVICES, SETTINGS, Said, serving
from suites import case, enter, problem

from pytest_queryeval.core.errors import SettingError, SourceError
from pytest_queryeval.core.model import Source
from pytest_queryeval.engines import ENGINES
from pytest_queryeval.features.http_engine import SETTINGS as SETTINGS_OF_SOURCES
from pytest_queryeval.sandbox.host import Hosts
from pytest_queryeval.sandbox.http_messages import render

DOCS = (Path(__file__).parents[3] / "docs" / "http.md").read_text(encoding="utf-8")
SCRIPT = """
CREATE TABLE concert (id INTEGER, title TEXT, price REAL, seats INTEGER);
INSERT INTO concert VALUES (1, 'Frühling', 12.5, 300), (2, 'It''s "over"', NULL, 40), (3, '{query} $.rows', 0.1, NULL),
  (4, '', 1e-7, 9007199254740993), (5, NULL, -3.0, -1), (6, 'a\nb', 100.0, 0), (7, '雪', 7.0, 7);
"""
QUERIES = {
    "all": "SELECT id, title, price, seats FROM concert ORDER BY id",
    "one number": "SELECT COUNT(*) AS n FROM concert",
    "nothing": "SELECT id, title FROM concert WHERE id > 100",
    "a null": "SELECT MAX(price) AS p FROM concert WHERE id > 100",
    "floats": "SELECT SUM(price) AS s, AVG(seats) AS a FROM concert",
    "a join": "SELECT a.id AS x, b.id AS y FROM concert AS a JOIN concert AS b ON a.id < b.id ORDER BY x, y",
    "two columns of one name": "SELECT a.id AS id, b.price AS id FROM concert a JOIN concert b ON a.id = b.id - 1",
    "quotes and braces": "SELECT title FROM concert WHERE title IN ('It''s \"over\"', '{query} $.rows', '\\\"}')",
    "a comment": "SELECT id -- {limit}\nFROM concert /* }{ */ ORDER BY id LIMIT 3",
    "a common table": "WITH c AS (SELECT id FROM concert) SELECT id FROM c UNION ALL SELECT seats FROM concert",
}
UNSAFE = [
    "DROP TABLE concert",
    "DELETE FROM concert",
    "UPDATE concert SET id = 1",
    "INSERT INTO concert VALUES (1)",
    "REPLACE INTO concert VALUES (1)",
    "CREATE TABLE x (y INT)",
    "CREATE TABLE x AS SELECT 1 AS y",
    "ALTER TABLE concert ADD COLUMN x INT",
    "TRUNCATE TABLE concert",
    "SELECT 1; DROP TABLE concert",
    "SELECT 1; SELECT 2",
    "SELECT 1; -- x\nDROP TABLE concert",
    "WITH x AS (DELETE FROM concert RETURNING id) SELECT id FROM x",
    "WITH x AS (SELECT 1) INSERT INTO concert SELECT * FROM x",
    "SELECT id INTO copied FROM concert",
    "SELECT id FROM concert FOR UPDATE",
    "SELECT 1 /*! INTO OUTFILE 'x.txt' */",
    "SELECT 1 /*M!100000 , 2 */",
    "GRANT ALL ON concert TO somebody",
    "SET readonly = 0",
    "USE other",
    "CALL run_it()",
    "EXPLAIN SELECT 1",
    "PRAGMA writable_schema = 1",
    "COPY concert TO 'x.txt'",
    "BEGIN",
    "COMMIT",
    "MERGE INTO concert USING x ON concert.id = x.id WHEN MATCHED THEN DELETE",
    "SELECT 1 INTO OUTFILE 'x.txt'",
    "VACUUM",
]
PLAIN = {"body": {"sql": "{query}", "top": "{limit}"}, "rows": "$.rows"}


@pytest.fixture(scope="module")
def database(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "concerts.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(SCRIPT)
    return path


@pytest.fixture
def execute(hosts, tmp_path):
    """Runs a query on the service at a URL."""

    def run(url, query="SELECT 1 AS x", timeout=20, max_rows=1000, **settings):
        engine = opened(hosts, tmp_path, url=url, **(settings or PLAIN))
        return engine.execute(query, timeout=timeout, max_rows=max_rows)

    return run


def opened(hosts, folder, **settings):
    return ENGINES["http"].open(Source(name="s", engine="http", settings=settings, folder=folder), hosts)


def said(body, status=200):
    return lambda request: Said(body, status)


@pytest.mark.parametrize("name", SERVICES)
@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
def test_every_service_gives_the_table_that_sqlite_gives(execute, database, name, query):
    service, path = SERVICES[name]
    columns, rows = http_services.answered(database, query)

    with serving(service(database), path) as running:
        execution = execute(running.url, query, **SETTINGS[name])

    assert execution.error is None
    assert execution.answer.rows == rows
    assert [list(map(type, row)) for row in execution.answer.rows] == [list(map(type, row)) for row in rows]
    if rows or name != "denodo":  # which names no columns where there are no rows
        assert list(execution.answer.columns) == columns
    assert execution.answer.has_header is bool(rows or name != "denodo")
    assert execution.engine == "http"


@pytest.mark.parametrize("name", SERVICES)
def test_query_that_a_service_refuses_is_invalid_where_the_trivial_one_is_answered(execute, database, name):
    service, path = SERVICES[name]

    with serving(service(database), path) as running:
        error = execute(running.url, "SELECT gone FROM concert", **SETTINGS[name]).error

    assert error.kind == ("rejected" if name == "denodo" else "invalid")
    assert "no such column: gone" in error.message


@pytest.mark.parametrize("name", ["denodo", "clickhouse", "trino"])
def test_wrong_credentials_are_a_source_error_that_does_not_tell_them(execute, database, name):
    service, path = SERVICES[name]
    settings = {**SETTINGS[name], "auth": {"basic": "tester:wr0ng-horse"}, "headers": {"X-ClickHouse-Key": "wr0ng-key"}}

    with serving(service(database), path) as running, pytest.raises(SourceError, match=r"HTTP 40[13]") as caught:
        execute(running.url, **settings)

    assert "wr0ng" not in str(caught.value)


@pytest.mark.parametrize("name", SERVICES)
def test_one_row_more_than_allowed_is_too_large_on_every_service(execute, database, name):
    service, path = SERVICES[name]

    with serving(service(database), path) as running:
        allowed = execute(running.url, QUERIES["all"], max_rows=7, **SETTINGS[name])
        refused = execute(running.url, QUERIES["all"], max_rows=6, **SETTINGS[name])

    assert len(allowed.answer.rows) == 7
    assert (refused.error.kind, refused.error.message) == (
        "too_large",
        "more than 6 rows: raise `max_rows` if there may be more",
    )


def test_pages_are_fetched_as_each_names_the_next(execute, database):
    with serving(http_services.trino(database), "/v1/statement") as running:
        execution = execute(running.url, QUERIES["all"], **SETTINGS["trino"])

    assert [row[0] for row in execution.answer.rows] == [1, 2, 3, 4, 5, 6, 7]
    assert [request.method for request in running.asked] == ["POST", "GET", "GET", "GET", "GET", "GET"]
    assert [request.body for request in running.asked] == [QUERIES["all"], "", "", "", "", ""]
    assert {request.headers["x-trino-user"] for request in running.asked} == {"tester"}


def test_no_more_pages_are_fetched_than_rows_are_allowed(execute, database):
    with serving(http_services.trino(database), "/v1/statement") as running:
        execution = execute(running.url, QUERIES["a join"], max_rows=3, **SETTINGS["trino"])

    assert execution.error.kind == "too_large"
    assert len(running.asked) == 3


@pytest.mark.parametrize(("size", "requests"), [(3, 4), (7, 2), (8, 2), (1, 8)])
def test_pages_are_counted_up_to_one_without_rows(execute, database, size, requests):
    body = "sql={query}&top={limit}&skip={offset}"

    with serving(http_services.offsets(database)) as running:
        answer = execute(running.url, QUERIES["all"], body=body, rows="$.result.rows", page_size=size).answer

    assert answer.rows == http_services.answered(database, QUERIES["all"])[1]
    assert len(running.asked) == requests


def test_numbers_of_pages_start_at_one(execute):
    with serving(lambda request: Said({"rows": [[1]] * (len(running.asked) < 3)})) as running:
        settings = {"method": "GET", "params": {"q": "{query}", "page": "{page}"}, "rows": "$.rows", "page_size": 1}
        answer = execute(running.url, **settings).answer

    assert answer.rows == [(1,), (1,)]
    assert [request.parameters["page"] for request in running.asked] == ["1", "2", "3"]


HOSTILE = [
    'SELECT \'"}, "limit": 1, {"a": "\' AS x',
    "SELECT '{limit}{query}{offset}' AS x",
    "SELECT '&top=0&sql=SELECT+2%20%2B#?' AS x",
    "SELECT '\\\\' AS x, '\\u0022' AS y",
    "SELECT 'a\r\nX-Injected: 1\r\n\r\n' AS x",
    "SELECT '\x00\x1b\x7f\u2028 ü 雪 𝄞' AS x",
    "SELECT '${HOME} %s %(x)s {0} {{query}}' AS x",
]


@pytest.mark.parametrize("query", HOSTILE)
def test_query_stays_one_value_wherever_it_is_put(execute, query):
    settings = {"json": {"sql": "{query}", "nested": [{"a": "<{query}>"}], "top": "{limit}", "rest": "{other}"}}
    with serving(said({"rows": []})) as running:
        for body in (settings["json"], "{query}", "sql={query}&top={limit}"):
            execute(running.url, query, body=body, rows="$.rows", max_rows=9)
        execute(running.url, query, method="GET", params={"sql": "{query}", "top": "{limit}"}, rows="$.rows")

    as_json, as_text, as_form, as_parameter = running.asked
    assert json.loads(as_json.body) == {"sql": query, "nested": [{"a": f"<{query}>"}], "top": 10, "rest": "{other}"}
    assert as_text.body == query
    assert http_services.urllib.parse.parse_qs(as_form.body) == {"sql": [query], "top": ["10"]}
    assert as_parameter.parameters == {"sql": query, "top": "1001"}
    assert "x-injected" not in {name for request in running.asked for name in request.headers}
    assert [request.headers.get("content-type") for request in running.asked] == [
        "application/json",
        "text/plain; charset=utf-8",
        "application/x-www-form-urlencoded",
        None,
    ]


def test_names_in_a_template_are_never_filled():
    assert render({"{query}": "{query}"}, {"query": "SELECT 1"}) == {"{query}": "SELECT 1"}


def test_parameters_of_the_url_stay_and_its_user_is_sent_as_credentials(execute):
    with serving(said({"rows": []}), "/sql?tenant=7") as running:
        execute(running.url.replace("//", "//me:horse-1@"), params={"fast": True, "n": 2}, **PLAIN)

    (request,) = running.asked
    assert request.parameters == {"tenant": "7", "fast": "true", "n": "2"}
    assert request.headers["authorization"].startswith("Basic ")
    assert "horse" not in request.headers["host"]


def test_credentials_of_the_settings_come_before_the_user_of_the_url(execute):
    with serving(said({"rows": []})) as running:
        execute(running.url.replace("//", "//me:horse-1@"), auth={"bearer": "t0ken"}, **PLAIN)

    assert running.asked[0].headers["authorization"] == "Bearer t0ken"


def test_cookies_of_an_answer_are_not_sent_with_the_next_query(execute):
    cookie = {"Set-Cookie": "session=1; Path=/"}

    with serving(lambda request: Said({"rows": [[1]]}, headers=cookie)) as running:
        execute(running.url)
        execute(running.url)

    assert len(running.asked) == 2
    assert not any("cookie" in request.headers for request in running.asked)


def test_proxies_of_the_environment_are_not_asked(tmp_path, monkeypatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")

    with serving(said({"rows": [[1]]})) as running, Hosts() as hosts:
        answer = opened(hosts, tmp_path, url=running.url, **PLAIN).execute("SELECT 1", timeout=20, max_rows=9).answer

    assert answer.rows == [(1,)]


@pytest.mark.parametrize(
    ("rows", "columns", "table"),
    [
        ([[1, "a"], [2.5, None]], ("column 1", "column 2"), [(1, "a"), (2.5, None)]),
        ([{"a": 1}, {"b": 2, "a": 3}], ("a", "b"), [(1, None), (3, 2)]),
        ([[[1, {"b": 2, "a": None}]]], ("column 1",), [((1, {"a": None, "b": 2}),)]),
        (
            [[True, 1e300, 12345678901234567890]],
            ("column 1", "column 2", "column 3"),
            [(True, 1e300, 12345678901234567890)],
        ),
        ([], (), []),
        ([{}], (), [()]),
    ],
)
def test_rows_are_lists_or_objects_and_cells_keep_their_types(execute, rows, columns, table):
    with serving(said({"rows": rows})) as running:
        answer = execute(running.url).answer

    assert answer.columns == columns
    assert answer.rows == table


def test_names_that_come_twice_in_a_row_are_two_columns(execute):
    with serving(said('{"rows": [{"id": 1, "id": 2}, {"id": 3, "id": null}]}')) as running:
        answer = execute(running.url).answer

    assert answer.columns == ("id", "id")
    assert answer.rows == [(1, 2), (3, None)]


@pytest.mark.parametrize("query", UNSAFE)
def test_what_is_not_one_query_that_reads_is_never_sent(execute, query):
    with serving(said({"rows": []})) as running:
        error = execute(running.url, query).error

    assert error.kind == "unsafe"
    assert error.message.isprintable()
    assert running.asked == []


@pytest.mark.parametrize(
    "query",
    [
        "SELECT 1;",
        "VALUES (1), (2)",
        "(SELECT 1) UNION ALL SELECT 2 ORDER BY 1",
        "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 5) SELECT n FROM r",
        "SELECT 'DROP TABLE concert; --' AS x -- DELETE",
        'SELECT update_date, "delete" FROM inserts',
    ],
)
def test_what_reads_is_sent_as_it_stands(execute, query):
    with serving(said({"rows": []})) as running:
        assert execute(running.url, query).error is None

    assert [json.loads(request.body)["sql"] for request in running.asked] == [query]


def test_what_cannot_be_read_is_sent_where_the_source_allows_it(execute):
    query = "SELECT a FROM v CONTEXT ('i18n' = 'us_est')"

    with serving(said({"rows": [[1]]})) as running:
        refused = execute(running.url, query, dialect="postgres", **PLAIN)
        allowed = execute(running.url, query, dialect="postgres", unparsed="allow", **PLAIN)
        unsafe = execute(running.url, "DROP TABLE v", unparsed="allow", **PLAIN)

    assert (refused.error.kind, unsafe.error.kind) == ("unsafe", "unsafe")
    assert "cannot be read" in refused.error.message
    assert "`unparsed: allow`" in refused.error.message
    assert allowed.answer.rows == [(1,)]


@pytest.mark.parametrize(
    ("query", "kind"),
    [("", "empty"), ("-- x", "invalid"), ("SELECT '\ud800'", "invalid"), ("SELECT 1 FORMAT CSV", "invalid")],
)
def test_text_that_is_no_query_is_not_sent(execute, query, kind):
    with serving(said({"rows": []})) as running:
        error = execute(running.url, query, dialect="clickhouse", **PLAIN).error

    assert error.kind == kind
    assert running.asked == []


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"rows": None}, "needs rows"),
        ({"url": None}, "needs url"),
        ({"url": "ftp://x"}, "`url` must be an http or https URL"),
        ({"body": None}, 'needs "{query}", in quotes, in `body` or `params`'),
        ({"body": {"sql": {"query": None}}}, 'needs "{query}", in quotes'),
        ({"body": '{"sql": "{query}"}'}, "`body` must be a mapping, a list"),
        ({"body": "SELECT {query}"}, "`body` must be a mapping, a list"),
        ({"rows": "rows"}, "`rows` must be a JSONPath, such as \\$.rows"),
        ({"method": "DELETE"}, "`method` must be GET or POST"),
        ({"page_size": 0}, "`page_size` must be a whole number above 0"),
        ({"page_size": 5}, '\'page_size\' needs "{offset}" or "{page}"'),
        ({"page_size": 5, "next": "$.next"}, "take one"),
        ({"params": {"a": [1]}}, "`params` must be a mapping"),
        ({"dialect": "postgre"}, "unknown dialect 'postgre': did you mean 'postgres'"),
        ({"unparsed": "yes"}, "`unparsed` must be refuse or allow"),
        ({"row": "$.rows"}, "unknown setting 'row': did you mean 'rows'"),
        ({"headers": {"a": "b\r\nc: d"}}, "`headers` must be a mapping"),
    ],
)
def test_settings_that_cannot_be_right_are_reported(settings, problem):
    merged = {"url": "http://x/", **PLAIN, **settings}

    with pytest.raises(SettingError, match=problem.replace("{", r"\{").replace("}", r"\}")):
        ENGINES["http"].check({name: value for name, value in merged.items() if value is not None})


@pytest.mark.parametrize("name", ["denodo", "clickhouse", "trino"])
def test_documented_settings_are_those_that_the_services_here_are_asked_with(name):
    section = DOCS.partition(f"## {name}\n".replace(name, {"clickhouse": "ClickHouse"}.get(name, name.title())))[2]
    documented = yaml.safe_load(section.partition("```yaml\n")[2].partition("```")[0])["http"]
    secret = {"url", "auth", "headers"}

    ENGINES["http"].check(documented)

    keys = {key: value for key, value in documented.items() if key not in secret}
    assert keys == {key: value for key, value in SETTINGS[name].items() if key not in secret}
    assert documented.get("auth", {}).keys() == SETTINGS[name].get("auth", {}).keys()
    assert documented.get("headers", {}).keys() >= SETTINGS[name].get("headers", {}).keys()


def test_every_setting_and_place_is_documented():
    documented_names = [*SETTINGS_OF_SOURCES, *(f"{{{place}}}" for place in ("query", "limit", "offset", "page"))]

    assert [name for name in documented_names if f"| `{name}` |" not in DOCS] == []


def test_a_source_in_place_has_the_name_of_its_url_and_no_secrets(tmp_path, monkeypatch):
    enter(tmp_path, monkeypatch)
    monkeypatch.setenv("TOKEN", "b0dy-of-mine")
    written = """
      http:
        body: "token=${TOKEN}&sql={query}"
        url: http://me:s3cret@127.0.0.1/sql?key=k3y-of-mine
        rows: $.rows
        dialect: trino
    """

    loaded = case(f"source: {written}", head="kind: sql\n")

    assert loaded.settings.source.name == "http://127.0.0.1/sql"
    assert loaded.settings.source.settings["body"] == "token=b0dy-of-mine&sql={query}"
    assert loaded.settings.dialect == "trino"
    assert "mine" not in repr(loaded.settings.source)


def test_settings_may_stand_beside_the_url(tmp_path, monkeypatch):
    enter(tmp_path, monkeypatch)

    source = case(
        'source: {http: "http://h/", body: {sql: "{query}", n: 5}, rows: $.rows}', head="kind: sql\n"
    ).settings.source

    assert (source.engine, source.name) == ("http", "http://h/")
    assert source.settings == {"url": "http://h/", "body": {"sql": "{query}", "n": 5}, "rows": "$.rows"}


def test_a_place_without_quotes_is_reported_with_what_would_do(tmp_path, monkeypatch):
    enter(tmp_path, monkeypatch)

    lines = problem("source: {http: {url: 'http://h/', body: {sql: {query}}, rows: $.rows}}", head="kind: sql\n")

    assert "in quotes" in lines
