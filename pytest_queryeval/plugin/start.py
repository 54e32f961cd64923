"""The start of a run: check the options, and put the state in the stash."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_queryeval.plugin.collector import LastFailed, ReportCollector
from pytest_queryeval.plugin.folding import ErrorFolding
from pytest_queryeval.plugin.garbage import GarbageCollection
from pytest_queryeval.plugin.interruption import Interruption
from pytest_queryeval.plugin.misnamed import Misnamed
from pytest_queryeval.plugin.run import Run
from pytest_queryeval.plugin.stash import COLLECTOR, RUN
from pytest_queryeval.plugin.terminal import VerdictPrinter

if TYPE_CHECKING:
    from pytest_queryeval.runs.targets import ReportTargets


def start(config: pytest.Config) -> None:
    """Create the run; on the controller, register the collector too, and put junit.xml in a folder of reports."""
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
    """Return the targets of reports, None without any option; raise a usage error for an invalid one.

    Paths are relative to the folder in which pytest was started, or to that of the ini file. If a target is a folder,
    pytest writes its junit.xml there, unless the command line has a path for it.
    """
    names = [name for name in run.option_values.report or () if name]
    is_used = any(value is not None for name, value in vars(config.option).items() if name.startswith("queryeval_"))
    if not names and not is_used and not run.option_values.stop:
        return None
    from pytest_queryeval.core.errors import QueryEvalError
    from pytest_queryeval.reports import JUNIT, is_folder
    from pytest_queryeval.runs.targets import report_targets

    is_setting = config.getoption("queryeval_report") is None
    folder = (config.inipath or config.rootpath / "ini").parent if is_setting else config.invocation_params.dir
    layout = run.option_values.excel_layout
    try:
        run.options.check()
        targets = report_targets(names, option="--queryeval-report", folder=folder, layout=layout)
    except QueryEvalError as error:
        raise pytest.UsageError(str(error)) from error
    report_folder = next(filter(is_folder, targets.paths), None)
    if report_folder is not None and not config.option.collectonly and not getattr(config.option, "xmlpath", None):
        config.option.xmlpath = str(report_folder / JUNIT)
    return targets
