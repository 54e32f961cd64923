"""The page on which people review golds and judge the answers of an audit: a server on this machine, and its script.

Golds and audits are a `ReviewTask` each; they share facts on a case, and runs of queries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from queue import Empty, LifoQueue
from typing import Any, Protocol, TypeAlias, TypedDict

from pytest_queryeval.core.case_report import CaseReport
from pytest_queryeval.core.errors import QueryEvalError, ReportError
from pytest_queryeval.core.model import Case, QueryOrAnswer, Threshold
from pytest_queryeval.core.table import Table
from pytest_queryeval.evaluation.session import Session
from pytest_queryeval.features.review.decisions import git_user
from pytest_queryeval.languages import KINDS
from pytest_queryeval.reports.html import SCRIPTS, assets, template
from pytest_queryeval.reports.html.case_list import details
from pytest_queryeval.runs.evaluate import NamedCase, evaluate_named_case
from pytest_queryeval.text.formatting import truncate

HERE = Path(__file__).parent
# Except the scripts for a list of cases that the page itself contains.
SHARED_SCRIPTS = tuple(path for path in SCRIPTS if path.stem not in ("cases", "start"))
JsonObject: TypeAlias = Mapping[str, Any]
SESSIONS = 4  # that run queries at once; each may start processes of its own
CLOSE_SECONDS = 0.1
LISTED_CHARACTERS = 160
SCHEMA_CHARACTERS = 200_000


def serve_review(review: ReviewTask, *, title: str, port: int | None, tell: Callable[[str], None]) -> None:
    """Serve the page until Ctrl-C; `tell` gets its address. Without a port, the usual one or any free one is taken.

    Raise `ReportError` if the port is taken, and if an extra is not installed.
    """
    serve = load_server()
    try:
        serve(review, html(title), port=port, tell=tell)
    finally:
        review.close()


def load_server() -> Callable[..., None]:
    """Return the server of pages; raise `ReportError` if its extra is not installed."""
    try:
        from pytest_queryeval.features.review.page.server import serve
    except ModuleNotFoundError as error:
        raise ReportError(f"--serve needs {error.name}: pip install 'pytest-queryeval[review]'") from error
    return serve


def html(title: str) -> str:
    """Return the page, which asks the server for all that it shows."""
    try:
        reviewer = git_user()
    except ReportError:
        reviewer = ""
    return template(HERE / "review.html.jinja").render(
        title=title,
        reviewer=reviewer,
        **assets(*SHARED_SCRIPTS, HERE / "review.js", styles=[HERE / "review.css"], connects=True),
    )


class Choice(TypedDict):
    """What can be decided, and the key that decides it."""

    name: str
    key: str
    words: str
    hint: str
    """What it means, for the list of keys."""


class ReviewTask(Protocol):
    """What is reviewed: golds, or the answers that an audit drew. Its methods are called from several threads.

    A case is known by its place in the list. All raise `QueryEvalError` for what cannot be done.
    """

    def overview(self, reviewer: str) -> JsonObject:
        """Return all cases in their order, with what this reviewer decided on each, and what can be decided."""
        ...

    def case(self, place: int) -> JsonObject:
        """Return everything about a case except the answers of its queries."""
        ...

    def decisions(self, place: int) -> JsonObject:
        """Return what all reviewers decided on a case on which they disagree, for somebody who settles it."""
        ...

    def answer(self, place: int, request: JsonObject) -> JsonObject:
        """Run the query that a request names or holds, and return its answer."""
        ...

    def append(self, place: int, decision: JsonObject) -> None:
        """Append a decision to the file of its reviewer."""
        ...

    def appended_lines(self) -> list[str]:
        """Return lines on how much was appended to which file."""
        ...

    def close(self) -> None:
        """Stop all queries."""
        ...


class SessionPool:
    """Sessions, of which a query has one to itself: nobody waits for the slow query of somebody else.

    Schemas have a session that runs no query of a reviewer, so that pages never wait for one.
    """

    def __init__(self) -> None:
        self._schema_session = Session(cause_mode="off")
        self._sessions = [Session(cause_mode="off") for _ in range(SESSIONS)]
        self._idle: LifoQueue[Session] = LifoQueue()  # so that the same few have sources open
        for session in self._sessions:
            self._idle.put(session)
        self._is_closed = False

    def close(self) -> None:
        """Stop every process that runs a query, and begin no other query."""
        if self._is_closed:
            return
        self._is_closed = True
        self._schema_session.close()
        idle_count = 0
        while idle_count < SESSIONS:
            for session in self._sessions:
                session.close()
            with suppress(Empty):  # of a session whose query began meanwhile
                self._idle.get(timeout=CLOSE_SECONDS)
                idle_count += 1

    @contextmanager
    def _session(self) -> Iterator[Session]:
        session = self._idle.get()
        try:
            if self._is_closed:
                raise ReportError("the server has ended")
            yield session
        finally:
            self._idle.put(session)

    def schema_text(self, case: Case) -> str:
        """Return the schema that predictors see; raise `SourceError` if the source cannot list it."""
        return self._schema_session.schema_text(case)

    def compare(self, content: QueryOrAnswer, case: Case) -> CaseReport:
        """Run a query as a prediction is run, and compare its answer with gold's by the settings of the case.

        A case without golds gets one that is not run.
        """
        kind = KINDS[case.settings.kind]
        default = kind.default_metrics[0]
        settings = replace(
            case.settings,
            predictor=None,
            trials=1,
            metrics=(default,),
            thresholds={default: Threshold(minimum=1.0)},
        )
        golds = case.golds or (QueryOrAnswer(answer=Table(columns=(), rows=[])) if kind.has_queries else content,)
        case = replace(case, golds=golds, answerable=True, predicted=content, settings=settings, skip=None)
        with self._session() as session:
            return evaluate_named_case(NamedCase(case, nodeid=case.id, path=""), session)


def shown_answer(report: CaseReport) -> Mapping[str, Any]:
    """Return what the page shows of an answer next to gold's."""
    return {**details(report), "outcome": report["outcome"], "message": report["message"]}


def listed_case(case: Case, nodeid: str) -> Mapping[str, Any]:
    """Return a case as the list of cases has it."""
    return {"id": case.id, "nodeid": nodeid, "question": truncate(case.question, LISTED_CHARACTERS)}


def case_facts(case: Case, nodeid: str, runner: SessionPool) -> Mapping[str, Any]:
    """Return the question, and what it is about; instead of a schema that cannot be listed, the reason."""
    try:
        schema = runner.schema_text(case)
    except QueryEvalError as error:
        schema = f"-- {error}"
    return {
        "id": case.id,
        "nodeid": nodeid,
        "kind": case.settings.kind,
        "question": case.question,
        "evidence": case.evidence,
        "conversation": [{"role": message.role, "content": message.content} for message in case.conversation[:-1]],
        "schema": truncate(schema, SCHEMA_CHARACTERS),
        "source": case.settings.source.name if case.settings.source is not None else None,
    }
