"""Whatever goes wrong at a service is an error of the source, unless the query alone brought it about."""

import json
import re
import time
from pathlib import Path

import endpoint_faults as faults
import pytest
import servers
from endpoint_faults import SLOW, says
from servers import FaultServer

from pytest_queryeval.core.errors import SourceError
from pytest_queryeval.core.model import Source
from pytest_queryeval.engines import ENGINES
from pytest_queryeval.features.http_engine import DRIVER
from pytest_queryeval.sandbox.host import Host, Hosts

pytestmark = pytest.mark.process

QUERY = "SELECT x FROM t"
PROBE = "SELECT 1"
GOOD = '{"rows": [[1], [2]], "next": null}'
FORM = {"body": "query={query}", "rows": "$.rows", "error": "$.error.message", "next": "$.next"}


@pytest.fixture(scope="module")
def hosts(tmp_path_factory):
    with Hosts() as pool, FaultServer(says(GOOD)) as server:
        opened(pool, tmp_path_factory.mktemp("warm"), url=server.url, **FORM).execute(QUERY, timeout=30, max_rows=9)
        yield pool


@pytest.fixture
def run(hosts, tmp_path):
    """Executes a query on the service at a URL, and checks that it ends in time."""

    def execute(url, query=QUERY, timeout=3, max_rows=100, **settings):
        engine = opened(hosts, tmp_path, url=url, **{**FORM, **settings})
        began = time.monotonic()
        try:
            return engine.execute(query, timeout=timeout, max_rows=max_rows)
        finally:
            elapsed = time.monotonic() - began
            assert elapsed < 10 * 2 * timeout  # of the query and of the trivial one, on a machine that may be busy

    return execute


def opened(hosts, folder, **settings):
    set_settings = {name: value for name, value in settings.items() if value is not None}
    return ENGINES["http"].open(Source(name="s", engine="http", settings=set_settings, folder=folder), hosts)


def unless_probed(behaviour):
    """The same, but the trivial query is answered."""
    return lambda exchange: exchange.reply(GOOD) if exchange.request.query == PROBE else behaviour(exchange)


def then_good(behaviour):
    """Bad at first, then good."""
    return lambda exchange: behaviour(exchange) if exchange.number == 1 else exchange.reply(GOOD)


def follows(exchange):
    """A page without end: each names another."""
    exchange.reply(json.dumps({"rows": [[1]], "next": f"/query?page={exchange.number}"}))


def endless_empty_pages(exchange):
    time.sleep(0.02)
    exchange.reply(json.dumps({"rows": [], "next": f"/query?page={exchange.number}"}))


def in_a_circle(exchange):
    exchange.reply(json.dumps({"rows": [], "next": "/query?page=1"}))


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


HTML = says("<html><script>x()</script>Please log in</html>", Content_Type="text/html")
# No answer, whatever the query: the service is to blame.
SOURCE_ERRORS = {
    "no JSON": (says("1\n2\n"), "not valid JSON.*sparql-results"),
    "nothing": (says(""), "not valid JSON.* 0 bytes"),
    "no content": (says("", "204 No Content"), "not valid JSON.* 0 bytes"),
    "HTML": (HTML, "a web page came back.*Please log in"),
    "half a document": (says(GOOD[:-5]), "not valid JSON"),
    "two documents": (says(GOOD * 2), "not valid JSON"),
    "truncated body": (faults.sends(b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{"), "breaks off|incomplete"),
    "deep nesting": (says("[" * 200_000), "not valid JSON"),
    "deep nesting within a cell": (says(f'{{"rows": [[{"[" * 100_000}{"]" * 100_000}]]}}'), "too deep"),
    "NaN": (says('{"rows": [[NaN]]}'), "NaN is not JSON"),
    "Infinity": (says('{"rows": [[-Infinity]]}'), "-Infinity is not JSON"),
    "a number too large": (says('{"rows": [[1e999]]}'), "the number 1e999 is too large"),
    "digits without end": (says(f'{{"rows": [[{"9" * 5000}]]}}'), "not valid JSON.*digits"),
    "a name twice": (says('{"rows": [], "rows": [[1]]}'), "two members 'rows'"),
    "bytes that are not text": (says(b'{"rows": [["\xff\xfe"]]}'), "not valid JSON"),
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
    "pages in a circle": (in_a_circle, "in a circle"),
    "a second page that breaks off": (breaks_on_the_second_page, "not valid JSON"),
    "unauthorised": (says("", "401 Unauthorized"), "401 Unauthorized .no `auth` is set"),
    "forbidden": (says("not you", "403 Forbidden"), "403 Forbidden.*not you.*nor does it answer SELECT 1"),
    "not found": (says("no such path", "404 Not Found"), "404 Not Found.*nor does it answer SELECT 1"),
    "bad request": (says("no `sql` in it", "400 Bad Request"), "400.*nor does it answer SELECT 1"),
    "too many requests": (says("", "429 Too Many Requests"), "429"),
    "error": (says("no memory", "500 Internal Server Error"), "500.*no memory"),
    "unavailable": (says("", "503 Service Unavailable"), "503"),
    "an error in the body": (
        says('{"error": {"message": "database offline"}}'),
        "offline; nor does it answer SELECT 1",
    ),
    "hangs up": (faults.hangs_up, "no connection|closed|dropped"),
    "not HTTP": (faults.sends(b"SSH-2.0-OpenSSH_9.2\r\n"), "SSH|HTTP|connection"),
    "headers without end": (faults.sends_headers_without_end, "header"),
    "redirect to itself": (faults.redirects_to_itself, "redirect"),
    "redirect to a file": (faults.redirects("file:///etc/passwd"), "redirect"),
    "gzip that is none": (says(GOOD, Content_Encoding="gzip"), "cannot be decompressed .gzip: Error -3"),
    "an encoding that was not asked for": (
        says(GOOD, Content_Encoding="br"),
        "is encoded as 'br', which was not asked",
    ),
    **{
        f"{encoding} {fault}": (says(body, Content_Encoding=encoding), f"cannot be decompressed .{encoding}: {reason}")
        for encoding, fault, body, reason in faults.broken_compression(GOOD.encode())
    },
}
# The service answers the trivial query: this query is to blame.
FAILURES = {
    "bad request": (says("Parse error at 1", "400 Bad Request"), "invalid", "400.*Parse error at 1"),
    "no such table": (says("Unknown table t", "404 Not Found"), "invalid", "404.*Unknown table t"),
    "unprocessable": (says("no", "422 Unprocessable Entity"), "invalid", "422"),
    "forbidden table": (says("not this", "403 Forbidden"), "rejected", "403.*not this"),
    "too long": (says("", "413 Content Too Large"), "rejected", "413"),
    "error": (says("no memory", "500 Internal Server Error"), "rejected", "500.*no memory"),
    "gateway time-out": (says("", "504 Gateway Timeout"), "rejected", "504"),
    "an error in the body": (says('{"error": {"message": "no column x"}}'), "invalid", "^no column x$"),
    "an error on the second page": (fails_on_the_second_page, "invalid", "division by zero"),
    "escape codes": (says('{"error": {"message": "\\u001b[2J##[error]"}}'), "invalid", r"\\x1b\[2J"),
    "an error that is an object": (says('{"error": {"message": {"code": 5}}}'), "invalid", '{"code": 5}'),
    "pages without end": (follows, "too_large", "more than 100 rows"),
    "empty pages without end": (endless_empty_pages, "timeout", "no answer within 3 s"),
    "body without end": (faults.sends_a_body_without_end, "too_large", "268,435,456 bytes"),
    "gzip bomb": (faults.sends_a_gzip_bomb, "too_large", "268,435,456 bytes"),
    "too many rows": (says(json.dumps({"rows": [[1]] * 101})), "too_large", "more than 100 rows"),
}


@pytest.mark.parametrize(("encoding", "body"), faults.compressed(GOOD.encode()))
def test_compressed_answers_are_read(run, encoding, body):
    with FaultServer(says(body, Content_Encoding=encoding)) as server:
        assert run(server.url).answer.rows == [(1,), (2,)]


@pytest.mark.parametrize(("behaviour", "reason"), SOURCE_ERRORS.values(), ids=SOURCE_ERRORS)
def test_service_that_does_not_answer_as_one_is_a_source_error(run, behaviour, reason):
    with FaultServer(behaviour) as server, pytest.raises(SourceError, match=f"^source 's': .*(?:{reason})") as caught:
        run(server.url)

    assert str(caught.value).isprintable()


@pytest.mark.parametrize(("behaviour", "kind", "reason"), FAILURES.values(), ids=FAILURES)
def test_service_that_refuses_this_query_alone_makes_it_a_failed_one(run, behaviour, kind, reason):
    with FaultServer(unless_probed(behaviour)) as server:
        error = run(server.url, timeout=300 if kind == "too_large" else 3).error

    assert error.kind == kind
    assert re.search(reason, error.message)
    assert error.message.isprintable()


@pytest.mark.parametrize("behaviour", SLOW.values(), ids=SLOW)
def test_late_answer_is_a_failure_where_the_trivial_query_is_answered(run, behaviour):
    with FaultServer(unless_probed(behaviour)) as server:
        error = run(server.url, timeout=1).error

    assert (error.kind, error.message) == ("timeout", "no answer within 1 s")


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("behaviour", SLOW.values(), ids=SLOW)
def test_late_answer_is_a_source_error_where_nothing_is_answered(run, behaviour):
    with FaultServer(behaviour) as server, pytest.raises(SourceError, match="no answer within 1 s"):
        run(server.url, timeout=1)


@pytest.mark.parametrize(
    "behaviour",
    [says("", "503 Service Unavailable"), says("", "429 Too Many Requests", Retry_After=1), faults.resets],
    ids=["unavailable", "too many requests", "reset"],
)
def test_what_passes_is_tried_again(run, behaviour):
    with FaultServer(then_good(behaviour)) as server:
        execution = run(server.url)

    assert execution.answer.rows == [(1,), (2,)]
    assert len(server.requests) == 2


def test_a_cut_answer_is_too_large_where_the_service_says_so(run):
    with FaultServer(says('{"rows": [[1]], "more": true}')) as server:
        error = run(server.url, truncated="$.more").error

    assert (error.kind, error.message) == ("too_large", "the service says that it cut the answer ($.more)")


def test_whole_answer_is_taken_where_the_service_says_so(run):
    with FaultServer(says('{"rows": [[1]], "more": false, "error": {"message": null}}')) as server:
        assert run(server.url, truncated="$.more").answer.rows == [(1,)]


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"rows": "$.rows[*]"}, r"must select the list of rows, not the rows"),
        ({"rows": "$[oh"}, r"`\$\[oh` is not a JSONPath"),
        ({"columns": "$.names"}, r"`columns` \(\$\.names\) selects nothing"),
        ({"columns": "$"}, r"`columns` \(\$\) selects no names"),
        ({"columns": "$.rows[*][0]"}, r"row 1 has 1 cells, where there are 2 columns"),
    ],
)
def test_path_that_does_not_fit_the_answer_is_a_source_error_that_names_it(run, settings, reason):
    with FaultServer(says(GOOD)) as server, pytest.raises(SourceError, match=reason):
        run(server.url, **settings)


@pytest.mark.parametrize("status", ["302 Found", "307 Temporary Redirect", "308 Permanent Redirect"])
def test_redirect_to_another_origin_is_not_followed(run, status):
    with (
        FaultServer(says(GOOD)) as second_server,
        FaultServer(faults.redirects(second_server.url, status)) as server,
        pytest.raises(SourceError, match="another origin"),
    ):
        run(server.url, auth={"bearer": "t0ken-of-mine"})

    assert second_server.requests == []


def test_redirect_within_the_origin_is_followed_with_the_query(run):
    def behave(exchange):
        if exchange.request.path == "/new":
            exchange.reply(GOOD)
        else:
            exchange.reply("", "307 Temporary Redirect", Location="/new")

    with FaultServer(behave) as server:
        rows = run(server.url).answer.rows

    assert rows == [(1,), (2,)]
    assert [request.query for request in server.requests] == [QUERY, QUERY]


SECRETS = {
    "basic": ({"auth": {"basic": "me:s3cret-pass"}}, "^Basic "),
    "bearer": ({"auth": {"bearer": "t0ken=of-mine"}}, "^Bearer "),
    "header": ({"headers": {"X-Token": "t0ken of mine"}}, "t0ken"),
    "parameter": ({"params": {"key": "k3y/of mine"}}, "k3y"),
    "form": ({"body": "token=b0dy-of-mine&query={query}&x=1"}, "b0dy"),
    "before a place": ({"body": None, "params": {"query": "{query}", "key": "b0dy-of-mine {limit}"}}, "b0dy"),
}


@pytest.mark.parametrize("status", ["200 OK", "400 Bad Request", "401 Unauthorized", "500 Internal Server Error"])
@pytest.mark.parametrize(("settings", "pattern"), SECRETS.values(), ids=SECRETS)
def test_what_a_service_repeats_of_our_secrets_is_taken_out(run, status, settings, pattern):
    with FaultServer(echo(status, pattern)) as server, pytest.raises(SourceError) as caught:
        run(server.url, **settings)

    assert "[redacted]" in str(caught.value)
    assert not re.search("s3cret|t0ken|k3y|b0dy|bWU6", str(caught.value))


def test_parameters_and_user_of_the_url_are_taken_out(run):
    with FaultServer(echo("400 Bad Request", "k3y|^Basic ")) as server, pytest.raises(SourceError) as caught:
        run(f"{server.url.replace('//', '//me:s3cret-pass@')}?key=k3y-of-mine")

    assert "[redacted]" in str(caught.value)
    assert not re.search("s3cret|k3y|bWU6", str(caught.value))


def test_secrets_are_not_in_the_list_of_processes(hosts, run):
    with FaultServer(says(GOOD)) as server:
        run(server.url, auth={"basic": "me:s3cret-pass"}, headers={"X-Token": "t0ken-of-mine"})
        process = Path("/proc") / str(hosts.shared(Host("http", DRIVER)).pid)
        content = (process / "cmdline").read_bytes() + (process / "environ").read_bytes()

    assert b"host_child.py" in content
    assert b"s3cret" not in content
    assert b"t0ken" not in content


def test_port_that_nobody_listens_on_is_a_source_error(run):
    with pytest.raises(SourceError, match="refused") as caught:
        run(f"http://me:s3cret-pass@127.0.0.1:{servers.free_port()}/query")

    assert "s3cret" not in str(caught.value)


def test_connection_is_kept_for_the_next_query(run):
    with FaultServer(says(GOOD)) as server:
        rows = [run(server.url).answer.rows for _ in range(3)]

    assert rows == [[(1,), (2,)]] * 3
    assert len(server.connections) == 1


def test_counted_page_without_a_list_is_no_end_of_the_answer(run):
    def behave(exchange):
        exchange.reply('{"rows": [[1], [2]]}' if exchange.number == 1 else '{"status": "overloaded"}')

    settings = {"body": "query={query}&from={offset}", "next": None, "page_size": 2}
    with FaultServer(behave) as server, pytest.raises(SourceError, match=r"selects nothing.*status"):
        run(server.url, **settings)


def test_pages_that_the_service_cuts_are_a_source_error(run):
    settings = {"body": "query={query}&from={offset}", "next": None, "page_size": 5}
    with FaultServer(says(GOOD)) as server, pytest.raises(SourceError, match="2 rows where `page_size` is 5, and more"):
        run(server.url, **settings)


def test_page_with_more_rows_than_asked_for_is_a_source_error(run):
    settings = {"body": "query={query}&from={offset}", "next": None, "page_size": 1}
    with FaultServer(says(GOOD)) as server, pytest.raises(SourceError, match="2 rows where `page_size` is 1"):
        run(server.url, **settings)


def test_the_probe_is_the_sources_own(run):
    with (
        FaultServer(says("no", "400 Bad Request")) as server,
        pytest.raises(SourceError, match="answer SELECT 2 AS two"),
    ):
        run(server.url, probe="SELECT 2 AS two")

    assert [request.query for request in server.requests] == [QUERY, "SELECT 2 AS two"]
