"""Tests of features end the processes of each session, as `kept_hosts` of all other tests does not."""

import pytest


@pytest.fixture(scope="module")
def kept_hosts():
    """Keep nothing."""
