"""The sheet Run: verdict, gates, the means of all metrics, outcomes by difficulty, the baseline and notes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from pytest_queryeval.core.report import BaselineReport, GateReport, Report, TotalName, Totals
from pytest_queryeval.features.excel.sheet import PAGE_COLUMNS, Chart, ChartTable, Sheet, insert_charts, utc_time
from pytest_queryeval.reports.blocks import text_sentence
from pytest_queryeval.reports.sections import (
    CHANGE_HEADER,
    CHANGE_NOTE,
    COUNTS,
    FLIPS,
    by_weight,
    cautions,
    changes_besides,
    errata_text,
    interval_note,
    pass_rate,
)
from pytest_queryeval.results.aggregation import shown_interval
from pytest_queryeval.results.gates import GATE_WORDS, gate_text
from pytest_queryeval.results.verdict import COLOURS, verdict

if TYPE_CHECKING:
    from xlsxwriter.workbook import Workbook

MAX_CASES = 100  # of each list
MAX_METRICS = 1_000
COLUMNS = (*CHANGE_HEADER[:4], "95 % low", "95 % high", *CHANGE_HEADER[5:])
STYLES = ("text", "score", "score", "change", "change", "change", "count", "score", "score", "score")
Line: TypeAlias = Sequence[tuple[Any, str]]  # values side by side, each with its style


def write_baseline(sheet: Sheet, baseline: BaselineReport | None, row: int) -> int:
    """Write the comparison from a row on, and return the first row below it."""
    if not baseline:
        return row
    sheet.title(row, "Against the baseline")
    lines = list(_lines(baseline))
    for number, line in enumerate(lines, start=row + 1):
        for place, (value, style) in enumerate(line):
            sheet.put(number, place, value, style)
    return row + len(lines) + 2


def _lines(baseline: BaselineReport) -> Iterator[Line]:
    counts, metrics = baseline["cases"], baseline["metrics"]
    facts = {
        "baseline": baseline["path"],
        "created (UTC)": utc_time(baseline["created"]),
        "cases in both": counts["common"],
        "fixes": len(baseline["fixes"]),
        "regressions": len(baseline["regressions"]),
        **{word: counts[name] for name, word in COUNTS.items()},
    }
    yield from (((name, "name"), (value, "left")) for name, value in facts.items())
    yield from ((("".join(sentence), "text"),) for sentence in changes_besides(baseline))
    if metrics:
        yield ()
        yield [(COLUMNS[0], "header"), *((header, "number header") for header in COLUMNS[1:])]
        for name, change in list(metrics.items())[:MAX_METRICS]:
            interval = change["ci95"] or (None, None)
            values = (name, change["before"], change["after"], change["change"], *interval)
            values += (change["n"], change["p"], change["p_holm"], change["detectable"])
            yield list(zip(values, STYLES, strict=True))
        if len(metrics) > MAX_METRICS:
            yield ((f"… and {len(metrics) - MAX_METRICS:,} more", "text"),)
        yield ((CHANGE_NOTE, "text"),)
    for flip, word in FLIPS.items():
        if cases := baseline[flip]:
            yield ()
            yield ((f"{word} ({len(cases):,})", "name"),)
            yield from (((case, "text"),) for case in cases[:MAX_CASES])
            if len(cases) > MAX_CASES:
                yield ((f"… and {len(cases) - MAX_CASES:,} more", "text"),)


MAX_LISTED = 200  # difficulties, gates, metrics, or files that could not be read
MAX_CHARTED = 12  # metrics, or difficulties, side by side in a chart
GATE_STYLES = {True: "good", False: "bad", None: "warning"}
VERDICT_STYLES = {"green": "good", "red": "bad", "yellow": "warning"}
OUTCOME_COLOURS: Mapping[TotalName, str] = {
    "passed": "#1A6E38",
    "failed": "#A8281E",
    "errors": "#6B1610",
    "missed": "#C98A1B",
    "xfailed": "#A0A9B2",
    "xpassed": "#E0B35A",
    "skipped": "#DFE3E6",
    "not_run": "#EEF0F2",
}
ROWS_OF_A_PAGE = 75  # else they would be too small to read
JOINED = ("report", "created (UTC)", "cases", "metrics")
JOINED_NOTE = (
    "The outcome of a case is its worst one; its message, answers and times are of the run with this outcome, its "
    "scores of all runs. A metric is listed with the first run that has a score."
)
METRICS = ("metric", "mean", "95 % low", "95 % high", "n", "missed")


def write_run(book: Workbook, sheet: Sheet, report: Report, notes: Iterable[str]) -> None:
    """Write the sheet; `notes` are at its end."""
    row = _head(sheet, report)
    if joined_runs := report.get("joined"):
        rows = [
            [run["name"], utc_time(run["created"]), run["cases"], (", ".join(run["metrics"]), "text")]
            for run in joined_runs
        ]
        row = sheet.block(row, "Joined runs", JOINED, rows)
        sheet.paragraph(row - 1, 0, JOINED_NOTE)
        row += 1
    row = _gates(sheet, report["gates"], row)
    metrics, row = _metrics(sheet, report, row)
    outcomes, row = _outcomes(sheet, report, row)
    means = Chart(title="Means with 95 % intervals", columns=("mean",), unit="score", max_value=1)
    shares = Chart(
        title="Outcomes by difficulty",
        columns=tuple(OUTCOME_COLOURS),
        unit="cases",
        stacked=True,
        colours={str(name): colour for name, colour in OUTCOME_COLOURS.items()},
    )
    row = insert_charts(book, [(metrics, means), *([(outcomes, shares)] if outcomes.rows > 1 else [])], row=row) + 1
    row = write_baseline(sheet, report.get("baseline"), row)
    last_row = sheet.notes(row, filter(None, (interval_note(report), *notes)))
    sheet.set_up_page(last_row, max(PAGE_COLUMNS - 1, *sheet.widths), pages=1 if last_row < ROWS_OF_A_PAGE else 0)


def _head(sheet: Sheet, report: Report) -> int:
    run_verdict = verdict(report)
    lines = [
        ("Verdict", run_verdict.state, VERDICT_STYLES[COLOURS[run_verdict.state]]),
        ("Rule", run_verdict.rule, "text"),
        ("Cases", run_verdict.counts, "text"),
        *((("Golds", reviewed, "text"),) if (reviewed := errata_text(report)) else ()),
        ("Created (UTC)", utc_time(report["created"]), "time"),
        ("Predictions by", ", ".join(report["predictor"]["sources"]) or None, "text"),
        *(("Caution", text_sentence(caution), "text") for caution in cautions(report)),
        *(("Could not be read", path, "bad") for path in report["unreadable_files"][:MAX_LISTED]),
    ]
    sheet.title(0, report["name"] or "pytest-queryeval")
    for row, (name, value, style) in enumerate(lines, start=1):
        sheet.put(row, 0, name, "name")
        if style == "text" and value:
            sheet.paragraph(row, 1, str(value))
        else:
            sheet.put(row, 1, value, style)
    sheet.fit(0, 24)
    sheet.fit(1, 16)
    return len(lines) + 2


def _gates(sheet: Sheet, gates: list[GateReport], row: int) -> int:
    if not gates:
        return row
    sheet.title(row, "Gates")
    for number, gate in enumerate(gates[:MAX_LISTED], start=row + 1):
        sheet.put(number, 0, GATE_WORDS[gate["ok"]], GATE_STYLES[gate["ok"]])
        sheet.paragraph(number, 1, gate_text(gate))
    if len(gates) > MAX_LISTED:
        sheet.put(row + MAX_LISTED + 1, 0, f"… and {len(gates) - MAX_LISTED:,} more")
    return row + min(len(gates), MAX_LISTED + 1) + 2


def _metrics(sheet: Sheet, report: Report, row: int) -> tuple[ChartTable, int]:
    """Write the table of metrics; return its shares from 0 to 1, which come first, for a chart, and the row below."""
    names = sorted(by_weight(report), key=lambda name: report["metrics"][name]["mean_with_errors"] is None)
    metrics = [(name, report["metrics"][name]) for name in names[:MAX_LISTED]]
    rows = [
        [name, statistics["mean"], *(shown_interval(statistics) or (None, None)), statistics["n"], statistics["missed"]]
        for name, statistics in metrics
    ]
    if unlisted_count := len(report["metrics"]) - len(metrics):
        rows.append([f"… and {unlisted_count:,} more"])
    shares = [statistics for _, statistics in metrics if statistics["mean_with_errors"] is not None][:MAX_CHARTED]
    intervals = [shown_interval(statistics) or (statistics["mean"], statistics["mean"]) for statistics in shares]
    table = ChartTable(
        sheet=sheet,
        header_row=row + 1,
        rows=len(shares),
        columns={"mean": METRICS.index("mean")} if shares else {},
        bars={
            "mean": [
                (high - statistics["mean"], statistics["mean"] - low)
                for statistics, (low, high) in zip(shares, intervals, strict=True)
            ]
        },
    )
    return table, sheet.block(row, "Metrics", METRICS, rows) if rows else row


def _outcomes(sheet: Sheet, report: Report, row: int) -> tuple[ChartTable, int]:
    """Write the outcomes by difficulty; return the table without its total, for a chart, and the row below."""
    levels = list(report["groups"]["difficulty"].items())
    names = [name for name in OUTCOME_COLOURS if report["totals"][name]]
    rows = [_counts(level, member["totals"], names) for level, member in levels[:MAX_LISTED]]
    if (unlisted_count := len(levels) - MAX_LISTED) > 0:
        rows.append([f"… and {unlisted_count:,} more"])
    rows.append(_counts("all", report["totals"], names))
    columns = {str(name): place for place, name in enumerate(names, start=3)}
    table = ChartTable(sheet=sheet, header_row=row + 1, rows=min(len(levels), MAX_CHARTED), columns=columns)
    return table, sheet.block(row, "Outcomes", ("difficulty", "cases", "pass rate", *names), rows)


def _counts(level: str, totals: Totals, names: list[TotalName]) -> list[Any]:
    rate = pass_rate(totals)
    return [level, totals["cases"], (rate and rate["mean"], "percent"), *(totals[name] for name in names)]
