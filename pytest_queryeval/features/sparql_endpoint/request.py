"""A SPARQL query over HTTP: SPARQLWrapper builds the requests of the protocol, and a `RetryingRequest` sends them.

Only for child processes: SPARQLWrapper uses the opener that is installed in urllib, here `Opener`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit, urlunsplit
from urllib.request import OpenerDirector, Request, install_opener

import requests
from SPARQLWrapper import POST, SPARQLWrapper
from SPARQLWrapper.SPARQLExceptions import URITooLong

from pytest_queryeval.sandbox.http_session import RetryingRequest

MAX_GET = 2_000  # characters of a URL that every server and proxy accepts
GRAPH_FORMS = ("CONSTRUCT", "DESCRIBE")
ACCEPT_TABLE = "application/sparql-results+json, application/json;q=0.5"
ACCEPT_GRAPH = "application/n-triples, text/turtle;q=0.8, application/rdf+xml;q=0.5"


class Opener(OpenerDirector):
    """Opener that sends the requests of urllib by `exchange`, after the `parameters` of the endpoint's own URL.

    These stay in the URL, also of a POST: they may select a tenant or a repository.
    """

    def __init__(self, exchange: RetryingRequest, parameters: str) -> None:
        super().__init__()
        self._exchange = exchange
        self._parameters = parameters

    def open(self, fullurl: str | Request, data: Any = None, timeout: float | None = None) -> Any:
        """Return the headers and the body; raise `URITooLong` for a long GET, else as `RetryingRequest.answer`."""
        assert isinstance(fullurl, Request)
        url, _, added_parameters = fullurl.full_url.partition("?")
        url = "?".join(filter(None, (url, "&".join(filter(None, (self._parameters, added_parameters))))))
        if fullurl.data is None and len(url) > MAX_GET:
            raise URITooLong
        headers = dict(fullurl.header_items())
        return self._exchange.answer(requests.Request(fullurl.get_method(), url, data=fullurl.data, headers=headers))


def send_query(exchange: RetryingRequest, settings: Mapping[str, Any], query: str) -> tuple[Mapping[str, str], bytes]:
    """Return the headers and the body of the answer to `query`, sent by GET if the URL is short, else by POST.

    `settings` have `url`, `default_graph`, a list of IRIs, and `form`. Raise as `RetryingRequest.answer`.
    """
    scheme, host, path, parameters, _ = urlsplit(settings["url"])
    install_opener(Opener(exchange, parameters))
    wrapper = SPARQLWrapper(urlunsplit((scheme, host.rpartition("@")[2], path, "", "")))
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
