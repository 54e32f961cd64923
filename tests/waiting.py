"""Waiting for what another process does, which on a busy machine may take a while."""

import time


def wait_for(condition, seconds=60):
    """Return once the condition is true; fail after so many seconds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)
