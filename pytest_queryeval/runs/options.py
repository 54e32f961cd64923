"""The options of a run: which cases are evaluated, how, and against which baseline."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from pytest_queryeval.core.errors import CaseError, MissingFeatureError, QueryEvalError, ReportError
from pytest_queryeval.core.features import feature
from pytest_queryeval.core.model import CHALLENGED_ACCURACY, MAX_TRIALS, Case, Criterion, PredictorSpec, Threshold
from pytest_queryeval.core.report import Report
from pytest_queryeval.languages import KINDS
from pytest_queryeval.metrics import METRICS, applies_to, need_answers, timing_conflict
from pytest_queryeval.predictors import PREDICTORS
from pytest_queryeval.results.report_file import read_report
from pytest_queryeval.runs.option_table import OPTIONS, OptionValues
from pytest_queryeval.suites.effects import why_inapplicable
from pytest_queryeval.suites.metric_keys import check_metric, senseless_minimum, unreachable_threshold
from pytest_queryeval.suites.predictors import check_predictor_files, predictor_of_text
from pytest_queryeval.text.formatting import one_line

if TYPE_CHECKING:
    from pytest_queryeval.evaluation.extensions import Recording

MAX_QUOTED = 60
SEED = r"(?::(?P<seed>[0-9]{1,15}))?"
SAMPLE = re.compile(rf"(?P<number>0*[1-9][0-9]{{0,14}}){SEED}")
STOP = re.compile(rf"decided{SEED}")
METADATA = re.compile(r"metadata\[.*\]", re.DOTALL)


@dataclass(frozen=True, kw_only=True)
class RunOptions(OptionValues):
    """The options of a run, and their parsed values.

    Values are parsed when they are first read, and then raise `QueryEvalError` if they are invalid.
    """

    prefix: str
    """The text before the names of options on the command line."""
    folder: Path
    """The folder that paths in options are relative to."""
    root: Path
    """The folder that paths in recordings are relative to."""

    def check(self) -> None:
        """Raise `QueryEvalError` for the first option that is empty, invalid, or whose feature is missing.

        `misuse` checks the options that depend on cases.
        """
        for option in OPTIONS:
            value = getattr(self, option.name)
            if value == "" or (option.type is list and value and "" in value):  # as of a variable that is not set
                raise QueryEvalError(
                    f"{self.prefix}{option.flag}: expected a value, found nothing: write one, or leave out the option"
                )
            if option.type is int and value is not None and value < 1:
                raise QueryEvalError(
                    f"{self.prefix}{option.flag}: expected a whole number from 1, found {value}: write 1 or more"
                )
        if self.trials is not None and self.trials > MAX_TRIALS:
            expected = f"expected a whole number from 1 to {MAX_TRIALS:,}"
            raise QueryEvalError(f"{self.prefix}trials: {expected}, found {self.trials}")
        self.predictor_spec  # noqa: B018 - reading it is the check
        self.baseline_report  # noqa: B018
        self.sample_and_seed  # noqa: B018
        self.stop_seed  # noqa: B018
        self.spend_name_and_limit  # noqa: B018
        self.thresholds  # noqa: B018
        self._check_features()
        if self.recording is None:
            return
        if self.record and self.replay:
            uses = f"{self.prefix}record uses the recorded answers and adds the others"
            raise QueryEvalError(f"{self.prefix}record and {self.prefix}replay exclude each other: {uses}")
        try:
            self.recording.check()
        except QueryEvalError as error:
            raise QueryEvalError(f"{self.prefix}{'replay' if self.replay else 'record'}: {error}") from error

    def _check_features(self) -> None:
        """Raise `QueryEvalError` for an option whose feature is not installed."""
        needed = {
            "record": "recording" if self.record else "",
            "replay": "recording" if self.replay else "",
            "cause=full": "causes.search" if self.cause == "full" else "",
            "challenge": "challenge.challenger" if self.challenge else "",
        }
        for option, module in needed.items():
            try:
                if module:
                    feature(module)
            except MissingFeatureError as error:
                raise QueryEvalError(f"{self.prefix}{option}: {error}") from error

    def choose_cases(self, nodeids: Sequence[str]) -> set[str]:
        """Return the node ids that are left by the sample and then by the limit."""
        sample = sample_of(nodeids, *self.sample_and_seed) if self.sample_and_seed is not None else {*nodeids}
        return {*[nodeid for nodeid in nodeids if nodeid in sample][: self.limit]}

    def misuse(self, cases: Collection[Case], collected: Collection[Case], workers: str = "") -> str:
        """Return why an option does not fit the cases, or an empty text.

        `cases` will run; `collected` are all cases before selection. `workers` is the option by which several processes
        run queries; empty if one process does.
        """
        if cases and self.predictor_spec is not None and not self.replay:
            try:
                check_predictor_files(self.predictor_spec)
            except CaseError as error:
                return f"{self.prefix}predictor: {error.problem}"
        for name, threshold in self.thresholds.items() if collected else ():
            try:
                check_metric(name)
            except QueryEvalError as error:
                problem = str(error)
            else:
                problem = _why_unscored(name, collected) or self._unfit_minimum(name, threshold, collected)
            if problem:
                return f"{self.prefix}threshold: {problem}"
        for option, is_set, why in (
            ("stop", self.stop_seed is not None, "only one process can decide after each case whether to go on"),
            ("spend", self.spend_name_and_limit is not None, "only one process can add up what all calls cost"),
        ):
            if workers and is_set:
                return f"{self.prefix}{option}: {why}: leave {workers} out, or add {self.prefix}{option}=off"
        conflict = timing_conflict(cases, workers) if workers else ""
        return self._stop_misuse(cases) or self._idle_option(collected) or conflict

    def _unfit_minimum(self, name: str, threshold: Threshold, cases: Iterable[Case]) -> str:
        """Return why a minimum is senseless for its metric, or cannot be met by a case; an empty text if it can."""
        if problem := senseless_minimum(name, threshold.minimum or 0.0):
            return f"{problem} under `thresholds` of a suite or a queryeval.yaml"
        if problem := unreachable_threshold(name, threshold):
            return problem
        problems = (
            f"{problem} ({case.location})"
            for case in cases
            if (limits := case.settings.thresholds.get(name)) and (problem := unreachable_threshold(name, limits))
        )
        return next(problems, "")

    def _idle_option(self, cases: Collection[Case]) -> str:
        """Return the problem if trials, concurrency or recording is requested but no case calls a predictor.

        Recording also suits cases that run queries. Return an empty text if there is no problem.
        """
        asked = [case.settings.predictor for case in cases if case.predicted is None and case.settings.predictor]
        if self.trials is not None and cases and not asked:
            remedy = f"leave it out, or add {self.prefix}predictor"
            return f"{self.prefix}trials: the suites give the predictions of all cases: {remedy}"
        if self.concurrency is not None and cases and not any(PREDICTORS[spec.kind].calls for spec in asked):
            return f"{self.prefix}concurrency: no case calls a predictor: leave it out"
        if self.record is not None and cases and not (asked or any(case.runs_queries for case in cases)):
            return f"{self.prefix}record: no case calls a predictor or runs a query: leave it out"
        return ""

    def _stop_misuse(self, cases: Iterable[Case]) -> str:
        """Return the problem if the run may stop early although a case can fail it; otherwise an empty text."""
        case = next((case for case in cases if _can_fail(case)), None)
        if self.stop_seed is None or case is None:
            return ""
        why = f"case '{case.id}' ({case.location}) can fail the run by itself, so gates alone do not decide it"
        return f"{self.prefix}stop: {why}: write `on_miss: xfail`, or add {self.prefix}stop=off"

    def sort_key(self, nodeid: str) -> bytes:
        """Return the sort key of a case: random if the run may stop early, otherwise the same for all cases."""
        return b"" if self.stop_seed is None else random_sort_key(nodeid, self.stop_seed)

    def apply(self, case: Case) -> Case:
        """Return the case as it will be evaluated, with the options applied.

        They may change its predictor, trials, concurrency, thresholds and metrics.
        """
        settings = case.settings
        if self.predictor_spec is not None:
            case, settings = replace(case, predicted=None), replace(settings, predictor=self.predictor_spec)
        elif settings.predictor is None and case.predicted is None:  # or the suite would have been refused
            hook = PredictorSpec(kind="hook", settings={}, folder=case.location.path.parent)
            settings = replace(settings, predictor=hook)
        if self.trials is not None and case.predicted is None:
            settings = replace(settings, trials=self.trials)
        predictor = settings.predictor
        if self.concurrency is not None and predictor is not None and PREDICTORS[predictor.kind].calls:
            settings = replace(settings, predictor=replace(predictor, concurrency=self.concurrency))
        if limits := self._limits_of(case, case.criteria):
            settings = replace(settings, thresholds=_with_minima(settings.thresholds, limits))
        if (
            case.review is not None
            and not case.answerable
            and (limits := self._limits_of(case, case.without_review.criteria))
        ):
            case = replace(case, review=replace(case.review, thresholds=_with_minima(case.review.thresholds, limits)))
        if self.challenge and need_answers(settings.requested_metrics):
            name = CHALLENGED_ACCURACY
            if applies_to(name, settings.kind, criteria=case.criteria) and name not in settings.requested_metrics:
                settings = replace(settings, metrics=(*settings.metrics, name))
        return case if settings is case.settings else replace(case, settings=settings)

    def _limits_of(self, case: Case, criteria: Collection[Criterion]) -> dict[str, Threshold]:
        """Return the option's thresholds whose metrics apply to a case of these criteria."""
        return {
            name: limit
            for name, limit in self.thresholds.items()
            if name in METRICS and applies_to(name, case.settings.kind, criteria=criteria)
        }

    @cached_property
    def predictor_spec(self) -> PredictorSpec | None:
        """The predictor for all cases; None without the option. Raises `QueryEvalError` for a text that names none."""
        if not self.predictor:
            return None
        try:
            return predictor_of_text(self.predictor, folder=self.folder)
        except CaseError as error:
            raise QueryEvalError(f"{self.prefix}predictor: {error.problem}") from error

    @cached_property
    def sample_and_seed(self) -> tuple[int, int] | None:
        """The number of cases to choose at random, and the seed, 0 if none is named; None without the option.

        Raises `QueryEvalError` for an invalid option.
        """
        if self.sample is None:
            return None
        expected = "a number of cases from 1 on, such as 20, or with a seed, 20:7 (at most 15 digits)"
        match = self._parsed("sample", self.sample, SAMPLE, expected)
        return int(match["number"]), int(match["seed"] or 0)

    @cached_property
    def stop_seed(self) -> int | None:
        """The seed of the order of cases in a run that stops once its gates are decided; None for other runs.

        0 if the option names no seed. Raises `QueryEvalError` for an invalid option.
        """
        if self.stop is None or self.stop == "off":
            return None
        expected = "decided, decided:SEED with a whole number of at most 15 digits, or off"
        return int(self._parsed("stop", self.stop, STOP, expected)["seed"] or 0)

    def _parsed(self, option: str, text: str, pattern: re.Pattern[str], expected: str) -> re.Match[str]:
        """Return the match of a pattern with an option's whole text; raises `QueryEvalError` with what is expected."""
        if match := pattern.fullmatch(text):
            return match
        raise QueryEvalError(f"{self.prefix}{option}: expected {expected}, found '{one_line(text, MAX_QUOTED)}'")

    @cached_property
    def spend_name_and_limit(self) -> tuple[str, float] | None:
        """The name of the number that the run limits, and its limit; None without a limit.

        Raises `QueryEvalError` for an invalid option.
        """
        if not self.spend or self.spend == ["off"]:
            return None
        if len(self.spend) > 1:
            limits = " and ".join(f"'{one_line(text, MAX_QUOTED)}'" for text in self.spend)
            raise QueryEvalError(f"{self.prefix}spend: a run has one limit, found {limits}")
        name, _, text = self.spend[0].rpartition("=")
        try:
            limit = float(text)
        except ValueError:
            limit = math.nan
        if not name or not 0 <= limit < math.inf:
            expected = "expected NAME=VALUE with a number from 0, such as cost=5.00, or off"
            raise QueryEvalError(f"{self.prefix}spend: {expected}, found '{one_line(self.spend[0], MAX_QUOTED)}'")
        if METADATA.fullmatch(name):
            shown_name = one_line(name, MAX_QUOTED)
            raise QueryEvalError(f"{self.prefix}spend: '{shown_name}' is named without `metadata`: cost=5.00")
        return name, limit

    @cached_property
    def recording(self) -> Recording | None:
        """The recording that predictions and executions are written to or replayed from; None without both options."""
        if not (place := self.replay or self.record):
            return None
        recording: Recording = feature("recording").Recording(
            self.folder / place, replay=bool(self.replay), root=self.root
        )
        return recording

    @property
    def baseline_path(self) -> Path | None:
        """The file of the baseline; None without the option."""
        return self.folder / self.baseline if self.baseline else None

    @cached_property
    def baseline_report(self) -> Report | None:
        """The report to compare with; None without the option.

        The file is read at the first access, which has to come before this run writes its own report: that may replace
        the file. Raises `QueryEvalError` if the file is no report.
        """
        if self.baseline_path is None:
            return None
        try:
            return read_report(self.baseline_path)
        except ReportError as error:
            raise QueryEvalError(f"{self.prefix}baseline: {error}") from error

    @cached_property
    def thresholds(self) -> dict[str, Threshold]:
        """The minimum of each metric that the option names.

        Raises `QueryEvalError` for a text that is not METRIC=NUMBER.
        """
        thresholds = {}
        for text in self.threshold or ():
            name, _, value = text.partition("=")
            try:
                number = float(value)
            except ValueError:
                number = math.nan
            if not name or not math.isfinite(number):
                problem = f"expected METRIC=NUMBER, such as execution_accuracy=0.9, found '{text}'"
                raise QueryEvalError(f"{self.prefix}threshold: {problem}")
            thresholds[name] = Threshold(minimum=number, option=f"{self.prefix}threshold")
        return thresholds


def _with_minima(thresholds: Mapping[str, Threshold], minima: Mapping[str, Threshold]) -> dict[str, Threshold]:
    """Return thresholds in which the option's minima replace the minima of the suite; each maximum stays."""
    maxima = {name: threshold.maximum for name, threshold in thresholds.items()}
    return {**thresholds, **{name: replace(limit, maximum=maxima.get(name)) for name, limit in minima.items()}}


def _why_unscored(metric: str, cases: Collection[Case]) -> str:
    """Return why a metric scores none of the cases; empty if it scores a case."""
    kinds = {case.settings.kind for case in cases}
    if not any(applies_to(metric, kind) for kind in kinds):
        return f"no case of kind {', '.join(sorted(kinds))} has the metric '{metric}'"
    stated = [version for case in cases for version in (case, case.without_review)]
    if any(applies_to(metric, case.settings.kind, criteria=case.criteria) for case in stated):
        return ""
    case = next(case for case in cases if applies_to(metric, case.settings.kind))
    why = why_inapplicable(metric, KINDS[case.settings.kind], criteria=case.criteria)
    return f"{why}, and there is no other case: leave it out"


def _can_fail(case: Case) -> bool:
    """Return whether a wrong answer to a case fails the run by itself."""
    return case.settings.on_miss == "fail" and bool(case.settings.thresholds) and not case.withdrawal


def sample_of(nodeids: Sequence[str], number: int, seed: int) -> set[str]:
    """Return `number` of the node ids, from each file in proportion to its cases; the same in every process.

    It is a systematic sample: the cases of a file stand together in random order, and cases at equal distances are
    taken.
    """

    def sort_key(nodeid: str) -> tuple[str, bytes]:
        return nodeid.partition("::")[0], sha256(f"{seed} {nodeid}".encode(errors="backslashreplace")).digest()

    ordered = sorted(nodeids, key=sort_key)
    start = Random(seed).randrange(len(ordered)) if ordered else 0  # noqa: S311 - no secret
    number = min(number, len(ordered))
    return {ordered[(at * len(ordered) + start) // number] for at in range(number)}


def random_sort_key(nodeid: str, seed: int) -> bytes:
    """Return a pseudo-random sort key that depends only on the seed and the node id."""
    return sha256(f"stop {seed} {nodeid}".encode(errors="backslashreplace")).digest()
