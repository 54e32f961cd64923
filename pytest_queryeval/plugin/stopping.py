"""A run that stops once its gates are decided, as pytest runs it."""

from __future__ import annotations

from collections.abc import Generator
from functools import partial

import pytest

from pytest_queryeval.core.errors import QueryEvalError
from pytest_queryeval.plugin.collector import ReportCollector
from pytest_queryeval.plugin.run import Run, collected_below
from pytest_queryeval.plugin.stash import is_case_item, is_listing
from pytest_queryeval.runs.evaluate import NamedCase
from pytest_queryeval.runs.stopping import early_stop, not_run_report
from pytest_queryeval.text.formatting import log_line


class StopWhenDecided:
    """Runs all other tests first, then the cases in random order, and leaves out cases once all gates are decided."""

    def __init__(self, run: Run, collector: ReportCollector) -> None:
        self._run = run
        self._collector = collector
        self._to_run: set[str] = set()

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Put the cases in random order behind all other tests, and create the early stop of the run.

        Raises a usage error if no gate can be decided early. Does nothing if pytest only lists tests.
        """
        items_by_nodeid = {
            item.nodeid: item for item in session.items if is_case_item(item)
        }  # also under --keep-duplicates
        if not items_by_nodeid or self._run.misuse or is_listing(session.config):
            return
        if session.testsfailed and not session.config.option.continue_on_collection_errors:
            return
        suites = self._run.suites
        items = sorted(items_by_nodeid.values(), key=lambda item: suites.options.sort_key(item.nodeid))
        session.items[:] = [*(item for item in session.items if not is_case_item(item)), *items]
        cases = [NamedCase(item.case, item.nodeid, suites.relative_path(item.case.location.path)) for item in items]
        try:
            early = early_stop(cases, suites, partial(collected_below, session=session))
        except QueryEvalError as error:
            raise pytest.UsageError(str(error)) from error
        if early is not None and early.needs_all:
            self._run.show_line(f"queryeval: all cases run: {'; '.join(map(log_line, early.needs_all))}")
        self._to_run = {named_case.nodeid for named_case in cases if named_case.case.skip is None}
        self._run.early_stop = early

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Count the case that just ran.

        Once all gates are decided, report the remaining cases as not run and take them out of the session.
        """
        result, early = (yield), self._run.early_stop
        if early is None or item.nodeid not in self._to_run:
            return result
        self._to_run.remove(item.nodeid)
        if item.nodeid in self._collector.cases:
            early.add(self._collector.cases[item.nodeid])
        session = item.session
        if early.is_decided and not (session.shouldstop or session.shouldfail):
            self._run.stop()
            for case_item in session.items:
                if is_case_item(case_item) and case_item.nodeid in self._to_run:
                    path = self._run.suites.relative_path(case_item.case.location.path)
                    self._collector.keep(
                        case_item.nodeid, not_run_report(NamedCase(case_item.case, case_item.nodeid, path))
                    )
            # pytest runs the items of this list.
            session.items[:] = [case_item for case_item in session.items if case_item.nodeid not in self._to_run]
        return result
