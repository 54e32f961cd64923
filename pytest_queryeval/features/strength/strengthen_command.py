"""Builds variants of sources: small databases or graphs in which mutants of golds have other answers.

For SQLite and DuckDB, each variant is a script with at most 50 rows a table; for RDF files, it has at most 50 triples.
A suite that names them as `variants` of its source is scored by `test_suite_accuracy`, too. No predictor is called.
"""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pytest_queryeval.cli.output import Result, teller, writing
from pytest_queryeval.core.errors import QueryEvalError, SourceError
from pytest_queryeval.core.files import write_atomically
from pytest_queryeval.core.json_value import JsonValue
from pytest_queryeval.core.model import Source
from pytest_queryeval.engines import ENGINES
from pytest_queryeval.engines.settings import VARIANTS
from pytest_queryeval.evaluation.session import Session
from pytest_queryeval.features.strength.case_strength import CaseStrength, measure_cases
from pytest_queryeval.features.strength.variants import Variant, build_variants
from pytest_queryeval.runs.option_table import whole_number
from pytest_queryeval.text.formatting import one_line, pluralize

EXAMPLE = "queryeval strengthen suites -o suites/variants"
OK, FOUND = 0, 1
CHANGE_CHARACTERS = 100
HEAD = "A variant of "  # in the first line of each file, a comment
COMMENTS = {".sql": "--", ".ttl": "#", ".trig": "#"}  # what begins one, by the suffix of files
_tell = teller("strengthen")


@dataclass(frozen=True, slots=True, kw_only=True)
class Strengthened:
    """A source with its cases and the variants that were built for it."""

    source: Source
    strengths: Sequence[CaseStrength]
    variants: dict[Path, Variant]
    """By the files that are written."""
    pattern: str
    """A glob of these files, relative to the folder of the source."""

    @property
    def survivors(self) -> int:
        """The number of mutants that answer as gold in the source."""
        return sum(len(strength.survivors) for strength in self.strengths)

    @property
    def killed(self) -> int:
        """The number of those that have another answer in some variant."""
        return len({(id(case), mutant) for variant in self.variants.values() for case, mutant in variant.kills})


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the suites, and where variants are written."""
    parser.add_argument("path", type=Path, metavar="PATH", help="a suite file, or a folder with suites")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="DIR", help="the folder of the variants")
    parser.add_argument("--force", action="store_true", help="replace the variants of an earlier call")
    parser.add_argument(
        "--seed", type=whole_number, default=0, metavar="N", help="a different seed finds other variants; 0"
    )


def run(arguments: argparse.Namespace) -> Result:
    """Build and write the variants of each source; 1 if a gold does not run, or nothing can be built, else 0.

    Raise `SuiteError` for suites that cannot be read, and `QueryEvalError` for variants that already exist
    and for a folder that cannot be written.
    """
    folder: Path = arguments.output
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    strengthened_sources: list[Strengthened] = []
    replaced_files = {file.resolve() for file in _earlier_variants(folder, may_replace=arguments.force)}
    with Session(_tell) as session:

        def kept_variants(source: Source) -> list[Source]:
            variants = session.variants(source)
            return [variant for variant in variants if (source.folder / variant.name).resolve() not in replaced_files]

        measurement = measure_cases(arguments.path, session, _tell, kept_variants)
        names: set[str] = set()
        for source, strengths in _buildable_sources(measurement.strengths):
            if not any(strength.survivors for strength in strengths):
                continue
            stem = re.sub(r"[^\w-]+", "-", Path(source.name).stem).strip("-") or "source"
            name = next(
                candidate for candidate in (stem, *(f"{stem}{n}" for n in range(2, 10_000))) if candidate not in names
            )
            names.add(name)
            try:
                variants = _write_variants(source, strengths, folder, name, arguments.seed, session)
            except SourceError as error:
                measurement.add_problem(strengths[0].case, error)
                continue
            suffix = ENGINES[source.engine].variants.suffix(source.settings)
            pattern = Path(os.path.relpath(folder / f"{name}-*{suffix}", source.folder)).as_posix()
            strengthened_sources.append(
                Strengthened(source=source, strengths=strengths, variants=variants, pattern=pattern)
            )
    return Result(
        status=FOUND if measurement.problems else OK,
        lines=[*measurement.problem_lines(), *_lines(strengthened_sources)],
        data={
            "sources": list(map(_source_data, strengthened_sources)),
            "problems": measurement.problem_data(),
        },
    )


def _earlier_variants(folder: Path, *, may_replace: bool) -> list[Path]:
    """Return the variants of an earlier call; raise `QueryEvalError` for files that may not be replaced."""
    files = sorted(file for suffix in COMMENTS for file in folder.glob(f"*-[0-9][0-9]{suffix}"))
    for file in files:
        if not may_replace:
            raise QueryEvalError(f"{file}: already exists: name another folder, or replace variants with --force")
        if not file.is_file() or not file.read_bytes().startswith(f"{COMMENTS[file.suffix]} {HEAD}".encode()):
            raise QueryEvalError(f"{file}: already exists, and was not written by this command: name another folder")
    return files


def _buildable_sources(strengths: Iterable[CaseStrength]) -> Iterator[tuple[Source, list[CaseStrength]]]:
    """Yield each source whose engine builds variants, with the strengths of its cases."""
    by_source: dict[tuple[str, str], tuple[Source, list[CaseStrength]]] = {}
    for strength in strengths:
        source = strength.case.settings.source
        if source is not None and ENGINES[source.engine].build is not None:
            by_source.setdefault(source.key, (source, []))[1].append(strength)
    yield from by_source.values()


def _source_data(entry: Strengthened) -> dict[str, JsonValue]:
    """Return a source with its variants, and the mutants that each kills, for `--json`."""
    unit = ENGINES[entry.source.engine].variants.unit
    files: list[JsonValue] = [
        {
            "file": file.as_posix(),
            f"{unit}s": sum(len(table.rows) for table in variant.tables.values()),
            "kills": [
                {"case": case.id, "query": mutant.query, "change": mutant.change} for case, mutant in variant.kills
            ],
        }
        for file, variant in entry.variants.items()
    ]
    return {
        "source": entry.source.name,
        "variants": entry.pattern,
        "survivors": entry.survivors,
        "killed": entry.killed,
        "files": files,
    }


def _write_variants(
    source: Source, strengths: Sequence[CaseStrength], folder: Path, name: str, seed: int, session: Session
) -> dict[Path, Variant]:
    """Build the variants of a source, and write each as soon as it is built; those of an earlier call are removed."""
    _tell(f"{source.name}: {pluralize(sum(len(strength.survivors) for strength in strengths), 'mutant')} pass")
    suffix = ENGINES[source.engine].variants.suffix(source.settings)
    for old in folder.glob(f"{name}-[0-9][0-9]{suffix}"):
        old.unlink()
    files = {}
    for number, variant in enumerate(build_variants(strengths, session, seed=seed), start=1):
        file = folder / f"{name}-{number:02}{suffix}"
        with writing(file):
            write_atomically(file, _script(source, variant).encode())
        _tell(f"{file}: {pluralize(len(variant.kills), 'mutant')} of queries differ there")
        files[file] = variant
    return files


def _script(source: Source, variant: Variant) -> str:
    """Return the script of a variant with what it is for in comments."""
    head = [
        f"{HEAD}{one_line(source.name)}, by `queryeval strengthen`: here, these changes of a gold query",
        "change its answer.",
        *(f"{case.id}: {one_line(mutant.change, CHANGE_CHARACTERS)}" for case, mutant in variant.kills),
    ]
    comment = ENGINES[source.engine].variants.comment
    return "".join(f"{comment} {line}\n" for line in head) + f"\n{variant.script}"


def _lines(strengthened_sources: Sequence[Strengthened]) -> Iterator[str]:
    """Yield for each source what its variants kill, and the line that names them."""
    for entry in strengthened_sources:
        yield (
            f"{entry.source.name}: {entry.killed:,} of {pluralize(entry.survivors, 'mutant')} "
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
