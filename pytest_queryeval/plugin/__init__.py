"""The pytest plugin. This module is imported at every start of pytest, so it imports nothing but pytest at first."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_queryeval.plugin.stash import RUN, SUFFIXES, is_case, is_case_item

if TYPE_CHECKING:
    import warnings


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of runs; the settings of suites are in their YAML files."""
    from pytest_queryeval.plugin.options import add_options

    add_options(parser)


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Add the hook with which plugins predict; pytest calls `pytest_addhooks` before all other hooks."""
    from pytest_queryeval.plugin.imports import import_plainly

    import_plainly(pluginmanager)
    from pytest_queryeval.plugin import hookspecs

    pluginmanager.add_hookspecs(hookspecs)


@pytest.hookimpl(wrapper=True)
def pytest_load_initial_conftests(args: list[str], parser: pytest.Parser) -> Generator[None, object, object]:
    """Raise a usage error for unknown hooks and options with the prefix of this plugin."""
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
    """Set up the state of this process, and on the controller the collector of results."""
    from pytest_queryeval.plugin.start import start

    start(config)


def pytest_unconfigure(config: pytest.Config) -> None:
    """Close the engines and predictors of the run."""
    if run := config.stash.get(RUN, None):
        run.close()
        del config.stash[RUN]


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect suite files, but not hidden ones, which some systems create beside every file."""
    if not file_path.name.endswith(SUFFIXES) or file_path.name.startswith("."):
        return None
    from pytest_queryeval.plugin.items import SuiteFile

    return SuiteFile.from_parent(parent, path=file_path)


class AfterSelection:
    """Hooks that run once all other plugins have selected and ordered the cases, also those of --lf and --ff.

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
    """Register the hooks that have to come after those of pytest's own plugins, which are already registered."""
    session.config.pluginmanager.register(AfterSelection(), "queryeval-after-selection")


def pytest_deselected(items: list[pytest.Item]) -> None:
    """Remember that cases were deselected."""
    if items:
        items[0].config.stash[RUN].selected = True


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> Generator[None, object, object]:
    """Start predictions before the first test, and stop them after the last one."""
    run, option = session.config.stash[RUN], session.config.option
    is_broken = session.testsfailed and not option.continue_on_collection_errors
    if not option.collectonly and not is_broken and any(map(is_case_item, session.items)):
        run.prepare(session.items)
    try:
        return (yield)
    finally:
        run.stop()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Attach the result to the test's report, which xdist sends to the controller, and hide secrets in it."""
    report = yield
    if is_case_item(item):
        report.queryeval = item.queryeval_result(report, call)  # type: ignore[attr-defined]  # xdist carries attributes
    return report


@pytest.hookimpl(tryfirst=True)
def pytest_warning_recorded(warning_message: warnings.WarningMessage, nodeid: str) -> None:
    """Remove secrets from warnings of cases, and from warnings outside tests, which pytest prints at the end.

    That of pytest about an unknown setting with the prefix of this plugin gets the nearest one.
    """
    if not nodeid and str(warning_message.message).startswith("Unknown config option: queryeval_"):
        from pytest_queryeval.plugin.misuse import add_nearest_setting

        add_nearest_setting(warning_message)
    if not nodeid or is_case(nodeid):
        from pytest_queryeval.plugin.secrets import hide_in_warning

        hide_in_warning(warning_message)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Send the summary of a worker to the controller."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["queryeval"] = session.config.stash[RUN].worker_summary()
