"""Builds variants of a source: small states of its database in which mutants answer otherwise than gold.

The search is random and counts candidates, not seconds, so that it finds the same variants on every machine.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import TypeAlias

from pytest_queryeval.core.errors import SourceError
from pytest_queryeval.core.model import Case, QueryOrAnswer
from pytest_queryeval.evaluation.session import Session
from pytest_queryeval.features.strength.case_strength import CaseStrength, is_right
from pytest_queryeval.features.strength.mutant import Mutant
from pytest_queryeval.features.strength.sql.candidates import CandidateDatabases
from pytest_queryeval.features.strength.sql.rows import Rows

MAX_VARIANTS = 10
CANDIDATES = 40  # in a round; the one that kills most mutants becomes a variant
VAIN_ROUNDS = 3  # consecutive rounds without a kill, after which the search ends
MAX_REDUCTIONS = 60  # attempts to remove rows from a variant

Target: TypeAlias = tuple[int, Mutant]  # the index of a case, and a mutant of its gold


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """A state of a database."""

    script: str
    """The SQL script that creates it."""
    rows: Rows
    kills: tuple[tuple[Case, Mutant], ...]
    """The mutants whose answers differ from gold's there, with their cases."""


def build_variants(strengths: Sequence[CaseStrength], session: Session, *, seed: int = 0) -> Iterator[Variant]:
    """Yield variants of the source that these cases share, until all survivors are killed or the search gives up.

    At most MAX_VARIANTS, each with at most MAX_ROWS rows a table, in which all golds run and all declared keys hold.
    Raise `SourceError` where the source cannot list its tables, and where no small database with them can be built.
    """
    databases = CandidateDatabases(strengths[0].case, session)
    search = _Search(strengths, databases, session, Random(seed))  # noqa: S311 - no secret depends on it
    survivors = {(at, mutant) for at, strength in enumerate(strengths) for mutant in strength.survivors}
    unkilled = set(survivors)
    variant_count = vain_rounds = 0
    while unkilled and variant_count < MAX_VARIANTS and vain_rounds < VAIN_ROUNDS:
        rows, kills = search.best_candidate(unkilled)
        vain_rounds = 0 if kills else vain_rounds + 1
        if not kills:
            continue
        rows = search.reduced(rows, kills)
        kills = search.kills(rows, survivors)
        unkilled -= kills
        variant_count += 1
        yield Variant(
            script=databases.script(rows),
            rows=rows,
            kills=tuple(
                (strengths[at].case, mutant)
                for at, mutant in sorted(kills, key=lambda target: (target[0], target[1].query))
            ),
        )
    if search.refusals and not search.is_buildable:
        raise SourceError(f"no small database with these tables can be built: {search.refusals[0]}")


class _Search:
    """Which mutants of golds on one source the candidates for its variants kill."""

    def __init__(
        self, strengths: Sequence[CaseStrength], databases: CandidateDatabases, session: Session, random: Random
    ) -> None:
        self._strengths = strengths
        self._databases = databases
        self._session = session
        self._random = random
        self.refusals: list[str] = []
        self.is_buildable = False
        self._compared = [databases.compared(strength.gold) for strength in strengths]

    def best_candidate(self, targets: Collection[Target]) -> tuple[Rows, set[Target]]:
        """Return, of CANDIDATES sets of rows, the one that kills most targets while every gold runs, and its kills."""
        generator = self._databases.generator([self._compared[at] for at in sorted({at for at, _ in targets})])
        candidates = [generator.rows(self._random) for _ in range(CANDIDATES)]
        kills_of_candidates = [(rows, self.kills(rows, targets)) for rows in candidates]
        for rows, kills in sorted(kills_of_candidates, key=lambda candidate: -len(candidate[1])):
            if not kills:
                break
            source = self._databases.source_of(rows)
            cases = [
                replace(strength.case, settings=replace(strength.case.settings, source=source))
                for strength in self._strengths
            ]
            if all(self._session.execute(gold, case).error is None for case in cases for gold in case.golds):
                return rows, kills
        return {}, set()

    def reduced(self, rows: Rows, kills: Collection[Target]) -> Rows:
        """Return fewer rows that kill the same mutants."""
        return self._databases.reduced(rows, lambda fewer: bool(self.kills(fewer, kills, all_of=True)), MAX_REDUCTIONS)

    def kills(self, rows: Rows, mutants: Collection[Target], *, all_of: bool = False) -> set[Target]:
        """Return which of the mutants do not answer as gold in a database of these rows.

        It is empty if a gold fails there, if the database refuses a row, or, with `all_of`, if any mutant survives.
        """
        mutants_by_case: dict[int, list[Mutant]] = defaultdict(list)
        for at, mutant in mutants:
            mutants_by_case[at].append(mutant)
        killed = set()
        for at, case_mutants in mutants_by_case.items():
            try:
                case = self._strengths[at].case
                case = replace(case, settings=replace(case.settings, source=self._databases.source_of(rows)))
                golds = [self._session.execute(gold, case) for gold in case.golds]
            except SourceError as error:
                self.refusals.append(str(error))
                return set()
            self.is_buildable = True
            if any(gold.error is not None for gold in golds):
                return set()
            for mutant in case_mutants:
                execution = self._session.execute(QueryOrAnswer(query=mutant.query), case, is_derived=True)
                if not is_right(execution, golds, case, self._session):
                    killed.add((at, mutant))
                elif all_of:
                    return set()
        return killed
