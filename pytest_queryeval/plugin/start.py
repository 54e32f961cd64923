"""The start of a run: options are checked, and the state is put in the stash."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_queryeval.plugin import COLLECTOR, RUN
from pytest_queryeval.plugin.collector import ReportCollector
from pytest_queryeval.plugin.run import Run

STEP_SUMMARY = "github"
GATES = {"on": True, "true": True, "yes": True, "1": True, "off": False, "false": False, "no": False, "0": False}


def start(config: pytest.Config) -> None:
    """Create the run; on the controller also the collector, and pytest's own junit.xml beside a folder of reports."""
    config.stash[RUN] = Run(config)
    if hasattr(config, "workerinput"):
        return
    config.stash[RUN].overrides.check()
    names, base = _named_reports(config)
    targets = _targets([base / name for name in names if name != STEP_SUMMARY])
    step_summary = _step_summary() if STEP_SUMMARY in names else None
    judges_gates = _judges_gates(config)
    config.stash[COLLECTOR] = ReportCollector(config, targets, step_summary=step_summary, judges_gates=judges_gates)
    config.pluginmanager.register(config.stash[COLLECTOR], "queryeval-report")
    folder = next(filter(_is_folder, targets), None)
    if folder is not None and not config.option.collectonly and not getattr(config.option, "xmlpath", None):
        config.option.xmlpath = str(folder / "junit.xml")


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
        from pytest_queryeval.errors import QueryEvalError
        from pytest_queryeval.reports import check_target

        try:
            for target in targets:
                check_target(target)
        except QueryEvalError as error:
            raise pytest.UsageError(f"--queryeval-report: {error}") from error
    return targets


def _step_summary() -> Path:
    """The file of the step summary of GitHub Actions; a usage error where there is none."""
    from pytest_queryeval.errors import QueryEvalError
    from pytest_queryeval.reports.step_summary import step_summary_file

    try:
        return step_summary_file()
    except QueryEvalError as error:
        raise pytest.UsageError(f"--queryeval-report: {error}") from error


def _judges_gates(config: pytest.Config) -> bool:
    """What the ini file says of gates; a word that is neither on nor off is a usage error."""
    word = str(config.getini("queryeval_gates")).strip()
    if word.lower() not in GATES:
        raise pytest.UsageError(f"queryeval_gates: expected on or off, found '{word}'")
    return GATES[word.lower()]
