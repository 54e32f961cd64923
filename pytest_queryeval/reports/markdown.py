"""report.md: verdict, gates, metrics, changes, and the worst cases, for pull requests and step summaries.

What matters most comes first, and fits a comment; foreign text stands in code spans only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pytest_queryeval.core.report import (
    BaselineReport,
    CaseReport,
    DimensionStatistics,
    GateReport,
    GroupReport,
    MetricChange,
    Report,
)
from pytest_queryeval.reports.comparison.baseline import changes_besides, flips, headline, metric_changes, signed
from pytest_queryeval.reports.comparison.passages import Sentence, markdown_lines
from pytest_queryeval.reports.markdown_text import code_span, table_head, table_row
from pytest_queryeval.results.aggregation import DIMENSION_COLUMNS, dimension_cells, mean_of
from pytest_queryeval.results.gates import GATE_WORDS, gate_text
from pytest_queryeval.results.verdict import GROUPS_SHOWN, by_weight, reason, ties_text, verdict, worst_first
from pytest_queryeval.text.plain import counted, interval_text

MOST_BYTES = 900 * 1024
COMMENT_BYTES = 60_000  # GitHub takes 65,536 characters; no text has more characters than bytes
REST = "<!-- all above fits a comment of GitHub -->"
LISTED = 50
COLUMNS = 20
NOTICE = 300  # bytes for what says that something was cut


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """Rows between a head and a foot, of which the last ones are cut where there is no room; `count` is all of them."""

    title: str
    rows: Iterable[str]
    count: int
    most: int
    head: tuple[str, ...] = ()
    foot: tuple[str, ...] = ()

    def within(self, room: int) -> tuple[str, int]:
        """The section in at most `room` bytes, and how many rows are in it; nothing and 0 where not one has room."""
        left = min(room, self.most) - sum(map(_size, (*self.head, *self.foot))) - NOTICE
        kept: list[str] = []
        for row in self.rows:
            left -= _size(row)
            if left < 0:
                break
            kept.append(row)
        if not kept:
            return "", 0
        cut = self.count - len(kept)
        notice = ("", f"… and {cut:,} more") if cut else ()
        return "\n".join((*self.head, *kept, *notice, *self.foot)), len(kept)


def render_markdown(report: Report) -> bytes:
    """GitHub's Markdown, at most 900 KiB for any number of cases; the first 60,000 characters hold what matters."""
    return markdown_within(report, MOST_BYTES)


def markdown_within(report: Report, room: int) -> bytes:
    """The report in at most `room` bytes, if that is enough for the verdict; what was cut is said."""
    found = verdict(report, code_span)
    parts = [f"**{found.state}: {found.counts}** ({found.rule})"]
    left = min(room, COMMENT_BYTES) - _size(parts[0]) - NOTICE
    worst, without = worst_first(report), []
    listed = 0
    for section in _sections(report, worst):
        text, rows = section.within(left)
        if not text:
            without.append(section.title)
            continue
        listed = rows if section.title == FAULTS_TITLE else listed
        parts.append(text)
        left -= _size(text) + 1
    if without:
        parts.append(f"No room for: {', '.join(without)}.")
    rest = _faults(worst[listed:], title="the other cases that did not pass", most=MOST_BYTES)
    parts += _rest(rest, room - sum(_size(part) + 1 for part in parts))
    return _bytes("\n\n".join(parts) + "\n")


def _rest(section: Section, room: int) -> list[str]:
    text, _ = section.within(room - _size(REST) - 2) if section.count else ("", 0)
    return [REST, f"The other {counted(section.count, 'case')} that did not pass:", text] if text else []


def _sections(report: Report, worst: Sequence[CaseReport]) -> Iterator[Section]:
    """What a comment has room for, the most important first."""
    yield from _gates(report["gates"])
    yield from _metrics(report)
    if text := ties_text(report):
        yield Section(title="ties", rows=[f"{text}."], count=1, most=1_000)
    yield from _baseline(report)
    if worst:
        yield _faults(worst, title=FAULTS_TITLE, most=18_000, listed=LISTED)
    for group in GROUPS_SHOWN:
        yield from _group(group, report["groups"][group], by_weight(report))
    yield from _dimensions(report.get("dimensions", {}))
    yield from _spider_table(report)


FAULTS_TITLE = "the cases that did not pass"


def _gates(gates: Sequence[GateReport]) -> Iterator[Section]:
    """Missed ones first, then those that were not evaluated."""
    ordered = sorted(gates, key=lambda gate: (False, None, True).index(gate["ok"]))
    rows = [f"- gate {_gate_word(gate['ok'])}: {code_span(gate_text(gate))}" for gate in ordered[:LISTED]]
    if gates:
        yield Section(title="gates", rows=rows, count=len(gates), most=6_000)


def _gate_word(ok: bool | None) -> str:
    return f"**{GATE_WORDS[ok]}**" if ok is False else GATE_WORDS[ok]


def _metrics(report: Report) -> Iterator[Section]:
    metrics, baseline = report["metrics"], report.get("baseline")
    before = baseline["metrics"] if baseline else {}
    header = ("metric", "mean", *(("change in cases of both",) if before else ()), "95 % interval", "n", "missed")
    rows = [
        (
            code_span(name, cell=True),
            _number(found["mean"]),
            *((_change(before.get(name)),) if before else ()),
            interval_text(found["ci95"]),
            f"{found['n']:,}",
            f"{found['missed']:,}",
        )
        for name, found in metrics.items()
    ]
    if rows:
        yield _table("metrics", header, rows, most=8_000)


def _change(found: MetricChange | None) -> str:
    return "new" if found is None else signed(found["change"])


def _baseline(report: Report) -> Iterator[Section]:
    """What may explain the figures comes before them, and lists of cases come last."""
    baseline = report.get("baseline")
    if not baseline:
        return
    yield from _sentences("the comparison with the baseline", [headline(baseline)])
    yield from _sentences("what changed besides the system", changes_besides(baseline), bullet="- ")
    yield from _metric_changes(baseline)
    yield from _sentences("the cases that changed sides", flips(baseline), bullet="- ")


def _sentences(title: str, sentences: Iterable[Sentence], *, bullet: str = "") -> Iterator[Section]:
    rows = [f"{bullet}{line}" for sentence in sentences for line in markdown_lines([sentence])]
    if rows:
        yield Section(title=title, rows=rows, count=len(rows), most=12_500)


def _metric_changes(baseline: BaselineReport) -> Iterator[Section]:
    if not baseline["metrics"]:
        return
    names, rule, *rows, blank, note = markdown_lines(metric_changes(baseline))
    yield Section(
        title="the changes of metrics", head=(names, rule), rows=rows, count=len(rows), foot=(blank, note), most=8_000
    )


def _faults(cases: Sequence[CaseReport], *, title: str, most: int, listed: int | None = None) -> Section:
    """The cases that did not pass, worst first; their rows are made as far as they are taken."""
    rows = (
        table_row((code_span(case["nodeid"], cell=True), case["outcome"], code_span(reason(case), cell=True)))
        for case in cases[:listed]
    )
    return Section(title=title, head=table_head(("case", "outcome", "message")), rows=rows, count=len(cases), most=most)


def _group(group: str, members: Mapping[str, GroupReport], ranked: Sequence[str]) -> Iterator[Section]:
    """A table where the group tells cases apart; of very many metrics those that matter most."""
    if len(members) < 2:
        return
    names = [name for name in ranked if any(name in member["metrics"] for member in members.values())][:COLUMNS]
    rows = [
        (
            code_span(value, cell=True),
            f"{member['totals']['cases']:,}",
            f"{member['totals']['passed']:,}",
            *(_number(mean_of(member, name)) for name in names),
        )
        for value, member in members.items()
    ]
    header = (group, "cases", "passed", *(code_span(name, cell=True) for name in names))
    yield _table(f"by {group}", header, rows, most=12_000, folded=True)


def _dimensions(found: Mapping[str, DimensionStatistics]) -> Iterator[Section]:
    rows = [(code_span(name, cell=True), *dimension_cells(cells)) for name, cells in found.items()]
    if rows:
        yield _table("by SDMX dimension", ("dimension", *DIMENSION_COLUMNS), rows, most=12_000, folded=True)


def _spider_table(report: Report) -> Iterator[Section]:
    if "spider_table" not in report:
        return
    from pytest_queryeval.languages.sql.published.table import table_lines

    lines = list(table_lines(report["spider_table"]))
    head, foot = _folded("Spider's table")
    yield Section(
        title="Spider's table",
        head=(*head, "```text"),
        rows=lines,
        count=len(lines),
        foot=("```", *foot),
        most=12_000,
    )


def _table(
    title: str, header: Sequence[str], rows: Sequence[Sequence[str]], *, most: int, folded: bool = False
) -> Section:
    head, foot = _folded(title) if folded else ((), ())
    return Section(
        title=title, head=(*head, *table_head(header)), rows=map(table_row, rows), count=len(rows), foot=foot, most=most
    )


def _folded(title: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    return ("<details>", f"<summary>{title}</summary>", ""), ("", "</details>")


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


def _size(text: str) -> int:
    """The bytes of a text and of a line feed behind it."""
    return len(_bytes(text)) + 1


def _bytes(text: str) -> bytes:
    return text.encode(errors="backslashreplace")
