"""Assignments and connected components of small graphs.

Components, and assignments of up to MAX_EXHAUSTIVE rows and columns, are found in plain Python, since scipy takes up to
a second to load. Larger assignments are solved by scipy. Nothing else in the package solves such problems.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from itertools import chain, product
from typing import TypeVar

MAX_EXHAUSTIVE = 6
Node = TypeVar("Node", bound=Hashable)


def best_assignment(weights: Sequence[Sequence[float]]) -> list[tuple[int, int]]:
    """Return pairs of a row and a column with the greatest sum of weights, as many as possible.

    No row or column is used twice.

    >>> best_assignment([[3, 2, 0], [3, 0, 0]])
    [(0, 1), (1, 0)]
    """
    rows, columns = len(weights), len(weights[0]) if len(weights) else 0
    if min(rows, columns) == 1:
        return [max(product(range(rows), range(columns)), key=lambda cell: weights[cell[0]][cell[1]])]
    if max(rows, columns) > MAX_EXHAUSTIVE:
        from scipy.optimize import linear_sum_assignment

        solved = linear_sum_assignment(weights, maximize=True)
        return list(zip(*(side.tolist() for side in solved), strict=True))
    if rows > columns:
        return sorted((row, column) for column, row in enumerate(_best_columns(list(zip(*weights, strict=True)))))
    return list(enumerate(_best_columns(weights)))


def maximum_matching(fits: Sequence[Sequence[int]], places: int) -> list[tuple[int, int]]:
    """Return as many pairs of a row and a place as possible, both numbered from 0; no row or place is used twice.

    `fits` lists, for each row, the places that it may be paired with; `places` is their number.

    >>> maximum_matching([(0, 1), (0,)], 2)
    [(0, 1), (1, 0)]
    """
    if max(len(fits), places) <= MAX_EXHAUSTIVE:
        weights = [[int(place in row) for place in range(places)] for row in fits]
        return [(row, place) for row, place in best_assignment(weights) if weights[row][place]]
    import numpy as np
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import maximum_bipartite_matching

    ends = np.cumsum([0, *map(len, fits)])
    graph = csr_array((np.ones(ends[-1]), list(chain.from_iterable(fits)), ends), shape=(len(fits), places))
    places_of_rows = maximum_bipartite_matching(graph, perm_type="column").tolist()
    return [(row, place) for row, place in enumerate(places_of_rows) if place >= 0]


def _best_columns(weights: Sequence[Sequence[float]]) -> list[int]:
    """Return the column of each row in the assignment with the greatest sum.

    There are at least as many columns as rows. The best assignment for each set of used columns is extended row by row.
    """
    best: dict[int, tuple[float, tuple[int, ...]]] = {0: (0, ())}
    for row in weights:
        grown: dict[int, tuple[float, tuple[int, ...]]] = {}
        for columns_used, (total, columns) in best.items():
            for column, weight in enumerate(row):
                new_columns_used = columns_used | 1 << column
                if new_columns_used != columns_used and (
                    new_columns_used not in grown or total + weight > grown[new_columns_used][0]
                ):
                    grown[new_columns_used] = total + weight, (*columns, column)
        best = grown
    return list(max(best.values(), key=lambda assigned: assigned[0])[1])


def component_representatives(links: Iterable[tuple[Node, Node]]) -> dict[Node, Node]:
    """Return for each node in `links` a node of its connected component, the same node for the whole component.

    The algorithm is union-find with path halving.

    >>> component_representatives([(1, 2), (3, 3), (4, 2)])
    {1: 4, 2: 4, 3: 3, 4: 4}
    """
    head: dict[Node, Node] = {}

    def root(node: Node) -> Node:
        while head.setdefault(node, node) != node:
            head[node] = head[head[node]]
            node = head[node]
        return node

    for node, neighbour in links:
        head[root(neighbour)] = root(node)
    return {node: root(node) for node in list(head)}
