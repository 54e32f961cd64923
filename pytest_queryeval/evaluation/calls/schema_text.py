"""Schemas as the texts that predictors see, listed when they are first asked for."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Hashable

from pytest_queryeval.core.capture import capture_error, unwrap
from pytest_queryeval.core.db_schema import Schema
from pytest_queryeval.core.errors import SourceError
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
    """Lists a schema once, in the thread that asks first, while `clock` stands still; others wait for it."""

    def __init__(self, list_it: Callable[[], str | None], clock: CallClock) -> None:
        self._list_it = list_it
        self._clock = clock
        self._lock = threading.Lock()
        self._listed: list[str | SourceError | None] = []

    @property
    def is_listed(self) -> bool:
        """Whether asking takes no time any more."""
        return bool(self._listed)

    def __call__(self) -> str | None:
        """Return the text, None where there is none; raises `SourceError`, the same one every time."""
        if not self._listed:
            with self._clock.paused(), self._lock:
                if not self._listed:
                    self._listed.append(capture_error(self._list_it, SourceError))
        return unwrap(self._listed[0])


class SchemaTexts:
    """The schemas of a run, one for all cases that share it; `list_tables` lists those of a source as SQL."""

    def __init__(self, list_tables: Callable[[Source], str | None] = lambda _: None) -> None:
        self.clock = CallClock()
        self._list_tables = list_tables
        self._texts: dict[Hashable, SchemaText] = {}

    def of(self, case: Case) -> SchemaText:
        """Return the schema that a case's predictor sees: what the suite states, else for SQL that of its source."""
        stated, source, dialect = case.db_schema, case.settings.source, case.settings.dialect
        json_schema = case.settings.json_schema if case.settings.kind == "json" else None
        if json_schema is not None:
            return self._text(id(json_schema), lambda: json.dumps(json_schema.document, indent=2, ensure_ascii=False))
        if case.settings.kind == "sql" and stated is not None:
            return self._text((id(stated), dialect), lambda: schema_script(stated, dialect))
        if case.settings.kind == "sql" and source is not None:
            return self._text(source.key, lambda: self._list_tables(source))
        return self._text(None, lambda: None)

    def _text(self, key: Hashable, list_it: Callable[[], str | None]) -> SchemaText:
        """Return the text of that key; `list_it` keeps alive what the key is the identity of."""
        if key not in self._texts:
            self._texts[key] = SchemaText(list_it, self.clock)
        return self._texts[key]


def schema_script(schema: Schema, dialect: str) -> str:
    """Return the CREATE TABLE statements of a schema, tables by name."""
    from pytest_queryeval.languages.sql.dialects import quote_in

    tables = schema.definitions or _definitions(schema)
    quote = quote_in(dialect)
    return script_of(create_table(table, quote) for table in sorted(tables, key=lambda table: table.name.lower()))


def _definitions(schema: Schema) -> list[TableDefinition]:
    """Return the tables of a schema of which no more is known than the names."""
    return [
        TableDefinition(
            table,
            [ColumnDefinition(column) for column in columns],
            foreign_keys=[
                ForeignKey((column,), other, (referred,))
                for (own, column), (other, referred) in schema.foreign_keys
                if own == table
            ],
        )
        for table, columns in schema.tables.items()
    ]
