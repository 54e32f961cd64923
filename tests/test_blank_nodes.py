"""Blank nodes match up to renaming: answers are equal exactly where some renaming makes them equal."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise, permutations

import pytest
from samples import notes_on
from table_oracle import XSD, exactly

from pytest_queryeval.core.table import IRI, BlankNode, Literal, Policy, Table, TripleTerm
from pytest_queryeval.metrics import METRICS

DEFAULT = Policy()
LINK, A, B = IRI("http://e/link"), IRI("http://e/a"), Literal("b")
ONE, ONE_POINT_ZERO = Literal("1", f"{XSD}integer"), Literal("1.0", f"{XSD}decimal")
NODES = [BlankNode(label) for label in "abcd"]


def score(name, gold, predicted, policy=DEFAULT):
    return METRICS[name].function(gold, predicted, policy=policy)


def are_equal(gold, predicted, policy=DEFAULT):
    return score("execution_accuracy", gold, predicted, policy) == 1.0


# Small answers, against all renamings


def renamed(cell, names):
    if isinstance(cell, TripleTerm):
        return TripleTerm(*(renamed(part, names) for part in cell.parts))
    return names.get(cell, cell)


def key(cell):
    """The same for cells that are equal once blank nodes have their names."""
    if isinstance(cell, TripleTerm):
        return tuple(map(key, cell.parts))
    return exactly(round(cell, 5) if isinstance(cell, float) else cell)


def nodes_of(cells) -> Iterator[BlankNode]:
    for cell in cells:
        if isinstance(cell, TripleTerm):
            yield from nodes_of(cell.parts)
        elif isinstance(cell, BlankNode):
            yield cell


def rows_in_common(gold, predicted, policy):
    """The most rows that match under some renaming and some columns, and how many rows each answer has then."""
    counted = Counter if policy.duplicates == "count" and not gold.is_graph else set
    golds = counted(tuple(map(key, row)) for row in gold.rows)
    nodes = sorted({*nodes_of(cell for row in predicted.rows for cell in row)}, key=str)
    partners = sorted({*nodes_of(cell for row in gold.rows for cell in row)}, key=str)
    partners += [BlankNode(f"new {number}") for number in range(len(nodes))]
    for order in orders_of(gold, predicted, policy):
        for names in permutations(partners, len(nodes)):
            by_name = dict(zip(nodes, names, strict=True))
            rows = counted(tuple(key(renamed(row[place], by_name)) for place in order) for row in predicted.rows)
            common = Counter(golds) & Counter(rows)
            yield common.total(), Counter(golds).total(), Counter(rows).total()


def orders_of(gold, predicted, policy):
    width = len(gold.columns)
    if gold.is_graph or policy.columns == "positional":
        return [tuple(range(width))]
    if policy.columns == "by_name":
        return [tuple(map(predicted.columns.index, gold.columns))]
    return permutations(range(len(predicted.columns)), width)


def made_pair(chance, policy):
    """An answer of few cells, and the same with other labels, in another order, with cells and rows changed."""
    nodes = NODES[: chance.choice((1, 2, 3, 3))]
    cells = [*nodes * 3, A, B, ONE, ONE_POINT_ZERO, 2.0]
    cells += [2.0000001] * (policy.duplicates == "count")  # rows of near numbers are no duplicates
    cells += [TripleTerm(*(chance.choice([*nodes, A, LINK]) for _ in range(3))) for _ in range(2)]
    is_graph = chance.random() < 0.4
    width, height = 3 if is_graph else chance.choice((1, 2, 2, 3)), chance.choice((1, 2, 3, 4, 5))
    rows = [[chance.choice(cells) for _ in range(width)] for _ in range(height)]
    names = dict(zip(nodes, chance.sample([*NODES, BlankNode("x")], len(nodes)), strict=True))
    noise = chance.choice((0, 0, 0.1))
    others = [
        [renamed(chance.choice(cells) if chance.random() < noise else cell, names) for cell in row] for row in rows
    ]
    chance.shuffle(others)
    if chance.random() < 0.2:
        others = [row for row in others for _ in range(chance.choice((0, 1, 1, 2)))] or others
    columns = "abc"[:width]
    order = range(width) if is_graph else chance.sample(range(width), width)
    sides = (columns, rows), ([columns[place] for place in order], [[row[place] for place in order] for row in others])
    return [Table(columns=tuple(names), rows=[*map(tuple, rows)], is_graph=is_graph) for names, rows in sides]


@pytest.mark.parametrize("columns", ["any", "positional", "by_name"])
@pytest.mark.parametrize("duplicates", ["count", "ignore"])
def test_equal_means_equal_under_some_renaming(columns, duplicates):
    policy, verdicts = Policy(columns=columns, duplicates=duplicates), Counter()
    chance = random.Random(f"{columns} {duplicates}")
    for _ in range(100):
        gold, predicted = made_pair(chance, policy)
        tried = [*rows_in_common(gold, predicted, policy)]
        expected = any(common == n == m for common, n, m in tried)
        best = max(2 * common / (n + m) for common, n, m in tried)
        verdicts[expected] += 1

        assert are_equal(gold, predicted, policy) == expected, (gold, predicted)
        assert score("row_matching_f1", gold, predicted, policy) <= best + 1e-9, (gold, predicted)
    assert min(verdicts.values()) >= 20


# Larger graphs


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
    return Table(columns=("s", "p", "o"), rows=chance.sample(rows, len(rows)), is_graph=True)


TRIANGLES = both_ways(cycle(0, 1, 2) + cycle(3, 4, 5))
HEXAGON = both_ways(cycle(6, 7, 8, 9, 10, 11))
PRISM = TRIANGLES + both_ways([(0, 3), (1, 4), (2, 5)])
SHAPES = {
    "one link": [(0, 1)],
    "triangles and hexagon": TRIANGLES + HEXAGON,
    "prism": PRISM,
    "petersen": both_ways(cycle(*range(5)) + cycle(5, 7, 9, 6, 8) + [(n, n + 5) for n in range(5)]),
    "300 alike pairs": [(2 * n, 2 * n + 1) for n in range(300)],
    "hub with 300 alike leaves": [(0, n) for n in range(1, 301)],
    "ring of 200": cycle(*range(200)),
    "tree of 300": [((n - 1) // 2, n) for n in range(1, 300)],
    "grid": both_ways([(n, n + 1) for n in range(63) if n % 8 < 7] + [(n, n + 8) for n in range(56)]),
}


@pytest.mark.parametrize("edges", SHAPES.values(), ids=SHAPES)
def test_a_graph_equals_itself_under_other_labels_in_another_order(edges):
    sides = graph(edges, 1), graph(edges, 2)

    assert are_equal(*sides)
    assert notes_on(*sides) == []


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
    assert not are_equal(graph(edges), graph(others))


def test_a_graph_has_no_order_whatever_the_policy_says():
    policy = Policy(row_order="strict", columns="any")

    assert are_equal(graph(TRIANGLES), graph(TRIANGLES, 7), policy)


def test_no_budget_is_so_small_that_an_unfinished_search_seems_to_be_a_proof(monkeypatch):
    searches = "pytest_queryeval.comparison.blank_nodes"
    proven = []
    for budget in range(0, 400, 12):  # as many rows as the smaller parts have
        monkeypatch.setattr(f"{searches}.MAX_VISITS", budget)
        monkeypatch.setattr(f"{searches}._Search.__init__.__defaults__", (budget,))
        sides = graph(HEXAGON, 1), graph(HEXAGON, 2)
        if not notes_on(*sides):
            assert are_equal(*sides)
            proven.append(budget)

    assert 0 < proven[0] < proven[-1] == 396


def test_labels_that_say_the_same_keep_their_partners_where_tables_differ():
    gold = Table(columns=("node", "value"), rows=[*zip(NODES[:3], (1, 2, 3), strict=True)])
    predicted = Table(columns=("node", "value", "more"), rows=[(NODES[1], 2, 7), (NODES[0], 1, 8)])

    assert score("row_matching_f1", gold, predicted) == pytest.approx(2 * 2 / 5)


@pytest.mark.parametrize(
    ("columns", "policy"), [("som", Policy(columns="positional")), ("mos", Policy(columns="by_name"))]
)
def test_names_follow_the_columns_that_are_compared(columns, policy):
    gold = Table(columns=("s", "o"), rows=[(NODES[0], NODES[1]), (NODES[0], A), (NODES[1], A)])
    turned = [{"s": NODES[2], "o": A}, {"s": NODES[3], "o": A}, {"s": NODES[3], "o": NODES[2]}]
    rows = [tuple((row | {"m": number})[name] for name in columns) for number, row in enumerate(turned)]

    assert score("row_matching_f1", gold, Table(columns=tuple(columns), rows=rows), policy) == 1.0
