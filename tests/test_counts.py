"""What scores are made of: counts, and precision and recall as metrics of their own."""

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from samples import fake_source, install_engine, make_case, query, table
from strategies import tables
from table_oracle import Counts

from pytest_queryeval.core.case_report import ComponentName
from pytest_queryeval.core.json_value import JsonAnswer
from pytest_queryeval.core.table import Policy
from pytest_queryeval.evaluation import Session, evaluate_case
from pytest_queryeval.metrics import METRICS

POLICY = Policy()
SMALL = tables(st.sampled_from(["a", "b", None]), max_columns=3)
GOLD = table((1, "a"), (2, "b"), (3, "c"))
PREDICTED = table(("a", 1), ("b", 2), ("b", 2), ("x", 9), ("y", 3))
FRUIT = table(("apple", "red", 35), ("pear", "green", 28))
COLOURS = table(("apple", "red"), ("pear", "green"), ("plum", "blue"))


def score(name, gold, predicted):
    value = METRICS[name].function(gold, predicted)
    return getattr(value, "value", value)


def counts(name, gold, predicted):
    return METRICS[name].counts[1](gold, predicted, policy=POLICY)


@pytest.mark.parametrize(
    ("name", "gold", "predicted", "expected"),
    [
        ("row_matching_f1", GOLD, PREDICTED, {"tp": 2, "fp": 3, "fn": 1}),  # multisets under the best alignment
        ("exact_match_f1", GOLD, PREDICTED, {"tp": 0, "fp": 5, "fn": 3}),
        ("cell_f1", FRUIT, COLOURS, {"tp": 4, "fp": 2, "fn": 2}),
        (
            "entity_set_f1",  # distinct values of each gold column
            GOLD,
            PREDICTED,
            [{"column": "a", "tp": 3, "fp": 1, "fn": 0}, {"column": "b", "tp": 2, "fp": 2, "fn": 1}],
        ),
    ],
)
def test_what_is_counted(name, gold, predicted, expected):
    assert counts(name, gold, predicted) == expected


@given(SMALL, SMALL)
def test_the_counts_of_a_score_make_it(gold, predicted):
    for name in ("row_matching_f1", "exact_match_f1", "cell_f1", "soft_f1"):
        actual = counts(name, gold, predicted)

        assert min(actual.values()) >= 0
        no_alignment = name == "exact_match_f1" and len(gold.columns) != len(predicted.columns)
        expected = 0.0 if no_alignment else Counts(**actual).f1  # without rows there is nothing to count
        assert score(name, gold, predicted) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("name", get_args(ComponentName))
def test_components_of_queries_have_precision_and_recall(name):
    gold, predicted = "SELECT a, b FROM t WHERE x = 1 ORDER BY a", "SELECT a, c, d FROM t WHERE x = 1 AND y = 2"
    f1, precision, recall = (
        score(f"partial_{name}_{figure}", gold, predicted) for figure in ("f1", "precision", "recall")
    )
    actual = Counts(**METRICS[f"partial_{name}_f1"].counts[1](gold, predicted))

    assert (f1, precision, recall) == pytest.approx((actual.f1, actual.precision, actual.recall))
    if name == "select":
        assert actual == Counts(tp=1, fp=2, fn=1)


def test_counts_stand_in_the_details_of_a_case_for_the_metrics_that_it_requests(monkeypatch):
    install_engine(monkeypatch, {"SELECT gold": GOLD.rows, "SELECT predicted": PREDICTED.rows})
    metrics = ("row_precision", "exact_match_f1", "cell_recall", "soft_f1", "entity_set_f1", "partial_select_f1")
    case = make_case(
        source=fake_source(),
        golds=(query("SELECT gold"),),
        predicted=query("SELECT predicted"),
        metrics=metrics,
        thresholds={},
    )

    with Session() as session:
        stated = evaluate_case(case, session).shown.details["counts"]

    assert stated["row"] == {"tp": 2, "fp": 3, "fn": 1}
    assert stated["entity"][0] == {"column": "a", "tp": 3, "fp": 1, "fn": 0}
    assert stated["partial_select"] == {"tp": 0, "fp": 1, "fn": 1}
    assert stated.keys() == {"row", "exact", "cell", "soft", "entity", "partial_select"}


@pytest.mark.feature("json")
def test_paths_of_json_answers_are_counted():
    assert METRICS["path_f1"].counts[1](JsonAnswer({"a": 1, "b": [2, 3]}), JsonAnswer({"a": 1, "b": [2], "c": 4})) == {
        "tp": 2,
        "fp": 1,
        "fn": 1,
    }
