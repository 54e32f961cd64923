"""Published scores of stored tables and of recorded times, and verdicts that the default policy must give."""

import json
import math
import sqlite3

import pytest
from published_sparql import DEFECTS, SCORES, as_published, score, table
from published_tables import columns_collapse, differing, neither_has_values, nulls_as_in_pandas_3, workbook_scores
from samples import table as rows_table

from pytest_queryeval import METRICS, score_pairs
from pytest_queryeval.core.table import Policy, Table

CLOSE = 1e-9


def test_every_verdict_of_the_battery_is_right(records, tmp_path):
    sqlite3.connect(tmp_path / "empty.db").executescript("CREATE TABLE t (x); DROP TABLE t;").close()
    settings = {}
    for record in records("battery.jsonl"):
        settings.setdefault(json.dumps(record.get("compare", {})), []).append(record)

    wrong = []
    for compare, battery in settings.items():
        pairs = [(record["gold"], record["predicted"]) for record in battery]
        scores = score_pairs(pairs, tmp_path / "empty.db", ["execution_accuracy"], compare=json.loads(compare))
        for record, of in zip(battery, scores, strict=True):
            if of.scores["execution_accuracy"] != (record["expect"] == "equal"):
                wrong.append((record["name"], of))
    assert wrong == []


def without_names(rows):
    """A table of rows alone, as wide as its first row."""
    width = len(rows[0]) if rows else 0
    return Table(columns=tuple(f"c{number}" for number in range(width)), rows=[tuple(row) for row in rows])


def with_names(side):
    return Table(columns=tuple(side["columns"]), rows=[tuple(row) for row in side["rows"]])


def test_soft_f1_and_its_relatives_on_every_pair_of_tables(records):
    unexplained = []
    for record in records("result_tables.jsonl"):
        gold, predicted = without_names(record["gold"]), without_names(record["pred"])
        for name, expected in ({"soft_f1_bird": record["bird_soft_f1"]} | workbook_scores(record["denodo"])).items():
            if differing(name, gold, predicted, expected) and not neither_has_values(name, gold, predicted):
                unexplained.append((record["id"], name, expected))

    assert unexplained == []


def test_the_workbook_s_scores_on_every_pair_of_tables_with_names(records):
    unexplained, named = set(), set()
    for record in records("denodo.jsonl"):
        gold, predicted = with_names(record["gold"]), with_names(record["pred"])
        renamed = {"f1": record["bird_f1"], "set_precision": record["subsetting_percentage"]}
        for name, expected in workbook_scores(record | renamed).items():
            if differing(name, gold, predicted, expected):
                strikes = neither_has_values(name, gold, predicted) or columns_collapse(gold, predicted)
                strikes = strikes or nulls_as_in_pandas_3(name, gold, predicted)
                (named if strikes else unexplained).add((record["id"], name))

    assert unexplained == set()
    assert len(named) <= 16


def test_buildingqa_s_scores_but_for_named_defects(records):
    unexplained, explained = [], set()
    for record in records("tables.jsonl"):
        gold, predicted = table(record["gold"]), table(record["pred"])
        for name in SCORES:
            ours, expected = score(name, gold, predicted), record["scores"][name]
            if ours == pytest.approx(expected, abs=CLOSE):
                continue
            explained.add(record["id"])
            if not any(strikes(record["gold"], record["pred"], name) for strikes in DEFECTS.values()):
                unexplained.append((record["id"], record.get("note"), name, expected, ours))

    assert unexplained == []
    assert len(explained) <= 131


def test_buildingqa_s_scores_of_rows_exactly_on_tables_with_the_published_defects(records):
    for record in records("tables.jsonl"):
        gold, predicted = as_published(record["gold"]), as_published(record["pred"])
        if gold.columns and predicted.columns:
            for name in ("row_matching_f1", "exact_match_f1"):
                scores = METRICS[name].function(gold, predicted, policy=Policy())
                assert scores == pytest.approx(record["scores"][name], abs=CLOSE), (record["id"], name)


def test_rewards_on_recorded_times_but_for_equal_ratios(records):
    """D7: where all ratios are equal, the published code drops all of them and gives 0."""
    pairs = records("ves_times.jsonl")
    right, lost = rows_table((1,)), 0
    for record in pairs:
        times = list(zip(record["gold_times"], record["pred_times"], strict=True))
        predicted = right if record["correct"] else rows_table((2,))
        ours = METRICS["r_ves_bird"].function(right, predicted, timer=lambda _, times=times: times)
        ratios = [gold / predicted for gold, predicted in times]
        expected = record["reward"]
        if record["correct"] and not expected:
            assert all(math.isclose(ratio, ratios[0], rel_tol=1e-9) for ratio in ratios), record["id"]
            lost += 1
            rewards = ((2.0, 1.25), (1.0, 1.0), (0.5, 0.75), (0.25, 0.5), (0.0, 0.25))
            expected = next(reward for least, reward in rewards if ratios[0] >= least)
        assert ours == pytest.approx(math.sqrt(expected), abs=CLOSE), record["id"]

    assert lost
    assert {record["reward"] for record in pairs} >= {1.25, 1, 0.75, 0.5, 0.25}
