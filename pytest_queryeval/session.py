"""What the cases of a run share: open engines and predictors, and what was executed before."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Self, TypeVar

from pytest_queryeval.engines import ENGINES, Described, Engine, Timed
from pytest_queryeval.engines.host import Hosts
from pytest_queryeval.errors import PredictorError, QueryEvalError, SourceError
from pytest_queryeval.kinds import KINDS
from pytest_queryeval.model import Case, Execution, Prediction, PredictorSpec, Source, Stated
from pytest_queryeval.predictors import PREDICTORS, Predictor
from pytest_queryeval.schema import Schema
from pytest_queryeval.semantic_texts import texts_to_embed
from pytest_queryeval.table import Table

if TYPE_CHECKING:
    from pytest_queryeval.embeddings import Embedder

Opened = TypeVar("Opened")
Fault = TypeVar("Fault", bound=QueryEvalError)

CACHE_CELLS = 1_000_000
_INLINE = PredictorSpec(kind="inline", settings={}, folder=Path())


class Session:
    """What cases of one run share: open engines, open predictors, and queries that were executed before.

    Close it, or use it as a context manager. `tell` is called with a line while something takes long.
    """

    def __init__(self, tell: Callable[[str], None] = lambda _: None) -> None:
        self._tell = tell
        self._embedders: dict[str, Embedder] = {}
        self._hosts = Hosts()
        self._engines: dict[tuple[str, str], Engine | SourceError] = {}
        self._predictors: dict[tuple[str, str], Predictor | PredictorError] = {}
        self._schemas: dict[tuple[str, str], Schema | SourceError] = {}
        self._executions: OrderedDict[tuple[object, ...], Execution] = OrderedDict()
        self._cached_cells = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop every child process and free every file, also where one of them raises; may be called again."""
        with ExitStack() as stack:
            stack.callback(self._hosts.close)
            for opened in (*self._engines.values(), *self._predictors.values(), *self._embedders.values()):
                if not isinstance(opened, Exception):
                    stack.callback(opened.close)
            self._engines.clear()
            self._predictors.clear()
            self._embedders.clear()
            self._schemas.clear()
            self._executions.clear()
            self._cached_cells = 0

    def engine(self, source: Source | None) -> Engine:
        """The engine of a source, opened once; raises `SourceError`, the same one every time."""
        if source is None:
            raise SourceError("the case has a query and no source to run it on")
        key = source.key
        if key not in self._engines:
            self._engines[key] = _opened(lambda: ENGINES[source.engine].open(source, self._hosts), SourceError)
        return _or_raise(self._engines[key])

    def predict(self, case: Case) -> Prediction:
        """The system's answer; raises `PredictorError`."""
        spec = case.predictor
        if spec is None or (case.predicted is not None and spec.kind == "inline"):
            return PREDICTORS["inline"](_INLINE).predict(case)
        key = (spec.kind, f"{spec.folder}\0{sorted(spec.settings.items(), key=str)!r}")
        if key not in self._predictors:
            self._predictors[key] = _opened(lambda: PREDICTORS[spec.kind](spec), PredictorError)
        return _or_raise(self._predictors[key]).predict(case)

    def execute(self, stated: Stated, case: Case) -> Execution:
        """Read what is stated as the case's kind does, or run it; raises `SourceError`, `PredictorError`."""
        answered = KINDS[case.kind].answered(stated, case, self._hosts)
        if answered is not None:
            return answered
        query = stated.query or ""
        return self.engine(case.source).execute(query, timeout=case.timeout, max_rows=case.max_rows)

    def execute_once(self, stated: Stated, case: Case) -> Execution:
        """`execute`, remembered for queries that come again; at most CACHE_CELLS cells are kept.

        An answer that is stated is taken as it is.
        """
        if stated.answer is not None:
            return Execution(query=stated.query, answer=stated.answer)
        if case.source is None:
            return self.execute(stated, case)
        key = (case.source.key, stated.query, case.timeout, case.max_rows)
        if key in self._executions:
            self._executions.move_to_end(key)
            return self._executions[key]
        execution = self.execute(stated, case)
        self._remember(key, execution)
        return execution

    def schema(self, case: Case) -> Schema:
        """The tables that a case's queries are about: as its suite states them, else as its source lists them.

        Empty where neither is to be had; raises `SourceError`, the same one every time.
        """
        if case.db_schema is not None or case.source is None:
            return case.db_schema or Schema()
        key = case.source.key
        if key not in self._schemas:
            engine = self.engine(case.source)
            self._schemas[key] = _opened(lambda: _listed(engine, case.timeout), SourceError)
        return _or_raise(self._schemas[key])

    def times(self, gold: str, predicted: str, case: Case, iterations: int) -> Sequence[tuple[float, float]]:
        """Seconds of both queries, run in turn on the case's source; raises `SourceError` where that fails."""
        engine = self.engine(case.source)
        if not isinstance(engine, Timed):
            raise SourceError(f"the engine '{case.source and case.source.engine}' cannot time queries")
        timed = engine.time(gold, predicted, iterations=iterations, timeout=case.timeout)
        if not isinstance(timed.answer, Table):
            reason = timed.error.message if timed.error else "no answer"
            raise SourceError(f"queries that ran before fail when they are timed: {reason}")
        return [(first, second) for first, second in timed.answer.rows]  # type: ignore[misc]  # seconds

    def similarity(self, model: str, pairs: Sequence[tuple[str, str]]) -> Sequence[float]:
        """The cosine of each pair of texts by an embedding model; raises `EmbeddingError`, the same one every time."""
        return self._embedder(model).similarities(pairs)

    def prepare(self, cases: Iterable[Case]) -> None:
        """Embed the texts that cases are known to need, all at once; what fails here is told by each case."""
        for model, texts in texts_to_embed(cases).items():
            with suppress(QueryEvalError):
                self._embedder(model).prepare(texts)

    def _embedder(self, model: str) -> Embedder:
        from pytest_queryeval.embeddings import Embedder

        if model not in self._embedders:
            self._embedders[model] = Embedder(model, tell=self._tell)
        return self._embedders[model]

    def _remember(self, key: tuple[object, ...], execution: Execution) -> None:
        self._executions[key] = execution
        self._cached_cells += _cells(execution)
        while self._cached_cells > CACHE_CELLS:
            self._cached_cells -= _cells(self._executions.popitem(last=False)[1])


def _listed(engine: object, timeout: float) -> Schema:
    return engine.schema(timeout=timeout) if isinstance(engine, Described) else Schema()


def _cells(execution: Execution) -> int:
    table = execution.answer
    return 1 + (len(table.rows) * len(table.columns) if isinstance(table, Table) else 0)


def _opened(open_it: Callable[[], Opened], fault: type[Fault]) -> Opened | Fault:
    """What `open_it` returns, or the fault that it raises, kept so that it is raised for every case alike."""
    try:
        return open_it()
    except fault as error:
        return error


def _or_raise(opened: Opened | SourceError | PredictorError) -> Opened:
    if isinstance(opened, SourceError | PredictorError):
        raise opened.with_traceback(None)  # or each raise would add to the traceback of the one before
    return opened
