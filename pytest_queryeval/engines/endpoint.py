"""Any SPARQL 1.1 endpoint, asked over HTTP from a child process."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pytest_queryeval.engines import EngineType, Settings
from pytest_queryeval.engines.host import Host, Hosts, text_refusal
from pytest_queryeval.engines.settings import Rule, absolute, check_settings, is_iris, is_text, texts
from pytest_queryeval.errors import SettingError, SourceError
from pytest_queryeval.model import Execution, Failure, Source
from pytest_queryeval.sparql.answers import refusal, with_terms
from pytest_queryeval.sparql.query import Query, read_query

DRIVER = Path(__file__).with_name("endpoint_child.py")
PACKAGES = ("SPARQLWrapper", "rdflib", "requests", "pytest_queryeval")
PROBE = "ASK {}"
# After its time limit a query has this long, in seconds, until the probe must be answered, too.
GRACE_SECONDS = 1.7
START_SECONDS = 0.8  # of which a new child takes this much
LEAST_SECONDS = 0.6
SCHEMES = ("basic", "digest", "bearer")


def _is_url(value: Any) -> bool:
    try:
        return is_text(value) and urlsplit(value).scheme in ("http", "https") and bool(urlsplit(value).hostname)
    except ValueError:  # an address in brackets that is none
        return False


def _is_auth(value: Any) -> bool:
    if not isinstance(value, dict) or len(value) != 1:
        return False
    ((scheme, secret),) = value.items()
    return scheme in SCHEMES and is_text(secret) and secret.isprintable() and (scheme == "bearer" or ":" in secret)


def _is_headers(value: Any) -> bool:
    return isinstance(value, dict) and all(
        is_text(name) and isinstance(text, str | int) and not set("\r\n") & set(f"{name}{text}")
        for name, text in value.items()
    )


SETTINGS = {
    "url": Rule(_is_url, "an http or https URL"),
    "auth": Rule(_is_auth, "{basic: user:password}, {digest: user:password} or {bearer: token}"),
    "headers": Rule(_is_headers, "a mapping from names to one-line texts"),
    "verify": Rule(lambda value: isinstance(value, bool) or is_text(value), "true, false or the name of a CA file"),
    "default_graph": Rule(is_iris, "the IRI of a graph, or a list of IRIs"),
    "service": Rule(lambda value: isinstance(value, bool), "true or false"),
}


def check(settings: Settings) -> None:
    """Raise `SettingError` for settings that are not these."""
    check_settings(settings, SETTINGS)
    if "url" not in settings:
        raise SettingError("url", "needs a url")


def open_endpoint(source: Source, hosts: Hosts) -> EndpointEngine:
    """Open `{endpoint: url, auth:, headers:, verify:, default_graph:, service:}`; nothing is sent before a query.

    `verify` may be a CA file; `service: true` lets queries have the server ask other endpoints.
    """
    settings = source.settings
    verify = settings.get("verify", True)
    plain = {
        "url": settings["url"],
        "auth": settings.get("auth"),
        "headers": {name: str(text) for name, text in settings.get("headers", {}).items()},
        "verify": str(absolute(source.folder, verify)) if isinstance(verify, str) else verify,
        "default_graph": list(texts(settings.get("default_graph", ()))),
    }
    host = hosts.get("endpoint", DRIVER, packages=PACKAGES)
    return EndpointEngine(source.name, host, plain, service=settings.get("service", False))


class EndpointEngine:
    """A SPARQL endpoint. `settings` are those of `endpoint_child.py`, but for the form of the query."""

    dialect = "sparql"

    def __init__(self, name: str, host: Host, settings: Mapping[str, Any], *, service: bool) -> None:
        self._name = name
        self._host = host
        self._settings = settings
        self._service = service

    def execute(self, query: str, *, timeout: float, max_rows: int) -> Execution:
        """Send `query` and wait at most `timeout` seconds for the whole answer.

        A time-out or a server's error is the query's fault only if the endpoint then answers a trivial query; raises
        `SourceError` otherwise, and for everything else that is no answer.
        """
        if failure := text_refusal(query) or self._refusal(read_query(query)):
            return Execution(query=query, error=failure, engine=self._host.name)
        outline = read_query(query)
        began = time.monotonic()
        execution = self._ask(outline, query, timeout, max_rows)
        if execution.error and execution.error.kind in ("timeout", "rejected"):
            started = START_SECONDS if self._host.pid is None else 0.0
            self._probe(execution.error, began + timeout + GRACE_SECONDS - started - time.monotonic())
        return with_terms(execution, outline)

    def close(self) -> None:
        """Do nothing: the connections end with the host's child."""

    def _refusal(self, outline: Query) -> Failure | None:
        found = refusal(outline if not self._service else replace(outline, calls_service=False))
        if found and outline.calls_service and not self._service:
            return replace(found, message=f"{found.message} (`service: true` on the source allows it)")
        return found

    def _ask(self, outline: Query, query: str, timeout: float, max_rows: int) -> Execution:
        settings = {**self._settings, "form": outline.form}
        if outline.states_dataset:
            settings["default_graph"] = []
        try:
            return self._host.execute(settings, query, timeout=timeout, max_rows=max_rows)
        except SourceError as error:
            raise SourceError(f"source '{self._name}': {error}") from error

    def _probe(self, failure: Failure, seconds: float) -> None:
        """Raise `SourceError` unless the endpoint answers a trivial query within `seconds`, and some."""
        try:
            answered = self._ask(read_query(PROBE), PROBE, max(seconds, LEAST_SECONDS), 1)
        except SourceError as error:
            raise SourceError(f"{error} (asked after this: {failure.message})") from error
        if answered.error:
            said = f"{failure.message}; nor does it answer {PROBE}: {answered.error.message}"
            raise SourceError(f"source '{self._name}': {said}")


ENDPOINT = EngineType(opener=open_endpoint, kind="sparql", text_setting="url", check=check)
