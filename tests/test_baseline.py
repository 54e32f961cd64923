"""A run compared with an earlier one: flips, metrics and their tests, and what changed besides the system."""

import math
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from report_parts import ids, merge, part
from samples import FINGERPRINT, entry
from scipy import stats
from signed_differences import adjusted, p_value
from yaml_tables import read_tables

pytestmark = pytest.mark.feature("report_files")

FOLDER = Path(__file__).parent
CHANGES, GATE_CHANGES = read_tables("changes.yaml")
PATH = "music/s.queryeval.yaml"
MET, UNMET = ("passed", "xpassed"), ("failed", "missed", "xfailed")
OUTCOMES = (*MET, *UNMET, "error", "skipped")


def case(id_="a", value=1.0, **changes):
    scores = {} if value is None else {"f1": value}
    changes = {"scores": scores, "outcome": "passed" if value else "failed", "fingerprint": FINGERPRINT} | changes
    return entry(id=id_, **changes)


def compared(before, after, *, of_baseline=None, **about):
    """The comparison of two lists of cases."""
    return merge(part(*after, **about), baseline=part(*before, **of_baseline or {})).report["baseline"]


# Flips, counts and causes, against their definitions.

CASES = st.fixed_dictionaries(
    {},
    optional={
        name: st.tuples(
            st.sampled_from([*OUTCOMES, "not_run"]),
            st.sampled_from([None, 0.0, 0.3, 1.0]),
            st.sets(st.sampled_from(["wrong-value", "nesting"])),
        )
        for name in "abcdefgh"
    },
)


def drawn_case(name, outcome, value, labels):
    edits = [{"label": label, "clause": "", "change": ""} for label in sorted(labels)]
    predicted = {"query": f"SELECT '{name}'", "columns": None, "row_count": None, "sample": [], "seconds": 0.0}
    return case(
        name,
        value,
        outcome=outcome,
        cause={"edits": edits, "repaired_query": None} if edits else None,
        predicted=predicted | {"error": None},
    )


@given(CASES, CASES)
@example({"a": ("not_run", None, set())}, {"a": ("not_run", None, set())})
def test_a_comparison_is_that_of_its_definition(before, after):
    old = {name: drawn_case(name, *fields) for name, fields in before.items()}
    new = {name: drawn_case(name, *fields) for name, fields in after.items()}

    found = compared(old.values(), new.values())

    outcomes = {name: (before[name][0], after[name][0]) for name in before if name in after}
    common = {name: pair for name, pair in outcomes.items() if "not_run" not in pair}
    regressions = [name for name, (one, two) in common.items() if one in MET and two in UNMET]
    fixes = [name for name, (one, two) in common.items() if one in UNMET and two in MET]
    errors = [name for name, (one, two) in common.items() if two == "error" != one]
    assert (ids(found["regressions"]), ids(found["fixes"]), ids(found["errors"])) == tuple(
        map(sorted, (regressions, fixes, errors))
    )
    assert found["cases"] == {
        "before": len(before),
        "after": len(after),
        "common": len(common),
        "added": len(after.keys() - before.keys()),
        "removed": len(before.keys() - after.keys()),
        "not_run": sum(two == "not_run" != one for one, two in outcomes.values()),
        "skipped": sum(two == "skipped" != one for one, two in common.values()),
        "errors": len(errors),
        "unknown": 0,
    }
    assert {
        ids([nodeid])[0]: (earlier["outcome"], earlier["query"]) for nodeid, earlier in found["earlier"].items()
    } == {name: (before[name][0], f"SELECT '{name}'") for name in regressions + fixes + errors}
    counts = [Counter(label for name in common for label in own[name][2]) for own in (before, after)]
    assert found["causes"] == {
        label: {"before": counts[0][label], "after": counts[1][label]} for label in counts[0] | counts[1]
    }
    rates = {**dict.fromkeys(MET[:1], 1.0), **dict.fromkeys(("failed", "missed", "error"), 0.0)}
    pairs = {
        "pass_rate": [(rates.get(one), rates.get(two)) for one, two in common.values()],
        "f1": [(before[name][1], after[name][1]) for name in common],
    }
    pairs = {name: [pair for pair in own if None not in pair] for name, own in pairs.items()}
    differences = {name: [two - one for one, two in own] for name, own in pairs.items() if own}
    p_values = {name: p_value(own) for name, own in differences.items()}
    holm = adjusted(p_values)
    assert found["metrics"].keys() == differences.keys()
    for name, metric in found["metrics"].items():
        means = [sum(own) / len(own) for own in (*zip(*pairs[name], strict=True), differences[name])]
        figures = [metric[key] for key in ("n", "before", "after", "change", "p", "p_holm")]
        assert figures == pytest.approx([len(pairs[name]), *means, p_values[name], holm[name]])
        assert metric["test"] == ("mcnemar" if {*sum(pairs[name], ())} <= {0.0, 1.0} else "sign_flip")


def test_earlier_predictions_come_with_their_errors_and_differences():
    difference = {"summary": "gold 4, predicted 2", "missing": [], "extra": [], "changed": [], "repeated": []}
    error = {"kind": "invalid", "message": "no such column: x"}
    predicted = {"query": "SELECT x", "columns": None, "row_count": None, "sample": [], "seconds": 0.0}
    before = case("a", 0.0, difference=difference), case("b", 0.0, predicted=predicted | {"error": error})

    found = compared(before, [case("a"), case("b")])["earlier"]

    assert list(found.values()) == [
        {"outcome": "failed", "query": None, "error": None, "summary": "gold 4, predicted 2"},
        {"outcome": "failed", "query": "SELECT x", "error": error, "summary": ""},
    ]


def test_earlier_predictions_are_bounded_and_without_secrets(monkeypatch):
    monkeypatch.setenv("MODEL_API_KEY", "singers-in-Bergen-2025")
    query = f"SELECT 'singers-in-Bergen-2025', '\udc80', '{'x' * 4_000}'"
    predicted = {"query": query, "columns": None, "row_count": None, "sample": [], "seconds": 0.0, "error": None}
    old = [case(f"c{number:03}", predicted=predicted) for number in range(510)]

    found = compared(old, [case(f"c{number:03}", 0.0) for number in range(510)])["earlier"]

    assert ids(found) == [f"c{number:03}" for number in range(500)]
    (text,) = {earlier["query"] for earlier in found.values()}
    assert len(text) == 4_000
    assert "singers-in-Bergen" not in text


# Statistics of pairs


def sides_of(pairs):
    """Cases with the scores of several metrics, before and after; each metric has a list for each side."""
    for side in zip(*pairs.values(), strict=True):
        scores = [dict(zip(pairs, own, strict=True)) for own in zip(*side, strict=True)]
        yield [case(str(number), scores=own) for number, own in enumerate(scores)]


def statistics_of(**pairs):
    return compared(*sides_of(pairs))["metrics"]


def flips(broken, fixed, same):
    """Scores of 0 and 1 before and after."""
    return [1.0] * broken + [0.0] * fixed + [1.0] * same, [0.0] * broken + [1.0] * fixed + [1.0] * same


def noise(number, seed=1):
    return [0.0] * number, np.random.default_rng(seed).normal(size=number).tolist()


def test_the_exact_mcnemar_test_has_the_published_value_and_the_interval_of_bonett_and_price():
    nine_of_ten, quarters = flips(9, 1, 40), flips(10, 0, 0)

    found = statistics_of(f1=nine_of_ten, other=[own + [1.0] * 40 for own in quarters])

    assert found["f1"]["p"] == pytest.approx(22 / 1024)  # 2 * (C(10, 9) + C(10, 10)) / 2^10
    assert found["other"]["p"] == pytest.approx(2 / 1024)
    half = 1.959964 * math.sqrt((10 / 52 + 2 / 52 - (8 / 52) ** 2) / 52)
    assert found["f1"]["ci95"] == pytest.approx([-8 / 52 - half, -8 / 52 + half])


def test_p_is_adjusted_by_holms_method_for_all_metrics_and_the_pass_rate():
    p_values = {name: 2 / 2**broken for name, broken in (("a", 6), ("b", 8), ("c", 6), ("d", 9))} | {"pass_rate": 1.0}

    found = statistics_of(a=flips(6, 0, 6), b=flips(8, 0, 4), c=flips(6, 0, 6), d=flips(9, 0, 3))

    assert {name: metric["p_holm"] for name, metric in found.items()} == pytest.approx(adjusted(p_values))


def test_the_drop_that_a_comparison_detects_is_that_of_the_strictest_test():
    pairs = {"f1": flips(9, 8, 83)}

    (gate,) = gates_of((0.05 / 2 / 2, 0.0), **pairs)

    assert statistics_of(**pairs)["f1"]["detectable"] == gate["detectable"]  # one side of two, of two metrics


def test_many_differences_have_the_p_and_the_interval_of_scipy():
    before, after = noise(60)

    found = statistics_of(f1=(before, after), drop=([0.0] * 60, [-0.5] * 60))

    reference = stats.permutation_test(
        (np.array(after),), np.mean, permutation_type="samples", n_resamples=20_000, rng=np.random.default_rng(3)
    )
    bootstrap = stats.bootstrap(
        (after,), np.mean, method="percentile", rng=np.random.default_rng(1)
    ).confidence_interval
    assert found["f1"]["p"] == pytest.approx(reference.pvalue, abs=0.02)
    assert found["f1"]["ci95"] == pytest.approx(list(bootstrap), abs=0.02)
    assert found["drop"]["p"] == 1 / 10_000  # never 0
    assert found["drop"]["ci95"] is None  # all differences are the same


def gates_of(*rules, **pairs):
    """The gates that allow no regression of these metrics, each with its rule."""
    rule = {"type": "no_regression", "folder": "", "where": {}, "min": None, "max": None}
    limits = [{"alpha": alpha, "max_drop": max_drop} for alpha, max_drop in rules]
    gates = [
        rule | {"metric": name, "no_regression": limit, "better": "lower" if name.endswith("_seconds") else "higher"}
        for name in pairs
        for limit in limits
    ]
    before, after = sides_of(pairs)
    return merge(part(*after, gates=gates), baseline=part(*before)).report["gates"]


def test_a_gate_adds_the_error_of_random_signs_which_is_made_once_in_200_times():
    before, after = noise(40)
    reference = stats.permutation_test(
        (np.array(after),),
        np.mean,
        permutation_type="samples",
        n_resamples=29_999,
        alternative="less",
        rng=np.random.default_rng(3),
    )

    (gate,) = gates_of((0.05, 0.0), f1=(before, after))

    p = reference.pvalue
    assert gate["p"] == pytest.approx(p + 2.5758 * math.sqrt(p * (1 - p) / 9_999), abs=0.015)
    assert gate["p"] > p


def power(n, discordant, drop, alpha):
    """The power of the exact McNemar test: over all numbers of cases that break and are fixed."""
    broken, fixed = (discordant + drop) / 2, (discordant - drop) / 2
    return sum(
        stats.multinomial.pmf([down, up, n - down - up], n, [broken, fixed, 1 - discordant])
        for down in range(n + 1)
        for up in range(n + 1 - down)
        if down + up and stats.binomtest(down, down + up, alternative="greater").pvalue <= alpha
    )


@pytest.mark.parametrize(("broken", "fixed", "same"), [(4, 3, 13), (0, 0, 12)])
@pytest.mark.parametrize("alpha", [0.05, 0.2])
def test_the_drop_that_is_detected_in_4_of_5_runs_has_that_power(broken, fixed, same, alpha):
    n = broken + fixed + same

    (gate,) = gates_of((alpha, 0.0), f1=flips(broken, fixed, same))

    discordant = max((broken + fixed) / n, gate["detectable"])
    assert power(n, discordant, gate["detectable"], alpha) == pytest.approx(0.8, abs=1e-4)


def test_the_drop_that_is_detected_depends_on_how_much_cases_differ():
    steady, few = [0.01, -0.01] * 50, [0.25, -0.25] * 8 + [0.0] * 84
    zero = [0.0] * 100
    scores = {
        "steady": (zero, steady),
        "few": (zero, few),
        "noise": noise(100),
        "scaled": (zero, [30 * v for v in steady]),
    }

    drops = {gate["metric"]: gate["detectable"] for gate in gates_of((0.05, 0.0), **scores)}

    assert drops["steady"] == pytest.approx(2.4865 * 0.01 / 10, rel=1e-3)  # z of 0.05 and of the power, s / √n
    assert drops["scaled"] == pytest.approx(30 * drops["steady"])
    assert drops["steady"] < drops["few"] < drops["noise"]


def test_a_stricter_test_and_a_tolerated_drop_need_larger_drops_and_more_cases_show_smaller_ones():
    usual, strict, tolerant = (
        gate["detectable"] for gate in gates_of((0.05, 0.0), (0.005, 0.0), (0.05, 0.1), f1=flips(9, 8, 83))
    )
    (large,) = gates_of((0.05, 0.0), f1=flips(90, 80, 830))

    assert large["detectable"] < usual < strict
    assert tolerant > max(0.1, usual)


@pytest.mark.parametrize("pairs", [flips(1, 0, 3), noise(4), ([0.0], [0.0])], ids=["flips", "noise", "one"])
def test_a_few_cases_show_no_drop_at_all(pairs):
    assert gates_of((0.05, 0.0), f1=pairs)[0]["detectable"] is None


def test_the_rise_of_a_cost_that_is_detected_has_no_bound_and_the_drop_of_a_score_has():
    pairs = [0.1, 5.0] * 3, [5.0, 0.1] * 3

    cost, score = gates_of((0.05, 0.0), prediction_seconds=pairs, f1=pairs)

    assert cost["detectable"] > 5.0
    assert score["detectable"] is None


# What changed besides the system: the rows of changes.yaml, all cases of one run.


def changed_case(number, fields):
    """A case with these fields, which may be those of its fingerprint."""
    fields = dict(fields)
    names = {
        name: name for name in (*FINGERPRINT, "gold_answers", "definitions", "expect", "xfail") if name != "source"
    } | {"state": "source"}
    asked = {names[name]: fields.pop(name) for name in list(fields) if name in names}
    if review := fields.pop("review", None):
        fields["review"] = {"decision": review, "reviewers": ["a"], "notes": []}
        asked |= {} if review == "unsure" else {"review": fields.pop("review_digest", review)}
    if "query" in fields:
        predicted = {"columns": None, "row_count": None, "sample": [], "seconds": 0.0, "error": None}
        fields["predicted"] = predicted | {"query": fields.pop("query")}
    if "recorded" in fields:
        said = {"source": "p", "seconds": 1.0, "metadata": {}}
        fields["prediction"] = said | ({"recorded": True} if fields.pop("recorded") else {})
    return case(f"row{number}", **{"fingerprint": FINGERPRINT | asked} | fields)


@pytest.fixture(scope="module")
def row_changes():
    """What is named of each row."""
    sides = [[changed_case(n, row.get(side, {})) for n, row in enumerate(CHANGES)] for side in ("before", "after")]
    named = [[] for _ in CHANGES]
    for change in compared(*sides)["changes"]:
        for nodeid in change["cases"]:
            named[int(nodeid.rpartition("row")[2])].append(change["what"])
    return named


@pytest.mark.parametrize(
    "number", range(len(CHANGES)), ids=lambda number: str(CHANGES[number].get("after", "same"))[:60]
)
def test_a_change_of_a_case_besides_the_system_is_named(row_changes, number):
    assert row_changes[number] == CHANGES[number]["what"]


def changed_gates(number, gates):
    """The gates of a row, in a folder of its own."""
    for gate in gates:
        kind = {"max_regressions": "max_regressions", "alpha": "no_regression"}.get(next(iter(gate)), "limits")
        fields = {"no_regression": gate, "better": "higher"} if kind == "no_regression" else gate
        plain = {"type": kind, "folder": f"row{number}", "metric": "f1", "where": {}, "min": None, "max": None}
        yield plain | fields


@pytest.fixture(scope="module")
def gate_changes():
    """What is named of the gates of each row: as loosened, and of the reverse as tightened."""
    cases = [case(path=f"row{number}/s.queryeval.yaml") for number in range(len(GATE_CHANGES))]
    sides = [
        part(*cases, gates=[gate for n, row in enumerate(GATE_CHANGES) for gate in changed_gates(n, row[side])])
        for side in ("before", "after")
    ]
    loosened, tightened = merge(sides[1], baseline=sides[0]), merge(sides[0], baseline=sides[1])
    return [
        names_of(merged.report["baseline"]["changes"], words)
        for merged, words in ((loosened, "gate removed or loosened: "), (tightened, "gate added or tightened: "))
    ]


def names_of(changes, words):
    names = [[] for _ in GATE_CHANGES]
    for change in changes:
        if change["what"].startswith(words):
            name, _, folder = change["what"].removeprefix(words).rpartition(" in row")
            names[int(folder)].append(name)
    return names


@pytest.mark.parametrize("number", range(len(GATE_CHANGES)), ids=lambda number: str(GATE_CHANGES[number])[:70])
def test_a_gate_that_requires_less_is_named_and_one_that_requires_more_in_the_reverse(gate_changes, number):
    loosened, tightened = gate_changes

    assert loosened[number] == tightened[number] == GATE_CHANGES[number]["names"]


def test_a_gate_of_a_folder_without_a_case_in_the_run_is_not_named():
    gates = list(changed_gates(0, [{"min": 0.5}]))

    assert compared([case()], [case()], of_baseline={"gates": gates})["changes"] == []


def test_changes_come_with_their_cases_those_that_are_gone_first():
    lowered = FINGERPRINT | {"thresholds": {}}

    changes = compared(
        [*map(case, "abc"), case("gone")], [case("a", fingerprint=lowered), case("b"), case("c", fingerprint=lowered)]
    )

    assert changes["changes"] == [
        {"what": "cases removed", "cases": [f"{PATH}::gone"]},
        {"what": "thresholds lowered: f1", "cases": [f"{PATH}::a", f"{PATH}::c"]},
    ]


AROUND = ["music/t.queryeval.yaml", "?", "*/sub", "musi"]


@pytest.mark.parametrize(
    ("about", "is_removed"),
    [
        # It did not run for a known reason.
        ({"stopped": True}, False),
        ({"unreadable_files": [PATH]}, False),
        ({"requested_paths": {"paths": ["musical", "music/t.queryeval.yaml"], "ignored": []}}, False),
        ({"requested_paths": {"paths": ["music"], "ignored": [PATH]}}, False),
        ({"requested_paths": {"paths": ["."], "ignored": ["*/s.*"]}}, False),
        ({"requested_paths": {"paths": ["."], "ignored": ["mus?c"]}}, False),
        ({"requested_paths": {"paths": [], "ignored": []}}, False),
        ({"selected": True, "collected": {PATH: 3}}, False),
        # Its file was requested.
        *(({"requested_paths": {"paths": ["other", path], "ignored": AROUND}}, True) for path in (".", "music", PATH)),
    ],
    ids=lambda about: str(about)[:70],
)
def test_a_case_is_removed_unless_it_did_not_run_for_a_known_reason(about, is_removed):
    changes = compared([case("a"), case("gone")], [case("a")], **about)

    assert (changes["cases"]["removed"], changes["cases"]["not_run"]) == (is_removed, not is_removed)
    assert bool(changes["changes"]) is is_removed


SELECTED = {"selected": True, "collected": {PATH: 3}}
FEWER = f"fewer cases in a file: {PATH}"
EARLY_BASELINE = "the earlier run ended before all its cases ran"


@pytest.mark.parametrize(
    ("of_baseline", "about", "what"),
    [
        (SELECTED, SELECTED, ["cases no longer selected"]),
        ({"collected": {PATH: 3}}, SELECTED, []),
        (SELECTED, SELECTED | {"stopped": True}, []),
        (SELECTED, SELECTED | {"collected": {}}, []),
        ({"collected": {PATH: 2}}, {"collected": {PATH: 1}}, ["cases removed"]),
        (
            SELECTED | {"collected": {PATH: 1_005}},
            SELECTED,
            ["cases no longer selected", f"{FEWER} (1,005 before, 3 now)"],
        ),
        ({"collected": {PATH: 5}}, {"collected": {PATH: 1}, "stopped": True}, [f"{FEWER} (5 before, 1 now)"]),
        (SELECTED, SELECTED | {"collected": {"b": 9}}, [f"{FEWER} (3 before, 0 now)"]),
        (SELECTED, {"collected": {"b": 9}, "selected": True, "requested_paths": {"paths": ["b"], "ignored": []}}, []),
        (SELECTED, {"collected": {"b": 9}, "selected": True, "unreadable_files": [PATH]}, []),
        (SELECTED | {"stopped": True}, SELECTED | {"stopped": True}, [EARLY_BASELINE]),
    ],
    ids=[
        *("another selection", "the baseline ran all", "an early end", "unknown, as under --lf", "removed", "fewer"),
        *("fewer, stopped", "the file is gone", "not requested", "unreadable", "an early baseline"),
    ],
)
def test_cases_that_a_selection_or_an_early_end_lost_and_files_that_have_fewer_are_named(of_baseline, about, what):
    changes = compared([case("a"), case("b")], [case("a")], of_baseline=of_baseline, **about)["changes"]

    assert [change["what"] for change in changes] == what


def test_conditions_of_the_run_are_named_and_another_predictor_is_not():
    old = {"python": "3.11", "engines": {"sqlite": "3.45", "duckdb": "1.4"}}
    new = {"python": "3.12", "engines": {"sqlite": "3.46"}, "reruns": 2, "workers": 4}
    gate = {"type": "limits", "folder": "", "metric": "prediction_seconds", "where": {}, "min": None, "max": 5}
    one, two = (
        {"predictor": {"sources": [name]}, "gates": [gate], "environment": own}
        for name, own in (("a", old), ("b", new))
    )

    there, back = (
        compared([case()], [case()], of_baseline=one, **two),
        compared([case()], [case()], of_baseline=two, **one),
    )

    assert [change["what"] for change in there["changes"]] == [
        "reruns of a case: 0 became 2",
        "processes that ran cases at once, which disturbs times: 1 became 4",
        "sqlite 3.45 became 3.46",
    ]
    assert [change["what"] for change in back["changes"]] == ["reruns of a case: 2 became 0", "sqlite 3.46 became 3.45"]
