"""Intervals of means of cases that share sources."""

import random
from collections import Counter

import numpy as np
import pytest
from report_maker import make_report
from samples import HEAD, entry
from scipy.special import stdtrit

from pytest_queryeval.features.ci.markdown import render_markdown
from pytest_queryeval.features.history.leaderboard import leaderboard
from pytest_queryeval.features.page.page import page
from pytest_queryeval.reports.sections import interval_note, pass_rate
from pytest_queryeval.reports.summary import summary_lines
from pytest_queryeval.results.aggregation import aggregate, clustered_interval, metric_statistics, t_freedom, t_quantile
from pytest_queryeval.text.formatting import format_interval


def interval_of(shared, alone=()):
    """The interval of scores of several sources, and of cases without one."""
    scores = [score for own in shared for score in own]
    sources = [f"db{number}" for number, own in enumerate(shared) for _ in own]
    return clustered_interval([*scores, *alone], [*sources, *(None for _ in alone)])


def drawn(seed):
    """Scores that `stderr` of inspect_ai was given as well: clusters of unequal sizes, some of one case."""
    chance = random.Random(seed)
    scores = []
    for number in range(chance.randint(5, 40)):
        level = chance.random()
        size = chance.choice((1, 1, 2, 5, 20, 90))
        scores += [(f"db{number}", float(chance.random() < level)) for _ in range(size)]
    return scores if seed % 2 else [(source, round(score * chance.random(), 3)) for source, score in scores]


# The values of `inspect_ai.scorer.stderr(cluster=…)`, version 0.3.285, for `drawn(seed)`.
OF_INSPECT_AI = {
    1: 0.06677239404756899,
    2: 0.006797486431287877,
    3: 0.10305588900483306,
    4: 0.034472449443293536,
    5: 0.09722209680599546,
    6: 0.02130505901425973,
    7: 0.14379332869210842,
    8: 0.05096370202421239,
}


@pytest.mark.parametrize(("seed", "expected"), OF_INSPECT_AI.items())
def test_the_standard_error_is_that_of_inspect_ai(seed, expected):
    sources, scores = zip(*drawn(seed), strict=True)

    low, high = clustered_interval(scores, sources)

    freedom = t_freedom([*Counter(sources).values()])
    assert (high - low) / 2 / t_quantile(freedom) == pytest.approx(expected, rel=1e-12)


def test_the_standard_error_computed_by_hand():
    # Mean 0.6; the clusters deviate by 0.8, -1.2, -0.2, 0.8 and -0.2 in sum, their squares are 2.8 together.
    low, high = interval_of([[1, 1], [0, 0], [1, 0], [1, 1], [0, 1]])

    assert (high - low) / 2 / t_quantile(4) == pytest.approx((2.8 * 5 / 4) ** 0.5 / 10)


def test_the_interval_is_that_of_students_t_with_one_degree_less_than_there_are_clusters():
    low, high = interval_of([[1, 1], [0, 0], [1, 0], [1, 1], [0, 1]])

    assert (low + high) / 2 == pytest.approx(0.6)
    assert (high - low) / 2 == pytest.approx(2.776445 * (2.8 * 5 / 4) ** 0.5 / 10, rel=4e-4)


@pytest.mark.parametrize("freedom", [2, 3.5, 4, 5, 7, 10, 14.4, 19, 30, 100, 10_000])
def test_the_quantile_is_that_of_scipy(freedom):
    rel = 1e-2 if freedom < 4 else 4e-4 if freedom < 10 else 4e-6
    assert t_quantile(freedom) == pytest.approx(stdtrit(freedom, 0.975), rel=rel)


@pytest.mark.parametrize("sizes", [[4, 4, 4, 4, 4], [1, 2, 3, 40, 5], [120, 92, 84, 16, 15, 4, 1, 1], [1] * 9 + [300]])
def test_the_degrees_of_freedom_are_those_of_the_squared_error(sizes):
    sizes = np.array(sizes, dtype=float)
    deviations = np.diag(sizes) @ (np.eye(len(sizes)) - sizes / sizes.sum())  # of the means of clusters
    covariance = deviations @ deviations.T

    expected = np.trace(covariance) ** 2 / np.trace(covariance @ covariance)

    assert t_freedom(sizes.tolist()) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("shared", "alone"),
    [
        ([], []),
        ([], [1.0, 0.0, 1.0, 0.0, 1.0, 0.0]),
        ([[1.0, 0.0], [1.0, 1.0]] * 2, []),
        ([[1.0, 0.0], [1.0, 1.0]] * 2, [1.0, 0.0, 1.0]),
        ([[1.0], [0.0], [0.5]] * 2, []),
        ([[1.0], [0.0], [0.5]] * 2, [0.5]),
        ([[1.0, 1.0]] * 6, [1.0]),
        ([[0.1, 0.1, 0.1]] * 6, []),
        ([[1.0, 0.0]] * 6, []),
    ],
    ids=["nothing", "no source", "four", "four and others", "own", "own and another", "right", "same", "as good"],
)
def test_there_is_none_where_clusters_tell_nothing(shared, alone):
    assert interval_of(shared, alone) is None


def test_cases_without_a_source_are_clusters_of_their_own():
    shared, alone = [[1.0, 0.0], [1.0, 1.0], [0.5]] * 2, [0.0, 1.0, 0.5]

    assert interval_of(shared, alone) == interval_of([*shared, *([score] for score in alone)])


def cases_of(scores, metric="soft_f1"):
    return [entry(id=str(at), source=source, scores={metric: score}) for at, (source, score) in enumerate(scores)]


def test_alike_cases_of_a_source_widen_the_interval():
    scores = [(f"db{number}", float(number % 3 > 0)) for number in range(12) for _ in range(30)]

    statistics = metric_statistics(cases_of(scores))["soft_f1"]

    plain, clustered = statistics["ci95"], statistics["ci95_clustered"]
    assert clustered[0] < plain[0] < statistics["mean"] < plain[1] < clustered[1]
    assert (clustered[1] - clustered[0]) > 4 * (plain[1] - plain[0])


def test_the_interval_is_limited_as_the_plain_one_is():
    scores = [(source, float(source != "a" or at > 0)) for source in "abcdef" for at in range(2)]

    assert metric_statistics(cases_of(scores))["soft_f1"]["ci95_clustered"][1] == 1.0
    assert metric_statistics(cases_of(scores, "r_ves"))["r_ves"]["ci95_clustered"][1] > 1.0
    assert metric_statistics(cases_of([(a, 3 * b) for a, b in scores]))["soft_f1"]["ci95_clustered"][1] > 3


def test_scores_of_none_are_in_no_cluster():
    scores = [("a", None), *((source, float(at)) for source in "bcde" for at in range(2))]

    assert metric_statistics(cases_of(scores))["soft_f1"]["ci95_clustered"] is None


def test_groups_have_the_interval_of_their_own_clusters():
    scores = [(f"db{number % 6}", float(number % 6 > 1)) for number in range(60)]
    cases = [case | {"groups": case["groups"] | {"tag": ["t"] * (at < 30)}} for at, case in enumerate(cases_of(scores))]

    groups = aggregate(cases, gates=(), about=HEAD)["groups"]

    half = metric_statistics(cases[:30])["soft_f1"]["ci95_clustered"]
    assert groups["tag"]["t"]["metrics"]["soft_f1"]["ci95_clustered"] == half
    assert half is not None
    assert {statistics["metrics"]["soft_f1"]["ci95_clustered"] for statistics in groups["source"].values()} == {None}


def test_a_report_of_few_sources_has_none():
    assert {statistics["ci95_clustered"] for statistics in make_report(60)["metrics"].values()} == {None}


ALIKE = [(f"db{number}", float(number % 3 > 0)) for number in range(12) for _ in range(30)]


def test_reports_show_the_clustered_interval_and_say_so():
    report = aggregate(cases_of(ALIKE), gates=(), about=HEAD)
    statistics = report["metrics"]["soft_f1"]
    shown, plain = format_interval(statistics["ci95_clustered"]), format_interval(statistics["ci95"])
    note = "95 % intervals: clustered by 12 sources"

    for text in (
        "\n".join(line for line, _ in summary_lines(report, width=100)),
        render_markdown(report).decode(),
        page(report),
    ):
        assert shown in text
        assert plain not in text
        assert note in text


def test_reports_of_independent_cases_and_of_earlier_versions_show_the_plain_interval():
    independent = aggregate(cases_of((None, score) for _, score in ALIKE), gates=(), about=HEAD)
    earlier = aggregate(cases_of(ALIKE), gates=(), about=HEAD)
    del earlier["metrics"]["soft_f1"]["ci95_clustered"], earlier["groups"]["feature"]

    for report in (independent, earlier):
        lines = [line for line, _ in summary_lines(report, width=100)]
        assert any(format_interval(report["metrics"]["soft_f1"]["ci95"]) in line for line in lines)
        assert not any("clustered" in line for line in lines)
        assert "clustered by" not in page(report)


def test_the_note_says_of_how_many_metrics_the_intervals_are_clustered():
    cases = cases_of(ALIKE)
    cases[0]["scores"]["cell_f1"] = 0.5

    assert interval_note(aggregate(cases, gates=(), about=HEAD)) == (
        "95 % intervals: clustered by 12 sources for 1 of 2 metrics"
    )


def test_a_leaderboard_has_the_interval_of_clusters():
    report = aggregate(cases_of(ALIKE), gates=(), about=HEAD)

    best = leaderboard({"a": report, "b": report}, "soft_f1")["systems"][0]

    assert best["score"]["ci95"] == report["metrics"]["soft_f1"]["ci95_clustered"]


def test_the_interval_of_the_pass_rate_is_clustered_too():
    cases = [
        entry(id=f"{source} {at}", source=source, outcome="passed" if number % 3 else "failed")
        for number, source in enumerate("abcdefghij")
        for at in range(20)
    ]
    skipped = entry(id="skipped", source="a", outcome="skipped")
    report = aggregate([*cases, entry(id="alone", source=None, outcome="failed"), skipped], gates=(), about=HEAD)

    rate = pass_rate(report["totals"], report["groups"]["source"])

    scores = [(float(case["outcome"] == "passed"), case["source"]) for case in cases]
    assert rate["n"] == 201
    assert rate["mean"] == pytest.approx(120 / 201)
    assert rate["ci95_clustered"] == pytest.approx(clustered_interval(*zip(*scores, (0.0, None), strict=True)))
    low, high = (f"{100 * end:.1f}" for end in rate["ci95_clustered"])
    assert f"95 % interval {low} to {high}" in render_markdown(report).decode()
    assert f"{low} to {high}" in page(report)
