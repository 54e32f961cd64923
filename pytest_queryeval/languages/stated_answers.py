"""Golds and predictions that are tables in a suite, or files, by their suffix; answers that are parsed, not run."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice, pairwise
from pathlib import Path
from typing import TypeAlias, TypeVar

from pytest_queryeval.core.errors import CaseError, Location, SuiteError
from pytest_queryeval.core.json_value import JsonValue
from pytest_queryeval.core.model import Failure, QueryOrAnswer
from pytest_queryeval.core.shapes import ANYTHING, SCALAR, list_shape, mapping_shape, shape
from pytest_queryeval.core.table import Cell, Table
from pytest_queryeval.documents.document import MAX_DEPTH, MEBIBYTE, File, Node, file_at, parse_json, read_json
from pytest_queryeval.documents.strict_json import StrictJson, line_and_column, places_of_refusal
from pytest_queryeval.documents.values import items, known_entries, read_each, required_text, text, unexpected
from pytest_queryeval.languages.extract_query import (
    NO_END,
    CodeBlock,
    code_blocks,
    reasoning_tags,
    span_after_reasoning,
)
from pytest_queryeval.text.formatting import first_of, one_line, pluralize

MAX_STATED_BYTES = 32 * MEBIBYTE
TABLE_KEYS = ("columns", "rows")
_ADDED = {"columns": "`columns: [NAME, …]`", "rows": "`rows: [[VALUE, …], …]`"}
_PARTS = {"columns": list_shape(SCALAR), "rows": list_shape(list_shape(ANYTHING))}
FileReader: TypeAlias = Callable[[File], QueryOrAnswer]
CellReader: TypeAlias = Callable[[Node], Cell]
T = TypeVar("T")
MAX_TEXT = 32 * MEBIBYTE  # characters
MAX_VALUES = 1_000_000
MAX_VALUES_NAMED = 6  # in a message
MAX_NAMED = 16  # characters of a value in a message
MAX_SCALAR = 40
FENCED = "the answer was read from a code block"
REASONED = "the answer was read from the text after reasoning"
WITHIN_TEXT = "the answer was read from within other text"
CUT = ", or raise the token limit of the model if that has cut the answer"
_JSON = StrictJson()
_OPENING = re.compile(r"[\[{]")
_WITHIN = re.compile(r'"(?:[^"\\]|\\.?)*"?|[\[\]{}]', re.DOTALL)
_LINE_OF_YAML = re.compile(r"^[ \t]*(?:- )?[^\W\d][\w -]*:(?:[ \t]+\S.*|[ \t]*)$", re.MULTILINE)
_SCALAR = re.compile(r'"[^"\n]+"|(?<![\w.,:/-])-?\d+(?:\.\d+)?(?![\w%:/-]|[.,]\d)')
_BEGINS_LIKE_JSON = re.compile(r'\s*(?:["{\[]|-?\d)')
_BEGINS_LIKE_VALUE = re.compile(r"\s*[\[{]")
_BEGINS_LIKE_OTHER_OBJECT = re.compile(r"""[{\[]\s*(?:["'\u2018\u201c\u00ab{]|\\|&quot;|[\w$]+\s*:)""")
_BEGINS_LIKE_OBJECT = re.compile(r"\{\s*[\"']|\[\s*[{\"']")
# Of a longer value, before and behind the one that was found.
_PART_BEFORE = re.compile(r"[}\]]\s*\Z|(?<=\")\s*[:,]\s*\Z")
_PART_BEHIND = re.compile(r"""\s*(?:[}\]]|[,:]\s*(?:["'}\]\d-]|true\b|false\b|null\b|\Z))""")
_ANSWER = File(Path("answer"), Path("answer"))


def stated_file(node: Node, readers: Mapping[str, FileReader]) -> QueryOrAnswer:
    """Return the answer in the file that a node names, read by its suffix.

    Raises `CaseError` at the node, also for problems in the file.
    """
    name = required_text(node)
    file = file_at(node.file.folder / name)
    suffix = file.path.suffix.lower()
    if suffix not in readers:
        raise node.problem(f"unknown suffix of '{name}': choose from {', '.join(readers)}")
    try:
        return replace(readers[suffix](file), location=Location(file.shown))
    except (CaseError, SuiteError) as error:
        raise node.problem(str(error).splitlines()[0]) from error


def text_file(file: File) -> QueryOrAnswer:
    """Return the text of a file as a query or an answer; raise `CaseError` if it is blank."""
    text = file.text(MAX_STATED_BYTES)
    if not text.strip():
        raise file.problem("is empty")
    return QueryOrAnswer(query=text)


@shape(mapping_shape(_PARTS, required=TABLE_KEYS))
def read_table(node: Node, read_cell: CellReader) -> Table:
    """Return the table that `{columns: [...], rows: [[...], ...]}` states; `read_cell` reads its cells.

    Raises `CaseError` or `SuiteError` for other values, and for rows of another length.
    """
    if node.form != "mapping":
        raise unexpected(node, "a mapping", ": write {columns: [NAME, …], rows: [[VALUE, …], …]}")
    parts = known_entries(node, dict.fromkeys(TABLE_KEYS, items))
    if missing_keys := [name for name in TABLE_KEYS if name not in parts]:
        raise node.problem(f"a table needs `columns` and `rows`: add {_ADDED[missing_keys[0]]}")
    columns = tuple(read_each(parts["columns"], text))
    rows = read_each(enumerate(parts["rows"], start=1), lambda row: _row(*row, width=len(columns), read_cell=read_cell))
    return Table(columns=columns, rows=rows, has_header=bool(columns or rows))


def _row(number: int, node: Node, *, width: int, read_cell: CellReader) -> tuple[Cell, ...]:
    cells = items(node)
    if len(cells) != width:
        counts = f"row {number} has {pluralize(len(cells), 'cell')}, the table {pluralize(width, 'column')}"
        raise node.problem(f"{counts}: write one cell for each column, `null` for no value")
    return tuple(read_each(cells, read_cell))


def table_readers(stated_cell: CellReader, csv_cell: CellReader) -> Mapping[str, FileReader]:
    """Return readers of files by suffix.

    `stated_cell` reads cells that people write, `csv_cell` those of CSV files.
    """
    return {
        ".sql": text_file,
        ".rq": text_file,
        ".sparql": text_file,
        ".csv": lambda file: _read_separated(file, csv_cell),
        ".tsv": lambda file: _read_separated(file, csv_cell),
        ".json": lambda file: QueryOrAnswer(answer=read_table(read_json(file), stated_cell)),
        ".srj": _sparql_results,
        ".srx": _sparql_results,
    }


def _sparql_results(file: File) -> QueryOrAnswer:
    from pytest_queryeval.languages.sparql.results import read_results

    try:
        return QueryOrAnswer(answer=read_results(file.text(MAX_STATED_BYTES), file.path.suffix.lower()))
    except ValueError as error:
        raise file.problem(str(error)) from error


def _read_separated(file: File, read_cell: CellReader) -> QueryOrAnswer:
    text = file.text(MAX_STATED_BYTES)
    delimiter = "\t" if file.path.suffix.lower() == ".tsv" else ","
    if delimiter == "\t" and all(name.startswith("?") for name in text.partition("\n")[0].split("\t")):
        return _sparql_results(file)  # which have a `?` before each variable
    lines = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        header = next((tuple(line) for line in lines if line), None)
        if header is None:
            raise file.problem("has no header row: write the names of the columns into the first row")
        if len(header) == 1 and not text.lstrip().startswith('"') and any(mark in header[0] for mark in ";\t"):
            marks = "tabs" if delimiter == "\t" else "commas"
            remedy = f"separate the cells by {marks}, or write it in quotes if it is the name of the only column"
            raise file.problem(f"the header is one cell, '{one_line(header[0])}': {remedy}", 1)
        rows = []
        for line in lines:
            if line and len(line) != len(header):
                counts = f"{pluralize(len(line), 'cell')} in a table of {pluralize(len(header), 'column')}"
                raise file.problem(f"{counts}: quote cells that contain a delimiter or a line end", lines.line_num)
            if line:
                rows.append(tuple(read_cell(Node(cell, lines.line_num, "plain", file)) for cell in line))
    except csv.Error as error:
        raise file.problem(str(error), lines.line_num) from error
    return QueryOrAnswer(answer=Table(columns=header, rows=rows))


def answer_text(text: str) -> tuple[str, str] | Failure:
    """Return the answer of a model without its reasoning and the code block around it, and a note if it had these.

    What is removed is replaced by blanks, so that lines and columns stay those of the whole answer. A failure says why
    the answer is not read: it is empty, too large, ends within its reasoning, or has several code blocks.
    """
    text = text.removeprefix("\ufeff")
    if len(text) > MAX_TEXT:
        return Failure(kind="too_large", message=f"the answer has {len(text):,} characters, more than {MAX_TEXT:,}")
    if text.count(",") + text.count("[") + text.count("{") > MAX_VALUES:
        return Failure(kind="too_large", message=f"the answer has more than {MAX_VALUES:,} values")
    notes, start = [], 0
    if tags := _tags_outside_values(text):
        span = span_after_reasoning(text, tags)
        if span is None:
            return Failure(kind="invalid", message=f"{NO_END} {_place(text, tags[-1].start())}")
        start, end = span
        text = _blanked(text[:start]) + text[start:end]
        notes.append(REASONED)
    blocks = list(code_blocks(text[start:]))
    if len(blocks) == 1 and not (blocks[0].info or blocks[0].content.strip()) and _OPENING.search(text):
        blocks = []  # the fence closes a block that the prompt has opened
    lines_before = text.count("\n", 0, start)
    where = " behind its reasoning" * bool(start)
    if len(blocks) > 1 or text.lstrip()[:1] not in ("{", "[") or text.rstrip()[-1:] not in ("}", "]"):
        block = _answer_block(blocks, lines_before)
        if isinstance(block, Failure):
            return block
        if block is not None:
            notes.append(f"{FENCED}{_unread_note(text[start:], blocks, block, lines_before)}")
            where = f" in its code block (line {lines_before + block.line})"
            text = "\n" * (lines_before + block.line - 1) + block.content
    if not text.strip():
        return Failure(kind="empty", message=f"the answer is empty{where}")
    return text, "; ".join(notes)


def _tags_outside_values(text: str) -> list[re.Match[str]]:
    """Return the tags of reasoning that are not within JSON values."""
    tags = reasoning_tags(text)
    if not tags or _value_of(text) is not None:
        return []
    inside = iter([*((start, end) for _, start, end in _outermost_values(text)[0]), (len(text), len(text))])
    start, end = next(inside)
    outside = []
    for tag in tags:
        while end <= tag.start():
            start, end = next(inside)
        if tag.start() < start:
            outside.append(tag)
    return outside


def _answer_block(blocks: Sequence[CodeBlock], lines_before: int) -> CodeBlock | Failure | None:
    """Return the code block with the answer; a failure if several could be it, None without blocks.

    It is the only block, else the only block marked json, else the only block with JSON. Of several blocks with the
    same JSON it is the first.
    """
    if len(blocks) <= 1:
        return next(iter(blocks), None)
    candidates = [block for block in blocks if block.language == "json"]
    if len(candidates) == 1:
        return candidates[0]
    likely = candidates or [block for block in blocks if _BEGINS_LIKE_VALUE.match(block.content)]
    values = [json.dumps(_value_of(block.content), sort_keys=True) for block in likely]
    if likely and len({*values}) == 1 and (len(likely) == 1 or "null" not in values):
        return likely[0]
    which = f"{len(likely)} of them marked json" if candidates else f"{len(likely) or 'none'} of them with JSON"
    named = _listed(
        f"`{one_line(block.content, MAX_NAMED)}` (line {lines_before + block.line}{', not JSON' * (value == 'null')})"
        for block, value in zip(likely or blocks, values or "-" * len(blocks), strict=True)
    )
    message = f"the answer has {len(blocks):,} code blocks, {which}{' and different' * bool(likely)}, {named}"
    return Failure(kind="invalid", message=f"{message}: return one, with JSON")


def _listed(names: Iterable[str]) -> str:
    return first_of([*names], MAX_VALUES_NAMED)


def _unread_note(text: str, blocks: Sequence[CodeBlock], block: CodeBlock, lines_before: int) -> str:
    """Return the end of a note on other values outside of the code blocks of a text; empty if there are none."""
    lines = text.split("\n")
    for other in blocks:
        count = other.content.count("\n") + 1
        lines[other.line - 1 : other.line - 1 + count] = [""] * count
    prose = "\n" * lines_before + "\n".join(lines)
    read = _value_of(block.content)
    found = [
        (start, end) for value, start, end in _outermost_values(prose)[0] if value != read and not _has_numbers(value)
    ]
    return f", not from {_named_spans(prose, found)}" if found else ""


def _value_of(text: str) -> JsonValue:
    """Return the JSON value that a whole text is; None if it is not JSON."""
    with suppress(ValueError):
        value: JsonValue = _JSON.read(text)
        return value
    return None


def _blanked(text: str) -> str:
    return re.sub(r"[^\n]", " ", text)


def read_json_text(text: str, read: Callable[[Node], T]) -> tuple[T, str] | Failure:
    """Return the result of `read` for a text as JSON, and a note if other text was around it; a failure otherwise.

    If a text is no JSON as a whole, the only outermost object in it is read, else the only outermost list. The failure
    has the first problem.
    """
    result = _read_json(text, read)
    if not isinstance(result, Failure):
        return result, ""
    part = _json_part(text)
    if isinstance(part, Failure):
        return part
    if part == text:
        has_words = len(text.split(maxsplit=1)) > 1 and not _BEGINS_LIKE_JSON.match(text)
        return Failure(kind="invalid", message=_no_json(text)) if has_words else result
    result = _read_json(part, read)
    return result if isinstance(result, Failure) else (result, WITHIN_TEXT)


def _no_json(text: str) -> str:
    """Return why a text in words is not read as a value, with a remedy.

    It may be YAML, a sentence with one value, or text without JSON.
    """
    if len(lines := [*islice(_LINE_OF_YAML.finditer(text), MAX_VALUES_NAMED)]) > 1:
        name = lines[0][0].partition(":")[0].strip(" -")
        example = f'{{"{one_line(name, MAX_NAMED)}": …}}'
        return f"the answer is YAML, not JSON: write {example} {_place(text, lines[0].start())}"
    scalars = [*islice(_SCALAR.finditer(text), 2)]
    if len(scalars) == 1 and not re.search(r"[\[{]|\n\s*\S", text.strip()):
        value = one_line(scalars[0][0], MAX_SCALAR)
        return f"the answer is text, not JSON: return {value} alone if that is it {_place(text, scalars[0].start())}"
    return f"there is no JSON in the answer, which begins `{one_line(text.strip(), MAX_NAMED)}`: return JSON alone"


def _read_json(text: str, read: Callable[[Node], T]) -> T | Failure:
    try:
        return read(parse_json(text, _ANSWER, line=0))
    except (CaseError, SuiteError) as error:
        problem = error.problems[0] if isinstance(error, SuiteError) else error
        line, column = problem.location.line, problem.location.column
        places = [f"line {line}, column {column}"] if column else []
        places = places or [_where(text, at) for at in places_of_refusal(text, problem.problem, MAX_DEPTH)]
        end = text.rstrip()
        may_be_cut = end[-1:] not in ("}", "]") or places == [_where(text, len(end))]
        cut = CUT * (may_be_cut and problem.problem.startswith("not JSON: it ends "))
        place = f" ({' and '.join(places)})" if places else ""
        return Failure(kind="invalid", message=f"{problem.problem}{cut}{place}")


def _json_part(text: str) -> str | Failure:
    """Return the text with blanks instead of what is around its JSON value, so that positions stay the same.

    Lists of numbers next to an object or another list are references in a sentence, and ignored. Without a value, the
    part that begins like a value is kept, else the whole text. A failure says that values differ, cannot be read, or
    may be part of a longer value.
    """
    values, broken, spans = _outermost_values(text)
    found = [value for value in values if not _has_numbers(value[0])] or values
    distinct = {json.dumps(value, sort_keys=True): (start, end) for value, start, end in reversed(found)}
    if found and (broken or len(distinct) > 1):
        several, remedy = "several JSON values that differ", "return one, as JSON alone"
        if broken:
            several = "a JSON value and one that cannot be read"
        elif not _around(text, found).strip(", \t\r\n"):
            is_line = all("\n" in text[end:start] for (_, _, end), (_, start, _) in pairwise(found))
            several += ", one a line (JSON Lines)" * is_line
            remedy = "put them in one list, [ … ], or return one alone"
        named = _named_spans(text, sorted([*distinct.values(), *broken]), broken)
        return Failure(kind="invalid", message=f"the answer has {several}, {named}: {remedy}")
    parts = [(start, end) for _, start, end in found]
    if (place := _place_of_more(text, spans, {*parts})) is not None:
        more = f"`{text[place]}` {_place(text, place)}"
        remedy = "remove it, or return the longer value alone"
        message = f"the JSON value that was found may be part of a longer one, because of {more}: {remedy}"
        return Failure(kind="invalid", message=message)
    parts = parts or broken or [span for span in spans if _BEGINS_LIKE_OTHER_OBJECT.match(text, span[0])]
    if not parts:
        return text
    start, end = parts[0]
    return _blanked(text[:start]) + text[start:end]


def _outermost_values(
    text: str,
) -> tuple[list[tuple[JsonValue, int, int]], list[tuple[int, int]], list[tuple[int, int]]]:
    """Return the outermost values of a text with their spans, the spans that only begin like objects, and all spans."""
    values: list[tuple[JsonValue, int, int]] = []
    broken: list[tuple[int, int]] = []
    spans = list(_outermost(text))
    for start, end in spans:
        try:
            value = _JSON.read(text[start:end])
        except ValueError:
            if _BEGINS_LIKE_OBJECT.match(text, start):
                broken.append((start, end))
        else:
            values.append((value, start, end))
    return values, broken, spans


def _around(text: str, found: Sequence[tuple[JsonValue, int, int]]) -> str:
    """Return the text before, between and behind values."""
    starts, ends = [*(start for _, start, _ in found), len(text)], [0, *(end for _, _, end in found)]
    return "".join(text[end:start] for end, start in zip(ends, starts, strict=True))


def _named_spans(text: str, spans: Iterable[tuple[int, int]], broken: Collection[tuple[int, int]] = ()) -> str:
    """Return the parts of a text at these spans, shortened, with their places; for a message."""
    return _listed(
        f"`{one_line(text[start:end], MAX_NAMED)}` ({_where(text, start)}{', not JSON' * ((start, end) in broken)})"
        for start, end in spans
    )


def _place_of_more(text: str, spans: Sequence[tuple[int, int]], found: Collection[tuple[int, int]]) -> int | None:
    """Return the position of a mark of JSON before or behind a found value, as in a longer value; None without one."""
    ends, starts = [0, *(end for _, end in spans)], [*(start for start, _ in spans), len(text)]
    for number, (start, end) in enumerate(spans):
        if (start, end) in found:
            before = _PART_BEFORE.search(text[ends[number] : start])
            behind = _PART_BEHIND.match(text[end : starts[number + 1]])
            if before:
                return ends[number] + before.start() + len(before[0]) - len(before[0].lstrip())
            if behind:
                return end + len(behind[0]) - len(behind[0].lstrip())
    return None


def _place(text: str, at: int) -> str:
    return f"({_where(text, at)})"


def _where(text: str, at: int) -> str:
    line, column = line_and_column(text, at)
    return f"line {line}, column {column}"


def _has_numbers(value: JsonValue) -> bool:
    return isinstance(value, list) and all(isinstance(item, int | float) for item in value)


def _outermost(text: str) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each outermost pair of brackets; an unclosed pair ends with the text."""
    start = depth = place = 0
    while (match := (_WITHIN if depth else _OPENING).search(text, place)) is not None:
        place = match.end()
        if match[0] in ("{", "["):
            start, depth = start if depth else match.start(), depth + 1
        elif match[0] in ("}", "]"):
            depth -= 1
            if not depth:
                yield start, place
    if depth:
        yield start, len(text)
