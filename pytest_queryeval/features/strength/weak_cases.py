"""The section of reports on weak cases, from what `queryeval strength --json` printed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pytest_queryeval.core.report import Report, WeakCase
from pytest_queryeval.reports.added_sections import ReportSection, SectionFile
from pytest_queryeval.reports.blocks import Block, CaseName, Table, Untrusted
from pytest_queryeval.results.report_file import problem_in, read_checked
from pytest_queryeval.text.formatting import one_line

WRITE_ONE = "`queryeval strength PATH --json > strength.json` writes one"
NOTE = (
    "Mutants, wrong versions of their gold, have gold's answer, so such a prediction would pass. "
    "The weakest cases come first."
)
MAX_CHANGES = 3  # of the mutants of a case that pass


def read_weak_cases(path: Path) -> list[WeakCase]:
    """Return the cases with survivors in what `queryeval strength --json` printed; raise as `read_report` does."""
    content = read_checked(path, _problem, "result of `queryeval strength`", WRITE_ONE)
    return [case for case in content["cases"] if case["survivors"]]


def with_weak_cases(path: Path, report: Report) -> Report:
    """Return the report with those of its cases that are weak."""
    report_cases = {(case["path"], case["id"]) for case in report["cases"]}
    weak_cases = [case for case in read_weak_cases(path) if (case["path"], case["id"]) in report_cases]
    return {**report, "weak_cases": weak_cases}


def weak_case_blocks(report: Report) -> Iterator[Block]:
    """Yield a note, and a table of the weak cases with what would pass."""
    if weak_cases := report.get("weak_cases"):
        yield (NOTE,)
        yield Table(("case", "variants that pass", "such as"), [_row(case) for case in weak_cases])


def _row(case: WeakCase) -> tuple[str, str, str]:
    survivors = case["survivors"]
    changes = "; ".join(survivor["change"] for survivor in survivors[:MAX_CHANGES])
    passing = f"{len(survivors):,} of {case['killed'] + len(survivors):,}"
    return CaseName(f"{case['path']}::{case['id']}"), passing, Untrusted(changes)


def _problem(content: Any) -> str:
    if not isinstance(content, dict) or not isinstance(content.get("cases"), list):
        return f"is not a result of `queryeval strength`: {WRITE_ONE}"
    problem = problem_in(content, "StrengthResult")
    return problem and f"is not a result of `queryeval strength`: {one_line(problem)}"


WEAK_CASES = ReportSection(
    title="Weak cases",
    blocks=weak_case_blocks,
    file=SectionFile(
        metavar="STRENGTH.json",
        help="what `queryeval strength --json` printed: the report lists its weak cases",
        read=with_weak_cases,
    ),
)
