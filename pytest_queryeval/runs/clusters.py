"""Clusters that run cases, to which `queryeval evaluate --on SCHEME://…` connects."""

from __future__ import annotations

from concurrent.futures import Executor
from contextlib import AbstractContextManager
from typing import Protocol

from pytest_queryeval.core.registry import Registry


class Cluster(Protocol):
    """Connects to a cluster; raises `QueryEvalError` for an invalid address, or one that does not answer."""

    def __call__(self, address: str) -> AbstractContextManager[Executor]:
        """Return a context manager for an executor of the cluster at an address, `SCHEME://…`."""


CLUSTERS: Registry[Cluster] = Registry("cluster", group="pytest_queryeval.clusters", members={})
