"""The console script `queryeval`: a module a subcommand, each with `SUMMARY`, `add_arguments` and `run`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from importlib.metadata import version

from pytest_queryeval.cli import compare, merge, render
from pytest_queryeval.core.errors import QueryEvalError
from pytest_queryeval.text.escaping import log_line

COMMANDS = (merge, compare, render)
USAGE_ERROR = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a subcommand and return the exit status: 0, what the subcommand says, or 2 for a call that cannot be served.

    `arguments` are those after the program's name, those of the process where None is given. Like argparse, this
    raises `SystemExit` for an option that is unknown or incomplete, and for `--help`.
    """
    parser = _parser()
    found = parser.parse_args(arguments)
    try:
        return int(found.run(found))
    except QueryEvalError as error:
        parser.exit(USAGE_ERROR, f"{log_line(str(error))}\n")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="queryeval", description="Works on reports of pytest-queryeval.")
    parser.add_argument("--version", action="version", version=f"pytest-queryeval {version('pytest-queryeval')}")
    subparsers = parser.add_subparsers(required=True, metavar="COMMAND")
    for command in COMMANDS:
        name = command.__name__.rpartition(".")[2]
        subparser = subparsers.add_parser(name, help=command.SUMMARY, description=command.__doc__)
        command.add_arguments(subparser)
        subparser.set_defaults(run=command.run)
    return parser
