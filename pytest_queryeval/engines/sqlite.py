"""SQLite: a database file, or a script that makes one."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path

from pytest_queryeval.core.errors import SettingError, SourceError
from pytest_queryeval.core.model import Execution, Source
from pytest_queryeval.core.shapes import FILE_NAME
from pytest_queryeval.core.table import Row
from pytest_queryeval.engines import Comparison, EngineType, Settings, SmallDatabase, SourceFingerprint
from pytest_queryeval.engines.bases import DatabaseFile, DatabaseInMemory, next_statement, script_remedy
from pytest_queryeval.engines.settings import VARIANTS, VARIANTS_SETTING, check_settings, file_path
from pytest_queryeval.sandbox import driver
from pytest_queryeval.sandbox.host import Host, Hosts
from pytest_queryeval.text.formatting import one_line

# A quoted text or name, a comment, or a semicolon that is in none of them.
_TOKEN = re.compile(r"""'[^']*'|"[^"]*"|`[^`]*`|\[[^]]*\]|--[^\n]*|/\*.*?\*/|;""", re.DOTALL)
DRIVER = Path(driver.__file__).with_name("sqlite_child.py")


class SqliteFile(DatabaseFile):
    """The engine of a database file, which also knows from SQLite's authorizer what a query reads."""

    def reads(self, query: str, *, timeout: float) -> Execution:
        """Return rows of table, column and view, as `SupportsReads` describes them; raise `SourceError` on failure."""
        with self._source_errors():
            return self._host.reads(self._settings, query, timeout=timeout)


def open_sqlite(source: Source, hosts: Hosts) -> SqliteFile:
    """Open `{sqlite: file}` or `{sqlite: {script: file.sql}}`; paths are relative to the source's folder.

    A script is run at once, into a temporary file; a database file is opened by its first query. Raise `SourceError`
    for a script that is missing or fails.
    """
    host = hosts.shared(Host("sqlite", DRIVER))
    if "path" in source.settings:
        return SqliteFile(source.name, file_path(source, "path"), host)
    return SqliteFile.build(source.name, host, partial(run_script, file_path(source, "script")))


def build_sqlite(
    script: str, settings: Settings, hosts: Hosts, rows: Mapping[str, Sequence[Row]] | None = None
) -> DatabaseInMemory:
    """Return the engine of a database in a child's memory, built by the first query from `script` and `rows` by table.

    Scripts made from other databases are not trusted: no statement reaches another file, or runs for long.
    """
    return DatabaseInMemory(script, hosts.shared(Host("sqlite", DRIVER)), rows)


def compare_in_sqlite(
    queries: tuple[str, str],
    databases: Sequence[SmallDatabase],
    settings: Settings,
    hosts: Hosts,
    *,
    timeout: float,
    max_rows: int,
) -> Sequence[Comparison]:
    """Compare two queries as a `Comparer` does, in databases of `build_sqlite`, with one request to the child."""
    host = hosts.shared(Host("sqlite", DRIVER))
    return host.compare(queries, [database._asdict() for database in databases], timeout=timeout, max_rows=max_rows)


def run_script(script: Path, database: Path) -> None:
    """Create `database` by the SQL in a file; raise `SourceError` with the line of the statement that fails."""
    try:
        text = script.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = "no such file" if isinstance(error, FileNotFoundError) else one_line(str(error))
        raise SourceError(f"{script}: {reason}") from error
    run_statements(text, str(script), database)


def run_statements(text: str, name: str, database: Path) -> None:
    """Create `database` by the SQL in `text`, which messages call `name`.

    Raise `SourceError` with the line that fails.
    """
    start = 0
    try:
        with closing(sqlite3.connect(database, isolation_level=None)) as connection:
            connection.execute("PRAGMA synchronous = OFF")
            connection.execute("PRAGMA journal_mode = MEMORY")
            for position, statement in _statements(text):
                start = position
                connection.execute(statement)
            connection.commit()
    except (sqlite3.Error, sqlite3.Warning, ValueError) as error:
        if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL:
            problem = "no room for the database: name another folder of temporary files with TMPDIR"
            raise SourceError(f"{name}: {database.parent}: {problem}") from error
        problem = one_line(str(error))
        if word := next_statement(problem):
            start = max(start, text.find(word, start + 1))
        line = text.count("\n", 0, start) + 1
        raise SourceError(f"{name}:{line}: {problem}{script_remedy(problem)}") from error


def _statements(text: str) -> Iterator[tuple[int, str]]:
    """Yield the position of the first character of each statement in `text`, and the statement."""
    # The body of a trigger has semicolons of its own, which SQLite tells apart.
    ends = (token.end() for token in _TOKEN.finditer(text) if token[0] == ";")
    start = 0
    for end in (*ends, len(text)):
        if end == len(text) or sqlite3.complete_statement(text[start:end]):
            statement = text[start:end].lstrip()
            yield end - len(statement), statement
            start = end


SETTINGS = {"path": FILE_NAME, "script": FILE_NAME, VARIANTS: VARIANTS_SETTING}


def check(settings: Settings) -> None:
    """Raise `SettingError` unless the settings are a path or a script, perhaps with variants and a version."""
    check_settings(settings, SETTINGS)
    if len(settings.keys() & {"path", "script"}) != 1:
        raise SettingError(
            "path", "a source of sqlite needs a path or a script: write {sqlite: FILE} or {sqlite: {script: FILE}}"
        )


FINGERPRINT = SourceFingerprint(
    files=lambda source: [source.settings[name] for name in ("path", "script") if name in source.settings],
    wal_suffix="-wal",
    version=lambda _: f"sqlite {sqlite3.sqlite_version}",
)
SQLITE = EngineType(
    opener=open_sqlite,
    kind="sql",
    dialect=lambda _: "sqlite",
    check=check,
    settings=SETTINGS,
    fingerprint=FINGERPRINT,
    build=build_sqlite,
    build_with_rows=build_sqlite,
    compare=compare_in_sqlite,
)
