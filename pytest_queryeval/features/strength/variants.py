"""Builds variants of a source: small data sets on which mutants and gold have different answers.

For tables, states in which many mutants differ are searched for; for graphs, small ones that differ for one case are
put together. The search is random and limited by the number of candidates, not by time, so that it finds the same
variants on every machine.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from random import Random
from typing import Any, TypeAlias

from pytest_queryeval.core.errors import SourceError
from pytest_queryeval.core.model import Case, Execution, QueryOrAnswer, Source
from pytest_queryeval.core.table import Table
from pytest_queryeval.evaluation.session import Session
from pytest_queryeval.features.strength import Mutant
from pytest_queryeval.features.strength.case_strength import MAX_TIMEOUTS, CaseStrength, is_right
from pytest_queryeval.features.strength.small_databases import Joinable, SmallDatabases, small_databases

MAX_VARIANTS = 10
CANDIDATES = 40  # in a round; the one that kills most mutants becomes a variant
CASE_CANDIDATES = 100  # of a case, where states are put together
VAIN_ROUNDS = 3  # consecutive rounds without a kill after which the search ends
MAX_REDUCTIONS = 60  # attempts to remove rows from a variant
SECONDS = 5.0  # for a query on a small database

Target: TypeAlias = tuple[int, Mutant]  # the index of a case, and a mutant of its gold


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """A state of a database."""

    script: str
    """The SQL script that creates it."""
    tables: Mapping[str, Table]
    """What it holds: its tables by name, or its triples by the name of their graph."""
    kills: tuple[tuple[Case, Mutant], ...]
    """The mutants whose answers differ from gold's there, with their cases."""


def build_variants(strengths: Sequence[CaseStrength], session: Session, *, seed: int = 0) -> Iterator[Variant]:
    """Yield variants of the source that these cases share, until all survivors are killed or the search gives up.

    At most MAX_VARIANTS, each with at most MAX_ROWS rows a table or MAX_TRIPLES, in which all golds run and all
    declared constraints hold. Raise `SourceError` if the source cannot list its tables, and if no small database
    with them can be built.
    """
    databases = small_databases(strengths[0].case, session)
    search = _Search(strengths, databases, session, Random(seed))  # noqa: S311 - no secret depends on it
    survivors = {(at, mutant) for at, strength in enumerate(strengths) for mutant in strength.survivors}
    states = search.joined_states if isinstance(databases, Joinable) else search.best_states
    for state in islice(states(survivors), MAX_VARIANTS):
        yield Variant(
            script=databases.script(state),
            tables=databases.contents(state),
            kills=tuple(
                (strengths[at].case, mutant) for at, mutant in sorted(search.kills(state, survivors), key=_place_of)
            ),
        )
    if search.refusals and not search.is_buildable:
        raise SourceError(f"no small database with these tables can be built: {search.refusals[0]}")


def _timed_out(execution: Execution) -> bool:
    return execution.error is not None and execution.error.kind == "timeout"


def _place_of(target: Target) -> tuple[int, str]:
    return target[0], target[1].query


class _Search:
    """Which mutants of golds on one source the candidates for its variants kill."""

    def __init__(
        self, strengths: Sequence[CaseStrength], databases: SmallDatabases[Any], session: Session, random: Random
    ) -> None:
        self._strengths = strengths
        self._databases = databases
        self._session = session
        self._random = random
        self.refusals: list[str] = []
        self.is_buildable = False
        self._timeouts: Counter[int] = Counter()  # of each case

    def best_states(self, survivors: Collection[Target]) -> Iterator[Any]:
        """Yield states that each kill many survivors, until VAIN_ROUNDS kill none."""
        unkilled = set(survivors)
        vain_rounds = 0
        while unkilled and vain_rounds < VAIN_ROUNDS:
            state, kills = self._best_candidate(unkilled)
            vain_rounds = 0 if kills else vain_rounds + 1
            if kills:
                state = self._reduced(state, kills)
                unkilled -= self.kills(state, survivors)
                yield state

    def _best_candidate(self, targets: Collection[Target]) -> tuple[Any, set[Target]]:
        """Return, of CANDIDATES states, the one that kills most targets while every gold runs, and its kills."""
        golds = [self._strengths[at].gold for at in sorted({at for at, _ in targets})]
        candidates = self._databases.candidates(golds, self._random, CANDIDATES, plain_first=False)
        kills_of_candidates = [(state, self.kills(state, targets)) for state in candidates]
        for state, kills in sorted(kills_of_candidates, key=lambda candidate: -len(candidate[1])):
            if not kills:
                break
            if self._golds_run(state):
                return state, kills
        return None, set()

    def joined_states(self, survivors: Collection[Target]) -> Iterator[Any]:
        """Yield states that are put together from small ones, as many in each as it can hold."""
        assert isinstance(self._databases, Joinable)
        states = [state for at in sorted({at for at, _ in survivors}) for state in self._states_of(at, survivors)]
        states.sort(key=lambda state: -len(state[1]))
        while states:
            (joined, targets), *further_states = states
            parts, states = [joined], []
            for state, kills in further_states:
                union = self._databases.joined(joined, state)
                if union is not None and self.kills(union, targets | kills, all_of=True):
                    joined, targets = union, targets | kills
                    parts.append(state)
                else:
                    states.append((state, kills))
            yield from [joined] if self._golds_run(joined) else filter(self._golds_run, parts)

    def _states_of(self, at: int, survivors: Collection[Target]) -> Iterator[tuple[Any, set[Target]]]:
        """Yield small states with the mutants of one case that they kill, each mutant once."""
        unkilled = {target for target in survivors if target[0] == at}
        queries = [self._strengths[at].gold, *sorted(mutant.query for _, mutant in unkilled)]
        for candidate in self._databases.candidates(queries, self._random, CASE_CANDIDATES, plain_first=True):
            if kills := self.kills(candidate, unkilled):
                yield self._reduced(candidate, kills), kills
                unkilled -= kills
            if not unkilled or self._timeouts[at] >= MAX_TIMEOUTS:
                break

    def _golds_run(self, state: Any) -> bool:
        """Return whether the golds of all cases run on a state."""
        source = self._built(state)
        cases = (self._case_on(source, at) for at in range(len(self._strengths)))
        return all(self._session.execute(gold, case).error is None for case in cases for gold in case.golds)

    def _built(self, state: Any) -> Source:
        """Return a database with this state, open until the next call."""
        source = self._strengths[0].case.settings.source
        assert source is not None  # or it would have no states
        return self._session.build(source, *self._databases.database(state))

    def _case_on(self, source: Source, at: int) -> Case:
        """Return a case with another source, on which no query may take long."""
        settings = self._strengths[at].case.settings
        settings = replace(settings, source=source, timeout=min(settings.timeout, SECONDS))
        return replace(self._strengths[at].case, settings=settings)

    def _reduced(self, state: Any, kills: Collection[Target]) -> Any:
        """Return a smaller state that kills the same mutants."""
        return self._databases.reduced(state, lambda fewer: bool(self.kills(fewer, kills, all_of=True)), MAX_REDUCTIONS)

    def kills(self, state: Any, mutants: Collection[Target], *, all_of: bool = False) -> set[Target]:
        """Return which of the mutants do not answer as gold in a database with this state.

        It is empty if a gold fails there, if the database refuses a row, or, with `all_of`, if any mutant survives. A
        mutant that takes too long survives; a case with MAX_TIMEOUTS such queries is not tried again.
        """
        mutants_by_case: dict[int, list[Mutant]] = defaultdict(list)
        for at, mutant in mutants:
            mutants_by_case[at].append(mutant)
        killed = set()
        for at, case_mutants in mutants_by_case.items():
            try:
                case = self._case_on(self._built(state), at)
                golds = [self._session.execute(gold, case) for gold in case.golds]
            except SourceError as error:
                self.refusals.append(str(error))
                return set()
            self.is_buildable = True
            self._timeouts[at] += sum(map(_timed_out, golds))
            if any(gold.error is not None for gold in golds):
                return set()
            for mutant in case_mutants if self._timeouts[at] < MAX_TIMEOUTS else ():
                execution = self._session.execute(QueryOrAnswer(query=mutant.query), case, is_derived=True)
                self._timeouts[at] += _timed_out(execution)
                if not _timed_out(execution) and not is_right(execution, golds, case, self._session):
                    killed.add((at, mutant))
                elif all_of:
                    return set()
        return killed
