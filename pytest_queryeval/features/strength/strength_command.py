"""Finds weak cases: runs wrong variants of every gold query, and lists those that answer as gold does.

A wrong prediction like that would pass. No predictor is called.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

from pytest_queryeval.cli.output import Result
from pytest_queryeval.cli.progress import teller
from pytest_queryeval.core.errors import Location
from pytest_queryeval.core.model import Case
from pytest_queryeval.evaluation.session import Session
from pytest_queryeval.features.strength.case_strength import CaseStrength
from pytest_queryeval.features.strength.measured import measure_cases
from pytest_queryeval.text.formatting import pluralize
from pytest_queryeval.text.redaction import redact
from pytest_queryeval.text.truncation import one_line

EXAMPLE = "queryeval strength suites"
OK, FOUND = 0, 1
OUTCOMES = ("killed", "equivalent", "survivors")
MAX_CASES = 10
MAX_CHANGES = 3  # of a case
CHANGE_CHARACTERS = 100
_tell = teller("strength")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the suites, and when the command fails."""
    parser.add_argument("path", type=Path, metavar="PATH", help="a suite file, or a folder with suites")
    parser.add_argument("--strict", action="store_true", help="exit with 1 where a wrong variant passes, too")


def run(arguments: argparse.Namespace) -> Result:
    """Measure; 1 where a gold does not run, with `--strict` also where a variant passes, else 0.

    Raise `SuiteError` for suites that cannot be read.
    """
    with Session(_tell) as session:
        found = measure_cases(arguments.path, session, _tell)
    measured = sorted(found.strengths, key=lambda one: (1.0 if one.share is None else one.share, -len(one.survivors)))
    return Result(
        status=FOUND if found.problems or (arguments.strict and any(one.survivors for one in measured)) else OK,
        lines=[
            *found.problem_lines(),
            *_lines(measured),
        ],
        data={
            "cases": [
                {
                    "id": one.case.id,
                    "path": _location(one.case).path.as_posix(),
                    "line": _location(one.case).line,
                    **_counts([one]),
                    "survivors": [
                        {
                            "query": redact(mutant.query),
                            "operator": mutant.operator,
                            "clause": mutant.clause,
                            "change": redact(mutant.change),
                        }
                        for mutant in one.survivors
                    ],
                }
                for one in measured
            ],
            "problems": found.problem_data(),
            "summary": {
                **_counts(measured),
                "suites": {path: _counts(of_suite) for path, of_suite in _by_suite(measured).items()},
                "operators": _operators(measured),
            },
        },
    )


def _lines(measured: Sequence[CaseStrength]) -> Iterator[str]:
    """Yield the weakest cases with what passes, then the operators."""
    weak = [one for one in measured if one.survivors]
    for one in weak[:MAX_CASES]:
        every = len(one.killed) + len(one.survivors)
        yield f"{_location(one.case)}: case '{one.case.id}': {len(one.survivors):,} of {every:,} wrong variants pass"
        for mutant in one.survivors[:MAX_CHANGES]:
            change = one_line(redact(mutant.change), CHANGE_CHARACTERS)
            yield f"  {change}" if change.startswith(mutant.clause) else f"  {mutant.clause}: {change}"
        if len(one.survivors) > MAX_CHANGES:
            yield f"  and {len(one.survivors) - MAX_CHANGES:,} more"
    if len(weak) > MAX_CASES:
        yield f"and {len(weak) - MAX_CASES:,} more cases: --json lists all of them"
    operators = _operators(measured)
    wide = max(map(len, operators), default=0)
    for name, counts in operators.items():
        if counts["survivors"]:
            yield f"{name:<{wide}}  {counts['survivors']:,} of {counts['killed'] + counts['survivors']:,} pass"
    suites = _by_suite(measured)
    for path, of_suite in suites.items() if len(suites) > 1 else ():
        yield f"{path}: {_sum(of_suite)}"
    yield f"{_sum(measured)}; {_counts(measured)['equivalent']:,} more answer as gold on any data"
    if not measured:
        yield "no case has a gold query of which wrong variants are made"


def _sum(measured: Sequence[CaseStrength]) -> str:
    """Return how many variants pass, and in how many cases."""
    counts, weak = _counts(measured), sum(bool(one.survivors) for one in measured)
    every = pluralize(counts["killed"] + counts["survivors"], "wrong variant")
    return f"{counts['survivors']:,} of {every} pass, in {weak:,} of {pluralize(len(measured), 'case')}"


def _counts(measured: Sequence[CaseStrength]) -> dict[str, int]:
    counts = {outcome: sum(len(getattr(one, outcome)) for one in measured) for outcome in OUTCOMES}
    return {"mutants": sum(counts.values()), **counts}


def _by_suite(measured: Sequence[CaseStrength]) -> dict[str, list[CaseStrength]]:
    """Return the cases of each suite, by its path."""
    suites: dict[str, list[CaseStrength]] = {}
    for one in measured:
        suites.setdefault(one.case.location.path.as_posix(), []).append(one)
    return dict(sorted(suites.items()))


def _operators(measured: Sequence[CaseStrength]) -> dict[str, dict[str, int]]:
    """Return what became of the mutants of each operator, those first of which most survive."""
    counts: dict[str, dict[str, int]] = {}
    for one in measured:
        for outcome in OUTCOMES:
            for mutant in getattr(one, outcome):
                counts.setdefault(mutant.operator, dict.fromkeys(OUTCOMES, 0))[outcome] += 1
    return dict(sorted(counts.items(), key=lambda item: (-item[1]["survivors"], item[0])))


def _location(case: Case) -> Location:
    return case.row or case.location
