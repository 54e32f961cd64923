"""The search for why a prediction is wrong: the fewest edits after which its query answers as gold does."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext, suppress
from dataclasses import asdict, replace
from functools import cached_property, partial
from itertools import combinations, islice
from typing import Any, NamedTuple, TypeAlias

from pytest_queryeval.comparison.alignment import shared_budget
from pytest_queryeval.comparison.equality import equal_tables
from pytest_queryeval.core.cause import MAX_EDITS, NO_EFFECT, Cause, CauseLabel, CausingEdit, QueryEdits, SharedPatterns
from pytest_queryeval.core.errors import EngineError, SourceError
from pytest_queryeval.core.model import Answer, Case, CaseResult, Execution, Prediction, QueryOrAnswer, Trial
from pytest_queryeval.core.table import Table
from pytest_queryeval.engines import is_local
from pytest_queryeval.evaluation.scoring import Scoring
from pytest_queryeval.evaluation.session import Session
from pytest_queryeval.features.causes import EDITS, Correction, Edits, Repair, without
from pytest_queryeval.features.strength import SmallDatabases
from pytest_queryeval.features.strength.counterexample import is_refuted
from pytest_queryeval.languages import KINDS
from pytest_queryeval.metrics import DECIDING_METRIC
from pytest_queryeval.text.formatting import one_line

# For each case: counts, so that reports do not depend on the machine.
MAX_EXECUTIONS = 50
MAX_CELLS = 1_000_000  # of the answers of repaired queries together
MAX_COMBINATIONS = 500  # of edits, of which many may lead to the same query, or to none
CAUSE_SECONDS = 1.0  # for all queries of one cause together, unless `cause_mode` is full
MAX_REPAIRS = 12  # of a query that its engine refused
MAX_REFUSALS = 2  # of the repairs of one query, each of which fails for another reason
MAX_CHARACTERS = 4_000  # of a query that is repaired
MAX_EXTENSIONS = 8  # edits that are tried together with those that are right on the source only
MESSAGE_CHARACTERS = 200
_NAME_LABELS = ("unknown-table", "unknown-column", "ambiguous-column")
_QUERY_LABELS = ("set-operation", "nesting")  # edits that replace a query, and what failed with it
_WORD = re.compile(r"\w+")
STILL_WRONG = "; then it runs, but its answer is still wrong"
STILL_DIFFERENT = "; with that, too, the answers differ"
THEN_EQUAL = "; with that, the answers are equal"


def add_cause(result: CaseResult, session: Session) -> CaseResult:
    """Return the result with the cause of its wrong answer, if one is found.

    Shared patterns are put in the details of the shown trial instead. An error of the search becomes a note there, for
    instance if a recording has no cause. `EngineError` is raised.
    """
    try:
        cause = find_cause(result, session)
    except SourceError as error:
        return _without_cause(result, str(error))
    except EngineError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever a predicted query makes a parser raise: the verdict stays
        return _without_cause(result, one_line(f"{type(error).__name__}: {error}", MESSAGE_CHARACTERS))
    if isinstance(cause, SharedPatterns):
        return result.with_details(cause=asdict(cause))
    return result if cause is None else replace(result, cause=cause)


def _without_cause(result: CaseResult, reason: str) -> CaseResult:
    return result.with_details(notes=[*result.shown.details.get("notes", ()), f"no cause: {reason}"])


def find_cause(result: CaseResult, session: Session) -> Cause | SharedPatterns | None:
    """Return why the shown trial is wrong; None if nothing is known.

    - A failure, or an answer that is not a table, is a cause by itself.
    - A query that its engine refused is repaired if one change makes it run.
    - For a wrong answer, edits are combined until the query has gold's answer on the same source under the same limits.

    Unless `cause_mode` is full, all queries together run for at most CAUSE_SECONDS. Raise `SourceError` if a recording
    that is replayed lacks the cause, or the cause cannot be recorded.
    """
    case, trial = result.case, result.shown
    source = case.settings.source
    if source is not None and source.writes:
        return None
    is_wrong_query = case.settings.kind in EDITS and trial.scores.get(DECIDING_METRIC, 0.0) == 0.0
    has_search = is_wrong_query and source is not None and (session.cause_mode == "full" or is_local(source))
    if case.settings.gold_source is not None and has_search:
        case, trial = _with_translated_gold(case, trial, session)
    gold, predicted, kind = trial.gold, trial.predicted, KINDS[case.settings.kind]
    if predicted.error is not None:
        label, message = kind.failure_label(predicted.error), one_line(predicted.error.message, MESSAGE_CHARACTERS)
        failure = Cause(edits=(CausingEdit(label=label, clause="", change=message),))
        if predicted.error.kind == "invalid" and gold.query and predicted.query and has_search:
            with suppress(SourceError):  # a recording may know the failure only
                repaired = _recorded(case, trial, gold.query, predicted.query, session)
                return repaired if isinstance(repaired, Cause) else failure
        return failure
    if gold.answer is None or predicted.answer is None:
        return None
    if not kind.has_queries:
        return kind.difference_cause(gold.answer, predicted.answer, case)
    if gold.query is None or predicted.query is None or not has_search:
        return None
    return _recorded(case, trial, gold.query, predicted.query, session)


def _with_translated_gold(case: Case, trial: Trial, session: Session) -> tuple[Case, Trial]:
    """Return the case and its trial as if the translated gold query had run on the source of the prediction.

    If no translation gives gold's answer there, the trial's gold has no query, so that no edits lead to it. Raise
    `SourceError` if the source cannot be queried, unless the prediction failed, which is a cause by itself.
    """
    gold = None
    with nullcontext() if trial.predicted.error is None else suppress(SourceError):
        gold = _translated_gold(case, trial, session)
    if gold is None:
        return case, replace(trial, gold=replace(trial.gold, query=None))
    settings = replace(case.settings, gold_source=None, gold_dialect="")
    golds = (QueryOrAnswer(query=gold.query),)
    return replace(case, golds=golds, settings=settings), replace(trial, gold=gold, gold_index=0)


def _translated_gold(case: Case, trial: Trial, session: Session) -> Execution | None:
    """Return the execution of the translated gold query on the source of the prediction.

    None if there is no translation, or if it does not give gold's answer.
    """
    gold = session.execute_cached(case.golds[trial.gold_index], case.on_gold_source)
    if gold.query is None or gold.answer is None:
        return None
    try:
        query = KINDS[case.settings.kind].translate(
            gold.query, case.settings.gold_settings.dialect, case.settings.dialect
        )
    except ValueError:
        return None
    translation = QueryOrAnswer(query=query)
    execution = session.execute_cached(translation, case, is_derived=True)
    if execution.answer is None:
        return None
    prediction = Prediction(translation, predictor="translation")
    return execution if Scoring(case, gold, execution, prediction, session).value(DECIDING_METRIC) == 1.0 else None


def _recorded(
    case: Case, trial: Trial, gold_query: str, predicted_query: str, session: Session
) -> Cause | SharedPatterns | None:
    """Return the cause in the run's recording; if there is none, search for the cause and record it."""
    recording = session.recording
    recorded_cause = None if recording is None else recording.load_cause(gold_query, predicted_query, case)
    if recorded_cause is not None:
        return recorded_cause[0]
    cause = None
    seconds = CAUSE_SECONDS if session.cause_mode == "auto" else None
    with shared_budget(), session.analysis(seconds), suppress(SourceError):
        gold = session.execute_cached(case.golds[trial.gold_index], case)
        cause = _Search(case, trial, gold, session).cause()
    if recording is not None:
        recording.save_cause(gold_query, predicted_query, case, cause)
    return cause


class _Repaired(NamedTuple):
    """The predicted query after some edits, which has gold's answer on the source."""

    numbers: Sequence[int]
    """The positions of the edits among all edits, from 0."""
    query: str
    answer: Answer | None


_Attempt: TypeAlias = tuple[CausingEdit, Execution]


class _Search:
    """The search for why the prediction of a trial is wrong, on its source and on small databases."""

    def __init__(self, case: Case, trial: Trial, gold: Execution, session: Session, refusals: int = 0) -> None:
        """Prepare the search; `refusals` counts the repairs before it that the engine refused."""
        self._refusals = refusals
        self._case, self._trial, self._gold, self._session = case, trial, gold, session
        self._refuting: list[tuple[SmallDatabases[Any], Any]] = []  # small databases, with their states

    @cached_property
    def _differences(self) -> Edits:
        """The edits from the predicted query to gold."""
        return EDITS[self._case.settings.kind](self._trial.predicted, self._gold, self._case, self._session)

    @cached_property
    def _limited_case(self) -> Case:
        """The case for running repaired queries: if duplicates count, limited to one row more than gold's answer."""
        settings, row_count = self._case.settings, _row_count(self._gold)
        if settings.policy.duplicates != "count" or row_count is None:
            return self._case
        return replace(self._case, settings=replace(settings, max_rows=min(settings.max_rows, row_count + 1)))

    def cause(self) -> Cause | SharedPatterns | None:
        """Return why the prediction is wrong; None if it is right, or nothing is known.

        Raise `EngineError` if the engine gives another answer to the same query in other words.
        """
        failure = self._trial.predicted.error
        if self._gold.answer is None:  # it is no longer cached, and takes longer than a cause may
            return None
        if failure is not None:
            return self._cause_of_failure(KINDS[self._case.settings.kind].failure_label(failure))
        if DECIDING_METRIC not in self._trial.scores and self.score(self._trial.predicted) != 0.0:
            return None
        if self._differences.correction is not None:
            return self._cause_beside_gold(self._differences.correction)
        if self._is_too_slow():
            return self._differences.fallback()
        if self._is_right_in_other_words():
            self._check_engine()
            return None
        causes = (next(self._causes(edits), None) for edits in self._differences.groups)
        return next(filter(None, causes), None) or self._differences.fallback()

    def score(self, execution: Execution) -> float | None:
        """Return the deciding metric's score of an execution as the prediction; None if the metric has no score.

        0.0 if only gold has rows, or if duplicates count and the numbers of rows differ.
        """
        if _row_count(execution) == 0 and _row_count(self._gold):
            return 0.0
        if self._case.settings.policy.duplicates == "count" and _row_count(execution) != _row_count(self._gold):
            return 0.0
        scoring = Scoring(self._case, self._gold, execution, self._trial.prediction, self._session)
        return scoring.value(DECIDING_METRIC)

    def _run(self, query: str, case: Case) -> Execution:
        return self._session.execute_cached(QueryOrAnswer(query=query), case, is_derived=True)

    def _answers_as_gold(self, query: str, databases: int) -> bool | None:
        """Return whether no small database refutes a query; None if there are no small databases.

        The query is compared with gold on `databases` of them, and on those that refuted an earlier query.
        """
        gold = self._gold.query or ""
        try:
            return not is_refuted(self._case, gold, query, self._session, databases, self._refuting)
        except SourceError:
            return None

    def _is_too_slow(self) -> bool:
        """Return whether the predicted query, written again, would use up the time of the whole search."""
        is_limited = self._session.cause_mode == "auto" and bool(self._differences.in_other_words)
        return is_limited and self._trial.predicted.seconds > CAUSE_SECONDS

    def _is_right_in_other_words(self) -> bool:
        """Return whether the predicted query has gold's answer once it is only written again, without an edit."""
        query = self._differences.in_other_words
        return bool(query) and self.score(self._run(query, self._limited_case)) == 1.0

    def _check_engine(self) -> None:
        """Raise `EngineError` if the source still gives a wrong answer to the predicted query as it is written.

        The query must have only one possible answer.
        """
        predicted = self._trial.predicted
        is_determined = self._differences.is_determined
        if is_determined and self.score(self._run(predicted.query or "", self._limited_case)) != 1.0:
            problem = f"{predicted.engine} gives the gold answer to the predicted query, but only in other words"
            raise EngineError(f"{problem}: use another engine, and report this to its makers")

    def _cause_of_failure(self, label: CauseLabel) -> Cause | None:
        """Return the change after which a query that its engine refused has gold's answer, or at least runs; else None.

        The first of these that succeeds is returned:

        - a repair of the query alone
        - an edit that leads to gold
        - a repair followed by edits that lead to gold
        - two edits that lead to gold

        A guess comes first if it has gold's answer on small databases too, and last otherwise. If no repair runs, the
        third comes before an edit that small databases refute; if a column is ambiguous, before any edit.
        A change that only makes the query run is a cause without a repaired query.
        """
        cause, attempt = self._repair(label, self._differences.repairs)
        if attempt is None or attempt[1].error is not None:
            cause, translated = self._repair(label, self._differences.translations)
            attempt = translated or attempt
        is_ambiguous = label == "ambiguous-column"  # which an edit that leads to gold does not show
        if cause is not None and (cause.is_tested or is_ambiguous):
            return cause
        guess, _ = self._repair(label, self._differences.guesses)
        if guess is not None and guess.is_tested:
            return guess
        repaired = self._repaired_with_edits(label, cause, attempt)
        has_rows = bool(_row_count(self._gold))  # an empty answer is hit by chance
        if guess is None or not has_rows or (repaired is not None and repaired.is_tested):
            return repaired
        is_short = repaired is not None and repaired.repaired_query is not None and len(repaired.edits) == 1
        return repaired if is_short else guess

    def _repaired_with_edits(self, label: CauseLabel, cause: Cause | None, attempt: _Attempt | None) -> Cause | None:
        """Return edits that lead to gold, after a repair or without; else `cause` or what makes the query run, or None.

        `cause` is a repair that has gold's answer on the source, `attempt` a repair with its execution.
        """
        is_ambiguous = label == "ambiguous-column"
        runs = attempt is not None and attempt[1].error is None
        edited = self._edited(label, tested=cause is not None)
        if edited is not None and edited.is_tested and not is_ambiguous:
            return edited
        is_first = is_ambiguous or not runs
        further = self._further(attempt) if is_first else None
        repaired = _together(attempt, further) or edited or cause
        if repaired is not None or attempt is None or not runs:
            return repaired or self._edited(label, most=MAX_EDITS)
        further = further if is_first else self._further(attempt)
        repaired = _together(attempt, further) or self._edited(label, most=MAX_EDITS)
        is_list = isinstance(further, Cause) and further.repaired_query is None  # of all that is known
        edits = further.edits if isinstance(further, Cause) else ()
        still_wrong = replace(attempt[0], change=f"{attempt[0].change}{STILL_WRONG}")
        known = (edit for edit in edits if is_list or edit.label == "unknown-term")
        return repaired or Cause(edits=(still_wrong, *known))

    def _edited(self, label: CauseLabel, *, most: int = 1, tested: bool = False) -> Cause | None:
        """Return at most `most` edits from a failed prediction to gold's answer; None if there are none.

        The first edit has the label of the failure: it makes the query run, or changes what the message names. If
        `tested`, the answer has to be gold's on small databases too.
        """
        message = self._trial.predicted.error.message if self._trial.predicted.error is not None else ""

        def fixes_failure(edit: CausingEdit, edits: QueryEdits) -> tuple[bool, bool]:
            query = edits.applied([edits.edits.index(edit)]) if edit in edits.edits else None
            runs = query is not None and self._run(query, self._limited_case).error is None
            return runs, bool({*_WORD.findall(message)} & {*_WORD.findall(edit.change.partition(" → ")[0])})

        for edits in () if self._is_right_in_other_words() else self._differences.groups:
            for cause in self._causes(edits, most=most):
                labels = {edit.label for edit in cause.edits}
                if labels.isdisjoint(_QUERY_LABELS) and (cause.is_tested or not tested):
                    first = max(cause.edits, key=partial(fixes_failure, edits=edits))
                    return replace(cause, edits=(replace(first, label=label), *without(cause.edits, [first])))
        return None

    def _further(self, attempt: _Attempt | None) -> Cause | SharedPatterns | None:
        """Return what is still wrong after a repair; None if there is no repair, or too many repairs were refused."""
        if attempt is None or (attempt[1].error is not None and self._refusals == MAX_REFUSALS):
            return None
        trial, refusals = replace(self._trial, predicted=attempt[1], scores={}), self._refusals + 1
        return _Search(self._case, trial, self._gold, self._session, refusals).cause()

    def _repair(self, label: CauseLabel, repairs: Iterable[Repair]) -> tuple[Cause | None, _Attempt | None]:
        """Return the first repair of a failed prediction that has gold's answer, and the first repair that runs.

        A repair that also has gold's answer on small databases comes before a repair that has it on the source only. If
        no repair runs, the second result is the first repair that fails for another reason. Either may be None.
        """
        running: _Attempt | None = None
        refused: _Attempt | None = None
        untested: Cause | None = None
        is_long = len(self._trial.predicted.query or "") > MAX_CHARACTERS
        for repair in () if is_long else islice(repairs, MAX_REPAIRS):
            execution = self._run(repair.query, self._case)
            attempt = CausingEdit(label=label, clause=repair.clause, change=repair.change), execution
            if execution.error is not None:
                if execution.error.kind == "timeout":
                    break
                if label in _NAME_LABELS and execution.error != self._trial.predicted.error:
                    refused = refused or attempt
                continue
            running = running or attempt
            if self.score(execution) == 1.0:
                is_tested = self._answers_as_gold(execution.query or "", self._differences.databases)
                cause = Cause(edits=attempt[:1], repaired_query=execution.query, is_tested=bool(is_tested))
                if is_tested is not False:
                    return cause, running
                untested = untested or cause
        return untested, running or refused

    def _cause_beside_gold(self, correction: Correction) -> Cause:
        """Return the fault of gold, with the edits that lead from the predicted query to the fixed gold query."""
        gold = self._run(correction.query, self._case)
        case = replace(self._case, golds=(QueryOrAnswer(query=correction.query),))
        search = _Search(case, replace(self._trial, gold_index=0, scores={}), gold, self._session)
        is_right = search.score(self._trial.predicted) == 1.0
        further = None if is_right else search.cause()
        if isinstance(further, Cause):
            return Cause(edits=(correction.edit, *further.edits))
        remark = THEN_EQUAL if is_right else STILL_DIFFERENT
        return Cause(edits=(replace(correction.edit, change=f"{correction.edit.change}{remark}"),))

    def _causes(self, edits: QueryEdits, *, most: int = MAX_EDITS) -> Iterator[Cause]:
        """Yield a cause for each combination of at most `most` edits after which the query answers as gold everywhere.

        Edits that only small databases need come last; with extended edits a cause may have one edit more. If small
        databases refute all combinations, yield the first of at most `most_untested` edits that is right on the source.
        That one also comes before several edits of which one replaces a whole query.
        """
        most_untested, is_extended = self._differences.most_untested, self._differences.is_extended
        first_edits = self._differences.first_edits
        refuted_repairs, extended = list[_Repaired](), deque[Sequence[int]]()
        untested: Cause | None = None

        def is_gold(repaired: _Repaired) -> bool | None:
            databases = self._differences.databases
            return edits.reach_gold(repaired.numbers) or self._answers_as_gold(repaired.query, databases)

        for repaired in self._right_on_source(edits, most, extended):
            numbers, is_tested = repaired.numbers, is_gold(repaired)
            exchanges_query = any(edits.edits[number].label in _QUERY_LABELS for number in numbers)
            if is_tested is False and not edits.reach_other_shape(numbers):
                refuted_repairs.append(repaired)
                if untested is None and len(numbers) <= most_untested and not exchanges_query:
                    causing_edits = (*first_edits, *(edits.edits[number] for number in numbers))
                    untested = Cause(edits=causing_edits, repaired_query=repaired.query)
                is_enough = untested is not None and self._differences.prefers_untested
                if is_extended and not is_enough and len(numbers) <= most < len(edits.edits):
                    further_numbers = (number for number in range(len(edits.edits)) if number not in numbers)
                    extended += (sorted((*numbers, number)) for number in islice(further_numbers, MAX_EXTENSIONS))
            elif untested is None or len(numbers) == 1 or not exchanges_query:
                if is_extended:
                    fewer = self._with_fewer(edits, numbers, refuted_repairs)
                    repaired = next((part for part in fewer if is_gold(part) is not False), repaired)
                causing_edits = (*first_edits, *self._with_effect_first(edits, repaired, refuted_repairs))
                yield Cause(edits=causing_edits, repaired_query=repaired.query, is_tested=bool(is_tested))
        if untested is not None:
            yield untested

    def _with_effect_first(
        self, edits: QueryEdits, repaired: _Repaired, sufficient: Sequence[_Repaired]
    ) -> tuple[CausingEdit, ...]:
        """Return the edits of a cause, with edits that do not change the source's answer at the end, marked as such.

        `sufficient` are combinations that were right on the source. A set operation has an effect even if a short
        answer hides it. An answer without rows may hide any effect.
        """
        numbers = needed = repaired.numbers
        is_empty = isinstance(repaired.answer, Table) and not repaired.answer.rows
        for part in () if is_empty else sufficient:
            labels = {edits.edits[number].label for number in numbers if number not in part.numbers}
            hides_no_operation = self._differences.most_untested > 0 or "set-operation" not in labels
            if {*part.numbers} < {*numbers} and hides_no_operation:
                # Gold's answer may be one of several that tie: what chooses another one of them has an effect.
                tables = [answer for answer in (repaired.answer, part.answer) if isinstance(answer, Table)]
                if len(tables) < 2 or equal_tables(tables[0], tables[1], self._case.settings.policy):
                    needed = part.numbers
                    break
        further = [edits.edits[number] for number in numbers if number not in needed]
        marked = (replace(edit, change=f"{edit.change}{NO_EFFECT}") for edit in further)
        return (*(edits.edits[number] for number in needed), *marked)

    def _with_fewer(
        self, edits: QueryEdits, numbers: Sequence[int], refuted: Sequence[_Repaired]
    ) -> Iterator[_Repaired]:
        """Yield the combinations with one of these edits less that are right on the source, except refuted ones."""
        for fewer in combinations(numbers, len(numbers) - 1) if len(numbers) > 1 else ():
            query = None if any({*part.numbers} == {*fewer} for part in refuted) else edits.applied(fewer)
            if query is not None:
                execution = self._run(query, self._limited_case)
                if execution.error is None and self.score(execution) == 1.0:
                    yield _Repaired(fewer, query, execution.answer)

    def _right_on_source(self, edits: QueryEdits, most: int, extended: deque[Sequence[int]]) -> Iterator[_Repaired]:
        """Yield the combinations of at most `most` edits after which the query has gold's answer on the source.

        Combinations that the caller adds to `extended` meanwhile are tried before all others. The search ends at its
        limits of queries and cells, and at a timeout.
        """
        tried: set[str] = set()
        cells = 0
        for numbers, is_extension in islice(_combinations(edits, most, extended), MAX_COMBINATIONS):
            query = edits.applied(numbers)
            if query is None or query in tried:
                continue
            if len(tried) == MAX_EXECUTIONS or cells > MAX_CELLS:
                break
            is_known_wrong = is_extension and self._answers_as_gold(query, 0) is False
            if is_known_wrong and not edits.reach_other_shape(numbers):
                continue  # as a combination by itself, it may still be extended
            tried.add(query)
            execution = self._run(query, self._limited_case)
            if isinstance(execution.answer, Table):
                cells += len(execution.answer.rows) * len(execution.answer.columns)
            if execution.error is not None:
                if execution.error.kind == "timeout":
                    break
            elif self.score(execution) == 1.0:
                yield _Repaired(numbers, query, execution.answer)


def _together(attempt: _Attempt | None, further: Cause | SharedPatterns | None) -> Cause | None:
    """Return a repair followed by the edits that lead to gold's answer, as one cause.

    None if either is missing, or if there are more than MAX_EDITS edits apart from unknown terms.
    """
    if attempt is None or not isinstance(further, Cause) or further.repaired_query is None:
        return None
    count = sum(edit.label != "unknown-term" for edit in further.edits)
    return replace(further, edits=(attempt[0], *further.edits)) if count <= MAX_EDITS else None


def _combinations(edits: QueryEdits, most: int, extended: deque[Sequence[int]]) -> Iterator[tuple[Sequence[int], bool]]:
    """Yield combinations of at most `most` edits, and whether the caller added the combination to `extended`.

    What the caller adds meanwhile comes next.
    """
    for numbers in edits.combinations():
        if len(numbers) <= most:
            yield numbers, False
        while extended:
            yield extended.popleft(), True


def _row_count(execution: Execution) -> int | None:
    return len(execution.answer.rows) if isinstance(execution.answer, Table) else None
