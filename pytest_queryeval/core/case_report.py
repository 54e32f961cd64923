"""The report of a case, as report.json holds it: types of dictionaries, as those in `core/report.py`."""

from __future__ import annotations

from typing import Any, Generic, Literal, NamedTuple, NotRequired, TypeAlias, TypedDict, TypeVar

from pytest_queryeval.core.cause import CauseLabel
from pytest_queryeval.core.json_value import JsonValue
from pytest_queryeval.core.model import ChallengeVerdict, FailureKind, Outcome, StepKind, TrialsRule
from pytest_queryeval.core.model import ReviewDecision as ReviewDecision

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
HintKind: TypeAlias = Literal[
    "rounding",
    "factor",
    "midnight",
    "null-text",
    "letter-case",
    "blanks",
    "text-number",
    "duplicates",
    "extra-columns",
    "missing-column",
    "joined-columns",
    "wrapped",
]
Row: TypeAlias = list[JsonValue]
AnyRow = TypeVar("AnyRow")  # a `Row`, or until a report is made of it a row of a `Table`
# `results/report_schema.py` says what these are limited to.
PartCounts: TypeAlias = list[int]
ComponentCounts: TypeAlias = dict[ComponentName, PartCounts]
Edits: TypeAlias = "list[CausingEditReport]"


class FailureReport(TypedDict):
    """Why a query has no answer."""

    kind: FailureKind
    message: str


class QueryReport(TypedDict):
    """A query, or an answer that was stated without one, with its result."""

    query: str | None
    columns: list[str] | None
    """The names of the columns of the answer, None if it is not a table."""
    row_count: int | None
    """The number of rows of the answer, None if it is not a table."""
    sample: list[Row]
    """The first rows."""
    seconds: float
    """How long the query ran, whether it failed or not; 0 if nothing ran."""


class GoldReport(QueryReport):
    """The gold query that gave the scores, with its result."""

    index: int
    """The index of this gold among the golds of the case, from 0."""


class PredictedReport(QueryReport):
    """The predicted query, with its result or its error."""

    error: FailureReport | None


class StepReport(TypedDict):
    """What a system did before it answered; a member is missing if the system did not state it.

    A table is an object with `columns`, the first `rows`, and `row_count`. Long texts, and JSON as text, end in `…`.
    """

    kind: StepKind
    name: str
    """The tool, or who wrote the message."""
    input: NotRequired[JsonValue]
    """What the query or the tool was given: a text, a table or another JSON value."""
    output: NotRequired[JsonValue]
    """What it returned."""
    error: NotRequired[str]
    """Why it failed; present if it did."""
    seconds: NotRequired[float]
    metadata: NotRequired[dict[str, JsonValue]]


class PredictionReport(TypedDict):
    """The call of the predictor."""

    source: str
    """The predictor."""
    seconds: float
    metadata: dict[str, JsonValue]
    """What the system stated about the call."""
    recorded: NotRequired[bool]
    """Present if a recording had the answer, so that the system was not called."""
    abstained: NotRequired[bool]
    """Whether the system abstained; present, like `reason`, if it did."""
    reason: NotRequired[str]
    """Why it abstained, empty if it did not say."""
    missing: NotRequired[bool]
    """Whether a file of predictions has none, which counts as failed; present if so."""
    steps: NotRequired[list[StepReport]]
    """What it did until it answered, in order; present if it said so. Those of trials are cut shorter."""


class ScoringReport(TypedDict):
    """How long the comparison of both answers took, over all trials."""

    seconds: float


class ChangedRow(TypedDict, Generic[AnyRow]):
    """A row of gold, and the predicted row in its place."""

    gold: AnyRow
    predicted: AnyRow


class RepeatedRow(TypedDict, Generic[AnyRow]):
    """A row, and how often each answer has it."""

    row: AnyRow
    gold: int
    predicted: int


class DifferenceCounts(TypedDict):
    """How many rows differ; a changed row counts as missing and as extra."""

    missing: int
    extra: int


class ListTotals(TypedDict):
    """How many rows of each kind differ; a changed row counts as `changed` only."""

    missing: int
    extra: int
    changed: int
    repeated: int


class ChangedCell(TypedDict):
    """A cell of gold, and the predicted one in its place; until a report is made of them as a `Table` has them."""

    key: dict[str, JsonValue]
    """What identifies the row: its cells in columns whose values are unique in both answers, else its first texts."""
    gold: JsonValue
    predicted: JsonValue


class ColumnDifference(TypedDict):
    """In how many paired rows a column differs, or an element of the lists or structs in it."""

    column: str
    """Its name in gold; of an element with its path: `tags[0]`, `address.city`, `tags (order)`, `address (keys)`.

    In `tags (missing elements)` and `tags (extra elements)`, one side is an empty list.
    """
    rows: int
    of: int
    """The number of paired rows, equal ones included."""
    examples: list[ChangedCell]
    """The first rows that differ."""


class DifferenceReport(TypedDict, Generic[AnyRow]):
    """How the predicted answer differs from gold; lists of rows contain only the first rows."""

    summary: str
    """The difference in one sentence."""
    columns: NotRequired[list[str]]
    """The names of gold's columns, in whose order the rows are; empty if the answers are not tables."""
    predicted_columns: NotRequired[list[str]]
    """The names of the predicted columns in the same places."""
    counts: NotRequired[DifferenceCounts]
    missing: list[AnyRow]
    extra: list[AnyRow]
    changed: list[ChangedRow[AnyRow]]
    repeated: list[RepeatedRow[AnyRow]]
    totals: NotRequired[ListTotals]
    """How many rows the lists would have in full; present if one has fewer."""
    by_column: NotRequired[list[ColumnDifference]]
    """Where paired rows of tables differ, the columns that differ in most rows first; present if any do."""


NO_DIFFERENCE: DifferenceReport[Any] = {
    "summary": "",
    "columns": [],
    "predicted_columns": [],
    "counts": {"missing": 0, "extra": 0},
    "missing": [],
    "extra": [],
    "changed": [],
    "repeated": [],
}


class HintReport(TypedDict):
    """A hint that only the form of a wrong answer differs, with a remedy that was tried."""

    kind: HintKind
    text: str
    compare: dict[str, JsonValue] | None
    """The settings of `compare` under which the case would pass; null if the query has to change."""


class CausingEditReport(TypedDict):
    """An edit on the way from the predicted query to gold."""

    label: CauseLabel
    clause: str
    """The part of the query that it changes."""
    change: str
    """What is there, and what should be."""


class CauseReport(TypedDict):
    """Why an answer is wrong."""

    edits: Edits
    """At least one."""
    repaired_query: str | None
    """The predicted query after these edits, which has gold's answer."""
    tested: NotRequired[bool]
    """Whether it is also equivalent to gold, or answers as gold does on small databases, not on the source only."""


class RefutationReport(TypedDict):
    """A small database in which the answers of gold and of the predicted query differ."""

    script: str
    """The script that creates it: SQL, Turtle, or TriG."""
    rows: int
    """How many rows, or triples, it has."""
    gold_rows: list[Row]
    """The first rows that gold answers there."""
    predicted_rows: list[Row]


class ChallengeReport(TypedDict):
    """Whether other data tell the predicted query, whose answer is right, from gold."""

    verdict: ChallengeVerdict
    """`same`: both have the same words; `proved`: rules make them the same; `refuted`: their answers differ in a
    small database that satisfies what the data of the source does; `stands`: in none of these that was tried;
    `unchallenged`: there is no small database to try.
    """
    tried: int
    """In how many small databases both queries ran."""
    counterexample: RefutationReport | None
    """Present if the verdict is `refuted`."""
    unlike: RefutationReport | bool | None
    """A counterexample that violates what the data of the source satisfies, if the verdict is `stands`; else null.

    Earlier versions wrote true with the verdict `refuted`, and false: `by_data` reads both.
    """
    rules: NotRequired[list[str]]
    """The rules by which both queries are the same; present if the verdict is `proved`."""
    reason: NotRequired[str]
    """Why no small database was tried; present if the verdict is `unchallenged`."""


class ChallengeByData(NamedTuple):
    """The result of a challenge, in which only a counterexample that satisfies what the source's data does refutes."""

    verdict: ChallengeVerdict
    refutation: RefutationReport | None
    ruled_out: RefutationReport | None
    """A counterexample that violates what the data of the source satisfies."""

    @property
    def counterexample(self) -> RefutationReport | None:
        """The refutation if there is one, else the counterexample that was ruled out; None if there is neither."""
        return self.refutation or self.ruled_out


def by_data(challenge: ChallengeReport) -> ChallengeByData:
    """Return the verdict and the counterexamples of a challenge in one form, whichever version wrote the report.

    A `refuted` challenge of an earlier version whose counterexample violates the source's data `stands` instead.
    """
    verdict, counterexample, unlike = challenge["verdict"], challenge["counterexample"], challenge["unlike"]
    if unlike is True:
        return ChallengeByData("stands", None, counterexample)
    return ChallengeByData(verdict, counterexample, unlike or None)


class ViolationReport(TypedDict):
    """A score outside the limits of a metric; None leaves a side open."""

    metric: str
    min: float | None
    max: float | None
    value: float


class ScoresReport(TypedDict):
    """The scores of a case or of a trial."""

    scores: dict[str, float | None]
    """By metric; None if a metric does not apply."""
    violations: list[ViolationReport]
    """The thresholds that are not met."""


class TrialPredictedReport(TypedDict):
    """What was predicted in one of several trials."""

    query: str | None
    error: FailureReport | None
    seconds: float


class TrialReport(ScoresReport):
    """One of several trials of a case."""

    passed: bool | None
    """None if nothing is required."""
    predicted: TrialPredictedReport
    prediction: PredictionReport


class SpiderDetails(TypedDict):
    """A pair of queries under Spider's published evaluation."""

    hardness: str
    exact: bool
    components: ComponentCounts
    """For each component the number of parts that gold has, that predicted has, and that both have."""
    rejected: NotRequired[str]
    """Why the predicted query cannot be read."""


class ExpectationReport(TypedDict):
    """One thing that a case expects of any right answer."""

    name: str
    """Its place below `expect`, such as `values.price.min`."""
    expected: str
    """The value there, in one line."""
    holds: bool
    found: str
    """What is wrong, with an example; empty if it holds."""


class DetailsReport(TypedDict, total=False):
    """What metrics state about their scores, under any keys; these are the keys that reports use."""

    notes: list[str]
    cause: JsonValue
    """Of a wrong answer that no small edit repairs: the fields of `SharedPatterns`."""
    empty_gold: bool
    choice: str
    """What gold leaves open below its own LIMIT, where predicted has another answer that gold may give."""
    expectations: list[ExpectationReport]
    """Of a case with `expect`, if there is an answer."""
    spider: SpiderDetails
    dimensions: JsonValue
    """The `precision` and `recall` of the dimensions of SDMX selections, by name."""


class Limits(TypedDict):
    """The least and the greatest value that a metric may have; None leaves a side open."""

    min: float | None
    max: float | None


class QueryLimits(TypedDict):
    """The limits of an execution."""

    timeout: float
    """In seconds."""
    max_rows: int


class StoppingTrials(TypedDict):
    """Trials that stop once the verdict of the case is decided."""

    max: int
    stop: Literal["decided"]


class CaseFingerprint(TypedDict):
    """What the scores of a case depend on besides system, question and evidence; shown next to a changed score."""

    answers: Literal["asked", "stated"]
    """Whether answers come from a predictor or stand in the suite."""
    context: str | None
    """A digest of metadata and of the conversation before the question, None if there is neither."""
    metrics: list[str]
    thresholds: dict[str, Limits]
    on_miss: Literal["fail", "xfail"]
    xfail: NotRequired[bool]
    """Whether the suite marks the case `xfail`; present if it does."""
    trials: int | StoppingTrials
    trials_rule: TrialsRule
    golds: str
    """A digest of all golds."""
    gold_answers: NotRequired[str | None]
    """A digest of their answers, None if one of them failed or none ran; older reports lack it."""
    limits: QueryLimits
    schemas: dict[str, str]
    """Digests of the contents of schemas, by key."""
    compare: dict[str, JsonValue]
    """The settings of the comparison that differ from the default of the kind."""
    options: dict[str, dict[str, JsonValue]]
    definitions: NotRequired[dict[str, int]]
    """The numbers of the definitions of metrics that were defined otherwise before; 1 for others. Baselines do not
    compare the scores of different ones."""
    source: str | None
    """The state of the source, None if unknown."""
    gold_source: NotRequired[str | None]
    """The state of the source that gold ran on; present if it is another one."""
    expect: NotRequired[str]
    """A digest of what the case expects of any right answer; present if it does."""
    review: NotRequired[str]
    """A digest of the decision on gold and of its answers; absent where none has an effect."""


class MessageReport(TypedDict):
    """What was said in a conversation before the question."""

    role: str
    """Who said it."""
    content: str


class TurnReport(TypedDict):
    """Which turn of a conversation a case is."""

    conversation: str
    """The id of the conversation, which others of its suite do not have."""
    number: int
    """From 1, among the turns that are cases."""
    of: int
    """The number of these turns."""


class ReviewReport(TypedDict):
    """What reviewers decided on the golds of a case, as it applies."""

    decision: ReviewDecision
    reviewers: list[str]
    notes: list[str]
    """What they wrote about it."""


class UnreviewedReport(TypedDict):
    """The outcome and the scores of a case by the golds of its suite, before the decision of reviewers."""

    outcome: Outcome
    scores: dict[str, float | None]


class CaseReport(ScoresReport):
    """A case with its outcome."""

    id: str
    nodeid: str
    """The name of the case as a test."""
    path: str
    """The suite file."""
    line: int
    """The line of the case in the suite file, or of `cases` for a case in a table; 0 if unknown."""
    row: NotRequired[int]
    """The number of the row, from 1, for a case in a table."""
    place: NotRequired[str]
    """The file, sheet and row of a case in a table, in words."""
    combination: NotRequired[int]
    """The number of its combination of parameters, from 1, in the order of the suite; present if it has parameters."""
    kind: str | None
    """None if the suite could not be read."""
    tags: list[str]
    difficulty: str | None
    answerable: NotRequired[bool]
    """Whether the question has a right answer; present if it has none."""
    features: NotRequired[list[str]]
    """What the first gold is made of; present if it is a query that has any features."""
    source: str | None
    gold_source: NotRequired[str]
    """Where gold ran; present if it is not `source`."""
    groups: NotRequired[dict[str, list[str]]]
    """The values of the case by group, of those in which it has any; older reports lack it."""
    question: str
    conversation: NotRequired[list[MessageReport]]
    """Present if something was said before the question."""
    turn: NotRequired[TurnReport]
    """Present if the case is the turn of a conversation about queries."""
    evidence: str
    outcome: Outcome
    """It is `xpassed` under a strict xfail mark as well, which fails the run: only then it has a message."""
    reruns: NotRequired[int]
    """How many times another plugin ran the case again after a failure; the last run counts. Present if it did."""
    joint_scores: NotRequired[dict[str, float | None]]
    """What it adds to run metrics that several cases decide together, such as all turns of a conversation."""
    gold: GoldReport | None
    """This and the next three are None if the case ended before; this one also if no answer is right."""
    predicted: PredictedReport | None
    scoring: ScoringReport | None
    depends_on_tie: bool
    """Whether the answer is right only because gold leaves its answer open, as by a LIMIT that cuts through a tie."""
    difference: DifferenceReport[Row] | None
    hints: NotRequired[list[HintReport]]
    """Present if only the form of the answer differs."""
    cause: CauseReport | None
    challenge: NotRequired[ChallengeReport]
    """Present if the answer is right, and a challenge of it was asked for."""
    prediction: PredictionReport | None
    trials: list[TrialReport]
    """Empty unless there are several."""
    details: DetailsReport
    message: str
    fingerprint: CaseFingerprint | None
    """None if the suite could not be read."""
    review: NotRequired[ReviewReport]
    """Present if a decision on its golds applies."""
    field_scores: NotRequired[dict[str, float]]
    """Of a JSON answer by path without indexes: which share of gold's values there is right, as a mean over trials."""
    fields_left_out: NotRequired[int]
    """How many other paths gold has; present if there are any."""
    unreviewed: NotRequired[UnreviewedReport]
    """Present if that decision changes what the case is scored by."""


def is_strict_xpass(case: CaseReport) -> bool:
    """Return whether the case fails the run because it passed under a strict xfail mark."""
    return case["outcome"] == "xpassed" and bool(case["message"])
