from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from samples import entry

from pytest_queryeval.errors import Location
from pytest_queryeval.gates import gate_json, judge
from pytest_queryeval.model import Gate


def gate(metric="f1", *, folder="music", minimum=None, maximum=None, whole=True, **where):
    made = Gate(
        metric=metric,
        where=where,
        minimum=minimum,
        maximum=maximum,
        folder=Path("/suite/music"),
        location=Location(Path("/suite/music/queryeval.yaml"), 2),
    )
    return gate_json(made, folder, whole=whole)


def verdict(given_gate, *cases, broken=(), **run):
    return judge(given_gate, cases, broken=broken, **({"selected": False} | run))


def scored(*values, **changes):
    return [entry(scores={"f1": value}, **changes) for value in values]


def test_a_gate_is_the_mean_of_the_scores_that_there_are():
    found = verdict(gate(minimum=0.5), *scored(1.0, 0.5, None))

    assert (found["value"], found["n"], found["ok"]) == (0.75, 2, True)


@pytest.mark.parametrize(
    ("limits", "ok"),
    [
        ({"minimum": 0.3}, True),
        ({"minimum": 0.31}, False),
        ({"maximum": 0.3}, True),
        ({"maximum": 0.29}, False),
        ({"minimum": 0.2, "maximum": 0.4}, True),
        ({}, True),
    ],
)
def test_a_gate_admits_what_lies_within_its_limits(limits, ok):
    assert verdict(gate(**limits), *scored(0.1, 0.1, 0.7))["ok"] is ok  # a mean of 0.3, but for rounding


def test_the_verdict_keeps_what_the_gate_asked_for():
    found = verdict(gate(minimum=0.85, maximum=1.0, difficulty="hard"), *scored(1.0, difficulty="hard"))

    assert {key: found[key] for key in ("folder", "metric", "where", "min", "max")} == {
        "folder": "music",
        "metric": "f1",
        "where": {"difficulty": "hard"},
        "min": 0.85,
        "max": 1.0,
    }


def test_pass_rate_counts_errors_against_and_leaves_out_what_was_not_judged():
    outcomes = ("passed", "passed", "failed", "missed", "error", "skipped", "xfailed", "xpassed")

    found = verdict(gate("pass_rate", minimum=0.4), *(entry(outcome=outcome) for outcome in outcomes))

    assert (found["value"], found["n"], found["ok"]) == (0.4, 5, True)


@given(st.lists(st.sampled_from(["passed", "failed", "missed", "error"]), min_size=1))
def test_pass_rate_is_the_share_of_passed_cases(outcomes):
    found = verdict(gate("pass_rate", minimum=0.0), *(entry(outcome=outcome) for outcome in outcomes))

    assert found["value"] == outcomes.count("passed") / len(outcomes)


@pytest.mark.parametrize(
    ("folder", "path", "counts"),
    [
        ("", "music/s.queryeval.yaml", True),
        (".", "music/s.queryeval.yaml", True),
        ("music", "music/deep/s.queryeval.yaml", True),
        ("music", "musicals/s.queryeval.yaml", False),
        ("music/deep", "music/s.queryeval.yaml", False),
        (".", "/elsewhere/s.queryeval.yaml", False),
        ("/elsewhere", "/elsewhere/s.queryeval.yaml", True),
        ("..", "music/s.queryeval.yaml", True),
        ("..", "../music/s.queryeval.yaml", True),
        ("..", "../../music/s.queryeval.yaml", False),
        ("../..", "../music/s.queryeval.yaml", True),
        ("../q", "../q/s.queryeval.yaml", True),
        ("../q", "music/s.queryeval.yaml", False),
        (".", "../music/s.queryeval.yaml", False),
        ("..", "/elsewhere/s.queryeval.yaml", False),
    ],
)
def test_a_gate_judges_the_cases_below_its_folder(folder, path, counts):
    found = verdict(gate(folder=folder, minimum=0.0), *scored(1.0, path=path))

    assert found["n"] == int(counts)


def test_where_narrows_the_cases_by_every_group_it_names():
    cases = [
        *scored(1.0, tags=["nightly", "x"], difficulty="hard"),
        *scored(0.5, tags=["nightly"], difficulty="easy"),
        *scored(0.0, tags=[], difficulty="hard"),
    ]

    assert verdict(gate(minimum=0.0, tag="nightly"), *cases)["value"] == 0.75
    assert verdict(gate(minimum=0.0, tag="nightly", difficulty="hard"), *cases)["value"] == 1.0
    assert verdict(gate(minimum=0.0, kind="sparql"), *cases)["n"] == 0


def test_a_gate_without_evaluated_cases_is_missed():
    found = verdict(gate(minimum=0.5))

    assert (found["ok"], found["value"], found["n"]) == (False, None, 0)
    assert found["reason"] == "no case was evaluated"


def test_a_gate_is_not_judged_where_a_selection_removed_its_cases():
    assert verdict(gate(minimum=0.5), selected=True)["ok"] is None


def test_a_gate_is_not_judged_where_only_a_part_of_its_folder_was_asked_for_and_no_case_fits():
    assert verdict(gate(minimum=0.5, whole=False))["ok"] is None


def test_a_gate_on_a_part_of_its_folder_is_judged_on_the_cases_there_are():
    assert verdict(gate(minimum=0.5, whole=False), *scored(0.0))["ok"] is False


def test_a_gate_is_not_judged_where_the_run_was_stopped():
    found = verdict(gate(minimum=0.5), *scored(0.0), stopped=True)

    assert (found["ok"], found["value"]) == (None, 0.0)
    assert found["reason"] == "the run was stopped"


def test_a_gate_is_missed_where_selected_cases_ran_without_any_score():
    assert verdict(gate(minimum=0.5), entry(outcome="error"), selected=True)["ok"] is False


@pytest.mark.parametrize("selected", [True, False])
def test_a_file_that_could_not_be_read_misses_the_gates_above_it(selected):
    cases = scored(1.0)

    below = verdict(gate(minimum=0.5), *cases, broken=["music/bad.queryeval.yaml"], selected=selected)
    beside = verdict(gate(minimum=0.5), *cases, broken=["sports/bad.queryeval.yaml"], selected=selected)

    assert (below["ok"], below["reason"]) == (False, "music/bad.queryeval.yaml could not be read")
    assert beside["ok"] is True


@pytest.mark.parametrize("part", [{"selected": True}, {"whole": False}])
def test_a_gate_of_a_part_without_its_metric_is_not_judged(part):
    asked, selected = gate(minimum=0.5, whole=part.get("whole", True)), part.get("selected", False)
    other = entry(scores={"json_equal": 1.0})

    found = verdict(asked, other, selected=selected)

    assert (found["ok"], found["reason"]) == (None, f"no case has a score of {asked['metric']}")
    assert verdict(asked, other, entry(scores={asked["metric"]: None}), selected=selected)["ok"] is False


def test_a_gate_of_a_whole_folder_without_its_metric_is_missed_and_says_so():
    found = verdict(gate(minimum=0.5), entry(scores={"json_equal": 1.0}))

    assert (found["ok"], found["reason"]) == (False, f"no case has a score of {found['metric']}")
