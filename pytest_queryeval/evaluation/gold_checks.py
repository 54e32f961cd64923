"""Checks of golds: what features find wrong with the golds of a case by themselves, without a prediction."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Protocol

from pytest_queryeval.core.findings import Finding
from pytest_queryeval.core.model import Case
from pytest_queryeval.core.registry import Registry
from pytest_queryeval.evaluation.session import Session


class GoldCheck(Protocol):
    """Examines the golds of a case."""

    def __call__(self, case: Case, session: Session, rules: Collection[str]) -> Iterator[Finding]:
        """Yield what those of the `rules` that are known to it find, silenced or not.

        Raise `SourceError` if the source does not answer.
        """


GOLD_CHECKS: Registry[GoldCheck] = Registry("check of golds", group="pytest_queryeval.gold_checks", members={})
