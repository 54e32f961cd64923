"""Writes suites from a data set, a table or another tool's tests."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from pytest_queryeval.cli.output import Result, first_lines, write_lines
from pytest_queryeval.features.transfer.importers import (
    DEFAULT_LANGUAGE,
    IMPORTERS,
    ImportedCase,
    ImportRequest,
    Skipped,
)
from pytest_queryeval.features.transfer.importers.suite_files import SETTINGS, write_suites
from pytest_queryeval.languages import KINDS
from pytest_queryeval.text.formatting import one_line, pluralize

EXAMPLE = "queryeval import spider spider/dev.json --databases spider/database -o suites/spider"
PROGRESS_CASES = 100_000
COLUMNS_CHARACTERS = 500
GATES_HINT = "single wrong answers do not fail it (`on_miss: xfail`): set the `min` that your system has to reach"
OK, FINDINGS = 0, 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the source, the folder of the suites, and settings that the source lacks."""
    parser.add_argument("format", choices=IMPORTERS.names(), metavar="FORMAT", help=", ".join(IMPORTERS.names()))
    parser.add_argument("source", type=Path, metavar="SOURCE", help="the file with the questions and right answers")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="DIR", help="the folder of the suites")
    parser.add_argument("--predictions", type=Path, metavar="FILE", help="predictions in the form of the format")
    databases = parser.add_mutually_exclusive_group()
    of_each = "the folder with the database of each case, as DB/DB.sqlite or DB.sqlite"
    databases.add_argument("--databases", type=Path, metavar="DIR", help=of_each)
    databases.add_argument("--source", dest="database", metavar="SOURCE", help="the source of all cases: a path or URL")
    parser.add_argument("--kind", choices=KINDS.names(), help="the kind of all cases, where the format does not say it")
    parser.add_argument(
        "--language", default=DEFAULT_LANGUAGE, metavar="CODE", help="the language of the questions (en)"
    )
    column = "read a key of the cases from another field, as in gold=Solution; may be given again"
    parser.add_argument("--map", action="append", type=_column, default=[], metavar="KEY=FIELD", help=column)
    parser.add_argument("--force", action="store_true", help="replace the suites of an earlier import")


def _column(text: str) -> tuple[str, str]:
    key, separator, name = text.partition("=")
    if not separator or not key or not name:
        raise argparse.ArgumentTypeError(f"expected KEY=FIELD, found '{text}'")
    return key, name


def run(arguments: argparse.Namespace) -> Result:
    """Write the suites; status 1 if something of the source is in none of them.

    Raise `QueryEvalError` for a source that cannot be read and files that would be overwritten.
    """
    request = ImportRequest(
        source=arguments.source,
        output=Path(os.path.realpath(arguments.output)),
        predictions=arguments.predictions,
        databases=arguments.databases,
        database=arguments.database,
        kind=arguments.kind,
        language=arguments.language,
        columns=dict(arguments.map),
    )
    imported = IMPORTERS[arguments.format](request)
    imported = replace(imported, cases=_with_progress(imported.cases), source=arguments.source)
    written_suites = write_suites(imported, request.output, force=arguments.force)
    suites = [str(arguments.output / name) for name in written_suites.suites]
    unread_columns = one_line(", ".join(imported.not_read), COLUMNS_CHARACTERS)
    return Result(
        status=FINDINGS if written_suites.skipped else OK,
        lines=[
            *(f"suite: {path}" for path in suites),
            f"{pluralize(written_suites.cases, 'case')}, {len(written_suites.skipped):,} skipped",
            *(
                [f"a run fails by the gate in {arguments.output / SETTINGS}: {GATES_HINT}"]
                if "gates" in imported.settings
                else []
            ),
            *([f"columns not read: {unread_columns} (--map KEY=COLUMN reads one)"] if unread_columns else []),
            *first_lines([f"skipped {entry.id}: {entry.reason}" for entry in written_suites.skipped]),
        ],
        data={
            "suites": suites,
            "cases": written_suites.cases,
            "skipped": [entry._asdict() for entry in written_suites.skipped],
            "not_read": list(imported.not_read),
        },
    )


def _with_progress(cases: Iterable[ImportedCase | Skipped]) -> Iterator[ImportedCase | Skipped]:
    """Yield the cases, and write from time to time how many were read."""
    for number, case in enumerate(cases):
        if number and not number % PROGRESS_CASES:
            write_lines([f"{pluralize(number, 'case')} read"], sys.stderr)
        yield case
