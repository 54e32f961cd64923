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
    assert "of 2 passes 1 is the gold query, 1 refuted" in recorded.text
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


GATE = "gates: [{metric: challenged_accuracy, min: 0.5}]"


@pytest.mark.feature("strength")
@pytest.mark.parametrize("option", [[], ["--queryeval-challenge"]], ids=["the metric", "the option"])
def test_a_replay_without_a_challenge_that_is_required_is_an_error_of_the_case(option, suite, write, run_and_parse):
    golds = {"gold_any": [PAIR["gold"], PAIR["predicted"]]}
    cases = (case("a", **PAIR), {"id": "b", **golds, "predicted": PAIR["predicted"], "difficulty": "top"})
    suite(*cases)
    run_and_parse("--queryeval-record=rec")
    metrics = ["execution_accuracy", *([] if option else ["challenged_accuracy"])]
    for thresholds, gates, outcome in (
        ({}, "", "passed"),
        ({"challenged_accuracy": 1}, "", "error"),
        ({}, GATE, "error"),
        ({}, GATE.replace("0.5", "0.5, where: {difficulty: top}"), "passed"),
    ):
        suite(*cases, metrics=metrics, thresholds={"execution_accuracy": 1, **thresholds})
        write("queryeval.yaml", gates)

        replayed = run_and_parse(*option, "--queryeval-replay=rec")

        assert replayed.outcomes == {"a": outcome, "b": "passed"}  # b has the words of a gold
        said = replayed.text if outcome == "error" else str(replayed.case("a")["challenge"])
        assert "no recorded challenge of" in said


def test_the_verdict_says_how_many_passes_were_not_challenged_though_it_depends_on_them(suite, run_and_parse):
    random = {"gold": "SELECT name FROM singer WHERE random() <> 1", "predicted": "SELECT name FROM singer"}
    suite(case("a", **random), case("b"), thresholds={"challenged_accuracy": 1})

    run = run_and_parse("-q")

    assert run.outcomes == {"a": "passed", "b": "passed"}
    assert "1 of 2 right answers not challenged" in run.text
