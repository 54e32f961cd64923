"""Cases in suites: verdicts, ties, and the messages on mistakes."""

import json
from pathlib import Path

import pytest
from queryeval_cypher import engine

from pytest_queryeval import QueryEvalError, evaluate, load_cases

SUITE = Path(__file__).parent.parent / "suite"

WRONG = {
    *("tributaries-wrong-way", "upstream-one-step", "tributaries-without-zero", "shortest-first", "unknown-property"),
    *("adds-a-river", "reads-a-file", "node-for-a-name", "nulls-left-out"),
}


def outcomes(cases):
    return {case["id"]: case for case in evaluate(cases)["cases"]}


def test_the_thirty_predictions_are_judged_as_their_comments_say():
    cases = outcomes(load_cases(SUITE))

    assert len(cases) == 30
    assert {name for name, case in cases.items() if case["outcome"] != "passed"} == WRONG
    assert {case["outcome"] for name, case in cases.items() if name in WRONG} == {"missed"}


def suite(folder, *pairs):
    cases = [{"id": str(number), "gold": gold, "predicted": said} for number, (gold, said) in enumerate(pairs)]
    script = str(SUITE / "rivers.cypher")
    content = {"kind": "cypher", "source": {"ladybug": {"script": script}}, "cases": cases}
    (folder / "s.queryeval.yaml").write_text(json.dumps(content), encoding="utf-8")
    return folder / "s.queryeval.yaml"


@pytest.mark.parametrize("order", ["r.km DESC", "km DESC"])
def test_rows_that_tie_may_come_in_any_order_and_others_may_not(order, tmp_path):
    gold = f"MATCH (r:River) RETURN r.name, r.km AS km ORDER BY {order}"
    path = suite(
        tmp_path,
        (gold, f"{gold}, r.name DESC"),
        (gold, f"{gold}, r.name ASC"),
        (gold, gold.replace(" DESC", "")),
        (f"{gold} LIMIT 4", f"{gold}, r.name DESC LIMIT 4"),  # Birch and Cedar are the fourth and the fifth
        (f"{gold} LIMIT 5", f"{gold}, r.name DESC LIMIT 5"),
        (f"{gold} SKIP 4 LIMIT 1", f"{gold}, r.name DESC SKIP 4 LIMIT 1"),
        (f"{gold} SKIP 4 LIMIT 1", f"{gold} SKIP 5 LIMIT 1"),
    )

    assert [case["outcome"] for case in outcomes(load_cases(path)).values()] == [
        *("passed", "passed", "failed", "passed"),
        *("passed", "passed", "failed"),
    ]


def test_a_limit_without_order_is_met_by_any_rows(tmp_path):
    path = suite(
        tmp_path,
        ("MATCH (r:River) RETURN r.name LIMIT 2", "MATCH (r:River) RETURN r.name ORDER BY r.name DESC LIMIT 2"),
        ("MATCH (r:River) RETURN r.name LIMIT 2", "MATCH (r:Lake) RETURN r.name LIMIT 2"),
    )

    assert [case["outcome"] for case in outcomes(load_cases(path)).values()] == ["passed", "failed"]


def test_a_gold_with_an_unknown_property_is_an_error_with_its_place_and_the_nearest_one(tmp_path):
    path = suite(tmp_path, ("MATCH (r:River) RETURN r.nmae", "RETURN 1"))

    [case] = outcomes(load_cases(path)).values()

    assert case["outcome"] == "error"
    assert "Cannot find property nmae for r: did you mean 'name'?" in case["message"]
    assert "s.queryeval.yaml:1" in case["message"]


def test_a_source_without_ladybug_is_an_error_that_says_how_to_install_it(tmp_path, monkeypatch):
    monkeypatch.setattr(engine.importlib.util, "find_spec", lambda name: None)

    with pytest.raises(QueryEvalError, match=r"s\.queryeval\.yaml:1: .*needs the package ladybug: pip install ladybug"):
        load_cases(suite(tmp_path, ("RETURN 1", "RETURN 1")))


@pytest.mark.parametrize("settings", [{}, {"path": "a", "script": "b"}, {"script": 1}, {"file": "a"}])
def test_a_source_has_either_a_path_or_a_script(settings, tmp_path):
    content = {
        "kind": "cypher",
        "source": {"ladybug": settings},
        "cases": [{"gold": "RETURN 1", "predicted": "RETURN 1"}],
    }
    (tmp_path / "s.queryeval.yaml").write_text(json.dumps(content), encoding="utf-8")

    with pytest.raises(QueryEvalError, match=r"s\.queryeval\.yaml:1: "):
        load_cases(tmp_path / "s.queryeval.yaml")
