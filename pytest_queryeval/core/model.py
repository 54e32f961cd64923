"""What a case becomes on its way: Case -> Prediction -> Execution -> CaseResult -> Report."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, TypeAlias, TypeGuard, get_args

from pytest_queryeval.core.cause import Cause
from pytest_queryeval.core.db_schema import Schema
from pytest_queryeval.core.errors import Location
from pytest_queryeval.core.expectation import Expectation
from pytest_queryeval.core.json_value import JsonAnswer, JsonValue
from pytest_queryeval.core.scope import Scope
from pytest_queryeval.core.table import Policy, Row, Selection, Table

if TYPE_CHECKING:
    from pytest_queryeval.core.case_report import (
        ChallengeReport,
        DifferenceReport,
        TurnReport,
        UnreviewedReport,
        ViolationReport,
    )


class AddedAnswer(ABC):
    """An answer of a type that a feature adds; `decode_answer` in `core/answer_json.py` reads it from recordings.

    Of the metrics that compare answers, only `execution_accuracy` scores such answers.
    """

    type_name: ClassVar[str]

    @abstractmethod
    def equals(self, predicted: Answer, case: Case) -> bool:
        """Return whether a predicted answer is right, where this answer is gold."""

    @abstractmethod
    def difference(self, predicted: Answer, case: Case, *, limit: int) -> DifferenceReport[Row] | None:
        """Return how a predicted answer differs from this gold answer, with at most `limit` rows of each type.

        None if equal.
        """

    @abstractmethod
    def as_table(self) -> Table:
        """Return the table by which reports show the answer."""

    def stable_part(self, case: Case) -> Table:
        """Return the part of a gold answer that must be the same in each run, by default all.

        Reports contain its digest.
        """
        return self.as_table()

    @abstractmethod
    def encode(self) -> dict[str, JsonValue]:
        """Return the object by which recordings store the answer.

        Raise TypeError for a cell that cannot be recorded.
        """


Answer: TypeAlias = Table | JsonAnswer | Selection | AddedAnswer
FailureKind: TypeAlias = Literal[
    "invalid", "timeout", "unsafe", "too_large", "empty", "rejected", "abstained", "missing"
]
TEXTLESS_FAILURES: tuple[FailureKind, ...] = ("abstained", "missing")  # of predictions that have no text
# The means of the scores over all trials, all or any of the trials, or the least share of them that has to pass.
TrialsRule: TypeAlias = Literal["mean", "all", "any"] | float
# Scores of a case that no metric gives, but its trials together.
TRIALS_SCORES = ("pass_at_k", "pass_hat_k")
PASS_RATE = "pass_rate"  # noqa: S105 - no password
IN_SCOPE = "in_scope"  # the metric of cases with `scope`
ABSTENTION = "abstention"  # the metric of cases that are not answerable
EXPECTATIONS = "expectations"  # the metric of cases with `expect`
CHALLENGED_ACCURACY = "challenged_accuracy"  # the metric that asks for challenges
MAX_TRIALS = 1_000  # of a case, whose answers are all in memory
SCORE_TOLERANCE = 1e-9  # of comparisons of scores with limits: 0.1 + 0.2 is at most 0.3
ALPHA = 0.05  # the level of tests where a gate has none of its own
PREDICTOR_TIMEOUT = 120.0
MAX_SECONDS = 1e9  # that an answer or a step may have taken
SECONDS_RULE = f"a number from 0 to {MAX_SECONDS:,.0f}"
Outcome: TypeAlias = Literal["passed", "failed", "missed", "error", "skipped", "xfailed", "xpassed", "not_run"]
ChallengeVerdict: TypeAlias = Literal["same", "proved", "refuted", "stands", "unchallenged"]
# By what an answer to a case is judged: gold, what is expected of any answer, the answer alone, such as whether it is
# valid, and for questions without an answer, whether the system abstains.
Criterion: TypeAlias = Literal["gold", "expect", "scope", "answer", "abstention"]
# Metrics of which 1 is required.
OWN_METRICS: Mapping[Criterion, str] = {"expect": EXPECTATIONS, "scope": IN_SCOPE, "abstention": ABSTENTION}
GOLD_CRITERIA: frozenset[Criterion] = frozenset(("gold", "answer"))  # of a case that states nothing but gold
UNANSWERABLE_CRITERIA: frozenset[Criterion] = frozenset(("abstention",))
StepKind: TypeAlias = Literal["query", "tool", "message"]
# What a reviewer decided on the golds of a case.
ReviewDecision: TypeAlias = Literal["right", "wrong", "ambiguous", "unanswerable", "unsure"]
# The cases that have these values of groups, by name; `not` leaves out those that have all of its values.
Where: TypeAlias = dict[str, str | dict[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Threshold:
    """The least and the greatest value that a metric may have; None sets no limit on that side.

    `option` is the command line option that sets the threshold; empty if a suite sets it.
    """

    minimum: float | None = None
    maximum: float | None = None
    option: str = field(default="", compare=False)

    def admits(self, value: float) -> bool:
        """Return whether a value is within the limits, give or take SCORE_TOLERANCE."""
        low = self.minimum is None or value >= self.minimum - SCORE_TOLERANCE
        high = self.maximum is None or value <= self.maximum + SCORE_TOLERANCE
        return low and high


class QueryRewriter(Protocol):
    """Replaces placeholders in queries by the names of a source, such as `{{ ref('orders') }}` of dbt.

    Rewriters of the same `repr` must rewrite alike; the `repr` contains no secrets.
    """

    def rewrite(self, query: str) -> str:
        """Return a query as the engine runs it.

        Raise ValueError, with what is wrong, for an invalid query, and `SourceError` if the names of the source are not
        known.
        """

    def describe(self, ddl: str) -> str:
        """Return the statements `ddl`, which create the source's tables, with what the rewriter knows of the tables.

        Raise `SourceError` if the names of the source are not known.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where queries run: the name of an engine with its settings.

    `folder` is where relative paths in the settings start. `name` is what reports may show; settings can contain
    secrets and never leave the process. `writes` says whether queries may change data; changes are undone. `location`
    is the line of a suite that describes the source. Sources with an equal `key` are the same database, in which
    queries may do the same.
    """

    name: str
    engine: str
    settings: Mapping[str, Any] = field(repr=False)
    folder: Path
    writes: bool = False
    location: Location | None = field(default=None, compare=False, repr=False)
    rewriter: QueryRewriter | None = field(default=None, repr=False)
    """Through which all queries go, gold and predicted; None if they run as they are."""
    key: tuple[str, str] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        settings = sorted(self.settings.items(), key=str)
        key = self.engine, f"{self.folder}\0{settings!r}\0{self.rewriter!r}{' writes' * self.writes}"
        object.__setattr__(self, "key", key)

    def rewritten(self, query: str) -> str:
        """Return a query as the engine runs it: rewritten by the `rewriter` if there is one, which may raise errors."""
        return query if self.rewriter is None else self.rewriter.rewrite(query)


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictorSpec:
    """A predictor as a suite names it; `folder` is where relative paths in the settings start.

    `concurrency` is the greatest number of calls at once, and `retries` how often a call is repeated after a temporary
    error; None leaves the number to the predictor. `timeout` is the time limit of each call in seconds. `abstain` is a
    regular expression: a predicted text that matches it is an abstention. `location` is the place that names the
    predictor. Specifications with an equal `key` are the same predictor.
    """

    kind: str
    settings: Mapping[str, Any] = field(repr=False)
    folder: Path
    concurrency: int | None = None
    timeout: float = PREDICTOR_TIMEOUT
    retries: int | None = None
    abstain: str | None = None
    location: Location | None = field(default=None, compare=False)
    key: tuple[str, str] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        key = self.kind, f"{self.folder}\0{sorted(self.settings.items(), key=str)!r}"
        object.__setattr__(self, "key", key)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryOrAnswer:
    """A gold or predicted answer before it is executed: a query to run, or an answer that needs no run.

    Both are set if the text of the query is the answer, as in JSON. `location` is the place in a suite, or the file
    that contains the answer; None if no suite contains it.
    """

    query: str | None = None
    answer: Answer | None = None
    location: Location | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Abstention:
    """A system's refusal to answer a question, with its reason, which is empty if the system gives none."""

    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Why a query has no answer, if the query itself is at fault and not its source."""

    kind: FailureKind
    message: str


PredictedAnswer: TypeAlias = QueryOrAnswer | Abstention | Failure | str | dict[str, Any] | list[Any] | int | float


@dataclass(frozen=True, slots=True, kw_only=True)
class GoldTranslation:
    """A prediction made from the gold query by translation into the language of the source.

    `location` is the place in the suite that asks for it.
    """

    location: Location


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A message of a conversation, with the role of its author: `user`, `assistant`, or another role."""

    role: str
    content: str


@dataclass(frozen=True, eq=False, kw_only=True)
class Settings:
    """All inherited keys of a case, with the defaults of its kind.

    Cases of a suite share one object where they can. Settings are compared by identity, and values that follow from
    them are computed once.
    """

    kind: str
    source: Source | None
    """Where its queries run; None if no level names a source."""
    gold_source: Source | None = None
    """Where its golds run; None if that is `source`."""
    predictor: PredictorSpec | None = None
    """None if no level names a predictor, and for a case that states what is predicted."""
    metrics: tuple[str, ...]
    options: Mapping[str, Mapping[str, JsonValue]] = field(default_factory=dict)
    """Options by the names of metrics and kinds."""
    thresholds: Mapping[str, Threshold]
    gate_metrics: tuple[str, ...] = ()
    """The metrics of cases that gates are about."""
    policy: Policy
    dialect: str
    """What sqlglot calls the language of the queries; empty if it has no name for it."""
    gold_dialect: str = ""
    """What sqlglot calls the language of golds; only with `gold_source`."""
    scope: Scope | None = None
    """What predictions may read; None if nothing limits it."""
    on_miss: Literal["fail", "xfail"] = "fail"
    on_miss_location: Location | None = field(default=None, compare=False)
    """Where a suite states `on_miss`."""
    gold_columns_location: Location | None = field(default=None, compare=False)
    """Where a suite names columns of gold."""
    timeout: float = 30.0
    """Seconds that one query may take."""
    max_rows: int = 100_000
    """Rows that one answer may have."""
    report_rows: int = 20
    """Rows of each answer in reports."""
    trials: int = 1
    """How often the system is asked; with `stops_trials`, at most."""
    stops_trials: bool = False
    """Whether no further trial is made once `trials_rule` is decided."""
    trials_rule: TrialsRule = "mean"
    ignored_rules: Mapping[str, str] = field(default_factory=dict)
    """Rules of `queryeval check` that are ignored, each with the reason."""

    @cached_property
    def sources(self) -> tuple[Source, ...]:
        """The distinct sources that queries run on: that of predictions, then that of golds if it is different."""
        return tuple(filter(None, (self.source, self.gold_source)))

    @cached_property
    def gold_settings(self) -> Settings:
        """The settings by which gold queries run: `gold_source` and `gold_dialect` as `source` and `dialect`.

        These are the same settings if there is no `gold_source`.
        """
        if self.gold_source is None:
            return self
        return replace(self, source=self.gold_source, dialect=self.gold_dialect, gold_source=None, gold_dialect="")

    @cached_property
    def requested_metrics(self) -> tuple[str, ...]:
        """The names of metrics to compute: those in `metrics`, then others that have a threshold."""
        return tuple(dict.fromkeys((*self.metrics, *self.thresholds)))

    @cached_property
    def required_metrics(self) -> frozenset[str]:
        """The names of metrics that decide an outcome or a gate: those with a threshold, and those of gates."""
        return frozenset((*self.thresholds, *self.gate_metrics))

    @cached_property
    def score_names(self) -> tuple[str, ...]:
        """The names of the scores that a case may have: its requested metrics, then the scores of all trials."""
        return (*self.requested_metrics, *self.trials_scores)

    @cached_property
    def trials_scores(self) -> tuple[str, ...]:
        """The names among `pass_at_k` and `pass_hat_k` that the case has.

        Empty for a single trial or without thresholds. Trials that stop early have only the score that their rule
        decides.
        """
        if self.trials == 1 or not self.thresholds:
            return ()
        decided = {"any": TRIALS_SCORES[:1], "all": TRIALS_SCORES[1:]}
        return decided.get(str(self.trials_rule), ()) if self.stops_trials else TRIALS_SCORES


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """The decision of reviewers on the golds of a case, and what the suite stated before the decision."""

    decision: ReviewDecision
    reviewers: tuple[str, ...]
    notes: tuple[str, ...]
    """What they wrote about it."""
    golds: tuple[QueryOrAnswer, ...]
    """The golds of the suite."""
    policy: Policy
    """The comparison policy of the suite, as the next two fields."""
    metrics: tuple[str, ...]
    thresholds: Mapping[str, Threshold]
    withdrawal: str = ""
    """Why the case does not count: its golds are wrong, and no right answer is known; empty if it counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A question with its golds or expectations, and the settings that apply to it."""

    id: str
    location: Location
    settings: Settings
    question: str = ""
    evidence: str = ""
    golds: tuple[QueryOrAnswer, ...]
    """The right answers; none of a case that is not `answerable`, or that states what it expects instead."""
    predicted: QueryOrAnswer | Abstention | GoldTranslation | None
    expectations: tuple[Expectation, ...] = ()
    """What the answer must have, whatever gold is."""
    tags: tuple[str, ...]
    difficulty: str | None = None
    metadata: Mapping[str, JsonValue] = field(default_factory=dict)
    skip: str | None = None
    xfail: str | None = None
    allow_empty: bool = False
    answerable: bool = True
    """Whether the question has a right answer; otherwise it is right to abstain."""
    conversation: tuple[Message, ...] = ()
    """All that was said up to the question, which is its last message; empty if there is only the question."""
    combination: int = 0
    """The number of the combination of parameters that it is made of, from 1; 0 if it has none."""
    parameters: tuple[str, ...] = ()
    """The value of each parameter, as `name=value`."""
    turn: TurnReport | None = None
    """None if it is not the turn of a conversation, or has no answer that is a table."""
    db_schema: Schema | None = None
    """The schema that the suite states; None if it is the source's."""
    extra: Mapping[str, object] = field(default_factory=dict)
    """The values of keys that features and other packages add, by the names of the keys."""
    row: Location | None = None
    """The place of a case in a table; `location` is where the suite names that table."""
    no_question: str = field(default="", compare=False)
    """What to do about a missing question, for systems that are asked; empty if there is a question, or messages."""
    suite: Path | None = None
    """The file of its suite, which may name other files with cases; None if it is that of `location`."""
    review: Review | None = None
    """What was decided on its golds: `golds`, `answerable` and `settings` are those after the decision."""

    @property
    def written_id(self) -> str:
        """The id in the suite, without the parameters in brackets; all combinations of parameters share it."""
        return self.id.partition("[")[0]

    @property
    def criteria(self) -> frozenset[Criterion]:
        """The criteria by which an answer to the case is judged."""
        return criteria_of(
            answerable=self.answerable,
            has_gold=bool(self.golds),
            expects=bool(self.expectations),
            has_scope=self.settings.scope is not None,
        )

    @property
    def lacks_gold(self) -> bool:
        """Whether the question has a right answer, but the suite states only `expectations` and no gold."""
        return self.answerable and not self.golds

    @property
    def withdrawal(self) -> str:
        """Why a decision of reviewers makes the outcome `skipped` whatever is predicted; empty if no decision does."""
        return self.review.withdrawal if self.review is not None else ""

    @property
    def runs_queries(self) -> bool:
        """Whether a source may run a query of the case: a gold query or a predicted query.

        A predicted answer that is not known yet counts as a query. False without a source, and for an unanswerable
        case.
        """
        if self.settings.source is None or not self.answerable:
            return False
        answers = [content for content in (*self.golds, self.predicted) if isinstance(content, QueryOrAnswer)]
        is_asked = self.predicted is None or isinstance(self.predicted, GoldTranslation)
        return is_asked or any(content.query is not None for content in answers)

    @property
    def on_gold_source(self) -> Case:
        """The case with the settings by which its gold queries run, `gold_source` as the source.

        The case itself without it.
        """
        if self.settings.gold_source is None:
            return self
        return replace(self, settings=self.settings.gold_settings, db_schema=None)

    @property
    def without_review(self) -> Case:
        """The case as its suite states it, before a decision of reviewers.

        The case itself if no decision changes its golds or its comparison.
        """
        review = self.review
        if review is None or (review.golds, review.policy) == (self.golds, self.settings.policy):
            return self
        settings = replace(self.settings, policy=review.policy)
        if not self.answerable:
            settings = replace(settings, metrics=review.metrics, thresholds=review.thresholds)
        return replace(
            self, golds=review.golds, answerable=bool(review.golds or self.expectations), settings=settings, review=None
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A step of a system before its answer: a query, the call of a tool, or a message.

    Raise ValueError for a field of a wrong type and for an unknown kind.
    """

    kind: StepKind
    name: str = ""
    """The tool, or who wrote the message."""
    input: Any = None
    """What the query or the tool was given: a text, a `Table`, or what JSON can express; None for nothing."""
    output: Any = None
    """What it returned."""
    error: str | None = None
    """Why it failed; None or empty if it did not."""
    seconds: float | None = None
    """How long it took; None if that is unknown."""
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        kinds = get_args(StepKind)
        faults = {
            f"`kind` is {self.kind!r:.80}, not {', '.join(kinds[:-1])} or {kinds[-1]}": self.kind not in kinds,
            f"`name` is {type(self.name).__name__}, not text": not isinstance(self.name, str),
            f"`error` is {type(self.error).__name__}, not text": not isinstance(self.error, str | None),
            f"`seconds` is {self.seconds!r:.80}, not {SECONDS_RULE}": not (
                self.seconds is None or is_seconds(self.seconds)
            ),
            f"`metadata` is {type(self.metadata).__name__}, not a mapping": not isinstance(self.metadata, Mapping),
        }
        if fault := next((text for text, is_fault in faults.items() if is_fault), ""):
            raise ValueError(f"a step's {fault}")


def criteria_of(*, answerable: bool, has_gold: bool, expects: bool, has_scope: bool) -> frozenset[Criterion]:
    """Return the criteria by which an answer is judged, given what its case states.

    An unanswerable case has only `abstention`; any other case has `answer` and those that it states.
    """
    if not answerable:
        return UNANSWERABLE_CRITERIA
    stated: Mapping[Criterion, bool] = {"answer": True, "gold": has_gold, "expect": expects, "scope": has_scope}
    return frozenset(criterion for criterion, is_stated in stated.items() if is_stated)


def is_seconds(value: object) -> TypeGuard[int | float]:
    """Return whether a value is a number from 0 to MAX_SECONDS, as the duration of an answer or a step must be."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= MAX_SECONDS


@dataclass(frozen=True, slots=True, init=False)
class Prediction:
    """The answer of the system under test, not yet executed: `Prediction("SELECT 1", metadata={"cost": 0.1})`.

    `answer` is the text of a query, an `Abstention`, a `QueryOrAnswer`, or for answers in JSON a dict, a list or a
    number. `predictor` is the name of the system; without it, the name of the function that was called. `seconds` is
    the wall time of the call; if a function leaves it at 0, the time is measured. `metadata` is what the system states
    about the answer.
    """

    answer: PredictedAnswer
    predictor: str
    seconds: float
    metadata: Mapping[str, Any]
    steps: Sequence[Step] | None
    """What the system did until it answered, in order; None if it does not say."""
    is_recorded: bool
    """Whether a recording had it, so that the system was not called."""

    def __init__(
        self,
        answer: PredictedAnswer | None = None,
        *,
        content: PredictedAnswer | None = None,
        predictor: str = "",
        seconds: float = 0.0,
        metadata: Mapping[str, Any] | None = None,
        steps: Sequence[Step] | None = None,
        is_recorded: bool = False,
    ) -> None:
        """Set the fields; `content` is an earlier name of `answer`."""
        for name, value in (
            ("answer", answer if content is None else content),
            ("predictor", predictor),
            ("seconds", seconds),
            ("metadata", {} if metadata is None else metadata),
            ("steps", steps),
            ("is_recorded", is_recorded),
        ):
            object.__setattr__(self, name, value)

    @property
    def content(self) -> QueryOrAnswer | Abstention | Failure:
        """The answer as it is executed: a text becomes a query, and a dict, a list or a number its JSON text."""
        if isinstance(self.answer, QueryOrAnswer | Abstention | Failure):
            return self.answer
        is_text = isinstance(self.answer, str)
        return QueryOrAnswer(query=str(self.answer) if is_text else json.dumps(self.answer, ensure_ascii=False))


@dataclass(frozen=True, slots=True, init=False)
class StoredPrediction(Prediction):
    """A prediction that existed before the run; it is the answer of every trial, so that there is only one trial."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """A query with its result, gold or predicted: an `answer` or an `error`, never both.

    Both are None if nothing was run, because only the text of the query is scored. `seconds` is the engine's time.
    `engine` names the engine that answered; it is empty for an answer that was given without a run. `note` is a
    sentence for readers of the report on how the answer came about. `violations` are the rules of a JSON Schema or an
    SDMX structure that the answer breaks although it can be read.
    """

    query: str | None
    answer: Answer | None = None
    error: Failure | None = None
    seconds: float = 0.0
    engine: str = ""
    note: str = ""
    violations: tuple[str, ...] = ()

    @property
    def table(self) -> Table | None:
        """The answer if it is a table, else None."""
        return self.answer if isinstance(self.answer, Table) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One answer of the system with its scores; `gold_index` is the number of the gold query that gave the scores.

    `passed` is None if the case requires nothing. `scoring_seconds` is the time to compare gold and predicted, with the
    queries that were run again for it. `depends_on_tie` is true if the answer is right only because gold leaves its own
    answer open, as by a LIMIT that cuts through rows that tie.
    """

    gold: Execution
    gold_index: int
    prediction: Prediction
    predicted: Execution
    scores: Mapping[str, float | None]
    violations: Sequence[ViolationReport]
    details: Mapping[str, Any]
    passed: bool | None
    depends_on_tie: bool = False
    scoring_seconds: float = 0.0
    challenge: ChallengeReport | None = None
    """Whether other data tells the predicted query from gold; None if the answer is wrong, or nobody asked."""
    nearest_answer: Table | None = None
    """Another answer that gold leaves open, if the wrong answer is nearer to it."""
    field_scores: Mapping[str, float] = field(default_factory=dict)
    """Which share of each part of gold is right, where answers of the kind have named parts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counterexample:
    """A database on which the answers of the gold query and the predicted query differ."""

    script: str
    """The script that creates the database: SQL, Turtle, or TriG."""
    tables: dict[str, Table]
    """The tables that have rows, by name; of a graph its triples, by the name of the graph."""
    gold: Execution
    predicted: Execution

    @property
    def size(self) -> int:
        """The number of rows, or of triples, in the database."""
        return sum(len(table.rows) for table in self.tables.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseResult:
    """The result of a case, from all of its trials.

    `scores` are means over the trials, `violations` the thresholds that the case as a whole does not meet, and `fails`
    says whether the case fails. Reports show the trial `shown`: the first that did not pass, else the first. `cause` is
    why its answer is wrong, None if unknown. `difference` is how its answer differs from gold, None without a violation
    or without one of the two answers.
    """

    case: Case
    trials: tuple[Trial, ...]
    shown: Trial
    scores: Mapping[str, float | None]
    violations: Sequence[ViolationReport]
    fails: bool
    difference: DifferenceReport[Row] | None
    cause: Cause | None = None
    unreviewed: UnreviewedReport | None = None
    """None if no decision changes what the case is scored by."""
    gold_answers_digest: str | None = None
    """A digest of the answers of all golds; None for a case that is not answerable."""

    @property
    def has_trials(self) -> bool:
        """Whether the suite asks for several trials and the answer is not a stored one, which has only one trial."""
        return self.case.settings.trials > 1 and not isinstance(self.shown.prediction, StoredPrediction)

    @property
    def outcome(self) -> Outcome:
        """The outcome of the case by `fails` and by what the suite states: a withdrawn gold, `xfail`, or `on_miss`."""
        if self.case.withdrawal:
            return "skipped"
        if self.case.xfail is not None:
            return "xfailed" if self.fails else "xpassed"
        if not self.fails:
            return "passed"
        return "missed" if self.case.settings.on_miss == "xfail" else "failed"

    def with_details(self, **details: object) -> CaseResult:
        """Return a copy of the result whose shown trial has these details, which replace details of the same names."""
        shown = replace(self.shown, details={**self.shown.details, **details})
        trials = tuple(shown if trial is self.shown else trial for trial in self.trials)
        return replace(self, shown=shown, trials=trials)
