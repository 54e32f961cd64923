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
    """What a search came to."""

    counterexample: Counterexample | None
    """One that satisfies what the data of the source does; None if no such database shows a difference."""
    ruled_out: Counterexample | None
    """One that violates it, such as by a NULL where the data has none; None if there is another, or none at all."""
    tried: int
    """In how many databases both queries ran, without those that only make a counterexample smaller."""


def small_databases(case: Case, session: Session, read_by: Sequence[str] = ()) -> SmallDatabases[Any]:
    """Return small databases for the source of a case; raise `SourceError` for a service, and for other kinds."""
    if case.settings.source is None or ENGINES[case.settings.source.engine].build is None:
        raise SourceError("no small database can be built: the source is a service")
    if case.settings.kind not in SMALL_DATABASES:
        raise SourceError(f"no small database can be built for the kind '{case.settings.kind}'")
    return SMALL_DATABASES[case.settings.kind](case, session, read_by)


def find_counterexample(case: Case, gold: str, predicted: str, session: Session) -> SearchResult:
    """Look for a small database on which two queries differ by the policy of the case.

    The variants of the source are tried first. Both queries run in a counterexample, all declared keys hold, and the
    answers differ in whatever order rows are inserted. One that satisfies what the data of the source does is looked
    for until all are tried. That there is none does not prove that the queries are equivalent. Raise `SourceError` if
    the source cannot list its tables, where no small database with them can be built, and if a query does not end in
    one.
    """
    random = Random(SEED)  # noqa: S311 - no secret depends on it
    databases = small_databases(case, session, (gold, predicted))
    trials = _PairRunner(case, gold, predicted, session, databases)

    def answers(state: Any) -> Pair | None:
        """Return both answers in a database with this state if they differ in this order and in reverse."""
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
    """Return whether two queries differ by the policy of the case on one of at most `count` small databases.

    `refuting` are those, with their states, on which queries like this one differed from gold: they are tried first. If
    another one refutes this query, it is added. Raise `SourceError` as `find_counterexample` does.
    """
    if any(_PairRunner(case, gold, predicted, session, of).difference(state) for of, state in refuting):
        return True
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
    """Return what small databases for two queries keep; its text has the variants that are tried before them, too."""
    databases = small_databases(case, session, (gold, predicted))
    assert case.settings.source is not None  # or there would be no small databases
    variants = [session.source_state(variant) for variant in session.variants(case.settings.source)]
    return databases.constraints._replace(text=f"{variants} {databases.constraints.text}")


def case_on(case: Case, databases: SmallDatabases[Any], state: Any, session: Session) -> Case:
    """Return a case on a database with a state, open until the next one is built, on which no query may take long."""
    settings = case.settings
    assert settings.source is not None  # or there would be no small databases
    source = session.build(settings.source, *databases.database(state))
    return replace(case, settings=replace(settings, source=source, timeout=min(settings.timeout, SECONDS)))


class _PairRunner:
    """Two queries, run on one small database after the other."""

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
        """Return what `differences` yields for this state."""
        return next(self.differences([state]), None)

    def differences(self, states: Iterable[Any]) -> Iterator[Pair | None]:
        """Yield the answers of both queries in a database with each state; None unless both run and differ.

        Raise `SourceError` if one timed out, as it would in the next databases.
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
        """Raise `SourceError` if no database with rows could be built, or the queries run in an empty one alone."""
        if self._refusal and not self._has_built_rows:
            raise SourceError(f"no small database with these tables can be built: {self._refusal}")
        if self.ran and self._has_built_rows and not self._ran_on_rows:
            raise SourceError("the queries run in no small database but an empty one")
        if not self._has_built_rows and self._databases.constraints.tables:
            raise SourceError("no rows are known that keep the constraints of these tables")
