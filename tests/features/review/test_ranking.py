"""The ranking of cases by how likely their golds are wrong."""

import pytest
from suites import write

from pytest_queryeval import load_cases
from pytest_queryeval.core.model import QueryOrAnswer
from pytest_queryeval.evaluation.session import Session
from pytest_queryeval.features.review.ranking import examine_case, rank_cases, ranking_data
from pytest_queryeval.features.review.systems import SystemAnswer

SHOP = "CREATE TABLE product (name TEXT, price REAL); INSERT INTO product VALUES ('pear', 2), ('plum', 2), ('fig', 5);"
HEAD = "kind: sql\nsource: {sqlite: {script: shop.sql}}\n"
CHEAPEST = "SELECT name FROM product WHERE price = (SELECT min(price) FROM product)"


@pytest.fixture
def examine(tmp_path, monkeypatch):
    """Return the ranking of the cases of a suite, each with the queries that systems predict."""
    monkeypatch.chdir(tmp_path)
    write(SHOP, "shop.sql")

    def answer(query):
        return SystemAnswer(prediction=QueryOrAnswer(query=query))

    def ranking(cases, predictions):
        write(f"{HEAD}{cases}")
        with Session() as session:
            return rank_cases(
                examine_case(
                    case,
                    f"s.queryeval.yaml::{case.id}",
                    {system: answer(answers[case.id]) for system, answers in predictions.items()},
                    session,
                )
                for case in load_cases(".", require_prediction=False)
            )

    return ranking


def test_the_case_comes_first_whose_gold_most_systems_contradict_with_one_answer(examine):
    cases = """
cases:
  - {id: all, gold: SELECT name FROM product}
  - {id: cheapest, gold: "SELECT name FROM product ORDER BY price LIMIT 1"}
"""
    right = {"all": "SELECT name FROM product ORDER BY 1", "cheapest": CHEAPEST}
    wrong = {"all": "SELECT price FROM product", "cheapest": f"{CHEAPEST} ORDER BY 1"}

    ranking = ranking_data(examine(cases, {"a": right, "b": right, "c": wrong}))

    assert [case["case"] for case in ranking] == ["cheapest", "all"]
    first = ranking[0]
    digest = first.pop("gold")
    assert digest.startswith("sha256:")
    assert first == {
        "case": "cheapest",
        "suite": "s.queryeval.yaml",
        "nodeid": "s.queryeval.yaml::cheapest",
        "rank": 1,
        "evidence": [{"kind": "systems", "text": "3 of 3 systems give the same answer, gold another"}],
        "answers": [
            {"systems": [], "is_gold": True, "query": "SELECT name FROM product ORDER BY price LIMIT 1"},
            {"systems": ["a", "b", "c"], "is_gold": False, "query": CHEAPEST},
        ],
    }
