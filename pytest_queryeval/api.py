"""Evaluation without pytest."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

from pytest_queryeval.core.cause import CauseMode
from pytest_queryeval.core.errors import QueryEvalError
from pytest_queryeval.core.model import Case, Outcome
from pytest_queryeval.core.report import CaseReport, Report, RunFacts
from pytest_queryeval.evaluation.evaluation import CaseProgress, evaluate_case, fault_location
from pytest_queryeval.evaluation.session import Session
from pytest_queryeval.results.aggregation import aggregate
from pytest_queryeval.results.case_json import case_json, result_json
from pytest_queryeval.results.run_name import predictor_of, run_name


def evaluate(cases: Iterable[Case], *, name: str = "", cause: CauseMode = "auto") -> Report:
    """Execute and score cases, one after the other; returns the report as report.json holds it, without gates.

    `name` is that of the run in reports, the predictors and the commit by default.

    Predictions are asked for ahead, as many at once as their predictors allow.

    `cause` says on which sources the causes of wrong answers are looked for: `auto` on local ones, `full` on all.

    A case whose gold, source or predictor fails is in the report with the outcome `error`; nothing is raised.
    """
    every = list(cases)
    with Session(cause=cause) as session:
        to_run = [case for case in every if case.skip is None]
        session.predictors.register_cases(every)
        session.predictors.prefetch(to_run)
        session.prepare(to_run)
        results = [_evaluated(case, session) for case in every]
    predictor = predictor_of(results)
    about: RunFacts = {
        "name": run_name(name, predictor, Path.cwd()),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "environment": {},
        "predictor": predictor,
        "requested_paths": {"paths": ["."], "ignored": []},
        "collected": {},
        "unreadable_files": [],
        "selected": False,
        "stopped": False,
        "interrupted": False,
    }
    return aggregate(results, gates=(), about=about)


def _evaluated(case: Case, session: Session) -> CaseReport:
    path = case.location.path.as_posix()
    nodeid = f"{path}::{case.id}"
    if case.skip is not None:
        return case_json(case, nodeid=nodeid, path=path, outcome="skipped", message=case.skip)
    source_state = session.source_state(case.source)
    progress = CaseProgress()
    try:
        result = evaluate_case(case, session, progress)
    except QueryEvalError as error:
        message = f"{error} ({fault_location(case, error)})"
        return case_json(
            case,
            nodeid=nodeid,
            path=path,
            outcome="error",
            message=message,
            progress=progress,
            source_state=source_state,
        )
    return result_json(
        result, nodeid=nodeid, path=path, outcome=_outcome(case, missed=result.fails), source_state=source_state
    )


def _outcome(case: Case, *, missed: bool) -> Outcome:
    if case.xfail is not None:
        return "xfailed" if missed else "xpassed"
    if not missed:
        return "passed"
    return "missed" if case.on_miss == "xfail" else "failed"
