"""A SQL query with the choices that it leaves open made towards a predicted answer.

Keys are put behind those by which the query sorts, so that they decide only what it leaves open, and the database
returns an answer that the query may have.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, reduce
from itertools import chain, count
from typing import Literal, NamedTuple, TypeAlias, get_args

from sqlglot import exp

from pytest_queryeval.comparison.ties import Collection, GuidedQuery
from pytest_queryeval.core.db_schema import Column, Schema
from pytest_queryeval.core.table import Cell, Row, Table
from pytest_queryeval.languages.sql import MAX_QUERIES, parse_query
from pytest_queryeval.languages.sql.candidates import Candidates, aggregate_of
from pytest_queryeval.languages.sql.choices import (
    COLLECTIONS,
    WRAPPERS,
    Choice,
    argument_of,
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
from pytest_queryeval.languages.sql.sort_keys import (
    MAX_CELLS,
    Pair,
    append_keys,
    case_of,
    elements_of,
    has_values,
    is_comparable,
    over,
    own_keys_of,
    sort_arguments,
    sort_rotated,
    type_name,
)
from pytest_queryeval.languages.sql.sortable import (
    ROWS,
    arms_of,
    can_nest,
    nest_windows,
    ordered,
    sortable_choices,
    value_of_row,
)

Use: TypeAlias = tuple[tuple[str, ...], int]  # the aliases by which a SELECT is read, and the output of an aggregate
Way: TypeAlias = Literal["as predicted", "ascending", "descending"]
WAYS: tuple[Way, ...] = get_args(Way)
MAX_CHOICES = 20
NO_AGGREGATE = -1
FUNCTIONS = ("string_agg", "group_concat", "array_agg", "list", "json_agg", "json_group_array")
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
        types = {output: {type_name(row[output]) for row in self.gold.rows[:MAX_CELLS]} for output in self.alignment}
        found: dict[tuple[int, Row], int] = {}
        for number, pairs in enumerate(uses):
            for row in self.predicted.rows[:limit] if pairs else ():
                values = tuple([row[self.alignment[output]] for _, output in pairs])
                if all(
                    is_comparable(it, value, types[output]) for (it, output), value in zip(pairs, values, strict=True)
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
        return case_of([(has_values(known[at], row), by_place * place) for (at, row), place in rows.items()], len(rows))

    def cells_of(self, pairs: Sequence[Pair], output: int) -> tuple[list[Pair], dict[Row, list[Cell]]]:
        """Return the other pairs that are known, and the predicted cells of an output by the values of these."""
        known = [pair for pair in self.known(pairs) if pair[1] != output]
        rows = {values for _, values in self.rows(known)} if known else {()}
        cells: defaultdict[Row, list[Cell]] = defaultdict(list)
        for row in self.predicted.rows[: MAX_CELLS // (len(known) + 1)] if output in self.alignment else ():
            if (values := tuple([row[self.alignment[place]] for _, place in known])) in rows:
                cells[values].append(row[self.alignment[output]])
        return known, cells

    def number(self, pairs: Sequence[Pair], output: int, own_keys: Sequence[exp.Expr] | None) -> exp.Expr | None:
        """Return a key that is the number which a predicted row with the values of a row has in an output column.

        Rows with the same values, in the order of `own_keys`, have such numbers one after the other; without these keys
        all of them have the same.
        """
        known, cells = self.cells_of(pairs, output)
        cases = []
        taken: set[int] = set()
        for values, copies in cells.items() if known else ():
            condition = has_values(known, values)
            copy = over(exp.RowNumber(), own_keys or (), [expression for expression, _ in known])
            numbers = sorted(cell for cell in copies if isinstance(cell, int))
            taken |= {*numbers}
            for at, number in enumerate(numbers if own_keys is not None else numbers[:1], start=1):
                is_copy = exp.EQ(this=copy.copy(), expression=exp.Literal.number(at))
                cases.append(
                    (condition if len(numbers) == 1 or own_keys is None else exp.and_(condition, is_copy), number)
                )
        return case_of(cases, next(number for number in count(min(taken, default=1)) if number not in taken))

    def place(self, pairs: Sequence[Pair], element: exp.Expr, output: int, separator: str) -> exp.Expr | None:
        """Return a key that is the place of an element in the collection of the predicted row with a row's values."""
        known, cells_of_rows = self.cells_of(pairs, output)
        places: dict[Row, int] = {}
        for values, cell in ((values, cell) for values, cells in cells_of_rows.items() for cell in cells):
            texts = cell.split(separator) if isinstance(cell, str) and separator else cell
            if isinstance(texts, str | list | tuple) and len(places) + len(texts) <= MAX_CELLS // (1 + len(known)):
                places = {(*values, str(value)): place for place, value in enumerate(texts)} | places
        pairs = [*known, (exp.cast(element.copy(), exp.DataType.build("text")), output)]
        return case_of([(has_values(pairs, row), place) for row, place in places.items()], len(places))

    def cells(self, columns: Sequence[exp.Expr], dialect: str) -> exp.Expr | None:
        """Return how many of a row's cells the predicted answer has anywhere, as texts."""
        cells = chain.from_iterable(self.predicted.rows[:MAX_CELLS])
        texts = dict.fromkeys(str(cell) for cell in cells if type_name(cell) in ("number", "text", "date"))
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
        self._separators: dict[int, str] = {}  # of the elements of collections, by the output
        self._numbers: defaultdict[int, list[int]] = defaultdict(list)  # outputs that number its rows, by the SELECT
        self._picked: set[int] = set()  # outputs that are of one row of a group, not the same for all of its rows
        self._origins: dict[Column, int] = {}
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
        for order, (first, _) in zip(self._orders, map(self._places, self._choices), strict=True):
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
        chosen: list[exp.Expr | None] = []
        if is_known and len(alignments[0]) == self._width and self._candidates is not None:
            place, candidates = self._candidates
            columns = [alignments[0][output] for output in range(self._width)]
            wanted = replace(gold, rows=[tuple([row[column] for column in columns]) for row in predicted.rows])
            yield GuidedQuery(
                text=candidates.tree.sql(dialect=self._dialect),
                alignment=alignments[0],
                read=lambda table: chosen.append(candidates.key(table, wanted)),
            )
        for number, way in enumerate(WAYS):
            answer = _Answer(gold, predicted, alignments[number % len(alignments)])
            keys = self._keys_of_choices(way, answer, without="collection")
            for key in filter(None, chosen):
                keys[place].preferred.insert(0, ordered(key.copy()))
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
        is_slice = isinstance(call, exp.Bracket) and isinstance(call.expressions[0], exp.Slice)
        collected = call_within(call.this) if is_slice else call
        if isinstance(collected, COLLECTIONS):
            is_whole = is_free and not is_slice and not _reads(select, {item_name}, expression)
            self._collected[id(collected)].append(output if is_whole else -1)
            separator = self._separator(collected)
            self._separators[output] = "," if separator is None else separator
            self._trace(select, place, argument_of(collected), output, (use[0], output), is_free=False)
            return
        if isinstance(call, exp.Subquery) and isinstance(inner := call.this, exp.Select):
            is_free = is_free and not is_grouped(select) and not _reads(select, {item_name}, expression)
            self._trace(inner, 0, inner.expressions[0].unalias(), output, use, is_free=is_free)
            return
        if isinstance(expression, exp.Window) and isinstance(call, exp.RowNumber):
            for inner in names.sources.values():
                self._numbers[id(inner.select)].append(output)
        value = value_of_row(expression)
        if picks(call):
            self._picked.add(output)
            value, is_free = argument_of(call), False
        elif isinstance(call, _OF_ROWS) and value.find(exp.AggFunc) and not value.find(exp.Window):
            value, use, is_free = _value_of_rows(call), (use[0], output), False
        if (read := self._source_of(select, value)) is None:
            return
        alias, (column, *_) = read
        names_read = {item_name, value.name.lower(), alias}
        is_free = is_free and value is column and not is_grouped(select)
        is_free = is_free and not _reads(select, names_read, value, names.sources[alias].node)
        self._trace_source(select, value, output, use, is_free=is_free)
        if isinstance(value, exp.Column) and use[1] == NO_AGGREGATE:
            self._trace_equal(select, value, output, use)

    def _trace_equal(self, select: exp.Select, value: exp.Column, output: int, use: Use) -> None:
        """Note what has the value of a column in queries whose value it has to equal."""
        names, where = self._columns.names(select), select.args.get("where")
        found = names.find(value.table.lower(), value.name.lower())
        for term in where.find_all(exp.EQ, exp.In) if where is not None else ():
            query, column = top_query(term.args.get("query") or term.args.get("expression")), term.this
            is_column = isinstance(column, exp.Column) and column.name == value.name
            if (
                is_column
                and isinstance(query, exp.Select)
                and names.find(column.table.lower(), column.name.lower()) == found
            ):
                self._trace(query, 0, query.expressions[0].unalias(), output, use, is_free=False)

    def _trace_source(self, select: exp.Select, value: exp.Expr, output: int, use: Use, *, is_free: bool) -> None:
        """Note the expressions of an item of FROM that have a value, which is that of some of its columns."""
        if (read := self._source_of(select, value)) is None:
            return
        alias, columns = read
        source = self._columns.names(select).sources[alias]
        if source.select is None and isinstance(value, exp.Column) and use[1] not in self._separators:
            origins = self._origins if use[1] == NO_AGGREGATE else self._total_origins
            origins[source.node.name.lower(), value.name.lower()] = output
        elif source.select is not None and (inner := _value_behind(source, value, columns)) is not None:
            place = [*(source.columns or {})].index(columns[0].name.lower())
            is_free = is_free and self._is_read_once(source)
            self._trace(source.select, place, inner, output, ((*use[0], alias), use[1]), is_free=is_free)

    def _source_of(self, select: exp.Select, value: exp.Expr) -> tuple[str, list[exp.Column]] | None:
        """Return the item of FROM that all columns of an expression are of, by its alias, and these columns."""
        names = self._columns.names(select)
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
                separator = self._separator(choice.node)
                around = "[]" if separator and isinstance(choice.node, exp.JSONArrayAgg) else ""
                group = -1 - number if isinstance(choice.node.this, exp.Distinct) else id(choice.query)
                is_nested = choice.query is not top_query(self._tree)
                yield id(choice.node), Collection(outputs[0], separator, group, may_repeat=is_nested, around=around)

    def _separator(self, call: exp.Expr) -> str | None:
        """Return what stands between the elements of a collection in a text; None of a list."""
        if isinstance(call, exp.JSONArrayAgg | exp.ArrayAgg):
            return "," if isinstance(call, exp.JSONArrayAgg) and self._dialect == "sqlite" else None
        separator = call.args.get("separator")
        return "," if separator is None else separator.name

    # Keys

    def _uses(self, select: exp.Query) -> list[list[Pair]]:
        """Return the expressions of a SELECT with the values of output columns, for each way in which it is read.

        Those from which the answer has an aggregate come before those that are the same for a group.
        """
        pairs = self._pairs[id(select)]
        of_rows = [use for use in pairs if use[1] not in (NO_AGGREGATE, *self._separators)]
        return [
            *(pairs[use] + pairs.get((use[0], NO_AGGREGATE), []) for use in of_rows),
            *(pairs[use] for use in pairs if use[1] == NO_AGGREGATE),
        ]

    def _elements(self, choice: Choice) -> Iterator[Pair]:
        """Yield the expressions with the elements of output columns that a choice selects or sorts."""
        collected = argument_of(choice.node) if choice.kind in ("collection", "aggregate") else None
        for use, pairs in self._pairs[id(choice.query)].items():
            for element, output in pairs if use[1] in self._separators else ():
                if (collected is None or element is collected) and element.find(exp.Window, exp.Query) is None:
                    yield element, output

    def _read_by(self, choice: Choice) -> _Readable:
        """Return what the keys of a choice may read."""
        query = choice.query
        assert isinstance(query, exp.Select)
        reads_groups = is_grouped(query) and choice.kind in ("limit", "window", "distinct on", "sorted input")
        hidden = (exp.Window, exp.Query) if reads_groups else (exp.Window, exp.Query, exp.AggFunc)
        values = [self._value(choice, use) for use in self._uses(query)] or [None]
        uses = [[pair for pair in use if pair[0].find(*hidden) is None] for use in self._uses(query)] or [[]]
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
            names = found[0]
            sides = [column.parent.this, column.parent.expression] if isinstance(column.parent, exp.EQ) else []
            inner = [side for side in sides if side is not column and isinstance(side, exp.Column)]
            inner = [side for side in inner if self._columns.names_at(side) is self._columns.names(query)]
            for item, output in chain.from_iterable(self._uses(names.select)[:1]):
                name = item.name.lower() if isinstance(item, exp.Column) else ""
                if name == column.name.lower() and names.find(item.text("table").lower(), name) == found:
                    yield (inner[0] if inner else column).copy(), output

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
        places = [answer.place(of_groups, *pair, self._separators[pair[1]]) for pair in self._elements(choice)]
        own_keys = self._nesting_keys(choice)
        numbers = [answer.number(uses[0], output, own_keys) for output in self._numbers[id(choice.node)]]
        if isinstance(call_within(choice.node), exp.RowNumber):
            for use, raw in zip(uses, self._uses(choice.query), strict=False):
                numbers += [answer.number(use, output, own_keys) for item, output in raw if item is choice.node]
        keys = [ordered(key) for key in (*places, *numbers) if key is not None]
        preferences = [uses]
        if any(value is not None for value in values):
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
        argument = argument_of(choice.node)
        assert isinstance(choice.query, exp.Select)
        names = self._columns.names(choice.query)
        source = names.sources.get(argument.name.lower()) if isinstance(argument, exp.Column) else None
        if source is None or not source.columns or names.first_owner(argument.name.lower()) is not None:
            return argument
        columns = (exp.column(name, table=argument.this.copy()) for name in source.columns)
        return exp.Struct(expressions=[exp.PropertyEQ(this=it.this.copy(), expression=it) for it in columns])

    def _nesting_keys(self, choice: Choice) -> list[exp.Expr] | None:
        """Return the sort keys of a choice if further ones may have windows; None else."""
        may_nest = choice.kind != "window" or (isinstance(choice.query, exp.Select) and can_nest(choice.query))
        return own_keys_of(choice.node) if may_nest else None

    def _places(self, choice: Choice) -> tuple[int, int]:
        """Return the first and the last place in its order of which a choice takes a row; 1 for values of windows."""
        places = [1]
        call = call_within(choice.node)
        if choice.kind == "limit":
            before, taken = (
                _number(part.expression) if part else 0 for part in map(choice.query.args.get, ("offset", "limit"))
            )
            places = [before + 1, before + taken]
        elif isinstance(call, exp.NthValue) and self._nesting_keys(choice) is not None:
            places = [_number(call.args["offset"])]
        elif isinstance(call, exp.RowNumber):
            name = next((item.alias for item in choice.query.expressions if item.unalias() is choice.node), "").lower()
            places = []
            for node in self._tree.find_all(exp.EQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Between, exp.In):
                is_named = name and isinstance(node.this, exp.Column) and node.this.name.lower() == name
                if is_named or node.this is choice.node:
                    off = isinstance(node, exp.GT) - isinstance(node, exp.LT)
                    bounds = [_number(bound) + off for bound in node.iter_expressions() if bound is not node.this]
                    places += [1, *bounds] if isinstance(node, exp.LT | exp.LTE) else bounds
        return max(min(places, default=1), 1), max(places, default=0)

    @cached_property
    def _candidates(self) -> tuple[int, Candidates] | None:
        """Among which rows a choice takes some, where the answer has aggregates or joins of them, and its number."""
        top = top_query(self._tree)
        if not isinstance(top, exp.Select):
            return None
        items = [item for _, item in self._columns.items(top) or ()]
        is_read = all(aggregate_of(item) or item.find(exp.AggFunc, exp.Window) is None for item in items)
        for number, (choice, readable) in enumerate(zip(self._choices, self._readable, strict=True)):
            is_taking = choice.kind in ("limit", "distinct on") or isinstance(call_within(choice.node), exp.RowNumber)
            first, last = self._places(choice)
            steps = self._steps(top, choice.query) if items and is_read and is_taking and first == 1 <= last else []
            is_mixed = is_grouped(top) or any(step.args.get("joins") for step, _ in steps)
            if steps and is_mixed and not any(is_grouped(step) for step, _ in steps[:-1]):
                return number, Candidates(choice, items, readable.others, steps, last)
        return None

    def _steps(self, select: exp.Select, query: exp.Query) -> list[tuple[exp.Select, str]]:
        """Return the SELECTs through which one reads a query, each with the alias that it reads."""
        for alias, source in self._columns.names(select).sources.items():
            if source.select is not None and alias != ROWS and self._is_read_once(source):
                if source.select is query:
                    return [(select, alias)]
                if steps := self._steps(source.select, query):
                    return [*steps, (select, alias)]
        return []

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
            if collection is not None and collection.separator is not None and not collection.around:
                node.replace(elements_of(node.this.copy(), self._dialect))
            elif choice.kind in ("aggregate", "collection"):
                sort_arguments(node, keys)
            elif keys and self._first_places[order] > 1:
                sort_rotated(node, keys, self._first_places[order], is_nested=order in self._nested_orders)
            else:
                append_keys(node, keys)
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


def _value_of_rows(call: exp.Expr) -> exp.Expr:
    """Return the argument of an aggregate; of CASE the first value."""
    value = argument_of(call)
    if isinstance(value, exp.Case | exp.If):
        value = value.args["ifs"][0].args["true"] if isinstance(value, exp.Case) else value.args["true"]
    return value


def _value_behind(source: FromItem, value: exp.Expr, columns: Sequence[exp.Column]) -> exp.Expr | None:
    """Return an expression in terms of the SELECT that its columns are of; None if one of these is not known."""
    read = [(source.columns or {}).get(column.name.lower()) for column in columns]
    return None if None in read else _with(value, columns, read)


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
