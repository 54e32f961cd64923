"""The rules of proofs: each rewrites a SELECT into one with the same answer, on all data that keeps the constraints.

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

from collections.abc import Callable
from dataclasses import replace

from pytest_queryeval.core.db_schema import Tables
from pytest_queryeval.features.challenge.proof.query import (
    AGGREGATES,
    Block,
    Facts,
    Term,
    columns_of,
    conjuncts,
    have_one_family,
    name_of,
    nodes,
    operands,
    rewritten,
)

_COMPARISONS = frozenset(("eq", "neq", "lt", "lte"))
_NEGATED = {"eq": "neq", "neq": "eq"}
_REVERSED = {"lt": "lte", "lte": "lt"}


def negation(block: Block, tables: Tables) -> Block | None:
    """Move NOT inwards: over comparisons, NOT, AND and OR (De Morgan).

    Condition: none; in three-valued logic both sides are NULL together [1].
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


def constants(block: Block, tables: Tables) -> Block | None:
    """Carry out arithmetic of whole numbers that are compared, and leave out a comparison of two of them that holds.

    Condition: all numbers have at most nine digits, so that nothing overflows [6]. What is not compared stays, since
    DuckDB adds 1 + 1 and 2 to a column of small integers with different limits.
    """

    def value(term: Term) -> int | None:
        number = int(term[1]) if term[0] == "number" and term[1].lstrip("-").isdigit() else None
        if term[0] in ("add", "sub", "mul"):
            first, second = map(value, operands(term))
            if first is not None and second is not None:
                number = {"add": first + second, "sub": first - second, "mul": first * second}[term[0]]
        return number if number is not None and abs(number) < 10**9 else None

    def folded(term: Term) -> Term:
        if term[0] not in _COMPARISONS:
            return term
        values = map(value, operands(term))
        return term[0], *(
            part if number is None else ("number", str(number)) for part, number in zip(term[1:], values, strict=True)
        )

    def holds(condition: Term) -> bool:
        if condition[0] not in ("eq", "lt", "lte"):
            return False
        first, second = map(value, operands(condition))
        if first is None or second is None:
            return False
        return {"eq": first == second, "lt": first < second, "lte": first <= second}[condition[0]]

    result = _with_terms(block, folded) or block
    where = tuple(condition for condition in result.where if not holds(condition))
    if len(where) < len(result.where):
        return replace(result, where=where)
    return result if result is not block else None


def not_null_tests(block: Block, tables: Tables) -> Block | None:
    """Leave out a test that a column is not NULL, and write one for `x = x`.

    Condition: it is declared NOT NULL and belongs to an inner join, or another condition is not true if it is NULL [1].
    """
    for place, condition in enumerate(block.where):
        if condition[0] == "eq" and condition[1] == condition[2] and condition[1][0] == "column":
            test = "not", ("isnull", condition[1])
            return replace(block, where=(*block.where[:place], test, *block.where[place + 1 :]))
        if condition[0] == "not" and condition[1][0] == "isnull":
            without_condition = replace(block, where=block.where[:place] + block.where[place + 1 :])
            if Facts(without_condition, tables).not_null(condition[1][1]):
                return without_condition
    return None


def counts(block: Block, tables: Tables) -> Block | None:
    """Write `count(*)` for `count(x)` and `count(DISTINCT x)`.

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
        is_never_null = argument[0] in ("number", "text") or facts.not_null(argument)
        return ("count", ("star",)) if is_never_null else term

    return _with_terms(block, counted)


def distinct_extremes(block: Block, tables: Tables) -> Block | None:
    """Write `min(x)` and `max(x)` for `min(DISTINCT x)` and `max(DISTINCT x)`.

    Condition: none; duplicates do not change extremes [1].
    """

    def without_distinct(term: Term) -> Term:
        if term[0] in ("min", "max") and term[1][0] == "distinct":
            return term[0], term[1][1]
        return term

    return _with_terms(block, without_distinct)


def in_single_row(block: Block, tables: Tables) -> Block | None:
    """Write `x = (SELECT …)` for `x IN (SELECT …)`.

    Condition: the nested query aggregates all rows to one; x is not of the type REAL of SQLite, to which IN converts
    large integers, unless the other value is of this type, or no large integer [2], [6].
    """

    def compared(term: Term) -> Term:
        if term[0] != "in" or not isinstance(term[2], Block) or not term[2].has_aggregates:
            return term
        nested: Block = term[2]
        has_one_row = nested.group is None and not nested.having and nested.limit is None
        item = nested.select[0]
        is_alike = item[0] in ("count", "avg") or (item[0] in ("min", "max") and have_one_family(term[1], item[1]))
        return ("eq", term[1], ("query", nested)) if has_one_row and (is_alike or not may_be_real(term[1])) else term

    def may_be_real(term: Term) -> bool:
        if term[0] == "column":
            return term[3] == "real" or (not term[3] and not isinstance(block.tables.get(term[1]), str))
        return term[0] in ("Cast", "query")

    return _with_terms(block, compared)


def grouping_as_distinct(block: Block, tables: Tables) -> Block | None:
    """Write DISTINCT for GROUP BY without aggregates.

    Condition: there are no aggregates and no HAVING, and what is selected are the keys [1].
    """
    terms = (*block.select, *block.having, *(key for key, _ in block.order))
    if block.group is None or block.having or any(node[0] in AGGREGATES for term in terms for node in nodes(term)):
        return None
    return replace(block, group=None, is_distinct=True) if {*block.group} == {*block.select} else None


def having_on_keys(block: Block, tables: Tables) -> Block | None:
    """Move a condition of HAVING to WHERE.

    Condition: there is GROUP BY, and the condition has no aggregates and no columns but keys of which equal values are
    the same [1].
    """
    for place, condition in enumerate(block.having if block.group is not None else ()):
        keys = {name_of(key) for key in block.group or () if have_one_family(key, key)}
        if any(node[0] in AGGREGATES for node in nodes(condition)) or not {*columns_of(condition)} <= keys:
            continue
        having = block.having[:place] + block.having[place + 1 :]
        return replace(block, having=having, where=(*block.where, *conjuncts(condition)))
    return None


def unique_rows(block: Block, tables: Tables) -> Block | None:
    """Add DISTINCT to rows, and leave it out of groups.

    Condition: no two rows of the answer are equal, by a key of each table or by the keys of GROUP BY [3].
    """
    if not Facts(block, tables).has_unique_rows():
        return None
    wanted = not block.has_aggregates
    return replace(block, is_distinct=wanted) if block.is_distinct != wanted else None


def sort_keys(block: Block, tables: Tables) -> Block | None:
    """Leave out a sort key.

    Condition: the keys before it determine its value, or there is one row at most [1].
    """
    facts = Facts(block, tables)
    if block.order and facts.has_one_row():
        return replace(block, order=())
    for place, (key, _) in enumerate(block.order):
        earlier = [term for term, _ in block.order[:place]]
        if key in earlier or facts.is_determined(key, earlier):
            return replace(block, order=block.order[:place] + block.order[place + 1 :])
    return None


def limits(block: Block, tables: Tables) -> Block | None:
    """Leave out LIMIT.

    Condition: it allows a row, and there is one row at most [1].
    """
    if block.limit is None or block.limit < 1 or block.offset or not Facts(block, tables).has_one_row():
        return None
    return replace(block, limit=None)


def _with_terms(block: Block, function: Callable[[Term], Term]) -> Block | None:
    """Return a SELECT with a function applied to all parts of its expressions; None if nothing changes."""
    result = block.mapped(lambda term: rewritten(term, function))
    where = tuple(part for term in result.where for part in conjuncts(term))
    having = tuple(part for term in result.having for part in conjuncts(term))
    result = replace(result, where=where, having=having)
    return result if [*result.terms] != [*block.terms] else None
