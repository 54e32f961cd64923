"""The search for an assignment of rows, on matrices; the only module that needs numpy and scipy.

The soft F1 is a ratio of two sums over the pairs, so no single assignment problem gives the best one. Dinkelbach's
method does (Management Science 13, 1967): for a guess L of the ratio, the pairs with the greatest
(2 - L)·found + L·met are the best ones if their own ratio is L; otherwise that ratio is the next guess, and it grows
until it is the best. Where no row holds a value twice, found and met are the same, and the first pairs are the best.
All weights are whole numbers, so that the order of rows does not matter.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import chain
from typing import Any, TypeAlias

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_bipartite_matching

from pytest_queryeval.comparison.row_cells import Codes, RowCells
from pytest_queryeval.comparison.soft import Shape, Sums

Matrix: TypeAlias = Any  # a sparse matrix of scipy, whose stubs differ from release to release
Pairs: TypeAlias = list[tuple[int, int]]
VISITS = 1_000_000  # pairs of rows with a cell in common that the greedy match looks at, for cells of each side


def best_f1(gold: RowCells, predicted: RowCells, same: Sums, shape: Shape) -> Fraction:
    """The best F1 of one-to-one pairs of these rows, given the sums of the rows that are paired already."""
    found = _common(gold.reach, predicted.cells).toarray()
    met = _common(predicted.reach, gold.cells).toarray().T
    guess, best = Fraction(1), Fraction(-1)
    while True:
        weights = (2 * guess.denominator - guess.numerator) * found + guess.numerator * met
        pairs = linear_sum_assignment(weights, maximize=True)
        guess = shape.f1(same + Sums(found=int(found[pairs].sum()), met=int(met[pairs].sum())))
        if guess <= best:
            return best
        best = guess


def greedy_pairs(gold: RowCells, predicted: RowCells) -> Pairs:
    """Pairs of rows with the most cells in common first.

    Cells that too many rows have in common are left out at first. Of the rows without partner, those with the same such
    cells are paired next, and at last those that share one, the rarer the cell the earlier.
    """
    rare = _rare(gold.reach, predicted.cells), _rare(predicted.reach, gold.cells)
    both = _common(gold.reach, predicted.cells, rare[0]) + _common(predicted.reach, gold.cells, rare[1]).T
    pairs = _taken(both.tocoo())
    used_gold, used_predicted = {left for left, _ in pairs}, {right for _, right in pairs}
    golds = {at: reach for at, reach in enumerate(gold.reach) if at not in used_gold}
    others = {at: cells for at, cells in enumerate(predicted.cells) if at not in used_predicted}
    return pairs + _by_frequent_cells(golds, others)


def most_pairs(fits: Sequence[Codes], places: int) -> Pairs:
    """The most one-to-one pairs of a row with one of the places that `fits` lists for it, numbered from 0."""
    graph = _counts(fits, {place: place for place in range(places)})
    found = maximum_bipartite_matching(graph, perm_type="column").tolist()
    return [(row, place) for row, place in enumerate(found) if place >= 0]


def _common(reach: Sequence[Codes], cells: Sequence[Codes], only: Collection[int] | None = None) -> Matrix:
    """How many cells of each row of `cells` (columns) each row of `reach` (rows) holds."""
    codes = set(chain.from_iterable(reach)).intersection(chain.from_iterable(cells)) if only is None else only
    places = {code: place for place, code in enumerate(codes)}
    return _counts(reach, places) @ _counts(cells, places).T


def _counts(rows: Sequence[Codes], places: dict[int, int]) -> Matrix:
    """A row for each row, and how often it holds the code of each place."""
    entries = [(at, places[code]) for at, row in enumerate(rows) for code in row if code in places]
    at = np.array(entries, dtype=np.int64).reshape(-1, 2)
    ones = np.ones(len(entries), dtype=np.int64)
    return csr_array((ones, (at[:, 0], at[:, 1])), shape=(len(rows), len(places)))


def _visits(reach: Sequence[Codes], cells: Sequence[Codes]) -> dict[int, int]:
    """The pairs of rows that have each common code in common, the rarest code first."""
    here, there = (Counter(chain.from_iterable(rows)) for rows in (reach, cells))
    return dict(sorted(((code, here[code] * there[code]) for code in here if code in there), key=lambda both: both[1]))


def _rare(reach: Sequence[Codes], cells: Sequence[Codes]) -> set[int]:
    rare, left = set(), VISITS
    for code, visits in _visits(reach, cells).items():
        left -= visits
        if left < 0:
            break
        rare.add(code)
    return rare


def _taken(common: Matrix) -> Pairs:
    """Each row once, pairs with the most in common first."""
    order = np.argsort(-common.data, kind="stable")
    free_gold, free_predicted = bytearray(b"\1") * common.shape[0], bytearray(b"\1") * common.shape[1]
    pairs = []
    for left, right in zip(common.row[order].tolist(), common.col[order].tolist(), strict=True):
        if free_gold[left] and free_predicted[right]:
            free_gold[left] = free_predicted[right] = 0
            pairs.append((left, right))
    return pairs


def _by_frequent_cells(golds: Mapping[int, Codes], others: Mapping[int, Codes]) -> Pairs:
    frequent = _visits(list(golds.values()), list(others.values()))
    gold_keys, keys = ({at: [frozenset(frequent.keys() & row)] for at, row in side.items()} for side in (golds, others))
    longest = sorted({held for (held,) in gold_keys.values() if held}, key=len, reverse=True)
    same = _by_shared_keys(gold_keys, keys, longest)
    used_gold, used = {left for left, _ in same}, {right for _, right in same}
    rest = {at: row for at, row in golds.items() if at not in used_gold}
    return same + _by_shared_keys(rest, {at: row for at, row in others.items() if at not in used}, frequent)


def _by_shared_keys(
    golds: Mapping[int, Iterable[Hashable]], others: Mapping[int, Iterable[Hashable]], keys: Iterable[Hashable]
) -> Pairs:
    """Pairs of rows that share a key; keys that come earlier go first."""
    gold_holders, holders = _holders(golds), _holders(others)
    free_gold, free = set(golds), set(others)
    pairs: Pairs = []
    for key in keys:
        here = [at for at in gold_holders[key] if at in free_gold]
        there = [at for at in holders[key] if at in free]
        new = list(zip(here, there, strict=False))
        free_gold.difference_update(left for left, _ in new)
        free.difference_update(right for _, right in new)
        pairs += new
    return pairs


def _holders(rows: Mapping[int, Iterable[Hashable]]) -> defaultdict[Hashable, list[int]]:
    holders: defaultdict[Hashable, list[int]] = defaultdict(list)
    for at, keys in rows.items():
        for key in set(keys):
            holders[key].append(at)
    return holders
