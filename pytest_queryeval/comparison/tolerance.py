"""Values that are equal without being the same.

These are numbers within the tolerance, and texts that equal a number, a date or a time. Such equality is not
transitive, so it is never chained: 1.0 may equal 1.1 and 1.1 equal 1.2 without 1.0 being equal to 1.2. Nor are two
texts equal because both of them equal a number or a date.
Values that are near each other are first gathered in clusters. In most clusters every gold value equals every predicted
value, and they can share a code. In the others, values that are the same are paired first and the rest one to one.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal
from itertools import chain
from typing import TypeAlias

from pytest_queryeval.comparison.canonical import (
    Comparable,
    ReadText,
    TypedNumber,
    as_temporal_text,
    datatype_of,
    is_comparable,
    is_near,
    quantity_of,
    tolerance_type,
)
from pytest_queryeval.comparison.graphs import connected
from pytest_queryeval.comparison.numbers import (
    QUOTIENT_DECIMALS,
    QUOTIENT_REL,
    ROUNDED_DECIMALS,
    Number,
    Width,
    as_float,
    decimals_of,
    exact_width,
    float_width,
    half_unit,
    is_whole,
    rounds,
)
from pytest_queryeval.comparison.temporal import Temporal
from pytest_queryeval.core.policy import Policy

Typed: TypeAlias = set[tuple[Hashable, Comparable]]
Columns: TypeAlias = Iterable[Sequence[Hashable]]
Texts: TypeAlias = Mapping[Hashable, ReadText]
Sweep: TypeAlias = tuple[Iterable[int], Iterable[int], Width]
ValuePairs: TypeAlias = list[tuple[Comparable, Comparable]]
EXACT = ({int, date, datetime, time}, {int, Temporal}, {ReadText})  # values of these types are equal if the same
MAX_PAIRS = 10_000  # of values of one cluster that are all compared


@dataclass(frozen=True, slots=True, kw_only=True)
class Merge:
    """Codes of values that count as equal.

    Values form a chain if each is near another one, but not every value of gold near every predicted one: under a
    tolerance of 0.5, gold's 1.0 and 2.0 with predicted's 1.5 and 2.5. More than MAX_PAIRS pairs are always a chain.
    """

    equal: Mapping[int, int]
    """From the code of a value that is in no chain to the code of all values that it equals, if that is another."""
    paired: Mapping[int, int]
    """From predicted to gold codes of values in chains that were paired one to one: 1.5 to 1.0, 2.5 to 2.0."""
    chains: Mapping[int, int]
    """From the code of each value in a chain to the code of its chain, here that of 1.0."""
    texts: Texts
    """The texts that spell a date, a time or a duration; empty if no column has any to compare them with."""

    @property
    def codes(self) -> Mapping[int, int]:
        """All codes of values that share the code of another one."""
        return {**self.equal, **self.paired} if self.paired else self.equal


def merge_close_values(codes: Mapping[Hashable, int], gold: Columns, predicted: Columns, policy: Policy) -> Merge:
    """Find codes of equal values, given the code of each canonical value and the columns of both sides."""
    gold, predicted = list(gold), list(predicted)
    # Types come from the cells, since 3, 3.0 and Decimal(3) are one key of `codes`.
    types = set(chain.from_iterable(map(type, column) for column in chain(gold, predicted))) - {bool}
    kinds = {kind for kind in types if issubclass(kind, Comparable)}
    has_temporals = any(issubclass(kind, date | time | Temporal) for kind in kinds)
    texts = (
        {text: read for text in codes if type(read := as_temporal_text(text, policy)) is ReadText}
        if has_temporals
        else {}
    )
    if not texts and any(kinds <= types_equal_if_same for types_equal_if_same in EXACT):
        return Merge(equal={}, paired={}, chains={}, texts={})
    typed_gold, typed_predicted = _typed(gold, texts), _typed(predicted, texts)
    equal: dict[int, int] = {}
    paired: dict[int, int] = {}
    chains: dict[int, int] = {}
    for cluster in _clusters(typed_gold | typed_predicted, policy):
        gold_values = [value for value in cluster if (tolerance_type(value), value) in typed_gold]
        predicted_values = [value for value in cluster if (tolerance_type(value), value) in typed_predicted]
        if not gold_values or not predicted_values or all(isinstance(value, ReadText) for value in cluster):
            continue
        if _all_equal(gold_values, predicted_values, policy):
            equal.update(
                (codes[value], codes[gold_values[0]]) for value in cluster if codes[value] != codes[gold_values[0]]
            )
            continue
        chains.update((codes[value], codes[cluster[0]]) for value in cluster)
        shared_values = set(gold_values) & set(predicted_values)
        pairs = _one_to_one(
            [value for value in gold_values if value not in shared_values],
            [value for value in predicted_values if value not in shared_values],
            policy,
        )
        paired.update((codes[y], codes[x]) for x, y in pairs if codes[x] != codes[y])
    return Merge(equal=equal, paired=paired, chains=chains, texts=texts)


def _typed(columns: Columns, texts: Texts) -> Typed:
    """Return the distinct values that may equal others, each with its kind.

    3 and 3.0 share a code, but only the float is near 2.9999999.
    """
    values: set[tuple[Hashable, Hashable]] = set()
    for column in columns:
        has_decimals = not {Decimal, TypedNumber}.isdisjoint(map(type, column))
        kinds: Iterable[Hashable] = map(_kind if has_decimals else type, column)
        values.update(zip(kinds, column, strict=True))
    if texts:
        read = (texts.get(value, value) for _, value in values)
        return {(tolerance_type(value), value) for value in read if is_comparable(value)}
    return {(kind, value) for kind, value in values if is_comparable(value)}


def _kind(value: Hashable) -> Hashable:
    return tolerance_type(value) if isinstance(value, Decimal | TypedNumber) else type(value)


def _clusters(typed: Typed, policy: Policy) -> Iterator[list[Comparable]]:
    """Yield groups of at least two values: of one point in time, or numbers of one datatype that nearness links.

    Numbers are sorted by value.
    """
    moments: defaultdict[Temporal, list[Comparable]] = defaultdict(list)
    numbers: defaultdict[str, list[tuple[Number, Comparable]]] = defaultdict(list)
    for _, value in typed:
        quantity = quantity_of(value)
        if isinstance(quantity, Temporal):
            moments[quantity].append(value)
        else:
            numbers[datatype_of(value)].append((quantity, value))
    yield from (sorted(values, key=str) for values in moments.values() if len(values) > 1)
    for pairs in numbers.values():
        times = Counter(quantity for quantity, _ in pairs)
        pairs.sort(key=lambda pair: (pair[0], str(pair[1]) if times[pair[0]] > 1 else ""))
        links = _links([quantity for quantity, _ in pairs], policy)
        groups: defaultdict[int, list[Comparable]] = defaultdict(list)
        for place, group in sorted(connected(links).items()):
            groups[group].append(pairs[place][1])
        yield from (group for group in groups.values() if len(group) > 1)


def _links(numbers: Sequence[Number], policy: Policy) -> Iterator[tuple[int, int]]:
    """Yield pairs of places that link all numbers which are near each other; `numbers` are sorted."""
    yield from ((place - 1, place) for place in range(1, len(numbers)) if numbers[place - 1] == numbers[place])
    values = list(map(as_float, numbers))
    for sources, targets, width in _sweeps(numbers, policy):
        last = 0  # targets before it are linked, if they are within reach of a source
        first = 0
        reached = [*targets]
        for source in sources:
            value = values[source]
            reach = width.reach(value)
            while first < len(reached) and values[reached[first]] < value - reach:
                first += 1
            if last > first:
                yield source, reached[last - 1]
            last = max(last, first)
            while last < len(reached) and values[reached[last]] <= value + reach:
                yield source, reached[last]
                last += 1


def _sweeps(numbers: Sequence[Number], policy: Policy) -> Iterator[Sweep]:
    """Yield places of numbers, places of numbers that may be near them, and how near."""
    decimals = list(map(decimals_of, numbers))
    places = [place for place, number in enumerate(numbers) if math.isfinite(as_float(number))]
    floats = [place for place in places if decimals[place] is None]
    fractions = [place for place in places if decimals[place]]
    if any(exact_width(policy)):
        width = exact_width(policy)
        yield sorted([*floats, *fractions]), places, width
    if floats:
        whole_places = {place for place in places if is_whole(numbers[place])}
        width = float_width(policy)
        yield floats, [place for place in places if place not in whole_places or decimals[place] is None], width
        yield [place for place in floats if place not in whole_places], sorted(whole_places), width
    if not rounds(policy):
        return
    by_decimals: defaultdict[int, list[int]] = defaultdict(list)
    for place in fractions:
        by_decimals[decimals[place] or 0].append(place)
    rounded = [place for place in fractions if (decimals[place] or 0) >= ROUNDED_DECIMALS]
    for count, sources in by_decimals.items():
        if count >= ROUNDED_DECIMALS:
            yield sources, rounded, Width(0.0, float(half_unit(count)))
    quotients = [place for place in rounded if (decimals[place] or 0) >= QUOTIENT_DECIMALS]
    exact = [place for place in places if decimals[place] is not None] if quotients else []
    yield quotients, exact, Width(QUOTIENT_REL, 0.0)


def _all_equal(gold: Sequence[Comparable], predicted: Sequence[Comparable], policy: Policy) -> bool:
    if len(gold) == len(predicted) == 1:
        return is_near(gold[0], predicted[0], policy)
    if len(gold) * len(predicted) > MAX_PAIRS:
        return False
    return all(is_near(x, y, policy) for x in gold for y in predicted)


def _one_to_one(gold: Sequence[Comparable], predicted: Sequence[Comparable], policy: Policy) -> ValuePairs:
    """Pair equal values, each used once: pairs with a text first (two texts are never equal), then typed values."""
    pairs: ValuePairs = []
    for gold_texts, predicted_texts in ((True, False), (False, True), (False, False)):
        paired_ids = {id(value) for pair in pairs for value in pair}
        gold_values, predicted_values = (
            [value for value in values if isinstance(value, ReadText) is texts and id(value) not in paired_ids]
            for values, texts in ((gold, gold_texts), (predicted, predicted_texts))
        )
        pairs += _first_fits(gold_values, predicted_values, policy)
    return pairs


def _first_fits(gold: Sequence[Comparable], predicted: Sequence[Comparable], policy: Policy) -> ValuePairs:
    """Pair equal values of two sorted sides; taking the first that fits leaves the fewest without a partner."""
    pairs = []
    start = 0
    for x in gold:
        while (
            start < len(predicted)
            and quantity_of(predicted[start]) < quantity_of(x)  # type: ignore[operator]  # of one cluster, so of one type
            and not is_near(x, predicted[start], policy)
        ):
            start += 1
        if start < len(predicted) and is_near(x, predicted[start], policy):
            pairs.append((x, predicted[start]))
            start += 1
    return pairs
