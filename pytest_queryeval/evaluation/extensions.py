"""What features and other packages add to the evaluation of a case, each in a registry of its own.

These are searches for counterexamples, challengers of answers that pass, checks of golds, recordings, and embedders.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

from pytest_queryeval.core.cause import Cause, SharedPatterns
from pytest_queryeval.core.db_schema import Schema, Tables
from pytest_queryeval.core.errors import Finding, QueryEvalError
from pytest_queryeval.core.model import (
    Answer,
    Case,
    Challenge,
    Execution,
    Prediction,
    PredictorSpec,
    QueryOrAnswer,
    Source,
)
from pytest_queryeval.core.registry import Registry
from pytest_queryeval.core.table import Table
from pytest_queryeval.languages import KINDS
from pytest_queryeval.metrics import metric_of
from pytest_queryeval.sandbox.host import Hosts

if TYPE_CHECKING:
    from pytest_queryeval.evaluation.session import Session

MAX_DATABASES = 120  # that a search tries, attempts to leave rows out of one included
DEFAULT_CHALLENGER = "small_databases"
DEFAULT_RECORDING = "folder"
Times: TypeAlias = Sequence[tuple[float, float]]
"""Seconds of gold and of predicted, a pair for each iteration."""
DEFAULT_EMBEDDER = "sentence_transformers"


@dataclass(frozen=True, slots=True, kw_only=True)
class Counterexample:
    """A database on which the answers of two queries differ."""

    script: str
    """The script that creates the database: SQL, Turtle, or TriG."""
    tables: dict[str, Table]
    """The tables that have rows, by name; of a graph its triples, by the name of the graph."""
    gold: Execution
    predicted: Execution

    @property
    def size(self) -> int:
        """How many rows, or triples, the database has."""
        return sum(len(table.rows) for table in self.tables.values())


class SearchResult(NamedTuple):
    """What a search came to."""

    counterexample: Counterexample | None
    """One that satisfies what the data of the source does; None if no such database shows a difference."""
    ruled_out: Counterexample | None
    """One that violates it, such as by a NULL where the data has none; None if there is another, or none at all."""
    tried: int
    """In how many databases both queries ran, without those that only make a counterexample smaller."""


class CounterexampleFinder(Protocol):
    """Looks for a counterexample."""

    def __call__(self, case: Case, gold: str, predicted: str, session: Session) -> SearchResult:
        """Look for a database in which two queries differ by the policy of the case.

        Variants of the source are tried first. A counterexample keeps all declared constraints, has as few rows as
        possible, and the order of its rows does not matter. Raise `SourceError` if no database can be built.
        """


class DifferenceFinder(Protocol):
    """Looks for a difference of two queries, without a counterexample to show."""

    def __call__(self, case: Case, gold: str, predicted: str, session: Session, databases: int) -> bool:
        """Return whether two queries differ by the policy of the case in one of several databases.

        Raise `SourceError` if no database can be built.
        """


class Constraints(NamedTuple):
    """Constraints that every small database of a source satisfies."""

    text: str
    """The same as long as a search has the same databases to choose from."""
    tables: Tables
    """The tables with their constraints; empty for graphs."""


class ConstraintReader(Protocol):
    """States what small databases for two queries keep."""

    def __call__(self, case: Case, gold: str, predicted: str, session: Session) -> Constraints:
        """Return the constraints of the tables that two queries read, as far as the rows of the source keep them.

        Raise `SourceError` if no database can be built.
        """


class CounterexampleSearch(NamedTuple):
    """A search for small databases in which two queries differ."""

    find: CounterexampleFinder
    refute: DifferenceFinder
    constraints: ConstraintReader


COUNTEREXAMPLE_SEARCHES: Registry[CounterexampleSearch] = Registry(
    "search for counterexamples", group="pytest_queryeval.counterexamples", used_by_workers=True, members={}
)


class Challenger(Protocol):
    """Challenges predicted queries."""

    def __call__(self, case: Case, gold: Execution, predicted: Execution, session: Session) -> Challenge:
        """Return whether other data tells a predicted query, whose answer is right, from gold.

        `gold` is the one that counts; a prediction is refuted if it differs from every gold of the case that accepts
        it. Nothing is raised where that cannot be found out: then the verdict is `unchallenged`.
        """


CHALLENGERS: Registry[Challenger] = Registry(
    "challenger", group="pytest_queryeval.challengers", used_by_workers=True, members={}
)


class GoldCheck(Protocol):
    """Examines the golds of a case."""

    def __call__(self, case: Case, session: Session, rules: Collection[str]) -> Iterator[Finding]:
        """Yield what those of the `rules` that are known to it find, silenced or not.

        Raise `SourceError` if the source does not answer.
        """


GOLD_CHECKS: Registry[GoldCheck] = Registry("check of golds", group="pytest_queryeval.gold_checks", members={})


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
        """Return the answer of the source to the query in its present state."""

    def save_execution(
        self, query: str, source: Source, execution: Execution, *, timeout: float, max_rows: int
    ) -> None:
        """Keep the answer of the source to the query."""

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

    def load_challenge(self, gold: str, predicted: str, case: Case) -> Challenge | None:
        """Return what came of challenging a predicted query of the case by one gold."""

    def save_challenge(self, gold: str, predicted: str, case: Case, challenge: Challenge) -> None:
        """Keep what came of challenging a predicted query."""


class OpenRecording(Protocol):
    """Opens a recording; folders in it are relative to `root`."""

    def __call__(self, folder: Path, *, replay: bool, root: Path) -> Recording:
        """Return the recording in a folder; read and write nothing yet."""


RECORDINGS: Registry[OpenRecording] = Registry("recording", group="pytest_queryeval.recordings", members={})


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
