"""Precision and recall of selections: by dimension, over dimensions, of datasets."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from selections import FULL_TERMS, dataset, selected, selection, selections

from pytest_queryeval import METRICS
from pytest_queryeval.core.errors import SettingError
from pytest_queryeval.core.table import DatasetSelection, DimensionSelection, Selection

macro_precision, macro_recall, macro_f1, dataset_precision, dataset_recall = FIGURES = [
    METRICS[name].function
    for name in ("macro_precision", "macro_recall", "macro_f1", "dataset_precision", "dataset_recall")
]


def precision(gold, predicted, *, dimension, **options):
    return METRICS[f"precision[{dimension}]"].function(gold, predicted, **options)


def recall(gold, predicted, *, dimension, **options):
    return METRICS[f"recall[{dimension}]"].function(gold, predicted, **options)


GDP, GDPPC, GDP_CONST = (
    "GDP: gross domestic product",
    "GDPPC: GDP per capita",
    "GDP_CONST: gross domestic product constant prices",
)
POPULATION, MEXICO = "LP: Population, Persons for countries / Index for country groups", "MEX: Mexico"
NOTHING = selection()


def macros(gold: Selection, predicted: Selection, **options: object) -> tuple[float, float, float]:
    scores = (score(gold, predicted, **options).value for score in (macro_precision, macro_recall, macro_f1))
    return tuple(pytest.approx(value, abs=1e-12) for value in scores)


def test_the_documented_example_of_gdp():
    gold, predicted = selected(INDICATOR=(GDP, GDPPC)), selected(INDICATOR=(GDP, GDPPC, GDP_CONST))

    assert macros(gold, predicted) == (2 / 3, 1.0, 0.8)
    assert precision(gold, predicted, dimension="INDICATOR").value == pytest.approx(2 / 3)
    assert recall(gold, predicted, dimension="INDICATOR").value == 1.0


def test_the_documented_example_of_the_population_of_mexico():
    gold = selected(INDICATOR=(POPULATION,), COUNTRY=(MEXICO,))

    assert macros(gold, gold) == (1.0, 1.0, 1.0)
    assert macros(gold, selected(INDICATOR=(POPULATION,), COUNTRY=("USA: United States",))) == (0.5, 0.5, 0.5)
    assert macros(gold, selected(INDICATOR=(POPULATION,))) == (0.5, 0.5, 0.5)


@pytest.mark.parametrize(
    ("gold", "predicted", "union", "target"),
    [
        pytest.param(NOTHING, NOTHING, (1, 1, 1), (1, 1, 1), id="nothing on either side"),
        pytest.param(selected(I=()), selected(C=()), (1, 1, 1), (1, 1, 1), id="dimensions without terms are absent"),
        pytest.param(NOTHING, selected(I=("A",)), (0, 1, 0), (0, 1, 0), id="nothing in gold"),
        pytest.param(selected(I=("A",)), NOTHING, (0, 0, 0), (0, 0, 0), id="nothing selected"),
        pytest.param(
            selected(I=("A",), C=("B",)), selected(I=("A",)), (0.5, 0.5, 0.5), (0.5, 0.5, 0.5), id="not selected"
        ),
        pytest.param(
            selected(I=("A",)), selected(I=("A",), C=("B",)), (0.5, 1, 2 / 3), (1, 1, 1), id="selected, not in gold"
        ),
        pytest.param(
            selected(I=("A",), C=()), selected(I=("A",), C=("B",)), (0.5, 1, 2 / 3), (1, 1, 1), id="empty in gold"
        ),
        pytest.param(selected(I=("A",)), selected(C=("B",)), (0, 0, 0), (0, 0, 0), id="only another dimension"),
        pytest.param(selected(I=("A",)), selected(i=("A",)), (0, 0, 0), (0, 0, 0), id="the case of names counts"),
    ],
)
def test_macro_figures_where_a_side_is_silent(gold, predicted, union, target):
    assert macros(gold, predicted) == union
    assert macros(gold, predicted, macro="target") == target


def test_one_dimension_where_a_side_is_silent():
    gold, predicted = selected(I=("A",), C=("B",)), selected(I=("A",), F=("M",))

    assert [score(gold, predicted, dimension="C").value for score in (precision, recall)] == [0.0, 0.0]
    assert [score(gold, predicted, dimension="F").value for score in (precision, recall)] == [0.0, None]
    assert [score(gold, predicted, dimension="X").value for score in (precision, recall)] == [None, None]


def test_dimensions_of_all_datasets_are_pooled():
    gold = selection(dataset("A:B", I=("1",)), dataset("A:C", I=("2",)))
    swapped = selection(dataset("A:B", I=("2",)), dataset("A:C", I=("1",)))

    assert macros(gold, swapped) == (1, 1, 1)
    assert macros(gold, swapped, by_dataset=True) == (0, 0, 0)
    notes = [macro_recall(gold, other).details.get("notes", []) for other in (swapped, gold)]
    assert ["by_dataset: true" in "".join(lines) for lines in notes] == [True, False]


def test_a_dimension_that_is_listed_twice_is_one():
    twice = selection(dataset(I=("1",)), dataset(I=("2",)))

    assert macros(twice, selected(I=("1", "2")), by_dataset=True) == (1, 1, 1)


def test_a_country_in_full_for_one_dataset_and_by_its_id_for_the_next_is_one():
    gold = selection(dataset("A:B", COUNTRY=(MEXICO,)), dataset("A:C", COUNTRY=("MEX",)))
    predicted = selection(dataset("A:B", COUNTRY=(MEXICO,)), dataset("A:C", COUNTRY=(MEXICO,)))

    assert macros(gold, predicted) == (1, 1, 1)
    assert macros(gold, predicted, by_dataset=True) == (1, 1, 1)


@pytest.mark.parametrize(
    ("golds", "predicteds", "expected"),
    [
        pytest.param(["A:B"], ["A:B(9.0.0)"], (1, 1), id="gold without a version"),
        pytest.param(["A:B"], ["A:B(9.0.0)", "A:B(8.0)"], (1, 1), id="versions of one dataset are one"),
        pytest.param(["A:B(9.0.0)"], ["A:B(9.0.0)"], (1, 1), id="the same version"),
        pytest.param(["A:B(9.0.0)"], ["A:B(9.0)"], (0, 0), id="another version"),
        pytest.param(["A:B(9.0.0)"], ["A:B"], (0, 0), id="predicted without a version"),
        pytest.param(["A:B", "A:B(1.0)"], ["A:B(1.0)"], (1, 0.5), id="a version that gold has itself"),
        pytest.param(["A:B"], ["A:B", "A:C"], (0.5, 1), id="one more"),
        pytest.param(["A:B", "A:C"], ["A:B"], (1, 0.5), id="one less"),
        pytest.param(["A:B"], ["a:b"], (0, 0), id="case counts"),
        pytest.param(["A:B"], ["A:B()"], (0, 0), id="no version in brackets"),
        pytest.param([], [], (1, 1), id="none on either side"),
        pytest.param([], ["A:B"], (0, 1), id="none in gold"),
        pytest.param(["A:B"], [], (0, 0), id="none selected"),
        pytest.param(["A:B", "A:B"], ["A:B"], (1, 1), id="a dataset that is listed twice"),
    ],
)
def test_datasets(golds, predicteds, expected):
    gold, predicted = (selection(*map(dataset, ids)) for ids in (golds, predicteds))

    assert (dataset_precision(gold, predicted), dataset_recall(gold, predicted)) == expected


def test_the_version_of_a_dataset_makes_no_other_dimension():
    gold = selection(dataset("A:B", I=("1",)), dataset("A:C(1.0)", I=("2",)))
    predicted = selection(dataset("A:B(9.0.0)", I=("1",)), dataset("A:C(2.0)", I=("2",)))

    assert macros(gold, predicted, by_dataset=True) == (1 / 3, 0.5, 0.4)
    assert precision(gold, predicted, dimension="A:B|I", by_dataset=True).value == 1.0
    assert recall(gold, predicted, dimension="A:C(1.0)|I", by_dataset=True).value == 0.0
    assert precision(gold, predicted, dimension="A:C(2.0)|I", by_dataset=True).value == 0.0
    assert recall(gold, predicted, dimension="A:C(2.0)|I", by_dataset=True).value is None
    assert recall(gold, predicted, dimension="I", by_dataset=True).value is None


@pytest.mark.parametrize("sides", [(True, False), (False, True), (True, True)])
def test_where_a_side_is_stated_in_codes_ids_are_compared(sides):
    gold, predicted = (selected(by_id=by_id, I=(f"A: {by_id}",)) for by_id in sides)

    assert macros(gold, predicted) == (1, 1, 1)


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


@pytest.mark.parametrize("name", ["macro_precision", "macro_f1", "dataset_recall", "precision[A]", "recall[A]"])
def test_all_are_metrics_of_the_kind_sdmx(name):
    assert METRICS[name].answers is Selection
    assert METRICS[name].options <= {"by_dataset", "macro"}


def values(gold: Selection, predicted: Selection) -> list[float | None]:
    both = [{}, {"by_dataset": True}, {"macro": "target"}]
    figures = [score(gold, predicted, **options).value for score in FIGURES[:3] for options in both]
    figures += [score(gold, predicted) for score in FIGURES[3:]]
    named = [(score, name) for score in (precision, recall) for name in ("COUNTRY", "FREQ")]
    return figures + [score(gold, predicted, dimension=name).value for score, name in named]


def by_dimension(stated: Selection) -> dict[str, set]:
    """The terms of each dimension of all datasets, without dimensions that have none."""
    pooled: dict[str, set] = {}
    for dimension in (dimension for of in stated.datasets for dimension in of.dimensions):
        pooled.setdefault(dimension.name, set()).update(dimension.terms)
    return {name: of for name, of in pooled.items() if of}


def reference(gold: Selection, predicted: Selection, macro: str) -> tuple[float, float]:
    """Mean precision and recall over dimensions, by the rules for a side that is silent."""
    golds, others = by_dimension(gold), by_dimension(predicted)
    names = golds.keys() | (others.keys() if macro == "union" else ())
    precisions = [
        len(golds.get(name, set()) & others.get(name, set())) / (len(others.get(name, ())) or 1) for name in names
    ]
    recalls = [len(of & others.get(name, set())) / len(of) for name, of in golds.items()]
    if not golds:
        return float(not others), 1.0
    return sum(precisions) / len(precisions), sum(recalls) / len(recalls)


@given(selections(FULL_TERMS), selections(FULL_TERMS), st.sampled_from(["union", "target"]))
def test_full_terms_are_counted_as_sets_in_each_dimension(gold, predicted, macro):
    precision_, recall_ = reference(gold, predicted, macro)
    both = 2 * precision_ * recall_ / (precision_ + recall_) if precision_ + recall_ else 0.0

    assert macros(gold, predicted, macro=macro) == (precision_, recall_, both)


@given(selections())
def test_gold_against_itself_is_1(gold):
    assert {value for value in values(gold, gold) if value is not None} == {1.0}


@given(selections(), selections())
def test_all_values_are_between_0_and_1(gold, predicted):
    assert all(value is None or 0.0 <= value <= 1.0 for value in values(gold, predicted))


def shuffled(stated: Selection, chance) -> Selection:
    def moved(things: tuple) -> tuple:
        return tuple(chance.sample(things, len(things)))

    return Selection(
        moved(
            tuple(
                DatasetSelection(
                    dimension.id,
                    moved(tuple(DimensionSelection(part.name, moved(part.terms)) for part in dimension.dimensions)),
                )
                for dimension in stated.datasets
            )
        )
    )


@given(selections(), selections(), st.randoms(use_true_random=False))
def test_the_order_of_datasets_dimensions_and_values_does_not_matter(gold, predicted, chance):
    assert values(shuffled(gold, chance), shuffled(predicted, chance)) == values(gold, predicted)
