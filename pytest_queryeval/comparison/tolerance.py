"""Values that are equal though not the same: which of them, and which rows, count as equal.

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
from itertools import chain, repeat, takewhile
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
Numbered: TypeAlias = tuple[tuple[Number, ...], int, tuple[Comparable, ...]]
Typed: TypeAlias = set[tuple[type, Comparable]]
Columns: TypeAlias = Iterable[Sequence[Hashable]]
Texts: TypeAlias = Mapping[Hashable, ReadText]
Key: TypeAlias = tuple[type, Number]
Pairs: TypeAlias = list[tuple[Comparable, Comparable]]
EXACT = ({int, date, datetime, time}, {int, Temporal}, {ReadText})  # values of these types are equal if the same
MANY_PAIRS = 10_000
COMPARISONS = 200_000
GREAT = 2**1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Merge:
    """`codes` maps the code of a value to the code that it shares; `rough` tells that some cluster had to be paired.

    `texts` are those that read as a date, a time or a duration, where there is one that they may equal.
    """

    codes: Mapping[int, int]
    rough: bool
    texts: Texts


def cluster_close(codes: Mapping[Hashable, int], gold: Columns, predicted: Columns, policy: Policy) -> Merge:
    """Which codes stand for equal values, given the code of each canonical value and the columns of both sides."""
    kinds = {kind for kind in set(map(type, codes)) if issubclass(kind, Comparable)}
    has_temporals = any(issubclass(kind, date | time | Temporal) for kind in kinds)
    texts = (
        {text: found for text in codes if type(found := read_text(text, policy)) is ReadText} if has_temporals else {}
    )
    if not texts and any(kinds <= alike for alike in EXACT):
        return Merge(codes={}, rough=False, texts={})
    merged, rough = _merged(codes, _typed(gold, texts), _typed(predicted, texts), policy)
    return Merge(codes={code: other for code, other in merged.items() if code != other}, rough=rough, texts=texts)


def _merged(
    codes: Mapping[Hashable, int], gold: Typed, predicted: Typed, policy: Policy
) -> tuple[dict[int, int], bool]:
    merged: dict[int, int] = {}
    rough = False
    for cluster in _clusters(gold | predicted, policy):
        golds = [value for value in cluster if (type(value), value) in gold]
        others = [value for value in cluster if (type(value), value) in predicted]
        if not golds or not others or all(isinstance(value, ReadText) for value in cluster):
            continue
        if _all_equal(golds, others, policy):
            merged.update((codes[value], codes[golds[0]]) for value in cluster)
            continue
        rough = True
        same = set(golds) & set(others)
        pairs = _one_to_one([v for v in golds if v not in same], [v for v in others if v not in same], policy)
        merged.update((codes[right], codes[left]) for left, right in pairs)
    return merged, rough


def _typed(columns: Columns, texts: Texts) -> Typed:
    """The distinct values that may equal others, each with its type.

    3 and 3.0 share a code and yet differ, since only one of them is near 3.0000001.
    """
    pairs = (pair for column in columns for pair in set(zip(map(type, column), column, strict=True)))
    if texts:
        pairs = ((type(read), read) for read in (texts.get(value, value) for _, value in pairs))
    return {(kind, value) for kind, value in pairs if is_comparable(value)}


def _clusters(typed: Typed, policy: Policy) -> Iterator[list[Comparable]]:
    """Groups of two and more values of one point in time, or of one datatype and of numbers that nearness links.

    They are sorted by their numbers.
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
    """Groups of sorted numbers, of equal ones integers first, that nearness links; it never links two integers."""
    groups: list[list[Key]] = [[]]
    last_float: Number | None = None
    recent: list[Key] = []  # the integers since the last float: the next float may reach them too
    joined = 0  # so many of the first of them are in the last group, as they are near the last float
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
    if len(golds) * len(others) > MANY_PAIRS:
        return False
    return all(is_near(left, right, policy) for left in golds for right in others)


def _one_to_one(golds: Sequence[Comparable], others: Sequence[Comparable], policy: Policy) -> Pairs:
    """Pairs of equal values, each used once: first those of texts, which equal no texts, then those of typed values."""
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
    """Pairs of equal values; both sides sorted, so taking the first that fits is best."""
    pairs = []
    start = 0
    for left in golds:
        while start < len(others) and _below(others[start], left) and not is_near(left, others[start], policy):
            start += 1
        if start < len(others) and is_near(left, others[start], policy):
            pairs.append((left, others[start]))
            start += 1
    return pairs


def _below(value: Comparable, other: Comparable) -> bool:
    number, limit = quantity_of(value), quantity_of(other)
    return not isinstance(number, Temporal) and not isinstance(limit, Temporal) and number < limit


def near_matches(golds: Iterable[Placed], others: Iterable[Placed], policy: Policy) -> tuple[list[int], list[int]]:
    """Pair rows that are equal within the tolerance, one to one in sorted order; returns the positions left over.

    Rows are compared only with rows whose other cells are the same and whose first number is near; past COMPARISONS
    comparisons the rest counts as unequal.
    """
    waiting: defaultdict[Cells, list[Numbered]] = defaultdict(list)
    for position, cells in others:
        waiting[_without_numbers(cells)].append(_numbered(position, cells))
    for candidates in waiting.values():
        candidates.sort()
    left = []
    budget = COMPARISONS
    for row, rest in sorted((_numbered(position, cells), _without_numbers(cells)) for position, cells in golds):
        partner, cost = _partner(row, waiting[rest], policy, budget)
        budget -= cost
        if partner is None:
            left.append(row[1])
        else:
            del waiting[rest][partner]
    return sorted(left), sorted(position for candidates in waiting.values() for _, position, _ in candidates)


def _partner(row: Numbered, candidates: Sequence[Numbered], policy: Policy, budget: int) -> tuple[int | None, int]:
    """The first candidate that is near in all values, and how many were looked at."""
    numbers, _, values = row
    start = _first_near(numbers, candidates, policy)
    for place in range(start, min(len(candidates), start + budget)):
        others, _, other_values = candidates[place]
        if all(map(is_near, values, other_values, repeat(policy))):
            return place, place - start + 1
        if numbers and others[0] > numbers[0] and not is_close(numbers[0], others[0], policy):
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
    return tuple([_kind(cell) if is_comparable(cell) else cell for cell in cells])


def _kind(value: Comparable) -> Hashable:
    """The same for values that may be near each other."""
    quantity = quantity_of(value)
    return quantity if isinstance(quantity, Temporal) else ("number", datatype_of(value))


def _numbered(position: int, cells: Cells) -> Numbered:
    values = tuple([cell for cell in cells if is_comparable(cell)])
    quantities = [quantity_of(value) for value in values]
    return tuple([number for number in quantities if not isinstance(number, Temporal)]), position, values
