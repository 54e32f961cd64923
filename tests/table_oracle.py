"""Scores of two tables by their definitions in equality.md and metrics.md of the docs, simple and slow.

It knows nothing of the package but the types of cells. Every order of columns is tried, and every pairing of rows, of
values and of cells. Rows that are exactly equal are paired first. If they differ in their types, as 1 and 1.0 do, the
rules leave open which of them are paired: then `is_open` is true, and `exact_first` gives one of several scores.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import date, datetime, time
from decimal import Decimal
from fractions import Fraction
from functools import cache
from itertools import chain, permutations
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment

from pytest_queryeval.core.table import ColumnTolerance, FrozenMapping, Literal, Policy, Table, Tie

Cell = Any
Row = tuple[Cell, ...]
Columns = tuple[int, ...]
CellsEqual = Callable[[Cell, Cell, Policy], bool]
XSD = "http://www.w3.org/2001/XMLSchema#"
NUMBERS = (int, float, Decimal)
SPELLED_NUMBER = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?", re.ASCII)


# Cells


def cells_equal(x: Cell, y: Cell, policy: Policy = Policy()) -> bool:  # noqa: B008 (immutable)
    """Return whether two cells are equal under a policy. Blank nodes are compared by their labels."""
    if policy.rdf_terms == "strict" and isinstance(x, Literal) | isinstance(y, Literal):
        if _datatype(x) != _datatype(y):
            return False
        policy = replace(policy, text_numbers=False)
    x, y = (_of_day(_value(cell, policy), policy) for cell in (x, y))
    if x is None or y is None:
        return x is y
    if isinstance(x, NUMBERS) and isinstance(y, NUMBERS):
        return _numbers_equal(x, y, policy)
    if isinstance(x, str) and isinstance(y, str):
        return _folded(x, policy) == _folded(y, policy)
    if isinstance(x, str) or isinstance(y, str):
        text, value = (x, y) if isinstance(x, str) else (y, x)
        return _text_equals(text if policy.whitespace == "keep" else " ".join(text.split()), value, policy)
    if isinstance(x, tuple) and isinstance(y, tuple):
        return len(x) == len(y) and all(cells_equal(left, right, policy) for left, right in zip(x, y, strict=True))
    if isinstance(x, FrozenMapping) and isinstance(y, FrozenMapping):
        return len(x) == len(y) and any(
            all(
                _keys_equal(left, right, policy) and cells_equal(x[left], y[right], policy)
                for left, right in zip(x, keys, strict=True)
            )
            for keys in permutations(y)
        )
    if policy.dates == "strict" and isinstance(x, date | time) and isinstance(y, date | time):
        return x.isoformat() == y.isoformat()
    return type(x) is type(y) and _zoned(x) == _zoned(y) and bool(x == y)


def exactly(cell: Cell, policy: Policy = Policy()) -> Hashable:  # noqa: B008 (immutable)
    """Return a key that is the same for cells that are the same value, without any tolerance."""
    if isinstance(cell, Literal):
        value = _value(cell, policy)
        if policy.rdf_terms == "strict" and any(_datatype(cell)):
            return exactly(value), _datatype(cell)
        return ("of a literal", _of_day(value, policy)) if isinstance(value, date) else exactly(value, policy)
    if policy.dates == "strict" and isinstance(cell, date | time):
        return "written", cell.isoformat()
    cell = _of_day(cell, policy)
    if isinstance(cell, NUMBERS):
        return Fraction(cell) if math.isfinite(cell) else str(float(cell))
    if isinstance(cell, str):
        return "text", _folded(cell, policy)
    if isinstance(cell, tuple):
        return tuple(exactly(part, policy) for part in cell)
    if isinstance(cell, FrozenMapping):
        return frozenset((_key_exactly(key, policy), exactly(value, policy)) for key, value in cell.items())
    return type(cell), cell


def _of_day(cell: Cell, policy: Policy) -> Cell:
    """Return the date instead of a timestamp at its midnight, under `dates: midnight`."""
    if policy.dates == "midnight" and isinstance(cell, str):
        return re.sub(r"^(\d{4}-\d\d-\d\d)[ T]00:00(:00(\.0+)?)?$", r"\1", cell)
    is_naive = policy.dates == "midnight" and isinstance(cell, datetime) and cell.tzinfo is None
    return cell.date() if is_naive and cell.time() == time() else cell


def _key_exactly(key: Cell, policy: Policy) -> Hashable:
    return key if isinstance(key, str) else exactly(key, policy)


def _value(cell: Cell, policy: Policy) -> Cell:
    """Return the value of a literal as Python has it; any other cell unchanged."""
    if not isinstance(cell, Literal):
        return cell
    if policy.dates == "strict" and cell.datatype.removeprefix(XSD) in ("date", "dateTime"):
        return cell.lexical
    match cell.datatype.removeprefix(XSD):
        case "integer" | "long" | "byte":
            return int(cell.lexical)
        case "decimal":
            return Decimal(cell.lexical)
        case "double" | "float":
            return float(cell.lexical.replace("INF", "inf"))
        case "boolean":
            return cell.lexical in ("true", "1")
        case "dateTime":
            return datetime.fromisoformat(cell.lexical)
        case "date":
            return date.fromisoformat(cell.lexical)
    return cell.lexical


def _datatype(cell: Cell) -> tuple[str, str]:
    return (cell.datatype, cell.language) if isinstance(cell, Literal) else ("", "")


def _folded(text: str, policy: Policy) -> str:
    if policy.whitespace == "ignore":
        text = " ".join(text.split())
    return text.casefold() if policy.case == "ignore" else text


def _text_equals(text: str, value: Cell, policy: Policy) -> bool:
    """Return whether a text spells a value of another type."""
    if isinstance(value, tuple | FrozenMapping):
        return cells_equal(_json(text), value, policy)
    if isinstance(value, date | time):
        return policy.dates != "strict" and _reads_as(text, value)
    if isinstance(value, NUMBERS) and policy.text_numbers and SPELLED_NUMBER.fullmatch(text):
        return _numbers_equal(_number(text), value, policy)
    return False


def _number(text: str) -> Cell:
    if text.removeprefix("-").isdigit():
        return int(text)
    return float(text) if "e" in text.lower() else Decimal(text)


def _keys_equal(x: Cell, y: Cell, policy: Policy) -> bool:
    """Return whether two keys are equal: a text also equals the number that it spells, as JSON has only such keys."""
    if isinstance(x, str) and isinstance(y, str):
        return x == y
    if isinstance(x, str) != isinstance(y, str):
        text, value = (x, y) if isinstance(x, str) else (y, x)
        if isinstance(value, NUMBERS):
            return SPELLED_NUMBER.fullmatch(text) is not None and _numbers_equal(_number(text), value, policy)
    return cells_equal(x, y, policy)


def _json(text: str) -> Cell:
    try:
        value = json.loads(text, parse_float=Decimal)
    except ValueError:
        return None
    return Table(columns=("c",), rows=[(value,)]).rows[0][0] if isinstance(value, list | dict) else None


def _zoned(value: Cell) -> bool:
    return getattr(value, "tzinfo", None) is not None


def _reads_as(text: str, value: date | time) -> bool:
    try:
        if isinstance(value, datetime):
            read: date | time = datetime.fromisoformat(text)
            return len(text) > 10 and _zoned(read) == _zoned(value) and read == value
        read = date.fromisoformat(text) if isinstance(value, date) else time.fromisoformat(text)
    except ValueError:
        return False
    return read == value


def _numbers_equal(x: float | Decimal, y: float | Decimal, policy: Policy) -> bool:
    if math.isnan(x) or math.isnan(y):
        return math.isnan(x) and math.isnan(y)
    if math.isinf(x) or math.isinf(y):
        return x == y
    exact, second = Fraction(x), Fraction(y)
    distance, larger = abs(exact - second), max(abs(exact), abs(second))
    set_width = max(_written(policy.rel or 0) * larger, _written(policy.abs or 0))
    if isinstance(x, float) or isinstance(y, float):
        value = x if isinstance(x, float) else y
        are_whole = exact.denominator == second.denominator == 1
        is_one_float = not (isinstance(x, float) and isinstance(y, float))
        if is_one_float and are_whole and abs(value) < 2**53:
            return distance <= set_width
        rel, span = (1e-6 if policy.rel is None else policy.rel), (1e-9 if policy.abs is None else policy.abs)
        if not is_one_float:
            return abs(x - y) <= max(rel * max(abs(x), abs(y)), span)  # type: ignore[operator]
        return distance <= max(_written(rel) * larger, _written(span))
    places = sorted((_places(x), _places(y)))
    if distance == 0 or (places[1] and distance <= set_width):
        return True
    if policy.rel is not None and policy.abs is not None:
        return False
    if places[0] >= 6 and distance <= Fraction(1, 2 * 10 ** places[0]):
        return True
    return places[1] >= 12 and distance <= Fraction(1, 10**15) * larger


def _written(number: float) -> Fraction:
    return Fraction(repr(number))


def _places(number: float | Decimal) -> int:
    """Return how many decimals are written."""
    return len(f"{number:f}".partition(".")[2]) if isinstance(number, Decimal) else 0


def remembered(equal: CellsEqual) -> CellsEqual:
    """Compare each two cells once: fractions are slow."""
    verdicts: dict[Hashable, bool] = {}

    def of_cells(x: Cell, y: Cell, policy: Policy) -> bool:
        key = type(x), repr(x), type(y), repr(y), policy
        if key not in verdicts:
            verdicts[key] = equal(x, y, policy)
        return verdicts[key]

    return of_cells


# Pairs of rows, values and cells


def most_pairs(fits: Sequence[Sequence[int]]) -> int:
    """Return how many one-to-one pairs there can be, given the partners of each (Kuhn's algorithm)."""
    partner: dict[int, int] = {}

    def find(left: int, seen: set[int]) -> bool:
        for place in fits[left]:
            if place not in seen:
                seen.add(place)
                if place not in partner or find(partner[place], seen):
                    partner[place] = left
                    return True
        return False

    return sum(find(left, set()) for left in range(len(fits)))


class Counts(NamedTuple):
    """How much of predicted is right and wrong, and how much of gold it lacks."""

    tp: float
    fp: float
    fn: float

    @property
    def precision(self) -> float:
        return _share(self.tp, of=sum(self[:2]), other=sum(self[::2]))

    @property
    def recall(self) -> float:
        return _share(self.tp, of=sum(self[::2]), other=sum(self[:2]))

    @property
    def f1(self) -> float:
        both_sides = sum(self[:2]) + sum(self[::2])
        return _share(2 * self.tp, of=both_sides, other=both_sides)


def _share(part: float, *, of: float, other: float) -> float:
    """0/0 is 1 if both sides are empty, else 0."""
    if of == 0:
        return 1.0 if other == 0 else 0.0
    return part / of


class Oracle:
    """Everything that the definitions say about a gold and a predicted table under a policy."""

    def __init__(
        self,
        gold: Table,
        predicted: Table,
        policy: Policy,
        equal: CellsEqual = cells_equal,
        *,
        exact_first: bool = True,
    ) -> None:
        self.gold, self.predicted, self.policy, self._equal, self._exact_first = (
            gold,
            predicted,
            policy,
            equal,
            exact_first,
        )
        own = {tolerance.name.casefold(): tolerance for tolerance in policy.column_numbers}
        names = [name.casefold() for name in gold.columns]
        plain = replace(policy, column_numbers=())
        self.policies = [_with_tolerance(policy, own[name]) if name in own else plain for name in names]
        self.gold_rows, self.predicted_rows = self._rows(gold.rows), self._rows(predicted.rows)

    def _rows(self, rows: Iterable[Row]) -> list[Row]:
        return self.distinct(rows) if self.policy.duplicates == "ignore" else list(rows)

    def distinct(self, rows: Iterable[Row]) -> list[Row]:
        first: dict[Hashable, Row] = {}
        for row in rows:
            first.setdefault(self.exact_row(row), row)
        return list(first.values())

    def exact_row(self, row: Row) -> tuple[Hashable, ...]:
        return tuple(exactly(cell, self.policy) for cell in row)

    def rows_equal(self, gold: Row, row: Row) -> bool:
        return all(map(self._equal, gold, row, self.policies))

    # Columns

    @property
    def alignments(self) -> Iterator[Columns]:
        """The predicted columns that gold's may have, in all ways that the policy allows."""
        a, b = len(self.gold.columns), len(self.predicted.columns)
        if self.policy.columns == "any":
            yield from permutations(range(b), a)
        elif self.policy.columns == "positional":
            yield from [tuple(range(a))] if a <= b else []
        else:
            free = [name.casefold() for name in self.predicted.columns]
            columns = []
            for name in self.gold.columns:
                if name.casefold() not in free:
                    return
                columns.append(free.index(name.casefold()))
                free[columns[-1]] = "\0"
            yield tuple(columns)

    def row_counts(self, columns: Columns) -> Counts:
        rows = self._rows(tuple(row[place] for place in columns) for row in self.predicted_rows)
        matched = self.matched(self.gold_rows, rows)
        return Counts(matched, len(rows) - matched, len(self.gold_rows) - matched)

    def matched(self, golds: Sequence[Row], rows: Sequence[Row]) -> int:
        """Return how many rows can be paired with an equal one, after those that are exactly equal have been."""
        left_golds, left_rows = golds, rows
        if self._exact_first:
            left_golds, left_rows = self._without_same(golds, rows, self.exact_row)
        fits = [[place for place, row in enumerate(left_rows) if self.rows_equal(gold, row)] for gold in left_golds]
        return len(golds) - len(left_golds) + most_pairs(fits)

    @property
    def is_open(self) -> bool:
        """Return whether cells of one value differ in their types."""
        tied = [row for tie in self.gold.ties or () for row in tie.rows]
        types: dict[Hashable, set[object]] = {}
        for cell in chain.from_iterable((*self.gold.rows, *tied, *self.predicted.rows)):
            types.setdefault(exactly(cell, self.policy), set()).add((type(cell), str(cell)))
        return any(len(kinds) > 1 for kinds in types.values())

    @staticmethod
    def _without_same(golds: Sequence[Any], others: Sequence[Any], key: Callable[[Any], Hashable]) -> tuple[list, list]:
        waiting = Counter(map(key, others))
        left_golds = []
        for gold in golds:
            if waiting[key(gold)]:
                waiting[key(gold)] -= 1
            else:
                left_golds.append(gold)
        left_others = []
        for other in reversed(others):
            if waiting[key(other)]:
                waiting[key(other)] -= 1
                left_others.append(other)
        return left_golds, left_others[::-1]

    def value_counts(self, column: int, other: int) -> Counts:
        """Return the counts of the distinct values of a gold and a predicted column."""
        golds = [row[column] for row in self.gold_rows]
        others = [row[other] for row in self.predicted_rows]

        def key(cell: Cell) -> Hashable:
            return exactly(cell, self.policy)

        golds, others = (list({key(cell): cell for cell in side}.values()) for side in (golds, others))
        left_golds, left_others = self._without_same(golds, others, key)
        equal = self._equal
        fits = [[p for p, y in enumerate(left_others) if equal(x, y, self.policies[column])] for x in left_golds]
        shared = len(golds) - len(left_golds) + most_pairs(fits)
        return Counts(shared, len(others) - shared, len(golds) - shared)

    @cache  # noqa: B019 (few, and small)
    def _entity(self, column: int, other: int) -> Counts:
        return self.value_counts(column, other)

    def entity_counts(self, columns: Columns) -> list[Counts]:
        """Return the counts of distinct values under an alignment: all are right where all rows match."""
        counts = [self._entity(*pair) for pair in enumerate(columns)]
        rows = self.row_counts(columns)
        return [Counts(c.tp + c.fn, 0, 0) for c in counts] if rows.fp == rows.fn == 0 else counts

    def best(self) -> list[Columns]:
        """Return the alignments with the highest row F1."""
        f1 = {columns: round(self.row_counts(columns).f1, 12) for columns in self.alignments}
        return [columns for columns in f1 if f1[columns] == max(f1.values())]

    # Whole tables

    def are_equal(self) -> bool:
        """Return whether the tables are equal under the policy: `execution_accuracy`."""
        policy, gold, predicted = self.policy, self.gold, self.predicted
        surplus = len(predicted.columns) - len(gold.columns)
        if surplus and not (surplus > 0 and policy.extra_columns == "allow"):
            return False
        if not gold.rows or not predicted.rows:
            return len(gold.rows) == len(predicted.rows)
        if policy.duplicates == "ignore":
            return any(self.row_counts(columns).f1 == 1 for columns in self.alignments)
        ties: Sequence[Tie] = [Tie(size=len(gold.rows), rows=tuple(gold.rows))]
        if policy.row_order == "strict":
            ties = [Tie(size=1, rows=(row,)) for row in gold.rows]
        elif policy.row_order == "auto" and gold.ties is not None:
            ties = gold.ties
        if sum(tie.size for tie in ties) != len(predicted.rows):
            return False
        return any(self._are_equal_in(ties, columns) for columns in self.alignments)

    def _are_equal_in(self, ties: Sequence[Tie], columns: Columns) -> bool:
        start = 0
        for tie in ties:
            rows = [tuple(row[place] for place in columns) for row in self.predicted.rows[start : start + tie.size]]
            if self.matched(tie.rows, rows) < tie.size:
                return False
            start += tie.size
        return True

    def cell_counts(self) -> Counts:
        """Return the counts of the cells of the i-th rows, in any column."""
        common = sum(self.common(gold, row) for gold, row in zip(self.gold_rows, self.predicted_rows, strict=False))
        least = int(not self.gold_rows or not self.predicted_rows)  # then a row without cells counts as one
        gold_size = len(self.gold_rows) * max(len(self.gold.columns), least)
        predicted_size = len(self.predicted_rows) * max(len(self.predicted.columns), least)
        return Counts(common, predicted_size - common, gold_size - common)

    def common(self, gold: Row, row: Row) -> int:
        """Return how many cells of two rows can be paired with an equal one."""
        equal, policies = self._equal, self.policies
        return most_pairs([[p for p, y in enumerate(row) if equal(x, y, policies[i])] for i, x in enumerate(gold)])

    def soft_counts(self) -> Counts:
        """Return the shares of cells of the best pairs of distinct rows, after those of the same cells."""
        golds, rows = self.distinct(self.gold.rows), self.distinct(self.predicted.rows)
        left_golds, left_rows = self._without_same(
            golds, rows, lambda row: frozenset(Counter(self.exact_row(row)).items())
        )
        common = (len(golds) - len(left_golds)) * len(self.gold.columns)
        if left_golds and left_rows:
            weights = np.array([[self.common(gold, row) for row in left_rows] for gold in left_golds])
            common += int(weights[linear_sum_assignment(weights, maximize=True)].sum())
        pairs, width = min(len(golds), len(rows)), len(self.gold.columns) or 1
        wrong, lacking = (pairs * len(side.columns) - common for side in (self.predicted, self.gold))
        return Counts(common / width, wrong / width + len(rows) - pairs, lacking / width + len(golds) - pairs)

    def subset_score(self) -> float:
        """Return the mean share of a predicted row's distinct values that the i-th gold row holds."""
        if not self.gold_rows or not self.predicted_rows:
            return float(len(self.gold_rows) == len(self.predicted_rows))
        pairs = zip(self.gold_rows, self.predicted_rows, strict=False)
        return sum(self._share(*map(self._as_set, pair)) for pair in pairs) / len(self.predicted_rows)

    def _share(self, gold: Row, row: Row) -> float:
        return self.common(gold, row) / len(row) if row else float(not gold)

    def _as_set(self, row: Row) -> Row:
        return tuple({exactly(cell, self.policy): cell for cell in row}.values())

    def value_overlap(self) -> float:
        """Return the share of gold's values, without NULL, that predicted has anywhere."""
        sides = (self.gold_rows, self.predicted_rows)
        golds, others = ([cell for row in rows for cell in row if cell is not None] for rows in sides)
        if not golds:
            return float(not others)
        left_golds, left_others = self._without_same(golds, others, lambda cell: exactly(cell, self.policy))
        strict = replace(self.policy, rel=0.0, abs=0.0, column_numbers=())
        fits = [[place for place, y in enumerate(left_others) if self._equal(x, y, strict)] for x in left_golds]
        return (len(golds) - len(left_golds) + most_pairs(fits)) / len(golds)


def mean_ratios(counts: Sequence[Counts]) -> tuple[float, float]:
    """Return the mean precision and the mean recall of columns; 1 without columns."""
    if not counts:
        return 1.0, 1.0
    return (
        sum(of_column.precision for of_column in counts) / len(counts),
        sum(of_column.recall for of_column in counts) / len(counts),
    )


def _with_tolerance(policy: Policy, own: ColumnTolerance) -> Policy:
    return replace(policy, rel=own.rel, abs=own.abs, column_numbers=())
