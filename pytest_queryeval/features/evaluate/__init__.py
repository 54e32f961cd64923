"""The command `evaluate`, and the clusters that it can use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from pytest_queryeval.cli.command import Command
from pytest_queryeval.core.registry import Registry

if TYPE_CHECKING:
    from concurrent.futures import Executor
    from contextlib import AbstractContextManager

EVALUATE = Command(
    module=f"{__name__}.command",
    summary="evaluate suites without pytest, in several processes or on a cluster",
)


class Cluster(Protocol):
    """Connects to the cluster of `--on SCHEME://…`.

    Raises `QueryEvalError` for an invalid address, or one that does not answer.
    """

    def __call__(self, address: str) -> AbstractContextManager[Executor]:
        """Return a context manager for an executor of the cluster at an address, `SCHEME://…`."""


CLUSTERS: Registry[Cluster] = Registry("cluster", group="pytest_queryeval.clusters", members={})
