"""Chunks of work: the call that a worker receives, its execution there, and its result."""

from __future__ import annotations

import os
import pickle
import socket
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.util import Finalize
from typing import Any, Generic, NamedTuple, Protocol, TypeVar
from uuid import uuid4

from pytest_queryeval.core.cause import CauseMode
from pytest_queryeval.core.errors import QueryEvalError, unwrap
from pytest_queryeval.core.model import Case, Prediction
from pytest_queryeval.evaluation.recordings import Recording
from pytest_queryeval.evaluation.session import Session
from pytest_queryeval.runs.workers.registrations import Registered, register_again, registered
from pytest_queryeval.text.redaction import register_secret
from pytest_queryeval.text.truncation import one_line

T_contra = TypeVar("T_contra", contravariant=True)
R_co = TypeVar("R_co", covariant=True)
IDLE_SECONDS = 60.0  # after which sessions of other runs are closed


class UnreadableItems(Exception):  # noqa: N818 - no error of the work
    """A worker cannot unpickle the items that it received."""


class WorkerSession(Session):
    """A session in a worker, which is sent the predictions of its cases."""

    answers: Mapping[int, Sequence[Prediction | QueryEvalError]] = {}
    """The answers by the `id` of a case: one for each trial, up to the first error."""
    at_hand: frozenset[int] = frozenset()
    """The `id`s of the cases whose prediction needed no call."""

    def predict(self, case: Case, trial: int = 1) -> Prediction:
        """Return the system's answer in a trial, counted from 1; raise `PredictorError`."""
        return unwrap(self.answers[id(case)][trial - 1])

    def prediction_at_hand(self, case: Case) -> Prediction | None:
        """Return the system's answer where no call was needed for it."""
        answer = self.answers[id(case)][0]
        return answer if id(case) in self.at_hand and isinstance(answer, Prediction) else None


class Work(Protocol[T_contra, R_co]):
    """The work on the items of a chunk; it is pickled."""

    def __call__(self, items: Sequence[T_contra], session: WorkerSession) -> Sequence[R_co]:
        """Return a result for each item, in their order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job(Generic[T_contra, R_co]):
    """The work of a run, and the session that it needs."""

    work: Work[T_contra, R_co]
    cause: CauseMode = "off"
    recording: Recording | None = None
    registered: Sequence[Registered] = field(default_factory=registered)
    run: str = field(default_factory=lambda: uuid4().hex)
    """A unique id of the run."""


@dataclass(frozen=True, slots=True, repr=False, kw_only=True)
class ChunkCall:
    """The message to a worker; it has no `repr`, since schedulers log the arguments of calls that fail."""

    job: bytes
    """The pickled `Job`."""
    items: bytes
    """The pickled items of the chunk."""
    secrets: Sequence[str]
    """Secrets in the items, which the worker may not know."""
    attempt: str
    """A name that no other attempt has: Dask does not repeat a call with equal arguments."""


class WorkerId(NamedTuple):
    """A thread that does one chunk at a time."""

    host: str
    process: int
    thread: int


class ChunkResult(NamedTuple):
    """The results of a chunk."""

    results: bytes
    """Pickled, so that they can be searched for secrets all at once."""
    seconds: float
    worker: WorkerId


def do_chunk(call: ChunkCall) -> ChunkResult:
    """Do the work of a job on the items of a chunk, in a worker; raise `UnreadableItems`, and what the work raises."""
    for secret in call.secrets:
        register_secret(secret)
    with _open_session(call.job) as (work, session):
        began = time.perf_counter()
        try:
            items = pickle.loads(call.items)  # noqa: S301 - of our own
        except Exception as error:  # objects of the user may raise anything
            raise UnreadableItems(f"{type(error).__name__}: {one_line(str(error))}") from error
        results = pickle.dumps(work(items, session), pickle.HIGHEST_PROTOCOL)
        seconds = time.perf_counter() - began
    return ChunkResult(results, seconds, WorkerId(socket.gethostname(), os.getpid(), threading.get_ident()))


@dataclass(slots=True)
class _Idle:
    """A session that no thread uses at the moment."""

    job: bytes
    """The pickled job that the session was opened for."""
    work: Work[Any, Any]
    session: WorkerSession
    since: float


_idle: list[_Idle] = []  # kept open between chunks; threads of a process share none
_lock = threading.Lock()
os.register_at_fork(after_in_child=_idle.clear)


@contextmanager
def _open_session(job: bytes) -> Iterator[tuple[Work[Any, Any], WorkerSession]]:
    """Yield the work of a job, and a session for it."""
    with _lock:
        now = time.monotonic()
        idle_session = next((idle for idle in _idle if idle.job == job), None)
        stale_sessions = [idle for idle in _idle if idle.job != job and now - idle.since > IDLE_SECONDS]
        _idle[:] = [idle for idle in _idle if idle is not idle_session and idle not in stale_sessions]
    for idle in stale_sessions:
        idle.session.close()
    if idle_session is None:
        unpickled: Job[Any, Any] = pickle.loads(job)  # noqa: S301 - of our own
        register_again(unpickled.registered)
        session = WorkerSession(recording=unpickled.recording, cause=unpickled.cause)
        idle_session = _Idle(job, unpickled.work, session, 0.0)
    try:
        yield idle_session.work, idle_session.session
    finally:
        idle_session.since = time.monotonic()
        with _lock:
            _idle.append(idle_session)


def close_idle_sessions() -> None:
    """Close what this process keeps open between chunks."""
    with _lock:
        closing, _idle[:] = list(_idle), []
    for idle in closing:
        idle.session.close()


# Unlike functions of `atexit`, it is called at the end of a process of `multiprocessing`, too.
Finalize(None, close_idle_sessions, exitpriority=10)
