"""PostgreSQL in a child process: statements that change data, in a transaction that is rolled back.

Loaded by `host_child.py`. The locks of the transaction tell which tables it may have changed, triggers and cascades
included. Rows that it added have its number in `xmin`; rows that it removed are those that a second connection, which
sees the state before, has with a number in `xmax`, and the transaction does not see. A table that it locked against
readers is read as a whole, by the transaction and after it.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from time import monotonic
from typing import Any, NamedTuple, TypeAlias

import psycopg
from psycopg import pq
from psycopg.adapt import Transformer
from psycopg.errors import error_from_result

from pytest_queryeval.features.database_servers import postgres_child
from pytest_queryeval.features.database_servers.postgres_child import (
    CANCEL_SECONDS,
    CUT_SECONDS,
    IDLE_SECONDS,
    Session,
    refuse_names,
    verdict,
)
from pytest_queryeval.features.database_servers.postgres_values import text_of
from pytest_queryeval.sandbox.cells import encode_rows, without_common
from pytest_queryeval.sandbox.driver import Answer, Refused, Settings, make_answer, quoted

REFUSED = "only statements that change or read tables are allowed"
PARTS = ("part", "table", "content")
ALLOWED_FUNCTIONS = frozenset(("nextval",))
LOCK = "SELECT pg_catalog.pg_advisory_lock(8103239112480)"
GENERATED = re.compile(r"\b(?:nextval|gen_random_uuid|uuid_generate_v\d\w*|uuidv4|uuidv7)\(")
RELATIONS = """
    SELECT c.oid::bigint, n.nspname::text, c.relname::text, c.relkind::text, c.relfilenode::bigint,
        n.nspname = current_schema(),
        ARRAY(
            SELECT a.attname::text FROM pg_catalog.pg_attribute a
            WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
        ),
        CASE
            WHEN c.relkind = 'i' THEN pg_catalog.pg_get_indexdef(c.oid)
            ELSE (
                SELECT md5(r.ev_action::text) FROM pg_catalog.pg_rewrite r
                WHERE r.ev_class = c.oid AND r.rulename = '_RETURN'
            )
        END,
        t.relname::text
    FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    LEFT JOIN pg_catalog.pg_index i ON i.indexrelid = c.oid
    LEFT JOIN pg_catalog.pg_class t ON t.oid = i.indrelid
    WHERE c.relkind IN ('r', 'p', 'v', 'm', 'i') AND n.nspname <> 'information_schema' AND n.nspname !~ '^pg_'
        AND NOT EXISTS (SELECT FROM pg_catalog.pg_constraint k WHERE c.relkind = 'i' AND k.conindid = c.oid)
"""
LOCKS = """
    SELECT relation::bigint, mode FROM pg_catalog.pg_locks
    WHERE pid = pg_backend_pid() AND locktype = 'relation' AND mode IN ('RowExclusiveLock', 'AccessExclusiveLock')
"""
TEMPORARY = """
    SELECT FROM pg_catalog.pg_class WHERE relnamespace = pg_my_temp_schema() AND pg_my_temp_schema() <> 0 LIMIT 1
"""
KEY = """
    SELECT a.attname::text FROM pg_catalog.pg_index i
    JOIN pg_catalog.pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey)
    WHERE i.indrelid = %s AND i.indisprimary ORDER BY array_position(i.indkey::int[], a.attnum::int)
"""
DEFAULTS = """
    SELECT a.attname::text, a.attidentity <> '', coalesce(pg_catalog.pg_get_expr(d.adbin, d.adrelid), '')
    FROM pg_catalog.pg_attribute a
    LEFT JOIN pg_catalog.pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
    WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
"""
REFERENCES = """
    SELECT a.attname::text, CASE WHEN n.nspname = current_schema() THEN '' ELSE n.nspname || '.' END || t.relname,
        b.attname::text
    FROM pg_catalog.pg_constraint k
    CROSS JOIN LATERAL unnest(k.conkey, k.confkey) AS pair (own_column, column_there)
    JOIN pg_catalog.pg_class t ON t.oid = k.confrelid JOIN pg_catalog.pg_namespace n ON n.oid = t.relnamespace
    JOIN pg_catalog.pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = pair.own_column
    JOIN pg_catalog.pg_attribute b ON b.attrelid = k.confrelid AND b.attnum = pair.column_there
    WHERE k.contype = 'f' AND k.conrelid = %s
"""

Row: TypeAlias = tuple[Any, ...]
Rows: TypeAlias = list[Row]
Connection: TypeAlias = psycopg.Connection[Any]


class Relation(NamedTuple):
    """A table, a view or an index."""

    oid: int
    schema: str
    name: str
    kind: str
    file: int
    """The number of the file with its rows."""
    is_in_default_schema: bool
    columns: list[str]
    definition: str | None
    """The statement of an index, a hash of the query of a view."""
    table: str | None
    """That of an index."""

    @property
    def label(self) -> str:
        """The name of the table, with its schema unless that is the default one."""
        name = self.table or self.name
        return name if self.is_in_default_schema else f"{self.schema}.{name}"

    @property
    def is_view(self) -> bool:
        """Whether its rows are those of a query."""
        return self.kind in "vm"

    @property
    def quoted(self) -> str:
        """The name for a statement, without the tables that inherit from it."""
        name = f"{quoted(self.schema)}.{quoted(self.name)}"
        return name if self.is_view else f"ONLY {name}"


class RelationChange(NamedTuple):
    """A table that is not as it was; of rows that are read after the transaction, `removed` is None."""

    old: Relation | None
    new: Relation | None
    added: Rows
    removed: Rows | None
    keys: Row | None


class WriteSession(Session):
    """A connection whose transactions may write, and `before`, another one, which never sees what they write."""

    access = "ISOLATION LEVEL READ COMMITTED, READ WRITE"

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.before = Session(url)
        self.refused_names -= ALLOWED_FUNCTIONS
        self._is_locked = False

    def lock(self) -> None:
        """Wait until no other session runs write queries on the database, unless this one holds the lock already."""
        if not self._is_locked:
            self.connection.execute(LOCK)
        self._is_locked = True

    def end(self) -> None:
        """End both transactions, and release the locks that outlive them."""
        super().end()
        self._is_locked = False
        self.before.end()


class Driver(postgres_child.Driver):
    """Keeps the last 8 connections; `settings` are `{"url": …, "statements": [text, …], "max_rows": number}`."""

    session_type = WriteSession

    def run(self, settings: Settings, query: str, timeout: float) -> Answer:
        """Run statements, undo them, and return what they changed and returned; raises like the driver that reads."""
        began = monotonic()
        self._url, self._query, self._deadline = settings["url"], query, began + timeout
        self._alarm.clear()
        session = self._begin(timeout)
        assert isinstance(session, WriteSession)
        refuse_names(query, session.refused_names)
        connection, max_rows = session.connection, settings["max_rows"]
        seconds_left = timeout - (monotonic() - began)
        self._alarm.set((seconds_left + CANCEL_SECONDS, session.cancel), (seconds_left + CUT_SECONDS, session.cut))
        session.lock()  # a new child has none
        session.before.begin(timeout)
        old_relations = relations(connection)
        transaction_id = connection.execute("SELECT txid_current() & 4294967295").fetchall()[0][0]
        returned: Rows = []
        for statement in settings["statements"]:
            limit = max(1, round(1000 * (self._deadline - monotonic())))
            connection.execute(f"SET LOCAL statement_timeout = {limit}".encode())
            names, rows = run_statement(connection, statement)
            if names is not None:
                returned = [("columns", None, names), *(("returned", None, row) for row in rows[: max_rows + 1])]
        connection.execute("SET CONSTRAINTS ALL IMMEDIATE")
        if connection.execute(TEMPORARY).fetchone() is not None:
            raise Refused("temporary tables")
        new_relations = relations(connection)
        differences = list(
            changed_relations(
                connection, session.before.connection, transaction_id, old_relations, new_relations, max_rows
            )
        )
        session.before.connection.execute("ROLLBACK")
        connection.execute("ROLLBACK")
        changes = [*returned, *index_changes(old_relations, new_relations)]
        for difference in differences:
            changes += change_rows(connection, difference, max_rows)
        self._alarm.clear()
        session.end()
        return make_answer(PARTS, changes)

    def describe(self, settings: Settings) -> Answer:
        """Wait until no other session runs write queries on the database; raises `Fault`."""
        self._url = settings["url"]
        session = self._begin(IDLE_SECONDS)
        assert isinstance(session, WriteSession)
        session.end()
        session.connection.execute("SET statement_timeout = 0")
        session.lock()
        return make_answer(("table", "column", "type", "to_table", "to_column"), ())

    def _verdict(self, error: Exception) -> tuple[str, str]:
        return ("unsafe", f"{REFUSED}: {error}") if isinstance(error, Refused) else verdict(error, "")


def run_statement(connection: Connection, statement: str) -> tuple[tuple[str, ...] | None, Rows]:
    """Run one statement, as the server's extended protocol ensures; return the names and the rows that it returns."""
    result = connection.pgconn.exec_params(statement.encode(), [])
    if result.status == pq.ExecStatus.COMMAND_OK:
        return None, []
    if result.status != pq.ExecStatus.TUPLES_OK:
        raise error_from_result(result)
    transformer = Transformer(connection)
    transformer.set_pgresult(result)
    names = tuple(text_of(result.fname(place) or b"") for place in range(result.nfields))
    return names, encode_rows(transformer.load_rows(0, result.ntuples, tuple))


def relations(connection: Connection) -> dict[tuple[str, str], Relation]:
    """Return tables, views and indexes by schema and name."""
    rows = (Relation(*row) for row in connection.execute(RELATIONS.encode()))
    return {(row.schema, row.name): row for row in rows}


def changed_relations(
    connection: Connection,
    before: Connection,
    transaction_id: int,
    old_relations: dict[tuple[str, str], Relation],
    new_relations: dict[tuple[str, str], Relation],
    max_rows: int,
) -> Iterator[RelationChange]:
    """Yield the tables and views that may differ from before; `transaction_id` is that of this one."""
    locks: defaultdict[int, set[str]] = defaultdict(set)
    for oid, mode in connection.execute(LOCKS.encode()).fetchall():
        locks[oid].add(mode)
    for place in sorted(old_relations.keys() | new_relations.keys()):
        old, new = old_relations.get(place), new_relations.get(place)
        relation = new or old
        assert relation is not None
        if relation.kind == "i":
            continue
        keys = keys_of(connection, new) if new else None
        modes = set() if relation.is_view else locks[relation.oid]
        if new is None or old != new or "AccessExclusiveLock" in modes:
            yield RelationChange(old, new, all_rows(connection, new, max_rows) if new else [], None, keys)
        elif "RowExclusiveLock" in modes:
            yield RelationChange(old, new, *changed_rows(connection, before, transaction_id, new, max_rows), keys)


def changed_rows(
    connection: Connection, before: Connection, transaction_id: int, table: Relation, max_rows: int
) -> tuple[Rows, Rows]:
    """Return the rows of a table that the transaction added, and those that it removed."""
    is_new = "pg_catalog.age(xmin) <= pg_catalog.age(%s::text::xid)"
    first_rows = f"SELECT * FROM {table.quoted} WHERE {is_new} LIMIT {max_rows + 1}"  # noqa: S608 - quoted
    added = fetch(connection, first_rows, [str(transaction_id)])
    candidates = fetch(before, f"SELECT ctid::text FROM {table.quoted} WHERE xmax <> 0", [])  # noqa: S608 - quoted
    visible = fetch(
        connection,
        f"SELECT ctid::text FROM {table.quoted} WHERE ctid = ANY (%s::tid[]) AND NOT {is_new}",  # noqa: S608 - quoted
        [[place for (place,) in candidates], str(transaction_id)],
    )
    places = [place for (place,) in set(candidates) - set(visible)]
    statement = f"SELECT * FROM {table.quoted} WHERE ctid = ANY (%s::tid[]) LIMIT {max_rows + 1}"  # noqa: S608 - quoted
    return added, fetch(before, statement, [places])


def all_rows(connection: Connection, relation: Relation, max_rows: int) -> Rows:
    """Return the rows of a table or a view, at most one more than allowed."""
    return fetch(connection, f"SELECT * FROM {relation.quoted} LIMIT {max_rows + 1}", [])  # noqa: S608 - quoted


def fetch(connection: Connection, statement: str, arguments: Sequence[Any]) -> Rows:
    """Return the rows of a statement as plain values."""
    return encode_rows(connection.execute(statement.encode(), arguments or None).fetchall())


def change_rows(connection: Connection, difference: RelationChange, max_rows: int) -> Iterator[Row]:
    """Yield how a table or a view changed, without the rows of a view that was dropped or replaced."""
    old, new, added, removed, keys = difference
    relation = new or old
    assert relation is not None
    old_columns, new_columns = (tuple(side.columns) if side else None for side in (old, new))
    if removed is None:
        removed = all_rows(connection, old, max_rows) if old and not old.is_view else []
    if relation.is_view:
        old_columns = () if old else None
    if old_columns == new_columns:
        added, removed = without_common(added, removed)
    if added or removed or old_columns != new_columns:
        yield "table", relation.label, (old_columns, new_columns, *(keys or keys_of(connection, relation)))
        yield from (("added", relation.label, row) for row in added)
        yield from (("removed", relation.label, row) for row in removed)


def index_changes(
    old_relations: Mapping[tuple[str, str], Relation], new_relations: Mapping[tuple[str, str], Relation]
) -> Iterator[Row]:
    """Yield the indexes that were added and removed."""
    for place in sorted(old_relations.keys() | new_relations.keys()):
        old, new = old_relations.get(place), new_relations.get(place)
        if old and new and old.definition == new.definition:
            continue
        for part, relation in (("removed index", old), ("added index", new)):
            if relation and relation.kind == "i":
                yield part, relation.label, (relation.definition,)


def keys_of(connection: Connection, relation: Relation) -> Row:
    """Return the columns of the primary key, those that PostgreSQL generates, and those that refer to other tables.

    The latter are rows of column, table, and column there.
    """
    key, defaults, references = (
        connection.execute(text.encode(), [relation.oid]).fetchall() for text in (KEY, DEFAULTS, REFERENCES)
    )
    generated = tuple(column for column, is_identity, default in defaults if is_identity or GENERATED.search(default))
    return tuple(column for (column,) in key), generated, tuple(references)
