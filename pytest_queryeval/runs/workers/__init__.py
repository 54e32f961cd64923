"""Work in chunks on an executor, such as a cluster: calls to workers, their execution, retries when a worker dies."""

from __future__ import annotations

from concurrent.futures import Executor
from contextlib import AbstractContextManager
from typing import Protocol

from pytest_queryeval.core.registry import Registry


class Cluster(Protocol):
    """Connects to the cluster of `--on SCHEME://…`.

    Raises `QueryEvalError` for an invalid address, or one that does not answer.
    """

    def __call__(self, address: str) -> AbstractContextManager[Executor]:
        """Return a context manager for an executor of the cluster at an address, `SCHEME://…`."""


CLUSTERS: Registry[Cluster] = Registry("cluster", group="pytest_queryeval.clusters", members={})
