"""The report in short, as text for a terminal or a log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any, TypeAlias

from pytest_queryeval.aggregation import DIMENSION_COLUMNS, CaseJson, Report, dimension_cells
from pytest_queryeval.gates import gate_text
from pytest_queryeval.plain import one_line, score_text, shortened

Line: TypeAlias = tuple[str, dict[str, bool]]
GROUPS_SHOWN = ("difficulty", "tag", "kind")
LISTED = 5
SLOW_SECONDS = 0.1
NAME_WIDTH = 40
DIMENSIONS = 40  # predicted may name any number of them


def summary_lines(report: Report, *, width: int) -> Iterator[Line]:
    """Metrics, groups, weakest and slowest cases, empty golds, gates: each line with its colours."""
    yield _totals(report["totals"]), {"bold": True}
    yield from _metrics(report["metrics"])
    for group in GROUPS_SHOWN:
        yield from _group(group, report["groups"][group])
    yield from _dimensions(report)
    yield from _spider_table(report)
    yield from _weakest(report["cases"], width)
    yield from _slowest(report["cases"], width)
    yield from _empty_golds(report["cases"])
    yield from _other_engines(report["cases"])
    yield from _gates(report["gates"])


def _totals(totals: Mapping[str, int]) -> str:
    words = {"errors": "error"} if totals["errors"] == 1 else {}
    counts = [f"{number:,} {words.get(name, name)}" for name, number in totals.items() if number and name != "cases"]
    return f"{totals['cases']:,} case{'s' * (totals['cases'] != 1)}: {', '.join(counts) or 'none ran'}"


def _metrics(metrics: Mapping[str, Mapping[str, Any]]) -> Iterator[Line]:
    if not metrics:
        return
    yield "", {}
    rows = [
        (
            name,
            score_text(stats["mean"]),
            _interval(stats["ci95"]),
            f"{stats['n']:,}",
            f"{stats['missed']:,}" if stats["missed"] else "-",
        )
        for name, stats in metrics.items()
    ]
    yield from _columns(("metric", "mean", "95 % interval", "n", "missed"), rows)


def _interval(ci95: Sequence[float] | None) -> str:
    return "" if ci95 is None else f"{ci95[0]:.3f} to {ci95[1]:.3f}"


def _group(group: str, members: Mapping[str, Mapping[str, Any]]) -> Iterator[Line]:
    """A table of means, where the group tells cases apart."""
    if len(members) < 2:
        return
    names = list(dict.fromkeys(name for member in members.values() for name in member["metrics"]))
    rows = [
        (
            shortened(value, NAME_WIDTH),
            f"{member['totals']['cases']:,}",
            f"{member['totals']['passed']:,}",
            *(score_text(member["metrics"].get(name, {}).get("mean")) for name in names),
        )
        for value, member in members.items()
    ]
    yield "", {}
    yield from _columns((group, "cases", "passed", *names), rows)


def _dimensions(report: Report) -> Iterator[Line]:
    """Precision and recall of each SDMX dimension."""
    if "dimensions" not in report:
        return
    yield "", {}
    found = list(report["dimensions"].items())
    rows = [(one_line(name, NAME_WIDTH), *dimension_cells(cells)) for name, cells in found[:DIMENSIONS]]
    yield from _columns(("dimension", *DIMENSION_COLUMNS), rows)
    if len(found) > DIMENSIONS:
        yield f"… and {len(found) - DIMENSIONS:,} more", {}


def _spider_table(report: Report) -> Iterator[Line]:
    """The table as the published tool prints it."""
    if "spider_table" not in report:
        return
    from pytest_queryeval.sql.published.table import table_lines

    yield "", {}
    yield "Spider's table", {"bold": True}
    yield from ((line, {}) for line in table_lines(report["spider_table"]))


def _columns(header: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[Line]:
    """A table: the first column to the left, numbers to the right."""
    rows = list(rows)
    widths = [max(len(row[place]) for row in (header, *rows)) for place in range(len(header))]
    for number, row in enumerate((header, *rows)):
        cells = [
            cell.ljust(wide) if place == 0 else cell.rjust(wide)
            for place, (cell, wide) in enumerate(zip(row, widths, strict=True))
        ]
        yield "  ".join(cells).rstrip(), {"bold": number == 0}


def _weakest(cases: Sequence[CaseJson], width: int) -> Iterator[Line]:
    """The cases that did not pass, those with the lowest scores first."""
    weak = sorted((case for case in cases if case["outcome"] in ("failed", "missed", "error")), key=_mean_score)
    if weak:
        yield "", {}
        yield f"weakest cases ({min(LISTED, len(weak))} of {len(weak):,})", {"bold": True}
    for case in weak[:LISTED]:
        place = f"{PurePosixPath(case['path']).name}:{case['line']}: "
        message = case["message"].partition("\n")[0].rpartition(place)[2]  # the node id tells the place
        yield (
            shortened(f"  {case['nodeid']}: {one_line(message)}", max(width, 60)),
            {"red": case["outcome"] != "missed"},
        )


def _mean_score(case: CaseJson) -> float:
    known = [value for value in case["scores"].values() if value is not None]
    return float(sum(known) / len(known)) if known else -1.0


def _slowest(cases: Sequence[CaseJson], width: int) -> Iterator[Line]:
    timed = sorted(((_seconds(case), case["nodeid"]) for case in cases), reverse=True)[:LISTED]
    slow = [(seconds, nodeid) for seconds, nodeid in timed if seconds >= SLOW_SECONDS]
    if slow:
        yield "", {}
        yield "slowest cases", {"bold": True}
    for seconds, nodeid in slow:
        yield shortened(f"  {seconds:8.2f} s  {nodeid}", max(width, 60)), {}


def _seconds(case: CaseJson) -> float:
    return sum(float(case[part]["seconds"]) for part in ("gold", "predicted", "prediction") if case[part])


def _empty_golds(cases: Sequence[CaseJson]) -> Iterator[Line]:
    empty = [case["nodeid"] for case in cases if case["details"].get("empty_gold")]
    if empty:
        named = f"{', '.join(empty[:LISTED])}{', …' * (len(empty) > LISTED)}"
        yield "", {}
        yield (
            f"{len(empty):,} gold answer(s) without rows, which any query that returns nothing matches: {named}",
            {"yellow": True},
        )


def _other_engines(cases: Sequence[CaseJson]) -> Iterator[Line]:
    """How many answers came from another engine than the first of their source."""
    notes = [note for case in cases for note in case["details"].get("notes", ()) if ": answered by " in note]
    counts = Counter(note.partition(": answered by ")[2].partition(",")[0] for note in notes)
    for name, number in counts.items():
        yield "", {}
        yield f"{number:,} answer(s) by {name}, since the engine before it refused the query", {"yellow": True}


def _gates(gates: Sequence[Mapping[str, Any]]) -> Iterator[Line]:
    if gates:
        yield "", {}
    for gate in gates:
        verdict, colour = {True: ("met", "green"), False: ("MISSED", "red"), None: ("not judged", "yellow")}[gate["ok"]]
        yield f"gate {verdict}: {gate_text(gate)}", {colour: True}
