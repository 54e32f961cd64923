"""Everything that a report says about one case, as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pytest_queryeval.core.counterexample_report import CounterexampleReport
from pytest_queryeval.core.report import (
    CaseReport,
    CauseReport,
    DifferenceReport,
    QueryReport,
    Row,
)
from pytest_queryeval.reports.blocks import Block, Table, Untrusted, text_lines
from pytest_queryeval.results.verdict import first_line
from pytest_queryeval.text.escaping import terminal_safe
from pytest_queryeval.text.formatting import format_score, limits_text, pluralize
from pytest_queryeval.text.truncation import cell_text, one_line, one_line_with_end

LINE_CHARACTERS = 1_000
CELL_CHARACTERS = 40
MARGIN = "  | "
INDENT = "  "


def explanation_lines(case: CaseReport, width: int) -> Iterator[str]:
    """Yield the outcome with its reason, the question, both queries with their answers, the difference and the scores.

    Untrusted text of several lines is behind a margin. Tables keep within `width` where their cells allow it.
    """
    failed = ""
    if case["predicted"] is not None and (error := case["predicted"]["error"]) is not None:
        failed = f"prediction failed ({error['kind']}): {error['message']}"
    why = first_line(case) or failed
    yield one_line(f"{case['nodeid']}: {case['outcome']}{why and f': {why}'}", LINE_CHARACTERS)
    place = f"{case['path']}:{case['line']}" + (f" ({case['place']})" if "place" in case else "")
    about = {
        "question": case["question"],
        "evidence": case["evidence"],
        "source": case["source"] or "",
        "kind": case["kind"] or "",
        "difficulty": case["difficulty"] or "",
        "tags": ", ".join(case["tags"]),
        "suite": place,
    }
    yield from (f"  {name:<10} {one_line(value, LINE_CHARACTERS)}" for name, value in about.items() if value)
    if (gold := case["gold"]) is not None:
        which = f"gold (number {gold['index'] + 1})" if gold["index"] else "gold"
        yield from ("", which, *_query_lines(gold, width))
    if (predicted := case["predicted"]) is not None:
        source = f", from {case['prediction']['source']}" if case["prediction"] else ""
        yield from ("", one_line(f"predicted{source}"), *_query_lines(predicted, width))
        if failed:
            yield f"{INDENT}{one_line(failed, LINE_CHARACTERS)}"
    if case["cause"] is not None and not failed:
        yield from ("", "cause", *_cause_lines(case["cause"]))
    if case["difference"] is not None:
        yield from ("", "difference", *_difference_lines(case["difference"], gold, width))
    if case["scores"]:
        thresholds = case["fingerprint"]["thresholds"] if case["fingerprint"] else {}
        needs = {name: limits_text(limits["min"], limits["max"]) for name, limits in thresholds.items()}
        rows = [(Untrusted(name), format_score(score), needs.get(name, "")) for name, score in case["scores"].items()]
        yield from ("", "scores", *_indented([Table(("metric", "score", "needs"), rows)], width))
    if case["trials"]:
        passed = {True: "passed", False: "did not pass", None: "-"}
        trials = [
            (f"trial {number}", passed[trial["passed"]], *(format_score(score) for score in trial["scores"].values()))
            for number, trial in enumerate(case["trials"], start=1)
        ]
        header = ("trial", "", *map(Untrusted, case["trials"][0]["scores"]))
        yield from ("", "trials", *_indented([Table(header, trials)], width))
    if notes := list(_notes(case)):
        yield from ("", "notes", *(f"{INDENT}{one_line_with_end(note, LINE_CHARACTERS)}" for note in notes))


def counterexample_lines(found: CounterexampleReport, width: int) -> Iterator[str]:
    """Yield the note, and the rows of a counterexample with the answers of both queries."""
    yield from ("", "counterexample", f"{INDENT}{one_line(found['note'], LINE_CHARACTERS)}")
    for table in found["tables"]:
        header = [Untrusted(name) for name in table["columns"]]
        yield f"{INDENT}table {one_line(table['name'], CELL_CHARACTERS)}"
        yield from _indented([Table(header, [_row(row, len(header)) for row in table["rows"]])], width)
    for name, answer in (("gold", found["gold"]), ("predicted", found["predicted"])):
        if answer is not None:
            yield f"{INDENT}{name} answers"
            yield from _answer_lines(answer, width)


def _query_lines(found: QueryReport, width: int) -> Iterator[str]:
    query = found["query"]
    if query is None:
        yield f"{MARGIN}(a stored answer)"
    else:
        yield from _text_lines(query)
    yield from _answer_lines(found, width)


def _answer_lines(found: QueryReport, width: int) -> Iterator[str]:
    if found["columns"] is None or found["row_count"] is None:
        return
    shape = f"{pluralize(found['row_count'], 'row')} of {pluralize(len(found['columns']), 'column')}"
    ran = f"{found['seconds']:.3f} s" if found["seconds"] else "not run"
    yield f"{INDENT}{shape}, {ran}"
    if found["sample"] and found["columns"]:
        header = [Untrusted(name) for name in found["columns"]]
        rows = [_row(row, len(header)) for row in found["sample"]]
        yield from _indented([Table(header, rows)], width)
    if (more := found["row_count"] - len(found["sample"])) and found["sample"]:
        yield f"{INDENT}… {pluralize(more, 'more row')}"


def _cause_lines(cause: CauseReport) -> Iterator[str]:
    for edit in cause["edits"]:
        change = ": ".join(filter(None, (edit["clause"], edit["change"])))
        yield f"{INDENT}{one_line(change, LINE_CHARACTERS)} ({one_line(edit['label'], LINE_CHARACTERS)})"
    if cause["repaired_query"] is not None:
        yield from _text_lines(cause["repaired_query"])


def _text_lines(query: str) -> Iterator[str]:
    return (f"{MARGIN}{line}".rstrip() for line in terminal_safe(query).strip("\n").splitlines() or [""])


def _difference_lines(found: DifferenceReport, gold: QueryReport | None, width: int) -> Iterator[str]:
    """Yield the difference in words, and its rows: those changed as a pair of gold and predicted."""
    yield f"{INDENT}{one_line(found['summary'], LINE_CHARACTERS)}"
    rows: list[tuple[str, Row]] = [
        *(("missing", row) for row in found["missing"]),
        *(("extra", row) for row in found["extra"]),
        *(pair for one in found["changed"] for pair in (("gold", one["gold"]), ("instead", one["predicted"]))),
        *(
            (f"{one['gold']:,} times in gold, {one['predicted']:,} in predicted", one["row"])
            for one in found["repeated"]
        ),
    ]
    if rows:
        names = gold["columns"] if gold is not None and gold["columns"] else []
        wide = max(len(row) for _, row in rows)
        header = ["", *(Untrusted(name) for name in (*names, *[""] * wide)[:wide])]
        yield from _indented([Table(header, [(label, *_row(row, wide)) for label, row in rows])], width)


def _row(cells: Row, width: int) -> list[str]:
    """Return the text of exactly so many cells, as tables need it."""
    return [*(cell_text(cell, CELL_CHARACTERS) for cell in cells), *[""] * width][:width]


def _notes(case: CaseReport) -> Iterator[str]:
    details = case["details"]
    if case["depends_on_tie"]:
        yield "predicted is right only because a LIMIT of gold cuts through rows that tie"
    yield from details.get("notes", ())
    # What these hold is up to metrics, and to whoever wrote the report.
    violations: object = details.get("violations")
    texts: object = details.get("exact_set_match")
    if isinstance(violations, list):
        yield from (f"violation: {violation}" for violation in violations)
    if isinstance(texts, dict) and isinstance(differs := texts.get("differs"), list) and differs:
        yield f"the texts of the queries differ in {', '.join(map(str, differs))}"


def _indented(blocks: Iterable[Block], width: int) -> Iterator[str]:
    return (f"{INDENT}{line}" for line in text_lines(blocks, width - len(INDENT)))
