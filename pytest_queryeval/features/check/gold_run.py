"""A gold of a case with its answer, which the rules on golds examine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property

from pytest_queryeval.comparison.equality import project
from pytest_queryeval.core.errors import Location, QueryEvalError
from pytest_queryeval.core.model import AddedAnswer, Case, Execution, Prediction, QueryOrAnswer
from pytest_queryeval.core.table import Table
from pytest_queryeval.engines import ENGINES
from pytest_queryeval.evaluation.scoring import Scoring
from pytest_queryeval.evaluation.session import Session
from pytest_queryeval.languages import KINDS, Kind


def run_golds(case: Case, session: Session, *, run_queries: bool = True) -> Iterator[GoldRun]:
    """Run the golds of a case one by one, where golds run; without `run_queries`, only stated answers are read.

    Raise `SourceError` if the source does not answer.
    """
    case = case.on_gold_source
    for index, content in enumerate(case.golds):
        is_run = run_queries or content.answer is not None
        execution = session.execute_cached(content, case) if is_run else None
        yield GoldRun(case=case, index=index, execution=execution, session=session)


@dataclass(frozen=True, kw_only=True)
class GoldRun:
    """A gold of a case with its answer."""

    case: Case
    """The case with the source of golds as its source."""
    index: int
    """The position of the gold, from 0."""
    execution: Execution | None
    """None if queries are not run."""
    session: Session

    @property
    def kind(self) -> Kind:
        """The kind of the case."""
        return KINDS[self.case.settings.kind]

    @property
    def content(self) -> QueryOrAnswer:
        """The gold as the suite states it."""
        return self.case.golds[self.index]

    @property
    def location(self) -> Location:
        """The place of the gold."""
        return self.content.location or self.case.location

    @property
    def query(self) -> str | None:
        """The query of the gold as it was run, if it is one that a source runs."""
        query = self.content.query if self.execution is None else self.execution.query
        return query if self.kind.has_queries and self.case.settings.source is not None else None

    @property
    def is_remote(self) -> bool:
        """Whether a service runs the gold, and no files are read."""
        source = self.case.settings.source
        return source is not None and not ENGINES[source.engine].fingerprint.files(source)

    @property
    def writes(self) -> bool:
        """Whether the gold may change data."""
        return self.case.settings.source is not None and self.case.settings.source.writes

    @property
    def table(self) -> Table | None:
        """The answer, if it is a table."""
        return None if self.execution is None else self.execution.table

    @property
    def change(self) -> AddedAnswer | None:
        """The answer, if it is what statements changed."""
        answer = None if self.execution is None else self.execution.answer
        return answer if self.writes and isinstance(answer, AddedAnswer) else None

    @property
    def compared(self) -> Table | None:
        """The columns of the table that are compared; None if the case names columns that it does not have."""
        with suppress(QueryEvalError):
            return None if self.table is None else project(self.table, self.case.settings.policy.gold_columns)
        return None

    @cached_property
    def scoring(self) -> Scoring | None:
        """The scores of the gold as a prediction; None if it has no answer that can be compared."""
        if self.execution is None or self.execution.error or (self.table is not None and self.compared is None):
            return None
        return self.scoring_of(self.execution if self.table is None else replace(self.execution, answer=self.compared))

    def scoring_of(self, predicted: Execution) -> Scoring:
        """Return the scores of an execution as a prediction."""
        assert self.execution is not None
        prediction = Prediction(content=self.content, predictor="gold")
        return Scoring(self.case, self.execution, predicted, prediction, self.session)

    def run(self, query: str) -> Table | None:
        """Return the answer of another query on the source of the case; None if it fails or is not a table."""
        return self.session.execute_cached(QueryOrAnswer(query=query), self.case, is_derived=True).table

    def asks(self, query: str) -> bool:
        """Return whether an ASK query is true on the source of the case; false where it fails."""
        answer = self.run(query)
        return answer is not None and answer.rows[0][0] is True
