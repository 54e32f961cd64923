"""Suite files and their cases as pytest collects and runs them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_queryeval.case_json import case_json, result_json
from pytest_queryeval.errors import QueryEvalError, QueryEvalWarning, SuiteError
from pytest_queryeval.evaluation import evaluate_case
from pytest_queryeval.kinds import difficulty_of
from pytest_queryeval.loading.requirements import MissingExtraError
from pytest_queryeval.model import Case, CaseResult, Outcome
from pytest_queryeval.plain import one_line, printable
from pytest_queryeval.plugin import RUN
from pytest_queryeval.plugin.failure import ThresholdMissed, failure_lines, headline

PROPERTY = "queryeval."
EMPTY_GOLD = "gold has no rows, so any query that returns nothing passes (`allow_empty: true` if that is meant)"


class SuiteFile(pytest.File):
    """A suite file."""

    def collect(self) -> Iterator[pytest.Item]:
        """One item a case; raises `CollectError` with every problem of the file."""
        run = self.config.stash[RUN]
        try:
            cases = run.load(self.path).cases
        except MissingExtraError as error:
            run.skipped.append(run.relative(self.path))
            pytest.skip(str(error), allow_module_level=True)
        except SuiteError as error:
            raise self.CollectError(str(error)) from None
        applied = [run.overrides.applied(case) for case in cases]
        run.cases += applied
        for case in applied:
            yield CaseItem.from_parent(self, name=case.id, case=case)


class CaseItem(pytest.Item):
    """A case: all that may break is done in `setup`, so that `runtest` has only thresholds to judge."""

    def __init__(self, *, case: Case, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.case = case
        self.result: CaseResult | None = None
        self.prediction: object = None  # of a case in error
        self._mark(case)

    def _mark(self, case: Case) -> None:
        run = self.config.stash[RUN]
        # What is computed from the gold's text costs a parse, which only a selection is worth before the run.
        difficulty = difficulty_of(case) if run.selects_by_marker else case.difficulty
        for name in dict.fromkeys((case.kind, *case.tags, *((difficulty,) if difficulty else ()))):
            run.register_marker(name, "a tag, a kind or a difficulty of cases")
            self.add_marker(name)
        if case.skip is not None:
            self.add_marker(pytest.mark.skip(reason=one_line(case.skip)))
        if case.xfail is not None:
            self.add_marker(pytest.mark.xfail(reason=one_line(case.xfail), raises=ThresholdMissed))

    def setup(self) -> None:
        """Execute and score the case; whatever breaks is an error of the case, not a failure of the prediction."""
        self.result = self.prediction = None
        self.user_properties[:] = [pair for pair in self.user_properties if not pair[0].startswith(PROPERTY)]
        fault = ""
        try:
            result = self._evaluated()
        except (QueryEvalError, QueryEvalWarning) as error:
            fault = f"{self.case.location}: {_behind_margin(str(error))}"
            self.prediction = getattr(error, "prediction", None)
        if fault:  # outside of the handler, or pytest would print both exceptions
            pytest.fail(fault, pytrace=False)
        self.result = result
        scores = result.scores.items()
        self.user_properties += [(f"{PROPERTY}{name}", value) for name, value in scores if value is not None]

    def _evaluated(self) -> CaseResult:
        """Return the result; raises what breaks, and a warning of ours where filters make it an error."""
        result = evaluate_case(self.case, self.config.stash[RUN].session)
        if result.details.get("empty_gold"):
            self.warn(QueryEvalWarning(EMPTY_GOLD))
        return result

    def runtest(self) -> None:
        """Compare scores with thresholds."""
        if self.result is None or not self.result.fails:
            return
        if self.case.on_miss == "xfail":
            pytest.xfail(headline(self.result))
        raise ThresholdMissed(self.result)  # also where --runxfail makes pytest.xfail do nothing

    def teardown(self) -> None:
        """Let go of the answers: pytest keeps every item until the end of the run."""
        self.result = self.prediction = None

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Our lines in the form that pytest keeps under xdist and in JUnit: one entry, and a headline of one line."""
        if not isinstance(excinfo.value, ThresholdMissed):
            return super().repr_failure(excinfo, style)
        text: Any = excinfo.getrepr(style="native")
        entry = text.reprtraceback.reprentries[0]
        text.reprtraceback.reprentries = [type(entry)([f"{line}\n" for line in failure_lines(excinfo.value.result)])]
        text.reprcrash.path, text.reprcrash.lineno = str(self.case.location.path), self.case.location.line
        text.reprcrash.message = headline(excinfo.value.result)
        text.chain = [(text.reprtraceback, text.reprcrash, None)]
        return text

    def reportinfo(self) -> tuple[Path, int, str]:
        """The place of the case in its file, counted from 0, so that editors jump to it."""
        return Path.cwd() / self.case.location.path, max(self.case.location.line - 1, 0), self.name

    def queryeval_result(self, report: pytest.TestReport, call: pytest.CallInfo[None]) -> dict[str, Any] | None:
        """The case as the report has it, once its outcome is known; None in the other phases."""
        self._accuse(report, call)
        if report.when == "teardown" or (report.when == "setup" and report.passed):
            return None
        run, outcome = self.config.stash[RUN], self._outcome(report)
        place = {"nodeid": self.nodeid, "path": run.relative(self.case.location.path)}
        state = None if outcome == "skipped" else run.session.state(self.case.source)
        if self.result is None:
            told: dict[str, Any] = {"message": _message(report), "prediction": self.prediction, "state": state}
            return case_json(self.case, **place, outcome=outcome, **told)
        message = headline(self.result) if self.result.fails else _message(report)
        return result_json(self.result, **place, outcome=outcome, message=message, state=state)

    def _accuse(self, report: pytest.TestReport, call: pytest.CallInfo[None]) -> None:
        """Take it back where pytest takes an error for an expected failure, as under a marker of somebody else."""
        intended = (pytest.skip.Exception, pytest.xfail.Exception)
        if report.when == "setup" and hasattr(report, "wasxfail") and not isinstance(_raised(call), intended):
            report.outcome = "failed"
            del report.wasxfail

    def _outcome(self, report: pytest.TestReport) -> Outcome:
        if report.when == "setup":
            return "skipped" if report.skipped else "error"
        if report.failed:  # also what was expected to fail and did not, where xfail is strict
            return "failed"
        if report.skipped:
            return "missed" if self.case.xfail is None else "xfailed"
        return "xpassed" if hasattr(report, "wasxfail") else "passed"


def _raised(call: pytest.CallInfo[None]) -> BaseException | None:
    return None if call.excinfo is None else call.excinfo.value


def _behind_margin(text: str) -> str:
    """Foreign text of several lines, none of which starts where a CI service would read a command."""
    first, *others = printable(text).splitlines() or [""]
    return "\n".join((first, *(f"  | {line}" for line in others)))


def _message(report: pytest.TestReport) -> str:
    """Why there is no result: the reason of a skip, or the error; nothing where all is well."""
    if isinstance(report.longrepr, tuple):
        return str(report.longrepr[2]).removeprefix("Skipped: ")
    return report.longreprtext
