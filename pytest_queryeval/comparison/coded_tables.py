"""Gold and predicted as ints that are the same for equal cells, under the tolerance of each gold column.

Values that are equal without being the same are numbers within the tolerance, lists and mappings of such values, and
texts that equal a number, a date, a time, a list or a mapping. Such equality is not transitive, so it is never chained:
1.0 may equal 1.1 and 1.1 equal 1.2 without 1.0 being equal to 1.2. Nor are two texts equal because both of them equal a
number or a date.
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
from functools import cached_property
from itertools import chain, count
from typing import NamedTuple, TypeAlias

from pytest_queryeval.comparison.canonical import (
    Comparable,
    Nested,
    QuantityText,
    TypedNumber,
    datatype_of,
    is_comparable,
    is_near,
    numbers_in,
    quantity_of,
    read_text,
    skeleton_of,
    tolerance_type,
)
from pytest_queryeval.comparison.graphs import component_representatives, maximum_matching
from pytest_queryeval.comparison.quantities import (
    QUOTIENT_DECIMALS,
    QUOTIENT_REL,
    ROUNDED_DECIMALS,
    Number,
    Temporal,
    Tolerance,
    as_float,
    decimals_of,
    exact_tolerance,
    float_tolerance,
    half_unit,
    is_whole,
    rounds,
)
from pytest_queryeval.core.table import Policy, Table

Typed: TypeAlias = set[tuple[Hashable, Comparable]]
Columns: TypeAlias = Iterable[Sequence[Hashable]]
Texts: TypeAlias = Mapping[Hashable, QuantityText]
Sweep: TypeAlias = tuple[Iterable[int], Iterable[int], Tolerance]
ValuePairs: TypeAlias = list[tuple[Comparable, Comparable]]
EXACT = ({int, date, datetime, time}, {int, Temporal}, {QuantityText})  # values of these types are equal if the same
MAX_PAIRS = 10_000  # of values of one cluster that are all compared
Rows: TypeAlias = Sequence[tuple[Hashable, ...]]
Codes: TypeAlias = list[int]
CodedRow: TypeAlias = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Merge:
    """Which codes of values count as equal, within the tolerance of one policy.

    Values form a chain if they are linked by nearness, but not every gold value is near every predicted value. Under a
    tolerance of 0.5, gold's 1.0 and 2.0 form a chain with predicted's 1.5 and 2.5. So do more than MAX_PAIRS pairs.
    """

    equal: Mapping[int, int]
    """From the code of a value that is in no chain to the code of all values that it equals, if that is another."""
    paired: Mapping[int, int]
    """From predicted to gold codes of values in chains that were paired one to one: 1.5 to 1.0, 2.5 to 2.0."""
    chains: Mapping[int, int]
    """From the code of each value in a chain to the code of its chain, here that of 1.0."""
    texts: Texts
    """The texts that spell a date, a time, a duration or a list; empty if no column has any to compare them with."""

    @property
    def codes(self) -> Mapping[int, int]:
        """From each code to the code that replaces it, of the entries of `equal` and `paired` together."""
        return {**self.equal, **self.paired} if self.paired else self.equal


def merge_close_values(codes: Mapping[Hashable, int], gold: Columns, predicted: Columns, policy: Policy) -> Merge:
    """Return which codes of values count as equal under the policy.

    `codes` has the code of each canonical value; `gold` and `predicted` are columns of canonical values.
    """
    gold, predicted = list(gold), list(predicted)
    # Types come from the cells, since 3, 3.0 and Decimal(3) are one key of `codes`.
    types = set(chain.from_iterable(map(type, column) for column in chain(gold, predicted))) - {bool}
    kinds = {kind for kind in types if issubclass(kind, Comparable)}
    has_spelled = any(issubclass(kind, date | time | Temporal | Nested) for kind in kinds)
    texts = (
        {text: read for text in codes if type(read := read_text(text, policy)) is QuantityText} if has_spelled else {}
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
        if not gold_values or not predicted_values or all(isinstance(value, QuantityText) for value in cluster):
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
    """Return the distinct values that may equal other values, each with a key of its tolerance.

    The key is needed because 3 and 3.0 share a code, but only the float is near 2.9999999. Texts in `texts` become the
    quantities that they spell.
    """
    values: set[tuple[Hashable, Hashable]] = set()
    for column in columns:
        has_kinds = not {Decimal, TypedNumber, Nested}.isdisjoint(map(type, column))
        kinds: Iterable[Hashable] = map(_kind if has_kinds else type, column)
        values.update(zip(kinds, column, strict=True))
    if texts:
        read = (texts.get(value, value) for _, value in values)
        return {(tolerance_type(value), value) for value in read if is_comparable(value)}
    return {(kind, value) for kind, value in values if is_comparable(value)}


def _kind(value: Hashable) -> Hashable:
    return tolerance_type(value) if isinstance(value, Decimal | TypedNumber | Nested) else type(value)


def _clusters(typed: Typed, policy: Policy) -> Iterator[list[Comparable]]:
    """Yield groups of at least two values that may be equal.

    A group contains values of one point in time, or values of one datatype or skeleton that nearness links. Numbers are
    in ascending order.
    """
    moments: defaultdict[Temporal, list[Comparable]] = defaultdict(list)
    nested: defaultdict[Hashable, list[Comparable]] = defaultdict(list)
    numbers: defaultdict[str, list[tuple[Number, Comparable]]] = defaultdict(list)
    for _, value in typed:
        quantity = quantity_of(value)
        if isinstance(quantity, Temporal):
            moments[quantity].append(value)
        elif isinstance(quantity, Nested):
            nested[skeleton_of(quantity, policy)].append(value)
        else:
            numbers[datatype_of(value)].append((quantity, value))
    yield from (sorted(values, key=str) for values in moments.values() if len(values) > 1)
    for values in nested.values():
        if not all(isinstance(value, QuantityText) for value in values):
            yield from _linked_in_all_places(sorted(values, key=str), policy)
    for pairs in numbers.values():
        times = Counter(quantity for quantity, _ in pairs)
        pairs.sort(key=lambda pair: (pair[0], str(pair[1]) if times[pair[0]] > 1 else ""))
        links = _links([quantity for quantity, _ in pairs], policy)
        groups: defaultdict[int, list[Comparable]] = defaultdict(list)
        for place, group in sorted(component_representatives(links).items()):
            groups[group].append(pairs[place][1])
        yield from (group for group in groups.values() if len(group) > 1)


def _linked_in_all_places(values: Sequence[Comparable], policy: Policy) -> Iterator[list[Comparable]]:
    """Yield groups of at least two `values` whose numbers are linked at every place; all values have the same skeleton.

    Numbers are linked if they are near each other, or if a chain of near numbers joins them.
    """
    groups: defaultdict[Hashable, list[Comparable]] = defaultdict(list)
    numbers = zip(*(numbers_in(value, policy) for value in values), strict=True)
    links = [_components(column, policy) for column in numbers] if len(values) > 1 else []
    for place, value in enumerate(values):
        groups[tuple([components[place] for components in links])].append(value)
    yield from (group for group in groups.values() if len(group) > 1)


def _components(numbers: Sequence[Number], policy: Policy) -> list[int]:
    """Return an int for each number.

    Numbers that nearness links, directly or through other numbers, have the same int.
    """
    order = sorted(range(len(numbers)), key=numbers.__getitem__)
    components = component_representatives(_links([numbers[place] for place in order], policy))
    by_place = {place: components.get(rank, rank) for rank, place in enumerate(order)}
    return [by_place[place] for place in range(len(numbers))]


def _links(numbers: Sequence[Number], policy: Policy) -> Iterator[tuple[int, int]]:
    """Yield pairs of positions in the sorted `numbers`.

    The pairs link all numbers that are near each other, directly or through other pairs.
    """
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
    """Yield positions of numbers, positions of numbers that may be near them, and the tolerance between both.

    Different tolerances hold for floats, for exact numbers, and for Decimals that may be rounded.
    """
    decimals = list(map(decimals_of, numbers))
    places = [place for place, number in enumerate(numbers) if math.isfinite(as_float(number))]
    floats = [place for place in places if decimals[place] is None]
    fractions = [place for place in places if decimals[place]]
    if any(exact_tolerance(policy)):
        width = exact_tolerance(policy)
        yield sorted([*floats, *fractions]), places, width
    if floats:
        whole_places = {place for place in places if is_whole(numbers[place])}
        width = float_tolerance(policy)
        yield floats, [place for place in places if place not in whole_places or decimals[place] is None], width
        yield [place for place in floats if place not in whole_places], sorted(whole_places), width
    if not rounds(policy):
        return
    by_decimals: defaultdict[int, list[int]] = defaultdict(list)
    for place in fractions:
        by_decimals[decimals[place] or 0].append(place)
    rounded = [place for place in fractions if (decimals[place] or 0) >= ROUNDED_DECIMALS]
    for shared_decimals, sources in by_decimals.items():
        if shared_decimals >= ROUNDED_DECIMALS:
            yield sources, rounded, Tolerance(0.0, float(half_unit(shared_decimals)))
    quotients = [place for place in rounded if (decimals[place] or 0) >= QUOTIENT_DECIMALS]
    exact = [place for place in places if decimals[place] is not None] if quotients else []
    yield quotients, exact, Tolerance(QUOTIENT_REL, 0.0)


def _all_equal(gold: Sequence[Comparable], predicted: Sequence[Comparable], policy: Policy) -> bool:
    if len(gold) == len(predicted) == 1:
        return is_near(gold[0], predicted[0], policy)
    if len(gold) * len(predicted) > MAX_PAIRS:
        return False
    return all(is_near(x, y, policy) for x in gold for y in predicted)


def _one_to_one(gold: Sequence[Comparable], predicted: Sequence[Comparable], policy: Policy) -> ValuePairs:
    """Return pairs of equal gold and predicted values, in which each value is used once.

    Pairs of a text and a quantity come first, then pairs of two quantities; two texts are never paired.
    """
    pairs: ValuePairs = []
    for gold_texts, predicted_texts in ((True, False), (False, True), (False, False)):
        paired_ids = {id(value) for pair in pairs for value in pair}
        gold_values, predicted_values = (
            [value for value in values if isinstance(value, QuantityText) is texts and id(value) not in paired_ids]
            for values, texts in ((gold, gold_texts), (predicted, predicted_texts))
        )
        are_nested = any(isinstance(quantity_of(value), Nested) for value in gold_values[:1])
        pairs += (_most_pairs if are_nested else _first_fits)(gold_values, predicted_values, policy)
    return pairs


def _most_pairs(gold: Sequence[Comparable], predicted: Sequence[Comparable], policy: Policy) -> ValuePairs:
    """Return as many pairs of equal lists or mappings as possible; none if there are more than MAX_PAIRS candidates."""
    if not predicted or len(gold) * len(predicted) > MAX_PAIRS:
        return []
    fits = [[place for place, y in enumerate(predicted) if is_near(x, y, policy)] for x in gold]
    return [(gold[row], predicted[place]) for row, place in maximum_matching(fits, len(predicted))]


def _first_fits(gold: Sequence[Comparable], predicted: Sequence[Comparable], policy: Policy) -> ValuePairs:
    """Return pairs of equal values from two sorted sides, pairing each gold value with the first free value that fits.

    In sorted order, this leaves the fewest values without a partner.
    """
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


class CodedColumns(NamedTuple):
    """The columns of gold and of predicted as ints."""

    gold: list[Codes]
    predicted: list[Codes]

    def translated(self, codes: Mapping[int, int]) -> CodedColumns:
        """Return the columns with the codes that are keys of `codes` replaced."""
        return CodedColumns(_translated(self.gold, codes), _translated(self.predicted, codes))


class ColumnPair(NamedTuple):
    """A gold column and a predicted column as ints, coded under the gold column's tolerance, as in `CodedTables`.

    `exact`, `equal` and `paired` each contain the gold column, then the predicted column.
    """

    exact: Sequence[Codes]
    equal: Sequence[Codes]
    paired: Sequence[Codes]
    chains: Mapping[int, int]


class CodedTables:
    """The canonical rows of both tables as columns of ints, under a policy; each kind of code joins more values.

    - `exact` codes are the same for the same canonical value.
    - `equal` codes are also the same for values that are all equal to each other.
    - `paired` codes are also the same for two values of a chain that are paired one to one.
    - `chains` maps the `equal` code of a value in a chain to a code of the chain. For such values, equal codes do not
      decide: rows with them are compared value by value.

    `column_policies` are those of gold columns with their own tolerance, by position; `pair_of` has their codes.
    """

    def __init__(
        self, gold: Table, predicted: Table, rows: tuple[Rows, Rows], policy: Policy, column_policies: dict[int, Policy]
    ) -> None:
        self.rows, self.policy, self.column_policies = rows, policy, column_policies
        self._codes: defaultdict[Hashable, int] = defaultdict(count().__next__)
        widths = len(gold.columns), len(predicted.columns)
        self.exact = CodedColumns(*(self._encoded(side, width) for side, width in zip(rows, widths, strict=True)))
        self._merge = merge_close_values(self._codes, columns_of(rows[0]), columns_of(rows[1]), policy)
        self.equal = self.exact.translated(self._merge.equal)
        self.paired = self.equal.translated(self._merge.paired)
        self.chains = self._merge.chains
        self.texts = self._merge.texts
        self._column_pairs: dict[tuple[int, int], ColumnPair] = {}

    def _encoded(self, rows: Rows, width: int) -> list[Codes]:
        code = self._codes.__getitem__
        return [list(map(code, column)) for column in columns_of(rows)] if rows else [[] for _ in range(width)]

    @property
    def has_chains(self) -> bool:
        """Whether some values form a chain under the policy of all columns; codes alone do not decide equality then."""
        return bool(self.chains)

    def policy_of(self, gold_column: int) -> Policy:
        """Return the policy of a gold column: its own, else that of all columns."""
        return self.column_policies.get(gold_column, self.policy)

    def read_cell(self, value: Hashable) -> Hashable:
        """Return a text as a `QuantityText` if it spells a quantity that columns contain.

        Return any other value unchanged.
        """
        return self.texts.get(value, value)

    def pair_of(self, gold_column: int, predicted_column: int) -> ColumnPair:
        """Return the codes of a gold column and a predicted column under the gold column's tolerance."""
        if gold_column not in self.column_policies:
            exact, equal, paired = (
                [coded.gold[gold_column], coded.predicted[predicted_column]]
                for coded in (self.exact, self.equal, self.paired)
            )
            return ColumnPair(exact, equal, paired, self.chains)
        if (gold_column, predicted_column) not in self._column_pairs:
            columns = [row[gold_column] for row in self.rows[0]], [row[predicted_column] for row in self.rows[1]]
            codes = {value: self._codes[value] for value in chain(*columns)}
            merge = merge_close_values(codes, columns[:1], columns[1:], self.column_policies[gold_column])
            exact = [self.exact.gold[gold_column], self.exact.predicted[predicted_column]]
            self._column_pairs[gold_column, predicted_column] = ColumnPair(
                exact, _translated(exact, merge.equal), _translated(exact, merge.codes), merge.chains
            )
        return self._column_pairs[gold_column, predicted_column]

    def _merge_column(self, gold_column: int, codes: Mapping[Hashable, int]) -> Merge:
        """Return the merge of a gold column's values with all predicted values, under the gold column's tolerance."""
        gold, predicted = self.rows
        policy = self.column_policies[gold_column]
        return merge_close_values(codes, [[row[gold_column] for row in gold]], columns_of(predicted), policy)

    @cached_property
    def paired_anywhere(self) -> tuple[CodedColumns, bool]:
        """The `paired` codes for metrics that find a gold cell in any predicted column, and whether there are chains.

        Values of gold columns with their own tolerance are merged under that tolerance, too.
        """
        paired, has_chains = self.paired, self.has_chains
        for place in self.column_policies:
            codes: dict[Hashable, int] = {}
            for rows, columns in zip(self.rows, paired, strict=True):
                for values, column in zip(columns_of(rows), columns, strict=True):
                    codes.update(zip(values, column, strict=True))
            merge = self._merge_column(place, codes)
            paired = paired.translated(merge.codes)
            has_chains = has_chains or bool(merge.chains)
        return paired, has_chains

    @cached_property
    def linked(self) -> CodedColumns:
        """Codes that are the same for all values that nearness links, under the policy of any column."""
        merges = [self._merge, *(self._merge_column(place, self._codes) for place in self.column_policies)]
        links = chain.from_iterable(chain(merge.equal.items(), merge.chains.items()) for merge in merges)
        return self.exact.translated(component_representatives(links))

    def overlap(self, gold_column: int, predicted_column: int) -> int:
        """Return how many distinct values of a gold column can be paired with equal values of a predicted column.

        No value is used twice.
        """
        if gold_column in self.column_policies:
            pair = self.pair_of(gold_column, predicted_column)
            gold, predicted = map(_distinct_values, pair.exact, pair.paired)
        else:
            gold, predicted = self._distinct[0][gold_column], self._distinct[1][predicted_column]
        small, large = (gold, predicted) if len(gold) <= len(predicted) else (predicted, gold)
        return sum(min(number, large.get(code, 0)) for code, number in small.items())

    @cached_property
    def distinct_counts(self) -> tuple[list[int], list[int]]:
        """The number of distinct values in each gold column, then in each predicted column."""
        gold, predicted = ([sum(column.values()) for column in side] for side in self._distinct)
        return gold, predicted

    @cached_property
    def _distinct(self) -> tuple[list[Mapping[int, int]], list[Mapping[int, int]]]:
        gold, predicted = (list(map(_distinct_values, *sides)) for sides in zip(self.exact, self.paired, strict=True))
        return gold, predicted

    def project(self, columns: tuple[int, ...]) -> tuple[list[CodedRow], dict[int, CodedRow]]:
        """Return gold's rows, and predicted's rows by position, as `equal` codes in the order of gold's columns.

        Gold column i is aligned with predicted column `columns[i]`. With `duplicates: ignore`, predicted rows that
        become the same without the other columns are kept once.
        """
        pairs = [self.pair_of(*place).equal for place in enumerate(columns)]
        gold, predicted = (transpose([pair[side] for pair in pairs], len(self.rows[side])) for side in (0, 1))
        positions: Iterable[int] = range(len(predicted))
        if self.policy.duplicates == "ignore" and len(columns) < len(self.exact.predicted):
            exact = transpose([self.exact.predicted[column] for column in columns], len(predicted))
            first: dict[CodedRow, int] = {}
            positions = [at for at, row in enumerate(exact) if first.setdefault(row, at) == at]
        return gold, {position: predicted[position] for position in positions}


def shared_values(gold: Rows, predicted: Rows, policy: Policy) -> Mapping[Hashable, Hashable]:
    """Return, for values that equal another value without being the same, the value that stands for both.

    Other values are left out.
    """
    values = list(dict.fromkeys(chain.from_iterable(chain(gold, predicted))))
    codes = {value: code for code, value in enumerate(values)}
    merge = merge_close_values(codes, columns_of(gold), columns_of(predicted), policy)
    return {values[code]: values[shared] for code, shared in merge.codes.items()}


def columns_of(rows: Rows) -> Iterable[tuple[Hashable, ...]]:
    """Return the columns of rows; without rows there are none."""
    return zip(*rows, strict=True)


def _translated(columns: list[Codes], codes: Mapping[int, int]) -> list[Codes]:
    return [[codes.get(code, code) for code in column] for column in columns] if codes else columns


def transpose(columns: Sequence[Codes], rows: int) -> list[CodedRow]:
    """Return columns as rows; without columns, return `rows` empty rows."""
    return list(zip(*columns, strict=True)) if columns else [()] * rows


def _distinct_values(exact: Codes, paired: Codes) -> Mapping[int, int]:
    """Return, for each `paired` code of a column, how many distinct canonical values have it.

    `exact` and `paired` are the codes of the column's cells.
    """
    if exact is paired:
        return dict.fromkeys(exact, 1)
    return Counter(code for _, code in set(zip(exact, paired, strict=True)))
