"""The texts that a SQL query compares columns with, and queries for the values that a column has in their place."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import exp

from pytest_queryeval.core.db_schema import Schema
from pytest_queryeval.languages.sql import parse_query
from pytest_queryeval.languages.sql.columns import Columns, find_cte

MAX_VALUES = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedText:
    """A text that a query compares a table's column with, and queries for the values that the column has."""

    column: str
    """With its table, as the query writes both."""
    text: str
    alike_query: str
    """Returns the values that differ from the text in letter case and outer blanks at most, how often the column has
    each, and 1 if the value is equal to the text by the rules of the database."""
    values_query: str
    """Returns the values of the column and how often it has each, but no more than MAX_VALUES + 1 of them."""


def compared_texts(query: str, dialect: str, schema: Schema) -> Iterator[ComparedText]:
    """Yield the texts that `=`, `<>` and IN compare columns of tables with, each once.

    Yields nothing without a schema, and for a query that cannot be read.

    >>> schema = Schema(tables={"city": ("name",)})
    >>> [compared] = compared_texts("SELECT 1 FROM city AS c WHERE c.name = 'rome'", "sqlite", schema)
    >>> compared.column, compared.text, compared.values_query
    ('city.name', 'rome', 'SELECT name, COUNT(*) FROM city GROUP BY name LIMIT 10001')
    """
    shared_tree = parse_query(query, dialect).whole_tree
    if shared_tree is None or not schema.tables:
        return
    tree = shared_tree.copy()
    columns = Columns(schema.tables, dialect)
    columns.replace_texts(tree)
    compared: dict[tuple[str, str], ComparedText] = {}
    for node in tree.find_all(exp.EQ, exp.NEQ, exp.In):
        sides = [node.this, *node.expressions] if isinstance(node, exp.In) else [node.this, node.expression]
        operands = [side.unnest() for side in sides]
        texts = [side.name for side in operands if isinstance(side, exp.Literal) and side.is_string]
        for column in operands:
            if not texts or not isinstance(column, exp.Column) or (table := _table_of(column, columns)) is None:
                continue
            name = f"{table.name}.{column.name}"
            for text in texts:
                compared[name.lower(), text] = ComparedText(
                    column=name,
                    text=text,
                    alike_query=_alike_query(column, table, text).sql(dialect=dialect),
                    values_query=_values_query(column, table).limit(MAX_VALUES + 1).sql(dialect=dialect),
                )
    yield from compared.values()


def _table_of(column: exp.Column, columns: Columns) -> exp.Table | None:
    """Return the table that is known to have a column; None for a column of a nested query."""
    match = columns.find(column)
    source = match and match[0].sources[match[1]]
    if not source or not isinstance(source.node, exp.Table) or find_cte(source.node) is not None:
        return None
    return source.node if column.name.lower() in (source.columns or ()) else None


def _values_query(column: exp.Column, table: exp.Table) -> exp.Select:
    value = exp.Column(this=column.this.copy())
    bare_table = exp.Table(**{name: table.args.get(name) for name in ("this", "db", "catalog")}).copy()
    return exp.select(value, exp.Count(this=exp.Star())).from_(bare_table).group_by(value)


def _alike_query(column: exp.Column, table: exp.Table, text: str) -> exp.Select:
    value = exp.Column(this=column.this.copy())
    is_equal = exp.Case().when(value.copy().eq(exp.Literal.string(text)), "1").else_("0")
    folded = exp.Lower(this=exp.Trim(this=value.copy()))
    is_alike = folded.eq(exp.Literal.string(text.strip(" ").lower()))
    return _values_query(column, table).select(exp.Max(this=is_equal)).where(is_alike)
