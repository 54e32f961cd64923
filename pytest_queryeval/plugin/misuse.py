"""Mistakes that pytest reports by a traceback, or without a remedy.

These are mistakes in a conftest.py or on the command line, suites under names that are not collected, and node ids of
cases that a suite does not have. Imported at every start of pytest, so it imports little.
"""

from __future__ import annotations

import inspect
import re
import warnings
from collections.abc import Generator, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from warnings import WarningMessage

import pytest
from pluggy import PluginValidationError

from pytest_queryeval.plugin.options import pytest_queryeval_predict
from pytest_queryeval.plugin.stash import RUN, SUFFIXES
from pytest_queryeval.runs.option_table import OPTIONS

HOOKS = {hook.__name__: hook for hook in (pytest_queryeval_predict,)}
OPTION = "--queryeval-"
SETTING = "queryeval_"
MAX_BYTES = 100_000  # read of a file
_KEYS = (re.compile(rb"^kind\s*:", re.MULTILINE), re.compile(rb"^cases\s*:", re.MULTILINE))


def hook_misuse(error: Exception) -> pytest.UsageError | None:
    """Return a usage error for an unknown hook of this plugin, or one with unknown arguments; None for other errors."""
    if not isinstance(error, PluginValidationError):
        return None
    from pytest_queryeval.core.errors import did_you_mean
    from pytest_queryeval.documents.document import file_at

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
    from pytest_queryeval.core.errors import nearest

    text = str(warning.message).rstrip()
    name = text.rpartition(" ")[2].removeprefix(SETTING)
    if near := nearest(name, [option.name for option in OPTIONS if option.setting]):
        warning.message = warning.category(f"{text}: did you mean '{SETTING}{near}'?")


def check_options(arguments: Sequence[str], parser: pytest.Parser) -> None:
    """Raise a usage error for an option with the prefix of this plugin that neither it nor another plugin adds."""
    from pytest_queryeval.core.errors import nearest

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


class Misnamed:
    """Explains how to rename a file that is a suite by its keys only.

    The command line names it, or a folder with nothing else to collect, of which pytest would only
    say that it collected nothing. It also suggests the case of a suite that a node id may mean.
    """

    def __init__(self) -> None:
        self._files: list[Path] = []

    def pytest_collect_file(self, file_path: Path) -> None:
        """Remember the files that may be suites."""
        if file_path.suffix in (".yaml", ".yml") and not file_path.name.endswith(SUFFIXES):
            self._files.append(file_path)

    @pytest.hookimpl(wrapper=True)
    def pytest_collection(self, session: pytest.Session) -> Generator[None, object, object]:
        """Add the remedy to the error of pytest, or else warn about the first such file."""
        run = session.config.stash[RUN]
        try:
            session.config.pluginmanager.check_pending()  # at once: without its hook, a suite may not be readable
        except PluginValidationError as error:  # those of other plugins are left to pytest, once it has loaded all
            _raise_misuse(error)
        try:
            result = yield
        except pytest.UsageError as error:
            requested_suites = [path for path in self._files if session.isinitpath(path) and _is_suite(path)]
            error.args += (*map(_remedy, requested_suites), *_near_cases(session))
            if hasattr(session.config, "workerinput") and not run.repeats_warnings:  # pytest-xdist hides the error
                _warn_of_first(requested_suites)
            raise
        except PluginValidationError as error:
            _raise_misuse(error)
            raise
        if self._files and not (session.testsfailed or run.selected or run.repeats_warnings):
            _warn_of_first(filter(_is_suite, self._in_empty_folders(session)))
        return result

    def _in_empty_folders(self, session: pytest.Session) -> Iterator[Path]:
        """Yield the files in those folders of the command line in which nothing was collected."""
        for argument in session.config.args:
            folder = session.config.invocation_params.dir / argument.partition("::")[0]
            if not any(item.path.is_relative_to(folder) for item in session.items):
                yield from (path for path in self._files if path.is_relative_to(folder))


def _near_cases(session: pytest.Session) -> Iterator[str]:
    """Yield a message for each node id of the command line whose suite has no such case."""
    from pytest_queryeval.core.errors import did_you_mean

    suites = session.config.stash[RUN].suites
    for argument in session.config.args:
        path, _, id_ = argument.partition("::")
        cases = suites.cases.get(suites.relative_path(session.config.invocation_params.dir / path), [])
        if cases and id_ and id_ not in (ids := [case.id for case in cases]):
            yield f"{path}: no case '{id_}'{did_you_mean(id_, ids)}"


def _warn_of_first(paths: Iterable[Path]) -> None:
    from pytest_queryeval.core.errors import QueryEvalWarning

    for path in islice(paths, 1):
        try:
            warnings.warn_explicit(_remedy(path), QueryEvalWarning, str(path), 1)
        except QueryEvalWarning as warning:  # where filters make it an error
            raise pytest.UsageError(str(warning)) from None


def _raise_misuse(error: PluginValidationError) -> None:
    """Raise a usage error for an unknown hook with the prefix of this plugin, or a hook with unknown arguments."""
    if (misuse := hook_misuse(error)) is not None:
        raise misuse from error


def _is_suite(path: Path) -> bool:
    """Return whether a file has the keys of a suite."""
    try:
        with path.open("rb") as file:
            text = file.read(MAX_BYTES)
    except OSError:  # pytest says what is wrong with it
        return False
    return all(key.search(text) for key in _KEYS)


def _remedy(path: Path) -> str:
    problem = f"{path.name} looks like a suite, but only files named *.queryeval.yaml are collected"
    return f"{problem}: rename it to {path.stem.strip('.')}.queryeval{path.suffix}"
