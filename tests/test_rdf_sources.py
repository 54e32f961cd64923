"""Which graphs a query asks, and what is said of queries that no engine takes."""

import json

import pytest

from pytest_queryeval import evaluate, load_cases
from pytest_queryeval.engines import ENGINES
from pytest_queryeval.engines.host import Hosts
from pytest_queryeval.errors import SourceError
from pytest_queryeval.model import Source

QUADS = "@prefix : <http://e/> . :d :p 0 . :g1 { :a :p 1 . :b :p 2 } :g2 { :c :p 3 }"
EVERYTHING = "SELECT ?s { ?s <http://e/p> ?o }"
ENGINE_NAMES = pytest.mark.parametrize("engine", ["oxigraph", "rdflib"])


@pytest.fixture(scope="module")
def hosts():
    with Hosts() as pool:
        yield pool


@pytest.fixture
def execute(hosts, tmp_path):
    (tmp_path / "g.trig").write_text(QUADS, encoding="utf-8")

    def run(query, **settings):
        source = Source(name="g", engine="rdf", settings={"files": "g.trig", **settings}, folder=tmp_path)
        return ENGINES["rdf"].open(source, hosts).execute(query, timeout=30, max_rows=100)

    return run


@ENGINE_NAMES
@pytest.mark.parametrize(
    ("settings", "query", "subjects"),
    [
        ({}, EVERYTHING, "d"),
        ({"default_graph": "http://e/g1"}, EVERYTHING, "ab"),
        ({"default_graph": ["http://e/g1", "http://e/g2"]}, EVERYTHING, "abc"),
        ({"default_graph": "union"}, EVERYTHING, "abcd"),
        ({"default_graph": "http://e/g1"}, "SELECT ?s { GRAPH ?g { ?s ?p ?o } }", "abc"),
        ({"default_graph": "http://e/g1"}, "SELECT ?s FROM <http://e/g2> { ?s ?p ?o }", "c"),
        ({"default_graph": "union"}, "SELECT ?s FROM <http://e/g2> { ?s ?p ?o }", "c"),
    ],
)
def test_the_default_graph_is_the_one_that_is_stated(execute, engine, settings, query, subjects):
    rows = execute(query, engine=engine, **settings).answer.rows

    assert sorted(cell.iri for (cell,) in rows) == [f"http://e/{name}" for name in subjects]


@ENGINE_NAMES
def test_a_graph_that_the_files_lack_is_the_sources_fault(execute, engine):
    with pytest.raises(SourceError, match=r"default_graph: the files have no graph <http://e/typo>"):
        execute(EVERYTHING, engine=engine, default_graph="http://e/typo")


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("SELECT ?s { ?s rdfs:label ?o }", "(the prefix rdfs: is not declared)"),
        ("PREFIX a: <http://a/> SELECT ?s { ?s a:b :c }", "(the prefix : is not declared)"),
        ("SELET ?s { ?s ?p ?o }", "the text is no query of SELECT, ASK, CONSTRUCT, DESCRIBE: it begins with 'SELET ?s"),
        ("```sparql\nSELECT ?s {}\n```", "it begins with '```sparql SELECT"),
        (f"ASK {'{' * 600}{'}' * 600}", "the query nests brackets more than 500 deep"),
    ],
)
def test_what_is_wrong_with_a_query_is_named(execute, query, said):
    error = execute(query, engine=["oxigraph", "rdflib"]).error

    assert error.kind == "invalid"
    assert said in error.message


def test_the_report_says_which_engine_answered_and_why_not_the_first(tmp_path):
    (tmp_path / "g.trig").write_text(QUADS, encoding="utf-8")
    cast = "SELECT ?s { ?s ?p ?o FILTER(<http://www.w3.org/2001/XMLSchema#int>(?o) = 0) }"
    suite = (
        "kind: sparql\nsource: {rdf: g.trig, engine: [oxigraph, rdflib]}\ncases:\n"
        f"  - id: a\n    gold: |\n      {cast}\n    predicted: |\n      SELECT ?s {{ ?s ?p 0 }}\n"
    )
    (tmp_path / "s.queryeval.yaml").write_text(suite, encoding="utf-8")

    (case,) = evaluate(load_cases(tmp_path))["cases"]

    assert case["outcome"] == "passed"
    assert case["details"]["answered_by"] == {"gold": "rdflib", "predicted": "oxigraph"}
    assert [note.partition(":")[0] for note in case["details"]["notes"]] == ["gold"]
    assert "answered by rdflib, since oxigraph refused the query: The custom function" in case["details"]["notes"][0]


def test_what_was_predicted_is_in_the_report_also_where_the_source_fails(tmp_path):
    suite = (
        "kind: sparql\nsource: http://127.0.0.1:9/query\ncases:\n"
        "  - {id: a, gold_table: {columns: [x], rows: []}, allow_empty: true, predicted: 'ASK {}'}\n"
        "  - {id: b, gold: 'ASK {}', predicted: 'ASK {}'}\n"
    )
    (tmp_path / "s.queryeval.yaml").write_text(suite, encoding="utf-8")

    after, before = evaluate(load_cases(tmp_path))["cases"]

    assert (after["outcome"], after["predicted"]["query"], after["prediction"]["source"]) == (
        "error",
        "ASK {}",
        "inline",
    )
    assert (before["outcome"], before["predicted"], before["prediction"]) == ("error", None, None)


def test_fifty_levels_are_no_problem(execute):
    assert execute(f"SELECT ?s {'{' * 50} ?s ?p ?o {'}' * 50}").answer.rows


def test_the_report_is_the_same_each_time_also_with_blank_nodes_that_queries_make(tmp_path):
    (tmp_path / "g.trig").write_text(QUADS, encoding="utf-8")
    construct = "CONSTRUCT { ?s <http://e/made> [ <http://e/v> ?o ; <http://e/w> ?s ] } WHERE { GRAPH ?g { ?s ?p ?o } }"
    suite = {
        "id": "a",
        "kind": "sparql",
        "source": "g.trig",
        "gold": construct,
        "predicted": construct.replace("?s <http://e/made>", "?s <http://e/other>"),
    }
    (tmp_path / "s.queryeval.jsonl").write_text(json.dumps(suite), encoding="utf-8")

    reports = [evaluate(load_cases(tmp_path))["cases"][0] for _ in range(2)]

    shown = [(report["gold"]["sample"], report["predicted"]["sample"], report["difference"]) for report in reports]
    assert shown[0] == shown[1]
    assert ["_:b1", "<http://e/v>", "1"] in shown[0][0]
