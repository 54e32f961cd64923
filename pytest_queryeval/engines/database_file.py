"""Databases that a host's child queries, in one file or in its memory: the base of the engines of such databases."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Self

from pytest_queryeval.core.db_schema import Schema
from pytest_queryeval.core.errors import SourceError
from pytest_queryeval.core.model import Execution
from pytest_queryeval.core.table import Row
from pytest_queryeval.engines import ddl_text, described_schema, prefix_source_errors
from pytest_queryeval.sandbox.host import Host, Question

_NEAR = re.compile(r'near "(\w+)"')
_STATEMENTS = frozenset({"ALTER", "CREATE", "DELETE", "DROP", "INSERT", "REPLACE", "SELECT", "UPDATE", "WITH"})


def next_statement(problem: str) -> str:
    """Return the word near a syntax error if it begins a statement: a `;` is missing before it; else nothing."""
    near = _NEAR.search(problem)
    return near[1] if near and near[1].upper() in _STATEMENTS else ""


def script_remedy(problem: str) -> str:
    """Return the end of the message on a script that fails: how to correct it, if known."""
    word = next_statement(problem)
    return f": end the statement before {word} with `;`" if word else ""


class DatabaseFile:
    """The database at `path`, which its driver opens; `folder`, if any, is removed on close."""

    def __init__(self, name: str, path: Path, host: Host, *, folder: TemporaryDirectory[str] | None = None) -> None:
        self._name = name
        self._path = path
        self._settings = {"path": str(path)}
        self._host = host
        self._folder = folder

    @classmethod
    def build(cls, name: str, host: Host, write: Callable[[Path], None]) -> Self:
        """Open a new database that `write` creates at the path of its argument; it is removed on close.

        Raises `SourceError` if there is no folder for it, and what `write` raises.
        """
        try:
            folder = TemporaryDirectory(prefix="queryeval-")
        except OSError as error:
            problem = f"{error.strerror or error}: name another folder of temporary files with TMPDIR"
            raise SourceError(f"source '{name}': no folder for its database: {problem}") from error
        try:
            path = Path(folder.name).resolve() / "built.db"
            write(path)
        except BaseException:
            folder.cleanup()
            raise
        return cls(name, path, host, folder=folder)

    def execute(self, query: str, *, timeout: float, max_rows: int) -> Execution:
        """Run `query` for at most `timeout` seconds; raises `SourceError` if the database cannot be read."""
        with self._source_errors():
            return self._host.execute(self._settings, query, timeout=timeout, max_rows=max_rows)

    def schema(self, *, timeout: float) -> Schema:
        """Return tables, columns and foreign keys; raises `SourceError`."""
        with self._source_errors():
            return described_schema(self._host.describe(self._settings, timeout=timeout))

    def ddl(self, *, timeout: float) -> str:
        """Return the statements that make its tables and views; raises `SourceError`."""
        with self._source_errors():
            return ddl_text(self._host.ddl(self._settings, timeout=timeout))

    def time(self, gold: str, predicted: str, *, iterations: int, timeout: float) -> Execution:
        """Return rows of the seconds that gold and predicted take; raises `SourceError`."""
        with self._source_errors():
            pair = [Question(query, self._settings) for query in (gold, predicted)]
            return self._host.time(*pair, iterations=iterations, timeout=timeout)

    def close(self) -> None:
        """Remove the database that was made for this run; may be called again."""
        if self._folder:
            self._folder.cleanup()

    def _source_errors(self) -> AbstractContextManager[None]:
        return prefix_source_errors(f"source '{self._name}': {self._path}")


class DatabaseInMemory:
    """A database that the child makes by a script and rows by table, and again after it made another one."""

    def __init__(self, script: str, host: Host, rows: Mapping[str, Sequence[Row]] | None = None) -> None:
        self._settings = {"script": script} if rows is None else {"script": script, "rows": rows}
        self._host = host

    def execute(self, query: str, *, timeout: float, max_rows: int) -> Execution:
        """Run `query` for at most `timeout` seconds; raises `SourceError` if the script fails."""
        return self._host.execute(self._settings, query, timeout=timeout, max_rows=max_rows)

    def close(self) -> None:
        """Leave the database to its child, which frees it for the next one."""
