"""Reader of tables in Parquet files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import duckdb

from pytest_queryeval.documents.document import File
from pytest_queryeval.documents.tables.rows import (
    MAX_TABLE_BYTES,
    NumberedRows,
    Table,
    TableFile,
    table_of,
    value_text,
)

_ROWS_AT_ONCE = 1000
_GLOB = re.compile(r"[*?[]")
_CONFIG: dict[str, str | bool | int | float | list[str]] = {
    "threads": 1,
    "memory_limit": "256MiB",
    "temp_directory": "",
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
}


@contextmanager
def open_parquet(file: File) -> Iterator[Table]:
    """Open a Parquet file, for the `with` statement; its rows are numbered from 1.

    Raise `CaseError` if the file cannot be read.
    """
    file.open(MAX_TABLE_BYTES).close()  # an error where that fails
    with duckdb.connect(":memory:", config=_CONFIG) as connection:
        pattern = _GLOB.sub(r"[\g<0>]", str(file.path))  # matches this file only
        try:
            relation = connection.execute("FROM read_parquet(?)", [pattern])
        except duckdb.Error as error:
            raise file.problem(f"is not a Parquet file that can be read: {error}") from error
        yield table_of(TableFile(file.path, file.shown), _numbered_rows(relation, file), value_text)


def _numbered_rows(relation: duckdb.DuckDBPyConnection, file: File) -> NumberedRows:
    yield 1, [column[0] for column in relation.description or ()]
    number = 0
    while True:
        try:
            rows = relation.fetchmany(_ROWS_AT_ONCE)
        except duckdb.Error as error:
            raise file.problem(f"is damaged: {error}") from error
        for cells in rows:
            number += 1
            yield number, cells
        if not rows:
            return
