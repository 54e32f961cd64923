"""Whatever goes wrong at a service is an error of the source, unless the query alone brought it about."""

import re
import shutil
import ssl
import subprocess
import time
from importlib.metadata import version

import endpoint_faults as faults
import pytest
import servers
from endpoint_faults import FAULTS, behaviour_of, says, unless_probed
from opened_sources import source_of
from servers import FaultServer
from sparql_queries import NAMED, PREFIXES, TURTLE

from pytest_queryeval.core.errors import SourceError
from pytest_queryeval.core.table import IRI, Literal
from pytest_queryeval.sandbox import http_session  # white box: the exact limit, which is too large to be sent
from pytest_queryeval.testing import open_engine

pytestmark = pytest.mark.process

SELECT = {"endpoint": "SELECT ?x { ?s ?p ?x }", "http": "SELECT x FROM t"}
ROWS = {"endpoint": [(Literal("one"),)], "http": [("one",)]}
HTTP = {"method": "GET", "params": {"query": "{query}"}, "rows": "$.results.bindings", "cells": "$.x.value"}
SETTINGS = {"endpoint": {}, "http": {**HTTP, "probe": "ASK {}", "columns": "$.head.vars"}}
ENGINES = [
    pytest.param("endpoint", marks=pytest.mark.feature("sparql_endpoint")),
    pytest.param("http", marks=pytest.mark.feature("http_engine")),
]
SECRET = "user:correct-horse"
LONG = 'SELECT ?a { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l FILTER(MD5(CONCAT(STR(?c), STR(?f), STR(?l))) < "1") }'
CARTESIAN = "SELECT (COUNT(*) AS ?n) { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l . ?m ?n ?o . ?p ?q ?r }"


class Client:
    """Queries services by one engine, and checks that each query ends in time."""

    def __init__(self, engine, hosts, folder):
        self.engine, self.hosts, self.folder = engine, hosts, folder

    def __call__(self, url, query="", timeout=3, max_rows=100, **settings):
        began = time.monotonic()
        try:
            with open_engine(self.source(url, **settings), self.hosts) as engine:
                return engine.execute(query or SELECT[self.engine], timeout=timeout, max_rows=max_rows)
        finally:
            assert time.monotonic() - began < 10 * timeout

    def source(self, url, **settings):
        return source_of(self.engine, self.folder, url=url, **SETTINGS[self.engine], **settings)

    def rows(self, url, **settings):
        execution = self(url, **settings)
        assert execution.error is None, execution.error
        return execution.answer.rows

    def problem(self, url, **settings):
        """The message of the source's error."""
        with pytest.raises(SourceError, match=r"^source 'music': ") as caught:
            self(url, **settings)
        assert str(caught.value).isprintable()
        return str(caught.value)


@pytest.fixture(scope="module", params=ENGINES)
def run(request, hosts, tmp_path_factory):
    client = Client(request.param, hosts, tmp_path_factory.mktemp("client"))
    with FaultServer(faults.good) as server:
        client(server.url, timeout=30)  # starts the child process
    return client


@pytest.fixture
def good(run):
    return ROWS[run.engine]


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """A key and a certificate for 127.0.0.1 that nobody signed but itself."""
    if not shutil.which("openssl"):
        pytest.skip("openssl makes the certificate")
    path = tmp_path_factory.mktemp("tls") / "both.pem"
    command = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=127.0.0.1"
    names = ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(path), "-out", str(path.with_name("ca.pem"))]
    subprocess.run(["openssl", *command.split(), *names], check=True, capture_output=True)
    path.write_text(path.read_text() + path.with_name("ca.pem").read_text())
    return path


@pytest.fixture
def secure(certificate):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    with FaultServer(faults.good, context) as server:
        yield server


@pytest.mark.parametrize(("encoding", "body"), faults.compressed(faults.GOOD))
def test_compressed_answers_are_read(run, good, encoding, body):
    with FaultServer(says(body, Content_Encoding=encoding)) as server:
        assert run.rows(server.url) == good


def test_a_compressed_answer_that_is_broken_is_a_source_error(run):
    for encoding, fault, body, reason in faults.broken_compression(faults.GOOD):
        with FaultServer(says(body, Content_Encoding=encoding)) as server:
            assert f"cannot be decompressed (gzip: {reason}" in run.problem(server.url), fault


@pytest.mark.parametrize("row", FAULTS["source"], ids=repr)
def test_a_service_that_does_not_answer_is_a_source_error(run, row):
    expected = row.get(run.engine, row["said"])
    with FaultServer(behaviour_of(row)) as server:
        said = run.problem(server.url) if expected else run.rows(server.url)

    assert re.search(expected, said) if expected else said == ROWS[run.engine], said


@pytest.mark.parametrize("row", FAULTS["query"], ids=repr)
def test_a_service_that_refuses_this_query_alone_makes_it_a_failed_one(run, row):
    with FaultServer(behaviour_of(row, probed=True)) as server:
        error = run(server.url, timeout=300).error

    assert error.kind == row["kind"], error
    assert re.search(row["said"], error.message)
    assert error.message.isprintable()


@pytest.mark.parametrize("row", FAULTS["late"], ids=repr)
def test_a_late_answer_is_a_failure_if_the_trivial_query_is_answered(run, row):
    with FaultServer(behaviour_of(row, probed=True)) as server:
        error = run(server.url, timeout=1).error

    assert (error.kind, error.message) == ("timeout", "no answer within 1 s")


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("row", FAULTS["late"][:2], ids=repr)
def test_a_late_answer_is_a_source_error_if_nothing_is_answered(run, row):
    with FaultServer(behaviour_of(row)) as server:
        assert "no answer within 1 s" in run.problem(server.url, timeout=1)


@pytest.mark.parametrize("row", FAULTS["passing"], ids=repr)
def test_what_passes_is_tried_again(run, good, row):
    with FaultServer(faults.then_good(behaviour_of(row))) as server:
        assert run.rows(server.url) == good

    assert len(server.queries) == 2


def test_the_time_limit_of_a_server_is_reached_at_most_twice(run):
    with FaultServer(unless_probed(says("", "408 Request Timeout"))) as server:
        assert run(server.url).error.kind == "timeout"

    assert len(server.queries) == 2


def test_the_time_limit_holds_over_all_attempts_together(run):
    with FaultServer(says("", "503 Service Unavailable", Retry_After=1)) as server:
        run.problem(server.url, timeout=1.5)

    assert len(server.queries) <= 2


@pytest.mark.parametrize(
    ("headers", "agent"), [({}, f"pytest-queryeval/{version('pytest-queryeval')}"), ({"user-agent": "me"}, "me")]
)
def test_requests_name_their_agent(run, headers, agent):
    with FaultServer(faults.then_good(says("", "503 Busy"))) as server:
        run(server.url, headers=headers)

    assert [request.headers["user-agent"] for request in server.requests] == [agent, agent]


def test_a_port_that_nobody_listens_on_is_a_source_error(run):
    assert "refused" in run.problem(f"http://127.0.0.1:{servers.free_port()}/query")


@pytest.mark.parametrize(("behaviour", "connections"), [(faults.good, 1), (faults.answers_and_hangs_up, 5)])
def test_a_connection_is_kept_and_made_again_if_the_server_closed_it(run, good, behaviour, connections):
    with FaultServer(behaviour) as server:
        assert [run.rows(server.url) for _ in range(5)] == [good] * 5

    assert len(server.connections) == connections


@pytest.mark.parametrize("auth", [{"basic": SECRET}, {"bearer": SECRET}])
def test_another_origin_gets_neither_credentials_nor_headers(run, good, auth):
    for status in ("301 Moved Permanently", "302 Found", "307 Temporary Redirect", "308 Permanent Redirect"):
        with FaultServer(faults.good) as second:
            with FaultServer(faults.redirects(f"{second.url}?query=ASK", status)) as server:
                if run.engine == "http":  # which follows to its own origin only
                    assert "redirect" in run.problem(server.url, auth=auth, headers={"X-Key": "k-123456"})
                    assert second.requests == []
                    continue
                assert run.rows(server.url, auth=auth, headers={"X-Key": "k-123456"}) == good

            assert "authorization" in server.requests[0].headers
            assert not {"authorization", "x-key", "cookie"} & set(second.requests[0].headers)


@pytest.mark.parametrize("scheme", ["basic", "digest", "bearer"])
def test_right_credentials_are_accepted_and_wrong_ones_are_a_source_error_without_them(run, good, scheme):
    with FaultServer(faults.wants(scheme, SECRET)) as server:
        assert run.rows(server.url, auth={scheme: SECRET}) == good
        said = run.problem(server.url, auth={scheme: "user:wrong-horse"})

    assert re.search("401 Unauthorized.*the server does not accept it: correct it", said)
    assert "horse" not in said


def test_credentials_of_the_url_are_sent_and_never_shown(run, good):
    with FaultServer(faults.wants("basic", SECRET)) as server:
        url = server.url.replace("//", f"//{SECRET}@")
        assert run.rows(url) == good

    said = run.problem(url)
    assert "refused" in said
    assert "horse" not in said


@pytest.mark.parametrize("status", ["400 Bad Request", "403 Forbidden", "500 Internal Server Error"])
def test_what_a_server_repeats_of_our_secrets_is_taken_out(run, status):
    def echo(exchange):
        exchange.reply(f"{exchange.request.target} {exchange.request.headers}", status, Content_Type="text/plain")

    with FaultServer(echo) as server:
        auth = {"basic": "me:pass word!"}
        said = run.problem(f"{server.url}?apikey=k3y-of-mine", auth=auth, headers={"X-Token": "t0ken-of-mine"})

    assert "HTTP" in said
    assert not [secret for secret in ("k3y", "pass word", "bWU6", "t0ken") if secret in said]


def test_a_certificate_of_its_own_is_accepted_on_demand_only(run, good, secure, certificate):
    shutil.copy(certificate.with_name("ca.pem"), run.folder)

    assert "certificate" in run.problem(secure.url)
    assert "gone.pem" in run.problem(secure.url, verify="gone.pem")
    assert secure.requests == []
    assert run.rows(secure.url, verify=False) == run.rows(secure.url, verify="ca.pem") == good


@pytest.mark.parametrize("ends", [("https", "http"), ("http", "https")])
def test_a_wrong_scheme_is_a_source_error(run, secure, ends):
    with FaultServer(faults.good) as plain:
        url = {"http": plain, "https": secure}[ends[0]].url.replace(*ends)
        assert run.problem(url, verify=False)


# Endpoints alone.


@pytest.fixture
def endpoint(hosts, tmp_path):
    return Client("endpoint", hosts, tmp_path)


ENDPOINT = pytest.mark.feature("sparql_endpoint")


@ENDPOINT
@pytest.mark.parametrize("body", FAULTS["shapes"])
def test_json_of_another_shape_is_never_an_answer(endpoint, body):
    with FaultServer(says(body)) as server:
        assert "not valid SPARQL JSON results" in endpoint.problem(server.url)


@ENDPOINT
@pytest.mark.parametrize("text", ["HTTP 429 error making the query", "Service Unavailable", "503"])
def test_another_endpoint_that_is_busy_is_no_fault_of_the_query(endpoint, text):
    query = "SELECT * { SERVICE <http://example.org/sparql> { ?s ?p ?o } }"

    with FaultServer(unless_probed(says(text, "500 Internal Server Error"))) as server:
        said = endpoint.problem(server.url, query=query, service=True)
    with FaultServer(unless_probed(says("no memory", "500 Internal Server Error"))) as server:
        error = endpoint(server.url, query, service=True).error

    assert re.search(f"a service that the query asks .*{text}", said)
    assert error.kind == "rejected"


@pytest.fixture
def store(tmp_path):
    """Starts Oxigraph's own server on files, and gives its URL."""

    def start(*texts, timeout=None):
        paths = [tmp_path / f"{number}.trig" for number in range(len(texts))]
        for path, text in zip(paths, texts, strict=True):
            path.write_text(text, encoding="utf-8")
        return servers.oxigraph(tmp_path / "store", paths, timeout=timeout)

    return start


@ENDPOINT
@pytest.mark.parametrize("limit", [None, 1])
def test_a_cartesian_product_on_a_server_ends_in_time(endpoint, store, limit):
    with store(TURTLE, timeout=limit) as url:
        late = endpoint(url, CARTESIAN, timeout=2)

        assert late.error.kind == "timeout"
        assert endpoint.rows(url, query="ASK {}") == [(True,)]


@ENDPOINT
def test_an_answer_that_a_server_cuts_short_at_its_own_time_limit_is_a_timeout(endpoint, store):
    with store(TURTLE, timeout=1) as url:
        error = endpoint(url, LONG, timeout=30, max_rows=10**8).error

    assert (error.kind, "the server stopped the query" in error.message) == ("timeout", True)


@ENDPOINT
def test_data_that_a_server_got_meanwhile_are_seen_and_a_server_that_is_gone_is_an_error(endpoint, store):
    count = "SELECT (COUNT(*) AS ?n) { ?s ?p ?o }"

    with store() as url, open_engine(endpoint.source(url), endpoint.hosts) as engine:
        before = engine.execute(count, timeout=5, max_rows=10).answer.rows
        servers.load(url.removesuffix("/query"), b"<http://a> <http://b> 1 .", "text/turtle")
        after = engine.execute(count, timeout=5, max_rows=10).answer.rows

    assert [before[0][0].lexical, after[0][0].lexical] == ["0", "1"]
    assert "refused" in endpoint.problem(url)


@ENDPOINT
def test_the_default_graph_of_a_source_is_what_queries_see(endpoint, store):
    query = f"{PREFIXES} SELECT ?c {{ ?c :status 'kept' }}"

    with store(NAMED) as url:
        rows = endpoint.rows(url, query=query, default_graph="http://example.org/autumn")

    assert rows == [(IRI("http://example.org/c3"),)]


def test_all_parts_of_an_answer_share_one_limit_on_bytes_which_may_be_reached(monkeypatch):
    monkeypatch.setattr(http_session, "BODY_BYTES", 1_000)
    monkeypatch.setattr(http_session, "CHUNK_BYTES", 64)
    policy = http_session.StatusPolicy(answers=[200], invalid=[], rejected=[], follows_to_other_origins=False)

    for sizes, is_read in (([1_000], True), ([1_001], False), ([600, 400], True), ([600, 401], False)):
        bodies = iter([b"x" * size for size in sizes])
        with FaultServer(lambda exchange, bodies=bodies: says(next(bodies))(exchange)) as server:
            settings = {"url": server.url, "headers": {}, "auth": None, "verify": True}
            session = http_session.Sessions(trust_env=False).get(settings)
            asked = http_session.RetryingRequest(session, settings, policy, time.monotonic() + 60)
            request = http_session.next_page_request(server.url)
            read = [len(asked.answer(request)[1]) for _ in sizes[1:]]
            if is_read:
                assert [*read, len(asked.answer(request)[1])] == sizes
            else:
                with pytest.raises(http_session.QueryFailed, match="the answer has more than 1,000 bytes"):
                    asked.answer(request)
