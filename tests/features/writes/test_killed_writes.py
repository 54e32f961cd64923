"""Nothing is left of a copy when a process of the run is killed, which cannot remove anything by itself."""

import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.process

SECONDS = 60  # the machine may be busy
ROWS_WITHOUT_END = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
INSERT = "INSERT INTO a VALUES (1)"
COPIED_BYTES = 200 * 2**20  # which take a moment
# A run that says when it has started, and the id of its child process once it has run the first statement.
RUN = """
import sys
from pathlib import Path
from pytest_queryeval.core.model import Source
from pytest_queryeval.engines import ENGINES
from pytest_queryeval.sandbox.host import Hosts

engine, path, *queries = sys.argv[1:]
source = Source(name="a", engine=engine, settings={"path": path}, folder=Path(path).parent, writes=True)
with Hosts() as hosts:
    transactions = ENGINES[engine].open(source, hosts)
    for query in queries:
        print(transactions.execute(query, timeout=2, max_rows=9).error, flush=True)
    sys.stdin.read()
"""


def wait_until(condition):
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline, "it takes too long"
        time.sleep(0.005)


def copies(folder):
    return list(folder.glob("queryeval-*/*"))


def children(pid):
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def runs(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8") if os.path.exists(f"/proc/{pid}") else open(os.devnull) as file:  # noqa: PTH110, PTH123
        return file.read().rpartition(")")[2].split()[:1] not in ([], ["Z"])


@pytest.fixture(params=["sqlite", pytest.param("duckdb", marks=pytest.mark.feature("duckdb"))])
def source(request, tmp_path):
    """The engine, and the path of a database."""
    path = tmp_path / f"a.{request.param}"
    if request.param == "sqlite":
        connection = sqlite3.connect(path)
        connection.executescript("CREATE TABLE a (x INTEGER)")
        connection.close()
    else:
        import duckdb

        with duckdb.connect(str(path)) as connection:
            connection.execute("CREATE TABLE a (x INTEGER)")
    return request.param, path


@pytest.fixture
def start(source, tmp_path):
    """Return a function that starts a run of some queries, and the folder for its temporary files."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    started = []

    def run(*queries):
        command = [sys.executable, "-c", RUN, source[0], str(source[1]), *queries]
        environment = {**os.environ, "TMPDIR": str(temporary)}
        started.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment))
        return started[-1], temporary

    yield run
    for process in started:
        process.kill()
        process.communicate()


def killed(process):
    """Kill a run, and wait until its child has ended."""
    (child,) = children(process.pid)
    process.kill()
    process.wait()
    wait_until(lambda: not runs(child))


def test_a_run_that_is_killed_leaves_nothing_behind(start):
    process, temporary = start(INSERT)
    assert process.stdout.readline() == b"None\n"

    killed(process)

    assert list(temporary.iterdir()) == []


def test_a_run_that_is_killed_while_a_statement_runs_leaves_no_copy_behind(start):
    process, temporary = start(INSERT, ROWS_WITHOUT_END)
    assert process.stdout.readline() == b"None\n"

    killed(process)

    assert copies(temporary) == []


def test_a_run_that_is_killed_while_the_copy_is_made_leaves_nothing_behind(start, source):
    os.truncate(source[1], COPIED_BYTES)
    process, temporary = start(INSERT)
    wait_until(lambda: copies(temporary))

    killed(process)

    assert list(temporary.iterdir()) == []


def test_a_child_that_is_killed_leaves_nothing_behind_and_the_next_one_makes_its_copy(start):
    process, temporary = start(INSERT, ROWS_WITHOUT_END, INSERT)
    assert process.stdout.readline() == b"None\n"

    os.kill(children(process.pid)[0], signal.SIGKILL)
    lines = [process.stdout.readline() for _ in range(2)]
    process.communicate(b"")

    assert lines[1] == b"None\n"
    assert list(temporary.iterdir()) == []


def test_a_child_that_is_killed_while_it_makes_its_copy_leaves_nothing_behind(start, source):
    os.truncate(source[1], COPIED_BYTES)
    process, temporary = start(INSERT)
    wait_until(lambda: copies(temporary))

    os.kill(children(process.pid)[0], signal.SIGKILL)
    process.communicate(b"")

    assert list(temporary.iterdir()) == []
