"""The hooks that a conftest.py or a plugin may implement."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pytest_queryeval.predictors import CaseView


@pytest.hookspec(firstresult=True)
def pytest_queryeval_predict(case: CaseView, config: pytest.Config) -> object:
    """Answer a case: a query's text, for JSON and SDMX also a value, or a `Prediction`.

    It is called, in turn, for cases that neither state an answer nor have a `predictor`, and where a suite says
    `predictor: hook`. The first answer that is not None counts.
    """
