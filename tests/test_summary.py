"""The report in short: what a terminal of any width shows of it."""

import re

import pytest
from report_maker import plain_report, with_baseline
from samples import entry

from pytest_queryeval.reports.summary import (  # white box: terminals of any width, and cases that no suite gives
    MAX_LISTED,
    MAX_ROWS,
    missed_gate_lines,
    summary_lines,
    verdict_line,
)

GATE = {"type": "limits", "folder": "sql", "metric": "m", "where": {}, "min": 0.5, "max": None}
GATE |= {"value": 0.25, "n": 4, "cases": 4, "ran": 4, "reason": ""}
NUMBER = re.compile(r"(?<![\w.])\d\.\d{3}(?![\w.])")


def report_of(*cases, gates=(), **about):
    defaults = [
        {"message": "", **dict.fromkeys(("gold", "predicted", "prediction"))} | case | {"nodeid": f"a::{case['id']}"}
        for case in cases
    ]
    return plain_report(*defaults, gates=[{"errors": 0} | gate for gate in gates], **about)


def summary(*cases, width=80, verbosity=0, command="pytest", **about):
    lines = summary_lines(report_of(*cases, **about), width=width, verbosity=verbosity, command=command)
    return [line for line, _ in lines]


def many_metrics(number=30):
    scores = {f"metric_of_some_length_{place}": 0.5 for place in range(number)}
    return [entry(id=str(place), tags=[f"tag-{place % 3}"], scores=scores) for place in range(6)]


def column(lines, header):
    """The names that stand below a header, up to the next empty line."""
    start = next(place for place, line in enumerate(lines) if line.startswith(header))
    names = []
    for line in lines[start + 1 :]:
        if not line or line.startswith("…"):
            return names
        names.append(line.split()[0])
    return names


@pytest.mark.long
@pytest.mark.parametrize("width", [40, 80, 200])
def test_tables_keep_within_the_width_of_the_terminal_and_no_number_is_broken(width):
    cases = *many_metrics(), entry(id="x" * 300, outcome="failed")

    wide, narrow = (summary(*cases, width=columns, verbosity=1) for columns in (10_000, width))

    assert max(map(len, [*narrow, *summary(*cases, width=width)])) <= width
    assert sorted(NUMBER.findall("\n".join(narrow))) == sorted(NUMBER.findall("\n".join(wide)))


def test_the_metrics_that_matter_most_are_those_that_groups_show():
    scores = {f"other_metric_{place}": 1.0 for place in range(9)} | {"missed": 0.0, "gated": 1.0}
    violations = [{"metric": "missed", "min": 1.0, "max": None, "value": 0.0}]
    cases = [entry(id=str(place), tags=[f"t{place}"], scores=scores, violations=violations) for place in range(2)]

    lines = summary(*cases, gates=[GATE | {"metric": "gated", "ok": True}])

    header = next(line for line in lines if line.startswith("tag"))
    assert header.split()[:5] == ["tag", "cases", "passed", "gated", "missed"]
    left = 11 - (len(header.split()) - 3)
    assert f"… {left} metrics more: -v, or a report" in lines


def test_verbosity_shows_every_metric_of_a_group_in_blocks():
    lines = summary(*many_metrics(), verbosity=1)

    headers = [line for line in lines if line.startswith("tag ")]
    names = [name for header in headers for name in header.split() if name.startswith("metric_of")]
    assert len(headers) > 1
    assert len(names) == len(set(names)) == 30


def test_a_long_table_of_groups_is_cut_unless_all_is_asked_for():
    cases = [entry(id=str(place), tags=[f"tag-{place:03}"]) for place in range(MAX_ROWS + 5)]

    usual, full_summary = summary(*cases), summary(*cases, verbosity=1)

    assert len(column(usual, "tag")) == MAX_ROWS
    assert "… 5 tags more: -v, or a report" in usual
    assert len(column(full_summary, "tag")) == MAX_ROWS + 5


def test_cases_of_a_second_or_more_are_slow_by_their_call_and_their_scoring():
    prediction = {"source": "bot", "seconds": 0.5, "metadata": {}}
    quick, slow = (entry(id=str(n), prediction=prediction, scoring={"seconds": n}) for n in (0.49, 7.7))

    assert "slowest cases" not in summary(slow)
    assert summary(quick, slow, verbosity=1)[-2:] == ["slowest cases", "      8.20 s  a::7.7"]


def test_quiet_tells_metrics_worst_cases_and_gates_that_are_not_met():
    cases = [entry(id="a", tags=["x"], scores={"m": 1.0}), entry(id="b", tags=["y"], outcome="failed")]
    gates = [GATE | {"ok": True}, GATE | {"ok": True}, GATE | {"ok": False, "metric": "n"}]

    text = "\n".join(summary(*cases, gates=gates, verbosity=-1))

    assert "metric  " in text
    assert "worst cases (1 of 1)" in text
    assert "gate MISSED: n in sql is 0.250 (4 cases); this gate needs at least 0.5" in text
    assert "2 gates met" in text
    assert not re.search("^tag|gate met: ", text, re.MULTILINE)


@pytest.mark.parametrize("verbosity", [1, 0, -1])
def test_quiet_tells_of_a_baseline_how_many_cases_flipped_and_what_changed_besides(verbosity):
    def report(score, **changes):
        cases = [
            entry(id=name, nodeid=f"a::{name}", question="", scores={"m": score}, outcome=outcome)
            for name, outcome in changes.items()
        ]
        return plain_report(*cases)

    compared = with_baseline(report(0.0, a="failed"), report(1.0, a="passed", gone="passed"))["baseline"]
    text = "\n".join(summary(entry(id="a"), verbosity=verbosity, width=200, baseline=compared))

    assert "1 case in both, 0 fixes, 1 regression, 1 removed" in text
    assert "changed besides the system: cases removed (1 case): a::gone" in text
    assert ("regressions (1): a::a" in text) == (verbosity >= 0)
    assert ("pass_rate 1.000 → 0.000 (-1.000" in text) == (verbosity == 0)
    assert ("detects" in text) == (verbosity == 1)


def verdict(*cases, **about):
    line, markup = verdict_line(report_of(*cases, **about))
    return line, next(iter(markup))


def test_the_verdict_is_the_rule_that_decided_in_the_colour_of_its_state():
    missed, met, unknown = (GATE | {"ok": ok} for ok in (False, True, None))
    unknown |= {"reason": "4 of 40 cases ran", "cases": 40}
    failed, text = entry(outcome="failed"), "m in sql: 4 of 40 cases ran"
    remedy = "-o queryeval_gates=selection evaluates gates on the cases that ran"

    assert verdict(entry(), gates=[missed, met]) == (
        "queryeval: FAILED: gate missed: m in sql is 0.250 (needs at least 0.5)",
        "red",
    )
    assert verdict(failed, gates=[unknown]) == ("queryeval: FAILED: 1 case failed", "red")
    assert verdict(entry(), gates=[met, unknown]) == (
        "queryeval: PASSED: 1 case: 1 passed (no case failed, 1 gate met, 1 gate not evaluated)",
        "green",
    )
    assert verdict(entry(), gates=[unknown, unknown]) == (
        f"queryeval: NO VERDICT: none of 2 gates could be evaluated: {text}; {remedy}",
        "yellow",
    )
    assert verdict(entry(outcome="skipped")) == (
        "queryeval: NO VERDICT: no case was evaluated; -rs shows why cases were skipped",
        "yellow",
    )


def test_the_verdict_of_a_run_that_did_not_come_to_its_end_says_so():
    ended = {"collected": {"a": 9}, "stopped": True}

    assert verdict(entry(), **ended) == ("queryeval: INTERRUPTED: 1 of 9 cases: 1 passed (the run was stopped)", "red")
    assert verdict(entry(outcome="failed"), **ended) == ("queryeval: FAILED: 1 case failed; the run was stopped", "red")
    assert verdict(entry(outcome="failed"), **ended, interrupted=True) == (
        "queryeval: INTERRUPTED: 1 of 9 cases: 1 failed (the run was interrupted; 1 case failed)",
        "red",
    )


@pytest.mark.parametrize("verbosity", [-1, 0, 1])
def test_foreign_text_moves_no_cursor_and_starts_no_line(verbosity):
    hostile = "a\x1b[2J\n::error::\u202eb"
    cases = [
        entry(
            id=f"{hostile}{number}",
            path=hostile,
            difficulty=f"{hostile}{number}",
            tags=[hostile, "other"],
            outcome="error",
            message=hostile,
            scores={hostile: 0.5},
            prediction={"source": "bot", "seconds": 9.0, "metadata": {}},
            details={"empty_gold": True, "notes": [f": answered by {hostile}"]},
        )
        for number in range(2)
    ]

    report = report_of(
        *cases, gates=[GATE | {"ok": False, "folder": hostile}], unreadable_files=[hostile], name=hostile
    )
    lines = [line for line, _ in summary_lines(report, width=80, verbosity=verbosity)]
    lines += [line for line, _ in (*missed_gate_lines(report), verdict_line(report))]

    assert not [line for line in lines if re.search(r"[\x00-\x1f\u202e]|^::", line)]


def test_a_run_without_cases_has_a_summary_of_one_line():
    assert summary() == ["0 cases: none ran"]


def test_only_the_worst_cases_are_listed():
    lines = summary(*(entry(id=str(number), outcome="failed") for number in range(99)))

    assert f"worst cases ({MAX_LISTED} of 99)" in lines
    assert sum(line.startswith("  a::") for line in lines) == MAX_LISTED


def test_a_long_reason_of_a_worst_case_has_two_lines_below_the_case():
    why = "missing 2 of 40 rows, duplicates differ: 1 row more often; execution_accuracy 0.000 (needs at least 1)"
    case = entry(id="a-case-with-a-long-name", outcome="missed", message=why)

    lines = summary(case, width=50)

    assert lines[lines.index("worst cases (1 of 1)") + 1 :] == [
        "  a::a-case-with-a-long-name",
        "    missing 2 of 40 rows, duplicates differ: 1 row",
        "    more often; execution_accuracy 0.000 (needs …",
    ]


def test_errors_are_whole_where_nothing_else_shows_them():
    why = "source 'shop.db': /data/of/a/team/shop.db: no such file: correct the path"
    cases = [entry(id=outcome, outcome=outcome, message=why) for outcome in ("error", "missed")]
    error, missed = (["  a::error", "    source 'shop.db':"], ["  a::missed", "    source 'shop.db':"])
    rest = ["    /data/of/a/team/shop.db: no such file:", "    correct the path"]
    cut = ["    /data/of/a/team/shop.db: no such file: …"]

    assert summary(*cases, width=44)[-6:] == [*error, *cut, *missed, *cut]
    assert summary(*cases, width=44, command="evaluate")[-7:] == [*error, *rest, *missed, *cut]


def test_an_error_of_several_cases_is_listed_once():
    cases = [
        entry(id=f"q{n}", line=n, outcome="error", source="shop.db", message=f"gold of q{n} timed out after {n}.5 s")
        for n in range(9)
    ]
    other = entry(id="other", outcome="error", source="bikes.db", message="gold of other timed out after 1 s")

    lines = summary(*cases, other)

    assert lines[lines.index("worst cases (2 of 2)") + 1 :] == [
        "  a::q0  9 cases: gold of q0 timed out after 0.5 s",
        "  a::other  gold of other timed out after 1 s",
    ]


def test_the_report_of_many_cases_of_several_groups_fits_on_a_screen():
    cases = [
        entry(id=f"{n}", nodeid=f"a::{n}", tags=[f"t{n % 9}"], difficulty=("easy", "hard")[n % 2], outcome="failed")
        for n in range(300)
    ]

    lines = summary(*cases)

    assert "by tag: -v, or a report" in lines
    assert len(lines) <= 25


def test_the_worst_case_is_the_one_with_the_lowest_score_whatever_its_reason():
    lines = summary(
        *(entry(id=f"mild{n}", outcome="failed", scores={"m": 0.9}, message="wrong order") for n in range(5)),
        entry(id="worst", outcome="failed", scores={"m": 0.0}, message="no such column"),
    )

    assert lines[lines.index("worst cases (5 of 6)") + 1] == "  a::worst  no such column"


def test_groups_that_are_left_out_are_named_with_features_among_them():
    cases = [
        entry(id=str(at), difficulty=level, tags=[level], features=[level]) for at, level in enumerate(("easy", "hard"))
    ]

    lines = summary(*cases, width=100)

    assert "by tag and feature: -v, or a report" in lines
    assert "by tag, kind and feature: -v, or a report" in summary(*cases, entry(id="b", kind="json"), width=100)
