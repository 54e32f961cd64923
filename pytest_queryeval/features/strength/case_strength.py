"""Runs the mutants of golds, and compares their answers with gold's under the policy of the case."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeAlias

from pytest_queryeval.cli.conftests import read_suites
from pytest_queryeval.cli.output import with_progress
from pytest_queryeval.comparison.equality import project
from pytest_queryeval.core.db_schema import Tables
from pytest_queryeval.core.errors import GoldColumnError, GoldError, Location, SourceError
from pytest_queryeval.core.model import Case, Execution, Prediction, QueryOrAnswer, Source
from pytest_queryeval.core.table import Table
from pytest_queryeval.evaluation import fault_location, gold_error
from pytest_queryeval.evaluation.scoring import Scoring, variant_gold_error
from pytest_queryeval.evaluation.session import Session
from pytest_queryeval.features.strength import MUTATORS, Mutant
from pytest_queryeval.languages import KINDS
from pytest_queryeval.languages.query_language import QueryLanguage
from pytest_queryeval.text.formatting import one_line, pluralize

LOOKUP_ROWS = 20_000  # of a query that is run to make mutants
MAX_TIMEOUTS = 3  # of the mutants of a case, after which the others are not run
MESSAGE_CHARACTERS = 1_000
VariantsOf: TypeAlias = Callable[[Source], Sequence[Source]]


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseStrength:
    """The mutants of a case's gold query, grouped by whether the data distinguish them from gold."""

    case: Case
    gold: str
    killed: tuple[Mutant, ...] = ()
    """Mutants that fail, or whose answer differs from gold's, on the source or on one of its variants."""
    survivors: tuple[Mutant, ...] = ()
    """Mutants that give gold's answer on the source and all variants, but may not on other data."""
    equivalent: tuple[Mutant, ...] = ()
    """Mutants that give gold's answer on all data that satisfy the constraints of the source."""
    unreadable: str = ""
    """Why the gold query cannot be parsed, so that there are no mutants; empty if it can."""

    @property
    def location(self) -> Location:
        """The row of a table or the line of a suite that contains the case."""
        return self.case.row or self.case.location

    @property
    def share(self) -> float | None:
        """The number of killed mutants divided by that of killed and surviving mutants; None if there are neither."""
        mutant_count = len(self.killed) + len(self.survivors)
        return len(self.killed) / mutant_count if mutant_count else None


def measure_strength(case: Case, session: Session, variants_of: VariantsOf | None = None) -> CaseStrength | None:
    """Run the mutants of the first gold query, and return them by outcome; None without a gold query that can run.

    A mutant survives if it gives the answer of any gold on the source and on all variants. By default, the variants are
    all that the source names; `variants_of` returns others. After MAX_TIMEOUTS mutants that timed out, the remaining
    mutants are in no group. Also return None for sources that queries write to. Raise `GoldError` if a gold does not
    run, and `SourceError` if the source or a variant cannot answer.
    """
    kind = KINDS[case.settings.kind]
    queries = [index for index, gold in enumerate(case.golds) if gold.query is not None and gold.answer is None]
    source = case.settings.source
    if not isinstance(kind, QueryLanguage) or source is None or source.writes or not queries:
        return None
    golds = [session.execute_cached(gold, case) for gold in case.golds]
    for index, gold in enumerate(golds):
        if gold.error is not None:
            raise gold_error(gold.error, case, index, session)
    query = golds[queries[0]].query or ""
    variants = (variants_of or session.variants)(source)
    variant_cases = [replace(case, settings=replace(case.settings, source=variant)) for variant in variants]

    lookup_case = replace(case, settings=replace(case.settings, max_rows=max(case.settings.max_rows, LOOKUP_ROWS)))

    def run(text: str) -> Table | None:
        return session.execute_cached(QueryOrAnswer(query=text), lookup_case, is_derived=True).table

    killed: list[Mutant] = []
    survivors: list[Mutant] = []
    equivalent: list[Mutant] = []
    timeouts = 0
    tables: Tables = {}
    if kind.name == "sql":  # other kinds need no parser of SQL
        from pytest_queryeval.features.strength.sql.source_tables import source_tables

        tables = source_tables(case, session).tables
    for mutant in MUTATORS[kind.name](query, case, tables, run) if kind.name in MUTATORS else ():
        if timeouts == MAX_TIMEOUTS:
            break
        execution = session.execute(QueryOrAnswer(query=mutant.query), case, is_derived=True)
        timeouts += timed_out(execution)
        if not is_right(execution, golds, case, session):
            killed.append(mutant)
        elif mutant.equivalent or mutant.proof():
            equivalent.append(mutant)
        else:
            is_alive = all(_passes(mutant, variant_case, session) for variant_case in variant_cases)
            (survivors if is_alive else killed).append(mutant)
    return CaseStrength(
        case=case,
        gold=query,
        killed=tuple(killed),
        survivors=tuple(survivors),
        equivalent=tuple(equivalent),
        unreadable=kind.read_problem(query, case.settings.dialect),
    )


def timed_out(execution: Execution) -> bool:
    """Return whether an execution ended with a timeout."""
    return execution.error is not None and execution.error.kind == "timeout"


def _passes(mutant: Mutant, case: Case, session: Session) -> bool:
    """Return whether a mutant gives the answer of a gold on a variant, which is the source of `case`.

    Raise `GoldError` if a gold query fails on the variant.
    """
    golds = [session.execute_cached(gold, case) for gold in case.golds]
    for gold in golds:
        if gold.error is not None and gold.query is not None:
            raise variant_gold_error(gold.error, gold.query, case)
    execution = session.execute(QueryOrAnswer(query=mutant.query), case, is_derived=True)
    return is_right(execution, golds, case, session)


def is_right(execution: Execution, golds: list[Execution], case: Case, session: Session) -> bool:
    """Return whether an execution gives the answer of one of the golds, under the policy of the case.

    If the policy has `gold_columns`, only these are compared. An execution that failed, or lacks one of these columns,
    is not right.
    """
    if execution.table is None:
        return False
    try:
        execution = replace(execution, answer=project(execution.table, case.settings.policy.gold_columns))
    except GoldColumnError:
        return False
    prediction = Prediction(QueryOrAnswer(query=execution.query), predictor="mutant")
    scorings = (Scoring(case, gold, execution, prediction, session) for gold in golds)
    return any(scoring.value("execution_accuracy") == 1.0 for scoring in scorings)


@dataclass(slots=True)
class MeasuredCases:
    """The strength of cases, and the errors of cases whose strength could not be measured."""

    strengths: list[CaseStrength] = field(default_factory=list)
    problems: defaultdict[tuple[Location, str], list[Case]] = field(default_factory=lambda: defaultdict(list))
    """The cases whose gold or source caused an error, by the place and the message of the error."""

    def add_problem(self, case: Case, error: GoldError | SourceError) -> None:
        """Record the error of a case's gold or source in `problems`.

        Cases with the same place and message share an entry. The message is shortened to one line.
        """
        message = one_line(str(error), MESSAGE_CHARACTERS)
        self.problems[fault_location(case, error), message].append(case)

    def problem_lines(self) -> Iterator[str]:
        """Yield a line for each problem: its place and message, the number of its cases, and the first case."""
        for (place, message), failed in self.problems.items():
            yield f"{place}: {message} (of {pluralize(len(failed), 'case')}, first '{failed[0].id}')"

    def problem_data(self) -> list[dict[str, object]]:
        """Return the place and the message of each problem, for `--json`."""
        return [
            {"path": place.path.as_posix(), "line": place.line, "message": message} for place, message in self.problems
        ]


def measure_cases(
    path: Path, session: Session, tell: Callable[[str], None], variants_of: VariantsOf | None = None
) -> MeasuredCases:
    """Measure the strength of every case of a suite file, or of all suites in a folder.

    Skipped and withdrawn cases are left out. Errors of golds and sources become problems of the result. `tell` is
    called with the progress, and with the suites and gold queries that cannot be measured. `variants_of` returns the
    variants of a source to use, by default all that the source names. Raise `SuiteError` for suites that cannot be
    read.
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
                problem = f"the gold query cannot be read: {strength.unreadable}"
                tell(f"not measured: {strength.location}: case '{case.id}': {problem}")
    return measured_cases
