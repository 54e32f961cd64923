"""Opens the small databases of a kind, and searches for one on which two queries differ that agree on the source.

The search is random and counts candidates, not seconds, so it finds the same database on every machine.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, islice, tee
from random import Random
from typing import Any, NamedTuple, TypeAlias

from pytest_queryeval.core.errors import SourceError
from pytest_queryeval.core.model import Case, Counterexample, Execution, Prediction
from pytest_queryeval.core.table import Table
from pytest_queryeval.engines import ENGINES
from pytest_queryeval.evaluation.scoring import Scoring
from pytest_queryeval.evaluation.session import Session
from pytest_queryeval.features.strength import SMALL_DATABASES, Constraints, SmallDatabases

Pair: TypeAlias = tuple[Execution, Execution]
SEED = 0
MAX_DATABASES = 120  # that a search tries, attempts to leave rows out of one included
SECONDS = 5.0  # for a query on a small database, and for both queries on those that are tried at once
FIRST_BATCH = 2  # small databases that are tried before all others: they tell most queries apart


class SearchResult(NamedTuple):
    """The result of a search for a counterexample."""

    counterexample: Counterexample | None
    """A counterexample that satisfies all that the source's data satisfy; None if no such database was found."""
    ruled_out: Counterexample | None
    """A counterexample that violates what the data satisfy, such as by a NULL; only if `counterexample` is None."""
    tried: int
    """The number of databases on which both queries ran, without attempts to reduce a counterexample."""


def small_databases(case: Case, session: Session, read_by: Sequence[str] = ()) -> SmallDatabases[Any]:
    """Return small databases for the source of a case; with `read_by`, with the content that these queries read.

    Raise `SourceError` if the engine cannot build databases, as for services, or if the kind has no small databases.
    """
    if case.settings.source is None or ENGINES[case.settings.source.engine].build is None:
        raise SourceError("no small database can be built: the source is a service")
    if case.settings.kind not in SMALL_DATABASES:
        raise SourceError(f"no small database can be built for the kind '{case.settings.kind}'")
    return SMALL_DATABASES[case.settings.kind](case, session, read_by)


def find_counterexample(case: Case, gold: str, predicted: str, session: Session) -> SearchResult:
    """Search for a small database on which two queries have different answers under the policy of the case.

    The variants of the source are tried first. On a counterexample, both queries run, all declared constraints hold,
    and the answers differ in all tried orders of rows. The search goes on until a counterexample satisfies all that the
    data of the source satisfy; the first that does not is returned as `ruled_out`. A search without a counterexample
    does not prove that the queries are equivalent. Raise `SourceError` if the source cannot list its tables, if no
    small database with these tables can be built, or if a query times out on a small database.
    """
    random = Random(SEED)  # noqa: S311 - no secret depends on it
    databases = small_databases(case, session, (gold, predicted))
    trials = _PairRunner(case, gold, predicted, session, databases)

    def answers(state: Any) -> Pair | None:
        """Return both answers on a state if they differ, also if its rows are reversed; else None."""
        pair = trials.difference(state)
        if pair is None or ((reverse := databases.reversed(state)) != state and trials.difference(reverse) is None):
            return None
        return pair

    assert case.settings.source is not None  # or there would be no small databases
    variants = map(databases.state_of, session.variants(case.settings.source))
    candidates = databases.candidates((gold, predicted), random, MAX_DATABASES, plain_first=True)
    tried, ruled_out = 0, None
    for state in chain(filter(None, variants), candidates):
        satisfies_data = databases.satisfies_data(state)
        if ruled_out is not None and not satisfies_data:
            continue
        ran_before = trials.ran
        pair = answers(state)
        tried += trials.ran > ran_before
        if pair is None:
            continue

        def is_enough(fewer: Any, satisfies_data: bool = satisfies_data) -> bool:
            return (databases.satisfies_data(fewer) or not satisfies_data) and answers(fewer) is not None

        state = databases.reduced(state, is_enough, MAX_DATABASES)
        has_lucky_order = any(answers(order) is None for order in databases.reordered(state, random))
        pair = None if has_lucky_order else answers(state)
        if pair is not None:
            counterexample = Counterexample(
                script=databases.script(state),
                tables=databases.contents(state),
                gold=pair[0],
                predicted=pair[1],
            )
            if databases.satisfies_data(state):
                return SearchResult(counterexample, None, tried)
            ruled_out = ruled_out or counterexample
    trials.require_a_database()
    return SearchResult(None, ruled_out, tried)


def is_refuted(
    case: Case, gold: str, predicted: str, session: Session, count: int, refuting: list[tuple[SmallDatabases[Any], Any]]
) -> bool:
    """Return whether two queries have different answers on one of at most `count` small databases.

    `refuting` contains states, with their databases, that refuted similar queries; they are tried first. If another
    state refutes this query, that state is appended to `refuting`. Raise `SourceError` as `find_counterexample` does,
    unless `count` is 0.
    """
    if any(_PairRunner(case, gold, predicted, session, of).difference(state) for of, state in refuting):
        return True
    if count == 0:
        return False
    databases = small_databases(case, session, (gold, predicted))
    trials = _PairRunner(case, gold, predicted, session, databases)
    random = Random(SEED)  # noqa: S311 - no secret depends on it
    candidates = databases.candidates((gold, predicted), random, count, plain_first=False)
    for size in (FIRST_BATCH, count):
        batch = [*islice(candidates, size)]
        differing = (state for state, pair in zip(batch, trials.differences(batch), strict=False) if pair)
        if (state := next(differing, None)) is not None:
            refuting.append((databases, state))
            return True
    trials.require_a_database()
    return False


def constraints(case: Case, gold: str, predicted: str, session: Session) -> Constraints:
    """Return the constraints of small databases for two queries.

    The text of the result also identifies the variants of the source, which are tried before small databases.
    """
    databases = small_databases(case, session, (gold, predicted))
    assert case.settings.source is not None  # or there would be no small databases
    variants = [session.source_state(variant) for variant in session.variants(case.settings.source)]
    return databases.constraints._replace(text=f"{variants} {databases.constraints.text}")


def case_on(case: Case, databases: SmallDatabases[Any], state: Any, session: Session) -> Case:
    """Build a database with a state, and return the case with this database as its source.

    The database is open until the session builds the next one. Queries on it time out after SECONDS at most.
    """
    settings = case.settings
    assert settings.source is not None  # or there would be no small databases
    source = session.build(settings.source, *databases.database(state))
    return replace(case, settings=replace(settings, source=source, timeout=min(settings.timeout, SECONDS)))


class _PairRunner:
    """Runs gold and predicted query on small databases, and compares their answers under the policy of the case."""

    def __init__(self, case: Case, gold: str, predicted: str, session: Session, databases: SmallDatabases[Any]) -> None:
        self._databases = databases
        self._case = replace(case, settings=replace(case.settings, timeout=min(case.settings.timeout, SECONDS)))
        self._queries = gold, predicted
        self._prediction = Prediction(predicted, predictor="counterexample")
        self._session = session
        self._refusal = ""
        self._has_built_rows = False
        self._ran_on_rows = False  # whether both queries did
        self.ran = 0  # in how many databases both queries did

    def difference(self, state: Any) -> Pair | None:
        """Return both answers on this state; None unless both queries run and differ."""
        return next(self.differences([state]), None)

    def differences(self, states: Iterable[Any]) -> Iterator[Pair | None]:
        """Yield for each state the answers of both queries; None unless both queries run and differ.

        Queries differ if execution_accuracy is below 1. A state whose database cannot be built also yields None. Raise
        `SourceError` if a query times out, as it would on the next states.
        """
        states, compared_states = tee(states)
        databases = map(self._databases.database, compared_states)
        for state, pair in zip(states, self._session.compare(self._queries, databases, self._case), strict=False):
            if isinstance(pair, SourceError):
                self._refusal = self._refusal or str(pair)
                yield None
                continue
            has_or_had_rows = self._ran_on_rows or bool(self._databases.contents(state))
            self._has_built_rows = self._has_built_rows or has_or_had_rows
            for execution in pair or ():
                if execution.error is not None and execution.error.kind == "timeout":
                    raise SourceError(f"a query does not end in a small database: {execution.error.message}")
            if pair is not None and not all(isinstance(execution.answer, Table) for execution in pair):
                yield None
                continue
            self.ran += 1
            self._ran_on_rows = self._ran_on_rows or has_or_had_rows
            if pair is not None:  # right by the policy of the case, perhaps, which may run gold again for its order
                case = case_on(self._case, self._databases, state, self._session)
                scoring = Scoring(case, *pair, self._prediction, self._session)
                pair = None if scoring.value("execution_accuracy") == 1.0 else pair
            yield pair

    def require_a_database(self) -> None:
        """Raise `SourceError` if no database with rows was built, or if the queries ran on empty databases only."""
        if self._refusal and not self._has_built_rows:
            raise SourceError(f"no small database with these tables can be built: {self._refusal}")
        if self.ran and self._has_built_rows and not self._ran_on_rows:
            raise SourceError("the queries run in no small database but an empty one")
        if not self._has_built_rows and self._databases.constraints.tables:
            raise SourceError("no rows are known that keep the constraints of these tables")
