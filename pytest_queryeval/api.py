"""Evaluation without pytest."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

from pytest_queryeval.core.cause import CauseMode
from pytest_queryeval.core.model import Case
from pytest_queryeval.core.report import Report, RunFacts
from pytest_queryeval.evaluation.session import Session
from pytest_queryeval.results.aggregation import aggregate
from pytest_queryeval.results.run_name import predictor_of, run_name
from pytest_queryeval.workers.cases import NamedCase, evaluate_cases


def evaluate(cases: Iterable[Case], *, name: str = "", cause: CauseMode = "auto") -> Report:
    """Execute and score cases, one after the other; returns the report as report.json holds it, without gates.

    `name` is that of the run in reports, the predictors and the commit by default.

    Predictions are asked for ahead, as many at once as their predictors allow.

    `cause` says on which sources the causes of wrong answers are looked for: `auto` on local ones, `full` on all.

    A case whose gold, source or predictor fails is in the report with the outcome `error`; nothing is raised.
    """
    with Session(cause=cause) as session:
        results = list(evaluate_cases([_named(case) for case in cases], session))
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


def _named(case: Case) -> NamedCase:
    path = case.location.path.as_posix()
    return NamedCase(case, nodeid=f"{path}::{case.id}", path=path)
