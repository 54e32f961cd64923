"""report.json: the report as it is; the cases of a large one are in a file beside it, report.cases.jsonl."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

from pytest_queryeval.core.report import CasesFile, Report
from pytest_queryeval.reports import ReportFormat, write_whole
from pytest_queryeval.results.case_store import case_lines, fit_in_memory

SUFFIX = ".cases.jsonl"


def render_json(report: Report) -> bytes:
    """One JSON document, a line a case, so that two reports can be compared with line tools; never NaN."""
    cases = b",\n".join(line.removesuffix(b"\n") for line in case_lines(report["cases"]))
    return _document(report, b"[\n%b\n]" % cases)


def write_json(report: Report, path: Path) -> None:
    """Write the document; where there are more cases than fit in memory, these first, a line each, beside it."""
    if fit_in_memory(report["cases"]):
        write_whole(path, render_json(report))
        return
    real = Path(os.path.realpath(path))
    file, digest = real.with_suffix(SUFFIX), sha256()

    def lines() -> Iterator[bytes]:
        for line in case_lines(report["cases"]):
            digest.update(line)
            yield line

    write_whole(file, lines(), follow_link=False)
    found: CasesFile = {"file": file.name, "count": len(report["cases"]), "sha256": digest.hexdigest()}
    write_whole(real, _document(report, json.dumps(found).encode()))


def _document(report: Report, cases: bytes) -> bytes:
    head = {name: value for name, value in report.items() if name != "cases"}
    opening = json.dumps(head, ensure_ascii=False, allow_nan=False, indent=1).removesuffix("\n}")
    # A lone surrogate, as in a path that is no UTF-8, is written as the escape that JSON has for it.
    return opening.encode(errors="backslashreplace") + b',\n "cases": ' + cases + b"}\n"


JSON = ReportFormat(render=render_json, write=write_json)
