"""Evaluation without pytest."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import Executor
from pathlib import Path

from pytest_queryeval.core.case_report import CaseReport
from pytest_queryeval.core.cause import CauseMode
from pytest_queryeval.core.errors import ExecutorBroken
from pytest_queryeval.core.model import Case
from pytest_queryeval.core.report import Report
from pytest_queryeval.evaluation.session import Session
from pytest_queryeval.results.case_store import Cases, with_case
from pytest_queryeval.runs.cases import NamedCase, evaluate_cases
from pytest_queryeval.runs.options import RunOptions
from pytest_queryeval.runs.report import engine_versions, report_of_run


def evaluate(
    cases: Iterable[Case], *, name: str = "", cause: CauseMode = "auto", executor: Executor | None = None
) -> Report:
    """Execute and score cases, and return the report as report.json holds it, without gates.

    `name` is that of the run in reports, the predictors and the commit by default.

    Predictions are requested ahead, as many at once as their predictors allow.

    `cause` says on which sources the causes of wrong answers are looked for: `auto` on local ones, `full` on all.

    Queries are run and scored one after the other, or by the workers of an `executor`, such as a
    `concurrent.futures.ProcessPoolExecutor`: see [Many cases](scale.md). The caller closes it.
    Raise `ExecutorBroken`, which has the report of what was done, where the executor breaks.

    A case whose gold, source or predictor fails is in the report with the outcome `error`; nothing is raised for it.
    Raise `TypeError` for a path in place of cases.
    """
    if isinstance(cases, str | Path):
        raise TypeError(f"expected cases, found a path: use `evaluate(load_cases({str(cases)!r}))`")
    named_cases = [
        NamedCase(
            case,
            nodeid=f"{(case.suite or case.location.path).as_posix()}::{case.id}",
            path=case.location.path.as_posix(),
        )
        for case in cases
    ]
    engines = engine_versions(named_case.case for named_case in named_cases if named_case.case.skip is None)
    reports: Cases = []
    with Session(cause=cause) as session:
        try:
            for report in evaluate_cases(named_cases, session, executor=executor):
                reports = with_case(reports, report)
        except ExecutorBroken as error:
            error.report = _report(reports, name, engines, interrupted=True)
            raise
    return _report(reports, name, engines)


def _report(cases: Sequence[CaseReport], name: str, engines: dict[str, str], *, interrupted: bool = False) -> Report:
    folder = Path.cwd()
    return report_of_run(
        cases,
        (),
        RunOptions(prefix="", folder=folder, root=folder, name=name),
        environment={"engines": engines},
        requested_paths={"paths": ["."], "ignored": []},
        collected={},
        unreadable_files=(),
        selected=False,
        stopped=False,
        interrupted=interrupted,
    )
