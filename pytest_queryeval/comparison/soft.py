"""The soft F1 of paired rows: how many cells of a row its partner holds, in any column.

With w gold columns and b predicted columns, `found` counts the predicted cells that their partner holds, and `held` the
gold cells that their partner holds. A pair adds found/w to tp, (b - found)/w to fp and (w - held)/w to fn, a row
without partner 1 to fp or fn. So for k pairs of n gold and m predicted rows

    F1 = 2tp / (2tp + fp + fn) = 2·found / (found - held + k·(b + w) + |n - m|·w)
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable
from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class Sums:
    """Over paired rows: the predicted cells that gold's row holds, and the gold cells that predicted's row holds."""

    found: int
    held: int


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
        whole = sums.found - sums.held + min(self.n, self.m) * (self.b + self.w) + lone
        return Fraction(2 * sums.found, whole) if whole else Fraction(1)


def sums_by_position(golds: Collection[Collection[Hashable]], predicted: Collection[Collection[Hashable]]) -> Sums:
    """Compare the i-th gold row with the i-th predicted row; rows without partner count nothing."""
    pairs = list(zip(golds, predicted, strict=False))
    return Sums(
        found=sum(held_by(gold, other) for gold, other in pairs),
        held=sum(held_by(other, gold) for gold, other in pairs),
    )


def held_by(holder: Iterable[Hashable], cells: Iterable[Hashable]) -> int:
    """Return how many of the cells are in the other row; a cell that `cells` has twice counts twice."""
    held = set(holder)
    return sum([cell in held for cell in cells])
