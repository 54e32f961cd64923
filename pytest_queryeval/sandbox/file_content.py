"""Messages on files that are not databases: what they contain, and how to use them. Child processes import it, too."""

from __future__ import annotations

from pytest_queryeval.sandbox.commands import COMMANDS, first_word

HEADER_BYTES = 400
_SIGNATURES = (
    (b"SQLite format 3\0", "a SQLite database: name it under `sqlite`"),
    (b"PAR1", "a Parquet file: name it under `duckdb: {tables: {TABLE: FILE}}`"),
    (b"PK\x03\x04", "a ZIP archive or a workbook: unpack it"),
    (b"\x1f\x8b", "compressed by gzip: unpack it"),
    (b"version https://git-lfs", "a pointer of Git LFS: fetch the file with `git lfs pull`"),
)
_DUCKDB = b"DUCK"  # behind a checksum
_TEXT_CONTROLS = frozenset(b"\t\n\r\f")


def not_a_database(name: str, header: bytes) -> str:
    """Return the problem of a file that is not a database of `name`, such as SQLite, by its first bytes.

    >>> not_a_database("SQLite", b"CREATE TABLE singer (name text);")
    'not a SQLite database, but a text file with SQL: write `source: {sqlite: {script: FILE}}`'
    """
    content = next((text for start, text in _SIGNATURES if header.startswith(start)), "")
    if header[8:12] == _DUCKDB:
        content = "a DuckDB database: name it under `duckdb`"
    elif not content and not any(byte < 32 and byte not in _TEXT_CONTROLS for byte in header):
        text = header.decode("utf-8", "replace").removeprefix("\ufeff")
        if first_word(text) in COMMANDS:
            content = f"a text file with SQL: write `source: {{{name.lower()}: {{script: FILE}}}}`"
        else:
            content = "a text file: if it holds a table, write `source: {duckdb: {tables: {TABLE: FILE}}}`"
    return f"not a {name} database" + (f", but {content}" if content else "")
