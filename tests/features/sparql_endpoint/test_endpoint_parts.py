"""What an endpoint is sent, and answers that it cut and says so."""

import pytest
from servers import FaultServer

from pytest_queryeval.core.errors import SourceError
from pytest_queryeval.core.model import Source
from pytest_queryeval.engines import ENGINES
from pytest_queryeval.languages.sparql.order import with_empty_dataset

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


NAMED_SUBQUERIES = {
    "behind SELECT": "SELECT ?x WITH { SELECT ?x { ?x ?y ?z } LIMIT 9 } AS %i WHERE { INCLUDE %i . ?x ?p ?o }",
    "two": "SELECT * WITH { SELECT ?x { ?x ?y ?z } } AS %a WITH { SELECT ?x { INCLUDE %a } } AS %b { INCLUDE %b }",
    "named first": "WITH %c AS { SELECT ?x { ?x ?y ?z } } SELECT ?x { INCLUDE %c }",
    "in front": "PREFIX : <http://e/> with { select ?x { ?x :y ?z } } as %copy SELECT ?x { INCLUDE %copy }",
}


@pytest.mark.parametrize("query", NAMED_SUBQUERIES.values(), ids=NAMED_SUBQUERIES)
def test_named_subqueries_are_sent_to_endpoints_and_invalid_on_files(hosts, tmp_path, query):
    (tmp_path / "g.ttl").write_text("<http://e/a> <http://e/b> 1 .", encoding="utf-8")
    source = Source(name="g", engine="rdf", settings={"files": "g.ttl"}, folder=tmp_path)

    execution, requests = sent(hosts, tmp_path, query)
    on_files = ENGINES["rdf"].open(source, hosts).execute(query, timeout=5, max_rows=10)

    assert execution.answer.rows
    assert [request.query for request in requests] == [query]
    assert "sparql-results+json" in requests[0].headers["accept"]
    assert on_files.error.kind == "invalid"
    assert (
        "SPARQL has no named subqueries (WITH … AS %name), which Blazegraph and QLever read" in on_files.error.message
    )


def test_service_within_a_named_subquery_is_sent_only_where_the_source_allows_it(hosts, tmp_path):
    query = "SELECT ?x WITH { SELECT ?x { SERVICE <http://e/> { ?x ?y ?z } } } AS %i WHERE { INCLUDE %i }"

    assert sent(hosts, tmp_path, query)[0].error.kind == "unsafe"
    assert sent(hosts, tmp_path, query, service=True)[0].answer.rows


def test_the_columns_of_all_variables_are_in_the_order_of_the_query_behind_named_subqueries(hosts, tmp_path):
    answer = '{"head": {"vars": ["y", "x"]}, "results": {"bindings": []}}'
    with FaultServer(lambda exchange: exchange.reply(answer)) as server:
        source = Source(name="e", engine="endpoint", settings={"url": server.url}, folder=tmp_path)
        engine = ENGINES["endpoint"].open(source, hosts)
        query = "WITH %c AS { SELECT * { ?x ?p ?y } } SELECT * { INCLUDE %c }"
        assert engine.execute(query, timeout=5, max_rows=10).answer.columns == ("x", "y")


def test_the_default_graph_is_sent_unless_the_query_names_its_own(hosts, tmp_path):
    _, plain = sent(hosts, tmp_path, "SELECT ?x { ?x ?y ?z }", default_graph=["http://e/1", "http://e/2"])
    _, own = sent(hosts, tmp_path, "SELECT ?x FROM <http://e/1> { ?x ?y ?z }", default_graph="http://e/1")

    assert plain[0].parameters["default-graph-uri"] == ["http://e/1", "http://e/2"]
    assert "default-graph-uri" not in own[0].parameters


FILE = "file:///etc/passwd"
UNLISTED = {
    "file": f"SELECT * FROM <{FILE}> {{ ?s ?p ?o }}",
    "web": "SELECT * FROM <http://127.0.0.1/> { ?s ?p ?o }",
    "named": f"SELECT * FROM NAMED <{FILE}> {{ GRAPH ?g {{ ?s ?p ?o }} }}",
    "beside a listed one": f"SELECT * FROM <http://e/g> FROM NAMED <{FILE}> {{ ?s ?p ?o }}",
    "ASK": f"ASK FROM <{FILE}> {{ ?s ?p ?o }}",
    "DESCRIBE": f"DESCRIBE <http://e/g> FROM <{FILE}>",
    "CONSTRUCT": f"CONSTRUCT {{ ?s ?p ?o }} FROM <{FILE}> WHERE {{ ?s ?p ?o }}",
    "short CONSTRUCT": f"CONSTRUCT FROM <{FILE}> WHERE {{ ?s ?p ?o }}",
    "without spaces": f"SELECT*FROM<{FILE}>{{?s ?p ?o}}",
    "comments between": f"SELECT * fRoM # all\n NAMED # of\n <{FILE}> {{ ?s ?p ?o }}",
    "prefix": "PREFIX e: <file:///etc/> SELECT * FROM e:passwd { ?s ?p ?o }",
    "prefix of the source": "SELECT * FROM here:passwd { ?s ?p ?o }",
    "prefix that only the server knows": "SELECT * FROM dbo:g { ?s ?p ?o }",
    "prefix declared twice": "PREFIX e: <file:///etc/> PREFIX e: <http://e/> SELECT * FROM e:g { ?s ?p ?o }",
    "base": "BASE <file:///etc/> SELECT * FROM <passwd> { ?s ?p ?o }",
    "base of a prefix": "BASE <file:///etc/> PREFIX e: <pass> SELECT * FROM e:wd { ?s ?p ?o }",
    "two bases": "BASE <file:///etc/> BASE <http://e/> SELECT * FROM <g> { ?s ?p ?o }",
    "two bases of a prefix": "BASE <http://e/> BASE <file:///etc/> PREFIX e: <g> SELECT * FROM e: { ?s ?p ?o }",
    "a base without a scheme": "BASE <http://e/a> BASE <//evil.example/> PREFIX e: <g> SELECT * FROM e: {}",
    "base behind a prefix": "PREFIX e: <g> BASE <http://e/> SELECT * FROM e: { ?s ?p ?o }",
    "no base": "SELECT * FROM <g> { ?s ?p ?o }",
    "another scheme": "BASE <http://e/> SELECT * FROM <//evil.example/g> { ?s ?p ?o }",
    "code points": r"SELECT * FROM <\u0066ile:///etc/passwd> { ?s ?p ?o }",
    "code points of the word": rf"SELECT * \u0046ROM <{FILE}> {{ ?s ?p ?o }}",
    "text that ends early for some": rf'SELECT ("\u0022" AS ?x) FROM <{FILE}> {{ ?s ?p ?o }} #"""',
    "glued to its prefix": "PREFIX ex: <file:///etc/> SELECT * FROMex:passwd { ?s ?p ?o }",
    "glued to a prefix that is declared": "PREFIX ex: <file:///etc/> PREFIX FROMex: <http://e/> SELECT * FROMex:g {}",
    "glued to NAMED": f"SELECT * FROMNAMED<{FILE}> {{ ?s ?p ?o }}",
    "IRI that may be an operator": f"SELECT (1 <?a+2>(3) AS ?x) FROM <{FILE}> {{ ?s ?p ?o }}",
    "nothing": "SELECT * FROM { ?s ?p ?o }",
    "subquery": f"SELECT * {{ SELECT * FROM <{FILE}> {{ ?s ?p ?o }} }}",
}
LISTED = {
    "listed": "SELECT * FROM <http://e/g> { ?s ?p ?o }",
    "named": "SELECT * FROM NAMED <http://e/g> { GRAPH ?g { ?s ?p ?o } }",
    "default": "SELECT * FROM <http://e/default> { ?s ?p ?o }",
    "prefix": "PREFIX e: <http://e/> SELECT * FROM e:g { ?s ?p ?o }",
    "prefix of the source": "SELECT * FROM there:g { ?s ?p ?o }",
    "graph that does not exist": with_empty_dataset("SELECT * { ?s ?p ?o }"),
    "base": "BASE <http://e/a> SELECT * FROM <g> { ?s ?p ?o }",
    "base of a prefix": "BASE <http://e/a/b> PREFIX e: <../> SELECT * FROM e:g { ?s ?p ?o }",
    "code points": r"SELECT * FROM <http://e/\u0067> { ?s ?p ?o }",
    "word in a text": f"SELECT * {{ ?s ?p 'FROM <{FILE}>' }}",
    "word in a comment": f"SELECT * {{ ?s ?p ?o }} # FROM <{FILE}>",
    "word in names": "PREFIX from: <http://e/> SELECT ?from { ?from from:from from:g FILTER(from:f(?from)) }",
    "name that is described": "PREFIX from: <http://e/> DESCRIBE from:g",
    "name that groups": "PREFIX from: <http://e/> SELECT (1 AS ?n) { ?s ?p ?o } GROUP BY from:f(?s)",
}
GRAPHS = {
    "allow_from": ["http://e/g"],
    "default_graph": "http://e/default",
    "prefixes": {"here": "file:///etc/", "there": "http://e/"},
}


@pytest.mark.parametrize("query", UNLISTED.values(), ids=UNLISTED)
def test_a_query_that_names_a_graph_which_the_source_does_not_list_is_not_sent(hosts, tmp_path, query):
    execution, requests = sent(hosts, tmp_path, query, **GRAPHS)

    assert execution.error.kind in {"unsafe", "invalid"}
    assert execution.error.kind == "unsafe" or "begins with" in execution.error.message
    assert requests == []


@pytest.mark.parametrize("query", LISTED.values(), ids=LISTED)
def test_a_query_that_names_listed_graphs_is_sent(hosts, tmp_path, query):
    def answer(exchange):
        is_graph = "DESCRIBE" in query
        exchange.reply("" if is_graph else TWO_ROWS, **{"Content_Type": "text/turtle"} if is_graph else {})

    with FaultServer(answer) as server:
        source = Source(name="e", engine="endpoint", settings={"url": server.url, **GRAPHS}, folder=tmp_path)
        execution = ENGINES["endpoint"].open(source, hosts).execute(query, timeout=5, max_rows=10)

    assert execution.error is None
    assert [query in request.query for request in server.requests] == [True]


def test_the_message_on_a_graph_says_how_to_allow_it(hosts, tmp_path):
    query = "PREFIX e: <http://e/> SELECT * FROM <http://e/g> FROM e:secret { ?s ?p ?o }"
    execution, _ = sent(hosts, tmp_path, query, **GRAPHS)

    problem = "FROM <http://e/secret> (`allow_from: http://e/secret` on the source allows it)"
    assert execution.error.message == f"only graphs that the source lists may be read: {problem}"


def test_timed_queries_are_refused_in_the_same_way(hosts, tmp_path):
    with FaultServer(lambda exchange: exchange.reply(TWO_ROWS)) as server:
        source = Source(name="e", engine="endpoint", settings={"url": server.url}, folder=tmp_path)
        timed = ENGINES["endpoint"].open(source, hosts).time("ASK {}", UNLISTED["file"], iterations=1, timeout=5)

    assert (timed.error.kind, server.requests) == ("unsafe", [])


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


def test_a_column_that_virtuoso_makes_up_is_none(hosts, tmp_path):
    body = '{"head": {"vars": ["_star_fake"]}, "results": {"bindings": [{}, {}]}}'
    with FaultServer(lambda exchange: exchange.reply(body)) as server:
        source = Source(name="e", engine="endpoint", settings={"url": server.url}, folder=tmp_path)
        answer = ENGINES["endpoint"].open(source, hosts).execute("SELECT * { <a:b> <a:c> 1 }", timeout=5, max_rows=9)

    assert (answer.answer.columns, answer.answer.rows) == ((), [(), ()])
