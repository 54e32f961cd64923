"""The command `evaluate`."""

from __future__ import annotations

from pytest_queryeval.cli.command import Command

EVALUATE = Command(
    module=f"{__name__}.command",
    summary="evaluate suites without pytest, in several processes or on a cluster",
)
