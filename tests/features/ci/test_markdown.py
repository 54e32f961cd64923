"""report.md: what it says, and that foreign text in it stays text."""

import json
import re

import pytest
from samples import FINGERPRINT, HEAD, entry

from pytest_queryeval.features.ci.markdown import (
    MAX_BYTES,
    MAX_COMMENT_BYTES,
    MAX_LISTED,
    REST,
    markdown_within,
    render_markdown,
)
from pytest_queryeval.languages.sql.match import COMPONENTS
from pytest_queryeval.reports.blocks import code_span, text_lines
from pytest_queryeval.reports.sections import MAX_EXAMPLES, MAX_NAMES, baseline_blocks
from pytest_queryeval.results.aggregation import aggregate
from pytest_queryeval.results.baseline.comparison import compare_reports

GATE = {"type": "limits", "folder": "sql", "metric": "m", "where": {}, "min": 0.5, "max": None}
GATE |= {"value": 0.25, "n": 4, "cases": 4, "ran": 4, "reason": ""}
PAIR = {
    "hardness": "hard",
    "exact": True,
    "components": {name: [1, 1, 1] for name in COMPONENTS},
}


def verdict_of(text):
    """The line of the verdict, which is below the heading."""
    return text.split("\n")[2]


def shown(*cases, gates=()):
    defaults = [{"message": ""} | case | {"nodeid": f"a::{case['id']}"} for case in cases]
    return render_markdown(aggregate(defaults, gates=[{"errors": 0} | gate for gate in gates], about=HEAD)).decode()


def test_verdict_comes_first_with_the_rule_that_decided():
    good, bad = entry(id="good"), entry(id="bad", outcome="failed")
    missed = "`m in sql: 0.250, needs at least 0.5 (4 cases)`"

    first_lines = [
        verdict_of(shown(*cases, gates=gates))
        for cases, gates in [
            ([good], []),
            ([good], [GATE | {"ok": True}, GATE | {"ok": None}]),
            ([good, bad], []),
            ([good], [GATE | {"ok": False}, GATE | {"ok": False}]),
        ]
    ]

    assert first_lines == [
        "**PASSED: 1 case: 1 passed** (no case failed, no gate is set)",
        "**PASSED: 1 case: 1 passed** (no case failed, 1 gate met, 1 gate not evaluated)",
        "**FAILED: 2 cases: 1 passed, 1 failed** (1 case failed)",
        f"**FAILED: 1 case: 1 passed, 2 gates missed** (gate missed: {missed} and 1 more)",
    ]


def named(name, *paths):
    about = HEAD | {"name": name, "requested_paths": {"paths": list(paths), "ignored": []}}
    return render_markdown(aggregate([entry()], gates=(), about=about)).decode()


@pytest.mark.parametrize(
    ("paths", "place"),
    [
        ((".",), ""),
        ((), ""),
        (("queries/sql",), " in `queries/sql`"),
        (("a", "b", "c", "d", "e"), " in `a`, `b`, `c` and 2 more"),
    ],
)
def test_the_heading_has_the_name_of_the_run_and_what_it_ran(paths, place):
    assert named("bot at 1a2b3c4", *paths).partition("\n")[0] == f"## `bot at 1a2b3c4`{place}"
    assert named("", *paths).partition("\n")[0] == f"## Query evaluation{place}"


@pytest.mark.parametrize("hostile", ["<b>@team</b>", "a\n# [x](http://x.org)", "``a`", "a\r\n::error::b"])
def test_a_name_is_no_markup_of_the_heading(hostile):
    heading, empty, verdict, *_ = named(hostile, hostile).split("\n")

    assert (empty, verdict.partition(":")[0]) == ("", "**PASSED")
    assert heading == f"## {code_span(hostile)} in {code_span(hostile)}"


def test_the_pass_rate_has_its_interval_and_is_left_out_where_nothing_counts():
    assert "\nPass rate **100 %** (95 % interval 20.7 to 100)\n" in shown(entry())
    assert "Pass rate" not in shown(entry(outcome="skipped"))


def test_causes_are_counted_without_a_baseline_and_compared_with_one():
    def wrong(id_, label):
        return entry(
            id=id_,
            outcome="failed",
            cause={"edits": [{"label": label, "clause": "", "change": ""}], "repaired_query": None},
        )

    before, after = (wrong("a", "wrong-value"), wrong("b", "nesting")), (wrong("a", "nesting"), wrong("b", "nesting"))
    report = aggregate(after, gates=[], about=HEAD)
    baseline = compare_reports(aggregate(before, gates=[], about=HEAD), report, path="base.json")

    assert "\ncauses of wrong answers: `nesting` 2\n" in shown(*after)
    changed = "causes of wrong answers: `nesting` 1 → 2, `wrong-value` 1 → 0"
    assert f"\n{changed}\n" in render_markdown(aggregate(after, gates=[], about=HEAD | {"baseline": baseline})).decode()
    assert changed.replace("`", "") in [*text_lines(baseline_blocks(baseline), 100)]


def test_right_answers_that_depend_on_a_tie_are_counted():
    text = shown(entry(id="a"), entry(id="b", depends_on_tie=True))

    assert "\n- 1 right answer depends on a tie at gold's LIMIT, which a wrong query may hit: `a::b`\n" in text


def test_right_answers_that_fail_on_a_variant_and_golds_without_rows_are_counted_and_named():
    by_accident = {"execution_accuracy": 1.0, "test_suite_accuracy": 0.0}
    text = shown(
        entry(id="a", scores=by_accident),
        entry(id="b", scores=by_accident | {"test_suite_accuracy": 1.0}, details={"empty_gold": True}),
    )

    assert "\n- 1 gold without rows, so any empty answer passes: `a::b`\n" in text
    assert "\n- 2 right by execution_accuracy, of these 1 wrong on a variant of the source: `a::a`\n" in text


@pytest.mark.parametrize(
    ("about", "verdict"),
    [
        (
            {"unreadable_files": ["a.queryeval.yaml"]},
            "**FAILED: 1 case: 1 passed, 1 suite file with errors** (`a.queryeval.yaml` could not be read)",
        ),
        ({"stopped": True}, "**INTERRUPTED: 1 case: 1 passed** (the run was stopped)"),
    ],
)
def test_a_run_that_is_not_whole_never_passes(about, verdict):
    report = aggregate([entry(nodeid="a::a", message="")], gates=(), about=HEAD | about)

    assert verdict_of(render_markdown(report).decode()) == verdict


def test_characters_that_turn_or_hide_text_are_escaped():
    bad = entry(id="bad\u202e", outcome="failed", message="a\u202eb\u2066c\u200bd\U000e0041")

    text = shown(bad)

    assert r"`a\u202eb\u2066c\u200bd\U000e0041`" in text
    assert r"`a::bad\u202e`" in text
    assert not set(text) & set("\u202e\u2066\u200b\U000e0041")


def test_a_run_without_evaluated_cases_never_passes():
    assert verdict_of(shown()).startswith("**NO VERDICT: 0 cases: none ran**")
    assert verdict_of(shown(entry(outcome="skipped"))).startswith("**NO VERDICT: 1 case: 1 skipped**")


def test_gates_metrics_groups_and_faults_are_listed():
    cases = (
        entry(id="one", difficulty="easy", scores={"m": 1.0}),
        entry(id="two", difficulty="hard", scores={"m": 0.0}, outcome="failed", message="m 0.000"),
    )

    text = shown(*cases, gates=[GATE | {"ok": False}])

    assert "- gate **missed**: `m in sql: 0.250, needs at least 0.5 (4 cases)`" in text
    assert "| `m` | 0.500 | 0.095 to 0.905 | 2 | - |" in text
    assert "| `easy` | 1 | 1 | 1.000 |\n| `hard` | 1 | 0 | 0.000 |" in text
    assert "| `a::two` | failed | `m 0.000` |" in text
    assert "`a::one`" not in text


def test_missed_gates_come_first_and_those_that_are_met_last():
    gates = [GATE | {"ok": True}, GATE | {"ok": None, "reason": "gates are off"}, GATE | {"ok": False}]

    text = shown(entry(), gates=gates)

    assert re.findall(r"^- gate (.+?): ", text, re.MULTILINE) == ["**missed**", "not evaluated", "met"]


def test_the_worst_cases_come_first_whatever_their_place_in_their_file():
    text = shown(
        entry(id="fair", line=1, outcome="failed", scores={"m": 0.9}),
        entry(id="good", line=2, scores={"m": 0.1}),
        entry(id="expected", line=3, outcome="missed", scores={"m": 0.2}),
        entry(id="poor", line=4, outcome="failed", scores={"m": 0.2, "n": None}),
        entry(id="broken", line=5, outcome="error"),
    )

    assert re.findall(r"^\| `a::(\w+)`", text, re.MULTILINE) == ["broken", "poor", "expected", "fair"]


def test_groups_dimensions_and_the_table_of_spider_are_folded():
    dimension = {"precision": 1.0, "recall": 0.5}
    text = shown(
        entry(id="a", kind="sdmx", tags=["one"], details={"dimensions": {"FREQ": dimension}}),
        entry(id="b", difficulty="easy", details={"spider": PAIR}, scores={"exact_set_match_spider": 1.0}),
        entry(id="c", difficulty="hard", tags=["two"]),
    )

    folded = re.findall(r"<details>\n<summary>(.+)</summary>\n\n(?:.+\n|\n)+?</details>", text)
    assert folded == ["metrics", "by difficulty", "by tag", "by kind", "Spider's table", "SDMX dimensions"]
    assert "| `FREQ` | 1.000 | 1 | 0.500 | 1 |" in text


def test_the_table_of_spider_stands_as_the_published_tool_prints_it():
    text = shown(entry(details={"spider": PAIR}, scores={"exact_set_match_spider": 1.0, "execution_accuracy": 1.0}))

    table = re.search(r"```text\n(.*)```", text, re.DOTALL)[1]
    assert re.search(r"^exact match +0\.000 +0\.000 +1\.000 +0\.000 +1\.000$", table, re.MULTILINE)


def long_report(number=10_000, **changes):
    """A report in which everything is long: cases, messages, tags, metrics, gates; no text of it is ASCII."""
    cases = [
        entry(id=str(place), line=place, outcome="error", tags=[f"é{place}" * 20], scores={f"é{place % 99}": 0.5})
        | {"nodeid": f"é::{place}", "message": "é" * 5_000}
        | changes
        for place in range(number)
    ]
    gates = [GATE | {"errors": 0, "ok": place % 2 > 0, "folder": f"é{place}" * 20} for place in range(number // 10)]
    return aggregate(cases, gates=gates, about=HEAD)


@pytest.fixture(scope="module")
def longest():
    return long_report()


@pytest.fixture(scope="module")
def longest_text(longest):
    return render_markdown(longest).decode()


@pytest.mark.long
def test_a_report_of_many_cases_keeps_within_900_kib_and_fills_them(longest_text):
    assert 800 * 1024 < len(longest_text.encode()) <= MAX_BYTES


@pytest.mark.long
def test_what_matters_most_fits_a_comment_and_is_whole(longest_text):
    head = longest_text.partition(REST)[0]

    assert 20_000 < len(head.encode()) <= MAX_COMMENT_BYTES
    assert head.count("<details>") == head.count("</details>") > 0
    assert head.count("| error |") >= 20
    assert head.index("gate **missed**") < head.index("| case |") < head.index("| metric |")


@pytest.mark.long
def test_every_list_that_is_cut_says_how_much_is_missing(longest_text):
    head, _, tail = longest_text.partition(REST)

    count = head.count("| error |")
    assert f"\n\n… and {10_000 - count:,} more\n" in head
    assert f"The other {10_000 - count:,} cases that did not pass:" in tail
    assert f"\n\n… and {10_000 - count - tail.count('| error |'):,} more\n" in tail
    assert f"\n\n… and {1_000 - head.count('- gate '):,} more\n" in head


def test_a_list_that_is_not_cut_says_nothing_of_the_kind():
    cases = [entry(id=str(place), line=place, outcome="failed", message="m") for place in range(MAX_LISTED)]

    text = shown(*cases)

    assert text.count("| failed |") == MAX_LISTED
    assert "more" not in text
    assert REST not in text


def test_all_cases_that_did_not_pass_are_told_where_there_is_room():
    text = shown(*(entry(id=str(place), line=place, outcome="failed", message="m") for place in range(MAX_LISTED + 7)))

    head, _, tail = text.partition(REST)
    assert (head.count("| failed |"), tail.count("| failed |")) == (MAX_LISTED, 7)


@pytest.mark.long
@pytest.mark.parametrize("room", [4_096, 10_000, 100_000])
def test_a_report_keeps_within_the_room_that_there_is(longest, room):
    content = markdown_within(longest, room)

    assert len(content) <= room
    assert verdict_of(content.decode()).startswith("**FAILED: 10,000 cases")


@pytest.mark.long
def test_what_had_no_room_at_all_is_named(longest):
    assert re.search(r"^No room for: .*by tag", markdown_within(longest, 4_096).decode(), re.MULTILINE)


def flipping(nodeid, score, **fingerprint):
    """A case that passes with the score 1, and fails with 0."""
    defaults = {
        "id": nodeid,
        "nodeid": nodeid,
        "question": "",
        "scores": {"m": score},
        "fingerprint": FINGERPRINT | {"golds": "0"} | fingerprint,
    }
    return entry(**defaults, outcome="passed" if score else "failed", message="")


def against_baseline(before, after, **versions):
    """The report of a run with the cases `after`, compared with one with the cases `before`."""
    old, new = (
        HEAD | {"created": "2024-01-01T00:00:00+00:00", "environment": {"pytest_queryeval": version}}
        for version in ("1.0", versions.get("version", "1.0"))
    )
    changes = compare_reports(
        aggregate(before, gates=(), about=old), aggregate(after, gates=(), about=new), path="main.json"
    )
    return aggregate(after, gates=(), about=new | {"baseline": changes})


def test_metrics_show_their_change_against_the_baseline():
    before = [flipping("a", 1.0), flipping("b", 1.0)]
    after = [flipping("a", 0.0), flipping("b", 1.0) | {"scores": {"m": 1.0, "n": 1.0}}]

    text = render_markdown(against_baseline(before, after)).decode()

    assert "| `m` | 0.500 | -0.500 |" in text
    assert "| `n` | 1.000 | new |" in text


def test_what_changed_besides_the_system_is_named_before_figures_and_lists():
    before = [flipping("b|c", 1.0), flipping("d", 0.0), flipping("gone", 1.0)]
    after = [flipping("b|c", 0.0, golds="1"), flipping("d", 1.0, golds="1")]

    text = render_markdown(against_baseline(before, after, version="1.1")).decode()

    sentences = [
        "## ",
        "**FAILED: ",
        "Pass rate **50.0 %** (95 % interval 9.5 to 90.5), 0.0 points in 2 cases of the baseline\n",
        "against the baseline `main.json`",
        "- regressions (1): `b|c`\n- fixes (1): `d`\n",
        "- changed besides the system: `cases removed` (1 case): `gone`\n",
        "- changed besides the system: `gold edited` (2 cases): `b|c`, `d`\n",
        "- changed besides the system: `pytest_queryeval 1.0 became 1.1`\n\n| case |",
        "| `b\\|c` | failed |",
        "<summary>metrics</summary>\n\n| metric | mean |",
        "<summary>changes of metrics</summary>\n\n| metric | before |",
        f"|\n|{9 * '---|'}\n| `pass_rate` | 0.500 |",
        "| `m` | 0.500 | 0.500 |",
    ]
    places = [text.index(part) for part in sentences]
    assert places == sorted(places)
    assert all(line.startswith("|") for line in text.splitlines() if "\\|" in line)


def test_a_comparison_without_any_difference_is_told_all_the_same():
    text = render_markdown(against_baseline([flipping("a", 1.0)], [flipping("a", 1.0)])).decode()

    assert (
        "against the baseline `main.json` of `2024-01-01T00:00:00+00:00`: 1 case in both, 0 fixes, 0 regressions"
        in text
    )
    assert "changed besides" not in text


@pytest.fixture(scope="module")
def much_changed():
    """10,000 cases, half of which changed sides, and of which much else changed."""
    before = [flipping(f"music/s.queryeval.yaml::singers-{n}", float(n % 4 < 2)) for n in range(10_000)]
    after = [
        flipping(case["nodeid"], float(n % 4 in (1, 2)), golds=str(n % 3), on_miss="xfail" * (n % 5), trials=n % 2)
        for n, case in enumerate(before[:-1])
    ]
    return against_baseline(before, after, version="1.1")


@pytest.mark.long
def test_many_flips_and_changes_leave_room_for_everything_else(much_changed):
    text = render_markdown(much_changed).decode()
    head, _, tail = text.partition(REST)

    assert (len(head) < MAX_COMMENT_BYTES, len(text.encode()) <= MAX_BYTES) == (True, True)
    assert "No room for" not in text
    assert head.index("- changed besides") < head.index("| case |") < head.index("| metric | mean |")
    assert head.count("- changed besides the system: ") == len(much_changed["baseline"]["changes"]) == 5
    assert f" and {6_666 - MAX_EXAMPLES:,} more\n" in head
    assert f" and {2_500 - MAX_NAMES:,} more\n" in head
    assert head.count("| failed |") == MAX_LISTED
    assert tail.count("| failed |") > 4_000


def test_flips_of_the_longest_names_are_told():
    names = [f"{n:03}{'é' * 400}" for n in range(100)]

    text = render_markdown(against_baseline([flipping(n, 1.0) for n in names], [flipping(n, 0.0) for n in names]))

    assert f" and {100 - MAX_NAMES} more\n" in text.decode()


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
    span = code_span(hostile, cell=True)

    fence = re.match("`+", span)[0]
    assert span.endswith(fence)
    assert re.findall(r"`+", span[len(fence) : -len(fence)]).count(fence) == 0
    assert not re.search(r"(?<!\\)\||[\n\x1b]", span)


def test_text_that_is_no_utf8_is_written_all_the_same():
    assert b"\\udc80" in render_markdown(
        aggregate([entry(nodeid="a::\udc80", outcome="error", message="")], gates=(), about=HEAD)
    )


def test_text_of_nothing_is_no_span():
    assert code_span(" \n ") == ""


def test_names_of_groups_metrics_and_gates_are_spans_of_code():
    hostile = "<b>@team</b>"
    cases = [entry(id="a", difficulty=hostile, scores={hostile: 1.0}), entry(id="b", difficulty="easy")]

    text = shown(*cases, gates=[GATE | {"ok": False, "metric": hostile}])

    assert text.count(hostile) > 3
    assert hostile not in re.sub(r"`[^`]*`", "", text)


@pytest.mark.long
def test_the_same_report_is_rendered_to_the_same_bytes(longest, longest_text):
    assert longest_text == render_markdown(json.loads(json.dumps(longest))).decode()


def test_the_table_of_cases_tells_why_they_failed():
    text = shown(entry(id="a", outcome="missed", message="m 0.000: the same rows, in another order\nmore"))

    assert "| missed | `m 0.000: the same rows, in another order` |" in text
