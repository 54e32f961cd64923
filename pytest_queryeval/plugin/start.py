"""The start of a run: check the options, put the state in the stash, and register the hooks that concern the process.

These hooks make garbage collection rarer while suites are collected and cases run, and handle Ctrl-C and SIGTERM as
`core/process.py` describes it.
"""

from __future__ import annotations

import gc
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_queryeval.plugin.collector import LastFailed, ReportCollector
from pytest_queryeval.plugin.misuse import Misnamed
from pytest_queryeval.plugin.run import Run
from pytest_queryeval.plugin.stash import COLLECTOR, RUN, SUFFIXES, is_listing, is_suite_node
from pytest_queryeval.plugin.terminal import ErrorFolding, VerdictPrinter

if TYPE_CHECKING:
    from pytest_queryeval.core.process import GarbageCollectionThrottle, SigtermHandler
    from pytest_queryeval.runs.report import ReportTargets


def start(config: pytest.Config) -> None:
    """Create the run, store it in the stash, and register the plugin's hooks for this process.

    On the controller, register the collector and the printers too. Raise a usage error for invalid options of reports.
    """
    run = config.stash[RUN] = Run(config)
    config.pluginmanager.register(Interruption(config), "queryeval-interruption")
    config.pluginmanager.register(Misnamed(), "queryeval-misnamed")
    config.pluginmanager.register(GarbageCollection(config), "queryeval-garbage")
    if hasattr(config, "workerinput"):
        return
    collector = config.stash[COLLECTOR] = ReportCollector(config, _report_targets(config, run))
    config.pluginmanager.register(collector, "queryeval-report")
    config.pluginmanager.register(ErrorFolding(collector), "queryeval-folding")
    config.pluginmanager.register(LastFailed(collector), "queryeval-last-failed")
    config.pluginmanager.register(VerdictPrinter(collector), "queryeval-verdict")
    if run.option_values.stop and run.options.stop_seed is not None:
        from pytest_queryeval.plugin.stopping import StopWhenDecided

        config.pluginmanager.register(StopWhenDecided(run, collector), "queryeval-stop")


def _report_targets(config: pytest.Config, run: Run) -> ReportTargets | None:
    """Return the targets of reports; None if no option of this plugin is used.

    Paths are relative to the folder in which pytest was started, or to that of the ini file. If a target is a folder,
    pytest writes its junit.xml there, unless the command line has a path for it. Raises a usage error for an invalid
    option.
    """
    names = run.option_values.report or ()
    is_used = any(value is not None for name, value in vars(config.option).items() if name.startswith("queryeval_"))
    if not names and not is_used and not run.option_values.stop and not run.option_values.spend:
        return None
    from pytest_queryeval.core.errors import QueryEvalError
    from pytest_queryeval.reports import JUNIT, is_folder
    from pytest_queryeval.runs.report import report_targets

    is_setting = config.getoption("queryeval_report") is None
    folder = (config.inipath or config.rootpath / "ini").parent if is_setting else config.invocation_params.dir
    layout = run.option_values.excel_layout
    try:
        run.options.check()
        targets = report_targets(
            names, option="--queryeval-report", folder=folder, layout=layout, baseline=run.options.baseline_path
        )
    except QueryEvalError as error:
        name, colon, problem = str(error).partition(":")
        setting = name.removeprefix("--").replace("-", "_")
        place = setting if config.getoption(setting, name) is None else name
        raise pytest.UsageError(f"{place}{colon}{problem}") from error
    report_folder = next(filter(is_folder, targets.paths), None)
    if report_folder is not None and not is_listing(config) and not getattr(config.option, "xmlpath", None):
        config.option.xmlpath = str(report_folder / JUNIT)
    return targets


class Interruption:
    """Makes SIGTERM and Ctrl-C end a run with suites in order, with its reports."""

    def __init__(self, config: pytest.Config) -> None:
        self._run = config.stash[RUN]
        self._sigterm: SigtermHandler | None = None  # until there is a case
        self._finishing: pytest.Session | None = None

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Handle SIGTERM from now on if suites were collected."""
        self._begin([item.nodeid for item in session.items])

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: Sequence[str]) -> None:
        """Handle SIGTERM from now on if a worker has collected suites."""
        self._begin(ids)

    def _begin(self, nodeids: Sequence[str]) -> None:
        if self._sigterm is None and any(map(is_suite_node, nodeids)):
            from pytest_queryeval.core.process import SigtermHandler

            # The handler of a worker does nothing; SIG_IGN would be inherited by the programs that it starts.
            self._sigterm = SigtermHandler((lambda: None) if self._run.is_worker else self._interrupt)
            self._sigterm.begin()

    @pytest.hookimpl(tryfirst=True)
    def pytest_keyboard_interrupt(self) -> None:
        """In a worker, close engines and predictors while there is time."""
        if self._run.is_worker:
            self._run.close()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Generator[None]:
        """Note that the session is ending: SIGTERM then sets the exit status and does not interrupt the reports."""
        self._finishing = session
        return (yield)

    @pytest.hookimpl(trylast=True)  # once the run has stopped what it started
    def pytest_unconfigure(self) -> None:
        """Restore the earlier handler of SIGTERM."""
        self._end()

    def _end(self) -> None:
        if self._sigterm is not None:
            self._sigterm.end()

    def _interrupt(self) -> None:
        self._end()
        if self._finishing is None:
            raise KeyboardInterrupt("SIGTERM")
        self._finishing.exitstatus = pytest.ExitCode.INTERRUPTED


class GarbageCollection:
    """Makes Python's garbage collection rare in this process from the first suite to the end of the session."""

    def __init__(self, config: pytest.Config) -> None:
        self._throttle: GarbageCollectionThrottle | None = None  # until there is a suite
        # After the cleanups of pytest's plugins, which collect all garbage: to restore thresholds before that would
        # make Python collect it once more.
        config.add_cleanup(self._end)

    @pytest.hookimpl(tryfirst=True)  # before the first suite imports what it needs
    def pytest_collect_file(self, file_path: Path) -> None:
        """Make garbage collection rare from now on, if the file is a suite."""
        if file_path.name.endswith(SUFFIXES):
            self._begin()

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: Sequence[str]) -> None:
        """Make garbage collection rare if workers have collected suites: this process receives their reports."""
        if any(map(is_suite_node, ids)):
            self._begin()

    def pytest_collection_finish(self) -> None:
        """Leave modules and cases out of later garbage collections, because they live until the process ends.

        The garbage collection of Python's exit takes a third of the CPU of a small run.
        """
        if self._throttle is not None:
            gc.freeze()

    def _begin(self) -> None:
        if self._throttle is None:
            from pytest_queryeval.core.process import GarbageCollectionThrottle

            self._throttle = GarbageCollectionThrottle()
            self._throttle.begin()

    def _end(self) -> None:
        if self._throttle is not None:
            self._throttle.end()
