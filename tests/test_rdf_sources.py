"""Sources of RDF files: formats, graphs, prefixes, the store that files are kept in, and what is said of queries."""

import gzip
import os
import re
import shutil
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest
from documentation import page as page_of
from opened_sources import execute, source_of
from sparql_queries import FORMATS, TURTLE

from pytest_queryeval import evaluate, load_cases
from pytest_queryeval.core.errors import SourceError
from pytest_queryeval.core.model import Execution, Failure
from pytest_queryeval.core.table import IRI, Literal, Table
from pytest_queryeval.engines import (
    graph_store,  # white box: a file that changes at the wrong moment
    oxigraph_child,  # white box: a store of more files than are opened at the start
)
from pytest_queryeval.testing import open_engine

DOCS = page_of("sparql")
XSD = "http://www.w3.org/2001/XMLSchema#"
QUADS = "@prefix : <http://e/> . :d :p 0 . :g1 { :a :p 1 . :b :p 2 } :g2 { :c :p 3 }"
EVERYTHING = "SELECT ?s { ?s <http://e/p> ?o }"
COUNT = "SELECT (COUNT(*) AS ?n) { ?s ?p ?o }"
NO_PREFIXES = ("commons", {"e": "no iri"}, {"e": "http://e/> . ?s ?p ?o"}, {"a b": "http://e/"}, [["common"]], 1)
ENGINE_NAMES = pytest.mark.parametrize("engine", ["oxigraph", "rdflib"])


@pytest.fixture
def run(hosts, tmp_path):
    """Runs a query on files of `tmp_path`, `g.trig` unless others are named."""
    (tmp_path / "g.trig").write_text(QUADS, encoding="utf-8")

    def run(query, timeout=30, **settings):
        return execute(hosts, source_of("rdf", tmp_path, **{"files": "g.trig", **settings}), query, timeout=timeout)

    return run


@pytest.fixture
def texts(run):
    """Returns the texts of the terms of an answer, row by row."""

    def texts(query, **settings):
        execution = run(query, **settings)
        assert execution.error is None, execution.error
        return [tuple(cell and getattr(cell, "lexical", str(cell)) for cell in row) for row in execution.answer.rows]

    return texts


# Graphs and prefixes.


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
        ({"prefixes": {"e": "http://e/"}}, "SELECT ?s { ?s e:p ?o }", "d"),
        ({"prefixes": {"": "http://e/"}}, "SELECT ?s { ?s :p ?o }", "d"),
        (
            {"prefixes": ["common", {"e": "http://other/"}, {"e": "http://e/"}]},
            "SELECT ?s { ?s e:p ?o FILTER(xsd:integer(?o) = 0) }",
            "d",
        ),
        # The query's own declaration counts.
        ({"prefixes": "common"}, "PREFIX xsd: <http://e/> SELECT ?s { ?s xsd:p ?o }", "d"),
        ({"prefixes": {"e": "http://e/"}}, "BASE <http://b/>\nSELECT ?s { ?s e:p ?o }", "d"),
    ],
)
def test_graphs_and_prefixes_of_the_source_hold_for_its_queries(run, engine, settings, query, subjects):
    execution = run(query, engine=engine, **settings)

    assert sorted(cell.iri for (cell,) in execution.answer.rows) == [f"http://e/{name}" for name in subjects]
    assert execution.query == query


@ENGINE_NAMES
def test_a_graph_that_the_files_lack_is_the_sources_fault(run, engine):
    with pytest.raises(SourceError, match=r"default_graph: the files have no graph <http://e/typo>"):
        run(EVERYTHING, engine=engine, default_graph="http://e/typo")


@ENGINE_NAMES
def test_files_can_fill_named_graphs(run, tmp_path, engine):
    (tmp_path / "one.ttl").write_text("@prefix : <http://e/> . :x :p 9 . [] :p 8 .", encoding="utf-8")
    (tmp_path / "two.nt.gz").write_bytes(gzip.compress(b"<http://e/y> <http://e/p> _:a ."))
    graphs = {"http://e/one": "one.ttl", "http://e/two": "two.nt.gz"}

    def rows(query):
        return {tuple(map(str, row)) for row in run(query, engine=engine, graphs=graphs).answer.rows}

    assert len(rows(EVERYTHING)) == 1  # the default graph is that of the other files
    assert len(rows("SELECT ?o FROM <http://e/one> { ?s <http://e/p> ?o }")) == 2
    assert rows("SELECT ?o FROM <http://e/g1> { ?s <http://e/p> ?o }") == rows(
        "SELECT ?o { GRAPH <http://e/g1> { ?s ?p ?o } }"
    )
    table = run("SELECT DISTINCT ?g { GRAPH ?g { ?s ?p ?o } }", engine=engine, graphs=graphs).answer.rows
    assert sorted(cell.iri for (cell,) in table) == [f"http://e/{name}" for name in ("g1", "g2", "one", "two")]


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"graphs": {"http://e/one": "g.trig"}}, r"g\.trig: \.trig names graphs itself: list the file under `rdf`"),
        ({"graphs": {"one": "g.ttl"}}, "`graphs` must be a mapping of IRIs of graphs to names of files"),
        ({"graphs": {"http://e/one": "missing.ttl"}}, r"missing\.ttl: no such file"),
        ({"graphs": {"http://e/one": "g.txt.gz"}}, r"g\.txt\.gz: cannot tell its RDF format"),
        ({"graphs": {"loans": "data.ttl"}}, r": 'loans' is not an IRI such as http://example\.org/loans$"),
        *(
            ({"prefixes": prefixes}, "`prefixes` must be 'common', 'blazegraph', 'wikidata', a mapping of names")
            for prefixes in NO_PREFIXES
        ),
        (
            {"prefixes": ["commons", {"ex": "ex.org"}]},
            r"or a list of these: 'commons' is unknown, 'ex\.org' of 'ex' is not an IRI$",
        ),
    ],
)
def test_graphs_and_prefixes_that_cannot_be_are_named(run, settings, problem):
    with pytest.raises(SourceError, match=problem):
        run(EVERYTHING, **settings)


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("SELECT ?s { ?s rdfs:label ?o }", "add `PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#>` to the query"),
        ("PREFIX a: <http://a/> SELECT ?s { ?s a:b :c }", "the prefix : is not declared: add `PREFIX : <…>`"),
        ("PREFIX ex: <http://e/> ASK { ?s exx:p ?o }", "the prefix exx: is not declared: did you mean 'ex:'?"),
        ("SELET ?s { ?s ?p ?o }", "expected SELECT, ASK, CONSTRUCT or DESCRIBE, found 'SELET ?s"),
        ("```sparql\nSELECT ?s {}\n```", "found '```sparql SELECT"),
        (f"ASK {'{' * 600}{'}' * 600}", "the query nests brackets more than 500 deep"),
    ],
)
def test_what_is_wrong_with_a_query_is_named(run, query, said):
    error = run(query, engine=["oxigraph", "rdflib"]).error

    assert error.kind == "invalid"
    assert said in error.message


def test_a_declared_prefix_moves_no_line_of_an_error_and_fifty_levels_are_no_problem(run):
    message = run("SELECT ?s {\n  ?s e:p\n}", prefixes={"e": "http://e/"}).error.message

    assert message == run("PREFIX e: <http://e/> SELECT ?s {\n  ?s e:p\n}").error.message
    assert run(f"SELECT ?s {'{' * 50} ?s ?p ?o {'}' * 50}").answer.rows


def test_the_common_prefixes_are_those_of_the_docs(texts):
    documented = dict(re.findall(r"^\| `(\w+)` \| `(http\S+)`", DOCS, re.MULTILINE))
    columns = " ".join(f"(STR({name}:) AS ?{name})" for name in documented)

    assert texts(f"SELECT {columns} {{}}", prefixes="common") == [tuple(documented.values())]


# What rdflib needs help with.


def test_rdflib_answers_from_literals_as_they_are_written(texts, tmp_path):
    (tmp_path / "h.ttl").write_text("@prefix : <http://e/> . :a :p 20.0, 20.00 . :b :p 01, 1 .", encoding="utf-8")
    (tmp_path / "i.nt").write_text(f'<http://e/a> <http://e/p> "20.0"^^<{XSD}decimal> .\n')

    def rows(query):
        return texts(query, files=["h.ttl", "i.nt"], engine="rdflib")

    assert rows("SELECT ?s { ?s <http://e/p> 20.0 }") == rows("SELECT ?s { ?s <http://e/p> 20.00 }")
    counts = [len(rows(f"SELECT ?s {{ ?s <http://e/p> {number} }}")) for number in ("20.0", "01", "1", "20")]
    assert counts == [1, 1, 1, 0]
    assert sorted(rows("SELECT ?o { ?s ?p ?o }")) == [("01",), ("1",), ("20.0",), ("20.00",)]


def test_the_time_to_load_a_graph_is_none_of_a_query(hosts, tmp_path):
    triples = (f'<http://e/s{n % 5000}> <http://e/p{n % 40}> "{n}.50"^^<{XSD}decimal> .' for n in range(12_000))
    (tmp_path / "g.nt").write_text("\n".join(triples), encoding="utf-8")
    source = source_of("rdf", tmp_path, files="g.nt", engine="rdflib")
    ask, count = "ASK { <http://e/s7> <http://e/p7> ?o }", "SELECT (COUNT(*) AS ?n) { ?a ?b ?c . ?d ?e ?f }"

    first, late, following = (execute(hosts, source, query, timeout=0.5) for query in (ask, count, ask))

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
def test_groups_of_nothing_are_none_and_a_group_without_a_name_is_one(texts, query, rows):
    assert texts(f"PREFIX : <http://e/> {query}", engine="rdflib") == rows


def test_the_time_to_read_a_query_counts_towards_its_limit(run, monkeypatch):
    limits = []

    def late(host, settings, query, *, timeout, max_rows):
        if query != COUNT:  # loads the graph
            return Execution(query=query, answer=Table(columns=(), rows=[]), engine="oxigraph")
        limits.append(timeout)
        return Execution(query=query, error=Failure(kind="timeout", message=""), engine="oxigraph")

    monkeypatch.setattr("pytest_queryeval.engines.rdf._refusal", lambda _: time.sleep(0.1))
    monkeypatch.setattr("pytest_queryeval.sandbox.host.Host.execute", late)

    assert run(COUNT, timeout=1).error.message == "no answer within 1 s"
    assert max(limits) <= 0.8


# Reports.


def test_the_report_says_which_engine_answered_and_why_not_the_first(tmp_path):
    (tmp_path / "g.trig").write_text(QUADS, encoding="utf-8")
    cast = f"SELECT ?s {{ ?s ?p ?o FILTER(<{XSD}int>(?o) = 0) }}"
    suite = (
        "kind: sparql\nsource: {rdf: g.trig, engine: [oxigraph, rdflib]}\ncases:\n"
        f"  - id: a\n    gold: |\n      {cast}\n    predicted: |\n      SELECT ?s {{ ?s ?p 0 }}\n"
    )
    (tmp_path / "s.queryeval.yaml").write_text(suite, encoding="utf-8")

    (case,) = evaluate(load_cases(tmp_path))["cases"]

    assert case["outcome"] == "passed"
    assert case["details"]["answered_by"] == {"gold": "rdflib", "predicted": "oxigraph"}
    assert [note.partition(":")[0] for note in case["details"]["notes"]] == ["gold"]
    assert "answered by rdflib, because oxigraph refused the query: The custom function" in case["details"]["notes"][0]


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


# Files.


@ENGINE_NAMES
def test_all_formats_give_the_same_graph(run, tmp_path, engine):
    everything = "SELECT ?s ?p ?o { { ?s ?p ?o } UNION { GRAPH ?g { ?s ?p ?o } } }"
    a, b = IRI("http://e/a"), IRI("http://e/b")
    for file, text in FORMATS.items():
        (tmp_path / file).write_text(text, encoding="utf-8")
        (tmp_path / f"{file}.gz").write_bytes(gzip.compress(text.encode()))

    for file in (*FORMATS, "g.trig.gz"):
        rows = run(everything, files=file, engine=engine).answer.rows

        assert sorted(rows, key=repr) == sorted([(a, b, Literal("ü", "", "de")), (a, b, a)], key=repr), file


def test_files_are_merged_and_blank_nodes_of_each_stay_apart(texts, tmp_path):
    (tmp_path / "one.ttl").write_text("_:x <http://e/b> 1 . <http://e/a> <http://e/b> 2 .")
    (tmp_path / "two.nt").write_text("_:x <http://e/b> <http://e/a> .\n<http://e/a> <http://e/b> <http://e/a> .\n")
    counts = "SELECT (COUNT(*) AS ?n) (COUNT(DISTINCT ?s) AS ?d) { ?s ?p ?o }"

    assert texts(counts, files=["one.ttl", "two.nt"]) == [("4", "3")]


@pytest.mark.parametrize(
    ("file", "text", "reason"),
    [
        (
            "bad.ttl",
            "<http://e/a> <http://e/b> 1 .\n\n<http://e/a> 2 3 .",
            r"bad\.ttl:3:14: 2 is not a valid predicate",
        ),
        (
            "a.ttl",
            "<http://e/a> <http://e/b> 1 # one\n\n# two\n<http://e/a> <http://e/b> 2 .",
            r"a\.ttl:1:34: A dot is",
        ),
        ("b.ttl", "@prefix : <http://e/> .\n:a :b 1 ;\n   :c 2\n:d :e 3 .", r"b\.ttl:3:8: A dot is expected"),
        ("c.ttl", "@prefix : <http://e/>\n:a :b 1 .", r"c\.ttl:1:22: A dot is expected"),
        ("d.ttl", "<http://e/a> <http://e/b> 1\n\n\n", r"d\.ttl:1:28: Unexpected end"),
        ("e.ttl", "@prefix : <http://e/> .\n:a :b 'x .\n:a :b 3 .", r"e\.ttl:2:7: the string that begins here is not"),
        ("f.ttl", "@prefix : <http://e/> .\n:a :b\n .\n:a :b 3 .", r"f\.ttl:3:2: \. is not a valid RDF object"),
        ("a.nt", "<http://e/a> <http://e/b> <http://e/c>\n<http://e/a> <http://e/b> <http://e/c> .", r"a\.nt:1:39: "),
        ("bad.nt", "<http://e/a> <http://e/b> 1 .", r"bad\.nt:1"),
        ("bad.rdf", "<rdf:RDF", r"bad\.rdf"),
        ("bad.trig", "<http://e/g> {\n oh", r"bad\.trig:2"),
        ("bad.jsonld", '{"@id": ', r"bad\.jsonld"),
        ("bad.xyz", "", r"bad\.xyz: .*\.ttl"),
        ("a.ttl.gz", b"no archive", r"a\.ttl\.gz: Not a gzipped file"),
        ("b.ttl.gz", gzip.compress(b"<http://e/a> <http://e/b> 1 ." * 100)[:-20], r"b\.ttl\.gz: Compressed file ended"),
        ("c.ttl.gz", gzip.compress(b"<http://e/a> <http://e/b> 1 .\n<http://e/a> oops"), r"c\.ttl\.gz:2:14: "),
        ("gone.ttl", None, r"gone\.ttl: no such file"),
        (".", None, "a directory, not a file|cannot tell"),
    ],
    ids=lambda value: value if isinstance(value, str) and "." in value[:8] else "",  # an archive has a time
)
def test_a_file_that_cannot_be_parsed_is_named_with_its_line(run, tmp_path, file, text, reason):
    if text is not None:
        (tmp_path / file).write_bytes(text if isinstance(text, bytes) else text.encode())

    with pytest.raises(SourceError, match=f"^source 'music': .*(?:{reason})"):
        run(COUNT, files=file)


# The store that files are kept in.


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache/pytest-queryeval/graphs"


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "g.ttl"
    path.write_text("<http://e/a> <http://e/b> 1, 2 .", encoding="utf-8")
    return path


def counted(file, **settings):
    """How many triples there are, for a child process of its own."""
    execution = execute(None, source_of("rdf", file.parent, files=[file.name], **settings), COUNT)
    return int(execution.answer.rows[0][0].lexical)


def stores(cache):
    return [path for path in cache.iterdir() if path.is_dir()]


@pytest.mark.parametrize(
    ("pattern", "damage"),
    [("*.sst", lambda path: path.write_bytes(b"x" * path.stat().st_size)), ("CURRENT", os.unlink)],
)
@ENGINE_NAMES
def test_a_damaged_store_is_made_anew(cache, file, engine, pattern, damage):
    assert counted(file, engine=engine) == 2
    for path in cache.rglob(pattern):
        damage(path)

    assert counted(file, engine=engine) == 2


def test_a_second_run_finds_the_parsed_graph_also_under_another_name(cache, file):
    found = []
    for name in ("g.ttl", "g.ttl", "other.ttl"):
        counted(shutil.copy(file, file.with_name(name)) if name != "g.ttl" else file)
        found.append({path: path.stat().st_ino for path in cache.rglob("*.sst")})

    assert found[0]
    assert found[0] == found[1] == found[2]


@ENGINE_NAMES
def test_a_changed_file_is_parsed_again(texts, tmp_path, engine):
    for number in (1, 2):
        (tmp_path / "h.ttl").write_text(f"<http://e/a> <http://e/b> {number} .")

        assert texts("SELECT ?o { ?s ?p ?o }", files="h.ttl", engine=engine) == [(str(number),)]


def test_a_graph_that_many_open_at_once_is_parsed_once(cache, file, hosts):
    file.write_text(TURTLE, encoding="utf-8")
    source = source_of("rdf", file.parent, files=file.name)

    with ExitStack() as stack, ThreadPoolExecutor(8) as threads:
        engines = list(threads.map(lambda _: stack.enter_context(open_engine(source, hosts)), range(8)))

        assert all(engine.execute("ASK {}", timeout=20, max_rows=1).answer.rows == [(True,)] for engine in engines)
    assert len(list(cache.rglob("CURRENT"))) == 1


def test_without_a_cache_folder_temporary_files_serve(file, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null/cache")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    assert counted(file) == 2
    assert list(tmp_path.glob("pytest-queryeval-*/*/CURRENT"))


def test_a_folder_of_somebody_else_is_not_used(file, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (tmp_path / f"pytest-queryeval-{os.getuid()}").symlink_to("/")

    with pytest.raises(SourceError, match=r"no folder to keep parsed graphs in: .* belongs to another user"):
        counted(file)


def test_stores_that_nobody_used_for_long_are_dropped(cache, file):
    counted(file)
    (first,) = stores(cache)
    os.utime(first, (0, 0))
    file.write_text("<http://e/a> <http://e/b> 3 .", encoding="utf-8")

    assert counted(file) == 1
    assert not first.exists()


def test_a_build_that_fails_leaves_nothing_behind(cache, file):
    file.write_text("<http://e/a> <http://e/b> ", encoding="utf-8")

    with pytest.raises(SourceError, match=r"g\.ttl:1"):
        counted(file)
    assert stores(cache) == []


@pytest.mark.parametrize("name", ["-a b=ü.ttl", "UPPER.TTL"])
def test_a_file_may_have_any_name(cache, file, name):
    assert counted(file.rename(file.with_name(name))) == 2


def test_a_file_that_changes_while_it_is_parsed_is_parsed_again(cache, file, monkeypatch):
    old, run_program = file.read_text(encoding="utf-8"), graph_store.run_program

    def changing(*arguments):
        if "3" not in file.read_text(encoding="utf-8"):
            file.write_text("<http://e/a> <http://e/b> 1, 2, 3 .", encoding="utf-8")
        run_program(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(graph_store, "run_program", changing)
        assert counted(file) == 3
    file.write_text(old, encoding="utf-8")
    assert counted(file) == 2


def test_of_a_store_of_many_files_more_are_opened_while_a_query_runs(cache, file, monkeypatch):
    counted(file)
    monkeypatch.setattr(oxigraph_child, "OPENED_AT_START", 0)
    (store,) = stores(cache)
    settings = {"store": str(store), "default_graph": [], "states_dataset": False}

    _, fetch = oxigraph_child.Driver().run(settings, COUNT, 30)

    assert fetch(2)[0][0][0] == "2"
