"""Challenges of answers that pass; features and other packages register what makes them."""

from __future__ import annotations

from typing import Protocol

from pytest_queryeval.core.challenge import Challenge
from pytest_queryeval.core.model import Case, Execution
from pytest_queryeval.core.registry import Registry
from pytest_queryeval.evaluation.session import Session

DEFAULT_CHALLENGER = "small_databases"


class Challenger(Protocol):
    """Challenges predicted queries."""

    def __call__(self, case: Case, gold: Execution, predicted: Execution, session: Session) -> Challenge:
        """Return whether other data tells a predicted query, whose answer is right, from gold.

        `gold` is the one that counts; a prediction is refuted if it differs from every gold of the case that accepts
        it. Nothing is raised where that cannot be found out: then the verdict is `unchallenged`.
        """


CHALLENGERS: Registry[Challenger] = Registry(
    "challenger", group="pytest_queryeval.challengers", used_by_workers=True, members={}
)
