"""Analyses of scored cases, which features and other packages register."""

from __future__ import annotations

from typing import Protocol

from pytest_queryeval.core.model import CaseResult
from pytest_queryeval.core.registry import Registry
from pytest_queryeval.evaluation.session import Session


class Analysis(Protocol):
    """Analyses a scored case; raises nothing."""

    def __call__(self, result: CaseResult, session: Session) -> CaseResult:
        """Return the result with what the analysis adds, such as its `cause`. Scores and outcome stay as they are."""


ANALYSES: Registry[Analysis] = Registry("analysis", group="pytest_queryeval.analyses", members={})
