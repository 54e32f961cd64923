"""Two queries compared by their clauses, in any dialect that sqlglot parses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from pytest_queryeval.core.db_schema import Schema
from pytest_queryeval.core.report import ComponentName
from pytest_queryeval.languages.sql.components import Component, partial_match
from pytest_queryeval.languages.sql.parsed_query import parse_query
from pytest_queryeval.languages.sql.view import EMPTY_VIEW


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
    gold_reading, predicted_reading = (parse_query(query, dialect).reading(schema) for query in (gold, predicted))
    if gold_reading.problem:
        return Match(differs=(), components=partial_match(EMPTY_VIEW, EMPTY_VIEW)) if gold == predicted else None
    clauses, predicted_clauses = gold_reading.clauses, predicted_reading.clauses
    differs = tuple(
        name
        for name in dict.fromkeys((*clauses, *predicted_clauses))
        if clauses.get(name, ()) != predicted_clauses.get(name, ())
    )
    # What matches as a whole shares all parts, also where it is written with other parts, such as BETWEEN.
    view = predicted_reading.view if differs or predicted_reading.problem else gold_reading.view
    return Match(
        differs=differs,
        components=partial_match(gold_reading.view, view),
        broken=predicted_reading.problem,
        unread=predicted_reading.is_unread,
    )
