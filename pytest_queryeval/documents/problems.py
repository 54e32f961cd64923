"""Problems of a suite file, gathered until all are known."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

from pytest_queryeval.core.errors import CaseError, SuiteError

MAX_ALIKE = 5

P = ParamSpec("P")
T = TypeVar("T")


class Problems(list[CaseError]):
    """A list of problems that grows while a file is read on."""

    def attempt(self, read: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T | None:
        """Return what `read` returns, or None after its problems were kept."""
        try:
            return read(*args, **kwargs)
        except (CaseError, SuiteError) as error:
            self.keep(error)
            return None

    def keep(self, error: CaseError | SuiteError) -> None:
        """Add the problems that an error stands for."""
        self.extend(error.problems if isinstance(error, SuiteError) else (error,))

    def raise_any(self) -> None:
        """Raise `error`, if there are any problems."""
        if self:
            raise self.error()

    def error(self) -> SuiteError:
        """One error for all problems: each once, and no more than MAX_ALIKE alike."""
        alike: dict[str, list[CaseError]] = {}
        for problem in {str(problem): problem for problem in self}.values():
            alike.setdefault(problem.problem, []).append(problem)
        return SuiteError(problem for several in alike.values() for problem in _shortened(several))


def _shortened(alike: list[CaseError]) -> list[CaseError]:
    """Keep a few: a setting that is missing for 10,000 cases is one message of five lines, not of 10,000."""
    more = len(alike) - MAX_ALIKE
    if more <= 0:
        return alike
    last = alike[MAX_ALIKE - 1]
    return [*alike[: MAX_ALIKE - 1], CaseError(last.location, f"{last.problem} (and so at {more:,} more places)")]
