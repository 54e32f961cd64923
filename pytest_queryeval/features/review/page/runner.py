"""Runs the queries of a page as predictions, for several people at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from queue import LifoQueue
from typing import Any

from pytest_queryeval.core.case_report import CaseReport
from pytest_queryeval.core.model import Case, QueryOrAnswer, Threshold
from pytest_queryeval.core.table import Table
from pytest_queryeval.evaluation.session import Session
from pytest_queryeval.languages import KINDS
from pytest_queryeval.reports.html.case_list import details
from pytest_queryeval.runs.cases import NamedCase, evaluate_named_case

SESSIONS = 4  # that run queries at once; each may start processes of its own


class Runner:
    """Sessions, of which a request has one to itself: nobody waits for the slow query of somebody else."""

    def __init__(self) -> None:
        self._sessions = [Session(cause="off") for _ in range(SESSIONS)]
        self._idle: LifoQueue[Session] = LifoQueue()  # so that the same few have sources open
        for session in self._sessions:
            self._idle.put(session)

    def close(self) -> None:
        """Stop every process that runs a query."""
        for session in self._sessions:
            session.close()

    @contextmanager
    def _session(self) -> Iterator[Session]:
        session = self._idle.get()
        try:
            yield session
        finally:
            self._idle.put(session)

    def schema_text(self, case: Case) -> str:
        """Return the schema that predictors see; raise `SourceError` if the source cannot list it."""
        with self._session() as session:
            return session.schema_text(case)

    def compare(self, content: QueryOrAnswer, case: Case) -> CaseReport:
        """Run a query as a prediction is run, and compare its answer with gold's by the settings of the case.

        A case without golds gets one that is not run.
        """
        kind = KINDS[case.settings.kind]
        default = kind.default_metrics[0]
        settings = replace(
            case.settings,
            predictor=None,
            trials=1,
            metrics=(default,),
            thresholds={default: Threshold(minimum=1.0)},
        )
        golds = case.golds or (QueryOrAnswer(answer=Table(columns=(), rows=[])) if kind.has_queries else content,)
        case = replace(case, golds=golds, answerable=True, predicted=content, settings=settings, skip=None)
        with self._session() as session:
            return evaluate_named_case(NamedCase(case, nodeid=case.id, path=""), session)


def shown_answer(report: CaseReport) -> Mapping[str, Any]:
    """Return what the page shows of an answer beside gold's."""
    return {**details(report), "outcome": report["outcome"], "message": report["message"]}
