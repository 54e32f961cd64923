"""The order in which rdflib joins: what a query costs does not depend on the order of its triples, nor do its rows."""

import random
from collections import Counter

import pytest
import rdflib
from rdflib import Literal, URIRef, Variable
from rdflib.plugins import sparql
from rdflib.plugins.sparql import prepareQuery
from rdflib.plugins.sparql.parserutils import CompValue

from pytest_queryeval.core.model import Source
from pytest_queryeval.engines import ENGINES
from pytest_queryeval.engines.rdflib_child import (  # white box: the order of joins, which no answer shows
    MAX_TRIPLES,
    JoinOrder,
    join_order,
    may_be_empty,
)

BRICK = "https://brickschema.org/schema/Brick#"
UNITS, SENSORS = 12, 400
RELATED = "?u a b:AHU . ?vav a b:VAV . ?s a b:Sensor . ?u b:feeds ?vav . ?vav b:hasPoint ?s"
QUERIES = {
    "types first": f"SELECT DISTINCT ?u ?s {{ {RELATED} }}",
    "backwards": "SELECT ?u ?s { ?vav b:hasPoint ?s . ?u b:feeds ?vav . ?s a b:Sensor . ?vav a b:VAV . ?u a b:AHU }",
    "with a path": f"SELECT ?u ?s {{ {RELATED.replace('b:feeds', 'b:feeds+')} }}",
    "in an OPTIONAL": f"SELECT ?x ?u ?s {{ ?x a b:Building OPTIONAL {{ {RELATED} }} }}",
    "in a MINUS": f"SELECT ?u {{ ?u a b:AHU MINUS {{ {RELATED} }} }}",
    "in a nested query": f"SELECT ?u ?s {{ {{ SELECT * {{ {RELATED} }} }} }}",
}
NAMES = {name: Variable(name) for name in "uvwxyz"}


def building():
    """A graph whose units feed boxes, each with one sensor; without what connects them there are 1.8 million rows."""
    lines = [f"@prefix b: <{BRICK}> .", "b:here a b:Building ."]
    lines += [f"b:u{unit} a b:AHU ." for unit in range(UNITS)]
    for number in range(SENSORS):
        lines.append(f"b:s{number} a b:Sensor . b:v{number} a b:VAV ; b:hasPoint b:s{number} .")
        lines.append(f"b:u{number % UNITS} b:feeds b:v{number} .")
    return "\n".join(lines)


@pytest.fixture(scope="module")
def engines(hosts, tmp_path_factory):
    folder = tmp_path_factory.mktemp("building")
    (folder / "building.ttl").write_text(building(), encoding="utf-8")
    settings = {"files": "building.ttl", "prefixes": {"b": BRICK}}
    return [
        ENGINES["rdf"].open(
            Source(name=name, engine="rdf", settings={**settings, "engine": name}, folder=folder), hosts
        )
        for name in ("oxigraph", "rdflib")
    ]


@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
def test_triples_that_connect_others_are_matched_before_all_pairs_are_made(engines, query):
    """The limit is a hundred times what the query takes, and less than what all pairs take."""
    gold, execution = (engine.execute(query, timeout=10, max_rows=100_000) for engine in engines)

    assert execution.error is None
    assert Counter(execution.answer.rows) == Counter(gold.answer.rows)


def term(text):
    return NAMES.get(text) or URIRef(f"urn:{text}")


@pytest.mark.parametrize(
    ("triples", "bound", "expected"),
    [
        ("x type Sensor . y type Room . y has x", "", "x type Sensor . y has x . y type Room"),
        ("x p y . y q z . z type Room", "", "z type Room . y q z . x p y"),
        ("x p y . y q z . z r w", "w", "z r w . y q z . x p y"),
    ],
)
def test_what_is_bound_decides_where_to_start_and_then_comes_what_is_connected(triples, bound, expected):
    parts = [tuple(map(term, triple.split())) for triple in triples.split(" . ")]

    order = join_order(parts, frozenset(NAMES[name] for name in bound))

    assert " . ".join(" ".join(str(part).removeprefix("urn:") for part in triple) for triple in order) == expected


def test_a_path_that_may_be_empty_stays_where_it_is():
    query = "SELECT * { ?x <urn:p> ?y . ?y <urn:q>* ?z . ?z <urn:q> ?w }"
    (pattern,) = patterns(prepareQuery(query).algebra)

    order = join_order(pattern.triples, frozenset())

    native = sorted(pattern.triples, key=lambda triple: sum(isinstance(part, Variable) for part in triple))
    assert [isinstance(triple[1], URIRef) for triple in order] == [isinstance(triple[1], URIRef) for triple in native]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        *(("!^<urn:p>", False), ("!(<urn:p>|^<urn:q>)", False), ("<urn:p>+", False), ("<urn:p?a=*>/<urn:q>", False)),
        *(("<urn:p>?", True), ("^(<urn:p>*)", True), ("<urn:p>/(!^<urn:q>)*", True), ("(<urn:p>|<urn:q>?)+", True)),
    ],
)
def test_a_path_may_be_empty_by_its_marks_and_not_by_the_letters_of_its_iris(path, expected):
    (pattern,) = patterns(prepareQuery(f"SELECT * {{ ?x {path} ?y }}").algebra)

    assert [may_be_empty(triple[1]) for triple in pattern.triples] == [expected]


def patterns(part):
    """The basic graph patterns of a query."""
    if isinstance(part, CompValue):
        if part.name == "BGP":
            yield part
        for value in part.values():
            yield from patterns(value)


def test_a_pattern_of_very_many_triples_is_left_to_rdflib():
    triples = [(Variable(f"x{n}"), URIRef("urn:p"), Literal(n)) for n in range(MAX_TRIPLES + 1)]

    with pytest.raises(NotImplementedError):
        JoinOrder()(None, CompValue("BGP", triples=triples))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # rdflib's own
@pytest.mark.parametrize("seed", [*range(10), *(pytest.param(seed, marks=pytest.mark.long) for seed in range(10, 40))])
def test_rows_are_those_of_rdflib(seed, monkeypatch):
    chance = random.Random(seed)
    dataset, nodes = random_dataset(chance)
    for _ in range(5):
        query = random_query(chance, nodes)
        answers = []
        for evaluation in ({}, {"join order": JoinOrder()}):
            monkeypatch.setattr(sparql.evaluate, "CUSTOM_EVALS", evaluation)
            answers.append(Counter(tuple(sorted(row.items())) for row in dataset.query(prepareQuery(query)).bindings))
        assert answers[0] == answers[1], query


PREDICATES = [f"<urn:p{n}>" for n in range(3)]
VARIABLES = ["?a", "?b", "?c", "?d"]
PATHS = ["{0}*", "{0}+", "{0}?", "^{0}", "{0}/{1}", "({0}|{1})", "({0}/{1})*", "!{0}", "({0}|^{1})+"]
SHAPES = [
    "{0}",
    "{0} OPTIONAL {{ {1} }}",
    "{0} FILTER NOT EXISTS {{ {1} }}",
    "{{ {0} }} UNION {{ {1} }}",
    "GRAPH ?g {{ {0} }} {1}",
    "{0} MINUS {{ {1} }}",
    "{{ SELECT ?a ?b {{ {0} }} }} {1}",
    "VALUES (?a ?b) {{ (<urn:n0> UNDEF) (<urn:elsewhere> <urn:n1>) }} {0}",
]


def random_dataset(chance):
    dataset = rdflib.Dataset()
    graphs = [dataset.default_graph, dataset.default_graph, dataset.graph(URIRef("urn:g"))]
    nodes = [f"<urn:n{n}>" for n in range(chance.randint(2, 6))]
    for _ in range(chance.randint(3, 25)):
        subject, predicate = chance.choice([*nodes, PREDICATES[0]]), chance.choice(PREDICATES)
        triple = (URIRef(subject[1:-1]), URIRef(predicate[1:-1]), chance.choice([*map(uri, nodes), Literal("a")]))
        chance.choice(graphs).add(triple)
    return dataset, nodes


def uri(text):
    return URIRef(text[1:-1])


def random_query(chance, nodes):
    def triple():
        path = chance.choice(PATHS).format(*chance.sample(PREDICATES, 2))
        predicate = chance.choice(
            [chance.choice(PREDICATES), chance.choice(PREDICATES), chance.choice(VARIABLES), path]
        )
        subject, object_ = (chance.choice([*VARIABLES, *VARIABLES, chance.choice(nodes)]) for _ in range(2))
        return f"{subject} {predicate} {object_}"

    bodies = [" . ".join(triple() for _ in range(chance.randint(1, 4))) for _ in range(2)]
    return f"SELECT * {{ {chance.choice(SHAPES).format(*bodies)} }}"
