"""The rules of proofs: each rewrites a SELECT into one with the same answer, on all data that satisfy the constraints.

A rule returns None if its condition does not hold. Sources:
[1] Elmasri and Navathe, Fundamentals of Database Systems, on equivalent expressions of relational algebra.
[2] Chu, Murphy, Roesch, Cheung and Suciu (2018), Axiomatic foundations and algorithms for deciding semantic
equivalences of SQL queries.
[3] Paulley and Larson (1994), Exploiting uniqueness in query optimization.
[4] Galindo-Legaria and Rosenthal (1997), Outerjoin simplification and reordering for query optimization.
[5] Kim (1982), On optimizing an SQL-like nested query.
[6] The documentation of SQLite, "Datatypes In SQLite" and "SQL Language Expressions".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TypeGuard, TypeVar

from pytest_queryeval.core.db_schema import Column, Tables
from pytest_queryeval.features.strength.sql.proof.facts import Facts
from pytest_queryeval.features.strength.sql.proof.query import (
    Block,
    OuterJoin,
    Query,
    SetOperation,
    Term,
    aggregates_in,
    bare_columns,
    columns_of,
    conjuncts,
    have_one_family,
    name_of,
    only_joins,
    operands,
    reads_of,
    rewritten,
    substituted,
    without_columns,
)

T = TypeVar("T")
_COMPARISONS = frozenset(("eq", "neq", "lt", "lte"))
_NEGATED = {"eq": "neq", "neq": "eq"}
_REVERSED = {"lt": "lte", "lte": "lt"}


def negation(block: Block, tables: Tables) -> Block | None:
    """Return a SELECT with NOT moved inwards, over comparisons, NOT, AND and OR (De Morgan).

    None if nothing changes.

    Condition: none; in three-valued logic, the expression before and after is NULL for the same rows [1].
    """

    def moved(term: Term) -> Term:
        if term[0] != "not":
            return term
        (inner,) = operands(term)
        if inner[0] in _NEGATED:
            return (_NEGATED[inner[0]], *inner[1:])
        if inner[0] in _REVERSED:
            return (_REVERSED[inner[0]], inner[2], inner[1])
        if inner[0] in ("and", "or"):
            return ("or" if inner[0] == "and" else "and", *(moved(("not", part)) for part in operands(inner)))
        if inner[0] == "not" and next(operands(inner))[0] in ("not", "isnull", "in", "exists", *_NEGATED, *_REVERSED):
            return next(operands(inner))
        return term

    return _with_terms(block, moved)


def not_null_tests(block: Block, tables: Tables) -> Block | None:
    """Return a SELECT without a test that a column is not NULL, or with such a test for `x = x`.

    None if there is none.

    Condition for leaving it out: the column is declared NOT NULL and belongs to an inner join, or another condition is
    not true if the column is NULL [1].
    """
    for place, condition in enumerate(block.where):
        if condition[0] == "eq" and condition[1] == condition[2] and condition[1][0] == "column":
            test = "not", ("isnull", condition[1])
            return replace(block, where=(*block.where[:place], test, *block.where[place + 1 :]))
        if condition[0] == "not" and condition[1][0] == "isnull":
            without_condition = replace(block, where=_without(block.where, place))
            if Facts(without_condition, tables).is_not_null_column(condition[1][1]):
                return without_condition
    return None


def counts(block: Block, tables: Tables) -> Block | None:
    """Return a SELECT with `count(*)` for `count(x)` and `count(DISTINCT x)`; None if nothing changes.

    Condition: x is a constant or a column that is never NULL; with DISTINCT, no two rows of FROM have the same x [3].
    """
    facts = Facts(block, tables)

    def counted(term: Term) -> Term:
        if term[0] != "count" or term[1] == ("star",):
            return term
        argument = term[1]
        if argument[0] == "distinct":
            argument = argument[1]
            if argument[0] != "column" or not facts.determine_rows([name_of(argument)]):
                return term
        is_never_null = argument[0] in ("number", "text") or facts.is_not_null_column(argument)
        return ("count", ("star",)) if is_never_null else term

    return _with_terms(block, counted)


def grouping_as_distinct(block: Block, tables: Tables) -> Block | None:
    """Return a SELECT with DISTINCT for GROUP BY without aggregates; None if the condition does not hold.

    Condition: there are no aggregates and no HAVING, and the selected expressions are exactly the keys [1].
    """
    if block.group is None or block.having or aggregates_in(*block.results):
        return None
    return replace(block, group=None, is_distinct=True) if {*block.group} == {*block.select} else None


def unique_rows(block: Block, tables: Tables) -> Block | None:
    """Return a SELECT with DISTINCT, or without it if there are aggregates or GROUP BY; None if nothing changes.

    Condition: no two rows of the answer are equal, by a key of each table or by the keys of GROUP BY [3].
    """
    if not Facts(block, tables).has_unique_rows():
        return None
    wanted = not block.has_aggregates
    return replace(block, is_distinct=wanted) if block.is_distinct != wanted else None


def sort_keys(block: Block, tables: Tables) -> Block | None:
    """Return a SELECT without a sort key, or without ORDER BY if there is at most one row; None if nothing changes.

    Condition: the keys before it determine its value, or there is at most one row [1].
    """
    facts = Facts(block, tables)
    if block.order and facts.has_one_row():
        return replace(block, order=())
    for place, (key, _) in enumerate(block.order):
        earlier = [term for term, _ in block.order[:place]]
        if key in earlier or facts.is_determined(key, earlier):
            return replace(block, order=_without(block.order, place))
    return None


def limits(block: Block, tables: Tables) -> Block | None:
    """Return a SELECT without LIMIT; None if the condition does not hold.

    Condition: LIMIT allows at least one row, there is no OFFSET, and there is at most one row [1].
    """
    if block.limit is None or block.limit < 1 or block.offset or not Facts(block, tables).has_one_row():
        return None
    return replace(block, limit=None)


def derived_tables(block: Block, tables: Tables) -> Block | None:
    """Return a SELECT in which a query in FROM is replaced by its tables and conditions; None if no query fits.

    Condition: the query is joined by an inner join, and only joins and filters rows. Items that are used contain
    columns, because a constant may have another type. If rows are aggregated without GROUP BY, its columns are used in
    aggregates only: for no rows, SQLite has NULL for a column of the query, but computes its expression [1].
    """
    for alias, source in block.tables.items():
        if isinstance(source, str) or alias not in block.inner_tables or not only_joins(source):
            continue
        items = {name: term for name, term in zip(source.names, source.select, strict=True) if columns_of(term)}
        is_distinct = source.is_distinct and not Facts(source, tables).has_unique_rows()
        if is_distinct or (block.outer_joins and source.outer_joins):
            continue

        reads = reads_of(block, alias)
        if any(column[2] not in items for column in reads):
            continue
        terms = (*block.select, *(key for key, _ in block.order))  # of which columns outside of aggregates count
        is_bare = any(owner == alias for term in terms for owner, _ in bare_columns(term, ()))
        if block.has_aggregates and block.group is None and is_bare:
            continue
        outer = substituted(block.without(alias), {column: items[column[2]] for column in reads})
        return replace(
            outer,
            tables={**outer.tables, **source.tables},
            where=(*outer.where, *source.where),
            outer_joins=(*source.outer_joins, *outer.outer_joins),
        )
    return None


def outer_joins(block: Block, tables: Tables) -> Block | None:
    """Return a SELECT with an inner join for a LEFT JOIN; None if no LEFT JOIN meets the condition.

    Condition: its conditions use no table of another LEFT JOIN. In addition, one of these holds: WHERE has a condition
    that is not true if a column of the joined table is NULL; the conditions equate a foreign key that is never NULL
    with the key that it refers to, so that each row has a match; or HAVING leaves out rows without a match, which are
    groups of one row [3], [4].
    """
    facts = Facts(block, tables)
    for place, join in enumerate(block.outer_joins):
        others = {other.alias for other in block.outer_joins if other is not join}
        if any(alias in others for condition in join.conditions for alias, _ in columns_of(condition)):
            continue
        is_rejected = any(alias == join.alias for alias, _ in facts.rejected)
        if is_rejected or _always_matches(block, join, facts) or _fails_alone(block, join, facts):
            return replace(
                block,
                where=(*block.where, *join.conditions),
                outer_joins=_without(block.outer_joins, place),
            )
    return None


def _always_matches(block: Block, join: OuterJoin, facts: Facts) -> bool:
    """Return whether a LEFT JOIN only equates a foreign key that is never NULL, so that each row has a match."""
    pairs = set[tuple[Column, Column]]()
    for condition in join.conditions:
        if condition[0] != "eq" or not (condition[1][0] == condition[2][0] == "column"):
            return False
        first, second = sorted(map(name_of, condition[1:]), key=lambda name: name[0] == join.alias)
        pairs.add((first, second))
    return any(
        {*key} == pairs and all(facts.is_not_null(name) for name, _ in key)
        for owner in block.inner_tables
        for key in facts.references(owner, join.alias, pairs)
    )


def _fails_alone(block: Block, join: OuterJoin, facts: Facts) -> bool:
    """Return whether HAVING leaves out each row without a match in a LEFT JOIN, because it is a group by itself."""
    keys = [name_of(key) for key in block.group or () if key[0] == "column"]
    return any(map(_excludes_one_row, block.having)) and facts.determine_rows(keys, ignored=join.alias)


def _excludes_one_row(condition: Term) -> bool:
    """Return whether a condition on `count(*)` is false for a group of one row."""
    match condition:
        case ("lt", ("number", number), ("count", ("star",))):
            return float(number) >= 1
        case ("lte", ("number", number), ("count", ("star",))):
            return float(number) > 1
        case ("eq", ("count", ("star",)), ("number", number)):
            return float(number) != 1
    return False


def unused_outer_joins(block: Block, tables: Tables) -> Block | None:
    """Return a SELECT without a LEFT JOIN; None if no LEFT JOIN meets the condition.

    Condition: its table is not used elsewhere, and one of these holds. The conditions equate a key of the table with
    other columns or constants, so that each row has at most one match; or duplicates of rows do not matter [3], [4].
    """
    for join in block.outer_joins:
        remaining = block.without(join.alias)
        if reads_of(remaining, join.alias):
            continue
        joined = Block(tables={join.alias: block.tables[join.alias]}, where=join.conditions, select=(), names=())
        if _ignores_duplicates(block) or Facts(joined, tables).determine_rows(()):  # one match of each row at most
            return remaining
    return None


def anti_joins(block: Block, tables: Tables) -> Block | None:
    """Return a SELECT with NOT EXISTS for a LEFT JOIN and a test that a column of the joined table is NULL.

    Else None.

    Condition: the column is declared NOT NULL, and the table is used nowhere else [4], [5].
    """
    for join in block.outer_joins:
        for place, condition in enumerate(block.where):
            if condition[0] != "isnull" or condition[1][0] != "column" or condition[1][1] != join.alias:
                continue
            source = block.tables[join.alias]
            if not isinstance(source, str):
                continue
            inner = Block(tables={join.alias: source}, where=join.conditions, select=(), names=())
            remaining = replace(block.without(join.alias), where=_without(block.where, place))
            if not reads_of(remaining, join.alias) and Facts(inner, tables).is_not_null_column(condition[1]):
                return replace(remaining, where=(*remaining.where, ("not", ("exists", inner))))
    return None


def in_as_exists(block: Block, tables: Tables) -> Block | None:
    """Return a SELECT with EXISTS for IN, and NOT EXISTS for NOT IN; None if nothing changes.

    `x IN (SELECT y …)` becomes EXISTS with the condition x = y.

    Condition: the nested query only joins and filters rows; x and y are columns of one family; and IN is a condition of
    WHERE, or of AND and OR there, where NULL counts as false. For NOT IN, neither x nor y is NULL in any row [2], [5].
    """
    facts = Facts(block, tables)

    def converted(term: Term) -> Term:
        if term[0] in ("and", "or"):
            return (term[0], *(converted(part) for part in operands(term)))
        is_negated = term[0] == "not"
        inside = term[1] if is_negated else term
        if inside[0] != "in" or not only_joins(inside[2]) or not _selects_like(inside[2], inside[1]):
            return term
        nested: Block = inside[2]
        selected = nested.select[0]
        if is_negated and not (
            facts.is_not_null_column(inside[1]) and Facts(nested, tables).is_not_null_column(selected)
        ):
            return term
        where = (*nested.where, ("eq", inside[1], selected))
        exists = "exists", without_columns(replace(nested, where=where))
        return ("not", exists) if is_negated else exists

    where = tuple(map(converted, block.where))
    return replace(block, where=where) if where != block.where else None


def exists_as_join(block: Block, tables: Tables) -> Block | None:
    """Return a SELECT with a join for EXISTS; None if no EXISTS meets the condition.

    Condition: EXISTS is a condition of WHERE, the nested query only joins and filters rows, neither SELECT has a LEFT
    JOIN, and one of these holds. A key is equated with columns outside, so that each row has at most one match; or
    duplicates of rows do not matter [2], [5].
    """
    for place, condition in enumerate(block.where):
        if condition[0] != "exists" or not _only_inner_joins(condition[1]) or block.outer_joins:
            continue
        nested: Block = condition[1]
        if not (_ignores_duplicates(block) or Facts(nested, tables).determine_rows(())):
            continue
        where = _without(block.where, place) + nested.where
        return replace(block, tables={**block.tables, **nested.tables}, where=where)
    return None


def foreign_key_joins(block: Block, tables: Tables) -> Block | None:
    """Return a SELECT without a joined table; None if no table meets the condition.

    The columns that refer to its key are used instead of that key, with tests that they are not NULL.

    Condition: a foreign key is equated with all columns of the key that it refers to, and no other column of the table
    is used. So each row with a foreign key that is not NULL has exactly one match [2], [3].
    """
    facts = Facts(block, tables)
    for alias in sorted(block.inner_tables):
        for owner in sorted(block.inner_tables - {alias}):
            for pairs in _references(block, owner, alias, facts):
                equalities = {("eq", *sides) for pair in pairs for sides in (pair, pair[::-1])}
                conditions = tuple(term for term in block.where if term not in equalities)
                remaining = replace(block.without(alias), where=conditions)
                named = {key: name for name, key in pairs}
                if not reads_of(remaining, alias) <= named.keys():
                    continue
                result = substituted(remaining, named)
                return replace(result, where=(*result.where, *(("not", ("isnull", name)) for name, _ in pairs)))
    return None


def key_self_joins(block: Block, tables: Tables) -> Block | None:
    """Return a SELECT in which two uses of a table are merged; None if no two uses meet the condition.

    Condition: both are inner joins, and a key of one use is equated with the same key of the other, so that both are
    the same row [2], [3].
    """
    facts = Facts(block, tables)
    aliases = sorted(alias for alias in block.inner_tables if isinstance(block.tables[alias], str))
    for first in aliases:
        for second in aliases:
            if first >= second or block.tables[first] != block.tables[second]:
                continue
            if any(all(facts.are_equal((first, name), (second, name)) for name in key) for key in facts.keys(first)):
                reads = reads_of(block, second)
                return substituted(block.without(second), {read: ("column", first, *read[2:]) for read in reads})
    return None


def set_operation_as_condition(query: SetOperation, tables: Tables) -> Query | None:
    """Return a SELECT DISTINCT with IN for INTERSECT, or with NOT IN for EXCEPT.

    None if the condition does not hold.

    Condition: both sides return one column, of the same family, that is never NULL, and only join and filter rows [1].
    """
    left, right = query.left, query.right
    if query.operator not in ("intersect", "except") or not (_only_inner_joins(left) and _only_inner_joins(right)):
        return None
    if len(left.select) != 1 or not _selects_like(right, left.select[0]):
        return None
    if not (
        Facts(left, tables).is_not_null_column(left.select[0])
        and Facts(right, tables).is_not_null_column(right.select[0])
    ):
        return None
    condition: Term = ("in", left.select[0], replace(right, order=()))
    if query.operator == "except":
        condition = ("not", condition)
    return replace(left, where=(*left.where, condition), is_distinct=True, order=())


def _only_inner_joins(query: Query) -> TypeGuard[Block]:
    return only_joins(query) and not query.outer_joins


def _without(items: tuple[T, ...], place: int) -> tuple[T, ...]:
    return items[:place] + items[place + 1 :]


def _ignores_duplicates(block: Block) -> bool:
    """Return whether the answer does not depend on how often a row occurs before DISTINCT or aggregates."""
    aggregates = aggregates_in(*block.results)
    if block.group is None and not aggregates:
        return block.is_distinct
    return bool(aggregates) and all(node[0] in ("min", "max") or node[1][0] == "distinct" for node in aggregates)


def _references(block: Block, owner: str, alias: str, facts: Facts) -> Iterator[list[tuple[Term, Term]]]:
    """Yield the foreign keys of table `owner` to a key of table `alias` that WHERE equates, as pairs of columns."""
    equated = {
        (name_of(first), name_of(second)): (first, second)
        for pair in block.equalities
        for first, second in (pair, pair[::-1])
    }
    for names in facts.references(owner, alias, equated.keys()):
        if any({of for _, (_, of) in names} == {*key} for key in facts.keys(alias)):
            yield [equated[pair] for pair in names]


def _selects_like(nested: Query, tested: Term) -> bool:
    """Return whether a nested query selects exactly one column, of the same family as the column `tested`."""
    return isinstance(nested, Block) and len(nested.select) == 1 and have_one_family(nested.select[0], tested)


def _with_terms(block: Block, function: Callable[[Term], Term]) -> Block | None:
    """Return a SELECT with a function applied to all parts of its expressions; None if no expression changes.

    Conditions that AND joins afterwards become separate conditions.
    """
    result = block.mapped(lambda term: rewritten(term, function))
    where = tuple(part for term in result.where for part in conjuncts(term))
    having = tuple(part for term in result.having for part in conjuncts(term))
    result = replace(result, where=where, having=having)
    return result if [*result.terms] != [*block.terms] else None
