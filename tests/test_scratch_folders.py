"""Folders for temporary files: what a run leaves behind if it is killed, and who removes it."""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pytest_queryeval.cli import main

pytestmark = pytest.mark.process
# A process that holds the database of a script, which has a folder of its own.
HOLD = """
import os, sys
from pathlib import Path
from pytest_queryeval.core.model import Source
from pytest_queryeval.testing import open_engine

Path("shop.sql").write_text("CREATE TABLE a (x);")
with open_engine(Source(name="a", engine="sqlite", settings={"script": "shop.sql"}, folder=Path.cwd())):
    if "fork" in sys.argv and os.fork():
        os._exit(0)
    print("held", flush=True)
    sys.stdin.read()
"""
OLD = time.time() - 100 * 24 * 3600
DIGITS = "0123456789abcdef" * 2


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    return folder


@pytest.fixture
def start(temporary, tmp_path):
    """Return a function that starts a process with a scratch folder, and returns both."""
    processes = []

    def start(*arguments):
        before = {*temporary.iterdir()}
        command = [sys.executable, "-c", HOLD, *arguments]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        processes.append(subprocess.Popen(command, cwd=tmp_path, **pipes))
        assert processes[-1].stdout.readline() == "held\n"
        (folder,) = {*temporary.iterdir()} - before
        return processes[-1], folder

    yield start
    for process in processes:
        with process:
            process.kill()


def another_run(start):
    """Start and end another run, which removes what others have left."""
    process, _ = start()
    process.communicate("")


def test_a_process_that_ends_leaves_nothing_and_a_killed_one_to_the_next_run(start, temporary):
    (killed, first), (held, second) = start(), start()
    killed.kill()
    killed.wait()
    assert list(first.iterdir())

    another_run(start)

    assert [*temporary.iterdir()] == [second]
    held.communicate("")
    assert [*temporary.iterdir()] == []


def test_the_folder_is_kept_as_long_as_a_fork_of_its_process_lives(start, temporary):
    process, folder = start("fork")
    process.wait()

    another_run(start)
    assert [*temporary.iterdir()] == [folder]
    process.communicate("")  # until the fork has ended
    another_run(start)

    assert [*temporary.iterdir()] == []


def test_only_what_this_package_has_made_is_removed(start, temporary):
    held, folder = start()
    kernel = re.fullmatch(r"queryeval-([0-9a-f]+)-[0-9a-f]{32}", folder.name)[1]
    names = (
        "queryeval-demo",
        f"queryeval-{kernel}-mine",
        f"queryeval-{kernel}-{DIGITS}x",
        f"my-queryeval-{kernel}-{DIGITS}",
    )
    young, old = (temporary / f"queryeval-00000000-{digit * 32}" for digit in "ab")  # of another kernel
    for path in (*(temporary / name for name in names), young, old):
        path.mkdir()
        if path != young:
            os.utime(path, (OLD, OLD))
    (temporary / f"queryeval-{kernel}-{DIGITS}").symlink_to(temporary / names[0])

    another_run(start)
    held.communicate("")

    assert {path.name for path in temporary.iterdir()} == {*names, f"queryeval-{kernel}-{DIGITS}", young.name}


@pytest.mark.feature("evaluate", "json")
def test_a_file_that_nobody_completed_is_removed_from_its_folder_after_a_day(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("s.queryeval.yaml").write_text("{kind: json, cases: [{id: a, gold: [0], predicted: [0]}]}")
    reports = tmp_path / "reports"
    reports.mkdir()
    young, old, other = (
        reports / name for name in (f".queryeval-{'a' * 32}", f".queryeval-{'b' * 32}", ".queryeval-x")
    )
    for path in (young, old, other):
        path.touch()
    for path in (old, other):
        os.utime(path, (OLD, OLD))

    assert main(["evaluate", "s.queryeval.yaml", "--report=reports/report.json", "-q"]) == 0

    assert {path.name for path in reports.iterdir()} == {young.name, other.name, "report.json"}
