"""Values and rows that are equal without being the same.

These are numbers within the tolerance, and texts that equal a number, a date or a time. Such equality is not
transitive, so it is never chained: 1.0 may equal 1.1 and 1.1 equal 1.2 without 1.0 being equal to 1.2. Nor are two
texts equal because both of them equal a number or a date.
Values that are near each other are first gathered in clusters. In most clusters every gold value equals every predicted
value, and they can share a code. In the others, values that are the same are paired first and the rest one to one.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time
from functools import partial
from itertools import chain, takewhile
from operator import itemgetter
from typing import TypeAlias

from pytest_queryeval.comparison.canonical import is_close, is_near, read_text
from pytest_queryeval.comparison.comparables import (
    Comparable,
    Number,
    ReadText,
    datatype_of,
    is_comparable,
    quantity_of,
)
from pytest_queryeval.comparison.temporal import Temporal
from pytest_queryeval.core.policy import Policy

Cells: TypeAlias = tuple[Hashable, ...]
Placed: TypeAlias = tuple[int, Cells]
Candidate: TypeAlias = tuple[tuple[Number, ...], int, tuple[Comparable, ...]]  # numbers, position, all values
Typed: TypeAlias = set[tuple[type, Comparable]]
Columns: TypeAlias = Iterable[Sequence[Hashable]]
Texts: TypeAlias = Mapping[Hashable, ReadText]
Key: TypeAlias = tuple[type, Number]
Pairs: TypeAlias = list[tuple[Comparable, Comparable]]
EXACT = ({int, date, datetime, time}, {int, Temporal}, {ReadText})  # values of these types are equal if the same
MAX_PAIRS = 10_000  # of values of one cluster that are all compared
MAX_COMPARISONS = 200_000  # of rows
MAX_FLOAT = 2**1000  # numbers up to it are multiplied and added as floats without overflow


@dataclass(frozen=True, slots=True, kw_only=True)
class Merge:
    """Codes of values that count as equal.

    `codes` maps the code of a value to the code that it shares, and has no value that keeps its own. With `is_rough`,
    the values of some cluster had to be paired. `texts` are those that read as a date, a time or a duration, where
    there is one that they may equal.
    """

    codes: Mapping[int, int]
    is_rough: bool
    texts: Texts


def cluster_close(codes: Mapping[Hashable, int], gold: Columns, predicted: Columns, policy: Policy) -> Merge:
    """Find codes of equal values, given the code of each canonical value and the columns of both sides."""
    kinds = {kind for kind in set(map(type, codes)) if issubclass(kind, Comparable)}
    has_temporals = any(issubclass(kind, date | time | Temporal) for kind in kinds)
    texts = (
        {text: found for text in codes if type(found := read_text(text, policy)) is ReadText} if has_temporals else {}
    )
    if not texts and any(kinds <= alike for alike in EXACT):
        return Merge(codes={}, is_rough=False, texts={})
    golds, others = _typed(gold, texts), _typed(predicted, texts)
    merged: dict[int, int] = {}
    is_rough = False
    for cluster in _clusters(golds | others, policy):
        left = [value for value in cluster if (type(value), value) in golds]
        right = [value for value in cluster if (type(value), value) in others]
        if not left or not right or all(isinstance(value, ReadText) for value in cluster):
            continue
        if _all_equal(left, right, policy):
            merged.update((codes[value], codes[left[0]]) for value in cluster)
            continue
        is_rough = True
        same = set(left) & set(right)
        pairs = _one_to_one([v for v in left if v not in same], [v for v in right if v not in same], policy)
        merged.update((codes[other], codes[value]) for value, other in pairs)
    return Merge(codes={code: other for code, other in merged.items() if code != other}, is_rough=is_rough, texts=texts)


def _typed(columns: Columns, texts: Texts) -> Typed:
    """Return the distinct values that may equal others, each with its type.

    3 and 3.0 share a code and yet differ, since only one of them is near 3.0000001.
    """
    pairs = (pair for column in columns for pair in set(zip(map(type, column), column, strict=True)))
    if texts:
        pairs = ((type(read), read) for read in (texts.get(value, value) for _, value in pairs))
    return {(kind, value) for kind, value in pairs if is_comparable(value)}


def _clusters(typed: Typed, policy: Policy) -> Iterator[list[Comparable]]:
    """Yield groups of at least two values: of one point in time, or numbers of one datatype that nearness links.

    Numbers are sorted by value.
    """
    moments: defaultdict[Temporal, list[Comparable]] = defaultdict(list)
    numbers: defaultdict[str, defaultdict[Key, list[Comparable]]] = defaultdict(lambda: defaultdict(list))
    for _, value in typed:
        quantity = quantity_of(value)
        if isinstance(quantity, Temporal):
            moments[quantity].append(value)
        else:
            numbers[datatype_of(value)][type(quantity), quantity].append(value)
    yield from (sorted(values, key=str) for values in moments.values() if len(values) > 1)
    for values in numbers.values():
        integers = [key for key in values if key[0] is int]
        others = [key for key in values if key[0] is not int]
        linked = _linked(sorted([*integers, *others], key=itemgetter(1)), policy)
        several = {key: sorted(found, key=str) for key, found in values.items() if len(found) > 1}
        yield from (several[key] for key in several.keys() - set(chain.from_iterable(linked)))
        for group in linked:
            yield [value for key in group for value in several.get(key) or values[key]]


def _linked(keys: Sequence[Key], policy: Policy) -> list[list[Key]]:
    """Split sorted numbers (of equal ones integers first) into groups linked by nearness; two integers never are."""
    groups: list[list[Key]] = [[]]
    last_float: Number | None = None
    recent: list[Key] = []  # integers since the last float, which may be near the next one
    joined = 0  # how many of them, from the first, are in the last group already
    for key in keys:
        kind, number = key
        if kind is int:
            if joined == len(recent) and last_float is not None and is_close(last_float, number, policy):
                groups[-1].append(key)
                joined += 1
            recent.append(key)
            continue
        linked = last_float is not None and is_close(last_float, number, policy)
        reached = len([*takewhile(partial(is_close, number, policy=policy), (other for _, other in reversed(recent)))])
        first = len(recent) - reached
        if not linked and first >= joined:
            groups.append([])
        groups[-1] += [*recent[max(first, joined) :], key]
        last_float, recent, joined = number, [], 0
    return [group for group in groups if len(group) > 1]


def _all_equal(golds: Sequence[Comparable], others: Sequence[Comparable], policy: Policy) -> bool:
    if len(golds) == len(others) == 1:
        return is_near(golds[0], others[0], policy)
    if len(golds) * len(others) > MAX_PAIRS:
        return False
    return all(is_near(left, right, policy) for left in golds for right in others)


def _one_to_one(golds: Sequence[Comparable], others: Sequence[Comparable], policy: Policy) -> Pairs:
    """Pair equal values, each used once: pairs with a text first (two texts are never equal), then typed values."""
    pairs: Pairs = []
    for gold_texts, other_texts in ((True, False), (False, True), (False, False)):
        taken = {id(value) for both in pairs for value in both}
        lefts, rights = (
            [value for value in values if isinstance(value, ReadText) is texts and id(value) not in taken]
            for values, texts in ((golds, gold_texts), (others, other_texts))
        )
        pairs += _first_fits(lefts, rights, policy)
    return pairs


def _first_fits(golds: Sequence[Comparable], others: Sequence[Comparable], policy: Policy) -> Pairs:
    """Pair equal values of two sorted sides; taking the first that fits leaves the fewest without a partner."""
    pairs = []
    start = 0
    for left in golds:
        while (
            start < len(others)
            and quantity_of(others[start]) < quantity_of(left)  # type: ignore[operator]  # of one cluster, so of one type
            and not is_near(left, others[start], policy)
        ):
            start += 1
        if start < len(others) and is_near(left, others[start], policy):
            pairs.append((left, others[start]))
            start += 1
    return pairs


def near_matches(
    golds: Iterable[Placed], others: Iterable[Placed], policies: Sequence[Policy]
) -> tuple[list[int], list[int]]:
    """Pair rows that are equal within the tolerance, one to one in sorted order; return the positions left over.

    `policies` are those of the columns, which differ in their tolerances alone.
    Rows are compared only with rows whose other cells are the same and whose first number is near; past MAX_COMPARISONS
    the rest counts as unequal.
    """
    waiting: defaultdict[Cells, list[Candidate]] = defaultdict(list)
    for position, cells in others:
        key, row = _split(position, cells)
        waiting[key].append(row)
    for candidates in waiting.values():
        candidates.sort()
    left = []
    budget = MAX_COMPARISONS
    by_position = dict(golds)
    for key, row in sorted((_split(position, cells) for position, cells in by_position.items()), key=itemgetter(1)):
        compared = [policy for cell, policy in zip(by_position[row[1]], policies, strict=True) if is_comparable(cell)]
        partner, cost = _partner(row, waiting[key], compared, budget)
        budget -= cost
        if partner is None:
            left.append(row[1])
        else:
            del waiting[key][partner]
    return sorted(left), sorted(position for candidates in waiting.values() for _, position, _ in candidates)


def _split(position: int, cells: Cells) -> tuple[Cells, Candidate]:
    """Split a row into a key, the same for rows that may be near each other, and the values to compare."""
    key: list[Hashable] = []
    numbers: list[Number] = []
    values: list[Comparable] = []
    for cell in cells:
        if not is_comparable(cell):
            key.append(cell)
            continue
        values.append(cell)
        quantity = quantity_of(cell)
        if isinstance(quantity, Temporal):
            key.append(quantity)
        else:
            key.append(("number", datatype_of(cell)))
            numbers.append(quantity)
    return tuple(key), (tuple(numbers), position, tuple(values))


def _partner(
    row: Candidate, candidates: Sequence[Candidate], policies: Sequence[Policy], budget: int
) -> tuple[int | None, int]:
    """Return the place of the first candidate that is near in all values, and how many were compared.

    `policies` are those of the row's values.
    """
    numbers, _, values = row
    start = 0
    of_numbers = (
        of for of, value in zip(policies, values, strict=True) if not isinstance(quantity_of(value), Temporal)
    )
    policy = next(of_numbers, Policy())
    if numbers and isinstance(numbers[0], int | float) and abs(numbers[0]) < MAX_FLOAT:
        lowest = numbers[0] - 2 * max(policy.rel * abs(numbers[0]), policy.abs)
        start = bisect_left(candidates, ((lowest,),))
    for place in range(start, min(len(candidates), start + budget)):
        others, _, other_values = candidates[place]
        if all(map(is_near, values, other_values, policies)):
            return place, place - start + 1
        if numbers and others[0] > numbers[0] and not is_close(numbers[0], others[0], policy):
            return None, place - start + 1
    return None, max(0, min(len(candidates) - start, budget))
