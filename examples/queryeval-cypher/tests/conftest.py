from pathlib import Path

import pytest
from queryeval_cypher.engine import LADYBUG

from pytest_queryeval.core.model import Source
from pytest_queryeval.sandbox.host import Hosts

SUITE = Path(__file__).parent.parent / "suite"


@pytest.fixture(scope="session")
def hosts():
    with Hosts() as hosts:
        yield hosts


@pytest.fixture(scope="session")
def graph(hosts):
    """The river network of the suite."""
    source = Source(name="rivers", engine="ladybug", settings={"script": "rivers.cypher"}, folder=SUITE)
    engine = LADYBUG.open(source, hosts)
    yield engine
    engine.close()


@pytest.fixture(scope="session")
def rows(graph):
    def rows(query):
        """The rows of a query that has to run."""
        execution = graph.execute(query, timeout=20, max_rows=1_000)
        assert execution.error is None, execution.error
        return list(execution.answer.rows)

    return rows


@pytest.fixture(scope="session")
def failure(graph):
    def failure(query, timeout=20, max_rows=1_000):
        """The failure of a query that must not run."""
        execution = graph.execute(query, timeout=timeout, max_rows=max_rows)
        assert execution.answer is None, execution.answer
        return execution.error

    return failure
