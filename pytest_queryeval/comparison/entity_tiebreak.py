"""The entity F1 of alignments, and whether a partial alignment can still reach a given one.

The entity F1 is the harmonic mean of a mean precision P and a mean recall R, so it is not a sum over column pairs and
one assignment does not find its maximum. It is however the minimum of its tangents,

    2PR / (P + R) = min over t in [0, 1] of 2 t^2 P + 2 (1 - t)^2 R,

and each tangent is a sum over pairs: the best assignment under any tangent bounds the F1 of every alignment from above.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

from pytest_queryeval.comparison.assignment import best_assignment, steps

# Two F1 values closer than this are equal: their sums were merely rounded in another order.
TOLERANCE = 1e-12
_TANGENTS = 12
# What reading one pair of columns costs, in steps of an assignment that could have been taken in that time.
_PAIR = 20


class EntityTiebreak:
    """Precision, recall and F1 over the distinct values of aligned columns; pairs are read on first use and kept."""

    def __init__(
        self,
        gold: Sequence[Sequence[int]],
        predicted: Sequence[Sequence[int]],
        *,
        overlap: Callable[[int, int], int] | None,
        gold_distinct: Sequence[int] | None,
        predicted_distinct: Sequence[int] | None,
        spend: Callable[[int], None],
    ) -> None:
        gold_values = cache(lambda i: frozenset(gold[i]))
        predicted_values = cache(lambda j: frozenset(predicted[j]))
        self._overlap = overlap or (lambda i, j: len(gold_values(i) & predicted_values(j)))
        self._gold_distinct = (lambda i: len(gold_values(i))) if gold_distinct is None else gold_distinct.__getitem__
        self._predicted_distinct = (
            (lambda j: len(predicted_values(j))) if predicted_distinct is None else predicted_distinct.__getitem__
        )
        self._spend = spend
        self._pairs: dict[tuple[int, int], tuple[float, float]] = {}

    def pair(self, gold: int, predicted: int) -> tuple[float, float]:
        """Return precision and recall of one column pair, 0 where they share no value."""
        ratios = self._pairs.get((gold, predicted))
        if ratios is None:
            self._spend(_PAIR)
            ratios = (0.0, 0.0)
            if shared := self._overlap(gold, predicted):
                ratios = shared / self._predicted_distinct(predicted), shared / self._gold_distinct(gold)
            self._pairs[gold, predicted] = ratios
        return ratios

    def f1(self, columns: Sequence[int]) -> float:
        """Return the F1 of mean precision and mean recall, gold column i aligned with predicted column `columns[i]`."""
        return self._means_f1(columns)[0]

    def _means_f1(self, columns: Sequence[int]) -> tuple[float, float, float]:
        pairs = [self.pair(gold, predicted) for gold, predicted in enumerate(columns)]
        precision = sum(pair[0] for pair in pairs) / len(pairs)
        recall = sum(pair[1] for pair in pairs) / len(pairs)
        total = precision + recall
        return (2 * precision * recall / total if total else 0.0), precision, recall

    def reach(self, options: Sequence[Sequence[int]], floor: float) -> list[int] | None:
        """Return an alignment within `options`, or None if no F1 there is >= floor.

        `options` are the predicted columns allowed to each gold column. The alignment is a guess: its F1 may miss the
        floor where the bound does not exclude it. Each tangent costs one assignment, and each step of it counts as one
        row.
        """
        low, tangent, high = 0.0, 0.5, 1.0
        guess: list[int] | None = None
        for _ in range(_TANGENTS):
            guess = self._best_under(options, tangent)
            if guess is None:
                return None
            f1, precision, recall = self._means_f1(guess)
            if 2 * tangent**2 * precision + 2 * (1 - tangent) ** 2 * recall < floor:
                return None
            slope = tangent * precision - (1 - tangent) * recall
            if f1 >= floor or abs(slope) < TOLERANCE:
                return guess
            low, high = (low, tangent) if slope > 0 else (tangent, high)
            touching = recall / (precision + recall)
            tangent = touching if low < touching < high else (low + high) / 2
        return guess

    def _best_under(self, options: Sequence[Sequence[int]], tangent: float) -> list[int] | None:
        """Return the best assignment under a tangent; None where there is no alignment within `options`."""
        columns = [allowed[0] for allowed in options]
        free = [gold for gold, allowed in enumerate(options) if len(allowed) > 1]
        fixed = {allowed[0] for allowed in options if len(allowed) == 1}
        targets = sorted({j for gold in free for j in options[gold]} - fixed)
        if len(fixed) + len(free) < len(options) or len(targets) < len(free):
            return None
        # Worse than a whole alignment, yet small enough to leave the last digits of the sums alone.
        forbidden = -2.0 * len(options) - 1
        self._spend(len(free) * len(targets) + steps(len(free), len(targets)))
        by_precision, by_recall = 2 * tangent**2, 2 * (1 - tangent) ** 2
        weights = []
        for gold in free:
            by_target = dict.fromkeys(targets, forbidden)
            for j in options[gold]:
                if j in by_target:
                    precision, recall = self.pair(gold, j)
                    by_target[j] = by_precision * precision + by_recall * recall
            weights.append(list(by_target.values()))
        for row, target in best_assignment(weights):
            columns[free[row]] = targets[target]
        return columns if all(columns[gold] in options[gold] for gold in free) else None
