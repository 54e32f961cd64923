"""The start of a run: check the options, and put the state in the stash."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_queryeval.plugin.collector import ReportCollector
from pytest_queryeval.plugin.folding import ErrorFolding
from pytest_queryeval.plugin.last_failed import LastFailed
from pytest_queryeval.plugin.misnamed import Misnamed
from pytest_queryeval.plugin.run import Run
from pytest_queryeval.plugin.stash import COLLECTOR, RUN
from pytest_queryeval.plugin.terminal import VerdictPrinter
from pytest_queryeval.plugin.termination import Termination

if TYPE_CHECKING:
    from pytest_queryeval.results.gates import GateMode

STEP_SUMMARY = "github"
GATE_MODES: dict[str, GateMode] = {
    **dict.fromkeys(("complete", "on", "true", "yes", "1"), "complete"),
    "selection": "selection",
    **dict.fromkeys(("off", "false", "no", "0"), "off"),
}


def start(config: pytest.Config) -> None:
    """Create the run; on the controller also the collector, and pytest's own junit.xml in a folder of reports."""
    run = config.stash[RUN] = Run(config)
    config.pluginmanager.register(Termination(config), "queryeval-termination")
    config.pluginmanager.register(Misnamed(), "queryeval-misnamed")
    if hasattr(config, "workerinput"):
        return
    run.overrides.check()
    gates = str(config.getini("queryeval_gates")).strip()
    if gates.lower() not in GATE_MODES:
        raise pytest.UsageError(f"queryeval_gates: expected complete, selection or off, found '{gates}'")
    targets, step_summary = _report_targets(config)
    collector = ReportCollector(config, targets, step_summary=step_summary, gate_mode=GATE_MODES[gates.lower()])
    config.stash[COLLECTOR] = collector
    config.pluginmanager.register(collector, "queryeval-report")
    config.pluginmanager.register(ErrorFolding(collector), "queryeval-folding")
    config.pluginmanager.register(LastFailed(collector), "queryeval-last-failed")
    config.pluginmanager.register(VerdictPrinter(collector), "queryeval-verdict")


def _report_targets(config: pytest.Config) -> tuple[list[Path], Path | None]:
    """Return the files and folders to write reports to, and the file of the step summary of GitHub Actions, if any.

    Paths are relative to where pytest was called, or to the folder of the ini file. Anything that no report can go to
    is a usage error. Where one is a folder, pytest writes its junit.xml there unless another path is given.
    """
    given = config.getoption("queryeval_report")
    folder = config.invocation_params.dir if given else (config.inipath or config.rootpath / "ini").parent
    names = [name for name in given or config.getini("queryeval_report") if name]
    if not names:
        return [], None
    from pytest_queryeval.core.errors import QueryEvalError
    from pytest_queryeval.reports import JUNIT, check_target, is_folder
    from pytest_queryeval.reports.excel import LAYOUTS

    layout = config.getini("queryeval_excel_layout")
    if layout not in LAYOUTS:
        raise pytest.UsageError(f"queryeval_excel_layout: expected {' or '.join(LAYOUTS)}, found '{layout}'")
    targets = [folder / name for name in names if name != STEP_SUMMARY]
    step_summary = None
    try:
        for target in targets:
            check_target(target)
        if STEP_SUMMARY in names:
            from pytest_queryeval.reports.step_summary import step_summary_file

            step_summary = step_summary_file()
    except QueryEvalError as error:
        raise pytest.UsageError(f"--queryeval-report: {error}") from error
    report_folder = next(filter(is_folder, targets), None)
    if report_folder is not None and not config.option.collectonly and not getattr(config.option, "xmlpath", None):
        config.option.xmlpath = str(report_folder / JUNIT)
    return targets, step_summary
