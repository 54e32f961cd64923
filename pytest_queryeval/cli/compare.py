"""Compares reports: two of them, the earlier one first, or the systems of many as a leaderboard."""

from __future__ import annotations

import argparse
import json
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from os.path import realpath
from pathlib import Path

from pytest_queryeval.cli.output import Result, write_files
from pytest_queryeval.core.errors import ReportError, did_you_mean
from pytest_queryeval.core.report import BaselineReport, Report
from pytest_queryeval.reports import check_target, write_whole
from pytest_queryeval.reports.blocks import Block, markdown_lines, text_lines
from pytest_queryeval.reports.html.comparison import comparison_page
from pytest_queryeval.reports.leaderboard import leaderboard_blocks
from pytest_queryeval.reports.sections import baseline_blocks
from pytest_queryeval.results.baseline.comparison import compare_reports
from pytest_queryeval.results.baseline.leaderboard import Leaderboard, leaderboard
from pytest_queryeval.results.report_file import read_report

EXAMPLE = "queryeval compare before.json after.json -o comparison.md"
OK, FAILED = 0, 1
SUFFIXES = (".html", ".json", ".md")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the reports and where the comparison goes."""
    parser.add_argument("base", type=Path, metavar="BASE.json", help="a report.json, the earlier one of two")
    parser.add_argument("others", nargs="+", type=Path, metavar="NEW.json", help="the report.json to compare with it")
    ranked = "what a leaderboard ranks by, instead of the first metric"
    parser.add_argument("--metric", metavar="NAME", help=ranked)
    where = "write the comparison: PATH.md, PATH.html or PATH.json; may be given again"
    parser.add_argument("-o", "--output", action="append", type=Path, default=[], metavar="PATH", help=where)


def run(arguments: argparse.Namespace) -> Result:
    """Compare, write, print; return 0 even where reports differ, 1 where a target could not be written.

    Raise `ReportError` for a report that cannot be used and a target that cannot be written.
    """
    targets: Sequence[Path] = arguments.output
    paths = [arguments.base, *arguments.others]
    for target in targets:
        if target.suffix not in SUFFIXES:
            hint = did_you_mean(target.suffix, SUFFIXES)
            raise ReportError(f"no comparison as '{target.suffix}' for {target}{hint}")
        if realpath(target) in map(realpath, paths):
            raise ReportError(f"{target}: is a report to compare, and would be lost")
        check_target(target)
    reports = dict(zip(_names(paths), map(read_report, paths), strict=True))
    title, found, blocks = _compared(reports, paths, arguments.metric)

    def write(target: Path) -> None:
        match target.suffix:
            case ".html":
                text = comparison_page(title, blocks)
            case ".json":
                text = f"{json.dumps(found, ensure_ascii=False, allow_nan=False, indent=1)}\n"
            case _:
                text = "\n".join(markdown_lines(blocks)) + "\n"
        write_whole(target, text.encode(errors="backslashreplace"))

    written = write_files(targets, write)
    lines = [*text_lines(blocks, shutil.get_terminal_size().columns), *written.lines()]
    return Result(status=FAILED if written.problems else OK, lines=lines, data={**found, **written.data()})


def _compared(
    reports: Mapping[str, Report], paths: Sequence[Path], metric: str | None
) -> tuple[str, Leaderboard | BaselineReport, Sequence[Block]]:
    """Return the title, the comparison as plain values, and as blocks."""
    try:
        if len(reports) > 2 or metric is not None:
            board = leaderboard(reports, metric)
            return "Leaderboard", board, list(leaderboard_blocks(board))
        before, after = reports.values()
        found = compare_reports(before, after, path=str(paths[0]))
        return f"{paths[1]} against {paths[0]}", found, list(baseline_blocks(found))
    except OverflowError as error:
        raise ReportError("scores are too large to be averaged") from error


def _names(paths: Sequence[Path]) -> list[str]:
    """Return the names of the systems: the names of their files, or their paths where these are not unique."""
    stems = Counter(path.stem for path in paths)
    names = [path.stem if stems[path.stem] == 1 else str(path) for path in paths]
    if twice := next((name for name, number in Counter(names).items() if number > 1), None):
        raise ReportError(f"{twice}: given twice")
    return names
