"""Answers that an endpoint cut, and says so, are no whole answers."""

import pytest
from servers import FaultServer

from pytest_queryeval.engines import ENGINES
from pytest_queryeval.engines.host import Hosts
from pytest_queryeval.model import Source

TWO_ROWS = '{"head": {"vars": ["x"]}, "results": {"bindings": [{"x": {"type": "uri", "value": "a:b"}}, {}]}}'


@pytest.fixture(scope="module")
def hosts():
    with Hosts() as pool:
        yield pool


def executed(hosts, folder, **headers):
    def answer(exchange):
        if exchange.request.is_probe:
            exchange.reply('{"head": {}, "boolean": true}')
        else:
            exchange.reply(TWO_ROWS, **headers)

    with FaultServer(answer) as server:
        source = Source(name="e", engine="endpoint", settings={"url": server.url}, folder=folder)
        return ENGINES["endpoint"].open(source, hosts).execute("SELECT ?x { ?x ?y ?z }", timeout=5, max_rows=10)


def test_rows_that_the_server_counted_out_are_too_large(hosts, tmp_path):
    error = executed(hosts, tmp_path, X_SPARQL_MaxRows=2).error

    assert (error.kind, error.message) == ("too_large", "the server cuts answers at 2 rows")


def test_fewer_rows_than_the_server_allows_are_whole(hosts, tmp_path):
    assert len(executed(hosts, tmp_path, X_SPARQL_MaxRows=10_000).answer.rows) == 2


def test_rows_until_the_servers_time_was_up_are_rejected(hosts, tmp_path):
    error = executed(hosts, tmp_path, X_SQL_State="S1TAT").error

    assert error.kind == "rejected"
    assert "its own time limit" in error.message
