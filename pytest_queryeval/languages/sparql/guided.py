"""Where a SPARQL query leaves its answer open below its own LIMIT, and the query that decides it as predicted.

It does so by LIMIT in subqueries, by SAMPLE and by GROUP_CONCAT. Keys are put behind those by which a subquery sorts;
collections, and the values that SAMPLE may take, are read as lists.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias, get_args

from pytest_queryeval.comparison.ties import Collection, GuidedQuery
from pytest_queryeval.core.table import BETWEEN, IRI, Cell, Row, Table
from pytest_queryeval.core.table import Literal as RDFLiteral
from pytest_queryeval.languages.sparql.tree import (
    Block,
    Expr,
    Item,
    Node,
    Select,
    SortKey,
    Writer,
    changed,
    variables,
    walk,
)
from pytest_queryeval.languages.sparql.tree_reader import UnreadableError, read_tree

Way: TypeAlias = Literal["as predicted", "ascending", "descending"]
WAYS: tuple[Way, ...] = get_args(Way)
MAX_CELLS = 1_000  # of the predicted answer, as terms in a query
_WRITER = Writer({})
_IRI = re.compile(r"""[^\x00-\x20<>"{}|^`\\]*""")
_LANGUAGE = re.compile(r"[A-Za-z0-9-]*")
# What `encoded_term` makes of a term, of `?`.
_ENCODED = (
    "CONCAT",
    ("IF", ("ISIRI", "?"), '"<"', '"\\""'),
    ("STR", "?"),
    '"\\""',
    ("COALESCE", ("STR", ("DATATYPE", "?")), '""'),
    '"@"',
    ("COALESCE", ("LANG", "?"), '""'),
)


def open_query(query: str, prefixes: Mapping[str, str]) -> OpenSparqlQuery | None:
    """Return the choices of a SPARQL query that leaves its answer open; None for any other text.

    `prefixes` are the prefixes that the source declares.
    """
    tree = _select_tree(query, prefixes)
    if tree is None:
        return None
    query_with_choices = OpenSparqlQuery(tree, _limited(tree), _collections(tree))
    return query_with_choices if query_with_choices.choices else None


@dataclass(frozen=True, slots=True)
class OpenSparqlQuery:
    """A SELECT that leaves its answer open, with its limited subqueries and its collections; see `OpenQuery`."""

    _tree: Select
    _limited: Sequence[Select]
    _collections: tuple[Collection, ...]

    @property
    def choices(self) -> tuple[str, ...]:
        """The choices, in the words of notes for readers."""
        values = (self._tree.items[collection.column].value for collection in self._collections)
        return (
            *(f"{' '.join(_clauses(select))} in a subquery" for select in self._limited),
            *map(_WRITER.line, values),
        )

    @property
    def fixed_columns(self) -> tuple[int, ...] | None:
        """Output columns that no choice changes; None if a choice may change which rows there are."""
        if self._limited:
            return None
        return tuple({*range(len(self._tree.items))} - {it.column for it in self._collections})

    def guided(self, gold: Table, predicted: Table, alignments: Sequence[Mapping[int, int]]) -> Iterator[GuidedQuery]:
        """Yield up to three queries that settle the choices in favour of a predicted answer.

        All three prefer solutions of the predicted answer, and settle the rest: 1. by how many terms of the predicted
        answer a solution has, 2. by all variables, ascending, 3. by all variables, descending. If OFFSET, MINUS or NOT
        EXISTS leave solutions out, this query avoids those of
          the predicted answer.

        `alignments` map gold's columns to predicted columns; the queries use them in turn.
        """
        texts = set()
        for number, way in enumerate(WAYS):
            alignment = alignments[number % len(alignments)]
            columns = {f"?{name}": alignment[at] for at, name in enumerate(gold.columns) if at in alignment}
            avoided = _left_out(self._tree) if way == "descending" else set()
            keys = {
                id(select): _guiding_keys(select, columns, predicted.rows, way, is_avoided=id(select) in avoided)
                for select in self._limited
            }
            text = _WRITER.query(_with_keys(_with_lists(self._tree, self._collections), keys))
            if text not in texts:
                texts.add(text)
                yield GuidedQuery(text=text, alignment=alignment, collections=self._collections)

    def decided(self, first: str = "") -> list[str]:
        """Return the query twice, with subqueries that take their first rows by all variables.

        Ascending, then descending. With `first`, a variable, both sort by it first. The list is empty if no subquery
        takes some of its rows.
        """
        before = (SortKey(is_descending=False, value=Expr(first)),) if first else ()
        return [
            _WRITER.query(
                _with_keys(self._tree, {id(it): (*before, *_guiding_keys(it, {}, (), way)) for it in self._limited})
            )
            for way in (WAYS[1:] if self._limited else ())
        ]

    def deciding_columns(self) -> list[str]:
        """Return the variables by which the limited subqueries can be sorted."""
        return list(dict.fromkeys(name for select in self._limited for name in _sortable(select)))


def _select_tree(query: str, prefixes: Mapping[str, str]) -> Select | None:
    """Return the tree of a SELECT; None for any other text."""
    try:
        tree = read_tree(query, prefixes).tree
    except UnreadableError:
        return None
    return tree if tree.form == "SELECT" else None


def _limited(tree: Select) -> list[Select]:
    """Return the subqueries with LIMIT or OFFSET."""
    return [
        node for node in walk(tree) if isinstance(node, Select) and node is not tree and (node.limit or node.offset)
    ]


def _clauses(select: Select) -> Iterator[str]:
    for word, number in (("LIMIT", select.limit), ("OFFSET", select.offset)):
        if number:
            yield f"{word} {number}"


def _collections(tree: Select) -> tuple[Collection, ...]:
    """Return the output columns that are just a SAMPLE or a GROUP_CONCAT on which nothing else depends.

    There are none in a query with DISTINCT or REDUCED. A separator with an escape is left out.
    """
    if tree.modifier:
        return ()
    collections = []
    for column, item in enumerate(tree.items):
        arguments = item.value.arguments
        if item.value.head not in ("SAMPLE", "GROUP_CONCAT") or not _is_only_returned(item, tree):
            continue
        separator = next((it for it in arguments if isinstance(it, Expr) and it.head == "SEPARATOR"), None)
        text = _WRITER.line(separator.arguments[0]) if separator is not None else '" "'
        if item.value.head == "SAMPLE":
            collections.append(Collection(column, None, -1 - column, picks=True))
        elif "\\" not in text:
            first = arguments[0]
            is_distinct = isinstance(first, Expr) and first.head == "DISTINCT"
            collections.append(Collection(column, text[1:-1], -1 - column if is_distinct else 0))
    return tuple(collections)


def _is_only_returned(item: Item, tree: Select) -> bool:
    """Return whether no other part of a query depends on the value of an item.

    Another SAMPLE or GROUP_CONCAT may be an item of its own, because all collections of a query have one order.
    """
    others: list[Node] = [*tree.having, *tree.order]
    for other in tree.items:
        is_choice = other.value.head in ("SAMPLE", "GROUP_CONCAT")
        others += [] if other is item else other.value.arguments if is_choice else [other]
    used = {node.head for other in others for node in walk(other) if isinstance(node, Expr)}
    is_repeated = any(other is not item and other.value == item.value for other in tree.items)
    return not is_repeated and used.isdisjoint({"SAMPLE", "GROUP_CONCAT", item.alias})


def _with_lists(tree: Select, collections: Sequence[Collection]) -> Select:
    """Return the query with GROUP_CONCAT in its collections, so that they list their elements or possible values.

    A mark separates the elements; values of SAMPLE are encoded as texts.
    """
    items = list(tree.items)
    separator = Expr("SEPARATOR", (Expr(f'"{BETWEEN}"'),))
    for collection in collections:
        item = items[collection.column]
        collected = item.value.arguments[0]
        if collection.picks and isinstance(collected, Expr):
            value = collected.arguments[0] if collected.head == "DISTINCT" else collected
            collected = Expr("DISTINCT", (_filled(_ENCODED, value),)) if isinstance(value, Expr) else collected
        items[collection.column] = replace(item, value=Expr("GROUP_CONCAT", (collected, separator)))
    return replace(tree, items=tuple(items))


def _filled(form: object, value: Expr) -> Expr:
    """Return the expression that a form describes.

    A text is a term, `?` the value, a tuple a function and its arguments.
    """
    if isinstance(form, tuple):
        return Expr(form[0], tuple(_filled(argument, value) for argument in form[1:]))
    return value if form == "?" else Expr(str(form))


def _with_keys(tree: Select, keys: Mapping[int, Sequence[SortKey]]) -> Select:
    def change(node: Node, copy: Node) -> Node:
        return (
            replace(copy, order=(*copy.order, *keys[id(node)]))
            if isinstance(copy, Select) and id(node) in keys
            else copy
        )

    copy = changed(tree, change)
    assert copy is not None
    return copy


def _sortable(select: Select) -> list[str]:
    """Return the variables by which the rows of a subquery can be sorted."""
    projected = [item.variable for item in select.items if not select.selects_all]
    if select.aggregates or select.modifier or select.where is None:
        return projected
    return list(dict.fromkeys([*projected, *variables(select.where)]))


def _left_out(tree: Select) -> set[int]:
    """Return the ids of subqueries whose rows an OFFSET, MINUS or NOT EXISTS leaves out of the answer."""
    without = [
        node
        for node in walk(tree)
        if (isinstance(node, Block) and node.head[0] == "MINUS")
        or (isinstance(node, Expr) and node.head == "NOT EXISTS")
    ]
    within = {id(select) for node in without for select in walk(node) if isinstance(select, Select)}
    return within | {id(select) for select in _limited(tree) if select.offset}


def _guiding_keys(
    select: Select, columns: Mapping[str, int], rows: Sequence[Row], way: Way, *, is_avoided: bool = False
) -> tuple[SortKey, ...]:
    """Return the sort keys by which a subquery prefers solutions of the predicted rows, then sorts the rest by `way`.

    `columns` are the places of predicted cells by variable. `is_avoided` sorts those solutions last.
    """
    sortable = _sortable(select)
    known = {name: columns[name] for name in sortable if name in columns}
    keys = []
    limit = MAX_CELLS // max(len(known), 1)
    solutions = dict.fromkeys(tuple([row[column] for column in known.values()]) for row in rows[:limit])
    conditions = [
        _joined("&&", [_has_value(name, value) for name, value in zip(known, solution, strict=True)])
        for solution in solutions
        if known and all(value is None or _term_text(value) for value in solution)
    ]
    if conditions:
        value = _as_number(_joined("||", conditions))
        keys.append(SortKey(is_descending=not is_avoided, value=value))
    if way == "as predicted":
        cells = dict.fromkeys(term for row in rows[:MAX_CELLS] for cell in row if (term := _term_text(cell)))
        terms = [*cells][: MAX_CELLS // max(len(sortable), 1)]
        counts = [_as_number(Expr("IN", (Expr(name), *map(Expr, terms)))) for name in sortable]
        return (*keys, SortKey(is_descending=True, value=_joined("+", counts))) if terms and counts else tuple(keys)
    return (*keys, *(SortKey(is_descending=way == "descending", value=Expr(name)) for name in sortable))


def _as_number(condition: Expr) -> Expr:
    """Return an expression that is 1 if a condition is true, and 0 if it is false or an error."""
    return Expr("COALESCE", (Expr("IF", (condition, Expr("1"), Expr("0"))), Expr("0")))


def _joined(operator: str, operands: Sequence[Expr]) -> Expr:
    if len(operands) == 1 or operator != "+":
        return operands[0] if len(operands) == 1 else Expr(operator, tuple(operands))
    return Expr(operator, (_joined(operator, operands[:-1]), operands[-1]))


def _has_value(variable: str, value: Cell) -> Expr:
    if value is None:
        return Expr("!", (Expr("BOUND", (Expr(variable),)),))
    return Expr("=", (Expr(variable), Expr(_term_text(value))))


def _term_text(cell: Cell) -> str:
    """Return the text of an IRI or a literal in a query; empty for other cells, and for an invalid IRI or language."""
    match cell:
        case IRI(iri):
            return f"<{iri}>" if _IRI.fullmatch(iri) else ""
        case RDFLiteral(lexical, datatype, language) if _IRI.fullmatch(datatype) and _LANGUAGE.fullmatch(language):
            text = lexical.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r")
            return f'"{text}"' + (f"@{language}" if language else f"^^<{datatype}>" if datatype else "")
    return ""
