"""A case's result as report.json holds it: plain values only, so that it can travel between processes."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter

from pytest_queryeval.comparison.difference import Difference
from pytest_queryeval.core import report
from pytest_queryeval.core.json_value import JsonValue
from pytest_queryeval.core.jsonable import plain
from pytest_queryeval.core.metric import LARGEST
from pytest_queryeval.core.model import Case, CaseResult, Execution, Outcome, Prediction, ThresholdViolation
from pytest_queryeval.core.report import (
    CaseReport,
    DifferenceReport,
    FailureReport,
    PredictedReport,
    PredictionReport,
    QueryReport,
    TrialReport,
    ViolationReport,
)
from pytest_queryeval.core.table import BlankNode, Cell, Row, Table
from pytest_queryeval.evaluation.evaluation import Progress
from pytest_queryeval.languages import KINDS, difficulty_of
from pytest_queryeval.results.case_fingerprint import case_fingerprint
from pytest_queryeval.text.plain import CELL_AHEAD, CELL_CHARACTERS, shortened, told

QUERY_CHARACTERS = 20_000


class ShortLabels:
    """Blank nodes as b1, b2 … as they are shown, since engines make long labels and other ones in each run."""

    def __init__(self) -> None:
        self._labels: dict[BlankNode, BlankNode] = {}

    def of(self, cell: Cell) -> Cell:
        """The cell as it is to be shown."""
        if not isinstance(cell, BlankNode):
            return cell
        return self._labels.setdefault(cell, BlankNode(f"b{len(self._labels) + 1}"))


def unknown_case(*, nodeid: str, message: str) -> CaseReport:
    """Return a case in error of which nothing but its node id is known, since its suite cannot be read."""
    path, _, name = nodeid.partition("::")
    return {
        "id": name,
        "nodeid": nodeid,
        "path": path,
        "line": 0,
        "kind": None,
        "tags": [],
        "difficulty": None,
        "source": None,
        "question": "",
        "evidence": "",
        "outcome": "error",
        "scores": {},
        "violations": [],
        "gold": None,
        "predicted": None,
        "scoring": None,
        "depends_on_tie": False,
        "difference": None,
        "prediction": None,
        "trials": [],
        "details": {},
        "message": told(message),
        "fingerprint": None,
    }


def case_json(
    case: Case,
    *,
    nodeid: str,
    path: str,
    outcome: Outcome,
    message: str = "",
    progress: Progress | None = None,
    state: str | None = None,
) -> CaseReport:
    """Return a case that has no result: skipped, or in error; `progress` is how far its evaluation came.

    `nodeid` and `path` are as pytest names the test and its file; `state` is that of the case's source, where it is
    known.
    """
    known = progress or Progress()
    gold, prediction = known.gold, known.prediction
    return {
        **unknown_case(nodeid=nodeid, message=message),
        "id": case.id,
        "path": path,
        "line": case.location.line,
        "kind": case.kind,
        "tags": list(case.tags),
        "difficulty": difficulty_of(case),
        "source": told(case.source.name) if case.source else None,
        "question": told(case.question),
        "evidence": told(case.evidence),
        "outcome": outcome,
        "gold": {**_query_report(gold, case, ShortLabels()), "index": known.gold_index} if gold else None,
        "predicted": _unexecuted(prediction, case) if prediction else None,
        "prediction": _prediction(prediction) if prediction else None,
        "fingerprint": case_fingerprint(case, state),
    }


def result_json(
    result: CaseResult,
    *,
    nodeid: str,
    path: str,
    outcome: Outcome,
    message: str = "",
    state: str | None = None,
) -> CaseReport:
    """Return a case that was scored; the arguments are those of `case_json`."""
    case = result.case
    labels = ShortLabels()
    began = perf_counter()
    difference = _difference(result, labels)
    scoring_seconds = sum(trial.scoring_seconds for trial in result.trials) + perf_counter() - began
    return {
        **case_json(case, nodeid=nodeid, path=path, outcome=outcome, message=message, state=state),
        "scores": dict(result.scores),
        "violations": [_violation(violation) for violation in result.violations],
        "gold": {**_query_report(result.gold, case, labels), "index": result.gold_index},
        "predicted": {**_query_report(result.predicted, case, labels), "error": _failure(result.predicted)},
        "scoring": {"seconds": scoring_seconds},
        "depends_on_tie": result.shown.depends_on_tie,
        "difference": difference,
        "prediction": _prediction(result.prediction),
        "trials": _trials(result),
        "details": plain(result.details, text=told),
    }


def result_difference(result: CaseResult, *, limit: int) -> Difference | None:
    """Where the answers differ; None where one is missing or nothing is wrong."""
    gold, predicted = result.gold.answer, result.predicted.answer
    if gold is None or predicted is None or not result.violations:
        return None
    return KINDS[result.case.kind].difference(gold, predicted, result.case, limit=limit)


def stated_text(execution: Execution, case: Case) -> str | None:
    """The query, or the answer as text where it was stated as a value; None for a table."""
    if execution.query is not None or execution.answer is None:
        return execution.query
    return KINDS[case.kind].text(execution.answer)


def _trials(result: CaseResult) -> list[TrialReport]:
    """Each trial with its own scores, where there are several."""
    if len(result.trials) == 1:
        return []
    return [
        {
            "passed": trial.passed,
            "scores": dict(trial.scores),
            "violations": [_violation(violation) for violation in trial.violations],
            "predicted": {
                "query": _query(trial.predicted, result.case),
                "error": _failure(trial.predicted),
                "seconds": _seconds(trial.predicted.seconds),
            },
            "prediction": _prediction(trial.prediction),
        }
        for trial in result.trials
    ]


def _query(execution: Execution, case: Case) -> str | None:
    query = stated_text(execution, case)
    return None if query is None else shortened(told(query), QUERY_CHARACTERS)


def _prediction(prediction: Prediction) -> PredictionReport:
    return {
        "source": told(prediction.predictor),
        "seconds": _seconds(prediction.seconds),
        "metadata": plain(prediction.metadata, text=told),
    }


def _unexecuted(prediction: Prediction, case: Case) -> PredictedReport:
    stated = Execution(query=prediction.stated.query, answer=prediction.stated.answer)
    return {**_query_report(stated, case, ShortLabels()), "error": None}


def _violation(violation: ThresholdViolation) -> ViolationReport:
    low, high = violation.threshold.minimum, violation.threshold.maximum
    return {"metric": violation.metric, "min": low, "max": high, "value": violation.value}


def _failure(execution: Execution) -> FailureReport | None:
    error = execution.error
    return None if error is None else {"kind": error.kind, "message": told(error.message)}


def _query_report(execution: Execution, case: Case, labels: ShortLabels) -> QueryReport:
    table = execution.answer if isinstance(execution.answer, Table) else None
    return {
        "query": _query(execution, case),
        "columns": [told(name) for name in table.columns] if table is not None else None,
        "row_count": len(table.rows) if table is not None else None,
        "sample": _rows(table.rows[: case.report_rows], labels) if table is not None else [],
        "seconds": _seconds(execution.seconds),
    }


def _difference(result: CaseResult, labels: ShortLabels) -> DifferenceReport | None:
    found = result_difference(result, limit=result.case.report_rows)
    if found is None:
        return None
    return {
        "summary": told(found.summary),
        "missing": _rows(found.missing, labels),
        "extra": _rows(found.extra, labels),
        "changed": [
            {"gold": _row(gold, labels), "predicted": _row(predicted, labels)} for gold, predicted in found.changed
        ],
        "repeated": [
            {"row": _row(row, labels), "gold": gold, "predicted": predicted} for row, gold, predicted in found.repeated
        ],
    }


def _seconds(seconds: float) -> float:
    """Return a time as the user's predictor told it; 0 where that is no number."""
    try:
        return float(seconds) if 0.0 <= seconds < LARGEST else 0.0
    except (TypeError, ValueError, OverflowError):
        return 0.0


def _rows(rows: Sequence[Row], labels: ShortLabels) -> list[report.Row]:
    return [_row(row, labels) for row in rows]


def _row(row: Row, labels: ShortLabels) -> report.Row:
    return [plain_cell(labels.of(cell)) for cell in row]


def plain_cell(value: Cell) -> JsonValue:
    """A cell for a report: plain, and text without secrets of at most CELL_CHARACTERS characters."""
    if isinstance(value, str | bytes):
        value = value[:CELL_AHEAD]  # looked through for secrets before it is cut to what is shown
    shown: JsonValue = plain(value, text=told)
    return shortened(shown, CELL_CHARACTERS) if isinstance(shown, str) else shown
