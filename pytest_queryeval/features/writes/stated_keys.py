"""Reads statements: the columns that they give values to, so that these count, and the columns that they return."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TypeAlias

from sqlglot import exp

from pytest_queryeval.languages.sql import parse_query

ColumnName: TypeAlias = tuple[str, str]  # table and column in lower case
ALL_COLUMNS = "*"
GENERATORS = frozenset(("nextval", "uuid", "gen_random_uuid", "generate_uuid", "uuidv4", "uuidv7", "newid"))


@lru_cache(maxsize=256)
def stated_columns(
    query: str, dialect: str, tables: tuple[tuple[str, tuple[str, ...]], ...]
) -> frozenset[ColumnName] | None:
    """Return the columns that the statements of `query` set to values of their own; None if a statement cannot be read.

    `tables` are the names of tables with their columns. In an INSERT, NULL, DEFAULT and functions such as `nextval`
    leave the value to the database. The column ALL_COLUMNS stands for all columns of a table.
    """
    columns_of = {name.lower(): columns for name, columns in tables}
    stated: set[ColumnName] = set()
    for statement in read_statements(query, dialect):
        if isinstance(statement, exp.Command) and statement.name.upper() != "ALTER":
            return None
        for node in statement.find_all(exp.Create, exp.Insert, exp.Merge, exp.Update):
            stated.update(_stated_by(node, columns_of))
        if isinstance(statement, exp.Alter):
            stated.update([*_renamed_columns(statement, stated, columns_of)])
    return frozenset(stated)


def read_statements(query: str, dialect: str) -> list[exp.Expr]:
    """Return the trees of statements; an `exp.Command` stands for a statement, or a whole text, that cannot be read."""
    _, statements, error = parse_query(query, dialect).statements
    if error is not None:
        return [exp.Command(this="")]
    return [
        tree
        for statement in statements
        for tree in (
            read_statements(f"INSERT {statement.text('expression')}", dialect)
            if isinstance(statement, exp.Command) and statement.name.upper() == "REPLACE"
            else [statement]
        )
    ]


@lru_cache(maxsize=256)
def returned_columns(query: str, dialect: str) -> tuple[ColumnName, ...]:
    """Return table and column of each value that the last statement with a result returns; empty if they are unknown.

    The table is empty if the column may belong to several tables. The column ALL_COLUMNS stands for a key of any name.
    """
    for statement in reversed(read_statements(query, dialect)):
        if returning := statement.args.get("returning"):
            return _origins(returning.expressions, [*statement.this.find_all(exp.Table)])
        if isinstance(statement, exp.Query):
            return _origins(statement.selects, [*statement.find_all(exp.Table)])
        if not isinstance(statement, exp.DML | exp.DDL | exp.Alter | exp.Drop | exp.TruncateTable):
            return ()
    return ()


def _origins(selects: Sequence[exp.Expr], tables: Sequence[exp.Table]) -> tuple[ColumnName, ...]:
    if any(select.is_star for select in selects):
        return ()
    names = {table.alias_or_name.lower(): table.name.lower() for table in tables}
    any_table = next(iter(names.values())) if len(names) == 1 else ""
    origins = []
    for select in selects:
        value = select.unalias()
        value = value.this if isinstance(value, exp.Max | exp.Min) else value
        if isinstance(value, exp.Column):
            origins.append((names.get(value.table.lower(), any_table), value.name.lower()))
        else:
            is_key = value.name.lower() == "last_insert_rowid"
            origins.append(("", ALL_COLUMNS if is_key else select.output_name.lower()))
    return tuple(origins)


def _table_key(table: exp.Table, columns_of: Mapping[str, Sequence[str]], schema: str = "") -> str:
    """Return the key of a table in `columns_of`: its name in lower case, with its schema if the key has one."""
    label = f"{table.db or schema}.{table.name}".lower()
    return label if label in columns_of else table.name.lower()


def _stated_by(node: exp.Expr, columns_of: Mapping[str, Sequence[str]]) -> Iterator[ColumnName]:
    target = node.find_ancestor(exp.Merge) or node
    table = target.this and target.this.find(exp.Table)
    if table is None:
        return
    name = _table_key(table, columns_of)
    match node:
        case exp.Create(args={"kind": "TABLE", "expression": exp.Expr()}):
            yield name, ALL_COLUMNS
        case exp.Update():
            yield from ((name, column) for column in _assigned_columns(node))
        case exp.Insert():
            yield from ((name, column) for column in _inserted_columns(node, columns_of.get(name)))
            if conflict := node.args.get("conflict"):
                yield from ((name, column) for column in _assigned_columns(conflict))


def _assigned_columns(node: exp.Expr) -> Iterator[str]:
    """Yield the columns that SET gives values to, single columns or lists of columns."""
    for assignment in node.expressions:
        if isinstance(assignment, exp.EQ):
            yield from (column.name.lower() for column in assignment.this.find_all(exp.Column))


def _inserted_columns(node: exp.Insert, columns_of_table: Sequence[str] | None) -> Iterator[str]:
    if node.args.get("default"):
        return
    values = node.args.get("expression")
    columns = [column.name for column in node.this.expressions] if isinstance(node.this, exp.Schema | exp.Tuple) else []
    if node.args.get("by_name") and isinstance(values, exp.Query):
        columns = values.named_selects
    rows = _value_rows(values)
    for place, column in enumerate(columns or columns_of_table or (ALL_COLUMNS,)):
        if column == ALL_COLUMNS or any(place >= len(row) or not _is_generated(row[place]) for row in rows):
            yield column.lower()


def _renamed_columns(
    node: exp.Alter, stated: set[ColumnName], columns_of: Mapping[str, Sequence[str]]
) -> Iterator[ColumnName]:
    """Yield the stated columns that an ALTER TABLE renames, or whose table it renames, by their new names."""
    name = _table_key(node.this, columns_of)
    for action in node.args.get("actions") or ():
        if isinstance(action, exp.AlterRename):
            new_name = _table_key(action.this, columns_of, node.this.db)
            yield from ((new_name, column) for table, column in stated if table == name)
        elif isinstance(action, exp.RenameColumn) and (name, action.name.lower()) in stated:
            yield name, action.args["to"].name.lower()


def _value_rows(values: exp.Expr | None) -> list[list[exp.Expr]]:
    if isinstance(values, exp.Tuple):
        return [values.expressions]
    if isinstance(values, exp.Values):
        return [row.expressions if isinstance(row, exp.Tuple) else [row] for row in values.expressions]
    if isinstance(values, exp.SetOperation):
        return [*_value_rows(values.left.unnest()), *_value_rows(values.right.unnest())]
    if isinstance(values, exp.Select):
        return [[]] if values.is_star else [values.selects]
    return [[]]


def _is_generated(value: exp.Expr) -> bool:
    value = value.unalias()
    if isinstance(value, exp.Null | exp.NextValueFor):
        return True
    name = value.name if isinstance(value, exp.Anonymous | exp.Column | exp.Var) else value.key
    return name.lower() in GENERATORS or name.upper() == "DEFAULT"
