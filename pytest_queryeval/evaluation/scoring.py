"""One predicted answer against one gold: the order of gold's rows, and the values of metrics with details and notes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from pytest_queryeval.comparison.equality import project
from pytest_queryeval.comparison.pairing import table_pair
from pytest_queryeval.comparison.ties import GuidedQuery, MadeQueries, OpenQuery, OrderPlan, TieQuery
from pytest_queryeval.core.case_report import ChallengeReport
from pytest_queryeval.core.db_schema import Schema
from pytest_queryeval.core.errors import GoldError, QueryEvalError, SourceError, UnresponsiveSourceError
from pytest_queryeval.core.features import feature
from pytest_queryeval.core.mappings import excluding
from pytest_queryeval.core.metric import LARGEST, FindBreaches, Metric, Rewrite, SchemaUse, Score, States
from pytest_queryeval.core.model import (
    IN_SCOPE,
    AddedAnswer,
    Case,
    Execution,
    Failure,
    Prediction,
    QueryOrAnswer,
)
from pytest_queryeval.core.table import Table
from pytest_queryeval.engines import is_local
from pytest_queryeval.evaluation.open_answers import (
    MAX_TRIES,
    choose_towards,
    depends_on_tie,
    has_columns_of,
    is_cut,
    is_nearer,
    likely_alignments,
    may_be_equal,
    resolve_row_order,
    with_collections,
)
from pytest_queryeval.evaluation.schema_use import schema_use, scope_breaches, unknown_scope_names
from pytest_queryeval.evaluation.session import Session
from pytest_queryeval.languages import KINDS
from pytest_queryeval.metrics import DECIDING_METRIC, RequestedMetric, follows_compare
from pytest_queryeval.metrics.execution_accuracy import execution_accuracy

UNPROVEN = "alignment: the search for columns, rows or blank nodes stopped at its budget, so scores may be too low"
TWO_SOURCES = "the gold query and the predicted query run on different sources"
OF_ONE_SOURCE = frozenset({"timer", "states", "challenge"})  # arguments of metrics that run both queries again
DEPENDS_ON_CHOICE = "choices: gold leaves its answer open ({choices}), and the predicted answer is one that it may give"
NO_ANSWER = (
    "choices: gold leaves its answer open ({choices}); {number} of its other answers {tried}, and the prediction "
    "may be right nevertheless: let the gold query decide by one more sort key, or write more answers under `gold_any`"
)
DEPENDS = "order: the predicted answer is right only because of such a choice, which a wrong query may hit by chance"


class Scoring:
    """Scores `predicted` against `gold`, whose answer gets the order of its rows as far as it is known.

    A stated answer is converted to the form of the other answer, as its kind defines it. With `gold_columns`, `gold`
    has only these columns; only published metrics get all columns.

    - `details`: the details of the case in report.json.
    - `reasons`: why metrics gave None, if they gave a reason.
    - `depends_on_tie`: whether predicted is right only because gold leaves its answer open.
    - `challenge`: the challenge of predicted, once a metric has asked for it.
    - `nearest_answer`: another answer that gold leaves open, if predicted is wrong and nearer to it.
    """

    def __init__(
        self, case: Case, gold: Execution, predicted: Execution, prediction: Prediction, session: Session
    ) -> None:
        self.details: dict[str, Any] = {}
        self.depends_on_tie = False
        self.reasons: dict[str, str] = {}
        self.challenge: ChallengeReport | None = None
        self.nearest_answer: Table | None = None
        self._case = case
        self._gold_case = case.on_gold_source
        gold, self.predicted = self._convert_to_form_of(predicted, gold), self._convert_to_form_of(gold, predicted)
        self._prediction = prediction
        self._session = session
        self._times: dict[int, Sequence[tuple[float, float]] | None] = {}
        self._begin_details(gold)
        self._whole_gold = self._resolve_order(gold)
        self.gold = self._whole_gold
        if case.settings.policy.gold_columns and isinstance(self.gold.answer, Table):
            self.gold = replace(self.gold, answer=project(self.gold.answer, case.settings.policy.gold_columns))

    def value(self, name: str) -> float | None:
        """Return the score of a metric; the worst score if it needs an answer and the prediction failed.

        None if the metric does not apply, or if the prediction failed and the metric has no worst score. Notes and
        details of the metric are kept. Raise `QueryEvalError` for a metric that raises or gives no number, and
        `SourceError` if a query has to be run again and the source cannot answer.
        """
        requested = self._session.metric_of(self._case.settings, name)
        metric = requested.metric
        if self._case.settings.gold_source is not None and metric.injected & OF_ONE_SOURCE:
            self.reasons[name] = TWO_SOURCES
            return None
        if metric.input == "predictions":
            return self._score_prediction(name, requested)
        if isinstance(gold_answer := self.gold.answer, AddedAnswer):
            predicted_answer = self.predicted.answer
            is_equal = predicted_answer is not None and gold_answer.equals(predicted_answer, self._case)
            return float(is_equal) if name == DECIDING_METRIC else None
        if "states" in metric.injected:
            return self._score(name, requested, self.gold, self.predicted)
        gold, predicted = self._inputs(name, metric)
        if metric.rewrite is not None:
            if predicted.error is not None and predicted.query and metric.rewrite_note is not None:
                self._add_notes(list(filter(None, [metric.rewrite_note(predicted.query)])))
            gold = self._run_again(gold, metric.rewrite[0], self._gold_case)
            predicted = self._run_again(predicted, metric.rewrite[1], self._case)
        if metric.input == "queries":
            return self._score(name, requested, gold.query, predicted.query)
        if predicted.error is not None:
            # Any answer shows whether the metric applies to gold, so an empty one will do.
            empty = KINDS[self._case.settings.kind].empty_answer
            if empty is None or metric.input == "executions":
                return metric.worst_score
            return None if self._score(name, requested, gold.answer, empty) is None else metric.worst_score
        return self._compare(name, requested, gold, predicted)

    def _compare(self, name: str, requested: RequestedMetric, gold: Execution, predicted: Execution) -> float | None:
        """Return the score of a metric for two executions with answers; None if the metric does not apply.

        If the score is 0 and gold leaves open another answer that predicted equals, return the score for that answer.
        """

        def score(gold: Execution) -> float | None:
            of_executions = requested.metric.input == "executions"
            inputs = (gold, predicted) if of_executions else (gold.answer, predicted.answer)
            return self._score(name, requested, *inputs)

        value = score(gold)
        if value != 0.0 or not follows_compare(name, "choices") or self._equals_own_answer or self._open_answer is None:
            return value
        return score(replace(gold, answer=self._open_answer))

    @cached_property
    def _equals_own_answer(self) -> bool:
        """Whether predicted equals the answer that gold gave; a score of 0 is then that of a challenge."""
        gold, predicted = self.gold.answer, self.predicted.answer
        if not isinstance(gold, Table) or not isinstance(predicted, Table):
            return False
        return execution_accuracy(gold, predicted, policy=self._case.settings.policy) == 1.0

    def _inputs(self, name: str, metric: Metric) -> tuple[Execution, Execution]:
        gold = self._whole_gold if metric.published else self.gold
        if not metric.header or self._case.settings.source is not None:
            return gold, self.predicted
        return self._with_header(name, gold), self._with_header(name, self.predicted)

    def _with_header(self, name: str, execution: Execution) -> Execution:
        """Return an execution of which only the query is known with the selected columns as an answer without rows.

        If the query cannot be read, it gets an error; if it selects `*`, it is unchanged and the reason is kept.
        """
        if execution.query is None or execution.answer is not None or execution.error is not None:
            return execution
        settings = self._case.settings
        try:
            columns = KINDS[settings.kind].selected_columns(execution.query, settings.dialect)
        except ValueError as error:
            return replace(execution, error=Failure(kind="invalid", message=str(error)))
        if columns is None:
            self.reasons[name] = "without a source, nothing says which columns `*` selects"
            return execution
        return replace(execution, answer=Table(columns=columns, rows=()))

    def note_unproven_alignment(self) -> None:
        """Add a note if the search for the best alignment of the answers stopped at its budget."""
        gold, predicted = self.gold.answer, self.predicted.answer
        if not isinstance(gold, Table) or not isinstance(predicted, Table) or not gold.rows or not predicted.rows:
            return
        if table_pair(gold, predicted, self._case.settings.policy).is_unproven:
            self._add_notes([UNPROVEN])

    def _score_prediction(self, name: str, requested: RequestedMetric) -> float | None:
        """Return the score of a metric of predictions; without a prediction, the worst score, or None for resources."""
        if isinstance(self._prediction.content, Failure):
            return requested.metric.worst_score if requested.metric.group == "answers" else None
        return self._score(name, requested, self.predicted, self._prediction)

    def _score(self, name: str, requested: RequestedMetric, gold: Any, predicted: Any) -> float | None:
        """Return the value of the metric for two inputs, and keep its details; None if an input is missing.

        Raise `QueryEvalError` if the metric raises, gives no number, or gives a number outside of its range.
        """
        if gold is None or predicted is None:
            return None
        metric, options = requested
        injected = {key: _ARGUMENTS[key](self) for key in metric.injected}
        try:
            score = metric.function(gold, predicted, **options, **injected)
        except QueryEvalError:  # of a source that runs a query again
            raise
        except Exception as error:  # a metric of the user's may raise anything
            raise QueryEvalError(f"metric '{name}' raised {type(error).__name__}: {error}") from error
        if isinstance(score, Score):
            self._keep_details(name, score)
            score = score.value
        is_answered = self.predicted.error is None or metric.input == "queries"
        if metric.counts is not None and score is not None and is_answered:
            key, count = metric.counts
            self._add_counts({key: count(gold, predicted, **injected)})
        if score is None:
            return None
        number = _finite(name, score)
        if problem := metric.range_problem(number):
            raise QueryEvalError(f"the score of metric '{name}': {problem}; `max_score` declares a greater range")
        return number

    def _breaches(self) -> FindBreaches:
        case, session = self._case, self._session
        if case.settings.scope is not None:
            self._add_notes(unknown_scope_names(case.settings.scope, case, session))
        return lambda predicted: scope_breaches(predicted, case, session)

    def _schema_of_predicted(self) -> Schema:
        try:
            return self._session.schema(self._case)
        except SourceError as error:  # it cannot list its tables
            self._add_notes([f"schema: {error}; columns are compared by their names alone"])
            return Schema()

    def _time_queries(self, iterations: int) -> Sequence[tuple[float, float]] | None:
        gold, predicted = self.gold.query, self.predicted.query
        if gold is None or predicted is None:
            return None
        if iterations not in self._times:
            self._times[iterations] = self._session.times(gold, predicted, self._case, iterations)
        return self._times[iterations]

    def _run_challenge(self) -> ChallengeReport:
        if self.challenge is None:
            challenge_answer = feature("challenge.challenger").challenge_answer
            challenge: ChallengeReport = challenge_answer(self._case, self._whole_gold, self.predicted, self._session)
            self.challenge = challenge
        return self.challenge

    def _schema_use(self, query: str, is_gold: bool) -> SchemaUse:
        return schema_use(query, self._gold_case if is_gold else self._case, self._session)

    def _unknown_terms(self, query: str) -> Sequence[str] | None:
        terms = self._session.unknown_terms(query, self._case)
        return None if terms is None else [term.text for term in terms if term.is_required]

    def _states(self) -> States | None:
        """Return a function that scores a metric in every state of the database; None without variants or a query."""
        gold, predicted, source = self.gold.query, self.predicted.query, self._case.settings.source
        if gold is None or predicted is None or source is None or not (variants := self._session.variants(source)):
            return None

        def values(name: str) -> Iterator[tuple[str, float | None]]:
            yield "", self.value(name)
            for variant in variants:
                case = replace(self._case, settings=replace(self._case.settings, source=variant))
                gold_execution = self._session.execute_cached(QueryOrAnswer(query=gold), case)
                if gold_execution.error is not None:
                    raise variant_gold_error(gold_execution.error, gold, case)
                predicted_execution = self._session.execute(QueryOrAnswer(query=predicted), case)
                yield (
                    variant.name,
                    Scoring(case, gold_execution, predicted_execution, self._prediction, self._session).value(name),
                )

        return values

    def _run_again(self, execution: Execution, rewrite: Rewrite, case: Case) -> Execution:
        if execution.query is None:
            return execution
        query = rewrite(execution.query)
        return (
            execution
            if query == execution.query
            else self._session.execute_cached(QueryOrAnswer(query=query), case, is_derived=True)
        )

    def _convert_to_form_of(self, reference: Execution, execution: Execution) -> Execution:
        if reference.answer is None or execution.answer is None or execution.query is not None:
            return execution
        answer = KINDS[self._case.settings.kind].in_form_of(reference.answer, execution.answer)
        return execution if answer is execution.answer else replace(execution, answer=answer)

    def _resolve_order(self, gold: Execution) -> Execution:
        predicted = self.predicted.answer
        if not isinstance(gold.answer, Table) or not isinstance(predicted, Table) or gold.query is None:
            return gold
        query, answer = gold.query, gold.answer
        table, notes = resolve_row_order(
            answer,
            predicted,
            self._case.settings.policy,
            read_plan=lambda: KINDS[self._case.settings.kind].order_plan(query, answer, self._gold_case),
            run=self._table_of_gold,
        )
        self._add_notes(notes)
        self.depends_on_tie = depends_on_tie(table, predicted, self._case.settings.policy)
        if self.depends_on_tie:
            self._add_notes([DEPENDS])
        return gold if table is answer else replace(gold, answer=table)

    @cached_property
    def _open_answer(self) -> Table | None:
        """Another answer that gold may give and that predicted equals; None if there is none.

        To find it, gold is run again with its choices made towards predicted. Notes and `nearest_answer` are kept.
        """
        gold, predicted, settings = self._whole_gold, self.predicted.answer, self._case.settings
        if gold.query is None or not isinstance(gold.answer, Table) or not isinstance(predicted, Table):
            return None
        answer = gold.answer
        chosen = choose_towards(predicted, answer, settings.policy)
        if chosen is not None and execution_accuracy(chosen, predicted, policy=settings.policy) == 1.0:
            self.depends_on_tie = True
            self._add_notes([DEPENDS])
            return chosen
        if settings.policy.choices == "first" or not has_columns_of(answer, predicted, settings.policy):
            return None
        query = KINDS[settings.kind].open_query(gold.query, self._gold_case, self._schema)
        if query is None or not may_be_equal(query, answer, predicted, settings.policy):
            return None
        choices, number, nearest = "; ".join(query.choices), 0, answer
        may_be_cut = query.fixed_columns is None or is_cut(answer)
        for guided in self._tries(query, answer, predicted):
            number += 1
            table = self._answer_to(guided, predicted, may_be_cut=may_be_cut)
            if table is None:
                continue
            if execution_accuracy(table, predicted, policy=settings.policy) == 1.0:
                self.depends_on_tie = True
                self.details["choice"] = choices
                self._add_notes([DEPENDS_ON_CHOICE.format(choices=choices)])
                self.nearest_answer = None
                return table
            if not settings.policy.gold_columns and is_nearer(table, nearest, predicted, guided.alignment):
                self.nearest_answer = nearest = table
            own_rows = project(answer, settings.policy.gold_columns).rows
            if query.fixed_columns is not None and Counter(table.rows) == Counter(own_rows):
                break  # the choice makes no difference, or none that predicted asks for
        self._note_tries(choices, number)
        return None

    def _tries(self, query: OpenQuery, gold: Table, predicted: Table) -> Iterator[GuidedQuery]:
        """Yield the queries to run towards a predicted answer, at most MAX_TRIES, or 1 on a server.

        Queries that only inform later queries are run here.
        """
        guided = query.guided(gold, predicted, likely_alignments(gold, predicted, self._case.settings.policy))
        left = MAX_TRIES if self._is_gold_local else 1
        while left and (tried := next(guided, None)) is not None:
            if tried.read is None:
                left -= 1
                yield tried
            elif isinstance(rows := self._table_of_gold(tried.text), Table):
                tried.read(rows)

    def _note_tries(self, choices: str, number: int) -> None:
        """Add a note that none of the `number` other answers of gold that were tried is the predicted answer."""
        is_limited = number and not self._is_gold_local
        tried = "were tried" if number > 1 else "was tried, as on any server" if is_limited else "was tried"
        self._add_notes([NO_ANSWER.format(choices=choices, number=number or "none", tried=tried)])

    @property
    def _is_gold_local(self) -> bool:
        source = self._gold_case.settings.source
        return source is not None and is_local(source)

    def _answer_to(self, guided: GuidedQuery, predicted: Table, *, may_be_cut: bool) -> Table | None:
        """Return the answer of gold to a guided query, with the columns that count and its order.

        None if the query fails. If `may_be_cut` is true, a LIMIT at its top level may cut through rows that tie.
        """
        policy, kind = self._case.settings.policy, KINDS[self._case.settings.kind]
        answer = self._table_of_gold(guided.text)
        if isinstance(answer, str):
            return None
        if guided.collections:
            answer = with_collections(answer, predicted, guided)

        def read_plan() -> OrderPlan | None:
            plan = kind.order_plan(self._whole_gold.query or "", answer, self._gold_case)
            return plan and replace(plan, limited=plan.limited and may_be_cut, queries=MadeQueries(tie_queries))

        def tie_queries() -> Iterator[TieQuery]:
            plan = kind.order_plan(guided.text, answer, self._gold_case)
            return iter(() if plan is None else plan.queries)

        table, _ = resolve_row_order(answer, predicted, policy, read_plan=read_plan, run=self._table_of_gold)
        return choose_towards(predicted, table, policy) or project(table, policy.gold_columns)

    def _schema(self) -> Schema:
        """Return the tables of gold's source; empty if the source cannot list them."""
        try:
            return self._session.schema(self._gold_case)
        except SourceError:
            return Schema()

    def _table_of_gold(self, query: str) -> Table | str:
        try:
            execution = self._session.execute_cached(QueryOrAnswer(query=query), self._gold_case, is_derived=True)
        except UnresponsiveSourceError as error:  # to queries that are not those of the case
            return str(error)
        if isinstance(execution.answer, Table):
            return execution.answer
        return execution.error.message if execution.error else "no table"

    def _begin_details(self, gold: Execution) -> None:
        """Set the details that follow from the executions: an empty gold answer, notes, engines and violations."""
        answer, predicted = gold.answer, self.predicted.answer
        shown = answer.as_table() if isinstance(answer, AddedAnswer) else answer
        if isinstance(shown, Table) and not shown.rows and not self._case.allow_empty:
            self.details["empty_gold"] = True
        if isinstance(answer, Table) and isinstance(predicted, Table):
            width, needed = len(predicted.columns), len(answer.columns)
            if width > 2 * needed:
                ignoring = "row_matching_f1 and entity_set_f1 ignore extra columns"
                self._add_notes(
                    [f"columns: the predicted answer has {width:,}, the gold answer {needed:,}; {ignoring}"]
                )
        executions = {"gold": gold, "predicted": self.predicted}
        if notes := [f"{name}: {execution.note}" for name, execution in executions.items() if execution.note]:
            self._add_notes(notes)
        if notes and any(execution.engine for execution in executions.values()):
            self.details["answered_by"] = {name: execution.engine for name, execution in executions.items()}
        if self.predicted.violations:
            self.details["violations"] = list(self.predicted.violations)

    def _keep_details(self, name: str, score: Score) -> None:
        details: Any = score.details
        notes = details.get("notes", ()) if isinstance(details, Mapping) else None
        if not isinstance(notes, list | tuple) or not all(isinstance(note, str) for note in notes):
            raise QueryEvalError(f"metric '{name}' gave details that are not a mapping, or notes that are not a list")
        if score.value is None:
            self.reasons[name] = "; ".join(notes)
        # Other notes on a failed prediction mean nothing.
        if score.value is None or self.predicted.error is None or name == IN_SCOPE:
            self._add_notes(notes)
        self.details |= excluding(details, ("notes", "counts"))
        if "counts" in details:
            self._add_counts(details["counts"])

    def _add_counts(self, counts: Any) -> None:
        """Add the counts of a score to the details; counts of the same name are replaced.

        Anything but a mapping, which a metric of the user may return, replaces all counts.
        """
        earlier_counts = self.details.get("counts")
        if isinstance(earlier_counts, Mapping) and isinstance(counts, Mapping):
            counts = {**earlier_counts, **counts}
        self.details["counts"] = counts

    def _add_notes(self, notes: Sequence[str]) -> None:
        """Add sentences to the notes of the case, without duplicates."""
        if notes:
            self.details["notes"] = list(dict.fromkeys((*self.details.get("notes", ()), *notes)))


# The arguments that metrics may ask for, by name.
_ARGUMENTS: Mapping[str, Callable[[Scoring], Any]] = {
    "policy": lambda scoring: scoring._case.settings.policy,
    "dialect": lambda scoring: scoring._case.settings.dialect,
    "report_rows": lambda scoring: scoring._case.settings.report_rows,
    "expectations": lambda scoring: scoring._case.expectations,
    "gold_dialect": lambda scoring: scoring._case.settings.gold_settings.dialect,
    "schema": Scoring._schema_of_predicted,
    "similarity": lambda scoring: scoring._session.similarity,
    "states": Scoring._states,
    "unknown_terms": lambda scoring: scoring._unknown_terms,
    "challenge": lambda scoring: scoring._run_challenge,
    "schema_use": lambda scoring: scoring._schema_use,
    "breaches": Scoring._breaches,
    "unmatched": lambda scoring: scoring._session.unmatched,
    "timer": lambda scoring: scoring._time_queries,
}


def _finite(name: str, score: Any) -> float:
    """Return a score as a float; raise `QueryEvalError` if it is no number, NaN, or too large to be averaged."""
    try:
        if math.isfinite(score) and abs(score) < LARGEST:
            return float(score)
    except (TypeError, ValueError, OverflowError):
        score = type(score).__name__
    raise QueryEvalError(f"metric '{name}' gave {score}, no finite number; a metric that does not apply gives None")


def variant_gold_error(failure: Failure, gold: str, case: Case) -> GoldError:
    """Return, without raising it, the error of a gold that fails on the variant that is the source of `case`."""
    place = next((candidate.location for candidate in case.golds if candidate.query == gold), None)
    variant = "" if case.settings.source is None else case.settings.source.name
    return GoldError(f"the gold query failed on the variant {variant} ({failure.kind}): {failure.message}", place)
