"""What a metric is: a pure function of gold and predicted, and what it needs to be called."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, TypeVar, get_args, get_origin, get_type_hints

from pytest_queryeval.core.json_value import JsonValue
from pytest_queryeval.core.shapes import ANYTHING, Shape, one_of
from pytest_queryeval.core.table import Table

Scorer: TypeAlias = Callable[..., "float | Score | None"]
Rewrite: TypeAlias = Callable[[str], str]
Check: TypeAlias = Callable[[Mapping[str, JsonValue]], None]
MetricInput: TypeAlias = Literal["answers", "executions", "queries", "predictions"]
Better: TypeAlias = Literal["higher", "lower"]
LARGEST = 1e150  # of scores and seconds: its square is still a number
Function = TypeVar("Function", bound=Scorer)
# Seconds of gold and of predicted, a pair an iteration; None where one of the two is no query.
Timer: TypeAlias = Callable[[int], Sequence[tuple[float, float]] | None]
# The cosines of pairs of texts by the embedding model of that name.
Similarity: TypeAlias = Callable[[str, Sequence[tuple[str, str]]], Sequence[float]]
# The values of another metric, each behind the name of the variant of the database on which both queries have it; the
# first is that on the source itself, without a name.
States: TypeAlias = Callable[[str], Iterator[tuple[str, float | None]]]
# The terms of a query that the case's source does not have, each in a sentence; None where that cannot be told.
UnknownTerms: TypeAlias = Callable[[str], Sequence[str] | None]
# Arguments of metrics that the evaluation passes and suites do not set.
INJECTED = frozenset({"policy", "dialect", "schema", "timer", "similarity", "states", "unknown_terms"})


def unchecked(_: Mapping[str, JsonValue]) -> None:
    """Accept all options."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """A metric's value with what a reader of the report should know about it.

    `details` are added to those of the case; `notes` among them, a list of sentences, to the notes of the case.
    """

    value: float | None
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A scorer with the facts that the evaluation needs to call it.

    It applies to kinds whose answers are of the type `answers` (a `Table`, a `JsonAnswer`, a `Selection`), and of these
    to `kinds` alone where some are named; None does not restrict it.
    `input` says what the function is given as gold and predicted: their answers, their whole executions, or the texts
    of their queries, which are scored also where the predicted query does not run; or `predictions`, for which it is
    given predicted's execution and its `Prediction`, whatever became of them. With `rewrite` both queries are
    first rewritten (gold's function, then predicted's) and run again where that changes their text; `rewrite_note`
    returns what is to be said of that where a predicted query fails as it stands, if anything.
    `options` are the names of the function's keyword-only arguments, which a suite sets under `options`, and `check`
    raises `SettingError` for the first of them whose value cannot be right. The arguments in `injected` come from the
    evaluation: the comparison `policy`, the `dialect` of the queries as sqlglot calls it, the `schema` of the database,
    a `Timer`, the `similarity` of texts, the `UnknownTerms` of queries, and the `States` of the database; a metric with
    the latter decides itself what a failed prediction scores. `extra` is the extra of this package that the metric
    needs, and `paths` are those of its options that may name a file, relative to the file that sets them. A metric with
    a `parameter` is one of a family, named as in `recall[COUNTRY]`: the function's argument of that name is what stands
    in brackets.
    Scores lie from 0 to `max_score`, which may be infinite; None where it is not known. `better` tells whether higher
    scores are better, as where they say how right an answer is, or lower ones, as where they say what it costs.
    A metric that is `published` follows a published evaluator and not the case's `compare`: it is given all columns of
    gold. `counts` is what the score is made of, for `details.counts`: the name that it has there, which metrics may
    share, and a function that gives plain values for gold, predicted and the injected arguments.
    """

    function: Scorer
    answers: type | None = None
    kinds: frozenset[str] | None = None
    input: MetricInput = "answers"
    rewrite: tuple[Rewrite, Rewrite] | None = None
    rewrite_note: Rewrite | None = None
    options: frozenset[str] = frozenset()
    check: Check = unchecked
    injected: frozenset[str] = frozenset()
    extra: str = ""
    paths: frozenset[str] = frozenset()
    parameter: str = ""
    max_score: float | None = None
    better: Better = "higher"
    published: bool = False
    counts: tuple[str, Callable[..., Any]] | None = None

    @property
    def worst_score(self) -> float | None:
        """The score of a failed prediction; None where lower is better and nothing limits how high scores are."""
        if self.better == "higher":
            return 0.0
        return None if self.max_score is None or math.isinf(self.max_score) else self.max_score

    def applies_to(self, kind: str, answer_type: type) -> bool:
        """Return whether cases of this kind, whose answers are of this type, can be scored."""
        return (self.answers is None or issubclass(answer_type, self.answers)) and (
            self.kinds is None or kind in self.kinds
        )

    def option_shapes(self) -> Mapping[str, Shape]:
        """Return the shape of each option, by the annotations of the function's arguments."""
        try:
            hints = get_type_hints(self.function) if self.options else {}
        except NameError:  # of a type that is imported for type checkers only
            hints = {}
        return {name: _annotated_shape(hints.get(name)) for name in sorted(self.options)}


def metric(
    *,
    answers: type | None = Table,
    kinds: frozenset[str] | None = None,
    input: MetricInput = "answers",  # noqa: A002 (it is the field of `Metric`)
    rewrite: tuple[Rewrite, Rewrite] | None = None,
    rewrite_note: Rewrite | None = None,
    check: Check = unchecked,
    extra: str = "",
    paths: frozenset[str] = frozenset(),
    parameter: str = "",
    max_score: float = 1.0,
    better: Better = "higher",
    published: bool = False,
    counts: tuple[str, Callable[..., Any]] | None = None,
) -> Callable[[Function], Function]:
    """Attach a `Metric` to a function, which stays the plain function that it is. See `Metric` for the arguments."""
    facts: dict[str, Any] = {
        "answers": answers,
        "kinds": kinds,
        "input": input,
        "rewrite": rewrite,
        "rewrite_note": rewrite_note,
        "check": check,
        "extra": extra,
        "paths": paths,
        "parameter": parameter,
        "max_score": max_score,
        "better": better,
        "published": published,
        "counts": counts,
    }

    def describe(function: Function) -> Function:
        function.metric = describe_metric(function, **facts)  # type: ignore[attr-defined]
        return function

    return describe


def describe_metric(function: Scorer, **facts: Any) -> Metric:
    """Return the `Metric` that a decorator attached to a function, else one by `facts` and its signature."""
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


def _annotated_shape(annotation: Any) -> Shape:
    """Return the shape of values of a type; anything where it is neither simple nor a `Literal`."""
    if get_origin(annotation) is Literal:
        return one_of(get_args(annotation))
    return _SHAPES.get(annotation, ANYTHING)
