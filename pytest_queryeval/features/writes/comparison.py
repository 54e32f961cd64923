"""Compares the states to which gold and predicted lead.

Both start from one state. So the resulting states are equal if the rows that gold added and predicted removed are,
together, the rows that predicted added and gold removed. Rows that neither changed need not be read. All of these rows
are compared as one table, in which tables share columns of the same name. So a generated key, and columns that refer to
it, may have other values, if the values correspond throughout.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from pytest_queryeval.comparison.canonical import canonical_value, is_equal
from pytest_queryeval.comparison.difference import RowChange, difference, differing_columns
from pytest_queryeval.comparison.difference_texts import columns_summary
from pytest_queryeval.comparison.equality import equal_tables, project
from pytest_queryeval.comparison.pairing import TablePair, table_pair
from pytest_queryeval.comparison.similar_rows import similar_rows
from pytest_queryeval.core.case_report import NO_DIFFERENCE, ColumnDifference, DifferenceCounts, DifferenceReport
from pytest_queryeval.core.mappings import excluding, grouped
from pytest_queryeval.core.model import Case
from pytest_queryeval.core.table import BlankNode, Cell, Policy, Row, Table
from pytest_queryeval.features.writes import Writes
from pytest_queryeval.features.writes.stated_keys import ALL_COLUMNS, ColumnName, returned_columns, stated_columns
from pytest_queryeval.text.formatting import pluralize

if TYPE_CHECKING:
    from pytest_queryeval.features.writes.state_change import StateChange, TableChange

HEAD = ("table", "change")
# What is wrong with a row that one state has and the other has not, by the side that has it and who changed it.
WORDS = {
    ("gold", "gold"): "not added",
    ("gold", "predicted"): "removed",
    ("predicted", "predicted"): "added",
    ("predicted", "gold"): "not removed",
}
CHANGED = "changed"
Nodes: TypeAlias = dict[ColumnName, dict[Cell, BlankNode]]


class ChangedRow(NamedTuple):
    """A changed row that is in one of the resulting states: added there, or removed from the other state."""

    table: str
    """The name of its table, or the text of a changed definition."""
    name: str
    """The name of its table in lower case, or the same text; equal for both states."""
    word: str
    """A value of WORDS: what is wrong if the other state lacks the row."""
    cells: Mapping[str, Cell]
    """All cells by the names of columns in lower case."""
    compared: Mapping[str, Cell]
    """The cells that count; generated keys are blank nodes."""
    key: tuple[tuple[str, Cell], ...]
    """The columns of its primary key, and their cells."""


class RowPair(NamedTuple):
    """A row of gold's state, and the row of predicted's state that stands for it."""

    gold: ChangedRow
    predicted: ChangedRow
    key: Collection[str]
    """The columns whose cells identify the pair."""


class Comparison:
    """Compares what gold changed and returned with what predicted did, by the settings of a case."""

    def __init__(self, gold: StateChange, predicted: StateChange, case: Case) -> None:
        self._gold, self._predicted = gold, predicted
        setting = case.extra.get("writes")
        self._writes = setting if isinstance(setting, Writes) else Writes()
        self._policy = case.settings.policy

    def is_equal(self) -> bool:
        """Return whether both lead to equal states, and return the same."""
        return equal_tables(*self._tables, self._state_policy) and self._returns_the_same

    def difference(self, limit: int) -> DifferenceReport[Row]:
        """Return how the states differ; if they are equal, how the returned rows differ.

        The report has at most `limit` rows of a kind. Rows that only one state has are paired by key, else by likeness,
        and pairs are summarized by column. Differing returned rows are added to the summary.
        """
        gold_rows, predicted_rows = self._sides
        unpaired = self._pair.unpaired(tuple(range(1 + len(self._names))))
        missing, extra = [gold_rows[at] for at in unpaired.gold], [predicted_rows[at] for at in unpaired.predicted]
        counts: DifferenceCounts = {"missing": len(missing), "extra": len(extra)}
        added, not_added = (
            Counter(row.name for row in rows if row.word == WORDS["gold", "gold"]) for rows in (gold_rows, missing)
        )
        missing, extra, pairs = _pairs_by_key(missing, extra)
        missing, extra, likely_pairs = _pairs_by_likeness(missing, extra, self._state_policy)
        by_column = list(self._by_column([*pairs, *likely_pairs], added - not_added, limit))
        unexplained = [pair.gold for pair in pairs if not self._row_change(pair).differing]  # generated keys differ
        others = list(_summaries([*missing, *(row._replace(word=CHANGED) for row in unexplained)], extra))
        if not self._returns_the_same:
            returned = self._returned_difference(limit)
            if not by_column and not others:
                return returned
            others.append(returned["summary"])
        columns = [*HEAD, *self._names.values()]
        found: DifferenceReport[Row] = {
            "summary": columns_summary(by_column, others),
            "columns": columns,
            "predicted_columns": columns,
            "counts": counts,
            "missing": [self._displayed(row, row.word) for row in missing[:limit]],
            "extra": [self._displayed(row, row.word) for row in extra[:limit]],
            "changed": [self._row_change(pair).rows for pair in (*pairs, *likely_pairs)[:limit]],
            "repeated": [],
        }
        return {**found, "by_column": by_column} if by_column else found

    def _by_column(self, pairs: Sequence[RowPair], equal_rows: Counter[str], limit: int) -> Iterator[ColumnDifference]:
        """Yield a summary of how paired rows differ, by table and column.

        `equal_rows` is the number of equal rows by table, which count as paired.
        """
        changes = grouped((pair.gold.name, self._row_change(pair)) for pair in pairs)
        for table, of_table in changes.items():
            labels, paired_rows = [*HEAD, *self._names.values()], equal_rows[table] + len(of_table)
            for column in differing_columns(labels, self._policies, of_table, paired_rows, limit):
                yield {**column, "column": f"{column['column']} of {table}"}

    def _row_change(self, pair: RowPair) -> RowChange:
        """Return a pair of rows with the columns that identify them, and the columns in which they differ.

        Cells are compared by the policy of their column; two generated keys never differ.
        """
        gold, predicted, key = pair

        def differs(place: int, name: str) -> bool:
            cells = gold.compared.get(name), predicted.compared.get(name)
            if all(isinstance(cell, BlankNode) for cell in cells):
                return False
            policy = self._policies[place]
            return not is_equal(canonical_value(cells[0], policy), canonical_value(cells[1], policy), policy)

        places = [*enumerate(self._names, start=len(HEAD))]
        return RowChange(
            [place for place, name in places if name in key],
            [place for place, name in places if differs(place, name)],
            {"gold": self._displayed(gold, CHANGED), "predicted": self._displayed(predicted, CHANGED)},
        )

    def stable_part(self) -> Table:
        """Return what gold changed and returned as one table, without ignored cells, with nodes for generated keys.

        Rows of changes begin with the table and whether the row was added; returned rows begin with two NULLs.
        """
        nodes, returned = self._nodes(self._gold), self._with_nodes(self._gold)
        rows: list[Row] = [
            (row.name, is_added, *map(row.compared.get, self._names))
            for table in self._gold.tables
            for is_added, row in self._changed_rows(table, nodes)
        ]
        rows += [(None, None, *row) for row in (returned.rows if returned else ())]
        width = max(map(len, rows), default=0)
        return Table(columns=("",) * width, rows=[(*row, *(None,) * (width - len(row))) for row in rows])

    def _displayed(self, row: ChangedRow, word: str) -> Row:
        return (row.table, word, *(row.cells.get(name) for name in self._names))

    @property
    def _state_policy(self) -> Policy:
        return replace(
            self._policy,
            columns="positional",
            row_order="ignore",
            duplicates="count",
            extra_columns="reject",
            gold_columns=(),
        )

    @cached_property
    def _names(self) -> dict[str, str]:
        """The names of all columns, by their names in lower case."""
        names: dict[str, str] = {}
        for state in (self._gold, self._predicted):
            for table in state.tables:
                for name in (*(table.after or ()), *(table.before or ())):
                    names.setdefault(name.lower(), name)
        return names

    @cached_property
    def _tables(self) -> tuple[Table, Table]:
        """The rows of `_sides` as two tables with the same columns."""
        columns = (HEAD[0], *self._names.values())
        gold, predicted = (
            Table(
                columns=columns,
                rows=[(row.name, *(row.compared.get(name) for name in self._names)) for row in side],
            )
            for side in self._sides
        )
        return gold, predicted

    @cached_property
    def _pair(self) -> TablePair:
        return table_pair(*self._tables, self._state_policy)

    @cached_property
    def _policies(self) -> list[Policy]:
        """The policies by which the cells of each column of a difference are compared."""
        coded = self._pair.coded
        return [self._state_policy] * len(HEAD) + [coded.policy_of(place) for place in range(1, 1 + len(self._names))]

    @cached_property
    def _sides(self) -> tuple[list[ChangedRow], list[ChangedRow]]:
        """The changed rows of gold's state and those of predicted's; a row that both have is on both sides."""
        sides: dict[str, list[ChangedRow]] = {"gold": [], "predicted": []}
        states = {"gold": self._gold, "predicted": self._predicted}
        for changer, opposite in (("gold", "predicted"), ("predicted", "gold")):
            state = states[changer]
            nodes = self._nodes(state)
            for table in state.tables:
                for is_added, row in self._changed_rows(table, nodes):
                    side = changer if is_added else opposite
                    sides[side].append(row._replace(word=WORDS[side, changer]))
        return sides["gold"], sides["predicted"]

    def _changed_rows(self, table: TableChange, nodes: Nodes) -> Iterator[tuple[bool, ChangedRow]]:
        """Yield changed definitions and rows of a table, each with whether it was added.

        In compared cells, ignored columns are left out, and generated keys of added rows are `nodes`.
        """
        name = table.table.lower()
        for text, is_added in table.definitions():
            yield is_added, ChangedRow(text, text, "", {}, {}, ())
        ignored = {column for of, column in self._writes.ignore if of == name}
        keys = [column.lower() for column in table.key]
        renamed = {column: values for (of, column), values in nodes.items() if of == name}
        for is_added, columns, row in table.rows():
            cells = dict(zip(map(str.lower, columns), row, strict=True))
            compared = excluding(cells, ignored)
            if is_added:
                compared |= {
                    column: values[cells[column]]
                    for column, values in renamed.items()
                    if column in compared and cells[column] in values
                }
            key = tuple([(column, cells.get(column)) for column in keys])
            yield is_added, ChangedRow(table.table, name, "", cells, compared, key)

    def _nodes(self, state: StateChange) -> Nodes:
        """Return, by column, a blank node for each key that the database generated for a new row.

        Columns that refer to such a key have the same nodes. Keys are left out if gold states them or the settings name
        them.
        """
        columns = tuple(
            (table.table, table.after or table.before or ()) for table in (*self._gold.tables, *self._predicted.tables)
        )
        stated = stated_columns(self._gold.query, self._gold.dialect, columns)
        nodes: Nodes = {}
        if stated is None:
            return nodes
        for table in state.tables:
            for column in table.generated:
                name = table.table.lower(), column.lower()
                if name in self._writes.keys or not stated.isdisjoint((name, (name[0], ALL_COLUMNS))):
                    continue
                before, after = (
                    {row[names.index(column)] for row in rows} if names and column in names else set()
                    for rows, names in ((table.removed, table.before), (table.added, table.after))
                )
                nodes[name] = {value: BlankNode(f"{'.'.join(name)}={value!r}") for value in after - before}
        for table in state.tables:
            for reference in table.references:
                if values := nodes.get((reference.table.lower(), reference.to.lower())):
                    nodes.setdefault((table.table.lower(), reference.column.lower()), values)
        return nodes

    @cached_property
    def _returns_the_same(self) -> bool:
        """Whether predicted returns what gold returns; if gold returns nothing, any result is accepted."""
        gold, predicted = self._returned
        return gold is None or (
            predicted is not None
            and equal_tables(gold, predicted, self._policy)
            and self._returns_keys_of_the_same_rows(gold, predicted)
        )

    def _returns_keys_of_the_same_rows(self, gold: Table, predicted: Table) -> bool:
        """Return whether generated keys in equal returned rows belong to the same rows of both states.

        For this, states and returned rows are compared as one table in which nodes stand for the keys.
        """
        alignment = table_pair(gold, predicted, self._policy).alignment if gold.rows else None
        if alignment is None or not any(isinstance(cell, BlankNode) for row in gold.rows for cell in row):
            return True
        in_order = self._policy.row_order == "strict" and self._policy.duplicates == "count"
        sides = (gold, range(len(gold.columns))), (predicted, alignment.columns)
        tables = []
        for state, (returned, columns) in zip(self._tables, sides, strict=True):
            blank = (None,) * len(state.columns)
            rows = [(*row, *(None,) * (1 + len(columns))) for row in state.rows]
            rows += [
                (*blank, at if in_order else -1, *(row[column] for column in columns))
                for at, row in enumerate(returned.rows)
            ]
            tables.append(Table(columns=(*state.columns, "", *gold.columns), rows=rows))
        return equal_tables(tables[0], tables[1], replace(self._state_policy, duplicates=self._policy.duplicates))

    @cached_property
    def _returned(self) -> tuple[Table | None, Table | None]:
        """What gold and predicted return, with nodes for generated keys; of gold, only its `gold_columns`.

        A side is None if its statements return no rows.
        """
        gold, predicted = (self._with_nodes(state) for state in (self._gold, self._predicted))
        return gold and project(gold, self._policy.gold_columns), predicted

    def _with_nodes(self, state: StateChange) -> Table | None:
        table = state.returned
        if table is None:
            return None
        origins: Sequence[ColumnName] = returned_columns(state.query, state.dialect)
        if len(origins) != len(table.columns):
            origins = [("", name.lower()) for name in table.columns]
        nodes = self._nodes(state)
        of_columns = [_nodes_of(origin, nodes) for origin in origins]
        rows = [
            tuple([values.get(cell, cell) if values else cell for cell, values in zip(row, of_columns, strict=True)])
            for row in table.rows
        ]
        return replace(table, rows=rows)

    def _returned_difference(self, limit: int) -> DifferenceReport[Row]:
        gold, predicted = self._returned
        if gold is None or predicted is None:
            return {**NO_DIFFERENCE, "summary": "returned: nothing, the gold answer has rows"}
        if equal_tables(gold, predicted, self._policy):
            return {**NO_DIFFERENCE, "summary": "returned: the keys of other new rows"}
        assert self._gold.returned is not None
        assert self._predicted.returned is not None
        gold, predicted = project(self._gold.returned, self._policy.gold_columns), self._predicted.returned
        returned = difference(gold, predicted, self._policy, limit=limit)
        return {**returned, "summary": f"returned: {returned['summary']}"}


def _nodes_of(origin: ColumnName, nodes: Nodes) -> dict[Cell, BlankNode]:
    """Return the nodes of the keys in a returned column.

    If the column may belong to several tables, a key that two of them have gets a node of its own.
    """
    values: dict[Cell, BlankNode] = {}
    for (table, column), keys in nodes.items():
        if origin[0] in ("", table.rpartition(".")[2]) and origin[1] in (ALL_COLUMNS, column):
            for key, node in keys.items():
                if values.setdefault(key, node) != node:
                    values[key] = BlankNode(f"{key!r}")
    return values


def _pairs_by_key(
    missing: Sequence[ChangedRow], extra: Sequence[ChangedRow]
) -> tuple[list[ChangedRow], list[ChangedRow], list[RowPair]]:
    """Pair missing and extra rows with the same table and key; return the rest of both, and the pairs."""
    by_key = grouped(((row.name, row.key), row) for row in extra if row.key)
    partners = ((row, by_key.get((row.name, row.key))) for row in missing)
    pairs = [RowPair(row, of_row.pop(), [*dict(row.key)]) for row, of_row in partners if of_row]
    return *_unpaired(missing, extra, pairs), pairs


def _pairs_by_likeness(
    missing: Sequence[ChangedRow], extra: Sequence[ChangedRow], policy: Policy
) -> tuple[list[ChangedRow], list[ChangedRow], list[RowPair]]:
    """Pair similar missing and extra rows of one table without a key; return the rest of both, and the pairs.

    The key of a pair is the columns by which the rows were found similar.
    """
    pairs: list[RowPair] = []
    for table in dict.fromkeys(row.name for row in missing if row.cells and not row.key):
        sides = [[row for row in side if row.name == table and not row.key] for side in (missing, extra)]
        columns = [*dict.fromkeys(name for row in chain(*sides) for name in row.compared)]
        gold, predicted = (
            Table(columns=tuple(columns), rows=[tuple([row.compared.get(name) for name in columns]) for row in side])
            for side in sides
        )
        tables, places = table_pair(gold, predicted, policy), tuple(range(len(columns)))
        codes, predicted_codes = tables.coded.project(places)
        found = similar_rows(tables, places, codes, predicted_codes, range(len(codes)), range(len(predicted_codes)))
        key = [columns[place] for place in found.key]
        pairs += [RowPair(sides[0][pair.gold], sides[1][pair.predicted], key) for pair in found.rows]
    return *_unpaired(missing, extra, pairs), pairs


def _unpaired(
    missing: Sequence[ChangedRow], extra: Sequence[ChangedRow], pairs: Sequence[RowPair]
) -> tuple[list[ChangedRow], list[ChangedRow]]:
    paired = {id(row) for pair in pairs for row in (pair.gold, pair.predicted)}
    return [row for row in missing if id(row) not in paired], [row for row in extra if id(row) not in paired]


def _summaries(missing: Sequence[ChangedRow], extra: Sequence[ChangedRow]) -> Iterator[str]:
    """Yield a line for each table that counts its rows and definitions by what is wrong with them."""
    words: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for row in (*missing, *extra):
        words[row.table][row.word if row.cells else f"definition {row.word}"] += 1
    for table, counts in words.items():
        parts = (
            word if word.startswith("definition") else f"{pluralize(n, 'row')} {word}" for word, n in counts.items()
        )
        yield f"{table}: {', '.join(parts)}"
