"""A SQL query with the choices that it leaves open made towards a predicted answer.

Keys are put behind those by which the query sorts, so that they decide only what it leaves open, and the database
returns an answer that the query may have.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, reduce
from itertools import chain, count
from typing import Literal, NamedTuple, TypeAlias, get_args

from sqlglot import exp

from pytest_queryeval.comparison.ties import Collection, GuidedQuery
from pytest_queryeval.core.db_schema import Schema
from pytest_queryeval.core.table import Cell, Row, Table
from pytest_queryeval.languages.sql import MAX_QUERIES, parse_query
from pytest_queryeval.languages.sql.candidates import Candidates, is_readable
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
    sorting_of,
    top_query,
)
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
from pytest_queryeval.languages.sql.sortable import can_nest, nest_windows, ordered, sortable_choices
from pytest_queryeval.languages.sql.traces import Traces, columns_of, with_parts

Way: TypeAlias = Literal["as predicted", "ascending", "descending"]
WAYS: tuple[Way, ...] = get_args(Way)
MAX_CHOICES = 20
_SYNONYMS = (
    ("string_agg", "group_concat", "listagg"),
    ("array_agg", "list"),
    ("json_agg", "jsonb_agg"),
    ("arg_max", "argmax", "max_by"),
    ("arg_min", "argmin", "min_by"),
)


@dataclass(frozen=True, eq=False)
class _Reading:
    tree: exp.Query
    choices: tuple[str, ...]
    fixed_columns: tuple[int, ...] | None


@lru_cache(maxsize=MAX_QUERIES)
def _read_open_query(query: str, dialect: str) -> _Reading | None:
    """Return the tree and the choices of a query that leaves its answer open; None for any other query. Cached.

    None without a dialect, too: then it is unknown how texts are quoted, and texts of answers are not trusted. None for
    more than MAX_CHOICES choices.
    """
    tree = parse_query(query, dialect).whole_tree if dialect else None
    if tree is not None and "jsonb_agg" in query.lower():
        tree = tree.transform(_as_json_agg)
    if not isinstance(tree, exp.Query) or not 0 < len(choices := choices_in(tree, dialect)) <= MAX_CHOICES:
        return None
    names = tuple(dict.fromkeys(_as_written(choice.name, query) for choice in choices))
    return _Reading(tree, names, fixed_columns(tree, choices))


def _as_json_agg(node: exp.Expr) -> exp.Expr:
    """Return a call of json_agg() for a call of jsonb_agg(), which sqlglot lacks; any other node unchanged."""
    is_call = isinstance(node, exp.Anonymous) and node.name.lower() == "jsonb_agg"
    return exp.JSONArrayAgg(this=node.expressions[0]) if is_call and len(node.expressions) == 1 else node


def _as_written(text: str, query: str) -> str:
    """Return a text about a query in which functions have the names that the query uses for them."""
    called = re.findall(r"\w+(?=\s*\()", query)

    def written(match: re.Match[str]) -> str:
        own = match[0].lower()
        names = next((names for names in _SYNONYMS if own in names), (own,))
        return next((name for name in called if name.lower() in names), match[0])

    return re.sub(r"\w+(?=\()", written, text)


def open_query(query: str, dialect: str, schema: Callable[[], Schema]) -> OpenSqlQuery | None:
    """Return the choices of a query that leaves its answer open; None for any other query.

    `schema` returns the tables; it is called only for an open query.
    """
    reading = _read_open_query(query, dialect)
    return None if reading is None else _open_query(reading, dialect, schema())


class _Sorted(NamedTuple):
    """A choice in the form in which sort keys decide it, with the expressions that its keys may read.

    `uses` are the expressions with the values of output columns, for each way in which the answer reads the SELECT.
    `values` are those with the value that the choice takes there, and `others` are all columns. Choices with equal
    `order` are among the same rows in the same order. The choice takes rows at the places from `first` to `last`.
    """

    choice: Choice
    uses: list[list[Pair]]
    values: list[Pair | None]
    others: list[exp.Expr]
    order: object
    first: int
    last: int


class _Keys(NamedTuple):
    """The sort keys of a choice: keys that prefer predicted rows, and other keys that settle the rest."""

    preferred: list[exp.Ordered]
    others: list[exp.Ordered]


class _Answer(NamedTuple):
    """The gold and the predicted answer; `alignment` maps gold's columns to predicted columns."""

    gold: Table
    predicted: Table
    alignment: Mapping[int, int]

    def known(self, pairs: Sequence[Pair]) -> list[Pair]:
        """Return the pairs whose output column the predicted answer has, the first pair of each column."""
        by_output = {output: expression for expression, output in reversed(pairs) if output in self.alignment}
        return [(expression, output) for output, expression in by_output.items()]

    def rows(self, pairs: Sequence[Pair], limit: int) -> Iterator[tuple[Row, Row]]:
        """Yield the values that the first `limit` predicted rows have for expressions, with the rows.

        Rows with a value that a query cannot compare are left out.
        """
        types = {output: {type_name(row[output]) for row in self.gold.rows[:MAX_CELLS]} for _, output in pairs}
        for row in self.predicted.rows[:limit]:
            values = tuple([row[self.alignment[output]] for _, output in pairs])
            if all(is_comparable(it, value, types[output]) for (it, output), value in zip(pairs, values, strict=True)):
                yield values, row

    def preference(self, uses: Sequence[Sequence[Pair]], *, by_place: bool) -> exp.Expr | None:
        """Return a sort key that is less for rows whose values a predicted row has; None if there are no such values.

        With `by_place`, it is less for earlier predicted rows. `uses` are the expressions for each way in which the
        answer reads a SELECT. Several ways may want different rows in one order, so earlier rows always come first
        then.
        """
        known = [*map(self.known, uses)]
        limit = MAX_CELLS // max(sum(map(len, known)), 1)
        found = dict.fromkeys(
            (number, values) for number, pairs in enumerate(known) if pairs for values, _ in self.rows(pairs, limit)
        )
        by_place = by_place or len(known) > 1
        cases = [(has_values(known[at], row), by_place * place) for place, (at, row) in enumerate(found)]
        return case_of(cases, len(found))

    def cells_of(self, pairs: Sequence[Pair], output: int) -> tuple[list[Pair], dict[Row, list[Cell]]]:
        """Return the known pairs except that of an output, and the output's predicted cells by their values."""
        known = [pair for pair in self.known(pairs) if pair[1] != output]
        cells: defaultdict[Row, list[Cell]] = defaultdict(list)
        for values, row in self.rows(known, MAX_CELLS // (len(known) + 1)) if output in self.alignment else ():
            cells[values].append(row[self.alignment[output]])
        return known, cells

    def number(self, pairs: Sequence[Pair], output: int, own_keys: Sequence[exp.Expr] | None) -> exp.Expr | None:
        """Return a sort key: the number that a predicted row with the row's values has in an output column.

        None if unknown. Rows with the same values, in the order of `own_keys`, get such numbers in turn; if `own_keys`
        is None, all get the same number.
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
        """Return a sort key: the place of an element in the collection of the predicted row with the row's values.

        None if no place is known.
        """
        known, cells_of_rows = self.cells_of(pairs, output)
        places: dict[Row, int] = {}
        for values, cell in ((values, cell) for values, cells in cells_of_rows.items() for cell in cells):
            texts = cell.split(separator) if isinstance(cell, str) and separator else cell
            if isinstance(texts, str | list | tuple) and len(places) + len(texts) <= MAX_CELLS // (1 + len(known)):
                places = {(*values, str(value)): place for place, value in enumerate(texts)} | places
        pairs = [*known, (exp.cast(element, exp.DType.TEXT), output)]
        return case_of([(has_values(pairs, row), place) for row, place in places.items()], len(places))

    def cells(self, columns: Sequence[exp.Expr], dialect: str) -> exp.Expr | None:
        """Return an expression that counts the columns of a row whose value, as text, the predicted answer has.

        None if the predicted answer has no such texts, or without columns.
        """
        cells = chain.from_iterable(self.predicted.rows[:MAX_CELLS])
        texts = dict.fromkeys(str(cell) for cell in cells if type_name(cell) in ("number", "text", "date"))
        literals = [exp.Literal.string(text) for text in [*texts][: MAX_CELLS // max(len(columns), 1)]]
        if not literals or not columns:
            return None
        listed = exp.Var(this=exp.Tuple(expressions=literals).sql(dialect)[1:-1])  # as text, which is copied fast
        counted: list[exp.Expr] = []
        for column in columns:
            is_in = exp.In(this=exp.cast(column, exp.DType.TEXT), expressions=[listed.copy()])
            counted.append(exp.Case(default=exp.Literal.number(0)).when(is_in, exp.Literal.number(1), copy=False))
        return reduce(lambda one, other: exp.Add(this=one, expression=other), counted)


NO_ANSWER = _Answer(Table(columns=(), rows=()), Table(columns=(), rows=()), {})


class OpenSqlQuery:
    """A SQL query that leaves its answer open; see `OpenQuery`."""

    def __init__(self, reading: _Reading, dialect: str, schema: Schema) -> None:
        self.choices = reading.choices
        self.fixed_columns = reading.fixed_columns
        self._tree, self._dialect, self._tables = reading.tree, dialect, schema.tables

    def guided(self, gold: Table, predicted: Table, alignments: Sequence[Mapping[int, int]]) -> Iterator[GuidedQuery]:
        """Yield up to three queries that settle the choices in favour of a predicted answer.

        All three prefer rows of the predicted answer, or avoid them within NOT, <> and EXCEPT, and settle the rest: 1.
        by how many cells of a row the predicted answer has, 2. by all columns, ascending, 3. by all columns,
        descending.

        A query of candidate rows may come first: its answer, passed to its `read`, improves the keys of the others.
        `alignments` map gold's columns to predicted columns; the queries use them in turn.
        """
        width = self._traces.width
        is_known = width == len(gold.columns)
        alignments, collections = (alignments, self._collections) if is_known else ([{}], {})
        texts = set()
        chosen: list[exp.Expr | None] = []
        if is_known and len(alignments[0]) == width and self._candidates is not None:
            place, candidates = self._candidates
            columns = [alignments[0][output] for output in range(width)]
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

    # The choices, and what their keys may read

    @cached_property
    def _traces(self) -> Traces:
        tree = self._tree.copy()
        return Traces(tree, sortable_choices(tree, self._dialect, self._tables), self._tables, self._dialect)

    @cached_property
    def _collections(self) -> dict[int, Collection]:
        return dict(self._traces.collections())

    @cached_property
    def _choices(self) -> list[_Sorted]:
        return [*map(self._sorted, self._traces.choices)]

    @cached_property
    def _first_places(self) -> dict[object, int]:
        """The first place of which a choice takes a row, for each order of rows."""
        first: dict[object, int] = {}
        for it in self._choices:
            first[it.order] = min(it.first, first.get(it.order, it.first))
        return first

    def _sorted(self, choice: Choice) -> _Sorted:
        traces, query = self._traces, choice.query
        assert isinstance(query, exp.Select)
        reads_groups = is_grouped(query) and choice.kind in ("limit", "window", "distinct on", "sorted input")
        hidden = (exp.Window, exp.Query) if reads_groups else (exp.Window, exp.Query, exp.AggFunc)
        values = [self._valued_item(choice, use) for use in traces.uses(query)] or [None]
        uses = [[pair for pair in use if pair[0].find(*hidden) is None] for use in traces.uses(query)] or [[]]
        others = [*group_keys(query), *(item.unalias() for item in query.expressions)]
        if not reads_groups:
            columns = [*columns_of(traces.columns.names(query))]
            uses = traces.with_origins(query, columns, uses)
            others = columns or [item for use in uses for item, _ in use]
        outer = [*traces.outer_pairs(query)]
        return _Sorted(
            choice,
            [use + outer for use in uses],
            values,
            list({item.sql(): item for item in others if item.find(*hidden) is None}.values()),
            _order_of(choice),
            *self._places(choice),
        )

    def _valued_item(self, choice: Choice, use: Sequence[Pair]) -> Pair | None:
        """Return the item with a choice's call in which a row's value replaces the call, and its output.

        None without one.
        """
        call = choice.node
        while isinstance(call.parent, (*WRAPPERS, exp.Paren)):
            call = call.parent
        if isinstance(choice.node, COLLECTIONS) and isinstance(call.parent, exp.Bracket):  # one of its elements
            call = call.parent
        elif isinstance(call_within(call), (*COLLECTIONS, exp.RowNumber)):
            return None
        for item, output in use if choice.kind in ("window", "aggregate") else ():
            if any(node is call for node in item.walk()):
                value = with_parts(item, [call], [self._argument_of_row(choice)])
                return (value, output) if value.find(exp.Window, exp.AggFunc, exp.Query) is None else None
        return None

    def _argument_of_row(self, choice: Choice) -> exp.Expr:
        """Return the argument whose values a call takes; an item of FROM as a struct of its columns."""
        argument = argument_of(choice.node)
        assert isinstance(choice.query, exp.Select)
        names = self._traces.columns.names(choice.query)
        source = names.sources.get(argument.name.lower()) if isinstance(argument, exp.Column) else None
        if source is None or not source.columns or names.first_owner(argument.name.lower()) is not None:
            return argument
        columns = (exp.column(name, table=argument.this.copy()) for name in source.columns)
        return exp.Struct(expressions=[exp.PropertyEQ(this=it.this.copy(), expression=it) for it in columns])

    def _places(self, choice: Choice) -> tuple[int, int]:
        """Return the first and the last place in its order of which a choice takes a row; 1 for values of windows.

        The last place is 0 if it is not known.
        """
        places = [1]
        call = call_within(choice.node)
        if choice.kind == "limit":
            before, taken = (
                _literal_number(part.expression) if part else 0
                for part in map(choice.query.args.get, ("offset", "limit"))
            )
            places = [before + 1, before + taken]
        elif isinstance(call, exp.NthValue) and _nesting_keys(choice) is not None:
            places = [_literal_number(call.args["offset"])]
        elif isinstance(call, exp.RowNumber):
            name = next((item.alias for item in choice.query.expressions if item.unalias() is choice.node), "").lower()
            places = []
            for node in self._traces.tree.find_all(exp.EQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Between, exp.In):
                is_named = name and isinstance(node.this, exp.Column) and node.this.name.lower() == name
                if is_named or node.this is choice.node:
                    off = isinstance(node, exp.GT) - isinstance(node, exp.LT)
                    bounds = [
                        _literal_number(bound) + off for bound in node.iter_expressions() if bound is not node.this
                    ]
                    places += [1, *bounds] if isinstance(node, exp.LT | exp.LTE) else bounds
        return max(min(places, default=1), 1), max(places, default=0)

    @cached_property
    def _candidates(self) -> tuple[int, Candidates] | None:
        """The index of a choice, and the rows among which it takes some; None if no choice fits.

        The answer has to aggregate or join these rows.
        """
        traces, top = self._traces, top_query(self._traces.tree)
        if not isinstance(top, exp.Select):
            return None
        items = [item for _, item in traces.columns.items(top) or ()]
        is_read = items and all(map(is_readable, items))
        for number, it in enumerate(self._choices if is_read else ()):
            is_window = isinstance(call_within(it.choice.node), exp.RowNumber)
            is_taking = it.choice.kind in ("limit", "distinct on") or (is_window and it.first == 1)
            steps = traces.steps(top, it.choice.query) if is_taking and it.last else []
            reads_others = any(step.args.get("joins") or isinstance(read, exp.Expr) for step, read in steps)
            if (is_grouped(top) or reads_others) and steps and not any(is_grouped(step) for step, _ in steps[:-1]):
                places = it.first, it.last
                return number, Candidates(it.choice, items, it.others, steps, places, traces.separators)
        return None

    # Keys

    def _keys_of_choices(self, way: Way, answer: _Answer, without: str = "") -> list[_Keys]:
        """Return the sort keys of each choice; choices of the kind `without` get none."""
        return [_Keys([], []) if it.choice.kind == without else self._keys(it, way, answer) for it in self._choices]

    def _keys(self, it: _Sorted, way: Way, answer: _Answer) -> _Keys:
        """Return the sort keys of a choice, the most important key first.

        Preferred keys are places in predicted collections, predicted numbers, and predicted values. Other keys settle
        the rest as `way` says.
        """
        choice, traces = it.choice, self._traces
        of_groups = [pair for pair in it.uses[0] if pair[1] not in traces.picked]
        places = [answer.place(of_groups, *pair, traces.separators[pair[1]]) for pair in traces.elements(choice)]
        own_keys = _nesting_keys(choice)
        numbers = [answer.number(it.uses[0], output, own_keys) for output in traces.numbers[id(choice.node)]]
        if isinstance(call_within(choice.node), exp.RowNumber):
            for use, raw in zip(it.uses, traces.uses(choice.query), strict=False):
                numbers += [answer.number(use, output, own_keys) for item, output in raw if item is choice.node]
        keys = [ordered(key) for key in (*places, *numbers) if key is not None]
        preferences = [it.uses]
        if any(value is not None for value in it.values):
            same = {key.sql().lower() for key in _group_of(choice)}
            valued = [(value, use) for value, use in zip(it.values, it.uses, strict=False) if value is not None]
            preferences = [
                [[value, *use] for value, use in valued],
                [[value, *(pair for pair in use if pair[0].sql().lower() in same)] for value, use in valued],
            ]
        avoids = choice.query.find_ancestor(exp.Not, exp.NEQ, exp.Except) is not None
        is_last_first = isinstance(call_within(choice.node), exp.Last | exp.LastValue) != avoids
        for preferred in preferences:
            key = answer.preference(preferred, by_place=way != "descending")
            keys += [ordered(key, is_descending=is_last_first)] if key is not None else []
        condition = traces.condition_around(choice.query) if keys else None
        keys += [] if condition is None else [ordered(condition, is_descending=way == "descending")]
        if way != "as predicted":
            return _Keys(keys, [ordered(column.copy(), is_descending=way == "descending") for column in it.others])
        cells = answer.cells(it.others, self._dialect)
        return _Keys(keys, [] if cells is None else [ordered(cells, is_descending=not is_last_first)])

    def _text(self, keys_of_choices: Sequence[_Keys], collections: Mapping[int, Collection]) -> str:
        """Return the text of the query with keys for each choice, and with the elements of `collections`.

        Windows of a SELECT that sort alike get the same keys.
        """
        tree = self._traces.tree.copy()
        twins = dict(zip(map(id, self._traces.tree.walk()), tree.walk(), strict=True))
        shared: defaultdict[object, list[exp.Ordered]] = defaultdict(list)
        for of_choices in zip(*keys_of_choices, strict=True):
            for it, keys in zip(self._choices, of_choices, strict=True):
                shared[it.order] += keys
        nested = {it.order for it in self._choices if isinstance(call_within(it.choice.node), exp.NthValue)}
        for it in self._choices:
            node, own = twins[id(it.choice.node)], [key.copy() for key in shared[it.order]]
            collection = collections.get(id(it.choice.node))
            if collection is not None and collection.separator is not None and not collection.around:
                node.replace(elements_of(node.this.copy(), self._dialect))
            elif it.choice.kind in ("aggregate", "collection"):
                sort_arguments(node, own)
            elif own and self._first_places[it.order] > 1:
                sort_rotated(node, own, self._first_places[it.order], is_nested=it.order in nested)
            else:
                append_keys(node, own)
        if any(it.choice.kind == "window" for it in self._choices):
            for select in list(tree.find_all(exp.Select)):
                nest_windows(select)
        return tree.sql(dialect=self._dialect, copy=False)


_open_query = lru_cache(maxsize=MAX_QUERIES)(OpenSqlQuery)


def _nesting_keys(choice: Choice) -> list[exp.Expr] | None:
    """Return the sort keys of a choice if its extra keys may contain windows; otherwise None."""
    may_nest = choice.kind != "window" or (isinstance(choice.query, exp.Select) and can_nest(choice.query))
    return own_keys_of(choice.node) if may_nest else None


def _group_of(choice: Choice) -> Sequence[exp.Expr]:
    """Return the expressions that are equal in all rows among which a call takes its value."""
    if isinstance(choice.node, exp.Window):
        return choice.node.args.get("partition_by") or ()
    return group_keys(choice.query)


def _order_of(choice: Choice) -> object:
    """Return a value that is equal for choices among the same rows in the same order."""
    if choice.kind == "window":
        return id(choice.query), sorting_of(choice.node, choice.query)
    return (id(choice.query), "collections") if isinstance(choice.node, COLLECTIONS) else id(choice.node)


def _literal_number(node: exp.Expr) -> int:
    """Return the number that a literal is; 0 for other expressions."""
    return int(node.name) if isinstance(node, exp.Literal) and node.name.isdigit() else 0
