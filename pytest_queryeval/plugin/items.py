"""Suite files and their cases as pytest collects and runs them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import is_dataclass
from pathlib import Path
from sys import intern
from typing import Any

import pytest

from pytest_queryeval.core.case_report import CaseReport
from pytest_queryeval.core.errors import QueryEvalError, QueryEvalWarning, SuiteError
from pytest_queryeval.core.model import Case, CaseResult, Outcome
from pytest_queryeval.core.table import Table
from pytest_queryeval.evaluation import CaseProgress, evaluate_case, fault_text
from pytest_queryeval.evaluation.prediction_call import SpendLimitReached
from pytest_queryeval.evaluation.session import UNKNOWN_STATES
from pytest_queryeval.languages import difficulty_of
from pytest_queryeval.plugin.options import JUNIT_PROPERTIES
from pytest_queryeval.plugin.stash import RUN, is_listing
from pytest_queryeval.results.case_json import case_json, result_json
from pytest_queryeval.results.verdict import headline
from pytest_queryeval.suites.case_tables import TO_YAML
from pytest_queryeval.suites.variables import MissingExtraError
from pytest_queryeval.text.formatting import log_line, one_line, utf8_safe
from pytest_queryeval.text.redaction import redact

PROPERTY = "queryeval."
EMPTY_GOLD = "the gold answer has no rows, so any query that returns nothing passes"
STRICT_XPASS = "[XPASS(strict)]"  # as pytest reports it
IDLE_GOLD = "the gold query changes and returns nothing, so any statement that does neither passes"


class ThresholdMissed(AssertionError):  # noqa: N818 - an outcome, not an error
    """A case whose scores do not meet its thresholds: a failure for pytest, not an error."""

    def __init__(self, result: CaseResult) -> None:
        super().__init__(headline(result))
        self.result = result


class SuiteFile(pytest.File):
    """A suite file as pytest collects it.

    An unprintable path gets an escaped name and node id, because terminals and junit.xml show them.
    """

    def __init__(self, *, path: Path, parent: pytest.Collector, **kwargs: Any) -> None:
        relative_path = Path(os.path.relpath(path, parent.config.rootpath)).as_posix()
        if not relative_path.isprintable():
            kwargs |= {"name": log_line(path.name), "nodeid": log_line(relative_path)}
        super().__init__(path=path, parent=parent, **kwargs)

    def collect(self) -> Iterator[pytest.Item]:
        """Yield an item for each case; raise `CollectError` with every problem of the file.

        A suite whose extra is not installed is skipped.
        """
        try:
            cases = self.config.stash[RUN].suites.load(self.path)
        except MissingExtraError as error:
            pytest.skip(str(error), allow_module_level=True)
        except (SuiteError, QueryEvalWarning) as error:
            raise self.CollectError(str(error)) from None
        for case in cases:
            # From a text, pytest reads what is in brackets as parameters, as it does where it stores node ids.
            yield CaseItem.from_parent(self, name=case.id, nodeid=f"{self.nodeid}::{case.id}", case=case)


class CaseItem(pytest.Item):
    """A case as pytest runs it: `setup` evaluates it and may raise errors, `runtest` compares scores with thresholds.

    Its kind, tags and difficulty become markers.
    """

    def __init__(self, *, case: Case, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.case = case
        self.result: CaseResult | None = None
        self.scored: CaseReport | None = None
        self.progress = CaseProgress()
        self.is_fault = False
        self.is_left_out = False
        run = self.config.stash[RUN]
        # A difficulty that is computed from gold's text takes a parse, which only -m and -k need while collecting.
        difficulty = difficulty_of(case) if run.selects_by_marker else case.difficulty
        for name in dict.fromkeys((case.settings.kind, *case.tags, *((difficulty,) if difficulty else ()))):
            self.add_marker(run.marker(name))
        if case.conversation and isinstance(name := case.metadata.get("name"), str):
            self.extra_keyword_matches.add(name)
        if case.skip is not None:
            self.add_marker(pytest.mark.skip(reason=one_line(case.skip)))
        if case.xfail is not None:
            self.add_marker(pytest.mark.xfail(reason=one_line(case.xfail), raises=ThresholdMissed))

    def setup(self) -> None:
        """Execute and score the case, and keep the result for `runtest`.

        Errors of gold, source or predictor make an error of the test. A case whose call the spend limit does not allow
        is skipped. A withdrawn case never fails here.
        """
        self.result, self.scored, self.progress = None, None, CaseProgress()
        self.is_fault = self.is_left_out = False
        self.user_properties[:] = [pair for pair in self.user_properties if not pair[0].startswith(PROPERTY)]
        if is_listing(self.config):  # as under --setup-plan
            return
        fault = ""
        try:
            result = evaluate_case(self.case, self.config.stash[RUN].session, self.progress)
            if result.shown.details.get("empty_gold"):
                problem = EMPTY_GOLD if isinstance(result.shown.gold.answer, Table) else IDLE_GOLD
                remedy = f": {TO_YAML}" if self.case.row else ""
                # Filters may make it an error.
                self.warn(QueryEvalWarning(f"{problem} (`allow_empty: true` if that is meant){remedy}"))
        except SpendLimitReached as reached:
            if self.case.withdrawal:
                return
            self.is_left_out, self.progress = True, CaseProgress()
            raise pytest.skip.Exception(str(reached), _use_item_location=True) from None
        except (QueryEvalError, QueryEvalWarning) as error:
            if self.case.withdrawal:
                return
            fault = fault_text(self.case, error)
            self.is_fault = True
        if fault:  # outside the `except` block, or pytest would print both exceptions
            pytest.fail(fault, pytrace=False)
        self.result = result
        if self.config.getini(JUNIT_PROPERTIES):
            self._add_properties(result)

    def _add_properties(self, result: CaseResult) -> None:
        scores = result.scores.items()
        self.user_properties += [(intern(PROPERTY + name), value) for name, value in scores if value is not None]
        if self.case.review is not None:
            self.user_properties.append((f"{PROPERTY}review", self.case.review.decision))
        if result.cause is not None:
            self.user_properties.append((f"{PROPERTY}cause", " ".join(edit.label for edit in result.cause.edits)))

    def runtest(self) -> None:
        """Raise `ThresholdMissed` if scores miss thresholds, or xfail under `on_miss: xfail`; skip a withdrawn case."""
        if self.case.withdrawal:
            raise pytest.skip.Exception(one_line(self.case.withdrawal), _use_item_location=True)
        if self.result is None or not self.result.fails:
            return
        if self.case.settings.on_miss == "xfail" and not self.config.getoption("runxfail", default=True):
            # Not pytest.xfail(), whose traceback takes pytest 60 ms to format and is not shown.
            raise pytest.xfail.Exception(headline(self.result), pytrace=False)
        raise ThresholdMissed(self.result)

    def teardown(self) -> None:
        """Free the result, because pytest keeps every item until the end of the run."""
        self.result, self.scored, self.progress = None, None, CaseProgress()

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Return the text of a failure: that of `failure_lines` for missed thresholds, otherwise pytest's own.

        It has the form that pytest keeps under xdist and in JUnit: one entry and a headline.
        """
        if isinstance(excinfo.value, pytest.xfail.Exception) and not excinfo.value.pytrace:
            return str(excinfo.value)  # all that pytest would show of it, with `--xfail-tb`
        if not isinstance(excinfo.value, ThresholdMissed):
            return super().repr_failure(excinfo, style)
        from pytest_queryeval.plugin.failure import failure_lines

        text: Any = excinfo.getrepr(style="value", chain=False, tbfilter=False)
        result = excinfo.value.result
        text.reprtraceback.reprentries[0].lines = list(failure_lines(result, self._case_report(result, "failed")))
        self._point_at_case(text.reprcrash, str(excinfo.value))
        text.chain = [(text.reprtraceback, text.reprcrash, None)]
        return text

    def _point_at_case(self, crash: Any, message: str) -> None:
        """Set the message and the case's location on pytest's `reprcrash`, which summaries and CI services show."""
        location = self.case.location
        crash.path, crash.lineno, crash.message = utf8_safe(str(location.path)), location.line, message

    def reportinfo(self) -> tuple[Path, int, str]:
        """Return the file and line (from 0) of the case, and its name, the headline of a failure.

        A name with a dot gets a space at its end. Where a node id ends with this name, `pytest -v` writes `::` for each
        dot in it, as for a method of a class; no node id ends with a space.
        """
        headline = f"{self.name} " if "." in self.name else self.name
        location = self.case.location
        path = self.path if self.case.suite in (None, location.path) else Path.cwd() / location.path
        path = path if str(path).isprintable() else Path(log_line(str(path)))
        return path, max(location.line - 1, 0), headline

    def queryeval_result(self, report: pytest.TestReport, call: pytest.CallInfo[None]) -> CaseReport | None:
        """Return the report of the case once its outcome is known; None in phases that do not decide it.

        Removes secrets from pytest's own report, and makes a fault an error even under a user's xfail marker.
        """
        hide_secrets(report)
        intended = (pytest.skip.Exception, pytest.xfail.Exception)
        has_error = report.when == "setup" and not isinstance(call.excinfo and call.excinfo.value, intended)
        if has_error and hasattr(report, "wasxfail"):  # by a marker of the user, which expects failures
            report.outcome = "failed"
            del report.wasxfail
        if report.when == "teardown" or (report.when == "setup" and report.passed):
            return None
        outcome = self._outcome(report)
        if self.is_fault:
            self._point_at_case(report.longrepr.reprcrash, report.longreprtext)  # type: ignore[union-attr]
        if self.result is not None and report.when != "setup":  # hooks of other plugins may fail after ours
            return self._case_report(self.result, outcome, "" if self.result.fails else error_message(report))
        run, message = self.config.stash[RUN], error_message(report)
        return case_json(
            self.case,
            nodeid=self.nodeid,
            path=run.suites.relative_path(self.case.location.path),
            outcome=outcome,
            message=message,
            progress=self.progress,
            source_states=UNKNOWN_STATES if outcome in ("skipped", "not_run") else run.session.source_states(self.case),
        )

    def _case_report(self, result: CaseResult, outcome: Outcome, message: str = "") -> CaseReport:
        """Return the report of a scored case with an outcome.

        It is made once, since a failure's text needs it earlier.
        """
        if self.scored is None:
            run = self.config.stash[RUN]
            self.scored = result_json(
                result,
                nodeid=self.nodeid,
                path=run.suites.relative_path(self.case.location.path),
                outcome=outcome,
                message=message,
                source_states=run.session.source_states(self.case),
            )
        return {**self.scored, "outcome": outcome}

    def _outcome(self, report: pytest.TestReport) -> Outcome:
        if report.when == "setup":
            return "not_run" if self.is_left_out else "skipped" if report.skipped else "error"
        if _strict_reason(report) is not None:
            return "xpassed"
        if report.failed:
            return "failed"
        if report.skipped and self.case.withdrawal:
            return "skipped"
        if report.skipped:
            return "missed" if self.case.xfail is None else "xfailed"
        return "xpassed" if hasattr(report, "wasxfail") else "passed"


def _strict_reason(report: pytest.TestReport) -> str | None:
    """Return the reason of the strict xfail mark that fails a test which passed; None for any other test."""
    if not isinstance(report.longrepr, str) or not report.longrepr.startswith(STRICT_XPASS):
        return None
    return report.longrepr.removeprefix(STRICT_XPASS).strip()


def error_message(report: pytest.TestReport) -> str:
    """Return why a test did not pass: the reason of a skip, or the error with its traceback; empty if it passed."""
    if report.longrepr is None:
        return ""
    if (reason := _strict_reason(report)) is not None:
        return f"passed, though marked xfail{f' ({reason})' if reason else ''}: remove the mark"
    if isinstance(report.longrepr, tuple):
        return str(report.longrepr[2]).removeprefix("Skipped: ")
    text = report.longreprtext
    crash = getattr(report.longrepr, "reprcrash", None)  # a traceback begins with the arguments of pytest's functions
    return text if crash is None or text.startswith(crash.message) else f"{crash.message}\n\n{text}"


def hide_secrets(report: pytest.TestReport) -> None:
    """Remove secrets from a test's report, in place, before it goes to the terminal, to JUnit or to another process."""
    if report.sections:
        report.sections = [(title, redact(text)) for title, text in report.sections]
    if {type(value) for _, value in report.user_properties} - {float}:  # pytest keeps every report
        report.user_properties = [(name, _clean(value, set())) for name, value in report.user_properties]
    if report.longrepr is not None:
        report.longrepr = _clean(report.longrepr, set())
    if hasattr(report, "wasxfail"):
        report.wasxfail = redact(report.wasxfail)


def _clean(value: Any, cleaned: set[int]) -> Any:
    """Return a text or list without secrets; dataclasses, as pytest's representation of an exception, change in place.

    `cleaned` are the ids of dataclasses that are done, because a representation refers to its traceback twice.
    """
    match value:
        case str():
            return redact(value)
        case tuple() | list():
            return type(value)(_clean(item, cleaned) for item in value)
        case _ if is_dataclass(value) and id(value) not in cleaned:
            cleaned.add(id(value))
            for name, item in list(vars(value).items()):
                setattr(value, name, _clean(item, cleaned))
    return value
