"""Suites under names that are not collected, and node ids of cases that a suite does not have."""

from __future__ import annotations

import re
import warnings
from collections.abc import Generator, Iterable, Iterator
from itertools import islice
from pathlib import Path

import pytest
from pluggy import PluginValidationError

from pytest_queryeval.plugin.stash import RUN, SUFFIXES

MAX_BYTES = 100_000  # read of a file
_KEYS = (re.compile(rb"^kind\s*:", re.MULTILINE), re.compile(rb"^cases\s*:", re.MULTILINE))


class Misnamed:
    """Explains how to rename such a file if the command line names it, or a folder with nothing else to collect.

    Otherwise pytest would only say that it collected nothing. It also suggests the case of a suite that a node id may
    mean.
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
        cases = suites.cases.get(suites.relative(session.config.invocation_params.dir / path), [])
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
    from pytest_queryeval.plugin.misuse import hook_misuse

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
