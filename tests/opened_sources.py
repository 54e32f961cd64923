"""Sources that tests open, for one query or for several."""

from pathlib import Path

from pytest_queryeval.core.model import Source
from pytest_queryeval.testing import open_engine


def source_of(engine, folder=Path(), /, **settings):
    """A source called `music`."""
    return Source(name="music", engine=engine, settings=settings, folder=folder)


def execute(hosts, source, query, *, timeout=20, max_rows=1000):
    """What a source answers to one query."""
    with open_engine(source, hosts) as engine:
        return engine.execute(query, timeout=timeout, max_rows=max_rows)


def rows_of(hosts, source, query, **limits):
    """The rows of an answer."""
    execution = execute(hosts, source, query, **limits)
    assert execution.error is None, execution.error
    return list(execution.answer.rows)


def contents(folder):
    """All files below a folder, by their names."""
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
