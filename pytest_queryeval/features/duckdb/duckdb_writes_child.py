"""DuckDB in a child process: statements that change a private copy of a database. Loaded by `host_child.py`.

The copy is a file that is unlinked as soon as it is open, so that nothing of it is left behind, however the process
ends. A transaction that is rolled back changes it; a second connection sees what was before. Of each table that may
have changed both count and hash their rows, by row id in chunks, and only chunks that differ are read.
"""

from __future__ import annotations

import atexit
import fcntl
import os
import re
import shutil
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path
from resource import RLIMIT_FSIZE, getrlimit, setrlimit
from typing import Any, NamedTuple, TypeAlias

from pytest_queryeval.features.duckdb import duckdb_child  # before DuckDB, which it prepares for
from pytest_queryeval.features.duckdb.duckdb_child import (
    CONFIG,
    LIST_COLUMNS,
    MAGIC,
    MAGIC_BYTES,
    changing_call,
    is_reading_pivot,
    isolate_connection,
    kind_of,
    tokens_of,
)
from pytest_queryeval.sandbox.cells import encode_rows, without_common
from pytest_queryeval.sandbox.driver import (
    HEADER_BYTES,
    Answer,
    Fault,
    Refused,
    Settings,
    Verdict,
    make_answer,
    quoted,
    read_header,
    signature,
    wrong_file_problem,
)

import duckdb  # isort: skip

COPIES_BYTES = 8 * 2**30  # of all copies that are open
GROWTH_BYTES = 256 * 2**20  # that statements may add to a copy
CHUNK_BITS = 6  # 64 rows
HASHED_COLUMNS = 50  # at once: expressions may not be nested too deeply
PARTS = ("part", "table", "content")
CHANGING = frozenset(("DELETE", "INSERT", "MERGE_INTO", "UPDATE"))
DEFINING = frozenset(("ALTER", "CREATE", "DROP"))
DEFINITION = re.compile(r"(?:create (?:or replace )?(?:unique )?|drop |alter )(?:table|view|index)\b")
REFUSED = "only statements that change or read tables are allowed"
ALLOWED_CALLS = frozenset(("nextval",))
SYSTEM = re.compile(r"system catalog|\"temp\" catalog|internal catalog entry", re.IGNORECASE)
NO_ROOM = re.compile(r"File too large|No space left")
GENERATED = re.compile(r"\b(?:nextval|uuid|gen_random_uuid|uuidv4|uuidv7)\s*\(", re.IGNORECASE)
RELATIONS = """
    SELECT 'table', schema_name, table_name, table_name, table_oid, sql FROM duckdb_tables()
    WHERE database_name = current_database() AND NOT internal
    UNION ALL
    SELECT 'view', schema_name, view_name, view_name, 0, sql FROM duckdb_views()
    WHERE database_name = current_database() AND NOT internal
    UNION ALL
    SELECT 'index', schema_name, index_name, table_name, 0, sql FROM duckdb_indexes()
    WHERE database_name = current_database()
"""
TEMPORARY = """
    SELECT 1 FROM duckdb_tables() WHERE database_name <> current_database() AND NOT internal
    UNION ALL
    SELECT 1 FROM duckdb_views() WHERE database_name <> current_database() AND NOT internal
"""
SEQUENCES = """
    SELECT schema_name, sequence_name, start_value, last_value FROM duckdb_sequences()
    WHERE database_name = current_database()
"""
COLUMNS = """
    SELECT column_name, coalesce(column_default, '') FROM duckdb_columns()
    WHERE database_name = current_database() AND schema_name = ? AND table_name = ? ORDER BY column_index
"""
KEYS = """
    SELECT constraint_type, constraint_column_names, referenced_table, referenced_column_names FROM duckdb_constraints()
    WHERE database_name = current_database() AND schema_name = ? AND table_name = ? ORDER BY constraint_index
"""

Row: TypeAlias = tuple[Any, ...]
Rows: TypeAlias = list[Row]
Connection: TypeAlias = duckdb.DuckDBPyConnection


class TooManyRows(Exception):  # noqa: N818 - an outcome of the query
    """More rows changed than the request allows."""


class Copy(NamedTuple):
    """The private copy of a database, with the signatures of what it was made of."""

    signatures: tuple[tuple[int, ...], tuple[int, ...]]
    size: int
    connection: Connection
    sequences: Mapping[str, Row]
    """Their first and last values, by names for a statement."""


class Relation(NamedTuple):
    """A table, a view or an index."""

    kind: str
    schema: str
    name: str
    table: str
    """That of an index, else its own name."""
    oid: int
    """The number of a table, which is another one once it is made again."""
    sql: str

    @property
    def label(self) -> str:
        """The name of the table, with its schema unless that is the main one."""
        return self.table if self.schema == "main" else f"{self.schema}.{self.table}"

    @property
    def quoted(self) -> str:
        """The name for a statement."""
        return f"{quoted(self.schema)}.{quoted(self.name)}"


class Driver(duckdb_child.Driver):
    """Keeps the copies of the last databases, COPIES_BYTES together.

    `settings` are `{"path": absolute path, "max_rows": number}`.
    """

    def __init__(self) -> None:
        super().__init__()
        self._copies: OrderedDict[str, Copy] = OrderedDict()
        self._folder = Path.cwd()
        atexit.register(remove_folder, self._folder)

    def run(self, settings: Settings, query: str, timeout: float) -> Answer:
        """Run statements, undo them, and return what they changed and returned; raises like the driver that reads."""
        copy = self._copy(settings["path"])
        limit_files(copy.size + GROWTH_BYTES)
        session, before = copy.connection.cursor(), copy.connection.cursor()
        max_rows = settings["max_rows"]
        try:
            self._alarm.set((timeout, session.interrupt), (timeout, before.interrupt))
            session.begin()
            returned: list[Row] = []
            for statement in statements_of(session, query):
                session.execute(statement)
                if returns_rows(statement):
                    names = tuple(column[0] for column in session.description)
                    rows = encode_rows(session.fetchmany(max_rows + 1))  # the host refuses more
                    returned = [("columns", None, names), *(("returned", None, row) for row in rows)]
            if session.execute(TEMPORARY).fetchone():
                raise Refused(f"{REFUSED}: temporary tables and views")
            changes = [*returned, *changed_relations(before, session, query.lower(), max_rows)]
        finally:
            self._alarm.clear()
            with suppress(duckdb.Error):
                session.rollback()
            session.close()
            before.close()
            self._restore_sequences(settings["path"])
        return make_answer(PARTS, changes)

    def describe(self, settings: Settings) -> Answer:
        """Make the copy if there is none, and list its columns; raises like `run`."""
        rows = self._copy(settings["path"]).connection.execute(LIST_COLUMNS).fetchall()
        return make_answer(("table", "column", "type", "to_table", "to_column"), rows)

    def classify(self, error: Exception) -> Verdict:
        """Return the verdict on an error of `run`."""
        text = str(error)
        match error:
            case TooManyRows():
                return "failure", "too_large", text
            case duckdb.IOException() if NO_ROOM.search(text):
                self._close_all()  # it does not answer any more
                return "failure", "too_large", f"statements may add {GROWTH_BYTES // 2**20} MiB to a copy"
            case duckdb.Error() if SYSTEM.search(text):
                return "failure", "unsafe", text.partition("\n")[0]
        return super().classify(error)

    def _copy(self, path: str) -> Copy:
        """Return the copy of a database, made if there is none of its present state."""
        try:
            state = signature(path), signature(f"{path}.wal")
            copy = self._copies.pop(path, None)
            if copy is not None and copy.signatures != state:
                copy.connection.close()
                copy = None
            if copy is None:
                size = sum(sizes[1] for sizes in state if sizes)
                if size > COPIES_BYTES:
                    raise Fault(f"{size:,} bytes are too large to copy: at most {COPIES_BYTES:,}")
                while self._copies and size + sum(open_copy.size for open_copy in self._copies.values()) > COPIES_BYTES:
                    self._copies.popitem(last=False)[1].connection.close()
                limit_files(getrlimit(RLIMIT_FSIZE)[1])
                connection = connect(path, self._folder)
                copy = Copy(state, size, connection, sequence_values(connection))
        except OSError as error:
            raise Fault(error.strerror or str(error)) from error
        except duckdb.Error as error:
            raise Fault(str(error).removeprefix("IO Error: ")) from error
        self._copies[path] = copy
        return copy

    def _restore_sequences(self, path: str) -> None:
        """Set the sequences of a copy back, which a rollback does not; before DuckDB 2 the copy is made again."""
        copy = self._copies[path]
        try:
            values = sequence_values(copy.connection)
            for name in [name for name in values if values[name] != copy.sequences[name]]:
                start, last = copy.sequences[name]
                copy.connection.begin()
                copy.connection.execute(
                    "SELECT setval(?, ?, ?)", [name, start if last is None else last, last is not None]
                )
                copy.connection.rollback()  # a commit would write to the log
        except duckdb.Error:
            del self._copies[path]
            copy.connection.close()

    def _close_all(self) -> None:
        super()._close_all()
        while self._copies:
            self._copies.popitem()[1].connection.close()


def remove_folder(folder: Path) -> None:
    """Remove the folder of this process, which is empty, if the parent has not done so."""
    with suppress(OSError):
        folder.rmdir()


def limit_files(size: int) -> None:
    """Let this process write files of that size, as far as its parent allows."""
    hard = getrlimit(RLIMIT_FSIZE)[1]
    setrlimit(RLIMIT_FSIZE, (size if hard < 0 else min(size, hard), hard))


def connect(path: str, folder: Path) -> Connection:
    """Copy a database to a file in this process's folder, which is unlinked once it is open; return its connection.

    Raises `Fault`, OSError or DuckDB's errors.
    """
    header = read_header(path, HEADER_BYTES)
    if header[MAGIC_BYTES] != MAGIC:
        raise Fault(wrong_file_problem("DuckDB", header))
    name = folder / Path(path).name  # after which DuckDB names the database
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - as in `driver`
            try:
                fcntl.lockf(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except OSError as error:
                raise Fault("another process writes to it") from error
            shutil.copyfile(path, name)
            with suppress(FileNotFoundError):
                shutil.copyfile(f"{path}.wal", f"{name}.wal")
        name.chmod(0o600)
        connection = duckdb.connect(str(name), config=CONFIG)
        connection.execute("FORCE CHECKPOINT")  # of what the log holds
        return isolate_connection(connection)
    finally:
        for file_name in (str(name), f"{name}.wal"):
            with suppress(FileNotFoundError):
                os.unlink(file_name)  # noqa: PTH108 - as above


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


def changed_relations(before: Connection, after: Connection, query: str, max_rows: int) -> Iterator[Row]:
    """Yield the tables that differ between two connections, with their rows that were added and removed.

    Without triggers, only tables can differ whose names stand in `query`, a text in lower case.
    """
    old_relations, new_relations = relations(before), relations(after)
    any_table = has_triggers(before)
    for key in sorted(old_relations.keys() | new_relations.keys()):
        old, new = old_relations.get(key), new_relations.get(key)
        is_redefined = old is None or new is None or (old.oid, old.sql) != (new.oid, new.sql)
        if key[0] == "index":
            yield from index_changes(old, new) if is_redefined else ()
        elif is_redefined:
            yield from redefined_rows(before, after, old, new)
        elif key[0] == "table" and new and (any_table or key[2].replace('"', '""') in query):
            yield from changed_rows(before, after, new, max_rows)


def relations(connection: Connection) -> dict[tuple[str, str, str], Relation]:
    """Return tables, views and indexes by kind, and by schema and name in lower case."""
    rows = [Relation(*row) for row in connection.execute(RELATIONS).fetchall()]
    return {(row.kind, row.schema.lower(), row.name.lower()): row for row in rows}


def has_triggers(connection: Connection) -> bool:
    """Return whether statements may change other tables than those that they name."""
    try:
        return connection.execute("FROM duckdb_triggers()").fetchone() is not None
    except duckdb.CatalogException:  # before DuckDB 2
        return False


def index_changes(old: Relation | None, new: Relation | None) -> Iterator[Row]:
    """Yield the indexes that were added and removed."""
    yield from (
        (part, index.label, (index.sql,)) for part, index in (("removed index", old), ("added index", new)) if index
    )


def redefined_rows(before: Connection, after: Connection, old: Relation | None, new: Relation | None) -> Iterator[Row]:
    """Yield how a table or a view changed that was made, dropped or altered, without the rows of a dropped view."""
    relation = new or old
    assert relation is not None
    old_columns, new_columns = columns_of(before, old), columns_of(after, new)
    if relation.kind == "view":
        old_columns = () if old else None
    removed = all_rows(before, old) if old and old.kind == "table" else []
    added = all_rows(after, new) if new else []
    if old_columns == new_columns:
        added, removed = without_common(added, removed)
    if added or removed or old_columns != new_columns:
        yield from described_rows(after if new else before, relation, old_columns, new_columns, added, removed)


def changed_rows(before: Connection, after: Connection, table: Relation, max_rows: int) -> Iterator[Row]:
    """Yield how the rows of a table changed whose definition is as before."""
    columns = columns_of(after, table)
    assert columns is not None
    if "rowid" in map(str.lower, columns):
        added, removed = all_rows(after, table), all_rows(before, table)
    else:
        old_chunks, new_chunks = chunks_of(before, table, columns), chunks_of(after, table, columns)
        chunks = [
            number
            for number in old_chunks.keys() | new_chunks.keys()
            if old_chunks.get(number) != new_chunks.get(number)
        ]
        if len(chunks) > max_rows:
            raise TooManyRows(f"more than {max_rows:,} rows: raise `max_rows` if there may be more")
        added, removed = (rows_of(connection, table, chunks) if chunks else [] for connection in (after, before))
    added, removed = without_common(added, removed)
    if added or removed:
        yield from described_rows(after, table, columns, columns, added, removed)


def described_rows(
    connection: Connection,
    relation: Relation,
    old_columns: tuple[str, ...] | None,
    new_columns: tuple[str, ...] | None,
    added: Rows,
    removed: Rows,
) -> Iterator[Row]:
    """Yield a table that changed, with its keys, and its rows."""
    yield "table", relation.label, (old_columns, new_columns, *keys_of(connection, relation))
    yield from (("added", relation.label, row) for row in added)
    yield from (("removed", relation.label, row) for row in removed)


def chunks_of(connection: Connection, table: Relation, columns: tuple[str, ...]) -> dict[int, Row]:
    """Return how many rows each chunk of row ids has, and hashes of them.

    DuckDB's hash of several columns is made of their hashes by exclusive or, so that changes of two rows, or a column
    that is equal to the row id, may cancel each other: here the result for each column is hashed again.
    """
    digests = []
    for start in range(0, len(columns), HASHED_COLUMNS):
        digest = "hash(hash(rowid))"
        for name in columns[start : start + HASHED_COLUMNS]:
            digest = f"hash(xor({digest}, hash({quoted(name)})))"
        digests.append(f"bit_xor({digest})")
    statement = f"SELECT rowid >> {CHUNK_BITS}, count(*), {', '.join(digests)} FROM {table.quoted} GROUP BY 1"  # noqa: S608 - quoted
    return {number: tuple(digest) for number, *digest in connection.execute(statement).fetchall()}


def rows_of(connection: Connection, table: Relation, chunks: list[int]) -> Rows:
    """Return the rows of some chunks, as plain values."""
    statement = f"SELECT * FROM {table.quoted} WHERE rowid >> {CHUNK_BITS} IN (SELECT unnest(?::BIGINT[]))"  # noqa: S608 - quoted
    return encode_rows(connection.execute(statement, [chunks]).fetchall())


def all_rows(connection: Connection, relation: Relation) -> Rows:
    """Return the rows of a table or a view, as plain values."""
    return encode_rows(connection.execute(f"SELECT * FROM {relation.quoted}").fetchall())  # noqa: S608 - quoted


def columns_of(connection: Connection, relation: Relation | None) -> tuple[str, ...] | None:
    """Return the columns of a table or a view; None if there is no such table."""
    if relation is None:
        return None
    cursor = connection.execute(f"SELECT * FROM {relation.quoted} LIMIT 0")  # noqa: S608 - quoted
    return tuple(column[0] for column in cursor.description)


def keys_of(connection: Connection, relation: Relation) -> tuple[Any, ...]:
    """Return the columns of the primary key, those with values that DuckDB makes, and those that refer to other tables.

    The latter are rows of column, table, and column there.
    """
    place = [relation.schema, relation.name]
    defaults = connection.execute(COLUMNS, place).fetchall()
    constraints = connection.execute(KEYS, place).fetchall()
    key = chain.from_iterable(columns for kind, columns, *_ in constraints if kind == "PRIMARY KEY")
    references = tuple(
        (column, table, to)
        for kind, columns, table, to_columns in constraints
        if kind == "FOREIGN KEY"
        for column, to in zip(columns, to_columns, strict=True)
    )
    return tuple(key), tuple(column for column, default in defaults if GENERATED.search(default)), references


def sequence_values(connection: Connection) -> dict[str, Row]:
    """Return the first and the last value of each sequence; the latter is None until it is used."""
    rows = connection.execute(SEQUENCES).fetchall()
    return {f"{quoted(schema)}.{quoted(name)}": (start, last) for schema, name, start, last in rows}
