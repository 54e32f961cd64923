"""Errors and warnings, with a message of one line and its place, and what `queryeval check` finds in suites."""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias, TypeVar

if TYPE_CHECKING:
    from pytest_queryeval.core.model import Case
    from pytest_queryeval.core.report import Report

MAX_LISTED = 12  # known words in a message
WHOLE = 0.75  # the share from which a whole name is a better guess than a part of another one
ALIKE = 0.7  # the share of equal characters from which words that begin differently are guesses for each other
FindingLevel: TypeAlias = Literal["error", "warning"]


class QueryEvalError(Exception):
    """Base class of all errors that this package raises on purpose."""

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle the error without a second call of `__init__`, whose arguments are not kept."""
        return type(self).__new__, (type(self), *self.args), self.__dict__


class QueryEvalWarning(UserWarning):
    """A warning of a condition in a suite that weakens its verdict."""


class SourceError(QueryEvalError):
    """A source cannot answer because it is missing, locked, damaged or unreachable; the query is not at fault.

    `location` is the place of the source in a suite, set if the source is not the `source` of the case.
    """

    location: Location | None = None


class UnresponsiveSourceError(SourceError):
    """A source stopped responding after a query exceeded its time limit, and did not recover; do not query it again."""


class EngineError(QueryEvalError):
    """An engine is at fault: it gives different answers to a query and to the same query in other words."""


class SettingError(QueryEvalError):
    """A setting of a source, a predictor or a metric has an unknown name or an invalid value.

    The message is `problem` alone. `setting` is the name by which the caller finds the line in the suite.
    """

    def __init__(self, setting: str, problem: str) -> None:
        super().__init__(problem)
        self.setting = setting


class PredictorError(QueryEvalError):
    """The system under test raised an exception, timed out, or has no answer for a case.

    If the error is `temporary`, another call may succeed; `pause` is how many seconds the system asked to wait before,
    0 if it did not. The error is `unreachable` if nothing answers at the address of the system. `location` is the place
    in a suite that is at fault: of a predictor that cannot be called for any case, or of a prediction in the suite.
    """

    def __init__(self, problem: str, *, temporary: bool = False, pause: float = 0.0, unreachable: bool = False) -> None:
        super().__init__(problem)
        self.temporary = temporary
        self.pause = pause
        self.unreachable = unreachable
        self.location: Location | None = None


class TimeLimitExceeded(BaseException):
    """A function of the user has run for too long.

    Not an `Exception`, so that the function does not catch it by accident.
    """


class GoldError(QueryEvalError):
    """The gold query of a case does not run, so the suite is at fault and nothing is scored.

    `location` is the place of the gold query.
    """

    def __init__(self, problem: str, location: Location | None = None) -> None:
        super().__init__(problem)
        self.location = location


class GoldColumnError(QueryEvalError):
    """The gold answer has no column of a name that `gold_columns` under `compare` lists."""


class ReportError(QueryEvalError):
    """A report cannot be read, compared, merged or written."""


class ExecutorBroken(QueryEvalError):  # noqa: N818 - as `concurrent.futures.BrokenExecutor` is named
    """An executor cannot run further cases.

    `report` covers the cases that ran before, None if there is no such report.
    """

    report: Report | None = None


class UnknownNameError(QueryEvalError, KeyError):
    """A name is not in its registry; also a KeyError, because registries are mappings."""

    __str__ = Exception.__str__  # KeyError shows its message in quotes


class MissingFeatureError(QueryEvalError):
    """A name belongs to a feature of this package that is not installed."""


@dataclass(frozen=True, slots=True, order=True)
class Location:
    """A place in a suite file; `line` and `column` count from 1, and 0 means unknown.

    `cell` names a place in a table in words; `line` is then the row. As a text, the place is `PATH:LINE:COLUMN`, or
    `PATH, CELL`.
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
    """A problem in a suite file, at a `location`; the text of the error is `PATH:LINE: PROBLEM`."""

    def __init__(self, location: Location, problem: str) -> None:
        super().__init__(f"{location}: {problem}")
        self.location = location
        self.problem = problem


class SuiteError(QueryEvalError):
    """All problems of a suite file, sorted by place; the text of the error has a line for each problem."""

    def __init__(self, problems: Iterable[CaseError]) -> None:
        self.problems = tuple(sorted(problems, key=lambda problem: problem.location))
        super().__init__("\n".join(map(str, self.problems)))


def without_advice(error: Exception) -> str:
    """Return the text of an error without advice that only a programmer can follow.

    Python's error for a number with thousands of digits, which explains how to allow such numbers, becomes a short
    sentence. Other texts stay as they are.
    """
    text = str(error)
    return "a number has too many digits" if "sys.set_int_max_str_digits()" in text else text


def did_you_mean(word: str, names: Iterable[str]) -> str:
    """Return the end of a message on an unknown word: the nearest known word, else all known words if they are few.

    It is empty if no known word is near and they are many. If the known words are few, a word that begins with another
    letter is suggested only if it is much like `word`.

    >>> did_you_mean("golden", ["gold", "source"])
    ": did you mean 'gold'?"
    >>> did_you_mean("SQL", ["json", "sql"])
    ": did you mean 'sql'?"
    >>> did_you_mean("acuracy", ["execution_accuracy", "valid_query"])
    ": did you mean 'execution_accuracy'?"
    >>> did_you_mean("querys", ["queries", "valid_query"])
    ": did you mean 'queries'?"
    >>> did_you_mean("column_order", ["columns", "row_order"])
    ': choose from columns, row_order'
    """
    names = sorted(names)
    if near := nearest(word, names):
        return f": did you mean '{near}'?"
    return f": choose from {', '.join(names)}" if 0 < len(names) <= MAX_LISTED else ""


def nearest(word: str, names: Collection[str]) -> str:
    """Return the known name that is most like a word, whatever the letter case; empty if no name is similar.

    A word is also compared with the parts of names between underscores.
    """
    # Parts of names as well: "acuracy" is nearer to "accuracy" than to "execution_accuracy".
    lowered = {part: name for name in sorted(names, key=len, reverse=True) for part in name.lower().split("_")}
    lowered |= {name.lower(): name for name in sorted(names)}
    whole_names = [name.lower() for name in names]
    near = difflib.get_close_matches(word.lower(), whole_names, n=1, cutoff=WHOLE) or difflib.get_close_matches(
        word.lower(), lowered, n=1
    )
    if near and len(names) <= MAX_LISTED and word[:1].lower() != near[0][:1]:
        near = difflib.get_close_matches(word.lower(), near, cutoff=ALIKE)
    return lowered[near[0]] if near else ""


def names_beside(path: Path, name: str) -> list[str]:
    """Return a name for each file in the folder of `path`, spelled like `name`, by which a user gave that path.

    The list is empty if the folder cannot be listed.
    """
    with suppress(OSError, ValueError):
        return [str(Path(name).with_name(file.name)) for file in path.parent.iterdir()]
    return []


def nearest_file(path: Path) -> str:
    """Return the end of a message on a missing file: where its link leads, or the most similar name in the folder.

    It is empty if there is no similar name. A suggested file has the same suffix apart from `.gz`.
    """
    unpacked, names = _unpacked(path), dict[str, str]()
    with suppress(OSError, ValueError):  # such as of a name that is too long for any file
        if path.is_symlink():
            return f": correct the link, which leads to {os.path.realpath(path)}"
        files = [(_unpacked(file), file.name) for file in path.parent.iterdir()]
        names |= {file.stem.lower(): name for file, name in files if file.suffix == unpacked.suffix}
    near = difflib.get_close_matches(unpacked.stem.lower(), names, n=1)
    return f": did you mean '{names[near[0]]}'?" if near else ""


def path_hint(path: Path) -> str:
    """Return the end of a message on a missing file: as `nearest_file` does, else the absolute path."""
    return nearest_file(path) or f": correct the path, which leads to {path.absolute()}"


def _unpacked(path: Path) -> Path:
    return path.with_suffix("") if path.suffix == ".gz" else path


T = TypeVar("T")
Error = TypeVar("Error", bound=QueryEvalError)


def capture_error(function: Callable[[], T], error_type: type[Error]) -> T | Error:
    """Return the result of `function`, or the error of `error_type` that it raises; other errors are raised.

    `unwrap` raises such an error again without another attempt.
    """
    try:
        return function()
    except error_type as error:
        return error


def unwrap(result: T | QueryEvalError) -> T:
    """Return a result of `capture_error`; if it is an error, raise it."""
    if isinstance(result, QueryEvalError):
        raise result.with_traceback(None)  # each raise would add to the traceback of the one before
    return result


CHECK_RULES: Mapping[str, FindingLevel] = {
    "gold-fails": "error",
    "gold-not-equal-to-itself": "error",
    "expectation-not-met": "error",
    "unknown-column": "error",
    "out-of-scope": "error",
    "stale-setting": "error",
    "nothing-required": "warning",
    "gold-empty": "warning",
    "gold-slow": "warning",
    "gold-unstable": "warning",
    "limit-tie": "warning",
    "open-choice": "warning",
    "text-order": "warning",
    "constant-result": "warning",
    "unknown-term": "warning",
    "lost-answer": "warning",
    "cut-answer": "warning",
    "value-not-in-data": "warning",
    "moving-gold": "warning",
    "duplicate-question": "warning",
    "duplicate-gold": "warning",
    "unused-source": "warning",
    "unknown-where": "warning",
    "uncollected-suite": "warning",
    "missing-question": "warning",
    "unread-column": "warning",
    "review-conflict": "warning",
    "review-future": "warning",
    "review-stale": "warning",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A finding of a rule of `queryeval check` at a place of a suite.

    `case` is the id of the case that the finding is about, None if it is about no single case. `silenced` is the reason
    for which the suite ignores the finding, empty if it does not.
    """

    rule: str
    location: Location
    message: str
    case: str | None = None
    silenced: str = ""

    @property
    def level(self) -> FindingLevel:
        """The level of the rule: `error` or `warning`."""
        return CHECK_RULES[self.rule]


def case_finding(rule: str, case: Case, message: str, location: Location | None = None) -> Finding:
    """Return a finding about a case; without a `location` at the case's row in a table, else at its place in the suite.

    The finding is silenced if the case ignores the rule.
    """
    silenced = case.settings.ignored_rules.get(rule, "")
    return Finding(
        rule=rule, location=location or case.row or case.location, message=message, case=case.id, silenced=silenced
    )
