"""What an endpoint is sent, and answers that it cut and says so."""

import pytest
from servers import FaultServer

from pytest_queryeval.core.errors import SourceError
from pytest_queryeval.core.model import Source
from pytest_queryeval.engines import ENGINES

TWO_ROWS = '{"head": {"vars": ["x"]}, "results": {"bindings": [{"x": {"type": "uri", "value": "a:b"}}, {}]}}'


def executed(hosts, folder, **headers):
    def answer(exchange):
        if exchange.request.is_probe:
            exchange.reply('{"head": {}, "boolean": true}')
        else:
            exchange.reply(TWO_ROWS, **headers)

    with FaultServer(answer) as server:
        source = Source(name="e", engine="endpoint", settings={"url": server.url}, folder=folder)
        return ENGINES["endpoint"].open(source, hosts).execute("SELECT ?x { ?x ?y ?z }", timeout=5, max_rows=10)


def sent(hosts, folder, query, **settings):
    """The requests that a query makes."""
    with FaultServer(lambda exchange: exchange.reply(TWO_ROWS)) as server:
        settings = {"url": f"{server.url}?tenant=7", **settings}
        engine = ENGINES["endpoint"].open(Source(name="e", engine="endpoint", settings=settings, folder=folder), hosts)
        execution = engine.execute(query, timeout=5, max_rows=10)
        return execution, server.requests


def test_service_is_sent_only_where_the_source_allows_it(hosts, tmp_path):
    query = "SELECT ?x { SERVICE <http://e/> { ?x ?y ?z } }"

    refused, nothing = sent(hosts, tmp_path, query)
    allowed, requests = sent(hosts, tmp_path, query, service=True)

    assert (refused.error.kind, nothing) == ("unsafe", [])
    assert "`service: true` on the source allows it" in refused.error.message
    assert allowed.answer.rows
    assert [request.query for request in requests] == [query]


def test_the_default_graph_is_sent_unless_the_query_names_its_own(hosts, tmp_path):
    _, plain = sent(hosts, tmp_path, "SELECT ?x { ?x ?y ?z }", default_graph=["http://e/1", "http://e/2"])
    _, own = sent(hosts, tmp_path, "SELECT ?x FROM <http://e/3> { ?x ?y ?z }", default_graph="http://e/1")

    assert plain[0].parameters["default-graph-uri"] == ["http://e/1", "http://e/2"]
    assert "default-graph-uri" not in own[0].parameters


@pytest.mark.parametrize("padding", [0, 3_000])
def test_parameters_of_the_url_stay_in_it(hosts, tmp_path, padding):
    _, (request,) = sent(hosts, tmp_path, f"SELECT ?x {{ ?x ?y ?z }} #{'x' * padding}")

    assert request.method == ("POST" if padding else "GET")
    assert "tenant=7" in request.target
    assert len(request.parameters["query"]) == 1


def test_a_variable_may_be_called_boolean(hosts, tmp_path):
    body = '{"head": {"vars": ["boolean"]}, "results": {"bindings": []}}'
    with FaultServer(lambda exchange: exchange.reply(body)) as server:
        source = Source(name="e", engine="endpoint", settings={"url": server.url}, folder=tmp_path)
        answer = ENGINES["endpoint"].open(source, hosts).execute("SELECT ?boolean {}", timeout=5, max_rows=10).answer

    assert answer.columns == ("boolean",)


@pytest.mark.parametrize("status", ["400 Bad Request", "403 Forbidden", "500 Internal Server Error"])
def test_what_a_server_repeats_of_our_secrets_is_taken_out(hosts, tmp_path, status):
    def echo(exchange):
        request = exchange.request
        exchange.reply(f"{request.target} {request.headers}", status, Content_Type="text/plain")

    with FaultServer(echo) as server:
        url = f"{server.url}?apikey=k3y-of-mine"
        settings = {"url": url, "auth": {"basic": "me:pass word!"}, "headers": {"X-Token": "t0ken-of-mine"}}
        engine = ENGINES["endpoint"].open(
            Source(name="e", engine="endpoint", settings=settings, folder=tmp_path), hosts
        )
        try:
            said = engine.execute("ASK {}", timeout=5, max_rows=1).error.message
        except SourceError as error:
            said = str(error)

    assert "HTTP" in said
    assert not [secret for secret in ("k3y", "pass word", "bWU6", "t0ken") if secret in said]


def test_a_header_that_cannot_be_sent_stays_secret(hosts, tmp_path):
    with pytest.raises(SourceError) as caught:
        sent(hosts, tmp_path, "ASK {}", headers={"X-Key": " s3cret\x07"})

    assert "cannot be sent" in str(caught.value)
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize("prolog", ['<!DOCTYPE r [<!ENTITY a "b">]>', '<!DOCTYPE r SYSTEM "file:///etc/passwd">'])
def test_document_types_in_graphs_are_refused(hosts, tmp_path, prolog):
    body = f'<?xml version="1.0"?>{prolog}<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"/>'
    with FaultServer(lambda exchange: exchange.reply(body, Content_Type="application/rdf+xml")) as server:
        source = Source(name="e", engine="endpoint", settings={"url": server.url}, folder=tmp_path)
        with pytest.raises(SourceError, match="document type"):
            ENGINES["endpoint"].open(source, hosts).execute("DESCRIBE <a:b>", timeout=5, max_rows=10)


def test_rows_that_the_server_counted_out_are_too_large(hosts, tmp_path):
    error = executed(hosts, tmp_path, X_SPARQL_MaxRows=2).error

    assert (error.kind, error.message) == ("too_large", "the server cuts answers at 2 rows")


def test_fewer_rows_than_the_server_allows_are_whole(hosts, tmp_path):
    assert len(executed(hosts, tmp_path, X_SPARQL_MaxRows=10_000).answer.rows) == 2


def test_rows_until_the_servers_time_was_up_are_rejected(hosts, tmp_path):
    error = executed(hosts, tmp_path, X_SQL_State="S1TAT").error

    assert error.kind == "rejected"
    assert "its own time limit" in error.message
