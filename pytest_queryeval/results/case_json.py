"""A case's result as report.json holds it: plain values only, so that it can travel between processes."""

from __future__ import annotations

from time import perf_counter
from typing import Any

from pytest_queryeval.comparison.difference import Difference
from pytest_queryeval.core.jsonable import plain
from pytest_queryeval.core.metric import LARGEST
from pytest_queryeval.core.model import Case, CaseResult, Execution, Outcome, Prediction, ThresholdViolation
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


def case_json(
    case: Case,
    *,
    nodeid: str,
    path: str,
    outcome: Outcome,
    message: str = "",
    progress: Progress | None = None,
    state: str | None = None,
) -> dict[str, Any]:
    """A case that has no result: skipped, or in error; `progress` is how far its evaluation came.

    `state` is that of the case's source, where it is known.
    """
    known = progress or Progress()
    gold, prediction = known.gold, known.prediction
    return {
        "id": case.id,
        "nodeid": nodeid,
        "path": path,
        **_stated(case),
        "outcome": outcome,
        "scores": {},
        "violations": [],
        "gold": _execution(gold, case, ShortLabels()) | {"index": known.gold_index} if gold else None,
        "predicted": _unexecuted(prediction, case) if prediction else None,
        "scoring": None,
        "depends_on_tie": False,
        "difference": None,
        "prediction": _prediction(prediction) if prediction else None,
        "trials": [],
        "details": {},
        "message": told(message),
        "fingerprint": case_fingerprint(case, state),
    }


def _stated(case: Case) -> dict[str, Any]:
    """What the suite says of the case."""
    return {
        "line": case.location.line,
        "kind": case.kind,
        "tags": list(case.tags),
        "difficulty": difficulty_of(case),
        "source": told(case.source.name) if case.source else None,
        "question": told(case.question),
        "evidence": told(case.evidence),
    }


def result_json(
    result: CaseResult,
    *,
    nodeid: str,
    path: str,
    outcome: Outcome,
    message: str = "",
    state: str | None = None,
) -> dict[str, Any]:
    """A case that was scored; `nodeid` and `path` are as pytest names the test and its file."""
    case = result.case
    labels = ShortLabels()
    began = perf_counter()
    difference = _difference(result, labels)
    scoring_seconds = sum(trial.scoring_seconds for trial in result.trials) + perf_counter() - began
    return case_json(case, nodeid=nodeid, path=path, outcome=outcome, message=message, state=state) | {
        "scores": dict(result.scores),
        "violations": [_violation(violation) for violation in result.violations],
        "gold": _execution(result.gold, case, labels) | {"index": result.gold_index},
        "predicted": _execution(result.predicted, case, labels) | {"error": _failure(result.predicted)},
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


def _trials(result: CaseResult) -> list[dict[str, Any]]:
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


def _prediction(prediction: Prediction) -> dict[str, Any]:
    return {
        "source": told(prediction.predictor),
        "seconds": _seconds(prediction.seconds),
        "metadata": plain(prediction.metadata, text=told),
    }


def _unexecuted(prediction: Prediction, case: Case) -> dict[str, Any]:
    stated = Execution(query=prediction.stated.query, answer=prediction.stated.answer)
    return _execution(stated, case, ShortLabels()) | {"error": None}


def _violation(violation: ThresholdViolation) -> dict[str, Any]:
    low, high = violation.threshold.minimum, violation.threshold.maximum
    return {"metric": violation.metric, "min": low, "max": high, "value": violation.value}


def _failure(execution: Execution) -> dict[str, str] | None:
    error = execution.error
    return None if error is None else {"kind": error.kind, "message": told(error.message)}


def _execution(execution: Execution, case: Case, labels: ShortLabels) -> dict[str, Any]:
    table = execution.answer if isinstance(execution.answer, Table) else None
    return {
        "query": _query(execution, case),
        "columns": [told(name) for name in table.columns] if table is not None else None,
        "row_count": len(table.rows) if table is not None else None,
        "sample": _rows(table.rows[: case.report_rows], labels) if table is not None else [],
        "seconds": _seconds(execution.seconds),
    }


def _difference(result: CaseResult, labels: ShortLabels) -> dict[str, Any] | None:
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


def _seconds(seconds: Any) -> float:
    """Return a time as the user's predictor told it; 0 where that is no number."""
    try:
        return float(seconds) if 0.0 <= seconds < LARGEST else 0.0
    except (TypeError, ValueError, OverflowError):
        return 0.0


def _rows(rows: Any, labels: ShortLabels) -> list[list[Any]]:
    return [_row(row, labels) for row in rows]


def _row(row: Row, labels: ShortLabels) -> list[Any]:
    return [plain_cell(labels.of(cell)) for cell in row]


def plain_cell(value: Any) -> Any:
    """A cell for a report: plain, and text without secrets of at most CELL_CHARACTERS characters."""
    if isinstance(value, str | bytes):
        value = value[:CELL_AHEAD]  # looked through for secrets before it is cut to what is shown
    value = plain(value, text=told)
    return shortened(value, CELL_CHARACTERS) if isinstance(value, str) else value
