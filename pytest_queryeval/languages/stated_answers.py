"""Golds and predictions that are tables in a suite, or files, by their suffix; answers that are parsed, not run."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias, TypeVar

from pytest_queryeval.core.errors import CaseError, Location, SuiteError
from pytest_queryeval.core.json_value import JsonValue
from pytest_queryeval.core.model import Failure, QueryOrAnswer
from pytest_queryeval.core.shapes import ANYTHING, SCALAR, list_shape, mapping_shape, shape
from pytest_queryeval.core.table import Cell, Table
from pytest_queryeval.documents.document import MAX_DEPTH, MEBIBYTE, File, Node, file_at, parse_json, read_json
from pytest_queryeval.documents.strict_json import StrictJson, place_of_refusal
from pytest_queryeval.documents.values import items, known_entries, read_each, required_text, text, unexpected
from pytest_queryeval.languages.extract_query import (
    NO_END,
    CodeBlock,
    code_blocks,
    reasoning_tags,
    span_after_reasoning,
)
from pytest_queryeval.text.formatting import one_line, pluralize

MAX_STATED_BYTES = 32 * MEBIBYTE
TABLE_KEYS = ("columns", "rows")
_ADDED = {"columns": "`columns: [NAME, …]`", "rows": "`rows: [[VALUE, …], …]`"}
_PARTS = {"columns": list_shape(SCALAR), "rows": list_shape(list_shape(ANYTHING))}
FileReader: TypeAlias = Callable[[File], QueryOrAnswer]
CellReader: TypeAlias = Callable[[Node], Cell]
T = TypeVar("T")
MAX_TEXT = 32 * MEBIBYTE  # characters
MAX_VALUES = 1_000_000
MAX_VALUES_NAMED = 3  # in a message
MAX_NAMED = 16  # characters of a value in a message
FENCED = "the answer was read from a code block"
REASONED = "the answer was read from the text after reasoning"
WITHIN_TEXT = "the answer was read from within other text"
CUT = ", or raise the token limit of the model if that has cut the answer"
_JSON = StrictJson()
_OPENING = re.compile(r"[\[{]")
_WITHIN = re.compile(r'"(?:[^"\\]|\\.?)*"?|[\[\]{}]', re.DOTALL)
_MARK_OF_JSON = re.compile(r"[\[{\"]")
_BEGINS_LIKE_VALUE = re.compile(r"\s*[\[{]")
_BEGINS_LIKE_OBJECT = re.compile(r"\{\s*[\"']|\[\s*[{\"']")
# Of a longer value, before and behind the one that was found.
_PART_BEFORE = re.compile(r"[}\]]\s*\Z|(?<=\")\s*[:,]\s*\Z")
_PART_BEHIND = re.compile(r"""\s*(?:[}\]]|[,:]\s*(?:["'}\]\d-]|true\b|false\b|null\b|\Z))""")
_ANSWER = File(Path("answer"), Path("answer"))


def stated_file(node: Node, readers: Mapping[str, FileReader]) -> QueryOrAnswer:
    """Read the file that a node names; raise `CaseError` there, also for problems in the file."""
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
    """Read a file with the text of a query or an answer; raise `CaseError` if it is empty."""
    text = file.text(MAX_STATED_BYTES)
    if not text.strip():
        raise file.problem("is empty")
    return QueryOrAnswer(query=text)


@shape(mapping_shape(_PARTS, required=TABLE_KEYS))
def read_table(node: Node, read_cell: CellReader) -> Table:
    """Read `{columns: [...], rows: [[...], ...]}`; raise `CaseError` or `SuiteError`."""
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
        raise node.problem(f"{counts}: write one cell for each column, `null` where there is no value")
    return tuple(read_each(cells, read_cell))


def table_readers(stated_cell: CellReader, csv_cell: CellReader) -> Mapping[str, FileReader]:
    """Return readers by suffix; `stated_cell` reads cells that people write, `csv_cell` those of CSV files."""
    return {
        ".sql": text_file,
        ".rq": text_file,
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
            return Failure(kind="invalid", message=NO_END)
        start, end = span
        text = _blanked(text[:start]) + text[start:end]
        notes.append(REASONED)
    blocks = list(code_blocks(text[start:]))
    if len(blocks) > 1 or text.lstrip()[:1] not in ("{", "[") or text.rstrip()[-1:] not in ("}", "]"):
        block = _block(blocks)
        if isinstance(block, Failure):
            return block
        if block is not None:
            text = "\n" * (text.count("\n", 0, start) + block.line - 1) + block.content
            notes.append(FENCED)
    if not text.strip():
        return Failure(kind="empty", message=f"the answer is empty{' behind its reasoning' * bool(start)}")
    return text, "; ".join(notes)


def _tags_outside_values(text: str) -> list[re.Match[str]]:
    """Return the tags of reasoning that are not within JSON values."""
    tags = reasoning_tags(text)
    if not tags or _value_of(text) is not None:
        return []
    values = [(start, end) for start, end, _ in _outermost(text) if _value_of(text[start:end]) is not None]
    inside = iter([*values, (len(text), len(text))])
    start, end = next(inside)
    outside = []
    for tag in tags:
        while end <= tag.start():
            start, end = next(inside)
        if tag.start() < start:
            outside.append(tag)
    return outside


def _block(blocks: Sequence[CodeBlock]) -> CodeBlock | Failure | None:
    """Return the code block with the answer: the only one, else the only one marked json, else the only JSON in them.

    Of several with the same JSON it is the first one.
    """
    if len(blocks) <= 1:
        return next(iter(blocks), None)
    candidates = [block for block in blocks if block.language == "json"]
    if len(candidates) == 1:
        return candidates[0]
    likely = candidates or [block for block in blocks if _BEGINS_LIKE_VALUE.match(block.content)]
    values = {json.dumps(_value_of(block.content), sort_keys=True) for block in likely}
    if likely and len(values) == 1 and (len(likely) == 1 or "null" not in values):
        return likely[0]
    which = f"{len(likely)} of them marked json" if candidates else f"{len(likely) or 'none'} of them with JSON"
    differ = ", which differ or cannot be read" if likely else ""
    message = f"the answer has {len(blocks):,} code blocks, {which}{differ}: return one, with JSON"
    return Failure(kind="invalid", message=message)


def _value_of(text: str) -> JsonValue:
    """Return the JSON value that a text is; None if it is none."""
    with suppress(ValueError):
        value: JsonValue = _JSON.read(text)
        return value
    return None


def _blanked(text: str) -> str:
    return re.sub(r"[^\n]", " ", text)


def read_json_text(text: str, read: Callable[[Node], T]) -> tuple[T, str] | Failure:
    """Return the result of `read` for a text as JSON, and a note if other text was around it; or the first problem.

    Of a text that is no JSON as a whole, the only outermost object is read, else the only outermost list.
    """
    result = _read_json(text, read)
    if not isinstance(result, Failure):
        return result, ""
    if not _MARK_OF_JSON.search(text) and len(text.split(maxsplit=1)) > 1:
        return Failure(kind="invalid", message="there is no JSON in the answer: return JSON alone")
    part = _json_part(text)
    if isinstance(part, Failure) or part == text:
        return part if isinstance(part, Failure) else result
    result = _read_json(part, read)
    return result if isinstance(result, Failure) else (result, WITHIN_TEXT)


def _read_json(text: str, read: Callable[[Node], T]) -> T | Failure:
    try:
        return read(parse_json(text, _ANSWER, line=0))
    except (CaseError, SuiteError) as error:
        problem = error.problems[0] if isinstance(error, SuiteError) else error
        line, column = problem.location.line, problem.location.column
        place = f" (line {line}, column {column})" if column else ""
        if not place and (at := place_of_refusal(text, problem.problem, MAX_DEPTH)) is not None:
            place = f" {_place(text, at)}"
        end = text.rstrip()
        may_be_cut = end[-1:] not in ("}", "]") or place.endswith(_place(text, len(end)))
        ends_early = may_be_cut and any(not is_closed for _, _, is_closed in _outermost(text))
        return Failure(kind="invalid", message=f"{problem.problem}{CUT * ends_early}{place}")


def _json_part(text: str) -> str | Failure:
    """Return the text with blanks instead of what is around its JSON value, so that positions stay the same.

    Lists of numbers next to an object or another list are references in a sentence. Without a value, what begins like
    one is returned, else the whole text.
    """
    values: list[tuple[JsonValue, int, int]] = []
    broken: list[tuple[int, int]] = []
    spans = [(start, end) for start, end, _ in _outermost(text)]
    for start, end in spans:
        try:
            value = _JSON.read(text[start:end])
        except ValueError:
            if _BEGINS_LIKE_OBJECT.match(text, start):
                broken.append((start, end))
        else:
            values.append((value, start, end))
    found = [value for value in values if not _has_numbers(value[0])] or values
    distinct = {json.dumps(value, sort_keys=True): (start, end) for value, start, end in reversed(found)}
    if found and (broken or len(distinct) > 1):
        several = "several JSON values that differ" if not broken else "a JSON value and one that cannot be read"
        places = sorted([*distinct.values(), *broken])
        named = [
            f"`{one_line(text[start:end], MAX_NAMED)}` {_place(text, start)}"
            for start, end in places[:MAX_VALUES_NAMED]
        ]
        more = f" and {len(places) - MAX_VALUES_NAMED:,} more" * (len(places) > MAX_VALUES_NAMED)
        message = f"the answer has {several}, {', '.join(named)}{more}: return one, as JSON alone"
        return Failure(kind="invalid", message=message)
    parts = [(start, end) for _, start, end in found]
    if (place := _place_of_more(text, spans, {*parts})) is not None:
        more = f"`{text[place]}` {_place(text, place)}"
        message = f"the JSON value that was found may be part of a longer one, because of {more}: return JSON alone"
        return Failure(kind="invalid", message=message)
    parts = parts or broken
    if not parts:
        return text
    start, end = parts[0]
    return _blanked(text[:start]) + text[start:end]


def _place_of_more(text: str, spans: Sequence[tuple[int, int]], found: Collection[tuple[int, int]]) -> int | None:
    """Return where a mark of JSON is before or behind a found value, as in a longer value; None without any."""
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
    return f"(line {text.count(chr(10), 0, at) + 1}, column {at - text.rfind(chr(10), 0, at)})"


def _has_numbers(value: JsonValue) -> bool:
    return isinstance(value, list) and all(isinstance(item, int | float) for item in value)


def _outermost(text: str) -> Iterator[tuple[int, int, bool]]:
    """Yield where brackets that stand in no others begin and end, and whether they end before the text does."""
    start = depth = place = 0
    while (match := (_WITHIN if depth else _OPENING).search(text, place)) is not None:
        place = match.end()
        if match[0] in ("{", "["):
            start, depth = start if depth else match.start(), depth + 1
        elif match[0] in ("}", "]"):
            depth -= 1
            if not depth:
                yield start, place, True
    if depth:
        yield start, len(text), False
