from collections import Counter
from datetime import date, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from samples import table
from strategies import tables

from pytest_queryeval.comparison.difference import difference
from pytest_queryeval.core.table import IRI, BlankNode, Difference, Policy, Table
from pytest_queryeval.metrics.execution_accuracy import execution_accuracy

GOLD = table(("Graz", 1, "x"), ("Linz", 2, "y"), ("Wien", 3, "z"))
LIMIT = 100
SAFE = r"\x1b[1m::error::#\x23[group]"
TOLD = f"…{'x' * 10}%s{'y' * 27}…"


def found(gold, predicted, limit=LIMIT, **policy):
    return difference(gold, predicted, Policy(**policy), limit=limit)


def test_rows_of_one_side_alone_are_missing_or_extra():
    predicted = table(("Graz", 1, "x"), ("Bern", 7, "q"), ("Linz", 2, "y"))

    assert found(GOLD, predicted) == Difference(
        columns=("a", "b", "c"),
        predicted_columns=("a", "b", "c"),
        missing=(("Wien", 3, "z"),),
        extra=(("Bern", 7, "q"),),
        counts=(1, 1),
        summary="missing 1 of 3 rows, 1 extra",
    )


def test_a_row_that_is_there_too_often_is_no_extra_one_but_repeated():
    predicted = Table(columns=GOLD.columns, rows=(*GOLD.rows, GOLD.rows[0]))

    changes = found(GOLD, predicted)

    assert changes.repeated == ((GOLD.rows[0], 1, 2),)
    assert (changes.missing, changes.extra, changes.counts) == ((), (), (0, 0))
    assert changes.summary == "duplicates differ: 1 row more often in predicted"


def test_rows_that_are_there_less_often_are_told_with_their_numbers():
    gold = table(("France",), ("France",), ("Japan",), ("Japan",), ("Japan",), ("Kenya",), ("Peru",))

    changes = found(gold, table(("Japan",), ("Kenya",), ("France",)))

    assert changes.repeated == ((("France",), 2, 1), (("Japan",), 3, 1))
    assert (changes.missing, changes.extra) == ((("Peru",),), ())
    assert changes.summary == "missing 1 of 7 rows, duplicates differ: 2 rows more often in gold"


def test_each_side_is_told_how_many_rows_it_repeats_more_often():
    changes = found(table((1,), (1,), (2,), (2,), (3,)), table((1,), (2,), (3,), (3,), (3,)))

    assert changes.summary == "duplicates differ: 2 rows more often in gold and 1 row more often in predicted"


def test_repeated_rows_are_told_by_golds_columns_and_values_that_are_equal_count_as_one():
    changes = found(table((1.0, "a"), (2, "b")), table(("a", 1), ("a", 1.0000001), ("b", 2)))

    assert changes.repeated == (((1.0, "a"), 1, 2),)


def test_a_row_that_shares_most_cells_with_a_gold_row_is_a_changed_one():
    predicted = table(("Graz", 1, "x"), ("Linz", 2, "q"), ("Wien", 3, "z"))

    changes = found(GOLD, predicted)

    assert changes.changed == ((("Linz", 2, "y"), ("Linz", 2, "q")),)
    assert (changes.missing, changes.extra, changes.counts) == ((), (), (1, 1))


def test_a_changed_row_is_paired_with_the_one_that_shares_most():
    gold = table((1, 2, 3, 4))
    predicted = table((1, 2, 9, 9), (1, 2, 3, 9))

    assert found(gold, predicted).changed == (((1, 2, 3, 4), (1, 2, 3, 9)),)


def test_cells_are_shared_where_the_policy_says_so():
    gold, predicted = table(("Graz", float("nan"), 1)), table(("GRAZ", float("nan"), 2))

    assert found(gold, predicted, case="ignore").changed == ((gold.rows[0], predicted.rows[0]),)


def test_rows_that_share_less_than_half_of_their_cells_are_no_changed_ones():
    changes = found(table((1, 2, 3)), table((1, 8, 9)))

    assert (changes.missing, changes.extra, changes.changed) == (((1, 2, 3),), ((1, 8, 9),), ())


def test_rows_of_one_cell_are_missing_and_extra_never_changed():
    changes = found(table((1,)), table((2,)))

    assert (changes.missing, changes.extra, changes.changed) == (((1,),), ((2,),), ())


def test_predicted_rows_are_told_in_the_order_of_golds_columns_without_extra_ones():
    gold = table(("Graz", 1), ("Linz", 2), ("Wien", 3))
    predicted = table((1, "q", "Graz"), (2, "q", "Linz"), (7, "q", "Bern"))

    assert found(gold, predicted).extra == (("Bern", 7),)


@given(tables(max_columns=3), tables(max_columns=3), st.sampled_from(["count", "ignore"]))
def test_what_is_left_and_what_differs_make_up_both_tables(gold, predicted, duplicates):
    changes = found(gold, predicted, duplicates=duplicates)
    if len(predicted.columns) < len(gold.columns):
        assert changes == Difference(summary=changes.summary)
        return

    assert len(changes.missing) + len(changes.changed) == changes.counts[0]
    assert len(changes.extra) + len(changes.changed) == changes.counts[1]
    assert {*changes.missing, *(old for old, _ in changes.changed)} <= set(gold.rows)
    if duplicates == "count":
        same = Counter(gold.rows) - Counter((*changes.missing, *(old for old, _ in changes.changed)))
        less_often = sum(max(mine - its, 0) for _, mine, its in changes.repeated)
        more_often = sum(max(its - mine, 0) for _, mine, its in changes.repeated)
        assert same.total() - less_often == len(predicted.rows) - changes.counts[1] - more_often
        assert all(gold.rows.count(row) == mine != its for row, mine, its in changes.repeated)
    assert all(len(row) == len(gold.columns) for row in changes.extra)


@given(tables(), tables(), st.integers(1, 3))
def test_no_more_rows_are_told_than_asked_for_but_all_are_counted(gold, predicted, limit):
    short, whole = found(gold, predicted, limit), found(gold, predicted)

    assert max(map(len, (short.missing, short.extra, short.changed, short.repeated))) <= limit
    assert short.counts == whole.counts
    assert short.summary == whole.summary


@given(tables(), tables())
def test_equal_tables_have_no_differences_and_others_have(gold, predicted):
    changes = found(gold, predicted)

    if execution_accuracy(gold, predicted) == 1.0 and len(gold.columns) <= len(predicted.columns):
        assert (changes.counts, changes.repeated) == ((0, 0), ())
    elif len(gold.columns) == len(predicted.columns):
        assert max(changes.counts) > 0 or changes.repeated


@pytest.mark.parametrize(
    ("gold", "predicted", "summary"),
    [
        (table((4,)), table((2,)), "gold 4, predicted 2"),
        (table((None,)), table(("",)), "gold NULL, predicted ''"),
        (table((4,)), table(("4",)), "gold 4 (integer), predicted 4 (text)"),
        (table(("K\xf6ln",)), table(("Ko\u0308ln",)), r"gold K\xf6ln, predicted Ko\u0308ln"),
        (table(("a b",)), table(("a\xa0b",)), r"gold a\x20b, predicted a\xa0b"),
        (table(("a b",)), table(("a  b",)), r"gold a b, predicted a \x20b"),
        (
            table((f"{'x' * 50}a{'y' * 50}",)),
            table((f"{'x' * 50}b{'y' * 50}",)),
            f"gold {TOLD % 'a'}, predicted {TOLD % 'b'}",
        ),
        (table((date(2024, 1, 2),)), table((datetime(2024, 1, 2),)), "gold 2024-01-02, predicted 2024-01-02 00:00:00"),
        (table(("x" * 99,)), table(("\x1b[1m::error::##[group]",)), f"gold {'x' * 19}…{'x' * 20}, predicted {SAFE}"),
        (table((IRI("http://e/a"),)), table((IRI("http://e/b"),)), "gold <http://e/a>, predicted <http://e/b>"),
        (table((BlankNode("x1"),)), table((IRI("http://e/b"),)), "missing 1 of 1 row, 1 extra"),
        (table((4,)), table((4,), (5,)), "1 extra row"),
        (table((4,), (5,)), table((4,)), "missing 1 of 2 rows"),
        (table(*((n,) for n in range(40))), table(*((n,) for n in range(12, 40))), "missing 12 of 40 rows"),
        (table((1, 2)), table(*((n, n) for n in range(2000))), "missing 1 of 1 row, 2,000 extra"),
        (table(*((n,) for n in range(8))), Table(columns=("a",), rows=()), "no rows, gold has 8"),
        (Table(columns=("a",), rows=()), table((1,), (2,)), "2 rows, gold has none"),
        (table((1,), (2,)), table((1, 0), (7, 0)), "missing 1 of 2 rows, 1 extra, 1 further column"),
    ],
)
def test_a_difference_is_said_in_a_few_words(gold, predicted, summary):
    assert found(gold, predicted).summary == summary


def test_no_cell_is_told_where_none_may_be_shown():
    assert found(table((4,)), table((2,)), limit=0).summary == "missing 1 of 1 row, 1 extra"


@pytest.mark.parametrize(
    ("gold", "predicted", "policy", "summary"),
    [
        (GOLD, table(*reversed(GOLD.rows)), {}, "the same rows, in another order"),
        (GOLD, table(*GOLD.rows), {}, ""),
        (table((1, "a")), table(("a", 1)), {}, "the same rows, with their columns in another order"),
        (table((0.3,)), table((0.1 + 0.2,)), {}, ""),
        (table((1,)), table((1, 2)), {}, "1 further column"),
        (table((1, 2)), table((1,)), {}, "too few columns: gold has 2, predicted 1"),
        (
            table((1,)),
            table((1,), columns=("z",)),
            {"columns": "by_name"},
            "no columns of gold's names",
        ),
    ],
)
def test_what_differs_beside_the_rows_is_said(gold, predicted, policy, summary):
    assert found(gold, predicted, **policy).summary == summary


def test_rows_are_told_as_they_were_answered_also_where_equality_is_folded():
    gold = table(("Graz", float("nan")), ("Linz", None))
    predicted = table(("GRAZ", float("nan")), ("WIEN", 7), ("Wien", 7))

    changes = found(gold, predicted, case="ignore", duplicates="ignore")

    assert changes.missing == (("Linz", None),)
    assert changes.extra == (("WIEN", 7),)


def test_a_number_and_a_text_of_it_in_another_form_come_with_their_types():
    assert found(table(("1.10",)), table((1.1,))).summary == "gold 1.10 (text), predicted 1.1 (float)"
    assert found(table(("1.2",)), table((1.1,))).summary == "gold 1.2, predicted 1.1"


def test_rows_within_the_tolerance_are_no_difference():
    changes = found(table((1.0, "a"), (2.0, "b")), table((1.0000001, "a"), (2.1, "b")))

    assert changes.changed == (((2.0, "b"), (2.1, "b")),)
