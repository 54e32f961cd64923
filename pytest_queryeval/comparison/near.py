"""Numbers that are equal within the tolerance though not the same: which values, and which rows, count as equal.

Tolerance is not transitive, so equality is never chained: 1.0 may equal 1.1 and 1.1 equal 1.2 without 1.0 being
equal to 1.2.
Values that are near each other are first gathered in clusters. In most clusters every gold value equals every predicted
value, and they can share a code. In the others, values that are the same are paired first and the rest one to one.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from itertools import takewhile
from typing import TypeAlias, TypeGuard

from pytest_queryeval.comparison.policy import Policy

Number: TypeAlias = int | float | Decimal
Cells: TypeAlias = tuple[Hashable, ...]
Placed: TypeAlias = tuple[int, Cells]
Typed: TypeAlias = set[tuple[type, Number]]
MANY_PAIRS = 10_000
COMPARISONS = 200_000
GREAT = 2**1000
PLACE = ("number",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Merge:
    """`codes` maps the code of a value to the code that it shares; `rough` tells that some cluster had to be paired."""

    codes: Mapping[int, int]
    rough: bool


def merge_near(codes: Mapping[Hashable, int], gold: Typed, predicted: Typed, policy: Policy) -> Merge:
    """Which codes of numbers stand for equal values, given the code of each value and the numbers of both sides.

    3 and 3.0 share a code and yet differ, since only one of them is near 3.0000001: hence numbers come with their
    types.
    """
    numbers = [number for _, number in sorted(gold | predicted, key=_value_then_type)]
    merged: dict[int, int] = {}
    rough = False
    for cluster in _clusters(numbers, policy):
        golds = [value for value in cluster if (type(value), value) in gold]
        others = [value for value in cluster if (type(value), value) in predicted]
        if not golds or not others:
            continue
        if _all_equal(golds, others, policy):
            merged.update((codes[value], codes[golds[0]]) for value in cluster)
            continue
        rough = True
        same = set(golds) & set(others)
        pairs = _one_to_one([v for v in golds if v not in same], [v for v in others if v not in same], policy)
        merged.update((codes[right], codes[left]) for left, right in pairs)
    return Merge(codes={code: other for code, other in merged.items() if code != other}, rough=rough)


def typed_numbers(columns: Iterable[Sequence[Hashable]]) -> Typed:
    """The distinct numbers of a table's columns of canonical values, each with its type."""
    pairs = (pair for column in columns for pair in set(zip(map(type, column), column, strict=True)))
    return {(kind, value) for kind, value in pairs if is_number(value)}


def _value_then_type(typed: tuple[type, Number]) -> tuple[Number, bool]:
    return typed[1], typed[0] is not int


def is_number(value: object) -> TypeGuard[Number]:
    """Whether a canonical value takes part in tolerant comparison (truth values do not)."""
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


def _clusters(numbers: Sequence[Number], policy: Policy) -> list[list[Number]]:
    """Groups of two and more sorted numbers that are linked by nearness; two integers are never near each other."""
    groups: list[list[Number]] = [[]]
    last_float: Number | None = None
    recent: list[Number] = []  # the integers since the last float: the next float may reach them too
    joined = 0  # so many of the first of them are in the last group, as they are near the last float
    for number in numbers:
        if type(number) is int:
            if joined == len(recent) and last_float is not None and policy.close(last_float, number):
                groups[-1].append(number)
                joined += 1
            recent.append(number)
            continue
        linked = last_float is not None and policy.close(last_float, number)
        reached = len(list(takewhile(partial(policy.close, number), reversed(recent))))
        first = len(recent) - reached
        if not linked and first >= joined:
            groups.append([])
        groups[-1] += [*recent[max(first, joined) :], number]
        last_float, recent, joined = number, [], 0
    return [group for group in groups if len(group) > 1]


def _all_equal(golds: Sequence[Number], others: Sequence[Number], policy: Policy) -> bool:
    if len(golds) * len(others) > MANY_PAIRS:
        return False
    return all(policy.close(left, right) for left in golds for right in others)


def _one_to_one(golds: Sequence[Number], others: Sequence[Number], policy: Policy) -> list[tuple[Number, Number]]:
    """Pairs of equal values, each used once; both sides sorted, so taking the first that fits is best."""
    pairs = []
    start = 0
    for left in golds:
        while start < len(others) and others[start] < left and not policy.close(left, others[start]):
            start += 1
        if start < len(others) and policy.close(left, others[start]):
            pairs.append((left, others[start]))
            start += 1
    return pairs


def near_matches(golds: Iterable[Placed], others: Iterable[Placed], policy: Policy) -> tuple[list[int], list[int]]:
    """Pair rows that are equal within the tolerance, one to one in sorted order; returns the positions left over.

    Rows are compared only with rows whose other cells are the same and whose first number is near; past COMPARISONS
    comparisons the rest counts as unequal.
    """
    waiting: defaultdict[Cells, list[Placed]] = defaultdict(list)
    for placed in sorted(others, key=_numbers_of):
        waiting[_without_numbers(placed[1])].append(placed)
    left = []
    budget = COMPARISONS
    for position, cells in sorted(golds, key=_numbers_of):
        candidates = waiting[_without_numbers(cells)]
        partner = None
        for place in range(_first_near(candidates, cells, policy), len(candidates)):
            budget -= 1
            if rows_close(cells, candidates[place][1], policy):
                partner = place
            if partner is not None or budget < 0 or _past(candidates[place][1], cells, policy):
                break
        if partner is None:
            left.append(position)
        else:
            del candidates[partner]
    return sorted(left), sorted(position for rest in waiting.values() for position, _ in rest)


def _first_near(candidates: Sequence[Placed], cells: Cells, policy: Policy) -> int:
    """Where the candidates, sorted by their numbers, may start to be equal to `cells`."""
    first = next(iter(_numbers_of((0, cells))), None)
    if not isinstance(first, int | float) or abs(first) >= GREAT:
        return 0
    low = first - 2 * max(policy.rel * abs(first), policy.abs)
    return bisect_left(candidates, low, key=_first_number)


def _first_number(placed: Placed) -> float:
    return float(_numbers_of(placed)[0])


def _past(candidate: Cells, cells: Cells, policy: Policy) -> bool:
    """Whether this candidate's first number, and so every later one's, is too great."""
    mine, its = _numbers_of((0, cells)), _numbers_of((0, candidate))
    return bool(mine) and its[0] > mine[0] and not policy.close(mine[0], its[0])


def rows_close(left: Cells, right: Cells, policy: Policy) -> bool:
    """Whether two rows of canonical values are equal cell by cell."""
    for x, y in zip(left, right, strict=True):
        if x != y and not (is_number(x) and is_number(y) and policy.close(x, y)):
            return False
    return True


def _without_numbers(cells: Cells) -> Cells:
    return tuple(PLACE if is_number(cell) else cell for cell in cells)


def _numbers_of(placed: Placed) -> tuple[Number, ...]:
    return tuple(cell for cell in placed[1] if is_number(cell))
