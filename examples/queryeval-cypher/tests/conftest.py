from pathlib import Path

import pytest

from pytest_queryeval.core.model import Source
from pytest_queryeval.testing import open_engine

SUITE = Path(__file__).parent.parent / "suite"


@pytest.fixture(scope="session")
def graph():
    """The river network of the suite."""
    with open_engine(Source(name="rivers", engine="ladybug", settings={"script": "rivers.cypher"}, folder=SUITE)) as it:
        yield it


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
    def failure(query):
        """The failure of a query that must not run."""
        execution = graph.execute(query, timeout=20, max_rows=1_000)
        assert execution.answer is None, execution.answer
        return execution.error

    return failure
