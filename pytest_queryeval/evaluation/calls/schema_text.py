"""Schemas as the texts that predictors see, listed on first use."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Hashable

from pytest_queryeval.core.db_schema import Schema
from pytest_queryeval.core.errors import SourceError, capture_error, unwrap
from pytest_queryeval.core.json_value import JsonSchema
from pytest_queryeval.core.model import Case, Source
from pytest_queryeval.core.table_definition import (
    ColumnDefinition,
    ForeignKey,
    TableDefinition,
    create_table,
    script_of,
)
from pytest_queryeval.evaluation.calls.call_clock import CallClock


class SchemaText:
    """Lists a schema once, in the first thread that calls it; `clock` stands still, and other threads wait."""

    def __init__(self, list_schema: Callable[[], str | None], clock: CallClock) -> None:
        self._list_schema = list_schema
        self._clock = clock
        self._lock = threading.Lock()
        self._outcomes: list[str | SourceError | None] = []

    @property
    def is_listed(self) -> bool:
        """Whether the text is already there."""
        return bool(self._outcomes)

    def __call__(self) -> str | None:
        """Return the text, None if there is no schema; raises `SourceError`, the same one every time."""
        if not self._outcomes:
            with self._clock.paused(), self._lock:
                if not self._outcomes:
                    self._outcomes.append(capture_error(self._list_schema, SourceError))
        return unwrap(self._outcomes[0])


class SchemaTexts:
    """The schemas of a run, one for all cases that share it; `list_tables` lists those of a source as SQL."""

    def __init__(self, list_tables: Callable[[Source], str | None] = lambda _: None) -> None:
        self.clock = CallClock()
        self._list_tables = list_tables
        self._texts: dict[Hashable, SchemaText] = {}

    def of(self, case: Case) -> SchemaText:
        """Return the schema that a case's predictor sees: what the suite states, else for SQL that of its source."""
        db_schema, source, dialect = case.db_schema, case.settings.source, case.settings.dialect
        json_schema = case.extra.get("json_schema") if case.settings.kind == "json" else None
        if isinstance(json_schema, JsonSchema):
            return self._text(id(json_schema), lambda: json.dumps(json_schema.document, indent=2, ensure_ascii=False))
        if case.settings.kind == "sql" and db_schema is not None:
            return self._text((id(db_schema), dialect), lambda: schema_script(db_schema, dialect))
        if case.settings.kind == "sql" and source is not None:
            return self._text(source.key, lambda: self._list_tables(source))
        return self._text(None, lambda: None)

    def _text(self, key: Hashable, list_schema: Callable[[], str | None]) -> SchemaText:
        """Return the text of a key; `list_schema` keeps the object alive whose identity is the key."""
        if key not in self._texts:
            self._texts[key] = SchemaText(list_schema, self.clock)
        return self._texts[key]


def schema_script(schema: Schema, dialect: str) -> str:
    """Return the CREATE TABLE statements of a schema, tables by name."""
    from pytest_queryeval.languages.sql.dialects import quote_in

    tables = schema.definitions or _definitions(schema)
    quote = quote_in(dialect)
    return script_of(create_table(table, quote) for table in sorted(tables, key=lambda table: table.name.lower()))


def _definitions(schema: Schema) -> list[TableDefinition]:
    """Return the tables of a schema that has only names and foreign keys."""
    return [
        TableDefinition(
            table,
            [ColumnDefinition(column) for column in columns],
            foreign_keys=[
                ForeignKey((column,), referred_table, (referred_column,))
                for (referring_table, column), (referred_table, referred_column) in schema.foreign_keys
                if referring_table == table
            ],
        )
        for table, columns in schema.tables.items()
    ]
