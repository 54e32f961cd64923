"""An executor whose calls run in worker processes, and which survives the death of a worker process."""

from __future__ import annotations

import signal
import threading
import traceback
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any, NamedTuple, TypeVar

from pytest_queryeval.core.errors import ExecutorBroken
from pytest_queryeval.core.process import GarbageCollectionThrottle, leave_interruptions_to_parent
from pytest_queryeval.runs.workers import WorkerDied, close_idle_sessions

T = TypeVar("T")
END_SECONDS = 2.0  # for a process to clean up


class _Worker(NamedTuple):
    process: BaseProcess
    pipe: Connection


class WorkerProcesses(Executor):
    """An executor with `number` worker processes, each driven by one thread.

    Processes start when they are needed. If a process dies during a call, the call raises `WorkerDied`, and the next
    call gets a new process. If no process can be started, a call raises `ExecutorBroken`.
    """

    def __init__(self, number: int) -> None:
        self._context = get_context("forkserver")
        self._context.set_forkserver_preload(["pytest_queryeval.runs.evaluate"])
        self._threads = ThreadPoolExecutor(number, thread_name_prefix="queryeval-worker")
        self._thread_state = threading.local()
        self._workers: list[_Worker] = []
        self._lock = threading.Lock()
        self._is_closed = False

    def submit(self, function: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        """Call a function in one of the processes, and return the future of its result.

        Arguments, return value and exception are pickled.
        """
        return self._threads.submit(self._call, function, *args, **kwargs)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Terminate all processes at once, and cancel calls that have not begun; both arguments are ignored."""
        with self._lock:
            self._is_closed = True
            processes = [worker.process for worker in self._workers]
            self._workers.clear()
        self._threads.shutdown(wait=False, cancel_futures=True)
        for process in processes:
            process.terminate()
        for process in processes:
            process.join(END_SECONDS)
            process.kill()
            process.join()

    def _call(self, function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        worker: _Worker = getattr(self._thread_state, "worker", None) or self._start()
        self._thread_state.worker = worker
        try:
            worker.pipe.send((function, args, kwargs))
            result, error = worker.pipe.recv()
        except (EOFError, OSError):
            del self._thread_state.worker
            worker.process.join(END_SECONDS)
            status = worker.process.exitcode or 0
            ending = f"killed by {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"
            raise WorkerDied(ending) from None
        if error is not None:
            raise error
        return result  # type: ignore[no-any-return]  # what the function returned

    def _start(self) -> _Worker:
        parent_pipe, child_pipe = self._context.Pipe()
        with self._lock:
            if self._is_closed:
                raise WorkerDied("the executor is closed")
            process = self._context.Process(target=_serve, args=(child_pipe,), daemon=True)
            try:
                process.start()
            except OSError as error:
                needs = (
                    "the path of TMPDIR has to be short, as of a socket in it, and the limit of processes high enough"
                )
                raise ExecutorBroken(f"no worker process can be started: {error.strerror or error}: {needs}") from error
            self._workers.append(_Worker(process, parent_pipe))
        child_pipe.close()
        return _Worker(process, parent_pipe)


def _serve(pipe: Connection) -> None:
    """Run the calls that arrive through a pipe and send back their results or errors.

    Return when the other end of the pipe is closed.
    """
    leave_interruptions_to_parent()
    GarbageCollectionThrottle().begin()
    try:
        while True:
            function, args, kwargs = pipe.recv()
            result = failure = None
            try:
                result = function(*args, **kwargs)
            except Exception as error:  # noqa: BLE001 - it is raised where the call was made
                error.add_note("".join(traceback.format_exception(error)))
                failure = error
            pipe.send((result, failure))
    except (EOFError, OSError):
        pass
    finally:
        close_idle_sessions()
