"""A report compared with an earlier one: flips, metrics, what changed besides the system, and how it reads."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from samples import entry

from pytest_queryeval.baseline import compared
from pytest_queryeval.report_file import DEFAULTS
from pytest_queryeval.reports.comparison.baseline import LISTED, baseline_passages
from pytest_queryeval.reports.comparison.passages import markdown_lines, text_lines

BASIS = {
    "thresholds": {"f1": {"min": 0.5, "max": None}},
    "on_miss": "fail",
    "trials": 1,
    "trials_rule": "mean",
    "golds": "0123456789abcdef",
    "compare": {},
    "options": {},
    "limits": {"timeout": 30.0, "max_rows": 10},
    "schemas": {},
    "source": "aa",
}
PATH = "music/s.queryeval.yaml"
OUTCOMES = ("passed", "failed", "missed", "error", "skipped", "xfailed", "xpassed")


def case(id_="a", value=1.0, *, outcome=None, basis=None, path=PATH, **changes):
    known = {
        "id": id_,
        "nodeid": f"{path}::{id_}",
        "path": path,
        "question": "how many",
        "scores": {} if value is None else {"f1": value},
        "outcome": outcome or ("passed" if value else "failed"),
        "basis": BASIS | (basis or {}),
    }
    return entry(**known | changes)


def told(*cases, **about):
    return {**DEFAULTS, "created": "2024-05-01T10:00:00+00:00", "cases": list(cases)} | about


def comparison(before, after, **arguments):
    return compared(before, after, path="base.json", **arguments)


def named(before, after):
    """What changed besides the system, between two reports of one case each."""
    return [change["what"] for change in comparison(told(before), told(after))["changes"]]


def ids(nodeids):
    return [nodeid.rpartition("::")[2] for nodeid in nodeids]


def test_cases_that_changed_sides_are_fixed_or_broken():
    before = told(case("a", 1.0), case("b", 0.0), case("c", 1.0), case("d", 0.0))
    after = told(case("a", 0.0), case("b", 1.0), case("c", 1.0), case("d", 0.0))

    found = comparison(before, after)

    assert (ids(found["broken"]), ids(found["fixed"])) == (["a"], ["b"])


@pytest.mark.parametrize("old", OUTCOMES)
@pytest.mark.parametrize("new", OUTCOMES)
def test_what_is_expected_to_fail_flips_as_well_and_errors_and_skips_stand_apart(old, new):
    found = comparison(told(case(outcome=old)), told(case(outcome=new)))

    met, unmet = {"passed", "xpassed"}, {"failed", "missed", "xfailed"}
    assert bool(found["broken"]) == (old in met and new in unmet)
    assert bool(found["fixed"]) == (old in unmet and new in met)
    assert bool(found["errors"]) == (new == "error" != old)
    assert found["cases"]["skipped"] == (new == "skipped" != old)


def test_cases_of_one_report_only_are_counted():
    found = comparison(told(case("a"), case("gone")), told(case("a"), case("new")))

    assert {name: found["cases"][name] for name in ("before", "after", "common", "added", "removed", "not_run")} == {
        "before": 2,
        "after": 2,
        "common": 1,
        "added": 1,
        "removed": 1,
        "not_run": 0,
    }
    assert found["changes"] == [{"what": "cases removed", "cases": [f"{PATH}::gone"]}]


@pytest.mark.parametrize(
    "about",
    [
        {"selected": True},
        {"stopped": True},
        {"broken": [PATH]},
        {"asked": {"paths": ["musical", "music/t.queryeval.yaml"], "ignored": []}},
        {"asked": {"paths": ["music"], "ignored": [PATH]}},
        {"asked": {"paths": ["."], "ignored": ["*/s.*"]}},
        {"asked": {"paths": [], "ignored": []}},
    ],
    ids=["a selection", "an early end", "a broken file", "other paths", "an ignored file", "a pattern", "nothing"],
)
def test_a_case_that_did_not_run_for_a_known_reason_is_not_removed(about):
    found = comparison(told(case("a"), case("gone")), told(case("a"), **about))

    assert (found["cases"]["removed"], found["cases"]["not_run"]) == (0, 1)
    assert found["changes"] == []


@pytest.mark.parametrize("path", [".", "music", PATH])
def test_a_case_of_a_file_that_was_asked_for_is_removed(path):
    asked = {"paths": ["other", path], "ignored": ["music/t.queryeval.yaml"]}

    found = comparison(told(case("a"), case("gone")), told(case("a"), asked=asked))

    assert found["cases"]["removed"] == 1


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

    found = comparison(before, after)["metrics"]["pass_rate"]

    assert (found["n"], found["before"], found["after"]) == (3, pytest.approx(2 / 3), pytest.approx(2 / 3))


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
    one = told(*(case(str(n), value) for n, (value, _) in enumerate(scores)))
    other = told(*(case(str(n), value) for n, (_, value) in enumerate(scores)))

    there, back = comparison(one, other), comparison(other, one)

    assert there["metrics"].keys() == back["metrics"].keys()
    for name, found in there["metrics"].items():
        assert found["change"] == -back["metrics"][name]["change"]
        assert found["p"] == back["metrics"][name]["p"]
    assert (there["fixed"], there["broken"]) == (back["broken"], back["fixed"])


@given(st.lists(st.tuples(st.sampled_from([0.0, 0.4, 1.0, None]), st.sampled_from(OUTCOMES)), max_size=8))
def test_identical_reports_show_no_change(cases):
    report = told(*(case(str(n), value, outcome=outcome) for n, (value, outcome) in enumerate(cases)))

    found = comparison(report, report)

    assert all((metric["change"], metric["p"], metric["p_holm"]) == (0, 1, 1) for metric in found["metrics"].values())
    assert found["fixed"] == found["broken"] == found["errors"] == found["changes"] == []


@pytest.mark.parametrize(
    ("basis", "what"),
    [
        ({"thresholds": {"f1": {"min": 0.4, "max": None}}}, ["thresholds lowered"]),
        ({"thresholds": {"f1": {"min": 0.6, "max": None}}}, ["thresholds raised"]),
        ({"thresholds": {"f1": {"min": 0.5, "max": 0.9}}}, ["thresholds raised"]),
        ({"thresholds": {}}, ["thresholds lowered"]),
        ({"thresholds": {"em": {"min": 0.5, "max": None}}}, ["thresholds lowered", "thresholds raised"]),
        ({"on_miss": "xfail"}, ["on_miss changed"]),
        ({"trials": 3}, ["trials or trials_rule changed"]),
        ({"trials_rule": "any"}, ["trials or trials_rule changed"]),
        ({"golds": "fedcba9876543210"}, ["gold edited"]),
        ({"compare": {"case": "ignore"}}, ["comparison policy edited"]),
        ({"options": {"f1": {"alpha": 0.2}}}, ["metric options edited"]),
        ({"limits": {"timeout": 9.0, "max_rows": 10}}, ["timeout or max_rows edited"]),
        ({"schemas": {"json_schema": "0"}}, ["JSON Schema, structure or tables edited"]),
        ({"source": "bb"}, ["other state of the database"]),
        ({"source": None}, []),
    ],
)
def test_what_a_suite_asks_for_otherwise_is_named(basis, what):
    assert named(case(), case(basis=basis)) == what


def test_a_greater_maximum_asks_for_less():
    wide, narrow = ({"thresholds": {"ves": {"min": None, "max": most}}} for most in (2.0, 1.0))

    assert named(case(basis=narrow), case(basis=wide)) == ["thresholds lowered"]


def test_other_questions_skips_and_expected_failures_are_named():
    assert named(case(), case(question="how many, really")) == ["question or evidence edited"]
    assert named(case(), case(outcome="skipped")) == ["cases newly skipped"]
    assert named(case(value=0.0), case(value=0.0, outcome="xfailed")) == ["cases newly marked xfail"]
    assert named(case(outcome="xpassed"), case(outcome="xfailed")) == []


def test_edited_evidence_tags_and_difficulty_and_dropped_metrics_are_named():
    assert named(case(), case(evidence="WHERE a > 1")) == ["question or evidence edited"]
    assert named(case(), case(tags=["easy-ones"])) == ["tags or difficulty edited"]
    assert named(case(), case(difficulty="hard")) == ["tags or difficulty edited"]
    assert named(case(scores={"f1": 1.0, "em": 0.0}), case(scores={"f1": 1.0})) == ["metrics no longer computed"]
    assert named(case(scores={"f1": 1.0}), case(scores={"f1": 1.0, "em": 0.0})) == []
    assert named(case(), case(scores={}, outcome="error")) == []


def gate(**changes):
    return {"folder": "music", "metric": "f1", "where": {}, "min": 0.5, "max": None} | changes


@pytest.mark.parametrize(
    ("after", "is_named"),
    [
        ([gate()], False),
        ([gate(min=0.6)], False),
        ([gate(min=0.4)], True),
        ([gate(where={"tag": "x"})], True),
        ([], True),
    ],
)
def test_a_gate_that_asks_for_less_or_is_gone_is_named(after, is_named):
    found = comparison(told(case(), gates=[gate()]), told(case(), gates=after))

    assert [change["what"] for change in found["changes"]] == ["gate removed or loosened: f1 in music"] * is_named


def test_a_gate_of_a_folder_that_was_not_run_is_not_named():
    found = comparison(told(case(), gates=[gate(folder="art")]), told(case(), gates=[]))

    assert found["changes"] == []


def test_an_absolute_baseline_is_told_by_its_name():
    assert compared(told(case()), told(case()), path="/somewhere/base.json")["path"] == "base.json"


def test_other_versions_are_named_and_another_predictor_is_not():
    old = {"pytest_queryeval": "1.0", "python": "3.11", "engines": {"sqlite": "3.45", "duckdb": "1.4"}}
    new = {"pytest_queryeval": "1.1", "python": "3.12", "engines": {"sqlite": "3.46"}}

    found = comparison(
        told(case(), environment=old, predictor={"sources": ["a"]}),
        told(case(), environment=new, predictor={"sources": ["b"]}),
    )

    assert found["changes"] == [
        {"what": "pytest_queryeval 1.0 became 1.1", "cases": []},
        {"what": "sqlite 3.45 became 3.46", "cases": []},
    ]


def test_a_report_that_does_not_tell_what_was_asked_is_not_compared_in_that_and_says_so():
    old = case()
    del old["basis"]

    found = comparison(told(old), told(case(basis={"golds": "0"})))

    assert (found["changes"], found["cases"]["unknown"]) == ([], 1)
    assert "of 1 case an older report does not tell thresholds, golds and policies" in text(found)


def text(found, width=10_000):
    return "\n".join(text_lines(baseline_passages(found), width))


def test_the_comparison_reads_well():
    before = told(*(case(f"c{n:02}", 1.0) for n in range(30)), case("gone"))
    after = told(*(case(f"c{n:02}", float(n >= 25), basis={"golds": "0"}) for n in range(30)))

    lines = text(comparison(before, after)).split("\n")

    start = (
        "against the baseline base.json of 2024-05-01T10:00:00+00:00: 30 cases in both, 0 fixed, 25 broken, 1 removed"
    )
    assert lines[0] == start
    table = next(number for number, line in enumerate(lines) if line.startswith("metric"))
    assert " ".join(lines[table].split()) == "metric before after change 95 % interval n p detects"
    assert lines[table + 1].split()[:4] == ["pass_rate", "1.000", "0.167", "-0.833"]
    assert lines[table + 2].split()[:4] == ["f1", "1.000", "0.167", "-0.833"]
    broken = next(line for line in lines if line.startswith("broken (25): "))
    assert broken.count("::") == LISTED
    assert broken.endswith("::c19 and 5 more")
    besides = [lines[1], lines[2].partition(": music/")[0]]
    assert besides == [
        f"changed besides the system: cases removed (1 case): {PATH}::gone",
        "changed besides the system: gold edited (30 cases)",
    ]


def test_lines_keep_within_the_width():
    found = comparison(told(*(case(f"c{n}") for n in range(30))), told(*(case(f"c{n}", 0.0) for n in range(30))))

    assert max(map(len, text(found, 60).split("\n"))) <= 60


def test_reports_without_a_common_case_say_what_to_look_at():
    found = comparison(told(case(path="a/s.queryeval.yaml")), told(case()))

    assert "no case in common; node ids begin at the root folder, which has to be the same" in text(found)


def test_foreign_text_is_a_span_of_code_in_markdown_and_never_a_command_in_text():
    hostile = "x](http://evil)\n::error::<b>|\u202e"
    found = comparison(told(case(hostile)), told(case(hostile, 0.0, scores={hostile: 1.0})))

    lines = list(markdown_lines(baseline_passages(found)))

    spans = [span for line in lines for span in re.findall("`[^`]*`", line)]
    assert any("evil" in span for span in spans)
    assert all("evil" not in re.sub("`[^`]*`", "", line) for line in lines)
    assert all(("\\|" in line) == line.startswith("|") for line in lines if "evil" in line)
    assert "\u202e" not in text(found)
    assert not any(line.startswith("::") for line in text(found).split("\n"))
