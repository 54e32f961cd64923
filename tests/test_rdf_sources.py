"""Which graphs a query asks, and what is said of queries that no engine takes."""

import gzip
import json
import re
import time
from pathlib import Path

import pytest

from pytest_queryeval import evaluate, load_cases
from pytest_queryeval.core.errors import SourceError
from pytest_queryeval.core.model import Source
from pytest_queryeval.engines import ENGINES, rdf
from pytest_queryeval.languages.sparql.query import COMMON_PREFIXES
from pytest_queryeval.sandbox.host import Host

ROOT = Path(__file__).parent.parent
XSD = "http://www.w3.org/2001/XMLSchema#"
QUADS = "@prefix : <http://e/> . :d :p 0 . :g1 { :a :p 1 . :b :p 2 } :g2 { :c :p 3 }"
EVERYTHING = "SELECT ?s { ?s <http://e/p> ?o }"
ENGINE_NAMES = pytest.mark.parametrize("engine", ["oxigraph", "rdflib"])


@pytest.fixture
def execute(hosts, tmp_path):
    (tmp_path / "g.trig").write_text(QUADS, encoding="utf-8")

    def run(query, timeout=30, **settings):
        source = Source(name="g", engine="rdf", settings={"files": "g.trig", **settings}, folder=tmp_path)
        return ENGINES["rdf"].open(source, hosts).execute(query, timeout=timeout, max_rows=100)

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
        ("SELECT ?s { ?s rdfs:label ?o }", "(the prefix rdfs: is not declared: add `PREFIX rdfs: <…>` to the query)"),
        (
            "PREFIX a: <http://a/> SELECT ?s { ?s a:b :c }",
            "(the prefix : is not declared: add `PREFIX : <…>` to the query)",
        ),
        ("PREFIX ex: <http://e/> ASK { ?s exx:p ?o }", "(the prefix exx: is not declared: did you mean 'ex:'?)"),
        (
            "SELET ?s { ?s ?p ?o }",
            "the text is not a query of SELECT, ASK, CONSTRUCT, DESCRIBE: it begins with 'SELET ?s",
        ),
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


@pytest.mark.feature("sparql_endpoint")
def test_what_was_predicted_is_in_the_report_also_where_the_source_fails(tmp_path):
    suite = (
        "kind: sparql\nsource: http://127.0.0.1:9/query\ncases:\n"
        "  - {id: a, gold_table: {columns: [x], rows: []}, allow_empty: true, predicted: 'ASK {}'}\n"
        "  - {id: b, gold: 'ASK {}', predicted: 'ASK {}'}\n"
    )
    (tmp_path / "s.queryeval.yaml").write_text(suite, encoding="utf-8")

    cases = evaluate(load_cases(tmp_path))["cases"]

    actual = [(case["outcome"], case["predicted"]["query"], case["prediction"]["source"]) for case in cases]
    assert actual == [("error", "ASK {}", "inline")] * 2


def test_rdflib_answers_from_literals_as_they_are_written(execute, tmp_path):
    (tmp_path / "h.ttl").write_text("@prefix : <http://e/> . :a :p 20.0, 20.00 . :b :p 01, 1 .", encoding="utf-8")
    (tmp_path / "i.nt").write_text('<http://e/a> <http://e/p> "20.0"^^<http://www.w3.org/2001/XMLSchema#decimal> .\n')

    def rows(query):
        return execute(query, files=["h.ttl", "i.nt"], engine="rdflib").answer.rows

    assert rows("SELECT ?s { ?s <http://e/p> 20.0 }") == rows("SELECT ?s { ?s <http://e/p> 20.00 }")
    assert [len(rows(f"SELECT ?s {{ ?s <http://e/p> {number} }}")) for number in ("20.0", "01", "1", "20")] == [
        1,
        1,
        1,
        0,
    ]
    assert sorted(cell.lexical for (cell,) in rows("SELECT ?o { ?s ?p ?o }")) == ["01", "1", "20.0", "20.00"]


def test_rdflib_reads_a_file_again_that_has_changed(hosts, tmp_path):
    actual = []
    for number in (1, 2):
        (tmp_path / "g.ttl").write_text(f"<http://e/a> <http://e/p> {number} .", encoding="utf-8")
        source = Source(name="g", engine="rdf", settings={"files": "g.ttl", "engine": "rdflib"}, folder=tmp_path)
        answer = ENGINES["rdf"].open(source, hosts).execute(EVERYTHING.replace("?s ", "?o ", 1), timeout=30, max_rows=9)
        actual.append(answer.answer.rows[0][0].lexical)

    assert actual == ["1", "2"]


def test_the_time_to_load_a_graph_is_none_of_a_query(hosts, tmp_path):
    triples = (f'<http://e/s{n % 5000}> <http://e/p{n % 40}> "{n}.50"^^<{XSD}decimal> .' for n in range(40_000))
    (tmp_path / "g.nt").write_text("\n".join(triples), encoding="utf-8")
    source = Source(name="g", engine="rdf", settings={"files": "g.nt", "engine": "rdflib"}, folder=tmp_path)
    engine = ENGINES["rdf"].open(source, hosts)

    first = engine.execute("ASK { <http://e/s7> <http://e/p7> ?o }", timeout=0.5, max_rows=1)
    late = engine.execute("SELECT (COUNT(*) AS ?n) { ?a ?b ?c . ?d ?e ?f }", timeout=0.5, max_rows=1)
    following = engine.execute("ASK { <http://e/s7> <http://e/p7> ?o }", timeout=0.5, max_rows=1)

    assert (first.error, following.error) == (None, None)
    assert late.error.message == "no answer within 0.5 s"


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("SELECT ?x (COUNT(?v) AS ?n) { ?x :none ?v } GROUP BY ?x", []),
        ("SELECT (COUNT(?v) AS ?n) { ?x :none ?v } GROUP BY ?x HAVING (COUNT(?v) > 0)", []),
        ("SELECT (COUNT(?v) AS ?n) { ?x :none ?v }", [("0",)]),
        ("SELECT ?i { ?x :p ?v } GROUP BY (<http://e/nonsense>(?v) AS ?i)", [(None,)]),
        ("SELECT ?x (COUNT(?v) AS ?n) { ?x :none ?v } GROUP BY ?x ORDER BY ?n LIMIT 3", []),
        ("SELECT (SUM(?n) AS ?all) { { SELECT ?x (COUNT(?v) AS ?n) { ?x :none ?v } GROUP BY ?x } }", [("0",)]),
    ],
)
def test_groups_of_nothing_are_none_and_a_group_without_a_name_is_one(execute, query, rows):
    answer = execute(f"PREFIX : <http://e/> {query}", engine="rdflib").answer

    assert [tuple(cell and cell.lexical for cell in row) for row in answer.rows] == rows


def test_the_time_to_read_a_query_counts_towards_its_limit(hosts, tmp_path, monkeypatch):
    (tmp_path / "g.trig").write_text(QUADS, encoding="utf-8")
    source = Source(name="g", engine="rdf", settings={"files": "g.trig", "engine": "rdflib"}, folder=tmp_path)
    engine = ENGINES["rdf"].open(source, hosts)
    engine.execute("ASK {}", timeout=30, max_rows=1)
    read, run, limits = rdf.read_query, Host.execute, []

    def read_slowly(query):
        time.sleep(0.2)
        return read(query)

    def run_within(host, settings, query, *, timeout, max_rows):
        limits.append(timeout)
        return run(host, settings, query, timeout=timeout, max_rows=max_rows)

    monkeypatch.setattr(rdf, "read_query", read_slowly)
    monkeypatch.setattr(Host, "execute", run_within)
    late = engine.execute("SELECT (COUNT(*) AS ?n) { VALUES ?x { %s } }" % ("1 " * 44_000), timeout=1, max_rows=1)

    assert late.error.message == "no answer within 1 s"
    assert max(limits) <= 0.8


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


@ENGINE_NAMES
def test_files_can_fill_named_graphs(execute, tmp_path, engine):
    (tmp_path / "one.ttl").write_text("@prefix : <http://e/> . :x :p 9 . [] :p 8 .", encoding="utf-8")
    (tmp_path / "two.nt.gz").write_bytes(gzip.compress(b"<http://e/y> <http://e/p> _:a ."))
    graphs = {"http://e/one": "one.ttl", "http://e/two": "two.nt.gz"}

    def rows(query):
        return {tuple(map(str, row)) for row in execute(query, engine=engine, graphs=graphs).answer.rows}

    assert len(rows(EVERYTHING)) == 1  # the default graph is that of the other files
    assert len(rows("SELECT ?o FROM <http://e/one> { ?s <http://e/p> ?o }")) == 2
    assert rows("SELECT ?o FROM <http://e/g1> { ?s <http://e/p> ?o }") == rows(
        "SELECT ?o { GRAPH <http://e/g1> { ?s ?p ?o } }"
    )
    table = execute("SELECT DISTINCT ?g { GRAPH ?g { ?s ?p ?o } }", engine=engine, graphs=graphs).answer.rows
    assert sorted(cell.iri for (cell,) in table) == [f"http://e/{name}" for name in ("g1", "g2", "one", "two")]


@pytest.mark.parametrize(
    ("graphs", "problem"),
    [
        ({"http://e/one": "g.trig"}, r"g\.trig: \.trig names graphs itself: list the file under `rdf`"),
        ({"one": "g.ttl"}, "`graphs` must be a mapping of IRIs of graphs to names of files"),
        ({"http://e/one": "missing.ttl"}, r"missing\.ttl: no such file"),
        ({"http://e/one": "g.txt.gz"}, r"g\.txt\.gz: cannot tell its RDF format"),
    ],
)
def test_graphs_that_cannot_be_filled_are_named(execute, graphs, problem):
    with pytest.raises(SourceError, match=problem):
        execute(EVERYTHING, graphs=graphs)


@ENGINE_NAMES
def test_compressed_files_are_read(hosts, tmp_path, engine):
    (tmp_path / "g.trig.gz").write_bytes(gzip.compress(QUADS.encode()))
    source = Source(name="g", engine="rdf", settings={"files": "g.trig.gz", "engine": engine}, folder=tmp_path)

    assert len(ENGINES["rdf"].open(source, hosts).execute(EVERYTHING, timeout=30, max_rows=9).answer.rows) == 1


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"no archive", r"g\.ttl\.gz: Not a gzipped file"),
        (gzip.compress(b"<http://e/a> <http://e/b> 1 ." * 100)[:-20], r"g\.ttl\.gz: Compressed file ended"),
        (gzip.compress(b"<http://e/a> <http://e/b> 1 .\n<http://e/a> oops"), r"g\.ttl\.gz:2:14: "),
    ],
    ids=["no archive", "cut off", "no Turtle"],  # an archive holds the time at which it was made
)
def test_a_damaged_compressed_file_is_named(hosts, tmp_path, content, problem):
    (tmp_path / "g.ttl.gz").write_bytes(content)
    source = Source(name="g", engine="rdf", settings={"files": "g.ttl.gz"}, folder=tmp_path)

    with pytest.raises(SourceError, match=problem):
        ENGINES["rdf"].open(source, hosts)


@ENGINE_NAMES
@pytest.mark.parametrize(
    ("prefixes", "query"),
    [
        ({"e": "http://e/"}, "SELECT ?s { ?s e:p ?o }"),
        ({"": "http://e/"}, "SELECT ?s { ?s :p ?o }"),
        (["common", {"e": "http://other/"}, {"e": "http://e/"}], "SELECT ?s { ?s e:p ?o FILTER(xsd:integer(?o) = 0) }"),
        ("common", "PREFIX xsd: <http://e/> SELECT ?s { ?s xsd:p ?o }"),  # the query's own declaration counts
        ({"e": "http://e/"}, "BASE <http://b/>\nSELECT ?s { ?s e:p ?o }"),
    ],
)
def test_prefixes_of_the_source_are_declared_for_queries(execute, engine, prefixes, query):
    execution = execute(query, engine=engine, prefixes=prefixes)

    assert [cell.iri for (cell,) in execution.answer.rows] == ["http://e/d"]
    assert execution.query == query


def test_a_declared_prefix_moves_no_line_of_an_error(execute):
    message = execute("SELECT ?s {\n  ?s e:p\n}", prefixes={"e": "http://e/"}).error.message

    assert message == execute("PREFIX e: <http://e/> SELECT ?s {\n  ?s e:p\n}").error.message


@pytest.mark.parametrize(
    "prefixes", ["commons", {"e": "no iri"}, {"e": "http://e/> . ?s ?p ?o"}, {"a b": "http://e/"}, [["common"]], 1]
)
def test_prefixes_that_are_none_are_refused(execute, prefixes):
    with pytest.raises(SourceError, match="`prefixes` must be 'common', a mapping of names to IRIs"):
        execute(EVERYTHING, prefixes=prefixes)


def test_the_parts_of_prefixes_and_graphs_that_are_wrong_are_named(execute):
    with pytest.raises(
        SourceError, match=r"or a list of these: 'commons' is unknown, 'ex\.org' of 'ex' is not an IRI$"
    ):
        execute(EVERYTHING, prefixes=["commons", {"ex": "ex.org"}])
    with pytest.raises(SourceError, match=r"names of files: 'loans' is not an IRI such as http://example\.org/loans$"):
        execute(EVERYTHING, graphs={"loans": "data.ttl"})


def test_a_note_names_the_prefixes_that_a_prediction_lacks(tmp_path):
    (tmp_path / "g.trig").write_text(QUADS, encoding="utf-8")
    (tmp_path / "s.queryeval.yaml").write_text(
        "kind: sparql\nsource: {rdf: g.trig, prefixes: [common, {e: 'http://e/'}]}\ncases:\n"
        "  - {id: a, gold: 'SELECT ?s { ?s e:p ?o }', predicted: 'SELECT ?s { ?s e:p ?o . FILTER(xsd:int(?o) < 1) }'}\n"
        "  - {id: b, gold: 'SELECT ?s { ?s e:p ?o }', predicted: 'PREFIX e: <http://e/> SELECT ?s { ?s e:p ?o }'}\n",
        encoding="utf-8",
    )

    a, b = evaluate(load_cases(tmp_path))["cases"]

    assert a["details"]["notes"] == ["predicted: prefixes of the source added: e:, xsd:"]
    assert "notes" not in b["details"]


def test_the_common_prefixes_are_those_of_the_docs():
    documented = re.findall(r"^\| `(\w+)` \| `(http\S+)`", (ROOT / "docs/sparql.md").read_text("utf-8"), re.MULTILINE)

    assert dict(documented) == COMMON_PREFIXES
