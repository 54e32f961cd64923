"""Without a server to ask, the cases of this folder are skipped."""

import os

import pytest

VARIABLE = "QUERYEVAL_EXAMPLE_ENDPOINT"


def pytest_itemcollected(item):
    """Mark an item; pytest calls this hook of a conftest.py for the items below its own folder only."""
    if not os.environ.get(VARIABLE):
        item.add_marker(pytest.mark.skip(reason=f"{VARIABLE} is not set: see sparql/live/queryeval.yaml"))
