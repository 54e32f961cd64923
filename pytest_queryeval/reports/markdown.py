"""report.md: verdict, gates, metrics, and the cases that did not pass, for pull requests and step summaries."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pytest_queryeval.aggregation import DIMENSION_COLUMNS, CaseJson, Report, dimension_cells
from pytest_queryeval.gates import gate_text
from pytest_queryeval.plain import one_line

GROUPS_SHOWN = ("kind", "difficulty", "tag")
LISTED = 50
MESSAGE_CHARACTERS = 300
FAULTS = ("failed", "missed", "error")
_TICKS = re.compile("`+")


def render_markdown(report: Report) -> bytes:
    """GitHub's Markdown, below 100 kB whatever the number of cases. Foreign text stands in code spans only."""
    parts = (
        [f"**{_verdict(report)}**"],
        _gates(report["gates"]),
        _metrics(report["metrics"]),
        *(_group(group, report["groups"][group]) for group in GROUPS_SHOWN),
        _dimensions(report),
        _spider_table(report),
        _faults(report["cases"]),
    )
    blocks = ["\n".join(lines) for part in parts if (lines := list(part))]
    return ("\n\n".join(blocks) + "\n").encode(errors="backslashreplace")


def code(text: str) -> str:
    """Foreign text as a code span in a cell of a table: nothing in it is markup, a link or a mention."""
    text = one_line(text, MESSAGE_CHARACTERS).replace("|", "\\|")
    fence = "`" * (1 + max(map(len, _TICKS.findall(text)), default=0))
    return f"{fence} {text} {fence}" if len(fence) > 1 else f"`{text}`"


def _verdict(report: Report) -> str:
    totals = report["totals"]
    missed = sum(gate["ok"] is False for gate in report["gates"])
    broken = len(report.get("broken", ()))
    counts = [f"{number:,} {name}" for name, number in totals.items() if number and name != "cases"]
    counts += [_counted(missed, "gate") + " missed"] * bool(missed)
    counts += [_counted(broken, "suite file") + " could not be read"] * bool(broken)
    return f"{_word(report, missed + broken)}: {_counted(totals['cases'], 'case')}: {', '.join(counts) or 'none ran'}"


def _word(report: Report, faults: int) -> str:
    totals = report["totals"]
    if report.get("stopped"):
        return "Stopped early"
    if faults or totals["failed"] or totals["errors"]:
        return "Failed"
    return "Passed" if totals["cases"] > totals["skipped"] else "Nothing evaluated"


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'s' * (number != 1)}"


def _gates(gates: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    words = {True: "met", False: "**missed**", None: "not judged"}
    yield from (f"- gate {words[gate['ok']]}: {code(gate_text(gate))}" for gate in gates)


def _metrics(metrics: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    rows = [
        (
            name,
            _number(found["mean"]),
            " to ".join(map(_number, found["ci95"] or ())),
            f"{found['n']:,}",
            f"{found['missed']:,}",
        )
        for name, found in metrics.items()
    ]
    yield from _table(("metric", "mean", "95 % interval", "n", "missed"), rows)


def _group(group: str, members: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    if len(members) < 2:
        return
    names = list(dict.fromkeys(name for member in members.values() for name in member["metrics"]))
    rows = [
        (
            value,
            f"{member['totals']['cases']:,}",
            f"{member['totals']['passed']:,}",
            *(_number(member["metrics"].get(name, {}).get("mean")) for name in names),
        )
        for value, member in list(members.items())[:LISTED]
    ]
    yield from _table((group, "cases", "passed", *names), rows)


def _dimensions(report: Report) -> Iterator[str]:
    rows = [(code(name), *dimension_cells(found)) for name, found in report.get("dimensions", {}).items()]
    yield from _table(("dimension", *DIMENSION_COLUMNS), rows[:LISTED])


def _spider_table(report: Report) -> Iterator[str]:
    if "spider_table" in report:
        from pytest_queryeval.sql.published.table import table_lines

        yield from ("```text", *table_lines(report["spider_table"]), "```")


def _faults(cases: Iterable[CaseJson]) -> Iterator[str]:
    """The cases that did not pass, in the order of the report."""
    faults = [case for case in cases if case["outcome"] in FAULTS]
    rows = [(code(case["nodeid"]), case["outcome"], code(case["message"])) for case in faults[:LISTED]]
    yield from _table(("case", "outcome", "message"), rows)
    if len(faults) > LISTED:
        yield f"\n… and {len(faults) - LISTED:,} more"


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    if not rows:
        return
    yield f"| {' | '.join(header)} |"
    yield f"|{'---|' * len(header)}"
    yield from (f"| {' | '.join(row)} |" for row in rows)


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"
