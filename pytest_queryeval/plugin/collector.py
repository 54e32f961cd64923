"""The controller's side of a run: results arrive with the tests' reports; at the end it evaluates gates and reports."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_queryeval.plugin.stash import RUN, is_listing, is_suite_node
from pytest_queryeval.plugin.terminal import MIN_VERBOSITY

if TYPE_CHECKING:
    from pytest_queryeval.core.case_report import CaseReport
    from pytest_queryeval.core.report import Environment, Report
    from pytest_queryeval.plugin.run import Run, WorkerSummary
    from pytest_queryeval.results.case_store import CasesByNodeid
    from pytest_queryeval.runs.report import ReportTargets

PROGRESS_SECONDS = 30.0
# The exit statuses of complete runs.
WHOLE = (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.NO_TESTS_COLLECTED)


class ReportCollector:
    """Keeps the result of each case as it arrives, and makes the report at the end of the session.

    If a case ran several times, its last result counts.
    """

    def __init__(self, config: pytest.Config, targets: ReportTargets | None) -> None:
        self.config = config
        self.targets = targets
        self.cases: dict[str, CaseReport] | CasesByNodeid = {}  # a dict as long as it is empty, which needs no import
        self._passed: set[str] = set()  # node ids
        self.report: Report | None = None
        self.has_suites = False
        self.is_interrupted = False
        self.written: list[Path] = []
        self.problems: list[str] = []
        self.remarks: list[str] = []
        self._worker_summaries: list[WorkerSummary] = []
        self._to_run: set[str] = set()
        self._started = self._last_progress = time.monotonic()

    def pytest_sessionstart(self) -> None:
        """Wrap the hook by which pytest writes its junit.xml, so that gates are added and errors do not end the run."""
        from pytest_queryeval.plugin.junit import junit_plugin

        if junit := junit_plugin(self.config):
            write, manager = junit.pytest_sessionfinish, self.config.pluginmanager
            junit.pytest_sessionfinish = lambda session: self._write_junit(session, write)
            manager.unregister(junit)
            manager.register(junit)  # pytest looks up hooks at registration

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Count the cases that will run in this process."""
        self._start([item.nodeid for item in session.items])

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        """Count the cases that a worker has collected; workers collect the same cases."""
        self._start(ids)

    def _start(self, nodeids: list[str]) -> None:
        self._to_run.update(filter(is_suite_node, nodeids))
        self._started = self._last_progress = time.monotonic()

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Keep the summary that a worker sent at its end; none if it crashed."""
        if summary := (getattr(node, "workeroutput", None) or {}).get("queryeval"):
            self._worker_summaries.append(summary)

    @pytest.hookimpl(optionalhook=True)
    def pytest_handlecrashitem(self, report: pytest.TestReport) -> None:
        """Replace the text of a case whose worker of pytest-xdist ended by a sentence with a remedy."""
        if is_suite_node(report.nodeid):
            worker = f"worker {report.node.gateway.id}"
            report.longrepr = f"the {worker} of pytest-xdist ended while it ran this case: run the case with -n 0"

    @pytest.hookimpl(trylast=True)  # pytest ends its line about the test first
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep the result that came with a test's report, and show progress.

        A result without `queryeval` is made for a failed teardown and for a crashed worker.
        """
        if result := getattr(report, "queryeval", None):
            from pytest_queryeval.core.case_report import is_strict_xpass

            earlier_run = self.cases.get(report.nodeid)
            if earlier_run is not None and (
                earlier_run["outcome"] in ("failed", "error") or is_strict_xpass(earlier_run)
            ):
                result["reruns"] = earlier_run.get("reruns", 0) + 1
            self.keep(report.nodeid, result)
            del report.queryeval  # pytest keeps its reports until the end of the run
        elif report.failed and is_suite_node(report.nodeid):
            earlier_case = self.cases.get(report.nodeid)
            run = self.config.stash[RUN]
            self.keep(
                report.nodeid, crashed_case(run, report) if earlier_case is None else _with_error(earlier_case, report)
            )
        self._show_progress()

    def keep(self, nodeid: str, case: CaseReport) -> None:
        """Keep the result of a case instead of an earlier result; end the run if results cannot be stored."""
        from pytest_queryeval.core.errors import ReportError
        from pytest_queryeval.results.case_store import CasesByNodeid

        self.cases = self.cases or CasesByNodeid()
        try:
            self.cases[nodeid] = case
        except ReportError as error:
            pytest.exit(str(error))
        if case["outcome"] == "passed":
            self._passed.add(nodeid)
        else:
            self._passed.discard(nodeid)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Make the report with its gates, write it to all targets, and set the exit status.

        Does nothing if no suite was collected and no report requested, or if pytest only listed tests.
        """
        summaries = [*self._worker_summaries, self.config.stash[RUN].worker_summary()]
        if misuse := next((summary["misuse"] for summary in self._worker_summaries if summary["misuse"]), None):
            self.problems.append(f"ERROR: {misuse}")
            session.exitstatus = pytest.ExitCode.USAGE_ERROR
        has_suites = bool(self.cases or any(summary["has_suites"] for summary in summaries))
        is_usage_error = session.exitstatus == pytest.ExitCode.USAGE_ERROR  # which never replaces an earlier report
        is_wanted = not is_usage_error and bool(has_suites or self.config.getoption("queryeval_report"))
        if is_listing(self.config) or not (self.cases or is_wanted):
            return
        if not any(summary["selected"] for summary in summaries):  # else predictions of deselected cases would be named
            self.remarks = list(dict.fromkeys(sentence for summary in summaries for sentence in summary["remarks"]))
        self.has_suites = has_suites
        self.is_interrupted |= session.exitstatus == pytest.ExitCode.INTERNAL_ERROR
        from pytest_queryeval.plugin.junit import record_in_junit

        self.report = self._aggregate(session, summaries)
        record_in_junit(self.config, self.report)
        if self.targets is not None:
            files = self.targets.write(self.report)
            self.written, self.problems = files.paths, [*self.problems, *files.problems]
        self._set_status(session, self.report)

    @pytest.hookimpl(tryfirst=True)
    def pytest_unconfigure(self) -> None:
        """Free the results, or pytest would search all of them for garbage when its own hook collects it."""
        self.cases, self.report = {}, None

    def _write_junit(self, session: pytest.Session, write: Callable[[], None]) -> None:
        """Call `write`, by which pytest writes its junit.xml, and add the gates to the file.

        If the file cannot be written, the error becomes a problem of the run, which still ends with its verdict.
        """
        from pytest_queryeval.plugin.junit import add_gates

        path = Path(session.config.option.xmlpath)
        try:
            write()
            if self.report is not None:
                add_gates(self.config, self.report, self.targets)
        except OSError as error:
            if self.report is None:
                raise
            if error.filename is None and path.is_file():  # opened, and written in part
                with suppress(OSError):
                    path.unlink()
            self.problems.append(f"report {path} cannot be written: {error.strerror or error}")
            self._set_status(session, self.report)

    def _set_status(self, session: pytest.Session, report: Report) -> None:
        """Fail a run that pytest would pass if its verdict is bad, or if a file could not be written."""
        from pytest_queryeval.results.verdict import verdict

        is_good = session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)
        if is_good and (self.problems or verdict(report).is_faulty):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """Remember an interruption by the user; `Interrupted`, as after -x, is pytest's own."""
        self.is_interrupted |= excinfo.type.__name__ != "Interrupted"

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the summary of the report, remarks, written files, problems, and annotations for GitHub Actions.

        With --no-summary, or under -qq, only problems, and annotations under -qq, are printed.
        """
        if self.report is None and not self.problems:
            return
        from pytest_queryeval.text.formatting import log_line

        verbosity = self.config.option.verbose
        if self.report is not None and verbosity >= MIN_VERBOSITY and not self.config.option.no_summary:
            from pytest_queryeval.reports.summary import summary_lines

            terminalreporter.section("query evaluation")
            width, folder = shutil.get_terminal_size().columns, Path.cwd()
            for line, markup in summary_lines(self.report, width=width, verbosity=verbosity):
                terminalreporter.write_line(log_line(line), **markup)
            for line in self.remarks:
                terminalreporter.write_line(log_line(line))
            for path in self.written:
                display_path = path.relative_to(folder) if path.is_relative_to(folder) else path
                terminalreporter.write_line(log_line(f"report: {display_path}"))
        for fault in self.problems:
            terminalreporter.write_line(log_line(fault), red=True)
        if self.report is not None and self.targets is not None and not self.config.option.no_summary:
            for line in self.targets.commands(self.report, self.config.rootpath):
                terminalreporter.write_line(line)

    def _aggregate(self, session: pytest.Session, summaries: list[WorkerSummary]) -> Report:
        from pytest_queryeval.results.gates import merge_gates
        from pytest_queryeval.runs.report import report_of_run

        run, option = self.config.stash[RUN], self.config.option
        cases = [] if isinstance(self.cases, dict) else self.cases.cases
        is_cut = bool(session.shouldstop or session.shouldfail) or session.exitstatus not in WHOLE
        collected = {path: number for summary in summaries for path, number in summary["collected"].items()}
        gates = merge_gates(summary["gates"] for summary in summaries)
        if gates:
            from pytest_queryeval.plugin.run import collected_below
            from pytest_queryeval.runs.suites import with_case_counts

            files_below = partial(collected_below, session=session)
            gates = with_case_counts(gates, run.suites, cases, collected, files_below)
        engines = dict(sorted(pair for summary in summaries for pair in summary["engine_versions"].items()))
        environment: Environment = {"pytest": pytest.__version__, "engines": engines}
        if reruns := getattr(option, "reruns", None):  # of pytest-rerunfailures
            environment["reruns"] = reruns
        if len(self._worker_summaries) > 1:
            environment["workers"] = len(self._worker_summaries)
        return report_of_run(
            cases,
            gates,
            run.options,
            environment=environment,
            requested_paths=run.requested_paths(summaries),
            collected=collected,
            unreadable_files=[path for summary in summaries for path in summary["unreadable_files"]],
            selected=any(summary["selected"] for summary in summaries),
            stopped=is_cut or not self._to_run <= self.cases.keys(),
            interrupted=self.is_interrupted,
            stop=run.early_stop,
            spend=run.spend,
        )

    def _show_progress(self) -> None:
        """Print the number of cases done and the seconds left, at most once in PROGRESS_SECONDS.

        Nothing is printed under -qq.
        """
        now = time.monotonic()
        if now - self._last_progress < PROGRESS_SECONDS or not self.cases or self.config.option.verbose < MIN_VERBOSITY:
            return
        terminal = self.config.pluginmanager.get_plugin("terminalreporter")
        if terminal is None:
            return
        self._last_progress = now
        case_count = len(self.cases)
        seconds_left = (now - self._started) / case_count * max(len(self._to_run) - case_count, 0)
        terminal.ensure_newline()
        if self.config.get_terminal_writer().width_of_current_line:  # dots under -q and with workers
            terminal.line("")
        counts = f"{case_count:,} of {len(self._to_run):,} cases, {len(self._passed):,} passed"
        terminal.write_line(f"queryeval: {counts}, about {seconds_left:.0f} s left")


def _with_error(case: CaseReport, report: pytest.TestReport) -> CaseReport:
    """Return the report of an evaluated case that failed later, as in a teardown: an error without scores."""
    from pytest_queryeval.plugin.items import error_message
    from pytest_queryeval.text.formatting import utf8_safe

    return {
        **case,
        "outcome": "error",
        "scores": {},
        "violations": [],
        "depends_on_tie": False,
        "message": utf8_safe(error_message(report)),
    }


def crashed_case(run: Run, report: pytest.TestReport) -> CaseReport:
    """Return the report of a case whose worker crashed: an error, with what its suite says about the case.

    If the suite cannot be read, only its node id is known.
    """
    from pytest_queryeval.core.errors import SuiteError
    from pytest_queryeval.results.case_json import case_json, unknown_case

    path, _, name = report.nodeid.partition("::")
    with suppress(SuiteError):
        case = next((case for case in run.suites.read(run.config.rootpath / path).cases if case.id == name), None)
        if case is not None:
            return case_json(case, nodeid=report.nodeid, path=path, outcome="error", message=str(report.longrepr))
    return unknown_case(nodeid=report.nodeid, message=str(report.longrepr))


if TYPE_CHECKING:
    from pytest_queryeval.plugin.collector import ReportCollector


class LastFailed:
    """Adds cases that missed under `on_miss: xfail` to the tests that failed last, so that --lf and --ff run them."""

    def __init__(self, collector: ReportCollector) -> None:
        self._collector = collector

    @pytest.hookimpl(trylast=True)  # after pytest's own, which leaves out expected failures
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Add the missed cases to pytest's cache of failed tests."""
        cache = getattr(session.config, "cache", None)  # gone under -p no:cacheprovider
        missed = {nodeid: True for nodeid, case in self._collector.cases.items() if case["outcome"] == "missed"}
        if cache is not None and missed:
            cache.set("cache/lastfailed", cache.get("cache/lastfailed", {}) | missed)
