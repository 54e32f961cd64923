"""Answers in JSON of any shape that are wrong, pages, and secrets; faults of all services: test_service_faults.py."""

import json
import re
import time
from pathlib import Path

import pytest
from endpoint_faults import says
from opened_sources import source_of
from servers import FaultServer
from waiting import child_processes

from pytest_queryeval.core.errors import SourceError
from pytest_queryeval.testing import open_engine

pytestmark = pytest.mark.process

QUERY = "SELECT x FROM t"
PROBE = "SELECT 1"
GOOD = '{"rows": [[1], [2]], "next": null}'
FORM = {"body": "query={query}", "rows": "$.rows", "error": "$.error.message", "next": "$.next"}


@pytest.fixture
def run(hosts, tmp_path):
    """Executes a query on the service at a URL, and checks that it ends in time."""

    def execute(url, query=QUERY, timeout=3, max_rows=100, **settings):
        stated = {name: value for name, value in {**FORM, **settings}.items() if value is not None}
        began = time.monotonic()
        try:
            with open_engine(source_of("http", tmp_path, url=url, **stated), hosts) as engine:
                return engine.execute(query, timeout=timeout, max_rows=max_rows)
        finally:
            elapsed = time.monotonic() - began
            assert elapsed < 10 * 2 * timeout  # of the query and of the trivial one, on a machine that may be busy

    return execute


def unless_probed(behaviour):
    """The same, but the trivial query is answered."""
    return lambda exchange: exchange.reply(GOOD) if exchange.request.query == PROBE else behaviour(exchange)


def follows(exchange):
    """A page without end: each names another."""
    exchange.reply(json.dumps({"rows": [[1]], "next": f"/query?page={exchange.number}"}))


def endless_empty_pages(exchange):
    time.sleep(0.1)
    exchange.reply(json.dumps({"rows": [], "next": f"/query?page={exchange.number}"}))


def breaks_on_the_second_page(exchange):
    if exchange.request.target == "/query":
        exchange.reply('{"rows": [[1]], "next": "/query?page=2"}')
    else:
        exchange.reply('{"rows": [[2]')


def fails_on_the_second_page(exchange):
    if exchange.request.target == "/query":
        exchange.reply('{"rows": [[1]], "next": "/query?page=2"}')
    else:
        exchange.reply('{"error": {"message": "division by zero"}}')


def echo(status, pattern):
    """Repeats what it was sent that looks like the pattern."""

    def behave(exchange):
        request = exchange.request
        values = [
            request.target,
            *request.headers.values(),
            *(text for texts in request.parameters.values() for text in texts),
        ]
        matches = [value for value in values if re.search(pattern, value)]
        exchange.reply(json.dumps({"error": {"message": "; ".join(matches)}}), status)

    return behave


# No answer, whatever the query: the service is to blame.
SOURCE_ERRORS = {
    "two documents": (says(GOOD * 2), "not valid JSON"),
    "deep nesting": (says("[" * 200_000), "not valid JSON"),
    "deep nesting within a cell": (says(f'{{"rows": [[{"[" * 100_000}{"]" * 100_000}]]}}'), "too deep"),
    "NaN": (says('{"rows": [[NaN]]}'), "NaN is not JSON"),
    "Infinity": (says('{"rows": [[-Infinity]]}'), "-Infinity is not JSON"),
    "a number too large": (says('{"rows": [[1e999]]}'), "the number 1e999 is too large"),
    "digits without end": (says(f'{{"rows": [[{"9" * 5000}]]}}'), "not valid JSON.*digits"),
    "a name twice": (says('{"rows": [], "rows": [[1]]}'), "two members 'rows'"),
    "another object": (
        says('{"status": "ok", "data": [[1]]}'),
        r"`rows` \(\$\.rows\) selects nothing.*data \(a list of 1",
    ),
    "a list": (says("[[1]]"), "selects nothing: the answer is a list of 1"),
    "null": (says("null"), "selects nothing: the answer is null"),
    "null for rows": (says('{"rows": null}'), r"selects nothing: the answer is an object with rows \(null\)"),
    "rows as an object": (says('{"rows": {"a": 1}}'), "selects an object, not a list"),
    "rows of scalars": (says('{"rows": [1, 2]}'), "row 1 is a number"),
    "lists and objects": (
        says('{"rows": [{"a": 1}, [2]]}'),
        "row 2 is a list of 1: rows are all lists, or all objects",
    ),
    "a short row": (says('{"rows": [[1, 2], [3]]}'), "row 2 has 1 cells, where there are 2 columns"),
    "a next page that is not a URL": (says('{"rows": [], "next": 5}'), r"`next` \(\$\.next\) selects a number"),
    "a next page elsewhere": (says('{"rows": [], "next": "http://127.0.0.1:1/x"}'), "another origin"),
    "a next page in a file": (says('{"rows": [], "next": "file:///etc/passwd"}'), "another origin"),
    "pages in a circle": (says('{"rows": [], "next": "/query?page=1"}'), "in a circle"),
    "a second page that breaks off": (breaks_on_the_second_page, "not valid JSON"),
    "an error in the body": (
        says('{"error": {"message": "database offline"}}'),
        "offline; nor does it answer SELECT 1",
    ),
}
# The service answers the trivial query: this query is to blame.
FAILURES = {
    "an error in the body": (says('{"error": {"message": "no column x"}}'), "invalid", "^no column x$"),
    "an error on the second page": (fails_on_the_second_page, "invalid", "division by zero"),
    "escape codes": (says('{"error": {"message": "\\u001b[2J##[error]"}}'), "invalid", r"\\x1b\[2J"),
    "an error that is an object": (says('{"error": {"message": {"code": 5}}}'), "invalid", '{"code": 5}'),
    "pages without end": (follows, "too_large", "more than 100 rows"),
    "empty pages without end": (endless_empty_pages, "timeout", "no answer within 3 s"),
}


@pytest.mark.parametrize(("behaviour", "reason"), SOURCE_ERRORS.values(), ids=SOURCE_ERRORS)
def test_service_that_does_not_answer_as_one_is_a_source_error(run, behaviour, reason):
    with (
        FaultServer(behaviour) as server,
        pytest.raises(SourceError, match=f"^source 'music': .*(?:{reason})") as caught,
    ):
        run(server.url)

    assert str(caught.value).isprintable()


@pytest.mark.parametrize(("behaviour", "kind", "reason"), FAILURES.values(), ids=FAILURES)
def test_service_that_refuses_this_query_alone_makes_it_a_failed_one(run, behaviour, kind, reason):
    with FaultServer(unless_probed(behaviour)) as server:
        error = run(server.url, timeout=300 if kind == "too_large" else 3).error

    assert error.kind == kind
    assert re.search(reason, error.message)
    assert error.message.isprintable()


COUNTED = {"body": "query={query}&from={offset}", "next": None}


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"rows": "$.rows[*]"}, r"must select the list of rows, not the rows"),
        ({"rows": "$[oh"}, r"`\$\[oh` is not a JSONPath"),
        ({"columns": "$.names"}, r"`columns` \(\$\.names\) selects nothing"),
        ({"columns": "$"}, r"`columns` \(\$\) selects no names"),
        ({"columns": "$.rows[*][0]"}, r"row 1 has 1 cells, where there are 2 columns"),
        ({**COUNTED, "page_size": 5}, "2 rows where `page_size` is 5, and more"),
        ({**COUNTED, "page_size": 1}, "2 rows where `page_size` is 1"),
    ],
)
def test_path_that_does_not_fit_the_answer_is_a_source_error_that_names_it(run, settings, reason):
    with FaultServer(says(GOOD)) as server, pytest.raises(SourceError, match=reason):
        run(server.url, **settings)


@pytest.mark.parametrize("more", ["true", "false"])
def test_a_cut_answer_is_too_large_and_a_whole_one_is_taken_where_the_service_says_which(run, more):
    with FaultServer(says(f'{{"rows": [[1]], "more": {more}, "error": {{"message": null}}}}')) as server:
        execution = run(server.url, truncated="$.more")

    if more == "true":
        message = "the service says that it cut the answer ($.more)"
        assert (execution.error.kind, execution.error.message) == ("too_large", message)
    else:
        assert execution.answer.rows == [(1,)]


def test_counted_page_without_a_list_is_no_end_of_the_answer(run):
    def behave(exchange):
        exchange.reply('{"rows": [[1], [2]]}' if exchange.number == 1 else '{"status": "overloaded"}')

    with FaultServer(behave) as server, pytest.raises(SourceError, match=r"selects nothing.*status"):
        run(server.url, **COUNTED, page_size=2)


def test_redirect_within_the_origin_is_followed_with_the_query(run):
    def behave(exchange):
        if exchange.request.path == "/new":
            exchange.reply(GOOD)
        else:
            exchange.reply("", "307 Temporary Redirect", Location="/new")

    with FaultServer(behave) as server:
        assert run(server.url).answer.rows == [(1,), (2,)]
    assert [request.query for request in server.requests] == [QUERY, QUERY]


SECRETS = {
    "basic": ({"auth": {"basic": "me:s3cret-pass"}}, "^Basic "),
    "bearer": ({"auth": {"bearer": "t0ken=of-mine"}}, "^Bearer "),
    "header": ({"headers": {"X-Token": "t0ken of mine"}}, "t0ken"),
    "parameter": ({"params": {"key": "k3y/of mine"}}, "k3y"),
    "form": ({"body": "token=b0dy-of-mine&query={query}&x=1"}, "b0dy"),
    "user": ({"user": "me:s3cret-pass@"}, "^Basic "),
    "parameter of the URL": ({"query": "?key=k3y-of-mine"}, "k3y"),
    "before a place": ({"body": None, "params": {"query": "{query}", "key": "b0dy-of-mine {limit}"}}, "b0dy"),
}


STATUSES = ("200 OK", "400 Bad Request", "401 Unauthorized", "500 Internal Server Error")


@pytest.mark.parametrize(("name", "status"), [*zip(SECRETS, STATUSES * 2, strict=True)])
def test_what_a_service_repeats_of_our_secrets_is_taken_out(run, name, status):
    settings, pattern = SECRETS[name]
    others = {name: value for name, value in settings.items() if name not in ("user", "query")}
    with FaultServer(echo(status, pattern)) as server, pytest.raises(SourceError) as caught:
        run(server.url.replace("//", f"//{settings.get('user', '')}") + settings.get("query", ""), **others)

    assert "[redacted]" in str(caught.value)
    assert not re.search("s3cret|t0ken|k3y|b0dy|bWU6", str(caught.value))


def test_secrets_are_not_in_the_list_of_processes(tmp_path):
    others = child_processes()
    settings = {**FORM, "auth": {"basic": "me:s3cret-pass"}, "headers": {"X-Token": "t0ken-of-mine"}}
    with (
        FaultServer(says(GOOD)) as server,
        open_engine(source_of("http", tmp_path, url=server.url, **settings)) as http,
    ):
        http.execute(QUERY, timeout=30, max_rows=9)
        (process,) = (Path("/proc") / str(pid) for pid in child_processes() - others)
        content = (process / "cmdline").read_bytes() + (process / "environ").read_bytes()

    assert b"host_child.py" in content
    assert b"s3cret" not in content
    assert b"t0ken" not in content


def test_the_probe_is_the_sources_own(run):
    with (
        FaultServer(says("no", "400 Bad Request")) as server,
        pytest.raises(SourceError, match="answer SELECT 2 AS two"),
    ):
        run(server.url, probe="SELECT 2 AS two")

    assert [request.query for request in server.requests] == [QUERY, "SELECT 2 AS two"]
