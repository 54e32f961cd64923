"""The rows of two tables that have no equal partner, where it is known which columns are aligned."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from pytest_queryeval.comparison.budget import Budget
from pytest_queryeval.comparison.coded_tables import CodedRow, CodedTables, transpose
from pytest_queryeval.comparison.near_rows import pair_near_rows

Groups: TypeAlias = Mapping[CodedRow, Sequence[int]]
Positions: TypeAlias = Iterable[tuple[int, CodedRow]]


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
        sorted(exact.items(), key=lambda item: _float_count(rows[item[0]]))
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


def _float_count(row: tuple[Hashable, ...]) -> int:
    return list(map(type, row)).count(float)
