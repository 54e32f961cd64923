"""Gold and predicted rows as ints that are equal for equal cells, their best alignment, and the rows that match."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import chain, count, permutations
from math import perm
from types import NoneType
from typing import NamedTuple, TypeAlias

from pytest_queryeval.comparison.alignment import (
    Alignment,
    best_alignment,
    search_budget,
    whole_alignment,
    whole_alignments,
)
from pytest_queryeval.comparison.blank_nodes import rename_blank_nodes
from pytest_queryeval.comparison.canonical import canonical_rows
from pytest_queryeval.comparison.column_fits import ColumnFits
from pytest_queryeval.comparison.connected import connected
from pytest_queryeval.comparison.near_rows import pair_near_rows
from pytest_queryeval.comparison.row_classes import Budget, BudgetSpentError
from pytest_queryeval.comparison.tolerance import Merge, Texts, cluster_close
from pytest_queryeval.core.policy import Policy
from pytest_queryeval.core.table import Table

Rows: TypeAlias = Sequence[tuple[Hashable, ...]]
Codes: TypeAlias = list[int]
Rough: TypeAlias = Sequence[Mapping[int, int]]
MAX_TRIED_ROWS = 100_000  # in all orders of columns that are tried for the best score of unequal answers


@dataclass(frozen=True, slots=True, kw_only=True)
class Coded:
    """Both tables as columns of ints: `exact` tells canonical values apart, `merged` joins those that are equal.

    With `is_rough`, some values are near each other without being all equal, so that `merged` joins only pairs of them,
    and `alike` none; `rough` maps the codes of such values to one for all that nearness links, `links` those that
    `alike` joins too. `texts` read as dates and times that they may equal.
    """

    gold_exact: list[Codes]
    predicted_exact: list[Codes]
    gold_alike: list[Codes]
    predicted_alike: list[Codes]
    gold_merged: list[Codes]
    predicted_merged: list[Codes]
    links: Mapping[int, int]
    rough: Mapping[int, int]
    texts: Texts

    @property
    def is_rough(self) -> bool:
        """Whether values are near each other without being all equal."""
        return bool(self.rough)

    def read(self, row: Iterable[Hashable]) -> tuple[Hashable, ...]:
        """Return the values of a row, texts together with what they read as."""
        return tuple(map(self.read_cell, row)) if self.texts else tuple(row)

    def read_cell(self, value: Hashable) -> Hashable:
        """Return a value, a text together with what it reads as."""
        return self.texts.get(value, value)


class Merged(NamedTuple):
    """A gold column and a predicted one as codes of values that are equal under the gold column's own tolerance.

    As in `Coded`, `gold` and `predicted` join pairs of near values, `alike` of gold and of predicted none, `rough` all.
    """

    gold: Codes
    predicted: Codes
    alike: tuple[Codes, Codes]
    rough: Mapping[int, int]


class Leftover(NamedTuple):
    """The positions of gold's and of predicted's rows without an equal partner; `proven` that none can have one."""

    gold: list[int]
    predicted: list[int]
    proven: bool


class Pair:
    """Gold (n rows, a columns) and predicted (m rows, b columns) under a policy; everything is computed on demand.

    The first `pinned` columns are aligned with themselves.
    """

    def __init__(self, gold: Table, predicted: Table, policy: Policy, *, pinned: int = 0) -> None:
        self.gold, self.predicted = gold, predicted
        self.pinned = pinned
        self.policy = policy.of(gold, predicted)
        self.own_policies = self.policy.by_column(gold)
        self._merged: dict[tuple[int, int], Merged] = {}
        self.is_order_unproven = False  # set where the rows are compared in an order, as another pair
        self._leftovers: dict[tuple[int, ...], Leftover] = {}
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
        gold_alike, predicted_alike = (_translated(columns, merge.alike) for columns in (gold, predicted))
        gold_merged, predicted_merged = (
            _translated(columns, merge.paired) for columns in (gold_alike, predicted_alike)
        )
        return Coded(
            gold_exact=gold,
            predicted_exact=predicted,
            gold_alike=gold_alike,
            predicted_alike=predicted_alike,
            gold_merged=gold_merged,
            predicted_merged=predicted_merged,
            links={**merge.alike, **merge.rough},
            rough=merge.rough,
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
                _translated(columns, merge.codes) for columns in (coded.gold_merged, coded.predicted_merged)
            )
            rough = {**coded.rough, **merge.rough}
            coded = replace(coded, gold_merged=gold_merged, predicted_merged=predicted_merged, rough=rough)
        return coded

    def _own(self, gold: int, predicted: int) -> Merged:
        """Return a gold column with a tolerance of its own and a predicted column as codes of equal values."""
        if (gold, predicted) not in self._merged:
            golds, others = ([row[gold] for row in self.gold_rows], [row[predicted] for row in self.predicted_rows])
            exact = self.coded.gold_exact[gold], self.coded.predicted_exact[predicted]
            codes = {**dict(zip(golds, exact[0], strict=True)), **dict(zip(others, exact[1], strict=True))}
            merge = cluster_close(codes, [golds], [others], self.own_policies[gold])
            gold_codes, predicted_codes = _translated([*exact], merge.codes)
            gold_alike, predicted_alike = _translated([*exact], merge.alike)
            self._merged[gold, predicted] = Merged(
                gold_codes, predicted_codes, (gold_alike, predicted_alike), merge.rough
            )
        return self._merged[gold, predicted]

    def _merge(self, codes: Mapping[Hashable, int], predicted_rows: Rows) -> Merge:
        return cluster_close(codes, zip(*self.gold_rows, strict=True), zip(*predicted_rows, strict=True), self.policy)

    @property
    def is_equal(self) -> bool:
        """Whether all rows of both sides match under some alignment that the policy allows."""
        if not self._drops_rows and not self._may_match:
            return False
        if self.policy.columns != "any" or self._drops_rows or "alignment" in self.__dict__:
            return self.row_f1(self.alignment) == 1.0
        return self._same_rows() or self.is_whole

    @property
    def _may_match(self) -> bool:
        """Whether there are as many rows on both sides, whatever columns are dropped."""
        return 0 < len(self.gold_rows) == len(self.predicted_rows) and not self._drops_rows

    @property
    def is_whole(self) -> bool:
        """Whether every predicted row has a partner of its own among gold's under some alignment."""
        return self.whole is not None and self.whole.matched == len(self.predicted_rows)

    @cached_property
    def whole(self) -> Alignment | None:
        """An alignment under which every predicted row has a partner of its own; unproven past the budget."""
        if self._integers_differ():
            return None
        if not self._is_rough:
            return whole_alignment(self.coded.gold_alike, self.coded.predicted_alike, pinned=self.pinned)
        budget = search_budget()
        try:
            for columns in self._proposals(budget):
                left = self._find_leftover(columns, budget)
                if not left.predicted:
                    self._leftovers[columns] = left
                    return Alignment(columns=columns, matched=len(self.predicted_rows), proven=True)
                if not left.proven:
                    raise BudgetSpentError
                budget.spend((len(self.gold_rows) + len(self.predicted_rows)) * (1 + len(columns)))
        except BudgetSpentError:
            return Alignment(columns=tuple(range(len(self.gold.columns))), matched=0, proven=False)
        return None

    def _proposals(self, budget: Budget) -> Iterator[tuple[int, ...]]:
        """Yield alignments under which all rows match where nearness is chained, which it is not; none is left out."""
        gold, predicted = self._linked
        gold_columns, predicted_columns = (
            [list(map(self.coded.read_cell, column)) for column in zip(*rows, strict=True)]
            for rows in (self.gold_rows, self.predicted_rows)
        )
        policies = [self.own_policies.get(place, self.policy) for place in range(len(gold))]
        return whole_alignments(
            gold,
            predicted,
            pinned=self.pinned,
            budget=budget,
            guesses=self._merged_guesses(budget),
            fits=ColumnFits(gold_columns, predicted_columns, policies, budget),
        )

    @cached_property
    def _linked(self) -> tuple[list[Codes], list[Codes]]:
        """Both tables as ints that are the same for all values which nearness links, under the policy of any column.

        Pinned columns hold exact values.
        """
        coded = self.coded
        links = [*coded.links.items()]
        codes: dict[Hashable, int] = {}
        for rows, columns in ((self.gold_rows, coded.gold_exact), (self.predicted_rows, coded.predicted_exact)):
            for values, column in zip(zip(*rows, strict=True), columns, strict=True):
                codes.update(zip(values, column, strict=True))
        for place, policy in self.own_policies.items():
            golds = [[row[place] for row in self.gold_rows]]
            merge = cluster_close(codes, golds, zip(*self.predicted_rows, strict=True), policy)
            links += [*merge.alike.items(), *merge.rough.items()]
        joined = connected(links)
        gold, predicted = (
            [*columns[: self.pinned], *_translated(columns[self.pinned :], joined)]
            for columns in (coded.gold_exact, coded.predicted_exact)
        )
        return gold, predicted

    def _merged_guesses(self, budget: Budget) -> Iterator[tuple[int, ...]]:
        """Yield alignments under which all rows match where near values are paired, in whatever row they stand."""
        for coded in self._coded_alike():
            found = whole_alignment(
                coded.gold_merged, coded.predicted_merged, pinned=self.pinned, budget=budget.left // 4
            )
            if found is not None and found.proven:
                yield found.columns

    def _coded_alike(self) -> Iterator[Coded]:
        """Yield the tables coded under one tolerance for all columns."""
        if not self.own_policies:
            yield self.coded
            return
        for policy in dict.fromkeys((self.policy.without_columns(), self.policy.loosest())):
            yield Pair(self.gold, self.predicted, policy).coded

    def _integers_differ(self) -> bool:
        """Return whether rows have other sums of their integers, which are exact, than gold's in any order of columns.

        It takes milliseconds where coding the tables takes ten times as long; False where it cannot tell.
        """
        if len(self.gold.columns) != len(self.predicted.columns) or len(self.gold_rows) != len(self.predicted_rows):
            return False
        sums = [_integer_sums(rows) for rows in (self.gold_rows, self.predicted_rows)]
        return None not in sums and sums[0] != sums[1]

    @property
    def _is_rough(self) -> bool:
        """Whether equal codes do not tell all: values are near others that are not near each other."""
        return bool(self.own_policies) or self.coded.is_rough

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
        if self._is_rough and self._may_match and self.is_whole:
            return self.whole
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
            start=None if (whole := self.__dict__.get("whole")) is None else whole.columns,
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
        budget, proven = search_budget(), self._tries_all()
        for columns in self.guesses():
            guess = self.fixed(columns, budget)
            proven = proven and guess.proven
            if (f1 := self.row_f1(guess)) > best_f1:
                best, best_f1 = guess, f1
            if best_f1 == most:
                return best
        return replace(best, proven=proven)

    @property
    def _drops_rows(self) -> bool:
        """Whether fewer predicted rows may be left once columns are dropped, so that matches alone are no row F1."""
        return self.policy.duplicates == "ignore" and len(self.predicted.columns) > len(self.gold.columns)

    def _tries_all(self) -> bool:
        orders = perm(len(self.predicted.columns) - self.pinned, len(self.gold.columns) - self.pinned)
        return orders * (len(self.gold_rows) + len(self.predicted_rows)) <= MAX_TRIED_ROWS

    def guesses(self) -> Iterator[tuple[int, ...]]:
        """Yield alignments that may be best by what the search does not know: tolerances of columns, rows that drop.

        They are the best ones under one tolerance for all columns, the first columns, those of gold's names, and all
        others where they are few.
        """
        for coded in self._coded_alike():
            if found := best_alignment(coded.gold_merged, coded.predicted_merged, pinned=self.pinned):
                yield found.columns
        yield tuple(range(len(self.gold.columns)))
        if named := _by_name(self.gold.columns, self.predicted.columns):
            yield named
        if self._tries_all():
            fixed = tuple(range(self.pinned))
            free = range(self.pinned, len(self.predicted.columns))
            others = permutations(free, len(self.gold.columns) - self.pinned)
            yield from (fixed + columns for columns in others)

    @property
    def unproven(self) -> bool:
        """Whether the search for an alignment, or for partners of blank nodes, has stopped at its budget."""
        searches = (self.__dict__.get("alignment"), self.__dict__.get("whole"))
        if self.is_order_unproven or not self._names_proven:
            return True
        return any(search is not None and not search.proven for search in searches)

    def fixed(self, columns: tuple[int, ...], budget: Budget | None = None) -> Alignment:
        """Return the alignment that maps gold column i to predicted column `columns[i]`."""
        left = self.leftover(columns, budget)
        return Alignment(columns=columns, matched=len(self.gold_rows) - len(left.gold), proven=left.proven)

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
        """Return gold's rows, and predicted's by position with cells in the order of gold's columns, as `alike` codes.

        With `duplicates: ignore`, predicted rows that the projection makes the same are there once.
        """
        rows = len(self.predicted_rows)
        golds = list(self.coded.gold_alike)
        others = [self.coded.predicted_alike[column] for column in columns]
        for place in self.own_policies:
            golds[place], others[place] = self._own(place, columns[place]).alike
        predicted = transpose(others, rows)
        positions: Iterable[int] = range(rows)
        if self.policy.duplicates == "ignore" and len(columns) < len(self.predicted.columns):
            exact = transpose([self.coded.predicted_exact[column] for column in columns], rows)
            positions = sorted({row: rows - 1 - back for back, row in enumerate(reversed(exact))}.values())
        gold = transpose(golds, len(self.gold_rows))
        return gold, {position: predicted[position] for position in positions}

    def leftover(self, columns: tuple[int, ...], budget: Budget | None = None) -> Leftover:
        """Return the rows without an equal partner where gold column i is aligned with predicted `columns[i]`."""
        if columns not in self._leftovers:
            self._leftovers[columns] = self._find_leftover(columns, budget or search_budget())
        return self._leftovers[columns]

    def _find_leftover(self, columns: tuple[int, ...], budget: Budget) -> Leftover:
        """Pair equal rows: those exactly equal first, of the others as many as there can be."""
        gold, predicted = self.projected(columns)
        coded, rough = self.coded, [self.coded.rough] * len(columns)
        for place in self.own_policies:
            rough[place] = self._own(place, columns[place]).rough
        if not any(rough):
            gold_left, predicted_left = (
                _unmatched(enumerate(gold), predicted.values()),
                _unmatched(predicted.items(), gold),
            )
            return Leftover(gold_left, predicted_left, proven=True)
        gold_exact = dict(enumerate(transpose(coded.gold_exact, len(gold))))
        all_predicted = transpose([coded.predicted_exact[column] for column in columns], len(self.predicted_rows))
        predicted_exact = {position: all_predicted[position] for position in predicted}
        # Of exactly equal rows, those of floats stay for last: they are near more numbers than integers are.
        gold_order, predicted_order = (
            sorted(exact.items(), key=lambda item: _float_count(rows[item[0]]))
            for exact, rows in ((gold_exact, self.gold_rows), (predicted_exact, self.predicted_rows))
        )
        gold_groups, predicted_groups = (
            _grouped({position: alike[position] for position in positions}, exact, rough)
            for positions, alike, exact in (
                (_unmatched(gold_order, predicted_exact.values()), gold, gold_exact),
                (_unmatched(predicted_order, gold_exact.values()), predicted, predicted_exact),
            )
        )
        linked = [{*codes.values()} for codes in rough]
        pairs: list[tuple[int, int]] = []
        proven = True
        for key, positions in gold_groups.items():
            places = [place for place, code in enumerate(key) if code in linked[place]]
            if not places:  # of values that equal all that they are near
                pairs += zip(positions, predicted_groups[key], strict=False)
            elif predicted_groups[key]:
                paired = pair_near_rows(
                    [(at, tuple([coded.read_cell(self.gold_rows[at][i]) for i in places])) for at in positions],
                    [
                        (at, tuple([coded.read_cell(self.predicted_rows[at][columns[i]]) for i in places]))
                        for at in predicted_groups[key]
                    ],
                    [self.own_policies.get(place, self.policy) for place in places],
                    budget,
                )
                pairs += paired.pairs
                proven = proven and paired.proven
        gold_paired, predicted_paired = {at for at, _ in pairs}, {at for _, at in pairs}
        return Leftover(
            sorted(at for group in gold_groups.values() for at in group if at not in gold_paired),
            sorted(at for group in predicted_groups.values() for at in group if at not in predicted_paired),
            proven,
        )


@lru_cache(maxsize=2)
def pair(gold: Table, predicted: Table, policy: Policy) -> Pair:
    """Return the pair of two tables, shared by the metrics of one case (tables are hashed by identity)."""
    return Pair(gold, predicted, policy)


def _integer_sums(rows: Rows) -> list[int] | None:
    """Return the sum of the integers of each row, sorted; None where other cells may equal an integer."""
    types = set(map(type, chain.from_iterable(rows)))
    if types == {int}:
        return sorted(map(sum, rows))  # type: ignore[arg-type]  # all cells are int
    if int not in types or not types <= {int, str, NoneType}:
        return None
    return sorted(sum(cell for cell in row if isinstance(cell, int)) for row in rows)


def _encode(rows: Rows, width: int, codes: defaultdict[Hashable, int]) -> list[Codes]:
    if not rows:
        return [[] for _ in range(width)]
    code = codes.__getitem__
    return [list(map(code, column)) for column in zip(*rows, strict=True)]


def _translated(columns: list[Codes], codes: Mapping[int, int]) -> list[Codes]:
    return [[codes.get(code, code) for code in column] for column in columns] if codes else columns


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


def _grouped(
    rows: Mapping[int, tuple[int, ...]], exact: Mapping[int, tuple[int, ...]], rough: Rough
) -> defaultdict[tuple[int, ...], list[int]]:
    """Return the positions of rows that may be equal, by the codes of values that nearness links."""
    groups: defaultdict[tuple[int, ...], list[int]] = defaultdict(list)
    for position, row in rows.items():
        codes = zip(rough, exact[position], row, strict=True)
        groups[tuple([linked.get(code, alike) for linked, code, alike in codes])].append(position)
    return groups


def _float_count(row: tuple[Hashable, ...]) -> int:
    return list(map(type, row)).count(float)


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
