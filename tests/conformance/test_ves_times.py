"""The published rule for rewards on recorded times: `r_ves_bird` must give the same, but for its one defect."""

from __future__ import annotations

import math
from typing import Any

import pytest
from reference_records import Records
from samples import table

from pytest_queryeval.metrics.ves import mean_ratio, r_ves_bird, ratios_of, reward

RIGHT, WRONG = table((1,)), table((2,))
AS_PUBLISHED = 1e-9


def times_of(record: dict[str, Any]) -> list[tuple[float, float]]:
    return list(zip(record["gold_times"], record["pred_times"], strict=True))


def is_lost_by_equal_ratios(record: dict[str, Any]) -> bool:
    """D7: where all ratios are equal, the published code drops all of them and gives 0."""
    ratios = [gold / predicted for gold, predicted in times_of(record)]
    mean = sum(ratios) / len(ratios)
    return record["reward"] == 0 and all(math.isclose(ratio, mean, rel_tol=1e-12) for ratio in ratios)


def ours(record: dict[str, Any]) -> float:
    return r_ves_bird(RIGHT, RIGHT if record["correct"] else WRONG, timer=lambda _: times_of(record))


def test_published_rewards_come_out_on_every_record_but_for_equal_ratios(records: Records) -> None:
    pairs = records("ves_times.jsonl")

    differing = [
        record["id"]
        for record in pairs
        if ours(record) != pytest.approx(math.sqrt(record["reward"]), abs=AS_PUBLISHED)
        and not (record["correct"] and is_lost_by_equal_ratios(record))
    ]

    assert differing == []
    assert len(pairs) >= 100
    assert {record["reward"] for record in pairs} >= {1.25, 1, 0.75, 0.5, 0.25}


def test_equal_ratios_get_their_reward(records: Records) -> None:
    lost = [record for record in records("ves_times.jsonl") if record["correct"] and is_lost_by_equal_ratios(record)]

    assert lost
    for record in lost:
        ratio = record["gold_times"][0] / record["pred_times"][0]
        assert mean_ratio(ratios_of(times_of(record))) == pytest.approx(ratio)
        assert ours(record) == math.sqrt(reward(mean_ratio(ratios_of(times_of(record)))))
        assert ours(record) >= 0.5
