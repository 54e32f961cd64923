"""The texts of columns: with their tables, as one text where joins make them equal, with what nested queries select."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import permutations, product
from math import factorial, prod
from typing import NamedTuple

from sqlglot import exp

from pytest_queryeval.languages.sql.trees.columns import Names

MAX_NUMBERINGS = 24
_OUTWARD = "^"


class Relation(NamedTuple):
    """An item of FROM: a table, or a query by its text.

    `name` is its text in FROM, `label` the prefix of its columns where that is another one. `columns` are the texts of
    its columns by their names, where these differ.
    """

    name: str
    columns: Mapping[str, str] | None = None
    label: str = ""

    def column(self, name: str) -> str:
        """Return the text of one of its columns."""
        return f"{self.label or self.name}.{(self.columns or {}).get(name, name)}"


@dataclass(slots=True)
class Scope:
    """The texts of what the names of one SELECT refer to, and the scope around it; all names are in lower case.

    `relations` are the items of FROM by their aliases in `names`. `queries` are those of WITH; `aliases` are those of
    the SELECT list, which ORDER BY looks up before columns and other clauses after them. `budget` is how often one
    SELECT in it may be read, see `numberings`.
    """

    outer: Scope | None = None
    names: Names | None = None
    relations: dict[str, Relation] = field(default_factory=dict)
    queries: dict[str, Relation] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)
    aliases_first: bool = False
    budget: int = MAX_NUMBERINGS
    _same: dict[str, str] = field(default_factory=dict)

    def within(self, names: Names | None = None) -> Scope:
        """Return a scope for a query within this one."""
        return Scope(self, names, budget=self.budget)

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
        tries_all = ways <= self.budget
        orders = product(*map(permutations, repeated.values())) if tries_all else iter([tuple(repeated.values())])
        for order in orders:
            relations = dict(self.relations)
            for aliases in order:
                for number, alias in enumerate(aliases, start=1):
                    relations[alias] = relations[alias]._replace(label=f"{relations[alias].name}#{number}")
            budget = self.budget // ways if tries_all else 1
            yield replace(self, relations=relations, aliases={}, budget=budget, _same={})

    def named_query(self, name: str) -> Relation | None:
        """Return the query of WITH with this name, here or further out."""
        query = self.queries.get(name)
        return query or (self.outer.named_query(name) if self.outer else None)

    def column(self, table: str, name: str) -> str:
        """Return the text of a column: `table.column`, with a mark for each query in between.

        Columns that a join makes equal have one text. A name that refers to nothing stays as it is.
        """
        alias = "" if table else self.aliases.get(name, "")
        if alias and self.aliases_first:
            return alias
        scope = self._nearest_select()
        if scope is None or scope.names is None:
            match = None
        elif alias:
            match = scope.names.find_known(name, scope.relations)
        else:
            match = scope.names.find(table, name, scope.relations)
        return self._text(match, name) or alias or (f"{table}.{name}" if table else name)

    def owner(self, column: exp.Column) -> str | None:
        """Return the alias, in this scope, of the relation that has a column; None if that is not known."""
        assert self.names is not None
        table = column.table.lower()
        if table:
            return table if table in self.relations else None
        match = self.names.find_known(column.name.lower())
        return match[1] if match is not None and match[0] is self.names else None

    def is_text(self, column: exp.Column) -> bool:
        """Return whether a name in double quotes is a text."""
        scope = self._nearest_select() if column.this.args.get("quoted") else None
        return scope is not None and scope.names is not None and scope.names.is_text(column)

    def join_columns(self, first: str, second: str) -> None:
        """Treat two texts of columns as equal from now on."""
        texts = {self.representative(first), self.representative(second)}
        if len(texts) > 1:
            self._same[max(texts)] = min(texts)

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

    def _nearest_select(self) -> Scope | None:
        """Return the scope of the nearest SELECT: those of WITH and of set operations have no names."""
        scope: Scope | None = self
        while scope is not None and scope.names is None:
            scope = scope.outer
        return scope

    def _text(self, match: tuple[Names, str] | None, name: str) -> str | None:
        """Return the text of a column of an item of FROM, here or further out."""
        scope: Scope | None = self
        marks = ""
        while match is not None and scope is not None:
            if scope.names is match[0]:
                relation = scope.relations.get(match[1])  # None within the item itself, if it is LATERAL
                return None if relation is None else marks + scope.representative(relation.column(name))
            marks += _OUTWARD if scope.relations else ""
            scope = scope.outer
        return None
