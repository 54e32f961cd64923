"""Scores of selections against their definition in terms of sets, and what details and differences say of them."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import permutations
from statistics import fmean

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from samples import make_case
from selections import dataset, selected, selection, selections, terms

from pytest_queryeval import METRICS
from pytest_queryeval.core.errors import SettingError
from pytest_queryeval.core.json_value import to_jsonable
from pytest_queryeval.core.table import DatasetSelection, DimensionSelection, Selection, Term
from pytest_queryeval.languages import KINDS

MACROS = ("macro_precision", "macro_recall", "macro_f1")
MEXICO = "MEX: Mexico"
NOTHING = selection()


def score(name, gold, predicted, **options):
    dimension = {"dimension": name.partition("[")[2][:-1]} if "[" in name else {}
    return METRICS[name].function(gold, predicted, **dimension, **options)


def value(name, gold, predicted, **options):
    found = score(name, gold, predicted, **options)
    return getattr(found, "value", found)


def macros(gold, predicted, **options):
    return tuple(pytest.approx(value(name, gold, predicted, **options), abs=1e-12) for name in MACROS)


def details(gold, predicted, **options):
    return score("macro_recall", gold, predicted, **options).details


# --- the definition


def counts_of(gold: set[Term], predicted: set[Term]) -> tuple[int, int, int]:
    """What is right, missing and extra: of all pairings, equal terms first, the most pairs and the fewest missing."""

    def without_parts(of):
        whole = [term for term in of if term.id and term.name]
        return of - {Term(term.id, None) for term in whole} - {Term(None, term.name) for term in whole}

    predicted = without_parts(predicted)
    equal, partly = gold & predicted, [term for term in gold - predicted if not (term.id and term.name)]
    left = [*(predicted - equal), *[None] * len(partly)]
    choices = [
        {term for term, other in zip(partly, chosen, strict=True) if other and fits(term, other)} | equal
        for chosen in permutations(left, len(partly))
    ]
    most = max(map(len, choices))
    missing = min(len(without_parts(gold) - chosen) for chosen in choices if len(chosen) == most)
    return most, missing, len(predicted) - most


def fits(gold: Term, predicted: Term) -> bool:
    return gold.id in (None, predicted.id) and gold.name in (None, predicted.name)


def without_version(gold: Selection, id_: str) -> str:
    """The id that gold has for a dataset: `A:B` stands for each version that gold does not name."""
    names = {dataset.id for dataset in gold.datasets}
    return id_ if id_ in names or id_.partition("(")[0] not in names else id_.partition("(")[0]


def dimensions_of(stated: Selection, gold: Selection, by_dataset: bool) -> dict[str, set[Term]]:
    found: dict[str, set[Term]] = {}
    for of in stated.datasets:
        for dimension in of.dimensions:
            name = f"{without_version(gold, of.id)}|{dimension.name}" if by_dataset else dimension.name
            if dimension.terms:
                found.setdefault(name, set()).update(dimension.terms)
    return found


def ratio(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


@given(selections(), selections(), st.booleans(), st.sampled_from(["union", "target"]))
@example(selected(I=("a", ": x", "b")), selected(I=("a: x", "a: y", "b: x")), False, "union")  # `a` takes `a: y`
@example(selected(I=(": y", "a", "b: y")), selected(I=("a: y",)), False, "union")  # only `b: y` is missing
def test_all_figures_are_those_of_their_definition(gold, predicted, by_dataset, macro):
    golds, others = (dimensions_of(of, gold, by_dataset) for of in (gold, predicted))
    found = details(gold, predicted, by_dataset=by_dataset)["counts"]["dimension"]
    counts = {name: (of["tp"], of["fn"], of["fp"]) for name, of in found.items()}

    assert [*counts] == list(dict.fromkeys([*golds, *others]))
    for name, of in counts.items():
        assert of == counts_of(golds.get(name, set()), others.get(name, set())), name
    precisions = {name: ratio(tp, tp + fp) for name, (tp, _, fp) in counts.items()}
    recalls = {name: ratio(tp, tp + fn) for name, (tp, fn, _) in counts.items() if tp + fn}
    for name in ("COUNTRY", "A:B|COUNTRY"):
        assert value(f"precision[{name}]", gold, predicted, by_dataset=by_dataset) == precisions.get(name)
        assert value(f"recall[{name}]", gold, predicted, by_dataset=by_dataset) == recalls.get(name)
    if golds:
        precision = fmean(of for name, of in precisions.items() if macro == "union" or name in golds)
        recall = fmean(recalls.values())
    else:
        precision, recall = float(not others), 1.0
    f1 = ratio(2 * precision * recall, precision + recall)
    assert macros(gold, predicted, by_dataset=by_dataset, macro=macro) == (precision, recall, f1)
    wanted, chosen = ({without_version(gold, of.id) for of in stated.datasets} for stated in (gold, predicted))
    shares = (ratio(len(wanted & chosen), len(chosen)), ratio(len(wanted & chosen), len(wanted)))
    shares = shares if wanted else (float(not chosen), 1.0)
    assert tuple(value(f"dataset_{name}", gold, predicted) for name in ("precision", "recall")) == shares


@given(selections(), selections(), st.booleans(), st.randoms(use_true_random=False))
def test_neither_order_nor_being_its_own_gold_changes_a_figure(gold, predicted, by_dataset, chance):
    def moved(things):
        return tuple(chance.sample(things, len(things)))

    def shuffled(stated):
        datasets = [
            DatasetSelection(of.id, moved(tuple(DimensionSelection(part.name, moved(part.terms)) for part in parts)))
            for of in stated.datasets
            for parts in [of.dimensions]
        ]
        return Selection(moved(tuple(datasets)))

    names = (*MACROS, "dataset_precision", "dataset_recall", "precision[COUNTRY]", "recall[FREQ]")
    sets = {name: {} if name.startswith("dataset") else {"by_dataset": by_dataset} for name in names}
    for name, options in sets.items():
        before = value(name, gold, predicted, **options)
        assert value(name, shuffled(gold), shuffled(predicted), **options) == before
        assert value(name, gold, gold, **options) in (1.0, None)


# --- terms


def matched(gold, predicted, *, by_id=False):
    """The terms of one dimension that match, that are missing and that are extra, as details have them."""
    gold, predicted = (
        selection(DatasetSelection("A:B", (DimensionSelection("I", tuple(of)),)), by_id=by_id)
        for of in (gold, predicted)
    )
    found = details(gold, predicted)["dimensions"].get("I", {})
    return [found.get(name, []) for name in ("true_positives", "false_negatives", "false_positives")]


def lists(*of):
    return [[[term.id, term.name] for term in terms(*stated)] for stated in of]


TERMS = {  # what gold has and what is selected: what matches, what is missing, what is extra
    "case counts": (["A: x"], ["a: x"], [], ["A: x"], ["a: x"]),
    "blanks count": (["A: x"], ["A: x "], [], ["A: x"], ["A: x "]),
    "gold gives the id only": (["A"], ["A: x"], ["A: x"], [], []),
    "gold gives the name only": ([": x"], ["A: x"], ["A: x"], [], []),
    "one gold term, one match": (["A"], ["A: x", "A: y"], ["A: x"], [], ["A: y"]),
    "one predicted term, one match": (["A", ": x"], ["A: x"], ["A: x"], [": x"], []),
    "as many pairs as can be": (["A", ": x"], ["A: x", "A: y"], ["A: y", "A: x"], [], []),
    "exact pairs come first": ([": x", "A: x"], ["A: x", "B: x"], ["B: x", "A: x"], [], []),
    "a part of another gold term is no other term": (["A: x", "A"], ["A: x"], ["A: x"], [], []),
    "nor is a part of another predicted term": (["A: x"], ["A: x", "A", ": x"], ["A: x"], [], []),
}
TERMS_BY_ID = {
    "names are for display": (["A: x"], ["A: y"], ["A: x"], [], []),
    "predicted without names": (["A: x"], ["A"], ["A: x"], [], []),
    "gold without names": (["A"], ["A: y"], ["A: y"], [], []),
    "one id is one term": (["A"], ["A: y", "A: x", "A"], ["A: x"], [], []),
    "another id": (["A: x"], ["B: x"], [], ["A: x"], ["B: x"]),
    "a gold name without id": ([": x"], ["A: x"], ["A: x"], [], []),
    "names of a data query are those of gold": ([": All Items"], ["A: All  Items "], ["A: All Items"], [], []),
}


@pytest.mark.parametrize("row", TERMS.values(), ids=TERMS)
def test_terms_match_by_what_gold_says_of_them(row):
    assert matched(terms(*row[0]), terms(*row[1])) == lists(*row[2:])


@pytest.mark.parametrize("row", TERMS_BY_ID.values(), ids=TERMS_BY_ID)
def test_where_a_side_is_stated_in_codes_ids_are_compared(row):
    assert matched(terms(*row[0]), terms(*row[1]), by_id=True) == lists(*row[2:])
    for sides in ((True, False), (False, True)):
        gold, predicted = (selected(by_id=by_id, I=(f"A: {by_id}",)) for by_id in sides)
        assert macros(gold, predicted) == (1, 1, 1)


@pytest.mark.parametrize(
    ("gold", "same"),
    [("A: All Items", True), ("A", True), (": All Items", True), ("B: All Items", False), (": Some Items", False)],
)
@pytest.mark.parametrize("said", [("A",), ("A", "A: All Items")])
def test_a_name_that_the_structure_told_is_the_one_that_gold_says(gold, same, said):
    code, *more = terms(*said)
    labelled = replace(code, label="All  Items ")
    spelled = "All  Items " if gold == "A" else "All Items"

    alone = matched(terms(gold), [labelled])

    if same:
        assert alone == [[["A", spelled]], [], []]
        assert matched(terms(gold), [labelled, *more])[1:] == [[], []]
    else:
        assert alone == [[], *lists([gold]), [["A", "All  Items "]]]


def test_labels_are_shown_and_not_compared():
    assert matched([Term("A", None, label="gold's")], [Term("A", None, label="x")])[0] == [["A", "gold's"]]


def test_a_chain_of_thousands_of_names_and_ids_is_matched_in_full():
    gold = selected(I=(*(f"i{n}" for n in range(2000)), *(f": n{n}" for n in range(1, 2000))))
    predicted = selected(I=(*(f"i{n}: n{n}" for n in range(2000)), *(f"i{n}: n{n + 1}" for n in range(1999))))

    assert macros(gold, predicted) == (1, 1, 1)


# --- dimensions and datasets


def test_dimensions_of_all_datasets_are_pooled_and_a_note_tells_where_that_matters():
    gold = selection(dataset("A:B", I=("1",)), dataset("A:C", I=("2",)))
    swapped = selection(dataset("A:B", I=("2",)), dataset("A:C", I=("1",)))

    assert macros(gold, swapped) == (1, 1, 1)
    assert macros(gold, swapped, by_dataset=True) == (0, 0, 0)
    notes = [details(gold, other).get("notes", []) for other in (swapped, gold)]
    assert ["by_dataset: true" in "".join(lines) for lines in notes] == [True, False]


@pytest.mark.parametrize("id_", ["a:b", "A:B()"])
def test_the_case_of_ids_and_names_counts_and_brackets_have_a_version(id_):
    gold, predicted = selection(dataset("A:B")), selection(dataset(id_))

    assert value("dataset_precision", gold, predicted) == value("dataset_recall", gold, predicted) == 0
    assert macros(selected(I=("A",)), selected(i=("A",))) == (0, 0, 0)


@pytest.mark.parametrize(
    ("options", "setting"),
    [
        ({"by_dataset": "yes"}, "by_dataset"),
        ({"by_dataset": 1}, "by_dataset"),
        ({"macro": "micro"}, "macro"),
        ({"macro": ["union"]}, "macro"),
    ],
)
def test_options_that_cannot_be_right_are_refused(options, setting):
    with pytest.raises(SettingError) as caught:
        METRICS["macro_f1"].check(options)

    assert caught.value.setting == setting


# --- details


def test_details_have_the_terms_and_figures_of_each_dimension_gold_s_first():
    gold = selected(INDICATOR=("GDP: gross domestic product", ": x"), COUNTRY=(MEXICO,))
    predicted = selected(FREQ=("M: monthly",), INDICATOR=("GDP: gross domestic product",))

    listing = details(gold, predicted)

    assert listing == json.loads(json.dumps(to_jsonable(listing)))
    assert [score(name, gold, predicted, macro="target").details for name in MACROS] == [listing] * 3
    assert listing["counts"]["dimension"]["FREQ"] == {"tp": 0, "fn": 0, "fp": 1}
    assert [*listing["dimensions"]] == ["INDICATOR", "COUNTRY", "FREQ"]
    assert listing["dimensions"]["INDICATOR"] == {
        "precision": 1.0,
        "recall": 0.5,
        "in_target": True,
        "counts": {"true_positives": 1, "false_negatives": 1, "false_positives": 0},
        "true_positives": [["GDP", "gross domestic product"]],
        "false_negatives": [[None, "x"]],
        "false_positives": [],
    }
    assert (listing["dimensions"]["FREQ"]["recall"], listing["dimensions"]["FREQ"]["in_target"]) == (None, False)
    assert listing["indicator_selection"].splitlines() == [
        *("INDICATOR", "[recall: 0.50, precision: 1.00]", "True Positives [1]", "  * GDP: gross domestic product"),
        *("False Negatives [1]", "  * (no id): x", "False Positives [0]", ""),
        *("COUNTRY", "[recall: 0.00, precision: 0.00]", "True Positives [0]", "False Negatives [1]"),
        *("  * MEX: Mexico", "False Positives [0]", "", "dimensions not in target:", ""),
        *("FREQ", "[recall: n/a, precision: 0.00]", "True Positives [0]", "False Negatives [0]"),
        *("False Positives [1]", "  * M: monthly"),
    ]


@pytest.mark.parametrize(
    ("gold", "predicted", "options", "shown"),
    [
        pytest.param(NOTHING, NOTHING, {}, "", id="nothing to show"),
        pytest.param(
            selection(dataset("A:B", I=("1",))),
            selection(dataset("A:B(9.0)", I=("1",))),
            {"by_dataset": True},
            "A:B|I\n[recall: 1.00, precision: 1.00]\n",
            id="datasets that are kept apart are named",
        ),
        pytest.param(
            selection(DatasetSelection("A:B", (DimensionSelection("I", (Term("A", None, label="gdp"),)),))),
            selected(I=("A",)),
            {},
            "  * A: gdp\n",
            id="a label stands in for a name",
        ),
        pytest.param(selected(I=("A: x",)), selected(I=("A: x ",)), {}, "  * A: 'x '", id="blanks at an end are seen"),
        pytest.param(
            selected(I=("A",)),
            selected(**{"D\r\nE": ("B: x\nTrue Positives [9]\x1b[2J\u202e1",)}),
            {},
            "\nD E\n[recall: n/a, precision: 0.00]\nTrue Positives [0]\nFalse Negatives [0]\nFalse Positives [1]\n"
            "  * B: x True Positives [9]\\x1b[2J\\u202e1",
            id="hostile names stay on their line",
        ),
    ],
)
def test_the_text_of_details_shows_what_was_compared(gold, predicted, options, shown):
    assert shown in details(gold, predicted, **options)["indicator_selection"]


def test_long_lists_and_names_are_cut_and_their_counts_are_right():
    terms_ = details(selected(I=tuple(f"i{n}" for n in range(2500))), NOTHING)
    many = details(selected(I=("A",)), selected(**{f"d{n}": ("A",) for n in range(1_000)}))
    names = details(selected(I=("A",)), selected(**{"d" * 9999: ("A: " + "x" * 9999,)}))

    assert len(terms_["dimensions"]["I"]["false_negatives"]) == 1_000
    assert terms_["dimensions"]["I"]["counts"]["false_negatives"] == 2500
    assert "False Negatives [2500]\n" in terms_["indicator_selection"]
    assert terms_["indicator_selection"].endswith("  … 1,500 more\nFalse Positives [0]")
    assert (len(many["dimensions"]), next(iter(many["dimensions"]))) == (1_000, "I")
    assert many["notes"] == ["only 1,000 of 1,001 dimensions are listed"]
    assert len(json.dumps(names)) < 4000


# --- what a failed case says


def difference(gold, predicted):
    found = KINDS["sdmx"].difference(gold, predicted, make_case(kind="sdmx"), limit=8)
    return found["missing"], found["extra"], tuple(found["counts"].values()), found["summary"]


def test_a_difference_has_missing_and_extra_terms_and_datasets():
    gold = selected(INDICATOR=("A: a", ": b"), COUNTRY=(MEXICO,))
    missing, extra, counts, summary = difference(gold, selected(INDICATOR=("A: a",), COUNTRY=("USA",)))
    datasets = selection(dataset("A:B", I=("1",)), dataset("A:C"))
    others = selection(dataset("A:B(9.0)", I=("1",)), dataset("A:D(1.0)"), dataset("A\n:E"))
    many = selection(*(dataset(f"A:{n}") for n in range(1500)))
    cut = difference(selected(I=tuple(f"i{n}" for n in range(20))), selected(I=("x",)))

    assert missing == [("INDICATOR", None, "b"), ("COUNTRY", "MEX", "Mexico")]
    assert extra == [("COUNTRY", "USA", None)]
    assert (counts, summary) == ((2, 1), "missing 2 of 3 terms, 1 extra")
    assert (len(cut[0]), cut[2]) == (8, (20, 1))
    assert difference(gold, gold) == ([], [], (0, 0), "")
    assert difference(datasets, others)[3] == "missing datasets A:C, extra datasets A:D(1.0), A :E"
    assert difference(NOTHING, many)[3].endswith("extra datasets A:0, A:1, A:2, A:3 and 1,496 more")
