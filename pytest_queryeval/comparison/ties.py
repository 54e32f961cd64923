"""Which rows of an ordered answer tie, and which rows a LIMIT cut off from among them.

The gold query is run once more without its LIMIT and with its sort keys, or their rank, as further columns, so that
keys which are not selected, collations and the place of nulls are judged by the engine itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, groupby, islice
from operator import itemgetter

from pytest_queryeval.comparison.policy import Policy, canonical, canonical_rows
from pytest_queryeval.table import BlankNode, Row, Table, Tie

NO_KEYS = "order: gold's sort keys could not be read, so its rows must stand in exactly their order"
SELECTED_KEYS = "order: only selected keys decide which of gold's rows tie"
UNCUT_FAILED = "order: the rows that gold's LIMIT cut off could not be read, so only the rows it returned count"
CUT = "order: gold's LIMIT cuts through rows that tie, so any choice among them is right"
_BY_VALUE = Policy()
_NODE = BlankNode("")


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderPlan:
    """What a query says of the order of its rows, with the queries that would tell more.

    `ranked` queries have `rank_columns` more columns at their end, equal for rows that tie, and the first that runs
    counts; `uncut` is the query without LIMIT and OFFSET. `keys` are the output columns that hold all sort keys, by
    position (from 0) or by name, or None where some key is not selected.
    """

    ordered: bool
    limited: bool
    offset: int
    ranked: tuple[str, ...]
    uncut: str | None
    keys: tuple[int | str, ...] | None
    rank_columns: int = 1


# A query that the engine runs and our reader of it does not read: its rows must stand in exactly their order.
UNREADABLE = OrderPlan(ordered=True, limited=False, offset=0, ranked=(), uncut=None, keys=None)


def ties_of(
    plan: OrderPlan, table: Table, policy: Policy, run: Callable[[str], Table | None]
) -> tuple[tuple[Tie, ...] | None, tuple[str, ...]]:
    """The ties of gold's answer, or None where they could not be told, and notes that say how they were found."""
    for query, read_groups, notes in _attempts(plan, _positions(plan, table), policy):
        full = run(query)
        if full is None:
            continue
        ties = _cut(read_groups(full), plan.offset if plan.limited else 0, table, policy)
        if ties is not None:
            cut = (CUT,) if any(len(tie.rows) > tie.size for tie in ties) else ()
            return ties, (*notes, *cut)
    return _selected_ties(plan, table, policy)


Groups = Callable[[Table], list[list[Row]]]


def _attempts(
    plan: OrderPlan, positions: Sequence[int] | None, policy: Policy
) -> Iterator[tuple[str, Groups, tuple[str, ...]]]:
    if not plan.ordered:
        if plan.uncut:
            yield plan.uncut, lambda full: [list(full.rows)], ()
        return
    for ranked in plan.ranked:
        yield ranked, lambda full: _groups_by_rank(full, plan.rank_columns), ()
    if plan.uncut and plan.limited and positions is not None:
        yield plan.uncut, lambda full: _groups_by_keys(full, positions, policy), (SELECTED_KEYS,)


def _selected_ties(plan: OrderPlan, table: Table, policy: Policy) -> tuple[tuple[Tie, ...] | None, tuple[str, ...]]:
    """Ties by the selected keys of the rows that gold returned, where running gold again has failed."""
    cut = (UNCUT_FAILED,) if plan.limited else ()
    positions = _positions(plan, table)
    if not plan.ordered or positions is None:
        return None, (*cut, *((NO_KEYS,) if plan.ordered else ()))
    groups = _groups_by_keys(table, positions, policy)
    return tuple(Tie(size=len(rows), rows=tuple(rows)) for rows in groups), (SELECTED_KEYS, *cut)


def _groups_by_rank(full: Table, count: int) -> list[list[Row]]:
    ranks = [tuple([canonical(cell, _BY_VALUE) for cell in row[-count:]]) for row in full.rows]
    pairs = zip(ranks, full.rows, strict=True)
    return [[row[:-count] for _, row in group] for _, group in groupby(pairs, key=itemgetter(0))]


def _groups_by_keys(table: Table, positions: Sequence[int], policy: Policy) -> list[list[Row]]:
    keys = [tuple(row[position] for position in positions) for row in canonical_rows(table, policy)]
    return [
        [row for _, row in pairs] for _, pairs in groupby(zip(keys, table.rows, strict=True), key=lambda pair: pair[0])
    ]


def _cut(groups: list[list[Row]], offset: int, table: Table, policy: Policy) -> tuple[Tie, ...] | None:
    """The part of the groups that the answer covers; None where the answer's rows are not those of the groups."""
    start, end = offset, offset + len(table.rows)
    mine = _comparable(table.rows, table, policy)
    theirs = iter(_comparable(list(chain.from_iterable(groups)), table, policy))
    ties = []
    position = taken = 0
    for rows in groups:
        allowed = Counter(islice(theirs, len(rows)))
        size = min(position + len(rows), end) - max(position, start)
        position += len(rows)
        if size <= 0:
            continue
        if Counter(mine[taken : taken + size]) - allowed:
            return None
        ties.append(Tie(size=size, rows=tuple(rows)))
        taken += size
    return tuple(ties) if taken == len(table.rows) else None


def _comparable(rows: Sequence[Row], table: Table, policy: Policy) -> Sequence[tuple[Hashable, ...]]:
    """Canonical rows of one run that can be told from those of another: blank nodes may have other labels in each."""
    canonical_ = canonical_rows(Table(columns=table.columns, rows=list(rows)), policy)
    return [tuple([_NODE if isinstance(cell, BlankNode) else cell for cell in row]) for row in canonical_]


def _positions(plan: OrderPlan, table: Table) -> tuple[int, ...] | None:
    """Where gold's sort keys stand in its answer; None where one of them is not there, or is there twice."""
    names = [name.lower() for name in table.columns]
    found = []
    for key in plan.keys or ():
        if isinstance(key, str):
            key = names.index(key.lower()) if names.count(key.lower()) == 1 else -1
        found.append(key)
    return tuple(found) if found and all(0 <= key < len(names) for key in found) else None
