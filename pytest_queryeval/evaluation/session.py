"""What the cases of a run share: open engines and predictors, and a cache of executions."""

from __future__ import annotations

import hashlib
import marshal
import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypedDict, TypeVar, cast

from pytest_queryeval.core.cause import CauseMode
from pytest_queryeval.core.db_schema import Schema
from pytest_queryeval.core.errors import (
    PredictorError,
    QueryEvalError,
    SourceError,
    UnresponsiveSourceError,
    capture_error,
    unwrap,
)
from pytest_queryeval.core.features import feature
from pytest_queryeval.core.model import Abstention, Case, Execution, Failure, Prediction, QueryOrAnswer, Source
from pytest_queryeval.core.table import Row, Table
from pytest_queryeval.engines import (
    ENGINES,
    Comparison,
    Engine,
    SmallDatabase,
    SupportsDDL,
    SupportsReads,
    SupportsSchema,
    SupportsTiming,
    is_local,
)
from pytest_queryeval.engines.settings import check_exists, known_state, variants_of
from pytest_queryeval.evaluation.extensions import Embedder, texts_to_embed
from pytest_queryeval.evaluation.pool import PredictorPool
from pytest_queryeval.evaluation.prediction_call import SchemaTexts, SpendLimit, schema_script
from pytest_queryeval.languages import KINDS
from pytest_queryeval.metrics import metric_of, need_answers
from pytest_queryeval.predictors import CaseView
from pytest_queryeval.sandbox.host import Hosts, is_match, text_refusal, unmatched_texts
from pytest_queryeval.text.redaction import register_secrets

if TYPE_CHECKING:
    from pytest_queryeval.evaluation.extensions import Recording
    from pytest_queryeval.languages.sparql.source_terms import SourceTerms, UnknownTerm

T = TypeVar("T")
CACHE_CELLS = 1_000_000
ANALYSIS_IS_OVER = "the time of the analysis is over"
LISTING_SECONDS = 60.0  # for a source to list its tables, whatever the timeout of a case
LOOKUP_SECONDS = 10.0  # for a source to look up a term, or to list its terms
LOOKUP_ROWS = 100_000


class ExecutionLimits(TypedDict):
    """The limits of an execution: seconds, and rows of the answer."""

    timeout: float
    max_rows: int


class SourceStates(NamedTuple):
    """The states of the sources of a case, as `Session.source_state` returns them; None if unknown."""

    source: str | None = None
    gold_source: str | None = None


UNKNOWN_STATES = SourceStates()


class Session:
    """The engines, predictors and cached executions that the cases of a run share.

    Close it, or use it as a context manager. `tell` is called with a line while something takes long. `recording`
    stores predictions and executions. `hook`, `one_at_a_time` and `spend` are those of `PredictorPool`. `cause_mode`
    says on which sources to search for the causes of wrong answers: local sources, none, or all.
    """

    def __init__(
        self,
        tell: Callable[[str], None] = lambda _: None,
        *,
        recording: Recording | None = None,
        hook: Callable[[CaseView], object] | None = None,
        one_at_a_time: bool = False,
        cause_mode: CauseMode = "auto",
        spend: SpendLimit | None = None,
    ) -> None:
        self.cause_mode = cause_mode
        self._tell = tell
        self.recording = recording
        self._schema_texts = SchemaTexts(self._describe_tables)
        self.predictors = PredictorPool(
            tell,
            recording=recording,
            hook=hook,
            one_at_a_time=one_at_a_time,
            schemas=self._schema_texts,
            spend=spend,
        )
        self.metric_of = cache(metric_of)
        """`metrics.metric_of`; the metrics of a run stay the same."""
        self._embedders: dict[str, Embedder] = {}
        self._hosts = Hosts()
        self._engines: dict[tuple[str, str], Engine | SourceError] = {}
        self._blocked_by_derived_query: set[tuple[str, str]] = set()  # keys of sources
        self._built: Source | None = None
        self._engines_lock = threading.Lock()  # predictors list schemas in threads
        self._kept: dict[Hashable, Any] = {}
        self._executions: OrderedDict[tuple[object, ...], Execution] = OrderedDict()
        self._cached_cells = 0
        self._is_analysing = False
        self._analysis_seconds: float | None = None  # that are left of the limit of an analysis

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End every child process and close every file, even if one of them raises. Idempotent."""
        with ExitStack() as stack:
            stack.callback(self._hosts.close)
            for opened in (*self._engines.values(), *self._embedders.values(), self.predictors):
                if not isinstance(opened, Exception):
                    stack.callback(opened.close)
            self._engines.clear()
            self._built = None
            self._embedders.clear()
            self._kept.clear()
            self._executions.clear()
            self._cached_cells = 0

    @contextmanager
    def analysis(self, seconds: float | None = None) -> Iterator[None]:
        """Run the queries within the `with` statement as part of an analysis, so that they are not recorded.

        They run for at most `seconds` together; further queries count as timeouts.
        """
        self._is_analysing, self._analysis_seconds = True, seconds
        try:
            yield
        finally:
            self._is_analysing, self._analysis_seconds = False, None

    def register_cases(self, cases: Sequence[Case]) -> None:
        """Register the secrets of all sources, opened or not, and pass the cases to the predictors."""
        for source in {source.key: source for case in cases for source in case.settings.sources}.values():
            register_secrets(source.settings)
        self.predictors.register_cases(cases)

    def engine(self, source: Source | None) -> Engine:
        """Return the engine of a source, opened once; raise the same `SourceError` every time if that failed.

        Also raise `SourceError` without a source.
        """
        if source is None:
            raise SourceError("there is no source to run the query on: set `source`")
        key = source.key
        with self._engines_lock:
            if key not in self._engines:
                register_secrets(source.settings)
                self._engines[key] = capture_error(lambda: self._open(source), SourceError)
        return unwrap(self._engines[key])

    def _open(self, source: Source) -> Engine:
        for name in ENGINES[source.engine].fingerprint.files(source):
            check_exists(source, name)
        self.variants(source)
        return ENGINES[source.engine].open(source, self._hosts)

    def build(self, source: Source, script: str, rows: Mapping[str, Sequence[Row]] | None = None) -> Source:
        """Build a small database from a script, and from rows by table if given; return it as a source.

        The source is like `source`, and valid until the next call, which closes it. Raise `SourceError` if the script
        fails; some engines run it only at the first query, which then raises.
        """
        engine_type = ENGINES[source.engine]
        settings = engine_type.fingerprint.settings(source.settings)
        if rows is None:
            assert engine_type.build is not None
            engine = engine_type.build(script, settings, self._hosts)
        else:
            assert engine_type.build_with_rows is not None
            engine = engine_type.build_with_rows(script, settings, self._hosts, rows)
        # For caches, which outlive the database.
        digest = hashlib.sha256(script.encode() + marshal.dumps(dict(rows or {}), 2)).hexdigest()
        source = replace(source, name="script", settings={**settings, "digest": digest}, folder=Path())
        with self._engines_lock:
            if self._built != source:
                if self._built is not None:
                    unwrap(self._engines.pop(self._built.key)).close()
                    self._built = None
                self._engines[source.key] = engine
                self._built = source
        return source

    def variants(self, source: Source) -> list[Source]:
        """Return the variants of a source, as they are at the first call.

        Raise `SourceError` if its pattern matches no file.
        """
        return self.cached(("variants", source.key), lambda: variants_of(source))

    def cached(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return what `make` returned at the first call with this key, or raise the `SourceError` of that call."""
        if key not in self._kept:
            self._kept[key] = capture_error(make, SourceError)
        return cast("T", unwrap(self._kept[key]))

    def predict(self, case: Case, trial: int = 1) -> Prediction:
        """Return the system's answer in a trial, counted from 1.

        Raise `PredictorError` if there is none, and `SpendLimitReached` if a call may not begin.
        """
        return self.predictors.prediction(case, trial)

    def recognize_abstention(self, prediction: Prediction, case: Case) -> Prediction:
        """Return the prediction as an abstention if its text matches the `abstain` of its predictor; else unchanged.

        The text becomes the reason. Raise `PredictorError` if the search in the text takes too long.
        """
        spec, content = case.settings.predictor, prediction.content
        if spec is None or spec.abstain is None or not isinstance(content, QueryOrAnswer) or content.query is None:
            return prediction
        match = is_match(spec.abstain, content.query, self._hosts)
        if isinstance(match, Failure):
            remedy = "write one without nested repetitions"
            problem = f"the pattern of `abstain` cannot be searched in the answer: {match.message}: {remedy}"
            raise PredictorError(problem)
        return replace(prediction, answer=Abstention(content.query)) if match else prediction

    def unmatched(self, pattern: re.Pattern[str], texts: Collection[str]) -> Collection[str] | Failure:
        """Return the texts that a pattern does not match as a whole, or a failure if matching takes too long.

        Raise `SourceError` if the child process that matches cannot run.
        """
        return unmatched_texts(pattern, texts, self._hosts)

    def prediction_at_hand(self, case: Case) -> Prediction | None:
        """Return the system's answer if it needs no call, for instance if the suite states it; else None."""
        return self.predictors.prediction_at_hand(case)

    def execute(self, content: QueryOrAnswer, case: Case, *, is_derived: bool = False) -> Execution:
        """Return the execution of a query, or a stated answer as the case's kind reads it.

        A query is rewritten by its source and looked up in the recording; a new execution is recorded. `is_derived`
        marks a query that is made from the gold or predicted query. Raise `SourceError` if the source cannot answer. If
        a query that is not derived makes its source unresponsive, the source is closed, and later cases get a
        `SourceError`. Raise `PredictorError` for a stated answer of another kind.
        """
        execution = KINDS[case.settings.kind].read_without_running(content, case, self._hosts)
        if execution is not None:
            return execution
        query = content.query or ""
        if case.settings.source is None and not need_answers(case.settings.requested_metrics):
            return Execution(query=query, error=text_refusal(query))  # only metrics of texts score it
        try:
            query = query if case.settings.source is None else case.settings.source.rewritten(query)
        except ValueError as problem:
            return Execution(query=query, error=Failure(kind="invalid", message=str(problem)))
        limits: ExecutionLimits = {"timeout": case.settings.timeout, "max_rows": case.settings.max_rows}
        if self.recording is None or self._is_analysing or case.settings.source in (None, self._built):
            return self._run_on_engine(query, case, limits, is_derived=is_derived)
        execution = self.recording.load_execution(query, case.settings.source, **limits)
        if execution is None:
            execution = self._run_on_engine(query, case, limits, is_derived=is_derived)
            self.recording.save_execution(query, case.settings.source, execution, **limits)
        return execution

    def _run_on_engine(self, query: str, case: Case, limits: ExecutionLimits, *, is_derived: bool) -> Execution:
        engine, source = self.engine(case.settings.source), case.settings.source
        assert source is not None  # or it would have no engine
        try:
            with self._limited(limits["timeout"]) as timeout:
                if timeout <= 0:
                    return Execution(query=query, error=Failure(kind="timeout", message=ANALYSIS_IS_OVER))
                execution = engine.execute(query, timeout=timeout, max_rows=limits["max_rows"])
        except UnresponsiveSourceError:
            if is_derived:
                self._blocked_by_derived_query.add(source.key)
            else:
                self._close_for_later_cases(source, case)
            raise
        self._blocked_by_derived_query.discard(source.key)
        return execution

    @contextmanager
    def _limited(self, timeout: float) -> Iterator[float]:
        """Give the seconds that a query may run within the `with` statement.

        Its time is taken from that of the analysis.
        """
        began = monotonic()
        try:
            yield timeout if self._analysis_seconds is None else min(timeout, self._analysis_seconds)
        finally:
            if self._analysis_seconds is not None:
                self._analysis_seconds -= monotonic() - began

    def compare(self, queries: tuple[str, str], databases: Iterable[SmallDatabase], case: Case) -> Iterator[Comparison]:
        """Run two queries in small databases like the case's source, and yield the comparison in each database.

        An engine that compares several databases at once runs both queries for the case's timeout in all of them
        together. The comparisons then end with a query that is late or ends the process. Raise `SourceError` if such an
        engine cannot start.
        """
        source = case.settings.source
        assert source is not None  # or there would be nothing in its place
        compare, settings = ENGINES[source.engine].compare, ENGINES[source.engine].fingerprint.settings(source.settings)
        if compare is not None:
            with self._limited(case.settings.timeout) as timeout:
                if timeout <= 0:
                    raise SourceError(ANALYSIS_IS_OVER)
                limits: ExecutionLimits = {"timeout": timeout, "max_rows": case.settings.max_rows}
                comparisons = compare(queries, list(databases), settings, self._hosts, **limits)
            yield from comparisons
            return

        def comparison(database: SmallDatabase) -> Comparison:
            built_case = replace(case, settings=replace(case.settings, source=self.build(source, *database)))
            gold, predicted = (self.execute(QueryOrAnswer(query=query), built_case) for query in queries)
            return None if gold.error is None and gold.answer == predicted.answer else (gold, predicted)

        for database in databases:
            yield capture_error(partial(comparison, database), SourceError)

    def _close_for_later_cases(self, source: Source, case: Case) -> None:
        was_blocked_before = source.key in self._blocked_by_derived_query
        problem = "no longer answers" if was_blocked_before else f"has not answered since the query of case '{case.id}'"
        with self._engines_lock:
            engine = self._engines[source.key]
            self._engines[source.key] = SourceError(f"source '{source.name}': the server {problem}")
        unwrap(engine).close()

    def execute_cached(self, content: QueryOrAnswer, case: Case, *, is_derived: bool = False) -> Execution:
        """Return the execution of a query, cached by source, query, timeout and `max_rows`.

        A stated answer is returned unchanged. The cache keeps the executions used last, with at most CACHE_CELLS cells.
        Raise errors as `execute` does; errors and timeouts of an analysis are not cached.
        """
        if content.answer is not None:
            return Execution(query=content.query, answer=content.answer)
        if case.settings.source is None:
            return self.execute(content, case, is_derived=is_derived)
        key = (case.settings.source.key, content.query, case.settings.timeout, case.settings.max_rows)
        if key in self._executions:
            self._executions.move_to_end(key)
            return self._executions[key]
        execution = self.execute(content, case, is_derived=is_derived)
        if self._analysis_seconds is not None and execution.error is not None and execution.error.kind == "timeout":
            return execution
        self._executions[key] = execution
        self._cached_cells += _cells(execution)
        while self._cached_cells > CACHE_CELLS:
            self._cached_cells -= _cells(self._executions.popitem(last=False)[1])
        return execution

    def schema(self, case: Case) -> Schema:
        """Return the tables that a case's queries are about: those of its suite, else those that its source lists.

        Empty if neither is known. Raise the same `SourceError` every time if the source cannot list them.
        """
        source = case.settings.source
        if case.db_schema is not None or source is None:
            return case.db_schema or Schema()
        return self.cached(("schema", source.key), lambda: self._list_schema(source, case.settings.timeout))

    def schema_text(self, case: Case) -> str:
        """Return the schema that a case's predictor sees: for SQL, CREATE TABLE statements; empty if there is none.

        Raise the same `SourceError` every time if the source cannot list it.
        """
        return self._schema_texts.of(case)() or ""

    def unknown_terms(self, query: str, case: Case) -> Sequence[UnknownTerm] | None:
        """Return the terms in the patterns of a SPARQL query that the case's source does not have; None if unknown.

        Raise `SourceError` if the source cannot be queried.
        """
        terms = self.source_terms(case)
        golds = [gold.query for gold in case.golds if gold.query is not None]
        return None if terms is None else terms.unknown_terms(query, golds)

    def source_terms(self, case: Case) -> SourceTerms | None:
        """Return the object that looks up terms in a case's source; None if the case has no source or no SPARQL."""
        source = case.settings.source
        if source is None or case.settings.kind != "sparql":
            return None
        from pytest_queryeval.languages.sparql.query import declared_prefixes
        from pytest_queryeval.languages.sparql.source_terms import SourceTerms

        lookup_case = replace(case, settings=replace(case.settings, timeout=LOOKUP_SECONDS, max_rows=LOOKUP_ROWS))

        def run(lookup: str) -> Table | None:
            try:
                return self.execute(QueryOrAnswer(query=lookup), lookup_case, is_derived=True).table
            except UnresponsiveSourceError:
                return None

        return self.cached(
            ("terms", source.key, self._is_analysing),  # what only an analysis has looked up is not in the recording
            lambda: SourceTerms(run, declared_prefixes(source.settings), is_local=is_local(source)),
        )

    def _list_schema(self, source: Source, timeout: float) -> Schema:
        schema = None if self.recording is None else self.recording.load_schema(source)
        if schema is None:
            engine = self.engine(source)
            schema = engine.schema(timeout=timeout) if isinstance(engine, SupportsSchema) else Schema()
            if self.recording is not None:
                self.recording.save_schema(source, schema)
        return schema

    def _describe_tables(self, source: Source) -> str | None:
        ddl = self.list_ddl(source)
        return ddl if source.rewriter is None else source.rewriter.describe(ddl or "")

    def list_ddl(self, source: Source) -> str | None:
        """Return the DDL of a source, from the recording or listed now and recorded; None if its engine has none.

        Raise `SourceError` if the source does not answer.
        """
        recorded_ddl = None if self.recording is None else self.recording.load_ddl(source)
        if recorded_ddl is not None:
            return recorded_ddl[0]
        engine = self.engine(source)
        ddl = None
        if isinstance(engine, SupportsDDL):
            ddl = engine.ddl(timeout=LISTING_SECONDS)
        elif isinstance(engine, SupportsSchema):
            ddl = schema_script(engine.schema(timeout=LISTING_SECONDS), ENGINES[source.engine].dialect(source.settings))
        if self.recording is not None:
            self.recording.save_ddl(source, ddl)
        return ddl

    def reads(self, query: str, source: Source, timeout: float) -> Execution | None:
        """Return the columns that a query reads, as its source reports them; None if its engine cannot say.

        The answer is recorded. Raise `SourceError` if the source does not answer.
        """
        limits: ExecutionLimits = {"timeout": timeout, "max_rows": LOOKUP_ROWS}
        label = f"what is read by: {query}"
        if self.recording is not None and (recorded := self.recording.load_execution(label, source, **limits)):
            return recorded
        engine = self.engine(source)
        if not isinstance(engine, SupportsReads):
            return None
        listing = engine.reads(query, timeout=timeout)
        if self.recording is not None:
            self.recording.save_execution(label, source, listing, **limits)
        return listing

    def source_states(self, case: Case) -> SourceStates:
        """Return the states of a case's sources."""
        return SourceStates(self.source_state(case.settings.source), self.source_state(case.settings.gold_source))

    def source_state(self, source: Source | None) -> str | None:
        """Return a text that changes with a source's data, as it was at the first call.

        None without a source, for files of more than 256 MiB together, and if the state cannot be determined.
        """
        if source is None:
            return None
        return self.cached(("state", source.key), lambda: known_state(source))

    def times(self, gold: str, predicted: str, case: Case, iterations: int) -> Sequence[tuple[float, float]]:
        """Return the seconds of both queries on the case's source, a pair for each iteration.

        Recorded times are used; otherwise the queries run in turn, and their times are recorded. Raise `SourceError` if
        the source cannot time them or a query fails.
        """
        recording, source = self.recording, case.settings.source
        if recording is None or source is None:
            return self._time_queries(gold, predicted, case, iterations)
        times = recording.load_times(gold, predicted, source, iterations)
        if times is None:
            times = self._time_queries(gold, predicted, case, iterations)
            recording.save_times(gold, predicted, source, iterations, times)
        return times

    def _time_queries(self, gold: str, predicted: str, case: Case, iterations: int) -> Sequence[tuple[float, float]]:
        engine = self.engine(case.settings.source)
        if not isinstance(engine, SupportsTiming):
            raise SourceError(
                f"the engine '{case.settings.source and case.settings.source.engine}' cannot time queries"
            )
        execution = engine.time(gold, predicted, iterations=iterations, timeout=case.settings.timeout)
        if not isinstance(execution.answer, Table):
            reason = execution.error.message if execution.error else "no answer"
            raise SourceError(f"queries that ran before failed when they were timed: {reason}")
        return [(gold_seconds, predicted_seconds) for gold_seconds, predicted_seconds in execution.answer.rows]  # type: ignore[misc]  # seconds

    def similarity(self, model: str, pairs: Sequence[tuple[str, str]]) -> Sequence[float]:
        """Return the cosine of each pair of texts by an embedding model.

        Raise `QueryEvalError` if it cannot be loaded.
        """
        return self._embedder(model).similarities(pairs)

    def prepare(self, cases: Iterable[Case]) -> None:
        """Embed the texts that cases are known to need in one batch.

        A failure is not raised here, but again for each case.
        """
        for model, texts in texts_to_embed(cases).items():
            with suppress(QueryEvalError):
                self._embedder(model).prepare(texts)

    def _embedder(self, model: str) -> Embedder:
        if model not in self._embedders:
            self._embedders[model] = feature("embeddings").Embedder(model, tell=self._tell)
        return self._embedders[model]


def _cells(execution: Execution) -> int:
    table = execution.answer
    return 1 + (len(table.rows) * len(table.columns) if isinstance(table, Table) else 0)
