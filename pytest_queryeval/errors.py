"""What can go wrong, said in one line with its place."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path


class QueryEvalError(Exception):
    """Root of all errors that this package raises on purpose.

    `prediction` is what the system under test had said of the case by then, so that it is not lost.
    """

    prediction: object = None


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


class GoldError(QueryEvalError):
    """The gold of a case does not run: the suite is at fault, so nothing is scored."""


class ReportError(QueryEvalError):
    """A report cannot be written."""


class UnknownNameError(QueryEvalError):
    """A name that no registry knows."""


@dataclass(frozen=True, slots=True, order=True)
class Location:
    """A place in a suite file; `line` and `column` count from 1, 0 means unknown."""

    path: Path
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
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
    """The tail of an error message that names the nearest known word, or all of them if few, or nothing.

    >>> did_you_mean("golden", ["gold", "source"])
    ": did you mean 'gold'?"
    """
    names = sorted(known)
    near = difflib.get_close_matches(word, names, n=1)
    if near:
        return f": did you mean '{near[0]}'?"
    return f": known are {', '.join(names)}" if 0 < len(names) <= 12 else ""
