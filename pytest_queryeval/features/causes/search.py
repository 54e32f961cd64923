"""Why a prediction is wrong: the fewest edits after which it answers as gold does, found by running it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from itertools import islice

from pytest_queryeval.comparison.budget import shared_budget
from pytest_queryeval.core.cause import MAX_EDITS, Cause, CausingEdit, QueryEdits, SharedPatterns
from pytest_queryeval.core.errors import SourceError
from pytest_queryeval.core.model import Case, CaseResult, Execution, QueryOrAnswer, Trial
from pytest_queryeval.core.table import Table
from pytest_queryeval.engines import ENGINES
from pytest_queryeval.evaluation.counterexamples import COUNTEREXAMPLE_SEARCHES
from pytest_queryeval.evaluation.scoring import Scoring
from pytest_queryeval.evaluation.session import Session
from pytest_queryeval.features.causes import EDITS
from pytest_queryeval.languages import KINDS
from pytest_queryeval.text.truncation import one_line

# For each case: counts, so that reports do not depend on the machine.
MAX_EXECUTIONS = 50
MAX_CELLS = 1_000_000  # of the answers of repaired queries together
MAX_COMBINATIONS = 500  # of edits, of which many may lead to the same query, or to none
CAUSE_SECONDS = 1.0  # for all queries of one cause together, unless `cause_mode` is full
MAX_DATABASES = 8  # small ones, on which a repaired query is compared with gold
DECIDING = "execution_accuracy"
MESSAGE_CHARACTERS = 200


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
    return replace(result, cause=cause)


def find_cause(result: CaseResult, session: Session) -> Cause | SharedPatterns | None:
    """Return why the shown trial is wrong; None where it is right, and where nothing is known.

    The cause of a failure, and of an answer that is no table, follows from it. That of a wrong answer is the first
    combination of edits after which the query, run on the same source under the same limits, has gold's answer; unless
    `cause_mode` is full, all queries run for CAUSE_SECONDS together. Terms that the source does not have are replaced
    first. Without such a combination it is the unknown terms of a query that finds nothing, else what the patterns of
    two SPARQL queries share. Raise `SourceError` where a recording is replayed that does not have the cause, and where
    it cannot be recorded.
    """
    case, trial = result.case, result.shown
    gold, predicted, kind = trial.gold, trial.predicted, KINDS[case.settings.kind]
    if session.cause_mode == "off":
        return None
    if predicted.error is not None:
        change = one_line(predicted.error.message, MESSAGE_CHARACTERS)
        return Cause(edits=(CausingEdit(label=kind.failure_label(predicted.error), clause="", change=change),))
    if gold.answer is None or predicted.answer is None:
        return None
    if not kind.has_queries:
        return kind.difference_cause(gold.answer, predicted.answer)
    if gold.query is None or predicted.query is None or case.settings.source is None:
        return None
    if case.settings.kind not in EDITS or trial.scores.get(DECIDING, 0.0) != 0.0:
        return None
    is_local = bool(ENGINES[case.settings.source.engine].fingerprint.files(case.settings.source))
    if not is_local and session.cause_mode == "auto":
        return None
    return _recorded(case, trial, gold.query, predicted.query, session)


def _recorded(
    case: Case, trial: Trial, gold_query: str, predicted_query: str, session: Session
) -> Cause | SharedPatterns | None:
    """Return the cause that the recording of the run has; else look for it, and record it."""
    recording = session.recording
    recorded_cause = None if recording is None else recording.load_cause(gold_query, predicted_query, case)
    if recorded_cause is not None:
        return recorded_cause[0]
    cause = None
    seconds = CAUSE_SECONDS if session.cause_mode == "auto" else None
    with shared_budget(), session.analysis(seconds), suppress(SourceError):
        cause = _repaired(case, trial, gold_query, predicted_query, session)
    if recording is not None:
        recording.save_cause(gold_query, predicted_query, case, cause)
    return cause


def _repaired(
    case: Case, trial: Trial, gold_query: str, predicted_query: str, session: Session
) -> Cause | SharedPatterns | None:
    gold = session.execute_cached(case.golds[trial.gold_index], case)
    if gold.answer is None:  # it is no longer cached, and takes longer than a cause may
        return None

    def score(execution: Execution) -> float | None:
        if case.settings.policy.duplicates == "count" and _row_count(execution) != _row_count(gold):
            return 0.0
        return Scoring(case, gold, execution, trial.prediction, session).value(DECIDING)

    if DECIDING not in trial.scores and score(trial.predicted) != 0.0:
        return None
    from pytest_queryeval.features.causes.sparql.unknown_terms import finds_nothing, unknown_term_edits

    kind, dialect = case.settings.kind, case.settings.dialect
    term_edits = unknown_term_edits(predicted_query, case, session)
    edits = EDITS[kind](predicted_query, gold_query, schema=session.schema(case), dialect=dialect)
    limited = _limited(case, gold)
    for candidates in filter(None, (term_edits, edits)):
        for numbers, query in _repairs(candidates, limited, session, lambda execution: score(execution) == 1.0):
            is_tested = candidates.reach_gold(numbers) or _answers_as_gold(case, gold_query, query, session)
            if is_tested is not False:
                causing = tuple(candidates.edits[number] for number in numbers)
                cause = Cause(edits=causing, repaired_query=query, is_tested=bool(is_tested))
                return cause if term_edits is None else term_edits.with_label(cause)
    if term_edits is not None and finds_nothing(trial.predicted.answer):
        return Cause(edits=tuple(term_edits.edits[:MAX_EDITS]))
    return None if edits is None else edits.shared_patterns()


def _repairs(
    edits: QueryEdits, case: Case, session: Session, is_right: Callable[[Execution], bool]
) -> Iterator[tuple[Sequence[int], str]]:
    """Yield the combinations of edits after which the query is right on the source, with the query."""
    tried: set[str] = set()
    cells = 0
    for numbers in islice(edits.combinations(), MAX_COMBINATIONS):
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
        elif is_right(execution):
            yield numbers, query


def _answers_as_gold(case: Case, gold: str, repaired: str, session: Session) -> bool | None:
    """Return whether a repaired query answers as gold on small databases, too; None where none can be made."""
    is_tested = None
    for name in COUNTEREXAMPLE_SEARCHES.available():
        with suppress(SourceError):
            if COUNTEREXAMPLE_SEARCHES[name](case, gold, repaired, session, candidates=MAX_DATABASES) is not None:
                return False
            is_tested = True
    return is_tested


def _limited(case: Case, gold: Execution) -> Case:
    """Return the case with the limit of repaired queries, whose answers have as many rows as gold's."""
    if case.settings.policy.duplicates != "count" or (rows := _row_count(gold)) is None:
        return case
    return replace(case, settings=replace(case.settings, max_rows=min(case.settings.max_rows, rows + 1)))


def _cell_count(execution: Execution) -> int:
    return (_row_count(execution) or 0) * len(execution.answer.columns) if isinstance(execution.answer, Table) else 0


def _row_count(execution: Execution) -> int | None:
    return len(execution.answer.rows) if isinstance(execution.answer, Table) else None
