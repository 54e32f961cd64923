"""Engines of servers that are opened without hosts have child processes of their own."""

import pytest


@pytest.fixture(scope="module")
def kept_hosts():
    """Keep nothing: tests set variables of the environment for a child process, or end it."""
