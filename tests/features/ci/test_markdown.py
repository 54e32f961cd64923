"""report.md: what it says, and that foreign text in it stays text."""

import re

import pytest
from report_maker import plain_report, with_baseline
from samples import FINGERPRINT, entry

from pytest_queryeval.features.ci import append_step_summary
from pytest_queryeval.reports import REPORTS

MAX_BYTES, MAX_COMMENT_BYTES = 900 * 1024, 60_000
MAX_LISTED, MAX_NAMES, MAX_EXAMPLES = 50, 20, 3  # cases in a comment; cases that changed sides, or were edited
MANY = 3_000  # cases, more than report.md has room for
REST = "<!-- all above fits a comment of GitHub -->"

GATE = {"type": "limits", "folder": "sql", "metric": "m", "where": {}, "min": 0.5, "max": None}
GATE |= {"value": 0.25, "n": 4, "cases": 4, "ran": 4, "reason": ""}


def markdown_of(report):
    return REPORTS["md"].render(report).decode()


def verdict_of(text):
    """The line of the verdict, which is below the heading."""
    return text.split("\n")[2]


def shown(*cases, gates=()):
    defaults = [{"message": ""} | case | {"nodeid": f"a::{case['id']}"} for case in cases]
    return markdown_of(plain_report(*defaults, gates=[{"errors": 0} | gate for gate in gates]))


def named(name, *paths):
    return markdown_of(plain_report(entry(), name=name, requested_paths={"paths": list(paths), "ignored": []}))


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


def text_of_span(span):
    """The text of a span of code, which ends it nowhere before its end."""
    fence = re.match("`*", span)[0]
    text = span.removeprefix(fence).removesuffix(fence)
    assert span == f"{fence}{text}{fence}" != text
    assert fence not in re.findall("`+", text)
    return text.strip()


@pytest.mark.parametrize("hostile", ["<b>@team</b>", "a\n# [x](http://x.org)", "``a`", "a\r\n::error::b"])
def test_a_name_is_no_markup_of_the_heading(hostile):
    heading, empty, verdict, *_ = named(hostile, hostile).split("\n")

    assert (empty, verdict.partition(":")[0]) == ("", "**PASSED")
    name, place = heading.removeprefix("## ").split(" in ")
    assert text_of_span(name) == text_of_span(place) == " ".join(hostile.split())


def test_characters_that_turn_or_hide_text_are_escaped():
    bad = entry(id="bad\u202e\udc80", outcome="failed", message="a\u202eb\u2066c\u200bd\U000e0041")

    text = shown(bad)

    assert r"`a\u202eb\u2066c\u200bd\U000e0041`" in text
    assert r"`a::bad\u202e\udc80`" in text
    assert not set(text) & set("\u202e\u2066\u200b\U000e0041")


def long_report(number=MANY, **changes):
    """A report in which everything is long: cases, messages, tags, metrics, gates; no text of it is ASCII."""
    cases = [
        entry(id=str(place), line=place, outcome="error", tags=[f"é{place}" * 20], scores={f"é{place % 99}": 0.5})
        | {"nodeid": f"é::{place}", "message": f"é{place}" * 1_000}
        | changes
        for place in range(number)
    ]
    gates = [GATE | {"errors": 0, "ok": place % 2 > 0, "folder": f"é{place}" * 20} for place in range(number // 10)]
    return plain_report(*cases, gates=gates)


@pytest.fixture(scope="module")
def longest():
    return long_report()


@pytest.fixture(scope="module")
def longest_text(longest):
    return markdown_of(longest)


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
    assert f"\n\n… and {MANY - count:,} more\n" in head
    assert f"The other failed cases and errors ({MANY - count:,}):" in tail
    assert f"\n\n… and {MANY - count - tail.count('| error |'):,} more\n" in tail
    assert f"\n\n… and {MANY // 10 - head.count('- gate '):,} more\n" in head


def test_a_list_that_is_not_cut_says_nothing_of_the_kind():
    cases = [entry(id=str(place), line=place, outcome="failed", message="m") for place in range(MAX_LISTED)]

    text = shown(*cases)

    assert text.count("| failed |") == MAX_LISTED
    assert "more" not in text
    assert REST not in text


def summary_within(report, room, file):
    """The report in the summary of a step that has room for so many bytes."""
    before = b"x" * (2**20 - 2 - room)
    file.write_bytes(before)
    append_step_summary(report, file)
    return file.read_bytes().removeprefix(before + b"\n\n")


@pytest.mark.long
@pytest.mark.parametrize("room", [4_096, 10_000, 100_000])
def test_a_report_keeps_within_the_room_that_there_is(longest, room, tmp_path):
    content = summary_within(longest, room, tmp_path / "summary")

    assert room - 1_000 < len(content) <= room
    assert verdict_of(content.decode()).startswith(f"**FAILED: {MANY:,} cases")
    if room == 4_096:
        assert re.search(r"^No room for: .*metrics", content.decode(), re.MULTILINE)


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
    new, old = (
        plain_report(*cases, environment={"pytest_queryeval": version})
        for cases, version in ((after, versions.get("version", "1.0")), (before, "1.0"))
    )
    return with_baseline(new, old)


@pytest.fixture(scope="module")
def much_changed():
    """Many cases, half of which changed sides, and of which much else changed."""
    before = [flipping(f"music/s.queryeval.yaml::singers-{n}", float(n % 4 < 2)) for n in range(MANY)]
    after = [
        flipping(case["nodeid"], float(n % 4 in (1, 2)), golds=str(n % 3), on_miss="xfail" * (n % 5), trials=n % 2)
        for n, case in enumerate(before[:-1])
    ]
    return against_baseline(before, after, version="1.1")


@pytest.mark.long
def test_many_flips_and_changes_leave_room_for_everything_else(much_changed):
    text = markdown_of(much_changed)
    head, _, tail = text.partition(REST)

    assert (len(head) < MAX_COMMENT_BYTES, len(text.encode()) <= MAX_BYTES) == (True, True)
    assert "No room for" not in text
    assert head.index("- changed besides") < head.index("| case |") < head.index("| metric | mean |")
    assert head.count("- changed besides the system: ") == len(much_changed["baseline"]["changes"]) == 5
    assert f" and {MANY * 2 // 3 - 1 - MAX_EXAMPLES:,} more\n" in head
    assert f" and {MANY // 4 - MAX_NAMES:,} more\n" in head
    assert head.count("| failed |") == MAX_LISTED
    assert tail.count("| failed |") > 0.4 * MANY


def test_flips_of_the_longest_names_are_told():
    names = [f"{n:03}{'é' * 400}" for n in range(100)]

    text = markdown_of(against_baseline([flipping(n, 1.0) for n in names], [flipping(n, 0.0) for n in names]))

    assert f" and {100 - MAX_NAMES} more\n" in text


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
    text = shown(entry(id=hostile, outcome="failed", message=hostile))

    (row,) = [line for line in text.split("\n") if "| failed |" in line]
    _, case, _, finding, _ = (cell.strip().replace(r"\|", "|") for cell in re.split(r"(?<!\\)\|", row))
    one_line = " ".join(hostile.replace("\x1b", r"\x1b").split())
    assert text_of_span(case) == f"a::{one_line}"
    assert one_line.startswith(text_of_span(finding))


def test_names_of_groups_metrics_and_gates_are_spans_of_code():
    hostile = "<b>@team</b>"
    cases = [entry(id="a", difficulty=hostile, scores={hostile: 1.0}), entry(id="b", difficulty="easy")]

    text = shown(*cases, gates=[GATE | {"ok": False, "metric": hostile}])

    assert text.count(hostile) > 3
    assert hostile not in re.sub(r"`[^`]*`", "", text)
