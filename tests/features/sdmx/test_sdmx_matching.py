"""Which terms of a dimension match."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from itertools import permutations
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from selections import FULL_TERMS, ID_TERMS, NAME_TERMS, TERMS, terms

from pytest_queryeval import METRICS
from pytest_queryeval.core.table import DatasetSelection, DimensionSelection, Selection, Term


class Matched(NamedTuple):
    """Terms as details have them: pairs of id and name."""

    true_positives: list
    false_negatives: list
    false_positives: list


def matched(tp=(), fn=(), fp=()) -> Matched:
    return Matched(*([[term.id, term.name] for term in terms(*of)] for of in (tp, fn, fp)))


def match_terms(gold, predicted, *, by_id: bool = False) -> Matched:
    """What the details of a metric say of the terms of one dimension."""
    selections = [
        Selection((DatasetSelection("A:B", (DimensionSelection("I", tuple(of)),)),), by_id=by_id)
        for of in (gold, predicted)
    ]
    dimension = METRICS["macro_recall"].function(*selections).details["dimensions"].get("I", {})
    return Matched(*(dimension.get(name, []) for name in Matched._fields))


@pytest.mark.parametrize(
    ("gold", "predicted", "expected"),
    [
        pytest.param(["A: x"], ["A: x"], matched(tp=["A: x"]), id="the same term"),
        pytest.param(["A: x"], ["A: y"], matched(fn=["A: x"], fp=["A: y"]), id="another name"),
        pytest.param(["A: x"], ["B: x"], matched(fn=["A: x"], fp=["B: x"]), id="another id"),
        pytest.param(["A: x"], ["a: x"], matched(fn=["A: x"], fp=["a: x"]), id="case counts"),
        pytest.param(["A: x"], ["A: x "], matched(fn=["A: x"], fp=["A: x "]), id="blanks count"),
        pytest.param(["A: x", "A: x"], ["A: x"] * 3, matched(tp=["A: x"]), id="duplicates are one"),
        pytest.param(["A"], ["A: x"], matched(tp=["A: x"]), id="gold gives the id only"),
        pytest.param([": x"], ["A: x"], matched(tp=["A: x"]), id="gold gives the name only"),
        pytest.param(["A"], ["B: x"], matched(fn=["A"], fp=["B: x"]), id="another id where gold gives it only"),
        pytest.param(["A: x"], ["A"], matched(fn=["A: x"], fp=["A"]), id="gold gives both, predicted the id only"),
        pytest.param(["A"], [": A"], matched(fn=["A"], fp=[": A"]), id="an id is not a name"),
        pytest.param(["A"], ["A: x", "A: y"], matched(tp=["A: x"], fp=["A: y"]), id="one gold term, one match"),
        pytest.param(["A", ": x"], ["A: x"], matched(tp=["A: x"], fn=[": x"]), id="one predicted term, one match"),
        pytest.param(["A", ": x"], ["A: x", "A: y"], matched(tp=["A: y", "A: x"]), id="as many pairs as can be"),
        pytest.param([": x", "A: x"], ["A: x", "B: x"], matched(tp=["B: x", "A: x"]), id="exact pairs come first"),
        pytest.param(["A: x", "A"], ["A: x"], matched(tp=["A: x"]), id="a part of another gold term is no other term"),
        pytest.param(
            ["A: x"], ["A: x", "A", ": x"], matched(tp=["A: x"]), id="nor is a part of another predicted term"
        ),
        pytest.param(["A"], ["A", "A: x"], matched(tp=["A: x"]), id="a part and its whole are one"),
        pytest.param(["A: x", ": x"], [], matched(fn=["A: x"]), id="nothing selected"),
        pytest.param([], ["A: x"], matched(fp=["A: x"]), id="nothing in gold"),
    ],
)
def test_terms(gold, predicted, expected):
    assert match_terms(terms(*gold), terms(*predicted)) == expected


@pytest.mark.parametrize(
    ("gold", "predicted", "expected"),
    [
        pytest.param(["A: x"], ["A: y"], matched(tp=["A: x"]), id="names are for display"),
        pytest.param(["A: x"], ["A"], matched(tp=["A: x"]), id="predicted without names"),
        pytest.param(["A"], ["A: y"], matched(tp=["A: y"]), id="gold without names"),
        pytest.param(["A"], ["A: y", "A: x", "A"], matched(tp=["A: x"]), id="one id is one term"),
        pytest.param(["A: x"], ["B: x"], matched(fn=["A: x"], fp=["B: x"]), id="another id"),
        pytest.param([": x"], ["A: x"], matched(tp=["A: x"]), id="a gold name without id"),
    ],
)
def test_terms_by_id(gold, predicted, expected):
    assert match_terms(terms(*gold), terms(*predicted), by_id=True) == expected


@pytest.mark.parametrize(
    ("gold", "expected"),
    [
        pytest.param(["A: All Items"], matched(tp=["A: All Items"]), id="gold gives both"),
        pytest.param(["A"], matched(tp=["A"]), id="gold gives the id only"),
        pytest.param([": All Items"], matched(tp=["A: All Items"]), id="gold gives the name only"),
        pytest.param(["B: All Items"], matched(fn=["B: All Items"], fp=["A"]), id="another id of the same name"),
        pytest.param([": Some Items"], matched(fn=[": Some Items"], fp=["A"]), id="another name"),
    ],
)
@pytest.mark.parametrize("said", [("A",), ("A", "A: All Items")])
def test_a_name_that_the_structure_told_is_the_one_that_gold_says(gold, expected, said):
    code, *remaining = terms(*said)
    term = replace(code, label="All  Items ")

    shown = Matched(*([[id_, name or term.label] for id_, name in of] for of in expected))

    assert match_terms(terms(*gold), [term]) == shown
    if expected.true_positives == [["A", "All Items"]]:
        assert match_terms(terms(*gold), [term, *remaining]) == expected


def test_names_of_a_data_query_are_the_ones_that_gold_says():
    matching = match_terms(terms(": All Items"), terms("A: All  Items "), by_id=True)

    assert matching == matched(tp=["A: All Items"])


def test_labels_are_shown_and_not_compared():
    gold, predicted = Term("A", None, label="in gold"), Term("A", None, label="in predicted")

    matching = match_terms([gold], [predicted])

    assert matching.true_positives == [["A", "in gold"]]


def said(gold: Term, predicted: Term) -> bool:
    return gold.id in (None, predicted.id) and gold.name in (None, predicted.name)


def most_pairs(golds: set[Term], others: set[Term]) -> int:
    short, long = sorted(([*golds], [*others]), key=len)
    turned = len(golds) > len(others)
    pairings = (zip(short, chosen, strict=True) for chosen in permutations(long, len(short)))
    return max(sum(said(*(pair[::-1] if turned else pair)) for pair in pairing) for pairing in pairings)


PARTLY = st.sets(ID_TERMS | NAME_TERMS, max_size=5)


@given(PARTLY, st.sets(FULL_TERMS, max_size=5))
def test_there_are_as_many_pairs_as_any_choice_gives(gold, predicted):
    matching = match_terms(sorted(gold, key=repr), sorted(predicted, key=repr))

    assert len(matching.true_positives) == most_pairs(gold, predicted)
    assert len(matching.false_negatives) == len(gold) - len(matching.true_positives)
    assert len(matching.false_positives) == len(predicted) - len(matching.true_positives)


@given(st.lists(TERMS), st.booleans())
def test_gold_matches_itself(gold, by_id):
    matching = match_terms(gold, gold, by_id=by_id)

    assert (matching.false_negatives, matching.false_positives) == ([], [])
    assert bool(matching.true_positives) == bool(gold)


@given(st.lists(FULL_TERMS), st.lists(FULL_TERMS))
def test_full_terms_match_as_sets(gold, predicted):
    matching = match_terms(gold, predicted)

    golds, others = set(gold), set(predicted)
    for found, expected in zip(matching, (golds & others, golds - others, others - golds), strict=True):
        assert sorted(found) == sorted([term.id, term.name] for term in expected)


@given(st.lists(TERMS), st.lists(TERMS), st.booleans(), st.randoms(use_true_random=False))
def test_order_does_not_matter(gold, predicted, by_id, chance):
    matching = match_terms(gold, predicted, by_id=by_id)
    moved = match_terms(chance.sample(gold, len(gold)), chance.sample(predicted, len(predicted)), by_id=by_id)

    assert len(moved.true_positives) == len(matching.true_positives)
    assert len(moved.false_negatives) == len(matching.false_negatives)
    assert len(moved.false_positives) == len(matching.false_positives)


def test_a_chain_of_ten_thousand_names_and_ids_is_matched_in_full():
    gold = terms(*(f"i{n}" for n in range(5000)), *(f": n{n}" for n in range(1, 5000)))
    predicted = terms(*(f"i{n}: n{n}" for n in range(5000)), *(f"i{n}: n{n + 1}" for n in range(4999)))

    selections = [Selection((DatasetSelection("A:B", (DimensionSelection("I", of),)),)) for of in (gold, predicted)]

    assert (
        METRICS["precision[I]"].function(*selections).value == METRICS["recall[I]"].function(*selections).value == 1.0
    )


@pytest.mark.parametrize(
    ("gold", "codes", "loaded"),
    [
        pytest.param("Term('A', None), Term(None, 'x')", 6, set(), id="six terms that fit an id or a name"),
        pytest.param("Term('A', None), Term(None, 'x')", 7, {"numpy", "scipy"}, id="seven of them"),
    ],
)
def test_numpy_and_scipy_are_loaded_only_where_many_terms_fit_two_of_gold_s(gold, codes, loaded):
    lines = (
        "from pytest_queryeval import METRICS",
        "from pytest_queryeval.core.table import DatasetSelection, DimensionSelection, Selection, Term",
        "def of(*terms): return Selection((DatasetSelection('A:B', (DimensionSelection('I', terms),)),))",
        f"METRICS['macro_f1'].function(of({gold}), of(*(Term('A', name) for name in 'xyzuvwt'[:{codes}])))",
        "import sys; print(*sys.modules)",
    )

    result = subprocess.run(
        [sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, check=True, timeout=300
    )

    assert {"numpy", "scipy"} & set(result.stdout.split()) == loaded
