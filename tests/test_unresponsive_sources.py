"""A query may occupy a server beyond its own limit: what that costs the queries behind it."""

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from endpoint_faults import says
from samples import make_case, query
from servers import FaultServer

from pytest_queryeval import evaluate
from pytest_queryeval.core.errors import SourceError, UnresponsiveSourceError
from pytest_queryeval.core.model import Source
from pytest_queryeval.engines import ENGINES, bases

pytestmark = [pytest.mark.process, pytest.mark.feature("sparql_endpoint")]

TRUE = '{"head": {}, "boolean": true}'
LIMIT = 0.3
IDS = ("before", "path", "after", "last")
PATH = "ASK { ?a (<b:c>|^<b:c>)+ ?d }"


@pytest.fixture(autouse=True)
def short_patience(monkeypatch):
    monkeypatch.setattr(bases, "FIRST_PAUSE_SECONDS", 0.05)
    monkeypatch.setattr(bases, "PATIENCE_SECONDS", 0.5)
    monkeypatch.setattr(bases, "GRACE_SECONDS", 0.2)
    monkeypatch.setattr(bases, "MIN_SECONDS", 0.1)


def occupied_by_paths(seconds):
    """Answers until it is sent a property path, and then nothing for so many seconds."""
    until = 0.0

    def behave(exchange):
        nonlocal until
        if "+" in exchange.request.query:
            until = time.monotonic() + seconds
        exchange.closing.wait(until - time.monotonic())
        exchange.reply(TRUE)

    return behave


def opened(hosts, url):
    engine = ENGINES["endpoint"].open(source(url), hosts)
    engine.execute("ASK {}", timeout=30, max_rows=1)  # starts the child process
    return engine


def source(url):
    return Source(name="wikidata", engine="endpoint", settings={"url": url}, folder=Path())


def cases(url):
    """Cases of which the second one occupies the server."""
    shared = {"kind": "sparql", "source": source(url), "timeout": LIMIT}
    golds = {name: (query(f"ASK {{ ?a ?b '{name}' }}"),) for name in IDS}
    predicted = {name: query(PATH if name == "path" else "ASK { ?a ?b 1 }") for name in IDS}
    return [make_case(id=name, golds=golds[name], predicted=predicted[name], **shared) for name in IDS]


def test_query_after_which_the_server_recovers_is_late_and_the_next_is_answered(hosts):
    with FaultServer(occupied_by_paths(LIMIT + 0.4)) as server:
        engine = opened(hosts, server.url)
        late = engine.execute(PATH, timeout=LIMIT, max_rows=1)
        following = engine.execute("ASK { ?a ?b ?c }", timeout=LIMIT, max_rows=1)

    assert (late.error.kind, late.error.message) == ("timeout", "no answer within 0.3 s")
    assert following.answer.rows == [(True,)]


def test_patience_with_a_source_is_that_of_all_its_queries_together(hosts):
    with FaultServer(occupied_by_paths(60)) as server:
        engine = opened(hosts, server.url)
        seconds = []
        for _ in range(2):
            began = time.monotonic()
            with pytest.raises(UnresponsiveSourceError, match=r"nor does it answer ASK \{\}, asked for 0\.5 s in all"):
                engine.execute(PATH, timeout=LIMIT, max_rows=1)
            seconds.append(time.monotonic() - began)

    assert seconds[1] < seconds[0] - 0.3


def test_pauses_become_longer(hosts):
    with FaultServer(occupied_by_paths(60)) as server:
        engine = opened(hosts, server.url)
        with pytest.raises(SourceError):
            engine.execute(PATH, timeout=LIMIT, max_rows=1)
        probes = [request for request in server.requests if request.is_probe]

    assert 3 <= len(probes) <= 4  # to start with, after the limit, and then 0.05 + 0.2, 0.1 + 0.2 and 0.2 + 0.2 s later


def test_server_that_refuses_at_once_is_not_waited_for(hosts):
    with FaultServer(says("no such repository", "400 Bad Request")) as server:
        engine = ENGINES["endpoint"].open(source(server.url), hosts)
        with pytest.raises(SourceError, match="nor does it answer") as caught:
            engine.execute(PATH, timeout=LIMIT, max_rows=1)

    assert not isinstance(caught.value, UnresponsiveSourceError)
    assert len(server.requests) == 2


@pytest.mark.parametrize("workers", [0, 1])
def test_cases_after_one_that_occupied_the_server_end_at_once_and_name_it(hosts, workers):
    with FaultServer(occupied_by_paths(60)) as server, ThreadPoolExecutor(1) as executor:
        opened(hosts, server.url)
        report = evaluate(cases(server.url), executor=executor if workers else None)
        asked = [request.query for request in server.queries]

    outcomes = {case["id"]: (case["outcome"], case["message"]) for case in report["cases"]}
    unanswered = (
        "error",
        "source 'wikidata': the server has not answered since the query of case 'path' (music/s.queryeval.yaml:4)",
    )
    assert outcomes["before"] == ("passed", "")
    assert outcomes["path"][0] == "error"
    assert "no answer within 0.3 s; nor does it answer ASK {}" in outcomes["path"][1]
    assert [outcomes[name] for name in ("after", "last")] == [unanswered, unanswered]
    assert asked[-1] == PATH
