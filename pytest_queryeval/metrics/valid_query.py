"""Validity of the predicted query or answer."""

from __future__ import annotations

from pytest_queryeval.core.metric import metric
from pytest_queryeval.core.model import Execution


@metric(answers=None, input="executions")
def valid_query(gold: Execution, predicted: Execution) -> float:
    """Return 1 if the predicted query has any answer; 0 if it is invalid, unsafe, too slow or too large.

    0 as well for an answer that breaks the JSON Schema of its case, or names something that the SDMX structure lacks.
    """
    return float(predicted.error is None and not predicted.violations)
