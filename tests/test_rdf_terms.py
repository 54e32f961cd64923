"""When the terms of two SPARQL answers are equal: texts and numbers, datatypes, and graphs."""

from __future__ import annotations

from decimal import Decimal
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import tables

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


def equal(gold, predicted, policy=SPARQL):
    return execution_accuracy(column(gold), column(predicted), policy=policy) == 1.0


@pytest.mark.parametrize(
    ("text", "other"),
    [("1.10", "1.1"), ("1e3", "1000"), ("12345e67", "123450e66"), ("1234567.8", "1234567.9"), ("5", "5.0")],
)
@pytest.mark.parametrize("term", [Literal, str, lambda text: Literal(text, "", "en")])
def test_two_texts_never_compare_as_numbers(text, other, term):
    assert not equal(term(text), term(other))
    assert equal(term(text), term(text))


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1.10", typed("1.1", "decimal")),
        ("1e3", typed("1000")),
        ("5", typed("5.0", "double")),
        ("5", 5),
        ("1234567.8", typed("1234567.9", "double")),
    ],
)
def test_a_text_equals_a_number_that_has_a_type(text, number):
    assert equal(Literal(text), number)
    assert equal(number, Literal(text))
    assert not equal(Literal(text), number, Policy())


def test_texts_are_not_equal_because_each_of_them_equals_a_number():
    gold = column(Literal("5"), Literal("5.0"), typed("5"))

    assert row_matching_f1(gold, column(Literal("5.0"), Literal("5"), typed("5")), policy=SPARQL) == 1.0
    assert row_matching_f1(gold, column(typed("5"), typed("5"), typed("5")), policy=SPARQL) == 1.0
    assert row_matching_f1(column(Literal("5")), column(Literal("5.0"), typed("6")), policy=SPARQL) == 0.0
    assert soft_f1(column(Literal("5")), column(Literal("5.0")), policy=SPARQL) == 0.0
    assert soft_f1(column(Literal("5"), typed("7")), column(typed("5"), Literal("7.0")), policy=SPARQL) == 1.0


TEXTS = [Literal("5"), Literal("5.0"), Literal("7")]
NUMBERS = [typed("5"), typed("7"), typed("5.0", "decimal"), typed("5.000001", "double")]
NUMERALS = st.sampled_from(TEXTS + NUMBERS)


def are_equal(cell, other, policy):
    """The rule by itself: what two cells are, whatever other cells there are."""
    if cell == other:
        return True
    if "" in (cell.datatype, other.datatype) and cell.datatype == other.datatype:
        return False
    if policy.rdf_terms == "strict" and cell.datatype != other.datatype:
        return False
    is_exact = "double" not in cell.datatype + other.datatype
    difference = abs(Decimal(cell.lexical) - Decimal(other.lexical))
    return difference == 0 if is_exact else difference <= Decimal("5.000001") * Decimal("1e-6")


def most_pairs(golds, others, close):
    """The most rows that can be paired, each with one that is equal to it."""
    if not golds:
        return 0
    paired = [
        1 + most_pairs(golds[1:], others[:n] + others[n + 1 :], close)
        for n, it in enumerate(others)
        if close(golds[0], it)
    ]
    return max([most_pairs(golds[1:], others, close), *paired])


@given(
    tables(NUMERALS, max_columns=2, max_rows=4),
    tables(NUMERALS, max_columns=2, max_rows=4),
    st.sampled_from([SPARQL, STRICT]),
)
def test_rows_match_as_an_oracle_matches_them_that_knows_only_the_rule(gold, predicted, policy):
    if not gold.rows or not predicted.rows or len(gold.columns) != len(predicted.columns):
        return

    def close(row, other):
        return all(are_equal(cell, its, policy) for cell, its in zip(row, other, strict=True))

    positional = Policy(text_numbers=True, rdf_terms=policy.rdf_terms, columns="positional")
    expected = 2 * most_pairs(list(gold.rows), list(predicted.rows), close) / (len(gold.rows) + len(predicted.rows))
    score = row_matching_f1(gold, predicted, policy=positional)

    rows = [*gold.rows, *predicted.rows]
    if all(close(x, z) for x, y, z in product(rows, repeat=3) if close(x, y) and close(y, z)):
        assert score == pytest.approx(expected, abs=1e-12)
    else:  # rows that are the same are paired first
        assert score <= expected + 1e-12
        assert score < 1.0 or expected == 1.0


@pytest.mark.parametrize(
    ("gold", "predicted"),
    [
        (typed("20.0", "decimal"), typed("20", "decimal")),
        (typed("01"), typed("1")),
        (typed("1e2", "double"), typed("100", "double")),
        (typed("1.0000001", "double"), typed("1.0000002", "double")),
        (typed("0.333333", "decimal"), typed("0.333333333333333333", "decimal")),
        (typed("true", "boolean"), typed("1", "boolean")),
        (Literal("a"), Literal("a", f"{XSD}string")),
        (Literal("a", "", "en"), Literal("a", "", "en")),
    ],
)
def test_strict_terms_of_one_datatype_are_equal_by_value_and_within_the_tolerance(gold, predicted):
    predicted = Literal(predicted.lexical, predicted.datatype.replace(f"{XSD}string", ""), predicted.language)

    assert equal(gold, predicted, STRICT)
    assert equal(predicted, gold, STRICT)


@pytest.mark.parametrize(
    ("gold", "predicted"),
    [
        (typed("20"), typed("20", "decimal")),
        (typed("20", "int"), typed("20")),
        (typed("20"), Literal("20")),
        (typed("1", "boolean"), typed("1")),
        (typed("20"), typed("21")),
        (typed("1000000"), typed("1000001")),
        (Literal("20"), Literal("20.0")),
        (Literal("a"), Literal("a", "", "en")),
        (Literal("a", "http://e/t"), Literal("a")),
        (Literal("http://e/a"), IRI("http://e/a")),
    ],
)
def test_strict_terms_of_other_datatypes_or_values_differ(gold, predicted):
    assert not equal(gold, predicted, STRICT)
    assert not equal(predicted, gold, STRICT)


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
