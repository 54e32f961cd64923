"""Errors and warnings, with a message of one line and its place."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path


class QueryEvalError(Exception):
    """Base class of all errors that this package raises on purpose."""


class QueryEvalWarning(UserWarning):
    """Something in a suite that weakens its verdict."""


class SourceError(QueryEvalError):
    """A source cannot answer: missing, locked, damaged, unreachable. Never the fault of a query."""


class SettingError(QueryEvalError):
    """A setting of a source, a predictor or a metric that cannot be right; `setting` is its name."""

    def __init__(self, setting: str, problem: str) -> None:
        super().__init__(problem)
        self.setting = setting


class PredictorError(QueryEvalError):
    """The system under test raised, timed out, or has no answer for a case.

    Where it is `temporary` another call may have one, after a `pause` of so many seconds if the system named one.
    """

    def __init__(self, problem: str, *, temporary: bool = False, pause: float = 0.0) -> None:
        super().__init__(problem)
        self.temporary = temporary
        self.pause = pause


class TimeLimitExceeded(BaseException):
    """A user's function has run for too long; no `Exception`, which the function may catch."""


class GoldError(QueryEvalError):
    """The gold of a case does not run: the suite is at fault, so nothing is scored; `location` is that of the gold."""

    def __init__(self, problem: str, location: Location | None = None) -> None:
        super().__init__(problem)
        self.location = location


class ReportError(QueryEvalError):
    """A report cannot be read, compared or written."""


class UnknownNameError(QueryEvalError):
    """A name that is not in its registry."""


@dataclass(frozen=True, slots=True, order=True)
class Location:
    """A place in a suite file; `line` and `column` count from 1, 0 means unknown.

    `cell` names a place in a table; `line` is the row there.
    """

    path: Path
    line: int = 0
    column: int = 0
    cell: str = ""

    def __str__(self) -> str:
        if self.cell:
            return f"{self.path}, {self.cell}"
        numbers = "".join(f":{number}" for number in (self.line, self.column) if number)
        return f"{self.path}{numbers}"


class CaseError(QueryEvalError):
    """One problem in a suite file: `path:line: problem`."""

    def __init__(self, location: Location, problem: str) -> None:
        super().__init__(f"{location}: {problem}")
        self.location = location
        self.problem = problem


class SuiteError(QueryEvalError):
    """All problems of one suite file, in the order of their lines, one a line of text."""

    def __init__(self, problems: Iterable[CaseError]) -> None:
        self.problems = tuple(sorted(problems, key=lambda problem: problem.location))
        super().__init__("\n".join(map(str, self.problems)))


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return the end of an error message: the nearest known word, or all known ones if they are few, or nothing.

    >>> did_you_mean("golden", ["gold", "source"])
    ": did you mean 'gold'?"
    >>> did_you_mean("SQL", ["json", "sql"])
    ": did you mean 'sql'?"
    >>> did_you_mean("acuracy", ["execution_accuracy", "valid_query"])
    ": did you mean 'execution_accuracy'?"
    """
    names = sorted(known)
    # Parts of names as well: "acuracy" is nearer to "accuracy" than to "execution_accuracy".
    lowered = {part: name for name in sorted(names, key=len, reverse=True) for part in name.lower().split("_")}
    lowered |= {name.lower(): name for name in names}
    near = difflib.get_close_matches(word.lower(), lowered, n=1)
    if near:
        return f": did you mean '{lowered[near[0]]}'?"
    return f": known are {', '.join(names)}" if 0 < len(names) <= 12 else ""


def names_beside(path: Path, name: str) -> list[str]:
    """Return `name`, which led to `path`, for each file in the same folder; none where that cannot be listed."""
    with suppress(OSError, ValueError):
        return [str(Path(name).with_name(other.name)) for other in path.parent.iterdir()]
    return []


def nearest_file(path: Path) -> str:
    """Return the tail of a message on a missing file: the file beside it with the nearest name, if there is one."""
    beside: dict[str, str] = {}
    with suppress(OSError, ValueError):
        beside |= {other.stem.lower(): other.name for other in path.parent.iterdir() if other.suffix == path.suffix}
    near = difflib.get_close_matches(path.stem.lower(), beside, n=1)
    return f": did you mean '{beside[near[0]]}'?" if near else ""
