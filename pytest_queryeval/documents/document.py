"""The tree of nodes with places into which a suite file is read, and the problems found meanwhile."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Literal, ParamSpec, TypeAlias, TypeVar

from pytest_queryeval.core.errors import CaseError, Location, SuiteError, path_hint
from pytest_queryeval.text.truncation import one_line

MEBIBYTE = 1024 * 1024
MAX_DEPTH = 100
MAX_PROBLEM_CHARACTERS = 500

# How a node was written. "cut" is a plain scalar with a comment behind it, "clipped" one whose comment has no
# blank after its `#` and so may be meant as text. "joined" is a scalar of any style whose lines YAML joins although one
# of them ends in what is a comment of a query, which then swallows the next line.
Form: TypeAlias = Literal["plain", "cut", "clipped", "quoted", "joined", "literal", "folded", "sequence", "mapping"]
MAX_ALIKE = 5

P = ParamSpec("P")
T = TypeVar("T")


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
