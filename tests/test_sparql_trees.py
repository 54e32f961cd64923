"""Trees of SPARQL queries: what is read and written again answers the same, and hostile text is not a query."""

import json

import pyoxigraph
import pytest
from sparql_queries import QUERIES, TURTLE

from pytest_queryeval.languages import KINDS
from pytest_queryeval.languages.sparql.tree_reader import in_other_words  # white box: a tree that nothing changes


@pytest.fixture(scope="module")
def store():
    graph = pyoxigraph.Store()
    graph.load(TURTLE.encode(), format=pyoxigraph.RdfFormat.TURTLE)
    return graph


def answer(store, query):
    results = store.query(query)
    if isinstance(results, pyoxigraph.QueryBoolean):
        return bool(results)
    if isinstance(results, pyoxigraph.QueryTriples):
        return len([*results])
    text = json.loads(results.serialize(format=pyoxigraph.QueryResultsFormat.JSON))
    rows = [sorted((name, cell["value"]) for name, cell in row.items()) for row in text["results"]["bindings"]]
    return text["head"]["vars"], sorted(map(repr, rows))


@pytest.mark.parametrize("query", QUERIES.values(), ids=list(QUERIES))
def test_a_query_that_is_written_again_answers_the_same(query, store):
    try:
        expected = answer(store, query)
    except (OSError, SyntaxError):
        pytest.skip("only other engines run it")
    changing = any(word in query.upper() for word in ("RAND()", "NOW()", "UUID", "BNODE"))

    again = in_other_words(query)
    actual = answer(store, again)

    assert in_other_words(again) == again
    assert changing or actual == expected


def test_names_texts_and_lists_have_one_spelling():
    text = r"""prefix e: <http://e/> prefix f: <http://e/>
    select $x where { $x a e:A, f:B ; e:p 'it"s'@EN, "c\u00e9", '''two
lines''', '5'^^e:t ; . # } comment {
    [ e:q ?y ] e:r [] . filter(?y!=-5&&not exists{?x e:p "}"}) }"""

    assert in_other_words(text) == (
        "SELECT ?x WHERE {\n"
        "  ?x a <http://e/A> .\n"
        "  ?x a <http://e/B> .\n"
        '  ?x <http://e/p> "it\\"s"@en .\n'
        '  ?x <http://e/p> "cé" .\n'
        '  ?x <http://e/p> "two\\nlines" .\n'
        '  ?x <http://e/p> "5"^^<http://e/t> .\n'
        "  _:queryeval1 <http://e/r> [] .\n"
        "  _:queryeval1 <http://e/q> ?y .\n"
        "  FILTER (?y != -5 && NOT EXISTS {\n"
        '    ?x <http://e/p> "}" .\n'
        "  })\n"
        "}"
    )


@pytest.mark.parametrize(
    ("text", "predicate"),
    [
        ("BASE <http://e/a/b> ASK { ?s <p> ?o }", "<http://e/a/p>"),
        ("BASE <http://e/a/> PREFIX n: <b#> BASE <http://f/> ASK { ?s n:p ?o }", "<http://e/a/b#p>"),
        ("BASE <http://e/> BASE <a/> ASK { ?s <p> ?o }", "<http://e/a/p>"),
        ("BASE <http://[> ASK { ?s <p> ?o }", "<p>"),
        ("ASK { ?s <p> ?o }", "<p>"),
        ("ASK { ?s ex:p ?o }", "ex:p"),
        (r"ASK { ?s <http://e/caf\U000000e9> ?o }", "<http://e/café>"),
    ],
)
def test_relative_iris_are_resolved_and_undeclared_prefixes_stay(text, predicate):
    assert in_other_words(text) == f"ASK WHERE {{\n  ?s {predicate} ?o .\n}}"


UNREADABLE = [
    *("", "SELECT", "SELECT ?x", "no query", "SELECT ?x {", "SELECT ?x { ?x", "ASK { ?s ?p ?o } }", "ASK { ?s ?p }"),
    *("ASK { FILTER( }", "ASK { 'open }", 'SELECT * { ?s ?p """ }', "SELECT * { ?s ?p (1 2) }", "ASK { << a b c >> }"),
    *("ASK { SERVICE <http://e/> { ?s ?p ?o } }", "INSERT DATA { <a> <b> <c> }", "SELECT ?x { VALUES ?x { 1 }"),
    *(
        "SELECT (1 AS { ?x ?y ?z }",
        r"ASK { ?s \u007B ?o }",
        r'ASK { ?s ?p "caf\\u00e9" }',
        "SELECT ?x { ] }",
        "ASK {)}",
    ),
]
HOSTILE = [
    *("ASK " + "{" * 50_000, "SELECT ?x { " + "?s ?p ?o . " * 10_000),
    *(
        "SELECT (" * 30_000,
        "ASK { ?s ?p " + "[ ?p " * 20_000,
        "ASK { FILTER " + "(" * 50_000,
        "ASK { ?s " + "^" * 50_000,
    ),
    *("ASK { 'x" + "\\" * 100_000, "# ASK {" + "}" * 100_000, "ASK { ?s <p>/" + "<p>/" * 30_000 + "<p> ?o }"),
]


@pytest.mark.parametrize("text", [*UNREADABLE, *HOSTILE], ids=lambda text: text[:30] + str(len(text)))
def test_other_text_is_unreadable_and_nothing_else(text):
    assert in_other_words(text) == ""
    assert KINDS["sparql"].after_prose(f"Here it is:\n\n{text}", "") == ""


def test_queries_are_read_up_to_4000_tokens_and_41_groups_within_each_other():
    triples = "<a:a> <a:b> <a:c> . " * 999

    assert in_other_words(f"ASK WHERE {{ {triples}}}")
    assert in_other_words(f"SELECT * WHERE {{ {triples}}}") == ""
    assert in_other_words("ASK " + "{ " * 41 + "} " * 41)
    assert in_other_words("ASK " + "{ " * 42 + "} " * 42) == ""
