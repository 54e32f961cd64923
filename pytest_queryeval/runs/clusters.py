"""Clusters that run cases: what `queryeval evaluate --on SCHEME://…` connects to."""

from __future__ import annotations

from concurrent.futures import Executor
from contextlib import AbstractContextManager
from typing import Protocol

from pytest_queryeval.core.registry import Registry


class Cluster(Protocol):
    """Connects to a cluster; raises `QueryEvalError` for an address that is none, or that does not answer."""

    def __call__(self, address: str) -> AbstractContextManager[Executor]:
        """Return an executor of the cluster at an address, `SCHEME://…`, which is left when the run ends."""


CLUSTERS: Registry[Cluster] = Registry("cluster", group="pytest_queryeval.clusters", members={})
