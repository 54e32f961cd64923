"""DuckDB in a child process: statements that change a private copy of a database. Loaded by `host_child.py`.

A transaction that is rolled back changes the copy; a second connection sees what was before. Of each table that may
have changed both count and hash their rows, by row id in chunks, and only chunks that differ are read. A rollback does
not set sequences back.
"""

from __future__ import annotations

import fcntl
import re
import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from resource import RLIMIT_FSIZE, getrlimit, setrlimit
from typing import TypeAlias

from pytest_queryeval.features.duckdb import duckdb_child  # before DuckDB, which it prepares for
from pytest_queryeval.features.duckdb.duckdb_child import (
    CONFIG,
    MAGIC,
    MAGIC_BYTES,
    changing_call,
    is_reading_pivot,
    isolate_connection,
    kind_of,
    tokens_of,
)
from pytest_queryeval.sandbox.cells import Rows, encode_rows
from pytest_queryeval.sandbox.driver import (
    HEADER_BYTES,
    Answer,
    Fault,
    Refused,
    Settings,
    Verdict,
    quoted,
    read_header,
    too_many_rows,
    wrong_file_problem,
)
from pytest_queryeval.sandbox.writing import (
    GROWTH_BYTES,
    PREPARED,
    REFUSED,
    Columns,
    Copies,
    Keys,
    Relation,
    Relations,
    Returned,
    Transaction,
)

import duckdb  # isort: skip

CHUNK_BITS = 6  # 64 rows
CHANGING = frozenset(("DELETE", "INSERT", "MERGE_INTO", "UPDATE"))
DEFINING = frozenset(("ALTER", "CREATE", "DROP"))
DEFINITION = re.compile(r"(?:create (?:or replace )?(?:unique )?|drop |alter )(?:table|view|index)\b")
ALLOWED_CALLS = frozenset(("nextval",))
SYSTEM = re.compile(r"system catalog|\"temp\" catalog|internal catalog entry", re.IGNORECASE)
NO_ROOM = re.compile(r"File too large|No space left")
RELATIONS = """
    SELECT if(database_name = current_database(), kind, 'temporary'), schema_name, name, table_name, definition FROM (
        SELECT database_name, 'table' AS kind, schema_name, table_name AS name, table_name,
            [table_oid::VARCHAR, sql] AS definition FROM duckdb_tables() WHERE NOT internal
        UNION ALL
        SELECT database_name, 'view', schema_name, view_name, view_name, [sql] FROM duckdb_views() WHERE NOT internal
        UNION ALL
        SELECT database_name, 'index', schema_name, index_name, table_name, [sql] FROM duckdb_indexes()
    )
"""
SEQUENCES = """
    SELECT format('"{}"."{}"', replace(schema_name, '"', '""'), replace(sequence_name, '"', '""')),
        start_value, last_value
    FROM duckdb_sequences()
"""
GENERATED_COLUMNS = """
    SELECT column_name FROM duckdb_columns()
    WHERE database_name = current_database() AND schema_name = ? AND table_name = ? AND regexp_matches(
        column_default, '\\b(?:nextval|uuid|gen_random_uuid|uuidv4|uuidv7)\\s*\\(', 'i'
    )
    ORDER BY column_index
"""
CONSTRAINTS = """
    SELECT constraint_type, constraint_column_names, referenced_table, referenced_column_names FROM duckdb_constraints()
    WHERE database_name = current_database() AND schema_name = ? AND table_name = ? ORDER BY constraint_index
"""


Connection: TypeAlias = duckdb.DuckDBPyConnection


class Driver(duckdb_child.Driver):
    """Keeps copies; `settings` are `{"path": absolute path, "max_rows": number}`."""

    def __init__(self) -> None:
        super().__init__()
        self._copies = Copies(".wal", open_copy)

    def run(self, settings: Settings, query: str, timeout: float) -> Answer:
        """Run statements, undo them, and return what they changed and returned; raises like the driver that reads."""
        copy = self._copies.get(settings["path"])
        limit_files(copy.size + GROWTH_BYTES)
        sequences = copy.connection.execute(SEQUENCES).fetchall()
        session, before = copy.connection.cursor(), copy.connection.cursor()
        transaction = DuckDBTransaction(session, before, query.lower(), settings["max_rows"])
        try:
            self._alarm.set((timeout, session.interrupt), (timeout, before.interrupt))
            session.begin()
            returned: Returned = None
            for statement in statements_of(session, query):
                session.execute(statement)
                if returns_rows(statement):
                    returned = names_of(session), encode_rows(session.fetchmany(settings["max_rows"] + 1))
            return transaction.answer(copy.relations, returned)
        finally:
            self._alarm.clear()
            session.close()  # rolls back
            before.close()
            if not restore_sequences(copy.connection, sequences):
                self._copies.drop(settings["path"])

    def describe(self, settings: Settings) -> Answer:
        """Make the copy if there is none; raises like `run`."""
        self._copies.get(settings["path"])
        return PREPARED

    def classify(self, error: Exception) -> Verdict:
        """Return the verdict on an error of `run`."""
        text = str(error)
        match error:
            case duckdb.IOException() if NO_ROOM.search(text):
                self._close_all()  # it does not answer any more
                return "failure", "too_large", f"statements may add {GROWTH_BYTES // 2**20} MiB to a copy"
            case duckdb.Error() if SYSTEM.search(text):
                return "failure", "unsafe", text.partition("\n")[0]
        return super().classify(error)

    def _close_all(self) -> None:
        super()._close_all()
        self._copies.close()


class DuckDBTransaction(Transaction):
    """The transaction of a session; `query` is the text of the statements in lower case."""

    def __init__(self, session: Connection, before: Connection, query: str, max_rows: int) -> None:
        super().__init__(max_rows)
        self._session, self._before, self._query = session, before, query

    def relations(self) -> Relations:
        """Return all tables, views and indexes."""
        return relations(self._session)

    def content(self, relation: Relation) -> tuple[Columns, Rows]:
        """Return the columns and the rows of a table or a view."""
        self._session.execute(f"SELECT * FROM {relation.quoted}")  # noqa: S608 - quoted
        return names_of(self._session), encode_rows(self._session.fetchall())

    def keys(self, relation: Relation) -> Keys:
        """Return what is known of the columns of a table or a view."""
        generated, constraints = (
            self._session.execute(query, relation.place).fetchall() for query in (GENERATED_COLUMNS, CONSTRAINTS)
        )
        key = next((columns for kind, columns, *_ in constraints if kind == "PRIMARY KEY"), ())
        references = [
            (column, table, to)
            for kind, columns, table, to_columns in constraints
            if kind == "FOREIGN KEY"
            for column, to in zip(columns, to_columns, strict=True)
        ]
        return tuple(key), tuple(column for (column,) in generated), tuple(references)

    def changed_rows(self, table: Relation) -> tuple[Columns, Rows, Rows] | None:
        """Return the rows of the chunks that differ, of tables that the statements name or may change by triggers."""
        if table.place[1].lower().replace('"', '""') not in self._query and not has_triggers(self._before):
            return None
        self._session.execute(f"SELECT * FROM {table.quoted} LIMIT 0")  # noqa: S608 - quoted
        columns, rows, arguments = names_of(self._session), f"SELECT * FROM {table.quoted}", []  # noqa: S608 - quoted
        if "rowid" not in map(str.lower, columns):
            old, new = (chunks_of(connection, table, columns) for connection in (self._before, self._session))
            chunks = {number for number, _ in old.items() ^ new.items()}
            if len(chunks) > self.max_rows:
                raise too_many_rows(self.max_rows)
            if not chunks:
                return None
            rows, arguments = f"{rows} WHERE rowid >> {CHUNK_BITS} IN (SELECT unnest(?::BIGINT[]))", [[*chunks]]
        added, removed = (
            encode_rows(connection.execute(rows, arguments).fetchall()) for connection in (self._session, self._before)
        )
        return columns, added, removed

    def undo(self) -> None:
        """Roll back."""
        self._session.rollback()


def limit_files(size: int) -> None:
    """Let this process write files of that size, as far as its parent allows."""
    hard = getrlimit(RLIMIT_FSIZE)[1]
    setrlimit(RLIMIT_FSIZE, (size if hard < 0 else min(size, hard), hard))


def open_copy(path: str, copy: Path) -> tuple[Connection, Relations]:
    """Copy a database and open the copy; raises `Fault` or OSError."""
    header = read_header(path, HEADER_BYTES)
    if header[MAGIC_BYTES] != MAGIC:
        raise Fault(wrong_file_problem("DuckDB", header))
    limit_files(getrlimit(RLIMIT_FSIZE)[1])
    with open(path, "rb") as file:  # noqa: PTH123 - as in `driver`
        try:
            fcntl.lockf(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError as error:
            raise Fault("another process writes to it") from error
        shutil.copyfile(path, copy)
        with suppress(FileNotFoundError):
            shutil.copyfile(f"{path}.wal", f"{copy}.wal")
    try:
        connection = duckdb.connect(str(copy), config=CONFIG)
        connection.execute("FORCE CHECKPOINT")  # of what the log holds
        isolate_connection(connection)
        return connection, relations(connection)
    except duckdb.Error as error:
        raise Fault(str(error).removeprefix("IO Error: ")) from error


def restore_sequences(connection: Connection, sequences: Rows) -> bool:
    """Set sequences back, which a rollback does not, and return whether that is possible: it is since DuckDB 2."""
    try:
        for name, start, last in {*sequences}.difference(connection.execute(SEQUENCES).fetchall()):
            connection.begin()
            connection.execute("SELECT setval(?, ?, ?)", [name, start if last is None else last, last is not None])
            connection.rollback()  # a commit would write to the log
    except duckdb.Error:
        return False
    return True


def statements_of(session: Connection, query: str) -> Sequence[duckdb.Statement]:
    """Return the statements of a text, by DuckDB's parser.

    Raises `Refused` for one that write queries may not have, ValueError, or DuckDB's errors.
    """
    if "\0" in query:
        raise ValueError("the text holds a NUL character")
    query.encode()  # raises ValueError for a lone surrogate, where DuckDB raises TypeError
    statements = session.extract_statements(query)
    if not statements:
        raise ValueError("the text holds no statement")
    if function := changing_call(session, query, allowed=ALLOWED_CALLS):
        raise Refused(f"{REFUSED}: {function}()")
    for statement in statements:
        check_statement(statement)
    return statements


def check_statement(statement: duckdb.Statement) -> None:
    """Raise `Refused` unless write queries may have a statement."""
    kind = kind_of(statement)
    if kind == "SELECT" or kind in CHANGING or is_reading_pivot([statement], statement.query):
        return
    words = " ".join([token.split()[0] for token in tokens_of(statement.query)[:5] if token.strip()]).lower()
    if kind not in DEFINING or not DEFINITION.match(words):
        name = kind if kind not in DEFINING else " ".join(words.split()[:2]).upper()
        raise Refused(f"{REFUSED}: {name.replace('_', ' ')}")


def returns_rows(statement: duckdb.Statement) -> bool:
    """Return whether a statement returns rows of tables: others return how many rows they changed."""
    kind = kind_of(statement)
    if kind not in CHANGING:
        return kind not in DEFINING
    depth = 0
    for token in tokens_of(statement.query):
        depth += token.count("(") - token.count(")")
        if depth == 0 and token.strip().lower() == "returning":
            return True
    return False


def relations(connection: Connection) -> Relations:
    """Return tables, views and indexes; the last ones have names of their own."""
    return {
        (kind == "index", schema.lower(), name.lower()): Relation(
            kind,
            [schema, name],
            table if schema == "main" else f"{schema}.{table}",
            f"{quoted(schema)}.{quoted(name)}",
            definition[0] if kind == "index" else definition,
        )
        for kind, schema, name, table, definition in connection.execute(RELATIONS).fetchall()
    }


def names_of(session: Connection) -> Columns:
    """Return the names of the columns of an answer."""
    return tuple(column[0] for column in session.description or ())


def has_triggers(connection: Connection) -> bool:
    """Return whether statements may change other tables than those that they name."""
    try:
        return connection.execute("FROM duckdb_triggers()").fetchone() is not None
    except duckdb.CatalogException:  # before DuckDB 2
        return False


def chunks_of(connection: Connection, table: Relation, columns: Columns) -> dict[int, tuple[int, ...]]:
    """Return how many rows each chunk of row ids has, and a hash of them.

    DuckDB's hash of several columns is made of their hashes by exclusive or, so that changes of two rows, or a column
    that is equal to the row id, may cancel each other: here the hash of a row is that of a text.
    """
    hashes = ", ".join(f"hash({quoted(name)})" for name in columns)
    statement = f"""
        SELECT rowid >> {CHUNK_BITS}, [count(*), bit_xor(hash(concat_ws(' ', rowid, {hashes})))]
        FROM {table.quoted} GROUP BY 1
    """  # noqa: S608 - quoted
    return {number: tuple(digest) for number, digest in connection.execute(statement).fetchall()}
