"""The commands `explain` and `accept`."""

from __future__ import annotations

from pytest_queryeval.cli.command import Command

EXPLAIN = Command(
    module=f"{__name__}.explain_command",
    summary="show everything about one case, or try another query against it",
)
ACCEPT = Command(
    module=f"{__name__}.accept_command", summary="add a reviewed prediction of a report to the golds of its case"
)
