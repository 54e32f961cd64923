"""The start of a run: options are checked, and the state is put in the stash."""

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
    """Create the run; on the controller also the collector, and pytest's own junit.xml beside a folder of reports."""
    config.stash[RUN] = Run(config)
    config.pluginmanager.register(Termination(config), "queryeval-termination")
    config.pluginmanager.register(Misnamed(), "queryeval-misnamed")
    if hasattr(config, "workerinput"):
        return
    config.stash[RUN].overrides.check()
    names, base = _named_reports(config)
    targets = _targets([base / name for name in names if name != STEP_SUMMARY])
    step_summary = _step_summary() if STEP_SUMMARY in names else None
    gate_mode = _gate_mode(config)
    config.stash[COLLECTOR] = ReportCollector(config, targets, step_summary=step_summary, gate_mode=gate_mode)
    config.pluginmanager.register(config.stash[COLLECTOR], "queryeval-report")
    config.pluginmanager.register(ErrorFolding(config.stash[COLLECTOR]), "queryeval-folding")
    config.pluginmanager.register(LastFailed(config.stash[COLLECTOR]), "queryeval-last-failed")
    config.pluginmanager.register(VerdictPrinter(config.stash[COLLECTOR]), "queryeval-verdict")
    folder = next(filter(_is_folder, targets), None)
    if folder is not None and not config.option.collectonly and not getattr(config.option, "xmlpath", None):
        from pytest_queryeval.reports import JUNIT

        config.option.xmlpath = str(folder / JUNIT)


def _is_folder(target: Path) -> bool:
    from pytest_queryeval.reports import is_folder

    return is_folder(target)


def _named_reports(config: pytest.Config) -> tuple[list[str], Path]:
    """The reports that are named, and where paths start: where pytest was called, or the folder of the ini file."""
    given = config.getoption("queryeval_report")
    base = config.invocation_params.dir if given else (config.inipath or config.rootpath / "ini").parent
    return [name for name in given or config.getini("queryeval_report") if name], base


def _targets(targets: list[Path]) -> list[Path]:
    """Files and folders that reports can go to; anything else is a usage error."""
    if targets:
        from pytest_queryeval.core.errors import QueryEvalError
        from pytest_queryeval.reports import check_target

        try:
            for target in targets:
                check_target(target)
        except QueryEvalError as error:
            raise pytest.UsageError(f"--queryeval-report: {error}") from error
    return targets


def _step_summary() -> Path:
    """The file of the step summary of GitHub Actions; a usage error where there is none."""
    from pytest_queryeval.core.errors import QueryEvalError
    from pytest_queryeval.reports.step_summary import step_summary_file

    try:
        return step_summary_file()
    except QueryEvalError as error:
        raise pytest.UsageError(f"--queryeval-report: {error}") from error


def _gate_mode(config: pytest.Config) -> GateMode:
    """What the ini file says of gates; any other word is a usage error."""
    word = str(config.getini("queryeval_gates")).strip()
    if word.lower() not in GATE_MODES:
        raise pytest.UsageError(f"queryeval_gates: expected complete, selection or off, found '{word}'")
    return GATE_MODES[word.lower()]
