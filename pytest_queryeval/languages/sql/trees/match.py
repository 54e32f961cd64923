"""Two queries compared by their clauses, in any dialect that sqlglot parses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from pytest_queryeval.core.db_schema import Schema
from pytest_queryeval.core.report import ComponentName
from pytest_queryeval.languages.sql.components import Component, partial_match
from pytest_queryeval.languages.sql.trees.normal_form import Reading
from pytest_queryeval.languages.sql.trees.parsing import UnreadableError
from pytest_queryeval.languages.sql.trees.reader import read_tree
from pytest_queryeval.languages.sql.view import EMPTY_VIEW, View


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """How two queries compare: the clauses in which they differ, their components, what is wrong with predicted.

    `unread` is true where nothing of predicted could be read.
    """

    differs: tuple[str, ...]
    components: Mapping[ComponentName, Component] = field(repr=False)
    broken: str = ""
    unread: bool = False

    @property
    def exact(self) -> bool:
        """Whether all clauses agree, and the whole of predicted could be read."""
        return not self.differs and not self.broken


@lru_cache(maxsize=256)  # a dozen metrics compare the same pair
def match_queries(gold: str, predicted: str, dialect: str, schema: Schema) -> Match | None:
    """Compare the texts of two queries; return None where gold cannot be read and predicted is another text.

    Where predicted cannot be read, or only in part, `broken` says why, and the components are those of what could be
    read.
    """
    try:
        one = read_tree(gold, dialect, schema)
        if one.broken:
            raise UnreadableError(one.broken)
    except UnreadableError:
        view = View()
        return Match(differs=(), components=partial_match(view, view)) if gold == predicted else None
    try:
        other = read_tree(predicted, dialect, schema)
    except UnreadableError as error:
        components = partial_match(one.view, EMPTY_VIEW)
        return Match(differs=_differing(one, None), components=components, broken=str(error), unread=True)
    differs = _differing(one, other)
    # What matches as a whole shares all parts, also where it is written with other parts, such as BETWEEN.
    components = partial_match(one.view, other.view if differs or other.broken else one.view)
    return Match(differs=differs, components=components, broken=other.broken)


def _differing(gold: Reading, predicted: Reading | None) -> tuple[str, ...]:
    clauses = predicted.clauses if predicted else {}
    names = dict.fromkeys((*gold.clauses, *clauses))
    return tuple(name for name in names if gold.clauses.get(name, ()) != clauses.get(name, ()))
