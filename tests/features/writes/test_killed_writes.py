"""Nothing is left of a copy when a process of the run is killed, which cannot remove anything by itself."""

import os
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from shops import ON_ALL, connected
from waiting import is_running, wait_for

pytestmark = pytest.mark.process

ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
INSERT = "INSERT INTO a VALUES (1)"
COPIED_BYTES = 150 * 2**20  # which take a moment
# A run that tells of each query that has ended.
RUN = """
import sys
from pathlib import Path
from pytest_queryeval.core.model import Source
from pytest_queryeval.testing import open_engine

engine, path, *queries = sys.argv[1:]
with open_engine(Source(name="a", engine=engine, settings={"path": path}, folder=Path(path).parent, writes=True)) as it:
    for query in queries:
        print(it.execute(query, timeout=2, max_rows=9).error, flush=True)
    sys.stdin.read()
"""


def copies(folder):
    return list(folder.glob("queryeval-*/*"))


def child_of(process):
    (child,) = map(int, Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split())
    return child


@pytest.fixture(params=ON_ALL[:2])
def path(request, tmp_path):
    """A database, whose suffix is its engine."""
    path = tmp_path / f"a.{request.param}"
    with closing(connected(request.param, path)) as connection:
        connection.execute("CREATE TABLE a (x INTEGER)")
    return path


@pytest.fixture
def start(path, tmp_path):
    """Return a function that starts a run of some queries, and the folder for its temporary files."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    started = []

    def run(*queries):
        command = [sys.executable, "-c", RUN, path.suffix[1:], str(path), *queries]
        environment = {**os.environ, "TMPDIR": str(temporary)}
        started.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment))
        return started[-1], temporary

    yield run
    for process in started:
        process.kill()
        process.communicate()


def kill_run(process):
    """Kill a run, and wait until its child has ended."""
    child = child_of(process)
    process.kill()
    process.wait()
    wait_for(lambda: not is_running(child))


def kill_child(process):
    os.kill(child_of(process), signal.SIGKILL)
    process.communicate(b"")


@pytest.mark.parametrize("kill", [kill_run, kill_child])
def test_nothing_is_left_behind_if_a_run_or_its_child_is_killed_while_the_copy_is_made(start, path, kill):
    os.truncate(path, COPIED_BYTES)
    process, temporary = start(INSERT)
    wait_for(lambda: copies(temporary))

    kill(process)

    assert list(temporary.iterdir()) == []


def test_a_child_or_a_run_that_is_killed_while_a_statement_runs_leaves_no_copy_and_the_next_one_makes_its_own(start):
    process, temporary = start(INSERT, ENDLESS, INSERT, ENDLESS)
    assert process.stdout.readline() == b"None\n"

    os.kill(child_of(process), signal.SIGKILL)
    lines = [process.stdout.readline() for _ in range(2)]
    kill_run(process)  # while a statement runs

    assert lines[1] == b"None\n"
    assert copies(temporary) == []
