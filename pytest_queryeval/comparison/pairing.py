"""Gold and predicted rows as ints that are equal for equal cells, their best alignment, and the rows that match."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import chain, count, permutations
from math import perm
from typing import NamedTuple, TypeAlias

from pytest_queryeval.comparison.alignment import Alignment, best_alignment
from pytest_queryeval.comparison.blank_nodes import rename_blank_nodes
from pytest_queryeval.comparison.canonical import canonical_rows
from pytest_queryeval.comparison.tolerance import Merge, Texts, cluster_close, near_matches
from pytest_queryeval.core.policy import Policy
from pytest_queryeval.core.table import Table

Rows: TypeAlias = Sequence[tuple[Hashable, ...]]
Codes: TypeAlias = list[int]
MAX_TRIED_ROWS = 100_000  # where columns have tolerances of their own


@dataclass(frozen=True, slots=True, kw_only=True)
class Coded:
    """Both tables as columns of ints: `exact` tells canonical values apart, `merged` joins those that are equal.

    With `is_rough`, some values are near each other without being all equal, so that `merged` joins only pairs of them.
    `texts` read as dates and times that they may equal.
    """

    gold_exact: list[Codes]
    predicted_exact: list[Codes]
    gold_merged: list[Codes]
    predicted_merged: list[Codes]
    is_rough: bool
    texts: Texts

    def read(self, row: Iterable[Hashable]) -> tuple[Hashable, ...]:
        """Return the values of a row, texts together with what they read as."""
        return tuple([self.texts.get(value, value) for value in row]) if self.texts else tuple(row)


class Merged(NamedTuple):
    """A gold column and a predicted one as codes of values that are equal under the gold column's own tolerance."""

    gold: Codes
    predicted: Codes
    is_rough: bool


class Pair:
    """Gold (n rows, a columns) and predicted (m rows, b columns) under a policy; everything is computed on demand."""

    def __init__(self, gold: Table, predicted: Table, policy: Policy) -> None:
        self.gold, self.predicted = gold, predicted
        self.policy = policy.of(gold, predicted)
        self.own_policies = self.policy.by_column(gold)
        self._merged: dict[tuple[int, int], Merged] = {}
        self._leftovers: dict[tuple[int, ...], tuple[list[int], list[int]]] = {}
        self.gold_rows = self._rows(canonical_rows(gold, policy))
        rows, self._names_proven = self._renamed(canonical_rows(predicted, policy))
        self.predicted_rows = self._rows(rows)

    def _renamed(self, rows: Rows) -> tuple[Rows, bool]:
        if rows is self.predicted.rows:
            return rows, True

        def merged() -> Mapping[Hashable, Hashable]:
            cells = chain.from_iterable(chain(self.gold_rows, rows))
            codes = {value: code for code, value in enumerate(dict.fromkeys(cells))}
            values = list(codes)
            joined = self._merge(codes, rows).codes
            return {values[code]: values[other] for code, other in joined.items()}

        return rename_blank_nodes(self.gold_rows, rows, positional=self.policy.columns == "positional", merged=merged)

    def _rows(self, rows: Rows) -> Rows:
        return list(dict.fromkeys(rows)) if self.policy.duplicates == "ignore" else rows

    @cached_property
    def coded(self) -> Coded:
        """Both tables as ints."""
        codes: defaultdict[Hashable, int] = defaultdict(count().__next__)
        gold = _encode(self.gold_rows, len(self.gold.columns), codes)
        predicted = _encode(self.predicted_rows, len(self.predicted.columns), codes)
        merge = self._merge(codes, self.predicted_rows)
        gold_merged, predicted_merged = gold, predicted
        if merge.codes:
            translate = [merge.codes.get(code, code) for code in range(len(codes))]
            gold_merged, predicted_merged = (
                [[translate[code] for code in column] for column in columns] for columns in (gold, predicted)
            )
        return Coded(
            gold_exact=gold,
            predicted_exact=predicted,
            gold_merged=gold_merged,
            predicted_merged=predicted_merged,
            is_rough=merge.is_rough,
            texts=merge.texts,
        )

    @cached_property
    def anywhere(self) -> Coded:
        """Both tables as ints for metrics that look for a cell of gold in any column of predicted.

        Values of gold columns with a tolerance of their own are merged under it as well.
        """
        coded = self.coded
        for place, policy in self.own_policies.items():
            codes: dict[Hashable, int] = {}
            for rows, columns in ((self.gold_rows, coded.gold_merged), (self.predicted_rows, coded.predicted_merged)):
                for values, column in zip(zip(*rows, strict=True), columns, strict=True):
                    codes.update(zip(values, column, strict=True))
            golds = [[row[place] for row in self.gold_rows]]
            merge = cluster_close(codes, golds, zip(*self.predicted_rows, strict=True), policy)
            gold_merged, predicted_merged = (
                [[merge.codes.get(code, code) for code in column] for column in columns]
                for columns in (coded.gold_merged, coded.predicted_merged)
            )
            is_rough = coded.is_rough or merge.is_rough
            coded = replace(coded, gold_merged=gold_merged, predicted_merged=predicted_merged, is_rough=is_rough)
        return coded

    def _own(self, gold: int, predicted: int) -> Merged:
        """Return a gold column with a tolerance of its own and a predicted column as codes of equal values."""
        if (gold, predicted) not in self._merged:
            golds, others = ([row[gold] for row in self.gold_rows], [row[predicted] for row in self.predicted_rows])
            exact = self.coded.gold_exact[gold], self.coded.predicted_exact[predicted]
            codes = {**dict(zip(golds, exact[0], strict=True)), **dict(zip(others, exact[1], strict=True))}
            merge = cluster_close(codes, [golds], [others], self.own_policies[gold])
            mine, its = ([merge.codes.get(code, code) for code in column] for column in exact)
            self._merged[gold, predicted] = Merged(mine, its, merge.is_rough)
        return self._merged[gold, predicted]

    def _merge(self, codes: Mapping[Hashable, int], predicted_rows: Rows) -> Merge:
        return cluster_close(codes, zip(*self.gold_rows, strict=True), zip(*predicted_rows, strict=True), self.policy)

    @cached_property
    def alignment(self) -> Alignment | None:
        """The best alignment that the policy allows; None where predicted lacks columns."""
        if len(self.gold.columns) > len(self.predicted.columns):
            return None
        if self.policy.columns == "by_name":
            columns = _by_name(self.gold.columns, self.predicted.columns)
            return None if columns is None else self.fixed(columns)
        identity = tuple(range(len(self.gold.columns)))
        if self.policy.columns == "positional":
            return self.fixed(identity)
        if self._same_rows():
            return Alignment(columns=identity, matched=len(self.gold_rows), proven=True)
        if self.own_policies:
            return self._best_guess()
        coded = self.coded
        gold_distinct, predicted_distinct = self.distinct_counts
        found = best_alignment(
            coded.gold_merged,
            coded.predicted_merged,
            overlap=self.overlap,
            gold_distinct=gold_distinct,
            predicted_distinct=predicted_distinct,
        )
        if found is not None and self._drops_rows and self.row_f1(found) < 1:
            return max(found, self._best_guess(), key=self.row_f1)
        if found is None or not coded.is_rough:
            return found
        best = max(self.fixed(found.columns), self.fixed(identity), key=lambda alignment: alignment.matched)
        proven = found.proven and best.matched == min(len(self.gold_rows), len(self.predicted_rows))
        return replace(best, proven=proven)

    def _best_guess(self) -> Alignment:
        """Return the guess of the highest row F1, the first that no alignment can exceed."""
        all_matched = Alignment(columns=(), matched=min(len(self.gold_rows), len(self.predicted_rows)), proven=True)
        most = 1.0 if self._drops_rows else self.row_f1(all_matched)
        best, best_f1 = all_matched, -1.0
        for columns in self.guesses():
            found = self.fixed(columns)
            if (f1 := self.row_f1(found)) > best_f1:
                best, best_f1 = found, f1
            if best_f1 == most:
                return best
        return replace(best, proven=self._tries_all())

    @property
    def _drops_rows(self) -> bool:
        """Whether fewer predicted rows may be left once columns are dropped, so that matches alone are no row F1."""
        return self.policy.duplicates == "ignore" and len(self.predicted.columns) > len(self.gold.columns)

    def _tries_all(self, pinned: int = 0) -> bool:
        orders = perm(len(self.predicted.columns) - pinned, len(self.gold.columns) - pinned)
        return orders * (len(self.gold_rows) + len(self.predicted_rows)) <= MAX_TRIED_ROWS

    def guesses(self, *, pinned: int = 0) -> Iterator[tuple[int, ...]]:
        """Yield alignments that may be best by what the search does not know: tolerances of columns, rows that drop.

        They are the best ones under one tolerance for all columns, the first columns, those of gold's names, and all
        others where they are few. The first `pinned` columns are aligned with themselves.
        """
        for policy in (self.policy.without_columns(), self.policy.loosest()) if self.own_policies else ():
            coded = Pair(self.gold, self.predicted, policy).coded
            if found := best_alignment(coded.gold_merged, coded.predicted_merged, pinned=pinned):
                yield found.columns
        yield tuple(range(len(self.gold.columns)))
        if named := _by_name(self.gold.columns, self.predicted.columns):
            yield named
        if self._tries_all(pinned):
            fixed = tuple(range(pinned))
            others = permutations(range(pinned, len(self.predicted.columns)), len(self.gold.columns) - pinned)
            yield from (fixed + columns for columns in others)

    @property
    def unproven(self) -> bool:
        """Whether the search for an alignment, or for partners of blank nodes, has stopped at its budget."""
        found = self.__dict__.get("alignment")
        return not self._names_proven or (found is not None and not found.proven)

    def fixed(self, columns: tuple[int, ...]) -> Alignment:
        """Return the alignment that maps gold column i to predicted column `columns[i]`."""
        return Alignment(columns=columns, matched=len(self.gold_rows) - len(self.leftover(columns)[0]), proven=True)

    def row_f1(self, alignment: Alignment | None) -> float:
        """Return 2 * |multiset intersection of rows| / (n + m) under an alignment; 0 without one."""
        if alignment is None:
            return 0.0
        golds, others = len(self.gold_rows), len(self.predicted_rows)
        if self._drops_rows:
            others = len(self.projected(alignment.columns)[1])
        return 2 * alignment.matched / (golds + others) if golds + others else 1.0

    def overlap(self, gold_column: int, predicted_column: int) -> int:
        """Return how many distinct values of a gold column can be paired with equal ones of a predicted column."""
        if gold_column in self.own_policies:
            own, exact = self._own(gold_column, predicted_column), self.coded
            (gold,) = _distinct_values([exact.gold_exact[gold_column]], [own.gold])
            (predicted,) = _distinct_values([exact.predicted_exact[predicted_column]], [own.predicted])
        else:
            gold, predicted = self._distinct[0][gold_column], self._distinct[1][predicted_column]
        small, large = (gold, predicted) if len(gold) <= len(predicted) else (predicted, gold)
        return sum(min(number, large.get(code, 0)) for code, number in small.items())

    @cached_property
    def distinct_counts(self) -> tuple[list[int], list[int]]:
        """The number of distinct values in each gold column, and in each predicted column."""
        gold, predicted = ([sum(column.values()) for column in side] for side in self._distinct)
        return gold, predicted

    @cached_property
    def _distinct(self) -> tuple[list[dict[int, int]], list[dict[int, int]]]:
        coded = self.coded
        return (
            _distinct_values(coded.gold_exact, coded.gold_merged),
            _distinct_values(coded.predicted_exact, coded.predicted_merged),
        )

    def _same_rows(self) -> bool:
        """Return whether both hold the same rows as they are: the usual case, found without coding anything."""
        if len(self.gold.columns) != len(self.predicted.columns) or len(self.gold_rows) != len(self.predicted_rows):
            return False
        if self.gold_rows == self.predicted_rows:
            return True
        # Sorted by hash, equal multisets are equal lists, unless two rows share a hash; cheaper than counting rows.
        golds, others = sorted(self.gold_rows, key=hash), sorted(self.predicted_rows, key=hash)
        return golds == others or (
            list(map(hash, golds)) == list(map(hash, others)) and Counter(golds) == Counter(others)
        )

    def projected(self, columns: tuple[int, ...]) -> tuple[list[tuple[int, ...]], dict[int, tuple[int, ...]]]:
        """Return gold's rows, and predicted's by position with cells in the order of gold's columns, as merged codes.

        With `duplicates: ignore`, predicted rows that the projection makes the same are there once.
        """
        rows = len(self.predicted_rows)
        golds = list(self.coded.gold_merged)
        others = [self.coded.predicted_merged[column] for column in columns]
        for place in self.own_policies:
            golds[place], others[place], _ = self._own(place, columns[place])
        predicted = transpose(others, rows)
        positions: Iterable[int] = range(rows)
        if self.policy.duplicates == "ignore" and len(columns) < len(self.predicted.columns):
            exact = transpose([self.coded.predicted_exact[column] for column in columns], rows)
            positions = sorted({row: rows - 1 - back for back, row in enumerate(reversed(exact))}.values())
        gold = transpose(golds, len(self.gold_rows))
        return gold, {position: predicted[position] for position in positions}

    def leftover(self, columns: tuple[int, ...]) -> tuple[list[int], list[int]]:
        """Return the positions of the gold rows and of the predicted rows that have no equal partner."""
        if columns not in self._leftovers:
            gold, predicted = self.projected(columns)
            gold_left = _unmatched(enumerate(gold), predicted.values())
            predicted_left = _unmatched(predicted.items(), gold)
            is_rough = self.coded.is_rough or any(self._own(at, columns[at]).is_rough for at in self.own_policies)
            if is_rough and gold_left and predicted_left:
                gold_left, predicted_left = near_matches(
                    [(row, self.coded.read(self.gold_rows[row])) for row in gold_left],
                    [(row, self.coded.read(self.predicted_rows[row][at] for at in columns)) for row in predicted_left],
                    [self.own_policies.get(place, self.policy) for place in range(len(columns))],
                )
            self._leftovers[columns] = gold_left, predicted_left
        return self._leftovers[columns]


@lru_cache(maxsize=2)
def pair(gold: Table, predicted: Table, policy: Policy) -> Pair:
    """Return the pair of two tables, shared by the metrics of one case (tables are hashed by identity)."""
    return Pair(gold, predicted, policy)


def _encode(rows: Rows, width: int, codes: defaultdict[Hashable, int]) -> list[Codes]:
    if not rows:
        return [[] for _ in range(width)]
    code = codes.__getitem__
    return [list(map(code, column)) for column in zip(*rows, strict=True)]


def transpose(columns: Sequence[Codes], rows: int) -> list[tuple[int, ...]]:
    """Return columns as so many rows."""
    return list(zip(*columns, strict=True)) if columns else [()] * rows


def _unmatched(rows: Iterable[tuple[int, tuple[int, ...]]], others: Iterable[tuple[int, ...]]) -> list[int]:
    spare = Counter(others)
    left = []
    for position, row in rows:
        if spare[row] > 0:
            spare[row] -= 1
        else:
            left.append(position)
    return left


def _distinct_values(exact: list[Codes], merged: list[Codes]) -> list[dict[int, int]]:
    """Return for each column how many distinct canonical values share each merged code."""
    if exact is merged:
        return [dict.fromkeys(column, 1) for column in exact]
    return [Counter(code for _, code in set(zip(*both, strict=True))) for both in zip(exact, merged, strict=True)]


def _by_name(gold: tuple[str, ...], predicted: tuple[str, ...]) -> tuple[int, ...] | None:
    """Return the predicted column of each gold name, letter case ignored; of several, the first that is free."""
    free: defaultdict[str, list[int]] = defaultdict(list)
    for position, name in reversed(list(enumerate(predicted))):
        free[name.casefold()].append(position)
    columns = [free[name.casefold()].pop() if free[name.casefold()] else -1 for name in gold]
    return None if -1 in columns else tuple(columns)
