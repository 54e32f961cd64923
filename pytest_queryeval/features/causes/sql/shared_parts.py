"""What two SQL queries have in common: their parts, clause by clause, with the names of the tables themselves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TypeAlias

from sqlglot import exp

from pytest_queryeval.core.cause import SharedPatterns
from pytest_queryeval.features.causes.pairs import without_common
from pytest_queryeval.features.causes.sql import changes, parts
from pytest_queryeval.features.causes.sql.parts import (
    common_queries,
    joins_of,
    key,
    outermost_queries,
    query_within,
    sources,
)
from pytest_queryeval.text.formatting import one_line_with_end

MAX_LINE = 200  # characters
MAX_SHOWN = 20  # lines of each query
Remarks: TypeAlias = Mapping[tuple[str, str], str]
"""What to say about a text that a column is compared with, by the name of the column, in lower case, and the text."""
_IN_ONE_LINE = ("SELECT", "GROUP BY")
_CLAUSES_OF_NESTED = ("group", "having", "limit", "with_")  # of a nested query that is not the same as a join
_OMITTED = exp.Var(this="SELECT …")


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of a clause, such as a table or a condition."""

    key: str
    """The same for parts that say the same at the same place, whatever the queries within them."""
    parent: str
    """The key of the part around it; empty if there is none."""
    place: str
    """What its line begins with, such as `subquery: `."""
    word: str
    """The word of SQL that follows."""
    node: exp.Expr | None = None


def shared_parts(
    predicted: exp.Expr, gold: exp.Expr, write: Callable[[exp.Expr], str], remarks: Remarks
) -> SharedPatterns:
    """Return the parts that only one of two queries has, whose tables have the same aliases.

    Parts come first whose texts the queries write in another letter case. `write` returns the text of a tree, which it
    may change.
    """
    predicted, gold = (_with_table_names(tree) for tree in (predicted, gold))
    joined = _joined_as_in(gold, predicted)
    predicted_parts, gold_parts = ([*_parts_of_query(tree)] for tree in (predicted, gold))
    for tree in (predicted, gold):
        changes.drop_table_names(tree.find_all(exp.Column))
    only_predicted, only_gold = without_common(predicted_parts, gold_parts, lambda part: part.key)
    texts, gold_texts = (
        {literal.name for literal in tree.find_all(exp.Literal) if literal.is_string} for tree in (predicted, gold)
    )

    def lines(differing: Sequence[_Part], texts_elsewhere: Iterable[str]) -> tuple[str, ...]:
        exact, folded = {*texts_elsewhere}, {text.casefold() for text in texts_elsewhere}

        def has_other_case(part: _Part) -> bool:
            literals = part.node.find_all(exp.Literal) if part.node is not None else ()
            return any(text.name not in exact and text.name.casefold() in folded for text in literals if text.is_string)

        keys = {part.key for part in differing}
        outermost = [part for part in differing if part.parent not in keys]
        first = sorted(outermost, key=lambda part: not has_other_case(part))
        return tuple(dict.fromkeys(_lines(first, write, remarks)))[:MAX_SHOWN]

    return SharedPatterns(
        shared=len(gold_parts) - len(only_gold),
        of=len(gold_parts),
        only_gold=lines(only_gold, texts),
        only_predicted=lines([*only_predicted, *joined], gold_texts),
    )


def _joined_as_in(gold: exp.Expr, predicted: exp.Expr) -> list[_Part]:
    """Join the tables of `IN (SELECT …)` in predicted that gold joins; return a part for each that may change rows."""
    gold_names = {alias for alias, item in sources(gold).items() if isinstance(item, exp.Table)}
    nested = []
    pending = parts.clause_operands(predicted, "where")
    while pending:
        condition = pending.pop()
        query = parts.nested_select(condition)
        if query is None or not isinstance(condition.this, exp.Column):
            continue
        names = sources(query).keys()
        if names <= gold_names - sources(predicted).keys() and not any(map(query.args.get, _CLAUSES_OF_NESTED)):
            word = f"{condition.this.name} IN (SELECT …) where gold joins"
            nested.append(_Part(key=word, parent="", place="", word=word))
            changes.join_nested(condition)
            pending = parts.clause_operands(predicted, "where")
    return nested if not gold.args.get("distinct") else []


def _lines(differing: Sequence[_Part], write: Callable[[exp.Expr], str], remarks: Remarks) -> Iterator[str]:
    """Yield a line for each part; the columns of SELECT, as those of GROUP BY, are in one line."""
    in_one_line = Counter((part.place, part.word) for part in differing if part.word in _IN_ONE_LINE)
    for part in differing:
        beginning, together = (part.place, part.word), [part]
        if in_one_line.pop(beginning, 0):
            together = [member for member in differing if (member.place, member.word) == beginning]
        elif part.word in _IN_ONE_LINE:
            continue
        nodes = [member.node for member in together if member.node is not None]
        texts = ", ".join(write(node.copy()) for node in nodes)
        columns = [column.name.lower() for node in nodes for column in node.find_all(exp.Column)]
        literals = [literal.name for node in nodes for literal in node.find_all(exp.Literal)]
        remarks_on_texts = [remarks[pair] for pair in product(columns, literals) if pair in remarks]
        line = one_line_with_end(f"{part.place}{part.word} {texts}".strip(), MAX_LINE)
        yield " ".join((line, *(f"({remark})" for remark in dict.fromkeys(remarks_on_texts))))


def _parts_of_query(tree: exp.Expr, place: str = "", parent: str = "") -> Iterator[_Part]:
    """Yield the parts of a query, each before the parts of the queries within it."""
    query = query_within(tree) or tree
    for common in query.args["with_"].expressions if common_queries(query) else ():
        part = _Part(f"{parent} WITH {common.alias.lower()}", parent, place, "WITH", common)
        yield part
        yield from _parts_of_query(common.this, f"{place}{common.alias}: ", part.key)
    if isinstance(query, exp.SetOperation):
        yield from _parts_of_query(query.this, place, parent)
        operation, place_of_second = parts.set_operation(query), f"{place}second query: "
        second = _Part(f"{parent} second query", parent, place, operation, query.expression)
        yield second
        yield _Part(f"{second.key} {operation}", second.key, place_of_second, operation)
        yield from _parts_of_query(query.expression, place_of_second, second.key)
    for clause, word, node in _clauses(query):
        outline = node
        queries = [] if node is None else outermost_queries(node)
        if node is not None and queries:
            outline = node.copy()
            for nested in outermost_queries(outline):
                nested.replace(_OMITTED.copy())
        part = _Part(f"{parent} {clause} {key(outline)}", parent, place, word, node)
        yield part
        for nested in queries:
            yield from _parts_of_query(nested, f"{place}subquery: ", part.key)


def _clauses(query: exp.Expr) -> Iterator[tuple[str, str, exp.Expr | None]]:
    """Yield the parts of the clauses of a query: what they are compared by, the word of their lines, and the node."""
    if isinstance(query, exp.Select):
        yield from _clauses_of_select(query)
    elif not isinstance(query, exp.SetOperation):
        yield "", "", query
    for name in ("order", "limit", "offset"):
        if query.args.get(name) is not None:
            yield "", "", query.args[name]


def _clauses_of_select(select: exp.Select) -> Iterator[tuple[str, str, exp.Expr | None]]:
    yield from (("SELECT", "SELECT", item.unalias()) for item in select.expressions)
    if select.args.get("distinct"):
        yield "DISTINCT", "DISTINCT", None
    joins = {alias: parts.join_type(join) for alias, join in joins_of(select).items()}
    for alias, source in sources(select).items():
        word = joins.get(alias, "FROM")
        yield "FROM" if word == "JOIN" else word, word, source
    for condition in parts.linking_conditions(select):
        yield "ON", "ON", condition
    for condition in parts.clause_operands(select, "where"):
        if not parts.is_join_condition(condition):
            yield "WHERE", "WHERE", condition
    if (group := select.args.get("group")) is not None:
        yield from (("GROUP BY", "GROUP BY", item) for item in group.expressions)
        if not group.expressions:  # GROUP BY ALL, ROLLUP and the like
            yield "", "", group
    for name in ("having", "qualify"):
        yield from ((name, name.upper(), condition) for condition in parts.clause_operands(select, name))


def _with_table_names(tree: exp.Expr) -> exp.Expr:
    """Return a copy whose tables have their own names instead of aliases, but for those that a SELECT reads twice."""
    tree = tree.copy()
    columns = [(column, parts.table_of(column)) for column in tree.find_all(exp.Column)]
    renamed: set[int] = set()
    for select in tree.find_all(exp.Select):
        tables = [table for table in sources(select).values() if isinstance(table, exp.Table)]
        times = Counter(table.name.lower() for table in tables)
        for table in tables:
            if times[table.name.lower()] == 1:
                renamed.add(id(table))
                table.set("alias", None)
    for column, source in columns:
        if source is not None and id(source) in renamed:
            column.set("table", exp.to_identifier(source.name))
    return tree
