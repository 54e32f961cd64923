"""Live services: whose fault it is that a query got no answer, told by a trivial query."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from pytest_queryeval.core.errors import SourceError
from pytest_queryeval.core.model import Execution, Failure, Source
from pytest_queryeval.core.schema import Schema
from pytest_queryeval.engines import ddl_text, described_schema
from pytest_queryeval.engines.settings import absolute
from pytest_queryeval.sandbox.host import Host, Question
from pytest_queryeval.text.redaction import register_secrets

# After its time limit a query has this long, in seconds, until the probe must be answered, too.
GRACE_SECONDS = 1.7
START_SECONDS = 0.8  # of which a new child takes this much
MIN_SECONDS = 0.6
PROBE_ROWS = 1_000


def connection(source: Source) -> dict[str, Any]:
    """Where the service is and what it is told of us, as plain values; raises KeyError without a `url`."""
    settings = source.settings
    register_secrets(settings)
    verify = settings.get("verify", True)
    return {
        "url": settings["url"],
        "auth": settings.get("auth"),
        "headers": {name: str(text) for name, text in settings.get("headers", {}).items()},
        "verify": str(absolute(source.folder, verify)) if isinstance(verify, str) else verify,
    }


class RemoteSource:
    """A service behind a host's child. Failures of the kinds `ambiguous_failures` may be the service's own fault."""

    def __init__(self, name: str, host: Host, probe: Question, ambiguous_failures: Collection[str]) -> None:
        self._name = name
        self._host = host
        self._probe = probe
        self._ambiguous_failures = ambiguous_failures

    def execute(self, question: Question, *, timeout: float, max_rows: int) -> Execution:
        """Ask for at most `timeout` seconds; what fails is the query's fault only if the service answers the probe.

        Raises `SourceError` otherwise, and for everything else that is no answer.
        """
        began = time.monotonic()
        execution = self._ask(question, timeout, max_rows)
        if execution.error and execution.error.kind in self._ambiguous_failures:
            started = START_SECONDS if self._host.pid is None else 0.0
            self._ask_probe(execution.error, began + timeout + GRACE_SECONDS - started - time.monotonic())
        return execution

    def schema(self, settings: Mapping[str, Any], *, timeout: float) -> Schema:
        """Return tables, columns and foreign keys, where the driver lists them; raises `SourceError`."""
        with self._named_faults():
            return described_schema(self._host.describe(settings, timeout=timeout))

    def ddl(self, settings: Mapping[str, Any], *, timeout: float) -> str:
        """Return the statements that make the tables and views, where the driver lists them; raises `SourceError`."""
        with self._named_faults():
            return ddl_text(self._host.ddl(settings, timeout=timeout))

    def time(self, gold: Question, predicted: Question, *, iterations: int, timeout: float) -> Execution:
        """Time both with the way to the service and back; raises `SourceError`."""
        with self._named_faults():
            return self._host.time(gold, predicted, iterations=iterations, timeout=timeout)

    def _ask(self, question: Question, timeout: float, max_rows: int) -> Execution:
        with self._named_faults():
            return self._host.execute(question.settings, question.text, timeout=timeout, max_rows=max_rows)

    @contextmanager
    def _named_faults(self) -> Iterator[None]:
        try:
            yield
        except SourceError as error:
            raise SourceError(f"source '{self._name}': {error}") from error

    def _ask_probe(self, failure: Failure, seconds: float) -> None:
        """Raise `SourceError` unless the service answers the probe within `seconds`, and some."""
        try:
            answered = self._ask(self._probe, max(seconds, MIN_SECONDS), PROBE_ROWS)
        except SourceError as error:
            raise SourceError(f"{error} (asked after this: {failure.message})") from error
        if answered.error:
            said = f"{failure.message}; nor does it answer {self._probe.text}: {answered.error.message}"
            raise SourceError(f"source '{self._name}': {said}")
