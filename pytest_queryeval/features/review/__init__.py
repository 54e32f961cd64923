"""The commands `explain`, `accept` and `review`, and what people decided on golds: a key, a group and a section."""

from __future__ import annotations

from pytest_queryeval.cli.command import Command
from pytest_queryeval.core.groups import Group

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
DECISION = Group(
    values=lambda case, _: (case.review.decision,) if case.review is not None else (),
    heading="review",
    plural="decisions",
    preposition="decided",
    shown=frozenset({"filters", "csv", "workbook", "failure"}),
)
