"""The child process of SPARQL endpoints, so that a hanging name server or a huge answer blocks no run.

SPARQLWrapper builds the requests of the protocol, and a `RetryingRequest` sends them. SPARQLWrapper uses the opener
that is installed in urllib, here `Opener`. Loaded by `host_child.py`. Protocol:
https://www.w3.org/TR/sparql11-protocol/
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import partial
from typing import Any
from urllib.parse import urlsplit, urlunsplit
from urllib.request import OpenerDirector, Request, install_opener

import rdflib
import requests
from SPARQLWrapper import POST, SPARQLWrapper
from SPARQLWrapper.SPARQLExceptions import URITooLong

from pytest_queryeval.features.sparql_endpoint.endpoint_profiles import meaning_of
from pytest_queryeval.sandbox import driver
from pytest_queryeval.sandbox.driver import Answer, Fault, Settings, Verdict, encode_term, make_answer
from pytest_queryeval.sandbox.http_messages import (
    BUSY,
    SHOWN_BYTES,
    message,
    retry_after,
    unreadable,
    user_agent,
)
from pytest_queryeval.sandbox.http_session import (
    QueryFailed,
    RetryableError,
    RetryingRequest,
    Sessions,
    StatusPolicy,
    classify,
)
from pytest_queryeval.sandbox.sparql_json import read_json_results
from pytest_queryeval.text.redaction import register_secrets

GRAPH_FORMATS = {
    "application/n-triples": "nt",
    "text/plain": "nt",
    "text/turtle": "turtle",
    "application/x-turtle": "turtle",
    "application/rdf+xml": "xml",
}
# A SPARQL endpoint answers with 200 (protocol, 2.1.5) and calls a query malformed with 400.
STATUS_POLICY = StatusPolicy(answers={200}, invalid={400}, rejected={413, 414, 422}, follows_to_other_origins=True)
MAX_GET = 2_000  # characters of a URL that every server and proxy accepts
GRAPH_FORMS = ("CONSTRUCT", "DESCRIBE")
ACCEPT_TABLE = "application/sparql-results+json, application/json;q=0.5"
ACCEPT_GRAPH = "application/n-triples, text/turtle;q=0.8, application/rdf+xml;q=0.5"


class Driver(driver.Driver):
    """Queries SPARQL endpoints; `settings` are those of `engine.py`."""

    def __init__(self) -> None:
        rdflib.NORMALIZE_LITERALS = False
        self._sessions = Sessions(trust_env=True)

    def run(self, settings: Settings, query: str, timeout: float) -> Answer:
        """Send `query`, read the whole answer, and return it encoded; raise the errors of `sandbox.http_session`.

        CONSTRUCT and DESCRIBE return triples, ASK a single cell.
        """
        deadline = time.monotonic() + timeout
        register_secrets(settings)
        policy = STATUS_POLICY._replace(meaning=partial(error_by_profile, settings["profile"]))
        request = RetryingRequest(self._sessions.get(settings), settings, policy, deadline)
        headers, body = send_query(request, settings, query)
        content_type = headers.get("Content-Type", "").partition(";")[0].strip().lower()
        if settings["form"] in GRAPH_FORMS:
            columns, rows = graph_of(content_type, body, settings["url"])
        else:
            columns, rows = table_of(content_type, body, ask=settings["form"] == "ASK")
        refuse_incomplete(headers, len(rows))
        return make_answer(columns, rows)

    def classify(self, error: Exception) -> Verdict:
        """Return the verdict on an error of `run`: whether the query or the endpoint is at fault, and its message."""
        return classify(error)


class Opener(OpenerDirector):
    """Opener that sends the requests of urllib through `request`.

    `parameters`, those of the endpoint's own URL, come first in the URL of every request, also of a POST. They may
    select a tenant or a repository.
    """

    def __init__(self, request: RetryingRequest, parameters: str) -> None:
        super().__init__()
        self._request = request
        self._parameters = parameters

    def open(self, fullurl: str | Request, data: Any = None, timeout: float | None = None) -> Any:
        """Send a request, and return the headers and the body of the answer.

        Raise `URITooLong` for a GET whose URL exceeds MAX_GET characters, and the errors of `RetryingRequest.answer`.
        """
        assert isinstance(fullurl, Request)
        url, _, added_parameters = fullurl.full_url.partition("?")
        url = "?".join(filter(None, (url, "&".join(filter(None, (self._parameters, added_parameters))))))
        if fullurl.data is None and len(url) > MAX_GET:
            raise URITooLong
        headers = dict(fullurl.header_items())
        return self._request.answer(requests.Request(fullurl.get_method(), url, data=fullurl.data, headers=headers))


def send_query(request: RetryingRequest, settings: Mapping[str, Any], query: str) -> tuple[Mapping[str, str], bytes]:
    """Send `query` by GET if the URL is short, else by POST, and return the headers and the body of the answer.

    `settings` have `url`, `form`, and `default_graph`, a list of IRIs. Raise the errors of `RetryingRequest.answer`.
    """
    scheme, host, path, parameters, _ = urlsplit(settings["url"])
    install_opener(Opener(request, parameters))
    wrapper = SPARQLWrapper(urlunsplit((scheme, host.rpartition("@")[2], path, "", "")), agent=user_agent())
    wrapper.setOnlyConneg(True)
    wrapper.addCustomHttpHeader("Accept", ACCEPT_GRAPH if settings["form"] in GRAPH_FORMS else ACCEPT_TABLE)
    for name in settings["default_graph"]:
        wrapper.addParameter("default-graph-uri", name)
    wrapper.setQuery(query)
    wrapper.queryType = settings["form"]  # its own guess could make an update of the text
    try:
        return wrapper.query().response  # type: ignore[return-value]
    except URITooLong:
        wrapper.setMethod(POST)
        return wrapper.query().response  # type: ignore[return-value]


def error_by_profile(
    profile: str | None, status: int, headers: Mapping[str, str], body: bytes
) -> QueryFailed | RetryableError | None:
    """Return the error that the answer of a known service stands for; None if the status says all.

    `profile` is the name of the service; None if it is to be recognized by the answer.
    """
    match meaning_of(profile, status, headers, body):
        case None:
            return None
        case "busy", text:
            return RetryableError(Fault(f"{text}: {BUSY}"), retry_after(headers))
        case "timeout", text:
            return QueryFailed("timeout", f"the server stopped the query: {text}")
        case kind, text:
            return QueryFailed(kind, text)


def refuse_incomplete(headers: Mapping[str, str], row_count: int) -> None:
    """Raise `QueryFailed` if the headers of Virtuoso say that an answer with `row_count` rows is incomplete."""
    if headers.get("X-SPARQL-MaxRows") == str(row_count):
        raise QueryFailed("too_large", f"the server cuts answers at {row_count:,} rows")
    if headers.get("X-SQL-State", "").startswith("S1T"):
        raise QueryFailed("rejected", "the server stopped the query at its own time limit and sent what it had")


def table_of(content_type: str, body: bytes, *, ask: bool) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
    """Return the columns and rows of SPARQL JSON results; raise `Fault` if the body is anything else.

    `ask` says that the query is an ASK.
    """
    try:
        return read_json_results(body, ask=ask)
    except ValueError as error:
        problem = unreadable(content_type, body, error, expected="SPARQL JSON results", service="the query endpoint")
        raise Fault(problem) from error


def graph_of(content_type: str, body: bytes, url: str) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
    """Return the columns and rows of a graph, a row for each triple; raise `Fault` if the body is no readable graph.

    `url` is the base of relative IRIs. RDF/XML with a document type is refused, because its entities may expand without
    bound.
    """
    name = GRAPH_FORMATS.get(content_type)
    if name is None:
        text = message(content_type, body, SHOWN_BYTES)
        raise Fault(f"the answer is not a graph: {content_type or 'no content type'}{text}")
    if name == "xml" and b"<!DOCTYPE" in body:
        raise Fault("the answer is RDF/XML with a document type, which is not read")
    graph = rdflib.Graph()
    try:
        graph.parse(data=body, format=name, publicID=url.partition("?")[0])
    except Exception as error:
        raise Fault(f"the answer is not valid {content_type}: {error}") from error
    return ("subject", "predicate", "object"), [tuple(map(encode_term, triple)) for triple in graph]
