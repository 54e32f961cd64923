"""Which expectations an answer meets, and what is wrong if it does not meet one."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import cached_property, partial
from typing import Any, NamedTuple, TypeAlias

from pytest_queryeval.comparison.canonical import (
    canonical_rows,
    canonical_value,
    is_comparable,
    is_equal,
    quantity_in,
    read_text,
)
from pytest_queryeval.comparison.difference_texts import shown_cell
from pytest_queryeval.comparison.pairing import TablePair, table_pair
from pytest_queryeval.comparison.quantities import DAY, Temporal, as_float, widest_tolerance
from pytest_queryeval.core.case_report import ExpectationReport
from pytest_queryeval.core.errors import did_you_mean
from pytest_queryeval.core.expectation import Expectation, Rule
from pytest_queryeval.core.metric import FindUnmatched
from pytest_queryeval.core.model import Failure
from pytest_queryeval.core.table import IRI, Cell, Literal, Policy, Row, Table
from pytest_queryeval.text.formatting import and_more, pluralize, truncate

CELL_CHARACTERS = 40  # of a cell in a message
TEXT_CHARACTERS = 400  # of an expectation, and of what is wrong
MAX_MATCHED = 1_000  # characters of a value that a pattern is matched with
MAX_NAMED = 3  # rows and columns in a message
_NUMBERS = (int, float, Decimal)
NO_ROWS = "the answer has no rows"
_POSITION = re.compile(r"[0-9]{1,6}")
_NUMBER = re.compile(r"[-+]?[0-9]+(?:\.[0-9]+)?")
Numbered: TypeAlias = Sequence[tuple[int, Hashable]]  # values that are not NULL, with the positions of their rows


def check_expectations(
    expectations: Sequence[Expectation],
    predicted: Table,
    policy: Policy,
    unmatched: FindUnmatched,
    *,
    gold: Table | None = None,
    shows_cells: bool = True,
) -> list[ExpectationReport]:
    """Return for each expectation whether the answer meets it, and if not, what is wrong.

    Names in expectations are those of gold's columns if there is a gold answer, else those of the answer's columns. If
    `shows_cells` is false, no text quotes a cell of the answer.
    """
    answer = _Answer(predicted, gold, policy, unmatched, shows_cells)
    reports: list[ExpectationReport] = []
    for expectation in expectations:
        try:
            found = answer.problem(expectation)
        except _UnresolvedError as error:
            found = str(error)
        reports.append(
            {
                "name": expectation.name,
                "expected": truncate(expectation.text, TEXT_CHARACTERS),
                "holds": not found,
                "found": truncate(found, TEXT_CHARACTERS),
            }
        )
    return reports


def precedes(x: Cell, y: Cell, policy: Policy) -> bool:
    """Return whether a value comes before another: as a smaller number, an earlier time, or a text in code point order.

    Values that are equal under the policy, or that have no order, do not precede each other.
    """
    x_value, y_value = (canonical_value(cell, _ordering(policy)) for cell in (x, y))
    order = _order(quantity_in(x_value, policy), quantity_in(y_value, policy))
    return order == -1 and not is_equal(x_value, y_value, policy)


def _ordering(policy: Policy) -> Policy:
    """Return the policy by which values are ordered: `dates: strict` is replaced, since it gives dates no order."""
    return replace(policy, dates="by_value") if policy.dates == "strict" else policy


def places_of(column: str, names: Sequence[str]) -> list[int]:
    """Return the positions of the columns that a name stands for; a number that is no name is a position.

    Letter case is ignored if no name fits exactly, and so is a leading `?`.

    >>> places_of("Price", ("id", "price")), places_of("1", ("id", "price")), places_of("?id", ("id", "price"))
    ([1], [1], [0])
    """
    spellings = (column, column.removeprefix("?"))
    for fold in (str, str.casefold):
        for spelling in spellings:
            if places := [place for place, name in enumerate(names) if fold(name) == fold(spelling)]:
                return places
    return [int(column)] if _POSITION.fullmatch(column) and int(column) < len(names) else []


class _Column(NamedTuple):
    """A column of the predicted answer, by its position, with the policy that compares its values."""

    place: int
    policy: Policy
    """By which its values are compared."""


class _UnresolvedError(Exception):
    """A name stands for no column or for several, or an expectation cannot be checked; the message says which."""


class _Answer:
    """A predicted answer that expectations are checked on; its columns have the names of gold, if there is one."""

    def __init__(
        self, predicted: Table, gold: Table | None, policy: Policy, unmatched: FindUnmatched, shows_cells: bool
    ) -> None:
        self.predicted, self.gold, self.policy, self.unmatched = predicted, gold, policy, unmatched
        self._shows_cells = shows_cells

    def problem(self, expectation: Expectation) -> str:
        """Return what is wrong with the answer by an expectation; empty if it is met.

        Raise `_UnresolvedError` if the expectation cannot be checked.
        """
        if not self.predicted.rows and expectation.rule != "rows":
            return NO_ROWS
        return _CHECKS[expectation.rule](self, expectation)

    def column(self, name: str) -> _Column:
        """Return the predicted column that a name stands for: by gold's names if possible, else by the answer's.

        Raise `_UnresolvedError` if there is no such column, or if several have the name.
        """
        gold = self.gold
        if gold is not None and (aligned := self._aligned) is not None and (places := places_of(name, gold.columns)):
            return _Column(aligned[_only(places, name, "gold")], self._policy_at(places[0], gold))
        names = self.predicted.columns
        if not (places := places_of(name, names)):
            hint = did_you_mean(name, names)
            raise _UnresolvedError(f"the answer has no column '{name}'{hint}")
        return _Column(_only(places, name, "the answer"), self._policy_at(places[0], self.predicted))

    def _policy_at(self, place: int, names: Table) -> Policy:
        return self.policy.by_column(names).get(place, self.policy.without_columns())

    @cached_property
    def _aligned(self) -> tuple[int, ...] | None:
        """The predicted column for each gold column; None without gold or an alignment."""
        if self.gold is None:
            return None
        if not self.gold.rows:
            same = len(self.gold.columns) == len(self.predicted.columns)
            return tuple(range(len(self.gold.columns))) if same else None
        return table_pair(self.gold, self.predicted, self.policy).shown_columns

    @cached_property
    def rows(self) -> Sequence[tuple[Hashable, ...]]:
        """The rows of the predicted answer as canonical values."""
        return canonical_rows(self.predicted, self.policy)

    def values(self, place: int) -> Numbered:
        """Return the canonical values of a column that are not NULL, with the positions of their rows."""
        return [(number, row[place]) for number, row in enumerate(self.rows) if row[place] is not None]

    def names(self, places: Sequence[int]) -> str:
        """Return the names of the columns at these positions, in quotes; of many, the first MAX_NAMED."""
        return _listed([f"'{self.predicted.columns[place]}'" for place in places], "column")

    def breaks(self, expectation: Expectation, column: _Column, numbers: Sequence[int], why: str = "") -> str:
        """Return in words that the rows at the positions `numbers` break a rule, with the first row's cell.

        Empty for none. `why` is added to the cell.
        """
        if not numbers:
            return ""
        more = f", and {pluralize(len(numbers) - 1, 'more row')}" if len(numbers) > 1 else ""
        first = numbers[0]
        if not self._shows_cells:
            return f"row {first + 1:,} breaks it{more}"
        cell = self.cell(self.predicted.rows[first][column.place])
        return f"row {first + 1:,} has {_label(expectation.column)} {cell}{why}{more}"

    def cell(self, cell: Cell) -> str:
        """Return a cell for messages; a text that spells a number is in quotes."""
        shown = shown_cell(cell, CELL_CHARACTERS)
        return f'"{shown}"' if isinstance(cell, str) and _NUMBER.fullmatch(cell) else shown


def _only(places: Sequence[int], name: str, side: str) -> int:
    if len(places) > 1:
        raise _UnresolvedError(f"{side} has {len(places)} columns '{name}': write the position of one, from 0 on")
    return places[0]


def _label(column: str) -> str:
    return f"column {column}" if _POSITION.fullmatch(column) else column


def _listed(texts: Sequence[str], noun: str) -> str:
    return ", ".join(texts[:MAX_NAMED]) + and_more(len(texts) - MAX_NAMED, noun)


def _rows(answer: _Answer, expectation: Expectation) -> str:
    least, most = expectation.value
    number = len(answer.predicted.rows)
    fits = (least is None or least <= number) and (most is None or number <= most)
    return "" if fits else f"the answer has {pluralize(number, 'row')}"


def _columns(answer: _Answer, expectation: Expectation) -> str:
    width, allows_more = len(answer.predicted.columns), answer.policy.extra_columns == "allow"
    if isinstance(expectation.value, int):
        fits = width == expectation.value or (allows_more and width > expectation.value)
        return "" if fits else f"the answer has {pluralize(width, 'column')}"
    stated: dict[int, str] = {}
    for name in expectation.value:
        if (other := stated.setdefault(answer.column(name).place, name)) != name:
            return f"'{other}' and '{name}' are the same column of the answer"
    places = [*stated]
    if answer.policy.columns == "positional" and places != list(range(len(places))):
        return f"the columns of the answer are in another order: {answer.names(range(width))}"
    more = [place for place in range(width) if place not in places]
    return f"the answer also has {answer.names(more)}" if more and not allows_more else ""


def _contains(answer: _Answer, expectation: Expectation) -> str:
    whole_rows = [row for row in expectation.value if isinstance(row, tuple)]
    missing: list[Row | Mapping[str, Cell]] = [*_missing_rows(answer, whole_rows)] if whole_rows else []
    missing += [row for row in expectation.value if isinstance(row, dict) and not _occurs(answer, row)]
    if not missing:
        return ""
    shown = [_shown_row(answer, row) for row in missing]
    return f"{'no row is' if len(shown) == 1 else 'missing rows:'} {_listed(shown, 'row')}"


def _shown_row(answer: _Answer, row: Row | Mapping[str, Cell]) -> str:
    if isinstance(row, Mapping):
        return f"{{{', '.join(f'{name}: {answer.cell(cell)}' for name, cell in row.items())}}}"
    return f"({', '.join(map(answer.cell, row))})"


def _missing_rows(answer: _Answer, rows: list[Row]) -> Iterator[Row]:
    """Yield the given rows that the answer lacks under the best alignment; equal rows must be there as often.

    Raise `_UnresolvedError` if the answer has a wrong number of columns.
    """
    policy, width, needed = answer.policy, len(answer.predicted.columns), len(rows[0])
    if needed > width or (needed < width and policy.extra_columns == "reject"):
        raise _UnresolvedError(
            f"the answer has {pluralize(width, 'column')}, a row of `contains` {pluralize(needed, 'cell')}"
        )
    named = answer.gold if answer.gold is not None and len(answer.gold.columns) == needed else None
    if named is None and policy.columns == "by_name":
        policy = replace(policy, columns="positional")
    stated = Table(columns=(named or answer.predicted).columns[:needed], rows=rows)
    candidates = replace(answer.predicted, rows=_candidates(answer, rows, policy))
    pair = TablePair(stated, candidates, policy)
    alignment = pair.alignment if candidates.rows else None
    missing = range(len(rows)) if alignment is None else pair.unpaired(alignment.columns).gold
    yield from (rows[position] for position in missing)


def _candidates(answer: _Answer, rows: Sequence[Row], policy: Policy) -> list[Row]:
    """Return the rows of the answer that may equal one of `rows`; equal rows at most as often as there are `rows`."""
    found: dict[int, None] = {}
    loosest, is_fixed = policy.loosest(), policy.columns == "positional" or answer.predicted.is_graph
    for row in rows:
        positions: Sequence[int] = range(len(answer.rows))
        for place, cell in enumerate(row):
            is_same = _equals(canonical_value(cell, policy), loosest)
            if is_fixed:
                positions = [position for position in positions if is_same(answer.rows[position][place])]
            else:
                positions = [position for position in positions if any(map(is_same, answer.rows[position]))]
        found.update(dict.fromkeys(positions))
    times: Counter[tuple[Hashable, ...]] = Counter()
    candidates: list[Row] = []
    for position in sorted(found):
        times[answer.rows[position]] += 1
        if times[answer.rows[position]] <= len(rows):
            candidates.append(answer.predicted.rows[position])
    return candidates


def _occurs(answer: _Answer, row: Mapping[str, Cell]) -> bool:
    """Return whether a row of the answer has these cells, given by the names of columns."""
    columns = [answer.column(name) for name in row]
    wanted = [canonical_value(cell, column.policy) for cell, column in zip(row.values(), columns, strict=True)]
    tests = [(column.place, _equals(value, column.policy)) for value, column in zip(wanted, columns, strict=True)]
    return any(all(test(values[place]) for place, test in tests) for values in answer.rows)


def _equals(wanted: Hashable, policy: Policy) -> Callable[[Hashable], bool]:
    """Return a test whether a canonical value equals `wanted`, which rejects most other values quickly."""
    quantity = quantity_in(wanted, policy)
    if not is_comparable(quantity):
        return lambda value: bool(value == wanted)  # others are equal only if they are the same
    is_number = isinstance(quantity, _NUMBERS)
    number = as_float(quantity) if isinstance(quantity, _NUMBERS) else 0.0
    reach = widest_tolerance(policy).reach(number) if is_number and math.isfinite(number) else math.inf

    def test(value: Hashable) -> bool:
        if is_number and (value is None or type(value) is str):
            return False
        if is_number and isinstance(value, _NUMBERS) and abs(as_float(value) - number) > reach:
            return False
        return is_equal(wanted, value, policy)

    return _remembered(test)


def _remembered(test: Callable[[Hashable], bool]) -> Callable[[Hashable], bool]:
    """Return the same test, with the result for each value kept."""
    results: dict[Hashable, bool] = {}

    def remembered(value: Hashable) -> bool:
        if value not in results:
            results[value] = test(value)
        return results[value]

    return remembered


def _limit(answer: _Answer, expectation: Expectation, *, wrong: int) -> str:
    """Return what is wrong with a column by `min` or `max`; empty if nothing is.

    `wrong` is the order of a value that breaks the limit: -1 for `min`, 1 for `max`.
    """
    column = answer.column(expectation.column)
    policy = _ordering(column.policy)
    limit = canonical_value(expectation.value, policy)
    quantity = quantity_in(limit, policy)
    orders: dict[Hashable, int | None] = {}
    for _, value in (numbered := answer.values(column.place)):
        if value not in orders:
            order = _order(quantity_in(_dated(value), policy), quantity)
            orders[value] = 0 if order == wrong and is_equal(_dated(value), limit, policy) else order
    beyond = [number for number, value in numbered if orders[value] in (None, wrong)]
    is_unordered = bool(beyond) and orders[answer.rows[beyond[0]][column.place]] is None
    why = f", which cannot be compared with {answer.cell(expectation.value)}" if is_unordered else ""
    return _no_values(numbered) or answer.breaks(expectation, column, beyond, why)


def _dated(value: Hashable) -> Hashable:
    """Return the text of a canonical date under `dates: strict`; return any other value unchanged."""
    match value:
        case ("moment", str() as text):
            return text
    return value


def _no_values(numbered: Numbered) -> str:
    return "" if numbered else "the column has only NULL"


def _in(answer: _Answer, expectation: Expectation) -> str:
    column = answer.column(expectation.column)
    allowed = [canonical_value(cell, column.policy) for cell in expectation.value]
    same = frozenset(allowed)
    near = [item for item in allowed if is_comparable(read_text(item, column.policy))]  # others equal only the same
    is_allowed = _remembered(lambda value: value in same or any(is_equal(value, item, column.policy) for item in near))
    numbered = answer.values(column.place)
    others = [number for number, value in numbered if not is_allowed(value)]
    return _no_values(numbered) or answer.breaks(expectation, column, others)


def _not_null(answer: _Answer, expectation: Expectation) -> str:
    column = answer.column(expectation.column)
    nulls = [number for number, row in enumerate(answer.rows) if row[column.place] is None]
    return answer.breaks(expectation, column, nulls)


def _unique(answer: _Answer, expectation: Expectation) -> str:
    column = answer.column(expectation.column)
    numbered = answer.values(column.place)
    first: dict[Hashable, int] = {}
    repeated = [number for number, value in numbered if first.setdefault(value, number) != number]
    why = f", as row {first[answer.rows[repeated[0]][column.place]] + 1:,} has" if repeated else ""
    return _no_values(numbered) or answer.breaks(expectation, column, repeated, why)


def _matches(answer: _Answer, expectation: Expectation) -> str:
    column, pattern = answer.column(expectation.column), expectation.value
    if column.policy.case == "ignore":
        pattern = re.compile(pattern.pattern, pattern.flags | re.IGNORECASE)
    cells = [(number, row[column.place]) for number, row in enumerate(answer.predicted.rows)]
    texts = [(number, _text(cell, column.policy)) for number, cell in cells if cell is not None]
    unmatched = answer.unmatched(pattern, {text for _, text in texts if len(text) <= MAX_MATCHED})
    if isinstance(unmatched, Failure):
        raise _UnresolvedError(
            f"the pattern cannot be tried: {unmatched.message}: write one without nested repetitions"
        )
    others = [number for number, text in texts if len(text) > MAX_MATCHED or text in unmatched]
    is_long = bool(others) and len(dict(texts)[others[0]]) > MAX_MATCHED
    why = f", longer than {MAX_MATCHED:,} characters" if is_long else ""
    return _no_values(texts) or answer.breaks(expectation, column, others, why)


def _text(cell: Cell, policy: Policy) -> str:
    match cell:
        case str():
            text: str = cell
        case IRI(iri):
            text = iri
        case Literal(lexical):
            text = lexical
        case _:
            text = shown_cell(cell, MAX_MATCHED + 1)
    return " ".join(text.split()) if policy.whitespace == "ignore" else text


def _order(x: Hashable, y: Hashable) -> int | None:
    """Return -1, 0 or 1 if x is before, equal to or after y; None if they have no order.

    Numbers, points in time and texts have an order among themselves.
    """
    if isinstance(x, _NUMBERS) and isinstance(y, _NUMBERS):
        return _sign(x, y)
    if isinstance(x, Temporal) and isinstance(y, Temporal):
        return _temporal_order(x, y)
    if isinstance(x, str) and isinstance(y, str):
        return _sign(x, y)
    return None


def _temporal_order(x: Temporal, y: Temporal) -> int | None:
    """Return the order of two points in time or durations as `_order` does; a date is compared with a moment's day.

    None for different kinds, and for durations of months and seconds that may have any order.
    """
    kinds = {x.kind, y.kind}
    if kinds == {"date", "datetime"}:
        return _sign(x.seconds // DAY, y.seconds // DAY)
    if len(kinds) > 1 or (x.months != y.months and (x.seconds, x.fraction) != (y.seconds, y.fraction)):
        return None
    keys = [(value.months, value.seconds, value.fraction) for value in (x, y)]
    if x.negative or y.negative:
        return _sign(not x.negative, not y.negative) or _sign(keys[1], keys[0])
    return _sign(*keys)


def _sign(x: Any, y: Any) -> int:
    return int(x > y) - int(x < y)


_CHECKS: Mapping[Rule, Callable[[_Answer, Expectation], str]] = {
    "rows": _rows,
    "columns": _columns,
    "contains": _contains,
    "min": partial(_limit, wrong=-1),
    "max": partial(_limit, wrong=1),
    "in": _in,
    "not_null": _not_null,
    "unique": _unique,
    "matches": _matches,
}
