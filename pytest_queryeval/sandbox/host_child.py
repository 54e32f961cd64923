"""Child processes that run queries: the child's side, started with the arguments DRIVER, MEMORY, FILE and GRACE.

DRIVER is a Python file with a class `Driver` that implements `driver.Driver`; MEMORY is the limit on the address space
in bytes, FILE that on each file that a query makes the driver write, 0 if there is none; GRACE are the seconds that
a driver has to stop a late query. This module imports the standard library and `driver` only, so that it starts fast.
"""

from __future__ import annotations

import contextlib
import gc
import itertools
import marshal
import os
import signal
import sys
from collections.abc import Callable, Iterator
from resource import RLIMIT_AS, RLIMIT_CORE, RLIMIT_FSIZE
from time import perf_counter
from typing import Any, BinaryIO, cast

from pytest_queryeval.sandbox.driver import Answer, Driver, TableDriver, TooLarge, limit, make_answer, too_many_rows
from pytest_queryeval.sandbox.start_child import load

LENGTH_BYTES = 8
FIRST_ROWS = 64
MAX_ROWS = 8_192
CHUNK_BYTES = 256 * 1024
STDERR_BYTES = 64 * 1024
ALARM_SECONDS = 1.0
BALANCED = 20  # pairs of runs after which each query was the first as often as the second
MAX_CELLS = 10_000_000  # about 1 GiB as objects of the parent, which compares them


class Stream:
    """Sends the rows of one answer in chunks of about CHUNK_BYTES bytes.

    `max_rows` and `max_bytes` limit the whole answer.
    """

    def __init__(self, send: Callable[[bytes], None], max_rows: int, max_bytes: int) -> None:
        self._send = send
        self._limits = max_rows, max_bytes
        self._began = perf_counter()
        self._sending = 0.0
        self._restart()

    def _restart(self) -> None:
        self._rows_left, self._bytes_left = self._limits
        self._cells_left = MAX_CELLS
        self._count = FIRST_ROWS

    def drain(self, columns: tuple[str, ...], fetch: Callable[[int], list[Any] | None]) -> None:
        """Fetch and send all rows.

        The last message is "done" with the columns, the last rows and the seconds of fetching. If `fetch` returns None,
        sends "again" and starts from the first row. Raises `TooLarge` if the answer exceeds a limit.
        """
        while True:
            rows = fetch(min(self._count, self._rows_left + 1))
            if rows is None:
                self._restart()
                self._pack("again")
                continue
            self._rows_left -= len(rows)
            self._cells_left -= len(rows) * len(columns)
            if self._rows_left < 0:
                raise too_many_rows(self._limits[0])
            if self._cells_left < 0:
                raise TooLarge(f"more than {MAX_CELLS:,} cells")
            if len(rows) < self._count:
                seconds = perf_counter() - self._began - self._sending
                self._pack("done", columns, rows, seconds)
                return
            # As many rows as would have filled a chunk, but at most eight times as many as before.
            fitting = self._count * CHUNK_BYTES // self._pack("rows", rows)
            self._count = max(1, min(fitting, self._count * 8, MAX_ROWS))

    def _pack(self, *message: Any) -> int:
        """Send a message and return its size in bytes; raises `TooLarge` if the answer exceeds its bytes."""
        began = perf_counter()
        payload = marshal.dumps(message)
        self._bytes_left -= len(payload)
        if self._bytes_left < 0:
            raise TooLarge(f"more than {self._limits[1]:,} bytes")
        self._send(payload)
        self._sending += perf_counter() - began
        return len(payload)


def time_pairs(driver: Driver, gold: Any, predicted: Any, timeout: float) -> Iterator[tuple[float, float]]:
    """Yield pairs of seconds that gold and predicted take to their last row, without end.

    Each run may take `timeout` seconds. The queries run in turn, so that a slow phase of the machine affects both. Each
    query is first equally often, in random order: other processes run at regular times, and would always delay the same
    query.
    """
    from random import sample  # takes some milliseconds

    while True:
        for order in sample([(0, 1), (1, 0)] * (BALANCED // 2), BALANCED):
            seconds = [measure(driver, (gold, predicted)[place], timeout) for place in order]
            yield seconds[order.index(0)], seconds[order.index(1)]


def measure(driver: Driver, question: tuple[Any, str], timeout: float) -> float:
    """Return the seconds until the last row of a query is fetched. `question` is its settings and its text.

    Arms the timer of the process, which ends the process if the query does not stop.
    """
    # The parent waits for all runs together: the alarm ends a single one that no interrupt reaches.
    signal.setitimer(signal.ITIMER_REAL, timeout + ALARM_SECONDS)
    began = perf_counter()
    _, fetch = driver.run(*question, timeout)
    while (rows := fetch(MAX_ROWS)) is None or len(rows) == MAX_ROWS:
        pass
    return perf_counter() - began


def compare(driver: Driver, queries: tuple[str, str], databases: list[Any], max_rows: int, timeout: float) -> Answer:
    """Run two queries in each database, given by the settings of a request, within `timeout` seconds in all.

    A row of the answer is a pair of results of `run_to_end`, or two None if both answers are the same. The rows end
    with the first database in which a query is late. The queries run when the rows are fetched.
    """
    deadline = perf_counter() + timeout

    def rows() -> Iterator[tuple[Any, ...]]:
        for settings in databases:
            gold, predicted = (
                run_to_end(driver, settings, query, max(0.0, deadline - perf_counter()), max_rows) for query in queries
            )
            yield (None, None) if gold == predicted and gold[0] == "done" else (gold, predicted)
            if "timeout" in (*gold[1:2], *predicted[1:2]):
                break

    return make_answer(("gold", "predicted"), rows())


def run_to_end(driver: Driver, settings: Any, query: str, timeout: float, max_rows: int) -> tuple[Any, ...]:
    """Run a query to its end and return its result as a message.

    The message is ("done", columns, rows, 0.0), ("failure", kind, text), or another verdict of the driver. Errors are
    not raised.
    """
    try:
        columns, fetch = driver.run(settings, query, timeout)
        while (rows := fetch(max_rows + 1)) is None:
            pass
    except MemoryError:
        return "failure", "too_large", "out of memory"
    except Exception as error:  # noqa: BLE001 - as in `answer`
        return driver.classify(error)
    if len(rows) > max_rows:
        return "failure", "too_large", f"more than {max_rows:,} rows"
    return "done", columns, rows, 0.0


def start(driver: Driver, action: str, settings: Any, payload: Any, timeout: float) -> Answer:
    """Start the action of a request and return its answer.

    The actions are "describe", "reads", "ddl", "time" and "compare"; any other name runs a query. `payload` is the text
    of the query; for "time" and "compare" a tuple of their arguments.
    """
    match action:
        case "describe":
            return cast("TableDriver", driver).describe(settings)
        case "reads":
            return cast("TableDriver", driver).reads(settings, payload, timeout)
        case "ddl":
            return cast("TableDriver", driver).ddl(settings)
        case "time":
            gold, predicted, iterations, timeout = payload
            # The first pair warms up.
            pairs = itertools.islice(time_pairs(driver, gold, predicted, timeout), 1, iterations + 1)
            return make_answer(("gold", "predicted"), pairs)
        case "compare":
            queries, databases, max_rows = payload
            return compare(driver, queries, databases, max_rows, timeout)
    return driver.run(settings, payload, timeout)


def answer(driver: Driver, request: tuple[Any, ...], send: Callable[[bytes], None]) -> None:
    """Answer one request: send its rows and its last message. Errors are sent as failures or faults, not raised."""
    action, settings, payload, timeout, max_rows, max_bytes = request
    try:
        stream = Stream(send, max_rows, max_bytes)
        stream.drain(*start(driver, action, settings, payload, timeout))
    except TooLarge as error:
        send(marshal.dumps(("failure", "too_large", str(error))))
    except MemoryError:
        send(marshal.dumps(("failure", "too_large", "out of memory")))
    except Exception as error:  # noqa: BLE001 - the driver classifies it; anything left would end the process
        send(marshal.dumps(driver.classify(error)))


def serve(driver: Driver, requests: BinaryIO, replies: BinaryIO, grace: float) -> None:
    """Send ("ready",), then answer requests in turn until the parent closes the pipe.

    A timer ends this process if an answer takes longer than its timeout, `grace` and ALARM_SECONDS.
    """

    def send(payload: bytes) -> None:
        replies.write(len(payload).to_bytes(LENGTH_BYTES, "big"))
        replies.write(payload)
        replies.flush()

    send(marshal.dumps(("ready",)))
    while len(header := requests.read(LENGTH_BYTES)) == LENGTH_BYTES:
        request = marshal.loads(requests.read(int.from_bytes(header, "big")))  # noqa: S302 - from our own parent
        # The parent kills a late child. The alarm ends the process if the parent is gone.
        signal.setitimer(signal.ITIMER_REAL, request[3] + grace + ALARM_SECONDS)
        answer(driver, request, send)
        signal.setitimer(signal.ITIMER_REAL, 0)


def limit_process(memory: int, file_bytes: int) -> None:
    """Limit the address space and the file sizes of this process as far as the system allows; turn off core files."""
    for name, amount in ((RLIMIT_AS, memory), (RLIMIT_FSIZE, file_bytes), (RLIMIT_CORE, 0)):
        # Not every system lets a process lower every limit; the parent's deadline holds in any case.
        with contextlib.suppress(ValueError, OSError):
            limit(name, amount)


def main() -> None:
    """Serve requests on stdin and stdout, with the driver and the limits of the command line.

    Prints of libraries go to stderr.
    """
    path, memory, file_bytes, grace = sys.argv[1:]
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # a library that prints must not print between the messages
    limit_process(int(memory), max(int(file_bytes), STDERR_BYTES))
    driver = load(path).Driver()
    gc.freeze()
    serve(driver, sys.stdin.buffer, replies, float(grace))
