"""The option and the setting that challenge right answers."""

from __future__ import annotations

import pytest
from singers import case

pytestmark = pytest.mark.feature("challenge")

PAIR = {
    "gold": "SELECT name FROM singer WHERE age > 30",
    "predicted": "SELECT name FROM singer WHERE age > 30 AND name <> 'Di'",
}


@pytest.mark.feature("strength")
def test_the_option_challenges_and_a_replay_has_what_was_recorded(suite, pytester, run_and_parse, monkeypatch):
    suite(
        case("a", **PAIR),
        case("b"),
        {"id": "texts", **PAIR, "metrics": ["exact_set_match"], "thresholds": {"exact_set_match": 0}},
    )

    recorded = run_and_parse("--queryeval-challenge", "--queryeval-record=rec")
    monkeypatch.setenv("XDG_CACHE_HOME", str(pytester.path / "cache"))
    replayed = run_and_parse("--queryeval-challenge", "--queryeval-replay=rec")

    assert recorded.case("a")["challenge"]["verdict"] == "refuted"
    assert recorded.case("b")["challenge"]["verdict"] == "same"
    assert recorded.outcomes == {"a": "passed", "b": "passed", "texts": "passed"}
    assert [replayed.case(name)["challenge"] for name in "ab"] == [recorded.case(name)["challenge"] for name in "ab"]
    assert "of 2 passes 1 is gold's query, 1 refuted" in recorded.text
    assert not (pytester.path / "cache").exists()


def test_without_the_option_nothing_is_challenged_and_such_a_recording_has_no_challenge(suite, run_and_parse):
    suite(case("a", **PAIR))

    unasked = run_and_parse("--queryeval-record=rec")
    replayed = run_and_parse("--queryeval-challenge", "--queryeval-replay=rec").case("a")

    assert "challenge" not in unasked.case("a")
    assert "challenged_accuracy" not in unasked.report["metrics"]
    assert (replayed["challenge"]["verdict"], replayed["outcome"]) == ("unchallenged", "passed")
    assert "no recorded challenge of" in replayed["challenge"]["reason"]


@pytest.mark.feature("strength")
def test_the_setting_challenges_and_a_threshold_fails_with_the_counterexample(suite, pytester, run_and_parse):
    suite(case("a", **PAIR), thresholds={"challenged_accuracy": 1})
    pytester.makeini("[pytest]\nqueryeval_challenge = true")

    run = run_and_parse()

    assert run.outcomes == {"a": "failed"}
    run.result.stdout.fnmatch_lines(
        ["*challenged_accuracy 0.000 (needs at least 1)", "  challenge  refuted: the answers differ on a database of *"]
    )
