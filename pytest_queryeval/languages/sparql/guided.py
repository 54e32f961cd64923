"""Where a SPARQL query leaves its answer open below its own LIMIT, and the query that decides it as predicted.

It does so by LIMIT in subqueries, by SAMPLE and by GROUP_CONCAT. Keys are put behind those by which a subquery sorts;
collections, and the values that SAMPLE may take, are read as lists.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

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


def guided_queries(
    query: str,
    prefixes: Mapping[str, str],
    gold: Table,
    predicted: Table,
    places: Callable[[], Sequence[Mapping[int, int]]],
) -> Iterator[GuidedQuery]:
    """Yield up to three queries that settle the open choices of `query` in favour of a predicted answer.

    If `query` leaves no choice, there are none. `gold` is the answer of `query`. `places` returns ways in which
    predicted columns may stand for those of gold, of which each query takes one. All three prefer solutions of the
    predicted answer, and settle the rest:

    1. by how many terms of the predicted answer a solution has,
    2. by all variables, ascending,
    3. by all variables, descending. If OFFSET, MINUS or NOT EXISTS leave solutions out, this query avoids those of the
       predicted answer instead.
    """
    tree = _read(query, prefixes)
    if tree is None:
        return
    limited, collections = _limited(tree), _collections(tree)
    if not limited and not collections:
        return
    names = (
        *(f"{' '.join(_clauses(select))} in a subquery" for select in limited),
        *(_WRITER.line(tree.items[collection.column].value) for collection in collections),
    )
    fixed = None if limited or tree.modifier else tuple({*range(len(tree.items))} - {it.column for it in collections})
    texts = set()
    for number, way in enumerate(("as predicted", "ascending", "descending")):
        chosen = places()[number % len(places())]
        columns = {f"?{name}": chosen[at] for at, name in enumerate(gold.columns) if at in chosen}
        avoided = _left_out(tree) if way == "descending" else set()
        keys = {
            id(select): _keys(select, columns, predicted.rows, way, is_avoided=id(select) in avoided)
            for select in limited
        }
        text = _WRITER.query(_with_keys(_with_lists(tree, collections), keys))
        if text not in texts:
            texts.add(text)
            fixed_columns = () if fixed is not None and (tree.limit or tree.offset) else fixed
            yield GuidedQuery(text=text, places=names, fixed_columns=fixed_columns, collections=collections)


def decided_queries(query: str, prefixes: Mapping[str, str], *, first: str = "") -> list[GuidedQuery]:
    """Return a query whose subqueries take the first rows by all variables, ascending and descending; none without.

    With `first`, a variable, rows are decided by it before, ascending both times.
    """
    tree = _read(query, prefixes)
    limited = [] if tree is None else _limited(tree)
    decided = []
    if tree is None:
        return []
    for way in ("ascending", "descending") if limited else ():
        keys = {id(select): _keys(select, {}, (), way) for select in limited}
        if first:
            keys = {at: (SortKey(is_descending=False, value=Expr(first)), *others) for at, others in keys.items()}
        places = tuple(f"{' '.join(_clauses(select))} in a subquery" for select in limited)
        decided.append(GuidedQuery(text=_WRITER.query(_with_keys(tree, keys)), places=places))
    return decided


def deciding_columns(query: str, prefixes: Mapping[str, str]) -> list[str]:
    """Return the variables by which the choices of a query can be decided."""
    tree = _read(query, prefixes)
    return list(
        dict.fromkeys(name for select in ([] if tree is None else _limited(tree)) for name in _sortable(select))
    )


def _read(query: str, prefixes: Mapping[str, str]) -> Select | None:
    try:
        tree = read_tree(query, prefixes).tree
    except UnreadableError:
        return None
    return tree if tree.form == "SELECT" else None


def _limited(tree: Select) -> list[Select]:
    """Return the subqueries that take some of their rows."""
    return [
        node for node in walk(tree) if isinstance(node, Select) and node is not tree and (node.limit or node.offset)
    ]


def _clauses(select: Select) -> Iterator[str]:
    for word, number in (("LIMIT", select.limit), ("OFFSET", select.offset)):
        if number:
            yield f"{word} {number}"


def _collections(tree: Select) -> tuple[Collection, ...]:
    """Return the output columns that are a SAMPLE or a GROUP_CONCAT as it stands, and are used for nothing else."""
    if tree.modifier:
        return ()
    found = []
    for column, item in enumerate(tree.items):
        arguments = item.value.arguments
        if item.value.head not in ("SAMPLE", "GROUP_CONCAT") or not _is_only_returned(item, tree):
            continue
        separator = next((it for it in arguments if isinstance(it, Expr) and it.head == "SEPARATOR"), None)
        text = _WRITER.line(separator.arguments[0]) if separator is not None else '" "'
        if item.value.head == "SAMPLE":
            found.append(Collection(column, None, -1 - column, picks=True))
        elif "\\" not in text:
            first = arguments[0]
            is_distinct = isinstance(first, Expr) and first.head == "DISTINCT"
            found.append(Collection(column, text[1:-1], -1 - column if is_distinct else 0))
    return tuple(found)


def _is_only_returned(item: Item, tree: Select) -> bool:
    """Return whether no other part of a query has an aggregate, or the variable that stands for it."""
    others: list[Node] = [it for it in tree.items if it is not item]
    others += [*tree.having, *tree.order]
    used = [node for other in others for node in walk(other)]
    return not any(node == item.value or (isinstance(node, Expr) and node.head == item.alias) for node in used)


def _with_lists(tree: Select, collections: Sequence[Collection]) -> Select:
    """Return the query with the elements of its collections, and the values that SAMPLE may take, between marks."""
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
    """Return an expression by its form: a text is a term, `?` the value, a tuple a function and its arguments."""
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
    """Return the subqueries of which some rows, or what they select, are left out of the answer."""
    without = [
        node
        for node in walk(tree)
        if (isinstance(node, Block) and node.head[0] == "MINUS")
        or (isinstance(node, Expr) and node.head == "NOT EXISTS")
    ]
    within = {id(select) for node in without for select in walk(node) if isinstance(select, Select)}
    return within | {id(select) for select in _limited(tree) if select.offset}


def _keys(
    select: Select, columns: Mapping[str, int], rows: Sequence[Row], way: str, *, is_avoided: bool = False
) -> tuple[SortKey, ...]:
    """Return the sort keys of a subquery; `columns` are those of the predicted rows by the variables of the answer."""
    sortable = _sortable(select)
    known = {name: columns[name] for name in sortable if name in columns}
    keys = []
    limit = MAX_CELLS // max(len(known), 1)
    solutions = dict.fromkeys(tuple([row[column] for column in known.values()]) for row in rows[:limit])
    conditions = [
        _joined("&&", [_has_value(name, value) for name, value in zip(known, solution, strict=True)])
        for solution in solutions
        if known and all(value is None or _term(value) for value in solution)
    ]
    if conditions:
        value = _as_number(_joined("||", conditions))
        keys.append(SortKey(is_descending=not is_avoided, value=value))
    if way == "as predicted":
        cells = dict.fromkeys(term for row in rows[:MAX_CELLS] for cell in row if (term := _term(cell)))
        terms = [*cells][: MAX_CELLS // max(len(sortable), 1)]
        found = [
            Expr(
                "COALESCE", (Expr("IF", (Expr("IN", (Expr(name), *map(Expr, terms))), Expr("1"), Expr("0"))), Expr("0"))
            )
            for name in sortable
        ]
        return (*keys, SortKey(is_descending=True, value=_joined("+", found))) if terms and found else tuple(keys)
    return (*keys, *(SortKey(is_descending=way == "descending", value=Expr(name)) for name in sortable))


def _as_number(condition: Expr) -> Expr:
    """Return 1 where a condition is true, 0 where it is false or an error."""
    return Expr("COALESCE", (Expr("IF", (condition, Expr("1"), Expr("0"))), Expr("0")))


def _joined(operator: str, operands: Sequence[Expr]) -> Expr:
    if len(operands) == 1 or operator != "+":
        return operands[0] if len(operands) == 1 else Expr(operator, tuple(operands))
    return Expr(operator, (_joined(operator, operands[:-1]), operands[-1]))


def _has_value(variable: str, value: Cell) -> Expr:
    if value is None:
        return Expr("!", (Expr("BOUND", (Expr(variable),)),))
    return Expr("=", (Expr(variable), Expr(_term(value))))


def _term(cell: Cell) -> str:
    """Return an IRI or a literal as a part of a query; empty for other cells, and for what is no name of IRIs."""
    match cell:
        case IRI(iri):
            return f"<{iri}>" if _IRI.fullmatch(iri) else ""
        case RDFLiteral(lexical, datatype, language) if _IRI.fullmatch(datatype) and _LANGUAGE.fullmatch(language):
            text = lexical.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r")
            return f'"{text}"' + (f"@{language}" if language else f"^^<{datatype}>" if datatype else "")
    return ""
