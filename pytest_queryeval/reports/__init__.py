"""The report formats by suffix. A renderer is a function from a report to bytes, and computes no results.

The format of the core is report.json: the report as it is; the cases of a large one are in a file next to it,
report.cases.jsonl.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, TypeAlias

from pytest_queryeval.core.errors import ReportError, did_you_mean
from pytest_queryeval.core.files import write_atomically
from pytest_queryeval.core.mappings import excluding
from pytest_queryeval.core.registry import Registry
from pytest_queryeval.core.report import CasesFile, Report
from pytest_queryeval.results.case_store import case_lines, fit_in_memory

JUNIT = "junit.xml"  # written by pytest itself next to the reports in a folder
# Of workbooks: with the sheets of published evaluators if their metrics are requested, always, never.
LAYOUTS = REQUESTED, PUBLISHED, PLAIN = ("requested", "published", "plain")
Renderer: TypeAlias = Callable[[Report], bytes]
SUFFIX = ".cases.jsonl"
END_BYTES = 4_096  # of a report, in which it names the file of its cases


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportFormat:
    """A format of reports: its renderers, and the packages that they need."""

    render: Renderer
    write: Callable[[Report, Path], Path | None] | None = None
    """Write a report of any size to a file, in parts, and return another file written next to it, if any; without it
    all that `render` returns is in memory at once."""
    layouts: Mapping[str, Renderer] = field(default_factory=dict)
    """The renderers of layouts other than the default one, by name."""
    packages: tuple[str, ...] = ()
    """The packages that the renderer needs."""
    extra: str = ""
    """The extra of this package that installs them."""

    @property
    def missing(self) -> tuple[str, ...]:
        """The packages of the format that are not installed."""
        return tuple(name for name in self.packages if find_spec(name) is None)


class ReportRegistry(Registry[ReportFormat]):
    """Report formats by suffix; a registered function becomes a format that needs no packages."""

    def _admit(self, member: Any) -> ReportFormat:
        return member if isinstance(member, ReportFormat) else ReportFormat(render=member)

    def installed(self) -> tuple[str, ...]:
        """Return the suffixes of all formats whose feature and packages are installed."""
        return tuple(name for name, report_format in self.available().items() if not report_format.missing)


REPORTS = ReportRegistry(
    "report format",
    group="pytest_queryeval.reports",
    members={
        "json": f"{__name__}:JSON",
    },
)


GITHUB = "github"
"""The target that is the summary of a step of GitHub Actions, for the functions of the feature `ci`."""


def is_folder(target: Path) -> bool:
    """Return whether a target is a folder, which gets every format: a path without suffix, or an existing folder."""
    return not target.suffix or target.is_dir()


def check_target(target: Path, baseline: Path | None = None) -> None:
    """Raise `ReportError` unless a report can be written to `target`.

    The target has to be a folder or to have the suffix of an installed format. A target that would replace the
    `baseline` is refused: the next run would be compared with this run.
    """
    if str(target) == GITHUB:
        raise ReportError(f"'{target}' is for `--queryeval-report` only: call a folder otherwise")
    check_writable(target)
    if baseline is not None and os.path.realpath(baseline) in map(os.path.realpath, files_of(target)):
        raise ReportError(f"the report would replace the baseline {baseline.name}: write it to another file")
    if is_folder(target):
        return
    suffix = target.suffix.removeprefix(".")
    if suffix not in REPORTS:
        remedy = did_you_mean(suffix, REPORTS.names())
        if suffix == "xml":
            own = f"use pytest's own --junitxml={target.name}"
            remedy = f": {own}, or write all formats, junit.xml among them, with --queryeval-report=FOLDER"
        raise ReportError(f"no report format '.{suffix}' for {target}{remedy}")
    if missing := REPORTS[suffix].missing:
        hint = f"pip install 'pytest-queryeval[{REPORTS[suffix].extra}]'"
        raise ReportError(f"report {target} needs {' and '.join(missing)}: {hint}")


def check_writable(target: Path) -> None:
    """Raise `ReportError` unless a report can be written to a file, or to all its files in a folder.

    Nothing is left behind by the check. A folder, pipe or device at the place of a file is a problem too.
    """
    try:
        is_file = not is_folder(target)
        file = Path(os.path.realpath(target)) if target.is_symlink() else target
        folder = file.parent if is_file else target
        nearest_folder = next(path for path in (folder, *folder.parents) if path.exists())
        is_writable = nearest_folder.is_dir() and os.access(nearest_folder, os.W_OK) and _takes_files(nearest_folder)
        files = [target] if is_file else [*files_of(target), target / JUNIT]
        irregular_files = [path for path in files if path.exists() and not path.is_file()]
    except OSError as error:  # a folder without permission, a name that no file can have
        raise ReportError(f"report {target} cannot be written: {error.strerror or error}") from error
    if not is_writable:
        raise ReportError(f"report {target} cannot be written: {nearest_folder} is not a folder that can be written to")
    if irregular_files:  # a folder, which would be replaced, or a pipe, which blocks until a process reads it
        obstacle = "a folder" if irregular_files[0].is_dir() else "a pipe or a device"
        raise ReportError(
            f"report {irregular_files[0]} cannot be written: {obstacle} is in its place: remove it, or write elsewhere"
        )


def _takes_files(folder: Path) -> bool:
    """Return whether a file can be created in a folder, which its permissions alone do not show."""
    try:
        with TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def files_of(target: Path) -> list[Path]:
    """Return the files that a target stands for.

    A file itself, a folder's `report.SUFFIX` for every installed format.
    """
    return [target / f"report.{name}" for name in REPORTS.installed()] if is_folder(target) else [target]


def write_report(report: Report, path: Path, *, layout: str = "") -> Path | None:
    """Write the report in the format of the path's suffix, whole or not at all.

    Return the second file that was written next to it; None if there is none. A format without this `layout` uses its
    default. Raises `ReportError` if the report cannot be made or written.
    """
    try:
        report_format = REPORTS[path.suffix.removeprefix(".")]
        if report_format.write is not None:
            return report_format.write(report, path)
        write_whole(path, report_format.layouts.get(layout, report_format.render)(report))
    except ReportError:
        raise
    except Exception as error:  # a format may come from another package; the other reports are written all the same
        raise ReportError(f"report {path} cannot be made: {type(error).__name__}: {error}") from error
    return None


def write_whole(path: Path, content: bytes | Iterable[bytes], *, follow_link: bool = True) -> None:
    """Write a file whole or not at all, and create its folders; raises `ReportError` if that fails.

    If the path is a symbolic link, its target is written, or, without `follow_link`, the link is replaced.
    """
    try:
        write_atomically(Path(os.path.realpath(path)) if follow_link else path, content)
    except OSError as error:
        raise ReportError(f"report {path} cannot be written: {error.strerror or error}") from error


@dataclass(slots=True)
class WrittenFiles:
    """The files that were written, and the problems of files that could not be written."""

    paths: list[Path] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def lines(self) -> list[str]:
        """Return a line for each written file, then the problems."""
        return [*(f"report: {path}" for path in self.paths), *self.problems]

    def data(self) -> dict[str, list[str]]:
        """Return files and problems as a value for `--json`."""
        return {"reports": [str(path) for path in self.paths], "problems": self.problems}


def report_files(targets: Iterable[Path], baseline: Path | None = None) -> list[Path]:
    """Return the files of all targets; raises `ReportError` for the first target that `check_target` refuses."""
    for target in targets:
        check_target(target, baseline)
    return [path for target in targets for path in files_of(target)]


def write_files(paths: Iterable[Path], write: Callable[[Path], Path | None]) -> WrittenFiles:
    """Call `write` for each path, and return the written files and the problems.

    `write` returns another file that it wrote next to the path, or None. Its `ReportError` becomes a problem.
    """
    files = WrittenFiles()
    for path in paths:
        try:
            companion = write(path)
        except ReportError as error:
            files.problems.append(str(error))
        else:
            files.paths += [path] if companion is None else [path, companion]
    return files


def render_json(report: Report) -> bytes:
    """Return report.json as bytes, with a line for each case, so that line tools can compare two reports.

    Raises ValueError for NaN and infinity, which are not JSON.
    """
    cases = b",\n".join(line.removesuffix(b"\n") for line in case_lines(report["cases"]))
    return _document(report, b"[\n%b\n]" % cases)


def write_json(report: Report, path: Path) -> Path | None:
    """Write report.json; cases that do not fit in memory go to a file next to it, a line each.

    Return the file of the cases, or None. A file of cases that an earlier report left in the same place is removed
    then. Raises `ReportError`.
    """
    real_path = Path(os.path.realpath(path))
    file = real_path.with_suffix(SUFFIX)
    if fit_in_memory(report["cases"]):
        is_stale = _has_cases_in(real_path, file.name)
        write_whole(path, render_json(report))
        if is_stale:
            with suppress(OSError):  # nothing reads it any more
                file.unlink()
        return None
    digest = sha256()

    def lines() -> Iterator[bytes]:
        for line in case_lines(report["cases"]):
            digest.update(line)
            yield line

    write_whole(file, lines(), follow_link=False)
    cases_file: CasesFile = {"file": file.name, "count": len(report["cases"]), "sha256": digest.hexdigest()}
    write_whole(real_path, _document(report, json.dumps(cases_file).encode()))
    return file if path.is_symlink() else path.with_suffix(SUFFIX)


def _has_cases_in(path: Path, name: str) -> bool:
    """Return whether the report at `path` says that its cases are in the file `name` next to it."""
    with suppress(OSError):
        if path.is_file():
            with path.open("rb") as report:
                report.seek(max(0, report.seek(0, os.SEEK_END) - END_BYTES))
                return b'\n "cases": ' + json.dumps({"file": name}).encode().removesuffix(b"}") in report.read()
    return False


def _document(report: Report, cases: bytes) -> bytes:
    head = excluding(report, ["cases"])
    opening = json.dumps(head, ensure_ascii=False, allow_nan=False, indent=1).removesuffix("\n}")
    # A lone surrogate, as in a path that is not UTF-8, is written as the escape that JSON has for it.
    return opening.encode(errors="backslashreplace") + b',\n "cases": ' + cases + b"}\n"


JSON = ReportFormat(render=render_json, write=write_json)
