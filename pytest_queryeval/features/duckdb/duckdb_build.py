"""Makes a DuckDB database: a program with the arguments DATABASE `script` FILE, or DATABASE `tables` JSON.

JSON is a list of [table, file, the SQL that reads ?, the delimiter of a CSV file]. It is a separate process, so that
its memory is freed. A problem with a file is written to stderr as one line, and the exit status is 1.
"""

from __future__ import annotations

import csv
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from resource import RLIMIT_AS

import duckdb

from pytest_queryeval.sandbox.driver import Fault, limit, quoted

MEMORY_BYTES = 8 * 2**30
NOTHING = re.compile(r"(?>\s+|;|--[^\n]*|/\*.*?\*/)*+", re.DOTALL)
ADVICE = re.compile(r"\n+LINE \d+:|\n+Possible [Ss]olution|\n+The search space used was")
QUOTATION = re.compile(r"\n+LINE (\d+):")
GLOB = re.compile(r"[*?[]")


def main() -> int:
    """Make the database that the command line describes, and return the exit status: 0, or 1 after a problem."""
    database, form, argument = sys.argv[1:]
    limit(RLIMIT_AS, MEMORY_BYTES)
    connection = duckdb.connect(database)
    try:
        run_script(connection, argument) if form == "script" else read_tables(connection, json.loads(argument))
        connection.execute("CHECKPOINT")
    except Exception as error:  # noqa: BLE001 - any error becomes one line
        problem = str(error) if isinstance(error, Fault) else f"{argument}: {error}"
        sys.stderr.write(f"{' '.join(problem.split())}\n")
        return 1
    connection.close()
    return 0


def run_script(connection: duckdb.DuckDBPyConnection, path: str) -> None:
    """Run the statements of a file; raise `Fault` with the line of the statement that fails.

    Consecutive INSERT statements share a transaction unless the script has transactions of its own.
    """
    text = Path(path).read_text(encoding="utf-8-sig")
    try:
        statements = connection.extract_statements(text)
    except Exception as error:
        quotation = QUOTATION.search(str(error))
        raise Fault(f"{path}{':' + quotation[1] if quotation else ''}: {brief(error)}") from error
    transactions = any(kind_of(statement) == "TRANSACTION" for statement in statements)
    in_transaction = False
    for line, statement in locate_statements(text, statements):
        is_insert = kind_of(statement) == "INSERT" and not transactions
        try:
            # One transaction for all inserts in a row: separate ones would each wait for the disk.
            if is_insert != in_transaction:
                connection.execute("BEGIN" if is_insert else "COMMIT")
                in_transaction = is_insert
            connection.execute(statement)
        except Exception as error:
            raise Fault(f"{path}:{line}: {brief(error)}") from error
    if in_transaction or transactions:
        connection.commit()


def kind_of(statement: duckdb.Statement) -> str:
    """Return the kind of a statement, such as INSERT."""
    return str(statement.type).rpartition(".")[2]


def locate_statements(text: str, statements: list[duckdb.Statement]) -> Iterator[tuple[int, duckdb.Statement]]:
    """Yield the line of each statement's first word with the statement; comments before it are skipped."""
    at = 0
    for statement in statements:
        start = max(text.find(statement.query, at), at)
        word = NOTHING.match(text, start)
        yield text.count("\n", 0, word.end() if word else start) + 1, statement
        at = start + len(statement.query)


def read_tables(connection: duckdb.DuckDBPyConnection, tables: list[list[str]]) -> None:
    """Make a table of each file; raise `Fault` with the file's name if it cannot be read or loses rows.

    An entry of `tables` has the table, the file, the SQL that reads the file, and the delimiter if it is CSV.
    """
    for name, path, reader, delimiter in tables:
        rows = count_rows(path, delimiter) if delimiter else None
        pattern = GLOB.sub(r"[\g<0>]", path)  # matches this file only
        try:
            connection.execute(f"CREATE TABLE {quoted(name)} AS FROM {reader}", [pattern])
            row_count = connection.execute(f"SELECT count(*) FROM {quoted(name)}").fetchall()[0][0]  # noqa: S608 - quoted
        except Exception as error:
            raise Fault(f"{path}: {brief(error).replace(pattern, path)}") from error
        if rows not in (None, row_count):
            raise Fault(f"{path}: DuckDB reads {row_count:,} of {rows:,} rows")


def count_rows(path: str, delimiter: str) -> int:
    """Return the number of rows of a CSV file below the header.

    An empty line counts only if there is a single column. Raise `Fault` with the line of a row whose number of cells
    differs from the header's, because DuckDB drops some of these rows silently.
    """
    csv.field_size_limit(sys.maxsize)
    rows, line = 0, 1
    with Path(path).open(encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(file, delimiter=delimiter, strict=True)
        try:
            names = next(reader, [])
            if not names:
                raise Fault(f"{path}:1: no names of columns in the first line")
            line = reader.line_num + 1
            for row in reader:
                if row and len(row) != len(names):
                    cells = f"{len(row)} cell{'s' * (len(row) != 1)}"
                    columns = f"are {len(names)} columns" if len(names) > 1 else "is 1 column"
                    raise Fault(f"{path}:{line}: {cells} where there {columns}")
                rows += bool(row) or len(names) == 1
                line = reader.line_num + 1
        except csv.Error as error:
            raise Fault(f"{path}:{line}: {error}") from error
        except UnicodeDecodeError as error:
            raise Fault(f"{path}: not UTF-8 text: {error.reason}") from error
    return rows


def brief(error: Exception) -> str:
    """Return DuckDB's message without the quoted text and the advice at its end."""
    return ADVICE.split(str(error), maxsplit=1)[0]
