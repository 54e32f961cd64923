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
Numbered: TypeAlias = tuple[tuple[Number, ...], int]
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
    typed = gold | predicted
    integers = [number for kind, number in typed if kind is int]
    numbers = sorted([*integers, *(number for kind, number in typed if kind is not int)])  # of equals, integers first
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
    waiting: defaultdict[Cells, list[Numbered]] = defaultdict(list)
    for position, cells in others:
        waiting[_without_numbers(cells)].append((_numbers_of(cells), position))
    for candidates in waiting.values():
        candidates.sort()
    left = []
    budget = COMPARISONS
    for numbers, position, rest in sorted((_numbers_of(cells), at, _without_numbers(cells)) for at, cells in golds):
        partner, cost = _partner(numbers, waiting[rest], policy, budget)
        budget -= cost
        if partner is None:
            left.append(position)
        else:
            del waiting[rest][partner]
    return sorted(left), sorted(position for candidates in waiting.values() for _, position in candidates)


def _partner(
    numbers: Sequence[Number], candidates: Sequence[Numbered], policy: Policy, budget: int
) -> tuple[int | None, int]:
    """The first candidate that is near in all numbers, and how many were looked at."""
    start = _first_near(numbers, candidates, policy)
    for place in range(start, min(len(candidates), start + budget)):
        others = candidates[place][0]
        if all(map(policy.close, numbers, others)):
            return place, place - start + 1
        if others[0] > numbers[0] and not policy.close(numbers[0], others[0]):
            return None, place - start + 1
    return None, max(0, min(len(candidates) - start, budget))


def _first_near(numbers: Sequence[Number], candidates: Sequence[Numbered], policy: Policy) -> int:
    """Where the candidates, sorted by their numbers, may start to be near."""
    first = next(iter(numbers), None)
    if not isinstance(first, int | float) or abs(first) >= GREAT:
        return 0
    low = first - 2 * max(policy.rel * abs(first), policy.abs)
    return bisect_left(candidates, ((low,),))


def _without_numbers(cells: Cells) -> Cells:
    return tuple([PLACE if is_number(cell) else cell for cell in cells])


def _numbers_of(cells: Cells) -> tuple[Number, ...]:
    return tuple([cell for cell in cells if is_number(cell)])
