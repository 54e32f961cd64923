"""The child process for PostgreSQL statements that change data, in a transaction that is rolled back.

Loaded by `host_child.py`. The locks of the transaction show which tables it may have changed, also by triggers and
cascades. Rows that the transaction added have its number in `xmin`. Rows that it removed are found by a second
connection, which sees the state before: they have a number in `xmax`, and the transaction does not see them. A table
that it locked against readers is read as a whole, by the transaction and after it.
"""

from __future__ import annotations

from time import monotonic
from typing import Any, TypeAlias

import psycopg
from psycopg import pq
from psycopg.adapt import Transformer
from psycopg.errors import error_from_result

from pytest_queryeval.features.database_servers import postgres_child
from pytest_queryeval.features.database_servers.postgres_child import IDLE_SECONDS, Session, refuse_names, verdict
from pytest_queryeval.features.database_servers.postgres_values import text_of
from pytest_queryeval.sandbox.cells import Rows, encode_rows
from pytest_queryeval.sandbox.driver import Answer, Refused, Settings, TooLarge
from pytest_queryeval.sandbox.writing import PREPARED, REFUSED, Columns, Relation, Relations, Returned, Transaction

ALLOWED_FUNCTIONS = frozenset(("nextval",))
LOCK = "SELECT pg_catalog.pg_advisory_lock(8103239112480)"
IS_NEW = "pg_catalog.age(xmin) <= (SELECT pg_catalog.age((pg_catalog.txid_current() & 4294967295)::text::xid))"
# A table is defined otherwise, for all that is known, if the transaction has locked it as a whole.
RELATIONS = """
    WITH locks AS (
        SELECT relation, bool_or(mode = 'AccessExclusiveLock') AS whole, bool_or(mode = 'RowExclusiveLock') AS of_rows
        FROM pg_catalog.pg_locks WHERE pid = pg_backend_pid() AND locktype = 'relation' GROUP BY relation
    )
    SELECT n.nspname::text, c.relname::text,
        CASE
            WHEN n.oid = pg_my_temp_schema() THEN 'temporary'
            WHEN c.relkind IN ('r', 'p') THEN 'table'
            WHEN c.relkind = 'i' THEN 'index'
            ELSE 'view'
        END,
        c.oid::bigint,
        CASE WHEN n.nspname = current_schema() THEN '' ELSE n.nspname || '.' END || coalesce(t.relname, c.relname),
        CASE WHEN c.relkind IN ('r', 'p') THEN 'ONLY ' ELSE '' END || format('%I.%I', n.nspname, c.relname),
        CASE
            WHEN c.relkind = 'i' THEN pg_catalog.pg_get_indexdef(c.oid)
            ELSE concat_ws(
                ' ', c.oid, c.relkind, c.relfilenode, c.relkind IN ('r', 'p') AND coalesce(l.whole, false),
                ARRAY(
                    SELECT a.attname FROM pg_catalog.pg_attribute a
                    WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
                ),
                (
                    SELECT md5(r.ev_action::text) FROM pg_catalog.pg_rewrite r
                    WHERE r.ev_class = c.oid AND r.rulename = '_RETURN'
                )
            )
        END,
        coalesce(l.of_rows, false)
    FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    LEFT JOIN pg_catalog.pg_index i ON i.indexrelid = c.oid
    LEFT JOIN pg_catalog.pg_class t ON t.oid = i.indrelid
    LEFT JOIN locks l ON l.relation = c.oid
    WHERE c.relkind IN ('r', 'p', 'v', 'm', 'i') AND n.nspname <> 'information_schema'
        AND (n.nspname !~ '^pg_' OR n.oid = pg_my_temp_schema())
        AND NOT EXISTS (SELECT FROM pg_catalog.pg_constraint k WHERE c.relkind = 'i' AND k.conindid = c.oid)
"""
KEYS = """
    SELECT 'PRIMARY KEY', a.attname::text, NULL, NULL FROM (
        SELECT a.attname FROM pg_catalog.pg_index i
        JOIN pg_catalog.pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey)
        WHERE i.indrelid = %(oid)s AND i.indisprimary ORDER BY array_position(i.indkey::int[], a.attnum::int)
    ) a
    UNION ALL
    SELECT 'GENERATED', a.attname::text, NULL, NULL FROM pg_catalog.pg_attribute a
    LEFT JOIN pg_catalog.pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
    WHERE a.attrelid = %(oid)s AND a.attnum > 0 AND NOT a.attisdropped
        AND (a.attidentity <> '' OR pg_catalog.pg_get_expr(d.adbin, d.adrelid) ~
            '(^|[^a-z0-9_])(nextval|gen_random_uuid|uuid_generate_v[0-9][a-z0-9_]*|uuidv[47])[(]')
    UNION ALL
    SELECT 'FOREIGN KEY', a.attname::text,
        CASE WHEN n.nspname = current_schema() THEN '' ELSE n.nspname || '.' END || t.relname, b.attname::text
    FROM pg_catalog.pg_constraint k
    CROSS JOIN LATERAL unnest(k.conkey, k.confkey) AS pair (own_column, column_there)
    JOIN pg_catalog.pg_class t ON t.oid = k.confrelid JOIN pg_catalog.pg_namespace n ON n.oid = t.relnamespace
    JOIN pg_catalog.pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = pair.own_column
    JOIN pg_catalog.pg_attribute b ON b.attrelid = k.confrelid AND b.attnum = pair.column_there
    WHERE k.contype = 'f' AND k.conrelid = %(oid)s
"""

Connection: TypeAlias = psycopg.Connection[Any]


class WriteSession(Session):
    """A connection whose transactions may write, and a second connection `before` that never sees what they write."""

    access = "ISOLATION LEVEL READ COMMITTED, READ WRITE"

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.before = Session(url)
        self.refused_names -= ALLOWED_FUNCTIONS

    def end(self) -> None:
        """Roll both transactions back, and release the advisory locks that outlive them."""
        super().end()
        self.before.end()


class Driver(postgres_child.Driver):
    """Runs write queries on PostgreSQL; it keeps the last 8 connections.

    `settings` are `{"url": …, "statements": [text, …], "max_rows": number}`.
    """

    session_type = WriteSession

    def run(self, settings: Settings, query: str, timeout: float) -> Answer:
        """Run statements, undo them, and return what they changed and returned; raise the errors of the reading driver.

        `timeout` limits all statements together.
        """
        session, max_rows = self._start(settings, query, timeout, refuse_names), settings["max_rows"]
        assert isinstance(session, WriteSession)
        connection = session.connection
        connection.execute(LOCK)  # again, which does no harm, unless the child is new
        session.before.begin(timeout)
        transaction = PostgresTransaction(connection, session.before.connection, max_rows)
        old_relations = transaction.relations()
        returned: Returned = None
        for statement in settings["statements"]:
            limit = max(1, round(1000 * (self._deadline - monotonic())))
            connection.execute(f"SET LOCAL statement_timeout = {limit}".encode())
            names, rows = run_statement(connection, statement)
            if names is not None:
                returned = names, rows[: max_rows + 1]
        connection.execute("SET CONSTRAINTS ALL IMMEDIATE")
        try:
            answer = transaction.answer(old_relations, returned, max_rows)
        except TooLarge as error:
            self.classify(error)
            raise
        self._alarm.clear()
        session.end()
        return answer

    def describe(self, settings: Settings) -> Answer:
        """Wait until no other session runs write queries on the database, and return `PREPARED`; raise `Fault`."""
        self._settings = settings
        session = self._begin(IDLE_SECONDS)
        assert isinstance(session, WriteSession)
        session.end()
        session.connection.execute("SET statement_timeout = 0")
        session.connection.execute(LOCK)
        return PREPARED

    def _verdict(self, error: Exception) -> tuple[str, str]:
        return ("unsafe", f"{REFUSED}: {error}") if isinstance(error, Refused) else verdict(error, "")


class PostgresTransaction(Transaction):
    """The open transaction of `connection`; the connection `before` never sees what it writes."""

    def __init__(self, connection: Connection, before: Connection, max_rows: int) -> None:
        self._connection, self._before, self._max_rows = connection, before, max_rows
        self._written: set[int] = set()

    def relations(self) -> Relations:
        """Return all tables, views and indexes by schema and name.

        The tables whose rows may have changed are remembered for `changed_rows`.
        """
        rows = self._connection.execute(RELATIONS.encode()).fetchall()
        self._written = {oid for _, _, _, oid, *_, has_changes in rows if has_changes}
        return {(schema, name): Relation(*fields) for schema, name, *fields, _ in rows}

    def content(self, relation: Relation) -> tuple[Columns, Rows]:
        """Return the columns and the rows of a table or view, at most one row more than `max_rows`."""
        statement = f"SELECT * FROM {relation.quoted} LIMIT {self._max_rows + 1}"  # noqa: S608 - quoted
        names, rows = run_statement(self._connection, statement)
        return names or (), rows

    def keys(self, relation: Relation) -> Rows:
        """Return rows about the keys and generated columns of a table: type, column, referenced table and column."""
        return self._connection.execute(KEYS.encode(), {"oid": relation.place}).fetchall()

    def changed_rows(self, table: Relation) -> tuple[Columns, Rows, Rows] | None:
        """Return a table's columns, the rows that the transaction added, and the rows that it removed.

        None if the transaction wrote no rows of the table.
        """
        if table.place not in self._written:
            return None
        rows, limit = f"FROM {table.quoted} WHERE", f"LIMIT {self._max_rows + 1}"
        columns, added = run_statement(self._connection, f"SELECT * {rows} {IS_NEW} {limit}")
        ended = self._before.execute(f"SELECT ctid::text {rows} xmax <> 0".encode()).fetchall()
        kept = self._connection.execute(
            f"SELECT ctid::text {rows} ctid = ANY (%s::tid[]) AND NOT {IS_NEW}".encode(),
            [[place for (place,) in ended]],
        )
        places = [place for (place,) in {*ended}.difference(kept)]
        removed = self._before.execute(f"SELECT * {rows} ctid = ANY (%s::tid[]) {limit}".encode(), [places]).fetchall()
        return columns or (), added, encode_rows(removed)

    def undo(self) -> None:
        """Roll both transactions back."""
        self._before.execute("ROLLBACK")
        self._connection.execute("ROLLBACK")


def run_statement(connection: Connection, statement: str) -> tuple[tuple[str, ...] | None, Rows]:
    """Run a single statement, and return its columns and rows; the columns are None if it returns no rows.

    The extended protocol refuses several statements. Raise psycopg's errors.
    """
    result = connection.pgconn.exec_params(statement.encode(), [])
    if result.status == pq.ExecStatus.COMMAND_OK:
        return None, []
    if result.status != pq.ExecStatus.TUPLES_OK:
        raise error_from_result(result)
    transformer = Transformer(connection)
    transformer.set_pgresult(result)
    names = tuple(text_of(result.fname(place) or b"") for place in range(result.nfields))
    return names, encode_rows(transformer.load_rows(0, result.ntuples, tuple))
