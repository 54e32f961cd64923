"""The command `audit`."""

from __future__ import annotations

from pytest_queryeval.cli.command import Command

AUDIT = Command(
    module=f"{__name__}.audit_command",
    summary="estimate how many answers are right, and how often the verdict is wrong, from a few that people judge",
)
