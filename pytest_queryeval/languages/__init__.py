"""The registry of kinds: query languages, and answers that are read, not run."""

from __future__ import annotations

from contextlib import suppress

from pytest_queryeval.core.errors import SourceError
from pytest_queryeval.core.groups import Group
from pytest_queryeval.core.model import Case
from pytest_queryeval.core.registry import Registry
from pytest_queryeval.languages.kind import Kind as Kind

KINDS: Registry[Kind] = Registry(
    "kind",
    group="pytest_queryeval.kinds",
    used_by_workers=True,
    members={
        "sql": f"{__name__}.sql.kind:SQL",
        "sparql": f"{__name__}.sparql.kind:SPARQL",
    },
)


def difficulty_of(case: Case) -> str | None:
    """Return the difficulty of a case: the stated one, otherwise by its kind's rule from the suite's first gold query.

    None if there is neither.
    """
    query = _first_gold(case)
    if case.difficulty is not None or query is None:
        return case.difficulty
    return KINDS[case.settings.kind].difficulty(query, case.settings.gold_settings.dialect)


def features_of(case: Case) -> tuple[str, ...]:
    """Return the features of the first gold query of a case's suite, such as `join`; none without a gold query."""
    query = _first_gold(case)
    return () if query is None else KINDS[case.settings.kind].features(query, case.settings.gold_settings.dialect)


def _first_gold(case: Case) -> str | None:
    golds, source = case.without_review.golds, case.settings.gold_settings.source
    query = golds[0].query if golds else None
    if query is not None and source is not None:
        with suppress(ValueError, SourceError):  # told where gold runs
            return source.rewritten(query)
    return query


DIFFICULTY = Group(
    values=lambda case, _: tuple(filter(None, [difficulty_of(case)])),
    heading="difficulty",
    plural="difficulties",
    position="adjective",
    shown=frozenset({"tables", "filters", "csv", "workbook", "explanation", "comparison"}),
)
FEATURE = Group(
    values=lambda case, _: features_of(case),
    heading="features",
    plural="features",
    preposition="with",
    shown=frozenset({"tables", "filters", "csv", "comparison"}),
)
