"""Real predictions on real databases: the published execution scores must come out, pair by pair."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from conftest import Records
from samples import make_case

from pytest_queryeval.core.model import Case, CaseResult, QueryOrAnswer, Source
from pytest_queryeval.evaluation.evaluation import evaluate_case
from pytest_queryeval.evaluation.session import Session
from pytest_queryeval.languages import KINDS

PUBLISHED = ("execution_accuracy_spider", "execution_accuracy_bird")


def case_of(record: dict[str, Any], conformance: Path) -> Case:
    folder = conformance / "spider" / "databases"
    name = f"{record['db_id']}.sqlite"
    return make_case(
        id=record["id"].replace(":", "-"),
        source=Source(name=name, engine="sqlite", settings={"path": name}, folder=folder),
        golds=(QueryOrAnswer(query=record["gold"]),),
        predicted=QueryOrAnswer(query=record["predicted"]),
        metrics=(*PUBLISHED, *KINDS["sql"].default_metrics),
        thresholds={},
        timeout=30.0,
        max_rows=100_000,
        report_rows=0,
        allow_empty=True,
    )


def results_of(pairs: list[dict[str, Any]], conformance: Path) -> list[CaseResult]:
    with Session() as session:
        return [evaluate_case(case_of(pair, conformance), session) for pair in pairs]


@pytest.mark.parametrize("name", ["dail_gpt4", "c3_chatgpt", "graphix_t5", "edge"])
def test_published_execution_scores_come_out_on_every_pair(name: str, records: Records, conformance: Path) -> None:
    pairs = [pair for pair in records(f"spider/{name}.jsonl") if pair["execution_accuracy_spider"] is not None]

    results = results_of(pairs, conformance)

    differing = [
        (pair["id"], metric, pair[metric], result.scores[metric], pair["predicted"])
        for pair, result in zip(pairs, results, strict=True)
        for metric in PUBLISHED
        if pair[metric] is not None and result.scores[metric] != pair[metric]
    ]
    assert differing == []
    assert len(results) >= 140


@pytest.mark.parametrize("name", ["dail_gpt4", "c3_chatgpt", "graphix_t5"])
def test_shape_and_validity_of_answers_come_out_on_every_pair(name: str, records: Records, conformance: Path) -> None:
    pairs = records(f"spider/{name}.jsonl")

    results = results_of(pairs, conformance)

    differing = []
    for pair, result in zip(pairs, results, strict=True):
        gold, predicted = result.gold.answer, result.predicted.answer
        assert gold is not None
        if pair["predicted_executes"] != (predicted is not None):
            differing.append((pair["id"], result.predicted.error))
            continue
        shape = len(gold.rows), len(gold.columns), *((len(predicted.rows), len(predicted.columns)) if predicted else ())
        known = (
            pair["gold_rows"],
            pair["gold_columns"],
            *((pair["predicted_rows"], pair["predicted_columns"]) if predicted else ()),
        )
        if shape != known:
            differing.append((pair["id"], known, shape))
    assert differing == []


@pytest.mark.parametrize("name", ["dail_gpt4", "graphix_t5"])
def test_gold_as_its_own_prediction_is_right_on_every_metric(name: str, records: Records, conformance: Path) -> None:
    pairs = [pair | {"predicted": pair["gold"]} for pair in records(f"spider/{name}.jsonl")]

    results = results_of(pairs, conformance)

    wrong = [
        (result.case.id, name)
        for pair, result in zip(pairs, results, strict=True)
        for name, score in result.scores.items()
        # `value` becomes 1 in predictions only, so a gold that holds it may differ from itself by the published rule
        if score != 1.0 and not (name == "execution_accuracy_spider" and "value" in pair["gold"])
    ]
    assert wrong == []
