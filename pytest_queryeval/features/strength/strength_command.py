"""Finds weak cases: runs mutants of every gold query, and lists those with the gold answer.

A wrong prediction like that would pass. No predictor is called. What `--json` prints can be a section of reports.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_queryeval.cli.output import Result, notifier
from pytest_queryeval.core.report import Report, WeakCase
from pytest_queryeval.evaluation.session import Session
from pytest_queryeval.reports.added_sections import ReportSection, SectionFile
from pytest_queryeval.reports.blocks import Block, CaseName, Table, Untrusted
from pytest_queryeval.results.report_file import problem_in, read_checked
from pytest_queryeval.text.formatting import one_line, pluralize

if TYPE_CHECKING:
    from pytest_queryeval.features.strength.case_strength import CaseStrength

EXAMPLE = "queryeval strength suites"
OK, FOUND = 0, 1
OUTCOMES = ("killed", "equivalent", "survivors")
MAX_CASES = 10
MAX_CHANGES = 3  # of a case
CHANGE_CHARACTERS = 100
WRITE_ONE = "write one with `queryeval strength PATH --json > strength.json`"
NOTE = (
    "Mutants, wrong versions of their gold, have the gold answer, so such a prediction would pass. "
    "The weakest cases come first."
)
_tell = notifier("strength")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments PATH and `--strict`."""
    parser.add_argument("path", type=Path, metavar="PATH", help="a suite file, or a folder with suites")
    parser.add_argument("--strict", action="store_true", help="also exit with 1 if a mutant passes")


def run(arguments: argparse.Namespace) -> Result:
    """Measure the strength of all cases, and return it as lines and as JSON, the weakest cases first.

    The exit status is 1 if a gold or a source fails, or, with `--strict`, if a mutant passes; else 0. Raise
    `SuiteError` for suites that cannot be read.
    """
    from pytest_queryeval.features.strength.case_strength import measure_cases  # which reads suites; reports do not

    with Session(_tell) as session:
        measurement = measure_cases(arguments.path, session, _tell)
    strengths = sorted(
        measurement.strengths,
        key=lambda strength: (1.0 if strength.share is None else strength.share, -len(strength.survivors)),
    )
    return Result(
        status=FOUND
        if measurement.problems or (arguments.strict and any(strength.survivors for strength in strengths))
        else OK,
        lines=[*measurement.problem_lines(), *_report_lines(strengths)],
        data={
            "cases": [
                {
                    "id": strength.case.id,
                    "path": strength.location.path.as_posix(),
                    "line": strength.location.line,
                    **_outcome_counts([strength]),
                    "survivors": [
                        {key: getattr(mutant, key) for key in ("query", "operator", "clause", "change")}
                        for mutant in strength.survivors
                    ],
                }
                for strength in strengths
            ],
            "problems": measurement.problem_data(),
            "summary": {
                **_outcome_counts(strengths),
                "suites": {
                    path: _outcome_counts(of_suite) for path, of_suite in _strengths_by_suite(strengths).items()
                },
                "operators": _counts_by_operator(strengths),
            },
        },
    )


def _report_lines(strengths: Sequence[CaseStrength]) -> Iterator[str]:
    """Yield the lines for the terminal: up to MAX_CASES weak cases with changes that pass, numbers, and a summary.

    The numbers are by operator, and by suite if there are several.
    """
    weak_cases = [strength for strength in strengths if strength.survivors]
    for strength in weak_cases[:MAX_CASES]:
        total = len(strength.killed) + len(strength.survivors)
        yield f"{strength.location}: case '{strength.case.id}': {len(strength.survivors):,} of {total:,} mutants pass"
        for mutant in strength.survivors[:MAX_CHANGES]:
            change = one_line(mutant.change, CHANGE_CHARACTERS)
            yield f"  {change}" if change.startswith(mutant.clause) else f"  {mutant.clause}: {change}"
        if len(strength.survivors) > MAX_CHANGES:
            yield f"  and {len(strength.survivors) - MAX_CHANGES:,} more"
    if len(weak_cases) > MAX_CASES:
        yield f"and {len(weak_cases) - MAX_CASES:,} more cases: --json lists all of them"
    operators = _counts_by_operator(strengths)
    wide = max(map(len, operators), default=0)
    for name, counts in operators.items():
        if counts["survivors"]:
            yield f"{name:<{wide}}  {counts['survivors']:,} of {counts['killed'] + counts['survivors']:,} pass"
    suites = _strengths_by_suite(strengths)
    for path, of_suite in suites.items() if len(suites) > 1 else ():
        yield f"{path}: {_summary(of_suite)}"
    yield f"{_summary(strengths)}; {_outcome_counts(strengths)['equivalent']:,} more answer as gold on any data"
    if not strengths:
        yield "no case has a gold query of which mutants are made"


def _summary(strengths: Sequence[CaseStrength]) -> str:
    """Return a phrase that says how many mutants pass, and in how many cases."""
    counts, weak_count = _outcome_counts(strengths), sum(bool(strength.survivors) for strength in strengths)
    total = pluralize(counts["killed"] + counts["survivors"], "mutant")
    return f"{counts['survivors']:,} of {total} pass, in {weak_count:,} of {pluralize(len(strengths), 'case')}"


def _outcome_counts(strengths: Sequence[CaseStrength]) -> dict[str, int]:
    counts = {outcome: sum(len(getattr(strength, outcome)) for strength in strengths) for outcome in OUTCOMES}
    return {"mutants": sum(counts.values()), **counts}


def _strengths_by_suite(strengths: Sequence[CaseStrength]) -> dict[str, list[CaseStrength]]:
    """Return the strengths of the cases of each suite, by the path of the suite."""
    suites: dict[str, list[CaseStrength]] = {}
    for strength in strengths:
        suites.setdefault(strength.case.location.path.as_posix(), []).append(strength)
    return dict(sorted(suites.items()))


def _counts_by_operator(strengths: Sequence[CaseStrength]) -> dict[str, dict[str, int]]:
    """Return the number of mutants by operator and outcome; the operator with the most survivors comes first."""
    counts: dict[str, dict[str, int]] = {}
    for strength in strengths:
        for outcome in OUTCOMES:
            for mutant in getattr(strength, outcome):
                counts.setdefault(mutant.operator, dict.fromkeys(OUTCOMES, 0))[outcome] += 1
    return dict(sorted(counts.items(), key=lambda item: (-item[1]["survivors"], item[0])))


def read_weak_cases(path: Path) -> list[WeakCase]:
    """Return the cases with surviving mutants from a file that `queryeval strength --json` printed.

    Raise as `read_report` does if the file cannot be read or has another format.
    """

    def problem_of(content: Any) -> str:
        if not isinstance(content, dict) or not isinstance(content.get("cases"), list):
            return f"is not a result of `queryeval strength`: {WRITE_ONE}"
        problem = problem_in(content, "StrengthResult")
        return problem and f"is not a result of `queryeval strength`: {one_line(problem)}"

    content = read_checked(path, problem_of, "result of `queryeval strength`", WRITE_ONE)
    return [case for case in content["cases"] if case["survivors"]]


def with_weak_cases(path: Path, report: Report) -> Report:
    """Return the report with `weak_cases`: the weak cases in the file at `path` that are cases of the report."""
    report_cases = {(case["path"], case["id"]) for case in report["cases"]}
    weak_cases = [case for case in read_weak_cases(path) if (case["path"], case["id"]) in report_cases]
    return {**report, "weak_cases": weak_cases}


def weak_case_blocks(report: Report) -> Iterator[Block]:
    """Yield a note and a table with the weak cases of a report; nothing if there are none."""
    rows = []
    for case in report.get("weak_cases", ()):
        survivors = case["survivors"]
        passing = f"{len(survivors):,} of {case['killed'] + len(survivors):,}"
        changes = "; ".join(survivor["change"] for survivor in survivors[:MAX_CHANGES])
        rows.append((CaseName(f"{case['path']}::{case['id']}"), passing, Untrusted(changes)))
    if rows:
        yield (NOTE,)
        yield Table(("case", "variants that pass", "such as"), rows)


WEAK_CASES = ReportSection(
    title="Weak cases",
    blocks=weak_case_blocks,
    file=SectionFile(
        metavar="STRENGTH.json",
        help="what `queryeval strength --json` printed: the report lists its weak cases",
        read=with_weak_cases,
    ),
)
