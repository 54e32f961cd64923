"""`challenged_accuracy`: whether an answer is right, and stays so in other data."""

from __future__ import annotations

from pytest_queryeval.core.metric import RunChallenge, metric
from pytest_queryeval.core.model import Execution
from pytest_queryeval.core.table import Policy, Table
from pytest_queryeval.metrics.execution_accuracy import execution_accuracy


@metric(input="executions", kinds=frozenset({"sql", "sparql"}))
def challenged_accuracy(
    gold: Execution, predicted: Execution, *, policy: Policy, challenge: RunChallenge
) -> float | None:
    """Return `execution_accuracy`, but 0 if a small database shows that the queries are not the same."""
    if not isinstance(gold.answer, Table) or not isinstance(predicted.answer, Table):
        return None
    accuracy = execution_accuracy(gold.answer, predicted.answer, policy=policy)
    return 0.0 if accuracy == 1.0 and challenge().verdict == "refuted" else accuracy
