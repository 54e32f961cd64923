"""What a spend limit counts, and what it says about a run."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from fractions import Fraction

import numpy
import pytest
from report_parts import merge, part
from samples import entry, query

from pytest_queryeval.core.model import Prediction
from pytest_queryeval.evaluation.prediction_call import (  # white box: numbers of any type, and many threads
    MAX_UNSTATED,
    SpendLimit,
    SpendLimitReached,
)

UNSTATED = "NO VERDICT: calls ended after 1 of 2 cases, because the last 10 calls reported no number 'cost'"
NOTHING = "the spend limit counted nothing: no call reported a number 'cost'"


def prediction(seconds=0.0, **metadata):
    return Prediction(query("SELECT 1"), predictor="app", seconds=seconds, metadata=metadata)


def spent(limit, *predictions):
    for answer in predictions:
        limit.add(answer)
    return limit.report()["sum"], limit.report()["unstated"], limit.is_reached


def test_the_sum_of_a_number_in_metadata_is_reached_also_where_rounding_leaves_it_smaller():
    limit = SpendLimit("cost", 0.3)
    limit.check()

    assert spent(limit, prediction(cost=0.1), prediction(cost=0.1))[1:] == (0, False)
    assert spent(limit, prediction(cost=0.1))[1:] == (0, True)
    with pytest.raises(SpendLimitReached, match="the spend limit was reached before its turn"):
        limit.check()


NO_AMOUNTS = (None, True, "5", [5], -1, float("nan"), float("inf"), 10**400, 1e15)
AMOUNTS = (Decimal("0.5"), Fraction(1, 2), numpy.float32(0.5), numpy.int64(2), numpy.float64(0.5))
NOW_AND_THEN = [*[None] * (MAX_UNSTATED - 1), prediction(cost=1)] * 5


@pytest.mark.parametrize(
    ("name", "predictions", "expected"),
    [
        ("prediction_seconds", [prediction(1.5, prediction_seconds=9)], (1.5, 0)),  # not what metadata says
        ("cost", [prediction(cost=value) for value in NO_AMOUNTS], (0, len(NO_AMOUNTS))),
        ("cost", [prediction(cost=value) for value in AMOUNTS], (4.0, 0)),
        ("cost", NOW_AND_THEN, (5, 45)),
    ],
)
def test_numbers_of_every_type_count_and_what_is_no_amount_is_unstated(name, predictions, expected):
    limit = SpendLimit(name, 50)

    assert spent(limit, *predictions) == (*expected, False)
    assert "unstated_in_a_row" not in limit.report()


@pytest.mark.parametrize("unstated", [prediction(other=1), None])
@pytest.mark.parametrize("earlier", [(), (prediction(cost=1),)])
def test_calls_in_a_row_that_fail_or_state_no_number_end_calls(unstated, earlier):
    limit = SpendLimit("cost", 5)

    assert spent(limit, *earlier, *[unstated] * (MAX_UNSTATED - 1)) == (len(earlier), MAX_UNSTATED - 1, False)
    assert spent(limit, unstated) == (len(earlier), MAX_UNSTATED, True)
    with pytest.raises(SpendLimitReached, match="10 calls in a row reported no number 'cost' before its turn"):
        limit.check()
    assert spent(limit, prediction(cost=1))[2], "a call that was under way does not let others begin"
    assert limit.report()["unstated_in_a_row"] == MAX_UNSTATED


def test_a_limit_of_0_is_reached_before_the_first_call():
    assert SpendLimit("cost", 0).is_reached


def test_calls_in_many_threads_are_all_counted():
    limit = SpendLimit("cost", 1e9)
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(limit.add, [prediction(cost=1)] * 5_000))

    assert (limit.report()["sum"], limit.report()["calls"]) == (5_000, 5_000)


UNCOUNTED = {"sum": 0.0, "unstated": 2, "reached": False}
ENDED = UNCOUNTED | {"unstated_in_a_row": 10, "reached": True}


@pytest.mark.parametrize(
    ("outcomes", "spend", "measures", "line"),
    [
        (("passed", "not_run", "skipped"), {}, (), "NO VERDICT: the spend limit was reached after 1 of 2 cases"),
        (("not_run",), {}, (), "NO VERDICT: the spend limit was reached after 0 of 1 case"),
        (("passed", "skipped"), {}, (), "PASSED: 2 cases: 1 passed, 1 skipped (no case failed, no gate is set)"),
        (("failed", "not_run"), {}, (), "FAILED: 1 case failed; the spend limit was reached after 1 of 2 cases"),
        (("passed", "not_run"), ENDED, (), UNSTATED),
        (("passed", "not_run"), ENDED, ("Cost", "tokens"), f"{UNSTATED}: did you mean 'Cost'?"),
        (("passed", "not_run"), ENDED, ("cost", "Cost"), UNSTATED),
        (("passed",), UNCOUNTED, (), f"PASSED: 1 case: 1 passed, {NOTHING} (no case failed, no gate is set)"),
        (("failed",), UNCOUNTED, ("costs",), f"FAILED: 1 case failed; {NOTHING}: did you mean 'costs'?"),
    ],
)
def test_the_verdict_names_the_limit_where_it_left_out_cases(outcomes, spend, measures, line):
    said = {"prediction": {"source": "p", "seconds": 0.0, "metadata": dict.fromkeys(measures, 1)}}
    cases = [entry(id=f"c{n}", outcome=outcome, **said) for n, outcome in enumerate(outcomes)]
    whole = {"name": "cost", "limit": 5.0, "sum": 5.0, "calls": 2, "unstated": 0, "reached": True} | spend

    assert merge(part(*cases, spend=whole)).lines[-1] == f"queryeval: {line}"
