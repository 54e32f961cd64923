"""report.md for pull requests and step summaries: verdict, gates, changes, the worst cases, and metrics.

The most important parts come first and fit a comment. Untrusted text appears only in code spans.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pytest_queryeval.core.case_report import CaseReport
from pytest_queryeval.core.model import PASS_RATE
from pytest_queryeval.core.report import Report
from pytest_queryeval.reports.added_sections import added_sections
from pytest_queryeval.reports.blocks import (
    Table,
    Untrusted,
    code_span,
    markdown_lines,
    markdown_sentence,
    markdown_table,
    table_head,
    table_row,
)
from pytest_queryeval.reports.sections import (
    CHANGE,
    CHANGE_NOTE,
    amounts_table,
    baseline_headline,
    by_increase,
    causes,
    cautions,
    change_reader,
    changes_table,
    flips,
    group_table,
    groups_in_tables,
    interval_note,
    leading_names,
    metrics_table,
    non_system_changes,
    pass_rate,
    percent,
    points,
    spider_lines,
)
from pytest_queryeval.reports.story import CAUSE_DIRECTION, DIFFERENCE_DIRECTION, findings
from pytest_queryeval.results.aggregation import shown_interval
from pytest_queryeval.results.gates import GATE_WORDS, gate_text
from pytest_queryeval.results.verdict import different_faults, verdict, worst_first
from pytest_queryeval.text.formatting import format_interval, pluralize

MAX_BYTES = 900 * 1024
MAX_COMMENT_BYTES = 60_000  # GitHub takes 65,536 characters; no text has more characters than bytes
REST = "<!-- all above fits a comment of GitHub -->"
FAULTS_TITLE = "failed cases and errors"
MAX_PATHS = 3
EDITS_SHOWN = 3  # of a case
MAX_LISTED = 50  # gates, and cases in a comment
MAX_COLUMNS = 23  # of a table of a group: its values, two counts and 20 metrics
NOTICE_BYTES = 300  # for the notice that something was cut


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """Rows of Markdown between a head and a foot; the last rows are cut if there is no room for all."""

    title: str
    rows: Iterable[str]
    count: int
    """The number of rows before any row is cut."""
    max_bytes: int
    head: tuple[str, ...] = ()
    foot: tuple[str, ...] = ()
    is_folded: bool = False

    def within(self, room: int) -> tuple[str, int]:
        """Return the section as text of at most `room` bytes, and the number of rows in it.

        A notice counts the rows that were cut. If there is no room for the first row, the text is empty and the number
        0.
        """
        head, foot = self.head, self.foot
        if self.is_folded:
            head = ("<details>", f"<summary>{self.title}</summary>", "", *head)
            foot = (*foot, "", "</details>")
        remaining_bytes = min(room, self.max_bytes) - sum(map(_size_with_line_feed, (*head, *foot))) - NOTICE_BYTES
        kept_rows: list[str] = []
        for row in self.rows:
            remaining_bytes -= _size_with_line_feed(row)
            if remaining_bytes < 0:
                break
            kept_rows.append(row)
        if not kept_rows:
            return "", 0
        cut_rows = self.count - len(kept_rows)
        notice = ("", f"… and {cut_rows:,} more") if cut_rows else ()
        return "\n".join((*head, *kept_rows, *notice, *foot)), len(kept_rows)


def render_markdown(report: Report) -> bytes:
    """Return the report as GitHub's Markdown of at most 900 KiB, the most important parts in the first 60,000 bytes."""
    return markdown_within(report, MAX_BYTES)


def markdown_within(report: Report, room: int) -> bytes:
    """Return the report as Markdown of at most `room` bytes; it says what was cut.

    The verdict and the pass rate are never cut, so a small `room` may be exceeded.
    """
    parts = list(_head(report))
    remaining_bytes = (
        min(room, MAX_COMMENT_BYTES) - sum(_size_with_line_feed(part) + 1 for part in parts) - NOTICE_BYTES
    )
    omitted_titles, listed_count = [], 0
    worst_cases, sharing = different_faults(worst_first(report))
    for section in _sections(report, worst_cases, sharing):
        if not section.count:
            continue
        text, rows = section.within(remaining_bytes)
        if not text:
            omitted_titles.append(section.title)
            continue
        listed_count = rows if section.title == FAULTS_TITLE else listed_count
        parts.append(text)
        remaining_bytes -= _size_with_line_feed(text) + 1
    if omitted_titles:
        parts.append(f"No room for: {', '.join(omitted_titles)}.")
    title = "the other failed cases and errors"
    further_cases = _cases(title, report, worst_cases[listed_count:], sharing, MAX_BYTES)
    text, _ = further_cases.within(
        room - sum(_size_with_line_feed(part) + 1 for part in parts) - _size_with_line_feed(REST) - 2
    )
    if text:
        parts += [REST, f"The other failed cases and errors ({further_cases.count:,}):", text]
    return _bytes("\n\n".join(parts) + "\n")


def _head(report: Report) -> Iterator[str]:
    """Yield the first paragraphs: the name and paths of the run, its verdict, and its pass rate."""
    heading: list[str] = [Untrusted(report["name"]) if report["name"] else "Query evaluation"]
    if (paths := report["requested_paths"]["paths"]) not in ([], ["."]):
        heading += [" in ", *leading_names(paths, MAX_PATHS)]
    yield f"## {markdown_sentence(heading)}"
    run_verdict = verdict(report, code_span)
    yield f"**{run_verdict.state}: {run_verdict.counts}** ({run_verdict.rule})"
    if (rate := pass_rate(report["totals"], report["groups"]["source"])) is not None:
        ends = shown_interval(rate)
        interval = f" (95 % interval {format_interval(ends, percent)})" if ends else ""
        change = report["baseline"]["metrics"].get(PASS_RATE) if "baseline" in report else None
        change_text = ""
        if change:
            before, after, cases = percent(change["before"]), percent(change["after"]), pluralize(change["n"], "case")
            change_text = f"; {before} % → {after} % ({points(change['change'])} points) in {cases} of both runs"
        yield f"Pass rate **{percent(rate['mean'])} %**{interval}{change_text}"


def _sections(report: Report, worst_cases: Sequence[CaseReport], sharing: Mapping[str, int]) -> Iterator[Section]:
    """Yield the sections of a comment, the most important first: gates, changes, failed cases, then folded tables."""
    words = {ok: f"**{word}**" if ok is False else word for ok, word in GATE_WORDS.items()}
    gates = sorted(report["gates"], key=lambda gate: (False, None, True).index(gate["ok"]))
    rows = [f"- gate {words[gate['ok']]}: {code_span(gate_text(gate))}" for gate in gates[:MAX_LISTED]]
    yield Section(title="gates", rows=rows, count=len(gates), max_bytes=6_000)
    if baseline := report.get("baseline"):
        yield _list("the comparison with the baseline", [markdown_sentence(baseline_headline(baseline))])
        changes = [f"- {markdown_sentence(sentence)}" for sentence in non_system_changes(baseline)]
        yield _list("what changed besides the system", changes)
    cause_counts = by_increase(baseline["causes"]) if baseline else report["causes"]
    yield _list("causes", [markdown_sentence(sentence) for sentence in causes(cause_counts)])
    yield _cases(FAULTS_TITLE, report, worst_cases, sharing, 18_000, max_rows=MAX_LISTED)
    if baseline:
        sides = [f"- {markdown_sentence(sentence)}" for sentence in flips(baseline)]
        yield _list("the cases that changed sides", sides)
    yield _list("cautions", [f"- {markdown_sentence(caution)}" for caution in cautions(report)])
    change = (CHANGE,) if baseline and baseline["metrics"] else ()
    metrics = metrics_table(report, ("mean", *change, "95 % interval", "n", "missed"))
    foot = ("", note) if (note := interval_note(report)) else ()
    yield _table("metrics", metrics, 8_000, foot=foot, is_folded=True)
    if baseline:
        metric_changes = changes_table(baseline)
        yield _table("changes of metrics", metric_changes, 8_000, foot=("", CHANGE_NOTE), is_folded=True)
    for group in groups_in_tables():
        table = group_table(report, group)
        cut_table = Table(table.header[:MAX_COLUMNS], [row[:MAX_COLUMNS] for row in table.rows])
        yield _table(f"by {group}", cut_table, 12_000, is_folded=True)
    yield _table("tokens and costs", amounts_table(report), 8_000, is_folded=True)
    lines = spider_lines(report)
    yield Section(
        title="Spider's table",
        head=("```text",),
        rows=lines,
        count=len(lines),
        foot=("```",),
        max_bytes=12_000,
        is_folded=True,
    )
    for added_title, blocks in added_sections(report):
        added_lines = list(markdown_lines(blocks))
        count = len(added_lines)
        yield Section(title=added_title, rows=added_lines, count=count, max_bytes=12_000, is_folded=True)


def _list(title: str, rows: Sequence[str]) -> Section:
    return Section(title=title, rows=rows, count=len(rows), max_bytes=12_500)


def _table(title: str, table: Table, max_bytes: int, *, foot: tuple[str, ...] = (), is_folded: bool = False) -> Section:
    head, rows = markdown_table(table)
    count = len(table.rows)
    return Section(title=title, head=head, rows=rows, count=count, max_bytes=max_bytes, foot=foot, is_folded=is_folded)


def _cases(
    title: str,
    report: Report,
    cases: Sequence[CaseReport],
    sharing: Mapping[str, int],
    max_bytes: int,
    *,
    max_rows: int | None = None,
) -> Section:
    """Return the section with a table of the given cases; a row is rendered only when it is needed.

    `sharing` has the number of cases that share the fault of a case, by node id.
    """
    change_text = change_reader(report)

    def row(case: CaseReport) -> str:
        name = _lines_in_cell((case["question"], case["nodeid"]))
        change = [_lines_in_cell([change_text(case)])] if change_text else []
        return table_row(
            (name, case["outcome"], *change, _lines_in_cell(findings(case, EDITS_SHOWN, sharing[case["nodeid"]])))
        )

    rows = map(row, cases[:max_rows])
    finding = f"finding (causes {CAUSE_DIRECTION}, differences {DIFFERENCE_DIRECTION})"
    head = table_head(("case", "outcome", *(["since the baseline"] if change_text else []), finding))
    return Section(title=title, head=head, rows=rows, count=len(cases), max_bytes=max_bytes)


def _lines_in_cell(texts: Iterable[str]) -> str:
    """Return untrusted texts as a table cell, each text on its own line; empty texts are left out."""
    return "<br>".join(code_span(text, cell=True) for text in texts if text)


def _size_with_line_feed(text: str) -> int:
    """Return the number of bytes of a text and of the line feed after it."""
    return len(_bytes(text)) + 1


def _bytes(text: str) -> bytes:
    return text.encode(errors="backslashreplace")
