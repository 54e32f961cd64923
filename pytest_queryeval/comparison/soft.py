"""The soft F1 of paired rows: how many cells of a row its partner holds, in any column.

With w gold columns and b predicted columns, p counts the predicted cells that their partner holds, and g the gold cells
that their partner holds. A pair adds p/w to tp, (b - p)/w to fp and (w - g)/w to fn, a row without partner 1 to fp or
fn. So for k pairs of n gold and m predicted rows, with the sums of p and g over all pairs,

    F1 = 2tp / (2tp + fp + fn) = 2p / (p - g + k·(b + w) + |n - m|·w)
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable
from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class Sums:
    """Cells of paired rows that the partner holds, in any column."""

    predicted_cells: int
    gold_cells: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """The sizes that the F1 needs beside the sums: n gold and m predicted rows of w gold and b predicted columns."""

    n: int
    m: int
    w: int
    b: int

    def f1(self, sums: Sums) -> Fraction:
        """Return the F1; 1 where there is nothing to find and nothing wrong, as without rows on both sides."""
        lone = abs(self.n - self.m) * max(self.w, 1)
        total = sums.predicted_cells - sums.gold_cells + min(self.n, self.m) * (self.b + self.w) + lone
        return Fraction(2 * sums.predicted_cells, total) if total else Fraction(1)


def sums_by_position(golds: Collection[Collection[Hashable]], predicted: Collection[Collection[Hashable]]) -> Sums:
    """Compare the i-th gold row with the i-th predicted row; rows without partner count nothing."""
    pairs = list(zip(golds, predicted, strict=False))
    return Sums(
        predicted_cells=sum(held_by(gold_row, predicted_row) for gold_row, predicted_row in pairs),
        gold_cells=sum(held_by(predicted_row, gold_row) for gold_row, predicted_row in pairs),
    )


def held_by(holder: Iterable[Hashable], cells: Iterable[Hashable]) -> int:
    """Return how many of the cells are in the other row; a cell that `cells` has twice counts twice."""
    held_cells = set(holder)
    return sum([cell in held_cells for cell in cells])
