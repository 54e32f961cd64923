"""A case's result in the form of report.json: plain values, which can be sent between processes."""

from __future__ import annotations

import pickle
import re
from collections.abc import Sequence
from itertools import islice
from math import fsum
from typing import Any, TypedDict, cast

from pytest_queryeval.comparison.difference_texts import closest_excerpts, excerpt_cells
from pytest_queryeval.core import case_report
from pytest_queryeval.core.case_report import (
    CaseFingerprint,
    CaseReport,
    CauseReport,
    ChangedCell,
    DifferenceReport,
    FailureReport,
    PredictionReport,
    QueryReport,
    RefutationReport,
    TrialReport,
)
from pytest_queryeval.core.groups import groups_of, redacted_groups, stored_groups
from pytest_queryeval.core.json_value import report_cell, to_jsonable
from pytest_queryeval.core.mappings import excluding, grouped
from pytest_queryeval.core.model import (
    TEXTLESS_FAILURES,
    Abstention,
    AddedAnswer,
    Case,
    CaseResult,
    Counterexample,
    Execution,
    Failure,
    Outcome,
    Prediction,
    QueryOrAnswer,
    Trial,
)
from pytest_queryeval.core.steps import STEPS_CHARACTERS, bounded_steps, step_json
from pytest_queryeval.core.table import BlankNode, Cell, Row, replace_blank_nodes
from pytest_queryeval.evaluation import CaseProgress
from pytest_queryeval.evaluation.session import UNKNOWN_STATES, SourceStates
from pytest_queryeval.languages import KINDS
from pytest_queryeval.results.aggregation import MAX_FIELDS
from pytest_queryeval.results.case_fingerprint import case_fingerprint
from pytest_queryeval.results.verdict import headline
from pytest_queryeval.text.formatting import CELL_CHARACTERS, excerpt_change, excerpts, truncate, utf8_safe
from pytest_queryeval.text.redaction import MARK, redact, secrets_in

QUERY_CHARACTERS = 20_000
CHANGE_CHARACTERS = 400  # of an edit of a cause
MESSAGE_CHARACTERS = 4_000  # of each earlier message of a conversation, and of a reviewer's note
SURROGATE = re.compile(rb"\xed[\xa0-\xbf]")  # a half of a surrogate pair in a pickle
NAMES = frozenset({"id", "nodeid", "path", "tags", "kind", "scores"})  # left as they are, to identify the case


class ShortLabels:
    """Gives blank nodes the short labels b1, b2 …, because labels of engines are long and differ between runs."""

    def __init__(self) -> None:
        self._labels: dict[BlankNode, BlankNode] = {}

    def of(self, cell: Cell) -> Cell:
        """Return a cell with short labels for its blank nodes; the same node always gets the same label."""
        return replace_blank_nodes(cell, self._short)

    def _short(self, node: BlankNode) -> BlankNode:
        return self._labels.setdefault(node, BlankNode(f"b{len(self._labels) + 1}"))


def unknown_case(*, nodeid: str, message: str) -> CaseReport:
    """Return the report of a case in error whose suite cannot be read: its node id and a message."""
    return _redacted(_blank(nodeid, message))


def _blank(nodeid: str, message: str) -> CaseReport:
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
        "groups": {"file": [path]},
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
        "cause": None,
        "prediction": None,
        "trials": [],
        "details": {},
        "message": message,
        "fingerprint": None,
    }


def case_json(
    case: Case,
    *,
    nodeid: str,
    path: str,
    outcome: Outcome,
    message: str = "",
    progress: CaseProgress | None = None,
    source_states: SourceStates = UNKNOWN_STATES,
) -> CaseReport:
    """Return the report of a case without a result: skipped, not run, or in error.

    `progress` is how far its evaluation came; its gold and prediction are reported. `nodeid` and `path` are those of
    pytest. `source_states` are the result of `Session.source_states`.
    """
    progress = progress or CaseProgress()
    fingerprint = case_fingerprint(case, source_states, progress.gold_answers)
    case_report = _without_answers(case, nodeid, path, outcome, message, fingerprint)
    if (gold := progress.gold) is not None:
        case_report["gold"] = {**_query_report(gold, case, ShortLabels()), "index": progress.gold_index}
    if (prediction := progress.prediction) is not None:
        content = prediction.content
        predicted = Execution(query=None)
        if isinstance(content, QueryOrAnswer):
            predicted = Execution(query=content.query, answer=content.answer)
        case_report["predicted"] = {**_query_report(predicted, case, ShortLabels()), "error": None}
        case_report["prediction"] = _prediction(prediction)
    if case.withdrawal:  # but for what ended the evaluation
        case_report["unreviewed"] = {"outcome": "error", "scores": {}}
    return _redacted(case_report)


def _without_answers(
    case: Case, nodeid: str, path: str, outcome: Outcome, message: str, fingerprint: CaseFingerprint
) -> CaseReport:
    case_report, groups = _blank(nodeid, message), stored_groups(case, path)
    case_report.update(
        {
            "id": case.id,
            "path": path,
            "line": case.location.line,
            "kind": case.settings.kind,
            "tags": list(case.tags),
            "difficulty": next(iter(groups.get("difficulty", ())), None),
            "source": case.settings.source.name if case.settings.source else None,
            "groups": groups,
            "question": case.question,
            "evidence": case.evidence,
            "outcome": outcome,
            "fingerprint": fingerprint,
        }
    )
    if case.settings.gold_source is not None:
        case_report["gold_source"] = case.settings.gold_source.name
    if not case.answerable:
        case_report["answerable"] = False
    if features := groups.get("feature"):
        case_report["features"] = list(features)
    if before := case.conversation[:-1]:  # the last message is the question
        case_report["conversation"] = [
            {"role": message.role, "content": truncate(message.content, MESSAGE_CHARACTERS)} for message in before
        ]
    if case.turn is not None:
        case_report["turn"] = case.turn
    if (review := case.review) is not None:
        case_report["review"] = {
            "decision": review.decision,
            "reviewers": list(review.reviewers),
            "notes": [truncate(note, MESSAGE_CHARACTERS) for note in review.notes],
        }
    if case.row is not None:
        case_report["row"] = case.row.line
        case_report["place"] = str(case.row)
    if case.combination:
        case_report["combination"] = case.combination
    return case_report


def result_json(
    result: CaseResult,
    *,
    nodeid: str,
    path: str,
    outcome: Outcome,
    message: str = "",
    source_states: SourceStates = UNKNOWN_STATES,
) -> CaseReport:
    """Return the report of a case that was scored.

    If it fails, the message is its headline. The other arguments are those of `case_json`.
    """
    case, shown_trial, labels = result.case, result.shown, ShortLabels()
    gold, predicted = shown_trial.gold, shown_trial.predicted
    difference = result.difference and _difference(result.difference, labels)
    message = headline(result) if result.fails else message
    fingerprint = case_fingerprint(case, source_states, result.gold_answers_digest)
    case_report = _without_answers(case, nodeid, path, outcome, message, fingerprint)
    case_report.update(
        {
            "scores": dict(result.scores),
            "violations": [*result.violations],
            "gold": {**_query_report(gold, case, labels, predicted), "index": shown_trial.gold_index}
            if case.golds
            else None,
            "predicted": {
                **_query_report(predicted, case, labels, gold),
                "error": _failure(shown_trial.predicted),
            },
            "scoring": {"seconds": sum([trial.scoring_seconds for trial in result.trials])},
            "depends_on_tie": shown_trial.depends_on_tie,
            "difference": difference,
            "cause": _cause(result),
            "prediction": _prediction(shown_trial.prediction),
            "trials": _trials(result) if result.has_trials else [],
            "details": to_jsonable(shown_trial.details, text=str),  # `_redacted` makes texts fit for UTF-8
        }
    )
    if result.difference is not None:
        from pytest_queryeval.evaluation.hints import hints

        if found_hints := hints(result):
            case_report["hints"] = found_hints
    if field_scores := _field_scores(result.trials):
        case_report["field_scores"] = dict(islice(field_scores.items(), MAX_FIELDS))
        if (left_out := len(field_scores) - MAX_FIELDS) > 0:
            case_report["fields_left_out"] = left_out
    if (challenge := result.shown.challenge) is not None:
        limit = case.settings.report_rows
        counterexample, unlike = challenge["counterexample"], challenge["unlike"]
        case_report["challenge"] = {
            **challenge,
            "counterexample": counterexample and _shortened(counterexample, limit),
            "unlike": unlike if isinstance(unlike, bool) else unlike and _shortened(unlike, limit),
        }
    if result.unreviewed is not None:
        case_report["unreviewed"] = result.unreviewed
    return _redacted(case_report)


def _field_scores(trials: Sequence[Trial]) -> dict[str, float]:
    """Return the mean score of each field, over the trials that have the field."""
    scores = grouped((name, score) for trial in trials for name, score in trial.field_scores.items())
    return {name: fsum(values) / len(values) for name, values in scores.items()}


class TableReport(TypedDict):
    """A table of a database with all its rows."""

    name: str
    columns: list[str]
    rows: list[case_report.Row]


class CounterexampleReport(TypedDict):
    """A small database on which two queries differ although they agree on the source, with the script that makes it.

    `note` describes it, or says why there is none; the other values are then empty.
    """

    note: str
    tables: list[TableReport]
    gold: QueryReport | None
    predicted: QueryReport | None
    script: str


def counterexample_json(counterexample: Counterexample | None, note: str, case: Case) -> CounterexampleReport:
    """Return a counterexample with its databases, both answers and a note as plain values, without secrets.

    Without a counterexample, the values are empty, and the note says why.
    """
    labels = ShortLabels()
    counterexample_report: CounterexampleReport = {
        "note": note,
        "tables": [
            {"name": name, "columns": list(table.columns), "rows": [_row(row, labels) for row in table.rows]}
            for name, table in (counterexample.tables.items() if counterexample else ())
        ],
        "gold": _query_report(counterexample.gold, case, labels) if counterexample else None,
        "predicted": _query_report(counterexample.predicted, case, labels) if counterexample else None,
        "script": counterexample.script if counterexample else "",
    }
    return cast("CounterexampleReport", _redacted_value(counterexample_report))


def _trials(result: CaseResult) -> list[TrialReport]:
    """Return the reports of all trials, whose steps together have the room of one prediction's steps."""
    characters = STEPS_CHARACTERS // len(result.trials)
    return [
        {
            "passed": trial.passed,
            "scores": dict(trial.scores),
            "violations": [*trial.violations],
            "predicted": {
                "query": _query(trial.predicted, result.case),
                "error": _failure(trial.predicted),
                "seconds": float(trial.predicted.seconds),
            },
            "prediction": _prediction(trial.prediction, characters),
        }
        for trial in result.trials
    ]


def _query(execution: Execution, case: Case, other: Execution | None = None) -> str | None:
    """Return the text of a query, or of an answer that is no table; None if there is no text.

    A long query is shortened, to where it differs from the `other` query if there is one. None also for failures whose
    kind is in TEXTLESS_FAILURES.
    """
    query = execution.query
    if execution.error is not None and execution.error.kind in TEXTLESS_FAILURES:
        return None
    if query is None and execution.answer is not None:
        query = KINDS[case.settings.kind].text(execution.answer)
    if query is None or len(query) <= QUERY_CHARACTERS or other is None or other.query is None:
        return None if query is None else truncate(query, QUERY_CHARACTERS)
    return excerpts(query, other.query, QUERY_CHARACTERS)[0]


def is_whole(query: str) -> bool:
    """Return whether a query in a report is complete: not truncated, and without the mark of a removed secret."""
    return MARK not in query and len(query) < QUERY_CHARACTERS


def _prediction(prediction: Prediction, characters: int = STEPS_CHARACTERS) -> PredictionReport:
    """Return the report of a prediction; the contents of its steps have at most `characters` in all."""
    prediction_report: PredictionReport = {
        "source": prediction.predictor,
        "seconds": float(prediction.seconds),
        "metadata": to_jsonable(prediction.metadata, text=str),
    }
    if isinstance(prediction.content, Abstention):
        prediction_report |= {"abstained": True, "reason": truncate(prediction.content.reason, MESSAGE_CHARACTERS)}
    if prediction.is_recorded:
        prediction_report["recorded"] = True
    if isinstance(prediction.content, Failure):
        prediction_report["missing"] = True
    if prediction.steps is not None:
        steps = bounded_steps(prediction.steps, by=prediction.predictor, characters=characters)
        prediction_report["steps"] = [step_json(step) for step in steps]
    return prediction_report


def _failure(execution: Execution) -> FailureReport | None:
    error = execution.error
    return None if error is None else {"kind": error.kind, "message": error.message}


def _query_report(execution: Execution, case: Case, labels: ShortLabels, other: Execution | None = None) -> QueryReport:
    answer = execution.answer
    table = answer.as_table() if isinstance(answer, AddedAnswer) else execution.table
    return {
        "query": _query(execution, case, other),
        "columns": list(table.columns) if table is not None else None,
        "row_count": len(table.rows) if table is not None else None,
        "sample": [_row(row, labels) for row in table.rows[: case.settings.report_rows]] if table is not None else [],
        "seconds": float(execution.seconds),
    }


def _difference(difference: DifferenceReport[Row], labels: ShortLabels) -> DifferenceReport[case_report.Row]:
    """Return a difference as reports show it: cells as plain values, and changed texts cut around what differs."""
    excerpts = closest_excerpts(difference, CELL_CHARACTERS)

    def changed_cell(example: ChangedCell) -> ChangedCell:
        gold, predicted = (labels.of(cast("Cell", example[side])) for side in ("gold", "predicted"))
        shown_gold, shown_predicted = excerpt_cells(gold, predicted, CELL_CHARACTERS)
        key = {name: report_cell(labels.of(cast("Cell", cell))) for name, cell in example["key"].items()}
        return {"key": key, "gold": shown_gold, "predicted": shown_predicted}

    def shown(value: object) -> object:
        match value:
            case tuple():
                cells = zip(value, _row(value, labels), strict=True)
                return [
                    excerpts.get((column, repr(cell)), text) if isinstance(cell, str | tuple) else text
                    for column, (cell, text) in enumerate(cells)
                ]
            case list():
                return [*map(shown, value)]
            case dict():
                return {name: shown(item) for name, item in value.items()}
        return value

    rows: Any = shown(excluding(difference, ["by_column"]))
    if "by_column" in difference:
        rows["by_column"] = [
            {**column, "examples": [*map(changed_cell, column["examples"])]} for column in difference["by_column"]
        ]
    return cast("DifferenceReport[case_report.Row]", rows)


def _cause(result: CaseResult) -> CauseReport | None:
    cause = result.cause
    if cause is None:
        return None
    return {
        "edits": [
            {"label": edit.label, "clause": edit.clause, "change": excerpt_change(edit.change, CHANGE_CHARACTERS)}
            for edit in cause.edits
        ],
        "repaired_query": None if cause.repaired_query is None else truncate(cause.repaired_query, QUERY_CHARACTERS),
        "tested": cause.is_tested,
    }


def _shortened(refutation: RefutationReport, limit: int) -> RefutationReport:
    gold_rows, predicted_rows = refutation["gold_rows"][:limit], refutation["predicted_rows"][:limit]
    return {**refutation, "gold_rows": gold_rows, "predicted_rows": predicted_rows}


def refutation_json(counterexample: Counterexample) -> RefutationReport:
    """Return a counterexample with all rows of both answers, which have to be tables."""
    labels, (gold, predicted) = ShortLabels(), (counterexample.gold.table, counterexample.predicted.table)
    assert gold is not None
    assert predicted is not None
    return {
        "script": utf8_safe(counterexample.script),
        "rows": counterexample.size,
        "gold_rows": [_row(row, labels) for row in gold.rows],
        "predicted_rows": [_row(row, labels) for row in predicted.rows],
    }


def _row(row: Row, labels: ShortLabels) -> case_report.Row:
    return [report_cell(labels.of(cell)) for cell in row]


def _redacted(case: CaseReport) -> CaseReport:
    """Return a case without secrets, and with text that UTF-8 can encode.

    Few cases contain secrets or such text; one search of a pickle is much faster than a search of each text.
    """
    data = pickle.dumps(case, pickle.HIGHEST_PROTOCOL)
    return redact_case(case) if secrets_in(data) or SURROGATE.search(data) else case


def redact_case(case: CaseReport) -> CaseReport:
    """Return a case without the secrets that this process knows; fields that identify the case stay."""
    redacted_fields = {key: value if key in NAMES else _redacted_value(value) for key, value in case.items()}
    return cast("CaseReport", {**redacted_fields, "groups": redacted_groups(groups_of(case))})


def _redacted_value(value: object) -> object:
    match value:
        case str():
            return utf8_safe(redact(value))
        case dict():
            return {utf8_safe(redact(key)): _redacted_value(item) for key, item in value.items()}
        case list():
            return [_redacted_value(item) for item in value]
        case _:
            return value
