"""Waiting for what another process does, which on a busy machine may take a while."""

import subprocess
import time
from pathlib import Path


def wait_for(condition, seconds=60):
    """Return once the condition is true; fail after so many seconds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def is_running(pid):
    """Return whether a process runs; one that has ended and waits for its parent does not."""
    status = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False).stdout
    return bool(status.strip()) and not status.startswith("Z")


def child_processes():
    """Return the ids of the processes that this one has started and that have not ended."""
    threads = Path("/proc/self/task").glob("*/children")
    return {int(pid) for children in threads for pid in children.read_text(encoding="ascii").split()}
