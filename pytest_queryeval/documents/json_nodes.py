"""Reader of JSON text as nodes. Numbers keep their source text; duplicate keys, NaN and Infinity are refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from pytest_queryeval.core.errors import CaseError
from pytest_queryeval.documents.document import MAX_DEPTH, MEBIBYTE, File, Node
from pytest_queryeval.documents.strict_json import JsonError, StrictJson, TooDeepError, syntax_problem

MAX_JSONL_BYTES = 256 * MEBIBYTE
MAX_JSONL_LINE = 4 * MEBIBYTE
MAX_JSON_BYTES = 32 * MEBIBYTE
_LITERALS = {True: "true", False: "false", None: "null"}


class _Number(str):
    """The source text of a number."""

    __slots__ = ()


class _RefusedError(ValueError):
    """Text that is not JSON, or JSON that is refused in suites; `line` and `column` are 0 if they are not known."""

    def __init__(self, reason: str, line: int = 0, column: int = 0, *, is_of_end: bool = False) -> None:
        super().__init__(reason)
        self.line = line
        self.column = column
        self.is_of_end = is_of_end  # too early, or with more text behind it


def read_json(file: File) -> Node:
    """Read the value in a JSON file, without line numbers; raise `CaseError` with line and column."""
    return parse_json(file.text(MAX_JSON_BYTES), file, line=0)


def read_jsonl(file: File) -> Iterator[Node | CaseError]:
    """Yield a node or problem for each line that is not blank; raise `CaseError` if the file cannot be read."""
    for line, data in enumerate(_lines(file), start=1):
        try:
            text = file.decoded(data, line=line)
            if text.strip():
                yield parse_json(text, file, line=line, hint=": a line holds one JSON object")
        except CaseError as problem:
            yield problem


def _lines(file: File) -> Iterator[bytes]:
    # Not by `splitlines`: JSON strings may hold U+2028 and other characters that end lines for Python.
    data = file.data(MAX_JSONL_BYTES)
    start, line = 0, 0
    while start < len(data):
        end = data.find(b"\n", start)
        end = len(data) if end < 0 else end
        line += 1
        if end - start > MAX_JSONL_LINE:
            raise file.problem(f"the line is longer than {MAX_JSONL_LINE // MEBIBYTE} MiB", line)
        yield data[start:end]
        start = end + 1


def parse_json(text: str, file: File, *, line: int, hint: str = "") -> Node:
    """Return text as a node on `line` of `file`, 0 for a text over several lines; raise `CaseError`.

    A byte order mark before the text is ignored. `hint` is appended to errors of the end of the text.
    """
    try:
        return _parsed(text, file, line)
    except _RefusedError as error:
        problem = f"{error}{hint if error.is_of_end else ''}"
        raise file.problem(problem, line or error.line, error.column) from error


def json_within(node: Node) -> Node:
    """Read the text of a node as JSON, and return it as a node at the same place; raise `CaseError` there.

    Places in messages are those in the text, since quotes, escapes and indentation hide those in the file.
    """
    try:
        return _parsed(str(node.value), node.file, node.line)
    except _RefusedError as error:
        place = f" (line {error.line}, column {error.column} of the text)" if error.column else ""
        raise node.problem(f"{error}{place}") from error


def _parsed(text: str, file: File, line: int) -> Node:
    text = text.removeprefix("\ufeff")
    try:
        return _node(_JSON.read(text.strip()), file, line, 0)
    except json.JSONDecodeError as error:
        before = text[: len(text) - len(text.lstrip()) + error.pos]
        column = len(before) - before.rfind("\n")
        is_of_end = error.msg == "Extra data" or not error.doc[error.pos :].strip()
        raise _RefusedError(syntax_problem(error), before.count("\n") + 1, column, is_of_end=is_of_end) from error
    except TooDeepError as error:
        raise _RefusedError(f"nested deeper than {MAX_DEPTH} levels") from error
    except JsonError as error:
        raise _RefusedError(str(error)) from error


def _node(value: Any, file: File, line: int, depth: int, key: str = "") -> Node:
    if depth > MAX_DEPTH:
        raise _RefusedError(f"nested deeper than {MAX_DEPTH} levels")
    match value:
        case _Number():
            return Node(str(value), line, "plain", file, key)
        case str():
            return Node(_sound(value), line, "quoted", file, key)
        case list():
            item_key = f"item of {key}" if key else ""
            return Node([_node(item, file, line, depth + 1, item_key) for item in value], line, "sequence", file, key)
        case dict():
            entries = {_sound(name): _node(item, file, line, depth + 1, name) for name, item in value.items()}
            return Node(entries, line, "mapping", file, key)
        case _:
            return Node(_LITERALS[value], line, "plain", file, key)


def _sound(text: str) -> str:
    """Return the text; refuse half of a surrogate pair, which no database, file or report can store."""
    if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
        raise _RefusedError("a string holds half of a surrogate pair (\\ud800 to \\udfff)")
    return text


_JSON = StrictJson(read_number=_Number)
