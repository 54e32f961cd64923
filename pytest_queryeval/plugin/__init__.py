"""The pytest plugin. This module is imported at every start of pytest, so it imports nothing but pytest at first."""

from __future__ import annotations

import sys
from collections.abc import Generator, Sequence
from functools import partial
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest

from pytest_queryeval.plugin.stash import RUN, SUFFIXES, is_case_item, is_listing, is_suite_node

if TYPE_CHECKING:
    import warnings

PREFIX = f"{__name__.partition('.')[0]}."


class PlainImports:
    """Finds the modules of this package before pytest's finder, because they need no rewriting of asserts.

    pytest rewrites all modules of a package with a plugin, and does so at every start if it cannot write its cache, as
    in a container or with PYTHONDONTWRITEBYTECODE.
    """

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: object = None) -> ModuleSpec | None:
        """Return the module spec that Python finds without pytest; None for a module of any other package."""
        return PathFinder.find_spec(name, path) if name.startswith(PREFIX) else None


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of runs; the settings of suites are in their YAML files."""
    from pytest_queryeval.plugin.options import add_options

    add_options(parser)


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Add the hook `pytest_queryeval_predict`; pytest calls `pytest_addhooks` before all other hooks.

    Put the finder of this package before pytest's own until the run ends; with `--assert=plain` pytest has no finder.
    """
    finders = cast("list[object]", sys.meta_path)
    config = pluginmanager.get_plugin("pytestconfig")
    if config is not None and pluginmanager.rewrite_hook in finders:
        finder = PlainImports()
        finders.insert(finders.index(pluginmanager.rewrite_hook), finder)
        config.add_cleanup(lambda: finders.remove(finder))
    from pytest_queryeval.plugin import options

    pluginmanager.add_hookspecs(options)


@pytest.hookimpl(wrapper=True)
def pytest_load_initial_conftests(args: list[str], parser: pytest.Parser) -> Generator[None, object, object]:
    """Raise a usage error for unknown hooks, and for unknown options that start with `--queryeval-`."""
    try:
        result = yield
    except Exception as error:
        from pytest_queryeval.plugin.misuse import hook_misuse

        if (misuse := hook_misuse(error)) is not None:
            raise misuse from error
        raise
    if any(argument.startswith("--queryeval-") for argument in args):
        from pytest_queryeval.plugin.misuse import check_options

        check_options(args, parser)
    return result


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Create the run's state, and on the controller the collector of results."""
    from pytest_queryeval.plugin.start import start

    start(config)


def pytest_unconfigure(config: pytest.Config) -> None:
    """Close the engines and predictors of the run, and drop its state."""
    if run := config.stash.get(RUN, None):
        run.close()
        del config.stash[RUN]


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect a suite file; None for other files, hidden files, and files that are collected through another path too.

    Some systems create a hidden file next to every file.
    """
    if not file_path.name.endswith(SUFFIXES) or file_path.name.startswith("."):
        return None
    from pytest_queryeval.plugin.items import SuiteFile
    from pytest_queryeval.plugin.run import is_collected_directly

    if not is_collected_directly(file_path, parent.config):
        return None
    return SuiteFile.from_parent(parent, path=file_path)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Add the suites that are broken links, so that they are reported as unreadable; pytest leaves them out."""
    report = yield
    if isinstance(collector, pytest.Directory) and report.passed:
        is_ignored = partial(collector.ihook.pytest_ignore_collect, config=collector.config)
        suites = (path for path in sorted(collector.path.iterdir()) if path.name.endswith(SUFFIXES))
        links = (path for path in suites if not path.exists() and not is_ignored(collection_path=path))
        report.result += filter(None, (pytest_collect_file(path, collector) for path in links))
    return report


class AfterSelection:
    """Hooks that run once all other plugins have selected and ordered the cases, as for --lf and --ff.

    Of hooks with equal options, pytest wraps that of the last registered plugin around all others.
    """

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> Generator[None, object, object]:
        """Deselect cases beyond a sample or a limit; raise a usage error for options that do not fit the cases."""
        result = yield
        config.stash[RUN].apply_limits(items)
        config.stash[RUN].check_collected(items)
        return result


def pytest_sessionstart(session: pytest.Session) -> None:
    """Register `AfterSelection` behind pytest's own plugins, which are registered by now."""
    session.config.pluginmanager.register(AfterSelection(), "queryeval-after-selection")


def pytest_deselected(items: list[pytest.Item]) -> None:
    """Remember that cases were deselected."""
    if items:
        items[0].config.stash[RUN].selected = True


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> Generator[None, object, object]:
    """Start the predictions before the first test, and start no more after the last test.

    Nothing starts if pytest only lists tests, or collection has failed.
    """
    run, option = session.config.stash[RUN], session.config.option
    is_broken = session.testsfailed and not option.continue_on_collection_errors
    if not is_listing(session.config) and not is_broken and any(map(is_case_item, session.items)):
        run.prepare(session.items)
    try:
        return (yield)
    finally:
        run.stop()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Attach the case's result to the test's report as `queryeval`, and remove secrets from the report.

    pytest-xdist sends the attribute to the controller.
    """
    report = yield
    if is_case_item(item):
        report.queryeval = item.queryeval_result(report, call)  # type: ignore[attr-defined]  # xdist carries attributes
    return report


@pytest.hookimpl(tryfirst=True)
def pytest_warning_recorded(warning_message: warnings.WarningMessage, nodeid: str) -> None:
    """Remove secrets from a warning of a case or outside tests, before pytest prints it at the end.

    pytest's warning about an unknown setting that starts with `queryeval_` gets a similar setting.
    """
    if not nodeid and str(warning_message.message).startswith("Unknown config option: queryeval_"):
        from pytest_queryeval.plugin.misuse import add_nearest_setting

        add_nearest_setting(warning_message)
    if not nodeid or is_suite_node(nodeid):
        from pytest_queryeval.text.redaction import redact

        text = str(warning_message.message)
        if redact(text) != text:
            warning_message.message, warning_message.category = UserWarning(redact(text)), UserWarning


def pytest_sessionfinish(session: pytest.Session) -> None:
    """In a worker of pytest-xdist, send the summary of the process to the controller."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["queryeval"] = session.config.stash[RUN].worker_summary()
