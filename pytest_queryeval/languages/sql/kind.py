"""SQL: what its cases are scored by, and what orders their rows."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_queryeval.comparison.ties import OrderPlan, TieQuery
from pytest_queryeval.core.cause import CauseLabel
from pytest_queryeval.core.db_schema import Schema
from pytest_queryeval.core.json_value import JsonValue
from pytest_queryeval.core.model import Case, Failure
from pytest_queryeval.core.table import Table
from pytest_queryeval.languages.extract_query import SQL_TEXT
from pytest_queryeval.languages.query_language import QueryLanguage
from pytest_queryeval.languages.sql.parsed_query import parse_query
from pytest_queryeval.languages.sql.unknown_names import name_label, nearest_name


class Sql(QueryLanguage):
    """The kind `sql`."""

    name = "sql"
    language = SQL_TEXT
    default_metrics = ("execution_accuracy", "row_matching_f1", "soft_f1", "exact_set_match", "valid_query")
    options = frozenset({"dialect"})

    def check(self, options: Mapping[str, JsonValue]) -> None:
        from pytest_queryeval.languages.sql.dialects import check_dialect

        check_dialect(options.get("dialect", ""))

    def after_prose(self, answer: str, dialect: str) -> str:
        query = super().after_prose(answer, dialect)
        if not query:
            return ""
        from pytest_queryeval.languages.sql.trees.parsing import has_detached_alias

        return "" if has_detached_alias(query, dialect, parse_query(query, dialect).statements.tokens) else query

    def translate(self, query: str, dialect: str, target: str) -> str:
        from pytest_queryeval.languages.sql.translation import translate

        return translate(query, dialect, target)

    def name_hint(self, query: str, message: str, schema: Schema) -> str:
        return nearest_name(query, message, schema)

    def failure_label(self, failure: Failure) -> CauseLabel:
        return (failure.kind == "invalid" and name_label(failure.message)) or super().failure_label(failure)

    def difficulty(self, query: str, dialect: str) -> str | None:
        return parse_query(query, dialect).difficulty

    def features(self, query: str, dialect: str) -> tuple[str, ...]:
        return parse_query(query, dialect).features

    def order_plan(self, query: str, table: Table, case: Case) -> OrderPlan | None:
        text = query.lower()
        if "order" not in text and "limit" not in text:  # nothing that a parse could find
            return None
        from pytest_queryeval.languages.sql.order import order_plan

        return order_plan(query, table.columns, len(table.rows), case.settings.dialect)

    def sort_key_query(self, query: str, table: Table, case: Case) -> TieQuery | None:
        if "order" not in query.lower():
            return None
        from pytest_queryeval.languages.sql.order import sort_key_query

        return sort_key_query(query, table.columns, case.settings.dialect)

    def reads_no_data(self, query: str, dialect: str) -> bool:
        from pytest_queryeval.languages.sql.rewriting import reads_no_table

        tree = parse_query(query, dialect).whole_tree
        return tree is not None and reads_no_table(tree)

    def reads_clock(self, query: str, dialect: str) -> str:
        from pytest_queryeval.languages.sql.rewriting import clock_reading

        tree = parse_query(query, dialect).whole_tree
        return "" if tree is None else clock_reading(tree, dialect)

    def without_data(self, query: str, dialect: str) -> str | None:
        from pytest_queryeval.languages.sql.rewriting import with_empty_tables

        tree = parse_query(query, dialect).whole_tree
        return None if tree is None else with_empty_tables(tree, dialect)

    def normal_text(self, query: str, dialect: str) -> str:
        return parse_query(query, dialect).canonical_text

    def read_problem(self, query: str, dialect: str) -> str:
        return parse_query(query, dialect).problem


SQL = Sql()
