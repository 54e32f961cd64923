"""SQL queries, read by the grammar of Spider and by sqlglot; `parse_query` parses each text once."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

from pytest_queryeval.core.db_schema import Schema
from pytest_queryeval.languages.sql.spider_grammar import UnreadableQueryError, published_view
from pytest_queryeval.languages.sql.view import FEATURES, Feature, hardness

if TYPE_CHECKING:
    from sqlglot import exp

    from pytest_queryeval.languages.sql.parsing import Statements, Tree
    from pytest_queryeval.languages.sql.tree_reader import Reading


MAX_QUERIES = 64  # those of a few cases; the garbage collector walks through their trees
MAX_READINGS = 2048
NO_SCHEMA = Schema()


@dataclass(eq=False)
class ParsedQuery:
    """A query in a dialect; get it from `parse_query`.

    What its properties compute is computed on first use and kept. sqlglot is imported when it is needed: the published
    grammar often suffices for difficulty.
    """

    text: str
    dialect: str

    @cached_property
    def statements(self) -> Statements:
        """The result of a strict parse of the whole text, whatever its length."""
        from pytest_queryeval.languages.sql.parsing import read_statements

        return read_statements(self.text, self.dialect)

    @property
    def tree(self) -> exp.Expr | None:
        """The tree of the query, or of the part that can be read; None if nothing can. It is shared.

        Change only copies.
        """
        return self.tree_and_problem.tree

    @property
    def whole_tree(self) -> exp.Expr | None:
        """The tree of the query; None if it cannot be read as a whole. It is shared: change only copies."""
        return None if self.tree_and_problem.problem else self.tree_and_problem.tree

    @property
    def problem(self) -> str:
        """Why and where the query cannot be read as a whole; empty if it can."""
        return self.reading(NO_SCHEMA).problem

    @cached_property
    def tree_and_problem(self) -> Tree:
        """The tree of the part of the query that can be read, with the problem that keeps the rest from being read."""
        from pytest_queryeval.languages.sql.parsing import MAX_CHARACTERS, Tree, read_query

        if len(self.text) > MAX_CHARACTERS:
            return Tree(None, f"longer than {MAX_CHARACTERS} characters")
        return read_query(self.text, self.dialect, self.statements)

    def reading(self, schema: Schema) -> Reading:
        """Return the normal form of the query, with its names resolved by a schema. Cached."""
        return _reading(self.text, self.dialect, schema)

    @cached_property
    def canonical_text(self) -> str:
        """The query in one layout, in which keywords, spaces, comments and the case of names make no difference."""
        if self.whole_tree is None:
            return " ".join(self.text.split())
        from pytest_queryeval.languages.sql.rewriting import canonical_text

        return canonical_text(self.whole_tree, self.dialect)

    @cached_property
    def difficulty(self) -> str | None:
        """Spider's hardness, `easy`, `medium`, `hard` or `extra`; None if the query cannot be read.

        The published grammar reads the query if it can, so that labels agree with published tables, otherwise sqlglot
        does.
        """
        with suppress(UnreadableQueryError):
            return hardness(published_view(self.text))
        if self.problem:
            return None
        from pytest_queryeval.languages.sql.rewriting import count_common_queries

        assert self.tree is not None
        return hardness(self.reading(NO_SCHEMA).view, count_common_queries(self.tree))

    @cached_property
    def features(self) -> tuple[Feature, ...]:
        """The features that the query has anywhere in it, in the order of `FEATURES`; none if it cannot be read."""
        if self.whole_tree is None:
            return ()
        from pytest_queryeval.languages.sql.rewriting import tree_features

        features = {*tree_features(self.whole_tree)}
        return tuple(name for name in FEATURES if name in features)


def parse_query(text: str, dialect: str) -> ParsedQuery:
    """Return the query of a text, without the blanks at its end; the same object while it is among the last in use.

    >>> query = parse_query("select NAME  from Singer -- all", "sqlite")
    >>> query.difficulty, query.features, query.canonical_text
    ('easy', (), 'SELECT name FROM singer')
    """
    return _parsed_query(text.rstrip(), dialect)


_parsed_query = lru_cache(maxsize=MAX_QUERIES)(ParsedQuery)


@lru_cache(maxsize=MAX_READINGS)
def _reading(text: str, dialect: str, schema: Schema) -> Reading:
    """Return the normal form of a query, which is cached for longer than trees, because golds are compared often."""
    from pytest_queryeval.languages.sql.tree_reader import read_tree

    return read_tree(parse_query(text, dialect).tree_and_problem, schema, dialect)
