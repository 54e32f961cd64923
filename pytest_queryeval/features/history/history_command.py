"""Shows how runs went over time: metrics, what changed between runs, and since when something is worse."""

from __future__ import annotations

import argparse
import json
import shutil
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from os.path import realpath
from pathlib import Path

from pytest_queryeval.cli.output import Result, first_lines, teller, with_progress
from pytest_queryeval.core.errors import ReportError, did_you_mean, path_hint
from pytest_queryeval.core.model import PASS_RATE
from pytest_queryeval.core.report import Report
from pytest_queryeval.features.history.history_blocks import history_blocks
from pytest_queryeval.features.history.history_page import history_page
from pytest_queryeval.features.history.past_runs import History, history
from pytest_queryeval.reports import check_place, write_files, write_whole
from pytest_queryeval.reports.blocks import markdown_lines, text_lines
from pytest_queryeval.results.report_file import read_report

EXAMPLE = "queryeval history reports -o history.html"
OK, FAILED = 0, 1
FORMATS: Mapping[str, Callable[[History], bytes]] = {
    ".html": history_page,
    ".json": lambda timeline: f"{json.dumps(timeline, ensure_ascii=False, allow_nan=False, indent=1)}\n".encode(
        errors="backslashreplace"
    ),
    ".md": lambda timeline: ("\n".join(markdown_lines(history_blocks(timeline))) + "\n").encode(
        errors="backslashreplace"
    ),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the reports and where the history goes."""
    reports_help = "a report.json, or a folder with reports at any depth: each of its *.json that is one"
    parser.add_argument("paths", nargs="+", type=Path, metavar="DIR", help=reports_help)
    parser.add_argument("--by", metavar="METRIC", default=PASS_RATE, help="the metric to follow (default: %(default)s)")
    output = f"write the history: PATH{', PATH'.join(FORMATS)}; may be given again"
    parser.add_argument("-o", "--output", action="append", type=Path, default=[], metavar="PATH", help=output)


def run(arguments: argparse.Namespace) -> Result:
    """Read one report at a time, write, print; 0 whatever got worse, 1 if a target could not be written.

    Files that cannot be used are named and skipped. Raise `ReportError` for a path that does not exist, where there is
    no report or none has the metric, and for a target that cannot be written.
    """
    targets: Sequence[Path] = arguments.output
    for target in targets:
        if target.suffix not in FORMATS:
            raise ReportError(f"no history as '{target.suffix}' for {target}{did_you_mean(target.suffix, FORMATS)}")
        check_place(target)
    files = list(dict.fromkeys(_files(arguments.paths)))
    replaced = {realpath(target): target for target in targets}
    skipped: list[str] = []
    try:
        timeline = history(_reports(files, replaced, skipped), arguments.by)
    except OverflowError as error:
        raise ReportError("scores are too large to be averaged") from error
    for path in (*(run["path"] for run in timeline["runs"]), *timeline["repeated"]):
        if realpath(path) in replaced:
            raise ReportError(
                f"{replaced[realpath(path)]}: is a report of the history, and would be lost: write to another file"
            )
    if not timeline["runs"]:
        more = f"; skipped: {skipped[0]}" if skipped else ""
        raise ReportError(f"no report below {' or '.join(map(str, arguments.paths))}{more}")
    skipped += [f"{path}: the same report as another one" for path in timeline["repeated"]]
    written_files = write_files(targets, lambda target: write_whole(target, FORMATS[target.suffix](timeline)))
    width = shutil.get_terminal_size().columns
    lines = [*text_lines(history_blocks(timeline), width), *first_lines([f"skipped: {reason}" for reason in skipped])]
    data = {**timeline, "skipped": skipped, **written_files.data()}
    return Result(status=FAILED if written_files.problems else OK, lines=[*lines, *written_files.lines()], data=data)


def _files(paths: Sequence[Path]) -> Iterator[Path]:
    """Yield the files among the paths, and the JSON files in the folders, which may be reports."""
    for path in paths:
        if path.is_dir():
            yield from sorted(file for file in path.rglob("*.json") if file.is_file())
        elif path.exists():
            yield path
        else:
            raise ReportError(f"{path}: no such file or folder{path_hint(path)}")


def _reports(files: Sequence[Path], replaced: Container[str], skipped: list[str]) -> Iterator[tuple[str, Report]]:
    """Yield the reports; add to `skipped` why a file is none, unless it is an earlier history, which is `replaced`."""
    for path in with_progress(files, teller("history"), total=len(files), noun="report"):
        try:
            yield str(path), read_report(path)
        except ReportError as error:
            if realpath(path) not in replaced:
                skipped.append(str(error))
