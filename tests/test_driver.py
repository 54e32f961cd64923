import marshal

import pyoxigraph
import pytest
import rdflib

from pytest_queryeval.sandbox.driver import encode_term, signature

XSD = "http://www.w3.org/2001/XMLSchema#"
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"


@pytest.mark.parametrize(
    ("term", "expected"),
    [
        (None, None),
        (pyoxigraph.NamedNode("http://e/a"), "http://e/a"),
        (rdflib.URIRef("http://e/a"), "http://e/a"),
        (pyoxigraph.BlankNode("b"), ("b",)),
        (rdflib.BNode("b"), ("b",)),
        (pyoxigraph.Literal("1", datatype=pyoxigraph.NamedNode(f"{XSD}int")), ("1", f"{XSD}int", "")),
        (rdflib.Literal("1", datatype=rdflib.XSD.int), ("1", f"{XSD}int", "")),
        (pyoxigraph.Literal("é", language="fr"), ("é", f"{RDF}langString", "fr")),
        (rdflib.Literal("é", lang="fr"), ("é", "", "fr")),
        (pyoxigraph.Literal("x"), ("x", f"{XSD}string", "")),
        (rdflib.Literal("x"), ("x", "", "")),
        (
            pyoxigraph.Triple(pyoxigraph.NamedNode("s:s"), pyoxigraph.NamedNode("p:p"), pyoxigraph.Literal("o")),
            ("triple", "s:s", "p:p", ("o", f"{XSD}string", "")),
        ),
    ],
)
def test_terms_of_both_libraries_cross_the_pipe_alike(term, expected):
    [actual] = marshal.loads(marshal.dumps([encode_term(term)]))

    assert actual == expected
    assert type(actual) is type(expected)


def test_a_signature_changes_with_the_file(tmp_path):
    file = tmp_path / "a.db"
    missing = signature(str(file))
    file.write_text("a")
    before = signature(str(file))
    file.write_text("longer")

    assert missing == ()
    assert len({before, signature(str(file))}) == 2
