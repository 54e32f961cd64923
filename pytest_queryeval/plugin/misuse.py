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
    """Return a usage error for an unknown hook of this plugin, or a hook with an unknown argument.

    None for other errors.
    """
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
    """Add a similar setting of this plugin to pytest's warning about an unknown setting, if there is one."""
    from pytest_queryeval.core.errors import nearest

    text = str(warning.message).rstrip()
    name = text.rpartition(" ")[2].removeprefix(SETTING)
    if near := nearest(name, [option.name for option in OPTIONS if option.setting]):
        warning.message = warning.category(f"{text}: did you mean '{SETTING}{near}'?")


def check_options(arguments: Sequence[str], parser: pytest.Parser) -> None:
    """Raise a usage error for the first unknown option that starts with `--queryeval-`.

    The message has a similar option, or says that the name is a setting of ini files.
    """
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
    """Warns of files that have the keys of a suite but not its suffix, if they are why nothing is collected.

    The command line names such a file, or a folder with nothing else to collect. It also suggests a case for a node id
    whose suite has no such case.
    """

    def __init__(self) -> None:
        self._files: list[Path] = []

    def pytest_collect_file(self, file_path: Path) -> None:
        """Remember YAML files whose name is not that of a suite."""
        if file_path.suffix in (".yaml", ".yml") and not file_path.name.endswith(SUFFIXES):
            self._files.append(file_path)

    @pytest.hookimpl(wrapper=True)
    def pytest_collection(self, session: pytest.Session) -> Generator[None, object, object]:
        """Add remedies to pytest's usage error; if there is no error, warn about the first misnamed suite."""
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
        """Yield the remembered files in folders of the command line in which nothing was collected."""
        for argument in session.config.args:
            folder = session.config.invocation_params.dir / argument.partition("::")[0]
            if not any(item.path.is_relative_to(folder) for item in session.items):
                yield from (path for path in self._files if path.is_relative_to(folder))


def _near_cases(session: pytest.Session) -> Iterator[str]:
    """Yield a message for each node id of the command line whose suite is read but has no such case."""
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
    """Raise the usage error of `hook_misuse`, if it finds one; otherwise return."""
    if (misuse := hook_misuse(error)) is not None:
        raise misuse from error


def _is_suite(path: Path) -> bool:
    """Return whether the beginning of a file has the keys `kind` and `cases`; False if it cannot be read."""
    try:
        with path.open("rb") as file:
            text = file.read(MAX_BYTES)
    except OSError:  # pytest says what is wrong with it
        return False
    return all(key.search(text) for key in _KEYS)


def _remedy(path: Path) -> str:
    problem = f"{path.name} looks like a suite, but only files named *.queryeval.yaml are collected"
    return f"{problem}: rename it to {path.stem.strip('.')}.queryeval{path.suffix}"
