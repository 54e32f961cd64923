"""The label service of Wikidata on files, and what remains refused."""

import os
from collections import Counter

import pytest
import wikidata
from opened_sources import execute, source_of

from pytest_queryeval.core.table import IRI, Literal

EN = 'bd:serviceParam wikibase:language "en"'
QUERIES = int(os.environ.get("QUERYEVAL_LABEL_QUERIES", "40"))


def cell(term):
    """A term of pyoxigraph as a cell, without the datatype of plain texts."""
    if term is None:
        return None
    if not hasattr(term, "language"):
        return IRI(term.value)
    datatype = "" if term.language or term.datatype.value.endswith("#string") else term.datatype.value
    return Literal(term.value, datatype, (term.language or "").lower())


@pytest.fixture
def run(hosts, tmp_path):
    (tmp_path / "g.ttl").write_text(wikidata.TURTLE, encoding="utf-8")
    return lambda query, **settings: execute(
        hosts, source_of("rdf", tmp_path, files="g.ttl", prefixes="wikidata", **settings), query
    )


@pytest.mark.parametrize("engine", ["oxigraph", "rdflib"])
def test_labels_on_files_are_those_of_the_manual(run, engine):
    for seed in range(QUERIES if engine == "oxigraph" else QUERIES // 4):
        labelled = wikidata.labelled(seed)
        execution = run(labelled.query, engine=engine)
        assert execution.error is None, (labelled.query, execution.error)
        columns, rows = wikidata.answer(labelled)
        expected = Counter(tuple(map(cell, row)) for row in rows)
        table = execution.answer
        order = [table.columns.index(name) for name in columns]
        found = Counter()
        for row in table.rows:
            count = int(row[table.columns.index("rows")].lexical) if "rows" in table.columns else 1
            found[tuple(row[place] for place in order)] += count
        assert found == expected, labelled.query


@pytest.mark.parametrize(
    "query",
    [
        f"SELECT * {{ ?item wdt:P31 ?c SERVICE wikibase:label {{ {EN} . ?c rdfs:label ?l }} }}",
        "SELECT ?itemLabel { ?item wdt:P31 ?c SERVICE wikibase:label { ?item ?p ?itemLabel } }",
        f"SELECT ?itemLabel {{ ?item ?p ?c OPTIONAL {{ SERVICE wikibase:label {{ {EN} }} }} }}",
        f"PREFIX wikibase: <http://e/> SELECT ?iLabel {{ ?i ?p ?c SERVICE wikibase:label {{ {EN} }} }}",
        f"SELECT ?iLabel {{ ?i ?p ?c SERVICE wikibase:label {{ {EN} }} SERVICE <http://e/> {{}} }}",
        "SELECT ?itemLabel { ?item wdt:P31 ?c SERVICE wikibase:label {",
    ],
)
def test_other_services_and_other_uses_are_refused_on_files(run, query):
    assert run(query).error.kind == "unsafe"


def test_a_prefix_that_is_not_declared_is_named(hosts, tmp_path):
    (tmp_path / "g.ttl").write_text(wikidata.TURTLE, encoding="utf-8")
    query = f"SELECT ?iLabel {{ ?i ?p ?c SERVICE wikibase:label {{ {EN} }} }}"

    failure = execute(hosts, source_of("rdf", tmp_path, files="g.ttl"), query).error

    assert failure.kind == "invalid"
    assert "or `prefixes: wikidata` to the source" in failure.message


def test_labels_that_the_query_binds_itself_are_left_alone(run):
    service = 'SERVICE wikibase:label { bd:serviceParam wikibase:language "de" }'
    pattern = "?item wdt:P2 7 ; rdfs:label ?itemLabel FILTER(LANG(?itemLabel) = 'en')"
    query = f"SELECT ?item ?itemLabel {{ {pattern} {service} }}"

    assert run(query).answer.rows == [(IRI(f"{wikidata.WD}Q1"), Literal("Ann", "", "en"))]


def test_a_language_is_no_part_of_a_query(run):
    service = 'SERVICE wikibase:label { bd:serviceParam wikibase:language "de\\") } LOAD <http://e/> #, de" }'
    query = f"SELECT ?item ?itemLabel {{ ?item wdt:P2 7 {service} }}"

    assert run(query).answer.rows == [(IRI(f"{wikidata.WD}Q1"), Literal("Anna", "", "de"))]


def test_a_label_without_the_service_is_unbound(run):
    assert run("SELECT ?item ?itemLabel { ?item wdt:P2 7 }").answer.rows == [(IRI(f"{wikidata.WD}Q1"), None)]
