"""Whether the predicted query is one that can be run, or the predicted answer one that can be read."""

from __future__ import annotations

from pytest_queryeval.core.metric import metric
from pytest_queryeval.core.model import Execution


@metric(answers=None, input="executions")
def valid_query(gold: Execution, predicted: Execution) -> float:
    """1 if the predicted query has an answer, whatever it is; 0 if it is invalid, unsafe, too slow or too large.

    0 as well for an answer that breaks the JSON Schema of its case, or names what the SDMX structure does not have.
    """
    return float(predicted.error is None and not predicted.violations)
