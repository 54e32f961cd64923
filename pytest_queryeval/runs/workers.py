"""Work that is sent to the workers of an executor, in chunks.

The first part runs in a worker: registrations by programs and conftest.py files, which are repeated there, and a chunk
with its result. The second is the dispatch: the size of chunks, how many are under way, and the retries of lost ones.
"""

from __future__ import annotations

import os
import pickle
import socket
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Executor, Future, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from importlib import import_module
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from multiprocessing.util import Finalize
from pathlib import Path
from typing import Any, Generic, NamedTuple, Protocol, TypeVar
from uuid import uuid4

from pytest_queryeval.core.cause import CauseMode
from pytest_queryeval.core.errors import ExecutorBroken, QueryEvalError, unwrap
from pytest_queryeval.core.model import Case, Prediction
from pytest_queryeval.core.registry import USED_BY_WORKERS, Registration
from pytest_queryeval.evaluation.extensions import Recording
from pytest_queryeval.evaluation.session import Session
from pytest_queryeval.text.formatting import one_line, pluralize
from pytest_queryeval.text.redaction import register_secret, secrets_in

_importing = threading.Lock()
_imported: dict[str, str] = {}  # digests of the modules that were imported here, by name
T_contra = TypeVar("T_contra", contravariant=True)
R_co = TypeVar("R_co", covariant=True)
IDLE_SECONDS = 60.0  # after which sessions of other runs are closed
T = TypeVar("T")
R = TypeVar("R")
CHUNK_SECONDS = 1.0  # that a chunk is to take
CHUNK_BYTES = 4 * 2**20
FIRST_ITEMS = 4  # of a chunk, until the duration of an item is known
MAX_ITEMS = 20_000
GROWTH = 4  # largest factor by which the size of chunks grows at once
FLUSH_SECONDS = 0.1  # after which an idle worker gets a chunk that is not full
FIRST_CHUNKS = 4  # under way until a worker has answered
MAX_AHEAD = 200_000  # items between the first unfinished one and the last that was sent
QUIET_SECONDS = 60.0  # without a result, until a line says so
MAX_DEATHS_IN_A_ROW = 50  # with no chunk done in between, until the executor is given up
MAX_DEATHS = 3  # of workers with a single item, until it is given up
DASK_LOGS = "the logs of Dask's workers say more"


class RegisteredMember(NamedTuple):
    """A member of a registry, and the module whose import registers it."""

    registry: str
    """The noun of the registry."""
    name: str
    by: Registration
    digest: str
    """The digest of the module's file, which changes with its contents."""


def registered() -> Sequence[RegisteredMember]:
    """Return the members registered in this process that workers may need to evaluate cases."""
    return [
        RegisteredMember(registry, name, by, by.digest)
        for registry, members in USED_BY_WORKERS.items()
        for name, by in members.registrations().items()
    ]


def register_again(needed: Sequence[RegisteredMember]) -> None:
    """Import the modules that register these members, in this process.

    Raises `QueryEvalError` if an import fails, or if a member is still missing afterwards.
    """
    with _importing:
        for member in needed:
            try:
                _import(member)
            except Exception as error:  # a module may raise anything
                reason = f"{member.by.module} cannot be imported in a worker: {type(error).__name__}: {error}"
                raise QueryEvalError(f"the {member.registry} '{member.name}': {reason}") from error
            if member.name not in USED_BY_WORKERS.get(member.registry, ()):
                place = "the program itself" if member.by.module == "__main__" else member.by.file or member.by.module
                remedy = "register it at the top level of a module that workers can import, or of a conftest.py"
                problem = f"is registered in {place}, which workers do not run"
                raise QueryEvalError(f"the {member.registry} '{member.name}' {problem}: {remedy}")


def _import(member: RegisteredMember) -> None:
    """Import the module of a member under its name, or its file, unless this version of the file is imported already.

    Modules of `__main__`, and modules imported by other code, stay as they are. May extend `sys.path`.
    """
    name, file = member.by
    if name == "__main__" or not file:
        return
    if (name in sys.modules and name not in _imported) or _imported.get(name) == member.digest:
        return
    sys.modules.pop(name, None)
    _imported[name] = member.digest
    path = Path(file)
    module = path.parent if path.name == "__init__.py" else path.with_suffix("")
    names = name.split(".")
    folder = module.parents[len(names) - 1] if list(module.parts[-len(names) :]) == names else path.parent
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    with suppress(ModuleNotFoundError):  # a dotted name whose parent is not a package
        if (module_spec := find_spec(name)) is not None and module_spec.origin == file:
            import_module(name)
            return
    spec = spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    sys.modules[name] = module_from_spec(spec)
    spec.loader.exec_module(sys.modules[name])


class UnreadableItems(Exception):  # noqa: N818 - no error of the work
    """A worker cannot unpickle the items that it received."""


class WorkerSession(Session):
    """A session in a worker, to which the predictions of its cases are sent instead of asking the system."""

    answers: Mapping[int, Sequence[Prediction | QueryEvalError]] = {}
    """The answers by the `id` of a case: one for each trial, up to the first error."""
    at_hand: frozenset[int] = frozenset()
    """The `id`s of the cases whose prediction needed no call."""

    def predict(self, case: Case, trial: int = 1) -> Prediction:
        """Return the answer that was sent for a trial, counted from 1, or raise the error that was sent for it."""
        return unwrap(self.answers[id(case)][trial - 1])

    def prediction_at_hand(self, case: Case) -> Prediction | None:
        """Return the first answer if the system did not have to be called for it; else None."""
        answer = self.answers[id(case)][0]
        return answer if id(case) in self.at_hand and isinstance(answer, Prediction) else None


class Work(Protocol[T_contra, R_co]):
    """A function that a worker calls with the items of a chunk; it is pickled."""

    def __call__(self, items: Sequence[T_contra], session: WorkerSession) -> Sequence[R_co]:
        """Return a result for each item, in their order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job(Generic[T_contra, R_co]):
    """The work of a run, and what its worker sessions need: recording, mode of causes, registered members."""

    work: Work[T_contra, R_co]
    cause: CauseMode = "off"
    recording: Recording | None = None
    registered: Sequence[RegisteredMember] = field(default_factory=registered)
    run: str = field(default_factory=lambda: uuid4().hex)
    """A unique id of the run."""


@dataclass(frozen=True, slots=True, repr=False, kw_only=True)
class ChunkCall:
    """The message that sends a chunk to a worker.

    It has no `repr`, because schedulers log the arguments of calls that fail.
    """

    job: bytes
    """The pickled `Job`."""
    items: bytes
    """The pickled items of the chunk."""
    secrets: Sequence[str]
    """Secrets in the items, which the worker may not know."""
    attempt: str
    """A name that no other attempt has: Dask does not repeat a call with equal arguments."""


class WorkerId(NamedTuple):
    """A thread of a process of a host, which does one chunk at a time."""

    host: str
    process: int
    thread: int


class ChunkResult(NamedTuple):
    """The results of a chunk, the seconds that it took, and its worker."""

    results: bytes
    """Pickled, so that they can be searched for secrets all at once."""
    seconds: float
    worker: WorkerId


def do_chunk(call: ChunkCall) -> ChunkResult:
    """Do the work of a job on the items of a chunk, and return the results. Runs in a worker.

    Registers the secrets of the call first. Raises `UnreadableItems`, and what the work raises.
    """
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
    """An open session that no thread uses at the moment, and since when."""

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
    """Yield the work of a job and a session for it, reused from an earlier chunk of the job if one is idle.

    The session stays open afterwards. Sessions of other jobs that were idle for IDLE_SECONDS are closed.
    """
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
        session = WorkerSession(recording=unpickled.recording, cause_mode=unpickled.cause)
        idle_session = _Idle(job, unpickled.work, session, 0.0)
    try:
        yield idle_session.work, idle_session.session
    finally:
        idle_session.since = time.monotonic()
        with _lock:
            _idle.append(idle_session)


def close_idle_sessions() -> None:
    """Close all sessions that this process keeps open between chunks."""
    with _lock:
        closing, _idle[:] = list(_idle), []
    for idle in closing:
        idle.session.close()


# Unlike functions of `atexit`, it is called at the end of a process of `multiprocessing`, too.
Finalize(None, close_idle_sessions, exitpriority=10)


class WorkerDied(Exception):  # noqa: N818 - no error of the work
    """The worker that had only this chunk has died; another worker takes its place."""


@dataclass(frozen=True, slots=True, eq=False)
class Chunk(Generic[T]):
    """Consecutive items that are sent to a worker together."""

    first: int
    """The number of the first item."""
    items: Sequence[T]
    deaths: int = 0
    """How many workers died on this chunk after it was reduced to one item."""
    alone: bool = False
    """Whether it is sent while no other chunk is under way."""

    def halves(self) -> Iterator[Chunk[T]]:
        """Yield the first and the second half of a chunk of several items."""
        half = len(self.items) // 2
        yield Chunk(self.first, self.items[:half])
        yield Chunk(self.first + half, self.items[half:])


class Dispatcher(Generic[T, R]):
    """Sends items to an executor in chunks, and yields their results.

    `failed` makes the result of an item that has none, from the item and the reason. `redacted` returns a result
    without its secrets. `tell` is called with a line when a chunk is lost or no worker answers. The number of workers
    and the duration of an item are estimated from the results.
    """

    def __init__(
        self,
        executor: Executor,
        job: Job[T, R],
        *,
        failed: Callable[[T, str], R],
        redacted: Callable[[R], R],
        tell: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._executor = executor
        self._job = pickle.dumps(job, pickle.HIGHEST_PROTOCOL)
        self._run_id = job.run
        self._failed = failed
        self._redacted = redacted
        self._tell = tell
        self._pending: dict[Future[ChunkResult], Chunk[T]] = {}
        self._again: deque[Chunk[T]] = deque()
        self._suspects: deque[Chunk[T]] = deque()  # to be tried with nothing else under way
        self._given_up: deque[tuple[int, R]] = deque()
        self._workers: set[WorkerId] = set()
        self._attempts = 0
        self._deaths_in_a_row = 0
        self._size = FIRST_ITEMS
        self._item_seconds = 0.0
        self._item_bytes = 0.0

    def run(self, items: Iterable[T | None]) -> Iterator[tuple[int, Sequence[R]]]:
        """Yield the number of a first item, and the results of the items from it on, as soon as they are done.

        A None among the items means that the next item is not ready yet. Raises `ExecutorBroken`, and what the work
        raises. At the end, pending chunks are cancelled and idle sessions of this process closed.
        """
        chunks = self._fill_chunks(items)
        sent, is_last = 0, False
        try:
            while True:
                is_waiting = False
                while self._again and self._has_room:
                    self._submit(self._again.popleft())
                while not (is_last or is_waiting or self._suspects) and self._has_room:
                    oldest = min((chunk.first for chunk in (*self._pending.values(), *self._again)), default=sent)
                    if sent - oldest >= MAX_AHEAD:
                        break
                    try:
                        chunk = next(chunks)
                    except StopIteration:
                        is_last = True
                        break
                    if chunk is None:
                        is_waiting = True
                    else:
                        sent = chunk.first + len(chunk.items)
                        self._submit(chunk)
                if self._suspects and not self._pending and not self._again:
                    self._submit(replace(self._suspects.popleft(), alone=True))
                yield from self._finished_results(timeout=0 if is_waiting or self._given_up else QUIET_SECONDS)
                if is_last and not (self._pending or self._again or self._suspects):
                    return
        finally:
            for future in self._pending:
                future.cancel()
            close_idle_sessions()  # of threads of this process

    def _fill_chunks(self, items: Iterable[T | None]) -> Iterator[Chunk[T] | None]:
        """Yield the items in chunks, and None while the next item is not ready.

        A chunk is yielded before it is full if a worker is idle.
        """
        first, filling, began = 0, list[T](), 0.0
        for item in items:
            if item is not None:
                began = began if filling else time.monotonic()
                filling.append(item)
            is_idle = len(self._pending) < max(1, len(self._workers))
            if len(filling) >= self._size or (filling and is_idle and time.monotonic() - began >= FLUSH_SECONDS):
                yield Chunk(first, filling)
                first, filling = first + len(filling), []
            elif item is None:
                yield None
        if filling:
            yield Chunk(first, filling)

    @property
    def _has_room(self) -> bool:
        return len(self._pending) < max(FIRST_CHUNKS, 2 * len(self._workers) + 2)

    def _submit(self, chunk: Chunk[T]) -> None:
        try:
            items = pickle.dumps(chunk.items, pickle.HIGHEST_PROTOCOL)
        except Exception as error:  # noqa: BLE001 - objects of the user may raise anything
            self._refuse(chunk, f"{type(error).__name__}: {one_line(str(error))}")
            return
        self._item_bytes = len(items) / len(chunk.items)
        self._attempts += 1
        attempt = f"{self._run_id} {self._attempts}"
        call = ChunkCall(job=self._job, items=items, secrets=secrets_in(items), attempt=attempt)
        try:
            future = self._executor.submit(do_chunk, call)
        except RuntimeError as error:  # which BrokenExecutor is
            raise _broken(error) from error
        self._pending[future] = chunk

    def _finished_results(self, timeout: float) -> Iterator[tuple[int, Sequence[R]]]:
        """Wait at most `timeout` seconds for a first result; yield all results that are ready.

        Results of items that were given up are yielded too. Lost and unreadable chunks are scheduled again. Raises
        `ExecutorBroken`, and what the work raises.
        """
        finished_futures = wait(self._pending, timeout, FIRST_COMPLETED).done
        if self._pending and timeout and not finished_futures:
            self._tell(f"no worker has answered for {timeout:.0f} s")
        for future in sorted(finished_futures, key=lambda future: future.cancelled() or future.exception() is not None):
            chunk = self._pending.pop(future)
            try:
                chunk_result = future.result()
            except (BrokenExecutor, CancelledError) as error:
                raise _broken(error) from error
            except WorkerDied as error:
                self._lose(chunk, str(error), deaths=1, is_sure=True)
                continue
            except UnreadableItems as error:
                self._refuse(chunk, str(error))
                continue
            except Exception as error:
                killed = getattr(sys.modules.get("distributed.scheduler"), "KilledWorker", ())
                if not isinstance(error, killed):
                    raise
                # Dask has tried it several times, and counts a death for all that the worker had.
                self._lose(chunk, DASK_LOGS, deaths=error.allowed_failures + 1, is_sure=chunk.alone)
                continue
            self._learn(chunk_result, len(chunk.items))
            results: Sequence[R] = pickle.loads(chunk_result.results)  # noqa: S301 - of our own
            if secrets_in(chunk_result.results):
                results = [self._redacted(item_result) for item_result in results]
            yield chunk.first, results
        while self._given_up:
            first, item_result = self._given_up.popleft()
            yield first, [item_result]

    def _learn(self, chunk_result: ChunkResult, number: int) -> None:
        """Adapt the size of the next chunks to the duration of a finished chunk of `number` items."""
        self._workers.add(chunk_result.worker)
        self._deaths_in_a_row = 0
        seconds = chunk_result.seconds / number
        self._item_seconds = (self._item_seconds + seconds) / 2 if self._item_seconds else seconds
        fitting = min(CHUNK_SECONDS / (self._item_seconds + 1e-9), CHUNK_BYTES / (self._item_bytes + 1), MAX_ITEMS)
        self._size = max(1, min(int(fitting), GROWTH * self._size))

    def _lose(self, chunk: Chunk[T], reason: str, *, deaths: int, is_sure: bool) -> None:
        """Schedule a chunk again on which workers died: in halves, or as a single item.

        A single item is given up after MAX_DEATHS deaths, if `is_sure` says that the workers had no other chunk. Raises
        `ExecutorBroken` after too many deaths in a row.
        """
        self._deaths_in_a_row += 1
        if self._deaths_in_a_row >= MAX_DEATHS_IN_A_ROW:
            problem = f"{MAX_DEATHS_IN_A_ROW} workers died one after the other: {reason}"
            raise ExecutorBroken(f"{problem}: evaluate in a single process to see why")
        self._tell(f"a worker died, {pluralize(len(chunk.items), 'item')} will be tried again: {reason}")
        if len(chunk.items) > 1:
            self._again.extend(chunk.halves())
            return
        chunk = replace(chunk, deaths=chunk.deaths + deaths)
        if chunk.deaths < MAX_DEATHS:
            self._again.append(chunk)
        elif not is_sure:
            self._suspects.append(chunk)
        else:
            remedy = "evaluate it in a single process to see why"
            self._give_up(chunk, f"its worker died {chunk.deaths} times: {reason}: {remedy}")

    def _refuse(self, chunk: Chunk[T], reason: str) -> None:
        """Schedule the halves of a chunk that cannot be sent; give up a single item."""
        if len(chunk.items) > 1:
            self._again.extend(chunk.halves())
        else:
            self._give_up(chunk, f"it cannot be sent to a worker: {reason}")

    def _give_up(self, chunk: Chunk[T], reason: str) -> None:
        self._given_up.append((chunk.first, self._failed(chunk.items[0], reason)))


def _broken(error: Exception) -> ExecutorBroken:
    reason = one_line(str(error)) or "its work was cancelled"
    return ExecutorBroken(f"the executor is broken: {type(error).__name__}: {reason}: make a new one, and run it again")
