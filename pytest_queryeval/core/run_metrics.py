"""Run metrics: means over the cases of a run that follow from how the cases ended, so that no case requests them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pytest_queryeval.core.case_report import CaseReport
from pytest_queryeval.core.metric import Better
from pytest_queryeval.core.model import OF_TRIALS, PASS_RATE, Outcome
from pytest_queryeval.core.registry import Registry

# What each outcome adds to the pass rate; cases with other outcomes are left out of it.
_PASS_SCORES: Mapping[Outcome, float] = {"passed": 1.0, "failed": 0.0, "missed": 0.0, "error": 0.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class RunMetric:
    """A figure that gates can limit, and reports may have among the metrics of the run and its groups."""

    score: Callable[[CaseReport], float | None]
    """Returns what a case adds to the mean, from 0 to 1; None if it adds nothing, as most cases in error."""
    instead: str
    """What decides on a case instead, in the message on a suite that requests the metric of its cases."""
    better: Better = "higher"
    concerns: Callable[[CaseReport], bool] | None = None
    """Returns whether a case is a reason to report the metric; None if reports do not add it to their metrics."""


def _of_trials(name: str) -> RunMetric:
    """Return the run metric of a score that only cases with several trials have."""
    instead = "a case with several trials is decided by its `trials_rule`"
    return RunMetric(score=lambda case: case["scores"].get(name), instead=instead)


RUN_METRICS: Registry[RunMetric] = Registry(
    "run metric",
    group="pytest_queryeval.run_metrics",
    members={
        PASS_RATE: RunMetric(
            score=lambda case: _PASS_SCORES.get(case["outcome"]), instead="`thresholds` say when a case passes"
        ),
        **{name: _of_trials(name) for name in OF_TRIALS},
    },
)


def reported_run_metrics() -> dict[str, RunMetric]:
    """Return the run metrics that reports may have among their metrics, by name."""
    members = ((name, RUN_METRICS[name]) for name in RUN_METRICS.available())
    return {name: run_metric for name, run_metric in members if run_metric.concerns is not None}
