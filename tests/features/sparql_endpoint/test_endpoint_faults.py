"""Whatever goes wrong at an endpoint is an error of the source, unless the query alone brought it about."""

import re
import shutil
import ssl
import subprocess
import time
from importlib.metadata import version

import endpoint_faults as faults
import pytest
import servers
from endpoint_faults import FAILURES, RETRIED, SHAPES, SLOW, SOURCE_ERRORS, says, unless_probed
from servers import FaultServer
from sparql_queries import NAMED, PREFIXES, TURTLE

from pytest_queryeval.core.errors import SourceError
from pytest_queryeval.core.model import Source
from pytest_queryeval.core.table import IRI, Literal
from pytest_queryeval.engines import ENGINES
from pytest_queryeval.sandbox.host import Hosts

pytestmark = pytest.mark.process

SELECT = "SELECT ?x { ?s ?p ?x }"
ROWS = [(Literal("one"),)]
SECRET = "user:correct-horse"
LONG = 'SELECT ?a { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l FILTER(MD5(CONCAT(STR(?c), STR(?f), STR(?l))) < "1") }'
CARTESIAN = "SELECT (COUNT(*) AS ?n) { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l . ?m ?n ?o . ?p ?q ?r }"


@pytest.fixture(scope="module")
def hosts(tmp_path_factory):
    with Hosts() as pool, FaultServer(faults.good) as server:
        opened(pool, tmp_path_factory.mktemp("warm"), url=server.url).execute(SELECT, timeout=30, max_rows=9)
        yield pool


@pytest.fixture
def run(hosts, tmp_path):
    """Executes a query on the endpoint at a URL, and checks that it ends in time."""

    def execute(url, query=SELECT, timeout=3, max_rows=100, **settings):
        engine = opened(hosts, tmp_path, url=url, **settings)
        began = time.monotonic()
        try:
            return engine.execute(query, timeout=timeout, max_rows=max_rows)
        finally:
            elapsed = time.monotonic() - began
            engine.close()
            assert elapsed < 10 * timeout

    return execute


def opened(hosts, folder, **settings):
    return ENGINES["endpoint"].open(Source(name="e", engine="endpoint", settings=settings, folder=folder), hosts)


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
def test_compressed_answers_are_read(run, encoding, body):
    with FaultServer(says(body, Content_Encoding=encoding)) as server:
        assert run(server.url).answer is not None


@pytest.mark.parametrize(("behaviour", "reason"), SOURCE_ERRORS.values(), ids=SOURCE_ERRORS)
def test_endpoint_that_does_not_answer_as_one_is_a_source_error(run, behaviour, reason):
    with FaultServer(behaviour) as server, pytest.raises(SourceError, match=f"^source 'e': .*(?:{reason})") as caught:
        run(server.url)

    assert str(caught.value).isprintable()


@pytest.mark.parametrize("body", SHAPES.values(), ids=SHAPES)
def test_json_of_another_shape_is_never_an_answer(run, body):
    with FaultServer(says(body)) as server, pytest.raises(SourceError, match="not valid SPARQL JSON results"):
        run(server.url)


@pytest.mark.parametrize(("behaviour", "kind", "reason"), FAILURES.values(), ids=FAILURES)
def test_endpoint_that_refuses_this_query_alone_makes_it_a_failed_one(run, behaviour, kind, reason):
    with FaultServer(behaviour) as server:
        error = run(server.url, timeout=300).error

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


@pytest.mark.parametrize("behaviour", RETRIED.values(), ids=RETRIED)
def test_what_passes_is_tried_again(run, behaviour):
    with FaultServer(faults.then_good(behaviour)) as server:
        execution = run(server.url)

    assert execution.answer.rows == ROWS
    assert len(server.queries) == 2


def test_time_limit_of_a_server_is_reached_at_most_twice(run):
    with FaultServer(unless_probed(says("", "408 Request Timeout"))) as server:
        error = run(server.url).error

    assert error.kind == "timeout"
    assert len(server.queries) == 2


@pytest.mark.parametrize(
    ("headers", "agent"),
    [({}, f"pytest-queryeval/{version('pytest-queryeval')}"), ({"user-agent": "me"}, "me")],
)
def test_requests_name_their_agent(run, headers, agent):
    with FaultServer(faults.then_good(says("", "503 Busy"))) as server:
        run(server.url, headers=headers)

    assert [request.headers["user-agent"] for request in server.requests] == [agent, agent]


@pytest.mark.parametrize("text", ["HTTP 429 error making the query", "Service Unavailable", "503"])
def test_another_endpoint_that_is_busy_is_no_fault_of_the_query(run, text):
    query = "SELECT * { SERVICE <http://example.org/sparql> { ?s ?p ?o } }"
    behaviour = unless_probed(says(text, "500 Internal Server Error"))

    with FaultServer(behaviour) as server, pytest.raises(SourceError, match=f"a service that the query asks .*{text}"):
        run(server.url, query, service=True)
    with FaultServer(unless_probed(says("no memory", "500 Internal Server Error"))) as server:
        assert run(server.url, query, service=True).error.kind == "rejected"


def test_time_limit_holds_over_all_attempts_together(run):
    with FaultServer(says("", "503 Service Unavailable", Retry_After=1)) as server, pytest.raises(SourceError):
        run(server.url, timeout=1.5)

    assert len(server.queries) <= 2


def test_port_that_nobody_listens_on_is_a_source_error(run):
    with pytest.raises(SourceError, match="refused"):
        run(f"http://127.0.0.1:{servers.free_port()}/query")


def test_connection_is_kept_for_the_next_query(run):
    with FaultServer(faults.good) as server:
        rows = [run(server.url).answer.rows for _ in range(3)]

    assert rows == [ROWS] * 3
    assert len(server.connections) == 1


def test_connection_that_the_server_closed_meanwhile_costs_no_query(run):
    with FaultServer(faults.answers_and_hangs_up) as server:
        rows = [run(server.url).answer.rows for _ in range(5)]

    assert rows == [ROWS] * 5


def test_request_is_that_of_the_protocol(run):
    settings = {"default_graph": ["http://g/1", "http://g/2"], "headers": {"X-Key": "k-123456"}}

    with FaultServer(faults.good) as server:
        run(f"{server.url}?tenant=7", **settings)
        run(server.url, SELECT + " # long" * 2000)

    short, long = server.requests
    assert (short.method, short.query, short.parameters["tenant"]) == ("GET", SELECT, ["7"])
    assert short.parameters["default-graph-uri"] == ["http://g/1", "http://g/2"]
    assert short.headers["x-key"] == "k-123456"
    assert "application/sparql-results+json" in short.headers["accept"]
    assert long.method == "POST"
    assert long.query.startswith(SELECT)


@pytest.mark.parametrize(
    "status", ["301 Moved Permanently", "302 Found", "307 Temporary Redirect", "308 Permanent Redirect"]
)
@pytest.mark.parametrize("auth", [{"basic": SECRET}, {"bearer": SECRET}])
def test_another_origin_gets_neither_credentials_nor_headers(run, status, auth):
    with (
        FaultServer(faults.good) as second_server,
        FaultServer(faults.redirects(f"{second_server.url}?query=ASK", status)) as server,
    ):
        execution = run(server.url, auth=auth, headers={"X-Key": "k-123456"})

    assert execution.answer.rows == ROWS
    assert "authorization" in server.requests[0].headers
    assert not {"authorization", "x-key", "cookie"} & set(second_server.requests[0].headers)


@pytest.mark.parametrize("scheme", ["basic", "digest", "bearer"])
def test_right_credentials_are_accepted_and_wrong_ones_are_a_source_error_without_them(run, scheme):
    with FaultServer(faults.wants(scheme, SECRET)) as server:
        execution = run(server.url, auth={scheme: SECRET})
        with pytest.raises(SourceError, match=r"401 Unauthorized.*the server does not accept it: correct it") as caught:
            run(server.url, auth={scheme: "user:wrong-horse"})

    assert execution.answer.rows == ROWS
    assert "horse" not in str(caught.value)


def test_credentials_of_the_url_are_sent_and_never_shown(run):
    with FaultServer(faults.wants("basic", SECRET)) as server:
        url = server.url.replace("//", f"//{SECRET}@")
        rows = run(url).answer.rows

    with pytest.raises(SourceError, match="refused") as caught:
        run(url)

    assert rows == ROWS
    assert "horse" not in str(caught.value)


@pytest.mark.parametrize("settings", [{"verify": False}, {"verify": "ca.pem"}])
def test_certificate_of_its_own_is_accepted_on_demand(run, secure, certificate, tmp_path, settings):
    shutil.copy(certificate.with_name("ca.pem"), tmp_path)

    assert run(secure.url, **settings).answer.rows == ROWS


def test_certificate_of_its_own_is_a_source_error(run, secure):
    with pytest.raises(SourceError, match="certificate"):
        run(secure.url)

    assert secure.requests == []


@pytest.mark.parametrize("ends", [("https", "http"), ("http", "https")])
def test_wrong_scheme_is_a_source_error(run, secure, ends):
    with FaultServer(faults.good) as plain, pytest.raises(SourceError, match=r"^source 'e': "):
        run({"http": plain, "https": secure}[ends[0]].url.replace(*ends), verify=False)


def test_missing_ca_file_is_a_source_error(run, secure):
    with pytest.raises(SourceError, match=r"gone\.pem"):
        run(secure.url, verify="gone.pem")


@pytest.mark.parametrize("limit", [None, 1])
def test_cartesian_product_on_a_server_ends_in_time(hosts, tmp_path, limit):
    (tmp_path / "graph.ttl").write_text(TURTLE, encoding="utf-8")

    with servers.oxigraph(tmp_path / "store", [tmp_path / "graph.ttl"], timeout=limit) as url:
        engine = opened(hosts, tmp_path, url=url)
        began = time.monotonic()
        late = engine.execute(CARTESIAN, timeout=2, max_rows=10)
        elapsed = time.monotonic() - began
        following = engine.execute("ASK {}", timeout=5, max_rows=10)
        engine.close()

    assert late.error.kind == "timeout"
    assert elapsed < 20
    assert following.answer.rows == [(True,)]


def test_answer_that_a_server_cuts_short_at_its_own_time_limit_is_a_timeout(hosts, tmp_path):
    (tmp_path / "graph.ttl").write_text(TURTLE, encoding="utf-8")

    with servers.oxigraph(tmp_path / "store", [tmp_path / "graph.ttl"], timeout=1) as url:
        engine = opened(hosts, tmp_path, url=url)
        error = engine.execute(LONG, timeout=30, max_rows=10**8).error
        engine.close()

    assert (error.kind, "the server stopped the query" in error.message) == ("timeout", True)


def test_server_that_is_gone_is_a_source_error(hosts, tmp_path):
    with servers.oxigraph(tmp_path / "store") as url:
        engine = opened(hosts, tmp_path, url=url)
        before = engine.execute("ASK {}", timeout=5, max_rows=10)

    with pytest.raises(SourceError, match="refused"):
        engine.execute("ASK {}", timeout=5, max_rows=10)

    engine.close()
    assert before.answer.rows == [(True,)]


def test_data_that_a_server_got_meanwhile_are_seen(hosts, tmp_path):
    count = "SELECT (COUNT(*) AS ?n) { ?s ?p ?o }"

    with servers.oxigraph(tmp_path / "store") as url:
        engine = opened(hosts, tmp_path, url=url)
        before = engine.execute(count, timeout=5, max_rows=10).answer.rows
        servers.load(url.removesuffix("/query"), b"<http://a> <http://b> 1 .", "text/turtle")
        after = engine.execute(count, timeout=5, max_rows=10).answer.rows
        engine.close()

    assert [before[0][0].lexical, after[0][0].lexical] == ["0", "1"]


def test_default_graph_of_a_source_is_what_queries_see(hosts, tmp_path):
    (tmp_path / "named.trig").write_text(NAMED, encoding="utf-8")
    query = f"{PREFIXES} SELECT ?c {{ ?c :status 'kept' }}"

    with servers.oxigraph(tmp_path / "store", [tmp_path / "named.trig"]) as url:
        engine = opened(hosts, tmp_path, url=url, default_graph="http://example.org/autumn")
        rows = engine.execute(query, timeout=5, max_rows=10).answer.rows
        engine.close()

    assert rows == [(IRI("http://example.org/c3"),)]
