"""One predicted answer against one gold: the values of metrics, and what there is to say about them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pytest_queryeval.comparison.pairing import pair
from pytest_queryeval.errors import QueryEvalError, SourceError
from pytest_queryeval.kinds import KINDS
from pytest_queryeval.metric import LARGEST, Metric, Score
from pytest_queryeval.metrics import METRICS, options_of
from pytest_queryeval.model import Case, Execution, Prediction, Stated
from pytest_queryeval.row_order import settled_order
from pytest_queryeval.schema import Schema
from pytest_queryeval.session import Session
from pytest_queryeval.table import Table

UNPROVEN = "alignment: the search for columns, rows or blank nodes stopped at its budget, so scores may be too low"


class Scoring:
    """Scores `predicted` against `gold`; `gold` is then gold with what is known of the order of its rows.

    `details` are those of the case in report.json, `reasons` why metrics gave None, as far as they said.
    """

    def __init__(
        self, case: Case, gold: Execution, predicted: Execution, prediction: Prediction, session: Session
    ) -> None:
        self.details: dict[str, Any] = {}
        self.reasons: dict[str, str] = {}
        self._case = case
        self._predicted = predicted
        self._prediction = prediction
        self._session = session
        self._times: dict[int, Sequence[tuple[float, float]] | None] = {}
        self._tell(gold)
        self.gold = self._with_order(gold)

    def value(self, name: str) -> float | None:
        """The score of one metric; 0 where it needs an answer and the prediction failed, None where it does not apply.

        Raises `QueryEvalError` for a metric that raises or gives no number, `SourceError` where a query has to be run
        again and cannot.
        """
        metric = METRICS[name]
        if metric.reads == "predictions":
            return self._scored(name, self._predicted, self._prediction)
        gold, predicted = self._rewritten(metric)
        if metric.reads == "queries":
            return self._scored(name, gold.query, predicted.query)
        if predicted.error is not None:
            return self._failed(name)
        if metric.reads == "executions":
            return self._scored(name, gold, predicted)
        return self._scored(name, gold.answer, predicted.answer)

    def _failed(self, name: str) -> float | None:
        """0, or None where the metric does not apply to gold, which an empty answer tells as well as any other."""
        nothing = KINDS[self._case.kind].nothing
        if nothing is None or METRICS[name].reads == "executions":
            return 0.0
        return None if self._scored(name, self.gold.answer, nothing) is None else 0.0

    def tell_what_is_unproven(self) -> None:
        """Note that the alignment of the answers may not be the best one."""
        gold, predicted = self.gold.answer, self._predicted.answer
        if not isinstance(gold, Table) or not isinstance(predicted, Table):
            return
        if pair(gold, predicted, self._case.policy).unproven:
            self._note([UNPROVEN])

    def _scored(self, name: str, gold: Any, predicted: Any) -> float | None:
        """What the metric says; None where there is nothing that it could be asked about."""
        if gold is None or predicted is None:
            return None
        metric = METRICS[name]
        options = options_of(self._case, name)
        metric.check(options)
        supplied = {key: self._supplied(key) for key in metric.supplied}
        try:
            score = metric.function(gold, predicted, **options, **supplied)
        except QueryEvalError:  # of a source that is asked again
            raise
        except Exception as error:  # a metric of the user's may raise anything
            raise QueryEvalError(f"metric '{name}' raised {type(error).__name__}: {error}") from error
        if isinstance(score, Score):
            self._keep(name, score)
            score = score.value
        return None if score is None else _finite(name, score)

    def _supplied(self, name: str) -> Any:
        match name:
            case "policy":
                return self._case.policy
            case "dialect":
                return self._case.dialect
            case "schema":
                return self._schema()
            case "similarity":
                return self._session.similarity
            case _:
                return self._timed

    def _schema(self) -> Schema:
        """The schema; an empty one and a note where the source cannot list its tables, no fault of a query."""
        try:
            return self._session.schema(self._case)
        except SourceError as error:
            self._note([f"schema: {error}; columns are compared by their names alone"])
            return Schema()

    def _timed(self, iterations: int) -> Sequence[tuple[float, float]] | None:
        gold, predicted = self.gold.query, self._predicted.query
        if gold is None or predicted is None:
            return None
        if iterations not in self._times:
            self._times[iterations] = self._session.times(gold, predicted, self._case, iterations)
        return self._times[iterations]

    def _rewritten(self, metric: Metric) -> tuple[Execution, Execution]:
        if metric.rewrite is None:
            return self.gold, self._predicted
        gold, predicted = metric.rewrite
        return self._run_again(self.gold, gold), self._run_again(self._predicted, predicted)

    def _run_again(self, execution: Execution, rewrite: Callable[[str], str]) -> Execution:
        if execution.query is None:
            return execution
        query = rewrite(execution.query)
        return execution if query == execution.query else self._session.execute_once(Stated(query=query), self._case)

    def _with_order(self, gold: Execution) -> Execution:
        predicted = self._predicted.answer
        if not isinstance(gold.answer, Table) or not isinstance(predicted, Table) or gold.query is None:
            return gold
        query, answer = gold.query, gold.answer
        table, notes = settled_order(
            answer,
            predicted,
            self._case.policy,
            planned=lambda: KINDS[self._case.kind].order_plan(query, answer, self._case.dialect),
            run=self._table_of,
        )
        self._note(notes)
        return gold if table is answer else replace(gold, answer=table)

    def _table_of(self, query: str) -> Table | None:
        answer = self._session.execute_once(Stated(query=query), self._case).answer
        return answer if isinstance(answer, Table) else None

    def _tell(self, gold: Execution) -> None:
        """Begin the details with what the executions themselves say."""
        if isinstance(gold.answer, Table) and not gold.answer.rows and not self._case.allow_empty:
            self.details["empty_gold"] = True
        runs = {"gold": gold, "predicted": self._predicted}
        if notes := [f"{name}: {run.note}" for name, run in runs.items() if run.note]:
            self._note(notes)
        if notes and any(run.engine for run in runs.values()):
            self.details["answered_by"] = {name: run.engine for name, run in runs.items()}
        if self._predicted.violations:
            self.details["violations"] = list(self._predicted.violations)

    def _keep(self, name: str, score: Score) -> None:
        details: Any = score.details
        notes = details.get("notes", ()) if isinstance(details, Mapping) else None
        if not isinstance(notes, list | tuple) or not all(isinstance(note, str) for note in notes):
            raise QueryEvalError(f"metric '{name}' gave details that are no mapping, or notes that are no list")
        if score.value is None:
            self.reasons[name] = "; ".join(notes)
        if (
            score.value is None or self._predicted.error is None
        ):  # notes on the answer of a failed prediction mean nothing
            self._note(notes)
        self.details |= {key: value for key, value in details.items() if key != "notes"}

    def _note(self, notes: Sequence[str]) -> None:
        """Add sentences, each once."""
        if notes:
            self.details["notes"] = list(dict.fromkeys((*self.details.get("notes", ()), *notes)))


def _finite(name: str, value: Any) -> float:
    """Return a score as a float; raises `QueryEvalError` where it is NaN, too large to be averaged, or no number."""
    try:
        if math.isfinite(value) and abs(value) < LARGEST:
            return float(value)
    except (TypeError, ValueError, OverflowError):
        value = type(value).__name__
    raise QueryEvalError(f"metric '{name}' gave {value}, no finite number; a metric that does not apply gives None")
