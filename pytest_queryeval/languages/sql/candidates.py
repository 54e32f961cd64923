"""Which of the rows that tie a choice has to take, so that the answer is the predicted one.

The query is run with all rows that tie, to read what each of them adds: to aggregates, or as rows of a join.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from typing import Any

from sqlglot import exp

from pytest_queryeval.comparison.equality import equal_tables
from pytest_queryeval.core.table import Policy, Row, Table
from pytest_queryeval.languages.sql.choices import Choice, argument_of, is_grouped
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

MAX_STEPS = 5_000  # of the search for the rows
MAX_OUTCOMES = 1_000  # that are compared with the predicted answer
_ADDED = "queryeval_added"
_ANY_ORDER = Policy(row_order="ignore", columns="positional")
_VALUES: Mapping[type[exp.Expr], Callable[[Any], Any]] = {
    exp.Sum: sum,
    exp.Avg: lambda values: float(sum(values)) / len(values),
    exp.Min: min,
    exp.Max: max,
    exp.Count: len,
}


class Candidates:
    """A query of the rows that tie among which a choice takes some, with what each of them adds to the answer.

    `items` are those of the top SELECT, which is the last one of `steps`: the SELECTs through which it reads that of
    the choice, each with the alias of what it reads. `columns` are those of the rows, and `last` is the last place
    that the choice takes.
    """

    def __init__(
        self,
        choice: Choice,
        items: Sequence[exp.Expr],
        columns: Sequence[exp.Expr],
        steps: Sequence[tuple[exp.Select, str]],
        last: int,
    ) -> None:
        top = steps[-1][0]
        self._items, self._columns, self._last, self._is_grouped = items, columns, last, is_grouped(top)
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
            _without(select, "distinct", "order", "limit")
            twins[id(steps[0][0])].where(exp.column(_ADDED + "_0") <= last, copy=False)
        select.select(*(exp.alias_(value.copy(), name) for name, value in added.items()), copy=False)
        for step, alias in steps:
            select = twins[id(step)]
            if step is top:
                _without(select, "group", "having", "order", "limit", "offset")
                values = [exp.alias_(_added(item), f"c{at}") for at, item in enumerate(items)]
                select.set("expressions", values)
            if step is top or not step.is_star:
                select.select(*(exp.column(name, table=alias or None) for name in added), copy=False)

    def key(self, table: Table, wanted: Table) -> exp.Expr | None:
        """Return a sort key that is less for the rows to take, and greatest for others that add something.

        None if there are no such rows. `table` is the answer of the query, and `wanted` that of gold.
        """
        width = len(self._items)
        ties: defaultdict[Row, defaultdict[Row, list[Row]]] = defaultdict(lambda: defaultdict(list))
        fixed: list[Row] = []
        for row in table.rows:
            rank, size = row[width : width + 2]
            is_free = isinstance(rank, int) and isinstance(size, int) and rank + size - 1 > self._last
            (ties[row[width : width + 3]][row[width + 3 :]] if is_free else fixed).append(row[:width])
        rows = [row for rows in ties.values() for row in rows]
        usable = [at for at, it in enumerate(self._columns) if all(is_comparable(it, row[at], {""}) for row in rows)]
        pairs = [(self._columns[at], at) for at in usable]
        for added, chosen in islice(self._outcomes(ties), MAX_OUTCOMES):
            answer = [*self._answer([*fixed, *Counter(dict(added)).elements()])]
            if pairs and equal_tables(replace(wanted, rows=answer), wanted, _ANY_ORDER):
                values = ((has_values(pairs, [row[at] for at in usable]), 2 * (row not in chosen)) for row in rows)
                return case_of([*values][: MAX_CELLS // len(pairs)], 1)
        return None

    def _outcomes(
        self, ties: Mapping[Row, Mapping[Row, Sequence[Row]]]
    ) -> Iterator[tuple[frozenset[tuple[Row, int]], tuple[Row, ...]]]:
        """Yield what the rows that tie may add, each with rows that do so."""
        outcomes: dict[frozenset[tuple[Row, int]], tuple[Row, ...]] = {frozenset(): ()}
        steps = 0
        for (rank, size, _), rows in ties.items():
            free = self._last - int(str(rank)) + 1
            found = {(0, added): chosen for added, chosen in outcomes.items()}
            for row, adding in rows.items():
                steps += len(found)
                for (number, added), chosen in [*found.items()] if steps <= MAX_STEPS else ():
                    if number < free:
                        more = frozenset((Counter(dict(added)) + Counter(adding)).items())
                        found.setdefault((number + 1, more), (*chosen, row))
            least = free - int(str(size)) + len(rows)  # rows that are not among them add nothing
            outcomes = {added: chosen for (number, added), chosen in found.items() if number >= least}
        yield from outcomes.items()

    def _answer(self, rows: Sequence[Row]) -> Iterator[Row]:
        """Yield the rows of the answer that rows which are added make."""
        groups: defaultdict[Row, list[Row]] = defaultdict(list)
        for number, row in enumerate(rows):
            key = [cell for cell, item in zip(row, self._items, strict=True) if aggregate_of(item) is None]
            groups[tuple(key) if self._is_grouped else (number,)].append(row)
        for group in groups.values():
            yield tuple([_value(*pair) for pair in zip(self._items, zip(*group, strict=True), strict=True)])


def aggregate_of(item: exp.Expr) -> exp.Expr | None:
    """Return the aggregate that an item is, but for its rounding and type; None for another item."""
    while isinstance(item, exp.Round | exp.Cast | exp.Coalesce | exp.Paren):
        item = item.this
    return item if isinstance(item, tuple(_VALUES)) and item.this is not None else None


def _added(item: exp.Expr) -> exp.Expr:
    """Return what each row adds to an item."""
    call = aggregate_of(item)
    value = item if call is None else argument_of(call)
    return exp.Literal.number(1) if isinstance(value, exp.Star) else value.copy()


def _value(item: exp.Expr, cells: Sequence[Any]) -> Any:
    """Return the value of an item for a group, from what its rows add."""
    if (call := aggregate_of(item)) is None:
        return cells[0]
    values = [cell for cell in cells if cell is not None]
    distinct = {*values} if isinstance(call.this, exp.Distinct) else values
    if not values and not isinstance(call, exp.Count):
        return None
    rounding = item.find(exp.Round)
    digits = None if rounding is None else rounding.args.get("decimals")
    with suppress(TypeError, ArithmeticError):  # of texts as numbers
        value = _VALUES[type(call)](distinct)
        return value if rounding is None else round(value, int(digits.name) if digits and digits.name.isdigit() else 0)
    return None


def _without(select: exp.Expr, *clauses: str) -> None:
    for clause in clauses:
        select.set(clause, None)
