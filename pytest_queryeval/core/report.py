"""The report of a run as report.json holds it: plain values only, described for others by report.schema.json.

These are types of dictionaries and not classes, so that a report is written, read, merged and rendered as it stands.
Times are in seconds. A `path` is relative to the root folder of the run, with forward slashes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NotRequired, TypeAlias, TypedDict

from pytest_queryeval.core.cause import CauseLabel
from pytest_queryeval.core.json_value import JsonValue
from pytest_queryeval.core.metric import Better
from pytest_queryeval.core.model import FailureKind, GroupName, Outcome, TrialsRule, Where

TotalName: TypeAlias = Literal["passed", "failed", "missed", "errors", "skipped", "xfailed", "xpassed", "not_run"]
ComponentName: TypeAlias = Literal[
    "select",
    "select_no_agg",
    "where",
    "where_no_op",
    "group_no_having",
    "group",
    "order",
    "and_or",
    "iuen",
    "keywords",
]
Row: TypeAlias = list[JsonValue]


class Spread(TypedDict):
    """How at least one number is distributed; `std` is the sample standard deviation, None for `n` = 1."""

    mean: float
    n: int
    std: float | None
    min: float
    median: float
    max: float


class MeasureStatistics(Spread):
    """A time in seconds, or a number that systems tell of their calls, and their `sum`.

    `p95` is the 95th percentile.
    """

    sum: float
    p95: float


class ScoreStatistics(Spread):
    """Scores with the two ends of a 95 % confidence interval of their mean, None where n = 1 says nothing of it.

    `ci95_clustered` are those of the interval with the sources as clusters, None where too few sources are shared.
    """

    ci95: list[float] | None
    ci95_clustered: NotRequired[list[float] | None]


class MetricStatistics(ScoreStatistics):
    """The scores of a metric.

    `mean_with_errors` is the mean over `n_with_errors` cases, those in error which request the metric counting as 0;
    both are None for metrics that are no share from 0 to 1. `missed` is how many thresholds were missed.
    """

    mean_with_errors: float | None
    n_with_errors: int | None
    missed: int


class MetricReport(MetricStatistics):
    """The scores of a metric in the whole run, and whether higher or lower ones are better."""

    better: Better


class DimensionStatistics(TypedDict):
    """The scores of an SDMX dimension over the cases that have them."""

    precision: NotRequired[ScoreStatistics]
    recall: NotRequired[ScoreStatistics]


class Totals(TypedDict):
    """How many `cases` there are, and how many of them ended how; the gates were decided before `not_run` ones."""

    cases: int
    passed: int
    failed: int
    missed: int
    errors: int
    skipped: int
    xfailed: int
    xpassed: int
    not_run: int


class GroupReport(TypedDict):
    """What is counted of some cases: totals, scores by metric, measures by name, and causes by their first label."""

    totals: Totals
    metrics: dict[str, MetricStatistics]
    measures: dict[str, MeasureStatistics]
    causes: dict[str, int]


class TrialsReport(TypedDict):
    """How likely one of k trials passes, and all of them: item k - 1 of both lists is the mean over `cases`."""

    cases: int
    pass_at: list[float]
    pass_hat: list[float]


class SpiderScores(TypedDict):
    """A component of the queries of one level in Spider's table, from 0 to 1."""

    accuracy: float
    recall: float
    f1: float


class SpiderLevel(TypedDict):
    """A level of Spider's table: its number of pairs, two means over them, and its components."""

    count: int
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
    """How far a mean may fall: by `max_drop`, and further where a test at the level `alpha` takes it for chance."""

    alpha: float
    max_drop: float


class PendingGate(TypedDict):
    """What a gate requires of the cases below `folder` that `where` names.

    `type` is the name of its rule in `GATE_RULES`: `limits` are `min` and `max` of a mean, of which None is open, and
    `sum` those of a sum; `no_regression` and `max_regressions` compare with a baseline and have a key of that name,
    with `better` beside `no_regression`. `settings` are what another rule requires beside `min` and `max`. `cases` is
    how many cases the gate is about, None where that is not known.
    """

    type: str
    folder: str
    metric: str
    where: Where
    min: float | None
    max: float | None
    no_regression: NotRequired[NoRegressionRule]
    max_regressions: NotRequired[int]
    better: NotRequired[Better]
    settings: NotRequired[dict[str, JsonValue]]
    cases: int | None


class Decision(TypedDict):
    """What was decided `after` so many `of` the cases that were to run, or of the trials that could be made."""

    after: int
    of: int


class GateMeasurement(TypedDict):
    """The `value` that a gate is about, None without one, over `n` cases, and how many are in error beside them.

    A sum counts all calls of the `n` cases that have a number, those in error as well.

    `no_regression` has a value where `before`, `after`, `p` and `detectable` are there: both means, the p of the
    one-sided paired test, and the smallest change that such a test proves in 4 of 5 runs, None where none is.

    `decided` is there where a gate was decided and the rest not run; its `errors` count as 0 then, and are among the
    `n` cases. `details` are what a rule tells beside its value.
    """

    value: float | None
    n: int
    errors: int
    details: NotRequired[dict[str, JsonValue]]
    decided: NotRequired[Decision]
    before: NotRequired[float]
    after: NotRequired[float]
    p: NotRequired[float]
    detectable: NotRequired[float | None]


class GateReport(PendingGate, GateMeasurement):
    """A gate with its result: `ran` of its `cases` ran; `ok` is None where it was not evaluated, for a `reason`."""

    ran: int
    ok: bool | None
    reason: str


class FailureReport(TypedDict):
    """Why a query has no answer."""

    kind: FailureKind
    message: str


class QueryReport(TypedDict):
    """A query or a stated answer, and what came of it.

    `columns` and `row_count` are those of its table, None where it has none; `sample` are the first rows. `seconds` is
    the time of its run, whether it ended in an answer or not, and 0 where nothing was run.
    """

    query: str | None
    columns: list[str] | None
    row_count: int | None
    sample: list[Row]
    seconds: float


class GoldReport(QueryReport):
    """Gold as it was scored; `index` tells which of several golds counted, from 0."""

    index: int


class PredictedReport(QueryReport):
    """What was predicted; `error` tells why it has no answer."""

    error: FailureReport | None


class PredictionReport(TypedDict):
    """Where a prediction came from, how long the call took, and what the system told about it."""

    source: str
    seconds: float
    metadata: dict[str, JsonValue]


class ScoringReport(TypedDict):
    """How long the comparison of both answers took, over all trials."""

    seconds: float


class ChangedRow(TypedDict):
    """A row of gold and the predicted row in its place."""

    gold: Row
    predicted: Row


class RepeatedRow(TypedDict):
    """A row, and how often it is in both answers."""

    row: Row
    gold: int
    predicted: int


class DifferenceCounts(TypedDict):
    """How many rows of gold predicted lacks, and how many of predicted gold lacks; a changed row counts as both."""

    missing: int
    extra: int


class DifferenceReport(TypedDict):
    """Where two answers differ: in one sentence, and in rows, the first ones of each list.

    `columns` are the names of gold's columns, in whose order the rows are; `predicted_columns` are those that predicted
    has in their places, empty where answers are no tables.
    """

    summary: str
    columns: NotRequired[list[str]]
    predicted_columns: NotRequired[list[str]]
    counts: NotRequired[DifferenceCounts]
    missing: list[Row]
    extra: list[Row]
    changed: list[ChangedRow]
    repeated: list[RepeatedRow]


class CausingEditReport(TypedDict):
    """One step from predicted to gold: `change` shows what is at its place, the `clause`, and what should be."""

    label: CauseLabel
    clause: str
    change: str


class CauseReport(TypedDict):
    """Why an answer is wrong; `repaired_query` is predicted after the edits: its answer is gold's."""

    edits: list[CausingEditReport]
    repaired_query: str | None


class ViolationReport(TypedDict):
    """A threshold of a metric that the `value` of a case does not meet; None leaves a side open."""

    metric: str
    min: float | None
    max: float | None
    value: float


class TrialPredictedReport(TypedDict):
    """What was predicted in one of several trials."""

    query: str | None
    error: FailureReport | None
    seconds: float


class TrialReport(TypedDict):
    """One of several trials of a case; `passed` is None where nothing is required."""

    passed: bool | None
    scores: dict[str, float | None]
    violations: list[ViolationReport]
    predicted: TrialPredictedReport
    prediction: PredictionReport


class SpiderDetails(TypedDict):
    """A pair of queries under Spider's published evaluation; `rejected` says why predicted cannot be read.

    `components` have three counts each: of gold's parts, of predicted's, and of those that both share.
    """

    hardness: str
    exact: bool
    components: dict[ComponentName, list[int]]
    rejected: NotRequired[str]


class DetailsReport(TypedDict, total=False):
    """What metrics tell about their scores: any keys, of which reports look at these.

    `dimensions` are those of SDMX selections by name, each with its `precision` and `recall`.
    """

    notes: list[str]
    empty_gold: bool
    spider: SpiderDetails
    dimensions: JsonValue


class Limits(TypedDict):
    """The least and the greatest value that a metric may have; None leaves a side open."""

    min: float | None
    max: float | None


class QueryLimits(TypedDict):
    """The limits of an execution: seconds and rows."""

    timeout: float
    max_rows: int


class StoppingTrials(TypedDict):
    """How many trials there are at most, until the verdict of the case is decided."""

    max: int
    stop: Literal["decided"]


class CaseFingerprint(TypedDict):
    """What a case requests and requires, its limits and settings, and digests of its golds and schemas.

    `answers` are stated by the case or asked of a predictor. `context` is a digest of metadata and of what was said
    before in a conversation, None where there is neither. `compare` holds the settings of the comparison that are not
    the default of the kind, `schemas` digests by key, `source` the state of the source, None where it is not known.
    """

    answers: Literal["asked", "stated"]
    context: str | None
    metrics: list[str]
    thresholds: dict[str, Limits]
    on_miss: Literal["fail", "xfail"]
    trials: int | StoppingTrials
    trials_rule: TrialsRule
    golds: str
    limits: QueryLimits
    schemas: dict[str, str]
    compare: dict[str, JsonValue]
    options: dict[str, dict[str, JsonValue]]
    source: str | None


class MessageReport(TypedDict):
    """What was said in a conversation before the question, and who said it."""

    role: str
    content: str


class CaseReport(TypedDict):
    """A case with its outcome.

    `line` is that of the suite file at `path`, 0 where it is not known. `row` and `place`, its file, sheet and row in
    words, are there for a case in a table, whose `line` is that of `cases` in the suite. `features` are there where the
    first gold is a query that has any, and `conversation` where something was said before the question. `gold`,
    `predicted`, `prediction` and `scoring` are None as far as the case did not come to them, `trials` is empty unless
    there are several. `kind` and `fingerprint` are None of a case whose suite could not be read.
    """

    id: str
    nodeid: str
    path: str
    line: int
    row: NotRequired[int]
    place: NotRequired[str]
    kind: str | None
    tags: list[str]
    difficulty: str | None
    features: NotRequired[list[str]]
    source: str | None
    question: str
    conversation: NotRequired[list[MessageReport]]
    evidence: str
    outcome: Outcome
    scores: dict[str, float | None]
    violations: list[ViolationReport]
    gold: GoldReport | None
    predicted: PredictedReport | None
    scoring: ScoringReport | None
    depends_on_tie: bool
    difference: DifferenceReport | None
    cause: CauseReport | None
    prediction: PredictionReport | None
    trials: list[TrialReport]
    details: DetailsReport
    message: str
    fingerprint: CaseFingerprint | None


class CasesFile(TypedDict):
    """What report.json has in place of more than 50,000 cases: the `file` beside it with `count` lines, a case each."""

    file: str
    count: int
    sha256: str


class BaselineCounts(TypedDict):
    """How many cases are in the baseline and in the run, in both, and in one of them for which reason.

    `skipped` and `errors` are so now and were not; of `unknown` ones a report has no fingerprint.
    """

    before: int
    after: int
    common: int
    added: int
    removed: int
    not_run: int
    skipped: int
    errors: int
    unknown: int


class MetricChange(TypedDict):
    """How the mean of a metric changed over the `n` cases that have a score in both reports.

    `ci95` are the ends of the interval of `change`. `p` is that of the two-sided paired test, `p_holm` adjusted for all
    metrics; `detectable` is the smallest drop that the adjusted test proves in 4 of 5 runs, None where none is.
    """

    n: int
    before: float
    after: float
    change: float
    ci95: list[float] | None
    p: float
    p_holm: float
    test: Literal["mcnemar", "sign_flip"]
    detectable: float | None


class CauseChange(TypedDict):
    """How many cases of both reports had a cause, and have it now."""

    before: int
    after: int


class SuiteChange(TypedDict):
    """What changed besides the system, and the node ids of the cases that it concerns."""

    what: str
    cases: list[str]


class EarlierCase(TypedDict):
    """What was predicted for a case in the baseline, and what came of it.

    `summary` is how the answer differed from gold, empty where it did not; `error` why there was none.
    """

    outcome: Outcome
    query: str | None
    error: FailureReport | None
    summary: str


class BaselineReport(TypedDict):
    """The comparison with an earlier report; `fixes`, `regressions` and `errors` are node ids.

    `earlier` has the first regressions and fixes by node id, as they were in the baseline.
    """

    path: str
    created: str
    cases: BaselineCounts
    fixes: list[str]
    regressions: list[str]
    errors: list[str]
    metrics: dict[str, MetricChange]
    causes: dict[str, CauseChange]
    changes: list[SuiteChange]
    earlier: NotRequired[dict[str, EarlierCase]]


class Environment(TypedDict, total=False):
    """Where a run was: versions, those of engines by name, and how it was made.

    `replay` is there where answers were recorded ones, `reruns` where cases are run again. `parts` are the other
    environments of a merged report.
    """

    python: str
    pytest: str
    pytest_queryeval: str
    platform: str
    engines: dict[str, str]
    replay: bool
    reruns: int
    parts: list[Environment]


class PredictorReport(TypedDict):
    """What answered, without settings, which may be secret."""

    sources: list[str]


class RequestedPaths(TypedDict):
    """The folders and files that a run was told to collect, and those, or patterns, that it was to leave out."""

    paths: list[str]
    ignored: list[str]


class StopReport(TypedDict):
    """The rule by which a run stops: once all gates are decided, `after` so many `of` the cases that were to run.

    They ran in a random order that depends on `seed`. `alpha` is the probability that any gate is decided wrongly.
    """

    rule: Literal["decided"]
    seed: int
    alpha: float
    after: int
    of: int


class RunFacts(TypedDict):
    """The head of a report: when and where the run was, and what it collected.

    `name` says which run it is: what a user calls it, else the predictor and the commit. `created` is a time in the
    form of ISO 8601. `collected` are the numbers of cases by suite file, empty where they
    are not known. `selected` tells whether cases were left out on purpose, `stopped` whether the run ended before its
    end, `interrupted` whether somebody ended it. `stop` is there where the run was to stop once its gates are decided.
    """

    name: str
    created: str
    environment: Environment
    predictor: PredictorReport
    requested_paths: RequestedPaths
    collected: dict[str, int]
    unreadable_files: list[str]
    selected: bool
    stopped: bool
    interrupted: bool
    stop: NotRequired[StopReport]
    baseline: NotRequired[BaselineReport]


class JoinedRun(TypedDict):
    """A run of which a report was joined: its file, its time, who predicted, and the metrics that are from it."""

    name: str
    created: str
    sources: list[str]
    cases: int
    metrics: list[str]


class SurvivorReport(TypedDict):
    """A wrong variant of a gold query that would pass."""

    query: str
    operator: str
    clause: str
    change: str


class WeakCase(TypedDict):
    """A case that wrong queries would pass, as `queryeval strength` found: how many variants, and which of them."""

    id: str
    path: str
    line: int
    mutants: int
    killed: int
    equivalent: int
    survivors: list[SurvivorReport]


class RunResults(RunFacts):
    """A run before anything is counted: all that a comparison with a baseline needs.

    More than 50,000 `cases` are not in memory, and report.json has a `CasesFile` in their place.
    """

    gates: list[GateReport]
    cases: Sequence[CaseReport]


class ReportTables(TypedDict, total=False):
    """What not every run has: Spider's table by level, the SDMX dimensions by name, several trials of a case.

    `decided_trials` counts the trials of cases that stop them once they decide, those of cases in error left out.
    `joined` are the runs of a report that was joined of several, `weak_cases` what `queryeval strength` found.
    """

    spider_table: dict[str, SpiderLevel]
    dimensions: dict[str, DimensionStatistics]
    trials: TrialsReport
    decided_trials: Decision
    joined: list[JoinedRun]
    weak_cases: list[WeakCase]


class Report(RunResults, ReportTables):
    """The report of a run.

    `schema` is 2. `ties` is how many right answers depend on a tie, `accidental` how many fail on a variant of the
    source, `causes` how many cases have a cause that begins with each label. `groups` has the groups kind, difficulty,
    tag, file, source and feature, each with its values.
    """

    schema: int
    totals: Totals
    metrics: dict[str, MetricReport]
    measures: dict[str, MeasureStatistics]
    ties: int
    accidental: int
    causes: dict[str, int]
    groups: dict[GroupName, dict[str, GroupReport]]
