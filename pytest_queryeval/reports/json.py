"""report.json: the report as it is; the cases of a large one are in a file beside it, report.cases.jsonl."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from pytest_queryeval.core.report import CasesFile, Report
from pytest_queryeval.reports import ReportFormat, write_whole
from pytest_queryeval.results.case_store import case_lines, fit_in_memory

SUFFIX = ".cases.jsonl"
END_BYTES = 4_096  # of a report, in which it names the file of its cases


def render_json(report: Report) -> bytes:
    """Return one JSON document with a line for each case, so that line tools can compare two reports; never NaN."""
    cases = b",\n".join(line.removesuffix(b"\n") for line in case_lines(report["cases"]))
    return _document(report, b"[\n%b\n]" % cases)


def write_json(report: Report, path: Path) -> Path | None:
    """Write the document; more cases than fit in memory are written first, a line each, to a file beside it.

    Return the file of the cases, if there is one. Otherwise that of an earlier report in the same place is removed.
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
    """Return whether a report that was written here has its cases in the file of this name beside it."""
    with suppress(OSError):
        if path.is_file():
            with path.open("rb") as report:
                report.seek(max(0, report.seek(0, os.SEEK_END) - END_BYTES))
                return b'\n "cases": ' + json.dumps({"file": name}).encode().removesuffix(b"}") in report.read()
    return False


def _document(report: Report, cases: bytes) -> bytes:
    head = {name: value for name, value in report.items() if name != "cases"}
    opening = json.dumps(head, ensure_ascii=False, allow_nan=False, indent=1).removesuffix("\n}")
    # A lone surrogate, as in a path that is not UTF-8, is written as the escape that JSON has for it.
    return opening.encode(errors="backslashreplace") + b',\n "cases": ' + cases + b"}\n"


JSON = ReportFormat(render=render_json, write=write_json)
