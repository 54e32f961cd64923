"""The commands `compare` and `history`."""

from __future__ import annotations

from pytest_queryeval.cli.command import Command

COMPARE = Command(module=f"{__name__}.compare_command", summary="compare two reports, or rank the systems of many")
HISTORY = Command(
    module=f"{__name__}.history_command", summary="show how runs went over time, and since when something is worse"
)
