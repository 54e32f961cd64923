"""The rows of two tables that have no equal partner, where it is known which columns are aligned."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import NamedTuple, TypeAlias

from pytest_queryeval.comparison.budget import Budget, BudgetSpentError
from pytest_queryeval.comparison.canonical import is_comparable, is_near, quantity_of
from pytest_queryeval.comparison.coded_tables import CodedRow, CodedTables, transpose
from pytest_queryeval.comparison.graphs import most_pairs
from pytest_queryeval.comparison.numbers import as_float, widest
from pytest_queryeval.core.policy import Policy

Groups: TypeAlias = Mapping[CodedRow, Sequence[int]]
Positions: TypeAlias = Iterable[tuple[int, CodedRow]]
Cells: TypeAlias = tuple[Hashable, ...]
Placed: TypeAlias = tuple[int, Cells]
Pairs: TypeAlias = list[tuple[int, int]]
COMPARISON = 5  # what a comparison of two rows takes of the budget, in rows visited


class UnpairedRows(NamedTuple):
    """The positions of gold's and of predicted's rows without an equal partner; `proven` that none can have one."""

    gold: list[int]
    predicted: list[int]
    proven: bool


def unpaired_rows(tables: CodedTables, columns: tuple[int, ...], budget: Budget) -> UnpairedRows:
    """Pair equal rows where gold column i is aligned with predicted `columns[i]`, and return the rest.

    Rows that are exactly equal are paired first, then as many as there can be.
    """
    gold, predicted = tables.project(columns)
    chains = [tables.pair_of(*place).chains for place in enumerate(columns)]
    if not any(chains):
        return UnpairedRows(
            _without_partner(enumerate(gold), predicted.values()),
            _without_partner(predicted.items(), gold),
            proven=True,
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
            proven = proven and near_rows.proven
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
    """Return the positions of rows without exactly equal partner, in groups of which only rows of both may be equal.

    Groups are by the codes of cells, or of the chains that these are in; `gold` and `predicted` are projected rows.
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
    """Return the positions of rows for which no partner with the same codes is free."""
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
    """Return positions by the codes of their rows: of the chain that a cell is in, else its `equal` code."""
    groups: defaultdict[CodedRow, list[int]] = defaultdict(list)
    for at in positions:
        cells = zip(chains, exact[at], equal[at], strict=True)
        groups[tuple([codes.get(exact_code, equal_code) for codes, exact_code, equal_code in cells])].append(at)
    return groups


class PairedRows(NamedTuple):
    """Pairs of positions; `proven` that there cannot be more of them."""

    pairs: Pairs
    proven: bool


def pair_near_rows(
    gold: Sequence[Placed], predicted: Sequence[Placed], policies: Sequence[Policy], budget: Budget
) -> PairedRows:
    """Pair as many rows as there can be that are equal within the tolerance, as long as the budget lasts.

    Rows are a position and values; `policies` are those of the values. Rows are compared with those whose number
    is near in the place where numbers differ most.
    """
    search = _RowSearch(gold, predicted, policies, budget)
    try:
        return PairedRows(search.most_pairs(), proven=True)
    except BudgetSpentError:
        return PairedRows(search.first_fits, proven=False)


class _Row(NamedTuple):
    number: float
    position: int
    values: Cells


class _RowSearch:
    """A search for pairs of near rows; `first_fits` are those found so far with the first partner that was free."""

    def __init__(
        self, gold: Sequence[Placed], predicted: Sequence[Placed], policies: Sequence[Policy], budget: Budget
    ) -> None:
        columns = zip(*(values for _, values in (*gold, *predicted)), strict=True)
        spread = [len(set(map(_number, column))) for column in columns]
        place = spread.index(max(spread))
        self.gold, self.predicted = (
            sorted(_Row(_number(values[place]), position, values) for position, values in side)
            for side in (gold, predicted)
        )
        self.first_fits: Pairs = []
        self._numbers = [row.number for row in self.predicted]
        self._policies = policies
        self._width = widest(policies[place])
        self._budget = budget

    def most_pairs(self) -> Pairs:
        """Return as many pairs of positions as there can be."""
        self._find_first_fits()
        if len(self.first_fits) == min(len(self.gold), len(self.predicted)):
            return self.first_fits
        fits = [list(self._near(row)) for row in self.gold]
        pairs = most_pairs(fits, len(self.predicted))
        return [(self.gold[place].position, self.predicted[partner].position) for place, partner in pairs]

    def _find_first_fits(self) -> None:
        """Pair each row with the first near one that is free."""
        free = list(range(len(self.predicted) + 1))  # the next place that may be free, for each place
        for row in self.gold:
            place = next(self._near(row, free), None)
            if place is not None:
                free[place] = place + 1
                self.first_fits.append((row.position, self.predicted[place].position))

    def _near(self, row: _Row, free: list[int] | None = None) -> Iterator[int]:
        """Yield the places of rows that are near in all values."""
        reach = self._width.reach(row.number)
        place = bisect_left(self._numbers, row.number - reach) if reach < float("inf") else 0
        while (place := _next_free(place, free)) < len(self.predicted) and self._numbers[place] <= row.number + reach:
            self._budget.spend(COMPARISON)
            if all(map(_are_equal, row.values, self.predicted[place].values, self._policies)):
                yield place
            place += 1


def _number(value: Hashable) -> float:
    """Return a number, a truth value among them, to sort by; 0 for any other value."""
    quantity = quantity_of(value) if is_comparable(value) else value
    return as_float(quantity) if isinstance(quantity, int | float | Decimal) else 0.0


def _are_equal(x: Hashable, y: Hashable, policy: Policy) -> bool:
    return x == y or (is_comparable(x) and is_comparable(y) and is_near(x, y, policy))


def _next_free(place: int, free: list[int] | None) -> int:
    """Return the first free place from `place` on, and shorten the way to it."""
    if free is None:
        return place
    while place < len(free) - 1 and free[place] != place:
        free[place] = free[free[place]]
        place = free[place]
    return place
