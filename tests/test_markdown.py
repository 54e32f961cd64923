"""report.md: what it says, and that foreign text in it stays text."""

import re

import pytest
from samples import entry

from pytest_queryeval.aggregation import aggregate
from pytest_queryeval.reports.markdown import LISTED, code, render_markdown
from pytest_queryeval.sql.components import COMPONENTS

GATE = {"folder": "sql", "metric": "m", "where": {}, "min": 0.5, "max": None, "value": 0.25, "n": 4, "reason": ""}
PAIR = {
    "hardness": "hard",
    "exact": True,
    "components": {name: [1, 1, 1] for name in COMPONENTS},
}


def shown(*cases, gates=()):
    known = [{"nodeid": f"a::{case['id']}", "message": ""} | case for case in cases]
    return render_markdown(aggregate(known, gates=[{"errors": 0} | gate for gate in gates], about={})).decode()


def test_verdict_comes_first():
    good, bad = entry(id="good"), entry(id="bad", outcome="failed")

    assert shown(good).startswith("**Passed: 1 case: 1 passed**\n")
    assert shown(good, bad).startswith("**Failed: 2 cases: 1 passed, 1 failed**\n")
    assert shown(good, gates=[GATE | {"ok": False}]).startswith("**Failed: 1 case: 1 passed, 1 gate missed**\n")


@pytest.mark.parametrize(
    ("about", "verdict"),
    [
        ({"broken": ["a.queryeval.yaml"]}, "Failed: 1 case: 1 passed, 1 suite file could not be read"),
        ({"stopped": True}, "Stopped early: 1 case: 1 passed"),
    ],
)
def test_a_run_that_is_not_whole_never_passes(about, verdict):
    report = aggregate([entry(nodeid="a::a", message="")], gates=(), about=about)

    assert render_markdown(report).decode().startswith(f"**{verdict}**")


def test_characters_that_turn_or_hide_text_are_escaped():
    bad = entry(id="bad\u202e", outcome="failed", message="a\u202eb\u2066c\u200bd\U000e0041")

    text = shown(bad)

    assert r"`a\u202eb\u2066c\u200bd\U000e0041`" in text
    assert r"`a::bad\u202e`" in text
    assert not set(text) & set("\u202e\u2066\u200b\U000e0041")


def test_a_run_without_evaluated_cases_never_passes():
    assert shown().startswith("**Nothing evaluated: 0 cases: none ran**")
    assert shown(entry(outcome="skipped")).startswith("**Nothing evaluated: 1 case: 1 skipped**")


def test_gates_metrics_groups_and_faults_are_listed():
    cases = (
        entry(id="one", difficulty="easy", scores={"m": 1.0}),
        entry(id="two", difficulty="hard", scores={"m": 0.0}, outcome="failed", message="m 0.000"),
    )

    text = shown(*cases, gates=[GATE | {"ok": False}])

    assert "- gate **missed**: `m at least 0.5 in sql: 0.250 over 4`" in text
    assert "| m | 0.500 | 0.095 to 0.905 | 2 | 0 |" in text
    assert "| easy | 1 | 1 | 1.000 |\n| hard | 1 | 0 | 0.000 |" in text
    assert "| `a::two` | failed | `m 0.000` |" in text
    assert "`a::one`" not in text


def test_the_table_of_spider_stands_as_the_published_tool_prints_it():
    text = shown(entry(details={"spider": PAIR}, scores={"exact_set_match_spider": 1.0, "execution_accuracy": 1.0}))

    table = re.search(r"```text\n(.*)```", text, re.DOTALL)[1]
    assert re.search(r"^exact match +0\.000 +0\.000 +1\.000 +0\.000 +1\.000$", table, re.MULTILINE)


def test_a_long_list_of_faults_is_cut_and_says_so():
    text = shown(
        *(entry(id=f"c{number}", line=number, outcome="error", message="x" * 5000) for number in range(10_000))
    )

    assert text.count("| error |") == LISTED
    assert f"… and {10_000 - LISTED:,} more" in text
    assert len(text) < 100_000


@pytest.mark.parametrize(
    "hostile",
    [
        "<script>alert(1)</script>",
        "a | b",
        "`tick`",
        "``two``",
        "[x](javascript:1)",
        "@team",
        "a\n\n# b\n::error::",
        "\x1b[31m",
    ],
)
def test_foreign_text_is_one_span_of_code_in_one_cell(hostile):
    span = code(hostile)

    fence = re.match("`+", span)[0]
    assert span.endswith(fence)
    assert re.findall(r"`+", span[len(fence) : -len(fence)]).count(fence) == 0
    assert not re.search(r"(?<!\\)\||[\n\x1b]", span)


def test_text_that_is_no_utf8_is_written_all_the_same():
    assert b"\\udc80" in render_markdown(
        aggregate([entry(nodeid="a::\udc80", outcome="error", message="")], gates=(), about={})
    )
