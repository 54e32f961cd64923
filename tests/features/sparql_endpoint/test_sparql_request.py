from urllib.parse import parse_qsl, urlsplit

import pytest

from pytest_queryeval.features.sparql_endpoint.endpoint_child import MAX_GET, send_query

SETTINGS = {"url": "https://u:p@e.org/sparql?tenant=7", "default_graph": ["http://g/1", "http://g/2"], "form": "SELECT"}
GRAPHS = [("default-graph-uri", "http://g/1"), ("default-graph-uri", "http://g/2")]


class Recorder:
    """Stands in for a `RetryingRequest`, and keeps what it was to send."""

    def answer(self, request):
        self.request = request
        return {"Content-Type": "text/plain"}, b"body"


@pytest.fixture
def exchange(monkeypatch):
    monkeypatch.setattr("urllib.request._opener", None)  # which the next query installs
    return Recorder()


def test_a_short_query_is_a_get_with_the_parameters_of_the_url_in_front(exchange):
    answer = send_query(exchange, SETTINGS, "SELECT * { ?s ?p 'ü&/' }")

    parts = urlsplit(exchange.request.url)
    assert answer == ({"Content-Type": "text/plain"}, b"body")
    assert exchange.request.method == "GET"
    assert not exchange.request.data
    assert (parts.netloc, parts.path) == ("e.org", "/sparql")
    assert parse_qsl(parts.query) == [("tenant", "7"), *GRAPHS, ("query", "SELECT * { ?s ?p 'ü&/' }")]


def test_a_long_query_is_a_post_and_leaves_the_parameters_in_the_url(exchange):
    query = "SELECT * {} #" + "x" * MAX_GET

    send_query(exchange, SETTINGS, query)

    assert (exchange.request.method, exchange.request.url) == ("POST", "https://e.org/sparql?tenant=7")
    assert parse_qsl(exchange.request.data.decode()) == [*GRAPHS, ("query", query)]
    assert exchange.request.headers["Content-type"] == "application/x-www-form-urlencoded"


@pytest.mark.parametrize(("form", "accept"), [("ASK", "application/sparql-results+json"), ("CONSTRUCT", "n-triples")])
def test_each_form_asks_for_the_formats_that_can_be_read(exchange, form, accept):
    send_query(exchange, SETTINGS | {"form": form}, "DELETE WHERE { ?s ?p ?o }")

    assert accept in exchange.request.headers["Accept"]
    assert ("query", "DELETE WHERE { ?s ?p ?o }") in parse_qsl(urlsplit(exchange.request.url).query)
