"""The command `check`."""

from __future__ import annotations

from pytest_queryeval.cli.command import Command

CHECK = Command(
    module=f"{__name__}.command",
    summary="examine suites: do golds run, is each a test, has every setting an effect",
)
