"""The command `init`."""

from __future__ import annotations

from pytest_queryeval.cli.command import Command

INIT = Command(
    module=f"{__name__}.init_command", summary="write a first suite, its settings, a predictor and a CI workflow"
)
