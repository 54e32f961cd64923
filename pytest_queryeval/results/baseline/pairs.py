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
    """Return the score of a case for a metric or a run metric; None if it has no score."""
    return RUN_METRICS[metric].score(case) if metric in RUN_METRICS else case["scores"].get(metric)


def compared_scores(metric: str, before: CaseReport, after: CaseReport) -> tuple[float | None, float | None]:
    """Return the scores of a case in two runs; (None, None) if the metric was defined otherwise in one of them.

    An earlier run without `field[PATH]` has the score among those of its fields, if the path leads to one field.
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
    """Return whether both reports of a case have a score of the metric, but by different definitions."""
    definitions = [
        1 if (fingerprint := case["fingerprint"]) is None else fingerprint.get("definitions", {}).get(metric, 1)
        for case in (before, after)
    ]
    return definitions[0] != definitions[1] and metric in before["scores"] and metric in after["scores"]


def mean(values: Sequence[float]) -> float:
    """Return the mean, independent of the order of the values; 0.0 without values."""
    return math.fsum(values) / len(values) if values else 0.0


@dataclass(frozen=True, slots=True)
class Pairs:
    """The scores of the same cases before and after, in the same order; only cases with both scores have a pair."""

    before: MutableSequence[float] = field(default_factory=lambda: array("d"))
    after: MutableSequence[float] = field(default_factory=lambda: array("d"))

    def add(self, before: float | None, after: float | None) -> None:
        """Add a pair of scores; does nothing if one of them is None."""
        if before is not None and after is not None:
            self.before.append(before)
            self.after.append(after)

    def oriented(self, better: Better) -> Pairs:
        """Return the pairs so that higher is better: with opposite signs if lower is better."""
        return self if better == "higher" else self.negated

    @property
    def differences(self) -> list[float]:
        """The score after minus the score before, for each pair."""
        return [after - before for before, after in zip(self.before, self.after, strict=True)]

    @property
    def negated(self) -> Pairs:
        """The pairs with opposite signs."""
        return Pairs(before=[-value for value in self.before], after=[-value for value in self.after])

    @property
    def are_binary(self) -> bool:
        """Whether all scores are 0 or 1, or all are 0 or -1."""
        values = {*self.before, *self.after}
        return values <= {0.0, 1.0} or values <= {0.0, -1.0}

    @property
    def change(self) -> float:
        """The mean difference; 0.0 without pairs."""
        return mean(self.differences)
