"""No statement changes a source, reaches a file, or stops the next statement, where statements may change data."""

import os
import sqlite3
import tempfile
import time
from pathlib import Path

import pytest
from batteries import failures, opened_battery
from hostile_writes import ALLOWED, COMMANDS, FULL, GUARDED, INVALID, LARGE, NEW_ORDER, SCHEMA, SLOW

pytestmark = pytest.mark.process


@pytest.fixture(scope="module")
def battery(tmp_path_factory):
    folder = tmp_path_factory.mktemp("battery")
    connection = sqlite3.connect(folder / "shop.db")
    connection.executescript(SCHEMA)
    connection.close()
    with opened_battery(folder, "sqlite", "shop.db") as run:
        yield run


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


def bytes_of_copies():
    """What the files take that child processes have open in the folder for temporary files."""
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text(encoding="utf-8").split()
    files = [file for child in children for file in Path(f"/proc/{child}/fd").iterdir()]
    copies = [file.stat() for file in files if str(file.readlink()).startswith(f"{tempfile.gettempdir()}/queryeval-")]
    return sum({copy.st_ino: 512 * copy.st_blocks for copy in copies}.values())


@pytest.mark.parametrize(
    "queries", [FULL[:2], pytest.param(FULL[2:], marks=pytest.mark.slow)], ids=["statement and trigger", "all"]
)
def test_a_copy_does_not_grow_without_bounds(battery, queries):
    assert failures(battery, queries, {"too_large"}, timeout=120) == {}
    assert 2**20 < bytes_of_copies() < 2.5 * 256 * 2**20  # the copy and its log, of files without a name


def test_statements_without_end_are_stopped(battery):
    began = time.monotonic()

    assert failures(battery, SLOW, {"timeout"}, timeout=0.1) == {}
    assert time.monotonic() - began < 60  # by themselves they end never


def test_statements_that_are_allowed_leave_nothing_behind(battery):
    assert failures(battery, ALLOWED, {"an answer"}) == {}


def test_the_statements_are_distinct_and_many():
    queries = [*COMMANDS, *GUARDED, *INVALID, *LARGE, *FULL, *SLOW]

    assert len(set(queries)) == len(queries) > 200
