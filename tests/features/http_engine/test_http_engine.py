"""The tables that services give over HTTP, and what they are sent."""

import json
import sqlite3
import urllib.parse
from contextlib import closing

import http_services
import pytest
import yaml
from documentation import page as page_of
from hostile_statements import statements
from http_services import SERVICES, SETTINGS, Said, serving
from opened_sources import execute, rows_of, source_of
from suites import case, enter, problem

from pytest_queryeval.core.errors import SettingError, SourceError
from pytest_queryeval.engines import ENGINES

DOCS = page_of("sql").partition("## SQL over HTTP\n")[2].partition("\n## ")[0]
SCRIPT = """
CREATE TABLE concert (id INTEGER, title TEXT, price REAL, seats INTEGER);
INSERT INTO concert VALUES (1, 'Frühling', 12.5, 300), (2, 'It''s "over"', NULL, 40), (3, '{query} $.rows', 0.1, NULL),
  (4, '', 1e-7, 9007199254740993), (5, NULL, -3.0, -1), (6, 'a\nb', 100.0, 0), (7, '雪', 7.0, 7);
"""
ALL = "SELECT id, title, price, seats FROM concert ORDER BY id"
JOIN = "SELECT a.id AS x, b.id AS y FROM concert AS a JOIN concert AS b ON a.id < b.id ORDER BY x, y"
QUERIES = [
    ALL,
    JOIN,
    "SELECT COUNT(*) AS n FROM concert",
    "SELECT id, title FROM concert WHERE id > 100",
    "SELECT MAX(price) AS p FROM concert WHERE id > 100",
    "SELECT SUM(price) AS s, AVG(seats) AS a FROM concert",
    "SELECT a.id AS id, b.price AS id FROM concert a JOIN concert b ON a.id = b.id - 1",
    "SELECT title FROM concert WHERE title IN ('It''s \"over\"', '{query} $.rows', '\\\"}')",
    "SELECT id -- {limit}\nFROM concert /* }{ */ ORDER BY id LIMIT 3",
    "WITH c AS (SELECT id FROM concert) SELECT id FROM c UNION ALL SELECT seats FROM concert",
]
PLAIN = {"body": {"sql": "{query}", "top": "{limit}"}, "rows": "$.rows"}


@pytest.fixture(scope="module")
def database(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "concerts.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(SCRIPT)
    return path


@pytest.fixture
def ask(hosts):
    """Runs a query on the service at a URL."""

    def run(url, query="SELECT 1 AS x", max_rows=1000, **settings):
        return execute(hosts, source_of("http", url=url, **(settings or PLAIN)), query, max_rows=max_rows)

    return run


def said(body, status=200):
    return lambda request: Said(body, status)


@pytest.mark.parametrize("name", SERVICES)
def test_every_service_gives_the_tables_that_sqlite_gives(ask, database, name):
    service, path = SERVICES[name]
    with serving(service(database), path) as running:
        executions = {query: ask(running.url, query, **SETTINGS[name]) for query in QUERIES}

    for query, execution in executions.items():
        columns, rows = http_services.answered(database, query)
        assert execution.error is None
        assert execution.answer.rows == rows
        assert [list(map(type, row)) for row in execution.answer.rows] == [list(map(type, row)) for row in rows]
        has_columns = bool(rows) or name != "denodo"  # which names no columns where there are no rows
        assert list(execution.answer.columns) == (columns if has_columns else [])
        assert execution.answer.has_header is has_columns


@pytest.mark.parametrize("name", SERVICES)
def test_a_query_that_a_service_refuses_or_answers_at_length_is_a_failure(ask, database, name):
    service, path = SERVICES[name]

    with serving(service(database), path) as running:
        refused = ask(running.url, "SELECT gone FROM concert", **SETTINGS[name]).error
        allowed = ask(running.url, ALL, max_rows=7, **SETTINGS[name])
        long = ask(running.url, ALL, max_rows=6, **SETTINGS[name]).error

    assert refused.kind == ("rejected" if name == "denodo" else "invalid")
    assert "no such column: gone" in refused.message
    assert len(allowed.answer.rows) == 7
    assert (long.kind, long.message) == ("too_large", "more than 6 rows: raise `max_rows` if there may be more")


@pytest.mark.parametrize("name", ["denodo", "clickhouse", "trino"])
def test_wrong_credentials_are_a_source_error_that_does_not_tell_them(ask, database, name):
    service, path = SERVICES[name]
    settings = {**SETTINGS[name], "auth": {"basic": "tester:wr0ng-horse"}, "headers": {"X-ClickHouse-Key": "wr0ng-key"}}

    with serving(service(database), path) as running, pytest.raises(SourceError, match=r"HTTP 40[13]") as caught:
        ask(running.url, **settings)

    assert "wr0ng" not in str(caught.value)


def test_pages_are_fetched_as_each_names_the_next_and_no_more_than_rows_are_allowed(ask, database):
    with serving(http_services.trino(database), "/v1/statement") as running:
        execution = ask(running.url, ALL, **SETTINGS["trino"])
        requests = list(running.asked)
        long = ask(running.url, JOIN, max_rows=3, **SETTINGS["trino"])

    assert [row[0] for row in execution.answer.rows] == [1, 2, 3, 4, 5, 6, 7]
    assert [request.method for request in requests] == ["POST", "GET", "GET", "GET", "GET", "GET"]
    assert [request.body for request in requests] == [ALL, "", "", "", "", ""]
    assert {request.headers["x-trino-user"] for request in requests} == {"tester"}
    assert (long.error.kind, len(running.asked) - len(requests)) == ("too_large", 3)


@pytest.mark.parametrize(("size", "requests"), [(3, 4), (7, 2), (8, 2)])
def test_pages_are_counted_from_one_up_to_one_without_rows(ask, database, size, requests):
    body = "sql={query}&top={limit}&skip={offset}"

    with serving(http_services.offsets(database)) as running:
        answer = ask(running.url, ALL, body=body, rows="$.result.rows", page_size=size).answer

    assert answer.rows == http_services.answered(database, ALL)[1]
    assert len(running.asked) == requests
    with serving(lambda request: Said({"rows": [[1]] * (len(running.asked) < 3)})) as running:
        settings = {"method": "GET", "params": {"q": "{query}", "page": "{page}"}, "rows": "$.rows", "page_size": 1}
        assert ask(running.url, **settings).answer.rows == [(1,), (1,)]
    assert [request.parameters["page"] for request in running.asked] == ["1", "2", "3"]


@pytest.mark.parametrize(
    "query",
    [
        'SELECT \'"}, "limit": 1, {"a": "\' AS x',
        "SELECT '{limit}{query}{offset}' AS x",
        "SELECT '&top=0&sql=SELECT+2%20%2B#?' AS x",
        "SELECT '\\\\' AS x, '\\u0022' AS y",
        "SELECT 'a\r\nX-Injected: 1\r\n\r\n' AS x",
        "SELECT '\x00\x1b\x7f\u2028 ü 雪 𝄞' AS x",
        "SELECT '${HOME} %s %(x)s {0} {{query}}' AS x",
    ],
)
def test_a_query_stays_one_value_wherever_it_is_put(ask, query):
    template = {"sql": "{query}", "nested": [{"a": "<{query}>"}], "{query}": "{limit}", "rest": "{other}"}
    with serving(said({"rows": []})) as running:
        for body in (template, "{query}", "sql={query}&top={limit}"):
            ask(running.url, query, body=body, rows="$.rows", max_rows=9)
        ask(running.url, query, method="GET", params={"sql": "{query}", "top": "{limit}"}, rows="$.rows")

    as_json, as_text, as_form, as_parameter = running.asked
    filled = {"sql": query, "nested": [{"a": f"<{query}>"}], "{query}": 10, "rest": "{other}"}
    assert json.loads(as_json.body) == filled
    assert as_text.body == query
    assert urllib.parse.parse_qs(as_form.body) == {"sql": [query], "top": ["10"]}
    assert as_parameter.parameters == {"sql": query, "top": "1001"}
    assert "x-injected" not in {name for request in running.asked for name in request.headers}
    assert [request.headers.get("content-type") for request in running.asked] == [
        "application/json",
        "text/plain; charset=utf-8",
        "application/x-www-form-urlencoded",
        None,
    ]


def test_parameters_of_the_url_stay_and_its_user_is_sent_unless_there_are_other_credentials(ask):
    cookie = {"Set-Cookie": "session=1; Path=/"}
    with serving(lambda request: Said({"rows": []}, headers=cookie), "/sql?tenant=7") as running:
        url = running.url.replace("//", "//me:horse-1@")
        ask(url, params={"fast": True, "n": 2}, **PLAIN)
        ask(url, auth={"bearer": "t0ken"}, **PLAIN)

    by_url, by_settings = running.asked
    assert by_url.parameters == {"tenant": "7", "fast": "true", "n": "2"}
    assert by_url.headers["authorization"].startswith("Basic ")
    assert "horse" not in by_url.headers["host"]
    assert by_settings.headers["authorization"] == "Bearer t0ken"
    assert "cookie" not in by_settings.headers


def test_proxies_of_the_environment_are_not_asked(monkeypatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")

    with serving(said({"rows": [[1]]})) as running:
        assert rows_of(None, source_of("http", url=running.url, **PLAIN), "SELECT 1") == [(1,)]


@pytest.mark.parametrize(
    ("body", "columns", "rows"),
    [
        ({"rows": [[1, "a"], [2.5, None]]}, ("column 1", "column 2"), [(1, "a"), (2.5, None)]),
        ({"rows": [{"a": 1}, {"b": 2, "a": 3}]}, ("a", "b"), [(1, None), (3, 2)]),
        ({"rows": [[[1, {"b": 2, "a": None}]]]}, ("column 1",), [((1, {"a": None, "b": 2}),)]),
        ({"rows": [[True, 1e300, 12345678901234567890]]}, None, [(True, 1e300, 12345678901234567890)]),
        ({"rows": []}, (), []),
        ({"rows": [{}]}, (), [()]),
        ('{"rows": [{"id": 1, "id": 2}, {"id": 3, "id": null}]}', ("id", "id"), [(1, 2), (3, None)]),
    ],
)
def test_rows_are_lists_or_objects_and_cells_keep_their_types(ask, body, columns, rows):
    with serving(said(body)) as running:
        answer = ask(running.url).answer

    assert columns in (None, answer.columns)
    assert answer.rows == rows


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_encodings_of_unicode_are_told_apart(ask, encoding):
    with serving(said('{"rows": [["ü雪"]]}'.encode(encoding))) as running:
        assert ask(running.url).answer.rows == [("ü雪",)]


def test_an_answer_without_the_rows_is_told_by_names_and_kinds_without_values(ask):
    body = {"a": "secret", "b": [1, 2], "c": None, "d": {}, "e": 1, "f": True, "g": {"h": 1}, "h": [], "i": 2}
    shape = (
        "an object with a (a text), b (a list of 2), c (null), d (an empty object), e (a number), f (a boolean), "
        "g (an object), h (an empty list), …"
    )

    with serving(said(body)) as running, pytest.raises(SourceError) as caught:
        ask(running.url)

    assert shape in str(caught.value)
    assert "secret" not in str(caught.value)


def kinds_of(ask, queries, **settings):
    """The kind of failure of each query, `answer` if there is none, and what was sent."""
    with serving(said({"rows": [[1]]})) as running:
        errors = {query: ask(running.url, query, **PLAIN, **settings).error for query in queries}
    return errors, [json.loads(request.body)["sql"] for request in running.asked]


def test_what_is_not_one_query_that_reads_is_never_sent(ask):
    errors, sent = kinds_of(ask, statements("http")["unsafe"])

    assert {query: error for query, error in errors.items() if error is None or error.kind != "unsafe"} == {}
    assert all(error.message.isprintable() for error in errors.values())
    assert sent == []


def test_what_reads_is_sent_as_it_stands(ask):
    errors, sent = kinds_of(ask, statements("http")["sent"])

    assert set(errors.values()) == {None}
    assert sent == statements("http")["sent"]


@pytest.mark.parametrize("dialect", statements("dialects"))
def test_what_a_source_is_sent_depends_on_the_dialect_of_its_queries(ask, dialect):
    groups = statements("dialects")[dialect]
    settings = {"dialect": dialect} if dialect else {}
    said_of = dict(groups.get("unsafe", ()))
    refused, none_sent = kinds_of(ask, [*groups.get("refused", ()), *said_of], **settings)
    allowed, sent = kinds_of(ask, groups.get("sent", ()), **settings)

    assert {error and error.kind for error in refused.values()} <= {"unsafe", "invalid"}, refused
    unsafe = {query: refused[query] for query in said_of}
    assert {query: it for query, it in unsafe.items() if it.kind != "unsafe" or said_of[query] not in it.message} == {}
    assert none_sent == []
    assert {query: error for query, error in allowed.items() if error} == {}
    assert sent == groups.get("sent", [])


def test_what_cannot_be_read_is_sent_where_the_source_allows_it(ask):
    query = "SELECT a FROM v CONTEXT ('i18n' = 'us_est')"

    with serving(said({"rows": [[1]]})) as running:
        refused = ask(running.url, query, dialect="postgres", **PLAIN)
        allowed = ask(running.url, query, dialect="postgres", unparsed="allow", **PLAIN)
        unsafe = ask(running.url, "DROP TABLE v", unparsed="allow", **PLAIN)

    assert (refused.error.kind, unsafe.error.kind) == ("unsafe", "unsafe")
    assert "cannot be read" in refused.error.message
    assert "`unparsed: allow`" in refused.error.message
    assert allowed.answer.rows == [(1,)]


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
    names = [*ENGINES["http"].settings, *(f"{{{place}}}" for place in ("query", "limit", "offset", "page"))]

    assert [name for name in names if f"| `{name}` |" not in DOCS] == []


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


def test_settings_may_stand_beside_the_url_and_places_need_quotes(tmp_path, monkeypatch):
    enter(tmp_path, monkeypatch)
    written = 'source: {http: "http://h/", body: {sql: "{query}", n: 5}, rows: $.rows}'

    source = case(written, head="kind: sql\n").settings.source

    assert (source.engine, source.name) == ("http", "http://h/")
    assert source.settings == {"url": "http://h/", "body": {"sql": "{query}", "n": 5}, "rows": "$.rows"}
    assert "in quotes" in problem(written.replace('"{query}"', "{query}"), head="kind: sql\n")
