"""Mistakes in a conftest.py or on the command line that pytest reports by a traceback, or without a remedy."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from warnings import WarningMessage

import pytest
from pluggy import PluginValidationError

from pytest_queryeval.core.errors import did_you_mean, nearest
from pytest_queryeval.documents.document import file_at
from pytest_queryeval.plugin.hookspecs import pytest_queryeval_predict
from pytest_queryeval.runs.option_table import OPTIONS

HOOKS = {hook.__name__: hook for hook in (pytest_queryeval_predict,)}
OPTION = "--queryeval-"
SETTING = "queryeval_"


def hook_misuse(error: Exception) -> pytest.UsageError | None:
    """Return a usage error for an unknown hook of this plugin, or one with unknown arguments; None for other errors."""
    if not isinstance(error, PluginValidationError):
        return None
    for name in dir(error.plugin):
        # As in pytest, other attributes are not read: they may be properties that raise.
        hook = getattr(error.plugin, name) if name.startswith("pytest_queryeval") else None
        if not inspect.isroutine(hook):
            continue
        code = inspect.unwrap(hook).__code__
        place = f"{file_at(code.co_filename).shown}:{code.co_firstlineno}"
        if name not in HOOKS:
            return pytest.UsageError(f"{place}: unknown hook '{name}'{did_you_mean(name, HOOKS)}")
        arguments = [*inspect.signature(HOOKS[name]).parameters]
        for argument in inspect.signature(hook).parameters:
            if argument not in arguments:
                written = f"def {name}({', '.join(arguments)})"
                problem = f"{place}: the hook '{name}' has no argument '{argument}': write `{written}`"
                return pytest.UsageError(problem)
    return None


def add_nearest_setting(warning: WarningMessage) -> None:
    """Add to pytest's warning about an unknown setting which one of this plugin is meant."""
    text = str(warning.message).rstrip()
    name = text.rpartition(" ")[2].removeprefix(SETTING)
    if near := nearest(name, [option.name for option in OPTIONS if option.setting]):
        warning.message = warning.category(f"{text}: did you mean '{SETTING}{near}'?")


def check_options(arguments: Sequence[str], parser: pytest.Parser) -> None:
    """Raise a usage error for an option with the prefix of this plugin that neither it nor another plugin adds."""
    _, unknown_arguments = parser.parse_known_and_unknown_args(arguments)
    for argument in unknown_arguments:
        if argument.startswith(OPTION):
            name = argument.removeprefix(OPTION).partition("=")[0]
            destinations = vars(parser.parse_known_args([]))
            names = [
                place.removeprefix("queryeval_").replace("_", "-")
                for place in destinations
                if place.startswith("queryeval_")
            ]
            near = nearest(name, names)
            hint = f"did you mean '{OPTION}{near}'?" if near else "`pytest --help` lists all options"
            if setting := next((option.name for option in OPTIONS if option.flag == name), ""):  # that is not an option
                hint = f"it is a setting of pytest.ini, for one run `-o queryeval_{setting}=…`"
            raise pytest.UsageError(f"unknown option '{OPTION}{name}': {hint}")
