"""The sheets Run and Statistics about the run as a whole.

Run has the verdict, gates, means of metrics, outcomes by difficulty, the baseline and notes. Statistics has metrics of
the run, of SDMX cases, dimensions and groups; measures, trials, and Spider's table.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from pytest_queryeval.core.report import (
    BaselineReport,
    GroupReport,
    MetricStatistics,
    Report,
    ScoreStatistics,
    Spread,
    TotalName,
    Totals,
)
from pytest_queryeval.features.excel.published import SDMX
from pytest_queryeval.features.excel.sheet import PAGE_COLUMNS, Chart, ChartTable, Sheet, insert_charts, utc_time
from pytest_queryeval.languages.sql.match import COMPONENTS
from pytest_queryeval.reports.blocks import Cell, text_sentence
from pytest_queryeval.reports.sections import (
    CHANGE_HEADER,
    CHANGE_NOTE,
    COUNTS,
    FLIPS,
    cautions,
    errata_text,
    group_metrics,
    interval_note,
    metrics_by_weight,
    non_system_changes,
    pass_rate,
)
from pytest_queryeval.results.aggregation import reached_count, shown_interval
from pytest_queryeval.results.gates import GATE_WORDS, gate_text
from pytest_queryeval.results.verdict import COLOURS, verdict
from pytest_queryeval.text.formatting import and_more

if TYPE_CHECKING:
    from xlsxwriter.workbook import Workbook

MAX_CASES = 100  # of each list
MAX_METRICS = 1_000
CHANGE_COLUMNS = (*CHANGE_HEADER[:4], "95 % low", "95 % high", *CHANGE_HEADER[5:])
CHANGE_STYLES = ("text", "score", "score", "change", "change", "change", "count", "score", "score", "score")
Line: TypeAlias = Sequence[tuple[Any, str]]  # values side by side, each with its style
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
JOINED_HEADER = ("report", "created (UTC)", "cases", "metrics")
JOINED_NOTE = (
    "The outcome of a case is its worst one; its message, answers and times are of the run with this outcome, its "
    "scores of all runs. A metric is listed with the first run that has a score."
)
METRICS_HEADER = ("metric", "mean", "95 % low", "95 % high", "n", "missed")
NUMBERS: tuple[Literal["mean", "n", "std", "min", "median", "max"], ...] = ("mean", "n", "std", "min", "median", "max")
MEASURE_COLUMNS = (*NUMBERS, "sum", "p95")
STATISTICS_HEADER = ("metric", *NUMBERS, "95 % low", "95 % high", "missed")
SCORES: tuple[Literal["accuracy", "recall", "f1"], ...] = ("accuracy", "recall", "f1")
DATA_QUERY = "Data Query Metrics"
MAX_MEMBERS = 1_000  # values of a group, or dimensions
TitledTable: TypeAlias = tuple[str, Sequence[str], list[list[Cell]]]  # a title, a header and rows


def write_baseline(sheet: Sheet, baseline: BaselineReport | None, row: int) -> int:
    """Write the comparison with the baseline from a row on, and return the first row below it.

    Without a baseline nothing is written, and the row is returned.
    """
    if not baseline:
        return row
    sheet.title(row, "Against the baseline")
    counts, metrics = baseline["cases"], baseline["metrics"]
    facts = {
        "baseline": baseline["path"],
        "created (UTC)": utc_time(baseline["created"]),
        "cases in both": counts["common"],
        "fixes": len(baseline["fixes"]),
        "regressions": len(baseline["regressions"]),
        **{word: counts[name] for name, word in COUNTS.items()},
    }
    lines: list[Line] = [
        *(((name, "name"), (value, "left")) for name, value in facts.items()),
        *((("".join(sentence), "text"),) for sentence in non_system_changes(baseline)),
    ]
    if metrics:
        lines += [(), [(CHANGE_COLUMNS[0], "header"), *((header, "number header") for header in CHANGE_COLUMNS[1:])]]
        for name, change in list(metrics.items())[:MAX_METRICS]:
            interval = change["ci95"] or (None, None)
            values = (name, change["before"], change["after"], change["change"], *interval)
            values += (change["n"], change["p"], change["p_holm"], change["detectable"])
            lines.append(list(zip(values, CHANGE_STYLES, strict=True)))
        lines += [[(text, "text")] for text in _more_line(metrics, MAX_METRICS)]
        lines.append([(CHANGE_NOTE, "text")])
    for flip, word in FLIPS.items():
        if cases := baseline[flip]:
            listed = [*cases[:MAX_CASES], *_more_line(cases, MAX_CASES)]
            lines += [(), [(f"{word} ({len(cases):,})", "name")], *([(case, "text")] for case in listed)]
    for number, line in enumerate(lines, start=row + 1):
        for place, (value, style) in enumerate(line):
            sheet.put(number, place, value, style)
    return row + len(lines) + 2


def write_run(book: Workbook, sheet: Sheet, report: Report, notes: Iterable[str]) -> None:
    """Write the sheet Run; `notes` come at its end."""
    row = _write_head(sheet, report)
    if joined_runs := report.get("joined"):
        rows = [
            [run["name"], utc_time(run["created"]), run["cases"], (", ".join(run["metrics"]), "text")]
            for run in joined_runs
        ]
        row = sheet.block(row, "Joined runs", JOINED_HEADER, rows)
        sheet.paragraph(row - 1, 0, JOINED_NOTE)
        row += 1
    if gates := report["gates"]:
        sheet.title(row, "Gates")
        for number, gate in enumerate(gates[:MAX_LISTED], start=row + 1):
            sheet.put(number, 0, GATE_WORDS[gate["ok"]], GATE_STYLES[gate["ok"]])
            sheet.paragraph(number, 1, gate_text(gate))
        for text in _more_line(gates, MAX_LISTED):
            sheet.put(row + MAX_LISTED + 1, 0, text)
        row += min(len(gates), MAX_LISTED + 1) + 2
    metrics, row = _write_metrics(sheet, report, row)
    outcomes, row = _write_outcomes(sheet, report, row)
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


def _write_head(sheet: Sheet, report: Report) -> int:
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


def _write_metrics(sheet: Sheet, report: Report, row: int) -> tuple[ChartTable, int]:
    """Write the table of metrics from a row on; return the table for a chart, and the row below.

    Metrics with scores from 0 to 1 come first; the chart has only these.
    """
    names = sorted(metrics_by_weight(report), key=lambda name: report["metrics"][name]["mean_with_errors"] is None)
    metrics = [(name, report["metrics"][name]) for name in names[:MAX_LISTED]]
    rows = [
        [name, statistics["mean"], *(shown_interval(statistics) or (None, None)), statistics["n"], statistics["missed"]]
        for name, statistics in metrics
    ]
    rows += [[text] for text in _more_line(names, MAX_LISTED)]
    shares = [statistics for _, statistics in metrics if statistics["mean_with_errors"] is not None][:MAX_CHARTED]
    intervals = [shown_interval(statistics) or (statistics["mean"], statistics["mean"]) for statistics in shares]
    table = ChartTable(
        sheet=sheet,
        header_row=row + 1,
        rows=len(shares),
        columns={"mean": METRICS_HEADER.index("mean")} if shares else {},
        bars={
            "mean": [
                (high - statistics["mean"], statistics["mean"] - low)
                for statistics, (low, high) in zip(shares, intervals, strict=True)
            ]
        },
    )
    return table, sheet.block(row, "Metrics", METRICS_HEADER, rows) if rows else row


def _write_outcomes(sheet: Sheet, report: Report, row: int) -> tuple[ChartTable, int]:
    """Write the outcomes by difficulty; return the table without its total, for a chart, and the row below."""
    levels = list(report["groups"]["difficulty"].items())
    names = [name for name in OUTCOME_COLOURS if report["totals"][name]]
    rows = [_counts(level, member["totals"], names) for level, member in levels[:MAX_LISTED]]
    rows += [*([text] for text in _more_line(levels, MAX_LISTED)), _counts("all", report["totals"], names)]
    columns = {str(name): place for place, name in enumerate(names, start=3)}
    table = ChartTable(sheet=sheet, header_row=row + 1, rows=min(len(levels), MAX_CHARTED), columns=columns)
    return table, sheet.block(row, "Outcomes", ("difficulty", "cases", "pass rate", *names), rows)


def _counts(level: str, totals: Totals, names: list[TotalName]) -> list[Any]:
    rate = pass_rate(totals)
    return [level, totals["cases"], (rate and rate["mean"], "percent"), *(totals[name] for name in names)]


def write_statistics(sheet: Sheet, report: Report) -> None:
    """Write the sheet Statistics: tables below each other, each with a title and a header."""
    row = 0
    for title, header, rows in _titled_tables(report):
        row = sheet.block(row, title, header, rows)
    sheet.set_up_page(row, max(sheet.widths))


def _titled_tables(report: Report) -> Iterator[TitledTable]:
    kinds = report["groups"]["kind"]
    if SDMX in kinds:
        yield DATA_QUERY, STATISTICS_HEADER, _metric_rows(kinds[SDMX]["metrics"])
    if "dimensions" in report:
        dimension_rows: list[list[Cell]] = [
            [name, metric, *_numbers(statistics)]
            for name, metrics in list(report["dimensions"].items())[:MAX_MEMBERS]
            for metric, statistics in (("precision", metrics.get("precision")), ("recall", metrics.get("recall")))
            if statistics is not None
        ]
        dimension_rows += [[text] for text in _more_line(report["dimensions"], MAX_MEMBERS)]
        yield "Dimensions", ("dimension", "metric", *STATISTICS_HEADER[1:-1]), dimension_rows
    if "fields" in report:
        fields = report["fields"].items()
        yield "Fields of JSON answers", ("field", "mean", "n"), [[name, of["mean"], of["n"]] for name, of in fields]
    if kinds.keys() != {SDMX}:
        yield "Metrics", STATISTICS_HEADER, _metric_rows(report["metrics"])
    if report["measures"]:
        measure_rows = [
            [name, *_spread(spread), spread["sum"], spread["p95"]] for name, spread in report["measures"].items()
        ]
        yield "Times (s), tokens, costs", ("measure", *MEASURE_COLUMNS), measure_rows
    if "trials" in report:
        trials = report["trials"]
        pairs = enumerate(zip(trials["pass_at"], trials["pass_hat"], strict=False), start=1)
        rows: list[list[Cell]] = [[k, trials["cases"], pass_at, pass_hat] for k, (pass_at, pass_hat) in pairs]
        yield "Trials", ("k", "cases", "pass@k", "pass^k"), rows
    if "spider_table" in report:
        levels = report["spider_table"].values()
        score_rows: list[list[Cell]] = [  # as the published tool prints them, with a column for each level
            ["count", *(level["count"] for level in levels)],
            ["execution accuracy", *(level["execution_accuracy"] for level in levels)],
            ["exact match", *(level["exact_match"] for level in levels)],
        ]
        score_rows += [
            [f"{score}: {name.replace('_', ' ')}", *(level[name][score] for level in levels)]
            for score in SCORES
            for name in COMPONENTS
        ]
        yield "Spider's table", ("score", *report["spider_table"]), score_rows
    for group, members in report["groups"].items():
        if members:
            yield f"By {group}", *_group_table(group, members, report["metrics"])


def _metric_rows(metrics: Mapping[str, MetricStatistics]) -> list[list[Cell]]:
    return [[name, *_numbers(statistics), statistics["missed"]] for name, statistics in metrics.items()]


def _numbers(statistics: ScoreStatistics) -> list[Cell]:
    return [*_spread(statistics), *(shown_interval(statistics) or (None, None))]


def _spread(spread: Spread) -> list[Cell]:
    return [spread[name] for name in NUMBERS]


def _group_table(
    group: str, members: Mapping[str, GroupReport], metrics: Iterable[str]
) -> tuple[Sequence[str], list[list[Cell]]]:
    """Return the header, and a row for each value of a group: its cases, passed cases, and mean and n of each metric.

    Metrics without a score in the group are left out. A last row counts the values beyond MAX_MEMBERS.
    """
    names = group_metrics(metrics, members)
    rows: list[list[Cell]] = [
        [
            value,
            reached_count(member["totals"]),
            member["totals"]["passed"],
            *(
                member["metrics"][name][number] if name in member["metrics"] else None
                for name in names
                for number in NUMBERS[:2]
            ),
        ]
        for value, member in list(members.items())[:MAX_MEMBERS]
    ]
    rows += [[text] for text in _more_line(members, MAX_MEMBERS)]
    return (group, "cases", "passed", *(header for name in names for header in (name, "n"))), rows


def _more_line(values: Sized, most: int) -> list[str]:
    return [f"…{and_more(number)}"] if (number := len(values) - most) > 0 else []
