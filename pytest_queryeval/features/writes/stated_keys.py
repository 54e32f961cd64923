"""The columns to which statements give values: of these a generated key counts, of all others it does not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TypeAlias

from sqlglot import exp

from pytest_queryeval.languages.sql.parsed_query import parse_query

ColumnName: TypeAlias = tuple[str, str]  # table and column in lower case
GENERATORS = frozenset(("nextval", "uuid", "gen_random_uuid", "generate_uuid", "uuidv4", "uuidv7", "newid"))


@lru_cache(maxsize=256)
def stated_columns(
    query: str, dialect: str, tables: tuple[tuple[str, tuple[str, ...]], ...]
) -> frozenset[ColumnName] | None:
    """Return the columns that the statements of `query` set to values of their own; None if they cannot be read.

    `tables` are the names of tables and columns. NULL, DEFAULT and functions such as `nextval` leave a value of an
    INSERT to the database.
    """
    _, statements, error = parse_query(query, dialect).statements
    if error is not None:
        return None
    columns_of = {name.lower(): columns for name, columns in tables}
    return frozenset(
        (table, column.lower())
        for tree in statements
        for node in tree.find_all(exp.Insert, exp.Update, exp.Merge)
        for table, column in _stated(node, columns_of)
    )


def _stated(node: exp.Expr, columns_of: Mapping[str, Sequence[str]]) -> Iterator[ColumnName]:
    target = node.find_ancestor(exp.Merge) or node
    table = target.find(exp.Table)
    if table is None:
        return
    name = table.name.lower()
    for assignment in node.args.get("expressions") or () if isinstance(node, exp.Update) else ():
        if isinstance(assignment, exp.EQ):
            yield name, assignment.this.name
    if not isinstance(node, exp.Insert):
        return
    listed = node.this.expressions if isinstance(node.this, exp.Schema | exp.Tuple) else ()
    columns = [column.name for column in listed] or columns_of.get(name, ())
    rows = _value_rows(node.args.get("expression"))
    for place, column in enumerate(columns):
        if any(place >= len(row) or not _is_generated(row[place]) for row in rows):
            yield name, column
    conflict = node.args.get("conflict")
    for assignment in (conflict.args.get("expressions") or ()) if conflict else ():
        if isinstance(assignment, exp.EQ):
            yield name, assignment.this.name


def _value_rows(values: exp.Expr | None) -> list[list[exp.Expr]]:
    if isinstance(values, exp.Tuple):
        return [values.expressions]
    if isinstance(values, exp.Values):
        return [row.expressions if isinstance(row, exp.Tuple) else [row] for row in values.expressions]
    if isinstance(values, exp.Select):
        return [[]] if values.is_star else [values.selects]
    return [[]]


def _is_generated(value: exp.Expr) -> bool:
    value = value.unalias()
    if isinstance(value, exp.Null | exp.NextValueFor):
        return True
    name = value.name if isinstance(value, exp.Anonymous | exp.Column | exp.Var) else value.key
    return name.lower() in GENERATORS or name.upper() == "DEFAULT"
