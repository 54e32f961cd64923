"""The rows of an ordered answer that tie, and those of them that a LIMIT cut off.

The gold query is run once more with its sort keys, or their rank, as further columns, up to the last row that ties with
the last that it returned, so that the engine itself applies keys which are not selected, collations and the place of
nulls.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, groupby, islice
from operator import itemgetter
from typing import Any, NamedTuple, Protocol

from pytest_queryeval.comparison.canonical import canonical_rows, canonical_value
from pytest_queryeval.core.table import BlankNode, Policy, Row, Table, Tie, replace_blank_nodes

NO_KEYS = (
    "order: the sort keys of the gold query could not be read, so rows must have exactly the order of the gold answer"
)
SELECTED_KEYS = "order: only selected sort keys decide which rows of the gold answer tie"
CUT = "order: LIMIT or OFFSET of the gold query cuts through {rows} rows that tie, so any choice among them is right"
_BY_VALUE = Policy()
_NODE = BlankNode("")


@dataclass(frozen=True, slots=True, kw_only=True)
class TieQuery:
    """A query that returns gold's rows in order, up to the last row that ties with the last row that gold returned.

    The last `key_columns` columns are not gold's; they are equal in rows that tie, and without them all rows tie. If
    `is_ranked` is true, there is one such column, the rank of the row. `max_rows` is the query's own limit, which may
    end it too early. `notes` are sentences on the keys that the query leaves out.
    """

    text: str
    key_columns: int
    is_ranked: bool = False
    max_rows: int | None = None
    notes: tuple[str, ...] = ()


class MadeQueries(Sequence[TieQuery]):
    """A sequence of tie queries that are made anew on each use.

    Few plans need any query, and most of these only the first.
    """

    def __init__(self, make: Callable[[], Iterator[TieQuery]]) -> None:
        self._make = make

    def __iter__(self) -> Iterator[TieQuery]:
        return self._make()

    def __getitem__(self, places: Any) -> Any:
        return [*self._make()][places]

    def __len__(self) -> int:
        return sum(1 for _ in self._make())


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderPlan:
    """The order of a query's rows, and the queries that show which rows tie; the first query that runs counts.

    `ordered` says whether the query orders its rows. `limited` says whether it returns only a range of them, which
    begins after `offset` rows. `keys` are the output columns that contain all sort keys, None if a key is not selected.
    """

    ordered: bool
    limited: bool
    offset: int
    queries: Sequence[TieQuery]
    keys: tuple[int, ...] | None


class Collection(NamedTuple):
    """An output column whose cells are lists of elements that gold may return in any order.

    - `separator`: the text between elements in gold's cells; None if gold returns lists.
    - `group`: columns of one group have the same rows in the same order; columns of DISTINCT elements have their own
      group.
    - `picks`: gold returns one of the elements, which are terms as `encoded_term` writes them.
    - `may_repeat`: rows with the same list may have it from one and the same group of rows.
    - `around`: two characters, between which gold has the elements of a JSON list; else empty.
    """

    column: int
    separator: str | None
    group: int
    picks: bool = False
    may_repeat: bool = False
    around: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class GuidedQuery:
    """Gold's query with its open choices made towards a predicted answer; gold may return whatever it returns.

    `alignment` is the predicted column that is assumed for each of some gold columns. The cells of `collections` are
    lists of their elements as texts, in JSON if the database has no lists. If `read` is set, the query has no answer
    for gold: its rows are passed to `read` before the next query is asked for.
    """

    text: str
    alignment: Mapping[int, int]
    collections: tuple[Collection, ...] = ()
    read: Callable[[Table], None] | None = None


class OpenQuery(Protocol):
    """A gold query that leaves its answer open below its top level, for instance by a LIMIT in a subquery."""

    @property
    def choices(self) -> tuple[str, ...]:
        """The open choices, in words for the notes of a case."""

    @property
    def fixed_columns(self) -> tuple[int, ...] | None:
        """The output columns that no choice changes; None if a choice may change which rows there are."""

    def guided(self, gold: Table, predicted: Table, alignments: Sequence[Mapping[int, int]]) -> Iterator[GuidedQuery]:
        """Yield up to three queries that make the choices towards `predicted`; `gold` is the answer of this query.

        Each query uses an alignment of `alignments`, which map gold's columns to predicted columns, the likeliest
        first.
        """

    def decided(self, first: str = "") -> list[str]:
        """Return the query with its choices decided by all columns, ascending and descending; empty if it has no keys.

        With `first`, a text of `deciding_columns`, that column decides before the others, always ascending.
        """

    def deciding_columns(self) -> list[str]:
        """Return the texts of the columns that can decide the choices."""


# A query that the engine runs and our parser cannot read: rows must be in exactly its order.
UNREADABLE = OrderPlan(ordered=True, limited=False, offset=0, queries=(), keys=None)


def ties_of(
    plan: OrderPlan, table: Table, policy: Policy, run: Callable[[str], Table | str]
) -> tuple[tuple[Tie, ...] | None, tuple[str, ...]]:
    """Return the ties of gold's answer `table`, None if they are unknown, and notes on how they were found.

    `run` executes a query, and returns its answer or the text of its failure. If no query of the plan shows the ties,
    the selected sort keys decide.
    """
    reason = "the query cannot be rewritten"
    for query in plan.queries:
        full = run(query.text)
        if isinstance(full, str):
            reason = full
            continue
        width = len(full.columns) - query.key_columns
        keys = [tuple([canonical_value(cell, _BY_VALUE) for cell in row[width:]]) for row in full.rows]
        groups = _grouped([row[:width] for row in full.rows], keys)  # the rows of gold that tie
        end = plan.offset + len(table.rows)
        if query.max_rows == len(full.rows) and query.max_rows - len(groups[-1]) < end:
            reason = f"more than {query.max_rows:,} rows"
            if end > query.max_rows:
                reason = f"OFFSET and LIMIT reach up to row {end:,}, `max_rows` to {query.max_rows:,}"
            continue
        first = int(str(full.rows[0][-1])) if query.is_ranked and full.rows else 1
        ties = _covered_ties(groups, plan.offset - (first - 1), table, policy)
        if ties is not None:
            rows_cut = sum(len(tie.rows) for tie in ties if len(tie.rows) > tie.size)
            cut = (CUT.format(rows=rows_cut),) if rows_cut else ()
            return ties, (*query.notes, *cut)
        reason = "the gold query returned other rows when it ran again"
    return _selected_ties(plan, table, policy, reason)


def without_choice(table: Table) -> Table:
    """Return a copy of the table whose ties allow only the table's own rows."""
    rows = iter(table.rows)
    ties = tuple(replace(tie, rows=tuple(islice(rows, tie.size))) for tie in table.ties or ())
    return replace(table, ties=ties)


def _selected_ties(
    plan: OrderPlan, table: Table, policy: Policy, reason: str
) -> tuple[tuple[Tie, ...] | None, tuple[str, ...]]:
    """Return ties by the sort keys that gold selects, and notes, for a gold query whose rows could not be read again.

    The ties are None if a sort key is not selected. `reason` says why the rows could not be read.
    """
    unread = (
        f"order: the rows that tie at the LIMIT of the gold query could not be read ({reason}), "
        "so only those it returned are right"
    )
    cut = (unread,) if plan.limited else ()
    if plan.keys is None:
        return None, (*cut, *((NO_KEYS,) if plan.ordered else ()))
    keys = [tuple([row[key] for key in plan.keys]) for row in canonical_rows(table, policy)]
    ties = (Tie(size=len(rows), rows=tuple(rows)) for rows in _grouped(table.rows, keys))
    return tuple(ties), (SELECTED_KEYS, *cut)


def _grouped(rows: Sequence[Row], keys: Sequence[Hashable]) -> list[list[Row]]:
    return [[row for _, row in group] for _, group in groupby(zip(keys, rows, strict=True), key=itemgetter(0))]


def _covered_ties(groups: list[list[Row]], offset: int, table: Table, policy: Policy) -> tuple[Tie, ...] | None:
    """Return the ties of the part of `groups` that the answer covers; None if the answer has rows that are not in them.

    The answer begins after `offset` rows of the groups.
    """
    start, end = offset, offset + len(table.rows)
    answered = _comparable(table.rows, table, policy)
    allowed_rows = iter(_comparable(list(chain.from_iterable(groups)), table, policy))
    ties = []
    position = rows_covered = 0
    for rows in groups:
        allowed = Counter(islice(allowed_rows, len(rows)))
        size = min(position + len(rows), end) - max(position, start)
        position += len(rows)
        if size <= 0:
            continue
        if Counter(answered[rows_covered : rows_covered + size]) - allowed:
            return None
        ties.append(Tie(size=size, rows=tuple(rows)))
        rows_covered += size
    return tuple(ties) if rows_covered == len(table.rows) else None


def _comparable(rows: Sequence[Row], table: Table, policy: Policy) -> Sequence[tuple[Hashable, ...]]:
    """Return canonical rows without the labels of blank nodes, which may differ in another run."""
    canonical_ = canonical_rows(Table(columns=table.columns, rows=list(rows)), policy)
    return [tuple([replace_blank_nodes(cell, lambda _: _NODE) for cell in row]) for row in canonical_]
