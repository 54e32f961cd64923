"""A database that hostile statements attack: what they may not change, and what the next statement has to find."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pytest_queryeval.core.model import Execution, Source
from pytest_queryeval.engines import ENGINES
from pytest_queryeval.sandbox.host import Hosts

MAX_ROWS = 1_000
COUNTS = "SELECT (SELECT count(*) FROM customer), (SELECT count(*) FROM orders), (SELECT count(*) FROM log)"


def contents(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@contextmanager
def opened_battery(folder: Path, engine_name: str, database: str) -> Iterator[Callable[..., Execution]]:
    """Yield a function that runs a statement on a database in `folder`; at the end no file may have changed or come."""
    temporary = folder / "temporary"
    temporary.mkdir()
    (folder / "secret").write_text("secret", encoding="utf-8")
    before = contents(folder)
    places = {"folder": folder, "database": folder / database, "secret": folder / "secret"}
    with pytest.MonkeyPatch.context() as patch, Hosts() as hosts:
        patch.setattr(tempfile, "tempdir", str(temporary))
        patch.setenv("TMPDIR", str(temporary))
        patch.setenv("SQLITE_TMPDIR", str(temporary))
        source = Source(name="shop", engine=engine_name, settings={"path": database}, folder=folder, writes=True)
        engine = ENGINES[engine_name].open(source, hosts)

        def run(query: str, timeout: float = 20) -> Execution:
            for name, path in places.items():
                query = query.replace(f"{{{name}}}", str(path))
            return engine.execute(query, timeout=timeout, max_rows=MAX_ROWS)

        yield run
        assert contents(folder) == before  # the copy has no name
        engine.close()
    assert contents(folder) == before
    assert list(temporary.iterdir()) == []


def failures(battery, queries, kinds, *, timeout=20):
    """The statements that do not end in a failure of these kinds, or after which the source has another state."""
    wrong = {}
    for query in queries:
        execution = battery(query, timeout)
        kind = execution.error.kind if execution.error else "an answer"
        following = battery(COUNTS)
        counts = following.error or following.answer.as_table().rows
        if kind not in kinds or counts != [(2, 2, 0)]:
            wrong[query[:200]] = kind, execution.error, counts
    return wrong
