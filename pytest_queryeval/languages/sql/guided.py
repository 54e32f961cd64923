"""A SQL query with the choices that it leaves open made towards a predicted answer.

Keys are put behind those by which the query sorts, so that they decide only what it leaves open, and the database
returns an answer that the query may have.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal
from functools import lru_cache, reduce
from itertools import chain
from math import isfinite
from typing import Literal, NamedTuple, TypeAlias, get_args

from sqlglot import exp

from pytest_queryeval.comparison.ties import Collection, GuidedQuery
from pytest_queryeval.core.db_schema import Column, Schema
from pytest_queryeval.core.table import DEFAULT_ABS, DEFAULT_REL, Cell, Row, Table
from pytest_queryeval.languages.sql import MAX_QUERIES, parse_query
from pytest_queryeval.languages.sql.choices import (
    Choice,
    bare_columns,
    call_within,
    choices_in,
    extremes,
    group_keys,
    is_alias,
    is_grouped,
    sorting_of,
    top_query,
    window_clauses,
)
from pytest_queryeval.languages.sql.columns import Columns, Names

Pair: TypeAlias = tuple[exp.Expr, int]  # an expression of a SELECT, and the output column that has its values
Way: TypeAlias = Literal["as predicted", "ascending", "descending"]
WAYS: tuple[Way, ...] = get_args(Way)
NO_ANSWER = Table(columns=(), rows=())
MAX_CELLS = 1_000  # of the predicted answer, as literals in a query
MAX_CHOICES = 20
_PICK = "queryeval_pick"
_ROWS = "queryeval_rows"


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
    names = tuple(dict.fromkeys(choice.name for choice in choices))
    return _Reading(tree, names, _fixed_columns(tree, choices))


def open_query(query: str, dialect: str, schema: Callable[[], Schema]) -> OpenSqlQuery | None:
    """Return a query that leaves its answer open; None for another one. `schema` returns the tables."""
    reading = _read(query, dialect)
    return None if reading is None else OpenSqlQuery(reading, dialect, schema())


@dataclass(frozen=True, slots=True)
class OpenSqlQuery:
    """A query that leaves its answer open, as `OpenQuery` describes it."""

    _reading: _Reading
    _dialect: str
    _schema: Schema

    @property
    def choices(self) -> tuple[str, ...]:
        """The choices, as readers are told of them."""
        return self._reading.choices

    @property
    def fixed_columns(self) -> tuple[int, ...] | None:
        """Output columns that no choice changes; None where a choice may change how many rows there are."""
        return self._reading.fixed_columns

    def guided(self, gold: Table, predicted: Table, alignments: Sequence[Mapping[int, int]]) -> Iterator[GuidedQuery]:
        """Yield up to three queries that settle the choices in favour of a predicted answer.

        All three prefer rows of the predicted answer, and settle the rest:

        1. by how many cells of a row the predicted answer has,
        2. by all columns, ascending,
        3. by all columns, descending. Within NOT or EXCEPT, this query avoids the rows of the predicted answer.
        """
        texts = set()
        for number, way in enumerate(WAYS):
            tree = self._reading.tree.copy()
            choices = choices_in(tree, self._dialect)
            alignment = alignments[number % len(alignments)]
            guide = _Guide(tree, self._dialect, self._schema, gold, predicted, alignment)
            collections = guide.read_collections(choices)
            _apply([(choice, guide.keys(choice, way)) for choice in choices if choice.kind != "collection"])
            text = tree.sql(dialect=self._dialect)
            if text not in texts:
                texts.add(text)
                yield GuidedQuery(text=text, alignment=alignment, collections=collections)

    def decided(self, first: str = "") -> list[str]:
        """Return the query with its choices decided by all columns, ascending and descending.

        With `first`, the text of a column, choices that can read it are decided by it before, ascending both times.
        """
        texts = []
        for way in WAYS[1:]:
            tree, keyed_choices = self._decided(way)
            for _, keys in keyed_choices:
                chosen = [_ordered(key.this.copy()) for key in keys if key.this.sql(dialect=self._dialect) == first]
                keys[:0] = chosen[:1]
            _apply(keyed_choices)
            texts.append(tree.sql(dialect=self._dialect))
        return texts

    def deciding_columns(self) -> list[str]:
        """Return the texts of the columns by which the choices can be decided."""
        _, keyed_choices = self._decided("ascending")
        return list(dict.fromkeys(key.this.sql(dialect=self._dialect) for _, keys in keyed_choices for key in keys))

    def _decided(self, way: Way) -> tuple[exp.Query, list[tuple[Choice, list[exp.Ordered]]]]:
        """Return a copy of the tree, and its choices with keys that no answer guides."""
        tree = self._reading.tree.copy()
        guide = _Guide(tree, self._dialect, self._schema, NO_ANSWER, NO_ANSWER, {})
        return tree, [(choice, guide.keys(choice, way)) for choice in choices_in(tree, self._dialect)]


def _fixed_columns(tree: exp.Query, choices: Sequence[Choice]) -> tuple[int, ...] | None:
    """Return output columns that no choice changes; None where choices may change how many rows there are."""
    select = top_query(tree)
    if not isinstance(select, exp.Select) or select.is_star or select.args.get("distinct"):
        return None
    if any(choice.query is not select or choice.kind in ("limit", "distinct on") for choice in choices):
        return None
    bare = [id(column) for column in bare_columns(select) if any(choice.node is select for choice in choices)]
    chosen = {*bare, *(id(choice.node) for choice in choices if choice.node is not select)}
    items = [{id(node) for node in item.walk()} for item in select.expressions]
    if not chosen <= set().union(*items):
        return None
    is_cut = select.args.get("limit") is not None or select.args.get("offset") is not None
    return () if is_cut else tuple(column for column, nodes in enumerate(items) if not nodes & chosen)


class _Guide:
    """The sort keys that make the choices of a query; its tree is still without them."""

    def __init__(
        self, tree: exp.Query, dialect: str, schema: Schema, gold: Table, predicted: Table, alignment: Mapping[int, int]
    ) -> None:
        self._dialect = dialect
        self._columns = Columns(schema.tables, dialect)
        self._gold = gold
        self._predicted = predicted
        self._alignment = alignment
        self._pairs: defaultdict[int, list[Pair]] = defaultdict(list)
        self._origins: dict[Column, int] = {}
        for select in _arms(tree):
            items = self._items(select)
            if items is not None and len(items) == len(gold.columns):
                for output, item in enumerate(items):
                    self._trace(select, item, output)

    def _items(self, select: exp.Select) -> list[exp.Expr] | None:
        """Return the expressions that a SELECT returns, with the columns for `*`; None if those are not known."""
        items: list[exp.Expr] = []
        for item in select.expressions:
            if not item.is_star:
                items.append(item.unalias())
                continue
            table = item.table.lower() if isinstance(item, exp.Column) else ""
            star = item.this if isinstance(item, exp.Column) else item
            sources = self._columns.names(select).sources
            read = [(alias, source.columns) for alias, source in sources.items() if table in ("", alias)]
            if any(star.args.values()):  # some columns are left out, or replaced
                return None
            for alias, columns in read:
                if columns is None:
                    return None
                items += [exp.column(name, table=alias) for name in columns]
        return items

    def _trace(self, select: exp.Select, expression: exp.Expr, output: int) -> None:
        """Note the expressions, of this SELECT and of those in its FROM, that have the values of an output column."""
        self._pairs[id(select)].append((expression, output))
        if not isinstance(expression, exp.Column):
            return
        names, name = self._columns.names(select), expression.name.lower()
        match = names.find(expression.table.lower(), name)
        if match is None or match[0] is not names:
            return
        source = names.sources[match[1]]
        if source.select is None:
            self._origins[source.node.name.lower(), name] = output
        elif (inner := (source.columns or {}).get(name)) is not None:
            self._trace(source.select, inner, output)

    def read_collections(self, choices: Sequence[Choice]) -> tuple[Collection, ...]:
        """Let collections that are output columns as they stand return their elements; return which these are."""
        collections = []
        for number, choice in enumerate(choices):
            node = choice.node
            outputs = [output for item, output in self._pairs[id(choice.query)] if item is node]
            if choice.kind != "collection" or len(outputs) != 1:
                continue
            separator = node.args.get("separator")
            text = None if isinstance(node, exp.ArrayAgg) else "," if separator is None else separator.name
            group = -1 - number if isinstance(node.this, exp.Distinct) else id(choice.query)
            collections.append(Collection(outputs[0], text, group))
            if text is not None:
                node.replace(_elements(node.this.copy(), self._dialect))
        return tuple(collections)

    def keys(self, choice: Choice, way: Way) -> list[exp.Ordered]:
        """Return the sort keys of a choice, the most important one first."""
        pairs, others = self._readable(choice)
        keys = []
        output = next((output for item, output in self._pairs[id(choice.query)] if _is_call(item, choice.node)), None)
        if output is not None and isinstance(call_within(choice.node), exp.RowNumber):
            if (number := self._number(pairs, output)) is not None:
                keys.append(_ordered(number))
        elif output is not None and choice.kind in ("window", "aggregate"):  # the value is that of a row
            pairs = [(_argument(choice.node), output), *_of_group(choice, pairs)]
        if (preference := self._preference(pairs, by_place=way == "ascending")) is not None:
            if choice.kind == "limit" and not _is_wrapped(choice) and (offset := _offset(choice.query)):
                preference = _reversed_before(offset, choice.query, preference)
            is_left_out = choice.query.find_ancestor(exp.Not, exp.Except) is not None
            takes_last = isinstance(call_within(choice.node), exp.Last | exp.LastValue)
            keys.append(_ordered(preference, is_descending=takes_last or (is_left_out and way == "descending")))
        if way != "as predicted":
            return [*keys, *(_ordered(column.copy(), is_descending=way == "descending") for column in others)]
        count = self._count(others)
        return keys if count is None else [*keys, _ordered(count, is_descending=True)]

    def _readable(self, choice: Choice) -> tuple[list[Pair], Sequence[exp.Expr]]:
        """Return what the keys of a choice may read: expressions with the values of output columns, and all columns."""
        query = choice.query
        if _is_wrapped(choice):
            outputs = {id(item): output for item, output in self._pairs[id(_first_arm(query))]}
            names = {id(item.unalias()): item.alias_or_name for item in _first_arm(query).expressions}
            columns: list[exp.Expr] = [exp.column(name, quoted=True) for name in names.values()]
            of_items = zip(names, columns, strict=True)
            return [(column, outputs[item]) for item, column in of_items if item in outputs], columns
        reads_groups = is_grouped(query) and choice.kind in ("limit", "window", "distinct on")
        hidden = (exp.Window,) if reads_groups else (exp.Window, exp.AggFunc)
        pairs = [(item, output) for item, output in self._pairs[id(query)] if item.find(*hidden) is None]
        if reads_groups:
            return pairs, [item for item, _ in pairs]
        assert isinstance(query, exp.Select)
        names_in_query = self._columns.names(query)
        columns = []
        known = {output for _, output in pairs}
        for column in _columns_of(names_in_query):
            columns.append(column)
            origin = self._columns.origin(names_in_query, column.table.lower(), column.name.lower())
            if origin is not None and (output := self._origins.get(origin)) is not None and output not in known:
                pairs.append((column, output))
        return pairs, columns or [item for item, _ in pairs]

    def _rows(self, outputs: Sequence[int]) -> list[Row]:
        """Return the different predicted values of output columns, as many as may stand in a query."""
        places = [self._alignment[output] for output in outputs]
        limit = MAX_CELLS // len(places)
        rows = dict.fromkeys(tuple([row[place] for place in places]) for row in self._predicted.rows[:limit])
        types = [{_type_name(row[output]) for row in self._gold.rows[:MAX_CELLS]} for output in outputs]
        return [row for row in rows if all(map(_is_comparable, row, types))]

    def _known(self, pairs: Sequence[Pair]) -> list[Pair]:
        """Return the pairs whose column the predicted answer has, the first of each output."""
        by_output = {output: expression for expression, output in reversed(pairs) if output in self._alignment}
        return [(expression, output) for output, expression in by_output.items()]

    def _preference(self, pairs: Sequence[Pair], *, by_place: bool) -> exp.Expr | None:
        """Return a key that is less for rows whose values a predicted row has, `by_place` less for earlier ones."""
        known = self._known(pairs)
        rows = self._rows([output for _, output in known]) if known else []
        if not rows:
            return None
        return _case(known, {row: place if by_place else 0 for place, row in enumerate(rows)}, len(rows))

    def _number(self, pairs: Sequence[Pair], output: int) -> exp.Expr | None:
        """Return a key that is the number which a predicted row with the values of a row has in an output column."""
        known = [pair for pair in self._known(pairs) if pair[1] != output]
        if not known or output not in self._alignment:
            return None
        rows = self._rows([*(place for _, place in known), output])
        numbers = {row[:-1]: row[-1] for row in reversed(rows) if isinstance(row[-1], int)}
        return _case(known, numbers, max(numbers.values()) + 1) if numbers else None

    def _count(self, columns: Sequence[exp.Expr]) -> exp.Expr | None:
        """Return how many of a row's cells the predicted answer has anywhere, as texts."""
        cells = chain.from_iterable(self._predicted.rows[:MAX_CELLS])
        texts = dict.fromkeys(str(cell) for cell in cells if _type_name(cell) in ("number", "text", "date"))
        literals = [_text(text).sql(dialect=self._dialect) for text in [*texts][: MAX_CELLS // max(len(columns), 1)]]
        if not literals or not columns:
            return None
        written = exp.Var(this=", ".join(literals))  # as one node, of which each column has a copy
        counts: list[exp.Expr] = [
            exp.Case(default=exp.Literal.number(0)).when(
                exp.In(this=exp.cast(column.copy(), "text"), expressions=[written.copy()]), exp.Literal.number(1)
            )
            for column in columns
        ]
        return reduce(lambda total, count: exp.Add(this=total, expression=count), counts)


# What a query returns and reads


def _arms(tree: exp.Expr) -> Iterator[exp.Select]:
    """Yield the SELECTs whose rows a query returns."""
    tree = top_query(tree)
    if isinstance(tree, exp.Select):
        yield tree
    elif isinstance(tree, exp.SetOperation):
        yield from _arms(tree.this)
        yield from _arms(tree.expression)


def _first_arm(query: exp.Query) -> exp.Select:
    return next(_arms(query))


def _is_wrapped(choice: Choice) -> bool:
    """Return whether the rows of a LIMIT have no other columns to sort by than those they return."""
    is_set = isinstance(choice.query, exp.SetOperation) or choice.query.args.get("distinct") is not None
    return choice.kind == "limit" and is_set


def _is_call(item: exp.Expr, node: exp.Expr) -> bool:
    """Return whether a selected expression is the call of a choice alone."""
    return item is node or (isinstance(node, exp.Func | exp.Window) and call_within(item) is call_within(node))


def _columns_of(names: Names) -> Iterator[exp.Column]:
    """Yield the known columns of the items of FROM."""
    for alias, source in names.sources.items():
        written = source.node.args.get("alias")
        table = written.this if written is not None else source.node.this
        if isinstance(table, exp.Identifier) and table.name.lower() == alias:
            yield from (
                exp.Column(this=exp.to_identifier(name), table=table.copy()) for name in source.columns or () if name
            )


def _argument(node: exp.Expr) -> exp.Expr:
    """Return the argument that has the value of a call."""
    call = call_within(node)
    argument = call.expressions[0] if isinstance(call, exp.Anonymous) else call.this
    assert isinstance(argument, exp.Expr)
    return argument.this if isinstance(argument, exp.Order) else argument


def _of_group(choice: Choice, pairs: Sequence[Pair]) -> list[Pair]:
    """Return the pairs that are the same for all rows among which a call takes its value."""
    if isinstance(choice.node, exp.Window):
        keys = window_clauses(choice.node, choice.query).args.get("partition_by") or []
    else:
        keys = group_keys(choice.query)
    texts = {key.sql().lower() for key in keys}
    return [pair for pair in pairs if pair[0].sql().lower() in texts]


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


def _text(value: str) -> exp.Literal:
    return exp.Literal.string(value)


def _literal(value: Cell) -> exp.Expr | None:
    """Return a value as a part of a query; None for one that has no literal in every dialect."""
    match value:
        case None:
            return exp.null()
        case bool():
            return exp.true() if value else exp.false()
        case int() | Decimal():
            return exp.Literal.number(value)
        case float():
            return exp.Literal.number(repr(value)) if isfinite(value) else None
        case datetime():
            return _text(value.isoformat(sep=" "))
        case date() | time():
            return _text(value.isoformat())
        case str():
            return None if "\0" in value else _text(value)
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


def _case(pairs: Sequence[Pair], numbers: Mapping[Row, int], otherwise: int) -> exp.Case:
    """Return a CASE: the number of the first row whose values the expressions of `pairs` have, or `otherwise`."""
    case = exp.Case(default=exp.Literal.number(otherwise))
    for row, number in numbers.items():
        conditions = (_equals(expression, value) for (expression, _), value in zip(pairs, row, strict=True))
        case = case.when(exp.and_(*conditions), exp.Literal.number(number), copy=False)
    return case


# Keys in the tree


def _ordered(key: exp.Expr, *, is_descending: bool = False) -> exp.Ordered:
    """Return a sort key, whose expression is then part of no other tree."""
    return exp.Ordered(this=key, desc=is_descending)


def _offset(query: exp.Query) -> int:
    """Return how many rows a query leaves out before those of its LIMIT, as far as it says so by a number."""
    offset = query.args.get("offset")
    number = offset.expression if offset is not None else None
    return int(number.name) if isinstance(number, exp.Literal) and number.name.isdigit() else 0


def _reversed_before(offset: int, query: exp.Query, key: exp.Expr) -> exp.Expr:
    """Return a key that is reversed for rows that tie with one before the offset: the first ones are left out."""
    order = query.args.get("order")
    rank = exp.Window(this=exp.Anonymous(this="RANK"), order=None if order is None else order.copy(), over="OVER")
    is_before = exp.LTE(this=rank, expression=exp.Literal.number(offset))
    return exp.Case(default=key.copy()).when(is_before, exp.Neg(this=exp.paren(key.copy())))


def _apply(keyed_choices: Sequence[tuple[Choice, list[exp.Ordered]]]) -> None:
    """Write keys into the tree of their choices; windows of one SELECT that sort alike choose alike."""
    shared: defaultdict[object, list[exp.Ordered]] = defaultdict(list)
    windows = []
    for choice, keys in keyed_choices:
        match choice.kind:
            case "window":
                sorting = id(choice.query), sorting_of(choice.node, choice.query)
                shared[sorting] += keys
                windows.append((choice, sorting))
            case "aggregate" | "collection":
                _sort_arguments(choice.node, keys)
            case "distinct on":
                _append(choice.query, [*_keys_of_distinct(choice.query), *keys])
            case "limit" if not _is_wrapped(choice):
                _append(choice.query, keys)
    for choice, sorting in windows:
        _sort_window(choice, shared[sorting])
    for choice, keys in keyed_choices:  # these replace nodes
        if choice.kind == "bare columns":
            _pick_rows(choice.query, keys)
        elif _is_wrapped(choice):
            _wrap(choice.query, keys)


def _keys_of_distinct(query: exp.Query) -> list[exp.Ordered]:
    """Return the keys with which ORDER BY has to begin next to DISTINCT ON; none if there is an ORDER BY."""
    on = query.args["distinct"].args["on"]
    return [] if query.args.get("order") else [_ordered(key.copy()) for key in on.expressions or [on]]


def _append(node: exp.Expr, keys: Sequence[exp.Ordered]) -> None:
    """Add sort keys at the end of the ORDER BY of a query or a window."""
    order = node.args.get("order") or exp.Order(expressions=[])
    order.set("expressions", [*order.expressions, *(key.copy() for key in keys)])
    if order.expressions:
        node.set("order", order)


def _sort_window(choice: Choice, keys: Sequence[exp.Ordered]) -> None:
    """Put sort keys behind those of a window, which has its clauses from then on, if it only named another one."""
    clauses = window_clauses(choice.node, choice.query)
    if clauses is not choice.node:
        copied = clauses.copy()
        choice.node.set("alias", None)
        for name in ("partition_by", "order", "spec"):
            choice.node.set(name, choice.node.args.get(name) or copied.args.get(name))
    _append(choice.node, keys)


def _sort_arguments(node: exp.Expr, keys: Sequence[exp.Ordered]) -> None:
    """Put sort keys behind the arguments of an aggregate."""
    arguments = node.expressions if isinstance(node, exp.Anonymous) else [node.args.get("expression") or node.this]
    last = arguments[-1]
    if isinstance(last, exp.Distinct):  # sorts by itself alone
        return
    if isinstance(last, exp.Order):
        last.set("expressions", [*last.expressions, *(key.copy() for key in keys)])
    elif keys:
        last.replace(exp.Order(this=last.copy(), expressions=[key.copy() for key in keys]))


def _elements(collected: exp.Expr, dialect: str) -> exp.Expr:
    """Return an aggregate that has the elements of a collection as a list of texts, or as JSON."""
    if dialect == "sqlite":
        return exp.Anonymous(this="JSON_GROUP_ARRAY", expressions=[collected])
    return exp.cast(exp.ArrayAgg(this=collected), exp.DataType.build("TEXT[]", dialect="postgres"))


def _wrap(query: exp.Query, keys: Sequence[exp.Ordered]) -> None:
    """Let a query around one without duplicates sort its rows by their columns, where it can, and take some of them."""
    items = _first_arm(query).expressions
    names = [item.alias_or_name for item in items]
    places = {item.unalias().sql().lower(): name for item, name in zip(items, names, strict=True)}
    places |= {name.lower(): name for name in names} | {str(place): name for place, name in enumerate(names, start=1)}
    order = query.args.get("order")
    own_keys = order.expressions if order is not None else []
    columns = [places[text] for key in own_keys if (text := key.this.sql().lower()) in places]
    has_all_keys = len(columns) == len(own_keys)
    if not has_all_keys or not all(names) or len({name.lower() for name in names}) < len(names):
        return
    sorted_keys = [
        exp.Ordered(**{**key.copy().args, "this": exp.column(name, quoted=True)})
        for key, name in zip(own_keys, columns, strict=True)
    ]
    inner = query.copy()
    wrapped = exp.select("*")
    for clause in ("order", "limit", "offset"):
        wrapped.set(clause, query.args.get(clause))
        inner.set(clause, None)
    wrapped = wrapped.from_(inner.subquery(_ROWS, copy=False))
    wrapped.set("order", exp.Order(expressions=[*sorted_keys, *(key.copy() for key in keys)]))
    query.replace(wrapped)


def _pick_rows(select: exp.Query, keys: Sequence[exp.Ordered]) -> None:
    """Take the bare columns of a grouped SELECT from one row of each group, the first by the keys.

    FROM and WHERE become a nested query, which numbers the rows of each group. With a single MIN or MAX, rows that have
    its value come first, as in SQLite.
    """
    bare = {id(column) for column in bare_columns(select)}
    order = list(keys)
    for extreme in extremes(select):
        value = extreme.this
        is_null = exp.Is(this=value.copy(), expression=exp.null())
        order = [_ordered(is_null), _ordered(value.copy(), is_descending=isinstance(extreme, exp.Max)), *order]
    partition = [key.copy() for key in group_keys(select)]
    window = exp.Window(
        this=exp.RowNumber(), partition_by=partition, order=exp.Order(expressions=order) if order else None, over="OVER"
    )
    group = select.args.get("group")
    if group is not None:
        group.set("expressions", [key.copy() for key in partition])
    inner = exp.Select().select(exp.alias_(window, _PICK))
    numbers: dict[str, int] = {}
    parts = [*select.expressions, *filter(None, [group, select.args.get("having"), select.args.get("order")])]
    for column in [column for part in parts for column in part.find_all(exp.Column)]:
        if is_alias(column, select):
            continue
        text = column.sql()
        if text not in numbers:
            numbers[text] = len(numbers)
            inner = inner.select(exp.alias_(column.copy(), f"queryeval_{numbers[text]}"), copy=False)
        renamed: exp.Expr = exp.column(f"queryeval_{numbers[text]}")
        if id(column) in bare:
            renamed = exp.Max(this=exp.Case().when(exp.column(_PICK).eq(1), renamed))
        column.replace(exp.alias_(renamed, column.name, quoted=True) if column.parent is select else renamed)
    for clause in ("from_", "joins", "where"):
        inner.set(clause, select.args.get(clause))
        select.set(clause, None)
    select.set("from_", exp.From(this=inner.subquery(_ROWS, copy=False)))
