"""What the queries of a case read of its source: tables and columns, and what of them is outside of its scope."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_queryeval.core.errors import QueryEvalError
from pytest_queryeval.core.metric import SchemaUse
from pytest_queryeval.core.model import Case, Execution, QueryOrAnswer, Source
from pytest_queryeval.core.scope import Scope
from pytest_queryeval.core.table import Row, Table
from pytest_queryeval.evaluation.session import LOOKUP_ROWS, LOOKUP_SECONDS, Session
from pytest_queryeval.languages import KINDS

if TYPE_CHECKING:
    from pytest_queryeval.languages.sql.reads import Views
    from pytest_queryeval.languages.sql.scope import Recorded

RAN = (None, "timeout", "too_large")  # the errors of queries that ran
# The functions that a database defines itself, which may read tables.
_OWN_FUNCTIONS = {
    "duckdb": "SELECT function_name FROM duckdb_functions() WHERE NOT internal",
    "postgres": """
        SELECT proname FROM pg_proc JOIN pg_language ON pg_language.oid = prolang
        JOIN pg_namespace ON pg_namespace.oid = pronamespace
        WHERE lanname NOT IN ('c', 'internal') AND nspname NOT IN ('pg_catalog', 'information_schema')
    """,
    "mysql": "SELECT routine_name FROM information_schema.routines WHERE routine_schema = database()",
}
# Views with their schemas and queries, of databases whose tables are listed without their definitions.
_OWN_VIEWS = {
    "postgres": """
        SELECT schemaname, viewname, definition FROM pg_views
        WHERE schemaname NOT IN ('pg_catalog', 'information_schema')
        UNION ALL SELECT schemaname, matviewname, definition FROM pg_matviews
    """,
    "mysql": """
        SELECT table_schema, table_name, view_definition FROM information_schema.views
        WHERE table_schema = database()
    """,
}


def schema_use(query: str, case: Case, session: Session) -> SchemaUse:
    """Return the names of the schema that a query uses, by its text; raise ValueError if it cannot be read."""
    return KINDS[case.settings.kind].schema_use(query, case, session.schema(case))


def scope_breaches(predicted: Execution, case: Case, session: Session) -> Sequence[str]:
    """Return sentences on what an executed query reads outside of its case's `scope`, which must be set.

    Raise `QueryEvalError` if a query ran but its reads are unknown, and `SourceError` if the source does not answer.
    """
    from pytest_queryeval.languages.sql.reads import NO_VIEWS
    from pytest_queryeval.languages.sql.scope import ScopeRules, UnresolvedError
    from pytest_queryeval.languages.sql.scope import scope_breaches as breaches

    settings = case.settings
    assert settings.scope is not None
    assert predicted.query is not None
    has_run = (predicted.error and predicted.error.kind) in RAN
    views = NO_VIEWS if settings.source is None else _views(settings.source, case, session)
    record = (
        None if settings.source is None or not has_run else _record(predicted.query, settings.source, case, session)
    )
    rules = ScopeRules(settings.scope, settings.dialect, session.schema(case))
    try:
        return breaches(predicted.query, rules, views, record, has_run=has_run)
    except UnresolvedError as error:
        problem = f"whether the predicted query is in scope is not known: {error}"
        raise QueryEvalError(f"metric 'in_scope': {problem}") from error


def unknown_scope_names(scope: Scope, case: Case, session: Session) -> list[str]:
    """Return a message for each name in a scope that the case's source does not have.

    Raise `SourceError` if the source cannot list its tables.
    """
    from pytest_queryeval.languages.sql.scope import ScopeRules

    return [*ScopeRules(scope, case.settings.dialect, session.schema(case)).unknown_names()]


def _views(source: Source, case: Case, session: Session) -> Views:
    from pytest_queryeval.languages.sql.reads import Views, folded, listed_views, view_queries

    dialect = case.settings.dialect

    def find() -> Views:
        functions = frozenset(folded(str(name)) for (name,) in _lookup(_OWN_FUNCTIONS, dialect, case, session))
        views = [(str(of), str(name), str(query)) for of, name, query in _lookup(_OWN_VIEWS, dialect, case, session)]
        ddl = "" if dialect in _OWN_VIEWS else session.list_ddl(source) or ""
        return Views({**view_queries(ddl, dialect), **listed_views(views, dialect)}, functions)

    return session.cached(("views", source.key, dialect), find)


def _lookup(queries: Mapping[str, str], dialect: str, case: Case, session: Session) -> Sequence[Row]:
    if dialect not in queries:
        return ()
    query = QueryOrAnswer(query=queries[dialect])
    settings = replace(case.settings, timeout=LOOKUP_SECONDS, max_rows=LOOKUP_ROWS)
    execution = session.execute(query, replace(case, settings=settings), is_derived=True)
    if execution.table is None:
        problem = "no table" if execution.error is None else execution.error.message
        raise QueryEvalError(f"the source does not list its views and functions: {problem}")
    return execution.table.rows


def _record(query: str, source: Source, case: Case, session: Session) -> Sequence[Recorded] | None:
    """Return the columns that the source saw a query read; None if its engine cannot say."""
    from pytest_queryeval.languages.sql.scope import Recorded

    listing = session.reads(query, source, case.settings.timeout)
    if listing is None or not isinstance(listing.answer, Table):
        return None
    return [Recorded((str(table),), str(column), str(view)) for table, column, view in listing.answer.rows]
