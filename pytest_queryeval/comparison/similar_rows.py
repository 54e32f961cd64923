"""Pairs of rows: by the columns that identify them, else by best match.

They agree in at least half of the columns. Fewer are enough where columns of equal names identify the rows of both
answers, and all rows of one answer are in the other.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import chain, combinations, compress
from math import isfinite, prod
from operator import eq, itemgetter, ne
from typing import NamedTuple, Protocol

from pytest_queryeval.comparison.canonical import XSD, is_equal
from pytest_queryeval.comparison.coded_tables import CodedRow
from pytest_queryeval.comparison.pairing import TablePair
from pytest_queryeval.comparison.quantities import is_whole
from pytest_queryeval.core.table import Cell, FrozenMapping, Literal

MAX_KEY_COLUMNS = 3
MAX_KEY_CELLS = 100_000  # that are read to find several columns that identify rows together
MAX_MATCHED = 100  # rows of each side of which the best match is looked for

MEASURES = (f"{XSD}decimal", f"{XSD}double", f"{XSD}float")  # datatypes of numbers that need not be whole


class SimilarRows(NamedTuple):
    """The positions of a gold row and a predicted row, and the positions of the gold columns in which they differ."""

    gold: int
    predicted: int
    columns: list[int]


class Compare(Protocol):
    """A function that compares a gold row with a predicted row."""

    def __call__(self, at: int, partner: int, most: int | None = None) -> SimilarRows | None:
        """Return the columns in which the gold row `at` and the predicted row `partner` differ.

        None if they are equal, or if they differ in more than `most` columns, by default half of the columns.
        """


class RowPairs(NamedTuple):
    """Pairs of rows that differ, and the positions of the gold columns that identify rows.

    `key` is empty if rows are paired by best match.
    """

    key: tuple[int, ...]
    rows: list[SimilarRows]


def similar_rows(
    tables: TablePair,
    columns: tuple[int, ...],
    gold: Sequence[CodedRow],
    predicted: Mapping[int, CodedRow],
    missing: Sequence[int],
    extra: Sequence[int],
) -> RowPairs:
    """Return pairs of a missing row and an extra row that are probably the same row with changed cells.

    Paired rows agree in at least half of the columns and in the columns that identify a row, if there are any. These
    are the fewest, then leftmost columns whose values are unique in both answers; of several such choices, the choice
    that pairs most rows. Columns of measures and lists identify rows only if no others do. Rows may agree in fewer
    columns if the identifying columns satisfy `_are_names` and all rows of one side have a partner.

    `gold` and `predicted` are the rows as `CodedTables.project` returns them for the alignment `columns`. `missing` and
    `extra` are the positions of rows without an equal partner.
    """
    if not missing or not extra or len(columns) < 2:
        return RowPairs((), [])
    difference = _difference_of(tables, columns, gold, predicted)
    best, fewest = RowPairs((), []), min(len(missing), len(extra))
    plain = [place for place in range(len(columns)) if not any(map(_is_measure, _column(tables, place)))]
    for key in _identifying_columns(tables, columns, gold, predicted, plain):
        if best.rows and (len(key) != len(best.key) or len(best.rows) == fewest):
            break
        cells = itemgetter(*key)
        partners = {cells(predicted[at]): at for at in extra}
        shared = [(at, partner) for at in missing if (partner := partners.get(cells(gold[at]))) is not None]
        if len(shared) > len(best.rows):
            most = len(columns) if len(shared) == fewest and _are_names(tables, columns, key, plain) else None
            pairs = [pair for at, partner in shared if (pair := difference(at, partner, most))]
            best = max(best, RowPairs(key, pairs), key=lambda found: len(found.rows))
    return best if best.rows else RowPairs((), _best_match(gold, predicted, missing, extra, difference))


def _column(tables: TablePair, place: int) -> Iterator[Cell]:
    return (row[place] for row in tables.gold.rows)


def _is_measure(cell: Cell) -> bool:
    """Return whether a cell is a number that is not whole, a list or a struct; such cells rarely identify rows."""
    match cell:
        case float() | Decimal():
            return not (isfinite(cell) and is_whole(cell))
        case Literal(datatype=datatype):
            return datatype in MEASURES
        case _:
            return isinstance(cell, tuple | FrozenMapping)


def _are_names(tables: TablePair, columns: tuple[int, ...], key: tuple[int, ...], plain: Sequence[int]) -> bool:
    """Return whether the columns of a key have the same names on both sides, contain no measures, and can name rows.

    Several columns need a text among them, and both answers need more than one row.
    """
    gold, predicted = tables.gold, tables.predicted
    return (
        min(len(gold.rows), len(predicted.rows)) > 1
        and {*key} <= {*plain}
        and all(gold.columns[place].casefold() == predicted.columns[columns[place]].casefold() != "" for place in key)
        and (len(key) == 1 or any(isinstance(cell, str) for place in key for cell in _column(tables, place)))
    )


def _difference_of(
    tables: TablePair, columns: tuple[int, ...], gold: Sequence[CodedRow], predicted: Mapping[int, CodedRow]
) -> Compare:
    """Return a function that compares a gold row with a predicted row, both given by position."""
    coded, places, half = tables.coded, range(len(columns)), len(columns) // 2
    chained = [bool(coded.pair_of(*place).chains) for place in enumerate(columns)]

    def difference(at: int, partner: int, most: int | None = None) -> SimilarRows | None:
        differing = list(compress(places, map(ne, gold[at], predicted[partner])))
        if any(chained[place] for place in differing):  # equal values may have other codes
            rows = coded.rows[0][at], coded.rows[1][partner]
            differing = [
                place
                for place in differing
                if not chained[place] or not is_equal(rows[0][place], rows[1][columns[place]], coded.policy_of(place))
            ]
        return SimilarRows(at, partner, differing) if 0 < len(differing) <= (most or half) else None

    return difference


def _identifying_columns(
    tables: TablePair,
    columns: tuple[int, ...],
    gold: Sequence[CodedRow],
    predicted: Mapping[int, CodedRow],
    plain: Sequence[int],
) -> Iterator[tuple[int, ...]]:
    """Yield sets of columns whose values are unique in both answers, without sets that contain an earlier set.

    Sets of `plain` columns come first, then all others; smaller sets first, then leftmost. MAX_KEY_CELLS limits the
    search.
    """
    distinct = tables.coded.distinct_counts
    sides = [(gold, distinct[0]), ([*predicted.values()], [distinct[1][column] for column in columns])]
    found: list[tuple[int, ...]] = []
    cells_left = MAX_KEY_CELLS
    sizes = range(1, min(MAX_KEY_COLUMNS, len(columns) - 1) + 1)
    choices = (combinations(places, size) for places in (plain, range(len(columns))) for size in sizes)
    for key in chain.from_iterable(choices):
        if any(prod(counts[at] for at in key) < len(rows) for rows, counts in sides):
            continue
        if any({*shorter} <= {*key} for shorter in found):
            continue
        if len(key) > 1 and (cells_left := cells_left - len(key) * (len(gold) + len(predicted))) < 0:
            continue
        if all(len({*map(itemgetter(*key), rows)}) == len(rows) for rows, _ in sides):
            found.append(key)
            yield key


def _best_match(
    gold: Sequence[CodedRow],
    predicted: Mapping[int, CodedRow],
    missing: Sequence[int],
    extra: Sequence[int],
    difference: Compare,
) -> list[SimilarRows]:
    """Return pairs of a missing row and the free extra row that differs from it in the fewest columns.

    If a side has more than MAX_MATCHED rows, first pair rows that agree in all columns whose values have equal sums.
    """
    free = dict.fromkeys(extra)
    left = missing
    pairs: list[SimilarRows] = []
    if max(len(missing), len(extra)) > MAX_MATCHED:
        sums = [
            map(sum, zip(*rows, strict=True))
            for rows in (map(gold.__getitem__, missing), map(predicted.__getitem__, extra))
        ]
        agreeing = [*map(eq, *sums)]
        groups: defaultdict[CodedRow, list[int]] = defaultdict(list)
        for at in reversed(extra):
            groups[tuple(compress(predicted[at], agreeing))].append(at)
        left = []
        for at in missing:
            partners = groups[tuple(compress(gold[at], agreeing))]
            if partners and (pair := difference(at, partners[-1])):
                pairs.append(pair)
                del free[partners.pop()]
            else:
                left.append(at)
    candidates = [*free][:MAX_MATCHED]
    for at in left[:MAX_MATCHED]:
        found = (pair for partner in candidates if (pair := difference(at, partner)))
        if best := min(found, key=lambda pair: len(pair.columns), default=None):
            candidates.remove(best.predicted)
            pairs.append(best)
    return pairs
