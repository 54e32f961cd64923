"""No statement changes a source, reaches a file, or stops the next statement, where statements may change data."""

import os
import sqlite3
import tempfile
import time

import pytest
from hostile_writes import ALLOWED, COMMANDS, FULL, GUARDED, INVALID, LARGE, NEW_ORDER, SCHEMA, SLOW

from pytest_queryeval.core.model import Source
from pytest_queryeval.engines import ENGINES
from pytest_queryeval.sandbox.host import Hosts

pytestmark = pytest.mark.process

MAX_ROWS = 1_000
COUNTS = "SELECT (SELECT count(*) FROM customer), (SELECT count(*) FROM orders), (SELECT count(*) FROM log)"


def contents(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def battery(tmp_path_factory):
    """Return a function that runs a statement; after all of them, no file may have changed or come."""
    folder = tmp_path_factory.mktemp("battery")
    with pytest.MonkeyPatch.context() as patch:
        temporary = folder / "temporary"
        temporary.mkdir()
        patch.setattr(tempfile, "tempdir", str(temporary))
        patch.setenv("TMPDIR", str(temporary))
        patch.setenv("SQLITE_TMPDIR", str(temporary))
        connection = sqlite3.connect(folder / "shop.db")
        connection.executescript(SCHEMA)
        connection.close()
        (folder / "secret").write_text("secret", encoding="utf-8")
        before = contents(folder)
        with Hosts() as hosts:
            source = Source(name="shop", engine="sqlite", settings={"path": "shop.db"}, folder=folder, writes=True)
            engine = ENGINES["sqlite"].open(source, hosts)
            places = {"folder": folder, "database": folder / "shop.db", "secret": folder / "secret"}

            def run(query, timeout=20):
                for name, path in places.items():
                    query = query.replace(f"{{{name}}}", str(path))
                return engine.execute(query, timeout=timeout, max_rows=MAX_ROWS)

            yield run
            assert contents(folder) == before  # the copy has no name
            engine.close()
        assert contents(folder) == before
        assert list(temporary.iterdir()) == []


def failures(battery, queries, kinds, *, timeout=20):
    """The statements that do not end in a failure of these kinds, or after which the source has another state."""
    wrong = {}
    for query in queries:
        execution = battery(query, timeout)
        kind = execution.error.kind if execution.error else "an answer"
        following = battery(COUNTS)
        counts = following.error or following.answer.as_table().rows
        if kind not in kinds or counts != [(2, 2, 0)]:
            wrong[query[:200]] = kind, execution.error, counts
    return wrong


def test_commands_are_unsafe(battery):
    assert failures(battery, COMMANDS, {"unsafe"}) == {}


def test_commands_behind_statements_that_are_allowed_are_unsafe(battery):
    hidden = [f"{NEW_ORDER};\n-- ;\n{command} /* ; */;;" for command in COMMANDS]

    assert failures(battery, hidden, {"unsafe"}) == {}


def test_what_the_first_word_does_not_tell_is_unsafe(battery):
    assert failures(battery, GUARDED, {"unsafe"}) == {}


def test_what_sqlite_does_not_have_is_invalid(battery):
    assert failures(battery, INVALID, {"invalid"}) == {}


def test_large_values_and_many_rows_are_too_large(battery):
    assert failures(battery, LARGE, {"too_large"}) == {}


@pytest.mark.parametrize(
    "queries", [FULL[:2], pytest.param(FULL[2:], marks=pytest.mark.slow)], ids=["statement and trigger", "all"]
)
def test_a_copy_does_not_grow_without_bounds(battery, queries):
    free = os.statvfs(tempfile.gettempdir())

    assert failures(battery, queries, {"too_large"}) == {}
    assert free.f_frsize * (free.f_bavail - os.statvfs(tempfile.gettempdir()).f_bavail) < 3 * 256 * 2**20


def test_statements_without_end_are_stopped(battery):
    began = time.monotonic()

    assert failures(battery, SLOW, {"timeout"}, timeout=0.1) == {}
    assert time.monotonic() - began < 60  # by themselves they end never


def test_statements_that_are_allowed_leave_nothing_behind(battery):
    assert failures(battery, ALLOWED, {"an answer"}) == {}


def test_the_statements_are_distinct_and_many():
    queries = [*COMMANDS, *GUARDED, *INVALID, *LARGE, *FULL, *SLOW]

    assert len(set(queries)) == len(queries) > 200
