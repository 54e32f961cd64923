"""SPARQL golds with what facts about queries are about, and their mutants."""

import pyoxigraph
from samples import make_case
from sparql_queries import QUERIES

from pytest_queryeval.core.table import IRI, Policy, Table
from pytest_queryeval.features.strength import MUTATORS

HEAD = "PREFIX : <http://e/>\n"
NAMES = pyoxigraph.Store()  # which a query finds in the graph
NAMES.load(
    "_:x a <http://e/A>, <http://e/B> ; <http://e/p> 1 ; <http://e/q> 1 ; <http://e/r> 1 .", pyoxigraph.RdfFormat.TURTLE
)
# With DISTINCT, aggregates, OPTIONAL, MINUS, UNION, nested queries and names in several roles: what facts are about.
GOLDS = (
    "SELECT ?x WHERE { ?x a :A ; :p ?y . FILTER (?y > 2) }",
    "SELECT DISTINCT ?x WHERE { ?x a :A . ?x :p ?y . ?x :p ?z . OPTIONAL { ?x :q ?u FILTER (?u < 3) } }",
    "SELECT ?x ?y WHERE { ?x :p ?y . OPTIONAL { ?x :q ?u } MINUS { ?a :r ?b } }",
    "SELECT DISTINCT ?x WHERE { ?x :p ?y . OPTIONAL { ?x :q ?u . ?u :r ?v } OPTIONAL { ?u :p ?w } }",
    "SELECT ?x ?y WHERE { ?x :q ?y . FILTER (STR(?x) < STR(?y)) }",
    "SELECT * WHERE { ?x :q ?y OPTIONAL { ?y :p ?n } }",
    "SELECT (COUNT(?y) AS ?n) WHERE { ?x :p ?y }",
    "SELECT ?x (COUNT(?y) AS ?n) (MAX(?y) AS ?m) WHERE { ?x :p ?y } GROUP BY ?x ?never HAVING (COUNT(?y) > 1)",
    "SELECT (COUNT(DISTINCT ?x) AS ?n) WHERE { ?x :p ?y . ?x :p ?z OPTIONAL { ?x :q ?u } }",
    "SELECT DISTINCT (SUM(?y) AS ?n) WHERE { ?x :p ?y . ?x a :A } ORDER BY ?n LIMIT 2",
    "ASK { ?x :q ?y . OPTIONAL { ?y :r ?z } FILTER NOT EXISTS { ?y :p ?a . ?y :p ?b } }",
    "ASK { { SELECT DISTINCT ?x { ?x :p ?y } ORDER BY ?y } ?x a :B }",
    "SELECT ?x ?n { ?x a :A { SELECT ?x (COUNT(*) AS ?n) { ?x :p ?y } GROUP BY ?x } }",
    "SELECT ?x { { ?x a :A } UNION { ?x a :B } MINUS { ?x :q ?y . ?x :q ?z } }",
    "CONSTRUCT { ?x :is [ :of ?y ] } WHERE { ?x :q ?y . OPTIONAL { ?x :p ?n } }",
    "CONSTRUCT { ?x :of ?y } WHERE { ?x :q ?y . OPTIONAL { ?x :p ?n } }",
    "SELECT DISTINCT ?x { ?x :q+ ?y . ?x (:q|:r)/:q* [] . ?y ^:q ?x }",
)
ALL_GOLDS = (*(HEAD + gold for gold in GOLDS), *QUERIES.values())


def names(query):
    rows = NAMES.query(query)
    return Table(columns=("name",), rows=[(IRI(term.value),) for (term,) in rows if term.value.startswith("http://e/")])


def mutants(query, **policy):
    return MUTATORS["sparql"](query, make_case(kind="sparql", policy=Policy(**policy)), {}, names)


def made(body, **policy):
    return mutants(HEAD + body, **policy)
