"""No statement changes a source, reaches a file, or stops the next one, where statements may change data."""

import os
import signal
import tempfile
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
from hostile_statements import hostile, statements
from opened_sources import contents
from shops import untouched_database
from waiting import child_processes, wait_for

from pytest_queryeval.core.model import Source
from pytest_queryeval.testing import EngineContract, open_engine

pytest_plugins = ["postgres"]
pytestmark = pytest.mark.process

NEW_ORDER = "INSERT INTO orders (customer, total) VALUES (1, 5)"
DUCKDB = pytest.mark.feature("duckdb")
POSTGRESQL = pytest.mark.feature("database_servers")


@pytest.fixture(scope="module")
def kept_hosts():
    """Keep nothing: two engines have a child process each."""


def source_of(stated, folder):
    ((engine, settings),) = stated.items()
    settings = settings if isinstance(settings, dict) else {"path": settings}
    return Source(name="shop", engine=engine, settings=settings, folder=folder, writes=True)


@pytest.fixture(scope="module")
def opened(request, tmp_path_factory):
    """The engine that a class names, on a database that all statements attack, and its folder; neither may change."""
    name, user = request.param
    folder, temporary = tmp_path_factory.mktemp(f"battery_{name}_{user}"), tmp_path_factory.mktemp("temporary")
    folder.chmod(0o777)
    (folder / "secret").write_text("secret", encoding="utf-8")
    if name == "postgresql":
        request.getfixturevalue("cluster")  # whose folder is elsewhere
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "tempdir", str(temporary))
        for variable in ("TMPDIR", "SQLITE_TMPDIR"):
            patch.setenv(variable, str(temporary))
        with untouched_database(name, statements(name)["schema"], folder, request, user) as stated:
            before = contents(folder)
            with untouched_server(name, request), open_engine(source_of(stated, folder)) as engine:
                yield engine, folder
                assert contents(folder) == before  # the copy has no name
        assert contents(folder) == before
        assert list(temporary.iterdir()) == []


@contextmanager
def untouched_server(name, request):
    """On a server no session of somebody else ends, and no transaction and no lock stay."""
    if name != "postgresql":
        yield
        return
    cluster = request.getfixturevalue("cluster")
    with cluster.connect("owner") as bystander:
        yield
        assert bystander.execute("SELECT 1").fetchall() == [(1,)]
    wait_for(lambda: cluster.backends() == 0)
    wait_for(lambda: cluster.sql("SELECT * FROM pg_locks WHERE locktype = 'advisory'") == [])


class WritesContract(EngineContract):
    """The contract of engines for queries that may change data, as each finds them in the source."""

    answers = {
        "SELECT name AS n, id AS n FROM customer ORDER BY id DESC": (("n", "n"), [("Bob", 2), ("Ann", 1)]),
        "DELETE FROM orders WHERE id = 2": (
            ("table", "change", "id", "customer", "total"),
            [("orders", "removed", 2, 2, 7.25)],
        ),
        NEW_ORDER: (("table", "change", "id", "customer", "total"), [("orders", "added", 3, 1, 5.0)]),
    }
    rows = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {count}) SELECT i FROM n"
    state = "SELECT (SELECT count(*) FROM customer), (SELECT count(*) FROM orders), (SELECT count(*) FROM log)"
    seconds = 60.0

    @pytest.fixture
    def engine(self, opened):
        return opened[0]

    @pytest.fixture(autouse=True)
    def place(self, opened):
        self.folder = opened[1]

    def filled(self, query):
        places = {"folder": self.folder, "secret": self.folder / "secret", "database": self.folder / "shop.duckdb"}
        for name, path in places.items():
            query = query.replace(f"{{{name}}}", str(path))
        return query


@pytest.mark.parametrize("opened", [("sqlite", "")], indirect=True, scope="module")
class TestSqlite(WritesContract):
    failures = {kinds: found for kinds, found in hostile("sqlite", "writing", NEW_ORDER).items() if kinds != "full"}

    @pytest.mark.parametrize("count", [2, pytest.param(9, marks=pytest.mark.slow)])
    def test_a_copy_does_not_grow_without_bounds(self, engine, count):
        queries = hostile("sqlite", "writing")["full"][:count]

        assert {engine.execute(query, timeout=120, max_rows=1000).error.kind for query in queries} == {"too_large"}
        assert 2**20 < bytes_of_copies() < 2.5 * 256 * 2**20  # the copy and its log, of files without a name


def bytes_of_copies():
    """What the files take that child processes have open in the folder for temporary files."""
    files = [file for child in child_processes() for file in Path(f"/proc/{child}/fd").iterdir()]
    copies = [file.stat() for file in files if str(file.readlink()).startswith(f"{tempfile.gettempdir()}/queryeval-")]
    return sum({copy.st_ino: 512 * copy.st_blocks for copy in copies}.values())


@DUCKDB
@pytest.mark.parametrize("opened", [("duckdb", "")], indirect=True, scope="module")
class TestDuckDB(WritesContract):
    failures = {
        **{kinds: found for kinds, found in hostile("duckdb", "writing", NEW_ORDER).items() if kinds != "full"},
        "unsafe": [
            query
            for query in hostile("duckdb", "writing", NEW_ORDER)["unsafe"]
            if query not in statements("duckdb")["guarded"]
        ],
        "unsafe invalid": statements("duckdb")["guarded"],
    }

    @pytest.mark.parametrize("count", [1, pytest.param(9, marks=pytest.mark.slow)])
    def test_a_copy_does_not_grow_without_bounds(self, engine, count):
        queries = hostile("duckdb", "writing")["full"][:count]

        assert {engine.execute(query, timeout=60, max_rows=1000).error.kind for query in queries} == {"too_large"}


class PostgreSQLContract(WritesContract):
    failures = hostile("postgresql", "writing", NEW_ORDER)
    rows = "SELECT i FROM generate_series(1, {count}) AS i"


@POSTGRESQL
@pytest.mark.parametrize("opened", [("postgresql", "owner")], indirect=True, scope="module")
class TestPostgreSQL(PostgreSQLContract):
    pass


@POSTGRESQL
@pytest.mark.parametrize("opened", [("postgresql", "postgres")], indirect=True, scope="module")
class TestPostgreSQLForSuperusers(PostgreSQLContract):
    failures = {
        **PostgreSQLContract.failures,
        "unsafe": [*statements("postgresql")["commands"], *statements("postgresql")["guarded"]],
    }


@pytest.fixture
def on_postgresql(request, tmp_path):
    """Opens a shop on PostgreSQL, each time with a child process of its own."""
    with untouched_database("postgresql", statements("postgresql")["schema"], tmp_path, request) as stated:
        yield lambda: open_engine(source_of(stated, tmp_path))


@POSTGRESQL
def test_a_process_waits_for_the_queries_of_another_one_beyond_its_time(on_postgresql, cluster):
    slow = "UPDATE customer SET city = 'x'; SELECT pg_sleep(2)"
    with on_postgresql() as first, on_postgresql() as second:
        second.execute("SELECT 1", timeout=20, max_rows=9)  # its child has started
        thread = threading.Thread(target=first.execute, args=[slow], kwargs={"timeout": 20, "max_rows": 9})
        thread.start()
        wait_for(lambda: cluster.sql("SELECT * FROM pg_stat_activity WHERE wait_event = 'PgSleep'"))
        began = time.monotonic()
        execution = second.execute("UPDATE customer SET city = 'y'", timeout=0.5, max_rows=9)
        waited = time.monotonic() - began
        thread.join()

    assert execution.error is None
    assert waited > 0.5


@POSTGRESQL
def test_a_child_that_is_killed_leaves_no_transaction_and_no_lock_behind(on_postgresql, cluster):
    others = child_processes()
    with on_postgresql() as engine:
        query = "DELETE FROM log; SELECT pg_sleep(1)"
        thread = threading.Thread(target=engine.execute, args=[query], kwargs={"timeout": 9, "max_rows": 9})
        thread.start()
        wait_for(cluster.backends)
        for pid in child_processes() - others:
            os.kill(pid, signal.SIGKILL)
        thread.join()

    wait_for(lambda: cluster.sql("SELECT * FROM pg_locks WHERE locktype = 'advisory'") == [])
    wait_for(lambda: cluster.backends() == 0)
