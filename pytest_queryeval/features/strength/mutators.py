"""What makes mutants of the kinds `sql` and `sparql`, imported on first use."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pytest_queryeval.core.db_schema import Tables
from pytest_queryeval.core.model import Case
from pytest_queryeval.core.table import Table
from pytest_queryeval.features.strength.mutant import Mutant
from pytest_queryeval.languages.sparql.query import declared_prefixes


def mutate_sql(query: str, case: Case, tables: Tables, run: Callable[[str], Table | None]) -> Sequence[Mutant]:
    """Return the mutants of a SQL query."""
    from pytest_queryeval.features.strength.sql import mutants

    return mutants(query, case.settings.dialect, tables, case.settings.policy)


def mutate_sparql(query: str, case: Case, tables: Tables, run: Callable[[str], Table | None]) -> Sequence[Mutant]:
    """Return the mutants of a SPARQL query."""
    from pytest_queryeval.features.strength.sparql import mutants

    source = case.settings.source
    return mutants(query, declared_prefixes(source.settings) if source else {}, case.settings.policy, run)
