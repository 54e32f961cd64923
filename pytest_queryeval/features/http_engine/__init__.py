"""The engine `http`: any service that answers SQL in JSON over HTTP, queried from a child process.

Its tables are listed by queries of its information schema, if it has one.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pytest_queryeval.core.db_schema import (
    ColumnDefinition,
    ForeignKey,
    TableDefinition,
    create_table,
    script_of,
)
from pytest_queryeval.core.errors import SettingError, SourceError
from pytest_queryeval.core.model import Execution, Failure, Source
from pytest_queryeval.core.shapes import SettingValidator, choice_setting, pattern_shape, text_setting
from pytest_queryeval.core.table import Table
from pytest_queryeval.engines import EngineType, Settings, SourceFingerprint, settings_among
from pytest_queryeval.engines.bases import PROBE_ROWS, RemoteEngine, connection_settings
from pytest_queryeval.engines.settings import check_settings
from pytest_queryeval.sandbox.host import MAX_COLUMNS, Host, Hosts, QueryRequest
from pytest_queryeval.sandbox.http_messages import is_body, placeholders
from pytest_queryeval.sandbox.http_settings import BODY, REQUEST

TIMED_ROWS = 1_000_000  # of an answer that is timed, not kept
DRIVER = Path(__file__).with_name("http_child.py")
PACKAGES = ("requests", "jsonpath")
PATHS = ("columns", "cells", "error", "truncated", "next")
UNPARSED = ("refuse", "allow")
UNSUPPORTED = ("invalid", "rejected", "unsafe")  # failures of a query that the service need not support
_FORMAT = re.compile(r"\bFORMAT\s+\w+[\s;]*$", re.IGNORECASE)
_PATH = text_setting(
    "a JSONPath, such as $.rows", lambda path: path.startswith("$") and "://" not in path, pattern_shape("^[$]")
)
SETTINGS = {
    **REQUEST,
    "body": SettingValidator(
        is_body,
        'a mapping, a list, "{query}" alone, or a form such as "sql={query}&format=json"',
        shape=BODY,
    ),
    "rows": _PATH,
    **dict.fromkeys(PATHS, _PATH),
    "page_size": SettingValidator(
        lambda value: type(value) is int and value > 0,
        "a whole number above 0",
        shape={"type": "integer", "exclusiveMinimum": 0},
    ),
    "probe": text_setting("a query"),
    "dialect": SettingValidator(
        lambda value: isinstance(value, str), "the name of a dialect", shape={"type": "string"}
    ),
    "unparsed": choice_setting(UNPARSED, "refuse or allow"),
}
_STATEMENTS = {
    "sqlite": """
        SELECT sql FROM sqlite_master
        WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite~_%' ESCAPE '~' ORDER BY lower(name)
    """
}
_COLUMNS = """
    SELECT table_schema, table_name, column_name, data_type FROM information_schema.columns
    WHERE lower(table_schema)
        NOT IN ('information_schema', 'mysql', 'performance_schema', 'pg_catalog', 'pg_toast', 'sys', 'system')
    ORDER BY table_schema, table_name, ordinal_position
"""
_KEYS = """
    SELECT k.table_schema AS table_schema, k.table_name AS table_name, k.constraint_name AS constraint_name,
        c.constraint_type AS constraint_type, k.column_name AS column_name,
        r.table_schema AS other_schema, r.table_name AS other_table, r.column_name AS other_column
    FROM information_schema.table_constraints c
    JOIN information_schema.key_column_usage k ON k.constraint_schema = c.constraint_schema
        AND k.constraint_name = c.constraint_name AND k.table_name = c.table_name
    LEFT JOIN information_schema.referential_constraints f ON f.constraint_schema = c.constraint_schema
        AND f.constraint_name = c.constraint_name
    LEFT JOIN information_schema.key_column_usage r ON r.constraint_schema = f.unique_constraint_schema
        AND r.constraint_name = f.unique_constraint_name AND r.ordinal_position = k.position_in_unique_constraint
    WHERE c.constraint_type IN ('PRIMARY KEY', 'FOREIGN KEY')
    ORDER BY k.table_schema, k.table_name, k.constraint_name, k.ordinal_position
"""
# In MySQL all primary keys have the same name.
_MYSQL_KEYS = """
    SELECT table_schema, table_name, constraint_name, column_name,
        CASE WHEN referenced_table_name IS NULL THEN 'PRIMARY KEY' ELSE 'FOREIGN KEY' END AS constraint_type,
        referenced_table_schema AS other_schema, referenced_table_name AS other_table,
        referenced_column_name AS other_column
    FROM information_schema.key_column_usage
    WHERE constraint_name = 'PRIMARY' OR referenced_table_name IS NOT NULL
    ORDER BY table_schema, table_name, constraint_name, ordinal_position
"""


def check(settings: Settings) -> None:
    """Raise `SettingError` if a setting is unknown, invalid, missing, or does not fit the others."""
    check_settings(settings, SETTINGS)
    for name in ("url", "rows"):
        if name not in settings:
            raise SettingError(name, f"needs {name}")
    used_placeholders = placeholders(settings.get("body"), settings.get("params"))
    if "query" not in used_placeholders:
        raise SettingError("body", 'needs "{query}", in quotes, in `body` or `params`')
    if "page_size" in settings and "next" in settings:
        raise SettingError("page_size", "'page_size' and 'next' are two ways to page: take one")
    if "page_size" in settings and not used_placeholders & {"offset", "page"}:
        raise SettingError("page_size", '\'page_size\' needs "{offset}" or "{page}" in `body` or `params`')
    if settings.get("dialect"):
        from pytest_queryeval.languages.sql.dialects import check_dialect

        check_dialect(settings["dialect"])


def open_http(source: Source, hosts: Hosts) -> HTTPEngine:
    """Return the engine of `{http: {url:, body:, rows:, …}}`; nothing is sent before the first query."""
    settings = source.settings
    child_settings = {
        **connection_settings(source),
        "method": settings.get("method", "POST"),
        "params": dict(settings.get("params", {})),
        "body": settings.get("body"),
        "rows": settings["rows"],
        **{name: settings.get(name) for name in PATHS},
        "page_size": settings.get("page_size"),
    }
    return HTTPEngine(source, hosts.shared(Host("http", DRIVER, packages=PACKAGES)), child_settings)


class HTTPEngine(RemoteEngine):
    """An SQL service over HTTP; `settings` are those of `http_child.py`, except `max_rows`."""

    def __init__(self, source: Source, host: Host, settings: dict[str, Any]) -> None:
        probe = QueryRequest(source.settings.get("probe", "SELECT 1"), {**settings, "max_rows": PROBE_ROWS})
        super().__init__(source.name, host, settings, probe, ambiguous_failures=("timeout", "rejected", "invalid"))
        self._dialect = dialect(source.settings)
        self._unparsed = source.settings.get("unparsed", "refuse")

    def execute(self, query: str, *, timeout: float, max_rows: int) -> Execution:
        """Send `query`, wait for all pages of the answer, and return the result.

        An answer without columns and rows is a table without a header. Errors are those of `RemoteEngine.execute`.
        """
        execution = super().execute(query, timeout=timeout, max_rows=max_rows)
        table = execution.answer
        if not isinstance(table, Table) or table.columns or table.rows:
            return execution
        return replace(execution, answer=replace(table, has_header=False))

    def _question(self, query: str, max_rows: int | None = None) -> QueryRequest:
        return QueryRequest(query, {**self._settings, "max_rows": TIMED_ROWS if max_rows is None else max_rows})

    def ddl(self, *, timeout: float) -> str | None:
        """Return CREATE TABLE statements of the tables that the service lists; None if it does not list its tables.

        Raise `SourceError` if the service does not answer.
        """

        def ask(query: str) -> Table | None:
            execution = self.execute(query, timeout=timeout, max_rows=MAX_COLUMNS)
            if execution.error is not None and execution.error.kind not in UNSUPPORTED:
                raise SourceError(f"source '{self._name}': the tables cannot be listed: {execution.error.message}")
            return execution.table

        return listed_ddl(ask, self._dialect)

    def _refusal(self, query: str) -> Failure | None:
        if self._dialect == "clickhouse" and _FORMAT.search(query):
            return Failure(kind="invalid", message="the source sets the format of answers, not the query: FORMAT")
        from pytest_queryeval.engines.readonly import UNREADABLE, refusal

        failure = refusal(query, self._dialect)
        if failure is None or UNREADABLE not in failure.message:
            return failure
        if self._unparsed == "allow":
            return None
        return replace(failure, message=f"{failure.message} (`unparsed: allow` on the source sends it all the same)")


def listed_ddl(ask: Callable[[str], Table | None], dialect: str) -> str | None:
    """Return the CREATE TABLE statements of the tables that a service lists; None if it lists none.

    `ask` returns the answer to a query, or None if the service does not support the query. It may raise `SourceError`.
    """
    if dialect in _STATEMENTS:
        statements = ask(_STATEMENTS[dialect])
        return (
            script_of(row["sql"] for row in _named_rows(statements, "sql")) if statements and statements.rows else None
        )
    columns = ask(_COLUMNS)
    if columns is None or not columns.rows:
        return None
    keys = ask(_MYSQL_KEYS if dialect == "mysql" else _KEYS)
    from pytest_queryeval.languages.sql.dialects import quote_in

    quote = quote_in(dialect, keep_case=True)
    return script_of(create_table(table, quote) for table in _table_definitions(columns, keys))


def _named_rows(table: Table, *names: str) -> Sequence[Mapping[str, str]]:
    """Return the rows as mappings from the given names to texts; a NULL is left out.

    Columns are found by name without regard to case. A name that the table lacks is taken from the column at its place
    in `names`.
    """
    column_names = [column.lower() for column in table.columns]
    places = [column_names.index(name) if name in column_names else place for place, name in enumerate(names)]
    rows = ([row[place] for place in places] for row in table.rows)
    return [{name: str(cell) for name, cell in zip(names, row, strict=True) if cell is not None} for row in rows]


def _table_definitions(columns: Table, keys: Table | None) -> Sequence[TableDefinition]:
    tables: dict[tuple[str, str], list[ColumnDefinition]] = defaultdict(list)
    for row in _named_rows(columns, "table_schema", "table_name", "column_name", "data_type"):
        column = ColumnDefinition(row["column_name"], row.get("data_type", ""))
        tables[row.get("table_schema", ""), row["table_name"]].append(column)
    primary: dict[tuple[str, str], list[str]] = defaultdict(list)
    foreign: dict[tuple[str, str], dict[str, list[Mapping[str, str]]]] = defaultdict(lambda: defaultdict(list))
    names = ("table_schema", "table_name", "constraint_name", "constraint_type", "column_name")
    for row in _named_rows(keys, *names, "other_schema", "other_table", "other_column") if keys else ():
        place = row.get("table_schema", ""), row["table_name"]
        if row["constraint_type"] == "PRIMARY KEY":
            primary[place].append(row["column_name"])
        elif "other_column" in row:
            foreign[place][row["constraint_name"]].append(row)
    has_one_schema = len({schema for schema, _ in tables}) == 1  # then names need no schema
    return [
        TableDefinition(
            name,
            column_definitions,
            primary[schema, name],
            [
                ForeignKey(
                    [row["column_name"] for row in parts],
                    parts[0]["other_table"],
                    [row["other_column"] for row in parts],
                    "" if has_one_schema else parts[0].get("other_schema", ""),
                )
                for parts in foreign[schema, name].values()
            ],
            "" if has_one_schema else schema,
        )
        for (schema, name), column_definitions in tables.items()
    ]


def dialect(settings: Settings) -> str:
    """Return sqlglot's name for the service's SQL dialect; empty for standard SQL."""
    return str(settings.get("dialect", ""))


# Without `params` and `body`, which may hold secrets.
FINGERPRINT = SourceFingerprint(settings=settings_among("rows", *PATHS, "page_size", "dialect", "unparsed"))
HTTP = EngineType(
    opener=open_http,
    kind="sql",
    dialect=dialect,
    text_setting="url",
    check=check,
    settings=SETTINGS,
    fingerprint=FINGERPRINT,
)
