"""Problems of a suite file, collected until all are known."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

from pytest_queryeval.core.errors import CaseError, SuiteError

MAX_ALIKE = 5

P = ParamSpec("P")
T = TypeVar("T")


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
                errors[-1] = CaseError(errors[-1].location, f"{errors[-1].problem} (and so at {more:,} more places)")
        return SuiteError(errors)
