"""The child process for statements that change a private copy of a DuckDB database; loaded by `host_child.py`.

The statements run in a transaction that is rolled back; a second connection sees the state before. For each table that
may have changed, both connections count and hash rows in chunks by row id. Only chunks that differ are read. A rollback
does not set sequences back.
"""

from __future__ import annotations

import fcntl
import re
import shutil
from contextlib import suppress
from pathlib import Path
from resource import RLIMIT_FSIZE, getrlimit, setrlimit
from typing import TypeAlias

from pytest_queryeval.features.duckdb import duckdb_child  # before DuckDB, which it prepares for
from pytest_queryeval.features.duckdb.duckdb_child import (
    CONFIG,
    check_header,
    is_reading_pivot,
    isolate_connection,
    kind_of,
    statements_of,
    tokens_of,
)
from pytest_queryeval.sandbox.cells import Rows, encode_rows
from pytest_queryeval.sandbox.driver import (
    Answer,
    Fault,
    Refused,
    Settings,
    Verdict,
    quoted,
    too_many_rows,
)
from pytest_queryeval.sandbox.writing import (
    GROWTH_BYTES,
    PREPARED,
    REFUSED,
    Columns,
    Copies,
    Copy,
    Relation,
    Relations,
    Returned,
    Transaction,
    names_of,
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
    SELECT if(database_name = current_database(), kind, 'temporary'), [schema_name, name],
        if(schema_name = 'main', '', schema_name || '.') || table_name,
        format('"{}"."{}"', replace(schema_name, '"', '""'), replace(name, '"', '""')), definition
    FROM (
        SELECT database_name, 'table' AS kind, schema_name, table_name AS name, table_name,
            table_oid || ' ' || sql AS definition FROM duckdb_tables() WHERE NOT internal
        UNION ALL
        SELECT database_name, 'view', schema_name, view_name, view_name, sql FROM duckdb_views() WHERE NOT internal
        UNION ALL
        SELECT database_name, 'index', schema_name, index_name, table_name, sql FROM duckdb_indexes()
    )
"""
SEQUENCES = """
    SELECT 'sequence', [start_value, last_value], '',
        format('"{}"."{}"', replace(schema_name, '"', '""'), replace(sequence_name, '"', '""')), ''
    FROM duckdb_sequences()
"""
KEYS = """
    SELECT constraint_type, unnest(constraint_column_names), referenced_table, unnest(referenced_column_names)
    FROM duckdb_constraints()
    WHERE database_name = current_database() AND schema_name = $1 AND table_name = $2
    UNION ALL
    SELECT 'GENERATED', column_name, NULL, NULL FROM duckdb_columns()
    WHERE database_name = current_database() AND schema_name = $1 AND table_name = $2 AND regexp_matches(
        column_default, '\\b(?:nextval|uuid|gen_random_uuid|uuidv4|uuidv7)\\s*\\(', 'i'
    )
"""

Connection: TypeAlias = duckdb.DuckDBPyConnection


class Driver(duckdb_child.Driver):
    """Runs statements on copies of databases; `settings` are `{"path": absolute path, "max_rows": number}`."""

    def __init__(self) -> None:
        super().__init__()
        self._copies = Copies(".wal", open_copy)

    def run(self, settings: Settings, query: str, timeout: float) -> Answer:
        """Run statements on the copy, undo them, and return what they changed and returned.

        Raise the errors of the driver that reads, and `Refused` for a statement that write queries may not have.
        """
        copy = self._copies.get(settings["path"])
        limit_files(copy.size + GROWTH_BYTES)
        session, before = copy.connection.cursor(), copy.connection.cursor()
        max_rows = settings["max_rows"]
        transaction = DuckDBTransaction(session, before, query.lower(), max_rows)
        try:
            self._alarm.set((timeout, session.interrupt), (timeout, before.interrupt))
            session.begin()
            returned: Returned = None
            statements = statements_of(session, query, allowed=ALLOWED_CALLS)
            for statement in statements:
                check_statement(statement)
            for statement in statements:
                session.execute(statement)
                if returns_rows(statement):
                    returned = names_of(session), encode_rows(session.fetchmany(max_rows + 1))
            return transaction.answer(copy.relations, returned, max_rows)
        finally:
            self._alarm.clear()
            session.close()  # rolls back
            before.close()
            if not restore_sequences(copy):
                self._copies.drop(settings["path"])

    def describe(self, settings: Settings) -> Answer:
        """Make the copy if there is none, and return the answer `PREPARED`; raise the errors of `run`."""
        self._copies.get(settings["path"])
        return PREPARED

    def classify(self, error: Exception) -> Verdict:
        """Return the verdict on an error of `run`: whether statements or database are at fault, and its message."""
        text = str(error)
        match error:
            case duckdb.IOException() if NO_ROOM.search(text):
                return "failure", "too_large", f"statements may add {GROWTH_BYTES // 2**20} MiB to a copy"
            case Refused():
                return "failure", "unsafe", f"{REFUSED}: {text}"
            case duckdb.Error() if SYSTEM.search(text):
                return "failure", "unsafe", text.partition("\n")[0]
        return super().classify(error)

    def _close_all(self) -> None:
        super()._close_all()
        self._copies.close()


class DuckDBTransaction(Transaction):
    """The open transaction of `session`; the connection `before` sees the state before it.

    `query` is the text of the statements in lower case.
    """

    def __init__(self, session: Connection, before: Connection, query: str, max_rows: int) -> None:
        self._session, self._before, self._query, self._max_rows = session, before, query, max_rows

    def relations(self) -> Relations:
        """Return all tables, views and indexes by kind and quoted name."""
        return relations(self._session, RELATIONS)

    def content(self, relation: Relation) -> tuple[Columns, Rows]:
        """Return the columns and all rows of a table or view."""
        self._session.execute(f"SELECT * FROM {relation.quoted}")  # noqa: S608 - quoted
        return names_of(self._session), encode_rows(self._session.fetchall())

    def keys(self, relation: Relation) -> Rows:
        """Return rows about the keys and generated columns of a table: type, column, referenced table and column."""
        return self._session.execute(KEYS, relation.place).fetchall()

    def changed_rows(self, table: Relation) -> tuple[Columns, Rows, Rows] | None:
        """Return a table's columns, and the rows of its changed chunks after and before the statements.

        If a column is called rowid, which hides row ids, all rows are returned. None if nothing changed, or if the
        statements neither name the table nor may change it by triggers. Raise the error of too many rows if more than
        `max_rows` chunks differ.
        """
        if table.place[1].lower().replace('"', '""') not in self._query and not has_triggers(self._before):
            return None
        self._session.execute(f"SELECT * FROM {table.quoted} LIMIT 0")  # noqa: S608 - quoted
        columns, rows, arguments = names_of(self._session), f"SELECT * FROM {table.quoted}", []  # noqa: S608 - quoted
        if "rowid" not in map(str.lower, columns):
            old, new = (chunks_of(connection, table, columns) for connection in (self._before, self._session))
            chunks = {number for number, _ in old.items() ^ new.items()}
            if len(chunks) > self._max_rows:
                raise too_many_rows(self._max_rows)
            if not chunks:
                return None
            rows, arguments = f"{rows} WHERE rowid >> {CHUNK_BITS} IN (SELECT unnest(?::BIGINT[]))", [[*chunks]]
        added, removed = (
            encode_rows(connection.execute(rows, arguments).fetchall()) for connection in (self._session, self._before)
        )
        return columns, added, removed

    def undo(self) -> None:
        """Roll the transaction back."""
        self._session.rollback()


def limit_files(size: int) -> None:
    """Limit the files that this process writes to `size` bytes, or less if its parent allows less."""
    hard = getrlimit(RLIMIT_FSIZE)[1]
    setrlimit(RLIMIT_FSIZE, (size if hard < 0 else min(size, hard), hard))


def open_copy(path: str, copy: Path) -> tuple[Connection, Relations]:
    """Copy a database to the file `copy`, and return an isolated connection to it and its relations and sequences.

    Raise `Fault` if it is no database, is locked by another process or cannot be opened, and OSError.
    """
    check_header(path)
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
        return connection, {**relations(connection, RELATIONS), **relations(connection, SEQUENCES)}
    except duckdb.Error as error:
        raise Fault(str(error).removeprefix("IO Error: ")) from error


def restore_sequences(copy: Copy[Connection]) -> bool:
    """Set the sequences of a copy back to their first state, which a rollback does not; return whether that succeeded.

    It is possible since DuckDB 2.
    """
    try:
        for key, sequence in relations(copy.connection, SEQUENCES).items():
            start, last = copy.relations[key].place
            if sequence.place != [start, last]:
                copy.connection.begin()
                value = start if last is None else last
                copy.connection.execute("SELECT setval(?, ?, ?)", [sequence.quoted, value, last is not None])
                copy.connection.rollback()  # a commit would write to the log
    except duckdb.Error:
        return False
    return True


def check_statement(statement: duckdb.Statement) -> None:
    """Raise `Refused` unless write queries may contain the statement.

    They may query, change rows, and create, drop or alter tables, views and indexes.
    """
    kind = kind_of(statement)
    if kind == "SELECT" or kind in CHANGING or is_reading_pivot([statement], statement.query):
        return
    words = " ".join([token.split()[0] for token in tokens_of(statement.query)[:5] if token.strip()]).lower()
    if kind not in DEFINING or not DEFINITION.match(words):
        name = kind if kind not in DEFINING else " ".join(words.split()[:2]).upper()
        raise Refused(name.replace("_", " "))


def returns_rows(statement: duckdb.Statement) -> bool:
    """Return whether a statement returns rows of tables; without RETURNING, changes return only their number."""
    kind = kind_of(statement)
    if kind not in CHANGING:
        return kind not in DEFINING
    depth = 0
    for token in tokens_of(statement.query):
        depth += token.count("(") - token.count(")")
        if depth == 0 and token.strip().lower() == "returning":
            return True
    return False


def relations(connection: Connection, query: str) -> Relations:
    """Return the relations that `query` lists, by kind and lower-case name; a view counts as a table in the key."""
    rows = [Relation(*row) for row in connection.execute(query).fetchall()]
    return {(row.kind.replace("view", "table"), row.quoted.lower()): row for row in rows}


def has_triggers(connection: Connection) -> bool:
    """Return whether the database has triggers, so that statements may change tables that they do not name."""
    try:
        return connection.execute("FROM duckdb_triggers()").fetchone() is not None
    except duckdb.CatalogException:  # before DuckDB 2
        return False


def chunks_of(connection: Connection, table: Relation, columns: Columns) -> dict[int, tuple[int, ...]]:
    """Return the number of rows in each chunk of row ids, and a hash of the rows.

    DuckDB's hash of a row ends with an exclusive or of its last column, so that changes of two rows may cancel each
    other. Therefore it is hashed again.
    """
    statement = f"""
        SELECT rowid >> {CHUNK_BITS}, [count(*), bit_xor(hash(hash(rowid, {", ".join(map(quoted, columns))})))]
        FROM {table.quoted} GROUP BY 1
    """  # noqa: S608 - quoted
    return {number: tuple(digest) for number, digest in connection.execute(statement).fetchall()}
