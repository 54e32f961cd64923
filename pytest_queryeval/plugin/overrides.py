"""Options of the command line for all cases: their predictor, trials, concurrency and thresholds."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pytest_queryeval.core.cause import CauseMode
    from pytest_queryeval.core.model import Case, PredictorSpec, Threshold
    from pytest_queryeval.core.report import Report
    from pytest_queryeval.evaluation.recording import Recording

CAUSE = "--queryeval-cause"
THRESHOLD = "--queryeval-threshold"
CAUSE_MODES: dict[str, CauseMode] = {"auto": "auto", "off": "off", "full": "full"}


class Overrides:
    """The options of a run that change cases, read on first use."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._kinds: set[str] = set()

    def check(self) -> None:
        """Raise a usage error for an option that cannot be read; `Run.check_collected` checks what depends on cases."""
        for name in ("name", "predictor", "baseline", "record", "replay", "sample"):
            if self._config.getoption(f"queryeval_{name}") == "":  # as of a variable that is not set
                raise pytest.UsageError(f"--queryeval-{name}: expected a value, found nothing")
        for name in ("limit", "trials", "concurrency"):
            number = self._config.getoption(f"queryeval_{name}")
            if number is not None and number < 1:
                raise pytest.UsageError(f"--queryeval-{name}: expected a whole number from 1, found {number}")
        self.cause  # noqa: B018 - reading it is the check
        self.predictor  # noqa: B018
        self.baseline  # noqa: B018
        self.sample  # noqa: B018
        self._thresholds  # noqa: B018
        self._check_recording()

    def applied(self, case: Case) -> Case:
        """Return the case with the options applied."""
        from pytest_queryeval.metrics import METRICS, applies_to

        self._kinds.add(case.kind)
        case = self._with_prediction_options(case)
        limits = self._thresholds.items()
        binding = {name: limit for name, limit in limits if name in METRICS and applies_to(name, case.kind)}
        return replace(case, thresholds={**case.thresholds, **binding}) if binding else case

    def unbound_threshold(self) -> str:
        """Return why a threshold applies to none of the collected cases; empty where all apply."""
        if not self._kinds:
            return ""
        from pytest_queryeval.core.errors import QueryEvalError
        from pytest_queryeval.metrics import applies_to
        from pytest_queryeval.suites.metric_keys import check_metric, unreachable_threshold

        problem = ""
        for name, threshold in self._thresholds.items():
            try:
                check_metric(name)
            except QueryEvalError as error:
                problem = str(error)
            else:
                problem = f"no case of kind {', '.join(sorted(self._kinds))} has the metric '{name}'"
                if any(applies_to(name, kind) for kind in self._kinds):
                    problem = unreachable_threshold(name, threshold)
            if problem:
                return f"{THRESHOLD}: {problem}"
        return ""

    @cached_property
    def predictor(self) -> PredictorSpec | None:
        """The predictor for all cases; that of the hook where plugins have one and no other is named."""
        text = self._config.getoption("queryeval_predictor")
        if not text:
            return None
        from pytest_queryeval.core.errors import CaseError
        from pytest_queryeval.suites.predictors import predictor_of_text

        try:
            return predictor_of_text(text, folder=self._config.invocation_params.dir)
        except CaseError as error:
            raise pytest.UsageError(f"--queryeval-predictor: {error.problem}") from error

    @cached_property
    def sample(self) -> tuple[int, int] | None:
        """How many cases are chosen at random, and the seed; None for all."""
        given = self._config.getoption("queryeval_sample")
        if given is None:
            return None
        number, colon, seed = given.partition(":")
        if not (number.isdecimal() and int(number) and (seed.isdecimal() or not colon)):
            expected = "expected N or N:SEED, whole numbers, N from 1 on"
            raise pytest.UsageError(f"--queryeval-sample: {expected}, found '{given}'")
        return int(number), int(seed or 0)

    @cached_property
    def cause(self) -> CauseMode:
        """On which sources the causes of wrong answers are looked for."""
        given = self._config.getoption("queryeval_cause")
        name, value = ("queryeval_cause", self._config.getini("queryeval_cause")) if given is None else (CAUSE, given)
        mode = CAUSE_MODES.get(str(value).strip().lower())
        if mode is None:
            raise pytest.UsageError(f"{name}: expected auto, off or full, found '{value}'")
        return mode

    def missing_predictor(self) -> str:
        """Return why a file of the predictor for all cases is missing; empty where none is."""
        if self.predictor is None or self._config.getoption("queryeval_replay"):
            return ""
        from pytest_queryeval.core.errors import CaseError
        from pytest_queryeval.suites.predictors import check_predictor_files

        try:
            check_predictor_files(self.predictor)
        except CaseError as error:
            return f"--queryeval-predictor: {error.problem}"
        return ""

    @cached_property
    def recording(self) -> Recording | None:
        """Where predictions and executions are recorded to or replayed from; None without either option."""
        place = self._config.getoption("queryeval_replay") or self._config.getoption("queryeval_record")
        if not place:
            return None
        from pytest_queryeval.evaluation.recording import Recording

        replay = bool(self._config.getoption("queryeval_replay"))
        return Recording(self._config.invocation_params.dir / place, replay=replay, root=self._config.rootpath)

    @cached_property
    def baseline(self) -> Report | None:
        """The report to compare with, read before this run writes its own; None where none is given."""
        path = self._config.getoption("queryeval_baseline")
        if not path:
            return None
        from pytest_queryeval.core.errors import ReportError
        from pytest_queryeval.results.report_file import read_report

        try:
            return read_report(self._config.invocation_params.dir / path)
        except ReportError as error:
            raise pytest.UsageError(f"--queryeval-baseline: {error}") from error

    def _check_recording(self) -> None:
        if self.recording is None:
            return
        from pytest_queryeval.core.errors import QueryEvalError

        if self._config.getoption("queryeval_record") and self._config.getoption("queryeval_replay"):
            uses = "--queryeval-record uses what is there and adds the rest"
            raise pytest.UsageError(f"--queryeval-record and --queryeval-replay exclude each other: {uses}")
        try:
            self.recording.check()
        except QueryEvalError as error:
            raise pytest.UsageError(str(error)) from error

    def _with_prediction_options(self, case: Case) -> Case:
        """Return the case with its predictor, and with the trials and the concurrency of the options."""
        from pytest_queryeval.core.model import PredictorSpec
        from pytest_queryeval.predictors import PREDICTORS

        trials, concurrency = map(self._config.getoption, ("queryeval_trials", "queryeval_concurrency"))
        if self.predictor is not None:
            case = replace(case, predictor=self.predictor, predicted=None)
        elif case.predictor is None and case.predicted is None:  # or the suite would have been refused
            case = replace(case, predictor=PredictorSpec(kind="hook", settings={}, folder=case.location.path.parent))
        if trials is not None and case.predicted is None:
            case = replace(case, trials=trials)
        if concurrency is not None and case.predictor is not None and PREDICTORS[case.predictor.kind].calls:
            case = replace(case, predictor=replace(case.predictor, concurrency=concurrency))
        return case

    @cached_property
    def _thresholds(self) -> dict[str, Threshold]:
        given = self._config.getoption("queryeval_threshold")
        if not given:
            return {}
        from pytest_queryeval.core.model import Threshold

        thresholds = {}
        for text in given:
            name, _, value = text.partition("=")
            try:
                number = float(value)
            except ValueError:
                number = math.nan
            if not name or not math.isfinite(number):
                raise pytest.UsageError(f"{THRESHOLD}: expected METRIC=VALUE with a finite number, found '{text}'")
            thresholds[name] = Threshold(minimum=number, option=THRESHOLD)
        return thresholds
