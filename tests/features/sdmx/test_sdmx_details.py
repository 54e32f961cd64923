"""What reports say of a selection."""

from __future__ import annotations

import json

from hypothesis import given
from samples import make_case
from selections import dataset, selected, selection, selections

from pytest_queryeval import METRICS
from pytest_queryeval.core.json_value import to_jsonable
from pytest_queryeval.core.table import DatasetSelection, DimensionSelection, Term
from pytest_queryeval.languages import KINDS

GDP, GDPPC, GDP_CONST = (
    "GDP: gross domestic product",
    "GDPPC: GDP per capita",
    "GDP_CONST: gross domestic product constant prices",
)
# The documented cell, with the figures of its lists.
CELL = """\
[recall: 1.00, precision: 0.67]
True Positives [2]
  * GDP: gross domestic product
  * GDPPC: GDP per capita
False Negatives [0]
False Positives [1]
  * GDP_CONST: gross domestic product constant prices"""


def details(gold, predicted, **options):
    return METRICS["macro_precision"].function(gold, predicted, **options).details


def text(gold, predicted, **options):
    return details(gold, predicted, **options)["indicator_selection"]


def test_the_cell_has_the_documented_form_under_the_name_of_the_dimension():
    gold, predicted = selected(INDICATOR=(GDP, GDPPC)), selected(INDICATOR=(GDP, GDPPC, GDP_CONST))

    assert text(gold, predicted) == f"INDICATOR\n{CELL}"


def test_details_have_the_terms_and_figures_of_each_dimension():
    gold, predicted = selected(INDICATOR=(GDP, ": x")), selected(INDICATOR=(GDP,), FREQ=("M: monthly",))

    assert details(gold, predicted)["dimensions"] == {
        "INDICATOR": {
            "precision": 1.0,
            "recall": 0.5,
            "in_target": True,
            "counts": {"true_positives": 1, "false_negatives": 1, "false_positives": 0},
            "true_positives": [["GDP", "gross domestic product"]],
            "false_negatives": [[None, "x"]],
            "false_positives": [],
        },
        "FREQ": {
            "precision": 0.0,
            "recall": None,
            "in_target": False,
            "counts": {"true_positives": 0, "false_negatives": 0, "false_positives": 1},
            "true_positives": [],
            "false_negatives": [],
            "false_positives": [["M", "monthly"]],
        },
    }


def test_dimensions_that_are_not_in_gold_stand_behind_the_others():
    gold = selected(INDICATOR=("GDP",), COUNTRY=("MEX: Mexico",))
    predicted = selected(FREQ=("M: monthly",), INDICATOR=(GDP,))

    assert (
        f"\n{text(gold, predicted)}\n"
        == """
INDICATOR
[recall: 1.00, precision: 1.00]
True Positives [1]
  * GDP: gross domestic product
False Negatives [0]
False Positives [0]

COUNTRY
[recall: 0.00, precision: 0.00]
True Positives [0]
False Negatives [1]
  * MEX: Mexico
False Positives [0]

dimensions not in target:

FREQ
[recall: n/a, precision: 0.00]
True Positives [0]
False Negatives [0]
False Positives [1]
  * M: monthly
"""
    )


def test_datasets_that_are_kept_apart_are_named():
    gold, predicted = selection(dataset("A:B", I=("1",))), selection(dataset("A:B(9.0)", I=("1",)))

    assert text(gold, predicted, by_dataset=True).startswith("A:B|I\n[recall: 1.00, precision: 1.00]\n")


def test_terms_with_an_id_or_a_name_only_are_shown_so():
    message = text(selected(I=("A", ": b")), selection())

    assert message.splitlines()[-3:] == ["  * A", "  * (no id): b", "False Positives [0]"]


def test_a_label_stands_in_for_a_name():
    labelled = DimensionSelection("I", (Term("A", None, label="gross domestic product"),))

    message = text(selection(DatasetSelection("A:B", (labelled,))), selected(I=("A",)))

    assert "  * A: gross domestic product\n" in message


def test_blanks_that_make_another_name_are_seen():
    message = text(selected(I=("A: x",)), selected(I=("A: x ",)))

    assert "  * A: x\n" in message
    assert message.endswith("  * A: 'x '")


def test_hostile_names_stay_on_their_line():
    message = text(selected(I=("A",)), selected(I=("B: x\nTrue Positives [9]\x1b[2J",), **{"D\r\nE": ("\u202e1",)}))

    assert "  * B: x True Positives [9]\\x1b[2J\n" in message
    assert "\nD E\n" in message
    assert "\u202e" not in message


def test_long_lists_are_cut_and_their_counts_are_right():
    gold = selected(I=tuple(f"i{n}" for n in range(2500)))

    listing = details(gold, selection())

    assert len(listing["dimensions"]["I"]["false_negatives"]) == 1_000
    assert listing["dimensions"]["I"]["counts"]["false_negatives"] == 2500
    assert "False Negatives [2500]\n" in listing["indicator_selection"]
    assert listing["indicator_selection"].endswith("  … 1,500 more\nFalse Positives [0]")


def test_of_very_many_dimensions_gold_s_are_listed_and_a_note_says_so():
    gold, predicted = selected(I=("A",)), selected(**{f"d{n}": ("A",) for n in range(1_000)})

    listing = details(gold, predicted)

    assert len(listing["dimensions"]) == 1_000
    assert next(iter(listing["dimensions"])) == "I"
    assert listing["notes"] == ["only 1,000 of 1,001 dimensions are listed"]


def test_names_of_any_length_are_cut():
    listing = details(selected(I=("A",)), selected(**{"d" * 9999: ("A: " + "x" * 9999,)}))

    assert len(listing["indicator_selection"]) < 2000
    assert len(json.dumps(listing)) < 4000


def test_without_any_terms_there_is_nothing_to_show():
    assert details(selection(), selection()) == {
        "dimensions": {},
        "indicator_selection": "",
        "counts": {"dimension": {}},
    }


def test_each_dimension_has_its_counts():
    gold, predicted = selected(I=("A", "B"), F=("M",)), selected(I=("B", "C", "D"), X=("Z",))

    assert details(gold, predicted)["counts"]["dimension"] == {
        "I": {"tp": 1, "fp": 2, "fn": 1},
        "F": {"tp": 0, "fp": 0, "fn": 1},
        "X": {"tp": 0, "fp": 1, "fn": 0},
    }


def test_details_are_stored_as_they_are():
    gold, predicted = selected(I=("A", "B")), selected(I=("B",), F=("M: monthly",))

    listing = details(gold, predicted)

    assert to_jsonable(listing) == listing == json.loads(json.dumps(listing))


def test_the_three_metrics_say_the_same():
    gold, predicted = selected(I=("A", "B")), selected(I=("B",))

    names = ("macro_precision", "macro_recall", "macro_f1")
    scores = [METRICS[name].function(gold, predicted, macro="target") for name in names]

    assert scores[0].details == scores[1].details == scores[2].details


# What a failed case says of two selections.


def difference(gold, predicted, limit=8):
    return KINDS["sdmx"].difference(gold, predicted, make_case(kind="sdmx"), limit=limit)


def test_missing_and_extra_terms_are_rows():
    gold = selected(INDICATOR=("A: a", ": b"), COUNTRY=("MEX: Mexico",))
    predicted = selected(INDICATOR=("A: a",), COUNTRY=("USA",))

    lines = difference(gold, predicted, limit=8)

    assert lines.columns == ("dimension", "id", "name")
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
