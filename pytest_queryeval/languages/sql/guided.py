"""A SQL query with the choices that it leaves open made towards a predicted answer.

Keys are put behind those by which the query sorts, so that they decide only what it leaves open, and the database
returns an answer that the query may have.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal
from functools import lru_cache, reduce
from itertools import chain, count
from math import isfinite
from typing import Literal, NamedTuple, TypeAlias, get_args

from sqlglot import exp

from pytest_queryeval.comparison.ties import Collection, GuidedQuery
from pytest_queryeval.core.db_schema import Column, Schema
from pytest_queryeval.core.table import DEFAULT_ABS, DEFAULT_REL, Cell, Row, Table
from pytest_queryeval.languages.sql import MAX_QUERIES, parse_query
from pytest_queryeval.languages.sql.choices import (
    COLLECTIONS,
    WRAPPERS,
    Choice,
    call_within,
    choices_in,
    fixed_columns,
    group_keys,
    is_grouped,
    is_sorted_by,
    own_nodes,
    picks,
    sorting_of,
    spelling,
    top_query,
)
from pytest_queryeval.languages.sql.columns import Columns, FromItem, Names, find_cte
from pytest_queryeval.languages.sql.order import expanded
from pytest_queryeval.languages.sql.sortable import (
    ROWS,
    arms_of,
    can_nest,
    nest_windows,
    ordered,
    sortable_choices,
    value_of_row,
)

Pair: TypeAlias = tuple[exp.Expr, int]  # an expression of a SELECT, and the output column that has its values
Use: TypeAlias = tuple[tuple[str, ...], int]  # the aliases by which a SELECT is read, and the output of an aggregate
Way: TypeAlias = Literal["as predicted", "ascending", "descending"]
WAYS: tuple[Way, ...] = get_args(Way)
MAX_CELLS = 1_000  # of the predicted answer, as literals in a query
MAX_CHOICES = 20
NO_AGGREGATE = -1
FUNCTIONS = ("string_agg", "group_concat", "array_agg", "list")
_OF_ROWS = (exp.Min, exp.Max, exp.Sum, exp.Avg)  # aggregates whose value may be that of a row
_SYNONYMS = (
    ("string_agg", "group_concat", "listagg"),
    ("array_agg", "list"),
    ("arg_max", "argmax", "max_by"),
    ("arg_min", "argmin", "min_by"),
)


@dataclass(frozen=True, eq=False)
class _Reading:
    tree: exp.Query
    choices: tuple[str, ...]
    fixed_columns: tuple[int, ...] | None


@lru_cache(maxsize=MAX_QUERIES)
def _read(query: str, dialect: str) -> _Reading | None:
    """Return what an open query is about; None of another query.

    None without a dialect, too: then nothing is known of how texts are quoted, and those of answers are not trusted.
    """
    tree = parse_query(query, dialect).whole_tree if dialect else None
    if not isinstance(tree, exp.Query) or not 0 < len(choices := choices_in(tree, dialect)) <= MAX_CHOICES:
        return None
    names = tuple(dict.fromkeys(_as_written(choice.name, query) for choice in choices))
    return _Reading(tree, names, fixed_columns(tree, choices))


def _as_written(text: str, query: str) -> str:
    """Return a text about a query with the names of functions that the query has, where the parser knows others."""
    called = re.findall(r"\w+(?=\s*\()", query)

    def written(match: re.Match[str]) -> str:
        own = match[0].lower()
        names = next((names for names in _SYNONYMS if own in names), (own,))
        return next((name for name in called if name.lower() in names), match[0])

    return re.sub(r"\w+(?=\()", written, text)


def open_query(query: str, dialect: str, schema: Callable[[], Schema]) -> OpenSqlQuery | None:
    """Return a query that leaves its answer open; None for another one. `schema` returns the tables."""
    reading = _read(query, dialect)
    return None if reading is None else _open_query(reading, dialect, schema())


class _Readable(NamedTuple):
    """What the keys of a choice may read: expressions with the values of output columns, and all columns.

    `uses` are those of each way in which the answer reads the SELECT, `values` the expressions with the value that the
    choice takes there.
    """

    uses: list[list[Pair]]
    values: list[Pair | None]
    others: list[exp.Expr]


class _Keys(NamedTuple):
    """The sort keys of a choice: those that prefer what is predicted, and those that settle the rest."""

    preferred: list[exp.Ordered]
    others: list[exp.Ordered]


class _Element(NamedTuple):
    """What a collection that is an output column collects, as an expression of the SELECT that decides its order."""

    expression: exp.Expr
    output: int
    separator: str


class _Answer(NamedTuple):
    """The answer of gold and a predicted one, with the predicted column for each of gold's columns that has one."""

    gold: Table
    predicted: Table
    alignment: Mapping[int, int]

    def known(self, pairs: Sequence[Pair]) -> list[Pair]:
        """Return the pairs whose column the predicted answer has, the first of each output."""
        by_output = {output: expression for expression, output in reversed(pairs) if output in self.alignment}
        return [(expression, output) for output, expression in by_output.items()]

    def rows(self, *uses: Sequence[Pair]) -> dict[tuple[int, Row], int]:
        """Return the different predicted values of expressions, as many as may stand in a query, with their places.

        `uses` are the expressions of each way in which the answer reads a SELECT. The values have the number of one.
        """
        limit = MAX_CELLS // max(sum(map(len, uses)), 1)
        types = {output: {_type_name(row[output]) for row in self.gold.rows[:MAX_CELLS]} for output in self.alignment}
        found: dict[tuple[int, Row], int] = {}
        for number, pairs in enumerate(uses):
            for row in self.predicted.rows[:limit] if pairs else ():
                values = tuple([row[self.alignment[output]] for _, output in pairs])
                if all(
                    _is_comparable(it, value, types[output]) for (it, output), value in zip(pairs, values, strict=True)
                ):
                    found.setdefault((number, values), len(found))
        return found

    def preference(self, uses: Sequence[Sequence[Pair]], *, by_place: bool) -> exp.Expr | None:
        """Return a key that is less for rows whose values a predicted row has, `by_place` less for earlier ones.

        Of several uses, which may want different rows in one order, earlier ones always come first.
        """
        known = [*map(self.known, uses)]
        rows = self.rows(*known)
        by_place = by_place or len(known) > 1
        return _case([(_has(known[at], row), by_place * place) for (at, row), place in rows.items()], len(rows))

    def number(self, pairs: Sequence[Pair], output: int, own_keys: Sequence[exp.Expr] | None) -> exp.Expr | None:
        """Return a key that is the number which a predicted row with the values of a row has in an output column.

        Rows with the same values, in the order of `own_keys`, have such numbers one after the other; without these keys
        all of them have the same.
        """
        known = [pair for pair in self.known(pairs) if pair[1] != output]
        rows = self.rows([*known, (exp.null(), output)]) if known and output in self.alignment else {}
        numbers: defaultdict[Row, list[int]] = defaultdict(list)
        for row in self.predicted.rows[: MAX_CELLS // (len(known) + 1)] if rows else ():
            values, number = tuple([row[self.alignment[place]] for _, place in known]), row[self.alignment[output]]
            if isinstance(number, int) and (0, (*values, number)) in rows:
                numbers[values].append(number)
        cases = []
        for values, copies in numbers.items():
            condition = _has(known, values)
            if len(copies) == 1 or own_keys is None:
                cases.append((condition, copies[0]))
                continue
            copy = _over(exp.RowNumber(), own_keys, [expression for expression, _ in known])
            for at, number in enumerate(sorted(copies), start=1):
                is_copy = exp.EQ(this=copy.copy(), expression=exp.Literal.number(at))
                cases.append((exp.and_(condition, is_copy), number))
        taken = {*chain.from_iterable(numbers.values())}
        return _case(cases, next(number for number in count(min(taken, default=1)) if number not in taken))

    def place(self, pairs: Sequence[Pair], element: _Element) -> exp.Expr | None:
        """Return a key that is the place of an element in the collection of the predicted row with a row's values."""
        if element.output not in self.alignment:
            return None
        known = [pair for pair in self.known(pairs) if pair[1] != element.output]
        rows = {row for _, row in self.rows(known)} if known else {()}
        places: dict[Row, int] = {}
        for row in self.predicted.rows:
            others = tuple([row[self.alignment[output]] for _, output in known])
            cell = row[self.alignment[element.output]]
            cells = cell.split(element.separator) if isinstance(cell, str) and element.separator else cell
            cells = [*cell] if isinstance(cell, str) and not element.separator else cells
            if (
                others in rows
                and isinstance(cells, list | tuple)
                and len(places) + len(cells) <= MAX_CELLS // (1 + len(known))
            ):
                places = {(*others, str(value)): place for place, value in enumerate(cells)} | places
        text = exp.cast(element.expression.copy(), exp.DataType.build("text"))
        pairs = [*known, (text, element.output)]
        return _case([(_has(pairs, row), place) for row, place in places.items()], len(places))

    def total(self, output: int) -> int | float | Decimal | None:
        """Return the number in an output column of the only predicted row."""
        cells = [row[self.alignment[output]] for row in self.predicted.rows[:2] if output in self.alignment]
        cell = cells[0] if len(cells) == 1 else None
        return cell if _type_name(cell) == "number" and isinstance(cell, int | float | Decimal) else None

    def cells(self, columns: Sequence[exp.Expr], dialect: str) -> exp.Expr | None:
        """Return how many of a row's cells the predicted answer has anywhere, as texts."""
        cells = chain.from_iterable(self.predicted.rows[:MAX_CELLS])
        texts = dict.fromkeys(str(cell) for cell in cells if _type_name(cell) in ("number", "text", "date"))
        literals = [exp.Literal.string(text).sql(dialect) for text in [*texts][: MAX_CELLS // max(len(columns), 1)]]
        if not literals or not columns:
            return None
        counted: list[exp.Expr] = []
        for column in columns:
            is_in = exp.In(this=exp.cast(column.copy(), "text"), expressions=[exp.Var(this=", ".join(literals))])
            counted.append(exp.Case(default=exp.Literal.number(0)).when(is_in, exp.Literal.number(1), copy=False))
        return reduce(lambda one, other: exp.Add(this=one, expression=other), counted)


NO_ANSWER = _Answer(Table(columns=(), rows=()), Table(columns=(), rows=()), {})


class OpenSqlQuery:
    """A query that leaves its answer open, as `OpenQuery` describes it."""

    def __init__(self, reading: _Reading, dialect: str, schema: Schema) -> None:
        self.choices = reading.choices
        self.fixed_columns = reading.fixed_columns
        self._dialect = dialect
        self._tree = reading.tree.copy()
        self._choices = sortable_choices(self._tree, dialect, schema.tables)
        self._columns = Columns(schema.tables, dialect)
        self._pairs: defaultdict[int, defaultdict[Use, list[Pair]]] = defaultdict(
            lambda: defaultdict(list)
        )  # by SELECT
        self._elements: defaultdict[int, list[_Element]] = defaultdict(list)  # by the call, or the SELECT that it reads
        self._numbers: defaultdict[int, list[int]] = defaultdict(list)  # outputs that number its rows, by the SELECT
        self._picked: set[int] = set()  # outputs that are of one row of a group, not the same for all of its rows
        self._origins: dict[Column, int] = {}
        self._totals: dict[int, exp.Expr] = {}  # the aggregates of all rows, by the output
        self._total_origins: dict[Column, int] = {}
        self._collected: defaultdict[int, list[int]] = defaultdict(list)  # outputs by the call; -1 where not free
        self._width = 0
        for number, select in enumerate(arms_of(self._tree)):
            items = self._columns.items(select) or ()
            self._width = len(items)
            for output, (_, item) in enumerate(items):
                is_free = select is top_query(self._tree)
                self._trace(select, output, item, output, ((str(number),), NO_AGGREGATE), is_free=is_free)
        self._collections = dict(self._read_collections())
        self._readable = [self._read_by(choice) for choice in self._choices]
        self._orders = [_order_of(choice) for choice in self._choices]
        self._nested_orders = {
            order
            for order, choice in zip(self._orders, self._choices, strict=True)
            if isinstance(call_within(choice.node), exp.NthValue)
        }
        self._first_places: dict[object, int] = {}  # by the order; 1 for orders that have values of windows, too
        for order, first in zip(self._orders, map(self._first_place, self._choices), strict=True):
            self._first_places[order] = min(first, self._first_places.get(order, first))

    def guided(self, gold: Table, predicted: Table, alignments: Sequence[Mapping[int, int]]) -> Iterator[GuidedQuery]:
        """Yield up to three queries that settle the choices in favour of a predicted answer.

        All three prefer rows of the predicted answer, or avoid them within NOT, <> and EXCEPT, and settle the rest:

        1. by how many cells of a row the predicted answer has,
        2. by all columns, ascending,
        3. by all columns, descending.
        """
        is_known = self._width == len(gold.columns)
        alignments, collections = (alignments, self._collections) if is_known else ([{}], {})
        texts = set()
        for number, way in enumerate(WAYS):
            answer = _Answer(gold, predicted, alignments[number % len(alignments)])
            keys = self._keys_of_choices(way, answer, without="collection")
            text = self._text(keys, collections) if collections or any(map(any, keys)) else ""
            if text and text not in texts:
                texts.add(text)
                yield GuidedQuery(text=text, alignment=answer.alignment, collections=tuple(collections.values()))

    def decided(self, first: str = "") -> list[str]:
        """Return the query with its choices decided by all columns, ascending and descending.

        With `first`, the text of a column, choices that can read it are decided by it before, always ascending, and a
        third query has the other columns in reverse.
        """
        texts = []
        orders: list[tuple[Way, int]] = [("ascending", 1), ("descending", 1), ("ascending", -1)]
        for way, step in orders[: 3 if first else 2]:
            keys_of_choices = self._keys_of_choices(way, NO_ANSWER)
            for keys in keys_of_choices:
                chosen = [ordered(it.this.copy()) for it in keys.others if it.this.sql(dialect=self._dialect) == first]
                keys.others[:] = [*chosen[:1], *keys.others[::step]]
            texts.append(self._text(keys_of_choices, {}))
        return texts

    def deciding_columns(self) -> list[str]:
        """Return the texts of the columns by which the choices can be decided."""
        keys = chain.from_iterable(keys.others for keys in self._keys_of_choices("ascending", NO_ANSWER))
        return list(dict.fromkeys(key.this.sql(dialect=self._dialect) for key in keys))

    # What has the values of the answer

    def _trace(
        self, select: exp.Select, place: int, expression: exp.Expr, output: int, use: Use, *, is_free: bool
    ) -> None:
        """Note the expressions, of this SELECT and of those that it reads, that have the values of an output column.

        `place` is that of the item which is the expression or depends on it. With `is_free`, it is the expression, and
        no other part of the query depends on its value.
        """
        self._pairs[id(select)][use].append((expression, output))
        names = self._columns.names(select)
        item_name = (self._columns.items(select) or ())[place][0]
        is_free = is_free and not select.args.get("distinct") and not is_sorted_by(select, place)
        call = call_within(expression)
        if isinstance(call, COLLECTIONS):
            self._collected[id(call)].append(output if is_free and not _reads(select, {item_name}, expression) else -1)
            separator = call.args.get("separator")
            self._trace_element(
                select, call, _Element(_argument(call), output, "," if separator is None else separator.name)
            )
        elif isinstance(call, exp.Subquery) and isinstance(inner := call.this, exp.Select):
            is_free = is_free and not is_grouped(select) and not _reads(select, {item_name}, expression)
            self._trace(inner, 0, inner.expressions[0].unalias(), output, use, is_free=is_free)
            return
        elif isinstance(expression, exp.Window) and isinstance(call, exp.RowNumber):
            for inner in names.sources.values():
                self._numbers[id(inner.select)].append(output)
        value = value_of_row(expression)
        if picks(call):
            self._picked.add(output)
            value, is_free = _argument(call), False
        elif isinstance(call, _OF_ROWS) and value.find(exp.AggFunc) and not value.find(exp.Window):
            value, use, is_free = _value_of_rows(call), (use[0], output), False
            if select.args.get("group") is None:
                self._totals[output] = call
        if (read := self._source_of(select, value)) is None:
            return
        alias, columns = read
        is_free = is_free and value is columns[0] and not is_grouped(select)
        is_free = is_free and not _reads(
            select, {item_name, value.name.lower(), alias}, value, names.sources[alias].node
        )
        self._trace_source(select, alias, columns, value, output, use, is_free=is_free)
        if isinstance(value, exp.Column) and use[1] == NO_AGGREGATE:
            self._trace_equal(select, alias, value, output, use)

    def _trace_equal(self, select: exp.Select, alias: str, value: exp.Column, output: int, use: Use) -> None:
        """Note what has the value of a column in other items of FROM, and in queries whose value a column equals."""
        names = self._columns.names(select)
        table = names.sources[alias].node
        for column, other in _comparisons(select):
            if names.find(column.table.lower(), column.name.lower()) != (names, alias):
                continue
            if isinstance(other, exp.Select):
                for twin, _ in _through(table, column, other.expressions[0].unalias(), value, output):
                    self._trace(other, 0, twin, output, use, is_free=False)
            elif (found := names.find(other.table.lower(), other.name.lower())) is not None and found[0] is names:
                for twin, _ in _through(table, column, other, value, output):
                    columns = [*_own_part(twin).find_all(exp.Column)]
                    self._trace_source(select, found[1], columns, twin, output, use, is_free=False)

    def _trace_source(
        self,
        select: exp.Select,
        alias: str,
        columns: Sequence[exp.Column],
        value: exp.Expr,
        output: int,
        use: Use,
        *,
        is_free: bool,
    ) -> None:
        """Note the expressions of an item of FROM that have a value, which is that of some of its columns."""
        source = self._columns.names(select).sources[alias]
        if source.select is None:
            if isinstance(value, exp.Column):
                origins = self._origins if use[1] == NO_AGGREGATE else self._total_origins
                origins[source.node.name.lower(), value.name.lower()] = output
            return
        if (inner_value := _value_behind(source, value, columns)) is None:
            return
        inner_place = [*(source.columns or {})].index(columns[0].name.lower())
        is_free = is_free and self._is_read_once(source)
        self._trace(source.select, inner_place, inner_value, output, ((*use[0], alias), use[1]), is_free=is_free)

    def _trace_element(self, select: exp.Select, node: exp.Expr, element: _Element) -> None:
        """Note the expressions, of a collection in a SELECT and of the SELECTs that it reads, that have its elements.

        `node` is the collection, or the SELECT where it reads this one.
        """
        if element.expression.find(exp.Window, exp.Query) is None:
            self._elements[id(node)].append(element)
        read = self._source_of(select, element.expression)
        source = self._columns.names(select).sources[read[0]] if read is not None else None
        if read is None or source is None or source.select is None:
            return
        if (value := _value_behind(source, element.expression, read[1])) is not None:
            self._trace_element(source.select, source.select, element._replace(expression=value))

    def _source_of(self, select: exp.Select, value: exp.Expr) -> tuple[str, list[exp.Column]] | None:
        """Return the item of FROM that all columns of an expression are of, by its alias, and these columns."""
        names = self._columns.names(select)
        value = _own_part(value)
        is_plain = value.find(exp.AggFunc, exp.Query, exp.Window) is None
        columns = [*value.find_all(exp.Column)] if is_plain else []
        matches = [names.find(column.table.lower(), column.name.lower()) for column in columns]
        is_of_one = bool(columns) and all(column.name for column in columns) and matches == matches[:1] * len(matches)
        if not is_of_one or matches[0] is None or matches[0][0] is not names:
            return None
        return matches[0][1], columns

    def _is_read_once(self, source: FromItem) -> bool:
        """Return whether an item of FROM is one SELECT that nothing else in the query reads."""
        query = find_cte(source.node) if isinstance(source.node, exp.Table) else source.node
        if query is None or query.this is not source.select or source.node.args.get("pivots"):
            return False
        return query is source.node or sum(find_cte(table) is query for table in self._tree.find_all(exp.Table)) == 1

    def _read_collections(self) -> Iterator[tuple[int, Collection]]:
        """Yield the collections that are output columns as they stand and that nothing else depends on, by their calls.

        Other collections of their SELECT are items, too, and different ones: all have one order.
        """
        for number, choice in enumerate(self._choices):
            outputs = self._collected[id(choice.node)]
            if choice.kind != "collection" or len(outputs) != 1 or outputs[0] < 0:
                continue
            calls = [node for node in own_nodes(choice.query) if isinstance(node, COLLECTIONS)]
            items = [call_within(item.unalias()) for item in choice.query.expressions]
            is_alone = all(any(call is item for item in items) for call in calls)
            if is_alone and len({spelling(call) for call in calls}) == len(calls):
                separator = choice.node.args.get("separator")
                text = None if isinstance(choice.node, exp.ArrayAgg) else "," if separator is None else separator.name
                group = -1 - number if isinstance(choice.node.this, exp.Distinct) else id(choice.query)
                is_nested = choice.query is not top_query(self._tree)
                yield id(choice.node), Collection(outputs[0], text, group, may_repeat=is_nested)

    # Keys

    def _uses(self, select: exp.Query) -> list[list[Pair]]:
        """Return the expressions of a SELECT with the values of output columns, for each way in which it is read.

        Those from which the answer has an aggregate come before those that are the same for a group.
        """
        pairs = self._pairs[id(select)]
        of_rows = [pairs[use] + pairs.get((use[0], NO_AGGREGATE), []) for use in pairs if use[1] != NO_AGGREGATE]
        return [*of_rows, *(pairs[use] for use in pairs if use[1] == NO_AGGREGATE)]

    def _read_by(self, choice: Choice) -> _Readable:
        """Return what the keys of a choice may read."""
        query = choice.query
        assert isinstance(query, exp.Select)
        reads_groups = is_grouped(query) and choice.kind in ("limit", "window", "distinct on", "sorted input")
        hidden = (exp.Window, exp.Query) if reads_groups else (exp.Window, exp.Query, exp.AggFunc)
        values = [self._value(choice, use) for use in self._uses(query)] or [None]
        uses = [[pair for pair in use if _own_part(pair[0]).find(*hidden) is None] for use in self._uses(query)] or [[]]
        others = [*group_keys(query), *(item.unalias() for item in query.expressions)]
        if not reads_groups:
            names = self._columns.names(query)
            columns = [*_columns_of(names)]
            known = {output for use in uses for _, output in use}
            read = {item.name.lower() for use in uses for item, _ in use}
            for column in columns:
                origin = self._columns.origin_of(column, names)
                if origin is None or column.name in read:
                    continue
                if (output := self._total_origins.get(origin)) is not None:
                    uses.append([(column, output)])
                if (output := self._origins.get(origin)) is not None and output not in known:
                    uses = [[*use, (column, output)] for use in uses]
            others = columns or [item for use in uses for item, _ in use]
        outer = [*self._outer_pairs(query)]
        return _Readable(
            [use + outer for use in uses],
            values,
            list({item.sql(): item for item in others if item.find(*hidden) is None}.values()),
        )

    def _outer_pairs(self, query: exp.Select) -> Iterator[Pair]:
        """Yield expressions of the SELECT around a correlated query that have the values of output columns.

        They are the columns by which it is correlated, or depend on these alone: so the query chooses alike for rows
        that have the same ones.
        """
        own = {id(node) for node in query.find_all(exp.Select)}
        for column in query.find_all(exp.Column):
            found = self._columns.find(column)
            if found is None or id(found[0].select) in own:
                continue
            names, alias = found
            sides = [column.parent.this, column.parent.expression] if isinstance(column.parent, exp.EQ) else []
            inner = [side for side in sides if side is not column and isinstance(side, exp.Column)]
            inner = [side for side in inner if self._columns.names_at(side) is self._columns.names(query)]
            for item, output in chain.from_iterable(self._uses(names.select)[:1]):
                if isinstance(item, exp.Column) and names.find(item.table.lower(), item.name.lower()) == found:
                    yield from _through(names.sources[alias].node, column, inner[0] if inner else column, item, output)

    def _keys_of_choices(self, way: Way, answer: _Answer, without: str = "") -> list[_Keys]:
        """Return the sort keys of each choice, none of those of one kind."""
        return [
            _Keys([], []) if choice.kind == without else self._keys(choice, readable, way, answer)
            for choice, readable in zip(self._choices, self._readable, strict=True)
        ]

    def _keys(self, choice: Choice, readable: _Readable, way: Way, answer: _Answer) -> _Keys:
        """Return the sort keys of a choice, the most important one first."""
        uses, values, others = readable
        of_groups = [pair for pair in uses[0] if pair[1] not in self._picked]
        places = [answer.place(of_groups, element) for element in self._elements[id(choice.node)]]
        own_keys = self._nesting_keys(choice)
        numbers = [answer.number(uses[0], output, own_keys) for output in self._numbers[id(choice.node)]]
        totals = [
            self._total_key(choice, *pair, answer) for pair in chain.from_iterable(uses) if pair[1] in self._totals
        ]
        keys = [ordered(key) for key in (*places, *numbers, *totals) if key is not None]
        preferences = [uses]
        if isinstance(call_within(choice.node), exp.RowNumber):
            for use, raw in zip(uses, self._uses(choice.query), strict=False):
                numbered = (output for item, output in raw if item is choice.node)
                keys += [ordered(key) for output in numbered if (key := answer.number(use, output, own_keys))]
        elif any(value is not None for value in values):
            same = {key.sql().lower() for key in _group_of(choice)}
            valued = [(value, use) for value, use in zip(values, uses, strict=False) if value is not None]
            preferences = [
                [[value, *use] for value, use in valued],
                [[value, *(pair for pair in use if pair[0].sql().lower() in same)] for value, use in valued],
            ]
        avoids = choice.query.find_ancestor(exp.Not, exp.NEQ, exp.Except) is not None
        is_last_first = isinstance(call_within(choice.node), exp.Last | exp.LastValue) != avoids
        for preferred in preferences:
            key = answer.preference(preferred, by_place=way != "descending")
            keys += [ordered(key, is_descending=is_last_first)] if key is not None else []
        if way != "as predicted":
            return _Keys(keys, [ordered(column.copy(), is_descending=way == "descending") for column in others])
        cells = answer.cells(others, self._dialect)
        return _Keys(keys, [] if cells is None else [ordered(cells, is_descending=not is_last_first)])

    def _value(self, choice: Choice, use: Sequence[Pair]) -> Pair | None:
        """Return the item that has the call of a window or an aggregate, with the value of a row in its place."""
        call = choice.node
        while isinstance(call.parent, (*WRAPPERS, exp.Paren)):
            call = call.parent
        if isinstance(choice.node, COLLECTIONS) and isinstance(call.parent, exp.Bracket):  # one of its elements
            call = call.parent
        elif isinstance(call_within(call), (*COLLECTIONS, exp.RowNumber)):
            return None
        for item, output in use if choice.kind in ("window", "aggregate") else ():
            if any(node is call for node in item.walk()):
                value = _with(item, [call], [self._argument_of_row(choice)])
                return (value, output) if value.find(exp.Window, exp.AggFunc, exp.Query) is None else None
        return None

    def _argument_of_row(self, choice: Choice) -> exp.Expr:
        """Return the argument that has the value of a call; an item of FROM as a struct of its columns."""
        argument = _argument(choice.node)
        assert isinstance(choice.query, exp.Select)
        names = self._columns.names(choice.query)
        source = names.sources.get(argument.name.lower()) if isinstance(argument, exp.Column) else None
        if source is None or not source.columns or names.first_owner(argument.name.lower()) is not None:
            return argument
        columns = (exp.column(name, table=argument.this.copy()) for name in source.columns)
        return exp.Struct(expressions=[exp.PropertyEQ(this=it.this.copy(), expression=it) for it in columns])

    def _total_key(self, choice: Choice, value: exp.Expr, output: int, answer: _Answer) -> exp.Expr | None:
        """Return a key that is less for rows with which an aggregate of the rows that LIMIT takes is as predicted."""
        call, total = self._totals[output], answer.total(output)
        if total is None or choice.kind != "limit":
            return None
        if isinstance(call, exp.Min | exp.Max):
            beyond = exp.LT if isinstance(call, exp.Min) else exp.GT
            outside = beyond(this=value.copy(), expression=exp.convert(total))
            return _case([(_equals(value, total), 0), (outside, 2)], 1)
        number = _number(choice.query.args["limit"].expression)
        own_keys = _own_keys(choice.query)
        if not number or own_keys is None or choice.query.args.get("offset") is not None:
            return None
        if isinstance(call, exp.Avg):
            total = total * number
        return _missing_in_total(value, exp.convert(total), number, own_keys)

    def _nesting_keys(self, choice: Choice) -> list[exp.Expr] | None:
        """Return the sort keys of a choice if further ones may have windows; None else."""
        may_nest = choice.kind != "window" or (isinstance(choice.query, exp.Select) and can_nest(choice.query))
        return _own_keys(choice.node) if may_nest else None

    def _first_place(self, choice: Choice) -> int:
        """Return the first place in its order of which a choice takes a row; 1 for values of windows."""
        if choice.kind == "limit":
            offset = choice.query.args.get("offset")
            return _number(offset.expression) + 1 if offset is not None else 1
        if isinstance(call := call_within(choice.node), exp.NthValue) and self._nesting_keys(choice) is not None:
            return max(_number(call.args["offset"]), 1)
        if not isinstance(call, exp.RowNumber):
            return 1
        name = next((item.alias for item in choice.query.expressions if item.unalias() is choice.node), "").lower()
        places = []
        for node in self._tree.find_all(exp.EQ, exp.GT, exp.GTE, exp.Between, exp.In):
            is_named = name and isinstance(node.this, exp.Column) and node.this.name.lower() == name
            if is_named or node.this is choice.node:
                bounds = [node.args.get("low") or node.args.get("expression"), *node.expressions]
                places += [_number(bound) + isinstance(node, exp.GT) for bound in bounds if bound is not None]
        return max(min(places, default=1), 1)

    def _text(self, keys_of_choices: Sequence[_Keys], collections: Mapping[int, Collection]) -> str:
        """Return the query with keys for each choice, and with the elements of `collections`.

        Windows of one SELECT that sort alike choose alike.
        """
        tree = self._tree.copy()
        twins = dict(zip(map(id, self._tree.walk()), tree.walk(), strict=True))
        shared: defaultdict[object, list[exp.Ordered]] = defaultdict(list)
        for of_choices in zip(*keys_of_choices, strict=True):
            for order, keys in zip(self._orders, of_choices, strict=True):
                shared[order] += keys
        for order, choice in zip(self._orders, self._choices, strict=True):
            node, keys = twins[id(choice.node)], [key.copy() for key in shared[order]]
            collection = collections.get(id(choice.node))
            if collection is not None and collection.separator is not None:
                node.replace(_elements(node.this.copy(), self._dialect))
            elif choice.kind in ("aggregate", "collection"):
                _sort_arguments(node, keys)
            elif keys and self._first_places[order] > 1:
                _sort_rotated(node, keys, self._first_places[order], is_nested=order in self._nested_orders)
            else:
                _append(node, keys)
        if any(choice.kind == "window" for choice in self._choices):
            for select in list(tree.find_all(exp.Select)):
                nest_windows(select)
        return tree.sql(dialect=self._dialect, copy=False)


_open_query = lru_cache(maxsize=MAX_QUERIES)(OpenSqlQuery)


# What a query reads


def _reads(select: exp.Select, names: AbstractSet[str], item: exp.Expr, source: exp.Expr | None = None) -> bool:
    """Return whether a SELECT may use a value by one of its names outside of an item.

    Without `source`, which is what FROM has the value of, the SELECT makes the value: then only clauses that follow
    can use it. A value without a name may have that of its function.
    """
    names = names if all(names) else {*names, *FUNCTIONS}
    joins = select.args.get("joins") or ()
    parts = [
        *select.expressions,
        *map(select.args.get, ("having", "order", "qualify")),
        *(select.args.get("windows") or ()),
    ]
    if source is not None:
        parts = [part for part in select.iter_expressions() if not isinstance(part, exp.With)]
        shared = {column.name.lower() for join in joins for column in join.args.get("using") or ()}
        if shared & names or any(join.method == "NATURAL" for join in joins):
            return True
    own = {id(node) for node in chain(item.walk(), source.walk() if source is not None else ())}
    for node in chain.from_iterable(part.walk() for part in parts if part is not None):
        if id(node) in own:
            continue
        if isinstance(node, exp.Column) and node.name.lower() in names:
            return True
        if isinstance(node, exp.Star) and source is not None:
            whole = node.parent if isinstance(node.parent, exp.Column) else node
            if whole.parent is not select and not (whole is node and isinstance(node.parent, exp.Select | exp.Count)):
                return True
    return False


def _with(expression: exp.Expr, parts: Sequence[exp.Expr], others: Sequence[exp.Expr | None]) -> exp.Expr:
    """Return an expression with others instead of some of its parts."""
    by_part = {id(part): other for part, other in zip(parts, others, strict=True)}
    if (other := by_part.get(id(expression))) is not None:
        return other
    copy = exp.paren(expression, copy=True)
    for node, twin in zip(expression.walk(), [*copy.this.walk()], strict=True):
        if (other := by_part.get(id(node))) is not None:
            twin.replace(exp.paren(other, copy=True))
    return copy


def _columns_of(names: Names) -> Iterator[exp.Column]:
    """Yield the known columns of the items of FROM."""
    for alias, source in names.sources.items():
        written = source.node.args.get("alias")
        table = written.this if written is not None else source.node.this
        if isinstance(table, exp.Identifier) and table.name.lower() == alias:
            yield from (
                exp.Column(this=exp.to_identifier(name), table=table.copy()) for name in source.columns or () if name
            )


def _through(
    table: exp.Expr, column: exp.Column, twin: exp.Expr, item: exp.Column, output: int
) -> Iterator[tuple[exp.Expr, int]]:
    """Yield what has the value of an output column that a table has, from a twin of another one of its columns.

    It is the twin itself, or IN with a query of the twin and the output column, of which `_equals` makes a condition.
    """
    if item.name.lower() == column.name.lower():
        yield twin.copy(), output
    elif isinstance(table, exp.Table) and find_cte(table) is None:
        read = [exp.column(part.this.copy(), table=ROWS) for part in (column, item)]
        named = exp.Table(**{**table.copy().args, "alias": exp.to_identifier(ROWS), "joins": None})
        yield exp.In(this=twin.copy(), query=exp.select(*read).from_(named).subquery()), output


def _own_part(expression: exp.Expr) -> exp.Expr:
    """Return an expression without the query through which it has its value."""
    plain = expression.unnest()
    return plain.this if isinstance(plain, exp.In) and plain.args.get("query") is not None else expression


def _comparisons(select: exp.Select) -> Iterator[tuple[exp.Column, exp.Column | exp.Select]]:
    """Yield the columns that a SELECT compares with other ones, or with the value of a query, each as the first."""
    clauses = [select.args.get("where"), *(join.args.get("on") for join in select.args.get("joins") or ())]
    for term in chain.from_iterable(clause.find_all(exp.EQ, exp.In) for clause in clauses if clause is not None):
        other = term.args.get("query") or term.args.get("expression")
        other = other.this if isinstance(other, exp.Subquery) else other
        for one, two in ((term.this, other), (other, term.this)):
            if isinstance(one, exp.Column) and isinstance(two, exp.Column | exp.Select):
                yield one, two


def _value_of_rows(call: exp.Expr) -> exp.Expr:
    """Return the argument of an aggregate; of CASE the first value."""
    value = _argument(call)
    if isinstance(value, exp.Case | exp.If):
        value = value.args["ifs"][0].args["true"] if isinstance(value, exp.Case) else value.args["true"]
    return value


def _value_behind(source: FromItem, value: exp.Expr, columns: Sequence[exp.Column]) -> exp.Expr | None:
    """Return an expression in terms of the SELECT that its columns are of; None if one of these is not known."""
    read = [(source.columns or {}).get(column.name.lower()) for column in columns]
    return None if None in read else _with(value, columns, read)


def _argument(node: exp.Expr) -> exp.Expr:
    """Return the argument that has the value of a call."""
    call = call_within(node)
    argument = call.expressions[0] if isinstance(call, exp.Anonymous) else call.this
    if isinstance(argument, exp.Distinct):
        argument = argument.expressions[0]
    assert isinstance(argument, exp.Expr)
    return argument.this if isinstance(argument, exp.Order) else argument


def _group_of(choice: Choice) -> Sequence[exp.Expr]:
    """Return what is the same for all rows among which a call takes its value."""
    if isinstance(choice.node, exp.Window):
        return choice.node.args.get("partition_by") or ()
    return group_keys(choice.query)


def _order_of(choice: Choice) -> object:
    """Return the same value for choices among the same rows in the same order."""
    if choice.kind == "window":
        return id(choice.query), sorting_of(choice.node, choice.query)
    return (id(choice.query), "collections") if isinstance(choice.node, COLLECTIONS) else id(choice.node)


def _number(node: exp.Expr) -> int:
    """Return the number that a literal is, else 0."""
    return int(node.name) if isinstance(node, exp.Literal) and node.name.isdigit() else 0


# Values


def _type_name(value: Cell) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "bool"
        case int() | float() | Decimal():
            return "number"
        case datetime() | time():
            return "time"
        case date():
            return "date"
        case str():
            return "text"
    return "other"


def _is_comparable(expression: exp.Expr, value: Cell, types: AbstractSet[str]) -> bool:
    """Return whether a query can compare a predicted value with an expression that has values of these types."""
    if isinstance(value, tuple | Mapping):
        parts = _parts(expression, value)
        return parts is not None and all(_is_comparable(*part, {""}) for part in parts)
    if _literal(value) is None:
        return False
    is_date_as_text = _type_name(value) == "text" and not types.isdisjoint({"date", "time"})
    return value is None or types == {""} or _type_name(value) in types or is_date_as_text


def _parts(expression: exp.Expr, value: Cell) -> list[tuple[exp.Expr, Cell]] | None:
    """Return the parts of a struct or a list as an expression makes it, with those of a value; None if they differ."""
    plain = expression.unnest()
    if isinstance(plain, exp.Struct) and isinstance(value, Mapping):
        parts = {it.name: it.expression for it in plain.expressions if isinstance(it, exp.PropertyEQ)}
        return [(parts[str(name)], cell) for name, cell in value.items()] if parts.keys() == value.keys() else None
    is_row = isinstance(plain, exp.Anonymous) and plain.name.lower() == "row"
    if (is_row or isinstance(plain, exp.Array)) and isinstance(value, tuple):
        return list(zip(plain.expressions, value, strict=True)) if len(plain.expressions) == len(value) else None
    return None


def _literal(value: Cell) -> exp.Expr | None:
    """Return a value as a part of a query; None for one that has no literal in every dialect."""
    match value:
        case datetime():
            return exp.Literal.string(value.isoformat(sep=" "))
        case date() | time():
            return exp.Literal.string(value.isoformat())
        case float() if not isfinite(value):
            return None
        case None | bool() | int() | float() | Decimal():
            return exp.convert(value)
        case str() if "\0" not in value:
            return exp.Literal.string(value)
    return None


def _equals(expression: exp.Expr, value: Cell) -> exp.Expr:
    """Return the condition that an expression has a value; a float has it within the default tolerance."""
    literal = _literal(value)
    if (parts := _parts(expression, value)) is not None:
        return exp.and_(*(_equals(*part) for part in parts), copy=False)
    if _own_part(expression) is not expression:  # the query selects the column, and what has the value
        condition = expression.unnest().copy()
        selected = condition.args["query"].this
        selected.where(_equals(selected.expressions[1].pop(), value), copy=False)
        return condition
    if literal is None or value is None:
        return exp.Is(this=expression.copy(), expression=exp.null())
    if isinstance(value, float):
        width = max(abs(value) * DEFAULT_REL, DEFAULT_ABS)
        low, high = (exp.Literal.number(repr(value + side * width)) for side in (-1, 1))
        return exp.Between(this=expression.copy(), low=low, high=high)
    return exp.EQ(this=expression.copy(), expression=literal)


def _has(pairs: Sequence[Pair], row: Row) -> exp.Expr:
    """Return the condition that the expressions of `pairs` have the values of a row."""
    return exp.and_(
        *(_equals(expression, value) for (expression, _), value in zip(pairs, row, strict=True)), copy=False
    )


def _case(numbers: Sequence[tuple[exp.Expr, int]], otherwise: int) -> exp.Case | None:
    """Return a CASE: the number of the first condition that is true, or `otherwise`; None without conditions."""
    case = exp.Case(default=exp.Literal.number(otherwise))
    for condition, number in numbers:
        case.when(condition, exp.Literal.number(number), copy=False)
    return case if numbers else None


# Keys in the tree


def _append(node: exp.Expr, keys: Sequence[exp.Expr]) -> None:
    """Add sort keys at the end of the ORDER BY of a query or a window."""
    order = node.args.get("order") or exp.Order(expressions=[])
    order.set("expressions", [*order.expressions, *keys])
    if order.expressions:
        node.set("order", order)


def _own_keys(node: exp.Expr) -> list[exp.Expr] | None:
    """Return the sort keys of a window or a SELECT, as a window can use them; None if one is of no known column."""
    order = node.args.get("order")
    keys = order.expressions if order is not None else []
    known = [expanded(key, node, inner=False) if isinstance(node, exp.Select) else key for key in keys]
    return None if None in known else [key for key in known if key is not None]


def _over(
    function: exp.Expr, keys: Sequence[exp.Expr], partition: Sequence[exp.Expr] = (), **args: exp.Expr
) -> exp.Window:
    """Return a window over rows with sort keys."""
    order = exp.Order(expressions=[key.copy() for key in keys]) if keys else None
    return exp.Window(this=function, partition_by=[key.copy() for key in partition], order=order, over="OVER", **args)


def _peers() -> exp.WindowSpec:
    return exp.WindowSpec(kind="RANGE", start="CURRENT ROW", end="CURRENT ROW")


def _sort_rotated(node: exp.Expr, keys: Sequence[exp.Expr], first: int, *, is_nested: bool) -> None:
    """Sort by further keys the rows that tie of a LIMIT or a window, from the place `first` on.

    The keys decide which rows that tie are at this place and behind it. The rows that are left take the places before.
    With `is_nested`, windows within the sort keys of a window will be nested.
    """
    own_keys = _own_keys(node)
    if own_keys is None:
        _append(node, keys)
        return
    partition = node.args.get("partition_by") or ()
    rank = _over(exp.Anonymous(this="RANK"), own_keys, partition)
    number_of_ties = _over(exp.Count(this=exp.Star()), own_keys, partition, spec=_peers())
    shift = exp.Case(default=exp.Literal.number(0)).when(rank < first, exp.Literal.number(first) - rank.copy())
    number = _over(exp.RowNumber(), [*own_keys, *keys], partition)
    place = exp.paren(number - rank.copy() + shift) % number_of_ties
    if isinstance(node, exp.Window) and not is_nested:
        node.replace(exp.paren(rank + place))
    else:
        _append(node, [exp.Ordered(this=place)])


def _missing_in_total(value: exp.Expr, total: exp.Expr, limit: int, own_keys: Sequence[exp.Expr]) -> exp.Expr:
    """Return how far the value of a row is from what is missing in a total of the first `limit` rows.

    That is exact where one of the rows that tie is taken, or all but one.
    """
    rank = _over(exp.Anonymous(this="RANK"), own_keys)
    ties = _over(exp.Count(this=exp.Star()), own_keys, spec=_peers())
    total_of_ties = _over(exp.Sum(this=value.copy()), own_keys, spec=_peers())
    up_to_ties = _over(exp.Sum(this=value.copy()), own_keys)
    missing = exp.paren(total - exp.paren(up_to_ties - total_of_ties))
    taken = exp.paren(exp.Literal.number(limit + 1) - rank)
    is_but_one = exp.EQ(this=ties - taken, expression=exp.Literal.number(1))
    left_out = exp.Neg(this=exp.Abs(this=value - exp.paren(total_of_ties.copy() - missing.copy())))
    return exp.Case(default=exp.Abs(this=exp.paren(value.copy()) * taken.copy() - missing)).when(is_but_one, left_out)


def _sort_arguments(node: exp.Expr, keys: Sequence[exp.Expr]) -> None:
    """Put sort keys behind the arguments of an aggregate."""
    arguments = node.expressions if isinstance(node, exp.Anonymous) else [node.args.get("expression") or node.this]
    last = arguments[-1]
    if isinstance(last, exp.Distinct):  # sorts by itself alone
        return
    if isinstance(last, exp.Order):
        last.set("expressions", [*last.expressions, *keys])
    elif keys:
        last.replace(exp.Order(this=last.copy(), expressions=keys))


def _elements(collected: exp.Expr, dialect: str) -> exp.Expr:
    """Return an aggregate that has the elements of a collection as a list of texts, or as JSON."""
    if dialect == "sqlite":
        return exp.Anonymous(this="JSON_GROUP_ARRAY", expressions=[collected])
    return exp.cast(exp.ArrayAgg(this=collected), exp.DataType.build("TEXT[]", dialect="postgres"))
