"""What two SQL queries have in common: their parts, clause by clause, with the names of the tables themselves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TypeAlias

from sqlglot import exp

from pytest_queryeval.core.cause import SharedPatterns
from pytest_queryeval.features.causes.sql import changes, parts
from pytest_queryeval.features.causes.sql.aligned import common_queries, key, query_within, sources
from pytest_queryeval.text.truncation import one_line_with_end

MAX_LINE = 200  # characters
MAX_SHOWN = 20  # lines of each query
Remarks: TypeAlias = Mapping[tuple[str, str], str]
"""What to say about a text that a column is compared with, by the name of the column, in lower case, and the text."""
_IN_ONE_LINE = ("SELECT", "GROUP BY")
_OWN_CLAUSES = ("group", "having", "limit", "with_")  # of a nested query that is not the same as a join
_OMITTED = exp.Var(this="SELECT …")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """A part of a clause, such as a table or a condition."""

    key: str
    """The same for parts that say the same, whatever the queries within them."""
    word: str
    """What its line begins with."""
    node: exp.Expr | None = None
    place: str = ""
    """What the lines of the parts within it begin with."""
    inner: tuple[_Part, ...] = ()
    """The parts of the queries within it."""


def shared_parts(
    predicted: exp.Expr, gold: exp.Expr, write: Callable[[exp.Expr], str], remarks: Remarks
) -> SharedPatterns:
    """Return the parts that only one of two queries has, whose tables have the same aliases.

    Parts come first whose texts the queries write in another letter case. `write` returns the text of a tree, which it
    may change.
    """
    predicted, gold = (_with_table_names(tree) for tree in (predicted, gold))
    joined = _joined_as_in(gold, predicted)
    predicted_parts, gold_parts = (tuple(_parts_of_query(tree)) for tree in (predicted, gold))
    for tree in (predicted, gold):
        changes.drop_table_names(tree.find_all(exp.Column))
    only_predicted, only_gold = _without_common(predicted_parts, gold_parts)
    texts, gold_texts = (
        {literal.name for literal in tree.find_all(exp.Literal) if literal.is_string} for tree in (predicted, gold)
    )

    def lines(differing: Sequence[tuple[str, _Part]], texts_elsewhere: Iterable[str]) -> tuple[str, ...]:
        exact, folded = {*texts_elsewhere}, {text.casefold() for text in texts_elsewhere}

        def has_other_case(part: _Part) -> bool:
            literals = part.node.find_all(exp.Literal) if part.node is not None else ()
            return any(text.name not in exact and text.name.casefold() in folded for text in literals if text.is_string)

        first = sorted(differing, key=lambda placed: not has_other_case(placed[1]))
        return tuple(dict.fromkeys(_lines(first, write, remarks)))[:MAX_SHOWN]

    of = _count(gold_parts)
    return SharedPatterns(
        shared=of - sum(_count([part]) for _, part in only_gold),
        of=of,
        only_gold=lines(only_gold, texts),
        only_predicted=lines([*only_predicted, *joined], gold_texts),
    )


def _joined_as_in(gold: exp.Expr, predicted: exp.Expr) -> list[tuple[str, _Part]]:
    """Join the tables of `IN (SELECT …)` in predicted that gold joins; return a part for each that may change rows."""
    joined = {alias for alias, item in sources(gold).items() if isinstance(item, exp.Table)}
    nested = []
    pending = parts.clause_operands(predicted, "where")
    while pending:
        condition = pending.pop()
        query = query_within(condition.args.get("query")) if isinstance(condition, exp.In) else None
        if (
            not isinstance(query, exp.Select)
            or len(query.expressions) != 1
            or not isinstance(condition.this, exp.Column)
        ):
            continue
        names = sources(query).keys()
        if names <= joined and names.isdisjoint(sources(predicted)) and not any(map(query.args.get, _OWN_CLAUSES)):
            word = f"{condition.this.name} IN (SELECT …) where gold joins"
            nested.append(("", _Part(key=word, word=word)))
            changes.join_nested(condition)
            pending = parts.clause_operands(predicted, "where")
    return nested if not gold.args.get("distinct") else []


def _without_common(
    predicted: Sequence[_Part], gold: Sequence[_Part], place: str = ""
) -> tuple[list[tuple[str, _Part]], list[tuple[str, _Part]]]:
    """Return the parts of each query that the other one lacks, with what their lines begin with."""
    unmatched, only_predicted, only_gold = list(gold), list[tuple[str, _Part]](), list[tuple[str, _Part]]()
    for part in predicted:
        match = next((gold_part for gold_part in unmatched if gold_part.key == part.key), None)
        if match is None:
            only_predicted.append((place, part))
            continue
        unmatched = [gold_part for gold_part in unmatched if gold_part is not match]
        inner_predicted, inner_gold = _without_common(part.inner, match.inner, f"{place}{part.place}")
        only_predicted += inner_predicted
        only_gold += inner_gold
    return only_predicted, [*((place, part) for part in unmatched), *only_gold]


def _count(of: Iterable[_Part]) -> int:
    return sum(1 + _count(part.inner) for part in of)


def _lines(differing: Sequence[tuple[str, _Part]], write: Callable[[exp.Expr], str], remarks: Remarks) -> Iterator[str]:
    """Yield a line for each part; the columns of SELECT, as those of GROUP BY, are in one line."""
    in_one_line = Counter((place, part.word) for place, part in differing if part.word in _IN_ONE_LINE)
    for place, part in differing:
        together = [part]
        if in_one_line.pop((place, part.word), 0):
            together = [
                other_part
                for other_place, other_part in differing
                if (other_place, other_part.word) == (place, part.word)
            ]
        elif part.word in _IN_ONE_LINE:
            continue
        nodes = [member.node for member in together if member.node is not None]
        texts = ", ".join(write(node.copy()) for node in nodes)
        columns = [column.name.lower() for node in nodes for column in node.find_all(exp.Column)]
        literals = [literal.name for node in nodes for literal in node.find_all(exp.Literal)]
        remarks_on_texts = [remarks[pair] for pair in product(columns, literals) if pair in remarks]
        line = one_line_with_end(f"{place}{part.word} {texts}".strip(), MAX_LINE)
        yield " ".join((line, *(f"({remark})" for remark in dict.fromkeys(remarks_on_texts))))


def _parts_of_query(tree: exp.Expr) -> Iterator[_Part]:
    query = query_within(tree) or tree
    for common in query.args["with_"].expressions if common_queries(query) else ():
        yield _Part(
            key=f"WITH {common.alias.lower()}",
            word="WITH",
            node=common,
            place=f"{common.alias}: ",
            inner=tuple(_parts_of_query(common.this)),
        )
    if isinstance(query, exp.SetOperation):
        yield from _parts_of_query(query.this)
        operation = parts.set_operation(query)
        yield _Part(
            key="second query",
            word=operation,
            node=query.expression,
            place="second query: ",
            inner=(_Part(key=operation, word=operation), *_parts_of_query(query.expression)),
        )
    elif isinstance(query, exp.Select):
        yield from _parts_of_select(query)
    else:
        yield _part("", query)
    for name in ("order", "limit", "offset"):
        if query.args.get(name) is not None:
            yield _part("", query.args[name])


def _parts_of_select(select: exp.Select) -> Iterator[_Part]:
    yield from (_part("SELECT", item.unalias()) for item in select.expressions)
    if select.args.get("distinct"):
        yield _Part(key="DISTINCT", word="DISTINCT")
    joins = {parts.joined_name(join): parts.join_type(join) for join in select.args.get("joins") or ()}
    for alias, source in sources(select).items():
        join_type = joins.get(alias, "FROM")
        yield _part(join_type, source, clause="FROM" if join_type == "JOIN" else join_type)
    yield from (_part("ON", condition) for condition in parts.join_conditions(select))
    for condition in parts.clause_operands(select, "where"):
        yield _part("ON" if parts.is_join_condition(condition) else "WHERE", condition)
    group = select.args.get("group")
    for item in (group.expressions or [group]) if group is not None else ():
        yield _part("GROUP BY" if item is not group else "", item)
    for name in ("having", "qualify"):
        yield from (_part(name.upper(), condition) for condition in parts.clause_operands(select, name))


def _part(word: str, node: exp.Expr, *, clause: str = "") -> _Part:
    queries = _outermost_queries(node)
    outline = node
    if queries:
        outline = node.copy()
        for query in _outermost_queries(outline):
            query.replace(_OMITTED.copy())
    return _Part(
        key=f"{clause or word} {key(outline)}",
        word=word,
        node=node,
        place="subquery: ",
        inner=tuple(part for query in queries for part in _parts_of_query(query)),
    )


def _outermost_queries(node: exp.Expr) -> list[exp.Expr]:
    queries = exp.Select | exp.SetOperation
    return [part for part in node.dfs(prune=lambda part: isinstance(part, queries)) if isinstance(part, queries)]


def _with_table_names(tree: exp.Expr) -> exp.Expr:
    """Return a copy whose tables have their own names instead of aliases, but for those that a SELECT reads twice."""
    tree = tree.copy()
    names: dict[int, dict[str, str]] = {}
    for select in tree.find_all(exp.Select):
        tables = {alias: item for alias, item in sources(select).items() if isinstance(item, exp.Table)}
        times = Counter(table.name.lower() for table in tables.values())
        names[id(select)] = {}
        for alias, table in tables.items():
            if times[table.name.lower()] == 1:
                names[id(select)][alias] = table.name
                table.set("alias", None)
    for column in tree.find_all(exp.Column):
        outer_select = column.find_ancestor(exp.Select)
        while outer_select is not None and column.table.lower() not in names[id(outer_select)]:
            outer_select = outer_select.find_ancestor(exp.Select)
        if outer_select is not None:
            column.set("table", exp.to_identifier(names[id(outer_select)][column.table.lower()]))
    return tree
