"""Answers of RDF terms: texts next to numbers, datatypes next to each other, and graphs."""

from __future__ import annotations

from pytest_queryeval import METRICS, evaluate, load_cases
from pytest_queryeval.core.table import IRI, BlankNode, Literal, Policy, Table

XSD = "http://www.w3.org/2001/XMLSchema#"
execution_accuracy, row_matching_f1, soft_f1 = (
    METRICS[name].function for name in ("execution_accuracy", "row_matching_f1", "soft_f1")
)
SPARQL = Policy(text_numbers=True)
STRICT = Policy(text_numbers=True, rdf_terms="strict")


def typed(lexical, datatype="integer"):
    return Literal(lexical, f"{XSD}{datatype}")


def column(*cells):
    return Table(columns=("x",), rows=[(cell,) for cell in cells])


def test_texts_are_not_equal_because_each_of_them_equals_a_number():
    gold = column(Literal("5"), Literal("5.0"), typed("5"))

    assert row_matching_f1(gold, column(Literal("5.0"), Literal("5"), typed("5")), policy=SPARQL) == 1.0
    assert row_matching_f1(gold, column(typed("5"), typed("5"), typed("5")), policy=SPARQL) == 1.0
    assert row_matching_f1(column(Literal("5")), column(Literal("5.0"), typed("6")), policy=SPARQL) == 0.0
    assert soft_f1(column(Literal("5")), column(Literal("5.0")), policy=SPARQL) == 0.0
    assert soft_f1(column(Literal("5"), typed("7")), column(typed("5"), Literal("7.0")), policy=SPARQL) == 1.0


def test_strict_terms_are_equal_beside_others_that_are_near_in_another_datatype():
    gold = column(typed("1.0", "decimal"), typed("1.0", "double"), typed("1"))
    predicted = column(typed("1"), typed("1.0000001", "double"), typed("1.00", "decimal"))

    assert execution_accuracy(gold, predicted, policy=STRICT) == 1.0
    assert soft_f1(gold, predicted, policy=STRICT) == 1.0


A, B, P = IRI("http://e/a"), IRI("http://e/b"), IRI("http://e/p")


def triples(*rows):
    return Table(columns=("subject", "predicate", "object"), rows=list(rows))


def graph_table(rows):
    return Table(columns=("subject", "predicate", "object"), rows=list(dict.fromkeys(rows)), is_graph=True)


def test_where_one_answer_is_a_graph_no_columns_move_and_duplicates_do_not_count():
    graph = graph_table([(A, P, B)])

    for table in (triples((A, P, B)), triples((A, P, B), (A, P, B))):
        assert row_matching_f1(table, graph) == row_matching_f1(graph, table) == 1.0
    assert row_matching_f1(triples((B, P, A)), graph) == row_matching_f1(graph, triples((B, P, A))) == 0.0


def test_a_graph_never_equals_the_rows_of_a_select_query():
    graph, rows = graph_table([(A, P, B)]), triples((A, P, B))

    assert execution_accuracy(graph, rows) == execution_accuracy(rows, graph) == 0.0
    assert execution_accuracy(graph, graph_table([(A, P, B), (A, P, B)])) == 1.0


def results(folder, *cases):
    """The results of cases that the graph `a p b` is asked for."""
    (folder / "g.ttl").write_text("<http://e/a> <http://e/p> <http://e/b> .", encoding="utf-8")
    text = "\n".join(f"  - {{id: c{number}, {case}}}" for number, case in enumerate(cases))
    suite = f"kind: sparql\nsource: g.ttl\nmetrics: [execution_accuracy, same_row_count, cell_f1]\ncases:\n{text}\n"
    (folder / "s.queryeval.yaml").write_text(suite, encoding="utf-8")
    return [case["scores"] for case in evaluate(load_cases(folder))["cases"]]


def test_a_stored_gold_is_a_graph_where_predicted_is_one_and_the_other_way_round(tmp_path):
    stored = "{columns: [subject, predicate, object], rows: [[http://e/a, http://e/p, http://e/b]]}"
    twice = stored.replace("rows: [", "rows: [[http://e/a, http://e/p, http://e/b], ")
    same, turned = (f"'CONSTRUCT {{ {head} }} WHERE {{ ?a ?p ?b }}'" for head in ("?a ?p ?b", "?b ?p ?a"))

    right, wrong, often, other_way = results(
        tmp_path,
        f"gold_table: {stored}, predicted: {same}",
        f"gold_table: {stored}, predicted: {turned}",
        f"gold_table: {twice}, predicted: {same}",
        f"gold: {same}, predicted_table: {twice}",
    )

    assert right == often == other_way == {"execution_accuracy": 1.0, "same_row_count": 1.0, "cell_f1": 1.0}
    assert wrong["execution_accuracy"] == 0.0


def test_two_stored_tables_of_triples_are_tables(tmp_path):
    rows = "[[http://e/a, http://e/p, http://e/b], [http://e/a, http://e/p, http://e/b]]"
    stored = f"{{columns: [subject, predicate, object], rows: {rows}}}"
    once = "{columns: [object, predicate, subject], rows: [[http://e/b, http://e/p, http://e/a]]}"

    (scores,) = results(tmp_path, f"gold_table: {stored}, predicted_table: {once}")

    assert (scores["execution_accuracy"], scores["same_row_count"]) == (0.0, 0.0)


def test_blank_nodes_of_a_stored_graph_match_up_to_renaming():
    table = graph_table([(BlankNode("x"), P, Literal("5")), (BlankNode("y"), P, Literal("6")), (BlankNode("z"), P, A)])
    graph = graph_table([(BlankNode("1"), P, typed("6")), (BlankNode("2"), P, typed("5.0")), (BlankNode("3"), P, A)])

    assert execution_accuracy(table, graph, policy=SPARQL) == 1.0


def test_blank_nodes_are_known_by_numbers_beside_them_that_are_near():
    gold = Table(columns=("node", "mean"), rows=[(BlankNode(str(number)), number / 10) for number in range(9)])
    others = [(BlankNode(str(8 - number)), number / 10 + 1e-12) for number in range(9)]

    assert execution_accuracy(gold, Table(columns=("node", "mean"), rows=others)) == 1.0
