"""Where the values of a query's answer come from: the expressions in it that have the values of an output column."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection as AbstractCollection
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import TypeAlias

from sqlglot import exp

from pytest_queryeval.comparison.ties import Collection
from pytest_queryeval.core.db_schema import Column
from pytest_queryeval.languages.sql.candidates import Step
from pytest_queryeval.languages.sql.choices import (
    COLLECTIONS,
    Choice,
    argument_of,
    call_within,
    is_alias,
    is_grouped,
    is_sorted_by,
    own_nodes,
    picks,
    spelling,
    top_query,
)
from pytest_queryeval.languages.sql.columns import Columns, FromItem, Names, find_cte
from pytest_queryeval.languages.sql.sort_keys import Pair
from pytest_queryeval.languages.sql.sortable import ROWS, arms_of, value_of_row

Use: TypeAlias = tuple[tuple[str, ...], int]  # the aliases by which a SELECT is read, and the output of an aggregate
NO_AGGREGATE = -1
FUNCTIONS = ("string_agg", "group_concat", "array_agg", "list", "json_agg", "json_group_array")
_OF_ROWS = (exp.Min, exp.Max, exp.Sum, exp.Avg)  # aggregates whose value may be that of a row


class Traces:
    """The expressions of a query that have the values of output columns; its choices are in sortable form.

    `separators` are the texts between elements of outputs that are collections. `numbers` are, by SELECT, the outputs
    that number its rows. `picked` are the outputs that are of one row of a group, and not the same for all of its rows.
    """

    def __init__(
        self, tree: exp.Query, choices: Sequence[Choice], tables: Mapping[str, AbstractCollection[str]], dialect: str
    ) -> None:
        self.tree, self.choices, self.columns = tree, choices, Columns(tables, dialect)
        self.separators: dict[int, str] = {}
        self.numbers: defaultdict[int, list[int]] = defaultdict(list)  # by the id of the SELECT
        self.picked: set[int] = set()
        self.width = 0
        self._dialect = dialect
        self._pairs: defaultdict[int, defaultdict[Use, list[Pair]]] = defaultdict(
            lambda: defaultdict(list)
        )  # by the id of the SELECT
        self._origins: dict[Column, int] = {}
        self._total_origins: dict[Column, int] = {}
        for number, select in enumerate(arms_of(tree)):
            items = self.columns.items(select) or ()
            self.width = len(items)
            for output, (_, item) in enumerate(items):
                self._trace(select, item, output, ((str(number),), NO_AGGREGATE))

    def _trace(self, select: exp.Select, expression: exp.Expr, output: int, use: Use) -> None:
        """Record the expressions that have the values of an output column, in this SELECT and those that it reads."""
        self._pairs[id(select)][use].append((expression, output))
        call = call_within(expression)
        is_slice = isinstance(call, exp.Bracket) and isinstance(call.expressions[0], exp.Slice)
        collected = call_within(call.this) if is_slice else call
        if isinstance(collected, COLLECTIONS):
            self.separators[output] = "," if (separator := self._separator(collected)) is None else separator
            return self._trace(select, argument_of(collected), output, (use[0], output))
        if isinstance(call, exp.Subquery) and isinstance(call.this, exp.Select):
            return self._trace(call.this, call.this.expressions[0].unalias(), output, use)
        if isinstance(expression, exp.Window) and isinstance(call, exp.RowNumber):
            for source in self.columns.names(select).sources.values():
                self.numbers[id(source.select)].append(output)
        value = value_of_row(expression)
        if picks(call):
            self.picked.add(output)
            value = argument_of(call)
        elif isinstance(call, _OF_ROWS) and value.find(exp.AggFunc) and not value.find(exp.Window):
            value, use = _value_of_rows(call), (use[0], output)
        return self._trace_source(select, value, output, use)

    def _trace_source(self, select: exp.Select, value: exp.Expr, output: int, use: Use) -> None:
        """Record the expressions of an item of FROM that have a value, if it depends only on columns of this item."""
        if (read := self._source_of(select, value)) is None:
            return
        alias, columns = read
        source = self.columns.names(select).sources[alias]
        if source.select is None and isinstance(value, exp.Column) and use[1] not in self.separators:
            origins = self._origins if use[1] == NO_AGGREGATE else self._total_origins
            origins[source.node.name.lower(), value.name.lower()] = output
        elif source.select is not None and (inner := _value_behind(source, value, columns)) is not None:
            self._trace(source.select, inner, output, ((*use[0], alias), use[1]))
        if isinstance(value, exp.Column) and use[1] == NO_AGGREGATE:
            self._trace_equal(select, value, output, use)

    def _trace_equal(self, select: exp.Select, value: exp.Column, output: int, use: Use) -> None:
        """Record expressions of compared queries that have to equal a column's value."""
        found = self.columns.names(select).find(value.table.lower(), value.name.lower())
        for term, query in _compared_queries(select):
            column = term.this
            is_same = isinstance(column, exp.Column) and column.name.lower() == value.name.lower()
            if is_same and self.columns.find(column) == found:
                self._trace(query, query.expressions[0].unalias(), output, use)

    def _source_of(self, select: exp.Select, value: exp.Expr) -> tuple[str, list[exp.Column]] | None:
        """Return the FROM item, by alias, to which all columns of an expression belong, and these columns.

        None if to several.
        """
        names = self.columns.names(select)
        is_plain = value.find(exp.AggFunc, exp.Query, exp.Window) is None
        columns = [*value.find_all(exp.Column)] if is_plain else []
        found = {names.find(column.table.lower(), column.name.lower()) for column in columns if column.name}
        owner = found.pop() if len(found) == 1 and all(column.name for column in columns) else None
        return None if owner is None or owner[0] is not names else (owner[1], columns)

    # What choices may read

    def uses(self, select: exp.Query) -> list[list[Pair]]:
        """Return the expressions of a SELECT with the values of output columns, for each way in which it is read.

        Ways in which the answer aggregates the rows come before those that are the same for a group.
        """
        pairs = self._pairs[id(select)]
        of_rows = [use for use in pairs if use[1] not in (NO_AGGREGATE, *self.separators)]
        return [
            *(pairs[use] + pairs.get((use[0], NO_AGGREGATE), []) for use in of_rows),
            *(pairs[use] for use in pairs if use[1] == NO_AGGREGATE),
        ]

    def with_origins(
        self, select: exp.Select, columns: Sequence[exp.Column], uses: Sequence[list[Pair]]
    ) -> list[list[Pair]]:
        """Return `uses`, extended by columns of a SELECT that read the same table column as an output."""
        known = {output for use in uses for _, output in use}
        read = {item.name.lower() for use in uses for item, _ in use}
        of_rows: list[Pair] = []
        of_totals: list[Pair] = []
        for column in columns:
            origin = self.columns.origin_of(column, self.columns.names(select))
            if origin is None or column.name in read:
                continue
            if (output := self._total_origins.get(origin)) is not None:
                of_totals.append((column, output))
            if (output := self._origins.get(origin)) is not None and output not in known:
                of_rows.append((column, output))
        return [use + of_rows for use in (*uses, *([pair] for pair in of_totals))]

    def elements(self, choice: Choice) -> Iterator[Pair]:
        """Yield the expressions with the elements of output columns that a choice selects or sorts."""
        collected = argument_of(choice.node) if choice.kind in ("collection", "aggregate") else None
        for use, pairs in self._pairs[id(choice.query)].items():
            for element, output in pairs if use[1] in self.separators else ():
                if (collected is None or element is collected) and element.find(exp.Window, exp.Query) is None:
                    yield element, output

    def outer_pairs(self, query: exp.Select) -> Iterator[Pair]:
        """Yield expressions of the SELECT around a correlated query that have the values of output columns.

        They are the columns by which it is correlated, or depend on these alone: so the query chooses alike for rows
        that have the same values.
        """
        own = {id(node) for node in query.find_all(exp.Select)}
        for column in query.find_all(exp.Column):
            found = self.columns.find(column)
            if found is None or id(found[0].select) in own:
                continue
            names = found[0]
            sides = [column.parent.this, column.parent.expression] if isinstance(column.parent, exp.EQ) else []
            inner = [side for side in sides if side is not column and isinstance(side, exp.Column)]
            inner = [side for side in inner if self.columns.names_at(side) is self.columns.names(query)]
            for item, output in chain.from_iterable(self.uses(names.select)[:1]):
                name = item.name.lower() if isinstance(item, exp.Column) else ""
                if name == column.name.lower() and names.find(item.text("table").lower(), name) == found:
                    yield (inner[0] if inner else column).copy(), output

    def condition_around(self, query: exp.Query) -> exp.Expr | None:
        """Return the condition of HAVING, for a row of its group, if groups are made of the rows of a query.

        Otherwise None.
        """
        outer = query.find_ancestor(exp.Select)
        if outer is None or (having := outer.args.get("having")) is None:
            return None
        value = value_of_row(having.this)
        if (read := self._source_of(outer, value)) is None:
            return None
        source = self.columns.names(outer).sources[read[0]]
        return _value_behind(source, value, read[1]) if source.select is query else None

    def steps(self, select: exp.Select, query: exp.Query) -> list[Step]:
        """Return the SELECTs through which `select` reads a query, the innermost first.

        Empty if it does not read it.
        """
        sources = self.columns.names(select).sources.items()
        reads: list[tuple[str | exp.Expr, exp.Select]] = [
            (alias, it.select) for alias, it in sources if it.select and alias != ROWS and self._is_read_once(it)
        ]
        for term, inner in _compared_queries(select):
            is_required = term.find_ancestor(exp.Not, exp.Or, exp.Select) is select
            reads += [(term, inner)] if is_required and not inner.is_star else []
        for read, inner in reads:
            steps = self.steps(inner, query)
            if inner is query or steps:
                return [*steps, (select, read)]
        return []

    def _is_read_once(self, source: FromItem) -> bool:
        """Return whether an item of FROM is a SELECT that nothing else in the query reads."""
        query = find_cte(source.node) if isinstance(source.node, exp.Table) else source.node
        if query is None or query.this is not source.select or source.node.args.get("pivots"):
            return False
        return query is source.node or sum(find_cte(table) is query for table in self.tree.find_all(exp.Table)) == 1

    # Collections

    def collections(self) -> Iterator[tuple[int, Collection]]:
        """Yield the output columns that are collections and on which nothing else depends, by the `id` of their call.

        The collection may pass through queries unchanged. Other collections of its SELECT have to be different items:
        all have one order.
        """
        top = top_query(self.tree)
        paths = [[*self._value_path(top, place)] for place in range(self.width)] if isinstance(top, exp.Select) else []
        for number, choice in enumerate(self.choices):
            query = choice.query
            outputs = [place for place, path in enumerate(paths) if path and call_within(path[-1][1]) is choice.node]
            if choice.kind != "collection" or len(outputs) != 1 or self._is_read_elsewhere(paths[outputs[0]]):
                continue
            calls = [node for node in own_nodes(query) if isinstance(node, COLLECTIONS)]
            items = [call_within(item.unalias()) for item in query.expressions]
            is_alone = all(any(call is item for item in items) for call in calls)
            if is_alone and len({spelling(call) for call in calls}) == len(calls):
                separator = self._separator(choice.node)
                around = "[]" if separator and isinstance(choice.node, exp.JSONArrayAgg) else ""
                group = -1 - number if isinstance(choice.node.this, exp.Distinct) else id(query)
                yield (
                    id(choice.node),
                    Collection(outputs[0], separator, group, may_repeat=query is not top, around=around),
                )

    def _value_path(self, select: exp.Select, place: int) -> Iterator[tuple[str, exp.Expr, exp.Select]]:
        """Yield an item of a SELECT with its name, then items of the SELECTs that it reads with the same value.

        The path ends where the value would change.
        """
        name, item = (self.columns.items(select) or ())[place]
        if select.args.get("distinct") or is_sorted_by(select, place):
            return
        yield name, item, select
        call, read = call_within(item), self._source_of(select, item)
        if is_grouped(select):
            return
        if isinstance(call, exp.Subquery) and isinstance(call.this, exp.Select):
            yield from self._value_path(call.this, 0)
        elif isinstance(item, exp.Column) and read is not None:
            source = self.columns.names(select).sources[read[0]]
            if source.select is not None and item.name.lower() in (source.columns or ()) and self._is_read_once(source):
                yield from self._value_path(source.select, [*(source.columns or ())].index(item.name.lower()))

    def _is_read_elsewhere(self, path: Sequence[tuple[str, exp.Expr, exp.Select]]) -> bool:
        """Return whether a query may read a value by a name that items along a path give it, outside of these items."""
        own = {id(node) for _, item, _ in path for node in item.walk()}
        selects = {id(select) for *_, select in path}
        outer = [self.columns.names(select).sources for *_, select in path[:-1]]
        names = {name for name, *_ in path} | {alias for sources in outer for alias in sources}
        names |= {item.name.lower() for _, item, _ in path if isinstance(item, exp.Column)}
        names |= {*FUNCTIONS} if "" in names else set()
        for node in self.tree.walk():
            if isinstance(node, exp.Column) and id(node) not in own and node.name.lower() in names:
                found = self.columns.find(node)
                source = None if found is None else found[0].sources[found[1]]
                select = node.find_ancestor(exp.Select)
                if source is None or source.columns is None or id(source.select) in selects:
                    return True
                is_total = isinstance(node.find_ancestor(exp.AggFunc, exp.Select), exp.AggFunc)  # then it is a column
                if select is not None and not is_total and is_alias(node, select):
                    return True
            if isinstance(node, exp.Star | exp.Columns | exp.PositionalColumn):
                whole = node.parent if isinstance(node.parent, exp.Column) else node
                if not isinstance(whole.parent, exp.Select) and not (
                    whole is node and isinstance(node.parent, exp.Count)
                ):
                    return True
        joins = [join for *_, select in path[:-1] for join in select.args.get("joins") or ()]
        shared = {column.name.lower() for join in joins for column in join.args.get("using") or ()}
        return bool(shared & names) or any(join.method == "NATURAL" for join in joins)

    def _separator(self, call: exp.Expr) -> str | None:
        """Return the text between the elements of a collection, by default a comma; None if it is a list.

        A JSON list of SQLite is a text, whose elements have commas between them.
        """
        if isinstance(call, exp.JSONArrayAgg | exp.ArrayAgg):
            return "," if isinstance(call, exp.JSONArrayAgg) and self._dialect == "sqlite" else None
        separator = call.args.get("separator")
        return "," if separator is None else separator.name


def with_parts(expression: exp.Expr, parts: Sequence[exp.Expr], others: Sequence[exp.Expr | None]) -> exp.Expr:
    """Return a copy of an expression in which `others` replace the given parts; a None among them keeps its part."""
    by_part = {id(part): other for part, other in zip(parts, others, strict=True)}
    if (other := by_part.get(id(expression))) is not None:
        return other
    copy = exp.paren(expression, copy=True)
    for node, twin in zip(expression.walk(), [*copy.this.walk()], strict=True):
        if (other := by_part.get(id(node))) is not None:
            twin.replace(exp.paren(other, copy=True))
    return copy


def columns_of(names: Names) -> Iterator[exp.Column]:
    """Yield the known columns of the items of FROM, qualified by the item."""
    for alias, source in names.sources.items():
        written = source.node.args.get("alias")
        table = written.this if written is not None else source.node.this
        if isinstance(table, exp.Identifier) and table.name.lower() == alias:
            yield from (
                exp.Column(this=exp.to_identifier(name), table=table.copy()) for name in source.columns or () if name
            )


def _compared_queries(select: exp.Select) -> Iterator[tuple[exp.Expr, exp.Select]]:
    """Yield the terms of WHERE that compare a value with a query, and the query."""
    where = select.args.get("where")
    for term in where.find_all(exp.EQ, exp.In) if where is not None else ():
        query = top_query(term.args.get("query") or term.args.get("expression"))
        if isinstance(query, exp.Select):
            yield term, query


def _value_of_rows(call: exp.Expr) -> exp.Expr:
    """Return the argument of an aggregate; for CASE its first value."""
    value = argument_of(call)
    if isinstance(value, exp.Case | exp.If):
        value = value.args["ifs"][0].args["true"] if isinstance(value, exp.Case) else value.args["true"]
    return value


def _value_behind(source: FromItem, value: exp.Expr, columns: Sequence[exp.Column]) -> exp.Expr | None:
    """Return an expression in terms of the SELECT in an item of FROM; None if one of its columns is not known there."""
    read = [(source.columns or {}).get(column.name.lower()) for column in columns]
    return None if None in read else with_parts(value, columns, read)
