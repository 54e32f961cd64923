"""Ladybug in a child process: graphs that are only read, one query at a time. Loaded by pytest_queryeval's sandbox."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import zip_longest
from resource import RLIMIT_NOFILE, getrlimit, setrlimit
from typing import Any

os.environ.clear()  # queries must not see it

import ladybug

from pytest_queryeval.sandbox import driver
from pytest_queryeval.sandbox.cells import encode_rows
from queryeval_cypher.tokens import first_line, reaching_clause, statements

CLAUSES = ("MATCH", "OPTIONAL", "UNWIND", "WITH", "RETURN")
MAX_GRAPH_BYTES = 2**30
BUFFER_BYTES = 256 * 2**20
# Words in Ladybug's messages, the kind of failure that they tell of, and what to say instead of them.
FAILURES = (
    ("read-only database", "unsafe", "only reading is allowed: the query changes the graph"),
    ("Too many open files", "unsafe", "only reading of the graph is allowed: the query opens a file"),
    ("Buffer manager exception", "too_large", "out of memory"),
    ("bad_alloc", "too_large", "out of memory"),
    ("Interrupted", "timeout", ""),
)
IDS = ("_ID", "_SRC", "_DST", "_LABEL")


class Driver(driver.TableDriver):
    """Keeps the last graph open, with a new connection for each query."""

    def __init__(self) -> None:
        self._state: tuple[Any, ...] = ()
        self._graph: ladybug.Database | None = None
        self._connection: ladybug.Connection | None = None

    def run(self, settings: driver.Settings, query: str, timeout: float) -> driver.Answer:
        """Start `query`; raises `Fault`, `Refused`, Ladybug's errors, or ValueError for what is no query."""
        connection = self._connect(settings)
        check_reads(query)
        connection.set_query_timeout(max(1, int(timeout * 1000)))
        with no_files():
            result = connection.execute(query)

        def fetch(count: int) -> list[Any]:
            return encode_rows([[cell(value) for value in row] for row in result.get_n(count)])

        return tuple(result.get_column_names()), fetch

    def describe(self, settings: driver.Settings) -> driver.Answer:
        """List the properties by labels; relationships have `_src` and `_dst`, which refer to the keys of nodes."""
        rows = []
        for label, properties, ends in labels(self._connect(settings)):
            rows += [(label, name, data_type, None, None) for name, data_type, _ in properties]
            for source, target, source_key, target_key in ends:
                rows += [(label, "_src", "", source, source_key), (label, "_dst", "", target, target_key)]
        return driver.make_answer(("table", "column", "type", "other_table", "other_column"), rows)

    def ddl(self, settings: driver.Settings) -> driver.Answer:
        """List the statements that make the labels."""
        rows = []
        for label, properties, ends in labels(self._connect(settings)):
            parts = [f"FROM {source} TO {target}" for source, target, *_ in ends]
            parts += [f"{name} {data_type}" for name, data_type, _ in properties]
            parts += [f"PRIMARY KEY ({name})" for name, _, is_key in properties if is_key]
            rows.append((f"CREATE {'REL' if ends else 'NODE'} TABLE {label} ({', '.join(parts)})",))
        return driver.make_answer(("statement",), rows)

    def classify(self, error: Exception) -> driver.Verdict:
        """Return the verdict on an error of the other methods."""
        text = first_line(error)
        match error:
            case driver.Fault():
                return "fault", text
            case driver.Refused():
                return "failure", "unsafe", text
            case RuntimeError():
                verdicts = (("failure", kind, said) for words, kind, said in FAILURES if words in str(error))
                return next(verdicts, ("failure", "invalid", text))
            # Text that is no Unicode, and values that Python cannot hold, such as intervals of a million years.
            case ValueError() | OverflowError() | TypeError():
                return "failure", "invalid", text
        return "fault", f"{type(error).__name__}: {text}"

    def _connect(self, settings: driver.Settings) -> Any:
        """Return a new connection to the graph of a request; raises `Fault`."""
        if self._connection:
            self._connection.close()
        path = settings["path"]
        state = (path, driver.signature(path), driver.signature(f"{path}.wal"))
        if self._graph is None or state != self._state:
            if self._graph:
                self._graph.close()
            self._graph, self._state = None, state
            self._graph = open_graph(path)
        self._connection = ladybug.Connection(self._graph, num_threads=1)
        return self._connection


def open_graph(path: str) -> ladybug.Database:
    """Open a graph read-only, which makes Ladybug refuse what would change it; raises `Fault`."""
    try:
        driver.read_header(path, driver.HEADER_BYTES)
        return ladybug.Database(
            path, read_only=True, max_db_size=MAX_GRAPH_BYTES, buffer_pool_size=BUFFER_BYTES, max_num_threads=1
        )
    except (OSError, RuntimeError) as error:
        raise driver.Fault(
            f"{first_line(error)}: name a graph of Ladybug, or a script that makes one as `script`"
        ) from error


def check_reads(query: str) -> None:
    """Raise `Refused` for a query that reaches beyond the graph, and ValueError for what is no single query."""
    query.encode()
    clauses = [tokens for _, tokens in statements(query)]
    first = clauses[0][0].text.upper() if clauses else ""
    if first not in CLAUSES and first.lower() in driver.COMMANDS:
        raise driver.Refused(f"only reading is allowed: {first}")
    if first not in CLAUSES:
        raise ValueError("a query begins with MATCH, OPTIONAL MATCH, UNWIND, WITH or RETURN")
    if len(clauses) > 1:
        raise driver.Refused("more than one statement")
    if clause := reaching_clause(clauses[0]):
        raise driver.Refused(f"only reading of the graph is allowed: {clause}")


@contextmanager
def no_files() -> Iterator[None]:
    """Let the process open no file and no connection within the `with` statement, whatever a query asks for."""
    soft, hard = getrlimit(RLIMIT_NOFILE)
    setrlimit(RLIMIT_NOFILE, (0, hard))
    try:
        yield
    finally:
        setrlimit(RLIMIT_NOFILE, (soft, hard))


def labels(connection: Any) -> Iterator[tuple[str, list[tuple[Any, ...]], list[tuple[Any, ...]]]]:
    """Yield each label with its properties (name, type, is key) and, of relationships, their ends."""
    for _, label, kind, *_ in sorted(connection.execute("CALL show_tables() RETURN *").get_all()):
        argument = "'" + label.replace("\\", "\\\\").replace("'", "\\'") + "'"
        described = connection.execute(f"CALL table_info({argument}) RETURN *").get_all()
        properties = [(name, data_type, last is True) for _, name, data_type, _, last in described]
        ends = connection.execute(f"CALL show_connection({argument}) RETURN *").get_all() if kind == "REL" else []
        yield label, properties, ends


def cell(value: Any) -> Any:
    """Return a value of Ladybug without ids.

    A node or a relationship is its label and its properties, without those that are NULL. A path is the list of its
    parts in turn; that of a variable of variable length begins with a relationship.
    """
    match value:
        case {"_NODES": nodes, "_RELS": relationships}:
            longer, shorter = sorted((nodes, relationships), key=len, reverse=True)
            return [cell(part) for pair in zip_longest(longer, shorter) for part in pair if part]
        case {"_LABEL": label, "_ID": _}:
            properties = {name: cell(item) for name, item in value.items() if name not in IDS and item is not None}
            return {"_label": label, **properties}
        case dict():
            return {key: cell(item) for key, item in value.items()}
        case list():
            return [cell(item) for item in value]
    return value
