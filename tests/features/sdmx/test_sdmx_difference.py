"""What a failed case says of two selections."""

from __future__ import annotations

from hypothesis import given
from selections import dataset, selected, selection, selections

from pytest_queryeval.features.sdmx.details import COLUMNS, difference


def test_missing_and_extra_terms_are_rows():
    gold = selected(INDICATOR=("A: a", ": b"), COUNTRY=("MEX: Mexico",))
    predicted = selected(INDICATOR=("A: a",), COUNTRY=("USA",))

    lines = difference(gold, predicted, limit=8)

    assert lines.columns == COLUMNS == ("dimension", "id", "name")
    assert lines.missing == (("INDICATOR", None, "b"), ("COUNTRY", "MEX", "Mexico"))
    assert lines.extra == (("COUNTRY", "USA", None),)
    assert lines.counts == (2, 1)
    assert lines.summary == "missing 2 of 3 terms, 1 extra"


def test_rows_are_cut_and_counts_are_not():
    lines = difference(selected(I=tuple(f"i{n}" for n in range(20))), selected(I=("x",)), limit=8)

    assert len(lines.missing) == 8
    assert lines.counts == (20, 1)


def test_datasets_that_differ_are_named():
    gold = selection(dataset("A:B", I=("1",)), dataset("A:C"))
    predicted = selection(dataset("A:B(9.0)", I=("1",)), dataset("A:D(1.0)"), dataset("A\n:E"))

    lines = difference(gold, predicted, limit=8)

    assert lines.summary == "missing datasets A:C, extra datasets A:D(1.0), A :E"


def test_many_datasets_are_counted():
    lines = difference(selection(), selection(*(dataset(f"A:{n}") for n in range(1500))), limit=8)

    assert lines.summary.endswith("extra datasets A:0, A:1, A:2, A:3 and 1,496 more")


@given(selections())
def test_gold_does_not_differ_from_itself(gold):
    lines = difference(gold, gold, limit=8)

    assert (lines.missing, lines.extra, lines.counts) == ((), (), (0, 0))
    assert lines.summary == ""
