"""Whether the predicted query runs."""

from __future__ import annotations

from pytest_queryeval.metric import metric
from pytest_queryeval.model import Execution


@metric(reads="executions")
def valid_query(gold: Execution, predicted: Execution) -> float:
    """1 if the predicted query has an answer, whatever it is; 0 if it is invalid, unsafe, too slow or too large."""
    return float(predicted.error is None)
