"""What a metric is: a pure function of gold and predicted, and what it needs to be called; what a run metric is.

Run metrics are means over the cases of a run that follow from how the cases ended, so that no case requests them.
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, NamedTuple, TypeAlias, TypeVar, get_args, get_origin, get_type_hints

from pytest_queryeval.core.case_report import CaseReport, ChallengeReport
from pytest_queryeval.core.json_value import JsonValue
from pytest_queryeval.core.model import (
    PASS_RATE,
    SCORE_TOLERANCE,
    TRIALS_SCORES,
    Case,
    Criterion,
    Execution,
    Failure,
    Outcome,
)
from pytest_queryeval.core.registry import Registry
from pytest_queryeval.core.shapes import ANYTHING, Shape, enum_shape
from pytest_queryeval.core.table import Table

Scorer: TypeAlias = Callable[..., "float | Score | None"]
Rewrite: TypeAlias = Callable[[str], str]
Check: TypeAlias = Callable[[Mapping[str, JsonValue]], None]
MetricInput: TypeAlias = Literal["answers", "executions", "queries", "predictions"]
Better: TypeAlias = Literal["higher", "lower"]
MetricGroup: TypeAlias = Literal["answers", "resources"]
LARGEST = 1e150  # of scores and seconds: its square is still a number
Function = TypeVar("Function", bound=Scorer)
# Seconds of gold and of predicted, a pair an iteration; None if one of the two is not a query.
Timer: TypeAlias = Callable[[int], Sequence[tuple[float, float]] | None]
# The cosines of pairs of texts by the embedding model of that name.
Similarity: TypeAlias = Callable[[str, Sequence[tuple[str, str]]], Sequence[float]]
# The values of another metric, each behind the name of the variant of the database on which both queries have it; the
# first is that on the source itself, without a name.
States: TypeAlias = Callable[[str], Iterator[tuple[str, float | None]]]
# The terms of a query that the case's source does not have, each in a sentence; None if that cannot be told.
UnknownTerms: TypeAlias = Callable[[str], Sequence[str] | None]
# What came of challenging the predicted query, whose answer is right.
RunChallenge: TypeAlias = Callable[[], ChallengeReport]


class SchemaUse(NamedTuple):
    """The names of a schema that a query uses.

    For SQL, these are tables and columns as `table.column`; for SPARQL, classes as `tables` and predicates as
    `columns`.
    """

    tables: frozenset[str]
    columns: frozenset[str]


# What a query, gold if that is true, uses of the schema; raises ValueError with the reason if it cannot be read.
ReadSchemaUse: TypeAlias = Callable[[str, bool], SchemaUse]
# What an executed query reads outside of the scope of its case, each in a sentence.
FindBreaches: TypeAlias = Callable[[Execution], Sequence[str]]
# Which texts a pattern does not match as a whole; a failure if that takes too long.
FindUnmatched: TypeAlias = Callable[[re.Pattern[str], Collection[str]], Collection[str] | Failure]
# Arguments of metrics that the evaluation passes and suites do not set.
INJECTED = frozenset(
    {
        *("policy", "dialect", "gold_dialect", "schema", "timer"),
        *(
            "similarity",
            "states",
            "unknown_terms",
            "challenge",
            "expectations",
            "report_rows",
            "schema_use",
            "breaches",
            "unmatched",
        ),
    }
)
# What each outcome adds to the pass rate; cases with other outcomes are left out of it.
_PASS_SCORES: Mapping[Outcome, float] = {"passed": 1.0, "failed": 0.0, "missed": 0.0, "error": 0.0}


def unchecked(_: Mapping[str, JsonValue]) -> None:
    """Accept all options of a metric; the default of `check`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """The value of a metric, with details for the report; the value is None if the metric does not apply.

    `details` are added to the details of the case. The sentences in `details["notes"]` are added to its notes.
    """

    value: float | None
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A scoring function with the facts that the evaluation needs to call it.

    The function is called with gold and predicted by position, and with options and injected arguments by keyword.
    """

    function: Scorer
    answers: type | None = None
    """The type of answers that it scores: a `Table`, a `JsonAnswer`, a `Selection`; None for all types."""
    kinds: frozenset[str] | None = None
    """The kinds of cases that it scores; None for all kinds with such answers."""
    input: MetricInput = "answers"
    """What the function gets as gold and predicted.

    `answers` are the answers, and `executions` include them and the texts of the queries. `queries` are these texts,
    scored even if the predicted query fails. With `predictions` it gets predicted's execution and its `Prediction`
    instead, even without an answer.
    """
    criterion: Criterion = "gold"
    """What a case has to have to be scored: `gold` for metrics that compare with it, `answer` for all answerable cases;
    `expect` and `abstention` are for the metrics of cases that have these."""
    header: bool = False
    """Whether it needs the columns of answers alone: of a case without a source it gets those that queries select."""
    rewrite: tuple[Rewrite, Rewrite] | None = None
    """Functions that rewrite gold and predicted before scoring; a query with a changed text is run again."""
    rewrite_note: Rewrite | None = None
    """Returns a note on the rewriting of a predicted query that fails without it; empty for none."""
    options: frozenset[str] = frozenset()
    """The keyword-only arguments that a suite sets under `options`."""
    check: Check = unchecked
    """Raises `SettingError` for the first option with an invalid value."""
    needs: Mapping[str, tuple[str, JsonValue]] = field(default_factory=dict)
    """Options that have an effect only with another option, each with the name and the value of that one."""
    injected: frozenset[str] = frozenset()
    """The keyword-only arguments that the evaluation passes, out of INJECTED.

    They are the comparison `policy`, sqlglot's names of the `dialect` of predicted and of that of gold, `gold_dialect`,
    the `schema` of the database of predicted, a `Timer`, the `Similarity` of texts, the `UnknownTerms` of queries, the
    `States` of the database, a `RunChallenge`, what the case `expectations` of an answer are, how many rows reports may
    show, `ReadSchemaUse`, `FindBreaches` and `FindUnmatched`. A metric with `states` also decides what a failed
    prediction scores.
    """
    extra: str = ""
    """The extra of this package that it needs; empty for none."""
    paths: frozenset[str] = frozenset()
    """The options that may name a file, relative to the file that sets them."""
    parameter: str = ""
    """The argument that gets the text in brackets of a name such as `recall[COUNTRY]`; empty without brackets."""
    max_score: float | None = None
    """The greatest score, which may be infinite; the least is 0. None if unknown."""
    better: Better = "higher"
    """Which scores are better: `higher` for accuracy, `lower` for cost."""
    group: MetricGroup = "answers"
    """What it measures: `answers` and texts, or `resources` such as time. Levels of suites inherit the thresholds of
    each group separately."""
    ignores: frozenset[str] = frozenset()
    """The keys of `compare` that never change its score, although it gets the `policy` or the columns of gold that
    count."""
    published: bool = False
    """Whether it follows a published evaluator instead of the case's `compare`; it then gets all columns of gold."""
    definition: int = 1
    """The number of its definition: a metric that scores the same answers otherwise than before has a greater one, and
    no baseline compares the two."""
    counts: tuple[str, Callable[..., Any]] | None = None
    """A name in `details.counts`, which metrics may share, and the function that computes the counts behind the score.

    The function gets gold, predicted and the injected arguments, and returns plain values.
    """

    @property
    def worst_score(self) -> float | None:
        """The score of a failed prediction: 0 if higher is better, else the greatest score.

        None if scores have no limit.
        """
        if self.better == "higher":
            return 0.0
        return None if self.max_score is None or math.isinf(self.max_score) else self.max_score

    def range_problem(self, score: float) -> str:
        """Return why a score is outside the range of the metric.

        Empty if it is inside, or if the range has no upper limit.
        """
        if self.max_score is None or math.isinf(self.max_score):
            return ""
        is_possible = -SCORE_TOLERANCE <= score <= self.max_score + SCORE_TOLERANCE
        return "" if is_possible else f"{score:g} is outside its range, 0 to {self.max_score:g}"

    def applies_to(self, kind: str, answer_type: type) -> bool:
        """Return whether the metric can score cases of a kind whose answers have this type."""
        return (self.answers is None or issubclass(answer_type, self.answers)) and (
            self.kinds is None or kind in self.kinds
        )

    def option_shapes(self) -> Mapping[str, Shape]:
        """Return the shape of each option by name, derived from the type annotation of the function's argument."""
        try:
            hints = get_type_hints(self.function) if self.options else {}
        except NameError:  # of a type that is imported for type checkers only
            hints = {}
        shapes: dict[str, Shape] = {}
        for name in sorted(self.options):
            annotation = hints.get(name)
            is_literal = get_origin(annotation) is Literal
            # Anything is allowed where a type is neither simple nor a `Literal`.
            shapes[name] = enum_shape(get_args(annotation)) if is_literal else _SHAPES.get(annotation, ANYTHING)
        return shapes


def metric(
    *,
    answers: type | None = Table,
    kinds: frozenset[str] | None = None,
    input: MetricInput = "answers",  # noqa: A002 (it is the field of `Metric`)
    criterion: Criterion | None = None,
    header: bool = False,
    rewrite: tuple[Rewrite, Rewrite] | None = None,
    rewrite_note: Rewrite | None = None,
    check: Check = unchecked,
    needs: Mapping[str, tuple[str, JsonValue]] | None = None,
    extra: str = "",
    paths: frozenset[str] = frozenset(),
    parameter: str = "",
    max_score: float = 1.0,
    better: Better = "higher",
    group: MetricGroup = "answers",
    ignores: frozenset[str] = frozenset(),
    published: bool = False,
    definition: int = 1,
    counts: tuple[str, Callable[..., Any]] | None = None,
) -> Callable[[Function], Function]:
    """Return a decorator that attaches a `Metric` to a scoring function and returns the function itself.

    The arguments are the fields of `Metric`. Without a `criterion`, metrics of `predictions` score all answerable
    cases, and other metrics score the cases that have a gold.
    """
    facts: dict[str, Any] = {
        "answers": answers,
        "kinds": kinds,
        "input": input,
        "criterion": criterion or ("answer" if input == "predictions" else "gold"),
        "header": header,
        "rewrite": rewrite,
        "rewrite_note": rewrite_note,
        "check": check,
        "needs": needs or {},
        "extra": extra,
        "paths": paths,
        "parameter": parameter,
        "max_score": max_score,
        "better": better,
        "group": group,
        "ignores": ignores,
        "published": published,
        "definition": definition,
        "counts": counts,
    }

    def describe(function: Function) -> Function:
        function.metric = describe_metric(function, **facts)  # type: ignore[attr-defined]
        return function

    return describe


def describe_metric(function: Scorer, **facts: Any) -> Metric:
    """Return the `Metric` of a function: without `facts` the attached one, if there is one, else a new `Metric`.

    The new `Metric` has the `facts` as fields. Its options and injected arguments are the keyword-only arguments of the
    function.
    """
    if not facts and isinstance(described := getattr(function, "metric", None), Metric):
        return described
    parameters = inspect.signature(function).parameters.values()
    names = {parameter.name for parameter in parameters if parameter.kind is parameter.KEYWORD_ONLY}
    options = frozenset(names - INJECTED - {facts.get("parameter")})
    return Metric(function=function, options=options, injected=frozenset(names & INJECTED), **facts)


_SHAPES: Mapping[Any, Shape] = {
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
    str: {"type": "string"},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RunMetric:
    """A mean over the cases of a run that follows from how the cases ended.

    Gates can limit it, and reports may show it.
    """

    score: Callable[[CaseReport], float | None]
    """Returns what a case adds to the mean, from `least` to 1; None if it adds nothing, as most cases in error."""
    least: float = 0.0
    """The least that a case can add, which may be minus infinity."""
    options: Mapping[str, Shape] = field(default_factory=dict)
    """What suites set under `options`, which `score` finds in the fingerprint of a case: the shapes by name."""
    check: Check = unchecked
    """Raises `SettingError` for the first option with an invalid value."""
    paths: ClassVar[frozenset[str]] = frozenset()
    """No option names a file."""
    better: Better = "higher"
    concerns: Callable[[CaseReport], bool] | None = None
    """Returns whether a case is a reason to report the metric; None if reports do not add it to their metrics."""
    joint_scores: Callable[[Iterable[CaseReport]], Mapping[str, float | None]] | None = None
    """For a metric that several cases decide together: returns from all cases of a run what some of them add to the
    mean, by node id. Reports store it as their `joint_scores`, from which `score` reads it."""
    unit: str = "case"
    """What the mean is over, in the singular."""
    judges: Callable[[Case], bool] | None = lambda _: True
    """Returns whether a wrong answer to a case makes the mean worse; None if that is so where it misses a threshold."""


def _of_trials(name: str) -> RunMetric:
    """Return the run metric for `name`, a score that only cases with several trials have: its mean over them."""
    return RunMetric(
        score=lambda case: case["scores"].get(name),
        judges=lambda case: name in case.settings.trials_scores,
    )


RUN_METRICS: Registry[RunMetric] = Registry(
    "run metric",
    group="pytest_queryeval.run_metrics",
    members={
        PASS_RATE: RunMetric(
            score=lambda case: _PASS_SCORES.get(case["outcome"]),
            judges=None,
        ),
        **{name: _of_trials(name) for name in TRIALS_SCORES},
    },
)


def reported_run_metrics() -> dict[str, RunMetric]:
    """Return the run metrics that reports may show among their metrics, by name: those with `concerns`."""
    return {name: metric for name, metric in RUN_METRICS.available().items() if metric.concerns is not None}
