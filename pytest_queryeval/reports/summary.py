"""The report in short, as text for a terminal or a log."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from textwrap import wrap
from typing import Literal, TypeAlias

from pytest_queryeval.core.report import CaseReport, DimensionStatistics, GateReport, GroupReport, MetricReport, Report
from pytest_queryeval.reports.comparison.baseline import baseline_passages, changes_besides, headline
from pytest_queryeval.reports.comparison.passages import text_lines
from pytest_queryeval.results.aggregation import DIMENSION_COLUMNS, dimension_cells, mean_of
from pytest_queryeval.results.gates import GATE_WORDS, NO_BASELINE, OFF, gate_line, gate_text
from pytest_queryeval.results.verdict import (
    COLOURS,
    GROUPS_SHOWN,
    NO_VERDICT,
    by_weight,
    counts_of_cases,
    reason,
    said,
    ties_text,
    verdict,
    worst_first,
)
from pytest_queryeval.text.plain import both_ends, counted, interval_text, one_line, score_text, without_middle
from pytest_queryeval.text.text_table import Part, parts_of

Line: TypeAlias = tuple[str, dict[str, bool]]
LISTED = 5
ROWS = 20  # of a table of groups or dimensions: tags are as many as one likes, and predicted may name any dimension
SLOW_SECONDS = 0.1
TimedPart: TypeAlias = Literal["gold", "predicted", "prediction", "scoring"]
TIMED_PARTS: tuple[TimedPart, ...] = (
    "gold",
    "predicted",
    "prediction",
    "scoring",
)
NAME_WIDTH = 40
LEAST_WIDTH = 40
FEW_PAIRS = 10
GATE_CHARACTERS = 1_000
ALL, USUAL, SHORT = 1, 0, -1  # how much is shown, as pytest counts -v and -q


def summary_lines(report: Report, *, width: int, verbosity: int = USUAL) -> Iterator[Line]:
    """Metrics, groups, worst and slowest cases, empty golds, gates: each line with its colours.

    Lines keep within `width` where numbers allow it. With `verbosity` 1 no table is cut; with -1 only metrics, worst
    cases, flips in numbers and gates that are not met are shown.
    """
    width = max(width, LEAST_WIDTH)
    yield counts_of_cases(report), {"bold": True}
    yield from _metrics(report["metrics"], width)
    if verbosity >= USUAL:
        yield from _details(report, width, whole=verbosity >= ALL)
    yield from _worst(report, width)
    if verbosity >= USUAL:
        yield from _slowest(report["cases"], width)
        yield from _empty_golds(report["cases"])
        yield from _ties(report)
        yield from _other_engines(report["cases"])
    yield from _baseline(report, width, short=verbosity <= SHORT)
    yield from _gates(report["gates"], short=verbosity <= SHORT)


def missed_gate_lines(report: Report) -> Iterator[Line]:
    """The missed gates as lines of pytest's short summary."""
    for gate in report["gates"]:
        if gate["ok"] is False:
            yield f"GATE {one_line(gate_line(gate), GATE_CHARACTERS)}", {"red": True}


def verdict_line(report: Report) -> Line:
    """The verdict of a run of pytest, with its colour."""
    found = verdict(report, partial(one_line, characters=GATE_CHARACTERS))
    remedy = f"; {said}" if found.state == NO_VERDICT and (said := _remedy(report)) else ""
    return f"{found.line}{remedy}", {COLOURS[found.state]: True, "bold": True}


def _remedy(report: Report) -> str:
    """What brings a verdict where a run of pytest has none; empty where only other cases would."""
    if report["totals"]["cases"] == report["totals"]["skipped"] > 0:
        return "-rs tells why cases were skipped"
    reasons = {gate["reason"] for gate in report["gates"]}
    if OFF in reasons:
        return "`queryeval merge` evaluates gates"
    if any(gate["value"] is not None for gate in report["gates"]):
        return "-o queryeval_gates=selection evaluates gates on the cases that ran"
    return "--queryeval-baseline=REPORT.json names one" if NO_BASELINE in reasons else ""


def _baseline(report: Report, width: int, *, short: bool) -> Iterator[Line]:
    """What flipped and what changed since the baseline, in short only how much and what besides the system."""
    if baseline := report.get("baseline"):
        yield "", {}
        told = [headline(baseline), *changes_besides(baseline)] if short else baseline_passages(baseline)
        lines = text_lines(told, width)
        yield from ((line, {"bold": number == 0}) for number, line in enumerate(lines))


def _metrics(metrics: Mapping[str, MetricReport], width: int) -> Iterator[Line]:
    rows = [
        (
            name,
            score_text(stats["mean"]),
            interval_text(stats["ci95"]),
            f"{stats['n']:,}",
            f"{stats['missed']:,}" if stats["missed"] else "-",
        )
        for name, stats in metrics.items()
    ]
    if rows:
        yield from _printed(parts_of(("metric", "mean", "95 % interval", "n", "missed"), rows, width=width))


def _printed(parts: Sequence[Part]) -> Iterator[Line]:
    for part in parts:
        yield "", {}
        yield from ((line, {"bold": number == 0}) for number, line in enumerate(part.lines))


def _details(report: Report, width: int, *, whole: bool) -> Iterator[Line]:
    """What the cases are made of: groups, dimensions, Spider's levels."""
    ranked = by_weight(report)
    for group in GROUPS_SHOWN:
        yield from _group(group, report["groups"][group], ranked, width, whole=whole)
    yield from _dimensions(report.get("dimensions", {}), width, whole=whole)
    yield from _spider_table(report, width, whole=whole)


def _group(
    group: str, members: Mapping[str, GroupReport], ranked: Sequence[str], width: int, *, whole: bool
) -> Iterator[Line]:
    """A table of means where the group tells cases apart: of the metrics that matter most, as many as fit."""
    if len(members) < 2:
        return
    names = [name for name in ranked if any(name in member["metrics"] for member in members.values())]
    rows = [
        (
            value,
            f"{member['totals']['cases']:,}",
            f"{member['totals']['passed']:,}",
            *(score_text(mean_of(member, name)) for name in names),
        )
        for value, member in members.items()
    ]
    header = (group, "cases", "passed", *(both_ends(name, NAME_WIDTH) for name in names))
    parts = parts_of(header, rows if whole else rows[:ROWS], width=width)
    yield from _printed(parts if whole else parts[:1])
    if not whole:
        yield from _left_out(len(rows) - ROWS, group)
        yield from _left_out(len(header) - 1 - parts[0].columns, "metric")


def _left_out(number: int, noun: str) -> Iterator[Line]:
    if number > 0:
        yield f"… {counted(number, noun)} more: -v, or a report", {}


def _dimensions(found: Mapping[str, DimensionStatistics], width: int, *, whole: bool) -> Iterator[Line]:
    """Precision and recall of each SDMX dimension."""
    if not found:
        return
    rows = [(name, *dimension_cells(cells)) for name, cells in found.items()]
    yield from _printed(parts_of(("dimension", *DIMENSION_COLUMNS), rows if whole else rows[:ROWS], width=width))
    if not whole:
        yield from _left_out(len(rows) - ROWS, "dimension")


def _spider_table(report: Report, width: int, *, whole: bool) -> Iterator[Line]:
    """The table that the published tool prints, where it tells more than a mean: of many pairs of several levels."""
    if "spider_table" not in report:
        return
    from pytest_queryeval.languages.sql.published.table import table_lines

    table = report["spider_table"]
    yield "", {}
    levels = [name for name, level in table.items() if level["count"] and name != "all"]
    pairs = table["all"]["count"]
    if not whole and (len(levels) < 2 or pairs < FEW_PAIRS):
        told = f"exact match {score_text(table['all']['exact_match'])}"
        yield f"Spider's table of {counted(pairs, 'pair')}: {told}; the rest: -v, or a report", {}
        return
    yield "Spider's table", {"bold": True}
    lines = list(table_lines(table))
    fits = max(map(len, lines)) <= width
    yield from ((line if fits else _closer(line), {}) for line in lines)


def _closer(line: str) -> str:
    """A line of the published table, whose columns are 21 characters wide, in narrow ones; headings stay."""
    name, *cells = re.split(" {2,}", line)
    return name.ljust(16) + "".join(cell.rjust(8) for cell in cells)


def _worst(report: Report, width: int) -> Iterator[Line]:
    """The cases that did not pass, the worst first: why stands beside their names, or below where it has no room."""
    weak = worst_first(report)
    if not weak:
        return
    yield "", {}
    yield f"worst cases ({min(LISTED, len(weak))} of {len(weak):,})", {"bold": True}
    # pytest shows how the answers of failed cases differ.
    told = [one_line(reason(case) if case["outcome"] == "missed" else said(case)) for case in weak[:LISTED]]
    names = [one_line(case["nodeid"], width - 2) for case in weak[:LISTED]]
    wide = max(map(len, names))
    has_columns = 2 + wide + 2 + max(map(len, told)) <= width
    for case, name, why in zip(weak, names, told, strict=False):
        lines = [f"  {name.ljust(wide)}  {why}"] if has_columns else [f"  {without_middle(name, width - 2)}"]
        lines += [] if has_columns else wrap(why, width, initial_indent="    ", subsequent_indent="    ")
        yield from ((line.rstrip(), {"red": case["outcome"] != "missed"}) for line in lines)


def _slowest(cases: Sequence[CaseReport], width: int) -> Iterator[Line]:
    timed = sorted(((_seconds(case), case["nodeid"]) for case in cases), reverse=True)[:LISTED]
    slow = [(seconds, nodeid) for seconds, nodeid in timed if seconds >= SLOW_SECONDS]
    if slow:
        yield "", {}
        yield "slowest cases", {"bold": True}
    for seconds, nodeid in slow:
        start = f"  {seconds:8.2f} s  "
        yield f"{start}{both_ends(nodeid, width - len(start))}", {}


def _seconds(case: CaseReport) -> float:
    return sum(timed["seconds"] for part in TIMED_PARTS if (timed := case[part]) is not None)


def _empty_golds(cases: Sequence[CaseReport]) -> Iterator[Line]:
    empty = [case["nodeid"] for case in cases if case["details"].get("empty_gold")]
    if empty:
        yield "", {}
        yield (
            f"{len(empty):,} gold answer(s) without rows, which any query that returns nothing matches: {_some(empty)}",
            {"yellow": True},
        )


def _ties(report: Report) -> Iterator[Line]:
    if text := ties_text(report):
        yield "", {}
        tied = [case["nodeid"] for case in report["cases"] if case["depends_on_tie"]]
        yield f"{text}: {_some(tied)}", {"yellow": True}


def _some(nodeids: Sequence[str]) -> str:
    return f"{', '.join(map(one_line, nodeids[:LISTED]))}{', …' * (len(nodeids) > LISTED)}"


def _other_engines(cases: Sequence[CaseReport]) -> Iterator[Line]:
    """How many answers came from another engine than the first of their source."""
    notes = [note for case in cases for note in case["details"].get("notes", ()) if ": answered by " in note]
    counts = Counter(note.partition(": answered by ")[2].partition(",")[0] for note in notes)
    for name, number in counts.items():
        yield "", {}
        answers = f"{number:,} answer(s) by {one_line(name)}"
        yield f"{answers}, since the engine before it refused the query", {"yellow": True}


def _gates(gates: Sequence[GateReport], *, short: bool) -> Iterator[Line]:
    """All gates, or in short those that are not met."""
    shown = [gate for gate in gates if not (short and gate["ok"])]
    if gates:
        yield "", {}
    for gate in shown:
        colour = {True: "green", False: "red", None: "yellow"}[gate["ok"]]
        word = GATE_WORDS[gate["ok"]].upper() if gate["ok"] is False else GATE_WORDS[gate["ok"]]
        yield f"gate {word}: {one_line(gate_text(gate), GATE_CHARACTERS)}", {colour: True}
    if met := len(gates) - len(shown):
        yield f"{counted(met, 'gate')} met", {"green": True}
