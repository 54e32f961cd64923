"""report.md: what it says, and that foreign text in it stays text."""

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
from pytest_queryeval.reports.blocks import code_span
from pytest_queryeval.reports.sections import MAX_EXAMPLES, MAX_NAMES
from pytest_queryeval.results.aggregation import aggregate
from pytest_queryeval.results.baseline.comparison import compare_reports

GATE = {"type": "limits", "folder": "sql", "metric": "m", "where": {}, "min": 0.5, "max": None}
GATE |= {"value": 0.25, "n": 4, "cases": 4, "ran": 4, "reason": ""}


def verdict_of(text):
    """The line of the verdict, which is below the heading."""
    return text.split("\n")[2]


def shown(*cases, gates=()):
    defaults = [{"message": ""} | case | {"nodeid": f"a::{case['id']}"} for case in cases]
    return render_markdown(aggregate(defaults, gates=[{"errors": 0} | gate for gate in gates], about=HEAD)).decode()


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


def test_characters_that_turn_or_hide_text_are_escaped():
    bad = entry(id="bad\u202e", outcome="failed", message="a\u202eb\u2066c\u200bd\U000e0041")

    text = shown(bad)

    assert r"`a\u202eb\u2066c\u200bd\U000e0041`" in text
    assert r"`a::bad\u202e`" in text
    assert not set(text) & set("\u202e\u2066\u200b\U000e0041")


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


def test_names_of_groups_metrics_and_gates_are_spans_of_code():
    hostile = "<b>@team</b>"
    cases = [entry(id="a", difficulty=hostile, scores={hostile: 1.0}), entry(id="b", difficulty="easy")]

    text = shown(*cases, gates=[GATE | {"ok": False, "metric": hostile}])

    assert text.count(hostile) > 3
    assert hostile not in re.sub(r"`[^`]*`", "", text)
