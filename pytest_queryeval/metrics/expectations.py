"""The share of what a case expects of any right answer that holds."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_queryeval.comparison.expectations import check_expectations
from pytest_queryeval.core.expectation import Expectation
from pytest_queryeval.core.metric import FindUnmatched, Score, metric
from pytest_queryeval.core.model import Execution
from pytest_queryeval.core.table import Policy, Table


@metric(input="executions", criterion="expect", ignores=frozenset({"row_order"}))
def expectations(
    gold: Execution,
    predicted: Execution,
    *,
    policy: Policy,
    expectations: Sequence[Expectation],
    report_rows: int,
    unmatched: FindUnmatched,
) -> Score | float:
    """Return the share of the expectations of a case that the predicted answer meets.

    `rows`, `columns`, `contains` and each rule of each column are one expectation each. An answer without rows can meet
    only `rows`. The score is 0 if the answer is not a table. `details.expectations` says what is wrong.
    """
    if not isinstance(predicted.answer, Table):
        return 0.0
    gold_table = gold.answer if isinstance(gold.answer, Table) else None
    reports = check_expectations(
        expectations, predicted.answer, policy, unmatched, gold=gold_table, shows_cells=report_rows > 0
    )
    holding = sum(report["holds"] for report in reports)
    return Score(value=holding / len(reports), details={"expectations": reports})
