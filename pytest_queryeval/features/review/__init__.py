"""The commands `explain`, `accept` and `review`, the key `reviews`, and the section on reviewed golds."""

from __future__ import annotations

from pytest_queryeval.cli.command import Command

EXPLAIN = Command(
    module=f"{__name__}.explain_command",
    summary="show everything about one case, or try another query against it",
)
ACCEPT = Command(
    module=f"{__name__}.accept_command",
    summary="append a reviewed prediction of a report to the review file of its suite",
)
REVIEW = Command(
    module=f"{__name__}.review_command",
    summary="rank cases by how likely their golds are wrong, with the evidence",
)
