"""From cases to their reports, without pytest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from pytest_queryeval.core.errors import QueryEvalError
from pytest_queryeval.core.model import Case, Outcome
from pytest_queryeval.core.report import CaseReport
from pytest_queryeval.evaluation.evaluation import CaseProgress, evaluate_case, fault_location
from pytest_queryeval.evaluation.session import Session
from pytest_queryeval.results.case_json import case_json, result_json


class NamedCase(NamedTuple):
    """A case with the names that its report has: the node id, and the path of the file that holds it."""

    case: Case
    nodeid: str
    path: str


def evaluate_cases(cases: Sequence[NamedCase], session: Session) -> Iterator[CaseReport]:
    """Yield the report of each case as soon as it is there.

    Predictions are asked for ahead, as many at once as their predictors allow. A case whose gold, source or predictor
    fails is yielded with the outcome `error`; nothing is raised.
    """
    to_run = [each.case for each in cases if each.case.skip is None]
    session.predictors.register_cases([each.case for each in cases])
    session.predictors.prefetch(to_run)
    session.prepare(to_run)
    for each in cases:
        yield evaluated(each, session)


def evaluated(named: NamedCase, session: Session) -> CaseReport:
    """Return the report of a case."""
    case, nodeid, path = named
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
