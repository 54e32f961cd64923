"""The column that a name refers to: tables, aliases, nested queries, and columns that joins make equal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import permutations, product
from math import factorial, prod
from typing import NamedTuple

from pytest_queryeval.core.db_schema import Schema

MAX_NUMBERINGS = 24
_OUTWARD = "^"


class Relation(NamedTuple):
    """An item of FROM: a table, or a query by its text.

    `name` is its text in FROM, `label` the prefix of its columns where that is another one. `columns` are the texts of
    its columns by their names, None where they are not known.
    """

    name: str
    columns: Mapping[str, str] | None = None
    label: str = ""

    def column(self, name: str) -> str:
        """Return the text of one of its columns."""
        return f"{self.label or self.name}.{(self.columns or {}).get(name, name)}"


@dataclass(slots=True)
class Scope:
    """The relations of one SELECT by their aliases, and the scope around it; all names are in lower case.

    `queries` are those of WITH; `aliases` are those of the SELECT list, which ORDER BY looks up before columns and
    other clauses after them. `budget` is how often one SELECT in it may be read, see `numberings`.
    """

    schema: Schema
    outer: Scope | None = None
    relations: dict[str, Relation] = field(default_factory=dict)
    queries: dict[str, Relation] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)
    aliases_first: bool = False
    budget: int = MAX_NUMBERINGS
    _same: dict[str, str] = field(default_factory=dict)
    _owners: dict[str, str] = field(default_factory=dict)
    _unknown: list[str] = field(default_factory=list)

    def within(self) -> Scope:
        """Return a scope for a query within this one."""
        return Scope(self.schema, self, budget=self.budget)

    def table(self, name: str, text: str) -> Relation:
        """Return a table with its columns in the schema; `text` is the name with what else FROM says about it."""
        columns = self.schema.tables.get(name)
        return Relation(text, None if columns is None else {column: column for column in columns})

    def add(self, alias: str, relation: Relation) -> str:
        """Add a relation; return its alias, another one where that is taken."""
        alias = alias if alias not in self.relations else f"{alias} {len(self.relations)}"
        self.relations[alias] = relation
        for column in relation.columns or ():
            self._owners.setdefault(column, alias)
        if relation.columns is None:
            self._unknown.append(alias)
        return alias

    def numberings(self) -> Iterator[Scope]:
        """Yield the scope with each way to number what FROM has more than once.

        A table that is joined with itself needs a number to distinguish its columns, and no order of such tables is
        given. So readers take the numbering with the smallest text. If there are more ways than `budget`, which nested
        queries share, only the order of the text is tried.
        """
        count = Counter([relation.name for relation in self.relations.values()])
        if len(count) == len(self.relations):
            yield self
            return
        repeated = {
            name: [alias for alias, relation in self.relations.items() if relation.name == name]
            for name, times in count.items()
            if times > 1
        }
        ways = prod(factorial(min(len(aliases), MAX_NUMBERINGS)) for aliases in repeated.values())
        known = ways <= self.budget
        orders = product(*map(permutations, repeated.values())) if known else iter([tuple(repeated.values())])
        for order in orders:
            relations = dict(self.relations)
            for aliases in order:
                for number, alias in enumerate(aliases, start=1):
                    relations[alias] = relations[alias]._replace(label=f"{relations[alias].name}#{number}")
            budget = self.budget // ways if known else 1
            yield replace(self, relations=relations, aliases={}, budget=budget, _same={})

    def named_query(self, name: str) -> Relation | None:
        """Return the query of WITH with this name, here or further out."""
        found = self.queries.get(name)
        return found or (self.outer.named_query(name) if self.outer else None)

    def column(self, table: str, name: str) -> str:
        """Return the text of a column: `table.column`, with a mark for each query in between.

        Columns that a join makes equal have one text. An unknown name stays as it is, unless there is a single relation
        whose columns are not known.
        """
        if table:
            return self._qualified(table, name) or f"{table}.{name}"
        alias = self.aliases.get(name)
        if alias and self.aliases_first:
            return alias
        found = self._unqualified(name) or alias
        if not found and len(self._unknown) == 1:
            found = self.representative(self.relations[self._unknown[0]].column(name))
        return found or name

    def owner(self, table: str, name: str) -> str | None:
        """Return the alias, in this scope, of the relation that has a column; None where that is not known."""
        if table:
            return table if table in self.relations else None
        return self._owners.get(name)

    def is_column(self, name: str) -> bool:
        """Return whether the schema or a nested query is known to have a column of this name."""
        return self._unqualified(name) is not None

    def knows_all_columns(self) -> bool:
        """Return whether every relation, here and further out, is a query or a table of the schema."""
        return not self._unknown and (self.outer is None or self.outer.knows_all_columns())

    def join_columns(self, first: str, second: str) -> None:
        """Treat two texts of columns as equal from now on."""
        one, other = self.representative(first), self.representative(second)
        if one != other:
            self._same[max(one, other)] = min(one, other)

    def representative(self, text: str) -> str:
        """Return the one text of all columns that are equal to this one."""
        while text in self._same:
            text = self._same[text]
        return text

    def equal_columns(self) -> list[str]:
        """Return the columns that the joins make equal, each set as one text."""
        sets: dict[str, set[str]] = {}
        for text in self._same:
            least = self.representative(text)
            sets.setdefault(least, {least}).add(text)
        return sorted(" = ".join(sorted(members)) for members in sets.values())

    def has_column(self, alias: str, name: str) -> bool:
        """Return whether a relation of this scope is known to have a column."""
        return name in (self.relations[alias].columns or ())

    def shared_columns(self, alias: str, others: Iterable[str]) -> list[str]:
        """Return the columns of a relation that one of the others has too, as NATURAL JOIN compares them."""
        columns = self.relations[alias].columns or ()
        return [name for name in columns if any(self.has_column(other, name) for other in others)]

    def _qualified(self, table: str, name: str) -> str | None:
        if relation := self.relations.get(table):
            return self.representative(relation.column(name))
        return self._marked(self.outer._qualified(table, name)) if self.outer else None

    def _unqualified(self, name: str) -> str | None:
        alias = self._owners.get(name)
        if alias is not None:
            return self.representative(self.relations[alias].column(name))
        return self._marked(self.outer._unqualified(name)) if self.outer else None

    def _marked(self, text: str | None) -> str | None:
        """Mark a column from further out; scopes that hold nothing but WITH do not count."""
        return f"{_OUTWARD}{text}" if text and self.relations else text
