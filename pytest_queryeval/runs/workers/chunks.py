"""Chunks of work: what is sent to a worker, how it is done there, and what comes back."""

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

from pytest_queryeval.core.capture import unwrap
from pytest_queryeval.core.cause import CauseMode
from pytest_queryeval.core.errors import QueryEvalError
from pytest_queryeval.core.model import Case, Prediction
from pytest_queryeval.evaluation.recording import Recording
from pytest_queryeval.evaluation.session import Session
from pytest_queryeval.runs.workers.registrations import Registered, register_again, registered
from pytest_queryeval.text.redaction import redact, register_secret
from pytest_queryeval.text.truncation import one_line

T_contra = TypeVar("T_contra", contravariant=True)
R_co = TypeVar("R_co", covariant=True)
IDLE_SECONDS = 60.0  # after which what another run has opened is closed


class UnreadableItems(Exception):  # noqa: N818 - no error of the work
    """A worker cannot unpickle what it was sent."""


class WorkerSession(Session):
    """A session in a worker, where the predictions of cases are `given`: several trials each, up to the first error.

    `at_hand` are the cases whose prediction needed no call. Both have the identity of a case as key.
    """

    given: Mapping[int, Sequence[Prediction | QueryEvalError]] = {}
    at_hand: frozenset[int] = frozenset()

    def predict(self, case: Case, trial: int = 1) -> Prediction:
        """Return the system's answer in a trial, counted from 1; raise `PredictorError`."""
        return unwrap(self.given[id(case)][trial - 1])

    def prediction_at_hand(self, case: Case) -> Prediction | None:
        """Return the system's answer where no call was needed for it."""
        answer = self.given[id(case)][0]
        return answer if id(case) in self.at_hand and isinstance(answer, Prediction) else None


class Work(Protocol[T_contra, R_co]):
    """What is done with the items of a chunk; it is pickled."""

    def __call__(self, items: Sequence[T_contra], session: WorkerSession) -> Sequence[R_co]:
        """Return a result for each item, in their order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job(Generic[T_contra, R_co]):
    """The work of a run, and the session that it needs; `run` tells it from other runs."""

    work: Work[T_contra, R_co]
    cause: CauseMode = "off"
    recording: Recording | None = None
    registered: Sequence[Registered] = field(default_factory=registered)
    run: str = field(default_factory=lambda: uuid4().hex)


@dataclass(frozen=True, slots=True, repr=False, kw_only=True)
class ChunkCall:
    """What a worker is sent: a job and the items of a chunk, both pickled, and secrets that only the sender may know.

    No two attempts have the same name: Dask does not repeat what it has done. Schedulers log a call that fails with its
    arguments, so that this one does not show what it holds.
    """

    job: bytes
    items: bytes
    secrets: Sequence[str]
    attempt: str


class WorkerId(NamedTuple):
    """What does one chunk at a time."""

    host: str
    process: int
    thread: int


class ChunkResult(NamedTuple):
    """The results of a chunk, pickled, so that they can be searched for secrets all at once."""

    results: bytes
    seconds: float
    worker: WorkerId


def do_chunk(call: ChunkCall) -> ChunkResult:
    """Do the work of a job on the items of a chunk, in a worker; raise `UnreadableItems`, and what the work raises."""
    for secret in call.secrets:
        register_secret(secret)
    with _opened(call.job) as (work, session):
        began = time.perf_counter()
        try:
            received = pickle.loads(call.items)  # noqa: S301 - of our own
        except Exception as error:  # objects of the user may raise anything
            raise UnreadableItems(f"{type(error).__name__}: {one_line(redact(str(error)))}") from error
        results = pickle.dumps(work(received, session), pickle.HIGHEST_PROTOCOL)
        seconds = time.perf_counter() - began
    return ChunkResult(results, seconds, WorkerId(socket.gethostname(), os.getpid(), threading.get_ident()))


@dataclass(slots=True)
class _Idle:
    """A session that no thread uses just now, with the pickled job that it was opened for."""

    job: bytes
    work: Work[Any, Any]
    session: WorkerSession
    since: float


_idle: list[_Idle] = []  # kept open between chunks; threads of a process share none
_lock = threading.Lock()
os.register_at_fork(after_in_child=_idle.clear)


@contextmanager
def _opened(job: bytes) -> Iterator[tuple[Work[Any, Any], WorkerSession]]:
    """Yield the work of a job, and a session for it."""
    with _lock:
        now = time.monotonic()
        used = next((idle for idle in _idle if idle.job == job), None)
        old = [idle for idle in _idle if idle.job != job and now - idle.since > IDLE_SECONDS]
        _idle[:] = [idle for idle in _idle if idle is not used and idle not in old]
    for idle in old:
        idle.session.close()
    if used is None:
        unpickled: Job[Any, Any] = pickle.loads(job)  # noqa: S301 - of our own
        register_again(unpickled.registered)
        session = WorkerSession(recording=unpickled.recording, cause=unpickled.cause)
        used = _Idle(job, unpickled.work, session, 0.0)
    try:
        yield used.work, used.session
    finally:
        used.since = time.monotonic()
        with _lock:
            _idle.append(used)


def close_idle_sessions() -> None:
    """Close what this process keeps open between chunks."""
    with _lock:
        closing, _idle[:] = list(_idle), []
    for idle in closing:
        idle.session.close()


# Unlike functions of `atexit`, it is called at the end of a process of `multiprocessing`, too.
Finalize(None, close_idle_sessions, exitpriority=10)
