"""The scores that the same cases have in two runs, in pairs."""

from __future__ import annotations

import math
from array import array
from collections.abc import MutableSequence, Sequence
from dataclasses import dataclass, field

from pytest_queryeval.core.case_report import CaseReport
from pytest_queryeval.core.metric import RUN_METRICS, Better

FIELD = "field["  # begins the names of metrics by field


def score_of(metric: str, case: CaseReport) -> float | None:
    """Return the score that a case has of a metric, or what it adds to a run metric; None if there is neither."""
    return RUN_METRICS[metric].score(case) if metric in RUN_METRICS else case["scores"].get(metric)


def compared_scores(metric: str, before: CaseReport, after: CaseReport) -> tuple[float | None, float | None]:
    """Return the scores of a case in two runs; none where the metric was defined otherwise in one of them.

    A run that did not compute `field[PATH]` has the score among those of its fields, if the path leads to one field.
    """
    if is_defined_otherwise(metric, before, after):
        return None, None
    earlier_score = score_of(metric, before)
    if metric not in before["scores"] and metric.startswith(FIELD):
        path, scores = metric.removeprefix(FIELD).removesuffix("]"), before.get("field_scores", {})
        within = [name for name in scores if name == path or name.startswith((f"{path}.", f"{path}["))]
        earlier_score = scores[path] if within == [path] else None
    return earlier_score, score_of(metric, after)


def is_defined_otherwise(metric: str, before: CaseReport, after: CaseReport) -> bool:
    """Return whether a case has scores of a metric by two definitions."""
    definitions = [
        1 if (fingerprint := case["fingerprint"]) is None else fingerprint.get("definitions", {}).get(metric, 1)
        for case in (before, after)
    ]
    return definitions[0] != definitions[1] and metric in before["scores"] and metric in after["scores"]


def mean(values: Sequence[float]) -> float:
    """Return the mean, the same in any order; 0 without any value."""
    return math.fsum(values) / len(values) if values else 0.0


@dataclass(frozen=True, slots=True)
class Pairs:
    """The scores of the same cases, before and after, in one order; a case without a score in both has no pair."""

    before: MutableSequence[float] = field(default_factory=lambda: array("d"))
    after: MutableSequence[float] = field(default_factory=lambda: array("d"))

    def add(self, before: float | None, after: float | None) -> None:
        """Add the scores of a case, if it has both."""
        if before is not None and after is not None:
            self.before.append(before)
            self.after.append(after)

    def oriented(self, better: Better) -> Pairs:
        """Return the pairs so that a higher score is a better one: those of a cost with opposite signs."""
        return self if better == "higher" else self.negated

    @property
    def differences(self) -> list[float]:
        """After less before, for each case."""
        return [after - before for before, after in zip(self.before, self.after, strict=True)]

    @property
    def negated(self) -> Pairs:
        """The pairs with opposite signs: a rise of a cost becomes a fall."""
        return Pairs(before=[-value for value in self.before], after=[-value for value in self.after])

    @property
    def are_binary(self) -> bool:
        """Whether all scores are 0 or 1, or all are 0 or -1."""
        values = {*self.before, *self.after}
        return values <= {0.0, 1.0} or values <= {0.0, -1.0}

    @property
    def change(self) -> float:
        """The mean difference; 0 without any pair."""
        return mean(self.differences)
