"""Evaluation without pytest."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from pytest_queryeval.core.errors import QueryEvalError
from pytest_queryeval.core.model import Case, Outcome
from pytest_queryeval.evaluation.evaluation import Progress, evaluate_case, fault_location
from pytest_queryeval.evaluation.session import Session
from pytest_queryeval.results.aggregation import Report, aggregate
from pytest_queryeval.results.case_json import case_json, result_json


def evaluate(cases: Iterable[Case]) -> Report:
    """Execute and score cases, one after the other; returns the report as report.json holds it, without gates.

    Predictions are asked for ahead, as many at once as their predictors allow.

    A case whose gold, source or predictor fails is in the report with the outcome `error`; nothing is raised.
    """
    every = list(cases)
    with Session() as session:
        to_run = [case for case in every if case.skip is None]
        session.calls.expect(every)
        session.calls.ahead(to_run)
        session.prepare(to_run)
        results = [_evaluated(case, session) for case in every]
    return aggregate(results, gates=(), about={"created": datetime.now(UTC).isoformat(timespec="seconds")})


def _evaluated(case: Case, session: Session) -> dict[str, Any]:
    path = case.location.path.as_posix()
    place: dict[str, Any] = {"nodeid": f"{path}::{case.id}", "path": path}
    if case.skip is not None:
        return case_json(case, **place, outcome="skipped", message=case.skip)
    place["state"] = session.source_fingerprint(case.source)
    progress = Progress()
    try:
        result = evaluate_case(case, session, progress)
    except QueryEvalError as error:
        message = f"{error} ({fault_location(case, error)})"
        return case_json(case, **place, outcome="error", message=message, progress=progress)
    return result_json(result, **place, outcome=_outcome(case, missed=result.fails))


def _outcome(case: Case, *, missed: bool) -> Outcome:
    if case.xfail is not None:
        return "xfailed" if missed else "xpassed"
    if not missed:
        return "passed"
    return "missed" if case.on_miss == "xfail" else "failed"
