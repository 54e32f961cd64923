"""Tests hold where SIGINT is ignored from the start: with nohup, in background jobs, at some CI services."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

INTERRUPTION = "test_host.py::test_an_interrupted_query_does_not_leave_its_answer_to_the_next"


@pytest.mark.process
def test_interruptions_arrive_where_the_tests_were_started_with_sigint_ignored():
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", INTERRUPTION]

    tests = subprocess.run(
        command,
        cwd=Path(__file__).parent,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
        capture_output=True,
        text=True,
        timeout=300,
    )

    assert tests.returncode == 0, tests.stdout
