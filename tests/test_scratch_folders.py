"""Folders for temporary files: what a run leaves behind if it is killed, and who removes it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pytest_queryeval.core import files

pytestmark = pytest.mark.process
HOLD = """
import os, sys
from pytest_queryeval.core.files import ScratchFolder

scratch = ScratchFolder()
(scratch.path / "built.db").touch()
if "fork" in sys.argv and os.fork():
    os._exit(0)
print(scratch.path, flush=True)
sys.stdin.read()
"""
RUN = "from pytest_queryeval.sandbox.host import Hosts; Hosts()"
MONTHS = 100 * 24 * 3600


@pytest.fixture
def temporary(tmp_path):
    folder = tmp_path / "temporary"
    folder.mkdir()
    return folder


@pytest.fixture
def start(temporary):
    """Return a function that starts a process with a scratch folder, and returns both."""
    processes = []

    def start(*arguments):
        command = [sys.executable, "-c", HOLD, *arguments]
        environment = {**os.environ, "TMPDIR": str(temporary)}
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
        processes.append(process)
        return process, Path(process.stdout.readline().strip())

    yield start
    for process in processes:
        with process:
            process.kill()


@pytest.fixture
def run(temporary):
    """Return a function that makes another run."""

    def run():
        environment = {**os.environ, "TMPDIR": str(temporary)}
        subprocess.run([sys.executable, "-c", RUN], env=environment, check=True, timeout=60)

    return run


def test_a_process_that_ends_leaves_nothing(start, temporary):
    process, folder = start()
    assert (folder / "built.db").exists()

    process.communicate("")

    assert [*temporary.iterdir()] == []


def test_the_folder_of_a_killed_process_is_removed_by_the_next_run(start, run, temporary):
    (killed, first), (_, second) = start(), start()
    killed.kill()
    killed.wait()
    assert (first / "built.db").exists()

    run()

    assert [*temporary.iterdir()] == [second]


def test_the_folder_is_kept_as_long_as_a_fork_of_its_process_lives(start, run, temporary):
    process, folder = start("fork")
    process.wait()

    run()
    assert [*temporary.iterdir()] == [folder]
    process.communicate("")  # until the fork has ended
    run()

    assert [*temporary.iterdir()] == []


def test_only_what_this_package_has_made_is_removed(run, temporary):
    kernel, digits = files._kernel(), "0123456789abcdef" * 2
    names = (
        "queryeval-demo",
        f"queryeval-{kernel}-mine",
        f"queryeval-{kernel}-{digits}x",
        f"my-queryeval-{kernel}-{digits}",
    )
    for name in names:
        (temporary / name).mkdir()
        os.utime(temporary / name, (0, 0))
    (temporary / f"queryeval-{kernel}-{digits}").symlink_to(temporary / names[0])

    run()

    assert {path.name for path in temporary.iterdir()} == {*names, f"queryeval-{kernel}-{digits}"}


def test_folders_of_another_kernel_are_removed_once_they_are_old(run, temporary):
    young, old = (temporary / f"queryeval-00000000-{digit * 32}" for digit in "ab")
    for path in (young, old):
        path.mkdir()
    os.utime(old, (time.time() - MONTHS, time.time() - MONTHS))

    run()

    assert [*temporary.iterdir()] == [young]


def test_a_file_that_nobody_completed_is_removed_from_its_folder_after_a_day(tmp_path):
    young, old, other = (
        tmp_path / name for name in (f".queryeval-{'a' * 32}", f".queryeval-{'b' * 32}", ".queryeval-x")
    )
    for path in (young, old, other):
        path.touch()
    for path in (old, other):
        os.utime(path, (time.time() - MONTHS, time.time() - MONTHS))

    files.write_atomically(tmp_path / "report.json", b"{}")

    assert {path.name for path in tmp_path.iterdir()} == {young.name, other.name, "report.json"}
