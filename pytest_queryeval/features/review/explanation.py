"""Everything that a report says about one case, as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pytest_queryeval.core.case_report import CaseReport, Row
from pytest_queryeval.reports.blocks import Block, Table, Untrusted, text_lines
from pytest_queryeval.reports.story import (
    CELL_CHARACTERS,
    Differences,
    Ending,
    Fact,
    Notes,
    Scores,
    StoryCause,
    StoryChallenge,
    StoryQuery,
    StorySteps,
    TableExcerpt,
    Trials,
    answer_of,
    case_story,
    edit_line,
    step_line,
)
from pytest_queryeval.results.case_json import CounterexampleReport
from pytest_queryeval.text.formatting import cell_text, format_score, one_line, one_line_with_end, terminal_safe

LINE_CHARACTERS = 1_000
STEP_CHARACTERS = 100  # of an input or an output
MARGIN = "  | "
INDENT = "  "


def explanation_lines(case: CaseReport, width: int) -> Iterator[str]:
    """Yield all parts of the story of a case.

    Untrusted text of several lines is behind a margin. Tables keep within `width` where their cells allow it.
    """
    for part in case_story(case):
        match part:
            case Ending():
                reason = part.reason and f": {part.reason}"
                yield one_line(f"{case['nodeid']}: {part.outcome}{reason}", LINE_CHARACTERS)
            case Fact():
                yield f"{INDENT}{part.name:<10} {one_line(part.text, LINE_CHARACTERS)}"
            case StorySteps(summary=summary, steps=steps):
                yield from ("", f"steps ({summary})")
                for number, step in enumerate(steps, start=1):
                    yield f"{INDENT}{number:>3} {one_line(step_line(step, STEP_CHARACTERS), LINE_CHARACTERS)}"
            case _:
                yield from ("", *_section(part, width))


def counterexample_lines(counterexample: CounterexampleReport, width: int) -> Iterator[str]:
    """Yield the note, and the rows of a counterexample with the answers of both queries."""
    yield from ("", "counterexample", f"{INDENT}{one_line(counterexample['note'], LINE_CHARACTERS)}")
    for table in counterexample["tables"]:
        yield f"{INDENT}table {one_line(table['name'], CELL_CHARACTERS)}"
        yield from _rows(table["columns"], table["rows"], width)
    for name, query in (("gold", counterexample["gold"]), ("predicted", counterexample["predicted"])):
        if query is not None and (answer := answer_of(query)) is not None:
            yield f"{INDENT}{name} answers"
            yield from _answer_lines(answer, width)


def _section(
    part: StoryQuery | StoryCause | StoryChallenge | Differences | Notes | Scores | Trials, width: int
) -> Iterator[str]:
    """Yield the title of a part, and its lines."""
    match part:
        case StoryQuery(name=name, origin=origin):
            yield one_line(f"{name}{origin and f', {origin}'}")
            yield from [f"{MARGIN}(a stored answer)"] if part.text is None else _text_lines(part.text)
            if part.answer is not None:
                yield from _answer_lines(part.answer, width)
            if part.failure:
                yield f"{INDENT}{one_line(part.failure, LINE_CHARACTERS)}"
        case StoryCause(edits=edits, repaired_query=repaired_query):
            yield "cause" if part.is_tested or repaired_query is None else "cause (compared on the source only)"
            yield from (f"{INDENT}{edit_line(edit, LINE_CHARACTERS)}" for edit in edits)
            yield from _text_lines(repaired_query) if repaired_query is not None else ()
        case StoryChallenge(summary=summary, script=script):
            yield "challenge"
            yield f"{INDENT}{one_line(summary, LINE_CHARACTERS)}"
            yield from _text_lines(script) if script else ()
        case Differences(rows=rows):
            yield "difference"
            yield f"{INDENT}{one_line(part.summary, LINE_CHARACTERS)}"
            width_of_rows = len(part.columns)
            header = ["", *map(Untrusted, part.columns)]
            cells = [(row.times or row.label, *_cells(row.row, width_of_rows)) for row in rows]
            yield from _indented([Table(header, cells)], width) if rows else ()
        case Notes(notes=notes):
            yield "notes"
            yield from (f"{INDENT}{note.name:<10} {one_line_with_end(note.text, LINE_CHARACTERS)}" for note in notes)
        case Scores(scores=scores):
            yield "scores"
            cells = [(Untrusted(score.metric), format_score(score.value), score.needs) for score in scores]
            yield from _indented([Table(("metric", "score", "needs"), cells)], width)
        case Trials(trials=trials):
            yield "trials"
            cells = [
                (f"trial {number}", trial.verdict, *map(format_score, trial.scores.values()))
                for number, trial in enumerate(trials, start=1)
            ]
            yield from _indented([Table(("trial", "", *map(Untrusted, trials[0].scores)), cells)], width)


def _answer_lines(answer: TableExcerpt, width: int) -> Iterator[str]:
    yield f"{INDENT}{answer.shape}, {answer.ran}"
    if answer.rows and answer.columns:
        yield from _rows(answer.columns, answer.rows, width)
    if answer.rows and answer.more:
        yield f"{INDENT}{answer.more}"


def _text_lines(query: str) -> Iterator[str]:
    return (f"{MARGIN}{line}".rstrip() for line in terminal_safe(query).strip("\n").splitlines() or [""])


def _rows(columns: Iterable[str], rows: Iterable[Row], width: int) -> Iterator[str]:
    header = [Untrusted(name) for name in columns]
    return _indented([Table(header, [_cells(row, len(header)) for row in rows])], width)


def _cells(row: Row, width: int) -> list[str]:
    """Return the text of exactly so many cells, as tables need it."""
    return [*(cell_text(cell, CELL_CHARACTERS) for cell in row), *[""] * width][:width]


def _indented(blocks: Iterable[Block], width: int) -> Iterator[str]:
    return (f"{INDENT}{line}" for line in text_lines(blocks, width - len(INDENT)))
