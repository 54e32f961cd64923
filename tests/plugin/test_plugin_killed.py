"""What is left of runs that were killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest
from singers import case, unpredicted
from waiting import wait_for

pytestmark = [pytest.mark.process, pytest.mark.feature("duckdb", "evaluate")]
WAITING = """
import pathlib, time

def predict(case):
    if case.id == "a":
        return "SELECT 1"
    pathlib.Path(__file__).with_name("asked").touch()
    time.sleep(600)
"""


@pytest.mark.parametrize("command", [["pytest"], ["pytest_queryeval", "evaluate", "s"]])
def test_the_next_run_removes_the_database_of_a_run_that_was_killed(pytester, suite, write, command):
    temporary = pytester.mkdir("temporary")
    environment = {**os.environ, "TMPDIR": str(temporary)}
    write("s/app.py", WAITING)
    source = {"duckdb": {"script": "singers.sql"}}
    suite(unpredicted("a"), unpredicted("b"), source=source, predictor="app.py:predict", name="s/a.queryeval.yaml")
    run = [sys.executable, "-m", *command]
    with subprocess.Popen(run, env=environment, stdout=subprocess.DEVNULL, start_new_session=True) as process:
        wait_for((pytester.path / "s/asked").exists)
        process.send_signal(signal.SIGKILL)
    (left,) = temporary.iterdir()
    suite(case("a"), source=source, name="s/a.queryeval.yaml")

    subprocess.run(run, env=environment, check=True, capture_output=True, timeout=300)

    assert [*temporary.iterdir()] == [], left
