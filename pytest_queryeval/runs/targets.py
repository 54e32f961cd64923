"""Where the report of a run goes: files, folders, the summary of a step on GitHub Actions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from pytest_queryeval.core.errors import ReportError
from pytest_queryeval.core.report import Report
from pytest_queryeval.reports import (
    PUBLISHED,
    STEP_SUMMARY,
    WrittenFiles,
    check_target,
    files_of,
    write_files,
    write_report,
)
from pytest_queryeval.reports.step_summary import append_step_summary, step_summary_file


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportTargets:
    """The places that a report is written to."""

    paths: Sequence[Path] = ()
    """Files, and folders for all formats."""
    step_summary: Path | None = None
    """The file of the step summary of GitHub Actions."""
    layout: str = PUBLISHED
    """The layout of workbooks."""

    def write(self, report: Report) -> WrittenFiles:
        """Write the report to all places, JSON first, from which the other formats can be made."""
        files = [file for path in self.paths for file in files_of(path)]
        files.sort(key=lambda file: file.suffix != ".json")
        written = write_files(files, partial(write_report, report, layout=self.layout))
        if self.step_summary is None:
            return written
        summary = write_files([self.step_summary], partial(append_step_summary, report))
        return WrittenFiles(paths=written.paths + summary.paths, problems=written.problems + summary.problems)


def report_targets(names: Iterable[str], *, option: str, folder: Path, layout: str) -> ReportTargets:
    """Return the targets that an option names, paths relative to `folder`.

    Raise `ReportError`, which names the option, for a target that no report can go to.
    """
    names = list(names)
    paths = [folder / name for name in names if name != STEP_SUMMARY]
    try:
        for path in paths:
            check_target(path)
        step_summary = step_summary_file() if STEP_SUMMARY in names else None
    except ReportError as error:
        raise ReportError(f"{option}: {error}") from error
    return ReportTargets(paths=paths, step_summary=step_summary, layout=layout)
