"""Why a prediction is wrong: the fewest edits after which it answers as gold does, found by running it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from itertools import combinations, islice
from typing import NamedTuple, TypeAlias

from pytest_queryeval.comparison.budget import shared_budget
from pytest_queryeval.comparison.equality import equal_tables
from pytest_queryeval.core.cause import MAX_EDITS, NO_EFFECT, Cause, CauseLabel, CausingEdit, QueryEdits, SharedPatterns
from pytest_queryeval.core.errors import SourceError
from pytest_queryeval.core.model import Answer, Case, CaseResult, Execution, QueryOrAnswer, Trial
from pytest_queryeval.core.table import Table
from pytest_queryeval.engines import ENGINES
from pytest_queryeval.evaluation.counterexamples import COUNTEREXAMPLE_SEARCHES
from pytest_queryeval.evaluation.scoring import Scoring
from pytest_queryeval.evaluation.session import Session
from pytest_queryeval.features.causes import EDITS, Correction, Edits
from pytest_queryeval.features.causes.failed import Repair
from pytest_queryeval.features.causes.translated_gold import with_translated_gold
from pytest_queryeval.languages import KINDS
from pytest_queryeval.text.truncation import one_line

# For each case: counts, so that reports do not depend on the machine.
MAX_EXECUTIONS = 50
MAX_CELLS = 1_000_000  # of the answers of repaired queries together
MAX_COMBINATIONS = 500  # of edits, of which many may lead to the same query, or to none
CAUSE_SECONDS = 1.0  # for all queries of one cause together, unless `cause_mode` is full
MAX_REPAIRS = 12  # of a query that its engine refused
MAX_EXTENSIONS = 8  # edits that are tried with those that are enough on the source only
DECIDING_METRIC = "execution_accuracy"
Score: TypeAlias = Callable[[Execution], float | None]
MESSAGE_CHARACTERS = 200
_OF_QUERIES = ("set-operation", "nesting")  # edits that leave out what failed, with much else
STILL_WRONG = "; then it runs, but its answer is still wrong"
STILL_DIFFERENT = "; with that, too, the answers differ"
THEN_EQUAL = "; with that, the answers are equal"


class _Repaired(NamedTuple):
    """The predicted query after some edits, which is right on the source."""

    numbers: Sequence[int]
    """Of the edits."""
    query: str
    answer: Answer | None


def add_cause(result: CaseResult, session: Session) -> CaseResult:
    """Return the result with its cause, or in the details of the shown trial what its query shares with gold.

    The details say where a recording has no cause to replay.
    """
    try:
        cause = find_cause(result, session)
    except SourceError as error:
        notes = [*result.shown.details.get("notes", ()), f"no cause: {error}"]
        return result.with_details(notes=notes)
    if isinstance(cause, SharedPatterns):
        return result.with_details(cause=asdict(cause))
    return result if cause is None else replace(result, cause=cause)


def find_cause(result: CaseResult, session: Session) -> Cause | SharedPatterns | None:
    """Return why the shown trial is wrong; None if it is right, and if nothing is known.

    The cause of a failure, and of an answer that is not a table, follows from it; a query that its engine refused is
    repaired where one change makes it run. That of a wrong answer is the first combination of edits after which the
    query, run on the same source under the same limits, has gold's answer; unless `cause_mode` is full, all queries run
    for CAUSE_SECONDS together. Terms that the source does not have are replaced first. Without such a combination it is
    the unknown terms of a query that finds nothing, else what the patterns of two SPARQL queries share. Raise
    `SourceError` if a recording is replayed that does not have the cause, and if it cannot be recorded.
    """
    case, trial = result.case, result.shown
    if session.cause_mode == "off" or trial.scores.get(DECIDING_METRIC):
        return None
    if case.settings.gold_source is not None and _has_search(case, trial, session):
        case, trial = with_translated_gold(case, trial, session)
    gold, predicted, kind = trial.gold, trial.predicted, KINDS[case.settings.kind]
    if predicted.error is not None:
        label, message = kind.failure_label(predicted.error), one_line(predicted.error.message, MESSAGE_CHARACTERS)
        failure = Cause(edits=(CausingEdit(label=label, clause="", change=message),))
        if predicted.error.kind == "invalid" and gold.query and predicted.query and _has_search(case, trial, session):
            with suppress(SourceError):  # a recording may know the failure only
                repaired = _recorded(case, trial, gold.query, predicted.query, session)
                return repaired if isinstance(repaired, Cause) else failure
        return failure
    if gold.answer is None or predicted.answer is None:
        return None
    if not kind.has_queries:
        return kind.difference_cause(gold.answer, predicted.answer)
    if gold.query is None or predicted.query is None or not _has_search(case, trial, session):
        return None
    return _recorded(case, trial, gold.query, predicted.query, session)


def _has_search(case: Case, trial: Trial, session: Session) -> bool:
    """Return whether edits of a wrong query are run: its kind has some, and the source is local or all are searched."""
    source = case.settings.source
    if source is None or case.settings.kind not in EDITS or trial.scores.get(DECIDING_METRIC, 0.0) != 0.0:
        return False
    return session.cause_mode == "full" or bool(ENGINES[source.engine].fingerprint.files(source))


def _recorded(
    case: Case, trial: Trial, gold_query: str, predicted_query: str, session: Session
) -> Cause | SharedPatterns | None:
    """Return the cause that the recording of the run has; else look for it, and record it."""
    recording = session.recording
    recorded_cause = None if recording is None else recording.load_cause(gold_query, predicted_query, case)
    if recorded_cause is not None:
        return recorded_cause[0]
    cause: Cause | SharedPatterns | None = None
    seconds = CAUSE_SECONDS if session.cause_mode == "auto" else None
    with shared_budget(), session.analysis(seconds), suppress(SourceError):
        if trial.predicted.error is None:
            cause = _repaired(case, trial, gold_query, predicted_query, session)
        else:
            cause = _repaired_failure(case, trial, gold_query, predicted_query, session)
    if recording is not None:
        recording.save_cause(gold_query, predicted_query, case, cause)
    return cause


def _repaired_failure(
    case: Case, trial: Trial, gold_query: str, predicted_query: str, session: Session
) -> Cause | None:
    """Return the change after which a query that its engine refused has gold's answer, or at least runs.

    That is a repair of the query alone, else an edit that leads to gold, else a repair with such an edit. A change that
    only makes it run is a cause without a repaired query.
    """
    failure, gold = trial.predicted.error, session.execute_cached(case.golds[trial.gold_index], case)
    if failure is None or gold.answer is None:
        return None
    label, score = KINDS[case.settings.kind].failure_label(failure), _score(case, trial, gold, session)
    differences = EDITS[case.settings.kind](trial.predicted, gold, case, session)
    cause, running = _repair(case, gold_query, differences, label, score, session)
    if cause is not None:
        return cause
    alone = differences._replace(most_untested=0, is_extended=False)
    for edits in differences.groups:
        for cause in _causes(edits, alone, case, gold, score, session, most=1):
            if cause.edits[0].label not in _OF_QUERIES:
                return replace(cause, edits=(replace(cause.edits[0], label=label),))
    if running is None:
        return None
    edit, execution = running
    repaired_trial = replace(trial, predicted=execution, scores={})
    further = _repaired(case, repaired_trial, gold_query, execution.query or "", session)
    further_edits = further.edits if isinstance(further, Cause) else ()
    if isinstance(further, Cause) and further.repaired_query is not None and len(further_edits) < MAX_EDITS:
        return replace(further, edits=(edit, *further_edits))
    unknown_terms = [term for term in further_edits if term.label == "unknown-term"]
    return Cause(edits=(replace(edit, change=f"{edit.change}{STILL_WRONG}"), *unknown_terms)[:MAX_EDITS])


def _repair(
    case: Case, gold_query: str, differences: Edits, label: CauseLabel, score: Score, session: Session
) -> tuple[Cause | None, tuple[CausingEdit, Execution] | None]:
    """Return the first repair of a failed prediction that has gold's answer, and the first that runs.

    One that has it on small databases, too, comes before one that has it on the source only.
    """
    running: tuple[CausingEdit, Execution] | None = None
    untested: Cause | None = None
    for edit, execution in _running_repairs(differences.repairs, case, label, session):
        running = running or (edit, execution)
        if score(execution) != 1.0:
            continue
        is_tested = _answers_as_gold(case, gold_query, execution.query or "", session, differences)
        cause = Cause(edits=(edit,), repaired_query=execution.query, is_tested=bool(is_tested))
        if is_tested is not False:
            return cause, running
        untested = untested or cause
    return untested, running


def _running_repairs(
    repairs: Iterable[Repair], case: Case, label: CauseLabel, session: Session
) -> Iterator[tuple[CausingEdit, Execution]]:
    """Yield the repairs of a failed prediction that run, with what they answer."""
    for repair in islice(repairs, MAX_REPAIRS):
        execution = session.execute_cached(QueryOrAnswer(query=repair.query), case, is_derived=True)
        if execution.error is None:
            yield CausingEdit(label=label, clause=repair.clause, change=repair.change), execution
        elif execution.error.kind == "timeout":
            break


def _repaired(
    case: Case, trial: Trial, gold_query: str, predicted_query: str, session: Session
) -> Cause | SharedPatterns | None:
    gold = session.execute_cached(case.golds[trial.gold_index], case)
    if gold.answer is None:  # it is no longer cached, and takes longer than a cause may
        return None
    score = _score(case, trial, gold, session)
    if DECIDING_METRIC not in trial.scores and score(trial.predicted) != 0.0:
        return None
    differences = EDITS[case.settings.kind](trial.predicted, gold, case, session)
    correction = differences.correction
    if correction is not None:
        return _cause_beside_gold(correction, case, trial, predicted_query, session)
    causes = (next(_causes(edits, differences, case, gold, score, session), None) for edits in differences.groups)
    return next(filter(None, causes), None) or differences.fallback()


def _cause_beside_gold(
    correction: Correction, case: Case, trial: Trial, predicted_query: str, session: Session
) -> Cause:
    """Return what is wrong with gold, and the edits that lead from predicted to the query that gold should be."""
    corrected_case = replace(case, golds=(QueryOrAnswer(query=correction.query),))
    corrected_trial = replace(trial, gold_index=0, scores={})
    score = _score(case, trial, session.execute_cached(corrected_case.golds[0], case, is_derived=True), session)
    if score(trial.predicted) == 1.0:
        return Cause(edits=(replace(correction.edit, change=f"{correction.edit.change}{THEN_EQUAL}"),))
    further = _repaired(corrected_case, corrected_trial, correction.query, predicted_query, session)
    if isinstance(further, Cause):
        return Cause(edits=(correction.edit, *further.edits))
    return Cause(edits=(replace(correction.edit, change=f"{correction.edit.change}{STILL_DIFFERENT}"),))


def _causes(
    edits: QueryEdits,
    differences: Edits,
    case: Case,
    gold: Execution,
    score: Score,
    session: Session,
    *,
    most: int = MAX_EDITS,
) -> Iterator[Cause]:
    """Yield the combinations of at most so many edits after which the query has gold's answer wherever it is run.

    Edits after which the answer is the same on the source come before those that are there for the small databases, one
    more than `most` where edits are extended. Where small databases refute all combinations, the first of at most
    `most_untested` edits that is right on the source is yielded. It also comes before several edits of which one
    exchanges a whole query.
    """
    sufficient, extended = list[_Repaired](), deque[Sequence[int]]()
    untested: Cause | None = None
    is_telling, has_cause = differences.most_untested > 0, False
    limited_case = _limited(case, gold)

    def is_gold(repaired: _Repaired) -> bool | None:
        if edits.reach_gold(repaired.numbers):
            return True
        return _answers_as_gold(case, gold.query or "", repaired.query, session, differences)

    for repaired in _repairs(edits, limited_case, score, session, most, extended):
        numbers, is_tested = repaired.numbers, is_gold(repaired)
        if is_tested is False:
            sufficient.append(repaired)
            if untested is None and len(numbers) <= differences.most_untested and not _exchange_queries(edits, numbers):
                untested = Cause(edits=tuple(edits.edits[number] for number in numbers), repaired_query=repaired.query)
            if differences.is_extended and len(numbers) <= most < len(edits.edits):
                further_edits = (number for number in range(len(edits.edits)) if number not in numbers)
                extended += (sorted((*numbers, number)) for number in islice(further_edits, MAX_EXTENSIONS))
        elif untested is None or len(numbers) == 1 or not _exchange_queries(edits, numbers):
            if differences.is_extended:
                fewer = _with_fewer(edits, numbers, sufficient, limited_case, score, session)
                repaired = next((part for part in fewer if is_gold(part) is not False), repaired)
            causing_edits = _with_effect_first(edits, repaired, sufficient, case, is_telling=is_telling)
            has_cause = True
            yield Cause(edits=causing_edits, repaired_query=repaired.query, is_tested=bool(is_tested))
    if untested is not None and not has_cause:
        yield untested


def _exchange_queries(edits: QueryEdits, numbers: Iterable[int]) -> bool:
    return any(edits.edits[number].label in _OF_QUERIES for number in numbers)


def _with_effect_first(
    edits: QueryEdits, repaired: _Repaired, sufficient: Iterable[_Repaired], case: Case, *, is_telling: bool
) -> tuple[CausingEdit, ...]:
    """Return the edits of a cause, at the end, and marked, those without which the answer is the same on the source.

    A set operation has an effect, even if a short answer hides it.
    """
    numbers = needed = repaired.numbers
    for part in sufficient:
        labels = {edits.edits[number].label for number in numbers if number not in part.numbers}
        is_part = {*part.numbers} < {*numbers} and (is_telling or "set-operation" not in labels)
        # Gold's answer may be one of several that tie: what chooses another one of them has an effect.
        if is_part and _are_equal(part, repaired, case):
            needed = part.numbers
            break
    marked = [_without_effect(edits.edits[number]) for number in numbers if number not in needed]
    return (*(edits.edits[number] for number in needed), *marked)


def _are_equal(part: _Repaired, repaired: _Repaired, case: Case) -> bool:
    """Return whether two repaired queries have the same answer on the source."""
    if not isinstance(part.answer, Table) or not isinstance(repaired.answer, Table):
        return True
    return equal_tables(repaired.answer, part.answer, case.settings.policy)


def _with_fewer(
    edits: QueryEdits,
    numbers: Sequence[int],
    refuted: Iterable[_Repaired],
    case: Case,
    score: Score,
    session: Session,
) -> Iterator[_Repaired]:
    """Yield what is right on the source with one of these edits less, but for what was refuted."""
    for fewer in combinations(numbers, len(numbers) - 1) if len(numbers) > 1 else ():
        query = None if any({*part.numbers} == {*fewer} for part in refuted) else edits.applied(fewer)
        if query is not None:
            execution = session.execute_cached(QueryOrAnswer(query=query), case, is_derived=True)
            if execution.error is None and score(execution) == 1.0:
                yield _Repaired(fewer, query, execution.answer)


def _without_effect(edit: CausingEdit) -> CausingEdit:
    return replace(edit, change=f"{edit.change}{NO_EFFECT}")


def _repairs(
    edits: QueryEdits, case: Case, score: Score, session: Session, most: int, first: deque[Sequence[int]]
) -> Iterator[_Repaired]:
    """Yield the combinations of at most so many edits after which the query is right on the source.

    Combinations that the caller adds to `first` are tried before all others.
    """
    tried: set[str] = set()
    cells = 0
    for numbers in islice(_in_turn(edits, most, first), MAX_COMBINATIONS):
        query = edits.applied(numbers)
        if query is None or query in tried:
            continue
        if len(tried) == MAX_EXECUTIONS or cells > MAX_CELLS:
            break
        tried.add(query)
        execution = session.execute_cached(QueryOrAnswer(query=query), case, is_derived=True)
        cells += _cell_count(execution)
        if execution.error is not None:
            if execution.error.kind == "timeout":
                break
        elif score(execution) == 1.0:
            yield _Repaired(numbers, query, execution.answer)


def _in_turn(edits: QueryEdits, most: int, first: deque[Sequence[int]]) -> Iterator[Sequence[int]]:
    """Yield combinations of at most so many edits, and before the next one those that are in `first` by then."""
    for numbers in edits.combinations():
        if len(numbers) <= most:
            yield numbers
        while first:
            yield first.popleft()


def _answers_as_gold(case: Case, gold: str, repaired: str, session: Session, differences: Edits) -> bool | None:
    """Return whether a repaired query answers as gold on small databases, too; None if none can be made."""
    is_tested = None
    for name in COUNTEREXAMPLE_SEARCHES.available():
        with suppress(SourceError):
            if COUNTEREXAMPLE_SEARCHES[name].refute(case, gold, repaired, session, differences.databases):
                return False
            is_tested = True
    return is_tested


def _limited(case: Case, gold: Execution) -> Case:
    """Return the case with the limit of repaired queries, whose answers have as many rows as gold's."""
    if case.settings.policy.duplicates != "count" or (rows := _row_count(gold)) is None:
        return case
    return replace(case, settings=replace(case.settings, max_rows=min(case.settings.max_rows, rows + 1)))


def _score(case: Case, trial: Trial, gold: Execution, session: Session) -> Score:
    """Return what scores an execution in the place of the prediction's."""

    def score(execution: Execution) -> float | None:
        if case.settings.policy.duplicates == "count" and _row_count(execution) != _row_count(gold):
            return 0.0
        return Scoring(case, gold, execution, trial.prediction, session).value(DECIDING_METRIC)

    return score


def _cell_count(execution: Execution) -> int:
    return (_row_count(execution) or 0) * len(execution.answer.columns) if isinstance(execution.answer, Table) else 0


def _row_count(execution: Execution) -> int | None:
    return len(execution.answer.rows) if isinstance(execution.answer, Table) else None
