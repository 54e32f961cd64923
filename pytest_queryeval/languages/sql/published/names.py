"""Names of tables and columns as the published parser of Spider resolves them, with and without a schema."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Protocol, TypeAlias

from pytest_queryeval.core.db_schema import Column, Schema
from pytest_queryeval.languages.sql.published.tokens import END, UnreadableQueryError, word_text

STAR: Column = ("", "*")
Aliases: TypeAlias = Mapping[str, str]
_RESERVED = frozenset(
    {"all", "and", "as", "asc", "between", "by", "case", "cast", "cross", "desc", "distinct", "else", "end", "except"}
    | {"exists", "from", "full", "group", "having", "in", "inner", "intersect", "is", "join", "left", "like", "limit"}
    | {"natural", "not", "null", "offset", "on", "or", "order", "outer", "right", "select", "then", "union", "using"}
    | {"when", "where"}
)
_AGGREGATES = frozenset({"none", "max", "min", "count", "sum", "avg"})
_WORD = re.compile(r"[^\W\d]\w*(?:\.\w+)?")


class Names(Protocol):
    """The lookup of names for the reader; each method raises `UnreadableQueryError` for an unknown name."""

    def __hash__(self) -> int:
        """Hash by identity, for caches."""

    def equal_columns(self, tables: Iterable[Hashable]) -> Mapping[Column, Column]:
        """Return the representative of each column of these tables that foreign keys make equal to others."""

    def aliases(self, tokens: Sequence[str]) -> Aliases:
        """Return each alias of the query with what precedes its AS, over the whole text: a later one wins."""

    def table(self, name: str, aliases: Aliases) -> str:
        """Return the table that a name in FROM refers to."""

    def column(self, name: str, aliases: Aliases, tables: Iterable[str]) -> Column:
        """Return the column that a name refers to, in a query from these tables."""


class _SchemaNames:
    """Names of a known database: an unqualified name is a column of the first table in FROM that has it."""

    def __init__(self, schema: Schema) -> None:
        self.tables = {table: frozenset(columns) for table, columns in schema.tables.items()}
        self._equal: dict[Hashable, dict[Column, Column]] = {}
        for column, representative in _representatives(schema).items():
            self._equal.setdefault(column[0], {})[column] = representative

    def equal_columns(self, tables: Iterable[Hashable]) -> Mapping[Column, Column]:
        return {
            column: representative for table in tables for column, representative in self._equal.get(table, {}).items()
        }

    def aliases(self, tokens: Sequence[str]) -> Aliases:
        aliases = _scanned_aliases(tokens)
        for alias in aliases:
            if alias in self.tables:
                raise UnreadableQueryError(f"the alias {word_text(alias)} is a table's name")
        return aliases

    def table(self, name: str, aliases: Aliases) -> str:
        table = aliases.get(name, name)
        if table not in self.tables:
            raise UnreadableQueryError(f"no table {word_text(name)}")
        return table

    def column(self, name: str, aliases: Aliases, tables: Iterable[str]) -> Column:
        if name == "*":
            return STAR
        owner, dot, column = name.partition(".")
        if dot:
            owner = aliases.get(owner, owner)
            if column in self.tables.get(owner, ()):
                return owner, column
        else:
            for table in tables:
                if name in self.tables[table]:
                    return table, name
        raise UnreadableQueryError(f"no column {word_text(name)}")


class _AnyNames:
    """Names of an unknown database: any word that is not a word of SQL.

    What only a schema can distinguish from a name is rejected: aliases without AS, functions, items without a comma.
    """

    def equal_columns(self, tables: Iterable[Hashable]) -> Mapping[Column, Column]:
        return {}

    def aliases(self, tokens: Sequence[str]) -> Aliases:
        for word, following in pairwise(tokens):
            if _is_name(word) and (following == "(" or _is_name(following)):
                raise UnreadableQueryError(f"{word_text(following)} after the name {word_text(word)}")
        return _scanned_aliases(tokens)

    def table(self, name: str, aliases: Aliases) -> str:
        return self._require_name(aliases.get(name, name))

    def column(self, name: str, aliases: Aliases, tables: Iterable[str]) -> Column:
        if name == "*":
            return STAR
        owner, _, column = self._require_name(name).rpartition(".")
        return aliases.get(owner, owner), column

    def _require_name(self, name: str) -> str:
        if not _is_name(name):
            raise UnreadableQueryError(f"{word_text(name)} is not a name")
        return name


ANY_NAMES = _AnyNames()


@lru_cache(maxsize=256)
def names_of(schema: Schema | None) -> Names:
    """Return the lookup of a schema, built once; without tables any name is known."""
    return _SchemaNames(schema) if schema is not None and schema.tables else ANY_NAMES


def _scanned_aliases(tokens: Sequence[str]) -> dict[str, str]:
    """Return all aliases, whatever their scope: one of a nested query also counts outside of it."""
    aliases = {}
    for at, word in enumerate(tokens):
        if word == "as":
            if tokens[at + 1] == END:
                raise UnreadableQueryError("nothing after AS")
            aliases[tokens[at + 1]] = tokens[at - 1]
    return aliases


def _is_name(token: str) -> bool:
    return _WORD.fullmatch(token) is not None and token not in _RESERVED and token not in _AGGREGATES


def _representatives(schema: Schema) -> dict[Column, Column]:
    """Return for each column of a foreign key the first one of the schema among those that equal it.

    Sets are built in the order of the keys, and two that a later key connects stay two, as published.
    """
    groups: list[dict[Column, None]] = []
    for first, second in schema.foreign_keys:
        group = next((group for group in groups if first in group or second in group), None)
        if group is None:
            groups.append(group := {})
        group |= {first: None, second: None}
    columns = ((table, column) for table, columns in schema.tables.items() for column in columns)
    places = {column: place for place, column in enumerate(columns)}
    representatives: dict[Column, Column] = {}
    for group in groups:
        representatives |= dict.fromkeys(group, min(group, key=lambda column: places.get(column, len(places))))
    return representatives
