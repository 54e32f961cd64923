"""Execution accuracy on every variant of a database: answers that agree on one state may differ on another."""

from __future__ import annotations

from pytest_queryeval.core.metric import Score, States, metric
from pytest_queryeval.core.model import Execution


@metric(input="executions", kinds=frozenset({"sql"}))
def test_suite_accuracy(gold: Execution, predicted: Execution, *, states: States | None) -> Score:
    """Return 1 if `execution_accuracy` is 1 on the source and on each of its variants, else 0.

    None where the source has no variants, and for answers that are stated instead of asked by a query. The first
    state of the database on which the answers differ ends the comparison; a note names it.
    Source: the idea is that of Zhong, Yu and Klein, Semantic Evaluation for Text-to-SQL with Distilled Test Suites
    (EMNLP 2020).
    """
    return _least(states, "execution_accuracy")


@metric(published=True, input="executions", kinds=frozenset({"sql"}))
def test_suite_accuracy_spider(gold: Execution, predicted: Execution, *, states: States | None) -> Score:
    """Return 1 if `execution_accuracy_spider` is 1 on the source and on each of its variants, else 0.

    None as for `test_suite_accuracy`. Source: taoyds/test-suite-sql-eval, exec_eval.py (all databases of a folder).
    """
    return _least(states, "execution_accuracy_spider")


def _least(states: States | None, name: str) -> Score:
    """Return 1 where a metric is 1 in every state, else 0 with a note on the first state where it is not."""
    if states is None:
        return Score(value=None, details={"notes": ["test suite: needs two queries and a source with `variants`"]})
    for state, value in states(name):
        if value != 1.0:
            # That the answers differ on the source is said already.
            return Score(value=0.0, details={"notes": [f"test suite: the answers differ on {state}"] if state else []})
    return Score(value=1.0)
