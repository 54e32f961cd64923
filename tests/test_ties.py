"""Rows in an order: how many of them, and which ones gold's ties allow when gold has run a second time."""

import pytest

from pytest_queryeval.comparison.ties import CUT, OrderPlan, TieQuery, ties_of
from pytest_queryeval.core.table import Policy, Table, Tie
from pytest_queryeval.metrics.execution_accuracy import execution_accuracy

TIED = Table(columns=("name",), rows=[("ann",), ("bob",)], ties=(Tie(size=2, rows=(("ann",), ("bob",), ("cy",))),))


def names(*rows):
    return Table(columns=("name",), rows=[(row,) for row in rows])


def ties_of_rerun(gold, rows, *, limited=True, offset=0):
    """The ties of gold's names, and the notes on them, where gold with its sort keys returns these rows."""
    query = TieQuery(text="SELECT name, score", key_columns=1)
    plan = OrderPlan(ordered=True, limited=limited, offset=offset, queries=(query,), keys=None)
    return ties_of(plan, gold, Policy(), lambda _: Table(columns=("name", "score"), rows=rows))


@pytest.mark.parametrize("predicted", [names(), names("ann"), names("ann", "bob", "cy")])
@pytest.mark.parametrize("gold", [TIED, names("ann", "bob")], ids=["ties", "strict"])
def test_ordered_answers_of_another_number_of_rows_are_wrong(gold, predicted):
    assert execution_accuracy(gold, predicted, policy=Policy(row_order="strict" if gold.ties is None else "auto")) == 0


def test_a_limit_that_cuts_through_ties_allows_each_choice_among_them():
    ties, notes = ties_of_rerun(names("ann", "bob"), [("ann", 5), ("bob", 3), ("cy", 3)])

    assert ties == (Tie(size=1, rows=(("ann",),)), Tie(size=1, rows=(("bob",), ("cy",))))
    assert notes == (CUT.format(rows=2),)


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param([("ann", 5), ("dee", 3), ("cy", 3)], id="a row is another one"),
        pytest.param([("ann", 5), ("bob", 5), ("cy", 5)][1:], id="a row has gone"),
        pytest.param([("bob", 5), ("ann", 3), ("cy", 3)], id="rows have changed places"),
    ],
)
def test_gold_that_returns_other_rows_when_it_runs_again_has_no_ties(rows):
    ties, (note, *_) = ties_of_rerun(names("ann", "bob"), rows)

    assert ties is None
    assert "gold returned other rows when it ran again" in note


@pytest.mark.parametrize("limited", [True, False])
def test_an_offset_skips_rows_with_a_limit_and_without(limited):
    rows = [("zoe", 9), ("ann", 5), ("bob", 3)]

    ties, notes = ties_of_rerun(names("ann", "bob"), rows, limited=limited, offset=1)

    assert ties == (Tie(size=1, rows=(("ann",),)), Tie(size=1, rows=(("bob",),)))
    assert notes == ()
