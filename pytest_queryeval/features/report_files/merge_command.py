"""Unites the reports of shards: writes the report that one run would have made, and evaluates the gates."""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

from pytest_queryeval.cli.output import Result
from pytest_queryeval.core.report import Report
from pytest_queryeval.features.report_files.merging import merge, repeated_nodeids
from pytest_queryeval.reports import report_files, write_files, write_report
from pytest_queryeval.reports.blocks import text_sentence
from pytest_queryeval.reports.sections import first_names
from pytest_queryeval.reports.summary import summary_lines, verdict_line
from pytest_queryeval.results.report_file import read_report
from pytest_queryeval.results.verdict import verdict
from pytest_queryeval.text.formatting import pluralize

EXAMPLE = "queryeval merge shard-1.json shard-2.json -o report.json"
MAX_LISTED = 5
# The exit statuses of pytest.
OK, FAILED, NO_CASES = 0, 1, 5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the parts and where the report goes."""
    parser.add_argument("parts", nargs="+", type=Path, metavar="PART.json", help="a report.json of a shard")
    output_help = "write the report: PATH.json, or a folder for all formats; may be given again"
    earlier = "compare with an earlier report, and evaluate gates by it"
    parser.add_argument("--baseline", type=Path, metavar="REPORT.json", help=earlier)
    parser.add_argument("-o", "--output", action="append", type=Path, default=[], metavar="PATH", help=output_help)


def run(arguments: argparse.Namespace) -> Result:
    """Merge, write, sum up; 0 if no case failed and no gate is missed, 5 without any case, else 1.

    Raise `ReportError` for a part that cannot be used and a target that cannot be written.
    """
    files = report_files(arguments.output)
    paths = list(reversed(dict.fromkeys(reversed(arguments.parts))))  # of a part given twice the last place counts
    parts = {str(path): read_report(path) for path in paths}
    base: Path | None = arguments.baseline
    report = merge(parts, None if base is None else (str(base), read_report(base)))
    written_files = write_files(files, partial(write_report, report))
    line, _ = verdict_line(report, written_files.problems, command="merge")
    repeated_paths = (path for path in paths if arguments.parts.count(path) > 1)
    notes = [f"{path} is given more than once: it counts once" for path in repeated_paths]
    lines = [*_summary(report, parts), *notes, *written_files.lines(), line]
    merged_verdict = verdict(report)
    if merged_verdict.is_faulty:
        status = FAILED
    elif not report["totals"]["cases"]:
        status = NO_CASES
    else:
        status = FAILED if written_files.problems else OK
    data = {
        "verdict": merged_verdict.state,
        "totals": report["totals"],
        "gates": report["gates"],
        **written_files.data(),
    }
    return Result(status=status, lines=lines, data=data)


def _summary(report: Report, parts: Mapping[str, Report]) -> Iterator[str]:
    yield from (line for line, _ in summary_lines(report, width=shutil.get_terminal_size().columns))
    yield from (f"could not be read: {path}" for path in report["unreadable_files"])
    yield from (f"stopped before its end: {name}" for name, part in parts.items() if part["stopped"])
    if twice := repeated_nodeids(parts):
        case_names = text_sentence(first_names(twice, MAX_LISTED))
        yield f"{pluralize(len(twice), 'case')} in several parts, of which the last one counts: {case_names}"
    if "parts" in report["environment"]:
        yield "the parts were made in different environments: the report names them"
