"""The report in short, as text for a terminal or a log."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from heapq import nlargest
from textwrap import wrap
from typing import Literal, TypeAlias

from pytest_queryeval.core.case_report import CaseReport
from pytest_queryeval.core.report import GateReport, Report
from pytest_queryeval.reports.added_sections import added_sections
from pytest_queryeval.reports.blocks import Block, Table, Untrusted, text_lines, text_sentence
from pytest_queryeval.reports.sections import (
    amounts_table,
    baseline_blocks,
    baseline_headline,
    baseline_sentences,
    cautions,
    group_table,
    groups_in_tables,
    interval_note,
    metrics_table,
    non_system_changes,
    spider_lines,
)
from pytest_queryeval.results.gates import GATE_WORDS, NO_BASELINE, OFF, gate_line, gate_text
from pytest_queryeval.results.verdict import (
    COLOURS,
    FAILED,
    NO_VERDICT,
    counts_of_cases,
    different_faults,
    verdict,
    worst_first,
)
from pytest_queryeval.text.formatting import (
    format_score,
    one_line,
    one_line_with_end,
    pluralize,
    split_table,
)

Line: TypeAlias = tuple[str, dict[str, bool]]
MAX_LISTED = 5
MAX_ROWS = 20  # of a table of groups or dimensions, of which a suite may have any number
MIN_SLOW_SECONDS = 1.0
CommandName: TypeAlias = Literal["pytest", "evaluate", "merge"]
TimedPart: TypeAlias = Literal["gold", "predicted", "prediction", "scoring"]
TIMED_PARTS: tuple[TimedPart, ...] = ("gold", "predicted", "prediction", "scoring")
NAME_WIDTH = 40
MIN_WIDTH = 40
GATE_CHARACTERS = 1_000
REASON_CHARACTERS = 1_000
REASON_LINES = 2
ALL, USUAL, SHORT = 1, 0, -1  # how much is shown, as pytest counts -v and -q


def summary_lines(
    report: Report, *, width: int, verbosity: int = USUAL, command: CommandName = "pytest"
) -> Iterator[Line]:
    """Yield the lines of a report's summary, each with its colours.

    They show metrics, groups, worst cases, cautions, changes since the baseline, and gates. Lines keep within `width`
    where numbers allow it. With `verbosity` 1 all tables are whole, and the slowest cases are added. With -1 only
    metrics, worst cases, counts of changed cases, and gates that are not met are shown. Errors are whole for the
    `command` evaluate: pytest shows them itself.
    """
    width = max(width, MIN_WIDTH)
    is_short, is_whole = verbosity <= SHORT, verbosity >= ALL
    counts = counts_of_cases(report)
    name = one_line(report["name"], max(width - len(counts) - len(" · "), MIN_WIDTH // 2))
    yield f"{name and f'{name} · '}{counts}", {"bold": True}
    yield from _table(metrics_table(report), width)
    if note := interval_note(report):
        yield one_line(note, width), {}
    if not is_short:
        groups = [table for group in groups_in_tables() if (table := group_table(report, group)).rows]
        for table in groups if is_whole else groups[:1]:
            yield from _table(table, width, is_whole=is_whole, max_parts=1)
        if groups[1:] and not is_whole:
            *first, last = (str(table.header[0]) for table in groups[1:])
            yield f"by {' and '.join((', '.join(first), last)) if first else last}: -v, or a report", {}
        yield from _table(amounts_table(report), width, is_whole=is_whole)
        yield from _spider_table(report, width, is_whole=is_whole)
        for title, blocks in added_sections(report):
            yield from _added_section(title, blocks, width, is_whole=is_whole)
    yield from _worst(report, width, is_whole=is_whole, are_errors_whole=command == "evaluate")
    if is_whole:
        yield from _slowest(report["cases"], width)
    if not is_short:
        yield from _notes(report, width)
    if baseline := report.get("baseline"):
        yield "", {}
        blocks = [baseline_headline(baseline), *non_system_changes(baseline)]
        lines = list(text_lines(baseline_blocks(baseline) if is_whole else blocks, width))
        if not is_short and not is_whole:
            lines += [one_line(text_sentence(sentence), width) for sentence in baseline_sentences(baseline)]
        yield from ((line, {"bold": number == 0}) for number, line in enumerate(lines))
    yield from _gates(report["gates"], is_short=is_short)


def missed_gate_lines(report: Report) -> Iterator[Line]:
    """Yield a line for each missed gate, in the form of pytest's short summary."""
    for gate in report["gates"]:
        if gate["ok"] is False:
            yield f"GATE {one_line(gate_line(gate), GATE_CHARACTERS)}", {"red": True}


def verdict_line(report: Report, faults: Sequence[str] = (), *, command: CommandName = "pytest") -> Line:
    """Return the line with the verdict of a report, and its colour.

    `faults` are problems such as a report that cannot be written: the first makes a good verdict a failed one. A
    missing verdict gets a remedy in the words of the `command`.
    """
    run_verdict = verdict(report, partial(one_line, characters=GATE_CHARACTERS))
    if faults and run_verdict.is_good:
        return f"queryeval: {FAILED}: {faults[0]}", {COLOURS[FAILED]: True, "bold": True}
    remedy = _remedy(report, command) if run_verdict.state == NO_VERDICT and not run_verdict.is_cut else ""
    return f"{run_verdict.line}{remedy and f'; {remedy}'}", {COLOURS[run_verdict.state]: True, "bold": True}


def _remedy(report: Report, command: CommandName) -> str:
    """Return what to do to get a verdict in a run without one, in the words of the command.

    Return an empty text if only other cases would help.
    """
    if report["totals"]["cases"] == report["totals"]["skipped"] > 0:
        return f"{'-rs' if command == 'pytest' else 'a report'} shows why cases were skipped"
    reasons = {gate["reason"] for gate in report["gates"]}
    if OFF in reasons:
        return "`queryeval merge` evaluates gates"
    if any(gate["value"] is not None for gate in report["gates"]):
        if command == "merge":
            return "name the reports of the other cases as well"
        option = "-o queryeval_gates" if command == "pytest" else "--gates"
        return f"{option}=selection evaluates gates on the cases that ran"
    option = "--queryeval-baseline" if command == "pytest" else "--baseline"
    return f"name a baseline with {option}=REPORT.json" if reasons == {NO_BASELINE} else ""


def _table(table: Table, width: int, *, is_whole: bool = True, max_parts: int | None = None) -> Iterator[Line]:
    """Yield the lines of a table, with a line on what is left out; nothing for a table without rows.

    Unless `is_whole`, only the first MAX_ROWS rows and `max_parts` parts are shown. A wide table is split into parts.
    """
    if not table.rows:
        return
    header = [one_line_with_end(cell, NAME_WIDTH) if isinstance(cell, Untrusted) else cell for cell in table.header]
    parts = split_table(header, table.rows if is_whole else table.rows[:MAX_ROWS], width=width)
    shown_parts = parts if is_whole else parts[:max_parts]
    for part in shown_parts:
        yield "", {}
        yield from ((line, {"bold": number == 0}) for number, line in enumerate(part.lines))
    if not is_whole:
        columns = sum(part.columns for part in shown_parts)
        left_out = {table.header[0]: len(table.rows) - MAX_ROWS, "metric": len(header) - 1 - columns}
        for noun, number in left_out.items():
            if number > 0:
                yield f"… {pluralize(number, noun)} more: -v, or a report", {}


def _spider_table(report: Report, width: int, *, is_whole: bool) -> Iterator[Line]:
    """Yield the lines of Spider's table if the report has it; unless `is_whole`, one line about it."""
    table = report.get("spider_table")
    if not table:
        return
    yield "", {}
    if not is_whole:
        pairs = table["all"]["count"]
        mean = f"exact match {format_score(table['all']['exact_match'])}"
        yield f"Spider's table of {pluralize(pairs, 'pair')}: {mean}; the rest: -v, or a report", {}
        return
    yield "Spider's table", {"bold": True}
    lines = spider_lines(report)
    if max(map(len, lines)) > width:  # columns of 21 characters become narrow ones
        cells = [re.split(" {2,}", line) for line in lines]
        lines = [name.ljust(16) + "".join(cell.rjust(8) for cell in numbers) for name, *numbers in cells]
    yield from ((line, {}) for line in lines)


def _added_section(title: str, blocks: Iterable[Block], width: int, *, is_whole: bool) -> Iterator[Line]:
    yield "", {}
    yield one_line(title, width), {"bold": True}
    for block in blocks:
        if isinstance(block, Table):
            yield from _table(block, width, is_whole=is_whole)
        else:
            yield from ((line, {}) for line in text_lines([block], width))


def _worst(report: Report, width: int, *, is_whole: bool, are_errors_whole: bool) -> Iterator[Line]:
    """Yield at most MAX_LISTED cases that did not pass, the worst first, with their findings.

    Cases with the same error count once. Findings have two lines, unless `is_whole`, or `are_errors_whole` and the case
    is in error.
    """
    worst_cases, sharing = different_faults(worst_first(report))
    if not worst_cases:
        return
    from pytest_queryeval.reports.story import failure_summary  # which a run without misses does not need

    yield "", {}
    yield f"worst cases ({min(MAX_LISTED, len(worst_cases))} of {len(worst_cases):,})", {"bold": True}
    for case in worst_cases[:MAX_LISTED]:
        colours = {"red": case["outcome"] != "missed"}
        name = one_line_with_end(case["nodeid"], width - 2)
        why = one_line(failure_summary(case, sharing[case["nodeid"]]), REASON_CHARACTERS)
        if len(name) + len(why) <= width - 4:
            yield f"  {name}  {why}".rstrip(), colours
            continue
        yield f"  {name}", colours
        is_whole_case = is_whole or (are_errors_whole and case["outcome"] == "error")
        lines = wrap(
            why,
            width,
            initial_indent="    ",
            subsequent_indent="    ",
            break_long_words=not is_whole_case,
            break_on_hyphens=False,
            max_lines=None if is_whole_case else REASON_LINES,
            placeholder=" …",
        )
        yield from ((line, colours) for line in lines)


def _slowest(cases: Iterable[CaseReport], width: int) -> Iterator[Line]:
    timed_cases = (
        (sum(part["seconds"] for name in TIMED_PARTS if (part := case[name])), case["nodeid"]) for case in cases
    )
    slowest_cases = nlargest(MAX_LISTED, (pair for pair in timed_cases if pair[0] >= MIN_SLOW_SECONDS))
    if slowest_cases:
        yield "", {}
        yield "slowest cases", {"bold": True}
    for seconds, nodeid in slowest_cases:
        start = f"  {seconds:8.2f} s  "
        yield f"{start}{one_line_with_end(nodeid, width - len(start))}", {}


def _notes(report: Report, width: int) -> Iterator[Line]:
    """Yield cautions, and how many answers came from another engine than the first."""
    for caution in cautions(report):
        yield "", {}
        yield from ((line, {"yellow": True}) for line in text_lines([caution], width))
    notes = (note.partition(": answered by ") for case in report["cases"] for note in case["details"].get("notes", ()))
    engines = Counter(engine.partition(",")[0] for _, is_answered, engine in notes if is_answered)
    for name, number in engines.items():
        yield "", {}
        answers = f"{pluralize(number, 'answer')} by {one_line(name)}"
        yield f"{answers}, because the engine before it refused the query", {"yellow": True}


def _gates(gates: Sequence[GateReport], *, is_short: bool) -> Iterator[Line]:
    """Yield a line for each gate, the missed gates last, next to the verdict.

    If `is_short`, met gates are only counted.
    """
    ordered = sorted(gates, key=lambda gate: (True, None, False).index(gate["ok"]))
    shown_gates = [gate for gate in ordered if not (is_short and gate["ok"])]
    if gates:
        yield "", {}
    for gate in shown_gates:
        colour = {True: "green", False: "red", None: "yellow"}[gate["ok"]]
        word = GATE_WORDS[gate["ok"]].upper() if gate["ok"] is False else GATE_WORDS[gate["ok"]]
        yield f"gate {word}: {one_line(gate_text(gate), GATE_CHARACTERS)}", {colour: True}
    if met_gates := len(gates) - len(shown_gates):
        yield f"{pluralize(met_gates, 'gate')} met", {"green": True}
