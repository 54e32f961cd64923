"""Verdict and missed gates at the end of the terminal output, and in junit.xml."""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pytest_queryeval.core.report import Report
    from pytest_queryeval.plugin.collector import ReportCollector

MIN_VERBOSITY = -1  # below it, as under -qq, only missed gates are printed


class VerdictPrinter:
    """Prints what comes after pytest's own output, so its hooks wrap those of the terminal reporter."""

    def __init__(self, collector: ReportCollector) -> None:
        self._collector = collector

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> Generator[None, object, object]:
        """Print the missed gates below pytest's own lines of failures and errors."""
        result = yield
        if self._collector.report is not None and not terminalreporter.no_summary:
            from pytest_queryeval.reports.summary import missed_gate_lines
            from pytest_queryeval.text.escaping import log_line

            for line, markup in missed_gate_lines(self._collector.report):
                terminalreporter.write_line(log_line(line), **markup)
        return result

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Generator[None, object, object]:
        """Print the verdict last, if the run had suites and a summary is to be shown."""
        result = yield
        option, terminal = session.config.option, session.config.pluginmanager.get_plugin("terminalreporter")
        report = self._collector.report if self._collector.has_suites else None
        if terminal is None or report is None:  # its options are gone with the terminal
            return result
        if option.verbose >= MIN_VERBOSITY and not option.no_summary:
            from pytest_queryeval.reports.summary import verdict_line
            from pytest_queryeval.text.escaping import log_line

            line, markup = verdict_line(report, self._collector.faults)
            terminal.write_line(log_line(line), **markup)
        return result


def junit_plugin(config: pytest.Config) -> Any:
    """Return the plugin with which pytest writes its junit.xml; None if it writes none."""
    plugins = config.pluginmanager.get_plugins()
    return next((plugin for plugin in plugins if hasattr(plugin, "add_global_property")), None)


def record_in_junit(config: pytest.Config, report: Report) -> None:
    """Add properties to the test suite in junit.xml, which pytest writes later, as the session ends."""
    from pytest_queryeval.reports.sections import errata_text
    from pytest_queryeval.results.gates.text import gate_line
    from pytest_queryeval.results.verdict import verdict
    from pytest_queryeval.text.escaping import utf8_safe
    from pytest_queryeval.text.redaction import redact

    if (junit := junit_plugin(config)) is None:
        return
    junit.add_global_property("queryeval.verdict", utf8_safe(redact(verdict(report).line.removeprefix("queryeval: "))))
    if reviewed := errata_text(report):
        junit.add_global_property("queryeval.reviewed", reviewed)
    for gate in report["gates"]:
        if gate["ok"] is False:
            junit.add_global_property("queryeval.gate", utf8_safe(redact(gate_line(gate))))
