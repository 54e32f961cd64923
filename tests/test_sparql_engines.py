"""All SPARQL engines give the same tables: two on files, two behind real servers, and any other of the registry."""

from contextlib import ExitStack

import pytest
import servers
from every_engine import SPARQL, source_on
from opened_sources import execute, source_of
from sparql_queries import ANSWERS, DIFFERENCES, NAMED, ORDERED, PREFIXES, QUERIES, TURTLE

from pytest_queryeval import METRICS
from pytest_queryeval.core.errors import SourceError
from pytest_queryeval.core.table import Literal, Policy, Table
from pytest_queryeval.testing import open_engine

pytestmark = pytest.mark.process

LOCAL = ("oxigraph", "rdflib")
LIVE = ("oxigraph server", "rdflib-endpoint") if "endpoint" in SPARQL else ()
ALL = (*LOCAL, *LIVE, *(name for name in SPARQL if name not in ("rdf", "endpoint")))
FILES = {"graph.ttl": TURTLE, "named.trig": NAMED}
# How 12.50 comes back, and what is said of a query that does not parse.
WRITTEN = {"oxigraph": "12.5", "rdflib": "12.50", "oxigraph server": "12.5", "rdflib-endpoint": "12.50"}
QUOTED = {
    "oxigraph": "line 1, column 25 of the query: expected one of FILTER",
    "rdflib": "Expected SelectQuery, found",
    "oxigraph server": "HTTP 400 Bad Request: line 1, column 25 of the query: expected one of FILTER",
    "rdflib-endpoint": "HTTP 400 Bad Request: ",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("graph")
    for name, text in FILES.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def open_named(request, hosts, folder):
    """Opens an engine by its name here, and gives what runs queries on it."""

    def opened(name, stack):
        if name in LOCAL:
            source = source_of("rdf", folder, files=list(FILES), engine=name)
        elif name in LIVE:
            paths = [folder / file for file in FILES]
            on_paths = (
                servers.oxigraph(folder / "store", paths) if "oxigraph" in name else servers.rdflib_endpoint(paths)
            )
            source = source_of("endpoint", folder, url=stack.enter_context(on_paths))
        else:
            source = stack.enter_context(source_on(name, folder, f"{TURTLE}\n{NAMED}", request))
        engine = stack.enter_context(open_engine(source, hosts))
        return lambda query, max_rows=1000: engine.execute(query, timeout=20, max_rows=max_rows)

    return opened


@pytest.fixture(scope="module", params=ALL)
def name(request):
    return request.param


@pytest.fixture(scope="module")
def run(name, open_named):
    with ExitStack() as stack:
        yield open_named(name, stack)


@pytest.fixture(scope="module")
def oxigraph(open_named):
    with ExitStack() as stack:
        yield open_named("oxigraph", stack)


def agree(gold, predicted, name):
    policy = Policy(text_numbers=True, row_order="strict" if name in ORDERED else "auto")
    same = (gold.columns, gold.is_graph) == (predicted.columns, predicted.is_graph)
    return same and METRICS["execution_accuracy"].function(gold, predicted, policy=policy) == 1.0


def test_answers_are_those_of_oxigraph_and_those_that_the_graph_holds(name, run, oxigraph):
    known = {query for query, (_, *engines) in DIFFERENCES.items() if name in engines}
    different = {}
    for query, text in QUERIES.items():
        gold = oxigraph(text)
        assert gold.error is None, gold.error
        try:
            execution = run(text)
        except SourceError as error:
            different[query] = error
            continue
        golds = [gold.answer]
        if query in ANSWERS:
            columns, rows = ANSWERS[query]
            golds.append(Table(columns=columns, rows=rows, is_graph=gold.answer.is_graph))
        if execution.error or not all(agree(answer, execution.answer, query) for answer in golds):
            different[query] = execution

    assert different.keys() == known, different


def test_an_execution_names_the_engine_that_answered(name, run):
    execution = run("ASK {}")

    assert execution.engine == (name if name in LOCAL else "endpoint")
    assert execution.seconds > 0


def test_numbers_datatypes_and_languages_are_those_of_rdf(name, run):
    query = f'{PREFIXES} SELECT ?t {{ VALUES ?t {{ "a" "a"^^xsd:string "a"@EN-gb "5"^^xsd:integer }} }}'
    (price,) = run(f"{PREFIXES} SELECT ?p {{ :c1 :price ?p }}").answer.rows[0]

    integer = Literal("5", "http://www.w3.org/2001/XMLSchema#integer")
    assert {cell for (cell,) in run(query).answer.rows} == {Literal("a"), Literal("a", "", "en-gb"), integer}
    assert price.lexical == WRITTEN.get(name, price.lexical)


@pytest.mark.parametrize("query", ["SELECT ?c { ?c a :Concert }", "CONSTRUCT { ?c a :Thing } { ?c a :Concert }"])
def test_one_row_or_triple_more_than_allowed_is_too_large(run, query):
    refused = run(f"{PREFIXES} {query}", max_rows=3)

    assert len(run(f"{PREFIXES} {query}", max_rows=4).answer.rows) == 4
    assert refused.answer is None
    assert refused.error.kind == "too_large"
    assert refused.error.message == "more than 3 rows: raise `max_rows` if there may be more"


def test_what_is_wrong_with_a_query_is_quoted_from_the_parser_or_said_in_short(name, run):
    error = run("SELECT ?x WHERE { ?x a }").error
    prefix = run("SELECT ?x WHERE { ?x house:label ?label }").error

    assert (error.kind, prefix.kind) == ("invalid", "invalid")
    assert error.message.startswith(QUOTED.get(name, ""))
    assert error.message.isprintable()
    assert "the prefix house: is not declared: add `PREFIX house: <…>` to the query" in prefix.message
    assert "expected" not in prefix.message


def test_a_second_engine_answers_what_the_first_refuses(hosts, folder):
    cast = f'{PREFIXES} SELECT (xsd:int("5") AS ?x) {{}}'

    alone = execute(hosts, source_of("rdf", folder, files="graph.ttl"), cast)
    both = source_of("rdf", folder, files="graph.ttl", engine=["oxigraph", "rdflib"])
    first, second, neither = (execute(hosts, both, query) for query in ("ASK {}", cast, "ASK {"))

    assert alone.error.kind == neither.error.kind == "invalid"
    assert (first.engine, second.engine) == ("oxigraph", "rdflib")
    assert [cell.lexical for cell in second.answer.rows[0]] == ["5"]
    assert "oxigraph" in neither.error.message
    assert "rdflib" in neither.error.message


@pytest.mark.parametrize(
    ("engine", "query"),
    [
        ("rdflib", "SELECT * { VALUES ?x { } }"),
        ("rdflib", "DESCRIBE * { ?s ?p ?o }"),
        ("rdflib", "SELECT (NOT EXISTS { ?s ?p ?o } AS ?x) {}"),
    ],
)
def test_a_query_of_sparql_that_an_engine_cannot_read_is_an_error_of_the_engine(hosts, folder, engine, query):
    both = source_of("rdf", folder, files="graph.ttl", engine=[engine, "oxigraph"])

    with pytest.raises(
        SourceError, match=f"^source 'music': {engine} refuses a query that oxigraph reads: .*; write `e"
    ):
        execute(hosts, source_of("rdf", folder, files="graph.ttl", engine=engine), query)
    assert execute(hosts, both, query).error is None


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * { ?s ?p ?o ?s ?q ?r }",  # no dot
        "SELECT * { ?s ?p ?o FILTER ?o }",
        "SELECT * { ?s :.b ?o }",
        "SELECT (COUNT(?s) AS ?n) ?s { ?s ?p ?o }",
        "SELECT ?s { ?s ?p ?o } LIMIT 1 LIMIT 2",
        "SELECT * { ?s :a.b.c. ?o }",
    ],
)
def test_what_sparql_does_not_allow_stays_invalid(oxigraph, query):
    assert oxigraph(f"{PREFIXES} {query}").error.kind == "invalid"


def test_columns_that_double_earlier_ones_do_not_make_a_query_that_fills_the_memory(oxigraph):
    """Engines that know no columns in columns are sent their texts, up to a limit."""

    def doubled(count):
        columns = "".join(f"(?c{number} + ?c{number} AS ?c{number + 1}) " for number in range(1, count))
        return oxigraph(f"SELECT (COUNT(*) AS ?c1) {columns} {{ VALUES ?s {{ 1 }} }}")

    assert [cell.lexical for cell in doubled(9).answer.rows[0]] == [str(2**number) for number in range(9)]
    assert doubled(99).error.kind == "invalid"
