"""`known_terms`: the IRIs in the patterns of a prediction that its source does not have, and the nearest ones."""

import pytest
import servers
from samples import fake_source, install_engine, make_case

from pytest_queryeval.core.model import QueryOrAnswer, Source, Threshold
from pytest_queryeval.core.table import Table
from pytest_queryeval.evaluation import Session, evaluate_case

pytestmark = pytest.mark.process

TURTLE = """@prefix b: <http://example.org/brick#> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
b:Air_Handling_Unit a owl:Class . b:VAV a owl:Class ; rdfs:label "Variable Air Volume Box"@en .
b:u1 a b:Air_Handling_Unit ; b:feeds b:v1 ; b:size "5"^^b:inch . b:v1 a b:VAV ; b:hasPoint b:s1 .
"""
NAMED = "<http://example.org/u2> <http://example.org/only> <http://example.org/o2> <http://example.org/graph> .\n"
HEAD = "PREFIX b: <http://example.org/brick#> PREFIX n: <http://example.org/> "
GOLD = f"{HEAD}SELECT ?u {{ ?u a b:Air_Handling_Unit ; b:feeds ?v }}"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("terms")
    (folder / "g.ttl").write_text(TURTLE, encoding="utf-8")
    (folder / "n.nq").write_text(NAMED, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def scored(folder):
    """A function that evaluates a predicted query on the files, by oxigraph unless told otherwise."""
    with Session() as session:

        def evaluate(predicted, engine="oxigraph", **changes):
            settings = {"files": ["g.ttl", "n.nq"], "engine": engine, "prefixes": {"src": "http://example.org/brick#"}}
            source = Source(name="g", engine="rdf", settings=settings, folder=folder)
            case = sparql_case(source, predicted, **changes)
            return evaluate_case(case, session)

        yield evaluate


def sparql_case(source, predicted, **changes):
    golds = QueryOrAnswer(query=GOLD), QueryOrAnswer(answer=Table(columns=("u",), rows=()))
    contents = {"golds": golds, "predicted": QueryOrAnswer(query=predicted)}
    settings = {"metrics": ("execution_accuracy", "known_terms"), "thresholds": {}, "timeout": 20.0, "max_rows": 100}
    return make_case(kind="sparql", source=source, **contents, **{**settings, **changes})


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        # what occurs, or is no term of the data
        ("SELECT * { ?s a b:Air_Handling_Unit ; b:feeds ?v }", ""),
        ("SELECT * { b:u1 ?p b:v1 }", ""),
        ("SELECT * { GRAPH n:nowhere { ?s n:only ?o } }", ""),
        ("SELECT * FROM n:graph { n:u2 n:only n:o2 }", ""),
        ("SELECT * { ?s b:size ?v FILTER (?v = '7'^^b:foot && ?s != b:u9) }", ""),
        ("SELECT * { VALUES ?c { b:Nothing b:VAV } ?s a ?c }", ""),
        ("SELECT * { ?s a ?c FILTER (?c IN (b:Nothing, b:VAV)) }", ""),
        ("SELECT * { VALUES ?c { b:Nothing } ?s b:feeds ?v }", ""),
        ("SELECT * { ?s b:feeds ?v BIND (b:No AS ?n) BIND (<http://www.w3.org/2001/XMLSchema#string>(?v) AS ?f) }", ""),
        ("CONSTRUCT { ?s b:madeUp b:Nothing } WHERE { ?s b:feeds ?v }", ""),
        ("SELECT * { ?s src:feeds ?v }", ""),
        ("DESCRIBE b:Nothing", ""),
        # what does not have to match
        ("SELECT * { ?v a b:VAV MINUS { ?v b:hasPoints ?p } }", ""),
        ("SELECT * { ?v a b:VAV OPTIONAL { ?v b:hasPoints ?p } }", ""),
        ("SELECT * { ?v a b:VAV FILTER NOT EXISTS { ?v b:hasPoints ?p } }", ""),
        ("SELECT * { { ?v b:hasPoints ?p } UNION { ?v b:hasPoint ?p } }", ""),
        ("SELECT * { ?v a b:VAV ; b:hasPoints*|b:hasPoint ?p ; b:feed? ?w }", ""),
        ("ASK { }", ""),
        # what does not, with the nearest term
        ("SELECT * { ?s a b:Air_Handler_Unit }", "b:Air_Handler_Unit is not in the graph; b:Air_Handling_Unit is"),
        ("SELECT * { ?s b:feed ?v }", "b:feed is not in the graph; b:feeds is"),
        ("SELECT * { ?s a n:VAV }", "n:VAV is not in the graph; b:VAV is"),
        ("SELECT * { ?s a b:VariableAirVolumeBox }", "b:VariableAirVolumeBox is not in the graph; b:VAV is"),
        ("SELECT * { ?s b:zzz 1 }", "b:zzz is not in the graph"),
        ("SELECT * { ?s b:hasData ?p }", "b:hasData is not in the graph"),
        ("SELECT * { ?s b:feedings ?p }", "b:feedings is not in the graph; b:feeds is"),
        ("SELECT * { ?s b:feeds+/b:hasPoints ?p }", "b:hasPoints is not in the graph; b:hasPoint is"),
        (
            "SELECT * { VALUES ?c { b:Air_Handler_Unit } ?s a ?c }",
            "b:Air_Handler_Unit is not in the graph; b:Air_Handling_Unit is",
        ),
        (
            "SELECT * { ?s a ?c FILTER (?c IN (b:Air_Handler_Unit)) }",
            "b:Air_Handler_Unit is not in the graph; b:Air_Handling_Unit is",
        ),
        (
            "SELECT * { { ?v b:hasPoints ?p } UNION { ?v b:hasPoints ?q } }",
            "b:hasPoints is not in the graph; b:hasPoint is",
        ),
        (
            "SELECT * { ?v a b:VAV FILTER EXISTS { ?v b:hasPoints ?p } }",
            "b:hasPoints is not in the graph; b:hasPoint is",
        ),
        ("BASE <http://example.org/> SELECT * { ?s <brick#feed> ?v }", "b:feed is not in the graph; b:feeds is"),
        ("SELECT * FROM n:graph { ?s b:feeds ?o }", "b:feeds is not in the graph of FROM, but in another"),
        ("ASK { ?s src:feed ?v }", "src:feed is not in the graph; src:feeds is"),
    ],
)
def test_an_unknown_term_has_a_sentence_with_the_nearest_one(scored, query, sentence):
    trial = scored(query if query.startswith("ASK") else HEAD + query).shown

    notes = [note for note in trial.details.get("notes", ()) if "is not in the graph" in note]
    assert notes == ([sentence] if sentence else [])
    assert trial.scores["known_terms"] == (not sentence)


def test_rdflib_finds_the_same(scored):
    for query in ("SELECT * { ?s b:feed ?v }", "SELECT * { GRAPH ?g { ?s n:only ?o } }"):
        by_oxigraph, by_rdflib = (scored(HEAD + query, engine=engine).shown for engine in ("oxigraph", "rdflib"))

        assert by_oxigraph.scores == by_rdflib.scores
        assert by_oxigraph.details.get("notes") == by_rdflib.details.get("notes")


@pytest.mark.parametrize(
    "query", ["SELECT ?x WHERE ?x a b:VAV", "", "INSERT DATA { b:a b:b b:c }", "SELECT * { ?s undeclared:p ?o }"]
)
def test_a_query_that_cannot_be_parsed_has_no_score_and_misses_a_threshold_on_no_account(scored, query):
    limits = {"known_terms": Threshold(minimum=1.0), "execution_accuracy": Threshold(minimum=1.0)}

    result = scored((HEAD + query) if query else "", thresholds=limits)

    assert result.scores["known_terms"] is None
    assert not result.shown.passed


def test_a_threshold_on_known_terms_decides_a_case(scored):
    limits = {"known_terms": Threshold(minimum=1.0)}

    assert scored(f"{HEAD}SELECT ?v {{ ?u b:feeds ?v }}", thresholds=limits).shown.passed
    assert not scored(f"{HEAD}SELECT ?v {{ ?u b:feed ?v }}", thresholds=limits).shown.passed


@pytest.mark.feature("sparql_endpoint")
def test_an_endpoint_is_asked_and_the_terms_of_gold_are_the_nearest(folder):
    with servers.oxigraph(folder / "store", [folder / "g.ttl"]) as url, Session() as session:
        source = Source(name="live", engine="endpoint", settings={"url": url}, folder=folder)

        trial = evaluate_case(sparql_case(source, f"{HEAD}SELECT ?u {{ ?u a b:Air_Handler_Unit }}"), session).shown

    assert trial.scores["known_terms"] == 0
    assert trial.details["notes"] == ["b:Air_Handler_Unit is not in the graph; b:Air_Handling_Unit is"]


def is_lookup(query):
    return query != GOLD and len(query) < 1_000


class Answers(dict):
    """The rows of the gold and of long queries, and of all lookups."""

    def get(self, query, default=None):
        return self["lookup"] if is_lookup(query) else [(True,)]


@pytest.mark.parametrize(("answer", "most"), [(None, 10), ([(True,)], 1_000)])
def test_a_service_is_asked_within_a_budget_and_each_term_once(monkeypatch, answer, most):
    engine = install_engine(monkeypatch, Answers(lookup=answer))
    predicates = [f"<http://example.org/p{number}>" for number in range(1_200)]
    with Session() as session:
        for of in (predicates[:400], predicates[:400], predicates[400:800], predicates[800:]):
            query = f"ASK {{ {' '.join(f'?s {term} ?o .' for term in of)} }}"
            evaluate_case(sparql_case(fake_source(), query, metrics=("known_terms",)), session)

    lookups = list(filter(is_lookup, engine.executed))
    assert len(lookups) == len(set(lookups)) == most


def test_no_text_of_a_term_gets_into_a_lookup(monkeypatch):
    engine = install_engine(monkeypatch, Answers(lookup=[(True,)]))
    query = r"PREFIX e: <http://e/> ASK { ?s e:a\>\ \}\ \{ ?o }"
    with Session() as session:
        evaluate_case(sparql_case(fake_source(), query, metrics=("known_terms",)), session)

    assert set(engine.executed) <= {GOLD, query}
