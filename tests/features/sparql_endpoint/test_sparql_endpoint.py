"""What an endpoint is sent, and what its answers mean, by the table in answers.md."""

import re
from pathlib import Path

import pytest
from endpoint_faults import unless_probed
from hostile_statements import statements
from opened_sources import execute, source_of
from servers import GOOD, FaultServer, table

from pytest_queryeval.core.errors import SourceError
from pytest_queryeval.testing import open_engine

pytestmark = pytest.mark.process

PAGE = Path(__file__).parent / "answers.md"
ROWS = [
    [cell.strip() for cell in line.strip("| ").split(" | ")]
    for line in PAGE.read_text(encoding="utf-8").splitlines()
    if re.match(r"\| (QLever|Virtuoso|Fuseki|Oxigraph|Blazegraph|Wikidata|another)\b", line)
]
PROFILES = ("qlever", "virtuoso", "fuseki", "oxigraph", "blazegraph", "wikidata")
SERVERS = {
    "Virtuoso": "Virtuoso/07.20.3240 (Linux) x86_64-pc-linux-gnu",
    "Fuseki": "Apache Jena Fuseki (5.1.0)",
    "Oxigraph": "Oxigraph/0.5.13",
    "Blazegraph": "Jetty(9.4.z-SNAPSHOT)",
}
TWO_ROWS = '{"head": {"vars": ["x"]}, "results": {"bindings": [{"x": {"type": "uri", "value": "a:b"}}, {}]}}'
QUERY = "SELECT ?x { ?x ?y ?z }"
GRAPHS = {
    "allow_from": ["http://e/g"],
    "default_graph": "http://e/default",
    "prefixes": {"here": "file:///etc/", "there": "http://e/"},
}


def sent(hosts, query=QUERY, body=TWO_ROWS, reply=None, **settings):
    """What comes of a query, and the requests that it makes."""
    with FaultServer(unless_probed(lambda exchange: exchange.reply(body, **(reply or {})))) as server:
        source = source_of("endpoint", url=f"{server.url}?tenant=7", **settings)
        return execute(hosts, source, query, max_rows=10), server.requests


# Requests.


@pytest.mark.parametrize("padding", [0, 3_000])
def test_a_request_is_that_of_the_protocol(hosts, padding):
    query = f"SELECT ?x {{ ?x ?y 'ü&/' }} #{'x' * padding}"
    graphs = ["http://g/1", "http://g/2"]

    _, (request,) = sent(hosts, query, default_graph=graphs, headers={"X-Key": "k-123456"})

    assert request.method == ("POST" if padding else "GET")
    assert request.path == "/query"
    assert "tenant=7" in request.target
    assert ("query=" in request.target) == (not padding)
    assert request.parameters == {"tenant": ["7"], "default-graph-uri": graphs, "query": [query]}
    assert request.headers["x-key"] == "k-123456"
    assert request.headers.get("content-type") == ("application/x-www-form-urlencoded" if padding else None)


@pytest.mark.parametrize(
    ("query", "accept", "body"),
    [
        ("ASK {}", "application/sparql-results+json", '{"head": {}, "boolean": true}'),
        ("CONSTRUCT WHERE { ?s ?p ?o }", "n-triples", ""),
    ],
)
def test_each_form_asks_for_the_formats_that_can_be_read(hosts, query, accept, body):
    media = {"Content_Type": "text/turtle"} if not body else {}

    execution, requests = sent(hosts, query, body, media)

    assert execution.error is None
    assert accept in requests[0].headers["accept"]


def test_the_default_graph_is_sent_unless_the_query_names_its_own(hosts):
    _, (request,) = sent(hosts, "SELECT ?x FROM <http://e/1> { ?x ?y ?z }", default_graph="http://e/1")

    assert "default-graph-uri" not in request.parameters


@pytest.mark.parametrize(
    "query",
    [
        "SELECT ?x { SERVICE <http://e/> { ?x ?y ?z } }",
        "SELECT ?x WITH { SELECT ?x { SERVICE <http://e/> { ?x ?y ?z } } } AS %i WHERE { INCLUDE %i }",
    ],
)
def test_service_is_sent_only_where_the_source_allows_it(hosts, query):
    refused, nothing = sent(hosts, query)
    allowed, requests = sent(hosts, query, service=True)

    assert (refused.error.kind, nothing) == ("unsafe", [])
    assert "SERVICE <http://e/> (`service: [http://e/]` on the source allows it)" in refused.error.message
    assert allowed.answer.rows
    assert [request.query for request in requests] == [query]


@pytest.mark.parametrize(
    ("settings", "service", "is_sent"),
    [
        ({"service": ["http://e/", "x:near"], "prefixes": {"x": "http://x/"}}, "<http://e/>", True),
        ({"service": ["http://e/", "x:near"], "prefixes": {"x": "http://x/"}}, "x:near", True),
        ({"service": ["http://e/", "x:near"], "prefixes": {"x": "http://x/"}}, "<http://x/near>", True),
        ({"service": "x:near", "prefixes": {"x": "http://x/"}}, "<http://e/>", False),
        ({"service": "http://e/"}, "?s", False),
        ({"service": "http://e/"}, "<http://e/> {} SERVICE <http://e/other>", False),
        ({"service": "http://e/near"}, "e:near", True),  # by the prefix of the query
        ({"service": "e:near", "prefixes": {"e": "http://elsewhere/"}}, "e:near", False),
        ({"service": False}, "<http://e/>", False),
        ({"profile": "wikidata"}, "wikibase:label", True),
        ({"profile": "wikidata"}, "wikibase:around", True),
        ({"profile": "wikidata"}, "wikibase:mwapi", False),
        ({"profile": "wikidata", "service": ["wikibase:mwapi"]}, "wikibase:mwapi", True),
        ({"profile": "wikidata", "service": ["wikibase:mwapi"]}, "wikibase:label", True),
        ({"profile": "blazegraph"}, "wikibase:label", True),
        ({}, "<http://wikiba.se/ontology#label>", False),
        ({"profile": "virtuoso"}, "<http://wikiba.se/ontology#label>", False),
    ],
)
def test_a_list_of_services_allows_these_alone(hosts, settings, service, is_sent):
    execution, requests = sent(
        hosts, f"PREFIX e: <http://e/> SELECT ?s {{ ?s ?p ?o SERVICE {service} {{}} }}", **settings
    )

    assert (execution.error is None, bool(requests)) == (is_sent, is_sent)
    assert is_sent or execution.error.kind == "unsafe"


def test_a_name_of_a_service_needs_a_known_prefix(hosts):
    with pytest.raises(SourceError, match="the prefix of 'wikibase:mwapi' is none of this source"):
        sent(hosts, service=["wikibase:mwapi"])


@pytest.mark.parametrize("query", statements("endpoint_graphs")["named_subqueries"])
def test_named_subqueries_are_sent_to_endpoints_and_invalid_on_files(hosts, tmp_path, query):
    (tmp_path / "g.ttl").write_text("<http://e/a> <http://e/b> 1 .", encoding="utf-8")

    execution, requests = sent(hosts, query)
    on_files = execute(hosts, source_of("rdf", tmp_path, files="g.ttl"), query)

    assert execution.answer.rows
    assert [request.query for request in requests] == [query]
    assert on_files.error.kind == "invalid"
    no_form = "SPARQL has no named subqueries (WITH … AS %name), which Blazegraph and QLever read"
    assert no_form in on_files.error.message


def test_the_columns_of_all_variables_are_in_the_order_of_the_query_behind_named_subqueries(hosts):
    answer = '{"head": {"vars": ["y", "x"]}, "results": {"bindings": []}}'
    query = "WITH %c AS { SELECT * { ?x ?p ?y } } SELECT * { INCLUDE %c }"

    assert sent(hosts, query, answer)[0].answer.columns == ("x", "y")


def test_only_queries_that_name_listed_graphs_are_sent(hosts):
    graphs = statements("endpoint_graphs")
    refused = {query: sent(hosts, query, **GRAPHS) for query in graphs["unlisted"]}
    allowed = {
        query: sent(
            hosts, query, "" if is_graph else TWO_ROWS, {"Content_Type": "text/turtle"} if is_graph else {}, **GRAPHS
        )
        for query in graphs["listed"]
        for is_graph in ["DESCRIBE" in query]
    }

    query = "PREFIX e: <http://e/> SELECT * FROM <http://e/g> FROM e:secret { ?s ?p ?o }"
    problem = "FROM <http://e/secret> (`allow_from: http://e/secret` on the source allows it)"
    message = sent(hosts, query, **GRAPHS)[0].error.message
    assert message == f"only graphs that the source lists may be read: {problem}"
    with (
        FaultServer(lambda exchange: exchange.reply(TWO_ROWS)) as server,
        open_engine(source_of("endpoint", url=server.url), hosts) as engine,
    ):
        timed = engine.time("ASK {}", graphs["unlisted"][0], iterations=1, timeout=5)
    assert (timed.error.kind, server.requests) == ("unsafe", [])
    assert [query for query, (_, requests) in refused.items() if requests] == []
    kinds = {query: it.error.kind for query, (it, _) in refused.items() if "begins with" not in it.error.message}
    assert set(kinds.values()) == {"unsafe"}, kinds
    assert {query: it.error for query, (it, _) in allowed.items() if it.error} == {}
    assert [query for query, (_, requests) in allowed.items() if query not in requests[0].query] == []


@pytest.mark.parametrize("section", ["updates", "services", "virtuoso"])
def test_an_endpoint_is_not_asked_for_what_a_query_may_not_do(hosts, section):
    """Nor for what Virtuoso adds to the language."""
    with (
        FaultServer(unless_probed(lambda exchange: exchange.reply(TWO_ROWS))) as server,
        open_engine(source_of("endpoint", url=server.url), hosts) as engine,
    ):
        kinds = {
            query: engine.execute(query.replace("{url}", "http://127.0.0.1:9/"), timeout=20, max_rows=10).error.kind
            for query in statements("sparql")[section]
        }

    assert set(kinds.values()) <= {"unsafe", *(["invalid"] if section == "virtuoso" else [])}, kinds
    assert server.requests == []


@pytest.mark.parametrize(
    ("query", "prefixes"),
    [
        ("PREFIX sql: <http://e/> SELECT * { ?s sql:title ?t }", {}),
        ("SELECT * { ?s sql:title ?t }", {"sql": "http://e/"}),
        ("PREFIX get: <http://e/> SELECT * { ?s get:title ?t OPTIONAL { ?s get:date ?d } }", {}),
        (
            "PREFIX f: <http://e/f#> SELECT (f:doc(?a) AS ?x) (xsd:date(?b) AS ?y) (<tag:e:f>(?c) AS ?z) { ?a ?b ?c }",
            {},
        ),
        ("PREFIX fn: <http://www.w3.org/2005/xpath-functions#> SELECT (fn:concat('a', 'b') AS ?x) {}", {}),
        ("SELECT * { ?s <title> ?t FILTER(?t<3 && ?t>(?s)) }", {}),
        ("PREFIX : <http://e/> SELECT * { ?s :bif ?t ; <http://e/sql:x> ?u }", {}),
        ("SELECT (bif:st_intersects(?a, ?b) AS ?x) (sql:sample(?c) AS ?y) { ?a ?b ?c }", {}),
    ],
)
def test_names_of_other_vocabularies_are_no_calls_of_virtuoso(hosts, query, prefixes):
    _, requests = sent(hosts, query, prefixes=prefixes)

    assert len(requests) == 1


def test_a_header_that_cannot_be_sent_stays_secret(hosts):
    with pytest.raises(SourceError, match="cannot be sent") as caught:
        sent(hosts, headers={"X-Key": " s3cret\x07"})

    assert "s3cret" not in str(caught.value)


# Answers.


@pytest.mark.parametrize(
    ("variable", "query"), [("boolean", "SELECT ?boolean {}"), ("_star_fake", "SELECT * { <a:b> <a:c> 1 }")]
)
def test_names_of_variables_that_mean_something_to_others(hosts, variable, query):
    """A variable may be called boolean; the column that Virtuoso makes up is none."""
    body = f'{{"head": {{"vars": ["{variable}"]}}, "results": {{"bindings": [{{}}, {{}}]}}}}'

    answer = sent(hosts, query, body)[0].answer

    assert answer.columns == (("boolean",) if variable == "boolean" else ())
    assert len(answer.rows) == 2


@pytest.mark.parametrize("prolog", ['<!DOCTYPE r [<!ENTITY a "b">]>', '<!DOCTYPE r SYSTEM "file:///etc/passwd">'])
def test_document_types_in_graphs_are_refused(hosts, prolog):
    body = f'<?xml version="1.0"?>{prolog}<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"/>'

    with pytest.raises(SourceError, match="document type"):
        sent(hosts, "DESCRIBE <a:b>", body, {"Content_Type": "application/rdf+xml"})


@pytest.mark.parametrize(
    ("headers", "kind", "message"),
    [
        ({"X_SPARQL_MaxRows": 2}, "too_large", "the server cuts answers at 2 rows"),
        ({"X_SQL_State": "S1TAT"}, "rejected", "its own time limit"),
        ({"X_SPARQL_MaxRows": 10_000}, None, ""),
    ],
)
def test_answers_that_the_server_cut_and_says_so_are_none(hosts, headers, kind, message):
    execution, _ = sent(hosts, reply=headers)

    assert (execution.error and execution.error.kind) == kind
    assert message in execution.error.message if kind else len(execution.answer.rows) == 2


def test_the_table_has_forty_situations_of_all_profiles():
    assert len(ROWS) >= 40
    assert {service.split(",")[0].lower() for service, *_ in ROWS} == {*PROFILES, "another"}


@pytest.mark.parametrize(("service", "answer", "probe", "outcome", "count"), ROWS, ids=map(str, range(len(ROWS))))
def test_the_outcome_of_an_answer_is_that_of_the_table(hosts, service, answer, probe, outcome, count):
    behaviour = behaves(service, answer)
    with FaultServer(unless_probed(behaviour) if probe == "answered" else behaviour) as server:
        profile = re.search(r"`profile: (\w+)`", service)
        settings = {"url": server.url} | ({"profile": profile[1]} if profile else {})
        try:
            execution = execute(hosts, source_of("endpoint", **settings), "SELECT ?x { ?s ?p ?x }", max_rows=10)
            kind = "answer" if execution.error is None else f"`{execution.error.kind}`"
        except SourceError:
            kind = "error"

    assert (kind, len(server.queries)) == (outcome, int(count))


def behaves(service, answer):
    """The behaviour that a row describes: status, headers and body in code, `half the answer` before what follows."""
    status, *codes = re.findall(r"`([^`]+)`", answer)
    headers = {"Server": SERVERS[service]} if service in SERVERS else {}
    body = b""
    if "the answer" in answer.removesuffix("then the answer"):
        body = GOOD[: len(GOOD) // 2] if "half the answer" in answer else GOOD
    for code in codes:
        if header := re.fullmatch(r"([A-Z][\w-]+-[\w-]+): (\S+)", code):
            headers[header[1]] = header[2]
        else:
            body += code.replace("\\n", "\n").encode()

    def behave(exchange):
        if answer.endswith("then the answer") and exchange.number > 1:
            exchange.reply(GOOD, **headers)
        else:
            exchange.reply(body, f"{status} Reason", **headers)

    return behave


@pytest.mark.parametrize("profile", PROFILES)
def test_a_text_of_the_data_is_no_sign(hosts, profile):
    texts = (
        "The SPARQL operation has been cancelled",
        "\n##  Query cancelled due to timeout during execution   ##",
        "\n !!!!>># An error has occurred while exporting the query result: timed out",
        "Virtuoso S1T00 Error",
        "SPARQL-QUERY: queryStr=ASK {}\njava.util.concurrent.TimeoutException",
        "java.util.concurrent.TimeoutException",
    )

    execution, _ = sent(hosts, body=table(*texts), profile=profile)

    assert [cell.lexical for (cell,) in execution.answer.rows] == list(texts)


def test_services_of_other_makes_are_not_taken_for_these(hosts):
    """An exception in JSON is QLever's, a word in another header no server's name: each would be a timeout."""
    for body, headers in (
        ('{"message": "Operation timed out"}', {}),
        ("Virtuoso S1T00 Error SR171: Transaction timed out", {"Server": "nginx", "X_Note": "server: virtuoso"}),
    ):
        reply = {"status": "500 Internal Server Error", "Content_Type": "text/plain", **headers}
        assert sent(hosts, body=body, reply=reply)[0].error.kind == "rejected"
