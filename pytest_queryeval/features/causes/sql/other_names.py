"""Other names in the place of those that a database does not have, or that several of its tables have."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from difflib import SequenceMatcher
from typing import TypeAlias, TypeVar

from sqlglot import exp

from pytest_queryeval.core.db_schema import Schema
from pytest_queryeval.features.causes.failed import FailedQuery
from pytest_queryeval.features.causes.sql.aligned import key
from pytest_queryeval.languages.sql.parsed_query import parse_query
from pytest_queryeval.languages.sql.trees.columns import Columns, Names, common_query

MIN_LIKENESS = 0.6  # of the spelling of two names
MAX_NAMES = 4  # that are tried in the place of one
_BONUS = 0.2  # to the likeness, for each reason that speaks for a name
_NAME = re.compile(r"\w+")
_HINT = re.compile(r"did you mean|perhaps you meant|candidate|\bhint\b|LINE \d", re.IGNORECASE)
T = TypeVar("T")
Replacements: TypeAlias = list[tuple[exp.Expr, exp.Expr]]


def with_other_names(tree: exp.Expr, query: FailedQuery) -> Iterator[exp.Expr]:
    """Yield the query with other names in the place of those that the message is about, or with the table of one."""
    match = _HINT.search(query.message)
    names_in_message = {*_NAME.findall(query.message[: match.start() if match else None].lower())}
    gold = parse_query(query.gold, query.dialect).tree
    gold_names = _names(gold) - _names(tree) if gold is not None else frozenset()
    numbers = {id(node): number for number, node in enumerate(tree.walk())}
    for replacements in _tables(tree, names_in_message, query.schema, gold_names):
        yield _replaced(tree, replacements, numbers)
    columns = Columns(query.schema.tables, query.dialect)
    unclear = [(node, columns.names_at(node)) for node in tree.find_all(exp.Column)]
    unclear = [
        (column, names)
        for column, names in unclear
        if names is not None
        and {column.name.lower(), column.table.lower()} & names_in_message
        and not _is_clear(column, names)
    ]
    for column, names in unclear[:1]:
        assert names is not None
        joined = (_joined(tree.copy(), numbers, column, names, *way) for way in _ways(column, names, query.schema))
        if column.table.lower() in query.schema.tables.keys() - {*_tables_of(names)}:
            yield from joined
            continue
        for new in _columns(column, names, gold_names):
            uses = [node for node in tree.find_all(exp.Column) if key(node) == key(column)]
            select = column.find_ancestor(exp.Select)
            same = [node for node in uses if node.find_ancestor(exp.Select) is select]
            yield _replaced(tree, [(node, new) for node in same], numbers)
        yield from joined


def _names(tree: exp.Expr) -> frozenset[str]:
    return frozenset(node.name.lower() for node in tree.find_all(exp.Identifier))


def _replaced(tree: exp.Expr, replacements: Replacements, numbers: Mapping[int, int]) -> exp.Expr:
    """Return a copy of a tree with other nodes; `numbers` are the places of its nodes by their ids."""
    copy = tree.copy()
    nodes = list(copy.walk())
    for node, new in replacements:
        nodes[numbers[id(node)]].replace(new.copy())
    return copy


def _tables(
    tree: exp.Expr, names_in_message: Collection[str], schema: Schema, gold_names: Collection[str]
) -> Iterator[Replacements]:
    """Yield the names of tables like one that the message names and the database does not have."""
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
            yield [(node, exp.to_identifier(table_name)) for node in uses]
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


def _ways(column: exp.Column, names: Names, schema: Schema) -> Iterator[tuple[str, exp.Expr]]:
    """Yield each table that has a column of this name, and how a foreign key joins it to those in FROM."""
    tables = _tables_of(names)
    for foreign_key in schema.foreign_keys:
        for (table, end), (joined, joined_end) in (foreign_key, foreign_key[::-1]):
            if table in tables and joined not in tables and column.name.lower() in schema.tables.get(joined, ()):
                ends = exp.column(end, table=tables[table]), exp.column(joined_end, table=joined)
                yield joined, exp.EQ(this=ends[0], expression=ends[1])


def _joined(
    tree: exp.Expr, numbers: Mapping[int, int], column: exp.Column, names: Names, table: str, condition: exp.Expr
) -> exp.Expr:
    """Join a table in the SELECT of a column, which becomes a column of it, in a copy of its tree."""
    select = list(tree.walk())[numbers[id(names.select)]]
    for node in [node for node in select.find_all(exp.Column) if key(node) == key(column)]:
        node.set("table", exp.to_identifier(table))
    select.append("joins", exp.Join(this=exp.to_table(table), on=condition))
    return tree


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
