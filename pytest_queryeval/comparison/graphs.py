"""Assignments and connected components of small graphs; a greedy pairing of rows by the cells that they have in common.

Components, and assignments of up to MAX_EXHAUSTIVE rows and columns, are found in plain Python, since scipy takes up to
a second to load. Larger assignments are solved by scipy, whose sparse matrices count the cells in common. Nothing else
in the package solves such problems.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from itertools import accumulate, chain, product
from operator import itemgetter
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

if TYPE_CHECKING:
    from pytest_queryeval.comparison.row_cells import Tokens

MAX_EXHAUSTIVE = 6
Node = TypeVar("Node", bound=Hashable)
Matrix: TypeAlias = Any  # a sparse matrix of scipy, whose stubs differ from release to release
Pairs: TypeAlias = list[tuple[int, int]]
MAX_VISITS = 1_000_000  # pairs of rows with a cell in common that the greedy match looks at


def best_assignment(weights: Sequence[Sequence[float]]) -> list[tuple[int, int]]:
    """Return pairs of a row and a column of the greatest sum, each used once and as many as there can be.

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
        return sorted((row, column) for column, row in enumerate(_tried(list(zip(*weights, strict=True)))))
    return list(enumerate(_tried(weights)))


def steps(rows: int, columns: int) -> int:
    """Return the time that `best_assignment` takes, in steps of a loop, roughly; for rows <= columns."""
    return rows * columns * (2**rows if columns <= MAX_EXHAUSTIVE else rows)


def most_pairs(fits: Sequence[Sequence[int]], places: int) -> list[tuple[int, int]]:
    """Return the most one-to-one pairs of a row with one of the places that `fits` lists for it, numbered from 0.

    >>> most_pairs([(0, 1), (0,)], 2)
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


def _tried(weights: Sequence[Sequence[float]]) -> list[int]:
    """Return the column of each row, by extending the best assignment to each set of columns row by row."""
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


def connected(links: Iterable[tuple[Node, Node]]) -> dict[Node, Node]:
    """Return for each node one node of its component, the same for all of them (union-find with path halving).

    >>> connected([(1, 2), (3, 3), (4, 2)])
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


def overlap(reach: Sequence[Tokens], cells: Sequence[Tokens], only: Collection[Hashable] | None = None) -> Matrix:
    """Return how many cells each gold row (rows), given by its reach, shares with each predicted row (columns)."""
    tokens = set(chain.from_iterable(reach)).intersection(chain.from_iterable(cells)) if only is None else only
    places = {token: place for place, token in enumerate(tokens)}
    return _counts(reach, places) @ _counts(cells, places).T


def greedy_pairs(reach: Sequence[Tokens], cells: Sequence[Tokens]) -> Pairs:
    """Pair rows, those with the most cells in common first.

    Cells that too many rows have in common are left out at first. Then rows without partner are paired that have the
    same frequent cells, and at last those that share one frequent cell, the rarer the earlier.
    """
    import numpy as np

    visits = _visits(reach, cells)
    rare = {token for token, total in zip(visits, accumulate(visits.values()), strict=True) if total <= MAX_VISITS}
    common = overlap(reach, cells, rare).tocoo()
    order = np.argsort(-common.data, kind="stable")
    free_gold_rows, free_rows = bytearray(b"\1") * common.shape[0], bytearray(b"\1") * common.shape[1]
    pairs: Pairs = []
    for left, right in zip(common.row[order].tolist(), common.col[order].tolist(), strict=True):
        if free_gold_rows[left] and free_rows[right]:
            free_gold_rows[left] = free_rows[right] = 0
            pairs.append((left, right))
    used_gold, used_predicted = {left for left, _ in pairs}, {right for _, right in pairs}
    free_gold = {at: row for at, row in enumerate(reach) if at not in used_gold}
    free_predicted = {at: row for at, row in enumerate(cells) if at not in used_predicted}
    return pairs + _by_frequent_cells(free_gold, free_predicted)


def _counts(rows: Sequence[Tokens], places: dict[Hashable, int]) -> Matrix:
    """Return how often each row (rows) holds the token of each place (columns)."""
    import numpy as np
    from scipy.sparse import csr_array

    entries = [(at, places[token]) for at, row in enumerate(rows) for token in row if token in places]
    at = np.array(entries, dtype=np.int64).reshape(-1, 2)
    ones = np.ones(len(entries), dtype=np.int64)
    return csr_array((ones, (at[:, 0], at[:, 1])), shape=(len(rows), len(places)))


def _visits(reach: Sequence[Tokens], cells: Sequence[Tokens]) -> dict[Hashable, int]:
    """Return the number of pairs of rows that share each common token, the rarest token first."""
    gold_counts, predicted_counts = (Counter(chain.from_iterable(rows)) for rows in (reach, cells))
    visits = {token: n * predicted_counts[token] for token, n in gold_counts.items() if token in predicted_counts}
    return dict(sorted(visits.items(), key=itemgetter(1)))


def _by_frequent_cells(gold: Mapping[int, Tokens], predicted: Mapping[int, Tokens]) -> Pairs:
    frequent = _visits(list(gold.values()), list(predicted.values()))
    gold_keys, keys = (
        {at: [frozenset(frequent.keys() & row)] for at, row in side.items()} for side in (gold, predicted)
    )
    longest = sorted({cells for (cells,) in gold_keys.values() if cells}, key=len, reverse=True)
    same = _by_shared_keys(gold_keys, keys, longest)
    used_gold, used_predicted = {left for left, _ in same}, {right for _, right in same}
    free_gold = {at: row for at, row in gold.items() if at not in used_gold}
    return same + _by_shared_keys(
        free_gold, {at: row for at, row in predicted.items() if at not in used_predicted}, frequent
    )


def _by_shared_keys(
    gold: Mapping[int, Iterable[Hashable]], predicted: Mapping[int, Iterable[Hashable]], keys: Iterable[Hashable]
) -> Pairs:
    """Pair rows that share a key, in the order of `keys`."""
    gold_holders, holders = _holders(gold), _holders(predicted)
    free_gold, free_predicted = set(gold), set(predicted)
    pairs: Pairs = []
    for key in keys:
        gold_rows = [at for at in gold_holders[key] if at in free_gold]
        predicted_rows = [at for at in holders[key] if at in free_predicted]
        new = list(zip(gold_rows, predicted_rows, strict=False))
        free_gold.difference_update(left for left, _ in new)
        free_predicted.difference_update(right for _, right in new)
        pairs += new
    return pairs


def _holders(rows: Mapping[int, Iterable[Hashable]]) -> defaultdict[Hashable, list[int]]:
    holders: defaultdict[Hashable, list[int]] = defaultdict(list)
    for at, keys in rows.items():
        for key in set(keys):
            holders[key].append(at)
    return holders
