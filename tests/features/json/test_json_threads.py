"""Pairs of JSON answers after situations in public threads, with the verdict that their reporters want."""

import json
from pathlib import Path

import pytest
import yaml
from suites import case

from pytest_queryeval import evaluate

PAIRS = yaml.safe_load((Path(__file__).parent / "thread_pairs.yaml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: f"{pair[0]} {pair[1]}")
def test_the_verdict_of_a_situation_is_the_one_that_was_wanted(pair, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    _, _, gold, predicted, compare, verdict, *said = pair
    keys = {"gold": gold, "predicted": predicted, "compare": compare}

    (result,) = evaluate([case(*(f"{key}: {json.dumps(value)}" for key, value in keys.items()), head="kind: json\n")])[
        "cases"
    ]

    error, difference = result["predicted"]["error"], result["difference"]
    found = "invalid" if error else "right" if result["scores"]["json_equal"] == 1 else "wrong"
    assert found == verdict
    text = error["message"] if error else difference["summary"] if difference else ""
    assert all(part in text for part in said), text
