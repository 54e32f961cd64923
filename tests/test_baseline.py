"""A report compared with an earlier one: flips, metrics, what changed besides the system, and how it reads."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from samples import FINGERPRINT, HEAD, entry

from pytest_queryeval.reports.blocks import markdown_lines, text_lines
from pytest_queryeval.reports.sections import MAX_NAMES, baseline_blocks
from pytest_queryeval.results.aggregation import aggregate
from pytest_queryeval.results.baseline.comparison import compare_reports

PATH = "music/s.queryeval.yaml"
OUTCOMES = ("passed", "failed", "missed", "error", "skipped", "xfailed", "xpassed")


def case(id_="a", value=1.0, *, outcome=None, fingerprint=None, path=PATH, **changes):
    defaults = {
        "id": id_,
        "nodeid": f"{path}::{id_}",
        "path": path,
        "question": "how many",
        "evidence": "",
        "scores": {} if value is None else {"f1": value},
        "outcome": outcome or ("passed" if value else "failed"),
        "fingerprint": FINGERPRINT | (fingerprint or {}),
    }
    return entry(**defaults | changes)


def told(*cases, **about):
    return aggregate(cases, gates=about.pop("gates", ()), about=HEAD | about)


def comparison(before, after, **arguments):
    return compare_reports(before, after, path="base.json", **arguments)


def named(before, after):
    """What changed besides the system, between two reports of one case each."""
    return [change["what"] for change in comparison(told(before), told(after))["changes"]]


def ids(nodeids):
    return [nodeid.rpartition("::")[2] for nodeid in nodeids]


def test_cases_that_changed_sides_are_fixed_or_broken():
    before = told(case("a", 1.0), case("b", 0.0), case("c", 1.0), case("d", 0.0))
    after = told(case("a", 0.0), case("b", 1.0), case("c", 1.0), case("d", 0.0))

    changes = comparison(before, after)

    assert (ids(changes["regressions"]), ids(changes["fixes"])) == (["a"], ["b"])


def test_causes_are_compared_over_the_cases_of_both_reports():
    def wrong(id_, label):
        edits = [{"label": label, "clause": "", "change": ""}]
        return case(id_, 0.0, cause={"edits": edits, "repaired_query": None})

    before = told(wrong("a", "wrong-value"), wrong("b", "wrong-limit"), wrong("gone", "wrong-value"), case("c"))
    after = told(wrong("a", "nesting"), wrong("b", "wrong-limit"), wrong("new", "nesting"), case("c"))

    assert comparison(before, after)["causes"] == {
        "nesting": {"before": 0, "after": 1},
        "wrong-limit": {"before": 1, "after": 1},
        "wrong-value": {"before": 1, "after": 0},
    }


def predicted(query, **changes):
    side = {"query": query, "columns": None, "row_count": None, "sample": [], "seconds": 0.0, "error": None}
    return side | changes


def test_earlier_predictions_of_regressions_and_fixes_are_kept_and_no_others():
    difference = {"summary": "gold 4, predicted 2", "missing": [], "extra": [], "changed": [], "repeated": []}
    error = {"kind": "invalid", "message": "no such column: x"}
    before = told(
        case("a", 1.0, predicted=predicted("SELECT 1")),
        case("b", 0.0, predicted=predicted("SELECT 2"), difference=difference),
        case("c", 0.0, predicted=predicted("SELECT x", error=error)),
        case("same", 1.0, predicted=predicted("SELECT 3")),
        case("breaks", 1.0, predicted=predicted("SELECT 4")),
    )
    after = told(case("a", 0.0), case("b", 1.0), case("c", 1.0), case("same", 1.0), case("breaks", outcome="error"))

    changes = comparison(before, after)["earlier"]

    assert {nodeid.rpartition("::")[2]: earlier for nodeid, earlier in changes.items()} == {
        "a": {"outcome": "passed", "query": "SELECT 1", "error": None, "summary": ""},
        "b": {"outcome": "failed", "query": "SELECT 2", "error": None, "summary": "gold 4, predicted 2"},
        "c": {"outcome": "failed", "query": "SELECT x", "error": error, "summary": ""},
    }


@pytest.mark.long
def test_earlier_predictions_are_bounded_and_without_secrets(monkeypatch):
    monkeypatch.setenv("MODEL_API_KEY", "singers-in-Bergen-2025")
    query = f"SELECT 'singers-in-Bergen-2025', '\udc80', '{'x' * 10_000}'"
    old = [case(f"c{number:03}", 1.0, predicted=predicted(query)) for number in range(600)]
    new = [case(f"c{number:03}", 0.0) for number in range(600)]

    changes = comparison(told(*old), told(*new))["earlier"]

    assert list(changes) == [case["nodeid"] for case in old[:500]]
    (text,) = {earlier["query"] for earlier in changes.values()}
    assert len(text) == 4_000
    assert "singers-in-Bergen" not in text
    assert text.encode()


@pytest.mark.parametrize("old", OUTCOMES)
@pytest.mark.parametrize("new", OUTCOMES)
def test_what_is_expected_to_fail_flips_as_well_and_errors_and_skips_stand_apart(old, new):
    changes = comparison(told(case(outcome=old)), told(case(outcome=new)))

    met, unmet = {"passed", "xpassed"}, {"failed", "missed", "xfailed"}
    assert bool(changes["regressions"]) == (old in met and new in unmet)
    assert bool(changes["fixes"]) == (old in unmet and new in met)
    assert bool(changes["errors"]) == (new == "error" != old)
    assert changes["cases"]["skipped"] == (new == "skipped" != old)


@pytest.mark.parametrize("other", OUTCOMES)
def test_a_case_that_was_not_run_since_the_gates_were_decided_is_neither_removed_nor_in_both(other):
    ran, left = case(outcome=other), case(outcome="not_run", scores={})

    changes = comparison(told(ran, case("b")), told(left, case("b")))

    assert (changes["cases"]["common"], changes["cases"]["removed"], changes["cases"]["not_run"]) == (1, 0, 1)
    assert (changes["regressions"], changes["errors"], changes["changes"]) == ([], [], [])


@pytest.mark.parametrize("other", [*OUTCOMES, "not_run"])
def test_a_case_that_was_not_run_in_the_baseline_is_not_new(other):
    changes = comparison(told(case(outcome="not_run", scores={}), case("b")), told(case(outcome=other), case("b")))

    assert {name: changes["cases"][name] for name in ("common", "added", "not_run", "errors", "skipped")} == {
        "common": 1,
        "added": 0,
        "not_run": 0,
        "errors": 0,
        "skipped": 0,
    }


def test_cases_of_one_report_only_are_counted():
    changes = comparison(told(case("a"), case("gone")), told(case("a"), case("new")))

    assert {name: changes["cases"][name] for name in ("before", "after", "common", "added", "removed", "not_run")} == {
        "before": 2,
        "after": 2,
        "common": 1,
        "added": 1,
        "removed": 1,
        "not_run": 0,
    }
    assert changes["changes"] == [{"what": "cases removed", "cases": [f"{PATH}::gone"]}]


@pytest.mark.parametrize(
    "about",
    [
        {"selected": True},
        {"stopped": True},
        {"unreadable_files": [PATH]},
        {"requested_paths": {"paths": ["musical", "music/t.queryeval.yaml"], "ignored": []}},
        {"requested_paths": {"paths": ["music"], "ignored": [PATH]}},
        {"requested_paths": {"paths": ["."], "ignored": ["*/s.*"]}},
        {"requested_paths": {"paths": ["."], "ignored": ["mus?c"]}},
        {"requested_paths": {"paths": [], "ignored": []}},
    ],
    ids=[
        *("a selection", "an early end", "a broken file", "other paths", "an ignored file"),
        *("a pattern", "a pattern of a folder", "nothing"),
    ],
)
def test_a_case_that_did_not_run_for_a_known_reason_is_not_removed(about):
    changes = comparison(told(case("a"), case("gone")), told(case("a"), **about))

    assert (changes["cases"]["removed"], changes["cases"]["not_run"]) == (0, 1)
    assert changes["changes"] == []


@pytest.mark.parametrize("path", [".", "music", PATH])
def test_a_case_of_a_file_that_was_asked_for_is_removed(path):
    query_text = {"paths": ["other", path], "ignored": ["music/t.queryeval.yaml", "?", "*/sub", "musi"]}

    changes = comparison(told(case("a"), case("gone")), told(case("a"), requested_paths=query_text))

    assert changes["cases"]["removed"] == 1


def of_files(before, after, *, cases=(), **about):
    """What is named where files had these numbers of cases, and of the baseline's `cases` one is left."""
    old = told(*cases, collected=before, selected=True)
    return comparison(old, told(*cases[:1], collected=after, **about))["changes"]


@pytest.mark.parametrize("about", [{"selected": True}, {}, {"stopped": True}], ids=["selected", "whole", "stopped"])
def test_a_file_with_fewer_cases_than_before_is_named_where_its_cases_are_not(about):
    changes = of_files({PATH: 1_005, "b": 2, "c": 3}, {PATH: 4, "b": 3, "c": 3}, **about)

    assert changes == [{"what": f"fewer cases in a file: {PATH} (1,005 before, 4 now)", "cases": []}]


def test_a_file_that_is_gone_is_named_under_a_selection():
    changes = of_files({PATH: 5, "b": 2}, {"b": 2}, selected=True)

    assert changes == [{"what": f"fewer cases in a file: {PATH} (5 before, 0 now)", "cases": []}]


@pytest.mark.parametrize(
    "about",
    [
        {"requested_paths": {"paths": ["b"], "ignored": []}},
        {"requested_paths": {"paths": ["."], "ignored": ["music"]}},
        {"unreadable_files": [PATH]},
        {"stopped": True},
        {"collected": {}},
    ],
    ids=["not asked for", "ignored", "broken", "stopped", "unknown, as under --lf"],
)
def test_a_file_of_which_nothing_is_known_has_not_fewer_cases(about):
    before, after = told(collected={PATH: 5}), told(**{"collected": {"b": 2}, "selected": True} | about)

    assert comparison(before, after)["changes"] == []


def test_a_file_is_not_named_for_cases_that_are_named_as_removed():
    before = told(case("a"), case("b"), collected={PATH: 2})

    changes = comparison(before, told(case("a"), collected={PATH: 1}))["changes"]

    assert changes == [{"what": "cases removed", "cases": [f"{PATH}::b"]}]


def test_cases_that_fitted_the_selection_of_the_baseline_and_fit_that_of_the_run_no_more_are_named():
    changes = of_files({PATH: 3}, {PATH: 3}, cases=[case("a"), case("b")], selected=True)

    assert changes == [{"what": "cases no longer selected", "cases": [f"{PATH}::b"]}]


@pytest.mark.parametrize(
    ("of_baseline", "of_run"),
    [
        ({"selected": False}, {}),
        ({}, {"stopped": True}),
        ({}, {"collected": {"b": 1}, "requested_paths": {"paths": ["b"], "ignored": []}}),
        ({}, {"collected": {}}),
    ],
    ids=["the baseline ran all", "an early end", "another file", "unknown, as under --lf"],
)
def test_cases_that_may_be_left_out_for_another_reason_are_only_not_run(of_baseline, of_run):
    common = {"collected": {PATH: 3}, "selected": True}

    changes = comparison(told(case("a"), case("b"), **common | of_baseline), told(case("a"), **common | of_run))

    assert (changes["cases"]["not_run"], changes["changes"]) == (1, [])


def test_a_metric_is_compared_over_the_cases_that_have_both_scores():
    before = told(case("a", 1.0), case("b", 1.0), case("c", None), case("d", 0.5))
    after = told(case("a", 0.5), case("b", 1.0), case("c", 1.0), case("d", None))

    metric = comparison(before, after)["metrics"]["f1"]

    assert {name: metric[name] for name in ("n", "before", "after", "change", "test")} == {
        "n": 2,
        "before": 1.0,
        "after": 0.75,
        "change": -0.25,
        "test": "sign_flip",
    }


def test_p_values_are_adjusted_for_the_number_of_metrics():
    before = told(*(case(str(n), scores={"f1": 1.0, "em": 1.0}) for n in range(10)))
    after = told(*(case(str(n), scores={"f1": float(n > 7), "em": 1.0}) for n in range(10)))

    metrics = comparison(before, after)["metrics"]

    assert metrics["f1"]["p"] == pytest.approx(2 / 256)
    assert list(metrics) == ["pass_rate", "f1", "em"]
    assert metrics["f1"]["p_holm"] == pytest.approx(6 / 256)
    assert metrics["em"]["p_holm"] == metrics["pass_rate"]["p_holm"] == 1.0


def test_the_pass_rate_is_compared_over_the_cases_that_count_in_both():
    before = told(case("a", 1.0), case("b", 1.0), case("c", outcome="error"), case("d", outcome="skipped"))
    after = told(case("a", 0.0), case("b", 1.0), case("c", 1.0), case("d", 1.0))

    changes = comparison(before, after)["metrics"]["pass_rate"]

    assert (changes["n"], changes["before"], changes["after"]) == (3, pytest.approx(2 / 3), pytest.approx(2 / 3))


def test_what_a_metric_could_have_shown_holds_for_the_adjusted_test():
    cases = [case(str(n), float(n % 5 > 0)) for n in range(200)]
    alone, many = ({"f1": 1.0}, {f"m{n}": 1.0 for n in range(20)} | {"f1": 1.0})
    few, more = (
        comparison(told(*(c | {"scores": s} for c in cases)), told(*(c | {"scores": s} for c in cases)))["metrics"][
            "f1"
        ]
        for s in (alone, many)
    )

    assert few["detectable"] < more["detectable"]


SCORES = st.lists(st.tuples(st.sampled_from([0.0, 0.5, 1.0, None]), st.sampled_from([0.0, 0.3, 1.0, None])), max_size=8)


@given(SCORES)
def test_swapping_the_reports_negates_every_change(scores):
    first = told(*(case(str(n), value) for n, (value, _) in enumerate(scores)))
    second = told(*(case(str(n), value) for n, (_, value) in enumerate(scores)))

    there, back = comparison(first, second), comparison(second, first)

    assert there["metrics"].keys() == back["metrics"].keys()
    for name, statistics in there["metrics"].items():
        assert statistics["change"] == -back["metrics"][name]["change"]
        assert statistics["p"] == back["metrics"][name]["p"]
    assert (there["fixes"], there["regressions"]) == (back["regressions"], back["fixes"])


@given(st.lists(st.tuples(st.sampled_from([0.0, 0.4, 1.0, None]), st.sampled_from(OUTCOMES)), max_size=8))
def test_identical_reports_show_no_change(cases):
    report = told(*(case(str(n), value, outcome=outcome) for n, (value, outcome) in enumerate(cases)))

    changes = comparison(report, report)

    assert all((metric["change"], metric["p"], metric["p_holm"]) == (0, 1, 1) for metric in changes["metrics"].values())
    assert changes["fixes"] == changes["regressions"] == changes["errors"] == changes["changes"] == []


@pytest.mark.parametrize(
    ("fingerprint", "what"),
    [
        ({"thresholds": {"f1": {"min": 0.4, "max": None}}}, ["thresholds lowered: f1"]),
        ({"thresholds": {"f1": {"min": 0.6, "max": None}}}, ["thresholds raised: f1"]),
        ({"thresholds": {"f1": {"min": 0.5, "max": 0.9}}}, ["thresholds raised: f1"]),
        ({"thresholds": {}}, ["thresholds lowered: f1"]),
        ({"thresholds": {"em": {"min": 0.5, "max": None}}}, ["thresholds lowered: f1", "thresholds raised: em"]),
        ({"on_miss": "xfail"}, ["on_miss changed"]),
        ({"trials": 3}, ["trials or trials_rule changed"]),
        ({"trials_rule": "any"}, ["trials or trials_rule changed"]),
        ({"golds": "fedcba9876543210"}, ["gold edited"]),
        ({"compare": {"case": "ignore"}}, ["comparison policy edited"]),
        ({"options": {"f1": {"alpha": 0.2}}}, ["metric options edited"]),
        ({"limits": {"timeout": 9.0, "max_rows": 10}}, ["timeout or max_rows edited"]),
        ({"schemas": {"json_schema": "0"}}, ["JSON Schema, structure or tables edited"]),
        ({"source": "bb"}, ["another source, or another state of it"]),
        ({"source": None}, ["another source, or another state of it"]),
        ({"context": "0"}, ["question, evidence or metadata edited"]),
    ],
)
def test_what_a_suite_asks_for_otherwise_is_named(fingerprint, what):
    assert named(case(), case(fingerprint=fingerprint)) == what


@pytest.mark.parametrize(
    ("before", "after", "what"),
    [
        ({"gold_answers": "aa"}, {"gold_answers": "bb"}, ["gold's answer changed"]),
        ({"gold_answers": "aa"}, {"gold_answers": "bb", "golds": "0"}, ["gold edited"]),
        (
            {"gold_answers": "aa"},
            {"gold_answers": "bb", "compare": {"row_order": "strict"}},
            ["comparison policy edited"],
        ),
        ({"gold_answers": "aa"}, {"gold_answers": "aa"}, []),
        ({"gold_answers": "aa"}, {"gold_answers": None}, []),
        ({"gold_answers": None}, {"gold_answers": "bb"}, []),
        ({}, {"gold_answers": "bb"}, []),
    ],
)
def test_a_gold_drifts_if_its_answer_changes_though_it_was_not_edited(before, after, what):
    assert named(case(fingerprint=before), case(fingerprint=after)) == what


def test_answers_that_were_stated_and_are_asked_of_a_predictor_now_are_named():
    stated, second = case(fingerprint={"answers": "stated"}), case(value=0.0)

    assert named(stated, second) == ["answers asked of a predictor"]
    assert named(second, stated) == ["answers stated in the suite"]
    assert named(stated, stated) == []


def test_answers_that_are_the_same_are_not_named_where_they_are_read_from_another_place():
    stated_case = case(fingerprint={"answers": "stated"})
    predicted = {"query": "SELECT 1", "error": None, "columns": None, "row_count": None, "sample": [], "seconds": 0.0}

    assert named(stated_case, case()) == []
    assert named(stated_case | {"predicted": predicted}, case(value=0.0) | {"predicted": predicted}) == []
    assert named(
        stated_case | {"predicted": predicted}, case(value=0.0) | {"predicted": predicted | {"query": "x"}}
    ) == ["answers asked of a predictor"]


@pytest.mark.parametrize(
    ("old", "new", "is_other"),
    [
        ("music", "art", True),
        ("a/c.db", "b/c.db", True),
        (None, "c.db", True),
        ("/ci/1/c.db", "/home/me/data/c.db", False),
        ("/c.db", "C:\\data\\c.db", False),
        ("/ci/a.ttl, /ci/b.ttl", "/a.ttl, /b.ttl", False),
        ("/ci/a.ttl, /ci/b.ttl", "/ci/a.ttl, /ci/c.ttl", True),
        ("sqlite:////ci/c.db", "sqlite:////c.db", False),
        ("postgresql://localhost:49153/shop", "postgresql://localhost:49160/shop", False),
        ("postgresql://localhost/shop", "postgresql://localhost/music", True),
        ("https://one/sparql", "https://other/sparql", True),
    ],
)
def test_a_source_without_a_state_is_known_by_its_name_but_for_what_is_of_the_machine(old, new, is_other):
    names = (case(source=source, fingerprint={"source": None}) for source in (old, new))

    assert named(*names) == ["another source, or another state of it"] * is_other


def test_a_source_with_the_same_state_is_the_same_whatever_it_is_called():
    assert named(case(source="a.db"), case(source="copies/b.db")) == []


@pytest.mark.parametrize("outcome", ["skipped", "error"])
def test_a_state_that_nobody_looked_up_is_not_another_one(outcome):
    without = case(outcome=outcome, value=None, fingerprint={"source": None})

    assert "another source, or another state of it" not in named(case(), without) + named(without, case())
    assert "another source, or another state of it" in named(case(), without | {"source": "other.db"})


def test_a_greater_maximum_asks_for_less():
    wide, narrow = ({"thresholds": {"ves": {"min": None, "max": most}}} for most in (2.0, 1.0))

    assert named(case(fingerprint=narrow), case(fingerprint=wide)) == ["thresholds lowered: ves"]


def test_lowered_thresholds_are_listed_by_their_metrics():
    def limits(**least):
        return {"thresholds": {name: {"min": minimum, "max": None} for name, minimum in least.items()}}

    before = [case(name, fingerprint=limits(f1=0.5, em=0.5)) for name in "abc"]
    after = [case("a", fingerprint=limits(f1=0.4, em=0.4)), case("b", fingerprint=limits(f1=0.4, em=0.5))]
    after.append(case("c", fingerprint=limits(em=0.6)))

    assert comparison(told(*before), told(*after))["changes"] == [
        {"what": "thresholds lowered: f1, em", "cases": [f"{PATH}::a"]},
        {"what": "thresholds lowered: f1", "cases": [f"{PATH}::b", f"{PATH}::c"]},
        {"what": "thresholds raised: em", "cases": [f"{PATH}::c"]},
    ]


def test_other_questions_skips_and_expected_failures_are_named():
    assert named(case(), case(question="how many, really")) == ["question, evidence or metadata edited"]
    assert named(case(), case(outcome="skipped")) == ["cases newly skipped"]
    assert named(case(value=0.0), case(value=0.0, outcome="xfailed")) == ["cases newly marked xfail"]
    assert named(case(outcome="xpassed"), case(outcome="xfailed")) == []


@pytest.mark.parametrize(
    ("old", "new", "of_on_miss", "is_named"),
    [
        ("failed", "missed", ("fail", "fail"), True),
        ("passed", "missed", ("fail", "fail"), True),
        ("failed", "missed", ("xfail", "xfail"), True),  # as after a run with --runxfail
        ("failed", "missed", ("fail", "xfail"), False),
        ("missed", "missed", ("xfail", "fail"), True),
        ("passed", "missed", ("xfail", "xfail"), False),
        ("missed", "missed", ("fail", "fail"), False),
        ("missed", "xpassed", ("fail", "fail"), False),
        ("missed", "failed", ("fail", "fail"), False),
    ],
)
def test_a_case_that_a_marker_of_a_conftest_spares_is_named(old, new, of_on_miss, is_named):
    before, after = (
        case(outcome=outcome, fingerprint={"on_miss": on_miss})
        for outcome, on_miss in zip((old, new), of_on_miss, strict=True)
    )

    assert ("cases newly marked xfail" in named(before, after)) is is_named


def test_edited_evidence_tags_and_difficulty_and_dropped_metrics_are_named():
    assert named(case(), case(evidence="WHERE a > 1")) == ["question, evidence or metadata edited"]
    assert named(case(), case(tags=["easy-ones"])) == ["tags or difficulty edited"]
    assert named(case(), case(difficulty="hard")) == ["tags or difficulty edited"]
    assert named(case(scores={"f1": 1.0, "em": 0.0}), case(scores={"f1": 1.0})) == ["metrics no longer computed"]
    assert named(case(scores={"f1": 1.0}), case(scores={"f1": 1.0, "em": 0.0})) == []
    assert named(case(), case(scores={}, outcome="error")) == []


def gate(**changes):
    gate = {"type": "limits", "folder": "music", "metric": "f1", "where": {}, "min": 0.5, "max": None}
    return gate | changes


def rule(**rules):
    (name,) = rules
    return gate(type=name, min=None, **rules)


def regression(*, alpha=0.05, max_drop=0.0):
    return rule(no_regression={"alpha": alpha, "max_drop": max_drop})


def of_gates(before, after):
    """What is named as loosened where a folder had one list of gates and has another; the reverse is tightened."""

    def named(before, after, words):
        changes = comparison(told(case(), gates=before), told(case(), gates=after))["changes"]
        return [change["what"] for change in changes if change["what"].startswith(words)]

    loosened = named(before, after, "gate removed or loosened: ")
    tightened = named(after, before, "gate added or tightened: ")
    assert [name.partition(": ")[2] for name in tightened] == [name.partition(": ")[2] for name in loosened]
    return loosened


@pytest.mark.parametrize(
    ("after", "is_named"),
    [
        ([gate()], False),
        ([gate(min=0.6)], False),
        ([gate(min=0.4)], True),
        ([gate(where={"tag": "x"})], True),
        ([gate(max=0.9)], False),
        ([rule(max_regressions=1)], True),
        ([], True),
    ],
)
def test_a_gate_that_asks_for_less_or_is_gone_is_named(after, is_named):
    assert of_gates([gate()], after) == ["gate removed or loosened: f1 (at least 0.5) in music"] * is_named


@pytest.mark.parametrize(
    ("strict", "loose", "name"),
    [
        (rule(max_regressions=3), rule(max_regressions=5), "regressions"),
        (regression(alpha=0.05), regression(alpha=0.01), "regression of f1"),
        (regression(max_drop=0.0), regression(max_drop=0.02), "regression of f1"),
        (gate(min=None, max=0.5), gate(min=None, max=0.6), "f1 (at most 0.5)"),
        (gate(type="sum", min=None, max=5), gate(type="sum", min=None, max=6), "sum of f1 (at most 5)"),
    ],
    ids=["max_regressions", "alpha", "max_drop", "max", "sum"],
)
def test_a_rule_that_asks_for_less_is_named_and_one_that_asks_for_more_is_not(strict, loose, name):
    assert of_gates([strict], [loose]) == [f"gate removed or loosened: {name} in music"]
    assert of_gates([strict], [strict]) == of_gates([loose], [strict]) == []


def test_a_rule_that_asks_for_less_in_one_thing_is_named_whatever_it_asks_for_in_another():
    first, second = regression(alpha=0.01, max_drop=0.0), regression(alpha=0.05, max_drop=0.1)

    changes = ["gate removed or loosened: regression of f1 in music"]
    assert of_gates([first], [second]) == of_gates([second], [first]) == changes


LEAST, MOST = gate(min=0.5), gate(min=None, max=0.99)


@pytest.mark.parametrize(
    ("before", "after", "names"),
    [
        ([LEAST, MOST], [LEAST, MOST], []),
        ([LEAST, MOST], [MOST, LEAST], []),
        ([LEAST, MOST], [gate(min=0.5, max=0.99)], []),
        ([gate(min=0.5, max=0.99)], [LEAST, MOST], []),
        ([LEAST, MOST], [LEAST], ["f1 (at most 0.99)"]),
        ([LEAST, MOST], [LEAST, LEAST], ["f1 (at most 0.99)"]),
        ([LEAST, MOST], [gate(min=0.4), MOST], ["f1 (at least 0.5)"]),
        ([LEAST, MOST], [LEAST, gate(min=None, max=1.0)], ["f1 (at most 0.99)"]),
        ([LEAST, MOST], [], ["f1 (at least 0.5)", "f1 (at most 0.99)"]),
        ([LEAST, LEAST], [], ["f1 (at least 0.5)"]),
        ([gate(type="sum", min=None, max=5)], [gate(min=None, max=5)], ["sum of f1 (at most 5)"]),
    ],
)
def test_gates_of_one_metric_are_compared_by_what_they_ask_for_together(before, after, names):
    assert of_gates(before, after) == [f"gate removed or loosened: {name} in music" for name in names]


UNKNOWN = gate(type="max_seconds", settings={"percentile": 95})


@pytest.mark.parametrize(
    ("after", "is_named"),
    [([UNKNOWN], False), ([UNKNOWN | {"max": 0.9}], True), ([UNKNOWN | {"settings": {}}], True), ([], True)],
)
def test_any_change_of_a_gate_whose_rule_is_not_known_here_is_named(after, is_named):
    assert of_gates([UNKNOWN], after) == ["gate removed or loosened: max_seconds of f1 in music"] * is_named


def test_a_gate_of_a_folder_that_was_not_run_is_not_named():
    changes = comparison(told(case(), gates=[gate(folder="art")]), told(case(), gates=[]))

    assert changes["changes"] == []


def test_an_absolute_baseline_is_told_by_its_name():
    assert compare_reports(told(case()), told(case()), path="/somewhere/base.json")["path"] == "base.json"


def test_other_versions_are_named_and_another_predictor_is_not():
    old = {"pytest_queryeval": "1.0", "python": "3.11", "engines": {"sqlite": "3.45", "duckdb": "1.4"}}
    new = {"pytest_queryeval": "1.1", "python": "3.12", "engines": {"sqlite": "3.46"}}

    changes = comparison(
        told(case(), environment=old, predictor={"sources": ["a"]}),
        told(case(), environment=new, predictor={"sources": ["b"]}),
    )

    assert changes["changes"] == [
        {"what": "pytest_queryeval 1.0 became 1.1", "cases": []},
        {"what": "sqlite 3.45 became 3.46", "cases": []},
    ]


def test_a_case_without_a_fingerprint_is_not_compared_in_that_and_the_report_says_so():
    old = case() | {"fingerprint": None}

    changes = comparison(told(old), told(case(fingerprint={"golds": "0"})))

    assert (changes["changes"], changes["cases"]["unknown"]) == ([], 1)
    assert "for 1 case a report has no thresholds, golds and policies" in text(changes)


def text(found, width=10_000):
    return "\n".join(text_lines(baseline_blocks(found), width))


def test_the_comparison_reads_well():
    before = told(*(case(f"c{n:02}", 1.0) for n in range(30)), case("gone"))
    after = told(*(case(f"c{n:02}", float(n >= 25), fingerprint={"golds": "0"}) for n in range(30)))

    lines = text(comparison(before, after)).split("\n")

    assert lines[0].startswith("against the baseline base.json of 2024-05-01T10:00:00+00:00: 30 cases in both, ")
    assert lines[0].endswith(", 0 fixes, 25 regressions, 1 removed")
    table = next(number for number, line in enumerate(lines) if line.startswith("metric"))
    assert " ".join(lines[table].split()) == "metric before after change 95 % interval n p p adjusted detects"
    assert lines[table + 1].split()[:4] == ["pass_rate", "1.000", "0.167", "-0.833"]
    assert lines[table + 2].split()[:4] == ["f1", "1.000", "0.167", "-0.833"]
    regressions = next(line for line in lines if line.startswith("regressions (25): "))
    assert regressions.count("::") == MAX_NAMES
    assert regressions.endswith("::c19 and 5 more")
    besides = [lines[1], lines[2].partition(": music/")[0]]
    assert besides == [
        f"changed besides the system: cases removed (1 case): {PATH}::gone",
        "changed besides the system: gold edited (30 cases)",
    ]


def test_lines_keep_within_the_width():
    changes = comparison(told(*(case(f"c{n}") for n in range(30))), told(*(case(f"c{n}", 0.0) for n in range(30))))

    assert max(map(len, text(changes, 60).split("\n"))) <= 60


def test_reports_without_a_common_case_say_what_to_look_at():
    changes = comparison(told(case(path="a/s.queryeval.yaml")), told(case()))

    assert text(changes).endswith(
        ": no case in common: compare runs of the same suites with the same root folder (`rootdir:`), where node ids "
        "begin: a pytest.ini with the line `[pytest]` sets it"
    )


def test_foreign_text_is_a_span_of_code_in_markdown_and_never_a_command_in_text():
    hostile = "x](http://evil)\n::error::<b>|\u202e"
    changes = comparison(told(case(hostile)), told(case(hostile, 0.0, scores={hostile: 1.0})))

    lines = list(markdown_lines(baseline_blocks(changes)))

    spans = [span for line in lines for span in re.findall("`[^`]*`", line)]
    assert any("evil" in span for span in spans)
    assert all("evil" not in re.sub("`[^`]*`", "", line) for line in lines)
    assert all(("\\|" in line) == line.startswith("|") for line in lines if "evil" in line)
    assert "\u202e" not in text(changes)
    assert not any(line.startswith("::") for line in text(changes).split("\n"))


def test_recorded_answers_and_reruns_are_named():
    answer = {"source": "p", "seconds": 1.0, "metadata": {}}
    once = told(case(prediction=answer), environment={})
    again = told(case(prediction={**answer, "recorded": True}), environment={"reruns": 2})

    named = [change["what"] for change in comparison(once, again)["changes"]]

    assert named == ["answers taken from a recording", "reruns of a case: 0 became 2"]
    assert comparison(again, again)["changes"] == []
    assert [change["what"] for change in comparison(again, once)["changes"]] == ["reruns of a case: 2 became 0"]
