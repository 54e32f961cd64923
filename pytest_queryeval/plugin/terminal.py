"""What the terminal shows next to the output of pytest: verdict, missed gates, errors folded.

Equal errors are shown once, and differences in colours; files stay complete.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pytest

from pytest_queryeval.plugin.stash import is_suite_node

if TYPE_CHECKING:
    from pytest_queryeval.core.case_report import CaseReport
    from pytest_queryeval.plugin.collector import ReportCollector


MIN_VERBOSITY = -1  # below it, as under -qq, only missed gates are printed


class VerdictPrinter:
    """Prints missed gates and the verdict behind pytest's own output, so its hooks wrap the terminal reporter's."""

    def __init__(self, collector: ReportCollector) -> None:
        self._collector = collector

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> Generator[None, object, object]:
        """Print the missed gates below pytest's own lines of failures and errors."""
        result = yield
        if self._collector.report is not None and not terminalreporter.no_summary:
            from pytest_queryeval.reports.summary import missed_gate_lines
            from pytest_queryeval.text.formatting import log_line

            for line, markup in missed_gate_lines(self._collector.report):
                terminalreporter.write_line(log_line(line), **markup)
        return result

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Generator[None, object, object]:
        """Print the verdict as the last line, if the run had suites and pytest shows a summary."""
        result = yield
        option, terminal = session.config.option, session.config.pluginmanager.get_plugin("terminalreporter")
        report = self._collector.report if self._collector.has_suites else None
        if terminal is None or report is None:  # its options are gone with the terminal
            return result
        if option.verbose >= MIN_VERBOSITY and not option.no_summary:
            from pytest_queryeval.reports.summary import verdict_line
            from pytest_queryeval.text.formatting import log_line

            line, markup = verdict_line(report, self._collector.problems)
            terminal.write_line(log_line(line), **markup)
        return result


class ErrorFolding:
    """Shows equal errors of cases once while pytest prints its sections.

    Other plugins, counts and files get all errors.
    """

    def __init__(self, collector: ReportCollector) -> None:
        self._collector = collector
        self._swapped: dict[str, list[Any]] = {}  # reports to exchange with those of `TerminalReporter.stats`

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> Generator[None, None, None]:
        """Replace reports by folded and coloured reports while pytest prints its sections; restore them afterwards.

        Folding is off under -v.
        """
        if not self._collector.cases:
            return (yield)
        stats = terminalreporter.stats
        # For each failure pytest searches all reports of passed setups and teardowns for captured output.
        self._swapped[""] = [report for report in stats.get("", ()) if report.sections]
        if self._collector.config.option.verbose < 1:
            self._swapped["error"] = _fold(stats.get("error", ()), self._collector.cases)
        if (writer := self._collector.config.get_terminal_writer()).hasmarkup:
            self._swapped["failed"] = [_colour(report, writer) for report in stats.get("failed", ())]
        self._swap(stats)
        try:
            return (yield)
        finally:
            self._swap(stats)

    @pytest.hookimpl(wrapper=True, trylast=True, specname="pytest_terminal_summary")
    def pytest_terminal_summary_of_plugins(
        self, terminalreporter: pytest.TerminalReporter
    ) -> Generator[None, None, None]:
        """Restore all reports while other plugins print their sections."""
        self._swap(terminalreporter.stats)
        try:
            return (yield)
        finally:
            self._swap(terminalreporter.stats)

    def _swap(self, stats: dict[str, list[Any]]) -> None:
        for name, reports in self._swapped.items():
            if name in stats:
                stats[name], self._swapped[name] = reports, stats[name]


def _colour(report: Any, writer: Any) -> Any:
    """Return a copy of the report of a failed case with colours in its text; any other report unchanged."""
    if not is_suite_node(report.nodeid) or not hasattr(report.longrepr, "reprtraceback"):
        return report
    from pytest_queryeval.plugin.failure import colour_lines

    coloured_report = copy.copy(report)
    coloured_report.longrepr = copy.deepcopy(report.longrepr)
    traceback = coloured_report.longrepr.reprtraceback
    traceback.reprentries = [_ColouredLines(list(colour_lines(traceback.reprentries[0].lines, writer.markup)))]
    return coloured_report


class _ColouredLines:
    """Coloured lines instead of a traceback entry, whose text older versions of pytest highlight as Python."""

    style = "value"

    def __init__(self, lines: Sequence[str]) -> None:
        self._lines = lines

    def toterminal(self, writer: Any) -> None:
        """Write the lines unchanged; pytest calls this method of an entry."""
        for line in self._lines:
            writer.line(line)


def _fold(reports: Sequence[Any], cases: Mapping[str, CaseReport]) -> list[Any]:
    """Return the reports to show: of cases with the same error only a copy of the first report.

    The copy says how many cases have the error; other reports are unchanged.
    """
    from pytest_queryeval.results.verdict import shared_errors
    from pytest_queryeval.text.formatting import pluralize

    nodeids = dict.fromkeys(report.nodeid for report in reports if getattr(report, "when", "") == "setup")
    first_cases = shared_errors(cases[nodeid] for nodeid in nodeids if nodeid in cases)
    sharing = Counter(first_cases.values())
    shown_reports = []
    for report in reports:
        is_case = report.nodeid in first_cases and report.when == "setup"
        number = sharing[report.nodeid] if is_case else 1
        if number > 1:
            shown_report = copy.copy(report)
            shown_report.longrepr = copy.deepcopy(report.longrepr)
            shown_report.longrepr.addsection(f"same error in {pluralize(number - 1, 'more case')}", "")
            crash = shown_report.longrepr.reprcrash  # which the short summary shows
            crash.message = f"{number:,} cases: {crash.message}"
            shown_reports.append(shown_report)
        elif number:
            shown_reports.append(report)
    return shown_reports
