"""Reports where a change is reviewed: GitHub's step summary and annotations, and GitLab's merge request widget.

GitHub Actions gets the Markdown report in the summary of a step, and annotations of missed gates and failed cases.
GitLab gets report.codequality with the cases that did not pass.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from textwrap import indent

from pytest_queryeval.core.errors import ReportError
from pytest_queryeval.core.model import Outcome
from pytest_queryeval.core.report import Report
from pytest_queryeval.features.ci.markdown import MAX_BYTES, markdown_within
from pytest_queryeval.reports import ReportFormat, write_whole
from pytest_queryeval.reports.story import failure_summary
from pytest_queryeval.results.gates import gate_text
from pytest_queryeval.results.verdict import different_faults, worst_first
from pytest_queryeval.text.formatting import escape_invisible, escape_line, one_line, one_line_with_end

VARIABLE = "GITHUB_STEP_SUMMARY"
MAX_SUMMARY_BYTES = 2**20  # GitHub drops all of a summary that is larger
MIN_BYTES = 4_096  # for a verdict, and the notice that the rest was cut
WORKSPACE = "GITHUB_WORKSPACE"
MAX_ERRORS = 10  # GitHub shows no more errors of a step
TITLE_CHARACTERS = 120
MESSAGE_CHARACTERS = 500
DESCRIPTION_CHARACTERS = 300
SEVERITIES: Mapping[Outcome, str] = {"error": "critical", "failed": "major", "missed": "minor", "xpassed": "major"}


def step_summary_file() -> Path:
    """Return the file that GITHUB_STEP_SUMMARY names; raise `ReportError` if there is none, or it cannot be written."""
    name = os.environ.get(VARIABLE)
    if not name:
        hint = "GitHub Actions sets it; a folder of that name is ./github"
        raise ReportError(f"report github: the environment variable {VARIABLE} is not set: {hint}")
    path = Path(name)
    try:
        is_there, is_fit = path.exists(), not path.is_dir() and not path.is_fifo()
    except OSError as error:  # a folder that may not be looked into, a name that no file can have
        raise ReportError(f"report github: {_file_text(path)} cannot be written to: {error.strerror}") from error
    if not is_fit or not os.access(path if is_there else path.parent, os.W_OK):
        raise ReportError(f"report github: {_file_text(path)} cannot be written to")
    return path


def _file_text(path: Path) -> str:
    return f"{one_line(str(path))}, which {VARIABLE} names,"


def append_step_summary(report: Report, path: Path) -> None:
    """Append the report to a file as Markdown, all of it or nothing; the existing content stays.

    The file keeps within the 1 MiB that GitHub shows of a summary, and the report within 900 KiB. The report says what
    was cut. Raise `ReportError` if there is no room for the verdict, or if writing fails.
    """
    try:
        with path.open("ab", buffering=0) as file:
            before = file.seek(0, os.SEEK_END) if file.seekable() else 0
            start = b"\n\n" if before else b""
            room = MAX_SUMMARY_BYTES - before - len(start)
            if room < MIN_BYTES:
                raise ReportError(
                    f"report github: {path} has {before:,} bytes already, and GitHub shows {MAX_SUMMARY_BYTES:,}"
                )
            content = memoryview(start + markdown_within(report, min(room, MAX_BYTES)))
            try:
                while content:
                    content = content[file.write(content) :]
            except BaseException:
                with suppress(OSError):  # a device has nothing to take back
                    file.truncate(before)
                raise
    except OSError as error:
        raise ReportError(f"report github: {path} cannot be written: {error.strerror or error}") from error


def annotation_lines(report: Report, root: Path) -> Iterator[str]:
    """Yield GitHub workflow commands: an error for each missed gate and failed case, at most MAX_ERRORS.

    A warning counts the missed gates and failed cases beyond that. Wrong answers that count only towards gates are left
    out. Paths of the report are relative to `root`. Paths of annotations are relative to the repository, and are left
    out for files outside it.
    """
    workspace = Path(os.environ.get(WORKSPACE) or root)
    gates = [gate for gate in report["gates"] if gate["ok"] is False]
    worst_cases, sharing = different_faults(worst_first(report))
    cases = [case for case in worst_cases if case["outcome"] != "missed"]
    for gate in gates[:MAX_ERRORS]:
        place = _in_repository(root / gate["folder"] / "queryeval.yaml", workspace)
        yield _command("error", gate_text(gate), file=place, title="gate missed")
    for case in cases[: max(MAX_ERRORS - len(gates), 0)]:
        place = _in_repository(root / case["path"], workspace)
        line = str(case["line"]) if place and case["line"] else ""
        title = f"{case['outcome']}: {one_line_with_end(case['nodeid'], TITLE_CHARACTERS)}"
        yield _command("error", failure_summary(case, sharing[case["nodeid"]]), file=place, line=line, title=title)
    if (unlisted_count := len(gates) + len(cases) - MAX_ERRORS) > 0:
        more = f"{unlisted_count:,} more missed gates and failed cases: the summary of the step lists them"
        yield _command("warning", more, title="query evaluation")


def _in_repository(path: Path, workspace: Path) -> str:
    """Return the path relative to the repository; empty for a file outside it, or a name with invisible characters.

    Links among the folders are followed, because one folder may have two names. The file itself is not resolved if it
    is a link.
    """
    folder, base = Path(os.path.realpath(path.parent)), Path(os.path.realpath(workspace))
    name = (folder / path.name).relative_to(base).as_posix() if folder.is_relative_to(base) else ""
    return name if escape_invisible(name) == name else ""


def _command(name: str, message: str, **properties: str) -> str:
    """Return a workflow command in one line; its texts are escaped so that they stay within their place."""
    property_text = ",".join(
        f"{key}={_escaped(value).replace(':', '%3A').replace(',', '%2C')}" for key, value in properties.items() if value
    )
    return f"::{name} {property_text}::{_escaped(one_line(message, MESSAGE_CHARACTERS))}"


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def render_code_quality(report: Report) -> bytes:
    """Return the cases that did not pass as a JSON list in the format of GitLab's Code Quality, the worst cases first.

    The fingerprint of a case depends on its node id alone. GitLab compares fingerprints to see whether the target
    branch has the case as well.
    """
    return b"".join(_issues(report))


def _issues(report: Report) -> Iterator[bytes]:
    """Yield the pieces of the JSON list in order, so that not all issues are in memory at once."""
    before = "["
    for case in worst_first(report):
        issue = {
            "description": escape_line(f"{case['id']}: {failure_summary(case)}", DESCRIPTION_CHARACTERS),
            "check_name": f"queryeval.{case['outcome']}",
            "fingerprint": sha256(case["nodeid"].encode(errors="backslashreplace")).hexdigest(),
            "severity": SEVERITIES[case["outcome"]],
            "location": {"path": case["path"], "lines": {"begin": max(case["line"], 1)}},
        }
        yield (before + indent(f"\n{json.dumps(issue, indent=1)}", " ")).encode()
        before = ","
    yield b"[]\n" if before == "[" else b"\n]\n"


CODE_QUALITY = ReportFormat(render=render_code_quality, write=lambda report, path: write_whole(path, _issues(report)))
