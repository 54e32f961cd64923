"""The page on which people review golds and judge the answers of an audit: a local server and its script.

The reviews of golds and of an audit are a `ReviewTask` each; they share facts about a case, and runs of queries.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from queue import Empty, LifoQueue
from typing import Any, ClassVar, Generic, TypeAlias, TypedDict, TypeVar

from pytest_queryeval.core.case_report import CaseReport
from pytest_queryeval.core.errors import QueryEvalError, ReportError
from pytest_queryeval.core.model import Case, QueryOrAnswer, Threshold
from pytest_queryeval.core.table import Table
from pytest_queryeval.documents.document import file_at
from pytest_queryeval.evaluation.session import Session
from pytest_queryeval.features.review.decisions import git_user, open_for_append
from pytest_queryeval.languages import KINDS
from pytest_queryeval.reports.html import SCRIPTS, assets, template
from pytest_queryeval.reports.html.case_list import details
from pytest_queryeval.runs.evaluate import NamedCase, evaluate_named_case
from pytest_queryeval.text.formatting import pluralize, truncate

T = TypeVar("T")

HERE = Path(__file__).parent
# Except the scripts for a list of cases that the page itself contains.
SHARED_SCRIPTS = tuple(path for path in SCRIPTS if path.stem not in ("cases", "start"))
JsonObject: TypeAlias = Mapping[str, Any]
SESSIONS = 4  # that run queries at once; each may start processes of its own
CLOSE_SECONDS = 0.1
LISTED_CHARACTERS = 160
SCHEMA_CHARACTERS = 200_000


def serve_review(review: ReviewTask[Any], *, title: str, port: int | None, tell: Callable[[str], None]) -> None:
    """Serve the page until Ctrl-C, then close the review; `tell` is called with the address of the page.

    Without a `port`, the usual port is used, or a free one. Raise `ReportError` if the port is taken, and if an extra
    is not installed.
    """
    serve = load_server()
    try:
        serve(review, html(title), port=port, tell=tell)
    finally:
        review.close()


def load_server() -> Callable[..., None]:
    """Return the function that serves pages; raise `ReportError` if its extra is not installed."""
    try:
        from pytest_queryeval.features.review.page.server import serve
    except ModuleNotFoundError as error:
        raise ReportError(f"--serve needs {error.name}: pip install 'pytest-queryeval[review]'") from error
    return serve


def html(title: str) -> str:
    """Return the HTML of the page, which requests all data from the server."""
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
    """A decision that a reviewer can make, and the key that makes it."""

    name: str
    key: str
    words: str
    hint: str
    """The meaning of the decision, for the list of keys."""


class ReviewTask(ABC, Generic[T]):
    """What is reviewed: golds, or the answers that an audit drew. Its methods are called from several threads.

    A case is identified by its index in the list. Methods raise `QueryEvalError` for what cannot be done. Each running
    query has a session of its own, so nobody waits for the slow query of another reviewer. Schemas have a separate
    session, so pages never wait for a query.
    """

    words: ClassVar[str]
    """The words before a number of cases, as in `decisions on case`."""

    def __init__(self, cases: Sequence[T]) -> None:
        self.cases = cases
        self._appended: defaultdict[Path, set[int]] = defaultdict(set)
        self._schema_session = Session(cause_mode="off")
        self._sessions = [Session(cause_mode="off") for _ in range(SESSIONS)]
        self._idle: LifoQueue[Session] = LifoQueue()  # so that the same few have sources open
        for session in self._sessions:
            self._idle.put(session)
        self._is_closed = False

    def at(self, place: int) -> T:
        """Return the case at an index; raise `ReportError` if there is none."""
        if place >= len(self.cases):
            raise ReportError("there is no such case")
        return self.cases[place]

    @abstractmethod
    def overview(self, reviewer: str) -> JsonObject:
        """Return all cases in their order with this reviewer's decisions, and the choices for decisions, as JSON."""

    @abstractmethod
    def case(self, place: int) -> JsonObject:
        """Return everything about a case except the answers of its queries, as JSON."""

    def decisions(self, place: int) -> JsonObject:
        """Return the decisions of all reviewers on a case on which they disagree, for a person who settles it."""
        return {"decisions": []}

    @abstractmethod
    def answer(self, place: int, request: JsonObject) -> JsonObject:
        """Run the query that a request contains or refers to, and return its answer as JSON."""

    @abstractmethod
    def line(self, place: int, decision: JsonObject) -> tuple[Path, JsonObject]:
        """Return the file for a decision, by its reviewer, and the decision as an object for a line of the file."""

    def append(self, place: int, decision: JsonObject) -> None:
        """Append a decision to the file of its reviewer, and count it for `appended_lines`."""
        file, line = self.line(place, decision)
        with open_for_append(file) as append:
            append([line])
            self._appended[file].add(place)

    def appended_lines(self) -> list[str]:
        """Return a line for each file that says for how many cases decisions were appended."""
        what, _, unit = self.words.rpartition(" ")
        return [
            f"{file_at(file).shown}: {what} {pluralize(len(places), unit)}"
            for file, places in sorted(self._appended.items())
        ]

    def close(self) -> None:
        """Stop every process that runs a query, and let no other query begin. Idempotent."""
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

    def facts(self, case: Case, nodeid: str) -> Mapping[str, Any]:
        """Return what the page shows of a case and its schema; an error replaces a schema that cannot be listed."""
        try:
            schema = self._schema_session.schema_text(case)
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

    def compare(self, content: QueryOrAnswer, case: Case) -> CaseReport:
        """Run a query as a prediction, and return its comparison with gold under the settings of the case.

        A case without golds gets a placeholder as gold.
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
    """Return what the page shows of a compared answer: details, outcome and message."""
    return {**details(report), "outcome": report["outcome"], "message": report["message"]}


def listed_case(case: Case, nodeid: str) -> Mapping[str, Any]:
    """Return what the list of cases shows of a case: id, node id and the truncated question."""
    return {"id": case.id, "nodeid": nodeid, "question": truncate(case.question, LISTED_CHARACTERS)}
