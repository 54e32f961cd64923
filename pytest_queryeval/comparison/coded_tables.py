"""Gold and predicted as ints that are the same for equal cells, under the tolerance of each gold column."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import chain, count
from typing import NamedTuple, TypeAlias

from pytest_queryeval.comparison.graphs import connected
from pytest_queryeval.comparison.tolerance import Merge, merge_close_values
from pytest_queryeval.core.policy import Policy
from pytest_queryeval.core.table import Table

Rows: TypeAlias = Sequence[tuple[Hashable, ...]]
Codes: TypeAlias = list[int]
CodedRow: TypeAlias = tuple[int, ...]


class CodedColumns(NamedTuple):
    """The columns of both tables as ints."""

    gold: list[Codes]
    predicted: list[Codes]

    def translated(self, codes: Mapping[int, int]) -> CodedColumns:
        """Return the columns with some codes replaced."""
        return CodedColumns(_translated(self.gold, codes), _translated(self.predicted, codes))


class ColumnPair(NamedTuple):
    """A gold column and a predicted one as ints under the gold column's tolerance, with codes as in `CodedTables`."""

    exact: Sequence[Codes]
    equal: Sequence[Codes]
    paired: Sequence[Codes]
    chains: Mapping[int, int]


class CodedTables:
    """Canonical rows of both tables as columns of ints under a policy; each kind of code joins more values.

    `exact` codes are the same for the same canonical value, `equal` codes also for values that are all equal to each
    other, and `paired` codes also for two values that are near each other, each used once. `chains` maps the `equal`
    codes of values that are near some values of a chain and not near others to one code for the chain: rows that hold
    them are equal where they are compared value by value, not where codes are the same. `column_policies` are those of
    gold columns with a tolerance of their own: `pair_of` has their codes.
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
        """Whether values are near each other without being all equal, under the policy of all columns."""
        return bool(self.chains)

    def policy_of(self, gold_column: int) -> Policy:
        """Return the policy of a gold column."""
        return self.column_policies.get(gold_column, self.policy)

    def read_cell(self, value: Hashable) -> Hashable:
        """Return a value, a text together with the date, time or duration that it reads as."""
        return self.texts.get(value, value)

    def pair_of(self, gold_column: int, predicted_column: int) -> ColumnPair:
        """Return a gold column and a predicted one under the gold column's tolerance."""
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
        """Merge the values of a gold column with those of all predicted columns, under the gold column's tolerance."""
        gold, predicted = self.rows
        policy = self.column_policies[gold_column]
        return merge_close_values(codes, [[row[gold_column] for row in gold]], columns_of(predicted), policy)

    @cached_property
    def paired_anywhere(self) -> tuple[CodedColumns, bool]:
        """The `paired` codes for metrics that look for a cell of gold in any column of predicted, and `has_chains`.

        Values of gold columns with a tolerance of their own are merged under it as well.
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
        """Codes that are the same for all values which nearness links, under the policy of any column."""
        merges = [self._merge, *(self._merge_column(place, self._codes) for place in self.column_policies)]
        links = chain.from_iterable(chain(merge.equal.items(), merge.chains.items()) for merge in merges)
        return self.exact.translated(connected(links))

    def overlap(self, gold_column: int, predicted_column: int) -> int:
        """Return how many distinct values of a gold column can be paired with equal ones of a predicted column."""
        if gold_column in self.column_policies:
            pair = self.pair_of(gold_column, predicted_column)
            gold, predicted = map(_distinct_values, pair.exact, pair.paired)
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
    def _distinct(self) -> tuple[list[Mapping[int, int]], list[Mapping[int, int]]]:
        gold, predicted = (list(map(_distinct_values, *sides)) for sides in zip(self.exact, self.paired, strict=True))
        return gold, predicted

    def project(self, columns: tuple[int, ...]) -> tuple[list[CodedRow], dict[int, CodedRow]]:
        """Return gold's rows, and predicted's by position with cells in the order of gold's columns, as `equal` codes.

        With `duplicates: ignore`, predicted rows that the projection makes the same are there once.
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
    """Return one value for those that are equal without being the same; values that keep their own are left out."""
    values = list(dict.fromkeys(chain.from_iterable(chain(gold, predicted))))
    codes = {value: code for code, value in enumerate(values)}
    merge = merge_close_values(codes, columns_of(gold), columns_of(predicted), policy)
    return {values[code]: values[shared] for code, shared in merge.codes.items()}


def columns_of(rows: Rows) -> Iterable[tuple[Hashable, ...]]:
    """Return the columns of rows; none where there are no rows."""
    return zip(*rows, strict=True)


def _translated(columns: list[Codes], codes: Mapping[int, int]) -> list[Codes]:
    return [[codes.get(code, code) for code in column] for column in columns] if codes else columns


def transpose(columns: Sequence[Codes], rows: int) -> list[CodedRow]:
    """Return columns as rows; without columns there are `rows` empty ones."""
    return list(zip(*columns, strict=True)) if columns else [()] * rows


def _distinct_values(exact: Codes, paired: Codes) -> Mapping[int, int]:
    """Return how many distinct canonical values of a column share each `paired` code."""
    if exact is paired:
        return dict.fromkeys(exact, 1)
    return Counter(code for _, code in set(zip(exact, paired, strict=True)))
