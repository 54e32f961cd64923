"""A SQL query with the choices that it leaves open made towards a predicted answer.

Keys are put behind those by which the query sorts, so that they decide only what it leaves open, and the database
returns an answer that the query may have.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import date, datetime, time
from decimal import Decimal
from functools import lru_cache
from itertools import chain
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
from pytest_queryeval.languages.sql.sortable import arms_of, ordered, sortable_choices, value_of_row

Pair: TypeAlias = tuple[exp.Expr, int]  # an expression of a SELECT, and the output column that has its values
Way: TypeAlias = Literal["as predicted", "ascending", "descending"]
WAYS: tuple[Way, ...] = get_args(Way)
MAX_CELLS = 1_000  # of the predicted answer, as literals in a query
MAX_CHOICES = 20
FUNCTIONS = ("string_agg", "group_concat", "array_agg", "list")
_SYNONYMS = (
    ("string_agg", "group_concat", "listagg"),
    ("array_agg", "list"),
    ("arg_max", "argmax", "max_by"),
    ("arg_min", "argmin", "min_by"),
)


class _Reading(NamedTuple):
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
    return None if _read(query, dialect) is None else _open_query(query, dialect, schema())


@lru_cache(maxsize=MAX_QUERIES)
def _open_query(query: str, dialect: str, schema: Schema) -> OpenSqlQuery | None:
    reading = _read(query, dialect)
    return None if reading is None else OpenSqlQuery(reading, dialect, schema)


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

    def rows(self, outputs: Sequence[int]) -> list[Row]:
        """Return the different predicted values of output columns, as many as may stand in a query."""
        places = [self.alignment[output] for output in outputs]
        limit = MAX_CELLS // max(len(places), 1)
        rows = dict.fromkeys(tuple([row[place] for place in places]) for row in self.predicted.rows[:limit])
        types = [{_type_name(row[output]) for row in self.gold.rows[:MAX_CELLS]} for output in outputs]
        return [row for row in rows if all(map(_is_comparable, row, types))] if outputs else []

    def preference(self, pairs: Sequence[Pair], *, by_place: bool) -> exp.Expr | None:
        """Return a key that is less for rows whose values a predicted row has, `by_place` less for earlier ones."""
        known = self.known(pairs)
        rows = self.rows([output for _, output in known])
        return _case(known, {row: place if by_place else 0 for place, row in enumerate(rows)}, len(rows))

    def number(self, pairs: Sequence[Pair], output: int) -> exp.Expr | None:
        """Return a key that is the number which a predicted row with the values of a row has in an output column."""
        known = [pair for pair in self.known(pairs) if pair[1] != output]
        rows = self.rows([*(place for _, place in known), output]) if known and output in self.alignment else []
        numbers = {row[:-1]: row[-1] for row in reversed(rows) if isinstance(row[-1], int)}
        return _case(known, numbers, max(numbers.values(), default=0) + 1)

    def place(self, pairs: Sequence[Pair], element: _Element) -> exp.Expr | None:
        """Return a key that is the place of an element in the collection of the predicted row with a row's values."""
        if element.output not in self.alignment:
            return None
        known = [pair for pair in self.known(pairs) if pair[1] != element.output]
        rows = set(self.rows([output for _, output in known])) if known else {()}
        places: dict[Row, int] = {}
        for row in self.predicted.rows:
            others = tuple([row[self.alignment[output]] for _, output in known])
            cell = row[self.alignment[element.output]]
            cells = cell.split(element.separator) if isinstance(cell, str) and element.separator else cell
            if (
                others in rows
                and isinstance(cells, list | tuple)
                and len(places) + len(cells) <= MAX_CELLS // (1 + len(known))
            ):
                places = {(*others, str(value)): place for place, value in enumerate(cells)} | places
        text = exp.cast(element.expression.copy(), exp.DataType.build("text"))
        return _case([*known, (text, element.output)], places, len(places))

    def cells(self, columns: Sequence[exp.Expr], dialect: str) -> exp.Expr | None:
        """Return how many of a row's cells the predicted answer has anywhere, as texts."""
        cells = chain.from_iterable(self.predicted.rows[:MAX_CELLS])
        texts = dict.fromkeys(str(cell) for cell in cells if _type_name(cell) in ("number", "text", "date"))
        literals = [exp.Literal.string(text).sql(dialect) for text in [*texts][: MAX_CELLS // max(len(columns), 1)]]
        counted = (
            f"CASE WHEN CAST({column.sql(dialect)} AS TEXT) IN ({', '.join(literals)}) THEN 1 ELSE 0 END"
            for column in columns
        )
        return exp.Var(this=" + ".join(counted)) if literals and columns else None


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
        self._pairs: defaultdict[int, list[Pair]] = defaultdict(list)  # by the SELECT
        self._elements: defaultdict[int, list[_Element]] = defaultdict(list)  # by the call, or the SELECT that it reads
        self._numbers: defaultdict[int, list[int]] = defaultdict(list)  # outputs that number its rows, by the SELECT
        self._picked: set[int] = set()  # outputs that are of one row of a group, not the same for all of its rows
        self._origins: dict[Column, int] = {}
        self._collected: defaultdict[int, list[int]] = defaultdict(list)  # outputs by the call; -1 where not free
        self._width = 0
        for select in arms_of(self._tree):
            items = self._columns.items(select) or ()
            self._width = len(items)
            for output, (_, item) in enumerate(items):
                self._trace(select, output, item, output, is_free=select is top_query(self._tree))
        self._collections = dict(self._read_collections())
        self._readable = [self._read_by(choice) for choice in self._choices]
        self._orders = [_order_of(choice) for choice in self._choices]
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
            text = self._text(keys, collections) if collections or any(keys) else ""
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
            keys_of_choices = [keys[::step] for keys in self._keys_of_choices(way, NO_ANSWER)]
            for keys in keys_of_choices:
                chosen = [ordered(key.this.copy()) for key in keys if key.this.sql(dialect=self._dialect) == first]
                keys[:0] = chosen[:1]
            texts.append(self._text(keys_of_choices, {}))
        return texts

    def deciding_columns(self) -> list[str]:
        """Return the texts of the columns by which the choices can be decided."""
        keys = chain.from_iterable(self._keys_of_choices("ascending", NO_ANSWER))
        return list(dict.fromkeys(key.this.sql(dialect=self._dialect) for key in keys))

    # What has the values of the answer

    def _trace(self, select: exp.Select, place: int, expression: exp.Expr, output: int, *, is_free: bool) -> None:
        """Note the expressions, of this SELECT and of those that it reads, that have the values of an output column.

        `place` is that of the item which is the expression or depends on it. With `is_free`, it is the expression, and
        no other part of the query depends on its value.
        """
        self._pairs[id(select)].append((expression, output))
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
            self._trace(inner, 0, inner.expressions[0].unalias(), output, is_free=is_free)
            return
        elif isinstance(expression, exp.Window) and isinstance(call, exp.RowNumber):
            for inner in names.sources.values():
                self._numbers[id(inner.select)].append(output)
        value = value_of_row(expression)
        if picks(call):
            self._picked.add(output)
            value, is_free = _argument(call), False
        if (read := self._source_of(select, value)) is None:
            return
        alias, columns = read
        source = names.sources[alias]
        if source.select is None:
            if value is columns[0]:
                self._origins[source.node.name.lower(), value.name.lower()] = output
            return
        if (inner_value := _value_behind(source, value, columns)) is None:
            return
        is_free = is_free and value is columns[0] and not is_grouped(select) and self._is_read_once(source)
        is_free = is_free and not _reads(select, {item_name, value.name.lower(), alias}, value, source.node)
        inner_place = [*(source.columns or {})].index(columns[0].name.lower())
        self._trace(source.select, inner_place, inner_value, output, is_free=is_free)

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
        columns = [
            column for column in value.find_all(exp.Column) if value.find(exp.AggFunc, exp.Query, exp.Window) is None
        ]
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

    def _read_by(self, choice: Choice) -> tuple[list[Pair], Sequence[exp.Expr]]:
        """Return what the keys of a choice may read: expressions with the values of output columns, and all columns."""
        query = choice.query
        assert isinstance(query, exp.Select)
        reads_groups = is_grouped(query) and choice.kind in ("limit", "window", "distinct on", "sorted input")
        hidden = (exp.Window, exp.Query) if reads_groups else (exp.Window, exp.Query, exp.AggFunc)
        pairs = [(item, output) for item, output in self._pairs[id(query)] if item.find(*hidden) is None]
        if reads_groups:
            items = [*group_keys(query), *(item.unalias() for item in query.expressions)]
            return pairs, list({item.sql(): item for item in items if item.find(*hidden) is None}.values())
        names = self._columns.names(query)
        columns = [*_columns_of(names)]
        known = {output for _, output in pairs}
        for column in columns:
            origin = self._columns.origin(names, column.table.lower(), column.name.lower())
            if origin is not None and (output := self._origins.get(origin)) is not None and output not in known:
                pairs.append((column, output))
        return pairs, columns or [item for item, _ in pairs]

    def _keys_of_choices(self, way: Way, answer: _Answer, without: str = "") -> list[list[exp.Ordered]]:
        """Return the sort keys of each choice, none of those of one kind."""
        return [
            [] if choice.kind == without else self._keys(choice, pairs, others, way, answer)
            for choice, (pairs, others) in zip(self._choices, self._readable, strict=True)
        ]

    def _keys(
        self, choice: Choice, pairs: Sequence[Pair], others: Sequence[exp.Expr], way: Way, answer: _Answer
    ) -> list[exp.Ordered]:
        """Return the sort keys of a choice that reads these expressions, the most important one first."""
        of_groups = [pair for pair in pairs if pair[1] not in self._picked]
        places = [answer.place(of_groups, element) for element in self._elements[id(choice.node)]]
        numbers = [answer.number(pairs, output) for output in self._numbers[id(choice.node)]]
        keys = [ordered(key) for key in (*places, *numbers) if key is not None]
        preferences = [pairs]
        if isinstance(call_within(choice.node), exp.RowNumber):
            numbered = (output for item, output in self._pairs[id(choice.query)] if item is choice.node)
            keys += [ordered(key) for output in numbered if (key := answer.number(pairs, output)) is not None]
        elif (value := self._value(choice)) is not None:
            same = {key.sql().lower() for key in _group_of(choice)}
            preferences = [[value, *pairs], [value, *(pair for pair in pairs if pair[0].sql().lower() in same)]]
        avoids = choice.query.find_ancestor(exp.Not, exp.NEQ, exp.Except) is not None
        is_last_first = isinstance(call_within(choice.node), exp.Last | exp.LastValue) != avoids
        for preferred in preferences:
            key = answer.preference(preferred, by_place=way == "ascending")
            keys += [ordered(key, is_descending=is_last_first)] if key is not None else []
        if way != "as predicted":
            return [*keys, *(ordered(column.copy(), is_descending=way == "descending") for column in others)]
        count = answer.cells(others, self._dialect)
        return keys if count is None else [*keys, ordered(count, is_descending=not is_last_first)]

    def _value(self, choice: Choice) -> Pair | None:
        """Return the item that has the call of a window or an aggregate, with the value of a row in its place."""
        call = choice.node
        if isinstance(call, COLLECTIONS):
            return None
        while isinstance(call.parent, WRAPPERS):
            call = call.parent
        for item, output in self._pairs[id(choice.query)] if choice.kind in ("window", "aggregate") else ():
            if any(node is call for node in item.walk()):
                value = _with(item, [call], [_argument(choice.node)])
                return (value, output) if value.find(exp.Window, exp.AggFunc, exp.Query) is None else None
        return None

    def _first_place(self, choice: Choice) -> int:
        """Return the first place in its order of which a choice takes a row; 1 for values of windows."""
        if choice.kind == "limit":
            offset = choice.query.args.get("offset")
            return _number(offset.expression) + 1 if offset is not None else 1
        if not isinstance(call_within(choice.node), exp.RowNumber):
            return 1
        name = next((item.alias for item in choice.query.expressions if item.unalias() is choice.node), "").lower()
        places = []
        for node in self._tree.find_all(exp.EQ, exp.GT, exp.GTE, exp.Between, exp.In):
            is_named = name and isinstance(node.this, exp.Column) and node.this.name.lower() == name
            if is_named or node.this is choice.node:
                bounds = [node.args.get("low") or node.args.get("expression"), *node.expressions]
                places += [_number(bound) + isinstance(node, exp.GT) for bound in bounds if bound is not None]
        return max(min(places, default=1), 1)

    def _text(self, keys_of_choices: Sequence[list[exp.Ordered]], collections: Mapping[int, Collection]) -> str:
        """Return the query with keys for each choice, and with the elements of `collections`.

        Windows of one SELECT that sort alike choose alike.
        """
        tree = self._tree.copy()
        twins = dict(zip(map(id, self._tree.walk()), tree.walk(), strict=True))
        shared: defaultdict[object, list[exp.Ordered]] = defaultdict(list)
        for order, keys in zip(self._orders, keys_of_choices, strict=True):
            shared[order] += keys
        for order, choice in zip(self._orders, self._choices, strict=True):
            node, keys = twins[id(choice.node)], [key.copy() for key in shared[order]]
            collection = collections.get(id(choice.node))
            if collection is not None and collection.separator is not None:
                node.replace(_elements(node.this.copy(), self._dialect))
            elif choice.kind in ("aggregate", "collection"):
                _sort_arguments(node, keys)
            elif keys and self._first_places[order] > 1:
                _sort_rotated(node, keys, self._first_places[order])
            else:
                _append(node, keys)
        return tree.sql(dialect=self._dialect, copy=False)


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


def _is_comparable(value: Cell, types: AbstractSet[str]) -> bool:
    """Return whether a query can compare a predicted value with a column that has values of these types."""
    if _literal(value) is None:
        return False
    is_date_as_text = _type_name(value) == "text" and not types.isdisjoint({"date", "time"})
    return value is None or types == {""} or _type_name(value) in types or is_date_as_text


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
    if literal is None or value is None:
        return exp.Is(this=expression.copy(), expression=exp.null())
    if isinstance(value, float):
        width = max(abs(value) * DEFAULT_REL, DEFAULT_ABS)
        low, high = (exp.Literal.number(repr(value + side * width)) for side in (-1, 1))
        return exp.Between(this=expression.copy(), low=low, high=high)
    return exp.EQ(this=expression.copy(), expression=literal)


def _case(pairs: Sequence[Pair], numbers: Mapping[Row, int], otherwise: int) -> exp.Case | None:
    """Return a CASE: the number of the first row whose values the expressions of `pairs` have, or `otherwise`.

    None without rows.
    """
    case = exp.Case(default=exp.Literal.number(otherwise))
    for row, number in numbers.items():
        conditions = (_equals(expression, value) for (expression, _), value in zip(pairs, row, strict=True))
        case.when(exp.and_(*conditions, copy=False), exp.Literal.number(number), copy=False)
    return case if numbers else None


# Keys in the tree


def _append(node: exp.Expr, keys: Sequence[exp.Expr]) -> None:
    """Add sort keys at the end of the ORDER BY of a query or a window."""
    order = node.args.get("order") or exp.Order(expressions=[])
    order.set("expressions", [*order.expressions, *keys])
    if order.expressions:
        node.set("order", order)


def _sort_rotated(node: exp.Expr, keys: Sequence[exp.Expr], first: int) -> None:
    """Sort by further keys the rows that tie of a LIMIT or a row_number(), from the place `first` on.

    The keys decide which rows that tie are at this place and behind it. The rows that are left take the places before.
    """
    is_window = isinstance(node, exp.Window)
    order = node.args.get("order")
    own_keys = order.expressions if order is not None else []
    if not is_window:
        assert isinstance(node, exp.Select)
        own_keys = [expanded(key, node, inner=False) for key in own_keys]
        if None in own_keys:
            _append(node, keys)
            return

    def over(function: exp.Expr, *more: exp.Expr, **args: exp.Expr) -> exp.Window:
        sorted_by = [key.copy() for key in (*own_keys, *more)]
        partition = [key.copy() for key in node.args.get("partition_by") or ()]
        window_order = exp.Order(expressions=sorted_by) if sorted_by else None
        return exp.Window(this=function, partition_by=partition, order=window_order, over="OVER", **args)

    rank = over(exp.Anonymous(this="RANK"))
    peers = exp.WindowSpec(kind="RANGE", start="CURRENT ROW", end="CURRENT ROW")
    number_of_ties = over(exp.Count(this=exp.Star()), spec=peers)
    shift = exp.Case(default=exp.Literal.number(0)).when(rank < first, exp.Literal.number(first) - rank.copy())
    place = exp.paren(over(exp.RowNumber(), *keys) - rank.copy() + shift) % number_of_ties
    if is_window:
        node.replace(exp.paren(rank + place))
    else:
        _append(node, [exp.Ordered(this=place)])


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
