"""Live services: a trivial query shows whether the service or a query is at fault where there is no answer."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from contextlib import AbstractContextManager
from typing import Any

from pytest_queryeval.core.db_schema import Schema
from pytest_queryeval.core.errors import SourceError
from pytest_queryeval.core.model import Execution, Failure, Source
from pytest_queryeval.engines import ddl_text, described_schema, prefix_source_errors
from pytest_queryeval.engines.files import absolute
from pytest_queryeval.sandbox.host import Host, Question
from pytest_queryeval.text.redaction import register_secrets

GRACE_SECONDS = 1.7  # after a query's time limit, until the probe must be answered
START_SECONDS = 0.8  # of which a new child takes this much
MIN_SECONDS = 0.6  # for the probe in any case
PROBE_ROWS = 1_000


def connection(source: Source) -> dict[str, Any]:
    """Return `url`, `auth`, `headers` and `verify` of a service as plain values; raises KeyError without a `url`."""
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
        """Send a query for at most `timeout` seconds; a failure is the query's only if the service answers the probe.

        Raises `SourceError` otherwise, and for everything else that is no answer.
        """
        began = time.monotonic()
        with self._named():
            execution = self._host.execute(question.settings, question.text, timeout=timeout, max_rows=max_rows)
            if execution.error and execution.error.kind in self._ambiguous_failures:
                started = START_SECONDS if self._host.pid is None else 0.0
                self._require_service(execution.error, began + timeout + GRACE_SECONDS - started - time.monotonic())
            return execution

    def schema(self, settings: Mapping[str, Any], *, timeout: float) -> Schema:
        """Return tables, columns and foreign keys, where the driver lists them; raises `SourceError`."""
        with self._named():
            return described_schema(self._host.describe(settings, timeout=timeout))

    def ddl(self, settings: Mapping[str, Any], *, timeout: float) -> str:
        """Return the statements that make the tables and views, where the driver lists them; raises `SourceError`."""
        with self._named():
            return ddl_text(self._host.ddl(settings, timeout=timeout))

    def time(self, gold: Question, predicted: Question, *, iterations: int, timeout: float) -> Execution:
        """Time both with the way to the service and back; raises `SourceError`."""
        with self._named():
            return self._host.time(gold, predicted, iterations=iterations, timeout=timeout)

    def _named(self) -> AbstractContextManager[None]:
        return prefix_source_errors(f"source '{self._name}'")

    def _require_service(self, failure: Failure, seconds: float) -> None:
        """Raise `SourceError` unless the service answers the probe within `seconds`."""
        settings, seconds = self._probe.settings, max(seconds, MIN_SECONDS)
        try:
            answered = self._host.execute(settings, self._probe.text, timeout=seconds, max_rows=PROBE_ROWS)
        except SourceError as error:
            raise SourceError(f"{error} (asked after this: {failure.message})") from error
        if answered.error:
            raise SourceError(f"{failure.message}; nor does it answer {self._probe.text}: {answered.error.message}")
