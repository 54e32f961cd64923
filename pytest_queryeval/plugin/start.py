"""The start of a run: options are checked, and the state is put in the stash."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_queryeval.plugin import COLLECTOR, RUN
from pytest_queryeval.plugin.collector import ReportCollector
from pytest_queryeval.plugin.run import Run


def start(config: pytest.Config) -> None:
    """Create the run; on the controller also the collector, and pytest's own junit.xml beside a folder of reports."""
    config.stash[RUN] = Run(config)
    if hasattr(config, "workerinput"):
        return
    config.stash[RUN].overrides.check()
    targets = _targets(config)
    config.stash[COLLECTOR] = ReportCollector(config, targets)
    config.pluginmanager.register(config.stash[COLLECTOR], "queryeval-report")
    folder = next(filter(_is_folder, targets), None)
    if folder is not None and not config.option.collectonly and not getattr(config.option, "xmlpath", None):
        config.option.xmlpath = str(folder / "junit.xml")


def _is_folder(target: Path) -> bool:
    from pytest_queryeval.reports import is_folder

    return is_folder(target)


def _targets(config: pytest.Config) -> list[Path]:
    """Where reports go: paths of the command line from where pytest was called, of the ini file from its folder."""
    given = config.getoption("queryeval_report")
    base = config.invocation_params.dir if given else (config.inipath or config.rootpath / "ini").parent
    targets = [base / text for text in given or config.getini("queryeval_report") if text]
    if targets:
        from pytest_queryeval.errors import QueryEvalError
        from pytest_queryeval.reports import check_target

        try:
            for target in targets:
                check_target(target)
        except QueryEvalError as error:
            raise pytest.UsageError(f"--queryeval-report: {error}") from error
    return targets
