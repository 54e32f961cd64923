"""What a report counts for the run and its groups: totals, means and their intervals, times, costs, trials, causes."""

import math
import random
import statistics
from collections import Counter, defaultdict
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from report_parts import TOTALS, report_of
from samples import FINGERPRINT, entry
from scipy import stats

from pytest_queryeval import METRICS
from pytest_queryeval.core.groups import group_values

pytestmark = pytest.mark.feature("report_files")

LEVELS = ("easy", "simple", "medium", "moderate", "hard", "challenging", "extra")
OUTCOMES = ("passed", "failed", "missed", "error", "skipped", "xfailed", "xpassed", "not_run")
TOTAL_OF = dict(zip(OUTCOMES, TOTALS[1:], strict=True))
SHARES = ("valid_query", "soft_f1", "pass_at_k")  # of which an error counts as 0
MOST = {"ves": math.inf, "r_ves": math.sqrt(1.25)}  # what a score can be, where that is not 1
SPREAD = ("mean", "n", "std", "min", "median", "max")


# The reference: each figure by its definition, from the cases alone.


def spread(values):
    std = statistics.stdev(values) if len(values) > 1 else None
    numbers = math.fsum(values) / len(values), len(values), std, min(values), statistics.median(values), max(values)
    return dict(zip(SPREAD, numbers, strict=True))


def clipped(interval, values, most):
    if interval is None or min(values) < 0 or max(values) > most:
        return interval
    return [max(interval[0], 0.0), min(interval[1], most)]


def plain_interval(values):
    """Wilson's interval of scores of 0 and 1, the normal one of others; None for one of these."""
    if set(values) <= {0, 1}:
        return list(stats.binomtest(int(sum(values)), len(values)).proportion_ci(method="wilson"))
    if len(values) == 1:
        return None
    half = stats.norm.ppf(0.975) * statistics.stdev(values) / math.sqrt(len(values))
    return [statistics.fmean(values) - half, statistics.fmean(values) + half]


def clustered_error(values, sources):
    """The standard error of the mean with clusters (Miller 2024, appendix A), for a finite number of clusters."""
    sums = defaultdict(float)
    for place, (value, source) in enumerate(zip(values, sources, strict=True)):
        sums[source or place] += value - statistics.fmean(values)
    correction = len(sums) / (len(sums) - 1)
    return math.sqrt(correction * math.fsum(total**2 for total in sums.values())) / len(values)


def freedom(sources):
    """The degrees of freedom by Satterthwaite, of the squared sums of deviations of clusters of these sizes."""
    sizes = [*Counter(source or place for place, source in enumerate(sources)).values()]
    deviations = np.diag(sizes) @ (np.eye(len(sizes)) - np.array(sizes) / sum(sizes))
    covariance = deviations @ deviations.T
    return np.trace(covariance) ** 2 / np.trace(covariance @ covariance)


def clustered_interval(values, sources):
    """The interval with sources as clusters; None below five of them, and where they say nothing."""
    shared = [source for source in sources if source]
    if len({*shared}) < 5 or len({*shared}) == len(shared) or clustered_error(values, sources) < 1e-9:
        return None
    half = stats.t.ppf(0.975, freedom(sources)) * clustered_error(values, sources)
    return [statistics.fmean(values) - half, statistics.fmean(values) + half]


def of_metric(name, cases):
    scored = [case for case in cases if case["scores"].get(name) is not None]
    values = [case["scores"][name] for case in scored]
    errors = [case for case in cases if case["outcome"] == "error" and name in (case["fingerprint"] or FREE)["metrics"]]
    n = len(values) + len(errors) if name in SHARES else None
    most = MOST.get(name, 1.0)
    return spread(values) | {
        "ci95": clipped(plain_interval(values), values, most),
        "ci95_clustered": clipped(clustered_interval(values, [case["source"] for case in scored]), values, most),
        "mean_with_errors": n and sum(values) / n,
        "n_with_errors": n,
        "missed": sum(violation["metric"] == name for case in cases for violation in case["violations"]),
    }


def amounts(case):
    """The measures of a case: those of each trial, since each is a call."""
    for call in case["trials"] or [case]:
        if call["prediction"] is not None:
            numbers = {f"metadata[{name}]": value for name, value in call["prediction"]["metadata"].items()}
            numbers["prediction_seconds"] = call["prediction"]["seconds"] or None  # 0 of what was not asked for
            yield from numbers.items()
        if call["predicted"] is not None:
            yield "execution_seconds", call["predicted"]["seconds"] or None


def of_measures(cases):
    found = defaultdict(list)
    for name, value in (measure for case in cases for measure in amounts(case)):
        if type(value) in (int, float) and abs(value) < 1e15:
            found[name].append(value)
    return {
        name: spread(values) | {"sum": float(sum(map(Fraction, values))), "p95": np.percentile(values, 95)}
        for name, values in found.items()
    }


def labels(case):
    return {edit["label"] for edit in case["cause"]["edits"]} if case["cause"] else set()


def of_group(cases):
    names = {name for case in cases for name, score in case["scores"].items() if score is not None}
    outcomes = Counter(TOTAL_OF[case["outcome"]] for case in cases)
    return {
        "totals": {"cases": len(cases)} | {total: outcomes[total] for total in TOTALS[1:]},
        "metrics": {name: of_metric(name, cases) for name in names},
        "measures": of_measures(cases),
        "causes": dict(Counter(label for case in cases for label in labels(case))),
    }


def of_trials(cases):
    """The probability that one of k trials passes, and all: counted over all choices of k trials."""
    verdicts = [[trial["passed"] for trial in case["trials"]] for case in cases]
    verdicts = [passed for passed in verdicts if passed and None not in passed]

    def means(rule):
        shares = [
            [statistics.fmean(rule(chosen) for chosen in combinations(passed, k)) for passed in verdicts]
            for k in range(1, min(map(len, verdicts)) + 1)
        ]
        return [statistics.fmean(own) for own in shares]

    return {"cases": len(verdicts), "pass_at": means(any), "pass_hat": means(all)} if verdicts else None


def of_dimensions(cases):
    """The means of the dimensions of SDMX selections, and over how many cases these are."""
    shares = defaultdict(list)
    for dimensions in (case["details"]["dimensions"] for case in cases if case["kind"] == "sdmx"):
        for place, value in flat(dimensions).items():
            shares[place] += [] if value is None else [value]
    numbers = {place[1:]: mean_of(own) for place, own in shares.items() if own}
    return {f"{place}/{name}": value for place, own in numbers.items() for name, value in own.items()}


def mean_of(values):
    return {"mean": math.fsum(values) / len(values), "n": len(values)}


def means(dimensions):
    """What `of_dimensions` has, of a report."""
    return {place.lstrip("/"): value for place, value in flat(dimensions).items() if place.endswith(("/mean", "/n"))}


def flat(value, place=""):
    """The numbers and texts of a value by their places."""
    if not isinstance(value, dict | list):
        return {place: value}
    items = value.items() if isinstance(value, dict) else enumerate(value)
    return {where: item for key, inner in items for where, item in flat(inner, f"{place}/{key}").items()}


def differences(actual, expected):
    """Where two values differ by more than rounding."""
    actual, expected = flat(actual), flat(expected)
    pairs = {place: (actual.get(place, "none"), expected.get(place, "none")) for place in actual | expected}
    return {place: pair for place, pair in pairs.items() if not are_near(*pair, tolerance(place, expected))}


def tolerance(place, numbers):
    """How far a number may be off: the quantile of Student's t, and so the width of an interval, is rough."""
    ends = [numbers.get(place[:-1] + end) or 0.0 for end in "01"] if "clustered/" in place else []
    return 0.2 * max(map(abs, ends), default=0.0)


def are_near(actual, expected, tolerated):
    if type(actual) is not float or type(expected) is str or expected is None:
        return actual == expected
    return math.isclose(actual, expected, rel_tol=1e-9, abs_tol=max(tolerated, 1e-9))


# Random cases, with all that is counted.

FREE = {"metrics": []}
UNIT = st.sampled_from([0.0, 1.0]) | st.floats(0, 1)
ANY = UNIT | st.floats(-100, 100) | st.sampled_from([1e9, -1e-12])
SCORES = st.fixed_dictionaries(
    {},
    optional={"valid_query": UNIT | st.none(), "soft_f1": UNIT, "ves": st.floats(0, 3), "of_my_own": ANY | st.none()},
)
METADATA = st.dictionaries(
    st.sampled_from(["tokens", "cost", "model"]),
    st.sampled_from([7, 0.5, 0, -3, "x", None, True, 1e15, [1]]),
    max_size=2,
)
PREDICTION = st.fixed_dictionaries(
    {"source": st.just("p"), "seconds": st.sampled_from([0.0, 0.5, 3.0]), "metadata": METADATA}
)
EXECUTION = st.sampled_from([0.0, 0.25]).map(lambda seconds: PREDICTED | {"seconds": seconds})
PREDICTED = {"query": "q", "columns": None, "row_count": None, "sample": [], "error": None}
TRIAL = st.fixed_dictionaries(
    {
        "passed": st.sampled_from([True, True, False, None]),
        "scores": st.just({}),
        "violations": st.just([]),
        "predicted": EXECUTION,
        "prediction": PREDICTION,
    }
)
SOURCES = ("db1", "db2", "db3", "db4", "db5", "db6", None)
EDITS = st.lists(st.sampled_from(["wrong-value", "wrong-limit", "nesting"]), min_size=1, max_size=3)
VIOLATION = {"min": 1.0, "max": None, "value": 0.5}
DIMENSIONS = st.dictionaries(
    st.sampled_from(["AREA", "TIME"]), st.fixed_dictionaries(dict.fromkeys(("precision", "recall"), UNIT | st.none()))
)


@st.composite
def cases(draw):
    case = entry(
        outcome=draw(st.sampled_from([*TOTAL_OF, "error", "passed"])),
        path=draw(st.sampled_from(["a.queryeval.yaml", "b/c.queryeval.yaml"])),
        line=draw(st.integers(1, 3)),
        row=draw(st.integers(1, 2)),
        kind=draw(st.sampled_from(["sql", "sdmx"])),
        source=draw(st.sampled_from(SOURCES)),
        difficulty=draw(st.sampled_from([*LEVELS, "by hand", None])),
        tags=draw(st.sampled_from([[], ["x"], ["y", "x"]])),
        scores=draw(SCORES),
        violations=[VIOLATION | {"metric": name} for name in draw(st.lists(st.sampled_from(["soft_f1", "ves"])))],
        depends_on_tie=draw(st.booleans()),
        trials=draw(st.lists(TRIAL, max_size=4)),
        fingerprint=draw(st.none() | st.just(FINGERPRINT | {"metrics": ["valid_query", "ves"]})),
        prediction=draw(st.none() | PREDICTION),
        predicted=draw(st.none() | EXECUTION),
    )
    if draw(st.booleans()):
        edits = [{"label": label, "clause": "", "change": ""} for label in draw(EDITS)]
        case["cause"] = {"edits": edits, "repaired_query": None}
    if case["kind"] == "sdmx":
        case["details"] = {"dimensions": draw(DIMENSIONS)}
    return case


CLUSTERS = {"db1": [0.0], "db2": [0.0], "db4": [0.0, 0.0, 0.0, 1.0], "db5": [0.16, 1.0], "db6": [1.0, 0.12, 0.0312]}
NEXT_TO_0 = [entry(source=db, scores={"soft_f1": value}) for db, values in CLUSTERS.items() for value in values]


@given(st.lists(cases(), max_size=14))
@example([entry(tags=["y", "x"])])
@example(NEXT_TO_0)  # the lower end of its interval is 0.002, half of its width is 0.3
def test_the_report_counts_what_its_cases_say(drawn):
    report = report_of(*drawn)
    listed = report["cases"]

    whole = {name: report[name] for name in ("totals", "metrics", "measures", "causes")}
    better = {name: METRICS[name].better if name in METRICS else "higher" for name in whole["metrics"]}
    assert {name: metric.pop("better") for name, metric in whole["metrics"].items()} == better
    assert differences(whole, of_group(listed)) == {}
    for group, members in report["groups"].items():
        values = {value for case in listed for value in group_values(case, group)}
        order = [*LEVELS, "by hand"].index if group == "difficulty" else None
        assert list(members) == sorted(values, key=order)
        for value, member in members.items():
            assert differences(member, of_group([case for case in listed if value in group_values(case, group)])) == {}
    assert report["ties"] == sum(case["depends_on_tie"] for case in listed)
    assert differences(report.get("trials"), of_trials(listed)) == {}
    assert differences(means(report.get("dimensions", {})), of_dimensions(listed)) == {}


@given(st.lists(cases(), max_size=8), st.randoms(use_true_random=False))
def test_the_order_in_which_cases_ended_changes_nothing(drawn, chance):
    named = [case | {"id": f"c{number}", "nodeid": f"s::{number}"} for number, case in enumerate(drawn)]

    report = report_of(*named)

    places = [(case["path"], case["line"], case["row"], case["id"]) for case in report["cases"]]
    assert places == sorted(places)
    assert report_of(*chance.sample(named, len(named))) == report


def metric_of(*own_cases, metric="soft_f1"):
    return report_of(*own_cases)["metrics"][metric]


def inspected(seed):
    """Scores that `stderr` of inspect_ai was given as well: clusters of unequal sizes, some of one case."""
    chance = random.Random(seed)
    pairs = []
    for number in range(chance.randint(5, 40)):
        level = chance.random()
        size = chance.choice((1, 1, 2, 5, 20, 90))
        pairs += [(f"db{number}", float(chance.random() < level)) for _ in range(size)]
    return pairs if seed % 2 else [(source, round(score * chance.random(), 3)) for source, score in pairs]


# The values of `inspect_ai.scorer.stderr(cluster=…)`, version 0.3.285, for `inspected(seed)`.
@pytest.mark.parametrize(
    ("seed", "error"),
    [(1, 0.06677239404756899), (2, 0.006797486431287877), (3, 0.10305588900483306), (4, 0.034472449443293536)],
)
def test_the_clustered_interval_has_the_standard_error_of_inspect_ai(seed, error):
    sources, values = zip(*inspected(seed), strict=True)
    shared = [entry(source=source, scores={"of_my_own": 3 * value}) for source, value in inspected(seed)]

    low, high = metric_of(*shared, metric="of_my_own")["ci95_clustered"]

    assert clustered_error(values, sources) == pytest.approx(error, rel=1e-9)
    half = 3 * error * stats.t.ppf(0.975, freedom(sources))
    assert (high - low) / 2 == pytest.approx(half, rel=roughness(sources))


def roughness(sources):
    """How far the quantile of Student's t may be off, by its expansion in powers of one over the degrees of freedom."""
    return 0.4 / freedom(sources) ** 5


@given(st.lists(st.tuples(st.sampled_from([*SOURCES, "db1"]), UNIT), min_size=5, max_size=30))
@example([(source, score) for source in SOURCES[:5] for score in (0.0, 1.0)])  # all means are the same
def test_cases_of_one_source_are_a_cluster_and_those_without_one_each_their_own(pairs):
    sources, values = zip(*pairs, strict=True)
    shared = [entry(source=source, scores={"of_my_own": 3 * value - 1}) for source, value in pairs]

    interval = metric_of(*shared, metric="of_my_own")["ci95_clustered"]

    expected = clustered_interval([3 * value - 1 for value in values], sources)
    assert (interval is None) is (expected is None)
    if interval is not None:
        half = (expected[1] - expected[0]) / 2
        assert interval == pytest.approx(expected, abs=half * roughness(sources))


def test_every_right_answer_that_is_wrong_on_a_variant_is_accidental():
    pairs = [(1.0, 0.0), (1.0, 0.5), (1.0, 1.0), (0.0, 0.0), (1.0, None)]
    own_cases = [entry(scores={"execution_accuracy": one, "test_suite_accuracy": two}) for one, two in pairs]

    assert report_of(*own_cases, entry())["accidental"] == 2


def test_causes_are_in_the_order_of_their_numbers():
    edits = [[{"label": label, "clause": "", "change": ""}] for label in ("b", "nesting", "wrong-value", "wrong-value")]
    own_cases = [entry(cause={"edits": own, "repaired_query": None}) for own in edits[1:]]

    assert [*report_of(*own_cases)["causes"]] == ["wrong-value", "nesting"]


def test_a_system_that_makes_up_names_makes_no_report_endless():
    prediction = {"source": "p", "seconds": 0.0, "metadata": {f"x{number}": 1.0 for number in range(400)}}

    assert len(report_of(entry(prediction=prediction))["measures"]) == 200


def test_decided_trials_and_recorded_answers_are_counted():
    call = {"predicted": PREDICTED | {"seconds": 1.0}, "passed": True, "scores": {}, "violations": []}
    said = {"source": "p", "seconds": 1.0, "metadata": {}}
    trials = [call | {"prediction": said}, call | {"prediction": said | {"recorded": True}}]
    stopping = FINGERPRINT | {"trials": {"max": 5, "stop": "decided"}}

    report = report_of(entry(trials=trials, fingerprint=stopping, reruns=1), entry(prediction=said))

    assert report["decided_trials"] == {"after": 2, "of": 5}
    assert report["recorded"] == {"answers": 1, "of": 3}
    assert (report["rerun_cases"], "trials" in report) == (1, False)


def test_decisions_on_golds_are_reported_with_the_means_before_them():
    def reviewed(decision, before, after):
        review = {"decision": decision, "reviewers": ["a"], "notes": []}
        unreviewed = {"outcome": "passed" if before else "failed", "scores": {"f1": before}}
        outcome = "passed" if after else "failed"
        return entry(outcome=outcome, scores={"f1": after}, review=review, unreviewed=unreviewed)

    unsure = {"review": {"decision": "unsure", "reviewers": [], "notes": []}}
    own_cases = reviewed("wrong", 0.0, 1.0), entry(scores={"f1": 0.5}, outcome="failed", **unsure)

    assert report_of(*own_cases)["errata"] == {
        "cases": 1,
        "by_decision": {"wrong": 1},
        "unreviewed": {"f1": 0.25, "pass_rate": 0.0},
        "reviewed": {"f1": 0.75, "pass_rate": 0.5},
    }
    assert "errata" not in report_of(own_cases[1])
