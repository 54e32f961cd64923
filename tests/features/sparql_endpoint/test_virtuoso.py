"""A real Virtuoso behind the engine `endpoint`: the answers of Oxigraph, its cuts and limits, hostile queries."""

import time

import pytest
from hostile_statements import statements
from opened_sources import execute, source_of
from servers import untouched
from sparql_queries import NAMED, ORDERED, PREFIXES, QUERIES, TURTLE

from pytest_queryeval import METRICS
from pytest_queryeval.core.table import Policy
from pytest_queryeval.testing import open_engine

pytest_plugins = ["virtuoso"]

SECONDS = 20
MAX_ROWS = 1_000  # of the server
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
HOSTILE = [query for section in ("virtuoso", "updates", "services") for query in statements("sparql")[section]]
# Takes any server far longer than all limits here.
PATTERNS = " ".join(f"?s{number} ?p{number} ?o{number} ." for number in range(7))
CARTESIAN = f"SELECT (COUNT(*) AS ?n) {{ {PATTERNS} FILTER(?o0 < ?o1 && ?o2 < ?o6) }}"


@pytest.fixture(scope="module")
def loaded(virtuoso):
    virtuoso.load(f"{TURTLE}\n{NAMED}")
    return virtuoso


@pytest.fixture
def run(hosts, loaded, tmp_path):
    def run(query, timeout=SECONDS, parameters="", **settings):
        settings = {"url": f"{loaded.url}{parameters}", "default_graph": loaded.graph, **settings}
        return execute(hosts, source_of("endpoint", tmp_path, **settings), query, timeout=timeout, max_rows=100_000)

    return run


@pytest.fixture(scope="module")
def oxigraph(hosts, tmp_path_factory):
    folder = tmp_path_factory.mktemp("oxigraph")
    (folder / "graph.ttl").write_text(TURTLE, encoding="utf-8")
    (folder / "named.trig").write_text(NAMED, encoding="utf-8")
    with open_engine(source_of("rdf", folder, files=["graph.ttl", "named.trig"]), hosts) as engine:
        yield lambda query: engine.execute(query, timeout=SECONDS, max_rows=1000)


def test_answers_are_those_of_oxigraph(run, oxigraph):
    accuracy, different = METRICS["execution_accuracy"].function, {}
    for name, query in QUERIES.items():
        gold, execution = oxigraph(query), run(query)
        policy = Policy(text_numbers=True, row_order="strict" if name in ORDERED else "auto")
        if execution.error or accuracy(gold.answer, execution.answer, policy=policy) != 1.0:
            different[name] = execution

    assert different.keys() == DIFFERENCES.keys(), different


@pytest.mark.parametrize(("pattern", "answer"), [("?s a :Concert", True), ("?s a :Opera", False), ("", True)])
def test_ask_is_one_boolean(run, pattern, answer):
    assert run(f"{PREFIXES}ASK {{ {pattern} }}").answer.rows == [(answer,)]


@pytest.mark.parametrize("limit", ["", f"LIMIT {MAX_ROWS + 1}", f"LIMIT {MAX_ROWS - 1}"])
def test_an_answer_that_the_server_cuts_is_too_large(run, limit):
    execution = run(f"SELECT ?s ?p ?o ?a {{ ?s ?p ?o . ?a ?b ?c }} {limit}")

    if str(MAX_ROWS - 1) in limit:
        assert len(execution.answer.rows) == MAX_ROWS - 1
    else:
        error = execution.error
        assert (error.kind, error.message) == ("too_large", f"the server cuts answers at {MAX_ROWS:,} rows")


def test_a_late_query_is_stopped_on_the_server(run, loaded):
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


def test_functions_that_only_compute_may_be_called_and_others_where_services_may(run):
    for query in ("SELECT (bif:upper('a') AS ?x) {}", "SELECT (<bif:length>('a') AS ?x) {}"):
        assert len(run(query).answer.rows) == 1

    error = run("SELECT (bif:http_get('http://127.0.0.1:1/') AS ?x) {}", service=True).error

    assert "Connection Error in HTTP Client" in error.message


def test_hostile_queries_leave_data_files_and_network_alone(run, loaded, tmp_path_factory):
    kinds = {}
    with untouched(tmp_path_factory.mktemp("battery"), loaded.dump) as (folder, address):
        for query in HOSTILE:
            error = run(query.replace("{url}", f"http://{address}/x").replace("{folder}", folder)).error
            kinds[query] = error and error.kind
            assert run("SELECT ?o { <http://example.org/graz> <http://example.org/people> ?o }").answer.rows != []

    assert set(kinds.values()) <= {"unsafe", "invalid"}, kinds
