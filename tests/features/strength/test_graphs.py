"""Small graphs in which SPARQL queries differ that agree on the source, and that keep what its vocabulary implies."""

import json
import re
import signal
import subprocess
import sys
from itertools import islice
from pathlib import Path
from random import Random

import pyoxigraph
import pytest
from hostile_sparql import SERVICES
from samples import change, make_case, query
from suites import write

from pytest_queryeval.cli import main
from pytest_queryeval.core.errors import SourceError
from pytest_queryeval.core.model import Source
from pytest_queryeval.core.table import IRI, Literal
from pytest_queryeval.evaluation.session import Session
from pytest_queryeval.features.strength.case_strength import measure_strength
from pytest_queryeval.features.strength.counterexample import find_counterexample
from pytest_queryeval.features.strength.sparql.candidates import MAX_TRIPLES, CandidateGraphs
from pytest_queryeval.features.strength.sparql.terms import Quad, Vocabulary, literals_near, turtle

PAGE = (Path(__file__).parents[3] / "docs" / "strength.md").read_text(encoding="utf-8")
PREFIXES = {
    "": "http://e/",
    "xsd": "http://www.w3.org/2001/XMLSchema#",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
}
HEAD = "".join(f"@prefix {name}: <{iri}> .\n" for name, iri in PREFIXES.items())
DATA = f"""{HEAD}
:ann a :Person ; :name "Ann"@en ; :age 20 ; :born "2004-05-06"^^xsd:date ; :knows :bo ; :home [ :city "Ulm" ] .
:bo a :Person ; :name "Bo"@de ; :age 40 ; :born "1984-01-02"^^xsd:date ; :mail "bo@e" .
:works a :Firm ; :employs :ann, :bo .
:employs rdfs:domain :Firm ; rdfs:range :Person .
:knows rdfs:domain :Person ; rdfs:range :Person .
:age rdfs:domain :Employee .
:Firm rdfs:subClassOf :Agent .
:Person rdfs:subClassOf :Agent .
"""
TRIG = f"{HEAD} :ann :age 20 . :loans {{ :ann :has :book }} :gifts {{ :bo :has :pen }}"


@pytest.fixture(params=["oxigraph", "rdflib"])
def source(request, tmp_path):
    (tmp_path / "people.ttl").write_text(DATA, encoding="utf-8")
    settings = {"files": ["people.ttl"], "prefixes": PREFIXES, "engine": request.param}
    return Source(name="people.ttl", engine="rdf", settings=settings, folder=tmp_path)


@pytest.fixture
def fast_source(tmp_path):
    (tmp_path / "people.ttl").write_text(DATA, encoding="utf-8")
    settings = {"files": ["people.ttl"], "prefixes": PREFIXES}
    return Source(name="people.ttl", engine="rdf", settings=settings, folder=tmp_path)


def case_of(source, gold="ASK {}", **changes):
    return make_case(source=source, kind="sparql", golds=(query(gold),), thresholds={}, max_rows=1_000, **changes)


def counterexample(source, gold, predicted, **changes):
    with Session() as session:
        return find_counterexample(case_of(source, gold, **changes), gold, predicted, session).counterexample


def triples(script):
    return list(pyoxigraph.parse(script, format=pyoxigraph.RdfFormat.TRIG))


def answers(script, text):
    """Answer a query in a store of its own."""
    store = pyoxigraph.Store()
    store.load(script, format=pyoxigraph.RdfFormat.TRIG)
    result = store.query("".join(f"PREFIX {name}: <{iri}> " for name, iri in PREFIXES.items()) + text)
    return bool(result) if isinstance(result, pyoxigraph.QueryBoolean) else sorted(map(str, result))


@pytest.mark.parametrize(
    ("gold", "predicted", "most"),
    [
        ("SELECT ?x { ?x :age ?y FILTER (?y > 30) }", "SELECT ?x { ?x :age ?y FILTER (?y >= 30) }", 1),
        ("SELECT ?x { ?x :age ?y FILTER (?y > 30) }", "SELECT ?z { ?z :age ?a FILTER (?a > 31) }", 1),
        ("SELECT DISTINCT ?y { ?x :age ?y }", "SELECT ?y { ?x :age ?y }", 2),
        ("SELECT ?x { ?x a :Person ; :mail ?m }", "SELECT ?x { ?x :mail ?m }", 1),
        ("SELECT ?x { ?x :mail 'bo@e' }", "SELECT ?x { ?x :mail 'BO@E' }", 1),
        ("SELECT ?x { ?x :name 'Bo'@de }", "SELECT ?x { ?x :name ?n FILTER (STR(?n) = 'Bo') }", 1),
        ("SELECT ?x { ?x :name ?n FILTER (LANG(?n) = 'fr') }", "SELECT ?x { ?x :name ?n FILTER (LANG(?n) = 'it') }", 1),
        ("SELECT ?x { ?x :born '1984-01-02'^^xsd:date }", "SELECT ?x { ?x :born ?d FILTER (YEAR(?d) = 1984) }", 1),
        ("SELECT ?x { ?x :born ?d FILTER (YEAR(?d) = 1984) }", "SELECT ?x { ?x :born ?d FILTER (YEAR(?d) < 2000) }", 1),
        ("SELECT ?x { ?x a :Person OPTIONAL { ?x :mail ?m } }", "SELECT ?x { ?x a :Person ; :mail ?m }", 1),
        ("SELECT ?x { ?x a :Person MINUS { ?x :knows ?y } }", "SELECT ?x { ?x a :Person }", 3),
        ("SELECT ?x { ?x :age ?a FILTER NOT EXISTS { ?x :mail ?y } }", "SELECT ?x { ?x :age ?a }", 2),
        ("SELECT ?x { { ?x :age 1 } UNION { ?x :mail 'a' } }", "SELECT ?x { ?x :age 1 }", 1),
        (
            "SELECT ?x { { SELECT ?x (COUNT(?y) AS ?n) { ?x :mail ?y } GROUP BY ?x } FILTER (?n > 2) }",
            "SELECT ?x { { SELECT ?x (COUNT(?y) AS ?n) { ?x :mail ?y } GROUP BY ?x } FILTER (?n > 1) }",
            3,
        ),
        ("SELECT (COUNT(?x) AS ?n) { ?x :mail ?y }", "SELECT (COUNT(DISTINCT ?x) AS ?n) { ?x :mail ?y }", 2),
        ("SELECT (SUM(?y) AS ?n) { ?x :age ?y }", "SELECT (AVG(?y) AS ?n) { ?x :age ?y }", 2),
        ("SELECT ?x { ?x :age ?y } ORDER BY ?y LIMIT 1", "SELECT ?x { ?x :age ?y } ORDER BY DESC(?y) LIMIT 1", 2),
        ("SELECT ?y { ?x :age ?y } ORDER BY ?y LIMIT 3", "SELECT ?y { ?x :age ?y } ORDER BY ?y LIMIT 4", 4),
        ("SELECT ?x { ?x :linked+ :ann }", "SELECT ?x { ?x :linked :ann }", 2),
        ("SELECT ?x { ?x :linked* ?y . ?y :mail 'a' }", "SELECT ?x { ?x :linked+ ?y . ?y :mail 'a' }", 1),
        ("SELECT ?x { ?x ^:linked/:mail 'a' }", "SELECT ?x { ?x :linked/:mail 'a' }", 2),
        ("SELECT ?x { ?x :home [ :city 'Ulm' ] }", "SELECT ?x { ?x :home ?h . ?y :city 'Ulm' }", 3),
        ("SELECT ?x { ?x :home ?h FILTER isBlank(?h) }", "SELECT ?x { ?x :home ?h }", 1),
        ("SELECT ?x { ?x :mail ?y VALUES ?y { 'a' 'b' } }", "SELECT ?x { ?x :mail 'a' }", 1),
        ("ASK { ?x :age ?y FILTER (?y > 100) }", "ASK { ?x :age ?y FILTER (?y > 101) }", 1),
        ("CONSTRUCT { ?x :of [ :is ?y ] } WHERE { ?x :mail ?y }", "CONSTRUCT { ?x :of ?y } WHERE { ?x :mail ?y }", 1),
        ("SELECT ?x { ?x a/rdfs:subClassOf* :Agent }", "SELECT ?x { ?x a :Agent }", 2),
    ],
)
def test_a_graph_tells_queries_apart(fast_source, gold, predicted, most):
    example = counterexample(fast_source, gold, predicted)

    assert example is not None
    assert len(triples(example.script)) <= most
    assert [len(table.rows) for table in example.tables.values()] == [len(triples(example.script))]
    if not gold.startswith("CONSTRUCT"):
        assert answers(example.script, gold) != answers(example.script, predicted)


def test_both_engines_tell_queries_apart(source):
    gold = "SELECT ?x { ?x :age ?y FILTER (xsd:decimal(?y) > 30) MINUS { ?x :mail ?m } }"

    example = counterexample(source, gold, gold.replace("> 30", ">= 30"))

    assert {(quad.predicate.value, quad.object.value) for quad in triples(example.script)} == {("http://e/age", "30")}
    assert example.gold.engine == source.settings["engine"]


@pytest.mark.parametrize(
    ("gold", "predicted"),
    [
        ("SELECT ?x { ?x a :Firm ; :employs ?y }", "SELECT ?x { ?x :employs ?y }"),  # by its domain
        ("SELECT ?y { ?x :employs ?y . ?y a :Person }", "SELECT ?y { ?x :employs ?y }"),  # by its range
        ("SELECT ?x { ?x :age ?y }", "SELECT ?z { ?z :age ?n }"),
        ("SELECT ?x ?y { ?x :age ?y }", "SELECT ?x ?y { ?y ^:age ?x }"),
        ("SELECT ?x { ?x :age 1 FILTER (1 < 2) }", "SELECT ?x { ?x :age 1 }"),
    ],
)
def test_queries_that_are_equivalent_under_the_vocabulary_are_not_told_apart(fast_source, gold, predicted):
    assert counterexample(fast_source, gold, predicted) is None


@pytest.mark.parametrize(
    ("gold", "predicted"),
    [
        ("SELECT ?x { ?x a :Employee ; :age ?y }", "SELECT ?x { ?x :age ?y }"),  # nobody in the data is one
        ("SELECT ?x { ?x a :Agent ; a :Firm }", "SELECT ?x { ?x a :Firm }"),  # stated of the class, of no instance
    ],
)
def test_what_the_data_do_not_keep_of_the_vocabulary_is_not_relied_on(fast_source, gold, predicted):
    assert counterexample(fast_source, gold, predicted) is not None


def test_graphs_keep_what_the_vocabulary_implies_and_have_at_most_50_triples(fast_source):
    queries = [
        "SELECT * { ?f :employs ?p . ?p :knows+ ?q ; :age ?a OPTIONAL { ?p :home/:city ?c } FILTER (?a > 3) } LIMIT 9",
        "SELECT * { ?x ?p ?y . ?y :employs [] ; a/rdfs:subClassOf* ?c . ?c rdfs:subClassOf ?d . ?p rdfs:domain ?d }",
    ]
    with Session() as session:
        databases = CandidateGraphs(case_of(fast_source), session)
        for graph in databases.candidates(queries, Random(1), 60, plain_first=True):
            assert 0 < len(graph) <= MAX_TRIPLES
            text = databases.script(graph)
            assert len(triples(text)) == len(set(graph))
            for kept in (
                "ASK { ?x :employs ?y FILTER NOT EXISTS { ?x a :Firm . ?y a :Person } }",
                "ASK { ?x :knows ?y FILTER NOT EXISTS { ?x a :Person . ?y a :Person } }",
                "ASK { ?x rdfs:subClassOf ?y FILTER (?x NOT IN (:Firm, :Person) || ?y != :Agent) }",
            ):
                assert answers(text, kept) is False


def test_the_vocabulary_does_not_depend_on_the_limits_of_a_case(fast_source):
    with Session() as session:
        databases = CandidateGraphs(change(case_of(fast_source), max_rows=1), session)
        graph = next(databases.candidates(["ASK { ?x :employs ?y }"], Random(0), 1, plain_first=True))
        text = databases.script(graph)

    assert answers(text, "ASK { ?x :employs ?y FILTER NOT EXISTS { ?x a :Firm . ?y a :Person } }") is False


def test_a_domain_that_subclasses_keep_is_kept_by_one_of_them(tmp_path):
    data = f"{HEAD} :p rdfs:domain :Top . :A rdfs:subClassOf :Top . :B rdfs:subClassOf :A . :x :p 1 ; a :B ."
    (tmp_path / "g.ttl").write_text(data, encoding="utf-8")
    source = Source(name="g", engine="rdf", settings={"files": ["g.ttl"], "prefixes": PREFIXES}, folder=tmp_path)

    with Session() as session:
        databases = CandidateGraphs(case_of(source), session)
        graph = next(databases.candidates(["ASK { ?x :p 2 }"], Random(0), 1, plain_first=True))

    assert {quad.object for quad in graph if quad.predicate.iri.endswith("type")} <= {
        IRI("http://e/Top"),
        IRI("http://e/A"),
        IRI("http://e/B"),
    }
    assert len(graph) > 1


def test_named_graphs(tmp_path):
    (tmp_path / "things.trig").write_text(TRIG, encoding="utf-8")
    settings = {"files": ["things.trig"], "prefixes": PREFIXES}
    source = Source(name="things.trig", engine="rdf", settings=settings, folder=tmp_path)
    in_loans, anywhere = "SELECT ?x { GRAPH :loans { ?x :has ?y } }", "SELECT ?x { GRAPH ?g { ?x :has ?y } }"

    example = counterexample(source, in_loans, anywhere)
    union = Source(name="u", engine="rdf", settings={**settings, "default_graph": "union"}, folder=tmp_path)
    of_one = Source(name="o", engine="rdf", settings={**settings, "default_graph": "http://e/loans"}, folder=tmp_path)
    from_gifts = "SELECT ?x FROM :gifts { ?x :has ?y }"

    assert "{" in example.script
    assert answers(example.script, in_loans) != answers(example.script, anywhere)
    assert counterexample(source, from_gifts, "SELECT ?x { ?x :has ?y }") is not None
    assert counterexample(union, anywhere, "SELECT ?x { ?x :has ?y }") is not None
    assert "<http://e/loans> {" in counterexample(of_one, "ASK { ?x :has 1 }", "ASK { ?x :has 2 }").script.replace(
        ":loans {", "<http://e/loans> {"
    )


def test_without_named_graphs_graph_matches_nothing(fast_source):
    gold = "SELECT ?x { GRAPH ?g { ?x :age ?y } }"

    assert counterexample(fast_source, gold, gold.replace(":age", ":mail")) is None


@pytest.mark.parametrize("text", [*SERVICES.values(), "no query"])
def test_a_query_that_is_refused_or_not_understood_has_no_counterexample(fast_source, text):
    service = text.replace("{url}", "http://127.0.0.1:9/")

    with pytest.raises(SourceError, match="no small graph can be built: "):
        counterexample(fast_source, service, service)
    assert counterexample(fast_source, "SELECT ?x { ?x :age 1 }", service) is None


def test_a_query_that_does_not_end_ends_the_search(fast_source):
    endless = "SELECT (COUNT(*) AS ?n) { " + " ".join(f"?a{n} ?b{n} ?c{n} ." for n in range(9)) + " }"

    with pytest.raises(SourceError, match=r"a query does not end in a small database: no answer within 0\.2 s"):
        counterexample(fast_source, endless, "SELECT (1 AS ?n) { ?x :age 1 }", timeout=0.2)


def test_hostile_terms_stay_terms(fast_source):
    text = r"a\" . <http://e/b> <http://e/c> <http://e/d> .\n@prefix \\"
    hostile = f'SELECT ?x {{ ?x :mail "{text}" ; :age ?y FILTER (?y > 3) }}'

    example = counterexample(fast_source, hostile, hostile.replace("> 3", ">= 3"))

    assert {quad.predicate.value for quad in triples(example.script)} <= {"http://e/mail", "http://e/age"}


@pytest.mark.parametrize(
    ("literal", "expected"),
    [
        (Literal("5", PREFIXES["xsd"] + "integer"), {"4", "6"}),
        (Literal("1.50", PREFIXES["xsd"] + "decimal"), {"0.50", "2.50"}),
        (Literal("2020-03-01", PREFIXES["xsd"] + "date"), {"2020-02-29", "2020-03-02"}),
        (Literal("2020-03-01T10:00:00", PREFIXES["xsd"] + "dateTime"), {"2020-02-29T10:00:00"}),
        (Literal("true", PREFIXES["xsd"] + "boolean"), {"false"}),
        (Literal("Ann", "", "en"), {"aNN"}),
        (Literal("INF", PREFIXES["xsd"] + "double"), {"INF"}),
    ],
)
def test_neighbours_of_literals(literal, expected):
    assert expected <= {near.lexical for near in literals_near(literal)}


def test_what_is_written_is_read_again():
    graph = [
        Quad(IRI("http://e/a"), IRI("http://e/p"), Literal(text, *rest), IRI("http://e/g") if number % 2 else None)
        for number, (text, *rest) in enumerate(
            [('"\\\n\t',), ("x", "", "en"), ("-3", PREFIXES["xsd"] + "integer"), ("٣", PREFIXES["xsd"] + "integer")]
        )
    ]

    read = triples(turtle(graph, {"": "http://e/"}))

    assert {(quad.object.value, quad.object.language) for quad in read} == {
        (quad.object.lexical, quad.object.language or None) for quad in graph
    }
    assert sum(str(quad.graph_name) == "<http://e/g>" for quad in read) == 2


def test_a_graph_that_cannot_be_asked_implies_nothing():
    vocabulary = Vocabulary(lambda _: None)

    assert list(vocabulary.violations([Quad(IRI("a"), IRI("p"), Literal("1"))])) == []
    assert vocabulary.samples(IRI("p")) == []


SUITE = {
    "kind": "sparql",
    "source": {"rdf": "people.ttl", "prefixes": PREFIXES},
    "cases": [
        {"id": "older", "question": "?", "gold": "SELECT ?x { ?x :age ?y FILTER (?y > 30) }"},
        {"id": "employers", "question": "?", "gold": "SELECT ?x { ?x a :Firm ; :employs ?y . ?y a :Person }"},
        {"id": "nobody", "question": "?", "gold": "SELECT ?x { ?x :age ?y FILTER (?y > 90) }"},
        {"id": "mails", "question": "?", "gold": "SELECT ?x ?m { ?x a :Person OPTIONAL { ?x :mail ?m } }"},
    ],
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(DATA, "people.ttl")
    write(json.dumps(SUITE), "people.queryeval.yaml")
    return tmp_path


def survivors(capsys):
    capsys.readouterr()
    main(["strength", ".", "--json"])
    cases = json.loads(capsys.readouterr().out)["cases"]
    return {(case["id"], mutant["change"]) for case in cases for mutant in case["survivors"]}


def test_variants_of_a_graph_kill_what_survives(folder, capsys):
    before = survivors(capsys)
    status = main(["strengthen", ".", "-o", "variants"])
    out = capsys.readouterr().out
    files = sorted((folder / "variants").glob("*.ttl"))

    assert ("older", "?y > 30 → ?y >= 30") in before
    assert not {change for change in before if change[1] in ("?x a :Firm dropped", "?y a :Person dropped")}
    assert status == 0
    assert 'add to the source at people.queryeval.yaml:1: variants: "variants/people-*.ttl"' in out
    assert files[0].read_text(encoding="utf-8").startswith("# A variant of people.ttl, by `queryeval strengthen`:")
    assert all(len(triples(file.read_text(encoding="utf-8"))) <= MAX_TRIPLES for file in files)
    source = {**SUITE["source"], "variants": "variants/people-*.ttl"}
    write(json.dumps({**SUITE, "source": source}), "people.queryeval.yaml")
    assert survivors(capsys) == set()
    with pytest.raises(SystemExit):
        main(["strengthen", ".", "-o", "variants"])
    assert main(["strengthen", ".", "-o", "variants", "--force", "--seed", "1"]) == 0


def test_a_gold_that_fails_and_an_empty_graph(folder, capsys):
    cases = [*SUITE["cases"], {"id": "failing", "question": "?", "gold": "SELECT ?x { ?x :age }"}]
    write("", "people.ttl")
    write(json.dumps({**SUITE, "cases": cases}), "people.queryeval.yaml")

    assert main(["strengthen", ".", "-o", "variants"]) == 1
    out = capsys.readouterr().out

    assert "gold query failed" in out
    assert [*(folder / "variants").glob("*.ttl")]


def test_explain_shows_a_graph_and_saves_it(folder, capsys):
    predicted = "SELECT ?x { ?x :age ?y FILTER (?y >= 30) }"
    arguments = ["explain", "people.queryeval.yaml::older", "--query", predicted]

    assert main([*arguments, "--save", "variants/older.ttl"]) == 0
    out = capsys.readouterr().out

    assert "the answers agree on the source, and differ on 1 triple:" in out
    assert 'add to the source: variants: "variants/older.ttl"' in out
    text = (folder / "variants/older.ttl").read_text(encoding="utf-8")
    assert text.startswith("# A variant of people.ttl: here, gold and a prediction of older differ.\n")
    assert answers(text, SUITE["cases"][0]["gold"]) != answers(text, predicted)


def test_ctrl_c_ends_the_search(folder):
    gold = "SELECT ?x { ?x :age ?y ; :name ?n OPTIONAL { ?x :mail ?m } FILTER (?y > %s) }"
    cases = [{"id": str(number), "question": "?", "gold": gold % number} for number in range(50, 170)]
    write(json.dumps({**SUITE, "cases": cases}), "people.queryeval.yaml")
    command = [sys.executable, "-m", "pytest_queryeval", "strengthen", ".", "-o", "variants"]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        for line in islice(process.stderr, 50):
            if "pass" in line:
                break
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=300)

    assert "Traceback" not in errors
    assert process.returncode == 130, errors


def test_the_example_of_the_page(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    section = PAGE.partition("## Graphs that tell them apart")[2]
    suite, graph, output = (
        re.search(rf"^```{language}\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)[1]
        for language in ("yaml", "turtle", "console")
    )
    write(suite, "suites/firms.queryeval.yaml")
    write(graph, "suites/firms.ttl")

    assert main(["strength", "suites"]) == 0
    strength = capsys.readouterr().out
    assert main(["strengthen", "suites", "-o", "suites/variants"]) == 0

    lines = [line for line in output.splitlines() if not line.startswith(("$", "…"))]
    assert lines == [line for line in (strength + capsys.readouterr().out).splitlines() if line in lines]


def test_mutants_with_terms_of_the_graph(fast_source):
    gold = "SELECT ?x { ?x a :Agent . :works :employs ?x . ?x :knows :bo }"

    with Session() as session:
        strength = measure_strength(case_of(fast_source, gold), session)

    changes = {(mutant.operator, mutant.change) for mutant in (*strength.killed, *strength.survivors)}
    assert {("path", "a → a/rdfs:subClassOf*")} <= changes
    assert not {change for operator, change in changes if operator == "constant"}  # no other IRI is in their places
    (fast_source.folder / "people.ttl").write_text(DATA + ":firm :employs :bo . :bo :knows :ann .", encoding="utf-8")
    with Session() as session:
        strength = measure_strength(case_of(fast_source, gold), session)
    mutants = (*strength.killed, *strength.survivors)
    assert {mutant.change for mutant in mutants if mutant.operator == "constant"} == {":works → :firm", ":bo → :ann"}


def test_a_gold_that_takes_long_on_small_graphs_is_soon_left_alone(folder, capsys):
    heavy = "SELECT (COUNT(*) AS ?n) { " + " ".join(f"?a{n} :rare ?b{n} ." for n in range(12)) + " }"
    cases = [*SUITE["cases"], {"id": "heavy", "question": "?", "gold": heavy}]
    write(json.dumps({**SUITE, "timeout": 1, "cases": cases}), "people.queryeval.yaml")

    assert main(["strengthen", ".", "-o", "variants"]) == 0

    assert "people.ttl" in capsys.readouterr().out
    text = "".join(file.read_text(encoding="utf-8") for file in (folder / "variants").glob("*.ttl"))
    assert "# older: ?y > 30" in text


def test_terms_of_the_source_that_turtle_cannot_have_are_left_out(tmp_path):
    odd = "http://e/x> <http://e/y> <http://e/z> .\n<http://e/"
    rdfs = {"@id": "http://e/p", PREFIXES["rdfs"] + "domain": {"@id": odd}}
    data = [rdfs, {"@id": odd, "http://e/p": [{"@id": odd}, {"@value": "1", "@type": odd}]}]
    (tmp_path / "odd.jsonld").write_text(json.dumps(data), encoding="utf-8")
    source = Source(name="o", engine="rdf", settings={"files": ["odd.jsonld"], "prefixes": PREFIXES}, folder=tmp_path)

    example = counterexample(source, "SELECT ?x { ?x :p ?y }", "SELECT ?y { ?x :p ?y }")

    assert {quad.predicate.value for quad in triples(example.script)} == {"http://e/p"}
    assert all("/y" not in str(quad) for quad in triples(example.script))


def test_a_query_with_half_of_a_surrogate_pair_is_not_read(fast_source):
    gold = "SELECT ?x { ?x :mail 'a' }"

    assert counterexample(fast_source, gold, gold.replace("'a'", "'\ud800'")) is None
