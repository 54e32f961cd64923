"""Which of the rows that tie a choice has to take, so that the answer is the predicted one.

The query is run with all rows that tie, to read what each of them adds: to aggregates, or as rows of a join.
"""

from __future__ import annotations

import operator
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain, islice
from typing import Any, TypeAlias

from sqlglot import exp

from pytest_queryeval.comparison.equality import equal_tables
from pytest_queryeval.core.table import Cell, Policy, Row, Table
from pytest_queryeval.languages.sql.choices import COLLECTIONS, Choice, argument_of, is_grouped
from pytest_queryeval.languages.sql.sort_keys import (
    MAX_CELLS,
    case_of,
    has_values,
    is_comparable,
    over,
    own_keys_of,
    peers,
)
from pytest_queryeval.languages.sql.sortable import ordered

Step: TypeAlias = tuple[exp.Select, str | exp.Expr]  # a SELECT, and the alias or the comparison by which it reads
Added: TypeAlias = frozenset[tuple[Row, int]]  # a multiset of rows
MAX_STEPS = 5_000  # of the search for the rows
MAX_OUTCOMES = 1_000  # that are compared with the predicted answer
_ADDED = "queryeval_added"
_ANY_ORDER = Policy(row_order="ignore", columns="positional")
_TOTALS: Mapping[type[exp.Expr], Callable[[Any], Any]] = {
    exp.Sum: sum,
    exp.Avg: lambda values: float(sum(values)) / len(values),
    exp.Min: min,
    exp.Max: max,
    exp.Count: len,
    **dict.fromkeys(COLLECTIONS, lambda values: tuple(sorted(map(str, values)))),
}
_OPERATORS: Mapping[type[exp.Expr], Callable[[Any, Any], Any]] = {
    exp.Add: operator.add,
    exp.Sub: operator.sub,
    exp.Mul: operator.mul,
    exp.Div: operator.truediv,
}


class Candidates:
    """A query that returns the rows which tie at a choice, with the values that each row adds to the answer.

    `steps` are the SELECTs through which the top SELECT, the last of them, reads that of the choice; `items` are those
    of the top SELECT. `columns` are columns of the rows, by which keys can prefer them. The choice takes the places
    from `first` to `last`. `separators` are the texts between the elements of output columns that are collections.
    """

    def __init__(
        self,
        choice: Choice,
        items: Sequence[exp.Expr],
        columns: Sequence[exp.Expr],
        steps: Sequence[Step],
        places: tuple[int, int],
        separators: Mapping[int, str],
    ) -> None:
        top = steps[-1][0]
        self._items, self._columns, self._separators = items, columns, separators
        self._first, self._last = places
        self._is_grouped, self._is_distinct = is_grouped(top), top.args.get("distinct") is not None
        self._parts = [*chain.from_iterable([*_aggregates(item)] or [item] for item in items)]
        self.tree = top.root().copy()
        twins: dict[int, Any] = dict(zip(map(id, top.root().walk()), self.tree.walk(), strict=True))
        node, select = twins[id(choice.node)], twins[id(choice.query)]
        keys, partition = own_keys_of(choice.node) or [], node.args.get("partition_by") or ()
        if choice.kind == "distinct on":
            on = select.args["distinct"].args["on"]
            partition = on.expressions or [on]
        rank = over(exp.Anonymous(this="RANK"), keys, partition)
        ties = over(exp.Count(this=exp.Star()), keys, partition, spec=peers())
        place = over(exp.Anonymous(this="RANK"), [*map(ordered, partition), *keys])
        added = {f"{_ADDED}_{number}": value for number, value in enumerate((rank, ties, place, *columns))}
        if choice.kind == "window":
            node.replace(rank)
        else:
            _without(select, "distinct", "order", "limit", "offset")
        select.select(*(exp.alias_(value.copy(), name) for name, value in added.items()), copy=False)
        compared: list[exp.Expr] = []  # what each row that is read by a comparison is compared with
        for number, (step, read) in enumerate(steps):
            select, alias = twins[id(step)], read if isinstance(read, str) else f"{_ADDED}_by_{number}"
            if not isinstance(read, str):
                compared.append(_join(select, twins[id(read)], alias))
            if number == 0 and choice.kind != "window":
                first, size = (exp.column(f"{_ADDED}_{at}", table=alias or None) for at in range(2))
                select.where(first <= self._last, first + size > self._first, copy=False)
            if step is top:
                _without(select, "distinct", "group", "having", "order", "limit", "offset")
                values = [exp.alias_(_added(part), f"c{at}") for at, part in enumerate(self._parts)]
                select.set("expressions", [*values, *compared])
            if step is top or not step.is_star:
                select.select(*(exp.column(name, table=alias or None) for name in added), copy=False)
        self._is_compared, self._width = bool(compared), len(self._parts) + len(compared)

    def key(self, table: Table, wanted: Table) -> exp.Expr | None:
        """Return a sort key that puts the rows to take first, and other rows that would add something last.

        `table` is the answer of the query; `wanted` is the answer that the rows should make. None if no rows make it,
        or none can be told apart.
        """
        width = self._width
        ties: defaultdict[Row, defaultdict[Row, list[Row]]] = defaultdict(lambda: defaultdict(list))
        for row in table.rows:
            ties[row[width : width + 3]][row[width + 3 :]].append(row[:width])
        rows = [row for tie, rows in ties.items() if self._taken(tie) < int(str(tie[1])) for row in rows]
        usable = [at for at, it in enumerate(self._columns) if all(is_comparable(it, row[at], {""}) for row in rows)]
        pairs = [(self._columns[at], at) for at in usable]
        wanted = replace(wanted, rows=[(*map(self._sorted, row, range(len(row))),) for row in wanted.rows])
        for added, chosen in islice(self._outcomes(ties), MAX_OUTCOMES):
            answer = [*self._answer([*Counter(dict(added)).elements()])]
            if pairs and equal_tables(replace(wanted, rows=answer), wanted, _ANY_ORDER):
                values = ((has_values(pairs, [row[at] for at in usable]), 2 * (row not in chosen)) for row in rows)
                return case_of([*values][: MAX_CELLS // len(pairs)], 1)
        return None

    def _taken(self, tie: Row) -> int:
        """Return how many rows of a tie the choice takes."""
        rank, size = (int(str(cell)) for cell in tie[:2])
        return min(self._last, rank + size - 1) - max(self._first, rank) + 1

    def _sorted(self, cell: Cell, output: int) -> Cell:
        """Return the elements of a collection as a sorted tuple, as `_TOTALS` makes it; any other cell unchanged."""
        if output not in self._separators or not isinstance(cell, str | tuple):
            return cell
        separator = self._separators[output]
        elements = cell.split(separator) if isinstance(cell, str) and separator else cell
        return tuple(sorted(str(element) for element in elements if element is not None))

    def _outcomes(self, ties: Mapping[Row, Mapping[Row, Sequence[Row]]]) -> Iterator[tuple[Added, tuple[Row, ...]]]:
        """Yield each sum that the rows to take may add to the answer, with rows that make it.

        The search ends after MAX_STEPS steps.
        """
        combined = operator.or_ if self._is_compared else operator.add
        outcomes: dict[Added, tuple[Row, ...]] = {frozenset(): ()}
        steps = 0
        for tie, rows in ties.items():
            taken, size = self._taken(tie), int(str(tie[1]))
            found = {(0, added): chosen for added, chosen in outcomes.items()}
            for row, adding in rows.items():
                steps += len(found)
                for (number, added), chosen in [*found.items()] if steps <= MAX_STEPS else ():
                    more = frozenset(combined(Counter(dict(added)), Counter(adding)).items())
                    if taken >= size:
                        del found[number, added]
                        found[number, more] = chosen
                    elif number < taken:
                        found.setdefault((number + 1, more), (*chosen, row))
            least = taken - size + len(rows) if taken < size else 0  # rows that are not among them add nothing
            outcomes = {added: chosen for (number, added), chosen in found.items() if number >= least}
        yield from outcomes.items()

    def _answer(self, rows: Sequence[Row]) -> Iterator[Row]:
        """Yield the rows of the answer that these added rows make.

        They are grouped and aggregated as in the top SELECT; equal rows are one if it has DISTINCT.
        """
        groups: defaultdict[Row, list[Row]] = defaultdict(list)
        for number, row in enumerate(rows):
            key = [cell for cell, part in zip(row, self._parts, strict=False) if not isinstance(part, tuple(_TOTALS))]
            groups[tuple(key) if self._is_grouped else (number,)].append(row)
        answer = []
        for group in groups.values():
            columns = zip(*group, strict=True)
            values = {id(part): _total(part, cells) for part, cells in zip(self._parts, columns, strict=False)}
            answer.append(tuple([_evaluated(item, values) for item in self._items]))
        yield from dict.fromkeys(answer) if self._is_distinct else answer


def is_readable(item: exp.Expr) -> bool:
    """Return whether an item has no window, and no aggregates besides those that `_TOTALS` can compute."""
    calls = [*item.find_all(exp.AggFunc)]
    return item.find(exp.Window) is None and calls == [*_aggregates(item)]


def _aggregates(item: exp.Expr) -> Iterator[exp.Expr]:
    """Yield the aggregates in an item that `_TOTALS` can compute."""
    yield from (call for call in item.find_all(*_TOTALS) if call.this is not None)


def _join(select: exp.Select, comparison: exp.Expr, alias: str) -> exp.Expr:
    """Replace a comparison with a nested query by a cross join with it and a comparison of columns.

    Changes the SELECT, and returns the compared value.
    """
    query = comparison.args.get("query") or comparison.args["expression"]
    inner = query
    while isinstance(inner, exp.Subquery):
        inner = inner.this
    inner.set("expressions", [exp.alias_(inner.expressions[0].unalias(), _ADDED), *inner.expressions[1:]])
    value = comparison.this.copy()
    comparison.replace(exp.EQ(this=value.copy(), expression=exp.column(_ADDED, table=alias)))
    select.join(inner.subquery(alias, copy=False), join_type="cross", copy=False)
    return value  # type: ignore[no-any-return]


def _added(part: exp.Expr) -> exp.Expr:
    """Return the expression of the value that a row adds to an item, or to an aggregate in it."""
    value = argument_of(part) if isinstance(part, tuple(_TOTALS)) else part
    return exp.Literal.number(1) if isinstance(value, exp.Star) else value.copy()


def _total(part: exp.Expr, cells: Sequence[Any]) -> Any:
    """Return the value of a part of an item for a group, from the cells of its rows; None if it cannot be computed."""
    if not isinstance(part, tuple(_TOTALS)):
        return cells[0]
    values = [cell for cell in cells if cell is not None]
    with suppress(TypeError, ArithmeticError):  # of texts as numbers
        if values or isinstance(part, exp.Count):
            return _TOTALS[type(part)]({*values} if isinstance(part.this, exp.Distinct) else values)
    return None


def _evaluated(node: exp.Expr, values: Mapping[int, Any]) -> Any:
    """Return the value of an item, with `values` for its parts by `id`; None if it cannot be computed.

    Only literals, casts, COALESCE, ROUND and basic arithmetic can be computed.
    """
    if id(node) in values:
        return values[id(node)]
    if isinstance(node, exp.Literal):
        return node.to_py()
    inner = [_evaluated(it, values) for it in node.iter_expressions() if not isinstance(it, exp.DataType)]
    with suppress(TypeError, ArithmeticError):
        match node:
            case exp.Paren() | exp.Cast():
                return inner[0]
            case exp.Coalesce():
                return next((value for value in inner if value is not None), None)
            case exp.Round():
                return round(inner[0], *inner[1:2] or [0])
            case exp.Add() | exp.Sub() | exp.Mul() | exp.Div():
                return _OPERATORS[type(node)](*inner)
    return None


def _without(select: exp.Expr, *clauses: str) -> None:
    for clause in clauses:
        select.set(clause, None)
