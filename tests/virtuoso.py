"""A Virtuoso server of the tests' own, one a session, on free ports of this machine; as `mariadb` in its use.

Needs Debian's virtuoso-opensource-7-bin.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from servers import HOST, START_SECONDS, ask, free_port, server

MAX_ROWS = 1_000
SETTINGS = """
[Database]
DatabaseFile = {folder}/virtuoso.db
ErrorLogFile = {folder}/log
LockFile = {folder}/lock
TransactionFile = {folder}/virtuoso.trx
xa_persistent_file = {folder}/virtuoso.pxa
FileExtend = 200
TempStorage = TempDatabase
[TempDatabase]
DatabaseFile = {folder}/temporary.db
TransactionFile = {folder}/temporary.trx
[Parameters]
ServerPort = {host}:{sql}
DisableUnixSocket = 1
ServerThreads = 10
CheckpointInterval = 0
NumberOfBuffers = 2000
DirsAllowed = {folder}/data
[HTTPServer]
ServerPort = {host}:{http}
ServerRoot = {folder}
ServerThreads = 5
[SPARQL]
ResultSetMaxRows = {max_rows}
"""


@dataclass(frozen=True)
class Virtuoso:
    """A running server; everybody may read, by the role that it gives to its user SPARQL."""

    folder: Path
    sql_port: int
    http_port: int
    graph: str = "http://example.org/graph"

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.http_port}/sparql"

    def sql(self, statement: str) -> str:
        """What the server's own client writes about a statement of the administrator."""
        command = ["isql-vt", f"{HOST}:{self.sql_port}", "dba", "dba", f"exec={statement}"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=START_SECONDS)
        assert "*** Error" not in done.stdout + done.stderr, done.stdout + done.stderr
        return done.stdout

    def load(self, text: str) -> None:
        """Add TriG, whose default graph becomes `graph`."""
        path = self.folder / "data" / "data.trig"
        path.write_text(text, encoding="utf-8")
        self.sql(f"DB.DBA.TTLP(file_to_string_output('{path}'), '', '{self.graph}', 256)")

    def dump(self) -> list[str]:
        """All triples of the tests' graphs, and the procedures and users of the server."""
        actual = ask(self.url, "SELECT ?g ?s ?p ?o { GRAPH ?g { ?s ?p ?o } FILTER(STRSTARTS(STR(?g), 'http://e')) }")
        lists = (
            self.sql(f"select {name} from {table} order by 1").partition("Rows")[0]
            for name, table in (("P_NAME", "SYS_PROCEDURES"), ("U_NAME", "SYS_USERS"))
        )
        return [*sorted(map(repr, actual["results"]["bindings"])), *(text.rpartition("\n")[0] for text in lists)]

    def running(self) -> str:
        """The statements that run, as the server lists them."""
        return self.sql("status('c')").rpartition("Running Statements:")[2]


@pytest.fixture(scope="session")
def virtuoso() -> Iterator[Virtuoso]:
    if not shutil.which("virtuoso-t") or not shutil.which("isql-vt"):
        pytest.skip("Virtuoso is not installed: apt-get install virtuoso-opensource-7-bin")
    with tempfile.TemporaryDirectory(prefix="queryeval-virtuoso-") as name:
        started = Virtuoso(Path(name), free_port(), free_port())
        (started.folder / "data").mkdir()
        ports = {"host": HOST, "sql": started.sql_port, "http": started.http_port}
        settings = SETTINGS.format(folder=name, max_rows=MAX_ROWS, **ports)
        (started.folder / "virtuoso.ini").write_text(settings)
        command = ["virtuoso-t", "+foreground", "+configfile", str(started.folder / "virtuoso.ini")]
        with server(command, lambda: ask(started.url, "ASK {}"), OSError):
            yield started
