"""What `queryeval check` finds in suites, and the names of its rules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from pytest_queryeval.core.errors import Location
from pytest_queryeval.core.model import Case

FindingLevel: TypeAlias = Literal["error", "warning"]
CHECK_RULES: Mapping[str, FindingLevel] = {
    "gold-fails": "error",
    "gold-not-equal-to-itself": "error",
    "unknown-column": "error",
    "stale-setting": "error",
    "gold-empty": "warning",
    "gold-slow": "warning",
    "gold-unstable": "warning",
    "limit-tie": "warning",
    "text-order": "warning",
    "constant-result": "warning",
    "unknown-term": "warning",
    "lost-answer": "warning",
    "cut-answer": "warning",
    "value-not-in-data": "warning",
    "moving-gold": "warning",
    "duplicate-question": "warning",
    "duplicate-gold": "warning",
    "unused-source": "warning",
    "review-conflict": "warning",
    "review-stale": "warning",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What a rule found at a place of a suite; `case` is the id of the case, if it is about one.

    `silenced` is the reason for which the suite ignores it, empty if it does not.
    """

    rule: str
    location: Location
    message: str
    case: str | None = None
    silenced: str = ""

    @property
    def level(self) -> FindingLevel:
        """The level of its rule."""
        return CHECK_RULES[self.rule]


def case_finding(rule: str, case: Case, message: str, location: Location | None = None) -> Finding:
    """Return a finding about a case, by default at its place in the suite; silenced if the case ignores the rule."""
    silenced = case.settings.ignored_rules.get(rule, "")
    return Finding(
        rule=rule, location=location or case.row or case.location, message=message, case=case.id, silenced=silenced
    )
