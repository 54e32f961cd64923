"""Builds variants of sources: small databases or graphs in which mutants of golds have other answers.

For SQLite and DuckDB, each variant is a script with at most 50 rows a table; for RDF files, it has at most 50 triples.
A suite that names them as `variants` of its source is scored by `test_suite_accuracy`, too. No predictor is called.

For tables, states in which many mutants differ are searched for; for graphs, small ones that differ for one case are
put together. The search is random and limited by the number of candidates, not by time, so that it finds the same
variants on every machine.
"""

from __future__ import annotations

import argparse
import os
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any, TypeAlias

from pytest_queryeval.cli.output import Result, notifier, wrap_write_errors
from pytest_queryeval.core.errors import QueryEvalError, SourceError
from pytest_queryeval.core.files import write_atomically
from pytest_queryeval.core.json_value import JsonValue
from pytest_queryeval.core.mappings import grouped
from pytest_queryeval.core.model import Case, QueryOrAnswer, Source
from pytest_queryeval.core.table import Table
from pytest_queryeval.engines import ENGINES
from pytest_queryeval.engines.settings import VARIANTS
from pytest_queryeval.evaluation.session import Session
from pytest_queryeval.features.strength import Joinable, Mutant, SmallDatabases
from pytest_queryeval.features.strength.case_strength import (
    MAX_TIMEOUTS,
    CaseStrength,
    is_right,
    measure_cases,
    timed_out,
)
from pytest_queryeval.features.strength.counterexample import case_on, small_databases
from pytest_queryeval.runs.option_table import whole_number
from pytest_queryeval.text.formatting import one_line, pluralize

EXAMPLE = "queryeval strengthen suites -o suites/variants"
OK, FOUND = 0, 1
CHANGE_CHARACTERS = 100
HEAD = "A variant of "  # in the first line of each file, a comment
COMMENTS = {".sql": "--", ".ttl": "#", ".trig": "#"}  # what begins one, by the suffix of files
MAX_VARIANTS = 10
CANDIDATES = 40  # in a round; the one that kills most mutants becomes a variant
CASE_CANDIDATES = 100  # of a case, where states are put together
VAIN_ROUNDS = 3  # consecutive rounds without a kill after which the search ends
MAX_REDUCTIONS = 60  # attempts to remove rows from a variant
_tell = notifier("strengthen")

Target: TypeAlias = tuple[int, Mutant]  # the index of a case, and a mutant of its gold


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """A small database on which some mutants of golds have other answers than gold."""

    script: str
    """The SQL script that creates it."""
    tables: Mapping[str, Table]
    """The content of the database: its tables by name, or its triples by the name of their graph."""
    kills: tuple[tuple[Case, Mutant], ...]
    """The mutants whose answers differ from gold's on this database, with their cases."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Strengthened:
    """A source with the strength of its cases, and the variants that were built for it."""

    source: Source
    strengths: Sequence[CaseStrength]
    variants: dict[Path, Variant]
    """The variants by the path of the file that contains the variant."""
    pattern: str
    """A glob of these files, relative to the folder of the source."""

    @property
    def survivor_count(self) -> int:
        """The number of mutants that give gold's answer on the source."""
        return sum(len(strength.survivors) for strength in self.strengths)

    @property
    def killed_count(self) -> int:
        """The number of these mutants that have another answer on at least one variant."""
        return len({(id(case), mutant) for variant in self.variants.values() for case, mutant in variant.kills})

    @property
    def data(self) -> dict[str, JsonValue]:
        """The source with its variants, and the mutants that each variant kills, for `--json`."""
        unit = ENGINES[self.source.engine].variants.unit
        files: list[JsonValue] = [
            {
                "file": file.as_posix(),
                f"{unit}s": sum(len(table.rows) for table in variant.tables.values()),
                "kills": [
                    {"case": case.id, "query": mutant.query, "change": mutant.change} for case, mutant in variant.kills
                ],
            }
            for file, variant in self.variants.items()
        ]
        return {
            "source": self.source.name,
            "variants": self.pattern,
            "survivors": self.survivor_count,
            "killed": self.killed_count,
            "files": files,
        }


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments PATH, `--output`, `--force` and `--seed`."""
    parser.add_argument("path", type=Path, metavar="PATH", help="a suite file, or a folder with suites")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="DIR", help="the folder of the variants")
    parser.add_argument("--force", action="store_true", help="replace the variants of an earlier call")
    parser.add_argument(
        "--seed", type=whole_number, default=0, metavar="N", help="a different seed finds other variants; 0"
    )


def run(arguments: argparse.Namespace) -> Result:
    """Build variants of each source on which mutants survive, and write them to the folder `--output`.

    The exit status is 1 if a gold does not run or a source cannot be used, else 0. Raise `SuiteError` for suites that
    cannot be read. Raise `QueryEvalError` if the folder cannot be written, or contains a file with the name of a
    variant that another program wrote, or that `--force` does not allow to replace.
    """
    folder: Path = arguments.output
    with wrap_write_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    strengthened_sources: list[Strengthened] = []
    replaced_files = {file.resolve() for file in _earlier_variants(folder, may_replace=arguments.force)}
    with Session(_tell) as session:

        def kept_variants(source: Source) -> list[Source]:
            variants = session.variants(source)
            return [variant for variant in variants if (source.folder / variant.name).resolve() not in replaced_files]

        measurement = measure_cases(arguments.path, session, _tell, kept_variants)
        names: set[str] = set()
        by_source: dict[tuple[str, str], tuple[Source, list[CaseStrength]]] = {}
        for strength in measurement.strengths:
            source_of_case = strength.case.settings.source
            if source_of_case is not None and ENGINES[source_of_case.engine].build is not None:
                by_source.setdefault(source_of_case.key, (source_of_case, []))[1].append(strength)
        for source, strengths in by_source.values():
            if not any(strength.survivors for strength in strengths):
                continue
            stem = re.sub(r"[^\w-]+", "-", Path(source.name).stem).strip("-") or "source"
            name = next(
                candidate for candidate in (stem, *(f"{stem}{n}" for n in range(2, 10_000))) if candidate not in names
            )
            names.add(name)
            try:
                strengthened_sources.append(
                    _write_variants(source, strengths, folder / name, session, seed=arguments.seed)
                )
            except SourceError as error:
                measurement.add_problem(strengths[0].case, error)
    return Result(
        status=FOUND if measurement.problems else OK,
        lines=[*measurement.problem_lines(), *_report_lines(strengthened_sources)],
        data={"sources": [entry.data for entry in strengthened_sources], "problems": measurement.problem_data()},
    )


def _earlier_variants(folder: Path, *, may_replace: bool) -> list[Path]:
    """Return the files of an earlier call in the folder.

    Raise `QueryEvalError` if there are some and `may_replace` is False, or if another program wrote one of them.
    """
    files = sorted(file for suffix in COMMENTS for file in folder.glob(f"*-[0-9][0-9]{suffix}"))
    for file in files:
        if not may_replace:
            raise QueryEvalError(f"{file}: already exists: name another folder, or replace variants with --force")
        if not file.is_file() or not file.read_bytes().startswith(f"{COMMENTS[file.suffix]} {HEAD}".encode()):
            raise QueryEvalError(f"{file}: already exists, and was not written by this command: name another folder")
    return files


def _write_variants(
    source: Source, strengths: Sequence[CaseStrength], stem: Path, session: Session, *, seed: int
) -> Strengthened:
    """Build the variants of a source, write each as soon as it is built, and return all.

    The files are `stem` with a number and the suffix of the engine. Such files of an earlier call are deleted first.
    """
    _tell(f"{source.name}: {pluralize(sum(len(strength.survivors) for strength in strengths), 'mutant')} pass")
    suffix = ENGINES[source.engine].variants.suffix(source.settings)
    for old in stem.parent.glob(f"{stem.name}-[0-9][0-9]{suffix}"):
        old.unlink()
    files = {}
    for number, variant in enumerate(build_variants(strengths, session, seed=seed), start=1):
        file = Path(f"{stem}-{number:02}{suffix}")
        head = [
            f"{HEAD}{one_line(source.name)}, by `queryeval strengthen`: here, these changes of a gold query",
            "change its answer.",
            *(f"{case.id}: {one_line(mutant.change, CHANGE_CHARACTERS)}" for case, mutant in variant.kills),
        ]
        comments = "".join(f"{ENGINES[source.engine].variants.comment} {line}\n" for line in head)
        with wrap_write_errors(file):
            write_atomically(file, f"{comments}\n{variant.script}".encode())
        _tell(f"{file}: {pluralize(len(variant.kills), 'mutant')} of queries differ there")
        files[file] = variant
    pattern = Path(os.path.relpath(f"{stem}-*{suffix}", source.folder)).as_posix()
    return Strengthened(source=source, strengths=strengths, variants=files, pattern=pattern)


def _report_lines(strengthened_sources: Sequence[Strengthened]) -> Iterator[str]:
    """Yield for each source how many mutants its variants kill, and how to name the variants in the suite."""
    for entry in strengthened_sources:
        yield (
            f"{entry.source.name}: {entry.killed_count:,} of {pluralize(entry.survivor_count, 'mutant')} "
            f"that pass in the source do not in {pluralize(len(entry.variants), 'variant')}"
        )
        stated_variants = entry.source.settings.get(VARIANTS)
        source = f"the source at {entry.source.location}" if entry.source.location else "the source"
        if entry.variants and stated_variants is None:
            yield f'  add to {source}: variants: "{entry.pattern}"'
        elif entry.variants and stated_variants != entry.pattern:
            remedy = f"change this to a pattern that matches {entry.pattern} as well"
            yield f'  {source} has variants: "{stated_variants}": {remedy}'
    if not strengthened_sources:
        yield "no mutant of a query passes on a source of SQLite, DuckDB or RDF files: nothing to build"


def build_variants(strengths: Sequence[CaseStrength], session: Session, *, seed: int = 0) -> Iterator[Variant]:
    """Yield variants of the source that these cases share, until all survivors are killed or the search gives up.

    At most MAX_VARIANTS are yielded, with at most MAX_ROWS rows a table or MAX_TRIPLES. All golds run on a variant, and
    all declared constraints hold. Raise `SourceError` if the source cannot list its tables, or if no small database
    with these tables can be built.
    """
    databases = small_databases(strengths[0].case, session)
    search = _Search(strengths, databases, session, Random(seed))  # noqa: S311 - no secret depends on it
    survivors = {(at, mutant) for at, strength in enumerate(strengths) for mutant in strength.survivors}
    states = search.joined_states if isinstance(databases, Joinable) else search.best_states
    for state in islice(states(survivors), MAX_VARIANTS):
        kills = sorted(search.kills(state, survivors), key=lambda target: (target[0], target[1].query))
        yield Variant(
            script=databases.script(state),
            tables=databases.contents(state),
            kills=tuple((strengths[at].case, mutant) for at, mutant in kills),
        )
    if search.refusals and not search.is_buildable:
        raise SourceError(f"no small database with these tables can be built: {search.refusals[0]}")


@dataclass(slots=True)
class _Search:
    """Searches for states of small databases on which mutants of golds have other answers than gold."""

    strengths: Sequence[CaseStrength]
    databases: SmallDatabases[Any]
    session: Session
    random: Random
    refusals: list[str] = field(default_factory=list)
    is_buildable: bool = False
    timeouts: Counter[int] = field(default_factory=Counter)  # of each case

    def best_states(self, survivors: Collection[Target]) -> Iterator[Any]:
        """Yield the best of each round of CANDIDATES states: all golds run on it, and it kills the most survivors.

        States are reduced before they are yielded. The rounds end when no survivor is left, or after VAIN_ROUNDS rounds
        in a row without a kill.
        """
        unkilled = set(survivors)
        vain_rounds = 0
        while unkilled and vain_rounds < VAIN_ROUNDS:
            golds = [self.strengths[at].gold for at in sorted({at for at, _ in unkilled})]
            candidates = self.databases.candidates(golds, self.random, CANDIDATES, plain_first=False)
            kills_of_candidates = [(state, self.kills(state, unkilled)) for state in candidates]
            kills_of_candidates.sort(key=lambda candidate: -len(candidate[1]))
            best = next((pair for pair in kills_of_candidates if pair[1] and self._golds_run(pair[0])), None)
            vain_rounds = vain_rounds + 1 if best is None else 0
            if best is not None:
                state = self._reduced(*best)
                unkilled -= self.kills(state, survivors)
                yield state

    def joined_states(self, survivors: Collection[Target]) -> Iterator[Any]:
        """Yield states that are merged from small states of single cases.

        A small state is added while the merged state fits and still kills the mutants of all its parts. If a gold fails
        on a merged state, the parts on which all golds run are yielded instead.
        """
        assert isinstance(self.databases, Joinable)
        states = [state for at in sorted({at for at, _ in survivors}) for state in self._states_of(at, survivors)]
        states.sort(key=lambda state: -len(state[1]))
        while states:
            (joined, targets), *further_states = states
            parts, states = [joined], []
            for state, kills in further_states:
                union = self.databases.joined(joined, state)
                if union is not None and self.kills(union, targets | kills, all_of=True):
                    joined, targets = union, targets | kills
                    parts.append(state)
                else:
                    states.append((state, kills))
            yield from [joined] if self._golds_run(joined) else filter(self._golds_run, parts)

    def _states_of(self, at: int, survivors: Collection[Target]) -> Iterator[tuple[Any, set[Target]]]:
        """Yield reduced states for one case, each with the survivors that it is the first to kill."""
        unkilled = {target for target in survivors if target[0] == at}
        queries = [self.strengths[at].gold, *sorted(mutant.query for _, mutant in unkilled)]
        for candidate in self.databases.candidates(queries, self.random, CASE_CANDIDATES, plain_first=True):
            if kills := self.kills(candidate, unkilled):
                yield self._reduced(candidate, kills), kills
                unkilled -= kills
            if not unkilled or self.timeouts[at] >= MAX_TIMEOUTS:
                break

    def _golds_run(self, state: Any) -> bool:
        """Return whether the golds of all cases run without an error on a state."""
        cases = (self._case_on(state, at) for at in range(len(self.strengths)))
        return all(self.session.execute(gold, case).error is None for case in cases for gold in case.golds)

    def _case_on(self, state: Any, at: int) -> Case:
        return case_on(self.strengths[at].case, self.databases, state, self.session)

    def _reduced(self, state: Any, kills: Collection[Target]) -> Any:
        """Return a smaller state that still kills all of these mutants."""
        return self.databases.reduced(state, lambda fewer: bool(self.kills(fewer, kills, all_of=True)), MAX_REDUCTIONS)

    def kills(self, state: Any, mutants: Collection[Target], *, all_of: bool = False) -> set[Target]:
        """Return the mutants whose answers differ from gold's on a state.

        The result is empty if a gold fails there, if the database refuses a row, or, with `all_of`, if any mutant
        survives. Refusals are recorded in `refusals`. A mutant that times out survives. After MAX_TIMEOUTS timeouts of
        a case, its mutants are not run again.
        """
        mutants_by_case = grouped(mutants)
        killed = set()
        for at, case_mutants in mutants_by_case.items():
            try:
                case = self._case_on(state, at)
                golds = [self.session.execute(gold, case) for gold in case.golds]
            except SourceError as error:
                self.refusals.append(str(error))
                return set()
            self.is_buildable = True
            self.timeouts[at] += sum(map(timed_out, golds))
            if any(gold.error is not None for gold in golds):
                return set()
            for mutant in case_mutants if self.timeouts[at] < MAX_TIMEOUTS else ():
                execution = self.session.execute(QueryOrAnswer(query=mutant.query), case, is_derived=True)
                self.timeouts[at] += timed_out(execution)
                if not timed_out(execution) and not is_right(execution, golds, case, self.session):
                    killed.add((at, mutant))
                elif all_of:
                    return set()
        return killed
