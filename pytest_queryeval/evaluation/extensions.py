"""What the evaluation of a case calls in features: recordings and embedders."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol, TypeAlias

from pytest_queryeval.core.case_report import ChallengeReport
from pytest_queryeval.core.cause import Cause, SharedPatterns
from pytest_queryeval.core.db_schema import Schema
from pytest_queryeval.core.errors import QueryEvalError
from pytest_queryeval.core.model import (
    Answer,
    Case,
    Execution,
    Prediction,
    PredictorSpec,
    QueryOrAnswer,
    Source,
)
from pytest_queryeval.languages import KINDS
from pytest_queryeval.metrics import metric_of
from pytest_queryeval.sandbox.host import Hosts

if TYPE_CHECKING:
    pass

Times: TypeAlias = Sequence[tuple[float, float]]
"""Seconds of gold and of predicted, a pair for each iteration."""


class RecordedCall(Protocol):
    """One call of a predictor, identified before the call; its methods may be called in any thread."""

    def load(self) -> Prediction | None:
        """Return the recorded prediction, or None without one; in a replay, raise `PredictorError` instead."""

    def save(self, prediction: Prediction) -> Prediction:
        """Keep the prediction unless there is one already, and return the one that a replay will use."""


class Recording(Protocol):
    """What a run has asked, and the answers; several processes and threads may use it at once, and it can be pickled.

    In a replay nothing is saved, and a missing or stale answer is an error, else `load_*` returns None for it.
    `load_*` and `save_*` raise `SourceError`.
    """

    replay: bool

    def check(self) -> None:
        """Raise `QueryEvalError` if there is nothing to replay, or nothing can be saved."""

    def call(self, case: Case, spec: PredictorSpec, trial: int, schema: Callable[[], str | None]) -> RecordedCall:
        """Return a call of a predictor; `schema` lists the schema that the predictor may see."""

    def load_execution(self, query: str, source: Source, *, timeout: float, max_rows: int) -> Execution | None:
        """Return the recorded answer to the query from the source in its present state."""

    def save_execution(
        self, query: str, source: Source, execution: Execution, *, timeout: float, max_rows: int
    ) -> None:
        """Record the answer of the source to the query."""

    def load_schema(self, source: Source) -> Schema | None:
        """Return the tables of the source in its present state."""

    def save_schema(self, source: Source, schema: Schema) -> None:
        """Keep the tables of a source."""

    def load_ddl(self, source: Source) -> tuple[str | None] | None:
        """Return the DDL of the source in its present state, or None in a tuple where its engine has none."""

    def save_ddl(self, source: Source, ddl: str | None) -> None:
        """Keep the DDL of a source, None if its engine has none."""

    def load_times(self, gold: str, predicted: str, source: Source, iterations: int) -> Times | None:
        """Return the seconds that both queries took."""

    def save_times(self, gold: str, predicted: str, source: Source, iterations: int, times: Times) -> None:
        """Keep the seconds of both queries."""

    def load_cause(self, gold: str, predicted: str, case: Case) -> tuple[Cause | SharedPatterns | None] | None:
        """Return why a predicted query of the case is wrong, or None in a tuple where no cause was found."""

    def save_cause(self, gold: str, predicted: str, case: Case, cause: Cause | SharedPatterns | None) -> None:
        """Keep why a predicted query of the case is wrong, None if no cause was found."""

    def load_challenge(self, gold: str, predicted: str, case: Case) -> ChallengeReport | None:
        """Return what came of challenging a predicted query of the case by one gold."""

    def save_challenge(self, gold: str, predicted: str, case: Case, challenge: ChallengeReport) -> None:
        """Keep what came of challenging a predicted query."""


class Embedder(Protocol):
    """Compares texts by one embedding model. Its methods raise `QueryEvalError` if the model cannot be loaded."""

    def prepare(self, texts: Iterable[str]) -> None:
        """Embed texts in one batch, for later calls of `similarities`."""

    def similarities(self, pairs: Sequence[tuple[str, str]]) -> Sequence[float]:
        """Return the cosine of each pair of texts, from -1 to 1."""

    def close(self) -> None:
        """Close whatever is open."""


def texts_to_embed(cases: Iterable[Case]) -> dict[str, list[str]]:
    """Return texts by the model that will embed them.

    If the prediction is stated, these are the texts in which it differs from gold, else all texts of gold. The metrics
    are called with a similarity function that only records the texts.
    """
    texts_by_model: defaultdict[str, dict[str, None]] = defaultdict(dict)

    def listen(model: str, pairs: Sequence[tuple[str, str]]) -> list[float]:
        texts_by_model[model].update(dict.fromkeys(text for pair in pairs for text in pair))
        return [1.0] * len(pairs)

    def listen_for_differences(model: str, pairs: Sequence[tuple[str, str]]) -> list[float]:
        listen(model, [(gold, predicted) for gold, predicted in pairs if gold != predicted])
        return [1.0] * len(pairs)

    for case in cases:
        metrics = [metric_of(case.settings, name) for name in case.settings.requested_metrics]
        metrics = [requested for requested in metrics if requested.metric.injected == {"similarity"}]
        similarity = listen if case.predicted is None else listen_for_differences
        for gold, predicted in _answers(case) if metrics else ():
            for metric, options in metrics:
                # An error of a user's metric is reported when its case is scored.
                with suppress(Exception):
                    metric.function(gold, predicted, similarity=similarity, **options)
    return {model: list(texts) for model, texts in texts_by_model.items()}


def _answers(case: Case) -> Iterator[tuple[Answer, Answer]]:
    """Yield each gold with the stated prediction, or with itself if a predictor is to be called."""
    golds = [gold.answer for gold in case.golds if gold.answer is not None]
    if not isinstance(case.predicted, QueryOrAnswer):
        yield from zip(golds, golds, strict=True)
        return
    with suppress(QueryEvalError):  # which is reported when the case is evaluated
        # Whether the prediction conforms to a schema does not matter here.
        unchecked = replace(case, extra={})
        execution = KINDS[case.settings.kind].read_without_running(case.predicted, unchecked, Hosts())
        if execution is not None and execution.answer is not None:
            yield from ((gold, execution.answer) for gold in golds)
