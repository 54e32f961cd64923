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
from pytest_queryeval.core.mutant import Mutant
from pytest_queryeval.evaluation.session import Session
from pytest_queryeval.evaluation.strength.candidates import CandidateDatabases
from pytest_queryeval.evaluation.strength.case_strength import CaseStrength, is_right
from pytest_queryeval.evaluation.strength.rows import Rows

MAX_VARIANTS = 10
CANDIDATES = 40  # of a round: the one that kills most becomes a variant
VAIN_ROUNDS = 3  # in a row, after which the search ends
MAX_REDUCTIONS = 60  # attempts to leave rows of a variant out

Target: TypeAlias = tuple[int, Mutant]  # behind the number of the case whose gold it is a mutant of


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """A state of a database: the script that makes it, and the mutants that it kills, each behind its case."""

    script: str
    rows: Rows
    kills: tuple[tuple[Case, Mutant], ...]


def build_variants(strengths: Sequence[CaseStrength], session: Session, *, seed: int = 0) -> Iterator[Variant]:
    """Yield variants of the source that these cases share, until their survivors are killed or nothing more is found.

    At most MAX_VARIANTS, each with at most MAX_ROWS rows a table, in which all golds run and all declared keys hold.
    Raise `SourceError` where the source cannot list its tables, and where no small database with them can be built.
    """
    databases = CandidateDatabases(strengths[0].case, session)
    search = _Search(strengths, databases, session, Random(seed))  # noqa: S311 - no secret depends on it
    survivors = {(at, mutant) for at, one in enumerate(strengths) for mutant in one.survivors}
    left = set(survivors)
    built = in_vain = 0
    while left and built < MAX_VARIANTS and in_vain < VAIN_ROUNDS:
        rows, kills = search.best_candidate(left)
        in_vain = 0 if kills else in_vain + 1
        if not kills:
            continue
        rows = search.reduced(rows, kills)
        kills = search.kills(rows, survivors)
        left -= kills
        built += 1
        yield Variant(
            script=databases.script(rows),
            rows=rows,
            kills=tuple(
                (strengths[at].case, mutant) for at, mutant in sorted(kills, key=lambda one: (one[0], one[1].query))
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
        self._compared = [databases.compared(one.gold) for one in strengths]

    def best_candidate(self, left: Collection[Target]) -> tuple[Rows, set[Target]]:
        """Return the rows that kill most of the mutants that are left, of CANDIDATES ones in which every gold runs."""
        generator = self._databases.generator([self._compared[at] for at in sorted({at for at, _ in left})])
        candidates = [generator.rows(self._random) for _ in range(CANDIDATES)]
        found = [(rows, self.kills(rows, left)) for rows in candidates]
        for rows, kills in sorted(found, key=lambda one: -len(one[1])):
            if not kills:
                break
            source = self._databases.source_of(rows)
            cases = [replace(one.case, settings=replace(one.case.settings, source=source)) for one in self._strengths]
            if all(self._session.execute(gold, case).error is None for case in cases for gold in case.golds):
                return rows, kills
        return {}, set()

    def reduced(self, rows: Rows, kills: Collection[Target]) -> Rows:
        """Return fewer rows that kill the same mutants."""
        return self._databases.reduced(rows, lambda fewer: bool(self.kills(fewer, kills, all_of=True)), MAX_REDUCTIONS)

    def kills(self, rows: Rows, mutants: Collection[Target], *, all_of: bool = False) -> set[Target]:
        """Return which of the mutants do not answer as gold in a database of these rows.

        It is empty where a gold fails there, the database refuses a row, or with `all_of` one of them is not killed.
        """
        of_case: dict[int, list[Mutant]] = defaultdict(list)
        for at, mutant in mutants:
            of_case[at].append(mutant)
        killed = set()
        for at, own in of_case.items():
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
            for mutant in own:
                answered = self._session.execute(QueryOrAnswer(query=mutant.query), case, is_derived=True)
                if not is_right(answered, golds, case, self._session):
                    killed.add((at, mutant))
                elif all_of:
                    return set()
        return killed
