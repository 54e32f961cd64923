"""The group `review`: cases by what reviewers decided on their golds."""

from __future__ import annotations

from pytest_queryeval.core.groups import Group

DECISION = Group(
    values=lambda case, _: (case.review.decision,) if case.review is not None else (),
    heading="review",
    plural="decisions",
    preposition="decided",
    shown=frozenset({"filters", "csv", "workbook", "failure"}),
)
