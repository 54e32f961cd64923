"""Prints a JSON Schema: of suites or the settings of folders, for editors, or of reports."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from runpy import run_path

from pytest_queryeval.cli.output import Result
from pytest_queryeval.core.errors import QueryEvalError
from pytest_queryeval.suites.editor_schema import SCHEMA_FILES, editor_schema

EXAMPLE = "queryeval schema suite > suite.schema.json"
OK = 0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command: the name of the schema, and Python files that register more."""
    files = "*.queryeval.yaml, queryeval.yaml of a folder, or report.json"
    parser.add_argument("name", choices=(*SCHEMA_FILES, "report"), help=files)
    registers = "a Python file that registers metrics and the like, which is run first; may be given again"
    parser.add_argument("--conftest", action="append", type=Path, default=[], metavar="FILE.py", help=registers)


def run(arguments: argparse.Namespace) -> Result:
    """Return the requested JSON Schema, with all that is built in, installed, or registered by the files.

    Runs the files first. Raises `QueryEvalError` for a file that fails, and for a registered object that cannot be
    imported.
    """
    for path in arguments.conftest:
        folder = str(path.resolve().parent)
        sys.path.insert(0, folder)  # it may import the modules next to it, as pytest lets a conftest.py do
        try:
            run_path(str(path))
        except Exception as error:  # the user's code may raise anything
            raise QueryEvalError(f"{path}: cannot be run: {type(error).__name__}: {error}") from error
        finally:
            sys.path.remove(folder)
    if arguments.name == "report":
        from pytest_queryeval.results.report_schema import report_schema  # msgspec takes 6 ms to import

        schema = report_schema()
    else:
        schema = editor_schema(arguments.name)
    return Result(status=OK, lines=json.dumps(schema, indent=1).splitlines(), data=schema)
