"""Builds variants of a source: small states of its database in which mutants answer otherwise than gold.

The search is random and counts candidates, not seconds, so that it finds the same variants on every machine.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import TypeAlias

from pytest_queryeval.core.errors import SourceError
from pytest_queryeval.core.model import Case, QueryOrAnswer, Source
from pytest_queryeval.core.mutant import Mutant
from pytest_queryeval.core.table import Row, Table
from pytest_queryeval.evaluation.session import Session
from pytest_queryeval.languages.sql.compared import compared_columns
from pytest_queryeval.languages.sql.scripts import can_insert, insert_rows, select_rows
from pytest_queryeval.languages.sql.table_definitions import read_tables
from pytest_queryeval.strength.case_strength import CaseStrength, is_right
from pytest_queryeval.strength.rows import RowGenerator, Rows, constraints_of, insertion_order, without_orphans

MAX_VARIANTS = 10
CANDIDATES = 40  # of a round: the one that kills most becomes a variant
VAIN_ROUNDS = 3  # in a row, after which the search ends
MAX_REDUCTIONS = 60  # attempts to leave rows of a variant out
SAMPLED_ROWS = 60  # of each table of the source

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
    Raise `SourceError` where the source cannot list its tables.
    """
    with TemporaryDirectory(prefix="queryeval-") as folder:
        search = _Search(strengths, session, Random(seed), Path(folder))  # noqa: S311 - no secret depends on it
        survivors = {(at, mutant) for at, one in enumerate(strengths) for mutant in one.survivors}
        left = set(survivors)
        built = in_vain = 0
        while left and built < MAX_VARIANTS and in_vain < VAIN_ROUNDS:
            rows, kills = search.best_candidate(left)
            in_vain = 0 if kills else in_vain + 1
            if not kills:
                continue
            rows = search.reduced(rows, kills)
            with Session() as trial:
                kills = search.kills(rows, survivors, trial)
            left -= kills
            built += 1
            yield Variant(
                script=search.script(rows),
                rows=rows,
                kills=tuple(
                    (strengths[at].case, mutant) for at, mutant in sorted(kills, key=lambda one: (one[0], one[1].query))
                ),
            )


class _Search:
    """Candidates for variants of one source, and which mutants they kill; scripts of candidates are in `folder`."""

    def __init__(self, strengths: Sequence[CaseStrength], session: Session, random: Random, folder: Path) -> None:
        case = strengths[0].case
        self._strengths = strengths
        self._engine = case.source.engine if case.source else ""
        self._dialect = case.dialect
        self._random = random
        self._folder = folder
        self._numbers = count()
        ddl = session.schema_text(case)
        self._tables = read_tables(ddl, case.dialect)
        statements = re.split(r"(?<=;)\n\n(?=CREATE )", ddl)
        by_table = {name: statement for statement in statements for name in read_tables(statement, case.dialect)}
        others = [statement for statement in statements if statement not in by_table.values()]
        self._ddl = "\n\n".join([*(by_table[name] for name in insertion_order(self._tables)), *others])
        self._constraints = constraints_of(self._tables)
        self._samples = {name: self._sampled(name, case, session) for name in self._tables}
        self._compared = [compared_columns(one.gold, case.dialect, self._tables) for one in strengths]

    def _sampled(self, table: str, case: Case, session: Session) -> Sequence[Row]:
        """Return some rows of a table of the source, none where it has other columns than its definition says."""
        query = QueryOrAnswer(query=select_rows(table, SAMPLED_ROWS, self._dialect))
        answer = session.execute_cached(query, replace(case, max_rows=SAMPLED_ROWS)).answer
        if not isinstance(answer, Table) or len(answer.columns) != len(self._tables[table].columns):
            return ()
        return [row for row in answer.rows if can_insert(row)]

    def script(self, rows: Rows) -> str:
        """Return the script that makes a database of these rows."""
        inserts = [insert_rows(name, of_table, self._dialect) for name, of_table in rows.items() if of_table]
        return "\n\n".join([self._ddl, *inserts]) + "\n"

    def best_candidate(self, left: Collection[Target]) -> tuple[Rows, set[Target]]:
        """Return the rows that kill most of the mutants that are left, of CANDIDATES ones in which every gold runs."""
        with Session() as session:
            compared = [self._compared[at] for at in sorted({at for at, _ in left})]
            generator = RowGenerator(
                self._tables, compared, self._samples, is_strict=self._strengths[0].case.dialect != "sqlite"
            )
            candidates = [generator.rows(self._random) for _ in range(CANDIDATES)]
            found = [(rows, self.kills(rows, left, session)) for rows in candidates]
            for rows, kills in sorted(found, key=lambda one: -len(one[1])):
                if kills and self._golds_run(rows, session):
                    return rows, kills
        return {}, set()

    def reduced(self, rows: Rows, kills: Collection[Target]) -> Rows:
        """Return fewer rows that kill the same mutants, found by leaving out ever smaller parts of the tables."""
        with Session() as session:
            attempts, parts = 0, 1
            while parts <= 2 * max(map(len, rows.values())):
                for name in rows:
                    size, at = max(1, len(rows[name]) // parts), 0
                    while at < len(rows[name]) and attempts < MAX_REDUCTIONS:
                        attempts += 1
                        fewer = without_orphans(
                            {**rows, name: rows[name][:at] + rows[name][at + size :]}, self._constraints
                        )
                        if self.kills(fewer, kills, session) == kills:
                            rows = fewer
                        else:
                            at += size
                parts *= 2
        return rows

    def kills(self, rows: Rows, mutants: Collection[Target], session: Session) -> set[Target]:
        """Return which of the mutants do not answer as gold in a database of these rows.

        None where a gold fails there, or the database refuses a row.
        """
        of_case: dict[int, list[Mutant]] = defaultdict(list)
        for at, mutant in mutants:
            of_case[at].append(mutant)
        source = self._source_of(rows)
        killed = set()
        with suppress(SourceError):
            for at, own in of_case.items():
                case = replace(self._strengths[at].case, source=source)
                golds = [session.execute(gold, case) for gold in case.golds]
                if any(gold.error is not None for gold in golds):
                    return set()
                for mutant in own:
                    answered = session.execute(QueryOrAnswer(query=mutant.query), case)
                    if not is_right(answered, golds, case, session):
                        killed.add((at, mutant))
        return killed

    def _golds_run(self, rows: Rows, session: Session) -> bool:
        source = self._source_of(rows)
        cases = [replace(one.case, source=source) for one in self._strengths]
        return all(session.execute(gold, case).error is None for case in cases for gold in case.golds)

    def _source_of(self, rows: Rows) -> Source:
        """Return a database of these rows as a source, a new one each time."""
        name = f"{next(self._numbers)}.sql"
        (self._folder / name).write_text(self.script(rows), encoding="utf-8")
        return Source(name=name, engine=self._engine, settings={"script": name}, folder=self._folder)
