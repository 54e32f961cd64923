"""Cypher: how its queries are told from other text, what they use, and what orders their rows."""

from __future__ import annotations

import re

from pytest_queryeval.comparison.ties import OrderPlan, TieQuery
from pytest_queryeval.core.cause import CauseLabel
from pytest_queryeval.core.db_schema import Schema
from pytest_queryeval.core.errors import did_you_mean
from pytest_queryeval.core.model import Case, Failure
from pytest_queryeval.core.table import Table
from pytest_queryeval.languages.extract_query import Language
from pytest_queryeval.languages.query_language import QueryLanguage
from queryeval_cypher.order import order_plan
from queryeval_cypher.tokens import COMMENTS, STRINGS, read_tokens

AGGREGATES = {"AVG", "COLLECT", "COUNT", "MAX", "MIN", "PERCENTILECONT", "PERCENTILEDISC", "SUM"}
FEATURES = {"OPTIONAL": "optional match", "UNWIND": "unwind", "UNION": "union", "ORDER": "order by", "EXISTS": "exists"}
CLOCKS = {"CURRENT_DATE", "CURRENT_TIMESTAMP"}
VARIABLE_LENGTH = re.compile(r"\[[^]{]*\*")
UNKNOWN_PROPERTY = re.compile(r"Cannot find property (\w+) for")
UNKNOWN_TABLE = re.compile(r"Table (\w+) does not exist")


class Cypher(QueryLanguage):
    """The kind `cypher`."""

    name = "cypher"
    language = Language(
        name="cypher",
        fences="cypher opencypher",
        keywords="MATCH OPTIONAL UNWIND WITH RETURN CALL CREATE MERGE SET DELETE DETACH REMOVE DROP ALTER LOAD COPY"
        " INSTALL ATTACH EXPORT IMPORT EXPLAIN PROFILE",
        ignored=COMMENTS,
        strings=f"{COMMENTS}|{STRINGS}",
        open_string=r"""['"`]|/\*""",
    )

    def name_hint(self, query: str, message: str, schema: Schema) -> str:
        """Return the nearest property or label for one that the graph does not have."""
        if match := UNKNOWN_PROPERTY.search(message):
            return did_you_mean(match[1], {column for columns in schema.tables.values() for column in columns})
        match = UNKNOWN_TABLE.search(message)
        return did_you_mean(match[1], schema.tables) if match else ""

    def failure_label(self, failure: Failure) -> CauseLabel:
        """Tell unknown properties and labels from other invalid queries."""
        if UNKNOWN_PROPERTY.search(failure.message):
            return "unknown-column"
        return "unknown-table" if UNKNOWN_TABLE.search(failure.message) else super().failure_label(failure)

    def features(self, query: str, dialect: str) -> tuple[str, ...]:
        """Return what a gold query uses; reports count cases by it."""
        words = {token.keyword for token in read_tokens(query)}
        features = [feature for word, feature in FEATURES.items() if word in words]
        features += ["aggregation"] * bool(words & AGGREGATES)
        features += ["variable length"] * bool(VARIABLE_LENGTH.search(query))
        return tuple(features)

    def order_plan(self, query: str, table: Table, case: Case) -> OrderPlan | None:
        """Return the order of the rows by the last RETURN."""
        return order_plan(query, len(table.rows))

    def sort_key_query(self, query: str, table: Table, case: Case) -> TieQuery | None:
        """Return the query with its sort keys as columns; None without ORDER BY."""
        plan = order_plan(query, len(table.rows))
        return plan.queries[0] if plan and plan.ordered and plan.queries else None

    def reads_clock(self, query: str, dialect: str) -> str:
        """Return the call by which a query reads the current date or time."""
        return next((f"{token.text}()" for token in read_tokens(query) if token.keyword in CLOCKS), "")


CYPHER = Cypher()
