"""The report report.csv: a row for each case with all its scores, for pandas, DuckDB and spreadsheet programs."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator

from pytest_queryeval.core.mappings import excluding
from pytest_queryeval.core.report import Report
from pytest_queryeval.features.excel.sheet import value_at
from pytest_queryeval.reports import ReportFormat, write_whole
from pytest_queryeval.reports.blocks import (
    TIMES,
    abstention_columns,
    group_columns,
    guard_cell,
    metric_names,
    nested_value,
    step_columns,
)

PART_CHARACTERS = 2**20
# The names that lead to the value of a column in a case.
PLACE = {name: name for name in ("path", "line", "row", "id", "nodeid")}
ANSWERS = {
    **{name: name for name in ("question", "outcome", "message")},
    "difference": "difference summary",
    "cause": "cause",
    "repaired_query": "cause repaired_query",
    "gold_query": "gold query",
    "gold_rows": "gold row_count",
    "gold_seconds": "gold seconds",
    "predicted_query": "predicted query",
    "predicted_rows": "predicted row_count",
    "predicted_seconds": "predicted seconds",
    "predicted_error": "predicted error kind",
    "predictor": "prediction source",
    "prediction_seconds": "prediction seconds",
    "scoring_seconds": "scoring seconds",
}


def render_csv(report: Report) -> bytes:
    """Return the report as CSV of RFC 4180 in UTF-8, with a header and a row for each case.

    There is no byte order mark, which readers take for a part of the first name; Excel has the workbook.

    The columns are PLACE, the groups, ANSWERS, those of `abstention_columns` and `step_columns`, TIMES, all metrics of
    the run, and `field[PATH]` for the fields of JSON answers. A metric with the name of another column is called
    `score_NAME`. Texts that a spreadsheet would take for formulas are guarded.
    """
    return b"".join(_file_parts(report))


def _file_parts(report: Report) -> Iterator[bytes]:
    """Yield the file in parts, so that it is not in memory as a whole."""
    metrics = metric_names(report["cases"])
    fields = {f"field[{path}]": path for path in report.get("fields", {})}
    fields = excluding(fields, metrics)
    optional_columns = {**abstention_columns(report["cases"]), **step_columns(report["cases"])}

    groups = group_columns("csv", " ")
    place, answers = ({name: value_at(*path.split()) for name, path in columns.items()} for columns in (PLACE, ANSWERS))
    answers["cause"] = lambda case: " ".join(edit["label"] for edit in nested_value(case, "cause", "edits") or ())
    columns = {**place, **groups, **answers, **optional_columns}
    column_names = {*columns, *TIMES}
    file = io.StringIO(newline="")
    writer = csv.writer(file)
    writer.writerow(
        [
            *(*columns, *TIMES),
            *(guard_cell(f"score_{name}" if name in column_names else name) for name in (*metrics, *fields)),
        ]
    )
    for case in report["cases"]:
        values = [read(case) for read in columns.values()]
        values += [nested_value(case, "prediction", "metadata", name) for name in TIMES]
        values += [case["scores"].get(name) for name in metrics]
        values += [case.get("field_scores", {}).get(path) for path in fields.values()]
        writer.writerow([guard_cell(value) for value in values])
        if file.tell() > PART_CHARACTERS:
            yield file.getvalue().encode()
            file.seek(0)
            file.truncate()
    yield file.getvalue().encode()


CSV = ReportFormat(render=render_csv, write=lambda report, path: write_whole(path, _file_parts(report)))
