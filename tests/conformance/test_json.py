"""The published scores of JSON answers: StrSS as it is, SemSS and the overall score from the recorded cosines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from reference_records import Records

from pytest_queryeval.core.json_value import JsonAnswer
from pytest_queryeval.core.metric import Score, Similarity
from pytest_queryeval.features.json.metrics import overall_similarity, semantic_similarity, structural_similarity

AS_PUBLISHED = 1e-9
BETAS = {"strss": 0.1, "strss_beta05": 0.5, "strss_beta1": 1.0}
ALPHAS = {"overall_minilm": 0.5, "overall_alpha08_minilm": 0.8}


def pairs_of(records: Records) -> list[dict[str, Any]]:
    """The records that the published code has scores for: it raises for answers that are not objects."""
    return [record for record in records("json_pairs.jsonl") if "error" not in record]


def answers(record: dict[str, Any]) -> tuple[JsonAnswer, JsonAnswer]:
    return JsonAnswer(record["ref"]), JsonAnswer(record["gen"])


def recorded(record: dict[str, Any]) -> Similarity:
    """Stands for the model: the cosines that the published code had for the values of this record."""
    cosines = {
        (str(record["ref"][key]), str(record["gen"][key])): cosine for key, cosine in record["semss_per_key"].items()
    }

    def similarity(model: str, pairs: Sequence[tuple[str, str]]) -> list[float]:
        assert len(pairs) == len(record["semss_per_key"])
        return [cosines[pair] for pair in pairs]

    return similarity


@pytest.mark.parametrize("name", BETAS)
def test_structural_similarity_is_as_published(records: Records, name: str) -> None:
    pairs = pairs_of(records)

    differing = [
        record["id"]
        for record in pairs
        if structural_similarity(*answers(record), beta=BETAS[name]) != pytest.approx(record[name], abs=AS_PUBLISHED)
    ]

    assert differing == []
    assert len(pairs) >= 300
    assert len({record[name] for record in pairs}) >= 10


def test_cosines_are_averaged_as_published(records: Records) -> None:
    pairs = pairs_of(records)

    differing = [
        record["id"]
        for record in pairs
        if semantic_similarity(*answers(record), similarity=recorded(record))
        != pytest.approx(record["semss_minilm"], abs=AS_PUBLISHED)
    ]

    assert differing == []
    assert any(len(record["semss_per_key"]) > 1 for record in pairs)
    assert any(not record["semss_per_key"] for record in pairs)


@pytest.mark.parametrize("name", ALPHAS)
def test_both_are_weighted_as_published(records: Records, name: str) -> None:
    differing = [
        record["id"]
        for record in pairs_of(records)
        if overall_similarity(*answers(record), similarity=recorded(record), alpha=ALPHAS[name])
        != pytest.approx(record[name], abs=AS_PUBLISHED)
    ]

    assert differing == []


def test_where_the_published_code_raises_gold_is_no_object_and_there_is_no_score(records: Records) -> None:
    raised = [record for record in records("json_pairs.jsonl") if "error" in record]

    scores = [structural_similarity(*answers(record)) for record in raised]

    assert [score.value if isinstance(score, Score) else score for score in scores] == [None] * len(raised)
    assert raised
    assert all("has no attribute 'keys'" in record["error"] for record in raised)
    assert len(raised) + len(pairs_of(records)) == 305
