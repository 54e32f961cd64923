"""Measures the strength of cases, for `strength` and `strengthen`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pytest_queryeval.cli.conftests import read_suites
from pytest_queryeval.cli.output import with_progress
from pytest_queryeval.core.errors import GoldError, Location, SourceError
from pytest_queryeval.core.model import Case, Source
from pytest_queryeval.evaluation import fault_location
from pytest_queryeval.evaluation.session import Session
from pytest_queryeval.features.strength.case_strength import CaseStrength, measure_strength
from pytest_queryeval.text.formatting import one_line, pluralize

MESSAGE_CHARACTERS = 1_000


@dataclass(slots=True)
class MeasuredCases:
    """Cases with their strength."""

    strengths: list[CaseStrength] = field(default_factory=list)
    problems: defaultdict[tuple[Location, str], list[Case]] = field(default_factory=lambda: defaultdict(list))
    """By place and message, the cases whose gold or source is at fault."""

    def add_problem(self, case: Case, error: GoldError | SourceError) -> None:
        """Add what is wrong with the gold or the source of a case."""
        message = one_line(str(error), MESSAGE_CHARACTERS)
        self.problems[fault_location(case, error), message].append(case)

    def problem_lines(self) -> Iterator[str]:
        """Yield a line for each problem."""
        for (place, message), failed in self.problems.items():
            yield f"{place}: {message} (of {pluralize(len(failed), 'case')}, first '{failed[0].id}')"

    def problem_data(self) -> list[dict[str, object]]:
        """Return the problems for `--json`."""
        return [
            {"path": place.path.as_posix(), "line": place.line, "message": message} for place, message in self.problems
        ]


def measure_cases(
    path: Path,
    session: Session,
    tell: Callable[[str], None],
    variants_of: Callable[[Source], Sequence[Source]] | None = None,
) -> MeasuredCases:
    """Measure the strength of every case of a suite, or of the suites in a folder; `tell` reports the progress.

    `variants_of` returns the variants of a source that count, by default all that it names. Raise `SuiteError` for
    suites that cannot be read.
    """
    suites, left_out = read_suites(path)
    for reason in left_out:
        tell(f"not measured: {reason}")
    measured_cases = MeasuredCases()
    cases = [
        case.on_gold_source for suite in suites for case in suite.cases if case.skip is None and not case.withdrawal
    ]
    for case in with_progress(cases, tell, total=len(cases)):
        try:
            strength = measure_strength(case, session, variants_of)
        except (GoldError, SourceError) as error:
            measured_cases.add_problem(case, error)
        else:
            measured_cases.strengths += [] if strength is None else [strength]
            if strength is not None and strength.unreadable:
                place = case.row or case.location
                tell(f"not measured: {place}: case '{case.id}': gold cannot be read: {strength.unreadable}")
    return measured_cases
