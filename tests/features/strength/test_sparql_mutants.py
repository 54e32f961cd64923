"""Mutants of SPARQL queries: each operator makes what it should, and what is called equivalent answers as gold does."""

import json
import random
from collections import Counter

import pyoxigraph
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rdflib.plugins.sparql.parser import parseQuery
from sparql_golds import ALL_GOLDS, GOLDS, HEAD, made, names

from pytest_queryeval.core.table import Policy
from pytest_queryeval.evaluation.session import Session
from pytest_queryeval.features.strength import MAX_MUTANTS
from pytest_queryeval.features.strength.case_strength import measure_strength
from pytest_queryeval.features.strength.sparql import mutants
from pytest_queryeval.features.strength.sparql.terms import RDFS
from pytest_queryeval.languages.sparql.portable import portable
from pytest_queryeval.suites import load_cases


def changes(body, operator, **policy):
    return {mutant.change: mutant.equivalent for mutant in made(body, **policy) if mutant.operator == operator}


@pytest.mark.parametrize(
    ("operator", "body", "expected"),
    [
        ("pattern-dropped", "SELECT ?x { ?x a :A ; :p 1 }", {"?x a :A dropped", "?x :p 1 dropped"}),
        ("pattern-dropped", "SELECT ?x { ?x :p 1 }", set()),
        ("pattern-dropped", "SELECT ?x ?y { ?x a :A ; :p ?y }", {"?x a :A dropped"}),
        ("direction", "SELECT ?x { ?x :q :a ; :p 1 }", {"?x :q :a → :a :q ?x"}),
        ("filter-dropped", "SELECT ?x { ?x :p ?y FILTER(?y>1) }", {"FILTER (?y > 1) dropped"}),
        ("condition-dropped", "SELECT ?x { ?x :p ?y FILTER(?y>1 && ?y<9) }", {"?y > 1 dropped", "?y < 9 dropped"}),
        ("connector", "SELECT ?x { ?x :p ?y FILTER(?y>1 && ?y<9) }", {"?y > 1 && ?y < 9 → ?y > 1 || ?y < 9"}),
        ("comparison-boundary", "SELECT ?x { ?x :p ?y FILTER(?y>1) }", {"?y > 1 → ?y >= 1"}),
        ("comparison-flip", "SELECT ?x { ?x :p ?y FILTER(?y=1) }", {"?y = 1 → ?y != 1"}),
        ("value", "SELECT ?x { ?x :p ?y FILTER(?y>1) }", {"?y > 1 → ?y > 2", "?y > 1 → ?y > 0"}),
        ("value", "SELECT ?x { ?x :p ?y BIND (?y * 1000 AS ?z) } ORDER BY ?z", set()),
        ("value", "SELECT ?x { ?x :p 'ann', 'b'@de, 1.5, true }", None),
        ("arithmetic", "SELECT ?x { ?x :p ?y BIND(?y * 2 AS ?z) }", {"?y * 2 → ?y / 2"}),
        ("negation", "ASK { ?x a :A FILTER NOT EXISTS { ?x :p 1 } }", {"NOT EXISTS → EXISTS"}),
        ("negation", "ASK { ?x :p ?y FILTER(?y NOT IN (1, 2)) }", {"NOT IN → IN"}),
        ("negation", "ASK { ?x :p ?y FILTER(!BOUND(?y)) }", {"!BOUND(?y) → BOUND(?y)"}),
        ("negation", "ASK { ?x :p ?y FILTER CONTAINS(?y, 'a') }", {'CONTAINS(?y, "a") → !CONTAINS(?y, "a")'}),
        ("optional-dropped", "SELECT ?x { ?x a :A OPTIONAL { ?x :p 1 } }", {"OPTIONAL { ?x :p 1 . } dropped"}),
        ("optional-required", "SELECT ?x { ?x a :A OPTIONAL { ?x :p 1 } }", {"OPTIONAL { ?x :p 1 . } → required"}),
        ("minus-dropped", "SELECT ?x { ?x a :A MINUS { ?x :p 1 } }", {"MINUS { ?x :p 1 . } dropped"}),
        (
            *("union-arm-dropped", "SELECT ?x { { ?x a :A } UNION { ?x a :B } }"),
            {"UNION { ?x a :A . } dropped", "UNION { ?x a :B . } dropped"},
        ),
        ("distinct", "SELECT DISTINCT ?x { ?x :p ?y }", {"DISTINCT dropped"}),
        ("distinct", "SELECT ?x { ?x :p ?y }", {"DISTINCT added"}),
        ("predicate", "SELECT ?x { ?x :p ?y }", {":p → :q", ":p → :r"}),
        (
            "predicate",
            "SELECT ?x { ?x ^:p/:q* ?y }",
            {f"^:p/:q* → {new}" for new in ("^:q/:q*", "^:r/:q*", "^:p/:p*", "^:p/:r*")},
        ),
        ("class", "SELECT ?x { ?x a :A }", {":A → :B"}),
        ("path", "SELECT ?x { ?x :p*/:q ?y }", {":p*/:q → :p+/:q"}),
        (
            *("path", f"SELECT ?x {{ ?x a/<{RDFS}subClassOf>* :A ; a :B }}"),
            {f"a/<{RDFS}subClassOf>* → a/<{RDFS}subClassOf>+", f"a/<{RDFS}subClassOf>* → a"},
        ),
        ("projection", "SELECT ?x ?y (?z + 1 AS ?n) { ?x :p ?y ; :q ?z }", {"?x → ?z", "?y → ?z"}),
        ("projection", "SELECT (COUNT(*) AS ?n) { ?x :p ?y }", set()),
        ("projection", "SELECT ?x { ?x :p 1 OPTIONAL { ?x :q ?y } }", set()),
        ("aggregate", "SELECT (MIN(?y) AS ?n) { ?x :p ?y }", {"MIN(?y) → MAX(?y)"}),
        ("aggregate", "SELECT (SUM(?y) AS ?n) { ?x :p ?y }", {"SUM(?y) → AVG(?y)", "SUM(?y) → SUM(DISTINCT ?y)"}),
        ("count", "SELECT (COUNT(?y) AS ?n) { ?x :p ?y }", {"COUNT(?y) → COUNT(*)", "COUNT(?y) → COUNT(DISTINCT ?y)"}),
        ("grouping", "SELECT ?x { ?x :p ?y ; :q ?z } GROUP BY ?x ?y", {"?y dropped"}),
        ("having-dropped", "SELECT ?x { ?x :p ?y } GROUP BY ?x HAVING (COUNT(*) > 1)", {"HAVING COUNT(*) > 1 dropped"}),
        ("order-direction", "SELECT ?x { ?x :p ?y } ORDER BY ?x DESC(?y)", {"?x → DESC(?x)", "DESC(?y) → ?y"}),
        ("order-key-dropped", "SELECT ?x { ?x :p ?y } ORDER BY ?x ?y", {"?x dropped", "?y dropped"}),
        ("order-dropped", "SELECT ?x { ?x :p ?y } ORDER BY ?x", {"ORDER BY ?x dropped"}),
        ("limit", "SELECT ?x { ?x :p ?y } LIMIT 1", {"LIMIT 1 → LIMIT 2", "LIMIT 1 → LIMIT 0", "LIMIT 1 dropped"}),
        ("limit", "SELECT ?x { ?x :p ?y } OFFSET 1", {"OFFSET 1 dropped"}),
    ],
)
def test_operators(operator, body, expected):
    mutants = set(changes(body, operator))

    assert mutants == (
        {'"ann" → "Ann"', '"b"@de → "b"', "1.5 → 2.5", "1.5 → 0.5", "true → false"} if expected is None else expected
    )


@pytest.mark.parametrize(
    ("operator", "body", "policy", "expected"),
    [
        ("distinct", "SELECT DISTINCT ?x ?y { ?x :p ?y }", {}, "no row occurs twice"),
        ("distinct", "SELECT DISTINCT ?x { ?x :p ?y }", {}, ""),
        ("distinct", "SELECT DISTINCT ?x ?y { ?x :p/:q ?y }", {}, ""),
        ("distinct", "SELECT DISTINCT ?x { ?x :p [] }", {}, ""),
        ("distinct", "SELECT DISTINCT ?x { ?x :p ?y }", {"duplicates": "ignore"}, "duplicates do not matter"),
        ("distinct", "SELECT ?x { ?x :p ?y } LIMIT 3", {"duplicates": "ignore"}, ""),
        ("distinct", "SELECT DISTINCT ?x { ?x :p ?y } ORDER BY ?y LIMIT 1", {}, "there is one row at most"),
        ("distinct", "SELECT DISTINCT ?x { ?x :p ?y } ORDER BY ?y LIMIT 1 OFFSET 1", {}, ""),
        ("distinct", "SELECT (COUNT(*) AS ?n) { ?x :p ?y }", {}, "no row occurs twice"),
        ("distinct", "SELECT (COUNT(*) AS ?n) { ?x :p ?y } GROUP BY ?x", {}, ""),
        ("order-dropped", "SELECT ?x { ?x :p ?y } ORDER BY ?y", {"row_order": "ignore"}, "the order does not matter"),
        ("order-dropped", "SELECT ?x { ?x :p ?y } ORDER BY ?y LIMIT 3", {"row_order": "ignore"}, ""),
        ("optional-dropped", "SELECT ?x { ?x a :A OPTIONAL { ?x :p ?y } }", {}, ""),
        (
            "optional-dropped",
            "SELECT DISTINCT ?x { ?x a :A OPTIONAL { ?x :p ?y } }",
            {},
            "its variables are used nowhere else",
        ),
        ("optional-dropped", "SELECT DISTINCT ?x { OPTIONAL { ?x :p ?y } ?x a :A }", {}, ""),
        ("optional-required", "SELECT DISTINCT ?x { ?x a :A OPTIONAL { ?x :p ?y } }", {}, ""),
        ("minus-dropped", "SELECT ?x { ?x a :A MINUS { ?y :p ?z } }", {}, "it shares no variable with the pattern"),
        ("direction", "SELECT ?a ?b { ?a :q ?b }", {}, "the same but for the names of variables"),
        ("direction", "SELECT ?a ?b { ?a :q ?b }", {"columns": "positional"}, ""),
        ("direction", "SELECT ?a ?b { ?a :q ?b FILTER (STR(?a) < 'x') }", {}, ""),
        ("limit", "ASK { ?x :p ?y } LIMIT 1", {}, None),
    ],
)
def test_what_is_equivalent(operator, body, policy, expected):
    mutants = set(changes(body, operator, **policy).values())

    assert mutants == ({"there is one row at most", ""} if expected is None else {expected})


def test_every_mutant_is_a_query_and_none_comes_twice():
    store = pyoxigraph.Store()
    for gold in ALL_GOLDS:
        queries = [mutant.query for mutant in mutants(gold, {}, Policy(), names)]

        assert len({*queries}) == len(queries) <= MAX_MUTANTS, gold
        for query in queries:
            store.query(portable(query))  # the error of one that cannot be parsed names its place


@pytest.mark.slow  # the test above parses the same mutants, with a parser that takes a hundredth of the time
def test_every_mutant_is_a_query_for_rdflib():
    for gold in ALL_GOLDS:
        for mutant in mutants(gold, {}, Policy(), names):
            parseQuery(mutant.query)


def answer(store, query):
    results = store.query(query)
    if isinstance(results, pyoxigraph.QueryBoolean):
        return bool(results)
    if isinstance(results, pyoxigraph.QueryTriples):
        counts = Counter(str(triple.predicate) for triple in {*results})
        return sorted(counts.items())
    text = json.loads(results.serialize(format=pyoxigraph.QueryResultsFormat.JSON))
    return Counter(tuple(sorted(cell["value"] for cell in row.values())) for row in text["results"]["bindings"])


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(GOLDS), st.integers(0, 10**6))
def test_equivalent_mutants_never_answer_otherwise(gold, seed):
    chance, store = random.Random(seed), pyoxigraph.Store()
    nodes = [pyoxigraph.NamedNode(f"http://e/{name}") for name in "abcd"]
    for _ in range(chance.randint(0, 14)):
        subject, object_ = chance.choice(nodes), chance.choice(nodes)
        predicate = pyoxigraph.NamedNode(f"http://e/{chance.choice('pqr')}")
        if predicate.value.endswith("p"):
            object_ = pyoxigraph.Literal(chance.randint(1, 4))
        if chance.random() < 0.3:
            predicate = pyoxigraph.NamedNode("http://www.w3.org/1999/02/22-rdf-syntax-ns#type")
            object_ = pyoxigraph.NamedNode(f"http://e/{chance.choice('AB')}")
        store.add(pyoxigraph.Quad(subject, predicate, object_))
    duplicates, row_order = chance.choice(("count", "ignore")), chance.choice(("auto", "ignore"))
    expected = answer(store, HEAD + gold)

    for mutant in made(gold, duplicates=duplicates, row_order=row_order):
        if mutant.equivalent:
            rows = answer(store, mutant.query)
            same = (
                set(rows) == set(expected) if isinstance(rows, Counter) and duplicates == "ignore" else rows == expected
            )
            assert same, mutant


def test_a_long_query_has_some_of_each_operator():
    body = "SELECT ?x { " + " ".join(f"?x :p ?y{n} FILTER (?y{n} > {n})" for n in range(40)) + " }"

    mutants = made(body)

    assert len(mutants) == MAX_MUTANTS
    assert {"distinct", "predicate", "filter-dropped", "value"} <= {mutant.operator for mutant in mutants}


def test_a_query_that_cannot_be_read_has_no_mutants():
    assert made("SELECT * { ?x :p (1 2) }") == ()


def test_strength_asks_the_graph_for_other_names(tmp_path):
    (tmp_path / "g.ttl").write_text(
        "@prefix : <http://e/> . :a a :A ; :p 1 ; :size 2 . :b a :B ; :p 3 .", encoding="utf-8"
    )
    (tmp_path / "a.queryeval.yaml").write_text(
        "kind: sparql\nsource: {rdf: {files: [g.ttl], prefixes: {'': 'http://e/'}}}\n"
        "cases: [{id: a, question: '?', gold: 'SELECT ?x { ?x a :A ; :p 1 }'}]\n",
        encoding="utf-8",
    )
    (case,) = load_cases(tmp_path, require_prediction=False)

    with Session() as session:
        measured = measure_strength(case, session)

    assert {mutant.change for mutant in measured.survivors} == {"?x a :A dropped", "?x :p 1 dropped"}
    assert {":p → :size", ":A → :B"} <= {mutant.change for mutant in measured.killed}
