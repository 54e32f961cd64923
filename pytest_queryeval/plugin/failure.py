"""The text of a failed case: first the missed thresholds, then both queries, then the differing rows."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from textwrap import wrap
from typing import Any

from pytest_queryeval.comparison.difference_texts import (
    closest_excerpts,
    column_lines,
    distinguishing_texts,
    lookalikes,
    shown_cell,
    shown_columns,
    type_name,
)
from pytest_queryeval.core.case_report import CaseReport, DifferenceReport
from pytest_queryeval.core.groups import group_values, groups_shown
from pytest_queryeval.core.model import CaseResult
from pytest_queryeval.core.table import Row
from pytest_queryeval.reports.story import (
    ARROW,
    CAUSE_DIRECTION,
    DIFFERENCE_DIRECTION,
    Differences,
    Notes,
    Part,
    Scores,
    StoryCause,
    StoryChallenge,
    StoryQuery,
    case_story,
    closest_text,
    differing_rows,
    edit_line,
    shares_shown,
)
from pytest_queryeval.results.case_json import ShortLabels
from pytest_queryeval.results.verdict import LINE_CHARACTERS, headline
from pytest_queryeval.text.formatting import (
    cell_text,
    excerpts,
    format_score,
    one_line,
    one_line_with_end,
    pluralize,
    shared_ends,
    terminal_safe,
    truncate,
)

ROWS = 8
QUERY_LINES = 12
CONTEXT_LINES = 2  # before the first line that differs
NOTE_CHARACTERS = 400
CAUSE_CHARACTERS = 500  # of an edit, which a report has up to 400
CELL_CHARACTERS = 40  # at least
BETWEEN = " · "
# For the rows behind a label: their colour, and the offset of the row that their cells are compared with.
COLOURS = {"    missing": ("green", 0), "    gold": ("green", 1), "    extra": ("red", 0), "    instead": ("red", -1)}


def failure_lines(result: CaseResult, report: CaseReport) -> Iterator[str]:
    """Yield the lines of a failure, at most a screenful: headline, queries, cause, differing rows and scores.

    Untrusted text stands behind a margin.
    """
    case = result.case
    yield headline(result)
    if result.shown.predicted.error is not None and result.violations:
        yield _line("missed", ", ".join(violation["metric"] for violation in result.violations))
    if case.question:
        yield _line("question", case.question)
    for name, group in groups_shown("failure").items():
        if values := group_values(report, name):
            yield _line(group.heading, ", ".join(values))
    if (number := len(case.golds)) > 1:
        yield _line("golds", f"{number}, of which {closest_text(report, result.shown.gold_index)}")
    yield from _story_lines(list(case_story(report)), result)
    yield _line("case", f"{case.location} ({case.row})" if case.row else str(case.location))


def _story_lines(story: Sequence[Part], result: CaseResult) -> Iterator[str]:
    """Yield the lines for the parts of a story: queries, cause, challenge, differing rows, notes and scores.

    Other parts have no lines here. The differing rows come from `result`.
    """
    queries = {part.name: part.text for part in story if isinstance(part, StoryQuery)}
    shapes = [f"{part.name} {part.answer.shape}" for part in story if isinstance(part, StoryQuery) and part.answer]
    for part in story:
        match part:
            case StoryQuery(name=name, text=text):
                yield from _query_lines(name, text, queries.get("predicted" if name == "gold" else "gold"))
            case StoryCause(cause=cause):
                lines = [edit_line(edit, CAUSE_CHARACTERS) for edit in cause["edits"]]
                changed = next((at for at, edit in enumerate(cause["edits"]) if ARROW in edit["change"]), None)
                yield from (
                    f"  cause      {line}{f', {CAUSE_DIRECTION}' * (at == changed)}" for at, line in enumerate(lines)
                )
            case StoryChallenge(summary=summary, counterexample=counterexample):
                yield _line("challenge", summary)
                if counterexample is not None:
                    yield from (f"    gold     | {_row_line(row)}" for row in counterexample["gold_rows"][:ROWS])
                    yield from (f"    instead  | {_row_line(row)}" for row in counterexample["predicted_rows"][:ROWS])
            case Differences():
                yield from [_line("answers", ", ".join(shapes))] if shapes else ()
                yield from _answer_differences(result)
            case Notes(notes=notes):
                violations = [note for note in notes if note.name == "violation"]
                for note in (*violations[:ROWS], *notes[len(violations) :]):
                    yield f"  {note.name:<10} {one_line_with_end(note.text, NOTE_CHARACTERS)}"
            case Scores(scores=scores, compare=compare):
                yield from [f"  compare    {compare}"] if compare else ()
                yield f"  scores     {', '.join(f'{score.metric} {format_score(score.value)}' for score in scores)}"


def _line(label: str, text: str) -> str:
    return f"  {label:<10} {one_line(text, LINE_CHARACTERS)}"


def colour_lines(lines: Sequence[str], markup: Callable[..., str]) -> Iterator[str]:
    """Yield the lines of a failure with gold's rows in green, predicted rows in red, and differing cells in bold.

    `markup` is pytest's function that colours a text.
    """
    yield markup(lines[0], red=True, bold=True)
    for number, line in enumerate(lines[1:], start=1):
        label, bar, text = line.partition(" | ")
        colour, offset = COLOURS.get(label.rstrip(), ("", 0))
        if not colour:
            yield line
            continue
        cells = text.split(BETWEEN)
        counterparts = lines[number + offset].partition(" | ")[2].split(BETWEEN)
        if len(counterparts) != len(cells):  # truncated, or with the separator in a cell
            counterparts = cells
        pairs = zip(cells, counterparts, strict=True)
        coloured_cells = (markup(cell, **{colour: True, "bold": cell != counterpart}) for cell, counterpart in pairs)
        yield f"{markup(label, **{colour: True})}{bar}{BETWEEN.join(coloured_cells)}"


def _query_lines(label: str, query: str | None, other: str | None) -> Iterator[str]:
    """Yield the lines of a query behind its label; of a long query only those around differences to `other`.

    None as the query stands for a stored answer.
    """
    if query is None:
        yield f"  {label:<10} | (a stored answer)"
        return
    lines, others = (terminal_safe(text or "").strip("\n").splitlines() or [""] for text in (query, other))
    start, end = shared_ends(lines, others)
    blocks, done = _shown_blocks(len(lines), start, len(lines) - end), 0
    room = QUERY_LINES // sum(map(len, blocks))
    for block in blocks:
        if block.start > done:
            yield f"  {label if not done else '':<10} | … {pluralize(block.start - done, 'line')}"
        for number in block:
            counterpart = others[number] if start <= number < len(others) else ""
            for at, line in enumerate(_wrapped(lines[number], counterpart, room)):
                yield f"  {label if number == at == 0 else '':<10} | {line}".rstrip()
        done = block.stop
    if done < len(lines):
        yield f"  {'':<10} | … {len(lines) - done} more lines"


def _wrapped(line: str, counterpart: str, room: int) -> list[str]:
    """Return a line of a query as lines of LINE_CHARACTERS, shortened to where it differs from its counterpart.

    It becomes several lines, about `room`, only if the differing part is too long for a line.
    """
    start, end = shared_ends(line, counterpart)
    is_short = len(line) - start - end <= LINE_CHARACTERS - 2
    text = excerpts(line, counterpart, LINE_CHARACTERS * (1 if is_short else room))[0]
    if len(text) <= LINE_CHARACTERS:
        return [text]
    return wrap(text, LINE_CHARACTERS, expand_tabs=False, replace_whitespace=False, break_on_hyphens=False)


def _shown_blocks(lines: int, start: int, stop: int) -> list[range]:
    """Return the ranges of line numbers to show.

    All if few, otherwise around `start` and `stop`, where lines differ.
    """
    if lines <= QUERY_LINES:
        return [range(lines)]
    first = max(0, min(start - CONTEXT_LINES, lines - QUERY_LINES))
    if stop <= first + QUERY_LINES:
        return [range(first, first + QUERY_LINES)]
    half = QUERY_LINES // 2
    return [range(first, first + half), range(stop - half, stop)]


def _answer_differences(result: CaseResult) -> Iterator[str]:
    """Yield the lines on columns that differ, on the first differing rows, and on how many rows are not shown.

    The rows come from the answers, because cells in a report have no types.
    """
    if (full_difference := result.difference) is None:
        return
    by_column = full_difference.get("by_column", [])
    difference: DifferenceReport[Row] = {
        **(shown := shown_columns(full_difference)),
        "missing": shown["missing"][:ROWS],
        "extra": shown["extra"][:ROWS],
        "changed": shown["changed"][:ROWS],
        "repeated": shown["repeated"][:ROWS],
    }
    labels, alike = ShortLabels(), lookalikes(difference, result.case.settings.policy, _cell)
    typed = {(column, _cell(cell)) for column, *cells in alike for cell in cells}
    room = _room(len(difference["columns"]))
    excerpts_of = closest_excerpts(difference, room) | distinguishing_texts(difference, room)
    yield from (f"    {DIFFERENCE_DIRECTION} | {line}" for line in column_lines(by_column, ROWS, LINE_CHARACTERS))
    rows = list(differing_rows({**difference, "changed": []} if by_column else difference))
    if rows:
        yield f"    columns  | {_row_line(difference['columns'])}"
    not_shown = shares_shown(full_difference, difference)
    for differing, following in zip_longest(rows, rows[1:]):
        # The number of times that a row occurs says more than types.
        cells = _row_line(map(labels.of, differing.row), *(((), {}) if differing.times else (typed, excerpts_of)))
        yield f"    {differing.label:<8} | {cells}{differing.times and f' ({differing.times})'}"
        if differing.label in not_shown and (following is None or following.label != differing.label):
            yield f"    {differing.label:<8} | … {not_shown[differing.label]}"


def _row_line(
    cells: Iterable[Any],
    typed: Collection[tuple[int, str]] = (),
    excerpts_of: Mapping[tuple[int, str], str] | None = None,
) -> str:
    """Return the cells of a row as one line, each cell shortened to its share.

    Cells in `typed`, which look like their counterparts, get their types. Cells in `excerpts_of`, by column and `repr`,
    get that text.
    """
    row_cells = list(cells)
    texts = [_cell(cell, _room(len(row_cells))) for cell in row_cells]
    for column, cell in enumerate(row_cells):
        if cell is not None and (column, _cell(cell)) in typed:
            texts[column] += f" ({type_name(cell)})"
        elif excerpts_of:
            texts[column] = excerpts_of.get((column, repr(cell)), texts[column])
    return truncate(BETWEEN.join(texts), LINE_CHARACTERS)


def _room(columns: int) -> int:
    """Return how many characters a cell may have in a row of `columns` columns."""
    return max(LINE_CHARACTERS // max(columns, 1) - len(BETWEEN), CELL_CHARACTERS)


def _cell(cell: Any, room: int = CELL_CHARACTERS) -> str:
    return cell_text(cell, room) if isinstance(cell, str) else shown_cell(cell, room)
