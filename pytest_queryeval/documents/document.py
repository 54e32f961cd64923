"""The tree of nodes with places into which a suite file is read, and the problems found meanwhile; JSON as such a tree.

Numbers of JSON keep their source text; duplicate keys, NaN and Infinity are refused.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Literal, ParamSpec, TypeAlias, TypeVar

from pytest_queryeval.core.errors import CaseError, Location, SuiteError, path_hint
from pytest_queryeval.documents.strict_json import JsonError, StrictJson, TooDeepError, syntax_problem
from pytest_queryeval.text.formatting import one_line

MEBIBYTE = 1024 * 1024
MAX_DEPTH = 100
MAX_PROBLEM_CHARACTERS = 500
BLOCK_HINT = "write the query as a block: `gold: |`"

# How a node was written. "cut" is a plain scalar with a comment behind it, "clipped" one whose comment has no
# blank after its `#` and so may be meant as text. "joined" is a scalar of any style whose lines YAML joins although one
# of them ends in what is a comment of a query, which then swallows the next line. A "generated" one was not written.
Form: TypeAlias = Literal[
    "plain", "cut", "clipped", "quoted", "joined", "literal", "folded", "generated", "sequence", "mapping"
]
MAX_ALIKE = 5

P = ParamSpec("P")
T = TypeVar("T")
MAX_JSONL_BYTES = 256 * MEBIBYTE
MAX_JSONL_LINE = 4 * MEBIBYTE
MAX_JSON_BYTES = 32 * MEBIBYTE
_LITERALS = {True: "true", False: "false", None: "null"}


@dataclass(frozen=True, slots=True)
class File:
    """A file to read, by its absolute path; `shown` is the path in messages."""

    path: Path
    shown: Path

    @property
    def folder(self) -> Path:
        """The folder of the file, where relative paths in it start."""
        return self.path.parent

    @property
    def is_yaml(self) -> bool:
        """Whether the name of the file ends in `.yaml` or `.yml`, so that messages show how to write YAML."""
        return self.path.suffix in (".yaml", ".yml")

    def location(self, line: int = 0, column: int = 0) -> Location:
        """Return a place in this file; a line or column of 0 means unknown."""
        return Location(self.shown, line, column)

    def problem(self, text: str, line: int = 0, column: int = 0) -> CaseError:
        """Return, without raising it, an error at a place in this file, with its text on one line."""
        return CaseError(self.location(line, column), one_line(text, MAX_PROBLEM_CHARACTERS))

    def open(self, limit: int) -> BinaryIO:
        """Open the file as a stream of bytes, which the caller closes.

        Raise `CaseError` if it is no regular file, cannot be opened, or is larger than `limit` bytes.
        """
        try:
            # Reading a pipe could block for ever.
            if self.path.exists() and not self.path.is_file():
                raise self.problem("is not a file")
            stream = self.path.open("rb")
        except FileNotFoundError as error:
            raise self.problem(f"no such file{path_hint(self.path)}") from error
        except (OSError, ValueError) as error:
            raise self.unreadable(error) from error
        if os.fstat(stream.fileno()).st_size > limit:
            stream.close()
            raise self.problem(f"is larger than {limit // MEBIBYTE} MiB: split it")
        return stream

    def unreadable(self, error: Exception) -> CaseError:
        """Return, without raising it, the error for a file that cannot be read because of `error`."""
        return self.problem(f"cannot be read: {getattr(error, 'strerror', None) or error}")

    def data(self, limit: int) -> bytes:
        """Return the content as bytes; raise `CaseError` if it cannot be read or is larger than `limit` bytes."""
        with self.open(limit) as stream:
            try:
                return stream.read(limit + 1)
            except OSError as error:
                raise self.unreadable(error) from error

    def text(self, limit: int) -> str:
        """Return the content as text without a byte order mark.

        Raise `CaseError` if it cannot be read, is larger than `limit` bytes, or is not UTF-8.
        """
        return self.decoded(self.data(limit), line=1).removeprefix("\ufeff")

    def decoded(self, data: bytes, *, line: int) -> str:
        """Return bytes that begin on line `line` as text; raise `CaseError` at the first byte that is not UTF-8."""
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError as error:
            before = data[: error.start]
            column = len(before[before.rfind(b"\n") + 1 :].decode("utf-8")) + 1
            text = f"byte 0x{data[error.start]:02x} is not UTF-8: save the file as UTF-8"
            raise self.problem(text, line + before.count(b"\n"), column) from error


def file_at(path: str | Path) -> File:
    """Return the file at `path`.

    Messages show a path below the current folder relative to it, any other as absolute.
    """
    absolute, current_folder = Path(os.path.abspath(path)), Path.cwd()  # noqa: PTH100 - resolve() would follow links
    return File(absolute, absolute.relative_to(current_folder) if absolute.is_relative_to(current_folder) else absolute)


@dataclass(slots=True, eq=False)  # not frozen, which would double the time to create one
class Node:
    """A scalar as its source text, a sequence or a mapping, with its place in the file.

    `line` is where the node starts; for a value in a mapping it is the line of its key. `key` names the node in
    messages: the key of the value, or "item of KEY". `form` is how the node was written. Numbers, true, false and null
    of JSON are plain scalars, and strings of JSON are quoted. `column` is the column of a cell in a table, else 0.
    """

    value: str | list[Node] | dict[str, Node] = field(repr=False)
    line: int
    form: Form
    file: File = field(repr=False)
    key: str = ""
    column: int = 0

    @property
    def location(self) -> Location:
        """The place of the node, as messages name it."""
        return self.file.location(self.line, self.column)

    @property
    def plain(self) -> bool:
        """Whether the node is a scalar without quotes; only such a scalar can be a number, true, false or null."""
        return self.form in ("plain", "cut", "clipped")

    @property
    def empty(self) -> bool:
        """Whether the node is null in any spelling, or an empty text without quotes."""
        return self.plain and str(self.value).lower() in ("", "~", "null")

    def problem(self, text: str) -> CaseError:
        """Return, without raising it, an error at the place of this node."""
        return self.file.problem(text, self.line, self.column)


@dataclass(frozen=True, slots=True)
class Document:
    """The root node of a file, None if it is empty, and the problems that did not stop the reading."""

    root: Node | None
    problems: list[CaseError]


class Problems(list[CaseError]):
    """A list of the problems found while a file is read."""

    def attempt(self, read: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T | None:
        """Return what `read` returns.

        If it raises `CaseError` or `SuiteError`, add the problems to the list and return None.
        """
        try:
            return read(*args, **kwargs)
        except (CaseError, SuiteError) as error:
            self.keep(error)
            return None

    def keep(self, error: CaseError | SuiteError) -> None:
        """Add the problem or the problems of an error to the list."""
        self.extend(error.problems if isinstance(error, SuiteError) else (error,))

    def raise_any(self) -> None:
        """Raise `error()` if the list has any problems."""
        if self:
            raise self.error()

    def error(self) -> SuiteError:
        """Return one error with all problems, without duplicates, and with at most MAX_ALIKE problems of the same text.

        The last of these says at how many more places the problem is, so a setting that 10,000 cases lack gives five
        lines.
        """
        by_text: dict[str, list[CaseError]] = {}
        for problem in {str(problem): problem for problem in self}.values():
            by_text.setdefault(problem.problem, []).append(problem)
        errors: list[CaseError] = []
        for alike in by_text.values():
            errors += alike[:MAX_ALIKE]
            if more := len(alike[MAX_ALIKE:]):
                errors[-1] = CaseError(errors[-1].location, f"{errors[-1].problem} (and at {more:,} more places)")
        return SuiteError(errors)


def modification_time(path: Path) -> int:
    """Return when a file was last changed, in nanoseconds; 0 if the file cannot be read."""
    try:
        return path.stat().st_mtime_ns
    except (OSError, ValueError):
        return 0


class _Number(str):
    """The source text of a number in JSON."""

    __slots__ = ()


class _RefusedError(ValueError):
    """A text is not JSON, or is JSON that suites may not have; `line` and `column` are 0 if unknown."""

    def __init__(self, reason: str, line: int = 0, column: int = 0, *, is_of_end: bool = False) -> None:
        super().__init__(reason)
        self.line = line
        self.column = column
        self.is_of_end = is_of_end  # too early, or with more text behind it


def read_json(file: File) -> Node:
    """Return the value of a JSON file as a node without line numbers.

    Raise `CaseError`, with line and column if known, if the file cannot be read or is no accepted JSON.
    """
    return parse_json(file.text(MAX_JSON_BYTES), file, line=0)


def read_jsonl(file: File) -> Iterator[Node | CaseError]:
    """Yield, for each line that is not blank, the node of its JSON, or the `CaseError` of a wrong line.

    Raise `CaseError` if the file cannot be read, or for a line that is too long.
    """
    data = file.data(MAX_JSONL_BYTES)
    start, line = 0, 0
    while start < len(data):
        # Not by `splitlines`: JSON strings may hold U+2028 and other characters that end lines for Python.
        end = data.find(b"\n", start)
        end = len(data) if end < 0 else end
        line += 1
        if end - start > MAX_JSONL_LINE:
            raise file.problem(f"the line is longer than {MAX_JSONL_LINE // MEBIBYTE} MiB", line)
        try:
            text = file.decoded(data[start:end], line=line)
            if text.strip() in ("[", "]"):
                raise file.problem(
                    "a list over several lines: remove the lines `[` and `]`, and the commas at line ends", line
                )
            if text.strip():
                yield parse_json(text, file, line=line, hint=": a line is one JSON object")
        except CaseError as problem:
            yield problem
        start = end + 1


def parse_json(text: str, file: File, *, line: int, hint: str = "") -> Node:
    """Return the value of a JSON text as a node on line `line` of `file`; 0 stands for a text of several lines.

    A byte order mark before the text is ignored. Raise `CaseError` if the text is no accepted JSON; `hint` is appended
    to messages on the end of the text.
    """
    try:
        return _parsed(text, file, line)
    except _RefusedError as error:
        problem = f"{error}{hint if error.is_of_end else ''}"
        raise file.problem(problem, line or error.line, error.column) from error


def json_within(node: Node) -> Node:
    """Return the value of the JSON text in a scalar as a node at the same place.

    Raise `CaseError` at the place of the scalar. The message has line and column within the text, because quotes,
    escapes and indentation hide the place in the file.
    """
    try:
        return _parsed(str(node.value), node.file, node.line)
    except _RefusedError as error:
        place = f" (line {error.line}, column {error.column} of the text)" if error.column else ""
        raise node.problem(f"{error}{place}") from error


def _parsed(text: str, file: File, line: int) -> Node:
    text = text.removeprefix("\ufeff")
    blanks = len(text) - len(text.lstrip())  # also those that JSON does not have
    try:
        return _node(_JSON.read(re.sub(r"[^\n]", " ", text[:blanks]) + text[blanks:].rstrip()), file, line, 0)
    except json.JSONDecodeError as error:
        is_of_end = error.msg == "Extra data" or not error.doc[error.pos :].strip()
        raise _RefusedError(*syntax_problem(error), is_of_end=is_of_end) from error
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
            return Node(_refuse_surrogates(value), line, "quoted", file, key)
        case list():
            item_key = f"item of {key}" if key else ""
            return Node([_node(item, file, line, depth + 1, item_key) for item in value], line, "sequence", file, key)
        case dict():
            entries = {
                _refuse_surrogates(name): _node(item, file, line, depth + 1, name) for name, item in value.items()
            }
            return Node(entries, line, "mapping", file, key)
        case _:
            return Node(_LITERALS[value], line, "plain", file, key)


def _refuse_surrogates(text: str) -> str:
    """Return the text.

    Raise `_RefusedError` for half of a surrogate pair, which no database, file or report can store.
    """
    if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
        raise _RefusedError("a string contains half of a surrogate pair (\\ud800 to \\udfff): write both halves")
    return text


_JSON = StrictJson(read_number=_Number)
