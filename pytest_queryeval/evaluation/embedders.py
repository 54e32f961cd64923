"""Embedders, which features and other packages register, and the texts that they can embed before a run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Protocol

from pytest_queryeval.core.errors import QueryEvalError
from pytest_queryeval.core.model import Answer, Case, QueryOrAnswer
from pytest_queryeval.core.registry import Registry
from pytest_queryeval.languages import KINDS
from pytest_queryeval.metrics import metric_of
from pytest_queryeval.sandbox.host import Hosts

DEFAULT_EMBEDDER = "sentence_transformers"


class Embedder(Protocol):
    """Compares texts by one embedding model. Its methods raise `QueryEvalError` if the model cannot be loaded."""

    def prepare(self, texts: Iterable[str]) -> None:
        """Embed texts in one batch, for later calls of `similarities`."""

    def similarities(self, pairs: Sequence[tuple[str, str]]) -> Sequence[float]:
        """Return the cosine of each pair of texts, from -1 to 1."""

    def close(self) -> None:
        """Close whatever is open."""


class OpenEmbedder(Protocol):
    """Opens the embedder of a model; `tell` is called with lines of progress."""

    def __call__(self, model: str, *, tell: Callable[[str], None]) -> Embedder:
        """Return the embedder of the model of that name; load nothing yet."""


EMBEDDERS: Registry[OpenEmbedder] = Registry(
    "embedder", group="pytest_queryeval.embedders", used_by_workers=True, members={}
)


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
