"""Queries on the workers of a Dask cluster."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager, suppress

from pytest_queryeval.core.errors import QueryEvalError
from pytest_queryeval.runs.workers import close_idle_sessions
from pytest_queryeval.text.formatting import one_line

ADDRESS = re.compile(r"dask://(?P<place>([\w.-]+|\[[0-9a-f:.%]+\]):[0-9]{1,5})/?", re.IGNORECASE)
USER = re.compile(r"//.*@")  # and a password
CONNECT_SECONDS = 10.0
START_SECONDS = 60.0  # for the first worker of the cluster
CLOSE_SECONDS = 5.0  # for all workers to close what a run has opened there


@contextmanager
def dask_executor(address: str) -> Iterator[Executor]:
    """Yield an executor that runs calls on the Dask cluster whose scheduler is at `dask://HOST:PORT`.

    At the end it is shut down, and sessions on the workers are closed. Raise `QueryEvalError` if the address is
    invalid, the package is missing, or no scheduler or worker answers.
    """
    match = ADDRESS.fullmatch(address)
    if match is None:
        without_user = USER.sub("//", one_line(address))
        raise QueryEvalError(f"--on: expected dask://HOST:PORT, the address of a scheduler, found '{without_user}'")
    try:
        from distributed import Client
        from distributed.utils import silence_logging_cmgr
    except ImportError as error:
        remedy = "pip install 'pytest-queryeval[dask]'"
        raise QueryEvalError(f"{address} needs the package 'distributed', which is not installed: {remedy}") from error
    try:
        client = Client(f"tcp://{match['place']}", timeout=CONNECT_SECONDS, set_as_default=False)  # type: ignore[no-untyped-call]
    except (OSError, ValueError) as error:  # TimeoutError is an OSError
        reason = one_line(str(error)) or "it does not answer"
        raise QueryEvalError(f"no Dask scheduler at {address}: {reason}: start one with `dask scheduler`") from error
    with silence_logging_cmgr(logging.CRITICAL), client:  # what Dask logs of a lost connection is an error of the run
        try:
            client.wait_for_workers(1, timeout=START_SECONDS)
        except TimeoutError as error:
            remedy = f"start some with `dask worker {match['place']}`"
            raise QueryEvalError(f"the Dask scheduler at {address} has no workers: {remedy}") from error
        executor = client.get_executor()  # type: ignore[no-untyped-call]
        try:
            yield executor
        finally:
            executor.shutdown(wait=False)
            with suppress(OSError, ValueError):  # the cluster may be gone, or a worker stopped
                client.run(close_idle_sessions, on_error="ignore", callback_timeout=CLOSE_SECONDS)
