"""The one-to-one pairs of gold rows and predicted rows with the most cells in common, and so the best soft F1."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

from pytest_queryeval.comparison.assignment import MAX_EXHAUSTIVE, best_assignment
from pytest_queryeval.comparison.row_cells import RowCells, Tokens

MAX_VISITS = 200_000  # pairs of rows with a cell in common that are looked at one by one
MAX_MATRIX = 1_000_000  # gold rows times predicted rows that are assigned exactly; past it, rows are paired greedily


@dataclass(frozen=True, slots=True, kw_only=True)
class Paired:
    """The number of cells that paired rows have in common; `proven` where no other one-to-one pairs have more."""

    common: int
    proven: bool


def pair_rows(gold: RowCells, predicted: Sequence[Tokens]) -> Paired:
    """Pair rows with the same cells, in any order, and then the rest so that they have the most in common.

    Pairing rows of the same cells first loses nothing: what two other rows would lose by it, they have in common. In
    most answers each of the other rows can then have the partner that it shares most with. If not, they are assigned
    exactly, up to MAX_MATRIX possible pairs.
    """
    same, gold, predicted = _without_same(gold, predicted)
    gold, predicted = _with_partners(gold, predicted)
    if not predicted:
        return Paired(common=same, proven=True)
    sizes = len(gold.cells), len(predicted)
    if max(sizes) <= MAX_EXHAUSTIVE or min(sizes) == 1:
        weights = [common_cells(reach, predicted) for reach in gold.reach]
        return Paired(common=same + sum(weights[left][right] for left, right in best_assignment(weights)), proven=True)
    if (most_common := _all_that_is_wanted(gold.reach, predicted)) is not None:
        return Paired(common=same + most_common, proven=True)
    from pytest_queryeval.comparison import row_overlap  # imported late: scipy takes up to a second to load

    if sizes[0] * sizes[1] <= MAX_MATRIX:
        matrix = row_overlap.overlap(gold.reach, predicted).toarray()
        return Paired(common=same + sum(int(matrix[pair]) for pair in best_assignment(matrix)), proven=True)
    pairs = row_overlap.greedy_pairs(gold.reach, predicted)
    common = sum(common_cells(gold.reach[left], [predicted[right]])[0] for left, right in pairs)
    return Paired(common=same + common, proven=common == _max_common(gold, predicted))


def common_cells(reach: Tokens, rows: Iterable[Tokens]) -> list[int]:
    """Return how many cells a gold row has in common with each of the predicted rows."""
    return [sum(map(set(row).__contains__, reach)) for row in rows]


def _all_that_is_wanted(reach: Sequence[Tokens], predicted: Sequence[Tokens]) -> int | None:
    """Pair each row of the smaller side with one of those that it has the most cells in common with.

    Return the number of these cells, more than which no pairs have in common; None where some row finds no such row
    free, or past MAX_VISITS.
    """
    holders: defaultdict[object, list[int]] = defaultdict(list)
    for right, row in enumerate(predicted):
        for token in row:
            holders[token].append(right)
    if sum(len(holders.get(token, ())) for row in reach for token in row) > MAX_VISITS:
        return None
    common = [Counter(chain.from_iterable(holders.get(token, ()) for token in row)) for row in reach]
    if len(common) > len(predicted):
        golds, common = common, [Counter() for _ in predicted]
        for left, shared in enumerate(golds):
            for right, cells in shared.items():
                common[right][left] = cells
    taken, total = set[int](), 0
    for shared in common:
        most = max(shared.values())
        partner = next((row for row, cells in shared.items() if cells == most and row not in taken), None)
        if partner is None:
            return None
        taken.add(partner)
        total += most
    return total


def _without_same(gold: RowCells, predicted: Sequence[Tokens]) -> tuple[int, RowCells, list[Tokens]]:
    """Pair rows of the same cells one to one; return the number of their cells, and the rows that are left."""
    waiting: defaultdict[frozenset[object], list[int]] = defaultdict(list)
    for position in reversed(range(len(predicted))):
        waiting[frozenset(predicted[position])].append(position)
    left, paired = [], 0
    for position, cells in enumerate(gold.cells):
        if partners := waiting.get(frozenset(cells)):
            partners.pop()
            paired += gold.width
        else:
            left.append(position)
    return paired, gold.only(left), [predicted[at] for at in sorted(chain.from_iterable(waiting.values()))]


def _with_partners(gold: RowCells, predicted: Sequence[Tokens]) -> tuple[RowCells, list[Tokens]]:
    """Return the rows that share a cell with some row of the other side; others add nothing in any pair."""
    there, reached = set(chain.from_iterable(predicted)), set(chain.from_iterable(gold.reach))
    touching = [at for at, reach in enumerate(gold.reach) if not there.isdisjoint(reach)]
    return gold.only(touching), [row for row in predicted if not reached.isdisjoint(row)]


def _max_common(gold: RowCells, predicted: Sequence[Tokens]) -> int | None:
    """Return an upper bound: each row shares all that it shares with any other; None where that is not known."""
    if gold.reach is not gold.cells:
        return None
    pairs = min(len(gold.cells), len(predicted))
    bounds = []
    for rows, partners in ((gold.cells, predicted), (predicted, gold.cells)):
        there = set(chain.from_iterable(partners))
        shared = sorted((sum(map(there.__contains__, row)) for row in rows), reverse=True)
        bounds.append(sum(shared[:pairs]))
    return min(bounds)
