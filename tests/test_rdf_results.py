"""Stored answers in Turtle and N-Triples."""

import json

import pytest

from pytest_queryeval import evaluate, load_cases
from pytest_queryeval.core.table import IRI, BlankNode, Literal
from pytest_queryeval.languages.sparql.results import read_rdf_results
from pytest_queryeval.metrics.execution_accuracy import execution_accuracy

PREFIXES = "@prefix rs: <http://www.w3.org/2001/sw/DataAccess/tests/result-set#> . @prefix : <http://e/> .\n"
XSD = "http://www.w3.org/2001/XMLSchema#"


def binding(variable, value):
    return f'rs:binding [ rs:variable "{variable}" ; rs:value {value} ]'


def test_a_result_set_is_a_table_with_gaps_where_nothing_is_bound():
    table = read_rdf_results(
        f"""{PREFIXES} [] a rs:ResultSet ; rs:resultVariable "name", "age", "who" ;
        rs:solution [ {binding("name", '"Ann"@en')} ; {binding("who", ":a")} ] ,
                    [ {binding("name", '"Bob"')} ; {binding("age", "7")} ; {binding("who", "_:b")} ] .""",
        ".ttl",
    )

    assert table.columns == ("name", "age", "who")
    assert table.rows[0] == (Literal("Ann", language="en"), None, IRI("http://e/a"))
    assert table.rows[1][:2] == (Literal("Bob"), Literal("7", f"{XSD}integer"))
    assert isinstance(table.rows[1][2], BlankNode)
    assert not table.is_graph


def test_rows_are_in_the_order_of_their_indexes():
    solutions = ", ".join(f"[ {binding('n', n)} ; rs:index {n} ]" for n in (10, 2, 1))
    table = read_rdf_results(
        f'{PREFIXES} [] a rs:ResultSet ; rs:resultVariable "n" ; rs:solution {solutions} .', ".ttl"
    )

    assert [cell.lexical for (cell,) in table.rows] == ["1", "2", "10"]


@pytest.mark.parametrize(("written", "value"), [("true", True), ("false", False), (f'"1"^^<{XSD}boolean>', True)])
def test_a_boolean_is_the_answer_of_ask(written, value):
    table = read_rdf_results(f"{PREFIXES} [] a rs:ResultSet ; rs:boolean {written} .", ".ttl")

    assert (table.columns, table.rows) == (("boolean",), [(value,)])


def test_anything_else_is_a_graph():
    table = read_rdf_results("<http://e/a> <http://e/p> _:x .\n<http://e/a> <http://e/p> _:x .\n", ".nt")

    assert table.is_graph
    assert len(table.rows) == 1
    assert read_rdf_results("", ".ttl").rows == []


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("<http://e/a> <http://e/p>", "is not RDF: "),
        (f"{PREFIXES} [] a rs:ResultSet . [] a rs:ResultSet .", "has 2 result sets: expected one"),
        (
            f"{PREFIXES} [] a rs:ResultSet ; rs:resultVariable :x .",
            "is not a result set: expected a literal, found <http",
        ),
        (
            f"{PREFIXES} [] a rs:ResultSet ; rs:solution [ {binding('x', 1)} ] .",
            "is not a result set: rs:resultVariable does not name 'x'",
        ),
        (
            f'{PREFIXES} [] a rs:ResultSet ; rs:resultVariable "x" ; rs:solution [ rs:binding [ rs:variable "x" ] ] .',
            "is not a result set: expected one rs:value",
        ),
        (
            f'{PREFIXES} [] a rs:ResultSet ; rs:resultVariable "x" ; rs:solution [ rs:index "a" ] .',
            "is not a result set: rs:index is not a whole number: a",
        ),
    ],
)
def test_what_is_wrong_with_a_file_is_said(text, problem):
    with pytest.raises(ValueError, match=f"^{problem}"):
        read_rdf_results(text, ".ttl")


def test_a_stored_graph_is_the_gold_of_construct_and_never_of_select(tmp_path):
    (tmp_path / "g.ttl").write_text("<http://e/a> <http://e/p> [ <http://e/q> 1 ] .", encoding="utf-8")
    (tmp_path / "gold.ttl").write_text("<http://e/a> <http://e/p> _:z . _:z <http://e/q> 1.0 .", encoding="utf-8")
    queries = {
        "graph": "CONSTRUCT WHERE { ?s ?p ?o }",
        "rows": "SELECT ?subject ?predicate ?object { ?subject ?predicate ?object }",
        "less": "CONSTRUCT { ?s <http://e/p> ?o } WHERE { ?s <http://e/p> ?o }",
    }
    cases = "".join(f"  - {{id: {id_}, predicted: '{query}', gold_file: gold.ttl}}\n" for id_, query in queries.items())
    (tmp_path / "s.queryeval.yaml").write_text(f"kind: sparql\nsource: g.ttl\ncases:\n{cases}", encoding="utf-8")

    report = evaluate(load_cases(tmp_path))

    scores = {case["id"]: case["scores"]["execution_accuracy"] for case in report["cases"]}
    assert scores == {"graph": 1.0, "rows": 0.0, "less": 0.0}


def test_triples_nested_too_deep_are_refused_before_they_end_the_process():
    def nested(depth, inner="<urn:c>"):
        return f"<urn:a> <urn:b> {'<<( <urn:a> <urn:b> ' * depth}{inner}{' )>>' * depth} ."

    with pytest.raises(ValueError, match="nested deeper than 1,000 levels"):
        read_rdf_results(nested(100_000), ".ttl")
    for text in (nested(500), f"{nested(1)}\n" * 2_000, nested(1, f'"{"cout << " * 2_000}"'), f"# {'<< ' * 2_000}\n"):
        assert read_rdf_results(text, ".ttl").is_graph


REIFIED = """PREFIX : <http://e/>
_:n :name "x"@en--ltr ; :says <<( _:n :knows _:m )>> .
_:m :name "y" ; :says <<( _:m :knows <<( :a :b _:n )>> )>> ."""
OTHER_LABELS = REIFIED.replace("_:n", "_:q").replace("_:m", "_:n").replace("_:q", "_:m")


def test_graphs_whose_triple_terms_hold_blank_nodes_are_equal_up_to_their_labels():
    gold, same = (read_rdf_results(text, ".ttl") for text in (REIFIED, OTHER_LABELS))
    confused = read_rdf_results(REIFIED.replace(":b _:n", ":b _:m"), ".ttl")

    assert execution_accuracy(gold, same) == 1.0
    assert execution_accuracy(gold, confused) == 0.0
    assert Literal("x", "", "en--ltr") in {cell for row in gold.rows for cell in row}


@pytest.mark.parametrize("engine", ["oxigraph", "rdflib"])
def test_engines_answer_with_triple_terms_whose_blank_nodes_match(engine, tmp_path):
    (tmp_path / "a.ttl").write_text(REIFIED)
    results = {
        "head": {"vars": ["who", "what"]},
        "results": {"bindings": [{"who": node("1"), "what": triple(node("1"), "knows", node("2"))},
                                 {"who": node("2"), "what": triple(node("2"), "knows", INNER)}]},
    }  # fmt: skip
    query = "PREFIX e:<http://e/> SELECT ?who ?what { ?who e:says ?what }"
    (tmp_path / "right.srj").write_text(json.dumps(results))
    (tmp_path / "wrong.srj").write_text(json.dumps(results).replace('"1"', '"2"', 1))
    (tmp_path / "a.queryeval.yaml").write_text(
        f"kind: sparql\nsource: {{rdf: {{files: a.ttl, engine: {engine}}}}}\n"
        "cases:\n"
        + "".join(f"  - {{id: {name}, gold_file: {name}.srj, predicted: '{query}'}}\n" for name in ("right", "wrong"))
    )

    report = evaluate(load_cases(tmp_path / "a.queryeval.yaml"))

    assert [case["scores"]["execution_accuracy"] for case in report["cases"]] == [1.0, 0.0]


def node(label):
    return {"type": "bnode", "value": label}


def triple(subject, predicate, object_):
    iri = {"type": "uri", "value": f"http://e/{predicate}"}
    return {"type": "triple", "value": {"subject": subject, "predicate": iri, "object": object_}}


INNER = triple({"type": "uri", "value": "http://e/a"}, "b", node("1"))
