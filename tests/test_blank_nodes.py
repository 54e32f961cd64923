"""Blank nodes match up to renaming: graphs and tables are equal exactly where some renaming makes them equal."""

import random
from itertools import pairwise, permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_queryeval.comparison.pairing import TablePair
from pytest_queryeval.core.table import IRI, BlankNode, Literal, Policy, Table, TripleTerm
from pytest_queryeval.languages.sparql import graph_table
from pytest_queryeval.metrics.building_qa import row_matching_f1
from pytest_queryeval.metrics.execution_accuracy import execution_accuracy

LINK = IRI("http://e/link")
A, B = IRI("http://e/a"), Literal("b")


def cycle(*nodes):
    return [*pairwise(nodes), (nodes[-1], nodes[0])]


def both_ways(edges):
    return [*edges, *((there, here) for here, there in edges)]


def graph(edges, seed=0):
    """The edges as triples between blank nodes, which get other labels and another order with each seed."""
    chance = random.Random(seed)
    nodes = sorted({node for edge in edges for node in edge})
    labels = dict(zip(nodes, chance.sample(range(len(nodes)), len(nodes)), strict=True))
    rows = [(BlankNode(f"n{labels[here]}"), LINK, BlankNode(f"n{labels[there]}")) for here, there in edges]
    return graph_table(chance.sample(rows, len(rows)))


TRIANGLES = both_ways(cycle(0, 1, 2) + cycle(3, 4, 5))
HEXAGON = both_ways(cycle(6, 7, 8, 9, 10, 11))
PRISM = TRIANGLES + both_ways([(0, 3), (1, 4), (2, 5)])
PETERSEN = both_ways(cycle(*range(5)) + cycle(5, 7, 9, 6, 8) + [(n, n + 5) for n in range(5)])
SHAPES = {
    "one link": [(0, 1)],
    "triangles": TRIANGLES,
    "triangles and hexagon": TRIANGLES + HEXAGON,
    "prism": PRISM,
    "petersen": PETERSEN,
    "300 alike pairs": [(2 * n, 2 * n + 1) for n in range(300)],
    "hub with 500 alike leaves": [(0, n) for n in range(1, 501)],
    "ring of 200": cycle(*range(200)),
    "tree of 300": [((n - 1) // 2, n) for n in range(1, 300)],
    "grid": both_ways([(n, n + 1) for n in range(63) if n % 8 < 7] + [(n, n + 8) for n in range(56)]),
}


@pytest.mark.long
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("edges", SHAPES.values(), ids=SHAPES)
def test_a_graph_equals_itself_under_other_labels_in_another_order(edges, seed):
    pair = TablePair(graph(edges, seed), graph(edges, seed + 100), Policy())

    assert pair.row_f1(pair.alignment) == 1
    assert not pair.is_unproven


@pytest.mark.parametrize(
    ("edges", "others"),
    [
        (TRIANGLES, HEXAGON),
        (TRIANGLES + HEXAGON, TRIANGLES + both_ways(cycle(6, 7, 8) + cycle(9, 10, 11))),
        (PRISM, both_ways([(here, there) for here in range(3) for there in range(3, 6)])),
        ([(0, 1), (1, 2)], [(0, 1), (2, 1)]),
        ([(0, 1), (1, 0), (2, 2)], [(0, 0), (1, 1), (2, 0)]),
    ],
)
def test_graphs_of_other_shapes_differ(edges, others):
    assert execution_accuracy(graph(edges), graph(others)) == 0


def test_subject_and_object_do_not_swap():
    a, b, value = BlankNode("a"), BlankNode("b"), IRI("http://e/v")

    assert execution_accuracy(graph_table([(a, LINK, value)]), graph_table([(value, LINK, b)])) == 0
    assert execution_accuracy(graph_table([(a, LINK, b)]), graph_table([(b, LINK, a)])) == 1


def test_a_graph_has_no_order_whatever_the_policy_says():
    a, b = IRI("http://e/a"), IRI("http://e/b")
    policy = Policy(row_order="strict", columns="any")

    assert execution_accuracy(graph_table([(a, LINK, b)]), graph_table([(b, LINK, a)]), policy=policy) == 0
    assert execution_accuracy(graph(TRIANGLES), graph(TRIANGLES, 7), policy=policy) == 1


@pytest.mark.long
def test_a_long_chain_ends_at_its_budget():
    pair = TablePair(graph([(n, n + 1) for n in range(3_000)]), graph([(n, n + 1) for n in range(2_999)]), Policy())

    assert pair.is_unproven
    assert pair.row_f1(pair.alignment) < 1


def test_no_budget_is_so_small_that_an_unfinished_search_seems_to_be_a_proof(monkeypatch):
    proven_budgets = []
    for budget in range(0, 400, 12):  # as many rows as the smaller parts have
        monkeypatch.setattr("pytest_queryeval.comparison.blank_nodes.MAX_VISITS", budget)
        monkeypatch.setattr("pytest_queryeval.comparison.blank_nodes._Search.__init__.__defaults__", (budget,))
        pair = TablePair(graph(HEXAGON, 1), graph(HEXAGON, 2), Policy())
        if not pair.is_unproven:
            assert pair.row_f1(pair.alignment) == 1
            proven_budgets.append(budget)

    assert 0 < proven_budgets[0] < proven_budgets[-1] == 396


def test_labels_that_say_the_same_keep_their_partners_where_tables_differ():
    gold = Table(columns=("node", "value"), rows=[(BlankNode("a"), 1), (BlankNode("b"), 2), (BlankNode("c"), 3)])
    predicted = Table(columns=("node", "value", "more"), rows=[(BlankNode("b"), 2, 7), (BlankNode("a"), 1, 8)])

    assert row_matching_f1(gold, predicted) == pytest.approx(2 * 2 / 5)


def test_a_node_stands_for_the_same_thing_in_the_whole_answer():
    gold = Table(columns=("x", "y"), rows=[(BlankNode("a"), 1), (BlankNode("a"), 2)])
    split = Table(columns=("x", "y"), rows=[(BlankNode("a"), 1), (BlankNode("b"), 2)])

    assert execution_accuracy(gold, split) == 0
    assert execution_accuracy(split, gold) == 0


def isomorphic(edges, others):
    """By trying every renaming."""
    nodes = sorted({node for edge in (*edges, *others) for node in edge})
    renamings = (dict(zip(nodes, order, strict=True)) for order in permutations(nodes))
    return any({(names[here], names[there]) for here, there in edges} == others for names in renamings)


EDGES = st.sets(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=8)


@given(edges=EDGES, others=EDGES, seed=st.integers(0, 9))
def test_equal_means_isomorphic(edges, others, seed):
    assert execution_accuracy(graph(sorted(edges), seed), graph(sorted(others))) == isomorphic(edges, others)
    assert execution_accuracy(graph(sorted(edges), seed), graph(sorted(edges))) == 1


@given(edges=EDGES, others=EDGES, seed=st.integers(0, 9))
def test_equal_selections_of_nodes_are_isomorphic_in_either_order_of_columns(edges, others, seed):
    def selection(edges, columns=("s", "p", "o")):
        rows = [dict(zip("spo", row, strict=True)) for row in graph(sorted(edges), seed).rows]
        return Table(columns=columns, rows=[tuple(row[column] for column in columns) for row in rows])

    turned = {(there, here) for here, there in others}
    is_equal = isomorphic(edges, others) or isomorphic(edges, turned)
    assert execution_accuracy(selection(edges), selection(others, ("o", "s", "p"))) == is_equal


@pytest.mark.parametrize("columns", list(permutations("spo")), ids="".join)
def test_who_links_to_whom_is_known_by_the_columns_whatever_their_order(columns):
    gold = Table(
        columns=("s", "p", "o"),
        rows=[(BlankNode("a"), LINK, BlankNode("b")), (BlankNode("a"), A, A), (BlankNode("b"), A, A)],
    )
    rows = [{"s": BlankNode("y"), "p": A, "o": A}, {"s": BlankNode("x"), "p": A, "o": A}]
    turned = [
        {"s": BlankNode("y"), "p": LINK, "o": BlankNode("x")},
        {"s": BlankNode("x"), "p": LINK, "o": BlankNode("y")},
    ]

    for link in turned:
        predicted = Table(columns=columns, rows=[tuple(row[column] for column in columns) for row in (*rows, link)])
        assert execution_accuracy(gold, predicted) == 1


LINKED = [(BlankNode("a"), BlankNode("b")), (BlankNode("a"), A), (BlankNode("b"), A)]
RELINKED = [(BlankNode("x"), A), (BlankNode("y"), A), (BlankNode("y"), BlankNode("x"))]


@pytest.mark.parametrize(
    ("columns", "rows", "policy"),
    [
        (("s", "o"), RELINKED, Policy(columns="by_name")),
        (("o", "s"), [(o, s) for s, o in RELINKED], Policy(columns="by_name")),
        (("o", "s"), [(BlankNode("y"), BlankNode("x"))], Policy(columns="by_name")),
        (("s", "o", "more"), [(s, o, n) for n, (s, o) in enumerate(RELINKED)], Policy(columns="positional")),
        (("s", "o"), RELINKED * 2, Policy(duplicates="ignore")),
    ],
    ids=["by name", "by name, turned", "one link, turned", "more columns", "repeated rows"],
)
def test_names_follow_the_columns_and_rows_that_the_policy_compares(columns, rows, policy):
    gold = Table(columns=("s", "o"), rows=LINKED if len(rows) > 1 else LINKED[:1])

    pair = TablePair(gold, Table(columns=columns, rows=rows), policy)

    assert pair.alignment.matched == len(gold.rows)


def said(here, there):
    """A triple term between two nodes, numbers being labels of blank nodes."""
    return TripleTerm(*(BlankNode(f"n{node}") if isinstance(node, int) else node for node in (here, LINK, there)))


TERMS = {
    "a node within a term alone": ([[said(0, A)], [said(1, B)]], [[said(5, B)], [said(4, A)]], True),
    "one node within two terms": ([[said(0, A)], [said(0, B)]], [[said(5, A)], [said(5, B)]], True),
    "two nodes instead of one": ([[said(0, A)], [said(0, B)]], [[said(5, A)], [said(4, B)]], False),
    "a node inside and outside": ([[BlankNode("n0"), said(0, A)]], [[BlankNode("n7"), said(7, A)]], True),
    "another node outside": ([[BlankNode("n0"), said(0, A)]], [[BlankNode("n7"), said(8, A)]], False),
    "subject and object differ": ([[BlankNode("n0"), said(0, 1)]], [[BlankNode("n7"), said(8, 7)]], False),
    "subject and object the same": ([[said(0, 0)]], [[said(1, 2)]], False),
    "terms within terms": ([[said(said(0, A), 0)]], [[said(said(3, A), 3)]], True),
    "other nodes within terms within terms": ([[said(said(0, A), 0)]], [[said(said(3, A), 4)]], False),
    "no nodes": ([[said(A, B)]], [[said(A, B)]], True),
    "other terms": ([[said(A, B)]], [[said(B, A)]], False),
    "numbers by value": (
        [[said(0, Literal("1", "http://www.w3.org/2001/XMLSchema#integer"))]],
        [[said(1, Literal("1.0", "http://www.w3.org/2001/XMLSchema#decimal"))]],
        True,
    ),
    "a ring": (
        [[said(n, (n + 1) % 6)] for n in range(6)],
        [[said(10 + (n + 1) % 6, 10 + n)] for n in range(6)],
        True,
    ),
    "two rings": (
        [[said(n, (n + 1) % 6)] for n in range(6)],
        [[said(n, (n + 1) % 3)] for n in range(3)] + [[said(3 + n, 3 + (n + 1) % 3)] for n in range(3)],
        False,
    ),
}


@pytest.mark.parametrize(("gold", "predicted", "equal"), TERMS.values(), ids=TERMS)
@pytest.mark.parametrize("is_graph", [False, True])
def test_blank_nodes_within_triple_terms_are_renamed_consistently(gold, predicted, equal, is_graph):
    def answer(rows):
        if is_graph:
            return graph_table([(row[0] if len(row) > 1 else A, LINK, row[-1]) for row in rows])
        return Table(columns=("x", "y")[: len(rows[0])], rows=[tuple(row) for row in rows])

    assert (execution_accuracy(answer(gold), answer(predicted)) == 1.0) is equal
    assert (execution_accuracy(answer(predicted), answer(gold)) == 1.0) is equal
