"""Where the report of a run goes: files, folders, services such as the summary of a step on GitHub Actions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from pytest_queryeval.core.errors import ReportError
from pytest_queryeval.core.report import Report
from pytest_queryeval.reports import (
    PUBLISHED,
    SERVICES,
    WrittenFiles,
    check_target,
    files_of,
    write_files,
    write_report,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportTargets:
    """The places that a report is written to."""

    paths: Sequence[Path] = ()
    """Files, and folders for all formats."""
    services: Mapping[str, Path] = field(default_factory=dict)
    """The names of services, and the file of each."""
    layout: str = PUBLISHED
    """The layout of workbooks."""

    def write(self, report: Report) -> WrittenFiles:
        """Write the report to all places, JSON first, from which the other formats can be made."""
        files = [file for path in self.paths for file in files_of(path)]
        files.sort(key=lambda file: file.suffix != ".json")
        written = write_files(files, partial(write_report, report, layout=self.layout))
        for name, file in self.services.items():
            of_service = write_files([file], partial(SERVICES[name].write, report))
            written.paths += of_service.paths
            written.problems += of_service.problems
        return written

    def commands(self, report: Report, root: Path) -> Iterator[str]:
        """Yield lines for the logs of the services; paths in the report are relative to `root`."""
        for name in self.services:
            yield from SERVICES[name].commands(report, root)


def report_targets(names: Iterable[str], *, option: str, folder: Path, layout: str) -> ReportTargets:
    """Return the targets that an option names, paths relative to `folder`.

    Raise `ReportError`, which names the option, for a target that no report can go to.
    """
    names = list(names)
    paths = [folder / name for name in names if name not in SERVICES]
    try:
        for path in paths:
            check_target(path)
        services = {name: SERVICES[name].file() for name in names if name in SERVICES}
    except ReportError as error:
        raise ReportError(f"{option}: {error}") from error
    return ReportTargets(paths=paths, services=services, layout=layout)
