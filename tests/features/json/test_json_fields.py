"""Scores by field of JSON answers: of a case, in reports, as a metric, in gates and against a baseline."""

import csv
import io
import json
import re
from pathlib import Path

import openpyxl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from json_values import VALUES, leaves
from report_parts import merge
from samples import make_case
from suites import load, problem, write

from pytest_queryeval import evaluate
from pytest_queryeval.cli import main
from pytest_queryeval.core.json_value import JsonAnswer
from pytest_queryeval.core.metric import Score
from pytest_queryeval.core.table import Policy
from pytest_queryeval.languages import KINDS
from pytest_queryeval.metrics import METRICS
from pytest_queryeval.reports import REPORTS

pytestmark = pytest.mark.usefixtures("working_folder")

GOLD = "{id: 1, items: [{n: 1, price: 2.5}, {n: 2, price: 3}], tags: [a, b]}"
CASES = f"""
  - {{id: right, gold: {GOLD}, predicted: {GOLD}}}
  - {{id: price, gold: {GOLD}, predicted: {GOLD.replace("price: 3}", "price: 4}")}}}
  - {{id: inserted, gold: {GOLD}, predicted: {GOLD.replace("items: [", "items: [{n: 0, price: 0}, ")}}}
  - {{id: broken, gold: {GOLD}, predicted: '{{"id": 1'}}
  - {{id: other, gold: {{name: x}}, predicted: {{name: y}}}}
"""
FIELDS = {
    "$.name": {"n": 1, "mean": 0.0},
    "$.items[*].price": {"n": 4, "mean": 2.5 / 4},
    "$.id": {"n": 4, "mean": 3 / 4},
    "$.items[*].n": {"n": 4, "mean": 3 / 4},
    "$.tags[*]": {"n": 4, "mean": 3 / 4},
}


def report_of(cases, head="kind: json\nmetrics: [json_equal]\n"):
    return evaluate(load(f"{head}cases:\n{cases}"))


def scores(gold, predicted, policy):
    return KINDS["json"].field_scores(JsonAnswer(gold), predicted, make_case(kind="json", policy=policy))


def field(path, gold, predicted, policy):
    score = METRICS[f"field[{path}]"].function(JsonAnswer(gold), JsonAnswer(predicted), policy=policy)
    return score.value if isinstance(score, Score) else score


def test_a_run_has_the_mean_of_each_field_over_the_cases_whose_gold_has_it():
    report = report_of(CASES)

    by_id = {case["id"]: case["field_scores"] for case in report["cases"]}
    everything = dict.fromkeys(("$.id", "$.items[*].n", "$.items[*].price", "$.tags[*]"), 1.0)
    assert by_id["right"] == by_id["inserted"] == everything
    assert by_id["price"] == everything | {"$.items[*].price": 0.5}
    assert by_id["broken"] == dict.fromkeys(everything, 0.0)
    assert report["fields"] == FIELDS
    assert next(iter(report["fields"])) == "$.items[*].price"  # which costs most
    assert "fields_left_out" not in report
    assert merge(report).report["fields"] == report["fields"]


POLICIES = st.builds(
    Policy,
    lists=st.sampled_from(["ordered", "any"]),
    abs=st.sampled_from([None, 0.5]),
    extra_keys=st.sampled_from(["reject", "allow"]),
)


@given(VALUES, VALUES, POLICIES)
def test_fields_share_out_the_leaves_that_path_f1_counts(gold, predicted, policy):
    f1 = METRICS["path_f1"].function(JsonAnswer(gold), JsonAnswer(predicted), policy=policy)
    by_field = scores(gold, JsonAnswer(predicted), policy)

    everything = field("$", gold, predicted, policy)
    if policy.extra_keys == "reject":
        assert f1 == pytest.approx(2 * everything * leaves(gold) / (leaves(gold) + leaves(predicted)))
    assert min(by_field.values()) - 1e-9 <= everything <= max(by_field.values()) + 1e-9
    assert set(scores(gold, JsonAnswer(gold), policy).values()) == {1.0}
    assert scores(gold, None, policy) == dict.fromkeys(by_field, 0.0)


@pytest.mark.parametrize(
    ("path", "score"),
    [
        ("$", 5 / 7),
        ("$.items", 3 / 4),
        ("$.items[*]", 3 / 4),
        ("$.items[*].price", 1 / 2),
        ("$['items'][*]['price']", 1 / 2),
        ("$..price", 1 / 2),
        ("$.*.*", 4 / 6),
        ("$.tags", 1 / 2),
        ("$.tags[*]", 1 / 2),
        ("$.id", 1.0),
        ("$.prices", None),
        ("$.items.price", None),
    ],
)
def test_a_path_covers_what_is_below_it(path, score):
    gold = {"id": 1, "items": [{"n": 1, "price": 2}, {"n": 2, "price": 3}], "tags": ["a", "b"]}
    predicted = {"id": 1, "items": [{"n": 2, "price": 3}, {"n": 1}], "tags": ["b"]}

    assert field(path, gold, predicted, Policy(lists="any")) == score


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("field", "metric 'field' needs a path: for json write field[PATH], else remove it"),
        ("'field[price]'", "field[price]: `price` is not a JSONPath: it begins with `$`"),
        ("'field[$.items[0].price]'", "a field is in all elements of a list: write [*] for an index"),
        ("'field[$[?@.a]]'", "is not a JSONPath of names, indexes, `*` and `..`"),
    ],
)
def test_a_name_of_a_field_that_cannot_be_right_is_a_problem(name, said):
    assert said in problem(f"metrics: [{name}]", "gold: {a: 1}", "predicted: {}", head="kind: json\n")


def test_a_case_without_the_field_has_no_score_and_says_which_fields_gold_has():
    (result,) = report_of('  - {id: a, gold: {a: 1, b: [2]}, predicted: {}, metrics: ["field[$.c]"]}')["cases"]

    assert result["scores"]["field[$.c]"] is None
    assert result["details"]["notes"] == ["field[$.c]: the gold answer has no value there, but at $.a, $.b[*]"]


@pytest.mark.parametrize(("least", "is_met"), [(0.6, True), (0.7, False)])
def test_a_gate_on_a_field(least, is_met):
    write(f'gates:\n  - {{metric: "field[$.items[*].price]", min: {least}}}\n', "queryeval.yaml")

    write(f"kind: json\non_miss: xfail\ncases:\n{CASES}")

    assert main(["evaluate", ".", "--report", "r.json"]) == int(not is_met)

    (gate,) = json.loads(Path("r.json").read_bytes())["gates"]

    assert (gate["value"], gate["n"], gate["unscored"], gate["ok"]) == (2.5 / 4, 4, 1, is_met)


@pytest.mark.parametrize(
    ("metric", "change"),
    [
        ("field[$.items[*].price]", -0.375),
        ("field[$.id]", 0),
        ("field[$.items]", "no case has a value in the baseline as well: name one field of its report, or write"),
    ],
)
def test_a_gate_on_a_field_compares_with_the_fields_of_a_baseline_that_did_not_compute_it(metric, change):
    write(f"kind: json\non_miss: xfail\ncases:\n{CASES}")
    main(["evaluate", ".", "--report", "before.json"])
    write(f'gates:\n  - no_regression: {{metric: "{metric}"}}\n', "queryeval.yaml")
    write(f"kind: json\non_miss: xfail\ncases:\n{re.sub('(predicted: .*)price: 2.5', chr(92) + '1price: 9', CASES)}")

    main(["evaluate", ".", "--baseline", "before.json", "--report", "after.json"])

    (gate,) = json.loads(Path("after.json").read_bytes())["gates"]
    assert gate["reason"].startswith(change) if isinstance(change, str) else gate["value"] == change


def test_every_format_shows_the_fields_and_what_fell_since_the_baseline(monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    before = report_of(CASES)
    after = report_of(
        CASES.replace(
            "{id: right, gold: {id: 1, items: [{n: 1, price: 2.5}", "{id: right, gold: {id: 1, items: [{n: 1, price: 9}"
        )
    )

    merged = merge(after, baseline=before)

    report = merged.report
    assert report["baseline"]["fields"] == {"$.items[*].price": {"n": 4, "before": 2.5 / 4, "after": 2 / 4}}
    assert report["baseline"]["metrics"].keys() == {"pass_rate", "json_equal"}
    rows = [["field", "mean", "change", "in", "cases", "of", "both", "n"], ["$.items[*].price", "0.500", "-0.125", "4"]]
    lines = [line.split() for line in merged.lines]
    assert all(row in lines for row in [*rows, ["$.tags[*]", "0.750", "-", "4"]])
    sentence = "$.items[*].price fell from 0.625 to 0.500 (4 cases)"
    assert sentence in merged.lines
    texts = {name: REPORTS[name].render(report).decode() for name in ("md", "html", "csv")}
    assert "| `$.items[*].price` | 0.500 | -0.125 | 4 |" in texts["md"]
    assert f"`{sentence}".replace(" fell", "` fell") in texts["md"]
    assert sentence in texts["html"]
    book = openpyxl.load_workbook(io.BytesIO(REPORTS["xlsx"].render(report)))
    assert ("$.items[*].price", 0.5, 4) in {row[:3] for row in book["Statistics"].iter_rows(values_only=True)}
    first, *_ = csv.DictReader(io.StringIO(texts["csv"]))
    assert (first["field[$.items[*].price]"], first["field[$.name]"]) == ("0.5", "")


def test_trials_count_alike():
    answers = 'predictor: "answers.py:answer"\n'
    write("count = iter([1, 2, 1, 1])\ndef answer(case):\n    return {'a': next(count)}\n", "answers.py")

    report = report_of("  - {id: a, question: q, gold: {a: 1}, trials: 4}\n", f"kind: json\n{answers}")

    assert report["fields"] == {"$.a": {"n": 1, "mean": 0.75}}


def test_many_different_fields_are_bounded_and_what_is_left_out_is_said():
    many = "{" + ", ".join(f"k{number}: {number}" for number in range(5_000)) + "}"
    cases = [f"  - {{id: many, gold: {many}, predicted: {many}}}\n"]
    for number in range(30):
        gold = "{common: 1, " + ", ".join(f"id{number}x{place}: 1" for place in range(100)) + "}"
        cases.append(f"  - {{id: c{number}, gold: {gold}, predicted: {{}}}}\n")

    merged = merge(report_of("".join(cases)))

    fields = merged.report["fields"]
    assert (len(fields), next(iter(fields))) == (200, "$.common")
    assert len(merged.report["cases"][0]["field_scores"]) == 200
    assert merged.report["cases"][0]["fields_left_out"] == 4_800
    assert merged.report["fields_left_out"] == 30
    assert "30 cases have other fields, which are left out" in merged.lines
