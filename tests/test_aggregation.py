import math
import random
import statistics as reference

import pytest
import report_maker
from hypothesis import given
from hypothesis import strategies as st
from samples import HEAD, entry

from pytest_queryeval.core.groups import group_values
from pytest_queryeval.results.aggregation import aggregate, metric_statistics, statistics, totals

OUTCOMES = ("passed", "failed", "missed", "error", "skipped", "xfailed", "xpassed", "not_run")
SCORES = st.lists(st.floats(0, 1) | st.floats(-100, 100), min_size=1, max_size=40)


def near(value):
    return pytest.approx(value, rel=1e-9, abs=1e-9)


def test_right_answers_that_depend_on_a_tie_are_counted():
    assert aggregate([entry(), entry(depends_on_tie=True)], gates=[], about=HEAD)["ties"] == 1


def test_precision_of_a_dimension_is_averaged_over_the_cases_that_selected_in_it():
    shares = [{"precision": 1.0, "recall": 0.5}, {"precision": None, "recall": 0.0}]
    cases = [entry(kind="sdmx", details={"dimensions": {"AREA": share}}) for share in shares]

    area = aggregate(cases, gates=[], about=HEAD)["dimensions"]["AREA"]

    assert {name: (share["mean"], share["n"]) for name, share in area.items()} == {
        "precision": (1.0, 1),
        "recall": (0.25, 2),
    }


@pytest.mark.parametrize(
    ("execution", "test_suite", "count"), [(1.0, 0.0, 1), (1.0, 0.5, 1), (1.0, 1.0, 0), (0.0, 0.0, 0), (1.0, None, 0)]
)
def test_right_answers_that_fail_on_a_variant_are_counted(execution, test_suite, count):
    case = entry(scores={"execution_accuracy": execution, "test_suite_accuracy": test_suite})

    assert aggregate([case, entry()], gates=[], about=HEAD)["accidental"] == count


def test_causes_are_counted_by_each_of_their_labels_in_the_run_and_in_each_group():
    def wrong(*labels, **changes):
        edits = [{"label": label, "clause": "", "change": ""} for label in labels]
        return entry(outcome="failed", cause={"edits": edits, "repaired_query": None}, **changes)

    cases = [
        wrong("wrong-value", difficulty="easy"),
        wrong("wrong-limit", "wrong-value", difficulty="hard"),
        wrong("wrong-limit", "wrong-limit", difficulty="hard"),
        entry(difficulty="easy"),
    ]

    report = aggregate(cases, gates=[], about=HEAD)

    assert [*report["causes"].items()] == [("wrong-limit", 2), ("wrong-value", 2)]
    assert {name: group["causes"] for name, group in report["groups"]["difficulty"].items()} == {
        "easy": {"wrong-value": 1},
        "hard": {"wrong-limit": 2, "wrong-value": 1},
    }


def test_the_mean_with_errors_counts_cases_in_error_that_request_the_metric():
    def error(*metrics):
        return entry(outcome="error", fingerprint={"metrics": list(metrics)})

    cases = [
        entry(scores={"valid_query": 1.0, "cell_f1": None}),
        entry(scores={"valid_query": 0.5, "cell_f1": 0.5}),
        error("valid_query", "cell_f1"),
        error("valid_query"),
        entry(outcome="skipped"),
        entry(outcome="error", fingerprint=None),
    ]

    statistics = metric_statistics(cases)

    assert (statistics["valid_query"]["mean_with_errors"], statistics["valid_query"]["n_with_errors"]) == (0.375, 4)
    assert (statistics["cell_f1"]["mean_with_errors"], statistics["cell_f1"]["n_with_errors"]) == (0.25, 2)
    assert (statistics["valid_query"]["mean"], statistics["valid_query"]["n"]) == (0.75, 2)


@pytest.mark.parametrize("name", ["prediction_seconds", "ves", "r_ves", "metadata[tokens]", "of_my_own"])
def test_costs_and_scores_without_bound_have_no_mean_with_errors(name):
    statistics = metric_statistics([entry(scores={name: 1.0}), entry(outcome="error", fingerprint={"metrics": [name]})])

    assert (statistics[name]["mean_with_errors"], statistics[name]["n_with_errors"]) == (None, None)


@given(SCORES)
def test_statistics_agree_with_the_standard_library(values):
    summary = statistics(values)

    assert summary["n"] == len(values)
    assert summary["mean"] == near(reference.fmean(values))
    assert summary["median"] == near(reference.median(values))
    assert (summary["min"], summary["max"]) == (min(values), max(values))
    assert summary["std"] == (near(reference.stdev(values)) if len(values) > 1 else None)


@given(SCORES, st.randoms(use_true_random=False))
def test_statistics_do_not_depend_on_the_order_of_scores(values, chance):
    shuffled = chance.sample(values, len(values))

    assert statistics(shuffled) == statistics(values)


# By hand: z = 1.96, z² = 3.84; centre (p + z²/2n) / (1 + z²/n), half z √(p(1-p)/n + z²/4n²) / (1 + z²/n).
@pytest.mark.parametrize(
    ("right", "wrong", "low", "high"),
    [
        (1, 0, 0.2065, 1.0),
        (0, 1, 0.0, 0.7935),
        (5, 5, 0.2366, 0.7634),
        (10, 0, 0.7225, 1.0),
        (8, 2, 0.4902, 0.9433),
        (90, 10, 0.8256, 0.9448),
    ],
)
def test_scores_of_0_and_1_have_wilsons_interval(right, wrong, low, high):
    interval = statistics([1.0] * right + [0.0] * wrong)["ci95"]

    assert interval == pytest.approx([low, high], abs=1e-4)


def test_other_scores_have_the_normal_interval_of_their_mean():
    interval = statistics([0.2, 0.4, 0.6, 0.8])["ci95"]  # mean 0.5, std 0.2582, / √4 = 0.1291

    assert interval == pytest.approx([0.5 - 1.96 * 0.1291, 0.5 + 1.96 * 0.1291], abs=1e-4)


def test_the_interval_of_scores_from_0_to_1_ends_there():
    low, high = statistics([0.99, 1.0, 0.5])["ci95"]

    assert 0.0 <= low < 0.83 < high == 1.0


def test_the_interval_of_scores_beyond_1_is_not_cut():
    assert statistics([0.5, 1.5])["ci95"][1] > 1.5


def test_the_interval_of_a_metric_that_may_exceed_1_goes_as_far_as_the_metric():
    cases = [entry(scores={"ves": value, "r_ves": value, "soft_f1": value}) for value in (0.2, 1.0, 0.9, 1.0)]

    statistics = metric_statistics(cases)

    assert statistics["soft_f1"]["ci95"][1] == 1.0
    assert statistics["r_ves"]["ci95"][1] == pytest.approx(math.sqrt(1.25))
    assert statistics["ves"]["ci95"][1] == pytest.approx(0.775 + 1.96 * 0.3862 / 2, abs=1e-3)


def test_the_interval_of_a_metric_that_is_not_known_ends_at_1():
    cases = [entry(scores={"of another time": value}) for value in (0.2, 1.0, 0.9, 1.0)]

    assert metric_statistics(cases)["of another time"]["ci95"][1] == 1.0


def test_one_score_between_0_and_1_has_neither_spread_nor_interval():
    summary = statistics([0.5])

    assert summary["std"] is None
    assert summary["ci95"] is None


@given(st.lists(st.sampled_from([0.0, 1.0]), min_size=1, max_size=60) | st.lists(st.floats(0, 1), min_size=2))
def test_the_interval_holds_the_mean_and_stays_between_0_and_1(values):
    summary = statistics(values)

    low, high = summary["ci95"]

    assert 0.0 <= low <= summary["mean"] + 1e-12
    assert summary["mean"] - 1e-12 <= high <= 1.0


@given(st.lists(st.sampled_from(OUTCOMES), max_size=40))
def test_every_case_is_counted_once_in_the_totals(outcomes):
    counts = totals([entry(outcome=outcome) for outcome in outcomes])

    assert counts["cases"] == sum(count for name, count in counts.items() if name != "cases") == len(outcomes)
    assert counts["errors"] == outcomes.count("error")
    assert all(counts[name] == outcomes.count(name) for name in OUTCOMES if name != "error")


def test_scores_of_none_are_left_out_and_a_metric_without_scores_is_not_reported():
    cases = [entry(scores={"f1": 1.0, "ves": None}), entry(scores={"f1": None}), entry(scores={"f1": 0.0})]

    statistics = metric_statistics(cases)

    assert list(statistics) == ["f1"]
    assert (statistics["f1"]["n"], statistics["f1"]["mean"]) == (2, 0.5)


def test_missed_thresholds_are_counted_by_metric():
    violations = [{"metric": "f1", "min": 1.0, "max": None, "value": 0.0}]
    cases = [entry(scores={"f1": 0.0, "em": 0.0}, violations=violations), entry(scores={"f1": 1.0, "em": 1.0})]

    statistics = metric_statistics(cases)

    assert (statistics["f1"]["missed"], statistics["em"]["missed"]) == (1, 0)


def test_cases_are_ordered_by_path_then_line_whatever_order_they_came_in():
    cases = [entry(path=path, line=line, id=f"{path}{line}") for path in "ab" for line in (2, 10, 30)]
    shuffled = random.Random(7).sample(cases, len(cases))

    report = aggregate(shuffled, gates=(), about=HEAD)

    assert [case["id"] for case in report["cases"]] == ["a2", "a10", "a30", "b2", "b10", "b30"]
    assert report == aggregate(cases, gates=(), about=HEAD)


def test_cases_of_one_line_are_ordered_by_id():
    report = aggregate([entry(id="t.2"), entry(id="t.1")], gates=(), about=HEAD)

    assert [case["id"] for case in report["cases"]] == ["t.1", "t.2"]


def test_groups_have_totals_and_metrics_of_their_own():
    cases = [
        entry(difficulty="hard", tags=["nightly", "joins"], scores={"f1": 0.0}, outcome="failed"),
        entry(difficulty="easy", tags=["joins"], features=["join", "order"], scores={"f1": 1.0}),
        entry(path="other.queryeval.yaml", source=None, scores={"f1": 0.5}),
    ]

    groups = aggregate(cases, gates=(), about=HEAD)["groups"]

    assert {name: list(members) for name, members in groups.items()} == {
        "kind": ["sql"],
        "difficulty": ["easy", "hard"],
        "tag": ["joins", "nightly"],
        "file": ["music/s.queryeval.yaml", "other.queryeval.yaml"],
        "source": ["concerts.db"],
        "feature": ["join", "order"],
        "review": [],
    }
    assert groups["tag"]["joins"]["totals"]["cases"] == 2
    assert groups["tag"]["joins"]["metrics"]["f1"]["mean"] == 0.5
    assert groups["difficulty"]["hard"]["totals"]["failed"] == 1


@pytest.mark.parametrize(
    ("group", "values"),
    [
        ("kind", ["sql"]),
        ("tag", ["x", "y"]),
        ("file", ["f"]),
        ("source", ["concerts.db"]),
        ("difficulty", []),
        ("feature", []),
    ],
)
def test_a_case_has_the_values_of_a_group(group, values):
    case = entry(tags=["x", "y"], path="f")

    assert list(group_values(case, group)) == values


def test_a_report_says_when_and_what_and_which_gates():
    gate = {"folder": "", "metric": "f1", "ok": True}

    report = aggregate([], gates=[gate], about=HEAD | {"created": "2024-01-01", "environment": {}})

    assert (report["schema"], report["created"], report["gates"]) == (2, "2024-01-01", [gate])
    assert report["totals"]["cases"] == 0
    assert report["metrics"] == {}


@pytest.mark.feature("json", "sdmx")
@pytest.mark.parametrize("size", [0, 1, 7, 60, 300])
def test_a_group_counts_what_a_report_of_its_cases_alone_counts(size):
    chance = random.Random(size)
    cases = [report_maker.make_case(number, chance) for number in range(size)]
    chance.shuffle(cases)

    report = aggregate(cases, gates=(), about=HEAD)

    for group, members in report["groups"].items():
        for value, member in members.items():
            group_report = aggregate(
                [case for case in cases if value in group_values(case, group)], gates=(), about=HEAD
            )
            for metric_statistics_ in group_report["metrics"].values():
                del metric_statistics_["better"]
            assert member == {name: group_report[name] for name in member}


def test_cases_are_counted_in_one_pass_over_whatever_yields_them():
    cases = [entry(id="b", scores={"f1": 0.5}), entry(id="a", scores={"f1": 1.0})]

    assert aggregate(iter(cases), gates=(), about=HEAD) == aggregate(cases, gates=(), about=HEAD)
