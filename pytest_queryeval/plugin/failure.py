"""The text of a failed case: first what was missed, then both queries, then where the answers differ."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

import pytest

from pytest_queryeval.comparison.lookalikes import has_midnight, lookalikes, text_and_number
from pytest_queryeval.comparison.shown_cells import shown_cell, type_name
from pytest_queryeval.core.difference import Difference
from pytest_queryeval.core.model import CaseResult
from pytest_queryeval.core.policy import Policy
from pytest_queryeval.core.table import Table
from pytest_queryeval.languages import KINDS
from pytest_queryeval.metrics.execution_accuracy import execution_accuracy
from pytest_queryeval.results.case_json import ShortLabels, stated_text
from pytest_queryeval.results.headline import LINE_CHARACTERS, headline
from pytest_queryeval.text.escaping import terminal_safe
from pytest_queryeval.text.formatting import format_score, pluralize
from pytest_queryeval.text.truncation import cell_text, one_line, one_line_with_end, truncate

ROWS = 8
QUERY_LINES = 12
CELL_CHARACTERS = 40  # at least
BETWEEN = " · "
# Of the rows behind a label: their colour, and at which distance the row is whose cells they are compared with.
COLOURS = {"    missing": ("green", 0), "    gold": ("green", 1), "    extra": ("red", 0), "    instead": ("red", -1)}


class ThresholdMissed(AssertionError):  # noqa: N818 - an outcome, not an error
    """A case whose scores do not meet its thresholds: a failure, not an error, for reports that distinguish them."""

    def __init__(self, result: CaseResult) -> None:
        super().__init__(headline(result))
        self.result = result


def error_message(report: pytest.TestReport) -> str:
    """Return why a test did not pass: the reason of a skip, or the error, with its traceback where it has one."""
    if report.longrepr is None:
        return ""
    if isinstance(report.longrepr, tuple):
        return str(report.longrepr[2]).removeprefix("Skipped: ")
    text = report.longreprtext
    crash = getattr(report.longrepr, "reprcrash", None)  # a traceback begins with the arguments of pytest's functions
    return text if crash is None or text.startswith(crash.message) else f"{crash.message}\n\n{text}"


def failure_lines(result: CaseResult) -> Iterator[str]:
    """Yield the text of the failure, at most a screenful, with untrusted text behind a margin."""
    yield headline(result)
    if result.predicted.error is not None and result.violations:
        yield f"  missed     {', '.join(violation.metric for violation in result.violations)}"
    if result.case.question:
        yield f"  question   {one_line(result.case.question, LINE_CHARACTERS)}"
    if (number := len(result.case.golds)) > 1:
        yield f"  golds      {number}, of which gold_any[{result.shown.gold_index}] is the closest"
    yield from _query("gold", stated_text(result.gold, result.case))
    yield from _query("predicted", stated_text(result.predicted, result.case))
    if result.cause is not None:
        for edit in result.cause.edits:
            # Why a query failed is in the headline.
            change = edit.change if result.predicted.error is None else ""
            where = one_line(": ".join(filter(None, (edit.clause, change))), LINE_CHARACTERS)
            yield f"  cause      {f'{where} ({edit.label})' if where else edit.label}"
    if result.difference is not None:
        yield from _answer_differences(result, result.difference)
    yield from _query_differences(result.details)
    yield from (f"  note       {note}" for note in result.details.get("notes", ()))
    usual = Policy(text_numbers=KINDS[result.case.settings.kind].text_numbers)
    settings = [(field.name, getattr(result.case.settings.policy, field.name)) for field in fields(Policy)]
    if changed := [f"{name}: {_cell(value)}" for name, value in settings if value != getattr(usual, name)]:
        yield f"  compare    {', '.join(changed)}"
    yield f"  scores     {', '.join(f'{name} {format_score(value)}' for name, value in result.scores.items())}"
    row = f" ({result.case.row})" if result.case.row else ""
    yield f"  case       {one_line(f'{result.case.location}{row}', LINE_CHARACTERS)}"


def coloured(lines: Sequence[str], markup: Callable[..., str]) -> Iterator[str]:
    """Yield the lines of a failure in the colours of the page: green for gold, red for predicted, bold what differs."""
    yield markup(lines[0], red=True, bold=True)
    for number, line in enumerate(lines[1:], start=1):
        label, bar, text = line.partition(" | ")
        colour, other = COLOURS.get(label.rstrip(), ("", 0))
        if not colour:
            yield line
            continue
        cells = text.split(BETWEEN)
        others = lines[number + other].partition(" | ")[2].split(BETWEEN)
        if len(others) != len(cells):  # truncated, or with the separator in a cell
            others = cells
        pairs = zip(cells, others, strict=True)
        shown = (markup(cell, **{colour: True, "bold": cell != its}) for cell, its in pairs)
        yield f"{markup(label, **{colour: True})}{bar}{BETWEEN.join(shown)}"


def _query(label: str, query: str | None) -> Iterator[str]:
    """Yield the first lines of a query behind its label."""
    if query is None:
        yield f"  {label:<10} | (a stored answer)"
        return
    lines = terminal_safe(query).strip("\n").splitlines() or [""]
    for number, line in enumerate(lines[:QUERY_LINES]):
        yield f"  {label if number == 0 else '':<10} | {truncate(line, LINE_CHARACTERS)}".rstrip()
    if len(lines) > QUERY_LINES:
        yield f"  {'':<10} | … {len(lines) - QUERY_LINES} more lines"


def _query_differences(details: Mapping[str, Any]) -> Iterator[str]:
    """Yield violations of a schema, and where the texts of the queries differ, as far as a metric found it."""
    for violation in details.get("violations", ())[:ROWS]:
        yield f"  violation  {one_line_with_end(violation, LINE_CHARACTERS)}"
    found = details.get("exact_set_match")
    if isinstance(found, Mapping):
        parts = [f"predicted cannot be read: {found['unreadable']}"] if "unreadable" in found else []
        if differs := found.get("differs"):
            parts.append(f"differ in {', '.join(differs)}")
        yield f"  texts      {one_line('; '.join(parts), LINE_CHARACTERS)}"


def _answer_differences(result: CaseResult, whole: Difference) -> Iterator[str]:
    """Yield how the answers differ: in their shapes, in rows, and with hints at what would make them equal."""
    shapes = [
        f"{name} has {pluralize(len(answer.rows), 'row')} of {pluralize(len(answer.columns), 'column')}"
        for name, answer in (("gold", result.gold.answer), ("predicted", result.predicted.answer))
        if isinstance(answer, Table)
    ]
    if shapes:
        yield f"  answers    {', '.join(shapes)}"
    found = replace(
        whole,
        missing=whole.missing[:ROWS],
        extra=whole.extra[:ROWS],
        changed=whole.changed[:ROWS],
        repeated=whole.repeated[:ROWS],
    )
    policy, labels = result.case.settings.policy, ShortLabels()
    alike = lookalikes(found, policy, _cell)
    where = "to the suite, for all rows of the table" if result.case.row else "to the case"
    typed = {(column, _cell(cell)) for column, *cells in alike for cell in cells}
    if found.missing or found.extra or found.changed or found.repeated:
        yield f"    columns  | {_row(found.columns)}"
    yield from (f"    missing  | {_row(map(labels.of, row), typed)}" for row in found.missing)
    yield from (f"    extra    | {_row(map(labels.of, row), typed)}" for row in found.extra)
    for gold, predicted in found.changed:
        yield f"    gold     | {_row(map(labels.of, gold), typed)}"
        yield f"    instead  | {_row(map(labels.of, predicted), typed)}"
    for row, times, predicted_times in found.repeated:
        yield f"    repeated | {_row(map(labels.of, row))} ({times:,} in gold, {predicted_times:,} in predicted)"
    if any(text_and_number(*pair) for _, *pair in alike) and not policy.text_numbers:
        yield f"  hint       if a number and its text may be equal, add `compare: {{text_numbers: true}}` {where}"
    if has_midnight(found):
        yield "  hint       a date does not equal a timestamp at midnight: cast both to one type"
    if found.repeated and _is_equal(result, duplicates="ignore"):
        yield f"  hint       if duplicates do not matter, add `compare: {{duplicates: ignore}}` {where}"
    rows_agree = found.counts == (0, 0) and not found.repeated
    if rows_agree and not _is_equal(result) and _is_equal(result, extra_columns="allow"):
        yield f"  hint       if further columns do not matter, add `compare: {{extra_columns: allow}}` {where}"


def _is_equal(result: CaseResult, **changes: Any) -> bool:
    """Return whether the answers are equal under a policy with these changes."""
    gold, predicted = result.gold.answer, result.predicted.answer
    if not isinstance(gold, Table) or not isinstance(predicted, Table):
        return False
    policy = replace(result.case.settings.policy, **changes)
    return execution_accuracy(gold, predicted, policy=policy) == 1.0


def _row(cells: Iterable[Any], typed: Collection[tuple[int, str]] = ()) -> str:
    """Return the cells in one line, the fewer the longer each; those in `typed`, which look alike, with their types."""
    shown = list(cells)
    room = max(LINE_CHARACTERS // max(len(shown), 1) - len(BETWEEN), CELL_CHARACTERS)
    texts = [_cell(cell, room) for cell in shown]
    for column, cell in enumerate(shown):
        if cell is not None and (column, _cell(cell)) in typed:
            texts[column] += f" ({type_name(cell)})"
    return truncate(BETWEEN.join(texts), LINE_CHARACTERS)


def _cell(cell: Any, room: int = CELL_CHARACTERS) -> str:
    return cell_text(cell, room) if isinstance(cell, str) else shown_cell(cell, room)
