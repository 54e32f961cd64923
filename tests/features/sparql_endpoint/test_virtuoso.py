"""A real Virtuoso behind the engine `endpoint`: the answers of Oxigraph, its cuts and limits, hostile queries."""

import time

import pytest
from hostile_sparql import SERVICES, UPDATES
from servers import untouched
from sparql_queries import NAMED, ORDERED, PREFIXES, QUERIES, TURTLE

from pytest_queryeval.core.model import Source
from pytest_queryeval.core.table import Policy
from pytest_queryeval.engines import ENGINES
from pytest_queryeval.features.sparql_endpoint.engine import virtuoso_call
from pytest_queryeval.languages.sparql.query import read_query
from pytest_queryeval.metrics.execution_accuracy import execution_accuracy

pytest_plugins = ["virtuoso"]

SECONDS = 20
MAX_ROWS = 1_000  # of the server
OWN = {
    "own form of insert": "INSERT INTO GRAPH <http://e/g> { <http://e/a> <http://e/b> 1 }",
    "own form of insert in": "INSERT IN GRAPH <http://e/g> { <http://e/a> <http://e/b> 1 }",
    "own form of delete": "DELETE FROM GRAPH <http://e/g> { ?s ?p ?o } WHERE { ?s ?p ?o }",
    "modify": "MODIFY GRAPH <http://e/g> DELETE { ?s ?p ?o } INSERT { ?o ?p ?s } WHERE { ?s ?p ?o }",
    "own form of clear": "CLEAR GRAPH <http://e/g>",
    "quad storage": "CREATE QUAD STORAGE <http://e/q> { }",
    "pragma": "DEFINE input:storage '' SELECT * { ?s ?p ?o }",
    "pragma that fetches": "DEFINE get:soft 'replace' SELECT * FROM <{url}> { ?s ?p ?o }",
    "pragma behind a prologue": "PREFIX : <http://e/> define sql:log-enable 3 SELECT * { ?s ?p ?o }",
    "pragma of rules": "define input:inference 'x' SELECT * { ?s ?p ?o }",
    "graph fetched by an option": "SELECT * FROM <{url}> OPTION (get:soft 'replace', get:method 'GET') { ?s ?p ?o }",
    "function that connects": "SELECT (bif:http_get('{url}') AS ?x) {}",
    "another that connects": "SELECT (bif:http_client('{url}') AS ?x) {}",
    "in a filter": "SELECT * { ?s ?p ?o FILTER(bif:http_get(CONCAT('{url}', STR(?o))) != '') }",
    "in capitals": "SELECT (BIF:HTTP_GET('{url}') AS ?x) {}",
    "by its IRI": "SELECT (<bif:http_get>('{url}') AS ?x) {}",
    "by another prefix": "PREFIX b: <bif:> SELECT (b:http_get('{url}') AS ?x) {}",
    "by half a prefix": "PREFIX b: <bif:http_> SELECT (b:get('{url}') AS ?x) {}",
    "by a prefix of the same name": "PREFIX bif: <bif:> SELECT (bif:http_get('{url}') AS ?x) {}",
    "escaped": "SELECT (\\u0062if:http_get('{url}') AS ?x) {}",
    "of a type": "SELECT (<LONG::bif:http_get>('{url}') AS ?x) {}",
    "of a type by a prefix": "PREFIX l: <SQLVAL::bif:> SELECT (l:http_get('{url}') AS ?x) {}",
    "procedure that connects": "SELECT (<HTTP_CLIENT>('{url}') AS ?x) {}",
    "procedure behind a comment": "SELECT (<SHORT::HTTP_CLIENT>#>\n('{url}') AS ?x) {}",
    "procedure by a prefix": "PREFIX : <> SELECT * { ?s ?p ?o FILTER(?o<?p&&:HTTP_CLIENT('{url}')>1) }",
    "procedure by half a prefix": "PREFIX p: <SPARQL_> SELECT (p:EVAL('CLEAR GRAPH <http://e/g>', '', 1) AS ?x) {}",
    "procedure by the base": "BASE <SPARQL_EVAL> SELECT (<>('CLEAR GRAPH <http://e/g>', '', 1) AS ?x) {}",
    "document": "SELECT (<http://www.w3.org/2005/xpath-functions#doc>('{url}') AS ?x) {}",
    "document by its prefix": "SELECT (fn:document('{url}') AS ?x) {}",
    "document by another prefix": "SELECT (<xpath:document-literal>('{url}') AS ?x) {}",
    "option of a prefix of the same name": (
        "PREFIX get: <http://e/> SELECT * FROM <{url}> OPTION (get:soft 'replace') { ?s ?p ?o }"
    ),
    "file read": "SELECT (bif:file_to_string('/etc/passwd') AS ?x) {}",
    "file written": "SELECT (bif:string_to_file('{folder}/written', 'x', 0) AS ?x) {}",
    "program": "SELECT (bif:system('touch {folder}/written') AS ?x) {}",
    "SQL": "SELECT (bif:exec('delete from RDF_QUAD') AS ?x) {}",
    "procedure of SQL": "SELECT (sql:SPARQL_EVAL('CLEAR GRAPH <http://e/g>') AS ?x) {}",
    "procedure by its IRI": "SELECT (<sql:USER_CREATE>('x', 'y') AS ?x) {}",
    "registry": "SELECT (bif:registry_set('a', 'b') AS ?x) {}",
    "shutdown": "SELECT (bif:raw_exit() AS ?x) {}",
    "log": "SELECT (bif:log_message('x') AS ?x) {}",
}
# What Virtuoso 7.2.5 answers otherwise.
DIFFERENCES = {
    "spelling: code points": "variables have ASCII letters only",
    "spelling: a column twice": "it is a column twice",
    "spelling: groups of DESCRIBE": "an internal error",
    "no columns and some rows": "it does not know VALUES without variables",
    "datatype of a long integer": "oxigraph keeps integers of every width as xsd:integer",
    "made terms": "it knows no language tags in upper case",
    "made blank nodes": "it does not know BNODE",
    "sums of nothing": "its sum of nothing is unbound, not 0",
    "graph": "a default graph leaves no named ones, as the protocol says",
    "path with plus": "it wants a start of paths",
    "arithmetic": "its quotient of two integers is an integer",
    "expressions with errors": "an error in an expression fails the query",
    "text functions": "its functions of texts work on bytes",
}
HOSTILE = {**OWN, **UPDATES, **SERVICES}
# Takes any server far longer than all limits here.
PATTERNS = " ".join(f"?s{number} ?p{number} ?o{number} ." for number in range(7))
CARTESIAN = f"SELECT (COUNT(*) AS ?n) {{ {PATTERNS} FILTER(?o0 < ?o1 && ?o2 < ?o6) }}"


@pytest.fixture(scope="module")
def loaded(virtuoso):
    virtuoso.load(f"{TURTLE}\n{NAMED}")
    return virtuoso


@pytest.fixture
def run(hosts, loaded, tmp_path):
    def execute(query, timeout=SECONDS, max_rows=100_000, parameters="", **settings):
        settings = {"url": f"{loaded.url}{parameters}", "default_graph": loaded.graph, **settings}
        source = Source(name="v", engine="endpoint", settings=settings, folder=tmp_path)
        return ENGINES["endpoint"].open(source, hosts).execute(query, timeout=timeout, max_rows=max_rows)

    return execute


@pytest.fixture(scope="module")
def oxigraph(hosts, tmp_path_factory):
    folder = tmp_path_factory.mktemp("oxigraph")
    (folder / "graph.ttl").write_text(TURTLE, encoding="utf-8")
    (folder / "named.trig").write_text(NAMED, encoding="utf-8")
    settings = {"files": ["graph.ttl", "named.trig"]}
    engine = ENGINES["rdf"].open(Source(name="g", engine="rdf", settings=settings, folder=folder), hosts)
    yield lambda query: engine.execute(query, timeout=SECONDS, max_rows=1000)
    engine.close()


def known(name):
    return [pytest.mark.xfail(reason=DIFFERENCES[name], raises=AssertionError)] if name in DIFFERENCES else []


@pytest.mark.parametrize("name", [pytest.param(name, marks=known(name)) for name in QUERIES])
def test_answers_are_those_of_oxigraph(run, oxigraph, name):
    gold, execution = oxigraph(QUERIES[name]), run(QUERIES[name])

    assert (gold.error, execution.error) == (None, None)
    policy = Policy(text_numbers=True, row_order="strict" if name in ORDERED else "auto")
    assert execution_accuracy(gold.answer, execution.answer, policy=policy) == 1.0, execution.answer.rows


@pytest.mark.parametrize(("pattern", "answer"), [("?s a :Concert", True), ("?s a :Opera", False), ("", True)])
def test_ask_is_one_boolean(run, pattern, answer):
    assert run(f"{PREFIXES}ASK {{ {pattern} }}").answer.rows == [(answer,)]


@pytest.mark.parametrize("limit", ["", f"LIMIT {MAX_ROWS + 1}"])
def test_answer_that_the_server_cuts_is_too_large(run, limit):
    error = run(f"SELECT ?s ?p ?o ?a {{ ?s ?p ?o . ?a ?b ?c }} {limit}").error

    assert (error.kind, error.message) == ("too_large", f"the server cuts answers at {MAX_ROWS:,} rows")


def test_answer_that_fits_is_whole(run):
    assert len(run(f"SELECT ?s ?p ?o ?a {{ ?s ?p ?o . ?a ?b ?c }} LIMIT {MAX_ROWS - 1}").answer.rows) == MAX_ROWS - 1


def test_late_query_is_stopped_on_the_server(run, loaded):
    began = time.monotonic()

    error = run(CARTESIAN, timeout=1, parameters="?timeout=2000").error

    assert error.kind == "timeout"
    assert "CONCAT" not in loaded.running()
    while "COUNT" in loaded.running():
        assert time.monotonic() - began < 60
        time.sleep(0.2)


def test_part_of_an_answer_is_none(run):
    error = run(CARTESIAN, parameters="?timeout=1000").error

    assert error.kind == "rejected"
    assert "stopped the query at its own time limit" in error.message


@pytest.mark.parametrize("query", ["SELECT (bif:upper('a') AS ?x) {}", "SELECT (<bif:length>('a') AS ?x) {}"])
def test_functions_that_only_compute_may_be_called(run, query):
    assert len(run(query).answer.rows) == 1


def test_functions_that_reach_further_may_be_called_where_other_services_may(run):
    error = run("SELECT (bif:http_get('http://127.0.0.1:1/') AS ?x) {}", service=True).error

    assert "Connection Error in HTTP Client" in error.message


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
def test_names_of_other_vocabularies_are_no_calls(query, prefixes):
    assert virtuoso_call(read_query(query), prefixes) == ""


@pytest.fixture(scope="module")
def battery(loaded, tmp_path_factory):
    with untouched(tmp_path_factory.mktemp("battery"), loaded.dump) as (folder, address):
        yield folder, f"http://{address}/x"


@pytest.mark.parametrize("query", HOSTILE.values(), ids=HOSTILE)
def test_hostile_queries_leave_data_files_and_network_alone(run, battery, query):
    folder, url = battery

    error = run(query.replace("{url}", url).replace("{folder}", folder)).error

    assert error.kind in ("unsafe", "invalid")
    assert run("SELECT ?o { <http://example.org/graz> <http://example.org/people> ?o }").answer.rows != []


@pytest.mark.parametrize("query", [*OWN.values(), *UPDATES.values()], ids=[*OWN, *UPDATES])
def test_what_virtuoso_adds_to_the_language_is_not_sent(hosts, tmp_path, query):
    settings = {"url": "http://127.0.0.1:1/sparql"}
    source = Source(name="v", engine="endpoint", settings=settings, folder=tmp_path)

    error = ENGINES["endpoint"].open(source, hosts).execute(query, timeout=SECONDS, max_rows=10).error

    assert error.kind in ("unsafe", "invalid")
