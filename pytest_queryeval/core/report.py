"""The report of a run as report.json holds it: plain values only.

These are types of dictionaries and not classes, so that a report is written, read, merged and rendered as it stands.
`results/report_schema.py` checks reports by them and makes their JSON Schema, in which docstrings are descriptions.
Times are in seconds. A `path` is relative to the root folder of the run, with forward slashes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NotRequired, TypeAlias, TypedDict

from pytest_queryeval.core.case_report import CaseReport, FailureReport
from pytest_queryeval.core.json_value import JsonValue
from pytest_queryeval.core.metric import Better
from pytest_queryeval.core.model import Outcome, Where
from pytest_queryeval.core.model import ReviewDecision as ReviewDecision

TotalName: TypeAlias = Literal["passed", "failed", "missed", "errors", "skipped", "xfailed", "xpassed", "not_run"]
LevelName: TypeAlias = Literal["easy", "medium", "hard", "extra", "all"]
TestName: TypeAlias = Literal["mcnemar", "sign_flip"]
# `results/report_schema.py` says what these are limited to.
Time: TypeAlias = str
Interval: TypeAlias = list[float]
SpiderTable: TypeAlias = "dict[LevelName, SpiderLevel]"
Cases: TypeAlias = "Sequence[CaseReport]"


class Spread(TypedDict):
    """How at least one number is distributed."""

    mean: float
    n: int
    std: float | None
    """The sample standard deviation, None for `n` = 1."""
    min: float
    median: float
    max: float


class MeasureStatistics(Spread):
    """Times in seconds, or numbers that systems state about their calls."""

    sum: float
    p95: float
    """The 95th percentile."""


class ScoreStatistics(Spread):
    """Scores, and how precisely their mean is known."""

    ci95: Interval | None
    """The 95 % confidence interval of the mean, None for `n` = 1."""
    ci95_clustered: NotRequired[Interval | None]
    """The same with the sources as clusters, None if too few sources are shared."""


class MetricStatistics(ScoreStatistics):
    """The scores of a metric."""

    mean_with_errors: float | None
    """The mean with 0 for each case in error that requests the metric; None if scores are not from 0 to 1."""
    n_with_errors: int | None
    """The number of cases behind `mean_with_errors`."""
    missed: int
    """The number of thresholds that were missed."""


class MetricReport(MetricStatistics):
    """The scores of a metric in the whole run."""

    better: Better
    """Whether higher or lower scores are better."""


class DimensionStatistics(TypedDict):
    """The scores of an SDMX dimension over the cases that have them."""

    precision: NotRequired[ScoreStatistics]
    recall: NotRequired[ScoreStatistics]


class FieldStatistics(TypedDict):
    """The scores of a field of JSON answers."""

    n: int
    """The number of cases whose gold has it."""
    mean: float


class FieldChange(TypedDict):
    """How the mean of a field of JSON answers changed over the cases that have it in both reports."""

    n: int
    """The number of these cases."""
    before: float
    after: float


class Totals(TypedDict):
    """The number of cases, and of those with each outcome."""

    cases: int
    passed: int
    failed: int
    missed: int
    errors: int
    skipped: int
    xfailed: int
    xpassed: int
    not_run: int
    """The number of cases that did not run since the gates were decided before."""


class Figures(TypedDict):
    """The figures of a set of cases: how many have each outcome, and their measures."""

    totals: Totals
    measures: dict[str, MeasureStatistics]
    """Times, tokens and costs by name."""


class GroupReport(Figures):
    """The figures of the cases of a group."""

    metrics: dict[str, MetricStatistics]
    """Scores by metric."""
    causes: dict[str, int]
    """The number of cases by the labels of their causes; a cause of two edits may have two."""


class TrialsReport(TypedDict):
    """Several trials of a case. Item k - 1 of both lists is a mean over `cases`."""

    cases: int
    pass_at: list[float]
    """The probability that at least one of k trials passes."""
    pass_hat: list[float]
    """The probability that all of k trials pass."""


class SpiderScores(TypedDict):
    """The scores of a component in one level of Spider's table, from 0 to 1."""

    accuracy: float
    recall: float
    f1: float


class SpiderLevel(TypedDict):
    """A level of Spider's table: means over its pairs of queries, and the scores of their components."""

    count: int
    """The number of pairs."""
    execution_accuracy: float | None
    exact_match: float
    select: SpiderScores
    select_no_agg: SpiderScores
    where: SpiderScores
    where_no_op: SpiderScores
    group_no_having: SpiderScores
    group: SpiderScores
    order: SpiderScores
    and_or: SpiderScores
    iuen: SpiderScores
    keywords: SpiderScores


class NoRegressionRule(TypedDict):
    """How far a mean may fall."""

    alpha: float
    """The level of the test: a larger drop is accepted if the test does not prove it."""
    max_drop: float
    """The drop that is always accepted."""


class PendingGate(TypedDict):
    """What a gate requires."""

    type: str
    """The name of the rule in `GATE_RULES`; packages may add rules."""
    folder: str
    """The folder of the gate, relative to the root folder of the run; the gate is about cases below it."""
    metric: str
    where: Where
    """The cases that have these values of groups; `not` excludes those that have all of its values."""
    min: float | None
    max: float | None
    no_regression: NotRequired[NoRegressionRule]
    """Present for the type `no_regression`."""
    max_regressions: NotRequired[int]
    """Present for the type `max_regressions`."""
    better: NotRequired[Better]
    """Present for the type `no_regression`."""
    settings: NotRequired[dict[str, JsonValue]]
    """What a rule of another package requires besides `min` and `max`."""
    cases: int | None
    """The number of cases that the gate is about, None if unknown."""


class Decision(TypedDict):
    """After how many cases, or trials, the result was decided."""

    after: int
    of: int
    """The number of cases that were to run, or of trials that were allowed."""


class RecordedAnswers(TypedDict):
    """How many answers of the system are from a recording, so that it was not called."""

    answers: int
    of: int
    """The number of all answers, those of trials included."""


class Measured(TypedDict):
    """The value that a gate is about, and what its rule states about it."""

    value: float | None
    details: NotRequired[dict[str, JsonValue]]
    """What a rule states besides its value."""
    before: NotRequired[float]
    """The mean in the baseline; it and the next three are present if the type is `no_regression` and has a value."""
    after: NotRequired[float]
    p: NotRequired[float]
    """The p-value of the one-sided paired test."""
    detectable: NotRequired[float | None]
    """The smallest change that such a test proves in 4 of 5 runs, None if there is none."""
    able_to_drop: NotRequired[int]
    """The number of pairs that could show a drop.

    Of a gate of the type `no_regression`, those without the worst score in both runs; of the type `max_regressions`,
    those that passed in the baseline.
    """


class GateMeasurement(Measured):
    """What a gate measures, and on how many cases."""

    n: int
    """The number of cases behind `value`; a sum counts all their calls, those that ended in an error too."""
    errors: int
    """The number of cases in error; they are among the `n` cases, with a score of 0, only if `decided` is present."""
    unpredicted: NotRequired[int]
    """How many of the cases in error, which a mean leaves out, have no prediction; present if there is one."""
    unscored: NotRequired[int]
    """The number of other cases that a mean leaves out although they request its metric; present if there is one."""
    rerun: NotRequired[int]
    """How many cases of a sum another plugin ran again: only their last runs count. Present if there is one."""
    decided: NotRequired[Decision]
    """Present if the result was decided before all cases ran."""
    baseline: NotRequired[str]
    """The path of the baseline; present if the gate compares with it."""


class GateReport(PendingGate, GateMeasurement):
    """A gate with its result."""

    ran: int
    """The number of its cases that ran."""
    ok: bool | None
    """Whether the gate is met, None if it was not evaluated."""
    reason: str
    """Why it was not evaluated."""


class CasesFile(TypedDict):
    """The file next to report.json that holds more than 50,000 cases, one in each line, in the same order."""

    file: str
    """Its name."""
    count: int
    """The number of its lines."""
    sha256: str
    """The SHA-256 digest of its content, in hexadecimal digits."""


class BaselineCounts(TypedDict):
    """How many cases are in the baseline and in the run, in both, and in only one of them for which reason."""

    before: int
    after: int
    common: int
    added: int
    removed: int
    not_run: int
    skipped: int
    """The number of cases that are skipped now and were not before."""
    errors: int
    """The number of cases that are in error now and were not before."""
    unknown: int
    """The number of cases without a fingerprint in one of the reports."""


class PairedTest(TypedDict):
    """Whether a mean changed by more than chance."""

    change: float
    ci95: Interval | None
    """The 95 % confidence interval of `change`."""
    p: float
    """The p-value of the two-sided paired test."""
    test: TestName


class MetricChange(PairedTest):
    """How the mean of a metric changed over the cases that have a score in both reports."""

    n: int
    """The number of these cases."""
    before: float
    after: float
    p_holm: float
    """The same as `p`, adjusted for all metrics by Holm's method."""
    detectable: float | None
    """The smallest drop that the adjusted test proves in 4 of 5 runs, None if there is none."""


class CauseChange(TypedDict):
    """How many cases of both reports had a cause, and have it now."""

    before: int
    after: int


class SuiteChange(TypedDict):
    """What changed besides the system."""

    what: str
    cases: list[str]
    """The node ids of the cases that it concerns."""


class EarlierCase(TypedDict):
    """The prediction for a case in the baseline, with its outcome."""

    outcome: Outcome
    query: str | None
    error: FailureReport | None
    """Why there was no answer."""
    summary: str
    """How the answer differed from gold, empty if it did not."""


class Flips(TypedDict):
    """The cases of both runs whose outcomes are on different sides: node ids by type of change."""

    fixes: list[str]
    """Node ids, as in the next two."""
    regressions: list[str]
    errors: list[str]


class BaselineReport(Flips):
    """The comparison with an earlier report."""

    path: str
    created: str
    cases: BaselineCounts
    metrics: dict[str, MetricChange]
    causes: dict[str, CauseChange]
    """By the first label of the cause."""
    changes: list[SuiteChange]
    fields: NotRequired[dict[str, FieldChange]]
    """By path, those that changed most; present if there are any."""
    earlier: NotRequired[dict[str, EarlierCase]]
    """The first regressions, fixes and new errors by node id, as they were in the baseline."""
    earlier_scores: NotRequired[dict[str, dict[str, float]]]
    """By node id, the scores that were others in the baseline, as they were there."""
    added: NotRequired[list[str]]
    """The node ids that the baseline lacks."""


class Environment(TypedDict, total=False):
    """Where and how a run was made: versions, and what was special about it."""

    python: str
    pytest: str
    pytest_queryeval: str
    platform: str
    engines: dict[str, str]
    """Versions of engines by name."""
    replay: bool
    """Present if answers were replayed from a recording."""
    challenge: bool
    """Present if right answers were to be challenged."""
    reruns: int
    """Present if failed cases are run again."""
    workers: int
    """The number of processes that ran cases at once; present if there were several."""
    parts: list[Environment]
    """The environments of a merged report that differ from this one."""


class PredictorReport(TypedDict):
    """The systems that answered, without their settings, which may be secret."""

    sources: list[str]


class RequestedPaths(TypedDict):
    """What the run was told to collect."""

    paths: list[str]
    """Folders and files."""
    ignored: list[str]
    """Folders, files and patterns that were left out."""


class StopReport(TypedDict):
    """The rule by which a run stops once all its gates are decided; cases run in a random order."""

    rule: Literal["decided"]
    seed: int
    """The seed of the random order."""
    alpha: float
    """The probability that any gate is decided wrongly."""
    after: int
    """After how many cases the run stopped."""
    of: int
    """The number of cases that were to run."""


class SpendReport(TypedDict):
    """The limit on what the calls of the run may cost together."""

    name: str
    """The number in the metadata of predictions that is limited, or `prediction_seconds`."""
    limit: float
    sum: float
    """What the calls that the run made cost; recorded answers cost nothing."""
    calls: int
    """The number of calls that the run made."""
    unstated: int
    """How many of these failed, or do not state the number."""
    reached: bool
    """Whether no further call could begin."""
    unstated_in_a_row: NotRequired[int]
    """Present if calls ended because these last ones failed, or do not state the number."""


class RunFacts(TypedDict):
    """The head of a report: when and where the run was, and what it collected."""

    name: str
    """Which run it is: the name that the user gave it, else the predictor and the commit."""
    created: Time
    """When the run ended, in the form of ISO 8601."""
    environment: Environment
    predictor: PredictorReport
    requested_paths: RequestedPaths
    collected: dict[str, int]
    """The number of cases by suite file, empty if unknown."""
    unreadable_files: list[str]
    """Suite files that could not be read."""
    selected: bool
    """Whether cases were left out on purpose."""
    stopped: bool
    """Whether the run ended before all cases ran."""
    interrupted: bool
    """Whether the user ended the run."""
    stop: NotRequired[StopReport]
    """Present if the run was to stop once its gates are decided."""
    spend: NotRequired[SpendReport]
    """Present if what calls cost was limited."""
    baseline: NotRequired[BaselineReport]


class ErrataReport(TypedDict):
    """What decisions of reviewers on golds change in the whole run."""

    cases: int
    """The number of cases with a decision that applies, without those of `unsure`."""
    by_decision: dict[ReviewDecision, int]
    """Their number by decision."""
    unreviewed: dict[str, float]
    """The mean of each metric, and `pass_rate`, by the golds of the suites."""
    reviewed: dict[str, float]
    """The same after the decisions."""


class JoinedRun(TypedDict):
    """One of the runs of which a report was joined."""

    name: str
    """The file of its report."""
    created: Time
    """When the run ended, in the form of ISO 8601."""
    sources: list[str]
    """What answered."""
    cases: int
    metrics: list[str]
    """The metrics whose scores are from this run."""


class SurvivorReport(TypedDict):
    """A mutant, which is a wrong version of a gold query, that would pass."""

    query: str
    operator: str
    clause: str
    change: str


class WeakCase(TypedDict):
    """A case that wrong queries would pass, as `queryeval strength` reports it."""

    id: str
    path: str
    line: int
    mutants: int
    """The number of mutants of its gold that were tried."""
    killed: int
    """The number of those that the data tells from gold."""
    equivalent: int
    """The number of those that have gold's answer on any data."""
    survivors: list[SurvivorReport]


class StrengthResult(TypedDict):
    """What `queryeval strength --json` prints, as far as reports show it."""

    cases: list[WeakCase]


class RunResults(RunFacts):
    """A run before anything is counted: all that a comparison with a baseline needs."""

    gates: list[GateReport]
    cases: Cases
    """All cases by path, then line; report.json has a `CasesFile` instead of more than 50,000."""


class ReportTables(TypedDict, total=False):
    """Parts of a report that only some runs have."""

    spider_table: SpiderTable
    """The table of Spider's published tool by level."""
    dimensions: dict[str, DimensionStatistics]
    """The scores of SDMX dimensions by name."""
    fields: dict[str, FieldStatistics]
    """The scores of fields of JSON answers by path, those that cost most first."""
    fields_left_out: int
    """The number of cases with other fields; present if there are any."""
    trials: TrialsReport
    decided_trials: Decision
    """The trials of cases that stop once their verdict is decided, without those of cases in error."""
    recorded: RecordedAnswers
    """Present if answers are from a recording."""
    rerun_cases: int
    """The number of cases that another plugin ran again; present if there are any."""
    errata: ErrataReport
    joined: list[JoinedRun]
    """The runs of which the report was joined."""
    weak_cases: list[WeakCase]
    """What `queryeval strength` found."""


class Report(RunResults, Figures, ReportTables):
    """The report of a run by pytest-queryeval, report.json."""

    schema: Literal[2]
    """The version of this form."""
    metrics: dict[str, MetricReport]
    """Scores by metric."""
    ties: int
    """The number of right answers that depend on a tie."""
    accidental: int
    """The number of right answers that fail on a variant of the source."""
    causes: dict[str, int]
    """The number of cases by the first label of their cause."""
    groups: dict[str, dict[str, GroupReport]]
    """By group, such as kind and difficulty, and its value; older reports lack newer groups."""
