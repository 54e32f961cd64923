"""Gold and predicted under a policy: their best alignment, the rows that match under it, and whether all do."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import cache, cached_property, lru_cache
from itertools import chain, permutations, product, repeat
from math import isfinite, perm
from operator import itemgetter
from types import NoneType
from typing import NamedTuple, TypeAlias

from pytest_queryeval.comparison.alignment import (
    Alignment,
    Budget,
    BudgetSpentError,
    Options,
    best_alignment,
    equal_alignments,
    numbered,
    search_budget,
    whole_alignment,
    whole_alignments,
)
from pytest_queryeval.comparison.blank_nodes import rename_blank_nodes
from pytest_queryeval.comparison.canonical import (
    Nested,
    canonical_rows,
    is_comparable,
    is_near,
    numbers_in,
    quantity_of,
    tolerance_type,
)
from pytest_queryeval.comparison.coded_tables import CodedRow, CodedTables, Rows, columns_of, shared_values, transpose
from pytest_queryeval.comparison.graphs import maximum_matching
from pytest_queryeval.comparison.quantities import as_float, widest_tolerance
from pytest_queryeval.core.table import Policy, Table

Groups: TypeAlias = Mapping[CodedRow, Sequence[int]]
Positions: TypeAlias = Iterable[tuple[int, CodedRow]]
Cells: TypeAlias = tuple[Hashable, ...]
Placed: TypeAlias = tuple[int, Cells]
Pairs: TypeAlias = list[tuple[int, int]]
COMPARISON = 5  # what a comparison of two rows, and reading a cell, takes of the budget, in rows visited
MAX_UNPAIRED = 200  # rows of a side without a near partner for which others are tried in all ways
MAX_COLUMN_PAIRS = 10_000  # of which the distinct values are compared
DECIDED = 0.5  # of the distinct values of two columns, from which these tell which columns belong together
MAX_TRIED_ROWS = 100_000  # in all orders of columns that are tried for the best score of unequal answers


class UnpairedRows(NamedTuple):
    """The positions of the rows of gold, and of predicted, that have no equal partner on the other side.

    `is_proven` says that no other pairing leaves fewer rows.
    """

    gold: list[int]
    predicted: list[int]
    is_proven: bool


def unpaired_rows(tables: CodedTables, columns: tuple[int, ...], budget: Budget) -> UnpairedRows:
    """Pair equal rows one to one, and return the positions of the rows that are left.

    Gold column i is aligned with predicted column `columns[i]`. Exactly equal rows are paired first, then as many of
    the others as possible within the budget.
    """
    gold, predicted = tables.project(columns)
    chains = [tables.pair_of(*place).chains for place in enumerate(columns)]
    if not any(chains):
        return UnpairedRows(
            _without_partner(enumerate(gold), predicted.values()),
            _without_partner(predicted.items(), gold),
            is_proven=True,
        )
    gold_rows, predicted_rows = tables.rows
    chain_codes = [{*codes.values()} for codes in chains]
    gold_groups, predicted_groups = _groups(tables, columns, gold, predicted, chains)
    pairs: list[tuple[int, int]] = []
    proven = True
    for key, positions in gold_groups.items():
        places = [place for place, code in enumerate(key) if code in chain_codes[place]]
        partners = predicted_groups.get(key, ())
        if not places:  # the same codes mean equal rows
            pairs += zip(positions, partners, strict=False)
        elif partners:
            near_rows = pair_near_rows(
                [(at, tuple([tables.read_cell(gold_rows[at][i]) for i in places])) for at in positions],
                [(at, tuple([tables.read_cell(predicted_rows[at][columns[i]]) for i in places])) for at in partners],
                [tables.policy_of(place) for place in places],
                budget,
            )
            pairs += near_rows.pairs
            proven = proven and near_rows.is_proven
    paired_gold, paired_predicted = {at for at, _ in pairs}, {at for _, at in pairs}
    return UnpairedRows(
        sorted(at for group in gold_groups.values() for at in group if at not in paired_gold),
        sorted(at for group in predicted_groups.values() for at in group if at not in paired_predicted),
        proven,
    )


def _groups(
    tables: CodedTables,
    columns: tuple[int, ...],
    gold: Sequence[CodedRow],
    predicted: Mapping[int, CodedRow],
    chains: Sequence[Mapping[int, int]],
) -> tuple[Groups, Groups]:
    """Return the positions of rows without an exactly equal partner, in groups that both sides share by a key.

    Only rows with the same key can be equal. A key has, for each cell, the code of its chain, or its `equal` code.
    `gold` and `predicted` are projected rows.
    """
    gold_exact = dict(enumerate(transpose(tables.exact.gold, len(gold))))
    exact_rows = transpose([tables.exact.predicted[column] for column in columns], len(tables.rows[1]))
    predicted_exact = {position: exact_rows[position] for position in predicted}
    # Of exactly equal rows, those of floats stay for last: they are near more numbers than integers are.
    gold_order, predicted_order = (
        sorted(exact.items(), key=lambda item: list(map(type, rows[item[0]])).count(float))
        for exact, rows in zip((gold_exact, predicted_exact), tables.rows, strict=True)
    )
    return (
        _grouped(_without_partner(gold_order, predicted_exact.values()), gold_exact, dict(enumerate(gold)), chains),
        _grouped(_without_partner(predicted_order, gold_exact.values()), predicted_exact, predicted, chains),
    )


def _without_partner(rows: Positions, partners: Iterable[CodedRow]) -> list[int]:
    """Return the positions of `rows` that are left if each row is paired with a free equal row of `partners`."""
    free = Counter(partners)
    positions = []
    for position, row in rows:
        if free[row] > 0:
            free[row] -= 1
        else:
            positions.append(position)
    return positions


def _grouped(
    positions: Iterable[int],
    exact: Mapping[int, CodedRow],
    equal: Mapping[int, CodedRow],
    chains: Sequence[Mapping[int, int]],
) -> Groups:
    """Return positions by the key of their row: for each cell, the code of its chain, or its `equal` code."""
    groups: defaultdict[CodedRow, list[int]] = defaultdict(list)
    for at in positions:
        cells = zip(chains, exact[at], equal[at], strict=True)
        groups[tuple([codes.get(exact_code, equal_code) for codes, exact_code, equal_code in cells])].append(at)
    return groups


class PairedRows(NamedTuple):
    """Pairs of a gold position and a predicted position; `is_proven` says that no more pairs are possible."""

    pairs: Pairs
    is_proven: bool


class _Row(NamedTuple):
    number: float
    position: int
    values: Cells


def pair_near_rows(
    gold: Sequence[Placed], predicted: Sequence[Placed], policies: Sequence[Policy], budget: Budget
) -> PairedRows:
    """Return pairs of rows that are equal within the tolerance, in which each row is used once.

    Rows are sorted by the number that varies most, and each gold row gets the first predicted row that fits. If this
    leaves rows on both sides, but at most MAX_UNPAIRED of each, a maximum matching replaces the pairs. A row is given
    as its position and its values; `policies` are those of the values. If the budget ends, the pairs so far are
    returned.
    """
    columns = zip(*(values for _, values in (*gold, *predicted)), strict=True)
    spread = [
        len({_number(value, policy) for value in column}) for column, policy in zip(columns, policies, strict=True)
    ]
    widest = spread.index(max(spread))
    sides = [
        sorted(_Row(_number(values[widest], policies[widest]), position, values) for position, values in side)
        for side in (gold, predicted)
    ]
    width = widest_tolerance(policies[widest])

    def near(row: _Row, candidates: Sequence[_Row]) -> Iterator[int]:
        reach = width.reach(row.number)
        for index in range(bisect_left(candidates, row.number - reach, key=itemgetter(0)), len(candidates)):
            if candidates[index].number > row.number + reach:
                return
            budget.spend(COMPARISON)
            if all(map(_are_equal, row.values, candidates[index].values, policies)):
                yield index

    pairs: Pairs = []
    free = list(sides[1])
    try:
        for row in sides[0]:
            if (index := next(near(row, free), None)) is not None:
                pairs.append((row.position, free.pop(index).position))
        unpaired = len(gold) - len(pairs), len(free)
        if not min(unpaired) or max(unpaired) > MAX_UNPAIRED:
            return PairedRows(pairs, is_proven=not min(unpaired))
        matching = maximum_matching([list(near(row, sides[1])) for row in sides[0]], len(predicted))
    except BudgetSpentError:
        return PairedRows(pairs, is_proven=False)
    matched = [(sides[0][row].position, sides[1][index].position) for row, index in matching]
    return PairedRows(matched, is_proven=True)


def _typed(value: Hashable) -> Hashable:
    return (tolerance_type(value), value) if is_comparable(value) else value


def _number(value: Hashable, policy: Policy) -> float:
    """Return a finite number to sort a value by: the first number of a list; 0 for infinity and for other values."""
    quantity = quantity_of(value) if is_comparable(value) else value
    if isinstance(quantity, Nested):
        quantity = next(numbers_in(quantity, policy), 0)
    number = as_float(quantity) if isinstance(quantity, int | float | Decimal) else 0.0
    return number if isfinite(number) else 0.0


def _are_equal(x: Hashable, y: Hashable, policy: Policy) -> bool:
    return x == y or (is_comparable(x) and is_comparable(y) and is_near(x, y, policy))


class TablePair:
    """Gold and predicted under a policy: their best alignment, the rows that match, and whether all rows do.

    Results are computed on first use. The first `pinned` columns are aligned with themselves. `is_unproven` says
    whether a search, for an alignment or for partners of blank nodes, has stopped at its budget so far.
    """

    def __init__(self, gold: Table, predicted: Table, policy: Policy, *, pinned: int = 0) -> None:
        self.gold, self.predicted = gold, predicted
        self.pinned = pinned
        self.policy = policy.of(gold, predicted)
        self.column_policies = self.policy.by_column(gold)
        self._unpaired: dict[tuple[int, ...], UnpairedRows] = {}
        self.gold_rows = self._without_duplicates(canonical_rows(gold, policy))
        self.predicted_rows = predicted_rows = self._without_duplicates(canonical_rows(predicted, policy))
        is_proven = True
        if predicted_rows is not predicted.rows:  # else it has no blank nodes to be named after gold's
            self.predicted_rows, is_proven = rename_blank_nodes(
                self.gold_rows,
                predicted_rows,
                columns=self._stated_columns,
                merged=lambda: shared_values(self.gold_rows, predicted_rows, self.policy),
            )
        self.is_unproven = not is_proven
        """Whether a search for an alignment, or for partners of blank nodes, has stopped at its budget so far."""

    @cached_property
    def _stated_columns(self) -> tuple[int, ...] | None:
        """The predicted column of each gold column if the policy compares by position or by name.

        None if the policy allows any alignment, or if predicted lacks a column.
        """
        if self.policy.columns == "by_name":
            return _by_name(self.gold.columns, self.predicted.columns)
        is_stated = self.policy.columns == "positional" and len(self.gold.columns) <= len(self.predicted.columns)
        return tuple(range(len(self.gold.columns))) if is_stated else None

    def _without_duplicates(self, rows: Rows) -> Rows:
        return list(dict.fromkeys(rows)) if self.policy.duplicates == "ignore" else rows

    @cached_property
    def coded(self) -> CodedTables:
        """The rows of both tables as ints."""
        rows = self.gold_rows, self.predicted_rows
        return CodedTables(self.gold, self.predicted, rows, self.policy, self.column_policies)

    # Whether all rows match

    @property
    def is_equal(self) -> bool:
        """Whether all rows of both sides match under an alignment that the policy allows."""
        if self.policy.columns != "any" or self._may_drop_rows or not self.gold.columns:
            return self.row_f1(self.alignment) == 1.0
        return self._may_be_equal and (self._has_same_rows() or self.matches_all_rows)

    @property
    def matches_all_rows(self) -> bool:
        """Whether every predicted row matches a different gold row under some alignment."""
        return self.alignment_of_all_rows is not None and self.alignment_of_all_rows.matched == len(self.predicted_rows)

    @cached_property
    def alignment_of_all_rows(self) -> Alignment | None:
        """An alignment under which every predicted row matches a different gold row; None if there is none.

        If the budget ended the search, the alignment is by position, with no matches and not proven.
        """
        return self._note(self._find_alignment_of_all_rows())

    def _note(self, alignment: Alignment | None) -> Alignment | None:
        self.is_unproven = self.is_unproven or (alignment is not None and not alignment.is_proven)
        return alignment

    def _find_alignment_of_all_rows(self) -> Alignment | None:
        if self._has_other_integers():
            return None
        if not self._has_chains:
            return whole_alignment(self.coded.equal.gold, self.coded.equal.predicted, pinned=self.pinned)
        budget = search_budget()
        proven = True
        try:
            for columns in self._proposals(budget):
                unpaired = unpaired_rows(self.coded, columns, budget)
                if not unpaired.predicted:
                    self._unpaired[columns] = unpaired
                    return Alignment(columns=columns, matched=len(self.predicted_rows), is_proven=True)
                proven = proven and unpaired.is_proven
                budget.spend(COMPARISON * (len(self.gold_rows) + len(self.predicted_rows)) * (1 + len(columns)))
        except BudgetSpentError:
            proven = False
        return None if proven else Alignment(columns=tuple(range(len(self.gold.columns))), matched=0, is_proven=False)

    def _proposals(self, budget: Budget) -> Iterator[tuple[int, ...]]:
        """Yield all alignments under which every predicted row would match if all values of a chain were equal.

        Alignments that also match if near values are paired regardless of their rows come first.
        """
        gold, predicted = (
            [*exact_side[: self.pinned], *linked_side[self.pinned :]]
            for exact_side, linked_side in zip(self.coded.exact, self.coded.linked, strict=True)
        )
        guesses = (
            whole_alignment(coded.paired.gold, coded.paired.predicted, pinned=self.pinned, budget=budget)
            for coded in self._coded_in_one_tolerance()
        )
        return whole_alignments(
            gold,
            predicted,
            pinned=self.pinned,
            budget=budget,
            guesses=(guess.columns for guess in guesses if guess is not None),
            kinds=self._kinds,
            narrowed=lambda options: self._narrowed(options, budget),
        )

    @cached_property
    def _values(self) -> list[list[list[Hashable]]]:
        """The columns of gold and of predicted as canonical values, with texts as the quantities that they spell."""
        return [[list(map(self.coded.read_cell, column)) for column in columns_of(rows)] for rows in self.coded.rows]

    @cached_property
    def _kinds(self) -> list[list[int]]:
        """For gold's and for predicted's columns, a number that is the same for interchangeable columns.

        Such columns have the same cells of the same types, and for gold the same policy: 3 and 3.0 differ.
        """
        gold_policies = map(self.coded.policy_of, range(len(self.gold.columns)))
        policies = gold_policies, repeat(None, len(self.predicted.columns))
        return [
            numbered((policy, *map(_typed, column)) for policy, column in zip(of_side, side, strict=True))
            for of_side, side in zip(policies, self._values, strict=True)
        ]

    def _narrowed(self, options: Options, budget: Budget) -> Options:
        """Return `options` without predicted columns whose numbers cannot be paired within the tolerance.

        Numbers are compared within rows that agree in the links of another column; codes cannot do this, because one
        code links all values of a chain. The dict `options` is changed. At most a quarter of the budget is used.
        """
        if len(self.gold_rows) != len(self.predicted_rows):
            return options
        coded, (gold_kinds, kinds) = self.coded, self._kinds
        least = budget.left * 3 // 4

        @cache
        def numbers(side: int, classes: int, values: int) -> list[tuple[int, float]]:
            column = [_number(value, self.policy) for value in self._values[side][values]]
            return sorted(zip(coded.linked[side][classes], column, strict=True))

        @cache
        def fit(i: int, j: int, chain_: int, k: int) -> bool:
            if budget.left < least:
                return True
            budget.spend(len(self.gold_rows))
            width = widest_tolerance(coded.policy_of(chain_))
            pairs = zip(numbers(0, i, chain_), numbers(1, j, k), strict=True)
            return all(x[0] == y[0] and abs(x[1] - y[1]) <= width.reach(x[1]) for x, y in pairs)

        # Of columns that are alike, one stands for all.
        first_gold, first_predicted = ([kinds.index(kind) for kind in kinds] for kinds in (gold_kinds, kinds))
        chains = [i for i in options if len({*coded.linked.gold[i]}) < len({*coded.exact.gold[i]})]
        for i in chains:
            options[i] = [
                j for j in options[i] if fit(first_gold[i], first_predicted[j], first_gold[i], first_predicted[j])
            ]
        for chain_ in {first_gold[i]: i for i in chains}.values():
            for i, choices in options.items():
                if len({first_predicted[j] for j in choices}) > 1:
                    partners = {first_predicted[k] for k in options[chain_]}
                    options[i] = [
                        j
                        for j in choices
                        if any(fit(first_gold[i], first_predicted[j], first_gold[chain_], k) for k in partners)
                    ]
        return options

    def _coded_in_one_tolerance(self) -> Iterator[CodedTables]:
        """Yield the coded tables under one tolerance for all columns: the policy's, then the loosest of any column."""
        if not self.column_policies:
            yield self.coded
            return
        for policy in dict.fromkeys((self.policy.without_columns(), self.policy.loosest())):
            yield TablePair(self.gold, self.predicted, policy).coded

    def _has_same_rows(self) -> bool:
        """Return whether both sides have exactly the same rows; this usual case needs no codes."""
        return self._has_same_size and Counter(self.gold_rows) == Counter(self.predicted_rows)

    def _has_other_integers(self) -> bool:
        """Return whether the sums of integers in rows prove that no order of columns makes the sides equal.

        False if the sums prove nothing. This takes a tenth of the time of coding.
        """
        if not self._has_same_size:
            return False
        sums = [_integer_sums(rows) for rows in (self.gold_rows, self.predicted_rows)]
        return None not in sums and sums[0] != sums[1]

    @property
    def _has_same_size(self) -> bool:
        """Whether both sides have equally many rows and equally many columns."""
        return len(self.gold.columns) == len(self.predicted.columns) and len(self.gold_rows) == len(self.predicted_rows)

    @property
    def _may_be_equal(self) -> bool:
        """Whether both sides have equally many rows, at least one, and keep them if extra columns are dropped."""
        return 0 < len(self.gold_rows) == len(self.predicted_rows) and not self._may_drop_rows

    @property
    def _may_drop_rows(self) -> bool:
        """Whether dropping extra columns may make predicted rows equal, which then count once.

        The number of matches alone does not give the row F1 then.
        """
        return self.policy.duplicates == "ignore" and len(self.predicted.columns) > len(self.gold.columns)

    @property
    def _has_chains(self) -> bool:
        """Whether codes do not decide equality, because of chains of near values or tolerances of columns."""
        return bool(self.column_policies) or self.coded.has_chains

    # The best alignment

    @cached_property
    def alignment(self) -> Alignment | None:
        """The best alignment that the policy allows; None if predicted has too few columns or lacks a name."""
        return self._note(self._find_alignment())

    @property
    def shown_columns(self) -> tuple[int, ...] | None:
        """The columns of the best alignment for display: gold columns whose values decide little are aligned by name.

        Names are used only if as many rows match. None if there is no alignment.
        """
        best, names = (
            self.alignment,
            [[name.casefold() for name in table.columns] for table in (self.gold, self.predicted)],
        )
        if best is None or self.policy.columns != "any" or best.matched == len(self.gold_rows):
            return None if best is None else best.columns
        same = {
            place: names[1].index(name)
            for place, name in enumerate(names[0])
            if name and names[0].count(name) == names[1].count(name) == 1
        }

        gold_sizes, sizes = self.coded.distinct_counts

        def share(place: int, column: int) -> float:
            return self.coded.overlap(place, column) / max(gold_sizes[place], sizes[column], 1)

        by_value = (
            (place, column)
            for place, column in enumerate(best.columns)
            if share(place, column) >= DECIDED
            and (place not in same or share(place, column) > share(place, same[place]))
        )
        others = product(range(len(best.columns)), range(len(sizes)))
        columns, taken = dict[int, int](), set[int]()
        for place, column in chain(by_value, same.items(), enumerate(best.columns), others):
            if place not in columns and column not in taken:
                columns[place] = column
                taken.add(column)
        shown = tuple([columns[place] for place in range(len(best.columns))])
        return shown if self.row_f1(self.alignment_of(shown)) == self.row_f1(best) else best.columns

    def _find_alignment(self) -> Alignment | None:
        if len(self.gold.columns) > len(self.predicted.columns):
            return None
        if self.policy.columns != "any":
            return None if self._stated_columns is None else self.alignment_of(self._stated_columns)
        if not self.gold.columns:
            return self.alignment_of(())
        by_position = tuple(range(len(self.gold.columns)))
        if self._has_same_rows():
            return Alignment(columns=by_position, matched=len(self.gold_rows), is_proven=True)
        first_guess = self.alignment_of_all_rows if self._may_be_equal else None
        if self._has_chains and first_guess is not None and first_guess.matched == len(self.predicted_rows):
            return first_guess
        if self.column_policies:
            return self._best_guess()
        coded = self.coded
        guesses = [self._alignment_of_values(), *([] if first_guess is None else [first_guess.columns]), by_position]
        best = best_alignment(coded.paired.gold, coded.paired.predicted, guesses=guesses)
        if self._may_drop_rows:
            return self._best_guess(best.columns)
        if not coded.has_chains:
            return best
        compared = max(map(self.alignment_of, (best.columns, *guesses)), key=lambda alignment: alignment.matched)
        proven = best.is_proven and compared.matched == min(len(self.gold_rows), len(self.predicted_rows))
        return replace(compared, is_proven=proven)

    def _alignment_of_values(self) -> tuple[int, ...]:
        """Return a guessed alignment: columns that share the most distinct values, then columns of one position."""
        gold_sizes, sizes = self.coded.distinct_counts
        columns = dict[int, int]()
        if len(gold_sizes) * len(sizes) <= MAX_COLUMN_PAIRS:
            pairs = product(range(len(gold_sizes)), range(len(sizes)))
            shares = {(i, j): self.coded.overlap(i, j) / max(gold_sizes[i] + sizes[j], 1) for i, j in pairs}
            for i, j in sorted(shares, key=lambda pair: (-shares[pair], pair[0] != pair[1], pair)):
                if i not in columns and j not in columns.values():
                    columns[i] = j
        return tuple([columns.get(i, i) for i in range(len(gold_sizes))])

    @cached_property
    def entity_columns(self) -> tuple[int, ...] | None:
        """The columns of an alignment that matches as many rows as the best, with the highest entity F1.

        None if there is no alignment.
        """
        best = self.alignment
        if best is None or self._cannot_tie(best):
            return None if best is None else best.columns
        paired = self.coded.paired
        return max(equal_alignments(paired.gold, paired.predicted, best.columns), key=self._entity_f1)

    def _cannot_tie(self, best: Alignment) -> bool:
        """Return whether the best alignment needs no comparison with others that match as many rows.

        That is so if the policy names the columns, if all rows match, and if codes alone do not decide equality.
        """
        sizes = len(self.gold_rows), len(self.predicted_rows)
        is_stated = self.policy.columns != "any" or bool(self.column_policies) or self._may_drop_rows
        return is_stated or not min(sizes) or best.matched == max(sizes) or self.coded.has_chains

    def _entity_f1(self, columns: tuple[int, ...]) -> float:
        """Return the F1 of the mean precision and the mean recall of distinct values, over the aligned columns."""
        gold_sizes, sizes = self.coded.distinct_counts
        shared = [self.coded.overlap(i, j) for i, j in enumerate(columns)]
        precision = sum(overlap / sizes[j] for overlap, j in zip(shared, columns, strict=True))
        recall = sum(overlap / size for overlap, size in zip(shared, gold_sizes, strict=True))
        return precision * recall / (precision + recall) if precision else 0.0

    def _best_guess(self, *first: tuple[int, ...]) -> Alignment:
        """Return the alignment with the highest row F1 among `first` and further guesses.

        Stop at the first alignment whose score no other can exceed.
        """
        all_matched = Alignment(columns=(), matched=min(len(self.gold_rows), len(self.predicted_rows)), is_proven=True)
        highest_f1 = 1.0 if self._may_drop_rows else self.row_f1(all_matched)
        best, best_f1 = all_matched, -1.0
        budget, proven = search_budget(), self._tries_all()
        for columns in chain(first, self._guesses()):
            guess = self.alignment_of(columns, budget)
            proven = proven and guess.is_proven
            if (f1 := self.row_f1(guess)) > best_f1:
                best, best_f1 = guess, f1
            if best_f1 == highest_f1:
                return best
        return replace(best, is_proven=proven)

    def _guesses(self) -> Iterator[tuple[int, ...]]:
        """Yield alignments that may be best if columns have their own tolerances or dropped columns make rows equal.

        These are the best alignments under one tolerance for all columns, the alignments by position and by name, and,
        if they are few, all others.
        """
        for coded in self._coded_in_one_tolerance():
            yield best_alignment(coded.paired.gold, coded.paired.predicted, pinned=self.pinned).columns
        yield tuple(range(len(self.gold.columns)))
        if columns := _by_name(self.gold.columns, self.predicted.columns):
            yield columns
        if self._tries_all():
            pinned = tuple(range(self.pinned))
            free = range(self.pinned, len(self.predicted.columns))
            yield from (pinned + columns for columns in permutations(free, len(self.gold.columns) - self.pinned))

    def _tries_all(self) -> bool:
        orders = perm(len(self.predicted.columns) - self.pinned, len(self.gold.columns) - self.pinned)
        return orders * (len(self.gold_rows) + len(self.predicted_rows)) <= MAX_TRIED_ROWS

    # Rows and scores under an alignment

    def alignment_of(self, columns: tuple[int, ...], budget: Budget | None = None) -> Alignment:
        """Return the alignment of gold column i with predicted column `columns[i]`; it states how many rows match."""
        unpaired = self.unpaired(columns, budget)
        matched = len(self.gold_rows) - len(unpaired.gold)
        return Alignment(columns=columns, matched=matched, is_proven=unpaired.is_proven)

    def unpaired(self, columns: tuple[int, ...], budget: Budget | None = None) -> UnpairedRows:
        """Return the rows without an equal partner if gold column i is aligned with predicted column `columns[i]`.

        The result is kept for later calls.
        """
        if columns not in self._unpaired:
            self._unpaired[columns] = unpaired_rows(self.coded, columns, budget or search_budget())
        return self._unpaired[columns]

    def row_f1(self, alignment: Alignment | None) -> float:
        """Return the F1 score of rows under an alignment; 0 without an alignment.

        It is 2 * |multiset intersection of rows| / (number of gold rows + number of predicted rows).
        """
        if alignment is None:
            return 0.0
        gold_size, predicted_size = len(self.gold_rows), len(self.predicted_rows)
        if self._may_drop_rows:
            predicted_size = len(self.coded.project(alignment.columns)[1])
        return 2 * alignment.matched / (gold_size + predicted_size) if gold_size + predicted_size else 1.0


@lru_cache(maxsize=2)
def table_pair(gold: Table, predicted: Table, policy: Policy) -> TablePair:
    """Return the pair of two tables under a policy.

    The last two pairs are kept, so that the metrics of a case share them. Tables are compared by identity.
    """
    return TablePair(gold, predicted, policy)


def _integer_sums(rows: Rows) -> list[int] | None:
    """Return the sorted sums of the integers in each row.

    None if there are no integers, or if other cells may equal them.
    """
    types = set(map(type, chain.from_iterable(rows)))
    if types == {int}:
        return sorted(map(sum, rows))  # type: ignore[arg-type]  # all cells are int
    if int not in types or not types <= {int, str, NoneType}:
        return None
    return sorted(sum(cell for cell in row if isinstance(cell, int)) for row in rows)


def _by_name(gold: tuple[str, ...], predicted: tuple[str, ...]) -> tuple[int, ...] | None:
    """Return the predicted column for the name of each gold column, whatever the letter case.

    None if a name is missing. Of several columns with the name, the first free column is taken.
    """
    free: defaultdict[str, list[int]] = defaultdict(list)
    for position, name in reversed(list(enumerate(predicted))):
        free[name.casefold()].append(position)
    columns = [free[name.casefold()].pop() if free[name.casefold()] else -1 for name in gold]
    return None if -1 in columns else tuple(columns)
