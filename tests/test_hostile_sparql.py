"""Queries on RDF files: the contract of engines with hostile queries, and files that are hostile themselves."""

import time

import pytest
from hostile_statements import hostile, statements
from opened_sources import execute, rows_of, source_of
from servers import unvisited
from sparql_queries import ENTITIES, RDF_XML
from waiting import child_processes

from pytest_queryeval.core.errors import SourceError
from pytest_queryeval.core.table import IRI, Literal
from pytest_queryeval.testing import EngineContract, open_engine

pytestmark = pytest.mark.process

XSD = "http://www.w3.org/2001/XMLSchema#"
LINKS = 2_000
COUNT = "SELECT (COUNT(*) AS ?n) { ?s ?p ?o }"
READING = hostile("sparql")
PATHS = READING["timeout too_large error"]  # rdflib follows a path by calls within calls, as far as Python allows
DEEP = "invalid timeout too_large answer"  # how deep an engine follows is its own affair, as long as it comes back
BACKTRACKING = READING[DEEP][-1]


def some_of(kinds, queries):
    """All queries, but of those that may be late, after which a child takes long to start again, every fourth."""
    return queries[:: 4 if "timeout" in kinds else 1]


@pytest.fixture(scope="module")
def address():
    with unvisited() as address:
        yield address


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A long chain, and a file next to it that is not part of the source."""
    folder = tmp_path_factory.mktemp("hostile")
    links = "\n".join(f":n{number} :next :n{number + 1} ." for number in range(LINKS))
    (folder / "chain.ttl").write_text(f"@prefix : <http://e/> .\n{links}\n")
    (folder / "secret.nt").write_text("<http://e/secret> <http://e/b> <http://e/c> .\n")
    return folder


@pytest.fixture(scope="module")
def kept_hosts():
    """Keep no process: the processes of a source end with it."""


@pytest.fixture(scope="module")
def oxigraph(folder):
    before = child_processes()
    with open_engine(source_of("rdf", folder, files="chain.ttl")) as engine:
        yield engine
    assert child_processes() <= before


@pytest.fixture(scope="module")
def rdflib(folder):
    with open_engine(source_of("rdf", folder, files="chain.ttl", engine="rdflib")) as engine:
        yield engine


class TestOxigraph(EngineContract):
    answers = {
        COUNT: (("n",), [(Literal(str(LINKS), f"{XSD}integer"),)]),
        "SELECT ?a ?b { ?a ?p <http://e/n1> BIND('x'@DE AS ?b) }": (
            ("a", "b"),
            [(IRI("http://e/n0"), Literal("x", "", "de"))],
        ),
        "ASK { ?s ?p <http://e/n9> }": (("boolean",), [(True,)]),
        "SELECT ?none { ?none <http://e/p> 1 }": (("none",), []),
    }
    failures = {
        **{kinds: some_of(kinds, queries) for kinds, queries in READING.items() if "error" not in kinds},
        "unsafe": [*statements("sparql")["updates"], *statements("sparql")["services"]],
    }
    rows = "SELECT ?s { ?s ?p ?o } LIMIT {count}"
    state = COUNT
    seconds = 30.0
    max_rows = 10_000

    @pytest.fixture
    def engine(self, oxigraph):
        return oxigraph

    @pytest.fixture(autouse=True)
    def place(self, address, folder):
        self.address, self.folder = f"http://{address}/", folder

    def filled(self, query):
        return query.replace("{url}", self.address).replace("{folder}", str(self.folder))

    def test_no_other_file_is_read(self, engine):
        for query in READING["answer"]:
            assert "secret" not in str(engine.execute(self.filled(query), timeout=30, max_rows=10_000).answer.rows)

    def test_a_path_that_an_engine_cannot_follow_ends_in_time(self, engine):
        for query in PATHS:
            began = time.monotonic()
            try:
                kind = engine.execute(query, timeout=0.2, max_rows=10).error.kind
            except SourceError:
                kind = "error"

            assert kind in ("timeout", "too_large", "error")
            assert time.monotonic() - began < 10


class TestRdflib(TestOxigraph):
    failures = {kinds: queries for kinds, queries in TestOxigraph.failures.items() if kinds != DEEP}

    @pytest.fixture
    def engine(self, rdflib):
        return rdflib


@pytest.mark.slow
class TestOxigraphWithLateQueries(TestOxigraph):
    failures = TestOxigraph.failures | {kinds: of for kinds, of in READING.items() if "error" not in kinds}


@pytest.mark.slow
class TestRdflibWithLateQueries(TestRdflib):
    failures = TestOxigraphWithLateQueries.failures


def test_a_query_that_is_refused_or_late_is_not_tried_on_the_second_engine(hosts, folder):
    both = source_of("rdf", folder, files="chain.ttl", engine=["oxigraph", "rdflib"])

    unsafe = execute(hosts, both, "DROP ALL")
    late = execute(hosts, both, "SELECT (COUNT(*) AS ?n) { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i }", timeout=0.3)

    assert unsafe.error.kind == "unsafe"
    assert (late.error.kind, late.engine) == ("timeout", "oxigraph")


def test_a_regular_expression_without_end_is_stopped(oxigraph, rdflib):
    late = rdflib.execute(BACKTRACKING, timeout=0.3, max_rows=1)
    answered = oxigraph.execute(BACKTRACKING, timeout=1, max_rows=1)

    assert late.error.kind == "timeout"
    assert [cell.lexical for cell in answered.answer.rows[0]] == ["false"]


def test_a_text_of_any_length_is_refused_at_once(oxigraph):
    began = time.monotonic()

    error = oxigraph.execute("ASK { " + "a " * 10_000_000, timeout=1, max_rows=1).error

    assert error.kind == "invalid"
    assert "too long" in error.message
    assert time.monotonic() - began < 10


@pytest.mark.parametrize(
    ("engine", "pattern"),
    [("oxigraph", "*.sst"), ("oxigraph", "CURRENT"), ("rdflib", "*.sst"), ("rdflib", "MANIFEST-*")],
)
def test_a_damaged_store_is_never_the_fault_of_a_query(tmp_path, monkeypatch, engine, pattern):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "g.ttl").write_text("<http://e/a> <http://e/b> 1 .")
    source = source_of("rdf", tmp_path, files="g.ttl", engine=engine)
    with open_engine(source):
        damaged = list((tmp_path / "cache").rglob(pattern))
    for path in damaged:
        path.write_bytes(b"no store")

    try:
        rows = rows_of(None, source, COUNT)
    except SourceError as error:
        rows = [(Literal("1", f"{XSD}integer"),)] if "cache" in str(error) else error

    assert damaged
    assert rows == [(Literal("1", f"{XSD}integer"),)]


def test_a_context_elsewhere_is_not_fetched(hosts, address, tmp_path):
    (tmp_path / "g.jsonld").write_text(f'{{"@context": "http://{address}/context.jsonld", "name": "x"}}')

    with pytest.raises(SourceError, match=r"g\.jsonld"):
        execute(hosts, source_of("rdf", tmp_path, files="g.jsonld"), COUNT)


@pytest.mark.parametrize("attack", ENTITIES)
def test_entities_of_rdf_xml_are_harmless(hosts, tmp_path, attack):
    (tmp_path / "secret.txt").write_text("the secret")
    document = ENTITIES[attack].replace("{folder}", str(tmp_path))
    (tmp_path / "g.rdf").write_text(RDF_XML.format(entities=document))
    began = time.monotonic()

    with pytest.raises(SourceError, match=r"g\.rdf") as caught:
        execute(hosts, source_of("rdf", tmp_path, files="g.rdf"), COUNT)

    assert "the secret" not in str(caught.value)
    assert time.monotonic() - began < 20


@pytest.mark.parametrize("start", [" ", "<!-- a -- b -->", "<?xml version='1.0' encoding='x-foo'?>"])
def test_entities_that_one_parser_does_not_see_are_refused(hosts, tmp_path, start):
    laughs = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 9))
    text = f"""{start}<?xml version="1.0"?><!DOCTYPE r [<!ENTITY l0 "ha">{laughs}]>
    <rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://e/">
    <rdf:Description rdf:about="http://e/a"><e:b>&l8;</e:b></rdf:Description></rdf:RDF>"""
    (tmp_path / "g.rdf").write_text(text, encoding="utf-8")

    with pytest.raises(SourceError, match=r"g\.rdf: (its document type cannot be read|unknown encoding)"):
        execute(hosts, source_of("rdf", tmp_path, files="g.rdf"), COUNT)
