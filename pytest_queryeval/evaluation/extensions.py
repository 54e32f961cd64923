"""What the evaluation of a case calls in features: recordings and embedders."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Protocol, TypeAlias

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

Times: TypeAlias = Sequence[tuple[float, float]]
"""Seconds of gold and of predicted, a pair for each iteration."""


class RecordedCall(Protocol):
    """A call of a predictor, identified before it is made; its methods may be called in any thread."""

    def load(self) -> Prediction | None:
        """Return the recorded prediction; None if there is none, but in a replay raise `PredictorError`."""

    def save(self, prediction: Prediction) -> Prediction:
        """Record the prediction unless one is recorded already, and return the recorded prediction."""


class Recording(Protocol):
    """The questions and answers of a run; several processes and threads may use it at once, and it can be pickled.

    In a replay, nothing is saved, and `load_*` raises `SourceError` for an answer that is missing or stale. Otherwise
    `load_*` returns None for such an answer. `save_*` raises `SourceError` if it cannot save.
    """

    replay: bool

    def check(self) -> None:
        """Raise `QueryEvalError` if a replay has no folder to read, or if the folder for entries cannot be made.

        Without `replay`, the folder is made.
        """

    def call(self, case: Case, spec: PredictorSpec, trial: int, schema: Callable[[], str | None]) -> RecordedCall:
        """Return the call of a predictor for a trial of a case.

        `schema` returns the schema that the predictor may see.
        """

    def load_execution(self, query: str, source: Source, *, timeout: float, max_rows: int) -> Execution | None:
        """Return the recorded execution of the query on the source in its present state; None if there is none."""

    def save_execution(
        self, query: str, source: Source, execution: Execution, *, timeout: float, max_rows: int
    ) -> None:
        """Record the execution of the query on the source in its present state."""

    def load_schema(self, source: Source) -> Schema | None:
        """Return the recorded tables of the source in its present state; None if there are none."""

    def save_schema(self, source: Source, schema: Schema) -> None:
        """Record the tables of a source."""

    def load_ddl(self, source: Source) -> tuple[str | None] | None:
        """Return the recorded DDL of the source in its present state, in a tuple; None if nothing is recorded.

        The tuple contains None if the engine has no DDL.
        """

    def save_ddl(self, source: Source, ddl: str | None) -> None:
        """Record the DDL of a source; None says that its engine has none."""

    def load_times(self, gold: str, predicted: str, source: Source, iterations: int) -> Times | None:
        """Return the recorded seconds of both queries on the source, a pair for each iteration.

        None if there are none.
        """

    def save_times(self, gold: str, predicted: str, source: Source, iterations: int, times: Times) -> None:
        """Record the seconds of both queries on the source."""

    def load_cause(self, gold: str, predicted: str, case: Case) -> tuple[Cause | SharedPatterns | None] | None:
        """Return the recorded cause of a wrong predicted query, in a tuple; None if nothing is recorded.

        The tuple contains None if no cause was found.
        """

    def save_cause(self, gold: str, predicted: str, case: Case, cause: Cause | SharedPatterns | None) -> None:
        """Record the cause of a wrong predicted query of the case; None says that no cause was found."""

    def load_challenge(self, gold: str, predicted: str, case: Case) -> ChallengeReport | None:
        """Return the recorded challenge of a predicted query by one gold; None if there is none."""

    def save_challenge(self, gold: str, predicted: str, case: Case, challenge: ChallengeReport) -> None:
        """Record the challenge of a predicted query by one gold."""


class Embedder(Protocol):
    """Compares texts by an embedding model; its methods raise `QueryEvalError` if the model cannot be loaded."""

    def prepare(self, texts: Iterable[str]) -> None:
        """Embed texts in one batch, and keep the results for later calls of `similarities`."""

    def similarities(self, pairs: Sequence[tuple[str, str]]) -> Sequence[float]:
        """Return the cosine of the embeddings of each pair of texts, from -1 to 1."""

    def close(self) -> None:
        """Free the resources of the model."""


def texts_to_embed(cases: Iterable[Case]) -> dict[str, list[str]]:
    """Return the texts that metrics of these cases will compare, by embedding model.

    If the suite states the prediction, these are the texts in which it differs from gold, else all texts of gold. To
    find them, the metrics are called with a similarity function that only records its texts.
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
    """Yield each gold answer of a case with the stated prediction; if a predictor is to be called, with itself."""
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
