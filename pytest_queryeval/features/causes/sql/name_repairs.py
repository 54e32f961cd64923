"""Repairs of the names in a SQL query that a database does not have, or that several of its tables have."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from difflib import SequenceMatcher
from functools import partial
from itertools import chain
from typing import TypeVar

from sqlglot import exp

from pytest_queryeval.core.db_schema import Schema
from pytest_queryeval.features.causes.repair import FailedQuery
from pytest_queryeval.features.causes.sql.changes import Step, add_join, changed_copy, rename_table, replace_step
from pytest_queryeval.features.causes.sql.parts import key
from pytest_queryeval.languages.sql import parse_query
from pytest_queryeval.languages.sql.columns import Columns, Names, common_query

MIN_LIKENESS = 0.6  # of the spelling of two names
MAX_NAMES = 4  # that are tried in the place of one
_BONUS = 0.2  # to the likeness, for each reason that speaks for a name
_NAME = re.compile(r"\w+")
_HINT = re.compile(r"did you mean|perhaps you meant|candidate|\bhint\b|LINE \d", re.IGNORECASE)
T = TypeVar("T")


def with_other_names(tree: exp.Expr, query: FailedQuery) -> Iterator[exp.Expr]:
    """Yield the query with other names in the place of those that the message is about, or with the table of one."""
    match = _HINT.search(query.message)
    names_in_message = {*_NAME.findall(query.message[: match.start() if match else None].lower())}
    gold = parse_query(query.gold, query.dialect).tree
    gold_names = _names(gold) - _names(tree) if gold is not None else frozenset()
    steps_of_repairs = chain(
        _other_tables(tree, names_in_message, query.schema, gold_names),
        _other_columns(tree, names_in_message, query, gold_names),
    )
    yield from (changed_copy(tree, steps) for steps in steps_of_repairs)


def _other_columns(
    tree: exp.Expr, names_in_message: set[str], query: FailedQuery, gold_names: Collection[str]
) -> Iterator[list[Step]]:
    """Yield the steps to other columns in the place of the first one that the message names and that is not clear.

    Where no item of FROM has the name of its table, only joins are tried.
    """
    columns = Columns(query.schema.tables, query.dialect)
    for column in tree.find_all(exp.Column):
        names = columns.names_at(column)
        is_named = {column.name.lower(), column.table.lower()} & names_in_message
        if names is None or not is_named or _is_clear(column, names):
            continue
        if column.table.lower() not in query.schema.tables.keys() - {*_tables_of(names)}:
            equal_columns = [node for node in tree.find_all(exp.Column) if key(node) == key(column)]
            select = column.find_ancestor(exp.Select)
            uses = [node for node in equal_columns if node.find_ancestor(exp.Select) is select]
            for new in _columns(column, names, gold_names):
                yield [replace_step(node, new) for node in uses]
        yield from _joins(column, names, query.schema)
        return


def _names(tree: exp.Expr) -> frozenset[str]:
    return frozenset(node.name.lower() for node in tree.find_all(exp.Identifier))


def _other_tables(
    tree: exp.Expr, names_in_message: Collection[str], schema: Schema, gold_names: Collection[str]
) -> Iterator[list[Step]]:
    """Yield the steps to the names of tables like one that the message names and the database does not have."""
    for table in tree.find_all(exp.Table):
        name = table.name.lower()
        if name not in names_in_message or name in schema.tables or common_query(table) is not None:
            continue
        uses = [node for node in tree.find_all(exp.Identifier) if node.name.lower() == name]
        uses = [node for node in uses if node.parent is table or node.arg_key == "table"]
        likenesses = {
            table_name: (_likeness(name, table_name), table_name in gold_names) for table_name in schema.tables
        }
        for table_name in _best(likenesses):
            yield [replace_step(node, exp.to_identifier(table_name)) for node in uses]
        return


def _columns(column: exp.Column, names: Names, gold_names: Collection[str]) -> Iterator[exp.Expr]:
    """Yield what can stand in the place of a column: columns of its name or like it, or the text between its quotes."""
    written, quoted = column.name, bool(column.this.args.get("quoted"))
    is_known = bool(names.owners(written.lower()))
    if quoted and not is_known and not column.table:
        yield exp.Literal.string(written)
    likenesses = {}
    for alias, source in names.sources.items():
        is_meant = column.table.lower() in (alias, source.node.name.lower())
        for name in source.columns or ():
            bonuses = is_meant + (name in gold_names) + (source.node.name.lower() in gold_names) / 2
            likenesses[alias, name] = (_likeness(written.lower(), name), bonuses)
    for alias, name in _best(likenesses):
        is_qualified = len(names.sources) > 1 or bool(column.table)
        identifier = exp.to_identifier(written if name == written.lower() else name, quoted=quoted)
        yield exp.column(identifier, table=names.sources[alias].node.alias_or_name if is_qualified else None)


def _is_clear(column: exp.Column, names: Names) -> bool:
    """Return whether a column is one of the tables of its query, and of only one of them."""
    name = column.name.lower()
    if not column.table:
        return len(names.owners(name)) == 1 or (not names.owners(name) and names.find_known(name) is not None)
    match = names.find(column.table.lower(), name)
    columns = None if match is None else match[0].sources[match[1]].columns
    return match is not None and (columns is None or name in columns)


def _tables_of(names: Names) -> dict[str, str]:
    """Return the aliases of the items of FROM by the names of their tables."""
    return {source.node.name.lower(): source.node.alias_or_name for source in names.sources.values()}


def _joins(column: exp.Column, names: Names, schema: Schema) -> Iterator[list[Step]]:
    """Yield the steps that join a table with a column of this name by a foreign key, and make it the column's table."""
    tables = _tables_of(names)
    uses = [node for node in names.select.find_all(exp.Column) if key(node) == key(column)]
    for foreign_key in schema.foreign_keys:
        for (table, end), (joined, joined_end) in (foreign_key, foreign_key[::-1]):
            if table in tables and joined not in tables and column.name.lower() in schema.tables.get(joined, ()):
                ends = exp.column(end, table=tables[table]), exp.column(joined_end, table=joined)
                join = exp.Join(this=exp.to_table(joined), on=exp.EQ(this=ends[0], expression=ends[1]))
                rename = partial(rename_table, name=joined)
                yield [*((node, rename) for node in uses), (names.select, partial(add_join, join=join))]


def _likeness(name: str, known_name: str) -> float:
    """Return how alike two names are spelled; 1 if they differ in plural or underscores only.

    >>> _likeness("singers", "singer"), _likeness("birthyear", "birth_year")
    (1.0, 1.0)
    """
    singular, known_singular = ("".join(map(_without_plural, text.split("_"))) for text in (name, known_name))
    return SequenceMatcher(None, singular, known_singular, autojunk=False).ratio()


def _without_plural(word: str) -> str:
    return word.removesuffix("s") if len(word) > 2 and not word.endswith("ss") else word


def _best(likenesses: Mapping[T, tuple[float, float]]) -> list[T]:
    """Return the likeliest names by their likeness and the number of reasons for them: those that are equal, if any."""
    is_equal = any(likeness == 1 for likeness, _ in likenesses.values())
    least = 1 if is_equal else MIN_LIKENESS
    likely = [name for name, (likeness, _) in likenesses.items() if likeness >= least]
    return sorted(likely, key=lambda name: -likenesses[name][0] - _BONUS * likenesses[name][1])[:MAX_NAMES]
