"""The console script `queryeval`: a module for each command, with `EXAMPLE`, `add_arguments` and `run`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import version
from typing import Any, NoReturn

from pytest_queryeval.cli.command import Command
from pytest_queryeval.cli.output import redacted_output, write_result
from pytest_queryeval.core.errors import QueryEvalError, SuiteError, did_you_mean
from pytest_queryeval.core.process import GarbageCollectionThrottle, SigtermHandler
from pytest_queryeval.core.registry import Registry
from pytest_queryeval.text.formatting import log_line

USAGE_ERROR = 2


COMMANDS: Registry[Command] = Registry(
    "command",
    group="pytest_queryeval.commands",
    members={
        "schema": Command(
            module=f"{__name__}.schema", summary="print the JSON Schema of suites or settings, for editors"
        ),
    },
)


class _Parser(argparse.ArgumentParser):
    """A parser whose errors have one line, which ends with the parser's epilog."""

    def error(self, message: str) -> NoReturn:
        """Print the error and exit with USAGE_ERROR."""
        self.exit(USAGE_ERROR, log_line(f"{self.prog}: {message} ({self.epilog})") + "\n")


class _CommandParser(_Parser):
    """The parser of a command, which imports the command's module when it parses arguments."""

    def __init__(self, *, command: str = "", **settings: Any) -> None:
        super().__init__(formatter_class=argparse.RawDescriptionHelpFormatter, **settings)
        self._command = command

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse arguments with the options of the command and `--json`; return the options and the unknown arguments.

        The options contain `run`, the function of the command, and `parser`, this parser. Exit with an error if an
        unknown option would be read as a positional argument.
        """
        command = import_module(COMMANDS[self._command].module)
        self.description, self.epilog = command.__doc__, f"example: {command.EXAMPLE}"
        command.add_arguments(self)
        self.add_argument("--json", action="store_true", help="print the result as one JSON object")
        self.set_defaults(run=command.run, parser=self)
        options, unknown = super().parse_known_args(args, namespace)
        for action in self._actions:
            values = getattr(options, action.dest, None) if not action.option_strings else None
            for value in map(str, values if isinstance(values, list) else [values]):
                if value.startswith("--"):  # argparse takes an unknown option for a place if a blank is in its value
                    self.refuse(value)
        return options, unknown

    def refuse(self, argument: str) -> NoReturn:
        """Exit with an error for an argument that the command does not accept, with the remedy."""
        name = argument.partition("=")[0]
        if name.startswith("-"):
            options = [option for action in self._actions for option in action.option_strings]
            problem = f"unknown option '{name}'{did_you_mean(name, options)}"
        else:
            places = [f"{action.metavar}, {action.help}" for action in self._actions if not action.option_strings]
            problem = f"unexpected argument '{argument}': write only {' and '.join(places) or 'options'}"
            if option_forms := [
                f"{action.option_strings[-1]} {action.metavar}"
                for action in self._actions
                if action.metavar and action.option_strings
            ]:
                problem += f"; write the value of an option after it: {', '.join(option_forms)}"
        self.error(problem)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command, write its result, and return the exit status.

    The status is the command's own, or 2 for arguments that cannot be used. `arguments` are those after the program's
    name; None for those of the process. Raises `SystemExit` for an unknown or incomplete option, for `--help`, and for
    an error of the command. Ctrl-C and SIGTERM raise `KeyboardInterrupt`, once the command has removed its temporary
    files.
    """
    parser = _Parser(
        prog="queryeval",
        description="Works on suites and reports of pytest-queryeval.",
        epilog="`queryeval --help` lists the commands, `queryeval COMMAND --help` describes one",
    )
    parser.add_argument("--version", action="version", version=f"pytest-queryeval {version('pytest-queryeval')}")
    subparsers = parser.add_subparsers(required=True, metavar="COMMAND", parser_class=_CommandParser)
    for name in COMMANDS:
        try:
            summary = COMMANDS[name].summary
        except QueryEvalError as error:  # a command that cannot be imported leaves the others usable
            summary = str(error).replace("%", "%%")
        subparsers.add_parser(name, command=name, help=summary)
    sigterm_handler = SigtermHandler()
    garbage_collection = GarbageCollectionThrottle()
    try:
        options, unknown = parser.parse_known_args(arguments)  # imports the module of the command
        if unknown:
            options.parser.refuse(unknown[0])
        sigterm_handler.begin()
        garbage_collection.begin()
        with redacted_output():
            result = options.run(options)
        write_result(result, as_json=options.json)
    except QueryEvalError as error:
        problems = error.problems if isinstance(error, SuiteError) else (error,)
        parser.exit(USAGE_ERROR, "".join(f"{log_line(str(problem))}\n" for problem in problems))
    finally:
        garbage_collection.end()
        sigterm_handler.end()
    return int(result.status)
