"""A SPARQL query as an HTTP request, built by SPARQLWrapper.

Also imported by a child process: needs nothing else of the package.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit, urlunsplit

import requests
from SPARQLWrapper import GET, POST, SPARQLWrapper

LONGEST_GET = 2_000  # characters of a URL that every server and proxy takes
GRAPH_FORMS = ("CONSTRUCT", "DESCRIBE")
ACCEPT_TABLE = "application/sparql-results+json, application/json;q=0.5"
ACCEPT_GRAPH = "application/n-triples, text/turtle;q=0.8, application/rdf+xml;q=0.5"


def request_of(settings: dict[str, Any], query: str) -> requests.Request:
    """The request for a query: GET while the URL stays short, then POST."""
    scheme, host, path, parameters, _ = urlsplit(settings["url"])
    url = urlunsplit((scheme, host.rpartition("@")[2], path, "", ""))
    wrapper = SPARQLWrapper(url)
    wrapper.setOnlyConneg(True)
    for name in settings["default_graph"]:
        wrapper.addParameter("default-graph-uri", name)
    wrapper.setQuery(query)
    wrapper.queryType = settings["form"]  # its own guess could make an update of the text
    wrapper.setMethod(GET)
    built = wrapper._createRequest()
    if len(built.full_url) + len(parameters) > LONGEST_GET:
        wrapper.setMethod(POST)
        built = wrapper._createRequest()
    accept = ACCEPT_GRAPH if settings["form"] in GRAPH_FORMS else ACCEPT_TABLE
    headers = {**dict(built.header_items()), "Accept": accept}
    # The parameters of the URL stay there, also in a POST: they may tell tenant or repository.
    asked = "&".join(text for text in (parameters, urlsplit(built.full_url).query) if text)
    return requests.Request(built.get_method(), f"{url}?{asked}" if asked else url, data=built.data, headers=headers)
