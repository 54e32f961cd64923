"""SPARQL: what its cases are scored by, what orders their rows, and how its terms are written."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_queryeval.comparison.ties import OrderPlan
from pytest_queryeval.core.model import Case
from pytest_queryeval.core.table import Table
from pytest_queryeval.languages.extract_query import SPARQL_TEXT
from pytest_queryeval.languages.queries import Queries
from pytest_queryeval.languages.sparql.order import order_plan
from pytest_queryeval.languages.sparql.terms import csv_term, stated_term


@dataclass(frozen=True, slots=True, kw_only=True)
class Sparql(Queries):
    """The kind `sparql`."""

    def order_plan(self, query: str, table: Table, case: Case) -> OrderPlan | None:
        """See `Kind`."""
        return None if table.is_graph else order_plan(query, table.columns, len(table.rows), case.max_rows)


SPARQL = Sparql(
    name="sparql",
    language=SPARQL_TEXT,
    default_metrics=(
        "execution_accuracy",
        "arity_f1",
        "entity_set_f1",
        "row_matching_f1",
        "exact_match_f1",
        "valid_query",
    ),
    text_numbers=True,
    stated_cell=stated_term,
    csv_cell=csv_term,  # SPARQL CSV results write IRIs bare
)
