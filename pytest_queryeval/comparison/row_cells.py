"""Rows as codes of their cells, for metrics that look for a cell anywhere in the other side's row."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import itemgetter
from typing import TypeAlias

from pytest_queryeval.comparison.assignment import most_pairs
from pytest_queryeval.comparison.canonical import is_near
from pytest_queryeval.comparison.coded_tables import Rows, columns_of, transpose
from pytest_queryeval.comparison.comparables import Comparable, is_comparable, kind_of, quantity_of
from pytest_queryeval.comparison.connected import connected
from pytest_queryeval.comparison.numbers import Number, as_float, widest
from pytest_queryeval.comparison.pairing import Pair
from pytest_queryeval.comparison.temporal import Temporal
from pytest_queryeval.comparison.tolerance import Texts
from pytest_queryeval.core.policy import Policy

Codes: TypeAlias = tuple[int, ...]
Tokens: TypeAlias = tuple[Hashable, ...]
Values: TypeAlias = dict[tuple[Hashable, Comparable], int]
CodedNumber: TypeAlias = tuple[Number, Comparable, int]
# Values compared with each other, and cells that all rows together may share with cells that they are near. Past either
# limit, values are paired one to one, as `tolerance` does for columns.
MAX_NEAR_PAIRS = 1_000_000
MAX_REACH = 5_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RowCells:
    """Gold's rows: a token for each cell, no two of a row the same, and the tokens of predicted that equal some cell.

    A token is in `reach` once for each cell that a predicted row with this token shares. `reach` is the same object as
    `cells` where tokens equal only themselves.
    """

    width: int
    cells: Sequence[Tokens]
    reach: Sequence[Tokens]

    def only(self, positions: Sequence[int]) -> RowCells:
        """Return the rows at these positions."""
        cells = [self.cells[at] for at in positions]
        reach = cells if self.reach is self.cells else [self.reach[at] for at in positions]
        return RowCells(width=self.width, cells=cells, reach=reach)


def merged_rows(pair: Pair) -> tuple[list[Codes], list[Codes]]:
    """Return gold's rows and predicted's as codes, equal for cells that are equal under the policy."""
    (gold, predicted), _ = pair.coded.paired_anywhere
    return transpose(gold, len(pair.gold_rows)), transpose(predicted, len(pair.predicted_rows))


def distinct_row_cells(pair: Pair) -> tuple[RowCells, list[Tokens], bool]:
    """Return gold's distinct rows, predicted's, and whether all equal cells were found.

    A row counts once, at its first position. A cell equals at most one cell of a row, so the second of two cells of one
    value has a token of its own.
    """
    exact, width = pair.coded.exact, len(pair.gold.columns)
    paired, has_chains = pair.coded.paired_anywhere
    if has_chains and (near := _near_codes(pair)) is not None:
        exact_rows = _distinct(exact.gold, exact.gold), _distinct(exact.predicted, exact.predicted)
        if tokens := _near_tokens(*exact_rows, near):
            gold_tokens, reach, predicted_tokens = tokens
            return RowCells(width=width, cells=gold_tokens, reach=reach), predicted_tokens, True
    cells, predicted_cells = (list(map(_copies, _distinct(*side))) for side in zip(exact, paired, strict=True))
    return RowCells(width=width, cells=cells, reach=cells), predicted_cells, not has_chains


def _distinct(exact: Sequence[Sequence[int]], codes: Sequence[Sequence[int]]) -> list[Codes]:
    """Return the rows of `codes`, one for each of exactly the same cells."""
    rows: dict[Codes, Codes] = {}
    for exact_row, row in zip(zip(*exact, strict=True), zip(*codes, strict=True), strict=True):
        rows.setdefault(exact_row, row)
    return list(rows.values())


def _copies(codes: Iterable[Hashable]) -> Tokens:
    """Return a token for each code; every copy of a code has one of its own."""
    row = tuple(codes)
    if len(set(row)) == len(row):
        return row
    times: defaultdict[Hashable, int] = defaultdict(int)
    tokens: list[Hashable] = []
    for code in row:
        tokens.append((code, times[code]) if times[code] else code)
        times[code] += 1
    return tuple(tokens)


def _near_tokens(
    gold: Sequence[Codes], predicted: Sequence[Codes], near: Mapping[int, set[int]]
) -> tuple[list[Tokens], list[Tokens], list[Tokens]] | None:
    """Return gold's tokens, their reach, and predicted's tokens, where some cells equal others; None past MAX_REACH.

    The cells of a row that are linked by nearness make one token, since any of them may equal any of the other row's.
    """
    groups = connected((code, near_code) for code, near_codes in near.items() for near_code in near_codes)
    gold_parts, predicted_parts = ([_parts(row, groups) for row in side] for side in (gold, predicted))
    holders: defaultdict[int, set[Codes]] = defaultdict(set)
    for part in {part for _, linked in predicted_parts for part in linked}:
        for code in part:
            holders[code].add(part)
    reach: dict[Codes, Tokens] = {}
    reach_left = MAX_REACH
    for part in {part for _, linked in gold_parts for part in linked}:
        near_parts = {holder for code in part for near_code in near.get(code, ()) for holder in holders[near_code]}
        reach_left -= len(near_parts)
        if reach_left < 0:
            return None
        reach[part] = tuple(holder for holder in near_parts for _ in range(_most_equal(part, holder, near)))
    if sum(len(reach[part]) for _, linked in gold_parts for part in linked) > MAX_REACH:
        return None
    gold_reach = [
        (*_copies(alone), *chain.from_iterable(reach[part] for part in linked)) for alone, linked in gold_parts
    ]
    gold_tokens, predicted_tokens = (
        [(*_copies(alone), *linked) for alone, linked in side] for side in (gold_parts, predicted_parts)
    )
    return gold_tokens, gold_reach, predicted_tokens


def _parts(row: Codes, groups: Mapping[int, int]) -> tuple[list[int], list[Codes]]:
    """Return the codes of a row that equal only themselves, and the others as one sorted part for each group."""
    parts: defaultdict[int, list[int]] = defaultdict(list)
    alone = []
    for code in row:
        if code in groups:
            parts[groups[code]].append(code)
        else:
            alone.append(code)
    return alone, [tuple(sorted(part)) for part in parts.values()]


def _most_equal(gold: Codes, predicted: Codes, near: Mapping[int, set[int]]) -> int:
    """Return how many cells of two parts can be paired with an equal one."""
    if len(gold) == 1 or len(predicted) == 1:
        return 1
    fits = [[place for place, code in enumerate(predicted) if code in near.get(gold_code, ())] for gold_code in gold]
    return len(most_pairs(fits, len(predicted)))


def _near_codes(pair: Pair) -> dict[int, set[int]] | None:
    """Return the codes of the predicted values that each gold value equals; None past MAX_NEAR_PAIRS comparisons.

    A code stands for an integer and a float of the same value, and is near what either of them is near.
    """
    coded = pair.coded
    predicted = _values(pair.predicted_rows, coded.exact.predicted, coded.texts)
    moments: defaultdict[Temporal, list[tuple[Comparable, int]]] = defaultdict(list)
    integers: list[CodedNumber] = []
    fractions: list[CodedNumber] = []
    for (kind, value), code in predicted.items():
        quantity = quantity_of(value)
        if isinstance(quantity, Temporal):
            moments[quantity].append((value, code))
        else:
            (integers if kind is int else fractions).append((quantity, value, code))
    integers.sort(key=itemgetter(0))
    fractions.sort(key=itemgetter(0))
    near: defaultdict[int, set[int]] = defaultdict(set)
    visits = 0
    for policy, (kind, value), code in _gold_values(pair):
        quantity = quantity_of(value)
        if isinstance(quantity, Temporal):
            candidates: Iterable[tuple[Comparable, int]] = moments.get(quantity, ())
        else:
            groups = (fractions,) if kind is int else (fractions, integers)
            candidates = chain.from_iterable(_around(quantity, numbers, policy) for numbers in groups)
        for candidate, candidate_code in candidates:
            visits += 1
            if visits > MAX_NEAR_PAIRS:
                return None
            if is_near(value, candidate, policy):
                near[code].add(candidate_code)
    return near


def _gold_values(pair: Pair) -> Iterator[tuple[Policy, tuple[Hashable, Comparable], int]]:
    """Yield gold's values with their codes and the policy of their column: once for each tolerance that they have."""
    by_policy: defaultdict[Policy, list[int]] = defaultdict(list)
    for place in range(len(pair.gold.columns)):
        by_policy[pair.coded.policy_of(place)].append(place)
    for policy, places in by_policy.items():
        rows = [tuple([row[place] for place in places]) for row in pair.gold_rows]
        codes = [pair.coded.exact.gold[place] for place in places]
        for typed_value, code in _values(rows, codes, pair.coded.texts).items():
            yield policy, typed_value, code


def _values(rows: Rows, codes: Sequence[Sequence[int]], texts: Texts) -> Values:
    """Return the code of each value that may equal others, with its kind, given rows and the codes of their columns."""
    coded_values: Values = {}
    for values, column in zip(columns_of(rows), codes, strict=True):
        read_values = [texts.get(value, value) for value in values] if texts else values
        coded_values.update(
            {
                (kind_of(value), value): code
                for value, code in zip(read_values, column, strict=True)
                if is_comparable(value)
            }
        )
    return coded_values


def _around(number: Number, numbers: Sequence[CodedNumber], policy: Policy) -> Iterator[tuple[Comparable, int]]:
    """Yield values and codes of the sorted numbers that may be within the tolerance of a number."""
    middle = as_float(number)
    if not math.isfinite(middle):
        return
    reach = widest(policy).reach(middle)
    for place in range(bisect_left(numbers, middle - reach, key=itemgetter(0)), len(numbers)):
        candidate, value, code = numbers[place]
        if candidate > middle + reach:
            return
        yield value, code
