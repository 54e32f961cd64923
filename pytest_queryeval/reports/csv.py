"""report.csv: one row a case with all its scores, for pandas, DuckDB, and whoever likes spreadsheets."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator
from typing import Any

from pytest_queryeval.core.report import CaseReport, Report
from pytest_queryeval.reports import ReportFormat, write_whole
from pytest_queryeval.reports.cells import TIMES, guarded, metric_names, part

PART_CHARACTERS = 2**20
COLUMNS: dict[str, Callable[[CaseReport], Any]] = {
    "path": lambda case: case["path"],
    "line": lambda case: case["line"],
    "row": lambda case: case.get("row"),
    "id": lambda case: case["id"],
    "nodeid": lambda case: case["nodeid"],
    "kind": lambda case: case["kind"],
    "difficulty": lambda case: case["difficulty"],
    "tags": lambda case: " ".join(case["tags"]),
    "features": lambda case: " ".join(case.get("features", ())),
    "source": lambda case: case["source"],
    "question": lambda case: case["question"],
    "outcome": lambda case: case["outcome"],
    "message": lambda case: case["message"],
    "difference": lambda case: part(case, "difference", "summary"),
    "cause": lambda case: " ".join(edit["label"] for edit in part(case, "cause", "edits") or ()),
    "repaired_query": lambda case: part(case, "cause", "repaired_query"),
    "gold_query": lambda case: part(case, "gold", "query"),
    "gold_rows": lambda case: part(case, "gold", "row_count"),
    "gold_seconds": lambda case: part(case, "gold", "seconds"),
    "predicted_query": lambda case: part(case, "predicted", "query"),
    "predicted_rows": lambda case: part(case, "predicted", "row_count"),
    "predicted_seconds": lambda case: part(case, "predicted", "seconds"),
    "predicted_error": lambda case: part(case, "predicted", "error", "kind"),
    "predictor": lambda case: part(case, "prediction", "source"),
    "prediction_seconds": lambda case: part(case, "prediction", "seconds"),
    "scoring_seconds": lambda case: part(case, "scoring", "seconds"),
}


def render_csv(report: Report) -> bytes:
    """Return CSV as in RFC 4180, in UTF-8.

    There is no byte order mark, which readers take for a part of the first name; Excel has the workbook.
    The header has COLUMNS, TIMES and all metrics of the run; a metric with the name of a column is `score_NAME`.
    """
    return b"".join(_parts(report))


def _parts(report: Report) -> Iterator[bytes]:
    """Yield the file in parts, which are not all in memory at once."""
    metrics = metric_names(report["cases"])
    taken = {*COLUMNS, *TIMES}
    file = io.StringIO(newline="")
    writer = csv.writer(file)
    writer.writerow([*COLUMNS, *TIMES, *(guarded(f"score_{name}" if name in taken else name) for name in metrics)])
    for case in report["cases"]:
        values = [read(case) for read in COLUMNS.values()]
        values += [part(case, "prediction", "metadata", name) for name in TIMES]
        values += [case["scores"].get(name) for name in metrics]
        writer.writerow([guarded(value) for value in values])
        if file.tell() > PART_CHARACTERS:
            yield file.getvalue().encode()
            file.seek(0)
            file.truncate()
    yield file.getvalue().encode()


CSV = ReportFormat(render=render_csv, write=lambda report, path: write_whole(path, _parts(report)))
