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
    """A file that is being read; `shown` is how messages name it."""

    path: Path
    shown: Path

    @property
    def folder(self) -> Path:
        """Where relative paths in the file start."""
        return self.path.parent

    @property
    def is_yaml(self) -> bool:
        """Whether what it holds is written as YAML, by its name."""
        return self.path.suffix in (".yaml", ".yml")

    def location(self, line: int = 0, column: int = 0) -> Location:
        """Return a place in this file."""
        return Location(self.shown, line, column)

    def problem(self, text: str, line: int = 0, column: int = 0) -> CaseError:
        """Return an error at a place in this file, to be raised or kept."""
        return CaseError(self.location(line, column), one_line(text, MAX_PROBLEM_CHARACTERS))

    def open(self, limit: int) -> BinaryIO:
        """Return the content as a stream; raise `CaseError` if it cannot be read or is larger than `limit` bytes."""
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
        """Return the error of a file whose content cannot be read."""
        return self.problem(f"cannot be read: {getattr(error, 'strerror', None) or error}")

    def data(self, limit: int) -> bytes:
        """Return the whole content; raise `CaseError` as `open` does."""
        with self.open(limit) as stream:
            try:
                return stream.read(limit + 1)
            except OSError as error:
                raise self.unreadable(error) from error

    def text(self, limit: int) -> str:
        """Return the whole content as text without a byte order mark; raise `CaseError` also where it is not UTF-8."""
        return self.decoded(self.data(limit), line=1).removeprefix("\ufeff")

    def decoded(self, data: bytes, *, line: int) -> str:
        """Return bytes that start on `line` as text; raise `CaseError` with the place of the first wrong byte."""
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError as error:
            before = data[: error.start]
            column = len(before[before.rfind(b"\n") + 1 :].decode("utf-8")) + 1
            text = f"byte 0x{data[error.start]:02x} is not UTF-8: save the file as UTF-8"
            raise self.problem(text, line + before.count(b"\n"), column) from error


def file_at(path: str | Path) -> File:
    """Return the file at `path`; messages show it relative to the current folder when it is below that."""
    absolute, current_folder = Path(os.path.abspath(path)), Path.cwd()  # noqa: PTH100 - resolve() would follow links
    return File(absolute, absolute.relative_to(current_folder) if absolute.is_relative_to(current_folder) else absolute)


@dataclass(slots=True, eq=False)  # not frozen, which would double the time to create one
class Node:
    """A scalar's source text, a sequence or a mapping.

    `line` is where the node starts; for a mapping's value it is the line of its key. `key` names it in messages: the
    key of which it is the value, or "item of KEY". Numbers, true, false and null of JSON are plain scalars, its strings
    are quoted. `column` is that of a cell in a table, else 0.
    """

    value: str | list[Node] | dict[str, Node] = field(repr=False)
    line: int
    form: Form
    file: File = field(repr=False)
    key: str = ""
    column: int = 0

    @property
    def location(self) -> Location:
        """The place that messages name."""
        return self.file.location(self.line, self.column)

    @property
    def plain(self) -> bool:
        """Whether this is a scalar without quotes, which alone can be a number, true, false or null."""
        return self.form in ("plain", "cut", "clipped")

    @property
    def empty(self) -> bool:
        """Whether it is an empty text without quotes, or null in one of its spellings."""
        return self.plain and str(self.value).lower() in ("", "~", "null")

    def problem(self, text: str) -> CaseError:
        """Return an error at this node, to be raised or kept."""
        return self.file.problem(text, self.line, self.column)


@dataclass(frozen=True, slots=True)
class Document:
    """The content of a file, None if it is empty, and the problems that did not stop the reading."""

    root: Node | None
    problems: list[CaseError]


class Problems(list[CaseError]):
    """A list of problems that grows while a file is read."""

    def attempt(self, read: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T | None:
        """Return what `read` returns, or None after keeping its problems."""
        try:
            return read(*args, **kwargs)
        except (CaseError, SuiteError) as error:
            self.keep(error)
            return None

    def keep(self, error: CaseError | SuiteError) -> None:
        """Add the problems of an error."""
        self.extend(error.problems if isinstance(error, SuiteError) else (error,))

    def raise_any(self) -> None:
        """Raise `error`, if there are any problems."""
        if self:
            raise self.error()

    def error(self) -> SuiteError:
        """Return one error for all problems, each once, and at most MAX_ALIKE of one text.

        So a setting that is missing for 10,000 cases is a message of five lines.
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
    """Return the time of the file's last change in nanoseconds; 0 if that fails, as reading the file will."""
    try:
        return path.stat().st_mtime_ns
    except (OSError, ValueError):
        return 0


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
    """Return the text; refuse half of a surrogate pair, which no database, file or report can store."""
    if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
        raise _RefusedError("a string contains half of a surrogate pair (\\ud800 to \\udfff): write both halves")
    return text


_JSON = StrictJson(read_number=_Number)
